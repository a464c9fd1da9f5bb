"""Traces that yarnfair did not record, as recordings: Hadoop's SLS traces, Rumen traces, folders of job history files.

They know their tasks, and mostly when jobs ended. None of them knows the queues' weights, and most say nothing about
the cluster: a file of the user's or a ResourceManager adds that. `Lacks` names what is missing in one line.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from harness.base.documents import read_yaml, validated
from harness.base.errors import InputError
from harness.base.files import open_whole, reading
from harness.experiments.assessing.simulated_run import trace_of_run
from harness.experiments.history import load_of, sizes
from harness.experiments.recording import MASTER_HEARTBEAT_S
from harness.jobs import sls
from harness.jobs.recorded import (
    Header,
    JobLine,
    NodeLine,
    NoteLine,
    Trace,
    full_name,
    job_line,
    nodes_by_size,
    put_trace,
    read_trace,
    with_used,
)

#: When a job was submitted, in seconds since 1970, and its line with the times since then: of the day they are larger
#: than a trace's may be.
Found = tuple[float, JobLine]
#: A history file's events that matter, without their package.
_SUBMITTED, _STARTED, _FINISHED, _TASK = "JobSubmitted", "TaskStarted", "JobFinished", "TaskFinished"
_ATTEMPT, _MASTER, _SCHEMA = "TaskAttemptStarted", "AMStarted", '{"type":"record"'
#: A job's id, as Hadoop gives it: a file is named after it.
_JOB = re.compile(r"job_\d{1,20}_\d{1,20}")
_MOST_BYTES = 1 << 30
#: What a kind of trace cannot know, however it was made: SLS' times are those of containers.
_LACKING = dict.fromkeys(
    ("job history", "Rumen"),
    "what containers took besides the tasks' times (a recording with --history has it)",
)
#: The first line of a history file that is no text, and how a compressed file begins.
_BINARY, _GZIP = "Avro-Binary", b"\x1f\x8b"


@dataclass(frozen=True, slots=True)
class Lacks:
    """Why a trace can have no verdict, in one line. ``file``: whether a file of nodes and queues would mend it."""

    what: str
    file: bool = False


def cluster_file(path: Path) -> Header:
    """Nodes and queues that a user wrote down: YAML with the keys of a trace's first line. Raises InputError."""
    document = read_yaml(path)
    try:
        return validated(Header, document)
    except InputError as error:
        mend = "correct it (docs/how-to/assess.md shows such a file)"
        close = error.mend if error.mend and error.mend.startswith("did you mean") else None
        raise InputError(error.what, where=error.where, mend=close or mend) from None


def any_trace(path: Path, cluster: Header | None, into: Path) -> Trace | Lacks:
    """A trace of ours, a run directory, or a foreign one with the nodes and queues of ``cluster`` (None: its own, if
    it says any), written as a trace of ours to ``into``.

    Raises InputError for what cannot be read, or is none of these.
    """
    nodes: list[NodeLine] = []
    if path.is_dir():
        if (path / "trace.jsonl").exists():
            return read_trace(path / "trace.jsonl")
        if (path / "run.json").exists():
            return trace_of_run(path, into)
        files = sorted(path.rglob("*.jhist"))
        if not files:
            raise InputError(
                "no trace: it holds no trace.jsonl, run.json or *.jhist", where=str(path), mend="give a run "
                "directory, or a folder of MapReduce job history files"
            )  # fmt: skip
        kind, found = "job history", [job for file in files if (job := _job_history(file)) is not None]
    else:
        head = _head(path)
        if '"trace"' in head[:200] and '"yarnfair"' in head[:200]:
            return read_trace(path)
        if '"mapTasks"' in head or '"jobID"' in head or "job-trace" in path.name:
            kind, found = "Rumen", list(_rumen(path))
        elif "job.tasks" in head or "num.nodes" in head or "am.type" in head:
            kind, (found, nodes) = "SLS", _sls(path)
        elif '"job_classes"' in head:
            raise InputError(
                "SLS' description of a synthetic load, which has no jobs of its own",
                where=str(path),
                mend="give jobs with their tasks (an SLS trace with job.tasks, or Rumen's)",
            )
        elif '"rack"' in head and '"node"' in head:
            raise InputError(
                "an SLS topology, which has nodes and no jobs",
                where=str(path),
                mend="give the jobs, and the nodes by --cluster FILE (docs/how-to/assess.md shows one)",
            )
        else:
            # The reader of our own says what is wrong with it.
            return read_trace(path)
    if not found:
        return Lacks(f"the {kind} trace has no job that ended")
    if cluster is None and not nodes:
        what = f"the {kind} trace says nothing about the cluster's nodes and the queues' weights"
        return Lacks(what, file=True)
    return _as_ours(found, nodes, cluster, f"{path} ({kind})", into, _LACKING.get(kind))


