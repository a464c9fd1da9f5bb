"""The scheduler's state: one NamedTuple of record arrays. Contains no behaviour.

It has the fields that shared kernels read (`harness.sim.state`) and few others. Times are int64 milliseconds, memory is
int64 MB, vcores are int64.
"""

from __future__ import annotations

from typing import NamedTuple

from harness.sim.arrays import Arrays, Column, Float32, Int32, Record, Table
from harness.sim.longterm_state import LongTermGlobals, LongTermRecord
from harness.sim.state import AskRecord, ContainerRecord, LogRecord
from harness.sim.state import NodeRecord as NodeRecord

#: The slots of the two queues, ``root`` and ``root.default``.
ROOT, DEFAULT = 0, 1

# Features that a mutation test can switch off (Globals.mutations, a bit mask; 0 in every real run). Bit 16 is
# MUT_HASHORDER.
#: Mutation: applications are served in the order in which they asked, not in the order of their ids.
MUT_IDS = 1 << 0
#: Mutation: a heartbeat assigns at most one container for each ask.
MUT_ONE = 1 << 1
#: Mutation: after an ask that does not fit, the application's later asks are tried.
MUT_PRIORITIES = 1 << 2
#: Mutation: asks keep the vcores that the application wanted.
MUT_VCORES = 1 << 3
MUT_LAUNCH = 1 << 4
MUT_CLEANUP = 1 << 5
MUT_MANUAL = 1 << 6
MUT_INCREMENTS = 1 << 7


class Globals(Record):
    """Globals: one record."""

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
    preemption: int  # always 0: this scheduler does not preempt
    kill_n: int  # number of pending kills: always 0
    head_mb: int  # headroom of all applications, set by each heartbeat with free memory for a container: memory (MB)
    head_vcores: int  # headroom of all applications, set by each heartbeat with free memory for a container: vcores
    told: int  # number of these heartbeats so far
    n_untold: int  # number of attempts that began after the last of these heartbeats, and have no headroom yet


class QueueRecord(Record):
    """A queue."""

    alive: Int32  # 1: it exists
    leaf: Int32  # 1: it is a leaf
    parent: Int32  # slot of its parent
    first_child: Int32  # first child; -1: it has none
    next_sibling: Int32  # next child of its parent
    usage_mb: int  # resources of its containers: memory (MB)
    usage_vcores: int  # resources of its containers: vcores
    pending_mb: int  # resources of its applications' outstanding asks: memory (MB)
    pending_vcores: int  # resources of its applications' outstanding asks: vcores
    ask_head: Int32  # first one in the list of applications with outstanding asks, in the order of their IDs
    ask_tail: Int32  # last one in that list
    n_run: Int32  # number of its applications
    fair_mb: int  # for samples: always 0
    nr_head: Int32  # first one in the list of applications that may not run: always -1
    nr_tail: Int32  # last one in that list: always -1
    n_nonrun: Int32  # length of that list: always 0
    weight: Float32  # for samples: always 1


class AppRecord(Record):
    """An application (its current attempt)."""

    alive: Int32  # 1: the slot is in use
    q: Int32  # slot of its leaf
    user: Int32  # slot of its user
    id: int  # number in its ID
    attempt: int  # number of the attempt
    serial: int  # serial number of the attempt
    managed: Int32  # 1: it has an AM
    am_running: Int32  # 1: the AM's container was granted
    am_mb: int  # resources of the AM's container: memory (MB)
    am_vcores: int  # resources of the AM's container: vcores
    start_ms: int  # start time of the attempt
    usage_mb: int  # resources of its containers: memory (MB)
    usage_vcores: int  # resources of its containers: vcores
    pending_mb: int  # resources of its outstanding asks: memory (MB)
    pending_vcores: int  # resources of its outstanding asks: vcores
    n_req: Int32  # number of its asks
    req_head: Int32  # first ask in its list
    req_cap: Int32  # number of buckets of Hadoop's table of its asks
    n_asks: Int32  # number of outstanding containers of its asks
    ask_prev: Int32  # previous one in the list of applications with asks
    ask_next: Int32  # next one in that list
    live_head: Int32  # first one in the list of its live containers
    live_tail: Int32  # last one in that list
    n_live: Int32  # number of its live containers
    live_cap: Int32  # number of buckets of Hadoop's table of its live containers
    n: int  # number of containers assigned to it so far, in all attempts
    cid: int  # last container number that the attempt has used
    n_reserved: Int32  # number of nodes reserved for it: always 0
    started: Int32  # 1: the attempt has got a container
    runnable: Int32  # 1: it may run
    nr_prev: Int32  # lists of applications that may not run, which are empty: not in use
    nr_next: Int32  # not in use
    user_prev: Int32  # not in use
    user_next: Int32  # not in use
    free_next: Int32  # next free slot
    tag: int  # for the simulator: slot of the job
    untold: int  # 1 + Globals.told at the attempt's start; the attempt has no headroom until Globals.told changes
    integral: float  # its counted resources
    integral_ms: int  # time up to which they are counted, ms
    omega: float  # its weight among the applications of its leaf
    kg: float  # its allocation since ``integral_ms``, in the ledger's measure
    phi: float  # its pseudo accumulated resources (as `LongTermRecord.phi`)
    ahead_a: float  # assumed execution of its tasks (as `LongTermRecord.ahead_a`)
    ahead_b: float  # assumed execution of its tasks (as `LongTermRecord.ahead_b`)
    more_mb: float  # node weighting of its memory (as `LongTermRecord.more_mb`)
    more_vc: float  # node weighting of its vcores (as `LongTermRecord.more_vc`)


class UserRecord(Record):
    """A user. Users have no limits here."""

    n_run: int  # number of the user's running applications
    max_apps: int  # limit of this number
    nr_head: int  # first one in the list of applications that may not run: always -1
    nr_tail: int  # last one in that list: always -1


class _Fields(NamedTuple):
    g: Column[Globals]  # globals: one record
    q: Column[QueueRecord]  # queues
    a: Column[AppRecord]  # applications
    n: Column[NodeRecord]  # nodes
    c: Column[ContainerRecord]  # containers
    r: Column[AskRecord]  # outstanding asks
    u: Column[UserRecord]  # users
    log: Column[LogRecord]  # log records that Python has not read yet
    order: Column[int]  # queue slots, parents before their children
    leaves: Column[int]  # queue slots of the leaves
    work: Column[int]  # scratch
    x: Column[LongTermRecord]  # long-term values of each queue
    xg: Column[LongTermGlobals]  # settings of the ledger: one record
    win: Table[float]  # (queues, parts + 1): rings of the parts of sliding windows


class State(Arrays, _Fields):  # type: ignore[misc]
    """The whole state. Full arrays are replaced by larger ones (``Scheduler.grow``)."""

    scheduler = "fifo"
