"""Real backends without a cluster: which policies run where, what the cluster is to be, curves, records of others."""

from __future__ import annotations

import contextlib
import time
from dataclasses import replace
from pathlib import Path
from threading import Event
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from harness.base.documents import read_yaml
from harness.base.errors import CallError, InputError
from harness.base.files import read_json
from harness.cli import main
from harness.experiments.kind import Target, kind_of
from harness.experiments.real.cluster import cluster_spec, open_cluster
from harness.experiments.real.curves import JobRun, QueueCurves, latencies, result_of, tasks_table
from harness.experiments.real.run import RealRun
from harness.experiments.real.schedulers import file_text
from harness.experiments.real.start import control_settings, real_policies, real_variants
from harness.experiments.real.trace import delays_of, run_jobs
from harness.experiments.resolve import allocation_file, load_experiment, variants_of
from harness.jobs.replay import JobRecord, TaskRecord
from harness.model.data import data_path
from harness.model.jobs import Duration, JobSpec, Stage
from harness.model.queues import QueueSettings
from harness.model.resources import ZERO, Resource
from harness.results.store import RunDirectory
from harness.results.summary import jobs_table, summarise
from harness.traces.recorded import NodeLine
from harness.traces.recording import _by_integrals
from harness.yarn.answers import AppStatus
from harness.yarn.errors import Unreachable
from harness.yarn.fair.manager import queue_tree
from harness.yarn.fair.parse import parse_allocations
from harness.yarn.queue_answers import QueueStatus, SchedulerStatus

EXPERIMENT = """
experiment: x
cluster: {nodes: [{count: 2, memory_mb: 8192, vcores: 16}]}
conf: {yarn.scheduler.fair.assignmultiple: true}
max_am_share: -1.0
queues: {a: {weight: 0.1}, b: {weight: 3, max_running_apps: 2}}
workloads:
  a: {inline: {kind: sequence, submission: {every_s: 5}, am: {memory_mb: 1024}, task: {demand: {memory_mb: 1024},
      duration: {constant_s: 9}}, jobs: [{name: j, maps: 12}]}}
policies: [fair, static, drf, ltrf, ltrf@outside, {policy: hltrf, vary: {t_wait: [5, 10]}}]
delays: {node_heartbeat_ms: 200, am_heartbeat_ms: 500}
"""


def load(folder: Path, old: str = "", new: str = "") -> object:
    (folder / "x.yaml").write_text(EXPERIMENT.replace(old, new) if old else EXPERIMENT)
    return load_experiment(str(folder / "x.yaml"))


def test_what_the_stock_scheduler_has_stays_inside_the_rest_acts_from_outside(tmp_path: Path) -> None:
    loaded = load_experiment(str(load(tmp_path) and tmp_path / "x.yaml"))
    found = {v.name: v.mode for v in real_variants(variants_of(loaded))}
    assert found == {
        "fair": "inside",
        "static": "inside",
        "drf": "inside",
        "ltrf@outside": "outside",
        "hltrf@outside,t_wait=5": "outside",
        "hltrf@outside,t_wait=10": "outside",
    }


def test_a_bare_name_is_the_files_entry_from_outside_with_its_settings(tmp_path: Path) -> None:
    policies = "[fair, fair@outside, ltrf, {policy: ltrf, mode: outside, settings: {horizon_s: 80}}, drf, "
    policies += "{policy: hltrf, mode: outside, vary: {t_wait: [5]}, period_s: 2}, {policy: naive-hltrf, in_rm: true}, "
    policies += "{policy: naive-hltrf, mode: outside}, {policy: fifo, mode: outside, settings: {nonsense: 1}}]"
    load(tmp_path, "[fair, static, drf, ltrf, ltrf@outside, {policy: hltrf, vary: {t_wait: [5, 10]}}]", policies)
    loaded = load_experiment(str(tmp_path / "x.yaml"))
    called = real_policies(loaded, ["fair", "ltrf", "hltrf", "naive-hltrf", "drf", "ltrf@inside", "decay-slurm"])
    assert called == ["fair", "ltrf@outside", "hltrf@outside", "naive-hltrf", "drf", "ltrf@inside", "decay-slurm"]
    ltrf, hltrf = real_variants(variants_of(loaded, policies=called[1:3]))
    assert (ltrf.name, ltrf.settings) == ("ltrf@outside", {"horizon_s": 80})
    assert (hltrf.name, hltrf.settings, hltrf.period_s) == ("hltrf@outside,t_wait=5", {"t_wait": 5}, 2)
    # Both of the file's: the entry from outside is not given the other one's settings.
    both = real_variants(variants_of(loaded, policies=["ltrf", "ltrf@outside"]))
    assert [(one.name, one.settings) for one in both] == [("ltrf@outside", {"horizon_s": 80})]
    with pytest.raises(InputError, match="nonsense"):
        variants_of(loaded, policies=real_policies(loaded, ["fifo"]))


