"""Campaigns as users call them: what a plan lists, resuming after kill -9, failures, retries, Dask."""

from __future__ import annotations

import io
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import yaml

from harness.base.errors import InputError, YarnfairError
from harness.cli import main
from harness.experiments.campaign import dask, dask_cluster
from harness.experiments.campaign import run as runner
from harness.experiments.campaign.dask import Dask, _unpack
from harness.experiments.campaign.dask_cluster import DaskCluster
from harness.experiments.campaign.executors import ExecutorEvent, Processes, run_cell
from harness.experiments.campaign.spec import LoadedCampaign, load_campaign
from harness.results.runs import read_runs
from tests.experiments.campaigning import EXPERIMENT, Clock, Scripted, call

ROOT = Path(__file__).resolve().parents[2]


# --- files and plans --------------------------------------------------------------------------------------------------


def test_a_plan_lists_the_grid_and_runs_nothing(write: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(policies=["fair", "ltrf@outside"], settings={"horizon_s": [20, 80]}, repeats=2)
    code, out, _ = call(capsys, "plan", path, "--out", tmp_path / "out", "--json")
    assert code == 0
    plan = json.loads(out)
    names = [cell["name"] for cell in plan["cells"]]
    # `fair` knows no horizon: it is one cell a seed and repeat, not two.
    assert len(names) == len(set(names)) == 2 * 2 * (1 + 2)
    assert names[:3] == [
        "tiny fair,seed=1", "tiny ltrf@outside,horizon_s=20,seed=1", "tiny ltrf@outside,horizon_s=80,seed=1"
    ]  # fmt: skip
    assert plan["estimate_s"] > 0
    assert all(cell["basis"].startswith("about ") for cell in plan["cells"])
    assert not (tmp_path / "out").exists()


def test_conditions_keep_and_leave_out(write: Any) -> None:
    def names(**changes: Any) -> set[str]:
        loaded = load_campaign(write(order="listed", **changes))
        return {cell.variant.name for cell in loaded.cells}

    assert names(only=[{"policy": "ltrf"}]) == {"ltrf,seed=1", "ltrf,seed=2"}
    assert names(skip=[{"policy": ["fair", "static"]}, {"seed": 2}]) == {"ltrf,seed=1"}
    assert names(skip=[{"policy": "fair", "seed": 2}]) == {
        "static,seed=1", "static,seed=2", "fair,seed=1", "ltrf,seed=1", "ltrf,seed=2"
    }  # fmt: skip
    found = names(settings={"horizon_s": [0, 40]}, only=[{"variant": "ltrf*", "horizon_s": 40.0}])
    assert found == {"ltrf,horizon_s=40,seed=1", "ltrf,horizon_s=40,seed=2"}
    loaded = load_campaign(write(skip=[{"policy": "nobody"}]))
    assert "no cell matches" in loaded.remarks[0]


def test_orders(write: Any) -> None:
    def names(order: str) -> list[str]:
        return [cell.variant.name for cell in load_campaign(write(order=order)).cells]

    assert [name[-1] for name in names("interleave")] == ["1", "1", "1", "2", "2", "2"]
    assert names("shuffle") == names("shuffle")
    assert sorted(names("shuffle")) == sorted(names("listed")) == sorted(names("interleave"))
    assert names("shuffle") != names("listed")


def test_an_identity_changes_with_all_that_figures_depend_on(write: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def ids(**changes: Any) -> set[str]:
        return {cell.id for cell in load_campaign(write(**changes)).cells}

    first = ids()
    assert first == ids()
    assert first == ids(order="listed", retries=5), "how it is run does not matter"
    assert not first & ids(experiment={"sample_s": 2.0})
    assert not first & ids(seeds=[3, 4])
    assert len(first & ids(settings={"horizon_s": 10})) == 4, "static and fair know no horizon"
    monkeypatch.setattr("harness.experiments.campaign.spec.versions", lambda: {"yarnfair": "9"})
    assert not first & ids()


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"experiments": ["nothing.yaml"]}, "no such experiment"),
        (
            {"experiments": ["tiny.yaml", "qknober-users"], "backends": ["local"]},
            "qknober-users is of kind vectors, which does not run on local",
        ),
        ({"policies": ["nobody"]}, "nobody"),
        ({"settings": {"no_such": 1}}, "no_such"),
        ({"backends": ["moon"]}, "no backend"),
        ({"backends": ["ssh"]}, "no inventory"),
        ({"backends": ["x"], "clusters": {"x": {"backend": "ssh", "inventory": "none.yaml"}}}, "none.yaml"),
        ({"backends": ["x"], "clusters": {"x": {"backend": "local", "rm": "http://a:1"}}}, "rm without"),
        ({"backends": ["x"], "clusters": {"x": {"backend": "local", "shared": "/a"}}}, "without rm"),
        ({"clusters": {"sim": {"backend": "local"}}}, "simulator's name"),
        ({"skip": [{"colour": "red"}]}, "colour"),
        ({"skip": [{"policy": "*"}]}, "no cell is left"),
        ({"repeats": 0}, "repeats"),
        ({"extra": 1}, "extra"),
    ],
)
def test_mistakes_are_found_before_anything_runs(changes: dict[str, Any], said: str, write: Any) -> None:
    path = write(**changes)
    with pytest.raises(InputError, match=said) as caught:
        load_campaign(path)
    assert "campaign.yaml" in (caught.value.where or "")


