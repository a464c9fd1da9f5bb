"""What each policy answers: its order, its attributes from outside, and that these are always fit to be written."""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.model.plan import WEIGHT_MAX, WEIGHT_MIN, Plan
from harness.model.resources import Resource
from harness.model.snapshot import QueueView, Snapshot
from harness.policies import POLICIES, CountedLedger, make_policy
from harness.policies.longterm import parts_over_horizon

MB = 1024


def snapshot(
    leaves: Mapping[str, Mapping[str, Any]],
    *,
    time_s: float = 100.0,
    capacity: int = 100,
    period_s: float = 1.0,
    weights: Mapping[str, float] | None = None,
) -> Snapshot:
    """``leaves``: path below root -> {"run": containers held, "wait": containers wanted, ...QueueView fields}."""
    rows: dict[str, QueueView] = {}
    names = {"root"}
    for leaf in leaves:
        parts = f"root.{leaf}".split(".")
        names.update(".".join(parts[:depth]) for depth in range(1, len(parts) + 1))
    for name in sorted(names, key=lambda path: (path.count("."), path)):
        short = name.removeprefix("root.")
        below = [f for leaf, f in leaves.items() if f"root.{leaf}" == name or f"root.{leaf}".startswith(name + ".")]
        run, wait = sum(f.get("run", 0) for f in below), sum(f.get("wait", 0) for f in below)
        extra = {k: v for k, v in leaves.get(short, {}).items() if k not in ("run", "wait")}
        if short in leaves and wait and "backlog_since_s" not in extra:
            extra["backlog_since_s"] = time_s
        rows[name] = QueueView(
            name=name,
            parent=name.rpartition(".")[0] or None,
            leaf=short in leaves,
            weight=(weights or {}).get(short, 1.0),
            allocated=Resource(run * MB, run),
            demand=Resource((run + wait) * MB, run + wait),
            pending_containers=wait if short in leaves else 0,
            **extra,
        )
    return Snapshot(time_s, Resource(capacity * MB, capacity), rows, period_s)


TWO = {"a": {"run": 50, "wait": 500}, "b": {"run": 50, "wait": 500}}
GROUPS = {
    "g1.a": {"run": 90, "wait": 500},
    "g1.b": {"run": 0, "wait": 500},
    "g2.c": {"run": 5, "wait": 500},
    "g2.d": {"run": 5, "wait": 500},
}


def used(**containers_s: float) -> CountedLedger:
    return CountedLedger({f"root.{name.replace('_', '.')}": amount * MB for name, amount in containers_s.items()})


# --- order: what runs in the scheduler and on paper ---


def test_orders() -> None:
    view = snapshot(TWO)
    orders = {name: make_policy(name).plan(view, used()).order for name in POLICIES}
    assert [orders[name].measure for name in ("static", "fair", "drf", "fifo")] == ["stock"] * 3 + ["arrival"]
    assert (orders["ltrf"].measure, orders["ltrf"].flat, orders["ltrf"].t_wait_s) == ("accumulated", True, None)
    assert (orders["naive-hltrf"].flat, orders["naive-hltrf"].t_wait_s) == (False, None)
    assert (orders["hltrf"].flat, orders["hltrf"].t_wait_s) == (False, 10.0)
    assert all(order.horizon_s == 0 for order in orders.values())


def test_t_wait_from_mean_task_length() -> None:
    """LTYARN eq. (7): T_wait = T_avg / N_task; tasks of 23.6 s and 12 of them running give 2 s (section 7.6)."""
    view = snapshot({"a": {"mean_task_s": 23.6}, "b": {}})
    policy = make_policy("hltrf", {"t_wait": "auto", "n_task": "11.8"})
    assert policy.plan(view, used()).order.t_wait_s == pytest.approx(2.0)


def test_ledger_settings_reach_the_order() -> None:
    policy = make_policy("ltrf", {"discount": "0.5", "round": "3600", "pseudo": "true", "quantum_s": "600"})
    ledger = policy.plan(snapshot(TWO), used()).order.ledger
    assert (ledger.discount, ledger.round_s, ledger.pseudo, ledger.quantum_s) == (0.5, 3600, True, 600)
    assert ledger.adaptive_quantum is False


# --- weights ---


def weights(plan: Plan, *names: str) -> list[float]:
    return [plan.weights[f"root.{name}"] for name in names]


def test_fair_writes_entitlements() -> None:
    plan = make_policy("fair").plan(snapshot(TWO, weights={"a": 2.5}), used())
    assert weights(plan, "a", "b") == [2.5, 1.0]


