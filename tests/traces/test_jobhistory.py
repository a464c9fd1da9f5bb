"""Job history files: every attempt that held a container is kept, and what cannot be used is named."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from harness.model.jobs import NodeSpec
from harness.predict.foreign import played_trace
from harness.sim.setup import Delays, SimSetup
from harness.sim.simulate import simulate
from harness.traces.accounting import container_ms, total
from harness.traces.formats import Reading
from harness.traces.formats.avro_events import MOST_DAMAGED, avro_events
from harness.traces.formats.jobhistory import JobHistory
from harness.yarn.fair.parse import parse_allocations
from tests.traces.histories import DAY, RECORDED, Job, Run, as_binary, event


def read(folder: Path) -> Reading:
    return JobHistory().read(folder)


def container_s(reading: Reading) -> float:
    return sum(container_ms(job.line) for job in reading.jobs) / 1000


def test_failed_and_killed_attempts_are_work_and_a_job_without_success_is_a_job(tmp_path: Path) -> None:
    failing = [Run(1, 8 + 100 * n, 108 + 100 * n, "FAILED", number=n) for n in range(4)]
    Job([Run(0, 8, 18), *failing], finish_s=410, status="FAILED", number=1).write(tmp_path)
    killed = [Run(task, 8, 608, "KILLED") for task in range(10)]
    Job(killed, finish_s=610, status="KILLED", number=2).write(tmp_path)
    found = read(tmp_path)
    assert [job.line.finished_s for job in found.jobs] == [410, 610]
    assert container_s(found) == 10 + 4 * 100 + 10 * 600
    assert not found.account.left_out
    assert found.account.read.tasks == 12
    # A retry was asked for when the attempt before it had ended; a killed job held what it held until it was killed.
    assert [job.line.stages[0].retry_of for job in found.jobs] == [[None, None, 1, 2, 3], []]
    assert [job.line.lifetime_s for job in found.jobs] == [None, 610]


def test_replayed_retries_and_a_killed_job_end_when_they_did(tmp_path: Path) -> None:
    """Side by side the four attempts ended the job at 212 s instead of 410."""
    failing = [Run(1, 8 + 100 * n, 108 + 100 * n, "FAILED", number=n) for n in range(4)]
    Job([Run(0, 8, 18), *failing], finish_s=410, status="FAILED", number=1).write(tmp_path)
    Job([Run(task, 8, 608, "KILLED") for task in range(10)], finish_s=610, status="KILLED", number=2).write(tmp_path)
    cluster = tmp_path / "cluster.yaml"
    cluster.write_text("nodes: [{count: 4, memory_mb: 16384, vcores: 8}]\nqueues: {root.q: {}}\n")
    trace = played_trace(tmp_path, cluster, tmp_path / "t.jsonl")
    allocations = parse_allocations('<allocations><queue name="q"/></allocations>')
    nodes = tuple(NodeSpec(f"n{at}", 16_384, 8) for at in range(4))
    jobs = [job.spec() for job in trace.jobs]
    delays = Delays(**trace.header.delays.model_dump(exclude_none=True))
    result = simulate(SimSetup(nodes=nodes, allocations=allocations, jobs=jobs, delays=delays))
    # Each of three retries waits for heartbeats of a node and of its master.
    assert list(result.jobs["finished_s"]) == [pytest.approx(410, abs=6), 610.0]


def test_a_speculative_copy_stands_beside_the_attempt_that_it_copies(tmp_path: Path) -> None:
    runs = [Run(0, 8, 100, "KILLED"), Run(0, 50, 99, number=1), Run(1, 8, 20, "FAILED"), Run(1, 23, 60, number=1)]
    Job(runs).write(tmp_path)
    (stage,) = read(tmp_path).jobs[0].line.stages
    assert (stage.tasks_s, stage.retry_of) == ([92.0, 12.0, 37.0, 49.0], [None, None, 1, None])


def test_the_queue_is_the_one_in_which_the_resource_manager_placed_the_job(tmp_path: Path) -> None:
    Job([Run(0, 8, 18)], queue="default", placed_in="root.prod").write(tmp_path)
    assert read(tmp_path).jobs[0].line.queue == "root.prod"


def test_an_uber_job_is_its_master_alone_until_it_ends(tmp_path: Path) -> None:
    Job([Run(0, 6, 11), Run(1, 11, 16)], finish_s=27, uber=True).write(tmp_path)
    found = read(tmp_path)
    (job,) = found.jobs
    assert [stage.tasks_s for stage in job.line.stages] == [[]]
    assert "Hadoop's defaults" in found.assumed[0], "the master's size"
    # The master's start, until it has initialised the job, and what is left: 2 + 3.5 + 22 s.
    assert (job.line.started_s, job.line.am_start_s, job.line.am_end_s, job.line.finished_s) == (2, 3.5, 22, 27)


def test_a_second_master_goes_on_after_the_first_and_the_job_began_with_the_first(tmp_path: Path) -> None:
    runs = [Run(0, 8, 100), Run(1, 316, 336, number=1000)]
    Job(runs, finish_s=340, masters_s=(2.0, 310.0), launch_s=313).write(tmp_path)
    (job,) = read(tmp_path).jobs
    assert [(stage.name, stage.tasks_s, stage.after) for stage in job.line.stages] == [
        ("map", [92.0], []),
        ("map.2", [20.0], ["map"]),
    ]
    assert (job.line.started_s, job.line.finished_s) == (2.0, 340.0)
    # 216 s between the masters and 4 s after the last task, less the half second that a master takes to notice.
    assert job.line.am_end_s == 219.5


@pytest.mark.parametrize(
    ("run", "reason"),
    [
        (Run(1, None, 18), "start unknown"),
        (Run(1, 30, 20, "KILLED"), "ends before it starts"),
        (Run(1, 8, None, None), "end unknown"),
    ],
)
def test_an_attempt_without_usable_times_is_left_out_by_name_and_its_job_is_kept(
    tmp_path: Path, run: Run, reason: str
) -> None:
    Job([Run(0, 8, 18), run], finish_s=None).write(tmp_path)
    found = read(tmp_path)
    assert container_s(found) == 10
    assert {why: (part.tasks, part.attempts) for why, part in found.account.left_out.items()} == {reason: (1, 1)}


def test_an_attempt_whose_end_nobody_wrote_ends_with_its_job(tmp_path: Path) -> None:
    Job([Run(0, 8, 18), Run(1, 8, None, None)], finish_s=60, status="KILLED").write(tmp_path)
    found = read(tmp_path)
    assert container_s(found) == 10 + 52
    assert any("attempts whose end is not recorded" in what for what in found.assumed)


def test_a_task_that_never_got_a_container_is_counted(tmp_path: Path) -> None:
    Job([Run(0, 8, 18)], never_started=(5, 6), status="KILLED").write(tmp_path)
    found = read(tmp_path)
    assert {why: part.tasks for why, part in found.account.left_out.items()} == {"never got a container": 2}


def test_the_same_job_in_two_folders_is_one_job(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        Job([Run(0, 8, 28)]).write(tmp_path / folder)
    found = read(tmp_path)
    assert len(found.jobs) == 1
    assert {why: (part.jobs, part.container_ms) for why, part in found.account.left_out.items()} == {
        "the same job again": (1, 20_000)
    }


def test_a_damaged_line_costs_that_line_alone(tmp_path: Path) -> None:
    path = Job([Run(0, 8, 28), Run(1, 8, 28)], number=1).write(tmp_path)
    whole = path.read_text()
    path.write_text(whole[: whole.rindex('{"type"') + 40])
    Job([Run(0, 8, 28)], number=2, submit_ms=DAY + 10_000).write(tmp_path)
    found = read(tmp_path)
    assert [len(job.line.stages[0].tasks_s) for job in found.jobs] == [2, 1]
    assert found.jobs[0].line.finished_s is None, "the line that was cut is the job's end"
    ((reason, part),) = found.account.left_out.items()
    assert reason.startswith("cannot be read; first: ")
    assert part.records == 1


def test_events_that_lack_their_fields_are_counted_as_unreadable(tmp_path: Path) -> None:
    path = Job([Run(0, 8, 28)]).write(tmp_path)
    with path.open("a") as stream:
        stream.write(event("MAP_ATTEMPT_STARTED", "TaskAttemptStarted", taskid=3) + "\n[]\n")
    assert sum(part.records for part in read(tmp_path).account.left_out.values()) == 2


def test_a_file_without_a_submission_is_a_job_that_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "x.jhist").write_text(event("JOB_FINISHED", "JobFinished", finishTime=DAY) + "\n")
    found = read(tmp_path)
    assert not found.jobs
    assert found.account.left_out["file without a job's submission"].jobs == 1


def test_sizes_of_the_configuration_beside_the_file(tmp_path: Path) -> None:
    job = Job([Run(0, 8, 18), Run(0, 20, 30, kind="REDUCE")])
    job.write(tmp_path)
    assert any("Hadoop's defaults" in what for what in read(tmp_path).assumed)
    properties = {
        "mapreduce.map.memory.mb": "-1",
        "mapreduce.map.java.opts": "-Xmx3276m",
        "mapreduce.job.heap.memory-mb.ratio": "0.8",
        "mapreduce.reduce.resource.memory-mb": "4Gi",
        "mapreduce.reduce.resource.vcores": "2",
    }
    text = "".join(f"<property><name>{name}</name><value>{value}</value></property>" for name, value in
                   properties.items())  # fmt: skip
    (tmp_path / f"{job.id}_conf.xml").write_text(f"<configuration>{text}</configuration>")
    found = read(tmp_path)
    maps, reduces = found.jobs[0].line.stages
    assert (maps.memory_mb, reduces.memory_mb, reduces.vcores) == (4095, 4096, 2)
    assert not found.assumed


def binary(folder: Path, job: Job) -> Path:
    """A file in the binary form, Hadoop's default."""
    path = folder / f"{job.id}.jhist"
    path.write_bytes(as_binary(job.lines()))
    return path


