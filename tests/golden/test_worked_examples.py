"""Worked examples from the command line: the commands of docs/reference/worked-examples.md and the papers' numbers.

That the page shows what the commands print is tests/docs' business; here the answers are held against the sources.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from harness.cli import main

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "reference" / "worked-examples.md"


@pytest.fixture
def answer(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Any:
    """Runs one of the page's commands with --json; a command that is not on the page is a failure."""
    monkeypatch.chdir(ROOT)
    shown = re.findall(r"^    \$ yarnfair (.*)$", PAGE.read_text(encoding="utf-8"), re.M)

    def call(command: str) -> Any:
        assert command in shown
        with pytest.raises(SystemExit) as stop:
            main([*command.split(), "--json"])
        out, _ = capsys.readouterr()
        assert stop.value.code == 0
        return json.loads(out)

    return call


def allocate(name: str, policy: str, *sets: str) -> str:
    return " ".join(
        [f"allocate workloads/scenarios/{name}.yaml --policy {policy}", *(f"--set {setting}" for setting in sets)]
    )


def order(name: str, slots: tuple[int, int], algorithm: str) -> str:
    maps, reduces = slots
    return (
        f"order workloads/ordering/example-{name}.csv --map-slots {maps} --reduce-slots {reduces} "
        f"--algorithm {algorithm}"
    )


def rows(document: Any, *steps: int) -> list[list[int]]:
    """The units of the leaves, in the scenario's order, at these steps (1 is the first)."""
    return [list(document["steps"][number - 1].values()) for number in steps]


@pytest.mark.parametrize(
    ("command", "units", "counted"),
    [
        (allocate("ltyarn-table-1", "fair"), [[20, 80], [40, 60], [50, 50], [50, 50]], {"A": 160, "B": 240}),
        (allocate("ltyarn-table-1", "ltrf"), [[20, 80], [40, 60], [80, 20], [60, 40]], {"A": 200, "B": 200}),
        (
            allocate("thesis-table-5-1", "ltrf", "discount=0.5"),
            [[40, 160], [80, 120], [160, 40], [120, 80]],
            {"A": 360, "B": 360},
        ),
        # B is due 12 units by step 12 and never had more than its share.
        (
            allocate("ltrf-no-sharing-incentive", "ltrf"),
            [[0, 1, 2]] * 9 + [[3, 0, 0]] * 3,
            {"A": 9, "B": 9, "C": 18},
        ),
    ],
)
def test_long_term(answer: Any, command: str, units: list[list[int]], counted: dict[str, int]) -> None:
    found = answer(command)
    assert rows(found, *range(1, len(units) + 1)) == units
    assert found["counted"] == counted


def test_fig_2(answer: Any) -> None:
    naive = answer(allocate("ltyarn-fig-2", "naive-hltrf"))
    assert rows(naive, 1, 2, 3, 4) == [[3, 3, 3, 3]] * 3 + [[5, 1, 3, 3]]
    assert rows(naive, *range(5, 17)) == [[6, 0, 3, 3]] * 12
    assert rows(naive, 17, 18, 19, 27) == [[6, 0, 2, 4], [6, 0, 0, 6], [10, 0, 0, 2], [8, 0, 0, 0]]
    assert [row[1] for row in rows(naive, *range(28, 37))] == [0] * 8 + [4]
    starving = rows(answer(allocate("ltyarn-fig-2", "hltrf", "t_wait=4")), *range(28, 33))
    assert [row[1] for row in starving] == [0, 0, 0, 0, 1]


@pytest.mark.parametrize(
    ("command", "tasks"),
    [
        (allocate("qknober-example-1", "drf"), {"A": 90.91, "B": 109.09}),
        (allocate("qknober-example-1", "drf", "integral=true"), {"A": 91, "B": 109}),
        (allocate("qknober-three-users", "drf"), {"A": 58.82, "B": 70.59, "C": 70.59}),
        (allocate("qknober-three-users", "drf", "integral=true"), {"A": 58, "B": 71, "C": 71}),
        (allocate("qknober-example-1", "qknober", "rho=0"), {"A": 150, "B": 50}),
        (allocate("qknober-example-1", "qknober", "rho=1"), {"A": 90.91, "B": 109.09}),
        (allocate("tetris-example-1", "tetris", "f=0"), {"A": 166, "B": 2}),
        (allocate("tetris-example-1", "tetris", "f=0.45"), {"A": 166, "B": 2}),
    ],
)
def test_several_resources(answer: Any, command: str, tasks: dict[str, float]) -> None:
    found = answer(command)["allocation"]
    assert {name: round(cells["tasks"], 2) for name, cells in found.items()} == tasks


@pytest.mark.parametrize(("rho", "efficiency", "theta"), [("0", 2.0, 1.0), ("0.5", 1.9818, 0.6), ("1", 1.7636, 0)])
def test_the_knob(answer: Any, rho: str, efficiency: float, theta: float) -> None:
    found = answer(allocate("qknober-example-1", "qknober", f"rho={rho}"))
    assert (round(found["efficiency"], 4), found["theta"]) == (efficiency, theta)
    if rho == "0.5":
        assert answer(allocate("qknober-example-1", "qknober", "theta=0.6")) == found