def test_the_root_is_named_as_in_the_clusters_own_file(tmp_path: Path) -> None:
    asked = allocation_file(load_experiment(str(load(tmp_path) and tmp_path / "x.yaml")).spec)
    named, unnamed = (
        parse_allocations(file_text(asked, root_named=root_named), source="x") for root_named in (True, False)
    )
    assert (named.configured_parents, unnamed.configured_parents) == (("root",), ())
    assert replace(named, configured_parents=()) == unnamed
    root = QueueSettings("root", scheduling_policy="drf")
    with pytest.raises(InputError, match="no element for it"):
        file_text(replace(asked, settings={**asked.settings, "root": root}), root_named=False)


_ON_CONTAINERS = sorted(
    path.stem for path in data_path("experiments").rglob("*.yaml") if kind_of(read_yaml(path)).name in ("yarn", "slots")
)


@pytest.mark.parametrize("name", _ON_CONTAINERS)
def test_the_allocation_file_of_every_experiment_can_be_written(name: str) -> None:
    asked = allocation_file(load_experiment(name).spec)
    found = parse_allocations(file_text(asked), source=name)
    assert found.configured_parents == asked.configured_parents
    assert found.configured_leaves == asked.configured_leaves


def test_parents_stand_after_all_below_them_as_hadoop_notes_them(tmp_path: Path) -> None:
    load(tmp_path, "queues: {a: {weight: 0.1}, b", "queues: {g: {children: {h: {children: {c: {}}}, d: {}}}, a: {}, b")
    asked = allocation_file(load_experiment(str(tmp_path / "x.yaml")).spec)
    assert asked.configured_parents == ("root.g.h", "root.g", "root")
    assert parse_allocations(file_text(asked), source="x").configured_parents == asked.configured_parents


def test_the_cluster_is_what_the_file_says(tmp_path: Path) -> None:
    loaded = load_experiment(str(load(tmp_path) and tmp_path / "x.yaml"))
    allocations = tmp_path / "allocations.xml"
    allocations.write_text(file_text(allocation_file(loaded.spec)))
    tree = queue_tree(parse_allocations(allocations.read_text(), source="x"))
    # As float32, which is what the RM keeps.
    assert {q.path: q.weight for q in tree if q.leaf} == {
        "root.a": float(np.float32(0.1)), "root.b": 3.0,
    }  # fmt: skip
    spec = cluster_spec(loaded, allocations)
    assert (spec.nodes, spec.memory_mb, spec.vcores, spec.minimum_allocation_mb) == (2, 8192, 16, 1024)
    assert spec.properties["yarn.scheduler.fair.assignmultiple"] == "true"
    assert spec.properties["yarn.resourcemanager.nodemanagers.heartbeat-interval-ms"] == "200"
    for old, new, says in (
        ("vcores: 16}", "vcores: 16}, {memory_mb: 4096, vcores: 4}", "several sizes"),
        ("vcores: 16}", "vcores: 16, speed: 2.0}", "speed"),
    ):
        with pytest.raises(InputError, match=says):
            cluster_spec(load(tmp_path, old, new), allocations)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--rm", "http://127.0.0.1:1"], "--backend local"),
        (["--backend", "local", "--rm", "http://127.0.0.1:1"], "--shared"),
        (["--backend", "local", "--rm", "http://127.0.0.1:1", "--allocations", "/x"], "--shared"),
        (["--backend", "local", "--rm", "http://127.0.0.1:1", "--shared", "/x", "--policy", "drf"], "--allocations"),
        (["--backend", "local", "--rm", "http://127.0.0.1:1", "--shared", "/x", "--policy", "ltrf"], "--allocations"),
        (["--backend", "local", "--shared", "/x"], "--rm"),
        (["--backend", "nowhere"], "no backend"),
    ],
)
def test_wrong_calls(tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], says: str) -> None:
    load(tmp_path)
    with pytest.raises(SystemExit) as caught:
        main(["run", str(tmp_path / "x.yaml"), *arguments, "--out", str(tmp_path / "out"), "--policy", "fair"])
    assert caught.value.code == 2
    assert says in capsys.readouterr().err


