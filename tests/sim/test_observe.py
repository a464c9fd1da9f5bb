"""What a policy sees of the simulation: a snapshot is of its own instant, also of queues where nothing happened."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from harness.control.virtual import simulate_outside
from harness.model.snapshot import Snapshot
from harness.policies.registry import make_policy
from harness.sim.observe import Observer


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> list[Snapshot]:
    """The snapshots of the runs of a test; a list whose first run keeps views, and whose second makes all anew."""
    taken: list[Snapshot] = []
    ours = Observer.snapshot

    def snapshot(self: Observer, *args: Any) -> Any:
        found = ours(self, *args)
        taken.append(found[0])
        return found

    monkeypatch.setattr(Observer, "snapshot", snapshot)
    return taken


@pytest.mark.parametrize("period_s", [0.2, 5.0])
def test_a_queue_that_keeps_its_view_is_seen_as_one_looked_at_anew(
    cases: Any, seen: list[Snapshot], monkeypatch: pytest.MonkeyPatch, period_s: float
) -> None:
    setup = cases.mixed(policy=make_policy("ltrf", {}), mode="outside", period_s=period_s)
    simulate_outside(setup)
    kept, seen[:] = list(seen), []
    ours = Observer.snapshot

    def anew(self: Observer, *args: Any) -> Any:
        self._viewed = [None] * len(self._viewed)
        return ours(self, *args)

    monkeypatch.setattr(Observer, "snapshot", anew)
    simulate_outside(setup)
    assert kept == seen
    # Otherwise nothing would be compared.
    pairs = list(itertools.pairwise(kept))
    assert any(a.queues[path] is b.queues[path] for a, b in pairs for path in a.queues)


def test_ends_are_those_since_the_snapshot_before(cases: Any, seen: list[Snapshot]) -> None:
    result = simulate_outside(cases.mixed(policy=make_policy("ltrf", {}), mode="outside", period_s=1.0))
    last = seen[-1].queues
    assert last["root"].ended_apps is None
    for leaf in ("root.a", "root.c"):
        ended = sum(snapshot.queues[leaf].ended_containers or 0 for snapshot in seen)
        jobs = sum(snapshot.queues[leaf].ended_apps or 0 for snapshot in seen)
        mine = [i for i, queue in enumerate(result.jobs["queue"]) if queue == leaf]
        # What ends after the last look is in none.
        assert 0.9 * sum(result.jobs["tasks"][i] for i in mine) <= ended
        assert len(mine) - 1 <= jobs <= len(mine)
