"""Common parts of the states of all simulated schedulers: codes, and the records that shared kernels work on.

A scheduler's state is one NamedTuple of record arrays (`harness.sim.arrays.Arrays`). The kernels that all schedulers
share take it as a `SchedulerState`, which declares the arrays and fields that it has to have
(`harness.sim.fifo.state` is the smallest complete example).

Contains no behaviour. Times are int64 milliseconds, memory is int64 MB, vcores are int64. -1 means "none" in every
index.
"""

from __future__ import annotations

from typing import Protocol

from harness.sim.arrays import Column, Int8, Int32, Record, Table
from harness.sim.longterm_state import LongTermGlobals, LongTermRecord

# Results of kernels other than an index or a count.
NEED_ROOM = -1  # an array is full; nothing was changed; call Scheduler.grow() and repeat
REJECTED = -2  # the application was rejected (its AM asks for a resource in which the queue's maximum is 0)
INVALID_ASK = -3  # the queue's maximum is 0 in a requested resource; nothing was changed
#: The application, container or node that a call names is not live; nothing was changed.
IGNORED = -4

#: How the next queue is chosen (Globals.order_mode): by Hadoop's comparators; by QueueRecord.key at each level of the
#: tree; or by QueueRecord.key among all leaves.
STOCK, KEYED_LEVELS, KEYED_FLAT = 0, 1, 2

#: Why a container completed (LogRecord.why).
FINISHED, RELEASED, PREEMPTED, LOST, APP_END = 1, 2, 3, 4, 5

#: Mutation: ignore the order of hash tables (for tests that must fail then); the same bit in all schedulers.
MUT_HASHORDER = 1 << 16
#: Who reads the scheduler's log (``G.hooks``, 0: nobody): the long-term integrals, or these and the simulated world.
INTEGRALS, WORLD = 1, 2
#: Kinds of log records (LogRecord.kind). VICTIM: preemption has chosen the container.
ASSIGNED, COMPLETED, RESERVED, UNRESERVED, VICTIM = 1, 2, 3, 4, 5
#: Kind of the log records of a container that was assigned and killed at the same heartbeat; its AM never learns of it.
UNHEARD = 0


class NodeRecord(Record):
    """A node. Amounts are in MB and vcores."""

    avail_mb: int  # free resources: memory (MB)
    avail_vcores: int  # free resources: vcores
    hb: int  # heartbeats since it joined
    alive: Int32  # 1: the node is registered
    res_app: Int32  # application for which the node is reserved; -1: it is not reserved
    pre_head: Int32  # head of the list of resources preempted on the node for starved applications
    n_done: Int32  # length of the list of containers to report as completed
    n_launch: Int32  # containers that the next heartbeat will report as launched
    n_c: Int32  # number of containers on the node
    c_tail: Int32  # last container in the node's list
    done_head: Int32  # first container of the list of those to report as completed
    done_tail: Int32  # last container of that list
    map_cap: Int32  # buckets of Hadoop's hash table of the node's containers, which determines their order
    total_mb: int  # capacity: memory (MB)
    total_vcores: int  # capacity: vcores
    pre_mb: int  # total resources preempted on the node for starved applications: memory (MB)
    pre_vcores: int  # total resources preempted on the node for starved applications: vcores
    c_head: Int32  # first container in the node's list
    rack: Int32  # rack number
    hash: int  # Java's hash code of the node ID, for the order in Hadoop's tables
    seq: int  # insertion number in Hadoop's table of nodes; renewed when the node joins and when its capacity changes
    res_mb: int  # resources of the reserved container: memory (MB)
    res_vcores: int  # resources of the reserved container: vcores
    res_serial: int  # serial number of the reserved container
    res_priority: int  # priority of the ask for which the node is reserved
    res_alloc_id: int  # allocation ID of that ask
    res_cid: int  # number in the ID of the reserved container
    draining: Int32  # 1: graceful decommissioning is under way
    over: Int32  # 1: each heartbeat kills the containers that exceed the capacity (overcommit timeout of 0)


class ContainerRecord(Record):
    """A container. Amounts are in MB and vcores."""

    app: Int32  # slot of its application
    node: Int32  # slot of its node
    n_next: Int32  # next one in the node's list of containers
    n_prev: Int32  # previous one in that list
    a_next: Int32  # next one in the application's list of live containers
    a_prev: Int32  # previous one in that list
    d_next: Int32  # next container in the node's list of those to report as completed
    free_next: Int32  # next free slot
    live: Int8  # 1: it counts towards the usage of its application and queue
    marked: Int8  # 1: preemption has chosen it
    node_marked: Int8  # 1: it is in the node's list of containers preempted for an application
    am: Int8  # 1: it runs the application master (AM)
    on_node: Int8  # 1: it occupies resources of the node
    alive: Int8  # 1: the slot is in use
    done: Int8  # 1: it is in the node's list of containers to report as completed
    kill_due: Int8  # 1: preemption has scheduled its kill
    finishing: Int8  # 1: its process has exited, but the node has not reported this yet
    acquired: Int8  # 1: the AM has fetched it
    launched: Int8  # 1: the node has reported it as launched
    from_reservation: Int8  # 1: it was assigned to a reserved node
    hb_left: Int32  # heartbeats of the node until it is reported as completed
    mb: int  # its memory (MB)
    vcores: Int32  # its vcores
    acq_hb: Int32  # the node's heartbeat count (``hb``) when the AM fetched the container
    start_ms: int  # time of the assignment, ms
    serial: int  # serial number among all containers and attempts ever
    cid: int  # number in the container ID
    alloc_id: int  # allocation ID of the ask that it serves
    ask_mb: int  # memory per container (MB) with which its request is restored
    ask_vcores: Int32  # vcores per container with which it is restored
    ask_count: Int32  # number of containers with which it is restored
    n: Int32  # number among the application's containers, from 1
    priority: Int32  # priority of the ask that it serves
    app_id: Int32  # number in the application ID
    attempt: Int32  # number of the attempt


