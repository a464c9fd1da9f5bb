"""The reserve of `ltrf` from outside: dues first, then queues that will pause, then the law over the horizon."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.base.errors import CallError
from harness.control.virtual import simulate_policy
from harness.experiments.resolve import Variant, jobs_of, load_experiment
from harness.experiments.simulated import setup_of
from harness.ledger import Ledger, Usage
from harness.model.plan import LedgerSettings
from harness.model.resources import Resource
from harness.model.snapshot import QueueView, Snapshot
from harness.policies import CountedLedger, make_policy
from harness.policies.filling import bounded_fill, water_fill
from harness.results.metrics import fairness_degree, last_loss_s

MB = 1024
HORIZONS = st.sampled_from([0.0, 1.0, 80.0, math.inf])


@st.composite
def bounded(draw: st.DrawFn) -> tuple[list[float], list[float], list[float], list[float], float]:
    n = draw(st.integers(1, 7))
    numbers = st.lists(st.floats(0, 1e3), min_size=n, max_size=n)
    used, one, other = draw(numbers), draw(numbers), draw(numbers)
    weights = draw(st.lists(st.floats(0.1, 10), min_size=n, max_size=n))
    least = [min(pair) for pair in zip(one, other, strict=True)]
    most = [max(pair) for pair in zip(one, other, strict=True)]
    amount = sum(least) + draw(st.floats(0, 1)) * (sum(most) - sum(least))
    return used, weights, least, most, amount


@settings(max_examples=150, deadline=None)
@given(bounded(), HORIZONS)
def test_bounded_filling_keeps_its_bounds_and_cannot_be_levelled_further(
    problem: tuple[list[float], list[float], list[float], list[float], float], horizon: float
) -> None:
    used, weights, least, most, amount = problem
    x = bounded_fill(used, weights, least, most, amount, horizon)
    assert sum(x) == pytest.approx(amount, rel=1e-6, abs=1e-6)
    assert all(low - 1e-9 <= v <= high + 1e-9 for v, low, high in zip(x, least, most, strict=True))
    if horizon in (0.0, math.inf):
        return
    level = [(u + horizon * v) / w for u, v, w in zip(used, x, weights, strict=True)]
    # Nobody who could give stands above somebody who could take.
    gives = [level[i] for i in range(len(x)) if x[i] > least[i] + 1e-6]
    takes = [level[i] for i in range(len(x)) if x[i] < most[i] - 1e-6]
    if gives and takes:
        assert max(gives) <= min(takes) + 1e-4


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.floats(0, 1e4), st.floats(0.1, 10)), min_size=1, max_size=6), HORIZONS)
def test_without_bounds_it_is_water_filling(rows: list[tuple[float, float]], horizon: float) -> None:
    used, weights = [row[0] for row in rows], [row[1] for row in rows]
    if horizon == 0 and len({u / w for u, w in rows}) < len(rows):
        return  # ties: the one gives all to the first, the other divides
    x = bounded_fill(used, weights, [0.0] * len(rows), [100.0] * len(rows), 100.0, horizon)
    assert x == pytest.approx(water_fill(used, weights, 100.0, horizon), rel=1e-6, abs=1e-6)


def look(rows: dict[str, tuple[int, int]], period_s: float = 1.0) -> Snapshot:
    """Leaves below root: (held, wanted besides) of 100 containers; tasks of 10 s."""
    held, wanted = sum(r[0] for r in rows.values()), sum(r[1] for r in rows.values())
    queues = {"root": QueueView("root", None, False, 1.0, Resource(held * MB, held), Resource((held + wanted) * MB, 0))}
    for name, (run, wait) in rows.items():
        queues[f"root.{name}"] = QueueView(
            f"root.{name}",
            "root",
            True,
            1.0,
            Resource(run * MB, run),
            Resource((run + wait) * MB, run + wait),
            pending_containers=wait,
            mean_task_s=10.0,
        )
    return Snapshot(100.0, Resource(100 * MB, 100), queues, period_s)


def ledger(used: dict[str, float], surplus: dict[str, float]) -> CountedLedger:
    """Container-seconds."""
    return CountedLedger(*({f"root.{k}": v * MB for k, v in part.items()} for part in (used, surplus)))


def weights(snapshot: Snapshot, accounts: CountedLedger, **sets: str) -> dict[str, float]:
    plan = make_policy("ltrf", {"reserve_s": "auto", **sets}).plan(snapshot, accounts)
    return {path.removeprefix("root."): weight for path, weight in plan.weights.items()}


FOUR = {"a": (40, 900), "b": (40, 900), "c": (10, 80), "d": (10, 80)}


def test_what_was_due_comes_before_what_is_owed() -> None:
    # c and d have used alike, but c has lost 100 container-seconds of its due, and d has got 600 more than its own.
    accounts = ledger({"a": 9e3, "b": 9e3, "c": 3e3, "d": 3e3}, {"a": 4e3, "b": 4e3, "c": -100, "d": 600})
    got = weights(look(FOUR), accounts)
    assert got["c"] > got["d"] > got["a"] == got["b"]
    same = weights(look(FOUR), accounts, reserve_s="0")
    assert same["c"] == same["d"]


def test_who_will_pause_is_filled_up_first_and_a_long_backlog_needs_no_reserve() -> None:
    # a and b have work for long, and have not lost. c asks for less than d.
    rows = {"a": (25, 900), "b": (25, 900), "c": (25, 15), "d": (25, 30)}
    safe = {"a": 100.0, "b": 100.0, "c": 10.0, "d": 10.0}
    got = weights(look(rows), ledger(dict.fromkeys("abcd", 500.0), safe))
    # Only had they lost would a share of 25 be due to a and b.
    # c has the 40 that it asks for. Of the 60 left d has its share and, in 15 s, what is missing of a
    # reserve of 14 s of it (a task of 10 s, four periods of 1 s); a and b have the rest.
    filled = 25 + (14 * 25 - 10) / 15
    assert got["c"] / got["d"] >= 40 / filled
    assert got["d"] / got["a"] == pytest.approx(2 * filled / (60 - filled), rel=0.01)
    assert got["a"] == got["b"]
    lost = weights(look(rows), ledger(dict.fromkeys("abcd", 500.0), safe | {"a": -1.0}))
    # a has its share of 25, c its 40, d what is left.
    assert lost["a"] / lost["d"] == pytest.approx(25 / 35, abs=0.01)
    assert lost["c"] / lost["a"] >= 40 / 25


def test_the_weight_of_a_stages_last_tasks_is_not_that_of_the_next_stage() -> None:
    # c waits for the last three of 25 tasks. Whatever comes within the period is to find more than their weight.
    rows = {"a": (25, 900), "b": (25, 900), "c": (22, 3), "d": (20, 90)}
    safe = {"a": 100.0, "b": 100.0, "c": 10.0, "d": 10.0}
    got = weights(look(rows, period_s=15.0), ledger(dict.fromkeys("abcd", 500.0), safe))
    assert got["c"] / sum(got.values()) > 0.5


def test_an_idle_queue_without_a_reserve_comes_first_when_its_burst_comes() -> None:
    rows = {"a": (50, 900), "b": (50, 900), "c": (0, 0), "d": (0, 0)}
    accounts = ledger(dict.fromkeys("abcd", 5e3), {"a": 4e3, "b": 4e3, "c": 0, "d": 4e3})
    got = weights(look(rows), accounts)
    assert got["c"] > 0.9 * (got["a"] + got["b"])
    assert got["c"] > 1.5 * got["d"]


def test_without_counted_dues_it_is_the_law_over_the_horizon() -> None:
    accounts = ledger({"a": 9e3, "b": 8e3, "c": 3e3, "d": 3e3}, {})
    assert weights(look(FOUR), accounts) == weights(look(FOUR), accounts, reserve_s="0")


def test_looks_too_far_apart_for_dues_leave_the_law_as_it_is() -> None:
    accounts = ledger({"a": 9e3, "b": 9e3, "c": 3e3, "d": 3e3}, {"a": 4e3, "b": 4e3, "c": -1e3, "d": 600})
    # Tasks of 10 s: in effect up to a period of 20 s.
    assert weights(look(FOUR, period_s=20.0), accounts) != weights(look(FOUR, period_s=20.0), accounts, reserve_s="0")
    far = look(FOUR, period_s=20.5)
    assert weights(far, accounts) == weights(far, accounts, reserve_s="0")
    assert weights(far, accounts, reserve_s="10") != weights(far, accounts, reserve_s="0")


def test_the_ledger_counts_dues_only_where_they_are_asked_for() -> None:
    assert not make_policy("ltrf").plan(look(FOUR), CountedLedger()).order.ledger.count_due
    assert make_policy("ltrf", {"reserve_s": "30"}).plan(look(FOUR), CountedLedger()).order.ledger.count_due
    with pytest.raises(CallError, match="sliding window"):
        make_policy("ltrf", {"reserve_s": "auto", "window": "60"}).plan(look(FOUR), CountedLedger())


def test_surplus_is_what_was_got_beyond_the_due() -> None:
    kept = Ledger(LedgerSettings(count_due=True), {"a": 1.0, "b": 1.0}, Resource(100, 10))
    kept.observe(10.0, {"a": Usage(700.0, 0.0)}, due={"a": 500.0, "b": 200.0})
    assert kept.surplus() == {"a": 200.0, "b": -200.0}
    again = Ledger.restored(kept.state(), kept.settings)
    assert again.surplus() == kept.surplus()
    # A round begins anew at 15 s: of the interval from 10 to 20 s the second half counts.
    rounds = Ledger(LedgerSettings(count_due=True, round_s=15.0), {"a": 1.0, "b": 1.0}, Resource(100, 10))
    rounds.observe(10.0, {"a": Usage(700.0, 0.0)}, due={"a": 500.0, "b": 200.0})
    rounds.observe(20.0, {"a": Usage(0.0, 0.0)}, due={"a": 500.0, "b": 0.0})
    assert rounds.surplus() == {"a": -250.0, "b": 0.0}


def test_an_account_from_before_dues_were_counted_goes_on() -> None:
    state = Ledger(LedgerSettings(), {"a": 1.0}, Resource(100, 10)).state()
    state["accounts"] = {"a": state["accounts"]["a"][:6]}
    assert Ledger.restored(state, LedgerSettings(count_due=True)).surplus() == {"a": 0.0}


def last_losses(reserve_s: str, leaf: str) -> float:
    experiment = load_experiment("outside")
    variant = Variant("x", "ltrf", "outside", {"reserve_s": reserve_s}, 12, 1.0)
    setup = setup_of(experiment, variant, list(jobs_of(experiment, 12)[0]))
    samples = simulate_policy(replace(setup, time_limit_s=200.0)).samples
    column = samples.queues.index(leaf)
    rho = fairness_degree(samples.accumulated[:, column], samples.due[:, column])
    return last_loss_s(samples.time_s, rho - 1.0)


def test_with_a_reserve_a_queue_that_pauses_loses_no_more_after_the_start() -> None:
    # TPC-H's second query begins at about 160 s, when nothing is free.
    assert last_losses("0", "root.TPC-H") > 100
    assert last_losses("auto", "root.TPC-H") < 20
