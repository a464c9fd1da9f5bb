"""The cloud driver: how many core nodes, which accelerators, for how long, at what cost. Pure.

Source: Lee, Chun, Katz, "Heterogeneity-Aware Resource Allocation and Scheduling in the Cloud" (HotCloud 2011), section
2. Core nodes hold data and compute; accelerator nodes only compute, and are there while queries ask for more than the
core pool can do in time. Computing rates are in compute units (CU) where nothing was measured.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

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
        """Memory of one core, GB."""
        return self.memory_gb / self.cores


@dataclass(frozen=True, slots=True)
class Query:
    """A production query. ``work_cu_h``: compute-unit hours on nodes without affinity.

    Hints: ``memory_gb`` a task needs (a core runs one task), ``gpu`` whether it can use one and then how many times
    faster a node's compute units are (``gpu_speed``); ``deadline_h``: by when it must end, None: with the others;
    ``rates``: measured computing rates by instance type, in CU a node, before all else.
    """

    name: str
    work_cu_h: float
    memory_gb: float = 0.0
    gpu_speed: float = 1.0
    rates: Mapping[str, float] = field(default_factory=dict)
    deadline_h: float | None = None

    def due_h(self, deadline_h: float) -> float:
        """By when it must end where all must by ``deadline_h``."""
        return min(deadline_h, self.deadline_h or deadline_h)

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
    """What the history says of a query: runs an hour, mean work, measured rates by instance type."""

    runs: int
    per_hour: float
    work_cu_h: float
    rates: Mapping[str, float]


#: Nodes of one type.
Pool = tuple[InstanceType, int]


@dataclass(frozen=True, slots=True)
class Decision:
    """The core pool, how many accelerators of which types, what all costs, and why.

    ``hours``: until all queries are done (infinite: never). ``billed_h`` of the accelerators, started hours.
    ``refused``: instance type -> why not.
    """

    core: Pool
    accelerators: tuple[Pool, ...]
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


def hours_of(queries: Sequence[Query], nodes: Sequence[Pool]) -> float:
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


def ends_in_time(works: Sequence[float], rates: Sequence[float], deadlines_h: Sequence[float]) -> bool:
    """Whether queries that are served in this order each end by their deadlines.

    If any order meets all deadlines, the order of the deadlines does.
    """
    hours = 0.0
    for work, rate, deadline_h in zip(works, rates, deadlines_h, strict=True):
        if rate <= 0 < work:
            return False
        hours += work / rate if work else 0.0
        if hours > deadline_h * (1 + 1e-12):
            return False
    return True


def period_cost(core: Pool, accelerators: Sequence[Pool], hours: float, period_h: float) -> tuple[float, int]:
    """Return the dollars for one period and the billed hours of the accelerators.

    Core nodes are there for good: each period pays its own hours, also where the queries of one run into the next
    (section 4: the cost of "one round"). Accelerators are released when the queries are done; of queries that never
    are, at the end of the period.
    """
    cost = core[0].price_hour * core[1] * billed_hours(period_h)
    price = sum(kind.price_hour * count for kind, count in accelerators)
    if price == 0:
        return cost, 0
    billed = billed_hours(hours if math.isfinite(hours) else period_h)
    return cost + price * billed, billed


def choose_accelerators(
    queries: Sequence[Query],
    core: Pool,
    types: Sequence[InstanceType],
    *,
    deadline_h: float,
    period_h: float,
    most: int = 100,
    kinds: int | None = None,
    below: float = math.inf,
) -> Decision:
    """Return the cheapest mix of accelerators with which the queries end by the deadline.

    Of mixes that cost the same, the one with the fewest nodes is taken. A query with an earlier deadline of its own
    also ends by that one: queries are served in the order of their deadlines. Mixes that cost more than ``below``
    altogether are not looked for. A mix has at most ``most`` nodes of each type, and at most ``kinds`` types (None: any
    number of them).

    If no mix meets the deadline, the answer is marked as one that does not. It is then the mix of one type that ends
    soonest or, if none of these ever ends, a mix of all types. A type that is too small for the tasks of some query is
    refused if it would do nothing for any query.
    """
    if not (0 < deadline_h < math.inf and 0 < period_h < math.inf):
        raise ValueError("deadline_h and period_h are finite numbers above 0")
    queries = sorted(queries, key=lambda query: query.due_h(deadline_h))
    works = [query.work_cu_h for query in queries]
    deadlines_h = [query.due_h(deadline_h) for query in queries]
    refused, usable = {}, []
    for kind in types:
        if all(query.rate(kind) <= 0 for query in queries):
            needs = max((query.memory_gb for query in queries), default=0.0)
            refused[kind.name] = f"{kind.memory_gb_core:.2f} GB a core, and no query runs in less than {needs:.2f} GB"
        else:
            usable.append(kind)

    def decided(accelerators: Sequence[Pool], why: str) -> Decision:
        chosen = tuple(pool for pool in accelerators if pool[1])
        hours = hours_of(queries, [core, *chosen])
        cost, billed = period_cost(core, chosen, hours, period_h)
        rates = [sum(query.rate(kind) * count for kind, count in (core, *chosen)) for query in queries]
        met = ends_in_time(works, rates, deadlines_h)
        return Decision(core, chosen, hours, billed, cost, met, refused, why)

    alone = decided((), "the core pool ends by the deadline by itself")
    candidates = [alone] if alone.meets_deadline else []
    core_alone, _ = period_cost(core, (), 0.0, period_h)
    for billed_h in range(1, billed_hours(deadline_h) + 1):
        bound = min([below, *(one.cost for one in candidates)]) - core_alone
        within_h = min(float(billed_h), deadline_h)
        mix = _MixSearch(queries, core, usable, within_h, most, kinds, bound / billed_h + 1e-9).cheapest()
        if mix is not None:
            candidates.append(decided(mix, "the cheapest that ends by the deadline"))
    if candidates:
        return min(candidates, key=lambda one: (round(one.cost, 9), _nodes(one), one.hours))
    why = f"nothing with {most} accelerators ends within {deadline_h:g} h: this ends soonest"
    tried = [alone, *(decided([(kind, n)], why) for kind in usable for n in range(1, most + 1))]
    if all(math.isinf(one.hours) for one in tried):
        tried = [decided([(kind, most) for kind in usable], why)]
    soonest = min(tried, key=lambda one: (one.hours, one.cost, _nodes(one)))
    if math.isinf(soonest.hours):
        why = "some query can run on no node of the core pool or of the types: it never ends"
        return decided((), why)
    return decided(soonest.accelerators, why)


def _nodes(decision: Decision) -> int:
    return sum(count for _, count in decision.accelerators)


#: Steps towards the bound of a mix: the first ones come nearest.
_STEPS = 6


class _MixSearch:
    """Branch and bound over how many nodes there are of each type.

    Queries run in the order of their deadlines and must end by them and within ``within_h``, for less than ``below``
    dollars an hour.

    The bound: each query for itself gets the best rate a dollar of the types that are left, as if nodes could be
    divided and one dollar served all queries so.
    """

    def __init__(
        self,
        queries: Sequence[Query],
        core: Pool,
        types: Sequence[InstanceType],
        within_h: float,
        most: int,
        kinds: int | None,
        below: float,
    ) -> None:
        self.below = below
        self.works = [query.work_cu_h for query in queries]
        self.deadlines_h = [query.due_h(within_h) for query in queries]
        self.within_h, self.most, self.kinds = within_h, most, len(types) if kinds is None else kinds
        # Types that serve much for their price first: a good mix is found early.
        worth = {kind.name: sum(query.rate(kind) for query in queries) / kind.price_hour for kind in types}
        self.types = sorted(types, key=lambda kind: (-worth[kind.name], kind.name))
        self.rates = [[query.rate(kind) for query in queries] for kind in self.types]
        self.begin = [query.rate(core[0]) * core[1] for query in queries]
        #: By type: the best rate a dollar of it and those after it, by query.
        self.best_rate = [[0.0] * len(self.works)]
        for kind, own in zip(reversed(self.types), reversed(self.rates), strict=True):
            after = self.best_rate[-1]
            self.best_rate.append([max(a, rate / kind.price_hour) for a, rate in zip(after, own, strict=True)])
        self.best_rate.reverse()
        self.best: tuple[float, int, tuple[int, ...]] | None = None

    def cheapest(self) -> list[Pool] | None:
        """The cheapest accelerators that do; None: none for ``below``."""
        self.run(0, (), 0.0, list(self.begin))
        if self.best is None:
            return None
        return [(kind, count) for kind, count in zip(self.types, self.best[2], strict=True) if count]

    def in_time(self, rates: Sequence[float]) -> bool:
        return ends_in_time(self.works, rates, self.deadlines_h)

    def least_price(self, at: int, rates: Sequence[float]) -> float:
        """No nodes of the types from ``at`` on that bring the queries in time cost less an hour."""
        # Each query alone must end in time; from there by Newton's steps: hours fall and are convex in the dollars, so
        # that every step stays below what is needed.
        dollars = 0.0
        for work, rate, gain, by_h in zip(self.works, rates, self.best_rate[at], self.deadlines_h, strict=True):
            missing = work / by_h - rate
            if missing > 0 or rate <= 0:
                if gain <= 0:
                    return math.inf
                dollars = max(dollars, missing / gain)
        for _ in range(_STEPS):
            over, slope = -self.within_h, 0.0
            for work, rate, gain in zip(self.works, rates, self.best_rate[at], strict=True):
                all_of_it = rate + gain * dollars
                over += work / all_of_it
                slope += work * gain / all_of_it**2
            if over <= 0 or slope <= 0:
                break
            dollars += over / slope
        return dollars * (1 - 1e-9)

    def run(self, at: int, counts: tuple[int, ...], price: float, rates: list[float]) -> None:
        """Tries the types from ``at`` on beside the ``counts`` of those before."""
        if self.in_time(rates):
            found = (round(price, 9), sum(counts), counts + (0,) * (len(self.types) - at))
            if self.best is None or found < self.best:
                self.best = found
            return
        if at == len(self.types) or sum(count > 0 for count in counts) == self.kinds:
            return
        limit = price + self.least_price(at, rates)
        bound = self.best[0] if self.best is not None else self.below
        if math.isinf(limit) or limit > bound + 1e-9:
            return
        kind, own = self.types[at], self.rates[at]
        # Many first: what one type does alone is a good bound for the others.
        top = self.most
        if bound < math.inf:
            top = min(top, int((bound - price + 1e-9) / kind.price_hour))
        while top > 0 and self.in_time([rate + (top - 1) * r for rate, r in zip(rates, own, strict=True)]):
            top -= 1
        for count in range(top, -1, -1):
            more = [rate + count * r for rate, r in zip(rates, own, strict=True)]
            self.run(at + 1, (*counts, count), price + count * kind.price_hour, more)


def choose_pools(
    queries: Sequence[Query],
    core_types: Sequence[InstanceType],
    types: Sequence[InstanceType],
    storage_gb: float,
    *,
    deadline_h: float,
    period_h: float,
    replicas: int = 3,
    most: int = 100,
) -> Decision:
    """The core pool too: its type and size, and the accelerators, so that a period costs least (section 2).

    The data with its replicas is the first bound on the core nodes. More of them are taken where the queries then cost
    less altogether, up to ``most`` more; where nothing meets the deadline, what ends soonest.
    """
    best: Decision | None = None

    def rank(one: Decision) -> tuple[bool, float, float]:
        cost = round(one.cost, 9)
        return (False, cost, one.hours) if one.meets_deadline else (True, one.hours, cost)

    for kind in sorted(core_types, key=lambda kind: kind.disk_price_month):
        least = core_nodes(storage_gb, kind, replicas=replicas)
        for count in range(least, least + most + 1):
            if best is not None and best.meets_deadline:
                alone, _ = period_cost((kind, count), (), 0.0, period_h)
                if alone > best.cost + 1e-9:
                    break  # more core nodes only cost more
            found = choose_accelerators(
                queries,
                (kind, count),
                types,
                deadline_h=deadline_h,
                period_h=period_h,
                most=most,
                below=best.cost if best is not None and best.meets_deadline else math.inf,
            )
            if best is None or rank(found) < rank(best):
                best = found
            if found.meets_deadline and not found.accelerators:
                break  # the pool is large enough by itself
    if best is None:
        raise ValueError("no type for the core pool")
    return best


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
        found += [replace(query, work_cu_h=seen.work_cu_h, rates=rates)] * times
    return found


def release_at_h(started_h: float, idle_since_h: float) -> float:
    """Return when an accelerator that has been idle since ``idle_since_h`` is released.

    This is at the end of the hour that is paid for anyway (billing by the started hour), so that a query in between
    still finds it.
    """
    return started_h + max(billed_hours(idle_since_h - started_h), 1)
