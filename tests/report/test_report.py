"""The page: self-contained, well-formed, complete, the same each time; unfinished and broken run directories."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from harness.base.errors import InputError
from harness.base.stats import half_width_95
from harness.report import data, render_report
from harness.report.data import KeptTables, load_run
from harness.report.figures import Styles, resource_groups
from harness.report.page import MOST_ROWS
from harness.report.svg import LineChart
from harness.report.tables import decision_tables
from harness.report.templating import breakable, content_hash
from harness.report.variants import grouped

#: Elements of HTML that have no end tag.
VOID = {"meta", "link", "br", "img", "hr", "input", "wbr"}


class Outline(HTMLParser):
    """Checks that tags nest, and collects ids, references, text and headings."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.references: list[str] = []
        self.loads: list[str] = []
        self.text: list[str] = []
        self.tags: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag not in VOID:
            self.open.append(tag)
        for name, value in attrs:
            if name == "id":
                self.ids.append(value or "")
            if name == "href" and (value or "").startswith("#"):
                self.references.append((value or "")[1:])
            if name == "aria-labelledby":
                self.references += (value or "").split()
            if name in ("src", "href", "data", "srcset", "poster") and not (value or "").startswith(("#", "data:")):
                self.loads.append(value or "")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> without a start"
        assert self.open.pop() == tag, f"</{tag}> closes something else"

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def outline(page: Path) -> Outline:
    parser = Outline()
    parser.feed(page.read_text(encoding="utf-8"))
    assert not parser.open
    return parser


def test_names_break_between_their_words() -> None:
    assert breakable("ltrf@outside,period_s=60") == "ltrf@<wbr>outside,<wbr>period_<wbr>s=<wbr>60"
    assert breakable("rho=0.5") == "rho=<wbr>0.5"
    assert breakable("a" * 30) == "<wbr>".join(["a" * 14, "a" * 14, "aa"])
    assert breakable("<b>&") == "&lt;b&gt;&amp;"
    for name in ("fawkes-none", "@@x", "two words", ""):
        assert str(breakable(name)).replace("<wbr>", "") == name


def test_the_page_is_well_formed_and_loads_nothing(three_policies: list[Path], tmp_path: Path) -> None:
    page = tmp_path / "out" / "report.html"
    report = render_report(three_policies, page)
    seen = outline(page)
    assert seen.loads == []
    assert seen.tags.count("script") == 1, "the one that zooms, by its hash alone"
    (script,) = re.findall(r"<script>(.*?)</script>", page.read_text(), re.S)
    assert f"script-src '{content_hash(script)}';" in page.read_text()
    assert not re.search(r"@import|url\(|https?://(?!www.w3.org/)|fetch|import\(", page.read_text().replace(script, ""))
    assert not re.search(r"https?://(?!www.w3.org/)|fetch|import|XMLHttp|eval", script)
    assert len(seen.ids) == len(set(seen.ids)), "ids are unique"
    assert set(seen.references) <= set(seen.ids)
    assert report.size == page.stat().st_size < 2_000_000
    assert [run.label for run in report.runs] == ["static", "fair", "ltrf", "ltrf@outside"]
    assert list(page.parent.iterdir()) == [page], "no temporary file is left"


