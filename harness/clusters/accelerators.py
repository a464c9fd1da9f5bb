"""Add nodes of several types to a running Docker cluster and remove them: the accelerators of HotCloud 2011.

A node type has a CPU limit and a memory limit of the container, and the resources that its NodeManager advertises. A
node that joins copies the cluster's own NodeManagers (image, network, volumes, settings), so that `down` removes it
with the rest. A node that leaves is first drained: it accepts no new containers, and running ones end. Then its
NodeManager is stopped and unregisters from the ResourceManager (state SHUTDOWN), which a killed one would not do.
"""

from __future__ import annotations

import contextlib
import math
import re
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from harness.base.errors import CallError, InputError, RunTimedOut
from harness.clusters.compose import ACCELERATOR, NODE_NAME, NODE_TYPE, DockerCluster, docker_client
from harness.clusters.state import ClusterState
from harness.model.resources import ZERO
from harness.yarn.answers import NodeStatus
from harness.yarn.errors import Refused
from harness.yarn.http import HttpOptions
from harness.yarn.rest import RestClient

#: The Linux scheduler's period, of which a CPU limit is a fraction.
_CPU_PERIOD_US = 100_000
#: With a lower CPU limit a NodeManager cannot keep up with its own heartbeats.
LEAST_CPUS = 0.02
_STOP_S = 20
_EVERY_S = 0.3
MOST_NODES = 100


@dataclass(frozen=True, slots=True)
class NodeType:
    """A type of nodes.

    ``cpus``: CPU limit (None: no limit); ``limit_mb``: the container's memory limit (MiB); ``memory_mb`` and
    ``vcores``: the resources that the NodeManager advertises.
    """

    name: str
    memory_mb: int
    vcores: int
    cpus: float | None = None
    limit_mb: int = 768

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,39}", self.name):
            raise CallError(
                f"{self.name[:60]!r} is not a node type's name", hint="use letters, digits, and . _ - in between"
            )
        if self.cpus is not None and not (math.isfinite(self.cpus) and LEAST_CPUS <= self.cpus <= 1024):
            raise CallError(f"{self.cpus:g} CPUs", hint=f"give a number from {LEAST_CPUS:g} to 1024")
        for what, value, least in (
            ("memory_mb", self.memory_mb, 1),
            ("vcores", self.vcores, 1),
            ("limit_mb", self.limit_mb, 256),
        ):
            if not least <= value <= 2**30:
                raise CallError(f"{what} of node type {self.name} is {value}", hint=f"give a number from {least} up")


@dataclass(frozen=True, slots=True)
class JoinedNode:
    """A node that has joined. ``host`` is unique among the RM's nodes; ``joined_s``: seconds since 1970."""

    name: str
    type: str
    host: str
    id: str
    joined_s: float


