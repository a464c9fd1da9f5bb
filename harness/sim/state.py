"""What the states of all simulated schedulers have in common: codes, and the records that shared kernels work on.

A scheduler's state is one NamedTuple of record arrays (`harness.sim.arrays.Arrays`). The shared kernels take it as
``s`` and expect these fields: ``c``, ``r`` and ``log`` are the records below, ``n`` has at least the fields of
`N_FIELDS`, ``x``, ``xg`` and ``win`` are those of `harness.sim.longterm_state`, and ``g``, ``q``, ``a`` and ``u`` have
whatever the kernels in ``harness/sim`` read (`harness.sim.fifo.state` is the smallest that has it all).

No behaviour lives here. Times are int64 milliseconds, memory is int64 MB, vcores are int64. -1 means "none" in every
index.
"""

from __future__ import annotations

from harness.sim.arrays import record

# What a kernel answers besides an index or a count.
NEED_ROOM = -1  # an array is full; nothing was changed; call Scheduler.grow() and repeat
REJECTED = -2  # the application was not accepted (its AM asks for a resource of which the queue may use none)
INVALID_ASK = -3  # the queue's maximum is 0 in a resource that the ask wants; nothing was changed
#: The application, container or node that a call names is not live; nothing was changed.
IGNORED = -4

#: How the next queue is chosen (G.order_mode).
STOCK, KEYED_LEVELS, KEYED_FLAT = 0, 1, 2

#: Why a container completed (LOG.why).
FINISHED, RELEASED, PREEMPTED, LOST, APP_END = 1, 2, 3, 4, 5

#: The order of hash tables is switched off (for the tests that must notice); the bit is the same in both schedulers.
MUT_HASHORDER = 1 << 16
#: Who follows the scheduler (``G.hooks``, 0: nobody): the long-term integrals alone, or they and the simulated world.
INTEGRALS, WORLD = 1, 2
#: Kinds of log records (LOG.kind).
ASSIGNED, COMPLETED, RESERVED, UNRESERVED, VICTIM = 1, 2, 3, 4, 5
#: Of a container that was assigned and killed at once: its master never hears of it.
UNHEARD = 0

#: Nodes. ``avail_*``: unallocated; ``n_launch``: containers that the next heartbeat reports as launched; ``done_*``:
#: containers that a heartbeat will report as completed; ``res_*``: the reservation; ``pre_*``: preempted for somebody;
#: ``draining``: it is being decommissioned gracefully; ``over``: its overcommit time-out has passed.
N_FIELDS = (
    "avail_mb avail_vcores hb alive:i res_app:i pre_head:i n_done:i n_launch:i n_c:i c_tail:i done_head:i "
    "done_tail:i map_cap:i total_mb total_vcores pre_mb pre_vcores c_head:i rack:i hash seq res_mb res_vcores "
    "res_serial res_priority res_alloc_id res_cid draining:i over:i"
)

#: Containers. ``live``: counted by application and queue; ``on_node``: counted by the node; ``done``: in the node's
#: list of completed ones to report; ``kill_due``: preemption's timer holds it.
C = record(
    "app:i node:i n_next:i n_prev:i a_next:i a_prev:i d_next:i free_next:i live:b marked:b node_marked:b am:b "
    "on_node:b alive:b done:b kill_due:b finishing:b acquired:b launched:b from_reservation:b hb_left:i mb vcores:i "
    "acq_hb:i start_ms serial cid alloc_id ask_mb ask_vcores:i ask_count:i n:i priority:i app_id:i attempt:i"
)

#: Outstanding asks, a list per application ordered by (priority, alloc_id). ``given``, ``given_serial``: the container
#: that has given the ask back, if one has (Hadoop keeps one object for both, whose count changes for both).
R = record("app:i next:i priority:i given:i mb vcores count alloc_id seq given_serial")

#: What happened. ``c`` may be recycled already; ``serial`` is unique per container.
LOG = record(
    "t kind why app app_id c serial n cid node mb vcores priority am from_reservation for_app kill_ms start_ms attempt"
)
