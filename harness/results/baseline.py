"""Baselines: recorded results of runs, the runs they come from, and bounds for the results of later runs.

There are two kinds of bounds. A simulated run with a recorded seed must equal the recorded values: the same seed gives
the same values, so any difference is a change of the code. Any other run is compared with bounds from the spread of the
recorded runs. docs/how-to/check-for-regressions.md explains their computation.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BeforeValidator, TypeAdapter

from harness.base.errors import InputError, RunInvalid, RunTimedOut
from harness.base.files import json_text, read_json
from harness.base.outputs import write_output
from harness.results.catalogue import BENCH, Key, in_order, key_of
from harness.results.runs import RunRecord, without_copies

FORMAT = 1
#: An unchanged run exceeds some bound with at most this probability, over all metrics. It is a tenth of the documented
#: 1 %, because the metrics have heavier tails than the log-normal model (measured).
FALSE_ALARMS = 0.001
#: With fewer runs their spread is too uncertain: only exact values, counts and metrics with a margin are checked.
FEWEST = 5
#: A difference below this fraction of the recorded median is never an alarm of a bound by spread.
LEAST_PART = 0.01
#: `yarnfair bench` gives ratios on a shared machine, and few are recorded, so they get a margin.
BENCH_MARGIN = 0.15

Scale = Literal["log", "linear"]
#: A key as in a file: `Key.text`.
Named = Annotated[Key, BeforeValidator(key_of)]


@dataclass(frozen=True, slots=True)
class Spread:
    """One metric over the recorded runs; ``scale`` tells whether ``centre`` and ``deviation`` are of its logarithm."""

    n: int
    median: float
    least: float
    greatest: float
    scale: Scale
    centre: float
    deviation: float
    #: Values of the recorded runs in order; () in files that were recorded without them.
    values: tuple[float, ...] = ()

    @property
    def constant(self) -> bool:
        """Return whether all recorded runs have the same value."""
        return self.least == self.greatest


@dataclass(frozen=True, slots=True)
class Entry:
    """The record of one variant of one experiment on one backend."""

    experiment: str
    variant: str
    backend: str
    hashes: tuple[str, ...]
    runs: tuple[Mapping[str, Any], ...]
    #: seed -> metric -> value; empty if nothing is deterministic.
    exact: Mapping[str, Mapping[Named, float]]
    spread: Mapping[Named, Spread]
    #: Allowed fraction of the recorded median in place of the bound by spread; None: the spread decides.
    margin: float | None

    @property
    def name(self) -> tuple[str, str, str]:
        """The experiment, variant and backend, which identify the entry."""
        return (self.experiment, self.variant, self.backend)


@dataclass(frozen=True, slots=True)
class Baseline:
    """A baseline file."""

    path: str
    entries: Sequence[Entry]

    def entry(self, run: RunRecord) -> Entry | None:
        """Return the entry of a run's experiment, variant and backend; None if there is none."""
        name = (run.experiment, run.variant, run.backend)
        return next((entry for entry in self.entries if entry.name == name), None)


def held_by_spread(key: Key) -> bool:
    """Return whether a metric has a bound in runs that are not exactly repeatable.

    Such a metric has a better direction and is neither a count nor a time of the machine, except the ratios of
    ``yarnfair bench``.
    """
    metric = key.metric
    of_bench = key.key.partition(".")[0] in BENCH
    return metric.better != "neither" and not metric.count and (metric.deterministic or of_bench)


def spread_of(values: Sequence[float]) -> Spread:
    """Return centre and deviation, on a logarithmic scale if all values have the same sign."""
    found = np.asarray(values, dtype=np.float64)
    logarithmic = bool((found > 0).all() or (found < 0).all())
    scaled = np.log(np.abs(found)) if logarithmic else found
    return Spread(
        n=len(found),
        median=float(np.median(found)),
        least=float(found.min()),
        greatest=float(found.max()),
        scale="log" if logarithmic else "linear",
        centre=float(scaled.mean()),
        deviation=float(scaled.std(ddof=1)) if len(found) > 1 else 0.0,
        values=tuple(float(value) for value in values),
    )


def floor(key: Key, spread: Spread) -> float:
    """Return the smallest relevant distance from the recorded values, in the metric's unit."""
    size = abs(spread.median)
    matters = key.metric.matters
    # The relevant difference is absolute, but at most a twentieth of a small value.
    return max(LEAST_PART * size, min(matters, 0.05 * size) if size else matters)


