"""``yarnfair job list|run``: the papers' applications as programs that compute. Parsing and printing only."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from harness.cli.output import json_option, print_json
from harness.model.errors import CallError, InputError

if TYPE_CHECKING:
    from harness.yarn.answers import AppStatus


@click.group()
def job() -> None:
    """The papers' applications as programs that compute, on a real cluster, their answers checked."""


@job.command("list")
@json_option
def list_them(as_json: bool) -> None:
    """What can be run, and on which data."""
    from harness.jobs.applications.catalogue import APPLICATIONS

    if as_json:
        rows = [
            {
                "name": one.name,
                "suite": one.suite,
                "what": one.what,
                "data": list(one.data),
                "settings": dict(one.settings),
            }
            for one in APPLICATIONS.values()
        ]
        print_json({"applications": rows})
        return
    for one in APPLICATIONS.values():
        click.echo(f"{one.name:<16} {one.suite:<9} {'+'.join(one.data):<20} {one.what}")


def _settings(pairs: tuple[str, ...], option: str) -> dict[str, str]:
    found = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise CallError(f"{pair[:60]!r} is no NAME=VALUE", where=option)
        found[name] = value
    return found


@job.command()
@click.argument("name")
@click.option("--input", "inputs", multiple=True, required=True, type=click.Path(path_type=Path), help="A data set.")
@click.option("--output", required=True, type=click.Path(path_type=Path), help="A folder that is not there yet.")
@click.option("--rm", help="The ResourceManager's address, http://host:port (default: the local cluster's).")
@click.option("--state", help="The local cluster's folder, as for `yarnfair cluster up`.")
@click.option("--queue", default="default", show_default=True)
@click.option("--maps", default=4, show_default=True, help="About so many maps.")
@click.option("--reduces", default=2, show_default=True)
@click.option("--task-mb", default=512, show_default=True, help="A task's container, MiB.")
@click.option("--am-mb", default=512, show_default=True, help="The application master's container, MiB.")
@click.option("--set", "settings", multiple=True, metavar="NAME=VALUE", help="A setting of the application.")
@click.option("--property", "properties", multiple=True, metavar="NAME=VALUE", help="A property of the job (-D).")
@click.option("--python", help="The nodes' Python for streaming programs (default: this one).")
@click.option("--no-check", is_flag=True, help="Leave the answer unchecked (it is checked in this machine's memory).")
@click.option("--tasks", type=click.Path(path_type=Path), help="Write the task attempts' times there, as parquet.")
@click.option("--timeout", default=1800.0, type=click.FloatRange(1, 864000), show_default=True, help="Seconds.")
@json_option
def run(
    name: str,
    inputs: tuple[Path, ...],
    output: Path,
    rm: str | None,
    state: str | None,
    queue: str,
    maps: int,
    reduces: int,
    task_mb: int,
    am_mb: int,
    settings: tuple[str, ...],
    properties: tuple[str, ...],
    python: str | None,
    no_check: bool,
    tasks: Path | None,
    timeout: float,
    as_json: bool,
) -> int:
    """Run the application NAME. Inputs and output lie where this machine and all nodes see them alike.

    Exit code 4 when the job fails or its answer is wrong, 5 when it does not end in time.
    """
    import getpass

    from harness.jobs.applications.catalogue import application
    from harness.jobs.applications.client import Client, Request, Sizes, document
    from harness.jobs.applications.history import attempts_table
    from harness.yarn.http import HttpOptions
    from harness.yarn.rest import RestClient

    request = Request(
        application(name),
        inputs,
        output,
        queue,
        Sizes(task_mb, am_mb, maps, reduces),
        _settings(settings, "--set"),
        python or sys.executable,
        not no_check,
        timeout,
        _settings(properties, "--property"),
    )
    with RestClient([rm or _local_cluster(state)], HttpOptions(user=getpass.getuser())) as rest:
        client = Client(rest, progress=lambda text: click.echo(f"yarnfair: {text}", err=True))
        if sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import Progress

            with Progress(console=Console(stderr=True)) as bars:
                bar = bars.add_task(request.application.name, total=100)

                def step(apps: list[AppStatus]) -> None:
                    if apps:
                        bars.update(bar, completed=apps[-1].progress_percent, description=apps[-1].id)

                done = client.run(request, step)
        else:
            done = client.run(request)
    if tasks is not None:
        try:
            attempts_table(done.attempts, done.zero_ms).to_parquet(tasks)
        except OSError as error:
            raise InputError(f"cannot be written: {error.strerror}", where=str(tasks)) from None
    found = document(request, done)
    if as_json:
        print_json(found)
    else:
        for kind, row in found["tasks"].items():
            click.echo(
                f"{kind:<7} {row['finished']:>4} of {row['attempts']} attempts finished, "
                f"mean {row['mean_s']:.2f} s, longest {row['longest_s']:.2f} s"
            )
        for app in found["applications"]:
            click.echo(f"{app['id']} {app['final_status']} after {app['elapsed_s']:.1f} s, {app['memory_mb_s']} MB s")
        answer = found["answer"]
        if answer is None:
            click.echo("the answer was not checked")
        elif answer["right"]:
            click.echo(f"the answer is right: {answer['records']} records")
    if done.verdict is not None and done.verdict.wrong is not None:
        click.echo(f"yarnfair: {output}: the answer is wrong: {done.verdict.wrong}", err=True)
        return 4
    return 0


