"""``yarnfair render``: writes a scheduler's file from a queue tree."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harness.base.errors import CallError
from harness.base.outputs import write_output
from harness.cli.output import OutputFile, json_option, print_json, say, scheduler_option

if TYPE_CHECKING:
    from harness.base.documents import YamlDocument
    from harness.model.queues import AllocationFile


@click.command()
@click.argument("queues", type=click.Path(path_type=Path), required=False)
@click.option(
    "--from",
    "file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="The other way: the queue tree of an allocation file or a capacity-scheduler.xml.",
)
@click.option("-o", "--output", type=OutputFile(), help="Write there instead of to standard output.")
@scheduler_option
@json_option
def render(queues: Path | None, file: Path | None, output: Path | None, scheduler: str, as_json: bool) -> None:
    """Write the scheduler's file for a queue tree in YAML (docs/reference/allocation-file.md).

    The file is an allocation file or a capacity-scheduler.xml. A tree with `scheduler: capacity` has the Capacity
    Scheduler's own settings and always becomes a capacity-scheduler.xml.

    A tree that the ResourceManager would accept and get wrong is refused. The file is read back before it is printed.
    """
    if (queues is None) == (file is None):
        raise click.UsageError("give either QUEUES or --from FILE")
    if file is not None:
        _render_tree(file, output, as_json)
        return
    assert queues is not None
    from harness.base.documents import read_yaml
    from harness.base.errors import YarnfairError
    from harness.yarn.capacity.tree import is_capacity_tree
    from harness.yarn.capacity.validate import validate_properties
    from harness.yarn.fair.render import render_allocations
    from harness.yarn.fair.tree import read_tree
    from harness.yarn.fair.validate import validate_allocations

    document = read_yaml(queues)
    if is_capacity_tree(document.data):
        given = click.get_current_context().get_parameter_source("scheduler")
        if scheduler == "fair" and given is not click.core.ParameterSource.DEFAULT:
            raise CallError(
                "the tree says scheduler: capacity", where="--scheduler fair", hint="give one in the Fair one's terms"
            )
        scheduler, names, text = "capacity", *_properties(document)
    else:
        made = read_tree(document.data, document.where)
        names = sorted({*made.configured_leaves, *made.configured_parents})
        try:
            text = render_allocations(made) if scheduler == "fair" else _capacities(made)
        except YarnfairError as error:
            raise type(error)(error.what, where=error.where or str(queues), hint=error.hint) from error
    check = validate_allocations if scheduler == "fair" else validate_properties
    verdict = check(text, source="the rendered file")
    if verdict.errors:
        from harness.base.errors import InputError

        first = verdict.errors[0]
        where = str(queues) + (f": queue {first.queue}" if first.queue else "")
        raise InputError(first.what, where=where, hint=first.hint)
    for warning in verdict.warnings:
        queue = f"queue {warning.queue}: " if warning.queue else ""
        say(f"warning: {queues}: {queue}{warning.what}; {warning.hint}")
    if output is not None:
        # The RM, another user, reads the file, so a file that is replaced keeps its mode.
        write_output(output, text, sync=True, hint="give a path that can be written")
    if as_json:
        print_json({"file": str(output) if output else None, "queues": names, "xml": text})
    elif output is None:
        click.echo(text, nl=False)


def _render_tree(file: Path, output: Path | None, as_json: bool) -> None:
    """Write the queue tree of a scheduler's file as YAML to ``output``, or print it.

    `tree_of` and `capacity_tree_of` raise InputError for a file that no tree describes.
    """
    import yaml

    from harness.base.files import reading
    from harness.yarn.capacity.validate import is_configuration
    from harness.yarn.fair.parse import parse_allocations
    from harness.yarn.fair.untree import tree_of

    with reading(file):
        data = file.read_bytes()
    if is_configuration(data):
        tree = _tree_of_capacities(data, str(file))
    else:
        tree = tree_of(parse_allocations(data, source=str(file)), source=str(file))
    text = yaml.safe_dump(tree, sort_keys=False, allow_unicode=True, width=110)
    if output is not None:
        write_output(output, text, hint="give a path that can be written")
    if as_json:
        print_json({"file": str(output) if output else None, "tree": tree})
    elif output is None:
        click.echo(text, nl=False)


def _tree_of_capacities(data: bytes, source: str) -> dict[str, Any]:
    """Return the queue tree of a capacity-scheduler.xml; print what `validate` finds wrong as warnings."""
    from harness.yarn.capacity.properties import parse_configuration
    from harness.yarn.capacity.tree import capacity_tree_of
    from harness.yarn.capacity.validate import validate_properties

    tree = capacity_tree_of(parse_configuration(data, source=source).values, source=source)
    for error in validate_properties(data, source=source).errors:
        say(f"warning: {error.text(source)}")
    return tree


def _properties(document: YamlDocument) -> tuple[list[str], str]:
    """Return the paths of the queues, and the capacity-scheduler.xml, of a tree with `scheduler: capacity`."""
    from harness.yarn.capacity.convert import render_configuration
    from harness.yarn.capacity.properties import PREFIX
    from harness.yarn.capacity.tree import read_capacity_tree

    values = read_capacity_tree(document.data, document.where)
    names = sorted(
        f"{path}.{name}"
        for key, text in values.items()
        if key.startswith(f"{PREFIX}root.") and key.endswith(".queues")
        for path in [key.removeprefix(PREFIX).removesuffix(".queues")]
        for name in text.split(",")
    )
    return names, render_configuration(values)


def _capacities(file: AllocationFile) -> str:
    """Return the capacity-scheduler.xml for a Fair Scheduler's tree.

    Raises InputError for settings that it cannot express; prints what will work differently as warnings.
    """
    from harness.base.errors import InputError
    from harness.yarn.capacity.convert import convert_allocations, render_properties

    done = convert_allocations(file, fixed_queues=True)
    if done.lost:
        raise InputError(
            f"{done.lost[0].line()}: the Capacity Scheduler has no such thing",
            hint="leave it out (maxima: in per cent), or render for --scheduler fair",
        )
    for note in done.changes:
        # Without rules in the tree, the Capacity Scheduler's default applies: an application names its queue.
        if file.placement_rules is not None or "Policy>" not in note.what:
            say(f"warning: {note.line()}")
    placing = ("mapping-rule", "queue-mappings")
    said = done.properties
    if file.placement_rules is None:
        said = {name: value for name, value in said.items() if not name.startswith(placing)}
    return render_properties(said)
