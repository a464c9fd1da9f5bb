"""Hive's queries of a run: sends them to one HiveServer2 through a shell each, and reads their times and answers.

Hive has no submission through REST: the server plans a query and then starts Tez' AM. So a job has no application at
first (`taken` tells when it has one). Nothing tells which application belongs to which query either. Therefore only one
query at a time waits for its application; queries that have theirs run side by side.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import subprocess
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness.base.errors import CallError, InputError, RunInvalid
from harness.clusters.daemons import free_ports
from harness.jobs.data.targets import Target
from harness.jobs.engines.attempts import Attempt, Verdict
from harness.jobs.engines.base import EnginePrograms, ProgramJob, Site, write_answer
from harness.jobs.engines.cluster import Sizes
from harness.jobs.hive import installation
from harness.jobs.hive.catalogue import programs
from harness.jobs.hive.history import dag_started_ms, histories, record_of, stages_of
from harness.jobs.hive.server import HiveServer, Shell
from harness.jobs.hive.site import HivePlace, hive_properties, script, tez_properties
from harness.jobs.replay import JobRecord
from harness.jobs.spark.answers import check_queries, views_of
from harness.jobs.spark.catalogue import SparkProgram, query_sql
from harness.jobs.spark.plan import Input
from harness.jobs.spark.site import read_input
from harness.model.jobs import JobSpec
from harness.traces.spec import DataSpec
from harness.yarn.answers import AppStatus
from harness.yarn.rest import RestClient

#: Time limits in seconds: HiveServer2's start on a busy machine, and a shell's end after its application's end.
_START_S, _SHELL_S = 600.0, 120.0
#: The smallest container, in MiB, with which Tez works.
_LEAST_MB = 640


def sizes_of(job: ProgramJob) -> Sizes:
    """Return the container sizes that a query requests."""
    (stage,) = job.spec.stages
    return Sizes(stage.demand.memory_mb, job.spec.am.memory_mb, job.maps, max(job.reduces, 1))


def check_sizes(sizes: Sizes) -> None:
    """Check container sizes. Raises CallError for containers that are too small."""
    for name in ("task_mb", "am_mb"):
        if getattr(sizes, name) < _LEAST_MB:
            raise CallError(f"{name} is {getattr(sizes, name)}", hint=f"Tez needs {_LEAST_MB} or more")


def given_properties(rest: RestClient) -> dict[str, str]:
    """Return the cluster's properties. Raises InputError if its nodes use another file system than this machine's."""
    given = rest.properties(defaults=False)
    if not given.get("fs.defaultFS", "file:///").startswith("file:"):
        raise InputError(
            f"its file system is {given['fs.defaultFS']}",
            where=rest.http.current,
            hint="Hive's programs run where nodes and this machine share a folder (fs.defaultFS file:///)",
        )
    return given


def read_tables(program: SparkProgram, folder: Path) -> Input:
    """Read TPC-H's data in a folder, as for Spark. Raises InputError for data that cannot be used."""
    if ";" in str(folder):
        raise InputError("Hive's paths have no ;", where=str(folder), hint="choose another folder")
    return read_input(program, folder)


def link_tables(tables: Path, data: Input) -> dict[str, tuple[str, str]]:
    """Create a folder for each table with a link to its file, because Hive reads folders.

    Return table -> folder, columns.
    """
    found = {}
    for table, columns in data.schemas.items():
        (tables / table).mkdir(parents=True)
        (tables / table / f"{table}.parquet").symlink_to(Path(data.path) / f"{table}.parquet")
        found[table] = f"file://{tables / table}", columns
    return found


def columns_of(sql: str, data: Input) -> list[str]:
    """Return a query's columns as DuckDB names them, because the shell prints no columns for an empty answer."""
    with views_of(data) as connection:
        return [str(row[0]) for row in connection.execute(f"describe {sql}").fetchall()]


