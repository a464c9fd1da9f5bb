"""The nodes of a trace over time: read, written, recorded, and what is not so is refused with its line."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.base.errors import InputError
from harness.experiments.resolve import Variant, jobs_of, load_experiment, nodes_of
from harness.experiments.simulated import setup_of, simulate_variant
from harness.experiments.spec import NodeGroupSpec
from harness.model.resources import Resource
from harness.predict.playing import simulate_phase
from harness.predict.replay import write_experiment
from harness.predict.simulated_run import _nodes_over_time
from harness.traces.accounting import account_lines
from harness.traces.node_following import MISSING_POLLS, NodeFollower, NodeRecorder
from harness.traces.nodes import NodeChangeLine, NodeLine, Nodes, Presence, Step, capacity_steps, presences_of
from harness.traces.recorded import Header, JobLine, QueueLine, put_trace, read_trace
from harness.traces.spec import MasterSpec
from harness.yarn.answers import NodeStatus
from tests.predict.loads import job

SIZE = {"memory_mb": 4096, "vcores": 4}
WAS = {"was_memory_mb": 4096, "was_vcores": 4}


def line(at_s: float, node: str, change: Any, **more: int) -> NodeChangeLine:
    return NodeChangeLine(node=node, at_s=at_s, change=change, **more)


def header(*changes: NodeChangeLine, count: int = 2, **more: Any) -> Header:
    nodes = [NodeLine(count=count, memory_mb=4096, vcores=4)]
    return Header(nodes=nodes, queues={"root.a": QueueLine()}, changes=list(changes) or None, **more)


def ended(name: str, at_s: float) -> JobLine:
    return job(name, "root.a", 0.0, 1, 10.0).model_copy(update={"started_s": 0.0, "finished_s": at_s})


CHANGES = (
    line(10, "h3", "joined", memory_mb=8192, vcores=8),
    line(20, "h1", "lost", **WAS),
    line(30, "h1", "joined", **SIZE),
    line(40, "h3", "resized", memory_mb=2048, vcores=2),
    line(50, "h3", "decommissioning"),
    line(60, "h3", "recommissioned"),
    line(70, "h3", "decommissioning"),
    line(80, "h3", "decommissioned"),
)


def test_each_node_is_known_from_its_registration_to_its_end() -> None:
    found = Counter(dict(header(*CHANGES).presences()))
    steps = (Step(40, (2048, 2)), Step(50, None), Step(60, (2048, 2)), Step(70, None))
    assert found == Counter(
        [
            Presence((4096, 4)),
            Presence((4096, 4), 0.0, 20.0),
            Presence((4096, 4), 30.0),
            Presence((8192, 8), 10.0, 80.0, steps),
        ]
    )


def test_what_the_cluster_offers_over_time() -> None:
    """A node that is being decommissioned offers nothing."""
    steps = capacity_steps(header(*CHANGES).presences())
    assert [(at_s, mb) for at_s, mb, _ in steps] == [
        (0.0, 8192),
        (10, 16384),
        (20, 12288),
        (30, 16384),
        (40, 10240),
        (50, 8192),
        (60, 10240),
        (70, 8192),
    ]
    assert capacity_steps(header().presences()) == [(0.0, 8192, 8)]


def test_a_trace_is_written_and_read_with_its_changes(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    read = put_trace(path, header(*CHANGES), [ended("j", 9.0)])
    assert read.header.changes == list(CHANGES)
    assert sum(text.startswith('{"node"') for text in path.read_text().splitlines()) == len(CHANGES)
    again = put_trace(tmp_path / "again.jsonl", read.header, read.jobs)
    assert (tmp_path / "again.jsonl").read_bytes() == path.read_bytes()
    assert again.header == read.header


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ([line(5, "h9", "lost")], "no line says that it joined"),
        ([line(5, "h9", "lost", was_memory_mb=1, was_vcores=1)], "no further node of 1 MiB"),
        ([line(5, f"h{n}", "lost", **WAS) for n in range(3)], "no further node"),
        ([line(5, "h9", "joined", **SIZE), line(6, "h9", "joined", **SIZE)], "is there already"),
        ([line(5, "h9", "joined", **SIZE), line(4, "h9", "lost")], "after a change at 5 s"),
        ([line(5, "h9", "recommissioned")], "was not being decommissioned"),
    ],
)
def test_changes_that_cannot_have_happened_are_refused_with_their_line(
    tmp_path: Path, changes: list[NodeChangeLine], says: str
) -> None:
    path = tmp_path / "trace.jsonl"
    lines = [header(), *changes, ended("j", 9.0)]
    path.write_text("".join(one.model_dump_json(exclude_none=True) + "\n" for one in lines))
    with pytest.raises(InputError, match=says) as caught:
        read_trace(path)
    assert str(caught.value.where) == f"{path}:{1 + len(changes)}"
    with pytest.raises(ValueError, match=says):
        header(*changes)


@pytest.mark.parametrize("fields", [{"change": "joined"}, {"change": "lost", **SIZE}, {"change": "lost", "vcores": 1}])
def test_sizes_belong_to_the_changes_that_have_them(fields: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="memory"):
        NodeChangeLine(node="h", at_s=1, **fields)


def test_an_old_recording_changes_size_when_the_application_before_ended(tmp_path: Path) -> None:
    """Recorders of before wrote a first line for each change, without its time: it is estimated, and that is said."""
    path = tmp_path / "weeks.jsonl"
    lines = [
        header(count=4, zero_ms=1000),
        ended("a", 100.0),
        header(count=6, zero_ms=1000),
        ended("b", 150.0),
        ended("c", 140.0),
        header(count=1, zero_ms=1000),
        ended("d", 300.0),
    ]
    path.write_text("".join(one.model_dump_json(exclude_none=True) + "\n" for one in lines))
    found = read_trace(path).header
    assert [(at_s, mb) for at_s, mb, _ in capacity_steps(found.presences())] == [
        (0.0, 4 * 4096),
        (100.0, 6 * 4096),
        (150.0, 4096),
    ]
    assert any("2 changes of the nodes happened" in words for words in account_lines(found, []))


# --- what a recorder notices ------------------------------------------------------------------------------------------


def status(name: str, state: str = "RUNNING", mb: int = 4096, used: int = 0) -> NodeStatus:
    free = Resource(mb - used, 4 if state == "RUNNING" else 0)
    return NodeStatus(name, name, "", state, "", "", 0, Resource(used, 0 if state == "RUNNING" else 1), free)


def test_changes_from_poll_to_poll() -> None:
    follower = NodeFollower()
    assert follower.poll([status("a"), status("b"), status("c", "UNHEALTHY")]) == []

    def changes(*nodes: NodeStatus) -> list[tuple[str, str]]:
        return [(step.name, step.change) for step in follower.poll(nodes)]

    assert changes(status("a"), status("b", "DECOMMISSIONING", 1024, 1024), status("c")) == [
        ("b", "decommissioning"),
        ("c", "joined"),
    ]
    assert changes(status("a", mb=8192), status("b", "DECOMMISSIONING", 512, 512), status("c", "LOST")) == [
        ("a", "resized"),
        ("c", "lost"),
    ]
    assert changes(status("a", mb=8192), status("b", "DECOMMISSIONED", 0)) == [("b", "decommissioned")]
    assert changes(status("a", "SHUTDOWN")) == [("a", "lost")]


def test_nodes_that_a_restarted_resource_manager_does_not_show_yet_are_there() -> None:
    follower = NodeFollower()
    follower.poll([status("a"), status("b")])
    for _ in range(MISSING_POLLS - 1):
        assert follower.poll([]) == []
    assert [(step.name, step.change) for step in follower.poll([status("b")])] == [("a", "lost")]


def test_what_a_recorder_writes_is_what_a_reader_reads(tmp_path: Path) -> None:
    """Also where its state is lost and the nodes have changed meanwhile."""
    recorder = NodeRecorder().poll([status("a"), status("b"), status("c")], 0.0)[0]
    recorder = recorder.shown(recorder.offered(), 0.0)
    lines: list[Any] = [Header(nodes=recorder.offered(), queues={"root.a": QueueLine()}, zero_ms=1)]
    recorder, changes = recorder.poll([status("a"), status("b", "LOST"), status("c", mb=8192), status("d")], 20.0)
    assert [one.change for one in changes] == ["lost", "resized", "joined"]
    lines += changes
    # A new process without the file beside it: it knows what the lines say, and not which nodes these are.
    recorder = NodeRecorder(NodeFollower(), recorder.written)
    recorder, changes = recorder.poll([status("d"), status("e", mb=1024)], 50.0)
    assert changes == []
    lines += [ended("j", 30.0), lines[0].model_copy(update={"nodes": recorder.offered()})]
    recorder = recorder.shown(recorder.offered(), 30.0)
    recorder, changes = recorder.poll([status("d", "LOST"), status("e", "LOST")], 60.0)
    lines += changes
    path = tmp_path / "weeks.jsonl"
    path.write_text("".join(one.model_dump_json(exclude_none=True) + "\n" for one in lines))
    steps = capacity_steps(read_trace(path).header.presences())
    assert [(at_s, mb) for at_s, mb, _ in steps] == [(0.0, 12288), (20.0, 16384), (30.0, 5120), (60.0, 0)]


def test_the_follower_is_its_document() -> None:
    follower = NodeFollower()
    follower.poll([status("a"), status("b", "DECOMMISSIONING")])
    assert NodeFollower.restored(json.loads(json.dumps(follower.document()))) == follower
    assert NodeFollower.restored(None) == NodeFollower()


def test_a_copy_changes_by_itself() -> None:
    nodes = Nodes([NodeLine(**SIZE)])
    nodes.copy().change(line(3, "a", "lost", **WAS))
    assert nodes.offered() == Counter({(4096, 4): 1})


# --- what is played ---------------------------------------------------------------------------------------------------


def test_the_experiment_of_a_trace_has_its_nodes_over_time(tmp_path: Path) -> None:
    changes = (line(10, "h3", "joined", memory_mb=8192, vcores=8), line(20, "h1", "lost", **WAS))
    trace = put_trace(tmp_path / "trace.jsonl", header(*changes), [ended("j", 9.0)])
    nodes = nodes_of(load_experiment(str(write_experiment(trace, tmp_path / "out"))).spec)
    assert sorted((one.memory_mb, one.join_s, one.leave_s or 0.0) for one in nodes) == [
        (4096, 0.0, 0.0),
        (4096, 0.0, 20.0),
        (8192, 10.0, 0.0),
    ]


@pytest.mark.parametrize("scheduler", ["fair", "capacity"])
def test_a_replay_has_the_nodes_of_every_moment(tmp_path: Path, scheduler: Any) -> None:
    """Two nodes of four go at 40 s with their containers, one comes at 100 s: capacity follows, and no task is lost."""
    changes = [line(40, name, "lost", **WAS) for name in "ab"] + [line(100, "c", "joined", **SIZE)]
    load = job("j", "root.a", 0.0, 60, 20.0).model_copy(update={"finished_s": 150.0})
    trace = put_trace(tmp_path / "trace.jsonl", header(*changes, count=4), [load])
    file = str(write_experiment(trace, tmp_path / "out", schedulers=(scheduler,)))
    variant = Variant("as-it-is", scheduler, "inside", {}, 0, 5.0, scheduler=scheduler)
    result = simulate_phase(file, variant, 1)
    at_s, capacity = result.samples.time_s, result.samples.capacity_mb
    for from_s, until_s, nodes in ((0, 40, 4), (41, 100, 2), (101, 1e9, 3)):
        there = {int(mb) for now_s, mb in zip(at_s, capacity, strict=True) if from_s < now_s < until_s}
        assert there == {nodes * 4096}, (from_s, until_s)
    assert result.finished
    assert not result.failed_jobs
    # 16 containers at once but for the master's, then 8, then 12: with all nodes it ends after some 80 s.
    assert 130 < result.end_s < 190


@pytest.mark.parametrize("scheduler", ["fair", "capacity"])
def test_a_drained_node_keeps_its_containers_and_a_resized_one_is_as_large_as_it_says(
    tmp_path: Path, scheduler: Any
) -> None:
    """Of four nodes one drains from 35 s on and is gone at 36 s, which it outlives; one has half from 60 s on."""
    changes = [
        line(35, "a", "decommissioning", **WAS),
        line(36, "a", "decommissioned"),
        line(60, "b", "resized", memory_mb=2048, vcores=2, **WAS),
    ]
    # Without a master, which would hold its node to the end of the job.
    unmanaged = {"am": MasterSpec(memory_mb=0, vcores=0), "finished_s": 150.0}
    load = job("j", "root.a", 0.0, 60, 20.0).model_copy(update=unmanaged)
    trace = put_trace(tmp_path / "trace.jsonl", header(*changes, count=4), [load])
    file = str(write_experiment(trace, tmp_path / "out", schedulers=(scheduler,)))
    variant = Variant("as-it-is", scheduler, "inside", {}, 0, 5.0, scheduler=scheduler)
    experiment = load_experiment(file)
    setup = setup_of(experiment, replace(variant, seed=1), jobs_of(experiment, 1)[0])
    result = simulate_variant(replace(setup, record_tasks=True))
    at_s, capacity = result.samples.time_s, result.samples.capacity_mb

    def there(from_s: float, until_s: float) -> set[int]:
        return {int(mb) for now_s, mb in zip(at_s, capacity, strict=True) if from_s < now_s < until_s}

    assert there(0, 35) == {4 * 4096}
    # What still runs counts: at most four containers, and fewer and fewer.
    assert all(3 * 4096 <= mb <= 4 * 4096 for mb in there(36, 57))
    assert there(57, 60) == {3 * 4096}
    assert there(62, 1e9) == {3 * 4096 - 2048}
    tasks = result.tasks
    assert tasks is not None
    late = [
        int(node)
        for node, start_ms, outcome in zip(tasks["node"], tasks["start_ms"], tasks["outcome"], strict=True)
        if start_ms > 37_000 and outcome == 0
    ]
    drained = next(n for n, node in enumerate(setup.nodes) if node.leave_s is not None)
    assert drained not in late
    assert all(outcome == 0 for outcome in tasks["outcome"]), "nothing that ran is killed"
    assert result.finished


def test_a_run_with_changing_nodes_is_the_trace_of_these_nodes(tmp_path: Path) -> None:
    trace = put_trace(tmp_path / "trace.jsonl", header(*CHANGES), [ended("j", 9.0)])
    groups = load_experiment(str(write_experiment(trace, tmp_path / "out"))).spec.cluster.nodes
    nodes, changes = _nodes_over_time(groups)
    assert sorted(capacity_steps(presences_of(nodes, changes))) == sorted(capacity_steps(trace.header.presences()))


def test_nodes_without_changes_are_hashed_as_before() -> None:
    assert "changes" not in NodeGroupSpec(**SIZE).model_dump()
    assert "changes" in NodeGroupSpec(**SIZE, changes=[{"at_s": 1, "decommission": True}]).model_dump()
