"""Each switch of DynamicMR and of what it is compared with does something, and what it is for: off and on differ."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest

from harness.policies.registry import make_policy
from harness.systems.dynamicmr.policies import DynamicMR, PdDhsa, PiDhsa, SlotSettings
from harness.systems.dynamicmr.rules import Late, Rules, Sharing, slot_rules
from harness.systems.dynamicmr.simulator.engine import Engine, run_slots
from harness.systems.dynamicmr.simulator.model import SlotCluster, SlotJob, SlotNode, SlotResult, SlotRun


def nodes(count: int, maps: int = 4, reduces: int = 2) -> tuple[SlotNode, ...]:
    return tuple(SlotNode(f"n{i}", maps, reduces) for i in range(count))


def maps_only(name: str, count: int, *, pool: str = "p", ms: int = 1000, submit_ms: int = 0) -> SlotJob:
    return SlotJob(name, pool, (ms,) * count, (), submit_ms)


def ends(result: SlotResult) -> dict[str, int]:
    return {job.id: job.finished_ms for job in result.jobs}


# --- the policies' settings -------------------------------------------------------------------------------------------

#: A value that is neither the default of pi-dhsa nor that of dynamicmr. What is told of PoolLevel's percentage is seen
#: in that mode only; map_slots is the experiment's business (tests/experiments).
OTHER: dict[str, Any] = {
    "scheduler": "fifo",
    "mode": "static",
    "borrowed_map": "0.5",
    "borrowed_reduce": "0.5",
    "borrowed_of": "unused",
    "sepb_mode": "poollevel",
    "sepb": "0.5",
    "sepb_pool": "0.5",
    "kill_factor": "3",
    "prescheduling": {"pi-dhsa": "true", "dynamicmr": "false"},
    "borrowable": "7",
    "delay_scheduling": "false",
    "speculation": "off",
    "ramp_up": "0.25",
    "map_limit": "3",
    "reduce_limit": "3",
}


def told(policy: str, sets: dict[str, str]) -> Rules:
    rules = slot_rules(make_policy(policy, sets), speculation=True)
    assert rules is not None
    return rules


def test_every_setting_is_tried() -> None:
    assert set(OTHER) == {field.name for field in fields(SlotSettings)} - {"map_slots"}


@pytest.mark.parametrize("policy", ["pi-dhsa", "dynamicmr"])
@pytest.mark.parametrize("name", OTHER)
def test_every_setting_reaches_the_rules(policy: str, name: str) -> None:
    value = OTHER[name][policy] if isinstance(OTHER[name], dict) else OTHER[name]
    base = {"sepb_mode": "poollevel"} if name == "sepb_pool" else {}
    assert told(policy, {**base, name: value}) != told(policy, base)


@pytest.mark.parametrize(("alias", "name"), PiDhsa.aliases.items())
def test_the_thesis_names_are_the_same_settings(alias: str, name: str) -> None:
    value = {"mode": "PoolDependent", "sepb_mode": "PoolLevel", "prescheduling": "true"}.get(name, "0.5")
    value = "7" if name == "borrowable" else value
    base = {"sepb_mode": "poollevel"} if name == "sepb_pool" else {}
    assert told("pi-dhsa", {**base, alias: value}) == told("pi-dhsa", {**base, name: value.lower()})


def test_what_the_policies_switch_on() -> None:
    assert told("fair", {}).sharing == told("fifo", {}).sharing == "static"
    assert (told("fifo", {}).fifo, told("fair", {}).fifo) == (True, False)
    assert told(PiDhsa.name, {}).sharing == told(DynamicMR.name, {}).sharing == "independent"
    assert told(PdDhsa.name, {}).sharing == "dependent"
    assert (told("dynamicmr", {}).sepb, told("dynamicmr", {}).prescheduling) == (1.0, True)
    assert (told("pi-dhsa", {}).sepb, told("pi-dhsa", {}).prescheduling) == (0.0, False)
    assert slot_rules(make_policy("fair", {}), speculation=False) == Rules()


# --- who is first -----------------------------------------------------------------------------------------------------


def test_fifo_and_fifo_pools() -> None:
    """Two jobs of 24 maps on 12 slots: both at once, or one after the other."""
    cluster = SlotCluster(nodes(3), replicas=0)
    jobs = (maps_only("j", 24, pool="a"), maps_only("k", 24, pool="b"))
    assert ends(run_slots(SlotRun(cluster, jobs, Rules()))) == {"j": 4000, "k": 4000}
    assert ends(run_slots(SlotRun(cluster, jobs, Rules(fifo=True)))) == {"j": 2000, "k": 4000}
    # In one pool its own order counts.
    jobs = (maps_only("j", 24), maps_only("k", 24))
    assert ends(run_slots(SlotRun(cluster, jobs, Rules()))) == {"j": 4000, "k": 4000}
    assert ends(run_slots(SlotRun(cluster, jobs, Rules(fifo_pools=frozenset("p"))))) == {"j": 2000, "k": 4000}


# --- copies -----------------------------------------------------------------------------------------------------------


class Straggling(Engine):
    """The first attempts of the tasks named take ten times as long."""

    slow: tuple[tuple[str, int], ...] = (("j", 3),)

    def _duration(self, attempt: Any, work: int, tried: int) -> tuple[int, bool]:
        slow = attempt.is_map and tried == 1 and (attempt.job.spec.id, attempt.task) in self.slow
        return (work * 10 if slow else work), False


class Three(Straggling):
    slow = (("j", 1), ("j", 3), ("j", 5))


def play(
    kind: type[Engine], jobs: tuple[SlotJob, ...], rules: Rules, where: tuple[SlotNode, ...] = nodes(5, 2, 1)
) -> SlotResult:
    return kind(SlotRun(SlotCluster(where, replicas=0), jobs, rules)).play(None)


def test_late_waits_for_its_lag() -> None:
    jobs = (maps_only("j", 10),)
    early = play(Straggling, jobs, Rules(late=Late(on=True, lag_ms=2000)))
    later = play(Straggling, jobs, Rules(late=Late(on=True, lag_ms=5000)))
    assert (early.makespan_ms, later.makespan_ms) == (3000, 6000)
    assert play(Straggling, jobs, Rules(late=Late(on=True, lag_ms=9500))).counts.speculative_maps == 0


def test_late_copies_only_what_is_slow_enough() -> None:
    """One of ten tasks with a tenth of the others' rate lies three standard deviations below the mean."""
    jobs = (maps_only("j", 10),)
    for slow_task, copies in ((2.9, 1), (3.1, 0)):
        rules = Rules(late=Late(on=True, lag_ms=2000, slow_task=slow_task))
        assert play(Straggling, jobs, rules).counts.speculative_maps == copies


