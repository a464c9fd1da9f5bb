"""A recording that goes on: nothing that the ResourceManager retains is lost or told twice, whoever restarts."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.base.errors import InputError
from harness.cli.record import _follow
from harness.model.jobs import Duration, JobSpec, NodeSpec, Stage
from harness.model.resources import Resource
from harness.sim.serve.live import LiveCluster
from harness.sim.serve.rest import RestServer
from harness.sim.serve.rpc import RpcServer
from harness.sim.setup import SimSetup
from harness.traces.following import MISSING_LOOKS, Follower, Following, Recording, Seen, follow
from harness.traces.histories import Histories
from harness.traces.node_following import NodeRecorder
from harness.traces.nodes import NodeLine
from harness.traces.recorded import Header, QueueLine, read_trace, running_beside
from harness.traces.recording import idle_words, job_of, uncounted_words
from harness.traces.spark_history import SparkHistory
from harness.yarn.fair.parse import parse_allocations
from harness.yarn.http import HttpOptions
from harness.yarn.rmclient import RmAddress, RmClient
from tests.ports import held_port


def app(number: int, start: int = 1000, **more: Any) -> Seen:
    found = Seen(
        id=f"application_{start}_{number:04d}",
        user="ann",
        name="j",
        queue="root.a",
        type="YARN",
        started_ms=10_000,
        launched_ms=11_000,
        finished_ms=0,
        elapsed_ms=20_000,
        memory_seconds=40_960,
        vcore_seconds=40,
        final=False,
    )
    return replace(found, **more)


def ended(one: Seen) -> Seen:
    return replace(one, final=True, finished_ms=30_000)


# --- the core ---------------------------------------------------------------------------------------------------------


def test_an_application_is_handed_out_once_when_it_ends() -> None:
    follower = Follower()
    assert follower.look([app(1), app(2)]).ended == []
    found = follower.look([ended(app(1)), app(2)])
    assert [one.id for one in found.ended] == [app(1).id]
    assert follower.look([ended(app(1)), app(2)]).ended == []
    assert (found.vanished, found.unseen) == (0, 0)


def test_what_has_just_ended_is_taken_with_what_its_last_containers_used() -> None:
    """A ResourceManager that says FINISHED still counts containers that it has yet to remove."""
    follower = Follower()
    follower.look([app(1)], clock_s=29.0)
    assert follower.look([ended(app(1))], clock_s=30.0).ended == []
    counted = ended(app(1, memory_seconds=42_456))
    assert follower.look([counted], clock_s=33.0).ended == []
    assert [one.memory_seconds for one in follower.look([counted], clock_s=36.0).ended] == [42_456]
    assert follower.look([counted], clock_s=37.0).ended == []


def test_a_single_recording_says_what_may_not_be_counted_yet() -> None:
    apps = [ended(app(1)), app(2)]
    assert uncounted_words(apps, 33.0).startswith("1 application(s) ended within the last 5 s: ")
    assert uncounted_words(apps, 40.0) == uncounted_words(apps, None) == ""


def test_what_has_just_ended_and_is_then_forgotten_is_taken_as_it_ended() -> None:
    follower = Follower()
    follower.look([ended(app(1)), app(2)], clock_s=30.0)
    for _ in range(MISSING_LOOKS - 1):
        assert follower.look([app(2)], clock_s=40.0).ended == []
    found = follower.look([app(2)], clock_s=40.0)
    assert ([one.finished_ms for one in found.ended], found.vanished) == ([30_000], 0)


def test_what_ended_without_having_run_is_counted_once() -> None:
    follower = Follower()
    refused = replace(ended(app(1)), launched_ms=0, memory_seconds=0, vcore_seconds=0, final_status="FAILED")
    found = follower.look([refused, app(2)])
    assert (found.ended, found.idle) == ([], [refused])
    assert idle_words(found.idle) == "applications left out because nothing ran in them: 1 (1 failed or refused)"
    assert follower.look([refused, app(2)]).idle == []


def test_what_ended_between_two_looks_and_is_forgotten_is_counted() -> None:
    follower = Follower()
    follower.look([app(1)])
    found = follower.look([app(1), ended(app(5)), app(6)])
    assert [one.id for one in found.ended] == [app(5).id]
    assert found.unseen == 3  # 2, 3 and 4
    assert follower.look([app(1), app(6)]).unseen == 0


def test_what_goes_without_an_end_ends_when_it_was_last_seen() -> None:
    follower = Follower()
    follower.look([app(1), app(2)])
    for _ in range(MISSING_LOOKS - 1):
        assert follower.look([app(2)]).ended == []
    found = follower.look([app(2)])
    assert found.vanished == 1
    assert [(one.id, one.final, one.finished_ms) for one in found.ended] == [(app(1).id, True, 30_000)]
    assert follower.look([ended(app(1)), app(2)]).ended == [], "it is not told twice when it comes back"


def test_a_list_that_is_empty_for_a_moment_ends_nothing() -> None:
    follower = Follower()
    follower.look([app(1), app(2)])
    follower.look([])
    assert follower.look([app(1), app(2)]).ended == []
    assert set(follower.running) == {app(1).id, app(2).id}


def test_counters_that_begin_anew_go_on() -> None:
    """An RM that recovers running applications counts what they use from then on."""
    follower = Follower()
    follower.look([app(1, vcore_seconds=40, memory_seconds=40_960)])
    follower.look([app(1, vcore_seconds=5, memory_seconds=5120)])
    follower.look([app(1, vcore_seconds=9, memory_seconds=9216)])
    (found,) = follower.look([ended(app(1, vcore_seconds=10, memory_seconds=10_240))]).ended
    assert (found.vcore_seconds, found.memory_seconds) == (50, 51_200)


def test_a_resource_manager_that_starts_anew_counts_from_one() -> None:
    follower = Follower()
    follower.look([app(7)])
    found = follower.look([app(7), app(1, start=2000), app(3, start=2000)])
    assert found.unseen == 1
    # Numbers of starts before the first look are nobody's loss.
    assert Follower().look([app(7), app(3, start=2000)]).unseen == 0


def test_memory_is_bounded_by_what_the_resource_manager_retains() -> None:
    follower = Follower()
    for first in range(1, 3000, 10):
        follower.look([ended(app(number)) for number in range(first, first + 20)])
    assert len(follower.written) < 20 + 10 * (2 * MISSING_LOOKS + 1)
    assert len(follower.running) == 0
    assert len(json.dumps(follower.document())) < 1000


def test_its_document_is_itself() -> None:
    follower = Follower()
    follower.look([app(1), app(2, vcore_seconds=3)])
    again = Follower.restored(json.loads(json.dumps(follower.document())))
    assert (again.running, again.highest) == (follower.running, follower.highest)


# --- on a simulated ResourceManager -----------------------------------------------------------------------------------

ALLOCATIONS = (
    "<allocations><queueMaxAMShareDefault>-1.0</queueMaxAMShareDefault>"
    "<queue name='a'><weight>3.0</weight></queue><queue name='b'/></allocations>"
)


def jobs(count: int, every_s: float = 5.0) -> list[JobSpec]:
    stage = Stage("map", 2, Resource(1024, 1), Duration("constant", value_s=6.0))
    return [
        JobSpec(
            id=f"j{n}",
            queue="root.a" if n % 2 else "root.b",
            kind="dag",
            am=Resource(1024, 1),
            stages=(stage,),
            name=f"j{n}",
            submit_s=1 + n * every_s,
        )
        for n in range(count)
    ]


class World:
    """A clock, and a ResourceManager that comes and goes on the same ports."""

    def __init__(self, folder: Path) -> None:
        self.now = 1.7e9
        self.file = folder / "fair-scheduler.xml"
        self.file.write_text(ALLOCATIONS)
        self.ports = [held_port() for _ in range(3)]
        self.cluster: LiveCluster | None = None

    @contextlib.contextmanager
    def rm(
        self,
        load: list[JobSpec],
        completed: int = 1000,
        nodes: tuple[NodeSpec, ...] = (NodeSpec("n1", 65536, 64), NodeSpec("n2", 65536, 64)),
    ) -> Iterator[None]:
        setup = SimSetup(nodes=nodes, allocations=parse_allocations(ALLOCATIONS), jobs=load)
        self.cluster = LiveCluster(setup, self.file, completed=completed, clock=lambda: self.now)
        rest, admin, client = self.ports
        servers = [
            RestServer(self.cluster, "127.0.0.1", rest),
            RpcServer(self.cluster, "127.0.0.1", admin),
            RpcServer(self.cluster, "127.0.0.1", client),
        ]
        for server in servers:
            server.start()
        try:
            yield
        finally:
            for server in servers:
                server.stop()
            self.cluster = None

    def client(self) -> RmClient:
        rest, admin, client = self.ports
        address = RmAddress.of(f"http://127.0.0.1:{rest}", admin=f"127.0.0.1:{admin}", client=f"127.0.0.1:{client}")
        return RmClient([address], HttpOptions(attempts=1, deadline_s=300.0, read_timeout_s=300.0))

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        if self.cluster is not None:
            self.cluster.catch_up()

    def record(self, path: Path, for_s: float, **more: Any) -> list[str]:
        """What a recorder of its own says in so many seconds."""
        said: list[str] = []
        with self.client() as client, Recording(path) as recording:
            following = Following(client, recording, says=said.append, **more)
            follow(following, for_s=for_s, clock=lambda: self.now, sleep=self.sleep)
        return said


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_what_was_recorded_in_pieces_is_what_ran(world: World, tmp_path: Path) -> None:
    path = tmp_path / "weeks.jsonl"
    with world.rm(jobs(12)):
        world.record(path, 35)
        some = read_trace(path)
        assert running_beside(path).exists()
        world.sleep(30)  # the recorder is down
        said = world.record(path, 60)
        apps = world.client().rest.apps()
    trace = read_trace(path)
    assert 0 < len([job for job in some.jobs if job.finished_s]) < 12
    assert sorted(job.job for job in trace.jobs) == sorted(app.id for app in apps)
    assert len({job.job for job in trace.jobs}) == 12
    whole = {app.id: app for app in apps}
    for job in trace.jobs:
        assert job == job_of(whole[job.job], None, trace.header.zero_ms or 0), "what ended is told to the last figure"
    assert trace.notes == ()
    assert not [line for line in said if "not seen" in line]
    assert trace.header.queues["root.a"].weight == 3.0


def test_a_recording_that_is_stopped_says_what_it_has(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "weeks.jsonl"

    def stopped(going: Following, *, for_s: float | None) -> None:
        follow(going, for_s=60.0, clock=lambda: world.now, sleep=world.sleep)
        raise KeyboardInterrupt

    monkeypatch.setattr("harness.traces.following.follow", stopped)
    with world.rm(jobs(12)), world.client() as client, Recording(path) as recording:
        with pytest.raises(KeyboardInterrupt):
            _follow(Following(client, recording), None, False)
        ended, left = recording.jobs, len(recording.follower.running)
    assert ended > 0
    said = capsys.readouterr().err.splitlines()[-1]
    assert said == f"{path}: {ended} applications, {left} more run or have just ended"


def test_nodes_that_come_and_go_are_recorded_over_a_restart_of_the_recorder(world: World, tmp_path: Path) -> None:
    path = tmp_path / "weeks.jsonl"
    nodes = (
        NodeSpec("n1", 65536, 64),
        NodeSpec("n2", 65536, 64, leave_s=62.0),
        NodeSpec("n3", 32768, 32, join_s=22.0),
        NodeSpec("n4", 16384, 16, join_s=95.0),
    )
    with world.rm(jobs(12), nodes=nodes):
        world.record(path, 50)
        world.record(path, 30)
        world.sleep(30)  # the recorder is down
        world.record(path, 30)
    header = read_trace(path).header
    changes = [(line.node.partition(":")[0], line.change) for line in header.changes or ()]
    assert changes == [("n3", "joined"), ("n2", "lost"), ("n4", "joined")]
    late_s = [line.at_s - true for line, true in zip(header.changes or (), (22.0, 62.0, 95.0), strict=True)]
    assert all(-1.5 <= late <= 41.0 for late in late_s), late_s
    assert sum(text.startswith(b'{"trace"') for text in path.read_bytes().splitlines()) == 1
    assert not header.assumed


@pytest.mark.parametrize(
    ("before", "now", "restarted", "expected"),
    [
        (True, None, False, True),  # the store does not answer for once
        (None, False, False, False),  # the file was begun by a recorder that did not ask
        (True, False, True, True),  # a part of the recording
        (False, False, True, False),
        (None, False, True, None),
        (False, None, True, None),
    ],
)
def test_a_file_says_asynchronous_if_any_part_of_it_is(
    before: bool | None, now: bool | None, restarted: bool, expected: bool | None, tmp_path: Path
) -> None:
    nodes = [NodeLine(memory_mb=1024, vcores=1)]
    first = Header(nodes=nodes, queues={"root.a": QueueLine()}, source="cluster 1", asynchronous=before)
    later = first.model_copy(update={"source": "cluster 2" if restarted else "cluster 1", "asynchronous": now})
    with Recording(tmp_path / "weeks.jsonl") as recording:
        recording.zero_ms, recording.header = 0, first.model_copy(update={"zero_ms": 0})
        written = recording.changed(later, NodeRecorder())
    assert (recording.header if written is None else written).asynchronous is expected


def test_what_event_logs_have_said_stands_in_the_file_after_a_restart_of_the_recorder(
    world: World, tmp_path: Path
) -> None:
    """Without event logs read since its start, a recorder forgot the heartbeats of the masters that it had recorded."""
    path = tmp_path / "weeks.jsonl"
    known, anew = SparkHistory("http://127.0.0.1:1"), SparkHistory("http://127.0.0.1:1")
    known.heartbeats_ms[3000] += 1
    known.assumed["containers are of Spark's default sizes"] += 1
    with world.rm(jobs(3)):
        world.record(path, 20, histories=Histories(spark=known))
        world.record(path, 80, histories=Histories(spark=anew))
    header = read_trace(path).header
    assert header.delays.am_heartbeat_ms == 3000
    assert header.assumed == ["Spark: containers are of Spark's default sizes"]
    assert sum(text.startswith(b'{"trace"') for text in path.read_bytes().splitlines()) == 1


def test_it_survives_a_resource_manager_that_comes_back_with_nothing(world: World, tmp_path: Path) -> None:
    path = tmp_path / "weeks.jsonl"
    said: list[str] = []
    with Recording(path) as recording:

        def go(for_s: float) -> set[str]:
            with world.client() as client:
                following = Following(client, recording, says=said.append)
                follow(following, for_s=for_s, clock=lambda: world.now, sleep=world.sleep)
                return {app.id for app in client.rest.apps() if app.launched_ms} if world.cluster else set()

        with world.rm(jobs(6)):
            first = go(25)
            alive = {seen.id for seen in recording.follower.running.values()}
        go(20)  # nobody answers
        with world.rm(jobs(3)):
            second = go(90)
    trace = read_trace(path)
    assert alive
    assert len(second) == 3
    assert {job.job for job in trace.jobs} == first | second
    assert len(trace.jobs) == len(first) + 3
    assert [line for line in said if "trying again" in line]
    assert sum(note.vanished for note in trace.notes) == len(alive)
    assert sum(note.unseen for note in trace.notes) == 0


def test_what_was_forgotten_meanwhile_is_told(world: World, tmp_path: Path) -> None:
    path = tmp_path / "weeks.jsonl"
    with world.rm(jobs(40, every_s=1.0), completed=5):
        world.record(path, 10)
        world.sleep(200)
        said = world.record(path, 50)
        retained = {app.id for app in world.client().rest.apps()}
    trace = read_trace(path)
    known = {job.job for job in trace.jobs}
    assert retained <= known
    # A number above the highest that is shown tells of itself only when the next one is given out.
    highest = max(int(one[-4:]) for one in retained)
    assert sum(note.unseen for note in trace.notes) == highest - len(known) > 0
    assert sum(note.vanished for note in trace.notes) > 0, "known to have run, forgotten before they were seen to end"
    assert any("have forgotten" in line or "has forgotten" in line for line in said)


def test_an_end_in_the_midst_of_a_line_is_cut_off_and_recorded_anew(world: World, tmp_path: Path) -> None:
    path = tmp_path / "weeks.jsonl"
    with world.rm(jobs(4)):
        world.record(path, 80)
        whole = path.read_bytes()
        last = whole.rstrip(b"\n").rpartition(b"\n")[0] + b"\n"
        path.write_bytes(whole[: len(last) + 40])
        assert len(read_trace(path).jobs) == 3, "a reader passes over what is just being written"
        world.record(path, 15)
    assert sorted(path.read_bytes().splitlines()) == sorted(whole.splitlines())


def test_one_recorder_a_file_and_no_file_of_something_else(tmp_path: Path) -> None:
    path = tmp_path / "weeks.jsonl"
    with Recording(path), pytest.raises(InputError, match="another process"):
        Recording(path)
    other = tmp_path / "other.txt"
    other.write_text("precious\n")
    with pytest.raises(InputError, match="not a recording"):
        Recording(other)
    assert other.read_text() == "precious\n"
    running_beside(path).write_text('{"running": 1}')
    with pytest.raises(InputError, match="not what a recording leaves"):
        Recording(path)


def test_a_disk_that_is_full_leaves_whole_lines(world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "weeks.jsonl"
    real, full = os.write, [False]

    def write(handle: int, data: Any) -> int:
        if full[0]:
            real(handle, bytes(data)[:10])
            raise OSError(28, "No space left on device")
        return real(handle, data)

    monkeypatch.setattr(os, "write", write)
    with world.rm(jobs(5)), world.client() as client, Recording(path) as recording:
        following, said = Following(client, recording), []
        following.says = said.append
        follow(following, for_s=20, clock=lambda: world.now, sleep=world.sleep)
        full[0] = True
        follow(following, for_s=30, clock=lambda: world.now, sleep=world.sleep)
        assert path.read_bytes().endswith(b"\n")
        full[0] = False
        follow(following, for_s=60, clock=lambda: world.now, sleep=world.sleep)
    assert any("No space left" in line for line in said)
    assert len(read_trace(path).jobs) == 5
