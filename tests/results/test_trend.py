"""`yarnfair trend`: what changed for good is named with its run and commit, drawn, and linked from annotations."""

from __future__ import annotations

import json
import os
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.base.errors import InputError
from harness.base.outputs import write_output
from harness.report.trend import chart, grouped, lines
from harness.results.history import histories
from harness.results.runs import read_runs
from tests.browser import chromium
from tests.results.conftest import Write, call

COMMITS = ("a" * 40, "b" * 40)


def nightly(write: Write, before: float, after: float, name: str = "nights", **more: Any) -> None:
    """Twelve nights at one level of the makespan, twelve at another, with a commit between them."""
    rng = np.random.default_rng(7)
    for at, level in enumerate([before] * 12 + [after] * 12):
        start = f"2026-{1 + at // 28:02d}-{1 + at % 28:02d}T03:00:00+00:00"
        directory = write(
            f"{name}/{at:03d}", seed=at, start=start, makespan_s=level + float(rng.normal()),
            mean_completion_s=100 + float(rng.normal()), **more,
        )  # fmt: skip
        info = json.loads((directory / "run.json").read_text())
        info["commits"] = {"folder": COMMITS[at >= 12]}
        (directory / "run.json").write_text(json.dumps(info))


@pytest.mark.parametrize(
    ("before", "after", "word", "moved"),
    [(1000, 1100, "worse", "+10.0 %"), (1000, 900, "better", "-10.0 %"), (10_000, 10_050, "changed", "+0.5 %")],
)
def test_a_change_is_named_with_its_day_and_commit(
    before: float, after: float, word: str, moved: str, write: Write, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    nightly(write, before, after)
    code, out, _ = call(capsys, "trend", tmp_path / "nights")
    text = " ".join(out.split())
    assert code == 0
    assert "24 runs from 2026-01-01 to 2026-01-24, 2 commits, the last one bbbbbbbbbb" in text
    assert re.search(rf"{word} makespan: .* s \({re.escape(moved)}\), since 2026-01-13, commit bbbbbbbbbb", text), text
    assert "mean completion:" not in text


@pytest.mark.parametrize(
    ("levels", "night"),
    [
        ((1000, 1500, 1510), 12),
        ((1000, 990, 1500, 1510), 24),
        ((1000, 1500, 1000, 1510), 36),
        ((1000, 1400, 1390, 900), 36),
    ],
)
def test_since_names_the_change_that_matters_not_a_small_one_that_followed(
    levels: tuple[int, ...], night: int, write: Write, tmp_path: Path
) -> None:
    rng = np.random.default_rng(7)
    for at in range(12 * len(levels)):
        write(f"steps/{at:03d}", seed=at, start=f"2026-01-01T00:00:{at:02d}+00:00",
              makespan_s=levels[at // 12] + 0.1 * float(rng.normal()))  # fmt: skip
    (group,) = grouped(histories(read_runs([tmp_path / "steps"]))[0])
    (told,) = (line for line in lines([group]) if "makespan" in line)
    assert told.endswith(f"steps/{night:03d}"), told


def test_a_folder_whose_name_is_no_utf_8_has_a_page_all_the_same(
    write: Write, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write("nights/0")
    odd = os.fsdecode(bytes(tmp_path / "n") + b"\xff")
    (tmp_path / "nights").rename(odd)
    assert call(capsys, "trend", odd, "--html", tmp_path / "trend.html")[0] == 0
    assert r"n\udcff" in (tmp_path / "trend.html").read_text(encoding="utf-8")


def test_json_has_every_value_and_agrees_with_the_checks_alarm(
    write: Write, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    nightly(write, 1000, 1100)
    document = json.loads(call(capsys, "trend", tmp_path / "nights", "--json", "--metrics", "makespan_s")[1])
    (one,) = document["histories"]
    assert (one["metric"], one["word"], len(one["runs"])) == ("makespan_s", "worse", 24)
    assert [level["runs"] for level in one["levels"]] == [12, 12]
    values = [run["value"] for run in one["runs"]]
    for level, own in zip(one["levels"], (values[:12], values[12:]), strict=True):
        assert (level["least"], level["median"], level["greatest"]) == (min(own), np.median(own), max(own))
    assert one["runs"][12]["commit"] == "b" * 10
    assert one["levels"][1]["run"].endswith("012")
    run = tmp_path / "nights" / "023"
    checked = json.loads(call(capsys, "check", run, "--history", tmp_path / "nights", "--json")[1])
    (alarm,) = checked["regressions"]
    assert (alarm["value"], alarm["recorded"]) == (one["levels"][1]["median"], one["best"])


def test_few_runs_and_runs_that_do_not_count_are_said(
    write: Write, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for at in range(3):
        write(f"few/{at}", seed=at)
    write("few/bad", seed=9, exit=4)
    code, out, err = call(capsys, "trend", tmp_path / "few")
    assert code == 0
    assert "with too few runs to tell" in " ".join(out.split())
    assert "1 run(s) that do not count are left out" in err
    assert call(capsys, "trend", tmp_path / "few" / "bad")[0] == 4
    code, _, err = call(capsys, "trend", tmp_path / "few", "--metrics", "makspan_s")
    assert (code, "did you mean makespan_s" in err) == (2, True)


def test_a_run_without_a_time_or_a_commit_is_shown_all_the_same(write: Write, tmp_path: Path) -> None:
    rng = np.random.default_rng(7)
    for at in range(24):
        write(f"plain/{at:03d}", seed=at, start="", makespan_s=(1000 if at < 12 else 1100) + float(rng.normal()))
    found, _ = histories(read_runs([tmp_path / "plain"]))
    (group,) = grouped(found)
    assert {run.commit for run in group.runs} == {""}
    assert any("since plain/012" in line for line in lines([group]))


def test_all_runs_are_counted_also_those_before_the_latest_120_and_those_that_lack_a_metric(
    write: Write, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for at in range(130):
        write(f"long/{at:03d}", seed=at, start=f"2026-01-01T{at // 60:02d}:{at % 60:02d}:00+00:00", makespan_s=at % 7)
    write("long/last", seed=130, start="2026-01-02T00:00:00+00:00", summary={"queues": {}})
    out = " ".join(call(capsys, "trend", tmp_path / "long")[1].split())
    assert "131 runs from 2026-01-01 to 2026-01-02; changes are looked for in the latest 120 values" in out


def test_runs_without_any_metric_are_said(write: Write, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """And an integer that no float holds is no figure, as NaN is none."""
    for at in range(3):
        write(f"none/{at}", seed=at, summary={"queues": {}, "makespan_s": 10**400})
    code, _, err = call(capsys, "trend", tmp_path / "none")
    assert (code, "3 runs without any metric that has a history" in " ".join(err.split())) == (0, True)


@pytest.mark.parametrize(
    ("starts", "ends"),
    [
        (("2026-01-01T00:05:01+00:00", "2026-01-01T00:05:41+00:00"), ["00:05:01", "00:05:41"]),
        (("2026-01-01T00:05:01+00:00", "2026-01-01T09:06:41+00:00"), ["00:05", "09:06"]),
        (("2026-01-01T00:05:01+00:00", "2026-01-03T00:05:01+00:00"), ["2026-01-01", "2026-01-03"]),
    ],
    ids=["within a minute", "within a day", "days"],
)
def test_the_ends_of_the_axis_differ(write: Write, tmp_path: Path, starts: tuple[str, str], ends: list[str]) -> None:
    """Runs within one minute had `00:05` at both ends."""
    for seed, start in enumerate(starts):
        write(f"two/{seed}", seed=seed, start=start, makespan_s=100.0 + seed)
    (one,) = (one for one in histories(read_runs([tmp_path / "two"]))[0] if one.key.key == "makespan_s")
    drawn = chart(one, "two")
    shown = re.findall(r'<text class="t" x="[\d.]+" y="[\d.]+" text-anchor="(?:start|end)">([^<]*)<', drawn)
    assert shown[-2:] == ends


def test_texts_of_changes_do_not_cover_each_other(write: Write, tmp_path: Path) -> None:
    """Up to six rows of them; the latest have their text in any case."""
    rng = np.random.default_rng(7)
    for at in range(120):
        level = 1000 + 100 * (at // 8)
        write(f"many/{at:03d}", seed=at, start=f"2026-01-01T00:{at // 60:02d}:{at % 60:02d}+00:00",
              makespan_s=level + float(rng.normal()))  # fmt: skip
    (one,) = (one for one in histories(read_runs([tmp_path / "many"]))[0] if one.key.key == "makespan_s")
    assert len(one.changes) > 6
    drawn = chart(one, "many")
    assert drawn.count('class="v"') == len(one.changes)
    taken: dict[str, list[tuple[float, float]]] = {}
    texts = re.findall(r'<text class="b" x="([\d.]+)" y="([\d.]+)" text-anchor="(\w+)">([^<]*)<', drawn)
    assert len(texts) >= 6
    for x, y, anchor, text in texts:
        left = float(x) - (6 * len(text) if anchor == "end" else 0)
        taken.setdefault(y, []).append((left, left + 6 * len(text)))
    for own in taken.values():
        assert all(one[1] <= other[0] for one, other in pairwise(sorted(own)))
    heights = [float(y) for y in re.findall(r'<circle cx="[\d.]+" cy="([\d.]+)"', drawn)]
    assert min(heights) > max(map(float, taken))


@pytest.fixture
def page(write: Write, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    """The page of two policies, one of them with a change, and a name that is no HTML."""
    nightly(write, 1000, 1100)
    nightly(write, 1000, 1000, "others", variant="a<b>&c")
    made = tmp_path / "trend.html"
    assert call(capsys, "trend", tmp_path / "nights", tmp_path / "others", "--html", made)[0] == 0
    return made


def test_the_page_says_what_the_text_says(page: Path) -> None:
    text = " ".join(re.sub(r"<[^>]*>", " ", page.read_text()).split())
    assert "1 metric is worse than before" in text
    assert "since 2026-01-13, commit bbbbbbbbbb" in text
    assert "<b>" not in page.read_text().replace("&lt;b&gt;", "")
    changed, calm = page.read_text().split('id="group-')[1:]
    assert changed.count("<circle") == 24
    assert "No metric has a lasting change." in calm
    assert calm.count("<circle") == 24 * calm.count("<figcaption") > 0, "metrics without a change are drawn, too"
    heads = re.findall("<th scope=.col.[^>]*>([^<]*)<", calm)
    assert heads == ["metric", "outcome", "median now", "range now"], "no empty columns"


def test_a_page_of_too_few_runs_is_no_green_one(
    write: Write, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It said that nothing was worse than before, in green, while most metrics could not be judged."""
    for at in range(3):
        write(f"few/{at}", seed=at, makespan_s=1000.0 + at, mean_completion_s=50.0)
    assert call(capsys, "trend", tmp_path / "few", "--html", tmp_path / "few.html")[0] == 0
    text = (tmp_path / "few.html").read_text()
    assert re.search(
        r'class="finding holds-in-part">\s*<p[^>]*><span[^>]*>Too few runs to tell of \d+ of \d+ metrics', text
    )


@pytest.mark.browser
def test_the_page_in_a_browser(page: Path, tmp_path: Path) -> None:
    with chromium(tmp_path / "profile") as browser:
        for width, dark in ((1280, False), (1280, True), (400, False), (400, True)):
            browser.open(f"file://{page}", width, dark=dark)
            browser.until("document.readyState === 'complete' && !!document.querySelector('main')")
            assert (browser.faint(), browser.too_wide(), browser.console) == ([], [], [])
            assert browser.run("document.documentElement.scrollWidth") <= width


def test_annotations_name_the_page(write: Write, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    nightly(write, 1000, 1100)
    places = [tmp_path / "check.xml", tmp_path / "quality.json"]
    link = "https://pages.example.org/trend.html"
    code, _, err = call(
        capsys, "check", tmp_path / "nights" / "023", "--history", tmp_path / "nights", "--github", "--link", link,
        "--junit", places[0], "--code-quality", places[1],
    )  # fmt: skip
    assert code == 3
    assert f"over time: {link}" in err
    assert all(f"over time: {link}" in place.read_text() for place in places)


def test_what_no_utf_8_can_hold_is_shown_or_is_an_error_that_leaves_the_file_that_was_there(
    write: Write, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """JSON may have half a surrogate pair, as in this policy's name."""
    nightly(write, 1000, 1100, variant="half \ud83d")
    code, out, _ = call(capsys, "trend", tmp_path / "nights")
    assert (code, r"half \ud83d on docker" in out) == (0, True)
    report = tmp_path / "quality.json"
    report.write_text("before")
    with pytest.raises(InputError, match="a name in it is no UTF-8"):
        write_output(report, "half \ud83d")
    assert report.read_text() == "before"
