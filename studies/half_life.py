"""For how long anything is owed: what an absence costs the others, against the half-life of the accounts.

    python -m studies.half_life -o docs/records/half-life.json

The recorded FB-2009 day (experiments/fb2009-day.yaml), day after day, on four equal queues: every third job of A, B and
C, which together ask for some 72 % of 67 nodes. D is idle from the start for a night, a weekend or a holiday, and then
brings all of its jobs, three times its entitlement of 25 %. LTRF from outside, a control period of 60 s, weights as
`enforce` bounds them, a half-life of the series (``null``: nothing is forgotten) and, to compare, the memoryless
``fair``. Measured from D's return on:

- ``lost_h``: by how much A, B and C together fall behind what is due to them (rho of the papers: the lesser of demand
  and entitlement), at most, in hours of their entitlement;
- ``behind_h``: when that is, after the return: from then on they catch up;
- ``gained_h``: what D has had by then, in hours of its entitlement, above that entitlement.

Beside it the sharing loss integral of experiments/outside.yaml: a half-life that is too short forgets what the policy
is for. Chosen is the longest half-life of the series with which the others begin to catch up within `MOST_BEHIND_H` of
D's return, however long it was away.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from harness.base.files import write_json
from harness.control.settings import MAX_RATIO
from harness.control.virtual import simulate_policy
from harness.experiments.resolve import Variant, jobs_of, load_experiment
from harness.experiments.simulated import setup_of
from harness.model.jobs import JobSpec
from harness.policies.registry import make_policy
from harness.results.store import versions
from studies.bound import PERIOD_S as OUTSIDE_PERIOD_S
from studies.bound import measure

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


def after_absence(policy: str, settings: Mapping[str, str], absent_s: float, watched_s: float) -> dict[str, float]:
    """What the return of D costs and brings, in hours."""
    experiment = load_experiment("fb2009-day")
    variant = Variant("measured", policy, "outside", dict(settings), 1, PERIOD_S)
    base = sorted(jobs_of(experiment, 1)[0], key=lambda job: job.submit_s)
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


def chosen(absences: Mapping[str, Mapping[str, Mapping[str, float]]]) -> float | None:
    """The longest half-life with which no absence keeps the others behind for longer; None: the series has none."""
    good = [
        float(name)
        for name in next(iter(absences.values()))
        if name not in ("null", "fair") and all(rows[name]["behind_h"] <= MOST_BEHIND_H for rows in absences.values())
    ]
    return max(good, default=None)


def values(absences: Mapping[str, Mapping[str, Mapping[str, float]]], loss: Mapping[str, Any]) -> dict[str, Any]:
    """The record's values."""
    return {
        "max_ratio": MAX_RATIO,
        "period_s": {"absences": PERIOD_S, "outside": OUTSIDE_PERIOD_S},
        "watched_h": {absence: watched * 24 for absence, (_, watched) in ABSENCES.items()},
        "most_behind_h": MOST_BEHIND_H,
        "chosen_s": chosen(absences),
        "absences": absences,
        "outside": {"seeds": list(SEEDS), "half_lives": loss},
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit code."""
    parser = argparse.ArgumentParser(prog="python -m studies.half_life", description=__doc__)
    parser.add_argument("-o", "--out", type=Path, required=True)
    given = parser.parse_args(arguments)
    absences: dict[str, dict[str, dict[str, float]]] = {}
    loss: dict[str, dict[str, Any]] = {}
    outside = load_experiment("outside")
    for half_life in HALF_LIVES:
        name, settings = ("null", {}) if half_life is None else (f"{half_life:g}", {"half_life": f"{half_life:g}"})
        found = [measure(outside, "ltrf", settings, seed, MAX_RATIO) for seed in SEEDS]
        loss[name] = {"loss_integral": found, "mean": round(statistics.fmean(found), _DIGITS)}
        _say(f"outside, {name}", loss[name])
        for absence, (days, watched) in ABSENCES.items():
            row = after_absence("ltrf", settings, days * DAY_S, watched * DAY_S)
            absences.setdefault(absence, {})[name] = row
            _say(f"{absence}, {name}", row)
    for absence, (days, watched) in ABSENCES.items():
        row = absences[absence]["fair"] = after_absence("fair", {}, days * DAY_S, watched * DAY_S)
        _say(f"{absence}, fair", row)
    document = values(absences, loss)
    command = f"python -m studies.half_life -o docs/records/{given.out.name}"
    write_json(given.out, {"command": command, "version": versions()["yarnfair"], "values": document})
    return 0


def _say(what: str, row: Mapping[str, Any]) -> None:
    print(f"{what}: {dict(row)}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    raise SystemExit(main())
