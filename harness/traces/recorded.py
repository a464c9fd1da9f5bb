"""Recorded traces: what ran on a cluster, as JSON lines that the simulator can replay. Reading and writing.

The first line describes the cluster and its queues; every other line is one job with the time of each of its tasks
(docs/reference/trace.md). Strict: unknown keys, numbers out of range and jobs that cannot run are errors with their
line. harness.traces.recording obtains the values.
"""

from __future__ import annotations

import heapq
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import BaseModel, Field, model_validator

from harness.base.documents import Name, Seconds, Strict, YamlDocument, validated
from harness.base.errors import InputError
from harness.base.files import no_constant, open_whole, read_json, reading, write_text
from harness.model.jobs import Duration, JobSpec, Stage, most_executors
from harness.model.queues import SchedulerName
from harness.model.resources import Resource
from harness.sim.world import MAX_STAGES, MOST_CHAINED
from harness.traces.nodes import Line, Nodes, Presence, presences_of, shown_by
from harness.traces.nodes import NodeChangeLine as NodeChangeLine
from harness.traces.nodes import NodeLine as NodeLine
from harness.traces.nodes import nodes_by_size as nodes_by_size
from harness.traces.spec import MOST_TASKS, DelaysSpec, DynamicSpec, MasterSpec, check_order

M = TypeVar("M", bound=BaseModel)
VERSION = 1
#: The largest entitlement of a queue; absolute resources are in MiB.
MOST_WEIGHT = 1e12
#: The maximum length of one line (a million tasks are some 10 MB).
MAX_LINE_BYTES = 256 << 20
#: Index of the earlier task that a task repeats.
RetryOf = Annotated[int, Field(ge=0, lt=MOST_TASKS)] | None
#: What is known of a job: the time of every task, or only its resource-seconds, which are divided into equal tasks.
Detail = Literal["tasks", "integrals"]


class NoJob(InputError):
    """A trace without a job."""


class QueueLine(Line):
    """A queue's entitlement and limits, as in an experiment file."""

    weight: float = Field(default=1.0, gt=0, le=MOST_WEIGHT, allow_inf_nan=False)
    """The entitlement: a weight, of the Capacity Scheduler also a percentage of the parent or MiB, as configured."""
    max_running_apps: int | None = Field(default=None, ge=0, le=2**31 - 1)
    """Maximum number of running applications."""


def full_name(queue: str) -> str:
    """Return a queue's full path from the name that an application gives."""
    return queue if queue.startswith("root.") else f"root.{queue}"


def with_used(queues: Mapping[str, QueueLine], used: Iterable[str]) -> dict[str, QueueLine]:
    """Return the queues and those that only applications name (ad hoc queues may be gone), parents before children."""
    found = dict(queues)
    for queue in used:
        parts = queue.split(".")
        for depth in range(2, len(parts) + 1):
            found.setdefault(".".join(parts[:depth]), QueueLine())
    return dict(sorted(found.items(), key=lambda item: item[0].split(".")))


class LeftOutLine(Line):
    """A part of a trace's source that is not in the trace, and the reason."""

    reason: str = Field(min_length=1, max_length=1000)
    """The reason."""
    records: int = Field(default=0, ge=0)
    """Lines or objects of the original."""
    jobs: int = Field(default=0, ge=0)
    """Applications."""
    tasks: int = Field(default=0, ge=0)
    """Tasks of applications that are in the trace."""
    attempts: int = Field(default=0, ge=0)
    """Attempts of tasks."""
    container_s: Seconds = 0.0
    """Seconds for which these attempts held their containers, as far as the original says."""


