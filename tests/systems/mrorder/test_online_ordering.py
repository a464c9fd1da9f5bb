"""MROrder's dispatching queue: Algorithms 3 and 4 step by step, no job lost, the ordering engine and users' own."""

from __future__ import annotations

from fractions import Fraction
from itertools import permutations
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.base.errors import CallError, InputError
from harness.policies import make_policy
from harness.systems.mrorder.ordering import GREEDY, MapReduceJob, Slots, estimate, estimate_tasks
from harness.systems.mrorder.ordering.engines import engine, named
from harness.systems.mrorder.ordering.greedy import processing_times
from harness.systems.mrorder.ordering.online import Dispatcher, Dispatching, dispatch

SLOTS = Slots(8, 4)


def job(name: str, maps: int, map_s: int, reduces: int = 0, reduce_s: int = 0) -> MapReduceJob:
    return MapReduceJob(name, maps, Fraction(map_s), reduces, Fraction(reduce_s))


#: Fig. 3.3's jobs; MK_JR's order is J2 J3 J4 J1.
FOUR = (job("J1", 10, 4, 2, 8), job("J2", 4, 2, 4, 2), job("J3", 2, 6, 4, 10), job("J4", 24, 6, 6, 8))

JOBS = st.lists(
    st.builds(
        lambda m, mt, r, rt, gap: ((m, mt, r, rt), gap),
        st.integers(0, 20),
        st.integers(1, 50),
        st.integers(0, 10),
        st.integers(1, 50),
        st.integers(0, 60),
    ),
    max_size=12,
)


def arrivals_of(drawn: list[tuple[tuple[int, int, int, int], int]]) -> list[tuple[MapReduceJob, Fraction]]:
    now, found = 0, []
    for number, (figures, gap) in enumerate(drawn):
        now += gap
        found.append((job(f"j{number}", *figures), Fraction(now)))
    return found


def test_fixed_interval_orders_what_arrived_in_it() -> None:
    """Algorithm 3: every 60 s the jobs that wait are ordered and dispatched."""
    machine = Dispatcher(SLOTS, Dispatching("tp-fti", 60), engine("makespan", 0))
    for at, one in enumerate(FOUR):
        assert machine.arrive(one, 10 * at) == []
    assert machine.next_s == 60
    assert machine.clock(59) == []
    out = machine.clock(60)
    assert [one.job.name for one in out] == ["J2", "J3", "J4", "J1"]
    assert {one.submitted_s for one in out} == {60}
    assert [one.arrived_s for one in out] == [10, 20, 30, 0]
    assert machine.next_s == 120
    # A job that comes at the very instant of a round belongs to it (t_a <= t_curr).
    machine.arrive(job("late", 1, 1), 120)
    assert [one.job.name for one in machine.clock(120)] == ["late"]


def test_adaptive_interval_waits_as_long_as_the_round_takes() -> None:
    """Algorithm 4, step 5: t_wait = max(interval, T_A), T_A the two-stage estimate of the round in its order."""
    machine = Dispatcher(SLOTS, Dispatching("tp-ati", 10), engine("makespan", 0))
    for one in FOUR:
        machine.arrive(one, 0)
    ordered = [one.job for one in machine.clock(10)]
    heads, best = Fraction(0), Fraction(0)
    tails = [processing_times(one, SLOTS)[1] for one in ordered]
    for k, one in enumerate(ordered):
        heads += processing_times(one, SLOTS)[0]
        best = max(best, heads + sum(tails[k:], Fraction(0)))
    assert best > 10
    assert machine.next_s == 10 + best
    # An empty round takes no time: the least interval again.
    assert machine.clock(10 + best) == []
    assert machine.next_s == 20 + best


