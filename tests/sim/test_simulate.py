"""Whole simulated runs: applications of all kinds, exact accounting, determinism, heartbeats passed over, bad input."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from harness.base.errors import InputError, InternalError
from harness.control.virtual import simulate_outside
from harness.model.jobs import Duration, JobSpec, NodeSpec, Stage, TaskFaults
from harness.model.plan import QueueOrder
from harness.model.resources import Resource
from harness.policies.registry import make_policy
from harness.sim.setup import Delays, SimSetup
from harness.sim.simulate import Simulation, simulate
from harness.yarn.fair.parse import parse_allocations

VARIANTS: dict[str, dict[str, Any]] = {
    "stock": {},
    "faults": {"faults": TaskFaults(failure=0.05, straggler=0.05, speculation=True)},
    "ltrf": {"policy": make_policy("ltrf", {})},
    "all of the ledger": {
        "policy": make_policy("hltrf", {"discount": "0.5", "round": "100", "pseudo": "true", "t_wait": "3"})
    },
    "horizon": {"policy": make_policy("hltrf", {"horizon_s": "80", "affinity": "0.5"})},
    "fifo": {"policy": make_policy("fifo", {})},
    "assignmultiple": {"conf": {"yarn.scheduler.fair.assignmultiple": "true"}},
    "preemption": {
        "conf": {"yarn.scheduler.fair.preemption": "true", "yarn.scheduler.fair.waitTimeBeforeKill": "2000"}
    },
    "ltrf between applications": {"queue_orders": {"root.a": QueueOrder("ltrf")}, "policy": make_policy("ltrf", {})},
}


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda name: name.replace(" ", "-"))
def test_same_seed_same_result_and_heartbeats_passed_over_change_nothing(cases: Any, variant: str) -> None:
    first = simulate(cases.mixed(**VARIANTS[variant]))
    assert first.finished
    assert first.failed_jobs == 0
    assert int(first.jobs["tasks"].sum()) == cases.TASKS_OF_MIXED
    assert cases.digest(first) == cases.digest(simulate(cases.mixed(**VARIANTS[variant])))
    every = simulate(cases.mixed(skip_heartbeats=False, **VARIANTS[variant]))
    assert every.heartbeats_skipped == 0 < first.heartbeats_skipped
    assert every.heartbeats == first.heartbeats + first.heartbeats_skipped
    assert cases.digest(first) == cases.digest(every)


@pytest.mark.parametrize("policy", ["static", "fair", "ltrf", "hltrf", "fifo", "drf"])
def test_from_outside(cases: Any, policy: str) -> None:
    setup = cases.mixed(policy=make_policy(policy, {}), mode="outside", period_s=5.0)
    first, again = simulate_outside(setup), simulate_outside(setup)
    assert first.finished
    assert int(first.jobs["tasks"].sum()) == cases.TASKS_OF_MIXED
    assert cases.digest(first) == cases.digest(again)
    assert first.writes
    # What is decided at a tick is in force 20 ms later.
    assert all(abs((time_s - 0.02) % 5.0) < 1e-6 for time_s, _ in first.writes)


def test_the_rms_own_poll_loads_the_file_when_it_has_been_still(cases: Any) -> None:
    setup = cases.mixed(policy=make_policy("ltrf", {}), mode="outside", period_s=1.0, poll_s=10.0)
    result = simulate_outside(setup)
    assert result.writes
    assert all(time_s % 10 == 0 for time_s, _ in result.writes)
    # As the controller of a real cluster: no file is replaced before the poll has had the time to find it.
    written = [made["time_s"] for made in result.decisions if "weights" in made]
    assert len(written) > 2
    assert all(later - earlier >= 16.0 for earlier, later in pairwise(written))
    assert len(result.writes) >= len(written) - 1


def test_one_job_by_hand(cases: Any) -> None:
    """AM, maps in two waves on four containers, reduces after the last map: every delay is as documented."""
    job = cases.mapreduce("j", "a", 5, 1, seconds=10.0)
    quiet = Delays(am_response_heartbeats=0)
    result = simulate(cases.setup([job], count=1, delays=quiet))
    tasks = result.tasks
    assert tasks is not None
    beat = round(result.jobs["started_s"][0] * 1000)  # the node's phase
    by_end = sorted(zip(tasks["granted_ms"], tasks["start_ms"], tasks["end_ms"], tasks["stage"], strict=True))
    # The AM's first heartbeat is at its grant and asks for all maps; one container a heartbeat, from the next one on.
    assert [int(row[0]) for row in by_end[:3]] == [beat + 1000, beat + 2000, beat + 3000]
    for granted, start, end, _ in by_end:
        assert start == granted  # the AM's heartbeats fall on the node's here
        assert end == start + 10_000
    # The reduce is granted after the heartbeat at which the AM heard of the last map's end.
    last_map = max(int(row[2]) for row in by_end if row[3] == 1)
    reduce_row = next(row for row in by_end if row[3] == 0)
    assert int(reduce_row[0]) == last_map + 1000
    assert result.jobs["finished_s"][0] * 1000 == int(reduce_row[2])
    assert result.jobs["memory_mb_s"][0] == pytest.approx(
        1024 * (sum(int(e - g) for g, _, e, _ in by_end) + result.jobs["finished_s"][0] * 1000 - beat) / 1000
    )


def test_an_end_may_bring_its_nodes_heartbeat(cases: Any) -> None:
    """Hadoop's node tells of an end at once: its space is given out then, not at the next regular heartbeat."""
    job = cases.mapreduce("j", "a", 9, seconds=10.25)
    at_once, later = (
        simulate(cases.setup([job], count=1, delays=Delays(am_response_heartbeats=0, end_heartbeat_ms=ms)))
        for ms in (10, -1)
    )
    assert at_once.tasks is not None
    assert later.tasks is not None
    ends = set(map(int, at_once.tasks["end_ms"]))
    again = [int(granted) for granted in at_once.tasks["granted_ms"] if int(granted) - 10 in ends]
    assert len(again) == 9 - 3  # the node has four places, one is the master's
    beat = round(at_once.jobs["started_s"][0] * 1000) % 1000
    assert all(int(granted) % 1000 == beat for granted in later.tasks["granted_ms"])
    assert at_once.tasks["granted_ms"].max() < later.tasks["granted_ms"].max()


