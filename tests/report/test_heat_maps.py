"""Heat maps over two settings: which runs make one, what is in a cell, and that a cell without a value says so."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import yarnfair
from harness.base.stats import half_width_95
from harness.report import render_report
from harness.report.charts import drawing
from harness.report.data import load_runs
from harness.report.figures import Group
from harness.report.heat_map import PALEST, WHITE_TEXT_FROM, HeatMap, colour_of
from harness.report.heat_maps import colour_range, heat_map_groups
from harness.report.printed import figures_of, table_of, write_figure

Write = Callable[..., Path]
HORIZONS = ("auto", 20.0, 640.0)
PERIODS = (1.0, 15.0)


def loss_of(horizon: object, period: float, seed: int) -> float:
    """The loss that a run is given: another one for each pair of settings and seed."""
    return (HORIZONS.index(horizon) + 1) * 100.0 + period + seed  # type: ignore[arg-type]


def grid(write: Write, seeds: tuple[int, ...] = (1,), **more: Any) -> dict[tuple[object, float], list[Path]]:
    """Runs of every pair of a horizon and a period, by the pair."""
    found: dict[tuple[object, float], list[Path]] = {}
    for seed in seeds:
        for horizon in HORIZONS:
            for period in PERIODS:
                settings = {"horizon_s": horizon, "period_s": period, **more}
                rest = ",".join(f"{name}={value}" for name, value in settings.items())
                path = write(
                    f"ltrf@outside,{rest},seed={seed}", "ltrf", "outside", settings=settings, seed=seed,
                    summary={"sharing_loss_integral": loss_of(horizon, period, seed)},
                )  # fmt: skip
                found.setdefault((horizon, period), []).append(path)
    return found


def groups(paths: dict[tuple[object, float], list[Path]]) -> list[Group]:
    return heat_map_groups(load_runs([path for own in paths.values() for path in own]))


def first_map(group: Group) -> HeatMap:
    chart = group.charts[0]
    assert isinstance(chart, HeatMap)
    return chart


def test_a_cell_is_the_mean_over_the_seeds_with_its_interval(write_run: Write) -> None:
    (group,) = groups(grid(write_run, (1, 2, 3)))
    assert group.title == "ltrf@outside over horizon (s) and control period (s)"
    assert "the mean over 3 seeds, with half of its 95 % interval" in group.text
    assert "dash" not in group.text
    chart = first_map(group)
    assert (chart.columns, chart.rows) == (["20", "640", "auto"], ["1", "15"])
    assert chart.values == [[203.0, 303.0, 103.0], [217.0, 317.0, 117.0]]
    for row in chart.half_widths:
        assert list(row) == pytest.approx([half_width_95([1, 2, 3])] * 3)
    assert chart.counts == [[3] * 3] * 2
    drawn = drawing(chart, "x")
    assert "<title>horizon (s) 20, control period (s) 1: 203 ± 2.48, mean of 3 runs</title>" in drawn
    assert ">203</text>" in drawn
    assert ">± 2.48</text>" in drawn


def test_a_cell_without_a_run_is_a_dash_on_the_page_and_empty_in_the_table(write_run: Write) -> None:
    paths = grid(write_run, (1, 2))
    del paths[20.0, 15.0]
    (group,) = groups(paths)
    assert "A dash: no finished run has these values" in group.text
    chart = first_map(group)
    assert chart.values[1][0] is None
    drawn = drawing(chart, "x")
    assert drawn.count('class="hn"') == 1
    assert "<title>horizon (s) 20, control period (s) 15: no value</title>" in drawn
    assert ">\u2013</text>" in drawn
    rows = list(csv.DictReader(io.StringIO(table_of(group))))
    (empty,) = (row for row in rows if row["chart"] == "sharing loss" and not row["y"])
    assert (empty["series"], empty["x_quantity"], empty["x"]) == ("control period (s) 15", "horizon (s)", "20")
    full = next(row for row in rows if row["x"] == "640" and row["series"] == "control period (s) 1")
    assert (full["y_quantity"], float(full["y"])) == ("sharing loss (s)", 302.5)
    half = half_width_95([302.0, 303.0])
    assert (float(full["y_low_95"]), float(full["y_high_95"])) == pytest.approx((302.5 - half, 302.5 + half))


def test_settings_that_are_varied_one_after_the_other_are_no_map(write_run: Write) -> None:
    """A row and a column of cells through one point: the curves over one setting show that, and a map is empty."""
    paths = grid(write_run)
    for pair in ((20.0, 15.0), (640.0, 15.0)):
        del paths[pair]
    assert groups(paths) == []


def test_a_third_setting_has_a_map_for_each_value_in_the_same_colours(write_run: Write) -> None:
    paths = grid(write_run, affinity=0)
    more = grid(write_run, affinity=1)
    found = groups({(key, k): own for k, one in enumerate((paths, more)) for key, own in one.items()})  # type: ignore[misc]
    group = next(one for one in found if one.ident == "map-ltrf-outside-horizon_s-period_s")
    first, second = group.charts[:2]
    assert isinstance(first, HeatMap)
    assert isinstance(second, HeatMap)
    assert [first.title, second.title] == ["sharing loss, affinity 0", "sharing loss, affinity 1"]
    assert first.range == second.range == (102.0, 316.0)


def test_the_page_and_print_have_the_map(write_run: Write, tmp_path: Path) -> None:
    paths = [path for own in grid(write_run, (1, 2)).values() for path in own]
    render_report(paths, tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    name = "map-ltrf-outside-horizon_s-period_s"
    assert f'id="{name}"' in page
    assert "mean of 2 runs" in page
    group = figures_of(paths).chosen(name)
    text = write_figure(group, tmp_path / "map.svg").figure.read_text(encoding="utf-8")
    assert "<!-- sharing loss (s): 102 (pale) to 316 (dark) -->" in text
    assert "<!-- auto -->" in text
    for kind in ("pdf", "png"):
        assert not write_figure(group, tmp_path / f"map.{kind}").remarks


def test_the_text_of_every_cell_can_be_read() -> None:
    """WCAG's contrast of 4.5 : 1 between the text and its cell, at every colour of the scale."""

    def luminance(colour: str) -> float:
        parts = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
        linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    for k in range(101):
        ground = luminance(colour_of(k / 100))
        text = 1.0 if k / 100 >= WHITE_TEXT_FROM else 0.0
        assert (max(text, ground) + 0.05) / (min(text, ground) + 0.05) >= 4.5, k
    assert colour_of(0.0) == "#" + "".join(f"{part:02x}" for part in PALEST)


