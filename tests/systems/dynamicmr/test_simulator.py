"""MRv1's slots in virtual time: nothing is lost or given twice; each technique does what it is for, and no more."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.base.errors import InputError
from harness.systems.dynamicmr.rules import Late, Rules
from harness.systems.dynamicmr.simulator.engine import Engine, run_slots
from harness.systems.dynamicmr.simulator.model import (
    Faults,
    Shuffle,
    SlotCluster,
    SlotJob,
    SlotNode,
    SlotResult,
    SlotRun,
)
from harness.systems.dynamicmr.simulator.report import figures
from harness.systems.dynamicmr.simulator.shuffle import Network
from harness.systems.dynamicmr.simulator.state import Attempt


def nodes(count: int, maps: int = 4, reduces: int = 2, racks: int = 1) -> tuple[SlotNode, ...]:
    return tuple(SlotNode(f"n{i}", maps, reduces, f"/r{i % racks}") for i in range(count))


def job(name: str, maps: int = 0, reduces: int = 0, *, pool: str = "p", map_ms: int = 1000, **of: Any) -> SlotJob:
    return SlotJob(name, pool, (map_ms,) * maps, (of.pop("reduce_ms", 2000),) * reduces, **of)


def jobs_strategy() -> st.SearchStrategy[tuple[SlotJob, ...]]:
    one = st.builds(
        lambda maps, reduces, submit, slow, pool, mb: (maps, reduces, submit, slow, pool, mb),
        st.lists(st.integers(1, 4000), max_size=25),
        st.lists(st.integers(1, 4000), max_size=12),
        st.integers(0, 5000),
        st.sampled_from([0.0, 0.05, 0.5, 1.0]),
        st.sampled_from(["a", "b"]),
        st.sampled_from([0.0, 50.0]),
    )
    return st.lists(one, min_size=1, max_size=5).map(
        lambda rows: tuple(
            SlotJob(f"j{i}", pool, tuple(m), tuple(r), submit, slow, mb)
            for i, (m, r, submit, slow, pool, mb) in enumerate(rows)
        )
    )


RULES = st.builds(
    Rules,
    sharing=st.sampled_from(["static", "independent", "dependent", "containers"]),
    fifo=st.booleans(),
    borrowed_map=st.sampled_from([0.0, 0.4, 1.0]),
    borrowed_reduce=st.sampled_from([0.0, 0.4, 1.0]),
    borrowed_of=st.sampled_from(["capacity", "unused"]),
    sepb=st.sampled_from([0.0, 0.5, 1.0]),
    sepb_pool=st.booleans(),
    prescheduling=st.booleans(),
    late=st.builds(Late, on=st.booleans(), lag_ms=st.just(500)),
)


class Watched(Engine):
    """Looks at the accounts after every instant at which something may have changed."""

    def _plan_fetch(self) -> None:
        super()._plan_fetch()
        held = [0, 0]
        for node in self.nodes:
            used = [0, 0]
            for attempt in node.attempts.values():
                used[0 if attempt.on_map_slots else 1] += attempt.units
            assert used == node.used
            if self.rules.sharing == "containers":
                assert sum(used) <= node.map_units + node.reduce_units
            else:
                assert used[0] <= node.map_units
                assert used[1] <= node.reduce_units
            held = [held[0] + used[0], held[1] + used[1]]
        assert sum(pool.held for pool in self.pools) == sum(held)
        lent = [0, 0]
        for node in self.nodes:
            for attempt in node.attempts.values():
                if attempt.is_map != attempt.on_map_slots:
                    lent[0 if attempt.on_map_slots else 1] += attempt.units
        assert lent == self.borrowed
        if self.rules.sharing == "static" and not self.rules.prescheduling:
            assert lent == [0, 0]
        if self.rules.sharing in ("independent", "dependent") and not self.rules.prescheduling:
            assert lent[0] <= self.rules.borrowed_map * self.slots[0] * self.weight[0]
            assert lent[1] <= self.rules.borrowed_reduce * self.slots[1] * self.weight[1]


@settings(max_examples=150, deadline=None)
@given(
    jobs=jobs_strategy(),
    rules=RULES,
    heartbeat=st.sampled_from([0, 300]),
    delay=st.sampled_from([0, 400]),
    weight=st.sampled_from([Fraction(1), Fraction(2), Fraction(3, 2)]),
    faults=st.sampled_from([Faults(), Faults(0.1, 50, 0.2, 4.0)]),
    shuffle=st.sampled_from([Shuffle(), Shuffle(20, 60)]),
    masters=st.booleans(),
)
def test_every_task_ends_once_and_accounts_hold(
    jobs: tuple[SlotJob, ...],
    rules: Rules,
    heartbeat: int,
    delay: int,
    weight: Fraction,
    faults: Faults,
    shuffle: Shuffle,
    masters: bool,
) -> None:
    cluster = SlotCluster(
        nodes(3, racks=2),
        reduce_weight=weight,
        heartbeat_ms=heartbeat,
        locality_delay_ms=delay,
        rack_factor=1.5,
        remote_factor=2.0,
        shuffle=shuffle,
        masters=masters,
    )
    run = SlotRun(cluster, jobs, rules, faults, seed=3, time_limit_ms=10**7)
    result = Watched(run).play(None)
    assert result.finished
    assert result.counts.starts == result.counts.ends
    for spec, end in zip(sorted(jobs, key=lambda j: (j.submit_ms, j.id)), result.jobs, strict=True):
        assert end.id == spec.id
        assert not end.failed
        assert end.tasks_ended == end.tasks == len(spec.maps_ms) + len(spec.reduces_ms)
        assert end.finished_ms >= end.submitted_ms
    again = run_slots(run)
    assert again == result


@settings(max_examples=60, deadline=None)
@given(jobs=jobs_strategy(), sharing=st.sampled_from(["independent", "dependent"]))
def test_dhsa_leaves_no_slot_idle_while_tasks_wait(jobs: tuple[SlotJob, ...], sharing: Any) -> None:
    """Without weights, locality and heartbeats: whenever tasks wait, all slots are busy (section 4.2.2.3)."""

    class Busy(Watched):
        def _plan_fetch(self) -> None:
            super()._plan_fetch()
            waiting = sum(job.maps_waiting + job.reduces_waiting for job in self.active)
            maps = sum(job.maps_waiting + job.running[0] for job in self.active)
            reduces = sum(job.reduces_waiting + job.running[1] for job in self.active)
            busy = sum(pool.held for pool in self.pools)
            if sharing == "dependent":
                assert not waiting or busy == sum(self.capacity)
            elif waiting and (maps >= self.slots[0]) == (reduces >= self.slots[1]):
                # PI-DHSA lends only while the other kind's slots suffice: case 4 of Algorithm 6 moves nothing, so that
                # what was lent before comes back task by task.
                assert busy >= min(maps, self.slots[0]) + min(reduces, self.slots[1]) - sum(self.borrowed)

    result = Busy(SlotRun(SlotCluster(nodes(2), replicas=0), jobs, Rules(sharing=sharing))).play(None)
    assert result.finished


def running(result: SlotResult, kind: str) -> list[int]:
    return [sum(getattr(sample, kind)) for sample in result.samples]


def test_algorithm_6_read_literally_lends_only_half() -> None:
    """Lines 12 to 14 count what is still to be lent, not what has been: the fixed point is half of the map slots."""
    capacity, demand, reduce_capacity = 90, 200, 18
    borrowed = 0
    for _ in range(1000):
        extra = min(max(capacity - borrowed, 0), demand - reduce_capacity)
        usable = (0 + extra) / capacity * capacity  # updatedMapSlotsLoadFactor times the map slots
        borrowed += 1 if usable > borrowed else 0
    assert borrowed == 45
    cluster = SlotCluster(nodes(9, 10, 2), replicas=0)
    result = run_slots(SlotRun(cluster, (job("j", 0, 200),), Rules(sharing="independent")))
    assert result.counts.most_reduces == 108


def test_early_reduces_keep_what_they_hold() -> None:
    """With slow-start, reduces that wait for maps hold slots that DHSA cannot lend: worse than one after the other."""
    cluster = SlotCluster(nodes(9, 2, 10), replicas=0)
    late = run_slots(SlotRun(cluster, (job("j", 320, 200, slow_start=1.0),), Rules(sharing="independent")))
    early = run_slots(SlotRun(cluster, (job("j", 320, 200, slow_start=0.05),), Rules(sharing="independent")))
    assert late.makespan_ms == 3 * 1000 + 2 * 2000
    assert early.makespan_ms > 2 * late.makespan_ms


def test_borrowing_percentages() -> None:
    """Each percentage bounds what the other kind has of its slots; more lending never slows one job down here."""
    cluster = SlotCluster(nodes(9, 10, 2), replicas=0)
    one = (job("Sort", 320, 200, map_ms=9000, reduce_ms=24000, slow_start=1.0),)
    times = []
    for part in (0.0, 0.25, 0.5, 0.75, 1.0):
        result = run_slots(SlotRun(cluster, one, Rules(sharing="independent", borrowed_map=part, borrowed_reduce=0.0)))
        assert result.counts.most_reduces == 18 + int(90 * part)
        assert result.counts.most_maps == 90
        times.append(result.makespan_ms)
    assert all(later <= earlier for earlier, later in pairwise(times))
    assert times[0] == 4 * 9000 + 12 * 24000
    assert times[-1] == 4 * 9000 + 2 * 24000


def test_delay_scheduling_trades_time_for_locality() -> None:
    jobs = tuple(job(f"j{i}", 20, pool=f"p{i}", map_ms=5000) for i in range(4))
    cluster = SlotCluster(nodes(20, 2, 1, racks=2), heartbeat_ms=300, replicas=1)

    def local(delay_ms: int, **of: Any) -> SlotResult:
        return run_slots(SlotRun(replace(cluster, locality_delay_ms=delay_ms), jobs, Rules(**of)))

    none, some, long = local(0), local(450), local(20_000)
    assert none.counts.node_local < some.counts.node_local < long.counts.node_local == 80
    assert local(450, delay_scheduling=False).counts == none.counts
    # Where a map starts, it starts once: at its data's node, in its rack, or elsewhere.
    assert none.counts.rack_local > 0
    assert [figures(run)["maps_started"] for run in (none, some, long)] == [80, 80, 80]
    assert long.makespan_ms > none.makespan_ms  # all the same, tasks do not take longer elsewhere


def test_prescheduling_uses_slots_that_balancing_denies() -> None:
    """Fig. 4.6: few maps on many slots; each node's share is full before its local maps are served."""
    jobs = tuple(job(f"j{i}", 16, pool=f"p{i}", map_ms=20_000) for i in range(2))
    cluster = SlotCluster(nodes(9, 10, 2, racks=2), heartbeat_ms=1000, locality_delay_ms=1500, replicas=1)
    without = run_slots(SlotRun(cluster, jobs, Rules()))
    with_it = run_slots(SlotRun(cluster, jobs, Rules(prescheduling=True)))
    assert without.counts.prescheduled == 0
    assert with_it.counts.prescheduled > 0
    assert with_it.counts.node_local > without.counts.node_local


