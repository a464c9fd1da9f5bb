"""Reads the jobs of a simulated run as virtual time proceeds, validates them and converts them to records.

harness.sim.apps runs them; harness.sim.table keeps their results.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Any

import numpy as np

from harness.base.errors import InputError
from harness.model.jobs import Duration, DynamicAllocation, JobSpec, NodeSpec, Stage, decided_by_hadoop
from harness.model.resources import Resource
from harness.sim import world as w
from harness.sim.durations import ATTEMPTS, EMPIRICAL, EXPONENTIAL, KINDS, LISTED, LOGNORMAL, UNIFORM, job_key
from harness.sim.dynamic import CACHED, SHUFFLED
from harness.sim.events import E_ARRIVE, push
from harness.sim.world import (
    JOB_KINDS,
    MAX_STAGES,
    MOST_CHAINED,
    NEVER,
    DynamicRecord,
    JobRecord,
    StageRecord,
    World,
    with_jobs,
)

#: Largest submission time and service lifetime, seconds.
LONGEST_S = 1e9
#: Largest numbers of tasks in a stage, and of containers that a job may ask for at once.
MOST_TASKS = 1 << 30

_JOB = {name: index for index, name in enumerate(JobRecord.dtype.names or ())}
_DYN = {name: index for index, name in enumerate(DynamicRecord.dtype.names or ())}
_STAGE = {name: index for index, name in enumerate(StageRecord.dtype.names or ())}


def whole_ms(seconds: float) -> int:
    """Return seconds as integer milliseconds, rounded half up."""
    return math.floor(seconds * 1000.0 + 0.5)


class Feed:
    """Reads jobs in order of submission and puts them into the world.

    Parameters
    ----------
    jobs
        A sequence (in any order), or an iterator (ordered by ``submit_s``).
    seed
        The random seed of the run.
    queue_of
        Returns the scheduler's slot of a leaf, given its full path; None if there is none.
    user_of
        Returns the scheduler's slot of a user, given the slot of a leaf and the user's name.
    nodes
        The nodes; each container must fit on one of them.
    row_of
        Called with each job that is read; returns the job's row in the result.
    weight_of
        Returns a job's weight among the applications of its leaf.
    largest_of
        Returns the resources (MB, vcores) above which Hadoop refuses the asks of a leaf, given its full path; None if
        the leaf has no such limit.
    """

    def __init__(
        self,
        jobs: Iterable[JobSpec],
        *,
        seed: int,
        queue_of: Callable[[str], int | None],
        user_of: Callable[[int, str], int],
        nodes: Sequence[NodeSpec],
        row_of: Callable[[JobSpec], int],
        weight_of: Callable[[JobSpec], float] = lambda _: 1.0,
        largest_of: Callable[[str], tuple[int, int] | None] = lambda _: None,
    ) -> None:
        self._ordered = isinstance(jobs, Sequence)
        self._jobs: Iterator[JobSpec] = iter(_in_order(jobs)) if isinstance(jobs, Sequence) else iter(jobs)
        self._seed, self.queue_of, self._user_of, self._row_of = seed, queue_of, user_of, row_of
        self._weight_of, self._largest_of = weight_of, largest_of
        self._nodes = nodes
        later = {change.size for node in nodes for change in node.changes if change.size is not None}
        self._sizes = sorted({*later, *((n.memory_mb, n.vcores) for n in nodes)}, reverse=True)
        self._fits: set[tuple[str, int, int]] = set()
        self._pool_end = 0
        self._pool: dict[int, tuple[tuple[float, ...], int]] = {}
        self._last_s = 0.0
        #: id -> slot of jobs that have not ended; and id -> end time of ended ones.
        self._slot: dict[str, int] = {}
        self._id_of_row: dict[int, str] = {}
        self._ended_ms: dict[str, int] = {}
        self.seen = 0
        self.exhausted = False

    def read(self, world: World, *, least: int = 64) -> World:
        """Read jobs into the world and return the new world.

        At least `least` jobs are read, and further ones until a job is submitted later than the last one of the
        previous call. Fewer are read if the input ends.
        """
        g = world.g
        count = 0
        start_ms = int(g["feed_ms"][0])
        while True:
            job = next(self._jobs, None)
            if job is None:
                self.exhausted = True
                g["feed_ms"] = NEVER
                return world
            world, at_ms = self._load(world, job)
            count += 1
            if at_ms is not None:
                g["feed_ms"] = at_ms
                if at_ms > start_ms and count >= least:
                    return world

    def put(self, world: World, job: JobSpec) -> tuple[World, int]:
        """Add a job that is not in the input, to be submitted now or later. Return the world and the job's slot."""
        last_s, self._last_s = self._last_s, 0.0
        try:
            world, _ = self._load(world, job)
        finally:
            self._last_s = last_s
        return world, self._slot[job.id]

    def ended(self, row: int, at_ms: int) -> None:
        """Note that a job has ended, for jobs that name it in ``after_job``."""
        name = self._id_of_row.pop(row, None)
        if name is not None:
            self._slot.pop(name, None)
            self._ended_ms[name] = at_ms

    def _load(self, world: World, job: JobSpec) -> tuple[World, int | None]:
        where = f"job {job.id!r}"
        stages = self._check(job, where)
        if job.id in self._slot or job.id in self._ended_ms:
            raise InputError("an earlier job in the input has this id", where=where, hint="rename one")
        world = with_jobs(world, stages=len(stages))
        g = world.g
        slot = int(g["job_free"][0])
        g["job_free"] = world.jobs["next"][slot]
        row = self._row_of(job)
        self._slot[job.id] = slot
        self._id_of_row[row] = job.id
        gen = int(world.jobs["gen"][slot])
        queue = self.queue_of(job.queue)
        if queue is None:
            raise InputError(
                f"its queue {job.queue!r} is not a leaf queue", where=where, hint="name a leaf of the allocation file"
            )
        endless = job.kind == "service" and job.lifetime_s is None
        maps_at, reduces_at = decided_by_hadoop(job, stages, int(g["map_limit"][0]), int(g["reduce_limit"][0]))
        record: list[Any] = [0] * len(_JOB)
        for name, value in (
            ("key", job_key(self._seed, job.id)),
            ("row", row),
            ("app", -1),
            ("gen", gen),
            ("submit_ms", NEVER),
            ("am_ms", NEVER),
            ("first_am_ms", NEVER),
            ("am_start_ms", -1 if job.am_start_s is None else whole_ms(job.am_start_s)),
            ("ex_start_ms", -1 if job.executor_start_s is None else whole_ms(job.executor_start_s)),
            ("am_end_ms", whole_ms(job.am_end_s)),
            ("lifetime_ms", NEVER if job.lifetime_s is None else whole_ms(job.lifetime_s)),
            ("think_ms", whole_ms(job.think_s)),
            ("ex_mb", job.executor_demand.memory_mb),
            ("ex_vc", job.executor_demand.vcores),
            ("am_mb", job.am.memory_mb),
            ("am_vc", job.am.vcores),
            ("followers", -1),
            ("next", -1),
            ("queue", queue),
            ("user", self._user_of(queue, job.user)),
            ("kind", JOB_KINDS.index(job.kind)),
            ("state", w.J_WAITING),
            ("ex_owed", 0 if job.dynamic else job.executors),
            ("executors", job.executors),
            ("ex_slots", job.executor_slots),
            ("ex_least", min(job.executors_least, job.dynamic.initial if job.dynamic else job.executors)),
            ("ex_wait_ms", whole_ms(job.executors_wait_s)),
            ("ex_head", -1),
            ("stages", len(stages)),
            ("am_first", 1),
            ("omega", self._weight_of(job)),
            ("endless", int(endless)),
            ("maps_at", maps_at),
            ("reduces_at", reduces_at),
            ("delays", int(any(stage.delay_s > 0 for stage in stages))),
            ("chained", int(len(stages) > MAX_STAGES)),
            ("dynamic", int(job.dynamic is not None)),
        ):
            record[_JOB[name]] = value
        world.jobs[slot] = tuple(record)
        world = self._load_stages(world, slot, stages, job.dynamic is not None and job.dynamic.tracks_shuffles)
        if job.dynamic is not None:
            self._load_dynamic(world, slot, job.dynamic)
            executors = min(job.executors, self._fitting(job.executor_demand))
            g["burst"] = max(int(g["burst"][0]), executors * job.executor_slots + len(stages))
        elif job.kind == "spark":
            g["burst"] = max(int(g["burst"][0]), job.executors * job.executor_slots)
            if any(stage.delay_s > 0 for stage in stages):
                g["burst"] = max(int(g["burst"][0]), job.executors * job.executor_slots + len(stages))
        g["live_jobs"] += not endless
        g["waiting_jobs"] += 1
        self.seen += 1
        if job.after_job is None:
            at_ms = whole_ms(job.submit_s)
            if at_ms < int(g["now"][0]) or (not self._ordered and job.submit_s < self._last_s):
                raise InputError(
                    f"submitted at {job.submit_s:g} s, before its predecessor in the input",
                    where=where,
                    hint="sort the input by submission",
                )
            self._last_s = job.submit_s
            world = w.with_events(world, 1024)
            push(world, at_ms, E_ARRIVE, gen, slot)
            return world, at_ms
        if job.after_job in self._slot:
            first = self._slot[job.after_job]
            world.jobs["next"][slot] = world.jobs["followers"][first]
            world.jobs["followers"][first] = slot
        elif job.after_job in self._ended_ms:
            world = w.with_events(world, 1024)
            due = self._ended_ms[job.after_job] + whole_ms(job.think_s)
            push(world, max(due, int(g["now"][0])), E_ARRIVE, gen, slot)
        else:
            raise InputError(
                f"it follows job {job.after_job!r}, which is not in the input before it",
                where=where,
                hint="name a job that comes earlier",
            )
        return world, None

    def _load_dynamic(self, world: World, slot: int, dynamic: DynamicAllocation) -> None:
        """Store the settings of dynamic allocation, and its state before the application exists."""

        def ms(seconds: float | None) -> int:
            return NEVER if seconds is None or seconds >= LONGEST_S else whole_ms(seconds)

        record: list[Any] = [0] * len(_DYN)
        for name, value in (
            ("target", dynamic.initial),
            ("initial", dynamic.initial),
            ("least", dynamic.least),
            ("most", dynamic.most),
            ("to_add", 1),
            ("beginning", 1),
            ("add_ms", NEVER),
            ("next_ms", NEVER),
            ("ratio", dynamic.ratio),
            ("backlog_ms", ms(dynamic.backlog_s)),
            ("sustained_ms", ms(dynamic.sustained_s)),
            ("idle_ms", ms(dynamic.idle_s)),
            ("cached_ms", ms(dynamic.cached_s)),
            ("shuffle_ms", ms(dynamic.shuffle_s)),
        ):
            record[_DYN[name]] = value
        world.dyn[slot] = tuple(record)

    def _fitting(self, demand: Resource) -> int:
        """Return how many containers of a size fit on all nodes, limited by memory or vcores, whichever is scarcer."""
        return sum(
            min(
                node.memory_mb // demand.memory_mb if demand.memory_mb else MOST_TASKS,
                node.vcores // demand.vcores if demand.vcores else MOST_TASKS,
            )
            for node in self._nodes
        )

    def _load_stages(self, world: World, slot: int, stages: list[Stage], tracks: bool) -> World:
        rank = {stage.name: index for index, stage in enumerate(stages)}
        after = [sum(1 << rank[name] for name in set(stage.after)) for stage in stages]
        if len(stages) > MAX_STAGES:
            after = [0] * len(stages)  # a chain
        for index, stage in enumerate(stages):
            kind, a, b, values = _distribution(stage.duration)
            first = 0
            if values:
                world, first = self._values(world, values)
            record: list[Any] = [0] * len(_STAGE)
            for name, value in (
                ("after", after[index]),
                ("feeds", sum(1 << other for other in range(len(stages)) if after[other] >> index & 1)),
                ("mb", stage.demand.memory_mb),
                ("vc", stage.demand.vcores),
                ("a", a),
                ("b", b),
                ("slow_start", stage.slow_start),
                ("tail", stage.tail),
                ("bucket_ms", -1),
                ("first_value", first),
                ("redo_head", -1),
                ("redo_tail", -1),
                ("priority", stage.priority),
                ("kind", kind),
                ("values", len(values)),
                ("tasks", stage.tasks),
                ("run_head", -1),
                ("since_ms", NEVER),
                ("delay_ms", whole_ms(stage.delay_s)),
                ("leaves", (SHUFFLED if stage.shuffles and tracks else 0) | (CACHED if stage.caches else 0)),
            ):
                record[_STAGE[name]] = value
            world.stages[slot, index] = tuple(record)
        return world

    def _values(self, world: World, values: tuple[float, ...]) -> tuple[World, int]:
        """Store durations in the pool, each tuple once. Return the world and their offset.

        Durations of jobs that have ended are dropped when the pool is full.
        """
        found = self._pool.get(id(values))
        if found is not None:
            return world, found[1]
        n = len(values)
        if self._pool_end + n > len(world.values):
            live = world.stages[world.jobs["state"] != w.J_FREE]
            live = live[(live["values"] > 0) & (live["tasks"] > 0)]
            spans = {int(s["first_value"]): int(s["values"]) for s in live}
            size = len(world.values)
            while sum(spans.values()) + n > size // 2:
                size *= 2
            pool, moved, end = np.zeros(size), {}, 0
            for first, length in sorted(spans.items()):
                pool[end : end + length] = world.values[first : first + length]
                moved[first] = end
                end += length
            table = world.stages
            for j in np.flatnonzero(world.jobs["state"] != w.J_FREE):
                for s in range(int(world.jobs["stages"][j])):
                    if table["values"][j, s] > 0:
                        table["first_value"][j, s] = moved[int(table["first_value"][j, s])]
            self._pool.clear()
            self._pool_end = end
            world = world._replace(values=pool)
        first = self._pool_end
        world.values[first : first + n] = values
        self._pool_end += n
        self._pool[id(values)] = (values, first)
        return world, first

    def _check(self, job: JobSpec, where: str) -> list[Stage]:
        """Return a job's stages in the order of their priorities. Raises InputError for what cannot be simulated."""

        def refuse(what: str, hint: str) -> InputError:
            return InputError(what, where=where, hint=hint)

        if job.kind not in JOB_KINDS:
            raise refuse(f"its kind is {job.kind!r}", f"one of {', '.join(JOB_KINDS)}")
        for label, value in (
            ("submit_s", job.submit_s),
            ("think_s", job.think_s),
            ("lifetime_s", job.lifetime_s or 0),
            ("am_start_s", job.am_start_s or 0),
            ("am_end_s", job.am_end_s),
            ("executor_start_s", job.executor_start_s or 0),
            ("executors_wait_s", job.executors_wait_s),
        ):
            if not (0 <= value <= LONGEST_S):
                raise refuse(f"{label} is {value!r}", f"give seconds from 0 to {LONGEST_S:g}")
        most = MOST_CHAINED if job.kind == "spark" and _chained(job.stages) else MAX_STAGES
        if len(job.stages) > most:
            raise refuse(f"it has {len(job.stages)} stages", f"at most {most}")
        names = [stage.name for stage in job.stages]
        if len(set(names)) != len(names):
            raise refuse("two of its stages have the same name", "rename one")
        for stage in job.stages:
            self._check_stage(job, stage, names, refuse)
        if _cyclic(job.stages):
            raise refuse("its stages wait for each other in a circle", "mend `after`")
        if job.kind == "spark":
            if not (1 <= job.executors <= MOST_TASKS and 1 <= job.executor_slots <= 4096):
                raise refuse(
                    f"{job.executors} executors of {job.executor_slots} slots", "give at least one of each, 4096 slots"
                )
            self._check_size(job, job.executor_demand, "an executor", refuse)
        if job.dynamic is not None:
            self._check_dynamic(job, job.dynamic, refuse)
        if job.am.memory_mb or job.am.vcores:
            self._check_size(job, job.am, "its AM", refuse)
        return sorted(job.stages, key=lambda stage: stage.priority)

    def _check_dynamic(
        self, job: JobSpec, dynamic: DynamicAllocation, refuse: Callable[[str, str], InputError]
    ) -> None:
        if job.kind != "spark":
            raise refuse(f"it is {job.kind} and has dynamic allocation", "give that to Spark's applications")
        if not 0 <= dynamic.least <= dynamic.initial <= dynamic.most or dynamic.most < 1:
            bounds = f"{dynamic.least}, {dynamic.initial} and {dynamic.most} executors at least, at first and at most"
            raise refuse(bounds, "give them in this order, and at most 1 or more")
        if not 0 < dynamic.ratio <= 1:
            raise refuse(f"its ratio of executors is {dynamic.ratio!r}", "give a part above 0 up to 1")
        timeouts = (dynamic.backlog_s, dynamic.sustained_s, dynamic.idle_s, dynamic.cached_s, dynamic.shuffle_s)
        if not all(0 < one <= LONGEST_S for one in timeouts if one is not None):
            raise refuse("a timeout of its dynamic allocation is no time", f"give seconds up to {LONGEST_S:g}")

    def _check_stage(
        self, job: JobSpec, stage: Stage, names: list[str], refuse: Callable[[str, str], InputError]
    ) -> None:
        label = f"stage {stage.name!r}"
        if not 0 <= stage.delay_s <= LONGEST_S or (stage.delay_s and job.kind != "spark"):
            raise refuse(f"delay_s of {label} is {stage.delay_s!r}", f"give Spark's stages seconds up to {LONGEST_S:g}")
        if not (0 <= stage.tasks <= MOST_TASKS):
            raise refuse(f"{label} has {stage.tasks} tasks", f"give 0 to {MOST_TASKS}")
        if not (0.0 <= stage.slow_start <= 1.0):
            raise refuse(f"slow_start of {label} is {stage.slow_start!r}", "give a fraction from 0 to 1")
        if not (0.0 <= stage.tail <= 1.0) or (stage.tail and job.kind not in ("mapreduce", "dag")):
            raise refuse(f"tail of {label} is {stage.tail!r}", "give MapReduce and DAGs a fraction from 0 to 1")
        for other in stage.after:
            if other not in names:
                raise refuse(f"{label} comes after {other!r}, which is not a stage of the job", "mend `after`")
        duration = stage.duration
        if duration.kind not in KINDS:
            raise refuse(f"durations of {label} are of the kind {duration.kind!r}", f"one of {', '.join(KINDS)}")
        numbers = (duration.value_s, duration.mu, duration.sigma, duration.low_s, duration.high_s)
        if not all(math.isfinite(value) for value in numbers) or duration.sigma < 0:
            raise refuse(f"durations of {label} are not finite numbers", "mend the distribution")
        if duration.value_s < 0 or not 0 <= duration.low_s <= duration.high_s:
            raise refuse(f"durations of {label} are negative", "mend the distribution")
        if duration.kind in ("empirical", "listed"):
            if id(duration.values_s) not in self._pool and not all(0 <= v <= LONGEST_S for v in duration.values_s):
                raise refuse(f"durations of {label} are not all within 0 and {LONGEST_S:g} s", "mend values_s")
            if duration.attempts:
                self._check_attempts(stage, label, refuse)
            short = len(duration.values_s) < (stage.tasks if duration.kind == "listed" else 1)
            if short and stage.tasks:
                raise refuse(f"{label} has {len(duration.values_s)} durations for {stage.tasks} tasks", "mend values_s")
        if job.kind != "spark" and stage.tasks:
            self._check_size(job, stage.demand, f"a task of {label}", refuse)

    def _check_attempts(self, stage: Stage, label: str, refuse: Callable[[str, str], InputError]) -> None:
        duration = stage.duration
        if duration.kind != "listed":
            raise refuse(f"durations of {label} are {duration.kind} and have attempts", "give attempts where listed")
        if len(duration.attempts) != stage.tasks or min(duration.attempts) < 1:
            count = len(duration.attempts)
            raise refuse(f"{label} has attempts of {count} tasks for {stage.tasks}", "give each task at least one")
        if sum(duration.attempts) != len(duration.values_s):
            raise refuse(
                f"{label} has {len(duration.values_s)} durations for {sum(duration.attempts)} attempts", "mend values_s"
            )

    def _check_size(self, job: JobSpec, size: Resource, label: str, refuse: Callable[[str, str], InputError]) -> None:
        mb, vcores = size.memory_mb, size.vcores
        if (job.queue, mb, vcores) in self._fits:
            return
        asks = f"{label} asks for {mb} MiB and {vcores} vcores"
        if mb < 0 or vcores < 0 or mb + vcores == 0:
            raise refuse(asks, "ask for something")
        if not any(mb <= node_mb and vcores <= node_vc for node_mb, node_vc in self._sizes):
            largest = max(self._nodes, key=lambda node: (node.memory_mb, node.vcores), default=None)
            has = f"{largest.name} has {largest.memory_mb} MiB and {largest.vcores} vcores" if largest else "no node"
            raise refuse(f"{asks}, which no node has", f"the largest, {has}")
        most = self._largest_of(job.queue)
        if most is not None and (mb > most[0] or vcores > most[1]):
            raise refuse(
                f"{asks}; the largest container of {job.queue} has {most[0]} MiB and {most[1]} vcores",
                f"ask for less, or raise {job.queue}.maximum-allocation-mb or -vcores",
            )
        self._fits.add((job.queue, mb, vcores))