class Header(Line):
    """The first line. ``queues`` by full path, parents before children.

    ``zero_ms``: for a continuing recording (`record --follow`), the start of its time, ms since 1970. Such a file may
    have later lines of this type (the queues have changed; the last one is valid). Any trace may have a `NoteLine`, and
    a `NodeChangeLine` for each change of a node; a trace that was read has these in ``changes``.
    """

    trace: Literal["yarnfair"] = "yarnfair"
    """Identifies the file as a trace."""
    version: int = VERSION
    """Version of the format."""
    source: str = Field(default="", max_length=10_000)
    """Where the trace is from, in words."""
    nodes: list[NodeLine] = Field(min_length=1, max_length=100_000)
    """The nodes that the ResourceManager shows; in a file with changes of nodes, the initial nodes."""
    changes: list[NodeChangeLine] | None = Field(default=None, max_length=1_000_000)
    """Changes of nodes, in order, with the keys of [a line about a node](#the-format): for a file of nodes and queues,
    where they cannot be lines of their own."""
    queues: dict[Name, QueueLine] = Field(min_length=1, max_length=100_000)
    """Full path (parents before children) → queue."""
    max_am_share: float = Field(default=0.5, ge=-1, le=1, allow_inf_nan=False)
    """As in an [experiment file](experiment-file.md)."""
    conf: dict[str, str] = Field(default_factory=dict)
    """As in an experiment file. Empty for a run
    [on a cluster that is there](../how-to/run-on-a-real-cluster.md#on-a-cluster-that-is-there)."""
    scheduler: SchedulerName | None = None
    """`fair` or `capacity`; none: the Fair Scheduler is assumed."""
    capacity: dict[str, str] | None = None
    """The Capacity Scheduler's limits of queues, users and masters, as in an experiment file; `queues` of a parent is
    the order of its children, which breaks ties."""
    asynchronous: bool | None = None
    """Whether the Capacity Scheduler placed containers asynchronously, at least for a part of the recording; none: not
    known, because the ResourceManager did not show it."""
    delays: DelaysSpec = DelaysSpec()
    """As in an experiment file, where set or measured. Heartbeats and updates of a recorded cluster are as its
    ResourceManager's configuration shows them, or else Hadoop's defaults."""
    zero_ms: int | None = Field(default=None, ge=0)
    """In a trace of `record --follow`: second 0 of the trace, ms since 1970."""
    left_out: list[LeftOutLine] = Field(default_factory=list, max_length=1000)
    """What the original contains and the trace does not, by reason."""
    assumed: list[str] = Field(default_factory=list, max_length=1000)
    """What the original does not say, and what was assumed instead."""
    unknown: list[str] = Field(default_factory=list, max_length=1000)
    """What the original does not say although every verdict depends on it: `assess` is then unsure."""

    @model_validator(mode="after")
    def _usable(self) -> Self:
        if self.version != VERSION:
            raise ValueError(f"version {self.version} of the format, known is {VERSION}")
        before = {"root"}
        # The names of the queues imply the root. It has neither a weight nor limits in a trace.
        if (root := self.queues.pop("root", None)) is not None and root != QueueLine():
            raise ValueError("'root' has no weight and no limits in a trace; leave them out")
        if not self.queues:
            raise ValueError("there is no queue below root")
        for path in self.queues:
            parts = path.split(".")
            if parts[0] != "root" or len(parts) < 2 or any(not part.strip() for part in parts):
                raise ValueError(f"{path!r} is not a queue's full path (root.a.b)")
            above = ".".join(parts[:-1])
            if above not in before:
                raise ValueError(f"{path!r} comes without {above!r} before it")
            before.add(path)
        if self.changes:
            presences_of(self.nodes, self.changes)
        return self

    def presences(self) -> list[tuple[Presence, int]]:
        """Return every node from its registration to its end, with the number of equal ones."""
        return presences_of(self.nodes, self.changes or ())

    def leaves(self) -> list[str]:
        """Return the queues without queues below them."""
        parents = {path.rpartition(".")[0] for path in self.queues}
        return [path for path in self.queues if path not in parents]


