"""Runs Spark programs on a YARN cluster: submitted through REST, followed, measured, checked, killed if need be."""

from __future__ import annotations

import contextlib
import json
import re
import threading
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from harness.base.errors import InputError, RunInvalid, RunTimedOut, YarnfairError
from harness.jobs.engines.attempts import Attempt, Verdict
from harness.jobs.engines.base import Done
from harness.jobs.engines.cluster import available_mb, last_lines
from harness.jobs.spark.answers import check
from harness.jobs.spark.catalogue import SparkProgram, settings_of
from harness.jobs.spark.events import read_events
from harness.jobs.spark.plan import Input, Place, Plan, SparkSizes, fits, plan
from harness.jobs.spark.site import SparkSite, check_limit, read_input
from harness.jobs.submit import scheduler_address
from harness.model.data import data_path
from harness.yarn.answers import AppStatus
from harness.yarn.rest import RestClient

_POLL_S = 0.5
#: log4j2's lines as Spark writes them, of what went well.
_LOGGED = re.compile(r"^\d\d/\d\d/\d\d \d\d:\d\d:\d\d (INFO|WARN|DEBUG) ")
_EXCEPTION = re.compile(r"^(pyspark|py4j|[A-Za-z_.]*(Error|Exception))\S*: ")


@dataclass(frozen=True, slots=True)
class SparkRequest:
    """One run of one program. ``input``: a data set of this machine; ``output``: a folder that is not there yet."""

    application: SparkProgram
    input: Path
    output: Path
    queue: str = "default"
    sizes: SparkSizes = field(default_factory=SparkSizes)
    settings: Mapping[str, str] = field(default_factory=dict)
    check: bool = True
    timeout_s: float = 1800.0
    #: More of Spark's properties.
    properties: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Submitted:
    """A program that the ResourceManager took. ``app``: the application's id."""

    app: str
    request: SparkRequest
    plan: Plan
    settings: Mapping[str, str]
    data: Input
    began: float
    zero_ms: int


