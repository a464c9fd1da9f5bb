"""Experiments of ``kind: vectors``: users with tasks of several resources on servers, over knobs and numbers of users.

QKnober's trace-driven simulation (section 7.3, Figs. 8 and 9) as run directories. The keys: docs/reference/vectors.md;
what runs is harness.sim.vector. Nothing here depends on the wall clock but ``wall_s`` and ``run.json``.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import numpy as np
import pandas as pd
from pydantic import Field, model_validator

from harness.base.documents import Positive, Strict, YamlDocument, validated
from harness.base.errors import CallError, InputError
from harness.base.files import write_json
from harness.experiments.ended import EndedVariant
from harness.experiments.spec import Scalar, Seed, Slug
from harness.experiments.vectors import load_trace
from harness.jobs.google import Part, synthetic
from harness.results.store import RunDirectory
from harness.sim.vector import RULES, VectorLoad, VectorRun, simulate

#: The knob of each rule that has one, by its name as a setting.
KNOBS: Mapping[str, str] = {"tetris": "f", "qknober": "rho"}
RESOURCES = ("cpu", "memory", "disk")
Users = Annotated[int, Field(ge=1, le=10_000)]


class VectorPolicySpec(Strict):
    """A rule with its knob, or with ``vary`` one for each of the listed knobs."""

    policy: str
    settings: dict[str, Scalar] = Field(default_factory=dict)
    vary: dict[str, Annotated[list[Scalar], Field(min_length=1, max_length=1000)]] = Field(default_factory=dict)


class VectorExperiment(Strict):
    """A synthetic load of the shape of Google's trace (or the ``trace`` itself), rule by rule."""

    kind: Literal["vectors"]
    experiment: Slug
    about: str = ""
    trace: str | None = None
    users: Users | Annotated[list[Users], Field(min_length=1, max_length=100)] = 100
    machines: Annotated[int, Field(ge=1, le=100_000)] = 1000
    hours: Annotated[float, Field(gt=0, le=1000, allow_inf_nan=False)] = 24.0
    start_h: Annotated[float, Field(ge=0, le=1000, allow_inf_nan=False)] = 0.0
    load: Annotated[float, Field(gt=0, le=10, allow_inf_nan=False)] = 1.2
    uneven: Annotated[float, Field(ge=0, le=3, allow_inf_nan=False)] = 0.5
    policies: list[str | VectorPolicySpec] = Field(min_length=1, max_length=1000)
    sample_s: Positive = 600.0
    seed: Seed | Annotated[list[Seed], Field(min_length=1, max_length=10_000)] = 1

    @model_validator(mode="after")
    def _distinct(self) -> Self:
        if isinstance(self.users, list) and len(set(self.users)) < len(self.users):
            raise ValueError("a number of users is listed twice")
        return self


@dataclass(frozen=True, slots=True)
class VectorVariant:
    """One run: a rule, its knob, the number of users, the seed of the load."""

    name: str
    policy: str
    knob: float | None
    users: int
    seed: int

    def identity(self) -> dict[str, Any]:
        """As it stands in ``run.json``."""
        settings = {} if self.knob is None else {KNOBS[self.policy]: self.knob}
        return {
            "variant": self.name,
            "policy": {"name": self.policy, "mode": "vectors", "settings": settings},
            "users": self.users,
            "seed": self.seed,
        }


EndedVector = EndedVariant[VectorVariant]


@dataclass(frozen=True, slots=True)
class LoadedVectors:
    """An experiment of vectors and what it is to run."""

    spec: VectorExperiment
    hash: str
    variants: list[VectorVariant]
    trace: Path | None

    @property
    def name(self) -> str:
        return self.spec.experiment


def load_vectors(
    document: YamlDocument, policies: Sequence[str], settings: Mapping[str, str], seeds: Sequence[int]
) -> LoadedVectors:
    """What is to run. InputError with file and line, CallError for options that do not fit."""
    spec = validated(VectorExperiment, document)
    trace = None
    if spec.trace is not None:
        trace = (Path(document.file).parent / spec.trace).resolve()
        if not trace.is_dir():
            raise InputError("no such folder", where=document.where(("trace",)), mend="give the 2011 trace's folder")
    for key, wrong in (("load", trace is not None), ("uneven", trace is not None), ("start_h", trace is None)):
        if wrong and key in spec.model_fields_set:
            says = "is of a trace" if key == "start_h" else "is of a synthetic load"
            raise InputError(f"{key} {says}", where=document.where((key,)), mend=f"drop {key}, or trace")
    uses = _uses(spec, document)
    if policies:
        uses = [pair for name in policies for pair in _chosen(name, uses)]
    uses = _with_settings(uses, settings)
    listed = spec.seed if isinstance(spec.seed, list) else [spec.seed]
    chosen = list(dict.fromkeys(seeds or listed))
    counts = spec.users if isinstance(spec.users, list) else [spec.users]
    variants = []
    for seed, users, (policy, knob) in itertools.product(chosen, counts, dict.fromkeys(uses)):
        parts = [policy] if knob is None else [policy, f"{KNOBS[policy]}={knob:g}"]
        parts = [*parts, f"users={users}"] if len(counts) > 1 else parts
        name = ",".join([*parts, f"seed={seed}"] if len(chosen) > 1 else parts)
        variants.append(VectorVariant(name, policy, knob, users, seed))
    resolved = spec.model_dump(mode="json", exclude={"seed", "policies"})
    digest = hashlib.sha256(json.dumps(resolved, sort_keys=True).encode()).hexdigest()
    return LoadedVectors(spec, digest, variants, trace)


