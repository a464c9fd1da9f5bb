"""``yarnfair data generate|verify|kinds``: data sets for the papers' workloads. Parsing and printing only."""

from __future__ import annotations

import sys

import click

from harness.cli.output import json_option, print_result, say


@click.group()
def data() -> None:
    """Data sets for the papers' workloads: made from a seed, resumable, each with a manifest."""


@data.command()
@json_option
def kinds(as_json: bool) -> None:
    """What can be generated."""
    from harness.jobs.data.generate import TPCH
    from harness.jobs.data.kinds import KINDS

    rows = {name: kind.what for name, kind in KINDS.items()}
    rows[TPCH] = "TPC-H's eight tables as parquet, by tpchgen-cli (1GB is scale factor 1)"
    print_result(as_json, {"kinds": rows}, [f"{name:<12} {what}" for name, what in rows.items()])


@data.command()
@click.argument("kind")
@click.option("--size", required=True, help="Approximate size: 10MB, 40GB.")
@click.option("--seed", type=click.IntRange(0, 2**40), default=1, show_default=True)
@click.option("--out", required=True, help="A folder, or webhdfs://host:port/folder.")
@click.option("--jobs", type=click.IntRange(1, 256), default=1, show_default=True, help="Parts made at once.")
@json_option
def generate(kind: str, size: str, seed: int, out: str, jobs: int, as_json: bool) -> None:
    """Make a data set of a KIND, or what is still missing of it."""
    from harness.jobs.data import generate as making

    wanted, target = making.read_size(size), making.open_target(out)
    if sys.stderr.isatty():
        from rich.console import Console
        from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

        columns = (TextColumn(f"{kind:<12}"), BarColumn(bar_width=30), DownloadColumn(), TimeRemainingColumn())
        with Progress(*columns, console=Console(stderr=True)) as bars:
            task = bars.add_task(kind, total=wanted)
            made = making.generate(
                kind,
                wanted,
                seed,
                target,
                lambda done, of, _: bars.update(task, completed=wanted * done // of),
                jobs=jobs,
            )
    else:
        said = [0]

        def step(done: int, of: int, _: int) -> None:
            if done == of or done * 10 // of > said[0]:
                said[0] = done * 10 // of
                say(f"{kind}: {done} of {of} parts")

        made = making.generate(kind, wanted, seed, target, step, jobs=jobs)
    document = made.document()
    text = f"{document['bytes']:,} bytes in {len(made.parts)} file(s) in {target.name}"
    print_result(as_json, {**document, "out": target.name}, [text])


@data.command(short_help="Compare a data set with its manifest.")
@click.argument("place")
@json_option
def verify(place: str, as_json: bool) -> int:
    """Compare the data set in PLACE (a folder, or webhdfs://host:port/folder) with its manifest.

    Exit code 1 when something is wrong.
    """
    from harness.jobs.data import generate as making

    target = making.open_target(place, "PLACE")
    if sys.stderr.isatty():
        from rich.console import Console

        with Console(stderr=True).status("reading") as status:
            wrong = making.verify(target, lambda name: status.update(f"reading {name}"))
    else:
        wrong = making.verify(target)
    print_result(as_json, {"place": place, "wrong": wrong}, wrong or ["all parts are there, with their checksums"])
    return 1 if wrong else 0
