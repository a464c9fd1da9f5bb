"""Campaigns: planning, running (with resume, parallelism and retries), and status.

A kill at any moment loses at most the running cells: a cell becomes `done` in the state only after its run directory is
complete, and a complete directory is never written again.
"""

from __future__ import annotations

import contextlib
import copy
import itertools
import os
import shutil
import sqlite3
import statistics
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from harness.base.errors import InputError, YarnfairError
from harness.base.files import read_json, write_json
from harness.experiments.campaign.clusters import Place
from harness.experiments.campaign.dask import Dask
from harness.experiments.campaign.executors import (
    INTERRUPTED,
    Clusters,
    Executor,
    ExecutorEvent,
    InProcessExecutor,
    Processes,
    processes_of,
)
from harness.experiments.campaign.spec import Cell, LoadedCampaign
from harness.experiments.campaign.state import FILE, RUN_FILE, CampaignState, Standing, locked
from harness.experiments.kind import Ended, Step
from harness.results.intact import damage_of
from harness.results.store import COMPLETE, RunDirectory, staging_of
from harness.results.validity import invalidity
from harness.sim.compiled import announce_compiling

#: Rough estimate of a cell that was never measured: start time, seconds, and simulated containers per second.
START_S, CONTAINERS_PER_S = 0.5, 20_000
#: Additional time of a cell on a real cluster, seconds: its part of the cluster's start, and the warm-up job.
CLUSTER_START_S = 45.0
#: How long to wait for an event of the executors, seconds.
POLL_S = 0.25


@dataclass(frozen=True, slots=True)
class Estimate:
    """Expected wall-clock seconds of one cell (None: not known), and the basis of the estimate."""

    seconds: float | None
    basis: str


@dataclass(slots=True)
class Outcome:
    """The state of a campaign after a run."""

    standings: list[Standing]
    ran: int = 0
    kept: int = 0
    wall_s: float = 0.0

    @property
    def failed(self) -> list[Standing]:
        """Return the cells that have failed."""
        return [one for one in self.standings if one.state == "failed"]


@dataclass(slots=True)
class Watch:
    """Callbacks for progress. All are called from one thread."""

    begin: Callable[[Cell, int], None] = lambda cell, attempt: None
    says: Callable[[Cell, str], None] = lambda cell, text: None
    step: Callable[[Cell, Step], None] = lambda cell, step: None
    end: Callable[[Cell, ExecutorEvent, str], None] = lambda cell, told, state: None


def folder_of(campaign: LoadedCampaign, out: Path | None) -> Path:
    """Return ``--out``, or ``runs/campaign-NAME`` below the working directory."""
    return out if out is not None else Path("runs") / f"campaign-{campaign.spec.campaign}"


def executor_of(name: str | None, jobs: int | None) -> Executor:
    """Return the executor of simulated cells: processes of this machine, or ``dask://host:port``.

    Raises CallError for anything else.
    """
    if name is None or name == "processes":
        return Processes(processes_of(jobs))
    return Dask(name)


# --- plan -------------------------------------------------------------------------------------------------------------


def estimates(campaign: LoadedCampaign, state: CampaignState | None, out: Path) -> dict[str, Estimate]:
    """Return an estimate for each cell, by id: from earlier cells, else from the size of the experiment."""
    walls = state.walls() if state is not None else {}
    simulated = _simulated_s(campaign, state, out)
    sizes: dict[str, int | None] = {}
    found = {}
    for cell in campaign.cells:
        own = walls.get((cell.hash, cell.variant.policy, cell.backend))
        alike = [
            wall
            for (hash_, _, backend), measured in walls.items()
            if (hash_, backend) == (cell.hash, cell.backend)
            for wall in measured
        ]
        if own:
            found[cell.id] = Estimate(statistics.median(own), f"{len(own)} run(s) of this policy")
        elif alike:
            found[cell.id] = Estimate(statistics.median(alike), f"{len(alike)} run(s) of this experiment")
        elif cell.place.real:
            found[cell.id] = _real_estimate(campaign, cell, simulated)
        else:
            if cell.source not in sizes:
                experiment = campaign.experiments[cell.source]
                sizes[cell.source] = experiment.kind.size(experiment, cell.variant)
            size = sizes[cell.source]
            found[cell.id] = (
                Estimate(None, "not known before it has run")
                if size is None
                else Estimate(START_S + size / CONTAINERS_PER_S, f"about {size:,} containers")
            )
    return found


