"""``yarnfair job list|run``: the papers' applications as programs that compute. Parsing and printing only."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harness.base.errors import CallError, InputError, RunInvalid
from harness.base.outputs import write_output_by
from harness.cli.output import Number, OutputFile, json_option, named_values, print_json, print_result, say

if TYPE_CHECKING:
    from harness.experiments.real.cluster import RealCluster
    from harness.experiments.real.single import Done, ProgramRunner
    from harness.jobs.data.targets import Target
    from harness.jobs.engines.base import Request
    from harness.yarn.answers import AppStatus


@click.group()
def job() -> None:
    """The papers' applications as programs that compute, on a real cluster, their answers checked."""


@job.command("list")
@json_option
def list_them(as_json: bool) -> None:
    """List the programs that can be run, and their data."""
    from harness.jobs.engines import every, groups

    rows, lines = [], []
    for one in every().values():
        told = {name: getattr(one, name) for name in ("name", "suite", "what")}
        rows.append({**told, "data": list(one.data), "settings": dict(one.settings)})
        lines.append(f"{one.name:<16} {one.suite:<9} {'+'.join(one.data):<20} {one.what}")
    document = {"applications": rows, "groups": {name: list(members) for name, members in groups().items()}}
    print_result(as_json, document, lines, hang=48)


@job.command()
@click.argument("name")
@click.option(
    "--input", "inputs", multiple=True, required=True, help="A data set: a folder, or webhdfs://host:port/..."
)
@click.option("--output", required=True, help="A new folder (MapReduce: also webhdfs://host:port/...).")
@click.option("--rm", help="Another ResourceManager's address, http://host:port; its nodes see this folder.")
@click.option("--state", help="The cluster's folder, as for `yarnfair cluster up`.")
@click.option(
    "--backend", type=click.Choice(["local", "docker"]), default="local", show_default=True, help="Which cluster."
)
@click.option("--python", help="The nodes' Python (default: this one; in containers /usr/bin/python3).")
@click.option("--queue", default="default", show_default=True)
@click.option("--maps", default=4, show_default=True, help="About how many maps (Spark: tasks that read).")
@click.option("--reduces", default=2, show_default=True, help="How many reduces (Spark: partitions after a shuffle).")
@click.option("--task-mb", type=int, help="A task's container, MiB [default: 512]; Spark: an executor's [1024].")
@click.option("--am-mb", type=int, help="The application master's, MiB [default: 512]; Spark: and driver's [1024].")
@click.option("--executors", default=2, show_default=True, help="Spark: how many, held until the end.")
@click.option("--executor-cores", default=1, show_default=True, help="Spark: tasks at once in each, and its vcores.")
@click.option("--set", "settings", multiple=True, metavar="NAME=VALUE", help="A setting of the application.")
@click.option(
    "--property", "properties", multiple=True, metavar="NAME=VALUE", help="A property of the job (-D, --conf)."
)
@click.option("--no-check", is_flag=True, help="Do not check the answer (the check needs this machine's memory).")
@click.option("--tasks", type=OutputFile(), help="Write the task attempts' times there, as parquet.")
@click.option("--timeout", default=1800.0, type=Number(1, 864000), show_default=True, help="Seconds.")
@json_option
def run(
    *,
    name: str,
    inputs: tuple[str, ...],
    output: str,
    rm: str | None,
    state: str | None,
    backend: str,
    queue: str,
    settings: tuple[str, ...],
    properties: tuple[str, ...],
    python: str | None,
    no_check: bool,
    tasks: Path | None,
    timeout: float,
    as_json: bool,
    **sizes: Any,
) -> int:
    """Run the program NAME.

    Inputs and output lie where this machine and all nodes see them alike (Spark's programs: on this machine, and are
    copied into a Docker cluster), or in HDFS (MapReduce's). `tpch` runs Q1, Q9, Q12 and Q17 by Spark, one after
    another, `hive` by Hive on Tez.

    Exit code 4 when the job fails or its answer is wrong, 5 when it does not end in time.
    """
    from harness.experiments.real.single import ProgramRunner, check_request, document
    from harness.jobs.engines import find, members
    from harness.jobs.engines.base import Request

    # The full path: for "default" the Fair Scheduler's rules choose the user's own queue.
    if queue == "root":
        raise CallError("root is not a leaf queue", where="--queue", hint="name a queue below it")
    queue = f"root.{queue.removeprefix('root.')}"
    names, places, out = members(name), tuple(_place(text, "--input") for text in inputs), _place(output, "--output")
    if len(names) > 1 and not isinstance(out, Path):
        raise CallError(f"{name} writes folders of this machine, not HDFS", where="--output", hint="give a folder")
    asked = Request(
        name,
        places,
        out,
        queue,
        settings=named_values(settings, "--set"),
        check=not no_check,
        timeout_s=timeout,
        properties=named_values(properties, "--property"),
        **sizes,
    )
    requests = []
    for program in map(find, names):
        to = out / program.name if len(names) > 1 and isinstance(out, Path) else out
        requests.append(replace(asked, program=program.name, output=to))
        check_request(requests[-1])
    work = out.absolute().parent if isinstance(out, Path) else Path.cwd()
    with _cluster(rm, state, backend, work, python) as cluster:
        client = ProgramRunner(cluster, say)
        try:
            found = _followed(client, requests)
        finally:
            # Also for a job that failed or was interrupted.
            if tasks is not None and client.attempts:
                _write_tasks(tasks, client)
    documents = [document(request, done) for request, done in zip(requests, found, strict=True) if done.why is None]
    if not as_json:
        for one in documents:
            _print(one, title=len(requests) > 1)
    if why := next((done.why for done in found if done.why is not None), None):
        raise RunInvalid(why)
    if as_json:
        print_json(documents[0] if len(requests) == 1 else {"group": name.lower(), "runs": documents})
    wrong = [one for one in documents if one["answer"] is not None and not one["answer"]["right"]]
    for one in wrong:
        say(f"{one['output']}: the answer is wrong: {one['answer']['wrong']}")
    return 4 if wrong else 0