def test_late_copies_only_so_many_at_once() -> None:
    """Of ten map slots: one, two, all."""
    jobs = (maps_only("j", 10),)
    ended = []
    for cap in (0.1, 0.2, 1.0):
        result = play(Three, jobs, Rules(late=Late(on=True, lag_ms=2000, cap=cap)), nodes(10, 1, 1))
        assert result.counts.speculative_won == 3
        ended.append(result.makespan_ms)
    # Copies take a second each: three after each other, two and one, all three.
    assert ended == [5000, 4000, 3000]


def test_sepb_checks_as_many_jobs_as_its_percentage_says() -> None:
    """Three jobs, the last of which has tasks waiting: two thirds of them do not see it."""
    jobs = (
        maps_only("j", 4, pool="a"),
        maps_only("k", 2, pool="b", ms=20_000),
        maps_only("l", 60, pool="c", submit_ms=10),
    )
    waits = {}
    for part in (0.0, 0.3, 0.6, 1.0):
        rules = Rules(late=Late(on=True, lag_ms=2000), sepb=part, kill_factor=0.0)
        # j is looked at first: it runs least.
        waits[part] = ends(play(Straggling, jobs, rules))["j"]
    assert waits[0.0] == waits[0.3] == waits[0.6] < waits[1.0]


def test_sepb_of_the_pool_does_not_see_other_pools() -> None:
    jobs = (maps_only("j", 10, pool="a"), maps_only("k", 60, pool="b"))

    def ended(**of: Any) -> int:
        return ends(play(Straggling, jobs, Rules(late=Late(on=True, lag_ms=2000), kill_factor=0.0, **of)))["j"]

    none, pool, everywhere = ended(), ended(sepb=1.0, sepb_pool=True), ended(sepb=1.0)
    assert none == pool < everywhere
    # Within the pool it does what it does over all.
    jobs = (maps_only("j", 10, pool="a"), maps_only("k", 60, pool="a"))
    assert ended(sepb=1.0, sepb_pool=True) == ended(sepb=1.0) > ended()


@pytest.mark.parametrize(
    ("sharing", "lent", "copied_late"),
    [("static", 1.0, False), ("independent", 0.0, False), ("independent", 1.0, True)],
)
def test_sepb_counts_tasks_that_may_borrow_the_slot(sharing: Sharing, lent: float, copied_late: bool) -> None:
    """Conditions (1) to (3) of section 4.2.3: reduces that wait hold a map's copy back where they may have its slot."""
    jobs = (maps_only("j", 10), SlotJob("k", "p", (), (3000,) * 40, 10))
    rules = Rules(sharing=sharing, borrowed_map=lent, late=Late(on=True, lag_ms=2000), sepb=1.0, kill_factor=0.0)
    assert (ends(play(Straggling, jobs, rules))["j"] > 4000) == copied_late


def test_kill_factor_says_what_is_too_long() -> None:
    jobs = (maps_only("j", 10),)
    for factor, end in ((2.0, 4000), (5.0, 7000), (0.0, 10_000)):
        rules = Rules(late=Late(on=False), sepb=1.0, kill_factor=factor)
        result = play(Straggling, jobs, rules)
        assert result.counts.killed_slow == (factor > 0)
        assert result.makespan_ms == end


