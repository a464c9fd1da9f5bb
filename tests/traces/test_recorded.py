"""Recorded traces: what is written is read, what is none is refused with its line; a replay is the same simulation."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from harness.base.errors import InputError
from harness.cli import main
from harness.experiments.kind import Ended
from harness.experiments.resolve import Variant, allocation_file, jobs_of, load_experiment, variants_of
from harness.experiments.run import run_experiment
from harness.jobs.replay import durations_ms, stages_in_order
from harness.jobs.workloads import build_jobs, load_workload
from harness.jobs.workloads.base import Scale
from harness.model.jobs import JobSpec
from harness.predict.replay import against, left_out, migration, migration_lines, policy_uses, write_experiment
from harness.sim.capacity.tree import capacity_settings
from harness.traces.accounting import Shape
from harness.traces.recorded import (
    Header,
    NodeLine,
    QueueLine,
    StageLine,
    Trace,
    fewer_stages,
    job_line,
    read_trace,
    trace_text,
)

EXPERIMENT = """
experiment: recorded
cluster: {nodes: [{count: 3, memory_mb: 4096, vcores: 8}]}
max_am_share: -1.0
queues: {a: {weight: 2}, g: {children: {b: {}, c: {max_running_apps: 2}}}}
workloads:
  a: {inline: {kind: sequence, submission: {every_s: 15}, rounds: 3, slow_start: 1.0, am: &am {memory_mb: 1024},
      task: &task {demand: {memory_mb: 1024}, duration: {lognormal: {mean_s: 9, sigma: 0.7}}},
      jobs: [{name: j, maps: 14, reduces: 3}]}}
  b: {inline: {kind: sequence, submission: {think_s: 3}, rounds: 3, am: *am, task: *task, jobs: [{name: q, stages: [
      {name: s, tasks: 9}, {name: t, tasks: 4, after: [s]}]}]}}
  c: {inline: {kind: sequence, submission: {think_s: 5}, rounds: 2, am: *am, task: *task, jobs: [{name: k, executors:
      {count: 3, slots: 2, demand: {memory_mb: 1024}}, stages: [{name: w, tasks: 12}]}]}}
