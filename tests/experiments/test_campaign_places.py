"""Campaigns on real clusters, without one: turns, identities, estimates, a cluster that does not come up."""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from harness.experiments.campaign import run as runner
from harness.experiments.campaign.clusters import turn
from harness.experiments.campaign.executors import Processes, run_cell
from harness.experiments.campaign.spec import Cell, load_campaign
from harness.experiments.kind import Outcome
from harness.experiments.resolve import LoadedExperiment
from harness.results.runs import read_runs
from tests.experiments.campaigning import EXPERIMENT, Scripted, call

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
    given: dict[str, LoadedExperiment] = {}
    start = executor.start

    def noting(cell: Cell, experiment: LoadedExperiment, out: Path) -> None:
        start(cell, experiment, out)
        given[cell.id] = experiment
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
    (cell,) = (cell for cell in loaded.cells if cell.name == "tiny fair lab")
    told = run_cell(given[cell.id], cell, tmp_path / "one", runner=lambda *_: Outcome({"queues": {}}))
    assert told.exit_code == 0
    assert json.loads((cell.directory(tmp_path / "one") / "run.json").read_text())["place"] == "lab"


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
    monkeypatch.setattr("harness.clusters.local._java_words", lambda: "another Java")
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


@pytest.mark.java
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
