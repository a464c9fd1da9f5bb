"""Accounts from an RM's figures against what was really used, with the figures as an RM shows them."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.cli.sim import _too_fast, fastest_enforced
from harness.control.app_observer import looks_of
from harness.ledger.accounts import CACHE_S, FALLEN_S, GONE_S, AppObservation, RmAccounts
from harness.model.resources import ZERO, Resource
from tests.control.rm_model import CAPACITY, MemoryPlace, RmModel
from tests.ledger.looking import FILE, looked, wander


@settings(max_examples=30, deadline=None)
@given(st.randoms(use_true_random=False), st.sampled_from([0.4, 1.0, 5.0, 20.0]))
def test_sums_follow_what_was_used_and_are_exact_when_nothing_runs(rng: random.Random, period_s: float) -> None:
    rm, accounts = RmModel(MemoryPlace(FILE)), RmAccounts()
    looked(rm, accounts)
    before = dict(accounts.consumed())
    for number in range(60):
        rm.now_s += rng.uniform(0.05, 1.0) * period_s
        wander(rm, rng, number)
        if rng.random() < 0.7:
            looked(rm, accounts)
            now = accounts.consumed()
            assert all(now[queue] >= used for queue, used in before.items()), "a sum fell"
            before = now
            for queue in ("root.a", "root.b"):
                held = sum(a.held().memory_mb for a in rm.apps.values() if a.queue == queue)
                assert now.get(queue, (0.0, 0.0))[0] <= rm.truth(queue)[0] + held * (CACHE_S + 20 * period_s) + 2e5
    for name in [name for name, app in rm.apps.items() if not app.final]:
        rm.finish(name)
    rm.now_s += period_s
    looked(rm, accounts)
    for queue in ("root.a", "root.b"):
        sums = accounts.queues.get(queue)
        assert ((sums.memory_mb_s, sums.vcore_s) if sums else (0.0, 0.0)) == rm.truth(queue)


def test_between_two_movements_of_the_figure_what_is_held_counts() -> None:
    rm, accounts = RmModel(MemoryPlace(FILE)), RmAccounts()
    looked(rm, accounts)
    rm.submit("x", "root.a")
    rm.start("x", 1000, 2)
    looked(rm, accounts)
    for _ in range(20):
        rm.now_s += 0.5
        looked(rm, accounts)
        assert accounts.consumed()["root.a"][0] == pytest.approx(rm.truth("root.a")[0], abs=2)
        assert accounts.consumed()["root.a"][1] == pytest.approx(rm.truth("root.a")[1], abs=2)


def test_nothing_is_assumed_for_longer_than_a_figure_can_stand_still() -> None:
    accounts = RmAccounts()
    accounts.observe(0.0, [])
    stuck = AppObservation("x", "root.a", 100, 1, Resource(1000, 1), False)
    for second in range(1, 60):
        accounts.observe(float(second), [stuck])
    assert accounts.consumed()["root.a"][0] <= 100 + 1000 * (CACHE_S + 1)


def test_what_was_used_before_the_first_look_does_not_count_and_all_afterwards_does() -> None:
    rm, accounts = RmModel(MemoryPlace(FILE)), RmAccounts()
    rm.submit("old", "root.a")
    rm.start("old")
    rm.now_s += 100
    looked(rm, accounts)
    rm.now_s += 10
    rm.submit("new", "root.a")
    rm.start("new")
    rm.now_s += 10
    rm.finish("new")
    rm.finish("old")
    looked(rm, accounts)
    assert accounts.consumed()["root.a"][0] == 1024 * (20 + 10)


def test_a_long_outage_of_the_link_loses_nothing_that_the_rm_retains() -> None:
    rm, accounts = RmModel(MemoryPlace(FILE)), RmAccounts()
    looked(rm, accounts)
    for number in range(5):
        rm.submit(f"x{number}", "root.b")
        rm.start(f"x{number}")
    looked(rm, accounts)
    rm.now_s += 3600
    rm.finish("x0")
    rm.submit("meanwhile", "root.a")
    rm.start("meanwhile")
    rm.now_s += 100
    rm.finish("meanwhile")
    rm.now_s += 100
    looked(rm, accounts)
    for queue in ("root.a", "root.b"):
        assert accounts.consumed()[queue] == rm.truth(queue)


def test_an_application_that_moves_uses_for_its_new_queue_from_then_on() -> None:
    rm, accounts = RmModel(MemoryPlace(FILE)), RmAccounts()
    looked(rm, accounts)
    rm.submit("x", "root.a")
    rm.start("x")
    rm.now_s += 10
    looked(rm, accounts)
    rm.apps["x"].queue = "root.b"
    rm.now_s += 10
    looked(rm, accounts)
    assert accounts.consumed()["root.a"][0] == 10 * 1024
    assert accounts.consumed()["root.b"][0] == 10 * 1024


def test_a_figure_that_falls_for_a_moment_is_not_counted_twice() -> None:
    accounts = RmAccounts()
    accounts.observe(0.0, [])
    for second, figure in enumerate([100, 200, 50, 300, 400], start=1):
        accounts.observe(float(second), [AppObservation("x", "root.a", figure, 1, ZERO, False)])
    assert accounts.consumed()["root.a"][0] == 400


def test_the_figure_of_an_ended_application_never_becomes_a_lower_base() -> None:
    """It is in few lists: two that are wrong may be far apart, with no right one in between (the soak, seed 920167)."""
    accounts = RmAccounts()
    accounts.observe(0.0, [])
    accounts.observe(1.0, [AppObservation("x", "root.a", 5000, 5, ZERO, True)])
    for second in (100.0, 100.0 + 2 * FALLEN_S, 100.0 + 4 * FALLEN_S):
        accounts.observe(second, [AppObservation("x", "root.a", 0, 5, ZERO, True)])
    accounts.observe(500.0, [AppObservation("x", "root.a", 5000, 5, ZERO, True)])
    assert accounts.consumed()["root.a"] == (5000, 5)


def test_an_application_that_the_rm_forgets_keeps_what_it_was_counted() -> None:
    rm, accounts = RmModel(MemoryPlace(FILE)), RmAccounts()
    looked(rm, accounts)
    rm.submit("x", "root.a")
    rm.start("x")
    rm.now_s += 50
    looked(rm, accounts)
    rm.apps.clear()
    rm.now_s += 1
    looked(rm, accounts)
    accounts.forget([], rm.now_s)
    rm.now_s += GONE_S
    looked(rm, accounts)
    accounts.forget([], rm.now_s)
    assert accounts.apps == {}
    # Its last second was never shown: what it held then counts.
    assert accounts.consumed()["root.a"][0] == 51 * 1024


def test_looks_that_pass_applications_by_count_what_they_hold() -> None:
    rm, accounts = RmModel(MemoryPlace(FILE)), RmAccounts()
    looked(rm, accounts)
    rm.submit("x", "root.a")
    rm.start("x", 1000, 2)
    looked(rm, accounts)
    for second in range(1, 41):
        rm.now_s += 1.0
        if second % 10:
            accounts.skip(rm.now_s)
        else:
            looked(rm, accounts)
        assert accounts.consumed()["root.a"] == pytest.approx(rm.truth("root.a"), abs=2)


def test_an_application_that_one_list_lacks_is_not_counted_anew() -> None:
    rm, accounts = RmModel(MemoryPlace(FILE)), RmAccounts()
    rm.submit("x", "root.a")
    rm.start("x")
    rm.now_s += 4000
    looked(rm, accounts)
    rm.now_s += 10
    accounts.observe(rm.now_s, [])
    accounts.forget([], rm.now_s)
    rm.now_s += 10
    looked(rm, accounts)
    accounts.forget(["x"], rm.now_s)
    assert accounts.consumed()["root.a"][0] == 20 * 1024
    rm.now_s += GONE_S
    accounts.observe(rm.now_s, [])
    accounts.forget([], rm.now_s)
    assert "x" in accounts.apps, "it was there in between"


@pytest.mark.parametrize("lasts_s", [1, 60])
def test_a_counter_that_jumps_by_more_than_the_cluster_could_give_is_refused(lasts_s: int) -> None:
    rm, accounts = RmModel(MemoryPlace(FILE)), RmAccounts()
    looked(rm, accounts)
    rm.submit("x", "root.a")
    rm.start("x", 2048, 2)
    for second in range(120):
        rm.now_s += 1.0
        rm.apps["x"].lie = (10**9, 10**6) if 30 <= second < 30 + lasts_s else (0, 0)
        looked(rm, accounts)
        assert bool(accounts.refused) == (30 <= second < 30 + min(lasts_s, FALLEN_S + 1))
        assert accounts.consumed()["root.a"] == pytest.approx(rm.truth("root.a"), abs=2048 * (FALLEN_S + 2))
    assert accounts.consumed()["root.a"] == pytest.approx(rm.truth("root.a"), abs=2048 * 3)


@pytest.mark.parametrize("lie", [Resource(10**12, 1), Resource(1024, 10**12)])
def test_held_resources_beyond_the_cluster_are_those_of_the_look_before(lie: Resource) -> None:
    """A queue's sum never falls, so that one such look would count for ever."""
    rm, accounts = RmModel(MemoryPlace(FILE)), RmAccounts()
    looked(rm, accounts)
    rm.submit("x", "root.a")
    rm.start("x", 2048, 2)
    for second in range(60):
        rm.now_s += 1.0
        looks = looks_of(rm.rest.apps())
        if second % 20 < 2:
            looks = [look._replace(held=lie) for look in looks]
        accounts.observe(rm.now_s, looks, capacity=CAPACITY)
        assert bool(accounts.refused) == (second % 20 < 2)
        assert accounts.consumed()["root.a"] == pytest.approx(rm.truth("root.a"), abs=2048 * 3)


