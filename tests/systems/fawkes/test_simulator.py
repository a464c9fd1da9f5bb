"""MR-clusters in virtual time: what tasks take by node type, nodes that change hands, data that move, slowdowns."""

from __future__ import annotations

from dataclasses import replace

import pytest

from harness.policies import make_policy
from harness.systems.fawkes.policies import FawkesPolicy
from harness.systems.fawkes.simulator import ClusterSetup, Constants, MRJob, Profile, Result, Setup, simulate
from harness.systems.fawkes.simulator.cluster import Cluster
from harness.systems.fawkes.simulator.model import Growth, NodeKind
from harness.systems.fawkes.simulator.simulate import Simulation

EVEN = Constants(spread=0.0)
#: Half of a map waits for the disks of its input, a quarter of a reduce for those of its output.
DISK = Profile("disk", map_s=20, reduce_s_gb=80, read=0.5, write=0.25, shuffled=1, output=1, reduces_gb=2)
CPU = Profile("cpu", map_s=40, reduce_s=20)


def alone(profile: Profile, gb: float, core: int, *fixed: tuple[NodeKind, int], **more: object) -> Result:
    cluster = ClusterSetup("c", core, (MRJob("j", profile, gb),), fixed=fixed, ready=True, **more)  # type: ignore[arg-type]
    nodes = core + sum(count for _, count in fixed)
    return simulate(Setup(nodes, (cluster,), None, constants=EVEN))


def test_a_small_job_by_hand() -> None:
    """1 GB is 8 blocks; setup 10 s, one wave of maps, one of two reduces with half a GB each."""
    assert (DISK.maps(1, EVEN), DISK.reduces(1), DISK.one_reduce_s(1)) == (8, 2, 40)
    assert alone(DISK, 1, 10).makespan_s == 10 + 20 + 40
    assert alone(CPU, 1, 1).makespan_s == 10 + 40 + 40 + 20  # 6 slots: two waves of maps


def test_waves_and_contention_by_hand() -> None:
    """12.8 GB: 100 maps, 26 reduces. Ten core nodes have 60 and 20 slots: two waves each, at the reference pace."""
    reduce_s = 80 * 12.8 / 26
    assert alone(DISK, 12.8, 10).makespan_s == pytest.approx(10 + 40 + 2 * reduce_s, abs=0.01)
    # Five core and five transient nodes: 60 maps on the disks of 5 nodes, in the second wave 40; then 20 reduces and 6.
    first, second = 20 * (0.5 + 0.5 * 2), 20 * (0.5 + 0.5 * 40 / 30)
    late = alone(DISK, 12.8, 5, ("transient", 5)).makespan_s
    assert late == pytest.approx(10 + first + second + reduce_s * (0.75 + 0.25 * 2) + reduce_s, abs=0.01)
    # Transient-core nodes take output: only the maps are slower.
    between = alone(DISK, 12.8, 5, ("transient-core", 5)).makespan_s
    assert between == pytest.approx(10 + first + second + 2 * reduce_s, abs=0.01)
    # What computes does not care.
    assert alone(CPU, 12.8, 5, ("transient", 5)).makespan_s == alone(CPU, 12.8, 10).makespan_s


def test_reduces_start_early_by_hadoops_slow_start() -> None:
    """1 GB on one node: 8 maps on 6 slots, two waves of 40 s. Two reduces of 20 s copy for half of it."""

    def made(slow_start: float, nodes: int = 1) -> float:
        job = MRJob("j", replace(CPU, shuffle=0.5), 1)
        cluster = ClusterSetup("c", nodes, (job,), ready=True)
        return simulate(Setup(nodes, (cluster,), None, constants=replace(EVEN, slow_start=slow_start))).makespan_s

    assert made(1.0) == 10 + 80 + 20
    assert made(0.05) == 10 + 80 + 10, "the copying is over when the last map ends"
    assert made(0.75) == 10 + 80 + 10, "six of eight maps are enough"
    assert made(0.76) == 10 + 80 + 20
    assert made(0.05, nodes=2) == 10 + 40 + 20, "one wave: nothing has ended before the last map"


