"""A run against recorded bounds, metric by metric: `check`. And a history of runs against itself: `check_history`.

What a user accepted (harness.results.acknowledge) is applied here; printing and exit codes are harness.cli.check's.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from statistics import fmean, median
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from harness.base.errors import InputError
from harness.base.stats import LONGEST, SHORTEST, change_points, least_change_p, level_of_each, rank_sum
from harness.results.acknowledge import Acknowledgement, find
from harness.results.baseline import FEWEST, Baseline, Entry, Spread, bound, detects, floor, held_by_spread, spread_of
from harness.results.catalogue import Key
from harness.results.compare import amount_text, number_text
from harness.results.metric import Metric
from harness.results.runs import RunRecord
from harness.results.together import Of, together

Verdict = Literal["fine", "better", "worse", "changed", "missing", "not judged", "acknowledged"]
Levels = NDArray[np.float64]
#: The probability that a history without any change raises an alarm, all metrics together.
HISTORY_ALPHA = 0.005
#: What a policy is held by that has no run among those given.
NO_RUN = Key("run")


@dataclass(frozen=True, slots=True)
class Held:
    """One metric of one run (or of several, by their mean) held against what is recorded."""

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
        """Whether the result needs attention: worse, changed or missing."""
        return self.verdict in ("worse", "changed", "missing")

    def document(self) -> dict[str, Any]:
        """Return the result as JSON."""
        own = {one.name: getattr(self, one.name) for one in fields(self) if one.name != "key"}
        return {**self.key.document(), **own}


@dataclass(slots=True)
class Checked:
    """The outcome of a check."""

    held: list[Held] = field(default_factory=list)
    #: Runs that do not count: (run, exit code, why).
    invalid: list[tuple[str, int, str]] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)

    @property
    def alarms(self) -> list[Held]:
        """The results that need attention."""
        return [one for one in self.held if one.alarm]


def _moved(metric: Metric, value: float, recorded: float) -> str:
    """How a value lies to what is recorded, in words."""
    part = f" ({value / recorded - 1:+.2%})" if recorded > 0 else ""
    digits = metric.digits
    while digits < 12 and number_text(value, digits) == number_text(recorded, digits):
        digits += 1
    return f"{amount_text(value, metric, digits)} against {amount_text(recorded, metric, digits)} recorded{part}"


def check(runs: Sequence[RunRecord], baseline: Baseline) -> Checked:
    """Every run against its entry of the baseline.

    Runs with a recorded seed are held exactly where the backend is deterministic. The others of an entry are held
    together: enough of them by one test of all metrics (`together`), fewer by the spread of the recorded ones. Of
    several runs those are missing that the baseline has of the same experiment and backend.

    Raises InputError when the baseline has an entry for none of the runs.
    """
    found = Checked()
    groups: dict[tuple[str, str, str], list[RunRecord]] = {}
    entries: dict[tuple[str, str, str], Entry] = {}
    unknown = []
    given = set()
    seeds: dict[tuple[str, str, str], set[str]] = {}
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
        _not_judged((run.experiment, run.variant, run.backend), str(run.path), "nothing is recorded of it")
        for run in unknown
    ]
    for entry in baseline.entries:
        missing = sorted(set(entry.exact) - seeds.get(entry.name, set(entry.exact)), key=lambda seed: (len(seed), seed))
        if missing:
            listed = ", ".join(missing[:10]) + (f" and {len(missing) - 10} more" if len(missing) > 10 else "")
            words = f"recorded with seed {listed}, of which no run was given"
            found.remarks.append(f"{entry.experiment}, {entry.variant}: {words}")
            found.held.append(_not_judged(entry.name, baseline.path, words))
    total = max(1, sum(len(_bounded(entries[name])) for name in groups))
    tested = together([(entries[name], own) for name, own in groups.items()])
    for name, own in groups.items():
        found.held += _by_spread(own, entries[name], total, tested)
        if not any((name, key) in tested for key in entries[name].spread):
            power = detects(entries[name], metrics=total, runs=len(own))
            found.remarks += [f"{name[0]}, {name[1]}: {power}"] if power else []
    if len(runs) > 1:
        # A policy that never began has no directory: of several runs all that is recorded beside them is wanted.
        places = {(run.experiment, run.backend) for run in runs}
        words = "recorded, but no run of it was given"
        found.held += [
            Held(*entry.name, baseline.path, NO_RUN, None, None, None, "-", "missing", words)
            for entry in baseline.entries
            if entry.name not in given and (entry.experiment, entry.backend) in places
        ]
    return found


def _not_judged(name: tuple[str, str, str], where: str, words: str) -> Held:
    """A run that could not be held against anything, or a recorded one that nothing was held against."""
    return Held(*name, where, NO_RUN, None, None, None, "-", "not judged", words)


def _other_software(run: RunRecord, entry: Entry) -> list[str]:
    """Say which software differs between a run and the recorded ones: a policy's source, or versions."""
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


