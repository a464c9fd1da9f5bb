"""``yarnfair convert``: converts a Fair Scheduler's allocation file to the Capacity Scheduler's properties."""

from __future__ import annotations

from pathlib import Path

import click

from harness.base.outputs import write_output
from harness.base.words import counted
from harness.cli.output import OutputFile, json_option, print_json, say


@click.command()
@click.argument("allocations", type=click.Path())
@click.option("-o", "--output", type=OutputFile(), help="Write there instead of to standard output.")
@click.option("--memory-mb", type=click.IntRange(1, 2**63 - 1), help="The cluster's memory, MiB, for absolute maxima.")
@click.option("--vcores", type=click.IntRange(1, 2**31 - 1), help="The cluster's virtual cores, for absolute maxima.")
@click.option("--fixed-queues", is_flag=True, help="Applications create no queues: `enforce` can steer all.")
@json_option
def convert(
    allocations: str, output: Path | None, memory_mb: int | None, vcores: int | None, fixed_queues: bool, as_json: bool
) -> None:
    """Print the capacity-scheduler.xml for the allocation file ALLOCATIONS, in weight mode, as `yarn fs2cs` makes it.

    Standard error lists what will work differently, what cannot be carried over, and what yarn-site.xml needs.
    """
    from harness.base.errors import InputError
    from harness.model.resources import Resource
    from harness.yarn.capacity.convert import Note, convert_allocations, render_properties
    from harness.yarn.fair.parse import parse_allocations, read_bytes
    from harness.yarn.fair.validate import validate_allocations
    from harness.yarn.validation import check_document

    if (memory_mb is None) != (vcores is None):
        raise click.UsageError("give --memory-mb and --vcores, or neither")
    data = read_bytes(allocations)
    file = parse_allocations(data, source=allocations)
    cluster = Resource(memory_mb, vcores) if memory_mb is not None and vcores is not None else None
    try:
        done = convert_allocations(file, cluster=cluster, fixed_queues=fixed_queues)
    except InputError as error:
        raise InputError(error.what, where=allocations, hint=error.hint) from None
    mistakes = len(validate_allocations(data, source=allocations).errors)
    if mistakes:
        what = counted(mistakes, "mistake")
        done.lost.append(Note(None, f"{what} that the RM made nothing of: see `yarnfair validate`"))
    text = render_properties(done.properties)
    refused = [found for found in check_document(text.encode(), source="the converted file").findings if found.refused]
    if refused:
        queue = f"queue {refused[0].queue}: " if refused[0].queue else ""
        raise InputError(
            f"the Capacity Scheduler would refuse what is made of it: {queue}{refused[0].what}",
            where=allocations,
            hint=refused[0].hint,
        )
    if output is not None:
        write_output(output, text, sync=True, hint="give a path that can be written")
    if as_json:

        def notes(found: list[Note]) -> list[dict[str, str | None]]:
            return [{"queue": note.queue, "what": note.what} for note in found]

        print_json(
            {
                "file": str(output) if output else None,
                "properties": done.properties,
                "site": done.site,
                "changes": notes(done.changes),
                "lost": notes(done.lost),
                "xml": text,
            }
        )
        return
    if output is None:
        click.echo(text, nl=False)
    for title, found in (("changes", done.changes), ("not carried over", done.lost)):
        for note in found:
            say(f"{title}: {note.line()}")
    for name, value in done.site.items():
        say(f"yarn-site.xml: {name} = {value}")
