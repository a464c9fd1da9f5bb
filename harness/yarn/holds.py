"""Find the limits that block a queue or an application on a ResourceManager, and the settings to change.

The limits are found from one poll of the RM (`Facts`), for both schedulers, whether or not a controller is running. A
scheduler leaves applications in ``ACCEPTED`` and requests pending for other reasons than a queue's share: the AM share,
the number of applications, a maximum, a user's limit. The figures come from ``/scheduler``, and the reason why an AM
waits from the application's diagnostics (Hadoop's ``CSAMContainerLaunchDiagnosticsConstants``, ``FSAppAttempt``,
``MaxRunningAppsEnforcer``).
"""

from __future__ import annotations

import contextlib
import math
import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from harness.base.errors import YarnfairError
from harness.base.words import counted
from harness.model.resources import ZERO, Resource
from harness.yarn import jmx
from harness.yarn.answers import FINAL_STATES, AppList, AppStatus, NodeStatus
from harness.yarn.capacity.properties import PREFIX
from harness.yarn.discover import rm_property
from harness.yarn.queue_answers import CAPACITY, QueueStatus, SchedulerStatus, in_full
from harness.yarn.queue_limits import QueueLimits, SchedulerLimits, UserUse
from harness.yarn.rest import RestClient

#: States of an application that its scheduler knows.
LIVE = ("ACCEPTED", "RUNNING")
#: The rate at which applications end is estimated over this time, seconds.
WINDOW_S = 3600.0
#: Number of ended applications that a ResourceManager retains by default (``max-completed-applications``). If a list
#: contains this many, earlier ones may be missing.
RETAINED = 1000
#: Number of queues whose requests are read in one look.
_MOST_ASKED = 100
#: Diagnostics of a waiting AM (Hadoop 3.2 to 3.5).
_AM_SHARE = re.compile(r"exceeds maximum AM resource allowed|AM resource limit exceeded")
_USER_AM = re.compile(r"User's AM resource limit exceeded")
_MAXIMUM = re.compile(r"exceeds current queue or its parents maximum resource allowed")
_RUNNING = re.compile(r'The (queue|user) "([^"]*)" has reached the maximum limit of runnable applications')
_LAUNCHED = re.compile(r"AM container is launched")
_ACTIVATED = re.compile(r"Application is Activated")
_ASK = re.compile(r"(?:AM Resource Request = |Resource request: )<memory:(\d{1,18}), vCores:(\d{1,9})")


@dataclass(frozen=True, slots=True)
class Hold:
    """One limit that blocks a queue or an application.

    ``kind``: am-share, user-am-share, maximum, running-apps, user-running-apps or user-limit. ``queue``: the queue to
    which the limit belongs, which is the blocked queue or an ancestor. ``has`` and ``limit``: present usage and limit,
    in ``unit`` (MiB, vcores, applications); None if the RM does not show them. ``setting``: name of the setting to
    change. ``mend``: sentence about its new value. ``least``: that value, where it is known.
    """

    kind: str
    queue: str
    setting: str
    what: str
    mend: str
    has: float | None = None
    limit: float | None = None
    unit: str = ""
    least: float | None = None

    def line(self) -> str:
        """Describe the limit for a person."""
        return f"Held by {self.setting}: {self.what}. {self.mend}."

    def document(self) -> dict[str, Any]:
        """Return the limit as a JSON document."""
        names = ("kind", "queue", "setting", "has", "limit", "unit", "what", "mend")
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True, slots=True)
class Facts:
    """One look at an RM.

    Parameters
    ----------
    status, limits
        Its queue tree, and the limits of the queues.
    apps
        Its applications that have not ended, in order of submission, their queues in full.
    nodes
        Its nodes; none: not known.
    container_every_s
        How long it takes on the average until some container of the cluster ends, seconds, since the RM's start; None:
        not known.
    ended, ended_window_s
        The applications that ended within this time before, their queues in full; None: not known.
    released_every_s
        How long it takes on the average until some container of a queue ends, seconds, by path, since the RM's start;
        queues of which none has ended are missing.
    asks
        The sizes of the containers that a queue's applications have requested, by path: of a Fair Scheduler's leaves
        whose demand is cut off at their maximum.
    smallest
        The smallest container. A Capacity Scheduler rounds its limits for ApplicationMasters up to multiples of it.
        None: the RM does not show it.
    """

    status: SchedulerStatus
    limits: SchedulerLimits
    apps: Sequence[AppStatus] = ()
    nodes: Sequence[NodeStatus] = ()
    container_every_s: float | None = None
    smallest: Resource | None = None
    ended: Sequence[AppStatus] | None = None
    ended_window_s: float = 0.0
    released_every_s: Mapping[str, float] = field(default_factory=dict)
    asks: Mapping[str, Sequence[Resource]] = field(default_factory=dict)

    @property
    def is_capacity(self) -> bool:
        """Whether the RM has a Capacity Scheduler."""
        return self.status.type == CAPACITY

    @property
    def counts_vcores(self) -> bool:
        """Return whether vcores count against limits: always in a Fair Scheduler, else depending on the calculator."""
        return not self.is_capacity or bool(self.limits.dominant)

    def waiting(self, path: str) -> list[AppStatus]:
        """Return the applications of a queue and its descendants whose AM has no container, in order."""
        return [app for app in self.apps if _is_below(app.queue, path) and waits_for_master(app)]


