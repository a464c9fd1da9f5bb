"""Experiments on MRv1's slots and with mrorder in front: what runs, what is refused, what the run directory holds."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pandas as pd
import pytest

from harness.base.errors import CallError, InputError
from harness.cli import main
from harness.experiments.orders import check_orders
from harness.experiments.resolve import jobs_of, load_experiment, variants_of
from harness.experiments.run import run_experiment
from harness.experiments.simulated import held
from harness.model.jobs import Duration, JobSpec, Stage
from harness.model.resources import Resource
from harness.policies import make_policy
from harness.policies.base import Policy
from harness.systems.dynamicmr.experiment import slot_job, slot_run
from harness.systems.dynamicmr.simulator.engine import run_slots
from harness.systems.mrorder.ordering.online import DispatchingQueue
from harness.systems.mrorder.policy import MROrder
from harness.systems.mrorder.submissions import as_mapreduce, hold

SMALL = """
experiment: small-slots
cluster: {nodes: [{count: 3, memory_mb: 12288, vcores: 6, rack: /a}]}
slots: {map: 4, reduce: 2, map_weight: 1, reduce_weight: 1, heartbeat_s: 0, locality_delay_s: 0, rack_factor: 1.5}
queues: {a: {weight: 2}, b: {weight: 1, scheduling_policy: fifo}}
workloads:
  a: &load
    inline:
      kind: sequence
      submission: {every_s: 10}
      am: {memory_mb: 1024}
      slow_start: 1.0
      task: {demand: {memory_mb: 1024}, duration: {constant_s: 5}}
      jobs: [{name: sort, maps: 20, reduces: 10}]
      rounds: 2
  b: *load
