"""The two sides of a plan: the same recorded load on two configurations, with nodes or an application added.

Each side is an experiment file with a scheduler's own file; harness.predict.plan simulates both.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Literal

from harness.base.documents import LONGEST_S, YamlDocument, validated
from harness.base.errors import CallError, InputError
from harness.base.words import plain_number
from harness.experiments.resolve import LoadedExperiment, jobs_of, load_experiment
from harness.experiments.scheduler_file import read_scheduler_file
from harness.model.jobs import JobSpec
from harness.model.queues import BAD_IN_NAME, ensure_root_prefix
from harness.predict.replay import sample_for, time_limit_s, write_experiment
from harness.sim.scheduler_file import Place, SchedulerFile
from harness.traces.nodes import node_lines, shown_by
from harness.traces.recorded import Header, JobLine, NodeLine, Trace, put_trace, with_used

#: The name of the application that a call adds.
SUBMITTED = "submitted-application"
#: Latest submission of the added application: a run may last as long again, at most `LONGEST_S` in total.
_LATEST_S = LONGEST_S / 4
#: Maximum number of added nodes; a trace has at most 100,000 nodes of a size.
MOST_NODES = 10_000
SideName = Literal["before", "after"]


@dataclass(frozen=True, slots=True)
class Side:
    """One configuration on one load: an experiment file (nodes and applications) on a scheduler's own file."""

    experiment: str
    file: str
    place: Place = "rules"
    drop: bool = False
    groups: tuple[tuple[str, tuple[str, ...]], ...] = ()

    def read(self, conf: Mapping[str, str]) -> SchedulerFile:
        """Read the scheduler's file. Raises InputError."""
        return read_scheduler_file(self.file, conf=conf, place=self.place, drop=self.drop, groups=dict(self.groups))


@dataclass(frozen=True, slots=True)
class LoadedSide:
    """A side after reading.

    jobs : the applications that it accepts, in their queues; ``placed``: every application -> its queue, or None and
        the reason.
    lines : remarks on it.
    """

    experiment: LoadedExperiment
    jobs: tuple[JobSpec, ...]
    placed: Mapping[str, tuple[str | None, str]]
    lines: tuple[str, ...]

    @property
    def file(self) -> SchedulerFile:
        """Return the scheduler's file."""
        assert self.experiment.scheduler_file is not None
        return self.experiment.scheduler_file

    @property
    def nodes(self) -> list[NodeLine]:
        """Return its nodes."""
        return [
            NodeLine(count=group.count, memory_mb=group.memory_mb, vcores=group.vcores)
            for group in self.experiment.spec.cluster.nodes
        ]

    def counts_vcores(self) -> bool:
        """Return whether its scheduler compares dominant shares instead of memory alone."""
        return self.file.counts_vcores()


@lru_cache(maxsize=4)
def loaded_side(side: Side) -> LoadedSide:
    """Read a side, in every process that simulates it. Raises InputError."""
    from harness.experiments.placed import with_scheduler_file
    from harness.experiments.simulated import texts

    base = load_experiment(side.experiment)
    made, lines = with_scheduler_file(base, side.read(texts(base.spec.conf)))
    assert made.scheduler_file is not None
    asked = sorted(jobs_of(base, 1)[0], key=lambda job: job.submit_s)
    placed = {job.id: (queue, why) for job, queue, why in made.scheduler_file.placements(asked)}
    return LoadedSide(made, tuple(jobs_of(made, 1)[0]), placed, tuple(lines))


