"""Programs that compute in an experiment on a real cluster: data, memory, submission, times, answers, trace.

The programs of one run are a `ProgramLoad`; all other jobs of the run are replayed (harness.experiments.real.run).
"""

from __future__ import annotations

import platform
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from harness.base.errors import InputError, YarnfairError
from harness.clusters import processes
from harness.clusters.jars import cache_folder
from harness.experiments.loads import program_loads
from harness.experiments.real.cluster import RealCluster
from harness.experiments.real.curves import JobRun
from harness.experiments.resolve import LoadedExperiment, jobs_of, with_queue
from harness.jobs.data.generate import FolderTarget, check_whole, generate, is_whole, read_manifest, read_size
from harness.jobs.data.targets import Target, target_of
from harness.jobs.engines import ENGINES, engine
from harness.jobs.engines.attempts import Verdict
from harness.jobs.engines.base import EnginePrograms, ProgramJob, Request, Site
from harness.jobs.replay import JobRecord, stages_in_order
from harness.jobs.workloads.programs import programs_of
from harness.traces.recorded import JobLine
from harness.traces.spec import DataSpec, DelaysSpec
from harness.yarn.answers import AppStatus
from harness.yarn.rest import RestClient

#: Memory of the ResourceManager and of each NodeManager, and memory to be left for everything else, MB.
_RM_MB, _NODE_MB, _LEFT_MB = 350, 300, 500
_LOOPBACK = ("127.0.0.1", "localhost", "::1")


#: Why programs do not run on a cluster with Kerberos.
NO_TOKENS = "need delegation tokens where there is Kerberos, and yarnfair fetches none"


def program_jobs(experiment: LoadedExperiment, seed: int) -> list[ProgramJob]:
    """Return the jobs of all queues with programs that compute, under the IDs of `jobs_of`. Raises InputError."""
    known = {job.id for job in jobs_of(experiment, seed)[0]}
    found: list[ProgramJob] = []
    for load, _ in program_loads(experiment.loads):
        for job in programs_of(load.workload, queue=load.queue, seed=seed, start_s=load.start_s, scale=load.scale):
            if job.spec.id not in known:
                job = replace(job, spec=with_queue(job.spec), first=f"{load.queue}/{job.first}")
            found.append(job)
    return found


# --- before the cluster starts ----------------------------------------------------------------------------------------


def check_memory(experiment: LoadedExperiment) -> None:
    """Raise InputError if this machine lacks memory for the nodes' daemons, and for containers that programs fill.

    If the system does not report its free memory, nothing is checked.
    """
    free = processes.free_mb()
    if free is None:
        return
    nodes = experiment.spec.cluster.nodes
    count = sum(group.count for group in nodes)
    # Replayed tasks only sleep.
    programs = program_loads(experiment.loads)
    containers = sum(group.count * group.memory_mb for group in nodes) if programs else 0
    others = sum(engine(name).beside_mb for name in {name for _, spec in programs for name in spec.engines()})
    needed = containers + others + _RM_MB + _NODE_MB * count + _LEFT_MB
    if needed > free:
        if containers:
            what = f"containers of {containers} MB, which programs fill, and the daemons"
            hint = "give the nodes less memory, or wait"
        else:
            what, hint = f"the daemons of {count} nodes", "use --backend sim or fewer nodes, or wait"
        raise InputError(
            f"memory is short: {what} take {needed} MB, this machine has {free} MB left",
            where=experiment.document.where(("cluster", "nodes")),
            hint=hint,
        )


def node_limit_mb(experiment: LoadedExperiment) -> int | None:
    """Return the limit of a node's daemon and containers together, MiB: its whole size if programs compute there."""
    if not program_loads(experiment.loads):
        return None
    return max(group.memory_mb for group in experiment.spec.cluster.nodes) + _NODE_MB


def make_data(experiment: LoadedExperiment, progress: Callable[[str], None]) -> dict[DataSpec, Path]:
    """Create an experiment's missing data sets in the user's cache. Raises InputError, CallError."""
    found: dict[DataSpec, Path] = {}
    for _, spec in program_loads(experiment.loads):
        for data in spec.data.values():
            if data in found:
                continue
            size = read_size(data.size)
            folder = cache_folder() / "data" / f"{data.kind}-{size}-{data.seed}"
            manifest = read_manifest(FolderTarget(folder))
            if manifest is None or not is_whole(FolderTarget(folder), manifest):

                def part(done: int, count: int, _: int, data: DataSpec = data) -> None:
                    if count > 1:
                        progress(f"data: {data.size} of {data.kind}: {done} of {count} parts")

                progress(f"data: {data.size} of {data.kind} into {folder} (once)")
                check_whole(FolderTarget(folder), generate(data.kind, size, data.seed, FolderTarget(folder), part))
            found[data] = folder
    return found


