"""``yarnfair campaign``: plan, run, status."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harness.base.errors import RunInvalid, RunTimedOut
from harness.base.words import seconds
from harness.cli.output import OutputFolder, echo_wrapped, json_option, print_json, print_result, warn
from harness.cli.progress import CampaignProgress

if TYPE_CHECKING:
    from harness.experiments.campaign.run import Estimate, Outcome
    from harness.experiments.campaign.spec import Cell, LoadedCampaign
    from harness.experiments.campaign.state import Standing

FILE = click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
JOBS = click.option("--jobs", type=click.IntRange(1, 256), help="Cells side by side [one a core].")
_OUT_HELP = "The campaign's folder [./runs/campaign-NAME]."
OUT = click.option("--out", type=click.Path(path_type=Path), help=_OUT_HELP)


@click.group()
def campaign() -> None:
    """Plan a grid of experiments, run it (a second call resumes it), and show its state."""


def _total(cells: list[tuple[Cell, Estimate]], room: int) -> float | None:
    """Return the total wall-clock time; None if unknown.

    ``room``: number of simulations at once. Cells of one real backend run one after another, beside the simulations and
    the other backends; cells that need the machine alone run after all others.
    """
    if any(one.seconds is None for _, one in cells):
        return None
    simulated = sum(one.seconds or 0.0 for cell, one in cells if not cell.place.real) / room
    alone = sum(one.seconds or 0.0 for cell, one in cells if cell.place.alone)
    turns: dict[str, float] = {}
    for cell, one in cells:
        if cell.place.real and not cell.place.alone:
            turns[cell.backend] = turns.get(cell.backend, 0.0) + (one.seconds or 0.0)
    return max([simulated, *turns.values()]) + alone


def _takes(expected_s: float | None) -> str:
    return "not known" if expected_s is None else seconds(expected_s)


@campaign.command()
@FILE
@OUT
@JOBS
@json_option
def plan(file: Path, out: Path | None, jobs: int | None, as_json: bool) -> None:
    """List the cells of FILE and how long they may take. Runs nothing."""
    from harness.experiments.campaign.executors import processes_of
    from harness.experiments.campaign.run import estimates, folder_of, standings
    from harness.experiments.campaign.spec import load_campaign
    from harness.experiments.campaign.state import CampaignState

    loaded = load_campaign(file)
    folder = folder_of(loaded, out)
    state = CampaignState(folder) if (folder / "campaign.sqlite").is_file() else None
    try:
        known = estimates(loaded, state, folder)
    finally:
        if state is not None:
            state.close()
    stands = {one.id: one for one in standings(loaded, folder)}
    room = processes_of(jobs)
    open_cells = [(cell, known[cell.id]) for cell in loaded.cells if stands[cell.id].state in ("waiting", "running")]
    failed = sum(one.state == "failed" for one in stands.values())
    total = _total(open_cells, room)
    if as_json:
        print_json(
            {
                "campaign": loaded.spec.campaign,
                "out": str(folder),
                "cells": [_planned(cell, known[cell.id], stands[cell.id]) for cell in loaded.cells],
                "waiting": len(open_cells),
                "failed": failed,
                "estimate_s": total,
                "side_by_side": room,
                "remarks": [*loaded.remarks, *_outdated(loaded, folder)],
            }
        )
        return
    warn((*loaded.remarks, *_outdated(loaded, folder)))
    for cell in loaded.cells:
        one = known[cell.id]
        stands_at = stands[cell.id].state
        echo_wrapped(f"{cell.id[:8]}  {stands_at:<8} {_takes(one.seconds):>9}  {cell.name}  ({one.basis})", hang=31)
    click.echo(
        f"{len(loaded.cells)} cells, {len(open_cells)} to run: {_takes(total)} with {room} side by side (an estimate)"
    )
    if failed:
        click.echo(f"{failed} failed, which only `yarnfair campaign run --retry-failed` runs again")


def _planned(cell: Cell, estimate: Estimate, standing: Standing) -> dict[str, Any]:
    return {
        "id": cell.id,
        "name": cell.name,
        "experiment": cell.experiment,
        "variant": cell.variant.name,
        "policy": cell.variant.policy,
        "mode": cell.variant.mode,
        "settings": dict(cell.variant.settings),
        "seed": cell.variant.seed,
        "backend": cell.backend,
        "repeat": cell.repeat,
        "state": standing.state,
        "estimate_s": estimate.seconds,
        "basis": estimate.basis,
    }


@campaign.command()
@FILE
@click.option("--out", type=OutputFolder(), help=_OUT_HELP)
@JOBS
@click.option("--executor", metavar="dask://HOST:PORT", help="Run simulated cells on a Dask cluster.")
@click.option("--retry-failed", is_flag=True, help="Also run again what failed for good.")
@click.option("--fresh", is_flag=True, help="Run everything anew.")
@json_option
def run(
    file: Path,
    out: Path | None,
    jobs: int | None,
    executor: str | None,
    retry_failed: bool,
    fresh: bool,
    as_json: bool,
) -> None:
    """Run the cells of FILE that are not done yet.

    A failed cell does not stop the campaign; failed cells are listed at the end (exit code 4, or 5 when all of them
    timed out). After an interruption, the same call runs what is left.
    """
    from harness.experiments.campaign.run import Watch, executor_of, folder_of, run_campaign, standings
    from harness.experiments.campaign.spec import load_campaign
    from harness.results.folders import Contents, claim

    loaded = load_campaign(file)
    folder = folder_of(loaded, out)
    # Another version of the campaign may use the folder: results of cells that this version lacks are set aside.
    claim(folder, Contents("campaign", loaded.spec.campaign, ""))
    warn((*loaded.remarks, *_outdated(loaded, folder)))
    stands = standings(loaded, folder)
    kept = sum(one.state == "done" or (one.state == "failed" and not retry_failed) for one in stands)
    kept = 0 if fresh else kept
    runs_on = executor_of(executor, jobs)
    if not as_json:
        click.echo(f"{loaded.spec.campaign}: {len(stands)} cells, {kept} done before, into {folder}", err=True)
    with CampaignProgress(len(loaded.cells), kept) as progress:
        outcome = run_campaign(
            loaded,
            folder,
            runs_on,
            watch=Watch(progress.begin, progress.says, progress.step, progress.end),
            retry_failed=retry_failed,
            fresh=fresh,
        )
    document = {"ran": outcome.ran, "kept": outcome.kept, **_document(loaded, folder, outcome.standings)}
    lines = [*_lines(outcome.standings), f"yarnfair compare {folder}; yarnfair report {folder}"]
    print_result(as_json, document, lines)
    _verdict(outcome, folder)


@campaign.command()
@FILE
@OUT
@json_option
def status(file: Path, out: Path | None, as_json: bool) -> None:
    """Show the state of the cells of FILE, also while the campaign runs. Changes nothing."""
    from harness.experiments.campaign.run import folder_of, standings
    from harness.experiments.campaign.spec import load_campaign

    loaded = load_campaign(file)
    folder = folder_of(loaded, out)
    stands = standings(loaded, folder)
    if not as_json:
        warn(_outdated(loaded, folder))
    print_result(as_json, _document(loaded, folder, stands), _lines(stands))


def _outdated(loaded: LoadedCampaign, folder: Path) -> list[str]:
    """Return a remark on results that do not belong to the present cells; empty if there are none."""
    from harness.experiments.campaign.run import outdated

    count = outdated(loaded, folder)
    whose = "another version of these files, of yarnfair, or of what it stands on"
    return [f"{folder}: {count} cell(s) done by {whose} do not count; `run` sets them aside"] if count else []


def _document(loaded: LoadedCampaign, folder: Path, stands: list[Standing]) -> dict[str, Any]:
    by_id = {cell.id: cell for cell in loaded.cells}
    return {
        "campaign": loaded.spec.campaign,
        "out": str(folder),
        "counts": _counts(stands),
        "cells": [
            {
                "id": one.id,
                "name": one.name,
                "state": one.state,
                "attempts": one.attempts,
                "exit": one.exit,
                "why": one.why,
                "wall_s": one.wall_s,
                "directory": str(by_id[one.id].directory(folder)),
            }
            for one in stands
        ],
        "failed": [{"id": one.id, "name": one.name, "why": one.why} for one in stands if one.state == "failed"],
    }


def _counts(stands: list[Standing]) -> dict[str, int]:
    return {state: sum(one.state == state for one in stands) for state in ("done", "failed", "running", "waiting")}


def _lines(stands: list[Standing]) -> list[str]:
    lines = [f"{count} {state}" for state, count in _counts(stands).items() if count]
    out = [f"{len(stands)} cells: {', '.join(lines)}"]
    for one in stands:
        if one.state in ("failed", "running"):
            why = f": {one.why}" if one.why else ""
            out.append(f"  {one.state}: {one.name} ({one.id[:8]}, attempt {one.attempts}){why}")
        elif one.state == "waiting" and one.why:
            # Most cells wait for their first turn; only one that ran before has something to explain.
            out.append(f"  waiting: {one.name} ({one.id[:8]}): {one.why}")
    return out


def _verdict(outcome: Outcome, folder: Path) -> None:
    failed = outcome.failed
    if failed:
        names = ", ".join(one.name for one in failed[:5]) + (f" and {len(failed) - 5} more" if len(failed) > 5 else "")
        # As in `check`: the exit code is 5 only if all failures are timeouts.
        error = RunTimedOut if all(one.exit == 5 for one in failed) else RunInvalid
        raise error(
            f"{len(failed)} of {len(outcome.standings)} cells failed: {names}",
            where=str(folder),
            hint="see what they say, mend it, and run again with --retry-failed",
        )
