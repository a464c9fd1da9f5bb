"""What a controller owns of a Capacity Scheduler's configuration: shares as capacities, others' edits, giving back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import cast

import pytest

from harness.base.errors import InputError
from harness.control.capacity_actuator import CapacityActuator
from harness.control.values import Nonsense
from harness.model.plan import Attributes
from harness.model.resources import Resource
from harness.yarn.capacity.properties import PREFIX
from harness.yarn.capacity.queues import is_by_hand
from harness.yarn.capacity.source import Configuration, FileSource, StoreSource
from harness.yarn.files import LocalStore
from harness.yarn.rmclient import RmClient
from harness.yarn.validation import check_document

FILE = """<?xml version="1.0"?>
<!-- the administrator's -->
<configuration>
  <property><name>yarn.scheduler.capacity.root.queues</name><value>a,g</value></property>
  <property><name>yarn.scheduler.capacity.root.a.capacity</name><value>1.0w</value></property>
  <property><name>yarn.scheduler.capacity.root.g.capacity</name><value>3w</value></property>
  <property><name>yarn.scheduler.capacity.root.g.queues</name><value>x,y</value></property>
  <property><name>yarn.scheduler.capacity.root.g.x.capacity</name><value> 40 </value></property>
  <property><name>yarn.scheduler.capacity.root.g.y.capacity</name><value>60</value></property>
