"""For how long anything is owed: what an absence costs the others, against the half-life of the accounts.

    python -m studies.half_life -o docs/records/half-life.json

The recorded FB-2009 day (experiments/fb2009-day.yaml), day after day, on four equal queues: every third job of A, B and
C, which together ask for some 72 % of 67 nodes. It is played with Hadoop's slow start, by which reduces hold containers
while they wait for maps, and with reduces after the last map. D is idle from the start for a night, a weekend or a
holiday, and then brings all of its jobs, three times its entitlement of 25 %. LTRF from outside, a control period of 60
s, weights as `enforce` bounds them, a half-life of the series (``null``: nothing is forgotten) and, to compare, the
memoryless ``fair``. Measured from D's return on:

- ``lost_h``: by how much A, B and C together fall behind what is due to them (rho of the papers: the lesser of demand
  and entitlement), at most, in hours of their entitlement;
- ``behind_h``: when that is, after the return: from then on they catch up;
- ``gained_h``: what D has had by then, in hours of its entitlement, above that entitlement.

Beside it the sharing loss integral of experiments/outside.yaml: a half-life that is too short forgets what the policy
is for. The rule names, for each of the two, the longest half-life of the series with which the others begin to catch
up within `MOST_BEHIND_H` of D's return, however long it was away.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from harness.base.files import write_json
from harness.control.settings import HALF_LIFE_S as CHOSEN_S
from harness.control.settings import MAX_RATIO
from harness.control.virtual import simulate_policy
from harness.experiments.resolve import Variant, jobs_of, load_experiment
from harness.experiments.simulated import setup_of
from harness.model.jobs import JobSpec
from harness.policies.registry import make_policy
from harness.results.store import versions
from studies.bound import PERIOD_S as OUTSIDE_PERIOD_S
from studies.bound import measure
from studies.tables import Values, markdown

HOUR_S, DAY_S = 3600.0, 86_400.0
#: Half-lives, seconds; None: nothing is forgotten.
HALF_LIVES: tuple[float | None, ...] = (
    HOUR_S,
    4 * HOUR_S,
    12 * HOUR_S,
    DAY_S,
    2 * DAY_S,
    7 * DAY_S,
    None,
)
#: How long D is idle, days; and for how long it is watched afterwards.
ABSENCES = {"night": (0.5, 1.5), "weekend": (2.5, 2.5), "holiday": (14.0, 4.0)}
SEEDS = (1, 2, 3, 4)
#: Slow start of the loads, by the names of the record.
SLOW_STARTS = {"Hadoop's slow start": 0.05, "reduces after the last map": 1.0}
NODES = 67
PERIOD_S = 60.0
MOST_BEHIND_H = 24.0
_DIGITS = 3


def loads(base: Sequence[JobSpec], absent_s: float, end_s: float) -> Iterator[JobSpec]:
    """The day's jobs, day after day, in order of submission."""
    day = 0
    while day * DAY_S < end_s:
        for place, job in enumerate(base):
            submit_s = job.submit_s + day * DAY_S
            late = job.queue == "root.D"
            if submit_s < end_s and (submit_s >= absent_s if late else place % 3 == 0):
                yield replace(job, id=f"{job.id}/{day}", submit_s=submit_s)
        day += 1


def slow_started(job: JobSpec, slow_start: float) -> JobSpec:
    """Return a job whose reduces are asked for when this fraction of its maps has ended."""
    stages = tuple(replace(stage, slow_start=slow_start) if stage.after else stage for stage in job.stages)
    return replace(job, stages=stages)


def after_absence(
    policy: str, settings: Mapping[str, str], slow_start: float, absent_s: float, watched_s: float
) -> dict[str, float]:
    """What the return of D costs and brings, in hours."""
    experiment = load_experiment("fb2009-day")
    variant = Variant("measured", policy, "outside", dict(settings), 1, PERIOD_S)
    jobs = (slow_started(job, slow_start) for job in jobs_of(experiment, 1)[0])
    base = sorted(jobs, key=lambda job: job.submit_s)
    end_s = absent_s + watched_s
    setup = setup_of(experiment, variant, loads(base, absent_s, end_s))
    setup = replace(
        setup,
        nodes=setup.nodes[:NODES],
        policy=make_policy(policy, settings),
        max_ratio=MAX_RATIO,
        time_limit_s=end_s,
        stop_when_stuck=False,
    )
    samples = simulate_policy(setup).samples
    time_s = np.asarray(samples.time_s)
    back = int(np.searchsorted(time_s, absent_s))
    column = {leaf: samples.queues.index(f"root.{leaf}") for leaf in "ABCD"}
    had = {leaf: samples.accumulated[back:, at] - samples.accumulated[back, at] for leaf, at in column.items()}
    due = {leaf: samples.due[back:, at] - samples.due[back, at] for leaf, at in column.items()}
    entitled = NODES * 4096 / 4.0
    lost = sum(due[leaf] - had[leaf] for leaf in "ABC") / (3 * entitled * HOUR_S)
    worst = int(np.argmax(lost))
    since_s = float(time_s[back + worst] - time_s[back])
    return {
        "lost_h": round(float(lost[worst]), _DIGITS),
        "behind_h": round(since_s / HOUR_S, _DIGITS),
        "gained_h": round(float(had["D"][worst]) / entitled / HOUR_S - since_s / HOUR_S, _DIGITS),
    }