class AskRecord(Record):
    """An outstanding ask. An application has a list of asks, ordered by priority and allocation ID."""

    app: Int32  # slot of the application
    next: Int32  # next ask in the application's list
    priority: Int32  # priority; the ask with the smallest number is served first
    # the container whose request was restored as this ask (-1: none): Hadoop uses one object for both, so that
    # their counts change together
    given: Int32
    mb: int  # memory of one container (MB)
    vcores: int  # vcores of one container
    count: int  # number of outstanding containers
    alloc_id: int  # allocation ID, by which AMs tell asks of one priority apart
    seq: int  # serial number among all asks ever
    given_serial: int  # serial number of the container ``given``, whose slot may be reused


class LogRecord(Record):
    """A log record of one event. Slot ``c`` may already be reused for another container; ``serial`` is unique."""

    t: int  # time, ms
    kind: int  # one of ASSIGNED ... VICTIM
    why: int  # why a container completed, or what preemption did to it
    app: int  # slot of the application
    app_id: int  # number in the application's ID
    c: int  # slot of the container
    serial: int  # serial number of the container
    n: int  # number among the application's containers
    cid: int  # number in the container's ID
    node: int  # slot of the node
    mb: int  # memory of the container (MB)
    vcores: int  # vcores of the container
    priority: int  # priority of the container's ask
    am: int  # 1: the container runs the AM
    from_reservation: int  # 1: the container was assigned to a reserved node
    for_app: int  # VICTIM: the application for which the container is preempted
    kill_ms: int  # VICTIM: time of the kill, ms
    start_ms: int  # time of the container's assignment, ms
    attempt: int  # number of the attempt


class AnyGlobals(Protocol):
    """The fields of the globals that every scheduler has, because shared kernels read or write them."""

    n_queues: int  # number of queues
    n_nodes: int  # number of registered nodes
    cluster_mb: int  # total capacity of the registered nodes: memory (MB)
    cluster_vcores: int  # total capacity of the registered nodes: vcores
    alloc_mb: int  # total resources of the live containers: memory (MB)
    alloc_vcores: int  # total resources of the live containers: vcores
    min_mb: int  # minimum allocation: memory (MB)
    min_vcores: int  # minimum allocation: vcores
    conf_max_mb: int  # configured maximum allocation: memory (MB)
    conf_max_vcores: int  # configured maximum allocation: vcores
    node_max_mb: int  # largest memory of a registered node (MB)
    node_max_vcores: int  # largest number of vcores of a registered node
    node_max_known: int  # 1: a node is registered
    max_by_nodes: int  # 1: asks are clamped to the largest node, as in an RM that has been up for 10 s
    launch: int  # 1: a node reports containers that the AM has fetched as launched, one heartbeat later
    manual_acquire: int  # 1: a script decides when AMs fetch their containers; 0: they fetch them at once
    cleanup_heartbeats: int  # number of heartbeats after which a node reports a killed container as completed
    mutations: int  # bit set of the features that a mutation test has switched off (MUT_...)
    cluster_ts: int  # start time of the ResourceManager, which is part of all IDs
    free_app: int  # first free slot of the applications
    free_c: int  # first free slot of the containers
    free_r: int  # first free slot of the asks
    n_free_app: int  # number of free slots of the applications
    n_free_c: int  # number of free slots of the containers
    n_free_r: int  # number of free slots of the asks
    serial: int  # last serial number given to a container or an attempt
    next_app_id: int  # number of the next application
    node_seq: int  # number of the next node
    req_seq: int  # number of the next ask
    n_log: int  # number of records in ``log``
    n_leaves: int  # number of leaves
    last_mb: int  # memory of the container assigned last (MB)
    last_vcores: int  # vcores of the container assigned last
    last_c: int  # slot of the container assigned last
    n_running: int  # number of live containers
    hooks: int  # reader of the scheduler's log: 0 (none), INTEGRALS or WORLD
    n_asked: int  # number of outstanding containers of all asks
    least_ask_mb: int  # lower bound of the resources of all asks ever: memory (MB)
    least_ask_vcores: int  # lower bound of the resources of all asks ever: vcores
    preemption: int  # 1: the scheduler preempts
    kill_n: int  # number of pending kills