</configuration>
"""
ALL = {"root.a": 1.0, "root.g": 1.0, "root.g.x": 1.0, "root.g.y": 3.0}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "capacity-scheduler.xml"
    path.write_text(FILE)
    return path


@pytest.fixture
def actuator(path: Path) -> CapacityActuator:
    actuator = CapacityActuator(FileSource(LocalStore(path)))
    assert actuator.read() == []
    return actuator


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def test_entitlements_are_parts_of_the_cluster(actuator: CapacityActuator) -> None:
    assert actuator.configured_weights() == pytest.approx(
        {"root.a": 25.0, "root.g": 75.0, "root.g.x": 30.0, "root.g.y": 45.0}
    )


def test_who_has_written_nothing_follows_the_administrators_edits(actuator: CapacityActuator, path: Path) -> None:
    edit(path, "1.0w", "9w")
    assert actuator.read() == []
    assert actuator.configured_weights()["root.a"] == pytest.approx(75.0)


def test_shares_become_capacities_of_the_kind_that_was_there(actuator: CapacityActuator, path: Path) -> None:
    prepared = actuator.prepare(Attributes(ALL))
    assert dict(prepared.in_force) == {"root.a": 2.0, "root.g": 2.0, "root.g.x": 25.0, "root.g.y": 75.0}
    actuator.write(prepared)
    text = path.read_text()
    assert text == FILE.replace("1.0w", "2w").replace("3w", "2w").replace(" 40 ", "25").replace("60", "75")
    assert actuator.read() == []


def test_it_goes_back_to_the_byte(actuator: CapacityActuator, path: Path) -> None:
    actuator.write(actuator.prepare(Attributes(ALL, max_shares={"root.a": Resource(512, 1)})))
    actuator.max_shares(Resource(1024, 2))
    actuator.write(actuator.prepare(Attributes(ALL, max_shares={"root.a": Resource(512, 1)})))
    assert "maximum-capacity</name><value>50<" in path.read_text()
    actuator.write(actuator.original())
    assert path.read_text() == FILE


def test_a_plan_of_the_configured_shares_changes_nothing(actuator: CapacityActuator) -> None:
    assert not actuator.prepare(Attributes(actuator.configured_weights())).changed


def test_an_edit_that_does_not_sum_to_100_is_kept_and_filled_up_when_it_is_given_back(
    actuator: CapacityActuator, path: Path
) -> None:
    actuator.write(actuator.prepare(Attributes(ALL)))
    edit(path, "<value>25</value>", "<value>10</value>")
    edit(path, "administrator's", "operator's")
    found = actuator.read()
    assert [(f.queue, f.attribute, f.text) for f in found] == [("root.g.x", "capacity", "10")]
    assert actuator.refusals() == ("root.g: its children's capacities sum to 70; make them sum to 100",)
    actuator.write(actuator.original())
    back = FILE.replace("administrator's", "operator's").replace(" 40 ", "10").replace("<value>60<", "<value>90<")
    assert path.read_text() == back


def percentages(**capacities: str) -> str:
    row = "  <property><name>yarn.scheduler.capacity.root.{}</name><value>{}</value></property>\n"
    rows = [row.format("queues", ",".join(capacities))]
    rows += [row.format(f"{name}.capacity", capacity) for name, capacity in capacities.items()]
    return f"<configuration>\n{''.join(rows)}</configuration>\n"


def begun(path: Path, file: str, shares: Mapping[str, float]) -> CapacityActuator:
    """A controller that has written shares into this file."""
    path.write_text(file)
    actuator = CapacityActuator(FileSource(LocalStore(path)))
    actuator.read()
    actuator.write(actuator.prepare(Attributes(dict(shares))))
    return actuator


def test_a_maximum_below_his_own_capacity_cuts_that_and_makes_no_momentary_share_his(path: Path) -> None:
    """The administrator sees a steered share within the maximum that he lowers."""
    row = "  <property><name>yarn.scheduler.capacity.root.a.{}</name><value>{}</value></property>\n"
    below = {"maximum-capacity": "[memory=9000]", "queues": "x,y", "x.capacity": "[memory=4000]"}
    more = "".join(row.format(*one) for one in (below | {"y.capacity": "[memory=4192]"}).items())
    file = percentages(a="[memory=8192]", b="[memory=8192]").replace("</configuration>", more + "</configuration>")
    shares = {"root.a": 1.0, "root.b": 3.0, "root.a.x": 1.0, "root.a.y": 2.0}
    steered = begun(path, file, shares)
    edit(path, "[memory=9000]", "[memory=6000]")
    assert [(drift.queue, drift.text) for drift in steered.read()] == [
        ("root.a", "[memory=6000], its maximum-capacity"),
        ("root.a.x", "[memory=2929], its part of the parent's"),
        ("root.a.y", "[memory=3070], its part of the parent's"),
    ]
    assert steered.refusals() == ()
    steered.write(steered.prepare(Attributes(shares)))
    steered.write(steered.original())
    assert steered.present() == {"root.a": 6000, "root.a.x": 2929, "root.a.y": 3070, "root.b": 8192}
    assert not check_document(path.read_bytes(), source="f").errors


ABSOLUTE = {"a": "[memory=8192,vcores=8,gpu=1]", "b": "[memory=8192,vcores=8]"}


def test_what_no_share_moves_is_the_administrators_in_a_steered_queue_too(path: Path) -> None:
    """He changes GPUs and vcores of a queue, and leaves the memory that stands there, or does not know whose it is."""
    for share, written in ((1.0, 4096), (1.1, 4396)):
        steered = begun(path, percentages(**ABSOLUTE), {"root.a": share, "root.b": 3.0})
        edit(path, f"[memory={written},vcores=8,gpu=1]", f"[memory={written},vcores=12,gpu=4]")
        (drift,) = steered.read()
        assert drift.line() == f"capacity of root.a is [memory={written},vcores=12,gpu=4]: vcores=12, gpu=4 is kept"
        steered.write(steered.prepare(Attributes({"root.a": 3.0, "root.b": 1.0})))
        assert "[memory=12288,vcores=12,gpu=4]" in path.read_text()
        steered.write(steered.original())
        assert path.read_text() == percentages(a="[memory=8192,vcores=12,gpu=4]", b=ABSOLUTE["b"])


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        (percentages(a="50", b="50"), ">25<", ">25.0<"),
        (percentages(a="2w", b="2w"), ">1w<", ">+1.00w<"),
        (percentages(**ABSOLUTE), "[memory=4096,vcores=8,gpu=1]", "[ memory-mb=4Gi, vcores=8, gpu=1 ]"),
    ],
)
def test_the_same_share_in_another_notation_is_no_edit(path: Path, file: str, old: str, new: str) -> None:
    """A tool that formats the file anew does not make a momentary share the entitlement."""
    steered = begun(path, file, {"root.a": 1.0, "root.b": 3.0})
    edit(path, old, new)
    assert steered.read() == []
    steered.write(steered.original())
    assert path.read_text() == file


def test_his_own_share_in_another_notation_comes_back_as_he_wrote_it(actuator: CapacityActuator, path: Path) -> None:
    """The controller had given the share back in between (soak, seed 2000220)."""
    for a in (2.0, 1.0):
        actuator.write(actuator.prepare(Attributes(weights={"root.a": a, "root.g": 3.0})))
    assert path.read_text() == FILE
    edit(path, ">1.0w<", ">1.00w<")
    assert actuator.read() == []
    actuator.write(actuator.prepare(Attributes(weights={"root.a": 2.0, "root.g": 3.0})))
    assert path.read_text() != FILE
    actuator.write(actuator.original())
    assert path.read_text() == FILE.replace(">1.0w<", ">1.00w<")


@pytest.mark.parametrize(("has", "most"), [("50", "60"), ("[memory=5000]", "[memory=6000]")])
def test_a_share_above_a_queues_maximum_is_cut_to_it_and_the_file_loads(path: Path, has: str, most: str) -> None:
    """With the whole share the file would not pass the gate, and no queue would be steered."""
    row = f"  <property><name>yarn.scheduler.capacity.root.a.maximum-capacity</name><value>{most}</value></property>\n"
    file = percentages(a=has, b=has).replace("</configuration>", row + "</configuration>")
    steered = begun(path, file, {"root.a": 9.0, "root.b": 1.0})
    shares = steered.present()
    assert shares["root.a"] / shares["root.b"] == pytest.approx(60 / 40)
    assert most in path.read_text()
    assert not check_document(path.read_bytes(), source="f").errors
    steered.write(steered.original())
    assert path.read_text() == file


def test_hadoops_own_default_of_a_maximum_limits_nothing(path: Path) -> None:
    """-1 is what Hadoop takes where nothing is set."""
    row = "  <property><name>yarn.scheduler.capacity.root.a.maximum-capacity</name><value>-1</value></property>\n"
    file = percentages(a="50", b="50").replace("</configuration>", row + "</configuration>")
    path.write_text(file)
    steered = CapacityActuator(FileSource(LocalStore(path)))
    steered.read()
    steered.max_shares(Resource(1000, 10))
    steered.write(steered.prepare(Attributes({"root.a": 1.0, "root.b": 3.0}, max_shares={"root.a": Resource(500, 5)})))
    assert steered.max_shares(Resource(1000, 10)) == {"root.a": Resource(1000, 10)}
    steered.write(steered.original())
    assert path.read_text() == file


THREE = percentages(a="50", b="25.0", c=" 25 ")
MOVED = {"root.a": 43.0123, "root.b": 20.0, "root.c": 36.9877}


@pytest.mark.parametrize(
    ("theirs", "now"),
    [
        (percentages(a="30", b="25.0", c=" 25 ", d="20"), {"root.a": 30, "root.b": 25, "root.c": 25, "root.d": 20}),
        (percentages(a="60", b="40"), {"root.a": 60, "root.b": 40}),
        # In the controller's file: what he sees and leaves is his too where only that makes 100.
        (percentages(a="30", b="20", c="30", d="20"), {"root.a": 30, "root.b": 20, "root.c": 30, "root.d": 20}),
        (percentages(a="23.0123", b="20", c="36.9877", d="20"), None),
    ],
)
@pytest.mark.parametrize("restarted", [False, True])
def test_an_administrators_new_queues_are_entitlements_that_sum_to_100(
    path: Path, theirs: str, now: Mapping[str, float] | None, restarted: bool
) -> None:
    """It wrote 120, with which no ResourceManager starts, and did not heal."""
    actuator = begun(path, THREE, MOVED)
    kept = json.loads(json.dumps(actuator.document()))
    path.write_text(theirs)
    if restarted:
        actuator = actuator.reopened(kept.get)
    actuator.read()
    assert actuator.refusals() == ()
    if now is not None:
        assert actuator.configured_weights() == pytest.approx(now)
    shares = {path: 1.0 + at for at, path in enumerate(actuator.configured_weights())}
    prepared = actuator.prepare(Attributes(shares))
    assert actuator.problems_of(prepared) == ()
    actuator.write(prepared)
    assert check_document(path.read_bytes(), source="written").valid
    actuator.write(actuator.original())
    assert path.read_text() == theirs, "and are what is given back"


@pytest.mark.parametrize(
    ("theirs", "back"),
    [
        # He removes a queue and changes no capacity: what the others had becomes the whole.
        (percentages(a="43.0123", b="20"), percentages(a="66.6667", b="33.3333")),
        # He adds one: what he gives it is taken from the others in proportion.
        (percentages(a="43.0123", b="20", c="36.9877", d="20"), percentages(a="40", b="20", c="20", d="20")),
    ],
)
def test_new_queues_that_do_not_sum_to_100_stop_the_writing_and_are_filled_up_on_release(
    path: Path, theirs: str, back: str
) -> None:
    actuator = begun(path, THREE, MOVED)
    path.write_text(theirs)
    actuator.read()
    (line,) = actuator.refusals()
    assert "sum to" in line
    actuator.write(actuator.original())
    assert path.read_text() == back
    assert check_document(path.read_bytes(), source="given back").valid


def test_absolute_resources_of_siblings_are_one_unit_too(path: Path) -> None:
    file = percentages(a="[memory=4096,vcores=4]", b="[memory=4096,vcores=4]")
    actuator = begun(path, file, {"root.a": 3.0, "root.b": 1.0})
    assert "[memory=6144,vcores=4]" in path.read_text()
    theirs = percentages(a="[memory=2048,vcores=2]", b="[memory=4096,vcores=4]", d="[memory=2048,vcores=2]")
    path.write_text(theirs)
    actuator.read()
    assert actuator.configured_weights() == pytest.approx({"root.a": 25.0, "root.b": 50.0, "root.d": 25.0})
    actuator.write(actuator.original())
    assert path.read_text() == theirs


GPUS = percentages(a="[memory=8192,vcores=2,gpu=1]", b="[memory=8192,vcores=14,gpu=7]")
_CALCULATOR = (
    f"<property><name>{PREFIX}resource-calculator</name>"
    "<value>org.apache.hadoop.yarn.util.resource.DominantResourceCalculator</value></property></configuration>"
)


@pytest.mark.parametrize(
    ("file", "a", "b"),
    [
        (GPUS, "[memory=12288,vcores=2,gpu=1]", "[memory=4096,vcores=14,gpu=7]"),
        (
            GPUS.replace("</configuration>", _CALCULATOR),
            "[memory=12288,vcores=12,gpu=1]",
            "[memory=4096,vcores=4,gpu=7]",
        ),
    ],
    ids=["memory is counted", "dominant shares are counted"],
)
def test_a_debt_moves_no_guarantee_of_what_is_not_counted(path: Path, file: str, a: str, b: str) -> None:
    """Of 1 and 7 GPUs a debt of memory made 6 and 2."""
    actuator = begun(path, file, {"root.a": 3.0, "root.b": 1.0})
    assert a in path.read_text()
    assert b in path.read_text()
    actuator.write(actuator.original())
    assert path.read_text() == file


def test_capacities_of_an_older_copy_or_of_another_controller_are_nobodys_entitlement(path: Path) -> None:
    actuator = begun(path, THREE, MOVED)
    older = path.read_text()
    actuator.write(actuator.prepare(Attributes({"root.a": 51.7501, "root.b": 24.1, "root.c": 24.1499})))
    others = percentages(a="51.1234", b="24.4383", c="24.4383")
    for data in (older, others):
        path.write_text(data)
        assert not any(edit.taken for edit in actuator.read())
        assert actuator.configured_weights() == pytest.approx({"root.a": 50.0, "root.b": 25.0, "root.c": 25.0})
        actuator.write(actuator.prepare(Attributes({"root.a": 51.7501, "root.b": 24.1, "root.c": 24.1499})))
    actuator.write(actuator.original())
    assert path.read_text() == THREE


def test_an_odd_amount_of_memory_is_a_persons_where_the_siblings_sum_is_no_controllers(path: Path) -> None:
    """A controller divides the siblings' memory to the last MiB. With its sum an odd amount may be another one's."""
    file = percentages(a="[memory=8192,vcores=8]", b="[memory=8192,vcores=8]")
    actuator = begun(path, file, {"root.a": 3.0, "root.b": 1.0})
    edit(path, "[memory=12288,vcores=8]", "[memory=9999,vcores=8]")
    (drift,) = actuator.read()
    assert drift.line() == "capacity of root.a is [memory=9999,vcores=8] (taken as its entitlement)"
    actuator.write(actuator.prepare(Attributes({"root.a": 1.0, "root.b": 3.0})))
    actuator.write(actuator.original())
    assert path.read_text() == percentages(a="[memory=9999,vcores=8]", b="[memory=8192,vcores=8]")
    actuator.forget()
    actuator = begun(path, file, {"root.a": 3.0, "root.b": 1.0})
    edit(path, "[memory=12288,vcores=8]", "[memory=9999,vcores=8]")
    edit(path, "[memory=4096,vcores=8]", "[memory=6385,vcores=8]")
    found = actuator.read()
    assert not any(one.taken for one in found)
    # It cannot be told: the alarm says what became of it, and what would be taken.
    for one in found:
        assert "yours stays [memory=8192,vcores=8] as before" in one.text
        assert "write a round share, or name it in `queues`" in one.text
    assert actuator.configured_weights() == pytest.approx({"root.a": 50.0, "root.b": 50.0})


@pytest.mark.parametrize("leased", [False, True], ids=["without a lease", "with one"])
def test_another_controllers_sum_is_nobodys_entitlement_without_a_lease(path: Path, leased: bool) -> None:
    """It has other entitlements, and so writes another sum of some siblings' (soak, seed 3000296)."""
    row = "  <property><name>yarn.scheduler.capacity.root.a.{}</name><value>{}</value></property>\n"
    below = {"queues": "x,y", "x.capacity": "[memory=4096]", "y.capacity": "[memory=4096]"}
    more = "".join(row.format(*one) for one in below.items()) + "</configuration>"
    file = percentages(a="[memory=8192]", b="[memory=8192]").replace("</configuration>", more)
    actuator = begun(path, file, {"root.a": 3.0, "root.b": 1.0, "root.a.x": 2.0, "root.a.y": 1.0})
    own = actuator.configured_weights()
    actuator.leased = leased
    for name, value in {"a": 12111, "b": 4273, "a.x": 1494, "a.y": 5374}.items():
        written = actuator.managed[f"root.{name}"]["capacity"][-1]
        tag = f"root.{name}.capacity</name><value>"
        edit(path, f"{tag}{written}", f"{tag}[memory={value}]")
    assert {one.queue for one in actuator.read() if one.taken} == ({"root.a.x", "root.a.y"} if leased else set())
    assert leased or actuator.configured_weights() == own


