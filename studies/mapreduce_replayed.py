"""The headroom of MapReduce's masters, computed again from what a real ResourceManager did.

A simulated job and the real one differ in time, and so in which containers are held when a headroom is told. This
comparison removes that difference: the simulator's scheduler gets the same requests at the same time, and its nodes
send their heartbeats when the real ResourceManager allocated containers or learned of their ends. It has to give the
same containers, and to tell the same headrooms. `studies.mapreduce_master` puts the result in its record.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from harness.sim.decide import decider
from studies.allocator_log import Beat, Held, read_beats
from studies.mapreduce_real import ALLOCATIONS, AM_MB, CAPACITIES, NODE_MB, NODE_VCORES, NODES, TASK_MB
from studies.mapreduce_runs import CONF, Ran

#: A node that reports the end of a container gets the next container in the same heartbeat, so much later at most.
_SAME_HEARTBEAT_MS = 30
#: A node reports ends in the same heartbeat that the ResourceManager logs within this time.
_SAME_ENDS_MS = 10
_SLOTS = NODE_MB // TASK_MB
_AM_STARTED = '{"type":"AM_STARTED"'
_MAP, _REDUCE = 20, 10


@dataclass(frozen=True)
class Replayed:
    """How many containers a scheduler allocated, and those that the replay has at the same time on the same node;
    how many headrooms it told, and those that are the same in the replay.
    """

    containers: int
    same_containers: int
    headrooms: int
    same_headrooms: int


class _Event(NamedTuple):
    at_ms: int
    #: Of events at the same time: nodes, submissions, ends, heartbeats of nodes, heartbeats of masters.
    order: int
    what: dict[str, Any]


class _Told(NamedTuple):
    """A headroom, and the times between which it was computed."""

    app: str
    beat: Beat
    from_ms: int
    to_ms: int


def master_node(history: Iterable[str]) -> str:
    """Return the node of a job's first master, as its history names nodes: by its web address."""
    line = next(line for line in history if line.startswith(_AM_STARTED))
    (event,) = json.loads(line)["event"].values()
    return f"{event['nodeManagerHost']}:{event['nodeManagerHttpPort']}"


def _number(container: str) -> int:
    return int(container.rpartition("_")[2])


def _of_containers(jobs: Sequence[Ran], masters: Sequence[str], zero_ms: int) -> tuple[list[_Event], list[list[Any]]]:
    """Return the events of containers, and each allocation: time, application, number, node."""
    addresses = {one.container: one.node for ran in jobs for one in ran.attempts}
    for ran, node in zip(jobs, masters, strict=True):
        addresses[min(ran.held, key=_number)] = node
    names = {address: f"n{at}" for at, address in enumerate(sorted(set(addresses.values())))}
    moves: list[tuple[int, bool, int, str, Held]] = []
    for at, ran in enumerate(jobs):
        for name, held in ran.held.items():
            moves.append((held.from_ms - zero_ms, True, at, name, held))
            if held.to_ms is not None:
                moves.append((held.to_ms - zero_ms, False, at, name, held))
    free = dict.fromkeys((f"n{at}" for at in range(NODES)), _SLOTS)
    places: dict[str, str] = {}
    # Node -> its last heartbeat in which containers ended, as an index of the events, until it gets another container.
    ended: dict[str, int] = {}
    events: list[_Event] = []
    allocated: list[list[Any]] = []
    numbers: dict[str, int] = {}
    for at_ms, begins, at, name, held in sorted(moves, key=lambda move: (move[0], move[1], _number(move[3]))):
        if begins:
            # Scripts number an application's containers as they are allocated; a reservation takes an id before.
            numbers[name] = 1 + sum(app == f"job{at}" for _, app, _, _ in allocated)
        which = {"app": f"job{at}", "n": numbers[name]}
        if begins:
            # A container that was given back at once ran nothing, and no history names its node.
            node = names.get(addresses.get(name, ""), max(free, key=lambda one: free[one]))
            places[name] = node
            free[node] -= 1
            if held.reserved_ms is not None:
                events.append(_Event(held.reserved_ms - zero_ms, 3, {"heartbeat": node}))
            last = ended.pop(node, None)
            if last is None or at_ms - events[last].at_ms > _SAME_HEARTBEAT_MS:
                events.append(_Event(at_ms, 3, {"heartbeat": node}))
            allocated.append([at_ms, which["app"], which["n"], node])
            continue
        node = places[name]
        free[node] += 1
        if held.released:
            events.append(_Event(at_ms, 2, {"release": which}))
            continue
        events.append(_Event(at_ms, 2, {"finish": which}))
        heartbeat = _Event(at_ms, 3, {"heartbeat": node})
        last = ended.get(node)
        if last is not None and at_ms - events[last].at_ms <= _SAME_ENDS_MS:
            events[last] = heartbeat
        else:
            ended[node] = len(events)
            events.append(heartbeat)
    return events, allocated


