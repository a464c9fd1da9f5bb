"""A reserve for queues with intermittent demand, for which dues take precedence over debts. Pure arithmetic.

Long-term fairness compares the usage of queues. Whether a queue *loses* by sharing (LTYARN eq. 3) depends on its due,
the integral of min(d_i, S_i). A queue with pauses loses at each new burst, because others' containers have to end
first, unless it had more than its due before. This surplus is its reserve. docs/decisions/horizon.md describes the rule
and the alternatives.
"""

from __future__ import annotations

from collections.abc import Sequence

from harness.base.sums import left_fold_sum
from harness.policies.filling import Joining, bounded_fill
from harness.policies.tree import Tree
from harness.policies.weights import MOST_FOR_IDLE, Basis, flat_shares, parts_of_fill

#: A queue whose demand is less than this many times its share is expected to pause soon: with tasks of the mean length,
#: its backlog ends within this many task lengths. Equals HORIZON_TASKS.
PAUSES_WITHIN = 4.0

#: A queue counts as satisfied if it gets its whole demand except this fraction (a rounding error).
ALL_OF_IT = 1e-9


def reserve_shares(
    tree: Tree, basis: Basis, surplus: Sequence[float], reserve_s: float, refill_s: float
) -> list[float]:
    """Return each queue's fraction of its parent's share for flat long-term fairness with a reserve.

    Waiting leaves are filled in three steps, each with the amount that the earlier steps leave:

    1. due: a leaf whose surplus is below its needed reserve gets its share, or its demand if that is less;
    2. reserve: the leaf that will pause first (smallest demand / share) gets its missing reserve within ``refill_s``;
    3. the rest is water-filled over the horizon, with the amounts of the first two steps as lower bounds.

    A leaf with a long backlog needs no reserve, because it holds its share without a pause. A leaf without pending
    requests gets a weight for its next burst: its fraction by water-filling, and at least that of its missing due. The
    same holds for a leaf whose demand is satisfied completely, because its weight stays until the next tick, when the
    next stage of its tasks may be waiting. As in `flat_shares`, NaN means that the share is arbitrary.

    Parameters
    ----------
    tree : Tree
        The queues.
    basis : Basis
        Input of the filling, with demands.
    surplus : Sequence[float]
        Each leaf's usage minus its due, resource-seconds.
    reserve_s : float
        Reserve, in seconds of the leaf's own share.
    refill_s : float
        Time to fill the reserve, seconds, above 0.
    """
    used, capacity, horizon_s, demand, waiting = basis
    assert demand is not None
    share = {q: capacity * tree.flat_share[q] for q in tree.leaves}
    short = [q for q in tree.leaves if waiting[q]]
    others = [q for q in tree.leaves if not waiting[q]]
    left = max(capacity - left_fold_sum(demand[q] for q in others), capacity / MOST_FOR_IDLE)
    if not short or left_fold_sum(demand[q] for q in short) <= left:
        return flat_shares(tree, basis)
    missing = {}
    for q in tree.leaves:
        pauses = not waiting[q] or demand[q] < PAUSES_WITHIN * share[q]
        missing[q] = (reserve_s * share[q] if pauses else 0.0) - surplus[q]
    amounts: list[float] = []
    while True:
        left = max(left, capacity / MOST_FOR_IDLE)
        amounts = bounded_fill(
            [used[q] for q in short],
            [tree.entitlement[q] for q in short],
            _claims(short, share, missing, demand, left, refill_s),
            [demand[q] for q in short],
            left,
            horizon_s,
        )
        enough = {q for q, amount in zip(short, amounts, strict=True) if amount >= demand[q] * (1 - ALL_OF_IT)}
        if not enough or len(enough) == len(short):
            break
        left -= left_fold_sum(demand[q] for q in enough)
        short = [q for q in short if q not in enough]
        others.extend(sorted(enough))
    ratios = {}
    if others:
        joining = Joining([used[q] for q in short], [tree.entitlement[q] for q in short], capacity, horizon_s)
        for q in others:
            part = joining.part(used[q], tree.entitlement[q])
            if missing[q] > 0:
                part = max(part, (share[q] + missing[q] / refill_s) / capacity)
            ratios[q] = min(part / (1 - part), MOST_FOR_IDLE) if part < 1 else MOST_FOR_IDLE
    return parts_of_fill(tree, dict(zip(short, amounts, strict=True)), ratios, basis)


def _claims(
    short: Sequence[int],
    share: dict[int, float],
    missing: dict[int, float],
    demand: Sequence[float],
    left: float,
    refill_s: float,
) -> list[float]:
    """Return the waiting leaves' lower bounds from steps 1 and 2 of `reserve_shares`; their sum is at most ``left``."""
    claims = {q: min(demand[q], share[q]) if missing[q] > 0 else 0.0 for q in short}
    total = left_fold_sum(claims.values())
    if total > left:
        return [claims[q] * left / total for q in short]
    spare = left - total
    for q in sorted(short, key=lambda q: demand[q] / share[q]):
        more = min(max(missing[q], 0.0) / refill_s, demand[q] - claims[q], spare)
        if claims[q] > 0:
            claims[q] += more
            spare -= more
    return [claims[q] for q in short]