def test_the_page_has_the_papers_plots_and_tables(three_policies: list[Path], tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    render_report(three_policies, page)
    seen = outline(page)
    text = " ".join(seen.text)
    for ident in ("findings", "comparison", "fairness-degree", "loss", "benefit", "policies", "demand", "allocation"):
        assert ident in seen.ids, ident
    for ident in ("accumulated", "detail", "running", "weights", "speed-up", "runs", "sources"):
        assert ident in seen.ids, ident
    assert "groups" not in seen.ids, "there is no hierarchy in these runs"
    assert seen.tags.count("desc") == seen.tags.count("figure") > 15, "each chart is described"
    assert "facebook is owed 3 GB·s" in text
    assert "Fairness degree at the end" in text
    # By construction: fair gives facebook 1.4 of its share throughout.
    assert "1.400" in text
    assert "time (s)" in text


def test_axes_carry_units_and_tables_have_headers(hierarchy: list[Path], tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    render_report(hierarchy, page)
    html = page.read_text()
    for table in re.findall(r"<table>.*?</table>", html, re.S):
        assert "<caption" in table
        assert '<th scope="col"' in table
        assert '<th scope="row">' in table
    for svg in re.findall(r'<svg viewBox="0 0 420.*?</svg>', html, re.S):
        labels = re.findall(r'class="l"[^>]*>([^<]+)<', svg)
        assert labels, "an axis without a label"
    assert 'id="groups"' in html
    assert 'id="starvation"' in html


def test_a_single_run_s_page_says_which_run_it_is(
    three_policies: list[Path], write_run: Callable[..., Path], tmp_path: Path
) -> None:
    text = render_report([three_policies[-1]], tmp_path / "page.html").path.read_text(encoding="utf-8")
    assert "<h1>yarnfair: ltyarn, ltrf@outside</h1>" in text
    assert "One run: ltrf from outside, horizon_s 80, seed 1, simulated." in text
    assert '<body class="single">' in text
    assert "policies compared" not in text
    assert "these runs" not in text
    assert "Comparison" not in text
    both = render_report(three_policies[:2], tmp_path / "page.html").path.read_text(encoding="utf-8")
    assert "2 runs: static, fair." in both
    assert "The policies compared" in both
    assert "<body>" in both


def test_a_chart_that_is_cut_says_so(write_run: Callable[..., Path], tmp_path: Path) -> None:
    """The burst of the first seconds: 4 times the share, which the axis of all the time after does not hold."""
    run = write_run("ltrf", "ltrf", held=(4.0, 1.0, 1.0, 1.0), seconds=2000)
    table = pd.read_parquet(run / "allocations.parquet")
    early = (table["queue"] == "root.facebook") & (table["time_s"] > 20)
    table.loc[early, "accumulated_mb_s"] = table.loc[early, "due_mb_s"]
    table.to_parquet(run / "allocations.parquet")
    text = render_report([run], tmp_path / "page.html").path.read_text(encoding="utf-8")
    caption = '<figcaption>ltrf <span class="cut">cut: values reach 4</span></figcaption>'
    assert text.count(caption) == 1
    assert text.count('<span class="cut">cut: values reach 3</span>') == 1  # the benefit, 4 - 1


def test_the_same_runs_give_the_same_page(three_policies: list[Path], tmp_path: Path) -> None:
    render_report(three_policies, tmp_path / "a.html")
    render_report(three_policies, tmp_path / "b.html")
    assert (tmp_path / "a.html").read_bytes() == (tmp_path / "b.html").read_bytes()


def test_names_from_files_are_escaped(write_run: Callable[..., Path], tmp_path: Path) -> None:
    run = write_run("<script>alert(1)</script>".replace("/", "\u2215"), "fair", leaves=("root.<b>&", "root.c"))
    render_report([run], tmp_path / "report.html")
    seen = outline(tmp_path / "report.html")
    assert seen.tags.count("script") == 1
    assert "b" not in seen.tags


def test_an_unfinished_run_is_shown_as_such_and_says_nothing(
    write_run: Callable[..., Path], three_policies: list[Path], tmp_path: Path
) -> None:
    unfinished = write_run("ltrf", "ltrf", seed=2, exit=None)
    report = render_report([*three_policies, unfinished], tmp_path / "report.html")
    (shown,) = [run for run in report.runs if run.label == "ltrf, seed 2"]
    assert "unfinished" in shown.state
    assert not [line for finding in report.findings for line in finding.evidence if "seed 2" in line]
    text = " ".join(outline(tmp_path / "report.html").text)
    assert "ltrf, seed 2 (ltrf-2): unfinished" in text


def test_an_invalid_run_says_nothing(write_run: Callable[..., Path], tmp_path: Path) -> None:
    report = render_report([write_run("fair", "fair", exit=4)], tmp_path / "report.html")
    assert report.findings == []
    assert report.runs[0].state == "not valid: the run ended with exit code 4"


def test_a_half_written_decision_is_counted_not_hidden(write_run: Callable[..., Path], tmp_path: Path) -> None:
    run = write_run("ltrf", "ltrf", mode="outside", exit=None)
    with (run / "decisions.jsonl").open("a") as file:
        file.write('{"time_s": 3.0, "kind": "wri')
    report = render_report([run], tmp_path / "report.html")
    assert report.runs[0].decisions.count == 2
    assert report.runs[0].decisions.unreadable == 1
    assert "1 line(s) could not be read" in (tmp_path / "report.html").read_text()


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("run.json", b"{"),
        ("run.json", b"[]"),
        ("run.json", b"\xff\xfe\x00"),
        ("run.json", b"[" * 100_000),
        ("summary.json", b'{"queues": 3}'),
        ("allocations.parquet", b"PAR1 and then nothing"),
        ("allocations.parquet", b""),
    ],
)
def test_a_damaged_file_is_named_and_leaves_no_page(
    write_run: Callable[..., Path], tmp_path: Path, name: str, content: bytes
) -> None:
    run = write_run("fair", "fair")
    (run / name).write_bytes(content)
    page = tmp_path / "pages" / "report.html"
    with pytest.raises(InputError) as caught:
        render_report([run], page)
    assert name in str(caught.value.where)
    assert not page.exists()