def _of_master(ran: Ran, app: str, beats: Sequence[Beat], zero_ms: int) -> tuple[list[_Event], list[_Told]]:
    """Return the heartbeats of a master, which sends a request only if it has changed."""
    events: list[_Event] = []
    told: list[_Told] = []
    sent, before_ms = (0, 0), 0
    fetched = sorted(
        held.acquired_ms for name, held in ran.held.items() if held.acquired_ms and name in ran.log.assigned_ms
    )
    for beat in beats:
        known = [one for one in fetched if before_ms < one <= beat.at_ms]
        from_ms, to_ms = (known[-1], known[-1]) if known else (beat.sent_ms, beat.at_ms)
        before_ms = beat.at_ms
        what: dict[str, Any] = {"pull": app}
        if (beat.maps, beat.reduces) != sent:
            sent = (beat.maps, beat.reduces)
            size = {"memory_mb": TASK_MB, "vcores": 1}
            requests = [{"priority": _MAP, "count": sent[0], **size}, {"priority": _REDUCE, "count": sent[1], **size}]
            what = {"ask": app, "requests": requests}
        events.append(_Event(from_ms - zero_ms, 4, what))
        if to_ms > from_ms:
            events.append(_Event(to_ms - zero_ms, 4, {"pull": app}))
        told.append(_Told(app, beat, from_ms - zero_ms, to_ms - zero_ms))
    return events, told


def replayed(folder: Path, scheduler: str, jobs: Sequence[Ran]) -> Replayed:
    """Replay a run.

    Parameters
    ----------
    folder
        The run's files.
    scheduler
        ``fair`` or ``capacity``.
    jobs
        Its jobs.
    """
    zero_ms = min(ran.submitted_ms for ran in jobs)
    texts = [
        [(folder / f"job{at}" / name).read_text(encoding="utf-8").splitlines() for at in range(len(jobs))]
        for name in ("history.jhist", "master.log")
    ]
    events, allocated = _of_containers(jobs, [master_node(history) for history in texts[0]], zero_ms)
    events += [_Event(0, 0, {"node": f"n{at}"}) for at in range(NODES)]
    told: list[_Told] = []
    for at, ran in enumerate(jobs):
        master = {"memory_mb": AM_MB, "vcores": 1}
        what = {"app": f"job{at}", "queue": ran.told["queue"], "user": "user", "am": master}
        events.append(_Event(ran.submitted_ms - zero_ms, 1, what))
        beats, rooms = _of_master(ran, f"job{at}", read_beats(texts[1][at]), zero_ms)
        events += beats
        told += rooms
    script: dict[str, Any] = {
        "conf": {**CONF, "yarn.scheduler.maximum-allocation-mb": str(NODE_MB)},
        "options": {"shares": "none", "headrooms": "all", "acquire": "manual"},
        "nodes": [{"name": f"n{at}", "memory_mb": NODE_MB, "vcores": NODE_VCORES} for at in range(NODES)],
    }
    if scheduler == "capacity":
        script["capacity"] = CAPACITIES
    else:
        script["allocations"] = ALLOCATIONS
        script["options"]["resource_types"] = "conf"
        events += [_Event(one.at_ms, 5, {"update": True}) for one in events if one.order != 3]
    script["events"] = [
        {"t": event.at_ms, **event.what} for event in sorted(events, key=lambda one: (one.at_ms, one.order))
    ]
    answer = decider(script).run()
    rooms_of = {(one["t"], one["app"]): (one["headroom_mb"], one["headroom_vcores"]) for one in answer["headrooms"]}
    given = {(one["app"], one["n"]): (one["t"], one["node"]) for one in answer["assignments"]}
    return Replayed(
        len(allocated),
        sum(_is_given(given.get((app, number)), at_ms, node) for at_ms, app, number, node in allocated),
        len(told),
        sum(
            (one.beat.room_mb, one.beat.room_vcores)
            in (rooms_of.get((one.from_ms, one.app)), rooms_of.get((one.to_ms, one.app)))
            for one in told
        ),
    )


def _is_given(given: tuple[int, str] | None, at_ms: int, node: str) -> bool:
    return given is not None and given[1] == node and abs(given[0] - at_ms) <= _SAME_HEARTBEAT_MS
