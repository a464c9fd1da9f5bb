"""Scenarios of computing rates: their YAML, and the answer.

The format: docs/reference/progress-share.md. The virtual time that runs them is harness.sim.rates.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import yaml

from harness.base.errors import CallError
from harness.paper.reader import Fields, Reader, shown
from harness.policies.base import Policy
from harness.policies.rates import Choose, NodeType, RateJob, RatesScenario
from harness.sim.rates import RatesResult, simulate_rates

JOB_FIELDS = ("tasks", "seconds", "rates", "weight", "submit", "min_share")


def is_rates(top: Fields) -> bool:
    """Whether the fields make a scenario of computing rates."""
    return "node_types" in top


def read_rates(reader: Reader, top: Fields) -> RatesScenario:
    """The scenario from its fields. InputError for whatever is wrong with it."""
    reader.only(top, ("node_types", "jobs", "description"), "a scenario of rates")
    if "jobs" not in top:
        raise reader.fail(None, "has no jobs", "give every job its tasks, seconds and rates")
    types = []
    for name, (key, body) in reader.mapping(top["node_types"][1], "node_types").items():
        fields = reader.mapping(body, f"node type {shown(name)}")
        if set(fields) != {"slots"}:
            raise reader.fail(key, f"node type {shown(name)} has {', '.join(fields) or 'nothing'}", "give it slots: N")
        types.append(NodeType(name, reader.whole(fields["slots"][1], f"slots of {shown(name)}", least=1)))
    if not types:
        raise reader.fail(top["node_types"][1], "no node types", "name at least one")
    jobs = [
        _job(reader, name, key, body, types) for name, (key, body) in reader.mapping(top["jobs"][1], "jobs").items()
    ]
    if not jobs:
        raise reader.fail(top["jobs"][1], "no jobs", "name at least one")
    return RatesScenario(tuple(types), tuple(sorted(jobs, key=lambda job: job.name.encode())))


def _job(reader: Reader, name: str, key: yaml.Node, body: yaml.Node, types: list[NodeType]) -> RateJob:
    fields = reader.mapping(body, f"job {shown(name)}")
    reader.only(fields, JOB_FIELDS, f"job {shown(name)}")
    for field in ("tasks", "seconds", "rates"):
        if field not in fields:
            raise reader.fail(key, f"job {shown(name)} has no {field}")
    rates: dict[str, Fraction] = {}
    for kind, (kind_key, value) in reader.mapping(fields["rates"][1], f"rates of {shown(name)}").items():
        if kind not in {node_type.name for node_type in types}:
            raise reader.fail(kind_key, f"{shown(kind)} is not a node type", "name those of node_types")
        rates[kind] = reader.above_zero(value, f"the rate on {kind} of {shown(name)}")
    missing = [kind.name for kind in types if kind.name not in rates]
    if missing:
        raise reader.fail(fields["rates"][0], f"job {shown(name)} has no rate on {', '.join(missing)}")
    submit = Fraction(0)
    if "submit" in fields:
        submit = reader.number(fields["submit"][1], f"submit of {shown(name)}")
        if submit < 0:
            raise reader.fail(fields["submit"][1], f"submit of {shown(name)} is below 0")
    least = Fraction(0)
    if "min_share" in fields:
        least = reader.number(fields["min_share"][1], f"min_share of {shown(name)}")
        if not 0 <= least <= 1:
            given = shown(fields["min_share"][1].value)
            raise reader.fail(fields["min_share"][1], f"min_share of {shown(name)} is {given}", "give 0 to 1")
    return RateJob(
        name=name,
        tasks=reader.whole(fields["tasks"][1], f"tasks of {shown(name)}", least=0),
        work_s=reader.above_zero(fields["seconds"][1], f"seconds of {shown(name)}"),
        rates=rates,
        weight=reader.weight(fields, name),
        submit_s=submit,
        min_share=least,
    )


def slot_chooser(policy: Policy) -> Choose:
    """How the policy hands out slots of several types. CallError where it has no rule for them."""
    choose = policy.slot_choice()
    if choose is None:
        raise CallError(
            f"{policy.name} does not hand out slots of several node types",
            where="--policy",
            mend="fair (equal numbers of slots) or progress-share",
        )
    return choose


@dataclass(frozen=True, slots=True)
class RatesAnswer:
    """When each job ended, and the progress shares until then."""

    policy: Policy
    scenario: RatesScenario
    result: RatesResult

    def document(self) -> dict[str, Any]:
        """For ``--json``."""
        return answer_document(self.policy, self.scenario, self.result)

    def table(self) -> str:
        """The answer for a terminal of 80 columns."""
        return answer_table(self.document())


def play_rates(scenario: RatesScenario, policy: Policy) -> RatesAnswer:
    """The jobs in virtual time to their ends. CallError for a policy without a rule for slots of several types."""
    result = simulate_rates(scenario, slot_chooser(policy), calibrate=policy.calibrates)
    return RatesAnswer(policy, scenario, result)


def answer_document(policy: Policy, scenario: RatesScenario, result: RatesResult) -> dict[str, Any]:
    """The answer for ``--json``. Shares are of the whole cluster; ``below_share``: the part of the contended time in
    which a job's progress share was below its weight's part."""
    contended = [interval for interval in result.intervals if interval.contended]
    seconds = sum((interval.end_s - interval.start_s for interval in contended), Fraction(0))
    weights = sum((job.weight for job in scenario.jobs), Fraction(0))
    shares: dict[str, dict[str, float | None]] = {}
    for job in scenario.jobs:
        due = job.weight / weights
        while_there = [i for i in result.intervals if job.name in i.progress_share]
        there_s = sum((i.end_s - i.start_s for i in while_there), Fraction(0))
        mean = sum(((i.end_s - i.start_s) * i.progress_share[job.name] for i in while_there), Fraction(0))
        below = sum((i.end_s - i.start_s for i in contended if i.progress_share[job.name] < due), Fraction(0))
        shares[job.name] = {
            "mean": float(mean / there_s) if there_s else None,
            "min": float(min(i.progress_share[job.name] for i in contended)) if contended else None,
            "below_share": float(below / seconds) if seconds else None,
        }
    total = sum(((i.end_s - i.start_s) * sum(i.progress_share.values()) for i in contended), Fraction(0))
    return {
        "policy": policy.name,
        "makespan": float(result.makespan_s),
        "completions": {name: float(result.completed_s[name]) for name in sorted(result.completed_s)},
        "progress_share": shares,
        "sum_progress_share": float(total / seconds) if seconds else None,
        "contended_s": float(seconds),
        "steps": [
            {
                "time": float(i.start_s),
                "slots": i.held,
                "progress_share": {name: float(share) for name, share in i.progress_share.items()},
            }
            for i in result.intervals
        ],
    }


def answer_table(document: dict[str, Any]) -> str:
    """The answer for a terminal of 80 columns."""
    lines = [f"policy {document['policy']}: makespan {document['makespan']:g} s", ""]
    names = list(document["completions"])
    width = max(len("job"), *(len(name) for name in names))
    lines.append(f"{'job':<{width}}  completion (s)  progress share: mean  least  below its share")

    def shown_number(value: float | None, form: str) -> str:
        return "-" if value is None else format(value, form)

    for name in names:
        share = document["progress_share"][name]
        below = "-" if share["below_share"] is None else f"{100 * share['below_share']:.1f} %"
        lines.append(
            f"{name:<{width}}  {document['completions'][name]:14g}  {shown_number(share['mean'], '.3f'):>20}  "
            f"{shown_number(share['min'], '.3f'):>5}  {below:>15}"
        )
    lines.append("")
    lines.append(
        f"sum of the progress shares while all jobs have tasks waiting ({document['contended_s']:g} s): "
        f"{shown_number(document['sum_progress_share'], '.3f')}"
    )
    return "\n".join(lines)
