"""`report --trace`: sums as in summary.json, rows without overlaps, a file that is whole or not there."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from harness.base.errors import CallError, InputError
from harness.cli import main
from harness.report import trace as module
from harness.report.trace import write_trace

JOBS = pd.DataFrame(
    {
        "job": ["a", "b", "c", "d", "never submitted"],
        "queue": ["root.facebook"] * 3 + ["root.tpch"] * 2,
        "submitted_s": [0.0, 10.0, 50.0, 990.0, math.nan],
        "started_s": [5.0, 10.0, 55.5, math.nan, math.nan],
        "finished_s": [40.25, 60.0, 90.0, math.nan, math.nan],
        "failed": [False, True, False, False, False],
        "tasks": [3, 1, 2, 4, 5],
    }
)


def events_of(path: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))["traceEvents"]
    return found


@pytest.fixture
def run(write_run: Callable[..., Path]) -> Path:
    directory = write_run("ltrf@outside", "ltrf", mode="outside", since_s=(0, 20, 0, 0), weights=True)
    JOBS.to_parquet(directory / "jobs.parquet", index=False)
    return directory


def test_its_sums_are_those_of_the_summary(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(module, "_ROWS", 7)  # several batches
    with pytest.raises(SystemExit) as caught:
        main(["report", str(run), "--trace", str(tmp_path / "t.json"), "--json"])
    assert caught.value.code == 0
    events = events_of(tmp_path / "t.json")
    printed = json.loads(capsys.readouterr().out)
    assert (printed["events"], printed["bytes"]) == (len(events), (tmp_path / "t.json").stat().st_size)
    name = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
    last = {name[e["pid"]]: e["args"]["value"] for e in events if e["name"] == "accumulated"}
    for queue, own in json.loads((run / "summary.json").read_text())["queues"].items():
        assert last[queue] == own["resource_seconds"]
    slices = [e for e in events if e.get("cat") == "job"]
    states: dict[str, list[str]] = defaultdict(list)
    for e in slices:
        states[name[e["pid"]]].append(e["args"]["state"])
    assert states == {"root.facebook": ["ended", "failed", "ended"], "root.tpch": ["open"]}
    ended = [e["dur"] / 1e6 for e in slices if e["args"]["state"] == "ended"]
    assert sum(ended) / len(ended) == (40.25 + 40.0) / 2
    assert [e["dur"] / 1e6 for e in slices if e["args"]["state"] == "open"] == [10.0]
    assert [e["dur"] / 1e6 for e in events if e["name"] == "waits"] == [5.0, 5.5, 10.0]
    decisions = [e for e in events if e.get("cat") == "decision"]
    assert [(e["name"], e["ts"]) for e in decisions] == [("write", 1e6), ("keep", 2e6)]
    assert decisions[0]["args"]["reason"] == "facebook is owed 3 GB·s"
    # What a queue holds, as steps over time, gives the integral again.
    held = [(e["ts"] / 1e6, e["args"]["value"]) for e in events if e["name"] == "allocated (MiB)" and e["pid"] == 3]
    steps = zip(held, [*held[1:], (1000.0, 0)], strict=True)
    assert sum((then - now) * mb for (now, mb), (then, _) in steps) == pytest.approx(last[name[3]])


def test_jobs_that_overlap_lie_in_rows_of_their_own(run: Path, tmp_path: Path) -> None:
    write_trace(run, tmp_path / "t.json")
    rows: dict[tuple[int, int], list[tuple[float, float]]] = defaultdict(list)
    for e in events_of(tmp_path / "t.json"):
        if e.get("cat") == "job":
            rows[e["pid"], e["tid"]].append((e["ts"], e["ts"] + e["dur"]))
    assert sorted(len(row) for row in rows.values()) == [1, 1, 2]
    assert all(row[k][1] <= row[k + 1][0] for row in rows.values() for k in range(len(row) - 1))


def test_the_integral_ends_with_the_makespan(write_run: Callable[..., Path], tmp_path: Path) -> None:
    run = write_run("fair", "fair", summary={"makespan_s": 499.5})
    write_trace(run, tmp_path / "t.json")
    assert max(e["ts"] for e in events_of(tmp_path / "t.json") if e["name"] == "accumulated") == 500e6


def test_a_damaged_run_leaves_what_was_there(run: Path, tmp_path: Path) -> None:
    out = tmp_path / "t.json"
    out.write_text("as it was")
    (run / "jobs.parquet").write_bytes(b"PAR1")
    with pytest.raises(InputError, match=r"jobs\.parquet: not a readable parquet file"):
        write_trace(run, out)
    assert out.read_text() == "as it was"


def test_one_run_of_queues_is_asked_for(three_policies: list[Path], tmp_path: Path) -> None:
    with pytest.raises(CallError, match=r"a trace is of one run, and 4 are here; give one: fair-1,"):
        write_trace(three_policies[0].parent, tmp_path / "t.json")
    info = json.loads((three_policies[0] / "run.json").read_text())
    info["experiment"]["kind"] = "vectors"
    (three_policies[0] / "run.json").write_text(json.dumps(info))
    with pytest.raises(InputError, match="no trace of runs of kind vectors"):
        write_trace(three_policies[0], tmp_path / "t.json")
    assert not (tmp_path / "t.json").exists()


@pytest.mark.parametrize("more", [("another",), ("-o", "page.html")])
def test_a_page_beside_it_is_a_wrong_call(more: tuple[str, ...], run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["report", str(run), "--trace", "t.json", *more])
    assert caught.value.code == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "--trace takes one RUN and no -o" in line
