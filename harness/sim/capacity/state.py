"""The scheduler's state: one NamedTuple of record arrays, and the codes that the kernels answer.

No behaviour lives here. Times are int64 milliseconds, memory is int64 MB, vcores are int64; capacities, weights and
ratios are float32, as in Hadoop. -1 means "none" in every index. Containers, nodes, asks and the log have the fields
of ``harness.sim.state``.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np

from harness.sim.arrays import Arrays, record
from harness.sim.longterm_state import XG, X
from harness.sim.state import LOG, N_FIELDS, C, R
from harness.sim.state import MUT_HASHORDER as MUT_HASHORDER
from harness.sim.state import NEED_ROOM as NEED_ROOM
from harness.sim.state import PREEMPTED as PREEMPTED
from harness.sim.state import REJECTED as REJECTED
from harness.sim.state import VICTIM as VICTIM

#: A kind of log record beside the Fair Scheduler's: an application may get containers from now on.
ACTIVATED = 7

# States of a queue (Q.state).
RUNNING, DRAINING, STOPPED = 0, 1, 2

# What a queue answers when it is asked for an assignment.
NOTHING, PROPOSED, LIMIT = 0, 1, 2

# Features that a mutation test can switch off (G.mutations, a bit mask; 0 in every real run). Bit 16 is MUT_HASHORDER.
MUT_CAPACITIES = 1 << 0
MUT_MAXCAP = 1 << 1
MUT_USERLIMIT = 1 << 2
MUT_AMLIMIT = 1 << 3
MUT_MAXAPPS = 1 << 4
MUT_FAIR = 1 << 5
MUT_SIZEWEIGHT = 1 << 6
MUT_QUEUEPRIORITY = 1 << 7
MUT_APPPRIORITY = 1 << 8
MUT_DRF = 1 << 9
MUT_RESERVE = 1 << 10
MUT_LOOK = 1 << 11
MUT_STARVE = 1 << 12
MUT_MULTI = 1 << 13
MUT_INCREMENTS = 1 << 14
MUT_RECONFIGURE = 1 << 15
MUT_CHILDORDER = 1 << 17
MUT_STATE = 1 << 18
MUT_LAUNCH = 1 << 19
MUT_CLEANUP = 1 << 20
MUT_MANUAL = 1 << 21
MUT_BLOCKED = 1 << 22
MUT_LAG = 1 << 23
MUT_STALE = 1 << 24
MUT_USERSUM = 1 << 25
MUT_PARALLEL = 1 << 26
MUT_LARGEST = 1 << 27
MUT_PREEMPT = 1 << 28
MUT_NATURAL = 1 << 29
MUT_PERROUND = 1 << 30
MUT_IGNORED = 1 << 31
MUT_PREEMPTABLE = 1 << 32
MUT_AMLAST = 1 << 33

#: A round of preemption has ended with an exception.
FAILED = -5
# What preemption does to a container or a reservation (LOG.why of a record of the kind VICTIM).
MARKED, KILLED, RESERVATION_KILLED = 1, 2, 3

#: Globals (one record). ``cluster_*``: sum of the nodes as the scheduler has it, ``label_*`` as the partition has it
#: (less by a lost node while its containers are being dropped). ``p_*``: the proposal that is to be committed:
#: application, ask, reserve or allocate, the node whose reservation is given up; ``h_*``: a leaf's headroom;
#: ``limited``: a number of parallel applications is limited, or was; ``n_asked``, ``least_ask_*``: as in
#: ``harness.sim.state``. Of preemption: ``preemption``: whether the policy runs by itself, next at ``round_ms``
#: (``kill_n`` is 1 then), ``armed_ms`` later again, and after that each ``interval_ms``; ``wait_ms`` to
#: ``conservative``, ``ignored`` to ``per_round``: its settings (`preempt_conf.PreemptionConf`); ``forgotten_ms``: what
#: was marked before is forgotten; ``round``: the round's number; ``allowed_*``: what it may still take from the
#: cluster; ``killed_*``: what it has killed so far, by how long the containers had been held; ``nodes_peak``: the most
#: nodes at once.
G = record(
    "n_queues n_leaves system_apps queue_apps n_nodes cluster_mb cluster_vcores label_mb label_vcores min_mb "
    "min_vcores conf_max_mb conf_max_vcores node_max_mb node_max_vcores node_max_known max_by_nodes drf look "
    "off_max multi con_max max_priority mutations launch manual_acquire cleanup_heartbeats cluster_ts free_app "
    "free_c free_r free_h n_free_app n_free_c n_free_r n_free_h serial next_app_id node_seq req_seq n_log n_running "
    "p_app p_ask p_reserve p_give h_mb h_vcores alloc_mb alloc_vcores last_c last_mb last_vcores hooks kill_n "
    "preemption n_held_back limited n_asked least_ask_mb least_ask_vcores interval_ms armed_ms round_ms wait_ms "
    "balance_wait_ms observe balance by_reservations with_reserved conservative forgotten_ms round allowed_mb "
    "allowed_vcores nodes_peak killed_n killed_mb_ms killed_vcore_ms ignored:d natural:d per_round:f"
)

#: Queues. ``conf_*``/``confmax_*``: configured absolute capacities; ``eff_*``/``effmax_*``: effective ones; ``used_*``
#: counts reservations, ``reserved_*`` alone; ``lim_*``: the limit that the parent handed down at the last change of the
#: cluster; ``L_*``: the limit the AM limit follows (as the queue was last considered); ``U_*``: the user limit of
#: ``U_version``; ``tree_*``: the tournament of the children with outstanding asks; ``stuck``: 1 + the version at which
#: every user was over the limit. Lists: all active applications, those with asks in the policy's order, those that
#: wait for their activation, those whose figures have changed (fair ordering), users. ``usage_*``: containers alone;
#: ``fair_mb``: what the queue is entitled to, as the world around shows it. ``parallel``: how many applications may run
#: side by side; ``n_runnable``: how many do; ``nr_*``: a leaf's that may not, in order of time. ``largest_*``:
#: the largest container, to which Hadoop's AMS holds asks; the scheduler itself holds them to that of all queues.
Q = record(
    "alive:i leaf:i parent:i kids_off:i n_kids:i pos:i tree_off:i tree_cap:i policy:i priority fair:i sized:i "
    "absolute:i state:i n_apps max_apps max_user_apps any_weight:i conf_mb conf_vcores confmax_mb confmax_vcores "
    "eff_mb eff_vcores effmax_mb effmax_vcores used_mb used_vcores reserved_mb reserved_vcores pending_mb "
    "pending_vcores am_mb am_vcores am_limit_mb am_limit_vcores lim_mb lim_vcores L_mb L_vcores U_mb U_vcores "
    "U_version version stuck floor_mb floor_vcores own_max_apps act_head:i act_tail:i n_active:i ask_head:i "
    "ask_tail:i wait_head:i wait_tail:i n_waiting:i stale_head:i user_head:i user_tail:i n_users:i users_cap:i "
    "on_mb on_vcores n_on:i n_active_users:i n_only_pending:i only_pending:i scaled:i n_run:i usage_mb "
    "usage_vcores fair_mb first_child:i next_sibling:i parallel n_runnable:i nr_head:i nr_tail:i "
    "n_nonrun:i largest_mb largest_vcores cap:f max:f norm:f weight:f abs:f abs_max:f used_cap:f abs_used:f "
    "mulp:f ulf:f am_pct:f user_ratios:f on_weight:f scale_mb:f scale_vcores:f"
)

#: Applications (the current attempt). ``used_*`` without reservations; ``cu``/``cp``: used and pending memory as the
#: fair ordering last looked; ``listed``: counted among its user's applications with asks; ``ghost``: an attempt that
#: has gone but stands among the waiting (or, later, active) ones; ``stale`` 1: to be looked at, 2: forgotten again.
#: ``seen``: its user's limit has been looked at for it; ``runnable``: as last found; ``n_runnable``: times in its
#: leaf's list of these; ``held_back``: in its leaf's list of those beyond a number of parallel applications, and in its
#: user's; ``user``: that of all leaves (U.person), ``uq``: in this leaf.
A = record(
    "alive:i ghost:i q:i user:i uq:i id priority attempt serial managed:i am_running:i am_ask am_mb am_vcores "
    "start_ms used_mb used_vcores reserved_mb reserved_vcores pending_mb pending_vcores cu cp n_req:i req_head:i "
    "req_cap:i live_head:i live_tail:i n_live:i live_cap:i n cid active:i waiting:i listed:i in_asks:i stale:i "
    "act_prev:i act_next:i ask_prev:i ask_next:i wait_prev:i wait_next:i stale_next:i held_head:i n_reserved:i "
    "started:i free_next:i tag usage_mb usage_vcores integral_ms seen:i runnable:i n_runnable:i held_back:i "
    "nr_prev:i nr_next:i user_prev:i user_next:i n_asks:i integral:d omega:d kg:d phi:d ahead_a:d ahead_b:d more_mb:d "
    "more_vc:d"
)

#: Reservations of an application under one key: their number, re-reservations, the nodes in order of time; ``seq``:
#: keys in order of time.
H = record("app:i n:i priority alloc_id cap:i again:i head:i tail:i next:i seq:i")

#: A user in a leaf. ``in_map``: the leaf knows the user; ``on``: 1 active, 2 not; ``n_listed``: applications with asks;
#: ``person``: the user's first record in any leaf: it has those that run or are held back in all of them;
#: ``cached``: 1 + the version at which the leaf last found what the user may get; ``barred``: nothing then, for
#: applications with no more reserved than ``barred_*``.
U = record(
    "q:i in_map:i on:i used_mb used_vcores am_mb am_vcores pend act:i n_listed:i next:i prev:i hash "
    "person:i max_apps n_run:i nr_head:i nr_tail:i cached barred:i barred_mb barred_vcores ratio:f"
)

#: Nodes: the Fair Scheduler's fields, and the reservation's place in its application's list (``res_h``, ``res_next``).
N = record(N_FIELDS + " res_h:i res_next:i")

#: Frames of the way down the tree: a parent, the limit handed to it, headroom blocked by children, children put aside.
F = record("q:i lim_mb lim_vcores blocked_mb blocked_vcores limited aside")

#: A queue as preemption sees it in one round. ``disabled``: nothing is taken from it; ``nameless``: its own
#: name is not enough to find it, because others have it, too; ``pending_*``: what it may still
#: get, ``unreserved_*``: less what is reserved; ``ideal_*``: what it should have; ``fixed_*``: what is above its
#: guarantee and cannot be taken, ``loose_*``: and can; ``excess_*``: what it has too much; ``obtain_*``: what is taken
#: now; ``norm_*``: its part of what is still to be distributed.
P = record(
    "disabled:i nameless:i obtains:i pending_mb pending_vcores unreserved_mb unreserved_vcores ideal_mb ideal_vcores "
    "fixed_mb fixed_vcores loose_mb loose_vcores excess_mb excess_vcores obtain_mb obtain_vcores norm_mb:d "
    "norm_vcores:d"
)

#: Containers that preemption has chosen, by slot: of which ``serial``; since when one is marked (-1: it is not); in
#: which round it was last chosen; ``q``: the leaf of one that is complete.
M = record("serial since round q:i", lines=False)


class _Fields(NamedTuple):
    g: Annotated[np.ndarray, G, 1]
    q: Annotated[np.ndarray, Q, 1]
    a: Annotated[np.ndarray, A, 1]
    n: Annotated[np.ndarray, N, 1]
    c: Annotated[np.ndarray, C, 1]
    r: Annotated[np.ndarray, R, 1]
    h: Annotated[np.ndarray, H, 1]
    u: Annotated[np.ndarray, U, 1]
    f: Annotated[np.ndarray, F, 1]
    log: Annotated[np.ndarray, LOG, 1]
    order: Annotated[np.ndarray, np.int64, 1]  # queue slots, parents before their children
    kids: Annotated[np.ndarray, np.int64, 1]  # queue slots, each parent's children in the order that breaks ties
    tree: Annotated[np.ndarray, np.int64, 1]  # queue slots, each parent's tournament
    leaves: Annotated[np.ndarray, np.int64, 1]  # queue slots of the leaves
    work: Annotated[np.ndarray, np.int64, 1]  # scratch
    p: Annotated[np.ndarray, P, 1]
    m: Annotated[np.ndarray, M, 1]
    takes: Annotated[np.ndarray, np.int64, 1]  # queue slots of the leaves, in the order in which preemption takes
    pw: Annotated[np.ndarray, np.int64, 1]  # scratch of preemption
    cost: Annotated[np.ndarray, np.float64, 1]  # of each node with a reservation: what room for it costs
    x: Annotated[np.ndarray, X, 1]  # long-term figures of each queue, as beside the Fair Scheduler (longterm_state)
    xg: Annotated[np.ndarray, XG, 1]
    win: Annotated[np.ndarray, np.float64, 2]


class S(Arrays, _Fields):  # type: ignore[misc]
    """All of the state. Arrays are replaced by larger ones when full (``Scheduler.grow``)."""

    scheduler = "capacity"
