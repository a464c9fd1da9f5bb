"""Worked examples of LTYARN and tang-thesis chapter 5, line by line, and what their claims come to."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.paper.steps import Allocation, ScenarioQueue, StepsScenario
from harness.paper.units import allocate
from harness.policies import make_policy

ONE = Fraction(1)


def flat(capacity: int, arrivals: list[dict[str, int]], steps: int | None = None, **weights: int) -> StepsScenario:
    names = sorted(weights or {name for step in arrivals for name in step})
    queues = tuple(ScenarioQueue(name, Fraction(weights.get(name, 1))) for name in names)
    return StepsScenario(capacity, queues, tuple(arrivals), steps)


def under(scenario: StepsScenario, policy: str, **sets: object) -> Allocation:
    return allocate(scenario, make_policy(policy, sets))


def column(answer: Allocation, leaf: str) -> list[int]:
    return [step[leaf] for step in answer.steps]


TABLE_1 = flat(100, [{"A": 20, "B": 100}, {"A": 40, "B": 60}, {"A": 80, "B": 50}, {"A": 60, "B": 50}], steps=4)


def test_an_unbalanced_tree_by_the_leaves_weights_and_level_by_level() -> None:
    """Eq. (2): A is due a quarter by its own weight among all users, a half level by level."""
    one = ScenarioQueue("One", ONE, (ScenarioQueue("A", ONE),))
    two = ScenarioQueue("Two", ONE, tuple(ScenarioQueue(name, ONE) for name in "BCD"))
    scenario = StepsScenario(12, (one, two), (dict.fromkeys("ABCD", 100),), 3)
    for policy, sets in (("ltrf", {}), ("hltrf", {"t_wait": 0}), ("ltrf", {"horizon_s": 3})):
        assert under(scenario, policy, **sets).totals == dict.fromkeys("ABCD", 9), policy
        levels = under(scenario, policy, **sets, shares="levels")
        assert levels.totals == {"A": 18, "B": 6, "C": 6, "D": 6}, policy
    for sets in ({}, {"shares": "levels"}):
        assert under(scenario, "naive-hltrf", **sets).totals["A"] == 18
    # A has what the tree gives it: nothing exceeds its share, nothing is discounted.
    half = under(scenario, "naive-hltrf", shares="levels", discount=0)
    assert half.counted["A"] == half.totals["A"]


def test_table_1_memoryless() -> None:
    answer = under(TABLE_1, "fair")
    assert column(answer, "A") == [20, 40, 50, 50]
    assert column(answer, "B") == [80, 60, 50, 50]
    assert answer.totals == {"A": 160, "B": 240}


def test_table_1_long_term() -> None:
    answer = under(TABLE_1, "ltrf")
    assert column(answer, "A") == [20, 40, 80, 60]
    assert column(answer, "B") == [80, 60, 20, 40]
    assert answer.totals == {"A": 200, "B": 200}


def test_table_1_static() -> None:
    answer = under(TABLE_1, "static")
    assert column(answer, "A") == [20, 40, 50, 50]
    assert column(answer, "B") == [50, 50, 50, 50]


def test_thesis_table_5_1_discount() -> None:
    doubled = flat(200, [{"A": 40, "B": 200}, {"A": 80, "B": 120}, {"A": 160, "B": 100}, {"A": 120, "B": 100}], steps=4)
    answer = under(doubled, "ltrf", discount="0.5")
    assert column(answer, "A") == [40, 80, 160, 120]
    assert column(answer, "B") == [160, 120, 40, 80]
    assert answer.totals == {"A": 400, "B": 400}
    assert answer.counted == {"A": 360, "B": 360}


def test_thesis_table_5_1_memoryless_and_where_nobody_takes_what_is_idle() -> None:
    """Table 5.1 (a), and section 5.4's totals where B does not take what A leaves: 320 and 400."""
    doubled = flat(200, [{"A": 40, "B": 200}, {"A": 80, "B": 120}, {"A": 160, "B": 100}, {"A": 120, "B": 100}], steps=4)
    assert under(doubled, "fair").totals == {"A": 320, "B": 480}
    assert under(doubled, "static").totals == {"A": 320, "B": 400}


