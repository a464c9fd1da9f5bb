"""A reserve for queues with intermittent demand: dues take precedence over debts. Pure arithmetic.

Long-term fairness considers what a queue has used. Whether it *loses* by sharing (LTYARN eq. 3) depends on its due
while it asked, the integral of min(d_i, S_i). A queue with pauses loses at each new burst, because others' containers
have to end first, unless it has got more than its due before. This surplus is its reserve: by default one mean task
length of its share, which is about the longest wait for containers. docs/decisions/horizon.md has the law and the
alternatives.
"""

from __future__ import annotations

from collections.abc import Sequence

from harness.base.sums import left_fold_sum
from harness.policies.filling import Joining, bounded_fill
from harness.policies.tree import Tree
from harness.policies.weights import MOST_FOR_IDLE, Basis, flat_shares, parts_of_fill

#: A queue with a demand of less than this many times its share will pause before a longer backlog is half done: with
#: tasks of one mean length it ends within this many task lengths. Equals HORIZON_TASKS.
PAUSES_WITHIN = 4.0

#: A queue that is filled with its whole demand except this fraction has enough (rounding).
ALL_OF_IT = 1e-9


def reserve_shares(
    tree: Tree, basis: Basis, surplus: Sequence[float], reserve_s: float, refill_s: float
) -> list[float]:
    """Return fractions of the parent's for flat long-term fairness with a reserve (NaN as in `flat_shares`).

    Waiting leaves are filled in three steps, each with what the earlier ones leave:

    1. due: a leaf whose surplus is below what it needs gets its share, or what it asks for;
    2. reserve: the leaf that will pause first (smallest demand / share) is filled up within ``refill_s``;
    3. the rest by the law over the horizon, with what the first two steps gave as lower bounds.

    A leaf with a long backlog needs no reserve, because it holds its share without a pause. A leaf that wants no more
    than it holds gets a weight for its next burst: the law's ratio, and at least that of its missing due. So does a
    leaf that wants more and is filled completely: its weight stays until the next tick, and a weight for the last tasks
    of a stage would let the next stage wait for a period.

    Parameters
    ----------
    basis : input of the filling, with demands.
    surplus : for every leaf, what it got beyond its due (negative: less), resource-seconds.
    reserve_s : reserve, in seconds of the leaf's own share.
    refill_s : time to fill the reserve, seconds, above 0.
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
    """Return the waiting leaves' lower bounds from steps 1 and 2; their sum is at most ``left``."""
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
