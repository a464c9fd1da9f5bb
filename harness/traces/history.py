"""Reads a job's tasks, their times and container sizes from MapReduce's JobHistoryServer, as a trace needs them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from harness.traces.accounting import BACKWARDS, NO_END, NO_START, Totals
from harness.traces.mapreduce import Attempt, ContainerSizes, container_sizes, load_of, master_alone
from harness.yarn.answers import APPLICATION_ID
from harness.yarn.errors import BadAnswer, Refused
from harness.yarn.http import HttpClient, HttpOptions

_ROOT = "/ws/v1/history/mapreduce/jobs"
#: The maximum number of requests for the attempts of single tasks of one job.
MOST_ATTEMPT_REQUESTS = 2000
_KINDS = {"MAP": "map", "REDUCE": "reduce"}
#: The counts of unsuccessful attempts of a job in the JobHistoryServer's answer.
_UNSUCCESSFUL = ("failedMapAttempts", "killedMapAttempts", "failedReduceAttempts", "killedReduceAttempts")


@dataclass(slots=True)
class _Attempts:
    """The attempts of a job that the server has returned so far, and those that could not be used, by reason."""

    kept: list[Attempt] = field(default_factory=list)
    left_out: dict[str, Totals] = field(default_factory=dict)

    def add(self, kind: str, record: Mapping[str, Any], job_end_ms: int | None, task: str = "") -> None:
        start, end = _time(record.get("startTime")), _time(record.get("finishTime")) or job_end_ms
        if start is None or end is None:
            self.leave_out(NO_START if start is None else NO_END, 1)
        elif end < start:
            self.leave_out(BACKWARDS, 1)
        else:
            took_ms = _time(record.get("elapsedShuffleTime"))
            shuffled_ms = start + took_ms if took_ms is not None and took_ms <= end - start else 0
            self.kept.append(Attempt(kind, start, end, task=task, shuffled_ms=shuffled_ms))

    def leave_out(self, reason: str, attempts: int) -> None:
        self.left_out[reason] = self.left_out.get(reason, Totals()) + Totals(attempts=attempts)


class History:
    """One JobHistoryServer."""

    def __init__(self, base: str, options: HttpOptions | None = None) -> None:
        self.http = HttpClient([base], options)
        #: Reason -> what its answers lacked of the requested jobs.
        self.left_out: dict[str, Totals] = {}

    def close(self) -> None:
        """Close the connection."""
        self.http.close()

    def mapreduce(self, application: str) -> dict[str, Any] | None:
        """Return ``am`` and ``stages`` of a trace's line.

        None for a job without tasks, or one that the server does not know.

        Each attempt that held a container is a task of the line, whether it succeeded or not. Attempts are requested
        task by task only if the job's counts or a task's state show that some did not succeed.

        Raises Unreachable, Refused or BadAnswer if a request fails.
        """
        if not APPLICATION_ID.fullmatch(application):
            return None
        job = application.replace("application_", "job_")
        try:
            tasks = self._get(f"{_ROOT}/{job}/tasks", "tasks", "task")
            sizes = self._sizes(job)
        except Refused as error:
            if error.status == 404:
                return None
            raise
        about = self._job(job)
        attempts = self._attempts(job, tasks, about)
        if about.get("uberized") is True:
            return master_alone(sizes) if tasks else None
        for reason, totals in attempts.left_out.items():
            self.left_out[reason] = self.left_out.get(reason, Totals()) + totals
        return load_of(attempts.kept, sizes) if attempts.kept else None

    def _attempts(self, job: str, tasks: Sequence[Mapping[str, object]], about: Mapping[str, object]) -> _Attempts:
        found = _Attempts()
        end_ms = _time(about.get("finishTime"))
        counts = [about.get(name) for name in _UNSUCCESSFUL]
        unsuccessful = sum(count for count in counts if isinstance(count, int) and count > 0)
        requests = 0
        # Unsuccessful tasks come first: the counts refer to their attempts, with few exceptions.
        for task in sorted(tasks, key=lambda one: one.get("state") == "SUCCEEDED"):
            kind = _KINDS.get(str(task.get("type")))
            if kind is None:
                continue
            succeeded = task.get("state") == "SUCCEEDED"
            identity = task.get("id")
            if (not succeeded or unsuccessful > 0) and isinstance(identity, str) and requests < MOST_ATTEMPT_REQUESTS:
                requests += 1
                listed = self._task_attempts(job, identity)
                unsuccessful -= sum(one.get("state") != "SUCCEEDED" for one in listed)
                for one in listed:
                    found.add(kind, one, end_ms, identity)
                if listed:
                    continue
            if succeeded or _time(task.get("startTime")) is not None:
                found.add(kind, task, end_ms)
        if unsuccessful > 0 and requests >= MOST_ATTEMPT_REQUESTS:
            found.leave_out(f"beyond {MOST_ATTEMPT_REQUESTS:,} requests for the attempts of one job", unsuccessful)
        return found

    def _task_attempts(self, job: str, task: str) -> list[dict[str, Any]]:
        try:
            return self._get(f"{_ROOT}/{job}/tasks/{task}/attempts", "taskAttempts", "taskAttempt")
        except Refused as error:
            if error.status == 404:
                return []
            raise

    def began_ms(self, application: str) -> int | None:
        """Return when a MapReduce job's AM had started and began with its tasks; None if the server does not tell.

        Raises Unreachable or Refused if the request fails.
        """
        began = self._job(application.replace("application_", "job_")).get("startTime")
        return began if isinstance(began, int) and began > 0 else None

    def _job(self, job: str) -> Mapping[str, Any]:
        """Return the server's data on a job as a whole; empty if the server does not know it."""
        try:
            document = self.http.request("GET", f"{_ROOT}/{job}", repeatable=True).document
        except Refused as error:
            if error.status == 404:
                return {}
            raise
        found = document.get("job") if isinstance(document, dict) else None
        return found if isinstance(found, dict) else {}

    def _sizes(self, job: str) -> ContainerSizes:
        entries = self._get(f"{_ROOT}/{job}/conf", "conf", "property")
        return container_sizes((str(entry.get("name")), entry.get("value", "")) for entry in entries)

    def _get(self, path: str, outer: str, inner: str) -> list[dict[str, Any]]:
        answer = self.http.request("GET", path, repeatable=True)
        document = answer.document
        found = document.get(outer) if isinstance(document, dict) else None
        listed = found.get(inner) if isinstance(found, dict) else None
        if listed is None and isinstance(found, dict):
            return []
        if not isinstance(listed, list) or not all(isinstance(entry, dict) for entry in listed):
            raise BadAnswer(f"no list of {inner}", where=answer.url, hint="check that this is a JobHistoryServer")
        return listed


def _time(value: object) -> int | None:
    """Return a time since 1970 in milliseconds; None if it is missing."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None
