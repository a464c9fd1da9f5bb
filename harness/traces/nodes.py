"""The nodes of a recorded cluster over time: the size that each advertised, and when it came and went.

A trace has the initial nodes by size, and a line for each change (`NodeChangeLine`). Only nodes that change have names.
Pure: no I/O.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, Self

from pydantic import Field, model_validator

from harness.base.documents import Name, Seconds, Strict

#: The possible changes of a node.
NodeEvent = Literal["joined", "resized", "decommissioning", "recommissioned", "decommissioned", "lost"]
#: The changes after which a node is no longer present.
GONE: frozenset[NodeEvent] = frozenset(("decommissioned", "lost"))


class Line(Strict):
    """The base class of the lines of a trace."""

    keys_page: ClassVar[str] = "docs/reference/trace.md"


class NodeLine(Line):
    """``count`` nodes that advertise the same resources."""

    count: int = Field(default=1, ge=1, le=100_000)
    """Number of nodes."""
    memory_mb: int = Field(ge=1, le=2**40)
    """Memory of each node, MiB."""
    vcores: int = Field(ge=1, le=2**20)
    """Vcores of each node."""


class NodeChangeLine(Line):
    """A change of one node."""

    node: Name
    """The node's id."""
    at_s: Seconds
    """Time of the change, seconds of the trace. In a recording, the poll that first shows the change."""
    change: NodeEvent
    """`joined`, `resized`, `decommissioning` (gracefully: its containers run to their ends and no new ones start),
    `recommissioned` (decommissioning was cancelled), `decommissioned` or `lost`."""
    memory_mb: int | None = Field(default=None, ge=1, le=2**40)
    """For `joined` and `resized`: its memory after the change, MiB."""
    vcores: int | None = Field(default=None, ge=1, le=2**20)
    """For `joined` and `resized`: its vcores after the change."""
    was_memory_mb: int | None = Field(default=None, ge=1, le=2**40)
    """Its memory before the change, MiB. Only in the first line about a node that was present from the beginning."""
    was_vcores: int | None = Field(default=None, ge=1, le=2**20)
    """Its vcores before the change, in the same line."""

    @model_validator(mode="after")
    def _sized(self) -> Self:
        if (self.memory_mb is None) != (self.vcores is None) or (self.was_memory_mb is None) != (
            self.was_vcores is None
        ):
            raise ValueError("a node has memory and vcores: give both")
        sized = self.change in ("joined", "resized")
        if sized != (self.memory_mb is not None):
            raise ValueError(f"memory_mb and vcores belong to joined and resized, and the change is {self.change}")
        if self.change == "joined" and self.was_memory_mb is not None:
            raise ValueError("a node that joins was not there before: leave out was_memory_mb and was_vcores")
        return self


@dataclass(frozen=True, slots=True)
class Step:
    """A change of a node while it is present.

    at_s : time of the change, seconds of the trace.
    size : (MiB, vcores) that the node advertises from then on; None: graceful decommissioning begins.
    """

    at_s: float
    size: tuple[int, int] | None


@dataclass(frozen=True, slots=True)
class Presence:
    """A node from one registration to its end.

    size : (MiB, vcores) at its registration.
    join_s, leave_s : its registration and its end, seconds of the trace; ``leave_s`` None: it stays.
    steps : changes in between.
    """

    size: tuple[int, int]
    join_s: float = 0.0
    leave_s: float | None = None
    steps: tuple[Step, ...] = ()

    @property
    def draining(self) -> bool:
        """Return whether it is being decommissioned at the end."""
        return bool(self.steps) and self.steps[-1].size is None

    def size_now(self) -> tuple[int, int]:
        """Return (MiB, vcores) after all steps, whether or not it is being decommissioned."""
        return next((step.size for step in reversed(self.steps) if step.size is not None), self.size)


#: Prefix of the ids given to nodes that the trace does not name; the times of their changes are estimated.
_UNNAMED = "unnamed-"


