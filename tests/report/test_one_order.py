"""One order and one colour: the same runs give the same page, however given; queues and policies look as elsewhere."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.policies.fair import Fair
from harness.policies.registry import OBJECTS
from harness.report import render_report
from harness.report.data import load_runs
from harness.report.figures import Styles, detail_groups, fairness_groups, speedup_groups
from harness.report.hierarchy import running_groups
from harness.report.tables import comparison_tables, wait_tables
from harness.report.variants import drawn_variants, variants_of

Write = Callable[..., Path]


def test_runs_in_any_order_and_their_folder_give_the_same_page(three_policies: list[Path], tmp_path: Path) -> None:
    given = (three_policies, [*reversed(three_policies)], sorted(three_policies), [three_policies[0].parent])
    pages = [render_report(runs, tmp_path / "page.html").path.read_bytes() for runs in given]
    assert pages == [pages[0]] * 4


def test_a_policy_has_one_colour_whichever_others_stand_beside_it(write_run: Write) -> None:
    paths = {name: write_run(name, name) for name in ("static", "fair", "ltrf")}
    paths["short"] = write_run("ltrf,t_wait=5", "ltrf", settings={"t_wait": 5})
    paths["outside"] = write_run("ltrf@outside", "ltrf", mode="outside")
    of_all = Styles.of(load_runs([*paths.values()])).variants
    assert len(set(of_all.values())) == 5
    for names in (["ltrf"], ["outside", "ltrf"], ["static", "ltrf"], ["fair", "outside"]):
        own = Styles.of(load_runs([paths[name] for name in names])).variants
        assert own == {name: of_all[name] for name in own}


def test_the_first_minutes_are_drawn_of_a_policy_that_asks_for_it(
    write_run: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = {name: write_run(name, name) for name in ("fair", "ltrf", "gone", "own")}

    def drawn(*policies: str) -> list[str]:
        variants, _ = drawn_variants(load_runs([paths[policy] for policy in policies]))
        styles = Styles.of([run for one in variants for run in one.runs])
        return [group.title for group in detail_groups(variants, styles)]

    assert len(drawn("fair", "ltrf")) == 1
    # A policy that is not registered any more, and one that does not ask.
    assert drawn("fair", "gone") == []
    monkeypatch.setitem(OBJECTS, "own", type("Own", (Fair,), {"name": "own", "detail_figure": True}))
    (title,) = drawn("fair", "own")
    assert "own" in title


def test_the_bars_and_the_curves_of_a_policy_have_its_colour(three_policies: list[Path]) -> None:
    variants, _ = drawn_variants(load_runs(three_policies))
    styles = Styles.of([run for one in variants for run in one.runs])
    groups = [*fairness_groups(variants, styles), *speedup_groups(variants, styles)]
    policies = [group for group in groups if group.ident in ("policies", "speed-up")]
    assert len(policies) == 2
    for group in policies:
        assert dict(group.legend.names) == styles.variants
    bars = next(group.charts[0] for group in policies if group.ident == "speed-up")
    assert list(bars.shown) == [*styles.variants.values()]


def test_queues_stand_in_the_summary_s_order_in_tables_and_charts(write_run: Write) -> None:
    (run,) = load_runs([write_run("fair", "fair")])
    wanted = run.summary_queues()
    assert [*run.leaves] == wanted
    turned = write_run("turned", "fair", seed=2)
    summary = json.loads((turned / "summary.json").read_text())
    summary["queues"] = dict(reversed(summary["queues"].items()))
    (turned / "summary.json").write_text(json.dumps(summary))
    (run,) = load_runs([turned])
    assert [*run.leaves] == wanted[::-1]
    names = [queue.removeprefix("root.") for queue in wanted[::-1]]
    for table in [*comparison_tables([run]), *wait_tables([run])]:
        if table.heads[1].text in names:
            assert [head.text for head in table.heads[1:]] == names, table.caption


def test_the_best_of_a_column_is_marked_where_there_is_one(write_run: Write) -> None:
    paths = [
        write_run("fair", "fair", summary={"sharing_loss_integral": 40.0, "makespan_s": 100.0}),
        write_run("ltrf", "ltrf", summary={"sharing_loss_integral": 10.0, "makespan_s": 100.0}),
    ]
    table = comparison_tables(load_runs(paths))[0]
    at = [head.text for head in table.heads].index("sharing loss")
    assert {row for row, column in table.best if column == at} == {1}
    equal = [head.text for head in table.heads].index("makespan")
    assert not [cell for cell in table.best if cell[1] == equal], "the same under both"
    assert "the best of a column is bold" in table.note
    # Another load is no competitor.
    other = write_run("alone", "drf", digest="another", summary={"sharing_loss_integral": 1.0, "makespan_s": 1.0})
    table = comparison_tables(load_runs([*paths, other]))[0]
    names = [row[0] for row in table.rows]
    assert {names[row] for row, column in table.best if column == at} == {"ltrf"}


def test_of_runs_that_were_cut_the_best_is_marked_except_of_means_over_jobs(write_run: Write) -> None:
    """No table of such runs had a mark, though their losses are of the same time."""
    paths = []
    for name, loss, mean_s in (("fair", 40.0, 20.0), ("ltrf", 10.0, 50.0)):
        queue = {"jobs": 5, "ended": 3, "failed": 0, "mean_completion_s": mean_s, "fairness_degree": loss / 40}
        summary = {"sharing_loss_integral": loss, "makespan_s": 100.0, "queues": {"root.a": queue}}
        paths.append(write_run(name, name, summary=summary))
    tables = {table.caption: table for table in comparison_tables(load_runs(paths))}
    whole = tables["Each policy over the whole run"]
    at = [head.text for head in whole.heads].index("sharing loss")
    assert {row for row, column in whole.best if column == at} == {1}
    assert tables["Fairness degree at the end"].best == {(0, 1)}
    assert not tables["Mean completion time of a job"].best


def test_running_tasks_are_small_multiples_with_axes_a_queue(three_policies: list[Path]) -> None:
    variants, _ = drawn_variants(load_runs(three_policies))
    styles = Styles.of([run for one in variants for run in one.runs])
    (group,) = running_groups(variants, styles)
    assert len(group.charts) == len(variants) * len(styles.leaves(variants[0]))
    for chart in group.charts:
        assert len(chart.lines) == 1, "a curve a chart"
    by_queue: dict[str, set[object]] = {}
    for chart in group.charts:
        by_queue.setdefault(chart.title.partition(",")[0], set()).add((chart.x_range, chart.y_range))
    assert all(len(axes) == 1 for axes in by_queue.values())


def test_the_loss_has_an_axis_of_its_own(three_policies: list[Path]) -> None:
    variants = variants_of(load_runs(three_policies))
    groups = {group.ident: group for group in fairness_groups(variants, Styles.of([one.first for one in variants]))}
    for chart in groups["loss"].charts:
        (line,) = chart.lines
        assert line.name.startswith("sharing loss")
    assert {chart.y_range for chart in groups["loss"].charts}.isdisjoint(
        {chart.y_range for chart in groups["benefit"].charts}
    )


@pytest.mark.parametrize("count", [1, 3])
def test_no_page_sends_its_reader_to_a_path_of_the_repository(
    count: int, three_policies: list[Path], tmp_path: Path
) -> None:
    page = render_report(three_policies[:count], tmp_path / "page.html").path.read_text()
    assert not re.findall(r"docs/\S*", page)


def test_of_a_long_sweep_the_ends_are_drawn_and_long_tables_are_folded(write_run: Write, tmp_path: Path) -> None:
    """A page of 13 variants was 22,800 pixels tall: courses of the first eight, and a table of 13 rows a metric."""
    paths = [write_run("fair", "fair")]
    for k, loss in enumerate((50.0, 30.0, 10.0, 20.0, 90.0, 40.0, 60.0, 70.0)):
        settings = {"horizon_s": k}
        paths.append(
            write_run(
                f"ltrf@outside,horizon_s={k}",
                "ltrf",
                mode="outside",
                settings=settings,
                summary={"sharing_loss_integral": loss},
            )
        )
    variants, said = drawn_variants(load_runs(paths))
    assert [one.name for one in variants] == ["fair", "ltrf@outside,horizon_s=2", "ltrf@outside,horizon_s=4"]
    assert "3 of the 9 variants: of a policy with many settings, those with the least and the largest sharing" in said
    assert len(drawn_variants(load_runs(paths[:8]))[0]) == 8, "up to eight all are drawn"
    for k in range(8, 13):
        paths.append(write_run(f"ltrf@outside,horizon_s={k}", "ltrf", mode="outside", settings={"horizon_s": k}))
    page = render_report(paths, tmp_path / "page.html").path.read_text()
    comparison = page[page.index('<section id="comparison">') :].partition("</section>")[0]
    assert "<details><summary>14 rows</summary>" in comparison
    assert "<details" not in comparison.partition("Mean completion time")[0], "the first tables are open"


def test_of_several_experiments_each_has_its_own_charts_in_its_policies_colours(write_run: Write) -> None:
    """A page of two experiments had one policy in two colours, overlaid their loads, and left out the ninth variant."""
    policies = ("static", "fair", "ltrf", "hltrf", "naive-hltrf")
    digests = {"one": "1" * 16, "two": "2" * 16}
    paths = [write_run(name, name, experiment=place, digest=digests[place]) for place in digests for name in policies]
    runs = load_runs(paths)
    variants, said = drawn_variants(runs)
    assert (len(variants), said) == (10, "")
    styles = Styles.of([run for one in variants for run in one.runs])
    for policy in policies:
        assert len({styles.variants[one.name] for one in variants if one.first.policy == policy}) == 1
    groups = fairness_groups(variants, styles)
    against = [group for group in groups if group.title.startswith("The policies against each other")]
    assert [group.title.rpartition(": ")[2] for group in against] == ["one", "two"]
    assert [len(chart.lines) for group in against for chart in group.charts] == [5, 5, 5, 5]
    assert len({group.ident for group in groups}) == len(groups)
    assert all(len({style for _, style in group.legend.names}) == 5 for group in against)