def test_another_controllers_amounts_below_a_parent_with_fewer_are_nobodys_entitlement(path: Path) -> None:
    """What children have in all follows their parent's amount, which a controller moves too."""
    row = "  <property><name>yarn.scheduler.capacity.root.a.{}</name><value>{}</value></property>\n"
    below = {"queues": "x,y", "x.capacity": "[memory=4096]", "y.capacity": "[memory=4096]"}
    more = "".join(row.format(*one) for one in below.items()) + "</configuration>"
    file = percentages(a="[memory=8192]", b="[memory=8192]").replace("</configuration>", more)
    shares = {"root.a": 1.0, "root.b": 1.0001, "root.a.x": 1.0, "root.a.y": 1.01}
    actuator = begun(path, file, shares)
    before = actuator.configured_weights()
    for name, memory in {"a": 5557, "b": 10827, "a.x": 1111, "a.y": 4446}.items():
        written = actuator.managed[f"root.{name}"]["capacity"][-1]
        tag = f"root.{name}.capacity</name><value>"
        edit(path, f"{tag}{written}", f"{tag}[memory={memory}]")
    assert not any(one.taken for one in actuator.read())
    assert actuator.configured_weights() == before


def test_a_part_that_a_person_writes_out_is_a_persons() -> None:
    for text in ("14.2857", "33.3333", "66.6667", "16.667", "12.5", "25.0", " 40 ", "2w", "1.25w", "0.10w", "7"):
        assert is_by_hand(text), text
    for text in ("43.0123", "40.4719", "29.7367", "2.4719w", "0.123456w", "0.0001w", "0.0001"):
        assert not is_by_hand(text), text