def test_drf_sets_the_scheduling_policy_everywhere() -> None:
    plan = make_policy("drf").plan(snapshot(GROUPS), used())
    assert set(plan.scheduling_policies) == set(snapshot(GROUPS).queues)
    assert set(plan.scheduling_policies.values()) == {"drf"}


def test_static_divides_the_cluster_without_remainder() -> None:
    view = snapshot({"a": {}, "b": {}, "c": {}}, capacity=100)
    plan = make_policy("static").plan(view, used())
    caps = [plan.max_shares[f"root.{name}"] for name in "abc"]
    assert sum(cap.memory_mb for cap in caps) == 100 * MB
    assert [cap.vcores for cap in caps] == [34, 33, 33]


def test_static_in_a_tree_level_by_level() -> None:
    plan = make_policy("static").plan(snapshot(GROUPS, weights={"g1": 3.0}), used())
    assert plan.max_shares["root.g1.a"].vcores == 38  # 37.5; ties of remainders by name
    assert plan.max_shares["root.g2.c"].vcores == 12
    assert sum(cap.vcores for cap in plan.max_shares.values()) == 100


def test_static_breaks_ties_by_name_at_each_level() -> None:
    # As whole paths root.a-b comes before root.a.c.
    plan = make_policy("static").plan(snapshot({"a.c": {}, "a-b": {}}, capacity=101), used())
    assert (plan.max_shares["root.a.c"].vcores, plan.max_shares["root.a-b"].vcores) == (51, 50)


def test_static_leaves_every_queue_room_for_a_small_container() -> None:
    """The ResourceManager refuses every application of a queue whose maximum share is 0."""
    view = snapshot({f"q{at:03}": {} for at in range(200)}, capacity=118)
    caps = make_policy("static").plan(view, used()).max_shares.values()
    assert set(caps) == {Resource(MB, 1)}
    # Before any node has registered nobody knows what to divide.
    assert not make_policy("static").plan(replace(view, capacity=Resource(0, 0)), used()).max_shares


def test_static_stays_within_the_administrators_maximum() -> None:
    view = snapshot({"a": {"max_share": Resource(10 * MB, 90)}, "b": {}})
    caps = make_policy("static").plan(view, used()).max_shares
    assert caps == {"root.a": Resource(10 * MB, 50), "root.b": Resource(50 * MB, 50)}


def test_fifo_ranks_by_the_oldest_application() -> None:
    view = snapshot({"a": {"oldest_pending_app_s": 9.0}, "b": {"oldest_pending_app_s": 3.0}, "c": {}})
    a, b, c = weights(make_policy("fifo").plan(view, used()), "a", "b", "c")
    assert b == WEIGHT_MAX
    assert b / a == 1000
    assert c == pytest.approx(WEIGHT_MIN, rel=1e-3)


def test_ltrf_weights_follow_the_water_level() -> None:
    # Over a horizon of 10 s 100 containers can move 1000 container-seconds: b is 200 behind, and gets 60 of 100.
    plan = make_policy("ltrf", {"horizon_s": "10"}).plan(snapshot(TWO), used(a=700, b=500))
    a, b = weights(plan, "a", "b")
    assert a / b == pytest.approx(40 / 60, rel=1e-3)


def test_a_debtor_beyond_the_horizon_has_the_smallest_weight() -> None:
    a, b = weights(make_policy("ltrf", {"horizon_s": "10"}).plan(snapshot(TWO), used(a=9000, b=500)), "a", "b")
    assert a == pytest.approx(WEIGHT_MIN, rel=1e-3)
    assert b == 1000


def test_horizon_follows_the_task_length_and_the_period() -> None:
    quick = snapshot({"a": {"mean_task_s": 5.0}, "b": {}}, period_s=1.0)
    slow = replace(quick, period_s=60.0)
    ledger = used(a=2000, b=0)
    given = make_policy("ltrf", {"horizon_s": "20"}).plan(quick, ledger).weights
    assert make_policy("ltrf").plan(quick, ledger).weights == given
    given = make_policy("ltrf", {"horizon_s": "60"}).plan(slow, ledger).weights
    assert make_policy("ltrf").plan(slow, ledger).weights == given


