"""Resources weighted by what their node computes (tang-thesis eq. 5.9), where the scheduler itself counts.

A container counts delta times its size, delta being its node's speed. Kept is what that is beyond the size, per
application, per leaf and for the cluster, so that nodes of speed 1 add nothing. Callers of `weigh`
settle the leaf afterwards.
"""

from __future__ import annotations

from typing import Any

from harness.sim.kernel import kernel
from harness.sim.longterm_kernels import settle_all


@kernel
def delta_of(S: Any, W: Any, node: int) -> Any:
    """Return how much one unit of a node's resources counts: its speed, where the ledger counts by speed."""
    return W.nodes[node].speed if S.xg[0].weighted == 1 else 1.0


@kernel
def weigh(S: Any, W: Any, c: int, sign: float) -> None:
    """Count what a container weighs beyond its size, for its application and its leaf.

    ``sign``: 1.0 when the container comes to its node, -1.0 when it goes.
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
def weigh_node(S: Any, W: Any, node: int, sign: float, now: int) -> None:
    """A node has joined (1.0) or left (-1.0)."""
    xg = S.xg[0]
    beyond = sign * (W.nodes[node].speed - 1.0)
    xg.more_mb += beyond * W.nodes[node].mb
    xg.more_vc += beyond * W.nodes[node].vc
    settle_all(S, now)
