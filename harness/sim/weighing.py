"""Resources weighted by the speed of their node (tang-thesis eq. 5.9), inside the scheduler.

A container counts delta times its size, delta being its node's speed. The excess over the size is stored per
application, per leaf and for the cluster, so that nodes of speed 1 add nothing. Callers of `weigh` settle the leaf
afterwards.
"""

from __future__ import annotations

from harness.sim.kernel import kernel
from harness.sim.longterm_kernels import settle_all
from harness.sim.state import SchedulerState
from harness.sim.world import World


@kernel
def delta_of(S: SchedulerState, W: World, node: int) -> float:
    """Return the factor delta of a node: its speed if the ledger weights nodes by speed, else 1."""
    return W.nodes[node].speed if S.xg[0].weighted == 1 else 1.0


@kernel
def weigh(S: SchedulerState, W: World, c: int, sign: float) -> None:
    """Add a container's weighted excess, (delta - 1) times its resources, to its application and its leaf.

    ``sign``: 1.0 when the container starts, -1.0 when it ends.
    """
    run = W.runs[c]
    beyond = sign * (W.nodes[run.node].speed - 1.0)
    job = W.jobs[run.job]
    a, x = S.a[job.app], S.x[job.queue]
    a.more_mb += beyond * run.mb
    a.more_vc += beyond * run.vc
    x.more_mb += beyond * run.mb
    x.more_vc += beyond * run.vc


@kernel
def weigh_node(S: SchedulerState, W: World, node: int, sign: float, now: int) -> None:
    """Add a node's weighted excess to the cluster's. ``sign``: 1.0 if the node has joined, -1.0 if it has left."""
    xg = S.xg[0]
    beyond = sign * (W.nodes[node].speed - 1.0)
    xg.more_mb += beyond * W.nodes[node].mb
    xg.more_vc += beyond * W.nodes[node].vc
    settle_all(S, now)
