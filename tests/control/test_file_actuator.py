"""The attributes of an allocation file that a controller owns, beside administrators who edit the same file."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.base.errors import InputError
from harness.control.file_actuator import FileActuator
from harness.control.values import MOST_DEPARTED, MOST_WEIGHTS, remember_named
from harness.model.plan import WEIGHT_MAX, WEIGHT_MIN, Attributes
from harness.model.resources import Resource
from harness.yarn.fair.manager import queue_tree
from harness.yarn.fair.parse import parse_allocations
from harness.yarn.files import FileChanged
from tests.control.rm_model import MemoryPlace

FILE = b"""<?xml version="1.0"?>
<allocations>
  <!-- the site's -->
  <queue name="a"><weight>3.0</weight><maxRunningApps>7</maxRunningApps></queue>
  <queue name="b">
    <minResources>10 mb, 1 vcores</minResources>
  </queue>
  <queue name="g" type="parent"><weight>2</weight></queue>
</allocations>
"""


def actuator(data: bytes = FILE) -> tuple[FileActuator, MemoryPlace]:
    place = MemoryPlace(data)
    found = FileActuator(place)
    found.read()
    return found, place


def put(own: FileActuator, **attributes: object) -> None:
    own.write(own.prepare(Attributes(**attributes)))  # type: ignore[arg-type]


def test_the_administrators_weights_are_the_entitlements_before_and_after_the_first_write() -> None:
    own, place = actuator()
    expected = {"root.a": 3.0, "root.b": 1.0, "root.g": 2.0}
    assert own.configured_weights() == expected
    put(own, weights={"root.a": 500.0, "root.b": 250.0, "root.g": 250.0})
    assert own.configured_weights() == expected
    # A restarted controller has what the ledger kept.
    again = FileActuator(
        place, baseline=json.loads(json.dumps(own.baseline)), managed=json.loads(json.dumps(own.managed))
    )
    assert again.read() == []
    assert again.configured_weights() == expected


def test_who_has_written_nothing_follows_the_administrators_edits() -> None:
    """A shadow, or who was released by a guard: the entitlements are what the file says now (soak, seed 68)."""
    own, place = actuator()
    place.data = place.data.replace(b"<weight>3.0<", b"<weight>6.5<")
    assert own.read() == []
    assert own.configured_weights()["root.a"] == 6.5
    put(own, weights={"root.a": 500.0, "root.b": 250.0, "root.g": 250.0})
    own.write(own.original())
    own.forget()
    own.read()
    place.data = place.data.replace(b"<weight>6.5<", b"<weight>4<")
    kept = json.loads(json.dumps(own.document()))
    for one in (own, FileActuator.restored(place, kept.get)):
        assert one.read() == []
        assert one.configured_weights() == {"root.a": 4.0, "root.b": 1.0, "root.g": 2.0}


def test_only_owned_attributes_change_and_go_back_exactly() -> None:
    own, place = actuator()
    put(
        own,
        weights={"root.a": 500.0, "root.b": 250.0, "root.g": 250.0},
        min_shares={"root.a": Resource(100, 1), "root.b": Resource(200, 2)},
        max_shares={"root.a": Resource(5000, 5)},
    )
    file = parse_allocations(place.data)
    assert file.min_resources("root.b") == Resource(200, 2)
    assert file.settings["root.a"].max_running_apps == 7
    assert b"<!-- the site's -->" in place.data
    put(own, weights={"root.a": 500.0, "root.b": 250.0, "root.g": 250.0}, min_shares={"root.a": Resource(1, 1)})
    file = parse_allocations(place.data)
    assert file.min_resources("root.b") == Resource(10, 1), "no longer declared: back to the administrator's"
    assert file.settings["root.a"].max_resources is None
    own.write(own.original())
    assert parse_allocations(place.data) == parse_allocations(FILE)


def test_somebody_elses_other_settings_stay() -> None:
    own, place = actuator()
    put(own, weights={"root.a": 500.0, "root.b": 250.0, "root.g": 250.0})
    place.data = place.data.replace(b"<maxRunningApps>7<", b"<maxRunningApps>9<").replace(
        b"</allocations>", b'<queue name="new"><weight>5</weight></queue></allocations>'
    )
    assert [edit.line() for edit in own.read()] == ["weight of root.new is 5.0 (taken as its entitlement)"]
    assert own.configured_weights()["root.new"] == 5.0
    put(own, weights={"root.a": 1.0, "root.b": 2.0, "root.g": 3.0, "root.new": 4.0})
    file = parse_allocations(place.data)
    assert file.settings["root.a"].max_running_apps == 9
    assert file.weight("root.new") == 4.0


def test_a_weight_that_an_administrator_wrote_is_the_entitlement_from_then_on() -> None:
    own, place = actuator()
    put(own, weights={"root.a": 500.0, "root.b": 250.0})
    place.data = place.data.replace(b"<weight>500<", b"<weight>7.50<")
    (found,) = own.read()
    assert (found.queue, found.attribute, found.text, found.taken) == ("root.a", "weight", "7.5", True)
    assert own.configured_weights() == {"root.a": 7.5, "root.b": 1.0, "root.g": 2.0}
    assert own.read() == [], "announced once"
    put(own, weights={"root.a": 500.0, "root.b": 200.0})
    assert parse_allocations(place.data).weight("root.a") == 500.0
    own = restart(own)
    own.write(own.original())
    assert place.data == FILE.replace(b"<weight>3.0<", b"<weight>7.50<")


def test_weights_of_an_older_copy_or_of_another_controller_are_nobodys_entitlement() -> None:
    """An editor that was opened while weights were enforced saves them later; another controller writes its own."""
    own, place = actuator()
    copies = []
    for at in range(3):
        put(own, weights={"root.a": 500.0 - at, "root.b": 250.0 + at, "root.g": 250.0})
        copies.append(place.data)
    others = copies[2].replace(b"<weight>498<", b"<weight>381.75<").replace(b"<weight>252<", b"<weight>9<")
    for data in (copies[0].replace(b">7<", b">9<"), copies[1], others):
        own = restart(own)
        place.data = data
        found = own.read()
        assert {edit.queue for edit in found} == {"root.a", "root.b"}
        assert not any(edit.taken for edit in found)
        assert own.configured_weights() == {"root.a": 3.0, "root.b": 1.0, "root.g": 2.0}
        put(own, weights={"root.a": 498.0, "root.b": 252.0, "root.g": 250.0})
    # Of the older copy, one weight is changed by hand: that one counts.
    place.data = copies[0].replace(b"<weight>500<", b"<weight>4<")
    own.read()
    assert own.configured_weights() == {"root.a": 4.0, "root.b": 1.0, "root.g": 2.0}


@pytest.mark.parametrize("weights", [(635.0, 365.0, 250.0), (1000.0, 543.0, 250.0), (7.0, 381.75, 250.0)])
def test_round_weights_that_another_controller_wrote_are_no_entitlement(weights: tuple[float, float, float]) -> None:
    """Of what it gives to siblings every fourth weight is a whole number (soak, seed 55): the sum shows it."""
    own, place = actuator()
    put(own, weights={"root.a": 500.5, "root.b": 249.25, "root.g": 250.0})
    texts = [b"<weight>%g<" % weight for weight in weights]
    place.data = place.data.replace(b"<weight>500.5<", texts[0]).replace(b"<weight>249.25<", texts[1])
    found = own.read()
    assert {(edit.queue, edit.taken) for edit in found} == {("root.a", False), ("root.b", False)}
    assert own.configured_weights() == {"root.a": 3.0, "root.b": 1.0, "root.g": 2.0}


@pytest.mark.parametrize(("first", "second"), [(333, 667), (1000, 7)])
def test_with_a_lease_round_weights_that_sum_to_a_thousand_are_an_administrators(first: int, second: int) -> None:
    """Another controller's are known from the lease; people divide a thousand, too."""
    own, place = actuator()
    put(own, weights={"root.a": 500.5, "root.b": 249.25, "root.g": 250.0})
    assert own.lease("me", 30.0, lambda: 0.0) is not None
    place.data = place.data.replace(b"<weight>500.5<", b"<weight>%d<" % first)
    place.data = place.data.replace(b"<weight>249.25<", b"<weight>%d<" % second)
    assert all(edit.taken for edit in own.read())
    assert own.configured_weights() == {"root.a": float(first), "root.b": float(second), "root.g": 2.0}


