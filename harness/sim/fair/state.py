"""The scheduler's state: one NamedTuple of record arrays, and the codes that the kernels return.

Contains no behaviour. Times are int64 milliseconds, memory is int64 MB, vcores are int64. A free slot has ``alive ==
0``, and its field ``free_next`` (or ``next``) holds the next free slot of a list that begins in the globals. -1 means
"none" in every index.
"""

from __future__ import annotations

from typing import NamedTuple

from harness.sim.arrays import Arrays, Column, Float32, Int32, Record, Table
from harness.sim.longterm_state import LongTermGlobals, LongTermRecord
from harness.sim.state import APP_END as APP_END
from harness.sim.state import FINISHED as FINISHED
from harness.sim.state import IGNORED as IGNORED
from harness.sim.state import INVALID_ASK as INVALID_ASK
from harness.sim.state import KEYED_FLAT as KEYED_FLAT
from harness.sim.state import KEYED_LEVELS as KEYED_LEVELS
from harness.sim.state import LOST as LOST
from harness.sim.state import MUT_HASHORDER as MUT_HASHORDER
from harness.sim.state import NEED_ROOM as NEED_ROOM
from harness.sim.state import PREEMPTED as PREEMPTED
from harness.sim.state import REJECTED as REJECTED
from harness.sim.state import RELEASED as RELEASED
from harness.sim.state import STOCK as STOCK
from harness.sim.state import AskRecord, ContainerRecord, LogRecord
from harness.sim.state import NodeRecord as NodeRecord

# Scheduling policies of a queue (QueueRecord.policy). LTRF, for leaves only, orders applications by ascending
# AppRecord.key.
FAIR, DRF, FIFO, LTRF = 0, 1, 2, 3

# Values of Globals.shares_dirty, the shares that the next update recomputes: those below queues in which applications
# have changed, or all (0: none).
SOME_SHARES, ALL_SHARES = 1, 2

# Features that a mutation test can switch off (Globals.mutations, a bit mask; 0 in every real run).
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