policies: [fair, ltrf@outside]
seed: 5
delays: {am_heartbeat_ms: 500, am_start_ms: 800, container_start_ms: 120}
"""


def times(job: JobSpec, seed: int) -> list[list[float]]:
    drawn = dict(zip((s.name for s in stages_in_order(job)), durations_ms(job, seed), strict=True))
    return [[ms / 1000 for [(ms, _)] in drawn[stage.name]] for stage in job.stages]


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    (tmp_path / "x.yaml").write_text(EXPERIMENT)
    loaded = load_experiment(str(tmp_path / "x.yaml"))
    header = Header(
        nodes=[NodeLine(count=3, memory_mb=4096, vcores=8)],
        queues={
            "root.a": QueueLine(weight=2.0),
            "root.g": QueueLine(),
            "root.g.b": QueueLine(),
            "root.g.c": QueueLine(max_running_apps=2),
        },
        max_am_share=-1.0,
        delays=loaded.spec.delays.model_dump(),  # type: ignore[arg-type]
    )
    lines = [job_line(job, times(job, 5)) for job in jobs_of(loaded, 5)[0]]
    path = tmp_path / "t.jsonl"
    path.write_text(trace_text(header, lines))
    return path


def test_a_replay_of_all_tasks_is_the_same_simulation(trace: Path, tmp_path: Path) -> None:
    original = load_experiment(str(tmp_path / "x.yaml"))
    replayed = load_experiment(str(write_experiment(read_trace(trace), tmp_path / "replay")))
    for loaded, out in ((original, tmp_path / "one"), (replayed, tmp_path / "two")):
        run_experiment(loaded, variants_of(loaded, policies=["fair", "ltrf@outside"], seeds=[5]), out, processes=1)
    for variant in ("fair", "ltrf@outside"):
        columns = ["job", "queue", "submitted_s", "started_s", "finished_s", "tasks", "memory_mb_s"]
        one, two = (pd.read_parquet(tmp_path / out / variant / "jobs.parquet")[columns] for out in ("one", "two"))
        assert len(one) == 8
        pd.testing.assert_frame_equal(one, two)
        difference = against(tmp_path / "two" / variant, tmp_path / "one" / variant)
        assert difference["allocation_difference"] == 0
        assert difference["completion_difference"] == 0
    apart = against(tmp_path / "one" / "fair", tmp_path / "one" / "ltrf@outside")
    assert apart["allocation_difference"] > 0.01
    assert 0 <= apart["contended"] <= 1


def test_replays_of_different_runs_lie_side_by_side(
    trace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    names = []
    for place in ("runs/one-local/fair/trace.jsonl", "runs/two-local/fair/trace.jsonl", "week.jsonl"):
        file = tmp_path / place
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(trace.read_bytes())
        given = place.removesuffix("/trace.jsonl")
        with pytest.raises(SystemExit) as stop:
            main(["replay", given, "--policy", "fair", "--jobs", "1", "--no-report", "--json"])
        assert not stop.value.code
        names.append(json.loads(capsys.readouterr().out)["out"])
    assert names == ["runs/replay-one-local-fair", "runs/replay-two-local-fair", "runs/replay-week"]
    assert all((tmp_path / name / "replay.yaml").is_file() for name in names)


def test_the_file_of_a_replay_has_every_policy_of_the_call(
    trace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`yarnfair run replay.yaml` plays the same policies, a class in a file beside the call too."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(
        "import yarnfair\n\n\nclass Mine(yarnfair.Policy):\n"
        "    def plan(self, snapshot, ledger):\n"
        "        return yarnfair.Plan(order=yarnfair.Order(measure='keys', flat=True))\n\n"
        "    def key(self, queue, counted, snapshot):\n        return counted\n"
    )
    policies = "fair,static,ltrf,ltrf@outside,mine.py:Mine"
    call = ["--jobs", "1", "--no-report", "--json"]
    with pytest.raises(SystemExit) as stop:
        main(["replay", str(trace), "--policy", policies, "--phases", "0", "--out", "out", *call])
    assert not stop.value.code
    assert len(load_experiment("out/replay.yaml").spec.policies) == 5
    monkeypatch.chdir(tmp_path.parent)
    with pytest.raises(SystemExit) as stop:
        main(["run", str(tmp_path / "out" / "replay.yaml"), "--out", str(tmp_path / "again"), *call])
    assert not stop.value.code
    ended, again = (
        sorted(path.parent.name for path in (tmp_path / name).glob("*/run.json")) for name in ("out", "again")
    )
    assert ended == again
    assert len(ended) == 5


def test_a_replay_without_a_policy_compares_what_is_with_what_could_be(
    trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["replay", str(trace), "--out", str(tmp_path / "out"), "--jobs", "1", "--no-report", "--json"])
    assert not stop.value.code
    runs = json.loads(capsys.readouterr().out)["runs"]
    assert [run["variant"] for run in runs] == ["fair", "ltrf@outside"]


def test_a_replays_page_says_for_how_much_of_the_work_the_shape_is_known(trace: Path, tmp_path: Path) -> None:
    first, *lines = trace.read_text().splitlines()
    half = [json.dumps(json.loads(line) | {"detail": "integrals"}) if n % 2 else line for n, line in enumerate(lines)]
    given, out = tmp_path / "half.jsonl", tmp_path / "out"
    given.write_text("\n".join([first, *half]) + "\n")
    with pytest.raises(SystemExit) as ended:
        main(["replay", str(given), "--policy", "fair", "--phases", "0", "--jobs", "1", "--out", str(out)])
    assert not ended.value.code
    said = Shape.of(read_trace(given).jobs).line()
    assert "are known only by sums" in said
    assert said.removeprefix("of ") in (out / "report.html").read_text()


def retrying(**more: Any) -> dict[str, Any]:
    return {"name": "x", "memory_mb": 1, "vcores": 1, **more}


def broken(path: Path, line: int, **changes: Any) -> None:
    lines = [json.loads(text) for text in path.read_text().splitlines()]
    lines[line - 1] |= changes
    path.write_text("".join(json.dumps(found) + "\n" for found in lines))


@pytest.mark.parametrize(
    ("line", "changes", "says"),
    [
        (1, {"version": 2}, "version 2"),
        (1, {"nodes": []}, "nodes"),
        (1, {"queues": {"a": {}}}, "not a queue's full path"),
        (1, {"queues": {"root": {}}}, "no queue below root"),
        (1, {"queues": {"root": {"weight": 2}, "root.g": {}}}, "'root' has no weight"),
        (1, {"queues": {"root.g.b": {}}}, "without 'root.g'"),
        (1, {"queues": {"root.g.b": {}, "root.g": {}}}, "without 'root.g' before it"),
        (1, {"surprise": 1}, "unknown key"),
        (2, {"queue": "root.g"}, "not a leaf"),
        (2, {"queue": "root.nowhere"}, "not a leaf"),
        (2, {"submit_s": -1}, "submit_s"),
        (2, {"submit_s": "soon"}, "submit_s"),
        (2, {"kind": "spark"}, "executors"),
        (2, {"stages": []}, "stages"),
        (2, {"detail": "containers"}, "detail"),
        (2, {"stages": [{"name": "x", "memory_mb": 0, "vcores": 0, "tasks_s": [1.0]}]}, "ask for nothing"),
        (2, {"stages": [{"name": "x", "memory_mb": 1, "vcores": 1, "tasks_s": [], "after": ["y"]}]}, "not an earlier"),
        (2, {"stages": [retrying(tasks_s=[1, 2], retry_of=[None])]}, "of 1 tasks what they repeat, and has 2"),
        (2, {"stages": [retrying(tasks_s=[1, 2], retry_of=[None, 1])]}, "not earlier"),
        (2, {"stages": [retrying(tasks_s=[1, 2], retry_of=[1, None])]}, "not earlier"),
        (2, {"stages": [retrying(tasks_s=[1, 2, 3], retry_of=[None, 0, 0])]}, "repeat the same one"),
        (2, {"stages": [retrying(tasks_s=[1, 2], retry_of=[None, -1])]}, "retry_of"),
        (3, {"after_job": "later"}, "no earlier line"),
        (4, {"job": "a-0001"}, "twice"),
    ],
)
def test_what_is_no_trace_is_refused_with_its_line(trace: Path, line: int, changes: dict[str, Any], says: str) -> None:
    read_trace(trace)
    broken(trace, line, **changes)
    with pytest.raises(InputError, match=rf"t\.jsonl:{line}: .*{says}"):
        read_trace(trace)


def test_what_was_repeated_and_killed_is_written_read_and_scaled(trace: Path, tmp_path: Path) -> None:
    read = read_trace(trace)
    given = retrying(tasks_s=[5, 1, 2, 3], starts_s=[0.5] * 4, retry_of=[None, None, 1, 0])
    line = read.jobs[0].model_copy(update={"stages": [StageLine(**given)], "kind": "dag", "lifetime_s": 9.0})
    trace.write_text(trace_text(read.header, [line]))
    (again,) = read_trace(trace).jobs
    spec = again.spec()
    (stage,) = spec.stages
    # One chain after the other: 5 then 3 seconds, 1 then 2.
    assert (stage.tasks, stage.duration.values_s, stage.duration.attempts) == (2, (5.5, 3.5, 1.5, 2.5), (2, 2))
    assert spec.lifetime_s == 9.0
    again = job_line(spec, [stage.duration.values_s])
    assert again.stages[0].retry_of == [None, 0, None, 2]
    assert again.spec().stages == (stage,)
    assert again.lifetime_s == 9.0
    (tmp_path / "w.yaml").write_text(f"kind: recorded\ntrace: t.jsonl\nonly: {line.queue.removeprefix('root.')}\n")
    workload = load_workload(tmp_path / "w.yaml")
    (twice,) = build_jobs(workload, queue="root.b", seed=1, scale=Scale(durations=2.0))
    assert (twice.stages[0].duration.values_s, twice.stages[0].duration.attempts) == ((11.0, 7.0, 3.0, 5.0), (2, 2))


def test_waits_are_written_read_and_no_work(trace: Path) -> None:
    read = read_trace(trace)
    size = {"memory_mb": 1024, "vcores": 1}
    maps = StageLine(name="map", tasks_s=[10.0, 20.0], **size)
    reduces = StageLine(name="reduce", tasks_s=[25.0, 9.0], waits_s=[12.0, 0.0], tail=0.75, after=["map"], **size)
    line = read.jobs[0].model_copy(update={"stages": [maps, reduces], "kind": "mapreduce"})
    trace.write_text(trace_text(read.header, [line]))
    (again,) = read_trace(trace).jobs
    assert again.stages == [maps, reduces]
    (_, stage) = again.spec().stages
    assert (stage.duration.values_s, stage.tail) == ((13.0, 9.0), 0.75)
    assert job_line(again.spec(), [(10.0, 20.0), (13.0, 9.0)]).stages[1].tail == 0.75


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"waits_s": [1.0]}, "1 waits for 2 tasks"),
        ({"waits_s": [0.0, 3.0]}, "waits for longer than all of its seconds"),
        ({"waits_s": [0.0, 1.0], "after": []}, "comes after no other"),
        ({"tail": 1.5}, "tail"),
    ],
)
def test_waits_that_cannot_be_are_refused(trace: Path, more: dict[str, Any], says: str) -> None:
    size = {"memory_mb": 1024, "vcores": 1}
    reduces = {"name": "reduce", "tasks_s": [2.0, 2.0], "after": ["map"], **size, **more}
    broken(trace, 2, kind="mapreduce", stages=[{"name": "map", "tasks_s": [1.0], **size}, reduces])
    with pytest.raises(InputError, match=says):
        read_trace(trace)


@pytest.mark.parametrize("text", ["", "\n", "{", "[1]\n", '{"trace": "yarnfair"}\n', '{"x": NaN}\n', "\x00\xff\n"])
def test_files_that_are_nothing(tmp_path: Path, text: str) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text(text, encoding="latin-1")
    with pytest.raises(InputError, match=r"t\.jsonl"):
        read_trace(path)
    with pytest.raises(InputError, match="cannot be read"):
        read_trace(tmp_path / "none")


def test_what_a_jobs_own_parts_took_is_kept(trace: Path) -> None:
    read = read_trace(trace)
    spark = next(job for job in read.jobs if job.kind == "spark").spec()
    assert (spark.am_start_s, spark.executor_start_s, spark.am_end_s) == (None, None, 0.0)
    own = replace(spark, am_start_s=2.5, executor_start_s=1.25, am_end_s=0.5, executors_least=2, executors_wait_s=30.0)
    trace.write_text(trace_text(read.header, [job_line(own, times(spark, 5))]))
    (again,) = read_trace(trace).jobs
    assert again.spec() == replace(own, stages=again.spec().stages)


def test_a_recorded_workload_is_scaled_but_for_its_numbers_of_tasks(trace: Path, tmp_path: Path) -> None:
    (tmp_path / "w.yaml").write_text("kind: recorded\ntrace: t.jsonl\nonly: g.b\n")
    workload = load_workload(tmp_path / "w.yaml")
    before = list(build_jobs(workload, queue="root.b", seed=1))
    after = list(build_jobs(workload, queue="root.b", seed=1, scale=Scale(durations=2.0, gaps=3.0)))
    assert [job.think_s for job in before] == [0, 3, 3]
    for one, two in zip(before, after, strict=True):
        assert (two.id, two.after_job) == (one.id, one.after_job)
        assert (two.submit_s, two.think_s) == (pytest.approx(3 * one.submit_s), 3 * one.think_s)
        for short, long in zip(one.stages, two.stages, strict=True):
            assert long.duration.values_s == tuple(2 * value for value in short.duration.values_s)
            assert (long.tasks, long.after) == (short.tasks, short.after)
    with pytest.raises(InputError, match="lists its tasks one by one"):
        build_jobs(workload, queue="root.b", seed=1, scale=Scale(tasks=2.0))


def test_more_stages_than_the_simulator_takes_become_fewer_that_take_as_long() -> None:
    stages = [
        StageLine(name=f"s{n}", memory_mb=1, vcores=1, tasks_s=[4.0, 1.0, 2.0], after=[f"s{n - 1}"] if n else [])
        for n in range(5)
    ]
    assert fewer_stages(stages, 2, 5) == stages
    found = fewer_stages(stages, 2, 3)
    assert [(stage.name, stage.tasks_s, stage.after) for stage in found] == [
        ("s0 to s1", [8.0], []),
        ("s2 to s3", [8.0], ["s0 to s1"]),
        ("s4", [4.0], ["s2 to s3"]),
    ]
    assert fewer_stages(stages, 1, 1)[0].tasks_s == [35.0]
    # Where the executors follow the tasks there are as many as before, and they take as long.
    stages[1] = stages[1].model_copy(update={"caches": True})
    wide = fewer_stages(stages, 2, 3, wide=True)
    assert [stage.tasks_s for stage in wide] == [[4.0] * 3, [4.0] * 3, [4.0]]
    assert [stage.caches for stage in wide] == [True, None, None]
    # What is no chain stays as it is.
    beside = [*stages[:-1], stages[-1].model_copy(update={"after": ["s0"]})]
    assert fewer_stages(beside, 2, 3) == beside


def test_a_trace_on_both_schedulers_is_one_experiment(trace: Path, tmp_path: Path) -> None:
    path = write_experiment(read_trace(trace), tmp_path / "both", schedulers=["fair", "capacity"])
    loaded = load_experiment(str(path))
    assert [(variant.name, variant.scheduler) for variant in variants_of(loaded)] == [
        ("fair", "fair"),
        ("ltrf@outside", "fair"),
        ("capacity,scheduler=capacity", "capacity"),
        ("ltrf@outside,scheduler=capacity", "capacity"),
    ]
    assert not loaded.spec.capacity, "what the trace says of limits is converted"
    assert capacity_settings(allocation_file(loaded.spec), ())["root.g.c.max-parallel-apps"] == "2"
    assert policy_uses(["capacity"], ["ltrf"]) == [{"policy": "ltrf", "mode": "outside", "scheduler": "capacity"}]
    assert left_out(read_trace(trace).header, ["capacity"]) == []


def test_limits_that_were_recorded_are_simulated(trace: Path, tmp_path: Path) -> None:
    found = read_trace(trace)
    limits = {"root.a.user-limit-factor": "1", "root.a.maximum-applications": "5"}
    header = found.header.model_copy(update={"scheduler": "capacity", "capacity": limits})
    path = write_experiment(Trace(found.path, header, found.jobs), tmp_path / "own", schedulers=["capacity"])
    loaded = load_experiment(str(path))
    assert (loaded.spec.scheduler, loaded.spec.capacity) == ("capacity", limits)
    assert left_out(header, ["fair"]) == ["2 limits of the Capacity Scheduler have no counterpart on fair"]
    # Whichever scheduler it is that does not read them, and no other.
    assert left_out(header, ["fifo", "capacity"]) == ["2 limits of the Capacity Scheduler have no counterpart on fifo"]


def test_who_gains_and_who_loses_by_a_migration() -> None:
    def run(scheduler: str, seed: int, a: float, b: float) -> Ended:
        variant = Variant(scheduler, scheduler, "inside", {}, seed, 5.0, scheduler=scheduler)
        queues = {"root.a": {"mean_completion_s": a}, "root.b": {"mean_completion_s": b}}
        return Ended(variant, Path(), {"queues": queues}, 0)

    ended = [run("fair", seed, 100.0, 100.0) for seed in (1, 2, 3)]
    ended += [run("capacity", seed, 80.0 + seed, 100.0 + 30 * (seed - 2)) for seed in (1, 2, 3)]
    rows = {row["queue"]: row for row in migration(ended)}
    assert (rows["root.a"]["verdict"], rows["root.b"]["verdict"]) == ("gains", "unsure")
    assert rows["root.a"]["change"] == pytest.approx(-0.18)
    # Student's t of three: 4.303 s / sqrt(3).
    assert rows["root.a"]["half_width"] == pytest.approx(4.3027 * 0.01 / 3**0.5, rel=1e-3)
    alone = migration([ended[0], ended[3]])
    assert {row["verdict"] for row in alone} == {"unsure"}
    assert "one seed tells no interval" in migration_lines(alone)[-1]
    assert migration(ended[:3]) == []


def test_a_trace_may_list_the_root() -> None:
    nodes = [{"count": 1, "memory_mb": 1024, "vcores": 1}]
    header = Header.model_validate({"nodes": nodes, "queues": {"root": {}, "root.a": {}}})
    assert list(header.queues) == ["root.a"]
