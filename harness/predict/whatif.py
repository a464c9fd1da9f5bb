"""Recomputes an experiment or a trace for other weights and settings, for an interactive page.

A page sends many requests while a user drags; `WhatIf` computes the last request, drops outdated ones, and then runs
the other phases of heartbeats and control, whose spread gives the band of every value.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from harness.base.errors import CallError, InputError, YarnfairError
from harness.control.explain import explain
from harness.control.settings import MAX_RATIO
from harness.control.view import View
from harness.control.view_run import from_table
from harness.experiments.resolve import LoadedExperiment, Variant, jobs_of
from harness.experiments.simulated import setup_of, simulate_variant
from harness.experiments.spec import QueueSpec
from harness.model.plan import WEIGHT_MAX, WEIGHT_MIN, Mode
from harness.model.queues import ROOT, cluster_parts
from harness.policies.registry import make_policy, settings_of
from harness.predict.playing import PHASES, in_phase, outcome_of
from harness.predict.verdict import Band, Outcome
from harness.results.metrics import expected_s
from harness.results.summary import allocations_table
from harness.sim.compiled import compiling_words, is_compiled
from harness.sim.interfaces import simulated

if TYPE_CHECKING:
    from harness.sim.setup import Progress, SimResult

#: Number of points of a curve that are sent to a page.
MOMENTS = 400
#: Number of cached results, and of runs that stay wanted after newer requests.
_KEPT, _WANTED = 24, 4
#: Time that a request waits for a run before it returns the progress, seconds.
WAIT_S = 0.7
#: Values of a whole run that a page shows.
_WHOLE = ("all_s", "loss", "makespan_s", "utilisation")
#: Settings that can be dragged besides weights -> (smallest, largest).
KNOBS = {"horizon_s": (0.0, 1e6), "half_life": (1.0, 1e8), "t_wait": (0.0, 1e6)}
#: Keys of a query besides weights: ``queue`` and ``at`` are for `WhatIf.words`.
_ASKED = ("policy", *KNOBS, "period_s", "max_ratio", "queue", "at")
POLICIES = (
    "fair",
    "static",
    "ltrf@outside",
    "hltrf@outside",
    "ltrf",
    "hltrf",
    "naive-hltrf@outside",
    "decay-slurm@outside",
    "decay-kueue@outside",
)


class _Dropped(Exception):
    """No request waits for this run any more."""


@dataclass(frozen=True, slots=True)
class Asked:
    """One run that a page asks for. ``settings``: values of `KNOBS`; max_ratio None: weights are not bounded."""

    policy: str
    settings: tuple[tuple[str, float], ...] = ()
    weights: tuple[tuple[str, float], ...] = ()
    period_s: float = 5.0
    max_ratio: float | None = MAX_RATIO

    @classmethod
    def read(cls, query: Mapping[str, str], experiment: LoadedExperiment) -> Asked:
        """Parse a query: ``policy``, ``horizon_s`` ..., ``period_s``, ``max_ratio`` (0: none), ``w.PATH``.

        Raises CallError.
        """
        for key in query:
            if key.startswith("w."):
                if key[2:] not in experiment.weights or key[2:] == ROOT:
                    raise CallError(f"no queue {key[2:][:60]!r} for {key[:60]!r}", hint=_one_of(experiment.weights))
            elif key not in _ASKED:
                raise CallError(f"unknown key {key[:60]!r}", hint=f"one of {', '.join(_ASKED)}, w.QUEUE")
        policy = query.get("policy", simulated(experiment.spec.scheduler).stock_policy)
        name = policy.partition("@")[0]
        if policy not in POLICIES and policy not in offered(experiment):
            raise CallError(f"no policy {policy[:40]!r} here", hint=f"one of {', '.join(offered(experiment))}")
        known = settings_of(name)
        settings = {
            knob: _number(query, knob, low, high)
            for knob, (low, high) in KNOBS.items()
            if knob in query and knob in known
        }
        make_policy(name, settings)
        weights = {
            path: _number(query, key, WEIGHT_MIN, WEIGHT_MAX)
            for key in query
            if key.startswith("w.") and (path := key[2:])
        }
        ratio = _number(query, "max_ratio", 0.0, 1e9) if "max_ratio" in query else MAX_RATIO
        return cls(
            policy,
            tuple(sorted(settings.items())),
            tuple(sorted(weights.items())),
            _number(query, "period_s", 0.5, 3600.0) if "period_s" in query else 5.0,
            max(ratio, 1.0) if ratio else None,
        )


def _one_of(weights: Mapping[str, float]) -> str:
    shown = [path for path in weights if path != ROOT][:20]
    return f"one of {', '.join(shown)}"


def _number(query: Mapping[str, str], name: str, low: float, high: float) -> float:
    try:
        value = float(query[name])
    except ValueError:
        value = float("nan")
    if not low <= value <= high:
        raise CallError(f"{name} is {query[name][:40]!r}, not a number from {low:g} to {high:g}", hint="correct it")
    return value


def offered(experiment: LoadedExperiment) -> list[str]:
    """Return the policies that a page offers for an experiment, the experiment's own first."""
    own = [f"{use.policy}@outside" if use.mode == "outside" else use.policy for use in experiment.spec.policies]
    able = [name for name in own if ":" not in name and "/" not in name]
    scheduler = simulated(experiment.spec.scheduler)
    usual = (name for name in POLICIES if (scheduler.steered if name.endswith("@outside") else scheduler.orders_inside))
    found = [scheduler.stock_policy, *able, *usual]
    return list(dict.fromkeys(found))


