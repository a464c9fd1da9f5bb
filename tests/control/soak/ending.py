"""What must hold when all faults have ended: in the calm, when all has been wound up, and after the release."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from harness.control.reports import TickReport
from tests.control.soak import edits
from tests.control.soak.process import Process
from tests.control.soak.regime import MIN_SHARES
from tests.control.soak.violated import Violated

if TYPE_CHECKING:
    from tests.control.soak.world import World


class Ending:
    """The invariants of a history without faults."""

    def __init__(self, world: World) -> None:
        self.world = world

    def quiet(self, last: Mapping[str, TickReport]) -> None:
        """Faults have ended and two periods have passed."""
        world = self.world
        holders = [p for p in world.processes if p.running and p.controller.holds]
        if len(holders) != 1:
            raise Violated(f"{[p.name for p in holders]} write the file")
        for process in world.processes:
            if not process.running:
                if process.wanted:
                    raise Violated(f"{process.name} does not run")
                continue
            allowed = {"lease"} if process not in holders else set()
            # A minimum share of a queue that no file names cannot be set either (seed 2000442).
            limits = ("static", "hltrf", "drf", *MIN_SHARES)
            if world.plan.policy in limits or world.plan.sets.get("resource") == "dominant":
                allowed |= {"ad-hoc"}
            if world.cluster.preempts:
                # Shares that stay near what is in use may leave a debt unpaid, however well all is.
                allowed |= {"unpaid"}
            if process.released or process.settings.mode == "shadow":
                allowed |= {"guard"}
            for alarm in last[process.name].alarms:
                if alarm.kind not in allowed:
                    raise Violated(f"all is well, and {process.name} says {alarm.kind}: {alarm.text}")
            if process.tick_log._alarms.keys() - allowed:
                raise Violated(f"{process.name} still says {sorted(process.tick_log._alarms)}")
        if holders[0].released:
            self._given_back(holders[0])
        else:
            self._bounds(holders[0])
        for process in world.processes:
            # Without a lease nobody tells a shadow whose the values are, nor one whom a guard made look on.
            looked_on = world.intruder_seen and (process.released or process.resumed_s >= 0)
            # A guard that has released in the very last tick has forgotten all, until the next one reads the file.
            forgotten = process.released and not process.controller.actuator.baseline
            if not forgotten and (
                (process in holders and not looked_on) or (process.running and process.settings.lease_s)
            ):
                self.entitled(process)

    def _given_back(self, holder: Process) -> None:
        """A guard has released: the administrator's file is there, and in force."""
        world = self.world
        if world.intruder_seen:
            return
        theirs, rm = world.words.read(world.pristine), world.active
        if world.words.read(world.file.read()) != theirs:
            raise Violated(
                f"{holder.name} has released, and the file is not the administrator's: {world.file.read()!r}"
            )
        has = rm.weights()
        for path, queue in theirs.items() if not rm.loaded_older else ():
            if has.get(path) != queue.weight:
                raise Violated(f"{holder.name} has released, and {path} has {has.get(path)}, not {queue.weight:g}")

    def _bounds(self, holder: Process) -> None:
        world, controller = self.world, holder.controller
        has, wanted = world.active.weights(), controller._in_force
        file = world.words.read(world.file.read())
        if controller.core.written is None:
            raise Violated(f"{holder.name} does not know what is in force")
        for path, weight in wanted.items():
            if has.get(path) != edits.float32(weight):
                raise Violated(f"{path} has {has.get(path)} in force, {holder.name} wants {weight:g}")
            if path in file and file[path].weight != edits.float32(weight):
                raise Violated(f"{path} has {file[path].weight} in the file, {holder.name} wants {weight:g}")
        written = controller.core.written.weights
        # Capacities are written in units of their own, weights beside an ad hoc queue's multiplied (it may have gone).
        scaled = world.cluster.ad_hoc or written.keys() - file.keys()
        for path in written.keys() & file.keys() if not (scaled or world.plan.capacity) else ():
            if file[path].weight != edits.float32(written[path]):
                raise Violated(f"{path} has {file[path].weight:g} in the file, {holder.name} wrote {written[path]:g}")
        if written and not wanted:
            raise Violated(f"{holder.name} has not read back what is in force")
        # A minimum share of a Capacity Scheduler's queue is capacity beside its weight.
        if holder.settings.mode == "bounded" and not (world.plan.capacity and controller.core.written.min_shares):
            world.checks.apart(holder, {path: has[path] for path in has.keys() & wanted.keys()})

    def entitled(self, holder: Process) -> None:
        """No controller takes another one's momentary weight for an entitlement.

        The exception is a weight of which no controller can tell who wrote it, if an alarm says whose value counts.
        """
        known = holder.controller.actuator.configured_weights()
        for path, entitlement in self.world.words.entitlements(self.world.pristine).items():
            if path != "root" and path in known and abs(known[path] - entitlement) > 1e-6 * entitlement:
                if self._undecided(holder, path):
                    continue
                raise Violated(
                    f"{holder.name} takes {known[path]:g} for the entitlement of {path}, not {entitlement:g}"
                )
            if path != "root" and path not in known:
                raise Violated(f"{holder.name} does not know {path}")

    def _undecided(self, holder: Process, path: str) -> bool:
        """Return whether another controller has written without a lease, and an alarm says whose value counts.

        A round share that another controller wrote looks like an administrator's, and an administrator's share that was
        written between those of another controller looks like that controller's. An entitlement of a Capacity Scheduler
        is a fraction of the cluster, so a change of one capacity also changes the entitlements of its siblings and of
        all queues below them.
        """
        world = self.world
        if not world.intruder_seen or holder.settings.lease_s:
            return False
        said = " ".join(world.checks.foreign_said.get(holder.name, ()))
        named = set(re.findall(r"\w+ of (root\.[\w.-]+) is [^;]*?(?:\(taken as its entitlement\)|; yours stays)", said))
        if not world.plan.capacity:
            return path in named
        above = {path[: dot.start()] for dot in re.finditer(r"\.", path)}
        return any(one.rpartition(".")[0] in above for one in named)

    def over(self) -> None:
        """All applications have ended and have been seen."""
        world = self.world
        for process in world.processes:
            if not process.running or process.baseline is None:
                continue
            for queue, used in world.truth_since(process).items():
                account = process.controller.accounts.queues.get(queue)
                has = 0.0 if account is None else account.memory_mb_s
                slack = process.baseline_slack.get(queue, 0.0)
                under, over = (allowed + slack for allowed in world.lost.allowed(queue))
                if not -under <= has - used <= over:
                    text = f"{has:.0f} MiB s, it has used {used} ({under:.0f} may miss, {over:.0f} be too much)"
                    raise Violated(f"{process.name}: {queue} has {text}")
                told = 0.0 if account is None else account.reported[0]
                most = max(world.most_assumed_mb_s, world.checks.most_assumed.get((process.name, queue), 0.0)) + over
                if told - used > most:
                    raise Violated(f"{process.name}: {queue} is told {told:.0f} MiB s, it has used {used}")

    def released(self, words: str) -> None:
        """The administrator's file is back, byte for byte, and in force; nothing of ours is left."""
        world = self.world
        if "released" in words and "not" in words:
            raise Violated(f"all is well, and it {words}")
        data = world.file.read()
        # What another one without a lease wrote may be the administrator's value in other words; so may what stands for
        # his value once an older copy of the file has come back after it was given back.
        read = world.words.read
        same = read(data) == read(world.pristine) if world.intruder_seen or world.older_seen else data == world.pristine
        if not same:
            raise Violated(f"released, the file is not the administrator's: {data!r}, not {world.pristine!r}")
        left = [
            name
            for name in os_list(world.file.path.parent)
            if "yarnfair" in name or name.endswith((".lease", ".standby"))
        ]
        if left:
            raise Violated(f"left behind: {left}")


def os_list(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())
