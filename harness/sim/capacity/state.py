"""The scheduler's state: one NamedTuple of record arrays, and the codes that the kernels return.

Contains no behaviour. Times are int64 milliseconds, memory is int64 MB, vcores are int64; capacities, weights and
ratios are float32, as in Hadoop. -1 means "none" in every index. Containers, nodes, asks and the log have the fields of
``harness.sim.state``.
"""

from __future__ import annotations

from typing import NamedTuple

from harness.sim.arrays import Arrays, Column, Float32, Int32, Record, Table
from harness.sim.longterm_state import LongTermGlobals, LongTermRecord
from harness.sim.state import MUT_HASHORDER as MUT_HASHORDER
from harness.sim.state import NEED_ROOM as NEED_ROOM
from harness.sim.state import PREEMPTED as PREEMPTED
from harness.sim.state import REJECTED as REJECTED
from harness.sim.state import VICTIM as VICTIM
from harness.sim.state import AskRecord, ContainerRecord, LogRecord
from harness.sim.state import NodeRecord as _NodeRecord

#: A kind of log record that the Fair Scheduler does not have: an application is activated.
ACTIVATED = 7

# States of a queue (QueueRecord.state).
RUNNING, DRAINING, STOPPED = 0, 1, 2

# Results of offering a node to a queue: nothing to assign, a proposal (Globals.p_*), or a limit was reached (headroom
# in Globals.h_*).
NOTHING, PROPOSED, LIMIT = 0, 1, 2

# Features that a mutation test can switch off (Globals.mutations, a bit mask; 0 in every real run). Bit 16 is
# MUT_HASHORDER.
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
# Effects of preemption on a container or a reservation (LogRecord.why of a record of the kind VICTIM).
MARKED, KILLED, RESERVATION_KILLED = 1, 2, 3


