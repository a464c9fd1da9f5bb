"""Pages of the other kinds (MR-clusters, layouts, computing rates, pools, vectors): `run`, `report`, `compare`."""

from __future__ import annotations

import json
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
import yaml

from harness.base.errors import InputError
from harness.cli import main
from harness.report import render_report
from harness.report.printed import figures_of, write_figure
from harness.report.tables import figure_text
from harness.results.kinds import KINDS

pytestmark = pytest.mark.xdist_group("kinds-report")

EXPERIMENTS: dict[str, dict[str, Any]] = {
    "mr-clusters": {
        "nodes": 9,
        "settings": {"period": 60},
        "clusters": {
            "a": {"core": 3, "submit": [{"application": "WC", "size_gb": 1, "count": 20}]},
            "b": {"core": 3, "submit": [{"application": "WC", "size_gb": 1, "count": 2}]},
        },
        "policies": ["fawkes-none", "fawkes-eq", "fawkes-td"],
        "seed": [1, 2],
    },
    "mr-layouts": {
        "layouts": {
            "core": {"core": 4},
            "transient-2": {"core": 4, "transient": 2},
            "transient-4": {"core": 4, "transient": 4},
            "transient-core-2": {"core": 4, "transient_core": 2},
            "transient-core-4": {"core": 4, "transient_core": 4},
        },
        "reference": "core",
        "submit": [{"application": "ST", "size_gb": 5}, {"application": "WC", "size_gb": 5}],
    },
    "computing-rates": {
        "configurations": {"two": {"N1": 2, "N2": 4}},
        "jobs": {
            "A": {"tasks": 60, "seconds": 6, "rates": {"N1": 3, "N2": 1}},
            "B": {"tasks": 60, "seconds": 4, "rates": {"N1": 1, "N2": 1}},
        },
        "policies": ["fair", "progress-share"],
    },
    "cloud": {
        "period_h": 4,
        "queries": {"q": {"work_cu_h": 60, "memory_gb": 0.4}},
        "configurations": {
            "9m1": {"core": {"m1.large": 9}},
            "5m1+4m1": {"core": {"m1.large": 5}, "accelerators": {"m1.large": 4}},
        },
        "driver": {"core": {"m1.large": 5}, "types": ["m1.large", "c1.medium"], "deadline_h": 2},
    },
    "vectors": {
        "users": [4, 6, 8],
        "machines": 4,
        "hours": 2,
        "sample_s": 300,
        "policies": ["static", "drf", {"policy": "tetris", "vary": {"f": [0.2]}},
                     {"policy": "qknober", "vary": {"rho": [0, 0.2, 1]}}],
    },
}  # fmt: skip


class Page(HTMLParser):
    """Captions of tables with their cells, titles of charts, ids."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tables: dict[str, list[list[str]]] = {}
        self.charts = 0
        self.idents: list[str] = []
        self._into: list[str] | None = None
        self._caption: str | None = None
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        named = dict(attributes)
        if named.get("id"):
            self.idents.append(str(named["id"]))
        if tag == "figure":
            self.charts += 1
        elif tag == "caption":
            self._caption = ""
        elif tag == "tr":
            self.tables[str(self._caption)].append([])
        elif tag in ("td", "th"):
            self.tables[str(self._caption)][-1].append("")
            self._into = self.tables[str(self._caption)][-1]

    def handle_endtag(self, tag: str) -> None:
        if tag == "caption":
            self.tables[str(self._caption)] = []
        elif tag in ("td", "th"):
            self._into = None

    def handle_data(self, data: str) -> None:
        if self._into is not None:
            self._into[-1] += data
        elif self._caption == "":
            self._caption = data


def call(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    capsys.readouterr()
    with pytest.raises(SystemExit) as stop:
        main([str(argument) for argument in arguments])
    out = capsys.readouterr()
    return int(stop.value.code or 0), out.out, out.err


#: Experiments that the project brings are judged by their papers' findings; these stand for them.
NAMES = {
    "mr-clusters": "fawkes-d",
    "mr-layouts": "fawkes-growing",
    "computing-rates": "progress-share-crypto",
    "cloud": "cloud-production",
    "vectors": "qknober-google",
}


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A folder of run directories for each kind, as `yarnfair run` leaves it."""
    place = tmp_path_factory.mktemp("kinds")
    found = {}
    for kind, experiment in EXPERIMENTS.items():
        file = place / f"{kind}.yaml"
        file.write_text(yaml.safe_dump({"kind": kind, "experiment": NAMES[kind], **experiment}, sort_keys=False))
        with pytest.raises(SystemExit) as stop:
            main(["run", str(file), "--out", str(place / kind), "--json"])
        assert not stop.value.code
        found[kind] = place / kind
    return found


