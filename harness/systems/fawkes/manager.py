"""FAWKES' mechanism as a state machine without clock and nodes: admission, weights every T, discrimination, resizing.

A driver (a scenario on paper, the simulator) tells it what happens; it answers with orders, in numbers of nodes.
Source: SIGMETRICS 2014, sections 3.1, 4.1 and 4.2. What the paper leaves open is decided in docs/decisions/fawkes.md.
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

#: queued: no room for its minimum share; waiting: admitted, core nodes are being freed; loading: input data come in;
#: active; saving: output data go out, nodes are held.
State = Literal["queued", "waiting", "loading", "active", "saving"]


@dataclass(frozen=True, slots=True)
class Resize:
    """The target sizes of MR-clusters. Nodes above them are to be released, those that become free to be claimed."""

    targets: dict[str, int]


@dataclass(frozen=True, slots=True)
class Start:
    """The MR-cluster holds its core nodes: its data is to be loaded."""

    name: str


@dataclass(frozen=True, slots=True)
class Remove:
    """The MR-cluster did nothing for T: its data is to be saved, then all its nodes are released."""

    name: str


Command = Resize | Start | Remove


@dataclass(slots=True)
class Member:
    """An MR-cluster that was requested and has not been removed."""

    name: str
    core: int
    state: State
    nodes: int = 0
    target: int = 0
    weight: Number = Fraction(0)
    #: D_i since the last resize (after an update: by the weights of the samples of each interval, section 4.2.2), and
    #: since the request (eq. 2, by the weights in force), seconds of the whole system.
    interval: Number = Fraction(0)
    overall: Number = Fraction(0)
    #: Since the last update: seconds as an active one, and the integral of the weight that it had in them.
    active_s: Number = Fraction(0)
    weighted_s: Number = Fraction(0)
    samples: list[tuple[Number, ...]] = field(default_factory=list)
    busy: bool = False  # whether anything ran or waited since the last update


@dataclass(frozen=True, slots=True)
class Update:
    """What an update of the weights found, for the answer and for the records."""

    time_s: Number
    weights: dict[str, Number]
    temporal: dict[str, Number]
    interval: dict[str, Number]
    global_discrimination: Number
    variance: Number
    resized: bool


def _means(samples: list[tuple[Number, ...]]) -> tuple[Number, ...]:
    """The mean of each figure of the samples; 0 without any (a policy has at most two)."""
    if not samples:
        return (Fraction(0), Fraction(0))
    return tuple(sum(figures, Fraction(0)) / len(samples) for figures in zip(*samples, strict=True))


class Manager:
    """All MR-clusters of one system of `capacity` equal nodes under one policy.

    Times never decrease. ``updates`` and ``reconfigurations`` are what happened so far; a reconfiguration is an update
    that moves nodes (deployments and removals are not counted, section 7.3).
    """

    def __init__(self, capacity: int, policy: Weighting) -> None:
        self.capacity, self.policy = capacity, policy
        self.tau: Number = policy.exact.get("tau", policy.settings.tau)
        self.members: dict[str, Member] = {}
        self.queue: list[str] = []
        self.time_s: Number = Fraction(0)
        self.updates: list[Update] = []
        self.reconfigurations = 0
        #: Overall discrimination of those that were removed; who is requested again goes on from there.
        self.overall: dict[str, Number] = {}

    # --- events ---

    def request(self, name: str, core: int, now_s: Number) -> list[Command]:
        """An MR-cluster of `core` nodes is to be deployed. Queued (FIFO) while the minimum shares exceed the system."""
        self._advance(now_s)
        self.members[name] = Member(name, core, "queued")
        self.queue.append(name)
        return self._admit()

    def sample(self, name: str, metrics: Metrics) -> None:
        """One sample of an active MR-cluster's metrics."""
        member = self.members[name]
        member.samples.append(self.policy.values(metrics))
        member.busy = member.busy or not metrics.idle

    def loaded(self, name: str, now_s: Number) -> list[Command]:
        """The input data are there: the MR-cluster is active, until the next update with 1 / n of the weight."""
        self._advance(now_s)
        others = self.active()
        member = self.members[name]
        member.state, member.busy = "active", True
        for other in others:
            other.weight = other.weight * Fraction(len(others), len(others) + 1)
        member.weight = Fraction(1, len(others) + 1)
        return []

    def update(self, now_s: Number) -> list[Command]:
        """T has passed: weights from the samples, removal of who did nothing, resizing above tau."""
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
            # Weights first, then discriminations: the samples are of the interval that has just passed.
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
        """Numbers of nodes that MR-clusters hold from now on."""
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
        """All nodes of an MR-cluster were released: the head of the queue may fit now."""
        self._advance(now_s)
        self.overall[name] = self.overall.get(name, Fraction(0)) + self.members.pop(name).overall
        return self._admit()

    # --- state ---

    def active(self) -> list[Member]:
        """In the order of their requests."""
        return [member for member in self.members.values() if member.state == "active"]

    def targets(self) -> dict[str, int]:
        """The target size of everybody who is admitted."""
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
        """Sizes of the active MR-clusters by their weights, in what the others leave them."""
        active = self.active()
        others = sum(m.target for m in self.members.values() if m.state not in ("queued", "active"))
        return whole_nodes(self.capacity - others, {m.name: m.weight for m in active}, {m.name: m.core for m in active})

    def _admit(self) -> list[Command]:
        """From the head of the queue, as long as minimum shares fit; active MR-clusters make room."""
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
