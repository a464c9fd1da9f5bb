"""Traps of a capacity-scheduler.xml, and advice that means what was meant; Hadoop takes all of these files."""

from __future__ import annotations

import time

import pytest

from harness.yarn.capacity.properties import PREFIX, parse_configuration
from harness.yarn.rules import Level
from harness.yarn.validation import check_document
from tests.yarn.capacity.refused import ABSOLUTE, DEEP, FLEXIBLE, LABELS, MANAGED, PERCENT, changed, configuration

#: A tree in which nothing is to be said: everybody has a queue.
GOOD = {**PERCENT, "root.queues": "default,b", "root.default.capacity": "60"}
GOOD.pop("root.a.capacity")

#: What the test calls it, the tree, the changes, the code, the property that the finding is at.
TRAPS: list[tuple[str, dict[str, str], dict[str, str | None], str, str]] = [
    ("a priority that nothing asks for", GOOD, {"root.b.priority": "10"}, "YF301", "root.b.priority"),
    ("root is stopped", GOOD, {"root.state": "STOPPED"}, "YF302", "root.state"),
    ("no queue for everybody", PERCENT, {}, "YF303", "root.queues"),
    ("the queue for everybody is stopped", GOOD, {"root.default.state": "STOPPED"}, "YF316", "root.default.state"),
    (
        "a share without applications",
        GOOD,
        {"root.b.capacity": "0.005", "root.default.capacity": "99.995"},
        "YF304",
        "root.b.capacity",
    ),
    (
        "a weight without applications",
        GOOD,
        {"root.b.capacity": "0w", "root.default.capacity": "1w"},
        "YF304",
        "root.b.capacity",
    ),
    (
        "per cent for masters",
        GOOD,
        {"root.b.maximum-am-resource-percent": "20"},
        "YF305",
        "root.b.maximum-am-resource-percent",
    ),
    (
        "no part for masters",
        GOOD,
        {"root.b.maximum-am-resource-percent": "0"},
        "YF313",
        "root.b.maximum-am-resource-percent",
    ),
    (
        "a master larger than its part",
        {"root.queues": "default", "root.default.capacity": "[memory=4096,vcores=4]"},
        {},
        "YF306",
        "root.default.capacity",
    ),
    (
        "a label without access",
        {**LABELS, "queue-mappings": "u:%user:a"},
        {"root.a.accessible-node-labels": "cpu"},
        "YF307",
        "root.a.accessible-node-labels.gpu.capacity",
    ),
    (
        "a template without queues that are created",
        GOOD,
        {"root.b.leaf-queue-template.capacity": "50"},
        "YF318",
        "root.b.leaf-queue-template.capacity",
    ),
    (
        "creation beside percentages",
        DEEP,
        {"root.a.auto-queue-creation-v2.enabled": "true"},
        "YF319",
        "root.a.auto-queue-creation-v2.enabled",
    ),
    (
        "a largest container of 0 vcores",
        GOOD,
        {"root.b.maximum-allocation": "memory-mb=1024,vcores=0"},
        "YF317",
        "root.b.maximum-allocation",
    ),
    (
        "an access list below an open root",
        GOOD,
        {"root.b.acl_submit_applications": "alice"},
        "YF308",
        "root.b.acl_submit_applications",
    ),
    (
        "a user that is read as a group",
        GOOD,
        {"root.acl_submit_applications": " ", "root.b.acl_submit_applications": "alice, bob"},
        "YF309",
        "root.b.acl_submit_applications",
    ),
    (
        "a weight of 0",
        GOOD,
        {"root.b.capacity": "0w", "root.default.capacity": "1w", "global-queue-max-application": "100"},
        "YF310",
        "root.b.capacity",
    ),
    (
        "more applications than the parent's",
        {**DEEP, "queue-mappings": "u:%user:x"},
        {"root.a.max-parallel-apps": "5", "root.a.x.max-parallel-apps": "9"},
        "YF311",
        "root.a.x.max-parallel-apps",
    ),
    (
        "a sum of 120 in flexible mode",
        GOOD,
        {"legacy-queue-mode.enabled": "false", "root.b.capacity": "60"},
        "YF312",
        "root.queues",
    ),
    (
        "rules in another file",
        GOOD,
        {"mapping-rule-format": "json", "mapping-rule-json-file": "/etc/rules.json"},
        "YF217",
        "mapping-rule-json-file",
    ),
    ("a large container", GOOD, {"root.b.maximum-allocation-mb": "65536"}, "YF314", "root.b.maximum-allocation-mb"),
    (
        "a class of somebody else's",
        GOOD,
        {"root.b.ordering-policy": "com.example.Policy"},
        "YF224",
        "root.b.ordering-policy",
    ),
    (
        "a further resource type",
        {"root.queues": "default", "root.default.capacity": "[memory=40960,vcores=4,yarn.io/gpu=2]"},
        {},
        "YF226",
        "root.default.capacity",
    ),
]


