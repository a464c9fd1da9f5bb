"""Compares runs with recorded bounds, metric by metric (`check`), and a history of runs with itself (`check_history`).

Also applies a user's acknowledgements (harness.results.acknowledge). harness.cli.check prints and sets exit codes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from statistics import fmean
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from harness.base.errors import InputError
from harness.base.words import percent_text
from harness.results.acknowledge import Acknowledgement, find
from harness.results.baseline import FEWEST, Baseline, Entry, Spread, bound, detects, floor, held_by_spread
from harness.results.catalogue import Key, in_order
from harness.results.compare import amount_text, number_text
from harness.results.history import History, histories
from harness.results.metric import Metric
from harness.results.runs import RunRecord, without_copies
from harness.results.together import Of, together

Verdict = Literal["fine", "better", "worse", "changed", "missing", "not judged", "acknowledged"]
Levels = NDArray[np.float64]
#: The check of a policy without a run among the given ones.
NO_RUN = Key("run")


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """The result for one metric of one run (or of several, by their mean)."""

    experiment: str
    variant: str
    backend: str
    run: str
    key: Key
    value: float | None
    recorded: float | None
    bound: float | None
    how: str
    verdict: Verdict
    words: str

    @property
    def alarm(self) -> bool:
        """Return whether the result needs attention: worse, changed or missing."""
        return self.verdict in ("worse", "changed", "missing")

    def document(self) -> dict[str, Any]:
        """Return the result as JSON."""
        own = {one.name: getattr(self, one.name) for one in fields(self) if one.name != "key"}
        return {**self.key.document(), **own}


@dataclass(slots=True)
class Checked:
    """The outcome of a check."""

    held: list[Held] = field(default_factory=list)
    #: Invalid runs: (run, exit code, reason).
    invalid: list[tuple[str, int, str]] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)

    @property
    def alarms(self) -> list[Held]:
        """The results that need attention."""
        return [one for one in self.held if one.alarm]


def _moved(metric: Metric, value: float, recorded: float) -> str:
    """Describe a value relative to the recorded one."""
    part = f" ({percent_text(value / recorded - 1, 2)})" if recorded > 0 else ""
    digits = metric.digits
    while digits < 12 and number_text(value, digits) == number_text(recorded, digits):
        digits += 1
    return f"{amount_text(value, metric, digits)} against {amount_text(recorded, metric, digits)} recorded{part}"


def check(runs: Sequence[RunRecord], baseline: Baseline, *, folder: bool = False, strict: bool = False) -> Checked:
    """Check every run against its entry of the baseline.

    A copy of another run is not judged. Where the backend is deterministic, runs with a recorded seed must equal the
    recorded values. The other runs of an entry are compared together: by one test of all metrics (`together`) if there
    are enough runs, otherwise by bounds from the spread of the recorded runs. If several runs or a folder are given,
    entries of the same experiments and backends without a run are reported as missing.

    Parameters
    ----------
    runs
        The runs.
    baseline
        The baseline with the recorded values.
    folder
        Whether a folder of runs was given, which stands for all that is recorded even if one run is left in it.
    strict
        Whether recorded entries of an experiment and backend of which no run was given are listed, as not judged. This
        only matters if several runs or a folder are given.

    Returns
    -------
    Checked
        Every metric with its verdict.

    Raises
    ------
    InputError
        The baseline has an entry for none of the runs.
    """
    found = Checked()
    groups: dict[tuple[str, str, str], list[RunRecord]] = {}
    entries: dict[tuple[str, str, str], Entry] = {}
    unknown = []
    given = set()
    seeds: dict[tuple[str, str, str], set[str]] = {}
    several = len(runs) > 1
    runs, copies = without_copies(runs)
    for run in runs:
        bad = run.invalid()
        entry = baseline.entry(run)
        if entry is not None:
            given.add(entry.name)
            seeds.setdefault(entry.name, set()).add(str(run.seed))
        if bad is not None:
            found.invalid.append((str(run.path), bad.exit_code, bad.reason))
            continue
        if entry is None:
            unknown.append(run)
            continue
        entries[entry.name] = entry
        if entry.hashes and run.hash and run.hash not in entry.hashes:
            found.remarks.append(
                f"{run.path}: the experiment is not the one that was recorded (hash {run.hash[:12]}, recorded "
                f"{entry.hashes[0][:12]}); what follows may come from that"
            )
        found.remarks += _other_software(run, entry)
        if str(run.seed) in entry.exact and run.deterministic:
            found.held += _exactly(run, entry)
        else:
            groups.setdefault(entry.name, []).append(run)
    if unknown and not entries and not found.invalid:
        known = "; ".join(f"{e.experiment}, {e.variant}, {e.backend}" for e in baseline.entries[:6])
        run = unknown[0]
        raise InputError(
            f"the baseline has nothing of {run.experiment}, {run.variant}, {run.backend} (it has {known})",
            where=baseline.path,
            hint="record it: yarnfair baseline RUN... -o FILE",
        )
    found.remarks += [f"{run.path}: nothing is recorded of {run.experiment}, {run.variant}" for run in unknown]
    found.held += [
        _without_value(
            (run.experiment, run.variant, run.backend), str(run.path), "not judged", "nothing is recorded of it"
        )
        for run in unknown
    ]
    for copy in copies:
        run_name = (copy.run.experiment, copy.run.variant, copy.run.backend)
        found.remarks.append(copy.remark)
        found.held.append(_without_value(run_name, str(copy.run.path), "not judged", copy.words))
    for entry in baseline.entries:
        missing = sorted(set(entry.exact) - seeds.get(entry.name, set(entry.exact)), key=lambda seed: (len(seed), seed))
        if missing:
            listed = ", ".join(missing[:10]) + (f" and {len(missing) - 10} more" if len(missing) > 10 else "")
            words = f"recorded with seed {listed}, of which no run was given"
            found.remarks.append(f"{entry.experiment}, {entry.variant}: {words}")
            found.held.append(_without_value(entry.name, baseline.path, "not judged", words))
    total = max(1, sum(len(_bounded(entries[name])) for name in groups))
    tested = together([(entries[name], own) for name, own in groups.items()])
    for name, own in groups.items():
        found.held += _by_spread(own, entries[name], total, tested)
        if not any((name, key) in tested for key in entries[name].spread):
            power = detects(entries[name], metrics=total, runs=len(own))
            found.remarks += [f"{name[0]}, {name[1]}: {power}"] if power else []
    if folder or several:
        # A policy that never began has no directory: of several runs all that is recorded beside them is wanted.
        places = {(run.experiment, run.backend) for run in runs}
        words = "recorded, but no run of it was given"
        found.held += [
            _without_value(entry.name, baseline.path, "missing", words)
            for entry in baseline.entries
            if entry.name not in given and (entry.experiment, entry.backend) in places
        ]
        elsewhere = [entry for entry in baseline.entries if (entry.experiment, entry.backend) not in places]
        for entry in elsewhere if strict else ():
            found.remarks.append(f"{entry.experiment}, {entry.variant}, {entry.backend}: {words}")
            found.held.append(_without_value(entry.name, baseline.path, "not judged", words))
    return found


def _without_value(name: tuple[str, str, str], where: str, verdict: Verdict, words: str) -> Held:
    """Return the result for a policy as a whole: no run of it was given, or nothing is recorded of it."""
    return _held(name, where, NO_RUN, _Judged(None, None, None, "-", verdict, words))


def _held(name: tuple[str, str, str], run: str, key: Key, judged: _Judged) -> Held:
    experiment, variant, backend = name
    return Held(
        experiment=experiment,
        variant=variant,
        backend=backend,
        run=run,
        key=key,
        value=judged.value,
        recorded=judged.recorded,
        bound=judged.bound,
        how=judged.how,
        verdict=judged.verdict,
        words=judged.words,
    )


def _other_software(run: RunRecord, entry: Entry) -> list[str]:
    """Describe software that differs between a run and the recorded ones: a policy's source, or versions."""
    found = []
    code, recorded = run.info.get("policy_code"), [one.get("policy_code") for one in entry.runs]
    if any(recorded) and code not in recorded:
        found.append(f"{run.path}: the policy's source has changed since it was recorded")
    own = run.info.get("versions")
    for name, version in own.items() if isinstance(own, Mapping) else ():
        known = {str(one["versions"].get(name)) for one in entry.runs if isinstance(one.get("versions"), Mapping)}
        if known and str(version) not in known:
            found.append(f"{run.path}: of {name} {version}, recorded by {name} {', '.join(sorted(known))}")
    return found


