"""What becomes of LTYARN's figures when a value of ``ltyarn`` that no paper prints is halved or doubled; ten seeds.

    python -m studies.sensitivity -o docs/records/ltyarn-sensitivity.json

Beside them other readings of what has no half: Hadoop 2.2's scheduler, slow start, the order of the Spark programs.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from harness.experiments.resolve import load_experiment
from harness.report.gallery.spread import mean_of, spread
from studies.ltyarn_points import LEAVES, Point, figures_at, over_runs
from studies.result import main_of
from studies.seeds import shown
from studies.tables import Values, markdown

SEEDS = range(1, 11)
OWN = "as it is"
#: What is assumed -> (what it is set to, the load with it), at about a half and at two.
ASSUMED: dict[str, tuple[tuple[str, Point], tuple[str, Point]]] = {
    "Facebook's arrivals": (("gaps halved", Point(arrivals=0.5)), ("gaps doubled", Point(arrivals=2.0))),
    "Facebook's reduces, 24 s (the mean of maps and reduces stays 11 s)": (
        ("12 s", Point(facebook_reduce_s=12.0)),
        ("48 s", Point(facebook_reduce_s=48.0)),
    ),
    "Facebook's applications side by side, 13": (("7", Point(facebook_apps=7)), ("26", Point(facebook_apps=26))),
    "containers, 2 GB (Facebook's applications: half of its share)": (
        ("1 GB", Point(container_mb=1024, facebook_apps=27)),
        ("4 GB", Point(container_mb=4096, facebook_apps=6)),
    ),
    "Purdue's splits, 64 MB": (("32 MB", Point(purdue_split_mb=32)), ("128 MB", Point(purdue_split_mb=128))),
    "Purdue's reduces, 28 a job": (("14", Point(purdue_reduces=14)), ("56", Point(purdue_reduces=56))),
    "TPC-H's numbers of tasks": (("halved", Point(tpch_counts=0.5)), ("doubled", Point(tpch_counts=2.0))),
    "TPC-H's stages of one or two tasks, 6 s": (("3 s", Point(tpch_small_s=3.0)), ("12 s", Point(tpch_small_s=12.0))),
    "the work in a Spark job": (("halved", Point(spark_tasks=0.5)), ("doubled", Point(spark_tasks=2.0))),
    "start of the other three queues, 20 s": (
        ("10 s", Point(others_start_s=10.0)),
        ("40 s", Point(others_start_s=40.0)),
    ),
    "sigma of all durations, 0.4 (Spark 0.3)": (("halved", Point(sigmas=0.5)), ("doubled", Point(sigmas=2.0))),
    "LTYARN's Q_0, 20 s": (("10 s", Point(quantum_s=10.0)), ("40 s", Point(quantum_s=40.0))),
}
#: Readings that are no half and no double.
READINGS: dict[str, Point] = {
    "slow start 1.0 in place of Hadoop's 0.05": Point(slow_start=1.0),
    "two thirds of a reduce's work after the last map (`tail`), as Hadoop counts a reduce in thirds": Point(tail=2 / 3),
    "all of it after the last map": Point(tail=1.0),
    "Spark: all k-means before all ALS": Point(spark_order="k-means"),
    "Spark: all ALS before all k-means": Point(spark_order="ALS"),
    "40 Spark executors in place of QKnober's 100": Point(executors=40),
    "`maxAMShare` 0.5 in place of the cap on Facebook's applications": Point(am_share=0.5, facebook_apps=100),
    "reservations from twice the increment on, as later releases": Point(reservation_multiple=2),
    "headroom 0, as Hadoop 2.2's Fair Scheduler": Point(headroom="none"),
    'Hadoop 2.2\'s Fair Scheduler (`hadoop: "2.2"`)': Point(hadoop="2.2"),
    "Hadoop 2.2's Fair Scheduler, splits of 128 MB": Point(hadoop="2.2", purdue_split_mb=128),
}


def _slower(found: Mapping[str, Any], first: str, second: str, leaf: str) -> bool:
    return bool(found[first]["whole_s"][leaf] > found[second]["whole_s"][leaf])


#: Direction of a printed figure -> whether one seed's figures have it.
DIRECTIONS: dict[str, Callable[[Mapping[str, Any]], bool]] = {
    "7a, c": lambda found: found["fair"]["sharing_loss"] < found["ltyarn"]["sharing_loss"],
    "7b": lambda found: all(found["fair"]["fairness_degree"][leaf] < 1.0 for leaf in ("TPC-H", "Spark")),
    "7d": lambda found: min(found["ltyarn"]["fairness_degree"].values()) > 1.0,
    "8 Facebook": lambda found: _slower(found, "ltyarn", "fair", "Facebook"),
    "8 Purdue": lambda found: _slower(found, "fair", "ltyarn", "Purdue"),
    "8 TPC-H": lambda found: _slower(found, "fair", "ltyarn", "TPC-H"),
    "8 Spark": lambda found: _slower(found, "ltyarn", "fair", "Spark"),
}


def over_seeds(point: Point, seeds: Sequence[int] = SEEDS) -> dict[str, Any]:
    """A load's figures over seeds; ``speedup`` only where every run under static partitioning ended."""
    experiment = load_experiment("ltyarn")
    runs = [figures_at(experiment, point, seed) for seed in seeds]
    values: dict[str, Any] = {"seeds": len(runs), "static_ended": sum(run["static"] is not None for run in runs)}
    for policy in ("fair", "ltyarn"):
        own = [run[policy] for run in runs]
        if any(one is None for one in own):
            raise ValueError(f"{point}: a run of {policy} did not end")
        found = [one for one in own if one is not None]
        values[policy] = over_runs(found)
    ended = [{name: one for name, one in run.items() if one is not None} for run in runs]
    values["ltyarn_over_fair"] = {
        leaf: spread([one["fair"]["whole_s"][leaf] / one["ltyarn"]["whole_s"][leaf] for one in ended])
        for leaf in LEAVES
    }
    values["directions"] = {name: sum(map(holds, ended)) for name, holds in DIRECTIONS.items()}
    return values