def test_a_job_may_say_what_its_master_takes(cases: Any) -> None:
    """Start and end of one master, given with the job, go before the run's; another job of the run has the run's."""
    quiet = Delays(am_response_heartbeats=0, am_start_ms=2000)
    plain = cases.mapreduce("j", "a", 1, seconds=10.0)
    own = replace(plain, id="k", am_start_s=5.0, am_end_s=3.5)
    ends = {}
    for job in (plain, own):
        result = simulate(cases.setup([job], count=1, delays=quiet))
        assert result.tasks is not None
        first = round(result.tasks["granted_ms"][0] / 1000 - result.jobs["started_s"][0])
        ends[job.id] = first, result.jobs["finished_s"][0] - result.tasks["end_ms"][0] / 1000
    # Asked for at the master's first heartbeat, granted at the node's next.
    assert ends["j"][0] == 3
    assert ends["k"][0] == 6
    assert ends["k"][1] == pytest.approx(ends["j"][1] + 3.5)


def test_an_executor_may_say_what_its_start_takes(cases: Any) -> None:
    stages = (Stage("x", 1, cases.ONE, cases.constant(5.0)),)
    job = JobSpec("s", "root.a", "spark", cases.ONE, stages, executors=1, executor_demand=Resource(2048, 2))
    quiet = Delays(am_response_heartbeats=0, container_start_ms=1000)
    took = {}
    for start_s in (None, 1.0, 7.0):
        result = simulate(cases.setup([replace(job, executor_start_s=start_s)], count=1, delays=quiet))
        assert result.tasks is not None
        took[start_s] = int(result.tasks["start_ms"][0] - result.tasks["granted_ms"][0])
    assert took[None] == took[1.0]
    assert took[7.0] == took[1.0] + 6000