class SparkClient:
    """Runs programs on one cluster. ``stop``: set, what runs ends as when it is interrupted; ``tag`` marks its jobs."""

    def __init__(
        self,
        rest: RestClient,
        site: SparkSite,
        *,
        tag: str | None = None,
        progress: Callable[[str], None] = lambda _: None,
        stop: threading.Event | None = None,
    ) -> None:
        self.rest, self.site, self._progress, self._stop = rest, site, progress, stop or threading.Event()
        self.tag = tag or f"spark-{uuid.uuid4().hex[:12]}"
        #: What the ResourceManager took, in order.
        self.submitted: list[Submitted] = []
        self._scheduler: str | None = None

    # --- step by step, for who follows several at once ---

    def submit(self, request: SparkRequest, *, room: bool = True) -> Submitted:
        """Checks, puts the program's files where the nodes see them, and submits it.

        ``room``: whether to look for room (`check_room`); a run did before it began, and what is left of the machine's
        memory since then is less by what its own containers take.

        Raises CallError and InputError for what cannot be run: settings, data, memory.
        """
        settings = settings_of(request.application, request.settings)
        given = read_input(request.application, request.input)
        if request.output.exists():
            raise InputError("is there already", where=str(request.output), mend="give another folder, or remove it")
        if room:
            self.check_room(request.sizes)
        if self._scheduler is None:
            self._scheduler = scheduler_address(self.rest)
        home, data = self.site.home(self._progress), self.site.data(given, self._progress)
        loopback = self.site.loopback and self._on_this_machine()
        place = Place(home, self.site.shared.path, self.site.python, self._scheduler, loopback)
        name = f"{request.application.name}-{uuid.uuid4().hex[:12]}"
        planned = plan(
            request.application,
            settings,
            request.sizes,
            place,
            data,
            queue=request.queue,
            name=name,
            tags=[self.tag, name],
            source=data_path("workloads", "spark", request.application.file).read_bytes(),
            properties=request.properties,
        )
        self.site.shared.write(planned.files)
        began, zero_ms = time.monotonic(), time.time_ns() // 1_000_000
        try:
            app = self.rest.submit(planned.submission)
        except BaseException:
            # Interrupted, or its answer lost: it may have been taken.
            self.rest.kill_tagged(name)
            raise
        found = Submitted(app, request, planned, settings, given, began, zero_ms)
        self.submitted.append(found)
        return found

    def attempts(self, submitted: Submitted) -> list[Attempt]:
        """What was measured so far: executors and tasks, of a job that was killed or failed too."""
        return read_events(self.events(submitted))

    def events(self, submitted: Submitted) -> list[str]:
        """The lines of the event log, as far as it was written."""
        for name in (f"{submitted.app}_1", f"{submitted.app}_1.inprogress", submitted.app):
            content = self.site.shared.read(name)
            if content is not None:
                return content.decode(errors="replace").splitlines()
        return []

    def collect(self, submitted: Submitted, app: AppStatus) -> Done:
        """The result of a program that has ended: its answer (also as ``answer`` in the output folder), its tasks.

        Raises RunInvalid for one that failed: why, with its log's last lines.
        """
        seconds = time.monotonic() - submitted.began
        request = submitted.request
        if app.final_status != "SUCCEEDED":
            raise RunInvalid(self.why(submitted, app))
        content = self.site.shared.read(submitted.plan.answer)
        if content is None:
            raise RunInvalid(f"{request.application.name} ended well and left no answer; {self._log_words(submitted)}")
        try:
            request.output.mkdir(parents=True)
            (request.output / "answer").write_bytes(content)
        except OSError as error:
            raise InputError(f"cannot be written: {error.strerror}", where=str(request.output)) from None
        verdict: Verdict | None = None
        if request.check:
            self._progress(f"{request.application.name}: checking the answer")
            verdict = check(request.application, submitted.settings, submitted.data, content)
        return Done((app,), tuple(self.attempts(submitted)), seconds, verdict, submitted.zero_ms)

    def kill(self, submitted: Submitted) -> None:
        """Kills a program that has not ended; what cannot be killed is left to the ResourceManager."""
        with contextlib.suppress(YarnfairError):
            if not self.rest.app(submitted.app).final:
                self.rest.kill(submitted.app, timeout_s=15.0)

    # --- all at once ---

    def run(self, request: SparkRequest, on_step: Callable[[list[AppStatus]], None] = lambda _: None) -> Done:
        """To its end, checked.

        Raises RunInvalid for a program that failed, RunTimedOut, InputError, CallError. However it ends, it does not
        run on.
        """
        submitted = self.submit(request)
        self._progress(f"{request.application.name}: {submitted.app}")
        try:
            return self.collect(submitted, self.wait(submitted, on_step))
        finally:
            self.kill(submitted)

    def wait(self, submitted: Submitted, on_step: Callable[[list[AppStatus]], None] = lambda _: None) -> AppStatus:
        """Until it has ended. Raises RunTimedOut, RunInvalid when it was interrupted."""
        request = submitted.request
        end = submitted.began + request.timeout_s
        while True:
            with contextlib.suppress(YarnfairError):
                app = self.rest.app(submitted.app)
                on_step([app])
                if app.final:
                    return app
            if time.monotonic() >= end:
                raise RunTimedOut(
                    f"{request.application.name} had not ended after {request.timeout_s:g} s", where=submitted.app
                )
            if self._stop.wait(_POLL_S):
                raise RunInvalid(f"{request.application.name} was interrupted")

    # --- before it starts ---

    def check_room(self, sizes: SparkSizes) -> None:
        """Refuses what would not fit: into the nodes, into their containers, into this machine. Raises InputError."""
        nodes = [node.total for node in self.rest.nodes() if node.state == "RUNNING"]
        where = self.rest.http.current
        if not nodes:
            raise InputError("no node is RUNNING", where=where, mend="ask `yarnfair cluster doctor`")
        if (why := fits(sizes, nodes)) is not None:
            raise InputError(why, where=where, mend="ask for fewer or smaller executors, or give the nodes more")
        asked = sizes.am_mb + sizes.executors * sizes.executor_mb
        check_limit(min(asked, max(node.memory_mb for node in nodes)), self.site.node_limit_mb(), where)
        if self._on_this_machine():
            free = available_mb(Path("/proc/meminfo").read_text())
            if asked > free:
                raise InputError(
                    f"memory is short: the application master and {sizes.executors} executor(s) take {asked} MB, this "
                    f"machine has {free} MB left",
                    where=where,
                    mend="ask for fewer or smaller executors, or wait",
                )

    def _on_this_machine(self) -> bool:
        return (urlsplit(self.rest.http.current).hostname or "") in ("127.0.0.1", "localhost", "::1")

    # --- why it failed ---

    def why(self, submitted: Submitted, app: AppStatus) -> str:
        """The reason of a failed program: what YARN says, and its log's last lines."""
        name = submitted.request.application.name
        told = " ".join(app.diagnostics.split())[:300]
        return f"{name} failed; {app.id} {app.final_status}: {told or 'no reason given'}; {self._log_words(submitted)}"

    def _log_words(self, submitted: Submitted) -> str:
        content = self.site.shared.read(submitted.plan.log)
        lines = driver_lines((content or b"").decode(errors="replace"))
        return f"its log ends: {' | '.join(lines)}" if lines else "it left no log"


def driver_lines(log: str) -> list[str]:
    """The lines of a driver's log that say why: the program's own exception where there is one, else its end."""
    lines = [line for line in log.splitlines() if not _LOGGED.match(line)]
    # Java's words after Python's own only say that the program ended so; before it, the first is what came first.
    traces = [number for number, line in enumerate(lines) if line.startswith("Traceback ")]
    for number in range(traces[-1] if traces else 0, len(lines)):
        if _EXCEPTION.match(lines[number]):
            # What Java said to Python stands below, up to its stack.
            end = number + 1
            while end < min(number + 4, len(lines)) and not lines[end].lstrip().startswith("at "):
                end += 1
            return last_lines("\n".join(lines[max(number - 3, 0) : end]))
    return last_lines("\n".join(lines))


def engine_document(submitted: Sequence[Submitted]) -> dict[str, Any]:
    """Versions and settings of the engine, for run.json: what all of these runs have in common."""
    from harness.jobs.spark.installation import version

    found: dict[str, str] = {}
    for number, one in enumerate(submitted):
        properties = dict(one.plan.properties)
        found = properties if not number else {k: v for k, v in found.items() if properties.get(k) == v}
    return json.loads(json.dumps({"spark": version(), "properties": found}))  # type: ignore[no-any-return]
