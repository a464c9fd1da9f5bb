"""The status of a cluster: its parts, its nodes according to the ResourceManager; and waiting until all of them run.

The same for every backend; the backends provide the parts.
"""

from __future__ import annotations

import posixpath
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from harness.base.errors import InputError, RunTimedOut
from harness.yarn.answers import ClusterInfo, NodeStatus
from harness.yarn.errors import BadAnswer, Refused, Unreachable
from harness.yarn.http import HttpOptions
from harness.yarn.queue_answers import FAIR
from harness.yarn.rest import RestClient
from harness.yarn.rmclient import RmAddress

#: The states are requested by name, because without them the RM leaves lost nodes out.
NODE_STATES = ("NEW", "RUNNING", "UNHEALTHY", "LOST", "REBOOTED", "DECOMMISSIONING", "DECOMMISSIONED", "SHUTDOWN")
#: A node that is UNHEALTHY for this long has a reason that waiting does not remove (its disk check runs every 2
#: minutes).
UNHEALTHY_FOR_S = 5.0
_QUICK = HttpOptions(connect_timeout_s=1, read_timeout_s=5, deadline_s=6, attempts=1)


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a cluster. `runs_as`: its pid or container (None: it does not run). Memory: resident, MiB."""

    name: str
    runs_as: str | None
    memory_mb: float | None
    node: str  # identifies its node among the RM's: the id's host, or its ":port"
    last_words: str | None = None  # why it ended, according to its log; None while it runs

    def is_node(self, identity: str) -> bool:
        """Return whether this part is the node to which the RM gives this id."""
        host, colon, port = identity.rpartition(":")
        return self.node in (host, colon + port)

    def document(self) -> dict[str, Any]:
        """Return the document for ``--json``."""
        return {
            "name": self.name,
            "runs_as": self.runs_as,
            "memory_mb": self.memory_mb,
            "last_words": self.last_words,
        }


@dataclass(frozen=True, slots=True)
class ClusterStatus:
    """A cluster's present status. `info` is None if the RM does not answer; `problem` then explains why.

    `running_s`: seconds from ``up`` to all nodes RUNNING. `recorded_id`: the id of the RM that ``up`` saw. `wanted` is
    0 if no number of nodes was requested, because the cluster already ran.
    """

    backend: str
    folder: str
    scheduler_folder: str
    address: RmAddress
    wanted: int
    rm: Part
    parts: Sequence[Part]
    others: Sequence[Part]
    info: ClusterInfo | None
    nodes: Sequence[NodeStatus]
    problem: str | None
    running_s: float | None
    recorded_id: int | None
    scheduler_file: str = "fair-scheduler.xml"  # its name in scheduler_folder
    scheduler_host: str | None = None  # the host that has the folder; None: this machine
    not_forwarded: frozenset[str] = frozenset()  # ports ("admin", "client") that cannot be reached
    history: str | None = None  # the JobHistoryServer's address
    enforce: Mapping[str, Any] | None = None  # settings of `yarnfair enforce`'s configuration to reach it from here

    @property
    def allocation_file(self) -> str:
        """Return the location of the allocation file: a path, or HOST:PATH."""
        path = posixpath.join(self.scheduler_folder, self.scheduler_file)
        return path if self.scheduler_host is None else f"{self.scheduler_host}:{path}"

    def rpc(self, name: Literal["admin", "client"]) -> str | None:
        """Return the RM's admin or client RPC address (HOST:PORT); None if it is not reachable from here."""
        return None if name in self.not_forwarded else str(getattr(self.address, name))

    @property
    def up(self) -> bool:
        """Return whether every part runs, the RM answers, and all requested nodes are RUNNING.

        The RM shows a lost node as RUNNING for a while, so the parts are checked, too.
        """
        running = sum(node.state == "RUNNING" for node in self.nodes)
        parts = [self.rm, *self.parts]
        return self.info is not None and running >= self.wanted and all(part.runs_as for part in parts)

    def document(self) -> dict[str, Any]:
        """Return the document for ``--json``."""
        nodes = []
        unmatched = {node.id: node for node in self.nodes}
        for part in self.parts:
            ids = [identity for identity in unmatched if part.is_node(identity)]
            node = unmatched.pop(ids[-1]) if ids else None
            nodes.append({**part.document(), **_node_document(node)})
        nodes += [
            {"name": None, "runs_as": None, "memory_mb": None, **_node_document(node)} for node in unmatched.values()
        ]
        return {
            "backend": self.backend,
            "up": self.up,
            "state": self.folder,
            "scheduler_folder": self.scheduler_folder,
            "allocation_file": self.allocation_file,
            **({"enforce": dict(self.enforce)} if self.enforce is not None else {}),
            "seconds_to_running": self.running_s,
            "nodes_wanted": self.wanted,
            "nodes_running": sum(node.state == "RUNNING" for node in self.nodes),
            "problem": self.problem,
            **({"history": self.history} if self.history is not None else {}),
            "rm": {
                **self.rm.document(),
                "rest": self.address.rest,
                "admin": self.rpc("admin"),
                "client": self.rpc("client"),
                "id": self.info.id if self.info else None,
                "state": self.info.state if self.info else None,
                "ha_state": self.info.ha_state if self.info else None,
                "version": self.info.version if self.info else None,
            },
            "nodes": nodes,
            "others": [part.document() for part in self.others],
        }


