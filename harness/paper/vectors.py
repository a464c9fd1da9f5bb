"""Scenarios of several resources: their YAML, and the answer. The format: docs/reference/scenario.md."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import yaml

from harness.paper.reader import Fields, Reader, shown
from harness.policies.base import Policy
from harness.policies.vectors import Division, VectorScenario, VectorUser, soft_fairness, utilisation

#: What an answer says of a queue beside its resources.
TAKEN = ("tasks", "dominant_share")


def is_vectors(top: Fields) -> bool:
    """Whether the fields make a scenario of several resources: its capacity is a mapping, and nothing arrives."""
    return "capacity" in top and isinstance(top["capacity"][1], yaml.MappingNode) and "arrivals" not in top


def read_vectors(reader: Reader, top: Fields) -> VectorScenario:
    """The scenario from its fields. InputError for whatever is wrong with it."""
    reader.only(top, ("capacity", "queues", "description"), "a scenario of several resources")
    if "queues" not in top:
        raise reader.fail(None, "has no queues", "give every queue its task (docs/reference/scenario.md)")
    capacity = {}
    for name, (key, value) in reader.mapping(top["capacity"][1], "capacity").items():
        if not name or name in TAKEN:
            raise reader.fail(
                key, f"{shown(name)} is not a resource name", "the answer uses it: call it something else"
            )
        capacity[name] = reader.above_zero(value, f"the capacity of {shown(name)}", "capacities are above 0")
    if not capacity:
        raise reader.fail(
            top["capacity"][1], "capacity names no resource", "for example {vcores: 200, memory_gb: 1000}"
        )
    users = []
    for name, (key, body) in reader.mapping(top["queues"][1], "queues").items():
        if not name or "." in name:
            raise reader.fail(key, f"{shown(name)} is not a queue name", "a name is not empty and has no dot")
        users.append(_user(reader, name, key, body, list(capacity)))
    if not users:
        raise reader.fail(top["queues"][1], "no queues", "name at least one")
    users.sort(key=lambda user: user.name.encode())
    return VectorScenario(tuple(capacity), tuple(capacity.values()), tuple(users))


def _user(reader: Reader, name: str, key: yaml.Node, body: yaml.Node, resources: list[str]) -> VectorUser:
    fields = reader.mapping(body, f"queue {shown(name)}")
    reader.only(fields, ("weight", "task", "tasks"), f"queue {shown(name)}")
    if "task" not in fields:
        raise reader.fail(key, f"queue {shown(name)} has no task", f"give task: {{{resources[0]}: 1, ...}}")
    weight = reader.weight(fields, name)
    demand = dict.fromkeys(resources, Fraction(0))
    for resource, (resource_key, value) in reader.mapping(fields["task"][1], f"task of {shown(name)}").items():
        if resource not in demand:
            raise reader.fail(
                resource_key, f"the task of {shown(name)} asks for {shown(resource)}, which capacity does not name"
            )
        demand[resource] = reader.number(value, f"{resource} of the task of {shown(name)}")
        if demand[resource] < 0:
            raise reader.fail(value, f"{shown(resource)} of the task of {shown(name)} is below 0")
    if not any(demand.values()):
        raise reader.fail(fields["task"][1], f"the task of {shown(name)} needs nothing", "give one resource above 0")
    tasks = None
    if "tasks" in fields:
        tasks = reader.whole(fields["tasks"][1], f"tasks of {shown(name)}", least=0)
    return VectorUser(name, weight, tuple(demand.values()), tasks)


@dataclass(frozen=True, slots=True)
class VectorAnswer:
    """What a policy gives to whom."""

    policy: str
    scenario: VectorScenario
    division: Division

    def document(self) -> dict[str, Any]:
        """For ``--json``. ``efficiency`` is the sum of the utilisations, eq. (7)."""
        scenario, tasks = self.scenario, self.division.tasks
        allocation = {}
        for user, count in zip(scenario.users, tasks, strict=True):
            held = {name: _number(count * need) for name, need in zip(scenario.resources, user.task, strict=True)}
            share = _number(count * scenario.dominant(user))
            allocation[user.name] = {"tasks": _number(count), **held, "dominant_share": share}
        used = utilisation(scenario, tasks)
        return {
            "policy": self.policy,
            "allocation": allocation,
            "utilisation": {name: _number(part) for name, part in zip(scenario.resources, used, strict=True)},
            "efficiency": _number(sum(used, Fraction(0))),
            "theta": None if self.division.theta is None else _number(self.division.theta),
            "soft_fairness": _number(soft_fairness(scenario, tasks)),
            **{name: _number(value) for name, value in self.division.notes.items()},
        }

    def table(self) -> str:
        """Users down, resources across."""
        document = self.document()
        heads = ["queue", "tasks", *self.scenario.resources, "dominant share"]
        rows = [
            [
                name,
                *(f"{cells[head]:.10g}" for head in ("tasks", *self.scenario.resources)),
                f"{cells['dominant_share']:.4f}",
            ]
            for name, cells in document["allocation"].items()
        ]
        used = [f"{100 * part:.2f} %" for part in document["utilisation"].values()]
        rows.append(["utilisation", "", *used, ""])
        widths = [max(len(row[i]) for row in [heads, *rows]) for i in range(len(heads))]

        def line(cells: list[str]) -> str:
            others = "".join("  " + cell.rjust(w) for cell, w in zip(cells[1:], widths[1:], strict=True))
            return (cells[0].ljust(widths[0]) + others).rstrip()

        theta = document["theta"]
        figures = [f"efficiency {document['efficiency']:.6g}", f"soft fairness {document['soft_fairness']:.6g}"]
        if theta is not None:
            figures.append(f"theta (Theorem 1) {theta:.6g}")
        figures += [f"{name.replace('_', ' ')} {document[name]:.6g}" for name in self.division.notes]
        return "\n".join(
            [f"policy {self.policy}", "", line(heads), *(line(row) for row in rows), "", "; ".join(figures)]
        )


def divide(scenario: VectorScenario, policy: Policy) -> VectorAnswer:
    """The scenario under the policy. CallError if the policy knows no vectors, InputError if it would take too long."""
    return VectorAnswer(policy.name, scenario, policy.divide(scenario))


def _number(value: Fraction) -> int | float:
    return int(value) if value.denominator == 1 else float(value)
