"""The experiment type ``computing-rates`` (HotCloud 2011, progress share; docs/reference/progress-share.md)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import pandas as pd

from harness.base.documents import YamlDocument, validated
from harness.experiments.kind import Computed, Kind, KindVariant, Loaded, hash_of
from harness.experiments.selection import (
    EVERYTHING,
    Selection,
    check_given,
    check_names,
    chosen,
    expand_seeds,
    merge_overrides,
)
from harness.policies.base import Policy
from harness.policies.registry import make_policy, settings_of
from harness.results.comparison import Measure, shown
from harness.sim.durations import exp_portable, job_key, normal_quantile, unit
from harness.systems.progress_share.metrics import METRICS
from harness.systems.progress_share.rates import NodeType, RateJob, RatesScenario
from harness.systems.progress_share.scenarios import play_rates, slot_chooser
from harness.systems.progress_share.spec import RatesExperiment

#: Columns of the comparison: metrics of the whole run, then of each job.
MEASURES = (
    shown("makespan_s"),
    shown("sum_progress_share", own=METRICS),
    Measure("contended for", "s", 1, "contended_s"),
    shown("queues.*.mean_completion_s", title="Completion"),
    shown("queues.*.progress_share.min", title="Progress share, least", own=METRICS),
    shown("queues.*.progress_share.mean", title="Progress share, mean from start to end of the job", own=METRICS),
    shown(
        "queues.*.progress_share.below_share",
        title="Part of the contended time below its share",
        digits=1,
        percent=True,
        own=METRICS,
    ),
)


@dataclass(frozen=True, slots=True)
class RatesVariant(KindVariant):
    """One run: a policy with its settings on a configuration of nodes, and the seed of the task times."""

    configuration: str

    def own(self) -> dict[str, Any]:
        """Return what run.json records of this variant besides the common fields: the name of its configuration."""
        return {"configuration": self.configuration}


def rates_scenario(spec: RatesExperiment, types: Mapping[str, int], seed: int) -> RatesScenario:
    """Return the scenario of one configuration, with task times in whole milliseconds drawn by seed."""
    jobs = []
    for name, job in spec.jobs.items():
        each: tuple[Fraction, ...] = ()
        if job.sigma > 0:
            mu = math.log(job.seconds) - job.sigma**2 / 2
            key = job_key(seed, name)
            each = tuple(
                Fraction(max(round(exp_portable(mu + job.sigma * normal_quantile(draw)) * 1000), 1), 1000)
                for draw in (unit(key, 0, task, 0, 0) for task in range(job.tasks))
            )
        jobs.append(
            RateJob(
                name,
                job.tasks,
                Fraction(str(job.seconds)),
                {kind: Fraction(str(rate)) for kind, rate in job.rates.items() if kind in types},
                Fraction(str(job.weight)),
                Fraction(str(job.submit_s)),
                Fraction(str(job.min_share)),
                each,
            )
        )
    node_types = tuple(NodeType(kind, slots) for kind, slots in types.items())
    return RatesScenario(node_types, tuple(sorted(jobs, key=lambda job: job.name.encode())))


def _computed(policy: Policy, scenario: RatesScenario) -> Computed:
    played = play_rates(scenario, policy)
    result, answer = played.result, played.document()
    queues = {
        job.name: {
            "jobs": 1,
            "failed": 0,
            "mean_completion_s": round(float(result.completed_s[job.name] - job.submit_s), 3),
            "progress_share": answer["progress_share"][job.name],
        }
        for job in scenario.jobs
    }
    summary = {
        "makespan_s": round(answer["makespan"], 3),
        "sum_progress_share": answer["sum_progress_share"],
        "contended_s": round(answer["contended_s"], 3),
        "queues": queues,
        "events": 2 * sum(job.tasks for job in scenario.jobs),
    }
    rows = [
        {
            "time_s": float(interval.start_s),
            "queue": name,
            "progress_share": float(share),
            **{f"slots_{kind}": count for kind, count in interval.held[name].items()},
        }
        for interval in result.intervals
        for name, share in interval.progress_share.items()
    ]
    jobs = [
        {
            "job": job.name,
            "queue": job.name,
            "submitted_s": float(job.submit_s),
            "started_s": float(result.started_s[job.name]),
            "finished_s": float(result.completed_s[job.name]),
            "tasks": job.tasks,
        }
        for job in scenario.jobs
    ]
    return Computed(summary, {"allocations.parquet": pd.DataFrame(rows), "jobs.parquet": pd.DataFrame(jobs)})


class ComputingRates(Kind[Loaded, RatesVariant]):
    """The experiment type ``computing-rates``: jobs on clusters of several node types, under each policy."""

    name = "computing-rates"
    measures = MEASURES
    page = "harness.systems.progress_share.page:content_rates"
    finding = "harness.systems.progress_share.page:findings_rates"

    def load(self, document: YamlDocument) -> Loaded:
        """Read and check an experiment file. Raises InputError."""
        spec = validated(RatesExperiment, document)
        return Loaded(spec, document, hash_of(spec.model_dump(mode="json", exclude={"seed", "policies"})))

    def variants(self, experiment: Loaded, asked: Selection = EVERYTHING) -> list[RatesVariant]:
        """Return the runs that the file and the selection describe."""
        spec, given = experiment.spec, asked.settings
        of_file = [(use.policy, use.settings) for use in spec.policies]
        uses = chosen(of_file, asked.policies, lambda use, name: use[0] == name, lambda name: (name, {}))
        made: list[tuple[str, dict[str, Any]]] = []
        for name, own in uses:
            merged = merge_overrides(own, given, settings_of(name))
            slot_chooser(make_policy(name, merged))
            made.append((name, merged))
        check_given(given, {key for name, _ in uses for key in settings_of(name)}, "see docs/reference/policies.md")
        found = [
            RatesVariant(
                ",".join([configuration, name, *(f"{key}={value}" for key, value in sorted(merged.items()))]),
                name,
                self.name,
                merged,
                0,
                configuration,
            )
            for configuration in spec.configurations
            for name, merged in made
        ]
        check_names([variant.name for variant in found], experiment.document)
        return expand_seeds(found, asked.seeds, spec.seed)

    def compute(self, experiment: Loaded, variant: RatesVariant) -> Computed:
        """Simulate a variant and return its summary and tables."""
        spec = experiment.spec
        scenario = rates_scenario(spec, spec.configurations[variant.configuration], variant.seed)
        return _computed(make_policy(variant.policy, variant.settings), scenario)


KIND = ComputingRates()