def _node_document(node: NodeStatus | None) -> dict[str, Any]:
    return {
        "id": node.id if node else None,
        "state": node.state if node else None,
        "health_report": node.health_report if node else None,
        "containers": node.containers if node else None,
        "advertised": {"memory_mb": node.total.memory_mb, "vcores": node.total.vcores} if node else None,
    }


def last_words(log: Sequence[str]) -> str:
    """Return the most informative line of a daemon's log on why it ended: the innermost cause, else the last error."""
    for sign in ("Caused by: ", " FATAL ", " ERROR ", "Exception"):
        told = [line for line in log if sign in line]
        if told:
            return " ".join(told[-1].removeprefix("Caused by: ").split())[:400]
    return " ".join(log[-1].split())[:400] if log else "its log is empty"


def look(rest_address: str) -> tuple[ClusterInfo | None, list[NodeStatus], str | None]:
    """Return the RM's answers at this address: itself, all its nodes, and why it does not answer (None: it does)."""
    with RestClient([rest_address], _QUICK) as rest:
        try:
            return rest.info(), rest.nodes(NODE_STATES), None
        except (Unreachable, Refused, BadAnswer) as error:
            return None, [], error.line()


def scheduler_of(rest_address: str) -> str:
    """Return which scheduler the RM at this address has: ``fair`` or ``capacity``. Raises the errors of RestClient."""
    with RestClient([rest_address], _QUICK) as rest:
        return "fair" if rest.scheduler().type == FAIR else "capacity"


def wait_for_nodes(
    rest_address: str,
    wanted: int,
    end: float,
    *,
    check: Callable[[], None] = lambda: None,
    progress: Callable[[str], None] = lambda _: None,
    every_s: float = 0.2,
) -> ClusterInfo:
    """Wait until `wanted` nodes are RUNNING; return the RM's identity.

    `end` is on the monotonic clock, `check` raises if waiting is pointless. RunTimedOut reports the progress; a node
    that stays UNHEALTHY raises InputError.
    """
    with RestClient([rest_address], _QUICK) as rest:
        said = -1
        sick_since: float | None = None
        while True:
            check()
            try:
                info = rest.info()
                nodes = rest.nodes(NODE_STATES)
                running = sum(node.state == "RUNNING" for node in nodes)
                sick = [node for node in nodes if node.state == "UNHEALTHY"]
                problem = f"{running} of {wanted} nodes RUNNING"
                if running != said:
                    progress(problem)
                    said = running
                if running >= wanted:
                    return info
                sick_since = (sick_since or time.monotonic()) if sick else None
                if sick_since is not None and time.monotonic() - sick_since > UNHEALTHY_FOR_S:
                    raise InputError(
                        f"{problem}, {sick[0].id} is UNHEALTHY: {sick[0].health_report or 'it does not say why'}",
                        where=rest_address,
                        hint="free space on the disk, or do without --disk-checks",
                    )
            except (Unreachable, Refused, BadAnswer) as error:
                problem = f"the ResourceManager does not answer: {error.what}"
            if time.monotonic() >= end:
                raise RunTimedOut(
                    f"the cluster did not come up in time: {problem}",
                    where=rest_address,
                    hint="allow more with --timeout, or ask `yarnfair cluster doctor`",
                )
            time.sleep(every_s)
