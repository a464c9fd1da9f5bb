"""The experiment type ``vectors``: users with tasks of several resources on servers, over knobs and numbers of users.

It reproduces QKnober's trace-driven simulation (section 7.3, Figs. 8 and 9). docs/reference/vectors.md describes the
keys; harness.systems.qknober.simulator runs the variants. Results are deterministic; only ``wall_s`` and ``run.json``
depend on the wall clock.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import numpy as np
import pandas as pd
from pydantic import Field, model_validator

from harness.base.documents import Positive, Strict, YamlDocument, validated
from harness.base.errors import CallError, InputError
from harness.experiments.kind import Computed, Ended, Kind, KindVariant, Loaded, hash_of
from harness.experiments.selection import EVERYTHING, Selection, check_given, chosen, expand_seeds, merge_overrides
from harness.experiments.spec import PolicySpec, Scalar, Seeds, Slug, combinations, short_for
from harness.results.comparison import Measure, shown
from harness.systems.qknober.google import SHAPE, WHOLE, Part, Shape, read_trace, synthetic
from harness.systems.qknober.simulator import RULES, UPDATE_S, WINDOW, VectorLoad, VectorRun, simulate

#: The name of the setting that is a rule's knob, for each rule that has one.
KNOBS = {"tetris": "f", "qknober": "rho"}
#: Tetris' other setting: the weight of a job's remaining work in the score of its tasks (0: Tetris as QKnober describes
#: it).
REMAINING = "remaining"
#: The settings of each rule: name -> (default value, maximum).
SETTINGS: dict[str, dict[str, tuple[float, int]]] = {
    "tetris": {KNOBS["tetris"]: (0.5, 1), REMAINING: (0.0, 1000)},
    "qknober": {KNOBS["qknober"]: (0.5, 1)},
}
#: Metrics that compare a run with a reference run: the policy and settings of the reference. The metric is the makespan
#: of the reference divided by that of the run.
REFERENCES: dict[str, tuple[str, dict[str, float]]] = {
    "speedup_over_static": ("static", {}),
    "speedup_over_drf": ("drf", {}),
    "speedup_over_knob_1": ("qknober", {KNOBS["qknober"]: 1.0}),
}
RESOURCES = ("cpu", "memory", "disk")
Users = Annotated[int, Field(ge=1, le=10_000)]
Window = Annotated[int, Field(ge=1, le=1_000_000)] | Literal["all"]


#: Columns of the comparison: metrics of the whole run, then of each resource.
MEASURES = (
    shown("makespan_s", digits=0),
    shown("speedup_over_static"),
    Measure("speed-up over DRF", "", 3, "speedup_over_drf"),
    Measure("speed-up over QKnober at knob 1", "", 3, "speedup_over_knob_1"),
    Measure("mean completion", "s", 0, "mean_completion_s"),
    Measure("mean wait", "s", 0, "mean_wait_s"),
    shown("mean_slowdown", title="mean slowdown"),
    shown("soft_fairness", digits=2),
    shown("soft_fairness_p95", title="exceeded in 5 % of the time", digits=2),
    shown("theta", title="by Theorem 1", digits=2),
    Measure("decisions", "", 0, "decisions"),
    shown("utilisation.*", title="Utilisation until the end", digits=1, percent=True),
    Measure("Utilisation until the last submission", "%", 1, "utilisation_while_submitted.*", 100.0),
)


class VectorPolicySpec(PolicySpec):
    """A rule with one value of its knob, or with ``vary`` one variant for each listed value."""

    vary: dict[str, Annotated[list[Scalar], Field(min_length=1, max_length=1000)]] = Field(default_factory=dict)


#: The ends of a uniform distribution of positive values.
Range = Annotated[list[Annotated[float, Field(gt=0, le=1e6, allow_inf_nan=False)]], Field(min_length=2, max_length=2)]
Sigma = Annotated[float, Field(ge=0, le=3, allow_inf_nan=False)]


class VectorTasks(Strict):
    """The assumptions of a synthetic load on its tasks (`harness.systems.qknober.google.Shape`)."""

    size: Range = Field(default_factory=lambda: list(SHAPE.size))
    """Demand of a task for each resource, least and most; the largest machine has 1. None given: 0.02 to 0.1."""
    drawn: Literal["job", "user"] = SHAPE.drawn
    """Who draws the size: each `job` (demands within a user are diverse, C2), or each `user` once for all its jobs."""
    heavy: Range | None = None
    """Factor on one resource, drawn with the size, least and most; none given: no resource is heavier."""
    spread: Sigma = SHAPE.spread
    """Sigma of a job's demand around the size."""
    mean_s: Range = Field(default_factory=lambda: list(SHAPE.mean_s))
    """Mean duration of a user's tasks before the load is scaled, least and most, seconds. None given: 600 to 3,600."""
    spread_s: Sigma = SHAPE.spread_s
    """Sigma of durations around a user's mean."""
    median_tasks: Annotated[float, Field(ge=1, le=10_000, allow_inf_nan=False)] = SHAPE.median_tasks
    """Median number of tasks of a job."""
    tasks_sigma: Sigma = SHAPE.tasks_sigma
    """Sigma of the number of tasks."""
    most_tasks: Annotated[int, Field(ge=1, le=100_000)] = SHAPE.most_tasks
    """No job has more tasks."""

    @model_validator(mode="after")
    def _ascending(self) -> Self:
        for name in ("size", "heavy", "mean_s"):
            ends = getattr(self, name)
            if ends is not None and ends[0] > ends[1]:
                raise ValueError(f"{name}: the least is above the most")
        return self

    def shape(self) -> Shape:
        """Return the assumptions in the form that the load generator takes."""
        given: dict[str, Any] = self.model_dump()
        for name, value in given.items():
            given[name] = tuple(value) if isinstance(value, list) else value
        return Shape(**given)


