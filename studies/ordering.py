"""Job ordering studied: the thesis' workloads as files for `yarnfair order`, and what its chapter 3 measures on them.

``python -m studies.ordering workloads DIR`` writes the job files; ``search``, ``greedy`` and ``variation``
measure and print one JSON record each (command, version, values); ``tables`` fills in the page that shows them. The
algorithms are in harness.systems.mrorder.ordering.
"""

from __future__ import annotations

import os
import random
import sys
import time
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import click

from harness.report.gallery.spread import spread
from harness.systems.mrorder.ordering import (
    GREEDY,
    Estimate,
    MapReduceJob,
    Slots,
    estimate,
    estimate_tasks,
    lower_bound,
    upper_bound,
    upper_bound_as_printed,
)
from studies.result import write
from studies.seeds import merged

#: Section 3.3.6.1: 19 slaves with 3 map slots and 1 reduce slot each.
EC2 = Slots(57, 19)

#: Table 3.2: benchmark, maps, reduces, average seconds of a map and of a reduce.
TABLE_3_2 = (
    ("Wordcount", 160, 100, 22, 11),
    ("Sort", 320, 200, 9, 24),
    ("Grep", 480, 120, 9, 11),
    ("Inverted-Index", 640, 100, 32, 23),
    ("Classification", 160, 120, 6, 13),
    ("Histogram-Movies", 160, 150, 6, 13),
    ("Histogram-Ratings", 160, 100, 18, 15),
    ("Sequence-Count", 320, 150, 38, 21),
    ("Tera-Sort", 160, 100, 10, 26),
)

#: Table 3.3: the numbers of maps in a workload of 50 jobs, one entry a job; None is drawn from 1 to 25.
TABLE_3_3: tuple[int | None, ...] = (
    *(None,) * 29,
    *(25, 30, 35, 40, 50),
    *(60, 80, 90, 100),
    *(120, 150, 180, 200),
    *(250, 320, 400),
    *(600, 800),
    *(1200, 2400, 4800),
)

#: Input sizes of the testbed's further jobs relative to Table 3.2. The thesis says that sizes differ, not how.
INPUT_SIZES = (Fraction(1), Fraction(1, 2), Fraction(2), Fraction(1, 4))

#: Log-normal task times in milliseconds (section 3.3.6.2): mean and deviation of the logarithm.
MAP_MS = (9.9511, 1.6764)
REDUCE_MS = (12.375, 1.6262)


def testbed(count: int) -> tuple[MapReduceJob, ...]:
    """The first `count` of Table 3.2's nine jobs, again and again with other input sizes: tasks scale, times do not."""
    jobs = []
    for index in range(count):
        name, maps, reduces, map_s, reduce_s = TABLE_3_2[index % len(TABLE_3_2)]
        again = index // len(TABLE_3_2)
        size = INPUT_SIZES[again % len(INPUT_SIZES)]
        label = name if again == 0 else f"{name}-{again + 1}"
        jobs.append(MapReduceJob(label, int(maps * size), Fraction(map_s), int(reduces * size), Fraction(reduce_s)))
    return tuple(jobs)


