"""Runs an application on a YARN cluster by Hadoop's own client: submitted, followed, killed when it has to be.

The client needs no Hadoop installation and no site files: the ResourceManager tells its configuration (``/conf``), the
jars come from harness.clusters.jars. Inputs, output and staging lie in a folder that this machine and all nodes see
alike, or in HDFS (harness.jobs.mapreduce.storage). What a task needs is asked from the cluster and, where its nodes
are this machine, from this machine.
"""

from __future__ import annotations

import contextlib
import math
import os
import signal
import subprocess
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from harness.base.errors import CallError, InputError, RunInvalid, RunTimedOut, YarnfairError
from harness.clusters import jars, site
from harness.clusters.daemons import java_program
from harness.jobs.data.targets import FolderTarget, HdfsTarget, Target
from harness.jobs.engines.attempts import Attempt
from harness.jobs.engines.base import Done
from harness.jobs.engines.cluster import (
    CLIENT_MB,
    Sizes,
    available_mb,
    check_memory,
    cluster_properties,
    container_log,
    last_lines,
    on_this_machine,
    told_of,
)
from harness.jobs.mapreduce.answers import CHECKS, output_files
from harness.jobs.mapreduce.catalogue import Application, Call, HadoopJob, settings_of
from harness.jobs.mapreduce.history import histories
from harness.jobs.mapreduce.storage import (
    DataSet,
    beside,
    exists,
    fetch,
    fetch_histories,
    fetch_output,
    last_name,
    open_data,
    remove,
    target_of,
    uri_of,
)
from harness.model.data import data_path
from harness.yarn.answers import AppStatus
from harness.yarn.rest import RestClient

_OPENS = [f"--add-opens=java.base/java.{name}=ALL-UNNAMED" for name in ("lang", "util", "net")]
_JAVA = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
#: Heap of a task as a part of its container: the rest is Java's own and the streaming program's.
_HEAP = 0.5


@dataclass(frozen=True, slots=True)
class Request:
    """One run of one application."""

    application: Application
    inputs: tuple[Path | Target, ...]
    output: Path | Target
    queue: str = "default"
    sizes: Sizes = field(default_factory=Sizes)
    settings: Mapping[str, str] = field(default_factory=dict)
    python: str = "python3"
    check: bool = True
    timeout_s: float = 1800.0
    #: More properties of the jobs (``-D``).
    properties: Mapping[str, str] = field(default_factory=dict)


def streaming_jar(progress: Callable[[str], None] = lambda _: None) -> Path:
    """Hadoop Streaming's jar, resolved by Maven the first time. Raises InputError, RunTimedOut."""
    return jars.find_one("hadoop-streaming-", data_path("workloads", "streaming-pom.xml"), progress=progress)


# --- before it starts -------------------------------------------------------------------------------------------------


def data_sets(request: Request) -> list[DataSet]:
    """The inputs, each checked for what it is.

    Raises CallError for another number of inputs than the application has, InputError for data that cannot be used.
    """
    wanted = request.application.data
    if len(request.inputs) != len(wanted):
        raise CallError(
            f"{request.application.name} reads {' and '.join(wanted)}, given are {len(request.inputs)} folder(s)",
            where="--input",
            mend="give one for each, in this order",
        )
    return [open_data(target_of(place), kind) for kind, place in zip(wanted, request.inputs, strict=True)]


class _Failed(Exception):
    """A client has ended badly. ``log``: what it said."""

    def __init__(self, log: str) -> None:
        super().__init__(log)
        self.log = log


def _fetch_history(staged: Target, work: Path) -> None:
    if isinstance(staged, HdfsTarget):
        with contextlib.suppress(YarnfairError):
            fetch_histories(staged, work / "history")


# --- the run ----------------------------------------------------------------------------------------------------------


