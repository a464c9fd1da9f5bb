"""Scenarios of map and reduce slots on paper: MapReduce jobs on a few tasktrackers, slots given out at once.

The format: docs/reference/scenario.md. Times are exact to the millisecond; nothing is random.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import yaml

from harness.base.errors import CallError, InputError
from harness.paper.reader import Fields, Reader, shown
from harness.policies.base import Policy
from harness.sim.slots.engine import run_slots
from harness.sim.slots.model import MAX_SLOTS, MAX_TASKS, SlotCluster, SlotJob, SlotNode, SlotResult, SlotRun

#: More tasks on paper take longer than anybody waits.
MOST_TASKS = 200_000


@dataclass(frozen=True, slots=True)
class SlotsScenario:
    """What a scenario of slots says: the tasktrackers, the pools, the jobs. Locality does not matter."""

    cluster: SlotCluster
    weights: dict[str, Fraction]
    jobs: tuple[SlotJob, ...]
    #: Pool -> its minimum of maps and of reduces.
    minimums: dict[str, tuple[int, int]]


def is_slots(top: Fields) -> bool:
    """Whether the fields make a scenario of map and reduce slots."""
    return "slots" in top and "jobs" in top


def read_slots(reader: Reader, top: Fields) -> SlotsScenario:
    """The scenario from its fields. InputError for whatever is wrong with it."""
    reader.only(top, ("slots", "queues", "jobs", "description"), "a scenario of slots")
    cluster = _cluster(reader, top["slots"][1])
    weights, minimums = _pools(reader, top["queues"][1]) if "queues" in top else ({}, {})
    jobs_node = top["jobs"][1]
    if not isinstance(jobs_node, yaml.SequenceNode):
        raise reader.fail(jobs_node, "jobs is not a list", "write one {name, maps, map_seconds, ...} a job")
    jobs = tuple(_job(reader, node, weights) for node in jobs_node.value)
    if not jobs:
        raise reader.fail(jobs_node, "no jobs", "name at least one")
    tasks = sum(len(job.maps_ms) + len(job.reduces_ms) for job in jobs)
    if tasks > MOST_TASKS:
        raise reader.fail(jobs_node, f"{tasks:,} tasks", f"give at most {MOST_TASKS:,}")
    return SlotsScenario(cluster, weights, jobs, minimums)


def _cluster(reader: Reader, node: yaml.Node) -> SlotCluster:
    fields = reader.mapping(node, "slots")
    reader.only(fields, ("map", "reduce", "nodes", "map_weight", "reduce_weight"), "slots")
    found = {}
    for name in ("map", "reduce"):
        if name not in fields:
            raise reader.fail(node, f"slots has no {name}", "give map and reduce, the slots of a node")
        found[name] = reader.whole(fields[name][1], f"the {name} slots", least=0)
        if found[name] > MAX_SLOTS:
            raise reader.fail(fields[name][1], f"{found[name]:,} {name} slots", f"give at most {MAX_SLOTS:,}")
    nodes = reader.whole(fields["nodes"][1], "nodes", least=1) if "nodes" in fields else 1
    if nodes > 1000:
        raise reader.fail(fields["nodes"][1], f"{nodes:,} nodes", "give at most 1,000")
    weights = {}
    for name in ("map_weight", "reduce_weight"):
        weights[name] = reader.number(fields[name][1], name) if name in fields else Fraction(1)
    try:
        cluster = SlotCluster(
            tuple(SlotNode(f"node-{at + 1}", found["map"], found["reduce"]) for at in range(nodes)),
            weights["map_weight"],
            weights["reduce_weight"],
            replicas=0,
        )
        cluster.check()
    except InputError as error:
        raise reader.fail(node, error.what, error.mend) from error
    return cluster


def _pools(reader: Reader, node: yaml.Node) -> tuple[dict[str, Fraction], dict[str, tuple[int, int]]]:
    """The pools' weights, and the minimums of those that have one."""
    weights, minimums = {}, {}
    for name, (_, body) in reader.mapping(node, "queues").items():
        fields = reader.mapping(body, f"queue {shown(name)}")
        reader.only(fields, ("weight", "min_slots"), f"queue {shown(name)}")
        weights[name] = reader.weight(fields, name)
        if "min_slots" in fields:
            minimums[name] = _minimum(reader, fields["min_slots"][1], name)
    return weights, minimums