@pytest.mark.parametrize(
    ("least", "wait_s", "until"),
    [
        (0, 0.0, "one"),
        (1, 90.0, "one"),
        (2, 90.0, "all"),
        (3, 90.0, "all"),
        (3, 30.0, "30 s"),
        (9, 90.0, "all"),  # more than it asked for
    ],
)
def test_a_spark_driver_waits_for_its_executors(cases: Any, least: int, wait_s: float, until: str) -> None:
    """A node has room for one executor until another application ends."""
    quiet = Delays(am_response_heartbeats=0, am_start_ms=0, container_start_ms=0)
    executor = {"executors": 3, "executor_demand": cases.ONE, "executors_least": least, "executors_wait_s": wait_s}
    stages = (Stage("x", 6, cases.ONE, cases.constant(5.0)),)
    spark = JobSpec("s", "root.a", "spark", cases.ONE, stages, submit_s=3.0, **executor)
    result = simulate(cases.setup([cases.mapreduce("o", "b", 1, seconds=50.0), spark], count=1, delays=quiet))
    assert result.tasks is not None
    up_s, other_s = result.jobs["started_s"][1], result.jobs["finished_s"][0]
    due_s = {"one": up_s, "30 s": up_s + 30.0, "all": other_s}[until]
    own = np.asarray(result.tasks["job"]) == 1
    begun_s = np.sort(np.asarray(result.tasks["start_ms"])[own]) / 1000.0
    assert due_s <= begun_s[0] <= due_s + 3.0
    assert (begun_s[1] < begun_s[0] + 5.0) == (until == "all"), "two at once only where two executors were there"
    assert result.jobs["finished_s"][1] > begun_s[-1]


def test_integrals_equal_those_of_the_task_log(cases: Any) -> None:
    result = simulate(cases.mixed())
    samples = result.samples
    for queue in ("root.a", "root.b", "root.c", "root.d"):  # in root.d a service still runs
        column = samples.queues.index(queue)
        mine = [i for i, name in enumerate(result.jobs["queue"]) if name == queue]
        assert samples.accumulated[-1, column] == pytest.approx(result.jobs["memory_mb_s"][mine].sum(), rel=1e-12)
    root = samples.queues.index("root")
    assert samples.accumulated[-1, root] == pytest.approx(samples.accumulated[-1, samples.leaf].sum(), rel=1e-12)
    # Between samples: within what can change in a second.
    steps = np.diff(samples.accumulated[:, root])
    assert (steps >= 0).all()
    assert (steps <= samples.capacity_mb.max() * np.diff(samples.time_s) + 1e-6).all()
    assert (samples.due[-1, samples.leaf] > 0).all()
    assert (samples.allocated_mb <= samples.demand_mb).all()


def test_a_static_partition_gives_everybody_his_share(cases: Any) -> None:
    jobs = [cases.mapreduce(f"{q}{i}", q, 80, seconds=20.0) for q in "abcd" for i in range(2)]
    result = simulate(cases.setup(jobs, count=16, policy="static"))
    samples = result.samples
    rho = samples.accumulated[-1, samples.leaf] / samples.due[-1, samples.leaf]
    # Within one container and one heartbeat (granted some seconds late at most) of the fluid model's 1.
    assert ((rho > 0.9) & (rho < 1.05)).all()


def test_job_that_follows_another(cases: Any) -> None:
    first = cases.mapreduce("x", "a", 3)
    after = replace(cases.mapreduce("y", "b", 3), after_job="x", think_s=7.5)
    for jobs in ([after, first], iter([first, after])):
        result = simulate(cases.setup(jobs))
        ends = dict(zip(result.jobs["id"], result.jobs["finished_s"], strict=True))
        begins = dict(zip(result.jobs["id"], result.jobs["submitted_s"], strict=True))
        assert begins["y"] == pytest.approx(ends["x"] + 7.5)


