"""A scenario of several resources under a policy: the answer as a document and as a table."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from harness.policies.base import Policy
from harness.policies.vectors import Division, VectorScenario, soft_fairness, utilisation


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


def divide(scenario: VectorScenario, policy: Policy) -> VectorAnswer:
    """The scenario under the policy. CallError if the policy knows no vectors, InputError if it would take too long."""
    return VectorAnswer(policy.name, scenario, policy.divide(scenario))


def _number(value: Fraction) -> int | float:
    return int(value) if value.denominator == 1 else float(value)


def vector_table(answer: VectorAnswer) -> str:
    """Users down, resources across."""
    document = answer.document()
    heads = ["queue", "tasks", *answer.scenario.resources, "dominant share"]
    rows = [
        [
            name,
            *(f"{cells[head]:.10g}" for head in ("tasks", *answer.scenario.resources)),
            f"{cells['dominant_share']:.4f}",
        ]
        for name, cells in document["allocation"].items()
    ]
    rows.append(
        ["utilisation", "", *(f"{100 * document['utilisation'][name]:.2f} %" for name in answer.scenario.resources), ""]
    )
    widths = [max(len(row[i]) for row in [heads, *rows]) for i in range(len(heads))]

    def line(cells: list[str]) -> str:
        first = cells[0].ljust(widths[0])
        return (first + "".join("  " + cell.rjust(w) for cell, w in zip(cells[1:], widths[1:], strict=True))).rstrip()

    theta = document["theta"]
    figures = [f"efficiency {document['efficiency']:.6g}", f"soft fairness {document['soft_fairness']:.6g}"]
    if theta is not None:
        figures.append(f"theta (Theorem 1) {theta:.6g}")
    figures += [f"{name.replace('_', ' ')} {document[name]:.6g}" for name in answer.division.notes]
    return "\n".join([f"policy {answer.policy}", "", line(heads), *(line(row) for row in rows), "", "; ".join(figures)])