class NoteLine(Line):
    """What a continuing recording could not know, in words; seconds of the trace.

    ``unseen``: number of applications of which it is unknown whether they ran; ``vanished``: number of applications
    that had run and were not seen to end.
    """

    note: str = Field(min_length=1, max_length=10_000)
    """What a recording could not know, in words."""
    from_s: Seconds
    """Beginning of the time that the note is about, seconds of the trace."""
    until_s: Seconds
    """End of that time, seconds of the trace."""
    unseen: int = Field(default=0, ge=0)
    """Number of applications that were never seen, or vanished after they had been seen only waiting."""
    vanished: int = Field(default=0, ge=0)
    """Number of applications that had run and were not seen to end."""


class StageLine(Line):
    """Tasks of one type, with the seconds that each of them worked.

    ``starts_s``: additional time for the start of each one's container (empty: unknown, or in the first line's delays).
    ``waits_s`` and ``tail``: see `harness.traces.mapreduce.waits_of`.
    """

    name: Name
    """Its name."""
    memory_mb: int = Field(ge=0, le=2**40)
    """Memory of a task's container, MiB."""
    vcores: int = Field(ge=0, le=2**20)
    """Vcores of a task's container."""
    tasks_s: list[Seconds] = Field(max_length=MOST_TASKS)
    """The seconds that each task worked."""
    starts_s: list[Seconds] = Field(default_factory=list, max_length=MOST_TASKS)
    """The additional seconds that each task's container took to start; may be missing."""
    retry_of: list[RetryOf] = Field(default_factory=list, max_length=MOST_TASKS)
    """For each task, the index in `tasks_s` (from 0 on) of the earlier task that it repeats: that task did not succeed,
    and this one is requested when it has ended. `null`: it repeats none."""
    after: list[Name] = Field(default_factory=list, max_length=1000)
    """Earlier stages that this stage waits for."""
    slow_start: float = Field(default=1.0, ge=0, le=1, allow_inf_nan=False)
    """The fraction of their tasks that must have ended before this stage's tasks are requested."""
    waits_s: list[Seconds] = Field(default_factory=list, max_length=MOST_TASKS)
    """Of the seconds in `tasks_s`, those for which each task did nothing but wait for the last task of the stages in
    `after`, as a reduce does that starts early; may be missing. In a replay a task waits for the replay's tasks."""
    tail: float = Field(default=0.0, ge=0, le=1, allow_inf_nan=False)
    """The fraction of a task's work (`tasks_s` without `waits_s`) that it can do only when all tasks of the stages in
    `after` have ended, for a reduce its sort and reduce phases."""
    priority: int = Field(default=20, ge=0, le=10**6)
    """The priority of its requests."""
    delay_s: Seconds | None = None
    """For `spark`: seconds from the end of the stages in `after` until the driver submits this stage."""
    shuffles: bool | None = None
    """For `spark` with `dynamic`: later stages read what its tasks leave on their executors."""
    caches: bool | None = None
    """For `spark` with `dynamic`: its tasks leave cached blocks on their executors."""

    def held_s(self) -> tuple[float, ...]:
        """Return how long each task kept its container."""
        if not self.starts_s:
            return tuple(self.tasks_s)
        return tuple(start + work for start, work in zip(self.starts_s, self.tasks_s, strict=True))

    def worked_s(self) -> tuple[float, ...]:
        """Return how long each task kept its container without waiting for the stages before."""
        if not self.waits_s:
            return self.held_s()
        return tuple(max(held - wait, 0.0) for held, wait in zip(self.held_s(), self.waits_s, strict=True))

    def chains(self) -> list[list[int]]:
        """Return chains of attempts that follow one another, as indices in ``tasks_s``, in order of the first ones."""
        found: list[list[int]] = []
        chain_of: dict[int, list[int]] = {}
        for at, before in enumerate(self.retry_of):
            if before is None:
                found.append(chain_of.setdefault(at, [at]))
            else:
                chain_of[at] = chain_of[before]
                chain_of[at].append(at)
        return found or [[at] for at in range(len(self.tasks_s))]

    def tasks(self) -> Stage:
        """Return the stage in the simulator's form."""
        worked_s = self.worked_s()
        attempts: tuple[int, ...] = ()
        if self.retry_of:
            chains = self.chains()
            worked_s, attempts = tuple(worked_s[at] for chain in chains for at in chain), tuple(map(len, chains))
        return Stage(
            self.name,
            len(attempts or worked_s),
            Resource(self.memory_mb, self.vcores),
            Duration("listed", values_s=worked_s, attempts=attempts),
            tuple(self.after),
            self.slow_start,
            self.priority,
            self.delay_s or 0.0,
            self.shuffles is True,
            self.caches is True,
            self.tail,
        )

    def check_waits(self) -> None:
        """Raise ValueError if ``waits_s`` does not give each task a part of its seconds, or nothing is waited for."""
        if self.waits_s and len(self.waits_s) != len(self.tasks_s):
            raise ValueError(f"stage {self.name!r} has {len(self.waits_s)} waits for {len(self.tasks_s)} tasks")
        # Both may be rounded to milliseconds.
        if any(wait > seconds + 0.002 for wait, seconds in zip(self.waits_s, self.tasks_s, strict=False)):
            raise ValueError(f"a task of stage {self.name!r} waits for longer than all of its seconds")
        if not self.after and (self.tail or any(self.waits_s)):
            raise ValueError(f"stage {self.name!r} has waits_s or a tail, and comes after no other")

    def check_retries(self) -> None:
        """Raise ValueError if ``retry_of`` does not give, for each task, the earlier one that it repeats."""
        if self.retry_of and len(self.retry_of) != len(self.tasks_s):
            what = f"says of {len(self.retry_of)} tasks what they repeat, and has {len(self.tasks_s)}"
            raise ValueError(f"stage {self.name!r} {what}")
        repeated = [before for before in self.retry_of if before is not None]
        if any(before is not None and before >= at for at, before in enumerate(self.retry_of)):
            raise ValueError(f"a task of stage {self.name!r} repeats one that is not earlier")
        if len(set(repeated)) != len(repeated):
            raise ValueError(f"two tasks of stage {self.name!r} repeat the same one")