def test_a_setting_that_some_runs_leave_out_is_at_its_default_there(write_run: Write) -> None:
    paths = []
    for horizon in (20, 80, 640):
        for settings in ({"horizon_s": horizon}, {"horizon_s": horizon, "reserve_s": 5}):
            name = ",".join(f"{key}={value}" for key, value in settings.items())
            paths.append(write_run(f"ltrf,{name}", "ltrf", settings=settings, summary={"sharing_loss_integral": 1.0}))
    (group,) = heat_map_groups(load_runs(paths))
    assert first_map(group).rows == ["5", "default"]


def test_runs_of_another_kind_have_maps_of_their_own_figures(tmp_path: Path) -> None:
    """Two settings that vary together in an experiment of QKnober's paper: its figures over both, on its page."""
    varied = {"policy": "tetris", "vary": {"f": [0, 0.2, 0.6], "remaining": [0, 1]}}
    load = {"users": 2, "machines": 6, "hours": 0.5, "load": 1.2, "seed": [1]}
    yarnfair.run({"kind": "vectors", "experiment": "vec", **load, "policies": ["drf", varied]}, out=tmp_path / "runs")
    (group,) = (one for name, one in figures_of([tmp_path / "runs"]).groups.items() if name.startswith("map-"))
    assert group.title == "tetris@vectors over f and remaining"
    assert first_map(group).columns == ["0", "0.2", "0.6"]
    assert first_map(group).rows == ["1", "default"]
    assert {chart.title for chart in group.charts} >= {"makespan"}
    assert (
        'id="map-tetris-vectors-f-remaining"'
        in render_report([tmp_path / "runs"], tmp_path / "page.html").path.read_text()
    )


def test_cells_that_differ_by_chance_or_by_little_have_nearly_one_colour() -> None:
    """The smallest and the largest mean had the full contrast, whatever their intervals were."""

    def one(values: list[float | None], halves: list[float]) -> HeatMap:
        return HeatMap("t", "x", "y", "q", ["1", "2", "3"], ["a"], [values], [[3, 3, 3]], [halves])

    # 13.5 +- 1.4 and 14.3 +- 1.5 may differ by chance alone.
    assert colour_range([one([13.5, 13.8, 14.3], [1.4, 1.2, 1.5])]) == (13.5, 16.5)
    # Single runs have no interval; a difference below a tenth of the value counts as small.
    assert colour_range([one([100.0, 101.0, None], [0.0, 0.0, 0.0])]) == pytest.approx((100.0, 110.1))
    # Significant differences have the full contrast, and all maps of a metric share one colour scale.
    both = [one([30.0, 90.0, 140.0], [5.0, 9.0, 8.0]), one([20.0, 25.0, 30.0], [1.0] * 3)]
    assert colour_range(both) == (20.0, 140.0)


def test_numbers_that_are_recorded_as_text_stand_in_their_order(write_run: Write) -> None:
    """A sweep of horizons had the columns 20, 320, 640, 80: horizon_s may also be a word, and is recorded as text."""
    paths = [
        write_run(
            f"ltrf@outside,horizon_s={horizon},period_s={period:g}", "ltrf", "outside",
            settings={"horizon_s": horizon, "period_s": period},
            summary={"sharing_loss_integral": 100.0 + float(horizon) + period},
        )
        for horizon in ("20", "320", "640", "80")
        for period in (5.0, 60.0)
    ]  # fmt: skip
    (group,) = heat_map_groups(load_runs(paths))
    chart = group.charts[0]
    assert isinstance(chart, HeatMap)
    assert chart.columns == ["20", "80", "320", "640"]
    assert list(chart.values[0]) == [125.0, 185.0, 425.0, 745.0]
