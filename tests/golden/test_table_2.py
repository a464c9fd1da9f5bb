"""LTYARN's Table 2, cell by cell: a property test where it holds, a counterexample where it does not.

docs/decisions/table-2.md tells them. Pareto efficiency of all three is `test_work_conservation` beside this file.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.model.jobs import Duration, JobSpec, NodeSpec, Stage
from harness.model.resources import Resource
from harness.paper.steps import ScenarioQueue, StepsScenario
from harness.paper.units import allocate
from harness.policies import make_policy
from harness.sim.setup import SimSetup
from harness.sim.simulate import simulate
from harness.yarn.fair.parse import parse_allocations

ONE = Fraction(1)
POLICIES = {"MLRF": "fair", "LTRF": "ltrf", "H-LTRF": "hltrf"}
#: Fig. 1: four users flat, or in two groups.
FLAT = tuple(ScenarioQueue(name, ONE) for name in "ABCD")
GROUPS = (ScenarioQueue("G1", ONE, FLAT[:2]), ScenarioQueue("G2", ONE, FLAT[2:]))


def tree_for(column: str) -> tuple[ScenarioQueue, ...]:
    return GROUPS if column == "H-LTRF" else FLAT


def totals(column: str, capacity: int, arrivals: list[dict[str, int]], steps: int) -> list[dict[str, int]]:
    """What each user has got by the end of each step."""
    scenario = StepsScenario(capacity, tree_for(column), tuple(arrivals), steps)
    answer = allocate(scenario, make_policy(POLICIES[column], {}))
    got = dict.fromkeys("ABCD", 0)
    return [dict(got) for step in answer.steps if not got.update({u: got[u] + step[u] for u in got})]


def alone(share: int, arrivals: list[int], steps: int) -> list[int]:
    """What a user would have got by the end of each step with its share for itself."""
    backlog, got, found = 0, 0, []
    for step in range(steps):
        backlog += arrivals[step] if step < len(arrivals) else 0
        now = min(backlog, share)
        backlog, got = backlog - now, got + now
        found.append(got)
    return found


# --- Sharing incentive: printed for all three ---

demands = st.lists(st.fixed_dictionaries({user: st.integers(0, 12) for user in "ABCD"}), min_size=1, max_size=10)


@settings(max_examples=60, deadline=None)
@given(demands, st.integers(1, 4))
def test_sharing_incentive_holds_for_mlrf(arrivals: list[dict[str, int]], share: int) -> None:
    """With tasks of one step: at each moment each user has got at least what it would have had alone."""
    for user in "ABCD":
        least = alone(share, [step[user] for step in arrivals], 14)
        got = totals("MLRF", 4 * share, arrivals, 14)
        assert all(have[user] >= due for have, due in zip(got, least, strict=False))


@pytest.mark.parametrize("column", ["LTRF", "H-LTRF"])
def test_sharing_incentive_does_not_hold_for_ltrf(column: str) -> None:
    """B never borrows, and pays for C's debts when A comes. (In two groups: B shares one with A.)"""
    arrivals = [{"B": 1, "C": 2, "D": 1}] * 10 + [{"A": 100, "B": 1, "C": 2, "D": 1}] * 3
    got = totals(column, 4, arrivals, 13)[-1]["B"]
    due = alone(1, [step["B"] for step in arrivals], 13)[-1]
    assert got < due


# --- Cost-efficient workloads: printed for LTRF and H-LTRF, not for MLRF ---


@settings(max_examples=40, deadline=None)
@given(demands, st.integers(1, 4), st.lists(st.integers(0, 8), min_size=1, max_size=6), st.sampled_from(list(POLICIES)))
def test_dirty_tasks_gain_nothing_while_tasks_last_one_step(
    arrivals: list[dict[str, int]], share: int, dirty: list[int], column: str
) -> None:
    """Nothing is held beyond a step, so that there is nothing to be gained by holding: under all three a user whose
    dirty tasks stand before its own has got no more of its own by any step."""
    honest = totals(column, 4 * share, arrivals, 14)
    padded = [dict(step) for step in arrivals] + [dict.fromkeys("ABCD", 0) for _ in dirty[len(arrivals) :]]
    for step, extra in zip(padded, dirty, strict=False):
        step["A"] += extra
    lied = totals(column, 4 * share, padded, 14)
    # The first so many of what it got were dirty; one of each step's stands before that step's own.
    for at, (before, after) in enumerate(zip(honest, lied, strict=False)):
        waste = min(sum(dirty[: at + 1]), after["A"])
        if after["A"] >= sum(dirty):
            assert after["A"] - waste <= before["A"]


