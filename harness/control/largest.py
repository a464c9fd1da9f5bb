"""The largest capacity that a cluster has had lately, against which figures are checked."""

from __future__ import annotations

from harness.model.resources import Resource

#: A capacity that was shown last before so much time with polls counts no more, at the latest after twice that time,
#: seconds.
RECENT_S = 3600.0
#: A pause between two polls counts as time with polls up to so many periods.
_PERIODS = 2.0


class RecentLargest:
    """The largest capacity or usage that a cluster has shown within the last hour or two of polls.

    A figure of an application covers the time since the application was last shown, so an earlier capacity can explain
    no figure of now. Otherwise usage of its former size would be believed of a cluster that has shrunk for good. A
    cluster that grows shows the new capacity in the same poll. Time without polls does not count: after an outage,
    figures cover the time before it, and after a restart of the ResourceManager its nodes come back one after another.

    Parameters
    ----------
    capacity : Resource
        The capacity that was known before the first poll.
    period_s : float
        The control period, seconds.
    """

    def __init__(self, capacity: Resource, period_s: float) -> None:
        self._before = self._now = capacity
        self._most_s = _PERIODS * period_s
        self._polled_s = 0.0
        self._looked_s: float | None = None

    def show(self, now_s: float, shown: Resource) -> None:
        """Take note of a capacity or usage that a poll at ``now_s`` (seconds) has shown."""
        if self._looked_s is not None:
            self._polled_s += min(max(now_s - self._looked_s, 0.0), self._most_s)
        self._looked_s = now_s
        if self._polled_s >= RECENT_S:
            self._before, self._now, self._polled_s = self._now, shown, 0.0
        else:
            self._now = self._now.at_least(shown)

    @property
    def capacity(self) -> Resource:
        """The largest capacity of late."""
        return self._before.at_least(self._now)