def test_a_discount_that_fades_does_not_give_back_what_was_lent() -> None:
    """Section 5.4 on net present value: A gets the same back under the static discount, less under a fading memory."""
    doubled = flat(200, [{"A": 40, "B": 200}, {"A": 80, "B": 120}, {"A": 160, "B": 100}, {"A": 120, "B": 100}], steps=4)
    static, fading = under(doubled, "ltrf", discount="0.5").totals, under(doubled, "ltrf", half_life="1").totals
    assert static == {"A": 400, "B": 400}
    assert fading["A"] < 360 < fading["B"]


def figure_2(second_wave: bool) -> StepsScenario:
    groups = (
        ScenarioQueue("G1", ONE, (ScenarioQueue("A", ONE), ScenarioQueue("B", ONE))),
        ScenarioQueue("G2", ONE, (ScenarioQueue("C", ONE), ScenarioQueue("D", ONE))),
    )
    arrivals = [{"A": 200, "B": 10, "C": 50, "D": 60}]
    if second_wave:
        arrivals += [{}] * 26 + [{"A": 20, "B": 60, "C": 40, "D": 80}]
    return StepsScenario(12, groups, tuple(arrivals))


def test_figure_2_naive() -> None:
    answer = under(figure_2(False), "naive-hltrf")
    rows = [tuple(step[leaf] for leaf in "ABCD") for step in answer.steps]
    expected = [(3, 3, 3, 3)] * 3 + [(5, 1, 3, 3)] + [(6, 0, 3, 3)] * 12 + [(6, 0, 2, 4), (6, 0, 0, 6), (10, 0, 0, 2)]
    assert rows == expected + [(12, 0, 0, 0)] * 7 + [(8, 0, 0, 0)]
    assert len(rows) == 27
    assert answer.totals == {"A": 200, "B": 10, "C": 50, "D": 60}


