"""Slots of several node types and progress share (HotCloud 2011, section 3), against golden.md's example."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.cli import main
from harness.policies.progress_share import ProgressShare
from harness.policies.rates import (
    JobView,
    NodeType,
    RateJob,
    RatesScenario,
    affinity,
    fewest_slots,
    progress_share,
)
from harness.policies.registry import make_policy
from harness.sim.rates import simulate_rates

SCENARIO = Path(__file__).parents[2] / "workloads" / "scenarios" / "progress-share.yaml"
TYPES = (NodeType("N1", 2), NodeType("N2", 4))
A_RATES = {"N1": Fraction(3), "N2": Fraction(1)}


def answer(capsys: pytest.CaptureFixture[str], path: Path, *arguments: str) -> dict[str, Any]:
    with pytest.raises(SystemExit) as stop:
        main(["allocate", str(path), "--json", *arguments])
    assert stop.value.code == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_progress_share_is_the_part_of_all_rates() -> None:
    assert progress_share({"N1": 2}, A_RATES, TYPES) == Fraction(6, 10)
    assert progress_share({"N1": 1, "N2": 2}, A_RATES, TYPES) == Fraction(5, 10)
    assert progress_share({"N2": 4}, dict.fromkeys(A_RATES, Fraction(1)), TYPES) == Fraction(4, 6)


def test_affinity_compares_a_slot_with_the_others_of_the_same_job() -> None:
    assert affinity("N1", A_RATES, TYPES) == Fraction(18, 10)
    assert affinity("N1", {"N1": Fraction(7), "N2": Fraction(7)}, TYPES) == 1


def test_the_papers_example(capsys: pytest.CaptureFixture[str]) -> None:
    """Figures 2 and 3: with equal slots A is often below one half; by progress share nobody, and both end sooner."""
    fair = answer(capsys, SCENARIO, "--policy", "fair")
    ours = answer(capsys, SCENARIO, "--policy", "progress-share")
    assert fair["progress_share"]["A"]["below_share"] > 0.5
    assert fair["progress_share"]["A"]["min"] < 0.5
    assert all(ours["progress_share"][job]["min"] >= 0.5 for job in "AB")
    assert all(ours["completions"][job] < fair["completions"][job] for job in "AB")
    assert ours["sum_progress_share"] >= 1 > fair["sum_progress_share"]
    # Three slots each while both have tasks: the metric of equal slots is kept to.
    assert all(sum(step["slots"]["A"].values()) == 3 for step in fair["steps"] if step["time"] < fair["contended_s"])


def test_measured_rates_lead_to_the_same_division(capsys: pytest.CaptureFixture[str]) -> None:
    measured = answer(capsys, SCENARIO, "--policy", "progress-share", "--set", "calibrate=true")
    late = [step for step in measured["steps"] if 15 < step["time"] < measured["contended_s"]]
    assert late
    assert all(step["slots"]["A"] == {"N1": 2, "N2": 0} for step in late)


def test_calibration_takes_one_task_on_each_type_first() -> None:
    policy = make_policy("progress-share", {"calibrate": "true"})
    assert isinstance(policy, ProgressShare)
    unknown: dict[str, Fraction | None] = {"N1": None, "N2": None}
    a = JobView("A", Fraction(1), 5, {"N1": 1, "N2": 0}, dict(unknown), {"N1"})
    b = JobView("B", Fraction(1), 5, {"N1": 0, "N2": 0}, dict(unknown))
    assert policy.choose("N1", [a, b], TYPES) is b
    assert policy.choose("N2", [a, b], TYPES) is a
    b.tried = {"N1", "N2"}
    a.tried = {"N1", "N2"}
    assert policy.choose("N1", [a, b], TYPES) is b  # as yet shares are counted in slots


def test_nobody_is_preferred_who_is_faster_everywhere() -> None:
    policy = ProgressShare()
    fast: dict[str, Fraction | None] = {"N1": Fraction(10), "N2": Fraction(10)}
    slow: dict[str, Fraction | None] = {"N1": Fraction(1), "N2": Fraction(1)}
    a = JobView("A", Fraction(1), 5, {"N1": 1, "N2": 0}, fast)
    b = JobView("B", Fraction(1), 5, {"N1": 0, "N2": 0}, slow)
    assert policy.choose("N1", [a, b], TYPES) is b


rates = st.fixed_dictionaries({"N1": st.integers(1, 5), "N2": st.integers(1, 5)})
jobs = st.lists(st.tuples(st.integers(1, 30), st.integers(1, 9), rates, st.integers(0, 20)), min_size=1, max_size=5)


@given(jobs, st.sampled_from(["fair", "progress-share", "measured"]))
@settings(max_examples=60, deadline=None)
def test_every_task_runs_once_and_no_slot_is_idle_while_tasks_wait(drawn: Any, how: str) -> None:
    made = tuple(
        RateJob(f"j{i}", n, Fraction(work), {k: Fraction(v) for k, v in cr.items()}, submit_s=Fraction(at))
        for i, (n, work, cr, at) in enumerate(drawn)
    )
    choose = (lambda _s, views, _t: fewest_slots(views)) if how == "fair" else ProgressShare().choose
    result = simulate_rates(RatesScenario(TYPES, made), choose, calibrate=how == "measured")
    assert set(result.completed_s) == {job.name for job in made}
    done = dict.fromkeys(result.completed_s, Fraction(0))
    for interval in result.intervals:
        for name, held in interval.held.items():
            job = next(job for job in made if job.name == name)
            done[name] += sum((interval.end_s - interval.start_s) * job.rates[kind] * n for kind, n in held.items())
        if interval.contended:
            assert sum(sum(held.values()) for held in interval.held.values()) == 6
        assert all(0 <= share <= 1 for share in interval.progress_share.values())
    assert done == {job.name: job.tasks * job.work_s for job in made}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("node_types: {N1: {slots: 0}}\njobs: {A: {tasks: 1, seconds: 1, rates: {N1: 1}}}", "at least 1"),
        ("node_types: {N1: {slots: 1}}\njobs: {A: {tasks: 1, seconds: 1, rates: {}}}", "no rate on N1"),
        ("node_types: {N1: {slots: 1}}\njobs: {A: {tasks: 1, seconds: 1, rates: {N9: 1}}}", "no node type"),
        ("node_types: {N1: {slots: 1}}\njobs: {A: {tasks: 1, seconds: .nan, rates: {N1: 1}}}", "finite decimal"),
        ("node_types: {N1: {slots: 1}}\njobs: {A: {tasks: 1, seconds: 1, rates: {N1: -1}}}", "above 0"),
        ("node_types: {N1: {slots: 1}}\njobs: {A: {tasks: 1, rates: {N1: 1}}}", "no seconds"),
        ("node_types: {N1: {slots: 1}}", "has no jobs"),
        ("node_types: {N1: {slots: 1}}\njobs: {A: {tasks: 900000, seconds: 1, rates: {N1: 1}}}", "tasks"),
    ],
)
def test_mistakes_are_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, says: str) -> None:
    (tmp_path / "s.yaml").write_text(text)
    with pytest.raises(SystemExit) as stop:
        main(["allocate", str(tmp_path / "s.yaml"), "--policy", "progress-share"])
    assert stop.value.code == 1
    error = capsys.readouterr().err
    assert says in error
    assert error.count("\n") == 1
