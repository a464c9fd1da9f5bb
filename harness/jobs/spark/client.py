"""Runs Spark programs on a YARN cluster: submitted through REST, their logs and answers read."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.base.errors import InputError, RunInvalid
from harness.clusters.processes import free_mb
from harness.jobs.engines.cluster import last_lines, on_this_machine, running_nodes, told_by_yarn
from harness.jobs.spark.catalogue import SparkProgram, settings_of
from harness.jobs.spark.plan import Input, Plan, SparkPlace, SparkSizes, fits, plan
from harness.jobs.spark.site import SparkSite, check_limit, read_input
from harness.jobs.submit import scheduler_address
from harness.model.data import data_path
from harness.yarn.answers import AppStatus
from harness.yarn.rest import RestClient

#: log4j2's lines as Spark writes them, of what went well.
_LOGGED = re.compile(r"^\d\d/\d\d/\d\d \d\d:\d\d:\d\d (INFO|WARN|DEBUG) ")
_EXCEPTION = re.compile(r"^(pyspark|py4j|[A-Za-z_.]*(Error|Exception))\S*: ")


@dataclass(frozen=True, slots=True)
class Submitted:
    """A program that the ResourceManager took. ``app``: the application's id."""

    app: str
    program: SparkProgram
    plan: Plan
    settings: Mapping[str, str]
    data: Input


class SparkClient:
    """Submits programs to one ResourceManager. ``tag`` marks its jobs."""

    def __init__(
        self, rest: RestClient, site: SparkSite, *, tag: str, progress: Callable[[str], None] = lambda _: None
    ) -> None:
        self.rest, self.site, self.tag, self._progress = rest, site, tag, progress
        self._scheduler: str | None = None

    def submit(
        self,
        program: SparkProgram,
        folder: Path,
        sizes: SparkSizes,
        *,
        queue: str,
        settings: Mapping[str, str],
        properties: Mapping[str, str],
    ) -> Submitted:
        """Puts a program's files where the nodes see them, and submits it. ``folder``: its data, of this machine.

        Raises CallError and InputError for what cannot be run: settings, data.
        """
        found, given = settings_of(program, settings), read_input(program, folder)
        if self._scheduler is None:
            self._scheduler = scheduler_address(self.rest)
        home, data = self.site.home(self._progress), self.site.data(given, self._progress)
        loopback = self.site.loopback and on_this_machine(self.rest)
        place = SparkPlace(home, self.site.shared.path, self.site.python, self._scheduler, loopback)
        name = f"{program.name}-{uuid.uuid4().hex[:12]}"
        planned = plan(
            program,
            found,
            sizes,
            place,
            data,
            queue=queue,
            name=name,
            tags=[self.tag, name],
            source=data_path("workloads", "spark", program.file).read_bytes(),
            properties=properties,
        )
        self.site.shared.write(planned.files)
        try:
            app = self.rest.submit(planned.submission)
        except BaseException:
            # Interrupted, or its answer lost: it may have been taken.
            self.rest.kill_tagged(name)
            raise
        return Submitted(app, program, planned, found, given)

    def events(self, submitted: Submitted) -> list[str]:
        """The lines of the event log, as far as it was written."""
        for name in (f"{submitted.app}_1", f"{submitted.app}_1.inprogress", submitted.app):
            content = self.site.shared.read(name)
            if content is not None:
                return content.decode(errors="replace").splitlines()
        return []

    def answer(self, submitted: Submitted) -> bytes:
        """The answer of a program that ended well. Raises RunInvalid where it left none."""
        content = self.site.shared.read(submitted.plan.answer)
        if content is None:
            raise RunInvalid(f"{submitted.program.name} ended well and left no answer; {self._log_words(submitted)}")
        return content

    # --- before it starts ---

    def check_room(self, sizes: SparkSizes) -> None:
        """Refuses what would not fit: into the nodes, into their containers, into this machine. Raises InputError."""
        nodes, where = [node.total for node in running_nodes(self.rest)], self.rest.http.current
        if (why := fits(sizes, nodes)) is not None:
            raise InputError(why, where=where, mend="ask for fewer or smaller executors, or give the nodes more")
        asked = sizes.am_mb + sizes.executors * sizes.executor_mb
        check_limit(min(asked, max(node.memory_mb for node in nodes)), self.site.node_limit_mb(), where)
        free = free_mb() if on_this_machine(self.rest) else None
        if free is not None and asked > free:
            raise InputError(
                f"memory is short: the application master and {sizes.executors} executor(s) take {asked} MB, this "
                f"machine has {free} MB left",
                where=where,
                mend="ask for fewer or smaller executors, or wait",
            )

    # --- why it failed ---

    def why(self, submitted: Submitted, app: AppStatus) -> str:
        """The reason of a failed program: what YARN says, and its log's last lines."""
        return f"{submitted.program.name} failed; {told_by_yarn(app)}; {self._log_words(submitted)}"

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
