"""Several seeds: means with 95 % intervals everywhere, and no claim that the seeds do not agree on."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.base.stats import half_width_95, means_and_half_widths_95
from harness.report import render_report
from harness.report.charts import drawing
from harness.report.curves import Curve, over_seeds
from harness.report.data import load_runs
from harness.report.figures import POINTS, Styles, _sampled, fairness_groups, speedup_groups
from harness.report.first import first_of
from harness.report.printed import figures_of, table_of, write_figure
from harness.report.svg import BarChart, LineChart
from harness.report.variants import drawn_variants
from harness.results.sentences import Ran, change, completion_of, sentences

Write = Callable[..., Path]
HELD = (0.5, 0.6, 0.9, 1.0)


def seeds(write: Write, name: str = "fair", held: tuple[float, ...] = HELD, **more: Any) -> list[Path]:
    """A run a seed, in which the first queue holds so much of its share."""
    return [
        write(f"{name},seed={seed}", name, seed=seed, held=(part, 1.0, 1.0, 1.0), **more)
        for seed, part in enumerate(held, 1)
    ]


def test_the_intervals_of_columns_are_those_of_each_column() -> None:
    rows = np.random.default_rng(1).normal(size=(5, 7))
    means, halves = means_and_half_widths_95(rows)
    assert means == pytest.approx([np.mean(column) for column in rows.T])
    assert halves == pytest.approx([half_width_95(list(column)) for column in rows.T])


def test_the_curves_of_seeds_become_their_mean_with_its_interval_at_each_time() -> None:
    short = Curve(np.array([0.0, 1.0, 2.0]), np.array([1.0, 3.0, 5.0]))
    long = Curve(np.array([0.0, 2.0, 4.0]), np.array([1.0, 7.0, 7.0]))
    kept, gone = over_seeds([short, long]), over_seeds([short, long], after_end=0.0)
    assert list(kept.x) == [0.0, 2.0, 4.0]
    assert list(kept.y) == [1.0, 6.0, 6.0], "a seed that has ended stays as it was"
    assert list(gone.y) == [1.0, 6.0, 3.5], "or holds nothing any more"
    assert kept.low is not None
    assert kept.high is not None
    assert list(kept.high - kept.y) == pytest.approx([0.0, half_width_95([5, 7]), half_width_95([5, 7])])
    assert list(kept.y - kept.low) == pytest.approx(list(kept.high - kept.y))
    assert over_seeds([short]) is short, "one seed has no interval"


def test_curves_and_bars_of_several_seeds_carry_the_mean_and_its_interval(write_run: Write) -> None:
    variants, said = drawn_variants(load_runs(seeds(write_run)))
    styles = Styles.of([run for one in variants for run in one.runs])
    degree = fairness_groups(variants, styles)[0].charts[0]
    assert isinstance(degree, LineChart)
    (line,) = [line for line in degree.lines if line.name == "facebook"]
    assert line.curve.y[-1] == pytest.approx(np.mean(HELD))
    assert line.curve.high is not None
    assert line.curve.high[-1] - line.curve.y[-1] == pytest.approx(half_width_95(HELD))
    assert drawing(degree, "x").count('<path class="i"') == 4, "a band a queue"
    bars = speedup_groups(variants, styles)[0].charts[0]
    assert isinstance(bars, BarChart)
    at = bars.groups.index("facebook")
    assert bars.values[at] == [pytest.approx(np.mean(HELD))]
    assert bars.half_width(at, 0) == pytest.approx(half_width_95(HELD))
    assert f"facebook, fair: 0.75 ± {half_width_95(HELD):.2f}" in drawing(bars, "x")
    assert "means over 4 seeds" in said


def test_one_seed_has_no_bands(write_run: Write) -> None:
    variants, said = drawn_variants(load_runs(seeds(write_run, held=(0.5,))))
    styles = Styles.of([run for one in variants for run in one.runs])
    groups = [*fairness_groups(variants, styles), *speedup_groups(variants, styles)]
    drawn = "".join(drawing(chart, "x") for group in groups for chart in group.charts)
    assert '<path class="i"' not in drawn
    assert "±" not in drawn
    assert said == ""


def test_a_figure_for_print_has_the_interval_in_its_data(write_run: Write, tmp_path: Path) -> None:
    group = figures_of(seeds(write_run)).chosen("fairness-degree")
    rows = [
        row
        for row in csv.DictReader(io.StringIO(table_of(group)))
        if (row["chart"], row["series"]) == ("fair", "facebook")
    ]
    mean, low, high = (float(rows[-1][name]) for name in ("y", "y_low_95", "y_high_95"))
    assert mean == pytest.approx(np.mean(HELD))
    assert (high - low) / 2 == pytest.approx(half_width_95(HELD))
    assert write_figure(group, tmp_path / "figure.svg").figure.stat().st_size > 1000


def test_a_page_has_a_row_a_policy_and_leaves_out_seeds_that_failed(write_run: Write, tmp_path: Path) -> None:
    paths = [*seeds(write_run), write_run("fair,seed=9", "fair", seed=9, held=(9.0, 1.0, 1.0, 1.0), exit=4)]
    paths += seeds(write_run, "ltrf")
    render_report(paths, tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text().replace("\u00a0", " ").replace("<wbr>", "")
    assert "2 variants in 9 runs (seeds 1, 2, 3, 4, 9): fair, ltrf." in page
    assert "Means over 4 seeds, ± half of the 95 % interval of the mean." in page
    half = half_width_95(HELD)
    assert page.count(f"0.750 ± {half:.3f}") >= 2, "the fairness degree of facebook, under either policy"
    assert '<th scope="row">fair</th>' in page
    assert page.count('<th scope="row">fair,seed=1</th>') == 1, "in the table of what was run"


def ran(label: str, completions: Mapping[int, float], loss: Mapping[int, float]) -> Ran:
    """A variant with a queue ``a`` and these completions and losses by seed."""

    def summary(completion: float, lost: float) -> dict[str, Any]:
        queues = {"root.a": {"mean_completion_s": completion, "jobs": 5, "ended": 5}}
        return {"sharing_loss_integral": lost, "sharing_loss": -0.1, "makespan_s": 100.0, "queues": queues}

    mean = summary(float(np.mean(list(completions.values()))), float(np.mean(list(loss.values()))))
    each = {seed: summary(completions[seed], loss[seed]) for seed in completions}
    return Ran(label, "ltrf" in label, "@outside" in label, mean, seeds=each)


LOSS = {1: 50.0, 2: 52.0, 3: 48.0}


def test_a_change_that_the_seeds_do_not_agree_on_is_not_called_one() -> None:
    fair = ran("fair", {1: 100.0, 2: 100.0, 3: 100.0}, LOSS)
    agreed = ran("ltrf@outside", {1: 85.0, 2: 80.0, 3: 82.0}, {1: 10.0, 2: 12.0, 3: 9.0})
    split = ran("ltrf@outside", {1: 60.0, 2: 130.0, 3: 50.0}, {1: 5.0, 2: 90.0, 3: 10.0})
    clear, unclear = sentences("x", [fair, agreed]), sentences("x", [fair, split])
    assert "cuts the sharing loss from 50.0 to 10.3 s (-79 %)" in clear[0]
    assert "faster in a (18 %)" in clear[0]
    assert "agree" not in "".join(clear)
    assert "has a sharing loss that the 3 seeds do not agree on (50.0 to 35.0 s)" in unclear[0]
    assert "no queue's mean job gets faster" in unclear[0]
    assert "the seeds do not agree on the direction of a (20 %)" in unclear[1]


def test_changes_are_taken_seed_by_seed() -> None:
    """Seeds that differ a lot, each of which changes by a tenth: a clear change."""
    fair = ran("fair", {1: 10.0, 2: 100.0, 3: 1000.0}, LOSS)
    faster = ran("ltrf", {1: 9.0, 2: 90.0, 3: 901.0}, LOSS)
    found = change(fair, faster, completion_of("root.a"))
    assert found is not None
    assert found.clear
    assert (found.low, found.high) == pytest.approx((-0.1, -0.1), abs=2e-3)
    assert found.seeds == 3
    alone = change(Ran("fair", False, False, fair.summary), faster, completion_of("root.a"))
    assert alone is not None
    assert (alone.seeds, alone.clear) == (1, True), "without seeds in common nothing is known of the spread"


def test_a_change_and_its_interval_are_of_one_estimator(write_run: Write) -> None:
    """The figure was the change of the means, the interval of the mean of the changes: it could lie outside of it."""
    means = {"fair": (10.0, 10.0, 1000.0), "ltrf": (5.0, 5.1, 990.0)}
    fair, faster = (ran(name, dict(enumerate(values, 1)), LOSS) for name, values in means.items())
    found = change(fair, faster, completion_of("root.a"))
    assert found is not None
    assert found.part == pytest.approx((-0.5 - 0.49 - 0.01) / 3)
    assert found.part == pytest.approx((found.low + found.high) / 2)
    paths = [
        write_run(f"{name},seed={k}", name, seed=k, summary={"queues": {"root.A": {"mean_completion_s": value}}})
        for name, values in means.items()
        for k, value in enumerate(values, 1)
    ]
    first = first_of(load_runs(paths))
    assert first is not None
    (row,) = first.tables[0].rows
    assert row[1].startswith("\u221233.3"), "the table of winners and losers has the same figure as the sentences"


def test_a_mean_over_seeds_of_different_length_is_one_of_their_own_samples() -> None:
    """Each seed was thinned by its own length, so that a mean interpolated (loss.csv was 0.04 % off)."""
    generator = np.random.default_rng(1)
    seeds_of = [
        Curve(np.arange(float(count)), generator.random(count).cumsum()) for count in (3001, 2750, 1999, 640, 1000)
    ]
    mean = over_seeds([_sampled(one) for one in seeds_of])
    assert len(mean.x) <= POINTS
    shortest = min(one.x[-1] for one in seeds_of)
    for x, y in zip(mean.x, mean.y, strict=True):
        if x <= shortest:
            assert y == pytest.approx(np.mean([one.y[int(x)] for one in seeds_of]), rel=1e-12)
    assert (mean.x <= shortest).sum() > 50