policies: [fair, fifo, pi-dhsa, pd-dhsa, dynamicmr]
sample_s: 1
"""


@pytest.fixture
def small(tmp_path: Path) -> Path:
    path = tmp_path / "small.yaml"
    path.write_text(SMALL)
    return path


def test_a_run_directory_of_slots(small: Path, tmp_path: Path) -> None:
    loaded = load_experiment(str(small))
    ended = run_experiment(loaded, variants_of(loaded), tmp_path / "runs", processes=1)
    assert [one.exit_code for one in ended] == [0] * 5
    times = {one.variant.policy: one.summary["makespan_s"] for one in ended}
    assert times["pi-dhsa"] < times["fair"]
    for one in ended:
        summary = json.loads((one.path / "summary.json").read_text())
        assert summary["slots"]["maps_started"] == 80
        assert 0 < summary["utilisation"]["memory"] <= 1
        jobs = pd.read_parquet(one.path / "jobs.parquet")
        assert jobs["tasks"].tolist() == [30] * 4
        # What the jobs held, in memory: 20 maps (at 1, or 1.5 times off their node) and 10 reduces of 5 s, 2 GB a slot.
        assert (jobs["memory_mb_s"] >= 30 * 5 * 2048).all()
        allocations = pd.read_parquet(one.path / "allocations.parquet")
        root = allocations[allocations["queue"] == "root"]
        assert root["allocated_mb"].max() <= 3 * 12288
        running = [json.loads(line) for line in (one.path / "slots.jsonl").read_text().splitlines()]
        assert running[0]["time_s"] == 0
        assert set(running[0]["maps"]) == {"root.a", "root.b"}
    # Entitlements 2 and 1, both backlogged: 12 map slots (18 of both kinds under PI-DHSA) go 2 to 1.
    first = [json.loads(line) for line in (ended[0].path / "slots.jsonl").read_text().splitlines()][1]
    assert first["maps"] == {"root.a": 8, "root.b": 4}


def test_the_same_jobs_under_every_policy(small: Path) -> None:
    loaded = load_experiment(str(small))
    runs = [slot_run(loaded, variant, jobs_of(loaded, 1)[0]) for variant in variants_of(loaded)]
    assert len({run.jobs for run in runs}) == 1
    assert runs[0].rules.weights == {"root.a": 2, "root.b": 1}
    assert runs[0].rules.fifo_pools == {"root.b"}


@pytest.mark.parametrize(
    ("change", "policies", "error", "message"),
    [
        ("", ("ltrf",), CallError, "ltrf does not give out slots"),
        ("", ("pi-dhsa@outside",), CallError, "in the scheduler only"),
        ("queues: {a: {weight: 2}, b: {children: {c: {}}}}", ("fair",), InputError, "have no levels"),
        ("queues: {a: {max_am_share: 0.0}, b: {}}", ("fair",), InputError, "have no max_am_share"),
        ("queues: {a: {quantum_s: 5}, b: {}}", ("fair",), InputError, "have no quantum_s"),
        ("queues: {a: {scheduling_policy: drf}, b: {}}", ("fair",), InputError, "go by fair or fifo"),
    ],
)
def test_what_slots_refuse(
    change: str, policies: tuple[str, ...], error: type[Exception], message: str, tmp_path: Path
) -> None:
    text = SMALL
    if change:
        text = text.replace("queues: {a: {weight: 2}, b: {weight: 1, scheduling_policy: fifo}}", change)
        text = text.replace("  b: *load", "  c: *load" if "children" in change else "  b: *load")
    path = tmp_path / "changed.yaml"
    path.write_text(text)
    loaded = load_experiment(str(path))
    variant = variants_of(loaded, policies=policies)[0]
    with pytest.raises(error, match=message):
        slot_run(loaded, variant, jobs_of(loaded, 1)[0])


def test_a_pools_minimum_goes_first(tmp_path: Path) -> None:
    """b is due 4 of 12 map slots by its weight and has a minimum of 9; without slots the key is refused."""
    path = tmp_path / "minimum.yaml"
    path.write_text(SMALL.replace("b: {weight: 1,", "b: {weight: 1, min_slots: {map: 9},"))
    loaded = load_experiment(str(path))
    variant = variants_of(loaded, policies=("fair",))[0]
    run = slot_run(loaded, variant, jobs_of(loaded, 1)[0])
    assert run.rules.minimums == {"root.b": (9, 0)}
    found = next(sample for sample in run_slots(run).samples if sum(sample.maps))
    assert list(found.maps) == [3, 9]
    with pytest.raises(InputError, match="min_slots are of a cluster of map and reduce slots"):
        check_orders(replace(loaded, spec=loaded.spec.model_copy(update={"slots": None})), variant)


def test_only_mapreduce_jobs_take_slots(small: Path) -> None:
    loaded = load_experiment(str(small))
    job = JobSpec("s", "root.a", "spark", Resource(1, 1), (Stage("x", 1, Resource(1, 1), Duration(value_s=1.0)),))
    with pytest.raises(InputError, match="a spark job"):
        slot_run(loaded, variants_of(loaded)[0], [job])


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("rack: /a}", "rack: /a, join_s: 60}", "whole run.*leave out join_s"),
        ("rack: /a}", "rack: /a, leave_s: 60}", "whole run.*leave out leave_s"),
        ("a: {weight: 2}", "a: {weight: 2, min_resources: {memory_mb: 1024, vcores: 1}}", "no min_resources"),
        ("a: {weight: 2}", "a: {weight: 2, max_resources: {memory_mb: 1024, vcores: 1}}", "no max_resources"),
        ("a: {weight: 2}", "a: {weight: 2, max_running_apps: 1}", "no max_running_apps"),
        ("sample_s: 1", "faults: {speculation: true, speculation_factor: 3}", "LATE copies tasks by their rates"),
    ],
)
def test_what_slots_would_not_heed_is_refused_with_its_line(old: str, new: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "changed.yaml"
    assert old in SMALL
    path.write_text(SMALL.replace(old, new))
    loaded = load_experiment(str(path))
    with pytest.raises(InputError, match=message) as caught:
        slot_run(loaded, variants_of(loaded)[0], jobs_of(loaded, 1)[0])
    line = next(at for at, text in enumerate(path.read_text().splitlines(), start=1) if new in text)
    assert f"{path}:{line}" in caught.value.line()


@pytest.mark.parametrize("name", ["borrowed", "locality", "sepb", "slots", "whole", "yarn"])
def test_the_experiments_on_slots_that_the_project_brings_can_run(name: str) -> None:
    loaded = load_experiment(f"dynamicmr-{name}")
    variant = variants_of(loaded)[0]
    assert slot_run(loaded, variant, list(jobs_of(loaded, variant.seed)[0])).jobs


def stage(name: str, seconds: tuple[float, ...], after: tuple[str, ...] = (), slow_start: float = 1.0) -> Stage:
    return Stage(name, len(seconds), Resource(1024, 1), Duration("listed", values_s=seconds), after, slow_start)


def test_all_tasks_of_a_job_with_several_stages_of_a_kind_are_there() -> None:
    """As a trace with tasks of several sizes gives them (harness.traces.sls)."""
    maps = (stage("map", (1.0, 2.0)), stage("map2", (3.0,)))
    after = ("map", "map2")
    stages = (*maps, stage("reduce", (4.0,), after, 0.5), stage("reduce2", (5.0, 6.0), after, 0.5))
    one = slot_job(JobSpec("j", "root.a", "mapreduce", Resource(1, 1), stages), {"default": 10.0}, 1)
    assert (one.maps_ms, one.reduces_ms) == ((1000, 2000, 3000), (4000, 5000, 6000))
    assert (one.slow_start, one.shuffle_mb) == (0.5, 30.0)
    alone = slot_job(JobSpec("j", "root.a", "mapreduce", Resource(1, 1), (stage("reduce", (4.0,)),)), {}, 1)
    assert (alone.maps_ms, alone.reduces_ms) == ((), (4000,))


@pytest.mark.parametrize(
    "last",
    [
        (stage("reduce", (1.0,), ("map",)), stage("third", (1.0,), ("reduce",))),
        (stage("map2", (1.0,)), stage("reduce", (1.0,), ("map",))),
        (stage("reduce", (1.0,), ("map",)), stage("reduce2", (1.0,), ("map",), 0.5)),
    ],
)
def test_stages_that_are_more_than_maps_and_reduces_are_refused(last: tuple[Stage, ...]) -> None:
    job = JobSpec("j", "root.a", "mapreduce", Resource(1, 1), (stage("map", (1.0,)), *last))
    with pytest.raises(InputError, match="more than MRv1's maps"):
        slot_job(job, {}, 1)


def test_map_slots_is_a_part_of_the_sum(small: Path) -> None:
    loaded = load_experiment(str(small))
    jobs = list(jobs_of(loaded, 1)[0])
    of = variants_of(loaded, policies=("pi-dhsa",), settings={"map_slots": "5"})[0]
    assert {(node.map_slots, node.reduce_slots) for node in slot_run(loaded, of, jobs).cluster.nodes} == {(5, 1)}
    of = variants_of(loaded, policies=("pi-dhsa",), settings={"map_slots": "7"})[0]
    with pytest.raises(CallError, match="map_slots is 7 of 6"):
        slot_run(loaded, of, jobs)


def mapreduce(name: str, maps: int, map_s: float, reduces: int, reduce_s: float, at_s: float) -> JobSpec:
    size = Resource(1024, 1)
    stages = [Stage("map", maps, size, Duration(value_s=map_s))]
    stages += [Stage("reduce", reduces, size, Duration(value_s=reduce_s), ("map",), 0.05)] if reduces else []
    return JobSpec(name, "root.a", "mapreduce", size, tuple(stages), submit_s=at_s)


def queue_of(policy: Policy) -> DispatchingQueue:
    found = policy.dispatching_queue()
    assert found is not None
    return found


def test_mrorder_holds_and_orders() -> None:
    jobs = [mapreduce("J1", 10, 4, 2, 8, 0), mapreduce("J2", 4, 2, 4, 2, 1), mapreduce("J3", 2, 6, 4, 10, 2)]
    policy = make_policy("mrorder", {"interval_s": "5", "map_slots": "8", "reduce_slots": "4", "threshold": "0"})
    held, arrived = hold(queue_of(policy), jobs, [Resource(8192, 8)])
    assert [(job.id, job.submit_s) for job in held] == [("J2", 5.0), ("J3", 5.001), ("J1", 5.002)]
    assert arrived == {"J1": 0, "J2": 1, "J3": 2}
    found = as_mapreduce(jobs[0])
    assert (found.maps, found.map_s, found.reduces, found.reduce_s) == (10, Fraction(4), 2, Fraction(8))


def test_mrorder_orders_by_the_slots_that_there_are(small: Path, tmp_path: Path) -> None:
    """On 12 map and 6 reduce slots jobs are held back, handed on in MK_JR's order, and run first in, first out."""
    small.write_text(SMALL.replace("every_s: 10", "every_s: 1"))
    loaded = load_experiment(str(small))
    run_experiment(loaded, variants_of(loaded, policies=("mrorder",)), tmp_path / "runs")
    (file,) = (tmp_path / "runs").rglob("jobs.parquet")
    table = pd.read_parquet(file)
    # Completion counts from the arrival, one a second in each pool, not from when the round handed the job on.
    assert sorted(table["submitted_s"]) == [0.0, 0.0, 1.0, 1.0]
    assert (table["finished_s"] > table["submitted_s"]).all()


