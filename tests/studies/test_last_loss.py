"""The record of last losses: who comes first, and what is compared."""

from __future__ import annotations

import pytest

from harness.model.resources import Resource
from harness.model.snapshot import QueueView, Snapshot
from harness.policies.base import CountedLedger
from studies.last_loss import First, values


def look(time_s: float) -> Snapshot:
    none = Resource(0, 0)
    names = {"root": (None, False), "root.g": ("root", False), "root.g.a": ("root.g", True), "root.b": ("root", True)}
    queues = {n: QueueView(n, parent, leaf, 1.0, none, none) for n, (parent, leaf) in names.items()}
    return Snapshot(time_s, Resource(1024, 1), queues, 15.0)


def test_a_leaf_and_those_above_it_come_first_as_soon_as_anything_is_known() -> None:
    policy = First("root.g.a")
    assert policy.plan(look(0.0), CountedLedger()).weights == {}
    weights = policy.plan(look(15.0), CountedLedger()).weights
    assert weights["root.g"] == weights["root.g.a"] == 1e6 * weights["root.b"]


def run(loss: float, last: float, **queues: float) -> dict[str, object]:
    return {"loss_integral": loss, "last_loss_s": last, "queues": queues}


def test_rules_are_compared_with_ltrf_inside_seed_by_seed_and_in_sum() -> None:
    found = values(
        {
            1: {"inside": run(10.0, 100.0, a=100.0, b=3.0), "other": run(5.0, 80.0, a=80.0, b=3.0)},
            2: {"inside": run(40.0, 300.0, a=5.0, b=300.0), "other": run(40.0, 20.0, a=5.0, b=20.0)},
        }
    )
    other = found["rules"]["other"]
    assert other["last_loss_sum_over_inside"] == pytest.approx(0.25)
    assert other["loss_integral_over_inside"] == pytest.approx(0.75)
    assert other["loss_integral_sum_over_inside"] == pytest.approx(0.9)
    assert other["queues_last_loss_s"] == {"a": [80.0, 5.0], "b": [3.0, 20.0]}
    assert found["rules"]["inside"]["last_loss_s"] == [100.0, 300.0]
