"""The cluster world on the Capacity Scheduler: runs end, nothing is lost, weights from outside steer it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from harness.base.errors import InputError
from harness.control.virtual import simulate_policy
from harness.model.jobs import Duration, JobSpec, NodeSpec, Stage
from harness.model.resources import Resource
from harness.policies.registry import make_policy
from harness.sim.setup import SimResult, SimSetup
from harness.sim.simulate import simulate
from harness.yarn.fair.parse import parse_allocations

ONE = Resource(1024, 1)
QUEUES = parse_allocations('<allocations><queue name="a"><weight>3</weight></queue><queue name="b"/></allocations>')
TREE = parse_allocations(
    '<allocations><queue name="g"><weight>2</weight><queue name="a"/><queue name="b"/></queue>'
    '<queue name="c"><maxResources>50%</maxResources></queue></allocations>'
)


def setup(leaves: tuple[str, ...] = ("root.a", "root.b"), *, tasks: int = 200, **more: object) -> SimSetup:
    # A node is given one container a heartbeat: shorter tasks would leave it partly idle.
    task_s = Duration("lognormal", mu=3.2, sigma=0.4)
    stages = (Stage("map", tasks, ONE, task_s),)
    jobs = [JobSpec(f"j{i}", leaves[i % len(leaves)], "mapreduce", ONE, stages, submit_s=0.2 * i) for i in range(12)]
    nodes = tuple(NodeSpec(f"n{i}", 16 * 1024, 16) for i in range(4))
    return SimSetup(nodes=nodes, jobs=jobs, scheduler="capacity", **{"allocations": QUEUES, **more})  # type: ignore[arg-type]


def mean_mb(result: SimResult, queue: str, since_s: float, until_s: float) -> float:
    time_s = result.samples.time_s
    held = result.samples.allocated_mb[(time_s >= since_s) & (time_s < until_s), result.samples.queues.index(queue)]
    return float(np.mean(held))


def test_every_job_ends_and_the_cluster_is_divided_by_weight() -> None:
    result = simulate(setup())
    assert result.finished
    assert result.failed_jobs == 0
    assert result.events == 2 * 12 * 201
    a, b = (mean_mb(result, queue, 100, 300) for queue in ("root.a", "root.b"))
    assert a / b == pytest.approx(3, rel=0.1)
    assert a + b > 0.93 * 4 * 16 * 1024


def test_the_same_setup_gives_the_same_run() -> None:
    first, second = simulate(setup(tasks=20)), simulate(setup(tasks=20))
    assert list(first.jobs["finished_s"]) == list(second.jobs["finished_s"])
    assert np.array_equal(first.samples.allocated_mb, second.samples.allocated_mb)


def test_levels_and_maxima_hold() -> None:
    result = simulate(setup(("root.g.a", "root.g.b", "root.c"), allocations=TREE))
    assert result.failed_jobs == 0
    whole = 4 * 16 * 1024
    assert mean_mb(result, "root.g", 100, 200) == pytest.approx(whole * 2 / 3, rel=0.1)
    c = result.samples.allocated_mb[:, result.samples.queues.index("root.c")]
    assert c.max() <= whole / 2


@pytest.mark.parametrize(
    ("of_a", "of_all", "most"),
    [
        ("", "", 12),
        ("<maxRunningApps>2</maxRunningApps>", "", 2),
        ("", "<queueMaxAppsDefault>3</queueMaxAppsDefault>", 3),
        ("", "<userMaxAppsDefault>4</userMaxAppsDefault>", 4),
        # A user's AMs may take this part of the queue's 48 GiB, in steps of 1 GiB.
        ("<maxAMShare>0.1</maxAMShare>", "", 5),
        ("", "<queueMaxAMShareDefault>0.05</queueMaxAMShareDefault>", 3),
    ],
)
def test_limits_of_applications_and_masters_hold(of_a: str, of_all: str, most: int) -> None:
    text = f'<allocations><queue name="a"><weight>3</weight>{of_a}</queue><queue name="b"/>{of_all}</allocations>'
    result = simulate(setup(("root.a",), tasks=30, allocations=parse_allocations(text)))
    assert result.finished
    assert result.failed_jobs == 0
    started, finished = result.jobs["started_s"], result.jobs["finished_s"]
    assert max(int(((started <= at) & (finished > at)).sum()) for at in started) == most


def test_an_ask_above_its_queues_largest_container_is_refused() -> None:
    limit = "<maxContainerAllocation>2048 mb, 1 vcores</maxContainerAllocation>"
    text = f'<allocations><queue name="a">{limit}</queue><queue name="b"/></allocations>'
    given = setup(tasks=5, allocations=parse_allocations(text))
    assert simulate(given).finished
    jobs = [replace(job, am=Resource(3072, 1)) for job in given.jobs]
    # b takes them: it has no limit of its own.
    assert simulate(replace(given, jobs=[job for job in jobs if job.queue == "root.b"])).finished
    with pytest.raises(InputError, match="has 2048 MiB and 1 vcores; ask for less"):
        simulate(replace(given, jobs=jobs))


def test_nodes_that_leave_take_their_containers_with_them() -> None:
    nodes = tuple(NodeSpec(f"n{i}", 16 * 1024, 16, leave_s=60.0 if i == 0 else None) for i in range(4))
    result = simulate(replace(setup(tasks=50), nodes=nodes))
    assert result.finished
    assert result.failed_jobs == 0
    assert result.samples.capacity_mb[70] == 3 * 16 * 1024


def test_control_from_outside_steers_its_weights() -> None:
    # b's jobs come when a has used the cluster for a while: long-term fairness lets b catch up.
    given = setup(policy=make_policy("ltrf", {}), mode="outside", entitlements={"root.a": 1.0, "root.b": 1.0})
    jobs = [*given.jobs]
    late = [JobSpec(j.id, j.queue, "mapreduce", ONE, j.stages, submit_s=150.0 if "b" in j.queue else 0.0) for j in jobs]
    result = simulate_policy(replace(given, jobs=late))
    assert result.failed_jobs == 0
    assert result.writes
    assert mean_mb(result, "root.b", 160, 220) > 1.5 * mean_mb(result, "root.a", 160, 220)


def test_static_holds_each_queue_to_its_share_though_another_is_idle() -> None:
    result = simulate_policy(setup(("root.a",), tasks=60, policy=make_policy("static", {}), mode="outside"))
    assert result.failed_jobs == 0
    a = result.samples.allocated_mb[:, result.samples.queues.index("root.a")]
    whole = 4 * 16 * 1024
    assert whole / 2 - 2048 < a.max() <= whole / 2


def test_a_starved_queue_is_lifted_as_by_a_minimum_share() -> None:
    # c owes much when b comes: level by level its group's share goes to b alone, and c waits.
    leaves = ("root.g.a", "root.g.b", "root.c")
    given = setup(leaves, tasks=60, allocations=TREE, mode="outside")
    jobs = [replace(job, submit_s=0.0 if job.queue == "root.c" else 100.0) for job in given.jobs]
    longest = {}
    for t_wait in ("inf", 5):
        policy = make_policy("hltrf", {"t_wait": t_wait})
        result = simulate_policy(replace(given, jobs=jobs, policy=policy))
        assert result.finished
        assert result.failed_jobs == 0
        longest[t_wait] = result.max_wait_s["root.c"]
    assert longest[5] < 0.7 * longest["inf"]


@pytest.mark.parametrize("policy", ["fawkes-td", "decay-slurm", "decay-kueue", "naive-hltrf", "ltrf"])
def test_policies_from_outside_run_on_a_tree(policy: str) -> None:
    result = simulate_policy(
        setup(
            ("root.g.a", "root.g.b", "root.c"),
            tasks=20,
            allocations=TREE,
            policy=make_policy(policy, {}),
            mode="outside",
        )
    )
    assert result.finished
    assert result.failed_jobs == 0
    assert result.writes


def test_dominant_shares_are_written_where_the_calculator_compares_them() -> None:
    dominant = {"resource-calculator": "org.apache.hadoop.yarn.util.resource.DominantResourceCalculator"}
    policy = make_policy("ltrf", {"resource": "dominant"})
    result = simulate_policy(setup(tasks=20, capacity=dominant, policy=policy, mode="outside", resource="dominant"))
    assert result.finished
    assert result.writes


@pytest.mark.parametrize(
    ("policy", "mode", "words"),
    [
        ("ltrf", "inside", "act from outside"),
        ("hltrf", "inside", "act from outside"),
        ("fawkes-td", "inside", "act from outside"),
        ("drf", "outside", "DominantResourceCalculator"),
        ("fifo", "outside", "the ordering policy fair, the policy wants fifo"),
    ],
)
def test_what_it_cannot_carry_out_is_refused(policy: str, mode: str, words: str) -> None:
    with pytest.raises(InputError) as caught:
        simulate_policy(setup(policy=make_policy(policy, {}), mode=mode))
    assert words in caught.value.line()


def test_other_queues_than_the_trees_are_refused() -> None:
    with pytest.raises(InputError, match="not the experiment's"):
        simulate(setup(capacity={"root.queues": "a,b,c", "root.c.capacity": "1w"}))


def test_a_node_joins_however_many_applications_wait() -> None:
    # All leaves' waiting applications together are more than the scheduler's log has room for.
    leaves = [f"q{i}" for i in range(40)]
    text = "".join(f'<queue name="{leaf}"><maxAMShare>0.02</maxAMShare></queue>' for leaf in leaves)
    stages = (Stage("map", 2, ONE, Duration("lognormal", mu=6, sigma=0.1)),)
    jobs = [JobSpec(f"j{i}", f"root.q{i % 40}", "mapreduce", ONE, stages, submit_s=0.001 * i) for i in range(2000)]
    nodes = (NodeSpec("first", 16 * 1024, 16), NodeSpec("late", 16 * 1024, 16, join_s=60.0))
    queues = parse_allocations(f"<allocations>{text}</allocations>")
    result = simulate(SimSetup(nodes=nodes, jobs=jobs, scheduler="capacity", allocations=queues, time_limit_s=100.0))
    assert mean_mb(result, "root", 50, 60) == 16 * 1024
    assert mean_mb(result, "root", 90, 100) == 32 * 1024
