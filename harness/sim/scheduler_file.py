"""What a scheduler's own file is to a simulation: `SchedulerFile`. Each scheduler that has a file has a subclass of it.

It holds the file's queues and settings, and places a load's applications on them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from harness.base.errors import InputError
from harness.model.queues import ROOT, AllocationFile
from harness.yarn.placement import Placing, Submission

if TYPE_CHECKING:
    from harness.model.jobs import JobSpec
    from harness.model.resources import Resource
    from harness.sim.setup import SimSetup

Place = Literal["rules", "spread"]


@dataclass(frozen=True, slots=True)
class Dropped:
    """A setting of the file that the simulator does not cover: its name, its value, what it is about."""

    name: str
    value: str
    what: str

    def line(self) -> str:
        """In words."""
        return f"{self.name} = {self.value} ({self.what})" if self.value else f"{self.name} ({self.what})"


@dataclass(frozen=True, slots=True)
class Placed:
    """What became of a load's applications: how many came to each leaf, and how many were rejected, and why."""

    queues: Mapping[str, int]
    rejected: Mapping[str, int]

    def lines(self) -> list[str]:
        """Return a sentence for each reason for which applications were rejected."""
        total = sum(self.queues.values()) + sum(self.rejected.values())
        return [f"{count} of {total} applications are rejected: {why}" for why, count in self.rejected.items()]


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulerFile(ABC):
    """A scheduler's file as a simulation takes it.

    Parameters
    ----------
    path
        The file.
    sha256
        The digest of its content.
    text
        The file without what was dropped; "" where it cannot be written.
    allocations
        Its queues. A file that keeps its settings in ``capacity`` has their names alone here.
    capacity
        Properties of the Capacity Scheduler, without their prefix.
    conf
        Properties of yarn-site.xml that go with it.
    dropped
        What was left out of it.
    ignored
        Settings that have no effect in the simulator.
    place
        ``rules``: applications are placed by the file's placement rules; ``spread``: over its leaves in turn.
    groups
        User -> groups, for rules that look at them.
    placed
        What became of a load's applications; None before `settled`.
    creates
        Whether it lets applications create queues, which are made from the beginning.
    """

    #: The scheduler whose file it is.
    scheduler: ClassVar[str]
    #: How the file is called in Hadoop's configuration folder.
    file_name: ClassVar[str]

    path: str
    sha256: str
    text: str
    allocations: AllocationFile
    capacity: Mapping[str, str] = field(default_factory=dict)
    conf: Mapping[str, str] = field(default_factory=dict)
    dropped: tuple[Dropped, ...] = ()
    ignored: tuple[str, ...] = ()
    place: Place = "rules"
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    placed: Placed | None = None
    creates: bool = False

    # --- reading ---

    @classmethod
    def recognises(cls, data: bytes) -> bool:
        """Whether a file is certainly this scheduler's. What no scheduler recognises is read as an allocation file."""
        return False

    @classmethod  # noqa: B027 (reading may find all that is wrong)
    def check(cls, data: bytes, source: str) -> None:
        """Raise InputError for a file with which the RM would not start, where `read` would take it."""

    @classmethod
    @abstractmethod
    def read(cls, data: bytes, source: str, conf: Mapping[str, str]) -> tuple[Self, list[Dropped]]:
        """Read the file, and tell what the simulator does not cover of it: that is left out.

        Raises InputError for a file that Hadoop refuses.
        """

    # --- its queues ---

    @property
    @abstractmethod
    def leaves(self) -> list[str]:
        """Full paths of the leaves, in the order of the tree."""

    @abstractmethod
    def weights(self) -> dict[str, float]:
        """The entitlements of all queues, root among them: weights, or parts of the cluster in percent."""

    @abstractmethod
    def counts_vcores(self) -> bool:
        """Whether the scheduler compares dominant shares, not memory alone."""

    def with_weights(self, weights: Mapping[str, float], cluster: Resource) -> Self:
        """With other weights of some queues. InputError for what cannot be expressed."""
        weights = {path: weight for path, weight in weights.items() if path != ROOT}
        return self._with_weights(weights, cluster) if weights else self

    @abstractmethod
    def _with_weights(self, weights: Mapping[str, float], cluster: Resource) -> Self:
        """With other weights of some queues, at least one, but not root's."""

    # --- its applications ---

    @abstractmethod
    def placing(self) -> Placing:
        """What places applications by the file's own rules."""

    @abstractmethod
    def with_created(self, placing: Placing) -> Self:
        """With the queues that applications have created, as configured ones. ``placing``: what `placing` returned."""

    def jobs(self, jobs: Iterable[JobSpec]) -> Iterator[JobSpec]:
        """The applications in their queues; those that are rejected, and those that follow them, do not come."""
        for job, queue, _ in self.placements(jobs):
            if queue is not None:
                yield replace(job, queue=queue)

    def placements(
        self, jobs: Iterable[JobSpec], placing: Placing | None = None
    ) -> Iterator[tuple[JobSpec, str | None, str]]:
        """Each application with its leaf, or with None and why it is rejected."""
        if self.place == "spread":
            leaves = self.leaves
            if not leaves:
                raise InputError("it has no leaf queue to spread applications over", where=self.path, hint="use rules")
            for number, job in enumerate(jobs):
                yield job, leaves[number % len(leaves)], ""
            return
        placing = placing or self.placing()
        gone: set[str] = set()
        for job in jobs:
            if job.after_job in gone:
                found, why = None, "they follow one that was rejected"
            else:
                answer = placing.place(Submission(named(job.queue), job.user, self.groups.get(job.user, ()), job.name))
                found, why = answer.queue, answer.why
            if found is None:
                gone.add(job.id)
            yield job, found, why

    def settled(self, jobs: Iterable[JobSpec]) -> SchedulerFile:
        """With the queues that these applications create, made from the beginning, and with what becomes of them all.

        Raises InputError where every application is rejected.
        """
        placing = self.placing()
        queues: dict[str, int] = {}
        rejected: dict[str, int] = {}
        for _, queue, why in self.placements(jobs, placing):
            if queue is None:
                rejected[why] = rejected.get(why, 0) + 1
            else:
                queues[queue] = queues.get(queue, 0) + 1
        if not queues and rejected:
            why = max(rejected, key=lambda why: rejected[why])
            raise InputError(
                f"its placement rules reject all {sum(rejected.values())} applications ({why})",
                where=self.path,
                hint="give --place spread, or --group USER=GROUP,... where rules look at groups",
            )
        return replace(self, placed=Placed(queues, rejected)).with_created(placing)

    # --- a served cluster ---

    @classmethod
    @abstractmethod
    def written(cls, setup: SimSetup) -> tuple[SimSetup, str]:
        """The file of a run's queues, and the run as it is once the file has been read."""

    @classmethod
    @abstractmethod
    def put_in(cls, setup: SimSetup, text: str, source: str) -> SimSetup:
        """A run with the queues and settings of a file. Raises InputError for one that the RM would not start with."""

    # --- in words ---

    def described(self) -> dict[str, Any]:
        """What a run's record has of it."""
        found: dict[str, Any] = {
            "file": self.path,
            "sha256": self.sha256,
            "scheduler": self.scheduler,
            "place": self.place,
            "dropped": [{"name": one.name, "value": one.value, "what": one.what} for one in self.dropped],
        }
        if self.groups:
            found["groups"] = {user: list(groups) for user, groups in self.groups.items()}
        if self.placed is not None:
            found["placed"], found["rejected"] = dict(self.placed.queues), dict(self.placed.rejected)
        return found

    def lines(self) -> list[str]:
        """What a user has to know before it runs: what was dropped, what has no effect, who is rejected."""
        found = [f"{self.path}: dropped, the simulator does not cover it: {one.line()}" for one in self.dropped]
        if self.ignored:
            names = ", ".join(self.ignored[:6]) + (
                f" and {len(self.ignored) - 6} more" if len(self.ignored) > 6 else ""
            )
            found.append(f"{self.path}: without effect in the simulator: {names}")
        if self.creates:
            found.append(f"{self.path}: queues that applications create are there from the beginning")
        if self.placed is not None:
            found += [f"{self.path}: {line}" for line in self.placed.lines()]
        return found


def named(queue: str) -> str:
    """The queue that a client named: a load has its full path; root.default stands for none (assumed)."""
    return "default" if queue in (f"{ROOT}.default", "default", "", ROOT) else queue
