"""Job history files for the tests, written as MapReduce 2 writes them."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import fastavro

#: Few jobs in both forms, written by Hadoop's own EventWriter (tests/oracle/job_histories.py).
RECORDED = Path(__file__).parent / "recorded" / "jobhistory"

#: Milliseconds since 1970 at which the first job of a test is submitted.
DAY = 1_600_000_000_000
_PACKAGE = "org.apache.hadoop.mapreduce.jobhistory."


def event(kind: str, name: str, **fields: Any) -> str:
    """One line of a history file."""
    return json.dumps({"type": kind, "event": {_PACKAGE + name: fields}}, separators=(",", ":"))


@dataclass(frozen=True)
class Run:
    """One attempt of a task: seconds since the job's submission, and how it ended (None: no event says)."""

    task: int
    start_s: float | None
    end_s: float | None
    status: str | None = "SUCCEEDED"
    kind: str = "MAP"
    number: int = 0


@dataclass(frozen=True)
class Job:
    """A job's history."""

    runs: Sequence[Run]
    finish_s: float | None = 100.0
    status: str = "SUCCEEDED"
    submit_ms: int = DAY
    number: int = 1
    queue: str = "q"
    placed_in: str | None = None
    masters_s: Sequence[float] = (2.0,)
    launch_s: float = 5.0
    uber: bool = False
    never_started: Sequence[int] = field(default_factory=tuple)

    @property
    def id(self) -> str:
        return f"job_1600000000000_{self.number:04d}"

    def lines(self) -> list[str]:
        at = lambda seconds: self.submit_ms + round(1000 * seconds)  # noqa: E731
        lines = ["Avro-Json", '{"type":"record","name":"Event"}', ""]
        lines += [
            event("AM_STARTED", "AMStarted", applicationAttemptId="a", startTime=at(one)) for one in self.masters_s
        ]
        lines.append(
            event("JOB_SUBMITTED", "JobSubmitted", jobid=self.id, jobName="n", userName="u", submitTime=self.submit_ms,
                  jobQueueName=self.queue)
        )  # fmt: skip
        if self.placed_in is not None:
            lines.append(event("JOB_QUEUE_CHANGED", "JobQueueChange", jobid=self.id, jobQueueName=self.placed_in))
        lines.append(event("JOB_INITED", "JobInited", jobid=self.id, launchTime=at(self.launch_s), uberized=self.uber))
        for task in sorted(
            {(run.kind, run.task) for run in self.runs} | {("MAP", task) for task in self.never_started}
        ):
            name = self._task(*task)
            lines.append(event("TASK_STARTED", "TaskStarted", taskid=name, taskType=task[0], startTime=at(6)))
        for run in self.runs:
            lines += self._run(run)
        if self.finish_s is not None and self.status == "SUCCEEDED":
            lines.append(event("JOB_FINISHED", "JobFinished", jobid=self.id, finishTime=at(self.finish_s)))
        elif self.finish_s is not None:
            lines.append(
                event(f"JOB_{self.status}", "JobUnsuccessfulCompletion", jobid=self.id, finishTime=at(self.finish_s),
                      jobStatus=self.status)
            )  # fmt: skip
        return lines

    def write(self, folder: Path) -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{self.id}.jhist"
        path.write_text("\n".join(self.lines()) + "\n", encoding="utf-8")
        return path

    def _task(self, kind: str, task: int) -> str:
        return f"{self.id.replace('job', 'task')}_{kind[0].lower()}_{task:06d}"

    def _run(self, run: Run) -> list[str]:
        task = self._task(run.kind, run.task)
        attempt = f"{task.replace('task', 'attempt')}_{run.number}"
        start = -1 if run.start_s is None else self.submit_ms + round(1000 * run.start_s)
        names = {"taskid": task, "taskType": run.kind, "attemptId": attempt}
        lines = [event(f"{run.kind}_ATTEMPT_STARTED", "TaskAttemptStarted", **names, startTime=start)]
        if run.end_s is None or run.status is None:
            return lines
        end = self.submit_ms + round(1000 * run.end_s)
        if run.status == "SUCCEEDED":
            name = "MapAttemptFinished" if run.kind == "MAP" else "ReduceAttemptFinished"
            lines.append(event(f"{run.kind}_ATTEMPT_FINISHED", name, **names, taskStatus="SUCCEEDED", finishTime=end))
            lines.append(
                event("TASK_FINISHED", "TaskFinished", taskid=task, taskType=run.kind, finishTime=end,
                      status="SUCCEEDED", successfulAttemptId={"string": attempt})
            )  # fmt: skip
        else:
            lines.append(
                event(f"{run.kind}_ATTEMPT_{run.status}", "TaskAttemptUnsuccessfulCompletion", **names,
                      status=run.status, finishTime=end)
            )  # fmt: skip
        return lines


@cache
def hadoops_schema() -> bytes:
    """The schema of Hadoop's events, as in the second line of a history file."""
    return next(iter(sorted((RECORDED / "binary").iterdir()))).read_bytes().split(b"\n")[1]


@cache
def _parsed() -> tuple[Any, dict[str, Any]]:
    document = json.loads(hadoops_schema())
    return fastavro.parse_schema(document), {record["name"]: record for record in document["fields"][1]["type"]}


def _filled(kind: Any, given: Any) -> Any:
    """A value of this type: what is given, else something."""
    if isinstance(kind, dict) and kind["type"] == "record":
        return {field["name"]: _filled(field["type"], (given or {}).get(field["name"])) for field in kind["fields"]}
    if isinstance(kind, list):
        return given["string"] if isinstance(given, dict) else given
    if given is not None:
        return given
    if isinstance(kind, dict):
        return {"array": [], "map": {}}[kind["type"]]
    return {"string": "", "long": 0, "int": 0, "boolean": False}.get(kind, {"name": "", "groups": []})


def as_binary(lines: Sequence[str]) -> bytes:
    """The same file in the binary form; fields that the lines do not have are empty or 0."""
    schema, records = _parsed()
    out = io.BytesIO(b"")
    out.write(b"Avro-Binary\n" + hadoops_schema() + b"\n")
    for line in lines[3:]:
        document = json.loads(line)
        ((name, fields),) = document["event"].items()
        event = _filled(records[name.rpartition(".")[2]], fields)
        fastavro.schemaless_writer(out, schema, {"type": document["type"], "event": (name, event)})
    return out.getvalue()