class Globals(Record):
    """Globals: one record."""

    n_queues: int  # number of queues
    n_leaves: int  # number of leaves
    system_apps: int  # ``maximum-applications``
    queue_apps: int  # ``global-queue-max-application``
    n_nodes: int  # number of registered nodes
    cluster_mb: int  # total capacity of the registered nodes: memory (MB)
    cluster_vcores: int  # total capacity of the registered nodes: vcores
    # total capacity of the default partition, which excludes a lost node already while its containers are
    # dropped: memory (MB)
    label_mb: int
    # total capacity of the default partition, which excludes a lost node already while its containers are
    # dropped: vcores
    label_vcores: int
    min_mb: int  # minimum allocation: memory (MB)
    min_vcores: int  # minimum allocation: vcores
    conf_max_mb: int  # configured maximum allocation: memory (MB)
    conf_max_vcores: int  # configured maximum allocation: vcores
    node_max_mb: int  # largest memory of a registered node (MB)
    node_max_vcores: int  # largest number of vcores of a registered node
    node_max_known: int  # 1: a node is registered
    max_by_nodes: int  # 1: asks are clamped to the largest node, as in an RM that has been up for 10 s
    drf: int  # 1: DominantResourceCalculator; 0: DefaultResourceCalculator
    look: int  # 1: ``reservations-continue-look-all-nodes``
    off_max: int  # ``per-node-heartbeat.maximum-offswitch-assignments``
    multi: int  # ``per-node-heartbeat.multiple-assignments-enabled``
    con_max: int  # ``per-node-heartbeat.maximum-container-assignments``; -1: no limit
    max_priority: int  # ``yarn.cluster.max-application-priority``
    mutations: int  # bit set of the features that a mutation test has switched off (MUT_...)
    launch: int  # 1: a node reports containers that the AM has fetched as launched, one heartbeat later
    manual_acquire: int  # 1: a script decides when AMs fetch their containers; 0: they fetch them at once
    cleanup_heartbeats: int  # number of heartbeats after which a node reports a killed container as completed
    cluster_ts: int  # start time of the ResourceManager, which is part of all IDs
    free_app: int  # first free slot of the applications
    free_c: int  # first free slot of the containers
    free_r: int  # first free slot of the asks
    free_h: int  # first free slot of ``h``
    n_free_app: int  # number of free slots of the applications
    n_free_c: int  # number of free slots of the containers
    n_free_r: int  # number of free slots of the asks
    n_free_h: int  # number of free slots of ``h``
    serial: int  # last serial number given to a container, a reservation or an attempt
    next_app_id: int  # number of the next application
    node_seq: int  # number of the next node
    req_seq: int  # number of the next ask
    n_log: int  # number of records in ``log``
    n_running: int  # number of live containers
    p_app: int  # the present proposal: the application
    p_ask: int  # the present proposal: the ask
    p_reserve: int  # the present proposal: 1: the node is to be reserved
    p_give: int  # the present proposal: the node whose reservation is given up; -1: none
    h_mb: int  # headroom of the leaf that last returned LIMIT: memory (MB)
    h_vcores: int  # headroom of the leaf that last returned LIMIT: vcores
    alloc_mb: int  # total resources of the live containers: memory (MB)
    alloc_vcores: int  # total resources of the live containers: vcores
    last_c: int  # slot of the container assigned last
    last_mb: int  # memory of the container assigned last (MB)
    last_vcores: int  # vcores of the container assigned last
    hooks: int  # reader of the scheduler's log: 0 (none), INTEGRALS or WORLD
    kill_n: int  # as ``preemption``: the simulator's loop then calls ``run_kills``
    preemption: int  # 1: the preemption policy runs periodically
    n_held_back: int  # number of applications blocked by a limit of parallel applications
    limited: int  # 1: some limit of parallel applications is or was configured
    n_asked: int  # number of outstanding containers of all asks
    least_ask_mb: int  # lower bound of the resources of all asks ever: memory (MB)
    least_ask_vcores: int  # lower bound of the resources of all asks ever: vcores
    interval_ms: int  # preemption: configured period
    armed_ms: int  # preemption: period from the next round to the one after it
    round_ms: int  # preemption: time of the next round
    wait_ms: int  # time from marking a container to its kill, for guarantees
    balance_wait_ms: int  # time from marking a container to its kill, for balancing queues
    observe: int  # ``observe_only``
    balance: int  # ``preemption-to-balance-queue-after-satisfied.enabled``
    by_reservations: int  # ``select_based_on_reserved_containers``
    with_reserved: int  # ``additional_res_balance_based_on_reserved_containers``
    conservative: int  # ``conservative-drf``
    forgotten_ms: int  # marks that are older than this time are void
    round: int  # number of the present round of preemption
    allowed_mb: int  # resources that this round may still preempt: memory (MB)
    allowed_vcores: int  # resources that this round may still preempt: vcores
    nodes_peak: int  # largest number of nodes registered at once so far
    killed_n: int  # number of containers that preemption has killed so far
    killed_mb_ms: int  # memory of these containers, integrated over their lifetimes (MB ms)
    killed_vcore_ms: int  # their vcores, integrated over their lifetimes (vcore ms)
    ignored: float  # ``max_ignored_over_capacity``
    natural: float  # ``natural_termination_factor``
    per_round: Float32  # ``total_preemption_per_round``


