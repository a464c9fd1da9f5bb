"""``yarnfair order``: what a user sees, and input that is wrong in every way we could think of."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from harness.base.errors import CallError, InputError, YarnfairError
from harness.systems.mrorder.command import order
from harness.systems.mrorder.ordering.jobs import parse_jobs

HEADER = "job,maps,map_seconds,reduces,reduce_seconds\n"
MORE = HEADER.strip() + ",arrival_seconds,map_task_seconds,reduce_task_seconds\n"
GOOD = HEADER + "J1,10,4,2,8\nJ2,4,2,4,2\nJ3,2,6,4,10\nJ4,24,6,6,8\n"


def run(tmp_path: Path, text: str | bytes, *more: str) -> Any:
    path = tmp_path / "jobs.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    arguments = [str(path), "--map-slots", "8", "--reduce-slots", "4", *more]
    return CliRunner().invoke(order, arguments, standalone_mode=False)


def test_the_document_is_one_json_with_the_order_and_its_cost(tmp_path: Path) -> None:
    found = json.loads(run(tmp_path, GOOD, "--algorithm", "mk_jr", "--json").stdout)
    assert list(found) == [
        "algorithm", "order", "makespan", "total_completion_time", "completions", "lower_bound", "upper_bound",
    ]  # fmt: skip
    assert list(found["completions"]) == found["order"]
    assert found["total_completion_time"] == sum(found["completions"].values())


def test_the_text_names_every_job_and_both_sums(tmp_path: Path) -> None:
    text = run(tmp_path, GOOD, "--algorithm", "optimal").stdout
    assert [line.split()[0] for line in text.splitlines()[1:5]] == ["J2", "J3", "J4", "J1"]
    assert "makespan               40 s" in text
    assert "total completion time  100 s" in text
    assert "no order has a smaller makespan" in text
    # By hand: Lemma 3.2's bound, and the same with its last term, the longest reduce, once instead of twice.
    bounds = re.search(r"of this order +([\d.]+) s or less \(the thesis prints ([\d.]+)\)", text)
    assert bounds
    longest_reduce = max(float(line.split(",")[4] or 0) for line in GOOD.splitlines()[1:])
    assert float(bounds[1]) - float(bounds[2]) == longest_reduce


def test_mk_jr_says_how_far_it_is_from_the_best_at_most(tmp_path: Path) -> None:
    """Theorem 3.1 by hand: two jobs on 8 map and 4 reduce slots."""
    rows = HEADER + "A,20,5,10,8\nB,20,9,10,3\n"
    found = run(tmp_path, rows, "--algorithm", "mk_jr").stdout
    # A then B: max(12.5 + 20 + 7.5, 12.5 + 22.5 + 7.5) = 42.5 s; 9 s the longest map, 8 s the longest reduce.
    # 1 + (9 + 2 x 8) / 42.5, and 1 + (9 + 8) / 42.5.
    assert "over the best order's  1.588 times or less (the thesis prints 1.4)" in found
    assert "over the best order's" not in run(tmp_path, rows, "--algorithm", "tct").stdout


def test_a_time_limit_is_kept_and_said(tmp_path: Path) -> None:
    rows = "".join(f"J{i},{3 + i % 5},{7 + i * i % 11},{1 + i % 4},{3 + 5 * i % 13}\n" for i in range(30))
    done = run(tmp_path, HEADER + rows, "--algorithm", "optimal", "--objective", "tct", "--time-limit", "0", "--json")
    found = json.loads(done.stdout)
    assert found["proven"] is False
    assert found["best_possible"] < found["total_completion_time"]
    assert "stopped before the order was proven optimal" in done.stderr


def test_columns_in_any_order_further_ones_blank_lines_a_byte_order_mark_and_windows_line_ends() -> None:
    text = "reduces, job ,maps,map_seconds,reduce_seconds,team\r\n2,J1,10,4.5,8,x\r\n\r\n0,J2,1,2e1,,y\r\n"
    first, second = parse_jobs(text, "jobs.csv")
    assert (first.name, first.maps, first.map_s, first.reduces, first.reduce_s) == ("J1", 10, 4.5, 2, 8)
    assert (second.map_s, second.reduces, second.reduce_s) == (20, 0, 0)


def test_times_are_read_as_the_decimals_written() -> None:
    (only,) = parse_jobs(HEADER + "J,1,0.1,1,.30\n", "jobs.csv")
    assert (only.map_s * 10, only.reduce_s * 10) == (1, 3)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "no jobs in it"),
        ("\n\n", "no jobs in it"),
        (HEADER, "no jobs in it"),
        ("J1,10,4,2,8\n", "line 1: the header lacks job, maps"),
        ("job,maps,map_seconds,reduces\nJ1,1,1,1\n", "line 1: the header lacks reduce_seconds"),
        ("job,maps,maps,map_seconds,reduces,reduce_seconds\n", "the header has maps more than once"),
        (HEADER + "J1,10,4,2\n", "line 2: 4 fields where the header has 5"),
        (HEADER + "J1,10,4,2,8,9\n", "line 2: 6 fields where the header has 5"),
        (MORE + "J1,1,1,1,1,,1 2,\n", "line 2: map_task_seconds has 2 times, maps is 1"),
        (MORE + "J1,1,1,1,1,,,x\n", "line 2: reduce_task_seconds is 'x'"),
        (MORE + "J1,1,1,1,1,-1,,\n", "line 2: arrival_seconds is '-1'"),
        (MORE + "J1,1,1,1,1,3,,\nJ2,1,1,1,1,,,\n", "line 3: job 'J2' has no arrival_seconds"),
        (MORE + "J1,1,,1,1,,,\n", "line 2: map_seconds is ''"),
        (HEADER + "J1,1,1,1,1\nJ1,1,1,1,1\n", "line 3: job 'J1' stands in line 2 already"),
        (HEADER + ",1,1,1,1\n", "line 2: the job has no name"),
        (HEADER + "J1,nan,1,1,1\n", "line 2: maps is 'nan'"),
        (HEADER + "J1,1,nan,1,1\n", "line 2: map_seconds is 'nan'"),
        (HEADER + "J1,1,inf,1,1\n", "line 2: map_seconds is 'inf'"),
        (HEADER + "J1,1,1,1,-2\n", "line 2: reduce_seconds is '-2'"),
        (HEADER + "J1,1,1,-1,2\n", "line 2: reduces is '-1'"),
        (HEADER + "J1,1.5,1,1,2\n", "line 2: maps is '1.5'"),
        (HEADER + "J1,1,1_0,1,2\n", "line 2: map_seconds is '1_0'"),
        (HEADER + "J1,1,,1,2\n", "line 2: map_seconds is ''"),
        (HEADER + "J1,,1,1,2\n", "line 2: maps is ''"),
        (HEADER + "J1,\N{ARABIC-INDIC DIGIT ONE},1,1,2\n", "line 2: maps is"),
        (HEADER + "J1,1000000000001,1,1,2\n", "line 2: maps is '1000000000001'"),
        (HEADER + f"J1,{'9' * 5000},1,1,2\n", "line 2: maps is '9999"),
        (HEADER + "J1,1,1e999,1,2\n", "line 2: map_seconds is '1e999'"),
        (HEADER + "J1,1,1e-999,1,2\n", "line 2: map_seconds is '1e-999'"),
        (HEADER + "J1,1,1e-31,1,2\n", "line 2: map_seconds is '1e-31'"),
        (HEADER + 'J1,1,1,1,"2\n', "not CSV"),
        (HEADER + 'J"1" x,1,1,1,2\n"J"2,1,1,1,1\n', "not CSV"),
        (HEADER + "J" * 200_000 + ",1,1,1,2\n", "not CSV"),
        (b"\xff\xfe\x00\x01", "is not UTF-8 text"),
        (HEADER + "J\0,1,1,1,2\n", "line 2: the name"),
        (HEADER + '"J\n1",1,1,1,2\n', "line 3: the name"),
    ],
)
def test_a_file_that_cannot_be_used_is_one_line_that_says_where(tmp_path: Path, text: str | bytes, says: str) -> None:
    done = run(tmp_path, text, "--algorithm", "given")
    assert isinstance(done.exception, InputError), done.exception
    assert done.exception.exit_code == 1
    assert says in done.exception.line()
    assert done.exception.hint
    assert "\n" not in done.exception.line()
    assert len(done.exception.line()) < 1000
    assert done.stdout == ""


@pytest.mark.parametrize("path", ["no such file.csv", "."])
def test_a_path_that_cannot_be_read(path: str) -> None:
    arguments = [path, "--map-slots", "1", "--reduce-slots", "1", "--algorithm", "given"]
    done = CliRunner().invoke(order, arguments, standalone_mode=False)
    assert isinstance(done.exception, YarnfairError), done.exception
    assert done.exception.exit_code == 1


@pytest.mark.parametrize(
    "more",
    [
        ("--algorithm", "given", "--map-slots", "0"),
        ("--algorithm", "optimal", "--reduce-slots", "0"),
    ],
)
def test_a_call_that_makes_no_sense(tmp_path: Path, more: tuple[str, ...]) -> None:
    done = run(tmp_path, GOOD, *more)
    assert isinstance(done.exception, CallError), done.exception
    assert done.stdout == ""


#: On 4 map and 2 reduce slots; by hand below.
ARRIVING = MORE + "A,4,,2,8,0,3 5 4 4,\nB,8,10,2,2,1,,\nC,2,2,1,3,2,,\nD,2,2,1,3,40,1 3,\n"
FEW = ("--map-slots", "4", "--reduce-slots", "2", "--json")


def test_jobs_that_arrive_are_ordered_online_and_each_task_takes_its_own_time(tmp_path: Path) -> None:
    """By hand. The first round is at 10 s: C, A, B by MK_JR. C's maps end at 12, A's at 13, 15, 16, 16, so its reduces
    run from 16 to 24; B's eight maps end by 36. The round is estimated at 27 s, ten more without jobs: D goes at 47.
    As they arrive: A's maps end at 3, 5, 4, 4; B's in slots free from there; C's after B's."""
    found = json.loads(run(tmp_path, ARRIVING, "--algorithm", "mrorder", *FEW).stdout)
    assert found["order"] == ["C", "A", "B", "D"]
    assert found["submitted"] == {"C": 10, "A": 10, "B": 10, "D": 47}
    assert found["rounds"] == {"C": 1, "A": 1, "B": 1, "D": 2}
    assert found["completions"] == {"C": 15, "A": 24, "B": 38, "D": 53}
    assert (found["makespan"], found["total_completion_time"]) == (53, 130)
    assert found["total_flow_time"] == 130 - (0 + 1 + 2 + 40)
    plain = found["as_they_arrive"]
    assert plain["completions"] == {"A": 13, "B": 27, "C": 30, "D": 46}
    assert plain["total_flow_time"] == 13 + 26 + 28 + 6


def test_mrorder_takes_its_settings(tmp_path: Path) -> None:
    more = ("--set", "when=pnj", "--set", "jobs=2", "--set", "ordering=given")
    found = json.loads(run(tmp_path, ARRIVING, "--algorithm", "mrorder", *FEW, *more).stdout)
    assert found["submitted"] == {"A": 1, "B": 1, "C": 40, "D": 40}


@pytest.mark.parametrize(
    ("text", "more", "says"),
    [
        (GOOD, (), "no column arrival_seconds"),
        (ARRIVING, ("--set", "eager=true"), "eager has no meaning here"),
        (ARRIVING, ("--set", "history=x"), "history has no meaning here"),
        (ARRIVING, ("--set", "target=flow"), "target"),
    ],
)
def test_what_mrorder_cannot_do_with_a_file(tmp_path: Path, text: str, more: tuple[str, ...], says: str) -> None:
    done = run(tmp_path, text, "--algorithm", "mrorder", *more)
    assert isinstance(done.exception, YarnfairError)
    assert says in done.exception.line()


def test_an_order_goes_by_averages_and_costs_what_the_tasks_take(tmp_path: Path) -> None:
    """Fig. 3.7 on one's own jobs. A on 8 map slots: 4 s by the average, 5 s in truth."""
    text = MORE + "A,4,,2,8,,3 5 4 4,10 6\n"
    found = json.loads(run(tmp_path, text, "--algorithm", "mk_jr", "--json").stdout)
    assert found["makespan"] == 15
    assert found["by_averages"]["makespan"] == 12
    assert found["by_averages"]["lower_bound"] == 6  # 4 x 4 s over 8 map slots, 2 x 8 s over 4 reduce slots
    assert (found["lower_bound"], found["upper_bound"]) == (6, 31)  # of the tasks: + 5 s + 2 x 10 s
    text = run(tmp_path, text, "--algorithm", "mk_jr").stdout
    assert "by the averages" in text
    assert "over the best order's" in text
    # By averages that are not the tasks' the order is not MK_JR's: Theorem 3.1 says nothing of it.
    text = run(tmp_path, MORE + "A,4,4,2,8,,3 5 4 5,\n", "--algorithm", "mk_jr").stdout
    assert "over the best order's" not in text