def test_figure_2_second_wave_starves_b_under_naive() -> None:
    b = column(under(figure_2(True), "naive-hltrf"), "B")[27:]
    assert b[: 100 // 12] == [0] * 8


def test_figure_2_second_wave_hltrf_serves_b_after_t_wait() -> None:
    b = column(under(figure_2(True), "hltrf", t_wait="4"), "B")[27:]
    assert b[:5] == [0, 0, 0, 0, 1]  # steps 28 to 31, and its first unit at step 32


def test_figure_2_conserves_work() -> None:
    for policy in ("fair", "ltrf", "naive-hltrf", "hltrf", "fifo"):
        for step in under(figure_2(True), policy).steps[:26]:
            assert sum(step.values()) == 12


# --- Theorem 1 ---


@st.composite
def scenarios(draw: st.DrawFn) -> StepsScenario:
    """Random trees of up to three levels, weights, capacities and arrivals."""
    names = iter("abcdefghijkl")
    weight = st.fractions(min_value=Fraction(1, 4), max_value=4, max_denominator=4)

    def leaf() -> ScenarioQueue:
        return ScenarioQueue(next(names), draw(weight))

    def group(name: str, depth: int) -> ScenarioQueue:
        children = []
        for index in range(draw(st.integers(1, 2))):
            deeper = depth < 2 and draw(st.booleans())
            children.append(group(f"{name}{index}", depth + 1) if deeper else leaf())
        return ScenarioQueue(name, draw(weight), tuple(sorted(children, key=lambda q: q.name.encode())))

    top = []
    for index in range(draw(st.integers(1, 3))):
        top.append(group(f"G{index}", 1) if draw(st.booleans()) else leaf())
    top.sort(key=lambda q: q.name.encode())
    leaves = [queue.name for root in top for queue in root.leaves()]
    step = st.dictionaries(st.sampled_from(leaves), st.integers(0, 25))
    arrivals = draw(st.lists(step, min_size=1, max_size=8))
    return StepsScenario(draw(st.integers(1, 12)), tuple(top), tuple(arrivals), draw(st.sampled_from([None, 6, 12])))


@settings(max_examples=80, deadline=None)
@given(scenarios())
def test_theorem_1_without_waiting_is_ltrf(scenario: StepsScenario) -> None:
    assert under(scenario, "hltrf", t_wait="0").steps == under(scenario, "ltrf").steps


@settings(max_examples=80, deadline=None)
@given(scenarios())
def test_theorem_1_waiting_for_ever_is_naive(scenario: StepsScenario) -> None:
    assert under(scenario, "hltrf", t_wait="inf").steps == under(scenario, "naive-hltrf").steps


@settings(max_examples=60, deadline=None)
@given(scenarios(), st.sampled_from(["fair", "drf", "fifo", "ltrf", "naive-hltrf", "hltrf"]))
def test_work_conservation(scenario: StepsScenario, policy: str) -> None:
    answer = under(scenario, policy)
    backlog = 0
    for number, step in enumerate(answer.steps):
        backlog += sum(scenario.arrivals[number].values()) if number < len(scenario.arrivals) else 0
        assert sum(step.values()) == min(backlog, scenario.capacity)
        backlog -= sum(step.values())


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(1, 5), min_size=2, max_size=5), st.integers(1, 20), st.integers(1, 30), st.sampled_from([0, 5])
)
def test_bounded_gap_between_backlogged_queues(weights: list[int], capacity: int, steps: int, lead: int) -> None:
    """Once two queues are both backlogged, u_i / w_i of the poorer rises alone until they meet; then they stay within
    one unit: |u_i / w_i - u_j / w_j| <= 1 / min w."""
    named = {f"q{index}": weight for index, weight in enumerate(weights)}
    first = {"q0": lead}
    everyone = dict.fromkeys(named, 10_000)
    answer = under(flat(capacity, [first, everyone], steps + 1, **named), "ltrf")
    used = dict.fromkeys(named, 0)
    gaps = []
    for step in answer.steps:
        for leaf in named:
            used[leaf] += step[leaf]
        keys = [Fraction(used[leaf], named[leaf]) for leaf in named]
        gaps.append(max(keys) - min(keys))
    bound = Fraction(1, min(weights))
    assert all(gap <= max(bound, before) for before, gap in itertools.pairwise(gaps[1:]))
    if capacity * steps > 200 * lead:
        assert gaps[-1] <= bound


# --- what does not hold ---


def test_sharing_incentive_does_not_hold() -> None:
    """Thesis Theorem 5.4 has a counterexample: B never borrowed and yet ends below what it would have had alone."""
    arrivals = [{"B": 1, "C": 2, "A": 100 if step == 10 else 0} for step in range(1, 13)]
    answer = under(flat(3, arrivals, 12), "ltrf")
    assert max(column(answer, "B")) == 1  # never more than its share of one
    due = sum(min(step["B"], 1) for step in arrivals)  # demand is carried over, so at least one a step
    assert Fraction(answer.totals["B"], due) == Fraction(3, 4)


def literal_pseudo(arrivals: list[dict[str, int]], capacity: int) -> list[dict[str, int]]:
    """Thesis eq. (5.10) as it stands: phi_i is the largest f_k of earlier arrivals at every t."""
    leaves = sorted({leaf for step in arrivals for leaf in step})
    own, backlog = dict.fromkeys(leaves, 0), dict.fromkeys(leaves, 0)
    arrived: dict[str, int] = {}
    steps = []

    def f(leaf: str) -> int:
        earlier = [k for k in leaves if k in arrived and backlog[k] > 0 and arrived[k] < arrived[leaf]]
        return own[leaf] + max((f(k) for k in earlier), default=0)

    for number, new in enumerate(arrivals):
        for leaf, count in new.items():
            backlog[leaf] += count
            if count and leaf not in arrived:
                arrived[leaf] = number
        given_now = dict.fromkeys(leaves, 0)
        for _ in range(capacity):
            demanding = [leaf for leaf in leaves if backlog[leaf] > 0]
            if not demanding:
                break
            leaf = min(demanding, key=lambda k: (f(k), k))
            own[leaf] += 1
            backlog[leaf] -= 1
            given_now[leaf] += 1
        steps.append(given_now)
    return steps


