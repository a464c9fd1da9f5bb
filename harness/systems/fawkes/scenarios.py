"""Scenarios of MR-clusters on paper: reading their YAML, and running the FAWKES mechanism over them exactly.

docs/reference/fawkes.md describes the format. The mechanism is the simulator's (`harness.systems.fawkes.manager`), but
nodes move at once.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from fractions import Fraction
from typing import Any

from harness.base.errors import InputError
from harness.base.sums import plain
from harness.paper import Family
from harness.paper.reader import Fields, shown
from harness.policies.base import Policy
from harness.systems.fawkes.manager import Command, Manager, Remove, Resize, Start
from harness.systems.fawkes.policies import weighting_of
from harness.systems.fawkes.shares import Metrics, Number, Weighting

#: Maximum number of instants of a scenario plus samples of its MR-clusters; about ten seconds of computing.
MAX_LOOKS = 100_000
MAX_CLUSTERS = 1_000
METRICS = tuple(entry.name for entry in fields(Metrics))
_TOP = ("description", "nodes", "clusters", "sample_s", "until_s")
_CLUSTER = ("core", "arrival_s", "load_s", "save_s", "metrics")


@dataclass(frozen=True, slots=True)
class PaperCluster:
    """One MR-cluster of a scenario.

    ``metrics`` is sorted: (seconds since its activation, the metrics that samples read from then on).
    """

    name: str
    core: int
    arrival_s: Fraction
    load_s: Fraction
    save_s: Fraction
    metrics: tuple[tuple[Fraction, Metrics], ...]

    def at(self, active_s: Fraction) -> Metrics:
        """Return the metrics that a sample reads `active_s` seconds after activation."""
        found = Metrics()
        for since, metrics in self.metrics:
            if since <= active_s:
                found = metrics
        return found


@dataclass(frozen=True, slots=True)
class ClustersScenario:
    """MR-clusters on `nodes` equal nodes.

    ``until_s`` is the end in seconds, or None to run until all MR-clusters have been removed. ``sample_at`` is the
    position of ``sample_s`` in the file, for error messages.
    """

    nodes: int
    clusters: tuple[PaperCluster, ...]
    sample_s: Fraction = Fraction(10)
    until_s: Fraction | None = None
    sample_at: str | None = None


@dataclass(slots=True)
class ClustersAllocation:
    """The answer: the nodes of every MR-cluster over time, one step for each instant at which something happened."""

    policy: str
    steps: list[dict[str, Any]] = field(default_factory=list)
    reconfigurations: int = 0
    overall: dict[str, Number] = field(default_factory=dict)

    def document(self) -> dict[str, object]:
        """Return the answer for ``--json``."""
        return {
            "policy": self.policy,
            "steps": self.steps,
            "reconfigurations": self.reconfigurations,
            "overall_discrimination": {name: plain(d) for name, d in self.overall.items()},
        }

    def table(self) -> str:
        """Return the answer as text.

        It has one line per instant and one column of nodes per MR-cluster, followed by events and weights.
        """
        names = list(self.overall)
        width = max([7, *(len(name) for name in names)])
        lines = [f"policy {self.policy}: nodes of each MR-cluster (weights at updates)", ""]
        lines.append("time_s".rjust(8) + "".join("  " + name.rjust(width) for name in names) + "  what happens")
        for step in self.steps:
            nodes = "".join("  " + str(step["nodes"].get(name, 0)).rjust(width) for name in names)
            what = "; ".join(step["events"])
            if step.get("weights"):
                what += (
                    ("; " if what else "")
                    + "weights "
                    + " ".join(f"{name}={float(w):.3g}" for name, w in step["weights"].items())
                )
            lines.append(f"{step['time_s']:g}".rjust(8) + nodes + "  " + what)
        lines += ["", f"reconfigurations: {self.reconfigurations}", "overall discrimination (s of the whole system):"]
        lines += [f"  {name}  {float(d):.6g}" for name, d in self.overall.items()]
        return "\n".join(line.rstrip() for line in lines)


def is_clusters(top: Fields) -> bool:
    """Return whether these fields are those of a scenario of MR-clusters."""
    return "clusters" in top


def read_clusters(top: Fields) -> ClustersScenario:
    """Read a scenario of MR-clusters from its fields. Raises InputError with file and line."""
    top.only(_TOP, "the scenario")
    top.needs(("nodes", "clusters"), "a scenario of MR-clusters has nodes and clusters")
    nodes, given = top.whole("nodes", least=1), top.some("clusters", "MR-clusters")
    if len(given) > MAX_CLUSTERS:
        raise top.fail(f"more than {MAX_CLUSTERS:,} MR-clusters", at="clusters")
    found = []
    for name in given:
        if not name or not name.isprintable() or len(name) > 100:
            hint = "give 1 to 100 printable characters"
            raise given.fail(f"{shown(name)} is not an MR-cluster's name", hint, key=name)
        found.append(_cluster(given.mapping(name, f"MR-cluster {shown(name)}", _CLUSTER), name, nodes))
    sample_s = _time(top, "sample_s", other=10)
    if sample_s <= 0:
        raise top.fail("sample_s is 0", "give seconds above 0", at="sample_s")
    until_s = _time(top, "until_s") if "until_s" in top else None
    sample_at = top.reader.where(top["sample_s"]) if "sample_s" in top else top.reader.source
    return ClustersScenario(nodes, tuple(found), sample_s, until_s, sample_at)


def _cluster(fields: Fields, name: str, nodes: int) -> PaperCluster:
    fields.needs(("core",), "give its minimum number of nodes")
    core = fields.whole("core", f"core of {shown(name)}", least=1)
    if core > nodes:
        raise fields.fail(f"{shown(name)} wants {core} core nodes of {nodes}", "it would wait for ever", at="core")
    arrival_s, load_s, save_s = (
        _time(fields, time, f"{time} of {shown(name)}") for time in ("arrival_s", "load_s", "save_s")
    )
    return PaperCluster(name, core, arrival_s, load_s, save_s, _metrics(fields, name) if "metrics" in fields else ())


def _time(fields: Fields, name: str, what: str | None = None, other: int = 0) -> Fraction:
    return fields.number(name, what, least=0, most=10**9, other=other)


def _metrics(fields: Fields, cluster: str) -> tuple[tuple[Fraction, Metrics], ...]:
    what = f"metrics of {shown(cluster)}"
    found: list[tuple[Fraction, Metrics]] = []
    for item in fields.items_of("metrics", what, "write - {from_s: 0, waiting_jobs: 50}"):
        given = fields.reader.mapping(item, what, ("from_s", *METRICS), item)
        since = _time(given, "from_s")
        if found and since <= found[-1][0]:
            raise given.fail(f"{what} are not in the order of from_s", "sort them")
        values = {
            name: given.number(name, least=0, most=1 if name in ("processor", "disk") else 10**15)
            for name in METRICS
            if name in given
        }
        found.append((since, Metrics(**values)))
    return tuple(found)


# --- on paper ---------------------------------------------------------------------------------------------------------

#: Order of events at one instant: data transfers that end, requests, the sample, then the update that uses the sample.
_REMOVED, _LOADED, _REQUEST, _SAMPLE, _UPDATE = range(5)


class _World:
    def __init__(self, scenario: ClustersScenario, policy: Weighting) -> None:
        self.scenario, self.policy = scenario, policy
        self.manager = Manager(scenario.nodes, policy)
        self.clusters = {cluster.name: cluster for cluster in scenario.clusters}
        self.period_s = policy.exact["period"]
        self.active_since: dict[str, Fraction] = {}
        self.counter = itertools.count()
        self.heap: list[tuple[Fraction, int, int, str]] = []
        self.events: list[str] = []
        self.looks = 0
        self.answer = ClustersAllocation(policy.name, overall=dict.fromkeys(self.clusters, Fraction(0)))
        for cluster in scenario.clusters:
            self.push(cluster.arrival_s, _REQUEST, cluster.name)
        self.push(self.period_s, _UPDATE, "")
        self.push(scenario.sample_s, _SAMPLE, "")

    def push(self, at: Fraction, what: int, name: str) -> None:
        heapq.heappush(self.heap, (at, what, next(self.counter), name))

    def run(self) -> ClustersAllocation:
        until = self.scenario.until_s
        left = len(self.clusters)
        while self.heap and left:
            now = self.heap[0][0]
            if until is not None and now > until:
                break
            self.look(1)
            self.events = []
            updates = len(self.manager.updates)
            while self.heap and self.heap[0][0] == now:
                _, what, _, name = heapq.heappop(self.heap)
                left -= what == _REMOVED
                self.happen(now, what, name)
            self.note(now, self.manager.updates[updates:])
        end = until if until is not None and left else self.manager.time_s
        if isinstance(end, Fraction) and end > self.manager.time_s:
            self.manager.holds((), end)
        self.answer.reconfigurations = self.manager.reconfigurations
        self.answer.overall.update(self.manager.overall)
        for name, member in self.manager.members.items():
            self.answer.overall[name] += member.overall
        return self.answer

    def look(self, count: int) -> None:
        self.looks += count
        if self.looks > MAX_LOOKS:
            raise InputError(
                f"is not done after {MAX_LOOKS:,} samples and updates",
                hint="give until_s, or end each metrics list with an entry that has only from_s (idle)",
            )

    def happen(self, now: Fraction, what: int, name: str) -> None:
        manager = self.manager
        if what == _REQUEST:
            commands = manager.request(name, self.clusters[name].core, now)
            self.events.append(f"{name} is queued" if manager.members[name].state == "queued" else f"{name} arrives")
        elif what == _LOADED:
            commands = manager.loaded(name, now)
            self.active_since[name] = now
            self.events.append(f"{name} is active")
        elif what == _REMOVED:
            queued = [member.name for member in manager.members.values() if member.state == "queued"]
            commands = manager.removed(name, now)
            self.events.append(f"{name} is removed")
            self.events += [f"{other} is admitted" for other in queued if manager.members[other].state != "queued"]
        elif what == _SAMPLE:
            active = manager.active()
            self.look(len(active))
            for member in active:
                since = now - self.active_since[member.name]
                if since > 0:
                    manager.sample(member.name, self.clusters[member.name].at(since))
            self.push(now + self.scenario.sample_s, _SAMPLE, "")
            return
        else:
            commands = manager.update(now)
            self.push(now + self.period_s, _UPDATE, "")
        self.obey(now, commands)

    def obey(self, now: Fraction, commands: Sequence[Command]) -> None:
        for command in commands:
            if isinstance(command, Remove):
                self.events.append(f"{command.name} is idle")
                self.push(now + self.clusters[command.name].save_s, _REMOVED, command.name)
            elif isinstance(command, Start):
                self.push(now + self.clusters[command.name].load_s, _LOADED, command.name)
        if any(isinstance(command, Resize) for command in commands):
            self.obey(now, self.manager.holds(list(self.manager.targets().items()), now))

    def note(self, now: Fraction, updates: Sequence[Any]) -> None:
        if not self.events and not updates:
            return
        nodes = dict.fromkeys(self.clusters, 0)
        nodes.update({member.name: member.nodes for member in self.manager.members.values()})
        step: dict[str, Any] = {"time_s": plain(now), "events": self.events, "nodes": nodes}
        for update in updates:
            if update.resized:
                self.events.append("resized")
            step["weights"] = {name: plain(w) for name, w in update.weights.items()}
            step["temporal_discrimination"] = {name: plain(d) for name, d in update.temporal.items()}
            step["discrimination"] = {name: plain(d) for name, d in update.interval.items()}
            step["global_discrimination"] = plain(update.global_discrimination)
            step["variance"] = plain(update.variance)
            step["resized"] = update.resized
        self.answer.steps.append(step)


def allocate_clusters(scenario: ClustersScenario, policy: Policy) -> ClustersAllocation:
    """Run a scenario under a FAWKES policy, with the settings `period` and `tau` of that policy.

    Raises CallError for a policy that does not divide nodes among MR-clusters. Raises InputError for a scenario that
    does not end within `MAX_LOOKS` steps, or whose sampling interval is longer than the policy's period.
    """
    weighting = weighting_of(policy)
    period_s = weighting.exact["period"]
    if scenario.sample_s > period_s:
        raise InputError(
            f"sample_s is {float(scenario.sample_s):g}, the policy's period {float(period_s):g} s: an update without a "
            "sample would take every MR-cluster for idle",
            where=scenario.sample_at,
            hint="give a sample_s of at most the period",
        )
    return _World(scenario, weighting).run()


#: This family of scenarios, as registered for ``yarnfair allocate``.
FAMILY = Family(is_clusters, read_clusters, allocate_clusters)
