"""The scheduler's state: one NamedTuple of record arrays, and the codes that the kernels answer.

No behaviour lives here. Times are int64 milliseconds, memory is int64 MB, vcores are int64. A slot that is free has
``alive == 0`` and is chained by its ``next``-like field from a head in the globals. -1 means "none" in every index.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np

from harness.sim.arrays import Arrays, record
from harness.sim.longterm_state import XG, X
from harness.sim.state import APP_END as APP_END
from harness.sim.state import FINISHED as FINISHED
from harness.sim.state import IGNORED as IGNORED
from harness.sim.state import INVALID_ASK as INVALID_ASK
from harness.sim.state import KEYED_FLAT as KEYED_FLAT
from harness.sim.state import KEYED_LEVELS as KEYED_LEVELS
from harness.sim.state import LOG, N_FIELDS, C, R
from harness.sim.state import LOST as LOST
from harness.sim.state import MUT_HASHORDER as MUT_HASHORDER
from harness.sim.state import NEED_ROOM as NEED_ROOM
from harness.sim.state import PREEMPTED as PREEMPTED
from harness.sim.state import REJECTED as REJECTED
from harness.sim.state import RELEASED as RELEASED
from harness.sim.state import STOCK as STOCK

# Scheduling policies of a queue (Q.policy). LTRF only for leaves: applications by A.key, ascending.
FAIR, DRF, FIFO, LTRF = 0, 1, 2, 3

# Whose shares the next update makes anew (G.shares_dirty; 0: nobody's): where applications have changed, or all.
SOME_SHARES, ALL_SHARES = 1, 2

# Features that a mutation test can switch off (G.mutations, a bit mask; 0 in every real run).
MUT_WEIGHTS = 1 << 0
MUT_MIN = 1 << 1
MUT_MAX = 1 << 2
MUT_MAXAPPS = 1 << 3
MUT_AMSHARE = 1 << 4
MUT_DRF = 1 << 5
MUT_FIFO = 1 << 6
MUT_RESERVE = 1 << 7
MUT_PREEMPT = 1 << 8
MUT_ASSIGNMULTIPLE = 1 << 9
MUT_INCREMENTS = 1 << 10
MUT_SIZEWEIGHT = 1 << 11
MUT_TIES = 1 << 12
MUT_STALE = 1 << 13
MUT_USERLIMIT = 1 << 14
MUT_LAUNCH = 1 << 15
MUT_RELOAD = 1 << 17
MUT_CLEANUP = 1 << 18
MUT_MANUAL = 1 << 19
MUT_CLAMP = 1 << 20


#: Globals (one record). ``cluster_*``: sum of the nodes; ``alloc_*``: what containers hold; ``avail_*``: the root
#: queue's "available" metric, which Hadoop refreshes at certain moments only; ``free_*``: heads of the free lists;
#: ``least_*``: no container has ever been smaller; ``large_asks``: some ask has been large enough to reserve a node;
#: ``asks_head``: list of the leaves with ``asks_dirty``; ``starve_ms``: when it was last looked who starves;
#: ``n_asked``: outstanding containers of all asks; ``least_ask_*``: no ask has ever been smaller.
G = record(
    "n_queues n_nodes cluster_mb cluster_vcores alloc_mb alloc_vcores avail_mb avail_vcores min_mb min_vcores "
    "inc_mb inc_vcores conf_max_mb conf_max_vcores node_max_mb node_max_vcores node_max_known max_by_nodes "
    "reserve_mb reserve_vcores assign_multiple max_assign_dynamic max_assign size_weight preemption warn_ms "
    "starve_delay_ms launch manual_acquire cleanup_heartbeats order_mode mutations cluster_ts app_hash0 free_app "
    "free_c free_r free_p n_free_app n_free_c n_free_r n_free_p serial next_app_id node_seq req_seq n_log "
    "dirty_head demand_dirty shares_dirty n_leaves nodes_peak kill_head kill_n n_reservable reservations_allowed "
    "last_mb last_vcores last_c n_running heap_top hooks n_aside moving late_off late_cap span n_sizes n_views "
    "n_looks least_mb least_vcores large_asks asks_head starve_ms n_asked least_ask_mb least_ask_vcores "
    "period_ms:d reservable_ratio:f utilisation_threshold:f"
)

#: Queues. ``usage_*`` live; ``demand_*`` as of the last update (Hadoop's); ``pending_*`` live outstanding asks of all
#: applications; ``rank``: place of the full name among all (string order); ``n_cand``: applications in the subtree that
#: could be given something; ``key``: order in the KEYED modes; ``steady_*``/``fair_*``: shares as of the last update;
#: ``turned``: since then it has come to have running applications, or to have none; ``n_turned``: children that have.
Q = record(
    "usage_mb usage_vcores max_mb max_vcores ask_min_mb ask_min_vcores leaf:i policy:i parent:i n_reservable:i "
    "min_mb demand_mb pending_mb pending_vcores weight:f n_cand:i heap_off:i heap_cap:i heap0_n:i heap1_n:i "
    "next_sibling:i n_run:i turned:i n_turned:i sum_mb sum_vcores demand_vcores fair_mb fair_vcores min_vcores "
    "last_at_min_ms min_timeout_ms fair_timeout_ms fair_threshold:f max_am_share:f asks_dirty:i members_dirty:i "
    "preemptable:i am_preemptable:i key:d am_mb am_vcores am_min_mb am_min_vcores steady_mb steady_vcores seen_mb "
    "seen_vcores alive:i first_child:i rank:i dynamic:i max_is_pct:i n_nonrun:i run_head:i run_tail:i nr_head:i "
    "nr_tail:i raw_max_mb raw_max_vcores max_c_mb max_c_vcores max_apps pct_mb:d pct_vcores:d weight_now:d "
    "integral:d integral_ms:d"
)

#: A queue's place among its siblings (turns.py). ``up``, ``at``: whose tournament it takes part in, and where (-1:
#: none); ``off``, ``cap``: its own children's; ``there``: a bit for each view in which it does; ``size``: of its
#: smallest ask (S.sizes; -1: none that it could be given); ``tier``, ``k0``, ``k1``, ``rank``: what it is ordered by;
#: where keys move, ``amount`` at ``since_ms`` plus ``rate`` a millisecond, by ``weight``, for k0 and k1
#: (``speed``: rate by weight); ``late_at``: place among all leaves that ask; ``stock``: its children are ordered as
#: Hadoop does, whatever the mode; ``odd``, ``n_odd``: a share that is no number, children with one; ``calm``: a leaf in
#: which nobody starves until then, or until something changes (starvation.py).
SEAT = record(
    "amount:d rate:d weight:d speed:d since_ms tier:i rank:i k0:d k1:d up:i there:i off:i cap:i at:i size:i n_odd:i "
    "stock:i odd:i late_at:i calm:i calm_until_ms"
)

#: Kinds of smallest asks, and how many leaves have them. The first one stands for all that have no room here.
SIZE = record("mb vcores n")

#: Views: who takes part where asks of these kinds fit (a bit mask), and when each was wanted last.
VIEW = record("mask seen")
VIEWS, SIZES = 4, 32

#: Applications (the current attempt). ``usage``, ``pending`` live; ``demand``, ``fair`` as of the last update;
#: ``name_key``: order of the application's name; ``n``: containers assigned so far; ``cid``: container ids used up by
#: the attempt; ``key``: order in a leaf under LTRF, from ``integral`` (up to ``integral_ms``, at ``kg`` since),
#: its weight ``omega``, and as X's: ``phi``, ``ahead_*``, ``more_*``; ``tag``: the driver's own.
A = record(
    "k0:d k1:d start_ms name_key usage_mb usage_vcores demand_mb q:i heap_pos:i demand_vcores weight:f heap:i alive:i "
    "runnable:i managed:i am_running:i reservable:i n_reserved:i n_asks:i dirty:i req_head:i n_live:i live_tail:i "
    "live_cap:i fair_mb fair_vcores next_check_ms last_at_fair_ms fstarve_mb fstarve_vcores mstarve_mb mstarve_vcores "
    "pending_mb pending_vcores cid n tag preempt_mb preempt_vcores live_head:i n_req:i id serial hash user:i "
    "attempt:i req_cap:i run_prev:i run_next:i nr_prev:i nr_next:i user_prev:i user_next:i free_next:i started:i "
    "am_mb am_vcores key:d integral:d integral_ms:d omega:d kg:d phi:d ahead_a:d ahead_b:d more_mb:d more_vc:d"
)

#: Nodes.
N = record(N_FIELDS)

#: Resources preempted on a node for an application (a list per node).
P = record("app:i next:i serial mb vcores")

#: Kills to come (a ring, in order of ``t``).
K = record("t c serial")

#: Users.
U = record("n_run max_apps nr_head nr_tail")


class _Fields(NamedTuple):
    g: Annotated[np.ndarray, G, 1]
    q: Annotated[np.ndarray, Q, 1]
    a: Annotated[np.ndarray, A, 1]
    n: Annotated[np.ndarray, N, 1]
    c: Annotated[np.ndarray, C, 1]
    r: Annotated[np.ndarray, R, 1]
    p: Annotated[np.ndarray, P, 1]
    k: Annotated[np.ndarray, K, 1]
    u: Annotated[np.ndarray, U, 1]
    log: Annotated[np.ndarray, LOG, 1]
    heap: Annotated[np.ndarray, np.int64, 1]  # application slots, two segments a leaf (ready; waiting for an AM)
    order: Annotated[np.ndarray, np.int64, 1]  # queue indices, parents before their children
    leaves: Annotated[np.ndarray, np.int64, 1]  # queue indices of the leaves, in order of creation
    work: Annotated[np.ndarray, np.int64, 1]  # scratch
    x: Annotated[np.ndarray, X, 1]  # long-term figures of each queue (longterm_state.X)
    xg: Annotated[np.ndarray, XG, 1]  # and their globals (longterm_state.XG)
    seat: Annotated[np.ndarray, SEAT, 1]  # of each queue
    sizes: Annotated[np.ndarray, SIZE, 1]
    views: Annotated[np.ndarray, VIEW, 1]
    inside: Annotated[np.ndarray, np.int64, 1]  # by view and queue: its children that take part
    tree: Annotated[np.ndarray, np.int64, 1]  # tournaments by view: a parent's matches and, behind them, its children
    due: Annotated[np.ndarray, np.int64, 1]  # until when (exclusive, ms) a match and those below it are sure
    aside: Annotated[np.ndarray, np.int64, 1]  # queue indices, tried in vain by the present choice
    win: Annotated[np.ndarray, np.float64, 2]  # by queue: a ring of a sliding window's parts, and the one it leaves


class S(Arrays, _Fields):  # type: ignore[misc]
    """All of the state. Arrays are replaced by larger ones when full (``Scheduler.grow``)."""

    scheduler = "fair"
