"""What a pipeline sees of a check: one failure a slow-down, the worst first, how much was judged, annotations."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

from harness.results.catalogue import key_of
from harness.results.check import Checked, Held
from harness.results.judged import NAMED, code_quality, failures, github, good_lines, judged, narrowed, unfitting
from tests.results.conftest import Write, call

KEYS = ("makespan_s", "sharing_loss_integral", "last_loss_s", "sharing_benefit", "mean_completion_s[root.a]",
        "p95_completion_s[root.a]", "mean_slowdown[root.a]", "events")  # fmt: skip


def held(key: str, value: float | None, recorded: float | None, verdict: Any = "worse", variant: str = "ltrf") -> Held:
    return Held(
        experiment="x",
        variant=variant,
        backend="sim",
        run="runs/x",
        key=key_of(key),
        value=value,
        recorded=recorded,
        bound=recorded,
        how="exactly",
        verdict=verdict,
        words=f"is {value}",
    )


def slow(variant: str = "ltrf", by: float = 1.1) -> list[Held]:
    """A run in which everything is slower, the k-th metric k times as much."""
    return [held(key, 100 * by**at, 100.0, variant=variant) for at, key in enumerate(KEYS, 1)]


def test_one_slow_down_is_one_failure_with_its_worst_metrics_first() -> None:
    (failure,) = failures(Checked(slow()))
    assert len(failure.alarms) == len(KEYS)
    assert [one.key.text() for one in failure.alarms] == list(reversed(KEYS))
    assert len(failure.lines) == NAMED + 1
    assert failure.lines[-1].endswith(f"x, ltrf: {len(KEYS) - NAMED} more metric(s)")
    assert failure.words.endswith("; 7 more metric(s) with it")


def test_a_metric_that_is_worse_in_several_runs_is_one_line_with_its_worst_run() -> None:
    (failure,) = failures(Checked([*slow(), *slow(by=1.2), *slow(by=1.05)]))
    assert len(failure.lines) == NAMED + 1
    assert failure.lines[0].endswith(f"{key_of(KEYS[-1]).title()}: is {100 * 1.2**8} (the worst of 3 runs)")
    assert len(set(failure.lines)) == NAMED + 1
    assert failure.words.endswith("; 7 more metric(s) with it")


def test_the_worst_variant_comes_first_and_what_is_missing_before_all() -> None:
    found = Checked([*slow("a"), *slow("b", 1.5), held("makespan_s", None, 1.0, "missing", "c")])
    assert [one.variant for one in failures(found)] == ["c", "b", "a"]


def test_the_worse_comes_before_what_has_only_changed() -> None:
    (failure,) = failures(Checked([held("events", 9000.0, 1.0, "changed"), held("makespan_s", 110.0, 100.0)]))
    assert [one.key.text() for one in failure.alarms] == ["makespan_s", "events"]


@pytest.mark.parametrize(
    ("key", "value", "only", "alarm"),
    [
        ("makespan_s", 110.0, "worse", True),
        ("makespan_s", 110.0, "change", True),
        ("makespan_s", 90.0, "worse", False),
        ("makespan_s", 90.0, "change", False),
        ("makespan_s", 90.0, "any", True),
        ("events", 110.0, "worse", False),
        ("events", 110.0, "change", True),
        ("events", 110.0, "any", True),
    ],
)
def test_what_fails_is_what_was_asked_for(key: str, value: float, only: Any, alarm: bool) -> None:
    one = held(key, value, 100.0, "worse" if value > 100 and key != "events" else "changed")
    assert bool(narrowed(Checked([one]), only=only).alarms) is alarm
    lost = held(key, None, 100.0, "missing")
    assert narrowed(Checked([lost]), only=only, tolerance=9.0).alarms, "what is missing fails whatever is asked for"


def test_a_tolerance_is_a_part_of_what_is_recorded_and_metrics_are_chosen_by_name() -> None:
    found = Checked([held("makespan_s", 101.9, 100.0), held("mean_completion_s[root.a]", 102.1, 100.0)])
    assert [one.key.text() for one in narrowed(found, tolerance=0.02).alarms] == ["mean_completion_s[root.a]"]
    assert [one.key.text() for one in narrowed(found, metrics=["mean_*[root.a]"]).held] == ["mean_completion_s[root.a]"]
    assert [one.key.text() for one in narrowed(found, metrics=["make*"]).held] == ["makespan_s"]


def test_annotations_are_one_a_failure_and_escaped() -> None:
    found = Checked(slow("a,b:c"), invalid=[("runs/y", 4, "3 job(s) failed\n50 %")])
    first, second = github(found, "base.json")
    assert first.startswith("::error file=base.json,title=Regression%3A x%2C a%2Cb%3Ac::")
    assert second == "::error file=base.json,title=Invalid run::runs/y: 3 job(s) failed%0A50 %25"
    assert "\n" not in first
    issues = json.loads(code_quality(found, "base.json"))
    assert [issue["severity"] for issue in issues] == ["major", "critical"]
    assert issues[0]["location"] == {"path": "base.json", "lines": {"begin": 1}}
    assert len({issue["fingerprint"] for issue in issues}) == 2
    again = json.loads(code_quality(Checked(slow("a,b:c", 1.2)), "base.json"))
    assert again[0]["fingerprint"] == issues[0]["fingerprint"], "the same failure, from commit to commit"


def test_the_line_says_how_much_was_judged() -> None:
    assert judged(Checked([held("events", 1.0, 1.0, "fine")])) == "judged 1 of 1 metrics"
    found = Checked([held("events", 1.0, 1.0, "fine"), held("makespan_s", 1.0, 1.0, "not judged")])
    assert judged(found) == "judged 1 of 2 metrics; 1 not judged"


def test_a_pipeline_from_call_to_exit_code(write: Write, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write("base", backend="sim")
    file = tmp_path / "b.json"
    assert call(capsys, "baseline", tmp_path / "base", "-o", file)[0] == 0
    same, other = write("same", backend="sim"), write("other", seed=2, backend="sim")
    worse = write("worse", backend="sim", makespan_s=1100.0, sharing_loss_integral=999.0)

    code, _, err = call(capsys, "check", same, "--baseline", file, "--require-judged")
    assert code == 0
    assert err.splitlines()[-1].startswith(f"yarnfair: {file}: judged ")
    code, _, err = call(capsys, "check", other, "--baseline", file, "--require-judged")
    assert (code, "not judged" in err, "give the runs that the warnings above name" in err) == (1, True, True)
    assert call(capsys, "check", other, "--baseline", file)[0] == 0

    reports = ("--junit", tmp_path / "j.xml", "--code-quality", tmp_path / "deep" / "q.json", "--github", "--json")
    code, out, err = call(capsys, "check", worse, "--baseline", file, *reports)
    assert code == 3
    document = json.loads(out)
    assert len(document["failures"]) == 1
    assert document["regressions"][0]["metric"] == "sharing_loss_integral"
    # A CI server shows each metric that is worse as failed, not as skipped.
    assert ET.parse(tmp_path / "j.xml").getroot().get("failures") == "2"
    assert len(json.loads((tmp_path / "deep" / "q.json").read_text())) == 1
    assert sum(line.startswith("::error ") for line in err.splitlines()) == 1
    assert "1 failure(s), 2 metric(s)" in err

    assert call(capsys, "check", worse, "--baseline", file, "--metrics", "events")[0] == 0
    assert call(capsys, "check", worse, "--baseline", file, "--metrics", "no-such")[0] == 2
    assert call(capsys, "check", worse, "--baseline", file, "--tolerance", "0.2", "--metrics", "makespan_s")[0] == 0


def test_a_pattern_without_a_metric_names_the_nearest() -> None:
    found = [one.key for one in slow()]
    assert unfitting(found, ["make*", "events"]) == []
    assert unfitting(found, ["makespan", "?"]) == [("makespan", ["makespan_s"]), ("?", [])]
    assert unfitting(found, ["maekspan_s"])[0][1][0] == "makespan_s"
    assert "mean_slowdown[root.a]" in unfitting(found, ["mean_slow*[root.b]"])[0][1]
    assert "mean_slowdown[root.a]" in unfitting(found, ["queues.mean_slowdown"])[0][1], "as the reference has it"


def test_what_is_better_is_a_line_a_metric_and_five_at_most() -> None:
    better = [held(key, 1.0, 2.0, "better") for _ in range(3) for key in KEYS]
    lines = good_lines(Checked(better))
    assert lines[0] == f"      better  x, ltrf: {key_of(KEYS[0]).title()}: is 1.0 (in 3 runs)"
    assert len(lines) == NAMED + 1
    assert lines[-1].endswith(f"x, ltrf: {len(KEYS) - NAMED} more metric(s) that are no failure")


def test_only_the_worse_is_printed_where_only_the_worse_was_asked_for(
    write: Write, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write("base", backend="sim")
    file = tmp_path / "b.json"
    assert call(capsys, "baseline", tmp_path / "base", "-o", file)[0] == 0
    run = write("mixed", backend="sim", makespan_s=500.0, sharing_loss_integral=999.0)
    code, out, _ = call(capsys, "check", run, "--baseline", file)
    assert (code, "      better  " in out) == (3, True)
    code, out, _ = call(capsys, "check", run, "--baseline", file, "--only", "worse")
    assert (code, "       worse  " in out, "      better  " in out, "1 better" in out) == (3, True, False, True)


def test_each_pattern_has_to_fit_a_metric(write: Write, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write("base", backend="sim")
    file = tmp_path / "b.json"
    assert call(capsys, "baseline", tmp_path / "base", "-o", file)[0] == 0
    run = write("same", backend="sim")
    code, _, err = call(capsys, "check", run, "--baseline", file, "--metrics", "makespan_s", "--metrics", "maekspan_s")
    assert (code, "no metric fits 'maekspan_s'; did you mean makespan_s?" in err) == (2, True)
