"""Collects the events of one Spark event log: executors, jobs, stages and attempts of tasks, as logged.

harness.traces.formats.spark finds and unpacks the logs, and converts the collected data to a trace.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from harness.traces.formats.base import milliseconds, text_of


@dataclass(slots=True)
class TaskAttempt:
    """One attempt of a task."""

    stage: tuple[int, int]
    index: int
    executor: str
    start_ms: int | None
    end_ms: int | None = None


@dataclass(slots=True)
class StageAttempt:
    """One attempt of a stage."""

    submitted_ms: int | None = None
    completed_ms: int | None = None
    caches: bool = False


@dataclass(slots=True)
class SparkJob:
    """A job of the application: the work of one action of its driver."""

    submitted_ms: int | None = None
    ended_ms: int | None = None
    stages: tuple[int, ...] = ()


@dataclass(slots=True)
class SparkLog:
    """The events of one log.

    ``executors``: id -> (when it registered, when it was requested if known), milliseconds since 1970.
    """

    records: int = 0
    unreadable: int = 0
    first_unreadable: str = ""
    version: str = ""
    application: str = ""
    attempt: str = ""
    name: str = ""
    user: str | None = None
    started_ms: int | None = None
    asked_ms: int | None = None
    ended_ms: int | None = None
    last_ms: int = 0
    properties: dict[str, str] = field(default_factory=dict)
    executors: dict[str, tuple[int, int | None]] = field(default_factory=dict)
    removed_ms: dict[str, int] = field(default_factory=dict)
    parents: dict[int, tuple[int, ...]] = field(default_factory=dict)
    stages: dict[tuple[int, int], StageAttempt] = field(default_factory=dict)
    jobs: dict[int, SparkJob] = field(default_factory=dict)
    tasks: dict[int, TaskAttempt] = field(default_factory=dict)
    profiles: bool = False
    unpersisted: bool = False

    def take(self, event: Mapping[str, Any]) -> None:
        """Add one event. Raises KeyError, TypeError or ValueError if a required field is missing or invalid."""
        match str(event["Event"]).removeprefix("SparkListener"):
            case "LogStart":
                self.version = str(event["Spark Version"])
            case "ApplicationStart":
                self.started_ms = milliseconds(event["Timestamp"])
                self.application = text_of(event.get("App ID")) or self.application
                self.attempt = text_of(event.get("App Attempt ID")) or ""
                self.name = text_of(event.get("App Name")) or ""
                self.user = text_of(event.get("User"))
            case "EnvironmentUpdate":
                given = event["Spark Properties"]
                pairs = given.items() if isinstance(given, dict) else given
                self.properties = {str(name): str(value) for name, value in pairs}
            case "BlockManagerAdded":
                if event["Block Manager ID"]["Executor ID"] == "driver":
                    self.asked_ms = milliseconds(event["Timestamp"])
            case "ExecutorAdded":
                at = milliseconds(event["Timestamp"])
                if at is not None:
                    info = event["Executor Info"]
                    requested = milliseconds(info.get("Request Time"))
                    self.executors[_identity(event["Executor ID"])] = at, requested
            case "ExecutorRemoved":
                at = milliseconds(event["Timestamp"])
                if at is not None:
                    self.removed_ms[_identity(event["Executor ID"])] = at
            case "ResourceProfileAdded":
                self.profiles = self.profiles or event["Resource Profile Id"] != 0
            case "UnpersistRDD":
                self.unpersisted = True
            case "JobStart":
                infos = event.get("Stage Infos") or []
                for info in infos:
                    self._parents_of(info)
                numbers = tuple(_number(one) for one in event["Stage IDs"])
                self.jobs[_number(event["Job ID"])] = SparkJob(milliseconds(event["Submission Time"]), stages=numbers)
            case "JobEnd":
                job = self.jobs.setdefault(_number(event["Job ID"]), SparkJob())
                job.ended_ms = milliseconds(event["Completion Time"])
            case "StageSubmitted" | "StageCompleted":
                self._stage(event["Stage Info"])
            case "TaskStart":
                self._task(event)
            case "TaskEnd":
                self._task(event).end_ms = milliseconds(event["Task Info"]["Finish Time"])
            case "ApplicationEnd":
                self.ended_ms = milliseconds(event["Timestamp"])

    def _parents_of(self, info: Mapping[str, Any]) -> int:
        number = _number(info["Stage ID"])
        self.parents[number] = tuple(_number(one) for one in info.get("Parent IDs") or ())
        return number

    def _stage(self, info: Mapping[str, Any]) -> None:
        stage = self.stages.setdefault((self._parents_of(info), _number(info["Stage Attempt ID"])), StageAttempt())
        stage.submitted_ms = milliseconds(info.get("Submission Time")) or stage.submitted_ms
        stage.completed_ms = milliseconds(info.get("Completion Time")) or stage.completed_ms
        for rdd in info.get("RDD Info") or ():
            level = rdd.get("Storage Level") or {}
            stage.caches = stage.caches or level.get("Use Memory") is True or level.get("Use Disk") is True

    def _task(self, event: Mapping[str, Any]) -> TaskAttempt:
        info = event["Task Info"]
        identity = _number(info["Task ID"])
        if identity not in self.tasks:
            stage = _number(event["Stage ID"]), _number(event["Stage Attempt ID"])
            self.tasks[identity] = TaskAttempt(
                stage, _number(info["Index"]), str(info["Executor ID"]), milliseconds(info["Launch Time"])
            )
        return self.tasks[identity]

    def settle_ends(self) -> int:
        """Set ends that no event has: a task ends with its executor, or with the application.

        Return how many were assumed.
        """
        assumed = 0
        for task in self.tasks.values():
            if task.end_ms is not None or task.start_ms is None:
                continue
            ends = [at for at in (self.removed_ms.get(task.executor), self.ended_ms) if at is not None]
            if ends and min(ends) >= task.start_ms:
                task.end_ms = min(ends)
                assumed += 1
        return assumed

    def last_known_ms(self) -> int:
        """Return the latest time in the log."""
        times = [self.started_ms, self.asked_ms, self.ended_ms, *self.removed_ms.values()]
        times += [at for at, _ in self.executors.values()]
        times += [at for task in self.tasks.values() for at in (task.start_ms, task.end_ms)]
        times += [at for job in self.jobs.values() for at in (job.submitted_ms, job.ended_ms)]
        return max((at for at in times if at is not None), default=0)


def _identity(value: object) -> str:
    if not isinstance(value, str) or not value:
        raise TypeError("an id is a text")
    return value


def _number(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**62:
        raise TypeError("a number of Spark's is whole")
    return value
