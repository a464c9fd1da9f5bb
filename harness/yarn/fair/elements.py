"""Tables of an allocation file's elements with a single value, with the parser and the formatter of each.

The modules that parse, validate, edit and write a file all use these tables. Elements that contain others (queues,
users, placement rules) are not in them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from harness.model.queues import JAVA_LONG_MAX, QueuePolicy
from harness.yarn.fair.javanum import float32, parse_double, parse_float, parse_int, parse_long, weight_text, wrap_long
from harness.yarn.fair.resources import resource_text

_POLICY_CLASSES = "org.apache.hadoop.yarn.server.resourcemanager.scheduler.fair.policies."
_POLICIES: dict[str, QueuePolicy] = {
    _POLICY_CLASSES + "FairSharePolicy": "fair",
    _POLICY_CLASSES + "DominantResourceFairnessPolicy": "drf",
    _POLICY_CLASSES + "FifoPolicy": "fifo",
}


def parse_policy(text: str) -> QueuePolicy:
    """Parse a scheduling policy: its short name in any case, or one of Hadoop's three class names.

    Raises ValueError.
    """
    lower = text.lower()
    if lower in ("fair", "drf", "fifo"):
        return lower  # type: ignore[return-value]
    if text in _POLICIES:
        return _POLICIES[text]
    raise ValueError(f"no scheduling policy is called {text!r}")


def _seconds(text: str) -> int:
    """Convert seconds to milliseconds in Java's wrapping arithmetic."""
    return wrap_long(parse_long(text) * 1000)


def _threshold(text: str) -> float:
    value = parse_float(text)
    return value if value != value else max(min(value, 1.0), 0.0)


def _am_share(text: str) -> float:
    value = parse_float(text)
    return value if value != value else min(value, 1.0)


@dataclass(frozen=True, eq=False, slots=True)
class Kind:
    """A type of element: the ``wanted`` content for messages, Hadoop's parser (ValueError), and the formatter."""

    wanted: str
    read: Callable[[str], Any]
    write: Callable[[Any], str] = str


@dataclass(frozen=True, eq=False, slots=True)
class Amount:
    """A type of element that contains resources. ``missing``: value of a resource that is not named.

    ``percent``: whether Hadoop accepts percentages; otherwise it ignores them.
    """

    missing: int = JAVA_LONG_MAX
    percent: bool = False
    wanted: str = "a resource"
    write: Callable[[Any], str] = resource_text


WEIGHT = Kind("a number", lambda text: float32(parse_double(text)), weight_text)
APPS = Kind("an integer", parse_int)
AM_SHARE = Kind("a number up to 1", _am_share, weight_text)
TIMEOUT = Kind("whole seconds", _seconds, lambda value_ms: str(value_ms // 1000))
THRESHOLD = Kind("a number from 0 to 1", _threshold, weight_text)
POLICY, DEFAULT_POLICY = Kind("fair, drf or fifo", parse_policy), Kind("fair or drf", parse_policy)
TEXT = Kind("a class name", str)
MINIMUM, LIMIT, LARGEST = Amount(missing=0), Amount(percent=True), Amount()

#: A queue's elements, in the order in which they are written -> the field of its settings.
OF_QUEUE: dict[str, tuple[str, Kind | Amount]] = {
    "weight": ("weight", WEIGHT),
    "schedulingPolicy": ("scheduling_policy", POLICY),
    "minResources": ("min_resources", MINIMUM),
    "maxResources": ("max_resources", LIMIT),
    "maxChildResources": ("max_child_resources", LIMIT),
    "maxContainerAllocation": ("max_container_allocation", LARGEST),
    "maxRunningApps": ("max_running_apps", APPS),
    "maxAMShare": ("max_am_share", AM_SHARE),
    "minSharePreemptionTimeout": ("min_share_preemption_timeout_ms", TIMEOUT),
    "fairSharePreemptionTimeout": ("fair_share_preemption_timeout_ms", TIMEOUT),
    "fairSharePreemptionThreshold": ("fair_share_preemption_threshold", THRESHOLD),
}
#: Elements of the whole file -> the field of `AllocationFile`.
OF_FILE: dict[str, tuple[str, Kind | Amount]] = {
    "defaultQueueSchedulingPolicy": ("default_scheduling_policy", DEFAULT_POLICY),
    "queueMaxResourcesDefault": ("queue_max_resources_default", LIMIT),
    "queueMaxAppsDefault": ("queue_max_apps_default", APPS),
    "userMaxAppsDefault": ("user_max_apps_default", APPS),
    "queueMaxAMShareDefault": ("queue_max_am_share_default", AM_SHARE),
    "defaultMinSharePreemptionTimeout": ("default_min_share_preemption_timeout_ms", TIMEOUT),
    "defaultFairSharePreemptionTimeout": ("default_fair_share_preemption_timeout_ms", TIMEOUT),
    "defaultFairSharePreemptionThreshold": ("default_fair_share_preemption_threshold", THRESHOLD),
    "reservation-planner": ("reservation_planner", TEXT),
    "reservation-agent": ("reservation_agent", TEXT),
    "reservation-policy": ("reservation_policy", TEXT),
}
#: Elements with the root queue's own settings, which come first.
OF_ROOT = {
    "defaultMinSharePreemptionTimeout": "minSharePreemptionTimeout",
    "defaultFairSharePreemptionTimeout": "fairSharePreemptionTimeout",
    "defaultFairSharePreemptionThreshold": "fairSharePreemptionThreshold",
}
_OTHER_NAMES = {"schedulingMode": "schedulingPolicy", "defaultQueueSchedulingMode": "defaultQueueSchedulingPolicy"}
ACL_ELEMENTS = (
    "aclSubmitApps",
    "aclAdministerApps",
    "aclAdministerReservations",
    "aclListReservations",
    "aclSubmitReservations",
)
#: Elements allowed directly inside ``<allocations>``; others are ignored with a warning in the RM's log.
TOP_ELEMENTS = frozenset(
    {*OF_FILE, "defaultQueueSchedulingMode", "fairSharePreemptionTimeout"}
    | {"queue", "pool", "user", "queuePlacementPolicy"}
)
#: Elements allowed inside a queue; others are silently ignored.
QUEUE_ELEMENTS = frozenset(
    {*OF_QUEUE, "schedulingMode", "reservation", "allowPreemptionFrom", "queue", "pool", *ACL_ELEMENTS}
)


def plain_name(tag: str) -> str:
    """Return an element's name in the tables: two elements also have an older name."""
    return _OTHER_NAMES.get(tag, tag)
