"""The thesis' algorithms for orders of jobs and for slots (chapters 3, 4), written a second time from the text alone.

Nothing here calls what it checks, but for what the ordering engine answers in MROrder's rounds.
"""

from __future__ import annotations

import itertools
import math
import random
from fractions import Fraction

import pytest

from harness.systems.dynamicmr.rules import Rules
from harness.systems.dynamicmr.simulator.engine import run_slots
from harness.systems.dynamicmr.simulator.model import SlotCluster, SlotJob, SlotNode, SlotRun
from harness.systems.mrorder.ordering import GREEDY, MapReduceJob, Slots, estimate
from harness.systems.mrorder.ordering.engines import engine
from harness.systems.mrorder.ordering.online import Dispatching, dispatch


def random_jobs(draw: random.Random, most: int) -> list[MapReduceJob]:
    return [
        MapReduceJob(
            f"j{number}",
            draw.randint(0, 12),
            Fraction(draw.randint(1, 40), draw.choice([1, 2])),
            draw.randint(0, 6),
            Fraction(draw.randint(1, 40), draw.choice([1, 3])),
        )
        for number in range(draw.randint(1, most))
    ]


def played(jobs: list[MapReduceJob], order: tuple[int, ...], slots: Slots) -> list[Fraction]:
    """Section 3.3.1: a free slot takes the next task of the first job that has one; reduces after the job's maps."""
    free = {"map": [Fraction(0)] * slots.maps, "reduce": [Fraction(0)] * slots.reduces}
    ends = [Fraction(0)] * len(jobs)
    ready = [Fraction(0)] * len(jobs)
    for at in order:
        for _ in range(jobs[at].maps):
            slot = free["map"].index(min(free["map"]))
            free["map"][slot] += jobs[at].map_s
            ready[at] = max(ready[at], free["map"][slot])
        ends[at] = ready[at]
    # Reduces by what has been handed in first of those whose maps are done; a slot does not wait for a job to come.
    left = {at: jobs[at].reduces for at in order if jobs[at].reduces}
    while left:
        slot = free["reduce"].index(min(free["reduce"]))
        can = [at for at in order if at in left and ready[at] <= free["reduce"][slot]]
        if not can:
            soonest = min(ready[at] for at in left)
            free["reduce"] = [max(time, soonest) for time in free["reduce"]]
            continue
        at = can[0]
        free["reduce"][slot] += jobs[at].reduce_s
        ends[at] = max(ends[at], free["reduce"][slot])
        left[at] -= 1
        if not left[at]:
            del left[at]
    return ends


def work_s(job: MapReduceJob, slots: Slots) -> tuple[Fraction, Fraction]:
    """T^M and T^R of Lemma 3.2."""
    return job.maps * job.map_s / slots.maps, job.reduces * job.reduce_s / slots.reduces


def johnson(among: list[int], times: list[tuple[Fraction, Fraction]]) -> list[int]:
    """Algorithm 1, by the rule's other form: a stands before b where min(M_a, R_b) <= min(M_b, R_a), ties as given."""
    first = [at for at in among if times[at][0] <= times[at][1]]
    last = [at for at in among if times[at][0] > times[at][1]]
    for number in range(len(first)):
        for other in range(len(first) - 1 - number):
            if times[first[other]][0] > times[first[other + 1]][0]:
                first[other], first[other + 1] = first[other + 1], first[other]
    for number in range(len(last)):
        for other in range(len(last) - 1 - number):
            if times[last[other]][1] < times[last[other + 1]][1]:
                last[other], last[other + 1] = last[other + 1], last[other]
    return [*first, *last]


def test_orders_makespans_and_completions() -> None:
    """Algorithms 1, 2 and 5, and what each order comes to, task by task."""
    for seed in range(300):
        draw = random.Random(seed)
        jobs, slots = random_jobs(draw, 9), Slots(draw.randint(1, 7), draw.randint(1, 5))
        times = [work_s(job, slots) for job in jobs]
        everyone = list(range(len(jobs)))
        assert list(GREEDY["mk_jr"](jobs, slots)) == johnson(everyone, times), seed
        whole = [map_s + reduce_s for map_s, reduce_s in times]
        product = math.prod(whole)
        small = [at for at in everyone if whole[at] ** len(jobs) <= product]
        large = [at for at in everyone if at not in small]
        assert list(GREEDY["mk_tct_jr"](jobs, slots)) == johnson(small, times) + johnson(large, times), seed
        assert list(GREEDY["tct"](jobs, slots)) == [at for _, at in sorted(zip(whole, everyone, strict=True))], seed
        order = tuple(draw.sample(everyone, len(everyone)))
        found = estimate([jobs[at] for at in order], slots)
        assert list(found.completions) == [played(jobs, order, slots)[at] for at in order], seed