@pytest.mark.parametrize(("speed", "refused"), [(fastest_enforced(1.0), False), (fastest_enforced(1.0) + 1, True)])
def test_how_fast_a_served_cluster_may_be_for_a_controller_with_a_period_of_a_second(
    speed: float, refused: bool
) -> None:
    """Its time is virtual; what fills it is what the whole cluster can give."""
    accounts, doubted = RmAccounts(), False
    for second in range(20):
        used = [round(amount * second * speed) for amount in (CAPACITY.memory_mb, CAPACITY.vcores)]
        look = AppObservation("x", "root.a", used[0], used[1], CAPACITY, False, second * speed)
        accounts.observe(float(second), [look], capacity=CAPACITY)
        doubted = doubted or bool(accounts.refused)
    assert doubted == refused


def test_a_served_cluster_says_which_period_its_speed_bears() -> None:
    """It named the limit of a period of 1 s; a controller with its default of 5 s skipped applications from 2.2 on."""
    assert _too_fast(fastest_enforced(5.0)) == ""
    assert _too_fast(5.0).endswith("; give it `period_s: 1`")
    assert "--speed 7 at most and give it `period_s: 1`" in _too_fast(10.0)


def test_a_new_application_cannot_have_used_more_than_its_age_allows() -> None:
    rm, accounts = RmModel(MemoryPlace(FILE)), RmAccounts()
    looked(rm, accounts)
    rm.submit("x", "root.a").lie = (10**9, 10**6)
    rm.start("x")
    rm.now_s += 10
    looked(rm, accounts)
    assert accounts.refused["x"].startswith("1,000,010,240 MiB s")
    rm.apps["x"].lie = (0, 0)
    rm.now_s += 1
    looked(rm, accounts)
    assert accounts.refused == {}
    assert accounts.consumed()["root.a"] == pytest.approx(rm.truth("root.a"), abs=4096)


