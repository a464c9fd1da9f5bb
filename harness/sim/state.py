"""Common parts of the states of all simulated schedulers: codes, and the records that shared kernels work on.

A scheduler's state is one NamedTuple of record arrays (`harness.sim.arrays.Arrays`). The shared kernels take it as
``s`` and expect these fields: ``c``, ``r`` and ``log`` are the records below, ``n`` has at least the fields of
`N_FIELDS`, ``x``, ``xg`` and ``win`` are those of `harness.sim.longterm_state`, and ``g``, ``q``, ``a`` and ``u`` have
the fields that the kernels in ``harness/sim`` read (`harness.sim.fifo.state` is the smallest complete example).

Contains no behaviour. Times are int64 milliseconds, memory is int64 MB, vcores are int64. -1 means "none" in every
index.
"""

from __future__ import annotations

from harness.sim.arrays import record

# Results of kernels other than an index or a count.
NEED_ROOM = -1  # an array is full; nothing was changed; call Scheduler.grow() and repeat
REJECTED = -2  # the application was rejected (its AM asks for a resource in which the queue's maximum is 0)
INVALID_ASK = -3  # the queue's maximum is 0 in a requested resource; nothing was changed
#: The application, container or node that a call names is not live; nothing was changed.
IGNORED = -4

#: How the next queue is chosen (G.order_mode): by Hadoop's comparators; by Q.key at each level of the tree; or by Q.key
#: among all leaves.
STOCK, KEYED_LEVELS, KEYED_FLAT = 0, 1, 2

#: Why a container completed (LOG.why).
FINISHED, RELEASED, PREEMPTED, LOST, APP_END = 1, 2, 3, 4, 5

#: Mutation: ignore the order of hash tables (for tests that must fail then); the same bit in all schedulers.
MUT_HASHORDER = 1 << 16
#: Who reads the scheduler's log (``G.hooks``, 0: nobody): the long-term integrals, or these and the simulated world.
INTEGRALS, WORLD = 1, 2
#: Kinds of log records (LOG.kind). VICTIM: preemption has chosen the container.
ASSIGNED, COMPLETED, RESERVED, UNRESERVED, VICTIM = 1, 2, 3, 4, 5
#: Kind of the log records of a container that was assigned and killed at the same heartbeat; its AM never learns of it.
UNHEARD = 0

#: A node. Amounts are in MB and vcores.
N_FIELDS = (
    "avail_mb avail_vcores",  # free resources
    "hb",  # heartbeats since it joined
    "alive:i",  # 1: the node is registered
    "res_app:i",  # application for which the node is reserved; -1: it is not reserved
    "pre_head:i",  # head of the list of resources preempted on the node for starved applications
    "n_done:i",  # length of the list of containers to report as completed
    "n_launch:i",  # containers that the next heartbeat will report as launched
    "n_c:i c_tail:i",  # number of containers on the node, and the last one in their list
    "done_head:i done_tail:i",  # first and last container of the list of those to report as completed
    "map_cap:i",  # buckets of Hadoop's hash table of the node's containers, which determines their order
    "total_mb total_vcores",  # capacity
    "pre_mb pre_vcores",  # total resources preempted on the node for starved applications
    "c_head:i",  # first container in the node's list
    "rack:i",  # rack number
    "hash",  # Java's hash code of the node ID, for the order in Hadoop's tables
    "seq",  # insertion number in Hadoop's table of nodes; renewed when the node joins and when its capacity changes
    "res_mb res_vcores",  # resources of the reserved container
    "res_serial",  # serial number of the reserved container
    "res_priority res_alloc_id",  # priority and allocation ID of the ask for which the node is reserved
    "res_cid",  # number in the ID of the reserved container
    "draining:i",  # 1: graceful decommissioning is under way
    "over:i",  # 1: each heartbeat kills the containers that exceed the capacity (overcommit timeout of 0)
)

#: A container. Amounts are in MB and vcores.
C = record(
    "app:i node:i",  # slots of its application and its node
    "n_next:i n_prev:i",  # neighbours in the node's list of containers
    "a_next:i a_prev:i",  # neighbours in the application's list of live containers
    "d_next:i",  # next container in the node's list of those to report as completed
    "free_next:i",  # next free slot
    "live:b",  # 1: it counts towards the usage of its application and queue
    "marked:b",  # 1: preemption has chosen it
    "node_marked:b",  # 1: it is in the node's list of containers preempted for an application
    "am:b",  # 1: it runs the application master (AM)
    "on_node:b",  # 1: it occupies resources of the node
    "alive:b",  # 1: the slot is in use
    "done:b",  # 1: it is in the node's list of containers to report as completed
    "kill_due:b",  # 1: preemption has scheduled its kill
    "finishing:b",  # 1: its process has exited, but the node has not reported this yet
    "acquired:b",  # 1: the AM has fetched it
    "launched:b",  # 1: the node has reported it as launched
    "from_reservation:b",  # 1: it was assigned to a reserved node
    "hb_left:i",  # heartbeats of the node until it is reported as completed
    "mb vcores:i",  # resources
    "acq_hb:i",  # the node's heartbeat count (``hb``) when the AM fetched the container
    "start_ms",  # time of the assignment, ms
    "serial",  # serial number among all containers and attempts ever
    "cid",  # number in the container ID
    "alloc_id",  # allocation ID of the ask that it serves
    "ask_mb ask_vcores:i ask_count:i",  # resources per container and count with which its request is restored
    "n:i",  # number among the application's containers, from 1
    "priority:i",  # priority of the ask that it serves
    "app_id:i attempt:i",  # number in the application ID, and attempt number
)

#: An outstanding ask. An application has a list of asks, ordered by priority and allocation ID.
R = record(
    "app:i next:i",  # slot of the application, and the next ask in its list
    "priority:i",  # priority; the ask with the smallest number is served first
    # the container whose request was restored as this ask (-1: none): Hadoop uses one object for both, so that their
    # counts change together
    "given:i",
    "mb vcores",  # resources of one container
    "count",  # number of outstanding containers
    "alloc_id",  # allocation ID, by which AMs tell asks of one priority apart
    "seq",  # serial number among all asks ever
    "given_serial",  # serial number of the container ``given``, whose slot may be reused
)

#: A log record of one event. Slot ``c`` may already be reused for another container; ``serial`` is unique.
LOG = record(
    # time, ms; one of ASSIGNED ... VICTIM; why a container completed, or what preemption did to it
    "t kind why",
    "app app_id",  # slot of the application, and the number in its ID
    # the container: slot, serial number, number among the application's containers, and number in its ID
    "c serial n cid",
    "node mb vcores priority",  # node, resources and priority of the container
    "am from_reservation",  # 1: the container runs the AM; 1: it was assigned to a reserved node
    "for_app kill_ms",  # VICTIM: the application for which it is preempted, and the time of the kill, ms
    "start_ms attempt",  # time of the container's assignment, ms, and attempt number
)
