"""The FIFO scheduler's kernels that shared kernels call. It has no limits, reservations, updates or preemption."""

from __future__ import annotations

from harness.sim import no_ops
from harness.sim.fifo import kernels
from harness.sim.ops import SchedulerOps

OPS = SchedulerOps(
    put_ask=kernels.put_ask,
    drop_ask=kernels.drop_ask,
    change_pending=kernels.change_pending,
    asked=kernels.asked,
    normalize=kernels.normalize,
    has_none_of=kernels.has_none_of,
    attempt_scheduling=kernels.attempt,
    can_skip=kernels.can_skip,
    most_rounds=kernels.most_rounds,
    counts_vcores=no_ops.no,
    add_app=kernels.add_app,
    new_attempt=kernels.new_attempt,
    remove_attempt=kernels.remove_attempt,
    app_ended=kernels.app_ended,
    headroom=kernels.headroom,
)