#: What comes of one metric: value, recorded, bound, how, verdict, words (`Held`).
_Judged = tuple[float | None, float | None, float | None, str, Verdict, str]


def _exactly(run: RunRecord, entry: Entry) -> list[Held]:
    recorded = entry.exact[str(run.seed)]
    how = f"exactly, seed {run.seed}"
    out = []
    for key, known in sorted(recorded.items(), key=lambda item: item[0].order()):
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
        out.append(Held(*entry.name, str(run.path), key, value, known, known, how, verdict, words))
    return out


def _bounded(entry: Entry) -> list[Key]:
    return [key for key in entry.spread if held_by_spread(key)]


def _mean(values: Sequence[float], spread: Spread) -> float:
    """The mean on the spread's scale."""
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
    for key, spread in sorted(entry.spread.items(), key=lambda item: item[0].order()):
        values = [run.values[key] for run in runs if key in run.values]
        judged: _Judged
        if len(values) < len(runs):
            words = "not every run has it" if values else "the run does not have it"
            judged = None, spread.median, None, "-", "not judged" if key.metric.other_run else "missing", words
        elif key.metric.count:
            judged = _count(key, spread, values)
        elif (entry.name, key) in tested:
            judged = _in_the_test(key, spread, values, *tested[entry.name, key])
        else:
            judged = _within(key, spread, values, entry.margin, metrics)
        value, known, limit, how, verdict, words = judged
        out.append(Held(*entry.name, name, key, value, known, limit, how, verdict, words))
    return out


def _within(key: Key, spread: Spread, values: Sequence[float], margin: float | None, metrics: int) -> _Judged:
    """A metric by its bound."""
    value = _mean(values, spread)
    limit = bound(key, spread, metrics=metrics, runs=len(values), margin=margin)
    how = f"margin of {margin:.0%}" if margin is not None else f"spread of {spread.n} runs"
    if limit is None:
        words = f"{spread.n} recorded run(s) show no spread; at least {FEWEST} do"
        return value, spread.median, None, how, "not judged", words
    words = _moved(key.metric, value, spread.median)
    if value > limit if key.metric.better == "lower" else value < limit:
        words += f", beyond the bound of {amount_text(limit, key.metric)} ({how})"
        return value, spread.median, limit, how, "worse", words
    return value, spread.median, limit, how, "fine", words


def _in_the_test(key: Key, spread: Spread, values: Sequence[float], p: float, rare: bool) -> _Judged:
    """A metric of several runs by the test of all metrics together; a difference that does not matter is fine."""
    value, usual = _mean(values, spread), _mean(spread.values, spread)
    words, how = _moved(key.metric, value, usual), f"{len(values)} runs against {spread.n}"
    if rare and abs(value - usual) > floor(key, spread):
        return value, usual, None, how, "worse", f"{words}, more than chance gives (p {p:.3f}, all metrics together)"
    return value, usual, None, how, "fine", words


def _count(key: Key, spread: Spread, values: Sequence[float]) -> _Judged:
    """Counts that never varied do not vary by chance."""
    known = spread.median
    value = next((v for v in values if v != known), values[0])
    verdict: Verdict = "fine"
    words = "as recorded"
    if not spread.constant:
        verdict, words = "not judged", "the count differs from seed to seed"
    elif value != known:
        verdict = "worse" if key.metric.is_worse(value, known) else "changed"
        words = f"{_moved(key.metric, value, known)}; the same in all {spread.n} recorded run(s)"
    return value, known, known, "a count", verdict, words


