"""Record the simulator's calls of the scheduler as a decision script, so that Hadoop's own class can repeat a run.

Compiled code notes each call of a scheduler kernel that had an effect, in order; `Calls` converts the notes to the
events of a decision script (``yarnfair decide``, tests/oracle). Such a script compares not only the scheduler with
Hadoop's, but also the calls that the simulator makes. It includes the heartbeats that the simulator skipped, and
thereby verifies that they change nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from harness.base.errors import InternalError
from harness.model.jobs import JobSpec, NodeSpec
from harness.model.queues import AllocationFile
from harness.sim.kernel import kernel
from harness.sim.world import MAX_STAGES, World

C_JOIN, C_LEAVE, C_UPDATE, C_HEARTBEAT, C_EXIT, C_APP, C_ASK, C_RELEASE, C_END, C_RESTART = range(10)

#: Changes of a node: its capacity changes, or its graceful decommissioning begins.
C_RESIZE, C_DRAIN = 13, 14
#: Input and result of a decision of a MapReduce AM, in three notes. The decision is no call of the scheduler, but it
#: depends on the headroom.
C_MAPS, C_REDUCES, C_DECIDED = range(10, 13)
_DECISION = {
    C_MAPS: ("app", "maps", "completed", "waiting_maps", "held_maps"),
    C_REDUCES: ("pending", "scheduled", "held", "long_waiting", "waiting_too_long"),
    C_DECIDED: ("room_mb", "room_vcores", "cpu", "to_schedule", "to_preempt"),
}


@kernel
def note(W: World, now: int, kind: int, a: int, b: int, c: int, d: int, e: int) -> None:
    """Write one call with its arguments to ``W.calls`` if the run is recorded.

    `harness.sim.loop.run` ensures that there is enough space.
    """
    g = W.g[0]
    if g.record_calls == 0:
        return
    if g.calls_n >= len(W.calls):
        raise InternalError("the simulator's engine has no free record left for what it asks of the scheduler")
    entry = W.calls[g.calls_n]
    g.calls_n += 1
    entry.t, entry.kind, entry.a, entry.b, entry.c, entry.d, entry.e = now, kind, a, b, c, d, e


@kernel
def most_calls(W: World) -> int:
    """Return the largest number of notes that one iteration of `harness.sim.loop.run` may add."""
    g = W.g[0]
    return g.live_runs + len(W.jobs) + g.ring_n * (2 + g.update_ms // g.node_hb_ms) + 2 * MAX_STAGES + 64


class Calls:
    """The recorded calls of one run, and the decision script made from them."""

    def __init__(self, conf: Mapping[str, str], allocations: AllocationFile, nodes: Sequence[NodeSpec]) -> None:
        self.names = [node.name for node in nodes]
        self.events: list[dict[str, Any]] = []
        self.script: dict[str, Any] = {
            "conf": dict(conf),
            "options": {"shares": "none", "resource_types": "conf"},
            "allocations": _text(allocations),
            "nodes": [{"name": n.name, "rack": n.rack, "memory_mb": n.memory_mb, "vcores": n.vcores} for n in nodes],
            "events": self.events,
        }
        #: Input and result of each decision of a MapReduce AM; ``at``: the index of the event that follows.
        self.masters: list[dict[str, int]] = []
        self._jobs: dict[int, JobSpec] = {}

    def add_job(self, row: int, job: JobSpec) -> None:
        """Store a job that was read, for the event of its submission."""
        self._jobs[row] = job

    def reload(self, now_ms: int, allocations: AllocationFile) -> None:
        """Record that an allocation file takes effect. The caller has taken all earlier notes."""
        self.events.append({"t": now_ms, "reload": _text(allocations)})

    def take(self, world: World) -> None:
        """Move the notes from the world into this object."""
        g = world.g
        for entry in world.calls[: int(g["calls_n"][0])].tolist():
            names = _DECISION.get(entry[1])
            if names is None:
                self.events.append({"t": entry[0], **self._event(*entry[1:])})
                continue
            if entry[1] == C_MAPS:
                self.masters.append({"t": entry[0], "at": len(self.events)})
            self.masters[-1].update(zip(names, entry[2:], strict=True))
        g["calls_n"] = 0

    def room(self, world: World) -> World:
        """Return the world with enough space for the notes that `most_calls` allows."""
        size = len(world.calls)
        while size < 2 * int(most_calls(world)):
            size *= 2
        return world if size == len(world.calls) else world._replace(calls=np.zeros(size, world.calls.dtype))

    def _event(self, kind: int, a: int, b: int, c: int, d: int, e: int) -> dict[str, Any]:
        if kind == C_HEARTBEAT:
            return {"heartbeat": self.names[a]}
        if kind == C_UPDATE:
            return {"update": True}
        if kind == C_EXIT:
            return {"finish": {"app": f"app{a}", "n": b}}
        if kind == C_ASK:
            return {"ask": f"app{a}", "priority": b, "count": c, "memory_mb": d, "vcores": e}
        if kind == C_APP:
            job = self._jobs[b]
            event: dict[str, Any] = {"app": f"app{a}", "id": a, "queue": job.queue, "user": job.user}
            if job.am != type(job.am)():
                event["am"] = {"memory_mb": job.am.memory_mb, "vcores": job.am.vcores}
            return event
        if kind == C_RELEASE:
            return {"release": {"app": f"app{a}", "n": b}}
        if kind == C_END:
            return {"end": f"app{a}"}
        if kind == C_RESTART:
            return {"restart": f"app{a}"}
        if kind == C_RESIZE:
            return {"resize": self.names[a], "memory_mb": b, "vcores": c}
        if kind == C_DRAIN:
            return {"decommission": self.names[a]}
        return {("node" if kind == C_JOIN else "lost"): self.names[a]}


def _text(allocations: AllocationFile) -> str:
    """Return the allocation file as XML, including root's settings, which a file built from values may lack."""
    from harness.yarn.fair.parse import parse_allocations
    from harness.yarn.fair.render import render_allocations

    if "root" not in allocations.settings:
        root = parse_allocations("<allocations><queue name='root'/></allocations>").settings
        allocations = replace(allocations, settings={**root, **allocations.settings})
    return render_allocations(allocations)