def played_trace(path: Path, cluster: Path | None, into: Path) -> Trace:
    """`any_trace` for who can only play it: ``cluster`` is the user's file; what it lacks is an InputError."""
    found = any_trace(path, None if cluster is None else cluster_file(cluster), into)
    if isinstance(found, Lacks):
        mend = "give --cluster FILE (docs/how-to/assess.md shows one)" if found.file else "give another trace"
        raise InputError(found.what, where=str(path), mend=mend)
    return found


def _as_ours(
    found: Sequence[Found],
    nodes: Sequence[NodeLine],
    cluster: Header | None,
    source: str,
    into: Path,
    lacking: str | None,
) -> Trace:
    """Written and read again: what is no trace is refused as any other."""
    zero_s = min(at_s + job.submit_s for at_s, job in found)
    jobs = [_moved(job, at_s - zero_s) for at_s, job in found]
    queues = cluster.queues if cluster is not None else {}
    parents = {path.rpartition(".")[0] for path in queues}
    for job in jobs:
        if job.queue in parents:
            raise InputError(f"its queue {job.queue} has queues below it on the cluster", where=source, mend="give the "
                             "cluster on which it was recorded")  # fmt: skip
    ordered = with_used(queues, (job.queue for job in jobs))
    if cluster is None:
        header = Header(source=source, nodes=list(nodes), queues=ordered, max_am_share=-1.0)
    else:
        header = cluster.model_copy(update={"source": source, "queues": ordered, "zero_ms": None})
    until_s = max(job.finished_s or job.submit_s for job in jobs)
    notes = () if lacking is None else (NoteLine(note=lacking, from_s=0.0, until_s=until_s),)
    return replace(put_trace(into, header, jobs), notes=notes)


def _moved(job: JobLine, by_s: float) -> JobLine:
    times = {
        name: round(max(value + by_s, 0.0), 3)
        for name in ("submit_s", "started_s", "finished_s")
        if (value := getattr(job, name)) is not None
    }
    return job.model_copy(update=times)


def _head(path: Path) -> str:
    with reading(path), open_whole(path) as stream:
        head = stream.read(65_536)
    if head.startswith(_GZIP):
        raise InputError("compressed by gzip", where=str(path), mend="unpack it: gunzip")
    return head.decode("utf-8", "replace")


# --- SLS --------------------------------------------------------------------------------------------------------------


def _sls(path: Path) -> tuple[list[Found], list[NodeLine]]:
    """Jobs, with the end that ``job.end.ms`` says, and the nodes of ``num.nodes`` (hadoop-sls' own sizes)."""
    ends = sls.ends_s(path)
    jobs = [
        (0.0, job_line(job, [stage.duration.values_s for stage in job.stages], finished_s=ends.get(job.id)))
        for job in sls.load_jobs(path)
    ]
    try:
        specs = sls.load_nodes(path)
    except InputError:
        return jobs, []
    return jobs, nodes_by_size((node.memory_mb, node.vcores) for node in specs)


# --- Rumen ------------------------------------------------------------------------------------------------------------


def _rumen(path: Path) -> Iterator[Found]:
    """Jobs of a Rumen trace (`TraceBuilder`'s JSON): one object a job."""
    for place, item in sls.objects(path):
        try:
            tasks = {kind: item.get(f"{kind}Tasks") or [] for kind in ("map", "reduce")}
            times = {kind: [s for task in own if (s := _rumen_s(task)) is not None] for kind, own in tasks.items()}
            submit_s = _time(item.get("submitTime"))
            if not any(times.values()) or not submit_s:
                continue
            memory = {f"mapreduce.{kind}.memory.mb": item.get(f"job{kind.title()}MB") for kind in times}
            yield _line(
                str(item.get("jobID")),
                (item.get("queue"), item.get("user"), item.get("jobName")),
                load_of(times, sizes(memory.items())),
                submit_s,
                _time(item.get("launchTime")),
                _time(item.get("finishTime")),
            )
        except (TypeError, ValueError, AttributeError, KeyError, ValidationError) as error:
            raise InputError(
                f"no job of Rumen's ({str(error).splitlines()[0][:100]})", where=place, mend="make the trace anew "
                "with Rumen's TraceBuilder"
            ) from None  # fmt: skip


def _rumen_s(task: Mapping[str, Any]) -> float | None:
    """How long the attempt that succeeded ran; the task itself where no attempts are listed."""
    for attempt in reversed(task.get("attempts") or []):
        if attempt.get("result") == "SUCCESS" and _time(attempt.get("finishTime")):
            return max(float(attempt["finishTime"]) - float(attempt.get("startTime") or 0), 0.0) / 1000.0
    if task.get("taskStatus") == "SUCCESS" and _time(task.get("finishTime")) and _time(task.get("startTime")):
        return max(float(task["finishTime"]) - float(task["startTime"]), 0.0) / 1000.0
    return None


def _time(value: Any) -> float | None:
    return float(value) / 1000.0 if isinstance(value, int | float) and value > 0 else None


# --- job history files ------------------------------------------------------------------------------------------------