def test_a_damaged_summary_makes_its_run_invalid_and_leaves_the_others(
    write_run: Callable[..., Path], tmp_path: Path
) -> None:
    damaged, whole = write_run("fair", "fair"), write_run("ltrf", "ltrf")
    (damaged / "summary.json").write_bytes(b"null")
    report = render_report([damaged, whole], tmp_path / "report.html")
    states = {run.label: run.state for run in report.runs}
    assert states["ltrf"] == "finished"
    assert states["fair"].startswith("not valid: summary.json is damaged: ")


def test_a_directory_that_is_no_run_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="not a run directory"):
        render_report([tmp_path], tmp_path / "report.html")
    with pytest.raises(InputError, match="no such run directory"):
        render_report([tmp_path / "nowhere"], tmp_path / "report.html")


def yarnfair(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "harness", *arguments], capture_output=True, text=True, timeout=300)


def test_the_command_reports_on_a_folder_of_runs(three_policies: list[Path]) -> None:
    folder = three_policies[0].parent
    done = yarnfair("report", str(folder), "--json")
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["report"] == str(folder / "report.html")
    assert (folder / "report.html").stat().st_size == answer["bytes"]
    assert {run["label"] for run in answer["runs"]} == {"static", "fair", "ltrf", "ltrf@outside"}
    assert {finding["verdict"] for finding in answer["findings"]} <= {"holds", "holds in part", "does not hold"}


def test_the_command_says_what_is_wrong_in_one_line(tmp_path: Path) -> None:
    done = yarnfair("report", str(tmp_path))
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert yarnfair("report").returncode == 2


def test_several_seeds_are_summed_up_and_their_mean_is_drawn(write_run: Callable[..., Path], tmp_path: Path) -> None:
    runs = []
    for seed, loss in ((1, 10.0), (2, 20.0), (3, 60.0)):
        runs += [
            write_run(f"fair,seed={seed}", "fair", seed=seed, summary={"sharing_loss_integral": 4 * loss}),
            write_run(f"ltrf,seed={seed}", "ltrf", seed=seed, summary={"sharing_loss_integral": loss}),
        ]
    report = render_report(runs, tmp_path / "report.html")
    html = (tmp_path / "report.html").read_text()
    assert "Courses over time are means over 3 seeds" in html
    assert f"30.0 \u00b1 {half_width_95([10.0, 20.0, 60.0]):.1f}" in html
    (less,) = [f for f in report.findings if f.title == "Long-term fairness loses less than memoryless fairness"]
    (line,) = less.evidence
    assert line.startswith("ltrf: holds in 3 of 3 runs; sharing loss 30.0")
    half = half_width_95([30.0, 60.0, 180.0])
    assert f"a difference of \u221290.0 \u00b1 {half:.1f}" in line, "seed against seed"
    assert "A difference is the mean of the differences seed by seed" in " ".join(html.split())


