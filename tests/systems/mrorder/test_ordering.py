"""Job ordering: the estimator against a slow reference, the bounds, the greedy orders, Theorem 3.3, the search."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import permutations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from harness.base.errors import CallError
from harness.systems.mrorder.ordering import (
    GREEDY,
    Estimate,
    MapReduceJob,
    Slots,
    estimate,
    estimate_tasks,
    executed,
    lower_bound,
    upper_bound,
)
from harness.systems.mrorder.ordering.bounds import by_its_tasks, delta, delta_as_printed
from harness.systems.mrorder.ordering.greedy import processing_times
from harness.systems.mrorder.ordering.search import optimal


def job(name: str, maps: int, map_s: Fraction | int, reduces: int, reduce_s: Fraction | int) -> MapReduceJob:
    return MapReduceJob(name, maps, Fraction(map_s), reduces, Fraction(reduce_s))


def some_jobs(most: int, tasks: int = 12) -> st.SearchStrategy[list[MapReduceJob]]:
    counts = st.integers(0, tasks)
    # Halves and thirds besides whole seconds, short and long.
    seconds = st.builds(Fraction, st.integers(0, 24), st.sampled_from([1, 1, 2, 3]))
    one = st.builds(MapReduceJob, st.just("J"), counts, seconds, counts, seconds)
    return st.lists(one, min_size=1, max_size=most)


some_slots = st.builds(Slots, st.integers(1, 7), st.integers(1, 7))


def task_by_task(jobs: list[MapReduceJob], slots: Slots) -> tuple[list[Fraction], list[Fraction]]:
    """The rule of the estimator, literally: always the earliest possible start, of the first job in the order."""
    free = [Fraction(0)] * slots.maps
    maps_end = []
    for item in jobs:
        end = Fraction(0)
        for _ in range(item.maps):
            slot = min(range(slots.maps), key=free.__getitem__)
            free[slot] += item.map_s
            end = max(end, free[slot])
        maps_end.append(end)
    ends = list(maps_end)
    left = [item.reduces for item in jobs]
    free = [Fraction(0)] * slots.reduces
    while any(left):
        start, first = min((max(maps_end[i], min(free)), i) for i in range(len(jobs)) if left[i])
        slot = min(range(slots.reduces), key=free.__getitem__)
        free[slot] = start + jobs[first].reduce_s
        ends[first] = max(ends[first], free[slot])
        left[first] -= 1
    return maps_end, ends


@given(some_jobs(7, 30), some_slots)
@settings(deadline=None, max_examples=70)
def test_the_estimator_equals_task_by_task_scheduling(jobs: list[MapReduceJob], slots: Slots) -> None:
    found = estimate(jobs, slots)
    assert (list(found.map_completions), list(found.completions)) == task_by_task(jobs, slots)


@given(some_jobs(6), some_slots)
@settings(deadline=None, max_examples=40)
def test_equal_tasks_are_a_case_of_different_tasks(jobs: list[MapReduceJob], slots: Slots) -> None:
    maps = [[item.map_s] * item.maps for item in jobs]
    reduces = [[item.reduce_s] * item.reduces for item in jobs]
    assert estimate_tasks(maps, reduces, slots) == estimate(jobs, slots)


def test_tasks_that_differ_by_hand() -> None:
    # 2 map slots: 3 and 1 start at 0, 4 at 1; job 2's map at 3. Reduces on one slot: job 1 from 5, job 2 from 4.
    found = estimate_tasks(
        [[Fraction(3), Fraction(1), Fraction(4)], [Fraction(1)]],
        [[Fraction(2)], [Fraction(5), Fraction(1)]],
        Slots(2, 1),
    )
    assert found.map_completions == (5, 4)
    # Job 2's first reduce runs 4-9, then job 1 comes first in the order: 9-11, then job 2's second: 11-12.
    assert found.completions == (11, 12)


def test_a_shorter_map_can_make_the_whole_longer() -> None:
    # Why the search cannot drop a partial order for another with earlier slots (docs/decisions/ordering-search.md).
    slots = Slots(2, 2)
    assert estimate([job("J1", 1, 2, 1, 8), job("J2", 1, 2, 2, 4)], slots).makespan == 10
    assert estimate([job("J1", 1, 2, 1, 8), job("J2", 1, 1, 2, 4)], slots).makespan == 13


def test_counts_do_not_cost_time() -> None:
    jobs = [job("huge", 10**12, 7, 10**11, 3), job("tiny", 1, 1, 1, 1)]
    found = estimate(jobs, Slots(10**6, 10**6))
    assert found.map_completions == (7 * 10**6, 7 * 10**6 + 1)
    assert found.completions == (7 * 10**6 + 3 * 10**5, 7 * 10**6 + 3 * 10**5 + 1)


def test_jobs_without_maps_or_reduces() -> None:
    jobs = [job("maps only", 2, 5, 0, 0), job("reduces only", 0, 0, 2, 3), job("nothing", 0, 9, 0, 9)]
    assert estimate(jobs, Slots(1, 1)).completions == (10, 6, 0)
    assert estimate(jobs[:1], Slots(1, 0)).makespan == 10
    assert estimate(jobs[1:], Slots(0, 1)).makespan == 6
    assert estimate([], Slots(0, 0)) == Estimate((), ())


@pytest.mark.parametrize("slots", [Slots(0, 1), Slots(1, 0)])
def test_tasks_without_a_slot_are_refused(slots: Slots) -> None:
    jobs = [job("J", 1, 1, 1, 1)]
    with pytest.raises(CallError, match=r"0 (map|reduce) slots for 1 (map|reduce) tasks"):
        estimate(jobs, slots)
    with pytest.raises(CallError):
        optimal(jobs, slots)


@given(some_jobs(7), some_slots)
@example([job("J1", 1, 1, 5, 11), job("J2", 7, 1, 12, 1), job("J3", 1, 1, 1, 11)], Slots(1, 8))
@settings(deadline=None, max_examples=100)
def test_every_order_lies_between_the_bounds(jobs: list[MapReduceJob], slots: Slots) -> None:
    makespan = estimate(jobs, slots).makespan
    assert lower_bound(jobs, slots) <= makespan <= upper_bound(jobs, slots)


@given(some_jobs(7), some_slots)
@settings(deadline=None, max_examples=70)
def test_theorem_31s_delta_holds_and_is_above_the_printed_one(jobs: list[MapReduceJob], slots: Slots) -> None:
    least = lower_bound(jobs, slots)
    ordered = [jobs[index] for index in GREEDY["mk_jr"](jobs, slots)]
    assert estimate(ordered, slots).makespan <= (1 + delta(jobs, slots)) * least
    reduces = max((item.reduce_s for item in jobs if item.reduces), default=Fraction(0))
    assert (delta(jobs, slots) - delta_as_printed(jobs, slots)) * least == (reduces if least else 0)


@given(some_jobs(7), some_slots)
@settings(deadline=None, max_examples=70)
def test_the_sharper_bound_of_the_proof(jobs: list[MapReduceJob], slots: Slots) -> None:
    # docs/decisions/upper-bound.md: the k-th map phase alone, and a slot's share off each task that sticks out.
    times = [processing_times(item, slots) for item in jobs]
    paths = [
        sum(map_s for map_s, _ in times[: k + 1])
        + (jobs[k].map_s if jobs[k].maps else 0) * (1 - Fraction(1, slots.maps))
        + sum(reduce_s for _, reduce_s in times[k:])
        for k in range(len(jobs))
    ]
    longest = max((item.reduce_s for item in jobs if item.reduces), default=Fraction(0))
    sharper = max(paths) + 2 * (1 - Fraction(1, slots.reduces)) * longest
    assert estimate(jobs, slots).makespan <= sharper <= upper_bound(jobs, slots)


own_times = st.lists(st.integers(1, 20), max_size=5).map(lambda times: tuple(Fraction(time) for time in times))
unlike_jobs = st.lists(
    st.builds(
        # The averages, 7 and 3, are far from the tasks' own: an order goes by them, the bounds do not.
        lambda maps, reduces: replace(job("J", len(maps), 7, len(reduces), 3), map_task_s=maps, reduce_task_s=reduces),
        own_times,
        own_times,
    ),
    min_size=1,
    max_size=4,
)


def one_by_one(jobs: Sequence[MapReduceJob], slots: Slots) -> Fraction:
    """The makespan in this order, found at each instant anew: whoever comes first in the order takes a free slot."""
    waiting = {
        "map": [list(item.map_task_s or ()) for item in jobs],
        "reduce": [list(item.reduce_task_s or ()) for item in jobs],
    }
    free = {"map": slots.maps, "reduce": slots.reduces}
    running: list[tuple[Fraction, str, int]] = []
    now = Fraction(0)
    while True:
        for at in range(len(jobs)):
            while waiting["map"][at] and free["map"]:
                running.append((now + waiting["map"][at].pop(0), "map", at))
                free["map"] -= 1
            maps_left = waiting["map"][at] or any(kind == "map" and of == at for _, kind, of in running)
            while not maps_left and waiting["reduce"][at] and free["reduce"]:
                running.append((now + waiting["reduce"][at].pop(0), "reduce", at))
                free["reduce"] -= 1
        if not running:
            return now
        now = min(running)[0]
        for ended in [task for task in running if task[0] == now]:
            running.remove(ended)
            free[ended[1]] += 1


@given(unlike_jobs, st.builds(Slots, st.integers(1, 4), st.integers(1, 4)))
@settings(deadline=None, max_examples=150)
def test_both_bounds_hold_where_a_jobs_tasks_differ(jobs: list[MapReduceJob], slots: Slots) -> None:
    # docs/decisions/upper-bound.md: neither proof uses that a job's tasks are alike. Brute force over all orders.
    found = {order: one_by_one(order, slots) for order in set(permutations(jobs))}
    assert all(lower_bound(jobs, slots) <= found[order] <= upper_bound(order, slots) for order in found)
    assert all(executed(order, slots).makespan == found[order] for order in found)
    means = [by_its_tasks(item) for item in jobs]
    best = tuple(jobs[index] for index in GREEDY["mk_jr"](means, slots))
    assert found[best] <= (1 + delta(jobs, slots)) * min(found.values())


@given(some_jobs(6, 4), st.integers(1, 3), st.integers(1, 3))
@settings(deadline=None, max_examples=40)
def test_whole_rounds_reach_the_lower_bound_and_the_worst_case(
    jobs: list[MapReduceJob], map_slots: int, reduce_slots: int
) -> None:
    # Task counts divisible by the slots: the two-machine flow shop, where Johnson's rule and Theorem 3.2 are exact.
    slots = Slots(map_slots, reduce_slots)
    whole = [
        MapReduceJob(item.name, item.maps * map_slots, item.map_s, item.reduces * reduce_slots, item.reduce_s)
        for item in jobs[:5]
    ]
    spans = [estimate(order, slots).makespan for order in permutations(whole)]
    assert estimate([whole[i] for i in GREEDY["mk_jr"](whole, slots)], slots).makespan == min(spans)
    assert estimate([whole[i] for i in GREEDY["worst"](whole, slots)], slots).makespan == max(spans)
    assert lower_bound(whole, slots) == min(spans)


@given(some_jobs(9), st.integers(1, 4), st.integers(1, 4), st.integers(1, 50), st.integers(1, 50))
@settings(deadline=None, max_examples=70)
def test_theorem_3_3_orders_do_not_depend_on_the_number_of_nodes(
    jobs: list[MapReduceJob], node_maps: int, node_reduces: int, nodes: int, others: int
) -> None:
    for name in ("mk_jr", "mk_tct_jr", "tct", "worst"):
        few = GREEDY[name](jobs, Slots(nodes * node_maps, nodes * node_reduces))
        many = GREEDY[name](jobs, Slots(others * node_maps, others * node_reduces))
        assert few == many, name


def test_they_do_depend_on_the_slots_within_a_node() -> None:
    jobs = [job("A", 10, 3, 10, 4), job("B", 10, 2, 10, 1)]
    assert GREEDY["mk_jr"](jobs, Slots(10, 10)) == (0, 1)
    assert GREEDY["mk_jr"](jobs, Slots(10, 1)) == (1, 0)


@given(some_jobs(12), some_slots)
@settings(deadline=None, max_examples=40)
def test_every_rule_gives_each_job_once_and_ties_in_the_files_order(jobs: list[MapReduceJob], slots: Slots) -> None:
    for name, rule in GREEDY.items():
        assert sorted(rule(jobs, slots)) == list(range(len(jobs))), name
        if name != "worst":
            assert rule(jobs[:1] * 5, slots) == (0, 1, 2, 3, 4), name


def test_small_jobs_are_those_up_to_the_geometric_mean() -> None:
    # T = 2, 4, 8: the geometric mean is exactly 4, and the job with T = 4 is small.
    jobs = [job("8", 1, 4, 1, 4), job("4", 1, 3, 1, 1), job("2", 1, 1, 1, 1)]
    assert GREEDY["mk_tct_jr"](jobs, Slots(1, 1)) == (2, 1, 0)
    # A little longer, and it is not: far below what a float could tell.
    longer = [jobs[0], job("4+", 1, 3, 1, 1 + Fraction(1, 10**30)), jobs[2]]
    assert GREEDY["mk_tct_jr"](longer, Slots(1, 1)) == (2, 0, 1)


def test_a_job_of_no_length_is_the_only_small_one() -> None:
    jobs = [job("a", 4, 4, 1, 1), job("nothing", 0, 0, 3, 0), job("b", 1, 1, 1, 2)]
    assert GREEDY["mk_tct_jr"](jobs, Slots(1, 1)) == (1, 2, 0)


def value(jobs: list[MapReduceJob], slots: Slots, objective: str) -> Fraction:
    found = estimate(jobs, slots)
    return found.makespan if objective == "makespan" else found.total_completion_time


@pytest.mark.parametrize("objective", ["makespan", "tct"])
@given(jobs=some_jobs(5), slots=some_slots)
@settings(deadline=None, max_examples=60)
def test_the_search_equals_enumeration(objective: str, jobs: list[MapReduceJob], slots: Slots) -> None:
    found = optimal(jobs, slots, "tct" if objective == "tct" else "makespan")
    assert found.proven
    assert found.value == min(value(list(order), slots, objective) for order in permutations(jobs))
    assert value([jobs[i] for i in found.order], slots, objective) == found.value


@pytest.mark.parametrize("objective", ["makespan", "tct"])
@given(jobs=some_jobs(16), slots=some_slots)
@settings(deadline=None, max_examples=12)
def test_the_search_is_never_worse_than_a_rule_and_its_bound_holds_when_stopped(
    objective: str, jobs: list[MapReduceJob], slots: Slots
) -> None:
    asked = iter([False, True])
    found = optimal(jobs, slots, "tct" if objective == "tct" else "makespan", stop=lambda: next(asked, True))
    assert sorted(found.order) == list(range(len(jobs)))
    assert value([jobs[i] for i in found.order], slots, objective) == found.value
    for rule in GREEDY.values():
        assert found.bound <= found.value <= value([jobs[i] for i in rule(jobs, slots)], slots, objective)


def test_stopped_at_once_it_says_how_far_it_may_be_off() -> None:
    jobs = [job(str(i), 3 + i % 5, 7 + i * i % 11, 1 + i % 4, 3 + 5 * i % 13) for i in range(24)]
    found = optimal(jobs, Slots(5, 3), "tct", stop=lambda: True)
    assert not found.proven
    assert found.bound < found.value


def test_equal_jobs_are_not_permuted() -> None:
    jobs = [job(str(i), 5, 3, 4, 7) for i in range(40)]
    found = optimal(jobs, Slots(4, 3))
    assert (found.order, found.proven) == (tuple(range(40)), True)
    assert found.nodes < 100


@pytest.mark.parametrize("objective", ["makespan", "tct"])
def test_times_beyond_64_bits_are_searched_exactly(objective: str) -> None:
    tiny = Fraction(1, 10**25)
    jobs = [
        job("J1", 10, 4 + tiny, 2, 8),
        job("J2", 4, 2, 4, 2 + 3 * tiny),
        job("J3", 2, 6 - tiny, 4, 10),
        job("J4", 24, 6, 6, 8 + 2 * tiny),
    ]
    found = optimal(jobs, Slots(8, 4), "tct" if objective == "tct" else "makespan")
    assert found.proven
    assert found.value == min(value(list(order), Slots(8, 4), objective) for order in permutations(jobs))