def _simulated_s(campaign: LoadedCampaign, state: CampaignState | None, out: Path) -> dict[str, list[float]]:
    """Return the virtual time of simulated cells, by the experiment's hash."""
    done = {one.id for one in state.standings() if one.state == "done"} if state is not None else set()
    found: dict[str, list[float]] = {}
    for cell in campaign.cells:
        if not cell.place.real and cell.id in done:
            # Estimates use only what is readable.
            with contextlib.suppress(YarnfairError, KeyError, TypeError, ValueError):
                makespan_s = float(read_json(cell.directory(out) / "summary.json")["makespan_s"])
                found.setdefault(cell.hash, []).append(makespan_s)
    return found


def _real_estimate(campaign: LoadedCampaign, cell: Cell, simulated: Mapping[str, Sequence[float]]) -> Estimate:
    experiment = campaign.experiments[cell.source]
    duration_s, limit_s = experiment.kind.limits_s(experiment)
    if duration_s is not None:
        return Estimate(CLUSTER_START_S + duration_s, "its duration, and a cluster's start")
    if cell.hash in simulated:
        return Estimate(CLUSTER_START_S + statistics.median(simulated[cell.hash]), "simulated, and a cluster's start")
    most = f": {limit_s:,.0f} s at most" if limit_s is not None else ""
    return Estimate(None, f"a real cluster, not measured yet{most}")


# --- run --------------------------------------------------------------------------------------------------------------


class _Queue:
    """Waiting cells, by place and in order. Adding and taking take constant time however many cells wait."""

    def __init__(self) -> None:
        self._count = itertools.count()
        self._number: dict[str, int] = {}
        self._by_place: dict[Place, deque[Cell]] = {}
        self._by_experiment: dict[tuple[Place, str], deque[Cell]] = {}

    def __len__(self) -> int:
        return len(self._number)

    def __iter__(self) -> Iterator[Cell]:
        return (cell for cells in self._by_place.values() for cell in cells if cell.id in self._number)

    def append(self, cell: Cell) -> None:
        self._number[cell.id] = next(self._count)
        self._by_place.setdefault(cell.place, deque()).append(cell)
        self._by_experiment.setdefault((cell.place, cell.hash), deque()).append(cell)

    def _head(self, cells: deque[Cell] | None) -> Cell | None:
        """Return the first cell of a queue that still waits; it may have been taken through another queue."""
        while cells and cells[0].id not in self._number:
            cells.popleft()
        return cells[0] if cells else None

    def places(self) -> list[Place]:
        """Return the places with waiting cells, the place whose cell has waited longest first."""
        heads = {place: head for place, cells in self._by_place.items() if (head := self._head(cells)) is not None}
        return sorted(heads, key=lambda place: self._number[heads[place].id])

    def take(self, place: Place, preferred: str | None) -> Cell:
        """Take the next cell of a place, preferably of the experiment with the `preferred` hash."""
        cell = self._head(self._by_experiment.get((place, preferred))) if preferred is not None else None
        cell = cell or self._head(self._by_place[place])
        assert cell is not None, "a place without a cell that waits"
        del self._number[cell.id]
        return cell


