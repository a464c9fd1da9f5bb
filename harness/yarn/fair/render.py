"""Allocation files written from their values, by the template ``templates/fair-scheduler.xml.j2``.

What is written is read back with our reader and must be equal; `harness.yarn.fair.tree` makes the values from a
queue tree that a user wrote.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal

from harness.base.errors import InputError
from harness.model.data import templates
from harness.model.queues import (
    JAVA_INT_MAX,
    NEVER_MS,
    NO_APP_LIMIT,
    ROOT,
    UNLIMITED,
    AllocationFile,
    QueueSettings,
    ResourceLimit,
)
from harness.model.resources import Resource
from harness.yarn.fair.javanum import float32
from harness.yarn.fair.parse import ACL_ELEMENTS, parse_allocations

TEMPLATE = "fair-scheduler.xml.j2"


@dataclass(slots=True)
class _Node:
    name: str
    kind: str | None = None
    items: list[tuple[str, str | None]] = field(default_factory=list)
    children: list[_Node] = field(default_factory=list)


def render_allocations(file: AllocationFile) -> str:
    """The XML of an allocation file.

    Raises InputError for values that no file can express (a time-out of part of a second, a queue whose parent is not
    configured, ...): what comes back from reading the text must be what went in.
    """
    text = (
        templates(keep_trailing_newline=True)
        .get_template(TEMPLATE)
        .render(
            top=_top(file),
            users=sorted(file.user_max_apps.items()),
            rules=file.placement_rules,
            queues=_queues(file),
        )
    )
    read_back = parse_allocations(text, source="the rendered file")
    if read_back != file:
        differences = [
            name for name in AllocationFile.__dataclass_fields__ if getattr(read_back, name) != getattr(file, name)
        ]
        raise InputError(
            f"these settings do not come back from the rendered file: {', '.join(differences)}",
            mend="give values that an allocation file can express (whole seconds, configured parents, finite numbers)",
        )
    return text


def weight_text(weight: float) -> str:
    """The shortest decimal that Hadoop reads as this float32."""
    for digits in range(1, 18):
        text = f"{weight:.{digits}g}"
        if float32(float(text)) == weight:
            break
    plain = format(Decimal(text), "f")
    return plain if len(plain) <= 12 else text


def resource_text(limit: ResourceLimit | Resource) -> str:
    """A resource value in a notation that Hadoop reads back as this."""
    if isinstance(limit, ResourceLimit):
        if limit.absolute is None:
            memory, vcores = percent_text(limit.memory_fraction), percent_text(limit.vcores_fraction)
            return f"{memory}%" if memory == vcores else f"{memory}% memory, {vcores}% cpu"
        limit = limit.absolute
    if limit.vcores < 0:
        return f"memory-mb={limit.memory_mb}"
    if limit.memory_mb <= JAVA_INT_MAX:
        return f"{limit.memory_mb} mb, {limit.vcores} vcores"
    return f"memory-mb={limit.memory_mb}, vcores={limit.vcores}"


def percent_text(fraction: float) -> str:
    """A percentage in plain decimals that gives this fraction when divided by 100 in doubles."""
    near = fraction * 100.0
    for value in (near, math.nextafter(near, math.inf), math.nextafter(near, -math.inf)):
        for digits in range(1, 18):
            text = format(Decimal(f"{value:.{digits}g}"), "f")
            if float(text) / 100.0 == fraction:
                return text
    return format(Decimal(near), "f")


def _seconds(value_ms: int) -> str:
    return str(value_ms // 1000)


def _top(file: AllocationFile) -> list[tuple[str, str]]:
    items: list[tuple[str, str]] = []

    def say(tag: str, said: bool, text: Callable[[], str]) -> None:
        if said:
            items.append((tag, text()))

    policy = file.default_scheduling_policy
    say("defaultQueueSchedulingPolicy", policy != "fair", lambda: policy)
    limit = file.queue_max_resources_default
    say("queueMaxResourcesDefault", limit != UNLIMITED, lambda: resource_text(limit))
    apps, users = file.queue_max_apps_default, file.user_max_apps_default
    say("queueMaxAppsDefault", apps != NO_APP_LIMIT, lambda: str(apps))
    say("userMaxAppsDefault", users != NO_APP_LIMIT, lambda: str(users))
    share = file.queue_max_am_share_default
    say("queueMaxAMShareDefault", share != 0.5, lambda: weight_text(share))
    minimum, fair = file.default_min_share_preemption_timeout_ms, file.default_fair_share_preemption_timeout_ms
    say("defaultMinSharePreemptionTimeout", minimum != NEVER_MS, lambda: _seconds(minimum))
    say("defaultFairSharePreemptionTimeout", fair != NEVER_MS, lambda: _seconds(fair))
    threshold = file.default_fair_share_preemption_threshold
    say("defaultFairSharePreemptionThreshold", threshold != 0.5, lambda: weight_text(threshold))
    for tag, text in (
        ("reservation-planner", file.reservation_planner),
        ("reservation-agent", file.reservation_agent),
        ("reservation-policy", file.reservation_policy),
    ):
        if text is not None:
            items.append((tag, text))
    return items


def _queues(file: AllocationFile) -> list[_Node]:
    nodes: dict[str, _Node] = {}
    top: list[_Node] = []
    leaves = set(file.configured_leaves)
    # A reservable queue is configured as a parent, but written as a leaf. Siblings stand in the order of the settings.
    names = list({*file.configured_leaves, *file.configured_parents})
    order = {name: at for at, name in enumerate(file.settings)}
    parents = {name.rpartition(".")[0] for name in names}
    names.sort(key=lambda name: (name.count("."), order.get(name, len(order)), name))
    for name in names:
        settings = file.settings.get(name) or QueueSettings(name)
        parent, _, own = name.rpartition(".")
        written_as_parent = name not in parents and name not in leaves and not settings.reservable
        node = _Node(own, "parent" if written_as_parent else None, _items(settings))
        nodes[name] = node
        if name == ROOT or (parent == ROOT and ROOT not in nodes):
            top.append(node)
        elif parent in nodes:
            nodes[parent].children.append(node)
        else:
            raise InputError(f"the parent of queue {name} is not configured", mend="configure it as well")
    return top


def _items(settings: QueueSettings) -> list[tuple[str, str | None]]:
    items: list[tuple[str, str | None]] = []
    if settings.weight is not None:
        items.append(("weight", weight_text(settings.weight)))
    if settings.scheduling_policy is not None:
        items.append(("schedulingPolicy", settings.scheduling_policy))
    for tag, limit in (
        ("minResources", settings.min_resources),
        ("maxResources", settings.max_resources),
        ("maxChildResources", settings.max_child_resources),
        ("maxContainerAllocation", settings.max_container_allocation),
    ):
        if limit is not None:
            items.append((tag, resource_text(limit)))
    if settings.max_running_apps is not None:
        items.append(("maxRunningApps", str(settings.max_running_apps)))
    if settings.max_am_share is not None:
        items.append(("maxAMShare", weight_text(settings.max_am_share)))
    if settings.name != ROOT:
        # root's are the defaults of the whole file, written at its top.
        if settings.min_share_preemption_timeout_ms is not None:
            items.append(("minSharePreemptionTimeout", _seconds(settings.min_share_preemption_timeout_ms)))
        if settings.fair_share_preemption_timeout_ms is not None:
            items.append(("fairSharePreemptionTimeout", _seconds(settings.fair_share_preemption_timeout_ms)))
        if settings.fair_share_preemption_threshold is not None:
            items.append(("fairSharePreemptionThreshold", weight_text(settings.fair_share_preemption_threshold)))
    if not settings.preemptable:
        items.append(("allowPreemptionFrom", "false"))
    items += [(kind, settings.acls[kind]) for kind in ACL_ELEMENTS if kind in settings.acls]
    if settings.reservable:
        items.append(("reservation", None))
    return items
