"""The scheduler's state: one NamedTuple of record arrays, and the codes that the kernels answer.

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

# Answers of a queue that is asked for an assignment.
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
    "n_queues n_leaves",  # numbers of existing queues and leaves
    "system_apps queue_apps",  # ``maximum-applications`` and ``global-queue-max-application``
    "n_nodes",  # number of existing nodes
    "cluster_mb cluster_vcores",  # sum of the nodes as the scheduler counts it
    # sum of the nodes as the partition counts it: excludes a lost node while its containers are dropped
    "label_mb label_vcores",
    "min_mb min_vcores",  # smallest size of a container
    "conf_max_mb conf_max_vcores",  # largest size of a container, as it is configured
    "node_max_mb node_max_vcores node_max_known",  # the largest node in each resource; 1: there is one
    "max_by_nodes",  # 1: asks are clamped to the largest node, as in an RM that has been up for 10 s
    "drf",  # 1: the resource calculator is the dominant one
    "look",  # 1: ``reservations-continue-look-all-nodes``
    "off_max",  # ``per-node-heartbeat.maximum-offswitch-assignments``
    # ``per-node-heartbeat``: multiple-assignments-enabled, maximum-container-assignments (-1: no limit)
    "multi con_max",
    "max_priority",  # ``yarn.cluster.max-application-priority``
    "mutations",  # features that a test has switched off
    "launch",  # 1: a node reports what its master has heard of as launched, one heartbeat later
    "manual_acquire",  # 1: a script decides when AMs fetch their containers; 0: they fetch them at once
    "cleanup_heartbeats",  # heartbeats of a node until it reports a killed container as completed
    "cluster_ts",  # when the RM started: a part of all IDs
    # heads of the lists of free slots: applications, containers, asks, records of ``h``
    "free_app free_c free_r free_h",
    "n_free_app n_free_c n_free_r n_free_h",  # how many slots are free
    "serial",  # number of the last container
    "next_app_id node_seq req_seq",  # the next application's number, the next node's and the next ask's
    "n_log",  # records in ``log``
    "n_running",  # containers that live
    # the proposal: application, ask, 1: to reserve, and the node whose reservation is given up
    "p_app p_ask p_reserve p_give",
    "h_mb h_vcores",  # headroom of the leaf that was asked last
    "alloc_mb alloc_vcores",  # what containers hold
    "last_c last_mb last_vcores",  # slot and size of the container that was assigned last
    "hooks",  # reader of the scheduler's log: 0 (none), INTEGRALS or WORLD
    "kill_n",  # 1: the preemption policy runs by itself
    "preemption",  # 1: the preemption policy runs by itself
    "n_held_back",  # applications blocked by a limit of parallel applications
    "limited",  # 1: a number of parallel applications is limited, or was
    "n_asked",  # outstanding containers of all asks
    "least_ask_mb least_ask_vcores",  # a lower bound of all ask sizes ever
    # preemption: its period, the time from the next round to the one after it, and the time of the next round
    "interval_ms armed_ms round_ms",
    "wait_ms balance_wait_ms",  # from the choice of a container until it is killed: for a guarantee, and to balance
    "observe",  # ``observe_only``
    "balance",  # ``preemption-to-balance-queue-after-satisfied.enabled``
    "by_reservations with_reserved",  # ``select_based_on_reserved_containers`` and its ``additional_res_balance_...``
    "conservative",  # ``conservative-drf``
    "forgotten_ms",  # what was marked before this time is forgotten
    "round",  # number of the round
    "allowed_mb allowed_vcores",  # what the round may still take from the cluster
    "nodes_peak",  # most nodes at once so far
    "killed_n",  # containers that preemption has killed so far
    "killed_mb_ms killed_vcore_ms",  # their memory and vcores over the time that they had been held
    # ``max_ignored_over_capacity``, ``natural_termination_factor``, ``total_preemption_per_round``
    "ignored:d natural:d per_round:f",
)

#: A queue. Fields named ``used`` include reservations, fields named ``usage`` do not. Capacities are fractions (0 to 1)
#: of the cluster or the parent, unless they have a unit.
Q = record(
    "alive:i leaf:i parent:i",  # 1: it exists; 1: it is a leaf; slot of its parent
    "kids_off:i n_kids:i",  # where its children begin in ``kids``, and how many there are
    "pos:i",  # its position among its parent's children
    # the tournament of its children with outstanding asks: where it begins in ``tree``, and its size
    "tree_off:i tree_cap:i",
    "policy:i",  # its ordering policy
    "priority",  # its priority
    "fair:i sized:i",  # of a leaf: 1: applications are ordered fairly; 1: with ``enable-size-based-weight``
    "absolute:i",  # 1: its capacity is in absolute resources
    "state:i",  # RUNNING, DRAINING or STOPPED
    "n_apps",  # its applications
    "max_apps max_user_apps",  # most applications, and most of one user
    "any_weight:i",  # 1: some child has a weight
    "conf_mb conf_vcores confmax_mb confmax_vcores",  # configured absolute capacity and maximum
    "eff_mb eff_vcores effmax_mb effmax_vcores",  # effective capacity and maximum
    "used_mb used_vcores",  # resources of its containers and reservations
    "reserved_mb reserved_vcores",  # resources of its reservations
    "pending_mb pending_vcores",  # outstanding resources of its applications
    "am_mb am_vcores am_limit_mb am_limit_vcores",  # resources of its AMs, and their limit
    "lim_mb lim_vcores",  # the limit that its parent handed down when the cluster last changed
    "L_mb L_vcores",  # the limit from which the AM limit is computed: the leaf's at its last consideration
    "U_mb U_vcores U_version",  # a user's limit, and the version for which it was computed
    "version",  # counts changes that may change a user's limit
    "stuck",  # 1 + the version at which every user was over the limit
    "floor_mb floor_vcores",  # effective capacity, or the smallest container where that is more
    "own_max_apps",  # ``maximum-applications`` of its own; below 0: none
    "act_head:i act_tail:i n_active:i",  # the list of all active applications
    "ask_head:i ask_tail:i",  # the list of those with asks, in the policy's order
    "wait_head:i wait_tail:i n_waiting:i",  # the list of applications that wait for activation
    "stale_head:i",  # first of the list of applications whose figures have changed (fair ordering)
    "user_head:i user_tail:i n_users:i users_cap:i",  # the list of its users, and the buckets of Hadoop's table of them
    "on_mb on_vcores n_on:i",  # resources of active users, and their number
    "n_active_users:i",  # users with applications that ask for something
    # users with waiting applications alone: now, and when the user limit was last made
    "n_only_pending:i only_pending:i",
    "scaled:i",  # bits: children's absolute capacities are scaled down in memory (1), in vcores (2)
    "n_run:i",  # active applications
    "usage_mb usage_vcores",  # resources of its containers
    "fair_mb",  # for samples: its entitled memory
    "first_child:i next_sibling:i",  # its place in the tree
    "parallel n_runnable:i",  # ``max-parallel-apps``, and applications that may run
    "nr_head:i nr_tail:i n_nonrun:i",  # the list of a leaf's applications that may not run yet, in the order of time
    # its largest container, to which Hadoop's AMS holds asks; the scheduler itself does not
    "largest_mb largest_vcores",
    "cap:f max:f norm:f weight:f",  # capacity, maximum capacity, normalised weight and weight
    "abs:f abs_max:f",  # absolute capacity and absolute maximum capacity
    "used_cap:f abs_used:f",  # used capacity and absolute used capacity
    "mulp:f ulf:f",  # ``minimum-user-limit-percent``, ``user-limit-factor``
    "am_pct:f",  # ``maximum-am-resource-percent``
    "user_ratios:f",  # sum of the users' parts of the cluster
    "on_weight:f",  # sum of the active users' weights
    "scale_mb:f scale_vcores:f",  # by how much absolute capacities of children are scaled down
)

#: An application (its current attempt). Fields named ``used`` do not include reservations.
A = record(
    "alive:i ghost:i",  # 1: the slot is in use; 1: the attempt has ended, but is still in the waiting or active list
    "q:i user:i uq:i",  # its leaf, its user in all leaves (``person``), and its user in this leaf
    "id priority",  # number in its ID, and its priority
    "attempt serial",  # number of the attempt, and its number among all attempts ever
    "managed:i am_running:i",  # 1: it has an AM; 1: the AM's container was granted
    "am_ask",  # 1: the AM's container is requested
    "am_mb am_vcores",  # size of the AM's container
    "start_ms",  # start of the attempt
    "used_mb used_vcores",  # resources of its containers
    "reserved_mb reserved_vcores",  # resources of its reservations
    "pending_mb pending_vcores",  # its outstanding resources
    "cu cp",  # used and pending memory as the fair ordering last looked
    "n_req:i req_head:i req_cap:i",  # its asks, the first one, and the buckets of Hadoop's table of them
    # the list of its containers, their number, and the buckets of Hadoop's table
    "live_head:i live_tail:i n_live:i live_cap:i",
    "n",  # containers that it was assigned so far
    "cid",  # numbers of containers that the attempt has used up
    "active:i waiting:i",  # 1: it is active; 1: it waits for its activation
    "listed:i",  # 1: it counts among its user's applications with asks
    "in_asks:i",  # 1: it is in the leaf's list of applications with asks
    "stale:i",  # 1: the fair ordering has to reposition it; 2: it was removed from the fair ordering's list
    # its neighbours in the leaf's lists of active ones and of those with asks
    "act_prev:i act_next:i ask_prev:i ask_next:i",
    "wait_prev:i wait_next:i stale_next:i",  # its neighbours in the lists of waiting ones and of those to be looked at
    "held_head:i n_reserved:i",  # first of the list of its reservations (``h``), and how many nodes it has reserved
    "started:i",  # 1: it has got a container
    "free_next:i",  # the next free slot
    "tag",  # for the driver: the job's slot
    "usage_mb usage_vcores",  # resources of its containers
    "integral_ms",  # time up to which ``integral`` is counted
    "seen:i",  # 1: its user's limit was computed for it
    "runnable:i n_runnable:i",  # 1: it may run, at the last check; number of its entries in its leaf's runnable list
    "held_back:i",  # 1: it is blocked by a limit of parallel applications
    "nr_prev:i nr_next:i user_prev:i user_next:i",  # its neighbours in the leaf's and the user's list of those
    "n_asks:i",  # outstanding containers of its asks
    "integral:d",  # its counted resources up to ``integral_ms`` (harness.sim.longterm_kernels)
    "omega:d",  # its weight among the applications of its leaf
    "kg:d",  # its allocation since then, in the ledger's measure
    "phi:d ahead_a:d ahead_b:d more_mb:d more_vc:d",  # the same as in a queue's record, `harness.sim.longterm_state.X`
)

#: Reservations of an application under one key (priority and allocation ID).
H = record(
    "app:i n:i",  # the application, and how many there are
    "priority alloc_id",  # the key
    "cap:i",  # buckets of Hadoop's table of them
    "again:i",  # re-reservations
    "head:i tail:i",  # the list of their nodes, in the order of time
    "next:i",  # the next key of the application
    "seq:i",  # number of the key in the order of time
)

#: A user in a leaf.
U = record(
    "q:i",  # the leaf
    "in_map:i",  # 1: the leaf knows the user
    "on:i",  # 1: the user is active; 2: not
    "used_mb used_vcores am_mb am_vcores",  # resources of the user's containers and AMs
    "pend act:i",  # waiting and active applications
    "n_listed:i",  # applications with asks
    "next:i prev:i",  # neighbours in the leaf's list
    "hash",  # hash of the name in Java, for the order in Hadoop's tables
    "person:i",  # the user's first record in any leaf, which has those that run or are held back in all leaves
    # of that: the most that may run, how many do, and the list of those held back
    "max_apps n_run:i nr_head:i nr_tail:i",
    "cached",  # 1 + the version at which the leaf last computed the user's result
    "barred:i barred_mb barred_vcores",  # 1: the user got nothing then; valid for applications with no more reserved
    "ratio:f",  # the user's part of the cluster
)

#: Nodes: the Fair Scheduler's fields, and the reservation's place in its application's list (``res_h``, ``res_next``).
N = record(
    *N_FIELDS,
    "res_h:i res_next:i",  # the reservation's record in ``h``, and the next node in its list
)

#: One frame of the descent from the root to a leaf.
F = record(
    "q:i",  # a parent
    "lim_mb lim_vcores",  # the limit passed to it
    "blocked_mb blocked_vcores",  # headroom that is blocked by its children
    "limited",  # 1: a child has answered LIMIT
    "aside",  # number of excluded children
)

#: A queue's figures in one round of preemption.
P = record(
    "disabled:i",  # 1: preemption is disabled for it
    "nameless:i",  # 1: other queues have the same short name
    "obtains:i",  # 1: containers are taken from it in this round
    "pending_mb pending_vcores",  # demand that may still be served
    "unreserved_mb unreserved_vcores",  # this demand without reservations
    "ideal_mb ideal_vcores",  # ideal allocation
    "fixed_mb fixed_vcores",  # usage above the guarantee that is not preemptable
    "loose_mb loose_vcores",  # usage above the guarantee that is preemptable
    "excess_mb excess_vcores",  # usage above the ideal allocation, to be preempted
    "obtain_mb obtain_vcores",  # amount to preempt in this round
    "norm_mb:d norm_vcores:d",  # its fraction of the amount that is still to be distributed
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
    f: Annotated[np.ndarray, F, 1]  # frames of the descent in the tree
    log: Annotated[np.ndarray, LOG, 1]  # log records that Python has not read yet
    order: Annotated[np.ndarray, np.int64, 1]  # queue slots, parents before their children
    kids: Annotated[np.ndarray, np.int64, 1]  # queue slots, each parent's children in the order that breaks ties
    tree: Annotated[np.ndarray, np.int64, 1]  # queue slots, each parent's tournament
    leaves: Annotated[np.ndarray, np.int64, 1]  # queue slots of the leaves
    work: Annotated[np.ndarray, np.int64, 1]  # scratch
    p: Annotated[np.ndarray, P, 1]  # figures of queues for preemption, by slot
    m: Annotated[np.ndarray, M, 1]  # containers that preemption has chosen, by slot
    takes: Annotated[np.ndarray, np.int64, 1]  # queue slots of the leaves, in the order in which preemption takes
    pw: Annotated[np.ndarray, np.int64, 1]  # scratch of preemption
    cost: Annotated[np.ndarray, np.float64, 1]  # of each node with a reservation: the cost of making room for it
    x: Annotated[np.ndarray, X, 1]  # long-term values of each queue, as in the Fair Scheduler (longterm_state)
    xg: Annotated[np.ndarray, XG, 1]  # and their globals (longterm_state.XG)
    win: Annotated[np.ndarray, np.float64, 2]  # by queue: a ring of a sliding window's parts, and the part leaving it


class S(Arrays, _Fields):  # type: ignore[misc]
    """The whole state. Full arrays are replaced by larger ones (``Scheduler.grow``)."""

    scheduler = "capacity"
