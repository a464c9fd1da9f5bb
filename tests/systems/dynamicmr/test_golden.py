"""DynamicMR's worked examples (tang-thesis chapter 4): slot weights, one job's closed forms, the pools of Fig. 4.9."""

from __future__ import annotations

import json
from math import ceil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.cli import main
from harness.systems.dynamicmr.rules import Rules, Sharing
from harness.systems.dynamicmr.simulator.engine import run_slots
from harness.systems.dynamicmr.simulator.model import SlotCluster, SlotJob, SlotNode, SlotRun

SCENARIOS = Path(__file__).resolve().parents[3] / "workloads" / "scenarios"


def allocated(name: str, policy: str, capsys: pytest.CaptureFixture[str], *sets: str) -> dict[str, Any]:
    arguments = ["allocate", str(SCENARIOS / f"{name}.yaml"), "--policy", policy, "--json"]
    for pair in sets:
        arguments += ["--set", pair]
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


@pytest.mark.parametrize(
    ("policy", "sets", "most"),
    [
        ("fair", (), (8, 4)),
        ("fifo", (), (8, 4)),
        ("pi-dhsa", (), (16, 8)),
        ("pd-dhsa", (), (16, 8)),
        ("dynamicmr", (), (16, 8)),
        ("pi-dhsa", ("mapred.idle.mapslots.borrowedforReduceTasks=0",), (16, 4)),
        ("pd-dhsa", ("percentageOfBorrowedReduceSlots=0",), (8, 8)),
        ("pi-dhsa", ("borrowed_map=0.5", "borrowed_reduce=0.5"), (12, 6)),
        ("pi-dhsa", ("PoolsFairShareSlotsAdaptiveMode=PoolDependent",), (16, 8)),
        ("pi-dhsa", ("scheduler=fifo",), (16, 8)),
        ("pi-dhsa", ("mode=static",), (8, 4)),
    ],
)
def test_slot_weights(
    policy: str, sets: tuple[str, ...], most: tuple[int, int], capsys: pytest.CaptureFixture[str]
) -> None:
    """8 map and 4 reduce slots with weights 1 and 2: at most 16 maps or 8 reduces at once (section 4.2.2.1)."""
    found = allocated("dynamicmr-weights", policy, capsys, *sets)
    assert (found["most_maps"], found["most_reduces"]) == most


def test_one_job_on_paper(capsys: pytest.CaptureFixture[str]) -> None:
    """Sort alone on 90 map and 18 reduce slots: 4 x 9 + 12 x 24, and with DHSA 3 x 9 + 2 x 24."""
    assert allocated("dynamicmr-one-job", "fair", capsys)["makespan"] == 324
    for policy in ("pi-dhsa", "pd-dhsa", "dynamicmr"):
        assert allocated("dynamicmr-one-job", policy, capsys)["makespan"] == 75


@settings(max_examples=80, deadline=None)
@given(
    nodes=st.integers(1, 4),
    slots=st.tuples(st.integers(1, 6), st.integers(1, 6)),
    tasks=st.tuples(st.integers(0, 60), st.integers(0, 60)).filter(any),
    times=st.tuples(st.integers(1, 50), st.integers(1, 50)),
    fifo=st.booleans(),
)
def test_closed_forms_of_one_job(
    nodes: int, slots: tuple[int, int], tasks: tuple[int, int], times: tuple[int, int], fifo: bool
) -> None:
    """ceil(N_M/S_M) t_M + ceil(N_R/S_R) t_R with static slots, S_M + S_R in both denominators with DHSA (4.3.2.2)."""
    cluster = SlotCluster(tuple(SlotNode(str(n), *slots) for n in range(nodes)))
    job = SlotJob("j", "p", (times[0],) * tasks[0], (times[1],) * tasks[1], slow_start=1.0)

    def makespan(sharing: Sharing) -> int:
        return run_slots(SlotRun(cluster, (job,), Rules(sharing=sharing, fifo=fifo))).makespan_ms

    maps, reduces = slots[0] * nodes, slots[1] * nodes
    assert makespan("static") == ceil(tasks[0] / maps) * times[0] + ceil(tasks[1] / reduces) * times[1]
    together = ceil(tasks[0] / (maps + reduces)) * times[0] + ceil(tasks[1] / (maps + reduces)) * times[1]
    assert makespan("independent") == makespan("dependent") == makespan("containers") == together


def test_pools_of_fig_4_9(capsys: pytest.CaptureFixture[str]) -> None:
    """PI-DHSA is fair within each phase, PD-DHSA over a pool's maps and reduces together (section 4.3.2.1)."""

    def at(found: dict[str, Any], time: int) -> list[tuple[int, int]]:
        step = next(step for step in found["steps"] if step["at"] == time)
        return [(step["maps"][pool], step["reduces"][pool]) for pool in ("pool1", "pool2", "pool3")]

    independent = allocated("dynamicmr-pools", "pi-dhsa", capsys)
    dependent = allocated("dynamicmr-pools", "pd-dhsa", capsys)
    # Maps only: a third of all slots each.
    assert at(independent, 0) == at(dependent, 0) == [(36, 0), (36, 0), (36, 0)]
    # Pool 1 has only reduces left: it has the reduce slots, or its third of all.
    assert at(independent, 60) == [(0, 18), (45, 0), (45, 0)]
    assert at(dependent, 60) == [(0, 36), (36, 0), (36, 0)]
    # Only reduces are left: they borrow the map slots.
    assert sum(reduces for _, reduces in at(independent, 150)) == 108


MINIMUM = """slots: {nodes: 2, map: 6, reduce: 3}
queues: {a: {weight: 9, min_slots: {map: 2}}, b: {min_slots: {map: 4, reduce: 9}}, c: {min_slots: {map: 8}}}
jobs:
  - {name: A, queue: a, maps: 40, map_seconds: 10}
  - {name: B, queue: b, maps: 40, map_seconds: 10}
  - {name: C, queue: c, maps: 3, map_seconds: 10}
"""


@pytest.mark.parametrize(
    ("policy", "maps"),
    [
        # Of 12 map slots 2, 4 and the three that C asks for are minimums; A's weight takes the other three.
        ("fair", {"a": 5, "b": 4, "c": 3}),
        # 18 slots of both kinds: b's minimum of reduces counts for nothing while it asks for none.
        ("pd-dhsa", {"a": 11, "b": 4, "c": 3}),
    ],
)
def test_pools_below_their_minimum_come_first(
    policy: str, maps: dict[str, int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Algorithm 7, line 7, and Hadoop 1.2.1's FairShareComparator: by distance below the minimum, then the share."""
    (tmp_path / "minimum.yaml").write_text(MINIMUM)
    assert allocated(str(tmp_path / "minimum"), policy, capsys)["steps"][0]["maps"] == maps


def test_pools_below_their_minimum_are_served_by_its_parts(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Both are below theirs all the time: eight slots go one to three, whatever the weights."""
    text = (
        "slots: {map: 8, reduce: 0}\nqueues: {a: {weight: 5, min_slots: {map: 5}}, b: {min_slots: {map: 15}}}\njobs:\n"
    )
    text += "".join(f"  - {{queue: {q}, name: {q}, maps: 40, map_seconds: 1}}\n" for q in "ab")
    (tmp_path / "parts.yaml").write_text(text)
    assert allocated(str(tmp_path / "parts"), "fair", capsys)["steps"][0]["maps"] == {"a": 2, "b": 6}