def look(rest: RestClient) -> Facts:
    """Request the limits of an RM's queues and the usage that counts against them.

    Raises
    ------
    Unreachable, Refused, BadAnswer
        The RM does not show its queues or applications. Nodes and ``/jmx`` are optional, because they are only needed
        to estimate waiting times.
    """
    status, limits = rest.scheduler_with_limits()
    apps = in_full(rest.apps(states=LIVE), status.queues)
    nodes: list[NodeStatus] = []
    every_s: dict[str, float] = {}
    ended, window_s = None, 0.0
    with contextlib.suppress(YarnfairError):
        nodes = rest.nodes()
    with contextlib.suppress(YarnfairError):
        info = rest.info()
        now_s = info.clock_s or time.time()
        up_s = now_s - info.started_on_ms / 1000.0
        with contextlib.suppress(YarnfairError):
            ended, window_s = _ended(rest, now_s, min(up_s, WINDOW_S))
            ended = in_full(AppList(ended), status.queues)
        containers = jmx.queue_containers(rest.http, only=rest.http.current)
        every_s = {path: up_s / one.released for path, one in containers.items() if one.released and up_s > 0}
    smallest = _smallest(rest) if status.type == CAPACITY else None
    asks: dict[str, Sequence[Resource]] = {}
    if status.type != CAPACITY:
        for path in [path for path, queue in status.queues.items() if is_cut_off(queue)][:_MOST_ASKED]:
            with contextlib.suppress(YarnfairError):
                asks[path] = rest.outstanding_sizes(path)
    return Facts(status, limits, apps, nodes, every_s.get("root"), smallest, ended, window_s, every_s, asks)


def _ended(rest: RestClient, now_s: float, window_s: float) -> tuple[list[AppStatus], float]:
    """Return the applications that ended in the last ``window_s``, and the seconds for which the list is complete."""
    since_ms = int((now_s - window_s) * 1000.0)
    found = [
        app
        for app in rest.apps(states=sorted(FINAL_STATES), finished_from_ms=since_ms)
        if app.final and app.finished_ms >= since_ms
    ]
    if len(found) >= RETAINED:
        window_s = now_s - min(app.finished_ms for app in found) / 1000.0
    return found, window_s


def _smallest(rest: RestClient) -> Resource | None:
    """Return the size of the smallest container from ``/conf``; None if the RM does not show it."""
    with contextlib.suppress(YarnfairError, ValueError):
        named = [
            int(rm_property(rest.http, rest.http.current, f"yarn.scheduler.minimum-allocation-{name}") or "")
            for name in ("mb", "vcores")
        ]
        return Resource(*named)
    return None


def waits_for_master(app: AppStatus) -> bool:
    """Return whether an application is accepted and its AM has no container."""
    return app.state == "ACCEPTED" and app.allocated == ZERO and not _LAUNCHED.search(app.diagnostics)


