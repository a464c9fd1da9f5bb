"""``yarnfair replay``: a recorded trace under other policies, in the simulator."""

from __future__ import annotations

from pathlib import Path

import click

from harness.base.files import writing
from harness.cli import names
from harness.cli.output import (
    Number,
    OutputFolder,
    cluster_option,
    dask_workers,
    echo_sentences,
    executor_option,
    jobs_option,
    json_option,
    named_values,
    no_report_option,
    print_json,
    say,
    seed_option,
)


def name_of(trace: Path) -> str:
    """Return the name for a replay's folder.

    For a run directory or its trace this is EXPERIMENT-RUN, otherwise the name of the file without its suffix.
    """
    if (trace / "trace.jsonl").exists():
        trace /= "trace.jsonl"
    if trace.name != "trace.jsonl":
        return trace.stem
    run = trace.resolve().parent
    return "-".join(name for name in (run.parent.name, run.name) if name) or trace.stem


@click.command(short_help="A recorded trace under other policies.")
@click.argument("trace", type=click.Path(path_type=Path))
@cluster_option
@click.option(
    "--policy",
    "policies",
    multiple=True,
    metavar="P",
    shell_complete=names.policies,
    help="NAME or NAME@outside (with commas between) [fair,ltrf@outside].",
)
@click.option(
    "--scheduler",
    "schedulers",
    multiple=True,
    type=click.Choice(["fair", "capacity"]),
    help="The RM's scheduler; give both to compare them [the trace's].",
)
@click.option("--set", "settings", multiple=True, metavar="K=V", help="A setting of the policies, or period=SECONDS.")
@seed_option("Of heartbeats' phases: a number, or a range like 1-10 [1].")
@click.option(
    "--sample",
    "sample_s",
    type=Number(0.1, 1e6),
    metavar="SECONDS",
    help="Time between two samples [1; of a long trace so much that there are some 20,000].",
)
@click.option("--out", type=OutputFolder(), help="Folder for the run directories [./runs/replay-NAME].")
@click.option(
    "--against", type=click.Path(path_type=Path), metavar="RUN", help="Say how far each run is from this real one."
)
@click.option(
    "--phases",
    type=click.IntRange(0, 1000),
    metavar="N",
    help="Phases of heartbeats and control that make the band of each figure; 0: none [20, fewer of long traces].",
)
@jobs_option
@executor_option
@no_report_option
@json_option
def replay(
    *,
    trace: Path,
    cluster: Path | None,
    policies: tuple[str, ...],
    schedulers: tuple[str, ...],
    settings: tuple[str, ...],
    seeds: tuple[int, ...],
    sample_s: float | None,
    out: Path | None,
    against: Path | None,
    phases: int | None,
    jobs: int | None,
    executor: str | None,
    no_report: bool,
    as_json: bool,
) -> None:
    """Simulate TRACE under each policy, and compare.

    TRACE is one of `yarnfair record`, a run directory, SLS', Rumen's, SWF's, a table of jobs (CSV),
    or a folder of job history files.

    Each figure is the mean of twenty phases of heartbeats and control, with their smallest and largest. Writes the
    experiment that it runs as replay.yaml into the folder of the run directories: `yarnfair run` takes it.
    """
    from harness.cli.run import split_policies, verdict, write_report
    from harness.experiments.resolve import load_experiment, variants_of
    from harness.experiments.run import run_experiment
    from harness.predict.bands import band_lines, bands_of, document_of, keep, means_of
    from harness.predict.foreign import played_trace
    from harness.predict.replay import against as compare_with
    from harness.predict.replay import difference_lines, left_out, migration, migration_lines, write_experiment
    from harness.results.folders import Contents, claimed, files_identity, free_folder
    from harness.traces.accounting import account_lines, account_of

    folder = out if out is not None else Path("runs") / f"replay-{name_of(trace)}"
    called = split_policies(policies)
    # Policies of the call are variants of one replay, unless they are written into its file (with --scheduler).
    chosen = (called, schedulers) if schedulers else ()
    identity = files_identity([trace, *([cluster] if cluster is not None else [])], sample_s, chosen)
    contents = Contents("replay", name_of(trace), identity)
    if out is None:
        folder = free_folder(folder, contents)
    with claimed(folder, contents), writing(folder, "give another --out"):
        found = played_trace(trace, cluster, folder / "trace.jsonl")
        kinds = tuple(dict.fromkeys(schedulers)) or (found.header.scheduler or "fair",)
        path = write_experiment(found, folder, sample_s=sample_s, schedulers=kinds, policies=called)
        loaded = load_experiment(str(path))

    given = named_values(settings)
    # Unless the Fair Scheduler is the only scheduler, the file already has the call's policies.
    called = called if kinds == ("fair",) else ()
    variants = variants_of(loaded, policies=called, settings=given, seeds=seeds)
    for what in [*account_lines(found.header, found.jobs), *left_out(found.header, kinds)]:
        say(f"{found.path}: {what}")
    if not as_json:
        click.echo(f"{loaded.spec.experiment}: {len(found.jobs)} jobs, {len(variants)} run(s) into {folder}", err=True)
    bands = {}
    # Connect before the runs, so that a wrong address is reported before they take their time.
    with dask_workers(executor) as workers:
        ended = run_experiment(loaded, variants, folder, processes=jobs, contents=contents)
        well = all(one.exit_code == 0 for one in ended)
        if phases != 0 and well:
            bands = bands_of(found, path, variants, phases=phases, processes=jobs, workers=workers)
    differences = [compare_with(one.path, against) for one in ended] if against is not None else []
    keep(bands, ended)
    moved = migration(ended)
    report = None if no_report else write_report(ended, folder)
    if as_json:
        print_json(
            {
                "trace": str(found.path),
                **account_of(found.header, found.jobs),
                "experiment": str(folder / "replay.yaml"),
                "out": str(folder),
                "runs": [one.document() for one in ended],
                "bands": document_of(bands),
                "against": differences,
                **({"migration": moved} if moved else {}),
            }
        )
    else:
        echo_sentences(loaded.kind.sentences(loaded, means_of(bands, ended) if bands else ended))
        # Print the table of a single phase only if no bands are wanted, or several seeds are given.
        lines = [] if bands and len(bands) >= len(ended) else [*loaded.kind.comparison(loaded, ended)]
        lines += [*band_lines(bands, loaded.kind.reference(ended)), *migration_lines(moved)]
        lines += [line for difference in differences for line in difference_lines(difference)]
        lines += [f"\nreport: {report}"] if report is not None else []
        for line in lines:
            click.echo(line)
    verdict(ended)
