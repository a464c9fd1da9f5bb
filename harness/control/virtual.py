"""The control core driven by the simulator's clock: a policy that acts from outside, in virtual time.

In each period the core observes the simulated cluster. Its writes take effect later, either after a fixed delay (as
with the admin RPC) or by the ResourceManager's own poll of the allocation file (every ``poll_s``, if the file has been
unmodified for more than 5 s: AllocationFileLoaderService of Hadoop 3.4.2). The simulated stock scheduler allocates.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from harness.control.app_observer import Lengths
from harness.control.core import ControlCore
from harness.control.events import Action, Actuated, Observed, RaiseAlarm, Record, Write
from harness.control.poll import STILL_S, write_gap_s
from harness.control.virtual_figures import COUNTS_MS, ShownEnds, ShownUse
from harness.model.plan import Attributes
from harness.model.snapshot import Snapshot
from harness.policies.weights import use_compiled
from harness.sim.setup import ProgressCallback, SimResult, SimSetup
from harness.sim.simulate import Simulation, simulate
from harness.sim.world import NEVER

#: The file must have been unmodified for longer than this before the ResourceManager's poll loads it.
STILL_MS = round(STILL_S * 1000)
#: With more queues, or after this many polls, compiled code is worth its compilation time.
MANY_QUEUES, MANY_LOOKS = 64, 20_000
#: Number of periods at the beginning and at the end of an idle stretch that are not skipped.
_SETTLING = 3


class VirtualDriver:
    """Drive the control core in one simulation; `tick` is the simulation's ``on_tick``."""

    def __init__(self, simulation: Simulation, core: ControlCore) -> None:
        self.simulation, self.core = simulation, core
        setup = simulation.setup
        self._period_ms = max(round(setup.period_s * 1000), 1)
        self._delay_ms = round(setup.actuation_delay_s * 1000)
        self._poll_ms = round(setup.poll_s * 1000)
        self._next_ms = round(setup.control_phase_s * 1000)
        self._record = setup.record_decisions
        self._quantum = simulation.plan is not None and simulation.plan.order.ledger.quantum_s is not None
        self._pseudo = simulation.plan is not None and simulation.plan.order.ledger.pseudo
        #: Writes not in force yet, with the time at which they take effect (admin RPC) or were written (poll).
        self._pending: list[tuple[int, Attributes]] = []
        self._in_force = Attributes()
        #: Leaf -> its index in the scheduler, and its task lengths as a controller would estimate them.
        self._lengths: dict[str, tuple[int, Lengths]] = {}
        if setup.task_lengths == "containers":
            pairs = zip(simulation.tree, simulation.order, strict=True)
            self._lengths = {queue.path: (index, Lengths()) for queue, index in pairs if queue.leaf}
        self._ends = dict.fromkeys(self._lengths, 0)
        self._looked_ms = 0
        self._looks = 0
        #: Time since which no job has been running or waiting, ms (None: some are).
        self._idle_since_ms: int | None = None
        #: `_tells`: whether the core may decide without queue views (`ControlCore.decide`). `_by_figures`: whether it
        #: does so now.
        self._tells = not (self._lengths or self._pseudo or self._quantum)
        self._by_figures = False
        #: The work that preemption has killed so far, MiB·s.
        self._killed_mb_s = 0.0
        #: Simulated caches of the RM, if the core observes figures as old as these (None: exact figures).
        self._shown_ends: ShownEnds | None = None
        self._shown_use: ShownUse | None = None
        self._shown: dict[str, tuple[float, float]] = {}
        if setup.counts_phase_s is not None and self._lengths:
            leaves = {path: index for path, (index, _) in self._lengths.items()}
            self._shown_ends = ShownEnds(leaves, round(setup.counts_phase_s * 1000))
        if setup.asked_s:
            self._shown_use = ShownUse(round(setup.asked_s * 1000), round(setup.asked_phase_s * 1000))
        simulation.world.g["next_tick_ms"] = self._next_due_ms()

    def tick(self, now_ms: int) -> None:
        """Carry out what is due at ``now_ms``: renewals of the RM's caches, writes that take effect, and a poll."""
        if self._shown_ends is not None:
            self._shown_ends.renew(self.simulation.scheduler, now_ms)
        if self._shown_use is not None:
            self._shown_use.asked(self.simulation.world, self.simulation.scheduler, now_ms)
        if self._pending:
            self._take_effect(now_ms)
        if now_ms >= self._next_ms:
            self._next_ms = now_ms + self._period_ms
            self._control(now_ms)
            if self._pending:
                self._take_effect(now_ms)
        self._pass_over_idle_time(now_ms)
        next_ms = self._next_due_ms()
        if self._pending:
            next_ms = min(next_ms, self._next_effect_ms(now_ms))
        self.simulation.world.g["next_tick_ms"] = next_ms

    def _pass_over_idle_time(self, now_ms: int) -> None:
        """Skip polls while the cluster is idle; the remaining polls stay on the same time grid.

        An idle cluster is the same at every poll, and accounts decay with the elapsed time only, so the remaining polls
        decide the same as without skipping. The first and last `_SETTLING` periods of an idle stretch are kept: in the
        first ones the caches catch up, and the last ones decide which weights are in force when a job arrives.
        """
        world = self.simulation.world
        g = world.g
        endless = bool(world.jobs["endless"].any())
        if self._pending or endless or int(g["live_jobs"][0]) != int(g["waiting_jobs"][0]):
            self._idle_since_ms = None
            return
        if self._idle_since_ms is None:
            self._idle_since_ms = now_ms
        settling_ms = _SETTLING * max(self._period_ms, COUNTS_MS)
        ends_ms = int(g["feed_ms"][0])
        if int(g["heap_n"][0]) > 0:
            ends_ms = min(ends_ms, int(world.heap_t[0]))
        if now_ms - self._idle_since_ms < settling_ms or ends_ms >= NEVER:
            return
        periods = max(ends_ms - settling_ms - self._next_ms, 0) // self._period_ms
        self._next_ms += periods * self._period_ms
        for shown in (self._shown_ends, self._shown_use):
            if shown is not None:
                shown.pass_over(self._next_ms)

    def _next_due_ms(self) -> int:
        shown = (self._shown_ends, self._shown_use)
        return min([self._next_ms, *(one.next_ms for one in shown if one is not None)])

    def _control(self, now_ms: int) -> None:
        sim = self.simulation
        self._looks += 1
        if self._looks == (1 if len(sim.order) > MANY_QUEUES else MANY_LOOKS):
            use_compiled()
            self._by_figures = self._tells
        if self._by_figures:
            figures = sim.observer.look(sim.scheduler.S, sim.world, now_ms)
            actions = self.core.decide(figures)
            if actions is not None:
                self._carry_out(actions, now_ms)
                return
            seen = sim.observer.seen(figures, self.core.period_s)
        else:
            seen = sim.observer.snapshot(sim.scheduler.S, sim.world, now_ms, self.core.period_s)
        snapshot = self._with_lengths(seen.snapshot, now_ms) if self._lengths else seen.snapshot
        consumed: dict[str, Any] = sim.observer.consumed(seen.rows)
        if self._shown_use is not None:
            consumed = self._as_shown(consumed, now_ms)
        active = (
            [name for name in sim.observer.leaves if snapshot.queues[name].demand.memory_mb > 0] if self._pseudo else ()
        )
        assumed = sim.observer.ahead(seen.reals) if self._quantum else None
        if self.core.preemption is not None:
            killed = sim.scheduler.preempted()
            total = 0.0 if killed is None else killed.memory_mb_s
            self.core.killed.count(snapshot.time_s, total - self._killed_mb_s)
            self._killed_mb_s = total
        self._carry_out(self.core.handle(Observed(snapshot, consumed, active, assumed)), now_ms)

    def _carry_out(self, actions: list[Action], now_ms: int) -> None:
        sim = self.simulation
        for action in actions:
            if isinstance(action, Write):
                if self._poll_ms:
                    self._pending = [(now_ms, action.attributes)]
                else:
                    self._pending.append((now_ms + self._delay_ms, action.attributes))
            elif isinstance(action, Record) and self._record:
                sim.decisions.append(
                    {
                        "time_s": action.time_s,
                        "weights": dict(action.attributes.weights),
                        "changed": list(action.changed),
                        "counted": dict(action.counted),
                        "reasons": dict(action.reasons),
                        **({"held": dict(action.held)} if action.held else {}),
                    }
                )
            elif isinstance(action, RaiseAlarm):
                sim.decisions.append({"time_s": now_ms / 1000.0, "alarm": action.kind, "text": action.text})

    def _as_shown(self, consumed: dict[str, Any], now_ms: int) -> dict[str, Any]:
        """Return the usage that a real cluster's controller would have counted by now; it never falls."""
        sim = self.simulation
        assert self._shown_use is not None
        behind = self._shown_use.behind(sim.world, sim.scheduler, now_ms)
        for queue, index in zip(sim.tree, sim.order, strict=True):
            if queue.leaf:
                less, before = behind.get(index, (0.0, 0.0)), self._shown.get(queue.path, (0.0, 0.0))
                memory, vcores = (max(u - b, s) for u, b, s in zip(consumed[queue.path], less, before, strict=True))
                self._shown[queue.path] = (memory, vcores)
        return {**consumed, **self._shown}

    def _with_lengths(self, snapshot: Snapshot, now_ms: int) -> Snapshot:
        """Return the snapshot with mean task lengths as a real cluster's controller would estimate them."""
        integrals, queues = self.simulation.scheduler.S.x, dict(snapshot.queues)
        interval_s, self._looked_ms = (now_ms - self._looked_ms) / 1000.0, now_ms
        for path, (index, lengths) in self._lengths.items():
            starts, ends = int(integrals["starts"][index]), int(integrals["ends"][index])
            lengths.hold(starts - ends, queues[path].running_apps, interval_s)
            if self._shown_ends is not None:
                ends = self._shown_ends[path]
            lengths.end(ends - self._ends[path], queues[path].ended_apps or 0)
            self._ends[path] = ends
            queues[path] = replace(queues[path], mean_task_s=lengths.mean_s)
        return replace(snapshot, queues=queues)

    def _next_effect_ms(self, now_ms: int) -> int:
        if not self._pending:
            return NEVER
        if not self._poll_ms:
            return self._pending[0][0]
        earliest = max(self._pending[0][0] + STILL_MS + 1, now_ms + 1)
        return -(-earliest // self._poll_ms) * self._poll_ms

    def _take_effect(self, now_ms: int) -> None:
        while self._pending:
            at_ms, attributes = self._pending[0]
            if self._poll_ms:
                if now_ms % self._poll_ms or now_ms - at_ms <= STILL_MS:
                    return
            elif at_ms > now_ms:
                return
            self._pending.pop(0)
            self._put_in_force(attributes, now_ms)
            self._carry_out(self.core.handle(Actuated(now_ms / 1000.0)), now_ms)

    def _put_in_force(self, attributes: Attributes, now_ms: int) -> None:
        sim, before = self.simulation, self._in_force
        self._in_force = attributes
        sim.put_in_force(attributes, before, now_ms)
        if self._record:
            sim.writes.append((now_ms / 1000.0, dict(attributes.weights)))


def simulate_outside(setup: SimSetup, *, on_progress: ProgressCallback | None = None) -> SimResult:
    """Run ``setup.policy`` from outside: the core observes each period and writes; the stock scheduler allocates."""
    simulation = Simulation(setup)
    core = ControlCore(
        setup.policy,
        period_s=setup.period_s,
        write_gap_s=write_gap_s(setup.poll_s) if setup.poll_s else 0.0,
        start_s=0.0,
        max_ratio=setup.max_ratio,
        write_threshold=setup.write_threshold,
        preemption=setup.preemption,
        preemption_budget_mb_s=setup.preemption_budget_mb_s,
    )
    simulation.on_tick = VirtualDriver(simulation, core).tick
    return simulation.run(on_progress)


def simulate_policy(setup: SimSetup, *, on_progress: ProgressCallback | None = None) -> SimResult:
    """Run a simulation in the mode of its setup: with the policy outside the scheduler or inside it."""
    if setup.mode == "outside" and setup.policy is not None:
        return simulate_outside(setup, on_progress=on_progress)
    return simulate(setup, on_progress=on_progress)
