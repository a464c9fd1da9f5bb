"""Accounts over an RM that begins anew: what late nodes, recovered applications and fallen figures may cost."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.ledger.accounts import CACHE_S, AppObservation, RmAccounts
from harness.model.resources import ZERO, Resource
from tests.control.rm_model import CAPACITY, Container, MemoryPlace, RmModel
from tests.ledger.looking import FILE, looked, watched


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
    watched(rm, accounts, 50)
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
    watched(rm, accounts, 200)
    assert accounts.consumed()["root.a"][0] == pytest.approx(rm.truth("root.a")[0], abs=2 * 3072)
    rm.finish("x")
    looked(rm, accounts)
    truth = rm.truth("root.a")[0]
    assert accounts.consumed()["root.a"][0] == pytest.approx(truth, rel=0.02)


@pytest.mark.parametrize("ends", [False, True])
def test_what_is_used_in_a_long_blind_time_after_a_recovery_counts(ends: bool) -> None:
    """Nobody looks for five minutes, in which an application gets a container: that is nothing a late node reports."""
    rm, accounts = RmModel(MemoryPlace(FILE)), RmAccounts()
    looked(rm, accounts)
    rm.submit("x", "root.a")
    goes_on, is_lost = rm.start("x", 1024), rm.start("x", 2048)
    watched(rm, accounts, 100)
    rm.end("x", is_lost)
    rm.restart()
    looked(rm, accounts, rm_began_anew=True)
    rm.node_back([goes_on])
    watched(rm, accounts, 150)
    more = rm.start("x", 8192)
    rm.now_s += 300.0
    rm.end("x", more)
    if ends:
        rm.finish("x")
    looked(rm, accounts)
    assert accounts.consumed()["root.a"][0] == pytest.approx(rm.truth("root.a")[0], abs=2 * 3 * 3072)


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
    watched(rm, accounts, 5)
    # Not known is for how long of the time away it ran: at most six seconds less.
    assert accounts.consumed()["root.a"][0] == pytest.approx(rm.truth("root.a")[0], abs=6 * 512)


@pytest.mark.parametrize("goes_on", [False, True])
def test_nodes_that_come_back_one_after_the_other_with_what_has_ended_cost_little(goes_on: bool) -> None:
    rm, accounts = RmModel(MemoryPlace(FILE)), RmAccounts()
    looked(rm, accounts)
    rm.submit("x", "root.a")
    containers = [rm.start("x", 512), rm.start("x", 2048)]
    watched(rm, accounts, 30)
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
    watched(rm, accounts, 5)
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
    watched(rm, accounts, 30)
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
    watched(rm, accounts, 10)
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


def test_what_is_away_while_an_rm_begins_anew_twice_counts_from_the_first_time_on() -> None:
    rm, accounts = RmModel(MemoryPlace(FILE)), RmAccounts()
    looked(rm, accounts)
    rm.submit("x", "root.a")
    first, second = rm.start("x", 512), rm.start("x", 2048)

    def looks(count: int) -> None:
        watched(rm, accounts, count)

    def begins_anew(back: Container) -> None:
        rm.now_s += 1.0
        rm.restart()
        looked(rm, accounts, rm_began_anew=True)
        looks(1)
        rm.node_back([back])
        looks(20)

    looks(100)
    begins_anew(first)
    # By the second time it has ended, and is in no figure any more.
    rm.end("x", first)
    looks(3)
    begins_anew(second)
    assert accounts.consumed()["root.a"][0] == pytest.approx(rm.truth("root.a")[0], abs=6 * 512)


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
    runs = AppObservation("x", "root.a", 9_000, 9, Resource(1024, 1), False)
    ended = AppObservation("x", "root.a", 12_000, 12, ZERO, True)
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
        accounts.observe(now_s, [AppObservation("x", "root.a", memory, memory // 1000, held, False)])
    accounts.observe(30.0, [AppObservation("x", "root.a", 29_000, 29, held, False)], rm_began_anew=True)
    accounts.observe(
        31.0, [AppObservation("x", "root.a", 10, 0, held, False)]
    )  # the RM falls, as one that has begun anew
    for now_s, memory in ((100.0, 69_000), (105.0, 30_000), (110.0, 79_000)):  # and once more, for a moment
        accounts.observe(now_s, [AppObservation("x", "root.a", memory, memory // 1000, held, False)])
    assert accounts.consumed()["root.a"][0] <= 29_000 + 80 * 1024


@pytest.mark.parametrize("final", [False, True])
def test_a_figure_that_falls_for_a_moment_while_an_rm_is_recovered_is_not_counted_twice(final: bool) -> None:
    # At the first look at it the new RM showed what it knew.
    accounts = RmAccounts()
    accounts.observe(0.0, [])
    accounts.observe(10.0, [AppObservation("x", "root.a", 9_000, 9, ZERO, final)])
    for now_s, figure in ((20.0, 9_000), (30.0, 9_000), (615.0, 4_500), (625.0, 9_000), (635.0, 9_000)):
        accounts.observe(now_s, [AppObservation("x", "root.a", figure, 9, ZERO, final)], rm_began_anew=now_s == 20.0)
    assert accounts.consumed()["root.a"][0] == 9_000


def test_a_counter_that_jumps_while_an_rm_is_recovered_is_refused_and_no_base() -> None:
    """It was no use yet, but the base from which it fell when the RM began anew once more (soak, seed 40093)."""
    accounts, held, cluster = RmAccounts(), Resource(1024, 1), Resource(32 * 1024, 32)

    def look(now_s: float, figure: int, *, anew: bool = False) -> None:
        shown = AppObservation("x", "root.a", figure * 1024, figure, held, False, now_s)
        accounts.observe(now_s, [shown], rm_began_anew=anew, capacity=cluster)

    for now_s in range(0, 101, 5):
        look(now_s, now_s)
    look(110.0, 10, anew=True)
    for now_s in range(115, 401, 5):
        look(now_s, now_s)
    look(405.0, 10**10)
    assert set(accounts.refused) == {"x"}
    look(410.0, 5, anew=True)
    for now_s in range(415, 1200, 5):
        look(now_s, now_s)
    assert accounts.consumed()["root.a"][0] == pytest.approx(1195 * 1024, rel=0.02)


@pytest.mark.parametrize("shown_as_ended", [True, False])
@pytest.mark.parametrize("ran_s", [600, 7200])
def test_a_late_node_that_registers_while_nobody_looks_is_not_charged_for_what_was_counted(
    ran_s: int, shown_as_ended: bool
) -> None:
    rm, accounts = RmModel(MemoryPlace(FILE)), RmAccounts()
    looked(rm, accounts)
    rm.submit("x", "root.a")
    soon, late = rm.start("x", 1024), rm.start("x", 8192)
    watched(rm, accounts, ran_s, every_s=10.0)
    rm.restart()
    looked(rm, accounts, rm_began_anew=True)
    rm.node_back([soon])
    watched(rm, accounts, 150)
    # Nobody looks for five minutes; the other node registers, and its container ends.
    rm.now_s += 60.0
    late.ended_s = rm.now_s
    rm.node_back([late])
    rm.now_s += 240.0
    if shown_as_ended:
        rm.finish("x")
    for _ in range(6):
        looked(rm, accounts)
        rm.now_s += 1.0
    looked(rm, accounts)
    # What the lost container may have used until the end of the blind time is unknown, and nothing else is.
    assert 0 <= accounts.consumed()["root.a"][0] - rm.truth("root.a")[0] <= 8192 * 300


def test_what_an_earlier_restart_took_from_a_figure_does_not_count_again_after_the_next() -> None:
    """The first recovery is over when the second restart comes, and the final figure has everything again."""
    accounts = RmAccounts()

    def look(now_s: float, memory_mb_s: int, held_mb: int, **options: bool) -> None:
        held = Resource(held_mb, held_mb // 1024)
        seen = AppObservation("x", "root.a", memory_mb_s, memory_mb_s // 1024, held, held == ZERO, now_s)
        accounts.observe(now_s, [seen], capacity=Resource(1 << 20, 1 << 10), **options)

    look(0.0, 0, 3072)
    look(100.0, 80_000_000, 3072)
    # Containers that had ended before the restart are missing in the figure from now on.
    look(160.0, 50_000_000, 3072, rm_began_anew=True)
    look(900.0, 52_300_000, 3072)
    # One of two nodes is not back yet.
    look(960.0, 30_000_000, 1024, rm_began_anew=True)
    look(1160.0, 30_200_000, 1024)
    look(1400.0, 83_500_000, 0, rm_began_anew=True)
    assert accounts.consumed()["root.a"][0] == pytest.approx(83_000_000, rel=0.02)


def test_what_an_earlier_restart_took_from_a_figure_does_not_count_again_while_that_one_is_recovered() -> None:
    """The next restart comes while nobody looks, before the first recovery is over; the application ends meanwhile.

    27,000,000 MiB s counted twice.
    """
    accounts = RmAccounts()

    def look(now_s: float, memory_mb_s: int, held_mb: int, age_s: float, **options: bool) -> None:
        held = Resource(held_mb, held_mb // 1024)
        seen = AppObservation("x", "root.a", memory_mb_s, memory_mb_s // 1024, held, held == ZERO, age_s)
        accounts.observe(now_s, [seen], capacity=Resource(1 << 20, 1 << 10), **options)

    look(0.0, 0, 3072, 0.0)
    look(100.0, 80_000_000, 3072, 100.0)
    # Containers that had ended before the restart are missing in the figure from now on.
    look(160.0, 50_000_000, 3072, 160.0, rm_began_anew=True)
    look(700.0, 51_650_000, 3072, 700.0)
    # It ended at 800 s, and the final figure has everything again.
    look(880.0, 82_150_000, 0, 800.0, rm_began_anew=True)
    assert accounts.consumed()["root.a"][0] == pytest.approx(82_150_000, rel=0.01)


def test_what_an_earlier_restart_took_from_a_figure_does_not_count_again_in_a_final_one() -> None:
    """The first recovery is over; the application ends while the RM restarts, so that its figure never falls again.

    46,000,000 MiB s counted twice.
    """
    accounts = RmAccounts()

    def look(now_s: float, memory_mb_s: int, held_mb: int, age_s: float, **options: bool) -> None:
        held = Resource(held_mb, held_mb // 1024)
        seen = AppObservation("x", "root.a", memory_mb_s, memory_mb_s // 1024, held, held == ZERO, age_s)
        accounts.observe(now_s, [seen], capacity=Resource(1 << 20, 1 << 10), **options)

    look(0.0, 0, 3072, 0.0)
    look(100.0, 80_000_000, 3072, 100.0)
    look(160.0, 50_000_000, 3072, 160.0, rm_began_anew=True)
    look(700.0, 51_650_000, 3072, 700.0)
    look(900.0, 52_264_000, 3072, 900.0)
    look(960.0, 82_550_000, 0, 930.0, rm_began_anew=True)
    assert accounts.consumed()["root.a"][0] == pytest.approx(82_550_000, rel=0.01)