def _job_history(path: Path) -> Found | None:
    """A job of a ``.jhist`` file (Avro-Json: one event a line); None where it has not ended or no task succeeded.

    A task's time is that of its attempt that succeeded: before that it waited for a container. Sizes are those of the
    job's configuration, which MapReduce writes beside the file. Avro's binary form, which Hadoop 3 writes by default
    (``mapreduce.jobhistory.jhist.format``), is an InputError.
    """
    submitted: Mapping[str, Any] = {}
    finished_ms = launched_ms = master_ms = 0
    starts: dict[str, int] = {}
    times: dict[str, list[float]] = {"MAP": [], "REDUCE": []}
    if path.stat().st_size > _MOST_BYTES:
        raise InputError(f"larger than {_MOST_BYTES >> 30} GiB", where=str(path), mend="leave it out")
    with path.open(encoding="utf-8", errors="replace") as lines:
        for number, line in enumerate(lines, start=1):
            if number == 1 and line.startswith(_BINARY):
                mend = "make a Rumen trace of the folder (Hadoop's `rumentrace`, TraceBuilder) and give that"
                raise InputError("a job history in Avro's binary form", where=str(path), mend=mend)
            # Before Hadoop 2 an event's line begins with a space. The second line is the events' schema.
            line = line.lstrip()
            if not line.startswith('{"type":"') or line.startswith(_SCHEMA):
                continue
            try:
                ((name, event),) = json.loads(line)["event"].items()
                kind = name.rpartition(".")[2]
                if kind == _SUBMITTED:
                    submitted = event
                elif kind in (_STARTED, _ATTEMPT):
                    # By the attempt; and by the task, for a file that does not say which attempt succeeded: the last.
                    for identity in (event["taskid"], event.get("attemptId")):
                        starts[identity] = int(event["startTime"])
                elif kind == _TASK and event["status"] == "SUCCEEDED" and event["taskType"] in times:
                    began = starts.get(_named(event.get("successfulAttemptId")) or event["taskid"])
                    began = starts.get(event["taskid"], int(event["finishTime"])) if began is None else began
                    times[event["taskType"]].append(max(int(event["finishTime"]) - began, 0) / 1000.0)
                elif kind == _MASTER:
                    master_ms = int(event["startTime"])
                elif kind == "JobInited":
                    launched_ms = int(event.get("launchTime") or 0)
                elif kind == _FINISHED:
                    finished_ms = int(event["finishTime"])
            except (ValueError, KeyError, TypeError, AttributeError):
                raise InputError(
                    "no event of a job's history", where=f"{path}:{number}", mend="leave this file out"
                ) from None
    job = str(submitted.get("jobid"))
    asked = _configured(path.with_name(f"{job}_conf.xml")) if _JOB.fullmatch(job) else sizes(())
    if not any(times.values()) or not submitted.get("submitTime"):
        return None
    more: dict[str, Any] = {}
    if 0 < master_ms <= launched_ms:
        # As of a recording: it asks for its tasks at the heartbeat after.
        more["am_start_s"] = round((launched_ms - master_ms) / 1000.0 + MASTER_HEARTBEAT_S / 2, 3)
    try:
        return _line(
            job,
            (submitted.get("jobQueueName"), submitted.get("userName"), submitted.get("jobName")),
            load_of({kind.lower(): found for kind, found in times.items()}, asked) | more,
            float(submitted["submitTime"]) / 1000.0,
            (master_ms or launched_ms) / 1000.0 or None,
            finished_ms / 1000.0 or None,
        )
    except (ValidationError, TypeError, ValueError):
        raise InputError("no job's history", where=str(path), mend="leave this file out") from None


def _named(value: Any) -> str | None:
    """A text of Avro's JSON that may be null: it stands below its type."""
    found = value.get("string") if isinstance(value, Mapping) else value
    return found if isinstance(found, str) else None


def _configured(path: Path) -> dict[str, float]:
    """What containers ask for by a job's configuration; Hadoop's defaults where there is none."""
    from lxml import etree

    if not path.is_file():
        return sizes(())
    try:
        root = etree.parse(str(path), etree.XMLParser(resolve_entities=False, no_network=True)).getroot()
    except (OSError, etree.XMLSyntaxError):
        raise InputError("no configuration of a job", where=str(path), mend="leave this file out") from None
    return sizes((str(one.findtext("name")), one.findtext("value")) for one in root.iter("property"))


def _line(
    job: str,
    names: tuple[Any, Any, Any],
    load: Mapping[str, Any],
    submit_s: float,
    started_s: float | None,
    finished_s: float | None,
) -> Found:
    """A job. ``names``: its queue's, its user's and its own; ``load``: the line's other keys."""
    queue, user, name = names
    line = JobLine(
        job=job,
        queue=full_name(str(queue or "default")),
        user=str(user or "unknown"),
        name=str(name or "")[:1000],
        kind="mapreduce",
        submit_s=0.0,
        started_s=None if started_s is None else max(round(started_s - submit_s, 3), 0.0),
        finished_s=None if finished_s is None else max(round(finished_s - submit_s, 3), 0.0),
        **load,
    )
    return submit_s, line
