"""Experiments of HotCloud 2011: ``kind: computing-rates`` (progress share) and ``kind: cloud`` (pools and their cost).

The keys: docs/reference/progress-share.md. What runs is harness.sim.rates and harness.policies.cloud_driver; nothing
here depends on the wall clock but ``wall_s`` and ``run.json``.
"""

from __future__ import annotations

import hashlib
import json
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import pandas as pd

from harness.base.documents import YamlDocument, read_yaml, validated
from harness.base.errors import CallError, InputError
from harness.kinds.pools.spec import CloudExperiment, InstanceSpec
from harness.kinds.rates.spec import RatesExperiment
from harness.model.data import data_path
from harness.paper.rates import play_rates, slot_chooser
from harness.policies.base import Policy
from harness.policies.cloud_driver import (
    InstanceType,
    Query,
    choose_accelerators,
    hours_of,
    period_cost,
)
from harness.policies.rates import NodeType, RateJob, RatesScenario
from harness.policies.registry import make_policy, settings_of
from harness.results.store import RunDirectory
from harness.sim.durations import exp_portable, job_key, normal_quantile, unit


@dataclass(slots=True)
class EndedCloud:
    """One run that ended."""

    name: str
    identity: dict[str, Any]
    path: Path
    summary: dict[str, Any] = field(default_factory=dict)
    exit_code: int = 0
    why: str | None = None

    def document(self) -> dict[str, Any]:
        """As ``run --json`` prints it."""
        return {**self.identity, "directory": str(self.path), "exit": self.exit_code, "summary": self.summary}


@dataclass(frozen=True, slots=True)
class CloudRun:
    """One run to come."""

    name: str
    identity: dict[str, Any]
    work: Callable[[], tuple[dict[str, Any], dict[str, pd.DataFrame], list[dict[str, Any]]]]


@dataclass(frozen=True, slots=True)
class LoadedCloud:
    spec: RatesExperiment | CloudExperiment
    hash: str
    runs: list[CloudRun]

    @property
    def name(self) -> str:
        return self.spec.experiment


def load_cloud(
    document: YamlDocument, policies: Sequence[str], settings: Mapping[str, str], seeds: Sequence[int]
) -> LoadedCloud:
    """What is to run. InputError with file and line, CallError for options that do not fit."""
    models: dict[str, type[RatesExperiment | CloudExperiment]] = {
        "computing-rates": RatesExperiment,
        "cloud": CloudExperiment,
    }
    spec = validated(models[document.data["kind"]], document)
    if isinstance(spec, RatesExperiment):
        runs = _rates_runs(spec, document, policies, settings, seeds)
        resolved = spec.model_dump(mode="json", exclude={"seed", "policies"})
    else:
        if policies or settings or seeds:
            raise CallError(
                "an experiment of pools has neither policies nor seeds", where=spec.experiment, mend="leave them out"
            )
        types = instance_types(spec, document)
        runs = _cloud_runs(spec, types, document)
        resolved = resolved_cloud(spec, types)
    digest = hashlib.sha256(json.dumps(resolved, sort_keys=True).encode()).hexdigest()
    return LoadedCloud(spec, digest, runs)


def run_cloud(
    loaded: LoadedCloud, folder: Path, on_end: Callable[[EndedCloud], None] | None = None
) -> list[EndedCloud]:
    """Runs all, a run directory each."""
    ended = []
    for run in loaded.runs:
        path = folder / run.name
        identity = {**run.identity, "backend": "sim", "hash": loaded.hash}
        directory = RunDirectory(path, {**identity, "experiment": loaded.spec.model_dump(mode="json")})
        began = time.perf_counter()
        try:
            summary, tables, decisions = run.work()
            for name, table in tables.items():
                directory.write_table(name, table)
            if decisions:
                directory.write_lines("decisions.jsonl", decisions)
            summary["wall_s"] = round(time.perf_counter() - began, 3)
            directory.write_summary(summary)
        except BaseException as error:
            RunDirectory.close(path, 130 if isinstance(error, KeyboardInterrupt) else 1, type(error).__name__)
            raise
        RunDirectory.close(path, 0)
        ended.append(EndedCloud(run.name, identity, path, summary))
        if on_end is not None:
            on_end(ended[-1])
    return ended


# --- computing rates --------------------------------------------------------------------------------------------------


