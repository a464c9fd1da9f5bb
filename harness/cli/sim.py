"""``yarnfair sim serve``: a simulated cluster that answers as a ResourceManager does. Parsing and printing only."""

from __future__ import annotations

import contextlib
import errno
import shutil
import signal
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harness.base.errors import CallError, InputError
from harness.cli import names
from harness.cli.output import Number, json_option, print_result, say, scheduler_option
from harness.cli.scheduler_file import on_scheduler_file, scheduler_file_of, scheduler_file_options

if TYPE_CHECKING:
    from harness.model.queues import SchedulerName

#: The ports of a ResourceManager.
REST_PORT, ADMIN_PORT, CLIENT_PORT = 8088, 8033, 8032
#: A value may be 6 s older than the poll (harness.ledger.accounts).
_OLDER_S = 6.0


def fastest_enforced(period_s: float) -> float:
    """Return the highest speed at which a controller accepts the usage of applications that fill the cluster."""
    return 1.0 + _OLDER_S / period_s


def _too_fast(speed: float) -> str:
    """Explain with which periods a controller doubts what it sees at this speed ('': with no usual one)."""
    from harness.control.settings import ControlSettings

    usual, short = ControlSettings().period_s, 1.0
    if speed <= fastest_enforced(usual):
        return ""
    then = (
        f"give it `period_s: {short:g}`"
        if speed <= fastest_enforced(short)
        else f"serve at --speed {fastest_enforced(short):g} at most and give it `period_s: {short:g}`"
    )
    return (
        f"at --speed {speed:g} an `enforce` with a period of {usual:g} s skips applications that fill the cluster, "
        f"because by the wall clock no cluster could give that much; {then}"
    )


@click.group()
def sim() -> None:
    """Use the simulator without `run`."""


