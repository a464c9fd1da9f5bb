"""Changes of capacities by which `yarnfair plan` is held against a real cluster (studies.planned).

They were written down before anything was run. The cluster has three nodes, 24 containers of 1 GB, and a tree of three
levels in percentages. Each load comes for two minutes and lasts three to five.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from harness.model.jobs import Duration, JobSpec, mapreduce_stages
from harness.model.resources import Resource
from harness.yarn.capacity.properties import PREFIX

NODES, NODE_MB, NODE_VCORES = 3, 8192, 32
#: The load comes for so long.
LOAD_S = 120.0
HOURLY, DAILY, REPORTS = "root.prod.etl.hourly", "root.prod.etl.daily", "root.prod.reports"
ADHOC, SPARK = "root.dev.adhoc", "root.dev.spark"
LEAVES = (HOURLY, DAILY, REPORTS, ADHOC, SPARK)
#: Queue -> percentage of its parent, before every change.
BEFORE: Mapping[str, float] = {
    "root.prod": 60,
    "root.prod.etl": 60,
    HOURLY: 50,
    DAILY: 50,
    REPORTS: 40,
    "root.dev": 40,
    ADHOC: 50,
    SPARK: 50,
}
_DEMAND = Resource(1024, 1)


@dataclass(frozen=True, slots=True)
class Jobs:
    """A queue's applications: one every so many seconds, each of ``maps`` tasks and then ``reduces``."""

    queue: str
    every_s: float
    start_s: float
    maps: int
    map_s: float
    reduces: int = 0
    reduce_s: float = 0.0

    def specs(self) -> Iterator[JobSpec]:
        """Each application, with tasks that last from three quarters to five quarters of their mean."""
        number, at_s = 0, self.start_s
        while at_s < LOAD_S:
            stages = mapreduce_stages(
                self.maps,
                self.reduces,
                (_DEMAND, _spread(self.maps, self.map_s)),
                (_DEMAND, _spread(self.reduces, self.reduce_s)),
                1.0,
            )
            identity = f"{self.queue.rpartition('.')[2]}-{number}"
            yield JobSpec(identity, self.queue, "mapreduce", _DEMAND, stages, name=identity, submit_s=at_s)
            number, at_s = number + 1, at_s + self.every_s


def _spread(tasks: int, mean_s: float) -> Duration:
    step = 0.5 / max(tasks - 1, 1)
    return Duration("listed", values_s=tuple(round(mean_s * (0.75 + step * task), 3) for task in range(tasks)))


@dataclass(frozen=True, slots=True)
class SparkApps:
    """Applications of Spark with dynamic allocation: jobs of ``tasks`` sleeping tasks with a pause between them."""

    every_s: float
    start_s: float
    tasks: Sequence[int]
    task_s: float
    pause_s: float = 3.0
    most: int = 6
    idle_s: int = 5

    def times(self) -> list[float]:
        """When each is submitted."""
        found, at_s = [], self.start_s
        while at_s < LOAD_S:
            found.append(at_s)
            at_s += self.every_s
        return found


