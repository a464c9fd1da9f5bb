"""A scheduler's own configuration file in a simulation: `SchedulerFile`, with a subclass for each scheduler.

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
    """A setting of the file that the simulator does not cover: its name, its value, and what it is for."""

    name: str
    value: str
    what: str

    def line(self) -> str:
        """Return the setting as text."""
        return f"{self.name} = {self.value} ({self.what})" if self.value else f"{self.name} ({self.what})"


@dataclass(frozen=True, slots=True)
class Placed:
    """The placement of a load's applications.

    ``queues``: the number in each leaf. ``rejected``: the number rejected for each reason. ``created``: the leaves that
    the file does not have, and that the scheduler creates for them.
    """

    queues: Mapping[str, int]
    rejected: Mapping[str, int]
    created: tuple[str, ...] = ()

    def lines(self) -> list[str]:
        """Return a sentence for each reason for which applications were rejected, and one on created queues."""
        total = sum(self.queues.values()) + sum(self.rejected.values())
        found = [f"{count} of {total} applications are rejected: {why}" for why, count in self.rejected.items()]
        if self.created:
            inside = sum(self.queues[queue] for queue in self.created)
            named = ", ".join(self.created[:6])
            named += f" and {len(self.created) - 6} more" if len(self.created) > 6 else ""
            found.append(
                f"{inside} of {total} applications are in queues that the file does not have and the scheduler "
                f"creates: {named}"
            )
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulerFile(ABC):
    """A scheduler's file as a simulation uses it.

    Parameters
    ----------
    path
        The file.
    sha256
        The digest of its content.
    text
        The file without the dropped settings; "" if it cannot be written.
    allocations
        Its queues. If the settings are in ``capacity``, these have only names.
    capacity
        Properties of the Capacity Scheduler, without their prefix.
    conf
        Properties of yarn-site.xml that belong to it.
    dropped
        The settings that were left out.
    ignored
        Settings that have no effect in the simulator.
    place
        ``rules``: the file's placement rules place applications; ``spread``: applications go to its leaves in turn.
    groups
        User -> groups, for rules that use groups.
    placed
        The placement of a load's applications; None in a file that `settled` has not returned.
    creates
        Whether applications may create queues. In the simulation these queues exist from the beginning.
    """

    #: The scheduler that the file belongs to.
    scheduler: ClassVar[str]
    #: The file's name in Hadoop's configuration folder.
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
        """Return whether a file certainly belongs to this scheduler. Other files are read as allocation files."""
        return False

    @classmethod  # noqa: B027 (reading may find all that is wrong)
    def check(cls, data: bytes, source: str) -> None:
        """Raise InputError for a file with which the RM would not start, although `read` would accept it."""

    @classmethod
    @abstractmethod
    def read(cls, data: bytes, source: str, conf: Mapping[str, str]) -> tuple[Self, list[Dropped]]:
        """Read the file, leaving out and reporting what the simulator does not cover.

        Raises InputError for a file that Hadoop refuses.
        """

    # --- its queues ---

    @property
    @abstractmethod
    def leaves(self) -> list[str]:
        """Return the full paths of the leaves, in the order of the tree."""

    @abstractmethod
    def weights(self) -> dict[str, float]:
        """Return the entitlements of all queues, including root: weights, or percentages of the cluster."""

    @abstractmethod
    def counts_vcores(self) -> bool:
        """Return whether the scheduler compares dominant shares instead of memory alone."""

    def with_weights(self, weights: Mapping[str, float], cluster: Resource) -> Self:
        """Return the file with other weights of some queues. Raises InputError for what cannot be expressed."""
        weights = {path: weight for path, weight in weights.items() if path != ROOT}
        return self._with_weights(weights, cluster) if weights else self

    @abstractmethod
    def _with_weights(self, weights: Mapping[str, float], cluster: Resource) -> Self:
        """Return the file with other weights of at least one queue other than root."""

    # --- its applications ---

    @abstractmethod
    def placing(self) -> Placing:
        """Return the object that places applications by the file's own rules."""

    @abstractmethod
    def with_created(self, placing: Placing) -> Self:
        """Return the file with queues that applications have created as configured ones.

        ``placing``: result of `placing`.
        """

    def jobs(self, jobs: Iterable[JobSpec]) -> Iterator[JobSpec]:
        """Return the applications in their queues, without rejected ones and those that follow them."""
        for job, queue, _ in self.placements(jobs):
            if queue is not None:
                yield replace(job, queue=queue)

    def placements(
        self, jobs: Iterable[JobSpec], placing: Placing | None = None
    ) -> Iterator[tuple[JobSpec, str | None, str]]:
        """Yield each application with its leaf, or with None and the reason for its rejection."""
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
        """Return the file with the queues that these applications create, and with the placement of all applications.

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
        known = set(self.leaves)
        created = tuple(queue for queue in queues if queue not in known)
        return replace(self, placed=Placed(queues, rejected, created)).with_created(placing)

    # --- a served cluster ---

    @classmethod
    @abstractmethod
    def written(cls, setup: SimSetup) -> tuple[SimSetup, str]:
        """Return the file of a run's queues, and the run as it is after reading this file."""

    @classmethod
    @abstractmethod
    def put_in(cls, setup: SimSetup, text: str, source: str) -> SimSetup:
        """Return a run with the queues and settings of a file. Raises InputError if the RM would not start with it."""

    # --- as text ---

    def described(self) -> dict[str, Any]:
        """Return the description of the file for a run's record."""
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
        """Return messages for the user on dropped settings, settings without effect, and the placement."""
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
    """Return the queue that a client named, from the queue of a load's job; root and root.default mean ``default``."""
    return "default" if queue in (f"{ROOT}.default", "default", "", ROOT) else queue
