"""The cloud driver: how many core nodes, which accelerators, for how long, at what cost. Pure.

Source: Lee, Chun, Katz, "Heterogeneity-Aware Resource Allocation and Scheduling in the Cloud" (HotCloud 2011), section
2. Core nodes hold data and compute; accelerator nodes only compute, and are there while queries ask for more than the
core pool can do in time. Computing rates are in compute units (CU) where nothing was measured.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

#: Part of the disks that data may fill: HDFS needs room for what jobs write in between.
DISK_PART = 0.75


@dataclass(frozen=True, slots=True)
class InstanceType:
    """A row of Table 1: price in dollars an hour, disk and memory in GB, ``cu`` of all cores together."""

    name: str
    price_hour: float
    disk_gb: float
    cores: int
    cu: float
    memory_gb: float
    gpu: bool = False

    @property
    def disk_price_month(self) -> float:
        """Dollars a GB and month of 30 days, the table's fourth column."""
        return self.price_hour * 24 * 30 / self.disk_gb

    @property
    def memory_gb_core(self) -> float:
        return self.memory_gb / self.cores


@dataclass(frozen=True, slots=True)
class Query:
    """A production query. ``work_cu_h``: compute-unit hours on nodes without affinity.

    Hints: ``memory_gb`` a task needs (a core runs one task), ``gpu`` whether it can use one and then how many times
    faster a node's compute units are (``gpu_speed``); ``rates``: measured computing rates by instance type, in CU a
    node, before all else.
    """

    name: str
    work_cu_h: float
    memory_gb: float = 0.0
    gpu_speed: float = 1.0
    rates: Mapping[str, float] = field(default_factory=dict)

    def rate(self, kind: InstanceType) -> float:
        """CR of one node of a type, in CU; 0 on a type that is too small for its tasks."""
        if self.memory_gb > kind.memory_gb_core:
            return 0.0
        if kind.name in self.rates:
            return self.rates[kind.name]
        return kind.cu * (self.gpu_speed if kind.gpu else 1.0)


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a query that is over, as the history keeps it: hours since the history began."""

    query: str
    submitted_h: float
    work_cu_h: float
    node_hours: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Estimate:
    """What the history says of a query: runs an hour, mean and largest work, measured rates by instance type."""

    runs: int
    per_hour: float
    work_cu_h: float
    largest_cu_h: float
    rates: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Decision:
    """How many accelerators of which type (None: none), what it costs, and why.

    ``hours``: until all queries are done (infinite: never). ``billed_h`` of the accelerators, started hours.
    ``refused``: instance type -> why not.
    """

    accelerator: InstanceType | None
    count: int
    hours: float
    billed_h: int
    cost: float
    meets_deadline: bool
    refused: Mapping[str, str]
    why: str


def billed_hours(hours: float) -> int:
    """Started hours. Exactly full hours are not one more."""
    return max(math.ceil(round(hours, 9)), 0)


def core_nodes(storage_gb: float, kind: InstanceType, *, replicas: int = 3, disk_part: float = DISK_PART) -> int:
    """Core nodes that hold so much data with its replicas: the first bound on the core pool (section 2)."""
    if not (0 <= storage_gb < math.inf):
        raise ValueError(f"{storage_gb} GB cannot be stored")
    nodes = math.ceil(round(storage_gb * replicas / (kind.disk_gb * disk_part), 9))
    return max(nodes, min(replicas, 1) if storage_gb == 0 else replicas)


def cheapest_storage(types: Sequence[InstanceType]) -> InstanceType:
    """The type whose disk costs least a GB and month (Table 1: m1.large)."""
    return min(types, key=lambda kind: (kind.disk_price_month, kind.name))


def hours_of(queries: Sequence[Query], nodes: Sequence[tuple[InstanceType, int]]) -> float:
    """Hours that a cluster takes for queries submitted together, each in turn on all nodes that it can use.

    Infinite where a query can use none.
    """
    total = 0.0
    for query in queries:
        rate = sum(query.rate(kind) * count for kind, count in nodes)
        if rate > 0:
            total += query.work_cu_h / rate
        elif query.work_cu_h > 0:
            return math.inf
    return total


def period_cost(
    core: tuple[InstanceType, int], accelerators: tuple[InstanceType, int] | None, hours: float, period_h: float
) -> tuple[float, int]:
    """(dollars for one period, billed hours of the accelerators). Core nodes are there for the whole period (and for
    as long as queries run into the next one); accelerators are released when the queries are done."""
    stays_h = max(period_h, hours) if math.isfinite(hours) else period_h
    cost = core[0].price_hour * core[1] * billed_hours(stays_h)
    if accelerators is None or accelerators[1] == 0:
        return cost, 0
    billed = billed_hours(min(hours, stays_h))
    return cost + accelerators[0].price_hour * accelerators[1] * billed, billed


def choose_accelerators(
    queries: Sequence[Query],
    core: tuple[InstanceType, int],
    types: Sequence[InstanceType],
    *,
    deadline_h: float,
    period_h: float,
    most: int = 100,
) -> Decision:
    """The cheapest accelerators (one type) with which the queries end by the deadline; fewest nodes among equals.

    Where nothing meets the deadline: what ends soonest, marked so. A type too small for a query's tasks is refused if
    it would do nothing for any query.
    """
    if not (0 < deadline_h < math.inf and 0 < period_h < math.inf):
        raise ValueError("deadline_h and period_h are finite numbers above 0")
    refused = {}
    candidates: list[tuple[bool, float, float, int, InstanceType | None, int]] = []
    alone = hours_of(queries, [core])
    cost, _ = period_cost(core, None, alone, period_h)
    candidates.append((alone <= deadline_h, cost, alone, 0, None, 0))
    for kind in types:
        if all(query.rate(kind) <= 0 for query in queries):
            needs = max((query.memory_gb for query in queries), default=0.0)
            refused[kind.name] = f"{kind.memory_gb_core:.2f} GB a core, and no query runs in less than {needs:.2f} GB"
            continue
        for count in range(1, most + 1):
            hours = hours_of(queries, [core, (kind, count)])
            cost, billed = period_cost(core, (kind, count), hours, period_h)
            candidates.append((hours <= deadline_h, cost, hours, billed, kind, count))
    in_time = [entry for entry in candidates if entry[0]]
    if in_time:
        chosen = min(in_time, key=lambda entry: (round(entry[1], 9), entry[5], entry[2]))
        why = "the cheapest that ends by the deadline"
    else:
        chosen = min(candidates, key=lambda entry: (entry[2], entry[1], entry[5]))
        why = f"nothing with {most} accelerators ends within {deadline_h:g} h: this ends soonest"
        if math.isinf(chosen[2]):
            why = "some query can run on no node of the core pool or of the types: it never ends"
    met, cost, hours, billed, kind_chosen, count = chosen
    if kind_chosen is None and met:
        why = "the core pool ends by the deadline by itself"
    return Decision(kind_chosen, count, hours, billed, cost, met, refused, why)


def estimate(history: Sequence[Run], query: str, now_h: float, window_h: float = math.inf) -> Estimate | None:
    """What the runs of a query within the last ``window_h`` say of its next ones; None without any.

    A rate is measured where a run names the node hours that its work took on a type.
    """
    runs = [run for run in history if run.query == query and now_h - window_h <= run.submitted_h <= now_h]
    if not runs:
        return None
    first = min(run.submitted_h for run in runs)
    span = min(window_h, now_h - first)
    works = [run.work_cu_h for run in runs]
    work_by_type: dict[str, float] = {}
    hours_by_type: dict[str, float] = {}
    for run in runs:
        if len(run.node_hours) == 1:
            ((kind, hours),) = run.node_hours.items()
            work_by_type[kind] = work_by_type.get(kind, 0.0) + run.work_cu_h
            hours_by_type[kind] = hours_by_type.get(kind, 0.0) + hours
    return Estimate(
        runs=len(runs),
        per_hour=len(runs) / span if span > 0 else float(len(runs)),
        work_cu_h=math.fsum(works) / len(works),
        largest_cu_h=max(works),
        rates={kind: work_by_type[kind] / hours for kind, hours in hours_by_type.items() if hours > 0},
    )


def expected_queries(history: Sequence[Run], known: Sequence[Query], now_h: float, ahead_h: float) -> list[Query]:
    """The production queries to expect within ``ahead_h``, each with the work that the history says.

    Hints stay the user's; measured rates take the place of theirs.
    """
    found: list[Query] = []
    for query in known:
        seen = estimate(history, query.name, now_h)
        if seen is None:
            found.append(query)
            continue
        times = max(round(seen.per_hour * ahead_h), 0)
        rates = {**query.rates, **seen.rates}
        found += [Query(query.name, seen.work_cu_h, query.memory_gb, query.gpu_speed, rates)] * times
    return found


def release_at_h(started_h: float, idle_since_h: float) -> float:
    """When an accelerator that has been idle since ``idle_since_h`` is given back: at the end of the hour that is paid
    for anyway (billing by the started hour), so that a query in between still finds it."""
    return started_h + max(billed_hours(idle_since_h - started_h), 1)
