"""Executors, which run a campaign's cells: in processes of this machine, on Dask workers, or on real clusters.

Executors start cells and report their events; harness.experiments.campaign.run decides which cell is next, and which
cells run again after a failure.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, Literal, Protocol

from harness.base.debug import DebugLog, debug_log
from harness.base.errors import CallError, InputError, YarnfairError
from harness.base.workers import end_in_order_with_parent, workers_context
from harness.experiments.campaign.clusters import OpenCluster
from harness.experiments.campaign.spec import Cell, policy_code
from harness.experiments.kind import Loaded, Runner, Step
from harness.experiments.real.abandoned import clean_abandoned
from harness.results.store import RunDirectory
from harness.results.validity import invalidity

INTERRUPTED = 130
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ExecutorEvent:
    """An event of a cell, reported by an executor.

    Parameters
    ----------
    id
        The cell's ID.
    kind
        ``begins``: an executor that queues cells has started it. ``step``: progress (``step``). ``says``: a message on
        what a cluster is doing (``why``). ``end``: the run has ended (``exit_code``, ``why``, ``wall_s``). ``error``:
        the run raised ``error`` (described by ``why`` and ``exit_code``). ``died``: the process or worker has died.
    wall_s
        Wall-clock time of the run, seconds.
    passing
        Whether the failure may be temporary, so that the cell may run again.
    """

    id: str
    kind: Literal["begins", "step", "says", "end", "error", "died"]
    step: Step | None = None
    exit_code: int = 1
    why: str | None = None
    wall_s: float | None = None
    passing: bool = False
    error: Exception | None = None


class Executor(Protocol):
    """Runs cells in some place."""

    #: Maximum number of cells at once, including those that wait at a worker.
    room: int
    #: Whether cells may wait at a worker, which saves the time between two cells; `told` reports when one begins.
    queues: bool

    def start(self, cell: Cell, experiment: Loaded, out: Path) -> None:
        """Start a cell; its run directory is written to ``cell.directory(out)``."""

    def told(self, timeout_s: float) -> list[ExecutorEvent]:
        """Return the events since the last call; wait at most this long for one."""

    def kill(self, id_: str) -> None:
        """Stop a cell's work at once; no more events of it follow."""

    def close(self) -> None:
        """Stop everything."""


def run_cell(
    experiment: Loaded,
    cell: Cell,
    out: Path,
    on_step: Callable[[Step], None] | None = None,
    *,
    runner: Runner | None = None,
    cluster: OpenCluster | None = None,
    coming: Sequence[object] = (),
    says: Callable[[str], None] = lambda _: None,
) -> ExecutorEvent:
    """Run one cell into its directory below `out`, and return how it ended; only KeyboardInterrupt is raised.

    Requests to daemons, including the cluster's start, are logged in ``debug.log`` of the run directory.

    Parameters
    ----------
    on_step
        Receives the run's progress.
    runner
        Runs the cell instead of the experiment type's own runner.
    cluster
        Holds the cluster of a cell that is not simulated.
    coming
        The variants that are known to run on that cluster.
    says
        Receives messages on what the cluster is doing.
    """
    with debug_log() as log:
        return _run_cell(experiment, cell, out, on_step, log, runner=runner, cluster=cluster, coming=coming, says=says)


