"""The parameters of a scheduler's preemption that a controller has to know."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PreemptionRule:
    """The parameters of the Capacity Scheduler's preemption that a controller needs in order to hardly trigger it.

    Parameters
    ----------
    ignored
        A queue loses no container while its usage exceeds its share by at most this fraction
        (``max_ignored_over_capacity``).
    wait_s
        Time from marking a container to killing it, seconds (``max_wait_before_kill``).
    counted_on
        Shares may fall below the usage by this fraction of the containers that are expected to end within `wait_s`. A
        larger value pays debts sooner and causes more kills.
    dominant
        Whether shares are compared by the dominant resource instead of memory.
    """

    ignored: float = 0.1
    wait_s: float = 15.0
    counted_on: float = 0.25
    dominant: bool = False
