"""Kernels of a scheduler that lacks a feature: defaults of `harness.sim.ops.SchedulerOps`."""

from __future__ import annotations

from harness.sim.kernel import kernel
from harness.sim.state import SchedulerState

_LONG_MAX, _INT_MAX = 2**63 - 1, 2**31 - 1


@kernel
def nothing(s: SchedulerState, slot: int) -> None:
    """Do nothing for an application, a queue, a node or a container."""


@kernel
def nothing_now(s: SchedulerState, now: int) -> int:
    """Do nothing, as there is no periodic update or no preemption."""
    return 0


@kernel
def nothing_there(s: SchedulerState, slot: int, now: int) -> None:
    """Do nothing for a node or an application, as there are no reservations."""


@kernel
def unlimited(s: SchedulerState, queue: int) -> int:
    """Return a number that no count of running applications reaches."""
    return _INT_MAX


@kernel
def none_starts(s: SchedulerState, i: int, now: int) -> bool:
    """Return False: no application ever waits for a limit on running applications."""
    return False


@kernel
def never(s: SchedulerState) -> int:
    """Return the largest long: no kill is ever due."""
    return _LONG_MAX


@kernel
def always(s: SchedulerState) -> bool:
    """Return True: a periodic update would change nothing."""
    return True


@kernel
def yes(s: SchedulerState) -> bool:
    """Return True: the scheduler has room, or counts vcores."""
    return True


@kernel
def no(s: SchedulerState) -> bool:
    """Return False: the scheduler does not have the feature."""
    return False


@kernel
def nothing_over(s: SchedulerState, mb: int, vcores: int) -> bool:
    """Return False: no node counts as overcommitted."""
    return False


@kernel
def no_records(s: SchedulerState, i: int) -> int:
    """Return 0: the end of an application logs nothing besides its containers."""
    return 0


@kernel
def log_room(s: SchedulerState, more: int) -> bool:
    """Return whether the log has space for `more` records; a change of the cluster adds no records of its own."""
    room: bool = s.g[0].n_log + more <= len(s.log)
    return room