# --- Slot PreScheduling -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("most", "local"), [(100_000, 6), (1, 5), (0, 4)])
def test_prescheduling_under_pd_dhsa(most: int, local: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fig. 4.8: six maps whose blocks lie on the first of two nodes; its four map slots, then its reduce slots."""
    monkeypatch.setattr(
        "harness.systems.dynamicmr.simulator.running.place_blocks", lambda job, cluster, draw: [(0,)] * len(job.maps_ms)
    )

    def play_it(**of: Any) -> SlotResult:
        rules = Rules(sharing="dependent", borrowable=most, **of)
        return run_slots(SlotRun(SlotCluster(nodes(2), replicas=1), (maps_only("j", 6, ms=5000),), rules))

    with_it, without = play_it(prescheduling=True), play_it()
    assert with_it.counts.node_local == local
    assert with_it.counts.maps_on_reduce_slots == local - 4
    assert with_it.counts.prescheduled > 0 == without.counts.prescheduled
    assert without.counts.node_local < with_it.counts.node_local


@pytest.mark.parametrize("sharing", ["independent", "dependent"])
def test_a_reduce_gets_a_map_slot_for_the_reduce_slot_that_was_lent(
    sharing: Sharing, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Case P3: a local map sits on a reduce slot by P2; a reduce that needs one takes an idle map slot, and only then.

    DHSA itself lends no map slot here.
    """
    monkeypatch.setattr(
        "harness.systems.dynamicmr.simulator.running.place_blocks", lambda job, cluster, draw: [(0,)] * len(job.maps_ms)
    )
    jobs = (maps_only("j", 6, ms=5000), SlotJob("k", "p", (), (1000,) * 4, 10))

    def play_it(borrowable: int) -> SlotResult:
        rules = Rules(sharing=sharing, borrowed_map=0.0, prescheduling=True, borrowable=borrowable)
        return run_slots(SlotRun(SlotCluster(nodes(2), replicas=1), jobs, rules))

    with_it, without = play_it(100), play_it(0)
    assert (with_it.counts.maps_on_reduce_slots > 0, without.counts.maps_on_reduce_slots) == (True, 0)
    assert (with_it.counts.reduces_on_map_slots > 0, without.counts.reduces_on_map_slots) == (True, 0)
    assert ends(with_it)["k"] == 1010 <= ends(without)["k"]


# --- containers -------------------------------------------------------------------------------------------------------


def containers(**of: Any) -> SlotResult:
    """20 maps and 10 reduces on 12 containers; reduces may begin with the first map's end."""
    job = SlotJob("j", "p", (1000,) * 15 + (3000,) * 5, (2000,) * 10, slow_start=0.05)
    return run_slots(SlotRun(SlotCluster(nodes(2), replicas=0), (job,), Rules(sharing="containers", **of)))


def test_ramp_up_bounds_reduces_while_maps_wait() -> None:
    job = SlotJob("j", "p", (1000,) * 60, (2000,) * 30, slow_start=0.05)

    def most(part: float) -> int:
        rules = Rules(sharing="containers", ramp_up=part)
        cluster = SlotCluster(nodes(2), replicas=0)
        result = run_slots(SlotRun(cluster, (job,), rules, sample_ms=0))
        # Maps wait until the last 60 - 12 of them have begun.
        begun = [sample for sample in result.samples if sum(sample.maps)]
        return max(sum(sample.reduces) for sample in begun[:-1] if sum(sample.demand) - sum(sample.held) > 30)

    assert (most(0.0), most(0.5)) == (0, 6)
    assert 0 < most(0.25) <= 3


def test_running_limits_of_a_job() -> None:
    free, maps, reduces = containers(), containers(map_limit=3), containers(reduce_limit=2)
    assert (free.counts.most_maps, maps.counts.most_maps) == (12, 3)
    assert (free.counts.most_reduces, reduces.counts.most_reduces) == (10, 2)
    assert free.makespan_ms < min(maps.makespan_ms, reduces.makespan_ms)


# --- what is done again -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sharing", ["independent", "dependent"])
@pytest.mark.parametrize("heartbeat_ms", [0, 100])
def test_a_map_done_again_gets_what_balancing_allows(heartbeat_ms: int, sharing: Sharing) -> None:
    """Four reduces borrow map slots while another job has the reduce slots; that one ends, less may be borrowed, and
    the map that they wait for fails. Two map slots are free, and load balancing refuses them: reduces give way."""

    class Once(Engine):
        def _duration(self, attempt: Any, work: int, tried: int) -> tuple[int, bool]:
            return work, attempt.is_map and attempt.task == 1 and tried == 1

    jobs = (SlotJob("j", "p", (1000, 3000), (1000,) * 4, slow_start=0.5), SlotJob("k", "p", (), (2500,) * 2))
    cluster = SlotCluster(nodes(1, 6, 2), replicas=0, heartbeat_ms=heartbeat_ms)
    run = SlotRun(cluster, jobs, Rules(sharing=sharing), time_limit_ms=100_000)
    result = Once(run).play(None)
    assert result.finished
    assert result.counts.failed == 1
    assert result.counts.reclaimed == (2 if sharing == "independent" else 0)
    assert 7000 <= result.makespan_ms <= 7000 + 5 * heartbeat_ms