Use = tuple[str, float | None]


def _knob(policy: str, settings: Mapping[str, Any]) -> float | None:
    """The knob among the settings of a rule. CallError for a setting that it has not, or a value that is no knob."""
    if policy not in RULES:
        raise CallError(f"no rule {policy[:60]!r} for vectors", where="policy", mend=f"one of {', '.join(RULES)}")
    own = KNOBS.get(policy)
    for key in settings:
        if key != own:
            mend = f"it has {own}" if own else "leave settings out"
            raise CallError(f"{policy} has no setting {key[:60]!r} here", where="policy", mend=mend)
    if own is None:
        return None
    value = settings.get(own, 0.5)
    try:
        knob = float(value)
    except (TypeError, ValueError):
        knob = -1.0
    if not 0 <= knob <= 1 or isinstance(value, bool):
        raise CallError(f"{own} is {str(value)[:40]!r}, not a number from 0 to 1", where="policy", mend="correct it")
    return knob


def _uses(spec: VectorExperiment, document: YamlDocument) -> list[Use]:
    found: list[Use] = []
    for at, use in enumerate(spec.policies):
        given = VectorPolicySpec(policy=use) if isinstance(use, str) else use
        try:
            for values in itertools.product(*given.vary.values()):
                merged = {**given.settings, **dict(zip(given.vary, values, strict=True))}
                found.append((given.policy, _knob(given.policy, merged)))
        except CallError as error:
            raise InputError(error.what, where=document.where(("policies", at)), mend=error.mend) from None
    return found


def _chosen(name: str, uses: Sequence[Use]) -> list[Use]:
    """What ``--policy`` names: a rule of the file with all its knobs, one of its variants, or a rule by itself."""
    policy, _, setting = name.partition(",")
    if setting:
        key, _, value = setting.partition("=")
        return [(policy, _knob(policy, {key: value}))]
    return [use for use in uses if use[0] == name] or [(name, _knob(name, {}))]


def _with_settings(uses: Sequence[Use], settings: Mapping[str, str]) -> list[Use]:
    for key in settings:
        if not any(KNOBS.get(policy) == key for policy, _ in uses):
            raise CallError(f"none of the policies has a setting {key[:60]!r}", where="--set", mend="f or rho")
    return [
        (policy, _knob(policy, {key: settings[key]}) if (key := KNOBS.get(policy, "")) in settings else knob)
        for policy, knob in uses
    ]


def _load_of(loaded: LoadedVectors, users: int, seed: int) -> VectorLoad:
    spec = loaded.spec
    if loaded.trace is not None:
        # The defaults are the synthetic load's: of a trace, all that the file does not cut.
        given = spec.model_fields_set
        machines = spec.machines if "machines" in given else None
        hours = spec.hours if "hours" in given else None
        return load_trace(loaded.trace, users, Part(machines, spec.start_h, hours, seed))
    return synthetic(
        users=users, machines=spec.machines, hours=spec.hours, load=spec.load, seed=seed, uneven=spec.uneven
    )


def summarised(load: VectorLoad, variant: VectorVariant, run: VectorRun) -> dict[str, Any]:
    """One run's summary (``speedup_over_static`` comes when all have run)."""
    names = RESOURCES[: load.demand.shape[1]]
    took = (run.wait_ms + load.duration_ms) / 1000
    return {
        "makespan_s": round(run.makespan_s, 3),
        "mean_completion_s": round(run.mean_completion_s, 3),
        "mean_wait_s": round(float(run.wait_ms.mean()) / 1000, 3) if len(run.wait_ms) else 0.0,
        "mean_slowdown": round(float(np.mean(took * 1000 / load.duration_ms)), 6) if len(took) else None,
        "utilisation": {name: round(x, 6) for name, x in zip(names, run.utilisation, strict=True)},
        "utilisation_while_submitted": {name: round(x, 6) for name, x in zip(names, run.busy, strict=True)},
        "soft_fairness": round(run.soft_fairness, 6),
        **({"theta": round(run.estimated_soft_fairness, 6)} if variant.policy == "qknober" else {}),
        "users": len(load.weights),
        "tasks": len(load.user),
        "servers": len(load.servers),
        "decisions": run.decisions,
        "finished": True,
        "events": 2 * len(load.user),
    }


