"""Keep siblings' weights while their shares would hardly change, so that files are written rarely. No I/O."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from harness.base.sums import left_fold_sum
from harness.model.plan import Attributes


def keep_small_changes(
    wanted: Attributes, written: Attributes, threshold: float, changed: Collection[str] = ()
) -> Attributes:
    """Return the wanted attributes, with the written weights of every sibling group whose shares hardly change.

    A group keeps all of its weights or none, which preserves the written ratios of weights and the written sum of
    capacities.

    Parameters
    ----------
    wanted
        The attributes that the policy plans.
    written
        The attributes written last.
    threshold
        A group is written if the share of one of its queues grows or shrinks by at least this fraction; the larger of
        the two shares is compared with the smaller.
    changed
        Parents of queues that were added, were removed or have another entitlement than when `written` was decided. The
        groups below them are written.

    Returns
    -------
    kept : Attributes
        The wanted attributes, in which the weights of some groups are the written ones. A group with a new or removed
        queue, or with a changed minimum share, maximum share or scheduling policy, always has the wanted weights.
    """
    if threshold <= 0:
        return wanted
    groups: dict[str, set[str]] = {}
    for name in (*wanted.weights, *written.weights):
        groups.setdefault(name.rpartition(".")[0], set()).add(name)
    others = _others(wanted), _others(written)
    kept: dict[str, float] = {}
    for parent, names in groups.items():
        if not (names <= wanted.weights.keys() and names <= written.weights.keys()) or parent in changed:
            continue
        if any(others[0].get(name) != others[1].get(name) for name in names):
            continue
        new, old = _shares(wanted.weights, names), _shares(written.weights, names)
        # A ratio that is not below the threshold counts as a change; so does NaN.
        if all(max(new[name], old[name]) < (1 + threshold) * min(new[name], old[name]) for name in names):
            kept.update({name: written.weights[name] for name in names})
    if not kept:
        return wanted
    return replace(wanted, weights={name: kept.get(name, weight) for name, weight in wanted.weights.items()})


def _shares(weights: Mapping[str, float], names: Collection[str]) -> dict[str, float]:
    total = left_fold_sum(weights[name] for name in sorted(names))
    return {name: weights[name] / total for name in names}


def _others(attributes: Attributes) -> dict[str, tuple[object, ...]]:
    """Return all attributes of a queue except its weight."""
    maps: tuple[Mapping[str, object], ...] = (
        attributes.min_shares,
        attributes.max_shares,
        attributes.scheduling_policies,
    )
    names = {name for own in maps for name in own}
    return {name: tuple(own.get(name) for own in maps) for name in names}
