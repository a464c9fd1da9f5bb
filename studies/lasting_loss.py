"""Where does LTYARN's lasting loss under memoryless sharing come from? The record and the map of one search.

    nice -n 15 python -m studies.lasting_loss -o docs/records/lasting-loss.json
    python -m studies.lasting_loss --map -o docs/records/lasting-loss-map.json
    python -m studies.lasting_loss -o docs/records/lasting-loss-map.json --figure docs/decisions/where-it-matters.svg

What counts as printed was written down before the first run: studies.lasting_loss_points.

The search goes from coarse to fine: points spread evenly over the whole space (a Halton sequence), then points around
the best ones, then the best under ten seeds; the map besides, its first seed in the search, five by ``--map``. Each
result is kept as it comes (``--kept``), so a search that was stopped goes on where it was.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from harness.base.files import read_json, write_text
from harness.experiments.resolve import load_experiment
from studies.lasting_loss_points import (
    CHECKS,
    FIGURE_7,
    around,
    distances,
    measure,
    met,
    rank,
    spread,
)
from studies.ltyarn_points import DIGITS, Point, most_speedup, over_runs
from studies.result import write

#: The map: how long Facebook's and Purdue's tasks hold containers, against how long the tasks of TPC-H and Spark take,
#: who pause and come back. Factors.
MAP_TASKS = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
MAP_OWN = (0.25, 0.5, 1.0, 2.0)
#: A reading that an earlier search had found to have the directions of Figs. 7 and 8.
KNOWN = Point(executors=40, spark_tasks=8.0, purdue_reduce_tasks=3.5)
MAP = [(tasks, own) for tasks in MAP_TASKS for own in MAP_OWN]
#: Steps around a best point, as powers of 2; how many best points each time, and how often; the seeds
#: of the last step, and of the map.
STEPS = (1.0,)
BEST = 2
ROUNDS = 1
SEEDS = tuple(range(1, 11))
MAP_SEEDS = (1, 2, 3, 4, 5)
#: A mean loss of 0.5 that lasts needs a queue at this degree or below.
DEEP = 0.75


def _of_map(tasks: float, own: float) -> Point:
    return Point(facebook_tasks=tasks, purdue_tasks=tasks, tpch_tasks=own, spark_tasks=own)


class Search:
    """Results by point and seed, kept in a file as they come."""

    def __init__(self, kept: Path) -> None:
        self._kept = kept
        self._known: dict[str, tuple[Point, int, dict[str, Any] | None]] = {}
        #: What this search has asked for: whatever else the file keeps has no part in it.
        self.found: dict[str, tuple[Point, int, dict[str, Any] | None]] = {}
        self.experiment = load_experiment("ltyarn")
        if kept.exists():
            for line in kept.read_text(encoding="utf-8").splitlines():
                try:
                    one = json.loads(line)
                except ValueError:
                    continue  # cut off when the search was stopped
                point = Point(**one["point"])
                self._known[point.key(one["seed"])] = point, one["seed"], one["found"]

    def at(self, point: Point, seed: int = 1) -> dict[str, Any] | None:
        """The result at a point: known, or measured now. None where a run did not end."""
        key = point.key(seed)
        if key not in self._known:
            value = measure(self.experiment, point, seed)
            self._known[key] = point, seed, value
            line = json.dumps({"point": asdict(point), "seed": seed, "found": value})
            with self._kept.open("a", encoding="utf-8") as file:
                file.write(line + "\n")
        self.found[key] = self._known[key]
        return self.found[key][2]

    def best(self, checks: int, count: int) -> list[Point]:
        """The points of the first seed that meet most of the first ``checks`` checks, then those least off."""
        known = [(point, value) for point, seed, value in self.found.values() if seed == 1 and value is not None]
        known.sort(key=lambda one: (rank(one[1], checks), one[0].key(1)))
        return [point for point, _ in known[:count]]

    def nearest(self) -> list[Point]:
        """The best by Fig. 7 and by both figures."""
        return list(dict.fromkeys([*self.best(FIGURE_7, BEST), *self.best(CHECKS, BEST)]))

    def run(self, coarse: int) -> None:
        """All of it, in the order in which it says most."""
        self.at(Point())
        self.at(KNOWN)
        for tasks, own in MAP:
            self.at(_of_map(tasks, own))
        for index in range(1, coarse + 1):
            self.at(spread(index))
        for step in STEPS:
            for _ in range(ROUNDS):
                before = self.nearest()
                for point in before:
                    for other in around(point, step):
                        self.at(other)
                if self.nearest() == before:
                    break
        for point in dict.fromkeys([Point(), KNOWN, *self.nearest()]):
            for seed in SEEDS:
                self.at(point, seed)


def _mean(values: Sequence[float]) -> float:
    return round(math.fsum(values) / len(values), DIGITS)


def _short(runs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """A point's figures that the page shows, over seeds, and how often each check is met."""
    figures: dict[str, Any] = {
        "seeds": len(runs),
        "met": [met(run) for run in runs],
        "met_of_figure_7": [FIGURE_7 - int(rank(run, FIGURE_7)[0]) for run in runs],
        "checks": _counts(runs),
    }
    for policy in ("fair", "ltyarn"):
        figures[policy] = over_runs([run[policy] for run in runs])
        del figures[policy]["makespan_s"]  # the record has the loss's end as a part of it
    return figures


