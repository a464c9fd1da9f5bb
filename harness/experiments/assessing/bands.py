"""The band of a prediction: the same trace under the same policies in many phases of heartbeats and control."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.experiments.assessing.playing import BUDGET_S, Candidate, player
from harness.experiments.assessing.verdict import Band
from harness.experiments.kind import without_seed
from harness.experiments.resolve import Variant, load_experiment
from harness.jobs.recorded import Trace

#: Figures of a whole run that have a band -> (attribute of `Outcome`, times).
WHOLE = {
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
) -> dict[str, Any]:
    """By variant (whatever its seed) the mean completion time by queue, and of all, over phases, seconds.

    Each queue has its ``mean_completion_s`` and ``band`` (smallest, largest); `WHOLE` have ``mean`` and ``band``.
    ``phases``: None, as many as the budget allows, `PHASES` at most. Applications count
    that ended when they were recorded; all of a trace without ends.
    """
    ended = frozenset(job.job for job in trace.jobs if job.finished_s is not None)
    ended = ended or frozenset(job.job for job in trace.jobs)
    ratio = load_experiment(str(experiment)).spec.actuation.max_ratio
    candidates = [
        Candidate(name, one.policy, one.mode, one.settings, one.period_s, ratio, one.scheduler)
        for name, one in {without_seed(variant): variant for variant in variants}.items()
    ]
    with player(str(experiment), ended, processes) as runs:
        runs.first(candidates[0])
        if phases is None:
            phases = runs.phases_within(BUDGET_S, len(candidates))
        played = runs.play(candidates, phases)
    found: dict[str, Any] = {}
    for one in played:
        queues = sorted(set.intersection(*(set(outcome.mean_s) for outcome in one.outcomes)))
        every = [outcome.all_s for outcome in one.outcomes if math.isfinite(outcome.all_s)]
        found[one.name] = {
            "phases": phases,
            "queues": {queue: _document(one.band(queue)) for queue in queues},
            "all": _document(Band.of(every)) if every else None,
            **{name: _whole([scale * getattr(run, of) for run in one.outcomes]) for name, (of, scale) in WHOLE.items()},
        }
    return found


def _whole(values: Sequence[float]) -> dict[str, Any]:
    band = Band.of(values)
    return {"mean": band.mean, "band": band.list()}


def _document(band: Band) -> dict[str, Any]:
    return {"mean_completion_s": band.mean, "band": band.list()}


def band_lines(found: Mapping[str, Any]) -> list[str]:
    """The same in words."""
    if not found:
        return []
    phases = next(iter(found.values()))["phases"]
    lines = [f"mean completion over {phases} phases of heartbeats and control (smallest to largest), seconds:"]
    queues = dict.fromkeys(queue for one in found.values() for queue in one["queues"])
    for queue in queues:
        shown = [f"{name} {_words(one['queues'][queue])}" for name, one in found.items() if queue in one["queues"]]
        lines.append(f"  {queue.removeprefix('root.')}: {', '.join(shown)}")
    lines.append("of the whole, in the same phases:")
    for name in WHOLE:
        words = name.removesuffix("_s").removesuffix("_percent").replace("_", " ")
        unit = " (%)" if name.endswith("_percent") else " (s)"
        lines.append(f"  {words}{unit}: {', '.join(f'{of} {_words(one[name])}' for of, one in found.items())}")
    return lines


def _words(figure: Mapping[str, Any]) -> str:
    low, high = figure["band"]
    mean = figure["mean"] if "mean" in figure else figure["mean_completion_s"]
    return f"{mean:.1f} ({low:.1f} to {high:.1f})"