def test_round_parts_of_a_thousand_are_an_administrators() -> None:
    own, place = actuator()
    put(own, weights={"root.a": 500.5, "root.b": 249.25, "root.g": 250.0})
    place.data = place.data.replace(b"<weight>500.5<", b"<weight>650<").replace(b"<weight>249.25<", b"<weight>100<")
    assert all(edit.taken for edit in own.read())
    assert own.configured_weights() == {"root.a": 650.0, "root.b": 100.0, "root.g": 2.0}


def test_a_small_weight_beside_a_controllers_is_an_administrators() -> None:
    """Those that wait have what a controller gives them, with it and without it (soak, seed 1000004)."""
    own, place = actuator()
    put(own, weights={"root.a": 969.5, "root.b": 2.625, "root.g": 30.4609375})
    place.data = place.data.replace(b"<weight>2.625<", b"<weight>0.5<")
    (edit,) = own.read()
    assert edit.taken
    assert own.configured_weights()["root.b"] == 0.5


def of_an_older_ledger(added: bytes) -> tuple[FileActuator, MemoryPlace]:
    """A controller whose ledger is older than its last write, after which somebody has added a queue."""
    own, place = actuator()
    put(own, min_shares={"root.b": Resource(1237, 2)})
    older = json.loads(json.dumps(own.document()))
    put(own, min_shares={"root.b": Resource(1313, 2)})
    place.data = place.data.replace(b"</allocations>", added + b"</allocations>")
    again = FileActuator.restored(place, older.get)
    again.hold_against_file()
    again.read()
    return again, place


def test_a_round_limit_of_a_new_queue_is_the_administrators_though_the_ledger_is_an_older_copy() -> None:
    queue = b'<queue name="n"><minResources>1000 mb, 1 vcores</minResources></queue>'
    again, place = of_an_older_ledger(queue)
    again.write(again.original())
    found = parse_allocations(place.data)
    assert found.min_resources("root.n") == Resource(1000, 1)
    assert found.min_resources("root.b") == Resource(10, 1)


def test_a_written_weight_of_1_goes_again_where_none_is_named_though_the_ledger_is_an_older_copy() -> None:
    own, place = actuator()
    put(own, weights={"root.a": 4.8125, "root.b": 0.375, "root.g": 2.8125})
    older = json.loads(json.dumps(own.document()))
    # Round ones, all three: nothing shows that a controller wrote them.
    put(own, weights={"root.a": 3.0, "root.b": 1.0, "root.g": 2.0})
    assert place.data != FILE
    again = FileActuator.restored(place, older.get)
    again.hold_against_file()
    again.read()
    again.write(again.original())
    assert place.data == FILE


def test_a_computed_share_is_asked_for_though_a_limit_of_its_queue_is_known_to_be_the_controllers() -> None:
    queue = b'<queue name="n"><weight>381.75</weight><minResources>1313 mb, 1 vcores</minResources></queue>'
    again, _ = of_an_older_ledger(queue)
    assert "weight" not in again.managed["root.n"]
    assert again.unknown_shares() == ["root.n has 381.75"]


@pytest.mark.parametrize("poison", [b"NaN", b"1e30", b"Infinity", b"-3"])
def test_a_weight_on_which_the_rm_hangs_is_nobodys_entitlement(poison: bytes) -> None:
    own, place = actuator()
    put(own, weights={"root.a": 500.0, "root.b": 250.0})
    place.data = place.data.replace(b"<weight>500<", b"<weight>" + poison + b"<")
    (found,) = own.read()
    assert not found.taken
    assert own.configured_weights() == {"root.a": 3.0, "root.b": 1.0, "root.g": 2.0}
    assert own.refusals() == ()
    put(own, weights={"root.a": 500.0, "root.b": 250.0})
    assert poison not in place.data


def test_scheduling_policies_go_back_only_where_the_administrators_own_allow_it() -> None:
    """He makes a parent fair below which he had a drf queue that the controller had made fair."""
    file = (
        b"<allocations><queue name='root'><schedulingPolicy>drf</schedulingPolicy>"
        b"<queue name='a'><schedulingPolicy>drf</schedulingPolicy></queue></queue></allocations>"
    )
    own, place = actuator(file)
    put(own, scheduling_policies={"root.a": "fair"})
    place.data = place.data.replace(b"<schedulingPolicy>drf<", b"<schedulingPolicy>fair<")
    assert [(edit.queue, edit.attribute) for edit in own.read()] == [("root.a", "scheduling_policy")]
    assert own.refusals() == ()
    own.write(own.original())
    assert queue_tree(parse_allocations(place.data)).refused == ()
    # His own mistake is his, and is named.
    place.data = file.replace(b"<schedulingPolicy>drf<", b"<schedulingPolicy>fair<", 1)
    own.forget()
    own.read()
    (line,) = own.refusals()
    assert "root.a" in line
    assert "not allowed below root" in line