class ExecutorsLine(Line):
    """Executors of a Spark application: containers held to its end, or as ``dynamic`` determines.

    ``start_s``: None: as in the first line's delays. ``least``, ``wait_s``: see `JobSpec`.
    """

    count: int = Field(ge=1, le=MOST_TASKS)
    """Number of executors, held to the application's end."""
    slots: int = Field(default=1, ge=1, le=4096)
    """Number of tasks that an executor runs at once."""
    memory_mb: int = Field(ge=1, le=2**40)
    """Memory of each executor, MiB."""
    vcores: int = Field(ge=1, le=2**20)
    """Vcores of each executor."""
    start_s: Seconds | None = None
    """Seconds from when the driver has an executor until the executor takes tasks."""
    least: int = Field(default=0, ge=0, le=MOST_TASKS)
    """Number of executors that must take tasks before the driver begins."""
    wait_s: Seconds = 0.0
    """The driver begins at the latest this many seconds after it has requested its executors."""
    dynamic: DynamicSpec | None = None
    """Spark's dynamic allocation: the number of executors follows the tasks, and `count` is the largest number at
    once."""
    held_mb: float | None = Field(default=None, ge=0, le=2**60, allow_inf_nan=False)
    """Memory that all executors together held on average from the application's start to its end (or as far as the
    original goes), MB; for accounts, not replayed."""


