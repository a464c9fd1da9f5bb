"""Figures for print: those of the page, the same bytes for the same runs, their data beside them."""

from __future__ import annotations

import csv
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import matplotlib
import numpy as np
import pytest

from harness.base.errors import CallError, InputError
from harness.cli import main
from harness.report import render_report
from harness.report.curves import Curve
from harness.report.figures import Group, Legend
from harness.report.printed import figures_of, picture, table_of, write_figure
from harness.report.svg import BarChart, Line, LineChart, cut_words


def call(*arguments: object) -> int:
    with pytest.raises(SystemExit) as caught:
        main([str(one) for one in arguments])
    return int(caught.value.code or 0)


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines))


def lines(*named: tuple[str, list[float]], **more: object) -> Group:
    """A group of one chart with these curves over 0, 1, 2 ..."""
    made = [Line(name, Curve(np.arange(len(y), dtype=float), np.array(y)), k) for k, (name, y) in enumerate(named)]
    legend = Legend([(name, k) for k, (name, _) in enumerate(named)])
    return Group("made", "Made up", "For a test.", legend, [LineChart("one", "time (s)", "height", made, **more)])  # type: ignore[arg-type]


def test_a_notebook_shows_a_figure(tmp_path: Path) -> None:
    group = lines(("a", [0.0, 2.0, 1.0]), ("b", [1.0, 1.0, 3.0]))
    shown = picture(group, 120.0)
    assert repr(shown) == "<figure: Made up>"
    written = write_figure(group, tmp_path / "fig.svg", 120.0).figure
    assert shown._repr_svg_().encode() == written.read_bytes()


def test_every_chart_of_the_page_is_a_figure(three_policies: list[Path], hierarchy: list[Path], tmp_path: Path) -> None:
    for runs in (three_policies, hierarchy):
        page = render_report(runs, tmp_path / "report.html").path.read_text(encoding="utf-8")
        found = figures_of(runs).groups
        # The first screen's chart has its figures in the table beside it.
        charts = page.count("<figcaption>") - page.count("<figcaption>Mean completion time")
        assert list(found) == re.findall(r'<section id="([^"]+)" class="figures">', page)
        assert sum(len(group.charts) for group in found.values()) == charts > 10


def test_the_data_beside_a_figure_are_what_is_drawn(three_policies: list[Path], tmp_path: Path) -> None:
    # Facebook and Purdue hold 1.4 and 1.2 of their shares, the others 0.8 and 0.6, all the time.
    for figure, name, end in (("benefit", "sharing benefit \u03a8", 0.6), ("loss", "sharing loss \u03a9", -0.6)):
        group = figures_of(three_policies).chosen(figure, ["fair"])
        rows = rows_of(write_figure(group, tmp_path / "fig.svg").data)
        assert [float(row["y"]) for row in rows if float(row["x"]) == 1000.0] == [pytest.approx(end)]
        assert {(row["chart"], row["x_quantity"], row["y_quantity"]) for row in rows} == {("fair", "time (s)", name)}
    bars = rows_of(write_figure(figures_of(three_policies).chosen("speed-up"), tmp_path / "bars.svg").data)
    of_fair = [row for row in bars if row["series"] == "fair" and row["chart"].startswith("mean")]
    assert [(row["x"], float(row["y"])) for row in of_fair] == [
        ("facebook", 1.4), ("purdue", 1.2), ("spark", 0.8), ("tpch", 0.6)
    ]  # fmt: skip


def test_a_gap_has_no_number_and_points_beyond_the_axis_have_theirs() -> None:
    text = table_of(lines(("a", [1.0, float("nan"), 1 / 3]), y_range=(0.0, 0.5)))
    assert text.splitlines()[1:] == [
        "one,a,time (s),0.0,height,1.0,,", "one,a,time (s),1.0,height,,,",
        "one,a,time (s),2.0,height,0.3333333333333333,,",
    ]  # fmt: skip