@dataclass(slots=True)
class _Run:
    """The state of one requested run."""

    document: dict[str, Any] | None = None
    result: SimResult | None = None
    variant: Variant | None = None
    #: The requested queues.
    queues: Mapping[str, Any] = field(default_factory=dict)
    trouble: YarnfairError | None = None
    part: float = 0.0
    #: Results by phase.
    phases: list[Outcome] = field(default_factory=list)
    #: Set with the first phase's result, or with the error.
    done: threading.Event = field(default_factory=threading.Event)
    #: Set with the last phase's result, or with the error.
    complete: threading.Event = field(default_factory=threading.Event)

    def fail(self, error: YarnfairError) -> None:
        """Record the error, for every request that waits for this run."""
        self.trouble = error
        self.done.set()
        self.complete.set()


class WhatIf:
    """An experiment that is simulated with the settings of each request. Thread-safe."""

    def __init__(self, experiment: LoadedExperiment, *, phases: int = PHASES, title: str | None = None) -> None:
        if experiment.spec.slots is not None:
            raise InputError("slots are MRv1's", where=experiment.name, hint="give an experiment of containers")
        self.experiment, self.phases = experiment, phases
        # An experiment that replays a trace has a made-up name, which says nothing to those who gave the trace.
        self.title = title or experiment.name
        jobs, count = jobs_of(experiment, experiment.spec.seeds[0])
        if count is None:
            raise InputError(
                "its jobs are read as the run goes on: too many for a page", where=experiment.name, hint="give fewer"
            )
        self.jobs = list(jobs)
        self._lock = threading.Condition()
        self._runs: OrderedDict[Asked, _Run] = OrderedDict()
        self._wanted: list[Asked] = []
        self._stop = False
        self._thread = threading.Thread(target=self._work, name="whatif", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop all runs."""
        with self._lock:
            self._stop = True
            self._lock.notify_all()
        self._thread.join(10)

    # --- requests of a page ---

    def about(self) -> dict[str, Any]:
        """Return what can be dragged."""
        return {
            "name": self.experiment.name,
            "title": self.title,
            # For a trace, also its gaps and assumptions.
            "about": " ".join(self.experiment.spec.about.split())[:3000],
            "jobs": len(self.jobs),
            "queues": {path: weight for path, weight in self.experiment.weights.items() if path != "root"},
            "leaves": list(self.experiment.leaves),
            "policies": offered(self.experiment),
            "knobs": {policy: [k for k in KNOBS if k in settings_of(policy.partition("@")[0])] for policy in POLICIES},
            "max_ratio": MAX_RATIO,
        }

    def run(self, asked: Asked, wait_s: float = WAIT_S) -> dict[str, Any]:
        """Return the run's document, or its progress (``part``). Raises the error of the run."""
        run = self._want(asked)
        run.done.wait(wait_s)
        if run.trouble is not None:
            raise run.trouble
        if run.document is None or not run.phases:
            compiling = not is_compiled(self.experiment.spec.scheduler)
            return {"part": round(run.part, 3), "says": compiling_words() if compiling else ""}
        return self._told(run)

    def _told(self, run: _Run) -> dict[str, Any]:
        """Return the document of a run of which at least one phase is known, with the means over its phases."""
        assert run.document is not None
        return {**run.document, **_means(list(run.phases)), "of_phases": self.phases}

    def whole(self, asked: Asked, on_phases: Callable[[int], None] = lambda known: None) -> dict[str, Any]:
        """Return the same as `run`, once all phases are known.

        Parameters
        ----------
        asked : Asked
            What is simulated.
        on_phases : Callable[[int], None], optional
            Called about once a second with the number of phases that are known so far.

        Returns
        -------
        dict[str, Any]
            The run's document with means and bands over all phases.

        Raises
        ------
        YarnfairError
            The error of the run.
        """
        # A request of another thread may take this run's place among those that are kept: then it is wanted anew.
        while not (run := self._want(asked)).complete.wait(1.0):
            on_phases(len(run.phases))
        if run.trouble is not None:
            raise run.trouble
        return self._told(run)

    def words(self, asked: Asked, queue: str, at_s: float) -> list[str]:
        """Return `explain`'s text for a queue at a moment. Raises CallError for an unknown queue."""
        run = self._want(asked)
        run.done.wait(30.0)
        if run.result is None:
            return []
        view = self._view(run, at_s)
        if queue not in view.queues:
            raise CallError(f"no queue {queue[:60]!r}", hint="choose one that is there")
        return explain(view, queue)

    def _view(self, run: _Run, at_s: float) -> View:
        assert run.result is not None
        assert run.variant is not None
        identity = {**self.experiment.described(), "experiment": {"queues": run.queues}, **run.variant.identity()}
        table, decisions = allocations_table(run.result), run.result.decisions
        return from_table(table, identity, decisions, source=self.experiment.name, at_s=max(at_s, 0.0))

    # --- runs ---

    def _want(self, asked: Asked) -> _Run:
        with self._lock:
            if asked in self._wanted:
                self._wanted.remove(asked)
            self._wanted = [*self._wanted, asked][-_WANTED:]
            run = self._runs.get(asked)
            if run is None:
                run = self._runs[asked] = _Run()
                for old in [one for one in self._runs if one not in self._wanted][: max(len(self._runs) - _KEPT, 0)]:
                    del self._runs[old]
            self._runs.move_to_end(asked)
            self._lock.notify_all()
            return run

    def _next(self) -> tuple[Asked, _Run, int] | None:
        """Return the next run to compute, first phases first; None: stop."""
        with self._lock:
            while not self._stop:
                open_ = [
                    (len(run.phases), asked) for asked in self._wanted if (run := self._runs[asked]).trouble is None
                ]
                left = [one for one in open_ if one[0] < self.phases]
                if left:
                    count, asked = min(reversed(left), key=lambda one: one[0])
                    return asked, self._runs[asked], count + 1
                self._lock.wait()
        return None

    def _work(self) -> None:
        while (found := self._next()) is not None:
            asked, run, phase = found
            try:
                self._phase(asked, run, phase)
            except _Dropped:
                continue
            except YarnfairError as error:
                run.fail(error)
            except Exception as error:  # an unforeseen error: a request must not wait for a run that never ends
                run.fail(InputError(f"failed: {error!r}"[:300], where=asked.policy, hint="give another setting"))

    def _phase(self, asked: Asked, run: _Run, phase: int) -> None:
        experiment = with_weights(self.experiment, dict(asked.weights))
        name, _, outside = asked.policy.partition("@")
        mode: Mode = "outside" if outside else "inside"
        scheduler = experiment.spec.scheduler
        settings = dict(asked.settings)
        shown = ",".join([asked.policy, *(f"{key}={value:g}" for key, value in settings.items())])
        variant = Variant(shown, name, mode, settings, phase, asked.period_s, scheduler=scheduler)
        setup = setup_of(experiment, variant, self.jobs)
        setup = replace(in_phase(setup, asked.max_ratio), sample_s=self._sample_s())

        def on_progress(progress: Progress) -> None:
            with self._lock:
                if self._stop or asked not in self._wanted:
                    raise _Dropped
            if phase == 1:
                run.part = progress.jobs_done / max(len(self.jobs), 1)

        result = simulate_variant(setup, on_progress)
        outcome = outcome_of(result, experiment, variant, frozenset(job.id for job in self.jobs))
        if phase == 1:
            run.result, run.variant = result, variant
            run.queues = experiment.spec.model_dump(mode="json")["queues"]
            run.document = self._document(result, experiment, shown)
        run.phases.append(outcome)
        run.done.set()  # from here on, the page gets its result
        if len(run.phases) >= self.phases:
            run.complete.set()

    def _sample_s(self) -> float:
        """Return the sample period, so that a run has some hundreds of samples, estimated from the jobs' work."""
        capacity = max(self.experiment.capacity.memory_mb, 1)
        work = sum(
            stage.tasks * stage.demand.memory_mb * expected_s(stage.duration)
            for job in self.jobs
            for stage in job.stages
        )
        span = max(work / capacity, max((job.submit_s for job in self.jobs), default=0.0))
        return float(min(max(round(span / 1500, 1), 0.5), 600.0))

    def _document(self, result: SimResult, experiment: LoadedExperiment, name: str) -> dict[str, Any]:
        samples = result.samples
        chosen = _thin(len(samples.time_s))
        share = np.asarray(samples.share_fraction)
        capacity = np.maximum(np.asarray(samples.capacity_mb), 1)
        total = np.asarray(samples.counted)[:, [samples.queues.index(leaf) for leaf in experiment.leaves]].sum(axis=1)
        curves = {}
        for leaf in experiment.leaves:
            at = samples.queues.index(leaf)
            held = np.asarray(samples.allocated_mb)[:, at] / capacity
            owed = (share[at] * total - np.asarray(samples.counted)[:, at]) / 1024.0
            curves[leaf] = {
                "entitled": float(share[at]),
                "share": [round(float(value), 4) for value in held[chosen]],
                "deficit": [round(float(value), 1) for value in owed[chosen]],
            }
        return {
            "name": name,
            "time_s": [round(float(value), 2) for value in np.asarray(samples.time_s)[chosen]],
            "curves": curves,
            "stuck": result.stuck,
        }

    def export(
        self,
        sides: Sequence[Asked],
        moments: int = 60,
        on_phases: Callable[[str, int], None] = lambda policy, known: None,
    ) -> dict[str, Any]:
        """Return everything that a page needs without a server: both runs with their bands, and `explain` over time.

        ``on_phases`` is called about once a second with the policy that is being simulated and the number of its
        phases that are known.
        """
        found = []
        for asked in sides:
            document = self.whole(asked, partial(on_phases, asked.policy))
            run = self._want(asked)
            times = document["time_s"]
            at = [times[k] for k in _thin(len(times), moments).tolist()]
            views = [self._view(run, moment) for moment in at]
            words = {leaf: [explain(view, leaf) for view in views] for leaf in self.experiment.leaves}
            found.append({**document, "explain": {"time_s": at, "words": words}})
        return {"about": self.about(), "runs": found}


def _means(phases: Sequence[Outcome]) -> dict[str, Any]:
    """Return means over the phases so far, their smallest and largest (``band``), and each (``by_phase``).

    A page computes differences between two policies from ``by_phase``.
    """
    queues = sorted({queue for one in phases for queue in one.mean_s})
    by_queue = {queue: [one.mean_s.get(queue, np.nan) for one in phases] for queue in queues}
    whole = {name: [getattr(one, name) for one in phases] for name in _WHOLE}
    bands = {queue: Band.of([value for value in values if value == value]) for queue, values in by_queue.items()}
    of_whole = {name: Band.of(values) for name, values in whole.items()}
    return {
        "phases": len(phases),
        "mean_s": {queue: band.mean for queue, band in bands.items()},
        **{name: band.mean for name, band in of_whole.items()},
        "band": {
            "mean_s": {queue: band.list() for queue, band in bands.items()},
            **{name: band.list() for name, band in of_whole.items()},
        },
        "by_phase": {"mean_s": by_queue, **whole},
    }


def _thin(count: int, most: int = MOMENTS) -> Any:
    """Return indices of at most this many of `count` points, including the first and the last."""
    return np.unique(np.linspace(0, max(count - 1, 0), min(count, most)).astype(int))


def with_weights(experiment: LoadedExperiment, weights: Mapping[str, float]) -> LoadedExperiment:
    """Return the experiment with other entitlements."""
    if not weights:
        return experiment
    entitlements = {**experiment.weights, **weights}
    if simulated(experiment.spec.scheduler).entitlements_are_parts:
        # As `replay.played_queues` has them: a queue's part of the cluster follows when one above it is dragged.
        entitlements = cluster_parts(entitlements, 100.0) | {ROOT: entitlements[ROOT]}

    def walk(queues: Mapping[str, QueueSpec | None], above: str) -> dict[str, QueueSpec | None]:
        found: dict[str, QueueSpec | None] = {}
        for name, given in queues.items():
            queue, path = given or QueueSpec(), f"{above}.{name}"
            found[name] = queue.model_copy(
                update={
                    "weight": entitlements.get(path, queue.weight),
                    "children": walk(queue.children, path) if queue.children else None,
                }
            )
        return found

    spec = experiment.spec.model_copy(update={"queues": walk(experiment.spec.queues, ROOT)})
    file = experiment.scheduler_file
    if file is not None:
        file = file.with_weights(weights, experiment.capacity)
    return replace(experiment, spec=spec, weights=entitlements, scheduler_file=file)
