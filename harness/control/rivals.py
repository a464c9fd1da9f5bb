"""Evidence that another controller writes the same configuration, where no lease announces it.

One computed share proves little, because a person may write many digits. Two controllers overwrite each other in every
period, though, so two computed edits within a few reads are taken for a second controller. Some of the shares that it
writes are round by chance and look like an administrator's. The first of them may already be an entitlement when the
evidence is complete; it is withdrawn then.
"""

from __future__ import annotations

from collections.abc import Iterator, Set
from dataclasses import dataclass, field
from typing import Any

#: Two computed edits at most this many reads apart are another controller's. Its round shares are recognised in as many
#: reads before the first of them and after the last.
SOON = 5


@dataclass(frozen=True, slots=True)
class Taken:
    """A share that became an entitlement. ``text``: the administrator's own text of the share ``before``."""

    read: int
    before: Any
    share: Any
    text: str | None


@dataclass(slots=True)
class Rivals:
    """What the last reads have shown of another controller."""

    reads: int = 0
    #: Whether another controller has written within the last reads.
    seen: bool = False
    _computed: list[int] = field(default_factory=list)
    _taken: dict[str, Taken] = field(default_factory=dict)

    @property
    def lately(self) -> Set[str]:
        """Queues whose share has become their entitlement within the last reads."""
        return self._taken.keys()

    def note(self, *, computed: bool) -> None:
        """Record whether this read has found computed shares that somebody else has written."""
        if computed:
            self._computed = [*self._computed[-1:], self.reads]
        if len(self._computed) == 2 and self._computed[1] - self._computed[0] <= SOON:
            self.seen = True
        if self._computed and self.reads - self._computed[-1] > SOON:
            self.seen = False
        old = [path for path, taken in self._taken.items() if self.reads - taken.read > 2 * SOON]
        for path in old:
            del self._taken[path]

    def took(self, path: str, before: object, share: object, text: str | None) -> None:
        """Record that a share has become a queue's entitlement.

        Of several within a short time, the entitlement before the first one is kept.
        """
        first = self._taken.get(path)
        if first is not None:
            before, text = first.before, first.text
        self._taken[path] = Taken(self.reads, before, share, text)

    def withdraw(self) -> Iterator[tuple[str, Taken]]:
        """Yield and forget the shares that became entitlements while another controller was writing."""
        while self.seen and self._taken:
            yield self._taken.popitem()