class Globals(Record):
    """Globals: one record."""

    n_queues: int  # number of queues
    n_nodes: int  # number of registered nodes
    cluster_mb: int  # total capacity of the registered nodes: memory (MB)
    cluster_vcores: int  # total capacity of the registered nodes: vcores
    alloc_mb: int  # total resources of the live containers: memory (MB)
    alloc_vcores: int  # total resources of the live containers: vcores
    avail_mb: int  # the root queue's "available" metric, which Hadoop refreshes only at certain moments: memory (MB)
    avail_vcores: int  # the root queue's "available" metric, which Hadoop refreshes only at certain moments: vcores
    min_mb: int  # minimum allocation: memory (MB)
    min_vcores: int  # minimum allocation: vcores
    inc_mb: int  # increments: resources of containers are multiples of these: memory (MB)
    inc_vcores: int  # increments: resources of containers are multiples of these: vcores
    conf_max_mb: int  # configured maximum allocation: memory (MB)
    conf_max_vcores: int  # configured maximum allocation: vcores
    node_max_mb: int  # largest memory of a registered node (MB)
    node_max_vcores: int  # largest number of vcores of a registered node
    node_max_known: int  # 1: a node is registered
    max_by_nodes: int  # 1: asks are clamped to the largest node, as in an RM that has been up for 10 s
    reserve_mb: int  # smallest ask that may reserve a node: memory (MB)
    reserve_vcores: int  # smallest ask that may reserve a node: vcores
    hadoop_2_2: int  # 1: decides as Hadoop 2.2.0 where that release decides otherwise than 3.4.2
    holds_apps: int  # 1: no application starts to run just now, because Hadoop 2.2.0 starts them in an update only
    assign_multiple: int  # ``yarn.scheduler.fair.assignmultiple``
    max_assign_dynamic: int  # ``yarn.scheduler.fair.dynamic.max.assign``
    max_assign: int  # ``yarn.scheduler.fair.max.assign``
    size_weight: int  # ``yarn.scheduler.fair.sizebasedweight``
    preemption: int  # 1: the scheduler preempts
    warn_ms: int  # time from the choice of a container to its kill (``waitTimeBeforeKill``)
    starve_delay_ms: int  # time from a preemption for an application to its next starvation check
    launch: int  # 1: a node reports containers that the AM has fetched as launched, one heartbeat later
    manual_acquire: int  # 1: a script decides when AMs fetch their containers; 0: they fetch them at once
    cleanup_heartbeats: int  # number of heartbeats after which a node reports a killed container as completed
    order_mode: int  # how the next queue is chosen: STOCK, KEYED_LEVELS or KEYED_FLAT
    mutations: int  # bit set of the features that a mutation test has switched off (MUT_...)
    cluster_ts: int  # start time of the ResourceManager, which is part of all IDs
    free_app: int  # first free slot of the applications
    free_c: int  # first free slot of the containers
    free_r: int  # first free slot of the asks
    free_p: int  # first free slot of ``p``
    n_free_app: int  # number of free slots of the applications
    n_free_c: int  # number of free slots of the containers
    n_free_r: int  # number of free slots of the asks
    n_free_p: int  # number of free slots of ``p``
    serial: int  # last serial number given to a container, a reservation or an attempt
    next_app_id: int  # number of the next application
    node_seq: int  # number of the next node
    req_seq: int  # number of the next ask
    n_log: int  # number of records in ``log``
    dirty_head: int  # head of the list of applications whose demand the next update recomputes
    demand_dirty: int  # 1: the next update recomputes the demand of every queue
    shares_dirty: int  # shares that the next update recomputes: 0, SOME_SHARES or ALL_SHARES
    n_leaves: int  # number of leaves
    nodes_peak: int  # largest number of nodes registered at once so far
    kill_head: int  # first element of the ring of pending kills (``k``)
    kill_n: int  # number of pending kills
    n_reservable: int  # number of applications that may reserve a node
    reservations_allowed: int  # largest number of nodes that one application may reserve
    last_mb: int  # memory of the container assigned last (MB); -1 after a reservation
    last_vcores: int  # vcores of the container assigned last; 0 after a reservation
    last_c: int  # slot of the container assigned last
    n_running: int  # number of live containers
    heap_top: int  # number of starved applications that wait for preemption, in the second half of ``work``
    hooks: int  # reader of the scheduler's log: 0 (none), INTEGRALS or WORLD
    n_aside: int  # number of queues that the present choice has tried without result (``aside``)
    moving: int  # 1: keys vary with time, so that results in the tournament trees expire (``due``, turns.py)
    late_off: int  # tournament of all leaves with asks: its offset in ``tree``
    late_cap: int  # number of leaf positions of that tournament
    span: int  # number of elements of ``tree`` per view
    n_sizes: int  # number of records in ``sizes``
    n_views: int  # number of records in ``views``
    n_looks: int  # number of uses of views so far
    least_mb: int  # lower bound of the resources of all containers ever: memory (MB)
    least_vcores: int  # lower bound of the resources of all containers ever: vcores
    large_asks: int  # 1: there has been an ask large enough to reserve a node
    asks_head: int  # head of the list of leaves with ``asks_dirty``
    starve_ms: int  # time of the last starvation check
    n_asked: int  # number of outstanding containers of all asks
    least_ask_mb: int  # lower bound of the resources of all asks ever: memory (MB)
    least_ask_vcores: int  # lower bound of the resources of all asks ever: vcores
    reservable_ratio: Float32  # ``yarn.scheduler.fair.reservable-nodes``
    utilisation_threshold: Float32  # ``yarn.scheduler.fair.preemption.cluster-utilization-threshold``


