"""Runs a HiveServer2 while it is needed, and the JDBC shells that send queries; each query is one Tez application.

Server and metastore are in one folder, which this machine and all nodes see under the same path.
"""

from __future__ import annotations

import contextlib
import getpass
import json
import logging
import os
import shlex
import signal
import subprocess
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.base.debug import shown
from harness.base.errors import RunInvalid, RunTimedOut, YarnfairError
from harness.clusters import processes, site
from harness.clusters.daemons import java_program, port_taken
from harness.jobs.engines.cluster import Sizes, container_log, last_lines, told_by_yarn, told_of
from harness.jobs.hive import installation
from harness.jobs.hive.history import histories
from harness.jobs.hive.site import LOG4J2, HivePlace, hive_properties, tez_properties
from harness.yarn.answers import AppStatus
from harness.yarn.rest import RestClient

_LOG = logging.getLogger(__name__)

#: Heaps of HiveServer2 and of its shell, and the memory of this machine that the two take.
SERVER_HEAP_MB, SHELL_HEAP_MB, BOTH_MB = 640, 192, 1300
POLL_S = 0.5


@dataclass
class Shell:
    """A query that runs or has ended. ``answer``: the shell's standard output; ``log``: its other output."""

    process: subprocess.Popen[bytes]
    answer: Path
    log: Path

    def kill(self) -> None:
        """Kill the shell, if it has not ended."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()

    def said(self) -> str:
        """Return what the shell printed besides the answer."""
        return self.log.read_text(errors="replace") if self.log.exists() else ""

    def read(self, name: str) -> tuple[list[str], list[list[Any]]]:
        """Return the query's columns and rows. Raises RunInvalid if none were printed."""
        try:
            return read_answer(self.answer.read_text(encoding="utf-8", errors="replace"))
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            words = " | ".join(last_lines(self.said(), 3))
            raise RunInvalid(f"{name}: the shell printed no result: {words}") from None


def read_answer(out: str) -> tuple[list[str], list[list[Any]]]:
    """Return (columns, rows) of a shell's output: one result as JSON. Raises ValueError if there is none."""
    start = out.find('{"resultset":')
    if start < 0:
        raise ValueError("no result")
    rows = json.loads(out[start:])["resultset"]
    columns = list(rows[0]) if rows else []
    return columns, [list(row.values()) for row in rows]