class JobLine(Line):
    """One application.

    ``am_start_s``: from the grant of its AM's container to the AM's first heartbeat (None: as in the first line's
    delays); ``am_end_s``: from when the AM knows that all tasks have ended until the application has ended.
    """

    job: Name
    """Its id."""
    queue: Name
    """A leaf's full path."""
    kind: Literal["mapreduce", "dag", "spark"]
    """`mapreduce`, `dag` or `spark`."""
    submit_s: Seconds
    """Seconds from the beginning of the trace."""
    am: MasterSpec
    """The master's `memory_mb`, `vcores`; both 0: it holds no container."""
    stages: list[StageLine] = Field(min_length=1, max_length=1000)
    """Its stages."""
    name: str = Field(default="", max_length=1000)
    """Its name."""
    user: Name = "yarnfair"
    """Its user."""
    after_job: Name | None = None
    """A job on an earlier line: this job is submitted after that job's end, and not at `submit_s`."""
    think_s: Seconds = 0.0
    """Seconds from the end of `after_job` to the submission."""
    executors: ExecutorsLine | None = None
    """The executors; for `spark` only."""
    am_start_s: Seconds | None = None
    """Seconds from the grant of the master's container to its first heartbeat; none: the first line's
    `am_start_ms`."""
    am_end_s: Seconds = 0.0
    """Seconds from when the master knows that all tasks have ended until the application ends."""
    lifetime_s: Seconds | None = None
    """Seconds from its submission until it was killed, with all its containers; none: it ended by itself."""
    detail: Detail = "tasks"
    """`tasks` or `integrals`: see above."""
    started_s: Seconds | None = None
    """When it started, seconds of the trace; for comparisons, not replayed."""
    finished_s: Seconds | None = None
    """When it ended, seconds of the trace; for comparisons, not replayed."""
    counted_mb_s: float | None = Field(default=None, ge=0, le=2**60, allow_inf_nan=False)
    """MB-seconds of all its containers, each from its grant to its end, as YARN counted them (`memorySeconds`); for
    accounts, not replayed."""
    counted_until_s: Seconds | None = None
    """Up to when `counted_mb_s` of an application without an end was counted, seconds of the trace; for accounts, not
    replayed."""

    @model_validator(mode="after")
    def _runnable(self) -> Self:
        if (self.kind == "spark") != (self.executors is not None):
            raise ValueError("executors belong to kind spark, and to no other")
        check_order(self.stages)
        for stage in self.stages:
            if stage.starts_s and len(stage.starts_s) != len(stage.tasks_s):
                raise ValueError(
                    f"stage {stage.name!r} has {len(stage.starts_s)} starts for {len(stage.tasks_s)} tasks"
                )
            stage.check_waits()
            stage.check_retries()
            if self.kind == "spark" and (stage.tail or stage.waits_s):
                raise ValueError(f"stage {stage.name!r} is Spark's: its tasks begin when those before have ended")
            if self.kind != "spark" and not stage.memory_mb + stage.vcores:
                raise ValueError(f"tasks of stage {stage.name!r} ask for nothing")
        return self

    @property
    def ended_by_itself(self) -> bool:
        """Return whether it is known to have ended and was not killed.

        A killed one ends at the same time under every policy.
        """
        return self.finished_s is not None and self.lifetime_s is None

    def spec(self) -> JobSpec:
        """Return the job in the simulator's form."""
        executors = self.executors
        stages = self.stages
        if executors is not None:
            driven = executors.dynamic is not None or any(stage.delay_s for stage in self.stages)
            stages = fewer_stages(
                self.stages,
                executors.count * executors.slots,
                MOST_CHAINED if driven else MAX_STAGES,
                wide=executors.dynamic is not None,
            )
        return JobSpec(
            id=self.job,
            queue=self.queue,
            kind=self.kind,
            am=self.am.resource(),
            stages=tuple(stage.tasks() for stage in stages),
            user=self.user,
            name=self.name,
            submit_s=self.submit_s,
            after_job=self.after_job,
            think_s=self.think_s,
            executors=self._most_executors(),
            executor_demand=Resource(executors.memory_mb, executors.vcores) if executors else Resource(),
            executor_slots=executors.slots if executors else 1,
            am_start_s=self.am_start_s,
            executors_least=executors.least if executors else 0,
            executors_wait_s=executors.wait_s if executors else 0.0,
            executor_start_s=executors.start_s if executors else None,
            am_end_s=self.am_end_s,
            lifetime_s=self.lifetime_s,
            dynamic=executors.dynamic.settings() if executors and executors.dynamic else None,
        )

    def _most_executors(self) -> int:
        """Return the maximum number of executors that it may ever have."""
        if self.executors is None or self.executors.dynamic is None:
            return self.executors.count if self.executors else 0
        tasks = sum(len(stage.tasks_s) for stage in self.stages)
        return most_executors(self.executors.dynamic.settings(), tasks, self.executors.slots)


