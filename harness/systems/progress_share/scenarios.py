"""Scenarios of computing rates: reading their YAML, running them, and the answer.

docs/reference/progress-share.md describes the format. harness.systems.progress_share.simulator simulates them in
virtual time.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol, runtime_checkable

from harness.base.errors import CallError
from harness.paper import Family
from harness.paper.reader import Fields, shown
from harness.policies.base import Policy
from harness.policies.fair import Fair
from harness.systems.progress_share.rates import Choose, NodeType, RateJob, RatesScenario, fewest_slots
from harness.systems.progress_share.simulator import RatesResult, simulate_rates

JOB_FIELDS = ("tasks", "seconds", "rates", "weight", "submit", "min_share")


def is_rates(top: Fields) -> bool:
    """Return whether these fields are those of a scenario of computing rates."""
    return "node_types" in top


def read_rates(top: Fields) -> RatesScenario:
    """Read a scenario from its fields. Raises InputError with file and line."""
    top.only(("node_types", "jobs", "description"), "a scenario of rates")
    top.needs(("jobs",), "give every job its tasks, seconds and rates")
    types, given = [], top.some("node_types", "node types")
    for name in given:
        fields = given.mapping(name, f"node type {shown(name)}")
        if set(fields) != {"slots"}:
            raise fields.fail(f"{fields.what} has {', '.join(fields) or 'nothing'}", "give it slots: N")
        types.append(NodeType(name, fields.whole("slots", f"slots of {shown(name)}", least=1)))
    jobs = top.some("jobs")
    found = [_job(jobs.mapping(name, f"job {shown(name)}", JOB_FIELDS), name, types) for name in jobs]
    return RatesScenario(tuple(types), tuple(sorted(found, key=lambda job: job.name.encode())))


def _job(fields: Fields, name: str, types: list[NodeType]) -> RateJob:
    fields.needs(("tasks", "seconds", "rates"))
    given = fields.mapping("rates", f"rates of {shown(name)}")
    rates: dict[str, Fraction] = {}
    for kind in given:
        if kind not in {node_type.name for node_type in types}:
            raise given.fail(f"{shown(kind)} is not a node type", "name those of node_types", key=kind)
        rates[kind] = given.above_zero(kind, f"the rate on {kind} of {shown(name)}")
    missing = [kind.name for kind in types if kind.name not in rates]
    if missing:
        raise given.fail(f"job {shown(name)} has no rate on {', '.join(missing)}")
    return RateJob(
        name=name,
        tasks=fields.whole("tasks", f"tasks of {shown(name)}", least=0),
        work_s=fields.above_zero("seconds", f"seconds of {shown(name)}"),
        rates=rates,
        weight=fields.weight(name),
        submit_s=fields.number("submit", f"submit of {shown(name)}", least=0),
        min_share=fields.number("min_share", f"min_share of {shown(name)}", least=0, most=1),
    )


def slot_chooser(policy: Policy) -> Choose:
    """Return the policy's rule for slots of several types. Raises CallError if it has none."""
    if isinstance(policy, SlotChoicePolicy):
        return policy.slot_choice()
    if isinstance(policy, Fair):
        # Hadoop's Fair Scheduler counts slots and ignores their types.
        return lambda _slot, jobs, _types, _free: fewest_slots(jobs)
    raise CallError(
        f"{policy.name} does not hand out slots of several node types",
        where="--policy",
        hint="fair (equal numbers of slots) or progress-share",
    )


@runtime_checkable
class SlotChoicePolicy(Protocol):
    """A policy with its own rule for slots of several node types."""

    #: Whether computing rates are first measured by running a task of each job on each node type.
    calibrates: bool

    def slot_choice(self) -> Choose:
        """Return the function that chooses the job for a free slot."""


def calibrates(policy: Policy) -> bool:
    """Return whether the policy measures computing rates before it uses them."""
    return isinstance(policy, SlotChoicePolicy) and policy.calibrates


@dataclass(frozen=True, slots=True)
class RatesAnswer:
    """The answer: when each job ended, and its progress shares until then."""

    policy: Policy
    scenario: RatesScenario
    result: RatesResult

    def document(self) -> dict[str, Any]:
        """Return the answer for ``--json``.

        Progress shares are fractions of the whole cluster. ``below_share`` is the fraction of the contended time in
        which a job's progress share was below its weight over the sum of weights.
        """
        scenario, result = self.scenario, self.result
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
            "policy": self.policy.name,
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

    def table(self) -> str:
        """Return the answer as text for a terminal of 80 columns."""
        document = self.document()
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


def play_rates(scenario: RatesScenario, policy: Policy) -> RatesAnswer:
    """Run all jobs to their ends in virtual time.

    Raises CallError for a policy without a rule for slots of several types.
    """
    result = simulate_rates(scenario, slot_chooser(policy), calibrate=calibrates(policy))
    return RatesAnswer(policy, scenario, result)


#: This family of scenarios, as registered for ``yarnfair allocate``.
FAMILY = Family(is_rates, read_rates, play_rates)
