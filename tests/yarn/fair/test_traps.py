"""Traps of an allocation file: each is named with its code and line, and a file without it says nothing of the kind."""

from __future__ import annotations

import pytest

from harness.yarn.fair.dom import spliced
from harness.yarn.rules import Level
from harness.yarn.validation import check_document

ROOT_CLOSED = '<queue name="root"><aclSubmitApps> </aclSubmitApps><aclAdministerApps> </aclAdministerApps>'


def file(inside: str) -> bytes:
    return f"<allocations>\n{inside}\n</allocations>".encode()


#: What the test calls it, the file's content, the code, its line, and the same without the trap.
TRAPS = [
    (
        "no vcores in a maximum",
        '<queue name="a">\n<maxResources>40960 mb,0 vcores</maxResources></queue>',
        "YF601",
        3,
        '<queue name="a">\n<maxResources>40960 mb,10 vcores</maxResources></queue>',
    ),
    ("no memory in a maximum", '<queue name="a"><maxResources>0 mb, 4 vcores</maxResources></queue>', "YF601", 2, ""),
    ("0 per cent", '<queue name="a"><maxResources>0%</maxResources></queue>', "YF601", 2, ""),
    (
        "no vcores by default",
        '<queue name="a"/>\n<queueMaxResourcesDefault>40000 mb,0vcores</queueMaxResourcesDefault>',
        "YF601",
        3,
        "",
    ),
    (
        "an access list below an open root",
        '<queue name="a">\n<aclSubmitApps>alice</aclSubmitApps></queue><queue name="b"/>',
        "YF602",
        3,
        ROOT_CLOSED + '<queue name="a"><aclSubmitApps>alice</aclSubmitApps></queue></queue>',
    ),
    (
        "an access list below an open parent",
        ROOT_CLOSED + '<queue name="p"><aclSubmitApps>*</aclSubmitApps><queue name="a">\n'
        "<aclSubmitApps>alice</aclSubmitApps></queue></queue></queue>",
        "YF602",
        3,
        "",
    ),
    (
        "a user that is read as a group",
        ROOT_CLOSED + '<queue name="a">\n<aclSubmitApps>alice, bob</aclSubmitApps></queue></queue>',
        "YF603",
        3,
        ROOT_CLOSED + '<queue name="a">\n<aclSubmitApps>alice,bob ops</aclSubmitApps></queue></queue>',
    ),
    (
        "a default rule that names a parent",
        '<queue name="a"><queue name="b"/></queue><queuePlacementPolicy>\n<rule name="default" queue="a"/>'
        "</queuePlacementPolicy>",
        "YF604",
        3,
        '<queue name="a"><queue name="b"/></queue><queuePlacementPolicy><rule name="default" queue="root.a.b"/>'
        "</queuePlacementPolicy>",
    ),
    (
        "users' queues below a leaf",
        '<queue name="u"/><queuePlacementPolicy><rule name="nestedUserQueue">\n<rule name="default" queue="u"/></rule>'
        "</queuePlacementPolicy>",
        "YF604",
        3,
        "",
    ),
    (
        "a default that is not there and may not be made",
        '<queue name="a"/><queuePlacementPolicy>\n<rule name="default" queue="b" create="false"/><rule name="reject"/>'
        "</queuePlacementPolicy>",
        "YF605",
        3,
        "",
    ),
    (
        "a threshold without a time-out",
        '<queue name="a">\n<fairSharePreemptionThreshold>0.8</fairSharePreemptionThreshold></queue>',
        "YF606",
        3,
        '<queue name="a"><fairSharePreemptionThreshold>0.8</fairSharePreemptionThreshold></queue>'
        "<defaultFairSharePreemptionTimeout>60</defaultFairSharePreemptionTimeout>",
    ),
    (
        "a default threshold without a time-out",
        '<queue name="a"/>\n<defaultFairSharePreemptionThreshold>0.8</defaultFairSharePreemptionThreshold>',
        "YF606",
        3,
        "",
    ),
    (
        "nothing that may be preempted",
        "<defaultFairSharePreemptionTimeout>60</defaultFairSharePreemptionTimeout>"
        '<queue name="a">\n<allowPreemptionFrom>false</allowPreemptionFrom></queue>'
        '<queue name="b"><allowPreemptionFrom>false</allowPreemptionFrom></queue>',
        "YF607",
        3,
        "<defaultFairSharePreemptionTimeout>60</defaultFairSharePreemptionTimeout>"
        '<queue name="a"><allowPreemptionFrom>false</allowPreemptionFrom></queue><queue name="b"/>',
    ),
    (
        "a time-out in milliseconds",
        '<queue name="a">\n<minSharePreemptionTimeout>60000</minSharePreemptionTimeout></queue>',
        "YF608",
        3,
        '<queue name="a"><minSharePreemptionTimeout>60</minSharePreemptionTimeout></queue>',
    ),
    (
        "minima above the parent's maximum",
        '<queue name="p"><maxResources>4096 mb, 8 vcores</maxResources><queue name="a">\n'
        '<minResources>3000 mb, 1 vcores</minResources></queue><queue name="b"><minResources>3000 mb, 1 vcores'
        "</minResources></queue></queue>",
        "YF609",
        3,
        "",
    ),
    (
        "a maximum above the parent's",
        '<queue name="p"><maxResources>4096 mb, 8 vcores</maxResources><queue name="a">\n'
        "<maxResources>8192 mb, 4 vcores</maxResources></queue></queue>",
        "YF610",
        3,
        "",
    ),
    (
        "more applications than the parent's",
        '<queue name="p"><maxRunningApps>5</maxRunningApps><queue name="a">\n<maxRunningApps>9</maxRunningApps></queue>'
        "</queue>",
        "YF610",
        3,
        "",
    ),
    ("no applications", '<queue name="a">\n<maxRunningApps>0</maxRunningApps></queue>', "YF611", 3, ""),
    ("no masters", '<queue name="a">\n<maxAMShare>0</maxAMShare></queue>', "YF611", 3, ""),
    (
        "too little for a master",
        '<queue name="a"><maxResources>4096 mb, 4 vcores</maxResources>\n<maxAMShare>0.1</maxAMShare></queue>',
        "YF612",
        3,
        '<queue name="a"><maxResources>40960 mb, 4 vcores</maxResources><maxAMShare>0.1</maxAMShare></queue>',
    ),
    ("a weight of 0", '<queue name="a">\n<weight>0</weight></queue>', "YF613", 3, ""),
    ("a weight of root", '<queue name="root">\n<weight>3</weight><queue name="a"/></queue>', "YF616", 3, ""),
    ("white space in a name", '\n<queue name="my queue"/>', "YF617", 3, ""),
    (
        "a further resource type",
        '<queue name="a">\n<maxResources>memory-mb=4096,vcores=4,yarn.io/gpu=4</maxResources></queue>',
        "YF618",
        3,
        "",
    ),
]