class QueueRecord(Record):
    """A queue.

    Fields named ``used`` include reservations, fields named ``usage`` do not. Capacities are fractions (0 to 1) of
    the parent (absolute capacities: of the cluster), unless they are resources (``*_mb``, ``*_vcores``).
    """

    alive: Int32  # 1: it exists
    leaf: Int32  # 1: it is a leaf
    parent: Int32  # slot of its parent
    kids_off: Int32  # offset of its children in ``kids``
    n_kids: Int32  # number of its children
    pos: Int32  # its position among its parent's children
    tree_off: Int32  # the tournament of its children with outstanding asks: offset in ``tree``
    tree_cap: Int32  # that tournament's number of leaf positions
    policy: Int32  # of a parent: 1: ``priority-utilization``; 0: ``utilization``
    priority: int  # priority; of siblings, the larger number is served first under ``priority-utilization``
    fair: Int32  # of a leaf: 1: the ordering policy ``fair``
    sized: Int32  # of a leaf: 1: ``enable-size-based-weight``
    absolute: Int32  # 1: its capacity is configured as absolute resources
    state: Int32  # RUNNING, DRAINING or STOPPED
    n_apps: int  # number of applications in it and below it
    max_apps: int  # largest number of applications
    max_user_apps: int  # largest number of applications per user
    any_weight: Int32  # 1: some child has a weight
    conf_mb: int  # configured absolute capacity: memory (MB)
    conf_vcores: int  # configured absolute capacity: vcores
    confmax_mb: int  # configured absolute maximum: memory (MB)
    confmax_vcores: int  # configured absolute maximum: vcores
    eff_mb: int  # effective capacity: memory (MB)
    eff_vcores: int  # effective capacity: vcores
    effmax_mb: int  # effective maximum: memory (MB)
    effmax_vcores: int  # effective maximum: vcores
    used_mb: int  # resources of its containers and reservations: memory (MB)
    used_vcores: int  # resources of its containers and reservations: vcores
    reserved_mb: int  # resources of its reservations: memory (MB)
    reserved_vcores: int  # resources of its reservations: vcores
    pending_mb: int  # outstanding resources of its applications: memory (MB)
    pending_vcores: int  # outstanding resources of its applications: vcores
    am_mb: int  # resources of its AMs: memory (MB)
    am_vcores: int  # resources of its AMs: vcores
    am_limit_mb: int  # limit of these resources: memory (MB)
    am_limit_vcores: int  # limit of these resources: vcores
    lim_mb: int  # the limit that its parent handed down when the cluster last changed: memory (MB)
    lim_vcores: int  # the limit that its parent handed down when the cluster last changed: vcores
    L_mb: int  # the limit from which the AM limit is computed: the leaf's limit at its last consideration: memory (MB)
    L_vcores: int  # the limit from which the AM limit is computed: the leaf's limit at its last consideration: vcores
    U_mb: int  # limit of an active user: memory (MB)
    U_vcores: int  # limit of an active user: vcores
    U_version: int  # the version for which this limit was computed
    version: int  # incremented at each change that may change the user limit
    stuck: int  # 1 + the version at which every user was found to be over the limit
    floor_mb: int  # effective capacity, but at least the minimum allocation: memory (MB)
    floor_vcores: int  # effective capacity, but at least the minimum allocation: vcores
    own_max_apps: int  # its own ``maximum-applications``; below 0: none
    act_head: Int32  # first one in the list of all active applications
    act_tail: Int32  # last one in that list
    n_active: Int32  # length of that list
    ask_head: Int32  # first one in the list of active applications with asks, in the policy's order
    ask_tail: Int32  # last one in that list
    wait_head: Int32  # first one in the list of applications that wait for activation
    wait_tail: Int32  # last one in that list
    n_waiting: Int32  # length of that list
    stale_head: Int32  # head of the list of applications whose usage has changed (ordering policy ``fair``)
    user_head: Int32  # first one in the list of its users
    user_tail: Int32  # last one in that list
    n_users: Int32  # length of that list
    users_cap: Int32  # number of buckets of Hadoop's table of its users
    on_mb: int  # total resources of active users: memory (MB)
    on_vcores: int  # total resources of active users: vcores
    n_on: Int32  # number of active users
    n_active_users: Int32  # number of users that have applications with asks
    n_only_pending: Int32  # number of users that have waiting applications only
    only_pending: Int32  # this number when the user limit was last computed
    scaled: Int32  # bit set: the children's absolute capacities are scaled down in memory (1), in vcores (2)
    n_run: Int32  # number of active applications
    unseen: Int32  # 0: the leaf has considered each active application without asks once
    usage_mb: int  # resources of its containers: memory (MB)
    usage_vcores: int  # resources of its containers: vcores
    fair_mb: int  # effective capacity, for samples
    first_child: Int32  # first child; -1: it has none
    next_sibling: Int32  # next child of its parent
    parallel: int  # ``max-parallel-apps``
    n_runnable: Int32  # number of runnable applications in it and below it
    nr_head: Int32  # of a leaf: first one in the list of applications that may not run yet
    nr_tail: Int32  # of a leaf: last one in that list
    n_nonrun: Int32  # of a leaf: length of that list
    # its maximum allocation, which Hadoop's ApplicationMasterService enforces, not the scheduler: memory (MB)
    largest_mb: int
    # its maximum allocation, which Hadoop's ApplicationMasterService enforces, not the scheduler: vcores
    largest_vcores: int
    cap: Float32  # capacity
    max: Float32  # maximum capacity
    norm: Float32  # normalised weight
    weight: Float32  # weight
    abs: Float32  # absolute capacity
    abs_max: Float32  # absolute maximum capacity
    used_cap: Float32  # used capacity
    abs_used: Float32  # absolute used capacity
    mulp: Float32  # ``minimum-user-limit-percent``
    ulf: Float32  # ``user-limit-factor``
    am_pct: Float32  # ``maximum-am-resource-percent``
    user_ratios: Float32  # sum of its users' fractions of the cluster
    on_weight: Float32  # sum of the weights of its active users
    scale_mb: Float32  # factor by which the absolute capacities of its children are scaled down in memory
    scale_vcores: Float32  # the same factor in vcores


