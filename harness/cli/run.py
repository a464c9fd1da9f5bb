"""``yarnfair run``: parsing, progress and printing; harness.experiments runs the experiments."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harness.base.errors import CallError, RunInvalid, RunTimedOut
from harness.cli import names
from harness.cli.access import Access, access_options
from harness.cli.output import (
    OutputFolder,
    echo_sentences,
    echo_wrapped,
    jobs_option,
    json_option,
    named_values,
    no_report_option,
    print_json,
    seed_option,
)
from harness.cli.progress import RunProgress
from harness.cli.scheduler_file import on_scheduler_file, scheduler_file_of, scheduler_file_options

if TYPE_CHECKING:
    from harness.experiments.campaign.executors import Processes
    from harness.experiments.kind import Ended, Loaded, Target
    from harness.experiments.selection import Selection
    from harness.yarn.http import HttpOptions


def split_policies(given: tuple[str, ...]) -> tuple[str, ...]:
    """Split ``--policy fair,ltrf`` at commas; names of variants with settings (``hltrf,t_wait=10``) stay whole."""
    return tuple(
        part.strip()
        for text in given
        for part in ([text] if "=" in text else text.split(","))
        if part.strip() or not text
    )


def say_if_it_compiles(schedulers: Iterable[str] = ("fair",)) -> None:
    """Print a line on standard error if the first run on one of these schedulers takes longer because it compiles.

    For commands whose workers compile; if this process compiles, `announce_with` is enough.
    """
    from harness.sim.compiled import announce_compiling

    announce_compiling(schedulers)


@click.command(short_help="Run one experiment under each of its policies.")
@click.argument(
    "experiments", metavar="EXPERIMENT...", nargs=-1, required=True, shell_complete=names.brought("experiments")
)
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
@seed_option("Instead of the file's: a number, or a range like 1-10.")
@click.option("--out", type=OutputFolder(), help="Folder for the run directories [./runs/NAME-HASH].")
@jobs_option
@click.option("--resume", is_flag=True, help="Keep the runs in --out that have ended; run only the others.")
@no_report_option
@click.option("--rm", metavar="URL", help="With a real backend: this ResourceManager, instead of bringing one up.")
@click.option("--admin", metavar="HOST:PORT", help="Its admin RPC [what the RM says].")
@click.option("--client", metavar="HOST:PORT", help="Its client RPC [what the RM says].")
@click.option("--allocations", metavar="PLACE", help="Its allocation file: a path, sftp://, webhdfs:// [queues stay].")
@click.option("--shared", metavar="DIR", help="A folder that this machine and all its nodes see under the same path.")
@click.option("--inventory", metavar="FILE", help="With --backend ssh: the hosts (docs/how-to/ssh-cluster.md).")
@click.option("--hadoop", metavar="VERSION", help="With a real backend: the release of the cluster brought up [3.5.0].")
@scheduler_file_options
@access_options
@json_option
def run(
    *,
    experiments: tuple[str, ...],
    backend: str,
    policies: tuple[str, ...],
    settings: tuple[str, ...],
    seeds: tuple[int, ...],
    out: Path | None,
    jobs: int | None,
    resume: bool,
    no_report: bool,
    as_json: bool,
    access: Access,
    scheduler_file: str | None,
    place: str | None,
    drop: bool,
    groups: tuple[str, ...],
    **cluster: str | None,
) -> None:
    """Run EXPERIMENT (a YAML file, or a name of `yarnfair list experiments`) under each of its policies.

    It writes a run directory for each policy and variant, and one HTML report. Standard output has three sentences,
    then a table. Several experiments run one after another.

    After an interruption, the same call runs what is left. After its end, the same call runs everything again, unless
    you give --resume. Exit codes: 4 when jobs failed, 5 when the time limit was reached, 130 when interrupted.
    """
    from harness.base.workers import begin_server

    if backend == "sim" and jobs != 1:
        begin_server()
    from harness.experiments.kind import Target
    from harness.experiments.run import check_backend
    from harness.experiments.selection import Selection

    check_backend(backend)
    given = named_values(settings)
    target = Target(**cluster, http=_http(access, cluster["rm"]))
    if backend == "sim" and target != Target():
        raise CallError("an option of a real cluster", where="--backend sim", hint="give --backend local")
    on_file = {"scheduler_file": scheduler_file, "place": place, "drop": drop, "groups": groups}
    if scheduler_file is not None and backend != "sim":
        raise CallError(
            "--scheduler-file is of the simulator", where=f"--backend {backend}", hint="leave one of the two out"
        )
    asked = Selection(split_policies(policies), given, seeds, real=backend != "sim")
    with _processes(jobs, asked) as workers:
        called = [_Called(name, asked, backend, target if asked.real else None, on_file) for name in experiments]
        for one in called:
            one.place(out if out is None or len(called) == 1 else out / one.loaded.name)
            one.run(workers, resume, quiet=as_json)
            one.report = None if no_report else write_report(one.ended, one.folder)
    if as_json:
        documents = [one.document() for one in called]
        print_json(documents[0] if len(documents) == 1 else {"experiments": documents})
    else:
        for one in called:
            one.say(title=len(called) > 1)
        for one in called:
            one.show(title=len(called) > 1)
        for one in called:
            if one.report is not None:
                click.echo(f"report: {one.report}")
    verdict([ended for one in called for ended in one.ended])


@contextmanager
def _processes(jobs: int | None, asked: Selection) -> Iterator[Processes | None]:
    """Provide the worker processes for all simulations of the call; None if this process simulates."""
    from harness.experiments.campaign.executors import Processes, processes_of

    room = processes_of(jobs)
    if asked.real or room <= 1:
        yield None
        return
    with closing(Processes(room)) as workers:
        yield workers


def _http(access: Access, rm: str | None) -> HttpOptions | None:
    """Return the HTTP options for the ResourceManager; None if the call gives none (Kerberos, own TLS certificate)."""
    if not access:
        return None
    if rm is None:
        raise click.UsageError("--kerberos, --keytab and --ca-file go with --rm")
    from harness.experiments.real.cluster import USER
    from harness.yarn.http import HttpOptions

    return HttpOptions(**{"user": USER, **access})


class _Called:
    """One experiment of the call. The constructor checks everything that the user gave before anything runs."""

    def __init__(
        self, name: str, asked: Selection, backend: str, target: Target | None, on_file: dict[str, Any]
    ) -> None:
        from harness.base.documents import read_yaml
        from harness.experiments.kind import kind_of
        from harness.experiments.resolve import experiment_path

        document = read_yaml(experiment_path(name))
        self.kind, self.backend, self.target = kind_of(document), backend, target
        self.loaded = self._on_file(self.kind.load(document), on_file)
        self.variants = self.kind.variants(self.loaded, asked)
        self.kind.check(self.loaded, self.variants, backend, target)
        self.folder, self.report = Path(), None  # type: Path, Path | None
        self.ended: Sequence[Ended] = ()

    def _on_file(self, loaded: Loaded, on_file: dict[str, Any]) -> Loaded:
        """Return the experiment on the queues of a scheduler's own file, if the call names one."""
        from harness.experiments.resolve import LoadedExperiment

        if isinstance(loaded, LoadedExperiment):
            return on_scheduler_file(loaded, on_file)
        if scheduler_file_of({}, on_file) is not None:
            raise CallError(
                f"{loaded.name} does not run on YARN's schedulers", where="--scheduler-file", hint="leave it out"
            )
        return loaded

    def place(self, out: Path | None) -> None:
        from harness.experiments.run import output_folder

        self.folder = output_folder(self.loaded, out, self.backend)

    def run(self, workers: Processes | None, resume: bool, *, quiet: bool) -> None:
        from harness.experiments.run import run_experiment

        if not quiet:
            click.echo(f"{self.loaded.name}: {len(self.variants)} run(s) into {self.folder}", err=True)
        with RunProgress(self.variants, "simulated" if self.target is None else "of wall-clock time") as progress:
            self.ended = run_experiment(
                self.loaded,
                self.variants,
                self.folder,
                backend=self.backend,
                processes=1,
                workers=workers,
                resume=resume,
                on_step=progress.step,
                on_end=progress.end,
                target=self.target,
                on_progress=progress.say,
            )

    def document(self) -> dict[str, Any]:
        """Return the document that ``--json`` prints."""
        return {
            "experiment": self.loaded.name,
            "hash": self.loaded.hash,
            "out": str(self.folder),
            "report": str(self.report) if self.report is not None else None,
            "says": list(self.kind.sentences(self.loaded, self.ended)),
            "runs": [one.document() for one in self.ended],
        }

    def _title(self) -> None:
        about = getattr(getattr(self.loaded, "spec", None), "about", "")
        echo_wrapped(f"{self.loaded.name}: {about}" if about else self.loaded.name, hang=2)

    def say(self, *, title: bool) -> None:
        """Print the experiment's sentences; those of all experiments come before the first table."""
        said = self.kind.sentences(self.loaded, self.ended)
        if said and title:
            self._title()
        echo_sentences(said)

    def show(self, *, title: bool) -> None:
        """Print the experiment's table."""
        if title:
            self._title()
        for line in self.kind.comparison(self.loaded, self.ended):
            click.echo(line)
        click.echo()


def write_report(ended: Sequence[Ended], folder: Path) -> Path:
    """Write one page for all runs beside their directories, and one page in each directory."""
    from harness.report import render_report

    page = folder / "report.html"
    render_report([one.path for one in ended], page)
    for one in ended:
        render_report([one.path], one.path / "report.html")
    return page


def verdict(ended: Sequence[Ended]) -> None:
    """Raise the error that determines the exit code, if there is one: a timeout takes precedence over failed jobs."""
    from harness.experiments.kind import NEVER_ENDS

    for code, error in ((5, RunTimedOut), (4, RunInvalid)):
        bad = [one for one in ended if one.exit_code == code]
        if bad:
            others = f" (and {len(bad) - 1} more run(s))" if len(bad) > 1 else ""
            hint = "look at jobs.parquet there" if code == 4 else "raise its time limit, or ask for less"
            why = bad[0].why or ""
            if why.startswith(NEVER_ENDS):
                hint = ""  # the message names the setting
            elif why.startswith("the policy "):
                hint = "look at the alarms in decisions.jsonl there"
            raise error(f"{bad[0].variant.name}: {bad[0].why}{others}", where=str(bad[0].path), hint=hint or None)