def test_runs_of_two_backends_have_their_names_and_are_not_compared(
    write_run: Callable[..., Path], tmp_path: Path
) -> None:
    runs = []
    for backend, loss in (("sim", 10.0), ("local", 50.0)):
        for name, times in (("fair", 4), ("ltrf", 1)):
            runs.append(write_run(name, name, backend=backend, summary={"sharing_loss_integral": times * loss}))
    report = render_report(runs, tmp_path / "report.html")
    (less,) = [f for f in report.findings if f.title == "Long-term fairness loses less than memoryless fairness"]
    assert [line.rpartition(" (")[0] for line in less.evidence] == [
        "ltrf (sim): sharing loss 10.0 s against 40.0 s of fair (sim)",
        "ltrf (local): sharing loss 50.0 s against 200.0 s of fair (local)",
    ]


def test_a_setting_that_runs_differ_in_becomes_an_axis(write_run: Callable[..., Path], tmp_path: Path) -> None:
    runs = []
    for seed in (1, 2):
        runs.append(write_run(f"ltrf,seed={seed}", "ltrf", seed=seed, summary={"sharing_loss_integral": 100.0 * seed}))
        variant = f"ltrf@outside,horizon_s=auto,seed={seed}"
        runs.append(write_run(variant, "ltrf", "outside", settings={"horizon_s": "auto"}, seed=seed))
        for horizon_s, loss in ((20.0, 90.0), (80.0, 80.0), (640.0, 110.0)):
            variant = f"ltrf@outside,horizon_s={horizon_s:g},seed={seed}"
            summary = {"sharing_loss_integral": loss * seed, "last_loss_s": horizon_s}
            settings = {"horizon_s": horizon_s}
            runs.append(write_run(variant, "ltrf", "outside", settings=settings, seed=seed, summary=summary))
    render_report(runs, tmp_path / "report.html")
    html = (tmp_path / "report.html").read_text()
    assert "ltrf@outside over horizon (s)" in html
    # Ratios 0.9, 0.8 and 1.1 for both seeds.
    assert "from 0.8 to 1.1, at the end 1.1" in html
    assert html.count("<circle") == 4 * 3
    assert "over control period" not in html, "one period makes no curve"


def test_further_figures_of_a_summary_get_tables(write_run: Callable[..., Path], tmp_path: Path) -> None:
    fair = write_run("fair", "fair", summary={"soft_fairness": 0.125, "discrimination": {"cpu": 0.5}})
    path = write_run("ltrf", "ltrf")
    summary = json.loads((path / "summary.json").read_text())
    summary["queues"]["root.spark"]["p99_wait_s"] = 42.25
    (path / "summary.json").write_text(json.dumps(summary))
    out = tmp_path / "page.html"
    render_report([fair, path], out)
    page = out.read_text(encoding="utf-8")
    assert "Further figures of the whole run" in page
    assert "soft fairness" in page.lower()
    assert "discrimination, cpu" in page.lower()
    assert "0.125" in page
    assert "42.250" in page
    assert "P99 wait<" in page
    # What stands there is explained there; what does not, is not.
    assert "The soft fairness degree is how far" in page
    assert "unavoidable" not in page.partition("Further figures of the whole run")[2].partition("<table")[0]


def changed(path: Path, name: str, **more: object) -> None:
    document = json.loads((path / name).read_text())
    (path / name).write_text(json.dumps({**document, **more}))


