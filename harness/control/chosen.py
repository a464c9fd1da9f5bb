"""Tell a share that a person has chosen from one of an older copy, where a controller wrote the same share once.

A share with many digits identifies the controller that computed it. A round one does not: 5 may be the administrator's
new weight, or a weight that a controller wrote an hour ago. The queue alone cannot tell, but its siblings can, because
whoever saves a document has seen all shares of a group. If siblings have shares that no controller wrote for them and
that are not their entitlements of before, a person has edited the group. Every other share that differs from what stood
there last is then either that person's choice as well, or it comes from an older copy in which the person edited the
siblings:

- If one of these shares has many digits, it is an older copy.
- If more siblings have a share that a controller wrote, earlier or last, than a new one, it is taken for an older copy,
  because a chosen share equals one of the controller's by chance only.
- Otherwise the group is the person's.

Without a new share nothing shows a person: a document that a controller wrote has none, however old it is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from harness.control.newcomers import parent


@dataclass(frozen=True, slots=True)
class KnownShares:
    """The shares that are known of a queue.

    Parameters
    ----------
    own
        The share of the queue's entitlement, in all forms.
    last
        The shares that a controller has written last and that may stand there still.
    earlier
        The shares that controllers have written before.
    """

    own: Collection[object]
    last: Collection[object]
    earlier: Collection[object]


def chosen_again(
    shares: Mapping[str, object], known: Mapping[str, KnownShares], by_hand: Callable[[object], bool]
) -> set[str]:
    """Return the queues whose share a person has chosen although a controller wrote the same share earlier.

    Parameters
    ----------
    shares
        Queue -> its present share.
    known
        Queue -> its known shares. Queues without an entry are new, and show nothing about their siblings.
    by_hand
        Returns whether a person may have written a share.
    """
    again: dict[str, set[str]] = {}
    edited: Counter[str] = Counter()
    left: Counter[str] = Counter()
    older = set[str]()
    for path in shares.keys() & known.keys():
        share, above = shares[path], parent(path)
        if share in known[path].own:
            continue
        if share in known[path].last:
            left[above] += 1
        elif not by_hand(share):
            older.add(above)
        elif share in known[path].earlier:
            again.setdefault(above, set()).add(path)
        else:
            edited[above] += 1
    his = {above for above, paths in again.items() if len(paths) + left[above] <= edited[above]} - older
    return {path for above in his for path in again[above]}
