"""The ``decay-*`` policies in the simulator, in the scheduler and from outside."""

from __future__ import annotations

from typing import Any

import pytest

from harness.control.virtual import simulate_policy
from harness.policies.registry import make_policy


def _wave(cases: Any, policy: str, settings: dict[str, Any], mode: str) -> Any:
    """a alone for two minutes, then b with more than the cluster can hold; containers of 10 s."""
    jobs = [
        cases.mapreduce("a0", "a", 1500, seconds=10.0),
        cases.mapreduce("b0", "b", 1500, seconds=10.0, submit_s=120.0),
    ]
    made = cases.setup(jobs, policy=make_policy(policy, settings), time_limit_s=300.0, mode=mode, period_s=1.0)
    samples = simulate_policy(made).samples
    used = [samples.accumulated[:, samples.queues.index(f"root.{q}")] for q in "ab"]
    at = {float(t): i for i, t in enumerate(samples.time_s.tolist())}
    # What each got in the minute and a half after b's first two tasks, in MiB-seconds.
    return [float((u[at[240.0]] - u[at[150.0]]).sum()) for u in used]


@pytest.mark.parametrize("mode", ["inside", "outside"])
@pytest.mark.parametrize(
    ("policy", "settings"),
    [
        ("decay-htcondor", {"half_life": 600}),
        ("decay-slurm", {"half_life": 600}),
        ("decay-kueue", {"half_life": 600, "sampling": 10}),
        ("decay-kai", {"half_life": 600}),
        ("decay-kai", {"window": 300}),
    ],
)
def test_who_came_late_is_paid_back(cases: Any, policy: str, settings: dict[str, Any], mode: str) -> None:
    a, b = _wave(cases, policy, settings, mode)
    assert b > 1.2 * a


def test_a_short_memory_has_forgotten(cases: Any) -> None:
    for policy, settings in (("decay-kueue", {"half_life": 3, "sampling": 1}), ("decay-kai", {"k": 0})):
        a, b = _wave(cases, policy, settings, "inside")
        assert b == pytest.approx(a, rel=0.15), policy
