"""A table of a run that was truncated, damaged or removed makes the run invalid, for every command that reads it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from harness.results.runs import read_run
from harness.results.store import RunDirectory
from tests.results.conftest import call, summary_of

TABLES = ("jobs.parquet", "allocations.parquet", "decisions.jsonl")


def written(path: Path, seed: int) -> Path:
    """A finished run, as `yarnfair run` leaves it."""
    policy = {"name": "ltrf", "mode": "outside", "settings": {}}
    identity = {"variant": "ltrf", "policy": policy, "seed": seed, "backend": "sim", "hash": "0" * 16}
    run = RunDirectory(path, {**identity, "experiment": {"experiment": "made-up"}})
    for name in TABLES[:2]:
        run.write_table(name, pd.DataFrame({"value": range(5000)}))
    run.write_lines("decisions.jsonl", [{"time_s": float(at)} for at in range(5)])
    run.write_summary(summary_of())
    return RunDirectory.close(run.path, 0)


def truncated(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-7])


def flipped(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(bytes(data))


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("harm", [truncated, flipped, Path.unlink])
def test_the_run_is_invalid_and_the_file_is_named(
    name: str, harm: Callable[[Path], None], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`check` was green: it read summary.json alone."""
    for seed in (1, 2, 3):
        written(tmp_path / "runs" / str(seed), seed)
    baseline = tmp_path / "baseline.json"
    assert call(capsys, "baseline", tmp_path / "runs", "-o", baseline)[0] == 0
    assert call(capsys, "check", tmp_path / "runs", "--baseline", baseline, "--require-judged")[0] == 0
    harm(tmp_path / "runs" / "2" / name)
    code, out, err = call(capsys, "check", tmp_path / "runs", "--baseline", baseline)
    said = " ".join((out + err).split())
    assert code == 4
    assert name in said
    assert "run it again" in said
    assert call(capsys, "baseline", tmp_path / "runs", "-o", tmp_path / "new.json")[0] == 4
    if name != "decisions.jsonl":
        table = name.partition(".")[0]
        code, _, err = call(capsys, "sql", f"select count(*) from {table}", tmp_path / "runs")
        assert (code, name in err) == (1, True)
    code, _, err = call(capsys, "compare", tmp_path / "runs" / "1", tmp_path / "runs" / "2")
    assert (code, name in err) == (4, True)


def test_a_truncated_table_of_a_run_without_digests(tmp_path: Path) -> None:
    run = written(tmp_path / "run", 1)
    info = json.loads((run / "run.json").read_text())
    del info["files"]
    (run / "run.json").write_text(json.dumps(info))
    assert read_run(run).invalid() is None
    truncated(run / "jobs.parquet")
    found = read_run(run).invalid()
    assert found is not None
    assert "jobs.parquet is damaged" in found.reason


def test_resume_runs_a_damaged_run_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    arguments = ("run", "demo", "--policy", "fair", "--out", out, "--no-report", "--jobs", "1", "--resume")
    assert call(capsys, *arguments)[0] == 0
    (run,) = (path.parent for path in out.glob("*/run.json"))
    before = (run / "jobs.parquet").read_bytes()
    flipped(run / "jobs.parquet")
    assert read_run(run).invalid() is not None
    assert call(capsys, *arguments)[0] == 0
    assert read_run(run).invalid() is None
    assert (run / "jobs.parquet").read_bytes() == before


def test_a_copied_run_is_intact(tmp_path: Path) -> None:
    shutil.copytree(written(tmp_path / "run", 1), tmp_path / "copy")
    assert read_run(tmp_path / "copy").invalid() is None
