"""Finds nodes that were added, removed or changed since the last poll of a ResourceManager. Pure: no clock, no file.

A node is present while the scheduler has it: RUNNING or DECOMMISSIONING. In any other state (including UNHEALTHY) the
scheduler has removed it together with its containers (RMNodeImpl).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Self

from harness.traces.nodes import NodeChangeLine, NodeEvent, NodeLine, Nodes, nodes_by_size, shown_by
from harness.yarn.answers import NodeStatus

#: Node states to request: by default the ResourceManager leaves out removed nodes.
ALL_STATES = (
    "NEW",
    "RUNNING",
    "UNHEALTHY",
    "DECOMMISSIONING",
    "DECOMMISSIONED",
    "LOST",
    "REBOOTED",
    "SHUTDOWN",
)
#: A node that is missing in this many successive polls is gone. A ResourceManager that starts shows few nodes at first.
MISSING_POLLS = 3


@dataclass(frozen=True, slots=True)
class KnownNode:
    """A node that takes part: the MiB and vcores that it offers, or offered before its decommissioning began.

    ``missed``: the number of successive polls that have not shown it in any state.
    """

    memory_mb: int
    vcores: int
    draining: bool = False
    missed: int = 0


@dataclass(frozen=True, slots=True)
class NodeStep:
    """A change of a node between two polls.

    Parameters
    ----------
    name
        The node's ID.
    change
        What happened.
    now
        The node after the change; for a removed node, as last known.
    before
        The node before the change; None if it was not present.
    """

    name: str
    change: NodeEvent
    now: KnownNode
    before: KnownNode | None


@dataclass(slots=True)
class NodeFollower:
    """The nodes as of the last poll; None: before the first poll."""

    known: dict[str, KnownNode] | None = None

    def poll(self, nodes: Iterable[NodeStatus]) -> list[NodeStep]:
        """Return what has changed since the last poll."""
        shown: dict[str, NodeStatus] = {}
        for node in nodes:
            if node.id not in shown or node.state in ("RUNNING", "DECOMMISSIONING"):
                shown[node.id] = node
        first, before = self.known is None, self.known or {}
        now: dict[str, KnownNode] = {}
        changes: list[NodeStep] = []
        for name in sorted({*shown, *before}):
            last, node_now = before.get(name), shown.get(name)
            found = _after(last, node_now)
            if found is not None:
                now[name] = found
            change = _change(last, found, node_now)
            if change is not None and not first:
                kept = found or last
                assert kept is not None
                changes.append(NodeStep(name, change, kept, last))
        self.known = now
        return changes

    def document(self) -> dict[str, Any] | None:
        """Return the state for ``FILE.running``."""
        return None if self.known is None else {name: asdict(node) for name, node in self.known.items()}

    @classmethod
    def restored(cls, document: Mapping[str, Any] | None) -> Self:
        """Restore the state from `document`; recorders of earlier versions wrote none."""
        return cls(None if document is None else {name: KnownNode(**node) for name, node in document.items()})


def _after(last: KnownNode | None, node: NodeStatus | None) -> KnownNode | None:
    """Return the node as known after a poll; None if it is gone."""
    if node is None:
        return replace(last, missed=last.missed + 1) if last is not None and last.missed + 1 < MISSING_POLLS else None
    if node.state == "DECOMMISSIONING":
        # Its advertised total is what it still runs. A node that was never seen running offers nothing.
        return None if last is None else replace(last, draining=True, missed=0)
    if node.state != "RUNNING" or node.total.memory_mb < 1 or node.total.vcores < 1:
        return None
    return KnownNode(node.total.memory_mb, node.total.vcores)


def _change(last: KnownNode | None, now: KnownNode | None, node: NodeStatus | None) -> NodeEvent | None:
    if last is None:
        return None if now is None else "joined"
    if now is None:
        return "decommissioned" if node is not None and node.state == "DECOMMISSIONED" else "lost"
    if now.draining != last.draining:
        return "decommissioning" if now.draining else "recommissioned"
    return "resized" if (now.memory_mb, now.vcores) != (last.memory_mb, last.vcores) else None


@dataclass(frozen=True, slots=True)
class NodeRecorder:
    """The nodes that a recording knows, and the changes that its lines contain so far.

    ``written``: the nodes as a reader of these lines knows them; None until the first line is written.
    """

    follower: NodeFollower = field(default_factory=NodeFollower)
    written: Nodes | None = None

    def poll(self, nodes: Sequence[NodeStatus], at_s: float) -> tuple[NodeRecorder, list[NodeChangeLine]]:
        """Return the recorder after a poll, and lines for the changes. This recorder is not changed."""
        follower = NodeFollower(self.follower.known)
        changes = follower.poll(nodes)
        if self.written is None or not changes:
            return replace(self, follower=follower), []
        written, found = self.written.copy(), []
        at_s = round(max(at_s, written.at_s), 3)
        for step in changes:
            for line in _lines_of(written, step, at_s):
                try:
                    written.change(line)
                except ValueError:
                    # Another version began this recording. In that case a first line shows the nodes (`Nodes.become`).
                    break
                found.append(line)
        return NodeRecorder(follower, written), found

    def offered(self) -> list[NodeLine]:
        """Return the nodes that take new containers, in the form of a first line."""
        known = (self.follower.known or {}).values()
        return nodes_by_size((node.memory_mb, node.vcores) for node in known if not node.draining)

    def shown(self, nodes: Sequence[NodeLine], ended_s: float) -> NodeRecorder:
        """Return the recorder after a first line that shows these nodes, which a reader interprets in the same way."""
        if self.written is None:
            return replace(self, written=Nodes(nodes))
        written = self.written.copy()
        written.become(shown_by(nodes), ended_s)
        return replace(self, written=written)


def _lines_of(written: Nodes, step: NodeStep, at_s: float) -> list[NodeChangeLine]:
    name, change, now, last = step.name, step.change, step.now, step.before
    more: dict[str, int] = {}
    if last is not None and not written.names(name):
        more = {"was_memory_mb": last.memory_mb, "was_vcores": last.vcores}
    size = {"memory_mb": now.memory_mb, "vcores": now.vcores}
    if change in ("joined", "resized"):
        return [NodeChangeLine(node=name, at_s=at_s, change=change, **size, **more)]
    lines = [NodeChangeLine(node=name, at_s=at_s, change=change, **more)]
    if change == "recommissioned" and last is not None and (last.memory_mb, last.vcores) != (now.memory_mb, now.vcores):
        lines.append(NodeChangeLine(node=name, at_s=at_s, change="resized", **size))
    return lines
