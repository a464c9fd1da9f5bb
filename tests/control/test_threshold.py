"""A write threshold: siblings keep what was written while their shares hardly change, and nothing else is put off."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.control.core import ControlCore
from harness.control.events import Actuated, Observed, Shown, Tick, Write
from harness.control.threshold import keep_small_changes
from harness.model.plan import Attributes, Plan
from harness.model.resources import Resource
from harness.model.snapshot import QueueView, Snapshot
from harness.policies.fair import Fair
from tests.control.driven import controlled, in_force, kinds, rm_with_load

LEAVES = ("root.a", "root.b", "root.b.x", "root.b.y")
weights = st.dictionaries(st.sampled_from(LEAVES), st.floats(0.001, 1e6), min_size=1)


def test_a_group_is_kept_whole_or_written_whole() -> None:
    before = Attributes({"root.a": 1.0, "root.b": 1.0, "root.b.x": 1.0, "root.b.y": 3.0})
    # root's children: 0.5 to 0.524, a twentieth more; below root.b: 0.25 to 0.5, twice as much.
    wanted = Attributes({"root.a": 1.1, "root.b": 1.0, "root.b.x": 1.0, "root.b.y": 1.0})
    found = keep_small_changes(wanted, before, 0.2)
    assert found.weights == {"root.a": 1.0, "root.b": 1.0, "root.b.x": 1.0, "root.b.y": 1.0}
    assert keep_small_changes(wanted, before, 0.01).weights == wanted.weights
    assert keep_small_changes(wanted, before, 1.1) == before


def test_a_change_of_just_the_threshold_is_written_and_growth_counts_as_loss_does() -> None:
    before = Attributes({"root.a": 1.0, "root.b": 1.0})
    for a, b in ((0.75, 0.25), (0.25, 0.75)):
        wanted = Attributes({"root.a": a, "root.b": b})
        assert keep_small_changes(wanted, before, 1.0) == wanted
        assert keep_small_changes(wanted, before, 1.001) == before


def test_at_0_everything_is_written() -> None:
    wanted = Attributes({"root.a": 1.0 + 1e-9, "root.b": 1.0})
    assert keep_small_changes(wanted, Attributes({"root.a": 1.0, "root.b": 1.0}), 0.0) is wanted


@pytest.mark.parametrize(
    ("wanted", "changed"),
    [
        (Attributes({"root.a": 1.01, "root.b": 1.0, "root.c": 0.001}), set()),
        (Attributes({"root.a": 1.01}), set()),
        (Attributes({"root.a": 1.01, "root.b": 1.0}, min_shares={"root.b": Resource(1024, 1)}), set()),
        (Attributes({"root.a": 1.01, "root.b": 1.0}, max_shares={"root.a": Resource(1024, 1)}), set()),
        (Attributes({"root.a": 1.01, "root.b": 1.0}, scheduling_policies={"root.a": "drf"}), set()),
        (Attributes({"root.a": 1.01, "root.b": 1.0}), {"root"}),
    ],
    ids=["a queue more", "a queue less", "a lift", "a limit", "a policy", "an entitlement"],
)
def test_what_is_no_mere_change_of_weights_is_never_put_off(wanted: Attributes, changed: set[str]) -> None:
    before = Attributes({"root.a": 1.0, "root.b": 1.0})
    assert keep_small_changes(wanted, before, 10.0, changed) == wanted


@given(weights, weights, st.floats(0.001, 10))
def test_every_share_is_within_the_threshold_of_what_is_wanted(
    new: dict[str, float], old: dict[str, float], threshold: float
) -> None:
    wanted = Attributes(new)
    found = keep_small_changes(wanted, Attributes(old), threshold)
    assert found.weights.keys() == new.keys()
    for parent in {name.rpartition(".")[0] for name in new}:
        names = [name for name in new if name.rpartition(".")[0] == parent]
        own = {name: found.weights[name] for name in names}
        assert own in ({name: new[name] for name in names}, {name: old.get(name) for name in names})
        for name in names:
            share, meant = own[name] / sum(own.values()), new[name] / sum(new[n] for n in names)
            assert max(share, meant) <= min(share, meant) * (1 + threshold) * (1 + 1e-9)


class Wanting(Fair):
    """A policy that asks for the weights that the test sets in ``wants``."""

    def __init__(self) -> None:
        super().__init__()
        self.wants = {"root.a": 1.0, "root.b": 1.0}

    def plan(self, snapshot: Snapshot, counted: object) -> Plan:
        return Plan(weights=dict(self.wants))


def seen(time_s: float, a: float = 1.0) -> Observed:
    views = {
        "root": QueueView("root", None, False, 1.0),
        "root.a": QueueView("root.a", "root", True, a),
        "root.b": QueueView("root.b", "root", True, 1.0),
    }
    return Observed(Snapshot(time_s, Resource(8192, 8), views), {})


def written(core: ControlCore, event: Observed) -> dict[str, float] | None:
    core.handle(Tick(event.snapshot.time_s))
    found = [action for action in core.handle(event) if isinstance(action, Write)]
    if not found:
        return None
    core.handle(Actuated(ok=True, now_s=event.snapshot.time_s))
    return dict(found[0].attributes.weights)


def test_the_core_writes_what_has_changed_enough_since_the_last_write() -> None:
    policy = Wanting()
    core = ControlCore(policy, period_s=5.0, read_back=True, write_threshold=0.2)
    assert written(core, seen(0.0)) == {"root.a": 1.0, "root.b": 1.0}
    # Small steps add up: they are held against what was written, not against the step before.
    steps = []
    for n in range(1, 8):
        policy.wants = {"root.a": 1.0 + 0.1 * n, "root.b": 1.0}
        steps.append(written(core, seen(5.0 * n)))
    assert [step is not None for step in steps] == [False, False, False, False, True, False, False]
    assert steps[4] == {"root.a": 1.5, "root.b": 1.0}


def test_an_edit_a_new_entitlement_and_a_repair_are_written_at_once() -> None:
    policy = Wanting()
    core = ControlCore(policy, period_s=5.0, read_back=True, write_threshold=5.0)
    assert written(core, seen(0.0)) is not None
    policy.wants = {"root.a": 1.015625, "root.b": 1.0}
    assert written(core, seen(5.0)) is None
    # The administrator's new entitlement.
    assert written(core, seen(10.0, a=1.02)) == policy.wants
    assert written(core, seen(15.0, a=1.02)) is None
    # Somebody else's edit: it is not known any more what is in force.
    core.forget_written()
    assert written(core, seen(20.0, a=1.02)) == policy.wants
    # What is in force is not what was written.
    policy.wants = {"root.a": 1.03125, "root.b": 1.0}
    core.handle(Shown(25.0, {"root.a": 7.0, "root.b": 1.0}))
    assert written(core, seen(25.0, a=1.02)) == policy.wants


@pytest.mark.parametrize("threshold", [0.0, 10.0])
def test_a_controller_with_a_threshold_releases_at_once(tmp_path: Path, threshold: float) -> None:
    rm = rm_with_load()
    before = rm.place.data
    writes = 0
    with controlled(rm, tmp_path, mode="bounded", write_threshold=threshold) as controller:
        for _ in range(12):
            report = controller.tick()
            assert kinds(report) <= {"note"}
            writes += report.wrote
            rm.start("x")
            rm.now_s += 5.0
        assert in_force(rm)["root.b"] > in_force(rm)["root.a"] or threshold
        controller.stop("release")
    assert rm.place.data == before
    assert writes <= 2 if threshold else writes > 2