def _run_cell(
    experiment: Loaded,
    cell: Cell,
    out: Path,
    on_step: Callable[[Step], None] | None,
    log: DebugLog,
    *,
    runner: Runner | None,
    cluster: OpenCluster | None,
    coming: Sequence[object],
    says: Callable[[str], None],
) -> ExecutorEvent:
    began = time.perf_counter()
    real, kind = cell.place.real, experiment.kind

    def told(passing: bool, exit_code: int, why: str | None, error: Exception | None = None) -> ExecutorEvent:
        wall_s = round(time.perf_counter() - began, 3)
        return ExecutorEvent(cell.id, "end" if error is None else "error", None, exit_code, why, wall_s, passing, error)

    try:
        if runner is None:
            kind.check(experiment, [cell.variant], cell.place.kind, cell.place.target if real else None)
        if runner is None and real:
            assert cluster is not None
            runner = cluster.runner(experiment, [*(coming or [cell.variant])], cell.place, says)
            # The files may be removed only now that the lock is taken, because the previous user of the cluster may
            # have been writing its measurements.
            cell.clear(out)
        directory = RunDirectory(
            cell.directory(out),
            {
                **cell.variant.identity(),
                "backend": cell.place.kind,
                **({"place": cell.place.name} if cell.place.name != cell.place.kind else {}),
                "cell": cell.id,
                "repeat": cell.repeat,
                "hash": experiment.hash,
                **({"policy_code": code} if (code := policy_code(cell.variant)) else {}),
                **experiment.described(),
            },
        )
        log.write_to(directory.path)
        try:
            outcome = (runner or kind.run_one)(experiment, cell.variant, directory, on_step)
        except BaseException as error:
            RunDirectory.close(directory.path, *_words(error))
            raise
        # One rule for all backends and experiment types; an experiment type only supplies a better message.
        ended = {**directory.info, "exit": outcome.exit_code, "why": outcome.why}
        if outcome.exit_code == 0 and (bad := invalidity(ended, outcome.summary)) is not None:
            outcome = replace(outcome, exit_code=bad.exit_code, why=bad.reason)
        RunDirectory.close(directory.path, outcome.exit_code, outcome.why)
    except YarnfairError as error:
        wrong = isinstance(error, InputError | CallError)
        return told(real and isinstance(error, InputError) if wrong else True, *_words(error), error)
    except Exception as error:
        _LOG.debug("%s failed", cell.name, exc_info=True)
        # A defect of the program has the same result again in the simulator, but perhaps not on a cluster.
        return told(real, *_words(error), error)
    # The simulator's jobs fail again in the same way; a cluster's may not.
    return told(real and outcome.exit_code != 0, outcome.exit_code, outcome.why)


def _words(error: BaseException) -> tuple[int, str]:
    """Return the exit code of an error, and its description for ``run.json``."""
    if isinstance(error, YarnfairError):
        return error.exit_code, error.line()
    if isinstance(error, KeyboardInterrupt):
        return INTERRUPTED, "interrupted"
    return 1, f"{type(error).__name__}: {' '.join(str(error).split())[:500]}"


class InProcessExecutor:
    """Runs cells one after another in this process, also on a real cluster, which stays up between cells."""

    room, queues = 1, False

    def __init__(self, coming: Sequence[object] = (), runner: Runner | None = None) -> None:
        """``coming``: the variants that will come; ``runner``: as in `run_cell`."""
        self._coming, self._runner = coming, runner
        self._next: tuple[Cell, Loaded, Path] | None = None
        self._cluster = OpenCluster(turns=False)
        #: Called with steps and messages at once; `told` returns when a cell has ended.
        self.hear: Callable[[ExecutorEvent], None] = lambda told: None

    def start(self, cell: Cell, experiment: Loaded, out: Path) -> None:
        """Remember the cell; the next `told` runs it."""
        self._next = (cell, experiment, out)

    def told(self, timeout_s: float) -> list[ExecutorEvent]:
        """Run the cell that was started and return its events."""
        if self._next is None:
            return []
        (cell, experiment, out), self._next = self._next, None
        return [
            run_cell(
                experiment,
                cell,
                out,
                lambda step: self.hear(ExecutorEvent(cell.id, "step", step)),
                runner=self._runner,
                cluster=self._cluster,
                coming=self._coming,
                says=lambda text: self.hear(ExecutorEvent(cell.id, "says", why=text)),
            )
        ]

    def kill(self, id_: str) -> None:
        """No-op: nothing runs when this is called."""

    def close(self) -> None:
        """Close the cluster that was kept up between cells."""
        self._cluster.close()


# --- processes of this machine ----------------------------------------------------------------------------------------