def bound(key: Key, spread: Spread, *, metrics: int, runs: int = 1, margin: float | None = None) -> float | None:
    """Return the worst value that counts as unchanged, for the mean of `runs` runs; None if there is no bound.

    The bound is a prediction bound of Student's t on the spread's scale, at FALSE_ALARMS / `metrics` on the worse side.
    It lies beyond the worst recorded value by at least the recorded range / sqrt(`runs`), and by at least `floor`. With
    a margin, the bound lies beyond the worst recorded value by that fraction of the median instead.
    """
    if key.metric.better == "neither":
        return None
    worse = 1.0 if key.metric.better == "lower" else -1.0
    extreme = spread.greatest if worse > 0 else spread.least
    if margin is not None:
        return extreme + worse * max(margin * abs(spread.median), key.metric.matters if not spread.median else 0.0)
    if spread.n < FEWEST:
        return None
    from scipy.stats import t

    distance = float(t.isf(FALSE_ALARMS / max(1, metrics), spread.n - 1))
    reach = distance * spread.deviation * math.sqrt(1 / spread.n + 1 / runs)
    if spread.scale == "log":
        sign = 1.0 if spread.median > 0 else -1.0
        # For negative values (a loss), the worse direction is the larger magnitude.
        by_spread = sign * math.exp(min(700.0, spread.centre + worse * sign * reach))
    else:
        by_spread = spread.centre + worse * reach
    beyond = extreme + worse * max((spread.greatest - spread.least) / math.sqrt(runs), floor(key, spread))
    return max(by_spread, beyond) if worse > 0 else min(by_spread, beyond)


def detects(entry: Entry, *, metrics: int, runs: int = 1, wanted: float = 0.2, most: int = 200) -> str | None:
    """Describe the smallest slow-down that a check detects given the recorded spread, and how many runs improve it.

    Parameters
    ----------
    metrics
        Number of metrics that are checked at once.
    runs
        Number of runs that are checked together.
    wanted
        The slow-down that should be detected, as a fraction.
    most
        Maximum number of recorded runs to advise.

    Returns
    -------
    str | None
        One clause; None if a margin decides, no metric has a bound, or the bound is close enough.
    """
    held = in_order(key for key in entry.spread if held_by_spread(key))
    key = next((one for one in held if one.key == "makespan_s"), held[0] if held else None)
    if entry.margin is not None or key is None:
        return None
    spread = entry.spread[key]

    def allows(n: int) -> float | None:
        limit = bound(key, replace(spread, n=n), metrics=metrics, runs=runs)
        return None if limit is None or not spread.median else abs(limit / spread.median - 1)

    now = allows(spread.n)
    if now is None or now <= wanted:
        return None
    enough = next((n for n in range(spread.n + 1, most + 1) if (allows(n) or 0.0) <= wanted), None)
    advice = (
        f"record {enough - spread.n} more for {100 * wanted:.0f} %"
        if enough is not None
        else "it varies too much for less"
    )
    return f"{spread.n} recorded runs detect a change of {key.text()} above {100 * now:.0f} %; {advice}"


def record(runs: Sequence[RunRecord], *, margin: float | None = None) -> list[Entry]:
    """Return entries of runs, one for each experiment, variant and backend, in the order of the runs.

    Raises
    ------
    RunInvalid, RunTimedOut
        A run is not valid.
    InputError
        Two simulated runs of one seed differ, two different experiments have the same name, or a run is a copy of
        another one, which would make the spread too small.
    """
    runs, copies = without_copies(runs)
    if copies:
        raise InputError(
            f"{copies[0].words}, so that it is no other run",
            where=str(copies[0].run.path),
            hint="record each run once: leave the copies out"
            + (f" ({len(copies)} of the given runs)" if len(copies) > 1 else ""),
        )
    groups: dict[tuple[str, str, str], list[RunRecord]] = {}
    for run in runs:
        bad = run.invalid()
        if bad is not None:
            error = RunTimedOut if bad.exit_code == 5 else RunInvalid
            raise error(bad.reason, where=str(run.path), hint="record baselines from runs that ended well")
        groups.setdefault((run.experiment, run.variant, run.backend), []).append(run)
    return [_entry(name, own, margin) for name, own in groups.items()]


def _entry(name: tuple[str, str, str], runs: Sequence[RunRecord], margin: float | None) -> Entry:
    hashes = tuple(dict.fromkeys(run.hash for run in runs if run.hash))
    if len(hashes) > 1:
        raise InputError(
            f"runs of {name[0]}, {name[1]} are of {len(hashes)} different experiments of that name",
            where=str(runs[0].path),
            hint="record them from one version of the experiment",
        )
    exact: dict[str, dict[Key, float]] = {}
    for run in runs:
        if run.deterministic and run.seed is not None:
            values = {key: value for key, value in run.values.items() if key.metric.deterministic}
            known = exact.setdefault(str(run.seed), values)
            if known != values:
                differing = next(key for key in {**known, **values} if known.get(key) != values.get(key))
                raise InputError(
                    f"two runs of seed {run.seed} differ in {differing.text()}",
                    where=str(run.path),
                    hint="record runs of one version only",
                )
    by_key: dict[Key, list[float]] = {}
    for run in runs:
        for key, value in run.values.items():
            by_key.setdefault(key, []).append(value)
    # A metric that some runs lack has no bound, because whether a run has it depends on chance.
    whole = {key: values for key, values in by_key.items() if len(values) == len(runs)}
    if margin is None and name[2] == "bench":
        margin = BENCH_MARGIN
    return Entry(
        *name,
        hashes=hashes,
        runs=tuple(_provenance(run) for run in runs),
        exact=exact,
        spread={key: spread_of(values) for key, values in whole.items() if key.metric.count or held_by_spread(key)},
        margin=margin,
    )


