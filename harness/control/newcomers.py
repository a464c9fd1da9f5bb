"""Which queue each new one was: renamed, moved or copied in a file that has a controller's shares.

A share that a controller wrote is as good as a signature: to the last digit it tells the queue that it was written for.
A round share is not, because a person may have written it, and counts under narrower conditions.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

#: Marks a removed queue whose entitlement a new queue has.
RENAMED = "renamed"
#: Number of the queues removed last with whose shares a new queue's is compared if a person may have written it.
LATELY = 20


def parent(path: str) -> str:
    """Return the path of a queue's parent; "" for the root."""
    return path.rpartition(".")[0]


def leaf(path: str) -> str:
    """Return a queue's own name."""
    return path.rpartition(".")[2]


@dataclass(frozen=True, slots=True)
class Likeness:
    """A new queue with a share that a controller wrote for ``model``; of several the lowest ``rank`` is likeliest."""

    path: str
    model: str
    rank: tuple[bool, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Models:
    """The queues whose entitlement a new queue may have.

    Parameters
    ----------
    known
        By queue: its ``baseline``, and what a controller wrote (``ours``) of each attribute. Removed ones come first.
    wrote
        Each share that a controller wrote -> the queues for which it did -> whether it was the last one.
    left
        Those that the present change of the configuration has removed.
    later
        Those that an earlier change has removed, and of which no new queue has the entitlement yet.
    managed
        Those that are there.
    beside
        The parents among whose children a controller's shares may stand.
    """

    known: Mapping[str, Mapping[str, Any]]
    wrote: Mapping[Any, Mapping[str, bool]]
    left: Collection[str]
    later: Collection[str]
    managed: Collection[str]
    beside: Collection[str]

    def likenesses(self, new: Mapping[str, object], by_hand: Callable[[object], bool]) -> list[Likeness]:
        """Return the models of new queues, the likeliest first.

        Parameters
        ----------
        new
            By path, in the order of the document: the queue's share. Likenesses of one rank keep that order.
        by_hand
            Whether a person may have written a share.
        """
        found = [
            Likeness(path, model, self._rank(path, model, last))
            for path, share in new.items()
            for model, last in self.wrote.get(share, {}).items()
            if not by_hand(share) or self._counts_if_round(path, model, last)
        ]
        return sorted(found, key=lambda one: one.rank)

    def _rank(self, path: str, model: str, last: bool) -> tuple[bool, ...]:
        """Moved with its name, else renamed below its parent, else any."""
        return model not in self.left, not last, leaf(model) != leaf(path), parent(model) != parent(path)

    def _counts_if_round(self, path: str, model: str, last: bool) -> bool:
        """Whether a share that a person may have written tells the model all the same."""
        near = parent(model) == parent(path) or leaf(model) == leaf(path)
        if model in self.left and "named" not in self.known[model]:
            return last or near
        return last and near and model in self.later and parent(path) in self.beside

    def choose(self, found: Iterable[Likeness]) -> dict[str, Likeness]:
        """Return the likeness of each new queue; a removed queue is the model of as few of them as possible."""
        found = list(found)
        chosen: dict[str, Likeness] = {}
        used: set[str] = set()
        for one in found:
            if one.path not in chosen and one.model not in used:
                chosen[one.path] = one
                if one.model not in self.managed:
                    used.add(one.model)
        # A queue that was split in two, or renamed and copied: there are more new queues than removed ones.
        return {one.path: one for one in reversed(found)} | chosen

    def last_written_for(self, share: object, path: str) -> list[str]:
        """Return the queues for which a controller wrote this share last, those of the path's own name first."""
        found = [model for model, last in self.wrote.get(share, {}).items() if last]
        return sorted(found, key=lambda model: leaf(model) != leaf(path))