def test_a_queue_that_leaves_and_returns_with_the_controllers_capacity_keeps_its_entitlement(
    actuator: CapacityActuator, path: Path
) -> None:
    """Taken off the list of queues, as Hadoop wants it, and put on it again with an older copy of its capacity.

    Meanwhile, the configuration was given back, and the controller begun anew.
    """
    actuator.write(actuator.prepare(Attributes(ALL)))
    edit(path, "<value>a,g</value>", "<value>g</value>")
    assert actuator.read() == []
    assert "root.a" not in actuator.configured_weights()
    actuator.write(actuator.original())
    actuator.forget()
    kept = json.loads(json.dumps(actuator.document()))
    again, spare = actuator.reopened(kept.get), actuator.reopened({}.get)
    again.read()
    spare.adopt(json.loads(json.dumps(again.document())))
    assert path.read_text() == FILE.replace("<value>a,g</value>", "<value>g</value>")
    edit(path, "a.capacity</name><value>1.0w<", "a.capacity</name><value>2w<")
    edit(path, "<value>g</value>", "<value>a,g</value>")
    for one in (again, spare):
        assert [(f.queue, f.attribute, f.text) for f in one.read()] == [("root.a", "capacity", "2w")]
        assert one.configured_weights()["root.a"] == pytest.approx(25.0), "1 of 4, not 2 of 5"
    again.write(again.original())
    assert path.read_text() == FILE


def test_a_queue_that_returns_with_another_capacity_is_the_administrators(
    actuator: CapacityActuator, path: Path
) -> None:
    actuator.write(actuator.prepare(Attributes(ALL)))
    edit(path, "<value>a,g</value>", "<value>g</value>")
    actuator.read()
    edit(path, "<value>g</value>", "<value>a,g</value>")
    edit(path, "a.capacity</name><value>2w<", "a.capacity</name><value>9w<")
    assert [found.line() for found in actuator.read()] == ["capacity of root.a is 9w (taken as its entitlement)"]
    assert actuator.configured_weights()["root.a"] == pytest.approx(75.0), "9 of 9 + 3"


@pytest.mark.parametrize(("own", "share"), [("50", "49"), ("50", "48.8123"), ("1w", "0.98w"), ("1w", "0.9763w")])
def test_a_queue_that_is_renamed_while_it_is_enforced_keeps_its_entitlement(path: Path, own: str, share: str) -> None:
    """A round capacity of a controller is under another name no person's, as little as one with four decimals."""
    two = FILE[: FILE.index("  <property><name>yarn.scheduler.capacity.root.g.queues")] + "</configuration>\n"
    two = two.replace("1.0w", own).replace("3w", own)
    path.write_text(two)
    actuator = CapacityActuator(FileSource(LocalStore(path)))
    actuator.read()
    part = float(share.rstrip("w")) * (1.0 if own == "50" else 50.0)
    actuator.write(actuator.prepare(Attributes({"root.a": 100.0 - part, "root.g": part})))
    assert f"g.capacity</name><value>{share}<" in path.read_text()
    edit(path, "a,g", "a,z")
    edit(path, "root.g.", "root.z.")
    (found,) = actuator.read()
    assert found.line().startswith(
        f"capacity of root.z is {share}, which a controller wrote for root.g; its entitlement is that one's own, {own} "
    )
    assert actuator.configured_weights() == pytest.approx({"root.a": 50.0, "root.z": 50.0})
    actuator.write(actuator.original())
    assert path.read_text() == two.replace("a,g", "a,z").replace("root.g.", "root.z.")


