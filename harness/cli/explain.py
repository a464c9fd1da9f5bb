"""``yarnfair explain``: why a queue gets what it gets. Parsing and printing only."""

from __future__ import annotations

import click

from harness.base.errors import CallError
from harness.cli.live_view import Source, source_options
from harness.cli.output import json_option, print_result
from harness.model.queues import ensure_root_prefix


@click.command()
@click.argument("queue")
@source_options
@json_option
def explain(queue: str, source: Source, as_json: bool) -> None:
    """Why QUEUE gets what it gets: from a running cluster and the controller's ledger, or from a run."""
    from harness.control.explain import document, moment
    from harness.control.explain import explain as words

    view = source.view()
    path = ensure_root_prefix(queue)
    if path not in view.queues:
        known = ", ".join(list(view.queues)[:12])
        raise CallError(f"no queue {queue[:60]!r}", where=view.source, hint=f"one of {known}")
    if not as_json:
        policy = f", policy {view.policy}" if view.policy else ""
        click.echo(f"{path} at {moment(view, view.time_s)} ({view.source}{policy})")
    print_result(as_json, document(view, path), [f"  {line}" for line in words(view, path)], hang=4)