def counts_as_running(facts: Facts, app: AppStatus) -> bool:
    """Return whether an application is one of those that fill the limits of running ones, even without its AM.

    A Capacity Scheduler counts it from its activation on, a Fair Scheduler once it is runnable.
    """
    if app.state not in LIVE:
        return False
    if not waits_for_master(app):
        return True
    found = (_ACTIVATED if facts.is_capacity else _RUNNING).search(app.diagnostics)
    return (found is not None) == facts.is_capacity


def holds_of_queue(facts: Facts, path: str) -> tuple[Hold, ...]:
    """Return the limits that block a leaf or some of its applications: first those of waiting AMs, then the others."""
    queue = facts.status.queues[path]
    waiting = facts.waiting(path)
    pending = queue.containers_pending > 0 or queue.demand != queue.used
    if not waiting and not pending:
        return ()
    found = list(_of_queues(facts, queue, _ask_of(facts, queue, waiting)))
    for app in waiting:
        found += _of_master(facts, app)
    if pending:
        found += _of_users(facts, path, {app.user for app in facts.apps if app.queue == path})
    return _distinct(found)


def blocks_all(facts: Facts, path: str, holds: Sequence[Hold]) -> bool:
    """Return whether the limits of `holds_of_queue` block all that a leaf waits for, and not only some of its requests.

    Without that, the leaf takes part in the scheduler's order like one that no limit blocks.
    """
    if not holds:
        return False
    if any(hold.kind == "maximum" for hold in holds):
        return True
    waiting = facts.waiting(path)
    if not all(holds_of_app(facts, app) for app in waiting):
        return False
    # Each application that waits for its AM has one pending container. The others belong to running applications.
    if facts.status.queues[path].containers_pending <= len(waiting):
        return True
    limits = facts.limits.queues.get(path)
    active = [user for user in limits.users if user.active] if limits is not None else []
    return limits is not None and bool(active) and all(_user_limit(facts, limits, user) for user in active)


def holds_of_app(facts: Facts, app: AppStatus) -> tuple[Hold, ...]:
    """Return the limits that block one application."""
    queue = facts.status.queues.get(app.queue)
    if queue is None:
        return ()
    if waits_for_master(app):
        found = [*_of_queues(facts, queue, _asked(app)), *_of_master(facts, app)]
        # One of those that fill the limit of running ones is not held by it.
        return _distinct(hold for hold in found if not (hold.kind == "running-apps" and counts_as_running(facts, app)))
    if app.state != "RUNNING" or not (queue.containers_pending or queue.demand != queue.used):
        return ()
    found = [*_of_queues(facts, queue, _ask_of(facts, queue, [])), *_of_users(facts, app.queue, {app.user})]
    return _distinct(found)


def not_running(facts: Facts, path: str) -> list[QueueLimits]:
    """Return a Capacity Scheduler's queue and its ancestors as far as their state is not RUNNING.

    Such a queue takes no new applications. Those that it has taken go on and get containers, also those that still wait
    for their AM (``AbstractCSQueue.stopQueue``: the queue is DRAINING until the last one has ended).
    """
    return [limits for limits in facts.limits.upwards(path) if facts.is_capacity and limits.state != "RUNNING"]


def ahead(facts: Facts, app: AppStatus) -> list[AppStatus]:
    """Return the applications of the same queue that also wait for their AM's container and came earlier."""
    waiting = facts.waiting(app.queue)
    return waiting[: waiting.index(app)] if app in waiting else []