def test_both_forms_of_hadoops_own_files_read_equal() -> None:
    found = read(RECORDED / "binary")
    assert found == read(RECORDED / "json")
    assert [(job.line.queue, job.line.finished_s) for job in found.jobs] == [
        ("root.q", 42), ("root.q", 410), ("root.prod", 610)
    ]  # fmt: skip
    assert container_s(found) == 10 + 20 + 20 + 10 + 4 * 100 + 3 * 600


def test_a_binary_file_may_end_anywhere(tmp_path: Path) -> None:
    """Whatever is cut off: what stands before is read as Hadoop's own reader reads it."""
    (sample,) = (RECORDED / "binary").glob("001-*")
    whole, path = sample.read_bytes(), tmp_path / "x.jhist"
    begin = len(b"\n".join(whole.split(b"\n", 2)[:2])) + 1
    events = [one.at for one in avro_events(whole)]
    assert events[0] == begin
    for end in (*range(0, begin, 997), *range(begin, len(whole), 11), *events, *(at - 1 for at in events), len(whole)):
        path.write_bytes(whole[:end])
        found = read(tmp_path)
        assert found.account.kept + total(found.account.left_out.values()) == found.account.read
        if end > begin - 1:
            inside = end not in (*events, len(whole))
            assert found.account.read.records == sum(at < end for at in events)
            assert (
                sum(part.records for why, part in found.account.left_out.items() if "cannot be read" in why) == inside
            )