def test_an_rm_that_is_not_there_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    load(tmp_path)
    (tmp_path / "f.xml").write_text("<allocations/>")
    given = ["--rm", "http://127.0.0.1:1", "--allocations", str(tmp_path / "f.xml"), "--shared", str(tmp_path / "s")]
    for call in (
        ["run", str(tmp_path / "x.yaml"), "--backend", "local", "--out", str(tmp_path / "out"), *given],
        ["record", "--rm", "http://127.0.0.1:1"],
    ):
        with pytest.raises(SystemExit) as caught:
            main(call)
        told = capsys.readouterr().err
        assert caught.value.code == 1
        assert "127.0.0.1:1" in told.splitlines()[-1]
        assert "Traceback" not in told
    assert (tmp_path / "f.xml").read_text() == "<allocations/>"


def test_an_option_of_a_given_cluster_needs_one(tmp_path: Path) -> None:
    loaded = load_experiment(str(load(tmp_path) and tmp_path / "x.yaml"))
    with pytest.raises(CallError, match="--rm"), open_cluster(loaded, "local", Target(shared="/x")):
        pass


# --- curves and results ---


def queue(path: str, used: int, demand: int, pending: int, containers: int) -> QueueStatus:
    r = Resource
    return QueueStatus(
        path, "root" if path != "root" else None, path != "root", "fair", ZERO, r(4096, 4), r(used, 1), ZERO,
        r(demand, 1), ZERO, r(2048, 0), ZERO, containers, pending, 100, 0, 1, True,
    )  # fmt: skip


def status(a: tuple[int, int, int, int]) -> SchedulerStatus:
    queues = {"root": queue("root", *a), "root.a": queue("root.a", *a), "root.b": queue("root.b", 0, 0, 0, 0)}
    return SchedulerStatus("fairScheduler", Resource(4096, 4), queues)


def test_curves_by_steps(tmp_path: Path) -> None:
    text = '<allocations><queue name="a"/><queue name="b"><weight>3</weight></queue></allocations>'
    curves = QueueCurves(queue_tree(parse_allocations(text, source="x")), {"root.a": 1.0, "root.b": 3.0}, "memory")
    for time_s, what in (
        (0.0, (0, 0, 0, 0)),
        (1.0, (1024, 4096, 3, 1)),
        (3.0, (1024, 4096, 3, 1)),
        (4.0, (0, 0, 0, 0)),
    ):
        curves.look(time_s, status(what), {"root.a": 2.0})
    curves.look(4.0, status((9, 9, 9, 9)), {})  # the same moment again is no look
    found = curves.samples()
    at = found.queues.index("root.a")
    assert found.time_s.tolist() == [0.0, 1.0, 3.0, 4.0]
    assert found.accumulated[:, at].tolist() == [0.0, 0.0, 2048.0, 3072.0]
    # Its share is a quarter of 4096: it demands more.
    assert found.due[:, at].tolist() == pytest.approx([0.0, 0.0, 2048.0, 3072.0])
    assert found.due[:, found.queues.index("root")].tolist() == [0.0] * 4
    assert found.running[1, at] == 0
    assert found.weight[0, at] == 2.0
    assert curves.longest_waits({})["root.a"] == (2.0, 3.0)
    assert curves.longest_waits({})["root.b"] == (0.0, 0.0)


def test_a_container_that_comes_as_another_ends_ends_the_wait() -> None:
    """The count stays 4 from 1 to 9 s; the records have a grant at 4 s, and the master's at 6 s."""
    text = '<allocations><queue name="a"/><queue name="b"/></allocations>'
    curves = QueueCurves(queue_tree(parse_allocations(text, source="x")), {}, "memory")
    for time_s, pending, count in ((0, 0, 4), (1, 3, 4), (5, 3, 4), (9, 3, 4), (10, 3, 5), (12, 3, 5), (13, 0, 5)):
        curves.look(float(time_s), status((1024, 4096, pending, count)), {})
    curves.look(14.0, status((1024, 4096, 1, 5)), {})
    assert curves.longest_waits({})["root.a"] == (8.0, 9.0)
    assert curves.longest_waits({"root.a": [6.0, 0.5, 4.0, 9.5, 30.0]})["root.a"] == (3.0, 4.0)
    assert curves.longest_waits({"root.b": [4.0]})["root.a"] == (8.0, 9.0)
    job = job_run()
    job.started_s, job.status = 6.0, None
    (one, _) = record_of(3600, 3700).tasks
    # The second is a further task of the same container, which is no grant.
    job.record = JobRecord(tasks=(replace(one, granted_ms=5000), replace(one, granted_ms=8500)))
    found = result_of([job], curves, zero_ms=1000, end_s=14.0, finished=False, wall_s=14.0, decisions=[])
    assert (found.max_wait_s["root.a"], found.max_wait_at_s["root.a"]) == (3.0, 4.0)
    assert found.max_wait_s["root.b"] == 0.0


