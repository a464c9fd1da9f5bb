"""Campaigns as users call them: what a plan lists, resuming after kill -9, failures, retries, Dask."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from harness.cli import main
from harness.experiments import campaign as runner
from harness.experiments.campaign_clusters import turn
from harness.experiments.campaign_spec import Cell, load_campaign
from harness.experiments.campaign_work import Processes, Told, run_cell
from harness.experiments.resolve import LoadedExperiment
from harness.model.errors import InputError
from harness.results.runs import read_runs
from harness.results.store import RunDirectory

ROOT = Path(__file__).resolve().parents[2]
TASK = {"demand": {"memory_mb": 1024}, "duration": {"lognormal": {"mean_s": 8, "sigma": 0.5}}}
EXPERIMENT: dict[str, Any] = {
    "experiment": "tiny",
    "cluster": {"nodes": [{"count": 2, "memory_mb": 4096, "vcores": 8}]},
    "queues": {"a": {}, "b": {}},
    "max_am_share": -1.0,
    "workloads": {
        name: {"inline": {
            "kind": "bins",
            "am": {"memory_mb": 1024},
            "arrivals": {"mean_gap_s": 10},
            "map": TASK,
            "reduce": TASK,
            "bins": [{"type": "few", "maps": 3, "jobs": 3}],
        }}
        for name in ("a", "b")
    },
    "policies": ["static", "fair", "ltrf"],
    "limits": {"time_limit_s": 5000},
}  # fmt: skip
CAMPAIGN: dict[str, Any] = {"campaign": "c", "experiments": ["tiny.yaml"], "seeds": [1, 2]}


@pytest.fixture
def write(tmp_path: Path) -> Any:
    """Writes tiny.yaml (keys of it: ``experiment={...}``) and campaign.yaml; gives the latter's path."""

    def do(experiment: dict[str, Any] | None = None, **changes: Any) -> Path:
        (tmp_path / "tiny.yaml").write_text(yaml.safe_dump({**EXPERIMENT, **(experiment or {})}))
        path = tmp_path / "campaign.yaml"
        path.write_text(yaml.safe_dump({**CAMPAIGN, **changes}))
        return path

    return do


def call(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    capsys.readouterr()
    with pytest.raises(SystemExit) as caught:
        main(["campaign", *map(str, arguments)])
    printed = capsys.readouterr()
    assert isinstance(caught.value.code, int)
    return caught.value.code, printed.out, printed.err


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
    monkeypatch.setattr("harness.experiments.campaign_spec.versions", lambda: {"yarnfair": "9"})
    assert not first & ids()


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"experiments": ["nothing.yaml"]}, "no such experiment"),
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
        process.wait(60)


def states(out: Path) -> list[str]:
    try:
        with sqlite3.connect(f"file:{out / 'campaign.sqlite'}?mode=ro", uri=True) as db:
            return [row[0] for row in db.execute("SELECT state FROM cells ORDER BY position")]
    except sqlite3.Error:
        return []