class VectorExperiment(Strict):
    """``kind: vectors``: a load like Google's trace (synthetic, or the ``trace`` itself) under each rule."""

    kind: Literal["vectors"]
    """`vectors`."""
    experiment: Slug
    """Its name."""
    about: str = ""
    """A line for the report."""
    trace: str | None = None
    """Folder of Google's tables (relative to the file), instead of a synthetic load."""
    users: Users | Annotated[list[Users], Field(min_length=1, max_length=100)] = 100
    """Number of users, or a list."""
    machines: Annotated[int, Field(ge=1, le=100_000)] = 1000
    """Servers; of a `trace` this many of its machines, drawn by the seed (none given: all)."""
    hours: Annotated[float, Field(gt=0, le=1000, allow_inf_nan=False)] = 24.0
    """Length of the load; of a `trace` the length of its window (none given: all)."""
    start_h: Annotated[float, Field(ge=0, le=1000, allow_inf_nan=False)] = 0.0
    """Where the window of a `trace` begins."""
    load: Annotated[float, Field(gt=0, le=10, allow_inf_nan=False)] = 1.2
    """Work over capacity of a synthetic load."""
    load_at_users: Users | None = None
    """Number of users at which a synthetic load is `load`; it grows with them. None given: `load` at every number."""
    uneven: Annotated[float, Field(ge=0, le=3, allow_inf_nan=False)] = 0.5
    """Sigma of the users' work; 0: all the same."""
    tasks: VectorTasks = Field(default_factory=VectorTasks)
    """What a synthetic load assumes of its tasks."""
    policies: list[Annotated[VectorPolicySpec, short_for("policy")]] = Field(min_length=1, max_length=1000)
    """`static`, `drf`, `{policy: tetris, settings: {f: 0.2, remaining: 1}}`, `{policy: qknober, vary: {rho: [0, 0.5,
    1]}}`."""
    window: Window | Annotated[list[Window], Field(min_length=1, max_length=100)] = WINDOW
    """How many pending tasks each user shows, the oldest first; `all` as QKnober's C3 has it, or a list of these."""
    update_s: Annotated[float, Field(ge=0.001, le=1e6, allow_inf_nan=False)] = UPDATE_S
    """How often `qknober` finds s^max anew (the MDRS updater's interval), virtual seconds."""
    sample_s: Positive = 600.0
    """How often the state is noted, virtual seconds."""
    seed: Seeds = 1
    """Of the load; a list for several."""

    @model_validator(mode="after")
    def _distinct(self) -> Self:
        if isinstance(self.users, list) and len(set(self.users)) < len(self.users):
            raise ValueError("a number of users is listed twice")
        if isinstance(self.window, list) and len(set(self.window)) < len(self.window):
            raise ValueError("a window is listed twice")
        return self