def room(facts: Facts, ask: Resource | None) -> str:
    """Explain why the cluster has no room for one more container ('': it has room, or this is unknown)."""
    free = facts.status.capacity - _used(facts)
    size = ask or Resource(1, 1)
    if free.memory_mb < size.memory_mb or (facts.counts_vcores and free.vcores < size.vcores):
        left = f"{max(free.memory_mb, 0):,} MiB and {counted(max(free.vcores, 0), 'vcore')} are free"
        some = free.memory_mb > 0 and (free.vcores > 0 or not facts.counts_vcores)
        if ask is not None and some:
            return f"The cluster has no room for a container of {size_words(ask)}: {left} in all."
        return f"The cluster is full ({left})."
    able = [node for node in facts.nodes if node.state == "RUNNING"]
    if ask is None or not able or any(_fits(ask, node.available, vcores=facts.counts_vcores) for node in able):
        return ""
    most = max(able, key=lambda node: node.available.memory_mb)
    return (
        f"No node has room for a container of {size_words(ask)}: {size_words(free)} are free in all, and the node with "
        f"most memory left, {most.id}, has {size_words(most.available)}."
    )


def ask_of_queue(facts: Facts, path: str) -> Resource | None:
    """Return the mean size of a queue's pending containers; None if it is unknown.

    Applications that a limit holds are left out if the queue waits for something else, too.
    """
    queue, waiting = facts.status.queues[path], facts.waiting(path)
    free = [app for app in waiting if not holds_of_app(facts, app)]
    return _ask_of(facts, queue, free if free or queue.containers_pending > len(waiting) else waiting)


def is_cut_off(queue: QueueStatus) -> bool:
    """Return whether a Fair Scheduler's leaf waits for more than its maximum, so that its demand does not show all."""
    most = queue.maximum
    reached = queue.demand.memory_mb == most.memory_mb or queue.demand.vcores == most.vcores
    return queue.leaf and queue.containers_pending > 0 and reached


def size_words(amount: Resource) -> str:
    """Format a size like ``512 MiB and 1 vcore``."""
    return f"{amount.memory_mb:,} MiB and {counted(amount.vcores, 'vcore')}"


def _used(facts: Facts) -> Resource:
    root = facts.status.queues["root"]
    return root.used + root.reserved if facts.is_capacity else root.used


def _is_below(path: str, above: str) -> bool:
    return (path + ".").startswith(above + ".")


def _fits(ask: Resource, available: Resource, *, vcores: bool) -> bool:
    return ask.memory_mb <= available.memory_mb and (not vcores or ask.vcores <= available.vcores)


def _distinct(found: Iterable[Hold]) -> tuple[Hold, ...]:
    """Return the holds without repetitions: of several holds by the same limit, the first is kept."""
    kept: dict[tuple[str, str, str], Hold] = {}
    for hold in found:
        kept.setdefault((hold.kind, hold.queue, hold.setting), hold)
    maxima = {hold.queue for hold in kept.values() if hold.kind == "maximum"}
    # With an AM share of 1, AMs are limited only by the queue's maximum, so report only the maximum.
    return tuple(h for h in kept.values() if not (h.kind == "am-share" and h.queue in maxima and h.limit is None))


def _asked(app: AppStatus) -> Resource | None:
    """Return the size of an application's AM from its diagnostics."""
    found = _ASK.search(app.diagnostics)
    return Resource(int(found[1]), int(found[2])) if found else None