def _port(name: str, default: int, what: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    return click.option(
        name, type=click.IntRange(0, 65535), default=default, show_default=True, help=f"{what}; 0: a free one."
    )


@contextlib.contextmanager
def _folder(file: str | None, name: str) -> Iterator[Path]:
    """Provide the path of the scheduler's file: ``file``, or ``name`` in a temporary folder that is removed at the end.

    Raises CallError if ``file`` is an address.
    """
    if file is not None:
        if "://" in file:
            raise CallError(
                "an address as the scheduler's file", where="--allocations", hint="give a path on this machine"
            )
        yield Path(file).absolute()
        return
    folder = tempfile.mkdtemp(prefix="yarnfair-sim-")
    try:
        yield Path(folder) / name
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def _listening(host: str, option: str, port: int) -> Iterator[None]:
    """Turn an error on opening a port into an InputError that names the port and says what to do about it."""
    try:
        yield
    except (OSError, UnicodeError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        hint = "give another --host"
        if isinstance(error, OSError) and error.errno in (errno.EADDRINUSE, errno.EACCES):
            hint = f"stop what listens there, or give {option} 0 for a free port"
        raise InputError(f"cannot listen: {reason}", where=f"{host}:{port} ({option})", hint=hint) from None


@sim.command(short_help="Serve a simulated cluster as a ResourceManager does.")
@click.argument("experiment", required=False, shell_complete=names.brought("experiments"))
@_port("--port", REST_PORT, "REST")
@_port("--admin-port", ADMIN_PORT, "Admin RPC (refreshQueues)")
@_port("--client-port", CLIENT_PORT, "Client RPC (getQueueInfo)")
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option("--speed", type=Number(1e-3, 1e5), default=1.0, show_default=True, help="Virtual seconds a second.")
@scheduler_option
@click.option(
    "--store",
    type=click.Choice(["memory", "file"]),
    default="memory",
    show_default=True,
    help="Capacity Scheduler: changed over REST, or by its file and refreshQueues.",
)
@click.option(
    "--policy", shell_complete=names.policies, help="What decides in the scheduler (default: the scheduler's own)."
)
@click.option("--seed", type=click.IntRange(0), help="The jobs' seed (default: 1).")
@click.option("--allocations", "file", help="The scheduler's file; written from the experiment if it is not there.")
@scheduler_file_options
@click.option("--queues", type=click.IntRange(1, 10_000), help="Without EXPERIMENT: the number of queues.")
@click.option(
    "--apps", type=click.IntRange(0, 100_000), help="With --queues: applications, which never end [ten a queue]."
)
@click.option("--hadoop", metavar="VERSION", help="Answer as this release of Hadoop does: 3.4.2, 3.4.3, 3.5.0 [3.5.0].")
@click.option("--for", "for_s", type=Number(0, min_open=True), help="Stop after this time, in wall seconds.")
@json_option
def serve(
    *,
    experiment: str | None,
    port: int,
    admin_port: int,
    client_port: int,
    host: str,
    speed: float,
    scheduler: SchedulerName,
    store: str,
    policy: str | None,
    seed: int | None,
    file: str | None,
    queues: int | None,
    apps: int | None,
    hadoop: str | None,
    for_s: float | None,
    as_json: bool,
    **on_file: Any,
) -> None:
    """Serve a simulated cluster behind a ResourceManager's REST API and the two RPC calls that a controller needs.

    The cluster runs EXPERIMENT's jobs on EXPERIMENT's nodes, and whatever clients submit. Virtual time follows the wall
    clock. As an RM does, it reads its scheduler's file when a client calls `refreshQueues`, and the allocation file
    also by itself. The Capacity Scheduler's configuration changes over REST, or with `--store file` by its file. With
    --scheduler-file the cluster has that file's queues, and submitted applications are placed by the file's rules.
    Ctrl-C ends the server.
    """
    real = on_file["scheduler_file"] is not None
    if (experiment is None) == (queues is None and not (real and apps is not None)) or (queues is not None and real):
        raise click.UsageError("give an experiment, or --queues N --apps M, or --scheduler-file FILE --apps M")
    if real and file is not None and Path(file).exists():
        raise CallError("--scheduler-file and --allocations of a file that is there", hint="give one of the two")
    from harness.base.files import write_text
    from harness.yarn.releases import release_of

    # An unknown release is reported before anything is read.
    release_of(hadoop)
    from harness.experiments.served import (
        file_name,
        served_experiment,
        setup_of_loaded,
        setup_on_file,
        synthetic_setup,
        with_file,
        with_store,
    )
    from harness.sim.serve.live import LiveCluster
    from harness.sim.serve.rest import RestServer
    from harness.sim.serve.rpc import RpcServer

    of_file = scheduler_file_of({}, on_file) if experiment is None else None
    if experiment is not None:
        loaded = on_scheduler_file(served_experiment(experiment, scheduler), on_file)
        setup, of_file = setup_of_loaded(loaded, policy, seed), loaded.scheduler_file
    elif of_file is not None:
        of_file = of_file.settled(())
        setup = setup_on_file(of_file, apps or 0, seed or 1)
        for line in of_file.lines():
            say(line)
    else:
        setup = synthetic_setup(queues or 1, apps if apps is not None else 10 * (queues or 1), seed or 1, scheduler)
    setup = with_store(setup, store)
    stop = threading.Event()
    with _folder(file, file_name(setup.scheduler)) as path, contextlib.ExitStack() as running:
        if of_file is not None and of_file.text:
            write_text(path, of_file.text)
        cluster = LiveCluster(with_file(setup, path), path, speed=speed, hadoop=hadoop)
        with _listening(host, "--port", port):
            rest = RestServer(cluster, host, port)
        with _listening(host, "--admin-port", admin_port):
            admin = RpcServer(cluster, host, admin_port)
        with _listening(host, "--client-port", client_port):
            client = RpcServer(cluster, host, client_port)
        rest.face.addresses = {
            "yarn.resourcemanager.admin.address": str(admin.address),
            "yarn.resourcemanager.address": str(client.address),
        }
        for part in (cluster, rest, admin, client):
            part.start()
            running.callback(part.stop)
        document = {
            "rest": rest.url,
            "admin": str(admin.address),
            "client": str(client.address),
            cluster.sim.served.file_key: str(path),
            "id": cluster.id,
            "nodes": len(setup.nodes),
            "speed": speed,
        }
        addresses = f"rest {rest.url}  admin {admin.address}  client {client.address}"
        print_result(as_json, document, [addresses, f"{cluster.sim.served.file_words} {path}"])
        sys.stdout.flush()
        if note := _too_fast(speed):
            click.echo(f"note: {note}", err=True)
        signal.signal(signal.SIGTERM, lambda *_: stop.set())
        stop.wait(for_s)
