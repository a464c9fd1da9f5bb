"""``yarnfair render`` and ``yarnfair validate``: allocation files written from a queue tree, and checked."""

from __future__ import annotations

from pathlib import Path

import click

from harness.base.files import write_bytes
from harness.cli.output import json_option, print_json


@click.command()
@click.argument("queues", type=click.Path(path_type=Path))
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Write there instead of to standard output.")
@json_option
def render(queues: Path, output: Path | None, as_json: bool) -> None:
    """The Fair Scheduler's allocation file for a queue tree in YAML (docs/reference/allocation-file.md).

    What the ResourceManager would accept and get wrong is refused; what is written has been read back and compared.
    """
    from harness.base.documents import read_yaml
    from harness.base.errors import YarnfairError
    from harness.yarn.fair.render import render_allocations
    from harness.yarn.fair.spec import read_tree
    from harness.yarn.fair.validate import validate_allocations

    document = read_yaml(queues)
    file = read_tree(document.data, document.where)
    try:
        text = render_allocations(file)
    except YarnfairError as error:
        raise type(error)(error.what, where=error.where or str(queues), mend=error.mend) from error
    verdict = validate_allocations(text, source="the rendered file")
    if verdict.errors:
        from harness.base.errors import InputError

        first = verdict.errors[0]
        where = str(queues) + (f": queue {first.queue}" if first.queue else "")
        raise InputError(first.what, where=where, mend=first.mend)
    for warning in verdict.warnings:
        queue = f"queue {warning.queue}: " if warning.queue else ""
        click.echo(f"yarnfair: warning: {queues}: {queue}{warning.what}; {warning.mend}", err=True)
    if output is not None:
        content = text.encode()
        # Newlines as they are; a file that is replaced keeps its mode, and the RM, another user, can read a new one.
        mend = "give a path that can be written"
        write_bytes(output, content, mode=None, sync=True, mend=mend)
    if as_json:
        names = sorted({*file.configured_leaves, *file.configured_parents})
        print_json({"file": str(output) if output else None, "queues": names, "xml": text})
    elif output is None:
        click.echo(text, nl=False)


@click.command()
@click.argument("file", type=click.Path())
@json_option
def validate(file: str, as_json: bool) -> int:
    """Check an allocation FILE for every mistake, above all those that the ResourceManager makes nothing of silently.

    Exit code 1 if there is any.
    """
    from harness.yarn.fair.parse import read_bytes
    from harness.yarn.fair.validate import validate_allocations
    from harness.yarn.fair.values import Finding

    verdict = validate_allocations(read_bytes(file), source=file)

    def document(findings: list[Finding]) -> list[dict[str, object]]:
        return [{"line": one.line, "queue": one.queue, "what": one.what, "mend": one.mend} for one in findings]

    if as_json:
        print_json({"valid": verdict.valid, "errors": document(verdict.errors), "warnings": document(verdict.warnings)})
    else:
        for found in verdict.errors:
            click.echo(f"yarnfair: {found.text(file)}", err=True)
        for found in verdict.warnings:
            click.echo(f"yarnfair: warning: {found.text(file)}", err=True)
        if verdict.valid:
            click.echo(f"{file} is valid")
    return 0 if verdict.valid else 1