def _ask_of(facts: Facts, queue: QueueStatus, waiting: Sequence[AppStatus]) -> Resource | None:
    """Return the size of a pending container: that of a waiting AM, or else the mean of all requests.

    A Fair Scheduler cuts a leaf's demand off at its maximum (``FSLeafQueue.updateDemand``), so that the mean is too
    small there. The smallest size requested is taken instead, or the size of the containers that the queue holds.
    """
    for app in waiting:
        if (size := _asked(app)) is not None:
            return size
    cut_off = not facts.is_capacity and is_cut_off(queue)
    if cut_off and (sizes := facts.asks.get(queue.path)):
        left = queue.maximum - queue.used
        return next((size for size in sizes if _fits(size, left, vcores=True)), sizes[0])
    more = queue.demand - queue.used
    if queue.containers_pending <= 0 or more.memory_mb <= 0:
        return None
    mean = Resource(more.memory_mb // queue.containers_pending, max(more.vcores, 0) // queue.containers_pending)
    if cut_off:
        held = max(queue.containers_allocated, 1)
        return Resource(
            max(mean.memory_mb, queue.used.memory_mb // held, 1), max(mean.vcores, queue.used.vcores // held, 1)
        )
    return mean


def _of_queues(facts: Facts, leaf: QueueStatus, ask: Resource | None) -> Iterator[Hold]:
    """Yield the limits of the queue and its ancestors that block all of the queue's applications."""
    for limits in facts.limits.upwards(leaf.path):
        path = limits.path
        yield from _too_many_apps(facts, limits)
        if path != "root" and (hold := _at_maximum(facts, leaf, limits, ask)) is not None:
            yield hold


def _too_many_apps(facts: Facts, limits: QueueLimits) -> Iterator[Hold]:
    """Yield the limit of running applications if it is reached and further applications wait."""
    if limits.max_running is None:
        return
    if facts.is_capacity:
        running, waiting = limits.running, limits.applications - limits.running
        name, act = f"{PREFIX}{limits.name_of('max-parallel-apps')}", "Set it"
    else:
        below = [app for app in facts.apps if app.state in LIVE and _is_below(app.queue, limits.path)]
        waiting = sum(
            waits_for_master(app) and (m := _RUNNING.search(app.diagnostics)) is not None and m[1] == "queue"
            for app in below
        )
        running, name = len(below) - waiting, f"maxRunningApps of {limits.path}"
        act = "Set it in the allocation file"
    if waiting <= 0 or running < limits.max_running:
        return
    yield Hold(
        "running-apps",
        limits.path,
        name,
        f"{counted(running, 'application')} of at most {limits.max_running:,} {'run' if running != 1 else 'runs'} in "
        f"{limits.path}, and {waiting:,} more {'wait' if waiting != 1 else 'waits'} for one of them to end",
        f"{act} to {running + 1:,} or more",
        has=running,
        limit=limits.max_running,
        unit="applications",
    )


def _at_maximum(facts: Facts, leaf: QueueStatus, limits: QueueLimits, ask: Resource | None) -> Hold | None:
    """Return the hold by a queue's maximum if the next container does not fit within it; else None."""
    queue = facts.status.queues[limits.path]
    size = ask or Resource(1, 1)
    for unit, has, more, most in (
        ("MiB", queue.used.memory_mb, size.memory_mb, queue.maximum.memory_mb),
        ("vcores", queue.used.vcores, size.vcores, queue.maximum.vcores),
    ):
        if (unit == "vcores" and not facts.counts_vcores) or has + more <= most:
            continue
        if most >= (facts.status.capacity.memory_mb if unit == "MiB" else facts.status.capacity.vcores):
            continue  # the maximum is the whole cluster, so the cluster's size is the limit
        what = f"{queue.path} holds {has:,} of at most {most:,} {unit}"
        if ask is not None:
            what += f", and the next container asks for {more:,} {unit}, {has + more - most:,} more than is left"
        if not facts.is_capacity:
            name = f"maxResources of {queue.path}"
            mend = f"Set it in the allocation file to {has + more:,} {unit} or more"
            if ask is None:
                mend = "Raise it in the allocation file by one container at least"
        else:
            name = f"{PREFIX}{limits.name_of('maximum-capacity')}"
            above = facts.status.queues[queue.parent or "root"]
            whole = (above.maximum if above.parent else facts.status.capacity).memory_mb
            now = limits.setting("maximum-capacity")
            need = 100.0 * (has + more) / whole if unit == "MiB" and whole > 0 else None
            if ask is None:
                mend = f"Raise it{'' if now is None else f' from {_few(now)}'} by one container at least"
            elif need is None or now is None or queue.maximum_capacity is None:
                mend = f"Raise it to {has + more:,} {unit} or more"
            else:
                mend = f"Raise it from {_few(now)} to {_up(need, 1)} % or more"
        return Hold("maximum", queue.path, name, what, mend, has=has, limit=most, unit=unit)
    return None


def _of_master(facts: Facts, app: AppStatus) -> Iterator[Hold]:
    """Yield the limits that block the AM of an application, from its diagnostics and the queue's figures."""
    limits = facts.limits.queues.get(app.queue)
    if limits is None:
        return
    if (found := _RUNNING.search(app.diagnostics)) is not None and found[1] == "user":
        running = sum(one.user == app.user and one.state in LIVE and not waits_for_master(one) for one in facts.apps)
        yield Hold(
            "user-running-apps",
            app.queue,
            f"maxRunningApps of user {app.user}",
            f"{counted(running, 'application')} of {app.user} {'run' if running != 1 else 'runs'}, as many as the "
            "allocation file allows",
            f'Raise maxRunningApps of <user name="{app.user}">, or userMaxAppsDefault',
            has=running,
            unit="applications",
        )
    elif facts.is_capacity and not app.diagnostics and _passed_over(facts, limits):
        running = sum(one.user == app.user and one.state in LIVE and not waits_for_master(one) for one in facts.apps)
        yield Hold(
            "user-running-apps",
            app.queue,
            f"{PREFIX}user.{app.user}.max-parallel-apps",
            f"{counted(running, 'application')} of {app.user} {'run' if running != 1 else 'runs'}, and the scheduler "
            "has not begun to look at this one, although no queue above it is at its own limit",
            f"Raise it, or {PREFIX}user.max-parallel-apps, which holds for all users",
            has=running,
            unit="applications",
        )
    if not _AM_SHARE.search(app.diagnostics):
        return
    ask = _asked(app)
    user = next((one for one in limits.users if one.name == app.user), None)
    if _USER_AM.search(app.diagnostics) and user is not None:
        yield _user_am_share(facts, limits, user, ask)
        return
    of_queue = _am_share(facts, limits, ask)
    # The scheduler compares with the user's limit only what the queue's limit has let pass, and names the first one.
    if user is None or not _exceeds_own_am_limit(facts, limits, user, ask):
        yield of_queue
    else:
        yield from _together(of_queue, _user_am_share(facts, limits, user, ask), limits)


def _together(of_queue: Hold, of_user: Hold, limits: QueueLimits) -> tuple[Hold, Hold]:
    """Return the limits for AMs of a queue and of a user that hold the same application.

    If both depend on the same setting, its new value has to suffice for both.
    """
    if of_queue.setting != of_user.setting:
        return of_queue, of_user
    now = limits.setting("maximum-am-resource-percent")
    known = [hold.least for hold in (of_queue, of_user) if hold.least is not None]
    least = max(known) if len(known) == 2 else None
    both = _raise(now, least)
    return replace(of_queue, mend=both, least=least), replace(of_user, mend=both, least=least)


def _exceeds_own_am_limit(facts: Facts, limits: QueueLimits, user: UserUse, ask: Resource | None) -> bool:
    """Return whether the user's own limit for AMs has no room for one more, whatever the queue's limit is.

    An RM shows the smaller one of the user's and the queue's limit as the user's
    (``AbstractLeafQueue.getUserAMResourceLimitPerPartition``), so the user's own one is computed.
    """
    percent, factor = limits.setting("maximum-am-resource-percent"), limits.setting("user-limit-factor")
    if not facts.is_capacity or ask is None or percent is None:
        return False
    guaranteed = facts.status.queues[limits.path].fair_share
    for unit in ("MiB", "vcores") if facts.counts_vcores else ("MiB",):
        need, shown = _amount(user.am_used + ask, unit), _amount(user.am_limit, unit)
        own = _amount(guaranteed, unit) * percent * (1.0 if factor is None else _user_part(limits, factor))
        step = 1 if facts.smallest is None else max(_amount(facts.smallest, unit), 1)
        own = math.ceil(own / step - 1e-6) * step
        if need > shown and need > max(own, shown if shown < _amount(limits.am_limit, unit) else 0):
            return True
    return False


def _user_part(limits: QueueLimits, factor: float) -> float:
    """Return the part of a queue's limit for AMs that is one user's: equal parts, but at least the minimum.

    A factor of -1 stands for no such limit, so that one user may have all of it.
    """
    if factor < 0:
        return 1.0
    least = (limits.setting("minimum-user-limit-percent") or 0.0) / 100.0
    return min(max(least, 1.0 / max(len(limits.users), 1)), 1.0) * factor


def _passed_over(facts: Facts, limits: QueueLimits) -> bool:
    """Return whether applications wait in a Capacity Scheduler's leaf although no limit of running ones is reached."""
    above = facts.limits.upwards(limits.path)
    return limits.applications > limits.running and not any(
        one.max_running is not None and one.running >= one.max_running for one in above
    )


@dataclass(frozen=True, slots=True)
class _Shortage:
    """A resource that is at its limit.

    Parameters
    ----------
    unit
        ``MiB`` or ``vcores``.
    has, most
        What is held, and the limit.
    more
        What the next application asks for; 0 where that is not known.
    """

    unit: str
    has: int
    most: int
    more: int

    def words(self, whose: str) -> str:
        """Describe the usage, the limit and the further need."""
        held = f"{whose} hold {self.has:,} of at most {self.most:,} {self.unit} there"
        if not self.more:
            return held
        lacking = self.has + self.more - self.most
        tail = f"{lacking:,} more than is left" if lacking > 0 else "which is left by now"
        return f"{held}, and the next one asks for {self.more:,} {self.unit}, {tail}"


def _does_not_fit(facts: Facts, used: Resource, limit: Resource, ask: Resource | None) -> _Shortage:
    """Return the resource of which the next container exceeds the limit."""
    size = ask or ZERO
    if used.memory_mb + size.memory_mb <= limit.memory_mb and facts.counts_vcores:
        return _Shortage("vcores", used.vcores, limit.vcores, size.vcores)
    return _Shortage("MiB", used.memory_mb, limit.memory_mb, size.memory_mb)


def _am_share(facts: Facts, limits: QueueLimits, ask: Resource | None) -> Hold:
    short = _does_not_fit(facts, limits.am_used, limits.am_limit, ask)
    words = short.words("ApplicationMasters")
    path = limits.path
    if not facts.is_capacity:
        fair = facts.status.queues[path].fair_share
        whole = fair.memory_mb if short.unit == "MiB" else fair.vcores
        value = f"to {_up((short.has + short.more) / whole, 2)} or more" if whole > 0 and short.more else "higher"
        mend = f"Set it in the allocation file {value} (a part of its fair share), or to -1 (no limit)"
        return Hold(
            "am-share", path, f"maxAMShare of {path}", words, mend, has=short.has, limit=short.most, unit=short.unit
        )
    key = "maximum-am-resource-percent"
    name, now = f"{PREFIX}{limits.name_of(key)}", limits.setting(key)
    # The AM limit is a fraction of the guaranteed capacity, or of the resources available to the queue if that is more.
    one = _amount(facts.status.queues[path].fair_share, short.unit)
    least = _least(facts, short, now=now, one=one)
    # With a fraction of 1, the queue's maximum is the limit (see `_distinct`).
    limit = None if now is not None and now >= 1 else short.most
    return Hold(
        "am-share", path, name, words, _raise(now, least), has=short.has, limit=limit, unit=short.unit, least=least
    )


def _user_am_share(facts: Facts, limits: QueueLimits, user: UserUse, ask: Resource | None) -> Hold:
    short = _does_not_fit(facts, user.am_used, user.am_limit, ask)
    words = short.words(f"ApplicationMasters of {user.name}")
    percent, factor = limits.setting("maximum-am-resource-percent"), limits.setting("user-limit-factor")
    # The user's limit is a fraction of the queue's guaranteed capacity, times the factor unless that is -1.
    key, now = "maximum-am-resource-percent", percent
    if factor is not None and factor >= 0 and percent is not None and percent >= 1:
        key, now = "user-limit-factor", factor
    one = float(_amount(facts.status.queues[limits.path].fair_share, short.unit))
    if factor is not None and factor >= 0:
        one *= _user_part(limits, 1.0) * (percent or 0.0) if key == "user-limit-factor" else _user_part(limits, factor)
    least = _least(facts, short, now=now, one=one)
    mend = _raise(now, least)
    if key != "user-limit-factor" and factor is not None and factor >= 0:
        mend += f", or {PREFIX}{limits.name_of('user-limit-factor')} (now {_few(factor)})"
    return Hold(
        "user-am-share",
        limits.path,
        f"{PREFIX}{limits.name_of(key)}",
        words,
        mend,
        has=short.has,
        limit=short.most,
        unit=short.unit,
        least=least,
    )


def _amount(of: Resource, unit: str) -> int:
    return of.vcores if unit == "vcores" else of.memory_mb


def _least(facts: Facts, short: _Shortage, *, now: float | None, one: float) -> float | None:
    """Return a value of a Capacity Scheduler's setting with which its limit lets one more AM start.

    The limit is the setting times a base, rounded up to a multiple of the smallest container
    (``AbstractLeafQueue.getUserAMResourceLimitPerPartition``, ``calculateAndGetAMResourceLimitPerPartition``). So the
    limit in force may be nearly one smallest container above that product, and does not grow in proportion. ``one`` is
    a lower bound of the limit with the value 1, from the queue's capacity; ``now`` is the present value. The result is
    always above ``now``. It is None if no sufficient value can be determined, or if one more is within the limit.
    """
    need, limit = short.has + short.more, short.most
    if not short.more or need <= limit:
        return None
    step = 0 if facts.smallest is None else _amount(facts.smallest, short.unit)
    if step > 0:
        # A product one unit above a multiple of the step is rounded up to the next multiple.
        product, before = (need + step - 1) // step * step - step + 1, limit - step
    else:
        # The step is unknown, and thus by how much the limit in force exceeds the product.
        product, before = need, 0
    # The limit in force is at least the setting times the base. Otherwise ``one`` is not a lower bound of the base.
    fits = now is not None and now * one <= limit
    enough = [product / one] if one > 0 and fits else []
    if now and before > 0:
        enough.append(now * product / before)
    return min((value for value in enough if now is None or value > now), default=None)


def _raise(now: float | None, least: float | None) -> str:
    return f"Raise it{'' if now is None else f' from {_few(now)}'}" + (
        "" if least is None else f" to {_up(least, 2)} or more"
    )


def _of_users(facts: Facts, path: str, names: Iterable[str]) -> Iterator[Hold]:
    """Yield the user limits of a Capacity Scheduler's leaf for those users who have reached theirs."""
    limits = facts.limits.queues.get(path)
    wanted = set(names)
    for user in limits.users if limits is not None else ():
        if user.name in wanted and limits is not None and (hold := _user_limit(facts, limits, user)) is not None:
            yield hold


def _user_limit(facts: Facts, limits: QueueLimits, user: UserUse) -> Hold | None:
    """Return the hold by a user's limit if the user holds more than that."""
    for unit, has, most in (
        ("MiB", user.used.memory_mb, user.limit.memory_mb),
        ("vcores", user.used.vcores, user.limit.vcores),
    ):
        if (unit == "vcores" and not facts.counts_vcores) or not 0 < most < has:
            continue
        factor = limits.setting("user-limit-factor")
        key = "user-limit-factor" if factor is not None and factor >= 0 else "minimum-user-limit-percent"
        now = limits.setting(key)
        if key == "minimum-user-limit-percent" and now is not None and now >= 100:
            # Such a limit is all that the queue has and one container more (``UsersManager.computeUserLimit``); the
            # RM shows it as it was before the queue's last container.
            continue
        mend = f"Raise it{'' if now is None else f' from {_few(now)}'}"
        if key == "user-limit-factor":
            mend += " (-1: no limit, since Hadoop 3.4)"
        words = f"{user.name} holds {has:,} {unit} there, and gets no more above {most:,} {unit}"
        name = f"{PREFIX}{limits.name_of(key)}"
        return Hold("user-limit", limits.path, name, words, mend, has=has, limit=most, unit=unit)
    return None


def _few(value: float) -> str:
    """Format a setting with few decimals (REST shows float32)."""
    return f"{value:.4f}".rstrip("0").rstrip(".")


def _up(value: float, digits: int) -> str:
    """Round up, so that the reported amount suffices."""
    scale = 10**digits
    return f"{math.ceil(value * scale - 1e-9) / scale:.{digits}f}"
