"""The scheduler's state: one NamedTuple of record arrays, and the codes that the kernels return.

Contains no behaviour. Times are int64 milliseconds, memory is int64 MB, vcores are int64. A slot that is free has
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

# Scheduling policies of a queue (Q.policy). LTRF, for leaves only, orders applications by ascending A.key.
FAIR, DRF, FIFO, LTRF = 0, 1, 2, 3

# Values of G.shares_dirty: which shares the next update recomputes (0: none): where applications changed, or all.
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


#: Globals: one record.
G = record(
    "n_queues n_nodes",  # numbers of existing queues and nodes
    "cluster_mb cluster_vcores",  # sum of the nodes
    "alloc_mb alloc_vcores",  # what containers hold
    "avail_mb avail_vcores",  # the root queue's "available" metric, which Hadoop refreshes only at certain moments
    "min_mb min_vcores",  # smallest size of a container
    "inc_mb inc_vcores",  # sizes of containers are multiples of these
    "conf_max_mb conf_max_vcores",  # largest size of a container, as it is configured
    "node_max_mb node_max_vcores node_max_known",  # the largest node in each resource; 1: there is one
    "max_by_nodes",  # 1: asks are clamped to the largest node, as in an RM that has been up for 10 s
    "reserve_mb reserve_vcores",  # asks of this size and above may reserve a node
    "reserves_always",  # 1: an ask that does not fit reserves the node, as in Hadoop 2.2, whether or not it starves
    # ``yarn.scheduler.fair``: assignmultiple, dynamic.max.assign, max.assign
    "assign_multiple max_assign_dynamic max_assign",
    "size_weight",  # ``yarn.scheduler.fair.sizebasedweight``
    "preemption",  # 1: the scheduler preempts
    "warn_ms",  # from the choice of a container to its kill (``waitTimeBeforeKill``)
    "starve_delay_ms",  # how long an application is left alone after preemption was tried for it
    "launch",  # 1: a node reports what its master has heard of as launched, one heartbeat later
    "manual_acquire",  # 1: a script says when masters hear of containers; 0: at once
    "cleanup_heartbeats",  # heartbeats of a node until it reports a killed container as completed
    "order_mode",  # how the next queue is chosen: STOCK, KEYED_LEVELS or KEYED_FLAT
    "mutations",  # features that a test has switched off
    "cluster_ts",  # when the RM started: a part of all IDs
    "app_hash0",  # not in use
    # heads of the lists of free slots: applications, containers, asks, records of ``p``
    "free_app free_c free_r free_p",
    "n_free_app n_free_c n_free_r n_free_p",  # how many are free
    "serial",  # number of the last container
    "next_app_id node_seq req_seq",  # the next application's number, the next node's and the next ask's
    "n_log",  # records in ``log``
    "dirty_head",  # first of the list of applications whose demand the next update recomputes
    "demand_dirty",  # 1: the demand of some queue has to be recomputed
    "shares_dirty",  # which shares have to be recomputed: 0, SOME_SHARES or ALL_SHARES
    "n_leaves",  # leaves
    "nodes_peak",  # most nodes at once so far
    "kill_head kill_n",  # first of the ring of kills to come, and how many there are
    # applications that may reserve a node, and the most nodes that one may reserve
    "n_reservable reservations_allowed",
    "last_mb last_vcores last_c",  # size and slot of the container that was assigned last
    "n_running",  # containers that live
    "heap_top",  # how much of the scratch space for starved applications is in use
    "hooks",  # who reads the scheduler's log: 0, INTEGRALS or WORLD
    "n_aside",  # number of queues that were tried without result in the present choice (``aside``)
    "moving",  # 1: keys vary with time, so a tournament is valid until ``due`` (turns.py)
    "late_off late_cap",  # the tournament of all leaves with asks: where it begins in ``tree``, and its size
    "span",  # words of ``tree`` that one view takes
    "n_sizes n_views n_looks",  # numbers of kinds of smallest asks, of views, and of uses of views so far
    "least_mb least_vcores",  # a lower bound of all container sizes ever
    "large_asks",  # 1: some ask so far was large enough to reserve a node
    "asks_head",  # first of the list of leaves with ``asks_dirty``
    "starve_ms",  # time of the last starvation check
    "n_asked",  # outstanding containers of all asks
    "least_ask_mb least_ask_vcores",  # a lower bound of all ask sizes ever
    "period_ms:d",  # not in use
    "reservable_ratio:f",  # ``yarn.scheduler.fair.reservable-nodes``
    "utilisation_threshold:f",  # ``yarn.scheduler.fair.preemption.cluster-utilization-threshold``
)

#: A queue. Shares and demands are as of the last update, as in Hadoop; usage and pending amounts are up to date.
Q = record(
    "usage_mb usage_vcores",  # what its containers hold
    "max_mb max_vcores",  # its maximum share
    "ask_min_mb ask_min_vcores",  # of a leaf: the smallest ask in each resource
    "leaf:i policy:i parent:i",  # 1: it is a leaf; FAIR, DRF, FIFO or LTRF; its parent
    "n_reservable:i",  # applications in it that may reserve a node
    "min_mb",  # its minimum share
    "demand_mb",  # its demand
    "pending_mb pending_vcores",  # outstanding asks of all its applications
    "weight:f",  # its weight
    "n_cand:i",  # applications below it that could get something
    "heap_off:i heap_cap:i",  # of a leaf: where its two heaps of applications begin in ``heap``, and the size of each
    "heap0_n:i heap1_n:i",  # applications that are ready, and those that wait for a master
    "next_sibling:i",  # the next child of its parent
    "n_run:i",  # running applications
    "turned:i",  # 1: since the last update it got its first running application, or lost its last
    "n_turned:i",  # number of children with ``turned``
    "sum_mb sum_vcores",  # of a leaf: sum of its applications' demands
    "demand_vcores",  # its demand
    "fair_mb fair_vcores",  # its (instantaneous) fair share
    "min_vcores",  # its minimum share
    "last_at_min_ms",  # when it last had its minimum share
    "min_timeout_ms fair_timeout_ms",  # ``minSharePreemptionTimeout``, ``fairSharePreemptionTimeout``
    "fair_threshold:f",  # ``fairSharePreemptionThreshold``
    "max_am_share:f",  # ``maxAMShare``
    "asks_dirty:i",  # not 0: the next update recomputes its smallest ask; 2 + the next leaf of that list
    "members_dirty:i",  # 1: its running applications or their demands have changed
    "preemptable:i",  # 1: containers may be preempted from it
    "am_preemptable:i",  # 1: masters may, too
    "key:d",  # its key in the keyed modes
    "am_mb am_vcores",  # what masters in it hold
    "am_min_mb am_min_vcores",  # the smallest master that waits, in each resource
    "steady_mb steady_vcores",  # its steady fair share
    "seen_mb seen_vcores",  # its fair share when the shares below it were last computed
    "alive:i",  # 1: it exists
    "first_child:i",  # its first child
    "rank:i",  # place of its full name among all names
    "dynamic:i",  # 1: it was made for an application
    "max_is_pct:i",  # 1: its maximum is a part of the cluster
    "n_nonrun:i",  # applications that may not run yet
    "run_head:i run_tail:i",  # the list of running applications
    "nr_head:i nr_tail:i",  # the list of those that may not run yet
    "raw_max_mb raw_max_vcores",  # its configured maximum, where that is an amount
    "max_c_mb max_c_vcores",  # ``maxContainerAllocation``
    "max_apps",  # ``maxRunningApps``
    "pct_mb:d pct_vcores:d",  # the parts of the cluster that its maximum is
    "weight_now:d",  # not in use
    "integral:d integral_ms:d",  # a leaf's key up to a time, and that time
)

#: A queue's entry in the tournament of its siblings (turns.py). It is ordered by ``tier``, ``k0``, ``k1`` and ``rank``.
#: With time-varying keys, (``amount`` at ``since_ms`` plus ``rate`` per millisecond) / ``weight`` replaces ``k0``,
#: ``k1``.
SEAT = record(
    "amount:d rate:d weight:d",  # components of a time-varying key
    "speed:d",  # ``rate`` / ``weight``
    "since_ms",  # the time of ``amount``
    "tier:i rank:i k0:d k1:d",  # the key by which it is ordered
    "up:i",  # the queue in whose tournament it takes part; -1: in none
    "there:i",  # bits: the views in which it takes part
    "off:i cap:i",  # its own children's tournament: where it begins in a view, and its size
    "at:i",  # its leaf position in the tournament of ``up``
    "size:i",  # kind of its smallest ask (``sizes``); -1: it could get nothing
    "n_odd:i",  # children whose share is NaN
    "stock:i",  # 1: its children are ordered as in Hadoop, whatever the mode
    "odd:i",  # 1: its share is NaN
    "late_at:i",  # its position among all leaves with asks
    "calm:i calm_until_ms",  # not 0: no application of the leaf starves until then or a change (starvation.py)
)

#: A kind of smallest asks, and how many leaves have it. The first record stands for all kinds beyond the table's size.
SIZE = record(
    "mb vcores n",  # size, and how many leaves
)

#: A view: the tournaments of the queues that take part where asks of certain kinds fit.
VIEW = record(
    "mask",  # bits: the kinds
    "seen",  # when it was last used (``g.n_looks``)
)
VIEWS, SIZES = 4, 32

#: An application (its current attempt). Usage and pending amounts are up to date; demand and fair share are as of the
#: last update.
A = record(
    "k0:d k1:d",  # its keys among the applications of its leaf
    "start_ms",  # when the attempt began
    "name_key",  # order of its name
    "usage_mb usage_vcores",  # what its containers hold
    "demand_mb",  # its demand
    "q:i",  # its leaf
    "heap_pos:i",  # its place in its heap
    "demand_vcores",  # its demand
    "weight:f",  # its weight
    "heap:i",  # which of the leaf's two heaps it is in
    "alive:i runnable:i",  # 1: the slot is in use; 1: it may run
    "managed:i am_running:i",  # 1: it has a master; 1: the master's container was granted
    "reservable:i",  # 1: it may reserve a node
    "n_reserved:i n_asks:i",  # nodes that it has reserved; outstanding containers of its asks
    "dirty:i",  # 0: its demand is up to date; else the next update recomputes it, and this is 2 + the next such one
    "req_head:i",  # first of the list of its asks
    # its containers, the last of their list, and the buckets of Hadoop's table of them
    "n_live:i live_tail:i live_cap:i",
    "fair_mb fair_vcores",  # its fair share
    "next_check_ms",  # before this it is not looked at for starvation again
    "last_at_fair_ms",  # when it last had its fair share
    "fstarve_mb fstarve_vcores",  # what it lacks of its fair share, if it starves
    "mstarve_mb mstarve_vcores",  # what it lacks of its leaf's minimum share, if that starves
    "pending_mb pending_vcores",  # what it asks for
    "cid",  # numbers of containers that the attempt has used up
    "n",  # containers that it was assigned so far
    "tag",  # for the driver: the job's slot
    "preempt_mb preempt_vcores",  # resources of its containers that preemption has chosen and not killed yet
    "live_head:i",  # first of the list of its containers
    "n_req:i",  # its asks
    "id",  # number in its ID
    "serial",  # number of the attempt among all attempts ever
    "hash",  # hash of its ID in Java, for the order in Hadoop's tables
    "user:i attempt:i",  # its user, and number of the attempt
    "req_cap:i",  # buckets of Hadoop's table of its asks
    "run_prev:i run_next:i",  # its neighbours in the leaf's list of running applications
    # its neighbours in the leaf's and the user's list of those that may not run yet
    "nr_prev:i nr_next:i user_prev:i user_next:i",
    "free_next:i",  # the next free slot
    "started:i",  # 1: it was given a container
    "am_mb am_vcores",  # size of the master's container
    "key:d",  # its order in a leaf under LTRF
    "integral:d integral_ms:d",  # what LTRF's key is made of: amount counted up to a time, and that time
    "omega:d",  # its weight among the applications of its leaf
    "kg:d",  # its allocation since then, in the ledger's measure
    "phi:d ahead_a:d ahead_b:d more_mb:d more_vc:d",  # the same as in a queue's record, `harness.sim.longterm_state.X`
)

#: Nodes.
N = record(*N_FIELDS)

#: Resources preempted on a node for an application (one list for each node).
P = record(
    "app:i next:i",  # the application, and the next one in the list
    "serial",  # number of the application's attempt
    "mb vcores",  # how much
)

#: A pending kill; ``k`` is a ring of them in the order of time.
K = record(
    "t",  # when
    "c serial",  # the container's slot and its serial number
)

#: A user.
U = record(
    # its running applications, the most of them, and the list of those that may not run yet
    "n_run max_apps nr_head nr_tail",
)


class _Fields(NamedTuple):
    g: Annotated[np.ndarray, G, 1]  # globals: one record
    q: Annotated[np.ndarray, Q, 1]  # queues
    a: Annotated[np.ndarray, A, 1]  # applications
    n: Annotated[np.ndarray, N, 1]  # nodes
    c: Annotated[np.ndarray, C, 1]  # containers
    r: Annotated[np.ndarray, R, 1]  # outstanding asks
    p: Annotated[np.ndarray, P, 1]  # what was preempted on nodes, for whom
    k: Annotated[np.ndarray, K, 1]  # kills to come
    u: Annotated[np.ndarray, U, 1]  # users
    log: Annotated[np.ndarray, LOG, 1]  # what has happened since Python last looked
    heap: Annotated[np.ndarray, np.int64, 1]  # application slots, two segments a leaf (ready; waiting for an AM)
    order: Annotated[np.ndarray, np.int64, 1]  # queue indices, parents before their children
    leaves: Annotated[np.ndarray, np.int64, 1]  # queue indices of the leaves, in order of creation
    work: Annotated[np.ndarray, np.int64, 1]  # scratch
    x: Annotated[np.ndarray, X, 1]  # long-term figures of each queue (longterm_state.X)
    xg: Annotated[np.ndarray, XG, 1]  # and their globals (longterm_state.XG)
    seat: Annotated[np.ndarray, SEAT, 1]  # of each queue
    sizes: Annotated[np.ndarray, SIZE, 1]  # kinds of smallest asks
    views: Annotated[np.ndarray, VIEW, 1]  # views, by the kinds of asks that fit
    inside: Annotated[np.ndarray, np.int64, 1]  # by view and queue: the number of its children that take part
    tree: Annotated[np.ndarray, np.int64, 1]  # by view: a parent's inner tree nodes, then its children
    due: Annotated[np.ndarray, np.int64, 1]  # until when (exclusive, ms) a tree node and those below it are valid
    aside: Annotated[np.ndarray, np.int64, 1]  # indices of queues that were tried without result in the present choice
    win: Annotated[np.ndarray, np.float64, 2]  # by queue: a ring of a sliding window's parts, and the part leaving it


class S(Arrays, _Fields):  # type: ignore[misc]
    """The whole state. Full arrays are replaced by larger ones (``Scheduler.grow``)."""

    scheduler = "fair"
