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
from typing import Any, Generic, TypeVar

from harness.base.extensions import load
from harness.sim import no_ops
from harness.sim.arrays import ArraysType
from harness.sim.kernel import dispatched
from harness.sim.schedulers import SCHEDULERS
from harness.sim.state import SchedulerState

_State = TypeVar("_State", bound=SchedulerState)
_Op = TypeVar("_Op", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulerOps(Generic[_State]):
    """The kernels of one scheduler that shared kernels call. Fields with a default are optional features.

    ``_State`` is the type of the scheduler's own state.
    """

    # --- asks (`harness.sim.attempts`)

    #: ``(s, i, priority, alloc_id) -> r``: add an ask for 0 containers to an application's list.
    put_ask: Callable[[_State, int, int, int], int]
    #: ``(s, i, r)``: remove an ask from its application's list.
    drop_ask: Callable[[_State, int, int], None]
    #: ``(s, i, mb, vcores)``: add (negative: subtract) outstanding resources of an application and its queues.
    change_pending: Callable[[_State, int, int, int], None]
    #: ``(s, i, count, mb, vcores)``: an application has set the total number of containers of a size that it wants.
    asked: Callable[[_State, int, int, int, int], None]
    #: ``(s, leaf)``: the size of an ask in a leaf has changed.
    ask_resized: Callable[[_State, int], None] = no_ops.nothing
    #: ``(s, leaf, mb, vcores) -> (mb, vcores)``: the normalised resources of an ask.
    normalize: Callable[[_State, int, int, int], tuple[int, int]]
    #: ``(s, leaf, mb, vcores) -> bool``: a leaf's maximum is 0 in a requested resource; the ask is refused.
    has_none_of: Callable[[_State, int, int, int], bool]

    # --- containers (`harness.sim.attempts`)

    #: ``(s, i)``: the usage of an application and its queues has changed.
    used: Callable[[_State, int], None] = no_ops.nothing
    #: ``(s, c)``: a container is complete.
    freed: Callable[[_State, int], None] = no_ops.nothing

    # --- nodes (`harness.sim.nodes`)

    #: ``(s, ni, now) -> count``: assign containers on a node at its heartbeat; returns the number of containers
    #: assigned, or for the Capacity Scheduler the number of rounds.
    attempt_scheduling: Callable[[_State, int, int], int]
    #: ``(s, ni) -> bool``: a heartbeat of this node would change nothing now, and can be skipped.
    can_skip: Callable[[_State, int], bool]
    #: ``(s, ni) -> count``: the most containers that one heartbeat may assign.
    most_rounds: Callable[[_State, int], int]
    #: ``(s, more) -> bool``: the log has room for the records of a change of the cluster, and for ``more`` others.
    change_room: Callable[[_State, int], bool] = no_ops.log_room
    #: ``(s, ni)``: a node has registered.
    node_joined: Callable[[_State, int], None] = no_ops.nothing
    #: ``(s, ni)``: a node is about to be lost; its containers are still there.
    node_leaves: Callable[[_State, int], None] = no_ops.nothing
    #: ``(s, now)``: a node has joined, left or changed its capacity.
    cluster_changed: Callable[[_State, int], None] = no_ops.nothing
    #: ``(s, mb, vcores) -> bool``: a node with these free resources is overcommitted, so that containers may be killed.
    overcommitted: Callable[[_State, int, int], bool] = no_ops.nothing_over
    #: ``(s) -> bool``: a container must fit into a node's vcores, too.
    counts_vcores: Callable[[_State], bool] = no_ops.yes

    # --- reservations

    #: ``(s, ni, now)``: give up a node's reservation without a container.
    drop_reservation: Callable[[_State, int, int], None] = no_ops.nothing_there
    #: ``(s, i, now)``: give up all reservations of an application.
    drop_reservations: Callable[[_State, int, int], None] = no_ops.nothing_there
    #: ``(s) -> bool``: there is room for one more reservation.
    may_reserve: Callable[[_State], bool] = no_ops.yes

    # --- applications (`harness.sim.nodes`, `harness.sim.enforcer`, `harness.sim.waiting`)

    #: ``(s, leaf, user, managed, am_mb, am_vcores, app_id, now) -> i``: add an application; returns its slot,
    #: ``NEED_ROOM`` or ``REJECTED``. ``user``: `harness.sim.pools.SchedulerBase.user_slot`; ``managed``: it has an AM,
    #: which is its first container; ``am_mb`` < 0: the AM is not asked for here; ``app_id`` < 1: the next number.
    add_app: Callable[[_State, int, int, bool, int, int, int, int], int]
    #: ``(s, i, am_mb, am_vcores, now)``: a new attempt of an application, after one that has ended.
    new_attempt: Callable[[_State, int, int, int, int], None]
    #: ``(s, i, now)``: an attempt has ended and leaves its queue's and its user's lists.
    remove_attempt: Callable[[_State, int, int], None]
    #: ``(s, i)``: an application has ended, with its last attempt.
    app_ended: Callable[[_State, int], None]
    #: ``(s, i) -> count``: log records that the end of an attempt and a new one may need, besides those of containers.
    end_records: Callable[[_State, int], int] = no_ops.no_records
    #: ``(s, queue) -> count``: how many more applications a queue may run.
    remaining_app_slots: Callable[[_State, int], int] = no_ops.unlimited
    #: ``(s, i, now) -> bool``: start an application that waits for a limit on running ones, if it may run.
    starts: Callable[[_State, int, int], bool] = no_ops.none_starts
    #: ``(s, i)``: remove a started application from the waiting lists.
    stop_waiting: Callable[[_State, int], None] = no_ops.nothing

    # --- headroom

    #: ``(s, i) -> (mb, vcores, counts_vcores)``: the headroom that the scheduler reports to an AM.
    headroom: Callable[[_State, int], tuple[int, int, int]]
    #: ``(s) -> bool``: whether `show_headroom` has an effect on the scheduler.
    tells_headroom: Callable[[_State], bool] = no_ops.no
    #: ``(s, i)``: an AM receives its headroom.
    show_headroom: Callable[[_State, int], None] = no_ops.nothing

    # --- periodic updates and preemption (`harness.sim.loop`)

    #: ``(s, now) -> int``: the periodic update.
    update: Callable[[_State, int], int] = no_ops.nothing_now
    #: ``(s) -> bool``: an update now would change nothing.
    is_settled: Callable[[_State], bool] = no_ops.always
    #: ``(s, now) -> int``: choose containers to preempt, or ``NEED_ROOM``.
    preempt_pass: Callable[[_State, int], int] = no_ops.nothing_now
    #: ``(s) -> now``: the time at which `run_kills` is due next.
    next_kill_ms: Callable[[_State], int] = no_ops.never
    #: ``(s, now) -> int``: kill the containers that are due; returns their number or ``NEED_ROOM``.
    run_kills: Callable[[_State, int], int] = no_ops.nothing_now

    # --- a policy's orders inside the scheduler (`harness.sim.longterm_kernels`, `harness.sim.keyed`)

    #: ``(s, leaf)``: the rate at which a leaf's resources are counted has changed.
    counted_anew: Callable[[_State, int], None] = no_ops.nothing
    #: ``(s, queue)``: a policy has changed a queue's key.
    key_changed: Callable[[_State, int], None] = no_ops.nothing


def ops_of(state: ArraysType) -> SchedulerOps[SchedulerState]:
    """Return the table of the scheduler whose state has this compiled type (`harness.sim.arrays.ArraysType`)."""
    found: SchedulerOps[SchedulerState] = load(SCHEDULERS[state.scheduler]).ops
    return found


def _op(field: Callable[[SchedulerOps[SchedulerState]], _Op]) -> _Op:
    """Return the function that calls a field of the table of the scheduler whose state is its first argument."""
    return dispatched(lambda state: field(ops_of(state)))


put_ask = _op(lambda ops: ops.put_ask)
drop_ask = _op(lambda ops: ops.drop_ask)
change_pending = _op(lambda ops: ops.change_pending)
asked = _op(lambda ops: ops.asked)
ask_resized = _op(lambda ops: ops.ask_resized)
normalize = _op(lambda ops: ops.normalize)
has_none_of = _op(lambda ops: ops.has_none_of)
used = _op(lambda ops: ops.used)
freed = _op(lambda ops: ops.freed)
attempt_scheduling = _op(lambda ops: ops.attempt_scheduling)
can_skip = _op(lambda ops: ops.can_skip)
most_rounds = _op(lambda ops: ops.most_rounds)
change_room = _op(lambda ops: ops.change_room)
node_joined = _op(lambda ops: ops.node_joined)
node_leaves = _op(lambda ops: ops.node_leaves)
cluster_changed = _op(lambda ops: ops.cluster_changed)
overcommitted = _op(lambda ops: ops.overcommitted)
counts_vcores = _op(lambda ops: ops.counts_vcores)
drop_reservation = _op(lambda ops: ops.drop_reservation)
drop_reservations = _op(lambda ops: ops.drop_reservations)
may_reserve = _op(lambda ops: ops.may_reserve)
add_app = _op(lambda ops: ops.add_app)
new_attempt = _op(lambda ops: ops.new_attempt)
remove_attempt = _op(lambda ops: ops.remove_attempt)
app_ended = _op(lambda ops: ops.app_ended)
end_records = _op(lambda ops: ops.end_records)
remaining_app_slots = _op(lambda ops: ops.remaining_app_slots)
starts = _op(lambda ops: ops.starts)
stop_waiting = _op(lambda ops: ops.stop_waiting)
headroom = _op(lambda ops: ops.headroom)
tells_headroom = _op(lambda ops: ops.tells_headroom)
show_headroom = _op(lambda ops: ops.show_headroom)
update = _op(lambda ops: ops.update)
is_settled = _op(lambda ops: ops.is_settled)
preempt_pass = _op(lambda ops: ops.preempt_pass)
next_kill_ms = _op(lambda ops: ops.next_kill_ms)
run_kills = _op(lambda ops: ops.run_kills)
counted_anew = _op(lambda ops: ops.counted_anew)
key_changed = _op(lambda ops: ops.key_changed)
