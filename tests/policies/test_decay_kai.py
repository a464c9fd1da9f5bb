"""``decay-kai`` against the answers of KAI Scheduler's own division, and what they mean for queues."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from harness.model.resources import Resource
from harness.paper.steps import read_scenario
from harness.paper.units import allocate
from harness.policies.base import CountedLedger
from harness.policies.decay_kai import Asking, divide
from harness.policies.registry import make_policy
from tests.policies.test_decay import view

#: tests/oracle/kai/README.md says how they were made.
ANSWERS = Path(__file__).parent.parent / "oracle" / "kai" / "division.json.gz"


def test_a_thousand_divisions_are_kais_own() -> None:
    """KAI gives whole units of a million: at most one a queue and round is rounded otherwise."""
    cases: list[dict[str, Any]] = json.loads(gzip.decompress(ANSWERS.read_bytes()))["cases"]
    assert len(cases) == 1000
    rounds = 0
    for case in cases:
        queues = {at: Asking(*queue) for at, queue in enumerate(case["queues"])}
        given, _ = divide(case["total"], case["k"], queues)
        assert list(given.values()) == pytest.approx(case["fair_shares"], abs=2.0), case
        rounds += sum(0 < queue.request <= given[at] for at, queue in queues.items()) > 0
    assert rounds > 300  # the cases have requests that are met, and so more than one round


@pytest.mark.parametrize("queues", [5, 10])
def test_idle_queues_have_no_part_in_w(queues: int) -> None:
    """A has used a tenth of the cluster, B nothing, the others are idle: P of A is 1/2 + (1/2 - 1/10) = 0.9 of 1.9."""
    names = "ABCDEFGHIJ"[:queues]
    text = "capacity: 1000\nqueues: {" + ", ".join(f"{name}: {{}}" for name in names) + "}\n"
    found = allocate(
        read_scenario(text + "arrivals: [{A: 100}, {A: 2000, B: 2000}]\nsteps: 2\n", "s.yaml"),
        make_policy("decay-kai", {"window": 1}),
    ).steps[1]
    assert (found["A"], found["B"]) == (474, 526)
    snapshot = view(
        {f"root.{name}": 1.0 for name in names},
        **{f"root_{name}": {"demand": Resource(204800, 200), "pending_containers": 200} for name in "AB"},
    )
    weights = make_policy("decay-kai").plan(snapshot, CountedLedger()).weights
    assert weights["root.A"] == weights["root.B"]
    # A queue that asks for nothing now keeps a weight for the time until the next look.
    assert weights["root.C"] > 0.1 * weights["root.A"]


def test_what_a_queue_does_not_ask_for_is_divided_anew() -> None:
    """C asks for a tenth of its third; A and B divide the rest by P over the two of them, not over three."""
    queues = {0: Asking(1, 1000, 0.3), 1: Asking(1, 1000, 0.0), 2: Asking(1, 10, 0.0)}
    given, offered = divide(300, 1.0, queues)
    first = 300 / (11 / 30 + 2 / 3 + 2 / 3)  # units for each P of the first round
    left = 300 - first * (11 / 30 + 2 / 3) - 10
    assert given[0] == pytest.approx(first * 11 / 30 + left * 0.7 / 1.7)
    assert given[1] == pytest.approx(first * 2 / 3 + left * 1.0 / 1.7)
    assert (given[2], offered[2]) == (10, pytest.approx(first * 2 / 3))


def test_a_group_divides_what_its_level_gives_it() -> None:
    """G asks for 30 in all: its children divide 30, though the cluster has 100."""
    text = (
        "capacity: 100\nqueues: {A: {}, G: {children: {B: {}, C: {}}}}\narrivals: [{A: 300, B: 25, C: 5}]\nsteps: 1\n"
    )
    found = allocate(read_scenario(text, "s.yaml"), make_policy("decay-kai")).steps[0]
    assert found == {"A": 70, "B": 25, "C": 5}
