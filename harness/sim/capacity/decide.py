"""Decision scripts for the Capacity Scheduler, which have the key ``capacity`` instead of ``allocations``.

``capacity`` holds the properties of capacity-scheduler.xml (their prefix may be left out) or its XML. The minimum and
maximum allocation come from ``conf``. The preemption policy runs only at the events ``preempt``, never by itself.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.base.errors import InputError
from harness.sim.capacity import apps as cs_apps
from harness.sim.capacity import preempt, users
from harness.sim.capacity import state as st
from harness.sim.capacity.api import Scheduler
from harness.sim.capacity.conf import properties
from harness.sim.decide import App, Decider, resources
from harness.sim.pools import DriverOptions
from harness.sim.script import Event

_OPS = {st.MARKED: "mark", st.KILLED: "kill", st.RESERVATION_KILLED: "KILL_RESERVED_CONTAINER"}
_STATES = {st.DRAINING: "DRAINING", st.STOPPED: "STOPPED"}


class CapacityDecider(Decider):
    """Runs a script on the Capacity Scheduler's engine."""

    lists = (
        "assignments",
        "shares",
        "activations",
        "preempted",
        "reserved",
        "completed",
        "rejected",
        "skipped",
        "errors",
    )
    kinds = (
        "heartbeat",
        "shares",
        "update",
        "ask",
        "app",
        "node",
        "lost",
        "resize",
        "decommission",
        "finish",
        "release",
        "pull",
        "end",
        "restart",
        "set_priority",
        "reconfigure",
        "preempt",
        "check",
    )

    refusal = "{queue} takes no more applications"
    counts_in_use = False

    def _scheduler(self, options: dict[str, Any], driven: DriverOptions) -> Any:
        found = properties(self.script["capacity"])
        self.settings = {key: value for key, value in found.items() if value is not None}
        self.activated: list[tuple[int, dict[str, Any]]] = []
        return Scheduler(self.conf, self.settings, self.nodes, driven)

    def _queue_of(self, entry: Any) -> str:
        return str(self.sched.queue_paths[int(self.sched.S.a[int(entry["app"])]["q"])])

    def _more_of(self, entry: Any) -> dict[str, Any]:
        return {"queue": self._queue_of(entry)}

    def _other(self, entry: Any, name: str) -> None:
        if entry["kind"] == st.VICTIM:
            who: dict[str, Any] = {"cid": int(entry["cid"])}
            if entry["c"] >= 0:
                who = {"app": name, "n": int(entry["n"]), "node": self.nodes[entry["node"]].name}
            self.out["preempted"].append(self._record(op=_OPS[int(entry["why"])], **who))
            return
        record = self._record(
            app=name,
            attempt=int(entry["attempt"]),
            queue=self._queue_of(entry),
            am_mb=int(entry["mb"]),
            am_vcores=int(entry["vcores"]),
        )
        self.activated.append((int(entry["app_id"]), record))

    def _after(self) -> None:
        super()._after()
        self.out["activations"] += [record for _, record in sorted(self.activated, key=lambda pair: pair[0])]
        self.activated.clear()

    # ---- events

    def _submit(self, event: Event, leaf: int, user: str, *application: int) -> int:
        uq, priority = self.sched.user_slot(leaf, user), event.integer(event.raw, "priority", 0)
        return self._call(cs_apps.add_app, uq, priority, *application, self.now)

    def _on_set_priority(self, event: Event) -> None:
        inner = event.inner("set_priority")
        app = self.apps.get(event.text(inner, "app"))
        if app is None or app.dead:
            self._skip(event.raw, "no such app")
            return
        cs_apps.set_priority(self.sched.S, app.slot, event.integer(inner, "value"))

    def _on_reconfigure(self, event: Event) -> None:
        change = properties(event.raw["reconfigure"])
        settings = dict(self.settings) if isinstance(event.raw["reconfigure"], dict) else {}
        for key, value in change.items():
            if value is None:
                settings.pop(key, None)
            else:
                settings[key] = value
        try:
            self.sched.reconfigure(settings, self.now)
            self.settings = settings
        except InputError as error:
            self._error(event, error.line())
        finally:
            self._on_shares(event)

    def _on_lost(self, event: Event) -> None:
        skipped = len(self.out["skipped"])
        super()._on_lost(event)
        if len(self.out["skipped"]) == skipped:
            self._on_shares(event)

    def _on_preempt(self, event: Event) -> None:
        self.sched.ready_to_preempt()
        if self._call(preempt.edit, self.now) == st.FAILED:
            self._error(event, "YarnRuntimeException: This shouldn't happen, cannot find TempQueuePerPartition")

    def _on_check(self, event: Event) -> None:
        # Hadoop overbooks a node if an ask was resized while a node was reserved for it.
        below = np.flatnonzero((self.sched.S.n["alive"] == 1) & (self.sched.S.n["avail_mb"] < 0))
        if len(below):
            self._error(event, f"{self.sched.node_names[below[0]]} has less than nothing left")

    def _on_update(self, event: Event) -> None:
        self._on_shares(event)

    # ---- shares

    def _on_shares(self, event: Event) -> None:
        if self.record_shares != "none":
            self.out["shares"].append(self._shares())

    def _headroom(self, app: App) -> tuple[int, int, int]:
        """Return the headroom of an application: MB, vcores, and 1 if vcores count (else 0)."""
        return users.headroom(self.sched.S, app.slot)

    def _figures(self, app: App) -> dict[str, Any]:
        a = self.sched.S.a[app.slot]
        return {
            **resources(a, "used", "reserved", "pending"),
            "active": bool(a["active"] and not a["waiting"] and a["runnable"]),
            "priority": int(a["priority"]),
        }

    def _queues(self) -> dict[str, Any]:
        queues: dict[str, Any] = {}
        self._queue_shares("root", queues)
        return queues

    def _queue_shares(self, path: str, queues: dict[str, Any]) -> None:
        s, slot = self.sched.S, self.sched.queue_slots[path]
        q = s.q[slot]
        entry: dict[str, Any] = {}
        for key, name in (
            ("capacity", "cap"),
            ("abs", "abs"),
            ("max", "max"),
            ("abs_max", "abs_max"),
            ("used", "used_cap"),
            ("abs_used", "abs_used"),
        ):
            entry[key] = _shortest(q[name])
        if q["weight"] != -1:
            entry["weight"], entry["norm_weight"] = _shortest(q["weight"]), _shortest(q["norm"])
        entry |= resources(q, eff="eff", eff_max="effmax", used="used", reserved="reserved", pending="pending")
        if q["state"] != st.RUNNING:
            entry["state"] = _STATES[int(q["state"])]
        queues[path] = entry
        if not q["leaf"]:
            entry["children"] = [child.rpartition(".")[2] for child in self.sched.children[path]]
            for child in sorted(self.sched.children[path], key=lambda name: name.encode("utf-16-be")):
                self._queue_shares(child, queues)
            return
        entry |= resources(q, "am_limit", am_used="am", user_am_limit="am_limit")
        entry["max_apps"], entry["max_apps_per_user"] = int(q["max_apps"]), int(q["max_user_apps"])
        entry["active"], entry["pending_apps"] = int(q["n_active"]), int(q["n_waiting"])
        entry["users"] = {}
        limit = users.limit_now(s, slot)
        known = {}
        at = int(q["user_head"])
        while at >= 0:
            known[self.sched.user_names[at]] = s.u[at]
            at = int(s.u[at]["next"])
        for name in sorted(known):
            u = known[name]
            figures: dict[str, Any] = {"active": bool(u["on"] == 1), **resources(u, "used", am_used="am")}
            figures["limit_mb"], figures["limit_vcores"] = limit
            figures["active_apps"], figures["pending_apps"] = int(u["act"]), int(u["pend"])
            entry["users"][name] = figures


def _shortest(value: Any) -> float | str:
    """Return the shortest decimal that restores a float32, as Java writes it; NaN and infinities by name."""
    if np.isfinite(value):
        return float(str(value))
    return "NaN" if np.isnan(value) else "Infinity" if value > 0 else "-Infinity"
