"""Rumen and SLS traces: sizes, unknown times, jobs that are there twice, and damage that stays where it is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from harness.traces.accounting import container_ms
from harness.traces.formats import Reading
from harness.traces.formats.rumen import Rumen
from harness.traces.formats.sls import Sls
from tests.traces.histories import DAY


def attempt(start: int, end: int, result: str = "SUCCESS") -> dict[str, Any]:
    return {"startTime": start, "finishTime": end, "result": result}


def rumen_job(number: int = 1, *tasks: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    job: dict[str, Any] = {
        "jobID": f"job_1_{number:04d}", "queue": "q", "user": "u", "submitTime": DAY, "launchTime": DAY + 4000,
        "finishTime": DAY + 40_000, "jobMapMB": 300,
        "mapTasks": [{"startTime": DAY + 4000, "finishTime": DAY + 20_000, "attempts": one} for one in tasks],
    }  # fmt: skip
    return {name: value for name, value in (job | more).items() if value is not None}


def rumen(folder: Path, *jobs: Any) -> Reading:
    path = folder / "rumen.json"
    path.write_text("\n".join(one if isinstance(one, str) else json.dumps(one) for one in jobs))
    return Rumen().read(path)


def test_a_heap_is_no_container_and_properties_say_what_containers_were(tmp_path: Path) -> None:
    properties = {
        "mapreduce.map.memory.mb": "3072",
        "mapreduce.map.cpu.vcores": "2",
        "yarn.app.mapreduce.am.resource.mb": "2048",
    }
    one = [attempt(DAY + 10_000, DAY + 20_000)]
    found = rumen(tmp_path, rumen_job(1, one, jobProperties=properties), rumen_job(2, one))
    stated, assumed = (job.line for job in found.jobs)
    assert (stated.stages[0].memory_mb, stated.stages[0].vcores, stated.am.memory_mb) == (3072, 2, 2048)
    assert assumed.stages[0].memory_mb == 375
    assert found.assumed == ["container sizes: the JVM's heap / 0.8, or Hadoop's defaults (1 jobs)"]


def test_all_attempts_count_and_one_without_a_start_is_left_out(tmp_path: Path) -> None:
    tasks = [attempt(DAY + 5000, DAY + 9000, "FAILED"), attempt(DAY + 10_000, DAY + 20_000)]
    found = rumen(tmp_path, rumen_job(1, tasks, [attempt(-1, DAY + 20_000)]))
    assert sum(container_ms(job.line) for job in found.jobs) == 14_000
    assert {why: part.attempts for why, part in found.account.left_out.items()} == {"start unknown": 1}


def test_attempts_of_one_task_are_one_after_the_other_and_a_killed_job_ends_then(tmp_path: Path) -> None:
    first, again = (attempt(DAY + at, DAY + at + 4000) for at in (5000, 9000))
    found = rumen(
        tmp_path,
        rumen_job(1, [first, again], outcome="KILLED", finishTime=DAY + 15_000),
        rumen_job(2, [first], [again], outcome="SUCCESS"),
    )
    assert [job.line.stages[0].retry_of for job in found.jobs] == [[None, 0], []]
    assert [job.line.lifetime_s for job in found.jobs] == [15.0, None]


def test_a_trace_without_queues_says_so(tmp_path: Path) -> None:
    found = rumen(tmp_path, rumen_job(1, [attempt(DAY + 10_000, DAY + 20_000)], queue=None))
    assert found.unknown == ["the trace names no queue"]


def test_a_job_that_is_there_twice_and_a_damaged_one(tmp_path: Path) -> None:
    one = [attempt(DAY + 10_000, DAY + 20_000)]
    cut = json.dumps(rumen_job(3, one))[:-30]
    found = rumen(
        tmp_path, rumen_job(1, one), cut, rumen_job(1, one), {"jobID": "x", "mapTasks": [3]}, rumen_job(4, one)
    )
    assert [job.line.job for job in found.jobs] == ["job_1_0001", "job_1_0004"]
    reasons = {why.partition(";")[0]: part.jobs for why, part in found.account.left_out.items()}
    assert reasons == {"cannot be read": 2, "the same job again": 1}


def sls_job(number: int, **more: Any) -> dict[str, Any]:
    task = {"container.start.ms": 0, "container.end.ms": 9000, "container.type": "map", "container.memory-mb": 512}
    job = {"am.type": "mapreduce", "job.id": f"j{number}", "job.queue.name": "a", "job.start.ms": 50_000,
           "job.end.ms": 65_000, "job.tasks": [task]}  # fmt: skip
    return {name: value for name, value in (job | more).items() if value is not None}


def sls(folder: Path, *jobs: dict[str, Any]) -> Reading:
    path = folder / "sls.json"
    path.write_text("\n".join(map(json.dumps, jobs)))
    return Sls().read(path)


def test_an_end_of_zero_is_unknown(tmp_path: Path) -> None:
    found = sls(tmp_path, sls_job(1), sls_job(2, **{"job.end.ms": 0}), sls_job(3, **{"job.end.ms": 40_000}))
    assert [job.line.finished_s for job in found.jobs] == [15.0, None, None]


def test_jobs_without_a_queue_or_sizes_are_said_and_bad_ones_left_out(tmp_path: Path) -> None:
    bare = {"container.start.ms": 0, "container.end.ms": 9000, "container.type": "map"}
    jobs = [
        sls_job(1, **{"job.queue.name": None, "job.tasks": [bare]}),
        sls_job(2, **{"job.tasks": []}),
        {"num.nodes": 3},
    ]
    found = sls(tmp_path, *jobs)
    assert [job.line.queue for job in found.jobs] == ["root.default"]
    assert found.unknown == ["the trace names no queue"]
    assert len(found.assumed) == 2
    assert sum(part.jobs for part in found.account.left_out.values()) == 1
    assert found.nodes[0].count == 3


def test_an_object_that_stands_for_several_jobs(tmp_path: Path) -> None:
    found = sls(tmp_path, sls_job(1, **{"job.count": 3}), sls_job(0, **{"job.id": None}))
    assert sorted(job.line.job for job in found.jobs) == ["0", "1", "2", "3"]
    assert found.account.kept == found.account.read