def _rates_runs(
    spec: RatesExperiment,
    document: YamlDocument,
    policies: Sequence[str],
    settings: Mapping[str, str],
    seeds: Sequence[int],
) -> list[CloudRun]:
    uses: list[tuple[str, dict[str, Any]]] = [
        (use, {}) if isinstance(use, str) else (use.policy, dict(use.settings)) for use in spec.policies
    ]
    if policies:
        # A policy that the file lists with several settings is all of these.
        uses = [pair for name in policies for pair in [use for use in uses if use[0] == name] or [(name, {})]]
    listed = spec.seed if isinstance(spec.seed, list) else [spec.seed]
    chosen = list(dict.fromkeys(seeds or listed))
    made: list[tuple[str, Policy, dict[str, Any]]] = []
    taken: set[str] = set()
    for name, own_settings in uses:
        takes = set(settings_of(name))
        merged = own_settings | {key: value for key, value in settings.items() if key in takes}
        taken |= takes & set(settings)
        policy = make_policy(name, merged)
        slot_chooser(policy)
        made.append((name, policy, merged))
    for key in settings:
        if key not in taken:
            raise CallError(f"none of the policies has a setting {key[:60]!r}", where="--set")
    runs = []
    for configuration, types in spec.configurations.items():
        for name, policy, merged in made:
            for seed in chosen:
                label = ",".join([configuration, name, *(f"{key}={value}" for key, value in sorted(merged.items()))])
                label += f",seed={seed}" if len(chosen) > 1 else ""
                identity = {
                    "variant": label,
                    "policy": {"name": name, "mode": "computing-rates", "settings": merged},
                    "configuration": configuration,
                    "seed": seed,
                }
                scenario = rates_scenario(spec, types, seed)

                def work(policy: Policy = policy, scenario: RatesScenario = scenario) -> Any:
                    return _rates_summary(policy, scenario)

                runs.append(CloudRun(label, identity, work))
    if len({run.name for run in runs}) < len(runs):
        raise InputError("two runs have one name", where=document.where(("policies",)), mend="list a policy once")
    return runs


def rates_scenario(spec: RatesExperiment, types: Mapping[str, int], seed: int) -> RatesScenario:
    """The scenario of one configuration, task times drawn by seed (whole milliseconds)."""
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
                each,
            )
        )
    node_types = tuple(NodeType(kind, slots) for kind, slots in types.items())
    return RatesScenario(node_types, tuple(sorted(jobs, key=lambda job: job.name.encode())))


def _rates_summary(
    policy: Policy, scenario: RatesScenario
) -> tuple[dict[str, Any], dict[str, pd.DataFrame], list[dict[str, Any]]]:
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
    return summary, {"allocations.parquet": pd.DataFrame(rows), "jobs.parquet": pd.DataFrame(jobs)}, []


# --- pools and their cost ---------------------------------------------------------------------------------------------


def resolved_cloud(spec: CloudExperiment, types: Mapping[str, InstanceType]) -> dict[str, Any]:
    """All that the results of an experiment of pools depend on."""
    found = spec.model_dump(mode="json")
    if spec.docker is None:
        del found["docker"]  # experiments without it are what they were before it was there
    return found | {"types": {name: str(kind) for name, kind in types.items()}}


def instance_types(spec: CloudExperiment, document: YamlDocument) -> dict[str, InstanceType]:
    """The instance types that an experiment names or writes out. InputError with file and line."""
    listed = spec.instance_types
    if isinstance(listed, str):
        path = data_path("workloads", "cloud", f"{listed}.yaml")
        if not path.is_file():
            raise InputError(
                f"no instance types {listed[:60]!r}",
                where=document.where(("instance_types",)),
                mend="name a file of workloads/cloud without .yaml, or write them out",
            )
        found = read_yaml(path)
        rows = {name: validated(InstanceSpec, found, data=found.data[name], at=(name,)) for name in found.data}
    else:
        rows = listed
    return {name: InstanceType(name, **row.model_dump()) for name, row in rows.items()}


def counted_type(
    types: Mapping[str, InstanceType], document: YamlDocument, nodes: Mapping[str, int], *at: str
) -> tuple[InstanceType, int]:
    """``{type: count}`` as a pair. InputError with file and line for a type that is none."""
    ((name, count),) = nodes.items()
    if name not in types:
        raise InputError(f"no instance type {name[:60]!r}", where=document.where(at), mend=f"one of {', '.join(types)}")
    return types[name], count