def test_rounds_without_jobs_are_passed_over_at_once() -> None:
    """A very short interval and a long time: 10^15 rounds, none of which has a job."""
    for when in ("tp-fti", "tp-ati"):
        machine = Dispatcher(SLOTS, Dispatching(when, 1e-9), engine("makespan", 0))  # type: ignore[arg-type]
        assert machine.arrive(FOUR[0], 10**6) == []
        assert 10**6 <= machine.next_s < 10**6 + Fraction(1, 10**8)  # type: ignore[operator]
        assert [one.job.name for one in machine.clock(10**6 + 1)] == ["J1"]
        assert machine.next_s > 10**6 + 1  # type: ignore[operator]
    with pytest.raises(CallError, match="interval_s"):
        make_policy("mrorder", {"interval_s": "1e-9"})


@pytest.mark.parametrize("before", [False, True])
def test_passing_over_rounds_leaves_the_next_where_they_would(before: bool) -> None:
    machine = Dispatcher(SLOTS, Dispatching("tp-fti", 60), engine("makespan", 0))
    for now in (59, 60, 61, 240, 300, 301):
        machine.clock(now, before=before)
        due = range(60, 1000, 60)
        assert machine.next_s == next(at for at in due if (at >= now if before else at > now))


def test_number_of_jobs() -> None:
    machine = Dispatcher(SLOTS, Dispatching("pnj", jobs=3), engine("makespan", 0))
    assert machine.arrive(FOUR[0], 1) == []
    assert machine.arrive(FOUR[1], 2) == []
    assert machine.next_s is None
    out = machine.arrive(FOUR[2], 7)
    assert [(one.job.name, one.submitted_s) for one in out] == [("J2", 7), ("J3", 7), ("J1", 7)]
    machine.arrive(FOUR[3], 8)
    assert [one.job.name for one in machine.close(20)] == ["J4"]


def test_at_most_so_many_a_round() -> None:
    out = dispatch([(one, Fraction(0)) for one in FOUR], SLOTS, Dispatching("tp-fti", 5, most=2))
    assert [one.round for one in out] == [1, 1, 2, 2]
    assert {one.job.name for one in out[:2]} == {"J1", "J2"}


def test_eager_does_not_let_the_cluster_idle() -> None:
    machine = Dispatcher(SLOTS, Dispatching("tp-ati", 10, eager=True), engine("makespan", 0))
    machine.arrive(FOUR[0], 0)
    assert [one.job.name for one in machine.clock(10)] == ["J1"]
    machine.arrive(FOUR[1], 11)
    assert [one.job.name for one in machine.finish("J1", 12)] == ["J2"]
    assert machine.finish("J2", 13) == []
    assert [one.job.name for one in machine.arrive(FOUR[2], 14)] == ["J3"]


@settings(max_examples=100, deadline=None)
@given(
    drawn=JOBS,
    when=st.sampled_from(["pnj", "tp-fti", "tp-ati"]),
    interval=st.sampled_from([0.5, 10, 300]),
    count=st.integers(1, 5),
    most=st.sampled_from([1, 3, float("inf")]),
)
def test_no_job_is_lost_or_early(
    drawn: list[tuple[tuple[int, int, int, int], int]], when: str, interval: float, count: int, most: float
) -> None:
    arrivals = arrivals_of(drawn)
    how = Dispatching(when, interval, count, most)  # type: ignore[arg-type]
    out = dispatch(arrivals, SLOTS, how, GREEDY["tct"])
    assert sorted(one.job.name for one in out) == sorted(one.name for one, _ in arrivals)
    came = {one.name: at for one, at in arrivals}
    assert all(came[one.job.name] == one.arrived_s <= one.submitted_s for one in out)
    assert [one.submitted_s for one in out] == sorted(one.submitted_s for one in out)
    assert [one.round for one in out] == sorted(one.round for one in out)


