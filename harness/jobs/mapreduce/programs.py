"""MapReduce programs on a real ResourceManager.

This module makes their files available to the nodes, submits them, and reads their times. It uses only REST, without
Hadoop's client (harness.jobs.mapreduce.staging builds a job's files). The caller (harness.experiments.real.run) decides
when a job is submitted, and how its times are used.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness.base.errors import CallError, InputError
from harness.clusters import site
from harness.clusters.daemons import HISTORY_FOLDER
from harness.jobs.data.targets import HdfsTarget, Target, target_of
from harness.jobs.engines.attempts import Attempt, Verdict
from harness.jobs.engines.base import UNKNOWN, EnginePrograms, ProgramJob, ProgramRun, Site
from harness.jobs.engines.cluster import container_log, last_lines, told_of
from harness.jobs.mapreduce import staging
from harness.jobs.mapreduce.answers import CHECKS, output_files
from harness.jobs.mapreduce.catalogue import APPLICATIONS, Call, HadoopJob
from harness.jobs.mapreduce.history import read_history, record_of
from harness.jobs.mapreduce.places import LocalStore, StagingPlace, check_path, open_data, part_sizes, uri_of
from harness.jobs.replay import JobRecord, stages_in_order
from harness.model.data import data_path
from harness.model.jobs import Duration, JobSpec, mapreduce_stages
from harness.traces.spec import DataSpec
from harness.yarn.answers import AppStatus

#: Hadoop's defaults of ``yarn.application.classpath`` and ``mapreduce.application.classpath``.
_HADOOPS_OWN = ",".join(
    ["$HADOOP_CONF_DIR"]
    + [
        f"${home}/share/hadoop/{part}/{jars}"
        for home, part in (
            ("HADOOP_COMMON_HOME", "common"),
            ("HADOOP_HDFS_HOME", "hdfs"),
            ("HADOOP_YARN_HOME", "yarn"),
            ("HADOOP_MAPRED_HOME", "mapreduce"),
        )
        for jars in ("*", "lib/*")
    ]
)


def jobs_of(run: ProgramRun) -> list[ProgramJob]:
    """Return a program's jobs, one for each Hadoop job.

    Grep and the join are two, ``x`` and ``x.2`` (`Engine.jobs`).
    """
    program, sizing, identity = run.program, run.sizing, run.identity
    found = APPLICATIONS[program.application.lower()]
    maps, reduces = run.count(program.maps or 0), run.count(program.reduces)
    map_demand = program.map_demand.resource() if program.map_demand else sizing.task
    reduce_demand = program.reduce_demand.resource() if program.reduce_demand else sizing.task
    jobs: list[ProgramJob] = []
    for step in range(1, found.steps + 1):
        if step > 1:
            # The step before wrote a file for each reduce; Grep's sort wrote a single one.
            maps, reduces = max(reduces, 1), 1 if found.name == "grep" else reduces
        stages = mapreduce_stages(maps, reduces, (map_demand, UNKNOWN), (reduce_demand, UNKNOWN), sizing.slow_start)
        before = jobs[-1].spec.id if jobs else None
        own = identity if step == 1 else f"{identity}.{step}"
        spec = JobSpec(own, run.queue, "mapreduce", sizing.am, stages, name=run.name, after_job=before)
        one = ProgramJob("mapreduce", spec, program, run.inputs, sizing, maps, reduces, 0, step, found.steps, identity)
        jobs.append(one)
    return jobs


class MapReducePrograms(EnginePrograms):
    """Submits MapReduce programs to one ResourceManager.

    ``place``: the storage of their files; ``streaming``: this machine's jar of Hadoop Streaming, which is sent with
    each job (``carries_jar``) to nodes that do not see this machine's cache; ``user``: the owner of the applications.
    """

    def __init__(
        self,
        site: Site,
        place: StagingPlace,
        jobs: Sequence[ProgramJob],
        streaming: Path | None = None,
        *,
        user: str = "yarnfair",
        carries_jar: bool = False,
    ) -> None:
        self.site, self.place, self.user = site, place, user
        self._streaming, self._carries_jar = streaming, carries_jar
        self.jobs = {job.spec.id: job for job in jobs}
        #: Job id -> folder of its latest attempt, below the place.
        self._folders: dict[str, str] = {}
        self._tries: dict[str, int] = {}
        #: The number of maps of a job: each file has at least one, even if the workload requests fewer.
        self._maps: dict[str, int] = {}
        self._records: dict[str, JobRecord] = {}
        self._apps: dict[str, str] = {}
        self._classes = ""
        #: The folder where the cluster's JobHistoryServer finds jobs' histories; None: no folder of this machine.
        self._server_folder: Path | None = None
        self._told_server: set[str] = set()
        self._jars: tuple[str, ...] = ()
        #: The data's files on this machine: copies of the files in HDFS.
        self._copies: dict[DataSpec, list[Path]] = {}
        self._closing = contextlib.ExitStack()

    def prepare(self) -> None:
        """Make data and jars available to the nodes, before the run's measurements begin.

        Raises InputError, and the errors of requests to the ResourceManager.
        """
        check_path(self.place.path)
        for job in self.jobs.values():
            for data in job.inputs:
                check_path(self._input(data))
                open_data(self._target(data), data.kind)
        found = self.site.rest.properties(defaults=False)
        name = "mapreduce.application.classpath"
        self._classes = found.get(name) or found.get("yarn.application.classpath") or _HADOOPS_OWN
        kept = found.get(HISTORY_FOLDER, "")
        if kept.startswith("file:") and (folder := Path(kept.removeprefix("file:").replace("///", "/"))).is_dir():
            self._server_folder = folder
        if self._streaming is not None and not self._carries_jar:
            path = self.place.data(self._streaming.parent, "streaming")
            self._jars = (f"{path}/{self._streaming.name}",)

    def _input(self, data: DataSpec) -> str:
        target = self._target(data)
        if isinstance(target, HdfsTarget):
            return uri_of(target)
        return self.place.data(Path(target.name), f"data/{data.kind}-{data.size}-{data.seed}".replace(" ", ""))

    def _target(self, data: DataSpec) -> Target:
        return target_of(self.site.data[data])

    def document(self) -> dict[str, Any]:
        """Return the engine's settings that all jobs share, taken from the first job, for ``run.json``."""
        first = next(iter(self.jobs.values()))
        task = first.sizing.task
        sized = staging.Sized(task, task, first.sizing.am)
        properties = staging.job_xml(HadoopJob({}), sized, self._cluster(self.site.tag), queue="", name="", work="")
        kept = {
            key: value
            for key, value in properties.items()
            if not key.startswith(
                ("mapreduce.job.user", "mapreduce.job.queue", "mapreduce.job.name", "mapreduce.job.work")
            )
            and self.site.tag not in value
        }
        return {"engine": "MapReduce", "python": self.site.python, "properties": kept}

    # --- submitting ---

    def submit(self, job_id: str) -> str:
        """Submit a job (again, if it was submitted before); return the application's id."""
        job = self.jobs[job_id]
        self._tries[job_id] = number = self._tries.get(job_id, 0) + 1
        name = job_id.replace("/", "_") + (f"-{number}" if number > 1 else "")
        folder = self._folders[job_id] = f"{self.site.tag}/{name}"
        identity = self._apps[job_id] = self.site.rest.new_application().id
        cluster = self._cluster(folder)
        staged = f"{cluster.folder(identity).removeprefix(f'{self.place.path}/')}"
        hadoop, beside = self._hadoop(job)
        files = self._files(job, hadoop)
        place = self.place
        cached = place.write({f"{staged}/{name}": content for name, content in beside.items()}, [f"{folder}/history"])
        # On a local file system TeraSort's tasks look for its partition file in the job's folder, otherwise in their
        # own.
        shown = {name: cached[f"{staged}/{name}"] for name in beside}
        demands = {stage.name: stage.demand for stage in job.spec.stages}
        sized = staging.Sized(demands["map"], demands.get("reduce", demands["map"]), job.spec.am)
        properties = staging.job_xml(
            hadoop,
            sized,
            cluster,
            queue=job.spec.queue,
            name=f"{job.spec.id} {job.spec.name}",
            work=f"{place.path}/{staged}",
            slow_start=job.sizing.slow_start,
            cached=shown,
            properties={**_identity_reduce(job), **self.site.properties},
        )
        splits = staging.splits_of(files, job.maps)
        self._maps[job_id] = len(splits)
        split, meta = staging.split_files(splits, new_api=staging.is_new_api(properties))
        content = {"job.split": split, "job.splitmetainfo": meta, "job.xml": site.render(properties).encode()}
        written = place.write({f"{staged}/{name}": body for name, body in content.items()})
        return self.site.rest.submit(
            staging.submission(
                sized,
                cluster,
                written[f"{staged}/job.xml"],
                queue=job.spec.queue,
                name=job.spec.id,
                tags=[self.site.tag],
            ),
            identity,
        )

    def _cluster(self, folder: str) -> staging.Cluster:
        path = f"{self.place.path}/{folder}"
        return staging.Cluster(
            self._classes, self._jars, f"{path}/staging", f"{path}/history", self.user, self.site.am_heartbeat_ms
        )

    def _output(self, job: ProgramJob) -> str:
        """Return the folder of a program's result, which its last job writes, relative to the place."""
        return f"{self._folders[job.first]}/out"

    def _between(self, job: ProgramJob) -> str:
        return f"{self._output(job)}.{'counted' if job.application == 'grep' else 'joined'}"

    def _hadoop(self, job: ProgramJob) -> tuple[HadoopJob, dict[str, bytes]]:
        """Return the Hadoop job, and its additional files by name."""
        application = APPLICATIONS[job.application]
        settings = application.settings_with(job.program.settings)
        output = f"{self.place.path}/{self._output(job)}"
        beside: dict[str, bytes] = {}
        with tempfile.TemporaryDirectory() as work:
            if "classes" in settings:
                write_centres(self._parts(job.inputs[0]), settings["classes"], Path(work) / "centres.txt")
            programs = data_path("workloads").absolute()
            call = Call(output, job.reduces, settings, self.site.python, programs, Path(work))
            hadoop = application.jobs(call)[job.step - 1]
            for file in hadoop.files:
                beside[file.name] = file.read_bytes()
        if self._streaming is not None and self._carries_jar:
            beside[self._streaming.name] = self._streaming.read_bytes()
        if job.application == "terasort":
            beside[staging.PARTITION_FILE] = staging.partition_file(self._sample(job), job.reduces)
        return hadoop, beside

    def _parts(self, data: DataSpec) -> list[Path]:
        """Return a data set's files as this machine reads them."""
        if data not in self._copies:
            target = self._target(data)
            self._copies[data] = [
                self._closing.enter_context(target.local(name)) for name in sorted(part_sizes(target))
            ]
        return self._copies[data]

    def _sample(self, job: ProgramJob) -> list[bytes]:
        """Return some of TeraSort's records from all parts of the input: as many as its own client samples."""
        files = self._parts(job.inputs[0])
        wanted = max(100_000 // max(len(files), 1), 1)
        found = []
        for file in files:
            size = file.stat().st_size // 100
            step = max(size // wanted, 1)
            with file.open("rb") as records:
                for at in range(0, size, step):
                    records.seek(at * 100)
                    found.append(records.read(100))
        return found

    def _files(self, job: ProgramJob, hadoop: HadoopJob) -> list[staging.InputFile]:
        """Return the maps' input files, as the nodes see them."""
        if job.step > 1:
            there = self.place.sizes(self._between(job))
            at = f"{self.place.path}/{self._between(job)}"
            parts = {name: size for name, size in sorted(there.items()) if name.startswith("part-")}
        else:
            found = []
            for data in job.inputs:
                path, sizes = self._input(data), part_sizes(self._target(data))
                found += [staging.InputFile(f"{path}/{name}", size) for name, size in sorted(sizes.items())]
            return found
        if not parts:
            what = f"{job.spec.id}: the step before left nothing"
            raise InputError(what, where=at, hint="give data, or settings, with which it has a result")
        return [staging.InputFile(f"{at}/{name}", size) for name, size in parts.items()]

    # --- what ran ---

    def record(self, job_id: str, status: AppStatus | None = None) -> JobRecord:
        """Return the record that a job's AM has written so far; complete when the job has ended. Raises InputError."""
        lines = self._history(job_id)
        job = self.jobs[job_id]
        found = record_of(lines, reduces_first=job.reduces > 0)
        failed = next((one for one in read_history(lines) if one.outcome == "failed"), None)
        if failed is not None:
            log = last_lines(container_log(failed))
            why = f"{failed.attempt}: {told_of(failed)}" + (f": its log ends: {' | '.join(log)}" if log else "")
            found = replace(found, why=why)
        self._records[job_id] = found
        if status is not None and status.final:
            self._tell_server(job_id)
        return found

    def _tell_server(self, job_id: str) -> None:
        """Copy an ended job's history to the folder of the cluster's JobHistoryServer, as an ordinary AM would.

        The history in the job's own folder is removed at the end of the run. Raises InputError.
        """
        folder = self._folders[job_id]
        if self._server_folder is None or folder in self._told_server:
            return
        self._told_server.add(folder)
        place = LocalStore(self._server_folder)
        # The server must find the configuration and the summary as soon as it finds the history.
        files = self.place.fetch(f"{folder}/history").items()
        for name, content in sorted(files, key=lambda file: file[0].endswith(".jhist")):
            place.write({name: content})

    def attempts(self, job_id: str) -> list[Attempt]:
        """Return the attempts of tasks that the AM has written so far. Raises InputError."""
        return read_history(self._history(job_id))

    def _history(self, job_id: str) -> list[str]:
        """Return the lines of the job's history; the file is in its staging folder until the job has ended."""
        folder = self._folders[job_id]
        for at in (f"{folder}/history", f"{folder}/staging"):
            found = self.place.fetch(at, ".jhist")
            if found:
                return next(iter(found.values())).decode(errors="replace").splitlines()
        return []

    def measured(self, job_id: str, status: AppStatus | None) -> JobSpec:
        """Return a job as it ran, with each task's own time.

        Tasks that did not end get the times of others of their stage.
        """
        job, record = self.jobs[job_id], self._records.get(job_id, JobRecord())
        stages = []
        ordered = [stage.name for stage in stages_in_order(job.spec)]
        for stage in job.spec.stages:
            own = {
                task.task: (task.ended_ms - task.started_ms) / 1000.0
                for task in record.tasks
                if ordered[task.stage] == stage.name and task.outcome == "finished"
            }
            mean = sum(own.values()) / len(own) if own else stage.duration.value_s
            count = self._maps.get(job_id, stage.tasks) if stage.name == "map" else stage.tasks
            times = tuple(max(own.get(at, mean), 0.001) for at in range(count))
            stages.append(replace(stage, tasks=count, duration=Duration("listed", values_s=times)))
        return replace(job.spec, stages=tuple(stages))

    # --- checking the answer ---

    def check(self, job_id: str, status: AppStatus | None = None) -> Verdict | None:
        """Check a program's answer; return None for the steps before its last. Raises InputError, CallError."""
        job = self.jobs[job_id]
        if job.step < job.steps:
            return None
        inputs = [self._parts(data) for data in job.inputs]
        settings = APPLICATIONS[job.application].settings_with(job.program.settings)
        with tempfile.TemporaryDirectory(prefix="yarnfair-answer-") as work:
            self.place.copy(self._output(job), Path(work))
            return CHECKS[job.application](inputs, settings, output_files(Path(work)))

    def deliver(self, job_id: str, output: Path | Target) -> None:
        """Move a program's output to a folder of the caller, which must not exist yet. Raises InputError."""
        self.place.give(self._output(self.jobs[job_id]), output)

    def close(self) -> None:
        """Remove the run's files from the place: outputs and staging. Raises InputError."""
        self._closing.close()
        self.place.remove(self.site.tag)


def write_centres(files: Sequence[Path], classes: str, target: Path) -> None:
    """Write the first movies of the input, one for each class, to a file. Raises CallError for a bad number."""
    if not classes.isdigit() or not 1 <= int(classes) <= 1000:
        raise CallError(f"classes is {classes[:20]!r}", where="--set", hint="give a number from 1 to 1000")
    lines: list[bytes] = []
    for file in files:
        with file.open("rb") as rows:
            for row in rows:
                if len(lines) == int(classes):
                    break
                lines.append(row.rstrip(b"\n") + b"\n")
    target.write_bytes(b"".join(lines))


def _identity_reduce(job: ProgramJob) -> dict[str, str]:
    """Return the properties of reduces that write their input.

    LTYARN's Table 3 has a grep with reduces, but its program has none.
    """
    if job.application != "fbgrep" or not job.reduces:
        return {}
    return {
        "mapreduce.job.reduces": str(job.reduces),
        "mapred.reducer.class": "org.apache.hadoop.mapred.lib.IdentityReducer",
    }
