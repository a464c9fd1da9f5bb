"""``yarnfair run``: parsing, progress and printing; what runs is harness.experiments'."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harness.base.errors import CallError, RunInvalid, RunTimedOut
from harness.cli.output import json_option, print_json

if TYPE_CHECKING:
    from harness.base.documents import YamlDocument
    from harness.experiments.kinds import EndedRun
    from harness.experiments.resolve import Variant
    from harness.experiments.run import Ended
    from harness.experiments.simulated import Step


class _Progress:
    """Progress on standard error: bars on a terminal, else a line when a run ends."""

    def __init__(self, variants: list[Variant], what: str = "simulated") -> None:
        self.bars: Any = None
        self.what = what
        self.ended, self.count = 0, len(variants)
        if sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TextColumn

            self.bars = Progress(
                TextColumn("{task.description:<24.24}"),
                BarColumn(bar_width=20),
                TextColumn("{task.fields[at]}"),
                console=Console(stderr=True),
            )
            self.tasks = {v.name: self.bars.add_task(v.name, total=None, at="waits") for v in variants[:40]}

    def __enter__(self) -> _Progress:
        if self.bars is not None:
            self.bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.bars is not None:
            self.bars.stop()

    def say(self, text: str) -> None:
        """What happens before the first run."""
        if self.bars is not None:
            self.bars.console.print(text)
        else:
            click.echo(text, err=True)

    def step(self, variant: Variant, at: Step) -> None:
        if self.bars is None or variant.name not in self.tasks:
            return
        jobs = f"{at.jobs_done}/{at.jobs} jobs" if at.jobs is not None else f"{at.jobs_done} jobs"
        text = f"{jobs}, {at.time_s:,.0f} s"
        self.bars.update(self.tasks[variant.name], completed=at.jobs_done, total=at.jobs, at=text)

    def end(self, run: Ended) -> None:
        self.ended += 1
        makespan = run.summary.get("makespan_s", 0.0)
        wall = run.summary.get("wall_s", 0.0)
        if self.bars is None:
            text = f"[{self.ended}/{self.count}] {run.variant.name}: {makespan:,.0f} s {self.what} in {wall:.1f} s"
            click.echo(text + (f" ({run.why})" if run.why else ""), err=True)
        elif run.variant.name in self.tasks:
            self.bars.update(self.tasks[run.variant.name], total=1, completed=1, at=f"{makespan:,.0f} s")


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
@click.argument("experiment")
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
    help="Only these policies, NAME or NAME@outside (with commas between, or repeat it); one that the file lacks runs "
    "with its defaults.",
)
@click.option(
    "--set", "settings", multiple=True, metavar="K=V", help="A setting of the policies that know it, or period=SECONDS."
)
@click.option("--seed", "seeds", multiple=True, type=click.IntRange(0, 2**63 - 1), help="Instead of the file's.")
@click.option("--out", type=click.Path(path_type=Path), help="Folder for the run directories [./runs/NAME-HASH].")
@click.option("--jobs", type=click.IntRange(1, 256), help="Runs side by side [one a core].")
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
    Exit codes: 4 when jobs failed, 5 when the time limit was reached, 130 when interrupted.
    """
    from harness.base.documents import read_yaml
    from harness.experiments.kinds import kind_of
    from harness.experiments.resolve import experiment_path, load_experiment, variants_of
    from harness.experiments.run import check_backend, check_programs, output_folder, run_experiment
    from harness.policies.registry import read_settings

    check_backend(backend)
    given = read_settings(settings)
    policies = split_policies(policies)
    if backend == "sim" and any((rm, admin, client, allocations, shared, inventory)):
        raise CallError("an option of a real cluster", where="--backend sim", mend="give --backend local")
    document = read_yaml(experiment_path(experiment))
    kind = kind_of(document)
    if kind is not None:
        if any((rm, admin, client, allocations, shared, inventory)):
            raise CallError("a given cluster", where=f"kind {kind}", mend="leave --rm and its options out")
        if jobs is not None:
            mend = "leave it out: these runs take their turns"
            raise CallError("--jobs has no meaning here", where=f"kind {kind}", mend=mend)
        _run_kind(document, kind, backend, policies, given, seeds, out, as_json, no_report)
        return
    loaded = load_experiment(experiment, document)
    if backend != "sim":
        from harness.experiments.real.start import real_policies

        policies = tuple(real_policies(loaded, policies))
    variants = variants_of(loaded, policies=policies, settings=given, seeds=seeds)
    check_programs(loaded, backend)
    target = None
    if backend != "sim":
        from harness.experiments.real.cluster import Target, check_target
        from harness.experiments.real.start import real_variants

        variants = real_variants(variants)
        target = Target(rm, admin, client, allocations, shared, inventory=inventory)
        check_target(backend, target)
    folder = output_folder(loaded, out, backend)
    if not as_json:
        click.echo(f"{loaded.spec.experiment}: {len(variants)} run(s) into {folder}", err=True)
    if backend == "sim" and not as_json:
        _say_if_it_compiles()
    with _Progress(variants, "simulated" if backend == "sim" else "of wall-clock time") as progress:
        ended = run_experiment(
            loaded,
            variants,
            folder,
            backend=backend,
            processes=jobs,
            on_step=progress.step,
            on_end=progress.end,
            target=target,
            on_progress=progress.say,
        )
    report = None if no_report else write_report(ended, folder)
    if as_json:
        print_json(
            {
                "experiment": loaded.spec.experiment,
                "hash": loaded.hash,
                "out": str(folder),
                "report": str(report) if report is not None else None,
                "runs": [one.document() for one in ended],
            }
        )
    else:
        print_comparison(ended)
        if report is not None:
            click.echo(f"\nreport: {report}")
    verdict(ended)


