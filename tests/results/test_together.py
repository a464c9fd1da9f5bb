"""Several runs against several recorded ones: what is found, what is no alarm, when the bound by spread stands in."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.results.baseline import Baseline, Entry, record
from harness.results.check import Checked, check
from harness.results.runs import RunRecord
from harness.results.together import ALPHA, together
from tests.results.conftest import Write, call, noisy


def run(seed: int, factor: float = 1.0, variant: str = "ltrf", metrics: int = 40, noise: float = 0.02) -> RunRecord:
    """A run of a real cluster: `metrics` queues whose mean completion times vary from seed to seed."""
    rng = np.random.default_rng([seed, len(variant)])
    queues = {
        f"root.q{k}": {"mean_completion_s": 100.0 * float(np.exp(noise * rng.normal())) * factor}
        for k in range(metrics)
    }
    info = {"variant": variant, "seed": seed, "backend": "local", "experiment": "made-up", "exit": 0, "hash": "a" * 64}
    return RunRecord(Path(f"{variant}-{seed}"), info, {"queues": queues})


def runs(seeds: Sequence[int], **more: Any) -> list[RunRecord]:
    return [run(seed, **more) for seed in seeds]


def checked(known: Sequence[RunRecord], new: Sequence[RunRecord], **more: Any) -> Checked:
    return check(new, Baseline("b", record(known, **more)))


def test_five_runs_against_five_find_what_five_bounds_cannot(
    write: Write, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """5 % in a metric that varies by 1 %: the bound by the spread of five runs is over 8 % away."""
    for seed in range(1, 6):
        noisy(write, f"base/{seed}", seed)
        noisy(write, f"same/{seed + 10}", seed + 10)
        noisy(write, f"slow/{seed + 20}", seed + 20, factor=1.05)
    file = tmp_path / "b.json"
    assert call(capsys, "baseline", tmp_path / "base", "-o", file)[0] == 0
    assert call(capsys, "check", tmp_path / "same", "--baseline", file)[0] == 0
    code, out, err = call(capsys, "check", tmp_path / "slow", "--baseline", file)
    assert code == 3
    assert "makespan_s" in err
    assert "more than chance gives (p 0.004, all metrics together)" in out
    # A file of before has no values of its runs: there the bound by spread stands in, which allows so much.
    old = json.loads(file.read_text())
    for bounds in old["entries"][0]["bounds"].values():
        assert len(bounds.pop("values")) == 5
    file.write_text(json.dumps(old))
    assert call(capsys, "check", tmp_path / "slow", "--baseline", file)[0] == 0
    old["entries"][0]["bounds"]["makespan_s"]["values"] = [1.0, 2.0]
    file.write_text(json.dumps(old))
    code, _, err = call(capsys, "check", tmp_path / "slow", "--baseline", file)
    assert (code, "2 values of 5 runs" in err) == (1, True)


def test_unchanged_runs_rarely_raise_an_alarm() -> None:
    """Two policies with fifteen metrics each: of 150 checks ALPHA may fail, 0.75; five have a chance of 0.1 %."""
    alarms = 0
    for k in range(150):
        before, after = range(10 * k, 10 * k + 5), range(10 * k + 5, 10 * k + 10)
        known, new = ([*runs(own, metrics=15), *runs(own, variant="fair", metrics=15)] for own in (before, after))
        alarms += bool(checked(known, new).alarms)
    assert alarms < 5


def test_a_slow_down_of_one_queue_among_forty_is_found() -> None:
    found = 0
    for k in range(20):
        new = runs(range(20 * k + 5, 20 * k + 10))
        slow = [RunRecord(one.path, one.info, json.loads(json.dumps(one.summary))) for one in new]
        for one in slow:
            one.summary["queues"]["root.q7"]["mean_completion_s"] *= 1.15
        alarms = checked(runs(range(20 * k, 20 * k + 5)), slow).alarms
        found += [held.key.text() for held in alarms] == ["mean_completion_s[root.q7]"]
    assert found >= 18


def test_a_difference_that_does_not_matter_is_fine_however_clear() -> None:
    known = runs(range(5), noise=0.0002)
    assert not checked(known, runs(range(5, 10), noise=0.0002, factor=1.005)).alarms
    assert checked(known, runs(range(5, 10), noise=0.0002, factor=1.03)).alarms


def test_better_is_no_alarm() -> None:
    assert not checked(runs(range(5)), runs(range(5, 10), factor=0.8)).alarms


def entry(count: int, variant: str = "ltrf", **more: Any) -> Entry:
    (made,) = record(runs(range(count), variant=variant, metrics=2), **more)
    return made


def test_too_few_runs_have_bounds_of_their_own() -> None:
    """3 against 3 can be dealt in 20 ways: chance alone has a p of 0.05."""
    assert not together([(entry(3), runs([7, 8, 9], metrics=2))])
    assert not together([(entry(10), runs([11], metrics=2))])
    assert len(together([(entry(10), runs([11, 12, 13], metrics=2))])) == 2  # 286 ways
    assert not together([(entry(5, margin=0.1), runs(range(5, 10), metrics=2))])
    held = checked(runs(range(10)), [run(11)]).held
    assert {one.how for one in held} == {"spread of 10 runs"}


def test_what_some_runs_lack_is_missing_and_the_others_are_tested() -> None:
    new = runs(range(5, 10), metrics=3)
    del new[2].summary["queues"]["root.q1"]
    found = {held.key.queue: held.verdict for held in checked(runs(range(5), metrics=3), new).held}
    assert found == {"root.q0": "fine", "root.q1": "missing", "root.q2": "fine"}


def test_the_order_of_the_runs_does_not_matter() -> None:
    def p(known: list[RunRecord], new: list[RunRecord]) -> dict[Any, Any]:
        return together([(one, [r for r in new if r.variant == one.variant]) for one in record(known)])

    known = runs(range(6)) + runs(range(6), variant="fair")
    new = runs(range(6, 12), factor=1.02) + runs(range(6, 12), variant="fair")
    expected = p(known, new)
    assert len(expected) == 80
    random.Random(3).shuffle(known)
    random.Random(4).shuffle(new)
    assert p(known, new) == expected


def test_policies_with_other_numbers_of_runs_share_the_level() -> None:
    """Five against five gives no p below 1/252: half of ALPHA cannot be shown by it, six against six can."""
    five = (entry(5), runs(range(5, 10), metrics=2, factor=2.0))
    six = (entry(6, "fair"), runs(range(6, 12), variant="fair", metrics=2, factor=2.0))
    assert {name[1] for name, _ in together([five])} == {"ltrf"}
    both = together([five, six])
    assert {name[1] for name, _ in both} == {"fair"}
    assert all(alarm and p <= ALPHA / 2 for p, alarm in both.values())