@pytest.mark.xdist_group("campaign")
def test_kill_9_at_any_moment_loses_nothing_that_was_done(
    write: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, out = write(seeds={"first": 1, "count": 4}), tmp_path / "out"
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
            process.wait(60)
        with sqlite3.connect(out / "campaign.sqlite") as db:
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
            assert json.loads(run.read_text())["exit"] in (None, 0)
    code, printed, _ = call(capsys, "run", path, "--out", out, "--json")
    assert code == 0
    assert json.loads(printed)["counts"] == {"done": 12, "failed": 0, "running": 0, "waiting": 0}
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
        assert process.wait(120) == 130
    assert "running" not in states(out)


# --- executors --------------------------------------------------------------------------------------------------------


@dataclass
class Scripted:
    """An executor that does what the script says of each attempt of a cell (by variant), without running anything."""

    script: dict[str, list[Told]]
    out: Path
    room: int = 3
    running: dict[str, Cell] = field(default_factory=dict)
    log: list[str] = field(default_factory=list)
    together: list[list[str]] = field(default_factory=list)
    hang: set[str] = field(default_factory=set)

    def start(self, cell: Cell, experiment: LoadedExperiment, out: Path) -> None:
        self.log.append(cell.variant.name)
        self.running[cell.id] = cell
        self.together.append(sorted(one.variant.name for one in self.running.values()))

    def told(self, timeout_s: float) -> list[Told]:
        for id_, cell in list(self.running.items()):
            if cell.variant.name in self.hang:
                continue
            del self.running[id_]
            script = self.script.get(cell.variant.name, [])
            said = script.pop(0) if script else Told("", "end", exit_code=0, wall_s=1.0)
            if said.kind == "end":
                RunDirectory(cell.directory(self.out), {"seed": 1}).write_summary({"queues": {}})
                RunDirectory.close(cell.directory(self.out), said.exit_code)
            return [Told(id_, said.kind, None, said.exit_code, said.why, said.wall_s, said.passing)]
        time.sleep(min(timeout_s, 0.02))
        return []

    def kill(self, id_: str) -> None:
        self.log.append("killed")
        self.hang.discard(self.running.pop(id_).variant.name)

    def close(self) -> None:
        self.log.append("closed")


def test_what_may_pass_is_tried_again_and_what_may_not_is_not(write: Any, tmp_path: Path) -> None:
    out = tmp_path / "out"
    loaded = load_campaign(write(seeds=[1], retries=2))
    died = Told("", "died", why="gone", passing=True)
    script = {
        "static": [died, died, Told("", "end", exit_code=0)],
        "fair": [died, died, died, died],
        "ltrf": [Told("", "end", exit_code=4, why="2 job(s) failed")],
    }
    executor = Scripted(script, out)
    outcome = runner.run_campaign(loaded, out, executor)
    assert {name: executor.log.count(name) for name in script} == {"static": 3, "fair": 3, "ltrf": 1}
    by_name = {one.name: one for one in outcome.standings}
    assert by_name["tiny static"].state == "done"
    assert (by_name["tiny fair"].state, by_name["tiny fair"].why) == ("failed", "gone")
    assert (by_name["tiny ltrf"].state, by_name["tiny ltrf"].exit) == ("failed", 4)
    assert executor.log[-1] == "closed"


def test_a_cell_that_takes_too_long_is_killed_and_tried_again(write: Any, tmp_path: Path) -> None:
    loaded = load_campaign(write(seeds=[1], timeout_s=0.2, retries=1))
    executor = Scripted({}, tmp_path / "out", hang={"fair"})
    outcome = runner.run_campaign(loaded, tmp_path / "out", executor)
    assert executor.log.count("killed") == 1
    assert executor.log.count("fair") == 2
    assert not outcome.failed


HOSTS = """
hosts:
  one: {host: 10.0.0.1, roles: [rm, nm]}
  two: {host: 10.0.0.2, roles: [nm]}
"""


def test_cells_of_a_real_cluster_take_turns(write: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "hosts.yaml").write_text(HOSTS)
    (tmp_path / "other.yaml").write_text(yaml.safe_dump({**EXPERIMENT, "experiment": "other"}))
    clusters = {"lab": {"backend": "ssh", "inventory": "hosts.yaml"}}
    experiments = ["tiny.yaml", "other.yaml"]
    loaded = load_campaign(
        write(seeds=[1], backends=["sim", "docker", "lab"], clusters=clusters, experiments=experiments)
    )
    executor = Scripted({}, tmp_path / "out", room=2)
    assert {cell.backend for cell in loaded.cells} == {"sim", "docker", "lab"}
    seen: list[list[str]] = []
    up: dict[str, list[str]] = {"docker": [], "lab": []}
    start = executor.start

    def noting(cell: Cell, experiment: LoadedExperiment, out: Path) -> None:
        start(cell, experiment, out)
        seen.append(sorted(one.backend for one in executor.running.values()))
        up.get(cell.backend, []).append(cell.experiment)

    monkeypatch.setattr(executor, "start", noting)
    outcome = runner.run_campaign(loaded, tmp_path / "out", executor, clusters=executor)
    assert not outcome.failed
    assert all(one.count("lab") <= 1 for one in seen), "one cluster, one cell"
    assert all(one == ["docker"] for one in seen if "docker" in one), "what loads this machine is alone on it"
    assert max(one.count("sim") for one in seen) == 2, "as many as there is room for, whatever the clusters do"
    assert any("lab" in one and "sim" in one for one in seen)
    assert up == {name: ["tiny"] * 3 + ["other"] * 3 for name in up}, "a cluster is brought up once an experiment"
    (directory,) = {cell.directory(tmp_path / "out") for cell in loaded.cells if cell.name == "tiny fair lab"}
    assert json.loads((directory / "run.json").read_text())["place"] == "lab"


def test_on_a_real_cluster_what_the_scheduler_lacks_acts_from_outside(write: Any) -> None:
    loaded = load_campaign(write(seeds=[1], backends=["sim", "local"]))
    assert {cell.name for cell in loaded.cells} == {
        "tiny static", "tiny fair", "tiny ltrf", "tiny static local", "tiny fair local", "tiny ltrf@outside local"
    }  # fmt: skip
    assert {c.variant.mode for c in loaded.cells if c.name == "tiny ltrf@outside local"} == {"outside"}


def test_which_cluster_it_is_belongs_to_a_cell(write: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "hosts.yaml").write_text(HOSTS)
    clusters: dict[str, Any] = {"lab": {"backend": "ssh", "inventory": "hosts.yaml"}}

    def ids(*backends: str, **changes: Any) -> set[str]:
        return {cell.id for cell in load_campaign(write(backends=list(backends), clusters=clusters, **changes)).cells}

    lab, local, sim = ids("lab"), ids("local"), ids("sim")
    assert len(lab | local | sim) == 18
    (tmp_path / "key").touch()
    (tmp_path / "hosts.yaml").write_text("defaults: {key: key}\n" + HOSTS)
    assert ids("lab") == lab, "by which key one gets in does not matter"
    (tmp_path / "hosts.yaml").write_text(HOSTS.replace("10.0.0.2", "10.0.0.3"))
    assert not ids("lab") & lab
    monkeypatch.setattr("harness.experiments.campaign_clusters._java", lambda: "another Java")
    assert not ids("local") & local
    assert ids("sim") == sim
    clusters["given"] = {"backend": "local", "rm": "http://a:1", "allocations": "fs.xml", "shared": "s"}
    given = ids("given")
    (cell, *_) = load_campaign(write(backends=["given"], clusters=clusters)).cells
    assert cell.place.target.allocations == str(tmp_path / "fs.xml")
    clusters["given"]["rm"] = "http://b:1"
    assert not ids("given") & given


def test_estimates_of_real_cells_come_from_simulated_ones(
    write: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, out = write(seeds=[1], policies=["fair"]), tmp_path / "out"
    assert call(capsys, "run", path, "--out", out)[0] == 0
    write(seeds=[1], policies=["fair"], backends=["sim", "local"])
    plan = json.loads(call(capsys, "plan", path, "--out", out, "--json")[1])
    simulated, real = plan["cells"]
    makespan_s = read_runs([out])[0].summary["makespan_s"]
    assert (simulated["state"], real["state"]) == ("done", "waiting")
    assert real["estimate_s"] == plan["estimate_s"] == pytest.approx(runner.CLUSTER_START_S + makespan_s)


@pytest.mark.xdist_group("campaign")
def test_a_cluster_that_does_not_come_up_fails_its_cells_in_a_line_each_after_its_turn(
    write: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process that drives a cluster, without one: another campaign has the turn first, then Hadoop is missing."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("HADOOP_LIB", str(tmp_path))
    out = tmp_path / "out"
    loaded = load_campaign(write(seeds=[1], policies=["fair", "ltrf"], backends=["local"], retries=1))
    said: list[str] = []
    with contextlib.ExitStack() as other:
        other.enter_context(turn(loaded.cells[0].place, said.append))

        def says(cell: Cell, text: str) -> None:
            said.append(text)
            other.close()

        outcome = runner.run_campaign(loaded, out, Processes(1), watch=runner.Watch(says=says))
    assert said[0] == f"waits for the cluster: process {os.getpid()} has it"
    assert [(one.state, one.attempts, one.may_retry) for one in outcome.standings] == [("failed", 2, True)] * 2
    for one in outcome.standings:
        assert one.why is not None
        assert "HADOOP_LIB has no" in one.why
        assert "\n" not in one.why
    assert not list((tmp_path / "state" / "yarnfair").glob("runs/*"))


@pytest.mark.xdist_group("campaign")
def test_a_worker_process_that_dies_is_noticed(write: Any, tmp_path: Path) -> None:
    loaded = load_campaign(write(seeds=[1], policies=["fair"]))
    (cell,) = loaded.cells
    executor = Processes(1)
    try:
        executor.start(cell, loaded.experiments[cell.source], tmp_path)
        executor._workers[0].process.kill()
        deadline = time.monotonic() + 60
        told: list[Told] = []
        while not told and time.monotonic() < deadline:
            told = [one for one in executor.told(0.2) if one.kind != "step"]
        assert [(one.kind, one.passing) for one in told] == [("died", True)]
    finally:
        executor.close()


@pytest.mark.xdist_group("campaign")
def test_cells_on_a_dask_cluster(write: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs=50,
        local_directory=str(tmp_path / "dask"),
    ) as cluster:  # fmt: skip
        address = cluster.scheduler_address.replace("tcp://", "dask://")
        path, out = write(seeds=[1]), tmp_path / "out"
        code, printed, err = call(capsys, "run", path, "--out", out, "--executor", address, "--json")
        assert code == 0, err
        assert json.loads(printed)["counts"]["done"] == 3
    here, loaded = tmp_path / "here", load_campaign(path)
    for cell in loaded.cells:
        assert run_cell(loaded.experiments[cell.source], cell, cell.folder(here)).exit_code == 0
    for far, near in zip(read_runs([out]), read_runs([here]), strict=True):
        assert far.summary["makespan_s"] == near.summary["makespan_s"]
        for table in ("jobs.parquet", "allocations.parquet"):
            assert (far.path / table).read_bytes() == (near.path / table).read_bytes()


def test_wrong_executors(write: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write()
    assert call(capsys, "run", path, "--out", tmp_path / "o", "--executor", "slurm://x")[0] == 2
    code, _, err = call(capsys, "run", path, "--out", tmp_path / "o", "--executor", "dask://127.0.0.1:1")
    assert (code, "no Dask scheduler answers" in err) == (1, True)
    assert call(capsys, "run", tmp_path / "none.yaml")[0] == 1
