"""Scenarios of several resources: reads their YAML and formats the answer. Format: docs/reference/scenario.md."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import yaml

from harness.base.errors import CallError
from harness.base.sums import plain
from harness.paper.reader import Fields, shown
from harness.policies.base import Policy
from harness.policies.capabilities import VectorPolicy
from harness.policies.vectors import Division, VectorScenario, VectorUser, soft_fairness, utilisation

#: Names that the answer uses for a queue, which no resource may have.
TAKEN = ("tasks", "dominant_share")


def is_vectors(top: Fields) -> bool:
    """Return whether these fields are those of a scenario of several resources.

    In such a scenario the capacity is a mapping, and nothing arrives.
    """
    return "capacity" in top and isinstance(top["capacity"], yaml.MappingNode) and "arrivals" not in top


def read_vectors(top: Fields) -> VectorScenario:
    """Read a scenario from its fields. Raises InputError with file and line."""
    top.only(("capacity", "queues", "description"), "a scenario of several resources")
    top.needs(("queues",), "give every queue its task (docs/reference/scenario.md)")
    amounts, capacity = top.mapping("capacity"), {}
    for name in amounts:
        if not name or name in TAKEN:
            hint = "the answer uses it: call it something else"
            raise amounts.fail(f"{shown(name)} is not a resource name", hint, key=name)
        capacity[name] = amounts.above_zero(name, f"the capacity of {shown(name)}", "capacities are above 0")
    if not capacity:
        raise top.fail("capacity names no resource", "for example {vcores: 200, memory_gb: 1000}", at="capacity")
    queues = top.some("queues")
    users = [_user(queues.queue(name, ("weight", "task", "tasks")), name, list(capacity)) for name in queues]
    users.sort(key=lambda user: user.name.encode())
    return VectorScenario(tuple(capacity), tuple(capacity.values()), tuple(users))


def _user(fields: Fields, name: str, resources: list[str]) -> VectorUser:
    fields.needs(("task",), f"give task: {{{resources[0]}: 1, ...}}")
    given = fields.mapping("task", f"task of {shown(name)}")
    for resource in given:
        if resource not in resources:
            what = f"the task of {shown(name)} asks for {shown(resource)}, which capacity does not name"
            raise given.fail(what, key=resource)
    demand = [given.number(resource, f"{resource} of the task of {shown(name)}", least=0) for resource in resources]
    if not any(demand):
        raise fields.fail(f"the task of {shown(name)} needs nothing", "give one resource above 0", at="task")
    tasks = fields.whole("tasks", f"tasks of {shown(name)}", least=0) if "tasks" in fields else None
    return VectorUser(name, fields.weight(name), tuple(demand), tasks)


@dataclass(frozen=True, slots=True)
class VectorAnswer:
    """The answer: how a policy divides the resources among the users."""

    policy: str
    scenario: VectorScenario
    division: Division

    def document(self) -> dict[str, Any]:
        """Return the answer for ``--json``. ``efficiency`` is the sum of the utilisations, eq. (7)."""
        scenario, tasks = self.scenario, self.division.tasks
        allocation = {}
        for user, count in zip(scenario.users, tasks, strict=True):
            held = {name: plain(count * need) for name, need in zip(scenario.resources, user.task, strict=True)}
            share = plain(count * scenario.dominant(user))
            allocation[user.name] = {"tasks": plain(count), **held, "dominant_share": share}
        used = utilisation(scenario, tasks)
        return {
            "policy": self.policy,
            "allocation": allocation,
            "utilisation": {name: plain(part) for name, part in zip(scenario.resources, used, strict=True)},
            "efficiency": plain(sum(used, Fraction(0))),
            "theta": None if self.division.theta is None else plain(self.division.theta),
            "soft_fairness": plain(soft_fairness(scenario, tasks)),
            **{name: plain(value) for name, value in self.division.notes.items()},
        }

    def table(self) -> str:
        """Return the answer as text: one line per user, one column per resource."""
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
    """Divide the scenario's resources under the policy and return the answer.

    Raises CallError if the policy does not divide several resources, InputError if the scenario would take too long.
    """
    if not isinstance(policy, VectorPolicy):
        raise CallError(
            f"policy {policy.name} does not divide several resources",
            where="--policy",
            hint="static, drf, tetris and qknober do; or give capacity as a number of units",
        )
    return VectorAnswer(policy.name, scenario, policy.divide(scenario))
