"""The event heap of the virtual clock, compiled: a binary heap of (time, kind, use, slot), smallest first.

Ties in time go by kind, then by use and slot, so the order never depends on when an event was pushed.
"""

from __future__ import annotations

from harness.base.errors import InternalError
from harness.sim.kernel import kernel
from harness.sim.world import World

#: Kinds of events, in the order in which events of the same instant happen.
(
    E_JOIN,  # a node joins
    E_LEAVE,  # a node leaves
    E_RESIZE,  # a node offers other resources
    E_DRAIN,  # a node's graceful decommissioning begins
    E_ARRIVE,  # a job is submitted
    E_INNER,  # a task inside an executor ends
    E_EXECUTOR,  # an executor begins to take tasks
    E_ACT,  # an AM acts on a response
    E_REDUCE_CHECK,  # an AM checks whether its reduces block its maps
    E_SPECULATE,  # an AM searches for slow tasks
    E_LIFETIME,  # a service ends
    E_BEAT,  # a node's heartbeat because a container has ended
    E_ALLOCATE,  # Spark's dynamic allocation checks its executors
) = range(13)

_USE_BITS = 24
_SLOT_BITS = 32
USE_MASK = (1 << _USE_BITS) - 1
_SLOT_MASK = (1 << _SLOT_BITS) - 1


@kernel
def kind_of(value: int) -> int:
    """Return the kind of an encoded event."""
    return value >> (_USE_BITS + _SLOT_BITS)


@kernel
def use_of(value: int) -> int:
    """Return the use of the slot to which an encoded event belongs (modulo 2**24)."""
    return (value >> _SLOT_BITS) & USE_MASK


@kernel
def slot_of(value: int) -> int:
    """Return the slot of an encoded event."""
    return value & _SLOT_MASK


@kernel
def push(W: World, time: int, kind: int, use: int, slot: int) -> None:
    """Push an event at a time (ms). The caller has ensured that the heap has space.

    ``slot``: the job, container, task or node that the event concerns. ``use``: the value of its ``gen``, by which an
    event of an earlier user of the slot is recognised (E_RESIZE: the index in ``W.sizes``).
    """
    t, v = W.heap_t, W.heap_v
    value = (kind << (_USE_BITS + _SLOT_BITS)) | ((use & USE_MASK) << _SLOT_BITS) | slot
    i = W.g[0].heap_n
    if i >= len(t):
        raise InternalError("the simulator's engine has no free place left in its heap of events")
    W.g[0].heap_n = i + 1
    while i > 0:
        up = (i - 1) >> 1
        if t[up] < time or (t[up] == time and v[up] <= value):
            break
        t[i] = t[up]
        v[i] = v[up]
        i = up
    t[i] = time
    v[i] = value


@kernel
def pop(W: World) -> int:
    """Remove the first event of the non-empty heap; return its packed value.

    Read its time from ``heap_t[0]`` before.
    """
    t, v = W.heap_t, W.heap_v
    first = v[0]
    n = W.g[0].heap_n - 1
    W.g[0].heap_n = n
    time, value = t[n], v[n]
    i = 0
    while True:
        down = 2 * i + 1
        if down >= n:
            break
        right = down + 1
        if right < n and (t[right] < t[down] or (t[right] == t[down] and v[right] < v[down])):
            down = right
        if time < t[down] or (time == t[down] and value <= v[down]):
            break
        t[i] = t[down]
        v[i] = v[down]
        i = down
    t[i] = time
    v[i] = value
    return int(first)
