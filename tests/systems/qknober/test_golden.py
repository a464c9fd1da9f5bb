"""Worked examples of QKnober's sections 4 and 5, line by line, as ``yarnfair allocate`` answers them."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from harness.cli import main
from harness.policies import make_policy
from harness.policies.vectors import Filling, VectorScenario, VectorUser, fill_lowest_first

CAPACITY = "capacity: {vcores: 200, memory_gb: 1000}\n"
EXAMPLE_1 = CAPACITY + "queues: {A: {task: {vcores: 1, memory_gb: 6}}, B: {task: {vcores: 1, memory_gb: 2}}}\n"
THREE = EXAMPLE_1.replace("}}}\n", "}}, C: {task: {vcores: 1, memory_gb: 2}}}\n")
FINITE = EXAMPLE_1.replace("}}", "}, tasks: 1000}").replace("tasks: 1000}}\n", "tasks: 1000}}\n")


@pytest.fixture
def answer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    def call(text: str, policy: str, *sets: str) -> Any:
        path = tmp_path / "scenario.yaml"
        path.write_text(text)
        with pytest.raises(SystemExit) as stop:
            main(["allocate", str(path), "--policy", policy, "--json", *(x for s in sets for x in ("--set", s))])
        out, err = capsys.readouterr()
        assert (stop.value.code, err) == (0, "")
        return json.loads(out)

    return call


def tasks(document: Any) -> dict[str, float]:
    return {name: cells["tasks"] for name, cells in document["allocation"].items()}


def test_example_1_drf(answer: Any) -> None:
    found = answer(EXAMPLE_1, "drf")
    assert set(found) >= {"policy", "allocation", "utilisation", "theta", "soft_fairness"}
    assert found["allocation"]["A"]["dominant_share"] == found["allocation"]["B"]["dominant_share"] == 6 / 11
    assert tasks(found) == {"A": 1000 / 11, "B": 1200 / 11}
    assert found["allocation"]["A"] == {
        "tasks": 1000 / 11,
        "vcores": 1000 / 11,
        "memory_gb": 6000 / 11,
        "dominant_share": 6 / 11,
    }
    assert found["utilisation"] == {"vcores": 1, "memory_gb": 42 / 55}
    assert round(found["utilisation"]["memory_gb"], 3) == 0.764
    assert (found["theta"], found["soft_fairness"]) == (0, 0)
    assert tasks(answer(EXAMPLE_1, "drf", "integral=true")) == {"A": 91, "B": 109}


def test_a_third_user(answer: Any) -> None:
    found = answer(THREE, "drf")
    assert {name: round(count, 2) for name, count in tasks(found).items()} == {"A": 58.82, "B": 70.59, "C": 70.59}
    assert round(found["utilisation"]["memory_gb"], 3) == 0.635
    assert tasks(answer(THREE, "drf", "integral=true")) == {"A": 58, "B": 71, "C": 71}
    assert tasks(answer(THREE, "qknober", "rho=1", "integral=true")) == {"A": 58, "B": 71, "C": 71}


def test_filling_task_by_task_is_not_the_papers_figure_3() -> None:
    """At 58, 70 and 70 tasks A has the smallest share (0.348 against 0.350): the next task is A's, not B's."""
    capacity, one, two = (Fraction(200), Fraction(1000)), Fraction(1), Fraction(2)
    users = [
        VectorUser("A", one, (one, Fraction(6))),
        VectorUser("B", one, (one, two)),
        VectorUser("C", one, (one, two)),
    ]
    filling = Filling(VectorScenario(("vcores", "memory_gb"), capacity, tuple(users)))
    fill_lowest_first(filling)
    assert filling.counts == [59, 71, 70]


def test_full_utilisation(answer: Any) -> None:
    found = answer(EXAMPLE_1, "qknober", "rho=0")
    assert found["allocation"]["A"] == {"tasks": 150, "vcores": 150, "memory_gb": 900, "dominant_share": 0.9}
    assert found["allocation"]["B"] == {"tasks": 50, "vcores": 50, "memory_gb": 100, "dominant_share": 0.25}
    assert found["utilisation"] == {"vcores": 1, "memory_gb": 1}


@pytest.mark.parametrize(("rho", "efficiency", "theta"), [("0", 2.0, 1.0), ("0.5", 1.9818, 0.6), ("1", 1.7636, 0)])
def test_the_knob(answer: Any, rho: str, efficiency: float, theta: float) -> None:
    found = answer(EXAMPLE_1, "qknober", f"rho={rho}")
    assert round(found["efficiency"], 4) == round(sum(found["utilisation"].values()), 4) == efficiency
    assert found["theta"] == theta
    assert found["soft_fairness"] <= theta
    # The knob by theta is the inverse.
    assert answer(EXAMPLE_1, "qknober", f"theta={theta}") == found
    # Theorem 2: phi / sum of weights = (11/6) / 2.
    assert found["sharing_incentive_rho"] == 11 / 12


@pytest.mark.parametrize("f", ["0", "0.2", "0.45"])
def test_tetris_is_insensitive(answer: Any, f: str) -> None:
    """With the dot product A fills the memory. (With the paper's balance rule: 150 and 50, its Figure 4.)"""
    text = EXAMPLE_1.replace("6}}", "6}, tasks: 1000}").replace("2}}", "2}, tasks: 1000}")
    found = answer(text, "tetris", f"f={f}")
    assert tasks(found) == {"A": 166, "B": 2}
    assert found["theta"] is None


def test_of_several_optima_the_fairest(answer: Any) -> None:
    """<1, 6>, <1, 2>, <1, 5> at rho = 0: A and B alone, or with some of C, are equally efficient."""
    text = EXAMPLE_1.replace("}}}\n", "}}, C: {task: {vcores: 1, memory_gb: 5}}}\n")
    found = answer(text, "qknober", "rho=0")
    assert found["utilisation"] == {"vcores": 1, "memory_gb": 1}
    shares = {name: cells["dominant_share"] for name, cells in found["allocation"].items()}
    # Both resources full: 5/6 a + b + c = 1 and a + 2/5 b + c = 1, so a = 18/5 b and c = 1 - 4 b; the least is largest
    # where b = c.
    assert shares == {"A": 0.72, "B": 0.2, "C": 0.2}


def test_envy_is_possible() -> None:
    """Against Theorem 3: Example 1 at rho = 0. B holds 50 tasks; A's bundle <150, 900> would give B 150."""
    policy = make_policy("qknober", {"rho": "0"})
    one = Fraction(1)
    users = (VectorUser("A", one, (one, Fraction(6))), VectorUser("B", one, (one, Fraction(2))))
    found = policy.divide(VectorScenario(("vcores", "memory_gb"), (Fraction(200), Fraction(1000)), users)).tasks
    bundle = [found[0] * need for need in users[0].task]
    assert found[1] == 50
    assert min(held / need for held, need in zip(bundle, users[1].task, strict=True)) == 150
