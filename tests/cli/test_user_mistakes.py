"""What a user's own policy does wrong is one line that names the user's file and line; seeds come as ranges."""

from __future__ import annotations

from pathlib import Path

import click
import pytest

from harness.base.errors import InputError
from harness.cli import main
from harness.cli.output import Seeds, all_seeds
from harness.policies.user_file import from_user_file, users_mistakes

POLICY = """
from harness.policies.ltrf import Ltrf


class Mine(Ltrf):
    def plan(self, snapshot, ledger):
        return helper(snapshot)


def helper(snapshot):
    return {}["nothing"]
"""


def test_a_policy_that_raises_is_one_line_with_its_own_file_and_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mine = tmp_path / "mine.py"
    mine.write_text(POLICY)
    with pytest.raises(SystemExit) as caught:
        main(["allocate", "ltyarn-table-1", "--policy", f"{mine}:Mine"])
    (line,) = capsys.readouterr().err.splitlines()
    assert caught.value.code == 1
    assert line.startswith(f"yarnfair: {mine}:11: helper raises KeyError: 'nothing'; ")


@pytest.mark.parametrize(
    "call",
    [
        ("allocate", "ltyarn-table-1", "--policy", "mine.py:Mine"),
        ("run", "demo", "--policy", "mine.py:Mine@outside", "--out", "runs"),
        ("run", "demo", "--policy", "fair,./mine.py:Mine", "--out", "runs"),
    ],
)
def test_the_file_is_named_as_the_user_names_it(
    call: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A path from where the user stands, as the tutorials write it: it was a traceback of ours."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(POLICY)
    with pytest.raises(SystemExit) as caught:
        main(list(call))
    line = capsys.readouterr().err.splitlines()[-1]
    assert caught.value.code == 1
    assert line.startswith("yarnfair: mine.py:11: helper raises KeyError: 'nothing'; ")


KEYS = """
from harness.model.plan import Order, Plan
from harness.policies.base import Policy


class Mine(Policy):
    name = "mine"

    def plan(self, snapshot, ledger):
        return Plan(order=Order(measure="keys", flat=True))

"""
KEY = """    def key(self, queue, counted, snapshot):
        return {!s} if queue.leaf and counted > 3 else counted
"""


@pytest.mark.parametrize("call", [("allocate", "ltyarn-table-1"), ("run", "demo", "--out", "runs")])
@pytest.mark.parametrize(
    ("method", "said"),
    [
        (KEY.format("None"), ":12: policy mine: key() returns None for root."),
        (KEY.format("float('nan')"), ":12: policy mine: key() returns nan for root."),
        (KEY.format("'abc'"), ":12: policy mine: key() returns 'abc' for root."),
        (KEY.format("[1]"), ":12: policy mine: key() returns [1] for root."),
        ("", ":9: policy mine answers Order(measure='keys') but defines neither key() nor keys()"),
        (
            "    def keys(self, snapshot, ledger):\n        pass\n",
            ":12: policy mine: keys() returns None, not a map",
        ),
        (
            "    def keys(self, snapshot, ledger):\n        return dict.fromkeys(snapshot.queues)\n",
            ":12: policy mine: keys() returns None for root.",
        ),
    ],
)
def test_a_key_that_is_no_number_is_one_line_with_file_queue_and_answer(
    call: tuple[str, ...],
    method: str,
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """None and NaN meant "last" in silence, so that the queue starved; the others were tracebacks."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(KEYS + method)
    with pytest.raises(SystemExit) as caught:
        main([*call, "--policy", "mine.py:Mine"])
    line = capsys.readouterr().err.splitlines()[-1]
    assert caught.value.code == 1
    assert line.startswith(f"yarnfair: mine.py{said}")


def test_other_errors_stay_what_they_are(tmp_path: Path) -> None:
    mine = tmp_path / "mine.py"
    mine.write_text("from harness.base.errors import InputError\ndef f(error):\n    raise error\n")
    f = from_user_file(mine, "f", what="function", hint="mend it")
    with pytest.raises(InputError, match="as it was"), users_mistakes():
        f(InputError("as it was"))
    with pytest.raises(ZeroDivisionError), users_mistakes():
        _ = 1 / 0
    with pytest.raises(InputError, match="f raises ValueError: x") as caught, users_mistakes():
        f(ValueError("x"))
    assert caught.value.where == f"{mine}:3"


@pytest.mark.parametrize(("text", "seeds"), [("7", [7]), ("1-3", [1, 2, 3]), ("5-5", [5]), ("0", [0])])
def test_seeds_are_numbers_and_ranges(text: str, seeds: list[int]) -> None:
    assert Seeds().convert(text, None, None) == seeds


@pytest.mark.parametrize("text", ["", "x", "-1", "3-1", "1-", "1-2-3", "0-10000", str(2**63), "1.5"])
def test_what_is_no_seed_is_a_wrong_call(text: str) -> None:
    with pytest.raises(click.UsageError):
        Seeds().convert(text, None, None)


def test_an_option_given_twice_adds_up() -> None:
    option = click.Option(["--seed"])
    assert all_seeds(click.Context(click.Command("x")), option, ([1, 2], [9])) == (1, 2, 9)


PLAN = """
from harness.model.plan import Order, Plan
from harness.policies.base import Policy


class Mine(Policy):
    name = "mine"

    def plan(self, snapshot, ledger):
        leaves = [queue.name for queue in snapshot.queues.values() if queue.leaf]
        return {}
"""


@pytest.mark.parametrize(
    "call",
    [
        ("allocate", "ltyarn-table-1", "--policy", "mine.py:Mine"),
        ("run", "demo", "--out", "runs", "--policy", "mine.py:Mine"),
        ("run", "demo", "--out", "runs", "--policy", "mine.py:Mine@outside"),
    ],
)
@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ("None", "plan() returns None, which is not a Plan"),
        ("Plan(order='keys')", "its plan's order is 'keys', which is not an Order"),
        ("Plan(order=Order(measure='kyes'))", "Order(measure='kyes') is not one of stock, accumulated, arrival, keys"),
        ("Plan(weights={'root.nobody': 2.0})", "its plan names 'root.nobody', which is not a queue"),
        ("Plan(weights=dict.fromkeys(leaves, -1.0))", "is not within [0.001, 1e+06]"),
        ("Plan(weights=dict.fromkeys(leaves, float('nan')))", "weight nan of root."),
        ("Plan(weights=dict.fromkeys(leaves, 'two'))", "weight 'two' of root."),
        ("Plan(weights=dict.fromkeys(leaves, 10**400))", "weight 1000000"),
        ("Plan(weights=dict.fromkeys(leaves, 10**5000))", "weight an integer of 16,610 bits of root."),
        ("Plan(weights=dict.fromkeys(leaves, True))", "weight True of root."),
        ("Plan(weights=None)", "its plan's weights is None, which is not a mapping of queues' names"),
        ("Plan(min_shares=leaves)", "its plan's min_shares is ['root."),
        ("Plan(reasons='because')", "its plan's reasons is 'because', which is not a mapping"),
    ],
)
def test_a_plan_that_no_scheduler_could_follow_is_one_line(
    call: tuple[str, ...],
    answer: str,
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """None ran as the stock scheduler, a negative weight gave wrong shares, an unknown measure was a traceback."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(PLAN.format(answer))
    with pytest.raises(SystemExit) as caught:
        main(list(call))
    line = capsys.readouterr().err.splitlines()[-1]
    assert caught.value.code == 1
    assert line.startswith("yarnfair: mine.py:9: policy mine: ")
    assert said in line
