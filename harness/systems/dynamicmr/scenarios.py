"""Scenarios of map and reduce slots on paper: MapReduce jobs on a few tasktrackers, without heartbeat delays.

docs/reference/scenario.md describes the format. Times are exact in milliseconds; nothing is random.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import yaml

from harness.base.errors import CallError, InputError
from harness.paper import Family
from harness.paper.reader import Fields, shown
from harness.policies.base import Policy
from harness.systems.dynamicmr.rules import slot_rules
from harness.systems.dynamicmr.simulator.engine import run_slots
from harness.systems.dynamicmr.simulator.model import MAX_SLOTS, SlotCluster, SlotJob, SlotNode, SlotResult, SlotRun

#: Maximum number of tasks on paper, to limit the computing time.
MOST_TASKS = 200_000


_JOB = ("name", "queue", "maps", "map_seconds", "reduces", "reduce_seconds", "submit_seconds", "slow_start")


@dataclass(frozen=True, slots=True)
class SlotsScenario:
    """A scenario of slots: tasktrackers, pools and jobs. Data locality does not matter."""

    cluster: SlotCluster
    weights: dict[str, Fraction]
    jobs: tuple[SlotJob, ...]
    #: Minimum maps and reduces by pool.
    minimums: dict[str, tuple[int, int]]


def is_slots(top: Fields) -> bool:
    """Return whether these fields are those of a scenario of map and reduce slots."""
    return "slots" in top and "jobs" in top


def read_slots(top: Fields) -> SlotsScenario:
    """Read a scenario from its fields. Raises InputError with file and line."""
    top.only(("slots", "queues", "jobs", "description"), "a scenario of slots")
    cluster = _cluster(top.mapping("slots", known=("map", "reduce", "nodes", "map_weight", "reduce_weight")))
    weights, minimums = _pools(top.mapping("queues")) if "queues" in top else ({}, {})
    nodes = top.items_of("jobs", "jobs", "write one {name, maps, map_seconds, ...} a job")
    jobs = tuple(_job(top.reader.mapping(node, "a job", _JOB, node), weights) for node in nodes)
    if not jobs:
        raise top.fail("no jobs", "name at least one", at="jobs")
    tasks = sum(len(job.maps_ms) + len(job.reduces_ms) for job in jobs)
    if tasks > MOST_TASKS:
        raise top.fail(f"{tasks:,} tasks", f"give at most {MOST_TASKS:,}", at="jobs")
    return SlotsScenario(cluster, weights, jobs, minimums)


def _cluster(slots: Fields) -> SlotCluster:
    slots.needs(("map", "reduce"), "give map and reduce, the slots of a node")
    maps, reduces = (slots.whole(kind, f"the {kind} slots", least=0, most=MAX_SLOTS) for kind in ("map", "reduce"))
    nodes = slots.whole("nodes", least=1, most=1000, other=1)
    map_weight, reduce_weight = (slots.number(name, other=1) for name in ("map_weight", "reduce_weight"))
    trackers = tuple(SlotNode(f"node-{at + 1}", maps, reduces) for at in range(nodes))
    try:
        cluster = SlotCluster(trackers, map_weight, reduce_weight, replicas=0)
        cluster.check()
    except InputError as error:
        raise slots.fail(error.what, error.hint) from error
    return cluster


def _pools(queues: Fields) -> tuple[dict[str, Fraction], dict[str, tuple[int, int]]]:
    """Return the weights of the pools, and the minimums of those that have them."""
    weights, minimums = {}, {}
    for name in queues:
        fields = queues.mapping(name, f"queue {shown(name)}", ("weight", "min_slots"))
        weights[name] = fields.weight(name)
        if "min_slots" in fields:
            least = fields.mapping("min_slots", f"min_slots of {shown(name)}", ("map", "reduce"))
            maps, reduces = (
                least.whole(kind, f"the {kind} slots of {shown(name)}", least=0) for kind in ("map", "reduce")
            )
            minimums[name] = (maps, reduces)
    return weights, minimums


def _job(fields: Fields, weights: dict[str, Fraction]) -> SlotJob:
    fields.needs(("name",), "give name")

    def text(field: str, default: str) -> str:
        if field not in fields:
            return default
        if not isinstance(fields[field], yaml.ScalarNode) or not fields[field].value:
            raise fields.fail(f"a job's {field} is not a text", at=field)
        return str(fields[field].value)

    def milliseconds(field: str) -> int:
        time = fields.number(field, least=0, most=10**9) * 1000
        if time.denominator != 1:
            raise fields.fail(f"{field} is {shown(fields[field].value)}", "give whole milliseconds", at=field)
        return int(time)

    tasks: dict[str, tuple[int, ...]] = {}
    for kind in ("map", "reduce"):
        count = fields.whole(f"{kind}s", least=0, most=MOST_TASKS)
        length = milliseconds(f"{kind}_seconds")
        if count and not length:
            raise fields.fail(f"its {kind}s take no time", f"give {kind}_seconds above 0")
        tasks[kind] = (length,) * count
    slow_start = fields.number("slow_start", least=0, most=1, other=1)
    queue = text("queue", next(iter(weights), "default"))
    if weights and queue not in weights:
        raise fields.fail(f"queue {shown(queue)} is not among queues", "name it there", at="queue")
    return SlotJob(
        text("name", ""), queue, tasks["map"], tasks["reduce"], milliseconds("submit_seconds"), float(slow_start)
    )


@dataclass(frozen=True, slots=True)
class SlotsAllocation:
    """The answer: when each job ends, the largest numbers of running tasks, and the running tasks over time."""

    policy: str
    result: SlotResult

    def document(self) -> dict[str, Any]:
        """Return the answer for ``--json``, with times in seconds.

        ``steps`` has one entry for each instant at which a task starts or ends.
        """
        ends = {job.id: _seconds(job.finished_ms) for job in self.result.jobs}
        starts = {job.id: job.submitted_ms for job in self.result.jobs}
        return {
            "policy": self.policy,
            "makespan": _seconds(self.result.makespan_ms),
            "total_completion_time": _seconds(sum(job.finished_ms - starts[job.id] for job in self.result.jobs)),
            "completions": ends,
            "most_maps": self.result.counts.most_maps,
            "most_reduces": self.result.counts.most_reduces,
            "steps": [
                {
                    "at": _seconds(sample.time_ms),
                    "maps": dict(zip(self.result.pools, sample.maps, strict=True)),
                    "reduces": dict(zip(self.result.pools, sample.reduces, strict=True)),
                }
                for sample in self.result.samples
            ],
        }

    def table(self) -> str:
        """Return the answer as text: the jobs, then the running tasks over time."""
        document = self.document()
        width = max(8, *(len(name) for name in document["completions"]))
        lines = [f"policy {self.policy}", f"{'job':<{width}}  {'ends at, s':>12}"]
        lines += [f"{name:<{width}}  {end:>12g}" for name, end in document["completions"].items()]
        lines += [
            f"makespan {document['makespan']:g} s, total completion time {document['total_completion_time']:g} s",
            f"at most {document['most_maps']} maps and {document['most_reduces']} reduces at once",
            "",
            f"{'from, s':>10}  maps + reduces running",
        ]
        for step in document["steps"]:
            pools = ", ".join(f"{name} {step['maps'][name]} + {step['reduces'][name]}" for name in step["maps"])
            lines.append(f"{step['at']:>10g}  {pools}")
        return "\n".join(lines)


def _seconds(time_ms: int) -> int | float:
    return time_ms // 1000 if time_ms % 1000 == 0 else time_ms / 1000


def allocate_slots(scenario: SlotsScenario, policy: Policy) -> SlotsAllocation:
    """Run the scenario under a policy with rules for slots. Raises CallError for a policy without them."""
    rules = slot_rules(policy, speculation=False)
    if rules is None:
        hint = "take fair, fifo, pi-dhsa, pd-dhsa or dynamicmr"
        raise CallError(f"policy {policy.name} does not give out map and reduce slots", where="--policy", hint=hint)
    if getattr(policy.settings, "map_slots", 0):
        raise CallError("on paper the scenario says how many map slots there are", where="--set map_slots")
    run = SlotRun(
        scenario.cluster,
        scenario.jobs,
        replace(rules, weights=scenario.weights, minimums=scenario.minimums),
        pools=tuple(scenario.weights),
        sample_ms=0,
    )
    return SlotsAllocation(policy.name, run_slots(run))


#: This family of scenarios, as registered for ``yarnfair allocate``.
FAMILY = Family(is_slots, read_slots, allocate_slots)
