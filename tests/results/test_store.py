"""Run directories: readable at every moment, replaced whole, the same bytes for the same content."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pandas as pd
import pytest

from harness.base.errors import InputError
from harness.base.files import read_json, replace_file
from harness.results.store import RunDirectory
from harness.results.summary import add_speedups


def test_a_directory_is_marked_unfinished_until_it_is_closed(tmp_path: Path) -> None:
    directory = RunDirectory(tmp_path / "r", {"variant": "ltrf", "seed": 3})
    info = read_json(tmp_path / "r" / "run.json")
    assert (info["variant"], info["seed"], info["exit"], info["end"]) == ("ltrf", 3, None, None)
    assert info["versions"]["yarnfair"]
    directory.progress(time_s=12.5, jobs_done=2)
    assert read_json(tmp_path / "r" / "run.json")["progress"] == {"time_s": 12.5, "jobs_done": 2}
    RunDirectory.close(tmp_path / "r", 4, "2 job(s) failed")
    info = read_json(tmp_path / "r" / "run.json")
    assert (info["exit"], info["why"], "progress" in info) == (4, "2 job(s) failed", False)
    assert info["end"] >= info["start"]


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "summary.json"
    path.write_text("old")

    def fail(temporary: Path) -> None:
        temporary.write_text("half of the n")
        raise RuntimeError("the writer dies")

    with pytest.raises(RuntimeError):
        replace_file(path, fail)
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["summary.json"]


def test_a_file_that_cannot_be_written_is_named_itself(tmp_path: Path) -> None:
    path = tmp_path / "none" / "summary.json"
    with pytest.raises(InputError) as caught:
        replace_file(path, Path.touch)
    assert (caught.value.where, caught.value.what) == (str(path), "cannot be written: No such file or directory")


def test_numbers_that_json_lacks_become_null(tmp_path: Path) -> None:
    directory = RunDirectory(tmp_path, {})
    directory.write_summary({"a": math.nan, "b": [math.inf, 1.5], "c": {"d": -math.inf}})
    assert json.loads((tmp_path / "summary.json").read_text()) == {"a": None, "b": [None, 1.5], "c": {"d": None}}
    directory.write_lines("decisions.jsonl", [{"x": math.nan}, {"x": 1}])
    lines = (tmp_path / "decisions.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in lines] == [{"x": None}, {"x": 1}]


def test_the_same_table_gives_the_same_bytes(tmp_path: Path) -> None:
    table = pd.DataFrame({"time_s": [0.0, 1.0], "queue": pd.Categorical(["a", "b"])})
    one, two = RunDirectory(tmp_path / "1", {}), RunDirectory(tmp_path / "2", {})
    one.write_table("allocations.parquet", table)
    two.write_table("allocations.parquet", table)
    assert (one.path / "allocations.parquet").read_bytes() == (two.path / "allocations.parquet").read_bytes()


def test_a_new_run_takes_over_an_old_ones_directory_but_no_other(tmp_path: Path) -> None:
    directory = RunDirectory(tmp_path / "r", {"seed": 1})
    directory.write_summary({"x": 1})
    (tmp_path / "r" / ".summary.json.abc").write_text("left by a crash")
    RunDirectory(tmp_path / "r", {"seed": 2})
    assert [p.name for p in (tmp_path / "r").iterdir()] == ["run.json"]
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("!")
    with pytest.raises(InputError, match="not a run's"):
        RunDirectory(tmp_path / "mine", {})
    assert (tmp_path / "mine" / "thesis.tex").read_text() == "!"
    (tmp_path / "file").write_text("x")
    with pytest.raises(InputError):
        RunDirectory(tmp_path / "file", {})


@pytest.mark.parametrize("text", ["", "{", "[]", "\xff"])
def test_a_damaged_json_is_an_input_error(tmp_path: Path, text: str) -> None:
    (tmp_path / "run.json").write_bytes(text.encode("latin-1"))
    with pytest.raises(InputError, match=r"run\.json"):
        read_json(tmp_path / "run.json")


def summary(completion: float | None) -> dict[str, object]:
    queue = {"mean_completion_s": completion, "fairness_degree": 0.987, "speedup_over_static": None}
    return {
        "makespan_s": 4000.0,
        "sharing_loss": -0.5,
        "utilisation": {"memory": 0.9},
        "queues": {"root.Facebook": queue},
    }


def test_speed_up_is_static_over_own_mean_completion() -> None:
    ours = add_speedups(summary(50.0), summary(60.0))  # type: ignore[arg-type]
    assert ours["queues"]["root.Facebook"]["speedup_over_static"] == pytest.approx(1.2)
    for own, static in ((summary(None), summary(60.0)), (summary(50.0), None), (summary(50.0), summary(None))):
        assert add_speedups(own, static)["queues"]["root.Facebook"]["speedup_over_static"] is None  # type: ignore[arg-type]