def container_overhead_s(job: JobRun) -> float:
    """Return the mean time for which containers of a MapReduce job were held beyond their tasks' times, seconds.

    It is derived from the memory-seconds that the RM counted; 0 if they are not known.
    """
    status, tasks = job.status, [task for task in job.record.tasks if task.ended_ms > task.started_ms]
    if status is None or not status.final or not tasks or not status.launched_ms:
        return 0.0
    sizes_mb = [stage.demand.memory_mb for stage in stages_in_order(job.spec)]
    master_mb_s = job.spec.am.memory_mb * (status.finished_ms - status.launched_ms) / 1000.0
    worked_mb_s = sum(sizes_mb[task.stage] * (task.ended_ms - task.started_ms) for task in tasks) / 1000.0
    return max(status.memory_seconds - master_mb_s - worked_mb_s, 0.0) / sum(sizes_mb[task.stage] for task in tasks)


def executor_start_s(job: JobRun) -> float | None:
    """Return the mean time from the grant of a Spark job's executors until they registered, seconds.

    It is derived from the memory-seconds that the RM counted. None unless the application succeeded, because otherwise
    they may include containers that never registered. A successful application has few of these, granted just before
    its end.
    """
    status, record = job.status, job.record
    count = len(record.executors_ms)
    if status is None or status.final_status != "SUCCEEDED" or not status.launched_ms or not count:
        return None
    lived_s = (status.finished_ms - status.launched_ms) / 1000.0
    held_s = (status.memory_seconds - job.spec.am.memory_mb * lived_s) / (job.spec.executor_demand.memory_mb * count)
    worked_s = status.finished_ms / 1000.0 - sum(record.executors_ms) / count / 1000.0
    return max(held_s - worked_s, 0.0)


def _with_overheads(line: JobLine, job: JobRun, delays: DelaysSpec) -> JobLine:
    """Return a job of a trace with the overheads of its containers and its AM.

    Neither MapReduce's nor Spark's AM shows when a container was granted, or when it had exited. But the
    ResourceManager counts memory-seconds: those that exceed the AM's and the tasks' own are spread evenly over the
    job's containers. The average delay of heartbeats is excluded, because the simulator has heartbeats as well.
    """
    node_s, am_s = (delays.node_heartbeat_ms or 1000) / 2000.0, (delays.am_heartbeat_ms or 1000) / 2000.0
    if delays.end_heartbeat_ms is not None:
        node_s = 0.0  # a node reports an end by an extra heartbeat
    if line.kind == "spark":
        start_s = executor_start_s(job)
        if start_s is None or line.executors is None:
            return line
        executors = line.executors.model_copy(update={"start_s": round(max(start_s - am_s, 0.0), 3)})
        return line.model_copy(update={"executors": executors})
    more_s = round(max(container_overhead_s(job) - node_s - am_s, 0.0), 3)
    changed: dict[str, Any] = {
        "stages": [
            stage.model_copy(update={"starts_s": [more_s] * len(stage.tasks_s)}) if more_s else stage
            for stage in line.stages
        ]
    }
    if line.am_start_s is not None:
        # The history shows when the first task was scheduled; its container is requested at the next heartbeat.
        changed["am_start_s"] = round(line.am_start_s + am_s, 3)
    last_ms = max((task.ended_ms for task in job.record.tasks), default=0)
    if last_ms and job.status is not None and job.status.finished_ms:
        changed["am_end_s"] = round(max((job.status.finished_ms - last_ms) / 1000.0 - node_s - am_s, 0.0), 3)
    return line.model_copy(update=changed)


# --- during a run -----------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Programs:
    """The data and settings that an experiment's programs need on one cluster, in all runs there."""

    experiment: LoadedExperiment
    cluster: RealCluster
    data: Mapping[DataSpec, Path | Target]
    progress: Callable[[str], None]
    #: For programs that run by themselves: the folder that each writes to, and properties of their engine.
    requests: Sequence[Request] = ()

    def load(self, rest: RestClient, seed: int, tag: str) -> ProgramLoad | None:
        """Return the programs of one run, ready to be submitted; None if it has none."""
        jobs = program_jobs(self.experiment, seed)
        if not jobs:
            return None
        cluster, asked = self.cluster, urlsplit(rest.http.current).hostname
        site = Site(
            rest,
            cluster.shared,
            cluster.python,
            self.data,
            tag,
            self.experiment.spec.delays.am_heartbeat_ms or 1000,
            elsewhere=bool(cluster.document.get("given")) and asked not in _LOOPBACK,
            output=self.requests[0].output if self.requests else None,
            properties=self.requests[0].properties if self.requests else {},
            progress=self.progress,
        )
        found = ProgramLoad(jobs, {request.program.lower(): request.output for request in self.requests})
        try:
            for name in ENGINES:
                if own := [job for job in jobs if job.engine == name]:
                    found.engines[name] = engine(name).load(site, own)
                    found.engines[name].prepare()
        except BaseException:
            found.close()
            raise
        return found