def test_a_capacity_is_no_entitlement_where_its_writers_words_are_lost(actuator: CapacityActuator, path: Path) -> None:
    before = actuator.configured_weights()
    edit(path, "1.0w", "9w")
    assert [(f.queue, f.attribute, f.text) for f in actuator.read(words_lost=True)] == [("root.a", "capacity", "9w")]
    assert actuator.configured_weights() == before
    actuator.write(actuator.original())
    assert path.read_text() == FILE


def test_a_limit_is_no_administrators_where_its_writers_words_are_lost(actuator: CapacityActuator, path: Path) -> None:
    actuator.max_shares(Resource(1024, 2))
    actuator.write(actuator.prepare(Attributes(ALL, max_shares={"root.a": Resource(512, 1)})))
    edit(path, "maximum-capacity</name><value>50<", "maximum-capacity</name><value>70<")
    assert [(f.attribute, f.text) for f in actuator.read(words_lost=True)] == [("maximum-capacity", "70")]
    actuator.write(actuator.original())
    assert path.read_text() == FILE


def test_a_new_controller_with_the_ledgers_documents_knows_whose_values_they_are(
    actuator: CapacityActuator, path: Path
) -> None:
    actuator.write(actuator.prepare(Attributes(ALL)))
    again = CapacityActuator(FileSource(LocalStore(path)), baseline=actuator.baseline, managed=actuator.managed)
    assert again.read() == []
    assert again.configured_weights() == pytest.approx(
        {"root.a": 25.0, "root.g": 75.0, "root.g.x": 30.0, "root.g.y": 45.0}
    )
    again.write(again.original())
    assert path.read_text() == FILE


def test_a_fair_schedulers_ledger_is_refused(path: Path) -> None:
    with pytest.raises(InputError, match="another ledger"):
        CapacityActuator(FileSource(LocalStore(path)), baseline={"root.a": {"weight": 1.0}})


def test_a_group_without_a_share_for_each_is_left_alone(actuator: CapacityActuator) -> None:
    prepared = actuator.prepare(Attributes({"root.a": 3.0, "root.g": 1.0, "root.g.x": 1.0}))
    assert set(prepared.in_force) == {"root.a", "root.g"}
    assert prepared.problems == ("the children of root.g keep their capacities: root.g.y has no share in the plan",)


def test_a_lift_by_a_minimum_share_is_a_larger_capacity(actuator: CapacityActuator) -> None:
    actuator.max_shares(Resource(10_000, 10))
    lifted = actuator.prepare(Attributes(ALL, {"root.g.x": Resource(2500, 2)}))
    assert lifted.in_force["root.g.x"] == pytest.approx(50.0), "2,500 MiB of the 5,000 that root.g has"
    assert lifted.in_force["root.a"] == 2.0


def test_what_the_configuration_does_not_give_is_said(actuator: CapacityActuator) -> None:
    prepared = actuator.prepare(Attributes(ALL, scheduling_policies={"root.a": "fair", "root": "drf"}))
    assert [problem.split(" ")[0] for problem in prepared.problems] == ["root.a", "dominant"]


def test_a_configuration_that_makes_no_sense_is_an_error_and_nothing_is_remembered(
    actuator: CapacityActuator, path: Path
) -> None:
    edit(path, "<value>60</value>", "<value>6w</value>")
    with pytest.raises(InputError, match="of one kind"):
        actuator.read()
    edit(path, "<value>6w</value>", "<value>60</value>")
    assert actuator.read() == []


def test_a_store_that_began_to_count_anew_is_read_though_its_version_is_the_same() -> None:
    """A ResourceManager with the memory store that restarts, and one change by somebody else: the version as it was."""
    first = {f"{PREFIX}root.queues": "a,b", f"{PREFIX}root.a.capacity": "1w", f"{PREFIX}root.b.capacity": "1w"}

    class Store(StoreSource):
        now = Configuration(first, 2)

        def __init__(self) -> None:
            self.name = "store"

        def read(self) -> Configuration:
            return self.now

        def write(
            self, changes: Mapping[str, str | None], before: Configuration, still: object = None
        ) -> Configuration:
            self.now = Configuration({**self.now.values, **{k: v for k, v in changes.items() if v}}, 3)
            return self.now

    store = Store()
    actuator = CapacityActuator(store)
    actuator.read()
    actuator.write(actuator.prepare(Attributes({"root.a": 3.0, "root.b": 1.0})))
    assert actuator.read() == []
    store.now = Configuration({**first, f"{PREFIX}root.a.capacity": "7w"}, 3)
    assert [(found.queue, found.text) for found in actuator.read()] == [
        ("root.a", "7w"),
        ("root.b", "what it was before the controller"),
    ]


def test_what_is_adopted_is_held_against_the_file_where_its_writer_is_gone(
    actuator: CapacityActuator, path: Path
) -> None:
    """Somebody writes a capacity and a limit after the holder's last words, the holder dies, and a spare goes on."""
    actuator.max_shares(Resource(1024, 2))
    actuator.write(actuator.prepare(Attributes(ALL, max_shares={"root.a": Resource(512, 1)})))
    said = json.dumps(actuator.document())
    edit(path, "g.capacity</name><value>2w<", "g.capacity</name><value>8w<")
    edit(path, "maximum-capacity</name><value>50<", "maximum-capacity</name><value>70<")
    theirs = path.read_text()
    spare = CapacityActuator(FileSource(LocalStore(path)))
    spare.adopt(json.loads(said))
    assert spare.read() == [], "what stands there is the administrator's, who changed it when nobody looked"
    assert spare.configured_weights()["root.a"] == pytest.approx(100.0 / 9.0), "1 of 1 + 8"
    spare.write(spare.original())
    back = theirs.replace("a.capacity</name><value>2w<", "a.capacity</name><value>1.0w<")
    assert path.read_text() == back.replace(">25<", "> 40 <").replace(">75<", ">60<")
    # While that controller lives, both find the edit and take it for an entitlement.
    beside = CapacityActuator(FileSource(LocalStore(path)))
    path.write_text(theirs)
    beside.adopt(json.loads(said), lives=True)
    assert {(f.queue, f.attribute) for f in beside.read()} == {("root.g", "capacity"), ("root.a", "maximum-capacity")}
    assert beside.configured_weights()["root.a"] == pytest.approx(100.0 / 9.0)


