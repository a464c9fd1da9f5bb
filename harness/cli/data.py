"""``yarnfair data``: data sets for the papers' workloads, and traces of other systems. Parsing and printing only."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import click

from harness.cli.output import OutputFile, cluster_option, json_option, print_result, say


@click.group()
def data() -> None:
    """Data sets for the papers' workloads, made from a seed; and traces of other systems, converted."""


@data.command()
@json_option
def kinds(as_json: bool) -> None:
    """List the kinds of data sets that can be generated."""
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
    """Make a data set of a KIND, or the files that one still lacks."""
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


@data.command(short_help="The formats of traces that can be converted.")
@json_option
def formats(as_json: bool) -> None:
    """List the kinds of `data convert`, each with its tables, what it lacks, and the assumptions that can be set."""
    from harness.predict.converting import OPTIONS, kinds
    from harness.traces.formats import ConvertibleFormat

    found = []
    lines = []
    for kind, format in kinds().items():
        convertible = format if isinstance(format, ConvertibleFormat) else None
        settable = {OPTIONS[name]: words for name, words in convertible.settable.items()} if convertible else {}
        tables = list(convertible.tables) if convertible else []
        found.append(
            {
                "kind": kind,
                "name": format.name,
                "versions": format.versions,
                "lacks": format.lacks,
                "assumes": format.assumes,
                "tables": tables,
                "settable": settable,
            }
        )
        lines += [f"{kind}: {format.versions}", f"  lacks    {format.lacks}", f"  assumed  {format.assumes}"]
        lines += [f"  tables   {', '.join(tables)}"] if tables else []
        lines += [f"  {option:<17} {words}" for option, words in settable.items()]
    print_result(as_json, {"formats": found}, lines)


def _columns(_context: click.Context, _parameter: click.Parameter, value: str | None) -> tuple[str, ...] | None:
    return None if value is None else tuple(name.strip() for name in value.split(","))


@data.command(short_help="Make a trace of another system's files.")
@click.argument("kind")
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("-o", "--out", required=True, type=OutputFile(), help="The trace to write.")
@cluster_option
@click.option("--nodes", type=click.IntRange(1, 100_000), help="Nodes [as many as the jobs held at once].")
@click.option("--node-memory", type=click.IntRange(1, 2**40), metavar="MB", help="Memory of each node [65536].")
@click.option("--node-vcores", type=click.IntRange(1, 2**20), metavar="N", help="Vcores of each node [16].")
@click.option("--memory", type=click.IntRange(1, 1 << 24), metavar="MB", help="Of a container without a size.")
@click.option("--vcores", type=click.IntRange(1, 1 << 20), metavar="N", help="Of a container without a size.")
@click.option("--am-memory", type=click.IntRange(0, 1 << 24), metavar="MB", help="Of each job's master.")
@click.option("--am-vcores", type=click.IntRange(0, 1 << 20), metavar="N", help="Of each job's master.")
@click.option("--queue-by", metavar="FIELD", help="The field by which jobs are put into queues; none: one queue.")
@click.option(
    "--machine-memory", type=click.IntRange(1, 1 << 24), metavar="MB", help="Machine that sizes are parts of."
)
@click.option("--machine-vcores", type=click.IntRange(1, 1 << 20), metavar="N", help="The same, of CPUs.")
@click.option("--cpu-unit", type=click.FloatRange(1e-9, 1e9), metavar="X", help="CPU figure that is one vcore.")
@click.option("--gpus-as-vcores", is_flag=True, default=None, help="A container has as many vcores as GPUs.")
@click.option("--columns", callback=_columns, metavar="NAMES", help="Columns of a table without a line of names.")
@click.option("--from", "from_s", type=click.FloatRange(0), metavar="S", help="Only jobs submitted from here on.")
@click.option("--until", "until_s", type=click.FloatRange(0), metavar="S", help="Only jobs submitted before.")
@json_option
def convert(
    *,
    kind: str,
    files: tuple[Path, ...],
    out: Path,
    cluster: Path | None,
    nodes: int | None,
    node_memory: int | None,
    node_vcores: int | None,
    memory: int | None,
    vcores: int | None,
    am_memory: int | None,
    am_vcores: int | None,
    queue_by: str | None,
    machine_memory: int | None,
    machine_vcores: int | None,
    cpu_unit: float | None,
    gpus_as_vcores: bool | None,
    columns: tuple[str, ...] | None,
    from_s: float | None,
    until_s: float | None,
    as_json: bool,
) -> None:
    """Make a trace of FILES (files of one trace, or folders of them) of a KIND that `data formats` lists.

    `replay`, `assess`, `plan` and `usage` take it. What the files do not say is assumed, stated, and can be set.
    """
    from harness.base.outputs import check_output, write_output
    from harness.predict.converting import Nodes, check_target, converted
    from harness.traces.accounting import account_lines, account_of
    from harness.traces.formats import Assumptions

    check_output(out, hint="choose another --out FILE")
    assumed = Assumptions(
        memory_mb=memory,
        vcores=vcores,
        am_memory_mb=am_memory,
        am_vcores=am_vcores,
        queue_by=queue_by,
        machine_memory_mb=machine_memory,
        machine_vcores=machine_vcores,
        cpu_unit=cpu_unit,
        gpus_as_vcores=gpus_as_vcores,
        columns=columns,
        from_s=from_s,
        until_s=until_s,
    )
    check_target(files, out)
    given = Nodes(nodes, node_memory, node_vcores)
    with tempfile.TemporaryDirectory(prefix="yarnfair-") as folder:
        made = Path(folder) / "trace.jsonl"
        trace = converted(kind, files, made, assumed=assumed, cluster=cluster, nodes=given)
        write_output(out, made.read_bytes())
    tasks = sum(len(stage.tasks_s) for job in trace.jobs for stage in job.stages)
    document = {
        **account_of(trace.header, trace.jobs, played=False),
        "trace": str(out),
        "applications": len(trace.jobs),
        "tasks": tasks,
        "queues": trace.header.leaves(),
        "nodes": [node.model_dump() for node in trace.header.nodes],
    }
    size = sum(node.count for node in trace.header.nodes)
    lines = [
        *account_lines(trace.header, trace.jobs, played=False),
        f"{out}: {len(trace.jobs):,} applications, {tasks:,} tasks, {len(trace.header.leaves()):,} queues, "
        f"{size:,} nodes",
    ]
    print_result(as_json, document, lines)
