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

#: How the next queue is chosen (G.order_mode).
STOCK, KEYED_LEVELS, KEYED_FLAT = 0, 1, 2

#: Why a container completed (LOG.why).
FINISHED, RELEASED, PREEMPTED, LOST, APP_END = 1, 2, 3, 4, 5

#: Mutation: ignore the order of hash tables (for tests that must fail then); the same bit in all schedulers.
MUT_HASHORDER = 1 << 16
#: Who reads the scheduler's log (``G.hooks``, 0: nobody): the long-term integrals, or these and the simulated world.
INTEGRALS, WORLD = 1, 2
#: Kinds of log records (LOG.kind).
ASSIGNED, COMPLETED, RESERVED, UNRESERVED, VICTIM = 1, 2, 3, 4, 5
#: Of a container that was assigned and killed at once: its AM never hears of it.
UNHEARD = 0

#: A node.
N_FIELDS = (
    "avail_mb avail_vcores",  # its free resources
    "hb",  # heartbeats so far
    "alive:i",  # 1: it takes part
    "res_app:i",  # the application that has reserved it; -1: none
    "pre_head:i",  # first of the list of what was preempted on it for applications
    "n_done:i",  # containers that it will report as completed
    "n_launch:i",  # containers that its next heartbeat reports as launched
    "n_c:i c_tail:i",  # its containers, and the last one in its list of them
    "done_head:i done_tail:i",  # its list of containers to report as completed
    "map_cap:i",  # buckets of Hadoop's hash table of its containers, which gives their order
    "total_mb total_vcores",  # its size
    "pre_mb pre_vcores",  # sum of what was preempted on it for applications
    "c_head:i",  # first of its list of containers
    "rack:i",  # its rack
    "hash",  # hash of its ID in Java, for the order in Hadoop's tables
    "seq",  # its number in the order in which nodes joined
    "res_mb res_vcores",  # size of the reserved container
    "res_serial",  # the reserved container's serial number
    "res_priority res_alloc_id",  # priority and allocation ID of the ask that it is reserved for
    "res_cid",  # number in the ID of the reserved container
    "draining:i",  # 1: it is being decommissioned gracefully
    "over:i",  # 1: its overcommit time-out has passed
)

#: A container.
C = record(
    "app:i node:i",  # its application and its node
    "n_next:i n_prev:i",  # its neighbours in the node's list
    "a_next:i a_prev:i",  # its neighbours in the application's list
    "d_next:i",  # the next one in the node's list of containers to report as completed
    "free_next:i",  # the next free slot
    "live:b",  # 1: application and queue count it
    "marked:b",  # 1: preemption has chosen it
    "node_marked:b",  # 1: it was preempted on its node for an application
    "am:b",  # 1: it is its application's master
    "on_node:b",  # 1: it counts as running on the node
    "alive:b",  # 1: the slot is in use
    "done:b",  # 1: it is in its node's list of containers to report as completed
    "kill_due:b",  # 1: preemption's timer holds it
    "finishing:b",  # 1: its process has ended, which the node has not reported yet
    "acquired:b",  # 1: its master knows of it
    "launched:b",  # 1: the node has reported it as launched
    "from_reservation:b",  # 1: it fills a reservation
    "hb_left:i",  # heartbeats of its node until it is reported as completed
    "mb vcores:i",  # its size
    "acq_hb:i",  # heartbeats that the node had had when the master was told of it
    "start_ms",  # when it was assigned
    "serial",  # its number among all containers ever
    "cid",  # number in its ID
    "alloc_id",  # allocation ID of the ask that it answers
    "ask_mb ask_vcores:i ask_count:i",  # size and count of that ask, with which the request is restored
    "n:i",  # its number among its application's containers
    "priority:i",  # priority of the ask
    "app_id:i attempt:i",  # number in the application's ID, and number of the attempt
)

#: An outstanding ask; an application has a list of them, ordered by priority and allocation ID.
R = record(
    "app:i next:i",  # its application, and the next one in the list
    "priority:i",  # its priority
    "given:i",  # the container whose restored request it is; Hadoop shares one object, so counts change together
    "mb vcores",  # size of one container
    "count",  # containers that are outstanding
    "alloc_id",  # its allocation ID
    "seq",  # its number among all asks ever
    "given_serial",  # serial number of the container ``given``
)

#: A log record of what happened. Slot ``c`` may be in use for another container already; ``serial`` is unique.
LOG = record(
    "t kind why",  # when; one of ASSIGNED ... VICTIM; why a container completed or what preemption did to it
    "app app_id",  # the application, and the number in its ID
    "c serial n cid",  # the container: its slot, its number among all and among its application's, the number in its ID
    "node mb vcores priority",  # where it is, its size and its priority
    "am from_reservation",  # 1: it is the master; 1: it fills a reservation
    "for_app kill_ms",  # of preemption: for which application, and when the container is killed
    "start_ms attempt",  # when the container was assigned, and the number of the attempt
)