def _distribution(duration: Duration) -> tuple[int, float, float, tuple[float, ...]]:
    kind = KINDS.index(duration.kind)
    if kind == LOGNORMAL:
        return kind, duration.mu, duration.sigma, ()
    if kind == UNIFORM:
        return kind, duration.low_s, duration.high_s, ()
    if kind == LISTED and duration.attempts:
        begins = accumulate(duration.attempts, initial=len(duration.attempts) + 1)
        return ATTEMPTS, 0.0, 0.0, (*map(float, begins), *duration.values_s)
    if kind in (EMPIRICAL, LISTED):
        return kind, 0.0, 0.0, duration.values_s
    assert kind == EXPONENTIAL or duration.kind == "constant"
    return kind, duration.value_s, 0.0, ()


def _chained(stages: tuple[Stage, ...]) -> bool:
    """Return whether each stage depends on exactly the one before it, and all have the same priority."""
    befores = [(), *((stage.name,) for stage in stages[:-1])]
    return [stage.after for stage in stages] == befores and len({stage.priority for stage in stages}) == 1


def _cyclic(stages: tuple[Stage, ...]) -> bool:
    left = {stage.name: set(stage.after) for stage in stages}
    while left:
        free = [name for name, after in left.items() if not after & left.keys()]
        if not free:
            return True
        for name in free:
            del left[name]
    return False


def _in_order(jobs: Sequence[JobSpec]) -> list[JobSpec]:
    """Sort jobs by submission; a job that follows another comes right after it."""
    known = {job.id for job in jobs}
    following: dict[str, list[JobSpec]] = {}
    first: list[JobSpec] = []
    for job in jobs:
        if job.after_job is None:
            first.append(job)
        elif job.after_job not in known:
            raise InputError(
                f"it follows job {job.after_job!r}, which is not in the input",
                where=f"job {job.id!r}",
                hint="name a job of the input",
            )
        else:
            following.setdefault(job.after_job, []).append(job)
    first.sort(key=lambda job: job.submit_s if job.submit_s == job.submit_s else math.inf)
    ordered: list[JobSpec] = []
    for job in first:
        todo = [job]
        while todo:
            one = todo.pop()
            ordered.append(one)
            todo.extend(reversed(following.pop(one.id, [])))
    if following:
        circle = next(iter(following.values()))[0]
        raise InputError(
            "it waits for itself, through other jobs",
            where=f"job {circle.id!r}",
            hint="break the circle of `after_job`",
        )
    return ordered
