"""FAWKES (SIGMETRICS 2014): the formulas and the worked example of section 7.1, exactly."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import pytest

from harness.cli import main
from harness.policies import make_policy
from harness.systems.fawkes.policies import FawkesPolicy, throughput_weight
from harness.systems.fawkes.shares import (
    Metrics,
    global_discrimination,
    temporal_discrimination,
    variance,
    weights_of,
)

ROOT = Path(__file__).resolve().parents[3]
SCENARIO = ROOT / "workloads" / "scenarios" / "fawkes-7-1.yaml"


def policy(name: str, **settings: str) -> FawkesPolicy:
    made = make_policy(name, settings)
    assert isinstance(made, FawkesPolicy)
    return made


def test_weights_are_parts_of_the_sum_and_equal_when_all_are_zero() -> None:
    assert weights_of({"a": 1, "b": 3}) == {"a": Fraction(1, 4), "b": Fraction(3, 4)}
    assert weights_of({"a": 0, "b": 0}) == {"a": Fraction(1, 2), "b": Fraction(1, 2)}
    assert weights_of({}) == {}


def test_discriminations() -> None:
    fractions = {"a": Fraction(1, 2), "b": Fraction(1, 2)}
    weights = {"a": Fraction(1, 4), "b": Fraction(3, 4)}
    d = temporal_discrimination(fractions, weights)
    assert d == {"a": Fraction(1, 4), "b": Fraction(-1, 4)}
    interval = {name: value * 60 for name, value in d.items()}
    # All nodes are held: the discriminations sum to 0, and E[D^2] is their variance (eq. 3).
    assert global_discrimination(interval) == variance(interval) == 225
    assert variance({"a": 3, "b": 3}) == 0


@pytest.mark.parametrize(
    ("name", "settings", "expected"),
    [
        ("jd", {}, 5),
        ("dd", {}, 70),
        ("td", {}, 560),
        ("pu", {}, Fraction(3, 4)),
        ("du", {}, Fraction(1, 5)),
        ("ru", {}, Fraction(19, 40)),
        ("ru", {"psi": "1"}, Fraction(3, 4)),
        ("ru", {"psi": "0"}, Fraction(1, 5)),
        ("js", {}, 4),
        ("jt", {}, 2 ** -(2 / 5)),
        ("tt", {}, 2 ** -(280 / 560)),
        ("tt", {"a": "4"}, 0.5),
        ("none", {}, 1),
        ("eq", {}, 1),
    ],
)
def test_the_value_of_each_policy(name: str, settings: dict[str, str], expected: float) -> None:
    sample = Metrics(
        waiting_jobs=5,
        waiting_gb=70,
        waiting_tasks=560,
        processor=Fraction(3, 4),
        disk=Fraction(1, 5),
        slowdown=4,
        completed_jobs=2,
        completed_tasks=280,
    )
    assert policy(f"fawkes-{name}", **settings).value(sample) == pytest.approx(expected, abs=1e-15)


def test_throughput_is_capped_and_one_when_nothing_waits() -> None:
    assert throughput_weight(2, 9, 3) == Fraction(1, 2)
    assert throughput_weight(2, 0, 0) == Fraction(1, 2)
    assert throughput_weight(2, 7, 0) == Fraction(1, 2)
    assert throughput_weight(2, 0, 8) == 1


def allocate(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, object]:
    with pytest.raises(SystemExit) as stop:
        main(["allocate", str(SCENARIO), "--json", *arguments])
    assert stop.value.code == 0
    found: dict[str, object] = json.loads(capsys.readouterr().out)
    return found


def sizes(answer: dict[str, object]) -> list[tuple[float, int, int, int]]:
    steps = answer["steps"]
    assert isinstance(steps, list)
    return [(s["time_s"], s["nodes"]["c-1"], s["nodes"]["c-2"], s["nodes"]["c-3"]) for s in steps]


def test_section_7_1(capsys: pytest.CaptureFixture[str]) -> None:
    answer = allocate(capsys, "--policy", "fawkes-jd")
    found = sizes(answer)
    assert found[0] == (0, 10, 0, 0)
    assert (100, 10, 10, 0) in found  # A: c-2 gets its core from the idle nodes
    assert (120, 50, 10, 0) in found  # B: all 40 idle nodes
    assert (200, 40, 10, 10) in found  # C: it gives way to c-3
    assert found[found.index((250, 40, 10, 10)) + 1][1:] == (19, 31, 10)  # D: and to c-2, by 3 : 5 in 50 nodes
    assert found[-2][1:] == (0, 0, 60)  # E: the last one takes all
    assert all(sum(step[1:]) <= 60 for step in found)


def test_section_7_1_from_its_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    """The update at 300 s: c-1's six samples are 30 jobs, c-2's five 50; 50 nodes are theirs."""
    steps = allocate(capsys, "--policy", "fawkes-jd")["steps"]
    assert isinstance(steps, list)
    (step,) = [s for s in steps if s["time_s"] == 300]
    assert step["weights"] == {"c-1": 0.375, "c-2": 0.625}
    # c-1 holds 50 of 60 nodes from 120 to 200 s, then 40; c-2 is active since 250 s. Seconds of the whole system.
    # Weights first, then discriminations (4.2.2): the new weights are of the interval from 240 to 300 s.
    expected_c1 = (50 / 60 - 1) * 80 + (40 / 60 - 1) * 40 + (40 / 60 - 0.375) * 60
    expected_c2 = (10 / 60 - 0.625) * 50
    assert step["discrimination"]["c-1"] == pytest.approx(expected_c1)
    assert step["discrimination"]["c-2"] == pytest.approx(expected_c2)
    assert step["global_discrimination"] == pytest.approx((expected_c1**2 + expected_c2**2) / 2)
    assert step["resized"] is True


def test_nothing_moves_below_tau_and_without_a_policy(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in (("--policy", "fawkes-jd", "--set", "tau=inf"), ("--policy", "fawkes-none")):
        answer = allocate(capsys, *arguments)
        assert answer["reconfigurations"] == 0
        assert max(max(step[1:]) for step in sizes(answer)) == 10


def test_ru_is_pu_and_du_at_the_ends_of_psi(capsys: pytest.CaptureFixture[str]) -> None:
    def steps(*arguments: str) -> object:
        return allocate(capsys, *arguments)["steps"]

    assert steps("--policy", "fawkes-ru", "--set", "psi=1") == steps("--policy", "fawkes-pu")
    assert steps("--policy", "fawkes-ru", "--set", "psi=0") == steps("--policy", "fawkes-du")
