"""The scheduler's state: one NamedTuple of record arrays. Contains no behaviour.

It has the fields that shared kernels read (`harness.sim.state`) and few others. Times are int64 milliseconds, memory is
int64 MB, vcores are int64.
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
    "n_queues n_nodes",  # numbers of queues and of registered nodes
    "cluster_mb cluster_vcores",  # total capacity of the registered nodes
    "alloc_mb alloc_vcores",  # total resources of the live containers
    "min_mb min_vcores",  # minimum allocation
    "conf_max_mb conf_max_vcores",  # configured maximum allocation
    "node_max_mb node_max_vcores node_max_known",  # maximum over the nodes of each resource; 1: a node is registered
    "max_by_nodes",  # 1: asks are clamped to the largest node, as in an RM that has been up for 10 s
    "launch",  # 1: a node reports containers that the AM has fetched as launched, one heartbeat later
    "manual_acquire",  # 1: a script decides when AMs fetch their containers; 0: they fetch them at once
    "cleanup_heartbeats",  # number of heartbeats after which a node reports a killed container as completed
    "mutations",  # bit set of the features that a mutation test has switched off (MUT_...)
    "cluster_ts",  # start time of the ResourceManager, which is part of all IDs
    "free_app free_c free_r",  # heads of the lists of free slots: applications, containers, asks
    "n_free_app n_free_c n_free_r",  # lengths of these lists
    "serial",  # last serial number given to a container or an attempt
    "next_app_id node_seq req_seq",  # next numbers of an application, a node and an ask
    "n_log",  # number of records in ``log``
    "n_leaves",  # number of leaves
    "last_mb last_vcores last_c",  # resources and slot of the container assigned last
    "n_running",  # number of live containers
    "hooks",  # reader of the scheduler's log: 0 (none), INTEGRALS or WORLD
    "n_asked",  # number of outstanding containers of all asks
    "least_ask_mb least_ask_vcores",  # lower bound of the resources of all asks ever
    "preemption kill_n",  # always 0: this scheduler does not preempt
    "head_mb head_vcores",  # headroom of all applications, set by each heartbeat with free memory for a container
    "told",  # number of these heartbeats so far
    "n_untold",  # number of attempts that began after the last of these heartbeats, and have no headroom yet
)

#: A queue.
Q = record(
    "alive:i leaf:i",  # 1: it exists; 1: it is a leaf
    "parent:i first_child:i next_sibling:i",  # its parent, first child and next sibling
    "usage_mb usage_vcores",  # resources of its containers
    "pending_mb pending_vcores",  # resources of its applications' outstanding asks
    "ask_head:i ask_tail:i",  # the list of applications with outstanding asks, in the order of their IDs
    "n_run:i",  # number of its applications
    "fair_mb",  # for samples: always 0
    "nr_head:i nr_tail:i n_nonrun:i",  # the list of applications that may not run: always empty
    "weight:f",  # for samples: always 1
)

#: An application (its current attempt).
A = record(
    "alive:i",  # 1: the slot is in use
    "q:i user:i",  # slots of its leaf and its user
    "id attempt",  # number in its ID, and number of the attempt
    "serial",  # serial number of the attempt
    "managed:i am_running:i",  # 1: it has an AM; 1: the AM's container was granted
    "am_mb am_vcores",  # resources of the AM's container
    "start_ms",  # start time of the attempt
    "usage_mb usage_vcores",  # resources of its containers
    "pending_mb pending_vcores",  # resources of its outstanding asks
    # number of its asks, the first one, and number of buckets of Hadoop's table of them
    "n_req:i req_head:i req_cap:i",
    "n_asks:i",  # number of outstanding containers of its asks
    "ask_prev:i ask_next:i",  # neighbours in the list of applications with asks
    # first and last live container, their number, and number of buckets of Hadoop's table of them
    "live_head:i live_tail:i n_live:i live_cap:i",
    "n",  # number of containers assigned to it so far, in all attempts
    "cid",  # last container number that the attempt has used
    "n_reserved:i",  # number of nodes reserved for it: always 0
    "started:i",  # 1: the attempt has got a container
    "runnable:i",  # 1: it may run
    "nr_prev:i nr_next:i user_prev:i user_next:i",  # neighbours in lists of applications that may not run: not in use
    "free_next:i",  # next free slot
    "tag",  # for the simulator: slot of the job
    "untold",  # 1 + G.told at the attempt's start; the attempt has no headroom until G.told changes
    "integral:d integral_ms:d",  # its counted resources, and the time up to which they are counted, ms
    "omega:d",  # its weight among the applications of its leaf
    "kg:d",  # its allocation since ``integral_ms``, in the ledger's measure
    "phi:d ahead_a:d ahead_b:d more_mb:d more_vc:d",  # as in `harness.sim.longterm_state.X`, for this application
)

#: Nodes.
N = record(*N_FIELDS)

#: A user. Users have no limits here.
U = record(
    # number of running applications, its limit, and the list of applications that may not run (always empty)
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
    log: Annotated[np.ndarray, LOG, 1]  # log records that Python has not read yet
    order: Annotated[np.ndarray, np.int64, 1]  # queue slots, parents before their children
    leaves: Annotated[np.ndarray, np.int64, 1]  # queue slots of the leaves
    work: Annotated[np.ndarray, np.int64, 1]  # scratch
    x: Annotated[np.ndarray, X, 1]  # long-term values of each queue
    xg: Annotated[np.ndarray, XG, 1]  # settings of the ledger: one record
    win: Annotated[np.ndarray, np.float64, 2]  # (queues, parts + 1): rings of the parts of sliding windows


class S(Arrays, _Fields):  # type: ignore[misc]
    """The whole state. Full arrays are replaced by larger ones (``Scheduler.grow``)."""

    scheduler = "fifo"
