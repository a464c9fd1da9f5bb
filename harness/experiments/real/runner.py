"""Runs an experiment's variants one after another on a real cluster.

Each run is a `RealRun` (harness.experiments.real.run); harness.experiments.real.cluster provides the cluster.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Self

from harness.clusters import inrm
from harness.experiments.kind import Outcome, Step, Target
from harness.experiments.real.checks import check_alike, check_experiment, check_policies
from harness.experiments.real.cluster import RealCluster, open_cluster
from harness.experiments.real.endless import check_ends, default_limit_s
from harness.experiments.real.programs import Programs, make_data, node_limit_mb, program_jobs
from harness.experiments.real.run import RealRun
from harness.experiments.real.start import await_nodes, warm_up
from harness.experiments.resolve import LoadedExperiment, Variant
from harness.results.store import RunDirectory

#: Starts and warms up a cluster with this scheduler and the jar for this variant inside the RM (None: no jar).
Opens = Callable[[Variant | None, str], AbstractContextManager[RealCluster]]


def _choice(variant: Variant | None) -> tuple[str, Mapping[str, str]] | None:
    return None if variant is None else (variant.policy, inrm.own_settings(variant.policy, variant.settings))


class KeptCluster:
    """The cluster of an experiment's runs, which stays up between runs that do not affect one another.

    A policy inside the ResourceManager affects later runs, because its accounts and settings last as long as the RM.
    Each run of such a policy therefore gets a new RM, and so does each scheduler. As a context manager, the object
    stops the cluster at the end.
    """

    def __init__(self, opens: Opens, target: Target, progress: Callable[[str], None]) -> None:
        self._opens, self._given, self._progress = opens, target.rm is not None, progress
        self._stack = contextlib.ExitStack()
        self._cluster: RealCluster | None = None
        #: The variant inside the RM for which the cluster was started, and whether such a variant has run there.
        self._inside: Variant | None = None
        self._scheduler = "fair"
        self._has_accounts = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def open(self, inside: Variant | None, scheduler: str = "fair") -> RealCluster:
        """Start the cluster. ``inside``: the variant to run inside the RM, if any."""
        self._cluster = self._stack.enter_context(self._opens(inside, scheduler))
        self._inside, self._scheduler, self._has_accounts = inside, scheduler, False
        return self._cluster

    def cluster_for(self, variant: Variant) -> RealCluster:
        """Return a cluster for a variant, which is started if necessary. Raises the errors of a start."""
        inside = variant if variant.in_rm else None
        if self._cluster is not None and variant.scheduler != self._scheduler:
            self._progress(f"{variant.name}: the other scheduler begins with a ResourceManager of its own")
            self.close()
        if self._cluster is not None and inside is not None:
            if self._given:
                if self._inside is not None:
                    check_alike([self._inside, inside])
                self._inside = inside
                if self._has_accounts:
                    self._progress(
                        f"{variant.name}: the accounts inside the given RM go on from the run before; "
                        "restart the RM between such runs"
                    )
            elif self._has_accounts or _choice(self._inside) != _choice(inside):
                self._progress(f"{variant.name}: a policy inside the RM begins with one of its own")
                self.close()
        cluster = self._cluster if self._cluster is not None else self.open(inside, variant.scheduler)
        self._has_accounts = self._has_accounts or variant.in_rm
        return cluster

    def close(self) -> None:
        """Stop the cluster, if it is up."""
        stack, self._stack, self._cluster = self._stack, contextlib.ExitStack(), None
        stack.close()


@contextlib.contextmanager
def real_runner(
    experiment: LoadedExperiment,
    variants: Sequence[Variant],
    backend: str,
    target: Target,
    progress: Callable[[str], None],
) -> Iterator[Callable[[LoadedExperiment, Variant, RunDirectory, Callable[[Step], None] | None], Outcome]]:
    """Provide a runner of variants on a cluster, which lasts as long as the context.

    ``variants``: the variants known in advance; others may follow. Raises InputError and CallError for variants that
    the cluster cannot run, before it is started.
    """
    check_experiment(experiment, backend, target)
    check_policies(variants, backend, target)
    # The simulator does not know the size of an external cluster, or the requests of programs.
    if variants and target.rm is None and not program_jobs(experiment, experiment.spec.seeds[0]):
        limit_s = check_ends(experiment, variants, progress)
    else:
        limit_s = default_limit_s(experiment)
    limit_mb = node_limit_mb(experiment)
    data = make_data(experiment, progress)

    @contextlib.contextmanager
    def opens(inside: Variant | None, scheduler: str) -> Iterator[RealCluster]:
        with open_cluster(
            experiment, backend, target, progress, inside=inside, scheduler=scheduler, node_limit_mb=limit_mb
        ) as cluster:
            progress("warming up: one small job")
            warm_up(experiment, cluster)
            yield cluster

    with contextlib.ExitStack() as stack:
        kept = stack.enter_context(KeptCluster(opens, target, progress))
        inside = next((variant for variant in variants if variant.in_rm), None)
        kept.open(inside, variants[0].scheduler if inside is None and variants else "fair")

        def run(
            experiment: LoadedExperiment,
            variant: Variant,
            directory: RunDirectory,
            on_step: Callable[[Step], None] | None = None,
        ) -> Outcome:
            check_policies([variant], backend, target)
            cluster = kept.cluster_for(variant)
            await_nodes(cluster)
            programs = Programs(experiment, cluster, data, progress)
            with RealRun(experiment, variant, directory, cluster, programs, limit_s=limit_s) as one:
                return one.run(on_step)

        yield run