@pytest.mark.parametrize(("name", "inside", "code", "line", "without"), TRAPS, ids=[row[0] for row in TRAPS])
def test_a_trap_is_named_and_is_no_error(name: str, inside: str, code: str, line: int, without: str) -> None:
    verdict = check_document(file(inside), source="f.xml")
    found = [one for one in verdict.findings if one.code == code]
    assert [one.line for one in found] == [line], verdict.findings
    assert found[0].level in (Level.WARNING, Level.HINT)
    assert verdict.errors == []
    if without:
        assert check_document(file(without), source="f.xml").findings == []


#: Fine files that were refused or warned of once.
FINE = [
    '<queue name="root"><weight>1.0</weight><queue name="a"><weight>1.0</weight></queue></queue>',
    '<queue name="a"><weight>2</weight></queue>',
    '<queue name="users" type="parent"/><queuePlacementPolicy><rule name="nestedUserQueue"><rule name="default" '
    'queue="users"/></rule></queuePlacementPolicy>',
    '<queue name="a"><maxAMShare>-1.0</maxAMShare></queue>',
    '<queue name="a"><aclSubmitApps>*</aclSubmitApps></queue>',
]


@pytest.mark.parametrize("inside", FINE)
def test_a_fine_file_has_no_findings(inside: str) -> None:
    assert check_document(file(inside), source="f.xml").findings == []