def test_the_lexicographic_optimum(answer: Any) -> None:
    found = answer(allocate("qknober-degenerate", "qknober", "rho=0"))
    assert found["utilisation"] == {"vcores": 1, "memory_gb": 1}
    assert {name: cells["dominant_share"] for name, cells in found["allocation"].items()} == {
        "A": 0.72,
        "B": 0.2,
        "C": 0.2,
    }


def test_section_7_1_of_fawkes(answer: Any) -> None:
    at = {step["time_s"]: step["nodes"] for step in answer(allocate("fawkes-7-1", "fawkes-jd"))["steps"]}
    first, gives_way, last = at[120], at[420], at[660]
    assert first == {"c-1": 50, "c-2": 10, "c-3": 0}
    assert gives_way == {"c-1": 10, "c-2": 25, "c-3": 25}
    assert last == {"c-1": 0, "c-2": 0, "c-3": 60}


def test_progress_share(answer: Any) -> None:
    slots, progress = (answer(allocate("progress-share", name)) for name in ("fair", "progress-share"))
    assert slots["progress_share"]["A"]["below_share"] > 0.5
    assert all(job["mean"] >= 0.5 and job["min"] >= 0.5 for job in progress["progress_share"].values())
    assert progress["makespan"] < slots["makespan"]


def test_memory_that_fades(answer: Any) -> None:
    """golden.md's formulas by hand: HTCondor, Slurm, Kueue, KAI."""
    alone = answer(allocate("htcondor-two-days", "decay-htcondor", "half_life=24"))["counted"]
    assert alone == {"A": pytest.approx(0.5**2 * 0.5 + (1 - 0.5**2) * 100), "B": 0.5}
    # G2 used 40 and G1 60: D (10 of 40) and C (30 of 40) come first, then B.
    assert rows(answer(allocate("slurm-two-groups", "decay-slurm")), 2) == [[0, 20, 40, 40]]
    # A tie merges the children: B, D, C, A.
    assert rows(answer(allocate("slurm-fair-tree", "decay-slurm")), 2) == [[10, 30, 30, 30]]
    kueue = answer(allocate("kueue-entry-penalty", "decay-kueue", "half_life=1", "sampling=1"))
    a, usage_a, usage_b = 0.5, 0.0, 0.0
    for held_a, held_b in rows(kueue, 1, 2, 3, 4):
        # The last unit went to the queue with the lesser usage + A x admitted.
        if held_a and held_b:
            assert abs((usage_a + a * held_a) - (usage_b + a * held_b)) <= a
        usage_a, usage_b = (1 - a) * usage_a + a * held_a, (1 - a) * usage_b + a * held_b
    assert kueue["counted"] == {"A": pytest.approx(usage_a), "B": pytest.approx(usage_b)}
    for k in (0, 1, 2):
        p = [max(0.0, 0.5 + k * (0.5 - used)) for used in (0.8, 0.2)]
        second = rows(answer(allocate("kai-sensitivity", "decay-kai", "window=1", f"k={k}")), 2)[0]
        assert second == [pytest.approx(100 * part / sum(p)) for part in p]
    idle = rows(answer(allocate("kai-idle-cluster", "decay-kai", "window=1")), 2)[0]
    assert idle == [round(100 * 0.9 / 1.9), round(100 / 1.9)]


def test_the_order_of_jobs(answer: Any) -> None:
    given = answer(order("fig-3-3", (8, 4), "given"))
    assert (given["makespan"], given["total_completion_time"]) == (44, 94)
    assert list(given["completions"].values()) == [16, 8, 26, 44]
    for algorithm in ("mk_jr", "optimal"):
        best = answer(order("fig-3-3", (8, 4), algorithm))
        assert (best["makespan"], best["order"]) == (40, ["J2", "J3", "J4", "J1"])
    assert answer(order("fig-3-3", (8, 4), "optimal --objective tct"))["total_completion_time"] == 88
    for slots, as_printed, by_rule in ((10, 35, 30), (8, 44, 39)):
        assert answer(order("theorem-3-3", (slots, slots), "given"))["makespan"] == as_printed
        found = answer(order("theorem-3-3", (slots, slots), "mk_jr"))
        assert (found["makespan"], found["order"]) == (by_rule, ["J2", "J1"])
    lemma = answer(order("lemma-3-2", (1, 8), "given"))
    assert lemma["makespan"] == 23 <= lemma["upper_bound"]


def test_slots(answer: Any) -> None:
    weighted = answer(allocate("dynamicmr-weights", "pi-dhsa"))
    assert (weighted["most_maps"], weighted["most_reduces"]) == (16, 8)
    assert answer(allocate("dynamicmr-one-job", "fair"))["makespan"] == 4 * 9 + 12 * 24
    assert answer(allocate("dynamicmr-one-job", "pi-dhsa"))["makespan"] == 3 * 9 + 2 * 24
    for policy, reduces in (("pi-dhsa", 18), ("pd-dhsa", 36)):
        pools = answer(allocate("dynamicmr-pools", policy))["steps"]
        at = {step["at"]: step for step in pools}
        assert list(at[0]["maps"].values()) == [36, 36, 36]
        assert at[60]["reduces"]["pool1"] == reduces
