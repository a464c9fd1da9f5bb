"""Runs a simulated cluster in virtual time that follows the wall clock at a given speed, protected by one lock.

Like a ResourceManager, the cluster works between clients' requests: it runs applications, checks the allocation file
every 10 s (AllocationFileLoaderService of Hadoop 3.4.2) and removes empty ad hoc queues.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from harness.base.errors import YarnfairError
from harness.model.jobs import JobSpec
from harness.model.queues import ensure_root_prefix
from harness.sim.serve.simulation import MOST_COMPLETED, Application, LiveSimulation
from harness.sim.setup import SimSetup
from harness.sim.world import J_RUNNING, NEVER
from harness.yarn.releases import release_of

#: Interval at which the RM checks the file, and how long the file must be unchanged before the RM loads it, ms.
POLL_MS, STILL_MS = 10_000, 5_000
#: How long the RM caches the usage of running containers (SchedulerApplicationAttempt), ms.
CACHE_MS = 3_000
#: How often time is updated when there is no request, wall seconds.
_BEAT_S = 0.2


def _say(text: str) -> None:
    print(f"yarnfair: {text}", file=sys.stderr, flush=True)


class LiveCluster:
    """A simulated cluster that runs by itself. Methods may be called from any thread.

    Parameters
    ----------
    setup
        The cluster, its jobs and its scheduler.
    file
        The scheduler's file, which already exists with the content of ``setup``.
    speed
        Seconds of virtual time per second of the wall clock.
    completed
        Number of ended applications that are retained.
    clock
        Returns seconds since 1970; for tests.
    log
        Receives the messages that the RM would write to its log.
    hadoop
        The Hadoop release whose answers the cluster gives (harness.yarn.releases).
    """

    def __init__(
        self,
        setup: SimSetup,
        file: Path,
        *,
        speed: float = 1.0,
        completed: int = MOST_COMPLETED,
        clock: Callable[[], float] = time.time,
        log: Callable[[str], None] = _say,
        hadoop: str | None = None,
    ) -> None:
        self.release = release_of(hadoop)
        self.setup, self.file, self.speed = setup, file, speed
        self._clock, self._log = clock, log
        self.lock = threading.RLock()
        self.sim = LiveSimulation(setup, completed)
        self._loaded_mtime = self._mtime()
        self._next_poll_ms = POLL_MS
        self._failed_before = False
        self._sleepers: list[Application] = []
        self._halted = False
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self.sim.advance(1)
        # Compilation takes time, so the cluster's time begins when it is ready.
        self._began = clock()
        self.id = self.sim.cluster_ts = round(self._began * 1000)

    # --- time ---

    def start(self) -> None:
        """Start a thread that advances virtual time even if there are no requests."""
        self._thread = threading.Thread(target=self._run, name="virtual time", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop this thread."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(timeout=30)

    def _run(self) -> None:
        while not self._stop.wait(_BEAT_S):
            self.catch_up()

    def catch_up(self) -> int:
        """Advance virtual time to the wall clock's, in at most 10 s of work; return the virtual time, ms."""
        with self.lock:
            target = int((self._clock() - self._began) * 1000 * self.speed)
            until = time.monotonic() + 10.0
            try:
                while (
                    self.sim.now_ms < target and time.monotonic() < until and not (self._halted or self._stop.is_set())
                ):
                    self.sim.advance(min(target, self.sim.now_ms + 5000, self._next_poll_ms))
                    self._masters_that_end()
                    if self.sim.now_ms >= self._next_poll_ms:
                        self._next_poll_ms += POLL_MS
                        self._poll()
            except YarnfairError as error:
                # A job of the input cannot be run, for example because its queue has become a parent. Time stops, but
                # clients can still query the running jobs.
                self._halted = True
                self._log(f"virtual time stands still: {error.line()}")
            return self.sim.now_ms

    @contextlib.contextmanager
    def now(self) -> Iterator[LiveSimulation]:
        """Yield the cluster at the present time, and hold its lock during the block."""
        with self.lock:
            self.catch_up()
            yield self.sim

    def epoch(self, at_ms: int) -> int:
        """Return a time as a client sees it: ms since 1970."""
        return self.id + at_ms

    def _masters_that_end(self) -> None:
        """Schedule the end of started AMs that end by themselves."""
        jobs = self.sim.world.jobs
        for app in list(self._sleepers):
            started = int(jobs["am_ms"][app.slot]) if app.slot >= 0 else NEVER
            if app.state:
                self._sleepers.remove(app)
            elif app.am_runs_s is not None and started < NEVER:
                self.sim.end_at(app, started + round(app.am_runs_s * 1000))
                self._sleepers.remove(app)

    # --- the allocation file ---

    def _mtime(self) -> int:
        try:
            return os.stat(self.file).st_mtime_ns
        except OSError:
            return 0

    def _poll(self) -> None:
        self.sim.served.tidy()
        if not self.sim.served.polls:
            return
        mtime = self._mtime()
        if mtime == 0:
            if not self._failed_before:
                self._log(f"the {self.sim.served.file_words} {self.file} is not there; the queues stay as they are")
            self._failed_before = True
            return
        still_ms = (self._clock() - mtime / 1e9) * 1000 * self.speed
        if mtime != self._loaded_mtime and still_ms > STILL_MS:
            self.reload()

    def reload(self) -> bool:
        """Read the allocation file now; return False if it is invalid: the queues stay, and the log has the reason."""
        with self.lock:
            mtime = self._mtime()
            try:
                text = self.file.read_text(encoding="utf-8")
                self.sim.served.load(text)
            except (OSError, UnicodeDecodeError, YarnfairError) as error:
                if not self._failed_before:
                    self._log(f"Failed to reload allocations file: {error}")
                self._failed_before = True
                return False
            self._failed_before = False
            self._loaded_mtime = mtime
            return True

    def refresh(self) -> None:
        """Carry out ``refreshQueues``. Raises JavaError if it is refused."""
        with self.now() as sim:
            sim.served.refresh(self.reload)

    # --- applications ---

    def application(self, number: int) -> Application | None:
        """Return an application by its number; None if the RM does not know it (any more)."""
        return self.sim.applications.get(number)

    def new_number(self) -> int:
        """Return the number of an application that a client is about to submit."""
        with self.now() as sim:
            return sim.new_number()

    def submit(self, number: int, job: JobSpec, change: Callable[[Application], None]) -> Application:
        """Submit a job now. `change` sets the remaining fields of its `Application`.

        Raises InputError if the job cannot run on any node.
        """
        with self.now() as sim:
            app = sim.submit(number, job, change)
            if app.am_runs_s is not None:
                self._sleepers.append(app)
                self._masters_that_end()
            return app

    def kill(self, app: Application, user: str) -> None:
        """Kill an application at once."""
        with self.now() as sim:
            sim.end(app, killed_by=user)

    def move(self, app: Application, queue: str) -> bool:
        """Move an application to a leaf queue; return False if the scheduler refuses."""
        with self.now() as sim:
            return sim.move(app, ensure_root_prefix(queue))

    def is_leaf(self, queue: str) -> bool:
        """Return whether a leaf queue of the Fair Scheduler exists; none is created."""
        with self.lock:
            scheduler = self.sim.scheduler
            slot = scheduler.queue_slots.get(ensure_root_prefix(queue))
            return slot is not None and bool(scheduler.S.q["leaf"][slot])

    def app_states(self) -> dict[int, str]:
        """Return number -> state of every known application."""
        with self.lock:
            jobs, now = self.sim.world.jobs, self.sim.now_ms
            states, am0 = jobs["state"].tolist(), jobs["am0_ms"].tolist()
            return {
                number: app.state
                or (
                    "RUNNING"
                    if app.registers and states[app.slot] == J_RUNNING and am0[app.slot] <= now
                    else "ACCEPTED"
                )
                for number, app in self.sim.applications.items()
            }

    def held(self) -> Held:
        """Return the resource usage of running and ended containers by job slot, computed in one pass."""
        return Held(self.sim)

    def account(self, app: Application, held: Held) -> tuple[int, int]:
        """Return an application's usage (MB-seconds, vcore-seconds) as the RM reports it.

        The usage of running containers is cached for 3 s.
        """
        if app.state:
            return app.memory_seconds, app.vcore_seconds
        slot = app.slot
        ended_mb, ended_vc = held.ended_mb[slot], held.ended_vc[slot]
        now = self.sim.now_ms
        if ended_mb != app.cached_ended or now - app.cached_ms > CACHE_MS:
            app.cached_ms, app.cached_ended = now, ended_mb
            app.cached_mb_s, app.cached_vc_s = held.running_mb_s[slot], held.running_vc_s[slot]
        return ended_mb // 1000 + app.cached_mb_s, ended_vc // 1000 + app.cached_vc_s


class Held:
    """Resource usage of all jobs at one instant, as lists by job slot.

    ``running_mb_s``, ``running_vc_s``: of running containers (MB s, vcore s); ``ended_mb``, ``ended_vc``: of ended
    containers (MB ms, vcore ms).
    """

    def __init__(self, sim: LiveSimulation) -> None:
        world, now = sim.world, sim.now_ms
        runs = world.runs[: len(sim.scheduler.S.c)]
        live = runs[runs["live"] == 1]
        size = len(world.jobs)
        used_ms = now - live["granted_ms"]
        # Each container's part is truncated to whole seconds, as in Hadoop.
        self.running_mb_s = _sums(live["job"], used_ms * live["mb"] // 1000, size)
        self.running_vc_s = _sums(live["job"], used_ms * live["vc"] // 1000, size)
        self.ended_mb: list[int] = world.jobs["mb_ms"].tolist()
        self.ended_vc: list[int] = world.jobs["vc_ms"].tolist()


def _sums(keys: Any, values: Any, size: int) -> list[int]:
    total = np.zeros(size, np.int64)
    np.add.at(total, keys, values)
    found: list[int] = total.tolist()
    return found
