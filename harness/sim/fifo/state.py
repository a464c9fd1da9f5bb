"""The scheduler's state: one NamedTuple of record arrays. Contains no behaviour.

It has the fields that shared kernels read (`harness.sim.state`) and few others.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np

from harness.sim.arrays import Arrays, record
from harness.sim.longterm_state import XG, X
from harness.sim.state import LOG, N_FIELDS, C, R

#: The slots of the two queues, ``root`` and ``root.default``.
ROOT, DEFAULT = 0, 1

# Features that a mutation test can switch off (G.mutations, a bit mask; 0 in every real run). Bit 16 is MUT_HASHORDER.
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

#: Globals: one record.
G = record(
    "n_queues n_nodes",  # numbers of existing queues and nodes
    "cluster_mb cluster_vcores",  # sum of the nodes
    "alloc_mb alloc_vcores",  # what containers hold
    "min_mb min_vcores",  # smallest size of a container
    "conf_max_mb conf_max_vcores",  # largest size of a container, as it is configured
    "node_max_mb node_max_vcores node_max_known",  # the largest node in each resource; 1: there is one
    "max_by_nodes",  # 1: asks are clamped to the largest node, as in an RM that has been up for 10 s
    "launch",  # 1: a node reports what its master has heard of as launched, one heartbeat later
    "manual_acquire",  # 1: a script says when masters hear of containers; 0: at once
    "cleanup_heartbeats",  # heartbeats of a node until it reports a killed container as completed
    "mutations",  # features that a test has switched off
    "cluster_ts",  # when the RM started: a part of all IDs
    "free_app free_c free_r",  # heads of the lists of free slots: applications, containers, asks
    "n_free_app n_free_c n_free_r",  # how many are free
    "serial",  # number of the last container
    "next_app_id node_seq req_seq",  # the next application's number, the next node's and the next ask's
    "n_log",  # records in ``log``
    "n_leaves",  # leaves
    "last_mb last_vcores last_c",  # size and slot of the container that was assigned last
    "n_running",  # containers that live
    "hooks",  # who reads the scheduler's log: 0, INTEGRALS or WORLD
    "n_asked",  # outstanding containers of all asks
    "least_ask_mb least_ask_vcores",  # a lower bound of all ask sizes ever
    "preemption kill_n",  # 0: this scheduler does not preempt
    "head_mb head_vcores",  # the headroom that applications were told at the last heartbeat that assigned
    "told",  # heartbeats that have assigned so far
    "n_untold",  # attempts that began after the last such heartbeat, and know no headroom yet
)

#: A queue.
Q = record(
    "alive:i leaf:i",  # 1: it exists; 1: it is a leaf
    "parent:i first_child:i next_sibling:i",  # its position in the tree
    "usage_mb usage_vcores",  # what its containers hold
    "pending_mb pending_vcores",  # what its applications ask for
    "ask_head:i ask_tail:i",  # the list of applications with outstanding asks, in the order of their IDs
    "n_run:i",  # its applications
    "fair_mb",  # for samples: always 0
    "nr_head:i nr_tail:i n_nonrun:i",  # the list of applications that may not run: always empty
    "weight:f",  # for samples: always 1
)

#: An application (its current attempt).
A = record(
    "alive:i",  # 1: the slot is in use
    "q:i user:i",  # its leaf and its user
    "id attempt",  # number in its ID, and number of the attempt
    "serial",  # number of the attempt among all attempts ever
    "managed:i am_running:i",  # 1: it has a master; 1: the master's container was granted
    "am_mb am_vcores",  # size of the master's container
    "start_ms",  # when the attempt began
    "usage_mb usage_vcores",  # what its containers hold
    "pending_mb pending_vcores",  # what it asks for
    "n_req:i req_head:i req_cap:i",  # its asks, the first one, and the buckets of Hadoop's table of them
    "n_asks:i",  # outstanding containers of its asks
    "ask_prev:i ask_next:i",  # its neighbours in the leaf's list of applications with asks
    # the list of its containers, their number, and the buckets of Hadoop's table
    "live_head:i live_tail:i n_live:i live_cap:i",
    "n",  # containers that it was assigned so far
    "cid",  # numbers of containers that the attempt has used up
    "n_reserved:i",  # its reservations: always 0
    "started:i",  # 1: it was given a container
    "runnable:i",  # 1: it may run
    "nr_prev:i nr_next:i user_prev:i user_next:i",  # its neighbours in lists of applications that may not run
    "free_next:i",  # the next free slot
    "tag",  # for the driver: the job's slot
    "untold",  # 1 + G.told when it began; it knows no headroom until G.told changes
    "integral:d integral_ms:d",  # amount counted up to a time, and that time (harness.sim.longterm_kernels)
    "omega:d",  # its weight among the applications of its leaf
    "kg:d",  # its allocation since then, in the ledger's measure
    "phi:d ahead_a:d ahead_b:d more_mb:d more_vc:d",  # the same as in a queue's record, `harness.sim.longterm_state.X`
)

#: Nodes.
N = record(*N_FIELDS)

#: A user. Users have no limits here.
U = record(
    # its running applications, the most of them, and the list of those that may not run
    "n_run max_apps nr_head nr_tail",
)


class _Fields(NamedTuple):
    g: Annotated[np.ndarray, G, 1]  # globals: one record
    q: Annotated[np.ndarray, Q, 1]  # queues
    a: Annotated[np.ndarray, A, 1]  # applications
    n: Annotated[np.ndarray, N, 1]  # nodes
    c: Annotated[np.ndarray, C, 1]  # containers
    r: Annotated[np.ndarray, R, 1]  # outstanding asks
    u: Annotated[np.ndarray, U, 1]  # users
    log: Annotated[np.ndarray, LOG, 1]  # what has happened since Python last looked
    order: Annotated[np.ndarray, np.int64, 1]  # queue slots, parents before their children
    leaves: Annotated[np.ndarray, np.int64, 1]  # queue slots of the leaves
    work: Annotated[np.ndarray, np.int64, 1]  # scratch
    x: Annotated[np.ndarray, X, 1]  # long-term figures of each queue (longterm_state.X)
    xg: Annotated[np.ndarray, XG, 1]  # and their globals (longterm_state.XG)
    win: Annotated[np.ndarray, np.float64, 2]  # by queue: a ring of a sliding window's parts, and the part leaving it


class S(Arrays, _Fields):  # type: ignore[misc]
    """The whole state. Full arrays are replaced by larger ones (``Scheduler.grow``)."""

    scheduler = "fifo"
