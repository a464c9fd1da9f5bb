"""A plan's attributes put into an allocation file's values: weights, minimum and maximum shares, scheduling policies.

What the file says besides stays. The same for a run's start, and for what a controller writes while it runs.
"""

from __future__ import annotations

import struct
from dataclasses import replace

from harness.model.plan import Attributes, hadoop_policy
from harness.model.queues import AllocationFile, QueueSettings, ResourceLimit

_FLOAT32 = struct.Struct("<f")


def with_attributes(allocations: AllocationFile, wanted: Attributes) -> AllocationFile:
    """The file with these attributes (weights as float32) instead of its own."""
    settings: dict[str, QueueSettings] = dict(allocations.settings)

    def of(queue: str) -> QueueSettings:
        return settings.get(queue) or QueueSettings(queue)

    for queue, weight in wanted.weights.items():
        settings[queue] = replace(of(queue), weight=_FLOAT32.unpack(_FLOAT32.pack(weight))[0])
    for queue, least in wanted.min_shares.items():
        settings[queue] = replace(of(queue), min_resources=least)
    for queue, most in wanted.max_shares.items():
        settings[queue] = replace(of(queue), max_resources=ResourceLimit(most))
    for queue, policy in wanted.scheduling_policies.items():
        settings[queue] = replace(of(queue), scheduling_policy=hadoop_policy(policy))
    return replace(allocations, settings=settings)
