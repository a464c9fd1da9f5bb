"""The state of jobs, attempts and tasktrackers in the slot engine. Makes no decisions."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from harness.systems.dynamicmr.simulator.model import SlotCluster, SlotJob, SlotJobEnd, SlotNode

#: Locality levels: the largest allowed distance of a map from its block.
NODE, RACK, ANY = 0, 1, 2


@dataclass(slots=True, eq=False)
class Attempt:
    """One attempt of a task, in slots of one kind on one node."""

    id: int
    job: Job
    is_map: bool
    task: int
    node: Node
    on_map_slots: bool
    units: int = 0
    start: int = 0
    #: Start of its own work in ms (for a reduce, after its input has arrived); -1: not yet.
    begun: int = -1
    duration: int = 0
    end: int = -1
    speculative: bool = False
    alive: bool = True
    fails: bool = False
    locality: int = NODE
    #: Whether Slot PreScheduling put this map on reduce slots (case P2).
    lent: bool = False
    fetched: float = 0.0


class Node:
    """A tasktracker: its capacity and usage by kind of slot, in units."""

    __slots__ = ("attempts", "index", "map_slots", "map_units", "rack", "reduce_slots", "reduce_units", "speed", "used")

    def __init__(self, index: int, spec: SlotNode, weights: tuple[int, int]) -> None:
        self.index, self.rack, self.speed = index, spec.rack, spec.speed
        self.map_slots, self.reduce_slots = spec.map_slots, spec.reduce_slots
        self.map_units, self.reduce_units = spec.map_slots * weights[0], spec.reduce_slots * weights[1]
        #: Units used of the map slots and of the reduce slots.
        self.used = [0, 0]
        self.attempts: dict[int, Attempt] = {}


@dataclass(slots=True, eq=False)
class Pool:
    """A pool of the Fair Scheduler: its weight, its active jobs, and what it holds."""

    index: int
    name: str
    weight: float
    fifo: bool = False
    #: Minimum maps and reduces.
    least: tuple[int, int] = (0, 0)
    jobs: list[Job] = field(default_factory=list)
    #: Running maps and reduces.
    running: list[int] = field(default_factory=lambda: [0, 0])
    held: int = 0
    share: float = 0.0
    accumulated: float = 0.0
    due: float = 0.0
    waits_since: int = -1


class Job:
    """A submitted job: its waiting, running and ended tasks."""

    def __init__(self, index: int, spec: SlotJob, pool: Pool, blocks: Sequence[tuple[int, ...]], racks: Sequence[str]):
        self.index, self.spec, self.pool = index, spec, pool
        self.maps, self.reduces = len(spec.maps_ms), len(spec.reduces_ms)
        self.out = SlotJobEnd(spec.id, pool.name, spec.name, spec.submit_ms, tasks=self.maps + self.reduces)
        self.blocks, self.racks = blocks, racks
        self.map_waits = bytearray(b"\x01" * self.maps)
        self.by_node: dict[int, list[int]] = {}
        self.by_rack: dict[str, list[int]] = {}
        # Lists are popped from the end, so they are reversed to start tasks in their order.
        for task in range(self.maps - 1, -1, -1):
            for node in blocks[task]:
                self.by_node.setdefault(node, []).append(task)
            for rack in {racks[node] for node in blocks[task]}:
                self.by_rack.setdefault(rack, []).append(task)
        self.anywhere = list(range(self.maps - 1, -1, -1))
        self.pending_maps = self.maps
        self.failed_maps: deque[int] = deque()
        self.pending_reduces: deque[int] = deque(range(self.reduces))
        self.failed_reduces: deque[int] = deque()
        self.maps_done = self.reduces_done = 0
        self.running = [0, 0]
        self.attempts: dict[tuple[bool, int], list[Attempt]] = {}
        #: Attempts started per task, and the failed ones among them (killed ones do not count as failed).
        self.tries: dict[tuple[bool, int], int] = {}
        self.failures: dict[tuple[bool, int], int] = {}
        self.killed: set[tuple[bool, int]] = set()
        # Sums over successful attempts, by kind.
        self.time_sum = [0, 0]
        self.time_count = [0, 0]
        #: By kind: number, sum and sum of squares of the progress rates of attempts that were not killed.
        self.rates = [[0, 0.0, 0.0], [0, 0.0, 0.0]]
        self.active = True
        self.master: Attempt | None = None
        # State of delay scheduling (JobInfo in the Fair Scheduler).
        self.waited_ms = 0
        self.skipped = False
        self.last_level = NODE
        self.slow_start_maps = -(-round(spec.slow_start * 1e9) * self.maps // 10**9)
        self.fetch_mb = spec.shuffle_mb / self.reduces if self.reduces else 0.0

    @property
    def maps_waiting(self) -> int:
        """The number of maps that wait, including failed ones."""
        return self.pending_maps + len(self.failed_maps)

    @property
    def reduces_ready(self) -> bool:
        """Whether slow-start lets its reduces start."""
        return self.maps_done >= self.slow_start_maps

    @property
    def reduces_waiting(self) -> int:
        """The number of reduces that could start now."""
        return len(self.pending_reduces) + len(self.failed_reduces) if self.reduces_ready else 0

    def local_map(self, node: int) -> bool:
        """Return whether a map waits whose block is on the node."""
        found = self.by_node.get(node)
        if not found:
            return False
        while found and not self.map_waits[found[-1]]:
            found.pop()
        return bool(found)

    def take_local(self, node: Node) -> int | None:
        """Take a waiting map whose block is on the node, or return None."""
        if not self.local_map(node.index):
            return None
        task = self.by_node[node.index].pop()
        self.map_waits[task] = 0
        self.pending_maps -= 1
        return task

    def take_map(self, node: Node, level: int) -> tuple[int, int] | None:
        """Take a waiting map for the node at a distance of at most `level`, failed ones first.

        Returns (task, locality), or None. Failed maps are taken at any distance.
        """
        if self.failed_maps:
            task = self.failed_maps.popleft()
            return task, self.locality(task, node)
        if not self.pending_maps:
            return None
        for locality, waiting in (
            (NODE, self.by_node.get(node.index)),
            (RACK, self.by_rack.get(node.rack)),
            (ANY, self.anywhere),
        ):
            if locality > level:
                return None
            while waiting:
                task = waiting.pop()
                if self.map_waits[task]:
                    self.map_waits[task] = 0
                    self.pending_maps -= 1
                    return task, locality
        return None

    def locality(self, task: int, node: Node) -> int:
        """Return the locality level of a task on the node."""
        if node.index in self.blocks[task] or not self.blocks[task]:
            return NODE
        return RACK if any(self.racks[found] == node.rack for found in self.blocks[task]) else ANY


def place_blocks(job: SlotJob, cluster: SlotCluster, draw: random.Random) -> list[tuple[int, ...]]:
    """Return the nodes of each map's block, drawn by HDFS' rule.

    The first replica is on any node, the second on another rack, the third on the second's rack, and others on any
    node.
    """
    nodes = range(len(cluster.nodes))
    racks = [node.rack for node in cluster.nodes]
    found = []
    for _ in job.maps_ms:
        chosen: list[int] = []
        for turn in range(min(cluster.replicas, len(cluster.nodes))):
            free = [n for n in nodes if n not in chosen]
            if turn == 1:
                free = [n for n in free if racks[n] != racks[chosen[0]]] or free
            elif turn == 2:
                free = [n for n in free if racks[n] == racks[chosen[1]]] or free
            chosen.append(draw.choice(free))
        found.append(tuple(chosen))
    return found