def record_of(*ends: int) -> JobRecord:
    tasks = tuple(
        TaskRecord(0, number, 0, f"c{number}", "n:1", 1000, 1200, 1400, 1450, 1600, end, end + 400, "finished")
        for number, end in enumerate(ends)
    )
    return JobRecord("m", 1000, 1300, 9000, "finished", "", tasks)


def job_run() -> JobRun:
    stage = Stage("map", 2, Resource(1024, 1), Duration("constant", value_s=2.0))
    job = JobRun(JobSpec("a-1", "root.a", "mapreduce", Resource(1024, 1), (stage,)), 0.0)
    job.status = AppStatus(
        "application_1_0001", "u", "a-1", "root.a", "FINISHED", "SUCCEEDED", "REPLAY", frozenset(), 100.0, 1000, 1100,
        9000, ZERO, ZERO, 0, 16384, 16, 0, "",
    )  # fmt: skip
    job.record, job.ended = record_of(3600, 3700), True
    job.submitted_s, job.started_s, job.finished_s = 0.0, 0.1, 8.0
    return job


def test_a_master_that_the_rm_never_takes_is_lost() -> None:
    """A container is there, for ten seconds, and no master: not one that waits for room, nor one that starts slowly."""
    job = job_run()
    assert job.status is not None
    accepted = replace(job.status, state="ACCEPTED", launched_ms=0)
    held = replace(accepted, running_containers=1)
    assert not any(job.lost.seen(accepted, now_s) for now_s in (0.0, 100.0)), "no room for it"
    assert not any(job.lost.seen(replace(held, master_at="n:1"), now_s) for now_s in (101.0, 200.0)), "starts slowly"
    assert not job.lost.seen(held, 201.0)
    assert not job.lost.seen(held, 210.0)
    assert job.lost.seen(held, 212.0)
    again = replace(held, id="application_1_0002")
    assert not job.lost.seen(again, 213.0), "submitted again"
    assert job.lost.seen(again, 224.0)


def test_a_result_like_the_simulators(tmp_path: Path) -> None:
    text = '<allocations><queue name="a"/><queue name="b"/></allocations>'
    curves = QueueCurves(queue_tree(parse_allocations(text, source="x")), {}, "memory")
    curves.look(0.0, status((1024, 1024, 0, 1)), {})
    curves.look(8.0, status((0, 0, 0, 0)), {})
    waiting = JobRun(job_run().spec, None)
    result = result_of([job_run(), waiting], curves, zero_ms=1000, end_s=8.1, finished=True, wall_s=8.2, decisions=[])
    table = jobs_table(result, {"a-1": 4.0})
    assert len(table) == 1
    assert table.iloc[0]["mean_task_s"] == pytest.approx(2.05)
    assert table.iloc[0]["slowdown"] == 2.0
    summary = summarise(result, table, ["root.a", "root.b"])
    assert summary["makespan_s"] == 8.0
    assert summary["queues"]["root.a"]["resource_seconds"] == 8192
    tasks = tasks_table([job_run()], 1000)
    assert tasks["granted_s"].tolist() == [0.2, 0.2]
    assert tasks["ended_s"].tolist() == [2.6, 2.7]


