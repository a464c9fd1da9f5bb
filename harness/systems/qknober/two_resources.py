"""QKnober's two stages for two resources in closed form with floats, fast enough for each decision in YARN.

With two resources the directions of demand span a cone between the most x-heavy and the most y-heavy user. What the
fairness-oriented stage leaves, h, lies inside or outside this cone:

- Inside, everything can be used. All users rise together by t while h - t * S stays in the cone (S: the use per unit of
  t). Where it meets an edge of the cone, the users with the direction of that edge take the rest, and the others stay
  at t. This is the lexicographic max-min among the most efficient divisions.
- Outside, it is most efficient to serve only the users with the direction of the nearer edge.

The computation takes two passes over the users. harness.systems.qknober.packing computes the same exactly for any
number of resources.
"""

from __future__ import annotations

from collections.abc import Sequence

#: Directions that differ by less than this count as equal.
_SAME = 1e-12


Direction = tuple[float, float]


def two_stages(
    directions: Sequence[Direction], weights: Sequence[float], rho: float, idle: tuple[float, float] = (1.0, 1.0)
) -> tuple[list[float], float]:
    """Return s_i / w_i of users with unlimited demands who share ``idle``, and the fair part of all of them.

    ``idle`` are fractions of the cluster. ``directions`` are the use of both resources per unit of dominant share (the
    larger one is 1). There must be at least one user.
    """
    used_x = sum([w * b[0] for b, w in zip(directions, weights, strict=True)])
    used_y = sum([w * b[1] for b, w in zip(directions, weights, strict=True)])
    drf = min([h / used for h, used in zip(idle, (used_x, used_y), strict=True) if used > 0])
    fair = rho * drf
    left_x, left_y = max(0.0, idle[0] - fair * used_x), max(0.0, idle[1] - fair * used_y)
    # Sort key from x-heavy to y-heavy: y / (x + y) grows with the angle, also for directions on an axis.
    angles = [y / (x + y) for x, y in directions]
    low_angle, high_angle = min(angles), max(angles)
    low, high = directions[angles.index(low_angle)], directions[angles.index(high_angle)]
    from_low = low[0] * left_y - low[1] * left_x
    to_high = left_x * high[1] - left_y * high[0]
    t = 0.0
    if from_low < 0:
        edge, angle = low, low_angle
        rest = left_y / low[1]
    elif to_high < 0:
        edge, angle = high, high_angle
        rest = left_x / high[0]
    else:
        rise_low = low[0] * used_y - low[1] * used_x
        rise_high = used_x * high[1] - used_y * high[0]
        if rise_low <= _SAME or rise_high <= _SAME:
            # All directions are equal, and h has the same direction.
            return [drf] * len(weights), fair
        t_low, t_high = from_low / rise_low, to_high / rise_high
        t = min(t_low, t_high)
        edge, angle = (low, low_angle) if t_low <= t_high else (high, high_angle)
        # The rest is a multiple of the edge's direction, whose larger component is 1.
        rest = max(0.0, left_x - t * used_x if edge[0] == 1.0 else left_y - t * used_y)
    members = [abs(a - angle) <= _SAME for a in angles]
    of_edge = sum([w for w, member in zip(weights, members, strict=True) if member])
    top = fair + t + rest / of_edge
    return [top if member else fair + t for member in members], fair


def targets(
    directions: Sequence[Direction],
    weights: Sequence[float],
    demands: Sequence[float],
    rho: float,
) -> tuple[list[float], list[float]]:
    """Return the s_i / w_i that each user is to have, and its fair part.

    ``demands`` are the s_i / w_i that each user wants at most. A user who wants less than its part gets what it wants,
    and the others divide the rest in another round (C1 of section 6.1). All users that are satisfied in a round leave
    together, because this runs at each allocation and must need few rounds.
    """
    found, fair_parts = [0.0] * len(weights), [0.0] * len(weights)
    active = [i for i, demand in enumerate(demands) if demand > 0]
    idle = (1.0, 1.0)
    while active:
        # A user that needs a used-up resource keeps what it has.
        active = [i for i in active if all(h > _SAME or not b for h, b in zip(idle, directions[i], strict=True))]
        if not active:
            break
        levels, fair = two_stages([directions[i] for i in active], [weights[i] for i in active], rho, idle)
        rest = []
        for i, level in zip(active, levels, strict=True):
            fair_parts[i] = min(fair, demands[i])
            if demands[i] > level:
                found[i] = level
                rest.append(i)
            else:
                found[i] = demands[i]
                held = demands[i] * weights[i]
                idle = (max(0.0, idle[0] - held * directions[i][0]), max(0.0, idle[1] - held * directions[i][1]))
        if len(rest) == len(active):
            break
        active = rest
    return found, fair_parts


def knob_for(directions: Sequence[Direction], weights: Sequence[float], theta: float) -> float:
    """Return the smallest rho, at most 1, whose Theorem 1 bound is at most ``theta``.

    It is the float version of `harness.policies.vectors.knob_for` for two resources.
    """
    used = [sum([w * b[k] for b, w in zip(directions, weights, strict=True)]) for k in (0, 1)]
    most = max(used)
    rho = 0.0
    for b, w in zip(directions, weights, strict=True):
        rho = max(rho, min([(1 - theta * w * part) * most / u for part, u in zip(b, used, strict=True) if part > 0]))
    return min(rho, 1.0)
