"""Runs a query by Hive on Tez on a YARN cluster: a HiveServer2 of its own, a JDBC shell that asks it, one application.

Hive cannot be submitted through REST: its server plans the query and starts Tez' master. Server and metastore live for
one run, in a folder beside the output, which this machine and all nodes see alike.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.clusters import processes, site
from harness.clusters.daemons import java_program
from harness.clusters.local import free_ports
from harness.jobs.applications.client import (
    Done,
    Sizes,
    available_mb,
    check_memory,
    cluster_properties,
    container_log,
    last_lines,
    on_this_machine,
    told_of,
)
from harness.jobs.applications.history import Attempt
from harness.jobs.data.targets import FolderTarget
from harness.jobs.hive import engine
from harness.jobs.hive.catalogue import HiveProgram, settings_of
from harness.jobs.hive.history import histories
from harness.jobs.hive.site import LOG4J2, TABLES, Place, hive_properties, script, tables_of, tez_properties
from harness.jobs.spark.answers import check_queries
from harness.jobs.spark.catalogue import query_sql
from harness.jobs.spark.plan import Input
from harness.model.errors import CallError, InputError, RunInvalid, RunTimedOut, YarnfairError
from harness.yarn.answers import AppStatus
from harness.yarn.rest import RestClient

SIZES = Sizes(task_mb=768, am_mb=768)
#: Heaps of HiveServer2 and of its shell, and what the two take of this machine.
SERVER_HEAP_MB, SHELL_HEAP_MB, BOTH_MB = 640, 192, 1300
_LEAST_MB = 640
_POLL_S = 0.5
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
    from harness.jobs.data.generate import TPCH, read_manifest

    if any(c in "{}[]*?\\, \t\n'\"$;:" for c in str(folder)):
        raise InputError("Hive's paths have no blanks, quotes, commas or : ; $ * ? [ ] { }", where=str(folder))
    make = f"make it: yarnfair data generate tpch --size 10MB --out {folder}"
    manifest = read_manifest(FolderTarget(folder))
    if manifest is None:
        raise InputError("no data set there", where=str(folder), mend=make)
    if manifest.kind != TPCH:
        raise InputError(f"a data set of {manifest.kind}", where=str(folder), mend="give one of tpch")
    if not manifest.complete:
        raise InputError("the data set is not complete", where=str(folder), mend="generate it again to go on")
    tables = tables_of(sorted(manifest.parts))
    if lacking := [name for name in TABLES if name not in tables]:
        raise InputError(f"no {', '.join(f'{name}.parquet' for name in lacking)}", where=str(folder), mend=make)
    size = sum(int(part["bytes"]) for part in manifest.parts.values())
    names = tuple(name for files in tables.values() for name in files)
    return Input(str(folder.absolute()), names, size, manifest.size), tables


def read_answer(out: str) -> tuple[list[str], list[list[Any]]]:
    """(columns, rows) of what the shell printed: one result as JSON. ValueError where there is none."""
    start = out.find('{"resultset":')
    if start < 0:
        raise ValueError("no result")
    rows = json.loads(out[start:])["resultset"]
    columns = list(rows[0]) if rows else []
    return columns, [list(row.values()) for row in rows]


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
        self.java = java_program()
        #: What was measured of the last run, however it ended.
        self.attempts: list[Attempt] = []
        self.zero_ms = 0
        self._names: set[str] = set()

    def run(self, request: HiveRequest, on_step: Callable[[list[AppStatus]], None] = lambda _: None) -> Done:
        """To its end, checked.

        Raises RunInvalid for a query that failed (why, with its log's last lines), RunTimedOut, InputError, CallError.
        However it ends, nothing of it runs on.
        """
        one, self.attempts, self._names = request.application, [], set()
        settings = settings_of(one, request.settings)
        data, tables = read_tables(request.input)
        output = request.output.absolute()
        if output.exists():
            raise InputError("is there already", where=str(output), mend="give another --output, or remove it")
        given = self._room(request)
        hive, tez = engine.hive_jars(self._progress), engine.tez_jars(self._progress)
        output.parent.mkdir(parents=True, exist_ok=True)
        sql = query_sql(one.query, settings, data.wanted / 1e9)
        end = time.monotonic() + request.timeout_s
        with tempfile.TemporaryDirectory(prefix=".hive-", dir=output.parent, ignore_cleanup_errors=True) as folder:
            place = Place(Path(folder), tez, free_ports(["hive"])["hive"])
            os.chmod(place.work, 0o755)
            folders = _link(place.work / "tables", Path(data.path), tables)
            self._configure(place, request, given)
            (place.work / "query.sql").write_text(script(sql, folders), encoding="utf-8")
            try:
                with self._server(place, hive, end):
                    self._progress(f"{one.name}: asking")
                    began, self.zero_ms = time.monotonic(), time.time_ns() // 1_000_000
                    columns, rows = self._ask(request, place, hive, end, on_step)
                    seconds = time.monotonic() - began
                    self._settle(place, min(end, time.monotonic() + _SETTLE_S))
            finally:
                self._kill(place)
                self.attempts = histories(place.work / "history")
        # The same form as of Spark's queries.
        answer = json.dumps({"query": one.query, "columns": columns or columns_of(sql, data), "rows": rows}) + "\n"
        output.mkdir()
        (output / "answer").write_text(answer, encoding="utf-8")
        verdict = None
        if request.check:
            self._progress("checking the answer")
            verdict = check_queries([one.query], settings, data, answer.encode())
        return Done(tuple(self._apps(place)), tuple(self.attempts), seconds, verdict, self.zero_ms)

    def _room(self, request: HiveRequest) -> dict[str, str]:
        """The cluster's properties. Refuses what it has no room for, or cannot run."""
        for name in ("task_mb", "am_mb"):
            if getattr(request.sizes, name) < _LEAST_MB:
                raise CallError(f"{name} is {getattr(request.sizes, name)}", mend=f"Tez needs {_LEAST_MB} or more")
        free = available_mb(Path("/proc/meminfo").read_text()) - BOTH_MB if on_this_machine(self.rest) else None
        check_memory(request.sizes, self.rest, free_mb=free)
        given = cluster_properties(self.rest)
        if not given.get("fs.defaultFS", "file:///").startswith("file:"):
            raise InputError(
                f"its file system is {given['fs.defaultFS']}",
                where=self.rest.http.current,
                mend="Hive's programs run where nodes and this machine share a folder (fs.defaultFS file:///)",
            )
        return given

    def _configure(self, place: Place, request: HiveRequest, given: Mapping[str, str]) -> None:
        conf = place.work / "conf"
        for folder in (conf, place.work / "staging", place.work / "history"):
            folder.mkdir()
        hive = {**hive_properties(place, request.sizes), **request.properties}
        tez = {**tez_properties(place, request.sizes, queue=request.queue), **request.properties}
        everything = site.render({**given, "hadoop.tmp.dir": str(place.work / "tmp")})
        for name in ("core-site.xml", "yarn-site.xml"):
            site.write(conf / name, everything)
        site.write(conf / "hive-site.xml", site.render(hive))
        site.write(conf / "tez-site.xml", site.render(tez))
        site.write(conf / "hive-log4j2.properties", LOG4J2)

    @contextlib.contextmanager
    def _server(self, place: Place, hive: Path, end: float) -> Iterator[None]:
        """HiveServer2, as long as it is needed."""
        self._progress("starting HiveServer2")
        mark, log = f"hive-{uuid.uuid4().hex}", place.work / "server.log"
        command = [self.java, *engine.JAVA, f"-Xmx{SERVER_HEAP_MB}m", f"-Djava.io.tmpdir={place.work}"]
        command += [f"-Dlog4j2.configurationFile={place.work / 'conf' / 'hive-log4j2.properties'}"]
        command += ["-cp", f"{place.work / 'conf'}:{hive}/*", engine.SERVER]
        environment = {**_environment(place), processes.MARK: mark}
        started = processes.start(command, environment=environment, folder=place.work, log=log)
        try:
            while not _listens(place.port):
                if self._stop.is_set():
                    raise RunInvalid("interrupted while HiveServer2 started")
                if not started.alive:
                    lines = last_lines(log.read_text(errors="replace"))
                    raise RunInvalid(f"HiveServer2 ended: {' | '.join(lines) or 'it said nothing'}")
                if time.monotonic() >= end:
                    raise RunTimedOut("HiveServer2 did not come up in time", mend="raise --timeout")
                time.sleep(_POLL_S)
            yield
        finally:
            # It closes its sessions, and with them Tez' masters.
            processes.stop([started], mark, grace_s=20.0)

    def _ask(
        self,
        request: HiveRequest,
        place: Place,
        hive: Path,
        end: float,
        on_step: Callable[[list[AppStatus]], None],
    ) -> tuple[list[str], list[list[Any]]]:
        """The query's columns and rows."""
        command = [self.java, *engine.JAVA, f"-Xmx{SHELL_HEAP_MB}m", "-cp", f"{hive}/*", engine.SHELL]
        command += ["-d", engine.DRIVER, "-u", f"jdbc:hive2://127.0.0.1:{place.port}/", "-n", _user(), "-p", "none"]
        command += ["--silent=true", "--outputformat=json", "--isolation=TRANSACTION_NONE"]
        command += [f"--run={place.work / 'query.sql'}"]
        out, err = place.work / "answer.out", place.work / "shell.log"
        with out.open("wb") as output, err.open("wb") as said:
            process = subprocess.Popen(
                command,
                cwd=place.work,
                env={**_environment(place), "HOME": str(place.work)},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=said,
                start_new_session=True,
            )
        try:
            while process.poll() is None:
                if self._stop.is_set():
                    raise RunInvalid(f"{request.application.name} was interrupted")
                if time.monotonic() >= end:
                    raise RunTimedOut(f"{request.application.name} had not ended after {request.timeout_s:g} s")
                with contextlib.suppress(YarnfairError):
                    on_step(self._apps(place))
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(_POLL_S)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        if process.returncode != 0:
            raise RunInvalid(self._why(request, place, err.read_text(errors="replace")))
        try:
            return read_answer(out.read_text(encoding="utf-8", errors="replace"))
        except (ValueError, KeyError, TypeError, AttributeError):
            raise RunInvalid(
                f"{request.application.name}: the shell printed no result: "
                f"{' | '.join(last_lines(err.read_text(errors='replace'), 3))}"
            ) from None

    def _settle(self, place: Place, end: float) -> None:
        """Waits until Tez' master, whose session the shell has closed, has told YARN that it ended well."""
        while time.monotonic() < end and not self._stop.is_set():
            with contextlib.suppress(YarnfairError):
                if all(app.final for app in self._apps(place)):
                    return
            time.sleep(_POLL_S)

    def _apps(self, place: Place) -> list[AppStatus]:
        """The run's applications, in order. Hive puts tags of its own over ours, but names each after its Tez session.

        A session has a folder, with its resources beside it, as long as it is open: it is remembered.
        """
        folders = (place.work / "scratch").glob("**/_tez_session_dir/*")
        self._names |= {f"HIVE-{folder.name.removesuffix('-resources')}" for folder in folders}
        return [app for app in self.rest.apps() if app.name in self._names] if self._names else []

    def _kill(self, place: Place) -> None:
        with contextlib.suppress(YarnfairError):
            for app in self._apps(place):
                if not app.final:
                    with contextlib.suppress(YarnfairError):
                        self.rest.kill(app.id, timeout_s=15.0)

    def _why(self, request: HiveRequest, place: Place, said: str) -> str:
        """The reason of a failed query: Hive's own words, YARN's, and the failed attempt's."""
        errors = [line[7:].strip() for line in said.splitlines() if line.startswith("Error: ")]
        found = [f"{request.application.name} failed", " ".join(" ".join(errors[:1]).split())[:400]]
        with contextlib.suppress(YarnfairError):
            for app in self._apps(place):
                if app.final and app.final_status != "SUCCEEDED":
                    found.append(f"{app.id} {app.final_status}: {' '.join(app.diagnostics.split())[:300]}")
        failed = next((one for one in histories(place.work / "history") if one.outcome == "failed"), None)
        if failed is not None:
            found.append(f"{failed.attempt}: {told_of(failed)[:400]}")
            if lines := last_lines(container_log(failed)):
                found.append(f"its log ends: {' | '.join(lines)}")
        elif not errors:
            found.append(" | ".join(last_lines(said)))
        return "; ".join(text for text in found if text)


def columns_of(sql: str, data: Input) -> list[str]:
    """A query's columns as DuckDB names them: of an answer without rows the shell tells none."""
    import duckdb

    with duckdb.connect(":memory:") as connection:
        for table, files in tables_of(data.files).items():
            path = str(Path(data.path) / files[0]).replace("'", "''")
            connection.execute(f"create view {table} as select * from read_parquet('{path}')")
        return [str(row[0]) for row in connection.execute(f"describe {sql}").fetchall()]


def _link(tables: Path, data: Path, files: Mapping[str, list[str]]) -> dict[str, str]:
    """A folder a table, with links to its files: Hive reads folders. Table -> folder."""
    found = {}
    for table, names in files.items():
        (tables / table).mkdir(parents=True)
        for name in names:
            (tables / table / name).symlink_to((data / name).absolute())
        found[table] = f"file://{tables / table}"
    return found


def _environment(place: Place) -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("HADOOP_", "YARN_", "JAVA_TOOL", "HIVE_", "TEZ_"))}
    return {**kept, "HADOOP_CONF_DIR": str(place.work / "conf")}


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(2.0)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _user() -> str:
    import getpass

    return getpass.getuser()
