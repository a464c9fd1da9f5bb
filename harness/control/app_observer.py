"""Build a `Snapshot` from a ResourceManager's answers. No I/O.

REST shows the state at one moment. The time when a queue's backlog began, the time when it last got a container, and
the mean length of its tasks are derived from successive polls.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from harness.ledger.accounts import AppObservation
from harness.model.resources import ZERO, Resource
from harness.model.snapshot import QueueView, Snapshot
from harness.yarn.answers import AppStatus
from harness.yarn.jmx import Containers
from harness.yarn.queue_answers import QueueStatus, SchedulerStatus

#: Half-life of the samples in the mean task length, in ended containers.
TASKS_HALF = 200.0
#: Ends of applications reach the RM's list out of order by at most this much.
LATE_MS = 60_000
#: Hadoop's JMX page is up to 10 s old (period of its metrics system), so ends within this time may be missing on it.
COUNTS_OLD_MS = 12_000
#: No ResourceManager gives or takes back more containers than this in a second. Counts that rose faster are wrong.
MOST_CONTAINERS_PER_S = 10_000


@dataclass(slots=True)
class Lengths:
    """Mean task length of a queue by Little's law: container-seconds divided by ended tasks.

    Both sums decay with a half-life of `TASKS_HALF` ended containers. A ResourceManager shows containers, not tasks:
    for Spark, a container is an executor, which lasts as long as its application. ApplicationMasters (AMs) are not
    counted as tasks, except in a queue whose applications have no other containers (uber jobs, launchers).
    """

    containers: int = 0
    held_s: float = 0.0  # container-seconds since the last counts, without AMs
    container_s: float = 0.0  # container-seconds of tasks, without AMs, decayed
    ended: float = 0.0  # number of ended tasks, decayed
    masters_held_s: float = 0.0  # container-seconds of AMs since the last counts
    master_s: float = 0.0
    masters_ended: float = 0.0
    owed: int = 0  # applications that have ended, but whose AM's end is not among the counts yet
    unsettled: int = 0  # containers that ended since the list of ended applications was last known

    def hold(self, containers: int, apps: int, interval_s: float) -> None:
        """Account for the containers that a queue held in the last interval; each of its ``apps`` has one AM."""
        held = (self.containers + containers) / 2
        self.held_s += max(held - apps, 0.0) * interval_s
        self.masters_held_s += min(held, apps) * interval_s
        self.containers = containers

    def end(self, ended: int, apps: int | None = 0) -> int:
        """Account for ``ended`` containers and ``apps`` applications (each with its AM) since the last counts.

        Returns how many of the containers were tasks. ``apps`` is None if the list of ended applications was not
        fetched; the next call then decides which of the containers were AMs.
        """
        self.unsettled += ended
        if apps is None:
            return 0
        ended = self.unsettled
        self.owed += apps
        masters = min(self.owed, ended)
        self.owed -= masters
        tasks = ended - masters
        fade = 0.5 ** (ended / TASKS_HALF)
        self.container_s = self.container_s * fade + self.held_s
        self.ended = self.ended * fade + tasks
        self.master_s = self.master_s * fade + self.masters_held_s
        self.masters_ended = self.masters_ended * fade + masters
        self.forget_held()
        return tasks

    def forget_held(self) -> None:
        """Discard the container-seconds since the last counts: it is unknown which containers ended meanwhile."""
        self.held_s = self.masters_held_s = 0.0
        self.unsettled = 0

    @property
    def mean_s(self) -> float | None:
        """The mean length, seconds; None before the first end."""
        if self.ended >= 1.0:
            return self.container_s / self.ended
        return self.master_s / self.masters_ended if self.masters_ended >= 1.0 else None


@dataclass(slots=True)
class _Seen:
    containers: int = 0
    counts: Containers | None = None
    counted_s: float = 0.0  # time of these counts
    backlog_since_s: float | None = None
    last_start_s: float | None = None
    lengths: Lengths = field(default_factory=Lengths)
    new_ended: int | None = None  # tasks that ended since the previous poll, if known


class AppObserver:
    """Build snapshots from successive polls of one RM."""

    def __init__(self) -> None:
        self._seen: dict[str, _Seen] = {}
        self._looked_s: float | None = None
        #: Recently ended applications -> end by the RM's clock (None: no poll yet).
        self._final: dict[str, int] | None = None
        #: Whether this RM has shown container counts.
        self._counted = False

    def snapshot(
        self,
        now_s: float,
        status: SchedulerStatus,
        apps: Iterable[AppStatus],
        *,
        entitlements: Mapping[str, float],
        min_shares: Mapping[str, Resource],
        max_shares: Mapping[str, Resource],
        counts: Mapping[str, Containers] | None,
        period_s: float,
        listed: bool = True,
    ) -> Snapshot:
        """Build the snapshot of one poll.

        Parameters
        ----------
        now_s : float
            Time of the poll on the controller's clock, seconds.
        status : SchedulerStatus
            The RM's answer about its queues.
        apps : Iterable[AppStatus]
            The applications of the last list.
        entitlements : Mapping[str, float]
            Queue -> w_i. Queues that are missing have 1.
        min_shares, max_shares : Mapping[str, Resource]
            The administrator's values for queues whose values the controller has replaced.
        counts : Mapping[str, Containers] or None
            Containers allocated and released per queue (None: unknown; a rise of a queue's containers is used instead).
            They must be fetched before ``apps``; otherwise they could include AMs whose applications are not listed as
            ended yet.
        period_s : float
            Control period, seconds.
        listed : bool
            Whether ``apps`` was fetched in this poll.
        """
        interval = 0.0 if self._looked_s is None else max(now_s - self._looked_s, 0.0)
        oldest: dict[str, int] = {}
        apps = list(apps)
        ended_apps = self._ended_apps(apps)
        for app in apps:
            if not app.final and (app.queue not in oldest or app.started_ms < oldest[app.queue]):
                oldest[app.queue] = app.started_ms
        masters_of: Mapping[str, int] = ended_apps or {}
        lately: Mapping[str, int] = {}
        if counts is not None and not self._counted:
            lately, self._counted = _ended_lately(apps), True
        queues: dict[str, QueueView] = {}
        ends = status.ends()
        for path, queue in status.queues.items():
            seen = self._seen.setdefault(path, _Seen())
            pending = max(queue.containers_pending, 0)
            masters = masters_of.get(path, 0) if listed else None
            _watch(
                seen, queue, None if counts is None else counts.get(path), now_s, interval, masters, lately.get(path, 0)
            )
            used, demand = queue.used.at_least(ZERO), queue.demand.at_least(ZERO)
            # The RM computes both figures at slightly different moments. A queue's demand is at least its usage.
            demand = demand.at_least(used)
            waiting = pending > 0
            ended = ended_apps.get(path, 0) if queue.leaf and ended_apps is not None else None
            queues[path] = QueueView(
                path,
                queue.parent,
                queue.leaf or path in ends,
                entitlements.get(path, 1.0),
                used,
                demand,
                min_shares.get(path, queue.minimum.at_least(ZERO)),
                max_shares.get(path, queue.maximum),
                pending,
                queue.active_apps,
                seen.backlog_since_s,
                seen.last_start_s,
                seen.lengths.mean_s,
                oldest[path] / 1000.0 if waiting and path in oldest else None,
                waiting_apps=queue.pending_apps if queue.leaf else None,
                ended_apps=ended,
                ended_containers=seen.new_ended if ended is not None else None,
                min_share_in_force=queue.minimum.at_least(ZERO),
            )
        for gone in self._seen.keys() - status.queues.keys():
            del self._seen[gone]
        self._looked_s = now_s
        return Snapshot(now_s, status.capacity.at_least(ZERO), queues, period_s)

    def _ended_apps(self, apps: Iterable[AppStatus]) -> Counter[str] | None:
        """Queue -> applications that ended since the previous poll; None at the first poll."""
        known, final = self._final, {app.id: app for app in apps if app.final}
        # Not every poll lists applications that ended long ago. An old application that is listed again is not new.
        floor_ms = max((known or {}).values(), default=0) - LATE_MS
        new = [
            app for app in final.values() if known is not None and app.id not in known and app.finished_ms > floor_ms
        ]
        latest_ms = max([app.finished_ms for app in final.values()], default=0)
        merged = {**(known or {}), **{app.id: app.finished_ms for app in final.values()}}
        self._final = {identity: ms for identity, ms in merged.items() if ms > max(floor_ms, latest_ms - LATE_MS)}
        if known is None:
            return None
        return Counter(app.queue for app in new)

    def forget_counts(self) -> None:
        """Drop the container counts, because another RM answers and its counts start from 0."""
        self._counted = False
        for seen in self._seen.values():
            seen.counts = None


def _ended_lately(apps: Sequence[AppStatus]) -> Counter[str]:
    """Queue -> recently ended applications, whose masters' ends may be missing in the first counts."""
    ends_ms = [app.finished_ms if app.final else app.started_ms + (app.elapsed_ms or 0) for app in apps]
    floor_ms = max(ends_ms, default=0) - COUNTS_OLD_MS
    return Counter(app.queue for app in apps if app.final and app.finished_ms > floor_ms)


def looks_of(apps: Iterable[AppStatus]) -> list[AppObservation]:
    """Convert applications to the accounts' observations."""
    return [
        AppObservation(
            app.id,
            app.queue,
            app.memory_seconds,
            app.vcore_seconds,
            app.allocated,
            app.final,
            math.inf if app.elapsed_ms is None else app.elapsed_ms / 1000.0,
        )
        for app in apps
    ]


def _watch(
    seen: _Seen,
    queue: QueueStatus,
    counts: Containers | None,
    now_s: float,
    interval_s: float,
    ended_apps: int | None,
    ended_lately: int,
) -> None:
    if queue.containers_pending > 0:
        if seen.backlog_since_s is None:
            seen.backlog_since_s = now_s
    else:
        seen.backlog_since_s = None
    if queue.leaf:
        seen.lengths.hold(queue.containers_allocated, queue.active_apps, interval_s)
    before, seen.new_ended = seen.counts, None
    # A queue with more containers than before got some of them, even if the counts, which may be old, do not show it.
    given = queue.containers_allocated - seen.containers
    if counts is not None:
        if before is not None and _follows(before, counts, now_s - seen.counted_s):
            given = max(given, counts[0] - before[0])
            seen.new_ended = seen.lengths.end(counts[1] - before[1], ended_apps)
        else:
            seen.lengths.forget_held()
            seen.lengths.owed = ended_lately
        seen.counts, seen.counted_s = counts, now_s
    elif before is not None:
        seen.lengths.owed += ended_apps or 0
    if given > 0:
        seen.last_start_s = now_s
    seen.containers = queue.containers_allocated


def _follows(before: Containers, counts: Containers, seconds: float) -> bool:
    """Return whether counts can be those of the same ResourceManager after this many seconds."""
    most = MOST_CONTAINERS_PER_S * (seconds + COUNTS_OLD_MS / 1000.0)
    return all(0 <= now - then <= most for now, then in zip(counts, before, strict=True))
