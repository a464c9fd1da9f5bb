"""What makes a run invalid, and that every command that reads runs applies the same rule."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harness.control.health import ControlHealth, health_of_decisions
from harness.results.runs import read_run
from harness.results.validity import Invalid, control_invalidity, invalidity
from tests.results.conftest import Write, call, summary_of

CONTROL: dict[str, Any] = {
    "ticks": 60,
    "decisions": 12,
    "effective": 12,
    "blocked": {},
    "period_s": 5.0,
    "out_of_action_s": 0.0,
    "lasted_s": 300.0,
    "died": None,
    "last_alarm": None,
}
FAULTS: dict[str, tuple[dict[str, Any], dict[str, Any], int, str]] = {
    "not ended": ({"exit": None}, {}, 4, "did not come to its end"),
    "time limit": ({"exit": 5, "why": "not ended after 9 s"}, {}, 5, "not ended after 9 s"),
    "failed": ({"exit": 4, "why": "2 job(s) failed, j1: oops"}, {}, 4, "2 job(s) failed, j1: oops"),
    "an error": ({"exit": 1}, {}, 4, "the run ended with exit code 1"),
    "failed jobs in the summary": ({}, {"failed": 1}, 4, "2 job(s) failed"),
    "no count of failed jobs": ({}, {"failed": -1}, 4, "not a number of jobs"),
    "queues that are none": ({}, {"queues": [1]}, 4, "queues is not an object"),
    "ended early": ({}, {"finished": False}, 4, "the run ended early"),
    "dead controller": ({"control": {**CONTROL, "died": "OSError: gone"}}, {}, 4, "the controller died: OSError: gone"),
    "never acted": (
        {"control": {**CONTROL, "decisions": 0, "effective": 0, "last_alarm": "actuation: no space"}},
        {},
        4,
        "the policy never acted: no write took effect in 60 ticks of the controller (the last alarm: actuation: no",
    ),
    "never in force": ({"control": {**CONTROL, "effective": 0}}, {}, 4, "none of 12 writes came in force"),
    "out of action": ({"control": {**CONTROL, "out_of_action_s": 61.0}}, {}, 4, "could not act for 61 s of 300 s"),
    "control without figures": ({"control": {"ticks": "x"}}, {}, 4, "control lacks figures"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_every_command_that_reads_runs_applies_the_rule(
    name: str, write: Write, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    info, summary, code, reason = FAULTS[name]
    good, other, bad = write("good", seed=1), write("other", variant="fair", seed=1), write("bad", seed=2)
    baseline = tmp_path / "b.json"
    assert call(capsys, "baseline", good, "-o", baseline)[0] == 0
    (bad / "run.json").write_text(json.dumps({**json.loads((bad / "run.json").read_text()), **info}))
    (bad / "summary.json").write_text(json.dumps({**summary_of(**summary), **summary}))

    found = read_run(bad).invalid()
    assert found is not None
    assert (found.exit_code, reason in found.reason) == (code, True)

    exit_code, out, err = call(capsys, "check", bad, "--baseline", baseline)
    assert (exit_code, reason in err, "invalid" in out) == (code, True, True)
    exit_code, _, err = call(capsys, "baseline", bad, "-o", tmp_path / "new.json")
    assert (exit_code, reason in err, (tmp_path / "new.json").exists()) == (code, True, False)
    exit_code, out, err = call(capsys, "compare", good, bad, other, "--json")
    assert exit_code == 0
    assert f"left out: {bad}: " in err
    assert reason in err
    assert not any(str(bad) in group["runs"] for one in json.loads(out)["contests"] for group in one["groups"])
    page = tmp_path / "page.html"
    exit_code, _, err = call(capsys, "report", good, bad, "-o", page)
    if name != "queues that are none":
        assert (exit_code, reason in err) == (0, True)


def test_a_valid_run_and_one_that_was_cut_on_purpose() -> None:
    summary = summary_of()
    assert invalidity({"exit": 0, "control": CONTROL}, summary) is None
    cut = {"exit": 0, "experiment": {"limits": {"duration_s": 60}}}
    assert invalidity(cut, {**summary, "finished": False}) is None
    # An outage of three ticks is no reason in a short run.
    assert control_invalidity({**CONTROL, "lasted_s": 40.0, "out_of_action_s": 15.0}) is None


@pytest.mark.parametrize("text", ["{", "[]", "\x00", ""])
def test_a_damaged_summary_makes_one_run_invalid_and_no_other(
    write: Write, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    bad = write("ltrf", seed=2)
    write("fair", variant="fair")
    (bad / "summary.json").write_text(text)
    found = read_run(bad).invalid()
    assert found is not None
    assert found.reason.startswith("summary.json is damaged: ")
    code, _, err = call(capsys, "compare", write("a"), write("b", variant="fair", seed=2), bad)
    assert (code, "summary.json is damaged" in err) == (0, True)


def test_health_counts_what_was_carried_out() -> None:
    health = ControlHealth(5.0)
    health.count(0.0, carried_out=True)
    health.count(5.0, carried_out=False)
    health.count(10.0, carried_out=False, alarms=[("observation", "silent")])
    health.count(15.0, carried_out=True, alarms=[("foreign", "somebody")])
    health.count(20.0, carried_out=True, alarms=[("not-in-force", "a has 1")])
    health.count(25.0, carried_out=False, alarms=[("note", "x"), ("app", "y")])
    health.end(100.0)
    found = health.document()
    assert (found["ticks"], found["decisions"], found["effective"]) == (6, 3, 2)
    assert found["blocked"] == {"observation": 1}
    # The five seconds of the silent tick, and the 75 s in which the controller made no tick at all.
    assert found["out_of_action_s"] == 80.0
    assert found["last_alarm"] == "not-in-force: a has 1"


def test_health_of_a_simulated_controller() -> None:
    assert health_of_decisions([{"time_s": 1.0, "kind": "submit"}], period_s=5.0, lasted_s=50.0) is None
    failing = [{"time_s": 5.0 * at, "alarm": "policy", "text": "ZeroDivisionError"} for at in range(11)]
    health = health_of_decisions(failing, period_s=5.0, lasted_s=50.0)
    assert health is not None
    assert control_invalidity(health.document()) == Invalid(
        4,
        "the policy never acted: no write took effect in 11 ticks of the controller "
        "(the last alarm: policy: ZeroDivisionError)",
    )
    well = [{"time_s": 0.0, "weights": {}}, {"time_s": 400.0, "weights": {}}]
    health = health_of_decisions(well, period_s=5.0, lasted_s=500.0)
    assert health is not None
    assert (health.out_of_action_s, health.effective) == (0.0, 2)