def test_level_by_level_against_flat() -> None:
    """g1 owes because of a; b has used nothing. By level b waits with its group, flat it gets the most."""
    view, ledger = snapshot(GROUPS), used(g1_a=9000, g1_b=0, g2_c=100, g2_d=100)
    sets = {"horizon_s": "10", "t_wait": "inf"}
    level = make_policy("hltrf", {**sets, "affinity": "1"}).plan(view, ledger)
    flat = make_policy("hltrf", {**sets, "affinity": "0"}).plan(view, ledger)
    assert level.weights == make_policy("naive-hltrf", {"horizon_s": "10"}).plan(view, ledger).weights
    assert flat.weights == make_policy("ltrf", {"horizon_s": "10"}).plan(view, ledger).weights
    g1, g2 = weights(level, "g1", "g2")
    assert g1 / g2 < 1e-5
    g1, g2 = weights(flat, "g1", "g2")
    # Flat: the 1200 container-seconds that b, c and d reach together put b at 400 and c, d at 300 each.
    assert g1 / g2 == pytest.approx(400 / 600, rel=1e-3)


def test_an_idle_creditor_does_not_hide_the_others_debts() -> None:
    """c is owed more than the horizon can pay, and idle. Of a and b, who wait, b is owed too: it must not be filled as
    if c took everything. When c's burst comes before the next tick, c comes first."""
    leaves = {"a": {"run": 50, "wait": 500}, "b": {"run": 50, "wait": 500}, "c": {"run": 0, "wait": 0}}
    plan = make_policy("ltrf", {"horizon_s": "10"}).plan(snapshot(leaves), used(a=9000, b=7000, c=0))
    a, b, c = weights(plan, "a", "b", "c")
    assert b / a > 1e5
    assert c / b == 100


def test_a_small_demand_is_met_and_the_rest_divided() -> None:
    """c wants 20 containers, less than it is owed; a and b divide the other 80, of which 10 s pay 800 back."""
    leaves = {"a": {"run": 50, "wait": 500}, "b": {"run": 49, "wait": 500}, "c": {"run": 1, "wait": 19}}
    plan = make_policy("ltrf", {"horizon_s": "10"}).plan(snapshot(leaves), used(a=7200, b=7000, c=0))
    a, b, c = weights(plan, "a", "b", "c")
    assert a / b == pytest.approx(30 / 50, rel=1e-3)
    assert c == pytest.approx(100 * (a + b), rel=1e-3)


def test_affinity_lies_between() -> None:
    view, ledger = snapshot(GROUPS), used(g1_a=9000, g2_c=100, g2_d=100)
    ratios = []
    for affinity in ("0", "0.25", "0.5", "0.75", "1"):
        policy = make_policy("hltrf", {"horizon_s": "10", "t_wait": "inf", "affinity": affinity})
        g1, g2 = weights(policy.plan(view, ledger), "g1", "g2")
        ratios.append(g1 / (g1 + g2))
    assert ratios == sorted(ratios, reverse=True)
    assert ratios[2] == pytest.approx((ratios[0] + ratios[4]) / 2, rel=1e-2)


# --- lifting starved paths ---

WAITING = {
    "g1.a": {"run": 60, "wait": 40, "last_start_s": 99.0, "backlog_since_s": 0.0, "mean_task_s": 20.0},
    "g1.b": {"run": 2, "wait": 30, "last_start_s": 93.0, "backlog_since_s": 10.0},
    "g2.c": {"run": 30, "wait": 10, "last_start_s": 99.5, "backlog_since_s": 50.0},
    "g2.d": {"run": 8, "wait": 0},
}
OWED = {"g1_a": 9000.0, "g1_b": 10.0, "g2_c": 900.0, "g2_d": 800.0}


def test_a_starved_path_gets_minimum_shares_up_to_n_task() -> None:
    """b waits for 7 s and is the poorest: eq. (7) gives it T_avg / T_wait = 4 running containers, it holds 2."""
    plan = make_policy("hltrf", {"t_wait": "5"}).plan(snapshot(WAITING), used(**OWED))
    assert plan.min_shares == {"root.g1": Resource(64 * MB, 64), "root.g1.b": Resource(4 * MB, 4)}
    assert "waited 7.0 s" in plan.reasons["root.g1.b"]


def test_a_starved_debtor_gets_one_container_more() -> None:
    late = {name: {**WAITING[name], "last_start_s": 80.0} for name in ("g1.a", "g1.b")}
    waiting = {**WAITING, **late}
    plan = make_policy("hltrf", {"t_wait": "15"}).plan(snapshot(waiting), used(**OWED))
    assert plan.min_shares["root.g1.a"] == Resource(61 * MB, 61)
    assert plan.min_shares["root.g1.b"] == Resource(3 * MB, 3)
    assert plan.min_shares["root.g1"] == Resource(64 * MB, 64)


