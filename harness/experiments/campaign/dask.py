"""Cells of a campaign on a Dask cluster, whose workers do not share files with this machine."""

from __future__ import annotations

import io
import os
import pickle
import shutil
import tempfile
import threading
import uuid
import zipfile
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness.base.errors import CallError
from harness.experiments.campaign.dask_cluster import DaskCluster, check_worker, code_identity, unpickled
from harness.experiments.campaign.executors import ExecutorEvent, run_cell, told_afar
from harness.experiments.campaign.spec import Cell
from harness.experiments.kind import Loaded
from harness.results.store import settle, staging_of

#: Time between two messages that the cluster has no worker, seconds.
SAY_ALONE_S = 60.0
#: Number of cells per thread of a worker: one runs, and one waits.
_AT_A_THREAD = 2


def _far_cell(pickled: bytes, cell: Cell, topic: str, expected: Mapping[str, str]) -> tuple[ExecutorEvent, bytes]:
    """Run a cell on a worker without shared files; return its files as an archive."""
    import distributed

    check_worker(expected)
    worker: Any = distributed.get_worker
    worker().log_event(topic, cell.id)
    with tempfile.TemporaryDirectory(prefix="yarnfair-") as folder:
        told = told_afar(run_cell(unpickled(pickled), cell, Path(folder)))
        scratch = cell.directory(Path(folder))
        archive = io.BytesIO()
        with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as packed:
            for path in sorted(scratch.rglob("*")):
                packed.write(path, path.relative_to(scratch))
    return told, archive.getvalue()


class Dask:
    """Execute cells on a Dask cluster (``dask://host:port``).

    Workers need the same code (harness.experiments.campaign.dask_cluster). The user's files that an experiment reads
    (traces) must have the same path on the workers.
    """

    queues = True

    def __init__(self, address: str) -> None:
        """Connect. Raises the errors of `DaskCluster`."""
        self._cluster = DaskCluster(address)
        self._client = self._cluster.client
        self.room = _AT_A_THREAD * self._cluster.threads
        #: The experiment of the last cell, and the form of it that is sent to workers.
        self._experiment: tuple[Loaded | None, bytes] = (None, b"")
        self._futures: dict[str, Any] = {}
        self._folders: dict[str, Path] = {}
        #: Cells that have begun, or ended, since the last call; Dask's own thread adds them.
        self._begun: deque[str] = deque()
        self._news = threading.Event()
        #: When the next message about missing workers is due, seconds without one.
        self._say_at_s = SAY_ALONE_S
        self._topic = f"yarnfair-{uuid.uuid4().hex}"
        self._client.subscribe_topic(self._topic, self._begins)

    def _begins(self, event: tuple[float, str]) -> None:
        self._begun.append(event[1])
        self._news.set()

    def start(self, cell: Cell, experiment: Loaded, out: Path) -> None:
        """Submit a cell to the cluster."""
        self._folders[cell.id] = cell.directory(out)
        # pure=False: a cell that is tried again is computed again.
        if self._experiment[0] is not experiment:
            self._experiment = (experiment, pickle.dumps(experiment))
        future = self._client.submit(
            _far_cell, self._experiment[1], cell, self._topic, code_identity(), pure=False, retries=0
        )
        future.add_done_callback(lambda _: self._news.set())
        self._futures[cell.id] = future

    def told(self, timeout_s: float) -> list[ExecutorEvent]:
        """Return the events since the last call; wait at most `timeout_s` seconds for one."""
        self._news.wait(timeout_s)
        self._news.clear()  # cleared before the check: later events set it again
        found = [ExecutorEvent(self._begun.popleft(), "begins") for _ in range(len(self._begun))]
        found += [self._collect(id_) for id_, future in list(self._futures.items()) if future.done()]
        return found or self._without_workers()

    def _without_workers(self) -> list[ExecutorEvent]:
        """Return a message if the cluster has no worker; the cells if they are given up because of that."""
        alone_s = self._cluster.alone_s() if self._futures else 0.0
        if alone_s == 0.0:
            self._say_at_s = SAY_ALONE_S
        elif self._cluster.is_given_up():
            given_up = list(self._futures)
            for id_ in given_up:
                self.kill(id_)
            why = f"the Dask cluster has had no worker for {alone_s:.0f} s"
            return [ExecutorEvent(id_, "died", why=why, passing=True) for id_ in given_up]
        elif alone_s >= self._say_at_s:
            self._say_at_s = alone_s + SAY_ALONE_S
            why = f"the Dask cluster has had no worker for {alone_s:.0f} s; {len(self._futures)} cells wait for one"
            return [ExecutorEvent(next(iter(self._futures)), "says", why=why)]
        return []

    def _collect(self, id_: str) -> ExecutorEvent:
        future, folder = self._futures.pop(id_), self._folders.pop(id_)
        try:
            told, archive = future.result(timeout=60)
        except CallError as error:
            # Another worker may have the right code.
            return ExecutorEvent(id_, "died", why=error.line(), passing=True)
        except Exception as error:
            return ExecutorEvent(id_, "died", why=f"the Dask worker gave up ({type(error).__name__})", passing=True)
        _unpack(archive, folder)
        found: ExecutorEvent = told
        return found

    def kill(self, id_: str) -> None:
        """Cancel a cell."""
        future = self._futures.pop(id_, None)
        self._folders.pop(id_, None)
        if future is not None:
            future.cancel(force=True)

    def close(self) -> None:
        """Cancel all cells and disconnect."""
        for id_ in list(self._futures):
            self.kill(id_)
        self._cluster.close()


def _unpack(archive: bytes, folder: Path) -> None:
    """Extract an archive's run directory into its place atomically: extracted beside it and renamed."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=".far-", dir=folder.parent))
    try:
        # A zip file has no links, and its names cannot leave the folder. (Tar needs a filter, which 3.11.2 lacks.)
        with zipfile.ZipFile(io.BytesIO(archive)) as packed:
            packed.extractall(scratch)
        scratch.chmod(0o755)
        staged = staging_of(folder)
        shutil.rmtree(staged, ignore_errors=True)
        os.replace(scratch, staged)
        settle(staged, folder)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
