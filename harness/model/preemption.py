"""By which rule a scheduler takes running containers from one queue for another, as far as shares decide it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PreemptionRule:
    """What a controller has to know of the Capacity Scheduler's preemption so that it hardly sets it going.

    Parameters
    ----------
    ignored
        A queue loses nothing while it uses at most this part more than its share (``max_ignored_over_capacity``).
    wait_s
        How long a container is marked before it is killed, seconds (``max_wait_before_kill``).
    counted_on
        Which part of what is expected to end by itself within `wait_s` shares may be ahead of, in whole containers of
        each queue. More of it pays debts sooner and kills more.
    dominant
        Whether shares are compared by the dominant resource; else by memory.
    """

    ignored: float = 0.1
    wait_s: float = 15.0
    counted_on: float = 0.25
    dominant: bool = False
