"""The FAWKES mechanism as a state machine: admission, weights every period T, discrimination, resizing.

It has neither a clock nor nodes of its own. A driver (a scenario on paper, or the simulator) reports events to it and
carries out the commands that it returns; sizes are numbers of nodes. Source: SIGMETRICS 2014, sections 3.1, 4.1 and
4.2. docs/decisions/fawkes.md lists the decisions on what the paper leaves open.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal

from harness.systems.fawkes.shares import (
    Metrics,
    Number,
    Weighting,
    global_discrimination,
    make_room,
    temporal_discrimination,
    variance,
    whole_nodes,
)

#: queued: its minimum share does not fit yet; waiting: admitted, its core nodes are being freed; loading: input data
#: are copied in; active: runs jobs; saving: output data are copied out while it still holds its nodes.
State = Literal["queued", "waiting", "loading", "active", "saving"]


@dataclass(frozen=True, slots=True)
class Resize:
    """Command: change the sizes of MR-clusters to these targets, in nodes.

    Nodes above a target are to be released; nodes that become free are to be given to MR-clusters below their targets.
    """

    targets: dict[str, int]


@dataclass(frozen=True, slots=True)
class Start:
    """Command: load the data of an MR-cluster, which now holds its core nodes."""

    name: str


@dataclass(frozen=True, slots=True)
class Remove:
    """Command: save the data of an MR-cluster that was idle for a period T, then release all its nodes."""

    name: str


Command = Resize | Start | Remove


@dataclass(slots=True)
class Member:
    """The state of one MR-cluster from its request until its removal."""

    name: str
    core: int
    state: State
    nodes: int = 0
    target: int = 0
    weight: Number = Fraction(0)
    #: D_i since the last resize and D_i since the request (eq. 2), both in seconds of the whole system. Each update
    #: recomputes its part of ``interval`` with the weights of the period that just ended (section 4.2.2); ``overall``
    #: uses the weights that were in force.
    interval: Number = Fraction(0)
    overall: Number = Fraction(0)
    #: Since the last update: seconds in state active, and the integral of its weight over them.
    active_s: Number = Fraction(0)
    weighted_s: Number = Fraction(0)
    samples: list[tuple[Number, ...]] = field(default_factory=list)
    busy: bool = False  # whether any job or task ran or waited in a sample since the last update


@dataclass(frozen=True, slots=True)
class Update:
    """The results of one update of the weights, for the answer and the records."""

    time_s: Number
    weights: dict[str, Number]
    temporal: dict[str, Number]
    interval: dict[str, Number]
    global_discrimination: Number
    variance: Number
    resized: bool


def _means(samples: list[tuple[Number, ...]]) -> tuple[Number, ...]:
    """Return the mean of each value over the samples.

    Without samples it returns two zeros, because a policy has at most two values.
    """
    if not samples:
        return (Fraction(0), Fraction(0))
    return tuple(sum(figures, Fraction(0)) / len(samples) for figures in zip(*samples, strict=True))


class Manager:
    """The state of all MR-clusters that share `capacity` equal nodes under one policy.

    Times passed to the methods must not decrease. ``updates`` and ``reconfigurations`` record what has happened so far.
    A reconfiguration is an update that moves nodes; deployments and removals are not counted (section 7.3).
    """

    def __init__(self, capacity: int, policy: Weighting) -> None:
        self.capacity, self.policy = capacity, policy
        self.tau: Number = policy.exact.get("tau", policy.settings.tau)
        self.members: dict[str, Member] = {}
        self.queue: list[str] = []
        self.time_s: Number = Fraction(0)
        self.updates: list[Update] = []
        self.reconfigurations = 0
        #: Overall discrimination of removed MR-clusters by name, summed over repeated requests of a name.
        self.overall: dict[str, Number] = {}

    # --- events ---

    def request(self, name: str, core: int, now_s: Number) -> list[Command]:
        """Request an MR-cluster of `core` nodes.

        It waits in a FIFO queue while the minimum shares exceed the system.
        """
        self._advance(now_s)
        self.members[name] = Member(name, core, "queued")
        self.queue.append(name)
        return self._admit()

    def sample(self, name: str, metrics: Metrics) -> None:
        """Add one sample of an active MR-cluster's metrics."""
        member = self.members[name]
        member.samples.append(self.policy.values(metrics))
        member.busy = member.busy or not metrics.idle

    def loaded(self, name: str, now_s: Number) -> list[Command]:
        """Make an MR-cluster active when its input data are loaded.

        Until the next update its weight is 1 / n, with n active MR-clusters, and the other weights shrink in
        proportion.
        """
        self._advance(now_s)
        others = self.active()
        member = self.members[name]
        member.state, member.busy = "active", True
        for other in others:
            other.weight = other.weight * Fraction(len(others), len(others) + 1)
        member.weight = Fraction(1, len(others) + 1)
        return []

    def update(self, now_s: Number) -> list[Command]:
        """Update at the end of a period T and return the commands.

        It computes weights from the samples, removes MR-clusters that were idle for the whole period, and resizes the
        others if the global discrimination exceeds tau.
        """
        self._advance(now_s)
        commands: list[Command] = []
        for member in self.active():
            if not member.busy:
                member.state, member.target = "saving", member.core
                commands.append(Remove(member.name))
        active = self.active()
        weights = self.policy.weights({member.name: _means(member.samples) for member in active})
        for member in active:
            member.weight = weights[member.name]
            # Weights before discriminations, because the samples belong to the period that just ended.
            member.interval += member.weighted_s - member.weight * member.active_s
            member.active_s = member.weighted_s = Fraction(0)
            member.samples, member.busy = [], False
        interval = {member.name: member.interval for member in active}
        over = global_discrimination(interval)
        targets = self._targets() if self.policy.resizes else {}
        resized = bool(active) and over > self.tau and any(m.target != targets.get(m.name, m.target) for m in active)
        fractions = {member.name: self._fraction(member) for member in active}
        self.updates.append(
            Update(
                now_s, weights, temporal_discrimination(fractions, weights), interval, over, variance(interval), resized
            )
        )
        if resized:
            self.reconfigurations += 1
            for member in active:
                member.target, member.interval = targets[member.name], Fraction(0)
        if resized or commands:
            commands.append(Resize(self.targets()))
        return commands

    def holds(self, counts: Iterable[tuple[str, int]], now_s: Number) -> list[Command]:
        """Set the numbers of nodes that MR-clusters hold from now on.

        Returns the commands that start loading those that now hold their core nodes.
        """
        self._advance(now_s)
        commands: list[Command] = []
        for name, nodes in counts:
            member = self.members[name]
            member.nodes = nodes
            if member.state == "waiting" and nodes >= member.core:
                member.state = "loading"
                commands.append(Start(name))
        return commands

    def removed(self, name: str, now_s: Number) -> list[Command]:
        """Remove an MR-cluster whose nodes have all been released, and admit from the queue what now fits."""
        self._advance(now_s)
        self.overall[name] = self.overall.get(name, Fraction(0)) + self.members.pop(name).overall
        return self._admit()

    # --- state ---

    def active(self) -> list[Member]:
        """Return the active MR-clusters in the order of their requests."""
        return [member for member in self.members.values() if member.state == "active"]

    def targets(self) -> dict[str, int]:
        """Return the target size of every MR-cluster that is not queued, in nodes."""
        return {member.name: member.target for member in self.members.values() if member.state != "queued"}

    def _fraction(self, member: Member) -> Number:
        return Fraction(member.nodes, self.capacity)

    def _advance(self, now_s: Number) -> None:
        passed = now_s - self.time_s
        if passed > 0:
            for member in self.members.values():
                weight = member.weight if member.state == "active" else 0
                part = (self._fraction(member) - weight) * passed
                member.overall += part
                if member.state == "active":
                    member.interval += part
                    member.active_s += passed
                    member.weighted_s += weight * passed
            self.time_s = now_s

    def _targets(self) -> dict[str, int]:
        """Return the active MR-clusters' target sizes: by weight, the nodes that are no target of the other states."""
        active = self.active()
        others = sum(m.target for m in self.members.values() if m.state not in ("queued", "active"))
        return whole_nodes(self.capacity - others, {m.name: m.weight for m in active}, {m.name: m.core for m in active})

    def _admit(self) -> list[Command]:
        """Admit MR-clusters from the head of the queue while their minimum shares fit.

        Active MR-clusters shrink to make room.
        """
        admitted = False
        while self.queue:
            member = self.members[self.queue[0]]
            here = [other for other in self.members.values() if other.state != "queued"]
            if sum(other.core for other in here) + member.core > self.capacity:
                break
            self.queue.pop(0)
            idle = self.capacity - sum(other.target for other in here)
            active = self.active()
            gives = make_room(
                max(member.core - idle, 0),
                {other.name: other.target for other in active},
                {other.name: other.core for other in active},
                {other.name: other.weight for other in active},
            )
            for other in active:
                other.target -= gives[other.name]
            member.state, member.target = "waiting", member.core
            admitted = True
        return [Resize(self.targets())] if admitted else []
