"""Read what the master of a MapReduce job logs of its decisions, and what a ResourceManager logs of its containers.

The lines are those of Hadoop 3's RMContainerAllocator, RMContainerRequestor and RMContainerImpl at INFO.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import NamedTuple

from harness.base.errors import InputError

_TIME = re.compile(r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}) ")
_STATE = re.compile(
    r"(?:Before|After) Scheduling: PendingReds:(\d+) ScheduledMaps:(\d+) ScheduledReds:(\d+) AssignedMaps:(\d+) "
    r"AssignedReds:(\d+) CompletedMaps:(\d+) CompletedReds:(\d+)"
)
_SIZE = r"<memory:(-?\d+), vCores:(-?\d+)[^>]*>"
_ROOM = re.compile(rf"Recalculating schedule, headroom={_SIZE}")
_SHARE = re.compile(rf"completedMapPercent (\S+) totalResourceLimit:{_SIZE}")
_UP = re.compile(r"(?:Ramping up|All maps assigned\. Ramping up all remaining reduces:) ?(\d+)")
_DOWN = re.compile(r"Ramping down (\d+)")
_LIMIT = re.compile(rf"resourceLimit={_SIZE}")
_PREEMPT = re.compile(r"Going to preempt (\d+)")
_PREEMPTED = re.compile(r"Preempting (attempt_\d+_\d+_r_\d+_\d+)")
#: A master that does not log when it sends a heartbeat has the answer so much later at most.
ANSWER_MS = 50
#: Lines that are nearer to each other are of the same heartbeat (a master has one a second).
_SAME_BEAT_MS = 500
_ASSIGNED = re.compile(r"Assigned container (container_\w+) to attempt_\d+_\d+_([mr])_(\d+)_\d+")
_CONTAINER = re.compile(r"(container_\w+) Container Transitioned from (\w+) to (\w+)")
_GONE = ("COMPLETED", "KILLED", "RELEASED", "EXPIRED")


class State(NamedTuple):
    """A master's numbers of tasks at one moment: ``pending`` reduces are not asked for, ``asked`` ones wait."""

    at_ms: int
    pending: int
    maps_asked: int
    reduces_asked: int
    maps_held: int
    reduces_held: int
    maps_done: int
    reduces_done: int


@dataclass(frozen=True)
class Decision:
    """One decision about reduces.

    Parameters
    ----------
    at_ms
        When it was made.
    room_mb, room_vcores
        The headroom that the scheduler had reported.
    after
        The master's numbers after it.
    started
        Whether slow start had been reached.
    share
        The fraction of the maps that had ended; None where the decision did not depend on it.
    change
        By how many the reduces that wait for a container became more.
    to_preempt
        How many reduces were to be preempted because no map could run; None: maps were not starved. The master takes
        back all asks for reduces then.
    """

    at_ms: int
    room_mb: int
    room_vcores: int
    after: State
    started: bool = True
    share: float | None = None
    change: int = 0
    to_preempt: int | None = None


@dataclass(frozen=True)
class MasterLog:
    """What one master logged: its states, its decisions, and how many reduces it preempted.

    ``without_room``: the number of decisions whose headroom was not logged, which are not among the decisions. A master
    logs the headroom whenever it considers asking for reduces, but before it preempts some only if it has asked for
    something or got something.
    """

    states: tuple[State, ...]
    decisions: tuple[Decision, ...]
    preempted: int
    without_room: int
    #: Container -> when it was assigned to a task, ms.
    assigned_ms: dict[str, int]


def time_ms(line: str) -> int | None:
    """Return the time of a log line, ms since 1970; None for a line without."""
    found = _TIME.match(line)
    return None if found is None else round(datetime.strptime(found[1], "%Y-%m-%d %H:%M:%S,%f").timestamp() * 1000)


@dataclass
class _Open:
    """A decision whose lines are being read."""

    at_ms: int
    room: tuple[int, int]
    started: bool = True
    share: float | None = None
    change: int = 0
    to_preempt: int | None = None


