"""Divide a parent's account among its leaves when children are created or removed. Pure arithmetic.

A parent's account is the sum of its leaves' accounts. A scheduler creates and removes children by itself (auto-created
queues of a Capacity Scheduler, ad hoc queues of a Fair Scheduler), which changes neither what the parent has used nor
its entitlement. So the parent's usage per weight (its level) stays as it was, and with an unchanged weight its account:

- A new leaf starts at its parent's level, so within its parent it is neither owed anything nor owes anything.
- The siblings give the new leaf its account, each in the ratio of its weight, so that what they are owed by each other
  stays as it was. An account that would fall below 0 becomes 0, and the others give more.
- The siblings take over the account of a removed leaf, in the ratio of their weights. The leaf keeps a copy. If it
  returns, it takes this account back from its siblings, and so continues as if it had been there and idle.

All of this holds for each parent below the root. The root has no account: it is owed nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

#: An array of shape (figures,): the parts of one account that are 0 or more and add up.
Figures = npt.NDArray[np.float64]


def paths_above(path: str) -> Iterator[str]:
    """Yield the paths of the queues above one and below the root, the nearest first."""
    path = path.rpartition(".")[0]
    while "." in path:
        yield path
        path = path.rpartition(".")[0]


def is_below(path: str, parent: str) -> bool:
    """Return whether a queue is the parent itself or below it."""
    return path == parent or path.startswith(parent + ".")


@dataclass(frozen=True, slots=True)
class Group:
    """The leaves of a parent, of which some were created or removed.

    Parameters
    ----------
    parent
        The parent's path. It may have been a leaf itself before, or be one now.
    before
        The leaves with a part of the parent's account.
    members
        The leaves that are there now.
    """

    parent: str
    before: tuple[str, ...]
    members: tuple[str, ...]

    @property
    def staying(self) -> tuple[str, ...]:
        """The leaves that were and are there."""
        return tuple(leaf for leaf in self.members if leaf in self.before)

    @property
    def removed(self) -> tuple[str, ...]:
        """The leaves that are not there any more."""
        return tuple(leaf for leaf in self.before if leaf not in self.members)

    def children(self) -> Iterator[Group]:
        """Yield the group of each present child of the parent."""
        below: dict[str, tuple[list[str], list[str]]] = {}
        depth = self.parent.count(".") + 2
        for position, leaves in enumerate((self.members, self.before)):
            for leaf in leaves:
                below.setdefault(".".join(leaf.split(".")[:depth]), ([], []))[position].append(leaf)
        for child, (members, before) in below.items():
            if members:
                yield Group(child, tuple(before), tuple(members))


def groups(before: Collection[str], now: Collection[str]) -> Iterator[Group]:
    """Yield the parents whose leaves have changed: none of them is below another one.

    Parameters
    ----------
    before
        The leaves with an account that is in no other leaf's.
    now
        The leaves that are there now.
    """
    had = {path for leaf in before for path in (leaf, *paths_above(leaf))}
    has = {path for leaf in now for path in (leaf, *paths_above(leaf))}
    parents = set()
    for leaves, others, known in ((now, set(before), had), (before, set(now), has)):
        for leaf in leaves:
            if leaf not in others and (parent := _nearest(leaf, known)) is not None:
                parents.add(parent)
    for parent in sorted(parents):
        if parents.isdisjoint(paths_above(parent)):
            own = tuple(leaf for leaf in before if is_below(leaf, parent))
            yield Group(parent, own, tuple(leaf for leaf in now if is_below(leaf, parent)))


def _nearest(leaf: str, known: Collection[str]) -> str | None:
    """Return the nearest of the known paths at or above a leaf and below the root."""
    return next((path for path in (leaf, *paths_above(leaf)) if path in known and "." in path), None)


def divided(
    group: Group,
    total: Figures,
    accounts: Mapping[str, Figures],
    weights: Mapping[str, float],
    growth: Callable[[Group], float],
) -> dict[str, Figures]:
    """Return the accounts of a parent's present leaves, which add up to its own account.

    Parameters
    ----------
    group
        The parent and its leaves.
    total
        The parent's account.
    accounts
        The accounts of its leaves before and of those that return.
    weights
        The present entitlements of all leaves.
    growth
        Returns the factor by which a parent's entitlement changes because leaves below it were created or removed.
    """
    if group.members == (group.parent,):
        return {group.parent: total}
    children = list(group.children())
    parts = [sum(weights[leaf] for leaf in child.members) for child in children]
    level = total / sum(parts)
    own = [_account(child, accounts, weights, level, growth) for child in children]
    # The new ones come first, then those that return, as far as it is there. Who was there before has the rest.
    ranks = [2 if child.before else int(not accounts.keys().isdisjoint(child.members)) for child in children]
    rest = total
    for rank in range(max(ranks) + 1):
        places = [place for place in range(len(children)) if ranks[place] == rank]
        if not places:
            continue
        sums = np.array([own[place] for place in places])
        weight = [parts[place] for place in places]
        wanted = sums.sum(axis=0)
        for column, amount in enumerate(rest.tolist()):
            if rank == max(ranks) or wanted[column] > amount:
                sums[:, column] = shifted(sums[:, column], weight, amount)
        rest = np.maximum(rest - wanted, 0.0)
        for place, amounts in zip(places, sums, strict=True):
            own[place] = amounts
    found: dict[str, Figures] = {}
    for child, amounts in zip(children, own, strict=True):
        found |= divided(child, amounts, accounts, weights, growth)
    return found


def _account(
    child: Group,
    accounts: Mapping[str, Figures],
    weights: Mapping[str, float],
    level: Figures,
    growth: Callable[[Group], float],
) -> Figures:
    """Return what a child of a group has of its own; a leaf without an account is at the parent's level."""
    if child.before:
        return np.asarray(np.sum([accounts[leaf] for leaf in child.before], axis=0) * growth(child))
    return np.asarray(np.sum([accounts.get(leaf, level * weights[leaf]) for leaf in child.members], axis=0))


def shifted(amounts: Sequence[float] | Figures, weights: Sequence[float] | Figures, total: float) -> Figures:
    """Return amounts of at least 0 with this sum: each differs from before by the same amount per weight, or is 0."""
    before, by = np.asarray(amounts, dtype=np.float64), np.asarray(weights, dtype=np.float64)
    taking = np.ones(len(before), dtype=bool)
    while taking.any():
        after = before + by * ((total - before[taking].sum()) / by[taking].sum())
        short = taking & (after < 0)
        if not short.any():
            return np.where(taking, after, 0.0)
        taking &= ~short
    return np.zeros(len(before))
