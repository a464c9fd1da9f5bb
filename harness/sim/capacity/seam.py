"""What the world around the scheduler calls by the Fair Scheduler's names and arguments, where the two differ."""

from __future__ import annotations

from harness.sim.capacity import apps
from harness.sim.capacity.state import S
from harness.sim.kernel import kernel

_LONG_MAX = 2**63 - 1
_add = apps.add_app


@kernel
def add_app(s: S, leaf: int, user: int, managed: bool, am_mb: int, am_vcores: int, app_id: int, now: int) -> int:
    """As `apps.add_app`, without a priority; `user` is the user in this leaf."""
    return _add(s, user, 0, managed, am_mb if managed else -1, am_vcores, app_id, now)


@kernel
def nothing_now(s: S, now: int) -> int:
    """There is no update and no preemption: capacities follow each change at once."""
    return 0


@kernel
def never(s: S) -> int:
    """No kill is due."""
    return _LONG_MAX


@kernel
def always(s: S) -> bool:
    """There is no update that could change anything."""
    return True
