"""Loads that can never end are refused before a real run, and end it while it lasts."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harness.base.errors import InputError, RunInvalid
from harness.experiments.kind import Target
from harness.experiments.real import endless, runner
from harness.experiments.real.curves import JobRun
from harness.experiments.real.endless import Foreseen, Standstill, check_ends, default_limit_s, foresee, patience_s
from harness.experiments.real.run import RealRun
from harness.experiments.resolve import LoadedExperiment, load_experiment, variants_of
from harness.model.jobs import Duration, JobSpec, Stage
from harness.model.resources import ZERO, Resource
from harness.results.store import RunDirectory
from harness.yarn.answers import AppStatus
from harness.yarn.queue_answers import QueueStatus, SchedulerStatus

#: Ten jobs on room for four containers, and masters may hold everything.
STUCK = """
experiment: stuck
cluster: {nodes: [{count: 1, memory_mb: 4096, vcores: 8}]}
queues: {a: {}}
max_am_share: -1.0
workloads:
  a: {inline: {kind: bins, am: {memory_mb: 1024}, arrivals: {mean_gap_s: 0.01},
      map: {demand: {memory_mb: 1024}, duration: {constant_s: 9}},
      reduce: {demand: {memory_mb: 1024}, duration: {constant_s: 9}}, bins: [{type: t, maps: 3, jobs: 10}]}}