#: A file, and a part of the advice that is given for it.
ADVICE = [
    ("<poolMaxJobsDefault>5</poolMaxJobsDefault>", "if as many applications are meant"),
    ('<queue name="a"><minMaps>5</minMaps></queue>', "there are no slots"),
    (
        '<queue name="a"><defaultMinSharePreemptionTimeout>5</defaultMinSharePreemptionTimeout></queue>',
        "write <minSharePreemptionTimeout>",
    ),
    ('<queue name="a"><queueMaxAppsDefault>5</queueMaxAppsDefault></queue>', "write <maxRunningApps>"),
    (
        '<queue name="root"><queuePlacementPolicy><rule name="default"/></queuePlacementPolicy></queue>',
        "move it out of all queues",
    ),
    ("<maxRunningApps>5</maxRunningApps>", "move it into a <queue>"),
    ("<maxRunningJobs>5</maxRunningJobs>", "write, inside a <queue>, <maxRunningApps>"),
    ("<minMaps>5</minMaps>", "write, inside a <queue>, <minResources>"),
    ('<queue name="a"><userMaxJobsDefault>5</userMaxJobsDefault></queue>', "remove it; outside of all queues, write"),
    ('<queue name="a"><poolMaxJobsDefault>5</poolMaxJobsDefault></queue>', "write <maxRunningApps>"),
    ('<queue name="a"><defaultPoolSchedulingMode>fair</defaultPoolSchedulingMode></queue>', "write <schedulingPolicy>"),
    (
        '<queue name="a"><schedulingPolicy>drf</schedulingPolicy>'
        "<defaultPoolSchedulingMode>fair</defaultPoolSchedulingMode></queue>",
        "remove it, or <schedulingPolicy>, which is there too",
    ),
    ('<queue name="a"><maxResources>20.480 mb, 8 vcores</maxResources></queue>', "'20480 mb, 8 vcores' if its dots"),
    ('<queue name="a"><weight value="5"/></queue>', "write the value between <weight> and </weight>"),
    ("<queue><name>prod</name></queue>", 'write <queue name="prod">'),
    ('<queue name="root"><queue name="root"/></queue>', "rename it"),
    ('<queue name="a"><maxContainerAllocation>0 mb, 4 vcores</maxContainerAllocation></queue>', "how much memory a"),
    ('<queue name="a"><maxContainerAllocation>9 mb, 0 vcores</maxContainerAllocation></queue>', "how many vcores a"),
    # Fractions of a second are none of Hadoop's.
    ("<defaultFairSharePreemptionTimeout>45500</defaultFairSharePreemptionTimeout>", "write 46 if milliseconds"),
    ('<queue name="a"><maxResources>20,480 mb, 8 vcores</maxResources></queue>', "write '20480 mb, 8 vcores'"),
    ('<queue name="a"><maxResources>5.5 mb, 3 vcores</maxResources></queue>', "write '5 mb, 3 vcores'"),
]


@pytest.mark.parametrize(("inside", "advice"), ADVICE)
def test_advice_is_about_what_was_meant(inside: str, advice: str) -> None:
    verdict = check_document(file(inside), source="f.xml")
    assert any(advice in found.hint for found in verdict.findings), verdict.findings


def test_sparks_file_is_told_from_yarns() -> None:
    spark = b"""<?xml version="1.0"?><allocations>
      <pool name="production"><schedulingMode>FAIR</schedulingMode><weight>1</weight><minShare>2</minShare></pool>
      <pool name="test"><schedulingMode>FIFO</schedulingMode><weight>2</weight><minShare>3</minShare></pool>
    </allocations>"""
    (found,) = check_document(spark, source="fairscheduler.xml").findings
    assert found.code == "YF003"
    assert "spark.scheduler.allocation.file" in found.hint


