"""The band of a prediction: the same trace under the same policies in many phases of heartbeats and control."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path
from typing import Any

from harness.experiments.kind import Ended, without_seed
from harness.experiments.resolve import Variant, load_experiment
from harness.predict.playing import BUDGET_S, Player, Workers
from harness.predict.verdict import Band, Figure
from harness.results.comparison import banded, over_seeds
from harness.results.phases import each, listed, write_phases
from harness.results.runs import variant_place
from harness.results.summary import add_speedups
from harness.traces.recorded import Trace

#: Values of a whole run that have a band -> (attribute of `Outcome`, factor).
WHOLE: dict[str, tuple[Figure, int]] = {
    "makespan_s": ("makespan_s", 1),
    "sharing_loss_integral_s": ("loss", 1),
    "memory_used_percent": ("utilisation", 100),
}


def bands_of(
    trace: Trace,
    experiment: Path,
    variants: Sequence[Variant],
    *,
    phases: int | None = None,
    processes: int | None = None,
    workers: Workers | None = None,
) -> dict[str, Any]:
    """Return by variant (without seed) the mean completion times of queues and of all over phases, seconds.

    Each queue has its ``mean_completion_s`` and ``band`` (smallest, largest); `WHOLE` have ``mean`` and ``band``.
    ``by_phase``: the summary of each run, from which `band_lines` makes a table. ``phases``: None means as many as the
    budget allows, at most `PHASES`. Only applications that ended by themselves in the recording count; if the trace has
    no such ends, all count. ``workers``: other machines that make all runs but the first.
    """
    ended = frozenset(job.job for job in trace.jobs if job.ended_by_itself)
    ended = ended or frozenset(job.job for job in trace.jobs)
    ratio = load_experiment(str(experiment)).spec.actuation.max_ratio
    ordered = sorted(variants, key=lambda one: variant_place(one.policy, one.mode, without_seed(one)))
    seedless = {name: replace(one, name=name) for one in ordered for name in [without_seed(one)]}
    with Player(str(experiment), ended, ratio, processes, workers=workers) as runs:
        runs.first(next(iter(seedless.values())))
        if phases is None:
            phases = runs.phases_within(BUDGET_S, len(seedless))
        played = runs.play(list(seedless.values()), phases)
    found: dict[str, Any] = {}
    static = next((one.outcomes for one in played if one.policy == "static"), [])
    for one in played:
        queues = sorted(set.intersection(*(set(outcome.mean_s) for outcome in one.outcomes)))
        every = [outcome.all_s for outcome in one.outcomes if math.isfinite(outcome.all_s)]
        found[one.name] = {
            "phases": phases,
            "queues": {queue: one.band(queue).document("mean_completion_s") for queue in queues},
            "all": Band.of(every).document("mean_completion_s") if every else None,
            **{name: one.over(*figure).document() for name, figure in WHOLE.items()},
            "by_phase": [
                add_speedups(dict(run.summary), alone.summary if alone else None)
                for run, alone in zip_longest(one.outcomes, static)
            ],
        }
    return found


def document_of(found: Mapping[str, Any]) -> dict[str, Any]:
    """Return the bands for ``--json``.

    Replaces the phases' summaries by ``figures``: every number's mean and band (None: not known in every phase).
    """
    return {
        name: {key: value for key, value in one.items() if key != "by_phase"}
        | {"figures": each(listed(one["by_phase"]), lambda values: Band.of(values).document())}
        for name, one in found.items()
    }


def band_lines(found: Mapping[str, Any], reference: str | None = None) -> list[str]:
    """Return all values with their bands as a table. ``reference``: the variant with which marks compare."""
    if not found:
        return []
    phases = next(iter(found.values()))["phases"]
    head = f"means of {phases} phases of heartbeats and control (smallest to largest):"
    return [head, *banded([(name, one["by_phase"]) for name, one in found.items()], reference)]


def keep(found: Mapping[str, Any], ended: Sequence[Ended]) -> None:
    """Write each variant's values by phase into its run directories, for the report. Raises InputError."""
    for run in ended:
        if (band := found.get(without_seed(run.variant))) is not None:
            write_phases(run.path, band["by_phase"])


def means_of(found: Mapping[str, Any], ended: Sequence[Ended]) -> list[Ended]:
    """Return the first run of each variant, with the means over the phases as its summary."""
    first: dict[str, Ended] = {}
    for run in ended:
        first.setdefault(without_seed(run.variant), run)
    return [replace(run, summary=over_seeds(found[name]["by_phase"])) for name, run in first.items() if name in found]
