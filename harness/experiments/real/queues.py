"""The queues of a run on a real cluster: puts the experiment's queues in force, or checks the existing ones."""

from __future__ import annotations

from collections.abc import Mapping

from harness.base.errors import InputError
from harness.experiments.real.cluster import RealCluster
from harness.experiments.real.schedulers import REAL_SCHEDULERS, WantedQueues
from harness.experiments.real.start import plan_for
from harness.experiments.resolve import LoadedExperiment, Variant, allocation_file
from harness.model.queues import AllocationFile, QueueTree
from harness.model.resources import Resource
from harness.sim.attributes import with_attributes
from harness.yarn.files import ConfigStore
from harness.yarn.rmclient import RmClient


def allocations_of(experiment: LoadedExperiment, variant: Variant, capacity: Resource) -> AllocationFile:
    """Return the experiment's allocation file, including what a stock policy's plan sets once."""
    allocations = allocation_file(experiment.spec)
    if variant.mode == "outside" or variant.in_rm:
        return allocations
    return with_attributes(allocations, plan_for(variant, capacity, experiment.weights))


def find_queues(client: RmClient, experiment: LoadedExperiment, *, any_queue: bool) -> Mapping[str, float]:
    """Check that the cluster has the experiment's queues, which are not changed.

    Returns the weights that go into the run's record, because the RM does not report them. Raises InputError if a queue
    is missing, unless ``any_queue``.
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


def put_queues(
    client: RmClient,
    cluster: RealCluster,
    place: ConfigStore,
    experiment: LoadedExperiment,
    variant: Variant,
    allocations: AllocationFile,
    tree: QueueTree,
) -> Mapping[str, float]:
    """Put the experiment's queues in force on the ResourceManager, and return their weights."""
    wanted = WantedQueues(
        experiment=experiment, variant=variant, allocations=allocations, tree=tree, root_named=cluster.root_named
    )
    REAL_SCHEDULERS[variant.scheduler].put(client, place, wanted)
    return {queue.path: queue.weight for queue in tree}