@dataclass(frozen=True, slots=True)
class _Judged:
    """The outcome for one metric, without the names of run and metric. The fields are those of `Held`."""

    value: float | None
    recorded: float | None
    bound: float | None
    how: str
    verdict: Verdict
    words: str


def _exactly(run: RunRecord, entry: Entry) -> list[Held]:
    recorded = entry.exact[str(run.seed)]
    how = f"exactly, seed {run.seed}"
    out = []
    for key in in_order(recorded):
        known = recorded[key]
        value = run.values.get(key)
        verdict: Verdict = "fine"
        words = "as recorded"
        if value is None:
            verdict, words = "not judged" if key.metric.other_run else "missing", "the run does not have it"
        elif value != known:
            worse = key.metric.is_worse(value, known)
            tail = "" if worse is None else ", worse" if worse else ", better"
            words = f"{_moved(key.metric, value, known)}{tail}; held exactly"
            verdict = "worse" if worse else "changed"
        out.append(_held(entry.name, str(run.path), key, _Judged(value, known, known, how, verdict, words)))
    return out


def _bounded(entry: Entry) -> list[Key]:
    return [key for key in entry.spread if held_by_spread(key)]


def _mean(values: Sequence[float], spread: Spread) -> float:
    """Return the mean on the spread's scale."""
    if len(values) == 1:
        return values[0]
    if spread.scale == "log" and all(value * spread.median > 0 for value in values):
        return math.copysign(math.exp(fmean(math.log(abs(value)) for value in values)), spread.median)
    return fmean(values)