def _minimum(reader: Reader, node: yaml.Node, pool: str) -> tuple[int, int]:
    fields = reader.mapping(node, f"min_slots of {shown(pool)}")
    reader.only(fields, ("map", "reduce"), "min_slots")
    maps, reduces = (
        reader.whole(fields[kind][1], f"the {kind} slots of {shown(pool)}", least=0) if kind in fields else 0
        for kind in ("map", "reduce")
    )
    return maps, reduces


def _job(reader: Reader, node: yaml.Node, weights: dict[str, Fraction]) -> SlotJob:
    fields = reader.mapping(node, "a job")
    known = ("name", "queue", "maps", "map_seconds", "reduces", "reduce_seconds", "submit_seconds", "slow_start")
    reader.only(fields, known, "a job")
    if "name" not in fields:
        raise reader.fail(node, "a job has no name", "give name")

    def text(field: str, default: str) -> str:
        if field not in fields:
            return default
        if not isinstance(fields[field][1], yaml.ScalarNode) or not fields[field][1].value:
            raise reader.fail(fields[field][1], f"a job's {field} is not a text")
        return str(fields[field][1].value)

    def milliseconds(field: str) -> int:
        if field not in fields:
            return 0
        time = reader.number(fields[field][1], field) * 1000
        if time.denominator != 1 or not 0 <= time <= 10**12:
            raise reader.fail(fields[field][1], f"{field} is not from 0 to 1,000,000,000 s in whole milliseconds")
        return int(time)

    tasks: dict[str, tuple[int, ...]] = {}
    for kind in ("map", "reduce"):
        count = reader.whole(fields[f"{kind}s"][1], f"{kind}s", least=0) if f"{kind}s" in fields else 0
        if count > MAX_TASKS:
            raise reader.fail(fields[f"{kind}s"][1], f"{count:,} {kind}s", f"give at most {MOST_TASKS:,}")
        length = milliseconds(f"{kind}_seconds")
        if count and not length:
            raise reader.fail(node, f"its {kind}s take no time", f"give {kind}_seconds above 0")
        tasks[kind] = (length,) * count
    slow_start = reader.number(fields["slow_start"][1], "slow_start") if "slow_start" in fields else Fraction(1)
    if not 0 <= slow_start <= 1:
        raise reader.fail(fields["slow_start"][1], "slow_start is not from 0 to 1")
    queue = text("queue", next(iter(weights), "default"))
    if weights and queue not in weights:
        raise reader.fail(fields["queue"][1], f"queue {shown(queue)} is not among queues", "name it there")
    return SlotJob(
        text("name", ""), queue, tasks["map"], tasks["reduce"], milliseconds("submit_seconds"), float(slow_start)
    )


@dataclass(frozen=True, slots=True)
class SlotsAllocation:
    """The answer: when each job ends, how many tasks ran at once, and what ran from when on."""

    policy: str
    result: SlotResult

    def document(self) -> dict[str, Any]:
        """For ``--json``: seconds; ``steps`` has an entry for each instant at which something starts or ends."""
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
        """For people: jobs, then what ran when."""
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
    """Plays the scenario under a policy that gives out slots. CallError for one that does not."""
    rules = policy.slot_rules(speculation=False)
    if rules is None:
        mend = "take fair, fifo, pi-dhsa, pd-dhsa or dynamicmr"
        raise CallError(f"policy {policy.name} does not give out map and reduce slots", where="--policy", mend=mend)
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