@pytest.mark.parametrize("target", ["makespan", "tct"])
def test_few_jobs_take_the_best_of_all_orders(target: str) -> None:
    """SIM of section 3.4.2.3, against enumeration."""
    for seed in range(100):
        draw = random.Random(f"{target}{seed}")
        jobs, slots = random_jobs(draw, 5), Slots(draw.randint(1, 5), draw.randint(1, 4))

        def value(order: tuple[int, ...], jobs: list[MapReduceJob] = jobs, slots: Slots = slots) -> Fraction:
            ends = played(jobs, order, slots)
            return max(ends) if target == "makespan" else sum(ends, Fraction(0))

        least = min(value(order) for order in itertools.permutations(range(len(jobs))))
        assert value(engine(target)(jobs, slots)) == least, seed


def rounds(
    arrivals: list[tuple[MapReduceJob, Fraction]], slots: Slots, how: Dispatching, target: str
) -> list[tuple[str, Fraction]]:
    """Algorithms 3 and 4, and the PNJ-dominated solution, in steps of the text."""
    out: list[tuple[str, Fraction]] = []
    order = engine(target, 0)
    if how.when == "pnj":
        queue: list[MapReduceJob] = []
        for job, at in arrivals:
            queue.append(job)
            if len(queue) >= how.jobs:
                out += [(queue[index].name, at) for index in order(queue, slots)]
                queue = []
        last = arrivals[-1][1]
        return out + [(queue[index].name, last) for index in order(queue, slots)]
    t_curr, t_wait = Fraction(0), Fraction(how.interval_s)
    flagged: set[str] = set()
    while len(flagged) < len(arrivals):
        t_curr += t_wait
        waiting = [job for job, at in arrivals if at <= t_curr and job.name not in flagged]
        flagged |= {job.name for job in waiting}
        out += [(waiting[index].name, t_curr) for index in order(waiting, slots)]
        if how.when == "tp-ati":
            in_order = [work_s(waiting[index], slots) for index in order(waiting, slots)]
            t_a = max(
                (
                    sum((map_s for map_s, _ in in_order[: k + 1]), Fraction(0))
                    + sum((reduce_s for _, reduce_s in in_order[k:]), Fraction(0))
                    for k in range(len(in_order))
                ),
                default=Fraction(0),
            )
            t_wait = max(Fraction(how.interval_s), t_a)
    return out


@pytest.mark.parametrize("when", ["pnj", "tp-fti", "tp-ati"])
@pytest.mark.parametrize("target", ["makespan", "tct"])
def test_mrorder_dispatches_when_and_in_which_order_the_text_says(when: str, target: str) -> None:
    for seed in range(150):
        draw = random.Random(f"{when}{target}{seed}")
        slots = Slots(draw.randint(1, 6), draw.randint(1, 4))
        now, arrivals = Fraction(0), []
        for job in random_jobs(draw, 14):
            now += draw.choice([Fraction(0), Fraction(draw.randint(1, 90)), Fraction(draw.randint(1, 9), 7)])
            arrivals.append((job, now))
        how = Dispatching(when, draw.choice([5.0, 10.0, 60.0]), draw.randint(1, 5))  # type: ignore[arg-type]
        found = dispatch(arrivals, slots, how, engine(target, 0))
        assert [(one.job.name, one.submitted_s) for one in found] == rounds(arrivals, slots, how, target), seed


# --- chapter 4 ---


