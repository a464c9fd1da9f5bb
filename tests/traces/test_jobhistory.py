"""Job history files: every attempt that held a container is kept, and what cannot be used is named."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from harness.base.errors import InputError
from harness.traces.accounting import container_ms
from harness.traces.formats import Reading
from harness.traces.formats.jobhistory import JobHistory
from tests.traces.histories import DAY, Job, Run, event


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


def test_the_queue_is_the_one_in_which_the_resource_manager_placed_the_job(tmp_path: Path) -> None:
    Job([Run(0, 8, 18)], queue="default", placed_in="root.prod").write(tmp_path)
    assert read(tmp_path).jobs[0].line.queue == "root.prod"


def test_an_uber_job_is_its_master_alone_until_it_ends(tmp_path: Path) -> None:
    Job([Run(0, 6, 11), Run(1, 11, 16)], finish_s=27, uber=True).write(tmp_path)
    (job,) = read(tmp_path).jobs
    assert [stage.tasks_s for stage in job.line.stages] == [[]]
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
    # 216 s between the masters and 4 s after the last task, less the second that a master takes to notice.
    assert job.line.am_end_s == 219.0


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


def test_binary_histories_are_refused_with_a_way_out(tmp_path: Path) -> None:
    (tmp_path / "x.jhist").write_bytes(b'Avro-Binary\n{"type":"record"}\n\x00')
    with pytest.raises(InputError, match="Avro's binary form"):
        read(tmp_path)


def test_a_pipe_among_the_files_is_left_out_and_not_waited_for(tmp_path: Path) -> None:
    Job([Run(0, 8, 18)]).write(tmp_path)
    os.mkfifo(tmp_path / "pipe.jhist")
    found = read(tmp_path)
    assert len(found.jobs) == 1
    assert [part.jobs for part in found.account.left_out.values()] == [1]