def test_streamed_and_listed_jobs_are_the_same(cases: Any) -> None:
    jobs = [cases.mapreduce(f"j{i}", "abcd"[i % 4], 2, 1, submit_s=3.0 * i) for i in range(300)]
    assert cases.digest(simulate(cases.setup(jobs))) == cases.digest(simulate(cases.setup(iter(jobs))))


def test_failures_end_a_job_after_its_attempts(cases: Any) -> None:
    setup = cases.setup([cases.mapreduce("j", "a", 4)], faults=TaskFaults(failure=1.0, max_attempts=3))
    result = simulate(setup)
    assert result.failed_jobs == 1
    assert bool(result.jobs["failed"][0])
    assert result.jobs["tasks"][0] == 0
    assert 3 <= result.jobs["attempts_failed"][0] <= 12


def test_speculation_helps_against_stragglers(cases: Any) -> None:
    job = JobSpec("j", "root.a", "mapreduce", cases.ONE, (Stage("map", 200, cases.ONE, cases.lognormal(2.5, 0.1)),))
    slow = TaskFaults(straggler=0.03, straggler_factor=20.0)
    without = simulate(cases.setup([job], faults=slow))
    copied = simulate(cases.setup([job], faults=replace(slow, speculation=True)))
    assert copied.tasks is not None
    assert (copied.tasks["outcome"] == 2).any()
    assert int(copied.jobs["tasks"][0]) == int(without.jobs["tasks"][0]) == 200
    assert copied.makespan_s < 0.8 * without.makespan_s


def test_spark_holds_its_executors_to_the_end(cases: Any) -> None:
    stages = (
        Stage("x", 8, cases.ONE, cases.constant(5.0)),
        Stage("y", 1, cases.ONE, cases.constant(50.0), after=("x",)),
    )
    job = JobSpec("s", "root.a", "spark", cases.ONE, stages, executors=4, executor_demand=Resource(2048, 2))
    result = simulate(cases.setup([job]))
    samples = result.samples
    root = samples.queues.index("root")
    held = samples.allocated_mb[:, root]
    full = 4 * 2048 + 1024
    assert held.max() == full
    late = samples.time_s > result.makespan_s - 30
    assert (held[late][:-1] == full).all()
    assert result.jobs["tasks"][0] == 9
    # Two slots less: the stage of 8 tasks on 4 slots takes two waves.
    assert result.tasks is not None
    first_stage = result.tasks["end_ms"][result.tasks["stage"] == 0]
    assert len(set(first_stage.tolist())) >= 2


def test_reduces_do_not_end_before_the_last_map_and_do_not_lock_out_maps(cases: Any) -> None:
    stages = (
        Stage("map", 40, cases.ONE, cases.constant(10.0)),
        Stage("reduce", 30, cases.ONE, cases.constant(1.0), after=("map",), slow_start=0.01, priority=10),
    )
    jobs = [JobSpec(f"j{i}", "root.a", "mapreduce", cases.ONE, stages) for i in range(3)]
    result = simulate(cases.setup(jobs, count=3, time_limit_s=5000.0))
    assert result.finished
    assert result.tasks is not None
    done = result.tasks["outcome"] == 0
    for row in range(3):
        mine = done & (result.tasks["job"] == row)
        last_map = result.tasks["end_ms"][mine & (result.tasks["stage"] == 1)].max()
        assert (result.tasks["end_ms"][mine & (result.tasks["stage"] == 0)] >= last_map).all()


def test_node_speed_scales_durations(cases: Any) -> None:
    fast = simulate(cases.setup([cases.mapreduce("j", "a", 4)], nodes=(NodeSpec("n", 8192, 8, speed=2.0),)))
    assert fast.tasks is not None
    assert set((fast.tasks["end_ms"] - fast.tasks["start_ms"]).tolist()) == {5000}