class QueueRecord(Record):
    """A queue.

    Shares and demands are as of the last update, as in Hadoop; usage and pending resources are up to date.
    """

    usage_mb: int  # resources of the containers in it and below it: memory (MB)
    usage_vcores: int  # resources of the containers in it and below it: vcores
    max_mb: int  # maximum share: memory (MB)
    max_vcores: int  # maximum share: vcores
    ask_min_mb: int  # lower bound of the outstanding asks in it and below it, for each resource: memory (MB)
    ask_min_vcores: int  # lower bound of the outstanding asks in it and below it, for each resource: vcores
    leaf: Int32  # 1: it is a leaf
    policy: Int32  # its scheduling policy: FAIR, DRF, FIFO or LTRF
    parent: Int32  # slot of its parent
    n_reservable: Int32  # of a leaf: number of applications that may reserve a node
    min_mb: int  # minimum share, memory
    demand_mb: int  # demand, memory
    pending_mb: int  # of a leaf: outstanding resources of all its applications: memory (MB)
    pending_vcores: int  # of a leaf: outstanding resources of all its applications: vcores
    weight: Float32  # weight in the fair shares of its parent's children
    n_cand: Int32  # number of applications in it and below it that are in a heap, so that they could get a container
    heap_off: Int32  # of a leaf: offset of its two heaps of applications in ``heap``
    heap_cap: Int32  # of a leaf: capacity of each of these heaps
    heap0_n: Int32  # size of the heap of applications whose AM runs
    heap1_n: Int32  # size of the heap of applications that wait for an AM
    next_sibling: Int32  # next child of its parent
    n_run: Int32  # number of runnable applications in it and below it
    turned: Int32  # 1: since its parent's shares were computed, it has come to have runnable applications, or none
    n_turned: Int32  # number of children with ``turned``
    # sum of the demands of its applications or children, before the limit of its maximum share: memory (MB)
    sum_mb: int
    sum_vcores: int  # sum of the demands of its applications or children, before the limit of its maximum share: vcores
    demand_vcores: int  # demand, vcores
    fair_mb: int  # instantaneous fair share: memory (MB)
    fair_vcores: int  # instantaneous fair share: vcores
    min_vcores: int  # minimum share, vcores
    last_at_min_ms: int  # time at which it last had its minimum share
    min_timeout_ms: int  # ``minSharePreemptionTimeout``
    fair_timeout_ms: int  # ``fairSharePreemptionTimeout``
    fair_threshold: Float32  # ``fairSharePreemptionThreshold``
    max_am_share: Float32  # ``maxAMShare``
    asks_dirty: Int32  # 0, or 2 + the next leaf in the list of leaves whose ``ask_min_*`` the next update recomputes
    members_dirty: Int32  # 1: its runnable applications, their weights or its policy have changed
    preemptable: Int32  # 1: its containers may be preempted
    am_preemptable: Int32  # 1: the containers of its AMs may be preempted, too
    key: float  # in the keyed modes: the queue with the smallest key is served first
    am_mb: int  # of a leaf: resources of its AMs: memory (MB)
    am_vcores: int  # of a leaf: resources of its AMs: vcores
    am_min_mb: int  # of a leaf: lower bound of the AMs that wait for a container, for each resource: memory (MB)
    am_min_vcores: int  # of a leaf: lower bound of the AMs that wait for a container, for each resource: vcores
    steady_mb: int  # steady fair share: memory (MB)
    steady_vcores: int  # steady fair share: vcores
    seen_mb: int  # its fair share when the shares below it were last computed: memory (MB)
    seen_vcores: int  # its fair share when the shares below it were last computed: vcores
    alive: Int32  # 1: it exists
    first_child: Int32  # first child; -1: it has none
    rank: Int32  # rank of its full name among the names of all queues
    dynamic: Int32  # 1: it was created for an application
    max_is_pct: Int32  # 1: its maximum share is a fraction of the cluster
    n_nonrun: Int32  # of a leaf: number of applications that may not run yet
    run_head: Int32  # of a leaf: first one in the list of runnable applications
    run_tail: Int32  # of a leaf: last one in that list
    nr_head: Int32  # of a leaf: first one in the list of applications that may not run yet
    nr_tail: Int32  # of a leaf: last one in that list
    raw_max_mb: int  # configured maximum share, if it is an absolute amount: memory (MB)
    raw_max_vcores: int  # configured maximum share, if it is an absolute amount: vcores
    max_c_mb: int  # ``maxContainerAllocation``: memory (MB)
    max_c_vcores: int  # ``maxContainerAllocation``: vcores
    max_apps: int  # ``maxRunningApps``
    pct_mb: float  # configured maximum share of memory as a fraction of the cluster
    pct_vcores: float  # configured maximum share of vcores as a fraction of the cluster


