"""Worked examples of job ordering: tang-thesis chapter 3, Fig. 3.3, Theorem 3.3, and Lemma 3.2's counterexample."""

from __future__ import annotations

import json
from fractions import Fraction
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from harness.systems.mrorder.command import order
from harness.systems.mrorder.ordering import (
    GREEDY,
    MapReduceJob,
    Slots,
    estimate,
    lower_bound,
    parse_jobs,
    upper_bound,
    upper_bound_as_printed,
)

FIG_3_3 = """job,maps,map_seconds,reduces,reduce_seconds
J1,10,4,2,8
J2,4,2,4,2
J3,2,6,4,10
J4,24,6,6,8
"""
THEOREM_3_3 = """job,maps,map_seconds,reduces,reduce_seconds
J1,10,9,1,10
J2,8,11,1,15
"""
LEMMA_3_2 = """job,maps,map_seconds,reduces,reduce_seconds
J1,1,1,5,11
J2,7,1,12,1
J3,1,1,1,11
"""


def answer(tmp_path: Path, text: str, map_slots: int, reduce_slots: int, *more: str) -> dict[str, Any]:
    jobs = tmp_path / "jobs.csv"
    jobs.write_text(text)
    slots = ["--map-slots", str(map_slots), "--reduce-slots", str(reduce_slots)]
    done = CliRunner().invoke(order, [str(jobs), *slots, "--json", "--algorithm", *more], standalone_mode=False)
    assert done.exception is None, done.exception
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def test_fig_3_3(tmp_path: Path) -> None:
    found = answer(tmp_path, FIG_3_3, 8, 4, "given")
    assert found["order"] == ["J1", "J2", "J3", "J4"]
    assert found["makespan"] == 44
    assert found["completions"] == {"J1": 16, "J2": 8, "J3": 26, "J4": 44}
    assert found["total_completion_time"] == 94
    # By hand: T^M 5 1 1.5 18, T^R 4 2 10 12; Johnson J2 J3 J4 J1, path through J4: 1 + 1.5 + 18 + 12 + 4.
    assert found["lower_bound"] == 36.5
    # Path through J4: 5 + 1 + 1.5 + 18 + 6 + 12, and twice 10.
    assert found["upper_bound"] == 63.5


def test_fig_3_3_best_makespan_is_mk_jr_s_order(tmp_path: Path) -> None:
    best = answer(tmp_path, FIG_3_3, 8, 4, "optimal")
    assert (best["order"], best["makespan"], best["proven"]) == (["J2", "J3", "J4", "J1"], 40, True)
    assert answer(tmp_path, FIG_3_3, 8, 4, "mk_jr")["order"] == best["order"]
    assert answer(tmp_path, FIG_3_3, 8, 4, "worst")["order"] == best["order"][::-1]


def test_fig_3_3_best_total_completion_time(tmp_path: Path) -> None:
    best = answer(tmp_path, FIG_3_3, 8, 4, "optimal", "--objective", "tct")
    assert (best["total_completion_time"], best["proven"]) == (88, True)


def test_fig_3_3_over_all_24_orders() -> None:
    jobs, slots = parse_jobs(FIG_3_3, "Fig. 3.3"), Slots(8, 4)
    found = [estimate(some, slots) for some in permutations(jobs)]
    assert min(item.makespan for item in found) == 40
    assert min(item.total_completion_time for item in found) == 88


@pytest.mark.parametrize(("nodes", "j1_first", "j2_first"), [(5, 35, 30), (4, 44, 39)])
def test_theorem_3_3_s_example(nodes: int, j1_first: int, j2_first: int) -> None:
    # 2 map and 2 reduce slots a node. The thesis calls 35 the optimum and J1 J2 the order of MK_JR; by its own
    # formula MK_JR gives J2 J1 (T^M > T^R for both, so the longer T^R goes first), with either number of nodes.
    jobs, slots = parse_jobs(THEOREM_3_3, "Theorem 3.3"), Slots(2 * nodes, 2 * nodes)
    assert estimate(jobs, slots).makespan == j1_first
    assert estimate(jobs[::-1], slots).makespan == j2_first
    assert GREEDY["mk_jr"](jobs, slots) == (1, 0)


def test_lemma_3_2_as_printed_does_not_hold() -> None:
    jobs, slots = parse_jobs(LEMMA_3_2, "Lemma 3.2"), Slots(1, 8)
    assert estimate(jobs, slots).makespan == 23
    assert upper_bound_as_printed(jobs, slots) == Fraction("22.875")
    assert upper_bound(jobs, slots) == Fraction("33.875")


TABLE_3_2 = [
    # benchmark, maps, reduces, average seconds of a map, of a reduce
    ("Wordcount", 160, 100, 22, 11),
    ("Sort", 320, 200, 9, 24),
    ("Grep", 480, 120, 9, 11),
    ("Inverted-Index", 640, 100, 32, 23),
    ("Classification", 160, 120, 6, 13),
    ("Histogram-Movies", 160, 150, 6, 13),
    ("Histogram-Ratings", 160, 100, 18, 15),
    ("Sequence-Count", 320, 150, 38, 21),
    ("Tera-Sort", 160, 100, 10, 26),
]


def test_table_3_2_s_nine_jobs_are_solved_without_enumeration() -> None:
    from harness.systems.mrorder.ordering.search import optimal

    jobs = [MapReduceJob(name, m, Fraction(a), r, Fraction(b)) for name, m, r, a, b in TABLE_3_2]
    slots = Slots(57, 19)
    makespan = optimal(jobs, slots, "makespan")
    total = optimal(jobs, slots, "tct")
    # Values recorded from an enumeration of all 362,880 orders.
    assert (makespan.proven, makespan.value) == (True, 1086)
    assert (total.proven, total.value) == (True, 4598)
    assert makespan.nodes + total.nodes < 36288
    assert lower_bound(jobs, slots) <= makespan.value