def completion_s(policy: str, dirty_s: float | None) -> float:
    """How long A's ten tasks of 20 s, which come at 130 s, take on average; B has as many of 120 s as it can hold.

    With `dirty_s` A keeps its half of the cluster till then with tasks that do nothing for so long.
    """

    def job(name: str, queue: str, tasks: int, seconds: float, submit_s: float) -> JobSpec:
        stage = Stage("map", tasks, Resource(1024, 1), Duration("constant", value_s=seconds))
        return JobSpec(name, f"root.{queue}", "mapreduce", Resource(), (stage,), submit_s=submit_s)

    jobs = [job("B", "B", 400, 120.0, 0.0)]
    if dirty_s is not None:
        jobs += [job(f"dirty{t}", "A", 20, dirty_s, float(t)) for t in range(0, 130, round(dirty_s) + 4)]
    jobs.append(job("A", "A", 10, 20.0, 130.0))
    setup = SimSetup(
        nodes=tuple(NodeSpec(f"n{i}", 4096, 8) for i in range(10)),
        allocations=parse_allocations('<allocations><queue name="A"/><queue name="B"/></allocations>'),
        jobs=jobs,
        policy=make_policy(policy, {}),
        record_tasks=True,
        time_limit_s=2000.0,
    )
    result = simulate(setup)
    assert result.tasks is not None
    own = result.tasks["job"] == result.jobs["id"].index("A")
    return float(np.mean(result.tasks["end_ms"][own])) / 1000 - 130


@pytest.mark.parametrize("column", POLICIES)
def test_dirty_tasks_pay_where_tasks_last(column: str) -> None:
    """Nothing is preempted: who holds its share with short dirty tasks need not wait for others' long ones. Also under
    long-term fairness, for which the paper prints that it does not pay: this is a counterexample to Table 2."""
    honest, dirty = completion_s(POLICIES[column], None), completion_s(POLICIES[column], 5.0)
    assert dirty < honest - 10


# --- Resources as contributed: printed for LTRF and H-LTRF, not for MLRF ---


def test_mlrf_does_not_give_as_contributed() -> None:
    """Table 1 (a): equal shares, 160 against 240."""
    arrivals = [{"A": 20, "B": 100}, {"A": 40, "B": 60}, {"A": 80, "B": 50}, {"A": 60, "B": 50}]
    scenario = StepsScenario(100, FLAT[:2], tuple(arrivals), 4)
    assert allocate(scenario, make_policy("fair", {})).totals == {"A": 160, "B": 240}
    assert allocate(scenario, make_policy("ltrf", {})).totals == {"A": 200, "B": 200}


@settings(max_examples=40, deadline=None)
@given(demands, st.integers(1, 3), st.sampled_from(["LTRF", "H-LTRF"]))
def test_long_term_totals_meet_when_all_ask(arrivals: list[dict[str, int]], share: int, column: str) -> None:
    """Whatever came before: once all ask for as long as it takes, all users (in groups: siblings) have got the same
    within a unit, and so have groups."""
    arrivals = [*arrivals, dict.fromkeys("ABCD", 10_000)]
    got = totals(column, 4 * share, arrivals, 400)[-1]
    if column == "LTRF":
        assert max(got.values()) - min(got.values()) <= 1
    else:
        assert abs(got["A"] + got["B"] - got["C"] - got["D"]) <= 1
        assert abs(got["A"] - got["B"]) <= 1
        assert abs(got["C"] - got["D"]) <= 1


# --- Strategy-proofness: printed for LTRF and H-LTRF, not for MLRF ---


def reporting(early: int) -> list[dict[str, int]]:
    """The paper's example: A asks for nothing at first, C (and D) for more than there is, B for less than its share.
    B says that it needs `early` more by doing work of later beforehand. From the 10th step on all ask."""
    first = [{"B": 1 + (early if step == 0 else 0), "C": 100, "D": 100} for step in range(10)]
    return [*first, {"A": 10_000, "B": 10_000 - early, "C": 10_000, "D": 10_000}]


def test_mlrf_rewards_a_false_report() -> None:
    honest, lied = (totals("MLRF", 12, reporting(early), 60)[-1]["B"] for early in (0, 60))
    assert lied >= honest + 20


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 200), st.sampled_from(["LTRF", "H-LTRF"]))
def test_a_false_report_gains_nothing_in_the_end_under_long_term_fairness(early: int, column: str) -> None:
    honest, lied = (totals(column, 12, reporting(e), 160)[-1]["B"] for e in (0, early))
    assert abs(lied - honest) <= 1


def test_the_four_users_are_the_papers() -> None:
    """Fig. 1: equal shares in either tree, so that flat and level by level agree on S_i."""
    for column in POLICIES:
        got = totals(column, 12, [dict.fromkeys("ABCD", 100)], 5)
        assert all(step == dict.fromkeys("ABCD", 3 * at) for at, step in enumerate(got, 1)), column
