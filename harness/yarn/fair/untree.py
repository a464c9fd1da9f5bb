"""Convert an allocation file to a user's queue tree (YAML): the inverse of `harness.yarn.fair.tree`."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

from harness.base.errors import InputError
from harness.model.queues import (
    JAVA_INT_MAX,
    JAVA_LONG_MAX,
    NEVER_MS,
    NO_APP_LIMIT,
    ROOT,
    UNLIMITED,
    AllocationFile,
    PlacementRule,
    Queue,
    QueueSettings,
    ResourceLimit,
)
from harness.model.resources import Resource
from harness.yarn.fair.javanum import weight_text
from harness.yarn.fair.manager import queue_tree
from harness.yarn.fair.tree import ACL_KEYS, read_tree

#: Keys that the root's entry lacks: its preemption settings are the defaults, and it has no siblings or applications.
_NOT_OF_ROOT = (
    *("min_share_preemption_timeout_s", "fair_share_preemption_timeout_s", "fair_share_preemption_threshold"),
    *("weight", "max_am_share", "reservation"),
)
#: Other values of a file that must survive the conversion.
_OF_FILE = tuple(
    one.name
    for one in fields(AllocationFile)
    if one.compare and not one.name.startswith(("settings", "configured", "default_m", "default_f"))
)


def tree_of(file: AllocationFile, *, source: str) -> dict[str, Any]:
    """Return the queue tree of an allocation file, as plain data.

    Parameters
    ----------
    file : AllocationFile
        The parsed allocation file.
    source : str
        Name of the file in messages.

    Returns
    -------
    dict
        Data from which `read_tree` returns the same queues with the same settings in effect.

    Raises
    ------
    InputError
        The file has settings that a queue tree cannot express, or that it refuses because the ResourceManager misreads
        them. Settings that Hadoop ignores (such as a minimum in per cent) are left out, because they have no effect.
    """
    found: dict[str, Any] = {"queues": {}}
    tree = queue_tree(file)
    parents = {queue.parent for queue in tree} | {path for path in file.configured_parents if path != ROOT}
    nodes: dict[str, dict[str, Any]] = {}
    configured = [queue.path for queue in tree if queue.path != ROOT and file.configured(queue.path)]
    # Include parents that the file does not name, which Hadoop creates for the queues below them.
    for path in dict.fromkeys(above for one in configured for above in _path_to(one)):
        settings = file.settings.get(path) or QueueSettings(path)
        entry = _entry(settings)
        if path in parents and not settings.reservable:
            entry["children"] = {}
        above, _, name = path.rpartition(".")
        (found["queues"] if above == ROOT else nodes[above].setdefault("children", {}))[name] = entry
        nodes[path] = entry
    root = _entry(file.settings.get(ROOT) or QueueSettings(ROOT))
    for key in _NOT_OF_ROOT:
        root.pop(key, None)
    if root:
        found["root"] = root
    if defaults := _defaults(file):
        found["defaults"] = defaults
    if file.user_max_apps:
        found["users"] = {user: {"max_running_apps": most} for user, most in file.user_max_apps.items()}
    if file.placement_rules is not None:
        found["placement"] = [_rule(rule) for rule in file.placement_rules]
    system = {key: getattr(file, f"reservation_{key}") for key in ("planner", "agent", "policy")}
    if any(system.values()):
        found["reservations"] = {key: text for key, text in system.items() if text is not None}
    _check(file, read_tree(found, lambda key: f"{source}: {'.'.join(map(str, key))}"), source)
    return found


def _path_to(path: str) -> list[str]:
    parts = path.split(".")
    return [".".join(parts[:depth]) for depth in range(2, len(parts) + 1)]


def _check(file: AllocationFile, again: AllocationFile, source: str) -> None:
    """Raise InputError if the resulting tree does not have the settings of the file."""
    before, after = ({queue.path: queue for queue in queue_tree(one)} for one in (file, again))
    for path in [*before, *after]:
        if _in_effect(before.get(path)) != _in_effect(after.get(path)):
            what = "a queue tree cannot say what it has"
            raise InputError(
                f"queue {path}: {what}", where=source, hint="look at its settings with `yarnfair validate`"
            )
    for name in _OF_FILE:
        if getattr(file, name) != getattr(again, name):
            raise InputError(f"a queue tree cannot say {name}", where=source, hint="keep the file as it is")


def _in_effect(queue: Queue | None) -> Queue | None:
    """Return a queue without settings that have no effect, such as the weight of root, which has no sibling."""
    return queue if queue is None or queue.path != ROOT else replace(queue, weight=1.0, max_am_share=0.5)


def _entry(settings: QueueSettings) -> dict[str, Any]:
    largest = settings.max_container_allocation
    entry: dict[str, Any] = {
        "weight": _number(settings.weight),
        "min_resources": _amount(settings.min_resources, 0, 0),
        "max_resources": _limit(settings.max_resources),
        "max_child_resources": _limit(settings.max_child_resources),
        "max_container_allocation": _amount(largest, JAVA_LONG_MAX, JAVA_INT_MAX),
        "max_running_apps": settings.max_running_apps,
        "max_am_share": _number(settings.max_am_share),
        "min_share_preemption_timeout_s": _seconds(settings.min_share_preemption_timeout_ms),
        "fair_share_preemption_timeout_s": _seconds(settings.fair_share_preemption_timeout_ms),
        "fair_share_preemption_threshold": _number(settings.fair_share_preemption_threshold),
        "allow_preemption_from": None if settings.preemptable else False,
        "scheduling_policy": settings.scheduling_policy,
        **{key: settings.acls.get(element) for key, element in ACL_KEYS.items()},
        "reservation": True if settings.reservable else None,
    }
    return {key: value for key, value in entry.items() if value is not None}


def _defaults(file: AllocationFile) -> dict[str, Any]:
    root = queue_tree(file)[ROOT]
    said: dict[str, tuple[Any, Any]] = {
        "scheduling_policy": (file.default_scheduling_policy, "fair"),
        "user_max_apps": (file.user_max_apps_default, NO_APP_LIMIT),
        "queue_max_apps": (file.queue_max_apps_default, NO_APP_LIMIT),
        "queue_max_resources": (_limit(file.queue_max_resources_default), _limit(UNLIMITED)),
        "queue_max_am_share": (_number(file.queue_max_am_share_default), 0.5),
        "min_share_preemption_timeout_s": (_seconds(root.min_share_preemption_timeout_ms), _seconds(NEVER_MS)),
        "fair_share_preemption_timeout_s": (_seconds(root.fair_share_preemption_timeout_ms), _seconds(NEVER_MS)),
        "fair_share_preemption_threshold": (_number(root.fair_share_preemption_threshold), 0.5),
    }
    return {key: value for key, (value, usual) in said.items() if value != usual}


def _rule(rule: PlacementRule) -> dict[str, Any]:
    said: dict[str, Any] = {"rule": rule.name}
    if not rule.create:
        said["create"] = False
    if rule.queue is not None:
        said["queue"] = rule.queue
    if rule.parent is not None:
        said["parent"] = _rule(rule.parent)
    return said


def _amount(amount: Resource | None, memory: int, vcores: int) -> dict[str, int] | None:
    if amount is None:
        return None
    said = {"memory_mb": (amount.memory_mb, memory), "vcores": (amount.vcores, vcores)}
    return {key: value for key, (value, usual) in said.items() if value != usual}


def _limit(limit: ResourceLimit | None) -> dict[str, Any] | None:
    if limit is None:
        return None
    if limit.absolute is not None:
        # A maximum without either amount is unset; an unlimited one is explicit.
        return _amount(limit.absolute, JAVA_LONG_MAX, JAVA_INT_MAX) or {"memory_mb": JAVA_LONG_MAX}
    return {"memory_percent": limit.memory_fraction * 100.0, "vcores_percent": limit.vcores_fraction * 100.0}


def _number(value: float | None) -> float | int | None:
    """Format a float32 as its shortest decimal."""
    if value is None:
        return None
    number = float(weight_text(value))
    return int(number) if number.is_integer() else number


def _seconds(value_ms: int | None) -> int | None:
    if value_ms is None or value_ms == NEVER_MS:
        return None
    return value_ms // 1000
