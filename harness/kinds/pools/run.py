"""``kind: cloud`` (HotCloud 2011, pools and their cost; docs/reference/progress-share.md).

By the model here; on containers (``--backend docker``) harness.kinds.pools.real's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from harness.base.documents import YamlDocument, validated
from harness.base.errors import CallError, InputError
from harness.experiments.kind import Computed, Ended, Kind, Runner, hash_of
from harness.kinds.pools.model import DRIVER, LoadedPools, PoolsVariant, instance_types, resolved_cloud
from harness.kinds.pools.spec import CloudExperiment
from harness.policies.cloud_driver import InstanceType, Query, choose_accelerators, hours_of, period_cost

if TYPE_CHECKING:
    from harness.experiments.kind import Target
    from harness.report.data import Run
    from harness.report.findings import Finding
    from harness.report.page import Content


def _ends(spec: CloudExperiment, hours: float, nodes: str) -> float:
    if math.isinf(hours):
        raise InputError(f"no node of {nodes} can run some query", where=spec.experiment)
    return hours


def _cost_summary(
    hours: float,
    cost: float,
    billed_h: int,
    core: tuple[InstanceType, int],
    extra: tuple[InstanceType, int] | None,
    period_h: float,
) -> dict[str, Any]:
    return {
        "makespan_s": round(hours * 3600, 3),
        "cost_dollars": round(cost, 6),
        "accelerator_billed_h": billed_h,
        "overloaded": hours > period_h,
        "nodes": {"core": core[1], "accelerators": extra[1] if extra is not None else 0},
        "types": {"core": core[0].name, "accelerators": extra[0].name if extra is not None else None},
    }


class Pools(Kind):
    """Production queries every period on core nodes with or without accelerators."""

    name = "cloud"

    @property
    def backends(self) -> tuple[str, ...]:
        return ("sim", "docker")

    def load(self, document: YamlDocument) -> LoadedPools:
        spec = validated(CloudExperiment, document)
        types = instance_types(spec, document)
        loaded = LoadedPools(spec, document, hash_of(resolved_cloud(spec, types)), types)
        for name in spec.configurations:
            loaded.pools(name)
        if spec.driver is not None:
            loaded.pool(spec.driver.core, "driver", "core")
            loaded.candidates()
        return loaded

    def variants(
        self,
        experiment: LoadedPools,
        *,
        policies: Sequence[str] = (),
        settings: Mapping[str, str] | None = None,
        seeds: Sequence[int] = (),
        real: bool = False,
    ) -> list[PoolsVariant]:
        spec = experiment.spec
        if policies or settings or seeds:
            what = "an experiment of pools has neither policies nor seeds"
            raise CallError(what, where=spec.experiment, mend="leave them out")
        names = [*spec.configurations]
        if spec.driver is not None:
            # On containers it comes first: with the rates that it measures, the model says what the others should take.
            names = [DRIVER, *names] if real else [*names, DRIVER]
        return [PoolsVariant(name, spec.seed) for name in names]

    def check(
        self, experiment: LoadedPools, variants: Sequence[PoolsVariant], backend: str, target: Target | None
    ) -> None:
        super().check(experiment, variants, backend, target)
        if backend == "docker":
            from harness.kinds.pools.real import docker_cloud

            docker_cloud(experiment)

    def compute(self, experiment: LoadedPools, variant: PoolsVariant) -> Computed:
        spec = experiment.spec
        queries = [Query(name, **query.model_dump()) for name, query in spec.queries.items()]
        if variant.name == DRIVER and spec.driver is not None:
            driver = spec.driver
            core = experiment.pool(driver.core, "driver", "core")
            chosen = choose_accelerators(
                queries,
                core,
                experiment.candidates(),
                deadline_h=driver.deadline_h,
                period_h=spec.period_h,
                most=driver.most,
            )
            _ends(spec, chosen.hours, "the driver's core pool and types")
            extra = (chosen.accelerator, chosen.count) if chosen.accelerator is not None else None
            summary = _cost_summary(chosen.hours, chosen.cost, chosen.billed_h, core, extra, spec.period_h)
            decision = {
                "time_s": 0.0,
                "accelerators": {chosen.accelerator.name: chosen.count} if chosen.accelerator else {},
                "why": chosen.why,
                "refused": dict(chosen.refused),
            }
            return Computed({**summary, "meets_deadline": chosen.meets_deadline}, {}, [decision])
        core, extra = experiment.pools(variant.name)
        hours = _ends(spec, hours_of(queries, [core] + ([extra] if extra else [])), "the configuration")
        cost, billed = period_cost(core, extra, hours, spec.period_h)
        return Computed(_cost_summary(hours, cost, billed, core, extra, spec.period_h))

    def on_cluster(
        self,
        experiment: LoadedPools,
        variants: Sequence[PoolsVariant],
        backend: str,
        target: Target,
        says: Callable[[str], None],
    ) -> AbstractContextManager[Runner]:
        from harness.kinds.pools.real import docker_cloud, open_runner

        return open_runner(docker_cloud(experiment), says)

    def comparison(self, experiment: LoadedPools, ended: Sequence[Ended]) -> list[str]:
        from harness.kinds.pools.columns import comparison_pools

        return comparison_pools(experiment, ended)

    def content(self, runs: Sequence[Run]) -> Content:
        from harness.kinds.pools.page import content_pools

        return content_pools(runs)

    def findings(self, runs: Sequence[Run]) -> list[Finding]:
        from harness.kinds.pools.page import findings_pools

        return findings_pools(runs)


KIND = Pools()
