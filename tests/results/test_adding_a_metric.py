"""What a metric costs: one file outside the tree computes it, and everything that shows or holds metrics has it."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from harness.base.errors import InputError
from harness.results import catalogue, comparison, summary
from harness.results.catalogue import declared
from harness.results.metric import Metric

PACKAGE = '''
"""The largest part of the cluster that was in use at once."""

from harness.base.extensions import Extension
from harness.results.metric import Metric

EXTENSION = Extension(name="peak", metrics=("peak_package:METRICS",))


def most_held(curves):
    return curves.dominant.sum(axis=1).max(initial=0.0)


def longer_than_a_minute(jobs):
    return (jobs["completion_s"] > 60.0).mean()


METRICS = (
    Metric("most_held", "most held at once", "", "higher", 3, 0.01, compute=most_held, in_comparison=True),
    Metric("queues.long_jobs", "jobs of more than a minute", "", "lower", 3, 0.01, of_jobs=longer_than_a_minute),
)
'''
#: One queue of two uses half of a cluster.
HALF = """
experiment: half
cluster: {nodes: [{count: 2, memory_mb: 8192, vcores: 8}]}
queues: {a: {weight: 1}, b: {weight: 1}}
workloads:
  a: {inline: {kind: sequence, submission: {every_s: 5}, am: {memory_mb: 1024}, task: {demand: {memory_mb: 1024},
      duration: {constant_s: 9}}, jobs: [{name: j, maps: 7}]}}
policies: [fair, fifo]
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An installed package of one module, as `pip` leaves one."""
    (tmp_path / "peak_package.py").write_text(PACKAGE)
    metadata = tmp_path / "peak_package-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: peak-package\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text("[yarnfair.systems]\npeak = peak_package:EXTENSION\n")
    (tmp_path / "half.yaml").write_text(HALF)
    return tmp_path


def yarnfair(folder: Path, *arguments: str, code: int = 0) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "harness", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder), "XDG_STATE_HOME": str(folder / "state")},
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout


def test_a_metric_is_one_file(folder: Path) -> None:
    printed = yarnfair(folder, "run", "half.yaml", "--out", "runs", "--jobs", "1")
    (row,) = [line for line in printed.splitlines() if line.startswith("most held at once")]
    assert row.split()[-2:] == ["0.500", "0.500"]
    assert "most held at once" in (folder / "runs" / "report.html").read_text()
    found = json.loads(yarnfair(folder, "sql", "select most_held from runs", "runs/fair", "runs/fifo", "--json"))
    assert found["rows"] == [{"most_held": 0.5}] * 2
    by_queue = json.loads((folder / "runs" / "fair" / "summary.json").read_text())["queues"]
    assert {queue: values["long_jobs"] for queue, values in by_queue.items()} == {"root.a": 0.0, "root.b": None}
    yarnfair(folder, "baseline", "runs/fair", "-o", "recorded.json", "--json")
    file = folder / "runs" / "fair" / "summary.json"
    file.write_text(file.read_text().replace('"most_held": 0.5', '"most_held": 0.3'))
    checked = json.loads(yarnfair(folder, "check", "runs/fair", "--baseline", "recorded.json", "--json", code=3))
    assert [(one["metric"], one["verdict"]) for one in checked["regressions"]] == [("most_held", "worse")]


JOBS = pd.DataFrame({"queue": ["root.a", "root.b", "root.a"], "started_s": [70.0, 5.0, 10.0]})


def computed(monkeypatch: pytest.MonkeyPatch, key: str = "own", **rules: Any) -> dict[str, Any]:
    monkeypatch.setattr(summary, "metrics", lambda: (Metric(key, "own", "", "higher", 3, **rules),))
    found: dict[str, Any] = {"makespan_s": 9.0, "queues": {"root.a": {"jobs": 2}, "root.b": {"jobs": 1}}}
    summary._add_computed(found, None, JOBS)  # type: ignore[arg-type]
    return found


def test_a_rule_that_has_no_value_or_fails_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    assert computed(monkeypatch, compute=lambda _: np.float64(0.25))["own"] == 0.25
    # JSON has no NaN.
    assert computed(monkeypatch, compute=lambda _: np.nan)["own"] is None
    assert computed(monkeypatch, compute=lambda _: None)["own"] is None
    with pytest.raises(InputError, match="its rule fails: ZeroDivisionError"):
        computed(monkeypatch, compute=lambda _: 1 / 0)
    for taken in ("makespan_s", "queues.own"):
        with pytest.raises(InputError, match="cannot compute this key"):
            computed(monkeypatch, taken, compute=lambda _: 1.0)


def test_a_rule_over_jobs_is_of_the_run_or_of_each_queue(monkeypatch: pytest.MonkeyPatch) -> None:
    def waited(jobs: pd.DataFrame) -> float:
        return float((jobs["started_s"] > 60.0).mean())

    assert computed(monkeypatch, of_jobs=waited)["own"] == pytest.approx(1 / 3)
    of_queues = computed(monkeypatch, "queues.own", of_jobs=waited)["queues"]
    assert {queue: values["own"] for queue, values in of_queues.items()} == {"root.a": 0.5, "root.b": 0.0}
    for taken in ("makespan_s", "queues.jobs", "queues.own.deep", "own.deep"):
        with pytest.raises(InputError, match="cannot compute this key"):
            computed(monkeypatch, taken, of_jobs=waited)
    with pytest.raises(InputError, match="has both"):
        computed(monkeypatch, compute=lambda _: 1.0, of_jobs=waited)


def test_other_kinds_of_experiments_keep_their_own_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    added = Metric("own", "own figure", "", "higher", 3, in_comparison=True)
    monkeypatch.setattr(comparison, "added_metrics", lambda: (added,))
    assert [one.key for one in comparison.with_added(comparison.YARN)][-1] == "own"
    other = (comparison.Measure("cost", "$", 2, "cost_dollars"),)
    assert comparison.with_added(other) is other


def test_a_table_takes_words_unit_and_digits_from_the_declaration() -> None:
    own = Metric("queues.peak_mb", "largest peak", "MiB", "lower", 1)
    shown = comparison.shown("queues.*.peak_mb", own=[own])
    assert (shown.title, shown.unit, shown.digits, shown.scale) == ("largest peak", "MiB", 1, 1.0)
    part = comparison.shown("utilisation.memory", title="memory", digits=0, percent=True)
    assert (part.title, part.unit, part.digits, part.scale) == ("memory", "%", 0, 100.0)
    with pytest.raises(KeyError, match=r"queues\.\*\.peak_mb"):
        comparison.shown("queues.*.peak_mb")


def test_no_table_repeats_what_a_metric_declares() -> None:
    """`Measure` is written out for figures that are declared nowhere; of all others there is one declaration."""
    repeated = []
    root = Path(comparison.__file__).parents[1]
    for path in root.rglob("*.py"):
        for call in ast.walk(ast.parse(path.read_text())):
            if isinstance(call, ast.Call) and ast.unparse(call.func) == "Measure":
                keys = [one.value for one in call.args if isinstance(one, ast.Constant) and isinstance(one.value, str)]
                repeated += [f"{path.relative_to(root)}: {key}" for key in keys[2:3] if is_declared(key)]
    assert not repeated, "write shown(KEY)"


def is_declared(key: str) -> bool:
    """Whether the core, or any system that is here, declares a metric."""
    try:
        declared(key, catalogue.added_metrics())
    except KeyError:
        return False
    return True