def values() -> dict[str, Any]:
    """Every load's figures."""
    return {
        OWN: over_seeds(Point()),
        "assumed": {name: {label: over_seeds(point) for label, point in both} for name, both in ASSUMED.items()},
        "readings": {name: over_seeds(point) for name, point in READINGS.items()},
    }


#: The order of the queues in the tables.
_QUEUES = ("Facebook", "Purdue", "TPC-H", "Spark")
_HEAD = (
    "set to",
    "mean loss: memoryless; LTYARN",
    "lasts, of the makespan: memoryless; LTYARN",
    "LTYARN over memoryless, whole workload: Facebook, Purdue, TPC-H, Spark",
    "fairness degree, memoryless",
    "fairness degree, LTYARN",
    "directions of Figs. 7a, c; 7b; 7d; 8 (Facebook, Purdue, TPC-H, Spark), seeds",
)


def _row(own: Values) -> tuple[str, ...]:
    degrees = [
        ", ".join(f"{mean_of(own[policy]['fairness_degree'][queue]):.2f}" for queue in _QUEUES)
        for policy in ("fair", "ltyarn")
    ]
    held = list(own["directions"].values())
    return (
        "; ".join(shown(own[policy]["sharing_loss"], ".3f") for policy in ("fair", "ltyarn")),
        "; ".join(shown(own[policy]["lasts"], ".0f", " %", 100.0) for policy in ("fair", "ltyarn")),
        ", ".join(f"{mean_of(own['ltyarn_over_fair'][queue]):.2f}" for queue in _QUEUES),
        *degrees,
        "; ".join(map(str, held[:3])) + "; " + ", ".join(map(str, held[3:])),
    )


def assumed_table(values: Values) -> str:
    """Every assumed value at a half and at two."""
    rows = [(OWN, "", *_row(values[OWN]))]
    rows += [
        (name if at == 0 else "", label, *_row(own))
        for name, both in values["assumed"].items()
        for at, (label, own) in enumerate(both.items())
    ]
    return markdown(("assumed value", *_HEAD), rows)


def readings_table(values: Values) -> str:
    """The other readings."""
    rows = [(name, *_row(own)) for name, own in values["readings"].items()]
    return markdown(("reading", *_HEAD[1:]), rows)


TABLES: dict[str, tuple[str, Callable[[Values], str]]] = {
    "ltyarn-assumed": ("ltyarn-sensitivity", assumed_table),
    "ltyarn-readings": ("ltyarn-sensitivity", readings_table),
}

main = main_of("sensitivity", __doc__, values)

if __name__ == "__main__":
    sys.exit(main())
