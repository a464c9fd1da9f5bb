"""The tables of docs/reference/bench.md: what `yarnfair bench` measured, what peers take for the same work.

A record of `yarnfair bench --engine` has fewer rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

_LINE = "| measurement | figure | per step, or million steps | ratio |\n|---|---|---|---|\n"


def _engine(name: str, row: Mapping[str, Any]) -> str:
    policy, _, queues = name.partition("_") if name != "user_policy" else ("", "", "")
    what = "a user's policy in Python" if name == "user_policy" else f"`{policy}`"
    what += ", 1,000 queues" if queues else ""
    ratio = f"{row['of_4_queues']:.2f} of 4 queues" if "of_4_queues" in row else ""
    figure = f"{row['events_per_s']:,} events/s at {100 * row['load']:.1f} % load"
    return f"| {what} | {figure} | {row['core_ratio']:.5f} | {ratio} |"


def _scale(row: Mapping[str, Any]) -> str:
    figure = f"{row['events_per_s']:,} events/s; peak {row['peak_mb']:,.0f} MiB"
    what = f"`ltrf`, {row['nodes']:,} nodes, {row['applications']:,} applications"
    return f"| {what} | {figure} | {row['core_ratio']:.5f} | {row['of_100_nodes']:.2f} of 100 nodes |"


def _others(values: Mapping[str, Any]) -> Iterator[str]:
    """What `--engine` leaves out."""
    cost, day, first = values["cost"], values["fb_day"], values["first"]
    yield from map(_scale, values["scale"].values())
    yield (
        f"| FB day, control every second | {day['cpu_s']:.1f} s of CPU; {day['events']:,} events; peak"
        f" {day['peak_mb']:.0f} MiB, {day['peak_before_mb']:.0f} before it began | {cost['fb_day']:,.0f} | |"
    )
    for row in values["growth"]:
        what = f"LTRF inside, {row['nodes']:,} nodes, {row['days']:.3g} days"
        yield f"| {what} | {row['events_per_s']:,} events/s; peak {row['peak_mb']:.0f} MiB | | |"
    yield f"| imports | {first['import_cpu_s']:.2f} s of CPU | {cost['import']:,.0f} | |"
    yield (
        f"| an engine compiled | {first['compile_wall_s']:.0f} s, {first['compile_cpu_s']:.0f} of CPU |"
        f" {cost['compile']:,.0f} | |"
    )
    yield (
        f"| `yarnfair run demo` with its report | {first['run_wall_s']:.1f} s, {first['run_cpu_s']:.1f} of CPU |"
        f" {cost['run']:,.0f} | |"
    )
    cells = values["cells"]
    for place, what in (("processes", "processes"), ("dask", "Dask workers")):
        if row := cells.get(place):
            figure = f"{1000 * row['own_s']:.0f} ms each, {1000 * row['overhead_s']:.1f} ms besides"
            yield f"| {cells['cells']:,} cells on two {what} | {figure} | | {100 * row['busy']:.0f} % busy |"
    for part, kind, word in (("control", "tick", "a control tick"), ("decision", "plan", "a plan")):
        for policy, series in values[part].items():
            sizes = ", ".join(f"{row['queues']:,}" for row in series)
            times = ", ".join(f"{row['ms']:.2f}" for row in series)
            steps = cost.get(f"{kind}_{policy}_1000")
            said = f"{steps:.2f}" if steps is not None else ""
            yield f"| {word}, `{policy}`, {sizes} queues | {times} ms | {said} | |"


def bench(values: dict[str, Any]) -> str:
    """One row each thing measured."""
    rows = [_engine(name, row) for name, row in values["engine"].items()]
    rows += _others(values) if "scale" in values else ()
    return _LINE + "\n".join(rows)


def peers(values: dict[str, Any]) -> str:
    """The same work by others and by this one, and what each leaves out."""
    count = values["tasks"] + values["jobs"]
    rows = ["| work | by | figure | leaves out |", "|---|---|---|---|"]
    work = f"{values['tasks']:,} tasks of {values['task_s']} s on {values['nodes']:,} nodes, Fair Scheduler"
    left = {
        "sls": ("Hadoop SLS 3.4.2", "virtual time, control from outside, policies of one's own"),
        "ours": ("`yarnfair run`", "Hadoop's own RM: its decisions are reproduced, not its code's speed"),
    }
    for name, (by, without) in left.items():
        row = values[name]
        figure = f"{row['wall_s']:.0f} s ({row['cpu_s']:.0f} of CPU), {row['peak_mb']:,.0f} MiB"
        rows.append(f"| {work} | {by} | {figure}; {count / row['wall_s']:,.0f} allocations/s | {without} |")
    if division := values.get("division"):
        sizes = ", ".join(f"{row['queues']:,}" for row in division["kai"])
        left = {
            "kai": ("KAI's fair-share simulator over HTTP", "time, jobs, nodes: one division"),
            "ours": ("`decay-kai`'s division", "the protocol"),
        }
        for name, (by, without) in left.items():
            times = ", ".join(f"{row['ms']:.2f}" for row in division[name])
            figure = f"{times} ms, {division[f'{name}_peak_mb']} MiB"
            rows.append(f"| a division among {sizes} queues | {by} | {figure} | {without} |")
    return "\n".join(rows)


def first_run(values: dict[str, Any]) -> str:
    """A fresh clone's `make run`, and again."""
    rows = ["| step | first figures after, s | whole, s | of CPU |", "|---|---|---|---|"]
    words = {"install": "installation", "first": "first `make run` after it", "second": "second `make run`"}
    for name, what in words.items():
        row = values[name]
        first = f"{row['first_s']:.1f}" if name != "install" else ""
        rows.append(f"| {what} | {first} | {row['wall_s']:.1f} | {row['cpu_s']:.1f} |")
    return "\n".join(rows)


TABLES: dict[str, tuple[str, Callable[[dict[str, Any]], str]]] = {
    "bench": ("bench", bench),
    "peers": ("peers", peers),
    "first-run": ("first-run", first_run),
}
