"""``yarnfair run``: parsing, progress and printing; what runs is harness.experiments'."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from harness.base.errors import CallError, RunInvalid, RunTimedOut
from harness.cli import names
from harness.cli.output import json_option, named_values, print_json
from harness.cli.progress import RunProgress

if TYPE_CHECKING:
    from harness.experiments.kind import Ended


def split_policies(given: tuple[str, ...]) -> tuple[str, ...]:
    """``--policy fair,ltrf`` as two; names of variants (``hltrf,t_wait=10``) stay whole."""
    return tuple(
        part.strip()
        for text in given
        for part in ([text] if "=" in text else text.split(","))
        if part.strip() or not text
    )


def _say_if_it_compiles() -> None:
    from harness.sim.compiled import is_compiled

    if not is_compiled():
        text = "the simulator is compiled first, once after an installation or a change of it: a minute or two"
        click.echo(text, err=True)


@click.command(short_help="Run one experiment under each of its policies.")
@click.argument("experiment", shell_complete=names.brought("experiments"))
@click.option(
    "--backend",
    default="sim",
    show_default=True,
    metavar="NAME",
    help="Where it runs: sim (virtual time); local, docker or ssh (a real YARN, brought up for it; ssh: --inventory).",
)
@click.option(
    "--policy",
    "policies",
    multiple=True,
    metavar="P",
    shell_complete=names.policies,
    help="Only these policies, NAME or NAME@outside (with commas between, or repeat it); one that the file lacks runs "
    "with its defaults.",
)
@click.option(
    "--set", "settings", multiple=True, metavar="K=V", help="A setting of the policies that know it, or period=SECONDS."
)
@click.option("--seed", "seeds", multiple=True, type=click.IntRange(0, 2**63 - 1), help="Instead of the file's.")
@click.option("--out", type=click.Path(path_type=Path), help="Folder for the run directories [./runs/NAME-HASH].")
@click.option("--jobs", type=click.IntRange(1, 256), help="Runs side by side [one a core].")
@click.option("--resume", is_flag=True, help="Keep the runs that have ended there; without it they run again.")
@click.option("--no-report", is_flag=True, help="Write no HTML report.")
@click.option("--rm", metavar="URL", help="With a real backend: this ResourceManager, instead of bringing one up.")
@click.option("--admin", metavar="HOST:PORT", help="Its admin RPC [port 8033 of the same host].")
@click.option("--client", metavar="HOST:PORT", help="Its client RPC [port 8032 of the same host].")
@click.option("--allocations", metavar="PLACE", help="Its allocation file: a path, sftp:// or webhdfs://.")
@click.option("--shared", metavar="DIR", help="A folder that this machine and all its nodes see under the same path.")
@click.option("--inventory", metavar="FILE", help="With --backend ssh: the hosts (docs/how-to/ssh-cluster.md).")
@json_option
def run(
    experiment: str,
    backend: str,
    policies: tuple[str, ...],
    settings: tuple[str, ...],
    seeds: tuple[int, ...],
    out: Path | None,
    jobs: int | None,
    resume: bool,
    no_report: bool,
    rm: str | None,
    admin: str | None,
    client: str | None,
    allocations: str | None,
    shared: str | None,
    inventory: str | None,
    as_json: bool,
) -> None:
    """Run EXPERIMENT (a YAML file, or the name of one that the project brings along) under each of its policies.

    A run directory for each policy and variant, a comparison on standard output, and an HTML report of them all.
    Called again, it goes on with what it left unfinished.
    Exit codes: 4 when jobs failed, 5 when the time limit was reached, 130 when interrupted.
    """
    from harness.base.documents import read_yaml
    from harness.experiments.kind import Target, kind_of
    from harness.experiments.resolve import experiment_path
    from harness.experiments.run import check_backend, output_folder, run_experiment

    check_backend(backend)
    real = backend != "sim"
    given = named_values(settings)
    target = Target(rm, admin, client, allocations, shared, inventory=inventory)
    if not real and target != Target():
        raise CallError("an option of a real cluster", where="--backend sim", mend="give --backend local")
    document = read_yaml(experiment_path(experiment))
    kind = kind_of(document)
    loaded = kind.load(document)
    variants = kind.variants(loaded, policies=split_policies(policies), settings=given, seeds=seeds, real=real)
    kind.check(loaded, variants, backend, target if real else None)
    folder = output_folder(loaded, out, backend)
    if not as_json:
        click.echo(f"{loaded.name}: {len(variants)} run(s) into {folder}", err=True)
    if not real and kind.compiles and not as_json:
        _say_if_it_compiles()
    with RunProgress(variants, "of wall-clock time" if real else "simulated") as progress:
        ended = run_experiment(
            loaded,
            variants,
            folder,
            backend=backend,
            processes=jobs,
            resume=resume,
            on_step=progress.step,
            on_end=progress.end,
            target=target if real else None,
            on_progress=progress.say,
        )
    report = None if no_report else write_report(ended, folder)
    if as_json:
        print_json(
            {
                "experiment": loaded.name,
                "hash": loaded.hash,
                "out": str(folder),
                "report": str(report) if report is not None else None,
                "runs": [one.document() for one in ended],
            }
        )
    else:
        for line in kind.comparison(loaded, ended):
            click.echo(line)
        if report is not None:
            click.echo(f"\nreport: {report}")
    verdict(ended)


def write_report(ended: Sequence[Ended], folder: Path) -> Path:
    """One page for all runs, beside their directories, and one in each directory."""
    from harness.report import render_report

    page = folder / "report.html"
    render_report([one.path for one in ended], page)
    for one in ended:
        render_report([one.path], one.path / "report.html")
    return page


def verdict(ended: Sequence[Ended]) -> None:
    """Raises what the exit code is to be: a run that timed out before one whose jobs failed."""
    from harness.experiments.kind import NEVER_ENDS

    for code, error in ((5, RunTimedOut), (4, RunInvalid)):
        bad = [one for one in ended if one.exit_code == code]
        if bad:
            others = f" (and {len(bad) - 1} more run(s))" if len(bad) > 1 else ""
            mend = "look at jobs.parquet there" if code == 4 else "raise its time limit, or ask for less"
            if (bad[0].why or "").startswith(NEVER_ENDS):
                mend = ""  # the reason says which setting
            raise error(f"{bad[0].variant.name}: {bad[0].why}{others}", where=str(bad[0].path), mend=mend or None)