def _place(text: str, option: str) -> Path | Target:
    """Return a local folder, or a folder in HDFS. Raises CallError."""
    from harness.jobs.data.targets import FolderTarget, open_target

    found = open_target(text, option)
    return found.folder if isinstance(found, FolderTarget) else found


def _followed(client: ProgramRunner, requests: list[Request]) -> list[Done]:
    """Run the programs one after another to their ends; show a progress bar if standard error is a terminal."""
    if not sys.stderr.isatty():
        return client.run(*requests)
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True)) as bars:
        bar = bars.add_task(requests[0].program, total=100)

        def step(apps: list[AppStatus]) -> None:
            if apps:
                bars.update(bar, completed=apps[-1].progress_percent, description=apps[-1].id)

        return client.run(*requests, on_step=step)


def _write_tasks(file: Path, client: ProgramRunner) -> None:
    """Write all attempts, with times in seconds since the start of the run."""
    from harness.jobs.engines.attempts import attempts_table

    write_output_by(file, lambda path: attempts_table(client.attempts, client.zero_ms).to_parquet(path))


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
def _cluster(rm: str | None, state: str | None, backend: str, work: Path, python: str | None) -> Iterator[RealCluster]:
    """Provide the cluster of a state folder, or of a given ResourceManager whose nodes share this machine's files."""
    import getpass

    from harness.clusters.backends import backend_class, make_cluster
    from harness.clusters.shared import LocalFolder
    from harness.clusters.state import StateFolder, default_folder
    from harness.experiments.real.cluster import RealCluster
    from harness.yarn.http import HttpOptions
    from harness.yarn.rmclient import RmAddress

    address, shared = rm, None
    with contextlib.ExitStack() as stack:
        if address is None:
            own = StateFolder(Path(state) if state else default_folder(backend))
            found = own.load() if own.folder.exists() else None
            if found is None or found.backend != backend or "http" not in found.ports:
                raise InputError(
                    f"no {backend} cluster there",
                    where=str(own.folder),
                    hint=f"run `yarnfair cluster up --backend {backend}`, or give --rm URL",
                )
            address = found.rest
            if not backend_class(backend).sees_files:
                shared, _ = stack.enter_context(make_cluster(backend, own).share("yarnfair", own.folder))
        nodes_python = python or (sys.executable if shared is None else "/usr/bin/python3")
        document = {"rm": address, "given": True}
        folder = shared or LocalFolder(work)
        http = HttpOptions(user=getpass.getuser())
        yield RealCluster(backend, RmAddress.of(address), None, folder, nodes_python, document, http=http)
