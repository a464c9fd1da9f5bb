"""Vectors of the two resources that YARN schedules: memory and virtual cores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=False)
class Resource:
    """An amount of memory (MiB, as YARN counts "mb") and of virtual cores."""

    memory_mb: int = 0
    vcores: int = 0

    def __add__(self, other: Resource) -> Resource:
        return Resource(self.memory_mb + other.memory_mb, self.vcores + other.vcores)

    def __sub__(self, other: Resource) -> Resource:
        return Resource(self.memory_mb - other.memory_mb, self.vcores - other.vcores)

    def __mul__(self, count: int) -> Resource:
        return Resource(self.memory_mb * count, self.vcores * count)

    def within(self, limit: Resource) -> Resource:
        """Return the component-wise minimum of this resource and the limit."""
        return Resource(min(self.memory_mb, limit.memory_mb), min(self.vcores, limit.vcores))

    def at_least(self, least: Resource) -> Resource:
        """Return the component-wise maximum of this resource and `least`."""
        return Resource(max(self.memory_mb, least.memory_mb), max(self.vcores, least.vcores))

    def fits_in(self, other: Resource) -> bool:
        """Return whether neither component exceeds the other's."""
        return self.memory_mb <= other.memory_mb and self.vcores <= other.vcores

    def dominant_share(self, capacity: Resource) -> float:
        """Return the larger of the two fractions of `capacity`. A resource of which `capacity` has none is ignored."""
        memory = self.memory_mb / capacity.memory_mb if capacity.memory_mb else 0.0
        vcores = self.vcores / capacity.vcores if capacity.vcores else 0.0
        return max(memory, vcores)

    def amount(self, resource: str, capacity: Resource) -> float:
        """Return the amount in the unit of ``resource``.

        The unit is MiB (``memory``), vcores (``vcores``), or the fraction of ``capacity`` (``dominant``).
        """
        if resource == "dominant":
            return self.dominant_share(capacity)
        return float(self.memory_mb if resource == "memory" else self.vcores)


ZERO = Resource(0, 0)
#: Hadoop's Resources.unbounded(): no limit.
UNBOUNDED = Resource(2**63 - 1, 2**31 - 1)


def increments(conf: Mapping[str, object]) -> Resource:
    """Return the increments to which the Fair Scheduler rounds requests up.

    ``yarn.resource-types.*.increment-allocation``, else the older ``yarn.scheduler.increment-allocation-*``, else
    Hadoop's default.
    """

    def of(name: str, older: str, default: int) -> int:
        given = conf.get(f"yarn.scheduler.increment-allocation-{older}", default)
        value = str(conf.get(f"yarn.resource-types.{name}.increment-allocation", given))
        return int(value) if value.isdecimal() and int(value) > 0 else default

    return Resource(of("memory-mb", "mb", 1024), of("vcores", "vcores", 1))
