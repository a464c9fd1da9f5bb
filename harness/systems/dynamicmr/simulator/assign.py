"""Decides which tasks get a tasktracker's free slots at a heartbeat: MRv1's Fair Scheduler, DHSA, PreScheduling, YARN.

Sources: FairScheduler and CapBasedLoadManager of Hadoop 1.2.1 for the thesis' base; Algorithms 6, 7 and 9 and Figs.
4.4, 4.7 and 4.8 for its additions. The engine then runs and ends the attempts.
harness.systems.dynamicmr.simulator.speculate decides which tasks get a copy.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, floor

from harness.systems.dynamicmr.simulator.order import jobs_in_order, jobs_of, pools_in_order
from harness.systems.dynamicmr.simulator.running import Running
from harness.systems.dynamicmr.simulator.speculate import copy_for
from harness.systems.dynamicmr.simulator.state import ANY, NODE, RACK, Job, Node, Pool

MAP, REDUCE = 0, 1


@dataclass(frozen=True, slots=True)
class Loads:
    """The load factors of the cluster and the units that may be lent at one heartbeat (Algorithm 6)."""

    maps: float  # mapSlotsLoadFactor, updated
    reduces: float
    lend_map: int  # most units of map slots that reduces may hold
    lend_reduce: int


def loads(e: Running) -> Loads:
    """Return load factors and borrowing limits by Algorithm 6, lines 1 to 21.

    Read literally, line 14 adds to the load factor what is still to be borrowed, but not what already is, so that only
    half of the idle slots are ever lent (docs/figures-dynamicmr.md). Here the updated factor includes both. The limit
    is, as in line 13, what is already lent plus the demand above the capacity: where maps hold reduce slots, reduces
    need as many more slots.
    """
    rules = e.rules
    map_demand = sum(job.maps_waiting + job.running[MAP] for job in e.active) * e.weight[MAP]
    reduce_demand = sum(job.reduces_waiting + job.running[REDUCE] for job in e.active) * e.weight[REDUCE]
    map_cap, reduce_cap = e.capacity
    # Any demand overloads a kind without slots.
    maps = map_demand / map_cap if map_cap else (2.0 if map_demand else 0.0)
    reduces = reduce_demand / reduce_cap if reduce_cap else (2.0 if reduce_demand else 0.0)
    lend_map = lend_reduce = 0
    if rules.sharing in ("independent", "dependent"):
        if maps < 1 < reduces:  # case 3
            most, needed = lendable(e, MAP, rules.borrowed_map), reduce_demand - reduce_cap
            maps = (map_demand + min(most, needed)) / map_cap if map_cap else 0.0
            lend_map = min(most, e.borrowed[MAP] + needed)
        elif reduces < 1 < maps:  # case 4
            most, needed = lendable(e, REDUCE, rules.borrowed_reduce), map_demand - map_cap
            reduces = (reduce_demand + min(most, needed)) / reduce_cap if reduce_cap else 0.0
            lend_reduce = min(most, e.borrowed[REDUCE] + needed)
    return Loads(maps, reduces, lend_map, lend_reduce)


def lendable(e: Running, kind: int, part: float) -> int:
    """Return how many units of a kind's slots tasks of the other kind may hold at once, rounded down to whole tasks.

    This is the fraction ``part`` of all slots, as in Algorithm 6 (lines 13 and 19), or of the slots that no task of
    their own kind holds, as in the text of the thesis. Units that are lent already are included.
    """
    slots = e.slots[kind]
    if e.rules.borrowed_of == "unused":
        own = sum(node.used[kind] for node in e.nodes) - e.borrowed[kind]
        slots -= -(-own // e.weight[kind])
    most, task = floor(slots * part + 1e-9) * e.weight[kind], e.weight[1 - kind]
    return most - most % task


def allowable(slots: int, load: float) -> int:
    """Return how many of a tasktracker's slots may be used under load balancing (section 4.2.4.2, steps 1 to 3)."""
    return ceil(slots * min(load, 1.0) - 1e-9)


def heartbeat(e: Running, node: Node) -> int:
    """Give the node's free slots to tasks and return how many tasks were started."""
    before = e.counts.starts
    e.visited.clear()
    if sum(node.used) + min(e.weight) > node.map_units + node.reduce_units:
        return 0  # the node is full, which is the usual case in a busy cluster
    if e.rules.sharing == "containers":
        _containers(e, node)
    elif e.rules.sharing == "dependent":
        _dependent(e, node)
    else:
        _independent(e, node)
    return e.counts.starts - before


# --- PI-DHSA, and static slots ----------------------------------------------------------------------------------------


