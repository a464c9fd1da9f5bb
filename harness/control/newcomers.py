"""Find the queue from which a new queue was renamed, moved or copied in a file with a controller's shares.

The digits of a share that a controller computed identify the queue for which it was written. A round share does not,
because a person may have written it; it counts only under narrower conditions.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

#: Marks a removed queue whose entitlement a new queue has taken over.
RENAMED = "renamed"
#: A share that a person may have written is compared only with the shares of this many most recently removed queues.
LATELY = 20


def parent(path: str) -> str:
    """Return the path of a queue's parent; "" for the root."""
    return path.rpartition(".")[0]


def leaf(path: str) -> str:
    """Return a queue's own name."""
    return path.rpartition(".")[2]


@dataclass(frozen=True, slots=True)
class Likeness:
    """A new queue with a share that a controller wrote for ``model``.

    Of several likenesses of a queue, the one with the lowest ``rank`` is the likeliest.
    """

    path: str
    model: str
    rank: tuple[bool, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Models:
    """The queues whose entitlement a new queue may have.

    Parameters
    ----------
    known
        Queue -> its ``baseline``, and the values that a controller wrote (``ours``) for each attribute. Removed queues
        come first.
    wrote
        Share -> queue -> whether that share was the last that a controller wrote for the queue.
    left
        The queues that the present change of the configuration has removed.
    replaced
        The present queues to which the present change has given another share. A queue of this name may be a new one,
        and the queue that it was may have another name now.
    later
        The queues that earlier changes have removed and whose entitlement no new queue has taken over.
    managed
        The present queues with managed shares.
    beside
        The parents whose new children may have a controller's shares.
    """

    known: Mapping[str, Mapping[str, Any]]
    wrote: Mapping[Any, Mapping[str, bool]]
    left: Collection[str]
    replaced: Collection[str]
    later: Collection[str]
    managed: Collection[str]
    beside: Collection[str]

    def likenesses(self, new: Mapping[str, object], by_hand: Callable[[object], bool]) -> list[Likeness]:
        """Return the models of new queues, the likeliest first.

        Parameters
        ----------
        new
            New queue's path -> its share, in the order of the document. Likenesses of equal rank keep that order.
        by_hand
            Returns whether a person may have written a share.
        """
        found = [
            Likeness(path, model, self._rank(path, model, last))
            for path, share in new.items()
            for model, last in self.wrote.get(share, {}).items()
            if not by_hand(share) or self._counts_if_round(path, model, last)
        ]
        return sorted(found, key=lambda one: one.rank)

    def _rank(self, path: str, model: str, last: bool) -> tuple[bool, ...]:
        """Rank a model by four criteria; the lowest rank is the likeliest.

        The criteria, in order of importance: the present change removed or replaced the model; the share was the last
        one written for the model; the model has the new queue's name (moved); the model has the new queue's parent
        (renamed).
        """
        away = model in self.left or model in self.replaced
        return not away, not last, leaf(model) != leaf(path), parent(model) != parent(path)

    def _counts_if_round(self, path: str, model: str, last: bool) -> bool:
        """Return whether a share that a person may have written still identifies the model."""
        near = parent(model) == parent(path) or leaf(model) == leaf(path)
        if model in self.left and "named" not in self.known[model]:
            return last or near
        if model in self.replaced:
            return last and near
        return last and near and model in self.later and parent(path) in self.beside

    def choose(self, found: Iterable[Likeness]) -> dict[str, Likeness]:
        """Choose a likeness for each new queue, preferring not to use a removed queue as the model of several."""
        found = list(found)
        chosen: dict[str, Likeness] = {}
        used: set[str] = set()
        for one in found:
            if one.path not in chosen and one.model not in used:
                chosen[one.path] = one
                if one.model not in self.managed or one.model in self.replaced:
                    used.add(one.model)
        # If there are more new queues than removed ones (a queue was split in two, or renamed and copied), the others
        # get their likeliest model.
        return {one.path: one for one in reversed(found)} | chosen

    def last_written_for(self, share: object, path: str) -> list[str]:
        """Return the queues for which a controller wrote this share last, those with the same own name first."""
        found = [model for model, last in self.wrote.get(share, {}).items() if last]
        return sorted(found, key=lambda model: leaf(model) != leaf(path))
