"""The rule by which a scheduler preempts containers of one queue for another, as far as it depends on shares."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PreemptionRule:
    """The parameters of the Capacity Scheduler's preemption that a controller needs in order to hardly trigger it.

    Parameters
    ----------
    ignored
        A queue loses nothing while its use exceeds its share by at most this fraction (``max_ignored_over_capacity``).
    wait_s
        Time from marking a container to killing it, seconds (``max_wait_before_kill``).
    counted_on
        The fraction of containers expected to end by themselves within `wait_s` by which shares may run ahead, in whole
        containers of each queue. A larger value pays debts sooner and kills more.
    dominant
        Whether shares are compared by the dominant resource instead of memory.
    """

    ignored: float = 0.1
    wait_s: float = 15.0
    counted_on: float = 0.25
    dominant: bool = False
