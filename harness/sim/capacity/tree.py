"""Settings of the simulated Capacity Scheduler.

An allocation file in the Fair Scheduler's terms as settings in weight mode, and the settings with a plan that is
written from outside.
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

#: Nothing here decides who gets what in the simulator: access, placement; root's weight.
_WITHOUT_EFFECT = re.compile(r".*\.acl_.*|mapping-rule-.*|queue-mappings-.*|root\.capacity")


def capacity_settings(allocations: AllocationFile, nodes: Iterable[NodeSpec]) -> dict[str, str]:
    """Settings without their prefix, as `yarnfair convert` makes them.

    Absolute maxima are parts of the nodes that are there from the beginning. Minimum shares have no counterpart.
    """
    there = [node for node in nodes if node.join_s <= 0]
    cluster = Resource(sum(node.memory_mb for node in there), sum(node.vcores for node in there))
    made = convert_allocations(allocations, cluster=cluster, fixed_queues=True).properties
    return {name: value for name, value in made.items() if not _WITHOUT_EFFECT.fullmatch(name)}


def steering_of(settings: Mapping[str, str], cluster: Resource) -> Steering:
    """How settings (without their prefix) are steered. InputError for capacities that cannot be."""
    values = {PREFIX + name: value for name, value in settings.items()}
    return Steering(queue_tree(values, source="capacity"), values, {}, cluster, "capacity")


def settings_with(steering: Steering, plan: Attributes) -> dict[str, str]:
    """The administrator's settings, without their prefix, with a plan's. InputError for what cannot be expressed."""
    wanted = steering.wanted(plan)
    if wanted.problems:
        raise InputError(
            wanted.problems[0],
            where="scheduler: capacity",
            hint="say so in the experiment's capacity:, or take another policy",
        )
    own = {f"{path}.{key}": text for path, values in wanted.values.items() for key, text in values.items()}
    return {**{name.removeprefix(PREFIX): value for name, value in steering.settings.items()}, **own}