def _tables(load: VectorLoad, run: VectorRun) -> dict[str, pd.DataFrame]:
    """``allocations.parquet``: the whole by sample; ``users.parquet``: each user's tasks."""
    m = load.demand.shape[1]
    table = pd.DataFrame({"time_s": run.sample_s})
    for k, name in enumerate(RESOURCES[:m]):
        table[f"used_{name}"] = run.samples[:, k]
    for k, name in enumerate(("soft_fairness", "theta", "waiting_tasks")):
        table[name] = run.samples[:, m + k]
    for percent in (0, 25, 50, 75, 100):
        table[f"share_p{percent}"] = np.percentile(run.shares, percent, axis=1) if len(run.shares) else []
    work = pd.DataFrame(
        {
            "user": load.user,
            "tasks": 1,
            "completion_s": (run.wait_ms + load.duration_ms) / 1000,
            "wait_s": run.wait_ms / 1000,
            "dominant_s": (load.demand / load.servers.sum(axis=0)).max(axis=1) * load.duration_ms / 1000,
        }
    )
    users = work.groupby("user", as_index=False).agg(
        tasks=("tasks", "sum"),
        mean_completion_s=("completion_s", "mean"),
        mean_wait_s=("wait_s", "mean"),
        dominant_s=("dominant_s", "sum"),
    )
    return {"allocations.parquet": table, "users.parquet": users}


def run_vectors(
    loaded: LoadedVectors, folder: Path, on_end: Callable[[EndedVector], None] | None = None
) -> list[EndedVector]:
    """Runs all variants one after the other, a run directory each."""
    ended: list[EndedVector] = []
    of: tuple[int, int] | None = None
    load: VectorLoad | None = None
    for variant in loaded.variants:
        path = folder / variant.name
        identity = {**variant.identity(), "backend": "sim", "hash": loaded.hash}
        directory = RunDirectory(path, {**identity, "experiment": loaded.spec.model_dump(mode="json")})
        run = EndedVector(variant, path)
        try:
            if load is None or of != (variant.users, variant.seed):
                load, of = _load_of(loaded, variant.users, variant.seed), (variant.users, variant.seed)
            began = time.perf_counter()
            result = simulate(load, variant.policy, variant.knob or 0.0, sample_s=loaded.spec.sample_s)
            for name, table in _tables(load, result).items():
                directory.write_table(name, table)
            run.summary = summarised(load, variant, result)
            run.summary["wall_s"] = round(time.perf_counter() - began, 3)
            directory.write_summary(run.summary)
        except BaseException as error:
            RunDirectory.close(path, 130 if isinstance(error, KeyboardInterrupt) else 1, type(error).__name__)
            raise
        RunDirectory.close(path, 0)
        ended.append(run)
        if on_end is not None:
            on_end(run)
    _beside_static(ended)
    return ended


def _beside_static(ended: Sequence[EndedVector]) -> None:
    """Makespans over that of static partitioning with the same users and seed, into the summaries (Figs. 7a and 9)."""
    static = {(r.variant.users, r.variant.seed): r.summary["makespan_s"] for r in ended if r.variant.policy == "static"}
    for run in ended:
        alone = static.get((run.variant.users, run.variant.seed))
        if alone is not None and run.summary["makespan_s"]:
            run.summary["speedup_over_static"] = round(alone / run.summary["makespan_s"], 6)
            write_json(run.path / "summary.json", run.summary)


def comparison_vectors(loaded: LoadedVectors, ended: Sequence[EndedVector]) -> list[str]:
    """The comparison for a terminal of 80 columns; means over seeds."""
    groups: dict[tuple[int, str, float | None], list[dict[str, Any]]] = {}
    for run in ended:
        groups.setdefault((run.variant.users, run.variant.policy, run.variant.knob), []).append(run.summary)
    spec = loaded.spec
    kind = "synthetic load" if loaded.trace is None else "trace"
    lines = [
        f"{kind}, {ended[0].summary['servers']:,} servers, means over {len({r.variant.seed for r in ended})} seed(s)"
    ]
    lines += [""] if spec.about == "" else [spec.about, ""]
    lines.append("users  policy   knob  makespan s  over static      utilisation %   soft f.    theta")

    def mean(summaries: Sequence[Mapping[str, Any]], key: str) -> float | None:
        values = [summary.get(key) for summary in summaries]
        return statistics.fmean([v for v in values if v is not None]) if None not in values else None

    for (users, policy, knob), summaries in groups.items():
        used = "".join(
            f"{100 * statistics.fmean(s['utilisation'][name] for s in summaries):6.1f}"
            for name in summaries[0]["utilisation"]
        )
        over, theta = (
            "-" if (value := mean(summaries, key)) is None else f"{value:.{digits}f}"
            for key, digits in (("speedup_over_static", 3), ("theta", 2))
        )
        lines.append(
            f"{users:>5}  {policy:<8} {'' if knob is None else format(knob, 'g'):>4} "
            f"{mean(summaries, 'makespan_s') or 0:>11,.0f} {over:>12} "
            f"{used:>18} {mean(summaries, 'soft_fairness') or 0:>9.2f} {theta:>8}"
        )
    return [line.rstrip() for line in lines]
