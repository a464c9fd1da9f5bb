"""Spark event logs made for tests: an application with jobs, stages, tasks and executors, as Spark writes them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

#: When applications of these logs began, ms since 1970.
DAY = 1_700_000_000_000

PROPERTIES = {
    "spark.master": "yarn",
    "spark.submit.deployMode": "cluster",
    "spark.executor.memory": "2g",
    "spark.executor.cores": "2",
    "spark.executor.instances": "2",
    "spark.driver.memory": "1g",
    "spark.yarn.queue": "root.q",
}


@dataclass(frozen=True)
class Task:
    """An attempt of a task. ``end_s`` None: no event of its end."""

    index: int
    start_s: float
    end_s: float | None
    reason: str = "Success"
    executor: str = "1"


@dataclass(frozen=True)
class LoggedStage:
    """A stage of a job; without tasks it was skipped."""

    number: int
    tasks: Sequence[Task] = ()
    parents: Sequence[int] = ()
    attempt: int = 0
    submitted_s: float | None = None
    cached: bool = False


@dataclass(frozen=True)
class LoggedJob:
    """A job of an application's driver."""

    submitted_s: float
    ended_s: float
    stages: Sequence[LoggedStage]


@dataclass
class Log:
    """One application's log."""

    jobs: Sequence[LoggedJob] = ()
    number: int = 1
    end_s: float | None = 100.0
    version: str = "3.5.1"
    attempt: str | None = "1"
    properties: Mapping[str, str] = field(default_factory=lambda: dict(PROPERTIES))
    executors: Sequence[tuple[str, float]] = (("1", 6.0), ("2", 7.0))
    removed: Sequence[tuple[str, float]] = ()
    asked_s: float = 2.0

    def lines(self) -> list[str]:
        return [json.dumps(event, separators=(",", ":")) for event in self.events()]

    def write(self, folder: Path, name: str | None = None) -> Path:
        path = folder / (name or f"application_1_{self.number:04d}_{self.attempt or 1}")
        path.write_text("\n".join(self.lines()) + "\n")
        return path

    def events(self) -> Iterable[dict[str, Any]]:
        def at(seconds: float) -> int:
            return DAY + 1000 * self.number + round(1000 * seconds)

        yield {"Event": "SparkListenerLogStart", "Spark Version": self.version}
        driver = {"Executor ID": "driver", "Host": "h", "Port": 1}
        yield {"Event": "SparkListenerBlockManagerAdded", "Block Manager ID": driver, "Timestamp": at(self.asked_s)}
        yield {"Event": "SparkListenerEnvironmentUpdate", "Spark Properties": dict(self.properties)}
        start: dict[str, Any] = {"Event": "SparkListenerApplicationStart", "App Name": "app", "Timestamp": at(0)}
        start |= {"App ID": f"application_1_{self.number:04d}", "User": "alice"}
        yield start if self.attempt is None else {**start, "App Attempt ID": self.attempt}
        for name, seconds in self.executors:
            info = {"Host": "h", "Total Cores": 2, "Log Urls": {}, "Request Time": at(self.asked_s)}
            yield {
                "Event": "SparkListenerExecutorAdded", "Timestamp": at(seconds), "Executor ID": name,
                "Executor Info": info,
            }  # fmt: skip
        identity = 0
        for job_number, job in enumerate(self.jobs):
            infos = [_info(stage, None, None) for stage in job.stages]
            yield {
                "Event": "SparkListenerJobStart", "Job ID": job_number, "Submission Time": at(job.submitted_s),
                "Stage Infos": infos, "Stage IDs": [stage.number for stage in job.stages],
            }  # fmt: skip
            for stage in job.stages:
                if not stage.tasks:
                    continue
                first = min(task.start_s for task in stage.tasks)
                begun = at(first if stage.submitted_s is None else stage.submitted_s)
                last = max((task.end_s for task in stage.tasks if task.end_s is not None), default=first)
                yield {"Event": "SparkListenerStageSubmitted", "Stage Info": _info(stage, begun, None)}
                for task in stage.tasks:
                    identity += 1
                    event = {"Stage ID": stage.number, "Stage Attempt ID": stage.attempt}
                    info = {
                        "Task ID": identity, "Index": task.index, "Attempt": 0, "Launch Time": at(task.start_s),
                        "Executor ID": task.executor, "Host": "h", "Finish Time": 0,
                    }  # fmt: skip
                    yield {"Event": "SparkListenerTaskStart", **event, "Task Info": info}
                    if task.end_s is not None:
                        reason = {"Reason": task.reason}
                        info = {**info, "Finish Time": at(task.end_s)}
                        yield {"Event": "SparkListenerTaskEnd", **event, "Task End Reason": reason, "Task Info": info}
                yield {"Event": "SparkListenerStageCompleted", "Stage Info": _info(stage, begun, at(last))}
            yield {"Event": "SparkListenerJobEnd", "Job ID": job_number, "Completion Time": at(job.ended_s)}
        for name, seconds in self.removed:
            yield {
                "Event": "SparkListenerExecutorRemoved", "Timestamp": at(seconds), "Executor ID": name,
                "Removed Reason": "lost",
            }  # fmt: skip
        if self.end_s is not None:
            yield {"Event": "SparkListenerApplicationEnd", "Timestamp": at(self.end_s)}


def _info(stage: LoggedStage, begun: int | None, ended: int | None) -> dict[str, Any]:
    found: dict[str, Any] = {
        "Stage ID": stage.number, "Stage Attempt ID": stage.attempt, "Number of Tasks": len(stage.tasks),
        "Parent IDs": list(stage.parents),
        "RDD Info": [{"RDD ID": 1, "Storage Level": {"Use Memory": stage.cached, "Use Disk": False}}],
    }  # fmt: skip
    if begun is not None:
        found["Submission Time"] = begun
    if ended is not None:
        found["Completion Time"] = ended
    return found


def two_stages(number: int = 1, **more: Any) -> Log:
    """An application of one job: four tasks, and two that read what these have shuffled."""
    first = LoggedStage(0, [Task(n, 10.0, 20.0 + n) for n in range(4)])
    second = LoggedStage(1, [Task(n, 24.0, 30.0) for n in range(2)], parents=(0,))
    return Log([LoggedJob(9.5, 30.0, (first, second))], number=number, **more)
