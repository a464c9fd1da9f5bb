"""``yarnfair job list|run``: the papers' applications as programs that compute. Parsing and printing only."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harness.base.errors import CallError, InputError
from harness.cli.output import Number, echo_wrapped, json_option, named_values, print_json

if TYPE_CHECKING:
    from harness.jobs.data.targets import Target
    from harness.jobs.engines.attempts import Attempt
    from harness.jobs.engines.base import Done, ProgramCluster, Request
    from harness.jobs.engines.runner import ProgramRunner
    from harness.yarn.answers import AppStatus


@click.group()
def job() -> None:
    """The papers' applications as programs that compute, on a real cluster, their answers checked."""


@job.command("list")
@json_option
def list_them(as_json: bool) -> None:
    """What can be run, and on which data."""
    from harness.jobs.engines import every, groups

    if as_json:
        rows = [
            {
                "name": one.name,
                "suite": one.suite,
                "what": one.what,
                "data": list(one.data),
                "settings": dict(one.settings),
            }
            for one in every().values()
        ]
        print_json({"applications": rows, "groups": {name: list(members) for name, members in groups().items()}})
        return
    for one in every().values():
        echo_wrapped(f"{one.name:<16} {one.suite:<9} {'+'.join(one.data):<20} {one.what}", hang=48)


@job.command()
@click.argument("name")
@click.option(
    "--input", "inputs", multiple=True, required=True, help="A data set: a folder, or webhdfs://host:port/..."
)
@click.option(
    "--output", required=True, help="A folder that is not there yet (MapReduce: also webhdfs://host:port/...)."
)
@click.option("--rm", help="Another ResourceManager's address, http://host:port; its nodes see this folder.")
@click.option("--state", help="The cluster's folder, as for `yarnfair cluster up`.")
@click.option(
    "--backend", type=click.Choice(["local", "docker"]), default="local", show_default=True, help="Which cluster."
)
@click.option("--python", help="The nodes' Python (default: this one; in containers /usr/bin/python3).")
@click.option("--queue", default="default", show_default=True)
@click.option("--maps", default=4, show_default=True, help="About so many maps (Spark: tasks that read).")
@click.option("--reduces", default=2, show_default=True, help="So many reduces (Spark: partitions after a shuffle).")
@click.option("--task-mb", type=int, help="A task's container, MiB [default: 512]; Spark: an executor's [1024].")
@click.option("--am-mb", type=int, help="The application master's, MiB [default: 512]; Spark: and driver's [1024].")
@click.option("--executors", default=2, show_default=True, help="Spark: how many, held until the end.")
@click.option("--executor-cores", default=1, show_default=True, help="Spark: tasks at once in each, and its vcores.")
@click.option("--set", "settings", multiple=True, metavar="NAME=VALUE", help="A setting of the application.")
@click.option(
    "--property", "properties", multiple=True, metavar="NAME=VALUE", help="A property of the job (-D, --conf)."
)
@click.option("--no-check", is_flag=True, help="Leave the answer unchecked (it is checked in this machine's memory).")
@click.option("--tasks", type=click.Path(path_type=Path), help="Write the task attempts' times there, as parquet.")
@click.option("--timeout", default=1800.0, type=Number(1, 864000), show_default=True, help="Seconds.")
@json_option
def run(
    name: str,
    inputs: tuple[str, ...],
    output: str,
    rm: str | None,
    state: str | None,
    backend: str,
    queue: str,
    maps: int,
    reduces: int,
    task_mb: int | None,
    am_mb: int | None,
    executors: int,
    executor_cores: int,
    settings: tuple[str, ...],
    properties: tuple[str, ...],
    python: str | None,
    no_check: bool,
    tasks: Path | None,
    timeout: float,
    as_json: bool,
) -> int:
    """Run the program NAME. Inputs and output lie where this machine and all nodes see them alike (Spark's programs:
    on this machine, and are copied into a Docker cluster), or in HDFS (MapReduce's). `tpch` runs Q1, Q9, Q12 and Q17 by
    Spark, one after another, `hive` by Hive on Tez.

    Exit code 4 when the job fails or its answer is wrong, 5 when it does not end in time.
    """
    from harness.jobs.engines import find, members
    from harness.jobs.engines.base import Request
    from harness.jobs.engines.runner import ProgramRunner, check_request, document

    # In full: for "default" the Fair Scheduler's rules look for the user's own queue.
    queue = queue if queue == "root" or queue.startswith("root.") else f"root.{queue}"
    names, places, out = members(name), tuple(_place(text, "--input") for text in inputs), _place(output, "--output")
    if len(names) > 1 and not isinstance(out, Path):
        raise CallError(f"{name} writes folders of this machine, not HDFS", where="--output")
    asked = Request(
        name,
        places,
        out,
        queue,
        maps,
        reduces,
        task_mb,
        am_mb,
        executors,
        executor_cores,
        named_values(settings, "--set"),
        not no_check,
        timeout,
        named_values(properties, "--property"),
    )
    requests = []
    for one in map(find, names):
        to = out / one.name if len(names) > 1 and isinstance(out, Path) else out
        requests.append(replace(asked, program=one.name, output=to))
        check_request(requests[-1])
    documents = []
    work = out.absolute().parent if isinstance(out, Path) else Path.cwd()
    with _cluster(rm, state, backend, work, python) as cluster:
        client = ProgramRunner(cluster)
        measured: list[tuple[list[Attempt], int]] = []
        try:
            for request in requests:
                try:
                    done = _followed(client, request)
                finally:
                    measured.append((client.attempts, client.zero_ms))
                documents.append(document(request, done))
                if not as_json:
                    _print(documents[-1], title=len(requests) > 1)
        finally:
            # Of one that failed or was interrupted too.
            if tasks is not None and any(attempts for attempts, _ in measured):
                _write_tasks(tasks, measured)
    if as_json:
        print_json(documents[0] if len(requests) == 1 else {"group": name.lower(), "runs": documents})
    wrong = [found for found in documents if found["answer"] is not None and not found["answer"]["right"]]
    for found in wrong:
        click.echo(f"yarnfair: {found['output']}: the answer is wrong: {found['answer']['wrong']}", err=True)
    return 4 if wrong else 0


