"""``yarnfair decide``: the engine's decisions for a decision script, in the oracle's output format."""

from __future__ import annotations

import click


@click.command(short_help="The engine's decisions for a decision script.")
@click.argument("script", type=click.Path())
@click.option("-o", "--output", type=click.Path(), default=None, help="Write there instead of to standard output.")
@click.option("--json", "as_json", is_flag=True, help="No effect: the answer is always one JSON document.")
def decide(script: str, output: str | None, as_json: bool) -> None:
    """What the Fair Scheduler decides when nodes and applications do what SCRIPT (JSON, base events only) says.

    Prints assignments, shares after each update, preemption's victims, reservations and completions, one record a line.
    """
    from harness.model.errors import InputError
    from harness.sim.decide import Decider, read_script, render_answer

    document = read_script(script)
    try:
        text = render_answer(Decider(document).run())
    except InputError as error:
        if error.where and error.where.startswith(script):
            raise
        where = f"{script}: {error.where}" if error.where else script
        raise InputError(error.what, where=where, mend=error.mend) from error
    if output is None:
        click.echo(text, nl=False)
        return
    from harness.sim.decide import write_whole

    write_whole(output, text)