def acknowledged(checked: Checked, accepted: Sequence[Acknowledgement], today: str) -> Checked:
    """The outcome with what is accepted taken out of the alarms; expired and unused acknowledgements are remarked.

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
    """Lasting changes within the history of runs, oldest first by their start; one outcome for each metric.

    Runs of one experiment (by its hash), variant and backend are one series. A last level that is worse than the best
    of before is an alarm; a change to the better, or one that was undone since, is only told.
    """
    found = Checked()
    series: dict[tuple[str, str, str, str], list[RunRecord]] = {}
    for run in runs:
        if run.invalid() is None:
            series.setdefault((run.experiment, run.variant, run.backend, run.hash), []).append(run)
    versions: dict[str, set[str]] = {}
    for experiment, _, _, digest in series:
        versions.setdefault(experiment, set()).add(digest)
    found.remarks = [
        f"the runs of {name} are of {len(hashes)} different experiments of that name "
        f"({', '.join(sorted(digest[:12] or 'no hash' for digest in hashes))}): each has a history of its own"
        for name, hashes in versions.items()
        if len(hashes) > 1
    ]
    tracks: list[tuple[tuple[str, str, str], Key, list[RunRecord], float]] = []
    for name, own in series.items():
        ordered = sorted(own, key=lambda run: (run.start, str(run.path)))
        keys = {key for run in own for key in run.values if held_by_spread(key)}
        for key in sorted(keys, key=lambda key: key.order()):
            having = [run for run in ordered if key in run.values]
            tracks.append((name[:3], key, having, least_change_p([run.values[key] for run in having])))
    # As in a check: all metrics together, each on its own side (a change to the better is no alarm).
    alpha = level_of_each([least for *_, least in tracks], 2 * HISTORY_ALPHA)
    varying = sum(least < 1 for *_, least in tracks)
    for names, key, having, least in tracks:
        found.held.append(
            _series(names, key, having, alpha) if least <= alpha else _unseen(names, key, having, varying)
        )
    return found


def _unseen(name: tuple[str, str, str], key: Key, runs: Sequence[RunRecord], varying: int) -> Held:
    """A series in which no change could be shown, however large: it is constant, or too short for so many metrics."""
    values = [run.values[key] for run in runs]
    how = f"history of {len(values)} runs"
    verdict: Verdict = "not judged"
    words = "too short to see a change"
    if len(values) >= 2 * SHORTEST:
        words += f" of one metric among {varying}"
        if min(values) == max(values):
            verdict, words = "fine", "the same in every run"
    return Held(*name, str(runs[-1].path), key, values[-1], median(values), None, how, verdict, words)


def _series(name: tuple[str, str, str], key: Key, runs: Sequence[RunRecord], alpha: float) -> Held:
    how = f"history of {len(runs)} runs"
    runs = runs[-LONGEST:]
    values = np.array([run.values[key] for run in runs])
    last = str(runs[-1].path)
    points = change_points(values, alpha)
    if not points:
        words = "no lasting change"
        return Held(*name, last, key, float(values[-1]), median(values.tolist()), None, how, "fine", words)
    metric = key.metric
    told = []
    for point in points:
        at = runs[point.at]
        told.append(
            f"from {amount_text(point.before, metric)} to {amount_text(point.after, metric)} with "
            f"{at.path.parent.name}/{at.path.name} ({at.start[:10] or 'no date'})"
        )
    *earlier, now = np.split(values, [point.at for point in points])
    best = (min if metric.better == "lower" else max)(earlier, key=lambda level: float(np.median(level)))
    worse, tail = _against(key, best, now)
    if worse and best is not earlier[-1]:
        tail = f"; still worse than {amount_text(float(np.median(best)), metric)} before"
    recorded = float(np.median(best)) if worse else points[0].before
    words = f"changed {', then '.join(told)}{tail}"
    return Held(*name, last, key, points[-1].after, recorded, None, how, "worse" if worse else "fine", words)


def _against(key: Key, best: Levels, now: Levels) -> tuple[bool, str]:
    """Whether the last level of a series that has changed is worse than its best before, and what to say if not.

    That the series changes is shown for all metrics together; here it is only asked whether the change was undone, at
    HISTORY_ALPHA, or at the least p that so few runs can give.
    """
    before, after = float(np.median(best)), float(np.median(now))
    test = rank_sum(best, now)
    if not key.metric.is_worse(after, before) or test.p > max(HISTORY_ALPHA, test.least_p):
        return False, "; not for the worse by now"
    if abs(after - before) < floor(key, spread_of(best.tolist())):
        return False, "; worse, but by less than matters"
    return True, ""