@pytest.mark.parametrize(("most", "maps"), [(100_000, 6), (1, 5), (0, 4)])
def test_prescheduling_borrows_reduce_slots_up_to_its_limit(
    most: int, maps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Six maps with every block on the first of two nodes: 3 by balancing, one more by case P1, the rest by P2."""
    monkeypatch.setattr(
        "harness.systems.dynamicmr.simulator.running.place_blocks", lambda job, cluster, draw: [(0,)] * len(job.maps_ms)
    )
    rules = Rules(sharing="independent", prescheduling=True, borrowable=most)
    result = run_slots(SlotRun(SlotCluster(nodes(2), replicas=1), (job("j", 6, map_ms=5000),), rules))
    assert result.counts.node_local == maps
    assert result.counts.maps_on_reduce_slots == maps - 4
    assert result.counts.prescheduled == maps - 3


def straggling(**of: Any) -> SlotResult:
    """Ten maps, one of which takes ten times as long in its first attempt."""
    late = Late(on=of.pop("late", True), lag_ms=2000)

    class Slow(Engine):
        def _duration(self, attempt: Any, work: int, tried: int) -> tuple[int, bool]:
            slow = attempt.is_map and attempt.task == 3 and tried == 1 and attempt.job.index == 0
            return (work * 10 if slow else work), False

    second = (job("k", of.pop("others", 0), map_ms=1000, submit_ms=10),)
    cluster = SlotCluster(nodes(5, 2, 1), replicas=0)
    jobs = (job("j", 10, map_ms=1000), *(second if second[0].maps_ms else ()))
    return Slow(SlotRun(cluster, jobs, Rules(late=late, **of))).play(None)


def test_late_copies_the_straggler() -> None:
    assert straggling(late=False).makespan_ms == 10_000
    result = straggling()
    # Slow from 2 s on; looked at each second; the copy takes one more.
    assert result.makespan_ms <= 4000
    assert (result.counts.speculative_maps, result.counts.speculative_won) == (1, 1)


def test_sepb_lets_waiting_tasks_go_first_and_kills_what_is_twice_the_average() -> None:
    plain = straggling(others=60)
    balanced = straggling(others=60, sepb=1.0, kill_factor=0.0)
    # The copy waits until the second job has no task waiting.
    assert plain.jobs[0].finished_ms < balanced.jobs[0].finished_ms
    killing = straggling(others=60, sepb=1.0)
    assert killing.counts.killed_slow == 1
    assert killing.counts.speculative_maps == 0
    assert killing.jobs[0].finished_ms < balanced.jobs[0].finished_ms
    assert killing.jobs[0].tasks_ended == 10
    nothing_checked = straggling(others=60, sepb=0.0)
    assert nothing_checked.counts == plain.counts


def test_failed_tasks_are_tried_again_until_the_job_fails() -> None:
    cluster = SlotCluster(nodes(2), replicas=0)
    result = run_slots(SlotRun(cluster, (job("j", 40),), Rules(), Faults(failure=0.2, max_attempts=50)))
    assert result.counts.failed > 0
    assert result.failed_jobs == 0
    broken = run_slots(SlotRun(cluster, (job("j", 40), job("k", 3)), Rules(), Faults(failure=1.0, max_attempts=3)))
    assert broken.failed_jobs == 2
    assert broken.finished


def test_a_killed_attempt_is_no_failure() -> None:
    """max_attempts bounds how often a task fails: SEPB's kills are not among them."""
    cluster = SlotCluster(nodes(1, 4, 0), replicas=0)
    times = (1000,) * 8 + (20_000,)
    one = SlotJob("j", "p", times, ())
    rules = Rules(sepb=1.0, kill_factor=2.0, late=Late(on=True, lag_ms=500))

    def fails_at(tried: int) -> SlotResult:
        class Drawn(Engine):
            def _duration(self, attempt: Attempt, work: int, attempts: int) -> tuple[int, bool]:
                return work, attempt.task == 8 and attempts == tried

        return Drawn(SlotRun(cluster, (one,), rules, Faults(failure=0.1, max_attempts=2))).play(None)

    result = fails_at(2)
    assert (result.counts.killed_slow, result.counts.failed) == (1, 1)
    # Killed, failed once, then done: one failure of the two that end a job.
    assert result.failed_jobs == 0
    assert result.jobs[0].tasks_ended == 9


def test_a_wait_that_the_end_of_the_run_cuts_off_counts() -> None:
    """Pool b gets nothing while a's tasks run, and the run is cut before they end."""
    cluster = SlotCluster(nodes(1, 1, 0), replicas=0)
    two = (job("a", 1, pool="a", map_ms=100_000), job("b", 1, pool="b", submit_ms=10_000))
    cut = run_slots(SlotRun(cluster, two, time_limit_ms=60_000, rules=Rules()))
    assert not cut.finished
    assert cut.longest_wait_ms == {"a": 0, "b": 50_000}
    assert cut.longest_wait_at_ms["b"] == 60_000
    whole = run_slots(SlotRun(cluster, two, Rules()))
    assert whole.longest_wait_ms == {"a": 0, "b": 90_000}


@pytest.mark.parametrize("other", [False, True])
def test_a_pool_without_jobs_does_not_wait(other: bool) -> None:
    """A job fails with tasks waiting; the time until the pool's next job is nobody's wait."""
    cluster = SlotCluster(nodes(1, 2 if other else 1, 0), replicas=0)

    class Fails(Engine):
        def _duration(self, attempt: Attempt, work: int, attempts: int) -> tuple[int, bool]:
            return work, attempt.job.spec.id == "fails"

    jobs = (job("fails", 5, pool="p"), job("next", 1, pool="p", submit_ms=500_000))
    if other:
        jobs = (*jobs, job("long", 1, pool="q", map_ms=600_000))
    result = Fails(SlotRun(cluster, jobs, Rules(), Faults(failure=0.5, max_attempts=1))).play(None)
    assert [one.failed for one in result.jobs if one.pool == "p"] == [True, False]
    assert result.longest_wait_ms["p"] == 1000


@pytest.mark.parametrize("sharing", ["independent", "dependent"])
def test_the_percentage_is_of_all_slots_or_of_the_unused_ones(sharing: Any) -> None:
    """Ten map slots, six of them busy with maps, and reduces enough: half is five of ten (four are free), or two of
    four. Algorithm 6, line 13, against its text and Table 4.3."""
    cluster = SlotCluster(nodes(1, 10, 1), replicas=0)
    # The reduces come when the maps run.
    jobs = (SlotJob("maps", "p", (9000,) * 6, (), 0), SlotJob("reduces", "p", (), (1000,) * 12, 10))
    half = Rules(sharing=sharing, borrowed_map=0.5)
    assert run_slots(SlotRun(cluster, jobs, half)).counts.most_reduces == 1 + 4
    unused = replace(half, borrowed_of="unused")
    assert run_slots(SlotRun(cluster, jobs, unused)).counts.most_reduces == 1 + 2
    # Without maps both are the same, and so is all of them.
    assert run_slots(SlotRun(cluster, jobs[1:], unused)).counts.most_reduces == 1 + 5
    assert run_slots(SlotRun(cluster, jobs, replace(unused, borrowed_map=1.0))).counts.most_reduces == 1 + 4


@pytest.mark.parametrize("sharing", ["independent", "dependent"])
def test_the_percentage_holds_for_whole_tasks_of_any_weight(sharing: Any) -> None:
    """Three of four map slots may be lent; a reduce takes two of them, so one reduce is lent to, not two."""
    cluster = SlotCluster(nodes(1, 4, 1), reduce_weight=Fraction(2), replicas=0)
    one = (job("j", 0, 20),)
    rules = Rules(sharing=sharing, borrowed_map=0.75)
    assert run_slots(SlotRun(cluster, one, rules)).counts.most_reduces == 1 + 1
    assert run_slots(SlotRun(cluster, one, replace(rules, borrowed_map=1.0))).counts.most_reduces == 1 + 2
    # The other way round: maps of half a reduce slot, of one slot in four.
    cluster = SlotCluster(nodes(1, 1, 4), reduce_weight=Fraction(2), replicas=0)
    rules = Rules(sharing=sharing, borrowed_reduce=0.25)
    assert run_slots(SlotRun(cluster, (job("j", 20),), rules)).counts.most_maps == 1 + 2
    # 0.7 of ten is seven, not the six of binary fractions (0.7 x 90 is below 63).
    cluster = SlotCluster(nodes(9, 10, 1), replicas=0)
    rules = Rules(sharing=sharing, borrowed_map=0.7)
    assert run_slots(SlotRun(cluster, (job("j", 0, 200),), rules)).counts.most_reduces == 9 + 63


def test_the_network_is_shared_and_moves_all_data() -> None:
    network = Network(Shuffle(node_mb_s=100, cluster_mb_s=150))
    network.start(1, 0, 100, 0)
    assert network.total_mb_s == 100  # the node's limit
    network.start(2, 0, 100, 0)
    network.start(3, 1, 100, 0)
    # The cluster's 150 would be 50 each, which is also what the first node leaves each of its two.
    assert network.total_mb_s == 150
    assert network.next_end_ms() == 2000
    network.advance(2000)
    assert network.done() == [1, 2, 3]
    assert network.moved_mb == pytest.approx(300)


def test_shuffling_takes_the_time_of_its_data() -> None:
    """One reduce of 300 MB over 100 MB/s, all maps ended: 3 s, then its own 2 s."""
    cluster = SlotCluster(nodes(1), replicas=0, shuffle=Shuffle(100, 0))
    result = run_slots(SlotRun(cluster, (job("j", 4, 1, slow_start=1.0, shuffle_mb=300.0),), Rules()))
    assert result.makespan_ms == 1000 + 3000 + 2000
    assert result.shuffle_mb == pytest.approx(300)
    # Begun with the first map's end, it fetches while the others run.
    early = run_slots(SlotRun(cluster, (job("j", 8, 1, slow_start=0.0, shuffle_mb=300.0),), Rules()))
    assert early.makespan_ms < 2000 + 3000 + 2000


def test_containers_hold_masters_and_ramp_reduces_up() -> None:
    cluster = SlotCluster(nodes(2, 5, 1), replicas=0, masters=True)
    jobs = tuple(job(f"j{i}", 20, 5, slow_start=0.05) for i in range(3))
    result = run_slots(SlotRun(cluster, jobs, Rules(sharing="containers")))
    assert result.finished
    # 12 containers, three of them masters at once at most; each master counts as a start.
    assert result.counts.starts == 3 + 3 * 25
    assert max(sum(sample.held) for sample in result.samples) <= 12


def test_a_map_done_again_gets_a_slot_from_waiting_reduces() -> None:
    """The map ran on a reduce slot, which goes to a reduce when it fails; the map slots are lent to reduces that wait
    for the map: one of them gives way."""

    class Once(Engine):
        def _duration(self, attempt: Any, work: int, tried: int) -> tuple[int, bool]:
            return work, attempt.is_map and attempt.task == 5 and tried == 1

    jobs = (SlotJob("j", "p", (1000, 1000, 1000, 1000, 1000, 3000), (1000,) * 20, slow_start=0.5),)
    rules = Rules(sharing="independent")
    result = Once(SlotRun(SlotCluster(nodes(1), replicas=0), jobs, rules)).play(None)
    assert result.finished
    assert result.counts.failed == 1
    assert result.counts.reclaimed == 1


@pytest.mark.parametrize(
    ("run", "message"),
    [
        (SlotRun(SlotCluster(()), (), Rules()), "no node"),
        (SlotRun(SlotCluster(nodes(1, 0, 2)), (job("j", 1),), Rules()), "no map slot"),
        (SlotRun(SlotCluster(nodes(1, 0, 0)), (job("j", 1),), Rules(sharing="independent")), "no map slot"),
        (SlotRun(SlotCluster(nodes(1)), (job("j", 1), job("j", 1)), Rules()), "two jobs"),
        (SlotRun(SlotCluster(nodes(1)), (job("j", 1, map_ms=0),), Rules()), "takes no time"),
        (SlotRun(SlotCluster(nodes(1), map_weight=Fraction(0)), (job("j", 1),), Rules()), "weight"),
    ],
)
def test_what_cannot_be_is_refused(run: SlotRun, message: str) -> None:
    with pytest.raises(InputError, match=message):
        run_slots(run)


@pytest.mark.parametrize("heartbeat", [0, 1000])
@pytest.mark.parametrize(
    "rules", [Rules(sharing="independent"), Rules(sharing="dependent"), Rules(sharing="containers")]
)
def test_tasks_that_fit_nowhere_are_an_error(rules: Rules, heartbeat: int) -> None:
    """A reduce weighs three map slots, and there are two."""
    cluster = SlotCluster(nodes(1, 2, 0), reduce_weight=Fraction(3), replicas=0, heartbeat_ms=heartbeat)
    with pytest.raises(InputError, match="job j: its tasks wait for slots that they never get"):
        run_slots(SlotRun(cluster, (job("j", 2, 1),), rules))


def test_the_other_kinds_slots_do_when_there_are_none_of_ones_own() -> None:
    cluster = SlotCluster(nodes(1, 0, 3), replicas=0)
    result = run_slots(SlotRun(cluster, (job("j", 6, 3, slow_start=1.0),), Rules(sharing="independent")))
    assert result.makespan_ms == 2 * 1000 + 2000
