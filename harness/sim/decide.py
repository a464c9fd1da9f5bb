"""Decision scripts: a sequence of events of nodes and applications, and the scheduler's decisions after each of them.

A script and its answer have the format of tests/oracle, which drives Hadoop's own classes with the same script. Only
the oracle's base events exist here: ends that the oracle can derive from durations must be explicit events. Events of a
single scheduler are in its package (`harness.sim.fair.decide` and the others).
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from harness.base.errors import InputError
from harness.model.queues import JAVA_INT_MAX
from harness.sim import nodes
from harness.sim import state as st
from harness.sim.containers import container_exit
from harness.sim.interfaces import ScriptDecider, simulated
from harness.sim.pools import DriverOptions
from harness.sim.schedulers import SCHEDULERS
from harness.sim.script import Event, option, whole
from harness.sim.state import ASSIGNED, COMPLETED, RESERVED, UNRESERVED

_WHY = {
    st.FINISHED: "finished",
    st.RELEASED: "released",
    st.PREEMPTED: "preempted",
    st.LOST: "lost",
    st.APP_END: "app_end",
}


@dataclass(frozen=True, slots=True)
class _Node:
    name: str
    rack: str
    memory_mb: int
    vcores: int


@dataclass(slots=True)
class App:
    """An application of a script: its name, slot in the state (-1: not accepted), and AM container (MiB, vcores)."""

    name: str
    slot: int
    managed: bool
    am: tuple[int, int] | None
    dead: bool = False


class Decider(ABC):
    """Runs a script on one scheduler's engine. The function `decider` chooses the class for a script.

    Parameters
    ----------
    script : Any
        The parsed JSON document.
    mutations : int
        Features of the engine to switch off (MUT_* of the scheduler's state), for tests that must fail then.

    Raises
    ------
    InputError
        The script is not valid.
    """

    #: `lists`: names of the lists in the answer. `kinds`: the known events in the oracle's order.
    lists: ClassVar[tuple[str, ...]]
    kinds: ClassVar[tuple[str, ...]]
    #: `refusal`: message if a leaf refuses an application. `counts_in_use`: whether an application that is refused
    #: because its name is in use still takes an ID.
    refusal: ClassVar[str]
    counts_in_use: ClassVar[bool]

    def __init__(self, script: Any, *, mutations: int = 0) -> None:
        if not isinstance(script, dict):
            raise InputError("the script is not a JSON object", hint='write {"conf": ..., "events": [...]}')
        self.script = script
        options = self._object("options")
        self.conf = self._object("conf")
        self.record_shares = option(options, "shares", ("all", "queues", "none"))
        #: Whether the answer has the headroom that each AM is told by its own heartbeat, as the list ``headrooms``.
        self.record_headrooms = option(options, "headrooms", ("none", "all")) == "all"
        self.nodes = list(self._nodes())
        self.sched: Any = self._scheduler(
            options,
            DriverOptions(
                cluster_timestamp=whole(options, "cluster_timestamp", 0),
                node_port=whole(options, "node_port", 45454),
                launch=option(options, "launch", ("next_heartbeat", "never")) == "next_heartbeat",
                manual_acquire=option(options, "acquire", ("auto", "manual")) == "manual",
                cleanup_heartbeats=whole(options, "cleanup_heartbeats", 1),
                max_by_nodes=option(options, "max_allocation", ("nodes", "configured")) == "nodes",
                mutations=mutations,
            ),
        )
        more_lists = ("headrooms",) if self.record_headrooms else ()
        self.out: dict[str, list[dict[str, Any]]] = {name: [] for name in (*self.lists, *more_lists)}
        self.apps: dict[str, App] = {}
        self.by_id: dict[int, str] = {}
        self.containers: dict[tuple[int, int], tuple[int, int]] = {}  # (app id, n) -> slot, serial
        self.reserved: dict[int, dict[str, Any]] = {}  # node -> its reservation after the last event
        self.now = 0
        self.n_events = 0

    @abstractmethod
    def _scheduler(self, options: dict[str, Any], driven: DriverOptions) -> Any:
        """Create the script's scheduler."""

    # ---- reading the script

    def _object(self, key: str) -> dict[str, Any]:
        value = self.script.get(key, {})
        if not isinstance(value, dict):
            raise InputError(f"{key!r} is not an object", hint=f'write "{key}": {{...}}')
        return value

    def _list(self, key: str) -> list[Any]:
        value = self.script.get(key, [])
        if not isinstance(value, list):
            raise InputError(f"{key!r} is not a list", hint=f'write "{key}": [...]')
        return value

    def _nodes(self) -> Iterator[_Node]:
        seen = set()
        for index, raw in enumerate(self._list("nodes")):
            where = f"node {index}"
            name = raw.get("name") if isinstance(raw, dict) else None
            if not isinstance(name, str) or name in seen:
                raise InputError("has no name of its own", where=where, hint='write {"name": ..., "memory_mb": ...}')
            seen.add(name)
            sizes = [raw.get("memory_mb"), raw.get("vcores")]
            if not all(isinstance(x, int) and not isinstance(x, bool) and 0 <= x <= 2**31 - 1 for x in sizes):
                raise InputError("memory_mb or vcores is not a number", where=where, hint="write integers from 0 on")
            yield _Node(name, str(raw.get("rack", "/default-rack")), sizes[0], sizes[1])

    # ---- running it

    def run(self) -> dict[str, Any]:
        """Return all lists of the oracle's answer, and ``meta``."""
        for index, raw in enumerate(self._list("events")):
            event = Event(index, raw)
            if event.t < self.now:
                raise InputError(f"goes back in time, to {event.t}", where=event.where, hint="order events by t")
            self._kills(event.t)
            self.now = event.t
            self._dispatch(event)
            self._after()
            self._kills(event.t)
            self.n_events += 1
        answer: dict[str, Any] = dict(self.out)
        answer["meta"] = {"events": self.n_events, "assignments": len(self.out["assignments"])}
        answer["meta"] |= self._more_meta()
        return answer

    def _more_meta(self) -> dict[str, int]:
        return {}

    def _call(self, kernel: Callable[..., int], *args: Any) -> int:
        """Call a kernel; enlarge the arrays and repeat the call as long as it returns NEED_ROOM."""
        while True:
            answer = kernel(self.sched.S, *args)
            if answer != st.NEED_ROOM:
                return answer
            self.sched.grow()

    def _kills(self, up_to: int) -> None:
        """Carry out the kills that are due up to a time, in schedulers that preempt."""
        return

    def _dispatch(self, event: Event) -> None:
        raw = event.raw
        for kind in self.kinds:
            if kind in raw:
                getattr(self, f"_on_{kind}")(event)
                return
        self._error(event, f"java.lang.IllegalArgumentException: unknown event {json.dumps(raw)}")

    def _record(self, **fields: Any) -> dict[str, Any]:
        return {"t": self.now, **fields}

    def _skip(self, event: dict[str, Any], why: str) -> None:
        self.out["skipped"].append(self._record(why=why, event=event))

    def _error(self, event: Event, text: str) -> None:
        self.out["errors"].append(self._record(error=text, event=event.raw))

    def _after(self) -> None:
        """Convert the engine's log to records of the answer."""
        s = self.sched.S
        count = int(s.g[0]["n_log"])
        touched: dict[int, dict[str, Any] | None] = {}
        for e in s.log[:count]:
            kind = e["kind"]
            name = self.by_id.get(int(e["app_id"]), "")
            if kind == ASSIGNED:
                app_id, n, cid = int(e["app_id"]), int(e["n"]), int(e["cid"])
                self.containers[app_id, n] = (int(e["c"]), int(e["serial"]))
                record = self._record(
                    app=name,
                    n=n,
                    cid=cid,
                    node=self.nodes[e["node"]].name,
                    memory_mb=int(e["mb"]),
                    vcores=int(e["vcores"]),
                    priority=int(e["priority"]),
                )
                record.update(self._more_of(e))
                if e["am"]:
                    record["am"] = True
                if e["from_reservation"]:
                    record["from_reservation"] = True
                self.out["assignments"].append(record)
            elif kind == COMPLETED:
                self.out["completed"].append(
                    self._record(app=name, n=int(e["n"]), node=self.nodes[e["node"]].name, why=_WHY[int(e["why"])])
                )
            elif kind == RESERVED:
                touched[int(e["node"])] = {
                    "app": name,
                    "node": self.nodes[e["node"]].name,
                    "memory_mb": int(e["mb"]),
                    "vcores": int(e["vcores"]),
                    "cid": int(e["cid"]),
                    "serial": int(e["serial"]),
                }
            elif kind == UNRESERVED:
                touched[int(e["node"])] = None
            else:
                self._other(e, name)
        s.g[0]["n_log"] = 0
        for node in sorted(touched):
            before, now = self.reserved.get(node), touched[node]
            if before is now or (before and now and before["serial"] == now["serial"]):
                continue
            for op, reservation in (("unreserve", before), ("reserve", now)):
                if reservation:
                    fields = {key: value for key, value in reservation.items() if key != "serial"}
                    self.out["reserved"].append(self._record(op=op, **fields))
            if now:
                self.reserved[node] = now
            else:
                self.reserved.pop(node, None)

    def _more_of(self, entry: Any) -> dict[str, Any]:
        return {}

    def _other(self, entry: Any, name: str) -> None:
        """Handle a kind of log record that only one scheduler has."""
        raise NotImplementedError

    # ---- events

    def _tell(self, event: Event, key: str, kernel: Callable[..., int], why: str) -> None:
        """Apply an event to the node that it names; `why`: the reason in the answer if that is impossible."""
        slot = self.sched.node_slots.get(event.text(event.raw, key))
        if slot is None or self._call(kernel, slot, self.now) == st.IGNORED:
            self._skip(event.raw, why)

    def _live(self, event: Event, key: str, why: str = "no such app") -> App | None:
        app = self.apps.get(event.text(event.raw, key))
        if app is None or app.dead:
            self._skip(event.raw, why)
            return None
        return app

    def _on_heartbeat(self, event: Event) -> None:
        self._tell(event, "heartbeat", nodes.heartbeat, "node not registered")

    def _on_node(self, event: Event) -> None:
        slot = self.sched.node_slots.get(event.text(event.raw, "node"))
        if slot is not None and not int(self.sched.S.n["alive"][slot]):
            # It registers with its own resources.
            own = self.nodes[slot]
            self.sched.S.n["total_mb"][slot], self.sched.S.n["total_vcores"][slot] = own.memory_mb, own.vcores
        self._tell(event, "node", nodes.add_node, "unknown node or already registered")

    def _on_lost(self, event: Event) -> None:
        self._tell(event, "lost", nodes.remove_node, "node not registered")

    def _on_resize(self, event: Event) -> None:
        mb, vcores = event.amount(event.raw, "memory_mb"), event.amount(event.raw, "vcores")
        slot = self.sched.node_slots.get(event.text(event.raw, "resize"))
        if slot is None or self._call(nodes.resize_node, slot, mb, vcores, self.now) == st.IGNORED:
            self._skip(event.raw, "node not registered")

    def _on_decommission(self, event: Event) -> None:
        slot = self.sched.node_slots.get(event.text(event.raw, "decommission"))
        if slot is None or self._call(nodes.drain_node, slot) == st.IGNORED:
            self._skip(event.raw, "node not registered")

    def _on_app(self, event: Event) -> None:
        raw = event.raw
        name, queue, user = event.text(raw, "app"), event.text(raw, "queue"), event.text(raw, "user", "u")
        managed = "am" in raw or bool(raw.get("managed", False))
        g = self.sched.S.g[0]
        app_id = event.amount(raw, "id") if "id" in raw else int(g["next_app_id"])
        if self.counts_in_use or name not in self.apps:
            # As in the oracles, an explicit id advances the counter even if the application is refused.
            g["next_app_id"] = max(int(g["next_app_id"]) + 1, app_id + 1)
        if name in self.apps:
            self._skip(raw, "name in use")
            return
        am = None
        if "am" in raw:
            inner = event.inner("am")
            am = (event.amount(inner, "memory_mb"), event.amount(inner, "vcores", 1))
        app = self.apps[name] = App(name, -1, managed, am)
        self.by_id[app_id] = name
        leaf = self.sched.leaf_index(queue)
        slot, why = st.REJECTED, f"{queue} is not a leaf queue"
        if leaf is not None:
            mb, vcores = am if am else (-1, -1)
            slot, why = self._submit(event, leaf, user, managed, mb, vcores, app_id), self.refusal.format(queue=queue)
        if slot == st.REJECTED:
            app.dead = True
            self.out["rejected"].append(self._record(app=name, why=why))
            return
        app.slot = slot

    @abstractmethod
    def _submit(self, event: Event, leaf: int, user: str, *application: int) -> int:
        """Submit an application; return its slot, or REJECTED.

        Parameters: AM or not, its MB and vcores (-1: none), its id.
        """

    def _on_ask(self, event: Event) -> None:
        app = self._live(event, "ask", "no such app" if event.raw.get("ask") not in self.apps else "app gone")
        if app is None:
            return
        requests: dict[tuple[int, int], tuple[int, int, int]] = {}
        for raw in event.requests() or [event.raw]:
            if not isinstance(raw, dict):
                raise InputError(
                    "'requests' holds something else than objects", where=event.where, hint="write objects"
                )
            key = (event.integer(raw, "priority", 1), event.integer(raw, "alloc_id", -1))
            size = (event.amount(raw, "memory_mb"), event.amount(raw, "vcores", 1))
            requests[key] = (event.amount(raw, "count", 1), *size)
        if self._refuses(app, list(requests.values())):
            self._error(event, "SchedulerInvalidResoureRequestException: the queue has 0 of a resource asked for")
            return
        for (priority, alloc_id), (count, mb, vcores) in requests.items():
            self._call(nodes.ask, app.slot, priority, alloc_id, count, mb, vcores)
        self._fetch(app)

    def _refuses(self, app: App, requests: list[tuple[int, int, int]]) -> bool:
        """Return whether the AMS refuses an ask (count, mb, vcores) because of the queue."""
        return False

    def _fetch(self, app: App) -> None:
        nodes.pull(self.sched.S, app.slot)
        if self.record_headrooms:
            mb, vcores, _ = self._headroom(app)
            self.out["headrooms"].append(self._record(app=app.name, headroom_mb=int(mb), headroom_vcores=int(vcores)))

    @abstractmethod
    def _headroom(self, app: App) -> tuple[int, int, int]:
        """Return the headroom of an application: MB, vcores, and 1 if vcores count (else 0)."""

    def _container(self, event: Event, key: str) -> tuple[App, int] | None:
        """Return the application and the slot of an event's container; if it does not exist, skip the event."""
        inner = event.inner(key)
        app, n = self.apps.get(event.text(inner, "app")), event.integer(inner, "n")
        app_id = next((i for i, name in self.by_id.items() if app is not None and name == app.name), -1)
        slot, serial = self.containers.get((app_id, n), (-1, -1))
        c = self.sched.S.c[slot]
        finishes = key == "finish"
        if app is None and finishes:
            self._skip(event.raw, "no such app")
        elif app is None or app.slot < 0 or slot < 0 or (app.dead and not finishes):
            self._skip(event.raw, "no such container")
        elif not (c["alive"] and c["serial"] == serial and c["live"]) or (finishes and c["finishing"]):
            self._skip(event.raw, "container already gone")
        elif not c["acquired"]:
            self._skip(event.raw, "container not yet acquired")
        else:
            return app, slot
        return None

    def _on_finish(self, event: Event) -> None:
        if (found := self._container(event, "finish")) is not None:
            self._call(container_exit, found[1])

    def _on_release(self, event: Event) -> None:
        if (found := self._container(event, "release")) is not None:
            self._call(nodes.release, found[1], self.now)
            self._fetch(found[0])

    def _on_pull(self, event: Event) -> None:
        app = self._live(event, "pull")
        if app is not None:
            self._fetch(app)

    def _on_end(self, event: Event) -> None:
        app = self._live(event, "end")
        if app is not None:
            app.dead = True
            self._call(nodes.end_app, app.slot, self.now)

    def _on_restart(self, event: Event) -> None:
        app = self._live(event, "restart")
        if app is not None:
            mb, vcores = app.am if app.am else (-1, -1)
            self._call(nodes.restart_app, app.slot, mb, vcores, self.now)

    # ---- shares

    def _shares(self) -> dict[str, Any]:
        record: dict[str, Any] = self._record(queues=self._queues())
        if self.record_shares == "all":
            live = [app for app in self.apps.values() if not app.dead]
            record["apps"] = {app.name: self._figures(app) for app in live}
        return record

    @abstractmethod
    def _figures(self, app: App) -> dict[str, Any]:
        """Return the values of an application."""

    @abstractmethod
    def _queues(self) -> dict[str, Any]:
        """Return the values of each queue by its path."""


def resources(record: Any, *names: str, **renamed: str) -> dict[str, Any]:
    """Return the fields NAME_mb and NAME_vcores of a record; ``renamed``: name in the answer -> name in the record."""
    found = {}
    for shown, name in [*zip(names, names, strict=True), *renamed.items()]:
        found[f"{shown}_mb"] = int(record[f"{name}_mb"])
        # Resource.getVirtualCores truncates values beyond an int.
        found[f"{shown}_vcores"] = min(max(int(record[f"{name}_vcores"]), -(2**31)), JAVA_INT_MAX)
    return found


def scheduler_of(script: Any) -> str:
    """Return the scheduler of a script: its key ``scheduler``, or else the one to which its other keys belong."""
    if not isinstance(script, dict):
        return "fair"
    named = script.get("scheduler")
    if named is not None:
        return str(named)
    return next((name for name in SCHEDULERS if name != "fair" and simulated(name).script_key in script), "fair")


def decider(script: Any, *, mutations: int = 0) -> ScriptDecider:
    """Return the Decider for a script, whichever scheduler it is for."""
    return simulated(scheduler_of(script)).decide(script, mutations=mutations)
