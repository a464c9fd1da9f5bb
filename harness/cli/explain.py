"""``yarnfair explain``: why a queue gets what it gets, or an application waits. Parsing and printing only."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import click

from harness.base.errors import CallError
from harness.cli.live_view import Source, source_options
from harness.cli.output import json_option, print_result
from harness.model.queues import ensure_root_prefix

if TYPE_CHECKING:
    from harness.control.view import View

_APPLICATION = re.compile(r"application_[0-9]+_[0-9]+")


@click.command()
@click.argument("what", metavar="QUEUE|APPLICATION_ID")
@source_options
@json_option
def explain(what: str, source: Source, as_json: bool) -> None:
    """Say why a queue gets what it gets, or why an application waits: which limit holds it, which setting mends it.

    Reads a running cluster, with or without a controller's ledger. For a queue, a ledger or a run alone is enough.
    """
    if _APPLICATION.fullmatch(what):
        _explain_app(what, source, as_json)
        return
    from harness.control.explain import document, moment
    from harness.control.explain import explain as words

    view = source.view(limits=True)
    path = _path_of(what, view)
    if not as_json:
        policy = f", policy {view.policy}" if view.policy else ""
        click.echo(f"{path} at {moment(view, view.time_s)} ({view.source}{policy})")
    print_result(as_json, document(view, path), [f"  {line}" for line in words(view, path)], hang=4)


def _path_of(what: str, view: View) -> str:
    """Return the full path of a queue that is named in full, without ``root``, or by the end of its path alone.

    Raises
    ------
    CallError
        No queue has this name, or several have.
    """
    if (path := ensure_root_prefix(what)) in view.queues:
        return path
    found = [known for known in view.queues if known.endswith(f".{what}")]
    if len(found) == 1:
        return found[0]
    known = ", ".join((found or list(view.queues))[:12])
    many = f"{len(found)} queues have the name" if found else "no queue"
    raise CallError(f"{many} {what[:60]!r}", where=view.source, hint=f"one of {known}")


def _explain_app(identity: str, source: Source, as_json: bool) -> None:
    from harness.control.explain import app_document, explain_app, moment

    app = source.app(identity)
    view = source.view(limits=True, live=True)
    if not as_json:
        click.echo(f"{identity} at {moment(view, view.time_s)} ({view.source})")
    print_result(as_json, app_document(view, app), [f"  {line}" for line in explain_app(view, app)], hang=4)