@dataclass(slots=True)
class _Run:
    campaign: LoadedCampaign
    out: Path
    state: CampaignState
    executor: Executor
    clusters: Executor
    watch: Watch
    #: Whether to raise a cell's error instead of continuing with the others.
    strict: bool = False
    #: The experiment for which a place's cluster was started.
    up_for: dict[str, str] = field(default_factory=dict)
    waiting: _Queue = field(default_factory=_Queue)
    running: dict[str, tuple[Cell, float]] = field(default_factory=dict)  # id -> cell, deadline
    attempts: dict[str, int] = field(default_factory=dict)  # id -> number of starts

    def may_start(self, place: Place) -> bool:
        """Return whether a cell may start.

        One cell at a time per real cluster, and alone if we started it on this machine.
        """
        others = [other.place for other, _ in self.running.values()]
        if any(other.alone for other in others) or (place.alone and others):
            return False
        if place.real:
            return all(other != place for other in others)
        return sum(not other.real for other in others) < self.executor.room

    def fill(self) -> None:
        # A place whose cells must run alone comes first in the queue as soon as the other cells have ended.
        while (place := next((one for one in self.waiting.places() if self.may_start(one)), None)) is not None:
            # Cells for the running cluster come first, because another experiment needs another cluster.
            cell = self.waiting.take(place, self.up_for.get(place.name))
            if cell.place.real:
                self.up_for[cell.backend] = cell.hash
            else:
                cell.clear(self.out)
            self.attempts[cell.id] = self.state.begin(cell.id)
            executor = self.executor_of(cell)
            self.running[cell.id] = (cell, float("inf") if executor.queues else self.limit())
            self.watch.begin(cell, self.attempts[cell.id])
            executor.start(cell, self.campaign.experiments[cell.source], self.out)

    def limit(self) -> float:
        """Return the monotonic time at which a cell that starts now is overdue, seconds; infinite without a limit."""
        most = self.campaign.spec.timeout_s
        return time.monotonic() + most if most is not None else float("inf")

    def executor_of(self, cell: Cell) -> Executor:
        return self.clusters if cell.place.real else self.executor

    def told(self) -> list[ExecutorEvent]:
        """Return the events of all executors; wait at most `POLL_S` for one."""
        simulated = any(not cell.place.real for cell, _ in self.running.values())
        found = self.executor.told(POLL_S) if simulated else []
        return [*found, *self.clusters.told(0.0 if simulated else POLL_S)]

    def release(self) -> None:
        """Stop the clusters that no remaining cell needs."""
        wanted = {place.name for place in self.waiting.places()} | {cell.backend for cell, _ in self.running.values()}
        for name in [name for name in self.up_for if name not in wanted]:
            del self.up_for[name]
            if isinstance(self.clusters, Clusters):
                self.clusters.release(name)

    def hear(self, told: ExecutorEvent) -> None:
        if told.id not in self.running:
            return
        cell, _ = self.running[told.id]
        if told.kind == "begins":
            self.running[told.id] = (cell, self.limit())
            return
        if told.kind == "says":
            self.watch.says(cell, told.why or "")
            return
        if told.kind == "step":
            if told.step is not None:
                self.watch.step(cell, told.step)
            return
        del self.running[told.id]
        if self.strict and told.kind in ("error", "died"):
            self.state.waits(cell.id, told.why)
            what = f"the process that ran {cell.variant.name} died"
            where = str(cell.directory(self.out))
            raise told.error or YarnfairError(what, where=where, hint="is there enough memory?")
        ended_well = told.kind == "end" and told.exit_code == 0
        if not ended_well and told.passing and self.attempts[cell.id] <= self.campaign.spec.retries:
            self.state.waits(cell.id, told.why)
            self.waiting.append(cell)
            self.watch.end(cell, told, "waiting")
            return
        self.state.end(cell.id, exit_code=told.exit_code, why=told.why, may_retry=told.passing, wall_s=told.wall_s)
        self.watch.end(cell, told, "done" if ended_well else "failed")

    def overdue(self) -> None:
        for id_, (cell, limit) in list(self.running.items()):
            if time.monotonic() > limit:
                self.executor_of(cell).kill(id_)
                why = f"not ended after {self.campaign.spec.timeout_s:g} s of wall-clock time"
                self.hear(ExecutorEvent(cell.id, "died", exit_code=5, why=why, passing=True))


