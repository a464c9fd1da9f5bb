"""Runs a query by Hive on Tez on a YARN cluster: a HiveServer2 of its own, a JDBC shell that asks it, one application.

Hive cannot be submitted through REST: its server plans the query and starts Tez' master. Server and metastore live for
one run, in a folder beside the output, which this machine and all nodes see alike.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.base.errors import CallError, InputError, RunInvalid, RunTimedOut, YarnfairError
from harness.clusters.local import free_ports
from harness.jobs.data.targets import FolderTarget
from harness.jobs.engines.attempts import Attempt
from harness.jobs.engines.base import Done
from harness.jobs.engines.cluster import Sizes, available_mb, check_memory, cluster_properties, on_this_machine
from harness.jobs.hive import installation
from harness.jobs.hive.catalogue import HiveProgram, settings_of
from harness.jobs.hive.history import histories
from harness.jobs.hive.server import BOTH_MB, POLL_S, HiveServer, Shell
from harness.jobs.hive.site import TABLES, Place, script, tables_of
from harness.jobs.spark.answers import check_queries
from harness.jobs.spark.catalogue import query_sql
from harness.jobs.spark.plan import Input
from harness.yarn.answers import AppStatus
from harness.yarn.rest import RestClient

SIZES = Sizes(task_mb=768, am_mb=768)
_LEAST_MB = 640
#: Tez' master looks every few seconds whether it shall go on.
_SETTLE_S = 120.0


@dataclass(frozen=True, slots=True)
class HiveRequest:
    """One run of one query. ``input``: TPC-H's data; ``output``: a folder that is not there yet."""

    application: HiveProgram
    input: Path
    output: Path
    queue: str = "default"
    sizes: Sizes = SIZES
    settings: Mapping[str, str] = field(default_factory=dict)
    check: bool = True
    timeout_s: float = 1800.0
    #: More of Hive's and Tez' properties.
    properties: Mapping[str, str] = field(default_factory=dict)


def read_tables(folder: Path) -> tuple[Input, dict[str, list[str]]]:
    """TPC-H's data in a folder, and the files of each table. Raises InputError for data that cannot be used."""
    from harness.jobs.data.generate import TPCH, check_whole, read_manifest

    if any(c in "{}[]*?\\, \t\n'\"$;:" for c in str(folder)):
        raise InputError("Hive's paths have no blanks, quotes, commas or : ; $ * ? [ ] { }", where=str(folder))
    make = f"make it: yarnfair data generate tpch --size 10MB --out {folder}"
    manifest = read_manifest(FolderTarget(folder))
    if manifest is None:
        raise InputError("no data set there", where=str(folder), mend=make)
    if manifest.kind != TPCH:
        raise InputError(f"a data set of {manifest.kind}", where=str(folder), mend="give one of tpch")
    check_whole(FolderTarget(folder), manifest)
    tables = tables_of(sorted(manifest.parts))
    if lacking := [name for name in TABLES if name not in tables]:
        raise InputError(f"no {', '.join(f'{name}.parquet' for name in lacking)}", where=str(folder), mend=make)
    size = sum(int(part["bytes"]) for part in manifest.parts.values())
    names = tuple(name for files in tables.values() for name in files)
    return Input(str(folder.absolute()), names, size, manifest.size), tables


def check_sizes(sizes: Sizes) -> None:
    """Raises CallError for containers that are too small."""
    for name in ("task_mb", "am_mb"):
        if getattr(sizes, name) < _LEAST_MB:
            raise CallError(f"{name} is {getattr(sizes, name)}", mend=f"Tez needs {_LEAST_MB} or more")


def given_properties(rest: RestClient) -> dict[str, str]:
    """The cluster's properties. InputError for one whose nodes read another file system than this machine's."""
    given = cluster_properties(rest)
    if not given.get("fs.defaultFS", "file:///").startswith("file:"):
        raise InputError(
            f"its file system is {given['fs.defaultFS']}",
            where=rest.http.current,
            mend="Hive's programs run where nodes and this machine share a folder (fs.defaultFS file:///)",
        )
    return given


