"""The experiment types ``mr-clusters`` and ``mr-layouts`` (FAWKES; docs/reference/fawkes.md): their variants and runs.

The simulator is `harness.systems.fawkes.simulator`. Results are deterministic; only ``wall_s`` and ``run.json`` depend
on the wall clock.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from typing import Any

import pandas as pd

from harness.base.documents import YamlDocument
from harness.base.errors import CallError, InputError
from harness.experiments.kind import Computed, Ended, Kind, KindVariant, Loaded, hash_of
from harness.experiments.selection import (
    EVERYTHING,
    Selection,
    check_given,
    check_names,
    chosen,
    expand_seeds,
    merge_overrides,
)
from harness.policies.registry import make_policy, settings_of
from harness.results.metrics import percentile
from harness.systems.fawkes.columns import LAYOUTS, POLICIES
from harness.systems.fawkes.policies import weighting_of
from harness.systems.fawkes.shares import Weighting
from harness.systems.fawkes.simulator import ClusterSetup, Constants, MRJob, Profile, Result, Setup, simulate
from harness.systems.fawkes.simulator.model import Growth
from harness.systems.fawkes.spec import (
    Applications,
    LayoutExperiment,
    LayoutSpec,
    MRExperiment,
    SubmitSpec,
    check_applications,
    jobs_of_application,
    jobs_of_cluster,
    read_applications,
    read_experiment,
)

#: The mode in the records of all variants: FAWKES policies act in the MR-cluster simulator, not in a YARN scheduler.
_MODE = "mr-clusters"


@dataclass(frozen=True, slots=True)
class MRVariant(KindVariant):
    """One run: a policy with its settings and its growth nodes (or a layout without a policy), and the seed."""

    growth: Growth
    layout: LayoutSpec | None = None

    def own(self) -> dict[str, Any]:
        """Return the variant's own settings for the record: its growth."""
        return {"growth": self.growth}


@dataclass(frozen=True, slots=True)
class LoadedMR(Loaded):
    """A loaded experiment of MR-clusters or layouts, with the applications that it submits."""

    known: Applications


def load_mr(document: YamlDocument) -> LoadedMR:
    """Read an experiment file and check everything that a user can get wrong in it.

    Raises InputError with the file, and with the line where it is known.
    """
    spec = read_experiment(document)
    known = read_applications(spec.applications, document)
    if isinstance(spec, MRExperiment):
        check_applications(known, {name: cluster.submit for name, cluster in spec.clusters.items()}, document)
        try:
            variants = mr_variants(LoadedMR(spec, document, "", known))
        except CallError as error:
            # An error in the file ends with exit code 1 (InputError), one in the command line with 2 (CallError).
            raise InputError(error.what, where=document.where(("policies",)), hint=error.hint) from None
        known_settings = {key for variant in variants for key in settings_of(variant.policy)}
        for key in spec.settings:
            if key not in known_settings:
                what = f"none of the policies has a setting {key[:60]!r}"
                offer = f"they have {', '.join(sorted(known_settings))}"
                raise InputError(what, where=document.where(("settings", key)), hint=offer)
    else:
        check_applications(known, {"submit": spec.submit}, document)
    resolved = {**spec.model_dump(mode="json", exclude={"seed", "policies"}), "known": known.model_dump(mode="json")}
    return LoadedMR(spec, document, hash_of(resolved), known)


@dataclass(frozen=True, slots=True)
class _Use:
    """A policy entry of an experiment file, or a policy that the command line gives by its name alone."""

    policy: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    growth: Growth | None = None
    name: str | None = None