def with_nodes(nodes: Sequence[NodeLine], change: int) -> list[NodeLine]:
    """Add nodes of the most frequent size, or take nodes away, those of the most frequent size first.

    Raises CallError if no node is left, or too many are added.
    """
    if change >= 0:
        if change > MOST_NODES:
            raise CallError(f"{change} nodes more", where="--nodes", hint=f"at most {MOST_NODES:,}")
        most = max(nodes, key=lambda one: one.count)
        return [one.model_copy(update={"count": one.count + change}) if one is most else one for one in nodes]
    left = {id(one): one.count for one in nodes}
    gone = -change
    for one in sorted(nodes, key=lambda one: -one.count):
        taken = min(gone, one.count)
        left[id(one)] -= taken
        gone -= taken
    if gone or not any(left.values()):
        have = sum(one.count for one in nodes)
        raise CallError(f"{-change} nodes fewer of {have}", where="--nodes", hint="leave at least one node")
    return [one.model_copy(update={"count": left[id(one)]}) for one in nodes if left[id(one)]]


def _with_nodes_for_good(header: Header, change: int) -> list[NodeLine]:
    """Add permanent nodes, or remove some of them. Raises CallError."""
    if not any(line.was_memory_mb for line in header.changes or ()):
        return with_nodes(header.nodes, change)
    stays = [
        NodeLine(count=count, memory_mb=one.size[0], vcores=one.size[1])
        for one, count in header.presences()
        if one.join_s == 0 and not one.steps and one.leave_s is None
    ]
    if not stays:
        what = "no node is there all the time, so that none can be added or taken away"
        raise CallError(what, where="--nodes", hint="leave --nodes out")
    left = shown_by(with_nodes(stays, change)) + (shown_by(header.nodes) - shown_by(stays))
    return node_lines(left)


_SUBMIT_KEYS = ("queue", "tasks", "task_s", "memory_mb", "vcores", "user", "at_s", "like")
_NAME = re.compile(f"[^{BAD_IN_NAME}]+")
_SUBMIT_HINT = "write queue=prod,tasks=100,task_s=60,memory_mb=2048[,vcores=1][,user=U][,at_s=S], or like=ID[,queue=Q]"


def submission(text: str, trace: Trace) -> JobLine:
    """Parse the application of ``--submit``: comma-separated keys and values. Raises CallError.

    ``like``: an application of the trace whose shape it copies. Without ``at_s`` it is submitted with the last
    application of the trace, because the later load is unknown.
    """

    def wrong(what: str) -> CallError:
        return CallError(what, where="--submit", hint=_SUBMIT_HINT)

    given: dict[str, str] = {}
    for part in text.split(","):
        key, equals, value = (one.strip() for one in part.partition("="))
        if not equals or key not in _SUBMIT_KEYS or key in given or not value:
            raise wrong(f"{part.strip()[:60]!r} is no setting of an application, or is given twice")
        given[key] = value

    def number(key: str, default: float | None, least: float, most: float, *, whole: bool = True) -> float:
        if key not in given and default is not None:
            return default
        try:
            value = plain_number(given[key])
        except KeyError:
            raise wrong(f"{key} is missing") from None
        except ValueError:
            value = math.nan
        if not least <= value <= most or (whole and value != int(value)):
            raise wrong(f"{key} is {given[key][:40]!r}")
        return value

    at_s = number("at_s", max(job.submit_s for job in trace.jobs), 0.0, _LATEST_S, whole=False)
    fresh = {"job": SUBMITTED, "name": SUBMITTED, "submit_s": at_s, "after_job": None, "think_s": 0.0}
    fresh |= {"started_s": None, "finished_s": None, "counted_mb_s": None, "counted_until_s": None}
    if "user" in given:
        fresh["user"] = given["user"]
    if "queue" in given:
        fresh["queue"] = _full_path(given["queue"])
    if "like" in given:
        if any(key in given for key in ("tasks", "task_s", "memory_mb", "vcores")):
            raise wrong("like=ID has tasks of its own")
        model = next((job for job in trace.jobs if job.job == given["like"]), None)
        if model is None:
            raise wrong(f"the trace has no application {given['like'][:80]!r}")
        return _valid(model.model_copy(update=fresh))
    if "queue" not in given:
        raise wrong("queue is missing")
    from harness.traces.recorded import StageLine
    from harness.traces.spec import MasterSpec

    tasks, task_s = int(number("tasks", None, 1, 1_000_000)), number("task_s", None, 0.001, 1e9, whole=False)
    memory_mb, vcores = int(number("memory_mb", 1024, 1, 2**40)), int(number("vcores", 1, 1, 2**20))
    stage = StageLine(name="tasks", memory_mb=memory_mb, vcores=vcores, tasks_s=[task_s] * tasks)
    # MapReduce's default size of an AM (yarn.app.mapreduce.am.resource.mb).
    made = JobLine(
        job=SUBMITTED,
        queue=str(fresh["queue"]),
        kind="dag",
        submit_s=at_s,
        am=MasterSpec(memory_mb=1536, vcores=1),
        stages=[stage],
    )
    return _valid(made.model_copy(update=fresh))


