"""The first screen and the axis of time: the verdict, winners and losers, 100 queues, zoom, dark, 400 px."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from harness.report import render_report
from harness.report.data import load_runs
from harness.report.figures import FURTHEST, Styles, resource_groups
from harness.report.first import MOST_QUEUES, changes_chart, first_of, firsts_of, furthest, moves
from harness.report.page import title_and_lead
from harness.report.svg import LineChart
from harness.report.variants import grouped
from harness.results.phases import write_phases
from tests.browser import chromium

LONG = "root.a-department-with-a-long-name.its-team-with-another.queue"
MANY = tuple(f"{LONG}-{number:03}" for number in range(100))


@pytest.fixture
def many(write_run: Callable[..., Path]) -> list[Path]:
    """100 queues with long names: under fair queue k holds 0.5 + k / 100 of its share, under ltrf all hold it."""
    held = [0.5 + k / 100 for k in range(100)]
    return [
        write_run("fair", "fair", leaves=MANY, held=held, since_s=[0.0] * 100, seconds=60),
        write_run("ltrf", "ltrf", leaves=MANY, held=[1.0] * 100, since_s=[0.0] * 100, seconds=60),
    ]


def test_the_first_screen_is_the_verdict_and_who_wins_and_loses(three_policies: list[Path]) -> None:
    first = first_of(load_runs(three_policies))
    assert first is not None
    # By construction (fair holds 1.4, 1.2, 0.8, 0.6 of the shares; a job's mean completion is 100 s over that).
    assert first.sentences[0].startswith("What changed: ltrf@outside cuts the sharing loss from 600.0 to ")
    assert first.sentences[1].startswith("What it cost: ")
    (table,) = first.tables
    assert [head.text for head in table.heads] == ["queue", "change", "mean job ends", "fair", "ltrf@outside"]
    words = {row[0]: row[2] for row in table.rows}
    assert (words["facebook"], words["tpch"]) == ("later", "sooner")
    assert "facebook: 71.43 to " in first.chart


def test_moves_are_sorted_by_size_and_small_ones_are_the_same() -> None:
    before = {"queues": {"a": {"mean_completion_s": 100.0}, "b": {"mean_completion_s": 100.0}, "c": {}}}
    after = {"queues": {"a": {"mean_completion_s": 101.0}, "b": {"mean_completion_s": 50.0}, "c": {}}}
    assert [(move.queue, move.better) for move in moves(before, after)] == [("b", 1), ("a", 0)]
    assert moves({}, after) == []


def test_of_many_queues_winners_and_losers_are_drawn() -> None:
    before = {"queues": {f"q{k}": {"mean_completion_s": 100.0} for k in range(100)}}
    for losers, drawn in ((3, 3), (40, MOST_QUEUES // 2), (97, MOST_QUEUES - 3)):
        after = {
            "queues": {f"q{k}": {"mean_completion_s": 150.0 + k if k < losers else 40.0 - k / 9} for k in range(100)}
        }
        sides = [move.better for move in furthest(moves(before, after))]
        assert (sides.count(-1), len(sides)) == (drawn, MOST_QUEUES)


def test_a_chart_over_decades_is_logarithmic_and_keeps_its_queues_inside() -> None:
    after = {"queues": {f"q{k}": {"mean_completion_s": 10.0 ** (k % 5)} for k in range(30)}}
    before = {"queues": {f"q{k}": {"mean_completion_s": 5.0 * 10.0 ** (k % 5)} for k in range(30)}}
    drawn = changes_chart(moves(before, after), "t", "s")
    assert drawn.count('class="ring"') == MOST_QUEUES
    places = [float(part.split('"')[0]) for part in drawn.split('cx="')[1:]]
    assert all(132 <= place <= 420 for place in places)


def test_of_many_phases_the_change_has_a_band_and_may_be_unsure(write_run: Callable[..., Path]) -> None:
    paths = [write_run("fair", "fair"), write_run("ltrf@outside", "ltrf", mode="outside")]
    steps = {"root.spark": ([100.0, 200.0], [90.0, 220.0]), "root.tpch": ([100.0, 200.0], [80.0, 170.0])}
    for at, path in enumerate(paths):
        summary = json.loads((path / "summary.json").read_text())
        queues = [{queue: {"mean_completion_s": step[at][k]} for queue, step in steps.items()} for k in (0, 1)]
        write_phases(path, [{**summary, "queues": own} for own in queues])
    first = first_of(load_runs(paths))
    assert first is not None
    rows = {row[0]: row[1:] for row in first.tables[0].rows}
    assert rows["spark"] == [
        *("3.3 (\u221210 to 10)", "later, not in every phase", "150.0 (100.0 to 200.0)", "155.0 (90.0 to 220.0)")
    ]
    assert rows["tpch"] == [
        "\u221216.7 (\u221220 to \u221215)",
        "sooner",
        "150.0 (100.0 to 200.0)",
        "125.0 (80.0 to 170.0)",
    ]
    assert first.chart.count('class="band"') == 2


def test_one_run_says_who_is_behind(write_run: Callable[..., Path]) -> None:
    first = first_of(load_runs([write_run("fair", "fair", held=(1.4, 1.2, 0.8, 0.6))]))
    assert first is not None
    assert first.sentences[0] == (
        "2 of 4 queues got less than their own partition would have given them; furthest behind is tpch, with 60 % of "
        "its due."
    )
    assert not first.tables
    assert first_of(load_runs([write_run("fair", "fair", exit=None, seed=7)])) is None


def test_a_hundred_queues_are_told_apart(many: list[Path], tmp_path: Path) -> None:
    runs = load_runs(many)
    styles = Styles.of(runs)
    assert len(styles.drawn) == FURTHEST
    assert {MANY[0], MANY[1], MANY[99]} <= styles.drawn, "those furthest from what they are due"
    for group in resource_groups(grouped(runs), styles):
        assert len(group.legend.names) <= FURTHEST
        for chart in group.charts:
            if isinstance(chart, LineChart) and chart.stacked:
                assert chart.lines[-1].name == "92 other queues"
                held = 99.5 if chart.title == "fair" else 100.0
                assert sum(float(layer.curve.y[0]) for layer in chart.lines) == pytest.approx(held, 0.01)
    page = tmp_path / "r.html"
    render_report(many, page)
    text = page.read_text()
    assert f"Charts show {FURTHEST} of 100 queues" in text
    assert max(row.count("<th ") for row in text.split("<thead>")[1:] for row in [row.split("</thead>")[0]]) < 20
    assert page.stat().st_size < 1_000_000


@pytest.mark.browser
@pytest.mark.parametrize("width", [400, 1280])
def test_the_page_zooms_over_time_and_can_be_read_without(
    three_policies: list[Path], many: list[Path], tmp_path: Path, width: int
) -> None:
    render_report(three_policies, tmp_path / "few.html")
    render_report(many, tmp_path / "many.html")
    with chromium(tmp_path / "profile") as browser:
        for name in ("few", "many"):
            browser.open(f"file://{tmp_path}/{name}.html", width, dark=name == "many")
            browser.until("!!document.querySelector('.times input')")
            assert browser.too_wide() == []
            assert browser.run("document.documentElement.scrollWidth") <= width
            assert browser.faint() == []
            drawn = "document.querySelector('#verdict figure > svg').getBoundingClientRect().height"
            assert browser.run(drawn) > 90
        browser.open(f"file://{tmp_path}/few.html", width)
        browser.until("!!document.querySelector('.times input')")
        chart = "document.querySelector('#fairness-degree svg[data-t]')"
        labels = f"[...{chart}.querySelectorAll('.x .t')].map(e => +e.textContent.replace(/\\D/g, ''))"
        assert browser.run(f"Math.max(...{labels})") == 1000
        browser.run("{const s = document.querySelectorAll('.times input'); s[1].value = 250;"
                    " s[1].dispatchEvent(new Event('input'))}")  # fmt: skip
        assert browser.run(f"Math.max(...{labels})") == 250
        assert browser.run(f"{chart}.querySelector('.z').getAttribute('transform')").endswith("scale(4 1)")
        browser.run("document.querySelector('.times button').click()")
        assert browser.run(f"Math.max(...{labels})") == 1000
        box = browser.run(f"(() => {{ const b = {chart}.getBoundingClientRect(); return [b.left, b.top, b.width] }})()")
        x, y = (lambda part: box[0] + box[2] * part), box[1] + 40 * box[2] / 420
        for kind, part in (("mousePressed", 0.3), ("mouseMoved", 0.4), ("mouseReleased", 0.5)):
            browser.run(f"{chart}.scrollIntoView()") if kind == "mousePressed" else None
            top = browser.run(f"{chart}.getBoundingClientRect().top") + y - box[1]
            browser.call("Input.dispatchMouseEvent", type=kind, x=x(part), y=top, button="left", clickCount=1)
        shown = browser.run("document.querySelector('.times output').textContent")
        assert shown.startswith("179 s to 422 s"), shown
        assert browser.console == []
        assert [one for one in browser.requests if not one.startswith(("file://", "data:"))] == []


def test_of_several_experiments_the_verdict_is_against_fair_as_of_one(write_run: Callable[..., Path]) -> None:
    """With the experiment's name in its label, a fixed partition became the reference: other figures for one run."""
    paths = []
    for experiment in ("one", "other"):
        for policy, loss in (("static", 300.0), ("fair", 70.0), ("ltrf", 10.0)):
            more = {"sharing_loss_integral": loss}
            paths.append(write_run(policy, policy, experiment=experiment, digest=experiment, summary=more))
    alone = firsts_of(load_runs(paths[:3]))
    assert "from 70.0 to 10.0 s (-86 %) against fair" in alone[0].sentences[0]
    for first in firsts_of(load_runs(paths)):
        assert "from 70.0 to 10.0 s (-86 %) against fair, " in first.sentences[0]


