"""What MapReduce's master decides about reduces: Hadoop 3.4.2's RMContainerAllocator, as plain Python.

The simulator has the same decisions compiled (harness/sim/mapreduce.py says what each number is); a test holds both
against each other. Floats are Java's: 32 bits where Hadoop has ``float``.
"""

import math
import struct

#: What `to_preempt` answers where nothing is to be preempted and reduces are scheduled as usual.
NONE = -1
_INT_MAX = 2**31 - 1


def float32(value):
    """The nearest float of 32 bits."""
    return struct.unpack("f", struct.pack("f", value))[0]


def _quotient(a, b):
    """Java's division of whole numbers, toward zero; without end where the divisor is 0."""
    if b == 0:
        return _INT_MAX
    return a // b if a >= 0 else -(-a // b)


def _up(a, b):
    return 0 if b == 0 else _quotient(a + (b - 1), b)


def containers_in(room, size, cpu):
    """How many containers of a size fit; sizes are (memory, vcores), and ``cpu`` says whether vcores count."""
    count = _quotient(room[0], size[0])
    return min(count, _quotient(room[1], size[1])) if cpu else count


def containers_for(room, size, cpu):
    """How many containers of this size hold at least this amount of memory (and of vcores)."""
    count = _up(room[0], size[0])
    return max(count, _up(room[1], size[1])) if cpu else count


def _sum(*parts):
    """Sizes times counts, added up."""
    return tuple(sum(count * size[at] for count, size in parts) for at in (0, 1))


def reached_slow_start(maps, completed, slow_start):
    """Whether so many maps have ended that the first reduces may be asked for."""
    return completed >= math.ceil(float32(float32(slow_start) * maps))


def schedule_reduces(maps, completed, waiting, scheduled, held_maps, held, map_size, size, pending, room, cpu, rampup):
    """By how many the scheduled reduces change, once slow start has been reached (scheduleReduces)."""
    if pending == 0:
        return 0
    if waiting == 0:
        return pending
    share = float32(completed / maps) if maps else 1.0
    total = _sum((1, room), (held_maps, map_size), (held, size))
    part = min(share, float32(rampup))
    limit = tuple(int(amount * part) for amount in total)
    of_maps = _sum((1, total), (-1, limit))
    wanted = waiting + held_maps
    if containers_in(of_maps, map_size, cpu) >= wanted:
        # What the maps do not need is the reduces'.
        limit = _sum((1, limit), (1, of_maps), (-wanted, map_size))
    more = containers_in(_sum((1, limit), (-(scheduled + held), size)), size, cpu)
    return min(more, pending) if more > 0 else -min(-more, scheduled)


def to_preempt(waiting, held_maps, long_waiting, too_long, scheduled, held, map_size, size, room, cpu, limit):
    """How many reduces that hold containers are killed (preemptReducesIfNeeded); `NONE`: maps are not starved."""
    if held_maps > 0 or waiting <= 0:
        return NONE
    hanging = too_long
    if hanging <= 0:
        if containers_in(_sum((1, room), (-scheduled, size)), map_size, cpu) > 0:
            return NONE
        hanging = long_waiting
        if hanging <= 0:
            return NONE
    total, part = _sum((1, room), (held, size)), float32(limit)
    for_one = containers_for(map_size, size, cpu)
    by_limit = containers_for(tuple(int(amount * part) for amount in total), size, cpu)
    for_all = containers_for(_sum((hanging, map_size)), size, cpu)
    return min(max(for_one, by_limit), for_all)