class AppRecord(Record):
    """An application (its current attempt). Fields named ``used`` do not include reservations."""

    alive: Int32  # 1: the slot is in use
    ghost: Int32  # 1: the attempt has ended, but is still in the waiting or active list
    q: Int32  # slot of its leaf
    user: Int32  # slot of its user over all leaves (`UserRecord.person`)
    uq: Int32  # slot of its user in this leaf
    id: int  # number in its ID
    priority: int  # its priority
    attempt: int  # number of the attempt
    serial: int  # serial number of the attempt
    managed: Int32  # 1: it has an AM
    am_running: Int32  # 1: the AM's container was granted
    am_ask: int  # 1: the AM's container is requested
    am_mb: int  # resources of the AM's container: memory (MB)
    am_vcores: int  # resources of the AM's container: vcores
    start_ms: int  # start time of the attempt
    used_mb: int  # resources of its containers: memory (MB)
    used_vcores: int  # resources of its containers: vcores
    reserved_mb: int  # resources of its reservations: memory (MB)
    reserved_vcores: int  # resources of its reservations: vcores
    pending_mb: int  # resources of its outstanding asks: memory (MB)
    pending_vcores: int  # resources of its outstanding asks: vcores
    cu: int  # used memory when the fair ordering last read it (MB)
    cp: int  # pending memory when the fair ordering last read it (MB)
    n_req: Int32  # number of its asks
    req_head: Int32  # first ask in its list
    req_cap: Int32  # number of buckets of Hadoop's table of its asks
    live_head: Int32  # first one in the list of its live containers
    live_tail: Int32  # last one in that list
    n_live: Int32  # number of its live containers
    live_cap: Int32  # number of buckets of Hadoop's table of its live containers
    n: int  # number of containers assigned to it so far, in all attempts
    cid: int  # last container number that the attempt has used
    active: Int32  # 1: it is active
    waiting: Int32  # 1: it waits for activation
    listed: Int32  # 1: it counts among its user's applications with asks
    in_asks: Int32  # 1: it is in the leaf's list of applications with asks
    stale: Int32  # 1: the fair ordering has to reposition it; 2: it was removed from the fair ordering's list
    act_prev: Int32  # previous one in the leaf's list of active applications
    act_next: Int32  # next one in that list
    ask_prev: Int32  # previous one in the leaf's list of active applications with asks
    ask_next: Int32  # next one in that list
    wait_prev: Int32  # previous one in the list of waiting applications
    wait_next: Int32  # next one in that list
    stale_next: Int32  # next one in the list of ``stale`` applications
    held_head: Int32  # first record of the list of its reservations (``h``)
    n_reserved: Int32  # number of nodes reserved for it
    started: Int32  # 1: the attempt has got a container
    free_next: Int32  # next free slot
    tag: int  # for the simulator: slot of the job
    usage_mb: int  # resources of its containers: memory (MB)
    usage_vcores: int  # resources of its containers: vcores
    integral_ms: int  # time up to which ``integral`` is counted, ms
    seen: Int32  # 1: its user's limit was computed for it; 2: and the leaf has forgotten the user since then
    old_mb: int  # if that is 2: resources of the user's containers and reservations when it did: memory (MB)
    old_vcores: int  # if that is 2: resources of the user's containers and reservations when it did: vcores
    runnable: Int32  # 1: it was runnable at the last check
    n_runnable: Int32  # number of its entries in the leaf's runnable list
    held_back: Int32  # 1: it is blocked by a limit of parallel applications
    nr_prev: Int32  # previous one in the leaf's list of blocked applications
    nr_next: Int32  # next one in that list
    user_prev: Int32  # previous one in the user's list of blocked applications
    user_next: Int32  # next one in that list
    n_asks: Int32  # number of outstanding containers of its asks
    integral: float  # its counted resources up to ``integral_ms`` (harness.sim.longterm_kernels)
    omega: float  # its weight among the applications of its leaf
    kg: float  # its allocation since ``integral_ms``, in the ledger's measure
    phi: float  # its pseudo accumulated resources (as `LongTermRecord.phi`)
    ahead_a: float  # assumed execution of its tasks (as `LongTermRecord.ahead_a`)
    ahead_b: float  # assumed execution of its tasks (as `LongTermRecord.ahead_b`)
    more_mb: float  # node weighting of its memory (as `LongTermRecord.more_mb`)
    more_vc: float  # node weighting of its vcores (as `LongTermRecord.more_vc`)