def mr_variants(loaded: LoadedMR, asked: Selection = EVERYTHING) -> list[MRVariant]:
    """Return the variants to run: every policy entry (or layout) with every seed.

    Raises CallError for policies, settings or options that do not fit, InputError if the file itself is inconsistent.
    """
    spec, policies, given = loaded.spec, asked.policies, asked.settings
    found: list[MRVariant] = []
    if isinstance(spec, LayoutExperiment):
        if policies or given:
            raise CallError("layouts have no policy", where="--policy, --set", hint="leave them out")
        found = [
            MRVariant(name, "layout", _MODE, {}, 0, "transient-core", layout) for name, layout in spec.layouts.items()
        ]
        return expand_seeds(found, asked.seeds, spec.seed)
    uses = chosen(
        [_Use(use.policy, use.settings, use.growth, use.name) for use in spec.policies],
        policies,
        lambda use, name: name in (use.policy, use.name),
        _Use,
    )
    known = {key for use in uses for key in settings_of(use.policy)}
    for use in uses:
        policy, growth = use.policy, use.growth
        takes = settings_of(policy)
        merged = {key: value for key, value in spec.settings.items() if key in takes} | dict(use.settings)
        merged = merge_overrides(merged, given, takes)
        period_s = float(_policy_of(policy, merged, loaded).settings.period)
        if spec.sample_s > period_s:
            what = f"sample_s is {spec.sample_s:g}, {policy}'s period {period_s:g} s: an update without a sample "
            what += "would take every MR-cluster for idle"
            if "period" in given:
                raise CallError(what, where="--set", hint="give a period of at least sample_s")
            where = loaded.document.where(("sample_s",))
            raise InputError(what, where=where, hint="give a sample_s of at most the period")
        label = use.name or (policy if growth is None else f"{policy},growth={growth}")
        found.append(MRVariant(label, policy, _MODE, merged, 0, growth or spec.growth))
    check_given(given, known, "see docs/reference/fawkes.md")
    check_names([variant.name for variant in found], loaded.document)
    return expand_seeds(found, asked.seeds, spec.seed)


def _policy_of(name: str, settings: Mapping[str, Any], loaded: LoadedMR) -> Weighting:
    try:
        return weighting_of(make_policy(name, settings))
    except CallError as error:
        raise CallError(error.what, where=loaded.document.where(("policies",)), hint=error.hint) from None


# --- one run ----------------------------------------------------------------------------------------------------------


@cache
def alone_s(profile: Profile, input_gb: float, nodes: int, constants: Constants) -> float:
    """Return the execution time of one job alone on a static MR-cluster of core nodes, s (section 5.3, Fig. 2).

    Task durations have no random spread here.
    """
    job = MRJob("alone", profile, input_gb)
    setup = Setup(
        nodes, (ClusterSetup("reference", nodes, (job,), ready=True),), None, constants=replace(constants, spread=0.0)
    )
    return simulate(setup).makespan_s


def _references(jobs: Sequence[MRJob], nodes: int, constants: Constants) -> dict[tuple[str, float], float]:
    return {(job.profile.name, job.input_gb): alone_s(job.profile, job.input_gb, nodes, constants) for job in jobs}


def run_mr_variant(loaded: LoadedMR, variant: MRVariant) -> tuple[dict[str, Any], Result, list[dict[str, Any]]]:
    """Run one variant of ``kind: mr-clusters`` and return its summary, its result and one row per submitted job."""
    spec = loaded.spec
    assert isinstance(spec, MRExperiment)
    constants = spec.constants.constants()
    clusters = tuple(
        ClusterSetup(
            name,
            cluster.core,
            jobs_of_cluster(loaded.known, cluster, variant.seed, name),
            arrival_s=cluster.arrival_s,
            data_gb=cluster.data_gb,
            from_activation=True,
        )
        for name, cluster in spec.clusters.items()
    )
    reference_s = _references([job for c in clusters for job in c.jobs], spec.reference_nodes, constants)
    setup = Setup(
        spec.nodes,
        clusters,
        _policy_of(variant.policy, variant.settings, loaded),
        growth=variant.growth,
        constants=constants,
        sample_s=spec.sample_s,
        seed=variant.seed,
        time_limit_s=spec.time_limit_s,
        reference_s=reference_s,
    )
    result = simulate(setup)
    rows = []
    for job in result.jobs:
        alone = reference_s[job.profile, job.input_gb]
        took = job.finished_s - job.submitted_s if job.finished_s is not None else None
        rows.append({**asdict(job), "completion_s": took, "slowdown": took / alone if took is not None else None})
    slots = constants.map_slots + constants.reduce_slots
    end_s = result.makespan_s or 1.0
    summary: dict[str, Any] = {
        "makespan_s": round(result.makespan_s, 3),
        **_spread([row["slowdown"] for row in rows if row["slowdown"] is not None], "slowdown"),
        "reconfigurations": result.reconfigurations,
        "nodes_moved": result.nodes_moved,
        "killed_tasks": result.killed_tasks,
        "replicated_gb": round(result.replicated_gb, 3),
        "utilisation": {
            "nodes": round(result.node_s / (spec.nodes * end_s), 6),
            "slots": round(result.slot_s / (spec.nodes * slots * end_s), 6),
        },
        "global_discrimination": {
            "mean": round(statistics.fmean([float(u.global_discrimination) for u in result.updates] or [0.0]), 6),
            "max": round(max([float(u.global_discrimination) for u in result.updates] or [0.0]), 6),
        },
        "overall_discrimination_variance": round(statistics.pvariance(list(result.overall.values()) or [0.0]), 6),
        "queues": {c.name: _cluster_figures(c.name, len(c.jobs), rows, result) for c in clusters},
        "finished": result.finished,
        "events": 2 * result.task_events,
    }
    return summary, result, rows


