"""Spark's event logs: what is read of real ones in every form, of every part of an application, and of damage."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from harness.base.errors import InputError
from harness.predict.foreign import any_trace
from harness.traces.formats import Unreadable, format_of, head_of
from harness.traces.formats.base import Reading
from harness.traces.formats.spark import SparkEventLog
from harness.traces.recorded import Header, JobLine, NodeLine, QueueLine, Trace, job_line
from harness.traces.spark import container_sizes, dynamic_allocation
from tests.traces.event_logs import PROPERTIES, Log, LoggedJob, LoggedStage, Task, two_stages
from tests.traces.test_identity import identity_holds

#: Written by Spark 4.0.5 on YARN (Hadoop 3.4.2), without names and paths of its machine; the packed ones by the
#: libraries that Spark itself packs with.
RECORDED = Path(__file__).parent / "recorded" / "spark"
PLAIN = RECORDED / "application_1795893603464_0001_1"
ROLLED = RECORDED / "eventlog_v2_application_1795893603464_0013_1"


def read(path: Path) -> Reading:
    reader = format_of(path, head_of(path))
    assert isinstance(reader, SparkEventLog)
    found = reader.read(path)
    identity_holds(found)
    return found


def only(path: Path) -> JobLine:
    (job,) = read(path).jobs
    return job.line


def logged(tmp_path: Path, log: Log) -> JobLine:
    return only(log.write(tmp_path))


# --- real logs ---


def test_a_real_log_is_the_application_as_it_ran() -> None:
    """Held against the log's own events, counted here once more."""
    events = [json.loads(line) for line in PLAIN.read_text().splitlines()]
    ends = [event for event in events if event["Event"] == "SparkListenerTaskEnd"]
    seconds: dict[str, list[float]] = {}
    for event in sorted(ends, key=lambda one: one["Task Info"]["Task ID"]):
        info = event["Task Info"]
        took = (info["Finish Time"] - info["Launch Time"]) / 1000
        seconds.setdefault(str(event["Stage ID"]), []).append(took)
    (found,) = read(PLAIN).jobs
    line = found.line
    assert {stage.name: stage.tasks_s for stage in line.stages} == seconds
    assert [stage.after for stage in line.stages] == [[], ["0"], ["1"]]
    assert [stage.shuffles for stage in line.stages] == [True, None, None], "1 reads what 0 has shuffled"
    # A pause of the program between its two jobs; a moment between the two stages of the first.
    delays = [stage.delay_s or 0.0 for stage in line.stages]
    assert delays[1] < 0.1
    assert delays[2] > 1.0
    assert (line.queue, line.user, line.name, line.kind) == ("root.b", "alice", "phase-0-0", "spark")
    # 512 MB of heap and 256 of overhead; the driver's 512 and 384.
    assert line.executors is not None
    assert (line.executors.memory_mb, line.executors.vcores, line.executors.slots) == (768, 2, 2)
    assert (line.am.memory_mb, line.am.vcores) == (896, 1)
    assert line.executors.count == 2, "two were there at once"
    began = next(event["Timestamp"] for event in events if event["Event"] == "SparkListenerApplicationStart")
    ended = next(event["Timestamp"] for event in events if event["Event"] == "SparkListenerApplicationEnd")
    assert (found.submitted_ms, line.finished_s) == (began, (ended - began) / 1000)
    dynamic = line.executors.dynamic
    assert dynamic is not None
    assert (dynamic.min, dynamic.max, dynamic.initial, dynamic.backlog_s, dynamic.idle_s) == (1, 6, 1, 3.0, 60.0)
    assert dynamic.tracks_shuffles


@pytest.mark.parametrize("codec", ["zstd", "lz4", "snappy"])
def test_what_sparks_own_libraries_packed_reads_as_what_it_was(codec: str) -> None:
    assert read(PLAIN.with_name(f"{PLAIN.name}.{codec}")) == read(PLAIN)


