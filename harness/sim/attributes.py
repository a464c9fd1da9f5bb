"""A plan's attributes put into an allocation file's values: weights, minimum and maximum shares, scheduling policies.

What the file says besides stays. The same for a run's start, and for what a controller writes while it runs.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import replace

from harness.model.plan import SchedulingPolicy
from harness.model.queues import AllocationFile, QueueSettings, ResourceLimit
from harness.model.resources import Resource

_FLOAT32 = struct.Struct("<f")


def with_attributes(
    allocations: AllocationFile,
    *,
    weights: Mapping[str, float] | None = None,
    min_shares: Mapping[str, Resource] | None = None,
    max_shares: Mapping[str, Resource] | None = None,
    scheduling_policies: Mapping[str, SchedulingPolicy] | None = None,
) -> AllocationFile:
    """The file with these attributes (queue path -> value; weights as float32) instead of its own."""
    settings: dict[str, QueueSettings] = dict(allocations.settings)

    def of(queue: str) -> QueueSettings:
        return settings.get(queue) or QueueSettings(queue)

    for queue, weight in (weights or {}).items():
        settings[queue] = replace(of(queue), weight=_FLOAT32.unpack(_FLOAT32.pack(weight))[0])
    for queue, least in (min_shares or {}).items():
        settings[queue] = replace(of(queue), min_resources=least)
    for queue, most in (max_shares or {}).items():
        settings[queue] = replace(of(queue), max_resources=ResourceLimit(most))
    for queue, policy in (scheduling_policies or {}).items():
        settings[queue] = replace(of(queue), scheduling_policy=None if policy == "ltrf" else policy)
    return replace(allocations, settings=settings)
