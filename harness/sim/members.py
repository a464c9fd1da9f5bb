"""Arrival and end of applications in a leaf that orders them by accumulated resources (tang-thesis section 5.5.1).

The entitlement of an application depends on the others, so each arrival and each end settles all of them.
"""

from __future__ import annotations

from harness.sim.kernel import kernel
from harness.sim.longterm_kernels import app_total, settle_app
from harness.sim.state import SchedulerState
from harness.sim.world import J_RUNNING, J_SUBMITTED, World


@kernel
def _settle_others(S: SchedulerState, W: World, j: int, now: int) -> float:
    """Settle the other live applications of a job's leaf; return their largest total / weight."""
    leaf, highest = W.jobs[j].queue, 0.0
    for k in range(len(W.jobs)):
        other = W.jobs[k]
        if k != j and other.queue == leaf and (other.state == J_SUBMITTED or other.state == J_RUNNING):
            settle_app(S, leaf, other.app, now)
            highest = max(highest, app_total(S, other.app, now))
    return highest


@kernel
def joins(S: SchedulerState, W: World, j: int, now: int) -> None:
    """Handle the arrival of a job's application.

    With pseudo accumulated resources, the application starts at the largest value of the others (eq. 5.10).
    """
    job = W.jobs[j]
    highest = _settle_others(S, W, j, now)
    a = S.a[job.app]
    a.omega = job.omega
    a.phi = a.omega * highest if S.xg[0].pseudo == 1 else 0.0
    S.x[job.queue].omega += a.omega


@kernel
def leaves(S: SchedulerState, W: World, j: int, now: int) -> None:
    """Handle the end of a job's application."""
    _settle_others(S, W, j, now)
    S.x[W.jobs[j].queue].omega -= W.jobs[j].omega