def ended_of(cell: Cell, out: Path) -> Ended | None:
    """Return the result in a cell's run directory.

    None if there is no result, an unfinished result, the result of another cell, or a result with a damaged file, which
    makes the cell run again.
    """
    directory = cell.directory(out)
    try:
        info, summary = read_json(directory / "run.json"), read_json(directory / "summary.json")
    except YarnfairError:
        return None
    if info.get("cell", cell.id) != cell.id or info.get("exit") is None or damage_of(directory, info):
        return None
    code, why = info["exit"], info.get("why")
    if code == 0 and (bad := invalidity(info, summary)) is not None:
        code, why = bad.exit_code, bad.reason
    return Ended(cell.variant, directory, summary, code, why)


def run_campaign(
    campaign: LoadedCampaign,
    out: Path,
    executor: Executor,
    *,
    clusters: Executor | None = None,
    watch: Watch | None = None,
    retry_failed: bool = False,
    fresh: bool | None = False,
    strict: bool = False,
    keep: bool = False,
) -> Outcome:
    """Run a campaign's cells that are not done yet.

    Parameters
    ----------
    executor
        Runs simulated cells.
    clusters
        Runs the other cells; None: a new `Clusters`.
    watch
        Callbacks for progress.
    retry_failed
        Whether to run cells again that have failed permanently.
    fresh
        Whether to run all cells again; None: only if the folder does not hold the same cells, some of them unfinished.
    strict
        Whether to raise the error of a cell instead of continuing with the others.
    keep
        Whether to leave the executors open at the end, unless the call is interrupted.

    Raises
    ------
    KeyboardInterrupt
        The call was interrupted. The cells that were running wait again.
    """
    began = time.perf_counter()
    with locked(out):
        state = CampaignState(out, FILE if campaign.cells[0].below else RUN_FILE)
        try:
            run = _Run(campaign, out, state, executor, clusters or Clusters(), watch or Watch(), strict)
            if isinstance(executor, InProcessExecutor):
                executor.hear = run.hear
            kept = _prepare(run, retry_failed, fresh)
            ran, ends = len(run.waiting), True
            if not isinstance(executor, Dask):
                announce_compiling(_compiled_for(campaign, run.waiting))
            try:
                _loop(run)
                ends = not keep
            except BaseException:
                # If this cannot be recorded, the cell is still marked as running, and the next call lets it wait again.
                with contextlib.suppress(sqlite3.Error):
                    for id_ in run.running:
                        state.interrupted(id_)
                raise
            finally:
                try:
                    if ends:
                        executor.close()
                finally:
                    if ends:
                        run.clusters.close()
                    _close_cut(run)
            stands = state.standings()
            _beside(campaign, out, {one.id: one.exit or 0 for one in stands if one.state in ("done", "failed")})
            return Outcome(stands, ran, kept, time.perf_counter() - began)
        except sqlite3.Error as error:
            raise InputError(
                f"cannot be written: {error}", where=str(state.path), hint="check the disk, then run it again"
            ) from None
        finally:
            state.close()


def _prepare(run: _Run, retry_failed: bool, fresh: bool | None) -> int:
    """Record the campaign's cells, and queue those that have to run; return the number of the others.

    Results of cells that no longer belong to the campaign are moved to the folder ``.old``.
    """
    by_id = {cell.id: cell for cell in run.campaign.cells}
    if fresh is None:
        before = {one.id: one.state for one in run.state.standings()}
        fresh = before.keys() != by_id.keys() or not {"waiting", "running"} & set(before.values())
    for id_ in run.state.adopt(run.campaign.cells):
        # Results of an older version of the file or of the program are kept, but do not belong to the campaign.
        old = run.out / "cells" / id_[:16]
        if old.is_dir():
            aside = run.out / ".old"
            aside.mkdir(exist_ok=True)
            shutil.rmtree(aside / id_[:16], ignore_errors=True)
            os.replace(old, aside / id_[:16])
        run.state.forget(id_)
    kept = 0
    for standing in run.state.standings():
        cell = by_id[standing.id]
        again = fresh or (standing.state == "failed" and retry_failed) or not _is_there(cell, run.out, standing)
        if again:
            run.state.again(cell.id)
        if again or standing.state == "waiting":
            run.waiting.append(cell)
        else:
            kept += 1
    return kept


