"""A real cluster for an experiment: brought up for it and taken down after it, or a given ResourceManager.

What runs on it is harness.experiments.real.run's. A cluster that a killed run left behind is cleaned away by the next
one; so that a given one has its allocation file back is harness.experiments.real.given's.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from harness.base.errors import CallError, InputError
from harness.clusters import inrm
from harness.clusters.backends import check_inventory, make_cluster
from harness.clusters.base import Cluster
from harness.clusters.inventory import read_inventory
from harness.clusters.shared import LocalFolder, SharedFolder
from harness.clusters.site import write
from harness.clusters.state import ClusterSpec, StateFolder
from harness.experiments.kind import Target
from harness.experiments.real.abandoned import clean_abandoned, own_folder, runs_folder
from harness.experiments.real.given import given_file
from harness.experiments.real.schedulers import REAL_SCHEDULERS
from harness.experiments.resolve import LoadedExperiment, Variant, allocation_file
from harness.experiments.simulated import texts
from harness.jobs.submit import NODE_PROPERTIES
from harness.model.queues import ROOT
from harness.yarn.discover import find_rm
from harness.yarn.fair.parse import parse_allocations
from harness.yarn.files import ConfigStore
from harness.yarn.http import HttpOptions
from harness.yarn.releases import release_of
from harness.yarn.rmclient import RmAddress

USER = "yarnfair"
#: Hadoop's own default for both, which the simulator has too.
_MINIMUM_MB = 1024
_INCREMENT = "yarn.resource-types.memory-mb.increment-allocation"


@dataclass(frozen=True, slots=True)
class RealCluster:
    """A cluster that runs. ``document`` stands in ``run.json``; ``place`` None: its queues stay as they are."""

    backend: str
    address: RmAddress
    place: ConfigStore | None
    shared: SharedFolder
    python: str
    document: Mapping[str, Any] = field(default_factory=dict)
    #: Whether the allocation file that it had, and will have again, has an element for the root itself.
    root_named: bool = True
    #: How the ResourceManager is asked, and in whose name.
    http: HttpOptions = field(default_factory=lambda: HttpOptions(user=USER))


def cluster_spec(experiment: LoadedExperiment, allocations: Path | None = None) -> ClusterSpec:
    """What the cluster of an experiment is to be.

    Raises InputError for nodes that a small real cluster cannot have.
    """
    spec = experiment.spec
    group, *others = spec.cluster.nodes
    where = experiment.document.where(("cluster", "nodes"))
    if any((g.memory_mb, g.vcores) != (group.memory_mb, group.vcores) for g in others):
        raise InputError(
            "nodes of several sizes", where=where, hint="a real cluster's nodes are equal here: give one size"
        )
    if any(g.speed != 1 or g.join_s or g.leave_s is not None or g.changes for g in spec.cluster.nodes):
        raise InputError(
            "nodes with a speed, or that join and leave", where=where, hint="leave that to --backend sim, or remove it"
        )
    conf = texts(spec.conf)
    minimum = conf.get("yarn.scheduler.minimum-allocation-mb", "")
    minimum_mb = int(minimum) if minimum.isdigit() else _MINIMUM_MB
    delays = spec.delays
    properties = {
        **NODE_PROPERTIES,
        "yarn.scheduler.increment-allocation-mb": conf.get(_INCREMENT, str(_MINIMUM_MB)),
        **conf,
    }
    if delays.node_heartbeat_ms is not None:
        properties["yarn.resourcemanager.nodemanagers.heartbeat-interval-ms"] = str(delays.node_heartbeat_ms)
    if delays.update_ms is not None:
        properties["yarn.scheduler.fair.update-interval-ms"] = str(delays.update_ms)
    return ClusterSpec(
        nodes=sum(g.count for g in spec.cluster.nodes),
        memory_mb=group.memory_mb,
        vcores=group.vcores,
        minimum_allocation_mb=minimum_mb,
        allocations=str(allocations) if allocations is not None else None,
        properties=properties,
    )


def check_target(backend: str, target: Target) -> None:
    """Whether the options of a cluster go together. Raises CallError."""
    if target.rm is not None:
        if not target.shared:
            raise CallError("--rm without --shared", hint="give a folder that this machine and all nodes see alike")
        if target.hadoop is not None:
            raise CallError("a given cluster has a release of its own", where="--hadoop", hint="leave it out, or --rm")
        return
    release_of(target.hadoop)
    if target != Target(inventory=target.inventory, hadoop=target.hadoop):
        raise CallError("an option of a given cluster without --rm", hint="give --rm URL, or leave it out")
    check_inventory(backend, target.inventory, needed=True)


@contextlib.contextmanager
def open_cluster(
    experiment: LoadedExperiment,
    backend: str,
    target: Target,
    progress: Callable[[str], None] = lambda _: None,
    *,
    inside: Variant | None = None,
    scheduler: str = "fair",
    node_limit_mb: int | None = None,
) -> Iterator[RealCluster]:
    """The cluster on which an experiment runs, for as long as the context lasts.

    ``inside``: the variant for which the RM of a cluster of our own has the jar, with the variant's settings.
    ``scheduler``: of a cluster of our own.
    ``node_limit_mb``: as of harness.clusters.state.ClusterSpec.
    """
    if target.rm is not None:
        with _given(backend, target, progress) as found:
            yield found
        return
    check_target(backend, target)
    queues = allocation_file(experiment.spec)
    text = REAL_SCHEDULERS[scheduler].file_text(experiment, queues)
    hadoop = None if target.hadoop is None else release_of(target.hadoop).version
    spec = replace(cluster_spec(experiment), scheduler=scheduler, node_limit_mb=node_limit_mb, hadoop=hadoop)
    if target.inventory is not None:
        hosts = read_inventory(Path(target.inventory))
        if len(hosts.nodes) != spec.nodes:
            raise InputError(
                f"the experiment has {spec.nodes} nodes, the inventory {len(hosts.nodes)} hosts with the role nm",
                where=target.inventory,
                hint="change one of them",
            )
    if inside is not None:
        spec = inrm.with_jar(spec, inside.policy, inside.settings, progress=progress)
    with own_cluster(backend, spec, text, progress, inventory=target.inventory) as (_, found):
        yield found


@contextlib.contextmanager
def own_cluster(
    backend: str, spec: ClusterSpec, text: str, progress: Callable[[str], None], *, inventory: str | None = None
) -> Iterator[tuple[Cluster, RealCluster]]:
    """A cluster of this process' own, for as long as the context lasts; nothing stays behind.

    ``text``: of its scheduler's file.
    """
    clean_abandoned(progress)
    folder = own_folder(backend)
    state = StateFolder(folder / "cluster")
    folder.mkdir(parents=True, exist_ok=True)
    write(folder / "allocations.xml", text)
    spec = replace(spec, allocations=str(folder / "allocations.xml"))
    cluster = make_cluster(backend, state, inventory=inventory, progress=progress)
    try:
        status = cluster.up(spec, timeout_s=300.0)
        document = {
            "rm": status.address.rest,
            "nodes": spec.nodes,
            "memory_mb": spec.memory_mb,
            "vcores": spec.vcores,
            "properties": dict(spec.properties),
            **({"hadoop": spec.hadoop} if spec.hadoop is not None else {}),
            "seconds_to_running": status.running_s,
            **cluster.software(),
        }
        with cluster.share("replay", folder) as (shared, python):
            yield cluster, RealCluster(backend, status.address, cluster.place(), shared, python, document)
    finally:
        left = cluster.down()
        if left:
            # The state stays: the next run, or `cluster down`, tries again.
            progress(f"not ended: {left[0]}; `yarnfair cluster down --backend {backend} --state {state.folder}`")
        else:
            # The cluster is down; an empty folder is swept by the next run.
            with contextlib.suppress(InputError):
                StateFolder(folder).remove()


@contextlib.contextmanager
def _given(backend: str, target: Target, progress: Callable[[str], None]) -> Iterator[RealCluster]:
    """Somebody's cluster: it has its own queues back at the end, or when the next run finds that it has not.

    Without ``target.allocations`` it keeps them meanwhile.
    """
    check_target(backend, target)
    assert target.rm is not None
    assert target.shared is not None
    http = target.http or HttpOptions(user=USER)
    with contextlib.ExitStack() as stack:
        place, root_named = None, True
        if target.allocations is not None:
            place = stack.enter_context(given_file(runs_folder(), target.allocations, progress, target.http))
            named = parse_allocations(place.read(), source=target.allocations)
            root_named = ROOT in (*named.configured_leaves, *named.configured_parents)
        # An earlier run's file is back by now, whether or not the RM answers.
        address = find_rm(target.rm, http, admin=target.admin, client=target.client)
        shared = LocalFolder(Path(target.shared) / f"yarnfair-{os.getpid()}")
        try:
            python, document = target.python or sys.executable, {"rm": address.rest, "given": True}
            yield RealCluster(backend, address, place, shared, python, document, root_named, http)
        finally:
            shared.remove()