def test_a_mistake_is_told_once() -> None:
    """A parent with maxAMShare is one message, not one of the check and one of the reader."""
    text = file('<queue name="a"><maxAMShare>0.5</maxAMShare><queue name="b"/></queue>')
    assert [found.code for found in check_document(text, source="f.xml").findings] == ["YF405"]
    # Neither is its value looked at besides, nor a user's misspelt limit missed.
    for share in ("400", "-7", "0", "a half"):
        text = file(f'<queue name="a"><maxAMShare>{share}</maxAMShare><queue name="b"/></queue>')
        assert [found.code for found in check_document(text, source="f.xml").findings] == ["YF405"], share
    # Nor what follows of a misread amount, an empty element's attribute, or the name that a queue has in an element.
    for inside, code in (
        ('<queue name="a"><maxResources>20,480 mb, 8 vcores</maxResources></queue>', "YF511"),
        ('<queue name="a"><weight value="5"/></queue>', "YF402"),
        ("<queue><name>prod</name><weight>2</weight></queue>", "YF403"),
    ):
        assert [found.code for found in check_document(file(inside), source="f.xml").findings] == [code], inside
    text = file('<user name="alice"><maxRunningJobs>5</maxRunningJobs></user>')
    assert [found.code for found in check_document(text, source="f.xml").findings] == ["YF501"]
    text = file("<queuePlacementPolicy><rule name='usre'/><rule name='default'/></queuePlacementPolicy>")
    assert [found.code for found in check_document(text, source="f.xml").findings] == ["YF407"]


@pytest.mark.parametrize("encoding", ["gbk", "gb18030", "big5", "shift_jis", "euc-kr", "windows-1252", "utf-16"])
def test_encodings_that_the_rms_parser_knows_are_read(encoding: str) -> None:
    name = {"euc-kr": "큐", "windows-1252": "ä", "shift_jis": "表"}.get(encoding, "中")
    inside = f'<queue name="{name}"><wieght>1</wieght></queue>'
    text = f'<?xml version="1.0" encoding="{encoding}"?>\n<allocations>\n{inside}</allocations>'
    (found,) = check_document(text.encode(encoding), source="f.xml").findings
    assert (found.line, found.queue, found.code) == (3, f"root.{name}", "YF501")


def test_resource_types_are_checked_against_yarn_site() -> None:
    text = file('<queue name="a"><maxResources>memory-mb=4096,vcores=4,yarn.io/gpu=4</maxResources></queue>')
    assert check_document(text, source="f.xml", site={"yarn.resource-types": "yarn.io/gpu"}).findings == []
    for wrong in (b"mem=4096", b"memory=4096,vcores=1", b"vcore=3,memory-mb=5"):
        verdict = check_document(text.replace(b"memory-mb=4096,vcores=4,yarn.io/gpu=4", wrong), source="f.xml")
        assert verdict.refused, wrong


@pytest.mark.parametrize(
    ("inside", "advice", "fixed"),
    [
        ('<queue name="a"><wieght>3</wieght></queue>', "write <weight>", '<queue name="a"><weight>3</weight></queue>'),
        # Under the right name the value would be refused.
        ('<queue name="a"><wieght>heavy</wieght></queue>', "write <weight>, and a number in it", None),
        ('<queue name="a"><maxResorces>5</maxResorces></queue>', "write <maxResources>, and a resource in it", None),
        # It would replace, or be replaced by, the one that is there.
        (
            '<queue name="a"><wieght>3</wieght><weight>2</weight></queue>',
            "remove it, or <weight>, which is there too",
            None,
        ),
        # A parent with it is refused.
        ('<queue name="a"><maxAMShar>0.5</maxAMShar><queue name="b"/></queue>', "correct its name, or remove it", None),
        ("<defaultQueueSchedulingPolicies>fifo</defaultQueueSchedulingPolicies>", "and fair or drf in it", None),
        (
            '<queue name="a"><defaultMinSharePreemptionTimeout>5</defaultMinSharePreemptionTimeout></queue>',
            "write <minSharePreemptionTimeout>",
            '<queue name="a"><minSharePreemptionTimeout>5</minSharePreemptionTimeout></queue>',
        ),
    ],
)
def test_a_name_is_suggested_only_where_the_rm_takes_it(inside: str, advice: str, fixed: str | None) -> None:
    document = file(inside)
    found = [one for one in check_document(document, source="f.xml").findings if advice in one.hint]
    assert found, check_document(document, source="f.xml").findings
    if fixed is None:
        assert found[0].fix is None
    else:
        assert found[0].fix is not None
        assert spliced(document, found[0].fix.splices) == file(fixed)
