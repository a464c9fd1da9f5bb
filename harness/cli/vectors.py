"""``yarnfair vectors``: QKnober's simulation of several resources on servers of different sizes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from harness.base.errors import CallError
from harness.cli.output import Number, json_option, print_json

NAMES = ("static", "drf", "tetris", "qknober")


@click.command()
@click.option("--trace", type=click.Path(path_type=Path), help="Folder of Google's 2011 trace, instead of synthetic.")
@click.option("--users", type=click.IntRange(1, 10_000), default=100, show_default=True)
@click.option("--machines", type=click.IntRange(1, 100_000), help="1000 synthetic ones, or all of the trace's.")
@click.option("--hours", type=Number(0.01, 1000), help="24 synthetic ones, or all of the trace.")
@click.option("--start-h", type=Number(0, 1000), help="Trace only: begin so many hours after its first task [0].")
@click.option("--load", type=Number(0.01, 10), help="Synthetic only: of the capacity [1.2].")
@click.option("--seed", type=click.IntRange(0), default=1, show_default=True)
@click.option("--policy", "policies", multiple=True, type=click.Choice(NAMES), help="Repeat for more [all].")
@click.option("--knob", "knobs", multiple=True, type=Number(0, 1), help="rho, or f of tetris [0 to 1 by 0.2].")
@json_option
def vectors(
    trace: Path | None,
    users: int,
    machines: int | None,
    hours: float | None,
    start_h: float | None,
    load: float | None,
    seed: int,
    policies: tuple[str, ...],
    knobs: tuple[float, ...],
    as_json: bool,
) -> None:
    """Tasks of CPU, memory and disk on heterogeneous servers, under static, drf, tetris and qknober.

    The load is SYNTHETIC, of the shape of Google's cluster trace, unless --trace gives the trace itself. Speed-ups are
    over the first run. What is simulated: docs/reference/vectors.md.
    """
    from harness.kinds.vectors.command import KNOBS, simulation

    if trace is not None and load is not None:
        raise CallError("a trace has the load that it has", where="--load", mend="drop --load, or --trace")
    if trace is None and start_h is not None:
        raise CallError("a synthetic load has no window", where="--start-h", mend="drop --start-h, or give --trace")
    document = simulation(
        trace=trace,
        users=users,
        machines=machines,
        hours=hours,
        start_h=start_h or 0.0,
        load=1.2 if load is None else load,
        seed=seed,
        policies=policies or NAMES,
        knobs=knobs or KNOBS,
        progress=lambda text: click.echo(f"running {text} ...", err=True),
    )
    if as_json:
        print_json(document)
    else:
        click.echo(table(document))


def table(document: dict[str, Any]) -> str:
    """A line a run, within 80 columns."""
    load = document["load"]
    kind = "synthetic" if load["synthetic"] else "trace"
    lines = [
        f"{kind}: {load['users']} users, {load['tasks']:,} tasks, {load['machines']:,} machines",
        "",
        "policy    knob  makespan s  speed-up     utilisation %  soft f.   theta",
    ]
    for run in document["runs"]:
        used = " ".join(f"{100 * part:5.1f}" for part in run["utilisation"])
        knob = "" if run["knob"] is None else f"{run['knob']:g}"
        theta = "" if run["theta"] is None else f"{run['theta']:.2f}"
        lines.append(
            f"{run['policy']:<8} {knob:>5} {run['makespan_s']:>11,.0f} {run['speedup']:>9.3f} {used:>17} "
            f"{run['soft_fairness']:>8.2f} {theta:>7}"
        )
    return "\n".join(lines)
