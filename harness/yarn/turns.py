"""Estimate when a limit that blocks a queue or an application will admit the next application or container. No I/O.

A limit of applications or AMs admits the next one when a running application ends, and a limit of resources when
containers end. The estimate assumes that they end at the recent rate, and its text states this. If nothing has ended
recently, or if no end would help, the result contains a reason instead of an estimate.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from harness.base.words import counted, seconds
from harness.model.resources import Resource
from harness.yarn.answers import AppStatus
from harness.yarn.holds import LIVE, Facts, Hold, ask_of_queue, counts_as_running, waits_for_master

_OF_MASTERS = frozenset({"am-share", "user-am-share"})
_OF_USERS = frozenset({"user-am-share", "user-running-apps", "user-limit"})


@dataclass(frozen=True, slots=True)
class Turn:
    """The estimated time until a limit admits the next application or container.

    ``expected_s``: seconds until then (None: unknown, or never without a change). ``words``: a sentence with the
    estimate and its basis, or with the reason why there is none.
    """

    expected_s: float | None
    words: str


def turn_of_hold(facts: Facts, hold: Hold, path: str, user: str = "", before: int = 0) -> Turn:
    """Estimate when one limit admits the next application or container.

    Parameters
    ----------
    facts
        The ResourceManager's figures.
    hold
        The limit.
    path
        The blocked leaf queue, or the queue of the blocked application.
    user
        The user of the blocked application. If a whole queue is explained (""), the user of its first waiting
        application is used.
    before
        Number of applications ahead of it that wait for the same limit.
    """
    if not user and hold.kind in _OF_USERS:
        user = next((app.user for app in facts.waiting(path)), "")
    if hold.kind in ("maximum", "user-limit"):
        return _by_containers(facts, hold, path, before)
    return _by_applications(facts, hold, path, user, before)


def turn(facts: Facts, holds: Sequence[Hold], path: str, user: str = "", before: int = 0) -> Turn | None:
    """Estimate when all limits together admit the next application or container; None if there is no limit.

    The parameters are those of `turn_of_hold`.
    """
    turns = [turn_of_hold(facts, hold, path, user, before) for hold in holds]
    if not turns:
        return None
    unknown = [one for one in turns if one.expected_s is None]
    return unknown[0] if unknown else max(turns, key=lambda one: one.expected_s or 0.0)


def _by_applications(facts: Facts, hold: Hold, path: str, user: str, before: int) -> Turn:
    """Estimate when enough applications have ended, from the number of ends within the last hour."""
    whose = f"{hold.queue} of {user}" if hold.kind == "user-am-share" else hold.queue
    if hold.kind == "user-running-apps":
        whose = f"{user} in all queues"

    def counts(app: AppStatus) -> bool:
        inside = hold.kind == "user-running-apps" or (app.queue + ".").startswith(hold.queue + ".")
        return inside and (hold.kind not in _OF_USERS or app.user == user)

    # A Fair Scheduler's limit on masters counts those with a container, the others count who may run.
    by_container = hold.kind in _OF_MASTERS and not facts.is_capacity

    def runs(app: AppStatus) -> bool:
        return not waits_for_master(app) if by_container else counts_as_running(facts, app)

    running = [app for app in facts.apps if counts(app) and app.state in LIVE and runs(app)]
    # Those that run without a container of their own wait ahead for that, and not for this limit.
    before = max(before - sum(runs(app) for app in facts.waiting(path)), 0)
    if by_container and (grows := _grows(facts, hold, path, len(running))):
        return grows
    if not running:
        return Turn(None, f"No application of {whose} runs, so no end of one brings its turn: change the setting.")
    needed = 1
    if hold.kind in _OF_MASTERS:
        limit = hold.limit if hold.limit is not None else math.inf
        lacking = (hold.has or 0.0) + _size_of_next(facts, hold, path) - limit
        each = (hold.has or 0.0) / len(running)
        if lacking > 0 and each > 0 and lacking < math.inf:
            needed = min(max(math.ceil(lacking / each - 1e-9), 1), len(running))
    needed += before
    number = len(running)
    if needed > number:
        some = "the running application" if number == 1 else f"the {number:,} running applications"
        ends = f"{some} of {whose} and {needed - number:,} of those ahead of it have ended"
    elif number == 1:
        ends = f"the running application of {whose} ends"
    else:
        ends = f"{'one' if needed == 1 else f'{needed:,}'} of the {number:,} running applications of {whose} "
        ends += "ends" if needed == 1 else "have ended"
    when = f"Its turn comes when {ends}"
    if facts.ended is None or facts.ended_window_s <= 0:
        return Turn(None, f"{when}. When is not known: the ResourceManager does not show what ended lately.")
    lately = sum(counts(app) for app in facts.ended)
    span = seconds(facts.ended_window_s)
    if not lately:
        ages = [app.elapsed_ms / 1000.0 for app in running if app.elapsed_ms is not None]
        known = f"; the oldest that runs was submitted {seconds(max(ages))} ago" if ages else ""
        return Turn(None, f"{when}. When is not known: none has ended in the last {span}{known}.")
    expected = needed * facts.ended_window_s / lately
    return Turn(
        expected,
        f"{when}, which is expected in about {seconds(expected)}: {counted(lately, 'application')} of {whose} ended in "
        f"the last {span}, and that it goes on so is assumed.",
    )


def _grows(facts: Facts, hold: Hold, path: str, running: int) -> Turn | None:
    """Return when a Fair Scheduler's limit on masters lets one more through, if no end of the queue's own helps.

    It is a part of the queue's fair share at the moment, which grows while other queues have nothing to run.
    """
    queue, size = facts.status.queues[path], _size_of_next(facts, hold, path)
    if hold.limit is None or (running and size <= hold.limit):
        return None
    # The limit is a part of the fair share at the moment, and at most that part of all that the queue may have.
    share, most, whole = (_in_unit(hold, of) for of in (queue.fair_share, queue.maximum, facts.status.capacity))
    if size and share > 0 and hold.limit * min(most, whole) < size * share:
        return Turn(
            None,
            f"Its turn does not come by itself: even of all that {path} may have, the part for masters is below the "
            f"{size:,} {hold.unit} of one.",
        )
    return Turn(
        None,
        f"Its turn comes when the fair share of {path} has grown, of which the limit is a part: it grows while other "
        "queues have nothing to run. When is not known.",
    )


def _size_of_next(facts: Facts, hold: Hold, path: str) -> int:
    """Return the size of a queue's next container in the unit of a limit; 0 if that is not known."""
    ask = ask_of_queue(facts, path)
    return 0 if ask is None else _in_unit(hold, ask)