@pytest.mark.parametrize("kind", ["mapreduce", "spark"])
def test_an_am_that_is_lost_starts_anew_and_keeps_what_has_ended(cases: Any, kind: str) -> None:
    stages = (Stage("map", 60, cases.ONE, cases.constant(6.0)),)
    job = JobSpec("j", "root.a", kind, cases.ONE, stages, executors=5, executor_demand=cases.ONE)
    undisturbed = simulate(cases.setup([job], count=2)).makespan_s
    took = []
    for goes in ("x", "y"):  # one of the two has the AM
        machines = tuple(NodeSpec(n, 4096, 8, leave_s=30.0 if n == goes else None) for n in "xy")
        result = simulate(cases.setup([job], nodes=machines))
        assert result.finished
        done = int(result.jobs["tasks"][0])
        assert done == 60 or (kind == "spark" and done > 60)
        assert result.samples.capacity_mb[0] == 8192
        assert result.samples.capacity_mb[-1] == 4096
        took.append(result.makespan_s)
    assert undisturbed < min(took) < max(took)


def test_a_run_whose_engine_missed_the_end_of_a_process_is_refused(cases: Any) -> None:
    """The planted fault: a process that no heartbeat finds, as an error in the order of ends would leave it."""
    simulation = Simulation(cases.setup([cases.mapreduce("j", "a", 400)], count=1, time_limit_s=60.0))
    finished, _ = simulation.proceed()
    assert not finished
    world = simulation.world
    simulation._check_ends(int(world.g["now"][0]))
    head = int(world.nodes["head"][0])
    assert head >= 0
    world.ends["ms"][head + 1] = 1000
    with pytest.raises(InternalError, match=r"missed the end of 1 process\(es\) by 60 s"):
        simulation.run()


def test_time_limit_leaves_a_result(cases: Any) -> None:
    result = simulate(cases.setup([cases.mapreduce("j", "a", 400)], count=1, time_limit_s=60.0))
    assert not result.finished
    assert result.end_s == 60.0
    assert np.isnan(result.jobs["finished_s"][0])
    assert result.jobs["tasks"][0] > 0
    assert result.samples.time_s[-1] == 60.0


def test_demand_that_nobody_meets_counts_as_waiting(cases: Any) -> None:
    setup = cases.setup([cases.mapreduce("j", "a", 4), cases.mapreduce("k", "b", 400)], count=1, time_limit_s=90.0)
    result = simulate(setup)
    assert result.max_wait_s["root.b"] < 90
    assert result.max_wait_s["root.c"] == 0


ONE = Resource(1024, 1)


def _job(**more: Any) -> JobSpec:
    stages = (Stage("map", 2, ONE, Duration("constant", value_s=1.0)),)
    return replace(JobSpec("bad", "root.a", "mapreduce", ONE, stages), **more)


def _stage(**more: Any) -> JobSpec:
    return _job(stages=(replace(Stage("map", 2, ONE, Duration("constant", value_s=1.0)), **more),))


