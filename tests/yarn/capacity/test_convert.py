"""An allocation file as the Capacity Scheduler's properties: nothing is dropped without a word."""

from __future__ import annotations

import json

import pytest

from harness.base.errors import InputError
from harness.model.resources import Resource
from harness.sim.capacity.conf import read_conf
from harness.yarn.capacity.convert import Conversion, convert_allocations, render_properties
from harness.yarn.capacity.properties import PREFIX, parse_configuration
from harness.yarn.fair.parse import parse_allocations
from harness.yarn.validation import check_document


def convert(inside: str, **more: object) -> Conversion:
    return convert_allocations(parse_allocations(f"<allocations>{inside}</allocations>"), **more)  # type: ignore[arg-type]


def words(done: Conversion) -> str:
    return "\n".join(note.line() for note in [*done.changes, *done.lost])


def test_nested_maxima_are_parts_of_the_parents() -> None:
    done = convert(
        '<queue name="g"><maxResources>50%</maxResources><queue name="x"><maxResources>20%</maxResources></queue>'
        '<queue name="y"><maxResources>80%</maxResources></queue></queue>'
    )
    said = done.properties
    assert said["root.g.maximum-capacity"] == "50"
    assert float(said["root.g.x.maximum-capacity"]) == pytest.approx(40)
    assert said["root.g.y.maximum-capacity"] == "100"


def test_an_absolute_maximum_needs_the_clusters_size_and_is_named_without_it() -> None:
    queue = '<queue name="a"><maxResources>2000 mb, 5 vcores</maxResources></queue>'
    assert "its maximum of 2000 MB, 5 vcores" in words(convert(queue))
    done = convert(queue, cluster=Resource(10_000, 10))
    assert float(done.properties["root.a.maximum-capacity"]) == pytest.approx(20)
    assert "vcores are not limited" in words(done)


@pytest.mark.parametrize(
    ("inside", "named"),
    [
        ('<queue name="a"><minResources>1 mb, 1 vcores</minResources></queue>', "minimum share"),
        ('<queue name="a"><minSharePreemptionTimeout>5</minSharePreemptionTimeout></queue>', "preemption time-outs"),
        ('<queue name="a"><queue name="b"/><maxChildResources>10%</maxChildResources></queue>', "<maxChildResources>"),
        ('<queue name="a"><reservation/></queue>', "<reservation/>"),
        ('<queue name="a"><weight>-2</weight></queue>', "becomes 0"),
        ('<queue name="a"><maxAMShare>0</maxAMShare></queue>', "one at a time"),
        ('<reservation-planner>x.Y</reservation-planner><queue name="a"/>', "reservation-planner"),
        (
            '<queue name="a"><maxContainerAllocation>9 mb, 1 vcores</maxContainerAllocation></queue>',
            "largest container",
        ),
        ('<queue name="a" type="parent"/>', "queues that applications make"),
    ],
)
def test_what_has_no_counterpart_or_another_effect_is_named(inside: str, named: str) -> None:
    assert named in words(convert(inside))


def test_weights_beyond_hadoops_largest_keep_their_ratios() -> None:
    said = convert(
        '<queue name="a"><weight>50000</weight></queue><queue name="b"><weight>25000</weight></queue>'
    ).properties
    assert (said["root.a.capacity"], said["root.b.capacity"]) == ("10000w", "5000w")


def test_fixed_queues_can_all_be_steered() -> None:
    inside = '<queue name="g"><queue name="x"/></queue>'
    assert convert(inside).properties["root.g.auto-queue-creation-v2.enabled"] == "true"
    fixed = convert(inside, fixed_queues=True)
    assert not any("auto-queue" in name for name in [*fixed.properties, *fixed.site])
    assert '"create": true' not in fixed.properties["mapping-rule-json"]


def test_a_name_that_would_be_another_is_refused() -> None:
    with pytest.raises(InputError, match="reads such a name as another"):
        convert('<queue name="a,b"/>')


def test_the_file_comes_back_as_written_and_the_simulator_reads_its_queues() -> None:
    done = convert('<queue name="g"><queue name="x"/><queue name="y"><weight>0.125</weight></queue></queue>')
    read = parse_configuration(render_properties(done.properties).encode(), source="x").values
    assert {name.removeprefix(PREFIX): value for name, value in read.items()} == done.properties
    plain = convert("<queue name='a'/>", fixed_queues=True).properties
    assert [queue.path for queue in read_conf(plain).queues()] == ["root", "root.a"]


@pytest.mark.parametrize(
    ("inside", "lost"),
    [
        (
            '<queue name="users" type="parent"/><queue name="etl"/><queuePlacementPolicy><rule name="specified" '
            'create="false"/><rule name="nestedUserQueue" create="false"><rule name="default" queue="users"/></rule>'
            '<rule name="default" queue="root.etl"/></queuePlacementPolicy>',
            "placement rule nestedUserQueue with its parent rule default, which the Capacity Scheduler refuses",
        ),
        (
            '<queue name="etl"><queue name="a"/></queue><queuePlacementPolicy><rule name="specified" create="false"/>'
            '<rule name="default" queue="root.etl"/></queuePlacementPolicy>',
            "placement rule default, which the Capacity Scheduler refuses: queue 'root.etl' is no leaf",
        ),
    ],
)
def test_a_rule_that_would_keep_the_rm_from_starting_is_left_out_and_named(inside: str, lost: str) -> None:
    done = convert(inside, fixed_queues=True)
    assert any(lost in note.what for note in done.lost), done.lost
    verdict = check_document(render_properties(done.properties).encode(), source="c.xml")
    assert not verdict.refused
    # The others are still there.
    assert '"specified"' in done.properties["mapping-rule-json"]


#: Users' own queues, then a default.
RULES = '<queuePlacementPolicy><rule name="user" create="false"/><rule name="default"{}/></queuePlacementPolicy>'


@pytest.mark.parametrize(
    ("inside", "rule"),
    [
        # The queue is there; it is made; it is a parent, which takes none: those that come there are rejected.
        ('<queue name="default"/>' + RULES.format(""), {"policy": "defaultQueue", "fallbackResult": "reject"}),
        (
            '<queue name="a"/>' + RULES.format(""),
            {"policy": "custom", "customPlacement": "root.default", "create": True, "fallbackResult": "reject"},
        ),
        ('<queue name="a"><queue name="b"/></queue>' + RULES.format(' queue="a"'), {"policy": "reject"}),
    ],
)
def test_a_default_rule_places_or_rejects_as_before(inside: str, rule: dict[str, object]) -> None:
    made = json.loads(convert(inside).properties["mapping-rule-json"])["rules"][-1]
    assert {key: made[key] for key in rule} == rule


def test_queues_that_are_asked_for_by_name_are_told_of() -> None:
    inside = '<queue name="a"><queue name="b"/></queue><queue name="b"/><queue name="c"><queue name="d"/></queue>'
    said = words(convert(inside))
    assert "several queues are called b" in said
    assert "d is root.c.d now, and was root.d" in said
    assert "a queue with children was rejected" in said
    # Not where nobody may ask for a queue, nor where names are paths.
    rules = '<queuePlacementPolicy><rule name="default" queue="b"/></queuePlacementPolicy>'
    assert "several queues are called" not in words(convert(inside + rules))
    assert "is root." not in words(convert('<queue name="a"/>'))


def test_a_placement_policy_without_rules_is_none() -> None:
    """Hadoop ignores it: the rules are those that hold without one."""
    inside = '<queue name="a"/>'
    assert convert(inside + "<queuePlacementPolicy> </queuePlacementPolicy>").properties == convert(inside).properties
