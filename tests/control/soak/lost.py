"""What no ResourceManager will ever show, queue by queue: how far accounts may be from the truth once an RM began anew.

An RM that begins anew has lost what containers used that had ended, and learns of the live ones from their nodes. What
came or went between the last look before and the first look after all nodes are back, nobody can tell to the MiB
second; what ran all that time is known to whoever looked before, and is held against the accounts.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tests.control.soak.cluster import NODE_MB, App, Container

if TYPE_CHECKING:
    from tests.control.soak.world import World

#: So long an RM keeps the figure of what runs.
CACHE_S = 3.0
#: A figure may be so old when it is shown, at the begin and at the end.
FIGURE_S = 2 * CACHE_S
#: What ended so long ago was seen, or everybody was blind for longer.
KEPT_S = 2000.0


@dataclass
class Window:
    """An RM is being recovered. ``unknown_mb``, ``ended_mb``, ``held_mb``: queue -> MiB of containers."""

    from_s: float
    recovered_s: float = math.inf
    #: Of those of which nobody can know all: they came, or the RM began anew twice.
    unknown_mb: dict[str, int] = field(default_factory=dict)
    #: Containers that were known before and have ended since: what they used is guessed, at the most for all the time.
    ended_mb: dict[str, int] = field(default_factory=dict)
    #: Of those that went on from before.
    held_mb: dict[str, int] = field(default_factory=dict)
    #: Queue -> MiB-seconds that no RM has shown to everybody: of containers that had ended by the first look.
    gone_mb_s: dict[str, float] = field(default_factory=dict)
    ended: list[tuple[App, Container]] = field(default_factory=list)
    #: What nodes have told of since: when, whose, the container, and whether that ran then.
    brought: list[tuple[float, App, Container, bool]] = field(default_factory=list)
    began_s: float = 0.0
    lied: bool = False
    #: Controllers that have not yet looked since all nodes are back; since the RM began anew.
    blind: set[str] = field(default_factory=set)
    unseen: set[str] = field(default_factory=set)


def _more(sums: dict[str, int], queue: str, mb: int) -> None:
    sums[queue] = sums.get(queue, 0) + mb


class Lost:
    """The allowance of each queue, MiB-seconds: what accounts may lack, and what they may have too much."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.under: dict[str, float] = {}
        self.over: dict[str, float] = {}
        #: What any queue may have lost or been given.
        self.anywhere = 0.0
        self.window: Window | None = None
        self._ended: deque[tuple[App, Container]] = deque()
        #: Controller -> when its last look that was taken began.
        self.looked_s: dict[str, float] = {}
        #: When all nodes were last known to an RM that had begun anew.
        self.back_s = -math.inf

    def any(self) -> bool:
        return bool(self.anywhere or self.under or self.over or self.window)

    def allowed(self, queue: str) -> tuple[float, float]:
        """What a queue's account may lack, and have too much."""
        return self.anywhere + self.under.get(queue, 0.0), self.anywhere + self.over.get(queue, 0.0)

    def begin(self) -> None:
        """The RM that was active is so no more."""
        world, now_s = self.world, self.world.agenda.now_s
        if not world.checks.truthful:
            self._shown_wrong()
        wanted = [p.name for p in world.processes if p.wanted]
        from_s = min((self.looked_s.get(name, 0.0) for name in wanted), default=0.0) - FIGURE_S
        if from_s < now_s - KEPT_S:
            self.anywhere += world.cluster.capacity_mb * (now_s - from_s)
        window = self.window
        if window is None:
            window = self.window = Window(from_s, began_s=now_s)
            for app, container in self._ended:
                if (container.ended_s or 0.0) > from_s:
                    self._gone(window, app, container)
                    _more(window.ended_mb, app.queue, container.memory_mb)
        window.recovered_s, again = math.inf, window.began_s != now_s
        window.blind, window.unseen = set(wanted), set(wanted)
        for app in world.cluster.apps.values():
            for container in app.containers:
                known = container.began_s <= from_s and not again
                _more(window.held_mb if known else window.unknown_mb, app.queue, container.memory_mb)

    def _shown_wrong(self) -> None:
        """Nobody knows what was shown last, or first."""
        world = self.world
        silent_s = max((world.checks.silent_s(p) for p in world.processes), default=0.0)
        self.anywhere += world.cluster.capacity_mb * (20.0 + 3 * world.plan.settings.period_s + silent_s)

    def lied(self) -> None:
        """A look at an RM that is being recovered was shown something wrong."""
        if self.window is not None and not self.window.lied:
            self.window.lied = True
            self._shown_wrong()

    def back(self, at_s: float) -> None:
        """An RM is active again, and all nodes are known to it then."""
        self.back_s = at_s
        if self.window is not None:
            # The window was closed too early by a look in the 3 s after that: its figures may be of before, so that
            # what containers of which nobody knew had used shows only at the next look, and cannot be told from what
            # the others used until then (seed 1000033: 36 s were allowed, 66 s are true).
            self.window.recovered_s = at_s + CACHE_S

    def started(self, app: App, memory_mb: int) -> None:
        # Who is new to the new RM is shown whole by it, and not taken for another.
        if self.window is not None and app.submitted_s < self.window.began_s:
            _more(self.window.unknown_mb, app.queue, memory_mb)

    def ended(self, app: App, container: Container) -> None:
        self._ended.append((app, container))
        now_s = self.world.agenda.now_s
        while self._ended and (self._ended[0][1].ended_s or 0.0) < now_s - KEPT_S:
            self._ended.popleft()
        if self.window is not None:
            _more(self.window.ended_mb, app.queue, container.memory_mb)
            self.window.ended.append((app, container))

    def _gone(self, window: Window, app: App, container: Container) -> None:
        used_s = (container.ended_s or 0.0) - window.from_s
        window.gone_mb_s[app.queue] = window.gone_mb_s.get(app.queue, 0.0) + container.memory_mb * used_s

    def _hidden(self, app: App, container: Container) -> bool:
        """Whether the RM does not know of a container, whose node may still tell it."""
        known = self.world.active.known.get(app.id)
        return known is not None and container in known.hidden

    def finished(self, app: App) -> None:
        """Its figure is kept as it is: what a node tells later changes nothing."""
        if self.window is not None:
            for one in [one for one in self.window.ended if one[0] is app and self._hidden(*one)]:
                self._gone(self.window, *one)
                self.window.ended.remove(one)

    def brought(self, told: list[tuple[str, Container]]) -> None:
        """A node is back, and tells of these containers."""
        if self.window is not None:
            cluster, now_s = self.world.cluster, self.world.agenda.now_s
            self.window.brought += [(now_s, cluster.by_id[app], one, one.ended_s is None) for app, one in told]

    def _mixed(self, window: Window, since_s: float) -> None:
        """Of what came back since the look before: beside containers of its application that run on, with all that
        those have used, nobody can tell what others had used that have ended."""
        # A figure may be as old as an RM keeps it when the containers in it are shown.
        self._masked(window, since_s)
        runs = {app.id for at_s, app, _, ran in window.brought if ran and at_s > since_s - FIGURE_S}
        for one in [one for one in window.brought if not one[3] and one[0] > since_s and one[1].id in runs]:
            self._gone(window, one[1], one[2])
            window.brought.remove(one)

    def _masked(self, window: Window, since_s: float) -> None:
        """Of what came back running since the look before: an RM shows what an application holds in all. While as much
        of it ends as comes back, what came back does not show, nor how long it had run unseen."""
        back: dict[str, int] = {}
        for at_s, app, container, ran in window.brought:
            if ran and at_s > since_s - FIGURE_S:
                back[app.id] = back.get(app.id, 0) + container.memory_mb
        gone: dict[str, int] = {}
        for app, container in reversed(self._ended):
            if (container.ended_s or 0.0) <= since_s - FIGURE_S:
                break
            gone[app.id] = gone.get(app.id, 0) + container.memory_mb
        seconds = self.world.agenda.now_s - window.from_s
        for app_id, mb in back.items():
            if hidden_mb := min(mb, gone.get(app_id, 0)):
                queue = self.world.cluster.by_id[app_id].queue
                window.gone_mb_s[queue] = window.gone_mb_s.get(queue, 0.0) + hidden_mb * seconds

    def looked(self, name: str, begun_s: float) -> None:
        """A controller has taken a look that began then."""
        before_s = self.looked_s.get(name, 0.0)
        self.looked_s[name] = begun_s
        window = self.window
        if window is None:
            return
        self._mixed(window, before_s)
        if name in window.unseen:
            window.unseen.discard(name)
            late = [one for one in window.ended if self._hidden(*one)]
            for one in window.ended:
                if one not in late:
                    self._gone(window, *one)
            window.ended = late
        if begun_s > window.recovered_s:
            window.blind.discard(name)
        window.blind &= {p.name for p in self.world.processes if p.wanted}
        if not window.blind and begun_s > window.recovered_s:
            self.close()

    def close(self) -> None:
        """What the recovery that is going on has cost at most."""
        window, self.window = self.window, None
        if window is None:
            return
        seconds = self.world.agenda.now_s - window.from_s
        for queue in window.unknown_mb.keys() | window.ended_mb.keys() | window.held_mb.keys():
            unknown, held = window.unknown_mb.get(queue, 0) * seconds, window.held_mb.get(queue, 0) * FIGURE_S
            self.under[queue] = self.under.get(queue, 0.0) + unknown + held + window.gone_mb_s.get(queue, 0.0)
            guessed = unknown + held + window.ended_mb.get(queue, 0) * seconds
            self.over[queue] = self.over.get(queue, 0.0) + guessed

    def unkept(self, name: str, apps: Sequence[str]) -> None:
        """A controller was shown figures of these, and was killed before it kept them: what an RM has forgotten by now
        nobody will show again."""
        world, now_s = self.world, self.world.agenda.now_s
        for app in [world.cluster.by_id[app] for app in apps if app in world.active.forgotten]:
            self.anywhere += app.truth(now_s)[0] + NODE_MB * len(world.cluster.alive) * 10.0

    def restored(self, knew: Mapping[str, tuple[int, int]], made_s: float) -> None:
        """A controller begins with an older copy of its ledger, which had these figures of applications: what they
        used since, and an RM has forgotten by now, nobody will show again. Nor what containers used since the copy was
        made that had ended before an RM that began anew knew them (seed 1000208)."""
        for app, container in self._ended:
            ended_s = container.ended_s or 0.0
            if made_s - FIGURE_S < ended_s <= self.back_s and app.id not in self.world.active.forgotten:
                used_s = ended_s - max(container.began_s, made_s - FIGURE_S)
                self.under[app.queue] = self.under.get(app.queue, 0.0) + container.memory_mb * used_s
        world, now_s = self.world, self.world.agenda.now_s
        for app in [world.cluster.by_id[app] for app in knew if app in world.active.forgotten]:
            missing = app.truth(now_s)[0] - knew[app.id][0]
            self.under[app.queue] = self.under.get(app.queue, 0.0) + missing

    def forget_ended(self) -> None:
        """The RM forgets who has ended: what of it was not shown to each controller is lost."""
        world, count = self.world, 0
        now_s = world.agenda.now_s
        for app in world.cluster.ended:
            if app.id in world.active.forgotten:
                continue
            for rm in world.rms:
                rm.forgotten.add(app.id)
            count += 1
            used = app.truth(now_s)[0]
            if any(used != world.wire.shown.get(p.name, {}).get(app.id, (0, 0))[0] for p in world.processes):
                self.anywhere += used + NODE_MB * len(world.cluster.alive) * 10.0
        world.forgotten.append((now_s, count))