def line_of(settings: dict[str, str], key: str) -> int:
    return 2 + list(settings).index(key)


@pytest.mark.parametrize(("name", "tree", "changes", "code", "key"), TRAPS, ids=[row[0] for row in TRAPS])
def test_a_trap_is_named_and_is_no_error(
    name: str, tree: dict[str, str], changes: dict[str, str | None], code: str, key: str
) -> None:
    settings = changed(tree, changes)
    verdict = check_document(configuration(settings), source="c.xml")
    found = [one for one in verdict.findings if one.code == code]
    assert [one.line for one in found] == [line_of(settings, key)], verdict.findings
    assert found[0].level in (Level.WARNING, Level.HINT)
    assert verdict.errors == []


def test_a_good_file_has_no_findings() -> None:
    assert check_document(configuration(GOOD), source="c.xml").findings == []


#: A tree, changes, a part of the advice, the file that it yields as changes of the tree.
ADVICE: list[tuple[dict[str, str], dict[str, str | None], str, dict[str, str | None] | None]] = [
    (
        PERCENT,
        {"a.maximum-am-resource-percent": "1"},
        "write root.a.maximum-am-resource-percent",
        {"root.a.maximum-am-resource-percent": "1"},
    ),
    (PERCENT, {"a.capacity": "60"}, "remove it: root.a.capacity says the same", {}),
    (PERCENT, {"a.capacity": "50"}, "root.a.capacity, which has another value", None),
    (PERCENT, {"root.a.maximum-capcity": "80"}, "write root.a.maximum-capacity", {"root.a.maximum-capacity": "80"}),
    (PERCENT, {"node-locallity-delay": "5"}, "write node-locality-delay", {"node-locality-delay": "5"}),
    (
        MANAGED,
        {"root.a.leaf-queue-template.user-limt-factor": "5"},
        "write root.a.leaf-queue-template.user-limit-factor",
        None,
    ),
    # A queue that would break the sum of 100 is not to be listed without more.
    (PERCENT, {"root.gold.capacity": "10"}, "name gold in root.queues and fit the capacities", None),
    (PERCENT, {"root.gold.accessible-node-labels.gpu.capacity": "10"}, "name gold in root.queues", None),
    # Merely alike: another setting.
    (PERCENT, {"maximum-application-lifetime": "100"}, "write root.QUEUE.maximum-application-lifetime", None),
    (PERCENT, {"rack-locality-delay": "1000"}, "write rack-locality-additional-delay", None),
    (PERCENT, {"root.a.acl_administer_jobs": "alice"}, "write root.a.acl_administer_queue", None),
    (
        FLEXIBLE,
        {"root.a.*.auto-queue-creation-v2.leaf-template.maximum-aplications": "5"},
        "write root.a.*.auto-queue-creation-v2.leaf-template.maximum-applications",
        None,
    ),
    (PERCENT, {"root.a.ordering-policy": "FIFO"}, "write fifo", None),
    (PERCENT, {"root.a.capacity": "0.6", "root.b.capacity": "0.4"}, "write 60 for 0.6", None),
    (PERCENT, {"root.accessible-node-labels.default.capacity": "-1"}, "or remove what is set for this label", None),
    (PERCENT, {"queue-mappings": "u:bob:root.a.nosuch"}, "name a queue that exists, or add it", None),
    (PERCENT, {"queue-mappings": "u:bob:root.A"}, "write root.a", None),
    # What is written is quoted, and what Hadoop makes of it beside.
    (ABSOLUTE, {"root.a.capacity": "[memory=8GB,vcores=8]"}, "write [memory=8192,vcores=8], with units like Gi", None),
    # An integer as a queue's policy would be refused: no such advice.
    (PERCENT, {"root.a.priorty": "high"}, "correct its name", None),
]


