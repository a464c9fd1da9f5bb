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
    ],
    ids=["no history", "debts", "some stay"],
)
def test_a_dry_run_says_what_changes_in_shares_and_why(
    after: dict[str, float], counted: dict[str, float], said: list[str]
) -> None:
    told = changes(EQUAL, after, counted, QUEUES, {}, make_policy("ltrf"))
    assert _in_shares(told) == said
