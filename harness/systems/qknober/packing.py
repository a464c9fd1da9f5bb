"""The efficiency-oriented stage of QKnober (paper, section 5.2.1, (15)-(17)): an exact linear program.

::

    maximise    sum over g of z_g * (sum over k of B_gk)
    subject to  sum over g of z_g * B_gk <= h_k  for every resource k,   z >= 0

A column g stands for all users with one direction of demand; by (16) they advance together. B_g is what they use
(fractions of the capacities) per gain of 1 in s_i / w_i of each. h are the idle fractions. The program is degenerate:
three directions in two resources already have several optima. Of these the lexicographic max-min of z is taken, which
makes the smallest z as large as possible, then the next smallest, and so on.

Method: the common level t of all columns that can still rise is an extra column. A simplex method with one row per
resource and a pair of objectives (efficiency, then t) finds the level. A column with negative reduced cost at that
optimum cannot rise above t in any optimum, so it stays at t; the other columns continue in the next round. The columns
that stay lie outside a face of the cone of directions, so there is at most one more round than there are resources.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

Row = list[Fraction]

#: Pivot rules. After a degenerate pivot (a step of length 0) Bland's rule _FIRST is used, because it cannot cycle.
_STEEPEST, _FIRST = 0, 1
_ZERO = Fraction(0)


def pack(columns: Sequence[Sequence[Fraction]], idle: Sequence[Fraction]) -> list[Fraction]:
    """Return the lexicographic max-min optimum z, one value per column. The result is exact for fractions.

    ``columns`` are n directions with m values each, all at least 0 and one above 0. ``idle`` has m values, at least 0.
    """
    levels = [Fraction(0)] * len(columns)
    rising = list(range(len(columns)))
    left = list(idle)
    while rising:
        level, stopped = _raise(columns, rising, left)
        for g in stopped:
            levels[g] = level
            left = [h - level * b for h, b in zip(left, columns[g], strict=True)]
        gone = set(stopped)
        rising = [g for g in rising if g not in gone]
    return levels


def _raise(
    columns: Sequence[Sequence[Fraction]], rising: list[int], idle: Sequence[Fraction]
) -> tuple[Fraction, list[int]]:
    """Return the highest common level of the rising columns at full efficiency, and the columns that stop there."""
    m = len(idle)
    together = [sum((columns[g][k] for g in rising), Fraction(0)) for k in range(m)]
    # Columns of the table: the rising ones, then t, then the slacks. Costs are pairs: efficiency, level.
    table = [list(columns[g]) for g in rising] + [together]
    gains = [sum(column, Fraction(0)) for column in table]
    t = len(rising)
    inverse = [[Fraction(int(i == j)) for j in range(m)] for i in range(m)]
    basis = [t + 1 + k for k in range(m)]
    amounts = list(idle)
    rule = _STEEPEST
    while True:
        first, second = _prices(basis, inverse, gains, t)
        costs = _reduced(table, gains, first, second, t)
        entering = _entering(costs, basis, first, second, t, rule)
        if entering is None:
            break
        column = (
            [sum((inverse[i][k] * table[entering][k] for k in range(m)), Fraction(0)) for i in range(m)]
            if entering <= t
            else [inverse[i][entering - t - 1] for i in range(m)]
        )
        row, moved = _leaving(amounts, column, basis)
        rule = _STEEPEST if moved else _FIRST
        _pivot(inverse, amounts, column, row)
        basis[row] = entering
    level = amounts[basis.index(t)] if t in basis else Fraction(0)
    return level, [g for g, cost in zip(rising, costs, strict=False) if cost < (_ZERO, _ZERO)]


def _prices(basis: list[int], inverse: list[Row], gains: Row, t: int) -> tuple[Row, Row]:
    """Return the dual prices of both objectives."""
    m = len(basis)
    first, second = [Fraction(0)] * m, [Fraction(0)] * m
    for i, member in enumerate(basis):
        if member <= t:
            for k in range(m):
                first[k] += gains[member] * inverse[i][k]
        if member == t:
            second = list(inverse[i])
    return first, second


def _reduced(table: list[Row], gains: Row, first: Row, second: Row, t: int) -> list[tuple[Fraction, Fraction]]:
    costs = []
    for g, column in enumerate(table):
        one, two = gains[g], Fraction(int(g == t))
        for k, used in enumerate(column):
            if used:
                one -= first[k] * used
                two -= second[k] * used
        costs.append((one, two))
    return costs


def _entering(
    costs: list[tuple[Fraction, Fraction]], basis: list[int], first: Row, second: Row, t: int, rule: int
) -> int | None:
    best: tuple[Fraction, Fraction] = (Fraction(0), Fraction(0))
    found = None
    members = set(basis)
    slacks: list[tuple[Fraction, Fraction]] = [(-one, -two) for one, two in zip(first, second, strict=True)]
    for g, cost in enumerate([*costs, *slacks]):
        if cost > best and g not in members:
            if rule == _FIRST:
                return g
            best, found = cost, g
    return found


def _leaving(amounts: Row, column: Row, basis: list[int]) -> tuple[int, bool]:
    """Return the row that reaches 0 first, and whether the step is longer than 0.

    Of several such rows, it is the one whose member has the smallest index.
    """
    best: tuple[Fraction, int] | None = None
    row = -1
    for i, step in enumerate(column):
        if step > 0:
            ratio = (amounts[i] / step, basis[i])
            if best is None or ratio < best:
                best, row = ratio, i
    # Every column uses some resource, so some row bounds it.
    assert best is not None
    return row, best[0] > 0


def _pivot(inverse: list[Row], amounts: Row, column: Row, row: int) -> None:
    scale = column[row]
    inverse[row] = [value / scale for value in inverse[row]]
    amounts[row] /= scale
    for i, step in enumerate(column):
        if i != row and step:
            inverse[i] = [value - step * pivot for value, pivot in zip(inverse[i], inverse[row], strict=True)]
            amounts[i] -= step * amounts[row]
