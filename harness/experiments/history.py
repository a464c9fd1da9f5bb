"""MapReduce's JobHistoryServer, as far as a trace needs it: a job's tasks with their times, and what they asked for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from harness.yarn.answers import APPLICATION_ID
from harness.yarn.errors import BadAnswer, Refused
from harness.yarn.http import HttpClient, HttpOptions

_ROOT = "/ws/v1/history/mapreduce/jobs"
#: Hadoop's defaults (mapred-default.xml 3.4.2).
_DEFAULTS: Mapping[str, float] = {
    "yarn.app.mapreduce.am.resource.mb": 1536,
    "yarn.app.mapreduce.am.resource.cpu-vcores": 1,
    "mapreduce.map.memory.mb": 1024,
    "mapreduce.map.cpu.vcores": 1,
    "mapreduce.reduce.memory.mb": 1024,
    "mapreduce.reduce.cpu.vcores": 1,
    "mapreduce.job.reduce.slowstart.completedmaps": 0.05,
}


def sizes(conf: Iterable[tuple[str, Any]]) -> dict[str, float]:
    """What a job's containers ask for, by the names of its configuration; Hadoop's defaults where it says nothing."""
    found = dict(_DEFAULTS)
    for name, text in conf:
        if name in found:
            try:
                value = float(text)
            except (TypeError, ValueError):
                continue
            if 0 < value < 2**31:
                found[name] = min(value, 1.0) if name.endswith("completedmaps") else value
    return found


def load_of(times_s: Mapping[str, Sequence[float]], asked: Mapping[str, float]) -> dict[str, Any]:
    """``am`` and ``stages`` of a job's line in a trace: its tasks' times by kind (``map``, ``reduce``), what containers
    ask for by `sizes`."""

    def size(name: str, memory: str, vcores: str) -> dict[str, int]:
        return {"memory_mb": int(asked[f"{name}.{memory}"]), "vcores": int(asked[f"{name}.{vcores}"])}

    slow_start = asked["mapreduce.job.reduce.slowstart.completedmaps"]
    stages = [
        {
            "name": name,
            **size(f"mapreduce.{name}", "memory.mb", "cpu.vcores"),
            "tasks_s": [round(value, 3) for value in times_s[name]],
            "after": ["map"] if name == "reduce" and times_s["map"] else [],
            "slow_start": slow_start if name == "reduce" else 1.0,
            "priority": priority,
        }
        for name, priority in (("map", 20), ("reduce", 10))
        if times_s[name]
    ]
    return {"am": size("yarn.app.mapreduce.am.resource", "mb", "cpu-vcores"), "stages": stages}


class History:
    """One JobHistoryServer."""

    def __init__(self, base: str, options: HttpOptions | None = None) -> None:
        self.http = HttpClient([base], options)

    def close(self) -> None:
        """Gives the connection back."""
        self.http.close()

    def mapreduce(self, application: str) -> dict[str, Any] | None:
        """``am`` and ``stages`` of a trace's line; None for a job that the server does not know, or without tasks.

        Raises Unreachable, Refused, BadAnswer.
        """
        if not APPLICATION_ID.fullmatch(application):
            return None
        job = application.replace("application_", "job_")
        try:
            tasks = self._get(f"{_ROOT}/{job}/tasks", "tasks", "task")
            settings = self._settings(job)
        except Refused as error:
            if error.status == 404:
                return None
            raise
        done = [task for task in tasks if task.get("state") == "SUCCEEDED" and _times(task) is not None]
        # As they began: those of a second wave take other times than those that had to wait for nobody.
        done.sort(key=lambda task: int(task["startTime"]))
        # A reduce's whole time, with what it waited for the last map: a replayed task's counts from its own start
        # and is only kept from ending before the maps have.
        times = {
            kind.lower(): [(t["finishTime"] - t["startTime"]) / 1000.0 for t in done if t.get("type") == kind]
            for kind in ("MAP", "REDUCE")
        }
        return load_of(times, settings) if any(times.values()) else None

    def began_ms(self, application: str) -> int | None:
        """When a MapReduce job's master had started and set about its tasks; None where the server does not say it.

        Raises Unreachable, Refused.
        """
        job = application.replace("application_", "job_")
        document = self.http.request("GET", f"{_ROOT}/{job}", repeatable=True).document
        found = document.get("job") if isinstance(document, dict) else None
        began = found.get("startTime") if isinstance(found, dict) else None
        return began if isinstance(began, int) and began > 0 else None

    def _settings(self, job: str) -> dict[str, float]:
        entries = self._get(f"{_ROOT}/{job}/conf", "conf", "property")
        return sizes((str(entry.get("name")), entry.get("value", "")) for entry in entries)

    def _get(self, path: str, outer: str, inner: str) -> list[dict[str, Any]]:
        answer = self.http.request("GET", path, repeatable=True)
        document = answer.document
        found = document.get(outer) if isinstance(document, dict) else None
        listed = found.get(inner) if isinstance(found, dict) else None
        if listed is None and isinstance(found, dict):
            return []
        if not isinstance(listed, list) or not all(isinstance(entry, dict) for entry in listed):
            raise BadAnswer(f"no list of {inner}", where=answer.url, mend="check that this is a JobHistoryServer")
        return listed


def _times(task: Mapping[str, Any]) -> tuple[int, int] | None:
    """(start, finish) in milliseconds; None where the server does not say it."""
    start, finish = task.get("startTime"), task.get("finishTime")
    if not (isinstance(start, int) and isinstance(finish, int)) or not 0 < start <= finish:
        return None
    return start, finish