class SeatRecord(Record):
    """A queue's entry in the tournament of its siblings (turns.py).

    It is ordered by ``tier``, ``k0``, ``k1`` and ``rank``. With time-varying keys, (``amount`` at ``since_ms`` plus
    ``rate`` per millisecond) / ``weight`` replaces ``k0``, ``k1``.
    """

    amount: float  # part of a time-varying key: amount at ``since_ms``
    rate: float  # part of a time-varying key: growth of the amount per ms
    weight: float  # part of a time-varying key: the queue's entitlement
    speed: float  # ``rate`` / ``weight``
    since_ms: int  # time for which ``amount`` is valid
    tier: Int32  # first part of the key
    rank: Int32  # last part of the key: the rank of the queue's name
    k0: float  # second part of the key
    k1: float  # third part of the key
    up: Int32  # the queue in whose tournament it takes part; -1: none
    there: Int32  # bit set of the views in which it takes part
    off: Int32  # its own children's tournament: offset in a view
    cap: Int32  # its own children's tournament: number of leaf positions
    at: Int32  # its leaf position in the tournament of ``up``
    size: Int32  # of a leaf: index in ``sizes`` of its smallest ask; -1: it can get nothing
    n_odd: Int32  # number of children with ``odd``
    stock: Int32  # 1: its children are ordered as in Hadoop, whatever the mode
    odd: Int32  # 1: its dominant share is NaN
    late_at: Int32  # its leaf position in the tournament of all leaves with asks
    # 0: the cache below is empty; -1, 1 or 2 + an application: which times `turns.invalidate` must update at a change
    calm: Int32
    # cache of the starvation check: if ``calm`` is not 0, no application of the leaf starves before this time
    calm_until_ms: int


class SizeRecord(Record):
    """A size that is the smallest ask of some leaves.

    The first record stands for all sizes that the table has no room for.
    """

    mb: int  # memory (MB)
    vcores: int  # vcores
    n: int  # number of leaves with this smallest ask


class ViewRecord(Record):
    """A view: tournaments of the queues that can be served on a node on which certain sizes of asks fit."""

    mask: int  # bit set of these sizes (indices in ``sizes``)
    seen: int  # value of ``g.n_looks`` at its last use


VIEWS, SIZES = 4, 32


class AppRecord(Record):
    """An application (its current attempt).

    Usage and pending resources are up to date; demand and fair share are as of the last update.
    """

    k0: float  # its first key in the order of its leaf's applications (`order.app_before`)
    k1: float  # its second key in that order
    start_ms: int  # start time of the attempt
    name_key: int  # a number that sorts like the name of the application
    usage_mb: int  # resources of its containers: memory (MB)
    usage_vcores: int  # resources of its containers: vcores
    demand_mb: int  # demand, memory
    q: Int32  # slot of its leaf
    heap_pos: Int32  # its position in its heap
    demand_vcores: int  # demand, vcores
    weight: Float32  # weight in the fair shares of its leaf's applications
    heap: Int32  # its heap: 0 (its AM runs) or 1 (it waits for its AM); -1: none
    alive: Int32  # 1: the slot is in use
    runnable: Int32  # 1: it may run
    managed: Int32  # 1: it has an AM
    am_running: Int32  # 1: the AM's container was granted
    reservable: Int32  # 1: it may reserve a node
    n_reserved: Int32  # number of nodes reserved for it
    n_asks: Int32  # number of outstanding containers of its asks
    dirty: Int32  # 0, or 2 + the next application in the list of those whose demand the next update recomputes
    req_head: Int32  # first ask in its list
    n_live: Int32  # number of its live containers
    live_tail: Int32  # last one in the list of its live containers
    live_cap: Int32  # number of buckets of Hadoop's table of its live containers
    fair_mb: int  # fair share: memory (MB)
    fair_vcores: int  # fair share: vcores
    next_check_ms: int  # time of its next starvation check at the earliest
    last_at_fair_ms: int  # time at which it last had its fair share
    fstarve_mb: int  # what it lacks of its fair share, if it is starved: memory (MB)
    fstarve_vcores: int  # what it lacks of its fair share, if it is starved: vcores
    mstarve_mb: int  # what it lacks of its leaf's minimum share, if it is starved for that: memory (MB)
    mstarve_vcores: int  # what it lacks of its leaf's minimum share, if it is starved for that: vcores
    pending_mb: int  # resources of its outstanding asks: memory (MB)
    pending_vcores: int  # resources of its outstanding asks: vcores
    cid: int  # last container number that the attempt has used
    n: int  # number of containers assigned to it so far, in all attempts
    tag: int  # for the simulator: slot of the job
    preempt_mb: int  # resources of its containers that preemption has chosen and not killed yet: memory (MB)
    preempt_vcores: int  # resources of its containers that preemption has chosen and not killed yet: vcores
    live_head: Int32  # first container in the list of its live containers
    n_req: Int32  # number of its asks
    id: int  # number in its ID
    serial: int  # serial number of the attempt
    hash: int  # Java's hash code of its ID, for the order in Hadoop's tables
    user: Int32  # slot of its user
    attempt: Int32  # number of the attempt
    req_cap: Int32  # number of buckets of Hadoop's table of its asks
    run_prev: Int32  # previous one in the leaf's list of runnable applications
    run_next: Int32  # next one in that list
    nr_prev: Int32  # previous one in the leaf's list of applications that may not run yet
    nr_next: Int32  # next one in that list
    user_prev: Int32  # previous one in the user's list of applications that may not run yet
    user_next: Int32  # next one in that list
    free_next: Int32  # next free slot
    started: Int32  # 1: the attempt has got a container
    am_mb: int  # resources of the AM's container: memory (MB)
    am_vcores: int  # resources of the AM's container: vcores
    key: float  # its key under LTRF; the application with the smallest key is served first
    integral: float  # LTRF: its counted resources
    integral_ms: int  # LTRF: time up to which they are counted, ms
    omega: float  # its weight among the applications of its leaf
    kg: float  # its allocation since ``integral_ms``, in the ledger's measure
    phi: float  # its pseudo accumulated resources (as `LongTermRecord.phi`)
    ahead_a: float  # assumed execution of its tasks (as `LongTermRecord.ahead_a`)
    ahead_b: float  # assumed execution of its tasks (as `LongTermRecord.ahead_b`)
    more_mb: float  # node weighting of its memory (as `LongTermRecord.more_mb`)
    more_vc: float  # node weighting of its vcores (as `LongTermRecord.more_vc`)