@pytest.mark.parametrize("interrupted", [False, True])
def test_a_run_that_is_cut_ends_when_it_is_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, interrupted: bool
) -> None:
    """Killing what runs takes ten seconds, which are not the run's."""
    load(tmp_path, "policies:", "limits: {duration_s: 300}\npolicies:")
    loaded = load_experiment(str(tmp_path / "x.yaml"))
    now = [300.25]

    class Run(RealRun):
        def __init__(self) -> None:
            self.experiment, self.variant = loaded, variants_of(loaded)[0]
            self.directory = RunDirectory(tmp_path / "out", {"cluster": {"id": 1}, "experiment": loaded.resolved})
            self.cluster = SimpleNamespace(backend="local")  # type: ignore[assignment]
            self.client = SimpleNamespace(rest=None)  # type: ignore[assignment]
            self.jobs, self.holding, self.load, self.controller, self.decisions = [], None, None, None, []
            self.nodes, self.given = [NodeLine(memory_mb=8192, vcores=16)], None
            tree = queue_tree(allocation_file(loaded.spec))
            self.curves = QueueCurves(tree, loaded.weights, "memory")
            self.curves.look(0.0, status((1024, 4096, 3, 1)), {})
            self.stop, self.began, self.zero_ms, self.ended_s, self.alone_s = Event(), 0.0, 1000, None, {}

        def _begin(self) -> None:
            pass

        def _loop(self, end_s: float, on_step: object) -> bool:
            if interrupted:
                raise KeyboardInterrupt
            return False

        def _kill(self) -> None:
            now[0] += 10.0

        def now_s(self) -> float:
            return now[0]

    run = Run()
    with pytest.raises(KeyboardInterrupt) if interrupted else contextlib.nullcontext():
        run.run(None)
    assert read_json(tmp_path / "out" / "summary.json")["makespan_s"] == 300.25
    assert read_json(tmp_path / "out" / "run.json")["progress"]["time_s"] == 300.25


class Load:
    """Programs of which submitting raises something."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def __contains__(self, job_id: str) -> bool:
        return job_id.startswith("p-")

    def continues(self, job_id: str) -> bool:
        return job_id.endswith(".2")

    def of(self, job_id: str) -> Load:
        return self

    def submit(self, job_id: str) -> str:
        raise self.error

    def taken(self, job_id: str) -> None:
        return None


def run_of(folder: Path, error: Exception) -> RealRun:
    """A run of a program of two steps and a replayed job, at 0 s."""
    load(folder)
    loaded = load_experiment(str(folder / "x.yaml"))
    began = time.time()
    spec = job_run().spec

    class Run(RealRun):
        def __init__(self) -> None:
            self.experiment, self.holding, self.controller, self.decisions = loaded, None, None, []
            self.directory = RunDirectory(folder / "out", {"experiment": loaded.resolved})
            self.cluster = SimpleNamespace(shared=SimpleNamespace(troubles=list))  # type: ignore[assignment]
            program, rest = replace(spec, id="p-1", after_job=None), replace(spec, id="p-1.2", after_job="p-1")
            self.jobs = [JobRun(program, 0.0), JobRun(rest), JobRun(replace(spec, id="a-1", after_job=None), 0.0)]
            self.followers, self.done = {"p-1": [self.jobs[1]]}, []
            self.load, self.zero_ms = Load(error), 0  # type: ignore[assignment]
            self.replayer = SimpleNamespace(submit=lambda spec: "application_1_0001", live=list)  # type: ignore[assignment]
            ended = job_run().status
            self.client = SimpleNamespace(rest=SimpleNamespace(app=lambda _: ended))  # type: ignore[assignment]

        def now_s(self) -> float:
            return time.time() - began

        def _look(self) -> None:
            pass

        def _write(self, *, finished: bool) -> Any:
            pass

        def _record_of(self, job: JobRun) -> JobRecord:
            return JobRecord()

    return Run()


def test_a_program_that_cannot_be_submitted_is_a_failed_job_and_the_run_goes_on(tmp_path: Path) -> None:
    run = run_of(tmp_path, InputError("the step before left nothing", where="/out"))
    assert run._loop(5.0, None)
    program, rest, replayed = run.jobs
    assert (program.failed, program.tries, program.record.why) == (True, 1, "/out: the step before left nothing")
    assert (rest.failed, rest.tries, rest.finished_s) == (True, 0, program.finished_s)
    assert (replayed.ended, replayed.failed) == (True, False)
    assert run.decisions == []


def test_a_silent_resourcemanager_is_asked_again(tmp_path: Path) -> None:
    run = run_of(tmp_path, Unreachable("nothing answers"))
    assert not run._loop(0.8, None)
    assert not run.jobs[0].ended
    assert run.decisions[0]["alarm"] == "rm"


def test_what_the_parts_took_becomes_the_simulators_delays(tmp_path: Path) -> None:
    loaded = load_experiment(str(load(tmp_path) and tmp_path / "x.yaml"))
    measured = latencies([job_run()])
    assert measured["am_start_ms"]["mean"] == 200
    assert measured["container_start_ms"]["mean"] == 200
    delays = delays_of(loaded, measured)
    # Ends are heard of after 400 ms, of which half of a master's heartbeat (500 ms) explains 250.
    assert (delays.am_start_ms, delays.end_heartbeat_ms, delays.container_start_ms) == (200, 150, None)
    assert (delays.node_heartbeat_ms, delays.am_heartbeat_ms, delays.am_response_heartbeats) == (200, 500, 1)
    (line,) = run_jobs([job_run()], 1)
    assert line.stages[0].tasks_s == [2.0, 2.1]
    assert line.stages[0].starts_s == [0.2, 0.2]
    assert line.spec().stages[0].duration.values_s == pytest.approx((2.2, 2.3))
    # A master that acts on an answer a heartbeat later: the simulator's does, too, so it is counted once.
    (lagging,) = run_jobs([job_run()], 1, 0.15)
    assert lagging.stages[0].starts_s == pytest.approx([0.05, 0.05])
    assert (line.started_s, line.finished_s) == (0.1, 8.0)


def test_attempts_that_were_to_fail_keep_their_own_times_in_a_runs_trace() -> None:
    """A killed one is made again and has none; a failure of the run's own faults is no recorded attempt."""
    run = job_run()
    listed = Duration("listed", values_s=(9.0, 8.0, 7.0), attempts=(1, 2))
    run.spec = replace(run.spec, stages=(replace(run.spec.stages[0], duration=listed),))
    first = run.record.tasks[0]

    def task(number: int, started_ms: int, ended_ms: int, outcome: str) -> TaskRecord:
        return replace(first, task=number, started_ms=started_ms, ended_ms=ended_ms, outcome=outcome)

    tasks = (
        task(0, 1600, 2000, "failed"),
        task(0, 2500, 11_600, "finished"),
        task(1, 1600, 3000, "killed"),
        task(1, 4000, 12_200, "failed"),
        task(1, 13_000, 20_300, "finished"),
    )
    run.record = replace(run.record, tasks=tasks)
    (line,) = run_jobs([run], 1)
    assert (line.stages[0].tasks_s, line.stages[0].retry_of) == ([9.1, 8.2, 7.3], [None, None, 1])
    assert line.spec().stages[0].duration.attempts == (1, 2)


