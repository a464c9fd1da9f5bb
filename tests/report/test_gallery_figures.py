"""`plot --figure` of the papers' figures: from runs, from a record, or the one command that makes them."""

from __future__ import annotations

import csv
import io
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.base.errors import InputError
from harness.base.stats import half_width_95
from harness.cli import main
from harness.report.gallery import PANELS, command_of, gallery_figure
from harness.report.printed import figures_of
from harness.report.svg import BarChart
from studies.from_runs import result
from studies.recipes import REAL, SIMULATED

ROOT = Path(__file__).resolve().parents[2]
Write = Callable[..., Path]
LEAVES = tuple(f"root.{name}" for name in ("Facebook", "Purdue", "TPC-H", "Spark"))


def call(*arguments: object) -> int:
    with pytest.raises(SystemExit) as caught:
        main([str(one) for one in arguments])
    return int(caught.value.code or 0)


@pytest.fixture
def ltyarn_runs(write_run: Write) -> Path:
    """Two seeds of LTYARN's two policies; folder of the run directories."""
    for seed, lost in ((1, -0.1), (2, -0.3)):
        for name, policy, factor in (("fair", "fair", 1.0), ("ltyarn", "ltrf", 0.1)):
            path = write_run(
                f"{name},seed={seed}",
                policy,
                seed=seed,
                leaves=LEAVES,
                summary={"sharing_loss": lost * factor, "last_loss_s": 5.0},
            )
    return path.parent


def chart_of(name: str, *paths: Path) -> BarChart:
    (chart,) = gallery_figure(name, paths).charts
    assert isinstance(chart, BarChart)
    return chart


def test_a_figure_is_drawn_from_runs_with_the_interval_over_their_seeds(ltyarn_runs: Path, tmp_path: Path) -> None:
    out = tmp_path / "fig.svg"
    assert call("plot", ltyarn_runs, "--figure", "ltyarn-7", "-o", out) == 0
    assert out.read_text(encoding="utf-8").startswith("<?xml")
    rows = list(csv.DictReader(io.StringIO(out.with_suffix(".csv").read_text(encoding="utf-8"))))
    assert [(row["series"], row["x"], float(row["y"])) for row in rows] == [
        ("ours", "memoryless", pytest.approx(0.2)),
        ("ours", "LTYARN", pytest.approx(0.02)),
    ]
    half = half_width_95([0.1, 0.3])
    assert float(rows[0]["y_low_95"]) == pytest.approx(0.2 - half, abs=1e-3)
    assert "4 runs in" in gallery_figure("ltyarn-7", [ltyarn_runs]).text
    assert "2 seeds each" in gallery_figure("ltyarn-7", [ltyarn_runs]).text


def test_the_report_s_list_has_the_papers_figures_that_the_runs_give(ltyarn_runs: Path) -> None:
    assert {"ltyarn-7", "ltyarn-7-degree", "ltyarn-8"} <= set(figures_of([ltyarn_runs]).groups)


def test_runs_and_the_record_of_them_give_the_same_bars(ltyarn_runs: Path, tmp_path: Path) -> None:
    record = tmp_path / "ltyarn.json"
    for folder in ltyarn_runs.iterdir():
        info = json.loads((folder / "run.json").read_text())
        info["capacity_mb"] = 4 * 59 * 1024
        (folder / "run.json").write_text(json.dumps(info))
    record.write_text(json.dumps(result([ltyarn_runs])))
    for name in ("ltyarn-7", "ltyarn-7-degree", "ltyarn-8"):
        drawn, kept = chart_of(name, ltyarn_runs), chart_of(name, record)
        assert drawn.values == kept.values
        assert drawn.half_widths == kept.half_widths


@pytest.mark.parametrize("name", sorted(PANELS))
def test_every_figure_of_the_gallery_is_drawn_from_its_committed_record(name: str) -> None:
    panel = PANELS[name]
    chart = chart_of(name, ROOT / "docs" / "records" / f"{panel.record}.json")
    assert chart.groups == panel.groups
    assert list(chart.series) == panel.series
    assert len(chart.values) == len(panel.groups)


@pytest.mark.parametrize("name", sorted(PANELS))
def test_the_command_that_an_error_names_is_the_record_s_own(name: str) -> None:
    record, command = PANELS[name].record, command_of(name)
    if command.startswith("yarnfair run "):
        assert SIMULATED[record].command(record).startswith(f"{command} && ")
    elif command.startswith("make records ONLY="):
        assert SIMULATED[record].command(record).startswith("python -m studies.")
        assert command == f"make records ONLY={record}"
    else:
        assert record in REAL


def test_with_nothing_there_the_error_names_the_one_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert call("plot", "--figure", "ltyarn-7", "-o", "fig.pdf") == 1
    assert "make them: yarnfair run ltyarn --seed 1-10 --no-report --out runs/ltyarn" in capsys.readouterr().err
    assert call("plot", "--figure", "order-3.4", "-o", "fig.pdf") == 1
    assert "make them: make records ONLY=ordering-greedy" in capsys.readouterr().err
    assert call("plot", "--figure", "ltyarn-9", "-o", "fig.pdf") == 2
    assert "did you mean 'ltyarn-" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_without_a_run_the_newest_of_runs_is_drawn_and_then_a_record(
    ltyarn_runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "place"
    (place / "docs" / "records").mkdir(parents=True)
    shutil.copy(ROOT / "docs" / "records" / "ltyarn.json", place / "docs" / "records")
    monkeypatch.chdir(place)
    assert "the record docs/records/ltyarn.json, made by `yarnfair run ltyarn" in gallery_figure("ltyarn-7").text
    for name, changed in (("older", 1000), ("newer", 2000)):
        shutil.copytree(ltyarn_runs, place / "runs" / name)
        for file in (place / "runs" / name).glob("*/run.json"):
            os.utime(file, (changed, changed))
    (place / "runs" / "notes.txt").write_text("no run")
    assert "4 runs in runs/newer" in gallery_figure("ltyarn-7").text


def test_other_runs_and_runs_that_lack_a_variant_are_one_line(write_run: Write, ltyarn_runs: Path) -> None:
    other = write_run("ltrf", "ltrf", experiment="mine")
    with pytest.raises(InputError, match=r"runs of ltyarn, not of mine.*make them: yarnfair run ltyarn"):
        gallery_figure("ltyarn-7", [other])
    for folder in ltyarn_runs.glob("ltyarn*"):
        shutil.rmtree(folder)
    shutil.rmtree(other)
    with pytest.raises(InputError, match=r"no 'ltyarn' in variants/ltyarn.*there: fair"):
        gallery_figure("ltyarn-7", [ltyarn_runs])


def test_the_papers_figures_are_listed_with_their_commands(capsys: pytest.CaptureFixture[str]) -> None:
    assert call("plot", "--json") == 0
    listed = {row["figure"]: row["command"] for row in json.loads(capsys.readouterr().out)["figures"]}
    assert set(listed) == set(PANELS)
    assert listed["dynamicmr-4.10"] == "make records ONLY=dynamicmr-slots"