def summaries(folder: Path) -> dict[str, dict[str, Any]]:
    return {path.parent.name: json.loads(path.read_text()) for path in sorted(folder.glob("*/summary.json"))}


def test_every_kind_has_a_page() -> None:
    assert set(KINDS) == set(EXPERIMENTS)


@pytest.mark.parametrize("kind", EXPERIMENTS)
def test_run_writes_a_page_and_report_the_same_again(
    kind: str, folders: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = folders[kind]
    written = (folder / "report.html").read_text(encoding="utf-8")
    assert all((folder / name / "report.html").is_file() for name in summaries(folder))
    code, out, _ = call(capsys, "report", folder, "-o", tmp_path / "again.html", "--json")
    assert code == 0
    document = json.loads(out)
    assert len(document["runs"]) == len(summaries(folder))
    again = (tmp_path / "again.html").read_text(encoding="utf-8")
    assert Page(again).tables.keys() == Page(written).tables.keys()
    assert document["findings"], "each of these experiments has what a finding of its paper needs"
    page = Page(again)
    assert page.charts > 0
    assert len(set(page.idents)) == len(page.idents), "ids are unique"
    assert again.count("<script") == ("data-t=" in again), "one script, and only where there is time to zoom"
    shown = again.split("<main>")[1].split('id="runs"')[0].replace("fawkes-none", "").replace("None", "")
    assert not re.search(r"\b(nan|inf|undefined)\b", shown)


@pytest.mark.parametrize("kind", EXPERIMENTS)
def test_every_figure_of_a_kind_can_be_printed(kind: str, folders: dict[str, Path], tmp_path: Path) -> None:
    figures = figures_of([folders[kind]])
    assert figures.groups
    for name, group in figures.groups.items():
        written = write_figure(group, tmp_path / f"{name}.svg")
        assert "<svg" in written.figure.read_text(encoding="utf-8")
        assert len(written.data.read_text(encoding="utf-8").splitlines()) > 1


def test_mr_clusters_show_means_over_seeds_as_the_summaries_have_them(folders: dict[str, Path]) -> None:
    page = Page((folders["mr-clusters"] / "report.html").read_text(encoding="utf-8"))
    found = summaries(folders["mr-clusters"])
    rows = {row[0]: row[1:] for row in page.tables["Mean job slowdown of each MR-cluster"]}
    for policy in ("fawkes-none", "fawkes-eq", "fawkes-td"):
        own = [found[f"{policy},seed={seed}"]["queues"]["a"]["mean_slowdown"] for seed in (1, 2)]
        assert rows[policy][0].startswith(figure_text(sum(own) / 2, 2))
    assert [name for name in rows if name.startswith("fawkes")] == ["fawkes-none", "fawkes-eq", "fawkes-td"]
    for ident in ("slowdown", "nodes", "demand", "balance"):
        assert ident in page.idents


def test_the_finding_on_balancing_follows_the_summaries(folders: dict[str, Path], tmp_path: Path) -> None:
    findings = {f.title: f for f in render_report([folders["mr-clusters"]], tmp_path / "r.html").findings}
    found = summaries(folders["mr-clusters"])
    better = [
        all(
            found[f"{policy},seed={seed}"]["mean_slowdown"] < found[f"fawkes-none,seed={seed}"]["mean_slowdown"]
            for seed in (1, 2)
        )
        for policy in ("fawkes-td",)
    ]
    assert findings["Balancing lowers the mean job slowdown"].verdict == ("holds" if all(better) else "does not hold")


def test_layouts_are_beside_their_reference(folders: dict[str, Path]) -> None:
    page = Page((folders["mr-layouts"] / "report.html").read_text(encoding="utf-8"))
    rows = {row[0]: row[1:] for row in page.tables["Speed-up over the reference layout"]}
    found = summaries(folders["mr-layouts"])
    assert rows["core"][0] == figure_text(1.0, 3)
    for name, summary in found.items():
        assert rows[name][0] == figure_text(summary["applications"]["ST-5GB"]["speedup"], 3)
    assert "grow" in page.idents, "speed-up over the number of nodes"


def test_rates_show_the_progress_shares_of_the_paper_s_example(folders: dict[str, Path], tmp_path: Path) -> None:
    """Figs. 2 and 3: A falls below its half with equal slots, and does not with progress share."""
    report = render_report([folders["computing-rates"]], tmp_path / "r.html")
    rows = {row[0]: row[1:] for row in Page((tmp_path / "r.html").read_text()).tables["Progress share, least"]}
    assert float(rows["two,fair"][0]) < 0.5 <= float(rows["two,progress-share"][0])
    verdicts = {f.title: f.verdict for f in report.findings}
    assert verdicts["Progress-share scheduling keeps every job at its share"] == "holds"
    assert verdicts["It ends no later than equal numbers of slots"] == "holds"


def test_pools_show_cost_and_the_drivers_choice(folders: dict[str, Path], tmp_path: Path) -> None:
    report = render_report([folders["cloud"]], tmp_path / "r.html")
    rows = {row[0]: row[1:] for row in Page((tmp_path / "r.html").read_text()).tables["Each configuration"]}
    found = summaries(folders["cloud"])
    assert {name: row[4] for name, row in rows.items() if name in found} == {
        name: figure_text(summary["cost_dollars"], 2) for name, summary in found.items()
    }
    assert {f.title: f.verdict for f in report.findings}["Accelerators cost less than as many core nodes"] == "holds"


def test_a_driver_that_never_ends_meets_no_deadline(folders: dict[str, Path], tmp_path: Path) -> None:
    """As a directory from before such a driver was an error has it: null in the place of its time."""
    copy = tmp_path / "cloud"
    shutil.copytree(folders["cloud"], copy)
    title = "The cloud driver meets the deadline at the least cost"
    assert title in {f.title for f in render_report([copy], tmp_path / "r.html").findings}
    summary = json.loads((copy / "driver" / "summary.json").read_text())
    (copy / "driver" / "summary.json").write_text(json.dumps({**summary, "makespan_s": None}))
    assert title not in {f.title for f in render_report([copy], tmp_path / "r.html").findings}


def test_vectors_show_the_knob_and_the_users(folders: dict[str, Path]) -> None:
    page = Page((folders["vectors"] / "report.html").read_text(encoding="utf-8"))
    rows = {row[0]: row[1:] for row in page.tables["Each rule over the whole run"]}
    found = summaries(folders["vectors"])
    assert {name for name in rows if "," in name} == set(found)
    name = "qknober,rho=0.2,users=6"
    assert rows[name][1] == figure_text(found[name]["speedup_over_static"], 3)
    assert found["static,users=6"]["speedup_over_static"] == 1
    for ident in ("knob", "users", "utilisation", "time"):
        assert ident in page.idents


@pytest.mark.parametrize("kind", EXPERIMENTS)
def test_compare_knows_the_metrics_of_every_kind(
    kind: str, folders: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = call(capsys, "compare", folders[kind], "--json")
    assert code == 0
    judged = [row for contest in json.loads(out)["contests"] for row in contest["metrics"]]
    assert judged
    expected = {
        "mr-clusters": "mean_slowdown",
        "mr-layouts": "applications.ST-5GB.runtime_s",
        "computing-rates": "queues.progress_share.below_share",
        "cloud": "cost_dollars",
        "vectors": "soft_fairness",
    }[kind]
    assert expected in {row["key"] for row in judged}


def test_kinds_are_not_mixed_and_unfinished_runs_are_said(folders: dict[str, Path], tmp_path: Path) -> None:
    out = tmp_path / "page.html"
    with pytest.raises(InputError, match="different kinds"):
        render_report([folders["cloud"], folders["vectors"]], out)
    assert not out.exists()
    copy = tmp_path / "run"
    copy.mkdir()
    source = folders["mr-clusters"] / "fawkes-td,seed=1"
    for file in source.iterdir():
        (copy / file.name).write_bytes(file.read_bytes())
    info = json.loads((copy / "run.json").read_text())
    (copy / "run.json").write_text(json.dumps({**info, "exit": None}))
    (copy / "summary.json").unlink()
    render_report([copy], out)
    assert "the run did not come to its end" in out.read_text()
    (copy / "allocations.parquet").write_bytes(b"no table")
    (copy / "summary.json").write_bytes((source / "summary.json").read_bytes())
    with pytest.raises(InputError, match="not a readable parquet file"):
        render_report([copy], out)
