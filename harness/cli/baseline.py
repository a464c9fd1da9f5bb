"""``yarnfair baseline``: records bounds from runs, together with their origin."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import click

from harness.base.outputs import is_standard_output
from harness.cli.output import Number, OutputFile, json_option, print_result


@click.command()
@click.argument("runs", metavar="RUN...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("-o", "--out", required=True, type=OutputFile(), help="The file to write.")
@click.option(
    "--margin",
    type=Number(0, 10, min_open=True),
    metavar="PART",
    help="Allow this part of the median beyond the worst recorded value (0.1: 10 %) instead of a bound by spread.",
)
@click.option("--add", is_flag=True, help="Keep the file's entries for other experiments and policies.")
@json_option
def baseline(runs: tuple[Path, ...], out: Path, margin: float | None, add: bool, as_json: bool) -> None:
    """Record bounds from runs, for `yarnfair check`.

    RUN is a run directory, a folder of them, or a file that `yarnfair bench --json` has printed. Runs of one experiment
    and policy are one entry; five seeds or repeats and more give bounds by their spread.
    """
    from harness.results.baseline import (
        detects,
        document,
        held_by_spread,
        merged,
        read_baseline,
        record,
        write_baseline,
    )
    from harness.results.runs import read_runs

    entries = record(read_runs(runs), margin=margin)
    if add and not is_standard_output(out) and out.exists():
        entries = merged(entries, read_baseline(out).entries)
    command = shlex.join(["yarnfair", *sys.argv[1:]]) if sys.argv[1:2] == ["baseline"] else "yarnfair baseline"
    write_baseline(out, entries, command)
    written = document(entries, command)["entries"]
    told, lines = [], []
    for entry, recorded in zip(written, entries, strict=True):
        told.append(
            {
                **{key: entry[key] for key in ("experiment", "variant", "backend", "why")},
                "runs": len(entry["runs"]),
                "seeds": [run["seed"] for run in entry["runs"]],
                "exact": {seed: len(values) for seed, values in entry["exact"].items()},
                "bounds": {name: one["bound"] for name, one in entry["bounds"].items()},
            }
        )
        lines.append(f"{entry['experiment']}, {entry['variant']}, {entry['backend']}: {len(entry['runs'])} run(s)")
        lines.append(f"  {entry['why']}")
        power = detects(recorded, metrics=max(1, sum(map(held_by_spread, recorded.spread))))
        lines += [f"  a check of one other run: {power}"] if power else []
    print_result(as_json, {"baseline": str(out), "entries": told}, [*lines, str(out)])