@pytest.mark.parametrize(
    ("jobs", "says"),
    [
        ([_job(queue="root.nowhere")], "root.nowhere"),
        ([_job(queue="root")], "not a leaf"),
        ([_job(submit_s=float("nan"))], "submit_s"),
        ([_job(submit_s=-1.0)], "submit_s"),
        ([_job(kind="pig")], "kind"),
        ([_job(am=Resource(1 << 30, 1))], "no node"),
        ([_stage(demand=Resource(1024, 99))], "no node"),
        ([_stage(demand=Resource(0, 0))], "asks for"),
        ([_stage(tasks=-1)], "tasks"),
        ([_stage(after=("map",))], "circle"),
        ([_stage(after=("other",))], "not a stage"),
        ([_stage(slow_start=2.0)], "slow_start"),
        ([_stage(tail=1.5)], "tail"),
        ([_stage(tail=float("nan"))], "tail"),
        ([_job(kind="spark", executors=1, executor_demand=ONE, stages=_stage(tail=0.5).stages)], "tail"),
        ([_stage(duration=Duration("constant", value_s=float("nan")))], "finite"),
        ([_stage(duration=Duration("constant", value_s=-1.0))], "negative"),
        ([_stage(duration=Duration("listed", values_s=(1.0,)))], "durations for 2 tasks"),
        ([_stage(duration=Duration("empirical", values_s=()))], "durations for"),
        ([_job(kind="spark", executors=0)], "executors"),
        ([_job(), _job()], "earlier job"),
        ([_job(after_job="bad")], "itself"),
        ([_job(after_job="none")], "not in the input"),
        (iter([_job(submit_s=5.0), _job(id="b", submit_s=1.0)]), "sort"),
    ],
)
def test_jobs_that_cannot_be(cases: Any, jobs: Any, says: str) -> None:
    with pytest.raises(InputError) as caught:
        simulate(cases.setup(jobs))
    assert says in caught.value.line()
    assert "'bad'" in caught.value.line() or "'b'" in caught.value.line()
    assert caught.value.hint


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"nodes": ()}, "no node"),
        ({"nodes": (NodeSpec("a", 1, 1), NodeSpec("a", 1, 1))}, "name"),
        ({"nodes": (NodeSpec("a", 1024, 1, speed=0.0),)}, "speed"),
        ({"nodes": (NodeSpec("a", 1024, 1, leave_s=0.0),)}, "leaves"),
        ({"entitlements": {"root.zzz": 1.0}}, "root.zzz"),
        ({"entitlements": {"root.a": -1.0}}, "entitlement"),
        ({"faults": TaskFaults(failure=2.0)}, "faults"),
        ({"delays": Delays(update_ms=0)}, "update_ms"),
        ({"sample_s": 0.0}, "sample_s"),
        ({"conf": {"yarn.scheduler.minimum-allocation-mb": "many"}}, "minimum-allocation-mb"),
    ],
)
def test_setups_that_cannot_be(cases: Any, more: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError) as caught:
        simulate(cases.setup([cases.mapreduce("j", "a", 1)], **more))
    assert says in caught.value.line()


def test_static_shares_from_outside_grow_with_the_cluster(cases: Any) -> None:
    """The maximum shares that it wrote itself are no limit to it."""
    later = [replace(node, name=f"late-{node.name}", join_s=30.0) for node in cases.nodes(10)]
    made = cases.setup(
        [cases.mapreduce("a0", "a", 600, seconds=5.0)],
        policy=make_policy("static", {}),
        nodes=(*cases.nodes(10), *later),
        time_limit_s=120.0,
        mode="outside",
        period_s=1.0,
    )
    samples = simulate_outside(made).samples
    used = samples.accumulated[:, samples.queues.index("root.a")]
    at = {float(t): i for i, t in enumerate(samples.time_s.tolist())}
    # A quarter of 40 GiB, then of 80.
    for begin, gib in ((15.0, 10), (60.0, 20)):
        mean_mb = (used[at[begin + 15]] - used[at[begin]]).sum() / 15
        assert 0.8 * gib < mean_mb / 1024 <= gib


def test_a_preemption_pass_makes_room_for_its_own_records_alone() -> None:
    """It wants one free record for every container that runs: nothing else must be doubled until it has them."""
    nodes = tuple(NodeSpec(f"n{i}", 16 * 1024, 16) for i in range(60))
    work = Stage("map", 100_000, Resource(1024, 1), Duration("constant", 20.0))
    jobs = [
        JobSpec(f"j{i}", f"root.{'ab'[i % 2]}", "mapreduce", Resource(1024, 1), (work,), submit_s=20.0 * (i % 2))
        for i in range(8)
    ]
    text = (
        '<allocations><queue name="a"/><queue name="b"/>'
        "<defaultFairSharePreemptionTimeout>5</defaultFairSharePreemptionTimeout></allocations>"
    )
    setup = SimSetup(
        nodes=nodes,
        allocations=parse_allocations(text, source="test"),
        jobs=jobs,
        conf={"yarn.scheduler.fair.preemption": "true", "yarn.scheduler.fair.waitTimeBeforeKill": "2000"},
        time_limit_s=60.0,
    )
    simulation = Simulation(setup)
    simulation.run()
    state = simulation.scheduler.S
    running = int(state.g[0]["n_running"])
    assert running > 900
    assert len(state.p) > running  # a pass was made
    assert len(state.c) <= 8 * running


