"""What the simulator says of the runs of `studies.steered` beside `assess`: times below the dues, and a run by itself.

`assess` predicts from the recorded run, whose tasks last as long as recorded. A run under the controller is simulated
here by its own recording, too, with its own tasks and starts. What then still differs does not come from a machine that
was slower.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any

from harness.experiments.resolve import Variant, load_experiment
from harness.predict.plan import below_due
from harness.predict.playing import PHASES, PhaseRunner, outcome_of, simulate_phase
from harness.predict.replay import write_experiment
from harness.traces.recorded import Trace, read_trace
from harness.yarn.capacity.properties import PREFIX, parse_configuration
from studies.planned_loads import LEAVES

#: `enforce` has its default period, and `record --follow --every 1` asks for the applications beside it, seconds.
PERIOD_S, ASKED_S = 5.0, 1.0


@dataclass(frozen=True, slots=True)
class Phase:
    """One simulated phase: mean completion and time below the due by queue, and the integral of the loss, seconds."""

    completion_s: Mapping[str, float]
    below_s: Mapping[str, float]
    loss_s: float


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
    trace: Trace, variants: Sequence[Variant], *, asked_s: float = 0.0, phases: int = PHASES
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
    phases
        Number of phases of heartbeats and control.

    Returns
    -------
    dict
        Name of the variant -> its phases.
    """
    ended = frozenset(job.job for job in trace.jobs if job.ended_by_itself)
    with tempfile.TemporaryDirectory() as work:
        experiment = write_experiment(trace, Path(work), sample_s=1.0, schedulers=("capacity",))
        with PhaseRunner(partial(_play, str(experiment), ended, asked_s)) as runs:
            runs.first(variants[0])
            found = runs.runs(variants, phases)
    return {variant.name: list(own) for variant, own in zip(variants, found, strict=True)}


def _play(experiment: str, ended: frozenset[str], asked_s: float, variant: Variant, seed: int) -> Phase:
    loaded = load_experiment(experiment)
    result = simulate_phase(experiment, variant, seed, asked_s=asked_s)
    outcome = outcome_of(result, loaded, variant, ended)
    leaves = [leaf for leaf in LEAVES if leaf in loaded.leaves]
    return Phase(outcome.mean_s, below_due(result, leaves, vcores=False), outcome.loss)


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


def compared(own: Path, best: str, real: Mapping[str, Mapping[str, Any]], steered: Sequence[str]) -> dict[str, Any]:
    """What was simulated of a load against its real runs.

    Parameters
    ----------
    own
        The folder of the load.
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
        bands, and the ``loss``.
    """

    def of(run: str, figure: str) -> dict[str, float]:
        return {leaf: real[run][leaf][figure] for leaf in LEAVES if leaf in real[run]}

    policy = named(best)
    predicted = simulated(ordered(own / "recorded"), [present(), policy])
    now, then = ([phase.below_s for phase in predicted[one]] for one in (present().name, policy.name))
    below = {run: held(then if run in steered else now, of(run, "below_due")) for run in real}
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
    return {"below": below, "below_by_name": by_name, "own": itself}