def test_early_reduces_hold_slots_that_others_need() -> None:
    """FIFO: a job of one map behind a job of two waves gets reduce slots when that one's reduces end."""
    jobs = (MRJob("long", CPU, 1), MRJob("short", replace(CPU, name="other", map_s=10), 0.1))
    cluster = ClusterSetup("c", 1, jobs, ready=True)
    late, early = (
        simulate(Setup(1, (cluster,), None, constants=replace(EVEN, slow_start=part))).jobs for part in (1.0, 0.05)
    )
    ended = [{row.job: row.finished_s for row in found} for found in (late, early)]
    assert ended[0]["short"] == 10 + 40 + 10 + 20
    assert ended[1]["short"] == 10 + 40 + 40 + 20 + 20
    assert ended[0]["long"] == ended[1]["long"] == 110


def test_two_sites_slow_the_network_only() -> None:
    shuffling = replace(DISK, shuffle=0.5)
    assert alone(shuffling, 1, 10, sites=2).makespan_s == 10 + 20 + 40 * (0.25 + 0.5 * 1.5 + 0.25 * 1.5)
    assert alone(CPU, 1, 10, sites=2).makespan_s == alone(CPU, 1, 10).makespan_s


def test_nodes_leave_by_pairs_and_only_into_those_that_stay() -> None:
    """Section 6.4: a node takes the same time as long as no more than half leave, more beyond."""

    def per_node_s(leaving: int) -> float:
        cluster = ClusterSetup("c", 4, (), fixed=(("transient-core", 16),), shrink_by=leaving, shrink_gb=10, ready=True)
        return simulate(Setup(20, (cluster,), None, constants=EVEN)).last_drained_s / leaving

    assert per_node_s(1) == per_node_s(10) == pytest.approx(10 / (10 * 0.06))
    assert per_node_s(16) == pytest.approx(10 / (4 * 0.06))


def test_who_leaves_first() -> None:
    """Transient nodes, then transient-core ones with little data; core nodes never."""
    cluster = Cluster(ClusterSetup("c", 1, ()), EVEN, 1)
    for node, kind, own_gb in (
        (0, "core", 0.0),
        (1, "transient-core", 5.0),
        (2, "transient-core", 1.0),
        (3, "transient", 0.0),
    ):
        cluster.add(node, kind)  # type: ignore[arg-type]
        cluster.nodes[node].own_gb = own_gb
    assert [node.id for node in cluster.to_release(9)] == [3, 2, 1]


def shared(policy: str = "fawkes-td", growth: Growth = "transient-core", **settings: object) -> Setup:
    small = [MRJob(f"s{i}", DISK if i % 2 else CPU, 1.0, 15.0 * i) for i in range(40)]
    large = [MRJob(f"l{i}", DISK, 20.0, 100.0 * i) for i in range(4)]
    chain = [MRJob("x", DISK, 5.0), MRJob("y", CPU, 5.0, after=("x",)), MRJob("z", CPU, 2.0, after=("x", "y"))]
    made = make_policy(policy, settings)
    assert isinstance(made, FawkesPolicy)
    clusters = (
        ClusterSetup("small", 4, tuple(small), data_gb=10, from_activation=True),
        ClusterSetup("large", 4, tuple(large), arrival_s=50, data_gb=10, from_activation=True),
        ClusterSetup("chain", 4, tuple(chain), arrival_s=150, data_gb=10, from_activation=True),
    )
    return Setup(20, clusters, made, growth=growth)


POLICIES = [f"fawkes-{name}" for name in ("jd", "dd", "td", "pu", "du", "ru", "js", "jt", "tt", "none", "eq")]