@job.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--data", required=True, type=click.Path(path_type=Path), help="Where its data sets lie, or are made.")
@click.option("--out", required=True, type=click.Path(path_type=Path), help="A new folder: outputs and tables.")
@click.option("--rm", help="The ResourceManager's address, http://host:port (default: the local cluster's).")
@click.option("--state", help="The local cluster's folder, as for `yarnfair cluster up`.")
@click.option("--python", help="The nodes' Python for streaming programs (default: this one).")
@click.option("--no-check", is_flag=True, help="Leave the answers unchecked.")
@click.option("--timeout", default=1800.0, type=click.FloatRange(1, 864000), show_default=True, help="Seconds a job.")
@json_option
def mix(
    file: Path,
    data: Path,
    out: Path,
    rm: str | None,
    state: str | None,
    python: str | None,
    no_check: bool,
    timeout: float,
    as_json: bool,
) -> int:
    """Run the queues of a mix FILE side by side, each one job after another. Exit code 4 when a job fails."""
    import getpass

    import pandas as pd

    from harness.jobs.applications.client import Client
    from harness.jobs.applications.history import attempts_table
    from harness.jobs.applications.mix import make_data, mix_document, read_mix, run_mix
    from harness.yarn.http import HttpOptions
    from harness.yarn.rest import RestClient

    def say(text: str) -> None:
        click.echo(f"yarnfair: {text}", err=True)

    spec = read_mix(file)
    address = rm or _local_cluster(state)
    if out.exists():
        raise InputError("is there already", where=str(out), mend="give another --out, or remove it")
    make_data(spec, data, say)
    # A thread a queue, each with its own connection: they are closed with the process.
    began_ms = time.time_ns() // 1_000_000
    jobs = run_mix(
        spec,
        data,
        out,
        lambda stop: Client(RestClient([address], HttpOptions(user=getpass.getuser())), stop=stop),
        python=python or sys.executable,
        check=not no_check,
        timeout_s=timeout,
        progress=say,
    )
    document = mix_document(jobs)
    pd.DataFrame(document["jobs"]).to_parquet(out / "jobs.parquet")
    attempts_table([a for job in jobs for a in job.attempts], began_ms).to_parquet(out / "tasks.parquet")
    if as_json:
        print_json(document)
    else:
        for name, row in document["queues"].items():
            mean = row["mean_completion_s"]
            click.echo(
                f"{name:<24} {row['jobs']:>3} job(s), {row['failed']} failed, "
                f"mean {'-' if mean is None else f'{mean:.1f} s'}, {row['memory_mb_s']} MB s"
            )
    return 4 if any(job.why is not None for job in jobs) else 0


def _local_cluster(state: str | None) -> str:
    from harness.clusters.state import StateFolder, default_folder

    folder = StateFolder(Path(state) if state else default_folder("local"))
    found = folder.load() if folder.folder.exists() else None
    if found is None or found.backend != "local" or "http" not in found.ports:
        raise InputError(
            "no local cluster there",
            where=str(folder.folder),
            mend="run `yarnfair cluster up --backend local`, or give --rm URL",
        )
    return found.rest
