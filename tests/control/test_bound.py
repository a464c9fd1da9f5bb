"""Weights within a ratio of the entitlements, whatever the policy wants."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.control.bound import bounded
from harness.model.plan import WEIGHT_MAX, WEIGHT_MIN
from harness.model.resources import Resource
from harness.model.snapshot import QueueView, Snapshot

SIZE = Resource(1024, 1)


def cluster(*leaves: tuple[str, float, bool]) -> Snapshot:
    """Leaves below root: name, entitlement, whether it waits for more."""
    queues = {"root": QueueView("root", None, False)}
    for name, weight, waits in leaves:
        path = f"root.{name}"
        queues[path] = QueueView(path, "root", True, weight, demand=SIZE if waits else Resource())
    return Snapshot(0.0, Resource(10_240, 10), queues)


@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.floats(WEIGHT_MIN, WEIGHT_MAX), st.sampled_from([0.5, 1.0, 2.0, 7.0]), st.booleans(), st.booleans()
        ),
        min_size=1,
        max_size=6,
    ),
    st.sampled_from([1.0, 1.5, 2.0, 16.0, 1000.0]),
)
def test_siblings_and_entitlements_stay_within_the_ratio(
    queues: list[tuple[float, float, bool, bool]], max_ratio: float
) -> None:
    names = [f"q{at}" for at in range(len(queues))]
    snapshot = cluster(*((name, own, waits) for name, (_, own, waits, _) in zip(names, queues, strict=True)))
    wanted = {f"root.{name}": weight for name, (weight, _, _, named) in zip(names, queues, strict=True) if named}
    found = bounded(wanted, snapshot, max_ratio)
    assert found.keys() == wanted.keys()
    ratios = [(found.get(f"root.{name}", own)) / own for name, (_, own, _, _) in zip(names, queues, strict=True)]
    assert max(ratios) / min(ratios) <= max_ratio * (1 + 1e-3)
    assert all(1 / max_ratio <= ratio * (1 + 1e-3) and ratio <= max_ratio * (1 + 1e-3) for ratio in ratios)
    for one in wanted:
        for other in wanted:
            own = {name: snapshot.queues[name].weight for name in (one, other)}
            if wanted[one] / own[one] > wanted[other] / own[other]:
                assert found[one] / own[one] >= found[other] / own[other] * (1 - 1e-3), "the order stays"


def test_equal_ratios_are_the_entitlements_themselves() -> None:
    snapshot = cluster(("a", 2.0, True), ("b", 1.0, True))
    assert bounded({"root.a": 666.75, "root.b": 333.375}, snapshot, 2.0) == {"root.a": 2.0, "root.b": 1.0}


def test_an_idle_queue_above_all_does_not_level_those_that_wait() -> None:
    snapshot = cluster(("idle", 1.0, False), ("owed", 1.0, True), ("debtor", 1.0, True))
    found = bounded({"root.idle": 1e5, "root.owed": 999.0, "root.debtor": 1e-3}, snapshot, 4.0)
    assert found["root.owed"] / found["root.debtor"] == pytest.approx(4.0, rel=1e-3)
    assert found["root.idle"] == found["root.owed"]


def test_a_ratio_below_one_is_none() -> None:
    with pytest.raises(ValueError, match="max_ratio"):
        bounded({}, cluster(("a", 1.0, True)), 0.5)
