"""The page about traces: its example lines are a trace, and its converter makes one that can be replayed."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import yarnfair
from harness.traces.formats import FORMATS
from harness.traces.recorded import read_trace

PAGE = (Path(__file__).resolve().parents[2] / "docs/reference/trace.md").read_text(encoding="utf-8")


def block(language: str) -> str:
    found = re.search(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)
    assert found is not None
    return found[1]


def test_the_example_lines_are_a_trace(tmp_path: Path) -> None:
    path = tmp_path / "example.jsonl"
    path.write_text(block("json"))
    found = read_trace(path)
    assert (len(found.jobs), len(found.notes)) == (6, 1)
    assert {job.kind for job in found.jobs} == {"mapreduce", "dag", "spark"}
    assert {job.detail for job in found.jobs} == {"tasks", "integrals"}
    assert any(job.after_job for job in found.jobs)
    assert found.header.nodes[0].count == 4, "those of the beginning"
    assert {line.change for line in found.header.changes or ()} == {"joined", "lost"}
    # Not only read: played.
    yarnfair.replay(path, ["fair"], out=tmp_path / "out", processes=1)
    assert json.loads((tmp_path / "out" / "fair" / "summary.json").read_text())["makespan_s"] > 100


def test_the_converter_makes_a_trace_of_a_csv(tmp_path: Path) -> None:
    rows = "job,queue,submit,tasks,seconds,mb\n1,a,5,4,30,1024\n2,b,0,8,20,2048\n"
    made = subprocess.run(
        [sys.executable, "-c", block("python")], input=rows, capture_output=True, text=True, check=True
    )
    path = tmp_path / "own.jsonl"
    path.write_text(made.stdout)
    jobs = {job.job: job for job in read_trace(path).jobs}
    assert (jobs["1"].queue, jobs["1"].submit_s, jobs["1"].stages[0].tasks_s) == ("root.a", 5, [30] * 4)
    assert (jobs["2"].stages[0].memory_mb, len(jobs["2"].stages[0].tasks_s)) == (2048, 8)


def test_the_table_names_every_reader() -> None:
    table = PAGE[PAGE.index("## Traces of other tools") : PAGE.index("## The format")]
    for reader in FORMATS:
        assert f"| {reader.name}" in table
