"""Decide whether a ResourceManager's figures of an application are possible. No I/O.

The figures are wrong if the RM's clock was set (an application ends before it starts, or in the future), after an
overflow, or if a proxy changes answers. Commands that use an application's figures directly (`record`, `assess`,
`explain`, `top`) check them here first, and name the applications that they leave out. A controller also checks the
differences between polls, with the same arithmetic (harness.ledger.accounts).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from harness.base.words import counted
from harness.ledger.plausible import too_much
from harness.model.resources import Resource
from harness.yarn.answers import AppStatus

#: Factor by which a cluster may have been larger when an application ran.
ONCE_LARGER = 10
#: Containers are assumed to have at least this many MiB per vcore.
LEAST_MIB = 32
#: Times of one clock that differ by less count as equal.
_ROUGH_MS = 1000
#: A client may keep a new application's ID for this long before it submits the application.
_KEPT_MS = 3_600_000
#: A time may be this far ahead of the clock with which it is compared.
_AHEAD_MS = 300_000
#: Maximum number of applications named in a message.
MOST_NAMED = 5


@dataclass(slots=True)
class Sifted:
    """The applications of an answer whose figures are possible, and those that were left out.

    ``left_out``: application ID -> why its figures are impossible. ``clock_s``: the ResourceManager's time at that
    answer, seconds since 1970 (None: not known).
    """

    apps: list[AppStatus] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)
    clock_s: float | None = None

    def words(self) -> str:
        """Describe the applications that were left out ('': none)."""
        return left_out_words(self.left_out)


def left_out_words(left_out: dict[str, str]) -> str:
    """Describe which applications were left out and why ('': none)."""
    if not left_out:
        return ""
    shown = "; ".join(f"{app}: {why}" for app, why in list(left_out.items())[:MOST_NAMED])
    more = f"; and {len(left_out) - MOST_NAMED} more" if len(left_out) > MOST_NAMED else ""
    return f"left out {counted(len(left_out), 'application')} with figures that cannot be: {shown}{more}"


def implausible(app: AppStatus, capacity: Resource, now_s: float | None) -> str:
    """Explain why an application's times or figures are impossible ('': they are possible).

    Parameters
    ----------
    app : AppStatus
        The application.
    capacity : Resource
        The cluster's present capacity (zero: unknown). It is assumed that it was never more than `ONCE_LARGER` times as
        large.
    now_s : float or None
        The ResourceManager's clock, seconds since 1970 (None: not shown).
    """
    set_back = "the ResourceManager's clock was set"
    if app.final and app.finished_ms and app.finished_ms < max(app.started_ms, app.launched_ms) - _ROUGH_MS:
        before_s = (max(app.started_ms, app.launched_ms) - app.finished_ms) / 1000.0
        return f"it ended {before_s:,.0f} s before it began: {set_back}"
    if app.launched_ms and app.launched_ms < app.started_ms - _ROUGH_MS:
        return (
            f"its master began {(app.started_ms - app.launched_ms) / 1000.0:,.0f} s before it was started: {set_back}"
        )
    latest_ms = max(app.started_ms, app.launched_ms, app.finished_ms)
    if now_s is not None and latest_ms > now_s * 1000.0 + _AHEAD_MS:
        return f"its times lie {latest_ms / 1000.0 - now_s:,.0f} s in the future of the ResourceManager's clock"
    if app.final:
        lived_ms: float | None = app.finished_ms - app.started_ms if app.finished_ms else app.elapsed_ms
    else:
        lived_ms = app.elapsed_ms
        if lived_ms is None and app.memory_seconds > 0:
            return f"how long it has run is negative or not shown: {set_back}"
    if lived_ms is None or not capacity.memory_mb:
        return ""
    larger = Resource(capacity.memory_mb * ONCE_LARGER, capacity.vcores * ONCE_LARGER)
    return too_much(app.memory_seconds, app.vcore_seconds, lived_ms / 1000.0, larger, mib_a_vcore=LEAST_MIB)


def clock_was_set(apps: Iterable[AppStatus]) -> str:
    """Explain how the times of applications show that the ResourceManager's clock was set back ('': they do not).

    A ResourceManager numbers applications in the order of submission, but a client may keep an ID for some time before
    it submits the application.
    """
    latest: dict[str, AppStatus] = {}
    for app in sorted(apps, key=lambda app: app.id):
        start = app.id.rpartition("_")[0]
        before = latest.get(start)
        if before is not None and app.started_ms < before.started_ms - _KEPT_MS:
            back_s = (before.started_ms - app.started_ms) / 1000.0
            return (
                f"{app.id} was started {back_s:,.0f} s before {before.id}, which has a lower number: the "
                "ResourceManager's clock was set back, and times before that are not comparable with those after it"
            )
        if before is None or app.started_ms > before.started_ms:
            latest[start] = app
    return ""


def sift(apps: Iterable[AppStatus], capacity: Resource, now_s: float | None) -> Sifted:
    """Separate the applications with possible figures from the others, with reasons."""
    found = Sifted()
    for app in apps:
        why = implausible(app, capacity, now_s)
        if why:
            found.left_out[app.id] = why
        else:
            found.apps.append(app)
    return found
