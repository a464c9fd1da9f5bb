"""Spark's event logs: what is read of real ones in every form, of every part of an application, and of damage."""

from __future__ import annotations

import bz2
import gzip
import json
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from harness.base.errors import InputError
from harness.predict.foreign import any_trace
from harness.traces.accounting import may_change_the_answer
from harness.traces.formats import Unreadable, format_of, head_of
from harness.traces.formats.base import Reading
from harness.traces.formats.spark import SparkEventLog
from harness.traces.recorded import Header, JobLine, NodeLine, QueueLine, Trace, job_line
from harness.traces.spark import container_sizes, dynamic_allocation, heartbeat_ms, registered_before_it_begins
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


def rolled(folder: Path, *parts: str) -> Path:
    """A rolled log of two stages, of which the parts named are there."""
    path = folder / "eventlog_v2_application_1_0001_1"
    path.mkdir()
    lines = two_stages().lines()
    for at, name in enumerate(parts):
        (path / f"events_{name.replace('.', '_application_1_0001_1.', 1)}").write_text(
            "\n".join(lines[at * len(lines) // len(parts) : (at + 1) * len(lines) // len(parts)]) + "\n"
        )
    return path


@pytest.mark.parametrize(
    ("parts", "unknown"),
    [
        (("1.", "2.", "3."), None),
        (("7.compact", "8."), "Spark has compacted"),
        (("1.", "3."), "missing parts"),
        (("2.", "3."), "missing parts"),
        (("7.compact", "9."), "missing parts"),
    ],
)
def test_what_a_rolled_log_has_lost_is_not_known(tmp_path: Path, parts: tuple[str, ...], unknown: str | None) -> None:
    """Compaction drops finished jobs; of a log without one of its parts Spark itself shows nothing."""
    found = read(rolled(tmp_path, *parts))
    assert len(found.jobs) == 1
    text = " ".join(found.unknown)
    assert (unknown in text and "(1)" in text) if unknown else not text


# --- what a folder has beside the logs that are read ---


def test_what_cannot_be_read_of_a_folder_is_left_out_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As for a user who may read only the own logs: the others' are no part of the trace, and the trace says so."""
    two_stages().write(tmp_path)
    (tmp_path / "README").write_text("what is no log is none")
    loop = tmp_path / "application_1_0002_1"
    loop.symlink_to(loop)
    (tmp_path / "application_1_0003_1.lzf").write_bytes(b"ZV\x01\x00\x10\x00\x20" + bytes(40))
    (tmp_path / "application_1_0004_1").write_bytes(bytes(100))
    for name in ("eventlog_v2_application_1_0005_1", "alice"):
        (tmp_path / name).mkdir()
    listed = Path.iterdir

    def refuses(folder: Path) -> Iterator[Path]:
        if folder.name in ("eventlog_v2_application_1_0005_1", "alice"):
            raise PermissionError(13, "Permission denied")
        return listed(folder)

    monkeypatch.setattr(Path, "iterdir", refuses)
    found = read(tmp_path)
    assert [job.line.job for job in found.jobs] == ["application_1_0001"]
    left_out = {reason.partition(";")[0]: totals.jobs for reason, totals in found.account.left_out.items()}
    assert left_out == {
        "cannot be read: Too many levels of symbolic links": 1,
        "cannot be read: compressed by Spark's lzf codec": 1,
        "cannot be read: no event at its beginning": 1,
        "cannot be read: Permission denied": 2,
    }
    assert may_change_the_answer(found.account.lines(), [job.line for job in found.jobs])


def test_a_log_whose_first_line_is_damaged_is_one(tmp_path: Path) -> None:
    lines = two_stages().lines()
    path = tmp_path / "log"
    path.write_text("\n".join(["#" * 50, *lines[1:]]) + "\n")
    found = read(tmp_path)
    assert [job.line.job for job in found.jobs] == ["application_1_0001"]
    assert sum(part.records for part in found.account.left_out.values()) == 1
    assert read(path).jobs == found.jobs


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


@pytest.mark.parametrize("pack", [lz4_blocks, snappy_blocks])
def test_a_first_block_may_be_larger_than_the_beginning_of_a_file(
    tmp_path: Path, pack: Callable[[bytes, int], bytes]
) -> None:
    """As with spark.io.compression.lz4.blockSize=1m, and text that packs badly."""
    noise = b'{"Event":"SparkListenerOther","x":"' + random.Random(1).randbytes(100_000).hex().encode() + b'"}\n'
    path = tmp_path / "application_1_1"
    path.write_bytes(pack(noise + PLAIN.read_bytes(), 1 << 20))
    assert path.stat().st_size > 1 << 16
    assert [job.line for job in read(path).jobs] == [only(PLAIN)]
    assert [job.line for job in read(tmp_path).jobs] == [only(PLAIN)]


@pytest.mark.parametrize(
    "pack", [gzip.compress, bz2.compress, lambda text: pa.Codec("lz4").compress(text, asbytes=True)]
)
def test_a_log_that_was_compressed_afterwards_is_the_same(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    path = tmp_path / "application_1_1.gz"
    path.write_bytes(pack(PLAIN.read_bytes()))
    assert read(path) == read(PLAIN)
    assert read(tmp_path) == read(PLAIN)


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
    assert not any(stage.shuffles or stage.caches for stage in line.stages)


def test_stages_of_a_chain_shuffle_and_cache_where_one_of_them_does(tmp_path: Path) -> None:
    stages = [
        LoggedStage(n, [Task(0, 10 + n // 2, 11 + n // 2)], (5,) if n == 8 else (), cached=n == 3) for n in range(100)
    ]
    line = logged(tmp_path, Log([LoggedJob(10, 60, stages)]))
    assert [stage.name for stage in line.stages if stage.caches] == ["2 to 3"]
    assert [stage.name for stage in line.stages if stage.shuffles] == ["4 to 5"]


def test_that_neighbours_become_one_stage_is_said_where_executors_follow_the_tasks(tmp_path: Path) -> None:
    stages = [LoggedStage(n, [Task(0, 10 + n, 11 + n), Task(1, 10 + n, 11 + n)]) for n in range(300)]
    log = Log([LoggedJob(10, 320, stages)], end_s=330)
    assert not any("largest of them" in what for what in read(log.write(tmp_path)).assumed)
    log.properties = {**PROPERTIES, "spark.dynamicAllocation.enabled": "true", "spark.executor.cores": "1"}
    found = read(log.write(tmp_path))
    assert any("largest of them" in what for what in found.assumed)
    job = found.jobs[0].line.spec()
    assert {stage.tasks for stage in job.stages} == {2}, "as many executors are asked for as by the stages themselves"


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


def test_times_without_a_unit_have_that_of_their_property() -> None:
    """The shuffles' timeout and the wait for executors are of milliseconds, the others of seconds."""
    prefix = "spark.dynamicAllocation."
    given = {
        "spark.dynamicAllocation.enabled": "true", f"{prefix}shuffleTracking.timeout": "600000",
        f"{prefix}executorIdleTimeout": "30", f"{prefix}cachedExecutorIdleTimeout": "1500ms",
        f"{prefix}schedulerBacklogTimeout": "2",
    }  # fmt: skip
    found = dynamic_allocation(given, "3.5.1")
    assert found is not None
    assert (found.shuffle_s, found.idle_s, found.cached_s, found.backlog_s) == (600.0, 30.0, 1.0, 2.0)
    wait = "spark.scheduler.maxRegisteredResourcesWaitingTime"
    assert registered_before_it_begins({wait: "5000"}, 10) == (8, 5.0)
    assert registered_before_it_begins({wait: "5s"}, 10) == (8, 5.0)


def test_timeouts_of_0_are_over_at_once(tmp_path: Path) -> None:
    prefix = "spark.dynamicAllocation."
    names = (f"{prefix}executorIdleTimeout", f"{prefix}cachedExecutorIdleTimeout", f"{prefix}shuffleTracking.timeout")
    properties = {**PROPERTIES, "spark.dynamicAllocation.enabled": "true", **dict.fromkeys(names, "0")}
    executors = logged(tmp_path, two_stages(properties=properties)).executors
    assert executors is not None
    assert executors.dynamic is not None
    assert (executors.dynamic.idle_s, executors.dynamic.cached_s, executors.dynamic.shuffle_s) == (0.001, 0.001, 0.001)


def test_masters_send_heartbeats_as_often_as_the_applications_set(tmp_path: Path) -> None:
    name = "spark.yarn.scheduler.heartbeat.interval-ms"
    assert [heartbeat_ms(one) for one in ({}, {name: "500"}, {name: "2s"}, {name: "0"})] == [3000, 500, 2000, 1]
    for number in (1, 2):
        two_stages(number).write(tmp_path)
    found = read(tmp_path)
    assert found.delays.am_heartbeat_ms == 3000, "Spark's default, not MapReduce's"
    assert not any("heartbeat" in what for what in found.assumed)
    two_stages(3, properties={**PROPERTIES, name: "1000"}).write(tmp_path)
    found = read(tmp_path)
    assert found.delays.am_heartbeat_ms == 3000
    assert any("every 3,000 ms (of 1 it is another interval)" in what for what in found.assumed)


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


def test_what_executors_held_is_counted_from_their_grants_to_their_removals(tmp_path: Path) -> None:
    """Executors of 2,432 MB, granted 4 s before they registered: the shortest time from a request to that."""
    line = logged(tmp_path, two_stages(removed=[("1", 50.0)]))
    assert line.executors is not None
    # From 2 and 3 s on, to 50 s and to the application's end.
    assert line.executors.held_mb == pytest.approx(2432 * (48 + 97) / 100, abs=0.001)
    # Without an end: to the last time of which the log tells.
    unended = logged(tmp_path, two_stages(removed=[("1", 50.0)], end_s=None))
    assert unended.executors is not None
    assert unended.executors.held_mb == pytest.approx(2432 * (48 + 47) / 50, abs=0.001)
    # One executor's coming is not in the log.
    lacking = logged(tmp_path, two_stages(executors=[("2", 7.0)]))
    assert lacking.executors is not None
    assert lacking.executors.held_mb is None
    # The trace keeps it, and a trace without it is read.
    for one in (line, lacking):
        assert JobLine.model_validate_json(one.model_dump_json(exclude_none=True)) == one


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
