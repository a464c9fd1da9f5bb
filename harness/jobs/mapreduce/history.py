"""Reads the history that MapReduce's AM writes of its job (``.jhist``, events as JSON lines).

The file is in the job's staging area as soon as the job has ended; no JobHistoryServer is needed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

from harness.jobs.engines.attempts import NO_EVENT, Attempt, millis
from harness.jobs.replay import JobRecord

_TASK = re.compile(r"task_[0-9]+_[0-9]+_[mr]_[0-9]{1,9}")
_ATTEMPT = re.compile(r"attempt_[0-9]+_[0-9]+_[mr]_[0-9]{1,9}_[0-9]{1,9}")


_FINISHED = ("MapAttemptFinished", "ReduceAttemptFinished")


def read_history(lines: Iterable[str]) -> list[Attempt]:
    """Return the attempts of maps and reduces in a history file; other lines are skipped."""
    found: dict[str, dict[str, Any]] = {}
    for line in lines:
        try:
            document = json.loads(line)
            name, event = next(iter(document["event"].items()))
            kind = name.rpartition(".")[2]
            if kind == "TaskAttemptStarted" and event["taskType"] in ("MAP", "REDUCE"):
                if not _TASK.fullmatch(event["taskid"]) or not _ATTEMPT.fullmatch(event["attemptId"]):
                    continue
                found[str(event["attemptId"])] = {
                    "job": str(event["taskid"]).replace("task_", "application_").rsplit("_", 2)[0],
                    "kind": str(event["taskType"]).lower(),
                    "task": str(event["taskid"]),
                    "attempt": str(event["attemptId"]),
                    "container": str(event["containerId"]),
                    "node": f"{str(event['trackerName']).partition(':')[0]}:{int(event['httpPort'])}",
                    "started_ms": millis(event["startTime"]),
                }
            elif kind in _FINISHED and str(event["attemptId"]) in found:
                of = found[str(event["attemptId"])]
                of.update(ended_ms=millis(event["finishTime"]), outcome="finished")
                if kind == "ReduceAttemptFinished":
                    of.update(shuffled_ms=millis(event["shuffleFinishTime"]), merged_ms=millis(event["sortFinishTime"]))
            elif kind == "TaskAttemptUnsuccessfulCompletion" and str(event["attemptId"]) in found:
                found[str(event["attemptId"])].update(
                    ended_ms=millis(event["finishTime"]),
                    outcome="failed" if event["status"] == "FAILED" else "killed",
                    error=str(event["error"]),
                )
        except NO_EVENT:
            continue
    return [Attempt(**attempt) for attempt in found.values()]


def record_of(lines: Iterable[str], *, reduces_first: bool) -> JobRecord:
    """Return the record of a job, from which a run's tables are made, from the job's history.

    A history has fewer times than a record (`harness.jobs.replay`): when the AM scheduled a task (``asked``), when the
    node had received the container (``launched``), and when the task reported its end (``ended`` and ``told``).
    ``granted``, ``heard`` and ``started`` are not in it and are set to ``launched``. An attempt that never ended was
    killed with its job, at the last moment of the history. ``reduces_first``: the job has reduces; their stage is then
    number 0, because their priority is higher.
    """
    kept, asked, last_ms = list(lines), dict[str, int](), 0
    for line in kept:
        try:
            name, event = next(iter(json.loads(line)["event"].items()))
            last_ms = max(last_ms, *(millis(event.get(key) or 0) for key in ("startTime", "finishTime")))
            if name.endswith(".TaskStarted"):
                asked[str(event["taskid"])] = millis(event["startTime"])
        except NO_EVENT:
            continue
    tasks = []
    for one in read_history(kept):
        stage = 0 if one.kind == "reduce" or not reduces_first else 1
        tasks.append(one.record(stage, int(one.task.rpartition("_")[2]), last_ms, asked.get(one.task)))
    maps = [asked[task] for task in asked if task.rpartition("_")[0].endswith("_m")] or list(asked.values())
    return JobRecord(first_heartbeat_ms=min(maps, default=0), ended_ms=last_ms, tasks=tuple(tasks))