def _place(text: str, option: str) -> Path | Target:
    """A folder of this machine, or one in HDFS. Raises CallError."""
    from harness.jobs.data.targets import FolderTarget, open_target

    found = open_target(text, option)
    return found.folder if isinstance(found, FolderTarget) else found


def _say(text: str) -> None:
    click.echo(f"yarnfair: {text}", err=True)


def _followed(client: ProgramRunner, request: Request) -> Done:
    """One program to its end, with a bar on a terminal."""
    if not sys.stderr.isatty():
        return client.run(request)
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True)) as bars:
        bar = bars.add_task(request.program, total=100)

        def step(apps: list[AppStatus]) -> None:
            if apps:
                bars.update(bar, completed=apps[-1].progress_percent, description=apps[-1].id)

        return client.run(request, step)


def _write_tasks(file: Path, measured: list[tuple[list[Attempt], int]]) -> None:
    """The attempts of all runs, in seconds since the first was submitted."""
    from harness.jobs.engines.attempts import attempts_table

    zero_ms = next(zero for attempts, zero in measured if attempts)
    try:
        attempts_table([one for attempts, _ in measured for one in attempts], zero_ms).to_parquet(file)
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror}", where=str(file)) from None


def _print(found: dict[str, Any], *, title: bool) -> None:
    if title:
        click.echo(f"{found['application']}:")
    for kind, row in found["tasks"].items():
        click.echo(
            f"{kind:<8} {row['finished']:>4} of {row['attempts']} attempts finished, "
            f"mean {row['mean_s']:.2f} s, longest {row['longest_s']:.2f} s"
        )
    for app in found["applications"]:
        click.echo(f"{app['id']} {app['final_status']} after {app['elapsed_s']:.1f} s, {app['memory_mb_s']} MB s")
    answer = found["answer"]
    if answer is None:
        click.echo("the answer was not checked")
    elif answer["right"]:
        click.echo(f"the answer is right: {answer['records']} records")


@contextlib.contextmanager
def _cluster(
    rm: str | None, state: str | None, backend: str, work: Path, python: str | None
) -> Iterator[ProgramCluster]:
    """The cluster of a state folder, or a given ResourceManager whose nodes see this machine's files."""
    import getpass

    from harness.clusters.backends import backend_class, make_cluster
    from harness.clusters.state import StateFolder, default_folder
    from harness.jobs.engines.base import ProgramCluster
    from harness.yarn.http import HttpOptions
    from harness.yarn.rest import RestClient

    address, shared = rm, None
    with contextlib.ExitStack() as stack:
        if address is None:
            own = StateFolder(Path(state) if state else default_folder(backend))
            found = own.load() if own.folder.exists() else None
            if found is None or found.backend != backend or "http" not in found.ports:
                raise InputError(
                    f"no {backend} cluster there",
                    where=str(own.folder),
                    mend=f"run `yarnfair cluster up --backend {backend}`, or give --rm URL",
                )
            address = found.rest
            if not backend_class(backend).sees_files:
                shared, _ = stack.enter_context(make_cluster(backend, own).share("yarnfair", own.folder))
        nodes_python = python or (sys.executable if shared is None else "/usr/bin/python3")
        rest = stack.enter_context(RestClient([address], HttpOptions(user=getpass.getuser())))
        yield ProgramCluster(rest, work, nodes_python, shared, _say)
