"""Merge a plan's attributes into an allocation file: weights, minimum and maximum shares, scheduling policies.

All other settings of the file are kept. The function is used at the start of a run and for a controller's writes.
"""

from __future__ import annotations

import struct
from dataclasses import replace

from harness.model.plan import Attributes, hadoop_policy
from harness.model.queues import AllocationFile, QueueSettings, ResourceLimit

_FLOAT32 = struct.Struct("<f")


def with_attributes(allocations: AllocationFile, wanted: Attributes) -> AllocationFile:
    """Return the file with its attributes replaced by those in ``wanted`` (weights as float32)."""
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