def pi_dhsa(jobs: list[SlotJob], maps: int, reduces: int, lend: tuple[float, float]) -> dict[str, int]:
    """Algorithm 6 on one tasktracker that reports at every start and end, FIFO; the end of each job, milliseconds.

    Lines 14 and 20 count what is lent already into the updated load factors as well. Reduces ask once all maps of
    their job have ended (slow start 1).
    """
    pending = {job.id: (list(job.maps_ms), list(job.reduces_ms)) for job in jobs}
    running: list[tuple[int, str, int, int]] = []  # (end, job, kind, slots of which kind)
    open_maps = {job.id: len(job.maps_ms) for job in jobs}
    ends: dict[str, int] = {job.id: job.submit_ms for job in jobs}
    now = 0
    while True:
        for one in [one for one in running if one[0] <= now]:
            running.remove(one)
            ends[one[1]] = max(ends[one[1]], one[0])
            if one[2] == 0:
                open_maps[one[1]] -= 1
        there = sorted((job for job in jobs if job.submit_ms <= now), key=lambda job: job.submit_ms)
        asks = [
            sum(len(pending[job.id][0]) for job in there),
            sum(len(pending[job.id][1]) for job in there if not open_maps[job.id]),
        ]
        run = [sum(one[2] == kind for one in running) for kind in (0, 1)]
        used = [sum(one[3] == kind for one in running) for kind in (0, 1)]
        lent = [sum(one[3] == kind != one[2] for one in running) for kind in (0, 1)]
        capacity = (maps, reduces)
        demand = [asks[kind] + run[kind] for kind in (0, 1)]
        factor = [Fraction(demand[kind], capacity[kind]) for kind in (0, 1)]
        extra = [0, 0]
        for own, other in ((0, 1), (1, 0)):
            if factor[own] < 1 < factor[other]:  # cases 3 and 4
                more = max(math.floor(capacity[own] * lend[own]) - lent[own], 0)
                extra[own] = min(more, demand[other] - capacity[other])
                both = min(math.floor(capacity[own] * lend[own]), demand[other] - capacity[other])
                factor[own] = Fraction(demand[own] + both, capacity[own])
        available = [max(math.ceil(capacity[k] * min(factor[k], Fraction(1))) - used[k], 0) for k in (0, 1)]
        started = False
        for kind in (0, 1):
            # Its own slots first, then what may be borrowed of the other kind's.
            own = min(available[kind], asks[kind])
            spare = available[1 - kind] - min(available[1 - kind], asks[1 - kind])
            other = min(extra[1 - kind], spare, asks[kind] - own)
            for slots_of in [kind] * int(own) + [1 - kind] * max(int(other), 0):
                job = next(j for j in there if pending[j.id][kind] and (kind == 0 or not open_maps[j.id]))
                started = True
                running.append((now + pending[job.id][kind].pop(0), job.id, kind, slots_of))
        if started:
            continue  # the next heartbeat comes at once
        later = [one[0] for one in running] + [job.submit_ms for job in jobs if job.submit_ms > now]
        if not later:
            return ends
        now = min(later)


def test_pi_dhsa_on_one_tasktracker() -> None:
    for seed in range(300):
        draw = random.Random(seed)
        jobs = [
            SlotJob(
                f"j{number}",
                "p",
                tuple(draw.randint(1, 30) * 100 for _ in range(draw.randint(1, 14))),
                tuple(draw.randint(1, 30) * 100 for _ in range(draw.randint(0, 9))),
                number * draw.choice([0, 700, 3100]),
                slow_start=1.0,
            )
            for number in range(draw.randint(1, 5))
        ]
        maps, reduces = draw.randint(1, 6), draw.randint(1, 4)
        lend = draw.choice([(1.0, 1.0), (0.5, 0.5), (0.0, 1.0), (1.0, 0.25)])
        rules = Rules(sharing="independent", fifo=True, borrowed_map=lend[0], borrowed_reduce=lend[1])
        cluster = SlotCluster((SlotNode("n", maps, reduces),), replicas=0)
        result = run_slots(SlotRun(cluster, tuple(jobs), rules))
        found = {job.id: job.finished_ms for job in result.jobs}
        assert found == pi_dhsa(jobs, maps, reduces, lend), (seed, maps, reduces, lend)