class PreemptedRecord(Record):
    """Resources preempted on a node for one application. Each node has a list of these records."""

    app: Int32  # slot of the application
    next: Int32  # next record of the node
    serial: int  # serial number of the application's attempt
    mb: int  # the resources: memory (MB)
    vcores: int  # the resources: vcores


class KillRecord(Record):
    """A pending kill. ``k`` is a ring of these records, ordered by time."""

    t: int  # time of the kill
    c: int  # slot of the container
    serial: int  # serial number of the container


class UserRecord(Record):
    """A user."""

    n_run: int  # number of the user's runnable applications
    max_apps: int  # limit of this number
    nr_head: int  # first one in the list of the user's applications that may not run yet
    nr_tail: int  # last one in that list


class _Fields(NamedTuple):
    g: Column[Globals]  # globals: one record
    q: Column[QueueRecord]  # queues
    a: Column[AppRecord]  # applications
    n: Column[NodeRecord]  # nodes
    c: Column[ContainerRecord]  # containers
    r: Column[AskRecord]  # outstanding asks
    p: Column[PreemptedRecord]  # resources preempted on nodes for applications
    k: Column[KillRecord]  # pending kills
    u: Column[UserRecord]  # users
    log: Column[LogRecord]  # log records that Python has not read yet
    heap: Column[int]  # application slots: each leaf's two heaps (QueueRecord.heap_off)
    order: Column[int]  # queue slots, parents before their children
    leaves: Column[int]  # queue slots of the leaves, in the order of creation
    work: Column[int]  # scratch; the queue of starved applications is in its second half
    x: Column[LongTermRecord]  # long-term values of each queue
    xg: Column[LongTermGlobals]  # settings of the ledger: one record
    seat: Column[SeatRecord]  # entries in the tournaments, by queue
    sizes: Column[SizeRecord]  # sizes of the leaves' smallest asks
    views: Column[ViewRecord]  # views of the tournaments
    inside: Column[int]  # by view and queue: number of its children that take part
    tree: Column[int]  # by view and parent: winners at the inner nodes, then the children
    due: Column[int]  # time (exclusive, ms) up to which the same element of ``tree`` is valid
    aside: Column[int]  # slots of queues that the present choice has tried without result
    win: Table[float]  # (queues, parts + 1): rings of the parts of sliding windows


class State(Arrays, _Fields):  # type: ignore[misc]
    """The whole state. Full arrays are replaced by larger ones (``Scheduler.grow``)."""

    scheduler = "fair"