def test_given_averages_stand_beside_the_tasks_own_times(tmp_path: Path) -> None:
    (job,) = parse_jobs(MORE + "A,2,7,1,8,3,3 5,\n", "jobs.csv")
    assert (job.map_s, job.map_task_s, job.reduce_task_s, job.arrival_s) == (7, (3, 5), None, 3)


def test_a_rule_without_arrivals_says_so(tmp_path: Path) -> None:
    done = run(tmp_path, ARRIVING, "--algorithm", "tct", "--json")
    assert "arrival_seconds is for --algorithm mrorder" in done.stderr
    assert "arrivals" not in json.loads(done.stdout)


def test_too_many_tasks_to_follow_are_a_wrong_call(tmp_path: Path) -> None:
    done = run(tmp_path, MORE + "A,1,,1,1,,1,\nB,1000000,1,1,1,,,\n", "--algorithm", "tct")
    assert isinstance(done.exception, CallError)
    assert "1_000_003 tasks" in done.exception.line()


def test_options_of_the_search_are_ignored_by_a_rule_and_this_is_said(tmp_path: Path) -> None:
    more = ("--algorithm", "mk_jr", "--objective", "tct", "--time-limit", "3", "--json")
    done = run(tmp_path, GOOD, *more)
    assert json.loads(done.stdout)["order"] == ["J2", "J3", "J4", "J1"]
    assert done.stderr.splitlines() == [
        "yarnfair: --objective is for --algorithm optimal, mk_jr ignores it",
        "yarnfair: --time-limit is for --algorithm optimal, mk_jr ignores it",
    ]


def test_huge_counts_are_answered_by_every_algorithm(tmp_path: Path) -> None:
    rows = "".join(f"J{i},{10**12 - i},{10**11 - i}.5,{10**12},{i}.123456789\n" for i in range(5))
    for algorithm in ("given", "mk_jr", "mk_tct_jr", "tct", "worst", "optimal"):
        found = json.loads(run(tmp_path, HEADER + rows, "--algorithm", algorithm, "--json").stdout)
        assert found["lower_bound"] <= found["makespan"] <= found["upper_bound"]
