"""A budget of killed work: how much is lost within an hour, and how far shares may move below what is in use."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client import generate_latest

from harness.base.errors import InputError
from harness.control.config import read_config
from harness.control.explain import document, explain
from harness.control.killed import WINDOW_S, KilledWork
from harness.control.preemption import within_use
from harness.control.telemetry import Metrics
from harness.control.view import from_ledger
from harness.ledger.store import read_documents
from harness.predict.features import CAPACITY_BASE
from harness.report.live import LivePage
from studies.preemption_budget import run
from tests.control.driven import controlled
from tests.control.rm_model import CapacityRmModel
from tests.control.soak import capacities
from tests.control.test_preemption import MONITOR, NOTHING, WHOLE, cluster, parts

HOUR = WINDOW_S


def test_losses_are_those_of_the_last_hour() -> None:
    killed = KilledWork(1000.0)
    killed.observe(0.0, {"old": 5000.0})
    assert killed.lost_mb_s(0.0) == 0.0, "nobody knows when it was lost"
    killed.observe(100.0, {"old": 5300.0, "new": 200.0})
    assert killed.lost_mb_s(100.0) == 500.0
    killed.observe(105.0, {"old": 5300.0, "new": 250.0})
    killed.observe(2000.0, {"new": 250.0})
    assert killed.lost_mb_s(2000.0) == 550.0, "an application that is not listed has lost nothing more"
    killed.observe(3000.0, {"old": 5400.0})
    assert killed.lost_mb_s(3000.0) == 650.0
    assert killed.lost_mb_s(100.0 + HOUR + 1) == 100.0
    killed.observe(9000.0, {"old": 40.0})
    assert killed.lost_mb_s(9000.0) == 0.0, "a counter that went back begins again"
    killed.observe(9005.0, {"old": 50.0})
    assert killed.lost_mb_s(9005.0) == 10.0


def test_what_was_lost_survives_a_restart_and_a_clock_that_was_set() -> None:
    killed = KilledWork(1000.0)
    killed.observe(0.0, {})
    killed.observe(10.0, {"a": 300.0})
    again = KilledWork(1000.0)
    again.restore(killed.document())
    again.shift(500.0)
    again.observe(520.0, {"a": 400.0, "b": 50.0})
    assert again.lost_mb_s(520.0) == 450.0
    for wrong in (None, {}, {"losses": 3, "seen": {}}, {"losses": [[1]], "seen": None}, {"losses": [], "seen": 7}):
        fresh = KilledWork(1.0)
        fresh.restore(wrong)
        fresh.observe(0.0, {"a": 9.0})
        assert fresh.lost_mb_s(0.0) == 0.0


def test_a_ledger_that_begins_does_not_take_the_budget_for_unspent() -> None:
    """A spare with a ledger of its own takes over: what was lost within the hour before, it does not know."""
    now_s = 10_000.0
    loaded = cluster(("a", 1.0, 50, True), ("b", 1.0, 50, True), task_s=20.0)

    def spare(killed: KilledWork, at_s: float) -> float:
        return killed.spare(replace(loaded, time_s=at_s))

    killed = KilledWork(200 * 1024.0)
    killed.observe(now_s, {"a": 100 * 1024.0, "b": 50 * 1024.0}, rm_age_s=5 * HOUR)
    assert killed.lost_mb_s(now_s) == 0.0, "nobody knows when that was"
    assert spare(killed, now_s) == pytest.approx(0.025)
    again = KilledWork(200 * 1024.0)
    again.restore(json.loads(json.dumps(killed.document())))
    for one in (killed, again):
        assert spare(one, now_s + HOUR) == pytest.approx(0.025)
        assert spare(one, now_s + HOUR + 1) == pytest.approx(0.1)
    # The counters of an RM that began ten minutes ago do not show what was lost before.
    young = KilledWork(200 * 1024.0)
    young.observe(now_s, {}, rm_age_s=600.0)
    young.restore(json.loads(json.dumps(young.document())))
    young.shift(50.0)
    assert (spare(young, now_s + 50 + HOUR), spare(young, now_s + 51 + HOUR)) == (0.0, pytest.approx(0.1))
    young.observe(now_s + 100, {"c": 5.0}, rm_age_s=60.0)
    assert spare(young, now_s + 51 + HOUR) > 0, "its own counts go on over a restart of the RM"


def test_the_rest_of_the_budget_is_a_part_of_the_cluster() -> None:
    """Tasks of 20 s: killing 10 of 100 GiB loses at most 10 * 20 GiB·s."""
    snapshot = cluster(("a", 1.0, 50, True), ("b", 1.0, 50, True), task_s=20.0)
    killed = KilledWork(200 * 1024.0)
    assert killed.spare(snapshot) == pytest.approx(0.1)
    killed.count(0.0, 150 * 1024.0)
    assert killed.spare(snapshot) == pytest.approx(0.025)
    killed.count(0.0, 50 * 1024.0)
    assert killed.spare(snapshot) == 0.0
    assert killed.spare(replace(snapshot, time_s=HOUR + 1)) == pytest.approx(0.1)
    unknown = cluster(("a", 1.0, 50, True), ("b", 1.0, 50, True))
    assert KilledWork(200 * 1024.0).spare(unknown) == pytest.approx(0.1 * 20 / 3600)
    assert KilledWork(0.0).spare(snapshot) == 0.0
    assert KilledWork(1e15).spare(snapshot) == 1.0


@pytest.mark.parametrize("task_s", [0.0, 4e-8])
def test_a_mean_below_a_period_does_not_let_go_of_the_whole_cluster(task_s: float) -> None:
    """Looks do not show how long such tasks hold their containers; a kill would have cost nothing."""
    short = cluster(("a", 1.0, 50, True), ("b", 1.0, 50, True), task_s=task_s)
    assert KilledWork(50 * 1024.0).spare(replace(short, period_s=5.0)) == pytest.approx(0.1)


def test_shares_move_below_what_is_in_use_as_far_as_the_budget_allows() -> None:
    snapshot = cluster(("a", 1.0, 50, True), ("b", 1.0, 30, True), ("c", 1.0, 20, True))
    plan = {"root.a": 1.0, "root.b": 1e-3, "root.c": 1.0}
    low = parts(within_use(plan, snapshot, NOTHING))["b"]
    assert low == pytest.approx(30 / 1.09, abs=0.1)
    assert parts(within_use(plan, snapshot, NOTHING, None, 0.1))["b"] == pytest.approx(20.0, abs=0.1)
    assert parts(within_use(plan, snapshot, NOTHING, None, 0.105))["b"] == pytest.approx(20.0, abs=0.1), "whole ones"
    assert parts(within_use(plan, snapshot, NOTHING, None, 1.0))["b"] == pytest.approx(0.0, abs=0.1)


@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from([1e-2, 1.0, 1e3]),
            st.sampled_from([1.0, 2.0, 7.0]),
            st.integers(0, WHOLE // 6),
            st.booleans(),
        ),
        min_size=2,
        max_size=6,
    ),
    st.floats(0.0, 0.2),
)
def test_no_more_is_exposed_than_the_budget_allows(leaves: list[tuple[float, float, int, bool]], spare: float) -> None:
    """Beside what the bounds without a budget expose, which is nothing that preemption does not ignore."""
    snapshot = cluster(*[(f"q{n}", weight, used, waits) for n, (_, weight, used, waits) in enumerate(leaves)])
    plan = {f"root.q{n}": planned for n, (planned, _, _, _) in enumerate(leaves)}
    total = sum(leaf[1] for leaf in leaves)

    def exposed(given: dict[str, float]) -> float:
        whole = sum(given.values())
        return sum(
            max(min(used / WHOLE, weight / total) - given[f"root.q{n}"] / whole - 0.1 * used / WHOLE, 0.0)
            for n, (_, weight, used, _) in enumerate(leaves)
        )

    assert exposed(within_use(plan, snapshot, NOTHING, None, spare)) <= spare + 1e-3
    assert exposed(within_use(plan, snapshot, NOTHING)) <= 1e-3


def preempting() -> CapacityRmModel:
    rm = CapacityRmModel(capacities.stored(dict(CAPACITY_BASE.values)))
    conf = {**CAPACITY_BASE.site, MONITOR: "true"}
    rm.rest.properties = lambda **_: dict(conf)
    return rm


def test_the_controller_counts_what_applications_have_lost(tmp_path: Path) -> None:
    rm = preempting()
    rm.submit("x", "root.a")
    budget: dict[str, Any] = {"preemption_budget_mb_s": 1024.0 * 1000}
    with controlled(rm, tmp_path, **budget) as controller:
        controller.tick()
        rm.preempted["x"] = 1024 * 600
        rm.now_s += 5
        report = controller.tick()
        assert report.preempted_mb_s == 1024 * 600
        metrics = Metrics()
        metrics(report)
        assert b"yarnfair_preempted_mib_seconds 614400.0" in generate_latest(metrics.registry)
    view = from_ledger(tmp_path / "ledger.db", rm.now_s)
    assert view.killed_mb_s == (1024.0 * 1000, 1024.0 * 600)
    line = "Preemption has killed work of 600.0 GiB·s within the last hour, of a budget of 1,000.0 GiB·s: shares may "
    assert f"{line}move below what queues use." in explain(view, "root.a")
    assert document(view, "root.a")["preempted"] == {"budget_mb_s": 1024.0 * 1000, "lost_mb_s": 1024.0 * 600}
    page = LivePage(lambda: view, 5.0)
    page.look()
    assert page.document({})["killed"] == [f"{line}move below what queues use."]
    # Another process goes on counting.
    with controlled(rm, tmp_path, **budget) as controller:
        rm.preempted["x"] = 1024 * 1100
        rm.now_s += 5
        assert controller.tick().preempted_mb_s == 1024 * 1100
    assert "the whole budget (1,000.0 GiB·s)" in " ".join(explain(from_ledger(tmp_path / "ledger.db"), "root.a"))
    assert read_documents(tmp_path / "ledger.db", ["killed"])["killed"]["seen"] == {"x": 1024 * 1100}


@pytest.mark.parametrize("budget", [0.0, 1024.0 * 1000])
def test_the_note_says_what_the_budget_allows(tmp_path: Path, budget: float) -> None:
    """With a budget it said that hardly anything is killed for shares that stay near what queues use."""
    with controlled(preempting(), tmp_path, preemption_budget_mb_s=budget) as controller:
        (note,) = [alarm.text for alarm in controller.tick().alarms if "preemption" in alarm.text]
    assert ("hardly anything is killed" in note) == (budget == 0)
    allowed = (
        "these move below what queues use while it has killed work of less than 1,000.0 GiB·s within the last hour"
    )
    assert (allowed in note) == (budget > 0)
    assert note.startswith("preemption: preemption is on, and kills running containers by the shares: these ")


@pytest.mark.parametrize("budget", [0.0, 1024.0 * 1000])
@pytest.mark.parametrize(("period_s", "long"), [(5.0, False), (7.5, False), (8.0, True), (60.0, True)])
def test_a_period_too_long_for_the_bounds_is_said(tmp_path: Path, budget: float, period_s: float, long: bool) -> None:
    """Preemption kills 15 s after a queue grew; with 60 s between two looks it killed more, and nothing was said."""
    with controlled(preempting(), tmp_path, preemption_budget_mb_s=budget, period_s=period_s) as controller:
        (note,) = [alarm.text for alarm in controller.tick().alarms if "preemption" in alarm.text]
    said = (
        f"preemption kills after 15 s, and the controller looks only every {period_s:g} s, so that more may be killed"
    )
    assert (said in note) == long
    assert ("set period_s to 7.5 at most, or accept it" in note) == long
    assert ("hardly anything is killed" in note) == (budget == 0)


def test_a_budget_below_zero_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "enforce.yaml"
    for text, right in (("-1", False), (".inf", False), ("2.0e+6", True)):
        file.write_text(f"policy: ltrf\nallocation_file: f.xml\nledger: l.db\npreemption_budget_mb_s: {text}\n")
        if right:
            assert read_config(file).control_settings().preemption_budget_mb_s == 2e6
        else:
            with pytest.raises(InputError, match="preemption_budget_mb_s"):
                read_config(file)


def test_a_budget_pays_debts_that_would_stay_unpaid_and_kills_far_less_than_no_bound() -> None:
    """On 40 containers, where masters fill the shares: the loss integral and the killed containers of one seed."""
    steered, some, freely = (
        run(way, 1.0, 2, containers=40, budget_mb_s=budget)
        for way, budget in (("counted on 0.25", 0.0), ("counted on 0.25", 1e12), ("freely", 0.0))
    )
    assert some["loss"] < 0.5 * steered["loss"]
    assert some["containers"] < 0.5 * freely["containers"]
