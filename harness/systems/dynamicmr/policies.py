"""The policies ``pi-dhsa``, ``pd-dhsa`` and ``dynamicmr`` (tang-thesis chapter 4).

With them, MRv1's map slots serve reduces and its reduce slots serve maps. The rules apply to clusters of map and reduce
slots, which harness.systems.dynamicmr.simulator simulates. Containers have no kind, so there is nothing to borrow: on
YARN, and on paper with unit tasks, these policies are the underlying Fair Scheduler (or FIFO).
docs/figures-dynamicmr.md says which parts of them can be configured on a stock YARN cluster.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from harness.model.plan import Plan
from harness.model.snapshot import Snapshot
from harness.policies.base import LedgerView, Policy, flag, number, word
from harness.policies.fair import Fair
from harness.policies.fifo import Fifo
from harness.systems.dynamicmr.rules import Late, Rules, Sharing


@dataclass(frozen=True, slots=True)
class SlotSettings:
    """The arguments of Table 4.3 under short names; `_Slots.aliases` maps the thesis' names to them."""

    scheduler: str = word("fair", "fair", "fifo", doc="what it builds on: the Fair Scheduler's pools, or FIFO")
    mode: str = word(
        "poolindependent",
        "poolindependent",
        "pooldependent",
        "static",
        "containers",
        doc="PI-DHSA, PD-DHSA; for comparison no lending, or YARN's containers of no kind",
    )
    borrowed_map: float = number(1.0, at_least=0, at_most=1, doc="part of the map slots that reduces may borrow")
    borrowed_reduce: float = number(1.0, at_least=0, at_most=1, doc="part of the reduce slots that maps may borrow")
    borrowed_of: str = word(
        "capacity", "capacity", "unused", doc="what the two are parts of: all slots, or unused ones"
    )
    sepb_mode: str = word("globallevel", "globallevel", "poollevel", doc="whose jobs are checked before a copy")
    sepb: float = number(0.0, at_least=0, at_most=1, doc="part of the cluster's jobs that are checked; 0: no SEPB")
    sepb_pool: float = number(0.0, at_least=0, at_most=1, doc="part of the pool's jobs that are checked; 0: no SEPB")
    kill_factor: float = number(2.0, at_least=0, doc="SEPB kills what runs this many times its job's average; 0: never")
    prescheduling: bool = flag(False, doc="Slot PreScheduling: local maps on slots that load balancing would deny")
    borrowable: float = number(100_000, at_least=0, doc="most reduce slots that PreScheduling has lent at once")
    delay_scheduling: bool = flag(True, doc="wait for a node with the block, as long as the cluster says")
    speculation: str = word("cluster", "cluster", "on", "off", doc="LATE's copies: as the experiment says, or not")
    ramp_up: float = number(
        0.5, at_least=0, at_most=1, doc="containers: most of a job's that reduces take while maps wait"
    )
    map_limit: float = number(0, at_least=0, doc="containers: mapreduce.job.running.map.limit; 0: none")
    reduce_limit: float = number(0, at_least=0, doc="containers: mapreduce.job.running.reduce.limit; 0: none")
    map_slots: float = number(0, at_least=0, doc="map slots of a node, out of its sum of slots; 0: the experiment's")


@dataclass(frozen=True, slots=True)
class PoolDependentSettings(SlotSettings):
    """Settings of PD-DHSA, which is the default mode here."""

    mode: str = word("pooldependent", "poolindependent", "pooldependent", "static", "containers", doc="see pi-dhsa")


@dataclass(frozen=True, slots=True)
class DynamicMRSettings(SlotSettings):
    """Settings with all three techniques on: PI-DHSA, SEPB over all jobs, and Slot PreScheduling (section 4.3.5)."""

    sepb: float = number(1.0, at_least=0, at_most=1, doc="part of the cluster's jobs that are checked; 0: no SEPB")
    sepb_pool: float = number(1.0, at_least=0, at_most=1, doc="part of the pool's jobs that are checked; 0: no SEPB")
    prescheduling: bool = flag(True, doc="Slot PreScheduling: local maps on slots that load balancing would deny")


_SHARING: dict[str, Sharing] = {
    "poolindependent": "independent",
    "pooldependent": "dependent",
    "static": "static",
    "containers": "containers",
}


class _Slots(Policy):
    """The common base of the three policies."""

    #: The names in the thesis' Table 4.3 and its text, and the settings that they stand for.
    aliases: ClassVar[Mapping[str, str]] = {
        "mapred.idle.mapslots.borrowedforReduceTasks": "borrowed_map",
        "mapred.idle.reduceslots.borrowedforMapTasks": "borrowed_reduce",
        "PoolsFairShareSlotsAdaptiveMode": "mode",
        "mapred.submitted.jobs.checkedforPendingTasks": "sepb",
        "poolPercentageOfSubmittedJobsCheckedForPendingTasks": "sepb_pool",
        "FairSchedulerSpeculativeJobsPendingTasksCheckedMode": "sepb_mode",
        "mapred.map.tasks.preScheduler.enabled": "prescheduling",
        "mapred.preScheduler.maximumNumBorrowedReduceSlots": "borrowable",
        "percentageOfBorrowedMapSlots": "borrowed_map",
        "percentageOfBorrowedReduceSlots": "borrowed_reduce",
        "percentageOfJobsCheckedForPendingTasks": "sepb",
        "maximumBorrowableReduceSlots": "borrowable",
    }

    def plan(self, snapshot: Snapshot, ledger: LedgerView) -> Plan:
        base: Policy = Fifo() if self.settings.scheduler == "fifo" else Fair()
        return base.plan(snapshot, ledger)

    def slot_rules(self, *, speculation: bool) -> Rules:
        s = self.settings
        by_pool = s.sepb_mode == "poollevel"
        late = speculation if s.speculation == "cluster" else s.speculation == "on"
        return Rules(
            late=Late(on=late),
            sharing=_SHARING[s.mode],
            fifo=s.scheduler == "fifo",
            borrowed_map=s.borrowed_map,
            borrowed_reduce=s.borrowed_reduce,
            borrowed_of="unused" if s.borrowed_of == "unused" else "capacity",
            sepb=s.sepb_pool if by_pool else s.sepb,
            sepb_pool=by_pool,
            kill_factor=s.kill_factor,
            prescheduling=s.prescheduling,
            borrowable=int(s.borrowable),
            delay_scheduling=s.delay_scheduling,
            ramp_up=s.ramp_up,
            map_limit=int(s.map_limit),
            reduce_limit=int(s.reduce_limit),
            map_slots=int(s.map_slots),
        )


class PiDhsa(_Slots):
    """Pool-independent dynamic slot allocation (Algorithm 6): unused slots are lent across the whole cluster."""

    name = "pi-dhsa"
    Settings = SlotSettings


class PdDhsa(_Slots):
    """Pool-dependent dynamic slot allocation (Algorithm 7): a pool's slots serve its own tasks of both kinds first."""

    name = "pd-dhsa"
    Settings = PoolDependentSettings


class DynamicMR(_Slots):
    """DHSA, SEPB and Slot PreScheduling together (section 4.2.1)."""

    name = "dynamicmr"
    Settings = DynamicMRSettings
