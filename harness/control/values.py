"""Convert a queue's attributes in an allocation file to JSON values, and back."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from typing import Any

from harness.base.errors import InputError
from harness.model.plan import WEIGHT_MAX, WEIGHT_MIN
from harness.model.queues import QueueSettings, ResourceLimit
from harness.model.resources import UNBOUNDED, Resource
from harness.yarn.fair.edit import Attribute

ATTRIBUTES: tuple[Attribute, ...] = ("weight", "min_resources", "max_resources", "scheduling_policy")
#: Attribute -> value as stored in JSON (None: not in the file).
Values = dict[str, Any]
#: Function of an attribute, its present value and the controller's known values: whether the value is one of them.
IsManaged = Callable[[str, Any, Collection[Any]], bool]


def values_of(settings: QueueSettings | None) -> Values:
    """Return a queue's settings as attribute -> JSON value (None: not set)."""
    if settings is None:
        return dict.fromkeys(ATTRIBUTES)
    least, most = settings.min_resources, settings.max_resources
    limit: Any = None
    if most is not None:
        limit = (
            [most.absolute.memory_mb, most.absolute.vcores]
            if most.absolute is not None
            else {"memory": most.memory_fraction, "vcores": most.vcores_fraction}
        )
    return {
        # NaN is stored as a text, because values are compared and NaN does not equal itself.
        "weight": None if settings.weight is None else settings.weight if settings.weight == settings.weight else "NaN",
        "min_resources": None if least is None else [least.memory_mb, least.vcores],
        "max_resources": limit,
        "scheduling_policy": settings.scheduling_policy,
    }


def entitlement(weight: Any) -> float:
    """Convert a weight of a file to an entitlement: finite and within the range of weights."""
    if weight is None or isinstance(weight, str) or math.isnan(weight):
        return 1.0
    return min(max(float(weight), WEIGHT_MIN), WEIGHT_MAX)


def finite(weight: object) -> float:
    """Convert a weight of a file to a weight that can be restored; values that would break the RM are replaced."""
    return float(weight) if isinstance(weight, int | float) and 0 <= weight < math.inf else entitlement(weight)


def resource_of(value: Any) -> Resource:
    """Return the resource of a JSON value ``[MiB, vcores]``; zero for None."""
    return Resource() if value is None else Resource(int(value[0]), int(value[1]))


def limit_of(value: Any) -> ResourceLimit | None:
    """Return the limit of a JSON value: absolute amounts, or fractions of the cluster; None for None."""
    if value is None:
        return None
    if isinstance(value, dict):
        return ResourceLimit(None, float(value["memory"]), float(value["vcores"]))
    absolute = Resource(int(value[0]), int(value[1]))
    return ResourceLimit(UNBOUNDED if absolute == UNBOUNDED else absolute)


#: Maximum number of removed queues that are remembered, and of remembered weights of queues named by a controller; the
#: oldest are dropped.
MOST_DEPARTED, MOST_WEIGHTS = 1000, 10_000


def depart(departed: dict[str, dict[str, Any]], path: str, kept: dict[str, Any]) -> None:
    """Remember a removed queue with its managed values, in case it reappears."""
    departed[path] = kept
    while len(departed) > MOST_DEPARTED:
        del departed[next(iter(departed))]


def remember_named(departed: dict[str, dict[str, Any]], path: str, seen_s: float, weight: object) -> None:
    """Remember the weight of a queue that the controller has named; ``seen_s``: time when it last had applications.

    If the queue was the administrator's before it was removed, the administrator's baseline is kept.
    """
    kept = departed.pop(path, None) or {"baseline": {"weight": None}, "ours": {}, "texts": {}, "named": seen_s}
    if "named" in kept:
        kept["named"] = seen_s
    weights = [known for known in kept["ours"].get("weight", []) if known != weight] + [weight]
    kept["ours"]["weight"] = weights[-max(MOST_WEIGHTS // (len(departed) + 1), 1) :]
    depart(departed, path, kept)


#: Maximum number of shares written by controllers that are remembered in total, and minimum per queue; the oldest are
#: dropped.
MOST_WRITTEN, LEAST_WRITTEN = 5000, 4


def remember_written(written: dict[str, list[Any]], path: str, shares: list[Any]) -> None:
    """Remember that a controller wrote these shares of a queue."""
    known = written.setdefault(path, [])
    for share in shares:
        if share is not None and (not known or known[-1] != share):
            known.append(share)
    del known[: -max(MOST_WRITTEN // len(written), LEAST_WRITTEN)]
    while len(written) > MOST_WRITTEN // LEAST_WRITTEN:
        del written[next(iter(written))]


def is_round(weight: object) -> bool:
    """Return whether a person may have written this weight: it has at most three significant digits."""
    return not isinstance(weight, float) or float(f"{weight:.3g}") == weight


class Nonsense(InputError):
    """Another controller's announcement is not a valid document."""

    def __init__(self, error: Exception) -> None:
        super().__init__(
            f"what another controller says of the values makes no sense ({error})", hint="delete the lease's file"
        )


def _known(values: Mapping[str, object]) -> Mapping[str, Any]:
    if not values.keys() <= set(ATTRIBUTES):
        raise ValueError(f"no attribute {sorted(values)[0]!r}")
    return values


def checked_values(values: Mapping[str, object]) -> Values:
    """Validate and copy a queue's values of another controller's document. Raises what malformed content causes."""
    found = dict(_known(values))
    entitlement(found.get("weight"))
    resource_of(found.get("min_resources"))
    limit_of(found.get("max_resources"))
    return found


def checked_managed(values: Mapping[str, object]) -> dict[str, list[Any]]:
    """Like `checked_values`, for managed values."""
    return {name: list(found) for name, found in _known(values).items()}


def checked_texts(values: Mapping[str, object]) -> dict[str, str | None]:
    """Like `checked_values`, for the administrator's original texts."""
    found = {str(name): None if text is None else str(text) for name, text in values.items()}
    for text in found.values():
        (text or "").encode("latin-1")
    return found