def test_of_several_experiments_each_policy_and_each_cluster_is_named(write_run: Callable[..., Path]) -> None:
    """One run beside several seeds of a policy left the seeds without their experiment; one size stood for both."""
    paths = [write_run("fair", "fair", experiment="one", digest="one")]
    for seed in (1, 2):
        paths.append(write_run(f"fair,seed={seed}", "fair", experiment="other", digest="other", seed=seed))
    runs = load_runs(paths)
    assert [run.label for run in runs] == ["fair (one)", "fair (other),seed=1", "fair (other),seed=2"]
    assert {run.variant_without_seed() for run in runs} == {"fair (one)", "fair (other)"}
    assert title_and_lead(runs)[1].endswith(" Cluster memory 236 GiB.")
    small = [replace(run, capacity_mb=72 * 1024.0) if run.experiment == "other" else run for run in runs]
    assert title_and_lead(small)[1].endswith(" Cluster memory 236 GiB (one), 72 GiB (other).")


def test_each_experiment_has_its_own_verdict_over_all_of_its_seeds(write_run: Callable[..., Path]) -> None:
    """Of two experiments with the same policies, neither is hidden, and the seeds of a policy stay one variant."""
    paths = []
    for experiment, slower in (("one", 1.0), ("other", 2.0)):
        for policy, mean in (("fair", 100.0), ("ltrf", 80.0)):
            for seed in (1, 2):
                queues = {f"root.{name}": {"mean_completion_s": mean * slower + seed} for name in ("A", "B")}
                paths.append(
                    write_run(
                        f"{policy},seed={seed}",
                        policy,
                        experiment=experiment,
                        seed=seed,
                        digest=experiment,
                        summary={"queues": queues},
                    )
                )
    runs = load_runs(paths)
    assert {run.variant_without_seed() for run in runs} == {"fair (one)", "ltrf (one)", "fair (other)", "ltrf (other)"}
    found = firsts_of(runs)
    assert [first.title for first in found] == ["one", "other"]
    for first in found:
        # The title above the sentences names the experiment: "ltrf (one) ... against fair (one)" repeated it.
        assert first.sentences[0].startswith("What changed: ltrf leaves ")
        assert "(one)" not in " ".join(first.sentences)
        assert [head.text for head in first.tables[0].heads[3:]] == ["fair", "ltrf"]
    assert {"fair", "ltrf", "one"} <= {*found[0].names}, "names in sentences are not set as numbers"
