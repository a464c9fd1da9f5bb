"""The scheduler's state: one NamedTuple of record arrays, and the codes that the kernels return.

Contains no behaviour. Times are int64 milliseconds, memory is int64 MB, vcores are int64. A free slot has ``alive ==
0``, and its field ``free_next`` (or ``next``) holds the next free slot of a list that begins in the globals. -1 means
"none" in every index.
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

# Values of G.shares_dirty, the shares that the next update recomputes: those below queues in which applications have
# changed, or all (0: none).
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
    "n_queues n_nodes",  # numbers of queues and of registered nodes
    "cluster_mb cluster_vcores",  # total capacity of the registered nodes
    "alloc_mb alloc_vcores",  # total resources of the live containers
    "avail_mb avail_vcores",  # the root queue's "available" metric, which Hadoop refreshes only at certain moments
    "min_mb min_vcores",  # minimum allocation
    "inc_mb inc_vcores",  # increments: resources of containers are multiples of these
    "conf_max_mb conf_max_vcores",  # configured maximum allocation
    "node_max_mb node_max_vcores node_max_known",  # maximum over the nodes of each resource; 1: a node is registered
    "max_by_nodes",  # 1: asks are clamped to the largest node, as in an RM that has been up for 10 s
    "reserve_mb reserve_vcores",  # smallest ask that may reserve a node
    # 1: decides as Hadoop 2.2.0 where that release decides otherwise than 3.4.2; 1: no application starts to run just
    # now, because that release starts them in an update only
    "hadoop_2_2 holds_apps",
    # ``yarn.scheduler.fair``: assignmultiple, dynamic.max.assign, max.assign
    "assign_multiple max_assign_dynamic max_assign",
    "size_weight",  # ``yarn.scheduler.fair.sizebasedweight``
    "preemption",  # 1: the scheduler preempts
    "warn_ms",  # time from the choice of a container to its kill (``waitTimeBeforeKill``)
    "starve_delay_ms",  # time from a preemption for an application to its next starvation check
    "launch",  # 1: a node reports containers that the AM has fetched as launched, one heartbeat later
    "manual_acquire",  # 1: a script decides when AMs fetch their containers; 0: they fetch them at once
    "cleanup_heartbeats",  # number of heartbeats after which a node reports a killed container as completed
    "order_mode",  # how the next queue is chosen: STOCK, KEYED_LEVELS or KEYED_FLAT
    "mutations",  # bit set of the features that a mutation test has switched off (MUT_...)
    "cluster_ts",  # start time of the ResourceManager, which is part of all IDs
    "app_hash0",  # not in use
    # heads of the lists of free slots: applications, containers, asks, records of ``p``
    "free_app free_c free_r free_p",
    "n_free_app n_free_c n_free_r n_free_p",  # lengths of these lists
    "serial",  # last serial number given to a container, a reservation or an attempt
    "next_app_id node_seq req_seq",  # next numbers of an application, a node and an ask
    "n_log",  # number of records in ``log``
    "dirty_head",  # head of the list of applications whose demand the next update recomputes
    "demand_dirty",  # 1: the next update recomputes the demand of every queue
    "shares_dirty",  # shares that the next update recomputes: 0, SOME_SHARES or ALL_SHARES
    "n_leaves",  # number of leaves
    "nodes_peak",  # largest number of nodes registered at once so far
    "kill_head kill_n",  # first element of the ring of pending kills (``k``), and their number
    # number of applications that may reserve a node, and largest number of nodes that one application may reserve
    "n_reservable reservations_allowed",
    "last_mb last_vcores last_c",  # resources and slot of the container assigned last; -1, 0 after a reservation
    "n_running",  # number of live containers
    "heap_top",  # number of starved applications that wait for preemption, in the second half of ``work``
    "hooks",  # reader of the scheduler's log: 0 (none), INTEGRALS or WORLD
    "n_aside",  # number of queues that the present choice has tried without result (``aside``)
    "moving",  # 1: keys vary with time, so that results in the tournament trees expire (``due``, turns.py)
    "late_off late_cap",  # tournament of all leaves with asks: offset in ``tree``, and number of its leaf positions
    "span",  # number of elements of ``tree`` per view
    "n_sizes n_views n_looks",  # numbers of records in ``sizes`` and ``views``, and of uses of views so far
    "least_mb least_vcores",  # lower bound of the resources of all containers ever
    "large_asks",  # 1: there has been an ask large enough to reserve a node
    "asks_head",  # head of the list of leaves with ``asks_dirty``
    "starve_ms",  # time of the last starvation check
    "n_asked",  # number of outstanding containers of all asks
    "least_ask_mb least_ask_vcores",  # lower bound of the resources of all asks ever
    "period_ms:d",  # not in use
    "reservable_ratio:f",  # ``yarn.scheduler.fair.reservable-nodes``
    "utilisation_threshold:f",  # ``yarn.scheduler.fair.preemption.cluster-utilization-threshold``
)

#: A queue. Shares and demands are as of the last update, as in Hadoop; usage and pending resources are up to date.
Q = record(
    "usage_mb usage_vcores",  # resources of the containers in it and below it
    "max_mb max_vcores",  # maximum share
    "ask_min_mb ask_min_vcores",  # lower bound of the outstanding asks in it and below it, for each resource
    "leaf:i policy:i parent:i",  # 1: it is a leaf; FAIR, DRF, FIFO or LTRF; slot of its parent
    "n_reservable:i",  # of a leaf: number of applications that may reserve a node
    "min_mb",  # minimum share, memory
    "demand_mb",  # demand, memory
    "pending_mb pending_vcores",  # of a leaf: outstanding resources of all its applications
    "weight:f",  # weight in the fair shares of its parent's children
    "n_cand:i",  # number of applications in it and below it that are in a heap, so that they could get a container
    "heap_off:i heap_cap:i",  # of a leaf: offset of its two heaps of applications in ``heap``, and capacity of each
    "heap0_n:i heap1_n:i",  # sizes of the heaps: applications whose AM runs, and applications that wait for an AM
    "next_sibling:i",  # next child of its parent
    "n_run:i",  # number of runnable applications in it and below it
    "turned:i",  # 1: since its parent's shares were computed, it has come to have runnable applications, or none
    "n_turned:i",  # number of children with ``turned``
    "sum_mb sum_vcores",  # sum of the demands of its applications or children, before the limit of its maximum share
    "demand_vcores",  # demand, vcores
    "fair_mb fair_vcores",  # instantaneous fair share
    "min_vcores",  # minimum share, vcores
    "last_at_min_ms",  # time at which it last had its minimum share
    "min_timeout_ms fair_timeout_ms",  # ``minSharePreemptionTimeout``, ``fairSharePreemptionTimeout``
    "fair_threshold:f",  # ``fairSharePreemptionThreshold``
    "max_am_share:f",  # ``maxAMShare``
    "asks_dirty:i",  # 0, or 2 + the next leaf in the list of leaves whose ``ask_min_*`` the next update recomputes
    "members_dirty:i",  # 1: its runnable applications, their weights or its policy have changed
    "preemptable:i",  # 1: its containers may be preempted
    "am_preemptable:i",  # 1: the containers of its AMs may be preempted, too
    "key:d",  # in the keyed modes: the queue with the smallest key is served first
    "am_mb am_vcores",  # of a leaf: resources of its AMs
    "am_min_mb am_min_vcores",  # of a leaf: lower bound of the AMs that wait for a container, for each resource
    "steady_mb steady_vcores",  # steady fair share
    "seen_mb seen_vcores",  # its fair share when the shares below it were last computed
    "alive:i",  # 1: it exists
    "first_child:i",  # first child; -1: it has none
    "rank:i",  # rank of its full name among the names of all queues
    "dynamic:i",  # 1: it was created for an application
    "max_is_pct:i",  # 1: its maximum share is a fraction of the cluster
    "n_nonrun:i",  # of a leaf: number of applications that may not run yet
    "run_head:i run_tail:i",  # of a leaf: the list of runnable applications
    "nr_head:i nr_tail:i",  # of a leaf: the list of applications that may not run yet
    "raw_max_mb raw_max_vcores",  # configured maximum share, if it is an absolute amount
    "max_c_mb max_c_vcores",  # ``maxContainerAllocation``
    "max_apps",  # ``maxRunningApps``
    "pct_mb:d pct_vcores:d",  # configured maximum share as fractions of the cluster
    "weight_now:d",  # not in use
    "integral:d integral_ms:d",  # not in use
)

#: A queue's entry in the tournament of its siblings (turns.py). It is ordered by ``tier``, ``k0``, ``k1`` and ``rank``.
#: With time-varying keys, (``amount`` at ``since_ms`` plus ``rate`` per millisecond) / ``weight`` replaces ``k0``,
#: ``k1``.
SEAT = record(
    "amount:d rate:d weight:d",  # parts of a time-varying key: amount, its growth per ms, and entitlement
    "speed:d",  # ``rate`` / ``weight``
    "since_ms",  # time for which ``amount`` is valid
    "tier:i rank:i k0:d k1:d",  # the key; ``rank`` is the rank of the queue's name
    "up:i",  # the queue in whose tournament it takes part; -1: none
    "there:i",  # bit set of the views in which it takes part
    "off:i cap:i",  # its own children's tournament: offset in a view, and number of leaf positions
    "at:i",  # its leaf position in the tournament of ``up``
    "size:i",  # of a leaf: index in ``sizes`` of its smallest ask; -1: it can get nothing
    "n_odd:i",  # number of children with ``odd``
    "stock:i",  # 1: its children are ordered as in Hadoop, whatever the mode
    "odd:i",  # 1: its dominant share is NaN
    "late_at:i",  # its leaf position in the tournament of all leaves with asks
    # cache of the starvation check: if ``calm`` is not 0, no application of the leaf starves before that time, unless
    # something changes; the values -1, 1 and 2 + an application tell which times `turns.invalidate` must update
    "calm:i calm_until_ms",
)

#: A size that is the smallest ask of some leaves. The first record stands for all sizes that the table has no room for.
SIZE = record(
    "mb vcores n",  # size, and number of leaves with this smallest ask
)

#: A view: tournaments of the queues that can be served on a node on which certain sizes of asks fit.
VIEW = record(
    "mask",  # bit set of these sizes (indices in ``sizes``)
    "seen",  # value of ``g.n_looks`` at its last use
)
VIEWS, SIZES = 4, 32

#: An application (its current attempt). Usage and pending resources are up to date; demand and fair share are as of the
#: last update.
A = record(
    "k0:d k1:d",  # its keys in the order of its leaf's applications (`order.app_before`)
    "start_ms",  # start time of the attempt
    "name_key",  # a number that sorts like the name of the application
    "usage_mb usage_vcores",  # resources of its containers
    "demand_mb",  # demand, memory
    "q:i",  # slot of its leaf
    "heap_pos:i",  # its position in its heap
    "demand_vcores",  # demand, vcores
    "weight:f",  # weight in the fair shares of its leaf's applications
    "heap:i",  # its heap: 0 (its AM runs) or 1 (it waits for its AM); -1: none
    "alive:i runnable:i",  # 1: the slot is in use; 1: it may run
    "managed:i am_running:i",  # 1: it has an AM; 1: the AM's container was granted
    "reservable:i",  # 1: it may reserve a node
    "n_reserved:i n_asks:i",  # number of nodes reserved for it, and of outstanding containers of its asks
    "dirty:i",  # 0, or 2 + the next application in the list of those whose demand the next update recomputes
    "req_head:i",  # first ask in its list
    # number of its live containers, the last one in their list, and number of buckets of Hadoop's table of them
    "n_live:i live_tail:i live_cap:i",
    "fair_mb fair_vcores",  # fair share
    "next_check_ms",  # time of its next starvation check at the earliest
    "last_at_fair_ms",  # time at which it last had its fair share
    "fstarve_mb fstarve_vcores",  # what it lacks of its fair share, if it is starved
    "mstarve_mb mstarve_vcores",  # what it lacks of its leaf's minimum share, if it is starved for that
    "pending_mb pending_vcores",  # resources of its outstanding asks
    "cid",  # last container number that the attempt has used
    "n",  # number of containers assigned to it so far, in all attempts
    "tag",  # for the simulator: slot of the job
    "preempt_mb preempt_vcores",  # resources of its containers that preemption has chosen and not killed yet
    "live_head:i",  # first container in the list of its live containers
    "n_req:i",  # number of its asks
    "id",  # number in its ID
    "serial",  # serial number of the attempt
    "hash",  # Java's hash code of its ID, for the order in Hadoop's tables
    "user:i attempt:i",  # slot of its user, and number of the attempt
    "req_cap:i",  # number of buckets of Hadoop's table of its asks
    "run_prev:i run_next:i",  # neighbours in the leaf's list of runnable applications
    # neighbours in the leaf's and the user's list of applications that may not run yet
    "nr_prev:i nr_next:i user_prev:i user_next:i",
    "free_next:i",  # next free slot
    "started:i",  # 1: the attempt has got a container
    "am_mb am_vcores",  # resources of the AM's container
    "key:d",  # its key under LTRF; the application with the smallest key is served first
    "integral:d integral_ms:d",  # LTRF: its counted resources, and the time up to which they are counted, ms
    "omega:d",  # its weight among the applications of its leaf
    "kg:d",  # its allocation since ``integral_ms``, in the ledger's measure
    "phi:d ahead_a:d ahead_b:d more_mb:d more_vc:d",  # as in `harness.sim.longterm_state.X`, for this application
)

#: Nodes.
N = record(*N_FIELDS)

#: Resources preempted on a node for one application. Each node has a list of these records.
P = record(
    "app:i next:i",  # slot of the application, and next record of the node
    "serial",  # serial number of the application's attempt
    "mb vcores",  # the resources
)

#: A pending kill. ``k`` is a ring of these records, ordered by time.
K = record(
    "t",  # time of the kill
    "c serial",  # slot and serial number of the container
)

#: A user.
U = record(
    # number of runnable applications, its limit, and the list of applications that may not run yet
    "n_run max_apps nr_head nr_tail",
)


class _Fields(NamedTuple):
    g: Annotated[np.ndarray, G, 1]  # globals: one record
    q: Annotated[np.ndarray, Q, 1]  # queues
    a: Annotated[np.ndarray, A, 1]  # applications
    n: Annotated[np.ndarray, N, 1]  # nodes
    c: Annotated[np.ndarray, C, 1]  # containers
    r: Annotated[np.ndarray, R, 1]  # outstanding asks
    p: Annotated[np.ndarray, P, 1]  # resources preempted on nodes for applications
    k: Annotated[np.ndarray, K, 1]  # pending kills
    u: Annotated[np.ndarray, U, 1]  # users
    log: Annotated[np.ndarray, LOG, 1]  # log records that Python has not read yet
    heap: Annotated[np.ndarray, np.int64, 1]  # application slots: each leaf's two heaps (Q.heap_off)
    order: Annotated[np.ndarray, np.int64, 1]  # queue slots, parents before their children
    leaves: Annotated[np.ndarray, np.int64, 1]  # queue slots of the leaves, in the order of creation
    work: Annotated[np.ndarray, np.int64, 1]  # scratch; the queue of starved applications is in its second half
    x: Annotated[np.ndarray, X, 1]  # long-term values of each queue
    xg: Annotated[np.ndarray, XG, 1]  # settings of the ledger: one record
    seat: Annotated[np.ndarray, SEAT, 1]  # entries in the tournaments, by queue
    sizes: Annotated[np.ndarray, SIZE, 1]  # sizes of the leaves' smallest asks
    views: Annotated[np.ndarray, VIEW, 1]  # views of the tournaments
    inside: Annotated[np.ndarray, np.int64, 1]  # by view and queue: number of its children that take part
    tree: Annotated[np.ndarray, np.int64, 1]  # by view and parent: winners at the inner nodes, then the children
    due: Annotated[np.ndarray, np.int64, 1]  # time (exclusive, ms) up to which the same element of ``tree`` is valid
    aside: Annotated[np.ndarray, np.int64, 1]  # slots of queues that the present choice has tried without result
    win: Annotated[np.ndarray, np.float64, 2]  # (queues, parts + 1): rings of the parts of sliding windows


class S(Arrays, _Fields):  # type: ignore[misc]
    """The whole state. Full arrays are replaced by larger ones (``Scheduler.grow``)."""

    scheduler = "fair"