@pytest.mark.parametrize("kind", ["pdf", "svg", "png"])
def test_the_same_runs_give_the_same_bytes(kind: str, three_policies: list[Path], tmp_path: Path) -> None:
    out, again = tmp_path / f"a.{kind}", tmp_path / f"b.{kind}"
    assert call("plot", *three_policies, "--figure", "policies", "-o", out) == 0
    (tmp_path / "matplotlibrc").write_text("font.size: 20\nsvg.hashsalt: other\naxes.facecolor: red\n")
    environment = os.environ | {"PYTHONHASHSEED": "7", "MATPLOTLIBRC": str(tmp_path), "SOURCE_DATE_EPOCH": "86400"}
    done = subprocess.run(
        [sys.executable, "-m", "harness", "plot", *three_policies, "--figure", "policies", "-o", again],
        env=environment, check=True, capture_output=True, text=True,
    )  # fmt: skip
    assert out.read_bytes() == again.read_bytes()
    assert out.with_suffix(".csv").read_bytes() == again.with_suffix(".csv").read_bytes()
    assert not done.stderr


def test_a_figure_leaves_the_callers_own_settings_alone(three_policies: list[Path], tmp_path: Path) -> None:
    with matplotlib.rc_context({"font.size": 19.0}):
        write_figure(figures_of(three_policies).chosen("policies"), tmp_path / "fig.png")
        assert matplotlib.rcParams["font.size"] == 19.0


def test_a_figure_has_the_width_that_is_asked_for(three_policies: list[Path], tmp_path: Path) -> None:
    def width_mm(*options: object) -> float:
        assert call("plot", *three_policies, "--figure", "loss", *options, "-o", tmp_path / "fig.svg") == 0
        found = re.search(r'width="([\d.]+)pt"', (tmp_path / "fig.svg").read_text(encoding="utf-8"))
        assert found is not None
        return float(found[1]) / 72 * 25.4

    assert width_mm() == pytest.approx(174, abs=0.1)
    assert width_mm("--chart", "ltrf") == pytest.approx(84, abs=0.1)
    assert width_mm("--width", 120) == pytest.approx(120, abs=0.1)


def test_text_is_drawn_as_it_stands(tmp_path: Path) -> None:
    """Neither as a formula, nor left out of the legend; the SVG has each text as a comment beside its outlines."""
    group = lines(("_private", [1.0, 2.0]), ("cost $x_1$ in $", [2.0, 1.0]), levels=((1.5, "half"),))
    text = write_figure(group, tmp_path / "fig.svg").figure.read_text(encoding="utf-8")
    said = re.findall(r"<!-- (.*?) -->", text)
    assert {"_private", "cost $x_1$ in $", "half", "time (s)", "height"} <= set(said)
    assert "Made up" in text


def test_a_sign_that_the_font_lacks_is_said(tmp_path: Path) -> None:
    written = write_figure(lines(("\u4e2d", [1.0, 2.0])), tmp_path / "fig.png")
    assert any("CJK" in remark for remark in written.remarks)


def test_a_chart_says_where_it_is_cut(tmp_path: Path) -> None:
    def words(*y: float, **more: object) -> str:
        chart = lines(("a", list(y)), **more).charts[0]
        assert isinstance(chart, LineChart)
        return cut_words(chart)

    assert words(0.0, 12.34, 1.0, y_range=(0.0, 2.0)) == "values reach 12.3"
    assert words(-1.0, 0.5, y_range=(0.0, 2.0)) == "values go down to \u22121"
    assert words(-1.0, 3.0, y_range=(0.0, 2.0)) == "values reach from \u22121 to 3"
    assert words(0.0, 2.0, float("nan"), y_range=(0.0, 2.0)) == ""
    assert words(0.0, 1.0, 9.0, y_range=(0.0, 2.0), x_range=(0.0, 1.0)) == ""  # what is not shown is not cut
    assert words(0.0, 9.0) == ""
    group = lines(("a", [0.0, 12.34]), y_range=(0.0, 2.0))
    text = write_figure(group, tmp_path / "fig.svg").figure.read_text(encoding="utf-8")
    assert "<!-- cut: values reach 12.3 -->" in text


