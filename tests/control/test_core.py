"""The control core, fed with events: the actions are compared, nothing is carried out."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from harness.control.core import ControlCore
from harness.control.events import (
    Actuated,
    ObservationFailed,
    Observe,
    Observed,
    RaiseAlarm,
    ReadBack,
    Record,
    Refresh,
    Shown,
    Tick,
    Write,
)
from harness.ledger import Usage
from harness.model.plan import Attributes, LedgerSettings, Order, Plan
from harness.model.resources import Resource
from harness.model.snapshot import QueueView, Snapshot
from harness.policies import LedgerView, Policy, make_policy

MB = 1024


def observed(time_s: float, a_mb_s: float = 0.0, b_mb_s: float = 0.0, **a_fields: Any) -> Observed:
    queues = {"root": QueueView("root", None, False)}
    for name, fields in (("a", a_fields), ("b", {})):
        path = f"root.{name}"
        queues[path] = QueueView(path, "root", True, **fields)
    snapshot = Snapshot(time_s, Resource(100 * MB, 100), queues)
    return Observed(snapshot, {"root.a": Usage(a_mb_s, 0.0), "root.b": Usage(b_mb_s, 0.0)})


def core(policy: str = "ltrf", sets: Mapping[str, str] | None = None, **options: Any) -> ControlCore:
    return ControlCore(make_policy(policy, sets), period_s=1.0, **{"start_s": 0.0, **options})


def written(actions: list[Any]) -> Mapping[str, float]:
    return next(action for action in actions if isinstance(action, Write)).attributes.weights


def test_a_decision_is_written_refreshed_and_recorded_in_this_order() -> None:
    actions = core().handle(observed(1.0))
    assert [type(action) for action in actions] == [Write, Refresh, Record]
    assert written(actions) == {"root.a": 500.0, "root.b": 500.0}
    record = actions[2]
    assert isinstance(record, Record)
    assert record.changed == ("root.a", "root.b")


def test_nothing_is_written_when_nothing_would_change() -> None:
    loop = core()
    loop.handle(observed(1.0))
    assert loop.handle(observed(2.0)) == []
    # A thousandth of a container-second moves no weight across the grid.
    assert loop.handle(observed(3.0, a_mb_s=1.0)) == []


def test_usage_moves_the_weights_by_the_law() -> None:
    loop = core(sets={"horizon_s": "10"})
    loop.handle(observed(1.0))
    weights = written(loop.handle(observed(2.0, a_mb_s=200 * MB)))
    assert weights["root.a"] / weights["root.b"] == pytest.approx(40 / 60, rel=1e-3)


def test_counters_are_differences_so_a_missed_look_loses_nothing() -> None:
    often, seldom = core(sets={"discount": "1"}), core(sets={"discount": "1"})
    for time in range(1, 11):
        often.handle(observed(float(time), a_mb_s=time * 300.0))
    seldom.handle(observed(1.0, a_mb_s=300.0))
    seldom.handle(observed(10.0, a_mb_s=3000.0))
    assert often.ledger is not None
    assert seldom.ledger is not None
    assert often.ledger.counted() == pytest.approx(seldom.ledger.counted())
    assert often.ledger.counted()["root.a"] == 3000.0


def test_a_counter_that_shrinks_counts_nothing_twice() -> None:
    loop = core()
    loop.handle(observed(1.0, a_mb_s=1000.0))
    loop.handle(observed(2.0, a_mb_s=100.0))  # the RM forgot a finished application
    loop.handle(observed(3.0, a_mb_s=150.0))
    assert loop.ledger is not None
    assert loop.ledger.counted()["root.a"] == 1050.0


DECAYS: list[tuple[str, dict[str, str]]] = [
    ("decay-htcondor", {}),
    ("decay-slurm", {}),
    ("decay-kueue", {}),
    ("decay-kai", {}),
    ("decay-kai", {"window": "86400", "window_type": "tumbling"}),
    ("decay-kai", {"window": "inf"}),
    ("decay-kai", {"half_life": "3600"}),
]


@pytest.mark.parametrize(("policy", "sets"), DECAYS)
def test_memory_begins_with_the_ledger_and_not_in_1970(policy: str, sets: dict[str, str]) -> None:
    """The same hours at the simulator's times and at a real controller's give the same weights."""
    found = []
    for start_s in (0.0, 1.8e9):
        loop = core(policy, {"resource": "vcores", **sets}, start_s=None)
        used = 0.0
        weights: Mapping[str, float] = {}
        for hour in range(4):
            look = observed(start_s + 3600.0 * hour, pending_containers=1, demand=Resource(MB, 1))
            look = replace(look, consumed={"root.a": Usage(0.0, used * 90), "root.b": Usage(0.0, used * 10)})
            weights = next((a.attributes.weights for a in loop.handle(look) if isinstance(a, Write)), weights)
            used += 3600.0
        found.append(weights)
    assert found[0] == pytest.approx(found[1], rel=1e-4)
    assert found[0]["root.a"] < found[0]["root.b"]


def test_accounting_begins_at_the_first_look_without_a_start() -> None:
    loop = core(start_s=None)
    loop.handle(observed(1e9, a_mb_s=5e6))
    loop.handle(observed(1e9 + 1, a_mb_s=5e6 + 7))
    assert loop.ledger is not None
    assert loop.ledger.counted()["root.a"] == 7


def test_a_failed_write_is_repeated() -> None:
    loop = core()
    first = written(loop.handle(observed(1.0)))
    assert loop.handle(Actuated(1.1, ok=False, reason="connection refused")) == [
        RaiseAlarm("actuation", "connection refused")
    ]
    assert written(loop.handle(observed(2.0))) == first


def test_what_is_in_force_is_verified() -> None:
    loop = core(read_back=True)
    weights = written(loop.handle(observed(1.0)))
    assert loop.handle(Actuated(1.1)) == [ReadBack()]
    assert loop.handle(Shown(1.2, weights)) == []
    assert loop.handle(observed(2.0)) == []
    (alarm,) = loop.handle(Shown(2.2, {"root.a": 1.0, "root.b": 500.0}))
    assert alarm == RaiseAlarm("not-in-force", "root.a has 1.0 instead of 500")
    assert written(loop.handle(observed(3.0))) == weights


def test_writes_keep_their_distance_where_the_rm_polls() -> None:
    loop = core(sets={"horizon_s": "10"}, write_gap_s=15.0)
    loop.handle(observed(1.0))
    assert loop.handle(observed(8.0, a_mb_s=300 * MB)) == []
    assert loop.handle(observed(16.0, a_mb_s=300 * MB)) != []


def test_ticks_ask_for_a_look_and_complain_when_none_comes() -> None:
    loop = core()
    assert loop.handle(Tick(1.0)) == [Observe()]
    assert loop.handle(Tick(2.0)) == []
    late = loop.handle(Tick(4.0))
    assert [type(action) for action in late] == [RaiseAlarm, Observe]
    assert loop.handle(ObservationFailed(4.5, "timed out")) == [RaiseAlarm("observation", "timed out")]
    assert loop.handle(Tick(5.0)) == [Observe()]


def test_a_clock_that_goes_back_raises_an_alarm_and_changes_nothing() -> None:
    loop = core()
    loop.handle(observed(10.0))
    (alarm,) = loop.handle(observed(9.0, a_mb_s=100.0))
    assert isinstance(alarm, RaiseAlarm)
    assert alarm.kind == "observation"
    assert loop.handle(observed(11.0)) == []


class Wild(Policy):
    name = "wild"
    weight: Any = math.nan

    def plan(self, snapshot: Snapshot, ledger: LedgerView) -> Plan:
        if self.weight == "raise":
            raise ZeroDivisionError("division by zero")
        return Plan(order=Order(), weights={"root.a": self.weight})


@pytest.mark.parametrize("weight", [math.nan, math.inf, 0.0, -1.0, 1e7, 1e-4, "raise", "3"])
def test_no_wild_weight_is_ever_written(weight: Any) -> None:
    policy = Wild()
    policy.weight = 2.5
    loop = ControlCore(policy, period_s=1.0)
    assert written(loop.handle(observed(1.0))) == {"root.a": 2.5}
    policy.weight = weight
    (alarm,) = loop.handle(observed(2.0))
    assert isinstance(alarm, RaiseAlarm)
    assert alarm.kind == "policy"
    policy.weight = 2.5
    assert loop.handle(observed(3.0)) == []


class Failing(Wild):
    """Counts with a half-life; `fault` is what its plan raises or answers."""

    weight = 2.5
    fault: Any = None

    def plan(self, snapshot: Snapshot, ledger: LedgerView) -> Plan:
        if isinstance(self.fault, Exception):
            raise self.fault
        if self.fault is not None:
            found: Plan = self.fault[0]
            return found
        ledger_settings = LedgerSettings(half_life_s=3600.0)
        return Plan(order=Order(ledger=ledger_settings), weights={"root.a": self.weight})


FAULTS = [KeyError("root.b"), TypeError("no"), ValueError("x"), ZeroDivisionError("division by zero"), (None,), (3,)]
FAULTS += [(Plan(order=Order(ledger=None), weights={"root.a": 1.0}),)]  # type: ignore[arg-type]
FAULTS += [(Plan(order=Order(ledger=LedgerSettings(half_life_s=-1.0)), weights={"root.a": 1.0}),)]


@pytest.mark.parametrize("fault", FAULTS)
def test_a_plan_that_fails_at_the_first_look_says_nothing_of_how_it_counts(fault: Any) -> None:
    policy = Failing()
    before = ControlCore(policy, period_s=1.0, remember=True)
    before.handle(observed(1.0))
    before.handle(observed(2.0, a_mb_s=1000.0))
    assert before.ledger is not None
    state, consumed = before.ledger.state(), dict(before.consumed())

    policy.fault = fault
    after = ControlCore(policy, period_s=1.0, remember=True)
    after.resume(state, consumed)
    for time in (3.0, 4.0):
        assert [action.kind for action in after.handle(observed(time, a_mb_s=1500.0)) if isinstance(action, RaiseAlarm)]
        assert after.ledger is None
    policy.fault = None
    actions = after.handle(observed(5.0, a_mb_s=1500.0))
    assert [type(action) for action in actions] == [Write, Refresh, Record]
    assert after.ledger is not None
    assert after.ledger.counted()["root.a"] == pytest.approx(1500.0, rel=1e-3)
    assert after.ledger.remember


@pytest.mark.parametrize("answer", [(None,), (3,), (Plan(weights=None),)])  # type: ignore[arg-type]
def test_a_plan_that_is_none_is_an_alarm(answer: Any) -> None:
    policy = Failing()
    loop = ControlCore(policy, period_s=1.0)
    loop.handle(observed(1.0))
    policy.fault = answer
    (alarm,) = loop.handle(observed(2.0))
    assert isinstance(alarm, RaiseAlarm)
    assert alarm.kind == "policy"


def test_accounts_that_do_not_fit_are_said_with_the_first_decision() -> None:
    before = core()
    before.handle(observed(1.0))
    before.handle(observed(2.0, a_mb_s=1000.0))
    assert before.ledger is not None
    after = core(sets={"resource": "vcores"}, start_s=None)
    after.resume(before.ledger.state(), before.consumed())
    alarm, *others = after.handle(observed(3.0, a_mb_s=1500.0))
    assert isinstance(alarm, RaiseAlarm)
    assert alarm.kind == "ledger"
    assert "counting begins anew" in alarm.text
    assert [type(action) for action in others] == [Write, Refresh, Record]
    assert after.ledger is not None
    assert after.ledger.counted()["root.a"] == 0


def test_weights_of_any_policy_become_float32() -> None:
    policy = Wild()
    policy.weight = 0.1
    assert written(ControlCore(policy, period_s=1.0).handle(observed(1.0))) == {"root.a": 0.10000000149011612}


def test_minimum_shares_go_back_when_a_leaf_has_been_served() -> None:
    loop = core("hltrf", {"t_wait": "5"})
    waiting = {
        "demand": Resource(10 * MB, 10),
        "pending_containers": 10,
        "backlog_since_s": 4.0,
        "mean_task_s": 5.0,
    }
    first = next(a for a in loop.handle(observed(10.0, **waiting)) if isinstance(a, Write))
    assert first.attributes.min_shares == {"root.a": Resource(2 * MB, 2)}
    actions = loop.handle(observed(11.0, **waiting, last_start_s=10.5))
    second = next(a for a in actions if isinstance(a, Write))
    assert second.attributes.min_shares == {}
    assert next(a for a in actions if isinstance(a, Record)).changed == ("root.a",)


def test_the_plan_s_other_attributes_are_owned_too() -> None:
    (write, *_) = core("static").handle(observed(1.0))
    assert isinstance(write, Write)
    assert write.attributes.max_shares == {"root.a": Resource(50 * MB, 50), "root.b": Resource(50 * MB, 50)}
    assert write.attributes != Attributes(write.attributes.weights)


@pytest.mark.parametrize("period", [0.0, -1.0, math.nan, math.inf])
def test_periods_are_above_zero(period: float) -> None:
    with pytest.raises(ValueError, match="period_s"):
        ControlCore(make_policy("fair"), period_s=period)