@dataclass(frozen=True, slots=True)
class Load:
    """A load, and the change of the configuration that is planned for it.

    Parameters
    ----------
    why
        What it is for.
    jobs
        Its MapReduce-like applications.
    spark
        Its Spark applications (none: no Spark).
    after
        Queue -> percentage, where the change sets another.
    caps_after
        Queue -> maximum percentage of its parent after the change.
    joins_s, leaves_s
        When a fourth node joins, and when it is decommissioned gracefully; None: it does not.
    settings
        Further properties of the Capacity Scheduler, without their prefix.
    """

    why: str
    jobs: Sequence[Jobs]
    spark: SparkApps | None
    after: Mapping[str, float] = field(default_factory=dict)
    caps_after: Mapping[str, float] = field(default_factory=dict)
    joins_s: float | None = None
    leaves_s: float | None = None
    settings: Mapping[str, str] = field(default_factory=dict)

    def capacities(self, side: str) -> dict[str, float]:
        """Return queue -> percentage of its parent ``before`` or ``after`` the change."""
        return {**BEFORE, **(self.after if side == "after" else {})}

    def shares(self, side: str) -> dict[str, float]:
        """Return leaf -> its due part of the cluster."""
        own = self.capacities(side)
        found = {}
        for leaf in LEAVES:
            part, path = 1.0, leaf
            while path != "root":
                part, path = part * own[path] / 100.0, path.rpartition(".")[0]
            found[leaf] = part
        return found

    def file(self, side: str) -> str:
        """Return capacity-scheduler.xml as it is ``before`` or ``after`` the change."""
        own = self.capacities(side)
        said = {"maximum-am-resource-percent": "0.5"}
        for parent in ("root", *own):
            below = [path.rpartition(".")[2] for path in own if path.rpartition(".")[0] == parent]
            if below:
                said[f"{parent}.queues"] = ",".join(below)
        said |= {f"{path}.capacity": f"{percent:g}" for path, percent in own.items()}
        if side == "after":
            said |= {f"{path}.maximum-capacity": f"{percent:g}" for path, percent in self.caps_after.items()}
        said |= {f"{leaf}.user-limit-factor": "10" for leaf in LEAVES} | dict(self.settings)
        rows = "".join(
            f"  <property><name>{PREFIX}{name}</name><value>{text}</value></property>\n" for name, text in said.items()
        )
        return f'<?xml version="1.0"?>\n<configuration>\n{rows}</configuration>\n'


_USUAL = (
    Jobs(HOURLY, every_s=24, start_s=2, maps=8, map_s=10, reduces=2, reduce_s=5),
    Jobs(DAILY, every_s=60, start_s=12, maps=22, map_s=14),
    Jobs(REPORTS, every_s=40, start_s=6, maps=10, map_s=12, reduces=4, reduce_s=6),
    Jobs(ADHOC, every_s=15, start_s=0, maps=14, map_s=12),
)
_FEW_SPARK = SparkApps(every_s=45, start_s=4, tasks=(24, 12), task_s=5)

LOADS: Mapping[str, Load] = {
    "top": Load(
        "half of production's capacity goes to development, at the top of the tree",
        _USUAL,
        _FEW_SPARK,
        {"root.prod": 30, "root.dev": 70},
    ),
    "inner": Load(
        "only inside of production: more for etl, and there nearly all for the hourly jobs",
        (
            Jobs(HOURLY, every_s=20, start_s=2, maps=14, map_s=12, reduces=2, reduce_s=5),
            Jobs(DAILY, every_s=30, start_s=0, maps=20, map_s=14),
            Jobs(REPORTS, every_s=30, start_s=6, maps=14, map_s=12, reduces=4, reduce_s=6),
            Jobs(ADHOC, every_s=40, start_s=10, maps=8, map_s=12),
        ),
        None,
        {"root.prod.etl": 80, "root.prod.reports": 20, HOURLY: 80, DAILY: 20},
    ),
    "cap": Load(
        "development keeps its capacity, and may no longer borrow more than half of the cluster",
        (
            Jobs(HOURLY, every_s=30, start_s=20, maps=10, map_s=10, reduces=2, reduce_s=5),
            Jobs(DAILY, every_s=60, start_s=30, maps=16, map_s=14),
            Jobs(REPORTS, every_s=50, start_s=25, maps=8, map_s=12, reduces=4, reduce_s=6),
            Jobs(ADHOC, every_s=14, start_s=0, maps=16, map_s=14),
        ),
        None,
        {},
        {"root.dev": 50},
    ),
    "nodes": Load(
        "the first change again, while a fourth node joins under load and is decommissioned gracefully",
        _USUAL,
        None,
        {"root.prod": 30, "root.dev": 70},
        joins_s=35.0,
        leaves_s=90.0,
    ),
}