@pytest.mark.parametrize("growth", ["transient", "transient-core"])
@pytest.mark.parametrize("policy", POLICIES)
def test_whatever_the_policy_nodes_and_jobs_are_conserved(policy: str, growth: Growth) -> None:
    simulation = Simulation(shared(policy, growth))
    result = simulation.run()
    assert result.finished
    assert all(job.finished_s is not None for job in result.jobs)
    assert len(result.jobs) == 47
    held = [node for cluster in simulation.clusters.values() for node in cluster.nodes]
    assert sorted(held + simulation.pool) == list(range(20))
    by_time: dict[float, int] = {}
    for sample in result.samples:
        by_time[sample.time_s] = by_time.get(sample.time_s, 0) + sample.nodes
    assert max(by_time.values()) <= 20
    # Killed attempts run again: what ended is every task once.
    assert result.task_events == sum(job.tasks for job in result.jobs)
    if policy == "fawkes-none":
        assert result.reconfigurations == 0
        assert max(sample.nodes for sample in result.samples) == 4


def test_the_chain_runs_in_its_order() -> None:
    jobs = {job.job: job for job in simulate(shared()).jobs}
    assert jobs["x"].finished_s is not None
    assert jobs["y"].finished_s is not None
    assert jobs["y"].submitted_s == jobs["x"].finished_s
    assert jobs["z"].submitted_s == jobs["y"].finished_s


def test_the_same_setup_gives_the_same_result_and_another_seed_another() -> None:
    one, again, other = simulate(shared()), simulate(shared()), simulate(replace(shared(), seed=2))
    assert (one.jobs, one.samples, one.events) == (again.jobs, again.samples, again.events)
    assert one.jobs != other.jobs


def test_only_transient_core_nodes_cost_replication_and_none_costs_nothing() -> None:
    assert simulate(shared(growth="transient")).replicated_gb == 0
    assert simulate(shared(growth="transient-core")).replicated_gb > 0
    assert simulate(shared("fawkes-none")).nodes_moved <= 12  # removals of whole MR-clusters


def test_growing_helps_the_loaded_cluster() -> None:
    def last(policy: str) -> float:
        return max(job.finished_s or 0 for job in simulate(shared(policy)).jobs if job.cluster == "large")

    assert last("fawkes-td") < 0.7 * last("fawkes-none")


def test_nothing_moves_when_tau_is_infinite() -> None:
    assert simulate(shared(tau="inf")).reconfigurations == 0


def test_a_cluster_that_is_idle_for_long_is_removed_and_comes_back_with_its_next_job() -> None:
    made = make_policy("fawkes-none")
    assert isinstance(made, FawkesPolicy)
    jobs = (MRJob("a", CPU, 1.0), MRJob("b", CPU, 1.0, 1000.0))
    result = simulate(Setup(10, (ClusterSetup("c", 5, jobs, data_gb=20, from_activation=True),), made))
    # Loading 20 GB over 5 nodes takes 100 s; the job begins then, and the second 1,000 s later, after loading again.
    assert [event[1:] for event in result.events] == [
        ("c", "requested"),
        ("c", "active"),
        ("c", "idle"),
        ("c", "removed"),
        ("c", "requested"),
        ("c", "active"),
    ]
    first, second = result.jobs
    assert (first.submitted_s, second.submitted_s) == (100, 1100)
    assert second.finished_s is not None
    assert second.finished_s >= 1100 + 100 + 10 + 40


def test_the_overall_discrimination_of_a_cluster_that_came_back_is_of_all_its_lives() -> None:
    made = make_policy("fawkes-none")
    assert isinstance(made, FawkesPolicy)
    jobs = tuple(MRJob(name, CPU, 1.0, at_s) for name, at_s in (("a", 0.0), ("b", 1000.0), ("c", 2000.0)))
    result = simulate(Setup(10, (ClusterSetup("c", 5, jobs, data_gb=20, from_activation=True),), made))
    expected, since = 0.0, {}
    for at_s, _, what in [*result.events, (result.makespan_s, "c", "idle"), (result.makespan_s, "c", "removed")]:
        since[what] = at_s
        if what == "removed":
            # Half of the nodes from request to removal, all of the weight while active.
            expected += 0.5 * (at_s - since["requested"]) - (since["idle"] - since["active"])
    assert [what for _, _, what in result.events].count("requested") == 3
    assert result.overall == {"c": pytest.approx(expected)}
