"""A simulation that is advanced in steps, between which clients may change it, instead of run to its end.

It stores the ResourceManager's data of applications (IDs, names, states, retained ended ones); their resources come
from the simulator.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from harness.base.errors import InputError
from harness.model.jobs import JobSpec
from harness.sim import world as w
from harness.sim.events import E_LIFETIME
from harness.sim.feed import _in_order
from harness.sim.longterm_kernels import settle_all
from harness.sim.setup import SimSetup
from harness.sim.simulate import Simulation
from harness.sim.world import J_RUNNING, J_SUBMITTED, NEVER, R_AM

#: The application type that belongs to a job's kind.
APPLICATION_TYPES = {"mapreduce": "MAPREDUCE", "spark": "SPARK", "dag": "TEZ", "service": "YARN"}
#: How many ended applications are retained (``yarn.resourcemanager.max-completed-applications``).
MOST_COMPLETED = 1000
#: Largest step of virtual time, ms; small steps number the applications in the order of arrival.
_STEP_MS = 5000


@dataclass(slots=True)
class Application:
    """The ResourceManager's data of one application. Times are in ms of virtual time."""

    number: int
    name: str
    user: str
    queue: str
    type: str
    submitted_ms: int
    row: int = -1  # row of the job in the result; -1: the submission was refused
    slot: int = -1  # slot of the job until it ends
    gen: int = -1  # ``gen`` of that slot
    tags: tuple[str, ...] = ()
    tasks: int = 0
    unmanaged: bool = False
    registers: bool = True  # whether its AM registers with the RM
    am_runs_s: float | None = None  # lifetime of an AM that ends without having registered; None: no such AM
    killed_by: str | None = None
    # Set after its end:
    state: str = ""  # FINISHED, FAILED, KILLED; empty: it has not ended
    launched_ms: int = -1
    finished_ms: int = -1
    node: int = -1
    memory_seconds: int = 0
    vcore_seconds: int = 0
    diagnostics: str = ""
    # The RM's cache of the use of running containers: its time, and the values.
    cached_ms: int = -1 << 60
    cached_ended: int = -1
    cached_mb_s: int = 0
    cached_vc_s: int = 0


