"""Days in which nothing runs cost a controller in virtual time nothing, and change no decision."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from harness.control.virtual import VirtualDriver, simulate_outside
from harness.model.jobs import Duration, JobSpec, NodeSpec, Stage
from harness.model.resources import Resource
from harness.policies.registry import make_policy
from harness.sim.setup import SimResult, SimSetup
from harness.yarn.fair.parse import parse_allocations

#: From one burst to the next.
GAP_S = 20_000.0


def jobs() -> list[JobSpec]:
    """Three bursts of two queues that contend, hours apart, at times of no grid."""
    found = []
    for burst, at_s in enumerate((3.3, GAP_S + 17.7, 2 * GAP_S + 1.9)):
        for number in range(6):
            queue = "root.a" if number % 2 or burst == 1 else "root.b"
            found.append(
                JobSpec(
                    id=f"{burst}-{number}",
                    queue=queue,
                    kind="mapreduce",
                    am=Resource(256, 1),
                    stages=(Stage("map", 20, Resource(1024, 1), Duration("constant", value_s=23.0)),),
                    submit_s=at_s + 7.1 * number,
                )
            )
    return found


def run(policy: str, settings: dict[str, Any], *, exact: bool) -> SimResult:
    setup = SimSetup(
        nodes=(NodeSpec("n1", 8192, 8), NodeSpec("n2", 8192, 8)),
        allocations=parse_allocations('<allocations><queue name="a"/><queue name="b"/></allocations>'),
        jobs=jobs(),
        policy=make_policy(policy, settings),
        mode="outside",
        period_s=5.0,
        sample_s=600.0,
        counts_phase_s=None if exact else 3.7,
        asked_s=0.0 if exact else 10.0,
        asked_phase_s=0.0 if exact else 1.3,
    )
    return simulate_outside(setup)


@pytest.mark.parametrize("exact", [True, False], ids=["exact", "as-shown"])
@pytest.mark.parametrize(
    ("policy", "settings"), [("ltrf", {}), ("ltrf", {"half_life": GAP_S}), ("ltrf", {"horizon_s": 80})]
)
def test_idle_days_change_no_decision_and_cost_no_ticks(
    monkeypatch: pytest.MonkeyPatch, policy: str, settings: dict[str, Any], exact: bool
) -> None:
    passed_over = run(policy, settings, exact=exact)
    monkeypatch.setattr(VirtualDriver, "_pass_over_idle_time", lambda self, now_ms: None)
    ticked = run(policy, settings, exact=exact)
    np.testing.assert_array_equal(passed_over.jobs["finished_s"], ticked.jobs["finished_s"])
    np.testing.assert_array_equal(passed_over.jobs["started_s"], ticked.jobs["started_s"])
    assert ticked.ticks > 2 * GAP_S / 5
    assert passed_over.ticks < 1000