def _provenance(run: RunRecord) -> dict[str, Any]:
    """Return a run's provenance: its directory's name (not its location), seed, time, versions, machine."""
    found: dict[str, Any] = {"run": f"{run.path.resolve().parent.name}/{run.path.name}", "seed": run.seed}
    if run.repeat != 1:
        found["repeat"] = run.repeat
    for key in ("start", "versions", "machine", "commits", "version", "policy_code"):
        if run.info.get(key):
            found[key] = run.info[key]
    return found


# --- the file ----------------------------------------------------------------------------------------------------


def _why(entry: Entry, metrics: int) -> str:
    parts = []
    if entry.exact:
        parts.append(
            "runs of the recorded seeds are held exactly, because the simulator gives the same figures for a seed"
        )
    n = len(entry.runs)
    if entry.margin is not None:
        parts.append(
            f"others may be worse than the worst recorded value by {100 * entry.margin:.0f} % of the median, as given"
        )
    elif n < FEWEST:
        parts.append(f"{n} run(s) do not show a spread (at least {FEWEST} do): of others only counts are held")
    else:
        parts.append(
            f"others are held by the spread of {n} runs: Student's t with {n - 1} degrees of freedom at "
            f"{FALSE_ALARMS:g}/{metrics} on the worse side, at least the range beyond the worst value; several at once "
            "by a permutation test of all metrics together"
        )
    return "; ".join(parts)


def document(entries: Sequence[Entry], command: str) -> dict[str, Any]:
    """Return the baseline as written."""
    return {
        "yarnfair_baseline": FORMAT,
        "command": command,
        "false_alarms": FALSE_ALARMS,
        "entries": [_entry_document(entry) for entry in entries],
    }


def _entry_document(entry: Entry) -> dict[str, Any]:
    held = [key for key in entry.spread if held_by_spread(key)]
    bounds = {}
    for key, spread in entry.spread.items():
        limit = None
        if held_by_spread(key):
            limit = bound(key, spread, metrics=len(held), margin=entry.margin)
        bounds[key.text()] = {
            "unit": key.metric.unit,
            "better": key.metric.better,
            **asdict(spread),
            # Counts are compared exactly, so they have no one-sided bound.
            "bound": limit,
            "allows": None if limit is None or not spread.median else round(abs(limit / spread.median - 1), 4),
        }
    return {
        "experiment": entry.experiment,
        "variant": entry.variant,
        "backend": entry.backend,
        "hashes": list(entry.hashes),
        "why": _why(entry, len(held)),
        "margin": entry.margin,
        "runs": [dict(run) for run in entry.runs],
        "bounds": bounds,
        "exact": {
            seed: {key.text(): value for key, value in values.items()} for seed, values in sorted(entry.exact.items())
        },
    }


def write_baseline(path: Path, entries: Sequence[Entry], command: str) -> None:
    """Write a baseline file atomically.

    Raises InputError if the disk refuses.
    """
    write_output(path, json_text(document(entries, command)), hint="choose another -o FILE")


def read_baseline(path: Path) -> Baseline:
    """Read a file of `write_baseline`.

    Raises InputError if it is something else, or damaged.
    """
    record = "record one: yarnfair baseline RUN... -o FILE"
    found = read_json(path, hint=record)
    if found.get("yarnfair_baseline") != FORMAT:
        raise InputError(f"not a baseline of format {FORMAT}", where=str(path), hint=record)
    try:
        entries = _entries().validate_python([{**entry, "spread": entry["bounds"]} for entry in found["entries"]])
        for one in (one for entry in entries for one in entry.spread.values()):
            if len(one.values) not in (0, one.n):
                raise ValueError(f"{len(one.values)} values of {one.n} runs")
        for entry in entries:
            _require_finite(entry)
    except (KeyError, TypeError, ValueError) as error:
        what = f"a damaged baseline ({type(error).__name__}: {' '.join(str(error).split())[:80]})"
        raise InputError(what, where=str(path), hint="record it anew") from None
    return Baseline(str(path), entries)


def _require_finite(entry: Entry) -> None:
    """Raise ValueError for a figure that is NaN or infinite, since comparisons with it would never raise an alarm."""
    for key, spread in entry.spread.items():
        figures = (spread.median, spread.least, spread.greatest, spread.centre, spread.deviation, *spread.values)
        if not all(map(math.isfinite, figures)):
            raise ValueError(f"{entry.variant}: {key.text()} is not a number")
    for seed, values in entry.exact.items():
        for key, value in values.items():
            if not math.isfinite(value):
                raise ValueError(f"{entry.variant}, seed {seed}: {key.text()} is not a number")
    if entry.margin is not None and not math.isfinite(entry.margin):
        raise ValueError(f"{entry.variant}: its margin is not a number")


@cache
def _entries() -> TypeAdapter[list[Entry]]:
    return TypeAdapter(list[Entry])


def merged(entries: Iterable[Entry], keep: Sequence[Entry]) -> list[Entry]:
    """Return the entries of `keep` that `entries` do not replace, followed by `entries`."""
    new = list(entries)
    names = {entry.name for entry in new}
    return [*(entry for entry in keep if entry.name not in names), *new]
