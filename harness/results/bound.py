"""Lower bounds of the sharing loss that hold for every scheduler. Arithmetic only.

The metrics are LTYARN's (harness.results.metrics); statements, proofs and open questions are in
docs/decisions/lower-bound.md.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from harness.results.metrics import LOSS_THRESHOLD

Floats = NDArray[np.float64]


def least_loss(due: ArrayLike, served: ArrayLike, most: ArrayLike | None = None) -> Floats:
    """Return the smallest possible abs(Omega) at each time, over all divisions of what can have been served.

    Minimises sum_j max(1 - U_j / D_j, 0) over 0 <= U_j <= c_j with sum_j U_j <= F: a fractional knapsack, whose optimum
    fills the queues in ascending order of D_j.

    Parameters
    ----------
    due : D_j up to each time, resource-seconds, (times, queues); a lower bound of D_j gives a lower bound of the
        result.
    served : F, the most that these queues together can have got up to each time, (times,).
    most : c_j, the most that each single queue can have got, (times, queues); None: no limit except F.

    Returns
    -------
    Shape (times,), at least 0. Queues without a due lose nothing.
    """
    owed = np.asarray(due, dtype=np.float64)
    limit = owed if most is None else np.minimum(np.asarray(most, dtype=np.float64), owed)
    order = np.argsort(owed, axis=1, kind="stable")
    owed, limit = np.take_along_axis(owed, order, 1), np.take_along_axis(limit, order, 1)
    before = np.cumsum(limit, axis=1) - limit
    given = np.clip(np.asarray(served, dtype=np.float64)[:, None] - before, 0.0, limit)
    part = np.ones_like(owed)
    np.divide(given, owed, out=part, where=owed > 0)
    lost: Floats = np.maximum(1.0 - part, 0.0).sum(axis=1)
    return lost


def last_unavoidable_s(time_s: ArrayLike, least: ArrayLike) -> float:
    """Return the last time at which even the best division loses more than 0.01; 0 if there is none."""
    late = np.flatnonzero(np.asarray(least, dtype=np.float64) > -LOSS_THRESHOLD)
    return float(np.asarray(time_s, dtype=np.float64)[late[-1]]) if len(late) else 0.0
