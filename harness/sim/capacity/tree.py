"""An allocation file in the Fair Scheduler's terms as settings of the simulated Capacity Scheduler, in weight mode."""

from __future__ import annotations

import re
from collections.abc import Iterable

from harness.model.jobs import NodeSpec
from harness.model.queues import AllocationFile
from harness.model.resources import Resource
from harness.yarn.capacity.convert import convert_allocations

#: Nothing here decides who gets what, or the simulator does not cover it.
_WITHOUT_EFFECT = re.compile(
    r"(user\..*|.*\.)?max-parallel-apps|.*\.(maximum-allocation-(mb|vcores)|disable_preemption|acl_.*)"
    r"|mapping-rule-.*|queue-mappings-.*|root\.capacity|(.*\.)?maximum-am-resource-percent"
)


def capacity_settings(allocations: AllocationFile, nodes: Iterable[NodeSpec]) -> dict[str, str]:
    """Settings without their prefix, as `yarnfair convert` makes them; nothing holds AMs back.

    A share of AMs would be one of the queue's share, which control changes; an experiment that means one says so in
    ``capacity``. Absolute maxima are parts of the nodes that are there from the beginning. Minimum shares and limits of
    running applications have no counterpart and are left out.
    """
    there = [node for node in nodes if node.join_s <= 0]
    cluster = Resource(sum(node.memory_mb for node in there), sum(node.vcores for node in there))
    made = convert_allocations(allocations, cluster=cluster, fixed_queues=True).properties
    kept = {name: value for name, value in made.items() if not _WITHOUT_EFFECT.fullmatch(name)}
    return {"maximum-am-resource-percent": "1", **kept}
