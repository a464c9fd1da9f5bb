"""What Spark's driver wrote of its own job: the event log, events as JSON lines, complete as far as the driver came.

Read are the executors (each a container, held from when it registered) and the attempts of tasks, in the rows that
MapReduce's have (harness.jobs.mapreduce.history): kind ``executor`` and ``task``; a task's name says its stage.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

from harness.jobs.engines.attempts import NO_EVENT, Attempt, millis

_CONTAINER = re.compile(r"container_[0-9e_]+")


def _container(info: dict[str, Any]) -> tuple[str, str]:
    """(container, node's web address) from an executor's links to its logs."""
    for url in info.get("Log Urls", {}).values():
        if found := _CONTAINER.search(str(url)):
            node = str(url).partition("://")[2].partition("/")[0]
            return found.group(), node
    return "", str(info.get("Host", ""))


def _outcome(reason: str) -> str:
    if reason == "Success":
        return "finished"
    return "killed" if reason in ("TaskKilled", "ExecutorLostFailure") else "failed"


def _error(reason: dict[str, Any]) -> str:
    kind = str(reason.get("Reason", ""))
    if kind == "Success":
        return ""
    said = [str(reason[key]) for key in ("Class Name", "Description", "Kill Reason", "Loss Reason") if reason.get(key)]
    return " ".join([kind, *said])[:2000]


def read_events(lines: Iterable[str]) -> list[Attempt]:
    """Executors and attempts of tasks that an event log tells of; other lines are passed over.

    Of a task that did not end nothing is known but its start (``ended_ms`` 0).
    """
    application, last_ms = "", 0
    executors: dict[str, dict[str, Any]] = {}
    tasks: dict[tuple[int, int, int], dict[str, Any]] = {}
    for line in lines:
        try:
            event = json.loads(line)
            kind = event["Event"]
            if kind == "SparkListenerApplicationStart":
                application = str(event["App ID"])
            elif kind == "SparkListenerApplicationEnd":
                last_ms = millis(event["Timestamp"])
            elif kind == "SparkListenerExecutorAdded":
                container, node = _container(event["Executor Info"])
                name = str(event["Executor ID"])
                executors[name] = {
                    "kind": "executor",
                    "task": f"executor_{name}",
                    "attempt": f"executor_{name}",
                    "container": container,
                    "node": node,
                    "started_ms": millis(event["Timestamp"]),
                }
            elif kind == "SparkListenerExecutorRemoved" and str(event["Executor ID"]) in executors:
                executors[str(event["Executor ID"])].update(
                    ended_ms=millis(event["Timestamp"]), outcome="failed", error=str(event["Removed Reason"])[:2000]
                )
            elif kind in ("SparkListenerTaskStart", "SparkListenerTaskEnd"):
                info = event["Task Info"]
                stage, stage_try = int(event["Stage ID"]), int(event["Stage Attempt ID"])
                on = executors.get(str(info["Executor ID"]), {})
                name = f"stage_{stage:04d}_{stage_try}_task_{int(info['Index']):06d}"
                row: dict[str, Any] = {
                    "kind": "task",
                    "task": name,
                    "attempt": f"{name}_{int(info['Attempt'])}",
                    "container": on.get("container", ""),
                    "node": on.get("node", str(info["Host"])),
                    "started_ms": millis(info["Launch Time"]),
                }
                if kind == "SparkListenerTaskEnd":
                    reason = event["Task End Reason"]
                    row.update(
                        ended_ms=millis(info["Finish Time"]),
                        outcome=_outcome(str(reason["Reason"])),
                        error=_error(reason),
                    )
                tasks[stage, stage_try, int(info["Task ID"])] = row
        except NO_EVENT:
            continue
    for one in executors.values():
        if "ended_ms" not in one and last_ms:
            one.update(ended_ms=last_ms, outcome="finished")
    return [Attempt(job=application, **one) for one in [*executors.values(), *tasks.values()]]


def asked_ms(lines: Iterable[str]) -> int:
    """When the driver was up and asked for its executors, milliseconds since 1970; 0: it did not come so far.

    It does not note that. Its own block manager is registered in the same breath: executors are asked for when the
    context is made, of which that is the last step that has a time (Spark 4.0.5, ``SparkContext``'s constructor).
    """
    for line in lines:
        if '"SparkListenerBlockManagerAdded"' not in line:
            continue
        try:
            event = json.loads(line)
            if event["Block Manager ID"]["Executor ID"] == "driver":
                return millis(event["Timestamp"])
        except NO_EVENT:
            continue
    return 0