LATE = [{"A": 1000, "B": 0}] + [{}] * 4 + [{"A": 0, "B": 1000}] + [{}] * 14


def test_pseudo_accumulated_read_literally_starves_the_late_arrival() -> None:
    b = [step["B"] for step in literal_pseudo(LATE, 10)]
    # B stays at or above the earlier maximum for ever: A is always at least as poor, and takes everything.
    assert sum(b) == 0
    frozen = column(under(flat(10, LATE, 20), "ltrf", pseudo="true"), "B")
    assert frozen[5:] == [5] * 15  # shares evenly from its arrival on: the early bird keeps what it had
    paid_back = column(under(flat(10, LATE, 20), "ltrf"), "B")
    assert paid_back[5:10] == [10] * 5  # without: long-term fairness gives back all that A had alone
    assert paid_back[10:] == [5] * 10


# --- settings on paper ---


def test_round_forgets_what_was_counted() -> None:
    answer = under(TABLE_1, "ltrf", round="2")
    # Steps 3 and 4 start from nothing: A pays nothing back.
    assert column(answer, "A") == [20, 40, 50, 50]
    assert sum(answer.counted.values()) == 200


def test_drained_scenarios_end_with_their_last_task() -> None:
    assert len(under(flat(10, [{"A": 25}]), "fair").steps) == 3


def test_static_shares_by_largest_remainder() -> None:
    thirds = flat(100, [{"a": 100, "b": 100, "c": 100}], 1)
    assert under(thirds, "static").steps == [{"a": 34, "b": 33, "c": 33}]


def test_fifo_serves_the_oldest() -> None:
    answer = under(flat(10, [{"B": 15}, {"A": 15}]), "fifo")
    assert answer.steps == [{"A": 0, "B": 10}, {"A": 5, "B": 5}, {"A": 10, "B": 0}]


def test_weights_are_exact_decimals() -> None:
    """0.1 + 0.2 is 0.3 here: three queues in ratio 1:2:3 split six units without a remainder, for ever."""
    queues = tuple(ScenarioQueue(name, Fraction(weight)) for name, weight in (("a", "0.1"), ("b", "0.2"), ("c", "0.3")))
    scenario = StepsScenario(6, queues, ({"a": 10**6, "b": 10**6, "c": 10**6},), 50)
    for policy in ("fair", "ltrf", "static", "naive-hltrf"):
        assert under(scenario, policy).steps == [{"a": 1, "b": 2, "c": 3}] * 50


def test_horizon_on_paper_lies_between_ltrf_and_fair() -> None:
    memoryless, long_term = under(TABLE_1, "fair"), under(TABLE_1, "ltrf")
    assert under(TABLE_1, "ltrf", horizon_s="inf").steps == memoryless.steps
    between = under(TABLE_1, "ltrf", horizon_s="2").totals["A"]
    assert memoryless.totals["A"] < between < long_term.totals["A"]


@pytest.mark.parametrize("sets", [{"t_wait": "4"}, {"t_wait": "2.5"}, {"t_wait": "0.1"}])
def test_every_backlogged_poorest_leaf_is_served_within_t_wait(sets: dict[str, str]) -> None:
    answer = under(figure_2(True), "hltrf", **sets)
    b = column(answer, "B")[27:]
    gap = longest = 0
    for units in b[: len(b) - 10]:
        gap = 0 if units else gap + 1
        longest = max(longest, gap)
    assert longest <= math.ceil(Fraction(sets["t_wait"]))
