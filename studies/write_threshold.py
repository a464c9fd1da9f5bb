"""What a write threshold costs: writes an hour against the sharing loss, over ten seeds and two loads.

    python -m studies.write_threshold [--seeds N] [--thresholds 0,0.1,...] [EXPERIMENT...]

Prints the table of docs/decisions/write-threshold.md: LTRF from outside within the controller's own bound of 3, a
period of 5 s, on the simulator. A seed draws the load, and moves the phase of heartbeats and of control.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace

from harness.control.settings import MAX_RATIO
from harness.experiments.resolve import jobs_of, load_experiment, variants_of
from harness.experiments.simulated import setup_of, simulate_variant
from harness.predict.playing import in_phase, outcome_of
from studies.tables import markdown

THRESHOLDS = (0.0, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0)
#: The controller's own period, seconds.
PERIOD_S = 5.0
EXPERIMENTS = ("ltyarn", "contended")


def one(experiment: str, seed: int, threshold: float | None, period_s: float = PERIOD_S) -> tuple[float, float]:
    """Return writes an hour and the integral of the sharing loss (s) of one run.

    ``threshold`` None: nothing is written, the scheduler's own policy.
    """
    loaded = load_experiment(experiment)
    wanted = ("fair", "inside") if threshold is None else ("ltrf", "outside")
    variant = next(found for found in variants_of(loaded) if (found.policy, found.mode) == wanted)
    variant = replace(variant, seed=seed, period_s=period_s)
    setup = setup_of(loaded, variant, jobs_of(loaded, seed)[0])
    setup = replace(in_phase(setup, MAX_RATIO), write_threshold=threshold or 0.0)
    result = simulate_variant(setup)
    ended = outcome_of(result, loaded, variant, frozenset())
    return len(result.writes) / (result.end_s / 3600.0), ended.loss


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("experiments", nargs="*", default=EXPERIMENTS)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--period", type=float, default=PERIOD_S, help="the control period, seconds")
    parser.add_argument("--thresholds", default=",".join(map(str, THRESHOLDS)))
    asked = parser.parse_args(arguments)
    rows = []
    with ProcessPoolExecutor(2) as pool:
        for experiment in asked.experiments:
            for threshold in (None, *map(float, asked.thresholds.split(","))):
                seeds = range(1, asked.seeds + 1)
                count = len(seeds)
                found = list(pool.map(one, [experiment] * count, seeds, [threshold] * count, [asked.period] * count))
                hourly, losses = [row[0] for row in found], [row[1] for row in found]
                rows.append(
                    (
                        experiment,
                        "nothing is written" if threshold is None else f"{threshold:g}",
                        f"{statistics.fmean(hourly):.1f}",
                        f"{statistics.fmean(losses):.1f}",
                        f"{min(losses):.1f} to {max(losses):.1f}",
                    )
                )
                print(rows[-1], file=sys.stderr, flush=True)
    print(markdown(("load", "write_threshold", "writes an hour", "sharing loss, mean", "over the seeds"), rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