class Nodes:
    """The nodes over time, as the lines of changes are read one after the other.

    Parameters
    ----------
    nodes
        The initial nodes.
    """

    def __init__(self, nodes: Iterable[NodeLine]) -> None:
        #: Size -> number of initial nodes that no line has named.
        self._unnamed = shown_by(nodes)
        self._there: dict[str, Presence] = {}
        self._gone: list[Presence] = []
        self._estimated = 0
        #: The time of the last change.
        self.at_s = 0.0

    def copy(self) -> Nodes:
        """Return an independent copy."""
        found = Nodes(())
        found._unnamed, found._there, found._gone = Counter(self._unnamed), dict(self._there), list(self._gone)
        found._estimated, found.at_s = self._estimated, self.at_s
        return found

    def names(self, node: str) -> bool:
        """Return whether a line has named this node and it is present."""
        return node in self._there

    def change(self, line: NodeChangeLine) -> None:
        """Apply one change. Raises ValueError, without changing anything, if the change is impossible."""
        if line.at_s < self.at_s:
            raise ValueError(f"node {line.node!r} changes at {line.at_s:g} s, after a change at {self.at_s:g} s")
        known = self._there.get(line.node)
        if line.change == "joined":
            if known is not None:
                raise ValueError(f"node {line.node!r} joins at {line.at_s:g} s and is there already")
            assert line.memory_mb is not None
            assert line.vcores is not None
            self._there[line.node] = Presence((line.memory_mb, line.vcores), line.at_s)
        else:
            now = known or self._from_the_beginning(line)
            if line.change in GONE:
                self._there.pop(line.node, None)
                if line.at_s > now.join_s:
                    self._gone.append(replace(now, leave_s=line.at_s))
            else:
                self._there[line.node] = replace(now, steps=(*now.steps, Step(line.at_s, _size_after(line, now))))
        self.at_s = line.at_s

    def _from_the_beginning(self, line: NodeChangeLine) -> Presence:
        """Return the initial node that a line names for the first time."""
        if line.change == "recommissioned":
            raise ValueError(f"node {line.node!r} is recommissioned, and was not being decommissioned")
        if line.was_memory_mb is None or line.was_vcores is None:
            raise ValueError(
                f"node {line.node!r} is {line.change} and no line says that it joined; give was_memory_mb and "
                "was_vcores of a node that was there from the beginning"
            )
        size = (line.was_memory_mb, line.was_vcores)
        if self._unnamed[size]:
            self._unnamed[size] -= 1
            return Presence(size)
        for name, one in self._there.items():
            if name.startswith(_UNNAMED) and one.size_now() == size and not one.draining:
                return self._there.pop(name)
        raise ValueError(f"there is no further node of {size[0]} MiB and {size[1]} vcores for {line.node!r}")

    def offered(self) -> Counter[tuple[int, int]]:
        """Return size -> number of nodes that take new containers now."""
        named = Counter(one.size_now() for one in self._there.values() if not one.draining)
        return +(self._unnamed + named)

    def become(self, shown: Counter[tuple[int, int]], at_s: float) -> list[NodeChangeLine]:
        """Apply and return changes that lead to these nodes taking new containers; which nodes changed is not known.

        Removed nodes are assumed to have been decommissioned gracefully, so their containers ran to their ends.
        """
        at_s, found = max(at_s, self.at_s), []
        now = self.offered()
        for size, count in sorted((now - shown).items()):
            named = [name for name, one in self._there.items() if one.size_now() == size and not one.draining]
            for at in range(count):
                was = {}
                if self._unnamed[size]:
                    name, was = self._next_name(), {"was_memory_mb": size[0], "was_vcores": size[1]}
                else:
                    name = named[at - count]
                found.append(NodeChangeLine(node=name, at_s=at_s, change="decommissioning", **was))
                found.append(NodeChangeLine(node=name, at_s=at_s, change="decommissioned"))
                for line in found[-2:]:
                    self.change(line)
        for size, count in sorted((shown - now).items()):
            for _ in range(count):
                name = self._next_name()
                line = NodeChangeLine(node=name, at_s=at_s, change="joined", memory_mb=size[0], vcores=size[1])
                self.change(line)
                found.append(line)
        return found

    def _next_name(self) -> str:
        while True:
            self._estimated += 1
            if (name := f"{_UNNAMED}{self._estimated}") not in self._there:
                return name

    def presences(self) -> list[tuple[Presence, int]]:
        """Return every node from registration to end, with the number of equal ones."""
        found = [(Presence(size), count) for size, count in sorted(self._unnamed.items()) if count]
        named = Counter([*self._gone, *self._there.values()])
        return found + sorted(named.items(), key=lambda one: (one[0].join_s, one[0].size, one[0].leave_s or 0.0))


