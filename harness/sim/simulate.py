"""Runs the simulator: sets up scheduler and world, calls the compiled loop, and handles its returns to Python.

`harness.control.virtual` connects an external policy through `Simulation.on_tick`.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from harness.base.errors import InputError, InternalError
from harness.model.jobs import JobSpec
from harness.model.plan import BY_ACCUMULATED, Attributes, Plan
from harness.model.queues import AllocationFile, QueueTree
from harness.model.resources import Resource
from harness.model.snapshot import QueueView, Snapshot
from harness.policies.base import CountedLedger, checked_keys, checked_plan
from harness.policies.capabilities import ReplanningPolicy
from harness.policies.longterm import parts_over_horizon
from harness.sim import world as w
from harness.sim.attributes import with_attributes
from harness.sim.calls import Calls
from harness.sim.check import check_setup
from harness.sim.compiled import compile_engine
from harness.sim.durations import job_key, unit
from harness.sim.ends import overdue
from harness.sim.events import E_DRAIN, E_JOIN, E_LEAVE, E_RESIZE, push
from harness.sim.feed import Feed
from harness.sim.interfaces import SchedulerRequest, simulated
from harness.sim.keyed import Keyed
from harness.sim.longterm import is_uneven, long_term_arrays, shares_of, wait_ms
from harness.sim.longterm_state import RULE_USER
from harness.sim.loop import take_sample
from harness.sim.observe import Observer
from harness.sim.pools import SchedulerBase
from harness.sim.setup import Progress, ProgressCallback, SimResult, SimSetup
from harness.sim.state import KEYED_FLAT, KEYED_LEVELS, STOCK, WORLD
from harness.sim.stuck import Stillness
from harness.sim.table import JobTable, SampleLog, TaskLog, longest_waits, mean_between_ends
from harness.sim.world import NEVER
from harness.yarn.fair.manager import queue_tree

_LOG = logging.getLogger(__name__)

#: Number of container starts, ends and heartbeats between two reads of the wall clock.
_PAUSE_EVENTS = 400_000
#: Shortest virtual time between two checks whether the run is stuck.
_STILL_MS = 10_000
#: How long a run without a due event continues if preemption or a controller may still cause a change (virtual time).
_PATIENCE_MS = 3_600_000
#: Period at which a derived T_wait is computed again from T_avg (LTYARN eq. 7).
_REPLAN_MS = 10_000


class Simulation:
    """One run. `run` runs it to its end; ``on_tick`` is called with the time (ms) when a control tick is due."""

    #: Whether the cluster is served: it runs for ever, and its queues may be configured while it runs.
    live = False

    def __init__(self, setup: SimSetup) -> None:
        check_setup(setup)
        compile_engine(setup.scheduler)
        self.setup = setup
        self.kind = simulated(setup.scheduler)
        conf = dict(setup.conf)
        self.tree: QueueTree = queue_tree(setup.allocations)
        for queue in setup.entitlements:
            if queue not in self.tree:
                raise InputError(
                    f"an entitlement for {queue!r}, which is not a queue", hint="name queues of the allocation file"
                )
        self.plan = self._first_plan()
        self.allocations: AllocationFile = setup.allocations
        if setup.mode == "inside" and self.plan is not None:
            self.allocations = self._inside_attributes(self.plan)
        self.tree = queue_tree(self.allocations)
        self.scheduler: Any = self._scheduler()
        self._loop = self.kind.run_at
        self.order = [self.scheduler.queue_index(queue.path) for queue in self.tree]
        self._set_long_term()
        self.jobs = JobTable()
        #: The recorded calls of the scheduler, with ``record_script`` or ``record_masters``.
        self.calls = self._calls(conf) if setup.record_script or setup.record_masters else None
        self._in_force = self.allocations
        self.share = shares_of(self.tree, setup.entitlements)
        scale = float(self._capacity().memory_mb) if setup.resource == "dominant" else 1.0
        quanta = bool(self.scheduler.S.xg["quantum"][0])
        uneven = is_uneven(self.tree, setup.entitlements)
        self.samples = SampleLog(self.tree, self.order, self.share, scale, quanta=quanta, uneven=uneven)
        self.tasks = TaskLog()
        self.observer = Observer(self.tree, self.order, setup.entitlements, len(self.scheduler.S.q), self.kind.look_at)
        self.keyed = Keyed(setup.policy, self.observer, self._order_mode() == KEYED_FLAT)
        leaves = {q.path: i for q, i in zip(self.tree, self.order, strict=True) if q.leaf}
        self.feed = Feed(
            setup.jobs,
            seed=setup.seed,
            queue_of=leaves.get,
            user_of=self.scheduler.user_slot,
            nodes=setup.nodes,
            row_of=self._add_job,
            weight_of=self._weight_of,
            largest_of=self.scheduler.largest_of,
        )
        self.world = w.new_world(
            len(setup.nodes),
            len(self.scheduler.S.q),
            containers=len(self.scheduler.S.c),
            sample_rows=SampleLog.rows(len(self.scheduler.S.q)),
            log_rows=65536 if setup.record_tasks else 1,
            resizes=sum(change.size is not None for node in setup.nodes for change in node.changes),
        )
        # Within this time, every node has been offered to all applications.
        self._still_ms = max(_STILL_MS, 10 * max(setup.delays.node_heartbeat_ms, setup.delays.update_ms))
        moves = setup.mode == "outside" or bool(self.scheduler.S.g["preemption"][0])
        self._stillness = Stillness(max(self._still_ms, _PATIENCE_MS if moves else 0))
        self._set_world()
        #: Called at the time ``next_tick_ms`` of the world, of which it sets the next value.
        self.on_tick: Callable[[int], None] | None = None
        self.ticks = 0
        self.writes: list[tuple[float, dict[str, float]]] = []
        self.decisions: list[dict[str, Any]] = []

    # --- set-up ---

    def _scheduler(self) -> SchedulerBase:
        return self.kind.make(
            SchedulerRequest(
                setup=self.setup,
                allocations=self.allocations,
                tree=self.tree,
                plan=self.plan,
                cluster=self._capacity(),
                order_mode=self._order_mode(),
                by_accumulated=frozenset(self._ltrf_leaves()),
                live=self.live,
            )
        )

    def _calls(self, conf: Mapping[str, str]) -> Calls:
        if self.setup.record_script and (self._order_mode() != STOCK or self._ltrf_leaves()):
            raise InputError(
                "a run whose order is not Hadoop's is not a decision script",
                where="record_script",
                hint="record a policy from outside, or static, fair or drf",
            )
        return Calls(conf, self.allocations, self.setup.nodes)

    def _weight_of(self, job: JobSpec) -> float:
        own = self.setup.queue_orders.get(job.queue)
        return 1.0 if own is None else float(own.weights.get(job.name, 1.0))

    def _add_job(self, job: JobSpec) -> int:
        row = self.jobs.add(job)
        if self.calls is not None:
            self.calls.add_job(row, job)
        return row

    def _capacity(self) -> Resource:
        there = [node for node in self.setup.nodes if node.join_s <= 0] or list(self.setup.nodes)
        return Resource(sum(node.memory_mb for node in there), sum(node.vcores for node in there))

    def _first_plan(self) -> Plan | None:
        """Return the policy's plan for the empty cluster; None without a policy.

        In the mode ``inside``, its order and attributes are valid for the whole run.
        """
        policy = self.setup.policy
        if policy is None:
            return None
        capacity = self._capacity()
        queues = {
            q.path: QueueView(
                name=q.path,
                parent=q.parent,
                leaf=q.leaf,
                weight=float(self.setup.entitlements.get(q.path, 1.0)),
                min_share=q.min_share,
                max_share=q.max_share(capacity),
            )
            for q in self.tree
        }
        return checked_plan(policy, Snapshot(0.0, capacity, queues), CountedLedger({}))

    def _inside_attributes(self, plan: Plan) -> AllocationFile:
        stock = plan.order.measure == "stock"
        entitled = {q.path: float(self.setup.entitlements.get(q.path, 1.0)) for q in self.tree if q.parent is not None}
        # The weights of a long-term plan are for writing from outside; inside the scheduler, the entitlements count.
        wanted = plan if stock else Attributes(entitled, scheduling_policies=plan.scheduling_policies)
        return with_attributes(self.setup.allocations, wanted)

    def _order_mode(self) -> int:
        if self.plan is None or self.setup.mode == "outside" or self.plan.order.measure == "stock":
            return STOCK
        return KEYED_FLAT if self.plan.order.flat else KEYED_LEVELS

    def _ltrf_leaves(self) -> list[str]:
        """Return the leaves whose applications are ordered by accumulated resources."""
        named: dict[str, Any] = {path: own.policy for path, own in self.setup.queue_orders.items() if own.policy}
        if self.plan is not None and self.setup.mode == "inside":
            named = {**self.plan.scheduling_policies, **named}
        return [path for path, policy in named.items() if policy in BY_ACCUMULATED and self.tree[path].leaf]

    def _set_long_term(self) -> None:
        """Set the arrays of integrals and orders in the scheduler's state."""
        sched = self.scheduler
        arrays = long_term_arrays(self.setup, self.tree, self.order, self.plan, len(sched.S.q))
        for path in self._ltrf_leaves():
            arrays["x"]["by_apps"][sched.queue_index(path)] = 1
        sched.S.g["hooks"] = WORLD
        sched.S = sched.S._replace(**arrays)
        sched.order_queues()

    def _set_world(self) -> None:
        setup, world = self.setup, self.world
        g, delays, faults, master = world.g, setup.delays, setup.faults, setup.mapreduce
        for name, value in (
            ("limit_ms", min(round(setup.time_limit_s * 1000), 1 << 50)),
            ("next_tick_ms", NEVER),
            ("sample_ms", max(round(setup.sample_s * 1000), 1)),
            ("pause_after", _PAUSE_EVENTS),
            ("pause_ms", self._still_ms),
            ("still_ms", self._still_ms),
            ("still_events", -1),
            ("feed_ms", -1),
            ("cross_ms", NEVER),
            ("node_hb_ms", delays.node_heartbeat_ms),
            ("end_hb_ms", delays.end_heartbeat_ms),
            ("am_hb_ms", delays.am_heartbeat_ms),
            ("am_lag_ms", delays.am_heartbeat_ms * delays.am_response_heartbeats),
            ("am_start_ms", delays.am_start_ms),
            ("container_start_ms", delays.container_start_ms),
            ("update_ms", delays.update_ms),
            ("reduce_preempt_ms", delays.reduce_preempt_ms),
            ("preempt_ms", round(master.preempt_delay_s * 1000)),
            ("hanging_ms", max(round(master.unconditional_preempt_delay_s * 1000), -1)),
            ("map_limit", master.running_map_limit),
            ("reduce_limit", master.running_reduce_limit),
            ("no_headroom", int(master.headroom == "none")),
            ("rampup_limit", master.rampup_limit),
            ("preempt_limit", master.preemption_limit),
            ("speculation_ms", delays.speculation_ms),
            ("skip", int(setup.skip_heartbeats)),
            ("user_keys", int(self.scheduler.S.xg["rule"][0] == RULE_USER)),
            ("record_tasks", int(setup.record_tasks)),
            ("record_calls", int(setup.record_script or setup.record_masters)),
            ("update_noted_ms", -1),
            ("failure", faults.failure),
            ("max_attempts", faults.max_attempts),
            ("straggler", faults.straggler),
            ("straggler_factor", faults.straggler_factor),
            ("speculation", int(faults.speculation)),
            ("speculation_factor", faults.speculation_factor),
        ):
            g[name] = value
        key, resizes = job_key(setup.seed, "\0nodes"), 0
        self.world = w.with_room(world, containers=len(self.scheduler.S.c))
        for index, node in enumerate(setup.nodes):
            world.nodes["speed"][index] = node.speed
            world.nodes["mb"][index], world.nodes["vc"][index] = node.memory_mb, node.vcores
            world.nodes["phase_ms"][index] = int(unit(key, 0, index, 0, 0) * delays.node_heartbeat_ms)
            self.push(round(node.join_s * 1000), E_JOIN, 0, index)
            if node.leave_s is not None:
                self.push(round(node.leave_s * 1000), E_LEAVE, 0, index)
            for change in node.changes:
                at_ms = round(change.at_s * 1000)
                if change.size is None:
                    self.push(at_ms, E_DRAIN, 0, index)
                    continue
                self.world.sizes[resizes] = change.size
                self.push(at_ms, E_RESIZE, resizes, index)
                resizes += 1

    def push(self, at_ms: int, kind: int, use: int, slot: int) -> None:
        """Push a future event (harness.sim.events)."""
        self.world = w.with_events(self.world, 8)
        push(self.world, at_ms, kind, use, slot)

    # --- the run ---

    def run(self, on_progress: ProgressCallback | None = None) -> SimResult:
        """Run to the end or to the time limit; return the result."""
        began = time.perf_counter()
        setup = self.setup
        named = (setup.scheduler, setup.mode, getattr(setup.policy, "name", None), setup.seed)
        _LOG.debug("%s scheduler, mode %s, policy %s, seed %s: begins", *named)
        finished, stuck = self.proceed(on_progress)
        took_s, g = time.perf_counter() - began, self.world.g
        counts = [int(g[name][0]) for name in ("now", "started", "ended", "heartbeats")]
        _LOG.debug("ended at %s ms: %s tasks started, %s ended, %s heartbeats, %s ticks", *counts, self.ticks)
        if not finished:
            _LOG.debug("some jobs have not ended; they never can: %s", stuck or "unknown (the time limit was reached)")
        if self.keyed.why_not:
            _LOG.debug("the policy's keys are computed in Python: %s", self.keyed.why_not)
        return self._result(finished, took_s, stuck=stuck)

    def proceed(self, on_progress: ProgressCallback | None = None) -> tuple[bool, str]:
        """Run as `run` does, without a result; return whether all jobs have ended, and why they never can."""
        began = shown = time.perf_counter()
        while True:
            code = self._loop(self.scheduler.S.address, self.world.address)
            if code == w.PAUSE:
                g = self.world.g
                passed = sum(int(g[name][0]) for name in ("started", "ended", "heartbeats", "skipped"))
                g["pause_after"] = passed + _PAUSE_EVENTS
                if stuck := self._stuck():
                    return False, stuck
            elif not self._answered(code):
                return code == w.DONE, ""
            if on_progress is not None and time.perf_counter() - shown > 0.2:
                shown = time.perf_counter()
                on_progress(self._progress(shown - began))

    def _answered(self, code: int) -> bool:
        """Handle the loop's reason for returning; return False if the caller has to handle it."""
        if code == w.TICK:
            self.ticks += 1
            assert self.on_tick is not None
            self.on_tick(int(self.world.g["now"][0]))
        elif code == w.NEED_JOBS:
            self.world = self.feed.read(self.world)
            self.world = w.with_room(self.world, containers=len(self.scheduler.S.c))
        elif code == w.KEYS:
            self._user_keys()
        elif code == w.CALLS_FULL:
            self._take_calls()
        elif code == w.PARTS:
            self._parts()
        elif code == w.NEED_ROOM:
            self._grow()
        elif code == w.SAMPLES_FULL:
            self.samples.take(self.world)
        elif code == w.ENDED_FULL:
            self._take_ended()
        elif code == w.TASKS_FULL:
            self._take_tasks()
        else:
            return False
        return True

    def _stuck(self) -> str:
        """Return why this run can never end; '' as long as something may happen."""
        if not (self._stillness.lasts(self.world) and self.setup.stop_when_stuck):
            return ""
        words = self.kind.why_stuck(self.scheduler.S, self.tree, self.order)
        return f"nothing has moved since {self._stillness.last_move_s(self.scheduler.S, self.world):,.0f} s: {words}"

    def _grow(self) -> None:
        g = self.world.g
        _LOG.debug("more room: %s containers, scheduler full: %s", len(self.scheduler.S.c), bool(g["need_room"][0]))
        if int(g["need_room"][0]):
            self.scheduler.grow()
            g["need_room"] = 0
        self.world = w.with_room(self.world, containers=len(self.scheduler.S.c))

    def _take_ended(self) -> None:
        for record in self.jobs.take(self.world):
            self.feed.ended(int(record["row"]), int(record["finished_ms"]))

    def _take_tasks(self) -> None:
        self.tasks.take(self.world)
        g = self.world.g
        live = int(g["live_runs"][0]) + len(self.world.inner) - int(g["inner_left"][0])
        if 2 * live + 128 > len(self.world.tasklog):
            self.world = self.world._replace(tasklog=np.zeros(4 * live + 128, w.TaskLogRecord.dtype))

    def _take_calls(self) -> None:
        if self.calls is not None:
            self.calls.take(self.world)
            self.world = self.calls.room(self.world)

    def _user_keys(self) -> None:
        """Call a user's policy for the queues' keys, if any queue has a candidate for a container."""
        S, world = self.scheduler.S, self.world
        world.g["keys_fresh"] = 1
        if int(S.q["n_cand"][0]) == 0:
            return
        seen = self.observer.snapshot(S, world, int(world.g["now"][0]), 0.0)
        ledger = CountedLedger(self.observer.counted(seen.reals))
        assert self.plan is not None
        keys = checked_keys(self.setup.policy, seen.snapshot, ledger, self.plan.order.flat)
        column = S.q["key"]
        for queue, index in zip(self.tree, self.order, strict=True):
            # Integers may be larger than the largest float.
            column[index] = min(max(keys.get(queue.path, 1e300), -1e300), 1e300)
        self.scheduler.keys_changed()
        self.keyed.asked(S, world, column)

    def _parts(self) -> None:
        """Recompute the queues' shares over the horizon (X.x) with the policy's own definition, after each update."""
        S, world = self.scheduler.S, self.world
        assert self.plan is not None
        seen = self.observer.snapshot(S, world, int(world.g["now"][0]), 0.0)
        parts = parts_over_horizon(self.plan.order, seen.snapshot, CountedLedger(self.observer.counted(seen.reals)))
        column = S.x["x"]
        for queue, index in zip(self.tree, self.order, strict=True):
            column[index] = parts[queue.path]

    def replan(self, now_ms: int) -> None:
        """Recompute T_wait from the tasks that have ended so far."""
        seen = self.observer.snapshot(self.scheduler.S, self.world, now_ms, 0.0)
        plan = checked_plan(self.setup.policy, seen.snapshot, CountedLedger(self.observer.counted(seen.reals)))
        self.keyed.planned(self.world)
        self.scheduler.S.xg["t_wait_ms"] = wait_ms(plan.order)
        self.world.g["next_tick_ms"] = now_ms + _REPLAN_MS

    def set_weights(self, weights: Mapping[str, float]) -> None:
        """Put weights in force in the scheduler (as float32); its shares change at the next update."""
        index = self.scheduler.queue_index
        by_slot = {index(path): weight for path, weight in weights.items()}
        self.scheduler.set_weights(by_slot)
        if self.calls is not None:
            self._in_force = with_attributes(self._in_force, Attributes(weights))
            self._take_calls()
            self.calls.reload(int(self.world.g["now"][0]), self._in_force)

    def put_in_force(self, plan: Attributes, before: Attributes, now_ms: int) -> None:
        """Put an external policy's plan in force, which replaces the plan `before`."""
        self.kind.put_in_force(self, plan, before, now_ms)

    def reload(self, allocations: AllocationFile, now_ms: int) -> None:
        """Put an allocation file with the same queues in force."""
        self.scheduler.reload(allocations)
        self._in_force = allocations
        self.world.g["keys_at"] = 0  # computed for the shares before
        if self.calls is not None:
            self._take_calls()
            self.calls.reload(now_ms, allocations)
        for queue in queue_tree(allocations):
            # Policies continue to see the administrator's maximum share, not one that a policy has written.
            self.observer.limits_changed(queue.path, queue.min_share, None)

    def _progress(self, wall_s: float) -> Progress:
        g = self.world.g[0]
        return Progress(
            time_s=int(g["now"]) / 1000.0,
            jobs_done=int(g["jobs_done"]),
            jobs_seen=self.feed.seen,
            events=int(g["started"] + g["ended"]),
            wall_s=wall_s,
            so_far=lambda: self._result(False, wall_s, so_far=True),
        )

    def _check_ends(self, now_ms: int) -> None:
        """Raise InternalError if the engine has missed the end of a process, because the results would be wrong."""
        longest = 10 * int(self.world.g["node_hb_ms"][0])
        if len(missed := overdue(self.world, now_ms - longest)):
            raise InternalError(
                f"the simulator's engine has missed the end of {len(missed)} process(es) by {now_ms / 1000:.0f} s of "
                "virtual time"
            )

    def _result(self, finished: bool, wall_s: float, *, so_far: bool = False, stuck: str = "") -> SimResult:
        """Return the result. ``so_far``: of a run that continues, without a final sample and without the task log."""
        S, world = self.scheduler.S, self.world
        g = world.g[0]
        now = int(g["now"])
        last = int(g["next_sample_ms"]) - int(g["sample_ms"])
        if now > last and not so_far:
            if int(g["sample_n"]) >= len(world.samp_t):
                self.samples.take(world)
            take_sample(S, world, now)
        self.samples.take(world)
        self._take_ended()
        if self.setup.record_tasks and not so_far:
            self.tasks.take(world)
        self._take_calls()
        if not (finished or so_far):
            self._check_ends(now)
        waits, waits_at = longest_waits(self.tree, self.order, S.x, now)
        return SimResult(
            jobs=self.jobs.columns(world),
            samples=self.samples.samples(),
            makespan_s=int(g["last_end_ms"]) / 1000.0,
            end_s=now / 1000.0,
            finished=finished,
            stuck=stuck,
            keys_in_python=self.keyed.why_not,
            failed_jobs=int(g["jobs_failed"]),
            events=int(g["started"] + g["ended"]),
            assignments=int(g["started"]),
            heartbeats=int(g["heartbeats"]),
            heartbeats_skipped=int(g["skipped"] + g["leapt"]),
            updates=int(g["updates"]),
            ticks=self.ticks,
            max_wait_s=waits,
            max_wait_at_s=waits_at,
            mean_between_ends_s=mean_between_ends(self.tree, self.order, S.x),
            wall_s=wall_s,
            tasks=self.tasks.columns() if self.setup.record_tasks and not so_far else None,
            writes=self.writes,
            decisions=self.decisions,
            script=self.calls.script if self.calls is not None and self.setup.record_script else None,
            masters=None if self.calls is None else self.calls.masters,
            preempted=self.scheduler.preempted(),
        )


def simulate(setup: SimSetup, *, on_progress: ProgressCallback | None = None) -> SimResult:
    """Simulate a run with a policy inside the scheduler, or without a policy.

    The same setup gives the same result, except ``wall_s``. Raises InputError for impossible jobs, nodes or queues.
    """
    if setup.mode == "outside" and setup.policy is not None:
        raise ValueError("a policy from outside is run by harness.control.virtual.simulate_outside")
    simulation = Simulation(setup)
    if isinstance(setup.policy, ReplanningPolicy) and setup.policy.replans:
        simulation.on_tick = simulation.replan
        simulation.world.g["next_tick_ms"] = _REPLAN_MS
    return simulation.run(on_progress)