def _cloud_runs(spec: CloudExperiment, types: Mapping[str, InstanceType], document: YamlDocument) -> list[CloudRun]:
    def counted(nodes: Mapping[str, int], *at: str) -> tuple[InstanceType, int]:
        return counted_type(types, document, nodes, *at)

    def ends(hours: float, nodes: str) -> float:
        if math.isinf(hours):
            raise InputError(f"no node of {nodes} can run some query", where=spec.experiment)
        return hours

    queries = [Query(name, **query.model_dump()) for name, query in spec.queries.items()]
    runs = []

    def identity(name: str) -> dict[str, Any]:
        return {
            "variant": name,
            "policy": {"name": name, "mode": "cloud", "settings": {}},
            "configuration": name,
            "seed": spec.seed,
        }

    for name, configuration in spec.configurations.items():
        core = counted(configuration.core, "configurations", name, "core")
        extra = (
            counted(configuration.accelerators, "configurations", name, "accelerators")
            if configuration.accelerators
            else None
        )

        def work(core: Any = core, extra: Any = extra) -> Any:
            hours = ends(hours_of(queries, [core] + ([extra] if extra else [])), "the configuration")
            cost, billed = period_cost(core, extra, hours, spec.period_h)
            return _cost_summary(hours, cost, billed, core, extra, spec.period_h), {}, []

        runs.append(CloudRun(name, identity(name), work))
    if spec.driver is not None:
        driver = spec.driver
        core = counted(driver.core, "driver", "core")
        candidates = [counted({name: 1}, "driver", "types")[0] for name in driver.types]

        def drive(core: Any = core) -> Any:
            chosen = choose_accelerators(
                queries, core, candidates, deadline_h=driver.deadline_h, period_h=spec.period_h, most=driver.most
            )
            ends(chosen.hours, "the driver's core pool and types")
            extra = (chosen.accelerator, chosen.count) if chosen.accelerator is not None else None
            summary = _cost_summary(chosen.hours, chosen.cost, chosen.billed_h, core, extra, spec.period_h)
            summary["meets_deadline"] = chosen.meets_deadline
            decision = {
                "time_s": 0.0,
                "accelerators": {chosen.accelerator.name: chosen.count} if chosen.accelerator else {},
                "why": chosen.why,
                "refused": dict(chosen.refused),
            }
            return summary, {}, [decision]

        runs.append(CloudRun("driver", identity("driver"), drive))
    return runs


def _cost_summary(
    hours: float,
    cost: float,
    billed_h: int,
    core: tuple[InstanceType, int],
    extra: tuple[InstanceType, int] | None,
    period_h: float,
) -> dict[str, Any]:
    return {
        "makespan_s": round(hours * 3600, 3),
        "cost_dollars": round(cost, 6),
        "accelerator_billed_h": billed_h,
        "overloaded": hours > period_h,
        "nodes": {"core": core[1], "accelerators": extra[1] if extra is not None else 0},
        "types": {"core": core[0].name, "accelerators": extra[0].name if extra is not None else None},
    }


# --- as text ----------------------------------------------------------------------------------------------------------


def comparison_cloud(loaded: LoadedCloud, ended: Sequence[EndedCloud]) -> list[str]:
    """The comparison for a terminal of 80 columns; means over seeds."""
    if isinstance(loaded.spec, CloudExperiment):
        lines = [f"{'configuration':<24}{'hours':>8}{'speed':>8}{'dollars a period':>18}{'billed hours':>14}"]
        slowest = max(run.summary["makespan_s"] for run in ended)
        for run in ended:
            s = run.summary
            billed = s["accelerator_billed_h"] or "-"
            lines.append(
                f"{run.name:<24}{s['makespan_s'] / 3600:8.2f}{speed_text(slowest, s['makespan_s']):>8}"
                f"{s['cost_dollars']:18.2f}{billed:>14}"
            )
            if run.name == "driver":
                count, kind = s["nodes"]["accelerators"], s["types"]["accelerators"]
                lines.append(f"  the driver's choice: {s['nodes']['core']} {s['types']['core']}, {count} {kind or ''}")
        return lines
    jobs = list(loaded.spec.jobs)
    groups: dict[str, list[EndedCloud]] = {}
    for run in ended:
        groups.setdefault(run.name.partition(",seed=")[0], []).append(run)
    lines = [f"{'':<30}{'makespan (s)':>14}" + "".join(f"{job[:12] + ' (s)':>17}" for job in jobs)]
    for name, runs in groups.items():
        makespan = math.fsum(run.summary["makespan_s"] for run in runs) / len(runs)
        cells = [math.fsum(run.summary["queues"][job]["mean_completion_s"] for run in runs) / len(runs) for job in jobs]
        lines.append(f"{_short(name, 30):<30}{makespan:14,.1f}" + "".join(f"{cell:17,.1f}" for cell in cells))
    lines.append("")
    lines.append(f"{'part of the contended time below its share':<44}" + "".join(f"{job[:12]:>12}" for job in jobs))
    for name, runs in groups.items():
        texts = []
        for job in jobs:
            values = [run.summary["queues"][job]["progress_share"]["below_share"] for run in runs]
            known = [value for value in values if value is not None]
            texts.append(f"{100 * sum(known) / len(known):.1f} %" if known else "-")
        lines.append(f"{_short(name, 44):<44}" + "".join(f"{text:>12}" for text in texts))
    return lines


def speed_text(slowest_s: float, makespan_s: float) -> str:
    """How many times as fast as the slowest run; "-" where the time rounds to nothing."""
    return f"{slowest_s / makespan_s:.2f}" if makespan_s else "-"


def _short(name: str, width: int) -> str:
    return name if len(name) < width else name[: width - 4] + "..."