def test_who_holds_nothing_begins_with_an_am() -> None:
    """Half of the fair share may be AMs: a minimum of one container would start none."""
    waiting = {**WAITING, "g1.b": {"run": 0, "wait": 1, "backlog_since_s": 93.0}}
    plan = make_policy("hltrf", {"t_wait": "7"}).plan(snapshot(waiting), used(**{**OWED, "g1_b": 90_000.0}))
    assert plan.min_shares["root.g1.b"] == Resource(2 * MB, 2)


def test_who_was_lifted_in_vain_gets_room_for_one_more_am() -> None:
    waiting = {**WAITING, "g1.b": {**WAITING["g1.b"], "last_start_s": 50.0}}
    plan = make_policy("hltrf", {"t_wait": "20"}).plan(snapshot(waiting), used(**OWED))
    assert plan.min_shares["root.g1.b"] == Resource((2 + 2 + 2) * MB, 2 + 2 + 2)


def test_nobody_is_lifted_who_does_not_wait() -> None:
    served = {name: {**figures, "last_start_s": 99.0} for name, figures in WAITING.items()}
    plan = make_policy("hltrf", {"t_wait": "5"}).plan(snapshot(served), used(**OWED))
    assert not plan.min_shares
    assert not plan.reasons
    assert not make_policy("hltrf", {"t_wait": "inf"}).plan(snapshot(WAITING), used(**OWED)).min_shares


def test_the_administrator_s_minimum_is_not_lowered() -> None:
    waiting = {**WAITING, "g1.b": {**WAITING["g1.b"], "min_share": Resource(50 * MB, 1)}}
    plan = make_policy("hltrf", {"t_wait": "5"}).plan(snapshot(waiting), used(**OWED))
    assert plan.min_shares["root.g1.b"] == Resource(50 * MB, 4)


def limited(leaves: Mapping[str, Mapping[str, Any]], **most: Resource) -> Snapshot:
    """With maximum shares, and demand cut to them as a ResourceManager does."""
    view = snapshot(leaves)
    queues = dict(view.queues)
    for name, limit in most.items():
        path = f"root.{name.replace('_', '.')}"
        demand = queues[path].demand
        cut = Resource(min(demand.memory_mb, limit.memory_mb), min(demand.vcores, limit.vcores))
        queues[path] = replace(queues[path], max_share=limit, demand=cut)
    return replace(view, queues=queues)


@pytest.mark.parametrize("lift", ["min_share", "weight"])
@pytest.mark.parametrize("most", [Resource(2 * MB, 2), Resource(2 * MB + 200, 100), Resource(100 * MB, 2)])
def test_who_holds_its_maximum_is_not_starved(most: Resource, lift: str) -> None:
    waiting = {**WAITING, "g1.b": {**WAITING["g1.b"], "last_start_s": 50.0}}
    plan = make_policy("hltrf", {"t_wait": "5", "lift": lift}).plan(limited(waiting, g1_b=most), used(**OWED))
    assert not plan.min_shares
    assert not plan.reasons


def test_no_minimum_share_lifts_a_maximum() -> None:
    """g1 holds 62 of its 63 containers, b 2 of the 4 that it may hold; in vain it would be lifted to 6."""
    waiting = {**WAITING, "g1.b": {**WAITING["g1.b"], "last_start_s": 50.0}}
    view = limited(waiting, g1=Resource(63 * MB, 63), g1_b=Resource(4 * MB, 4))
    plan = make_policy("hltrf", {"t_wait": "20"}).plan(view, used(**OWED))
    assert plan.min_shares == {"root.g1": Resource(63 * MB, 63), "root.g1.b": Resource(4 * MB, 4)}
    # Its parent is full of what its sibling holds: its turn comes when one of those ends.
    view = limited(waiting, g1=Resource(62 * MB, 62))
    plan = make_policy("hltrf", {"t_wait": "20"}).plan(view, used(**OWED))
    assert plan.min_shares == {"root.g1": Resource(62 * MB, 62), "root.g1.b": Resource(6 * MB, 6)}


def test_lifting_by_weight_puts_the_path_first_at_every_level() -> None:
    view = snapshot(WAITING)
    plan = make_policy("hltrf", {"t_wait": "5", "lift": "weight"}).plan(view, used(**OWED))
    assert not plan.min_shares
    key = {name: view.queues[name].allocated.memory_mb / weight for name, weight in plan.weights.items()}
    assert key["root.g1"] < key["root.g2"]
    assert key["root.g1.b"] < key["root.g1.a"]