@dataclass(frozen=True, slots=True)
class VectorVariant(KindVariant):
    """One run: a rule, its settings, the number of users, the window of pending tasks, the seed of the load."""

    users: int
    window: int | Literal["all"] = WINDOW

    def own(self) -> dict[str, Any]:
        """Return the variant's own settings for the record: users and window."""
        return {"users": self.users, **({"window": self.window} if self.window != WINDOW else {})}


@dataclass(frozen=True, slots=True)
class LoadedVectors(Loaded):
    """A loaded experiment. ``trace`` is the folder of Google's trace, or None for a synthetic load."""

    trace: Path | None


#: A rule and its settings. The knob is always included, ``remaining`` only if it is not 0.
Use = tuple[str, tuple[tuple[str, float], ...]]


def _use(policy: str, settings: Mapping[str, Any]) -> Use:
    """Return a rule with its settings.

    Raises CallError for an unknown rule or setting, or for a value that is out of range.
    """
    if policy not in RULES:
        raise CallError(f"no rule {policy[:60]!r} for vectors", where="policy", hint=f"one of {', '.join(RULES)}")
    known = SETTINGS.get(policy, {})
    for key in settings:
        if key not in known:
            hint = f"it has {' and '.join(known)}" if known else "leave settings out"
            raise CallError(f"{policy} has no setting {key[:60]!r} here", where="policy", hint=hint)
    found = [(key, _number(key, settings.get(key, usual), most)) for key, (usual, most) in known.items()]
    return policy, tuple((key, value) for key, value in found if value or key != REMAINING)


def _number(key: str, value: Any, most: int) -> float:
    """Return a setting's value as a number. Raises CallError if it is not between 0 and ``most``."""
    try:
        found = float(value)
    except (TypeError, ValueError):
        found = -1.0
    if not 0 <= found <= most or isinstance(value, bool):
        raise CallError(
            f"{key} is {str(value)[:40]!r}, not a number from 0 to {most}", where="policy", hint="correct it"
        )
    return found


def _uses(spec: VectorExperiment, document: YamlDocument) -> list[Use]:
    found: list[Use] = []
    for at, use in enumerate(spec.policies):
        try:
            found += [_use(use.policy, {**use.settings, **varied}) for varied in combinations(use.vary)]
        except CallError as error:
            raise InputError(error.what, where=document.where(("policies", at)), hint=error.hint) from None
    return found


def _called(name: str) -> Use:
    """Return a rule that ``--policy`` names but the file lacks.

    The name is that of a rule (``tetris``), optionally with settings (``tetris,f=0.2``).
    """
    policy, *given = name.split(",")
    return _use(policy, {key: value for key, _, value in (setting.partition("=") for setting in given)})


def load_trace(folder: Path, users: int, part: Part = WHOLE) -> VectorLoad:
    """Load a part of Google's 2011 trace from a folder.

    The folder has the tables ``machine_events``, ``task_events`` and ``task_usage``, each a folder of ``*.csv`` or
    ``*.csv.gz`` files. Raises InputError if one is missing.
    """
    parts: dict[str, list[Path]] = {}
    for table in ("machine_events", "task_events", "task_usage"):
        below = folder / table
        parts[table] = sorted([*below.glob("*.csv"), *below.glob("*.csv.gz")]) if below.is_dir() else []
        if not parts[table]:
            raise InputError(f"has no {table}/*.csv", where=str(folder), hint="give the folder of the 2011 trace")
    return read_trace(parts["machine_events"][0], parts["task_events"], parts["task_usage"], users=users, part=part)


