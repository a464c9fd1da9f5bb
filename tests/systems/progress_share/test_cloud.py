"""Experiments of computing rates and of pools: from the file to run directories and the comparison."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from harness.cli import main
from harness.model.data import data_path

RATES = """
kind: computing-rates
experiment: small
configurations:
  one: {n1: 4}
  two: {n1: 2, n2: 2}
jobs:
  A: {tasks: 40, seconds: 10, sigma: 0.3, rates: {n1: 1, n2: 5}}
  B: {tasks: 40, seconds: 10, sigma: 0.3, rates: {n1: 1, n2: 1}}
policies: [fair, progress-share]
seed: [1, 2]
"""


def call(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as stop:
        main(list(arguments))
    out = capsys.readouterr()
    return int(stop.value.code or 0), out.out, out.err


def test_a_long_name_is_whole_and_has_a_line_of_its_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    policy = "{policy: progress-share, settings: {guarantee: true}}"
    (tmp_path / "small.yaml").write_text(RATES.replace("[fair, progress-share]", f"[fair, {policy}]"))
    code, out, _ = call(capsys, "run", str(tmp_path / "small.yaml"), "--out", str(tmp_path / "runs"), "--no-report")
    lines = out.splitlines()
    whole = [line for line in lines if line.startswith("two,progress-share,guarantee=True ")]
    own = [re.sub(r"\s±\s*\S+", "", line).split() for line in whole]
    # The whole run, then each measure of the two jobs: never cut, with all its figures (and their intervals).
    assert (code, [len(row) for row in own]) == (0, [4, 3, 3, 3, 3])
    assert all(len(line) <= 80 for line in lines)
    assert any("±" in line for line in whole)


def test_progress_share_is_sooner_where_node_types_differ(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "small.yaml").write_text(RATES)
    code, out, _ = call(capsys, "run", str(tmp_path / "small.yaml"), "--out", str(tmp_path / "runs"), "--json")
    assert code == 0
    runs = {run["variant"]: run["summary"] for run in json.loads(out)["runs"]}
    assert len(runs) == 8
    for seed in (1, 2):
        # On slots that are all alike the two policies are one.
        assert _of(runs[f"one,fair,seed={seed}"]) == _of(runs[f"one,progress-share,seed={seed}"])
        fair, ours = runs[f"two,fair,seed={seed}"], runs[f"two,progress-share,seed={seed}"]
        assert ours["makespan_s"] < fair["makespan_s"]
        assert ours["sum_progress_share"] > fair["sum_progress_share"]
    run = json.loads((tmp_path / "runs" / "two,fair,seed=1" / "run.json").read_text())
    assert run["exit"] == 0
    assert run["policy"]["name"] == "fair"
    for name in ("summary.json", "jobs.parquet", "allocations.parquet"):
        assert (tmp_path / "runs" / "two,fair,seed=1" / name).is_file()
    code, out, _ = call(
        capsys, "run", str(tmp_path / "small.yaml"), "--out", str(tmp_path / "again"), "--policy", "fair", "--seed", "1"
    )
    assert code == 0
    assert "makespan (s)" in out
    assert max(len(line) for line in out.splitlines() if not line.startswith("report: ")) <= 80
    first, second = (
        tmp_path / part / name / "allocations.parquet"
        for part, name in (("runs", "two,fair,seed=1"), ("again", "two,fair"))
    )
    assert first.read_bytes() == second.read_bytes()


def _of(summary: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in summary.items() if key != "wall_s"}


def test_the_production_queries_of_figure_4(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = call(capsys, "run", "cloud-production", "--out", str(tmp_path / "runs"), "--json")
    assert code == 0
    runs = {run["variant"]: run["summary"] for run in json.loads(out)["runs"]}
    assert runs["5m1"]["overloaded"]
    assert not runs["9m1"]["overloaded"]
    assert runs["5m1+6c1"]["cost_dollars"] == pytest.approx(8.84)
    assert runs["driver"]["nodes"] == {"core": 5, "accelerators": 6}
    decision = json.loads((tmp_path / "runs" / "driver" / "decisions.jsonl").read_text())
    assert decision["accelerators"] == {"c1.medium": 6}


def test_the_driver_mixes_types_and_sizes_the_core_pool(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = call(capsys, "run", "cloud-mix", "--out", str(tmp_path / "runs"), "--json")
    assert code == 0
    runs = {run["variant"]: run["summary"] for run in json.loads(out)["runs"]}
    assert [round(runs[name]["cost_dollars"], 2) for name in ("one-type", "mix", "driver")] == [30.80, 22.62, 21.26]
    driver = runs["driver"]
    assert driver["meets_deadline"]
    # Three replicas of 1 TB on three quarters of 350 GB each: 12 nodes.
    assert driver["nodes"] == {"core": 12, "accelerators": 19}
    assert driver["types"]["core"] == "c1.medium"
    assert driver["accelerators"] == {"c1.medium": 15, "m2.2xlarge": 4}
    decision = json.loads((tmp_path / "runs" / "driver" / "decisions.jsonl").read_text())
    assert decision["core"] == {"c1.medium": 12}
    assert decision["accelerators"] == driver["accelerators"]


def test_the_core_pool_holds_what_comes_in_and_a_query_has_a_deadline_of_its_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = data_path("experiments", "papers", "progress-share", "cloud-mix.yaml").read_text()
    text = text.replace("data_gb: 1000,", "data_gb: 1000, incoming_gb_h: 25,")
    text = text.replace("webdataScan: {work_cu_h: 18.8,", "webdataScan: {work_cu_h: 18.8, deadline_h: 0.25,")
    (tmp_path / "more.yaml").write_text(text)
    code, out, _ = call(capsys, "run", str(tmp_path / "more.yaml"), "--out", str(tmp_path / "runs"), "--json")
    assert code == 0
    driver = next(run for run in json.loads(out)["runs"] if run["variant"] == "driver")["summary"]
    assert driver["meets_deadline"]
    # 1.1 TB at the end of the period's 4 hours, three times, on three quarters of 350 GB each.
    assert driver["nodes"]["core"] == 13
    # 18.8 CU hours in a quarter of an hour, on nodes of 13 CU: six, where four did by the others' deadline.
    assert driver["accelerators"]["m2.2xlarge"] == 6


@pytest.mark.parametrize(
    ("driver", "says"),
    [
        ("{types: [c1.medium], deadline_h: 2}", "either its core pool or what that must store"),
        (
            "{core: {m1.large: 5}, storage: {data_gb: 1, types: [m1.large]}, types: [c1.medium], deadline_h: 2}",
            "either",
        ),
        ("{storage: {data_gb: 1, types: [m9]}, types: [c1.medium], deadline_h: 2}", "no instance type 'm9'"),
        ("{storage: {data_gb: 1, types: [m1.large]}, types: [c1.medium], deadline_h: 2, kinds: 1}", "kinds goes with"),
    ],
)
def test_a_driver_has_a_core_pool_or_sizes_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], driver: str, says: str
) -> None:
    (tmp_path / "pools.yaml").write_text(
        POOLS.replace("{core: {m1.large: 5}, types: [c1.medium], deadline_h: 2}", driver)
    )
    code, _, error = call(capsys, "run", str(tmp_path / "pools.yaml"), "--out", str(tmp_path / "runs"))
    assert code == 1
    assert says in error
    assert error.count("\n") == 1


@pytest.mark.parametrize(
    ("change", "says", "code"),
    [
        (("n2: 5", "n9: 5"), "no rate on n2", 1),
        (("tasks: 40", "tasks: -1"), "tasks", 1),
        (("[fair, progress-share]", "[ltrf]"), "does not hand out slots", 2),
        (("[fair, progress-share]", "[fair, fair]"), "list a policy once", 1),
        (("seconds: 10", "seconds: .nan"), "seconds", 1),
    ],
)
def test_mistakes_are_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], change: tuple[str, str], says: str, code: int
) -> None:
    (tmp_path / "small.yaml").write_text(RATES.replace(*change))
    found, _, error = call(capsys, "run", str(tmp_path / "small.yaml"), "--out", str(tmp_path / "runs"))
    assert found == code
    assert says in error
    assert error.count("\n") == 1
    assert not (tmp_path / "runs").exists()


def test_policies_do_not_apply_to_pools(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, error = call(capsys, "run", "cloud-production", "--policy", "fair", "--out", str(tmp_path / "x"))
    assert code == 2
    assert "neither policies nor seeds" in error


POOLS = """
kind: cloud
experiment: pools
period_h: 4
queries:
  q: {work_cu_h: 60, memory_gb: 0.4}