def _size_after(line: NodeChangeLine, now: Presence) -> tuple[int, int] | None:
    """Return what a node that stays advertises after a change; None if it is being decommissioned."""
    if line.change == "resized":
        assert line.memory_mb is not None
        assert line.vcores is not None
        return (line.memory_mb, line.vcores)
    if line.change == "decommissioning":
        return None
    if not now.draining:
        raise ValueError(f"node {line.node!r} is recommissioned, and was not being decommissioned")
    return now.size_now()


def nodes_by_size(sizes: Iterable[tuple[int, int]]) -> list[NodeLine]:
    """Return nodes grouped by size, from the (MiB, vcores) of each node."""
    return node_lines(Counter(sizes))


def node_lines(counts: Mapping[tuple[int, int], int]) -> list[NodeLine]:
    """Return lines for counts of nodes of each size (MiB, vcores), the smallest first; counts of 0 are left out."""
    return [NodeLine(count=n, memory_mb=mb, vcores=vcores) for (mb, vcores), n in sorted(counts.items()) if n]


def shown_by(nodes: Iterable[NodeLine]) -> Counter[tuple[int, int]]:
    """Return size (MiB, vcores) -> number of nodes."""
    found: Counter[tuple[int, int]] = Counter()
    for line in nodes:
        found[line.memory_mb, line.vcores] += line.count
    return found


def presences_of(nodes: Iterable[NodeLine], changes: Iterable[NodeChangeLine]) -> list[tuple[Presence, int]]:
    """Return every node of a trace from registration to end, with the number of equal ones. Raises ValueError."""
    found = Nodes(nodes)
    for line in changes:
        found.change(line)
    return found.presences()


def capacity_steps(presences: Sequence[tuple[Presence, int]]) -> list[tuple[float, int, int]]:
    """Return the capacity for new containers over time: (from when in seconds, MiB, vcores), in order, from 0 on.

    A node that is being decommissioned offers nothing: its total follows what it still runs
    (AbstractYarnScheduler.nodeUpdate).
    """
    changes: dict[float, list[int]] = {0.0: [0, 0]}
    for one, count in presences:
        before = (0, 0)
        steps = [Step(one.join_s, one.size), *one.steps]
        if one.leave_s is not None:
            steps.append(Step(one.leave_s, None))
        for step in steps:
            now = step.size or (0, 0)
            at = changes.setdefault(step.at_s, [0, 0])
            at[0] += count * (now[0] - before[0])
            at[1] += count * (now[1] - before[1])
            before = now
    found: list[tuple[float, int, int]] = []
    memory_mb = vcores = 0
    for at_s, (more_mb, more_vcores) in sorted(changes.items()):
        memory_mb, vcores = memory_mb + more_mb, vcores + more_vcores
        if not found or (memory_mb, vcores) != found[-1][1:]:
            found.append((at_s, memory_mb, vcores))
    return found


def largest_mb(nodes: Iterable[NodeLine], changes: Iterable[NodeChangeLine]) -> int:
    """Return the memory of the largest node that ever existed, MiB."""
    return max([line.memory_mb for line in nodes] + [line.memory_mb or 0 for line in changes])