def test_areas_bars_and_marks_of_any_size_are_drawn(tmp_path: Path) -> None:
    layer = Line("a", Curve(np.array([1.0, 2.0]), np.array([3.0, 4.0])), 0)
    many = [(f"queue {k}", k) for k in range(100)]
    charts: list[list[LineChart | BarChart]] = [
        [LineChart(title, "t", "%", own, levels=((100.0, "all"),), stacked=True)
         for title, own in (("areas", [layer]), ("none", []))],
        [BarChart("bars", "y", ["g", "h"], ["a"], [[None], [-2.0]])],
        [BarChart("many", "y", [name for name, _ in many], ["a"], [[1.0]] * 100)],
        [
            LineChart("marks", "x", "y", [Line("a", Curve(np.array([1.0, 10.0]), np.array([1.0, 2.0])), 0)],
                      x_scale="log", marks=True, moments=((3.0, "then"),)),
            LineChart("none", "x", "y", []),
            LineChart("hundred", "x", "y", [Line(n, Curve(np.arange(2.0), np.arange(2.0) + k), k) for n, k in many]),
        ],
    ]  # fmt: skip
    for k, own in enumerate(charts):
        for kind in ("pdf", "png"):
            written = write_figure(Group("g", "G", "", Legend(many), own), tmp_path / f"{k}.{kind}")
            assert written.figure.stat().st_size > 3000
            assert not written.remarks


def test_without_matplotlib_the_error_names_the_one_command_that_installs_it(
    three_policies: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After `make run` it named a path that is nowhere: /path/to/checkout."""
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    root = Path(__file__).resolve().parents[2]
    monkeypatch.setattr(sys, "prefix", str(root / ".venv"))
    with pytest.raises(InputError, match=rf"matplotlib.*; make -C {re.escape(str(root))} setup"):
        write_figure(figures_of(three_policies).chosen("policies"), tmp_path / "fig.svg")
    assert not list(tmp_path.glob("fig.*"))


def test_figures_are_listed_and_the_nearest_is_offered(
    three_policies: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call("plot", *three_policies) == 0
    assert "fairness-degree  Fairness degree of each queue (4 charts)" in capsys.readouterr().out
    assert call("plot", *three_policies, "--json") == 0
    listed = {one["figure"]: one for one in json.loads(capsys.readouterr().out)["figures"]}
    assert listed["weights"] == {
        "figure": "weights", "title": "Weights written by the controller", "charts": ["ltrf@outside"]
    }  # fmt: skip
    out = tmp_path / "fig.svg"
    assert call("plot", *three_policies, "--figure", "fairnes-degree", "-o", out) == 2
    assert "did you mean 'fairness-degree'?" in capsys.readouterr().err
    assert call("plot", *three_policies, "--figure", "weights", "--chart", "ltrf@outsid", "-o", out) == 2
    assert "did you mean 'ltrf@outside'?" in capsys.readouterr().err
    assert call("plot", *three_policies, "--figure", "weights", "-o", tmp_path / "fig.tiff") == 2
    assert "end it in .pdf, .svg, .png" in capsys.readouterr().err
    for wrong in (("--figure", "weights"), ("-o", out), ("--chart", "ltrf"), ("--width", 90)):
        assert call("plot", *three_policies, *wrong) == 2
    assert not list(tmp_path.glob("fig.*"))


def test_what_was_written_is_told(
    three_policies: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "deep" / "fig.pdf"
    assert call("plot", *three_policies, "--figure", "weights", "-o", out, "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["file"], told["data"]) == (str(out), str(out.with_suffix(".csv")))
    assert told["charts"] == ["ltrf@outside"]
    assert out.read_bytes().startswith(b"%PDF")
    assert b"CreationDate" not in out.read_bytes()


def test_curves_that_are_means_over_seeds_are_said_to_be(
    write_run: Callable[..., Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = [write_run("fair", "fair", seed=seed) for seed in (1, 2)]
    assert call("plot", *runs, "--figure", "loss", "-o", tmp_path / "fig.svg") == 0
    out, err = capsys.readouterr()
    caption = " ".join(out.split())
    assert "Courses over time are means over 2 seeds; the band around a curve is the 95 % interval" in caption
    assert not err, "what a caption says is no warning"


def test_a_name_and_a_place_that_cannot_be_are_one_line(three_policies: list[Path], tmp_path: Path) -> None:
    found = figures_of(three_policies)
    with pytest.raises(CallError, match="there are: speed-up, "):
        found.chosen("zzz")
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be written"):
        write_figure(found.chosen("policies"), tmp_path / "file" / "fig.svg")