@dataclass
class HiveServer:
    """One HiveServer2. ``jars``: the folder of its jars."""

    rest: RestClient
    place: HivePlace
    jars: Path
    progress: Callable[[str], None] = lambda _: None
    java: str = field(default_factory=java_program)
    #: The names of the applications that its sessions have had.
    names: set[str] = field(default_factory=set)

    def configure(self, given: Mapping[str, str], sizes: Sizes, queue: str, properties: Mapping[str, str]) -> None:
        """Write its configuration.

        ``given``: the cluster's properties; sizes and queue are the defaults of sessions.
        """
        work = self.place.work
        os.chmod(work, 0o755)
        conf = work / "conf"
        for folder in (conf, work / "staging", work / "history"):
            folder.mkdir()
        everything = site.render({**given, "hadoop.tmp.dir": str(work / "tmp")})
        for name in ("core-site.xml", "yarn-site.xml"):
            site.write(conf / name, everything)
        site.write(conf / "hive-site.xml", site.render({**hive_properties(self.place, sizes), **properties}))
        site.write(conf / "tez-site.xml", site.render({**tez_properties(self.place, sizes, queue=queue), **properties}))
        site.write(conf / "hive-log4j2.properties", LOG4J2)

    @contextlib.contextmanager
    def serving(self, end: float) -> Iterator[None]:
        """Run the server while the context lasts.

        Raises RunInvalid, and RunTimedOut at ``end`` (of the monotonic clock).
        """
        self.progress("starting HiveServer2")
        place = self.place
        mark, log = f"hive-{uuid.uuid4().hex}", place.work / "server.log"
        command = [self.java, *installation.JAVA, f"-Xmx{SERVER_HEAP_MB}m", f"-Djava.io.tmpdir={place.work}"]
        command += [f"-Dlog4j2.configurationFile={place.work / 'conf' / 'hive-log4j2.properties'}"]
        command += ["-cp", f"{place.work / 'conf'}:{self.jars}/*", installation.SERVER]
        environment = {**_environment(place), processes.MARK: mark}
        started = processes.start(command, environment=environment, folder=place.work, log=log)
        try:
            while not port_taken(place.port):
                if not started.alive:
                    lines = last_lines(log.read_text(errors="replace"))
                    raise RunInvalid(f"HiveServer2 ended: {' | '.join(lines) or 'it said nothing'}")
                if time.monotonic() >= end:
                    raise RunTimedOut("HiveServer2 did not come up in time", hint="raise --timeout")
                time.sleep(POLL_S)
            yield
        finally:
            # The server closes its sessions, and with them Tez' AMs.
            processes.stop([started], mark, grace_s=20.0)

    def ask(self, name: str, script: str) -> Shell:
        """Start a shell that sends a query; its files have this name."""
        work = self.place.work
        file = work / f"{name}.sql"
        file.write_text(script, encoding="utf-8")
        command = [self.java, *installation.JAVA, f"-Xmx{SHELL_HEAP_MB}m", "-cp", f"{self.jars}/*", installation.SHELL]
        command += ["-d", installation.DRIVER, "-u", f"jdbc:hive2://127.0.0.1:{self.place.port}/"]
        command += ["-n", getpass.getuser(), "-p", "none", "--silent=true"]
        command += ["--outputformat=json", "--isolation=TRANSACTION_NONE"]
        command += [f"--run={file}"]
        out, err = work / f"{name}.out", work / f"{name}.log"
        with out.open("wb") as output, err.open("wb") as said:
            process = subprocess.Popen(
                command,
                cwd=work,
                env={**_environment(self.place), "HOME": str(work)},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=said,
                start_new_session=True,
            )
        _LOG.debug("started %s as process %s, output in %s", shown(shlex.join(command)), process.pid, err)
        return Shell(process, out, err)

    def apps(self) -> list[AppStatus]:
        """Return the applications of its sessions, in order.

        Hive replaces the tags of the submission, but names each application after its session.

        A session has a folder, with its resources beside it, only while it is open, so the sessions are remembered.
        """
        folders = (self.place.work / "scratch").glob("**/_tez_session_dir/*")
        self.names |= {f"HIVE-{folder.name.removesuffix('-resources')}" for folder in folders}
        return [app for app in self.rest.apps() if app.name in self.names] if self.names else []

    def kill(self) -> None:
        """Kill its applications that still run on YARN; those that cannot be killed are left to the ResourceManager."""
        with contextlib.suppress(YarnfairError):
            self.rest.kill_all(self.apps())

    def why(self, name: str, said: str, only: str | None = None) -> str:
        """Return the reason of a failed query: Hive's message, YARN's, and the failed attempt's.

        ``only``: the query's application, if other applications belonged to other queries.
        """
        errors = [line[7:].strip() for line in said.splitlines() if line.startswith("Error: ")]
        found = [f"{name} failed", " ".join(" ".join(errors[:1]).split())[:400]]
        # If YARN does not answer, only the client's message is reported.
        with contextlib.suppress(YarnfairError):
            for app in self.apps():
                if app.final and app.final_status != "SUCCEEDED" and only in (None, app.id):
                    found.append(told_by_yarn(app))
        attempts = [one for one in histories(self.place.work / "history") if only in (None, one.job)]
        failed = next((one for one in attempts if one.outcome == "failed"), None)
        if failed is not None:
            found.append(f"{failed.attempt}: {told_of(failed)[:400]}")
            if lines := last_lines(container_log(failed)):
                found.append(f"its log ends: {' | '.join(lines)}")
        elif not errors:
            found.append(" | ".join(last_lines(said)))
        return "; ".join(text for text in found if text)


def _environment(place: HivePlace) -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("HADOOP_", "YARN_", "JAVA_TOOL", "HIVE_", "TEZ_"))}
    return {**kept, "HADOOP_CONF_DIR": str(place.work / "conf")}
