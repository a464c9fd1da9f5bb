"""``yarnfair record``: a cluster's applications as a trace."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import get_args

import click

from harness.cli.output import json_option, print_json


@click.command(short_help="A cluster's applications as a trace.")
@click.option("--rm", required=True, metavar="URL", help="The ResourceManager, http://HOST:PORT.")
@click.option("--client", metavar="HOST:PORT", help="Its client RPC [port 8032 of the same host].")
@click.option("--history", metavar="URL", help="The MapReduce JobHistoryServer: it knows tasks.")
@click.option("--user", metavar="NAME", help="Whom to ask as [the process' user].")
@click.option("-o", "--out", type=click.Path(path_type=Path), help="File for the trace [standard output].")
@json_option
def record(rm: str, client: str | None, history: str | None, user: str | None, out: Path | None, as_json: bool) -> None:
    """Write what a ResourceManager knows of its applications, running and ended, as a trace for `yarnfair replay`.

    Every task of MapReduce jobs is there when the JobHistoryServer is named; other applications are cut into equal
    tasks that use what the ResourceManager counted for them. A run on a real backend records itself, with every task:
    its directory holds trace.jsonl.
    """
    from harness.base.files import replace_file
    from harness.experiments.history import History
    from harness.experiments.recording import record_rm
    from harness.jobs.recorded import Detail, write_trace
    from harness.yarn.http import HttpOptions
    from harness.yarn.rmclient import RmAddress, RmClient

    options = HttpOptions(user=user)
    known = History(history, options) if history is not None else None
    try:
        with RmClient([RmAddress.of(rm, client=client)], options) as found:
            header, jobs = record_rm(found, known, progress=lambda text: click.echo(text, err=True))
    finally:
        if known is not None:
            known.close()
    text = "\n".join([*write_trace(header, jobs), ""])
    if out is None and not as_json:
        sys.stdout.write(text)
        return
    if out is not None:
        replace_file(out, lambda path: _write(path, text))
    if as_json:
        detail = {kind: sum(job.detail == kind for job in jobs) for kind in get_args(Detail)}
        print_json({"trace": str(out) if out is not None else None, "jobs": len(jobs), "detail": detail})
    else:
        click.echo(f"{out}: {header.source}", err=True)


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
