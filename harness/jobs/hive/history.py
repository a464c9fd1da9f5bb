"""Reads the history that Tez' AM writes of its DAGs (SimpleHistoryLoggingService).

The history consists of JSON documents, separated by bytes of value 1. Vertices become stages, and task attempts become
records.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from harness.jobs.engines.attempts import NO_EVENT, Attempt, millis
from harness.jobs.replay import JobRecord
from harness.model.jobs import Duration, JobSpec, Stage

_TASK = re.compile(r"task(?:_[0-9]+){4}_[0-9]{1,9}")
_ATTEMPT = re.compile(r"attempt(?:_[0-9]+){4}(?:_[0-9]{1,9}){2}")
_OUTCOMES = {"SUCCEEDED": "finished", "FAILED": "failed", "KILLED": "killed"}


def read_tez(text: str) -> list[Attempt]:
    """Return the task attempts of a history; unreadable documents are skipped.

    ``kind`` is ``map`` for a vertex that reads tables (Hive calls it "Map n"), else ``reduce``.
    """
    vertices: dict[str, str] = {}
    found: dict[str, dict[str, Any]] = {}
    for piece in text.split("\x01"):
        try:
            one = json.loads(piece)
            kind, entity = one["entitytype"], str(one["entity"])
            event = one["events"][0]["eventtype"]
            if kind == "TEZ_VERTEX_ID" and event == "VERTEX_INITIALIZED":
                vertices[entity] = str(one["otherinfo"]["vertexName"])
            elif kind == "TEZ_TASK_ATTEMPT_ID" and event == "TASK_ATTEMPT_STARTED":
                related = {row["entitytype"]: str(row["entity"]) for row in one["relatedEntities"]}
                if not _ATTEMPT.fullmatch(entity) or not _TASK.fullmatch(related["TEZ_TASK_ID"]):
                    continue
                _, cluster, application, *_ = entity.split("_")
                found[entity] = {
                    "job": f"application_{cluster}_{application}",
                    "task": related["TEZ_TASK_ID"],
                    "attempt": entity,
                    "container": related["containerId"],
                    "node": str(one["otherinfo"]["inProgressLogsURL"]).partition("/")[0],
                    "started_ms": millis(one["events"][0]["ts"]),
                }
            elif kind == "TEZ_TASK_ATTEMPT_ID" and event == "TASK_ATTEMPT_FINISHED" and entity in found:
                told = one["otherinfo"]
                found[entity].update(
                    ended_ms=millis(told["endTime"]),
                    outcome=_OUTCOMES.get(str(told["status"]), "unknown"),
                    error=str(told.get("diagnostics") or ""),
                )
        except NO_EVENT:
            continue
    return [
        Attempt(kind="map" if vertices.get(_vertex(one), "").startswith("Map") else "reduce", **told)
        for one, told in found.items()
    ]


def _vertex(attempt: str) -> str:
    return "vertex_" + "_".join(attempt.split("_")[1:5])


def histories(folder: Path) -> list[Attempt]:
    """Return the attempts of all applications whose history is in a folder."""
    found: list[Attempt] = []
    for file in sorted(folder.glob("history.txt.*")):
        found += read_tez(file.read_text(encoding="utf-8", errors="replace"))
    return found


def dag_started_ms(folder: Path, app: str) -> int:
    """Return when an application's first DAG was started, milliseconds since 1970; 0 if that is not known (yet)."""
    number = app.removeprefix("application_")
    for file in sorted(folder.glob(f"history.txt.appattempt_{number}_*")):
        for piece in file.read_text(encoding="utf-8", errors="replace").split("\x01"):
            if '"DAG_STARTED"' not in piece:
                continue
            try:
                one = json.loads(piece)
                return millis(next(row["ts"] for row in one["events"] if row["eventtype"] == "DAG_STARTED"))
            except NO_EVENT:
                continue
    return 0


# --- in a run's terms ------------------------------------------------------------------------------------------------


def _place(attempt: Attempt) -> tuple[str, int]:
    """Return (vertex with its DAG, number of the task) of ``task_<cluster>_<application>_<dag>_<vertex>_<number>``."""
    *_, dag, vertex, number = attempt.task.split("_")
    return f"{dag}_{vertex}", int(number)


def _vertices(attempts: Sequence[Attempt]) -> list[str]:
    """Return the vertices in the order in which they began."""
    first: dict[str, int] = {}
    for one in attempts:
        vertex, _ = _place(one)
        first[vertex] = min(one.started_ms, first.get(vertex, one.started_ms))
    return sorted(first, key=lambda vertex: (first[vertex], vertex))


def record_of(attempts: Sequence[Attempt], started_ms: int = 0) -> JobRecord:
    """Return the record of a query, from which a run's tables are made, from its attempts.

    Tez records when an attempt was started in its container, but none of the steps before. An attempt that never ended
    was killed with its job, at the last moment of the history. ``started_ms``: when the DAG was started (0: not known).
    """
    order = {vertex: at for at, vertex in enumerate(_vertices(attempts))}
    # Some tasks of an aborted query may not have begun. Only tasks that began have numbers, as in `stages_of`.
    places = sorted({_place(one) for one in attempts})
    numbers = {place: at - bisect_left(places, (place[0], 0)) for at, place in enumerate(places)}
    last_ms = max((max(one.started_ms, one.ended_ms) for one in attempts), default=0)
    tasks = []
    for one in attempts:
        place = _place(one)
        tasks.append(one.record(order[place[0]], numbers[place], last_ms))
    return JobRecord(first_heartbeat_ms=started_ms, ended_ms=last_ms, tasks=tuple(tasks))


def stages_of(attempts: Sequence[Attempt], spec: JobSpec) -> tuple[Stage, ...]:
    """Return the vertices as stages, each after those that had ended when it began.

    The history has no other dependencies.
    """
    tasks: dict[str, dict[int, Attempt]] = defaultdict(dict)
    for one in attempts:
        vertex, number = _place(one)
        if one.outcome == "finished" or number not in tasks[vertex]:
            tasks[vertex][number] = one
    stages: list[Stage] = []
    ends: dict[str, int] = {}
    for vertex in _vertices(attempts):
        own = [tasks[vertex][number] for number in sorted(tasks[vertex])]
        began = min(one.started_ms for one in own)
        # An attempt without an end was aborted with its job, so it takes no time.
        times = tuple(max(one.ended_ms - one.started_ms, 1) / 1000.0 for one in own)
        name = f"{own[0].kind} {vertex}"
        after = tuple(other for other, end in ends.items() if end <= began)
        stages.append(Stage(name, len(times), spec.stages[0].demand, Duration("listed", values_s=times), after))
        ends[name] = max(max(one.started_ms, one.ended_ms) for one in own)
    return tuple(stages)