#: Both load functions with a cache of one load, because successive runs often use the same one.
_trace_of, _synthetic_of = lru_cache(maxsize=1)(load_trace), lru_cache(maxsize=1)(synthetic)


def _load_of(experiment: LoadedVectors, users: int, seed: int) -> VectorLoad:
    spec = experiment.spec
    if experiment.trace is None:
        return _synthetic_of(
            users=users,
            machines=spec.machines,
            hours=spec.hours,
            load=spec.load * (users / spec.load_at_users if spec.load_at_users else 1.0),
            seed=seed,
            uneven=spec.uneven,
            shape=spec.tasks.shape(),
        )
    # The defaults of machines and hours are for synthetic loads. A trace is used completely unless the file sets them.
    given = spec.model_fields_set
    machines = spec.machines if "machines" in given else None
    hours = spec.hours if "hours" in given else None
    return _trace_of(experiment.trace, users, Part(machines, spec.start_h, hours, seed))


def summarised(load: VectorLoad, variant: VectorVariant, run: VectorRun) -> dict[str, Any]:
    """Return one run's summary. `Vectors.beside` adds the figures that need other runs."""
    m = load.demand.shape[1]
    names = RESOURCES[:m]
    contended = run.samples[run.samples[:, m + 2] > 0]
    took = (run.wait_ms + load.duration_ms) / 1000
    return {
        "makespan_s": round(run.makespan_s, 3),
        "mean_completion_s": round(run.mean_completion_s, 3),
        "mean_wait_s": round(float(run.wait_ms.mean()) / 1000, 3) if len(run.wait_ms) else 0.0,
        "mean_slowdown": round(float(np.mean(took * 1000 / load.duration_ms)), 6) if len(took) else None,
        "utilisation": {name: round(x, 6) for name, x in zip(names, run.utilisation, strict=True)},
        "utilisation_while_submitted": {name: round(x, 6) for name, x in zip(names, run.busy, strict=True)},
        "soft_fairness": round(run.soft_fairness, 6),
        # Eq. (12) and Theorem 1 bound the largest difference, not its mean over time, so a high percentile is reported
        # too.
        "soft_fairness_p95": round(float(np.percentile(contended[:, m], 95)), 6) if len(contended) else 0.0,
        **({"theta": round(run.estimated_soft_fairness, 6)} if variant.policy == "qknober" else {}),
        "users": len(load.weights),
        "tasks": len(load.user),
        "servers": len(load.servers),
        "decisions": run.decisions,
        "finished": True,
        "events": 2 * len(load.user),
        **({"left_out": dict(load.left_out)} if load.left_out else {}),
    }


def _tables(load: VectorLoad, run: VectorRun) -> dict[str, pd.DataFrame]:
    """Return the tables of a run.

    ``allocations.parquet`` has the state of the cluster per sample, ``users.parquet`` the tasks of each user.
    """
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


def _load_key(run: Ended) -> tuple[int, int | Literal["all"], int]:
    """Return what determines a run's load: number of users, window and seed."""
    variant = run.variant_as(VectorVariant)
    return variant.users, variant.window, variant.seed