def _in_unit(hold: Hold, resource: Resource) -> int:
    """Return the amount that a limit counts: vcores or MiB."""
    return resource.vcores if hold.unit == "vcores" else resource.memory_mb


def _by_containers(facts: Facts, hold: Hold, path: str, before: int) -> Turn:
    """Estimate when enough containers have ended, from the number of ends since the ResourceManager's start."""
    # The RM does not count a user's containers separately, so those of the leaf are used.
    queue = facts.status.queues[hold.queue]
    ask = ask_of_queue(facts, path)
    size = 1 if ask is None else _in_unit(hold, ask)
    has, most = hold.has or 0.0, hold.limit or 0.0
    # A user gets the next container while the usage does not exceed the limit, and may thus exceed it by one container.
    lacking = max(has - most if hold.kind == "user-limit" else has + size - most, 0.0) + before * size
    if hold.kind == "maximum" and size > most:
        return Turn(
            None, f"Its turn does not come by itself: the maximum is below the {size:,} {hold.unit} of one ask."
        )
    held = _in_unit(hold, queue.used)
    each = held / queue.containers_allocated if queue.containers_allocated > 0 else float(size)
    needed = max(math.ceil(lacking / each - 1e-9), 1) if each > 0 else 1
    whose = f"{hold.queue} of this user" if hold.kind == "user-limit" else hold.queue
    when = f"Its turn comes when {counted(needed, 'container')} of {whose} {'has' if needed == 1 else 'have'} ended"
    every = facts.released_every_s.get(hold.queue)
    if every is None:
        return Turn(
            None, f"{when}. When is not known: none of its containers has ended since the ResourceManager's start."
        )
    if hold.kind == "user-limit" and len({app.user for app in facts.apps if app.queue == hold.queue}) > 1:
        return Turn(None, f"{when}. When is not known: the ResourceManager counts no ends of one user's containers.")
    return Turn(
        needed * every,
        f"{when}, which is expected in about {seconds(needed * every)}: on the average one of the queue has ended each "
        f"{every:.1f} s since the ResourceManager's start, and that it goes on so is assumed.",
    )
