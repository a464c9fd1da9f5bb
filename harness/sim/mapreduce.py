"""Decisions of the MapReduce AM about reduces, compiled: Hadoop 3.4.2's RMContainerAllocator.

`schedule_reduces` and `to_preempt` are its ``scheduleReduces`` and ``preemptReducesIfNeeded`` as functions of numbers;
`headroom` is the headroom that the scheduler reports to an AM. Values are float32 where Hadoop has ``float``.
"""

from __future__ import annotations

import math

from harness.sim import ops
from harness.sim.java import single, to_long
from harness.sim.kernel import kernel
from harness.sim.state import SchedulerState
from harness.sim.world import World

_INT_MAX = 2**31 - 1

#: Result of `to_preempt` if nothing is to be preempted and reduces are scheduled as usual.
NONE = -1


# --- ResourceCalculatorUtils ---


@kernel
def _quotient(a: int, b: int) -> int:
    """Divide integers as Java does, toward zero; return the largest value where the divisor is 0."""
    if b == 0:
        return _INT_MAX
    return a // b if a >= 0 else -(-a // b)


@kernel
def containers_in(mb: int, vcores: int, of_mb: int, of_vcores: int, cpu: int) -> int:
    """Return how many containers of a size fit (computeAvailableContainers); negative if less than nothing is free.

    ``cpu``: whether the scheduler counts vcores (getSchedulingResourceTypes).
    """
    n = _quotient(mb, of_mb)
    return min(n, _quotient(vcores, of_vcores)) if cpu else n


@kernel
def _up(a: int, b: int) -> int:
    return 0 if b == 0 else _quotient(a + (b - 1), b)


@kernel
def containers_for(mb: int, vcores: int, of_mb: int, of_vcores: int, cpu: int) -> int:
    """Return how many containers of a size contain at least this amount (divideAndCeilContainers)."""
    n = _up(mb, of_mb)
    return max(n, _up(vcores, of_vcores)) if cpu else n


# --- RMContainerAllocator ---


@kernel
def reached_slow_start(maps: int, completed: int, slow_start: float) -> bool:
    """Return whether enough maps have ended for the first reduces to be requested."""
    return completed >= math.ceil(single(slow_start) * single(maps))


@kernel
def schedule_reduces(
    maps: int,
    completed: int,
    waiting_maps: int,
    scheduled: int,
    held_maps: int,
    held: int,
    map_mb: int,
    map_vcores: int,
    mb: int,
    vcores: int,
    pending: int,
    room_mb: int,
    room_vcores: int,
    cpu: int,
    rampup_limit: float,
) -> int:
    """Return the change of the number of scheduled reduces, after slow start (RMContainerAllocator.scheduleReduces).

    Parameters
    ----------
    maps, completed
        Number of the job's maps, and of those that have ended.
    waiting_maps, held_maps
        Number of maps that wait for a container, and of maps that have one.
    scheduled, held, pending
        Number of reduces that are requested, that have a container, and that are not requested yet.
    map_mb, map_vcores, mb, vcores
        Resources of a map's and of a reduce's container.
    room_mb, room_vcores
        The headroom.
    cpu
        1 if the scheduler counts vcores, else 0.
    rampup_limit
        ``yarn.app.mapreduce.am.job.reduce.rampup.limit``, a fraction.
    """
    if pending == 0:
        return 0
    if waiting_maps == 0:
        return pending
    share = single(1.0)
    if maps != 0:
        share = single(completed) / single(maps)
    total_mb = room_mb + map_mb * held_maps + mb * held
    total_vcores = room_vcores + map_vcores * held_maps + vcores * held
    part = float(min(share, single(rampup_limit)))
    limit_mb, limit_vcores = to_long(total_mb * part), to_long(total_vcores * part)
    of_maps_mb, of_maps_vcores = total_mb - limit_mb, total_vcores - limit_vcores
    wanted = waiting_maps + held_maps
    if containers_in(of_maps_mb, of_maps_vcores, map_mb, map_vcores, cpu) >= wanted:
        # Reduces get what the maps do not need.
        limit_mb += of_maps_mb - map_mb * wanted
        limit_vcores += of_maps_vcores - map_vcores * wanted
    asked = scheduled + held
    more = containers_in(limit_mb - mb * asked, limit_vcores - vcores * asked, mb, vcores, cpu)
    return min(more, pending) if more > 0 else -min(-more, scheduled)


@kernel
def to_preempt(
    waiting_maps: int,
    held_maps: int,
    long_waiting: int,
    waiting_too_long: int,
    scheduled: int,
    held: int,
    map_mb: int,
    map_vcores: int,
    mb: int,
    vcores: int,
    room_mb: int,
    room_vcores: int,
    cpu: int,
    limit: float,
) -> int:
    """Return how many reduces that hold containers are killed (RMContainerAllocator.preemptReducesIfNeeded).

    Returns `NONE` if maps are not starved. Otherwise all scheduled reduces become pending again, and no reduce is
    scheduled in this heartbeat. The other parameters are those of `schedule_reduces`.

    Parameters
    ----------
    long_waiting, waiting_too_long
        Number of maps that have waited for ``mapreduce.job.reducer.preempt.delay.sec``, and for
        ``mapreduce.job.reducer.unconditional-preempt.delay.sec``.
    limit
        ``yarn.app.mapreduce.am.job.reduce.preemption.limit``, a fraction.
    """
    if held_maps > 0 or waiting_maps <= 0:
        return NONE
    hanging = waiting_too_long
    if hanging <= 0:
        left_mb, left_vcores = room_mb - mb * scheduled, room_vcores - vcores * scheduled
        if containers_in(left_mb, left_vcores, map_mb, map_vcores, cpu) > 0:
            return NONE
        hanging = long_waiting
        if hanging <= 0:
            return NONE
    total_mb, total_vcores = room_mb + mb * held, room_vcores + vcores * held
    part = float(single(limit))
    for_one = containers_for(map_mb, map_vcores, mb, vcores, cpu)
    by_limit = containers_for(to_long(total_mb * part), to_long(total_vcores * part), mb, vcores, cpu)
    for_all = containers_for(map_mb * hanging, map_vcores * hanging, mb, vcores, cpu)
    return min(max(for_one, by_limit), for_all)


# --- headroom of an AM


@kernel
def headroom(S: SchedulerState, W: World, j: int) -> tuple[int, int, int]:
    """Return the headroom of a job's AM (MB, vcores), and whether the scheduler counts vcores (1 or 0).

    The headroom is 0 if `W.g.no_headroom` is 1, as with Hadoop 2.2's Fair Scheduler (YARN-1959).
    """
    mb, vcores, cpu = ops.headroom(S, W.jobs[j].app)
    if W.g[0].no_headroom == 1:
        return 0, 0, cpu
    return mb, vcores, cpu
