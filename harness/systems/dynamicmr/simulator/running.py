"""The state of the slot cluster: jobs that arrive and end, attempts that start, fetch, end, fail and are killed.

harness.systems.dynamicmr.simulator.engine decides when events happen, harness.systems.dynamicmr.simulator.assign which
task gets a free slot.
"""

from __future__ import annotations

import heapq
import random

from harness.systems.dynamicmr.simulator.accounts import Accounts
from harness.systems.dynamicmr.simulator.model import SlotCounts, SlotJob, SlotRun
from harness.systems.dynamicmr.simulator.shuffle import Network
from harness.systems.dynamicmr.simulator.state import NODE, RACK, Attempt, Job, Node, Pool, place_blocks

MAP, REDUCE = 0, 1
SUBMIT, END, HEARTBEAT, FETCHED, WAKE, SAMPLE = range(6)

#: A reduce continues fetching when at least this fraction of its input is available and not fetched.
CHUNK = 0.05


class Running:
    """The state of one run. The modules that assign slots read it, and start tasks through `launch`."""

    def __init__(self, run: SlotRun) -> None:
        self.run, self.cluster, self.rules = run, run.cluster, run.rules
        self.weight = run.cluster.units()
        self.nodes = [Node(index, node, self.weight) for index, node in enumerate(run.cluster.nodes)]
        self.slots = (sum(n.map_slots for n in self.nodes), sum(n.reduce_slots for n in self.nodes))
        self.capacity = (self.slots[MAP] * self.weight[MAP], self.slots[REDUCE] * self.weight[REDUCE])
        run.check()
        names = sorted({*run.pools, *(job.pool for job in run.jobs)})
        rules = run.rules
        self.pools = [
            Pool(i, name, float(rules.weights.get(name, 1)), name in rules.fifo_pools, rules.minimums.get(name, (0, 0)))
            for i, name in enumerate(names)
        ]
        heavy = sum(pool.weight for pool in self.pools)
        for pool in self.pools:
            pool.share = sum(self.capacity) * pool.weight / heavy
        self.pool = {pool.name: pool for pool in self.pools}
        #: The single pool of all jobs, used under FIFO.
        self.everyone = [Pool(0, "", 1.0)]
        self.now = 0
        self.active: list[Job] = []
        self.ended: list[Job] = []
        self.jobs: list[Job] = []
        self.counts = SlotCounts()
        self.borrowed = [0, 0]  # units lent: of the map slots, of the reduce slots
        self.copies = [0, 0]
        self.running = [0, 0]
        self.lent = 0
        self.masters = 0
        self.visited: set[int] = set()
        self.network = Network(run.cluster.shuffle)
        self.accounts = Accounts(self.pools, self.weight)
        self.heartbeats = 0
        self._events: list[tuple[int, int, int, object]] = []
        self._sequence = 0
        self._last_heartbeat = 0
        self._last_end = 0
        self._turn = 0
        self._attempts = 0
        self._wake = -1
        #: Consecutive heartbeats that started nothing while nothing ended or arrived, and the time of the first of
        #: them.
        self._refused, self._refused_since = 0, 0
        self._by_id: dict[int, Attempt] = {}
        self._after: dict[str, list[SlotJob]] = {}
        self._draws = random.Random(f"{run.seed}/blocks")

    def _push(self, time: int, kind: int, what: object) -> None:
        self._sequence += 1
        heapq.heappush(self._events, (time, self._sequence, kind, what))

    # --- jobs ---

    def _submit(self, spec: SlotJob) -> None:
        pool = self.pool[spec.pool]
        blocks = place_blocks(spec, self.cluster, self._draws) if self.cluster.replicas else [()] * len(spec.maps_ms)
        job = Job(len(self.jobs), spec, pool, blocks, [node.rack for node in self.nodes])
        job.out.submitted_ms = self.now
        self._refused = 0
        self.jobs.append(job)
        self.active.append(job)
        pool.jobs.append(job)
        if not job.maps and not job.reduces:
            self._finish(job, failed=False)

    def _finish(self, job: Job, *, failed: bool) -> None:
        job.active = False
        job.out.finished_ms, job.out.failed = self.now, failed
        self._last_end = self.now
        if failed:
            for attempt in [a for found in job.attempts.values() for a in found]:
                self._release(attempt)
        if job.master is not None:
            self._release(job.master)
            self.masters -= 1
        self.active.remove(job)
        job.pool.jobs.remove(job)
        self.ended.append(job)
        for spec in self._after.pop(job.spec.id, []):
            self._push(self.now + spec.think_ms, SUBMIT, spec)

    # --- attempts ---

    def take_reduce(self, job: Job) -> int | None:
        """Take a waiting reduce of the job, failed ones first. Return None if slow-start forbids it or none waits."""
        if not job.reduces_ready:
            return None
        for waiting in (job.failed_reduces, job.pending_reduces):
            if waiting:
                return waiting.popleft()
        return None

    def launch(
        self,
        job: Job,
        is_map: bool,
        task: int,
        node: Node,
        *,
        on_map_slots: bool,
        locality: int = NODE,
        speculative: bool = False,
    ) -> Attempt:
        """Start an attempt in the node's map slots (``on_map_slots``) or reduce slots, and return it."""
        kind = MAP if is_map else REDUCE
        attempt = self._attempt(job, is_map, task, node, on_map_slots)
        attempt.locality, attempt.speculative = locality, speculative
        key = (is_map, task)
        tried = job.tries[key] = job.tries.get(key, 0) + 1
        work = job.spec.maps_ms[task] if is_map else job.spec.reduces_ms[task]
        attempt.duration, attempt.fails = self._duration(attempt, work, tried)
        job.attempts.setdefault(key, []).append(attempt)
        if job.out.started_ms < 0:
            job.out.started_ms = self.now
        self._rate(attempt, 1)
        self.running[kind] += 1
        if speculative:
            self.copies[kind] += 1
        job.running[kind] += 1
        job.pool.running[kind] += 1
        if is_map:
            self._count_locality(locality)
            self.counts.most_maps = max(self.counts.most_maps, self.running[MAP])
            self.counts.speculative_maps += speculative
            self._begin(attempt)
        else:
            self.counts.most_reduces = max(self.counts.most_reduces, self.running[REDUCE])
            self.counts.speculative_reduces += speculative
            self._fetch(attempt)
        return attempt

    def _rate(self, attempt: Attempt, sign: int) -> None:
        """Add an attempt's progress rate to its job's statistics, or with sign -1 remove it."""
        rate, sums = 1.0 / attempt.duration, attempt.job.rates[MAP if attempt.is_map else REDUCE]
        sums[0] += sign
        sums[1] += sign * rate
        sums[2] += sign * rate * rate

    def launch_master(self, job: Job, node: Node) -> None:
        """Start the job's application master in a container of a map's size."""
        fits = node.used[MAP] + self.weight[MAP] <= node.map_units
        job.master = self._attempt(job, True, -1, node, fits)
        self.masters += 1

    def _attempt(self, job: Job, is_map: bool, task: int, node: Node, on_map_slots: bool) -> Attempt:
        self._attempts += 1
        attempt = Attempt(self._attempts, job, is_map, task, node, on_map_slots)
        attempt.units = self.weight[MAP if is_map else REDUCE]
        attempt.start = self.now
        slot = MAP if on_map_slots else REDUCE
        node.used[slot] += attempt.units
        node.attempts[attempt.id] = attempt
        self._by_id[attempt.id] = attempt
        if is_map != on_map_slots:
            self.borrowed[slot] += attempt.units
            if is_map:
                self.counts.maps_on_reduce_slots += 1
            else:
                self.counts.reduces_on_map_slots += 1
        job.pool.held += attempt.units
        self.accounts.note_wait(job.pool, self.now, served=True)
        self.counts.starts += 1
        return attempt

    def _duration(self, attempt: Attempt, work: int, tried: int) -> tuple[int, bool]:
        factor = 1.0 / attempt.node.speed
        if attempt.is_map:
            factor *= (1.0, self.cluster.rack_factor, self.cluster.remote_factor)[attempt.locality]
        faults, fails = self.run.faults, False
        if faults.failure or faults.straggler:
            kind = "map" if attempt.is_map else "reduce"
            draw = random.Random(f"{self.run.seed}/{attempt.job.spec.id}/{kind}/{attempt.task}/{tried}")
            if draw.random() < faults.straggler:
                factor *= faults.straggler_factor
            if draw.random() < faults.failure:
                fails = True
                factor *= draw.random()
        # With a factor of exactly 1, whole times stay exact.
        return max(1, round(work * factor) if factor != 1.0 else work), fails

    def _count_locality(self, locality: int) -> None:
        if locality == NODE:
            self.counts.node_local += 1
        elif locality == RACK:
            self.counts.rack_local += 1
        else:
            self.counts.remote += 1

    def _fetch(self, attempt: Attempt) -> None:
        """Fetch the input that is available and not fetched. When all is fetched, start the reduce's own work."""
        job = attempt.job
        maps_done = job.maps_done == job.maps
        if not self.cluster.shuffle.limited or job.fetch_mb <= 0:
            if maps_done:
                self._begin(attempt)
            return
        there = job.fetch_mb * (job.maps_done / job.maps if job.maps else 1.0)
        more = there - attempt.fetched
        if more > 0 and (maps_done or more >= CHUNK * job.fetch_mb):
            attempt.fetched = there
            self.network.start(attempt.id, attempt.node.index, more, self.now)
        elif maps_done:
            self._begin(attempt)

    def _fetched(self, attempt: Attempt) -> None:
        self.network.stop(attempt.id, self.now)
        self._fetch(attempt)

    def _begin(self, attempt: Attempt) -> None:
        attempt.begun = self.now
        attempt.end = self.now + attempt.duration
        self._push(attempt.end, END, attempt)

    def _plan_fetch(self) -> None:
        if self.network.left:
            self.network.advance(self.now)
            at = self.network.next_end_ms()
            assert at is not None
            self._push(max(at, self.now), FETCHED, self.network.version)

    def _end(self, attempt: Attempt) -> None:
        job, key = attempt.job, (attempt.is_map, attempt.task)
        kind = MAP if attempt.is_map else REDUCE
        if attempt.fails:
            job.out.attempts_failed += 1
            self.counts.failed += 1
            job.failures[key] = job.failures.get(key, 0) + 1
            if job.failures[key] >= self.run.faults.max_attempts and len(job.attempts[key]) == 1:
                self._release(attempt)
                self._finish(job, failed=True)
            else:
                self.give_back(attempt)
            return
        self.counts.speculative_won += attempt.speculative
        self._release(attempt)
        for other in list(job.attempts.get(key, [])):
            self._release(other)
        work = self.now - attempt.begun
        job.time_sum[kind] += work
        job.time_count[kind] += 1
        job.out.task_ms += self.now - attempt.start
        job.out.tasks_ended += 1
        if attempt.is_map:
            job.maps_done += 1
            self._map_done(job)
        else:
            job.reduces_done += 1
        if job.maps_done == job.maps and job.reduces_done == job.reduces:
            self._finish(job, failed=False)

    def _map_done(self, job: Job) -> None:
        if job.maps_done < job.maps and not (self.cluster.shuffle.limited and job.fetch_mb):
            return
        for (is_map, _), attempts in job.attempts.items():
            if not is_map:
                for attempt in attempts:
                    if attempt.begun < 0 and attempt.id not in self.network.left:
                        self._fetch(attempt)

    def give_back(self, attempt: Attempt) -> None:
        """End an attempt without success.

        Its task runs again, before others of its job, unless another attempt still runs.
        """
        job, key = attempt.job, (attempt.is_map, attempt.task)
        self._rate(attempt, -1)
        self._release(attempt)
        if key not in job.attempts:
            (job.failed_maps if attempt.is_map else job.failed_reduces).append(attempt.task)

    def _release(self, attempt: Attempt) -> None:
        attempt.alive = False
        self._refused = 0
        job, node = attempt.job, attempt.node
        slot = MAP if attempt.on_map_slots else REDUCE
        node.used[slot] -= attempt.units
        del node.attempts[attempt.id], self._by_id[attempt.id]
        if attempt.is_map != attempt.on_map_slots:
            self.borrowed[slot] -= attempt.units
        if attempt.lent:
            self.lent -= 1
        job.pool.held -= attempt.units
        job.out.unit_ms += attempt.units * (self.now - attempt.start)
        self.counts.ends += 1
        if attempt is job.master:
            return
        self.network.stop(attempt.id, self.now)
        kind = MAP if attempt.is_map else REDUCE
        self.running[kind] -= 1
        self.copies[kind] -= attempt.speculative
        job.running[kind] -= 1
        job.pool.running[kind] -= 1
        key = (attempt.is_map, attempt.task)
        job.attempts[key].remove(attempt)
        if not job.attempts[key]:
            del job.attempts[key]
