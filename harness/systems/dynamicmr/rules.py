"""How map and reduce slots are given out: what a policy answers where a cluster has them. Values only.

Source: tang-thesis chapter 4 (Table 4.3 has the arguments), Zaharia et al. (OSDI 2008) for LATE.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal, Protocol, runtime_checkable

from harness.policies.base import Policy
from harness.policies.fair import Fair
from harness.policies.fifo import Fifo

#: static: tasks stay in slots of their kind. independent, dependent: PI-DHSA (Algorithm 6) and PD-DHSA (Algorithm 7).
#: containers: no kinds at all, as in YARN.
Sharing = Literal["static", "independent", "dependent", "containers"]


@dataclass(frozen=True, slots=True)
class Late:
    """Speculative execution by LATE: a copy of the task with the longest time left, if it is slow among its job's.

    A task is slow when its progress rate lies ``slow_task`` standard deviations below the mean of its job's; it must
    have run for ``lag_ms``. At most the part ``cap`` of the slots runs copies.
    """

    on: bool = False
    lag_ms: int = 60_000
    slow_task: float = 1.0
    cap: float = 0.1


@dataclass(frozen=True, slots=True)
class Rules:
    """How free slots are given out: Table 4.3's arguments, and what the Fair Scheduler does without them.

    borrowed_map, borrowed_reduce
        percentageOfBorrowedMapSlots and percentageOfBorrowedReduceSlots (0 to 1): how much of the map slots reduces may
        borrow, and the other way round.
    borrowed_of
        What the two are parts of: the capacity (Algorithm 6, lines 13 and 19), or the slots that no task of their own
        kind holds as the heartbeat comes (section 4.2.2.1's text, Table 4.3).
    sepb, sepb_pool
        percentageOfJobsCheckedForPendingTasks over all jobs, or (``sepb_pool``) over those of the pool. 0: no SEPB.
    kill_factor
        With SEPB an attempt that has run so many times its job's average is killed, once a task. 0: never.
    prescheduling, borrowable
        Slot PreScheduling, and maximumBorrowableReduceSlots.
    map_slots
        Map slots of a node, out of its sum of slots; 0: as the experiment has them.
    """

    sharing: Sharing = "static"
    fifo: bool = False
    borrowed_map: float = 1.0
    borrowed_reduce: float = 1.0
    borrowed_of: Literal["capacity", "unused"] = "capacity"
    sepb: float = 0.0
    sepb_pool: bool = False
    kill_factor: float = 2.0
    prescheduling: bool = False
    borrowable: int = 100_000
    delay_scheduling: bool = True
    late: Late = field(default_factory=Late)
    #: `containers`: the most of a job's containers that its reduces take while maps wait (MRAppMaster's 0.5).
    ramp_up: float = 0.5
    #: `containers`: mapreduce.job.running.map.limit and .reduce.limit, of each job; 0: none.
    map_limit: int = 0
    reduce_limit: int = 0
    #: Pool -> weight; a pool that is not named has 1.
    weights: Mapping[str, Fraction] = field(default_factory=dict)
    #: Pool -> its minimum of maps and of reduces (minMaps, minReduces); a pool that is not named has none.
    minimums: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    #: Pools whose jobs go by submission; in the others the job that runs least goes first.
    fifo_pools: frozenset[str] = frozenset()
    map_slots: int = 0


@runtime_checkable
class SlotPolicy(Protocol):
    """A policy with rules of its own for map and reduce slots."""

    def slot_rules(self, *, speculation: bool) -> Rules:
        """Return the rules. ``speculation``: whether the experiment asks for LATE's copies."""
        ...


def slot_rules(policy: Policy, *, speculation: bool) -> Rules | None:
    """How a policy gives out MRv1's map and reduce slots. None: it has no rule for them.

    The core's ``fair`` and ``fifo`` are here as MRv1's Fair Scheduler has them.
    """
    if isinstance(policy, SlotPolicy):
        return policy.slot_rules(speculation=speculation)
    if isinstance(policy, Fair | Fifo):
        return Rules(late=Late(on=speculation), fifo=isinstance(policy, Fifo))
    return None