def answer_of(one: SparkProgram, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return an answer in the form in which Spark's queries write it."""
    return json.dumps({"query": one.queries[0], "columns": list(columns), "rows": rows}) + "\n"


class HivePrograms(EnginePrograms):
    """Runs queries on one cluster. ``folder``: a folder that this machine and all nodes see."""

    def __init__(self, site: Site, folder: Path, jobs: Sequence[ProgramJob]) -> None:
        self.site, self.data, self._progress = site, site.folders, site.progress
        self.jobs = {job.spec.id: job for job in jobs}
        self.sizes = {job.spec.id: sizes_of(job) for job in jobs}
        self._folder = folder
        self._closing = contextlib.ExitStack()
        #: Data set -> its name, its tables' folders and columns, its input.
        self._tables: dict[DataSpec, tuple[str, dict[str, tuple[str, str]], Input]] = {}
        self._waiting: deque[str] = deque()
        #: The job whose query was sent last and has no application yet.
        self._asking: str | None = None
        self._shells: dict[str, Shell] = {}
        self._apps: dict[str, str] = {}
        #: All applications that belonged to some query, including queries that were sent again.
        self._known: set[str] = set()
        self._asked = 0

    def prepare(self) -> None:
        """Start HiveServer2, before the run's measurements begin.

        Raises CallError and InputError for a query that cannot be run, RunInvalid or RunTimedOut if HiveServer2 does
        not start.
        """
        for sizes in self.sizes.values():
            check_sizes(sizes)
        tables = {
            spec: read_tables(programs()[job.application], self.data[spec])
            for job in self.jobs.values()
            for spec in job.inputs
        }
        given = given_properties(self.site.rest)
        hive, tez = installation.hive_jars(self._progress), installation.tez_jars(self._progress)
        shutil.rmtree(self._folder, ignore_errors=True)
        self._folder.mkdir(parents=True)
        self._closing.callback(shutil.rmtree, self._folder, ignore_errors=True)
        place = HivePlace(self._folder.absolute(), tez, free_ports(["hive"])["hive"])
        self.server = HiveServer(self.site.rest, place, hive, self._progress)
        first = next(iter(self.jobs.values()))
        # A session cannot set Java's options (the shell takes "--" for a comment), so all get the heap of the smallest
        # container.
        sizes = replace(
            self.sizes[first.spec.id],
            task_mb=min(one.task_mb for one in self.sizes.values()),
            am_mb=min(one.am_mb for one in self.sizes.values()),
        )
        self._base = self._properties(sizes, first.spec.queue)
        self.server.configure(given, sizes, first.spec.queue, self.site.properties)
        for number, (spec, found) in enumerate(tables.items()):
            name = f"data{number}"
            self._tables[spec] = (name, link_tables(place.work / name, found), found)
        self._closing.enter_context(self.server.serving(time.monotonic() + _START_S))
        self._closing.callback(self.kill)

    def close(self) -> None:
        """End HiveServer2 and all of its processes."""
        self._closing.close()

    def kill(self) -> None:
        """Kill the queries that have not ended."""
        self._waiting.clear()
        for shell in self._shells.values():
            shell.kill()
        self.server.kill()

    def document(self) -> dict[str, Any]:
        """Return the engine's versions and settings, for ``run.json``."""
        work = str(self.server.place.work)
        kept = {key: value for key, value in self._base.items() if work not in value}
        return {"engine": "Hive on Tez", "hive": installation.HIVE, "tez": installation.TEZ, "properties": kept}

    def _properties(self, sizes: Sizes, queue: str) -> dict[str, str]:
        place = self.server.place
        return {**hive_properties(place, sizes), **tez_properties(place, sizes, queue=queue)}

    # --- submitting ---

    def submit(self, job_id: str) -> None:
        """Submit a query (again, if it was submitted before), as soon as the previous one has its application.

        `taken` returns the query's application.
        """
        self._apps.pop(job_id, None)
        self._waiting.append(job_id)
        self._next()

    def _next(self) -> None:
        if self._asking is not None or not self._waiting:
            return
        job_id = self._asking = self._waiting.popleft()
        job = self.jobs[job_id]
        (spec,) = job.inputs
        database, folders, found = self._tables[spec]
        one = programs()[job.application]
        wanted = self._properties(self.sizes[job_id], job.spec.queue)
        own = {key: value for key, value in wanted.items() if self._base[key] != value and "--" not in value}
        lines = [f"set {key}={value};" for key, value in own.items()]
        lines += [f"create database if not exists {database};", f"use {database};"]
        query = script(query_sql(one.queries[0], one.settings_with(job.program.settings), found.wanted / 1e9), folders)
        if (before := self._shells.get(job_id)) is not None:
            before.kill()
        self._asked += 1
        self._shells[job_id] = self.server.ask(f"query-{self._asked}", "\n".join([*lines, query]))

    def taken(self, job_id: str) -> str | None:
        """Return a job's application; None while it has none.

        Raises RunInvalid, with the reason, for a query that failed before it had one, and errors of requests to YARN.
        """
        if self._asking == job_id:
            shell = self._shells[job_id]
            ended = shell.process.poll() is not None
            new = [app for app in self.server.apps() if app.id not in self._known]
            if new:
                self._apps[job_id] = new[0].id
                self._known.add(new[0].id)
            if new or ended:
                self._asking = None
                self._next()
            if ended and not new:
                raise RunInvalid(self.server.why(self.jobs[job_id].application, shell.said(), only=""))
        return self._apps.get(job_id)

    # --- what ran ---

    def attempts(self, job_id: str) -> list[Attempt]:
        """Return the attempts that Tez' AM has written so far of a query's tasks."""
        app = self._apps.get(job_id)
        return [one for one in histories(self.server.place.work / "history") if one.job == app]

    def record(self, job_id: str, status: AppStatus | None = None) -> JobRecord:
        """Return the record that Tez' AM has written so far of a query's tasks."""
        app = self._apps.get(job_id, "")
        return record_of(self.attempts(job_id), dag_started_ms(self.server.place.work / "history", app))

    def why(self, job_id: str, status: AppStatus) -> str:
        """Return the reason of a failed query: Hive's message, YARN's, and the failed attempt's."""
        return self.server.why(self.jobs[job_id].application, self._ended(job_id), only=self._apps.get(job_id, ""))

    def measured(self, job_id: str, status: AppStatus | None) -> JobSpec:
        """Return a query as it ran: its vertices as stages, each task with its own time."""
        spec = self.jobs[job_id].spec
        stages = stages_of(self.attempts(job_id), spec)
        return replace(spec, stages=stages) if stages else spec

    def _ended(self, job_id: str) -> str:
        """End the shell of a query whose application has ended; return what it printed besides the answer."""
        shell = self._shells[job_id]
        # The next step kills it.
        with contextlib.suppress(subprocess.TimeoutExpired):
            shell.process.wait(_SHELL_S)
        shell.kill()
        return shell.said()

    def _answer(self, job_id: str) -> tuple[Input, bytes]:
        """Return (the data, the answer). Raises RunInvalid for a query that failed."""
        job = self.jobs[job_id]
        one, said, shell = programs()[job.application], self._ended(job_id), self._shells[job_id]
        if shell.process.returncode != 0:
            raise RunInvalid(self.server.why(one.name, said, only=self._apps.get(job_id)))
        data, settings = self._tables[job.inputs[0]][2], one.settings_with(job.program.settings)
        columns, rows = shell.read(one.name)
        columns = columns or columns_of(query_sql(one.queries[0], settings, data.wanted / 1e9), data)
        return data, answer_of(one, columns, rows).encode()

    def check(self, job_id: str, status: AppStatus | None = None) -> Verdict | None:
        """Return whether the answer is right. Raises RunInvalid for a query that failed, InputError."""
        one, (data, answer) = programs()[self.jobs[job_id].application], self._answer(job_id)
        settings = one.settings_with(self.jobs[job_id].program.settings)
        return check_queries(one.queries, settings, data, answer)

    def deliver(self, job_id: str, output: Path | Target) -> None:
        """Write the answer to a file. Raises RunInvalid for a query that failed, InputError."""
        write_answer(output, self._answer(job_id)[1])