def test_weights_that_others_write_where_the_controller_wrote_none_are_entitlements() -> None:
    """Twice: the text of the last one comes back byte for byte."""
    for others in ({}, {"root.b": 250.0}):  # as it stands there: nothing of root.a is written
        own, place = actuator()
        wanted = {"root.a": 3.0, "root.g": 2.0, **others}
        put(own, weights=wanted)
        for foreign in (b"123.0", b"7"):
            own = restart(own)
            place.data = re.sub(rb"<weight>[^<]*</weight><maxR", b"<weight>%b</weight><maxR" % foreign, place.data)
            own.read()
            assert own.configured_weights()["root.a"] == float(foreign)
            put(own, weights=wanted)
            assert parse_allocations(place.data).weight("root.a") == 3.0
        own.write(own.original())
        assert place.data == FILE.replace(b"3.0", b"7")


def test_the_roots_own_element_is_missed_for_as_long_as_it_is_missing() -> None:
    wrapped = FILE.replace(b"<allocations>", b'<allocations><queue name="root">').replace(
        b"</allocations>", b"</queue></allocations>"
    )
    own, place = actuator(wrapped)
    assert own.dangers() == ()
    place.data = FILE
    own.read()
    (danger,) = own.dangers()
    assert '<queue name="root">' in danger
    # It is a danger at every look, and to another process with the same ledger, which has never seen the element.
    assert (own.read(), own.dangers()) == ([], (danger,))
    again = restart(own)
    again.read()
    assert again.dangers() == (danger,)
    place.data = wrapped
    assert (own.read(), own.dangers()) == ([], ())
    assert (again.read(), again.dangers()) == ([], ())


def test_a_limit_that_somebody_else_wrote_is_what_it_goes_back_to() -> None:
    own, place = actuator()
    put(own, min_shares={"root.b": Resource(200, 2)})
    place.data = place.data.replace(b"200 mb, 2 vcores", b"77 mb, 3 vcores")
    assert [found.attribute for found in own.read()] == ["min_resources"]
    put(own)
    assert parse_allocations(place.data).min_resources("root.b") == Resource(77, 3)


def test_a_controller_killed_between_keeping_and_writing_takes_neither_value_for_anothers() -> None:
    own, place = actuator()
    put(own, weights={"root.a": 500.0})
    own.prepare(Attributes(weights={"root.a": 600.0}))
    kept = {"baseline": own.baseline, "managed": own.managed}
    for data in (place.data, place.data.replace(b"<weight>500<", b"<weight>600<")):
        again = FileActuator(MemoryPlace(data), **json.loads(json.dumps(kept)))
        assert again.read() == []


def test_who_writes_meanwhile_is_not_overwritten() -> None:
    own, place = actuator()
    prepared = own.prepare(Attributes(weights={"root.a": 500.0}))
    place.data = FILE.replace(b"7", b"8")
    with pytest.raises(FileChanged):
        own.write(prepared)
    assert place.data == FILE.replace(b"7", b"8")


@pytest.mark.parametrize(
    "broken",
    [
        b"",
        FILE[:90],
        b"<allocations><queue/></allocations>",
        b"\x00\xff" * 50,
        b"<!DOCTYPE x [<!ENTITY y 'z'>]><allocations/>",
    ],
)
def test_a_torn_or_hostile_file_is_neither_taken_nor_touched(broken: bytes) -> None:
    own, place = actuator()
    put(own, weights={"root.a": 500.0})
    prepared = own.prepare(Attributes(weights={"root.a": 600.0}))
    place.data = broken
    with pytest.raises(InputError):
        own.read()
    with pytest.raises(InputError):
        own.write(prepared)
    assert place.data == broken
    assert own.configured_weights()["root.a"] == 3.0


def test_weights_of_a_hostile_file_are_no_entitlements() -> None:
    own, _ = actuator(FILE.replace(b"3.0", b"NaN").replace(b"<weight>2<", b"<weight>1e30<"))
    assert own.configured_weights() == {"root.a": 1.0, "root.b": 1.0, "root.g": 1e6}
    put(own, weights={"root.a": 500.0})


def test_ad_hoc_queues_keep_weight_one_and_the_others_are_scaled() -> None:
    own, place = actuator()
    prepared = own.prepare(Attributes(weights={"root.a": 500.0, "root.b": 250.0, "root.bob": 250.0}))
    assert prepared.ad_hoc == ("root.bob",)
    own.write(prepared)
    file = parse_allocations(place.data)
    assert (file.weight("root.a"), file.weight("root.b")) == (2.0, 1.0)
    assert prepared.in_force == {"root.a": 2.0, "root.b": 1.0}


def test_an_ad_hoc_sibling_of_tiny_weight_leaves_the_others_their_ratios() -> None:
    """The range of weights ends before all ratios to the ad hoc queue's 1 can be had."""
    own, place = actuator()
    put(own, weights={"root.a": 500.0, "root.b": 250.0, "root.bob": 0.00002})
    file = parse_allocations(place.data)
    assert (file.weight("root.a"), file.weight("root.b")) == (WEIGHT_MAX, WEIGHT_MAX / 2)
    put(own, weights={"root.a": 0.5, "root.b": 0.25, "root.bob": 1e6})
    file = parse_allocations(place.data)
    assert file.weight("root.a") == pytest.approx(2 * WEIGHT_MIN)
    assert file.weight("root.b") == pytest.approx(WEIGHT_MIN)


def test_a_named_queue_is_the_controllers_until_the_file_without_it_is_written() -> None:
    own, place = actuator()
    wanted = {"root.a": 5.0}
    own.name_queues({"root.zoe": True}, 1.0)
    put(own, weights=wanted)
    place.fail = InputError("No space left on device")
    for now_s in (100.0, 200.0):
        own.name_queues({"root.zoe": False}, now_s)
        with pytest.raises(InputError):
            put(own, weights=wanted)
        own = restart(own)
    place.fail = None
    own.write(own.original())
    assert place.data == FILE


def with_older_copies() -> tuple[FileActuator, MemoryPlace, list[bytes]]:
    """A queue was named, had three weights, and was taken out again; the file after each of these three."""
    own, place = actuator()
    copies = []
    own.name_queues({"root.zoe": True}, 1.0)
    for at, weight in enumerate((201.1875, 199.625, 4.0)):
        put(own, weights={"root.a": 5.0 + at, "root.zoe": weight})
        copies.append(place.data)
        own.read()
    own.name_queues({"root.zoe": False}, 100.0)
    put(own, weights={"root.a": 6.0})
    assert "zoe" not in place.data.decode()
    own.read()
    return own, place, copies


