"""The experiment type ``cloud`` (HotCloud 2011, pools and their cost; docs/reference/progress-share.md).

Variants are computed by a model here. With ``--backend docker``, harness.systems.progress_share.cloud.real runs them on
containers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager

from harness.base.documents import YamlDocument, validated
from harness.base.errors import CallError, InputError
from harness.experiments.kind import Computed, Ended, Kind, Runner, Target, hash_of
from harness.experiments.selection import EVERYTHING, Selection
from harness.systems.progress_share.cloud.columns import comparison_pools
from harness.systems.progress_share.cloud.driver import (
    Decision,
    Query,
    choose_accelerators,
    choose_pools,
    hours_of,
    period_cost,
)
from harness.systems.progress_share.cloud.model import (
    DRIVER,
    LoadedPools,
    PoolsVariant,
    cost_summary,
    instance_types,
    resolved_cloud,
)
from harness.systems.progress_share.cloud.spec import CloudExperiment, DriverSpec


def _ends(spec: CloudExperiment, hours: float, nodes: str) -> float:
    if math.isinf(hours):
        what = f"no node of {nodes} can run some query"
        raise InputError(what, where=spec.experiment, hint="add a type with memory_gb enough for each core")
    return hours


def _drive(experiment: LoadedPools, driver: DriverSpec, queries: Sequence[Query]) -> Decision:
    """Return the pools that the driver chooses for the queries of one period."""
    types, period_h, deadline_h = experiment.candidates(), experiment.spec.period_h, driver.deadline_h
    if driver.storage is not None:
        held = driver.storage
        return choose_pools(
            queries,
            experiment.core_candidates(),
            types,
            held.data_gb + held.incoming_gb_h * period_h,
            deadline_h=deadline_h,
            period_h=period_h,
            replicas=held.replicas,
            most=driver.most,
        )
    assert driver.core is not None
    core = experiment.pool(driver.core, "driver", "core")
    return choose_accelerators(
        queries, core, types, deadline_h=deadline_h, period_h=period_h, most=driver.most, kinds=driver.kinds
    )


class Pools(Kind[LoadedPools, PoolsVariant]):
    """The experiment type ``cloud``: production queries every period on core nodes, with or without accelerators."""

    name = "cloud"
    backends = ("sim", "docker")
    page = "harness.systems.progress_share.cloud.page:content_pools"
    finding = "harness.systems.progress_share.cloud.page:findings_pools"

    def load(self, document: YamlDocument) -> LoadedPools:
        """Read and check an experiment file. Raises InputError."""
        spec = validated(CloudExperiment, document)
        types = instance_types(spec, document)
        loaded = LoadedPools(spec, document, hash_of(resolved_cloud(spec, types)), types)
        for name in spec.configurations:
            loaded.pools(name)
        if spec.driver is not None:
            if spec.driver.core is not None:
                loaded.pool(spec.driver.core, "driver", "core")
            loaded.core_candidates()
            loaded.candidates()
        return loaded

    def variants(self, experiment: LoadedPools, asked: Selection = EVERYTHING) -> list[PoolsVariant]:
        """Return the file's configurations, and the driver if it has one."""
        spec = experiment.spec
        if asked.policies or asked.settings or asked.seeds:
            what = "an experiment of pools has neither policies nor seeds"
            raise CallError(what, where=spec.experiment, hint="leave them out")
        names = [*spec.configurations]
        if spec.driver is not None:
            # On containers the driver runs first: the model then predicts the other variants from the rates that it
            # measures.
            names = [DRIVER, *names] if asked.real else [*names, DRIVER]
        return [PoolsVariant(name, name, "cloud", {}, spec.seed) for name in names]

    def check(
        self, experiment: LoadedPools, variants: Sequence[PoolsVariant], backend: str, target: Target | None
    ) -> None:
        """Check that the variants can run on the backend. Raises InputError or CallError."""
        super().check(experiment, variants, backend, target)
        if backend == "docker":
            from harness.systems.progress_share.cloud.real import docker_cloud

            docker_cloud(experiment)

    def compute(self, experiment: LoadedPools, variant: PoolsVariant) -> Computed:
        """Compute the hours and costs of a variant with the model."""
        spec = experiment.spec
        queries = [Query(name, **query.model_dump()) for name, query in spec.queries.items()]
        if variant.name == DRIVER and spec.driver is not None:
            chosen = _drive(experiment, spec.driver, queries)
            _ends(spec, chosen.hours, "the driver's core pool and types")
            core, extra = chosen.core, chosen.accelerators
            summary = cost_summary(chosen.hours, chosen.cost, chosen.billed_h, core, extra, spec.period_h)
            decision = {
                "time_s": 0.0,
                "core": {core[0].name: core[1]},
                "accelerators": {kind.name: count for kind, count in extra},
                "why": chosen.why,
                "refused": dict(chosen.refused),
            }
            return Computed({**summary, "meets_deadline": chosen.meets_deadline}, {}, [decision])
        core, extra = experiment.pools(variant.name)
        hours = _ends(spec, hours_of(queries, [core, *extra]), "the configuration")
        cost, billed = period_cost(core, extra, hours, spec.period_h)
        return Computed(cost_summary(hours, cost, billed, core, extra, spec.period_h))

    def on_cluster(
        self,
        experiment: LoadedPools,
        variants: Sequence[PoolsVariant],
        backend: str,
        target: Target,
        says: Callable[[str], None],
    ) -> AbstractContextManager[Runner]:
        """Return a context that runs variants on containers."""
        from harness.systems.progress_share.cloud.real import docker_cloud, open_runner

        return open_runner(docker_cloud(experiment), says)

    def comparison(self, experiment: LoadedPools, ended: Sequence[Ended]) -> list[str]:
        """Return the table that compares the configurations."""
        return comparison_pools(experiment, ended)


KIND = Pools()