@dataclass(slots=True)
class ProgramLoad:
    """The programs of one run."""

    jobs: Sequence[ProgramJob]
    #: Output folders of programs that run by themselves, by name.
    outputs: Mapping[str, Path | Target] = field(default_factory=dict)
    #: By the engine's name, in the order of `ENGINES`.
    engines: dict[str, EnginePrograms] = field(default_factory=dict)
    by_id: Mapping[str, ProgramJob] = field(default_factory=dict)
    #: Whether answers are correct, as far as they were checked.
    verdicts: dict[str, Verdict] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.by_id = {job.spec.id: job for job in self.jobs}

    def __contains__(self, job_id: str) -> bool:
        return job_id in self.by_id

    def of(self, job_id: str) -> EnginePrograms:
        """Return the programs object of a job's engine."""
        return self.engines[self.by_id[job_id].engine]

    def kill(self) -> None:
        """Kill unfinished applications without the run's tag."""
        for one in self.engines.values():
            one.kill()

    def record(self, job_id: str, status: AppStatus | None) -> JobRecord:
        """Return the record of a job's tasks, with the reason of the failure if it failed. Raises InputError."""
        own = self.of(job_id)
        found = own.record(job_id, status)
        if status is not None and status.final and status.final_status != "SUCCEEDED":
            found = replace(found, why=own.why(job_id, status))
        return found

    def continues(self, job_id: str) -> bool:
        """Return whether a job is a later step of a program, which is skipped if the step before has failed."""
        return job_id in self.by_id and self.by_id[job_id].step > 1

    def check(self, jobs: Iterable[JobRun], answers: Path, progress: Callable[[str], None]) -> dict[str, str]:
        """Return errors in the answers of successful jobs, by job; empty if all are correct.

        Answers that the workload keeps are stored below ``answers``, one folder per job.
        """
        wrong: dict[str, str] = {}
        ended = [job for job in jobs if job.spec.id in self and job.ended and not job.failed]
        ended = [job for job in ended if self.by_id[job.spec.id].step == self.by_id[job.spec.id].steps]
        checked = sum(self.by_id[job.spec.id].sizing.answers != "leave" for job in ended)
        if checked:
            progress(f"checking {checked} answer{'s' if checked > 1 else ''}")
        for job in ended:
            identity, one = job.spec.id, self.by_id[job.spec.id]
            own, output = self.of(identity), self.outputs.get(one.application)
            try:
                verdict = None if one.sizing.answers == "leave" else own.check(identity, job.status)
                if one.sizing.answers == "keep":
                    output = answers / identity.replace("/", "_")
                    shutil.rmtree(output, ignore_errors=True)
                if output is not None:
                    own.deliver(identity, output)
            except YarnfairError as error:
                wrong[identity] = error.line()
                continue
            if verdict is not None:
                self.verdicts[identity] = verdict
                if verdict.wrong is not None:
                    wrong[identity] = f"the answer is wrong: {verdict.wrong}"
        return wrong

    def lines(self, lines: Sequence[JobLine], jobs: Sequence[JobRun], delays: DelaysSpec) -> list[JobLine]:
        """Return a trace's jobs with the overheads of programs. ``delays``: of the trace."""
        by_id = {job.spec.id: job for job in jobs}
        return [_with_overheads(line, by_id[line.job], delays) if line.job in self else line for line in lines]

    def document(self, hadoop: str, data: Mapping[DataSpec, Path | Target]) -> dict[str, Any]:
        """Return versions and settings of the engines, and the data, for ``run.json``."""
        engines = [found.document() for found in self.engines.values()]
        sets = []
        for place in data.values():
            manifest = read_manifest(target_of(place))
            if manifest is not None:
                document = manifest.document()
                sets.append({key: document[key] for key in ("kind", "seed", "size", "bytes", "sha256")})
        return {"hadoop": hadoop, "python": platform.python_version(), "engines": engines, "data": sets}

    def close(self) -> None:
        """Release the run's resources on this machine and in the cluster's folder."""
        for one in reversed(self.engines.values()):
            one.close()