def told_afar(told: ExecutorEvent) -> ExecutorEvent:
    """Convert an event for another process.

    A program's error becomes its traceback, as not every error can be pickled.
    """
    if told.error is None or isinstance(told.error, YarnfairError):
        return told
    return replace(told, error=RuntimeError("".join(traceback.format_exception(told.error))))


def _begin_worker(environment: Mapping[str, str], number: signal.Signals) -> None:
    """Initialise a worker. If the campaign's process ends, the worker receives the signal `number`.

    A resumed campaign therefore finds no old worker that still writes.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # The server process that forks workers has the environment variables of the time when it was started.
    os.environ.clear()
    os.environ.update(environment)
    end_in_order_with_parent(number)


def _serve(link: Connection, run: Callable[[Cell, Loaded, Path], ExecutorEvent]) -> None:
    """Run the cells that arrive over the connection, until it is closed or no more arrive."""
    with contextlib.suppress(EOFError, OSError):
        while (task := link.recv()) is not None:
            link.send(told_afar(run(*task)))


def _tell(link: Connection, told: ExecutorEvent) -> None:
    """Send an event to the campaign; a closed connection is an interruption, not a failure of the cell."""
    try:
        link.send(told)
    except OSError:
        raise KeyboardInterrupt from None


def _worker(link: Connection, environment: Mapping[str, str]) -> None:
    def run(cell: Cell, experiment: Loaded, out: Path) -> ExecutorEvent:
        return run_cell(experiment, cell, out, lambda step: _tell(link, ExecutorEvent(cell.id, "step", step)))

    _begin_worker(environment, signal.SIGKILL)
    # The connection can break before the signal of the campaign's end arrives.
    with contextlib.suppress(KeyboardInterrupt):
        _serve(link, run)


def _cluster_worker(link: Connection, environment: Mapping[str, str]) -> None:
    """Run cells on one cluster, which stays up from cell to cell.

    SIGTERM, or the end of the parent process, stops the worker in order: it kills the running jobs, keeps the
    measurements and stops the cluster.
    """
    signal.signal(signal.SIGTERM, _end_in_order)
    cluster = OpenCluster()

    def run(cell: Cell, experiment: Loaded, out: Path) -> ExecutorEvent:
        told = run_cell(
            experiment,
            cell,
            out,
            lambda step: _tell(link, ExecutorEvent(cell.id, "step", step)),
            cluster=cluster,
            says=lambda text: _tell(link, ExecutorEvent(cell.id, "says", why=text)),
        )
        if told.kind != "end" or told.exit_code:
            # A problem of this cluster must not affect the next cell.
            cluster.close()
        return told

    try:
        _begin_worker(environment, signal.SIGTERM)
        _serve(link, run)
    except KeyboardInterrupt:
        return
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        # There is no reader any more; `clean_abandoned` stops what is left.
        with contextlib.suppress(Exception):
            cluster.close()


def _end_in_order(*_: object) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise KeyboardInterrupt


def processes_of(asked: int | None) -> int:
    """Return how many cells are simulated at once: the requested number, or the number of cores."""
    return asked if asked is not None else os.cpu_count() or 1


@dataclass(slots=True)
class _Process:
    process: Any
    link: Connection
    id: str | None = None
    #: The name of the place whose cluster it has.
    place: str = "sim"


class Processes:
    """Runs cells in parallel processes of this machine; each process is reused for the next cell."""

    queues = False
    _target: Callable[[Connection, Mapping[str, str]], None] = staticmethod(_worker)

    def __init__(self, room: int) -> None:
        self.room = room
        self._workers: list[_Process] = []
        self._context = workers_context()

    def start(self, cell: Cell, experiment: Loaded, out: Path) -> None:
        """Give a cell to an idle worker process, or to a new one."""
        name = cell.place.name
        for worker in [one for one in self._workers if one.id is None and one.place == name]:
            worker.id = cell.id
            # If an idle process has died, another one, or a new one, takes the cell.
            with contextlib.suppress(OSError):
                worker.link.send((cell, experiment, out))
                return
            worker.id = None
            worker.process.join(10)
            self._drop(worker)
        self._begin(cell, experiment, out)

    def _begin(self, cell: Cell, experiment: Loaded, out: Path) -> None:
        """Start a process for a cell."""
        ours, theirs = self._context.Pipe()
        process = self._context.Process(target=self._target, args=(theirs, dict(os.environ)), daemon=True)
        process.start()
        theirs.close()
        worker = _Process(process, ours, cell.id, cell.place.name)
        self._workers.append(worker)
        # `told` detects a process that has died already.
        with contextlib.suppress(OSError):
            worker.link.send((cell, experiment, out))

    def told(self, timeout_s: float) -> list[ExecutorEvent]:
        """Return the workers' events since the last call; wait at most `timeout_s` seconds for one."""
        busy = [one for one in self._workers if one.id is not None]
        found: list[ExecutorEvent] = []
        for link in wait([one.link for one in busy], timeout_s):
            worker = next(one for one in busy if one.link is link)
            assert worker.id is not None
            try:
                said: ExecutorEvent = worker.link.recv()
            except (EOFError, OSError):
                worker.process.join(10)
                why = f"its process died (exit {worker.process.exitcode}); is there enough memory?"
                said = ExecutorEvent(worker.id, "died", why=why, passing=True)
                self._drop(worker)
            if said.kind in ("end", "error"):
                worker.id = None
            found.append(said)
        return found

    def _drop(self, worker: _Process) -> None:
        self._workers.remove(worker)
        worker.link.close()

    def kill(self, id_: str) -> None:
        """Kill the process of a cell."""
        for worker in [one for one in self._workers if one.id == id_]:
            worker.process.kill()
            worker.process.join(10)
            self._drop(worker)

    def close(self) -> None:
        """End all worker processes."""
        for worker in list(self._workers):
            if worker.id is not None:
                worker.process.kill()
            else:
                try:
                    worker.link.send(None)
                except OSError:
                    worker.process.kill()
            worker.process.join(10)
            self._drop(worker)