@pytest.mark.parametrize(
    ("name", "more", "said"),
    [
        ("run.json", {"exit": []}, "run.json: exit is '[]', not an exit code; run it again"),
        ("run.json", {"exit": "0"}, "run.json: exit is '0', not an exit code; run it again"),
        ("summary.json", {"queues": {"root.a": 5}}, "summary.json: 'queues.root.a' is not an object; run it again"),
        ("summary.json", {"queues": []}, "summary.json: 'queues' is not an object; run it again"),
        ("summary.json", {"utilisation": 5}, "summary.json: 'utilisation' is not an object; run it again"),
    ],
)
def test_a_part_of_the_wrong_kind_is_one_line_that_names_the_file(
    name: str, more: dict[str, object], said: str, write_run: Callable[..., Path], tmp_path: Path
) -> None:
    path = write_run("fair", "fair")
    changed(path, name, **more)
    with pytest.raises(InputError) as caught:
        render_report([path], tmp_path / "page.html")
    assert caught.value.line() == f"{path}/{said}"


def test_what_only_tells_runs_apart_may_be_anything(write_run: Callable[..., Path], tmp_path: Path) -> None:
    paths = [write_run("fair", "fair"), write_run("fair", "fair", backend="local")]
    changed(paths[1], "run.json", backend=["x"], repeat={})
    report = render_report(paths, tmp_path / "page.html")
    assert [run.label for run in report.runs] == ["fair (sim), repeat None", "fair (['x']), repeat {}"]


def sources(write_run: Callable[..., Path], tmp_path: Path, *runs: dict[str, Any]) -> str:
    paths = [write_run(f"v{k}", "fair", **more) for k, more in enumerate(runs)]
    for path in paths:
        document = json.loads((path / "run.json").read_text())
        changed(path, "run.json", experiment={**document["experiment"], "sample_s": 0.5})
    render_report(paths, tmp_path / "page.html")
    return (tmp_path / "page.html").read_text().partition("Where the numbers come from</h2>")[2]


def test_the_sources_are_those_of_the_backend_and_the_unit_that_of_the_resource(
    write_run: Callable[..., Path], tmp_path: Path
) -> None:
    text = sources(write_run, tmp_path, {})
    assert "allocations.parquet, in MiB\u00b7s." in text
    assert "exact at each sample" in text
    assert "ResourceManager" not in text
    assert "from the samples, taken every 0.5 s; completion times come from the simulation" in text
    (tmp_path / "real").mkdir()
    text = sources(write_run, tmp_path, {"backend": "docker", "resource": "vcores"}, {"backend": "local"})
    assert "allocations.parquet, in vcore\u00b7s or MiB\u00b7s." in text
    assert "exact at each sample" not in text
    assert "sums of steps" in text
    assert "completion times come from what the ResourceManager noted" in text


def test_accumulated_resources_are_seconds_of_the_cluster_whatever_is_measured(
    write_run: Callable[..., Path],
) -> None:
    """The made-up integrals are of 59 * 4096 units; with vcores a cluster has as many as run.json says."""
    path = write_run("ltrf", "ltrf", resource="vcores")
    changed(path, "run.json", capacity_vcores=59 * 2048)
    memory, vcores = load_run(write_run("fair", "fair")), load_run(path)
    assert (memory.capacity(), vcores.capacity()) == (59 * 4096, 59 * 2048)
    curves = []
    for run in (memory, vcores):
        (group,) = (g for g in resource_groups(grouped([run]), Styles.of([run])) if g.ident == "accumulated")
        (chart,) = group.charts
        assert isinstance(chart, LineChart)
        curves.append(float(chart.lines[0].curve.y[-1]))
    assert curves[1] == pytest.approx(2 * curves[0])


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({}, "accumulated so far (GiB\u00b7s): a 2"),
        ({"resource": "vcores"}, "accumulated so far (vcore\u00b7s): a 2,048"),
        ({"resource": "dominant"}, "accumulated so far (s of the whole cluster): a 2,048"),
    ],
)
def test_what_a_policy_has_counted_is_in_the_unit_of_its_resource(
    settings: dict[str, str], said: str, write_run: Callable[..., Path]
) -> None:
    path = write_run("ltrf@outside", "ltrf", mode="outside", settings=settings)
    (path / "decisions.jsonl").write_text(json.dumps({"time_s": 1.0, "counted": {"root.a": 2048.0}}) + "\n")
    (table,) = decision_tables([load_run(path)])
    assert table.rows[0][2] == said