class Accelerators:
    """The nodes that join and leave one running Docker cluster."""

    def __init__(self, cluster: DockerCluster, *, progress: Callable[[str], None] = lambda _: None) -> None:
        self.cluster = cluster
        self._progress = progress

    def nodes(self) -> dict[str, str]:
        """Return name -> type of all nodes that have joined."""
        with self._open() as (client, state):
            return {one.labels[NODE_NAME]: one.labels[NODE_TYPE] for one in self._accelerators(client, state)}

    def core_hosts(self) -> list[str]:
        """Return the hosts of the cluster's own NodeManagers, as the RM names them."""
        with self._open() as (client, state):
            return [_host(container) for container in _service(self.cluster.containers(client, state), "nm")]

    def limit_core(self, cpus: float | None) -> None:
        """Set a CPU limit of the cluster's own NodeManagers (None: remove it)."""
        with self._open() as (client, state):
            for container in _service(self.cluster.containers(client, state), "nm"):
                _limit(container, cpus)

    def grow(self, kind: NodeType, count: int, *, timeout_s: float = 120.0) -> list[JoinedNode]:
        """Add nodes of a type and wait until they are RUNNING in the RM.

        The CPU limit applies from then on, because Java's start is not a property of a node type. Raises RunTimedOut if
        they do not register in time; they are then removed again.
        """
        if not 1 <= count <= MOST_NODES:
            raise CallError(f"{count} nodes", hint=f"give a number from 1 to {MOST_NODES}")
        began = time.monotonic()
        with self.cluster.folder.lock(), self._open() as (client, state):
            taken = {one.labels[NODE_NAME] for one in self._accelerators(client, state)}
            names = [f"{kind.name}-{n}" for n in range(1, len(taken) + count + 1) if f"{kind.name}-{n}" not in taken]
            made: list[Any] = []
            try:
                for name in names[:count]:
                    made.append(_create(client, self._pattern(client, state), state, kind, name))
                    made[-1].start()
                return self._wait(made, state, kind, began + timeout_s)
            except BaseException:
                for container in made:
                    # Whatever Docker reports here, the first error is raised.
                    with contextlib.suppress(Exception):
                        container.remove(force=True, v=True)
                raise

    def shrink(self, names: Collection[str], *, drain_s: float = 60.0, timeout_s: float = 60.0) -> dict[str, int]:
        """Remove nodes by name; return how many containers ran on each when it was stopped (these are killed).

        ``drain_s``: how long running containers may take to end (0: stop at once). Raises InputError for an unknown
        name.
        """
        if not names:
            return {}
        with self.cluster.folder.lock(), self._open() as (client, state), _rest(state) as rest:
            by_name = {one.labels[NODE_NAME]: one for one in self._accelerators(client, state)}
            unknown = sorted(set(names) - by_name.keys())
            if unknown:
                known = ", ".join(sorted(by_name)) or "there is none"
                raise InputError(f"no accelerator {unknown[0][:60]!r}", where=state.mark, hint=f"name one of: {known}")
            leaving = {name: by_name[name] for name in names}
            left = self._drain(rest, leaving, drain_s) if drain_s > 0 else _running(rest, leaving)
            for name, container in leaving.items():
                self._progress(f"{name} leaves" + (f", {left[name]} container(s) killed" if left[name] else ""))
                # Java needs CPU time to unregister.
                _limit(container, None)
                container.stop(timeout=_STOP_S)
                container.remove(force=True, v=True)
            self._gone(rest, leaving, time.monotonic() + timeout_s)
            return left

    # --- inside ---

    @contextlib.contextmanager
    def _open(self) -> Iterator[tuple[Any, ClusterState]]:
        folder = self.cluster.folder
        state = folder.load() if folder.folder.exists() else None
        if state is None or state.running_s is None:
            raise InputError(
                "no cluster is up here", where=str(folder.folder), hint="bring one up: `yarnfair cluster up`"
            )
        with docker_client() as client:
            yield client, state

    def _accelerators(self, client: object, state: ClusterState) -> list[Any]:
        return _service(self.cluster.containers(client, state), ACCELERATOR)

    def _pattern(self, client: object, state: ClusterState) -> Any:
        own = _service(self.cluster.containers(client, state), "nm")
        if not own:
            hint = "bring the cluster up again: another NodeManager is made like one of its own"
            raise InputError("the cluster has no NodeManager of its own", where=state.mark, hint=hint)
        return own[0]

    def _wait(self, made: Sequence[Any], state: ClusterState, kind: NodeType, end: float) -> list[JoinedNode]:
        found: dict[str, JoinedNode] = {}
        with _rest(state) as rest:
            while True:
                by_host = {node.host: node for node in rest.nodes(("RUNNING",))}
                for container in made:
                    name, host = container.labels[NODE_NAME], _host(container)
                    if name not in found and host in by_host:
                        _limit(container, kind.cpus)
                        found[name] = JoinedNode(name, kind.name, host, by_host[host].id, time.time())
                        self._progress(f"{name} joined")
                if len(found) == len(made):
                    return [found[container.labels[NODE_NAME]] for container in made]
                for container in made:
                    container.reload()
                    if container.status in ("exited", "dead"):
                        raise InputError(f"{container.labels[NODE_NAME]} ended before it joined", where=container.name)
                if time.monotonic() >= end:
                    raise RunTimedOut(
                        f"{len(found)} of {len(made)} nodes of type {kind.name} joined in time",
                        where=state.rest,
                        hint="allow more with --timeout",
                    )
                time.sleep(_EVERY_S)

    def _drain(self, rest: RestClient, leaving: dict[str, Any], drain_s: float) -> dict[str, int]:
        end = time.monotonic() + drain_s
        hosts = {_host(container) for container in leaving.values()}
        for node in rest.nodes(("RUNNING",)):
            if node.host in hosts:
                # A node that the RM no longer has accepts nothing new either.
                with contextlib.suppress(Refused):
                    rest.set_node_resource(node.id, ZERO)
        while True:
            left = _running(rest, leaving)
            if not any(left.values()) or time.monotonic() >= end:
                return left
            time.sleep(_EVERY_S)

    def _gone(self, rest: RestClient, leaving: dict[str, Any], end: float) -> None:
        hosts = {_host(container) for container in leaving.values()}
        while any(node.host in hosts for node in rest.nodes(("RUNNING", "UNHEALTHY", "DECOMMISSIONING"))):
            if time.monotonic() >= end:
                raise RunTimedOut("the ResourceManager still has a node that was stopped", where=rest.http.current)
            time.sleep(_EVERY_S)


