"""Readings of LTYARN's load: what a point changes, and that the sensitivity's record and tables follow from it."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.experiments.resolve import jobs_of, load_experiment
from harness.model.jobs import JobSpec
from harness.results.metrics import expected_s
from studies import sensitivity
from studies.ltyarn_points import Point, figures_at, jobs_at, most_speedup, setup_at

ROOT = Path(__file__).resolve().parents[2]


def test_the_defaults_are_the_experiment_itself() -> None:
    jobs = list(jobs_of(load_experiment("ltyarn"), 1)[0])
    assert jobs_at(jobs, Point()) == jobs


def _changed(**values: Any) -> Iterator[tuple[JobSpec, JobSpec]]:
    jobs = list(jobs_of(load_experiment("ltyarn"), 1)[0])
    return zip(jobs, jobs_at(jobs, Point(**values)), strict=True)


def _work_s(jobs: Iterable[JobSpec], queue: str) -> float:
    return math.fsum(s.tasks * expected_s(s.duration) for job in jobs if job.queue == queue for s in job.stages)


def test_other_splits_are_as_much_work() -> None:
    for split_mb, maps in ((32, 1280), (128, 320)):
        before, after = zip(*_changed(purdue_split_mb=split_mb), strict=True)
        assert {job.stages[0].tasks for job in after if job.queue == "root.Purdue"} == {maps}
        assert _work_s(after, "root.Purdue") == pytest.approx(_work_s(before, "root.Purdue"))


def test_longer_reduces_of_facebook_leave_the_mean_of_its_tasks() -> None:
    before, after = zip(*_changed(facebook_reduce_s=48.0), strict=True)
    reduces = [stage for job in after if job.queue == "root.Facebook" for stage in job.stages if stage.name == "reduce"]
    assert {round(expected_s(stage.duration), 6) for stage in reduces} == {48.0}
    assert _work_s(after, "root.Facebook") == pytest.approx(_work_s(before, "root.Facebook"))


def test_another_spread_keeps_every_mean() -> None:
    for before, after in _changed(sigmas=2.0):
        for one, other in zip(before.stages, after.stages, strict=True):
            assert other.duration.sigma == 2.0 * one.duration.sigma
            assert expected_s(other.duration) == pytest.approx(expected_s(one.duration))


def test_the_order_of_sparks_programs_and_when_queues_start() -> None:
    _, after = zip(*_changed(spark_order="ALS", others_start_s=40.0), strict=True)
    spark = [job for job in after if job.queue == "root.Spark"]
    assert [job.name for job in spark] == ["ALS"] * 10 + ["k-means"] * 10
    assert [job.after_job for job in spark[1:]] == [job.id for job in spark[:-1]]
    assert all(job.executor_slots == (1 if job.name == "ALS" else 2) for job in spark)
    assert min(job.submit_s for job in after if job.queue == "root.Purdue") == 40.0
    assert min(job.submit_s for job in after if job.queue == "root.Facebook") < 40.0


def test_what_the_scheduler_and_the_masters_are_told() -> None:
    experiment = load_experiment("ltyarn")
    present = setup_at(experiment, Point(), 1, "fair")
    assert (present.hadoop, present.mapreduce.headroom) == (None, "scheduler")
    papers = setup_at(experiment, Point(hadoop="2.2"), 1, "fair")
    assert (papers.hadoop, papers.mapreduce.headroom) == ("2.2", "none")
    assert (
        setup_at(experiment, Point(quantum_s=40.0), 1, "ltyarn").policy
        != setup_at(experiment, Point(), 1, "ltyarn").policy
    )


def test_vcores_never_limit_small_containers() -> None:
    experiment = load_experiment("ltyarn")
    own = setup_at(experiment, Point(), 1, "fair").nodes
    assert {node.vcores for node in own} == {24}
    small = setup_at(experiment, Point(container_mb=1024), 1, "fair").nodes
    assert {node.vcores for node in small} == {48}  # k-means' executors have two


def test_a_points_figures_are_those_of_the_experiment() -> None:
    """Figures of seed 1 lie within the range that the record of `yarnfair run ltyarn` has over its ten seeds."""
    record = json.loads((ROOT / "docs" / "records" / "ltyarn.json").read_text(encoding="utf-8"))["values"]["variants"]
    found = figures_at(load_experiment("ltyarn"), Point(), 1)
    for policy in ("fair", "ltyarn"):
        figures = found[policy]
        assert figures is not None
        # Rounded to four decimal digits, and to one.
        for name, step in (("sharing_loss", 1e-4), ("makespan_s", 0.1)):
            own = figures[name]
            kept = record[policy][name]
            assert kept["min"] - step <= own <= kept["max"] + step
        kept = record[policy]["queues"]["root.Facebook"]["workload_speedup_over_static"]
        assert kept["min"] - 1e-3 <= figures["speedup"]["Facebook"] <= kept["max"] + 1e-3


def test_every_assumed_number_has_a_half_and_a_double() -> None:
    for name, both in sensitivity.ASSUMED.items():
        assert len(both) == 2, name
        assert Point() not in [point for _, point in both], name


def test_the_record_has_every_load_and_directions_count_seeds() -> None:
    values = json.loads((ROOT / "docs" / "records" / "ltyarn-sensitivity.json").read_text(encoding="utf-8"))["values"]
    assert list(values["assumed"]) == list(sensitivity.ASSUMED)
    assert list(values["readings"]) == list(sensitivity.READINGS)
    for name, both in sensitivity.ASSUMED.items():
        assert list(values["assumed"][name]) == [label for label, _ in both]
    loads = [values[sensitivity.OWN], *values["readings"].values()]
    loads += [own for both in values["assumed"].values() for own in both.values()]
    for own in loads:
        assert own["seeds"] == own["static_ended"] == 10
        assert all(0 <= held <= 10 for held in own["directions"].values())


def test_a_direction_is_what_the_figures_say() -> None:
    ahead = {"whole_s": {"Facebook": 90.0, "Purdue": 110.0, "TPC-H": 110.0, "Spark": 90.0}}
    behind = {"whole_s": dict.fromkeys(ahead["whole_s"], 100.0)}
    fair = {
        **ahead,
        "sharing_loss": -0.5,
        "fairness_degree": {"Facebook": 1.3, "Purdue": 1.2, "TPC-H": 0.8, "Spark": 0.9},
    }
    ltyarn = {**behind, "sharing_loss": -0.1, "fairness_degree": dict.fromkeys(ahead["whole_s"], 1.1)}
    printed = {"fair": fair, "ltyarn": ltyarn}
    assert all(holds(printed) for holds in sensitivity.DIRECTIONS.values())
    assert not any(sensitivity.DIRECTIONS[name]({"fair": ltyarn, "ltyarn": fair}) for name in sensitivity.DIRECTIONS)


def test_the_pages_statements_are_the_records() -> None:
    values = json.loads((ROOT / "docs" / "records" / "ltyarn-sensitivity.json").read_text(encoding="utf-8"))["values"]
    both = [(own, own["directions"]) for pair in values["assumed"].values() for own in pair.values()]
    assert all(found["7d"] == 10 and found["7b"] == 0 for _, found in both)
    assert all(found["8 Facebook"] >= 8 and found["8 Purdue"] == found["8 Spark"] == 0 for _, found in both)
    assert [found["8 TPC-H"] for _, found in both if found["8 TPC-H"] < 10] == [5, 4]
    turned = {
        name: label
        for name, pair in values["assumed"].items()
        for label, own in pair.items()
        if own["directions"]["7a, c"] == 10
    }
    assert list(turned.values()) == ["halved", "doubled"]
    small = values["assumed"]["containers, 2 GB (Facebook's applications: half of its share)"]["1 GB"]["directions"]
    assert (small["7a, c"], small["8 Facebook"]) == (9, 8)
    doubled = values["assumed"]["the work in a Spark job"]["doubled"]
    assert all(doubled["directions"][name] == 10 for name in ("7a, c", "7d", "8 Facebook", "8 TPC-H"))
    assert round(-doubled["fair"]["sharing_loss"]["mean"], 2) == 0.03


@pytest.mark.parametrize(("tasks", "own"), [(4.0, 0.25), (4.0, 1.0), (8.0, 0.5), (16.0, 0.25), (16.0, 1.0)])
def test_a_queue_that_ends_below_its_due_is_slower_than_the_inequality_allows(tasks: float, own: float) -> None:
    page = (ROOT / "docs" / "decisions" / "where-it-matters.md").read_text(encoding="utf-8")
    point = Point(facebook_tasks=tasks, purdue_tasks=tasks, tpch_tasks=own, spark_tasks=own)
    found = figures_at(load_experiment("ltyarn"), point, 1)
    fair, static = found["fair"], found["static"]
    assert fair is not None
    assert static is not None
    degrees = (static["fairness_degree"]["TPC-H"], fair["fairness_degree"]["TPC-H"])
    most, measured = most_speedup(fair, static, "TPC-H"), fair["speedup"]["TPC-H"]
    assert degrees[1] < degrees[0]
    assert measured <= most < 1.0
    numbers = " | ".join(f"{number:.3f}" for number in (*degrees, most, measured))
    assert f"| {tasks:g}, {own:g} | {numbers} |" in page


def test_the_bound_of_a_queue_that_got_half_of_its_due() -> None:
    fair = {"fairness_degree": {"TPC-H": 0.5}, "work_s": {"TPC-H": 100.0}}
    static = {"fairness_degree": {"TPC-H": 1.0}, "whole_s": {"TPC-H": 200.0}}
    # 100 s of work at half of the due rate last 100 s longer.
    assert most_speedup(fair, static, "TPC-H") == pytest.approx(200.0 / 300.0)