@pytest.mark.parametrize("copy", [0, 1, 2])
@pytest.mark.parametrize("begun", ["goes on", "restarted", "taken over", "released"])
def test_an_older_copy_of_the_file_brings_back_a_named_queue_as_the_controllers(copy: int, begun: str) -> None:
    """Soak, seed 60125: its weight was taken for its entitlement, outweighed all, and stayed in the file."""
    own, place, copies = with_older_copies()
    if begun == "released":
        own.write(own.original())
        own.forget()
    if begun in ("restarted", "released"):
        own = restart(own)
    elif begun == "taken over":
        said = json.loads(json.dumps(own.document()))
        own = FileActuator(place)
        own.adopt(said)
    if begun == "released":
        # Nothing in the file but that queue's weight is a controller's: the others are not older than anything.
        place.data = FILE.replace(b"</allocations>", copies[copy][copies[copy].index(b'<queue name="zoe"') :])
    else:
        place.data = copies[copy]
    found = own.read()
    if begun == "released" and copy == 2:
        assert own.configured_weights()["root.zoe"] == 4.0  # as a person may have written it
        return
    assert "root.zoe" in {foreign.queue for foreign in found}
    assert own.configured_weights()["root.zoe"] == 1.0
    if begun != "released":
        own.name_queues({"root.zoe": False}, 300.0)
        put(own, weights={"root.a": 6.0})
        assert "zoe" not in place.data.decode()
    own.write(own.original())
    assert place.data.split() == FILE.split()


def test_a_queue_that_somebody_adds_is_his_though_the_controller_had_named_it() -> None:
    own, place, _ = with_older_copies()
    for weight in (b"3.0", b"201.5", b"4.0"):
        place.data = place.data.replace(
            b"</allocations>", b'<queue name="zoe"><weight>%b</weight></queue></allocations>' % weight
        )
        assert [edit.line() for edit in own.read()] == [
            f"weight of root.zoe is {float(weight)} (taken as its entitlement)"
        ]
        assert own.configured_weights()["root.zoe"] == float(weight)
        place.data = FILE.replace(b"3.0", b"6")
        own.read()


def test_the_weights_that_named_queues_had_are_bounded() -> None:
    departed: dict[str, dict[str, object]] = {}
    for number in range(30_000):
        remember_named(departed, f"root.u{number % 500}", 1.0, 1.0 + number / 7)
    assert len(departed) <= MOST_DEPARTED
    assert sum(len(kept["ours"]["weight"]) for kept in departed.values()) <= 1.1 * MOST_WEIGHTS  # type: ignore[index]
    assert departed["root.u499"]["ours"] == {
        "weight": [1.0 + (29_999 - 500 * back) / 7 for back in reversed(range(20))]
    }
    # What the administrator had, and took out, stays known.
    departed = {"root.a": {"baseline": {"weight": 3.0}, "ours": {"weight": [7.0]}, "texts": {}}}
    remember_named(departed, "root.a", 1.0, 9.5)
    assert departed["root.a"] == {"baseline": {"weight": 3.0}, "ours": {"weight": [7.0, 9.5]}, "texts": {}}


def test_limits_of_ad_hoc_queues_are_problems_in_words() -> None:
    own, _ = actuator()
    prepared = own.prepare(Attributes(weights={"root.bob": 1.0}, min_shares={"root.bob": Resource(1, 1)}))
    assert prepared.problems == ("root.bob is not in the file: its limits cannot be set",)


def test_drf_is_written_only_where_the_file_does_not_say_so() -> None:
    own, place = actuator()
    put(own, scheduling_policies={"root.a": "fair", "root.b": "fair"})
    assert place.writes == []
    prepared = own.prepare(Attributes(scheduling_policies={"root": "drf"}))
    assert "root needs the scheduling policy drf" in prepared.problems[0]
    own, place = actuator(b"<allocations><queue name='root'><queue name='a'/></queue></allocations>")
    put(own, scheduling_policies={"root": "drf", "root.a": "drf"})
    assert parse_allocations(place.data).settings["root.a"].scheduling_policy == "drf"


def test_a_scheduling_policy_stays_written_as_long_as_it_is_wanted() -> None:
    """It was given back by every second write, and written again by the next one."""
    file = b"<allocations><queue name='root'><queue name='a'/><queue name='b'/></queue></allocations>"
    own, place = actuator(file)
    policies = dict.fromkeys(("root", "root.a", "root.b"), "drf")
    for weight in (2.0, 3.0, 4.0):
        own.read()
        put(own, weights={"root.a": weight, "root.b": 1.0}, scheduling_policies=policies)
        settings_of = parse_allocations(place.data).settings
        assert {path: settings_of[path].scheduling_policy for path in policies} == policies
    # What does not fit any more goes back: the element of the root has gone, which is fair then.
    place.data = place.data.replace(b"<queue name='root'><schedulingPolicy>drf</schedulingPolicy>", b"")
    place.data = place.data.replace(b"</queue></allocations>", b"</allocations>")
    own.read()
    put(own, weights={"root.a": 5.0, "root.b": 1.0}, scheduling_policies=policies)
    assert queue_tree(parse_allocations(place.data)).refused == ()
    assert b"drf" not in place.data


def test_the_administrators_maximum_is_that_of_the_file_where_a_minimum_is_written() -> None:
    """A ResourceManager shows the larger of the two."""
    own, _ = actuator(
        FILE.replace(b"<maxRunningApps>", b"<maxResources>50 mb, 5 vcores</maxResources><maxRunningApps>")
    )
    assert own.max_shares(Resource(1000, 10)) == {}
    put(own, min_shares={"root.a": Resource(100, 7)})
    assert own.max_shares(Resource(1000, 10)) == {"root.a": Resource(50, 5)}