#: Absence -> half-life, or policy -> what `after_absence` has measured.
Absences = Mapping[str, Mapping[str, Mapping[str, float]]]


def named_by_the_rule(absences: Absences) -> float | None:
    """The longest half-life with which no absence keeps the others behind for longer; None: the series has none."""
    good = [
        float(name)
        for name in next(iter(absences.values()))
        if name not in ("null", "fair") and all(rows[name]["behind_h"] <= MOST_BEHIND_H for rows in absences.values())
    ]
    return max(good, default=None)


def values(loads: Mapping[str, Absences], loss: Mapping[str, Any]) -> dict[str, Any]:
    """The record's values. ``loads``: by the names of `SLOW_STARTS`."""
    return {
        "max_ratio": MAX_RATIO,
        "period_s": {"absences": PERIOD_S, "outside": OUTSIDE_PERIOD_S},
        "watched_h": {absence: watched * 24 for absence, (_, watched) in ABSENCES.items()},
        "most_behind_h": MOST_BEHIND_H,
        "chosen_s": CHOSEN_S,
        "loads": {
            name: {"slow_start": SLOW_STARTS[name], "rule_s": named_by_the_rule(absences), "absences": absences}
            for name, absences in loads.items()
        },
        "outside": {"seeds": list(SEEDS), "half_lives": loss},
    }


_NAMED = {"3600": "1 h", "14400": "4 h", "43200": "12 h", "86400": "1 day", "172800": "2 days", "604800": "7 days"}


def table(values: Values) -> str:
    """What each half-life costs after each absence, under both loads."""
    rows = []
    for name in values["outside"]["half_lives"]:
        label = _NAMED.get(name, "none")
        cells = [f"**{label}**" if name == f"{values['chosen_s']:g}" else label]
        for load in values["loads"].values():
            for absence in ABSENCES:
                own = load["absences"][absence][name]
                hours = own["behind_h"]
                since = f"{hours:.0f} h" if hours < values["watched_h"][absence] - 1 else f"more than {hours:.0f} h"
                cells.append("none" if own["lost_h"] < 0.05 else f"{own['lost_h']:.1f} h, {since}")
        rows.append([*cells, f"{values['outside']['half_lives'][name]['mean']:.2f} s"])
    head = [f"{load}: after a {absence}" for load in values["loads"] for absence in ABSENCES]
    return markdown(("half-life", *head, "`outside`"), rows)


TABLES: dict[str, tuple[str, Callable[[Values], str]]] = {"half-life": ("half-life", table)}


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit code."""
    parser = argparse.ArgumentParser(prog="python -m studies.half_life", description=__doc__)
    parser.add_argument("-o", "--out", type=Path, required=True)
    given = parser.parse_args(arguments)
    found: dict[str, dict[str, dict[str, dict[str, float]]]] = {name: {} for name in SLOW_STARTS}
    loss: dict[str, dict[str, Any]] = {}
    outside = load_experiment("outside")
    of_half_life: dict[str, dict[str, str]] = {
        "null" if one is None else f"{one:g}": {} if one is None else {"half_life": f"{one:g}"} for one in HALF_LIVES
    }
    for name, settings in of_half_life.items():
        integrals = [measure(outside, "ltrf", settings, seed, MAX_RATIO) for seed in SEEDS]
        loss[name] = {"loss_integral": integrals, "mean": round(statistics.fmean(integrals), _DIGITS)}
        _say(f"outside, {name}", loss[name])
    for load, slow_start in SLOW_STARTS.items():
        for absence, (days, watched) in ABSENCES.items():
            for name, settings in {**of_half_life, "fair": {}}.items():
                policy = "fair" if name == "fair" else "ltrf"
                row = after_absence(policy, settings, slow_start, days * DAY_S, watched * DAY_S)
                found[load].setdefault(absence, {})[name] = row
                _say(f"{load}, {absence}, {name}", row)
    document = values(found, loss)
    command = f"python -m studies.half_life -o docs/records/{given.out.name}"
    write_json(given.out, {"command": command, "version": versions()["yarnfair"], "values": document})
    return 0


def _say(what: str, row: Mapping[str, Any]) -> None:
    print(f"{what}: {dict(row)}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    raise SystemExit(main())