policies: [fair, ltrf]
"""


def load(folder: Path, text: str = STUCK) -> LoadedExperiment:
    (folder / "x.yaml").write_text(text)
    return load_experiment(str(folder / "x.yaml"))


def test_a_load_whose_masters_fill_the_cluster_is_refused_before_a_cluster_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded = load(tmp_path)
    monkeypatch.setattr(runner, "open_cluster", lambda *_, **__: pytest.fail("it was brought up"))
    monkeypatch.setattr(runner, "check_experiment", lambda *_: None)
    with (
        pytest.raises(RunInvalid) as caught,
        runner.real_runner(loaded, variants_of(loaded), "local", Target(), print),
    ):
        pass
    line = caught.value.line()
    assert "fair: it can never end, says the simulator: nothing has moved since" in line
    assert "4 masters hold 4,096 of 4,096 MiB" in line
    assert "limits.duration_s" in line
    assert f"{tmp_path}/x.yaml:6" in line


def test_a_load_that_ends_has_a_limit_that_is_printed(tmp_path: Path) -> None:
    loaded = load(tmp_path, STUCK.replace("max_am_share: -1.0", "max_am_share: 0.5"))
    said: list[str] = []
    limit_s = check_ends(loaded, variants_of(loaded), said.append)
    assert limit_s == endless.LIMIT_LEAST_S
    assert said == ["a run that has not ended after 1,800 s is cut (limits.time_limit_s sets another limit)"]


@pytest.mark.parametrize("limits", ["duration_s: 60", "time_limit_s: 7"])
def test_the_experiments_own_limit_stays(tmp_path: Path, limits: str) -> None:
    text = STUCK.replace("max_am_share: -1.0", f"max_am_share: 0.5\nlimits: {{{limits}}}")
    loaded = load(tmp_path, text)
    assert check_ends(loaded, variants_of(loaded), pytest.fail) is None
    assert default_limit_s(loaded) is None


def test_a_load_that_is_to_be_watched_may_stand_still(tmp_path: Path) -> None:
    loaded = load(tmp_path, STUCK + "limits: {duration_s: 60}\n")
    assert check_ends(loaded, variants_of(loaded), pytest.fail) is None


def test_what_the_simulator_does_not_cover_is_not_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise InputError("'user-limit' is not covered")

    monkeypatch.setattr(endless, "simulate_variant", refuse)
    loaded = load(tmp_path)
    (variant, *_) = variants_of(loaded)
    assert foresee(loaded, variant) == Foreseen()


def test_a_simulation_that_takes_too_long_says_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = load(tmp_path)
    (variant, *_) = variants_of(loaded)

    def simulate(setup: object, check: Callable[[Any], None]) -> None:
        check(SimpleNamespace(wall_s=endless.BUDGET_S - 1))
        check(SimpleNamespace(wall_s=endless.BUDGET_S + 1))
        pytest.fail("it went on")

    monkeypatch.setattr(endless, "simulate_variant", simulate)
    assert foresee(loaded, variant) == Foreseen(stuck="", end_s=None)
    said: list[str] = []
    assert check_ends(loaded, [variant], said.append) == default_limit_s(loaded) == endless.LIMIT_UNKNOWN_S
    assert "86,400 s" in said[0]


def app(number: int, containers: int, progress: float = 0.0) -> AppStatus:
    return AppStatus(
        id=f"application_1_{number:04d}",
        user="u",
        name="n",
        queue="root.a",
        state="RUNNING" if containers else "ACCEPTED",
        final_status="UNDEFINED",
        type="",
        tags=frozenset(),
        progress_percent=progress,
        started_ms=1,
        launched_ms=1,
        finished_ms=0,
        allocated=Resource(1024 * containers, containers),
        reserved=ZERO,
        running_containers=containers,
        memory_seconds=0,
        vcore_seconds=0,
        preempted_memory_seconds=0,
        diagnostics="",
    )


def status(pending: int) -> SchedulerStatus:
    total = Resource(4096, 8)
    queue = QueueStatus(
        "root.a", "root", True, "fair", ZERO, total, total, total, total, total, total, ZERO, 4, pending, 9, 0, 4, False
    )
    return SchedulerStatus("fairScheduler", total, {"root.a": queue})


def job_run(number: int, containers: int, progress: float = 0.0) -> JobRun:
    stages = (Stage("map", 3, Resource(1024, 1), Duration("constant", value_s=9.0)),)
    job = JobRun(JobSpec(f"j{number}", "root.a", "mapreduce", Resource(1024, 1), stages), 0.0)
    job.status, job.app_id, job.tries = app(number, containers, progress), f"application_1_{number:04d}", 1
    return job


def test_masters_that_wait_for_tasks_stand_still_after_the_patience() -> None:
    still = Standstill(180.0)
    jobs = [job_run(1, 1), job_run(2, 1), job_run(3, 0)]
    assert still.look(10.0, jobs, status(6)) == ""
    assert still.look(189.0, jobs, status(6)) == ""
    words = still.look(190.0, jobs, status(6))
    assert words.startswith("nothing has moved since 10 s: 2 masters (2 of root.a) hold 2,048 of 4,096 MiB and nothing")
    assert "while 6 container(s) are waited for; lower max_am_share" in words


@pytest.mark.parametrize(
    ("jobs", "pending"),
    [
        ([job_run(1, 1), job_run(2, 3)], 6),  # tasks run
        ([job_run(1, 1), job_run(2, 1)], 0),  # masters compute by themselves
        ([], 6),
    ],
)
def test_what_may_still_move_goes_on(jobs: list[JobRun], pending: int) -> None:
    still = Standstill(180.0)
    assert [still.look(at, jobs, status(pending)) for at in (0.0, 200.0, 4000.0)] == ["", "", ""]


def test_progress_of_a_master_begins_the_patience_again() -> None:
    still = Standstill(180.0)
    assert still.look(0.0, [job_run(1, 1)], status(6)) == ""
    assert still.look(170.0, [job_run(1, 1, 5.0)], status(6)) == ""
    assert still.look(200.0, [job_run(1, 1, 5.0)], status(6)) == ""
    assert still.look(350.0, [job_run(1, 1, 5.0)], status(6)) != ""


def test_a_controller_preemption_and_programs_have_longer() -> None:
    plain = patience_s(programs=False, controlled=False, preemption=False)
    moved = patience_s(programs=False, controlled=True, preemption=False)
    assert plain < moved == patience_s(programs=False, controlled=False, preemption=True)
    assert moved < patience_s(programs=True, controlled=False, preemption=False)


def test_a_real_run_that_stands_still_ends_as_one_that_can_never_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It hung in silence until its time limit of 1e6 s; now it tells how it stands, and ends with the reason."""
    monkeypatch.setattr("harness.experiments.real.run.TELL_EVERY_S", 0.2)
    loaded = load(tmp_path)
    told: list[str] = []
    began = time.time()

    class Run(RealRun):
        def __init__(self) -> None:
            self.experiment, self.variant = loaded, variants_of(loaded)[0]
            self.holding, self.controller, self.decisions, self.load, self.done = None, None, [], None, []
            self.directory = RunDirectory(tmp_path / "out", {"experiment": loaded.resolved})
            self.cluster = SimpleNamespace(shared=SimpleNamespace(troubles=list))  # type: ignore[assignment]
            self.jobs = [replace_due(job_run(number, 1)) for number in (1, 2, 3, 4)]
            self.followers, self.zero_ms = {}, 0
            apps = [job.status for job in self.jobs]
            self.replayer = SimpleNamespace(  # type: ignore[assignment]
                submit=lambda spec: f"application_1_{int(spec.id[1:]):04d}", live=lambda: apps
            )
            self.on_progress, self.standstill = told.append, Standstill(1.0)

        def now_s(self) -> float:
            return time.time() - began

        def _look(self) -> None:
            self.seen = status(12)

        def _write(self, *, finished: bool) -> Any:
            pass

    run = Run()
    assert not run._loop(60.0, None)
    assert run.now_s() < 20.0
    assert "4 masters (4 of root.a) hold 4,096 of 4,096 MiB" in run.never_ends
    assert "of 4 jobs ended, 4 running, 0 waiting, 12 containers waited for" in told[-1]


def replace_due(job: JobRun) -> JobRun:
    """As a job that has yet to be submitted."""
    fresh = JobRun(replace(job.spec), 0.0)
    fresh.status = job.status
    return fresh