#: As people and tools write: every form of a queue and a value that the controller has to give back as it stood.
WRITTEN = b"""<?xml version="1.0" encoding="UTF-8"?>
<!-- the site's \xc3\xa4 -->
<allocations>
  <queue name="a"><weight>2.0</weight></queue>
  <queue name="b"/>
  <queue name='c' />
  <queue name="d"></queue>
\t<queue name="e">

  </queue>
  <queue name="f"><!-- half --><weight> 0.50<!-- of it --> </weight>
    <maxResources>50.0% memory,  50% cpu</maxResources><schedulingMode>FAIR</schedulingMode></queue>
  <pool name="g" type="parent">
    <weight><![CDATA[3.]]></weight>
    <queue name="x"><minResources>10mb,1vcores</minResources><maxRunningApps>7</maxRunningApps>
    <weight>1e0</weight></queue>
    <queue name="y"/></pool>
  <queue name="big"><weight>1e30</weight></queue><queue name="none"><weight>0</weight></queue>
  <queue name="users" type="parent"/>
</allocations>
"""
PATHS = [f"root.{name}" for name in ("a", "b", "c", "d", "e", "f", "g", "g.x", "g.y", "big", "none", "users")]
EDITS = ((b"<maxRunningApps>7<", b"<maxRunningApps>70<"), (b"the site's", b"THE SITE'S"), (b"</pool>", b" </pool>"))


def restart(own: FileActuator) -> FileActuator:
    """A controller that was killed: all that is left is what the ledger kept."""
    kept = json.loads(json.dumps(own.document()))
    again = own.reopened(kept.get)
    assert again.read() == []
    return again


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_a_file_comes_back_byte_for_byte_and_an_edited_one_with_its_edits(data: st.DataObject) -> None:
    own, place = actuator(WRITTEN)
    theirs = WRITTEN
    weights = st.dictionaries(st.sampled_from(PATHS), st.sampled_from([0.001, 0.5, 1.0, 2.0, 3.0, 500.25, 1e6]))
    shares = st.dictionaries(st.sampled_from(PATHS), st.builds(Resource, st.integers(1, 99), st.integers(1, 9)))
    for _ in range(data.draw(st.integers(1, 5))):
        match data.draw(st.sampled_from(["write", "write", "restart", "edit", "name"])):
            case "write":
                policies = data.draw(st.dictionaries(st.sampled_from(PATHS), st.sampled_from(["drf", "fair"])))
                least, most = data.draw(shares), data.draw(shares)
                put(
                    own,
                    weights=data.draw(weights),
                    min_shares=least,
                    max_shares=most,
                    scheduling_policies={path: policies[path] for path in policies if path != "root.g"},
                )
            case "restart":
                own = restart(own)
            case "name":
                own.name_queues({"root.users.bob": True, "root.zoe": True}, 1.0)
                put(own)
            case "edit":
                old, new = data.draw(st.sampled_from(EDITS))
                place.data, theirs = place.data.replace(old, new), theirs.replace(old, new)
                assert own.read() == []
    own = restart(own)
    own.write(own.original())
    assert place.data == theirs


def test_values_that_the_policy_no_longer_declares_or_wants_as_they_were_are_the_administrators_own_text() -> None:
    own, place = actuator(WRITTEN)
    put(own, weights={"root.a": 7.0, "root.f": 7.0, "root.b": 7.0})
    put(own, weights={"root.a": 2.0, "root.f": 0.5, "root.b": 7.0})
    assert place.data == WRITTEN.replace(b'name="b"/>', b'name="b"><weight>7</weight></queue>')


@pytest.mark.parametrize("text", [b"3.00", b"3", b" 3.0 ", b"<!-- as agreed -->3.0"])
def test_the_same_value_that_an_administrator_writes_in_another_way_comes_back_as_he_wrote_it(text: bytes) -> None:
    """The controller had given the value back in between, so that it stands there as his own."""
    own, place = actuator()
    for weight in (500.0, 3.0):
        put(own, weights={"root.a": weight, "root.b": 250.0, "root.g": 250.0})
    assert place.data.count(b"<weight>3.0</weight>") == 1
    place.data = place.data.replace(b"<weight>3.0</weight>", b"<weight>" + text + b"</weight>")
    assert own.read() == []
    put(own, weights={"root.a": 400.0, "root.b": 250.0, "root.g": 350.0})
    own.write(own.original())
    assert place.data == FILE.replace(b"<weight>3.0</weight>", b"<weight>" + text + b"</weight>")


def test_a_weight_that_hangs_the_scheduler_does_not_come_back() -> None:
    own, place = actuator(FILE.replace(b"3.0", b"NaN"))
    put(own, weights={"root.a": 5.0})
    own.write(own.original())
    assert place.data == FILE.replace(b"3.0", b"1")


def test_given_back_the_next_begin_takes_what_the_administrator_wrote_meanwhile() -> None:
    own, place = actuator()
    put(own, weights={"root.a": 5.0})
    own.write(own.original())
    own.forget()
    place.data = FILE.replace(b"3.0", b"4.0")
    own.read()
    assert own.configured_weights()["root.a"] == 4.0


def test_a_queue_that_was_away_while_the_file_was_given_back_returns_with_its_entitlement() -> None:
    own, place = actuator()
    put(own, weights={"root.a": 500.0, "root.b": 250.0, "root.g": 250.0})
    whole = place.data
    a = whole[whole.index(b'  <queue name="a">') : whole.index(b'  <queue name="b">')]
    assert b"500" in a
    place.data = whole.replace(a, b"")
    own.read()
    own.write(own.original())
    own.forget()
    own = restart(own)
    own.read()
    place.data = place.data.replace(b'  <queue name="b">', a + b'  <queue name="b">')
    assert [(one.queue, one.attribute) for one in own.read()] == [("root.a", "weight")], "a weight of then, not of now"
    assert restart(own).configured_weights() == {"root.a": 3.0, "root.b": 1.0, "root.g": 2.0}


def test_a_queue_that_is_away_when_its_writer_dies_returns_with_its_entitlement() -> None:
    """Commented out after the holder's last words; a spare that goes on from these reads the file without it."""
    own, place = actuator()
    put(own, weights={"root.a": 500.0, "root.b": 250.0, "root.g": 250.0})
    said, whole = json.dumps(own.document()), place.data
    place.data = whole[: whole.index(b'  <queue name="a">')] + whole[whole.index(b'  <queue name="b">') :]
    spare = FileActuator(place)
    spare.adopt(json.loads(said))
    spare.read()
    place.data = whole
    spare.read()
    assert spare.configured_weights() == {"root.a": 3.0, "root.b": 1.0, "root.g": 2.0}
    spare.write(spare.original())
    assert place.data == FILE


def test_a_file_of_before_that_is_saved_after_the_release_gives_no_entitlements_to_who_has_read_it_since() -> None:
    """Somebody opened it while it was enforced; the next controller has looked, and written nothing yet (the soak)."""
    own, place = actuator()
    put(own, weights={"root.a": 500.125, "root.b": 0.25})
    opened = place.data
    put(own, weights={"root.a": 3.3, "root.b": 0.7})
    own.write(own.original())
    own.forget()
    own = restart(own)
    own.read()
    place.data = opened
    assert own.read()
    assert own.configured_weights() == {"root.a": 3.0, "root.b": 1.0, "root.g": 2.0}
    own.write(own.original())
    assert place.data == FILE


