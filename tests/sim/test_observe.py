"""What a policy sees of the simulation: a snapshot is of its own instant, also of queues where nothing happened."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import pytest

from harness.control.virtual import simulate_outside
from harness.model.snapshot import LateViews, Snapshot
from harness.policies.base import CountedLedger
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
    ours = Observer._views_at

    def anew(self: Observer, *args: Any) -> Any:
        self._views_of = None
        return ours(self, *args)

    monkeypatch.setattr(Observer, "_views_at", anew)
    simulate_outside(setup)
    # The later ones first: a look's views are its own whenever they are made.
    for snapshot in reversed(seen):
        assert len(dict(snapshot.queues)) == len(snapshot.queues)
    assert kept == seen
    # Otherwise nothing would be compared.
    pairs = list(itertools.pairwise(kept))
    assert any(a.queues[path] is b.queues[path] for a, b in pairs for path in a.queues)


@pytest.mark.parametrize("resource", ["memory", "vcores", "dominant"])
@pytest.mark.parametrize(("name", "more"), [("ltrf", {}), ("naive-hltrf", {}), ("hltrf", {"t_wait": "2"})])
def test_a_plan_by_a_looks_figures_is_the_plan_by_its_views(
    cases: Any, seen: list[Snapshot], name: str, more: dict[str, str], resource: str
) -> None:
    policy = make_policy(name, {"resource": resource, **more})
    simulate_outside(cases.mixed(policy=policy, mode="outside", period_s=1.0))
    found = []
    for at, snapshot in enumerate(seen):
        ledger = CountedLedger({leaf: 1000.0 * (at * k % 7) for k, leaf in enumerate(snapshot.queues)})
        found.append(policy.plan(replace(snapshot, queues=LateViews(*_parts(snapshot))), ledger))
        assert found[-1] == policy.plan(replace(snapshot, queues=dict(snapshot.queues)), ledger)
    assert any(plan.reasons for plan in found) == (name == "hltrf")


def _parts(snapshot: Snapshot) -> tuple[Any, ...]:
    """What a look's queues are made of, without the views that somebody may have made by now."""
    queues = snapshot.queues
    assert isinstance(queues, LateViews)
    return queues.shape, {name: at for at, name in enumerate(queues)}, queues.rows, lambda: dict(queues.items())


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