@pytest.mark.parametrize(
    ("text", "own"),
    [
        ("[memory=12288,vcores=12,gpu=4]", "[memory=8192,vcores=12,gpu=4]"),
        ("[ memory-mb=12Gi, vcores=8, gpu=1 ]", ABSOLUTE["a"]),
    ],
    ids=["more GPUs", "another notation"],
)
def test_a_share_in_another_text_is_no_entitlement_when_its_writer_dies(path: Path, text: str, own: str) -> None:
    """The administrator has changed what no share moves, and nobody has seen it yet."""
    actuator = begun(path, percentages(**ABSOLUTE), {"root.a": 3.0, "root.b": 1.0})
    said = json.dumps(actuator.document())
    edit(path, "[memory=12288,vcores=8,gpu=1]", text)
    spare = CapacityActuator(FileSource(LocalStore(path)))
    spare.adopt(json.loads(said))
    spare.read()
    assert spare.configured_weights() == pytest.approx({"root.a": 50.0, "root.b": 50.0})
    spare.write(spare.original())
    assert path.read_text() == percentages(a=own, b=ABSOLUTE["b"])


def test_an_older_copy_of_the_file_is_no_entitlement_when_its_writer_dies(path: Path) -> None:
    actuator = begun(path, THREE, MOVED)
    older = path.read_text()
    actuator.write(actuator.prepare(Attributes({"root.a": 51.7501, "root.b": 24.1, "root.c": 24.1499})))
    said = json.dumps(actuator.document())
    path.write_text(older)
    spare = CapacityActuator(FileSource(LocalStore(path)))
    spare.adopt(json.loads(said))
    spare.read()
    assert spare.configured_weights() == pytest.approx({"root.a": 50.0, "root.b": 25.0, "root.c": 25.0})
    spare.write(spare.original())
    assert path.read_text() == THREE


def test_a_capacity_that_is_none_in_another_controllers_words_is_nonsense(actuator: CapacityActuator) -> None:
    """It was an error of its own, for which nobody forgot those words: nothing could be given back."""
    actuator.write(actuator.prepare(Attributes(ALL)))
    said = json.loads(json.dumps(actuator.document()))
    for wrong in ("much", None, 3):
        said["baseline"]["root.a"]["capacity"] = wrong
        with pytest.raises(Nonsense, match="makes no sense"):
            actuator.adopt(said)
    assert actuator.original().changed


def test_a_queue_that_is_away_when_its_writer_dies_returns_with_its_entitlement(
    actuator: CapacityActuator, path: Path
) -> None:
    actuator.write(actuator.prepare(Attributes(ALL)))
    said = json.dumps(actuator.document())
    edit(path, "<value>a,g</value>", "<value>g</value>")
    spare = CapacityActuator(FileSource(LocalStore(path)))
    spare.adopt(json.loads(said))
    spare.read()
    edit(path, "<value>g</value>", "<value>a,g</value>")
    spare.read()
    assert spare.configured_weights()["root.a"] == pytest.approx(25.0)


@pytest.mark.parametrize("emptied", ["<configuration/>", "<configuration></configuration>\n"])
def test_a_file_that_somebody_has_emptied_is_told_and_takes_nothing_from_what_is_known(
    actuator: CapacityActuator, path: Path, emptied: str
) -> None:
    actuator.write(actuator.prepare(Attributes(ALL)))
    written = path.read_text()
    path.write_text(emptied)
    with pytest.raises(InputError, match="no queues below root"):
        actuator.read()
    path.write_text(written)
    actuator.read()
    actuator.write(actuator.original())
    assert path.read_text() == FILE


class Rest:
    def properties(self) -> dict[str, str]:
        return {}


class Rm:
    rest = Rest()


def test_a_lift_by_priority_is_no_trap_and_goes_back(path: Path) -> None:
    row = "  <property><name>yarn.scheduler.capacity.root.{}</name><value>{}</value></property>\n"
    said = FILE.replace("</configuration>", row.format("ordering-policy", "priority-utilization") + "</configuration>")
    path.write_text(said)
    actuator = CapacityActuator(FileSource(LocalStore(path)))
    actuator.read()
    actuator.max_shares(Resource(1000, 10))
    lift = Attributes(ALL, min_shares={"root.g": Resource(100, 1), "root.g.x": Resource(100, 1)})
    actuator.write(actuator.prepare(lift))
    assert "root.g.x.priority</name><value>1<" in path.read_text()
    assert actuator.read() == []
    assert "priority" not in {trap.name for trap in actuator.traps(cast(RmClient, Rm()), (3, 4))}
    # It has been served.
    actuator.write(actuator.prepare(Attributes(ALL)))
    assert "priority<" not in path.read_text()
    # The administrator's own priorities are a danger, and are theirs again at the end.
    path.write_text(path.read_text().replace("</configuration>", row.format("g.y.priority", 3) + "</configuration>"))
    actuator.read()
    assert "priority" in {trap.name for trap in actuator.traps(cast(RmClient, Rm()), (3, 4))}
    actuator.write(actuator.prepare(lift))
    assert "root.g.x.priority</name><value>4<" in path.read_text()
    actuator.write(actuator.original())
    assert path.read_text() == said.replace("</configuration>", row.format("g.y.priority", 3) + "</configuration>")


@pytest.mark.parametrize("earlier", [False, True])
def test_capacities_of_a_file_that_was_opened_while_enforced_do_not_become_entitlements(
    actuator: CapacityActuator, path: Path, earlier: bool
) -> None:
    shares = ALL | {"root.a": 1.37}
    actuator.write(actuator.prepare(Attributes(shares)))
    opened = path.read_text()
    if earlier:
        actuator.write(actuator.prepare(Attributes(ALL)))
    actuator.write(actuator.original())
    actuator.forget()
    assert path.read_text() == FILE
    documents = json.loads(json.dumps(actuator.document()))
    path.write_text(opened)
    again = CapacityActuator.restored(FileSource(LocalStore(path)), documents.get)
    found = again.read()
    assert {edit.queue for edit in found} == {"root.a", "root.g", "root.g.x", "root.g.y"}
    assert all("which a controller wrote" in edit.text for edit in found)
    assert again.configured_weights() == pytest.approx(
        {"root.a": 25.0, "root.g": 75.0, "root.g.x": 30.0, "root.g.y": 45.0}
    )
    again.write(again.original())
    assert path.read_text() == FILE


