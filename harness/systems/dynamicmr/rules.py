"""The rules by which map and reduce slots are given to tasks, as policies return them. Data only.

Sources: tang-thesis chapter 4 (Table 4.3 lists the arguments), and Zaharia et al. (OSDI 2008) for LATE.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal, Protocol, runtime_checkable

from harness.policies.base import Policy
from harness.policies.fair import Fair
from harness.policies.fifo import Fifo

#: static: tasks use slots of their own kind. independent, dependent: PI-DHSA (Algorithm 6) and PD-DHSA (Algorithm 7).
#: containers: slots have no kind, as in YARN.
Sharing = Literal["static", "independent", "dependent", "containers"]


@dataclass(frozen=True, slots=True)
class Late:
    """Speculative execution by LATE: copies the slow task with the longest remaining time.

    A task is slow if its progress rate is ``slow_task`` standard deviations below the mean of its job's tasks. It must
    have run for ``lag_ms`` milliseconds. At most the fraction ``cap`` of the slots runs copies.
    """

    on: bool = False
    lag_ms: int = 60_000
    slow_task: float = 1.0
    cap: float = 0.1


@dataclass(frozen=True, slots=True)
class Rules:
    """How free slots are given to tasks: the arguments of Table 4.3, and what the Fair Scheduler does without them.

    borrowed_map, borrowed_reduce
        percentageOfBorrowedMapSlots and percentageOfBorrowedReduceSlots (0 to 1): the fraction of the map slots that
        reduces may borrow, and of the reduce slots that maps may borrow.
    borrowed_of
        What these are fractions of: the capacity (Algorithm 6, lines 13 and 19), or the slots that no task of their own
        kind holds at the heartbeat (section 4.2.2.1's text, Table 4.3).
    sepb, sepb_pool
        percentageOfJobsCheckedForPendingTasks over all jobs, or (``sepb_pool``) over the jobs of the pool. 0: no SEPB.
    kill_factor
        With SEPB an attempt is killed after this many times its job's average time, once per task. 0: never.
    prescheduling, borrowable
        Slot PreScheduling, and maximumBorrowableReduceSlots.
    map_slots
        Number of map slots among all slots of a node; 0: as the experiment says.
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
    #: `containers`: the largest fraction of a job's containers that its reduces take while maps wait (0.5 in
    #: MRAppMaster).
    ramp_up: float = 0.5
    #: `containers`: mapreduce.job.running.map.limit and .reduce.limit of each job; 0: no limit.
    map_limit: int = 0
    reduce_limit: int = 0
    #: Weight by pool; 1 for pools that are not listed.
    weights: Mapping[str, Fraction] = field(default_factory=dict)
    #: Minimum maps and reduces by pool (minMaps, minReduces); none for pools that are not listed.
    minimums: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    #: Pools that serve jobs in the order of submission. In other pools the job that runs least is served first.
    fifo_pools: frozenset[str] = frozenset()
    map_slots: int = 0


@runtime_checkable
class SlotPolicy(Protocol):
    """A policy with its own rules for map and reduce slots."""

    def slot_rules(self, *, speculation: bool) -> Rules:
        """Return the rules. ``speculation``: whether the experiment uses LATE's copies."""
        ...


def slot_rules(policy: Policy, *, speculation: bool) -> Rules | None:
    """Return a policy's rules for MRv1's map and reduce slots, or None if it has none.

    The core policies ``fair`` and ``fifo`` get the rules of MRv1's Fair Scheduler.
    """
    if isinstance(policy, SlotPolicy):
        return policy.slot_rules(speculation=speculation)
    if isinstance(policy, Fair | Fifo):
        return Rules(late=Late(on=speculation), fifo=isinstance(policy, Fifo))
    return None