class ReservationRecord(Record):
    """Reservations of an application under one key (priority and allocation ID)."""

    app: Int32  # slot of the application
    n: Int32  # number of reservations
    priority: int  # the key: the priority
    alloc_id: int  # the key: the allocation ID
    cap: Int32  # number of buckets of Hadoop's table of these reservations
    again: Int32  # number of re-reservations
    head: Int32  # first one in the list of the reserved nodes, in the order of reservation
    tail: Int32  # last one in that list
    next: Int32  # next key of the application
    seq: Int32  # number that orders the keys by their first reservation


class UserRecord(Record):
    """A user in a leaf."""

    q: Int32  # slot of the leaf
    in_map: Int32  # 1: the leaf knows the user
    on: Int32  # 1: the user is active; 2: the user is not; 0: the leaf does not know the user
    used_mb: int  # resources of the user's containers and reservations: memory (MB)
    used_vcores: int  # resources of the user's containers and reservations: vcores
    am_mb: int  # resources of the user's AMs: memory (MB)
    am_vcores: int  # resources of the user's AMs: vcores
    pend: int  # number of waiting applications
    act: Int32  # number of active applications
    n_listed: Int32  # number of applications with asks
    next: Int32  # next one in the leaf's list of users
    prev: Int32  # previous one in that list
    hash: int  # Java's hash code of the name, for the order in Hadoop's tables
    person: Int32  # the user's first record in any leaf, in which the following four fields count over all leaves
    max_apps: int  # limit of parallel applications
    n_run: Int32  # number of runnable applications
    nr_head: Int32  # first one in the list of blocked applications
    nr_tail: Int32  # last one in that list
    cached: int  # 1 + the version at which the leaf last checked the user's limit (only if Globals.limited is 1)
    barred: Int32  # 1: the user was over the limit then
    barred_mb: int  # that holds for applications that have reserved at most this memory (MB)
    barred_vcores: int  # and at most these vcores
    ratio: Float32  # the user's fraction of the cluster


class NodeRecord(_NodeRecord):
    """Nodes: the fields of all schedulers, and the reservation's position in its application's list."""

    res_h: Int32  # the reservation's record in ``h``
    res_next: Int32  # next node in the list of that record