def test_a_failed_copy_is_not_drawn_again(cases: Any) -> None:
    # Each copy of a straggler is an attempt of its own: one that fails does not make all that follow it fail.
    faults = TaskFaults(failure=0.05, straggler=0.05, speculation=True)
    tasks = simulate(replace(cases.mixed(faults=faults), record_tasks=True)).tasks
    assert tasks is not None
    failed = [
        (int(tasks["job"][at]), int(tasks["stage"][at]), int(tasks["task"][at]), int(tasks["attempt"][at]))
        for at in np.flatnonzero(tasks["outcome"] == 1)
    ]
    assert failed
    assert len(set(failed)) == len(failed)


def test_a_spark_driver_takes_its_time_between_stages(cases: Any) -> None:
    """Each stage begins so long after those that it waits for; the executors are held meanwhile."""
    quiet = Delays(am_response_heartbeats=0, am_start_ms=0, container_start_ms=0)
    stages = (
        Stage("x", 2, cases.ONE, cases.constant(5.0), delay_s=7.0),
        Stage("y", 2, cases.ONE, cases.constant(5.0), after=("x",)),
        Stage("z", 1, cases.ONE, cases.constant(5.0), after=("x",), delay_s=40.0),
    )
    executors = {"executors": 2, "executor_demand": Resource(2048, 1), "executors_least": 2, "executors_wait_s": 90.0}
    result = simulate(
        cases.setup([JobSpec("s", "root.a", "spark", cases.ONE, stages, **executors)], count=2, delays=quiet)
    )
    assert result.tasks is not None
    start, end = (np.asarray(result.tasks[name]) / 1000.0 for name in ("start_ms", "end_ms"))
    stage, granted = np.asarray(result.tasks["stage"]), np.asarray(result.tasks["granted_ms"]) / 1000.0
    assert 7.0 <= start[stage == 0].min() - granted.max() <= 8.1, "the driver begins when both executors are there"
    assert start[stage == 1].min() == end[stage == 0].max()
    assert start[stage == 2].min() == pytest.approx(end[stage == 0].max() + 40.0)
    with pytest.raises(InputError, match="delay_s of stage 'map'"):
        simulate(cases.setup([JobSpec("m", "root.a", "dag", cases.ONE, (replace(stages[0], name="map"),))]))


def test_spark_takes_more_stages_than_there_are_dependencies_where_they_are_a_chain(cases: Any) -> None:
    stages = tuple(
        Stage(str(n), 1, cases.ONE, cases.constant(1.0), after=(str(n - 1),) if n else (), delay_s=0.5)
        for n in range(200)
    )
    spark = {"executors": 1, "executor_demand": cases.ONE}
    result = simulate(cases.setup([JobSpec("s", "root.a", "spark", cases.ONE, stages, **spark)]))
    assert result.tasks is not None
    order = np.argsort(np.asarray(result.tasks["start_ms"]))
    assert np.asarray(result.tasks["stage"])[order].tolist() == list(range(200))
    assert np.diff(np.asarray(result.tasks["start_ms"])[order]).tolist() == [1500] * 199
    other = (*stages[:-1], replace(stages[-1], after=("0",)))
    with pytest.raises(InputError, match="at most 62"):
        simulate(cases.setup([JobSpec("s", "root.a", "spark", cases.ONE, other, **spark)]))
