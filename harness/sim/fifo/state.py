"""The scheduler's state: one NamedTuple of record arrays. No behaviour lives here.

It has what shared kernels read (`harness.sim.state`) and little more.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np

from harness.sim.arrays import Arrays, record
from harness.sim.longterm_state import XG, X
from harness.sim.state import LOG, N_FIELDS, C, R

#: The slots of the two queues, ``root`` and ``root.default``.
ROOT, DEFAULT = 0, 1

# Features that a mutation test can switch off (G.mutations, a bit mask; 0 in every real run). Bit 16 is MUT_HASHORDER.
#: Applications are served in the order in which they asked, not in that of their ids.
MUT_IDS = 1 << 0
#: A heartbeat assigns one container at most for each ask.
MUT_ONE = 1 << 1
#: After an ask that does not fit, the application's later asks are tried.
MUT_PRIORITIES = 1 << 2
#: Asks keep the vcores that the application wanted.
MUT_VCORES = 1 << 3
MUT_LAUNCH = 1 << 4
MUT_CLEANUP = 1 << 5
MUT_MANUAL = 1 << 6
MUT_INCREMENTS = 1 << 7

#: Globals (one record). ``cluster_*``: sum of the nodes; ``alloc_*``: what containers hold; ``free_*``: heads of the
#: free lists; ``n_asked``: outstanding containers of all asks; ``least_ask_*``: no ask has ever been smaller.
#: ``head_*``: the headroom that applications were told at the last heartbeat that assigned; ``told``: how many such
#: heartbeats there were; ``n_untold``: attempts that have begun since then, and know of no headroom.
#: ``preemption`` and ``kill_n`` stay 0.
G = record(
    "n_queues n_nodes cluster_mb cluster_vcores alloc_mb alloc_vcores min_mb min_vcores conf_max_mb conf_max_vcores "
    "node_max_mb node_max_vcores node_max_known max_by_nodes launch manual_acquire cleanup_heartbeats mutations "
    "cluster_ts free_app free_c free_r n_free_app n_free_c n_free_r serial next_app_id node_seq req_seq n_log "
    "n_leaves last_mb last_vcores last_c n_running hooks n_asked least_ask_mb least_ask_vcores preemption kill_n "
    "head_mb head_vcores told n_untold"
)

#: Queues. ``ask_head``: of ``root.default``: applications with outstanding asks, in the order of their ids; ``n_run``:
#: applications; ``weight``, ``fair_mb``: without a meaning here, for samples (1 and 0).
Q = record(
    "alive:i leaf:i parent:i first_child:i next_sibling:i usage_mb usage_vcores pending_mb pending_vcores ask_head:i "
    "ask_tail:i n_run:i fair_mb nr_head:i nr_tail:i n_nonrun:i weight:f"
)

#: Applications (the current attempt). ``untold``: 1 + the number of heartbeats that had assigned when it began. The
#: fields from ``integral`` on are those of `harness.sim.longterm_kernels`.
A = record(
    "alive:i q:i user:i id attempt serial managed:i am_running:i am_mb am_vcores start_ms usage_mb usage_vcores "
    "pending_mb pending_vcores n_req:i req_head:i req_cap:i n_asks:i ask_prev:i ask_next:i live_head:i live_tail:i "
    "n_live:i live_cap:i n cid n_reserved:i started:i runnable:i nr_prev:i nr_next:i user_prev:i user_next:i "
    "free_next:i tag untold integral:d integral_ms:d omega:d kg:d phi:d ahead_a:d ahead_b:d more_mb:d more_vc:d"
)

#: Nodes.
N = record(N_FIELDS)

#: Users. They have no limits.
U = record("n_run max_apps nr_head nr_tail")


class _Fields(NamedTuple):
    g: Annotated[np.ndarray, G, 1]
    q: Annotated[np.ndarray, Q, 1]
    a: Annotated[np.ndarray, A, 1]
    n: Annotated[np.ndarray, N, 1]
    c: Annotated[np.ndarray, C, 1]
    r: Annotated[np.ndarray, R, 1]
    u: Annotated[np.ndarray, U, 1]
    log: Annotated[np.ndarray, LOG, 1]
    order: Annotated[np.ndarray, np.int64, 1]  # queue slots, parents before their children
    leaves: Annotated[np.ndarray, np.int64, 1]  # queue slots of the leaves
    work: Annotated[np.ndarray, np.int64, 1]  # scratch
    x: Annotated[np.ndarray, X, 1]  # long-term figures of each queue (longterm_state.X)
    xg: Annotated[np.ndarray, XG, 1]  # and their globals (longterm_state.XG)
    win: Annotated[np.ndarray, np.float64, 2]


class S(Arrays, _Fields):  # type: ignore[misc]
    """All of the state. Arrays are replaced by larger ones when full (``Scheduler.grow``)."""

    scheduler = "fifo"
