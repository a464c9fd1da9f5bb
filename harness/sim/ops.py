"""The kernels that shared kernels call: one table, `SchedulerOps`, for each simulated scheduler.

The functions below the table have the names of its fields. ``ops.used(s, i)`` calls the field ``used`` of the table of
the scheduler that the state ``s`` belongs to (`harness.sim.arrays.Arrays.scheduler`). The table is selected when the
caller is compiled, so the selection costs nothing at run time. Only compiled code may call these functions; Python
calls a scheduler's own kernels.

In all signatures ``s`` is the scheduler's state; ``i``, ``c``, ``r`` and ``ni`` are the slots of an application, a
container, an ask and a node; ``leaf`` and ``queue`` are slots of queues; ``now`` is the time in milliseconds; memory is
in MB.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from harness.base.extensions import load
from harness.sim import no_ops
from harness.sim.kernel import dispatched
from harness.sim.schedulers import SCHEDULERS


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulerOps:
    """The kernels of one scheduler that shared kernels call. Fields with a default are optional features."""

    # --- asks (`harness.sim.attempts`)

    #: ``(s, i, priority, alloc_id) -> r``: add an ask for 0 containers to an application's list.
    put_ask: Callable[[Any, int, int, int], int]
    #: ``(s, i, r)``: remove an ask from its application's list.
    drop_ask: Callable[[Any, int, int], None]
    #: ``(s, i, mb, vcores)``: add (negative: subtract) outstanding resources of an application and its queues.
    change_pending: Callable[[Any, int, int, int], None]
    #: ``(s, i, count, mb, vcores)``: an application has set the total number of containers of a size that it wants.
    asked: Callable[[Any, int, int, int, int], None]
    #: ``(s, leaf)``: the size of an ask in a leaf has changed.
    ask_resized: Callable[[Any, int], None] = no_ops.nothing
    #: ``(s, leaf, mb, vcores) -> (mb, vcores)``: the normalised resources of an ask.
    normalize: Callable[[Any, int, int, int], tuple[int, int]]
    #: ``(s, leaf, mb, vcores) -> bool``: a leaf's maximum is 0 in a requested resource; the ask is refused.
    has_none_of: Callable[[Any, int, int, int], bool]

    # --- containers (`harness.sim.attempts`)

    #: ``(s, i)``: the usage of an application and its queues has changed.
    used: Callable[[Any, int], None] = no_ops.nothing
    #: ``(s, c)``: a container is complete.
    freed: Callable[[Any, int], None] = no_ops.nothing

    # --- nodes (`harness.sim.nodes`)

    #: ``(s, ni, now) -> count``: assign containers on a node at its heartbeat; returns the number of containers
    #: assigned, or for the Capacity Scheduler the number of rounds.
    attempt_scheduling: Callable[[Any, int, int], int]
    #: ``(s, ni) -> bool``: a heartbeat of this node would change nothing now, and can be skipped.
    can_skip: Callable[[Any, int], bool]
    #: ``(s, ni) -> count``: the most containers that one heartbeat may assign.
    most_rounds: Callable[[Any, int], int]
    #: ``(s, more) -> bool``: the log has room for the records of a change of the cluster, and for ``more`` others.
    change_room: Callable[[Any, int], bool] = no_ops.log_room
    #: ``(s, ni)``: a node has registered.
    node_joined: Callable[[Any, int], None] = no_ops.nothing
    #: ``(s, ni)``: a node is about to be lost; its containers are still there.
    node_leaves: Callable[[Any, int], None] = no_ops.nothing
    #: ``(s, now)``: a node has joined, left or changed its capacity.
    cluster_changed: Callable[[Any, int], None] = no_ops.nothing
    #: ``(s, mb, vcores) -> bool``: a node with these free resources is overcommitted, so that containers may be killed.
    overcommitted: Callable[[Any, int, int], bool] = no_ops.nothing_over
    #: ``(s) -> bool``: a container must fit into a node's vcores, too.
    counts_vcores: Callable[[Any], bool] = no_ops.yes

    # --- reservations

    #: ``(s, ni, now)``: give up a node's reservation without a container.
    drop_reservation: Callable[[Any, int, int], None] = no_ops.nothing_there
    #: ``(s, i, now)``: give up all reservations of an application.
    drop_reservations: Callable[[Any, int, int], None] = no_ops.nothing_there
    #: ``(s) -> bool``: there is room for one more reservation.
    may_reserve: Callable[[Any], bool] = no_ops.yes

    # --- applications (`harness.sim.nodes`, `harness.sim.enforcer`, `harness.sim.waiting`)

    #: ``(s, leaf, user, managed, am_mb, am_vcores, app_id, now) -> i``: add an application; returns its slot,
    #: ``NEED_ROOM`` or ``REJECTED``. ``user``: `harness.sim.pools.SchedulerBase.user_slot`; ``managed``: it has an AM,
    #: which is its first container; ``am_mb`` < 0: the AM is not asked for here; ``app_id`` < 1: the next number.
    add_app: Callable[[Any, int, int, bool, int, int, int, int], int]
    #: ``(s, i, am_mb, am_vcores, now)``: a new attempt of an application, after one that has ended.
    new_attempt: Callable[[Any, int, int, int, int], None]
    #: ``(s, i, now)``: an attempt has ended and leaves its queue's and its user's lists.
    remove_attempt: Callable[[Any, int, int], None]
    #: ``(s, i)``: an application has ended, with its last attempt.
    app_ended: Callable[[Any, int], None]
    #: ``(s, i) -> count``: log records that the end of an attempt and a new one may need, besides those of containers.
    end_records: Callable[[Any, int], int] = no_ops.no_records
    #: ``(s, queue) -> count``: how many more applications a queue may run.
    remaining_app_slots: Callable[[Any, int], int] = no_ops.unlimited
    #: ``(s, i, now) -> bool``: start an application that waits for a limit on running ones, if it may run.
    starts: Callable[[Any, int, int], bool] = no_ops.none_starts
    #: ``(s, i)``: remove a started application from the waiting lists.
    stop_waiting: Callable[[Any, int], None] = no_ops.nothing

    # --- headroom

    #: ``(s, i) -> (mb, vcores, counts_vcores)``: the headroom that the scheduler reports to an AM.
    headroom: Callable[[Any, int], tuple[int, int, int]]
    #: ``(s) -> bool``: whether `show_headroom` has an effect on the scheduler.
    tells_headroom: Callable[[Any], bool] = no_ops.no
    #: ``(s, i)``: an AM receives its headroom.
    show_headroom: Callable[[Any, int], None] = no_ops.nothing

    # --- periodic updates and preemption (`harness.sim.loop`)

    #: ``(s, now) -> int``: the periodic update.
    update: Callable[[Any, int], int] = no_ops.nothing_now
    #: ``(s) -> bool``: an update now would change nothing.
    is_settled: Callable[[Any], bool] = no_ops.always
    #: ``(s, now) -> int``: choose containers to preempt, or ``NEED_ROOM``.
    preempt_pass: Callable[[Any, int], int] = no_ops.nothing_now
    #: ``(s) -> now``: the time at which `run_kills` is due next.
    next_kill_ms: Callable[[Any], int] = no_ops.never
    #: ``(s, now) -> int``: kill the containers that are due; returns their number or ``NEED_ROOM``.
    run_kills: Callable[[Any, int], int] = no_ops.nothing_now

    # --- a policy's orders inside the scheduler (`harness.sim.longterm_kernels`, `harness.sim.keyed`)

    #: ``(s, leaf)``: the rate at which a leaf's resources are counted has changed.
    counted_anew: Callable[[Any, int], None] = no_ops.nothing
    #: ``(s, queue)``: a policy has changed a queue's key.
    key_changed: Callable[[Any, int], None] = no_ops.nothing


def ops_of(state: Any) -> SchedulerOps:
    """Return the table of the scheduler whose state has this compiled type (`harness.sim.arrays.ArraysType`)."""
    found: SchedulerOps = load(SCHEDULERS[state.scheduler]).ops
    return found


def _op(name: str) -> Any:
    return dispatched(lambda state: getattr(ops_of(state), name))


put_ask = _op("put_ask")
drop_ask = _op("drop_ask")
change_pending = _op("change_pending")
asked = _op("asked")
ask_resized = _op("ask_resized")
normalize = _op("normalize")
has_none_of = _op("has_none_of")
used = _op("used")
freed = _op("freed")
attempt_scheduling = _op("attempt_scheduling")
can_skip = _op("can_skip")
most_rounds = _op("most_rounds")
change_room = _op("change_room")
node_joined = _op("node_joined")
node_leaves = _op("node_leaves")
cluster_changed = _op("cluster_changed")
overcommitted = _op("overcommitted")
counts_vcores = _op("counts_vcores")
drop_reservation = _op("drop_reservation")
drop_reservations = _op("drop_reservations")
may_reserve = _op("may_reserve")
add_app = _op("add_app")
new_attempt = _op("new_attempt")
remove_attempt = _op("remove_attempt")
app_ended = _op("app_ended")
end_records = _op("end_records")
remaining_app_slots = _op("remaining_app_slots")
starts = _op("starts")
stop_waiting = _op("stop_waiting")
headroom = _op("headroom")
tells_headroom = _op("tells_headroom")
show_headroom = _op("show_headroom")
update = _op("update")
is_settled = _op("is_settled")
preempt_pass = _op("preempt_pass")
next_kill_ms = _op("next_kill_ms")
run_kills = _op("run_kills")
counted_anew = _op("counted_anew")
key_changed = _op("key_changed")