class Vectors(Kind[LoadedVectors, VectorVariant]):
    """The experiment type ``vectors``: several resources on servers (QKnober; docs/reference/vectors.md)."""

    name = "vectors"
    compiles = True
    measures = MEASURES
    page = "harness.systems.qknober.page:content"
    finding = "harness.systems.qknober.page:findings"

    def load(self, document: YamlDocument) -> LoadedVectors:
        """Read and check an experiment file. Raises InputError."""
        spec = validated(VectorExperiment, document)
        trace = None
        if spec.trace is not None:
            trace = (Path(document.file).parent / spec.trace).resolve()
            if not trace.is_dir():
                hint = "give the 2011 trace's folder"
                raise InputError("no such folder", where=document.where(("trace",)), hint=hint)
        synthetic_only = ("load", "load_at_users", "uneven", "tasks")
        for key, wrong in (*((key, trace is not None) for key in synthetic_only), ("start_h", trace is None)):
            if wrong and key in spec.model_fields_set:
                says = "is of a trace" if key == "start_h" else "is of a synthetic load"
                raise InputError(f"{key} {says}", where=document.where((key,)), hint=f"drop {key}, or trace")
        _uses(spec, document)
        # Keys with their default values do not enter the hash, so that experiments from before these keys keep their
        # hashes.
        usual = {"window": WINDOW, "update_s": UPDATE_S, "load_at_users": None}
        left_out = {"seed", "policies", *(key for key, value in usual.items() if getattr(spec, key) == value)}
        digest = hash_of(spec.model_dump(mode="json", exclude=left_out))
        return LoadedVectors(spec, document, digest, trace)

    def variants(self, experiment: LoadedVectors, asked: Selection = EVERYTHING) -> list[VectorVariant]:
        """Return the runs that the file and the selection describe."""
        spec, given = experiment.spec, asked.settings
        uses = chosen(_uses(spec, experiment.document), asked.policies, lambda use, name: use[0] == name, _called)
        check_given(given, [key for policy, _ in uses for key in SETTINGS.get(policy, ())], "f, remaining or rho")
        found = [_use(policy, merge_overrides(dict(own), given, SETTINGS.get(policy, ()))) for policy, own in uses]
        counts = spec.users if isinstance(spec.users, list) else [spec.users]
        windows = spec.window if isinstance(spec.window, list) else [spec.window]
        variants = []
        for users, window, (policy, own) in itertools.product(counts, windows, dict.fromkeys(found)):
            parts = [policy, *(f"{key}={value:g}" for key, value in own)]
            parts += [f"users={users}"] if len(counts) > 1 else []
            parts += [f"window={window}"] if len(windows) > 1 else []
            variants.append(VectorVariant(",".join(parts), policy, self.name, dict(own), 0, users, window))
        return expand_seeds(variants, asked.seeds, spec.seed)

    def compute(self, experiment: LoadedVectors, variant: VectorVariant) -> Computed:
        """Simulate a variant and return its summary and tables."""
        load = _load_of(experiment, variant.users, variant.seed)
        window = None if variant.window == "all" else variant.window
        spec = experiment.spec
        result = simulate(
            load,
            variant.policy,
            variant.settings.get(KNOBS.get(variant.policy, ""), 0.0),
            update_s=spec.update_s,
            sample_s=spec.sample_s,
            window=window,
            remaining=variant.settings.get(REMAINING, 0.0),
        )
        return Computed(summarised(load, variant, result), _tables(load, result))

    def beside(self, experiment: LoadedVectors, ended: Sequence[Ended]) -> None:
        """Add the makespans of reference runs divided by each run's, with the same users, window and seed.

        The references are static partitioning (Figs. 7a and 9), DRF, and QKnober at knob 1 (Fig. 8). All runs with one
        seed have the same load, so a mean over seeds is a mean of paired comparisons.
        """
        for name, (policy, settings) in REFERENCES.items():
            reference = {
                _load_key(run): run.summary["makespan_s"]
                for run in ended
                if run.variant.policy == policy and run.variant.settings == settings
            }
            for run in ended:
                other = reference.get(_load_key(run))
                if other is not None and run.summary["makespan_s"]:
                    run.summary[name] = round(other / run.summary["makespan_s"], 6)

    def comparison(self, experiment: LoadedVectors, ended: Sequence[Ended]) -> list[str]:
        """Return the table that compares the runs."""
        load = "synthetic load" if experiment.trace is None else "trace"
        above = [f"{load}, {ended[0].summary['servers']:,} servers", experiment.spec.about]
        if missing := ended[0].summary.get("left_out"):
            counts = ", ".join(f"{count:,} {what}" for what, count in missing.items())
            above.append(f"left out of the trace: {counts}")
        return [*filter(None, above), "", *super().comparison(experiment, ended)]


KIND = Vectors()