class LiveSimulation(Simulation):
    """A simulated cluster that runs for ever. It is not thread-safe; `harness.sim.serve.live` is.

    ``setup`` is the setup of a run, whose samples, time limit and task log are not used. The set of queues may change,
    because allocation files are reloaded and submissions create ad hoc queues.
    """

    live = True

    def __init__(self, setup: SimSetup, completed: int = MOST_COMPLETED) -> None:
        jobs = setup.jobs
        #: Jobs that have been read and have not ended, by row.
        self._specs: dict[int, JobSpec] = {}
        super().__init__(
            replace(
                setup,
                jobs=iter(_in_order(jobs) if isinstance(jobs, list | tuple) else jobs),
                record_tasks=False,
                record_decisions=False,
                time_limit_s=1e12,
            )
        )
        self._most_completed = completed
        #: The RM's start time, ms since 1970, which is part of its applications' ids.
        self.cluster_ts = 0
        if self.kind.served is None:
            raise InputError(
                f"a simulated ResourceManager with the {self.kind.title} is not covered",
                where=f"scheduler: {self.kind.name}",
                hint="take fair or capacity",
            )
        self.served = self.kind.served(self)
        self.feed.queue_of = self._slot_of_leaf
        self.applications: dict[int, Application] = {}
        self.completed: list[int] = []  # numbers, in the order in which they ended
        self.counts = {"FINISHED": 0, "FAILED": 0, "KILLED": 0}
        self.submitted = 0
        self._by_row: dict[int, Application] = {}
        self._known = np.zeros(1024, bool)
        self._placed = np.zeros(1024, bool)  # by row: the AM's node is known
        self._ended_rows: list[Any] = []
        self._next_number = int(self.scheduler.S.g["next_app_id"][0])
        self._reserved: set[int] = set()
        self._slots = dict(self.scheduler.queue_slots)
        # A job that never ends, so that the loop does not consider the run finished.
        self.world.g["live_jobs"] += 1
        self.world.g["next_sample_ms"] = NEVER
        if setup.mode == "inside" and getattr(getattr(setup.policy, "settings", None), "t_wait", None) == "auto":
            self.on_tick = self.replan
            self.world.g["next_tick_ms"] = 10_000

    @property
    def now_ms(self) -> int:
        """Return virtual time."""
        return int(self.world.g["now"][0])

    def _add_job(self, job: JobSpec) -> int:
        # The feed calls this only for accepted jobs, so that a refused job has no row.
        row = super()._add_job(job)
        self._specs[row] = job
        return row

    # --- time ---

    def advance(self, to_ms: int) -> None:
        """Advance the simulation to the virtual time `to_ms`; do nothing if that time has passed."""
        while self.now_ms < to_ms:
            self._step(min(to_ms, self.now_ms + _STEP_MS))
            self._note_applications()

    def _step(self, to_ms: int) -> None:
        g = self.world.g
        g["limit_ms"] = to_ms
        g["pause_after"] = g["pause_ms"] = NEVER
        while (code := self._loop(self.scheduler.S.address, self.world.address)) != w.LIMIT:
            if not self._answered(code):
                raise RuntimeError(f"the loop came back with {code}")
        self._take_ended()

    def _take_ended(self) -> None:
        block = self.jobs.take(self.world)
        self.jobs.forget()
        for record in block:
            self.feed.ended(int(record["row"]), int(record["finished_ms"]))
            self._ended_rows.append(record)

    # --- applications ---

    def _note_applications(self) -> None:
        """Number the applications that arrived since the last call, and store the results of those that have ended."""
        world, a = self.world, self.scheduler.S.a
        jobs = world.jobs
        self._make_room_for_rows()
        live = np.flatnonzero((jobs["state"] == J_SUBMITTED) | (jobs["state"] == J_RUNNING))
        fresh = live[~self._known[jobs["row"][live]]]
        for slot in fresh[np.argsort(a["id"][jobs["app"][fresh]])].tolist():
            job = jobs[slot]
            number = int(a["id"][int(job["app"])])
            self._enter(int(job["row"]), number, int(job["submit_ms"]), slot, int(job["gen"]))
        masters = world.runs[(world.runs["live"] == 1) & (world.runs["kind"] == R_AM)]
        rows = jobs["row"][masters["job"]]
        for at in np.flatnonzero(~self._placed[rows]).tolist():
            if (app := self._by_row.get(int(rows[at]))) is not None:
                app.node = int(masters["node"][at])
                self._placed[rows[at]] = True
        following = int(self.scheduler.S.g["next_app_id"][0])
        unseen = [r for r in self._ended_rows if not self._known[int(r["row"])]]
        if unseen:
            # Applications that arrived and ended since the last call get the free numbers, in order.
            numbers = range(self._next_number, following)
            free = [n for n in numbers if n not in self.applications and n not in self._reserved]
            unseen.sort(key=lambda r: (int(r["submit_ms"]), int(r["row"])))
            for record, number in zip(unseen, free, strict=False):
                self._enter(int(record["row"]), number, int(record["submit_ms"]), -1, -1)
        self._next_number = following
        for record in self._ended_rows:
            app = self._by_row.pop(int(record["row"]), None)
            self._specs.pop(int(record["row"]), None)
            if app is not None:
                self._close(app, record)
        self._ended_rows.clear()

    def _make_room_for_rows(self) -> None:
        rows_read = len(self.jobs.ids)
        if rows_read > len(self._known):
            self._known = w.grown(self._known, 2 * rows_read)
            self._placed = w.grown(self._placed, 2 * rows_read)

    def _enter(self, row: int, number: int, submitted_ms: int, slot: int, gen: int) -> None:
        self._make_room_for_rows()
        spec = self._specs[row]
        self._known[row] = True
        self.submitted += 1
        self._by_row[row] = self.applications[number] = Application(
            number=number,
            name=spec.name or spec.id,
            user=spec.user,
            queue=spec.queue,
            type=APPLICATION_TYPES[spec.kind],
            submitted_ms=submitted_ms,
            row=row,
            slot=slot,
            gen=gen,
            tasks=sum(stage.tasks for stage in spec.stages),
            unmanaged=not (spec.am.memory_mb or spec.am.vcores),
        )

    def _close(self, app: Application, record: Any) -> None:
        app.slot = -1
        if app.am_runs_s is not None and app.killed_by is None:
            app.state = "FAILED"
            exited = f"AM Container of {self.name_of(app)} exited with  exitCode: 0"
            app.diagnostics = app.diagnostics or exited
        elif app.killed_by is not None:
            app.state = "KILLED"
            app.diagnostics = f"Application {self.name_of(app)} was killed by user {app.killed_by}"
        elif int(record["failed"]):
            app.state = "FAILED"
            app.diagnostics = app.diagnostics or f"Application {self.name_of(app)} failed"
        else:
            app.state = "FINISHED"
        app.launched_ms = int(record["started_ms"]) if int(record["started_ms"]) < NEVER else -1
        app.finished_ms = int(record["finished_ms"])
        app.memory_seconds = int(record["mb_ms"]) // 1000
        app.vcore_seconds = int(record["vc_ms"]) // 1000
        self._retain(app)

    def _retain(self, app: Application) -> None:
        self.counts[app.state] += 1
        self.completed.append(app.number)
        while len(self.completed) > self._most_completed:
            self.applications.pop(self.completed.pop(0), None)

    def name_of(self, app: Application) -> str:
        """Return an application's id."""
        return f"application_{self.cluster_ts}_{app.number:04d}"

    def new_number(self) -> int:
        """Return a number for an application that will be submitted later (or never)."""
        g = self.scheduler.S.g
        number = int(g["next_app_id"][0])
        g["next_app_id"] = number + 1
        self._reserved.add(number)
        return number

    def submit(self, number: int, job: JobSpec, change: Callable[[Application], None]) -> Application:
        """Submit a job now, under a number that `new_number` returned (or any free number).

        Its queue is created if needed. `change` is called with the new `Application`, whose fields it may set. Raises
        InputError if a container of the job fits on no node.
        """
        self._reserved.discard(number)
        placed = self.served.placed_in(job.queue, job.user, job.name)
        leaf = None if placed.queue is None else self.served.leaf(placed.queue)
        if leaf is None:
            app = Application(
                number, job.name, job.user, placed.asked or job.queue, "YARN", self.now_ms, state="FAILED"
            )
            app.finished_ms = self.now_ms
            app.diagnostics = self.served.no_leaf(placed, self.name_of(app), job.user)
            change(app)
            self.submitted += 1
            self.applications[number] = app
            self._retain(app)
            return app
        spec = replace(job, queue=leaf, submit_s=self.now_ms / 1000.0)
        self.world, slot = self.feed.put(self.world, spec)
        g = self.scheduler.S.g
        following = int(g["next_app_id"][0])
        # This job is the only arrival that is due, so it gets the next number.
        g["next_app_id"] = number
        self._step(self.now_ms)
        g = self.scheduler.S.g
        g["next_app_id"] = max(following, number + 1)
        row = int(self.world.jobs["row"][slot])
        self._enter(row, number, self.now_ms, slot, int(self.world.jobs["gen"][slot]))
        app = self.applications[number]
        change(app)
        if int(self.world.jobs["app"][slot]) < 0:
            app.diagnostics = self.served.refused(leaf, self.name_of(app))
        self._note_applications()
        return app

    def _slot_of_leaf(self, name: str) -> int | None:
        leaf = self.served.leaf(name)
        return None if leaf is None else self.scheduler.queue_slots[leaf]

    def end(self, app: Application, *, killed_by: str | None = None) -> None:
        """End an application now."""
        if app.state or app.slot < 0:
            return
        app.killed_by = killed_by
        self.push(self.now_ms, E_LIFETIME, app.gen, app.slot)
        self._step(self.now_ms)
        self._note_applications()

    def end_at(self, app: Application, at_ms: int) -> None:
        """End an application at a future time."""
        self.push(max(at_ms, self.now_ms), E_LIFETIME, app.gen, app.slot)

    def move(self, app: Application, leaf: str) -> bool:
        """Move an application to a leaf (a full path) now; return False if it has ended or the scheduler refuses."""
        if app.slot < 0 or not self.served.move(app.slot, leaf):
            return False
        app.queue = leaf
        return True

    # --- queues ---

    def queues_changed(self) -> None:
        """Update the arrays beside the scheduler's queues after a change of the queues."""
        slots = self.scheduler.queue_slots
        if slots == self._slots:
            return
        fresh = [slot for path, slot in slots.items() if self._slots.get(path) != slot]
        self._slots = dict(slots)
        S = self.scheduler.S
        x = w.grown(S.x, len(S.q))
        x[fresh] = 0
        for column in ("backlog_ms", "last_start_ms"):
            x[column][fresh] = -1
        x["t_ms"][fresh] = self.now_ms
        x["entitlement"][fresh] = 1.0
        S.xg["n"] = len(self.scheduler.queue_paths)
        win = S.win
        if float(S.xg["part_ms"][0]) > 0:
            win = w.grown(win, len(S.q))
            win[fresh] = 0.0
        self.scheduler.S = S._replace(x=x, win=win)
        settle_all(self.scheduler.S, self.now_ms)
