"""What every engine of programs is: MapReduce, Spark, Hive on Tez. No engine lives here.

An engine is a subclass of `Engine` in a room of its own and a line in `harness.jobs.engines.ENGINES`. It says which
programs there are, makes a workload's program into jobs (`Engine.jobs`), and runs them: beside each other in an
experiment (`Engine.load`), or one by itself (`Engine.request`, `Engine.client`).
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Protocol

from harness.clusters.shared import SharedFolder
from harness.jobs.data.targets import Target
from harness.jobs.engines.attempts import Attempt, Verdict, summary
from harness.jobs.replay import JobRecord
from harness.jobs.spec import DataSpec, ProgramSpec
from harness.model.jobs import Duration, JobSpec
from harness.model.resources import Resource
from harness.yarn.answers import AppStatus
from harness.yarn.rest import RestClient

#: Stands where a task's time would: nobody knows it yet.
UNKNOWN = Duration("constant", value_s=1.0)


class Program(Protocol):
    """One program. ``data``: the kinds of data sets that it reads, in this order; ``settings``: with defaults."""

    @property
    def name(self) -> str: ...
    @property
    def suite(self) -> str: ...
    @property
    def what(self) -> str: ...
    @property
    def data(self) -> tuple[str, ...]: ...
    @property
    def settings(self) -> Mapping[str, str]: ...


# --- jobs of a workload -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Sizing:
    """What a workload says for all its programs: the master's container, a task's, when reduces may start."""

    am: Resource
    task: Resource
    slow_start: float = 1.0


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
        return self.program.application.lower()


# --- a run ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Site:
    """A cluster as an experiment's programs find it.

    ``shared``: a folder that all nodes see; ``data``: folders of this machine; ``python``: on the nodes; ``tag`` marks
    the run's applications. ``elsewhere``: the nodes are other machines, though they see the folder.
    """

    rest: RestClient
    shared: SharedFolder
    python: str
    data: Mapping[DataSpec, Path]
    tag: str
    am_heartbeat_ms: int = 1000
    elsewhere: bool = False
    progress: Callable[[str], None] = lambda _: None


class EnginePrograms(ABC):
    """The programs of one engine in one run, by the ids of their jobs."""

    @abstractmethod
    def prepare(self) -> None:
        """Puts what is needed where the nodes see it, before anything counts.

        Raises CallError and InputError for what cannot be run, and what asking the ResourceManager raises.
        """

    @abstractmethod
    def submit(self, job_id: str) -> str | None:
        """Submits a job (again, if it was before); the application's id, or None where `taken` will know it."""

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
    def measured(self, job_id: str, status: AppStatus | None) -> JobSpec:
        """A job as it ran, each task with its own time."""

    @abstractmethod
    def check(self, job_id: str, status: AppStatus | None = None) -> Verdict | None:
        """Whether the answer of a job that ended is right; None: this job has none. Raises RunInvalid, InputError."""

    @abstractmethod
    def document(self) -> dict[str, Any]:
        """Versions and settings of the engine, for ``run.json``."""

    @abstractmethod
    def close(self) -> None:
        """Gives back what the run has taken on this machine and in the cluster's folder."""


# --- one by itself ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Asked:
    """One run of one program as a caller asks for it; None: as the engine has it. Memory in MiB."""

    program: str
    inputs: tuple[Path | Target, ...]
    output: Path | Target
    queue: str
    maps: int = 4
    reduces: int = 2
    task_mb: int | None = None
    am_mb: int | None = None
    executors: int = 2
    executor_mb: int | None = None
    executor_cores: int = 1
    settings: Mapping[str, str] = field(default_factory=dict)
    python: str = "python3"
    check: bool = True
    timeout_s: float = 1800.0
    #: More of the engine's properties.
    properties: Mapping[str, str] = field(default_factory=dict)