class AnyQueue(Protocol):
    """The fields of a queue that every scheduler has."""

    alive: int  # 1: it exists
    leaf: int  # 1: it is a leaf
    parent: int  # slot of its parent
    first_child: int  # first child; -1: it has none
    next_sibling: int  # next child of its parent
    usage_mb: int  # resources of the containers in it and below it: memory (MB)
    usage_vcores: int  # resources of the containers in it and below it: vcores
    pending_mb: int  # of a leaf: outstanding resources of all its applications: memory (MB)
    pending_vcores: int  # of a leaf: outstanding resources of all its applications: vcores
    n_run: int  # number of runnable applications in it and below it
    fair_mb: int  # for samples: what the scheduler regards as its share, memory (MB)
    nr_head: int  # of a leaf: first one in the list of applications that may not run yet
    nr_tail: int  # of a leaf: last one in that list
    n_nonrun: int  # of a leaf: number of applications that may not run yet
    weight: float  # for samples: its weight


class AnyApp(Protocol):
    """The fields of an application (its current attempt) that every scheduler has."""

    alive: int  # 1: the slot is in use
    q: int  # slot of its leaf
    user: int  # slot of its user
    id: int  # number in its ID
    attempt: int  # number of the attempt
    serial: int  # serial number of the attempt
    managed: int  # 1: it has an AM
    am_running: int  # 1: the AM's container was granted
    am_mb: int  # resources of the AM's container: memory (MB)
    start_ms: int  # start time of the attempt
    usage_mb: int  # resources of its containers: memory (MB)
    usage_vcores: int  # resources of its containers: vcores
    pending_mb: int  # resources of its outstanding asks: memory (MB)
    pending_vcores: int  # resources of its outstanding asks: vcores
    n_req: int  # number of its asks
    req_head: int  # first ask in its list
    req_cap: int  # number of buckets of Hadoop's table of its asks
    n_asks: int  # number of outstanding containers of its asks
    live_head: int  # first container in the list of its live containers
    live_tail: int  # last one in the list of its live containers
    n_live: int  # number of its live containers
    live_cap: int  # number of buckets of Hadoop's table of its live containers
    n: int  # number of containers assigned to it so far, in all attempts
    cid: int  # last container number that the attempt has used
    n_reserved: int  # number of nodes reserved for it
    started: int  # 1: the attempt has got a container
    runnable: int  # 1: it may run
    nr_prev: int  # previous one in the leaf's list of applications that may not run yet
    nr_next: int  # next one in that list
    user_prev: int  # previous one in the user's list of applications that may not run yet
    user_next: int  # next one in that list
    free_next: int  # next free slot
    tag: int  # for the simulator: slot of the job
    integral: float  # its counted resources, in the ledger's measure
    integral_ms: int  # time up to which they are counted, ms
    omega: float  # its weight among the applications of its leaf
    kg: float  # its allocation since ``integral_ms``, in the ledger's measure
    phi: float  # its pseudo accumulated resources (as `LongTermRecord.phi`)
    ahead_a: float  # assumed execution of its tasks (as `LongTermRecord.ahead_a`)
    ahead_b: float  # assumed execution of its tasks (as `LongTermRecord.ahead_b`)
    more_mb: float  # node weighting of its memory (as `LongTermRecord.more_mb`)
    more_vc: float  # node weighting of its vcores (as `LongTermRecord.more_vc`)


class AnyUser(Protocol):
    """The fields of a user that every scheduler has."""

    n_run: int  # number of the user's runnable applications
    max_apps: int  # limit of this number
    nr_head: int  # first one in the list of the user's applications that may not run yet
    nr_tail: int  # last one in that list


class SchedulerState(Protocol):
    """The state of any scheduler, as the kernels that all schedulers share see it."""

    #: The address by which compiled code finds the arrays (`harness.sim.arrays.Arrays`); only Python may read it.
    address: int

    @property
    def g(self) -> Column[AnyGlobals]:
        """The globals: one record."""

    @property
    def q(self) -> Column[AnyQueue]:
        """The queues."""

    @property
    def a(self) -> Column[AnyApp]:
        """The applications."""

    @property
    def n(self) -> Column[NodeRecord]:
        """The nodes."""

    @property
    def c(self) -> Column[ContainerRecord]:
        """The containers."""

    @property
    def r(self) -> Column[AskRecord]:
        """The outstanding asks."""

    @property
    def u(self) -> Column[AnyUser]:
        """The users."""

    @property
    def log(self) -> Column[LogRecord]:
        """The log records that Python has not read yet."""

    @property
    def order(self) -> Column[int]:
        """Slots of the queues, parents before their children."""

    @property
    def leaves(self) -> Column[int]:
        """Slots of the leaves."""

    @property
    def work(self) -> Column[int]:
        """Memory for intermediate results."""

    @property
    def x(self) -> Column[LongTermRecord]:
        """The long-term values of each queue."""

    @property
    def xg(self) -> Column[LongTermGlobals]:
        """The settings of the ledger: one record."""

    @property
    def win(self) -> Table[float]:
        """The parts of sliding windows: array of shape (queues, parts + 1)."""