def test_grants_show_the_time_between_a_nodes_heartbeats() -> None:
    """What follows an end or a pause is no regular heartbeat; fewer than ten gaps tell nothing."""
    job = job_run()
    first = job.record.tasks[0]

    def granted(at_ms: int, ended_ms: int) -> TaskRecord:
        return replace(first, node="n:1", granted_ms=at_ms, ended_ms=ended_ms)

    regular = [granted(204 * k, 9000) for k in range(11)]
    after_an_end = [granted(5000, 9000), granted(5160, 5150)]
    tasks = [*regular, granted(3000, 9000), *after_an_end]
    measured = latencies([replace(job, record=replace(job.record, tasks=tasks))], node_ms=200)
    assert measured["between_heartbeats_ms"]["mean"] == 204
    few = latencies([replace(job, record=replace(job.record, tasks=tasks[:5]))], node_ms=200)
    assert "between_heartbeats_ms" not in few


def test_an_application_of_which_only_integrals_are_known() -> None:
    app = job_run().status
    assert app is not None
    cut = _by_integrals(app)
    (stage,) = cut["stages"]
    lived_s = (9000 - 1100) / 1000
    assert cut["am"].memory_mb == 1024
    assert sum(stage.tasks_s) + lived_s == pytest.approx(16, abs=0.01)
    assert len(stage.tasks_s) == 1


@pytest.mark.parametrize(("max_ratio", "found"), [(None, "full"), (2.5, "bounded")])
def test_a_real_controller_obeys_the_bound_of_the_experiment(max_ratio: float | None, found: str) -> None:
    experiment = load_experiment("outside-real")
    actuation = experiment.spec.actuation.model_copy(update={"max_ratio": max_ratio})
    experiment = replace(experiment, spec=experiment.spec.model_copy(update={"actuation": actuation}))
    variant = next(one for one in variants_of(experiment) if one.mode == "outside")
    settings = control_settings(experiment, variant)
    assert settings.mode == found
    assert max_ratio is None or settings.max_ratio == max_ratio
