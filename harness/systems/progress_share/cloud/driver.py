"""The cloud driver: decides how many core nodes and which accelerators to rent, and computes times and costs.

Source: Lee, Chun, Katz, "Heterogeneity-Aware Resource Allocation and Scheduling in the Cloud" (HotCloud 2011), section
2. Core nodes store data and compute. Accelerator nodes only compute; they are rented while the queries need more than
the core pool can finish in time. Computing rates that were not measured are in compute units (CU). All functions are
pure.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

#: Fraction of the disks that data may fill: HDFS needs space for the intermediate data of jobs.
DISK_PART = 0.75


@dataclass(frozen=True, slots=True)
class InstanceType:
    """A row of Table 1: price in dollars per hour, disk and memory in GB, ``cu`` of all cores together."""

    name: str
    price_hour: float
    disk_gb: float
    cores: int
    cu: float
    memory_gb: float
    gpu: bool = False

    @property
    def disk_price_month(self) -> float:
        """Price per GB and month of 30 days, dollars (the table's fourth column)."""
        return self.price_hour * 24 * 30 / self.disk_gb

    @property
    def memory_gb_core(self) -> float:
        """Memory per core, GB."""
        return self.memory_gb / self.cores


@dataclass(frozen=True, slots=True)
class Query:
    """A production query. ``work_cu_h`` is its work in compute-unit hours on nodes without affinity.

    The other fields are hints. ``memory_gb`` is the memory of one task (a core runs one task). ``gpu_speed`` is the
    factor by which a GPU node's compute units are faster for this query (1: it cannot use a GPU). ``rates`` are
    measured computing rates by instance type, in CU per node; they take precedence. ``deadline_h`` is its own deadline;
    None: the deadline of all queries.
    """

    name: str
    work_cu_h: float
    memory_gb: float = 0.0
    gpu_speed: float = 1.0
    rates: Mapping[str, float] = field(default_factory=dict)
    deadline_h: float | None = None

    def due_h(self, deadline_h: float) -> float:
        """Return its deadline in hours if the deadline of all queries is ``deadline_h``."""
        return min(deadline_h, self.deadline_h or deadline_h)

    def rate(self, kind: InstanceType) -> float:
        """Return CR of one node of a type, in CU; 0 if the memory per core is too small for the query's tasks."""
        if self.memory_gb > kind.memory_gb_core:
            return 0.0
        if kind.name in self.rates:
            return self.rates[kind.name]
        return kind.cu * (self.gpu_speed if kind.gpu else 1.0)


@dataclass(frozen=True, slots=True)
class Run:
    """One completed run of a query in the history. Times are hours since the history began."""

    query: str
    submitted_h: float
    work_cu_h: float
    node_hours: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Estimate:
    """What the history predicts for a query: runs per hour, mean work, measured rates by instance type."""

    runs: int
    per_hour: float
    work_cu_h: float
    rates: Mapping[str, float]


#: An instance type and a number of nodes.
Pool = tuple[InstanceType, int]


@dataclass(frozen=True, slots=True)
class Decision:
    """The core pool, the accelerators, their cost, and the reason.

    ``hours`` is the time until all queries have ended (infinite: never). ``billed_h`` is the number of started hours
    for which the accelerators are billed. ``cost`` is in dollars per period. ``refused`` maps an instance type to the
    reason why it was not considered.
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
    """Return the number of started hours. An exactly full hour does not start another one."""
    return max(math.ceil(round(hours, 9)), 0)


def core_nodes(storage_gb: float, kind: InstanceType, *, replicas: int = 3, disk_part: float = DISK_PART) -> int:
    """Return how many core nodes store this much data with its replicas.

    This is the lower bound of the core pool (section 2).
    """
    if not (0 <= storage_gb < math.inf):
        raise ValueError(f"{storage_gb} GB cannot be stored")
    nodes = math.ceil(round(storage_gb * replicas / (kind.disk_gb * disk_part), 9))
    return max(nodes, min(replicas, 1) if storage_gb == 0 else replicas)


def hours_of(queries: Sequence[Query], nodes: Sequence[Pool]) -> float:
    """Return the hours that a cluster needs for queries that run one after another, each on all nodes that it can use.

    The result is infinite if a query can use none of the nodes.
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
    """Return whether all queries end by their deadlines if they are served in this order.

    If any order meets all deadlines, then serving in the order of the deadlines does.
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
    """Return the cost of one period in dollars, and the billed hours of the accelerators.

    Core nodes are never released, so each period pays for its own hours, even if its queries run into the next period
    (section 4: the cost of "one round"). Accelerators are released when the queries end or, if they never end, at the
    end of the period.
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

    Of mixes that cost the same, the one with the fewest nodes is returned. Queries are served in the order of their
    deadlines, so that a query with an earlier deadline of its own meets that one too. A mix whose total cost exceeds
    ``below`` is not considered. A mix has at most ``most`` nodes of each type, and at most ``kinds`` types (None: any
    number). Types that can run none of the queries are refused.

    If no mix meets the deadline, ``meets_deadline`` of the result is False. The result is then the mix of a single type
    that ends soonest or, if no such mix ever ends, a mix of all types.
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


#: Number of Newton steps in the lower bound of a mix's price; later steps improve it less.
_STEPS = 6


class _MixSearch:
    """Branch and bound search over the number of nodes of each type.

    Queries run in the order of their deadlines. They must meet these and end within ``within_h`` hours, for less than
    ``below`` dollars per hour.

    The lower bound on the price is a relaxation: nodes can be divided, and each query gets the best rate per dollar of
    the remaining types, as if every dollar served all queries at their best rates.
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
        # Try types with much computing rate per dollar first, so that a good mix is found early.
        worth = {kind.name: sum(query.rate(kind) for query in queries) / kind.price_hour for kind in types}
        self.types = sorted(types, key=lambda kind: (-worth[kind.name], kind.name))
        self.rates = [[query.rate(kind) for query in queries] for kind in self.types]
        self.begin = [query.rate(core[0]) * core[1] for query in queries]
        #: ``best_rate[i][q]``: the best rate per dollar of query q on types i and later.
        self.best_rate = [[0.0] * len(self.works)]
        for kind, own in zip(reversed(self.types), reversed(self.rates), strict=True):
            after = self.best_rate[-1]
            self.best_rate.append([max(a, rate / kind.price_hour) for a, rate in zip(after, own, strict=True)])
        self.best_rate.reverse()
        self.best: tuple[float, int, tuple[int, ...]] | None = None

    def cheapest(self) -> list[Pool] | None:
        """Return the cheapest accelerators that meet the deadlines, or None if none do so for less than ``below``."""
        self.run(0, (), 0.0, list(self.begin))
        if self.best is None:
            return None
        return [(kind, count) for kind, count in zip(self.types, self.best[2], strict=True) if count]

    def in_time(self, rates: Sequence[float]) -> bool:
        return ends_in_time(self.works, rates, self.deadlines_h)

    def least_price(self, at: int, rates: Sequence[float]) -> float:
        """Return a lower bound of the price that nodes of the types from ``at`` on add, in dollars per hour.

        With cheaper nodes of these types the queries cannot end in time. The bound is infinite if no nodes suffice.
        """
        # Start with the price at which each query alone ends in time. Then take Newton steps: total hours are a
        # decreasing convex function of the dollars, so that no step exceeds the price needed.
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
        """Try numbers of nodes of the types from ``at`` on, given the ``counts`` of the types before."""
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
        # Try large counts first: a mix of one type alone gives a good upper bound for the others.
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
    """Choose the type and size of the core pool and the accelerators so that a period costs least (section 2).

    The data with its replicas gives the minimum number of core nodes. Up to ``most`` more core nodes are considered,
    and taken where they lower the total cost. If nothing meets the deadline, the choice that ends soonest is returned.
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
                    break  # from here on more core nodes only cost more
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
                break  # the core pool is large enough without accelerators
    if best is None:
        raise ValueError("no type for the core pool")
    return best


def estimate(history: Sequence[Run], query: str, now_h: float, window_h: float = math.inf) -> Estimate | None:
    """Return what the runs of a query in the last ``window_h`` hours predict for it; None if there are no such runs.

    A rate on an instance type is computed from the runs whose node hours were all on that type.
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
    """Return the queries expected within the next ``ahead_h`` hours, each with the mean work of its history.

    Measured rates replace the user's; all other hints of the user stay. A query without history is expected once.
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

    This is the end of its current paid hour (started hours are billed in full), so that a query that arrives before
    then can still use it.
    """
    return started_h + max(billed_hours(idle_since_h - started_h), 1)
