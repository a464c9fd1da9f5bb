"""An experiment of pools: its runs, its instance types, and the pools of its configurations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from harness.base.documents import YamlDocument, read_yaml, validated
from harness.base.errors import InputError
from harness.experiments.kind import Loaded
from harness.kinds.pools.spec import CloudExperiment, InstanceSpec
from harness.model.data import data_path
from harness.policies.cloud_driver import InstanceType

DRIVER = "driver"


@dataclass(frozen=True, slots=True)
class PoolsVariant:
    """One run: a configuration of the file, or what the driver chooses."""

    name: str
    seed: int

    @property
    def policy(self) -> str:
        return self.name

    @property
    def mode(self) -> str:
        return "cloud"

    @property
    def settings(self) -> Mapping[str, Any]:
        return {}

    def identity(self) -> dict[str, Any]:
        """As it stands in ``run.json``."""
        return {
            "variant": self.name,
            "policy": {"name": self.policy, "mode": self.mode, "settings": {}},
            "configuration": self.name,
            "seed": self.seed,
        }


@dataclass(frozen=True, slots=True)
class LoadedPools(Loaded):
    """An experiment of pools with the instance types that it names."""

    types: Mapping[str, InstanceType]

    def pool(self, nodes: Mapping[str, int], *at: str) -> tuple[InstanceType, int]:
        """``{type: count}`` as a pair. InputError with file and line for a type that is none."""
        ((name, count),) = nodes.items()
        if name not in self.types:
            mend = f"one of {', '.join(self.types)}"
            raise InputError(f"no instance type {name[:60]!r}", where=self.document.where(at), mend=mend)
        return self.types[name], count

    def pools(self, configuration: str) -> tuple[tuple[InstanceType, int], tuple[InstanceType, int] | None]:
        """A configuration's core pool and its accelerators."""
        one, at = self.spec.configurations[configuration], ("configurations", configuration)
        core = self.pool(one.core, *at, "core")
        return core, self.pool(one.accelerators, *at, "accelerators") if one.accelerators else None

    def candidates(self) -> list[InstanceType]:
        """What the driver may choose."""
        names = self.spec.driver.types if self.spec.driver is not None else []
        return [self.pool({name: 1}, "driver", "types")[0] for name in names]


def resolved_cloud(spec: CloudExperiment, types: Mapping[str, InstanceType]) -> dict[str, Any]:
    """All that the results of an experiment of pools depend on."""
    found = spec.model_dump(mode="json")
    if spec.docker is None:
        del found["docker"]  # experiments without it are what they were before it was there
    return found | {"types": {name: str(kind) for name, kind in types.items()}}


def instance_types(spec: CloudExperiment, document: YamlDocument) -> dict[str, InstanceType]:
    """The instance types that an experiment names or writes out. InputError with file and line."""
    listed = spec.instance_types
    if isinstance(listed, str):
        path = data_path("workloads", "cloud", f"{listed}.yaml")
        if not path.is_file():
            raise InputError(
                f"no instance types {listed[:60]!r}",
                where=document.where(("instance_types",)),
                mend="name a file of workloads/cloud without .yaml, or write them out",
            )
        found = read_yaml(path)
        rows = {name: validated(InstanceSpec, found, data=found.data[name], at=(name,)) for name in found.data}
    else:
        rows = listed
    return {name: InstanceType(name, **row.model_dump()) for name, row in rows.items()}
