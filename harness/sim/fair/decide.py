"""Decision scripts for the Fair Scheduler.

The scheduler takes the minimum and maximum allocation from Hadoop's resource types, which are read once from
configuration *files*. The oracle has no such files, so ``yarn.scheduler.minimum-allocation-*`` and
``maximum-allocation-*`` in a script's ``conf`` have no effect in the oracle or here: the values are 1024 MB and 1
vcore, 8192 MB and 4 vcores. With the option ``"resource_types": "conf"`` the properties take effect, as in an RM whose
yarn-site.xml has them.
"""

from __future__ import annotations

from typing import Any

from harness.base.errors import InputError
from harness.sim.decide import App, Decider, resources
from harness.sim.fair import apps as fs_apps
from harness.sim.fair import limits as fs_limits
from harness.sim.fair import preempt as fs_preempt
from harness.sim.fair import shares as fs_shares
from harness.sim.fair.api import Scheduler
from harness.sim.pools import DriverOptions
from harness.sim.script import Event, option
from harness.yarn.fair.parse import parse_allocations


class FairDecider(Decider):
    """Runs a script on the Fair Scheduler's engine."""

    lists = ("assignments", "shares", "preempted", "reserved", "completed", "rejected", "skipped", "errors")
    kinds = (
        "update",
        "heartbeat",
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
        "reload",
        "check",
    )
    refusal = "Cannot submit application to queue {queue} because it has zero amount of resource for the AM"
    counts_in_use = True

    def _scheduler(self, options: dict[str, Any], driven: DriverOptions) -> Any:
        return Scheduler(
            self.conf,
            self._allocations(self.script.get("allocations", "<allocations/>")),
            self.nodes,
            sizes_from_conf=option(options, "resource_types", ("files", "conf")) == "conf",
            hadoop=option(options, "hadoop", ("present", "2.2")),
            driven=driven,
        )

    def _allocations(self, xml: Any, where: str = "allocations") -> Any:
        if not isinstance(xml, str):
            raise InputError(f"{where!r} is not a text", hint="write the allocation file's XML as a text")
        text = xml.strip()
        return parse_allocations(text, conf=self.conf, source=where)

    def _more_meta(self) -> dict[str, int]:
        g = self.sched.S.g[0]
        if not g["preemption"]:
            return {}
        return {"warn_ms": int(g["warn_ms"]), "next_starvation_check_ms": int(g["starve_delay_ms"])}

    def _kills(self, up_to: int) -> None:
        while True:
            due = int(fs_preempt.next_kill_ms(self.sched.S))
            if due > up_to:
                return
            self.now = max(self.now, due)
            self._call(fs_preempt.run_kills, due)
            self._after()

    def _other(self, entry: Any, name: str) -> None:
        starved = self.by_id[int(self.sched.S.a[entry["for_app"]]["id"])]
        node = self.nodes[entry["node"]].name
        self.out["preempted"].append(
            self._record(app=name, n=int(entry["n"]), node=node, **{"for": starved}, kill_at=int(entry["kill_ms"]))
        )

    # ---- events

    def _on_update(self, event: Event) -> None:
        self._call(fs_shares.update, self.now)
        if self.record_shares != "none":
            self.out["shares"].append(self._shares())
        self._call(fs_preempt.preempt_pass, self.now)

    def _submit(self, event: Event, leaf: int, user: str, *application: int) -> int:
        """Submit an application; return its slot, or REJECTED.

        Parameters: AM or not, its MB and vcores (-1: none), its id.
        """
        return self._call(fs_apps.add_app, leaf, self.sched.user_slot(leaf, user), *application, self.now)

    def _refuses(self, app: App, requests: list[tuple[int, int, int]]) -> bool:
        q = self.sched.S.q[self.sched.S.a[app.slot]["q"]]
        return any((q["max_mb"] == 0 and mb > 0) or (q["max_vcores"] == 0 and vc > 0) for _, mb, vc in requests)

    def _on_reload(self, event: Event) -> None:
        try:
            allocations = self._allocations(event.raw["reload"], f"{event.where}: reload")
        except InputError as error:
            self._error(event, error.line())
            return
        self.sched.reload(allocations)

    def _on_check(self, event: Event) -> None:
        self.sched.check()

    # ---- shares

    def _headroom(self, app: App) -> tuple[int, int, int]:
        """Return the headroom of an application: MB, vcores, and 1 if vcores count (else 0)."""
        return fs_limits.headroom(self.sched.S, app.slot)

    def _figures(self, app: App) -> dict[str, Any]:
        a = self.sched.S.a[app.slot]
        return {**resources(a, "fair", "usage", "demand"), "runnable": bool(a["runnable"])}

    def _queues(self) -> dict[str, Any]:
        """Return the values of each queue by its path."""
        s = self.sched.S
        queues: dict[str, Any] = {}
        slots = sorted(int(slot) for slot in s.order)
        paths = self.sched.queue_paths
        # Depth first, siblings by name: the order of the full names' parts.
        for slot in sorted(slots, key=lambda slot: [part.encode("utf-16-be") for part in paths[slot].split(".")]):
            q = s.q[slot]
            entry: dict[str, Any] = resources(q, "fair", "steady", "usage", "demand")
            if q["leaf"]:
                entry |= resources(q, "am")
                entry["runnable"] = int(q["n_run"])
                entry["pending"] = int(q["n_nonrun"]) + self._never_served(q)
            queues[paths[slot]] = entry
        return queues

    def _never_served(self, q: Any) -> int:
        count, i = 0, int(q["run_head"])
        while i >= 0:
            count += 1 - int(self.sched.S.a[i]["started"])
            i = int(self.sched.S.a[i]["run_next"])
        return count