def fewer_stages(
    stages: Sequence[StageLine], slots: int, most: int = MAX_STAGES, *, wide: bool = False
) -> list[StageLine]:
    """Reduce a chain of stages to a number that the simulator supports: neighbours become one stage that takes as long.

    ``slots``: tasks that run at once. If executors are held all the time, one task replaces all tasks of a joined
    stage, which other applications do not notice. ``wide``: the number of executors follows the tasks, so a joined
    stage has as many equal tasks as the largest of its stages.
    """
    each = -(-len(stages) // most)
    befores = [[], *([stage.name] for stage in stages[:-1])]
    if each <= 1 or [stage.after for stage in stages] != befores:
        return list(stages)
    found: list[StageLine] = []
    for at in range(0, len(stages), each):
        group = stages[at : at + each]
        name = group[0].name if len(group) == 1 else f"{group[0].name} to {group[-1].name}"
        seconds = round(sum(_takes_s(stage.tasks_s, slots) for stage in group), 3)
        width = max(len(stage.tasks_s) for stage in group) if wide and len(group) > 1 else 1
        waves = -(-width // max(slots, 1))
        tasks_s = [round(seconds / max(waves, 1), 3)] * width
        delays_s = round(sum(stage.delay_s or 0.0 for stage in group), 3) or None
        after = [found[-1].name] if found else []
        whole: dict[str, Any] = {"name": name, "tasks_s": tasks_s, "starts_s": [], "retry_of": [], "after": after}
        whole["delay_s"] = delays_s
        for left in ("shuffles", "caches"):
            whole[left] = any(getattr(stage, left) for stage in group) or None
        found.append(group[0].model_copy(update=whole))
    return found


def _takes_s(tasks_s: Sequence[float], slots: int) -> float:
    """Return the seconds until all tasks have ended if each, in this order, begins as soon as a slot is free."""
    free = [0.0] * max(slots, 1)
    for seconds in tasks_s:
        heapq.heapreplace(free, free[0] + seconds)
    return max(free)


def mean_held_mb(counted_mb_s: float, am_mb: int, lived_s: float) -> float | None:
    """Return the memory that an application's executors held on average, MB, from YARN's MB-seconds of all containers.

    Parameters
    ----------
    counted_mb_s : float
        The ResourceManager's ``memorySeconds``: executors and the AM.
    am_mb : int
        The AM's memory.
    lived_s : float
        From the grant of the AM's container to the application's end.

    Returns
    -------
    float or None
        None if the lifetime is 0 or unknown (NaN).
    """
    return max(round(counted_mb_s / lived_s - am_mb, 3), 0.0) if lived_s > 0 else None


def job_line(
    job: JobSpec,
    tasks_s: Iterable[Iterable[float]],
    starts_s: Iterable[Iterable[float]] | None = None,
    *,
    held_mb: float | None = None,
    **more: Any,
) -> JobLine:
    """Return a job with the times of its tasks (and starts), stage by stage in the order of ``job.stages``.

    A task with several attempts has one time for each of them, one after the other. ``held_mb``: what its executors
    held on average, if known (`mean_held_mb`).
    """
    times = [[round(value, 3) for value in stage] for stage in tasks_s]
    starts = (
        [[round(value, 3) for value in stage] for stage in starts_s] if starts_s is not None else [[] for _ in times]
    )
    return JobLine(
        job=job.id,
        queue=job.queue,
        kind=job.kind,  # type: ignore[arg-type]
        submit_s=round(max(job.submit_s, 0.0), 3),
        am=MasterSpec(memory_mb=job.am.memory_mb, vcores=job.am.vcores),
        stages=[
            StageLine(
                name=stage.name,
                memory_mb=stage.demand.memory_mb,
                vcores=stage.demand.vcores,
                tasks_s=times[at],
                starts_s=starts[at],
                retry_of=_retries(stage.duration.attempts),
                after=list(stage.after),
                slow_start=stage.slow_start,
                priority=stage.priority,
                delay_s=_rounded(stage.delay_s or None),
                shuffles=stage.shuffles or None,
                caches=stage.caches or None,
                tail=stage.tail,
            )
            for at, stage in enumerate(job.stages)
        ],
        name=job.name,
        user=job.user,
        after_job=job.after_job,
        think_s=job.think_s,
        executors=ExecutorsLine(
            count=job.executors,
            slots=job.executor_slots,
            memory_mb=job.executor_demand.memory_mb,
            vcores=job.executor_demand.vcores,
            start_s=_rounded(job.executor_start_s),
            least=job.executors_least,
            wait_s=job.executors_wait_s,
            dynamic=DynamicSpec.of(job.dynamic) if job.dynamic is not None else None,
            held_mb=held_mb,
        )
        if job.kind == "spark"
        else None,
        am_start_s=_rounded(job.am_start_s),
        am_end_s=round(job.am_end_s, 3),
        lifetime_s=_rounded(job.lifetime_s),
        **more,
    )


def _retries(attempts: Sequence[int]) -> list[int | None]:
    """Return ``retry_of`` for tasks with these numbers of attempts, which follow one another."""
    found: list[int | None] = []
    for count in attempts:
        found += [None, *range(len(found), len(found) + count - 1)]
    return found if len(found) > len(attempts) else []


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 3)


@dataclass(frozen=True, slots=True)
class Trace:
    """A complete recorded trace."""

    path: Path
    header: Header
    jobs: tuple[JobLine, ...]
    notes: tuple[NoteLine, ...] = ()


def running_beside(path: Path) -> Path:
    """Return the file in which a continuing recording stores applications that have not ended."""
    return path.with_name(f"{path.name}.running")


def write_line(line: Strict) -> str:
    """Return one line of a trace, without its end."""
    return json.dumps(line.model_dump(mode="json", exclude_none=True), ensure_ascii=False)


def trace_text(header: Header, jobs: Iterable[JobLine], notes: Iterable[NoteLine] = ()) -> str:
    """Return the text of a trace's file, with jobs in order of submission."""
    first = header.model_copy(update={"changes": None})
    listed = sorted(jobs, key=lambda job: (job.submit_s, job.job))
    lines: list[Line] = [first, *(header.changes or ()), *notes, *listed]
    return "".join(f"{write_line(line)}\n" for line in lines)


def put_trace(path: Path, header: Header, jobs: Iterable[JobLine]) -> Trace:
    """Write a trace into a file, whose folder may be missing, and read it back (`read_trace`)."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, trace_text(header, jobs))
    return read_trace(path)


def read_trace(path: Path) -> Trace:
    """Read a trace file.

    Raises InputError with file and line for an invalid one.
    """
    header: Header | None = None
    cluster: _Cluster | None = None
    jobs: list[tuple[JobLine, str]] = []
    notes: list[NoteLine] = []
    seen: set[str] = set()
    with reading(path), open_whole(path) as stream:
        number = 0
        while line := stream.readline(MAX_LINE_BYTES):
            number += 1
            where = f"{path}:{number}"
            if not line.strip():
                continue
            if header is None or cluster is None:
                header = _line(Header, line, where)
                cluster = _Cluster(header)
            elif header.zero_ms is not None and not line.endswith(b"\n"):
                break  # its last line is still being written
            elif header.zero_ms is not None and line.startswith(b'{"trace"'):
                header = _line(Header, line, where)
                cluster.shown(header)
            elif line.startswith(b'{"node"'):
                cluster.changed(_line(NodeChangeLine, line, where), where, recording=header.zero_ms is not None)
            elif line.startswith(b'{"note"'):
                notes.append(_line(NoteLine, line, where))
            else:
                job = _line(JobLine, line, where)
                _check(job, seen, where)
                seen.add(job.job)
                jobs.append((job, where))
                cluster.ended_s = max(cluster.ended_s, job.finished_s or 0.0)
    if header is None or cluster is None:
        raise InputError("the trace is empty", where=str(path), hint="record one: yarnfair record --rm URL -o FILE")
    if header.zero_ms is not None:
        jobs += [(job, str(running_beside(path))) for job in _running(path) if job.job not in seen]
    if not jobs:
        raise NoJob("the trace has no job", where=str(path), hint="record while something runs")
    leaves = set(header.leaves())
    for job, where in jobs:
        if job.queue not in leaves:
            raise InputError(
                f"its queue {job.queue!r} is not a leaf of the first line", where=where, hint="add it there"
            )
    listed = [job for job, _ in jobs]
    if header.zero_ms is not None:
        listed.sort(key=lambda job: (job.submit_s, job.job))
    return Trace(path, cluster.over_time(header), tuple(listed), tuple(notes))


class _Cluster:
    """The nodes of a trace while it is read.

    ``ended_s``: when the last application of the lines so far ended.
    """

    def __init__(self, header: Header) -> None:
        self._first, self._changes = header.nodes, list(header.changes or ())
        self._nodes = Nodes(header.nodes)
        for line in self._changes:
            self._nodes.change(line)
        self._estimated = 0
        self.ended_s = 0.0

    def changed(self, line: NodeChangeLine, where: str, *, recording: bool) -> None:
        if recording:
            # The recorder's clock may have been set back.
            line = line.model_copy(update={"at_s": max(line.at_s, self._nodes.at_s)})
        try:
            self._nodes.change(line)
        except ValueError as error:
            raise InputError(str(error), where=where, hint="see docs/reference/trace.md") from None
        self._changes.append(line)

    def shown(self, header: Header) -> None:
        """Process a later header, written by a recorder that does not or could not record changes of nodes."""
        found = self._nodes.become(shown_by(header.nodes), self.ended_s)
        self._changes += found
        self._estimated += bool(found)

    def over_time(self, header: Header) -> Header:
        """Return the latest header, with the initial nodes and all changes."""
        if not self._changes:
            return header
        assumed = list(header.assumed)
        if self._estimated:
            assumed.append(
                f"when {self._estimated} change{'s' if self._estimated > 1 else ''} of the nodes happened, which the "
                "recording does not say: when the last application recorded before ended, and gracefully"
            )
        return header.model_copy(update={"nodes": self._first, "changes": self._changes, "assumed": assumed})


def _running(path: Path) -> list[JobLine]:
    """Return the applications of a continuing recording that have not ended, as they were last seen."""
    beside = running_beside(path)
    if not beside.exists():
        return []
    listed = read_json(beside, "remove it: what has not ended is then left out").get("jobs")
    if not isinstance(listed, list):
        return []
    return [_line(JobLine, json.dumps(one).encode(), f"{beside}, jobs[{at}]") for at, one in enumerate(listed)]


def _line(model: type[M], line: bytes, where: str) -> M:
    try:
        document = json.loads(line, parse_constant=no_constant)
    except (ValueError, RecursionError) as error:
        hint = "see docs/reference/trace.md; is it a trace of `yarnfair record`?"
        raise InputError(f"not a line of JSON ({str(error)[:80]})", where=where, hint=hint) from None
    return validated(model, YamlDocument(where, document, {}))


def _check(job: JobLine, seen: set[str], where: str) -> None:
    if job.job in seen:
        raise InputError(f"job {job.job!r} appears twice", where=where, hint="rename one")
    if job.after_job is not None and job.after_job not in seen:
        raise InputError(
            f"it follows job {job.after_job!r}, which no earlier line has", where=where, hint="sort the lines"
        )
