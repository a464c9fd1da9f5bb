"""Baselines and checks: exact, by spread, counts, JUnit; exit codes as users see them."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest

from harness.results.baseline import bound, read_baseline, spread_of
from harness.results.catalogue import key_of
from tests.results.conftest import Write, call, noisy, summary_of


def test_an_unchanged_run_passes_and_a_worse_one_is_named(
    write: Write, recorded: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = call(capsys, "check", noisy(write, "new/1", 77), "--baseline", recorded)
    assert code == 0
    assert re.search(r": judged \d+ of \d+ metrics", err)
    code, out, err = call(capsys, "check", noisy(write, "new/2", 78, factor=1.1), "--baseline", recorded)
    assert code == 3
    assert err.count("\n") == 1
    assert "makespan_s" in err
    assert "sharing_loss_integral" not in err
    assert "beyond the bound" in out


def test_the_baseline_says_where_it_comes_from(recorded: Path) -> None:
    found = json.loads(recorded.read_text())
    (entry,) = found["entries"]
    assert sorted(run["seed"] for run in entry["runs"]) == list(range(1, 11))
    assert all(run["versions"] and run["start"] for run in entry["runs"])
    assert "Student's t with 9 degrees" in entry["why"]
    one = entry["bounds"]["makespan_s"]
    assert one["n"] == 10
    assert one["least"] <= one["median"] <= one["greatest"] < one["bound"]
    assert one["allows"] < 0.1, "a spread of 1 % allows less than 10 %"
    assert str(recorded.parent) not in recorded.read_text().replace(found["command"], ""), "names, not places"


@pytest.mark.parametrize(
    ("change", "metric"),
    [
        ({"sharing_loss_integral": 130.0}, "sharing_loss_integral"),
        ({"sharing_benefit": 0.15}, "sharing_benefit"),
        ({"mean_completion_s": 112.0}, r"mean_completion_s\[root\.a\]"),
        ({"jobs": 9}, r"jobs\[root\.a\]"),
        ({"fairness_degree": 1.0}, r"fairness_degree\[root\.b\]"),
    ],
)
def test_each_kind_of_change_is_caught(
    change: dict[str, float], metric: str, write: Write, recorded: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = call(capsys, "check", noisy(write, "new", 99, **change), "--baseline", recorded)
    assert code == 3
    assert re.search(metric, err)


def test_better_is_no_alarm_by_spread(write: Write, recorded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(capsys, "check", noisy(write, "new", 99, factor=0.5), "--baseline", recorded)[0] == 0


def test_failed_and_unfinished_runs_are_not_valid(
    write: Write, recorded: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    xml = tmp_path / "j.xml"
    for name, more, code in (
        ("failed", {"failed": 1}, 4),
        ("exit", {"exit": 4}, 4),
        ("unfinished", {"exit": None}, 4),
        ("late", {"exit": 5}, 5),
        ("lost", {"summary": {**summary_of(), "finished": False}}, 4),
    ):
        found, _, err = call(capsys, "check", write(name, **more), "--baseline", recorded, "--junit", xml)
        assert (found, err.count("\n")) == (code, 1), name
        assert ET.parse(xml).getroot().get("errors") == "1"
    assert call(capsys, "baseline", tmp_path / "failed", "-o", tmp_path / "no.json")[0] == 4
    assert not (tmp_path / "no.json").exists()


def test_the_simulator_is_held_exactly(write: Write, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write("base", backend="sim")
    file = tmp_path / "b.json"
    assert call(capsys, "baseline", tmp_path / "base", "-o", file)[0] == 0
    assert call(capsys, "check", write("same", backend="sim"), "--baseline", file)[0] == 0
    assert call(capsys, "check", write("other-clock", backend="sim", wall_s=9.9), "--baseline", file)[0] == 0
    worse = write("worse", backend="sim", makespan_s=1000.0000001)
    code, out, err = call(capsys, "check", worse, "--baseline", file)
    assert (code, "makespan_s" in err) == (3, True)
    assert "1,000.0000001 s against 1,000.0000000 s recorded" in out
    better = write("better", backend="sim", makespan_s=900.0)
    code, out, _ = call(capsys, "check", better, "--baseline", file)
    assert (code, "better; held exactly" in out) == (0, True)
    code, out, _ = call(capsys, "check", better, "--baseline", file, "--only", "any")
    assert code == 3, "a difference for the better is a change, too"
    assert "better; held exactly" in out
    missing = summary_of()
    del missing["sharing_loss"]
    code, _, err = call(capsys, "check", write("less", backend="sim", summary=missing), "--baseline", file)
    assert (code, "sharing_loss" in err) == (3, True)


def test_one_recorded_run_says_nothing_of_another_seed_but_counts_jobs(
    write: Write, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write("base", backend="sim")
    file = tmp_path / "b.json"
    call(capsys, "baseline", tmp_path / "base", "-o", file)
    code, out, _ = call(
        capsys, "check", write("s2", seed=2, backend="sim", makespan_s=1.5), "--baseline", file, "--json"
    )
    assert code == 0
    verdicts = {one["metric"]: one["verdict"] for one in json.loads(out)["metrics"]}
    assert verdicts["makespan_s"] == "not judged"
    assert verdicts["jobs[root.a]"] == "fine"
    assert call(capsys, "check", write("s3", seed=3, backend="sim", jobs=9), "--baseline", file)[0] == 3


def test_two_runs_of_one_seed_must_agree(write: Write, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write("base/1", backend="sim")
    write("base/2", backend="sim", makespan_s=5.0)
    code, _, err = call(capsys, "baseline", tmp_path / "base", "-o", tmp_path / "b.json")
    assert (code, "differ in makespan_s" in err) == (1, True)


def test_a_margin_instead_of_a_spread(write: Write, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write("base/1")
    file = tmp_path / "b.json"
    assert call(capsys, "baseline", tmp_path / "base", "-o", file, "--margin", "0.05")[0] == 0
    assert call(capsys, "check", write("a", makespan_s=1049.0), "--baseline", file)[0] == 0
    assert call(capsys, "check", write("b", makespan_s=1051.0), "--baseline", file)[0] == 3


def test_entries_can_be_added(write: Write, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "b.json"
    call(capsys, "baseline", write("a", variant="fair"), "-o", file)
    call(capsys, "baseline", write("b", variant="ltrf"), "-o", file, "--add")
    assert [entry.variant for entry in read_baseline(file).entries] == ["fair", "ltrf"]
    code, _, err = call(capsys, "check", write("c", variant="hltrf"), "--baseline", file)
    assert (code, "has nothing of made-up, hltrf" in err) == (1, True)


def test_a_recorded_policy_without_a_run_is_missing_among_several(
    write: Write, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for variant in ("fair", "ltrf", "hltrf"):
        write(f"base/{variant}", variant=variant)
        if variant != "hltrf":
            write(f"new/{variant}", variant=variant)
    write("base/elsewhere", experiment="another")
    write("base/place", variant="drf", backend="local")
    file, xml, ack = tmp_path / "b.json", tmp_path / "j.xml", tmp_path / "ack.yaml"
    assert call(capsys, "baseline", tmp_path / "base", "-o", file)[0] == 0
    code, out, err = call(capsys, "check", tmp_path / "new", "--baseline", file, "--junit", xml)
    assert code == 3
    assert "made-up, hltrf: run: recorded, but no run of it was given" in out
    assert err.count("\n") == 1
    root = ET.parse(xml).getroot()
    (case,) = (case for case in root.iter("testcase") if case.find("failure") is not None)
    assert (case.get("classname"), case.get("name")) == ("yarnfair.made-up.hltrf", "run")
    ack.write_text("acknowledge:\n  - {metric: run, variant: hltrf, reason: not run any more, expires: 2999-12-31}\n")
    assert call(capsys, "check", tmp_path / "new", "--baseline", file, "--acknowledge", ack)[0] == 0
    # One run is one run; and a run that failed is there, if not valid.
    assert call(capsys, "check", tmp_path / "new" / "fair", "--baseline", file)[0] == 0
    write("new/hltrf", variant="hltrf", exit=4)
    code, out, _ = call(capsys, "check", tmp_path / "new", "--baseline", file)
    assert (code, "missing" in out) == (4, False)


def test_several_repeats_have_a_nearer_bound_than_one() -> None:
    rng = np.random.default_rng(1)
    spread = spread_of((1000 + 10 * rng.normal(size=10)).tolist())
    key = key_of("makespan_s")
    one, four = (bound(key, spread, metrics=20, runs=k) for k in (1, 4))
    assert one is not None
    assert four is not None
    assert 1000 < four < one
    assert bound(key, spread_of([1.0, 2.0]), metrics=1) is None


def test_losses_are_bounded_on_the_side_of_larger_losses() -> None:
    spread = spread_of([-0.1, -0.11, -0.09, -0.1, -0.105, -0.095])
    limit = bound(key_of("sharing_loss"), spread, metrics=1)
    assert limit is not None
    assert limit < -0.11


# --- JUnit ------------------------------------------------------------------------------------------------------------


def test_junit_names_every_metric(
    write: Write, recorded: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    xml = tmp_path / "deep" / "junit.xml"
    code, out, _ = call(
        capsys, "check", noisy(write, "a & <b>", 78, factor=1.2), "--baseline", recorded, "--junit", xml, "--json"
    )
    assert code == 3
    document = json.loads(out)
    assert [one["metric"] for one in document["regressions"]] == ["makespan_s"]
    root = ET.parse(xml).getroot()
    cases = root.findall("./testsuite/testcase")
    assert len(cases) == len(document["metrics"]) == int(root.get("tests", ""))
    assert [case.get("name") for case in cases if case.find("failure") is not None] == ["makespan_s"]
    assert root.get("failures") == "1"


def test_wrong_calls_and_files(write: Write, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = write("r")
    assert call(capsys, "check", run)[0] == 2
    assert call(capsys, "check", "--baseline", tmp_path / "b.json")[0] == 2
    assert call(capsys, "check", run, "--history")[0] == 2
    assert call(capsys, "check", run, "--baseline", tmp_path / "none.json")[0] == 1
    for text in ("{}", "[]", "no", '{"yarnfair_baseline": 1, "entries": [{}]}', '{"yarnfair_baseline": 9}'):
        (tmp_path / "bad.json").write_text(text)
        code, _, err = call(capsys, "check", run, "--baseline", tmp_path / "bad.json")
        assert (code, err.count("\n")) == (1, 1), text
    assert call(capsys, "baseline", run)[0] == 2
    assert call(capsys, "baseline", tmp_path / "nothing", "-o", tmp_path / "b.json")[0] == 1


@pytest.mark.parametrize("failed", ['"x"', "NaN", "[1]", "true", "-1", "0.5"])
@pytest.mark.parametrize("verb", ["check", "baseline", "compare"])
def test_a_count_of_failed_jobs_that_is_none_makes_the_run_invalid(
    write: Write, tmp_path: Path, capsys: pytest.CaptureFixture[str], verb: str, failed: str
) -> None:
    good, bad, file = write("good"), write("bad", seed=2), tmp_path / "b.json"
    assert call(capsys, "baseline", good, "-o", file)[0] == 0
    (bad / "summary.json").write_text(f'{{"queues": {{"a": {{"failed": {failed}}}}}}}')
    arguments = {
        "check": ("check", bad, "--baseline", file),
        "baseline": ("baseline", bad, "-o", file),
        "compare": ("compare", good, bad),
    }[verb]
    code, _, err = call(capsys, *arguments)
    assert code == 4
    (line,) = err.splitlines()
    assert str(bad) in line
    assert "summary.json is damaged" in line
    assert "not a number of jobs" in line


def test_a_missing_baseline_says_how_one_is_recorded(
    write: Write, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "none.json"
    for content in (None, "[]", "{"):
        if content is not None:
            file.write_text(content)
        code, _, err = call(capsys, "check", write(f"run {content}"), "--baseline", file)
        assert code == 1
        assert err.rstrip().endswith("; record one: yarnfair baseline RUN... -o FILE")
        assert err.count(str(file)) == 1


def test_a_place_for_junit_that_cannot_be_written_is_named(
    write: Write, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run, file = write("run"), tmp_path / "b.json"
    call(capsys, "baseline", run, "-o", file)
    code, _, err = call(capsys, "check", run, "--baseline", file, "--junit", file / "below" / "junit.xml")
    assert code == 1
    assert err.splitlines()[-1] == (
        f"yarnfair: {file / 'below' / 'junit.xml'}: cannot be written: Not a directory; choose another --junit FILE"
    )