def test_mrorder_on_slots_estimates_with_the_cluster_s_own(small: Path) -> None:
    loaded = load_experiment(str(small))
    (variant,) = variants_of(loaded, policies=("mrorder",))
    assert slot_run(loaded, variant, jobs_of(loaded, 1)[0]).rules.fifo
    seen = []

    def ordering(jobs: Sequence[object], slots: object) -> list[int]:
        seen.append(slots)
        return list(range(len(jobs)))

    queue = queue_of(make_policy("mrorder"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(MROrder, "dispatching_queue", lambda _: replace(queue, ordering=ordering))
        held(loaded, variant, jobs_of(loaded, 1)[0])
    assert seen
    assert all((slots.maps, slots.reduces) == (12, 6) for slots in seen)  # type: ignore[attr-defined]


def test_what_mrorder_cannot_plan_is_refused_before_anything_runs(
    small: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    small.write_text(SMALL.replace("every_s: 10", "think_s: 10").replace("pi-dhsa, pd-dhsa, dynamicmr", "mrorder"))
    with pytest.raises(SystemExit) as stop:
        main(["run", str(small), "--out", str(tmp_path / "runs")])
    assert stop.value.code == 1
    assert "whose end mrorder would have to know beforehand" in capsys.readouterr().err
    assert not list((tmp_path / "runs").rglob("summary.json"))


def test_mrorder_refuses_what_it_cannot_plan() -> None:
    jobs = [mapreduce("J1", 1, 1, 0, 0, 0)]
    eager = queue_of(make_policy("mrorder", {"eager": "true"}))
    with pytest.raises(CallError, match="eager"):
        hold(eager, jobs, [Resource(8192, 8)])
    after = [*jobs, JobSpec("J2", "root.a", "mapreduce", Resource(1, 1), jobs[0].stages, after_job="J1")]
    plain = queue_of(make_policy("mrorder"))
    with pytest.raises(InputError, match="comes after J1"):
        hold(plain, after, [Resource(8192, 8)])
    assert hold(plain, [], []) == ([], {})
