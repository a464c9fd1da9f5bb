"""What a dry run of `yarnfair enforce` says: shares and causes, and of queues that stay as they are that they do."""

from __future__ import annotations

import pytest

from harness.cli.enforce import _in_shares
from harness.control.changes import Entitled, changes
from harness.policies import make_policy

QUEUES = {f"root.{name}": Entitled(1.0, True) for name in "abcd"}
EQUAL = dict.fromkeys(QUEUES, 1.0)
HOUR = 3600.0 * 1024


@pytest.mark.parametrize(
    ("after", "counted", "said"),
    [
        (EQUAL, {}, ["unchanged: 25 % each: no history yet"]),
        (
            EQUAL | {"root.a": 3.0, "root.b": 0.2, "root.c": 0.4, "root.d": 0.4},
            {"root.a": 0.0, "root.b": 20 * HOUR, "root.c": 10 * HOUR, "root.d": 10 * HOUR},
            [
                "a 25 -> 75 %: owed 10.0 GiB·h",
                "b 25 -> 5.0 %: has had too much by 10.0 GiB·h",
                "c 25 -> 10 %",
                "d 25 -> 10 %",
            ],
        ),
        (
            EQUAL | {"root.a": 2.0, "root.b": 0.0},
            {},
            ["a 25 -> 50 %", "b 25 -> 0 %", "unchanged: 25 % each: no history yet"],
        ),
        (
            EQUAL | {"root.a": 0.96, "root.b": 1.0133, "root.c": 1.0133, "root.d": 1.0133},
            {"root.a": 20 * HOUR, "root.b": 10 * HOUR, "root.c": 10 * HOUR, "root.d": 10 * HOUR},
            ["a 25 -> 24 %: has had too much by 7.5 GiB·h", "nearly unchanged: 25 % each"],
        ),
    ],
    ids=["no history", "debts", "some stay", "some nearly stay"],
)
def test_a_dry_run_says_what_changes_in_shares_and_why(
    after: dict[str, float], counted: dict[str, float], said: list[str]
) -> None:
    told = changes(EQUAL, after, counted, QUEUES, {}, make_policy("ltrf"))
    assert _in_shares(told) == said


@pytest.mark.parametrize(
    ("before", "after", "asks", "said"),
    [
        (
            {"a": 3.0, "b": 1.0},
            {"a": 1.0, "b": 1.0},
            False,
            ("asks for no more now", "takes what nobody who is owed asks for"),
        ),
        ({"a": 9.0, "b": 1.0}, {"a": 3.0, "b": 1.0}, True, ("gets it back more slowly", "gives it back more slowly")),
        ({"a": 3.0, "b": 1.0}, {"a": 1.0, "b": 1.0}, True, ("gets nothing back now", "gives nothing back now")),
        ({"a": 1.0, "b": 1.0}, {"a": 3.0, "b": 1.0}, True, ("", "")),
    ],
    ids=["the creditor is idle", "more slowly", "nothing", "with the debt"],
)
def test_a_part_that_moves_against_the_debt_says_why(
    before: dict[str, float], after: dict[str, float], asks: bool, said: tuple[str, str]
) -> None:
    """`Spark 37 -> 25 %: owed 8.4 GiB·h` alone looks like a mistake."""
    queues = {"root.a": Entitled(1.0, True, asks), "root.b": Entitled(1.0, True)}
    counted = {"root.a": 10 * HOUR, "root.b": 30 * HOUR}
    was, will = ({f"root.{name}": weight for name, weight in given.items()} for given in (before, after))
    found = [change.why for change in changes(was, will, counted, queues, {}, make_policy("ltrf"))]
    debts = ("owed 10.0 GiB·h", "has had too much by 10.0 GiB·h")
    assert found == [f"{debt} ({more})" if more else debt for debt, more in zip(debts, said, strict=True)]


def test_beside_a_raise_nobody_is_said_to_give_nothing_back() -> None:
    """`b 25 -> 60 %: has had too much (gives nothing back now)`: what is told beside a raise is what it is."""
    queues = {"root.a": Entitled(1.0, True, asks=True), "root.b": Entitled(1.0, True)}
    counted = {"root.a": 10 * HOUR, "root.b": 30 * HOUR}
    was, will = {"root.a": 3.0, "root.b": 1.0}, {"root.a": 2.0, "root.b": 3.0}
    found = {change.queue: change.why for change in changes(was, will, counted, queues, {}, make_policy("ltrf"))}
    assert found["root.b"] == "has had too much by 10.0 GiB·h (is above its part all the same)"


def test_the_debts_of_a_decision_share_one_unit() -> None:
    """`a: owed 1.9 GiB·h, b: owed 3,600.0 GiB·s` in one line: the smaller debt looked like the larger."""
    queues = {f"root.{name}": Entitled(1.0, True) for name in "abc"}
    counted = {"root.a": 0.0, "root.b": 3 * HOUR, "root.c": 9 * HOUR}
    weights = dict.fromkeys(queues, 1.0)
    found = changes({}, weights, counted, queues, {}, make_policy("ltrf"))
    assert [change.why for change in found] == ["owed 4.0 GiB·h", "owed 1.0 GiB·h", "has had too much by 5.0 GiB·h"]


def test_a_new_queue_is_owed_nothing_before_it_asks() -> None:
    """It was told to be owed its part of all that others had used before it existed."""
    queues = {"root.a": Entitled(1.0, True), "root.b": Entitled(1.0, True), "root.new": Entitled(2.0, True, asks=False)}
    counted = {"root.a": 30 * HOUR, "root.b": 10 * HOUR, "root.new": 0.0}
    weights = {"root.a": 1.0, "root.b": 2.0, "root.new": 3.0}
    found = changes({}, weights, counted, queues, {}, make_policy("ltrf"), {"root.new"})
    assert [change.why for change in found] == ["has had too much by 10.0 GiB·h", "owed 10.0 GiB·h", ""]
