"""Experiments of MR-clusters: files that load, run directories, the command, what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest
import yaml

from harness.base.documents import YamlDocument, read_yaml
from harness.cli import main
from harness.experiments.resolve import experiment_path
from harness.experiments.selection import Selection
from harness.systems.fawkes.experiment import load_mr, mr_variants
from harness.systems.fawkes.spec import KINDS, MRExperiment, jobs_of_cluster, read_applications

ROOT = Path(__file__).resolve().parents[3]
FILES = [
    path
    for path in sorted((ROOT / "experiments").rglob("*.yaml"))
    if yaml.safe_load(path.read_text()).get("kind") in KINDS
]
SMALL = {
    "kind": "mr-clusters",
    "experiment": "small",
    "nodes": 9,
    "settings": {"period": 60, "psi": 0.3},
    "clusters": {
        "a": {"core": 3, "submit": [{"application": "WC", "size_gb": 1, "count": 12}]},
        "b": {"core": 3, "data_gb": 3, "submit": [{"application": "AH", "size_gb": 5}]},
    },
    "policies": ["fawkes-none", {"policy": "fawkes-ru", "growth": "transient"}],
}


def write(tmp_path: Path, **changes: object) -> str:
    path = tmp_path / "small.yaml"
    path.write_text(yaml.safe_dump({**SMALL, **changes}, sort_keys=False))
    return str(path)


def mr_document(name: str) -> YamlDocument | None:
    document = read_yaml(experiment_path(name))
    return document if document.data.get("kind") in KINDS else None


def call(*arguments: str) -> int:
    with pytest.raises(SystemExit) as stop:
        main(["run", *arguments])
    return int(str(stop.value.code or 0))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_experiment_that_the_project_brings_loads(path: Path) -> None:
    document = mr_document(path.stem)
    assert document is not None
    loaded = load_mr(document)
    assert loaded.name == path.stem
    assert mr_variants(loaded)


def test_the_papers_numbers_of_jobs() -> None:
    """Table 2: 165, 188 and 555 jobs (WKLD-D), 359, 26 and 559 (WKLD-E); tasks about 3 and 8 to 1 (section 7.3)."""
    for name, counts, ratio in (("fawkes-d", [165, 188, 555], 3), ("fawkes-e", [359, 26, 559], 8)):
        document = mr_document(name)
        assert document is not None
        loaded = load_mr(document)
        assert isinstance(loaded.spec, MRExperiment)
        constants = loaded.spec.constants.constants()
        jobs = [jobs_of_cluster(loaded.known, c, 1, n) for n, c in loaded.spec.clusters.items()]
        assert [len(own) for own in jobs] == counts
        tasks = [
            sum(j.profile.maps(j.input_gb, constants) + j.profile.reduces(j.input_gb) for j in own) for own in jobs
        ]
        assert ratio * 0.75 <= max(tasks) / min(tasks) <= ratio * 1.35


def test_btworld_is_14_queries_of_26_jobs_with_13_sizes() -> None:
    known = read_applications(None, read_yaml(ROOT / "experiments" / "papers" / "fawkes" / "fawkes-d.yaml"))
    workflow = known.applications["BT"].jobs
    assert len(workflow) == 26
    assert len({name.partition("-")[0] for name in workflow}) == 14
    assert len({job.part for job in workflow.values()}) == 13
    outputs = {known.profiles[job.profile].output for job in workflow.values()}
    assert (min(outputs), max(outputs)) == (1e-6, 100)


def test_a_run_leaves_directories_and_one_document(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, out = write(tmp_path), tmp_path / "out"
    assert call(path, "--out", str(out), "--json") == 0
    document = json.loads(capsys.readouterr().out)
    assert [run["variant"] for run in document["runs"]] == ["fawkes-none", "fawkes-ru,growth=transient"]
    assert document["runs"][1]["policy"]["settings"] == {"period": 60, "psi": 0.3}
    for run in document["runs"]:
        folder = Path(run["directory"])
        assert json.loads((folder / "run.json").read_text())["exit"] == 0
        summary = json.loads((folder / "summary.json").read_text())
        assert summary == run["summary"]
        assert {name: queue["jobs"] for name, queue in summary["queues"].items()} == {"a": 12, "b": 2}
        assert all(queue["failed"] == 0 for queue in summary["queues"].values())
        jobs = pd.read_parquet(folder / "jobs.parquet")
        assert len(jobs) == 14
        assert (jobs["slowdown"] > 0.8).all()
        assert summary["mean_slowdown"] == pytest.approx(jobs["slowdown"].mean(), abs=1e-5)
        samples = pd.read_parquet(folder / "allocations.parquet")
        assert samples.groupby("time_s")["nodes"].sum().max() <= 9
        lines = [json.loads(line) for line in (folder / "decisions.jsonl").read_text().splitlines()]
        assert [line["time_s"] for line in lines] == sorted(line["time_s"] for line in lines)
    first, second = document["runs"]
    assert first["summary"]["reconfigurations"] == 0
    assert second["summary"]["makespan_s"] < first["summary"]["makespan_s"]


def test_the_comparison_fits_a_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(write(tmp_path), "--out", str(tmp_path / "o"), "--policy", "fawkes-eq", "--set", "tau=5") == 0
    *lines, report = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    assert report == f"report: {tmp_path / 'o' / 'report.html'}"
    assert lines[0].split() == ["fawkes-eq"]
    assert json.loads((tmp_path / "o" / "fawkes-eq" / "run.json").read_text())["policy"]["settings"]["tau"] == "5"


def test_layouts_stand_beside_their_reference(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "layouts.yaml"
    path.write_text(
        "{kind: mr-layouts, experiment: l, reference: core, submit: [{application: ST, size_gb: 10}],"
        " layouts: {core: {core: 4}, half: {core: 2, transient: 2}}}"
    )
    assert call(str(path), "--out", str(tmp_path / "o"), "--json") == 0
    core, half = json.loads(capsys.readouterr().out)["runs"]
    assert core["summary"]["applications"]["ST-10GB"]["over_reference"] == 1
    assert half["summary"]["applications"]["ST-10GB"]["over_reference"] > 1.2
    assert call(str(path), "--out", str(tmp_path / "o"), "--policy", "fawkes-td") == 2


@pytest.mark.parametrize(
    ("changes", "arguments", "code", "message"),
    [
        ({"nodes": 2}, (), 1, "wants 3 core nodes of 2"),
        ({"nods": 2}, (), 1, "unknown key"),
        ({"policies": ["ltrf"]}, (), 1, "does not divide nodes"),
        ({"policies": ["fawkes-td"]}, (), 1, "none of the policies has a setting 'psi'"),
        ({}, ("--policy", "ltrf"), 2, "does not divide nodes"),
        ({"applications": "nowhere.yaml"}, (), 1, "cannot be read"),
        ({"clusters": {"a": {"core": 1, "submit": [{"application": "XX"}]}}}, (), 1, "no application 'XX'"),
        ({}, ("--set", "psy=1"), 2, "setting 'psy'"),
        ({}, ("--policy", "fawkes-xx"), 2, "no policy 'fawkes-xx'"),
        ({}, ("--backend", "local"), 2, "backend"),
        ({"time_limit_s": 60}, (), 5, "not ended after 60 s"),
        ({"sample_s": 61}, (), 1, "small.yaml:24: sample_s is 61, fawkes-none's period 60 s"),
        ({}, ("--set", "period=5"), 2, "--set: sample_s is 10, fawkes-none's period 5 s"),
    ],
)
def test_what_is_refused(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    changes: dict[str, object],
    arguments: tuple[str, ...],
    code: int,
    message: str,
) -> None:
    assert call(write(tmp_path, **changes), "--out", str(tmp_path / "o"), *arguments) == code
    line = capsys.readouterr().err.splitlines()[-1]
    assert line.startswith("yarnfair: ")
    assert message in line


def test_a_policy_that_the_file_uses_twice_is_both(tmp_path: Path) -> None:
    uses = ["fawkes-none", "fawkes-td", {"policy": "fawkes-td", "growth": "transient"}]
    uses.append({"policy": "fawkes-td", "settings": {"tau": 5}, "name": "soon"})
    loaded = load_mr(read_yaml(Path(write(tmp_path, policies=uses, settings={}))))
    names = [variant.name for variant in mr_variants(loaded, Selection(["fawkes-td"]))]
    assert names == ["fawkes-td", "fawkes-td,growth=transient", "soon"]
    assert [variant.settings for variant in mr_variants(loaded, Selection(["soon", "fawkes-eq"]))] == [{"tau": 5}, {}]


def test_jobs_that_were_never_submitted_have_failed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """b is still loading its data when the time is over."""
    assert call(write(tmp_path, time_limit_s=20), "--out", str(tmp_path / "o"), "--json") == 5
    queues = json.loads(capsys.readouterr().out)["runs"][0]["summary"]["queues"]
    assert {name: (queue["jobs"], queue["failed"]) for name, queue in queues.items()} == {"a": (12, 12), "b": (2, 2)}
