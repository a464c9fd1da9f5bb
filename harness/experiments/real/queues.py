"""The queues of a run on a real cluster: those of the experiment put in force, or those that are there."""

from __future__ import annotations

from collections.abc import Mapping

from harness.base.errors import InputError
from harness.clusters import inrm
from harness.experiments.real.cluster import RealCluster, capacity_text, file_text
from harness.experiments.real.start import plan_for
from harness.experiments.resolve import LoadedExperiment, Variant, allocation_file
from harness.model.queues import AllocationFile, QueueTree
from harness.model.resources import Resource
from harness.sim.attributes import with_attributes
from harness.yarn.capacity.properties import parse_configuration
from harness.yarn.capacity.queues import queue_tree as capacity_tree
from harness.yarn.capacity.traps import find_traps
from harness.yarn.files import ConfigStore
from harness.yarn.rmclient import RmClient


def allocations_of(experiment: LoadedExperiment, variant: Variant, capacity: Resource) -> AllocationFile:
    """The experiment's allocation file, with what a stock policy's plan sets once."""
    allocations = allocation_file(experiment.spec)
    if variant.mode == "outside" or variant.in_rm:
        return allocations
    return with_attributes(allocations, plan_for(variant, capacity, experiment.weights))


def find_queues(client: RmClient, experiment: LoadedExperiment, *, any_queue: bool) -> Mapping[str, float]:
    """Check that the cluster has the experiment's queues, which stay as they are.

    Returns the weights that go into the run's record, because the RM does not report them. Raises InputError where a
    queue is missing, unless ``any_queue``.
    """
    there = client.rest.scheduler().queues
    missing = [path for path in experiment.weights if path not in there]
    if missing and not any_queue:
        raise InputError(
            f"no queue {missing[0]}",
            where=client.rest.http.current,
            hint="make it there, or give --allocations, and the run sets its queues",
        )
    return experiment.weights


def check_traps(settings: bytes, client: RmClient, where: str) -> None:
    """Whether a controller would write there at all (`harness.yarn.capacity.traps`). Raises InputError."""
    values = parse_configuration(settings, source="capacity").values
    tree = capacity_tree(values, source="capacity")
    for trap in find_traps(values, client.rest.properties(), tree, client.rest.info().hadoop):
        if trap.blocking:
            what = f"a controller writes nothing there: {trap.name}: {trap.what}"
            raise InputError(what, where=where, hint=f"{trap.hint} (`capacity`, `conf`)")


def put_queues(
    client: RmClient,
    cluster: RealCluster,
    place: ConfigStore,
    experiment: LoadedExperiment,
    variant: Variant,
    allocations: AllocationFile,
    tree: QueueTree,
) -> Mapping[str, float]:
    """Puts the experiment's queues in force on the ResourceManager; their weights."""
    weights = {queue.path: queue.weight for queue in tree}
    wanted = {path: weight for path, weight in weights.items() if path in experiment.weights and path != "root"}
    if variant.scheduler == "capacity":
        settings = capacity_text(experiment, allocations).encode()
        if variant.mode == "outside":
            check_traps(settings, client, variant.name)
        place.write(settings)
        client.refresh_queues()
        client.confirm_settings(wanted)
        return weights
    text = file_text(allocations, root_named=cluster.root_named)
    if variant.in_rm:
        text = inrm.allocations_with(text, variant.policy)
    place.write(text.encode())
    client.refresh_queues()
    if variant.in_rm:
        own = [path for path, queue in allocations.settings.items() if queue.scheduling_policy is not None]
        inrm.confirm(client.rest, variant.policy, [queue.path for queue in tree if queue.path not in own])
    client.confirm_weights(wanted)
    return weights
