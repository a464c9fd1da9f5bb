"""Baselines and checks: exact, by spread, counts, acknowledgements, JUnit, history; exit codes as users see them."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.base.errors import InputError
from harness.cli import main
from harness.results.acknowledge import read_acknowledgements
from harness.results.baseline import bound, read_baseline, spread_of
from harness.results.catalogue import key_of
from harness.results.check import check_history
from harness.results.runs import RunRecord
from tests.results.conftest import Write, summary_of


def call(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as caught:
        main([str(argument) for argument in arguments])
    printed = capsys.readouterr()
    assert isinstance(caught.value.code, int)
    return caught.value.code, printed.out, printed.err


def noisy(write: Write, name: str, seed: int, factor: float = 1.0, **more: Any) -> Path:
    """A run whose figures vary by 1 %; `factor` makes it worse."""
    rng = np.random.default_rng(seed)
    vary = [float(1 + 0.01 * rng.normal()) for _ in range(4)]
    values = {
        "makespan_s": 1000.0 * vary[0] * factor,
        "sharing_loss_integral": 100.0 * vary[1],
        "mean_completion_s": 100.0 * vary[2],
        "sharing_benefit": 0.2 * vary[3],
    }
    return write(name, seed=seed, **{**values, **more})


@pytest.fixture
def recorded(write: Write, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    """Ten runs of a real cluster, recorded."""
    for seed in range(1, 11):
        noisy(write, f"base/{seed}", seed)
    assert call(capsys, "baseline", tmp_path / "base", "-o", tmp_path / "b.json")[0] == 0
    return tmp_path / "b.json"


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


# --- acknowledgements -------------------------------------------------------------------------------------------------


def test_an_accepted_change_passes_until_it_expires(
    write: Write, recorded: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = noisy(write, "new", 78, factor=1.2)
    file = tmp_path / "ack.yaml"

    def check(text: str) -> tuple[int, str, str]:
        file.write_text("acknowledge:\n" + text)
        return call(capsys, "check", run, "--baseline", recorded, "--acknowledge", file)

    code, out, _ = check("  - {metric: makespan_s, reason: slower disks, expires: 2999-12-31}\n")
    assert code == 0
    assert "acknowledged until 2999-12-31: slower disks" in out
    code, _, err = check("  - {metric: makespan_s, reason: slower disks, expires: 2020-01-01}\n")
    assert (code, "expired on 2020-01-01" in err) == (3, True)
    assert check("  - {metric: makespan_s, reason: known, expires: 2999-12-31, up_to: 1100}\n")[0] == 3
    assert check("  - {metric: makespan_s, reason: known, expires: 2999-12-31, up_to: 1500}\n")[0] == 0
    assert check("  - {metric: makespan_s, variant: fair, reason: known, expires: 2999-12-31}\n")[0] == 3
    code, _, err = check(
        "  - {metric: makespan*, reason: known, expires: 2999-12-31}\n"
        "  - {metric: last_loss_s, reason: never happened, expires: 2999-12-31}\n"
    )
    assert (code, "last_loss_s was not needed" in err) == (0, True)


def test_an_acknowledgement_in_force_goes_before_an_expired_one(
    write: Write, recorded: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = noisy(write, "new", 78, factor=1.2)
    (tmp_path / "ack.yaml").write_text(
        "acknowledge:\n"
        "  - {metric: makespan_s, reason: the old one, expires: 2020-01-01}\n"
        "  - {metric: makespan_s, reason: the new one, expires: 2999-12-31}\n"
    )
    code, out, err = call(capsys, "check", run, "--baseline", recorded, "--acknowledge", tmp_path / "ack.yaml")
    assert (code, "the new one" in out) == (0, True)
    assert "was not needed" in err


def test_a_queues_metric_can_be_accepted(
    write: Write, recorded: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = noisy(write, "new", 78, mean_completion_s=150.0)
    file = tmp_path / "ack.yaml"
    file.write_text('acknowledge:\n  - {metric: "mean_completion_s[root.a]", reason: known, expires: 2999-12-31}\n')
    code, _, err = call(capsys, "check", run, "--baseline", recorded, "--acknowledge", file)
    assert code == 3
    assert "mean_completion_s[root.b]" in err
    assert "[root.a]" not in err


@pytest.mark.parametrize(
    "text",
    [
        "acknowledge:\n  - {metric: makespan_s, expires: 2999-01-01}\n",
        "acknowledge:\n  - {metric: makespan_s, reason: known}\n",
        "acknowledge:\n  - {metric: makespan_s, reason: known, expires: soon}\n",
        "acknowledge:\n  - {metric: makespan_s, reason: known, expires: 2999-01-01, who: me}\n",
        "acknowledge:\n",
        "",
    ],
)
def test_an_acknowledgement_needs_a_reason_and_a_day(text: str, tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(text)
    with pytest.raises(InputError, match=r"a\.yaml"):
        read_acknowledgements(tmp_path / "a.yaml")


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


# --- history ----------------------------------------------------------------------------------------------------------


def history(write: Write, levels: list[float], name: str = "h") -> None:
    rng = np.random.default_rng(5)
    for at, level in enumerate(levels):
        day = f"2026-{1 + at // 28:02d}-{1 + at % 28:02d}T00:00:00+00:00"
        makespan = level * (1 + 0.01 * float(rng.normal()))
        write(f"{name}/{at:03d}", seed=at, start=day, makespan_s=makespan, mean_completion_s=100 + float(rng.normal()))


def test_a_lasting_change_of_the_history_is_dated(
    write: Write, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    history(write, [1000.0] * 15 + [1100.0] * 12)
    code, out, err = call(capsys, "check", tmp_path / "h" / "026", "--history", tmp_path / "h")
    assert (code, "makespan_s" in err, "mean_completion" in err) == (3, True, False)
    assert "2026-01-16" in out


def test_a_change_that_was_undone_or_is_for_the_better_is_told_only(
    write: Write, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    history(write, [1000.0] * 12 + [1100.0] * 12 + [1000.0] * 12)
    code, out, _ = call(capsys, "check", tmp_path / "h" / "035", "--history", tmp_path / "h")
    assert code == 0
    assert "not for the worse by now" in out
    history(write, [1000.0] * 12 + [900.0] * 12, "better")
    assert call(capsys, "check", tmp_path / "better" / "023", "--history", tmp_path / "better")[0] == 0


def made_up(levels: dict[str, list[float]], variants: int = 4, metrics: int = 40) -> list[RunRecord]:
    """Runs of several policies with so many metrics each, all noise but those of the first policy's `levels`."""
    rng = np.random.default_rng(11)
    count = len(next(iter(levels.values())))
    out = []
    for variant, at in np.ndindex(variants, count):
        queues = {f"root.q{k}": {"mean_completion_s": 100 + float(rng.normal())} for k in range(metrics - len(levels))}
        own: dict[str, Any] = {
            key: values[at] if variant == 0 else 1000 + float(rng.normal()) for key, values in levels.items()
        }
        info = {
            "variant": f"v{variant}",
            "experiment": "e",
            "backend": "docker",
            "hash": "h",
            "exit": 0,
            "start": f"{at:04}",
        }
        out.append(RunRecord(Path(f"h/v{variant}-{at}"), info, {**own, "queues": queues}))
    return out