@pytest.mark.parametrize("moved", [b'name="A"', b'name="z"'])
def test_a_queue_that_is_renamed_in_the_enforced_file_keeps_its_entitlement(moved: bytes) -> None:
    """Its momentary weight stands there under a new name: that is known to be the controller's."""
    own, place = actuator()
    put(own, weights={"root.a": 517.25, "root.b": 241.125, "root.g": 241.625})
    place.data = place.data.replace(b'name="a"', moved)
    path = "root." + moved[6:-1].decode()
    (edit,) = own.read()
    assert edit.line() == (
        f"weight of {path} is 517.25, which a controller wrote for root.a; its entitlement is that one's own, 3.0 (to "
        "change it, write a round share, or name it in `queues`)"
    )
    assert own.configured_weights() == {path: 3.0, "root.b": 1.0, "root.g": 2.0}
    put(own, weights={path: 400.0, "root.b": 300.0, "root.g": 300.0})
    own.write(own.original())
    assert place.data == FILE.replace(b'name="a"', moved)


def test_a_queue_that_is_copied_in_the_enforced_file_has_the_entitlement_of_its_model() -> None:
    own, place = actuator()
    put(own, weights={"root.a": 517.25, "root.b": 241.125, "root.g": 241.625})
    place.data = place.data.replace(
        b'  <queue name="b">', b'  <queue name="c"><weight>517.25</weight></queue>\n  <queue name="b">'
    )
    own.read()
    assert own.configured_weights() == {"root.a": 3.0, "root.b": 1.0, "root.c": 3.0, "root.g": 2.0}
    own.write(own.original())
    assert b'<queue name="c"><weight>3.0</weight></queue>' in place.data.replace(b">3<", b">3.0<")


def test_a_round_weight_of_a_removed_queue_is_not_the_entitlement_of_its_new_name() -> None:
    """Equal queues have round weights from the first write on, and a renamed one would have starved the others."""
    own, place = actuator()
    put(own, weights={"root.a": 500.0, "root.b": 250.0, "root.g": 250.0})
    place.data = place.data.replace(b'name="a"', b'name="z"')
    (edit,) = own.read()
    assert edit.line() == (
        "weight of root.z is 500.0, which a controller wrote for root.a; its entitlement is that one's own, 3.0 (to "
        "change it, write another share, or name it in `queues`)"
    )
    assert own.configured_weights() == {"root.b": 1.0, "root.g": 2.0, "root.z": 3.0}
    own.write(own.original())
    assert place.data == FILE.replace(b'name="a"', b'name="z"')


def test_a_new_queue_beside_managed_ones_is_reported_with_the_weight_that_is_taken() -> None:
    """A round weight is the administrator's while the queue for which a controller wrote it is still there."""
    own, place = actuator()
    put(own, weights={"root.a": 500.0, "root.b": 250.0, "root.g": 250.0})
    more = b'<queue name="c"><weight>500</weight></queue><queue name="d"><weight>4</weight></queue><queue name="e"/>'
    place.data = place.data.replace(b"</allocations>", more + b"</allocations>")
    assert [edit.line() for edit in own.read()] == [
        "weight of root.c is 500.0, as a controller wrote for root.a (taken as its entitlement)",
        "weight of root.d is 4.0 (taken as its entitlement)",
    ]
    assert own.configured_weights()["root.c"] == 500.0


@pytest.mark.parametrize("a", [517.25, 500.0])
def test_a_queue_that_is_renamed_in_an_older_copy_of_the_enforced_file_keeps_its_entitlement(a: float) -> None:
    """The editor was opened a few periods before it saves: the weight is one of those written earlier."""
    own, place = actuator()
    put(own, weights={"root.a": a, "root.b": 241.125, "root.g": 1000 - a - 241.125})
    opened = place.data
    put(own, weights={"root.a": 401.75, "root.b": 301.125, "root.g": 297.125})
    place.data = opened.replace(b'name="a"', b'name="z"')
    assert any(edit.queue == "root.z" for edit in own.read())
    assert own.configured_weights() == {"root.b": 1.0, "root.g": 2.0, "root.z": 3.0}
    own.write(own.original())
    assert place.data == FILE.replace(b'name="a"', b'name="z"')


@pytest.mark.parametrize("name", [b"z", b"a"])
@pytest.mark.parametrize(("a", "older"), [(517.25, False), (500.0, False), (517.25, True)])
def test_a_queue_that_is_cut_and_pasted_in_two_saves_keeps_its_entitlement(a: float, older: bool, name: bytes) -> None:
    own, place = actuator()
    put(own, weights={"root.a": a, "root.b": 241.125, "root.g": 1000 - a - 241.125})
    opened = place.data
    if older:
        put(own, weights={"root.a": 401.75, "root.b": 301.125, "root.g": 297.125})
    start = opened.index(b'  <queue name="a"')
    place.data = opened[:start] + opened[opened.index(b'  <queue name="b"') :]
    own.read()
    put(own, weights={"root.b": 402.125, "root.g": 597.875})
    place.data = opened.replace(b'name="a"', b'name="' + name + b'"')
    own.read()
    path = f"root.{name.decode()}"
    assert own.configured_weights() == {path: 3.0, "root.b": 1.0, "root.g": 2.0}
    own.write(own.original())
    assert place.data == FILE.replace(b'name="a"', b'name="' + name + b'"')


def test_a_round_weight_of_earlier_that_is_pasted_in_a_second_save_is_taken_and_reported() -> None:
    """It may be the administrator's: the queue was removed before, and had another weight then."""
    own, place = actuator()
    put(own, weights={"root.a": 500.0, "root.b": 241.125, "root.g": 258.875})
    opened = place.data
    put(own, weights={"root.a": 401.75, "root.b": 301.125, "root.g": 297.125})
    start = opened.index(b'  <queue name="a"')
    place.data = opened[:start] + opened[opened.index(b'  <queue name="b"') :]
    own.read()
    place.data = opened.replace(b'name="a"', b'name="z"')
    assert "weight of root.z is 500.0 (taken as its entitlement)" in [edit.line() for edit in own.read()]
    assert own.configured_weights() == {"root.b": 1.0, "root.g": 2.0, "root.z": 500.0}


