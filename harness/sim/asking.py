"""An AM's requests for containers, compiled."""

from __future__ import annotations

from harness.sim import nodes
from harness.sim.calls import C_ASK, note
from harness.sim.events import E_ACT, push
from harness.sim.kernel import kernel
from harness.sim.longterm_kernels import settle
from harness.sim.state import NEED_ROOM, SchedulerState
from harness.sim.world import World


@kernel
def ask(S: SchedulerState, W: World, j: int, priority: int, count: int, mb: int, vc: int, now: int) -> bool:
    """Set the outstanding number of a job's containers at a priority; return whether the scheduler accepted the ask.

    Parameters
    ----------
    count
        The new number of outstanding containers.
    mb, vc
        Memory (MiB) and vcores of each.

    Returns
    -------
    bool
        False if an array is too small (the call is repeated later), or if the job has failed; a job whose ask the
        scheduler refuses fails.
    """
    g, job = W.g[0], W.jobs[j]
    if job.failed == 1:
        return False
    code = nodes.ask(S, job.app, priority, -1, count, mb, vc)
    if code == NEED_ROOM:
        g.need_room = 1
        return False
    if code < 0:
        job.failed = 1
        push(W, now, E_ACT, job.gen, j)
        return False
    note(W, now, C_ASK, S.a[job.app].id, priority, count, mb, vc)
    settle(S, job.queue, now)
    return True
