"""What Tez' master wrote of its own DAGs (SimpleHistoryLoggingService): documents of JSON between bytes of value 1."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from harness.jobs.engines.attempts import NO_EVENT, Attempt, millis

_TASK = re.compile(r"task(?:_[0-9]+){4}_[0-9]{1,9}")
_ATTEMPT = re.compile(r"attempt(?:_[0-9]+){4}(?:_[0-9]{1,9}){2}")
_OUTCOMES = {"SUCCEEDED": "finished", "FAILED": "failed", "KILLED": "killed"}


def read_tez(text: str) -> list[Attempt]:
    """The task attempts that a history tells of; what cannot be read is passed over.

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
    """The attempts of all applications whose history lies in a folder."""
    found: list[Attempt] = []
    for file in sorted(folder.glob("history.txt.*")):
        found += read_tez(file.read_text(encoding="utf-8", errors="replace"))
    return found


def dag_started_ms(folder: Path, app: str) -> int:
    """When an application's first DAG was started, milliseconds since 1970; 0: it is not told (yet)."""
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