@pytest.mark.parametrize(("tree", "changes", "advice", "result"), ADVICE)
def test_advice_is_given_only_where_it_helps(
    tree: dict[str, str], changes: dict[str, str | None], advice: str, result: dict[str, str | None] | None
) -> None:
    settings = changed(tree, changes)
    document = configuration(settings)
    verdict = check_document(document, source="c.xml")
    found = [one for one in verdict.errors if advice in one.hint]
    assert found, verdict.findings
    if result is not None:
        assert found[0].fix is not None
        edited = parse_configuration(document, source="c.xml").edited(dict(found[0].fix.properties))
        expected = {PREFIX + key: text for key, text in changed(tree, result).items()}
        assert dict(parse_configuration(edited, source="c.xml").values) == expected


def test_one_mistake_is_one_message() -> None:
    settings = {"root.queues": "prod", "root.prod.capacity": "100", "root.prd.queues": "a,b"}
    for child in "ab":
        for name in ("capacity", "maximum-capacity", "state", "user-limit-factor"):
            settings[f"root.prd.{child}.{name}"] = "RUNNING" if name == "state" else "50"
    verdict = check_document(configuration(settings), source="c.xml")
    assert [found.code for found in verdict.errors] == ["YF202"]
    assert verdict.errors[0].queue == "root.prd"
    assert "and 6 more settings" in verdict.errors[0].what


@pytest.mark.parametrize(
    ("tree", "changes", "code", "words"),
    [
        (ABSOLUTE, {"root.a.capacity": "[memory=8GB,vcores=8]"}, "YF113", "'[memory=8GB,vcores=8]' names no memory"),
        (ABSOLUTE, {"root.b.capacity": "[memory=4GB,vcores=4]"}, "YF218", "'memory=4GB' in capacity"),
        (ABSOLUTE, {"root.a.capacity": "[memory=8G,vcores=8]"}, "YF142", "own [memory=8G,vcores=8], which is"),
        # What follows of it for a child, or for each queue below, or of a state above, is not told besides.
        (ABSOLUTE, {"root.a.maximum-capacity": "[memory=4096,vcores=4]"}, "YF117", "is above its maximum"),
        (PERCENT, {"root.user-settings.bob.weight": "3"}, "YF133", "weight 3 of user bob"),
        (DEEP, {"root.state": "STOPPED", "root.a.state": "RUNNING"}, "YF131", "RUNNING below root"),
    ],
)
def test_a_mistake_is_told_as_it_is_written_and_once(
    tree: dict[str, str], changes: dict[str, str | None], code: str, words: str
) -> None:
    verdict = check_document(configuration(changed(tree, changes)), source="c.xml")
    found = [one for one in verdict.findings if one.code not in ("YF303", "YF306")]
    assert [one.code for one in found] == [code], found
    assert words in found[0].what


def test_a_user_without_applications_is_an_error() -> None:
    verdict = check_document(configuration({**GOOD, "user.alice.max-parallel-apps": "0"}), source="c.xml")
    assert [found.code for found in verdict.errors] == ["YF208"]