def test_a_doubled_makespan_is_found_among_160_metrics() -> None:
    rng = np.random.default_rng(3)
    found = check_history(made_up({"makespan_s": [*rng.normal(1000, 5, 12), *rng.normal(2000, 5, 12)]}))
    assert len(found.held) == 160
    (alarm,) = found.alarms
    assert (alarm.variant, alarm.key.key, alarm.verdict) == ("v0", "makespan_s", "worse")
    assert {one.verdict for one in found.held if one is not alarm} == {"fine"}


def test_what_no_change_could_show_is_not_said_to_be_fine() -> None:
    """Nine runs against nine are too few for 160 metrics; four against four even for one."""
    rng = np.random.default_rng(3)
    for half, variants, metrics, words in (
        (9, 4, 40, "one metric among 160"),
        (4, 1, 1, "one metric among 1"),
        (3, 1, 1, ""),
    ):
        levels = {"makespan_s": [*rng.normal(1000, 5, half), *rng.normal(2000, 5, half)]}
        held = check_history(made_up(levels, variants, metrics)).held
        assert {one.verdict for one in held} == {"not judged"}
        assert all("too short to see a change" in one.words and words in one.words for one in held)
    held = check_history(made_up({"makespan_s": [1000.0] * 30}, 1, 1)).held
    assert [(one.verdict, one.words) for one in held] == [("fine", "the same in every run")]


def test_histories_without_a_change_raise_no_alarm() -> None:
    for seed in range(20):
        rng = np.random.default_rng(100 + seed)
        assert not check_history(made_up({"makespan_s": rng.normal(1000, 5, 24).tolist()}, 1, 6)).alarms


@pytest.mark.parametrize(
    ("levels", "alarm", "said"),
    [
        ((100, 150, 140), True, "still worse than 100.0 s before"),
        ((100, 50, 90), True, ""),
        ((100, 150, 100), False, "not for the worse by now"),
        ((100, 150, 90), False, "not for the worse by now"),
        ((100, 90), False, "not for the worse by now"),
        ((100, 150), True, ""),
        ((10_000, 10_050), False, "worse, but by less than matters"),
    ],
)
def test_a_change_for_the_worse_is_undone_when_the_best_level_is_back(
    levels: tuple[float, ...], alarm: bool, said: str
) -> None:
    rng = np.random.default_rng(4)
    values = [float(level + 0.01 * rng.normal()) for level in levels for _ in range(12)]
    (held,) = check_history(made_up({"makespan_s": values}, 1, 1)).held
    assert held.words.startswith("changed from ")
    assert (held.alarm, said in held.words) == (alarm, True), held.words
    if alarm:
        assert held.recorded == pytest.approx(min(levels[:-1]), abs=0.1)


def test_different_experiments_of_one_name_have_histories_of_their_own() -> None:
    runs = made_up({"makespan_s": [1000.0 + at % 3 for at in range(12)]}, 1, 1)
    later = made_up({"makespan_s": [2000.0 + at % 3 for at in range(12)]}, 1, 1)
    later = [RunRecord(run.path / "new", {**run.info, "hash": "other", "start": "9"}, run.summary) for run in later]
    found = check_history([*runs, *later])
    assert [one.verdict for one in found.held] == ["fine", "fine"]
    (remark,) = found.remarks
    assert "2 different experiments of that name (h, other)" in remark


def test_history_takes_several_folders_and_goes_with_a_baseline(
    write: Write, recorded: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    history(write, [1000.0] * 20, "one")
    history(write, [1000.0] * 4, "two")
    run = noisy(write, "new", 78)
    places = (tmp_path / "one", tmp_path / "two")
    code, out, _ = call(capsys, "check", run, "--history", *places, "--baseline", recorded, "--json")
    assert code == 0
    hows = {one["how"] for one in json.loads(out)["metrics"]}
    assert "history of 25 runs" in hows
    assert "spread of 10 runs" in hows


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
def test_a_count_of_failed_jobs_that_is_none_is_one_line(
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
    assert code == 1
    (line,) = err.splitlines()
    assert str(bad / "summary.json") in line
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
        f"yarnfair: {file / 'below' / 'junit.xml'}: cannot be written: Not a directory; choose another --junit"
    )