class Clusters(Processes):
    """Runs cells on real clusters, with one process per cluster, which keeps it up from one cell to the next.

    Stopping a process also stops its cluster and waits for that; a process that does not stop is killed, and its
    leftovers are removed.
    """

    _target = staticmethod(_cluster_worker)
    #: Time limit for killing jobs and stopping a cluster.
    ENDING_S = 180.0

    def __init__(self) -> None:
        super().__init__(sys.maxsize)
        self._ending: list[_Process] = []

    def release(self, place: str) -> None:
        """Stop a place's cluster after its last cell, without waiting."""
        for worker in [one for one in self._workers if one.id is None and one.place == place]:
            # A worker that has ended has no cluster to stop.
            with contextlib.suppress(OSError):
                worker.link.send(None)
            self._workers.remove(worker)
            self._ending.append(worker)

    def _drop(self, worker: _Process) -> None:
        super()._drop(worker)
        clean_abandoned()

    def kill(self, id_: str) -> None:
        """Stop the process of a cell, and its cluster."""
        for worker in [one for one in self._workers if one.id == id_]:
            self._workers.remove(worker)
            self._end(worker)

    def close(self) -> None:
        """Stop all processes and their clusters."""
        for worker in self._workers:
            worker.process.terminate()
        while self._workers or self._ending:
            self._end((self._workers or self._ending).pop())

    def _end(self, worker: _Process) -> None:
        if worker.id is not None:
            worker.process.terminate()
        try:
            end = time.monotonic() + self.ENDING_S
            while worker.process.is_alive() and time.monotonic() < end:
                # Read its last events, because it would block on a full pipe. The worker may end at any time.
                with contextlib.suppress(EOFError, OSError):
                    while worker.link.poll(0.1):
                        worker.link.recv()
                worker.process.join(0.1)
        finally:
            killed = worker.process.is_alive()
            if killed:
                worker.process.kill()
                worker.process.join(10)
            worker.link.close()
            if killed:
                clean_abandoned()