def _full_path(queue: str) -> str:
    """Return the full path of a queue. Raises CallError for the root, which is no leaf, and for an invalid path."""
    path = ensure_root_prefix(queue)
    names = path.split(".")
    if len(names) < 2 or not all(_NAME.fullmatch(name) for name in names):
        hint = "give a leaf queue: its full path, or that below the root"
        raise CallError(f"{queue[:60]!r} is no leaf queue", where="--submit", hint=hint)
    return path


def _valid(made: JobLine) -> JobLine:
    """Validate the result of `model_copy` like a line of a trace. Raises CallError."""
    try:
        return validated(JobLine, YamlDocument("--submit", made.model_dump(), {}))
    except InputError as error:
        raise CallError(error.what, where="--submit", hint=_SUBMIT_HINT) from None


def sides_of(
    trace: Trace,
    folder: Path,
    before: str,
    after: str,
    *,
    nodes: int = 0,
    added: JobLine | None = None,
    place: Place = "rules",
    drop: bool = False,
    groups: Mapping[str, tuple[str, ...]] | None = None,
) -> dict[SideName, Side]:
    """Return both sides, with their experiment files written into ``folder``. Raises InputError, CallError."""
    given = tuple((groups or {}).items())
    changed = trace
    if nodes or added is not None:
        header, jobs = trace.header, list(trace.jobs)
        if nodes:
            header = header.model_copy(update={"nodes": _with_nodes_for_good(header, nodes)})
        if added is not None:
            header, jobs = _with_added(header, jobs, added)
        changed = put_trace(folder / "after" / "trace.jsonl", header, jobs)
    # The time of a queue below its due is a sum over samples, and an application that has not ended at the time limit
    # counts as one that never ends. Both sides therefore have the same sample period and time limit, even if an added
    # application is submitted long after the others.
    sample_s, limit_s = (max(of(trace), of(changed)) for of in (sample_for, time_limit_s))
    here = write_experiment(trace, folder / "before", sample_s=sample_s, limit_s=limit_s)
    there = here
    if changed is not trace:
        there = write_experiment(changed, folder / "after", sample_s=sample_s, limit_s=limit_s)
    return {
        "before": Side(str(here), before, place, drop, given),
        "after": Side(str(there), after, place, drop, given),
    }


def _with_added(header: Header, jobs: list[JobLine], added: JobLine) -> tuple[Header, list[JobLine]]:
    if any(job.job == added.job for job in jobs):
        raise InputError(f"the trace has an application {added.job!r} itself", hint="rename it there")
    taken = {job.queue for job in jobs}
    for queue in taken:
        if added.queue.startswith(f"{queue}.") or queue.startswith(f"{added.queue}."):
            what = f"{added.queue} and {queue}, in which applications of the trace run, lie below one another"
            raise CallError(what, where="--submit", hint="submit to a queue beside it")
    # A recording that continues would be read again from its own running applications.
    header = header.model_copy(update={"queues": with_used(header.queues, [added.queue]), "zero_ms": None})
    return header, [*jobs, added]