def test_the_quantum_of_each_queue_is_drawn_over_time(write_run: Callable[..., Path]) -> None:
    """Thesis Fig. 5.7c; a run without a quantum has no such chart."""
    path = write_run("ltrf", "ltrf")

    def charts() -> dict[str, list[float]]:
        run = load_run(path)
        groups = [group for group in resource_groups(grouped([run]), Styles.of([run])) if group.ident == "quantum"]
        return {line.name: list(line.curve.y) for group in groups for line in group.charts[0].lines}

    assert charts() == {}
    table = pd.read_parquet(path / "allocations.parquet")
    table["quantum_s"] = 20.0 - 5.0 * (table["time_s"] > 100)
    table.to_parquet(path / "allocations.parquet")
    found = charts()
    assert len(found) == 4
    assert all(max(line) == 20.0 and min(line) == line[-1] == 15.0 for line in found.values())


def test_open_jobs_are_told_beside_the_means(write_run: Callable[..., Path], tmp_path: Path) -> None:
    path = write_run("fair", "fair")
    render_report([path], tmp_path / "page.html")
    assert "Open jobs" not in (tmp_path / "page.html").read_text(), "it does not say how many ended"
    queues = json.loads((path / "summary.json").read_text())["queues"]
    for ended, shown in ((10, False), (7, True)):
        changed(path, "summary.json", queues={name: {**own, "ended": ended} for name, own in queues.items()})
        render_report([path], tmp_path / "page.html")
        page = (tmp_path / "page.html").read_text()
        assert ("Open jobs" in page) == shown
        assert "Jobs that ended" not in page


def test_a_users_own_experiment_is_not_judged_by_a_papers_findings(
    write_run: Callable[..., Path], tmp_path: Path
) -> None:
    losses = (("fair", 400.0), ("ltrf", 100.0))
    for experiment, judged in (("ltyarn", True), ("mine", False)):
        runs = [
            write_run(name, name, experiment=experiment, summary={"sharing_loss_integral": loss})
            for name, loss in losses
        ]
        report = render_report(runs, tmp_path / "report.html")
        assert bool(report.findings) == judged
        assert ('id="findings"' in (tmp_path / "report.html").read_text(encoding="utf-8")) == judged


def test_a_page_about_many_runs_stays_small_and_keeps_few_tables_in_memory(
    write_run: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    count = MOST_ROWS + 20
    kept = KeptTables()
    monkeypatch.setattr(data, "_TABLES", kept)
    monkeypatch.setattr(data, "KEPT_BYTES", 20_000)
    paths = [write_run("fair", "fair", seed=seed, seconds=4) for seed in range(count)]
    report = render_report(paths, tmp_path / "page.html")
    assert len(report.runs) == count
    assert 0 < kept.size <= 20_000
    text = report.path.read_text(encoding="utf-8")
    assert f"The first {MOST_ROWS} of {count} rows" in text
    assert text.count("<tr>") < MOST_ROWS * 25
    # The tables have all of it: a run whose table was let go is read again.
    first = report.runs[0]
    assert float(first.series["root.facebook"].time_s[-1]) == 4.0
    (finding,) = (f for f in report.findings if f.title == "Memoryless fairness keeps losing")
    (line,) = finding.evidence
    assert line.startswith(f"fair: holds in 0 of {count} runs; mean loss")


def test_a_table_that_was_written_anew_is_read_anew(write_run: Callable[..., Path]) -> None:
    short, long = write_run("fair", "fair", seconds=4), write_run("ltrf", "ltrf", seconds=9)
    assert float(load_run(short).series["root"].time_s[-1]) == 4.0
    (long / "allocations.parquet").replace(short / "allocations.parquet")
    assert float(load_run(short).series["root"].time_s[-1]) == 9.0
