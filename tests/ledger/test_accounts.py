"""Accounts from an RM's figures against what was really used, with the figures as an RM shows them."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.cli.sim import FASTEST_ENFORCED
from harness.control.look import looks_of
from harness.ledger.accounts import CACHE_S, FALLEN_S, GONE_S, AppLook, RmAccounts
from harness.model.resources import ZERO, Resource
from tests.control.rm_model import CAPACITY, MemoryPlace, RmModel

FILE = b"<allocations><queue name='a'/><queue name='b'/></allocations>"


def looked(rm: RmModel, accounts: RmAccounts, **options: Any) -> None:
    accounts.observe(rm.now_s, looks_of(rm.rest.apps()), capacity=CAPACITY, **options)


def wander(rm: RmModel, rng: random.Random, number: int) -> None:
    """Something happens on the cluster."""
    running = [name for name, app in rm.apps.items() if not app.final]
    what = rng.random()
    if what < 0.25 or not running:
        name = f"app{number}"
        rm.submit(name, rng.choice(["root.a", "root.b"]))
        rm.start(name)
    elif what < 0.6:
        rm.start(rng.choice(running), rng.choice([256, 1024, 3000]), rng.choice([1, 2]))
    elif what < 0.9:
        name = rng.choice(running)
        if live := rm.apps[name].live():
            rm.end(name, rng.choice(live))
    else:
        rm.finish(rng.choice(running))


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
    stuck = AppLook("x", "root.a", 100, 1, Resource(1000, 1), False)
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


@pytest.mark.parametrize("outage_s", [5.0, 40.0])
@pytest.mark.parametrize("delay_s", [0.0, 6.0])
def test_an_rm_that_begins_anew_and_recovers_costs_nothing_while_containers_go_on(
    outage_s: float, delay_s: float
) -> None:
    rm, accounts = RmModel(MemoryPlace(FILE)), RmAccounts()
    looked(rm, accounts)
    rm.submit("x", "root.a")
    short = rm.start("x", 512)
    first, second = rm.start("x", 1024), rm.start("x", 2048)
    for _ in range(50):
        rm.now_s += 1.0
        looked(rm, accounts)
    rm.end("x", short)
    rm.now_s += 1.0
    looked(rm, accounts)
    rm.now_s += outage_s
    rm.restart()
    looked(rm, accounts, rm_began_anew=True)
    for node in ([first], [second]):
        for _ in range(max(round(delay_s), 1)):
            rm.now_s += 1.0
            looked(rm, accounts)
        rm.node_back(node)
    for _ in range(200):
        rm.now_s += 1.0
        looked(rm, accounts)
    assert accounts.consumed()["root.a"][0] == pytest.approx(rm.truth("root.a")[0], abs=2 * 3072)
    rm.finish("x")
    looked(rm, accounts)
    truth = rm.truth("root.a")[0]
    assert accounts.consumed()["root.a"][0] == pytest.approx(truth, rel=0.02)


@pytest.mark.parametrize("saving", [False, True], ids=["ended", "its end being saved"])
@pytest.mark.parametrize("ran_s", [2.0, 10.0, 200.0])
@pytest.mark.parametrize("away_s", [20.0, 75.0, 300.0])
def test_a_node_that_comes_back_after_its_containers_have_ended_costs_little(
    ran_s: float, away_s: float, saving: bool
) -> None:
    # Hadoop 3.4.2: a container that a node reports as complete when it registers is counted with its whole life.
    rm, accounts = RmModel(MemoryPlace(FILE)), RmAccounts()
    looked(rm, accounts)
    rm.submit("x", "root.a")
    container = rm.start("x", 512)
    for _ in range(round(ran_s)):
        rm.now_s += 1.0
        looked(rm, accounts)
    rm.now_s += 4.0
    rm.restart()
    looked(rm, accounts, rm_began_anew=True)
    for second in range(round(away_s)):
        rm.now_s += 1.0
        if second == round(away_s) - 6:
            container.ended_s = rm.now_s
        looked(rm, accounts)
    rm.node_back([container])
    if saving:
        # Its figure is whole, and the RM shows it as running while it saves that it has ended.
        looked(rm, accounts)
    rm.finish("x")
    for _ in range(5):
        rm.now_s += 1.0
        looked(rm, accounts)
    # Not known is for how long of the time away it ran: at most six seconds less.
    assert accounts.consumed()["root.a"][0] == pytest.approx(rm.truth("root.a")[0], abs=6 * 512)


@pytest.mark.parametrize("goes_on", [False, True])
def test_nodes_that_come_back_one_after_the_other_with_what_has_ended_cost_little(goes_on: bool) -> None:
    rm, accounts = RmModel(MemoryPlace(FILE)), RmAccounts()
    looked(rm, accounts)
    rm.submit("x", "root.a")
    containers = [rm.start("x", 512), rm.start("x", 2048)]
    for _ in range(30):
        rm.now_s += 1.0
        looked(rm, accounts)
    rm.restart()
    looked(rm, accounts, rm_began_anew=True)
    for second in range(90):
        rm.now_s += 1.0
        if second == 55:
            containers[0].ended_s = rm.now_s
        if second == 60:
            rm.node_back(containers[:1])
        if second == 80:
            if not goes_on:
                containers[1].ended_s = rm.now_s
            rm.node_back(containers[1:])
        looked(rm, accounts)
    rm.finish("x")
    for _ in range(5):
        rm.now_s += 1.0
        looked(rm, accounts)
    truth = rm.truth("root.a")[0]
    # At most what the first container had used before, once more for the second: their lives are shown in one sum.
    assert accounts.consumed()["root.a"][0] == pytest.approx(truth, abs=6 * 512 + 30 * 512)


@pytest.mark.parametrize("back_s", [1, 30])
@pytest.mark.parametrize("begun", ["nothing", "task", "tasks that ended"])
def test_what_late_nodes_bring_back_after_a_first_look_counts_from_that_look_on(back_s: int, begun: str) -> None:
    rm, accounts = RmModel(MemoryPlace(FILE)), RmAccounts()
    rm.submit("x", "root.a")
    old = [rm.start("x", 512), rm.start("x", 2048)]
    rm.now_s += 5000.0
    rm.restart()
    rm.now_s += 2.0
    looked(rm, accounts, rm_age_s=2.0)
    before = rm.truth("root.a")[0]
    new = [rm.start("x", 1024)] if begun != "nothing" else []
    for second in range(60):
        rm.now_s += 1.0
        if second == 20 and begun == "tasks that ended":
            for container in new:
                rm.end("x", container)
        if second == back_s:
            rm.node_back(old)
        looked(rm, accounts, rm_age_s=3.0 + second)
    rm.finish("x")
    looked(rm, accounts, rm_age_s=63.0)
    assert accounts.consumed()["root.a"][0] == pytest.approx(rm.truth("root.a")[0] - before, abs=2 * CACHE_S * 3584)


def test_an_rm_that_was_started_of_late_with_all_its_nodes_back_shows_what_is_used() -> None:
    rm, accounts = RmModel(MemoryPlace(FILE)), RmAccounts()
    rm.submit("x", "root.a")
    rm.start("x", 512)
    rm.now_s += 100.0
    looked(rm, accounts, rm_age_s=50.0)
    before = rm.truth("root.a")[0]
    for second in range(60):
        if second % 3 == 0:
            for container in rm.apps["x"].live()[1:]:
                rm.end("x", container)
            for _ in range(20):
                rm.start("x", 1024)
        rm.now_s += 1.0
        if second % 7 == 0:
            looked(rm, accounts, rm_age_s=50.0 + second)
    rm.finish("x")
    looked(rm, accounts, rm_age_s=110.0)
    assert accounts.consumed()["root.a"][0] == rm.truth("root.a")[0] - before


@pytest.mark.parametrize("ended", [False, True])
def test_a_node_that_is_back_before_the_first_look_at_the_new_rm_costs_nothing(ended: bool) -> None:
    rm, accounts = RmModel(MemoryPlace(FILE)), RmAccounts()
    looked(rm, accounts)
    rm.submit("x", "root.a")
    short, long = rm.start("x", 4096), rm.start("x", 512)
    for _ in range(30):
        rm.now_s += 1.0
        looked(rm, accounts)
    rm.end("x", short)  # which the new RM will know nothing of: its figure lies below the old one's
    rm.now_s += 1.0
    looked(rm, accounts)
    rm.now_s += 5.0
    rm.restart()
    rm.node_back([long])
    rm.now_s += 20.0
    if ended:
        rm.finish("x")
    looked(rm, accounts, rm_began_anew=True)
    for _ in range(10):
        rm.now_s += 1.0
        looked(rm, accounts)
    assert accounts.consumed()["root.a"][0] == pytest.approx(rm.truth("root.a")[0], abs=3 * 512)


@settings(max_examples=300, deadline=None)
@given(st.randoms(use_true_random=False))
def test_whoever_else_looks_at_a_new_rm_changes_nothing(rng: random.Random) -> None:
    # The RM keeps the figure that somebody saw before the nodes were back for `CACHE_S` more, beside what is held now.
    rm, accounts = RmModel(MemoryPlace(FILE)), RmAccounts()
    looked(rm, accounts)
    rm.submit("x", "root.a")
    container = rm.start("x", 512)
    rm.now_s += rng.uniform(1.0, 30.0)
    looked(rm, accounts)
    rm.now_s += rng.uniform(0.1, 20.0)
    rm.restart()
    back_s = rm.now_s + rng.uniform(0.0, 5.0)
    ends_s = back_s + rng.uniform(1.0, 20.0)
    back = ended = anew = False
    seen_s = 0.0
    while rm.now_s < ends_s + 5.0:
        rm.now_s += rng.choice([0.3, 1.0, 2.0])
        if not back and rm.now_s >= back_s:
            rm.node_back([container])
            back = True
        if not ended and rm.now_s >= ends_s:
            rm.finish("x")
            ended = True
        who = rng.choice(["nobody", "another", "we"])
        if who == "another":
            rm.rest.apps()
        elif who == "we":
            looked(rm, accounts, rm_began_anew=not anew)
            anew, seen_s = True, seen_s if ended else rm.now_s
    looked(rm, accounts, rm_began_anew=not anew)
    # Its end is not known to us more exactly than by our last look before it.
    unknown_s = rm.now_s - seen_s if anew else 0.0
    assert accounts.consumed()["root.a"][0] == pytest.approx(rm.truth("root.a")[0], abs=512 * (CACHE_S + unknown_s))


def test_an_rm_that_begins_anew_twice_costs_nothing_twice() -> None:
    rm, accounts = RmModel(MemoryPlace(FILE)), RmAccounts()
    looked(rm, accounts)
    rm.submit("x", "root.a")
    containers = [rm.start("x", 1024), rm.start("x", 512)]
    for back_in_between in (containers, containers[:1], []):
        rm.now_s += 100.0
        looked(rm, accounts)
        for back in (back_in_between, containers):
            rm.now_s += 2.0
            rm.restart()
            rm.now_s += 5.0
            looked(rm, accounts, rm_began_anew=True)
            rm.node_back(back)
            rm.now_s += 20.0
            looked(rm, accounts)
        used = rm.truth("root.a")[0]
        assert accounts.consumed()["root.a"][0] == pytest.approx(used, abs=3 * 1536)
        rm.now_s += 1000.0


@pytest.mark.parametrize("back_s", [0.0, 20.0])
def test_a_figure_that_a_new_rm_shows_too_low_need_not_fall(back_s: float) -> None:
    # What ran on has used more by the first look than what had ended, which the new RM knows nothing of.
    rm, accounts = RmModel(MemoryPlace(FILE)), RmAccounts()
    looked(rm, accounts)
    rm.submit("x", "root.a")
    short, early, late = rm.start("x", 4096), rm.start("x", 1024), rm.start("x", 1024)
    rm.now_s += 10.0
    rm.end("x", short)
    rm.now_s += 10.0
    looked(rm, accounts)
    rm.now_s += 5.0
    rm.restart()
    rm.node_back([early] if back_s else [early, late])
    rm.now_s += 55.0
    looked(rm, accounts, rm_began_anew=True)
    rm.now_s += back_s
    rm.node_back([late])
    for _ in range(5):
        rm.now_s += 5.0
        looked(rm, accounts)
    rm.finish("x")
    looked(rm, accounts)
    assert accounts.consumed()["root.a"][0] == pytest.approx(rm.truth("root.a")[0], abs=CACHE_S * 2048)


def test_who_was_never_seen_before_the_rm_began_anew_counts_whole_when_its_node_is_back() -> None:
    rm, accounts = RmModel(MemoryPlace(FILE)), RmAccounts()
    looked(rm, accounts)
    rm.submit("x", "root.a")
    container = rm.start("x", CAPACITY.memory_mb)
    rm.now_s += 60.0
    rm.restart()
    rm.now_s += 5.0
    looked(rm, accounts, rm_began_anew=True)
    rm.now_s += 1.0
    rm.node_back([container])
    rm.now_s += 4.0
    looked(rm, accounts)
    assert not accounts.refused
    assert accounts.consumed()["root.a"][0] == pytest.approx(rm.truth("root.a")[0], abs=3 * CAPACITY.memory_mb)


def test_who_has_ended_by_a_new_rm_does_not_run_again_by_an_old_list() -> None:
    accounts = RmAccounts()
    accounts.observe(0.0, [])
    runs = AppLook("x", "root.a", 9_000, 9, Resource(1024, 1), False)
    ended = AppLook("x", "root.a", 12_000, 12, ZERO, True)
    accounts.observe(10.0, [runs])
    accounts.observe(20.0, [ended], rm_began_anew=True)
    accounts.observe(25.0, [runs])
    assert accounts.apps["x"].final
    accounts.observe(30.0, [ended])
    assert accounts.consumed()["root.a"] == (12_000, 12)


def test_a_figure_that_falls_while_an_rm_is_recovered_counts_once() -> None:
    accounts = RmAccounts()
    accounts.observe(0.0, [])
    held = Resource(1024, 1)
    for now_s, memory in ((10.0, 9_000), (20.0, 19_000)):
        accounts.observe(now_s, [AppLook("x", "root.a", memory, memory // 1000, held, False)])
    accounts.observe(30.0, [AppLook("x", "root.a", 29_000, 29, held, False)], rm_began_anew=True)
    accounts.observe(31.0, [AppLook("x", "root.a", 10, 0, held, False)])  # the RM falls, as one that has begun anew
    for now_s, memory in ((100.0, 69_000), (105.0, 30_000), (110.0, 79_000)):  # and once more, for a moment
        accounts.observe(now_s, [AppLook("x", "root.a", memory, memory // 1000, held, False)])
    assert accounts.consumed()["root.a"][0] <= 29_000 + 80 * 1024


@pytest.mark.parametrize("final", [False, True])
def test_a_figure_that_falls_for_a_moment_while_an_rm_is_recovered_is_not_counted_twice(final: bool) -> None:
    # At the first look at it the new RM showed what it knew.
    accounts = RmAccounts()
    accounts.observe(0.0, [])
    accounts.observe(10.0, [AppLook("x", "root.a", 9_000, 9, ZERO, final)])
    for now_s, figure in ((20.0, 9_000), (30.0, 9_000), (615.0, 4_500), (625.0, 9_000), (635.0, 9_000)):
        accounts.observe(now_s, [AppLook("x", "root.a", figure, 9, ZERO, final)], rm_began_anew=now_s == 20.0)
    assert accounts.consumed()["root.a"][0] == 9_000


def test_a_figure_that_falls_for_a_moment_is_not_counted_twice() -> None:
    accounts = RmAccounts()
    accounts.observe(0.0, [])
    for second, figure in enumerate([100, 200, 50, 300, 400], start=1):
        accounts.observe(float(second), [AppLook("x", "root.a", figure, 1, ZERO, False)])
    assert accounts.consumed()["root.a"][0] == 400


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
            accounts.pass_by(rm.now_s)
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


@pytest.mark.parametrize(("speed", "refused"), [(FASTEST_ENFORCED, False), (FASTEST_ENFORCED + 1, True)])
def test_how_fast_a_served_cluster_may_be_for_a_controller_with_a_period_of_a_second(
    speed: float, refused: bool
) -> None:
    """Its time is virtual; what fills it is what the whole cluster can give."""
    accounts, doubted = RmAccounts(), False
    for second in range(20):
        used = [round(amount * second * speed) for amount in (CAPACITY.memory_mb, CAPACITY.vcores)]
        look = AppLook("x", "root.a", used[0], used[1], CAPACITY, False, second * speed)
        accounts.observe(float(second), [look], capacity=CAPACITY)
        doubted = doubted or bool(accounts.refused)
    assert doubted == refused


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
    running = AppLook("x", "root.a", 100 * 1024, 100, CAPACITY, False, age_s=60.0)
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
    look = AppLook("x", "root.a", 10_000, 10, Resource(1024, 1), False)
    accounts.observe(10.0, [look])
    again = RmAccounts(accounts.apps, accounts.queues, looked_s=accounts.looked_s)
    again.observe(86_410.0, [look])
    assert again.consumed()["root.a"][0] <= 10_000 + CACHE_S * 1024


def test_an_old_list_that_shows_an_ended_application_running_charges_nothing() -> None:
    """Twice, far apart: in between nobody asks for who has ended, so that it seems to have stayed so."""
    accounts = RmAccounts()
    running = AppLook("x", "root.a", 1024 * 50, 50, Resource(1024, 1), False)
    ended = running._replace(memory_mb_s=1024 * 60, vcore_s=60, held=ZERO, final=True)
    accounts.observe(0.0, [])
    for now_s, look in ((50.0, running), (60.0, ended), (70.0, running), (4000.0, running)):
        accounts.observe(now_s, [look])
    accounts.observe(4100.0, [])
    assert accounts.consumed()["root.a"] == (1024 * 60, 60)
