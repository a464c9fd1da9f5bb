"""The scheduler-specific steps of a run on a real cluster: its file, putting it in force, and the actuator."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

from harness.base.errors import InputError
from harness.clusters import inrm
from harness.control.capacity_actuator import CapacityActuator
from harness.control.file_actuator import FileActuator
from harness.control.interfaces import Actuator
from harness.experiments.resolve import LoadedExperiment, Variant, nodes_of
from harness.experiments.simulated import texts
from harness.experiments.spec import Experiment
from harness.model.queues import NEVER_MS, ROOT, AllocationFile, QueueSettings, QueueTree, SchedulerName
from harness.sim.capacity.tree import capacity_settings
from harness.yarn.capacity.convert import render_properties
from harness.yarn.capacity.properties import parse_configuration
from harness.yarn.capacity.queues import queue_tree as capacity_tree
from harness.yarn.capacity.source import FileSource
from harness.yarn.capacity.traps import find_traps
from harness.yarn.fair.render import in_float32, render_allocations
from harness.yarn.files import ConfigStore
from harness.yarn.rmclient import RmClient


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedQueues:
    """The queues that a run puts in force.

    Parameters
    ----------
    experiment, variant
        The run's experiment and variant.
    allocations
        The experiment's queues, including what a stock policy's plan sets once.
    tree
        The same as a tree, including the queues that Hadoop adds.
    root_named
        Whether the cluster's own allocation file has an element for the root itself.
    """

    experiment: LoadedExperiment
    variant: Variant
    allocations: AllocationFile
    tree: QueueTree
    root_named: bool

    def weights(self) -> Mapping[str, float]:
        """Return the weights of the experiment's queues without the root."""
        return {
            queue.path: queue.weight
            for queue in self.tree
            if queue.path in self.experiment.weights and queue.path != ROOT
        }


class RealScheduler(ABC):
    """A scheduler under which experiments run on real clusters."""

    #: Its name in an experiment and in a trace.
    name: ClassVar[SchedulerName]
    #: Its name in messages.
    title: ClassVar[str]
    #: Whether an external cluster's queues can be set for a run, and restored after it.
    sets_given_queues: ClassVar[bool]

    @abstractmethod
    def file_text(self, experiment: LoadedExperiment, allocations: AllocationFile) -> str:
        """Return the text of the file from which the scheduler reads its queues."""

    @abstractmethod
    def put(self, client: RmClient, place: ConfigStore, wanted: WantedQueues) -> None:
        """Write the queues, let the ResourceManager read them, and wait until it reports them.

        Raises InputError for queues that cannot be put in force.
        """

    @abstractmethod
    def actuator(self, place: ConfigStore, document: Callable[[str], object]) -> Actuator[RmClient]:
        """Return the actuator of a controller. ``document``: returns a document of the controller's ledger by name."""

    @abstractmethod
    def own_properties(self, spec: Experiment) -> dict[str, str] | None:
        """Return a trace's entry about the scheduler's own settings; None if there is none."""


class RealFairScheduler(RealScheduler):
    """The Fair Scheduler, set by its allocation file."""

    name = "fair"
    title = "Fair Scheduler"
    sets_given_queues = True

    def file_text(self, experiment: LoadedExperiment, allocations: AllocationFile) -> str:
        """Return the allocation file."""
        return file_text(allocations)

    def put(self, client: RmClient, place: ConfigStore, wanted: WantedQueues) -> None:
        """Put the queues in force; a policy inside the ResourceManager orders queues without a policy of their own."""
        variant = wanted.variant
        text = file_text(wanted.allocations, root_named=wanted.root_named)
        if variant.in_rm:
            text = inrm.allocations_with(text, variant.policy)
        place.write(text.encode())
        client.refresh_queues()
        if variant.in_rm:
            own = {path for path, queue in wanted.allocations.settings.items() if queue.scheduling_policy is not None}
            inrm.confirm(client.rest, variant.policy, [queue.path for queue in wanted.tree if queue.path not in own])
        client.confirm_weights(wanted.weights())

    def actuator(self, place: ConfigStore, document: Callable[[str], object]) -> Actuator[RmClient]:
        """Return the actuator of the allocation file."""
        return FileActuator.restored(place, document)

    def own_properties(self, spec: Experiment) -> dict[str, str] | None:
        """Return None: its settings are those of the queues, and ``conf``."""
        return None