def facebook(count: int, seed: int) -> tuple[MapReduceJob, ...]:
    """A synthetic Facebook workload (Table 3.3) of 50, 100 or 150 jobs, in random order; times in whole ms.

    Each job has 5 or 25 % as many reduces as maps (at least 1), with equal chance, and one time for its maps and one
    for its reduces, each drawn from the log-normal distribution.
    """
    draw = random.Random(seed)
    jobs = []
    for maps in TABLE_3_3 * (count // len(TABLE_3_3)):
        tasks = draw.randint(1, 25) if maps is None else maps
        reduces = max(1, round(tasks * draw.choice((0.05, 0.25))))
        map_ms, reduce_ms = (max(1, round(draw.lognormvariate(*of))) for of in (MAP_MS, REDUCE_MS))
        jobs.append((tasks, Fraction(map_ms, 1000), reduces, Fraction(reduce_ms, 1000)))
    draw.shuffle(jobs)
    return tuple(MapReduceJob(f"fb-{index:03}", *job) for index, job in enumerate(jobs, 1))


#: The job files under workloads/ordering/.
FILES: dict[str, Callable[[], tuple[MapReduceJob, ...]]] = {
    **{f"testbed-{count}": partial(testbed, count) for count in (4, 9, 10, 20, 30, 100)},
    **{f"facebook-{count}": partial(facebook, count, seed=1) for count in (50, 100, 150)},
}


def as_csv(jobs: Sequence[MapReduceJob]) -> str:
    """The jobs as `yarnfair order` reads them."""
    rows = [f"{j.name},{j.maps},{_decimal(j.map_s)},{j.reduces},{_decimal(j.reduce_s)}" for j in jobs]
    return "\n".join(["job,maps,map_seconds,reduces,reduce_seconds", *rows, ""])


def _decimal(seconds: Fraction) -> str:
    return str(int(seconds)) if seconds.denominator == 1 else f"{float(seconds):.3f}"


def _sums(found: Estimate) -> dict[str, float]:
    return {
        "makespan_s": round(float(found.makespan), 3),
        "total_completion_time_s": round(float(found.total_completion_time), 3),
    }


def _search(jobs: Sequence[MapReduceJob], objective: str, limit_s: float) -> dict[str, Any]:
    from harness.systems.mrorder.ordering.search import optimal

    begun = time.monotonic()
    found = optimal(
        jobs, EC2, "tct" if objective == "tct" else "makespan", stop=lambda: time.monotonic() - begun > limit_s
    )
    return {
        "best_s": round(float(found.value), 3),
        "bound_s": round(float(found.bound), 3),
        "proven": found.proven,
        "nodes": found.nodes,
        "wall_s": round(time.monotonic() - begun, 3),
    }


def measure_search(limit_s: float) -> dict[str, Any]:
    """Table 3.5 (1 to 9 jobs), and how many of the testbed's jobs are ordered optimally within `limit_s`."""
    _search(testbed(4), "makespan", limit_s)  # compiled before anything is timed
    rows = []
    for count in (*range(1, 17), 18, 20, 25, 30):
        jobs = testbed(count)
        row: dict[str, Any] = {"jobs": count}
        for objective, rule in (("makespan", "mk_jr"), ("tct", "tct")):
            greedy = _sums(estimate([jobs[i] for i in GREEDY[rule](jobs, EC2)], EC2))
            row[objective] = {
                "greedy_s": greedy["makespan_s" if objective == "makespan" else "total_completion_time_s"],
                **_search(jobs, objective, limit_s),
            }
        _say(f"{count} jobs: {row}")
        rows.append(row)
    proven = {
        objective: max(row["jobs"] for row in rows if row[objective]["proven"]) for objective in ("makespan", "tct")
    }
    return {"limit_s": limit_s, "most_jobs_proven": proven, "rows": rows}


def measure_greedy(limit_s: float, seeds: int) -> dict[str, Any]:
    """Rules, bounds and best orders on every job file, and MK_JR against the lower bound over further seeds."""
    files = {}
    for name, make in FILES.items():
        jobs = make()
        files[name] = {
            "lower_bound_s": round(float(lower_bound(jobs, EC2)), 3),
            "rules": rules_of(jobs),
            "best_makespan": _search(jobs, "makespan", limit_s),
            "best_tct": _search(jobs, "tct", limit_s),
        }
        _say(f"{name}: {files[name]}")
    spread = {str(count): _over_seeds(count, seeds) for count in (50, 100, 150)}
    return {"limit_s": limit_s, "files": files, "facebook_over_seeds": spread}


def rules_of(jobs: Sequence[MapReduceJob]) -> dict[str, dict[str, float]]:
    """What each rule's order comes to, and Lemma 3.2's bound on it: mended, and as the thesis prints it."""
    found = {}
    for rule, order in GREEDY.items():
        ordered = [jobs[i] for i in order(jobs, EC2)]
        found[rule] = {
            **_sums(estimate(ordered, EC2)),
            "upper_bound_s": round(float(upper_bound(ordered, EC2)), 3),
            "upper_bound_as_printed_s": round(float(upper_bound_as_printed(ordered, EC2)), 3),
        }
    return found


def _over_seeds(count: int, seeds: int) -> dict[str, Any]:
    """Mean, least and greatest over seeds: MK_JR and MK_TCT_JR against the reversed order and the lower bound."""
    ratios: dict[str, list[float]] = {}
    for seed in range(1, seeds + 1):
        jobs = facebook(count, seed)
        found = {
            rule: estimate([jobs[i] for i in GREEDY[rule](jobs, EC2)], EC2)
            for rule in ("mk_jr", "mk_tct_jr", "tct", "worst")
        }
        bound = lower_bound(jobs, EC2)
        for rule in ("mk_jr", "mk_tct_jr", "tct"):
            makespan, total = found[rule].makespan, found[rule].total_completion_time
            for what, value in (
                ("makespan_speedup", found["worst"].makespan / makespan),
                ("tct_speedup", found["worst"].total_completion_time / total),
                ("makespan_over_lower_bound", makespan / bound),
            ):
                ratios.setdefault(f"{rule}_{what}", []).append(float(value))
    return {
        "seeds": seeds,
        **{name: spread(row) for name, row in ratios.items()},
    }


def measure_variation(seeds: int) -> dict[str, Any]:
    """Fig. 3.7: each task's time uniformly up to v % above or below its job's average; orders from the averages."""
    rows = []
    for name in ("testbed-100", "facebook-100"):
        jobs = FILES[name]()
        for percent in range(0, 41, 4):
            found = merged([_variation(jobs, percent, seed) for seed in range(1, seeds + 1)])
            rows.append({"jobs": name, "variation_percent": percent, **found})
            _say(str(rows[-1]))
    return {"seeds": seeds, "rows": rows}


def _variation(jobs: Sequence[MapReduceJob], percent: int, seed: int) -> dict[str, Any]:
    """One draw of the tasks' times: what each rule's order comes to, and its speed-up over the reversed one."""
    row: dict[str, Any] = {}
    for rule in ("worst", "mk_jr", "mk_tct_jr"):
        row[rule] = _varied([jobs[i] for i in GREEDY[rule](jobs, EC2)], percent, seed)
    for rule in ("mk_jr", "mk_tct_jr"):
        for key in ("makespan_s", "total_completion_time_s"):
            row[rule][key.replace("_s", "_speedup")] = round(row["worst"][key] / row[rule][key], 4)
    return row


def _varied(ordered: Sequence[MapReduceJob], percent: int, seed: int) -> dict[str, float]:
    def tasks(job: MapReduceJob, kind: str, count: int, seconds: Fraction) -> list[int]:
        # Drawn per job, so that every order of the jobs meets the same tasks.
        draw = random.Random(f"{seed} {job.name} {kind}")
        return [round(float(seconds) * 1000 * (1 + draw.uniform(-percent, percent) / 100)) for _ in range(count)]

    found = estimate_tasks(
        [tasks(job, "map", job.maps, job.map_s) for job in ordered],
        [tasks(job, "reduce", job.reduces, job.reduce_s) for job in ordered],
        EC2,
    )
    return {key: value / 1000 for key, value in _sums(found).items()}


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


@click.group()
def study() -> None:
    """Chapter 3's job ordering on its workloads."""


@study.command()
@click.argument("directory", type=click.Path(file_okay=False))
def workloads(directory: str) -> None:
    """Write the job files into DIRECTORY."""
    folder = Path(directory)
    folder.mkdir(parents=True, exist_ok=True)
    for name, make in FILES.items():
        temporary = folder / f".{name}.csv.part"
        temporary.write_text(as_csv(make()), encoding="utf-8")
        os.replace(temporary, folder / f"{name}.csv")


def _record(values: dict[str, Any], *arguments: str) -> None:
    command = " ".join(["python -m studies.ordering", *arguments])
    write(None, command, values)


@study.command()
@click.option("--limit", "limit_s", type=click.FloatRange(0, 3600), default=60.0, show_default=True)
def search(limit_s: float) -> None:
    """Table 3.5, and how far the search comes in --limit seconds."""
    _record(measure_search(limit_s), "search", f"--limit {limit_s:g}")


@study.command()
@click.option("--limit", "limit_s", type=click.FloatRange(0, 3600), default=60.0, show_default=True)
@click.option("--seeds", type=click.IntRange(1, 1000), default=20, show_default=True)
def greedy(limit_s: float, seeds: int) -> None:
    """Figs. 3.4 to 3.6: rules and bounds against the best orders found."""
    _record(measure_greedy(limit_s, seeds), "greedy", f"--limit {limit_s:g}", f"--seeds {seeds}")


@study.command()
@click.option("--seeds", type=click.IntRange(1, 1000), default=5, show_default=True)
def variation(seeds: int) -> None:
    """Fig. 3.7: task times that vary."""
    _record(measure_variation(seeds), "variation", f"--seeds {seeds}")


if __name__ == "__main__":
    study()
