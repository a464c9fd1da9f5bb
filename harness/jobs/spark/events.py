"""Reads the event log of a Spark driver: events as JSON lines, complete up to the point that the driver reached.

Executors (each a container, held from its registration on) and the attempts of tasks are both returned as `Attempt`,
with the kinds ``executor`` and ``task``; a task's name contains its stage.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

from harness.jobs.engines.attempts import NO_EVENT, Attempt, millis

_CONTAINER = re.compile(r"container_[0-9e_]+")


def _container(info: dict[str, Any]) -> tuple[str, str]:
    """Return (container, node's web address) from an executor's links to its logs."""
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
    """Return the executors and attempts of tasks in an event log; other lines are skipped.

    Of a task that did not end only the start is known (``ended_ms`` 0).
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
    """Return when the driver asked for its executors, milliseconds since 1970; 0 if it did not get that far.

    The log does not contain this time. It is taken from the registration of the driver's own block manager, which is
    the last step with a time before the request: both are part of the creation of the context (Spark 4.0.5,
    ``SparkContext``'s constructor).
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