def test_a_queue_has_given_its_entitlement_to_one_new_name() -> None:
    """A round weight of a later queue is not that of a queue which was renamed before."""
    own, place = actuator()
    put(own, weights={"root.a": 500.0, "root.b": 250.0, "root.g": 250.0})
    place.data = place.data.replace(b'name="a"', b'name="z"')
    own.read()
    put(own, weights={"root.b": 400.0, "root.g": 400.0, "root.z": 200.0})
    place.data = place.data.replace(b"</allocations>", b'<queue name="c"><weight>500</weight></queue></allocations>')
    (edit,) = own.read()
    assert edit.taken
    assert own.configured_weights() == {"root.b": 1.0, "root.c": 500.0, "root.g": 2.0, "root.z": 3.0}


@pytest.mark.parametrize("names", [(b"y", b"z"), (b"z", b"y")])
def test_queues_of_the_same_weight_are_renamed_in_the_order_of_the_file_and_that_is_said(
    names: tuple[bytes, bytes],
) -> None:
    own, place = actuator()
    put(own, weights={"root.a": 333.25, "root.b": 333.25, "root.g": 333.5})
    first, second = (f"root.{name.decode()}" for name in names)
    place.data = place.data.replace(b'name="a"', b'name="%s"' % names[0]).replace(b'name="b"', b'name="%s"' % names[1])
    edits = {edit.queue: edit.line() for edit in own.read()}
    assert own.configured_weights() == {first: 3.0, second: 1.0, "root.g": 2.0}
    assert "wrote for root.a;" in edits[first]
    assert "could as well be that of root.b (unset): the order of the queues has decided, so check it" in edits[first]
    assert "could as well be that of root.a (3.0)" in edits[second]
    own.write(own.original())
    assert place.data == FILE.replace(b'name="a"', b'name="%s"' % names[0]).replace(
        b'name="b"', b'name="%s"' % names[1]
    )


def test_a_weight_of_a_new_queue_that_is_a_removed_ones_entitlement_stays_as_it_was_written() -> None:
    """The controller had written b's own weight, 1, which the file does not name; c's was no renamed b's."""
    own, place = actuator()
    put(own, weights={"root.a": 3.0, "root.b": 1.0, "root.g": 2.0})
    start = place.data.index(b'  <queue name="b"')
    rest = place.data[place.data.index(b'<queue name="b"') :]
    end = start + 2 + rest.index(b"<queue", 1)
    theirs = place.data[:start] + b'  <queue name="c"><weight>1</weight></queue>\n  ' + place.data[end:]
    place.data = theirs
    assert [edit.line() for edit in own.read()] == ["weight of root.c is 1.0 (taken as its entitlement)"]
    put(own, weights={"root.a": 300.0, "root.c": 100.5, "root.g": 200.0})
    own.write(own.original())
    assert b'<queue name="c"><weight>1</weight></queue>' in place.data


def test_both_parts_of_a_queue_that_is_split_have_its_entitlement() -> None:
    own, place = actuator()
    put(own, weights={"root.a": 500.0, "root.b": 250.0, "root.g": 250.0})
    place.data = place.data.replace(
        b'<queue name="a">', b'<queue name="a2"><weight>500</weight></queue><queue name="a1">'
    )
    assert len(own.read()) == 2
    assert own.configured_weights() == {"root.a1": 3.0, "root.a2": 3.0, "root.b": 1.0, "root.g": 2.0}


def test_a_weight_like_a_removed_queues_is_the_administrators_after_a_release() -> None:
    own, place = actuator()
    put(own, weights={"root.a": 500.0, "root.b": 250.0, "root.g": 250.0})
    start, end = place.data.index(b'  <queue name="a"'), place.data.index(b'  <queue name="b"')
    place.data = place.data[:start] + place.data[end:]
    own.read()
    own.write(own.original())
    own.forget()
    place.data = place.data.replace(b"</allocations>", b'<queue name="c"><weight>500</weight></queue></allocations>')
    assert own.read() == []
    assert own.configured_weights() == {"root.b": 1.0, "root.c": 500.0, "root.g": 2.0}


def test_a_renamed_queue_has_the_limits_of_its_model_and_the_release_takes_the_controllers_away() -> None:
    own, place = actuator()
    put(
        own,
        weights={"root.a": 517.25, "root.b": 241.125, "root.g": 241.625},
        min_shares={"root.a": Resource(1111, 1)},
        max_shares={"root.a": Resource(5333, 5)},
    )
    assert b"1111 mb" in place.data
    assert b"5333 mb" in place.data
    place.data = place.data.replace(b'name="a"', b'name="z"')
    own.read()
    own.write(own.original())
    assert place.data == FILE.replace(b'name="a"', b'name="z"')


GROUP = b"""<allocations>
  <queue name="a"><weight>3</weight></queue>
  <queue name="g"><weight>2</weight><queue name="x"><weight>3</weight></queue><queue name="y"><weight>1</weight></queue>
  </queue>
</allocations>
"""
SHARES = {"root.a": 600.0, "root.g": 400.0, "root.g.x": 500.0, "root.g.y": 500.0}


def test_a_group_that_is_cut_and_pasted_under_another_name_keeps_the_entitlements_below_it() -> None:
    own, place = actuator(GROUP)
    put(own, weights=SHARES)
    full = place.data
    begin, end = full.index(b'  <queue name="g"'), full.index(b"</allocations>")
    place.data = full[:begin] + full[end:]
    own.read()
    put(own, weights={"root.a": 1000.0})
    place.data = full.replace(b'name="g"', b'name="h"')
    own.read()
    assert own.configured_weights() == {"root.a": 3.0, "root.h": 2.0, "root.h.x": 3.0, "root.h.y": 1.0}


def test_a_group_that_is_copied_is_reported_with_all_that_is_below_it() -> None:
    own, place = actuator(GROUP)
    put(own, weights=SHARES)
    begin, end = place.data.index(b'  <queue name="g"'), place.data.index(b"</allocations>")
    group = place.data[begin:end]
    place.data = place.data[:end] + group.replace(b'name="g"', b'name="h"') + place.data[end:]
    assert {edit.line() for edit in own.read()} == {
        "weight of root.h is 400.0, as a controller wrote for root.g (taken as its entitlement)",
        "weight of root.h.x is 500.0, as a controller wrote for root.g.x (taken as its entitlement)",
        "weight of root.h.y is 500.0, as a controller wrote for root.g.y (taken as its entitlement)",
    }


