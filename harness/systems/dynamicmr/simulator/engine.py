"""The event loop of the slot cluster: submissions, heartbeats, ends and samples.

The same input and seed always give the same result. harness.systems.dynamicmr.simulator.running starts and ends jobs
and attempts; harness.systems.dynamicmr.simulator.assign decides which task gets a free slot.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable

from harness.base.errors import InputError
from harness.systems.dynamicmr.simulator import assign as give
from harness.systems.dynamicmr.simulator.model import SlotJob, SlotResult, SlotRun
from harness.systems.dynamicmr.simulator.running import END, FETCHED, HEARTBEAT, MAP, SAMPLE, SUBMIT, WAKE, Running
from harness.systems.dynamicmr.simulator.speculate import kill_slow
from harness.systems.dynamicmr.simulator.state import Attempt, Node

#: Milliseconds after which a run in which tasks wait and nothing runs counts as stuck.
STILL_MS = 600_000


def run_slots(run: SlotRun, on_progress: Callable[[int, int], None] | None = None) -> SlotResult:
    """Simulate a run to its end or its time limit.

    ``on_progress`` is called with (time in ms, jobs ended) from time to time.

    Raises InputError for an invalid cluster or invalid jobs.
    """
    return Engine(run).play(on_progress)


class Engine(Running):
    """One run in progress."""

    # --- the loop ---

    def play(self, on_progress: Callable[[int, int], None] | None) -> SlotResult:
        """Simulate to the end or the time limit and return the result."""
        run, limit = self.run, self.run.time_limit_ms
        known = {job.id for job in run.jobs}
        for job in run.jobs:
            if job.after is not None and job.after in known:
                self._after.setdefault(job.after, []).append(job)
            else:
                self._push(job.submit_ms, SUBMIT, job)
        if self.cluster.heartbeat_ms:
            for node in self.nodes:
                self._push(node.index * self.cluster.heartbeat_ms // len(self.nodes), HEARTBEAT, node)
        if run.sample_ms:
            self._push(0, SAMPLE, None)
        beats, told = 0, 0
        still_since = 0
        while len(self.ended) < len(run.jobs):
            self._check_alive(still_since)
            now = self._events[0][0]
            if now > limit:
                self.accounts.pass_time(limit)
                self.now = limit
                break
            self.accounts.pass_time(now)
            self.now = now
            sample, changes = False, self.counts.starts + self.counts.ends
            while self._events and self._events[0][0] == now:
                _, _, kind, what = heapq.heappop(self._events)
                if kind == SAMPLE:
                    sample = True
                    self._push(now + run.sample_ms, SAMPLE, None)
                else:
                    self._handle(kind, what)
            if self.cluster.heartbeat_ms == 0:
                self._fill()
            self._plan_fetch()
            if changes != self.counts.starts + self.counts.ends or not self.active:
                still_since = now
            if sample or (not run.sample_ms and changes != self.counts.starts + self.counts.ends):
                self.accounts.sample(now, self.network.total_mb_s)
            beats += 1
            if on_progress is not None and beats - told >= 20_000:
                told = beats
                on_progress(now, len(self.ended))
        if run.sample_ms:
            self.accounts.sample(self.now, self.network.total_mb_s)
        self.accounts.close(self.now)
        return self._result()

    def _check_alive(self, still_since: int) -> None:
        """Raise InputError if tasks wait, nothing runs, and this has lasted longer than any delay in the model."""
        patience = STILL_MS + 4 * self.cluster.locality_delay_ms + self.cluster.heartbeat_ms
        stuck = self.counts.starts == self.counts.ends and self.now - still_since > patience
        if not self._events or stuck:
            waiting = next((job for job in self.active if job.maps_waiting or job.reduces_waiting), None)
            where = f"job {waiting.spec.id}" if waiting is not None else None
            raise InputError(
                "its tasks wait for slots that they never get",
                where=where,
                hint="give slots of their kind, or lend more",
            )

    def _handle(self, kind: int, what: object) -> None:
        if kind == SUBMIT:
            assert isinstance(what, SlotJob)
            self._submit(what)
        elif kind == END:
            assert isinstance(what, Attempt)
            if what.alive and what.end == self.now:
                self._end(what)
        elif kind == HEARTBEAT:
            assert isinstance(what, Node)
            self._heartbeat(what)
            self._push(self.now + self.cluster.heartbeat_ms, HEARTBEAT, what)
        elif kind == FETCHED and what == self.network.version:
            self.network.advance(self.now)
            for key in self.network.done():
                self._fetched(self._by_id[key])

    def _fill(self) -> None:
        """Run heartbeats of all nodes in turn until no more tasks start at this instant."""
        while True:
            started, reclaimed = 0, self.counts.reclaimed
            for _ in range(len(self.nodes)):
                started += self._heartbeat(self.nodes[self._turn])
                self._turn = (self._turn + 1) % len(self.nodes)
            if not started and reclaimed == self.counts.reclaimed:
                break
        delay = self.cluster.locality_delay_ms
        late = self.rules.late.on or self.rules.sepb > 0
        if self._wake <= self.now and self.active and (delay or late):
            # No event ends the wait for a local slot or for a task to become slow, so schedule a wake-up.
            step = max(1, min([x for x in (delay, 1000 if late else 0) if x]))
            self._wake = self.now + step
            self._push(self._wake, WAKE, None)

    def _heartbeat(self, node: Node) -> int:
        self.heartbeats += 1
        passed, self._last_heartbeat = self.now - self._last_heartbeat, self.now
        for job in self.active:
            if job.skipped:
                job.waited_ms += passed
                job.skipped = False
        if self.rules.sepb > 0 and self.rules.kill_factor > 0:
            kill_slow(self, node)
        started = give.heartbeat(self, node)
        if self.visited:
            for job in self.active:
                job.skipped = job.index in self.visited
        if started:
            self._refused = 0
        else:
            self._refused_since = self._refused_since if self._refused else self.now
            self._refused += 1
            self._reclaim()
        return started

    def _reclaim(self) -> None:
        """Kill the youngest reduce on a map slot if a map waits and only reduces that wait for maps run.

        Only a map that runs again (after a kill or failure) can get into this state, and without this rule such a run
        would never end. Map slots may even be free: reduces on other slots of a node can use up what load balancing
        allows.
        """
        if self.running[MAP] or not any(job.maps_waiting for job in self.active):
            return
        waiting = [a for node in self.nodes for a in node.attempts.values() if not a.is_map]
        if not waiting or any(a.begun >= 0 for a in waiting) or any(a.job.maps_waiting == 0 for a in waiting):
            return
        if any(node.used[MAP] + self.weight[MAP] <= node.map_units for node in self.nodes):
            waiting = [a for a in waiting if a.on_map_slots]
            patience = 4 * self.cluster.locality_delay_ms
            if not waiting or self._refused < len(self.nodes) or self.now - self._refused_since < patience:
                return
        self.counts.reclaimed += 1
        self.give_back(max(waiting, key=lambda a: (a.on_map_slots, a.id)))

    def _result(self) -> SlotResult:
        return SlotResult(
            pools=tuple(pool.name for pool in self.pools),
            jobs=[job.out for job in self.jobs],
            samples=self.accounts.samples,
            counts=self.counts,
            makespan_ms=self._last_end,
            end_ms=self.now,
            finished=len(self.ended) == len(self.run.jobs),
            heartbeats=self.heartbeats,
            longest_wait_ms={name: wait for name, (wait, _) in self.accounts.longest.items()},
            longest_wait_at_ms={name: at for name, (_, at) in self.accounts.longest.items()},
            shuffle_peak_mb_s=self.network.peak_mb_s,
            shuffle_mb=self.network.moved_mb,
        )
