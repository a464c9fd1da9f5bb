"""What must not be green by mistake: missing seeds, unknown runs, other software; and what a bound can find at all."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np
import pytest

from harness.base.stats import adjusted
from harness.results.compare import compare
from harness.results.runs import groups
from tests.results.conftest import Write, call


@pytest.fixture
def baseline(write: Write, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    """Three simulated seeds of one policy."""
    for seed in (1, 2, 3):
        write(f"runs/{seed}", seed=seed, backend="sim", makespan_s=1000.0 + seed)
    assert call(capsys, "baseline", tmp_path / "runs", "-o", tmp_path / "b.json")[0] == 0
    return tmp_path / "b.json"


def test_a_recorded_seed_that_is_gone_is_not_judged(
    baseline: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = tmp_path / "runs"
    strict = ("check", runs, "--baseline", baseline, "--require-judged")
    assert call(capsys, *strict)[0] == 0
    (runs / "3" / "run.json").unlink()
    (runs / "3" / "summary.json").unlink()
    (runs / "3").rmdir()
    code, _, err = call(capsys, *strict)
    assert code == 1
    assert "made-up, ltrf: recorded with seed 3, of which no run was given" in err
    assert "1 not judged" in err
    # Which metrics count changes nothing about that; without --require-judged it is said.
    assert call(capsys, *strict, "--metrics", "makespan_s")[0] == 1
    code, _, err = call(capsys, "check", runs, "--baseline", baseline)
    assert (code, "recorded with seed 3" in err) == (0, True)


@pytest.mark.parametrize("seed", ["NaN", '"2"', "2.0", "true"])
def test_a_run_whose_seed_is_damaged_is_an_error(
    baseline: Path, seed: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Such a run counted as one of another variant, of which nothing is recorded: green."""
    identity = tmp_path / "runs/2/run.json"
    document = json.loads(identity.read_text())
    identity.write_text(json.dumps({**document, "seed": json.loads(seed)}))
    code, _, err = call(capsys, "check", tmp_path / "runs", "--baseline", baseline)
    assert code == 1
    assert "runs/2/run.json: damaged: the seed is" in err