def _spread(values: Sequence[float], what: str) -> dict[str, float | None]:
    figures: dict[str, Callable[[Sequence[float]], float]]
    figures = {"mean": statistics.fmean, "median": statistics.median, "min": min, "max": max}
    return {f"{key}_{what}": round(of(values), 6) if values else None for key, of in figures.items()}


def _cluster_figures(name: str, jobs: int, rows: Sequence[Mapping[str, Any]], result: Result) -> dict[str, Any]:
    """Return one MR-cluster's part of the summary.

    ``jobs`` is the number of jobs in its workload. A job counts as failed if it did not end before the time limit, also
    if it was never submitted.
    """
    own = [row for row in rows if row["cluster"] == name]
    ended = [row for row in own if row["completion_s"] is not None]
    took = [row["completion_s"] for row in ended]
    samples = [s for s in result.samples if s.cluster == name]
    return {
        "jobs": jobs,
        "failed": jobs - len(ended),
        "tasks": sum(row["tasks"] for row in own),
        "mean_completion_s": round(statistics.fmean(took), 3) if took else None,
        "p95_completion_s": percentile(pd.Series(took, dtype=float).to_numpy(), 95) if took else None,
        **_spread([row["slowdown"] for row in ended], "slowdown"),
        "workload_s": round(max(r["finished_s"] for r in ended) - min(r["submitted_s"] for r in ended), 3)
        if ended
        else None,
        "last_end_s": round(max(r["finished_s"] for r in ended), 3) if ended else None,
        "mean_waiting_jobs": round(statistics.fmean(s.waiting_jobs for s in samples), 6) if samples else None,
        "max_waiting_jobs": max((s.waiting_jobs for s in samples), default=None),
        "max_nodes": max((s.nodes for s in samples), default=None),
        "overall_discrimination_s": round(result.overall.get(name, 0.0), 6),
    }


def run_layout(loaded: LoadedMR, variant: MRVariant) -> dict[str, Any]:
    """Run each application alone on one layout and return its summary.

    Per application: its run time and, if nodes leave, when the last of them had left, in seconds.
    """
    spec, layout = loaded.spec, variant.layout
    assert isinstance(spec, LayoutExperiment)
    assert layout is not None
    constants = spec.constants.constants()
    applications: dict[str, Any] = {}
    for use in spec.submit:
        jobs = jobs_of_application(loaded.known, use, use.application, 0.0)
        size_gb = use.size_gb or loaded.known.applications[use.application].input_gb
        result = simulate(_layout_setup(layout, tuple(jobs), size_gb, constants, variant.seed))
        applications[_label(use)] = {
            "runtime_s": round(result.makespan_s, 3),
            "left_after_s": round(result.last_drained_s, 3),
            "replicated_gb": round(result.replicated_gb, 3),
        }
    figures: dict[str, Any] = {"applications": applications}
    if layout.shrink_by and layout.shrink_gb is not None:
        idle = simulate(_layout_setup(layout, (), 0.0, constants, variant.seed))
        figures["idle"] = {
            "left_after_s": round(idle.last_drained_s, 3),
            "per_node_s": round(idle.last_drained_s / layout.shrink_by, 3),
        }
    return figures


def _label(use: SubmitSpec) -> str:
    return use.application if use.size_gb is None else f"{use.application}-{use.size_gb:g}GB"