def _run_kind(
    document: YamlDocument,
    kind: str,
    backend: str,
    policies: tuple[str, ...],
    settings: dict[str, str],
    seeds: tuple[int, ...],
    out: Path | None,
    as_json: bool,
    no_report: bool,
) -> None:
    """Runs an experiment of one of harness.experiments.kinds."""
    from harness.experiments.kinds import KINDS, prepare_docker

    runs = None
    if backend == "sim":
        runs = KINDS[kind](document, policies, settings, seeds)
    elif backend == "docker":
        runs = prepare_docker(kind, document, policies, settings, seeds, lambda text: click.echo(text, err=True))
    if runs is None:
        raise CallError(
            f"experiments of kind {kind} are simulated, not run on {backend[:40]}", where="--backend", mend="use sim"
        )
    folder = Path("runs") / f"{runs.name}-{runs.hash[:8]}{'' if backend == 'sim' else f'-{backend}'}"
    folder = out if out is not None else folder
    if not as_json:
        click.echo(f"{runs.name}: {runs.count} run(s) into {folder}", err=True)
    done = 0

    def ended_one(run: EndedRun) -> None:
        nonlocal done
        done += 1
        if runs.count <= 40 or done % 10 == 0 or done == runs.count:
            click.echo(f"[{done}/{runs.count}] {run.name}: {run.summary['wall_s']:.1f} s", err=True)

    ended = runs.run(folder, ended_one)
    report = None if no_report else write_report(ended, folder)
    if as_json:
        print_json(
            {
                "experiment": runs.name,
                "hash": runs.hash,
                "out": str(folder),
                "report": str(report) if report is not None else None,
                "runs": [one.document() for one in ended],
            }
        )
    else:
        for line in runs.compare(ended):
            click.echo(line)
        if report is not None:
            click.echo(f"\nreport: {report}")
    for one in ended:
        if one.exit_code == 5:
            mend = "raise time_limit_s, or ask for less"
            raise RunTimedOut(f"{one.name}: {one.why}", where=str(one.path), mend=mend)


def print_comparison(ended: list[Ended]) -> None:
    """The table over policies, means over seeds."""
    from harness.results.comparison import comparison, over_seeds

    groups: dict[str, list[Ended]] = {}
    for one in ended:
        groups.setdefault(one.variant.name.removesuffix(f",seed={one.variant.seed}"), []).append(one)
    if len(groups) < len(ended):
        click.echo(f"means over {len(ended) // len(groups)} seeds")
    for line in comparison([(name, over_seeds([one.summary for one in group])) for name, group in groups.items()]):
        click.echo(line)


def write_report(ended: Sequence[Ended | EndedRun], folder: Path) -> Path:
    """One page for all runs, beside their directories, and one in each directory."""
    from harness.report import render_report

    page = folder / "report.html"
    render_report([one.path for one in ended], page)
    for one in ended:
        render_report([one.path], one.path / "report.html")
    return page


def verdict(ended: list[Ended]) -> None:
    """Raises what the exit code is to be: a run that timed out before one whose jobs failed."""
    for code, error in ((5, RunTimedOut), (4, RunInvalid)):
        bad = [one for one in ended if one.exit_code == code]
        if bad:
            others = f" (and {len(bad) - 1} more run(s))" if len(bad) > 1 else ""
            mend = "look at jobs.parquet there" if code == 4 else "raise limits.time_limit_s, or ask for less"
            raise error(f"{bad[0].variant.name}: {bad[0].why}{others}", where=str(bad[0].path), mend=mend)