def _counts(runs: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """By check: in how many of the runs it is met."""
    counts: dict[str, int] = {}
    for run in runs:
        for name, distance in distances(run).items():
            counts[name] = counts.get(name, 0) + (distance == 0.0)
    return counts


def _exclusion(runs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """TPC-H where it ends below its degree under static partitioning: its speed-up beside `most_speedup`."""
    below = [run for run in runs if run["fair"]["fairness_degree"]["TPC-H"] < run["static"]["fairness_degree"]["TPC-H"]]
    over = [run["fair"]["speedup"]["TPC-H"] - most_speedup(run["fair"], run["static"], "TPC-H") for run in below]
    deep = [run["fair"] for run in runs if run["fair"]["fairness_degree"]["TPC-H"] <= DEEP]
    return {
        "loads": len(below),
        "greatest_over_bound": max(over, default=0.0),
        "least_over_bound": min(over, default=0.0),
        "as_fast_as_static": sum(run["fair"]["speedup"]["TPC-H"] >= 1.0 for run in below),
        "deep": {
            "degree": DEEP,
            "loads": len(deep),
            "fastest": max((one["speedup"]["TPC-H"] for one in deep), default=0.0),
        },
    }


def values(search: Search) -> dict[str, Any]:
    """The record's values."""
    first = [value for _, seed, value in search.found.values() if seed == 1 and value is not None]
    best = []
    for point in dict.fromkeys([*search.nearest(), KNOWN]):
        known = [search.found.get(point.key(seed)) for seed in SEEDS]
        runs = [one[2] for one in known if one is not None and one[2] is not None]
        best.append({"point": asdict(point), **_short(runs)})
    own = [one[2] for seed in SEEDS if (one := search.found[Point().key(seed)])[2] is not None]
    half = [value for value in first if distances(value)["fair: mean loss 0.5"] == 0.0]
    late = [value for value in first if distances(value)["ltyarn: last loss 650 s"] == 0.0]
    return {
        "points": len(first),
        "unfinished": sum(seed == 1 and value is None for _, seed, value in search.found.values()),
        "checks": _counts(first),
        "most_met": max((met(value) for value in first), default=0),
        "most_met_of_figure_7": max((FIGURE_7 - int(rank(value, FIGURE_7)[0]) for value in first), default=0),
        "largest_mean_loss_fair": min((value["fair"]["sharing_loss"] for value in first), default=0.0),
        # Where the one half of Fig. 7 holds, what becomes of the other, and of Fig. 8.
        "half": {
            "points": len(half),
            "least_loss_ltyarn": min((-value["ltyarn"]["sharing_loss"] for value in half), default=0.0),
            "ltyarn_ends_by": sum(
                value["ltyarn"]["last_loss_s"] < 0.98 * value["ltyarn"]["makespan_s"] for value in half
            ),
            "as_fast_as_static": sum(
                min(value["fair"]["speedup"][leaf] for leaf in ("TPC-H", "Spark")) >= 0.98 for value in half
            ),
        },
        "late": {
            "points": len(late),
            "largest_fair_loss": max((-value["fair"]["sharing_loss"] for value in late), default=0.0),
        },
        "exclusion": _exclusion(first),
        "own": _short([one for one in own if one is not None]),
        "best": best,
    }


def map_values(search: Search) -> dict[str, Any]:
    """The map under all seeds: the mean losses of each, and the last loss over the makespan."""
    cells = []
    for tasks, own in MAP:
        cell: dict[str, Any] = {"tasks": tasks, "own": own}
        for policy in ("fair", "ltyarn"):
            cell[policy], cell[f"{policy}_lasts"] = [], []
        for seed in MAP_SEEDS:
            found = search.at(_of_map(tasks, own), seed)
            if found is None:
                raise SystemExit(f"the load of factors {tasks:g} and {own:g} with seed {seed} did not end")
            for policy in ("fair", "ltyarn"):
                one = found[policy]
                cell[policy].append(one["sharing_loss"])
                cell[f"{policy}_lasts"].append(round(one["last_loss_s"] / one["makespan_s"], DIGITS))
        cells.append(cell)
    return {"seeds": list(MAP_SEEDS), "map": cells}


# --- the figure ---

_CELL, _ABOVE, _LEFT, _BETWEEN = 58, 62, 74, 40
_NAMES = {"fair": "Fair Scheduler (memoryless)", "ltyarn": "LTYARN (long-term)"}


def figure(cells: Sequence[Mapping[str, Any]]) -> str:
    """The map as SVG: a cell a load, the loss in it (mean over time and seeds), darker the more.

    Framed: it lasts to the end under every seed."""
    known = {(cell["tasks"], cell["own"]): cell for cell in cells}
    panel = _CELL * len(MAP_TASKS)
    width, height = _LEFT + 2 * panel + _BETWEEN + 10, _ABOVE + _CELL * len(MAP_OWN) + 50
    out = [
        f'<svg viewBox="0 0 {width} {height}" role="img" xmlns="http://www.w3.org/2000/svg" '
        'font-family="sans-serif" font-size="13">',
        "<title>Where long-term fairness matters: the mean of the sharing loss</title>",
        f'<rect width="{width}" height="{height}" fill="#fff"/>',
    ]
    for at, (policy, name) in enumerate(_NAMES.items()):
        left = _LEFT + at * (panel + _BETWEEN)
        out.append(f'<text x="{left + panel / 2:g}" y="22" text-anchor="middle" font-weight="bold">{name}</text>')
        for column, tasks in enumerate(MAP_TASKS):
            x = left + column * _CELL
            out.append(f'<text x="{x + _CELL / 2:g}" y="{_ABOVE - 8}" text-anchor="middle">{tasks:g}</text>')
            for row, own in enumerate(reversed(MAP_OWN)):
                y, cell = _ABOVE + row * _CELL, known.get((tasks, own))
                loss = -math.fsum(cell[policy]) / len(cell[policy]) if cell else 0.0
                part = min(math.sqrt(loss / 0.8), 1.0)
                fill = f"rgb({255 - round(71 * part)},{255 - round(188 * part)},{255 - round(245 * part)})"
                lasts = cell is not None and min(cell[f"{policy}_lasts"]) >= 0.98 and loss >= 0.05
                border = 'stroke="#000" stroke-width="2"' if lasts else 'stroke="#bbb"'
                size = f'width="{_CELL - 4}" height="{_CELL - 4}"'
                out.append(f'<rect x="{x + 2}" y="{y + 2}" {size} fill="{fill}" {border}/>')
                ink, words = ("#fff" if part > 0.75 else "#222"), f"{loss:.2f}" if cell else "-"
                out.append(
                    f'<text x="{x + _CELL / 2:g}" y="{y + _CELL / 2 + 5:g}" text-anchor="middle" fill="{ink}">'
                    f"{words}</text>"
                )
                if at == 0 and column == 0:
                    out.append(f'<text x="{left - 8}" y="{y + _CELL / 2 + 5:g}" text-anchor="end">{own:g}</text>')
    bottom = _ABOVE + _CELL * len(MAP_OWN)
    middle = (_ABOVE + bottom) / 2
    out.append(
        f'<text x="{width / 2:g}" y="{bottom + 22}" text-anchor="middle">across: task times of Facebook and Purdue, '
        "who hold containers (1: 11 s, and what thesis Table 3.2 prints)</text>"
    )
    out.append(
        f'<text x="{width / 2:g}" y="{bottom + 42}" text-anchor="middle">up: task times of TPC-H and Spark, who pause '
        "and come back (1: 24 s and 2 s); framed: the loss lasts to the end under every seed</text>"
    )
    out.append(
        f'<text x="16" y="{middle:g}" text-anchor="middle" transform="rotate(-90 16 {middle:g})">'
        "TPC-H, Spark</text></svg>"
    )
    return "\n".join(out) + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit code."""
    parser = argparse.ArgumentParser(prog="python -m studies.lasting_loss", description=__doc__)
    parser.add_argument("-o", "--out", type=Path, required=True)
    parser.add_argument("--kept", type=Path, help="[default: OUT with .kept, removed in the end]")
    parser.add_argument("--coarse", type=int, default=600, help="points of the first, even spread")
    parser.add_argument("--map", action="store_true", help="the map under all seeds, and no search")
    parser.add_argument("--figure", type=Path, help="draw the map of the record OUT into this file, and search nothing")
    given = parser.parse_args(arguments)
    if given.figure is not None:
        write_text(given.figure, figure(read_json(given.out)["values"]["map"]))
        return 0
    kept = given.kept or given.out.with_suffix(".kept")
    kept.parent.mkdir(parents=True, exist_ok=True)
    search = Search(kept)
    if given.map:
        found = map_values(search)
    else:
        search.run(given.coarse)
        print(f"{len(search.found)} results", file=sys.stderr)
        found = values(search)
    write(given.out, f"python -m studies.lasting_loss{' --map' * given.map} -o docs/records/{given.out.name}", found)
    if given.kept is None:
        kept.unlink()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
