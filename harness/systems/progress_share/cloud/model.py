"""A loaded experiment of pools: its variants, its instance types, and the pools of its configurations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness.base.documents import YamlDocument, read_yaml, validated
from harness.base.errors import InputError
from harness.experiments.kind import KindVariant, Loaded
from harness.model.data import data_path
from harness.systems.progress_share.cloud.driver import InstanceType, Pool
from harness.systems.progress_share.cloud.spec import CloudExperiment, InstanceSpec

DRIVER = "driver"


@dataclass(frozen=True, slots=True)
class PoolsVariant(KindVariant):
    """One run: a configuration of the file, or the driver's choice."""

    def own(self) -> dict[str, Any]:
        """Return the variant's own settings for the record: the name of its configuration."""
        return {"configuration": self.name}


@dataclass(frozen=True, slots=True)
class LoadedPools(Loaded):
    """A loaded experiment of pools with the instance types that it names."""

    types: Mapping[str, InstanceType]

    def pool(self, nodes: Mapping[str, int], *at: str) -> Pool:
        """Return the pool that ``{type: count}`` describes.

        Raises InputError with file and line for an unknown type.
        """
        ((name, count),) = nodes.items()
        if name not in self.types:
            hint = f"one of {', '.join(self.types)}"
            raise InputError(f"no instance type {name[:60]!r}", where=self.document.where(at), hint=hint)
        return self.types[name], count

    def pools(self, configuration: str) -> tuple[Pool, tuple[Pool, ...]]:
        """Return a configuration's core pool and its pools of accelerators."""
        one, at = self.spec.configurations[configuration], ("configurations", configuration)
        core = self.pool(one.core, *at, "core")
        extra = [self.pool({name: count}, *at, "accelerators") for name, count in one.accelerators.items()]
        return core, tuple(extra)

    def candidates(self) -> list[InstanceType]:
        """Return the instance types that the driver may choose as accelerators."""
        names = self.spec.driver.types if self.spec.driver is not None else []
        return [self.pool({name: 1}, "driver", "types")[0] for name in names]

    def core_candidates(self) -> list[InstanceType]:
        """Return the instance types that the driver may choose as core nodes; empty if the core pool is given."""
        storage = self.spec.driver.storage if self.spec.driver is not None else None
        names = storage.types if storage is not None else []
        return [self.pool({name: 1}, "driver", "storage", "types")[0] for name in names]


def resolved_cloud(spec: CloudExperiment, types: Mapping[str, InstanceType]) -> dict[str, Any]:
    """Return everything that the results of an experiment of pools depend on, for its hash."""
    found = spec.model_dump(mode="json")
    # Leave out keys that are not used, so that the hashes of experiments from before these keys stay the same.
    if spec.docker is None:
        del found["docker"]
    for query in found["queries"].values():
        if query["deadline_h"] is None:
            del query["deadline_h"]
    storage = (found["driver"] or {}).get("storage")
    if storage and not storage["incoming_gb_h"]:
        del storage["incoming_gb_h"]
    return found | {"types": {name: str(kind) for name, kind in types.items()}}


def instance_types(spec: CloudExperiment, document: YamlDocument) -> dict[str, InstanceType]:
    """Return the instance types that an experiment names or defines. Raises InputError with file and line."""
    listed = spec.instance_types
    if isinstance(listed, str):
        path = data_path("workloads", "cloud", f"{listed}.yaml")
        if not path.is_file():
            raise InputError(
                f"no instance types {listed[:60]!r}",
                where=document.where(("instance_types",)),
                hint="name a file of workloads/cloud without .yaml, or write them out",
            )
        found = read_yaml(path)
        rows = {name: validated(InstanceSpec, found, data=found.data[name], at=(name,)) for name in found.data}
    else:
        rows = listed
    return {name: InstanceType(name, **row.model_dump()) for name, row in rows.items()}


def cost_summary(
    hours: float, cost: float, billed_h: int, core: Pool, accelerators: Sequence[Pool], period_h: float
) -> dict[str, Any]:
    """Return a run's time, cost and nodes for its summary; with several accelerator types, also the number of each."""
    mixed = {"accelerators": {kind.name: count for kind, count in accelerators}} if len(accelerators) > 1 else {}
    return {
        "makespan_s": round(hours * 3600, 3),
        "cost_dollars": round(cost, 6),
        "accelerator_billed_h": billed_h,
        "overloaded": hours > period_h,
        "nodes": {"core": core[1], "accelerators": sum(count for _, count in accelerators)},
        "types": {"core": core[0].name, "accelerators": " + ".join(kind.name for kind, _ in accelerators) or None},
        **mixed,
    }
