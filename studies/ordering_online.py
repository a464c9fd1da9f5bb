"""MROrder studied online (tang-thesis section 3.4.3): Table 3.4 and Fig. 3.9 on the estimator, as in the thesis.

``python -m studies.ordering_online intervals`` and ``... online`` measure and print one JSON record each.
The dispatching queue is harness.systems.mrorder.ordering.online's.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from fractions import Fraction
from itertools import islice
from typing import Any

import click

from harness.model.data import data_path
from harness.report.gallery.spread import mean_of, spread
from harness.systems.mrorder.ordering import MapReduceJob, estimate
from harness.systems.mrorder.ordering.engines import engine
from harness.systems.mrorder.ordering.online import Dispatching, Submission, When, dispatch
from harness.traces.swim import read_swim
from studies.ordering import EC2, MAP_MS, REDUCE_MS, testbed
from studies.result import write

Arrivals = list[tuple[MapReduceJob, Fraction]]

#: Mean time between two jobs of the testbed, seconds. The thesis says Poisson, and not how often.
TESTBED_GAP_S = 30.0


def facebook_online(count: int, seed: int) -> Arrivals:
    """The first jobs of the SWIM trace: its arrivals and input sizes, the thesis' log-normal task times (by seed).

    Reduces: 5 or 25 % of the maps, at least one, as in section 3.3.6.2.
    """
    draw = random.Random(f"{seed}/facebook online")
    rows = islice(read_swim(data_path("workloads", "facebook") / "FB-2009_samples_24_times_1hr_1.tsv"), count)
    jobs: Arrivals = []
    for at, row in enumerate(rows, start=1):
        maps = row.maps
        reduces = max(1, round(maps * draw.choice((0.05, 0.25))))
        map_ms, reduce_ms = (max(1, round(draw.lognormvariate(*of))) for of in (MAP_MS, REDUCE_MS))
        job = MapReduceJob(f"fb-{at:03}", maps, Fraction(map_ms, 1000), reduces, Fraction(reduce_ms, 1000))
        jobs.append((job, Fraction(row.submit_s)))
    return jobs


def testbed_online(count: int, seed: int) -> Arrivals:
    """Table 3.2's jobs in an order drawn by the seed, Poisson arrivals."""
    draw = random.Random(f"{seed}/testbed online")
    jobs = list(testbed(count))
    draw.shuffle(jobs)
    now, arrivals = Fraction(0), []
    for job in jobs:
        now += Fraction(round(draw.expovariate(1 / TESTBED_GAP_S) * 1000), 1000)
        arrivals.append((job, now))
    return arrivals


def sums(submissions: Sequence[tuple[MapReduceJob, Fraction, Fraction]]) -> dict[str, float]:
    """What (job, arrived, submitted) in order of submission come to: makespan, total completion time, total flow time.

    Completion is counted from 0 (equation of section 3.3.1.1), flow from each job's arrival.
    """
    found = estimate([job for job, _, _ in submissions], EC2, [at for _, _, at in submissions])
    flow = sum((end - came for end, (_, came, _) in zip(found.completions, submissions, strict=True)), Fraction(0))
    return {
        "makespan_s": round(float(found.makespan), 3),
        "tct_s": round(float(found.total_completion_time), 3),
        "flow_s": round(float(flow), 3),
    }


def unordered(arrivals: Arrivals) -> dict[str, float]:
    """FIFO without MROrder: each job submitted as it arrives."""
    return sums([(job, came, came) for job, came in arrivals])


def ordered(arrivals: Arrivals, when: When, interval_s: float, target: str) -> dict[str, float]:
    """With MROrder in front."""
    out: list[Submission] = dispatch(arrivals, EC2, Dispatching(when, interval_s), engine(target))
    found = sums([(one.job, one.arrived_s, one.submitted_s) for one in out])
    return {**found, "rounds": out[-1].round if out else 0}


def _percent(before: float, after: float) -> float:
    return round(100 * (before / after - 1), 2)


def _mean_gain(entry: dict[str, Any]) -> float:
    return mean_of(entry["tct"])


def measure_intervals(counts: Sequence[int], seeds: int, step_s: int) -> dict[str, Any]:
    """Table 3.4: for each number of Facebook jobs the best interval of each time policy, by total completion time."""
    rows = []
    for count in counts:
        row: dict[str, Any] = {"jobs": count, "policies": {}}
        loads = [facebook_online(count, seed) for seed in range(1, seeds + 1)]
        plain = [unordered(load) for load in loads]
        for when in ("tp-fti", "tp-ati"):
            by_interval = {}
            for interval_s in sorted({10, 400, *range(step_s, 401, step_s)}):
                runs = [ordered(load, when, interval_s, "tct") for load in loads]
                gains = {
                    key: spread([_percent(a[f"{key}_s"], b[f"{key}_s"]) for a, b in zip(plain, runs, strict=True)])
                    for key in ("tct", "flow", "makespan")
                }
                by_interval[interval_s] = {"interval_s": interval_s, **gains}
            best = max(by_interval.values(), key=_mean_gain)
            row["policies"][when] = {"best": best, "at_10_s": by_interval[10], "at_400_s": by_interval[400]}
        rows.append(row)
        click.echo(f"{row}", err=True)
    return {"seeds": seeds, "step_s": step_s, "rows": rows}


def measure_online(seeds: int) -> dict[str, Any]:
    """Fig. 3.9: TP-ATI with an interval of 10 s, both targets, testbed and Facebook workloads of several sizes."""
    rows = []
    for load, counts in (("testbed", (10, 20, 30, 50, 100)), ("facebook", (50, 100, 200, 300, 400))):
        for count in counts:
            made = [
                testbed_online(count, seed) if load == "testbed" else facebook_online(count, seed)
                for seed in range(1, seeds + 1)
            ]
            row: dict[str, Any] = {"workload": load, "jobs": count}
            for target, key in (("makespan", "makespan"), ("tct", "tct"), ("tct", "flow")):
                gains = [
                    _percent(unordered(one)[f"{key}_s"], ordered(one, "tp-ati", 10.0, target)[f"{key}_s"])
                    for one in made
                ]
                row[key] = spread(gains)
            rows.append(row)
            click.echo(f"{row}", err=True)
    return {"seeds": seeds, "interval_s": 10, "testbed_gap_s": TESTBED_GAP_S, "rows": rows}


@click.group()
def study() -> None:
    """MROrder on its workloads."""


def _record(values: dict[str, Any], *arguments: str) -> None:
    command = " ".join(["python -m studies.ordering_online", *arguments])
    write(None, command, values)


@study.command()
@click.option("--seeds", type=click.IntRange(1, 100), default=3, show_default=True)
@click.option("--step", "step_s", type=click.IntRange(1, 400), default=10, show_default=True)
@click.option("--most", type=click.IntRange(50, 400), default=400, show_default=True, help="Jobs of the largest load.")
def intervals(seeds: int, step_s: int, most: int) -> None:
    """Table 3.4: which interval suits which time policy."""
    values = measure_intervals([count for count in range(50, 401, 50) if count <= most], seeds, step_s)
    _record(values, "intervals", f"--seeds {seeds}", f"--step {step_s}", f"--most {most}")


@study.command()
@click.option("--seeds", type=click.IntRange(1, 100), default=5, show_default=True)
def online(seeds: int) -> None:
    """Fig. 3.9: what MROrder gains."""
    _record(measure_online(seeds), "online", f"--seeds {seeds}")


if __name__ == "__main__":
    study()
