"""What a policy sees of the simulation: a snapshot is of its own instant, also of queues where nothing happened."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from harness.control import virtual
from harness.control.core import ControlCore
from harness.control.virtual import simulate_outside
from harness.model.snapshot import Figures, LateViews, Snapshot
from harness.policies import weights
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


@pytest.mark.parametrize(
    ("name", "sets"),
    [
        ("ltrf", {}),
        ("ltrf", {"resource": "vcores", "half_life": "60"}),
        ("ltrf", {"horizon_s": "40", "round": "100", "discount": "0.5"}),
        ("ltrf", {"window": "90"}),
        ("naive-hltrf", {"shares": "levels"}),
        ("hltrf", {"affinity": "0.4", "t_wait": "5"}),
        ("hltrf", {"lift": "weight", "t_wait": "2"}),
    ],
)
def test_what_is_decided_by_figures_is_what_is_decided_by_views(
    cases: Any, monkeypatch: pytest.MonkeyPatch, name: str, sets: dict[str, str]
) -> None:
    told: Counter[str] = Counter()
    ours = ControlCore.decide

    def decide(self: ControlCore, figures: Figures) -> Any:
        actions = ours(self, figures)
        told["views are asked for" if actions is None else "written" if actions else "as it was"] += 1
        return actions

    monkeypatch.setattr(ControlCore, "decide", decide)
    monkeypatch.setattr(weights, "_kernel", [])
    found = []
    for many in (10**9, 3):
        monkeypatch.setattr(virtual, "MANY_LOOKS", many)
        result = simulate_outside(cases.mixed(policy=make_policy(name, sets), mode="outside", period_s=1.0))
        # With each decision the counted resources of all leaves.
        found.append((result.decisions, result.writes, str(result.jobs["finished_s"].tolist()), result.ticks))
        assert bool(told) == (many == 3)
    assert found[0] == found[1]
    assert told["written"] > 10
    assert told["as it was"] > 3
    # As nodes come and go, and with whoever may be starved.
    assert (told["views are asked for"] > 10) == (name == "hltrf")


def test_nothing_is_told_of_a_policy_that_plans_by_itself(cases: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    class Own(type(make_policy("ltrf", {}))):  # type: ignore[misc]
        def plan(self, snapshot: Snapshot, ledger: Any) -> Any:
            return replace(super().plan(snapshot, ledger), weights=dict.fromkeys(list(snapshot.queues)[1:], 7.0))

    monkeypatch.setattr(virtual, "MANY_LOOKS", 3)
    result = simulate_outside(cases.mixed(policy=Own(), mode="outside", period_s=1.0))
    assert [set(weights.values()) for _, weights in result.writes] == [{7.0}]
