"""The base of all engines of programs: MapReduce, Spark, Hive on Tez.

An engine is a subclass of `Engine` in its own package, with a line in `harness.jobs.engines.ENGINES`. It lists its
programs, converts a workload's program to jobs (`Engine.jobs`), and runs them: in parallel in an experiment, or a
single one (harness.experiments.real.single).
"""

from __future__ import annotations

import contextlib
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal

from harness.base.errors import CallError, YarnfairError
from harness.base.files import writing
from harness.clusters.processes import free_mb
from harness.clusters.shared import SharedFolder
from harness.jobs.data.targets import Target
from harness.jobs.engines.attempts import Attempt, Verdict
from harness.jobs.engines.cluster import Sizes, check_memory, on_this_machine, told_by_yarn
from harness.jobs.replay import JobRecord
from harness.model.jobs import Duration, JobSpec
from harness.model.resources import Resource
from harness.traces.spec import DataSpec, ProgramSpec
from harness.yarn.answers import AppStatus
from harness.yarn.rest import RestClient

#: Placeholder for a task's time that is not known yet.
UNKNOWN = Duration("constant", value_s=1.0)
#: What happens to a workload's answers.
Answers = Literal["keep", "leave"] | None


@dataclass(frozen=True, slots=True)
class Program:
    """One program. ``data``: the kinds of data sets that it reads (harness.jobs.data), one folder each, in this order.

    ``settings``: its own settings and their defaults; ``forms``: (pattern of a value, description), of which the first
    that matches the default applies. If none does, any value is valid.
    """

    name: str
    suite: str
    what: str
    data: tuple[str, ...]
    settings: Mapping[str, str] = field(default_factory=dict)
    forms: ClassVar[tuple[tuple[re.Pattern[str], str], ...]] = ()

    def settings_with(self, given: Mapping[str, str]) -> dict[str, str]:
        """Return the defaults updated with the given settings.

        Raises CallError for an unknown one or an invalid value.
        """
        for name, value in given.items():
            if name not in self.settings:
                names = ", ".join(self.settings) or "none"
                raise CallError(f"{self.name} has no setting {name[:40]!r}", where="--set", hint=f"it has {names}")
            form = next((one for one in self.forms if one[0].fullmatch(self.settings[name])), None)
            if form is not None and not form[0].fullmatch(value):
                raise CallError(f"{name} is {value[:40]!r}", where="--set", hint=f"give {form[1]}")
        return {**self.settings, **given}


# --- jobs of a workload -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Sizing:
    """The values that a workload gives for all of its programs.

    ``am`` and ``task``: the containers of an AM and of a task; ``slow_start``: the fraction of the maps that must have
    ended before reduces are requested.
    """

    am: Resource
    task: Resource
    slow_start: float = 1.0
    #: ``keep``: answers are checked and kept; ``leave``: neither; None: only checked.
    answers: Answers = None


@dataclass(frozen=True, slots=True)
class ProgramRun:
    """One run of a workload's program. ``count``: converts numbers of tasks and executors to scaled ones."""

    program: ProgramSpec
    inputs: tuple[DataSpec, ...]
    sizing: Sizing
    queue: str
    identity: str
    count: Callable[[int], int] = lambda number: number

    @property
    def name(self) -> str:
        """The program's type, or else its application."""
        return self.program.type or self.program.application


@dataclass(frozen=True, slots=True)
class ProgramJob:
    """One YARN application that computes.

    ``engine``: its name; ``spec``: the job as known before its run. ``step``: which of its program's jobs it is, from
    1; ``first``: the id of the program's first one; ``inputs``: data sets, in the order in which they are read.
    """

    engine: str
    spec: JobSpec
    program: ProgramSpec
    inputs: tuple[DataSpec, ...]
    sizing: Sizing
    maps: int
    reduces: int
    executors: int
    step: int
    steps: int
    first: str

    @property
    def application(self) -> str:
        """The application's name in lower case."""
        return self.program.application.lower()


# --- single programs --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Request:
    """One run of a single program. None: the engine's default. ``output`` must not exist yet.

    ``task_mb``: memory of a task's container (in Spark an executor's); ``am_mb``: memory of the AM. MiB.
    """

    program: str
    inputs: tuple[Path | Target, ...]
    output: Path | Target
    queue: str = "default"
    maps: int = 4
    reduces: int = 2
    task_mb: int | None = None
    am_mb: int | None = None
    executors: int = 2
    executor_cores: int = 1
    settings: Mapping[str, str] = field(default_factory=dict)
    check: bool = True
    timeout_s: float = 1800.0
    #: Additional properties of the engine.
    properties: Mapping[str, str] = field(default_factory=dict)


# --- a run ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Site:
    """The cluster of a run's programs.

    ``shared``: a folder that all nodes see; ``data``: folders of this machine, or in HDFS; ``python``: on the nodes;
    ``tag`` marks the run's applications. ``elsewhere``: whether the nodes are other machines, which still see the
    folder. ``output``: output folder of a single program; ``properties``: additional ones of the engine.
    """

    rest: RestClient
    shared: SharedFolder
    python: str
    data: Mapping[DataSpec, Path | Target]
    tag: str
    am_heartbeat_ms: int = 1000
    elsewhere: bool = False
    output: Path | Target | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    progress: Callable[[str], None] = lambda _: None

    @property
    def folders(self) -> dict[DataSpec, Path]:
        """Return the data on this machine."""
        return {spec: place for spec, place in self.data.items() if isinstance(place, Path)}