def test_a_clock_that_was_set_back_before_the_controller_began_again_loses_nothing() -> None:
    """Its time then goes on from the last look: what was used meanwhile seems to be used within no time."""
    running = AppObservation("x", "root.a", 100 * 1024, 100, CAPACITY, False, age_s=60.0)
    before = RmAccounts()
    before.observe(1000.0, [], capacity=CAPACITY)
    before.observe(1060.0, [running], capacity=CAPACITY)
    again = RmAccounts(before.apps, before.queues, looked_s=before.looked_s)
    used = running.memory_mb_s + CAPACITY.memory_mb * 600
    again.observe(1060.1, [running._replace(memory_mb_s=used, age_s=660.0)], capacity=CAPACITY)
    assert again.refused == {}
    assert again.consumed()["root.a"][0] == used
    jumped = running._replace(memory_mb_s=used + CAPACITY.memory_mb * 1000, age_s=665.0)
    again.observe(1065.0, [jumped], capacity=CAPACITY)
    assert "x" in again.refused, "from the second look on its own clock tells"


def test_a_clock_that_was_set_forward_before_the_controller_began_again_charges_nothing() -> None:
    # The RM still shows the figure that it showed before.
    accounts = RmAccounts()
    accounts.observe(0.0, [])
    look = AppObservation("x", "root.a", 10_000, 10, Resource(1024, 1), False)
    accounts.observe(10.0, [look])
    again = RmAccounts(accounts.apps, accounts.queues, looked_s=accounts.looked_s)
    again.observe(86_410.0, [look])
    assert again.consumed()["root.a"][0] <= 10_000 + CACHE_S * 1024


def test_an_old_list_that_shows_an_ended_application_running_charges_nothing() -> None:
    """Twice, far apart: in between nobody asks for who has ended, so that it seems to have stayed so."""
    accounts = RmAccounts()
    running = AppObservation("x", "root.a", 1024 * 50, 50, Resource(1024, 1), False)
    ended = running._replace(memory_mb_s=1024 * 60, vcore_s=60, held=ZERO, final=True)
    accounts.observe(0.0, [])
    for now_s, look in ((50.0, running), (60.0, ended), (70.0, running), (4000.0, running)):
        accounts.observe(now_s, [look])
    accounts.observe(4100.0, [])
    assert accounts.consumed()["root.a"] == (1024 * 60, 60)


def test_more_vcores_than_the_cluster_has_are_no_lie_where_memory_alone_is_scheduled() -> None:
    """It held 62 of 48 vcores for a while, between two looks (soak, seed 40059)."""
    accounts, cluster = RmAccounts(), Resource(49_152, 48)
    accounts.observe(0.0, [], capacity=cluster)
    shown = AppObservation("x", "root.a", 2_212_984, 3_198, Resource(29_696, 43), False, 51.7)
    accounts.observe(155.0, [shown], capacity=cluster)
    assert accounts.refused == {}
    assert accounts.consumed()["root.a"] >= (2_212_984, 3_198)
    accounts.observe(160.0, [shown._replace(vcore_s=10**9)], capacity=cluster)
    assert set(accounts.refused) == {"x"}