def test_a_real_rolled_log_is_read(tmp_path: Path) -> None:
    line = only(ROLLED)
    assert line.job == "application_1795893603464_0013"
    assert sum(len(stage.tasks_s) for stage in line.stages) == 11
    # In two parts it is the same, whichever way names sort.
    (part,) = (path for path in ROLLED.iterdir() if path.name.startswith("events_"))
    lines = part.read_text().splitlines(keepends=True)
    folder = tmp_path / ROLLED.name
    folder.mkdir()
    (folder / part.name.replace("events_1_", "events_9_")).write_text("".join(lines[:20]))
    (folder / part.name.replace("events_1_", "events_10_")).write_text("".join(lines[20:]))
    assert only(folder) == line
    # A compacted part stands for all up to its number.
    (folder / part.name.replace("events_1_", "events_9_")).write_text('{"Event":"SparkListenerLogStart"}\n')
    (folder / (part.name.replace("events_1_", "events_9_") + ".compact")).write_text("".join(lines[:20]))
    assert only(folder) == line


def test_a_folder_of_logs_is_read_and_the_same_application_once(tmp_path: Path) -> None:
    shutil.copytree(RECORDED, tmp_path / "logs")
    (tmp_path / "logs" / ".application_1.crc").write_bytes(b"crc")
    (tmp_path / "logs" / "README").write_text("what is no log is none")
    found = read(tmp_path / "logs")
    assert len(found.jobs) == 2
    assert found.account.left_out["the same job again"].jobs == 3


# --- packed and damaged ---


def lz4_blocks(text: bytes, size: int) -> bytes:
    codec, parts = pa.Codec("lz4_raw"), []
    for at in range(0, len(text), size):
        block = text[at : at + size]
        packed = codec.compress(block, asbytes=True)
        token = 0x25 if len(packed) < len(block) else 0x15
        body = packed if token == 0x25 else block
        parts.append(b"LZ4Block" + bytes([token]))
        parts.append(b"".join(n.to_bytes(4, "little") for n in (len(body), len(block), 0)) + body)
    return b"".join(parts) + b"LZ4Block\x15" + bytes(12)


def snappy_blocks(text: bytes, size: int) -> bytes:
    codec, head = pa.Codec("snappy"), b"\x82SNAPPY\x00" + bytes([0, 0, 0, 1, 0, 0, 0, 1])
    blocks = [codec.compress(text[at : at + size], asbytes=True) for at in range(0, len(text), size)]
    # As of a file that was appended to: each block in a stream of its own.
    return b"".join(head + len(block).to_bytes(4, "big") + block for block in blocks)


def zstd_frames(text: bytes, size: int) -> bytes:
    codec = pa.Codec("zstd")
    return b"".join(codec.compress(text[at : at + size], asbytes=True) for at in range(0, len(text), size))