def pd_dhsa(
    jobs: list[SlotJob], maps: int, reduces: int, weights: dict[str, Fraction], least: dict[str, tuple[int, int]]
) -> dict[str, int]:
    """Algorithm 7 on one tasktracker that reports at every start and end, jobs of a pool by submission; the end of each
    job, milliseconds. Every map is local. Reduces ask once all maps of their job have ended (slow start 1)."""
    pending = {job.id: (list(job.maps_ms), list(job.reduces_ms)) for job in jobs}
    running: list[tuple[int, SlotJob, int, int]] = []  # (end, job, kind, slots of which kind)
    open_maps = {job.id: len(job.maps_ms) for job in jobs}
    ends: dict[str, int] = {job.id: job.submit_ms for job in jobs}
    now = 0

    def asking(pool: str, kind: int) -> list[SlotJob]:
        own = [job for job in jobs if job.pool == pool and job.submit_ms <= now]
        return [job for job in own if pending[job.id][kind] and (kind == 0 or not open_maps[job.id])]

    def distance(pool: str) -> tuple[bool, Fraction, str]:
        """Line 7: below the minimum first, by the part of it that there is; then by slots over weight."""
        own = [sum(one[1].pool == pool and one[2] == kind for one in running) for kind in (0, 1)]
        wants = [own[kind] + sum(len(pending[job.id][kind]) for job in asking(pool, kind)) for kind in (0, 1)]
        minimum = sum(min(least.get(pool, (0, 0))[kind], wants[kind]) for kind in (0, 1))
        if sum(own) < minimum:
            return False, Fraction(sum(own), minimum), pool
        return True, sum(own) / weights[pool], pool

    while True:
        for one in [one for one in running if one[0] <= now]:
            running.remove(one)
            ends[one[1].id] = max(ends[one[1].id], one[0])
            if one[2] == 0:
                open_maps[one[1].id] -= 1
        pools = sorted(weights)
        demand = len(running) + sum(len(pending[j.id][k]) for pool in pools for k in (0, 1) for j in asking(pool, k))
        capacity = math.ceil((maps + reduces) * min(Fraction(demand, maps + reduces), Fraction(1)))
        for _ in range(capacity - len(running)):
            idle = [slots - sum(one[3] == kind for one in running) for kind, slots in enumerate((maps, reduces))]
            for pool, (kind, slots_of) in itertools.product(
                sorted(pools, key=distance), ((0, 0), (1, 1), (0, 1), (1, 0))
            ):  # cases 1 to 4
                if idle[slots_of] and (there := asking(pool, kind)):
                    job = min(there, key=lambda job: job.submit_ms)
                    running.append((now + pending[job.id][kind].pop(0), job, kind, slots_of))
                    break
        later = [one[0] for one in running] + [job.submit_ms for job in jobs if job.submit_ms > now]
        if not later:
            return ends
        now = min(later)


def test_pd_dhsa_on_one_tasktracker() -> None:
    for seed in range(300):
        draw = random.Random(f"pd{seed}")
        weights = {pool: Fraction(draw.choice([1, 1, 2, 5])) for pool in "abc"[: draw.randint(1, 3)]}
        least = {pool: (draw.randint(0, 4), draw.randint(0, 3)) for pool in weights if draw.random() < 0.5}
        jobs = [
            SlotJob(
                f"j{number}",
                draw.choice(sorted(weights)),
                tuple(draw.randint(1, 30) * 100 for _ in range(draw.randint(1, 14))),
                tuple(draw.randint(1, 30) * 100 for _ in range(draw.randint(0, 9))),
                number * draw.choice([0, 700, 3100]),
                slow_start=1.0,
            )
            for number in range(draw.randint(1, 6))
        ]
        jobs.sort(key=lambda job: job.submit_ms)
        maps, reduces = draw.randint(1, 6), draw.randint(1, 4)
        rules = Rules(sharing="dependent", weights=weights, minimums=least, fifo_pools=frozenset(weights))
        cluster = SlotCluster((SlotNode("n", maps, reduces),), replicas=0)
        result = run_slots(SlotRun(cluster, tuple(jobs), rules, pools=tuple(weights)))
        found = {job.id: job.finished_ms for job in result.jobs}
        assert found == pd_dhsa(jobs, maps, reduces, weights, least), (seed, maps, reduces, weights, least)