@pytest.mark.parametrize(
    ("settings", "code", "hint"),
    [
        (
            {"root.queues": "Etl", "root.etl.capacity": "100", "queue-mappings": "u:%user:Etl"},
            "YF143",
            "write root.Etl",
        ),
        (
            {"root.queues": "prod,dev,default", "root.default.capacity": "0", "root.prd.capacity": "60"}
            | {"root.dev.capacity": "40"},
            "YF143",
            "write root.prod",
        ),
        (
            {"root.queues": "default,b", "default.capacity": "60", "b.capacity": "40"},
            "YF143",
            "write root.default.capacity; write root.b.capacity",
        ),
        (
            {**GOOD, "root.b.capacty": "40", "root.b.capacity": None},
            "YF143",
            "write root.b.capacity",
        ),
        ({**GOOD, "root.queues": "root.default,root.b"}, "YF143", "write default,b"),
        ({**GOOD, "root.queues": "default;b"}, "YF143", "write default,b"),
        ({**GOOD, "root.queues": "default b"}, "YF143", "write default,b"),
        ({**GOOD, "root.queues": None, "queues": "default,b"}, "YF110", "write root.queues"),
        ({**GOOD, "root.queues": None, "root.queue": "default,b"}, "YF110", "write root.queues"),
    ],
)
def test_what_is_refused_and_why_is_one_message(settings: dict[str, str | None], code: str, hint: str) -> None:
    """Mended by its own advice, the file has no error any more."""
    document = configuration(changed({}, settings))
    verdict = check_document(document, source="c.xml")
    assert verdict.refused
    assert [(found.code, found.hint) for found in verdict.errors] == [(code, hint)], verdict.errors
    fix = verdict.errors[0].fix
    assert fix is not None
    edited = parse_configuration(document, source="c.xml").edited(dict(fix.properties))
    assert check_document(edited, source="c.xml").errors == []


def test_a_final_value_is_kept() -> None:
    def property_(value: str, final: str = "") -> str:
        return f"<property><name>{PREFIX}root.a.capacity</name><value>{value}</value>{final}</property>"

    good = configuration({**PERCENT, "queue-mappings": "u:%user:a"}).decode()
    good = good.replace(property_("60"), property_("60", "<final>true</final>") + property_("10"))
    verdict = check_document(good.encode(), source="c.xml")
    assert [found.code for found in verdict.findings] == ["YF225"]
    assert not check_document(good.replace("<final>true</final>", "").encode(), source="c.xml").valid


def test_yarn_site_makes_the_clusters_limits_known() -> None:
    document = configuration({**GOOD, "root.b.maximum-allocation-mb": "65536"})
    small, large = ({"yarn.scheduler.maximum-allocation-mb": size} for size in ("8192", "131072"))
    assert [found.code for found in check_document(document, source="c.xml", site=small).findings] == ["YF119"]
    assert check_document(document, source="c.xml", site=large).findings == []
    found = check_document(configuration(GOOD), source="c.xml", site={"yarn.scheduler.minimum-allocation-mb": "0"})
    assert [one.code for one in found.findings] == ["YF102"]
    default = "org.apache.hadoop.yarn.util.resource.DefaultResourceCalculator"
    for values in (GOOD, {**GOOD, "resource-calculator": default}):
        gpu = check_document(configuration(values), source="c.xml", site={"yarn.resource-types": "yarn.io/gpu"})
        assert [one.code for one in gpu.findings] == ["YF104"]


def test_a_queue_that_makes_queues_needs_no_default() -> None:
    codes = [found.code for found in check_document(configuration(FLEXIBLE), source="c.xml").findings]
    assert codes == ["YF303"]