@pytest.mark.parametrize("command", ["check", "compare", "baseline"])
def test_a_run_that_has_lost_its_run_json_is_an_error(
    baseline: Path, command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its directory was passed over in silence, as if the run had never been; a user's own file is passed over."""
    runs = tmp_path / "runs"
    options = {"check": ["--baseline", baseline], "compare": [], "baseline": ["-o", tmp_path / "again.json"]}[command]
    (runs / "notes").mkdir()
    (runs / "notes/summary.json").write_text("{}")
    if command != "compare":  # one policy is nothing to compare
        assert call(capsys, command, runs, *options)[0] == 0
    (runs / "2/jobs.parquet").write_bytes(b"")
    (runs / "2/run.json").unlink()
    code, _, err = call(capsys, command, runs, *options)
    assert code == 1
    assert "runs/2: a run without its run.json" in err


def test_a_run_that_the_baseline_does_not_know_is_not_judged(
    baseline: Path, write: Write, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write("runs/new", variant="hltrf", backend="sim")
    code, _, err = call(capsys, "check", tmp_path / "runs", "--baseline", baseline, "--require-judged")
    assert code == 1
    assert "nothing is recorded of made-up, hltrf" in err
    code, out, _ = call(capsys, "check", tmp_path / "runs", "--baseline", baseline, "--json")
    assert code == 0
    (held,) = [one for one in json.loads(out)["metrics"] if one["verdict"] == "not judged"]
    assert (held["variant"], held["words"]) == ("hltrf", "nothing is recorded of it")


def test_a_copy_of_a_run_is_no_second_run(baseline: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Copies counted as repeats: five copies of one run were five runs."""
    shutil.copytree(tmp_path / "runs/1", tmp_path / "runs/1 again")
    strict = ("check", tmp_path / "runs", "--baseline", baseline, "--require-judged")
    code, _, err = call(capsys, *strict)
    assert (code, "left out: " in err, "runs/1 again: a copy of " in err) == (1, True, True)
    # The folder itself, named twice, is one folder.
    shutil.rmtree(tmp_path / "runs/1 again")
    assert call(capsys, *strict[:2], tmp_path / "runs", *strict[2:])[0] == 0


def test_copies_of_a_run_make_nothing_more_certain(
    write: Write, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Six copies of a run that is as slow as the slowest recorded one failed with p 0.001; the run itself is fine."""
    for seed in range(1, 7):
        write(f"base/{seed}", seed=seed, makespan_s=1000.0 + 10 * seed)
    assert call(capsys, "baseline", tmp_path / "base", "-o", tmp_path / "b.json")[0] == 0
    new = write("new/1", seed=7, makespan_s=1062.0)
    alone = ("check", tmp_path / "new", "--baseline", tmp_path / "b.json", "--json")
    code, before, _ = call(capsys, *alone)
    assert code == 0
    for at in range(2, 7):
        shutil.copytree(new, tmp_path / f"new/{at}")
    code, after, err = call(capsys, *alone)
    assert code == 0
    assert err.count("a copy of ") == 5
    judged = [one for one in json.loads(after)["metrics"] if one["verdict"] != "not judged"]
    assert judged == json.loads(before)["metrics"]
    # Each copy is named.
    assert [one["words"] for one in json.loads(after)["metrics"] if one["verdict"] == "not judged"] == [
        f"a copy of {new}"
    ] * 5


def test_a_baseline_takes_no_copies_for_repeats(
    write: Write, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Five copies of one run were five recorded runs without any spread."""
    run = write("runs/1")
    for at in range(2, 6):
        shutil.copytree(run, tmp_path / f"runs/{at}")
    code, _, err = call(capsys, "baseline", tmp_path / "runs", "-o", tmp_path / "b.json")
    assert (code, f"runs/2: a copy of {run}" in err, "leave the copies out" in err) == (1, True, True)
    assert not (tmp_path / "b.json").exists()


def test_a_comparison_counts_each_run_once(write: Write, tmp_path: Path) -> None:
    """A copy was a further repeat of its policy: its p-values were too small."""
    for variant, factor in (("fair", 1.0), ("ltrf", 1.1)):
        run = write(f"runs/{variant}", variant=variant, makespan_s=1000.0 * factor)
        for at in range(5):
            shutil.copytree(run, tmp_path / f"runs/{variant} {at}")
    chosen = groups([str(tmp_path / "runs")])
    assert [len(group.runs) for contest in chosen.contests for group in contest.groups] == [1, 1]
    assert len(chosen.remarks) == 10
    assert chosen.remarks[0].startswith(f"left out: {tmp_path / 'runs/fair 0'}: a copy of ")
    # Two sources may share a run: nothing is left out of what is compared with it.
    assert not groups([str(tmp_path / "runs/fair"), str(tmp_path / "runs/fair 0")]).remarks


def test_a_history_counts_each_run_once(write: Write, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Copies of the last run looked like a lasting change."""
    rng = np.random.default_rng(5)
    for day in range(1, 13):
        run = write(f"runs/{day}", start=f"2026-01-{day:02}", makespan_s=float(rng.normal(1000, 5)))
    slow = write("runs/13", start="2026-01-13", makespan_s=1100.0)
    assert call(capsys, "check", "--history", tmp_path / "runs")[0] == 0
    for at in range(12):
        shutil.copytree(slow, tmp_path / f"runs/{slow.name} {at}")
    code, _, err = call(capsys, "check", "--history", tmp_path / "runs")
    assert (code, err.count(f"a copy of {run.parent}")) == (0, 12)


def test_a_folder_in_which_one_run_is_left_lacks_the_other_policies(
    write: Write, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It was green: of one run nothing else was wanted, also where a folder was given that had held several."""
    for variant in ("fair", "ltrf"):
        write(f"base/{variant}", variant=variant, backend="sim")
    write("new/fair", variant="fair", backend="sim")
    assert call(capsys, "baseline", tmp_path / "base", "-o", tmp_path / "b.json")[0] == 0
    code, out, _ = call(capsys, "check", tmp_path / "new", "--baseline", tmp_path / "b.json")
    assert (code, "made-up, ltrf: run: recorded, but no run of it was given" in out) == (3, True)
    # A run directory that is named is one run, and meant as one.
    assert call(capsys, "check", tmp_path / "new/fair", "--baseline", tmp_path / "b.json")[0] == 0


def test_an_experiment_that_is_gone_is_not_judged(
    write: Write, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for experiment in ("one", "two"):
        write(f"base/{experiment}", experiment=experiment, backend="sim")
    write("new/one", experiment="one", backend="sim")
    assert call(capsys, "baseline", tmp_path / "base", "-o", tmp_path / "b.json")[0] == 0
    strict = ("check", tmp_path / "new", "--baseline", tmp_path / "b.json")
    assert call(capsys, *strict)[0] == 0, "one file may hold the bounds of several jobs of a pipeline"
    code, _, err = call(capsys, *strict, "--require-judged")
    assert (code, "warning: two, ltrf, sim: recorded, but no run of it was given" in err) == (1, True)


@pytest.mark.parametrize("place", ["exact", "bounds"])
def test_a_baseline_with_a_figure_that_is_no_number_is_damaged(
    place: str, baseline: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every value was better than NaN."""
    document = json.loads(baseline.read_text())
    (entry,) = document["entries"]
    if place == "exact":
        entry["exact"]["2"]["makespan_s"] = float("nan")
    else:
        entry["bounds"]["makespan_s"]["median"] = float("nan")
    baseline.write_text(json.dumps(document))
    code, _, err = call(capsys, "check", tmp_path / "runs", "--baseline", baseline, "--require-judged")
    assert (code, "a damaged baseline" in err, "makespan_s is not a number" in err) == (1, True, True)


def test_what_a_run_was_made_with_is_compared(write: Write, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old, new = write("old", backend="sim"), write("new", backend="sim")

    def note(run: Path, **what: Any) -> None:
        (run / "run.json").write_text(json.dumps({**json.loads((run / "run.json").read_text()), **what}))

    note(old, policy_code=["a"], versions={"yarnfair": "0.1.0", "numpy": "2.1"})
    assert call(capsys, "baseline", old, "-o", tmp_path / "b.json")[0] == 0
    note(new, policy_code=["a"], versions={"yarnfair": "0.1.0", "numpy": "2.1"})
    assert call(capsys, "check", new, "--baseline", tmp_path / "b.json")[2].count("\n") == 1
    note(new, policy_code=["b"], versions={"yarnfair": "0.2.0", "numpy": "2.1"})
    _, _, err = call(capsys, "check", new, "--baseline", tmp_path / "b.json")
    assert "the policy's source has changed since it was recorded" in err
    assert "of yarnfair 0.2.0, recorded by yarnfair 0.1.0" in err
    assert "numpy" not in err


def test_every_worse_metric_is_a_failure_in_junit(
    baseline: Path, write: Write, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    worse = write("worse", seed=1, backend="sim", makespan_s=2000.0, sharing_loss_integral=900.0)
    xml = tmp_path / "j.xml"
    assert call(capsys, "check", worse, "--baseline", baseline, "--junit", xml)[0] == 3
    root = ET.parse(xml).getroot()
    failed = {case.get("name") for case in root.iter("testcase") if case.find("failure") is not None}
    assert {"makespan_s", "sharing_loss_integral"} <= failed
    assert root.get("failures") == str(len(failed))
    skipped = {case.get("name") for case in root.iter("testcase") if case.find("skipped") is not None}
    assert skipped == {"run"}, "the other two seeds"


def test_what_must_be_judged_is_red_everywhere(
    baseline: Path, write: Write, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With --require-judged a missing seed ended with 1, but was `skipped` in JUnit, `fine` in JSON, not annotated."""
    one, xml = write("one", seed=1, backend="sim"), tmp_path / "j.xml"
    arguments = ("check", one, "--baseline", baseline, "--junit", xml, "--github", "--json")
    code, out, err = call(capsys, *arguments, "--require-judged")
    assert (code, json.loads(out)["verdict"]) == (1, "not judged")
    assert sum(line.startswith("::error ") and "title=Not judged" in line for line in err.splitlines()) == 1
    root = ET.parse(xml).getroot()
    assert (root.get("failures"), root.get("errors"), root.get("skipped")) == ("0", "1", "0")
    (case,) = (case for case in root.iter("testcase") if case.find("error") is not None)
    assert case.get("name") == "run"
    assert call(capsys, *arguments)[0] == 0
    assert ET.parse(xml).getroot().get("skipped") == "1"


def test_a_weak_baseline_says_what_it_can_find(
    write: Write, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rng = np.random.default_rng(1)

    def run(name: str, seed: int, spread: float = 0.05) -> Path:
        return write(name, seed=seed, makespan_s=1000.0 * float(np.exp(spread * rng.normal())))

    for seed in range(5):
        run(f"five/{seed}", seed)
    code, out, _ = call(capsys, "baseline", tmp_path / "five", "-o", tmp_path / "b.json")
    assert code == 0
    assert "a check of one other run: 5 recorded runs detect a change of makespan_s above " in " ".join(out.split())
    _, _, err = call(capsys, "check", run("one", 99), "--baseline", tmp_path / "b.json")
    (line,) = [line for line in err.splitlines() if "recorded runs detect" in line]
    assert "; record " in line
    assert line.endswith(" more for 20 %")
    part = float(line.partition("above ")[2].partition("%")[0]) / 100
    assert part > 0.2
    # What it says is true: a run that is that much slower fails, one that is a little less slow does not.
    recorded = json.loads((tmp_path / "b.json").read_text())["entries"][0]["bounds"]["makespan_s"]
    for factor, code in ((1 + part + 0.02, 3), (1 + part - 0.02, 0)):
        slow = write(f"slow {factor}", seed=100, makespan_s=recorded["median"] * factor)
        assert call(capsys, "check", slow, "--baseline", tmp_path / "b.json")[0] == code


def test_too_few_runs_are_told_from_no_difference_after_the_correction(write: Write, tmp_path: Path) -> None:
    """Four pairs give p = 0.125 at the least; six give 0.031, which a correction for many metrics raises above 0.05."""
    rng = np.random.default_rng(3)
    for seed in range(6):
        noise = {f"extra_{at}": float(rng.normal(100, 5)) for at in range(12)}
        other = {f"extra_{at}": float(rng.normal(100, 5)) for at in range(12)}
        write(f"a/{seed}", seed=seed, variant="fair", queues={}, **noise)
        write(f"b/{seed}", seed=seed, variant="ltrf", queues={}, **other)
    (contest,) = groups([str(tmp_path / "a"), str(tmp_path / "b")]).contests
    for correction in ("none", "bh", "holm"):
        found = compare(contest, correction=correction)  # type: ignore[arg-type]
        tested = [own for row in found.rows for own in row.contenders if own.p is not None]
        family = [own.p for row in found.rows if not row.judged for own in row.contenders if own.p is not None]
        for own in tested:
            if own.verdict == "no difference shown":
                # Had this metric differed in every pair alike, the correction would have let it be shown.
                least = adjusted([2 / 2**6, *(p for p in family if p is not None)][: len(family)], correction)[0]  # type: ignore[arg-type]
                assert least <= 0.05
        verdicts = {own.verdict for own in tested}
        if correction == "holm":
            assert "no difference shown" not in verdicts, "12 metrics: 12 x 0.031 can never be below 0.05"
        if correction == "none":
            assert "no difference shown" in verdicts