def _loop(run: _Run) -> None:
    while run.waiting or run.running:
        run.fill()
        for told in run.told():
            run.hear(told)
        run.overdue()
        run.release()


def _is_there(cell: Cell, out: Path, standing: Standing) -> bool:
    """Return whether an ended cell still has complete results with the recorded exit code.

    True for cells that have not ended, and for failed cells of a campaign file, whose results do not matter.
    """
    if standing.state in ("waiting", "running") or (standing.state == "failed" and cell.below):
        return True
    found = ended_of(cell, out)
    return found is not None and bool(found.summary) and found.exit_code == (standing.exit or 0)


def _compiled_for(campaign: LoadedCampaign, cells: Iterable[Cell]) -> set[str]:
    """Return the schedulers on which cells are simulated by compiled code."""
    return {
        getattr(cell.variant, "scheduler", None) or "fair"
        for cell in cells
        if cell.place.kind == "sim" and campaign.experiments[cell.source].kind.compiles
    }


def _close_cut(run: _Run) -> None:
    """Mark the run directories of the cells that are still running as interrupted."""
    for cell, _ in run.running.values():
        directory = cell.directory(run.out)
        for path in (directory, staging_of(directory)):
            # A directory without a run.json had not begun.
            with contextlib.suppress(YarnfairError, OSError):
                info = read_json(path / "run.json")
                if info.get("exit") is None and info.get("cell") == cell.id:
                    RunDirectory.close(path, INTERRUPTED, "interrupted")


def _beside(campaign: LoadedCampaign, out: Path, exits: Mapping[str, int]) -> None:
    """Add metrics that compare runs of the same experiment, backend and repeat to the summaries: speed-ups.

    ``exits``: exit codes of the cells' last attempts, by ID. If the last attempt failed, the directory may still hold
    the result of an earlier one, which is not compared.
    """
    groups: dict[tuple[str, str, int], list[Ended]] = {}
    for cell in campaign.cells:
        ended = ended_of(cell, out)
        if ended is not None and ended.summary and exits.get(cell.id) in COMPLETE:
            groups.setdefault((cell.source, cell.backend, cell.repeat), []).append(ended)
    for (source, *_), runs in groups.items():
        before = [copy.deepcopy(run.summary) for run in runs]
        campaign.experiments[source].kind.beside(campaign.experiments[source], runs)
        for run, old in zip(runs, before, strict=True):
            if run.summary != old:
                write_json(run.path / "summary.json", run.summary)


def _noted(out: Path) -> list[Standing]:
    """Return the cells' states in a campaign's folder; an empty list if no campaign ever ran there."""
    if not (out / FILE).is_file():
        return []
    with contextlib.closing(CampaignState(out)) as state:
        return state.standings()


#: Message about a cell that was done already.
GONE = "its results are gone or damaged: it runs again"


def standings(campaign: LoadedCampaign, out: Path) -> list[Standing]:
    """Return the state of each cell without changing anything; all wait if the campaign never ran.

    A done cell counts as waiting if its results are missing or damaged: the next `campaign run` computes them again.
    """
    known = {one.id: one for one in _noted(out)}
    found = []
    for cell in campaign.cells:
        one = known.get(cell.id)
        if one is None:
            policy = cell.variant.policy
            one = Standing(cell.id, cell.name, cell.experiment, policy, "waiting", 0, None, None, False, None)
        elif not _is_there(cell, out, one):
            one = replace(one, state="waiting", exit=None, why=GONE)
        found.append(one)
    return found


def outdated(campaign: LoadedCampaign, out: Path) -> int:
    """Return how many done cells in the folder do not belong to the campaign's present version."""
    done = {one.id for one in _noted(out) if one.state == "done"}
    return len(done - {cell.id for cell in campaign.cells})


def directories(campaign: LoadedCampaign, out: Path, found: Sequence[Standing]) -> list[Path]:
    """Return the run directories of the done cells, in the campaign's order."""
    done = {one.id for one in found if one.state == "done"}
    return [cell.directory(out) for cell in campaign.cells if cell.id in done]
