"""Preemption that kills containers, in the eighth regime: a simplified ProportionalCapacityPreemptionPolicy.

In each round, containers of a queue that uses more than it is guaranteed are killed, the youngest first and never a
master, for queues that use less than they are guaranteed and want more. What was killed counts as caused by the
controllers' writes if the administrator's own shares would not have led to it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.control.soak.capacity_rm import CapacityRm
from tests.control.soak.cluster import App, Container
from tests.control.soak.violated import Violated

if TYPE_CHECKING:
    from tests.control.soak.world import World

#: Time between two rounds, seconds: Hadoop's default time from the warning of a container to its kill.
ROUND_S = 15.0
#: Hadoop's defaults: the fraction of what a queue has beyond its guarantee that one round kills, the fraction of the
#: guarantee by which a queue may exceed it unharmed, and the fraction of the cluster that one round kills at most.
TERMINATION, IGNORED, MOST_OF_CLUSTER = 0.2, 0.1, 0.1
HOUR_S = 3600.0


class Preempting:
    """Kill containers in rounds, and record each loss: its time, its MiB-seconds, whether the writes caused it."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.killed: list[tuple[float, float, bool]] = []
        #: Preemption was switched on, and no controller that holds the file has seen it yet. What stands in the file
        #: was written while nothing could be killed for it.
        self.just_switched_on = False
        world.agenda.after(ROUND_S, self._round)

    def _round(self) -> None:
        world, rm = self.world, self.world.active
        world.agenda.after(ROUND_S, self._round)
        assert isinstance(rm, CapacityRm)
        cluster = world.cluster
        if not (rm.up and rm.preempts and cluster.served) or not all(cluster.registered) or cluster.paused:
            return
        whole = float(cluster.capacity_mb)
        leaves = [queue for queue in rm._tree().values() if queue.leaf]
        guaranteed = {queue.path: rm._part(queue) * whole for queue in leaves}
        own = {path: part / 100.0 * whole for path, part in world.words.entitlements(world.pristine).items()}
        used = {path: float(mb) for path, mb in cluster._used().items()}
        wants: dict[str, float] = {}
        for app in cluster.apps.values():
            wants[app.queue] = wants.get(app.queue, 0.0) + app.waiting * app.task_mb
        left = min(_short(guaranteed, used, wants), MOST_OF_CLUSTER * whole)
        own_short = _short({path: own.get(path, 0.0) for path in guaranteed}, used, wants)
        for path in sorted(guaranteed, key=lambda one: guaranteed[one] - used.get(one, 0.0)):
            has = used.get(path, 0.0)
            if has <= guaranteed[path] * (1.0 + IGNORED):
                continue
            most = min(TERMINATION * (has - guaranteed[path]), left)
            left -= self._kill(path, most, has, own.get(path, 0.0), own_short)
        cluster.assign()

    def _kill(self, path: str, most_mb: float, has_mb: float, own_mb: float, own_short_mb: float) -> float:
        """Kill containers of a queue; return how much memory they held."""
        cluster, now_s, freed = self.world.cluster, self.world.agenda.now_s, 0.0
        running: list[tuple[App, Container]] = [
            (app, one) for app in cluster.apps.values() if app.queue == path for one in app.containers[1:]
        ]
        running.sort(key=lambda both: -both[1].began_s)
        for app, container in running:
            if freed + container.memory_mb > most_mb + 1e-6:
                break
            lost = container.memory_mb * (now_s - container.began_s)
            his = has_mb - freed > own_mb * (1.0 + IGNORED) and own_short_mb > freed
            freed += container.memory_mb
            cluster.end(app, container)
            app.waiting += 1
            for rm in self.world.rms:
                rm.preempted[app.id] = rm.preempted.get(app.id, 0) + round(lost)
            self.killed.append((now_s, lost, not his and not self.just_switched_on))
            self.world.note(f"killed {container.memory_mb} MiB of {path} after {now_s - container.began_s:.0f} s")
        return freed

    def caused_mb_s(self, since_s: float) -> float:
        """Return the MiB-seconds that were lost since ``since_s`` because of the controllers' writes."""
        return sum(lost for at_s, lost, caused in self.killed if caused and at_s > since_s)

    def seen(self) -> None:
        """A controller that holds the file has looked at the RM, and could write what it found."""
        if self.world.active.preempts:
            self.just_switched_on = False

    def check(self) -> None:
        """Check that the losses which the controllers' writes have caused stay within the budget of any hour.

        The budget may be exceeded by as much again and by one container, because a controller learns of a loss at its
        next poll, and estimates the loss of a container by the mean task length
        (`docs/decisions/preemption-budget.md`). What is killed between preemption's being switched on and the first
        look after that is nobody's: until then the controller was free to move shares as far as its policy has them
        (seed 8000022).
        """
        world, budget = self.world, self.world.plan.settings.preemption_budget_mb_s
        caused = self.caused_mb_s(world.agenda.now_s - HOUR_S)
        world.most_killed = max(world.most_killed, caused)
        if caused > 2 * budget + max((lost for _, lost, his in self.killed if his), default=0.0):
            raise Violated(f"{caused:.0f} MiB s were killed within an hour because of the shares, budget {budget:.0f}")


def _short(guaranteed: dict[str, float], used: dict[str, float], wants: dict[str, float]) -> float:
    """Return the sum of what queues want within their guarantees and do not have, MiB."""
    return sum(max(min(wants.get(path, 0.0), part - used.get(path, 0.0)), 0.0) for path, part in guaranteed.items())
