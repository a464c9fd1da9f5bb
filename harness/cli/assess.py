"""``yarnfair assess``: would long-term fairness help this cluster? Parsing and printing only."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harness.base.errors import CallError, without_secrets
from harness.base.files import write_text
from harness.cli.access import Access, access_options, as_config
from harness.cli.output import (
    OutputFolder,
    Span,
    cluster_option,
    dask_workers,
    executor_option,
    jobs_option,
    json_option,
    print_result,
    progress_line,
    say,
)

if TYPE_CHECKING:
    from harness.control.config import EnforceConfig
    from harness.model.queues import SchedulerName
    from harness.predict.foreign import Lacks
    from harness.traces.recorded import Header, Trace


@click.command(short_help="Would long-term fairness help this cluster?")
@click.argument("trace", type=click.Path(path_type=Path), required=False)
@click.option("--rm", metavar="URL", help="Record this ResourceManager; of a foreign TRACE: its nodes and queues.")
@cluster_option
@click.option(
    "--for", "for_s", type=Span(), metavar="TIME", help="How long to record: 90s, 5m, 2h [only what it knows now]."
)
@click.option("--history", metavar="URL", help="The MapReduce JobHistoryServer: it knows tasks.")
@click.option("--spark-history", metavar="URL", help="Spark's History Server: it has event logs.")
@click.option(
    "--config", type=click.Path(path_type=Path), metavar="FILE", help="A controller's configuration; read only."
)
@access_options
@click.option("-o", "--out", type=OutputFolder(), metavar="DIR", help="Folder [./runs/assess-NAME].")
@jobs_option
@executor_option
@json_option
def assess(
    *,
    trace: Path | None,
    rm: str | None,
    cluster: Path | None,
    for_s: float | None,
    history: str | None,
    spark_history: str | None,
    config: Path | None,
    access: Access,
    out: Path | None,
    jobs: int | None,
    executor: str | None,
    as_json: bool,
) -> None:
    """Say whether long-term fairness would help: yes, no or unsure, who gains, who loses, the price, the settings.

    It takes a TRACE (of `yarnfair record`, a run directory, SLS', Rumen's, SWF's, a table of jobs (CSV), a folder of
    job history files) or records a ResourceManager. First it replays the load under the present policy and compares
    that with what happened; then it plays the candidates. It always writes a page, and after a yes a ready enforce.yaml
    that begins in mode shadow. It overwrites nothing.
    """
    from harness.cli.run import say_if_it_compiles
    from harness.control.config import read_config
    from harness.control.settings import MAX_RATIO
    from harness.predict.assess import assess as assessed
    from harness.predict.foreign import Lacks
    from harness.predict.page import write_page
    from harness.predict.writing import (
        CONFIG,
        DOCUMENT,
        PAGE,
        config_text,
        document_of,
        fresh_folder,
        write_config,
        write_document,
    )
    from harness.results.folders import Contents, claim
    from harness.traces.accounting import account_lines, account_of

    if trace is None and rm is None and config is None:
        raise CallError("nothing to assess", hint="give a TRACE, --rm URL, or the controller's --config FILE")
    if trace is not None and for_s is not None:
        raise click.UsageError("--for goes with --rm, not with a TRACE")
    if cluster is not None and (trace is None or rm is not None):
        raise click.UsageError("--cluster goes with a TRACE, and instead of --rm")
    said = None if config is None else read_config(config)
    folder = fresh_folder(out if out is not None else Path("runs") / f"assess-{_name(trace, rm)}")
    claim(folder, Contents("assess", _name(trace, rm), ""))
    found, scheduler, given = _trace_of(
        trace=trace,
        rm=rm,
        cluster_at=cluster,
        said=said,
        for_s=for_s,
        history=history,
        spark_history=spark_history,
        folder=folder,
        access=access,
    )
    if isinstance(found, Lacks):
        why = f"{found.what}: give --cluster FILE, or --rm URL of the cluster" if found.file else found.what
        _print({"verdict": "unsure", "why": why, "lines": [f"unsure: {why}."], **_NOTHING}, as_json)
        return
    if not as_json:
        for line in account_lines(found.header, found.jobs):
            say(f"{found.path}: {line}")
    say_if_it_compiles((scheduler,))
    with dask_workers(executor) as workers:
        done = assessed(
            found,
            folder,
            period_s=said.period_s if said is not None else 5.0,
            max_ratio=said.max_ratio if said is not None else MAX_RATIO,
            accept_preemption=said is not None and "preemption" in said.accept,
            scheduler=scheduler,
            missing=[note.note for note in found.notes[:3]],
            processes=jobs,
            workers=workers,
            says=progress_line(as_json),
        )
    settings = folder / CONFIG if done.verdict.best is not None else None
    if settings is not None and done.verdict.best is not None:
        write_config(settings, config_text(done.verdict.best, said, given, scheduler))
    document = document_of(done, settings)
    document.update(
        account_of(found.header, found.jobs), trace=str(found.path), out=str(folder), page=str(folder / PAGE)
    )
    write_document(folder / DOCUMENT, document)
    about = f"{found.path.name}: {found.header.source[:300]}; {'; '.join(account_lines(found.header, found.jobs))}"
    write_page(folder / PAGE, done, about)
    _print(document, as_json)


_NOTHING: dict[str, Any] = {"reproduction_error": None, "policies": {}, "recommended": {}}


def _name(trace: Path | None, rm: str | None) -> str:
    from harness.cli.replay import name_of

    if trace is not None:
        # An address given in place of a path may contain a password. It is hidden here, while the address can be
        # recognised.
        return name_of(Path(without_secrets(str(trace))))
    # The name of an address without user, password and query, because folders are listed and their markers are kept.
    address = without_secrets(rm or "cluster").rpartition("//")[2].rpartition("@")[2].partition("?")[0]
    return "".join(c if c.isalnum() else "-" for c in address).strip("-")


def _trace_of(
    *,
    trace: Path | None,
    rm: str | None,
    cluster_at: Path | None,
    said: EnforceConfig | None,
    for_s: float | None,
    history: str | None,
    spark_history: str | None,
    folder: Path,
    access: Access,
) -> tuple[Trace | Lacks, SchedulerName, dict[str, Any]]:
    """Return the trace or what it lacks, its scheduler, and the settings for enforce.yaml that the cluster reports."""
    from harness.cli.record import open_recorded, say
    from harness.predict.foreign import Lacks, any_trace, cluster_file
    from harness.predict.writing import TRACE
    from harness.traces.following import Following, Recording, follow
    from harness.traces.recorded import NoJob, read_trace, trace_text
    from harness.traces.recording import NothingRan, record_rm, rm_header
    from harness.yarn.discover import allocation_file, in_a_store
    from harness.yarn.queue_answers import FAIR

    if trace is not None and rm is None:
        read = any_trace(trace, None if cluster_at is None else cluster_file(cluster_at), folder / TRACE)
        return read, "fair" if isinstance(read, Lacks) else read.header.scheduler or "fair", {}
    with open_recorded(rm, said, history, spark_history, access=access) as (client, known, entitlements):
        scheduler: SchedulerName = "fair" if client.rest.scheduler().type == FAIR else "capacity"
        url = client.rest.http.current
        file = allocation_file(url, client.rest.http.options) if scheduler == "fair" else None
        given: dict[str, Any] = {"rms": [{"rest": url}]}
        if access:
            given["http"] = as_config(access)
        if file is not None:
            given["allocation_file"] = file
        if scheduler == "capacity" and in_a_store(client):
            given["capacity_file"] = None
        if trace is not None:
            cluster: Header = rm_header(client, entitlements, [], on_progress=say)
            return any_trace(trace, cluster, folder / TRACE), scheduler, given
        path = folder / TRACE
        if for_s is not None:
            click.echo(f"recording {url} for {for_s:g} s into {path}", err=True)
            with Recording(path) as recording:
                going = Following(client, recording, known, entitlements, min(5.0, for_s / 2), lambda _: None)
                follow(going, for_s=for_s)
        else:
            try:
                recorded = record_rm(client, known, entitlements=entitlements, progress=say)
            except NothingRan:
                return Lacks("too short a time: no application has run"), scheduler, given
            write_text(path, trace_text(recorded.header, recorded.jobs, recorded.notes))
    try:
        return read_trace(path), scheduler, given
    except NoJob:
        return Lacks("too short a time: no application has run"), scheduler, given


def _print(document: dict[str, Any], as_json: bool) -> None:
    import sys

    if sys.stderr.isatty() and not as_json:
        click.echo("\r\x1b[K", err=True, nl=False)
    print_result(as_json, document, document["lines"], hang=4)
    if document.get("page") and not as_json:
        config = document["recommended"].get("config")
        click.echo(f"\npage: {document['page']}" + (f"\nconfiguration: {config}" if config else ""))
