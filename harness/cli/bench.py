"""``yarnfair bench``: the performance figures of this machine."""

from __future__ import annotations

from typing import Any

import click

from harness.cli.output import json_option, print_result


@click.command()
@click.option("--full", is_flag=True, help="Longer series: some hours instead of less than ten minutes.")
@click.option("--engine", "engine_only", is_flag=True, help="Only the engine under load: what `check` holds.")
@json_option
def bench(full: bool, engine_only: bool, as_json: bool) -> None:
    """Measure the engine under load, a day of Facebook with control every second, growth, decisions, job ordering.

    Prints absolute figures, and ratios to calibration loops that run between the measured stretches.
    docs/reference/bench.md describes each figure.
    """
    from harness import __version__
    from harness.bench.run import bench as measure
    from harness.results.store import machine

    figures = measure(full, lambda text: click.echo(f"measuring {text} ...", err=True), engine_only=engine_only)
    # As for all records: the command, its version and the machine.
    words = ["yarnfair bench", *(["--full"] if full else []), *(["--engine"] if engine_only else []), "--json"]
    document = {"command": " ".join(words), "version": __version__, "machine": machine(), "values": figures}
    print_result(as_json, document, [table(figures)])


def table(figures: dict[str, Any]) -> str:
    """Return the figures as a table in 80 columns."""
    lines = ["Engine under load          events/s   a step on 8 MiB   on 256 KiB    load"]
    for name, row in figures["engine"].items():
        lines.append(
            f"  {name:<22} {row['events_per_s']:>10,} {row['calibration_ratio']:>17.5f} {row['core_ratio']:>12.5f}"
            f" {100 * row['load']:>5.1f} %"
        )
    took = f"All of it took {figures['wall_s']:.0f} s."
    if "fb_day" not in figures:
        return "\n".join([*lines, took])
    lines += ["", "Runs                  nodes    days      events   wall s  events/s  peak MiB"]
    day = figures["fb_day"]
    year = figures["idle_year"]
    rows = [("FB day, control 1 s", day["nodes"], 1.0, day), ("1,000 jobs, a year", year["nodes"], 365.0, year)]
    rows += [("growth", row["nodes"], row["days"], row) for row in figures["growth"]]
    for label, nodes, days, row in rows:
        lines.append(
            f"  {label:<19} {nodes:>5,} {days:>7.3g} {row['events']:>11,} {row['wall_s']:>8.1f} "
            f"{row['events_per_s']:>9,} {row['peak_mb']:>9.0f}"
        )
    lines += ["", "Engine by size     nodes  applications   events/s   of 100 nodes  peak MiB"]
    for row in figures["scale"].values():
        lines.append(
            f"  {'ltrf':<14} {row['nodes']:>8,} {row['applications']:>13,} {row['events_per_s']:>10,} "
            f"{row['of_100_nodes']:>14.2f} {row['peak_mb']:>9.0f}"
        )
    first = figures["first"]
    lines += [
        "",
        f"Beginning: imports {first['import_cpu_s']:.2f} s of CPU; compiling {first['compile_wall_s']:.0f} s "
        f"({first['compile_cpu_s']:.0f} of CPU);",
        f"  `yarnfair run demo` with its report {first['run_wall_s']:.1f} s ({first['run_cpu_s']:.1f} of CPU)",
        "Short cells on two workers        own s each  overhead s      both busy",
    ]
    for place in ("processes", "dask"):
        if row := figures["cells"].get(place):
            lines.append(f"  {place:<28} {row['own_s']:>13.3f} {row['overhead_s']:>11.3f} {100 * row['busy']:>12.0f} %")
    for what, title in (("decision", "A decision, ms, by queues "), ("control", "A control tick, ms, by queues")):
        sizes = [row["queues"] for row in next(iter(figures[what].values()))]
        lines += ["", title + "".join(f"{size:>10,}" for size in sizes)]
        for name, series in figures[what].items():
            lines.append(f"  {name:<{len(title) - 2}}" + "".join(f"{row['ms']:>10.3f}" for row in series))
    order = figures.get("order")
    if order:
        lines += ["", f"Job ordering: 9 jobs in {order['jobs_9_s']:.2f} s; {order['jobs_in_60_s']} jobs within 60 s"]
    return "\n".join([*lines, took])
