"""On how many nodes the jobs of a foreign trace are played where nobody says it: as much as they held at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.predict.converting import converted, peak_of
from harness.traces.formats import Assumptions, TimedJob
from harness.traces.recorded import ExecutorsLine
from tests.predict.loads import job
from tests.traces.event_logs import two_stages


def spark(
    submitted_s: float, until_s: float | None, tasks: int, *, count: int = 100, held_mb: float | None = None
) -> TimedJob:
    """A Spark application with executors of 8 GB, 4 vcores and 4 slots, and so many tasks of 6 minutes."""
    executors = ExecutorsLine(count=count, slots=4, memory_mb=8192, vcores=4, held_mb=held_mb)
    line = job("s", "root.q", 0.0, tasks, 360.0)
    stages = [stage.model_copy(update={"memory_mb": 8192, "vcores": 4}) for stage in line.stages]
    more = {"kind": "spark", "executors": executors, "stages": stages, "started_s": 0.0, "finished_s": until_s}
    return TimedJob(round(submitted_s * 1000), line.model_copy(update=more), tasks, 1)


@pytest.mark.parametrize("tasks", [0, 100, 4000])
def test_executors_are_held_whatever_runs_in_them(tasks: int) -> None:
    """None, 10 or 400 tasks at once on average, in 100 executors of four slots each, for an hour."""
    assert peak_of([spark(0.0, 3600.0, tasks)]) == pytest.approx((100 * 8192 + 1024, 401))


def test_executors_that_come_and_go_count_by_what_they_held_on_average() -> None:
    held_mb = 2.5 * 8192
    assert peak_of([spark(0.0, 3600.0, 100, held_mb=held_mb)]) == pytest.approx((held_mb + 1024, 11))


def test_a_spark_application_without_an_end_holds_its_executors_until_the_last_job_ended() -> None:
    jobs = [spark(0.0, None, 1, count=1), spark(1000.0, 2000.0, 1, count=1), spark(5000.0, 6000.0, 1, count=1)]
    assert peak_of(jobs) == (2 * 9216, 10)
    assert peak_of(jobs[1:]) == (9216, 5)
    # Where no job has an end, the tasks say how long they ran at least.
    assert peak_of([spark(0.0, None, 1, count=1), spark(100.0, None, 1, count=1)]) == (2 * 9216, 10)


def test_what_is_assumed_of_spark_is_said_with_the_nodes(tmp_path: Path) -> None:
    """Two executors of 2,432 MB and a driver of 1,408 MB fit one node."""
    logs = tmp_path / "logs"
    logs.mkdir()
    two_stages().write(logs)
    trace = converted("spark-event-log", [logs], tmp_path / "known.jsonl", assumed=Assumptions())
    assert any("each by what it held on average" in said for said in trace.header.assumed)
    assert not any("for these nodes" in said for said in trace.header.assumed)
    two_stages(number=2, end_s=None).write(logs)
    two_stages(number=3, executors=[("2", 7.0)]).write(logs)
    trace = converted("spark-event-log", [logs], tmp_path / "more.jsonl", assumed=Assumptions())
    said = " ".join(trace.header.assumed)
    assert "for these nodes, Spark applications (1) had `executors.count` executors all the time" in said
    assert "for these nodes, Spark applications without an end (1) ran until the last job ended" in said