def test_what_is_newer_than_an_older_copy_of_the_ledger_is_not_taken_for_entitlements(
    actuator: CapacityActuator, path: Path
) -> None:
    actuator.write(actuator.prepare(Attributes(ALL)))
    copy = json.loads(json.dumps(actuator.document()))
    actuator.write(actuator.prepare(Attributes(ALL | {"root.a": 1.37, "root.g.x": 1.7})))
    assert actuator.generation > copy["generation"]
    again = CapacityActuator.restored(FileSource(LocalStore(path)), copy.get)
    again.hold_against_file()
    again.read()
    assert again.configured_weights()["root.a"] == pytest.approx(25.0)
    again.write(again.original())
    assert path.read_text() == FILE


def test_a_renamed_queue_has_its_models_own_limits_and_priority_back_with_the_release(tmp_path: Path) -> None:
    path = tmp_path / "capacity-scheduler.xml"
    settings = {
        "root.queues": "a,b",
        "root.ordering-policy": "priority-utilization",
        "root.a.capacity": "40",
        "root.b.capacity": "60",
    }
    rows = "\n".join(
        f"<property><name>yarn.scheduler.capacity.{name}</name><value>{value}</value></property>"
        for name, value in settings.items()
    )
    path.write_text(f"<configuration>\n{rows}\n</configuration>\n")
    own = CapacityActuator(FileSource(LocalStore(path)))
    own.read()
    own.max_shares(Resource(100_000, 100))
    limits = {"min_shares": {"root.a": Resource(1024, 1)}, "max_shares": {"root.a": Resource(50_000, 50)}}
    own.write(own.prepare(Attributes({"root.a": 30.0, "root.b": 70.0}, **limits)))  # type: ignore[arg-type]
    before = path.read_text()
    assert "root.a.maximum-capacity" in before
    assert "root.a.priority" in before
    path.write_text(before.replace("root.a.", "root.z.").replace("a,b", "z,b"))
    own.read()
    own.write(own.original())
    assert path.read_text() == f"<configuration>\n{rows}\n</configuration>\n".replace("root.a.", "root.z.").replace(
        "a,b", "z,b"
    )


def test_what_a_removed_queue_leaves_in_the_file_is_the_administrators_again(path: Path) -> None:
    """Its share stayed a controller's, and was in force when the queue was listed again after a release."""
    file = percentages(a="50", b="25", c="25.0")
    actuator = begun(path, file, {"root.a": 1.0, "root.b": 2.0, "root.c": 5.0})
    assert "62.5" in path.read_text()
    edit(path, ">a,b,c<", ">a,b<")
    edit(path, ">12.5<", ">60<")
    edit(path, ">25<", ">40<")
    actuator.read()
    after = percentages(a="60", b="40", c="25.0").replace(">a,b,c<", ">a,b<")
    assert "62.5" in path.read_text()
    # With the next write, whatever it is for, and not only by the release.
    actuator.write(actuator.prepare(Attributes({"root.a": 1.0, "root.b": 1.0})))
    assert "62.5" not in path.read_text()
    actuator.read()
    actuator.write(actuator.original())
    assert path.read_text() == after
    # Listed again, it is the administrator's queue.
    edit(path, ">60<", ">35<")
    edit(path, ">a,b<", ">a,b,c<")
    actuator.read()
    assert actuator.configured_weights() == pytest.approx({"root.a": 35.0, "root.b": 40.0, "root.c": 25.0})


def test_what_a_removed_queue_leaves_is_restored_by_a_release_in_another_process(path: Path) -> None:
    file = percentages(a="50", b="25", c="25.0")
    actuator = begun(path, file, {"root.a": 1.0, "root.b": 2.0, "root.c": 5.0})
    kept = json.loads(json.dumps(actuator.document()))
    path.write_text(path.read_text().replace(">a,b,c<", ">a,b<").replace(">12.5<", ">60<").replace(">25<", ">40<"))
    actuator = CapacityActuator.restored(FileSource(LocalStore(path)), kept.get)
    actuator.read()
    actuator.write(actuator.original())
    assert path.read_text() == percentages(a="60", b="40", c="25.0").replace(">a,b,c<", ">a,b<")


def test_a_share_that_somebody_gave_a_removed_queue_stays(path: Path) -> None:
    actuator = begun(path, percentages(a="50", b="25", c="25"), {"root.a": 1.0, "root.b": 2.0, "root.c": 5.0})
    path.write_text(percentages(a="60", b="40", c="33").replace(">a,b,c<", ">a,b<"))
    actuator.read()
    actuator.write(actuator.original())
    assert path.read_text() == percentages(a="60", b="40", c="33").replace(">a,b,c<", ">a,b<")


def test_maxima_of_an_older_copy_that_comes_after_the_first_look_are_not_the_administrators(
    actuator: CapacityActuator, path: Path
) -> None:
    """They were taken for his by the first policy that writes maxima, and a stop left them in the file."""
    cluster = Resource(100_000, 100)
    most = {"root.a": Resource(33_333, 33), "root.g": Resource(66_667, 67)}
    actuator.max_shares(cluster)
    shares = ALL | {"root.a": 1.37, "root.g.x": 1.7}
    actuator.write(actuator.prepare(Attributes(shares, max_shares=most)))
    opened = path.read_text()
    assert opened.count("maximum-capacity") > FILE.count("maximum-capacity")
    actuator.write(actuator.original())
    actuator.forget()
    assert actuator.read() == []
    path.write_text(opened)
    found = [edit for edit in actuator.read() if edit.attribute == "maximum-capacity"]
    assert {edit.queue for edit in found} == {"root.a", "root.g"}
    actuator.write(actuator.prepare(Attributes(shares, max_shares=dict.fromkeys(most, cluster))))
    actuator.write(actuator.original())
    assert path.read_text() == FILE