def _rest(state: ClusterState) -> RestClient:
    # The image's own user, who is the RM's administrator.
    return RestClient([state.rest], HttpOptions(user="yarn"))


def _service(containers: Sequence[Any], service: str) -> list[Any]:
    return [one for one in containers if one.labels.get("com.docker.compose.service") == service]


def _host(container: Any) -> str:
    return str(container.attrs["Config"]["Hostname"])


def _running(rest: RestClient, leaving: dict[str, Any]) -> dict[str, int]:
    by_host: dict[str, NodeStatus] = {node.host: node for node in rest.nodes(("RUNNING",))}
    hosts = {name: _host(container) for name, container in leaving.items()}
    return {name: by_host[host].containers if host in by_host else 0 for name, host in hosts.items()}


def _limit(container: Any, cpus: float | None) -> None:
    quota = -1 if cpus is None else max(round(cpus * _CPU_PERIOD_US), 1000)
    container.update(cpu_period=_CPU_PERIOD_US, cpu_quota=quota)


def _create(client: Any, pattern: Any, state: ClusterState, kind: NodeType, name: str) -> Any:
    """Create a container like another one, with the changes of the node type."""
    from docker.types import Mount

    config, settings = pattern.attrs["Config"], pattern.attrs["NetworkSettings"]
    own = {"NM_MEMORY_MB": str(kind.memory_mb), "NM_VCORES": str(kind.vcores)}
    given = dict(text.partition("=")[::2] for text in config["Env"])
    mounts = [
        Mount(
            mount["Destination"],
            mount["Name"] if mount["Type"] == "volume" else mount["Source"],
            type=mount["Type"],
            read_only=not mount["RW"],
        )
        for mount in pattern.attrs["Mounts"]
    ]
    return client.containers.create(
        config["Image"],
        config["Cmd"],
        name=f"{state.mark}-{name}",
        environment={**given, **own},
        labels={
            "com.docker.compose.project": state.mark,
            "com.docker.compose.service": ACCELERATOR,
            NODE_NAME: name,
            NODE_TYPE: kind.name,
        },
        mounts=mounts,
        network=next(iter(settings["Networks"])),
        mem_limit=f"{kind.limit_mb}m",
        init=True,
        detach=True,
    )