class Client:
    """Runs applications on one cluster. ``stop``: set, what runs ends as when it is interrupted."""

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

    def run(self, request: Request, on_step: Callable[[list[AppStatus]], None] = lambda _: None) -> Done:
        """To its end, checked.

        Raises RunInvalid for a job that failed (why, with its log's last lines), RunTimedOut, InputError, CallError.
        However it ends, nothing of it runs on.
        """
        self.attempts = []
        inputs = data_sets(request)
        settings = settings_of(request.application, request.settings)
        output = target_of(request.output)
        # What one job of a program leaves for its next.
        between = beside(output, f"{last_name(output)}.joined") if request.application.name == "join" else None
        for place in (output, *([] if between is None else [between])):
            if exists(place):
                raise InputError("is there already", where=place.name, mend="give another --output, or remove it")
        free = available_mb(Path("/proc/meminfo").read_text()) if on_this_machine(self.rest) else None
        check_memory(request.sizes, self.rest, free_mb=free)
        library, streaming = jars.find(progress=self._progress), streaming_jar(self._progress)
        given = cluster_properties(self.rest)
        tag = f"job-{uuid.uuid4().hex[:12]}"
        near = None
        if isinstance(output, FolderTarget):
            near = output.folder.absolute().parent
            near.mkdir(parents=True, exist_ok=True)
        # Everything that nodes and this machine share of a job: beside the output.
        with tempfile.TemporaryDirectory(prefix=".staging-", dir=near) as folder:
            work = Path(folder)
            os.chmod(work, 0o755)
            staged = beside(output, f".staging-{tag}") if near is None else FolderTarget(work)
            copies: list[list[Path]] = []
            if request.check or "classes" in settings:
                copies = [fetch(one.target, list(one.files), work / f"in{n}") for n, one in enumerate(inputs)]
            if "classes" in settings:
                write_centres(copies[0], settings["classes"], work / "centres.txt")
            if isinstance(output, HdfsTarget):
                # Hadoop's client stages on the default file system alone: for this job it is the output's.
                given["fs.defaultFS"] = output.hdfs.file_system()
            default = given.get("fs.defaultFS", "file:///")
            call = Call(
                tuple(f"{uri_of(one.target, default)}/part-*" for one in inputs),
                uri_of(output, default),
                request.sizes.reduces,
                settings,
                request.python,
                data_path("workloads").absolute(),
                work,
            )
            jobs = list(request.application.jobs(call))
            self._configure(work, request, given, uri_of(staged, default), sum(one.size for one in inputs), tag)
            began, self.zero_ms = time.monotonic(), time.time_ns() // 1_000_000
            classes = os.pathsep.join([str(work / "conf"), str(streaming), f"{library}/*"])
            try:
                for number, job in enumerate(jobs, start=1):
                    left = request.timeout_s - (time.monotonic() - began)
                    try:
                        self._one(request, job, classes, work, tag, left, f"{number} of {len(jobs)}", on_step)
                    except _Failed as failed:
                        _fetch_history(staged, work)
                        raise RunInvalid(self._why(request, tag, work, failed.log)) from None
            finally:
                try:
                    self.rest.kill_tagged(tag)
                finally:
                    _fetch_history(staged, work)
                    with contextlib.suppress(OSError):
                        self.attempts = histories(work)
                    for left_over in (between, staged):
                        if left_over is not None and left_over != FolderTarget(work):
                            with contextlib.suppress(YarnfairError):
                                remove(left_over)
            seconds = time.monotonic() - began
            apps = tuple(self.rest.apps(tags=[tag]))
            verdict = None
            if request.check:
                self._progress("checking the answer")
                found = output_files(fetch_output(output, work / "out"))
                verdict = CHECKS[request.application.name](copies, settings, found)
        return Done(apps, tuple(self.attempts), seconds, verdict, self.zero_ms)

    def _configure(
        self, work: Path, request: Request, given: Mapping[str, str], staged: str, size: int, tag: str
    ) -> None:
        sizes = request.sizes
        heap, am_heap = int(sizes.task_mb * _HEAP), int(sizes.am_mb * 0.6)
        mapred = {
            "mapreduce.framework.name": "yarn",
            "mapreduce.job.queuename": request.queue,
            "mapreduce.job.tags": tag,
            "mapreduce.job.name": request.application.name,
            "yarn.app.mapreduce.am.staging-dir": f"{staged}/staging",
            "mapreduce.jobhistory.intermediate-done-dir": f"{staged}/history",
            # Lines of JSON, which can be read without Avro.
            "mapreduce.jobhistory.jhist.format": "json",
            "yarn.app.mapreduce.am.resource.mb": str(sizes.am_mb),
            "yarn.app.mapreduce.am.command-opts": f"-Xmx{am_heap}m {_JAVA}",
            "mapreduce.map.memory.mb": str(sizes.task_mb),
            "mapreduce.reduce.memory.mb": str(sizes.task_mb),
            "mapreduce.map.java.opts": f"-Xmx{heap}m {_JAVA}",
            "mapreduce.reduce.java.opts": f"-Xmx{heap}m {_JAVA}",
            "mapreduce.task.io.sort.mb": str(max(heap // 4, 16)),
            "mapreduce.job.maps": str(sizes.maps),
            "mapreduce.input.fileinputformat.split.maxsize": str(max(math.ceil(size / sizes.maps), 1)),
            "mapreduce.client.completion.pollinterval": "500",
            "mapreduce.client.progressmonitor.pollinterval": "500",
            # Tasks that a slow machine holds up are no stragglers.
            "mapreduce.map.speculative": "false",
            "mapreduce.reduce.speculative": "false",
        }
        if "mapreduce.application.classpath" not in given and "yarn.application.classpath" in given:
            mapred["mapreduce.application.classpath"] = given["yarn.application.classpath"]
        mapred.update(request.properties)
        conf = work / "conf"
        conf.mkdir()
        # The RM tells its mapred-site.xml too: the job's own properties stand above it, whichever file is read last.
        everything = site.render({**given, "hadoop.tmp.dir": str(work / "tmp"), **mapred})
        for name in ("core-site.xml", "yarn-site.xml", "mapred-site.xml"):
            site.write(conf / name, everything)
        site.write(conf / "log4j.properties", site.LOG4J)

    def _one(
        self,
        request: Request,
        job: HadoopJob,
        classes: str,
        work: Path,
        tag: str,
        left_s: float,
        which: str,
        on_step: Callable[[list[AppStatus]], None],
    ) -> None:
        words = [f"-D{name}={value}" for name, value in job.properties.items()]
        if job.files:
            words += ["-files", ",".join(f"file://{file}" for file in job.files)]
        command = [self.java, *_OPENS, *_JAVA.split(), f"-Xmx{CLIENT_MB - 100}m", "-cp", classes, job.main]
        environment = {k: v for k, v in os.environ.items() if not k.startswith(("HADOOP_", "YARN_", "JAVA_TOOL"))}
        log = work / "client.log"
        self._progress(f"{request.application.name}: job {which}")
        with log.open("wb") as out:
            process = subprocess.Popen(
                [*command, *words, *job.arguments],
                cwd=work,
                env={**environment, "HADOOP_CONF_DIR": str(work / "conf")},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        try:
            end = time.monotonic() + left_s
            while process.poll() is None:
                if self._stop.is_set():
                    raise RunInvalid(f"{request.application.name} was interrupted")
                if time.monotonic() >= end:
                    raise RunTimedOut(
                        f"{request.application.name} had not ended after {request.timeout_s:g} s", where=str(log.name)
                    )
                with contextlib.suppress(YarnfairError):
                    on_step(self.rest.apps(tags=[tag]))
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(0.5)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        if process.returncode != 0:
            raise _Failed(log.read_text(errors="replace"))

    # --- why it failed ---

    def _why(self, request: Request, tag: str, work: Path, log: str) -> str:
        """The reason of a failed job: what YARN says, and the last lines of the log that knows more."""
        failed = None
        with contextlib.suppress(YarnfairError):
            failed = next((app for app in self.rest.apps(tags=[tag]) if app.final_status not in ("SUCCEEDED",)), None)
        said = [f"{request.application.name} failed"]
        if failed is not None:
            said.append(f"{failed.id} {failed.final_status}: {' '.join(failed.diagnostics.split())[:300]}")
        attempt = next((one for one in histories(work) if one.outcome == "failed"), None)
        lines: list[str] = []
        if attempt is not None:
            lines = last_lines(container_log(attempt))
            said.append(f"{attempt.attempt}: {told_of(attempt)}")
            if lines:
                said.append("its log ends")
        if not lines and attempt is None:
            lines = last_lines(log)
            said.append("the client's log ends")
        return ": ".join(["; ".join(said), " | ".join(lines)]) if lines else "; ".join(said)


def write_centres(files: Sequence[Path], classes: str, target: Path) -> None:
    """The first movies of the input, as many as there are classes."""
    if not classes.isdigit() or not 1 <= int(classes) <= 1000:
        raise CallError(f"classes is {classes[:20]!r}", where="--set", mend="give a number from 1 to 1000")
    lines: list[bytes] = []
    for file in files:
        with file.open("rb") as rows:
            for row in rows:
                if len(lines) == int(classes):
                    break
                lines.append(row.rstrip(b"\n") + b"\n")
    target.write_bytes(b"".join(lines))