def answer_of(one: HiveProgram, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """An answer in the form that Spark's queries leave."""
    return json.dumps({"query": one.query, "columns": list(columns), "rows": rows}) + "\n"


class HiveClient:
    """Runs queries on one cluster. ``stop``: set, what runs ends as when it is interrupted."""

    def __init__(
        self,
        rest: RestClient,
        *,
        progress: Callable[[str], None] = lambda _: None,
        stop: threading.Event | None = None,
    ) -> None:
        self.rest, self._progress, self._stop = rest, progress, stop or threading.Event()
        #: What was measured of the last run, however it ended.
        self.attempts: list[Attempt] = []
        self.zero_ms = 0

    def run(self, request: HiveRequest, on_step: Callable[[list[AppStatus]], None] = lambda _: None) -> Done:
        """To its end, checked.

        Raises RunInvalid for a query that failed (why, with its log's last lines), RunTimedOut, InputError, CallError.
        However it ends, nothing of it runs on.
        """
        one, self.attempts = request.application, []
        settings = settings_of(one, request.settings)
        data, tables = read_tables(request.input)
        output = request.output.absolute()
        if output.exists():
            raise InputError("is there already", where=str(output), mend="give another --output, or remove it")
        given = self._room(request)
        hive, tez = installation.hive_jars(self._progress), installation.tez_jars(self._progress)
        output.parent.mkdir(parents=True, exist_ok=True)
        sql = query_sql(one.query, settings, data.wanted / 1e9)
        end = time.monotonic() + request.timeout_s
        with tempfile.TemporaryDirectory(prefix=".hive-", dir=output.parent, ignore_cleanup_errors=True) as folder:
            place = Place(Path(folder), tez, free_ports(["hive"])["hive"])
            server = HiveServer(self.rest, place, hive, self._progress, self._stop)
            server.configure(given, request.sizes, request.queue, request.properties)
            folders = link_tables(place.work / "tables", Path(data.path), tables)
            try:
                with server.serving(end):
                    self._progress(f"{one.name}: asking")
                    began, self.zero_ms = time.monotonic(), time.time_ns() // 1_000_000
                    shell = server.ask("query", script(sql, folders))
                    columns, rows = self._follow(request, server, shell, end, on_step)
                    seconds = time.monotonic() - began
                    self._settle(server, min(end, time.monotonic() + _SETTLE_S))
            finally:
                server.kill()
                self.attempts = histories(place.work / "history")
        answer = answer_of(one, columns or columns_of(sql, data), rows)
        output.mkdir()
        (output / "answer").write_text(answer, encoding="utf-8")
        verdict = None
        if request.check:
            self._progress("checking the answer")
            verdict = check_queries([one.query], settings, data, answer.encode())
        return Done(tuple(server.apps()), tuple(self.attempts), seconds, verdict, self.zero_ms)

    def _room(self, request: HiveRequest) -> dict[str, str]:
        """The cluster's properties. Refuses what it has no room for, or cannot run."""
        check_sizes(request.sizes)
        free = available_mb(Path("/proc/meminfo").read_text()) - BOTH_MB if on_this_machine(self.rest) else None
        check_memory(request.sizes, self.rest, free_mb=free)
        return given_properties(self.rest)

    def _follow(
        self,
        request: HiveRequest,
        server: HiveServer,
        shell: Shell,
        end: float,
        on_step: Callable[[list[AppStatus]], None],
    ) -> tuple[list[str], list[list[Any]]]:
        """The query's columns and rows, when it has them."""
        name = request.application.name
        try:
            while shell.process.poll() is None:
                if self._stop.is_set():
                    raise RunInvalid(f"{name} was interrupted")
                if time.monotonic() >= end:
                    raise RunTimedOut(f"{name} had not ended after {request.timeout_s:g} s")
                with contextlib.suppress(YarnfairError):
                    on_step(server.apps())
                with contextlib.suppress(subprocess.TimeoutExpired):
                    shell.process.wait(POLL_S)
        finally:
            shell.kill()
        if shell.process.returncode != 0:
            raise RunInvalid(server.why(name, shell.said()))
        return shell.read(name)

    def _settle(self, server: HiveServer, end: float) -> None:
        """Waits until Tez' master, whose session the shell has closed, has told YARN that it ended well."""
        while time.monotonic() < end and not self._stop.is_set():
            with contextlib.suppress(YarnfairError):
                if all(app.final for app in server.apps()):
                    return
            time.sleep(POLL_S)


def columns_of(sql: str, data: Input) -> list[str]:
    """A query's columns as DuckDB names them: of an answer without rows the shell tells none."""
    import duckdb

    with duckdb.connect(":memory:") as connection:
        for table, files in tables_of(data.files).items():
            path = str(Path(data.path) / files[0]).replace("'", "''")
            connection.execute(f"create view {table} as select * from read_parquet('{path}')")
        return [str(row[0]) for row in connection.execute(f"describe {sql}").fetchall()]


def link_tables(tables: Path, data: Path, files: Mapping[str, list[str]]) -> dict[str, str]:
    """A folder a table, with links to its files: Hive reads folders. Table -> folder."""
    found = {}
    for table, names in files.items():
        (tables / table).mkdir(parents=True)
        for name in names:
            (tables / table / name).symlink_to((data / name).absolute())
        found[table] = f"file://{tables / table}"
    return found
