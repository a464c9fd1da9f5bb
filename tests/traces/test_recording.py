"""The first line of a run's trace, and run.json: the cluster that ran, not the one that the experiment asked for."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from harness.base.errors import InputError
from harness.experiments.real.trace import run_header, sizes_document
from harness.experiments.resolve import LoadedExperiment, jobs_of, load_experiment
from harness.jobs.workloads.recorded import within
from harness.model.jobs import NodeSpec
from harness.model.resources import Resource
from harness.predict.replay import write_experiment
from harness.sim.setup import SimSetup
from harness.sim.simulate import simulate
from harness.traces.histories import Histories
from harness.traces.recorded import Header, JobLine, NodeLine, QueueLine, put_trace
from harness.traces.recording import _by_integrals, am_share_of, job_of, nodes_of
from harness.yarn.answers import NodeStatus
from harness.yarn.capacity.properties import ASYNCHRONOUS
from harness.yarn.errors import Unreachable
from harness.yarn.fair.parse import parse_allocations

EXPERIMENT = """
experiment: x
cluster: {nodes: [{count: 2, memory_mb: 8192, vcores: 16}]}
conf: {yarn.scheduler.fair.assignmultiple: true}
queues: {a: {}}
workloads:
  a: {inline: {kind: sequence, submission: {every_s: 5}, am: {memory_mb: 1024}, task: {demand: {memory_mb: 1024},
      duration: {constant_s: 9}}, jobs: [{name: j, maps: 12}]}}