def _independent(e: Running, node: Node) -> None:
    load = loads(e)
    allow_map = allowable(node.map_slots, load.maps) * e.weight[MAP]
    allow_reduce = allowable(node.reduce_slots, load.reduces) * e.weight[REDUCE]
    # Within the phases: start the kind of which the node runs less (Hadoop 1.2.1), until neither kind can start a task.
    maps = reduces = True
    while maps or reduces:
        if maps and not (node.used[MAP] < allow_map and _fits(e, node, MAP, True)):
            maps = False
        if reduces and not (node.used[REDUCE] < allow_reduce and _fits(e, node, REDUCE, False)):
            reduces = False
        if not (maps or reduces):
            break
        kind = MAP if maps and (not reduces or node.used[MAP] <= node.used[REDUCE]) else REDUCE
        if not assign(e, node, kind, on_map_slots=kind == MAP):
            if kind == MAP:
                maps = False
            else:
                reduces = False
    # Across the phases: lend idle slots.
    while node.used[MAP] < allow_map and _may_lend(e, node, REDUCE, load.lend_map):
        if not assign(e, node, REDUCE, on_map_slots=True):
            break
    while node.used[REDUCE] < allow_reduce and _may_lend(e, node, MAP, load.lend_reduce):
        if not assign(e, node, MAP, on_map_slots=False):
            break
    if e.rules.prescheduling:
        while any(_preschedule(e, node, job, allow_map) for job in jobs_in_order(e, MAP)):
            pass
        while e.lent > 0 and _fits(e, node, REDUCE, True) and assign(e, node, REDUCE, on_map_slots=True):  # case P3
            pass


def _fits(e: Running, node: Node, kind: int, on_map_slots: bool) -> bool:
    """Return whether a task of the kind fits into the node's map slots (``on_map_slots``) or reduce slots."""
    if on_map_slots:
        return node.used[MAP] + e.weight[kind] <= node.map_units
    return node.used[REDUCE] + e.weight[kind] <= node.reduce_units


def _may_lend(e: Running, node: Node, to: int, most: int) -> bool:
    """Return whether one more task of kind `to` may borrow slots of the other kind, with `most` units lent at most."""
    return e.borrowed[1 - to] < most and _fits(e, node, to, to == REDUCE)


def _preschedule(e: Running, node: Node, job: Job, allow_map: int) -> bool:
    """Start a local map of the job on idle slots that load balancing or the slots' kind would deny it (P1 and P2)."""
    if not job.local_map(node.index) or node.used[MAP] < allow_map:
        return False
    if _fits(e, node, MAP, True):  # P1: extra idle map slots
        found = job.take_local(node)
        if found is not None:
            e.launch(job, True, found, node, on_map_slots=True, locality=NODE)
            e.counts.prescheduled += 1
            return True
    dhsa = e.rules.sharing in ("independent", "dependent") and e.rules.borrowed_reduce > 0
    if dhsa and e.lent < e.rules.borrowable and _fits(e, node, MAP, False):  # P2: idle reduce slots
        found = job.take_local(node)
        if found is not None:
            e.launch(job, True, found, node, on_map_slots=False, locality=NODE).lent = True
            e.lent += 1
            e.counts.prescheduled += 1
            return True
    return False


# --- PD-DHSA ----------------------------------------------------------------------------------------------------------


