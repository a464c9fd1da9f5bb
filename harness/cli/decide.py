"""``yarnfair decide``: the engine's decisions for a decision script, in the oracle's output format."""

from __future__ import annotations

import json
from pathlib import Path

import click

from harness.base.errors import CallError, InputError
from harness.cli import names
from harness.cli.output import Number, OutputFile


@click.command(short_help="The engine's decisions for a decision script.")
@click.argument("script", type=click.Path(), required=False)
@click.option("-o", "--output", type=OutputFile(), help="Write there instead of to standard output.")
@click.option(
    "--record",
    metavar="EXPERIMENT",
    shell_complete=names.brought("experiments"),
    help="Instead: a simulated run of this experiment, as a script.",
)
@click.option(
    "--policy",
    metavar="P",
    shell_complete=names.policies,
    help="With --record: the variant that is run [the experiment's first].",
)
@click.option("--until", type=Number(0, 1e7, min_open=True), help="With --record: seconds of virtual time.")
@click.option("--json", "as_json", is_flag=True, help="No effect: the answer is always one JSON document.")
def decide(
    script: str | None, output: Path | None, record: str | None, policy: str | None, until: float | None, as_json: bool
) -> None:
    """Print the scheduler's decisions for the nodes and applications of SCRIPT (JSON, with base events only).

    The script's key "scheduler" names the scheduler: fair, capacity or fifo. Without this key, a script with the key
    "capacity" or "fifo" is for that scheduler, and any other script is for the Fair Scheduler.

    Prints assignments, shares after each update, preemption's victims, reservations and completions, one record a line.
    With --record it prints a script instead: all that a simulated run asked of its scheduler.
    """
    if (script is None) == (record is None):
        raise CallError("needs a SCRIPT or --record", where="decide", hint="give one of the two")
    if record is None and (policy is not None or until is not None):
        raise CallError("goes with --record only", where="--policy, --until", hint="give --record EXPERIMENT")
    if record is not None:
        text = json.dumps(_recorded(record, policy, until), separators=(",", ":")) + "\n"
    else:
        assert script is not None
        text = _decided(script)
    if output is None:
        click.echo(text, nl=False)
        return
    from harness.sim.script import write_whole

    write_whole(output, text)


def _decided(script: str) -> str:
    from harness.sim.decide import decider
    from harness.sim.script import read_script, render_answer

    document = read_script(script)
    try:
        return render_answer(decider(document).run())
    except InputError as error:
        if error.where and error.where.startswith(script):
            raise
        where = f"{script}: {error.where}" if error.where else script
        raise InputError(error.what, where=where, hint=error.hint) from error


def _recorded(experiment: str, policy: str | None, until: float | None) -> object:
    from dataclasses import replace

    from harness.experiments.resolve import jobs_of, load_experiment, variants_of
    from harness.experiments.simulated import setup_of, simulate_variant

    loaded = load_experiment(experiment)
    variant = variants_of(loaded, policies=[policy] if policy else ())[0]
    jobs, _ = jobs_of(loaded, variant.seed)
    setup = replace(setup_of(loaded, variant, jobs), record_script=True)
    if until is not None:
        setup = replace(setup, time_limit_s=until)
    return simulate_variant(setup).script
