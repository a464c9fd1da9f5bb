"""The ledger's accounts against integrals done another way, and the invariants of discount, rounds and arrivals."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.ledger import Ledger, Usage
from harness.model.plan import LedgerSettings
from harness.model.resources import Resource

R = Resource(100, 50)
LEAVES = {"root.a": 1.0, "root.b": 1.0, "root.c": 2.0}
#: Pieces of constant allocation: (length in seconds, MiB held by a, b, c).
PIECES = st.lists(
    st.tuples(st.floats(0.01, 50), st.lists(st.integers(0, 60), min_size=3, max_size=3)), min_size=1, max_size=12
)


def feed(ledger: Ledger, pieces: list[tuple[float, list[int]]], active: bool = False) -> float:
    time = 0.0
    for length, held in pieces:
        time += length
        used = {leaf: Usage(mb * length, mb * length / 2) for leaf, mb in zip(LEAVES, held, strict=True)}
        ledger.observe(time, used, [leaf for leaf, mb in zip(LEAVES, held, strict=True) if mb] if active else ())
    return time


@settings(max_examples=60, deadline=None)
@given(PIECES, st.floats(0, 1))
def test_discount_piece_by_piece(pieces: list[tuple[float, list[int]]], eta: float) -> None:
    """Thesis eq. (5.7): min(g, S) + eta max(g - S, 0), with S_i = 25, 25, 50."""
    ledger = Ledger(LedgerSettings(discount=eta), LEAVES, R)
    feed(ledger, pieces)
    for position, (leaf, share) in enumerate(zip(LEAVES, (25, 25, 50), strict=True)):
        expected = sum(
            length * (min(held[position], share) + eta * max(held[position] - share, 0)) for length, held in pieces
        )
        assert ledger.share(leaf) == share
        assert ledger.counted()[leaf] == pytest.approx(expected, rel=1e-9, abs=1e-9)
        assert ledger.counted()[leaf] <= ledger.plain()[leaf] * (1 + 1e-12)


@settings(max_examples=60, deadline=None)
@given(PIECES, st.floats(0.5, 80))
def test_rounds_count_only_the_present_one(pieces: list[tuple[float, list[int]]], length_s: float) -> None:
    ledger = Ledger(LedgerSettings(round_s=length_s), LEAVES, R)
    now = feed(ledger, pieces)
    began = math.floor(now / length_s) * length_s  # eq. (5.12)
    for position, leaf in enumerate(LEAVES):
        expected = time = 0.0
        for length, held in pieces:
            expected += held[position] * max(time + length - max(time, began), 0.0)
            time += length
        assert ledger.counted()[leaf] == pytest.approx(expected, rel=1e-6, abs=1e-6)


@settings(max_examples=40, deadline=None)
@given(PIECES, st.integers(2, 5))
def test_looking_more_often_changes_nothing(pieces: list[tuple[float, list[int]]], cuts: int) -> None:
    settings_ = LedgerSettings(discount=0.3, round_s=20)
    once, often = Ledger(settings_, LEAVES, R), Ledger(settings_, LEAVES, R)
    feed(once, pieces)
    feed(often, [(length / cuts, held) for length, held in pieces for _ in range(cuts)])
    for leaf in LEAVES:
        # The two clocks differ in the last digit, so a moment on the boundary of a round may fall on either side.
        if abs(once.time_s % 20) > 1e-6 and abs(once.time_s % 20 - 20) > 1e-6:
            assert once.counted()[leaf] == pytest.approx(often.counted()[leaf], rel=1e-6, abs=1e-5)


def test_missed_observations_lose_nothing() -> None:
    ledger = Ledger(LedgerSettings(), LEAVES, R)
    ledger.observe(10.0, {"root.a": Usage(100.0, 10.0)})
    ledger.observe(70.0, {"root.a": Usage(600.0, 60.0)})
    assert ledger.counted()["root.a"] == 700.0


def test_resources() -> None:
    for resource, expected in (("memory", 400.0), ("vcores", 300.0), ("dominant", 6.0)):
        ledger = Ledger(LedgerSettings(resource=resource), LEAVES, R)  # type: ignore[arg-type]
        ledger.observe(10.0, {"root.a": Usage(400.0, 300.0)})  # 40 % of the memory, 60 % of the vcores
        assert ledger.counted()["root.a"] == pytest.approx(expected)


def test_pseudo_is_fixed_at_the_arrival() -> None:
    ledger = Ledger(LedgerSettings(pseudo=True), LEAVES, R)
    ledger.observe(0.0, {}, ["root.a"])
    ledger.observe(10.0, {"root.a": Usage(1000.0, 0)}, ["root.a", "root.c"])
    assert ledger.counted() == {"root.a": 1000.0, "root.b": 0.0, "root.c": 2000.0}  # f / w equal: c has weight 2
    ledger.observe(20.0, {"root.a": Usage(500.0, 0)}, ["root.a", "root.c"])
    assert ledger.counted()["root.c"] == 2000.0  # not anew at each moment
    ledger.observe(30.0, {}, ["root.b"])
    assert ledger.counted()["root.b"] == 0.0  # nobody else is active: nothing to be late for


def test_pseudo_again_in_each_round() -> None:
    ledger = Ledger(LedgerSettings(pseudo=True, round_s=100), LEAVES, R)
    ledger.observe(0.0, {}, ["root.a", "root.b"])
    ledger.observe(50.0, {"root.a": Usage(50.0, 0)}, ["root.a", "root.b"])
    ledger.observe(100.0, {"root.a": Usage(50.0, 0)}, ["root.a"])
    assert ledger.counted()["root.a"] == 0.0
    ledger.observe(150.0, {"root.a": Usage(70.0, 0)}, ["root.a", "root.b"])
    assert ledger.counted() == {"root.a": 70.0, "root.b": 70.0, "root.c": 0.0}


def test_capacity_that_changes() -> None:
    ledger = Ledger(LedgerSettings(discount=0.0), LEAVES, R)
    ledger.set_capacity(Resource(200, 50))
    ledger.observe(10.0, {"root.a": Usage(600.0, 0)})  # 60 held, share 50
    assert ledger.counted()["root.a"] == 500.0


def test_leaves_that_come_and_go_keep_their_accounts() -> None:
    ledger = Ledger(LedgerSettings(), LEAVES, R)
    ledger.observe(10.0, {"root.a": Usage(100.0, 0)})
    ledger.set_weights({"root.a": 1.0, "root.d": 1.0})
    assert ledger.counted() == {"root.a": 100.0, "root.d": 0.0}


@pytest.mark.parametrize("usage", [Usage(-1.0, 0), Usage(math.nan, 0), Usage(0, math.inf)])
def test_impossible_usage_is_refused(usage: Usage) -> None:
    ledger = Ledger(LedgerSettings(), LEAVES, R)
    with pytest.raises(ValueError, match="out of range"):
        ledger.observe(1.0, {"root.a": usage})


def test_time_does_not_go_back() -> None:
    ledger = Ledger(LedgerSettings(), LEAVES, R)
    ledger.observe(5.0, {})
    for time in (4.0, math.nan):
        with pytest.raises(ValueError, match="time went back"):
            ledger.observe(time, {})


@pytest.mark.parametrize("weight", [0.0, -1.0, math.nan, math.inf])
def test_entitlements_are_above_zero(weight: float) -> None:
    with pytest.raises(ValueError, match=r"entitlement of root\.a"):
        Ledger(LedgerSettings(), {"root.a": weight}, R)


@pytest.mark.parametrize(
    "settings",
    [
        LedgerSettings(),
        LedgerSettings(resource="dominant", discount=0.5, round_s=7.0, pseudo=True),
        LedgerSettings(half_life_s=3.0),
        LedgerSettings(window_s=4.0),
    ],
)
def test_a_restored_ledger_goes_on_as_if_nothing_had_happened(settings: LedgerSettings) -> None:
    def step(ledger: Ledger, at: int) -> None:
        if at == 4:
            ledger.set_weights({"a": 1.0})
        if at == 6:
            ledger.set_weights({"a": 1.0, "b": 2.0})
        used = {"a": Usage(100.0 * at, 1.0)} | ({"b": Usage(50.0, 2.0)} if at not in (4, 5) else {})
        ledger.observe(float(at), used, active=list(used))

    def made() -> Ledger:
        ledger = Ledger(settings, {"a": 1.0, "b": 2.0}, Resource(1000, 10))
        ledger.remember = True
        return ledger

    straight, interrupted = made(), made()
    for at in range(1, 13):
        step(straight, at)
        step(interrupted, at)
        interrupted = Ledger.restored(json.loads(json.dumps(interrupted.state())), settings)
        interrupted.remember = True
    assert interrupted.counted() == straight.counted()
    assert interrupted.plain() == straight.plain()
    assert straight.plain()["b"] > 0


def test_a_state_that_is_none_or_counts_otherwise_is_refused() -> None:
    state = Ledger(LedgerSettings(), {"a": 1.0}, Resource(1000, 10)).state()
    with pytest.raises(ValueError, match="resource"):
        Ledger.restored(state, LedgerSettings(resource="vcores"))
    with pytest.raises(ValueError, match="window_s"):
        Ledger.restored(state, LedgerSettings(window_s=5.0))
    with pytest.raises(ValueError, match="finite"):
        Ledger.restored({**state, "accounts": {"a": [math.nan, 0, False, 0, 0, None]}}, LedgerSettings())


def test_a_leaf_that_comes_back_is_remembered_only_if_asked() -> None:
    for remember in (False, True):
        ledger = Ledger(LedgerSettings(), {"a": 1.0, "b": 1.0}, Resource(1000, 10))
        ledger.remember = remember
        ledger.observe(1.0, {"b": Usage(300.0, 0.0)})
        ledger.set_weights({"a": 1.0})
        ledger.set_weights({"a": 1.0, "b": 1.0})
        assert ledger.counted()["b"] == (300.0 if remember else 0.0)


def test_an_idle_leaf_at_the_begin_of_a_round() -> None:
    """Nothing of the interval lies in the new round: nothing is left to fade."""
    ledger = Ledger(LedgerSettings(half_life_s=100.0, round_s=600.0), {"a": 1.0, "b": 1.0}, Resource(1000, 10))
    ledger.observe(585.0, {"a": Usage(585.0, 0.0), "b": Usage(585.0, 0.0)})
    ledger.observe(600.0, {"a": Usage(15.0, 0.0)})
    assert ledger.counted() == {"a": 0.0, "b": 0.0}
    ledger.observe(601.0, {"a": Usage(1.0, 0.0)})
    assert ledger.counted() == {"a": pytest.approx(1.0, rel=0.01), "b": 0.0}


def grown(half_life_s: float | None = None) -> Ledger:
    """Two leaves with an hour of history; a third one that joins."""
    ledger = Ledger(LedgerSettings(half_life_s=half_life_s), {"a": 1.0, "b": 1.0}, Resource(3000, 3))
    ledger.remember = True
    ledger.observe(3600.0, {"a": Usage(2000.0 * 3600), "b": Usage(1000.0 * 3600)}, ["a", "b"])
    ledger.set_weights({"a": 1.0, "b": 1.0, "c": 2.0})
    return ledger


def test_a_newcomer_is_owed_nothing_for_the_time_before_it_existed() -> None:
    ledger = grown()
    ledger.observe(3700.0, {}, ["a", "b"])
    assert ledger.counted()["c"] == 0.0, "it has not asked for anything yet"
    ledger = Ledger.restored(ledger.state(), ledger.settings)
    ledger.observe(3800.0, {}, ["b", "c"])
    assert ledger.counted()["c"] == 2 * ledger.counted()["b"], "eq. (5.16), over the leaves that are active then"
    ledger.observe(3900.0, {"c": Usage(500.0)}, ["a", "b", "c"])
    assert ledger.counted()["c"] == 2 * ledger.counted()["b"] + 500.0, "once"


@pytest.mark.parametrize("how", [{}, {"half_life_s": 3600.0}, {"window_s": 7200.0}])
def test_a_leaf_that_becomes_a_parent_passes_on_what_it_had(how: dict[str, Any]) -> None:
    """The parent of queues that a scheduler creates: idle beside one that was busy, it lost what it was owed."""
    ledger = Ledger(LedgerSettings(**how), {"r.a": 3.0, "r.b": 1.0}, Resource(3000, 3))
    ledger.remember = True
    ledger.observe(600.0, {"r.a": Usage(3000.0 * 500), "r.b": Usage(300.0 * 500)}, ["r.a"])
    ledger.set_weights({"r.a": 3.0, "r.b.x": 0.75, "r.b.y": 0.25})
    before = ledger.counted()
    assert ledger.newcomers() == frozenset()
    ledger.observe(600.0, {}, ["r.a", "r.b.x", "r.b.y"])
    counted = ledger.counted()
    assert counted["r.b.x"] + counted["r.b.y"] < 0.2 * counted["r.a"], "as little as their parent had"
    assert counted == before
    assert counted["r.b.x"] == pytest.approx(3 * counted["r.b.y"])
    # What they have had is the parent's when they are gone, and that of those that come next.
    ledger.observe(1200.0, {"r.b.x": Usage(3000.0 * 600)}, ["r.b.x"])
    ledger = Ledger.restored(ledger.state(), ledger.settings)
    ledger.remember = True
    counted = ledger.counted()
    ledger.set_weights({"r.a": 3.0, "r.b.y": 1.0})
    ledger.set_weights({"r.a": 3.0, "r.b": 1.0})
    assert ledger.counted()["r.b"] == pytest.approx(counted["r.b.x"] + counted["r.b.y"])
    ledger.observe(1300.0, {"r.b": Usage(60.0)}, ["r.a"])
    had = ledger.counted()["r.b"]
    ledger.set_weights({"r.a": 3.0, "r.b.z": 1.0})
    assert ledger.counted() == {"r.a": ledger.counted()["r.a"], "r.b.z": pytest.approx(had)}
    assert ledger.plain() == {"r.a": 3000.0 * 500, "r.b.z": 0.0}, "what a leaf itself has used"


def test_a_newcomer_among_idle_leaves_begins_as_the_most_counted_of_them() -> None:
    ledger = grown()
    ledger.observe(3700.0, {}, ["c"])
    assert ledger.counted()["c"] == 2 * ledger.counted()["a"]


def test_who_comes_back_is_no_newcomer() -> None:
    ledger = grown()
    ledger.set_weights({"a": 1.0})
    ledger.set_weights({"a": 1.0, "b": 1.0})
    ledger.observe(3700.0, {}, ["a", "b"])
    assert ledger.counted()["b"] == 1000.0 * 3600


@pytest.mark.parametrize(("half_lives", "owed_half_lives"), [(1, 0.721), (7, 1.431), (100, 1.443)])
def test_however_long_a_queue_is_away_little_more_than_a_half_life_is_owed(
    half_lives: int, owed_half_lives: float
) -> None:
    """In container-half-lives of the whole cluster, of which the queue is entitled to one half: 1 / ln 2 at most."""
    half_life_s = 86_400.0
    ledger = Ledger(LedgerSettings(half_life_s=half_life_s), {"a": 1.0, "b": 1.0}, Resource(1000, 10))
    for day in range(half_lives):
        ledger.observe((day + 1) * half_life_s, {"b": Usage(1000.0 * half_life_s)}, ["a", "b"])
    counted = ledger.counted()
    assert counted["a"] == 0.0
    owed = sum(counted.values()) / 2
    assert owed == pytest.approx(1000.0 * half_life_s * owed_half_lives / 2, rel=0.001)
    assert 1 / math.log(2) == pytest.approx(1.443, abs=0.001)