# --- whatever comes in, what goes out can be written ---

HOSTILE = st.one_of(st.floats(allow_nan=True, allow_infinity=True), st.floats(0, 1e15), st.integers(0, 10**12))


@settings(max_examples=150, deadline=None)
@given(
    counted=st.dictionaries(st.sampled_from(["root.g1.a", "root.g1.b", "root.g2.c", "root.nobody"]), HOSTILE),
    run=st.lists(st.integers(0, 10**9), min_size=4, max_size=4),
    wait=st.lists(st.integers(0, 10**6), min_size=4, max_size=4),
    capacity=st.integers(0, 10**9),
    mean=st.one_of(st.none(), st.floats(allow_nan=True, allow_infinity=True)),
    entitlement=st.floats(1e-9, 1e12),
    sets=st.sampled_from([{}, {"t_wait": "0", "lift": "weight"}, {"t_wait": "5", "lift": "weight", "affinity": "0.5"}]),
    name=st.sampled_from(sorted(POLICIES)),
)
def test_weights_are_finite_in_range_and_exact_in_float32(
    counted: dict[str, float],
    run: list[int],
    wait: list[int],
    capacity: int,
    mean: float | None,
    entitlement: float,
    sets: dict[str, str],
    name: str,
) -> None:
    leaves = {
        leaf: {"run": held, "wait": wanted, "mean_task_s": mean, "last_start_s": 20.0, "backlog_since_s": 0.0}
        for leaf, held, wanted in zip(GROUPS, run, wait, strict=True)
    }
    view = snapshot(leaves, capacity=capacity, weights={"g1": entitlement, "g2.c": entitlement})
    plan = make_policy(name, sets if name == "hltrf" else {}).plan(view, CountedLedger(counted))
    assert set(plan.weights) == set(view.queues) - {"root"}
    for weight in plan.weights.values():
        assert math.isfinite(weight)
        assert WEIGHT_MIN <= weight <= WEIGHT_MAX
        assert struct.unpack("<f", struct.pack("<f", weight))[0] == weight
    for least in plan.min_shares.values():
        assert least.memory_mb >= 0
        assert least.vcores >= 0


def test_plans_are_pure() -> None:
    view, ledger = snapshot(WAITING), used(**OWED)
    for name in POLICIES:
        policy = make_policy(name)
        assert policy.plan(view, ledger) == policy.plan(view, ledger) == make_policy(name).plan(view, ledger)


@pytest.mark.parametrize("policy", ["ltrf", "naive-hltrf", "hltrf"])
@given(
    run=st.lists(st.integers(0, 40), min_size=4, max_size=4), wait=st.lists(st.integers(0, 60), min_size=4, max_size=4)
)
@settings(max_examples=60, deadline=None)
def test_parts_in_the_scheduler_are_the_weights_from_outside(policy: str, run: list[int], wait: list[int]) -> None:
    """A horizon has one definition: what orders the queues inside is what is written from outside, but for rounding."""
    leaves = {name: {"run": held, "wait": 9 * asked} for name, held, asked in zip(GROUPS, run, wait, strict=True)}
    view, ledger = snapshot(leaves), used(g1_a=900, g1_b=100, g2_c=400, g2_d=3000)
    plan = make_policy(policy, {"horizon_s": "40", **({"t_wait": "inf"} if policy == "hltrf" else {})}).plan(
        view, ledger
    )
    parts = parts_over_horizon(plan.order, view, ledger)
    if policy == "ltrf":
        # Flat: a leaf's part of the cluster. Outside, its own of its group's and its group's of the cluster; whoever
        # has more than enough with its part is weighed by its demand there.
        waiting = [f"root.{name}" for name, fields in leaves.items() if fields["wait"] > 100]
        for group in ("root.g1", "root.g2"):
            a, b = (q for q in parts if q.startswith(group + "."))
            if a in waiting and b in waiting and min(parts[a], parts[b]) > 1e-4:
                assert plan.weights[a] / plan.weights[b] == pytest.approx(parts[a] / parts[b], rel=1e-3)
        return
    for name, weight in plan.weights.items():
        assert weight == pytest.approx(min(max(1000 * parts[name], WEIGHT_MIN), WEIGHT_MAX), rel=1e-3)