class EnginePrograms(ABC):
    """The programs of one engine in one run, by the ids of their jobs."""

    jobs: Mapping[str, ProgramJob]

    @abstractmethod
    def prepare(self) -> None:
        """Put the needed files where the nodes see them, before the measured time.

        Raises CallError and InputError for programs that cannot run, and errors of requests to the ResourceManager.
        """

    @abstractmethod
    def submit(self, job_id: str) -> str | None:
        """Submit a job, again if it was submitted before.

        Returns the application's ID, or None if only `taken` will know it.
        """

    def taken(self, job_id: str) -> str | None:
        """Return the application of a job that was submitted without one; None: not yet.

        Raises RunInvalid for a job that failed before it had one.
        """
        return None

    def kill(self) -> None:
        """Kill unfinished applications that do not have the run's tag; the caller kills those that have it."""
        return

    @abstractmethod
    def record(self, job_id: str, status: AppStatus | None = None) -> JobRecord:
        """Return what is known of a job's tasks; for a failed job also why. Raises InputError."""

    @abstractmethod
    def attempts(self, job_id: str) -> list[Attempt]:
        """Return the measurements of a job so far. Raises InputError."""

    def why(self, job_id: str, status: AppStatus) -> str:
        """Return why a job failed: YARN's diagnostics, and the engine's own records and logs."""
        said = [f"{self.jobs[job_id].application} failed", told_by_yarn(status)]
        # The engine may have no record; YARN's diagnostics are returned.
        with contextlib.suppress(YarnfairError):
            said.append(self.record(job_id, status).why)
        return "; ".join(text for text in said if text)

    @abstractmethod
    def measured(self, job_id: str, status: AppStatus | None) -> JobSpec:
        """Return a job as it ran, with the time of each task."""

    @abstractmethod
    def check(self, job_id: str, status: AppStatus | None = None) -> Verdict | None:
        """Return whether an ended job's answer is correct; None: it has none. Raises RunInvalid, InputError."""

    @abstractmethod
    def deliver(self, job_id: str, output: Path | Target) -> None:
        """Hand a successful program's output to its caller. Raises RunInvalid, InputError."""

    @abstractmethod
    def document(self) -> dict[str, Any]:
        """Return versions and settings of the engine, for ``run.json``."""

    @abstractmethod
    def close(self) -> None:
        """Release what the run has taken on this machine and in the cluster's folder."""


# --- the engine -------------------------------------------------------------------------------------------------------


class Engine(ABC):
    """One engine of programs."""

    name: ClassVar[str]
    #: Names of several programs, run one after another.
    groups: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    #: Memory of this machine that it needs besides its containers, MiB.
    beside_mb: ClassVar[int] = 0
    #: Default sizes of a single program; whether it can read and write HDFS.
    sizes: ClassVar[Sizes] = Sizes()
    uses_hdfs: ClassVar[bool] = False

    @abstractmethod
    def programs(self) -> Mapping[str, Program]:
        """Return all programs by name."""

    @abstractmethod
    def check(self, program: ProgramSpec, sizing: Sizing) -> None:
        """Raise CallError for a workload's program that cannot run."""

    @abstractmethod
    def jobs(self, run: ProgramRun) -> list[ProgramJob]:
        """Return the jobs of one run of a program, in order; the submission of the first is not set yet."""

    @abstractmethod
    def load(self, site: Site, jobs: Sequence[ProgramJob]) -> EnginePrograms:
        """Return what runs the jobs of a run, not prepared yet.

        Raises InputError, CallError for an unsuitable cluster.
        """

    def sized(self, request: Request) -> tuple[ProgramSpec, Sizing]:
        """Return a single program in a workload's form. Raises CallError for impossible sizes."""
        sizes = Sizes(
            self.sizes.task_mb if request.task_mb is None else request.task_mb,
            self.sizes.am_mb if request.am_mb is None else request.am_mb,
            request.maps,
            request.reduces,
        )
        program = ProgramSpec(
            application=request.program,
            input=list(self.programs()[request.program.lower()].data),
            maps=sizes.maps,
            reduces=sizes.reduces,
            settings=dict(request.settings),
        )
        return program, Sizing(Resource(sizes.am_mb, 1), Resource(sizes.task_mb, 1))

    def check_room(self, rest: RestClient, job: ProgramJob) -> None:
        """Refuse a single program that does not fit on the nodes, or on this machine. Raises InputError."""
        sizing = job.sizing
        sizes = Sizes(sizing.task.memory_mb, sizing.am.memory_mb, job.maps, max(job.reduces, 1))
        free = free_mb() if on_this_machine(rest) else None
        check_memory(sizes, rest, free_mb=None if free is None else free - self.beside_mb)


def write_answer(output: Path | Target, content: bytes) -> None:
    """Write an answer as the file ``answer`` of a new folder. Raises InputError."""
    assert isinstance(output, Path)
    with writing(output):
        output.mkdir(parents=True)
        (output / "answer").write_bytes(content)