def _dependent(e: Running, node: Node) -> None:
    """Run Algorithm 7, with the cases P1 to P3 where Fig. 4.8 has them."""
    total = sum(
        (job.maps_waiting + job.running[MAP]) * e.weight[MAP]
        + (job.reduces_waiting + job.running[REDUCE]) * e.weight[REDUCE]
        for job in e.active
    )
    load = total / sum(e.capacity)
    units = node.map_units + node.reduce_units
    step = max(e.weight)
    current = min(allowable(-(-units // step), load) * step, units)
    allow_map = allowable(node.map_slots, loads(e).maps) * e.weight[MAP] if e.rules.prescheduling else node.map_units
    most_map = lendable(e, MAP, e.rules.borrowed_map)
    most_reduce = lendable(e, REDUCE, e.rules.borrowed_reduce)
    while sum(node.used) < current or e.rules.prescheduling:
        below = sum(node.used) < current
        if not any(
            _dependent_one(e, node, pool, below, allow_map, most_map, most_reduce) for pool in pools_in_order(e, None)
        ) and not (below and _ignoring_locality(e, node, most_reduce)):
            return


def _dependent_one(
    e: Running, node: Node, pool: Pool, below: bool, allow_map: int, most_map: int, most_reduce: int
) -> bool:
    """Start one task of the pool by the first case that applies. Return whether one was started."""
    if below and _fits(e, node, MAP, True) and assign(e, node, MAP, on_map_slots=True, only=pool):  # (1)
        return True
    if e.rules.prescheduling and any(
        _preschedule(e, node, job, 0 if not below else allow_map) for job in jobs_of(e, pool, MAP)
    ):
        return True  # (P1), (P2)
    if not below:
        return False
    if _fits(e, node, REDUCE, False) and assign(e, node, REDUCE, on_map_slots=False, only=pool):  # (2)
        return True
    if e.lent > 0 and _fits(e, node, REDUCE, True) and assign(e, node, REDUCE, on_map_slots=True, only=pool):  # (P3)
        return True
    if _may_lend(e, node, MAP, most_reduce) and assign(e, node, MAP, on_map_slots=False, only=pool):  # (3)
        return True
    return _may_lend(e, node, REDUCE, most_map) and assign(e, node, REDUCE, on_map_slots=True, only=pool)  # (4)


def _ignoring_locality(e: Running, node: Node, most_reduce: int) -> bool:
    """Start a map at any distance from its block (case 5), so that no slot stays idle because of locality."""
    for on_map_slots in (True, False):
        if on_map_slots and not _fits(e, node, MAP, True):
            continue
        if not on_map_slots and not _may_lend(e, node, MAP, most_reduce):
            continue
        for pool in pools_in_order(e, None):
            for job in jobs_of(e, pool, MAP):
                found = job.take_map(node, ANY)
                if found is not None:
                    e.launch(job, True, found[0], node, on_map_slots=on_map_slots, locality=found[1])
                    return True
    return False


# --- YARN -------------------------------------------------------------------------------------------------------------


def _containers(e: Running, node: Node) -> None:
    """Fill containers, which have no kind: first the pool that holds least, then its job that holds least.

    Within a job reduces come before maps, as in MapReduce's application master.
    """
    while True:
        room = node.map_units + node.reduce_units - sum(node.used)
        if room < min(e.weight) or not any(_container(e, node, job, room) for job in jobs_in_order(e, None)):
            return


def _container(e: Running, node: Node, job: Job, room: int) -> bool:
    if e.cluster.masters and job.master is None:
        # Masters may use at most half of the cluster (queueMaxAMShareDefault), otherwise they could fill it.
        if e.weight[MAP] > room or 2 * (e.masters + 1) * e.weight[MAP] > sum(e.capacity):
            return False
        e.launch_master(job, node)
        return True
    more_maps = not e.rules.map_limit or job.running[MAP] < e.rules.map_limit
    more_reduces = not e.rules.reduce_limit or job.running[REDUCE] < e.rules.reduce_limit
    if more_reduces and job.reduces_waiting and e.weight[REDUCE] <= room and _ramped_up(e, job):
        task = e.take_reduce(job)
        if task is not None:
            e.launch(job, False, task, node, on_map_slots=_fits(e, node, REDUCE, True))
            return True
    if more_maps and e.weight[MAP] <= room and _map(e, node, job, _fits(e, node, MAP, True)):
        return True
    return more_reduces and e.weight[REDUCE] <= room and _copy(e, node, job, REDUCE, _fits(e, node, REDUCE, True))


def _ramped_up(e: Running, job: Job) -> bool:
    """Return whether a job may start one more reduce under MRAppMaster's ramp-up.

    While maps wait, reduces take at most the fraction of the maps that has ended, and at most ``ramp_up``.
    """
    if not job.maps_waiting:
        return True
    part = min(e.rules.ramp_up, job.maps_done / job.maps if job.maps else 1.0)
    return job.running[REDUCE] + 1 <= part * (job.running[MAP] + job.running[REDUCE] + 1)


# --- pools and jobs ---------------------------------------------------------------------------------------------------


def assign(e: Running, node: Node, kind: int, *, on_map_slots: bool, only: Pool | None = None) -> bool:
    """Start one task of the kind, from the first job in order that has one for the node.

    Return whether one was found.
    """
    for pool in (only,) if only is not None else pools_in_order(e, kind):
        for job in jobs_of(e, pool, kind):
            if kind == MAP:
                if _map(e, node, job, on_map_slots):
                    return True
                continue
            task = e.take_reduce(job)
            if task is not None:
                e.launch(job, False, task, node, on_map_slots=on_map_slots)
                return True
            if _copy(e, node, job, REDUCE, on_map_slots):
                return True
    return False


def _map(e: Running, node: Node, job: Job, on_map_slots: bool) -> bool:
    """Start a map of the job within the distance that delay scheduling allows, or a copy if no map waits."""
    if job.maps_waiting:
        found = job.take_map(node, _level(e, job))
        if found is None:
            e.visited.add(job.index)  # skipped because of locality
            return False
        task, locality = found
        e.launch(job, True, task, node, on_map_slots=on_map_slots, locality=locality)
        job.waited_ms = 0
        job.last_level = locality
        return True
    return _copy(e, node, job, MAP, on_map_slots)


def _level(e: Running, job: Job) -> int:
    """Return how far the job's next map may be from its block under delay scheduling.

    This is FairScheduler.getAllowedLocalityLevel of Hadoop 1.2.1.
    """
    delay = e.cluster.locality_delay_ms
    if not e.rules.delay_scheduling or delay == 0 or e.rules.fifo:
        return ANY
    if job.last_level == NODE:
        return ANY if job.waited_ms >= 2 * delay else RACK if job.waited_ms >= delay else NODE
    if job.last_level == RACK:
        return ANY if job.waited_ms >= delay else RACK
    return ANY


def _copy(e: Running, node: Node, job: Job, kind: int, on_map_slots: bool) -> bool:
    """Start a copy of one of the job's tasks on the node if LATE and SEPB allow it; return whether one was started."""
    task = copy_for(e, node, job, kind)
    if task is None:
        return False
    locality = job.locality(task, node) if kind == MAP else NODE
    e.launch(job, kind == MAP, task, node, on_map_slots=on_map_slots, locality=locality, speculative=True)
    return True
