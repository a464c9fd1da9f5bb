"""Simulations of the runs of `studies.steered` besides those of `assess`.

They give the time that each queue is below its due, and a simulation of each run under the controller from that run's
own recording. `assess` predicts from the recorded run, and so with the task lengths of that run. With a run's own task
lengths and start times, a remaining difference is not due to a slower machine.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harness.base.files import read_json
from harness.experiments.resolve import Variant, load_experiment
from harness.predict.plan import below_due
from harness.predict.playing import PHASES, PhaseRunner, outcome_of, simulate_phase
from harness.predict.replay import write_experiment
from harness.results.metrics import fairness_degree, integral, sharing_benefit_and_loss
from harness.traces.recorded import Trace, read_trace
from harness.yarn.capacity.properties import PREFIX, parse_configuration
from studies.planned_loads import LEAVES, Load

#: A queue's fairness degree is that of all it ever got, so that at its beginning a second without a container is a loss
#: of a second. A run is settled once every queue has had applications for so long, seconds.
SETTLED_S = 20.0
#: `enforce` has its default period, and `record --follow --every 1` asks for the applications beside it, seconds.
PERIOD_S, ASKED_S = 5.0, 1.0


@dataclass(frozen=True, slots=True)
class Phase:
    """One simulated phase: mean completion and time below the due by queue, and the integral of the loss, seconds.

    ``settled_loss_s``: the part of the loss after the beginning (`settled_s`).
    """

    completion_s: Mapping[str, float]
    below_s: Mapping[str, float]
    loss_s: float
    settled_loss_s: float


@dataclass(frozen=True, slots=True)
class Seen:
    """What the leaves held and wanted, MB, at each time; arrays of times, and of times and leaves."""

    at_s: NDArray[np.float64]
    used_mb: NDArray[np.float64]
    demand_mb: NDArray[np.float64]
    capacity_mb: NDArray[np.float64]

    @classmethod
    def of_samples(cls, samples: Sequence[Mapping[str, Any]]) -> Seen:
        """What `BelowDue` has polled; seconds from the first poll."""
        at_s = np.array([one["at_s"] for one in samples])
        used, wanted = (np.array([one[name] for one in samples], dtype=float) for name in ("used_mb", "demand_mb"))
        return cls(at_s - at_s[0], used, wanted, np.array([one["capacity_mb"] for one in samples], dtype=float))

    def loss(self, shares: Sequence[float], after_s: float = 0.0) -> float:
        """The integral of the sharing loss degree (LTYARN eq. 5) from this time on, seconds."""
        due = np.minimum(self.demand_mb, np.outer(self.capacity_mb, shares))
        steps = np.diff(self.at_s)[:, None]
        # What a poll shows stands until the next one.
        got, owed = (
            np.vstack([np.zeros((1, len(shares))), np.cumsum(one[:-1] * steps, axis=0)]) for one in (self.used_mb, due)
        )
        loss = np.abs(sharing_benefit_and_loss(fairness_degree(got, owed))[1])
        late = self.at_s >= after_s
        return integral(self.at_s[late], loss[late]) if late.sum() > 1 else 0.0


def settled_s(load: Load) -> float:
    """When every queue of a load has had applications for `SETTLED_S`, seconds from the first one."""
    starts = [one.start_s for one in load.jobs] + ([load.spark.start_s] if load.spark is not None else [])
    return max(starts) - min(starts) + SETTLED_S


def present() -> Variant:
    """The Capacity Scheduler without a controller."""
    return Variant("capacity", "capacity", "inside", {}, 0, PERIOD_S, scheduler="capacity")


def named(name: str) -> Variant:
    """A candidate of `assess` by its name, such as ``ltrf@outside,horizon_s=80``."""
    called, *settings = name.split(",")
    own = {key: float(value) for key, _, value in (one.partition("=") for one in settings)}
    return Variant(name, called.removesuffix("@outside"), "outside", own, 0, PERIOD_S, scheduler="capacity")


def ordered(run: Path) -> Trace:
    """The recording of a run. If it has no order of queues (older ones have none), it has that of the configuration."""
    trace = read_trace(run / "recording.jsonl")
    file = run / "capacity-scheduler.xml"
    values = parse_configuration(file.read_bytes(), source=str(file)).values
    order = {key.removeprefix(PREFIX): text for key, text in values.items() if key.endswith(".queues")}
    capacity = {**order, **(trace.header.capacity or {})}
    return replace(trace, header=trace.header.model_copy(update={"capacity": capacity}))


def simulated(
    trace: Trace,
    variants: Sequence[Variant],
    *,
    asked_s: float = 0.0,
    settled: float = 0.0,
    phases: int = PHASES,
) -> dict[str, list[Phase]]:
    """Simulate a trace under each variant in many phases.

    Parameters
    ----------
    trace
        A recording of the Capacity Scheduler.
    variants
        What decides.
    asked_s
        Period at which others ask the ResourceManager for the applications (`simulate_phase`); 0 as `assess` has it.
    settled
        Seconds from the first submission to the time from which `Phase.settled_loss_s` counts.
    phases
        Number of phases of heartbeats and control.

    Returns
    -------
    dict
        Name of the variant -> its phases.
    """
    settled += min(job.submit_s for job in trace.jobs)
    ended = frozenset(job.job for job in trace.jobs if job.ended_by_itself)
    with tempfile.TemporaryDirectory() as work:
        experiment = write_experiment(trace, Path(work), sample_s=1.0, schedulers=("capacity",))
        with PhaseRunner(partial(_play, str(experiment), ended, asked_s, settled)) as runs:
            runs.first(variants[0])
            found = runs.runs(variants, phases)
    return {variant.name: list(own) for variant, own in zip(variants, found, strict=True)}


def _play(experiment: str, ended: frozenset[str], asked_s: float, settled: float, variant: Variant, seed: int) -> Phase:
    loaded = load_experiment(experiment)
    result = simulate_phase(experiment, variant, seed, asked_s=asked_s)
    outcome = outcome_of(result, loaded, variant, ended)
    leaves = [leaf for leaf in LEAVES if leaf in loaded.leaves]
    samples = result.samples
    columns = [samples.queues.index(leaf) for leaf in leaves]
    seen = Seen(
        np.asarray(samples.time_s, dtype=float),
        np.asarray(samples.allocated_mb, dtype=float)[:, columns],
        np.asarray(samples.demand_mb, dtype=float)[:, columns],
        np.asarray(samples.capacity_mb, dtype=float),
    )
    late_s = seen.loss([float(samples.share_fraction[column]) for column in columns], settled)
    return Phase(outcome.mean_s, below_due(result, leaves, vcores=False), outcome.loss, late_s)


def over(values: Sequence[float]) -> dict[str, Any]:
    """The mean of the phases, and the smallest and the largest."""
    return {"mean": round(fmean(values), 2), "band": [round(min(values), 2), round(max(values), 2)]}


def held(simulated_s: Sequence[Mapping[str, float]], took_s: Mapping[str, float]) -> dict[str, Any]:
    """By queue, a figure of a real run against that of each phase."""
    found = {}
    for queue, real_s in took_s.items():
        told = over([phase[queue] for phase in simulated_s])
        low, high = told["band"]
        found[queue] = {**told, "real": round(real_s, 2), "in_band": low <= round(real_s, 2) <= high}
    return found


def compared(
    own: Path, load: Load, best: str, real: Mapping[str, Mapping[str, Any]], steered: Sequence[str]
) -> dict[str, Any]:
    """What was simulated of a load against its real runs.

    Parameters
    ----------
    own
        The folder of the load.
    load
        The load itself.
    best
        The policy that ran.
    real
        By run what was measured (`real_figures`).
    steered
        The runs under the controller.

    Returns
    -------
    dict
        ``below``: by run and queue the seconds below the due, predicted from the recorded run. ``below_by_name``: those
        of the recorded run if its queues are taken by name, as its recording has them; None: it has their order.
        ``own``: of each run under the controller, by itself: the queues' ``completion``, how many are ``inside`` their
        bands, and the ``loss``. ``settled``: by run the loss after the beginning, predicted from the recorded run.
    """

    def of(run: str, figure: str) -> dict[str, float]:
        return {leaf: real[run][leaf][figure] for leaf in LEAVES if leaf in real[run]}

    policy = named(best)
    predicted = simulated(ordered(own / "recorded"), [present(), policy], settled=settled_s(load))
    name = {run: policy.name if run in steered else present().name for run in real}
    below = {run: held([phase.below_s for phase in predicted[name[run]]], of(run, "below_due")) for run in real}
    settled = {}
    for run in real:
        seen = Seen.of_samples(read_json(own / run / "samples.json")["samples"])
        shares = load.shares("before")
        real_s = seen.loss([shares[leaf] for leaf in LEAVES], settled_s(load))
        settled[run] = held([{"loss": phase.settled_loss_s} for phase in predicted[name[run]]], {"loss": real_s})[
            "loss"
        ]
    by_name = None
    trace = read_trace(own / "recorded" / "recording.jsonl")
    if not any(key.endswith(".queues") for key in trace.header.capacity or {}):
        phases = simulated(trace, [present()])[present().name]
        by_name = held([phase.below_s for phase in phases], of("recorded", "below_due"))
    itself = {}
    for run in steered:
        phases = simulated(ordered(own / run), [policy], asked_s=ASKED_S)[policy.name]
        completion = held([phase.completion_s for phase in phases], of(run, "completion"))
        inside = sum(one["in_band"] for one in completion.values())
        itself[run] = {"completion": completion, "inside": inside, "loss": over([phase.loss_s for phase in phases])}
    return {"below": below, "below_by_name": by_name, "own": itself, "settled": settled}