class LevelRecord(Record):
    """One level of the descent from the root to a leaf."""

    q: Int32  # slot of the parent queue
    lim_mb: int  # limit passed to it: memory (MB)
    lim_vcores: int  # limit passed to it: vcores
    blocked_mb: int  # headroom that is withheld for its children that have returned LIMIT: memory (MB)
    blocked_vcores: int  # headroom that is withheld for its children that have returned LIMIT: vcores
    limited: int  # 1: a child has returned LIMIT
    aside: int  # number of its children that are excluded because they got nothing


class PreemptionRecord(Record):
    """Values of a queue in one round of preemption."""

    disabled: Int32  # 1: preemption is disabled for it
    nameless: Int32  # 1: another queue has the same short name, or it is the root
    obtains: Int32  # 1: containers are taken from it in this round
    pending_mb: int  # outstanding resources that the user limits admit: memory (MB)
    pending_vcores: int  # outstanding resources that the user limits admit: vcores
    unreserved_mb: int  # the same without reserved resources: memory (MB)
    unreserved_vcores: int  # the same without reserved resources: vcores
    ideal_mb: int  # ideal allocation: memory (MB)
    ideal_vcores: int  # ideal allocation: vcores
    fixed_mb: int  # usage above the guarantee that is not preemptable: memory (MB)
    fixed_vcores: int  # usage above the guarantee that is not preemptable: vcores
    loose_mb: int  # usage above the guarantee that is preemptable: memory (MB)
    loose_vcores: int  # usage above the guarantee that is preemptable: vcores
    excess_mb: int  # usage above the ideal allocation, to be preempted: memory (MB)
    excess_vcores: int  # usage above the ideal allocation, to be preempted: vcores
    obtain_mb: int  # amount to preempt in this round: memory (MB)
    obtain_vcores: int  # amount to preempt in this round: vcores
    norm_mb: float  # its fraction of the resources that are still to be distributed: memory (MB)
    norm_vcores: float  # its fraction of the resources that are still to be distributed: vcores


class MarkRecord(Record, lines=False):
    """A container that preemption has chosen, by its slot."""

    serial: int  # serial number of the container
    since: int  # time when it was marked, ms; -1: it is not marked
    round: int  # number of the round that chose it last
    q: Int32  # its leaf, once it has completed


class _Fields(NamedTuple):
    g: Column[Globals]  # globals: one record
    q: Column[QueueRecord]  # queues
    a: Column[AppRecord]  # applications
    n: Column[NodeRecord]  # nodes
    c: Column[ContainerRecord]  # containers
    r: Column[AskRecord]  # outstanding asks
    h: Column[ReservationRecord]  # reservations by application and key
    u: Column[UserRecord]  # users of leaves
    f: Column[LevelRecord]  # levels of the descent from the root to a leaf
    log: Column[LogRecord]  # log records that Python has not read yet
    order: Column[int]  # queue slots, parents before their children
    kids: Column[int]  # queue slots: each parent's children, in the order that breaks ties
    tree: Column[int]  # queue slots: each parent's tournament of its children
    leaves: Column[int]  # queue slots of the leaves
    work: Column[int]  # scratch
    p: Column[PreemptionRecord]  # values of queues for preemption, by slot
    m: Column[MarkRecord]  # containers that preemption has chosen, by slot
    takes: Column[int]  # queue slots of the leaves, in the order in which they are preempted
    pw: Column[int]  # scratch of preemption (`ideal.scratch`)
    cost: Column[float]  # cost of making room for a node's reservation, in ascending order
    x: Column[LongTermRecord]  # long-term values of each queue
    xg: Column[LongTermGlobals]  # settings of the ledger: one record
    win: Table[float]  # (queues, parts + 1): rings of the parts of sliding windows


class State(Arrays, _Fields):  # type: ignore[misc]
    """The whole state. Full arrays are replaced by larger ones (``Scheduler.grow``)."""

    scheduler = "capacity"
