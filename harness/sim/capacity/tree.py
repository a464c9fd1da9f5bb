"""Settings of the simulated Capacity Scheduler.

Converts an allocation file in the Fair Scheduler's terms to settings in weight mode, and applies an external plan to
settings.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from harness.base.errors import InputError
from harness.model.jobs import NodeSpec
from harness.model.plan import Attributes
from harness.model.queues import AllocationFile
from harness.model.resources import Resource
from harness.yarn.capacity.convert import convert_allocations
from harness.yarn.capacity.properties import PREFIX
from harness.yarn.capacity.queues import queue_tree
from harness.yarn.capacity.steering import Steering

#: Properties without an effect on allocation in the simulator: access control, placement, root's weight.
_WITHOUT_EFFECT = re.compile(r".*\.acl_.*|mapping-rule-.*|queue-mappings-.*|root\.capacity")


def capacity_settings(allocations: AllocationFile, nodes: Iterable[NodeSpec]) -> dict[str, str]:
    """Return settings without their prefix, as `yarnfair convert` makes them.

    Absolute maxima become fractions of the nodes that exist from the beginning. Minimum shares have no counterpart.
    """
    there = [node for node in nodes if node.join_s <= 0]
    cluster = Resource(sum(node.memory_mb for node in there), sum(node.vcores for node in there))
    made = convert_allocations(allocations, cluster=cluster, fixed_queues=True).properties
    return {name: value for name, value in made.items() if not _WITHOUT_EFFECT.fullmatch(name)}


def steering_of(settings: Mapping[str, str], cluster: Resource) -> Steering:
    """Return the converter of plans to settings (without prefix). Raises InputError for unsupported capacities."""
    values = {PREFIX + name: value for name, value in settings.items()}
    return Steering(queue_tree(values, source="capacity"), values, {}, cluster, "capacity")


def settings_with(steering: Steering, plan: Attributes) -> dict[str, str]:
    """Return the administrator's settings, without prefix, with a plan applied.

    Raises InputError for a plan that the settings cannot express.
    """
    wanted = steering.wanted(plan)
    if wanted.problems:
        raise InputError(
            wanted.problems[0],
            where="scheduler: capacity",
            hint="say so in the experiment's capacity:, or take another policy",
        )
    own = {f"{path}.{key}": text for path, values in wanted.values.items() for key, text in values.items()}
    return {**{name.removeprefix(PREFIX): value for name, value in steering.settings.items()}, **own}