# --- running ----------------------------------------------------------------------------------------------------------


def test_a_campaign_runs_resumes_and_feeds_the_other_commands(
    write: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, out = write(), tmp_path / "out"
    code, printed, err = call(capsys, "run", path, "--out", out, "--jobs", 2, "--json")
    assert code == 0, err
    document = json.loads(printed)
    assert (document["ran"], document["kept"], document["counts"]["done"]) == (6, 0, 6)
    assert "[6/6]" in err
    began = {run.path: run.start for run in read_runs([out])}
    assert len(began) == 6
    summary = json.loads((Path(document["cells"][-1]["directory"]) / "summary.json").read_text())
    assert summary["queues"]["root.a"]["speedup_over_static"] > 0, "static ran with the same seed"
    code, printed, _ = call(capsys, "run", path, "--out", out, "--json")
    assert (json.loads(printed)["ran"], json.loads(printed)["kept"]) == (0, 6)
    # One seed more: only its cells run.
    path = write(seeds=[1, 2, 3])
    code, printed, _ = call(capsys, "run", path, "--out", out, "--json")
    assert (json.loads(printed)["ran"], json.loads(printed)["kept"]) == (3, 6)
    again = {run.path: run.start for run in read_runs([out])}
    assert {path: again[path] for path in began} == began
    # A done cell that lost its results runs again; one that is of the campaign no more is set aside.
    next(iter(began)).joinpath("summary.json").unlink()
    assert json.loads(call(capsys, "run", path, "--out", out, "--json")[1])["ran"] == 1
    path = write(seeds=[1])
    call(capsys, "run", path, "--out", out)
    assert len(read_runs([out])) == 3
    plan = json.loads(call(capsys, "plan", path, "--out", out, "--json")[1])
    assert plan["waiting"] == 0
    assert all("of this policy" in cell["basis"] for cell in plan["cells"])
    with pytest.raises(SystemExit) as caught:
        main(["compare", str(out), "--json"])
    assert caught.value.code == 0
    assert json.loads(capsys.readouterr().out)["contests"]


def test_results_of_another_version_are_told_of(
    write: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path, out = write(seeds=[1], policies=["fair"]), tmp_path / "out"
    assert call(capsys, "run", path, "--out", out)[0] == 0
    assert "warning" not in call(capsys, "status", path, "--out", out)[2]
    monkeypatch.setattr("harness.experiments.campaign.spec.versions", lambda: {"yarnfair": "9"})
    code, printed, err = call(capsys, "status", path, "--out", out)
    assert (code, printed) == (0, "1 cells: 1 waiting\n")
    assert "1 cell(s) done by another version" in err
    assert json.loads(call(capsys, "plan", path, "--out", out, "--json")[1])["remarks"]


def test_the_state_waits_for_no_disk_and_is_one_file_again_afterwards(write: Any, tmp_path: Path) -> None:
    """Changes go to SQLite's log beside the file while a campaign runs; a reader of the folder finds it whole."""
    loaded, out = load_campaign(write(seeds=[1], policies=["fair"])), tmp_path / "out"
    seen: list[tuple[str, int]] = []

    def begins(*_: object) -> None:
        with closing(sqlite3.connect(out / "campaign.sqlite")) as db:
            state = db.execute("SELECT state FROM cells").fetchone()[0]
        seen.append((state, (out / "campaign.sqlite-wal").stat().st_size))

    runner.run_campaign(loaded, out, Scripted({}, out), watch=runner.Watch(begin=begins))
    assert [state for state, _ in seen] == ["running"]
    assert all(size > 0 for _, size in seen)
    assert [path.name for path in out.glob("campaign.sqlite*")] == ["campaign.sqlite"]
    assert [one.state for one in runner.standings(loaded, out)] == ["done"]


def test_a_state_that_cannot_be_written_is_one_line(
    write: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk is full when a cell has ended: the cell runs again when there is room."""
    loaded, out = load_campaign(write(seeds=[1], policies=["fair"])), tmp_path / "out"

    def full(*_: object, **__: object) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    with monkeypatch.context() as patched:
        patched.setattr("harness.experiments.campaign.state.CampaignState.end", full)
        patched.setattr("harness.experiments.campaign.state.CampaignState.interrupted", full)
        with pytest.raises(InputError, match="disk is full; check the disk"):
            runner.run_campaign(loaded, out, Scripted({}, out))
    executor = Scripted({}, out)
    assert not runner.run_campaign(loaded, out, executor).failed
    assert executor.log == ["fair", "closed"]


def test_failed_cells_do_not_stop_it_and_are_listed(
    write: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "bad.yaml").write_text(
        yaml.safe_dump({**EXPERIMENT, "experiment": "bad", "faults": {"failure": 1.0, "max_attempts": 1}})
    )
    path = write(experiments=["bad.yaml", "tiny.yaml"], policies=["fair"])
    code, out, err = call(capsys, "run", path, "--out", tmp_path / "out", "--jobs", 1)
    assert code == 4
    assert "2 of 4 cells failed: bad fair,seed=1, bad fair,seed=2" in err.splitlines()[-1]
    assert out.count("job(s) failed") == 2
    # What fails in the simulator fails again: it is kept as failed unless it is asked for.
    code, printed, _ = call(capsys, "run", path, "--out", tmp_path / "out", "--json")
    assert (code, json.loads(printed)["ran"], len(json.loads(printed)["failed"])) == (4, 0, 2)
    code, printed, _ = call(capsys, "run", path, "--out", tmp_path / "out", "--json", "--retry-failed")
    assert (code, json.loads(printed)["ran"]) == (4, 2)
    assert call(capsys, "status", path, "--out", tmp_path / "out")[1].splitlines()[0] == "4 cells: 2 done, 2 failed"


@contextmanager
def started(path: Path, out: Path) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-m", "harness", "campaign", "run", str(path), "--out", str(out), "--jobs", "2"]
    process = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.kill()
        process.wait(300)


def states(out: Path) -> list[str]:
    try:
        with closing(sqlite3.connect(f"file:{out / 'campaign.sqlite'}?mode=ro", uri=True)) as db:
            return [row[0] for row in db.execute("SELECT state FROM cells ORDER BY position")]
    except sqlite3.Error:
        return []


@pytest.mark.xdist_group("campaign")
def test_kill_9_at_any_moment_loses_nothing_that_was_done(
    write: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # So many cells that some are left whenever this process gets to look.
    path, out = write(seeds={"first": 1, "count": 40}), tmp_path / "out"
    done: dict[Path, str] = {}
    for at_least in (0, 4):
        with started(path, out) as process:
            deadline = time.monotonic() + 300
            # Killed when so many are done and something runs: at another moment each time.
            while not (states(out).count("done") >= at_least and "running" in states(out)):
                assert process.poll() is None, "it ended before it could be killed"
                assert time.monotonic() < deadline
                time.sleep(0.01)
            process.send_signal(signal.SIGKILL)
            process.wait(300)
        with closing(sqlite3.connect(out / "campaign.sqlite")) as db:
            assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
            rows = db.execute("SELECT id, variant FROM cells WHERE state = 'done'").fetchall()
        for id_, variant in rows:
            directory = out / "cells" / id_[:16] / variant
            info = json.loads((directory / "run.json").read_text())
            assert info["exit"] == 0
            assert json.loads((directory / "summary.json").read_text())["makespan_s"] > 0
            assert done.setdefault(directory, info["start"]) == info["start"], "what was done is not done again"
        # Every directory is readable, whatever was going on.
        for run in out.glob("cells/*/*/run.json"):
            assert json.loads(run.read_text())["exit"] in (None, 0, 130)
    code, printed, _ = call(capsys, "run", path, "--out", out, "--json")
    assert code == 0
    assert json.loads(printed)["counts"] == {"done": 120, "failed": 0, "running": 0, "waiting": 0}
    for directory, start in done.items():
        assert json.loads((directory / "run.json").read_text())["start"] == start


@pytest.mark.xdist_group("campaign")
def test_an_interrupt_is_130_and_a_second_campaign_waits_outside(
    write: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, out = write(seeds={"first": 1, "count": 100}), tmp_path / "out"
    with started(path, out) as process:
        deadline = time.monotonic() + 300
        while "running" not in states(out):
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.02)
        code, _, err = call(capsys, "run", path, "--out", out)
        assert (code, "another" in err) == (1, True)
        assert call(capsys, "status", path, "--out", out)[0] == 0
        process.send_signal(signal.SIGINT)
        assert process.wait(300) == 130
    assert "running" not in states(out)


# --- executors --------------------------------------------------------------------------------------------------------


def test_what_may_pass_is_tried_again_and_what_may_not_is_not(write: Any, tmp_path: Path) -> None:
    out = tmp_path / "out"
    loaded = load_campaign(write(seeds=[1], retries=2))
    died = ExecutorEvent("", "died", why="gone", passing=True)
    script = {
        "static": [died, died, ExecutorEvent("", "end", exit_code=0)],
        "fair": [died, died, died, died],
        "ltrf": [ExecutorEvent("", "end", exit_code=4, why="2 job(s) failed")],
    }
    executor = Scripted(script, out)
    outcome = runner.run_campaign(loaded, out, executor)
    assert {name: executor.log.count(name) for name in script} == {"static": 3, "fair": 3, "ltrf": 1}
    by_name = {one.name: one for one in outcome.standings}
    assert by_name["tiny static"].state == "done"
    assert (by_name["tiny fair"].state, by_name["tiny fair"].why) == ("failed", "gone")
    assert (by_name["tiny ltrf"].state, by_name["tiny ltrf"].exit) == ("failed", 4)
    assert executor.log[-1] == "closed"


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    monkeypatch.setattr(runner, "time", found)
    return found


def test_a_cell_that_takes_too_long_is_killed_and_tried_again(write: Any, tmp_path: Path, clock: Clock) -> None:
    loaded = load_campaign(write(seeds=[1], timeout_s=20, retries=1))
    executor = Scripted({}, tmp_path / "out", hang={"fair"}, clock=clock)
    outcome = runner.run_campaign(loaded, tmp_path / "out", executor)
    assert executor.log.count("killed") == 1
    assert executor.log.count("fair") == 2
    assert not outcome.failed


def test_a_cell_that_waits_at_a_worker_has_its_whole_time(write: Any, tmp_path: Path, clock: Clock) -> None:
    """An executor that queues says when a cell begins; its time is counted from then."""
    loaded = load_campaign(write(seeds=[1], timeout_s=30, retries=0))
    executor = Scripted({}, tmp_path / "out", hang={"fair", "ltrf"}, queues=True, clock=clock)
    waits_until, plain = clock.now_s + 60, executor.told

    def told(timeout_s: float) -> list[ExecutorEvent]:
        if clock.now_s > waits_until and "ltrf" in executor.hang:
            executor.hang.discard("ltrf")
            return [ExecutorEvent(id_, "begins") for id_ in executor.running]
        return plain(timeout_s)

    executor.told = told  # type: ignore[method-assign]
    outcome = runner.run_campaign(loaded, tmp_path / "out", executor)
    assert {one.policy: one.state for one in outcome.standings} == {"static": "done", "fair": "failed", "ltrf": "done"}


def test_a_cell_that_always_takes_too_long_is_exit_5(
    write: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str], clock: Clock
) -> None:
    path, out = write(seeds=[1], policies=["fair"], timeout_s=20, retries=0), tmp_path / "out"
    runner.run_campaign(load_campaign(path), out, Scripted({}, out, hang={"fair"}, clock=clock))
    (cell,) = json.loads(call(capsys, "status", path, "--out", out, "--json")[1])["cells"]
    assert (cell["state"], cell["exit"]) == ("failed", 5)
    assert "not ended after 20 s" in cell["why"]
    assert call(capsys, "run", path, "--out", out)[0] == 5
    # Beside one whose jobs failed it is that which counts.
    path, out = write(seeds=[1], policies=["fair", "ltrf"], timeout_s=20, retries=0), tmp_path / "both"
    failed = {"ltrf": [ExecutorEvent("", "end", exit_code=4, why="2 job(s) failed")]}
    runner.run_campaign(load_campaign(path), out, Scripted(failed, out, hang={"fair"}, clock=clock))
    assert call(capsys, "run", path, "--out", out)[0] == 4


@pytest.mark.parametrize("how", ["interrupted", "killed"])
def test_an_attempt_that_was_interrupted_does_not_count(
    write: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    class Interrupted(Scripted):
        def told(self, timeout_s: float) -> list[ExecutorEvent]:
            raise KeyboardInterrupt

    out, loaded = tmp_path / "out", load_campaign(write(seeds=[1], policies=["fair"], retries=1))
    for _ in range(2):
        with monkeypatch.context() as patched:
            if how == "killed":
                # Nobody is left to note anything.
                patched.setattr("harness.experiments.campaign.state.CampaignState.interrupted", lambda *_: None)
            with pytest.raises(KeyboardInterrupt):
                runner.run_campaign(loaded, out, Interrupted({}, out))
    died = ExecutorEvent("", "died", why="gone", passing=True)
    (standing,) = runner.run_campaign(loaded, out, Scripted({"fair": [died]}, out)).standings
    assert (standing.state, standing.attempts) == ("done", 2)


@pytest.mark.xdist_group("campaign")
def test_a_worker_process_that_dies_is_noticed(write: Any, tmp_path: Path) -> None:
    loaded = load_campaign(write(seeds=[1], policies=["fair"]))
    (cell,) = loaded.cells
    executor = Processes(1)
    try:
        executor.start(cell, loaded.experiments[cell.source], tmp_path)
        executor._workers[0].process.kill()
        deadline = time.monotonic() + 300
        told: list[ExecutorEvent] = []
        while not told and time.monotonic() < deadline:
            told = [one for one in executor.told(0.2) if one.kind != "step"]
        assert [(one.kind, one.passing) for one in told] == [("died", True)]
    finally:
        executor.close()


@pytest.mark.xdist_group("campaign")
def test_a_cell_whose_campaign_is_gone_was_interrupted_and_has_not_failed(write: Any, tmp_path: Path) -> None:
    """A worker can notice the broken link before the signal that ends it."""
    loaded = load_campaign(write(seeds=[1], policies=["fair"]))
    (cell,) = loaded.cells
    executor = Processes(1)
    try:
        executor.start(cell, loaded.experiments[cell.source], tmp_path)
        (worker,) = executor._workers
        worker.link.close()
        worker.process.join(60)
        assert worker.process.exitcode == 0
        (run,) = tmp_path.glob("cells/*/*/run.json")
        info = json.loads(run.read_text())
        assert (info["exit"], info["why"]) == (130, "interrupted")
    finally:
        executor._workers.clear()
        worker.process.kill()


@contextmanager
def dask_worker(folder: Path) -> Iterator[str]:
    """A Dask cluster of one worker with one thread; its address."""
    distributed = pytest.importorskip("distributed", reason="needs the package distributed")
    cluster = distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, processes=True, dashboard_address=":0", silence_logs=50,
        local_directory=str(folder),
    )  # fmt: skip
    try:
        yield cluster.scheduler_address.replace("tcp://", "dask://")
    finally:
        # Dask gives a worker's process a second to end. On a busy machine that is too short, and the process, which
        # has got its signal, ends without being waited for.
        with suppress(TimeoutError):
            cluster.close()


def _with_a_killed_worker(loaded: LoadedCampaign, out: Path, address: str) -> None:
    """When the first cell has ended the next one runs, and a third waits at the worker: none of them is lost.

    Another worker joins, since on a busy machine Dask can fail to start the killed one again.
    """
    executor, ended = Dask(address), []
    (worker,) = executor._client.run(os.getpid).values()
    scheduler = address.replace("dask://", "tcp://")
    joins = [sys.executable, "-m", "distributed.cli.dask_worker", scheduler, "--nthreads", "1", "--no-nanny"]
    with ExitStack() as running:

        def end(cell: Any, told: ExecutorEvent, state: str) -> None:
            if not ended:
                os.kill(worker, signal.SIGKILL)
                another = subprocess.Popen([*joins, "--no-dashboard", "--local-directory", str(out.parent)])
                running.callback(another.wait)
                running.callback(another.kill)
            ended.append(state)

        outcome = runner.run_campaign(loaded, out, executor, watch=runner.Watch(end=end))
    assert [(one.state, one.attempts) for one in outcome.standings] == [("done", 1)] * 3, ended


@pytest.mark.xdist_group("campaign")
def test_a_dask_cluster_without_a_worker_is_told_and_not_waited_for_without_end(
    write: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Dask itself waits for ever: a campaign whose last worker was gone was silent, and never ended."""
    distributed = pytest.importorskip("distributed", reason="needs the package distributed")
    for name, value in (("LOOK_S", 0.1), ("MOST_ALONE_S", 4.0)):
        monkeypatch.setattr(dask_cluster, name, value)
    monkeypatch.setattr(dask, "SAY_ALONE_S", 1.0)
    said: list[str] = []
    watch = runner.Watch(says=lambda cell, text: said.append(text))
    with distributed.LocalCluster(n_workers=0, dashboard_address=":0", silence_logs=50) as cluster:
        address = cluster.scheduler_address.replace("tcp://", "dask://")
        outcome = runner.run_campaign(load_campaign(write(seeds=[1])), tmp_path / "out", Dask(address), watch=watch)
        assert {one.state for one in outcome.standings} == {"failed"}
        assert all("has had no worker for" in (one.why or "") for one in outcome.standings)
        assert any("cells wait for one" in text for text in said)
        with pytest.raises(YarnfairError, match="no Dask worker finished its work"):
            list(DaskCluster(address).map(len, [[1]]))


@pytest.mark.xdist_group("campaign")
def test_cells_on_a_dask_cluster(write: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with dask_worker(tmp_path / "dask") as address:
        path, out = write(seeds=[1]), tmp_path / "out"
        code, printed, err = call(capsys, "run", path, "--out", out, "--executor", address, "--json")
        assert code == 0, err
        assert json.loads(printed)["counts"]["done"] == 3
        _with_a_killed_worker(load_campaign(path), tmp_path / "again", address)
    here, loaded = tmp_path / "here", load_campaign(path)
    for cell in loaded.cells:
        assert run_cell(loaded.experiments[cell.source], cell, here).exit_code == 0
    for far, near in zip(read_runs([out]), read_runs([here]), strict=True):
        assert far.summary["makespan_s"] == near.summary["makespan_s"]
        for table in ("jobs.parquet", "allocations.parquet"):
            assert (far.path / table).read_bytes() == (near.path / table).read_bytes()


def test_what_a_far_worker_sends_stays_in_the_folder_of_its_cell(tmp_path: Path) -> None:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as packed:
        for name in ("run.json", "deep/er.txt", "../../evil", "/evil"):
            packed.writestr(name, name)
    folder = tmp_path / "out" / "cell"
    folder.mkdir(parents=True)
    (folder / "of-the-last-attempt").touch()
    _unpack(archive.getvalue(), folder)
    found = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    assert found == {f"out/cell/{name}" for name in ("run.json", "deep/er.txt", "evil")}
    assert folder.stat().st_mode & 0o777 == 0o755


def test_wrong_executors(write: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write()
    assert call(capsys, "run", path, "--out", tmp_path / "o", "--executor", "slurm://x")[0] == 2
    code, _, err = call(capsys, "run", path, "--out", tmp_path / "o", "--executor", "dask://127.0.0.1:1")
    assert (code, "no Dask scheduler answers" in err) == (1, True)
    assert call(capsys, "run", tmp_path / "none.yaml")[0] == 1