policies: [fair]
delays: {node_heartbeat_ms: 200, am_heartbeat_ms: 500, update_ms: 100}
"""
MEASURED = {"end_heard_ms": {"mean": 900.0}}


@pytest.fixture
def experiment(tmp_path: Path) -> LoadedExperiment:
    (tmp_path / "x.yaml").write_text(EXPERIMENT)
    return load_experiment(str(tmp_path / "x.yaml"))


def node(name: str, memory_mb: int, vcores: int, state: str = "RUNNING") -> NodeStatus:
    half = Resource(memory_mb // 2, vcores // 2)
    return NodeStatus(
        f"{name}:1", name, "", state, "", "3.4.2", 1, half, Resource(memory_mb, vcores) - half
    )  # fmt: skip


def test_nodes_are_those_that_ran(experiment: LoadedExperiment) -> None:
    found = nodes_of([node("w1", 4096, 4), node("w2", 6144, 8), node("w3", 4096, 4), node("w4", 9, 9, "LOST")])
    header = run_header(experiment, "x", MEASURED, nodes=found, given=None)
    assert header.nodes == [
        NodeLine(count=2, memory_mb=4096, vcores=4), NodeLine(count=1, memory_mb=6144, vcores=8)
    ]  # fmt: skip
    assert sizes_document(found) == {
        "nodes": 3,
        "memory_mb": None,
        "vcores": None,
        "sizes": [{"count": 2, "memory_mb": 4096, "vcores": 4}, {"count": 1, "memory_mb": 6144, "vcores": 8}],
    }
    alike = sizes_document(found[:1])
    assert (alike["nodes"], alike["memory_mb"], alike["vcores"]) == (2, 4096, 4)
    with pytest.raises(InputError, match="no node is RUNNING"):
        nodes_of([node("w4", 9, 9, "LOST")])


def test_settings_are_those_that_were_set(experiment: LoadedExperiment) -> None:
    nodes = nodes_of([node("w1", 4096, 4)])
    own = run_header(experiment, "x", MEASURED, nodes=nodes, given=None)
    assert own.conf == {"yarn.scheduler.fair.assignmultiple": "true"}
    delays = own.delays
    # An end is heard of after 900 ms, of which half of a master's heartbeat explains 250.
    assert (delays.node_heartbeat_ms, delays.update_ms, delays.end_heartbeat_ms) == (200, 100, 650)
    given = run_header(experiment, "x", MEASURED, nodes=nodes, given={})
    assert given.conf == {}
    # Masters are ours there, too; the RM's and the nodes' settings are Hadoop's own as far as anybody knows.
    assert given.delays == delays.model_copy(update={"node_heartbeat_ms": 1000, "update_ms": None})
    shown = {
        "yarn.resourcemanager.nodemanagers.heartbeat-interval-ms": "300",
        "yarn.scheduler.fair.update-interval-ms": "soon",
        "yarn.scheduler.minimum-allocation-mb": "512",
        "yarn.resourcemanager.hostname": "secret",
    }
    given = run_header(experiment, "x", MEASURED, nodes=nodes, given=shown)
    assert given.conf == {"yarn.scheduler.minimum-allocation-mb": "512"}
    assert (given.delays.node_heartbeat_ms, given.delays.update_ms, given.delays.end_heartbeat_ms) == (300, None, 650)


@pytest.mark.parametrize(
    ("more", "given", "expected"),
    [
        ("", None, False),  # our own clusters switch it off
        ("capacity: {schedule-asynchronously.enable: 'true'}\n", None, True),
        ("", {}, None),
        ("", {ASYNCHRONOUS: "true"}, True),
    ],
)
def test_a_run_says_whether_its_capacity_scheduler_was_asynchronous(
    more: str, given: dict[str, str] | None, expected: bool | None, experiment: LoadedExperiment, tmp_path: Path
) -> None:
    (tmp_path / "y.yaml").write_text(EXPERIMENT + more)
    loaded = load_experiment(str(tmp_path / "y.yaml"))
    nodes = nodes_of([node("w1", 4096, 4)])
    found = run_header(loaded, "x", MEASURED, nodes=nodes, given=given, scheduler="capacity")
    assert found.asynchronous is expected
    assert run_header(loaded, "x", MEASURED, nodes=nodes, given=given).asynchronous is None


def test_an_application_that_still_runs_has_done_what_was_counted() -> None:
    # 10,000 vcore-seconds in 100 s; now its master alone holds anything.
    running = SimpleNamespace(
        started_ms=500,
        launched_ms=1000,
        # By the RM's own clock, whatever this machine's says.
        elapsed_ms=100_500,
        finished_ms=0,
        final=False,
        vcore_seconds=10_000,
        memory_seconds=10_000 * 1024,
    )
    (stage,) = _by_integrals(cast(Any, running))["stages"]
    assert len(stage.tasks_s) == 99
    assert sum(stage.tasks_s) == pytest.approx(9900, rel=0.01)


@pytest.mark.parametrize("containers", [1.4, 2.0, 2.4, 2.6, 3.05, 7.9])
def test_an_application_cut_into_tasks_lives_as_long_and_uses_as_much(containers: float) -> None:
    lived_s = 100
    app = SimpleNamespace(
        started_ms=500,
        launched_ms=1000,
        elapsed_ms=0,
        finished_ms=1000 + lived_s * 1000,
        final=True,
        vcore_seconds=containers * lived_s,
        memory_seconds=containers * lived_s * 1024,
    )
    found = JobLine(
        job="x", queue="root.a", kind="dag", submit_s=0.0, detail="integrals", **_by_integrals(cast(Any, app))
    )
    result = simulate(
        SimSetup(
            nodes=tuple(NodeSpec(f"n{i}", 4096, 4) for i in range(8)),
            allocations=parse_allocations("<allocations><queue name='a'/></allocations>"),
            jobs=[found.spec()],
        )
    )
    # The master waits for its containers, and they for their start.
    assert result.jobs["finished_s"][0] - result.jobs["started_s"][0] == pytest.approx(lived_s, rel=0.1)
    assert result.jobs["memory_mb_s"][0] == pytest.approx(app.memory_seconds, rel=0.1)


@pytest.mark.parametrize("final", [False, True])
def test_an_application_of_one_container_is_a_master_alone_and_lives_as_long_again(final: bool) -> None:
    app = SimpleNamespace(
        started_ms=500,
        launched_ms=1000,
        elapsed_ms=100_500,
        finished_ms=101_000 if final else 0,
        final=final,
        vcore_seconds=101,
        memory_seconds=101 * 2048,
    )
    found = JobLine(
        job="x", queue="root.a", kind="dag", submit_s=0.0, detail="integrals", **_by_integrals(cast(Any, app))
    )
    result = simulate(
        SimSetup(
            nodes=(NodeSpec("n", 4096, 4),),
            allocations=parse_allocations("<allocations><queue name='a'/></allocations>"),
            jobs=[found.spec()],
            record_tasks=True,
        )
    )
    assert result.finished
    assert result.assignments == 1
    assert result.jobs["memory_mb_s"][0] == pytest.approx(app.memory_seconds, rel=0.05)


def app(**more: Any) -> Any:
    """What the RM shows of an application; it runs unless ``more`` says otherwise."""
    shown = {
        "id": "application_1_0001",
        "type": "YARN",
        "queue": "root.a",
        "user": "ann",
        "name": "j",
        "started_ms": 500,
        "launched_ms": 1000,
        "finished_ms": 0,
        "final": False,
        "final_status": "UNDEFINED",
    }
    return SimpleNamespace(**shown | more)


def test_who_was_there_for_a_second_is_replayed_on_the_nodes_it_ran_on(tmp_path: Path) -> None:
    # 1.06 s of 4,096 MB: whole seconds make 4,338 MB of it, which is rounded up to more than any node has.
    line = job_of(app(elapsed_ms=1560, vcore_seconds=1, memory_seconds=4338), None, 0)
    assert line.am.memory_mb == 4338
    header = Header(nodes=[NodeLine(count=2, memory_mb=4500, vcores=4)], queues={"root.a": QueueLine()})
    trace = put_trace(tmp_path / "t.jsonl", header, [line])
    jobs, _ = jobs_of(load_experiment(str(write_experiment(trace, tmp_path / "replay"))), 1)
    (job,) = jobs
    assert job.am.memory_mb == 4096
    # What was measured task by task is as it was, and refused where it does not fit.
    assert within(line.model_copy(update={"detail": "tasks"}), 4096, 1024).am.memory_mb == 4338


def test_sizes_of_which_only_sums_are_known_are_those_that_the_scheduler_grants(tmp_path: Path) -> None:
    """Containers of 512 MB whose last seconds are not whole: they show 529 MB each, and were replayed as of 768."""
    line = job_of(app(elapsed_ms=60_000, vcore_seconds=180, memory_seconds=180 * 529), None, 0)
    conf = {"yarn.scheduler.increment-allocation-mb": "256", "yarn.scheduler.minimum-allocation-mb": "256"}
    header = Header(nodes=[NodeLine(count=2, memory_mb=3072, vcores=6)], queues={"root.a": QueueLine()}, conf=conf)
    trace = put_trace(tmp_path / "t.jsonl", header, [line])
    jobs, _ = jobs_of(load_experiment(str(write_experiment(trace, tmp_path / "replay"))), 1)
    (job,) = jobs
    assert {job.am.memory_mb, *(stage.demand.memory_mb for stage in job.stages)} == {512}


def test_an_application_that_was_killed_ends_when_it_was() -> None:
    """However it was killed: of one whose master was told to kill its job the state is FINISHED."""
    counted = {"finished_ms": 60_500, "final": True, "vcore_seconds": 600, "memory_seconds": 600 * 1024}
    killed = job_of(app(final_status="KILLED", **counted), None, 0)
    assert (killed.lifetime_s, killed.finished_s, killed.spec().lifetime_s) == (60.0, 60.5, 60.0)
    assert job_of(app(final_status="FAILED", **counted), None, 0).lifetime_s is None


def test_a_history_server_that_does_not_answer_is_told() -> None:
    def mapreduce(_: str) -> None:
        raise Unreachable("refused", where="http://history:19888")

    ended = app(type="MAPREDUCE", finished_ms=2000, final=True, vcore_seconds=10, memory_seconds=10)
    with pytest.raises(Unreachable):
        job_of(ended, Histories(mapreduce=cast(Any, SimpleNamespace(mapreduce=mapreduce))), 0)


@pytest.mark.parametrize(
    ("leaves", "share"),
    [
        # (steady share, fair share now, masters' limit when the queue last looked) of each leaf.
        ([(4096, 4096, 2048), (8192, 8192, 4096)], 0.5),
        ([(1000, 1000, 251), (3000, 3000, 750), (4096, 0, 4096)], 0.25),
        ([(4096, 4096, 3277), (4096, 4096, 3277)], 0.8),
        ([(4096, 4096, 0)], -1.0),
        ([(4096, 4096, 0), (4096, 4096, 2048)], -1.0),
        ([(4096, 4096, 2**62)], -1.0),
        ([(4096, 0, 0), (4096, 0, 0)], -1.0),
        # An idle cluster: as measured after a load in three queues; one that looked while another was idle.
        ([(4096, 0, 2048), (2048, 0, 4096), (2048, 0, 1024)], 0.5),
        ([(4096, 0, 0), (4096, 0, 4096)], 0.5),
        ([(4096, 0, 1024), (4096, 0, 2048)], 0.25),
        # Looks at different moments; a leaf that is alone by now and looked before.
        ([(4096, 4096, 2048), (4096, 4096, 4096)], 0.5),
        ([(4096, 8192, 2048), (4096, 0, 2048)], 0.5),
    ],
)
def test_the_masters_part_is_what_the_leaves_show_or_hadoops_default(
    leaves: list[tuple[int, int, int]], share: float
) -> None:
    queues = {
        str(number): SimpleNamespace(
            leaf=True, steady_share=Resource(steady, 1), fair_share=Resource(fair, 1), am_maximum=Resource(most, 1)
        )
        for number, (steady, fair, most) in enumerate(leaves)
    }
    assert am_share_of(cast(Any, SimpleNamespace(queues=queues))) == share


def test_what_a_mapreduce_jobs_containers_were_held_besides_is_spread_over_them() -> None:
    # Master of 1,000 MB for 40 s, which set about its work after 9; four maps of 10 s and a reduce of 20. The
    # ResourceManager counted 70 s of containers, and rounded their memory up: the vcores' count is the smaller.
    stages = [
        {"name": "map", "memory_mb": 1000, "vcores": 1, "tasks_s": [10.0] * 4},
        {"name": "reduce", "memory_mb": 1000, "vcores": 1, "tasks_s": [20.0], "after": ["map"]},
    ]
    told = SimpleNamespace(
        mapreduce=lambda _: {"am": {"memory_mb": 1000, "vcores": 1}, "stages": stages}, began_ms=lambda _: 10_000
    )
    counted = {"memory_seconds": 1024 * 110, "vcore_seconds": 110 - 3}
    ended = app(type="MAPREDUCE", finished_ms=41_000, final=True, **counted)
    line = job_of(ended, Histories(mapreduce=cast(Any, told)), 0)
    # Half a master's heartbeat goes by in the simulator, too. Three vcore-seconds are of containers' last, cut ones.
    assert [stage.starts_s for stage in line.stages] == [[1.5] * 4, [1.5]]
    assert line.am_start_s == 9.5
    # A master's clock that is off by more than the application lived is not believed.
    told.began_ms = lambda _: 100_000
    assert job_of(ended, Histories(mapreduce=cast(Any, told)), 0).am_start_s is None
    told.began_ms = lambda _: None
    assert job_of(ended, Histories(mapreduce=cast(Any, told)), 0).am_start_s is None
