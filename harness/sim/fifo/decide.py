"""Decision scripts for the FIFO scheduler: they name it with ``"scheduler": "fifo"``.

The minimum and maximum allocation come from ``conf``. An application's queue may have any name.
"""

from __future__ import annotations

from typing import Any

from harness.sim.decide import App, Decider, resources
from harness.sim.fifo import kernels
from harness.sim.fifo.api import Scheduler
from harness.sim.pools import DriverOptions
from harness.sim.script import Event


class FifoDecider(Decider):
    """Runs a script on the FIFO scheduler's engine."""

    lists = ("assignments", "shares", "preempted", "reserved", "completed", "rejected", "skipped", "errors")
    kinds = (
        *("heartbeat", "shares", "ask", "app", "node", "lost", "resize", "decommission"),
        *("finish", "release", "pull", "end", "restart"),
    )
    refusal = ""
    counts_in_use = True

    def _scheduler(self, options: dict[str, Any], driven: DriverOptions) -> Any:
        return Scheduler(self.conf, self.nodes, driven)

    def _submit(self, event: Event, leaf: int, user: str, *application: int) -> int:
        return self._call(kernels.add_app, leaf, self.sched.user_slot(leaf, user), *application, self.now)

    # ---- shares

    def _on_shares(self, event: Event) -> None:
        if self.record_shares != "none":
            self.out["shares"].append(self._shares())

    def _headroom(self, app: App) -> tuple[int, int, int]:
        """Return the headroom of an application: MB, vcores, and 1 if vcores count (else 0)."""
        return kernels.headroom(self.sched.S, app.slot)

    def _figures(self, app: App) -> dict[str, Any]:
        mb, vcores, _ = self._headroom(app)
        usage = resources(self.sched.S.a[app.slot], "usage")
        return {**usage, "headroom_mb": int(mb), "headroom_vcores": int(vcores)}

    def _queues(self) -> dict[str, Any]:
        return {"root.default": resources(self.sched.S.g[0], used="alloc")}
