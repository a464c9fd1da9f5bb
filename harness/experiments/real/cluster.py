"""A real cluster for an experiment: started for it and stopped after it, or an external ResourceManager.

harness.experiments.real.run runs the variants. The next run stops a cluster that a killed run left behind;
harness.experiments.real.given restores the allocation file of an external cluster.
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
#: Hadoop's default of the smallest container and of the increment in MiB, also used by the simulator.
_MINIMUM_MB = 1024
_INCREMENT = "yarn.resource-types.memory-mb.increment-allocation"


@dataclass(frozen=True, slots=True)
class RealCluster:
    """A running cluster. ``document`` is stored in ``run.json``; ``place`` None: its queues stay as they are."""

    backend: str
    address: RmAddress
    place: ConfigStore | None
    shared: SharedFolder
    python: str
    document: Mapping[str, Any] = field(default_factory=dict)
    #: Whether the cluster's own allocation file, which is restored later, has an element for the root itself.
    root_named: bool = True
    #: Options of requests to the ResourceManager, and their user.
    http: HttpOptions = field(default_factory=lambda: HttpOptions(user=USER))


def cluster_spec(experiment: LoadedExperiment, allocations: Path | None = None) -> ClusterSpec:
    """Return the specification of an experiment's cluster.

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
    """Check that the options of a cluster are consistent. Raises CallError."""
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
    """Provide the cluster on which an experiment runs, for the duration of the context.

    ``inside``: the variant whose policy runs inside the RM of a cluster that we start (with the jar and its settings).
    ``scheduler``: the scheduler of such a cluster. ``node_limit_mb``: see harness.clusters.state.ClusterSpec.
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
    """Start a cluster for the duration of the context; nothing stays behind.

    ``text``: the content of its scheduler's file.
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
            # The state folder is kept, so that the next run, or `cluster down`, can try again.
            progress(f"not ended: {left[0]}; `yarnfair cluster down --backend {backend} --state {state.folder}`")
        else:
            # The cluster is down; the next run removes the empty folder.
            with contextlib.suppress(InputError):
                StateFolder(folder).remove()


@contextlib.contextmanager
def _given(backend: str, target: Target, progress: Callable[[str], None]) -> Iterator[RealCluster]:
    """Provide an external cluster; its own queues are restored at the end, or by the next run.

    Without ``target.allocations`` its queues are not changed.
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
        # An earlier run's file is restored by now, whether or not the RM answers.
        address = find_rm(target.rm, http, admin=target.admin, client=target.client)
        shared = LocalFolder(Path(target.shared) / f"yarnfair-{os.getpid()}")
        try:
            python, document = target.python or sys.executable, {"rm": address.rest, "given": True}
            yield RealCluster(backend, address, place, shared, python, document, root_named, http)
        finally:
            shared.remove()