@pytest.mark.parametrize("at", range(3))
def test_damage_in_a_binary_file_costs_few_events_and_no_others(tmp_path: Path, at: int) -> None:
    """A byte that makes a text longer or shorter does not take what follows with it."""
    path = binary(tmp_path, Job([Run(task, 8, 28) for task in range(20)]))
    whole = path.read_bytes()
    for place in [one.at for one in avro_events(whole)][3:-1:3]:
        for value in (0, 1, 8, 127, 254):
            data = bytearray(whole)
            data[place + at] = value
            path.write_bytes(data)
            left = read(tmp_path).account.left_out.values()
            assert sum(part.records for part in left) <= 2
            assert sum(part.attempts for part in left) <= 2


def test_a_binary_file_whose_schema_is_damaged_is_left_out_alone(tmp_path: Path) -> None:
    binary(tmp_path, Job([Run(0, 8, 18)], number=1))
    bad = binary(tmp_path, Job([Run(0, 8, 18)], number=2))
    bad.write_bytes(bad.read_bytes().replace(b'"type":"record"', b'"type":"recond"', 1))
    found = read(tmp_path)
    assert len(found.jobs) == 1
    ((reason, part),) = found.account.left_out.items()
    assert reason.startswith("cannot be read: its second line is not the schema of job history's events")
    assert part.jobs == 1


@pytest.mark.parametrize(
    "records",
    [
        [{"type": "record", "name": "A", "fields": [{"name": "a", "type": "A"}]}],
        [{"type": "record", "name": "A", "fields": [{"name": "a", "type": {"type": "array", "items": "null"}}]}],
        [
            {"type": "record", "name": f"A{n}", "fields": [{"name": f"f{k}", "type": f"A{n - 1}" if n else "null"}
             for k in range(10)]} for n in range(12)
        ],
        "null",
        ["null", "who"],
    ],
    ids=["a record in itself", "a list of nothing", "too many parts", "no choice", "unknown"],
)  # fmt: skip
def test_a_schema_that_would_keep_a_reader_busy_is_none(tmp_path: Path, records: object) -> None:
    """Few bytes that stand for a circle, or for more values than anybody can count."""
    fields = [
        {"name": "type", "type": {"type": "enum", "name": "T", "symbols": ["A"]}},
        {"name": "event", "type": records},
    ]
    schema = json.dumps({"type": "record", "name": "Event", "fields": fields})
    (tmp_path / "x.jhist").write_bytes(b"Avro-Binary\n" + schema.encode() + b"\n" + b"\xfe\xff\xff\xff\x0f" * 20)
    assert [part.jobs for part in read(tmp_path).account.left_out.values()] == [1]


def test_damage_without_end_is_given_up(tmp_path: Path) -> None:
    path = binary(tmp_path, Job([Run(0, 8, 18)]))
    path.write_bytes(path.read_bytes() + b"\x00\x00\x4ajob_1" * 100_000)
    found = read(tmp_path)
    assert len(found.jobs) == 1
    assert sum(part.records for part in found.account.left_out.values()) == MOST_DAMAGED


def test_a_pipe_among_the_files_is_left_out_and_not_waited_for(tmp_path: Path) -> None:
    Job([Run(0, 8, 18)]).write(tmp_path)
    os.mkfifo(tmp_path / "pipe.jhist")
    found = read(tmp_path)
    assert len(found.jobs) == 1
    assert [part.jobs for part in found.account.left_out.values()] == [1]