configurations:
  5m1: {core: {m1.large: 5}}
driver: {core: {m1.large: 5}, types: [c1.medium], deadline_h: 2}
"""


def test_a_driver_that_can_never_serve_the_queries_is_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """m2.2xlarge has the memory for the query, what the driver may take has not."""
    changed = POOLS.replace("memory_gb: 0.4", "memory_gb: 8").replace(
        "5m1: {core: {m1.large", "5m2: {core: {m2.2xlarge"
    )
    (tmp_path / "pools.yaml").write_text(changed)
    code, _, error = call(capsys, "run", str(tmp_path / "pools.yaml"), "--out", str(tmp_path / "runs"))
    assert code == 1
    assert "no node of the driver's core pool and types can run some query" in error
    assert json.loads((tmp_path / "runs" / "driver" / "run.json").read_text())["exit"] == 1
    assert not (tmp_path / "runs" / "driver" / "summary.json").exists()


def test_a_time_that_rounds_to_nothing_has_no_speed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "pools.yaml").write_text(POOLS.replace("work_cu_h: 60", "work_cu_h: 0.000000001"))
    code, out, _ = call(capsys, "run", str(tmp_path / "pools.yaml"), "--out", str(tmp_path / "runs"))
    assert code == 0
    (line,) = [line for line in out.splitlines() if line.startswith("5m1 ")]
    assert line.split()[1:3] == ["0.00", "-"]


def test_a_policy_that_the_file_lists_twice_is_both(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    listed = "[fair, progress-share, {policy: progress-share, settings: {calibrate: true}}]"
    (tmp_path / "small.yaml").write_text(RATES.replace("[fair, progress-share]", listed))
    arguments = ("--policy", "progress-share", "--seed", "1", "--json", "--out", str(tmp_path / "runs"))
    code, out, _ = call(capsys, "run", str(tmp_path / "small.yaml"), *arguments)
    assert code == 0
    assert [run["variant"] for run in json.loads(out)["runs"]] == [
        *("one,progress-share", "one,progress-share,calibrate=True"),
        *("two,progress-share", "two,progress-share,calibrate=True"),
    ]
