"""What every engine of programs is: MapReduce, Spark, Hive on Tez. No engine lives here.

An engine is a subclass of `Engine` in a room of its own and a line in `harness.jobs.engines.ENGINES`. It says which
programs there are, makes a workload's program into jobs (`Engine.jobs`), and runs them: beside each other in an
experiment, or one by itself (harness.experiments.real.single).
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

#: Stands where a task's time would: nobody knows it yet.
UNKNOWN = Duration("constant", value_s=1.0)
#: What becomes of a workload's answers.
Answers = Literal["keep", "leave"] | None


@dataclass(frozen=True, slots=True)
class Program:
    """One program. ``data``: the kinds of data sets that it reads (harness.jobs.data), one folder each, in this order.

    ``settings``: its own settings and their defaults; ``forms``: what a value has to look like, and in words: the first
    that the default has. A default that has none takes any value.
    """

    name: str
    suite: str
    what: str
    data: tuple[str, ...]
    settings: Mapping[str, str] = field(default_factory=dict)
    forms: ClassVar[tuple[tuple[re.Pattern[str], str], ...]] = ()

    def settings_with(self, given: Mapping[str, str]) -> dict[str, str]:
        """The settings, those given above the defaults. CallError for an unknown one, or a value of another form."""
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
    """What a workload says for all its programs: the master's container, a task's, when reduces may start."""

    am: Resource
    task: Resource
    slow_start: float = 1.0
    #: ``keep``: answers are checked and kept; ``leave``: neither; None: checked.
    answers: Answers = None


@dataclass(frozen=True, slots=True)
class ProgramRun:
    """One run of a workload's program. ``count``: numbers of tasks and executors as they are scaled."""

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
    """One application of YARN's that computes.

    ``engine``: its name; ``spec``: what is known of it before it ran. ``step``: which of its program's jobs it is,
    from 1; ``first``: the id of the program's first one; ``inputs``: data sets, in the order in which they are read.
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


# --- one by itself ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Request:
    """One run of one program. None: as the engine has it. ``output`` is not there yet.

    ``task_mb``: a task's container, of Spark an executor's; ``am_mb``: the master's. MiB.
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
    #: More of the engine's properties.
    properties: Mapping[str, str] = field(default_factory=dict)


# --- a run ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Site:
    """A cluster as the programs of a run find it.

    ``shared``: a folder that all nodes see; ``data``: folders of this machine, or in HDFS; ``python``: on the nodes;
    ``tag`` marks the run's applications. ``elsewhere``: the nodes are other machines, though they see the folder.
    ``output``: where a program that runs by itself writes; ``properties``: more of the engine's.
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
        """The data of this machine."""
        return {spec: place for spec, place in self.data.items() if isinstance(place, Path)}


class EnginePrograms(ABC):
    """The programs of one engine in one run, by the ids of their jobs."""

    jobs: Mapping[str, ProgramJob]

    @abstractmethod
    def prepare(self) -> None:
        """Puts what is needed where the nodes see it, before anything counts.

        Raises CallError and InputError for what cannot be run, and what asking the ResourceManager raises.
        """

    @abstractmethod
    def submit(self, job_id: str) -> str | None:
        """Submit a job, again if it was submitted before.

        Returns the application's ID, or None where only `taken` will know it.
        """

    def taken(self, job_id: str) -> str | None:
        """The application of a job that was submitted without one; None: not yet.

        Raises RunInvalid for a job that failed before it had one.
        """
        return None

    def kill(self) -> None:
        """Kills what does not carry the run's tag and has not ended."""
        return

    @abstractmethod
    def record(self, job_id: str, status: AppStatus | None = None) -> JobRecord:
        """What is known of a job's tasks; of one that failed also why. Raises InputError."""

    @abstractmethod
    def attempts(self, job_id: str) -> list[Attempt]:
        """What was measured of a job so far. Raises InputError."""

    def why(self, job_id: str, status: AppStatus) -> str:
        """The reason of a job that failed: what YARN says, and the engine's own records and logs."""
        said = [f"{self.jobs[job_id].application} failed", told_by_yarn(status)]
        # The engine may have kept no record; what YARN says is told.
        with contextlib.suppress(YarnfairError):
            said.append(self.record(job_id, status).why)
        return "; ".join(text for text in said if text)

    @abstractmethod
    def measured(self, job_id: str, status: AppStatus | None) -> JobSpec:
        """A job as it ran, each task with its own time."""

    @abstractmethod
    def check(self, job_id: str, status: AppStatus | None = None) -> Verdict | None:
        """Whether the answer of a job that ended is right; None: this job has none. Raises RunInvalid, InputError."""

    @abstractmethod
    def deliver(self, job_id: str, output: Path | Target) -> None:
        """Gives what a program that ended well has written to its caller. Raises RunInvalid, InputError."""

    @abstractmethod
    def document(self) -> dict[str, Any]:
        """Versions and settings of the engine, for ``run.json``."""

    @abstractmethod
    def close(self) -> None:
        """Gives back what the run has taken on this machine and in the cluster's folder."""


# --- the engine -------------------------------------------------------------------------------------------------------


class Engine(ABC):
    """One engine of programs."""

    name: ClassVar[str]
    #: What stands for several programs, one after another.
    groups: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    #: What it takes of this machine's memory beside its containers, MiB.
    beside_mb: ClassVar[int] = 0
    #: What a program that runs by itself asks for where nobody says; whether it may read and write HDFS.
    sizes: ClassVar[Sizes] = Sizes()
    uses_hdfs: ClassVar[bool] = False

    @abstractmethod
    def programs(self) -> Mapping[str, Program]:
        """All of them by name."""

    @abstractmethod
    def check(self, program: ProgramSpec, sizing: Sizing) -> None:
        """Raises CallError for what of a workload's program cannot be run."""

    @abstractmethod
    def jobs(self, run: ProgramRun) -> list[ProgramJob]:
        """The jobs of one run of a program, in turn; when the first is submitted is not said yet."""

    @abstractmethod
    def load(self, site: Site, jobs: Sequence[ProgramJob]) -> EnginePrograms:
        """What runs the jobs of a run; not prepared yet. Raises InputError, CallError for a cluster that cannot."""

    def sized(self, request: Request) -> tuple[ProgramSpec, Sizing]:
        """A program that runs by itself as a workload has it. Raises CallError for sizes that cannot be."""
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
        """Refuses a program by itself that would not fit into the nodes, or into this machine. Raises InputError."""
        sizing = job.sizing
        sizes = Sizes(sizing.task.memory_mb, sizing.am.memory_mb, job.maps, max(job.reduces, 1))
        free = free_mb() if on_this_machine(rest) else None
        check_memory(sizes, rest, free_mb=None if free is None else free - self.beside_mb)


def write_answer(output: Path | Target, content: bytes) -> None:
    """An answer as the file ``answer`` of a new folder. Raises InputError."""
    assert isinstance(output, Path)
    with writing(output):
        output.mkdir(parents=True)
        (output / "answer").write_bytes(content)