class RealCapacityScheduler(RealScheduler):
    """The Capacity Scheduler, set by its ``capacity-scheduler.xml``."""

    name = "capacity"
    title = "Capacity Scheduler"
    sets_given_queues = False

    def file_text(self, experiment: LoadedExperiment, allocations: AllocationFile) -> str:
        """Return the ``capacity-scheduler.xml``."""
        return capacity_text(experiment, allocations)

    def put(self, client: RmClient, place: ConfigStore, wanted: WantedQueues) -> None:
        """Put the queues in force. Raises InputError if a controller would write nothing with these settings."""
        settings = capacity_text(wanted.experiment, wanted.allocations).encode()
        if wanted.variant.mode == "outside":
            accepted = {"preemption"} if wanted.experiment.spec.actuation.accept_preemption else set()
            check_traps(settings, client, wanted.variant.name, accepted)
        place.write(settings)
        client.refresh_queues()
        client.confirm_settings(wanted.weights())

    def actuator(self, place: ConfigStore, document: Callable[[str], object]) -> Actuator[RmClient]:
        """Return the actuator of ``capacity-scheduler.xml``."""
        return CapacityActuator.restored(FileSource(place), document)

    def own_properties(self, spec: Experiment) -> dict[str, str] | None:
        """Return the properties that the experiment sets, without their prefix."""
        return texts(spec.capacity)


#: Schedulers by their names in experiments.
REAL_SCHEDULERS: Mapping[str, RealScheduler] = {
    scheduler.name: scheduler for scheduler in (RealFairScheduler(), RealCapacityScheduler())
}


def file_text(allocations: AllocationFile, *, root_named: bool = True) -> str:
    """Return an experiment's allocation file as the RM reads it: numbers as float32, the root's defaults written out.

    ``root_named``: whether the file has an element for the root itself, as the RM's previous file has or has not
    (docs/reference/allocation-file.md, "The root's own element"). Raises InputError if the experiment needs the element
    and ``root_named`` is false.
    """
    root = QueueSettings(
        ROOT,
        # The root's own values replace the file's defaults.
        min_share_preemption_timeout_ms=allocations.default_min_share_preemption_timeout_ms,
        fair_share_preemption_timeout_ms=NEVER_MS,
        fair_share_preemption_threshold=0.5,
    )
    given = allocations.settings.get(ROOT)
    if given is not None:
        root = replace(root, scheduling_policy=given.scheduling_policy, max_resources=given.max_resources)
    rounded = in_float32(allocations)
    if not root_named:
        if root.scheduling_policy is not None or root.max_resources is not None or root.weight is not None:
            raise InputError(
                "the experiment has settings for the root, and the cluster's allocation file has no element for it",
                hint='write <queue name="root"> around the queues of that file: an RM that has seen the element and '
                "then misses it may delete its root queue and end",
            )
        rounded = replace(
            rounded, configured_parents=tuple(path for path in rounded.configured_parents if path != ROOT)
        )
    return render_allocations(replace(rounded, settings={**rounded.settings, ROOT: root}))


def capacity_text(experiment: LoadedExperiment, allocations: AllocationFile) -> str:
    """Return the ``capacity-scheduler.xml`` of an experiment, with the settings of the simulator."""
    settings = capacity_settings(allocations, nodes_of(experiment.spec))
    return render_properties({**settings, **texts(experiment.spec.capacity)})


def check_traps(settings: bytes, client: RmClient, where: str, accepted: Collection[str] = ()) -> None:
    """Raise InputError if a controller would write nothing with these settings (`harness.yarn.capacity.traps`)."""
    values = parse_configuration(settings, source="capacity").values
    tree = capacity_tree(values, source="capacity")
    for trap in find_traps(values, client.rest.properties(), tree, client.rest.info().hadoop):
        if trap.blocking and trap.name not in accepted:
            what = f"a controller writes nothing there: {trap.name}: {trap.what}"
            raise InputError(what, where=where, hint=f"{trap.hint} (`capacity`, `conf`)")