class Request(Protocol):
    """One run of one program, as its engine takes it."""

    @property
    def application(self) -> Program: ...
    @property
    def output(self) -> Path | Target: ...


@dataclass(frozen=True, slots=True)
class Done:
    """What came of it. ``apps`` in the order of their submission; ``verdict`` None: not checked."""

    apps: tuple[AppStatus, ...]
    attempts: tuple[Attempt, ...]
    seconds: float
    verdict: Verdict | None
    zero_ms: int


class ProgramClient(Protocol):
    """Runs programs of one engine on one cluster, one after the other."""

    #: What was measured of the last run, however it ended.
    attempts: list[Attempt]
    zero_ms: int

    def run(self, request: Any, on_step: Callable[[list[AppStatus]], None] = lambda _: None) -> Done:
        """To its end, checked; however it ends, nothing of it runs on.

        Raises RunInvalid for a job that failed (why, with its log's last lines), RunTimedOut, InputError, CallError.
        """


@dataclass(frozen=True, slots=True)
class ProgramCluster:
    """A cluster on which programs run one by one. ``shared`` None: its nodes see this machine's files.

    ``work``: a folder for what a run needs beside its output; ``stop``: set, what runs ends as when it is interrupted.
    """

    rest: RestClient
    work: Path
    python: str
    shared: SharedFolder | None = None
    progress: Callable[[str], None] = lambda _: None
    stop: threading.Event = field(default_factory=threading.Event)


# --- the engine -------------------------------------------------------------------------------------------------------


class Engine(ABC):
    """One engine of programs."""

    name: ClassVar[str]
    #: What stands for several programs, one after another.
    groups: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    #: What it takes of this machine's memory beside its containers, MiB.
    beside_mb: ClassVar[int] = 0

    @abstractmethod
    def programs(self) -> Mapping[str, Program]:
        """All of them by name."""

    @abstractmethod
    def settings_of(self, name: str, given: Mapping[str, str]) -> dict[str, str]:
        """A program's settings with those given. Raises CallError for one that it does not have."""

    @abstractmethod
    def check(self, program: ProgramSpec, sizing: Sizing) -> None:
        """Raises CallError for what of a workload's program cannot be run."""

    @abstractmethod
    def jobs(
        self,
        program: ProgramSpec,
        inputs: tuple[DataSpec, ...],
        sizing: Sizing,
        queue: str,
        identity: str,
        count: Callable[[int], int],
    ) -> list[ProgramJob]:
        """The jobs of one run of a program, in turn; when the first is submitted is not said yet.

        ``count``: numbers of tasks and executors as they are scaled.
        """

    @abstractmethod
    def load(self, site: Site, jobs: Sequence[ProgramJob]) -> EnginePrograms:
        """What runs jobs of an experiment; not prepared yet. Raises InputError, CallError for a cluster that cannot."""

    @abstractmethod
    def request(self, asked: Asked) -> Request:
        """Raises CallError for what cannot be run: settings, sizes, places."""

    @abstractmethod
    def client(self, cluster: ProgramCluster) -> ProgramClient:
        """Raises InputError for a cluster on which its programs do not run."""


def document(request: Request, done: Done) -> dict[str, Any]:
    """The result as ``--json`` prints it."""
    output = request.output
    return {
        "application": request.application.name,
        "suite": request.application.suite,
        "output": str(output) if isinstance(output, Path) else output.name,
        "seconds": done.seconds,
        "applications": [
            {
                "id": app.id,
                "queue": app.queue,
                "final_status": app.final_status,
                "elapsed_s": (app.finished_ms - app.started_ms) / 1000.0,
                "memory_mb_s": app.memory_seconds,
                "vcore_s": app.vcore_seconds,
            }
            for app in done.apps
        ],
        "tasks": summary(done.attempts),
        "answer": None
        if done.verdict is None
        else {"right": done.verdict.wrong is None, "records": done.verdict.records, "wrong": done.verdict.wrong},
    }