@pytest.mark.parametrize("group", [True, False])
def test_round_shares_that_come_back_together_are_a_controllers(path: Path, group: bool) -> None:
    """An answer that was out of date showed the administrator's own shares for a moment, and then the written ones."""
    before = percentages(a="40", b="35", c="25")
    path.write_text(before)
    actuator = CapacityActuator(FileSource(LocalStore(path)))
    actuator.read()
    actuator.write(actuator.prepare(Attributes({"root.a": 39.55, "root.b": 34.7, "root.c": 25.75})))
    written = path.read_text()
    path.write_text(before)
    assert {edit.text for edit in actuator.read()} == {"what it was before the controller"}
    if group:
        path.write_text(written)
        assert all("which a controller wrote" in edit.text for edit in actuator.read())
        assert actuator.configured_weights() == pytest.approx({"root.a": 40.0, "root.b": 35.0, "root.c": 25.0})
        actuator.write(actuator.original())
        assert path.read_text() == before
    else:
        # One of them beside others of his own: he has chosen it.
        path.write_text(percentages(a="39.55", b="30.45", c="30"))
        actuator.read()
        assert actuator.configured_weights() == pytest.approx({"root.a": 39.55, "root.b": 30.45, "root.c": 30.0})


WEIGHTS = {"a": "1w", "b": "2w", "c": "3w", "d": "4w"}


def steered_by_weights(path: Path) -> tuple[CapacityActuator, str]:
    """A controller that has written 3.7w for a, 2.5w for b and then other weights; returns its first document, too."""
    actuator = begun(path, percentages(**WEIGHTS), {"root.a": 3.7, "root.b": 2.5, "root.c": 1.9, "root.d": 1.9})
    first = path.read_text()
    actuator.write(
        actuator.prepare(Attributes({"root.a": 2.113, "root.b": 2.387, "root.c": 2.771, "root.d": 2.729})),
    )
    return actuator, first


@pytest.mark.parametrize("seen", ["while it runs", "after a release", "after its death"])
def test_a_round_share_that_a_controller_wrote_once_is_his_beside_new_ones(path: Path, seen: str) -> None:
    """His new share of one queue stayed unheard, since the controller had written the same by chance (the soak)."""
    actuator, first = steered_by_weights(path)
    once = first[first.index("root.a.capacity</name><value>") :].partition("<value>")[2].partition("<")[0]
    assert is_by_hand(once)
    assert once not in path.read_text()
    edited = percentages(a=once, b="7w", c="6w", d="4w")
    if seen == "after a release":
        actuator.write(actuator.original())
        actuator.forget()
    documents = json.loads(json.dumps(actuator.document()))
    path.write_text(edited)
    if seen != "while it runs":
        actuator = CapacityActuator.restored(FileSource(LocalStore(path)), documents.get)
    if seen == "after its death":
        actuator = CapacityActuator(FileSource(LocalStore(path)))
        actuator.adopt(documents)
    found = {edit.queue: edit for edit in actuator.read()}
    if seen != "after its death":
        assert found["root.a"].taken
    whole = float(once[:-1]) + 7.0 + 6.0 + 4.0
    assert actuator.configured_weights()["root.a"] == pytest.approx(float(once[:-1]) / whole * 100.0)
    assert actuator.configured_weights()["root.c"] == pytest.approx(6.0 / whole * 100.0)
    actuator.write(actuator.prepare(Attributes({"root.a": 2.2, "root.b": 2.3, "root.c": 2.7, "root.d": 2.8})))
    actuator.write(actuator.original())
    assert path.read_text() == edited


@pytest.mark.parametrize("edited", [False, True])
@pytest.mark.parametrize("stopped", [False, True])
def test_an_older_copy_of_round_shares_is_a_controllers_though_one_of_them_is_edited(
    path: Path, edited: bool, stopped: bool
) -> None:
    """A buffer that was opened while the file was enforced, with at most one change of the administrator's own."""
    actuator, first = steered_by_weights(path)
    if stopped:
        actuator.write(actuator.original())
        actuator.forget()
        actuator = CapacityActuator.restored(
            FileSource(LocalStore(path)), json.loads(json.dumps(actuator.document())).get
        )
    once = first[first.index("root.d.capacity</name><value>") :].partition("<value>")[2].partition("<")[0]
    new = f"root.d.capacity</name><value>{'5w' if edited else once}<"
    path.write_text(first.replace(f"root.d.capacity</name><value>{once}<", new))
    actuator.read()
    actuator.write(actuator.original())
    assert path.read_text() == percentages(**{**WEIGHTS, **({"d": "5w"} if edited else {})})


@pytest.mark.parametrize("away", [False, True])
def test_a_queue_that_comes_back_after_a_release_has_the_entitlement_that_it_had_last(path: Path, away: bool) -> None:
    """It got back the one of before the release, since a controller had written its later one once (the soak)."""
    actuator, first = steered_by_weights(path)
    once = first[first.index("root.a.capacity</name><value>") :].partition("<value>")[2].partition("<")[0]
    actuator.write(actuator.original())
    actuator.forget()
    later = {**WEIGHTS, "a": once, "b": "7w", "c": "6w"}
    path.write_text(percentages(**later))
    actuator.read()
    if away:
        # The administrator takes the queue away while a controller writes, and puts it back alone.
        actuator.write(actuator.prepare(Attributes({"root.a": 2.2, "root.b": 2.3, "root.c": 2.7, "root.d": 2.8})))
        path.write_text(percentages(**{name: share for name, share in later.items() if name != "a"}))
        actuator.read()
    else:
        # A controller that writes nothing follows each edit, and is started again.
        path.write_text(percentages(**{**later, "b": "2w", "c": "3w"}))
        actuator.read()
        actuator.forget()
    path.write_text(percentages(**{**later, "b": "2w", "c": "3w"}))
    actuator.read()
    part = float(once[:-1]) / (float(once[:-1]) + 9.0) * 100.0
    assert actuator.configured_weights()["root.a"] == pytest.approx(part)
