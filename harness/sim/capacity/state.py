"""The scheduler's state: one NamedTuple of record arrays, and the codes that the kernels return.

Contains no behaviour. Times are int64 milliseconds, memory is int64 MB, vcores are int64; capacities, weights and
ratios are float32, as in Hadoop. -1 means "none" in every index. Containers, nodes, asks and the log have the fields of
``harness.sim.state``.
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

#: A kind of log record that the Fair Scheduler does not have: an application is activated.
ACTIVATED = 7

# States of a queue (Q.state).
RUNNING, DRAINING, STOPPED = 0, 1, 2

# Results of offering a node to a queue: nothing to assign, a proposal (G.p_*), or a limit was reached (headroom in
# G.h_*).
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
# Effects of preemption on a container or a reservation (LOG.why of a record of the kind VICTIM).
MARKED, KILLED, RESERVATION_KILLED = 1, 2, 3

#: Globals: one record.
G = record(
    "n_queues n_leaves",  # numbers of queues and leaves
    "system_apps queue_apps",  # ``maximum-applications`` and ``global-queue-max-application``
    "n_nodes",  # number of registered nodes
    "cluster_mb cluster_vcores",  # total capacity of the registered nodes
    # total capacity of the default partition, which excludes a lost node already while its containers are dropped
    "label_mb label_vcores",
    "min_mb min_vcores",  # minimum allocation
    "conf_max_mb conf_max_vcores",  # configured maximum allocation
    "node_max_mb node_max_vcores node_max_known",  # maximum over the nodes of each resource; 1: a node is registered
    "max_by_nodes",  # 1: asks are clamped to the largest node, as in an RM that has been up for 10 s
    "drf",  # 1: DominantResourceCalculator; 0: DefaultResourceCalculator
    "look",  # 1: ``reservations-continue-look-all-nodes``
    "off_max",  # ``per-node-heartbeat.maximum-offswitch-assignments``
    # ``per-node-heartbeat``: multiple-assignments-enabled, maximum-container-assignments (-1: no limit)
    "multi con_max",
    "max_priority",  # ``yarn.cluster.max-application-priority``
    "mutations",  # bit set of the features that a mutation test has switched off (MUT_...)
    "launch",  # 1: a node reports containers that the AM has fetched as launched, one heartbeat later
    "manual_acquire",  # 1: a script decides when AMs fetch their containers; 0: they fetch them at once
    "cleanup_heartbeats",  # number of heartbeats after which a node reports a killed container as completed
    "cluster_ts",  # start time of the ResourceManager, which is part of all IDs
    # heads of the lists of free slots: applications, containers, asks, records of ``h``
    "free_app free_c free_r free_h",
    "n_free_app n_free_c n_free_r n_free_h",  # lengths of these lists
    "serial",  # last serial number given to a container, a reservation or an attempt
    "next_app_id node_seq req_seq",  # next numbers of an application, a node and an ask
    "n_log",  # number of records in ``log``
    "n_running",  # number of live containers
    # the present proposal: application, ask, 1 to reserve the node, and the node whose reservation is given up (or -1)
    "p_app p_ask p_reserve p_give",
    "h_mb h_vcores",  # headroom of the leaf that last returned LIMIT
    "alloc_mb alloc_vcores",  # total resources of the live containers
    "last_c last_mb last_vcores",  # slot and resources of the container assigned last
    "hooks",  # reader of the scheduler's log: 0 (none), INTEGRALS or WORLD
    "kill_n",  # as ``preemption``: the simulator's loop then calls ``run_kills``
    "preemption",  # 1: the preemption policy runs periodically
    "n_held_back",  # number of applications blocked by a limit of parallel applications
    "limited",  # 1: some limit of parallel applications is or was configured
    "n_asked",  # number of outstanding containers of all asks
    "least_ask_mb least_ask_vcores",  # lower bound of the resources of all asks ever
    # preemption: configured period, period from the next round to the one after it, and time of the next round
    "interval_ms armed_ms round_ms",
    "wait_ms balance_wait_ms",  # time from marking a container to its kill, for guarantees and for balancing queues
    "observe",  # ``observe_only``
    "balance",  # ``preemption-to-balance-queue-after-satisfied.enabled``
    "by_reservations with_reserved",  # ``select_based_on_reserved_containers`` and its ``additional_res_balance_...``
    "conservative",  # ``conservative-drf``
    "forgotten_ms",  # marks that are older than this time are void
    "round",  # number of the present round of preemption
    "allowed_mb allowed_vcores",  # resources that this round may still preempt
    "nodes_peak",  # largest number of nodes registered at once so far
    "killed_n",  # number of containers that preemption has killed so far
    "killed_mb_ms killed_vcore_ms",  # their memory and vcores, integrated over their lifetimes (MB ms, vcore ms)
    # ``max_ignored_over_capacity``, ``natural_termination_factor``, ``total_preemption_per_round``
    "ignored:d natural:d per_round:f",
)

#: A queue. Fields named ``used`` include reservations, fields named ``usage`` do not. Capacities are fractions (0 to 1)
#: of the parent (absolute capacities: of the cluster), unless they are resources (``*_mb``, ``*_vcores``).
Q = record(
    "alive:i leaf:i parent:i",  # 1: it exists; 1: it is a leaf; slot of its parent
    "kids_off:i n_kids:i",  # offset of its children in ``kids``, and their number
    "pos:i",  # its position among its parent's children
    # the tournament of its children with outstanding asks: offset in ``tree``, and number of leaf positions
    "tree_off:i tree_cap:i",
    "policy:i",  # of a parent: 1: ``priority-utilization``; 0: ``utilization``
    "priority",  # priority; of siblings, the larger number is served first under ``priority-utilization``
    "fair:i sized:i",  # of a leaf: 1: the ordering policy ``fair``; 1: with ``enable-size-based-weight``
    "absolute:i",  # 1: its capacity is configured as absolute resources
    "state:i",  # RUNNING, DRAINING or STOPPED
    "n_apps",  # number of applications in it and below it
    "max_apps max_user_apps",  # largest number of applications, in total and per user
    "any_weight:i",  # 1: some child has a weight
    "conf_mb conf_vcores confmax_mb confmax_vcores",  # configured absolute capacity and maximum
    "eff_mb eff_vcores effmax_mb effmax_vcores",  # effective capacity and maximum
    "used_mb used_vcores",  # resources of its containers and reservations
    "reserved_mb reserved_vcores",  # resources of its reservations
    "pending_mb pending_vcores",  # outstanding resources of its applications
    "am_mb am_vcores am_limit_mb am_limit_vcores",  # resources of its AMs, and their limit
    "lim_mb lim_vcores",  # the limit that its parent handed down when the cluster last changed
    "L_mb L_vcores",  # the limit from which the AM limit is computed: the leaf's limit at its last consideration
    "U_mb U_vcores U_version",  # limit of an active user, and the version for which it was computed
    "version",  # incremented at each change that may change the user limit
    "stuck",  # 1 + the version at which every user was found to be over the limit
    "floor_mb floor_vcores",  # effective capacity, but at least the minimum allocation
    "own_max_apps",  # its own ``maximum-applications``; below 0: none
    "act_head:i act_tail:i n_active:i",  # list of all active applications, and its length
    "ask_head:i ask_tail:i",  # list of active applications with asks, in the policy's order
    "wait_head:i wait_tail:i n_waiting:i",  # list of applications that wait for activation, and its length
    "stale_head:i",  # head of the list of applications whose usage has changed (ordering policy ``fair``)
    "user_head:i user_tail:i n_users:i users_cap:i",  # list of its users, its length, and buckets of Hadoop's table
    "on_mb on_vcores n_on:i",  # total resources of active users, and their number
    "n_active_users:i",  # number of users that have applications with asks
    # number of users that have waiting applications only: now, and when the user limit was last computed
    "n_only_pending:i only_pending:i",
    "scaled:i",  # bit set: the children's absolute capacities are scaled down in memory (1), in vcores (2)
    "n_run:i",  # number of active applications
    "usage_mb usage_vcores",  # resources of its containers
    "fair_mb",  # effective capacity, for samples
    "first_child:i next_sibling:i",  # first child, and next child of its parent
    "parallel n_runnable:i",  # ``max-parallel-apps``, and number of runnable applications in it and below it
    "nr_head:i nr_tail:i n_nonrun:i",  # of a leaf: list of applications that may not run yet, and its length
    # its maximum allocation, which Hadoop's ApplicationMasterService enforces, not the scheduler
    "largest_mb largest_vcores",
    "cap:f max:f norm:f weight:f",  # capacity, maximum capacity, normalised weight and weight
    "abs:f abs_max:f",  # absolute capacity and absolute maximum capacity
    "used_cap:f abs_used:f",  # used capacity and absolute used capacity
    "mulp:f ulf:f",  # ``minimum-user-limit-percent``, ``user-limit-factor``
    "am_pct:f",  # ``maximum-am-resource-percent``
    "user_ratios:f",  # sum of its users' fractions of the cluster
    "on_weight:f",  # sum of the weights of its active users
    "scale_mb:f scale_vcores:f",  # factors by which the absolute capacities of its children are scaled down
)

#: An application (its current attempt). Fields named ``used`` do not include reservations.
A = record(
    "alive:i ghost:i",  # 1: the slot is in use; 1: the attempt has ended, but is still in the waiting or active list
    "q:i user:i uq:i",  # slots of its leaf, of its user over all leaves (U.person), and of its user in this leaf
    "id priority",  # number in its ID, and its priority
    "attempt serial",  # number of the attempt, and its serial number
    "managed:i am_running:i",  # 1: it has an AM; 1: the AM's container was granted
    "am_ask",  # 1: the AM's container is requested
    "am_mb am_vcores",  # resources of the AM's container
    "start_ms",  # start time of the attempt
    "used_mb used_vcores",  # resources of its containers
    "reserved_mb reserved_vcores",  # resources of its reservations
    "pending_mb pending_vcores",  # resources of its outstanding asks
    "cu cp",  # used and pending memory when the fair ordering last read them
    # number of its asks, the first one, and number of buckets of Hadoop's table of them
    "n_req:i req_head:i req_cap:i",
    # first and last live container, their number, and number of buckets of Hadoop's table of them
    "live_head:i live_tail:i n_live:i live_cap:i",
    "n",  # number of containers assigned to it so far, in all attempts
    "cid",  # last container number that the attempt has used
    "active:i waiting:i",  # 1: it is active; 1: it waits for activation
    "listed:i",  # 1: it counts among its user's applications with asks
    "in_asks:i",  # 1: it is in the leaf's list of applications with asks
    "stale:i",  # 1: the fair ordering has to reposition it; 2: it was removed from the fair ordering's list
    # neighbours in the leaf's lists of active applications and of active applications with asks
    "act_prev:i act_next:i ask_prev:i ask_next:i",
    "wait_prev:i wait_next:i stale_next:i",  # neighbours in the lists of waiting applications and of ``stale`` ones
    "held_head:i n_reserved:i",  # head of the list of its reservations (``h``), and number of nodes reserved for it
    "started:i",  # 1: the attempt has got a container
    "free_next:i",  # next free slot
    "tag",  # for the simulator: slot of the job
    "usage_mb usage_vcores",  # resources of its containers
    "integral_ms",  # time up to which ``integral`` is counted, ms
    "seen:i",  # 1: its user's limit was computed for it
    # 1: it was runnable at the last check; number of its entries in the leaf's runnable list
    "runnable:i n_runnable:i",
    "held_back:i",  # 1: it is blocked by a limit of parallel applications
    # neighbours in the leaf's and the user's list of blocked applications
    "nr_prev:i nr_next:i user_prev:i user_next:i",
    "n_asks:i",  # number of outstanding containers of its asks
    "integral:d",  # its counted resources up to ``integral_ms`` (harness.sim.longterm_kernels)
    "omega:d",  # its weight among the applications of its leaf
    "kg:d",  # its allocation since ``integral_ms``, in the ledger's measure
    "phi:d ahead_a:d ahead_b:d more_mb:d more_vc:d",  # as in `harness.sim.longterm_state.X`, for this application
)

#: Reservations of an application under one key (priority and allocation ID).
H = record(
    "app:i n:i",  # slot of the application, and number of reservations
    "priority alloc_id",  # the key
    "cap:i",  # number of buckets of Hadoop's table of these reservations
    "again:i",  # number of re-reservations
    "head:i tail:i",  # list of the reserved nodes, in the order of reservation
    "next:i",  # next key of the application
    "seq:i",  # number that orders the keys by their first reservation
)

#: A user in a leaf.
U = record(
    "q:i",  # slot of the leaf
    "in_map:i",  # 1: the leaf knows the user
    "on:i",  # 1: the user is active; 2: the user is not; 0: the leaf does not know the user
    "used_mb used_vcores am_mb am_vcores",  # resources of the user's containers and reservations, and of the AMs
    "pend act:i",  # numbers of waiting and active applications
    "n_listed:i",  # number of applications with asks
    "next:i prev:i",  # neighbours in the leaf's list of users
    "hash",  # Java's hash code of the name, for the order in Hadoop's tables
    "person:i",  # the user's first record in any leaf, in which the following four fields count over all leaves
    # limit of parallel applications, number of runnable applications, and list of blocked applications
    "max_apps n_run:i nr_head:i nr_tail:i",
    "cached",  # 1 + the version at which the leaf last checked the user's limit (only if G.limited is 1)
    # 1: the user was over the limit then; this holds for applications that have reserved at most these resources
    "barred:i barred_mb barred_vcores",
    "ratio:f",  # the user's fraction of the cluster
)

#: Nodes: the fields of all schedulers, and the reservation's position in its application's list.
N = record(
    *N_FIELDS,
    "res_h:i res_next:i",  # the reservation's record in ``h``, and next node in the list of that record
)

#: One level of the descent from the root to a leaf.
F = record(
    "q:i",  # slot of the parent queue
    "lim_mb lim_vcores",  # limit passed to it
    "blocked_mb blocked_vcores",  # headroom that is withheld for its children that have returned LIMIT
    "limited",  # 1: a child has returned LIMIT
    "aside",  # number of its children that are excluded because they got nothing
)

#: Values of a queue in one round of preemption.
P = record(
    "disabled:i",  # 1: preemption is disabled for it
    "nameless:i",  # 1: another queue has the same short name, or it is the root
    "obtains:i",  # 1: containers are taken from it in this round
    "pending_mb pending_vcores",  # outstanding resources that the user limits admit
    "unreserved_mb unreserved_vcores",  # the same without reserved resources
    "ideal_mb ideal_vcores",  # ideal allocation
    "fixed_mb fixed_vcores",  # usage above the guarantee that is not preemptable
    "loose_mb loose_vcores",  # usage above the guarantee that is preemptable
    "excess_mb excess_vcores",  # usage above the ideal allocation, to be preempted
    "obtain_mb obtain_vcores",  # amount to preempt in this round
    "norm_mb:d norm_vcores:d",  # its fraction of the resources that are still to be distributed
)

#: A container that preemption has chosen, by its slot.
M = record(
    "serial",  # serial number of the container
    "since",  # time when it was marked, ms; -1: it is not marked
    "round",  # number of the round that chose it last
    "q:i",  # its leaf, once it has completed
    lines=False,
)


class _Fields(NamedTuple):
    g: Annotated[np.ndarray, G, 1]  # globals: one record
    q: Annotated[np.ndarray, Q, 1]  # queues
    a: Annotated[np.ndarray, A, 1]  # applications
    n: Annotated[np.ndarray, N, 1]  # nodes
    c: Annotated[np.ndarray, C, 1]  # containers
    r: Annotated[np.ndarray, R, 1]  # outstanding asks
    h: Annotated[np.ndarray, H, 1]  # reservations by application and key
    u: Annotated[np.ndarray, U, 1]  # users of leaves
    f: Annotated[np.ndarray, F, 1]  # levels of the descent from the root to a leaf
    log: Annotated[np.ndarray, LOG, 1]  # log records that Python has not read yet
    order: Annotated[np.ndarray, np.int64, 1]  # queue slots, parents before their children
    kids: Annotated[np.ndarray, np.int64, 1]  # queue slots: each parent's children, in the order that breaks ties
    tree: Annotated[np.ndarray, np.int64, 1]  # queue slots: each parent's tournament of its children
    leaves: Annotated[np.ndarray, np.int64, 1]  # queue slots of the leaves
    work: Annotated[np.ndarray, np.int64, 1]  # scratch
    p: Annotated[np.ndarray, P, 1]  # values of queues for preemption, by slot
    m: Annotated[np.ndarray, M, 1]  # containers that preemption has chosen, by slot
    takes: Annotated[np.ndarray, np.int64, 1]  # queue slots of the leaves, in the order in which they are preempted
    pw: Annotated[np.ndarray, np.int64, 1]  # scratch of preemption (`ideal.scratch`)
    cost: Annotated[np.ndarray, np.float64, 1]  # cost of making room for a node's reservation, in ascending order
    x: Annotated[np.ndarray, X, 1]  # long-term values of each queue
    xg: Annotated[np.ndarray, XG, 1]  # settings of the ledger: one record
    win: Annotated[np.ndarray, np.float64, 2]  # (queues, parts + 1): rings of the parts of sliding windows


class S(Arrays, _Fields):  # type: ignore[misc]
    """The whole state. Full arrays are replaced by larger ones (``Scheduler.grow``)."""

    scheduler = "capacity"