@settings(max_examples=60, deadline=None)
@given(drawn=JOBS)
def test_tasks_followed_one_by_one_end_as_jobs_whose_tasks_are_alike(
    drawn: list[tuple[tuple[int, int, int, int], int]],
) -> None:
    arrivals = arrivals_of(drawn)
    jobs, times = [one for one, _ in arrivals], [at for _, at in arrivals]
    maps, reduces = [[one.map_s] * one.maps for one in jobs], [[one.reduce_s] * one.reduces for one in jobs]
    assert estimate_tasks(maps, reduces, SLOTS, times) == estimate(jobs, SLOTS, times)


@settings(max_examples=60, deadline=None)
@given(drawn=JOBS)
def test_released_estimate_is_the_offline_one_when_all_are_there(
    drawn: list[tuple[tuple[int, int, int, int], int]],
) -> None:
    jobs = [one for one, _ in arrivals_of(drawn)]
    assert estimate(jobs, SLOTS, [Fraction(0)] * len(jobs)) == estimate(jobs, SLOTS)
    shifted = estimate(jobs, SLOTS, [Fraction(7, 2)] * len(jobs))
    assert shifted.completions == tuple(end + Fraction(7, 2) for end in estimate(jobs, SLOTS).completions)


def test_released_estimate_by_hand() -> None:
    """8 map slots: J1's ten maps of 4 s from 0 (two waves, the second on two slots), J3 at 5 s on free slots."""
    found = estimate((FOUR[0], FOUR[2]), SLOTS, (Fraction(0), Fraction(5)))
    assert found.map_completions == (8, 11)
    assert found.completions == (16, 26)  # four reduces: two of J1's slots until 16, J3's from 11 on two, then 16
    with pytest.raises(ValueError, match="out of order"):
        estimate(FOUR[:2], SLOTS, (Fraction(5), Fraction(0)))


def test_engine_searches_few_and_is_greedy_beyond() -> None:
    best = min(estimate([FOUR[i] for i in order], SLOTS).total_completion_time for order in permutations(range(4)))
    searched = engine("tct", 4)(FOUR, SLOTS)
    assert estimate([FOUR[i] for i in searched], SLOTS).total_completion_time == best == 88
    assert engine("tct", 3)(FOUR, SLOTS) == GREEDY["tct"](FOUR, SLOTS)
    assert engine("makespan", 3)(FOUR, SLOTS) == GREEDY["mk_jr"](FOUR, SLOTS)
    assert engine("makespan", own="worst")(FOUR, SLOTS) == GREEDY["worst"](FOUR, SLOTS)


def test_users_own_ordering(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(
        "def fewest_maps(jobs, slots):\n    return sorted(range(len(jobs)), key=lambda i: jobs[i].maps)\n"
        "def wrong(jobs, slots):\n    return [0] * len(jobs)\n"
        "def broken(jobs, slots):\n    raise KeyError('x')\nnumber = 3\n"
    )
    assert named(f"{path}:fewest_maps")(FOUR, SLOTS) == (2, 1, 0, 3)
    policy = make_policy("mrorder", {"ordering": f"{path}:fewest_maps", "when": "tp-fti"})
    queue = policy.dispatching_queue()
    assert queue is not None
    assert queue.ordering(FOUR, SLOTS) == (2, 1, 0, 3)
    for name, message in (("wrong", "is not an order"), ("broken", "KeyError")):
        with pytest.raises(InputError, match=message):
            named(f"{path}:{name}")(FOUR, SLOTS)
    for name, message in (("number", "not a function"), ("missing", "has no function")):
        with pytest.raises(InputError, match=message):
            named(f"{path}:{name}")
    with pytest.raises(CallError, match="no ordering 'nobody'"):
        named("nobody")


def test_policy_settings() -> None:
    queue = make_policy("mrorder", {"when": "pnj", "jobs": "4", "most": "9"}).dispatching_queue()
    assert queue is not None
    how = queue.when
    assert (how.when, how.jobs, how.most, how.interval_s) == ("pnj", 4, 9, 10)
    plain = make_policy("mrorder").dispatching_queue()
    assert plain is not None
    assert plain.when == Dispatching()