def _layout_setup(
    layout: LayoutSpec, jobs: tuple[MRJob, ...], size_gb: float, constants: Constants, seed: int
) -> Setup:
    storing = layout.core + layout.transient_core
    shrink_gb = layout.shrink_gb if layout.shrink_gb is not None else constants.replicas * size_gb / storing
    cluster = ClusterSetup(
        "c-1",
        layout.core,
        jobs,
        fixed=(("transient", layout.transient), ("transient-core", layout.transient_core)),
        ready=True,
        sites=layout.sites,
        everywhere=layout.everywhere,
        shrink_by=layout.shrink_by,
        shrink_gb=shrink_gb,
    )
    return Setup(storing + layout.transient, (cluster,), None, constants=constants, seed=seed)


def _decisions(result: Result) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = [
        {"time_s": at, "cluster": name, "event": what} for at, name, what in result.events if what != "resized"
    ]
    for update in result.updates:
        found.append(
            {
                "time_s": float(update.time_s),
                "weights": {name: float(w) for name, w in update.weights.items()},
                "temporal_discrimination": {name: float(d) for name, d in update.temporal.items()},
                "discrimination": {name: float(d) for name, d in update.interval.items()},
                "global_discrimination": float(update.global_discrimination),
                "resized": update.resized,
            }
        )
    return sorted(found, key=lambda entry: entry["time_s"])


# --- the experiment types ---------------------------------------------------------------------------------------------


class _OfMRClusters(Kind[LoadedMR, MRVariant]):
    def load(self, document: YamlDocument) -> LoadedMR:
        return load_mr(document)

    def variants(self, experiment: LoadedMR, asked: Selection = EVERYTHING) -> list[MRVariant]:
        return mr_variants(experiment, asked)


class MRClusters(_OfMRClusters):
    """The experiment type ``mr-clusters``: jobs on MR-clusters that grow and shrink."""

    name = "mr-clusters"
    measures = POLICIES
    page = "harness.systems.fawkes.page:content_clusters"
    finding = "harness.systems.fawkes.page:findings_clusters"

    def compute(self, experiment: LoadedMR, variant: MRVariant) -> Computed:
        """Simulate a variant and return its summary and tables."""
        assert isinstance(experiment.spec, MRExperiment)
        summary, result, rows = run_mr_variant(experiment, variant)
        tables = {"jobs.parquet": pd.DataFrame(rows)}
        tables["allocations.parquet"] = pd.DataFrame([asdict(sample) for sample in result.samples])
        if result.finished:
            return Computed(summary, tables, _decisions(result))
        why = f"not ended after {experiment.spec.time_limit_s:g} s of virtual time"
        return Computed(summary, tables, _decisions(result), 5, why)


class MRLayouts(_OfMRClusters):
    """The experiment type ``mr-layouts``: each application alone on layouts of core and transient nodes."""

    name = "mr-layouts"
    measures = LAYOUTS
    page = "harness.systems.fawkes.page:content_layouts"
    finding = "harness.systems.fawkes.page:findings_layouts"

    def compute(self, experiment: LoadedMR, variant: MRVariant) -> Computed:
        """Run each application alone on the variant's layout and return the summary."""
        return Computed(run_layout(experiment, variant))

    def beside(self, experiment: LoadedMR, ended: Sequence[Ended]) -> None:
        """Add each application's time relative to the reference layout with the same seed.

        The figures are ``over_reference`` (time divided by the reference time) and ``speedup`` (its inverse).
        """
        spec = experiment.spec
        if not isinstance(spec, LayoutExperiment) or spec.reference is None:
            return
        layout = spec.layouts[spec.reference]
        references = {run.variant.seed: run.summary for run in ended if run.variant_as(MRVariant).layout == layout}
        for run in ended:
            if run.variant.seed not in references:
                continue
            for name, figures in run.summary["applications"].items():
                alone = references[run.variant.seed]["applications"][name]["runtime_s"]
                figures["over_reference"] = round(figures["runtime_s"] / alone, 6)
                figures["speedup"] = round(alone / figures["runtime_s"], 6)


MR_CLUSTERS, MR_LAYOUTS = MRClusters(), MRLayouts()
