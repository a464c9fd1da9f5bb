"""``yarnfair record``: a cluster's applications as a trace."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar, get_args

import click

if TYPE_CHECKING:
    from harness.control.config import EnforceConfig
    from harness.traces.following import Following, Recording
    from harness.traces.histories import Histories
    from harness.yarn.http import HttpOptions
    from harness.yarn.rmclient import RmClient

from harness.base.outputs import is_standard_output, write_output
from harness.cli.access import Access, access_options
from harness.cli.output import Number, OutputFile, Span, json_option, print_json

T = TypeVar("T")


@click.command(short_help="A cluster's applications as a trace.")
@click.option("--rm", metavar="URL", help="The ResourceManager, http://HOST:PORT [of --config].")
@click.option("--config", type=click.Path(path_type=Path), metavar="FILE", help="The controller's configuration.")
@click.option("--client", metavar="HOST:PORT", help="Its client RPC [as the ResourceManager says].")
@click.option("--history", metavar="URL", help="The MapReduce JobHistoryServer: it knows tasks.")
@click.option("--spark-history", metavar="URL", help="Spark's History Server: it has event logs.")
@click.option("--user", metavar="NAME", help="The user name of its requests [the process' user].")
@access_options
@click.option("-o", "--out", type=OutputFile(), help="File for the trace [standard output].")
@click.option("--follow", type=OutputFile(), metavar="FILE", help="Go on recording into this file, until stopped.")
@click.option(
    "--every",
    "every_s",
    type=Number(0.2, 3600),
    default=10.0,
    show_default=True,
    help="With --follow: seconds between two looks.",
)
@click.option(
    "--for", "for_s", type=Span(), metavar="TIME", help="With --follow: end after this time (90s, 5m, 2h, 7d)."
)
@json_option
def record(
    *,
    rm: str | None,
    config: Path | None,
    client: str | None,
    history: str | None,
    spark_history: str | None,
    user: str | None,
    access: Access,
    out: Path | None,
    follow: Path | None,
    every_s: float,
    for_s: float | None,
    as_json: bool,
) -> None:
    """Record a ResourceManager's applications, running and ended, as a trace for `yarnfair replay`.

    With --history the trace has every task of MapReduce jobs, with --spark-history every task and executor of Spark
    applications. Others become equal tasks that use what the ResourceManager counted. A run on a real backend records
    itself, with every task: see trace.jsonl in its directory.

    If a controller runs there, give its --config: the trace then has your own weights instead of those that the
    controller has just written.

    --follow records until it is stopped; the same call continues the file. The recording survives restarts of itself
    and of the ResourceManager, and says what it could not know. `replay` and `assess` take the file at any time.
    """
    from harness.base.errors import CallError
    from harness.control.config import read_config
    from harness.traces.following import Following, Recording
    from harness.traces.recorded import Detail, trace_text
    from harness.traces.recording import record_rm

    if follow is not None and out is not None:
        raise click.UsageError("give either --follow FILE or --out")
    if follow is None and for_s is not None:
        raise click.UsageError("--for goes with --follow")
    if follow is not None and is_standard_output(follow):
        raise CallError("a recording cannot be continued on standard output", where="--follow", hint="give a file")
    if rm is None and config is None:
        raise CallError("no ResourceManager given", hint="give --rm URL, or the controller's --config FILE")
    said = None if config is None else read_config(config)
    patient_s = every_s if follow is not None else None
    opened = open_recorded(
        rm, said, history, spark_history, client=client, user=user, access=access, patient_s=patient_s
    )
    with opened as (found, known, entitlements):
        if follow is not None:
            with Recording(follow) as recording:
                going = Following(found, recording, known, entitlements, every_s, say)
                _follow(going, for_s, as_json)
            return
        recorded = record_rm(found, known, entitlements=entitlements, progress=say)
    header, jobs = recorded.header, recorded.jobs
    text = trace_text(header, jobs, recorded.notes)
    if out is None and not as_json:
        sys.stdout.write(text)
        return
    if out is not None:
        write_output(out, text)
    if as_json:
        detail = {kind: sum(job.detail == kind for job in jobs) for kind in get_args(Detail)}
        print_json({"trace": str(out) if out is not None else None, "jobs": len(jobs), "detail": detail})
    else:
        click.echo(f"{out}: {header.source}", err=True)


@contextmanager
def open_recorded(
    rm: str | None,
    said: EnforceConfig | None,
    history: str | None,
    spark_history: str | None = None,
    *,
    client: str | None = None,
    user: str | None = None,
    access: Access | None = None,
    patient_s: float | None = None,
) -> Iterator[tuple[RmClient, Histories | None, dict[str, float] | None]]:
    """Provide a client of the ResourceManager, its history servers, and the entitlements if a controller is running.

    ``patient_s``: seconds between two attempts to reach a ResourceManager that does not answer. None: one attempt only.
    """
    from harness.control.entitled import of_config
    from harness.traces.histories import Histories
    from harness.traces.history import History
    from harness.traces.spark_history import SparkHistory
    from harness.yarn.discover import find_rm
    from harness.yarn.http import HttpOptions
    from harness.yarn.rmclient import RmClient

    options = HttpOptions(user=user, **(access or {})) if said is None else said.http_options()
    known = None
    if history is not None or spark_history is not None:
        known = Histories(
            mapreduce=History(history, options) if history is not None else None,
            spark=SparkHistory(spark_history, options) if spark_history is not None else None,
        )
    try:
        if said is not None:
            given = [rm] if rm is not None else []
            addresses = _patient(lambda: said.addresses(given), patient_s)
        else:
            assert rm is not None
            addresses = [_patient(lambda: find_rm(rm, options, client=client), patient_s)]
        with RmClient(addresses, options) as found:
            if said is not None:
                entitlements: dict[str, float] | None = _patient(lambda: of_config(said, found), patient_s)
            else:
                assert rm is not None
                entitlements = _patient(lambda: _of_controller(rm, options, found), patient_s)
            yield found, known, entitlements
    finally:
        if known is not None:
            known.close()


def _patient(find: Callable[[], T], every_s: float | None) -> T:
    """Call ``find`` until a ResourceManager answers, and return its result.

    ``every_s``: the pause between two attempts. None: one attempt only, which raises Unreachable if no ResourceManager
    answers.
    """
    from harness.yarn.errors import Unreachable

    told = ""
    while True:
        try:
            return find()
        except Unreachable as error:
            if every_s is None:
                raise
            if told != (told := error.line()):
                say(f"{told}; waiting for it")
            time.sleep(every_s)


def say(text: str) -> None:
    """Print a message to standard error."""
    click.echo(text, err=True)


def _follow(going: Following, for_s: float | None, as_json: bool) -> None:
    """Record for ``for_s`` seconds (None: until stopped), then print the number of applications.

    Ctrl-C and SIGTERM are how a recording usually ends, so they print it, too.
    """
    from harness.traces.following import follow

    recording = going.recording
    say(f"{recording.path}: {recording.jobs} applications so far, a look every {going.every_s:g} s")
    try:
        follow(going, for_s=for_s)
    except KeyboardInterrupt:
        _say_what_is_recorded(recording, as_json)
        raise
    _say_what_is_recorded(recording, as_json)


def _say_what_is_recorded(recording: Recording, as_json: bool) -> None:
    running = len(recording.follower.running) + len(recording.waiting)
    if as_json:
        print_json({"trace": str(recording.path), "jobs": recording.jobs, "running": running})
    else:
        say(f"{recording.path}: {recording.jobs} applications, {running} more run or have just ended")


def _of_controller(rm: str, options: HttpOptions, client: RmClient) -> dict[str, float] | None:
    """Return the administrator's entitlements if a controller is running and they are known; warn that one is running.

    A controller is recognised by its lease beside the scheduler's file, on this machine. With a Capacity Scheduler,
    whose configuration may be stored elsewhere, it is also recognised by capacities that nobody writes by hand.
    """
    from harness.control.entitled import of_file, written_capacities
    from harness.yarn.discover import allocation_file
    from harness.yarn.queue_answers import CAPACITY

    status = client.rest.scheduler()
    if status.type == CAPACITY:
        folders = [os.environ[name] for name in ("YARN_CONF_DIR", "HADOOP_CONF_DIR") if os.environ.get(name)]
        files = [str(Path(folder) / "capacity-scheduler.xml") for folder in dict.fromkeys(folders)]
    else:
        told = allocation_file(rm, options)
        files = [] if told is None else [told]
    seen = [of_file(path, capacity=status.type == CAPACITY) for path in files]
    holder, weights = next((one for one in seen if one[0]), ("", None))
    if not holder and status.type == CAPACITY:
        settings = {path: queue.setting for path, queue in status.queues.items() if queue.setting is not None}
        if written := written_capacities(settings):
            holder = f"{written[0]} has a capacity of {settings[written[0]]:g}, as `yarnfair enforce` writes them"
    if holder:
        capacities = "capacities" if status.type == CAPACITY else "weights"
        what = f"the administrator's {capacities}, as it says them"
        if weights is None:
            what = f"the {capacities} in force, which are the controller's"
        click.echo(
            f"warning: a controller is at work ({holder}): the trace has {what}; "
            "give --config FILE, the controller's configuration, for the entitlements that it works by",
            err=True,
        )
    return weights