@pytest.mark.parametrize("pack", [lz4_blocks, snappy_blocks, zstd_frames])
def test_a_packed_log_that_is_cut_is_read_up_to_there(tmp_path: Path, pack: Callable[[bytes, int], bytes]) -> None:
    """As of an application that still runs, or of a disk that is full."""
    text = PLAIN.read_bytes()
    whole = pack(text, 1000)
    path = tmp_path / "application_1_1.inprogress"
    path.write_bytes(whole)
    assert read(path) == read(PLAIN)
    path.write_bytes(whole[: len(whole) * 2 // 3])
    found = read(path)
    (job,) = found.jobs
    assert 0 < sum(len(stage.tasks_s) for stage in job.line.stages) < 14
    assert job.line.finished_s is None
    assert any("as far as they had come (1)" in what for what in found.assumed)
    # Damage in the middle: what came before is there, and the rest is named.
    path.write_bytes(whole[: len(whole) // 2] + bytes(100) + whole[len(whole) // 2 + 100 :])
    assert "cannot be read" in " ".join(read(path).account.left_out)


def test_what_is_packed_and_no_log_is_named(tmp_path: Path) -> None:
    for name, content, word in (
        ("b", lz4_blocks(b"something else", 100), "lz4"),
        ("c", snappy_blocks(b"something else", 100), "snappy"),
        ("d", b"ZV\x01\x00\x10\x00\x20" + bytes(40), "lzf"),
    ):
        (tmp_path / name).write_bytes(content)
        found = format_of(tmp_path / name, head_of(tmp_path / name))
        assert isinstance(found, Unreadable)
        assert word in found.what


def test_bombs_and_sizes_that_cannot_be_are_damage(tmp_path: Path) -> None:
    text = PLAIN.read_bytes()
    for packed in (
        lz4_blocks(text, 1000) + b"LZ4Block\x25" + bytes([9, 0, 0, 0]) + b"\xff\xff\xff\x7f" + bytes(4) + bytes(9),
        snappy_blocks(text, 1000) + (6).to_bytes(4, "big") + b"\xff\xff\xff\xff\x0f\x00",
    ):
        path = tmp_path / "x"
        path.write_bytes(packed)
        found = read(path)
        assert [job.line for job in found.jobs] == [only(PLAIN)]
        assert sum(part.records for part in found.account.left_out.values()) == 1


# --- what an application is ---


def test_executors_the_driver_waits_for_and_what_it_takes_between(tmp_path: Path) -> None:
    line = logged(tmp_path, two_stages())
    assert line.executors is not None
    assert (line.executors.count, line.executors.least, line.executors.wait_s) == (2, 2, 30.0)
    # 2,048 MB of heap, a tenth of it at least 384 beside it.
    assert (line.executors.memory_mb, line.executors.start_s) == (2432, 4.0)
    # It asked after 2 s and began when both executors were there, 7 s; the job came at 9.5 s, its stage at 10 s.
    assert (line.am_start_s, line.stages[0].delay_s, line.stages[1].delay_s) == (2.0, 3.0, 1.0)
    assert (line.started_s, line.finished_s, line.am_end_s) == (0.0, 100.0, 70.0)


def test_jobs_wait_for_those_that_had_ended_and_stages_for_their_parents(tmp_path: Path) -> None:
    def stage(number: int, start: float, end: float, *parents: int) -> LoggedStage:
        return LoggedStage(number, [Task(0, start, end)], parents)

    jobs = [
        LoggedJob(10, 20, [stage(0, 10, 20)]),
        # Two side by side, then one that waits for both. Stage 3 is skipped: its output is there (stage 1's).
        LoggedJob(21, 40, [stage(1, 21, 30), stage(2, 30, 40, 1)]),
        LoggedJob(21, 35, [stage(4, 21, 35)]),
        LoggedJob(45, 60, [LoggedStage(3, (), (1,)), stage(5, 45, 60, 3)]),
        LoggedJob(61, 70, [stage(6, 61, 70)]),
    ]
    found = {stage.name: (stage.after, stage.delay_s) for stage in logged(tmp_path, Log(jobs)).stages}
    assert found == {
        "0": ([], 3.0),
        "1": (["0"], 1.0),
        "4": (["0"], 1.0),
        "2": (["1"], None),
        "5": (["1"], 15.0),
        "6": (["5"], 1.0),
    }


def test_attempts_that_failed_and_stages_that_were_tried_again(tmp_path: Path) -> None:
    first = LoggedStage(
        0,
        [
            Task(0, 10, 15, "ExceptionFailure"),
            Task(1, 10, 20),
            Task(0, 16, 25),
            Task(1, 18, 20, "TaskKilled"),  # a speculative copy
        ],
    )
    again = LoggedStage(0, [Task(1, 40, 50)], attempt=1)
    line = logged(tmp_path, Log([LoggedJob(10, 50, [first, again])]))
    assert [stage.name for stage in line.stages] == ["0", "0.1"]
    assert line.stages[0].tasks_s == [5.0, 10.0, 9.0, 2.0]
    assert line.stages[0].retry_of == [None, None, 0, None]
    assert (line.stages[1].after, line.stages[1].delay_s) == (["0"], 15.0)


def test_an_attempt_without_an_end_ends_with_its_executor_or_its_application(tmp_path: Path) -> None:
    tasks = [Task(0, 10, None, executor="1"), Task(1, 10, None, executor="2")]
    log = Log([LoggedJob(10, 40, [LoggedStage(0, tasks)])], removed=[("1", 30.0)], end_s=60.0)
    assert logged(tmp_path, log).stages[0].tasks_s == [20.0, 50.0]
    log.end_s = None
    found = read(log.write(tmp_path))
    assert found.jobs[0].line.stages[0].tasks_s == [20.0], "of the other nothing is known"
    assert found.account.left_out["end unknown"].attempts == 1


def test_further_attempts_of_an_application_are_jobs_of_their_own(tmp_path: Path) -> None:
    two_stages(attempt="1", end_s=None).write(tmp_path)
    two_stages(attempt="2").write(tmp_path)
    found = read(tmp_path)
    assert [job.line.job for job in found.jobs] == ["application_1_0001", "application_1_0001.2"]
    assert any("further attempts" in what for what in found.assumed)


def test_caching_stages_are_known(tmp_path: Path) -> None:
    stage = LoggedStage(0, [Task(0, 10, 20)], cached=True)
    assert logged(tmp_path, Log([LoggedJob(10, 20, [stage])])).stages[0].caches is True


@pytest.mark.parametrize(
    ("log", "reason"),
    [
        (two_stages(properties={**PROPERTIES, "spark.master": "local[4]"}), "without YARN"),
        (Log([], end_s=None), "without a known attempt or end"),
        (
            Log([LoggedJob(10, 2000, [LoggedStage(n, [Task(0, 10 + n, 11 + n)]) for n in range(1001)])], end_s=3000),
            "more than 1,000 stages",
        ),
        (two_stages(properties={**PROPERTIES, "spark.yarn.queue": "root"}), "no name of a queue"),
        (two_stages(end_s=-5), "it ends before it starts"),
    ],
    ids=["local", "nothing-ran", "stages", "queue", "backwards"],
)
def test_what_is_no_job_is_left_out_by_name(tmp_path: Path, log: Log, reason: str) -> None:
    found = read(log.write(tmp_path))
    assert found.jobs == []
    assert reason in " ".join(found.account.left_out)


def test_an_application_without_tasks_holds_its_executors(tmp_path: Path) -> None:
    line = logged(tmp_path, Log([]))
    assert line.stages[0].tasks_s == []
    assert line.am_end_s == 93.0, "from when it began until its end"


def test_more_stages_than_the_simulator_keeps_dependencies_for_are_a_chain(tmp_path: Path) -> None:
    stages = [LoggedStage(n, [Task(0, 10 + n // 2, 11 + n // 2)]) for n in range(100)]
    found = read(Log([LoggedJob(10, 60, stages)]).write(tmp_path))
    line = found.jobs[0].line
    assert [stage.name for stage in line.stages][:2] == ["0 to 1", "2 to 3"]
    assert [stage.after for stage in line.stages][:3] == [[], ["0 to 1"], ["2 to 3"]]
    assert sum(len(stage.tasks_s) for stage in line.stages) == 100
    assert any("side by side" in what for what in found.assumed)


@pytest.mark.parametrize(
    ("version", "properties", "memory_mb", "vcores", "slots"),
    [
        ("3.5.1", {}, 1024 + 384, 1, 1),
        ("3.5.1", {"spark.executor.memory": "8g"}, 8192 + 819, 1, 1),
        ("3.5.1", {"spark.executor.memory": "8192", "spark.executor.memoryOverhead": "1g"}, 8192 + 1024, 1, 1),
        ("2.4.8", {"spark.executor.memory": "8g", "spark.yarn.executor.memoryOverhead": "600"}, 8192 + 600, 1, 1),
        ("3.3.0", {"spark.executor.memory": "8g", "spark.executor.memoryOverheadFactor": "0.2"}, 8192 + 1638, 1, 1),
        ("4.0.0", {"spark.executor.minMemoryOverhead": "512m"}, 1024 + 512, 1, 1),
        ("3.0.0", {"spark.memory.offHeap.enabled": "true", "spark.memory.offHeap.size": "1g"}, 2432, 1, 1),
        ("2.4.8", {"spark.memory.offHeap.enabled": "true", "spark.memory.offHeap.size": "1g"}, 1408, 1, 1),
        ("3.5.1", {"spark.yarn.isPython": "true", "spark.executor.pyspark.memory": "512m"}, 1920, 1, 1),
        ("3.5.1", {"spark.executor.pyspark.memory": "512m"}, 1408, 1, 1),
        ("3.5.1", {"spark.executor.cores": "5", "spark.task.cpus": "2"}, 1408, 5, 2),
        ("3.5.1", {"spark.executor.memory": "lots", "spark.executor.cores": "-1"}, 1408, 1, 1),
    ],
)  # fmt: skip
def test_an_executors_container_is_what_yarn_allocator_asks_for(
    version: str, properties: dict[str, str], memory_mb: int, vcores: int, slots: int
) -> None:
    sizes = container_sizes(properties, version)
    assert (sizes.executor.memory_mb, sizes.executor.vcores, sizes.slots) == (memory_mb, vcores, slots)


@pytest.mark.parametrize(
    ("properties", "memory_mb", "vcores"),
    [
        ({}, 512 + 384, 1),
        ({"spark.yarn.am.memory": "2g", "spark.yarn.am.cores": "2", "spark.driver.memory": "9g"}, 2048 + 384, 2),
        ({"spark.submit.deployMode": "cluster", "spark.driver.memory": "4g"}, 4096 + 409, 1),
        ({"spark.submit.deployMode": "cluster", "spark.driver.cores": "3"}, 1024 + 384, 3),
    ],
)
def test_a_masters_container_holds_the_driver_in_cluster_mode(
    properties: dict[str, str], memory_mb: int, vcores: int
) -> None:
    master = container_sizes(properties, "3.5.1").master
    assert (master.memory_mb, master.vcores) == (memory_mb, vcores)


def test_the_settings_of_dynamic_allocation() -> None:
    assert dynamic_allocation({}, "3.5.1") is None
    on = {"spark.dynamicAllocation.enabled": "true"}
    found = dynamic_allocation(on, "3.5.1")
    assert found is not None
    assert (found.least, found.initial, found.most, found.ratio) == (0, 0, 2**31 - 1, 1.0)
    assert (found.backlog_s, found.sustained_s, found.idle_s, found.cached_s) == (1.0, 1.0, 60.0, None)
    assert found.tracks_shuffles, "by default since Spark 3.4, without the external shuffle service"
    older = dynamic_allocation({**on, "spark.shuffle.service.enabled": "true"}, "2.4.8")
    assert older is not None
    assert not older.tracks_shuffles
    prefix = "spark.dynamicAllocation."
    given = dynamic_allocation(
        on
        | {
            f"{prefix}minExecutors": "2", f"{prefix}maxExecutors": "9", "spark.executor.instances": "4",
            f"{prefix}executorAllocationRatio": "0.5", f"{prefix}schedulerBacklogTimeout": "3s",
            f"{prefix}executorIdleTimeout": "2min", f"{prefix}cachedExecutorIdleTimeout": "1h",
            f"{prefix}shuffleTracking.timeout": "500ms",
        },
        "3.5.1",
    )  # fmt: skip
    assert given is not None
    assert (given.least, given.initial, given.most, given.ratio) == (2, 4, 9, 0.5)
    assert (given.backlog_s, given.sustained_s, given.idle_s, given.cached_s) == (3.0, 3.0, 120.0, 3600.0)
    assert given.shuffle_s == 0.5


def test_it_becomes_a_trace_that_can_be_read_again(tmp_path: Path) -> None:
    cluster = Header(nodes=[NodeLine(count=2, memory_mb=8192, vcores=8)], queues={"root.b": QueueLine()})
    found = any_trace(RECORDED, cluster, tmp_path / "trace.jsonl")
    assert isinstance(found, Trace)
    assert {job.detail for job in found.jobs} == {"tasks"}
    assert {job.queue for job in found.jobs} <= set(found.header.leaves())


def test_a_folder_without_a_log_is_refused(tmp_path: Path) -> None:
    (tmp_path / "README").write_text("nothing")
    cluster = Header(nodes=[NodeLine(count=2, memory_mb=8192, vcores=8)], queues={"root.b": QueueLine()})
    with pytest.raises(InputError, match="no trace"):
        any_trace(tmp_path, cluster, tmp_path / "trace.jsonl")


def test_a_log_with_dynamic_allocation_is_played_with_it() -> None:
    line = only(PLAIN)
    job = line.spec()
    assert job.dynamic is not None
    assert (job.dynamic.least, job.dynamic.most, job.dynamic.backlog_s) == (1, 6, 3.0)
    assert job.executors == 6, "as many as there may be, however many there were"
    assert [stage.shuffles for stage in job.stages] == [True, False, False]
    again = job_line(job, [stage.tasks_s for stage in line.stages])
    assert again.executors is not None
    assert line.executors is not None
    assert again.executors.dynamic == line.executors.dynamic