def _by_spread(
    runs: Sequence[RunRecord], entry: Entry, metrics: int, tested: Mapping[Of, tuple[float, bool]]
) -> list[Held]:
    name = str(runs[0].path) if len(runs) == 1 else f"{len(runs)} runs"
    out = []
    for key in in_order(entry.spread):
        spread = entry.spread[key]
        values = [run.values[key] for run in runs if key in run.values]
        if len(values) < len(runs):
            words = "not every run has it" if values else "the run does not have it"
            lacking: Verdict = "not judged" if key.metric.other_run else "missing"
            judged = _Judged(None, spread.median, None, "-", lacking, words)
        elif key.metric.count:
            judged = _count(key, spread, values)
        elif (entry.name, key) in tested:
            judged = _in_the_test(key, spread, values, *tested[entry.name, key])
        else:
            judged = _within(key, spread, values, entry.margin, metrics)
        out.append(_held(entry.name, name, key, judged))
    return out


def _within(key: Key, spread: Spread, values: Sequence[float], margin: float | None, metrics: int) -> _Judged:
    """Compare a metric with its bound."""
    value = _mean(values, spread)
    limit = bound(key, spread, metrics=metrics, runs=len(values), margin=margin)
    how = f"margin of {percent_text(margin, 0, signed=False)}" if margin is not None else f"spread of {spread.n} runs"
    if limit is None:
        words = f"{spread.n} recorded run(s) show no spread; at least {FEWEST} do"
        return _Judged(value, spread.median, None, how, "not judged", words)
    words = _moved(key.metric, value, spread.median)
    if value > limit if key.metric.better == "lower" else value < limit:
        words += f", beyond the bound of {amount_text(limit, key.metric)} ({how})"
        return _Judged(value, spread.median, limit, how, "worse", words)
    return _Judged(value, spread.median, limit, how, "fine", words)


def _in_the_test(key: Key, spread: Spread, values: Sequence[float], p: float, rare: bool) -> _Judged:
    """Return the result of a metric in the test of all metrics; irrelevant differences are fine."""
    value, usual = _mean(values, spread), _mean(spread.values, spread)
    words, how = _moved(key.metric, value, usual), f"{len(values)} runs against {spread.n}"
    if rare and abs(value - usual) > floor(key, spread):
        words += f", more than chance gives (p {p:.3f}, all metrics together)"
        return _Judged(value, usual, None, how, "worse", words)
    return _Judged(value, usual, None, how, "fine", words)


def _count(key: Key, spread: Spread, values: Sequence[float]) -> _Judged:
    """Compare a count with the recorded ones: if these are all equal, any other value is a change."""
    known = spread.median
    value = next((v for v in values if v != known), values[0])
    verdict: Verdict = "fine"
    words = "as recorded"
    if not spread.constant:
        verdict, words = "not judged", "the count differs from seed to seed"
    elif value != known:
        verdict = "worse" if key.metric.is_worse(value, known) else "changed"
        words = f"{_moved(key.metric, value, known)}; the same in all {spread.n} recorded run(s)"
    return _Judged(value, known, known, "a count", verdict, words)


def acknowledged(checked: Checked, accepted: Sequence[Acknowledgement], today: str) -> Checked:
    """Return the outcome without acknowledged alarms; expired and unused acknowledgements become remarks.

    ``today`` as YYYY-MM-DD.
    """
    used: set[int] = set()
    out = []
    remarks = list(checked.remarks)
    for held in checked.held:
        match = find(accepted, held.experiment, held.variant, held.key, held.value, today) if held.alarm else None
        if match is None:
            out.append(held)
            continue
        used.add(id(match))
        if match.expired(today):
            remarks.append(f"{match.where}: the acknowledgement of {match.metric} expired on {match.expires}")
            out.append(held)
            continue
        words = f"{held.words}; acknowledged until {match.expires}: {match.reason}"
        out.append(replace(held, verdict="acknowledged", words=words))
    remarks += [
        f"{one.where}: the acknowledgement of {one.metric} was not needed" for one in accepted if id(one) not in used
    ]
    return Checked(out, checked.invalid, list(dict.fromkeys(remarks)))


# --- history ----------------------------------------------------------------------------------------------------


def check_history(runs: Iterable[RunRecord]) -> Checked:
    """Find lasting changes in the history of runs, oldest first by start; return one outcome per metric.

    An alarm is raised if the last level is worse than the best earlier one. Improvements, and changes that were undone
    since, are only reported.
    """
    found = Checked()
    own, found.remarks = histories(runs)
    found.held = [_of_history(one) for one in own]
    return found


def _of_history(one: History) -> Held:
    verdict: Verdict = "worse" if one.word == "worse" else "not judged" if one.word == "too few runs" else "fine"
    last = one.levels[-1]
    if not one.changes:
        value, recorded = one.values[-1], one.best
    else:
        value, recorded = last.median, one.best if one.word == "worse" else one.levels[0].median
    how = f"history of {one.length} runs"
    return _held(one.name, str(one.runs[-1].path), one.key, _Judged(value, recorded, None, how, verdict, one.words))