def test_a_file_with_an_element_for_the_root_after_a_release_is_no_copied_group() -> None:
    """Every queue is new to a controller that starts: one whose weight was once written for itself is not its copy."""
    own, place = actuator(b"<allocations><queue name='a'><weight>2</weight></queue><queue name='b'/></allocations>")
    put(own, weights={"root.a": 2.0, "root.b": 1.0}, min_shares={"root.a": Resource(1024, 1)})
    own.write(own.original())
    own.forget()
    inner = place.data.removeprefix(b"<allocations>").removesuffix(b"</allocations>")
    place.data = b"<allocations><queue name='root'>" + inner + b"</queue></allocations>"
    assert own.read() == []
    assert own.configured_weights() == {"root": 1.0, "root.a": 2.0, "root.b": 1.0}


def test_an_older_round_weight_of_a_removed_queue_is_not_that_of_an_unrelated_new_one() -> None:
    own, place = actuator(
        GROUP.replace(b'<queue name="g">', b'<queue name="b"><weight>1</weight></queue>\n  <queue name="g">')
    )
    for weight in (100.0, 250.125):
        put(own, weights={**SHARES, "root.a": 600.0 - weight, "root.b": weight})
    place.data = place.data.replace(b'<queue name="b"><weight>250.125</weight></queue>\n', b"")
    place.data = place.data.replace(
        b'<queue name="y">', b'<queue name="new"><weight>100</weight></queue><queue name="y">'
    )
    assert "weight of root.g.new is 100.0 (taken as its entitlement)" in {edit.line() for edit in own.read()}
    assert own.configured_weights()["root.g.new"] == 100.0


@pytest.mark.parametrize("attribute", ["min_shares", "max_shares"])
@pytest.mark.parametrize("restarted", [False, True])
def test_limits_of_an_older_copy_that_comes_after_the_first_look_are_not_the_administrators(
    attribute: str, restarted: bool
) -> None:
    """Limits of an older copy were taken for the administrator's with the next write, and a stop left them there.

    This was seed 2000624 of the soak.
    """
    own, place = actuator()
    limits = {"root.a": Resource(24576, 24), "root.b": Resource(24576, 24)}
    # Not of b: a weight of 1 that the copy names where there was none may be the administrator's.
    weights = {"root.a": 3.0, "root.g": 2.0}
    put(own, weights=weights, **{attribute: limits})
    opened = place.data
    own.write(own.original())
    own.forget()
    assert place.data == FILE
    assert own.read() == []
    if restarted:
        documents = json.loads(json.dumps(own.document()))
        own = FileActuator.restored(place, documents.get)
    place.data = opened
    found = own.read()
    assert {edit.queue for edit in found} == {"root.a", "root.b"}
    assert all("which a controller wrote; yours stays" in edit.text for edit in found)
    put(own, weights=weights, **{attribute: {**limits, "root.a": Resource(30000, 24)}})
    own.write(own.original())
    assert place.data == FILE


def test_a_round_limit_of_one_queue_is_the_administrators_though_a_controller_wrote_the_same_once() -> None:
    own, place = actuator()
    weights = own.configured_weights()
    put(own, weights=weights, min_shares={"root.a": Resource(24576, 24), "root.b": Resource(1537, 3)})
    own.write(own.original())
    own.forget()
    assert own.read() == []
    his = FILE.replace(b"<weight>3.0<", b"<minResources>24576 mb, 24 vcores</minResources><weight>3.0<")
    place.data = his
    assert own.read() == []
    put(own, weights=weights, min_shares={"root.a": Resource(100, 1), "root.b": Resource(100, 1)})
    own.write(own.original())
    assert place.data == his
    # What no person writes is a controller's, of one queue as of several.
    own.forget()
    own.read()
    place.data = his.replace(b"10 mb, 1 vcores", b"1537 mb, 3 vcores")
    (found,) = own.read()
    assert found.queue == "root.b"
    own.write(own.original())
    assert place.data == his


@pytest.mark.parametrize("weight", ["735", "734.625"])
def test_a_renamed_queue_keeps_its_entitlement_where_a_new_one_has_its_old_name(weight: str) -> None:
    """A round momentary weight was taken for the renamed queue's entitlement: 735 beside weights of 1 and 7."""
    file = (
        b'<allocations><queue name="a"><weight> 3 </weight></queue><queue name="b"><weight>1</weight></queue>'
        b'<queue name="c"><weight>2</weight></queue></allocations>'
    )
    own, place = actuator(file)
    put(own, weights={"root.a": float(weight), "root.b": 65.5, "root.c": 200.125})
    place.data = place.data.replace(b'name="a"', b'name="z"').replace(
        b"</allocations>", b'<queue name="a"><weight>7</weight></queue></allocations>'
    )
    found = {edit.queue: edit for edit in own.read()}
    assert "which a controller wrote for root.a; its entitlement is that one's own, 3" in found["root.z"].text
    assert found["root.a"].taken
    assert own.configured_weights() == {"root.a": 7.0, "root.b": 1.0, "root.c": 2.0, "root.z": 3.0}
    own.write(own.original())
    assert place.data == file.replace(b'name="a"', b'name="z"').replace(
        b"</allocations>", b'<queue name="a"><weight>7</weight></queue></allocations>'
    )


def test_a_new_queue_of_an_administrators_own_copy_has_the_weight_that_it_says() -> None:
    """He changes all weights of the group: that a controller wrote the new queue's once for another one is chance."""
    file = b'<allocations><queue name="a"><weight>3</weight></queue><queue name="b"/></allocations>'
    own, place = actuator(file)
    put(own, weights={"root.a": 500.0, "root.b": 250.0})
    place.data = (
        b'<allocations><queue name="a"><weight>4</weight></queue><queue name="b"><weight>2</weight></queue>'
        b'<queue name="c"><weight>500</weight></queue></allocations>'
    )
    own.read()
    assert own.configured_weights() == {"root.a": 4.0, "root.b": 2.0, "root.c": 500.0}


def test_limits_that_are_newer_than_a_copy_of_the_ledger_from_after_a_release_are_the_controllers() -> None:
    """The copy had no limits of the controller, and the next decision took those of the file for the administrator's.

    This was seed 1700063 of the soak.
    """
    own, place = actuator()
    weights = {"root.a": 3.0, "root.g": 2.0}
    put(own, weights=weights, min_shares={"root.a": Resource(24577, 24), "root.b": Resource(24579, 24)})
    own.write(own.original())
    own.forget()
    assert own.read() == []
    copy = json.loads(json.dumps(own.document()))
    put(own, weights=weights, min_shares={"root.a": Resource(18021, 8), "root.b": Resource(36864, 34)})
    again = FileActuator.restored(place, copy.get)
    again.hold_against_file()
    again.read()
    put(again, weights=weights, min_shares={"root.a": Resource(12345, 8), "root.b": Resource(1024, 1)})
    again.write(again.original())
    assert place.data == FILE
