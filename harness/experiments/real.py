"""The backends with a real ResourceManager: an experiment's variants one after another on a cluster.

Each is a `RealRun` (harness.experiments.real_run); the cluster is harness.experiments.real_cluster's.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence

from harness.experiments.real_checks import check_experiment, check_policies
from harness.experiments.real_cluster import RealCluster, Target, open_cluster
from harness.experiments.real_kept import KeptCluster
from harness.experiments.real_programs import Programs, allow_memory, has_programs, make_data
from harness.experiments.real_run import RealRun
from harness.experiments.real_start import await_nodes, real_policies, real_variants, warm_up
from harness.experiments.resolve import LoadedExperiment, Variant
from harness.experiments.simulated import Outcome, Step
from harness.results.store import RunDirectory

__all__ = ["real_policies", "real_runner", "real_variants"]


@contextlib.contextmanager
def real_runner(
    experiment: LoadedExperiment,
    variants: Sequence[Variant],
    backend: str,
    target: Target,
    progress: Callable[[str], None],
) -> Iterator[Callable[[LoadedExperiment, Variant, RunDirectory, Callable[[Step], None] | None], Outcome]]:
    """Runs variants one after another on a cluster, which lasts as long as the context.

    ``variants``: those of which is known that they come; others may follow. Raises InputError and CallError for what
    the cluster could not run, before it is brought up.
    """
    check_experiment(experiment, backend, target)
    check_policies(variants, backend, target)
    programs_here = has_programs(experiment)
    data = make_data(experiment, progress) if programs_here else {}

    @contextlib.contextmanager
    def opens(inside: Variant | None) -> Iterator[RealCluster]:
        with open_cluster(experiment, backend, target, progress, inside=inside) as cluster:
            progress("warming up: one small job")
            warm_up(experiment, cluster)
            yield cluster

    with contextlib.ExitStack() as stack:
        if programs_here and backend == "docker" and target.rm is None:
            stack.enter_context(allow_memory(experiment))
        kept = stack.enter_context(KeptCluster(opens, target, progress))
        kept.open(next((variant for variant in variants if variant.in_rm), None))

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
            with RealRun(experiment, variant, directory, cluster, programs) as one:
                return one.run(on_step)

        yield run
