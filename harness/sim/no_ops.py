"""Kernels of a scheduler that lacks a feature: defaults of `harness.sim.ops.SchedulerOps`."""

# mypy: disable-error-code="attr-defined"
# (records have their fields as attributes only in compiled code)

from __future__ import annotations

from typing import Any

from harness.sim.kernel import kernel

_LONG_MAX, _INT_MAX = 2**63 - 1, 2**31 - 1


@kernel
def nothing(s: Any, slot: int) -> None:
    """No-op for one application, queue, node or container."""


@kernel
def nothing_now(s: Any, now: int) -> int:
    """No-op at a time: no periodic update, no preemption."""
    return 0


@kernel
def nothing_there(s: Any, slot: int, now: int) -> None:
    """No-op for one node or application at a time: no reservations."""


@kernel
def unlimited(s: Any, queue: int) -> int:
    """No limit on the applications that run in a queue."""
    return _INT_MAX


@kernel
def none_starts(s: Any, i: int, now: int) -> bool:
    """No application ever waits for a limit on running ones."""
    return False


@kernel
def never(s: Any) -> int:
    """No kill is due."""
    return _LONG_MAX


@kernel
def always(s: Any) -> bool:
    """A periodic update would change nothing."""
    return True


@kernel
def yes(s: Any) -> bool:
    """The scheduler has room, or counts vcores."""
    return True


@kernel
def no(s: Any) -> bool:
    """The scheduler does not have the feature."""
    return False


@kernel
def nothing_over(s: Any, mb: int, vcores: int) -> bool:
    """Nothing is killed on a node that has less than it runs."""
    return False


@kernel
def no_records(s: Any, i: int) -> int:
    """The end of an application logs nothing besides its containers."""
    return 0


@kernel
def log_room(s: Any, more: int) -> bool:
    """The log has room for this many records more, and a change of the cluster needs no others."""
    room: bool = s.g[0].n_log + more <= len(s.log)
    return room