def read_master_log(lines: Iterable[str]) -> MasterLog:
    """Read a master's log. Raises InputError where it holds no state."""
    states: list[State] = []
    decisions: list[Decision] = []
    assigned: dict[str, int] = {}
    preempted: set[str] = set()
    limit, limit_ms, without_room = (0, 0), 0, 0
    of_beat: _Open | None = None

    def close() -> None:
        nonlocal of_beat
        if of_beat is not None and states:
            it, room = of_beat, of_beat.room
            found = Decision(it.at_ms, *room, states[-1], it.started, it.share, it.change, it.to_preempt)
            decisions.append(found)
            of_beat = None

    for line in lines:
        at = time_ms(line)
        if at is None:
            continue
        if found := _STATE.search(line):
            if "Before" in found[0]:
                close()
            states.append(State(at, *(int(number) for number in found.groups())))
        elif found := _LIMIT.search(line):
            close()
            limit, limit_ms = (int(found[1]), int(found[2])), at
        elif found := _ROOM.search(line):
            close()
            of_beat = _Open(at, (int(found[1]), int(found[2])))
        elif found := _PREEMPT.search(line):
            close()
            if at - limit_ms < _SAME_BEAT_MS:
                of_beat = _Open(at, limit, to_preempt=int(found[1]))
            else:
                without_room += 1
        elif found := _ASSIGNED.search(line):
            close()
            assigned[found[1]] = at
        elif found := _PREEMPTED.search(line):
            preempted.add(found[1])
        elif of_beat is None:
            continue
        elif "slow start threshold not met" in line:
            of_beat.started = False
        elif found := _SHARE.search(line):
            of_beat.share = float(found[1])
        elif found := _UP.search(line):
            of_beat.change = int(found[1])
        elif found := _DOWN.search(line):
            of_beat.change = -int(found[1])
    if not states:
        raise InputError(
            "no line 'After Scheduling'", where="the master's log", hint="log RMContainerAllocator at INFO"
        )
    close()
    return MasterLog(tuple(states), tuple(decisions), len(preempted), without_room, assigned)


class Beat(NamedTuple):
    """One heartbeat of a master whose answer it logged.

    ``sent_ms``, ``at_ms``: times between which the answer was made; ``maps``, ``reduces``: how many it was waiting for
    when it sent the heartbeat; ``room_mb``, ``room_vcores``: the headroom in the answer.
    """

    sent_ms: int
    at_ms: int
    maps: int
    reduces: int
    room_mb: int
    room_vcores: int


def read_beats(lines: Iterable[str]) -> list[Beat]:
    """Return the heartbeats whose headroom a master logged."""
    beats: list[Beat] = []
    waiting, begun_ms = (0, 0), 0
    for line in lines:
        at = time_ms(line)
        if at is None:
            continue
        if found := _STATE.search(line):
            waiting = (int(found[2]), int(found[3]))
            begun_ms = at if "Before" in found[0] else 0
        elif (found := _LIMIT.search(line)) or (
            (found := _ROOM.search(line)) and (not beats or at - beats[-1].at_ms >= _SAME_BEAT_MS)
        ):
            # Where its state has not changed, it does not log when it sends a heartbeat.
            beats.append(Beat(begun_ms or at - ANSWER_MS, at, *waiting, int(found[1]), int(found[2])))
            begun_ms = 0
    return beats


@dataclass(frozen=True)
class Held:
    """When a ResourceManager allocated a container, and when it learned of its end (None: not logged).

    Times are in ms since 1970. ``acquired_ms``: when its master fetched it (None: not logged); ``released``: the master
    gave it back without having used it; ``reserved_ms``: when a node was reserved for it, if one was.
    """

    from_ms: int
    to_ms: int | None = None
    reserved_ms: int | None = None
    acquired_ms: int | None = None
    released: bool = False


def read_containers(lines: Iterable[str]) -> dict[str, Held]:
    """Return when each container was held, by container id, from the lines of a ResourceManager's log."""
    found: dict[str, Held] = {}
    reserved: dict[str, int] = {}
    for line in lines:
        at, match = time_ms(line), _CONTAINER.search(line)
        if at is None or match is None:
            continue
        name = match[1]
        if match[3] == "ALLOCATED":
            found.setdefault(name, Held(at, reserved_ms=reserved.get(name)))
        elif match[3] == "RESERVED":
            reserved.setdefault(name, at)
        elif match[3] == "ACQUIRED" and name in found:
            found[name] = replace(found[name], acquired_ms=at)
        elif match[3] in _GONE and name in found and found[name].to_ms is None:
            found[name] = replace(found[name], to_ms=at, released=match[3] == "RELEASED")
    return found