def _parent_with_children(listed_at: str, count: int) -> bytes:
    """A file with a parent of so many queues, whose list of them is the property of this queue."""
    children = {f"root.prod.q{number}.capacity": f"{100 / count:g}" for number in range(count)}
    names = ",".join(f"q{number}" for number in range(count))
    settings = {"root.queues": "default,prod", "root.default.capacity": "40", "root.prod.capacity": "60", **children}
    return configuration({**settings, f"{listed_at}.queues": names})


def test_a_misspelt_list_of_queues_is_one_mistake_however_many_queues_it_names() -> None:
    document = _parent_with_children("root.prd", 25)
    (found,) = check_document(document, source="file").errors
    assert (found.code, found.queue, found.hint) == ("YF202", "root.prd", "write root.prod")
    assert found.fix is not None
    edited = parse_configuration(document, source="file").edited(dict(found.fix.properties))
    assert not check_document(edited, source="file").errors
    assert parse_configuration(edited, source="file").values[f"{PREFIX}root.prod.queues"].startswith("q0,q1,")


def test_queues_that_their_parent_does_not_name_are_one_mistake() -> None:
    document = _parent_with_children("root.other", 25)
    first, second = check_document(document, source="file").errors
    assert (first.code, first.queue) == ("YF202", "root.prod")
    assert first.what == "it has no queues q0, q1, q2 and 22 more: their settings are ignored"
    assert first.fix is not None, "with all of them the capacities sum to 100"
    assert second.queue == "root.other"
    few = check_document(_parent_with_children("root.other", 2), source="file").errors
    assert [one.queue for one in few] == ["root.prod.q0", "root.prod.q1", "root.other"]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"root.queues": "default,b", "root.c.maximum-allocation-mb": "65536", "root.c.capacity": "0"}, "name c in"),
        ({"root.b.maximum-alocation-mb": "65536"}, "write root.b.maximum-allocation-mb"),
    ],
)
def test_a_change_that_yarn_site_has_to_allow_is_advised_and_not_made(changes: dict[str, str], said: str) -> None:
    """Without yarn-site.xml Hadoop's default of 8192 MB could be the limit, and the RM refuse to start."""
    document = configuration({**GOOD, **changes})
    for most, made in ((None, False), ("131072", True)):
        site = None if most is None else {"yarn.scheduler.maximum-allocation-mb": most}
        (found,) = check_document(document, source="c.xml", site=site).findings
        assert (said in found.hint, found.fix is not None) == (True, made), found


def test_one_mistake_in_many_queues_is_joined_with_each_effect_and_takes_no_long_time() -> None:
    """Each join was checked by a whole check, which joined the others anew: seven such queues took minutes."""
    count = 15
    values = {"root.queues": "default," + ",".join(f"p{at}" for at in range(count)), "root.default.capacity": "25"}
    for at in range(count):
        own = {"capacity": "5", "queues": "a,b", "a.capacity": "40", "b.capacty": "60"}
        values.update({f"root.p{at}.{key}": text for key, text in own.items()})
    began = time.process_time()
    found = check_document(configuration(values), source="c.xml").findings
    assert time.process_time() - began < 20
    assert [(one.code, one.queue) for one in found] == [("YF143", f"root.p{at}") for at in range(count)]
    assert all(one.what.endswith(f"root.p{at}.b.capacty is ignored") for at, one in enumerate(found))


@pytest.mark.parametrize(
    ("prefix", "said"),
    [
        ("yarn.scheduler.capcity.", "begin them with yarn.scheduler.capacity."),
        ("", "write it before root.queues and the others"),
    ],
)
def test_a_prefix_that_is_wrong_in_many_properties_is_one_mistake(prefix: str, said: str) -> None:
    document = _parent_with_children("root.prod", 25).replace(PREFIX.encode(), prefix.encode())
    (found,) = check_document(document, source="file").findings
    assert (found.level, found.hint) == (Level.ERROR, said)
    assert found.fix is not None
    edited = parse_configuration(document, source="file").edited(dict(found.fix.properties))
    assert not check_document(edited, source="file").findings
