"""Checks before a real cluster is started: refuses experiments and policies that it cannot run as intended.

Starting a cluster takes a minute and runs take long, so errors should be found before.
"""

from __future__ import annotations

from collections.abc import Sequence

from harness.base.errors import CallError, InputError
from harness.clusters import inrm
from harness.clusters.backends import backend_class
from harness.control.settings import check_counting
from harness.experiments.kind import Target
from harness.experiments.orders import has_own
from harness.experiments.real.programs import NO_TOKENS, check_memory, program_jobs
from harness.experiments.real.schedulers import REAL_SCHEDULERS
from harness.experiments.resolve import LoadedExperiment, Variant, jobs_of
from harness.policies import make_policy
from harness.policies.registry import stock_scheduler
from harness.sim.interfaces import simulated

_SIM = "use --backend sim"


def check_experiment(experiment: LoadedExperiment, backend: str, target: Target) -> None:
    """Check that a real cluster can run an experiment.

    Raises InputError for MRv1 slots, a trace without an end, speculative copies, and more daemons or program containers
    than this machine can hold (if it is to hold them).
    """
    spec, where = experiment.spec, experiment.document.where
    if spec.slots is not None:
        raise InputError("YARN has no map and reduce slots", where=where(("slots",)), hint=_SIM)
    if spec.hadoop is not None:
        what = f"no cluster of Hadoop {spec.hadoop} is started"
        raise InputError(what, where=where(("hadoop",)), hint=f"leave it out, or {_SIM}")
    if spec.faults.speculation:
        raise InputError(
            "speculative copies are not replayed",
            where=where(("faults", "speculation")),
            hint=f"set it to false, or {_SIM}",
        )
    if jobs_of(experiment, spec.seeds[0])[1] is None:
        raise InputError("a trace without an end", where=where(("workloads",)), hint=f"give first: N, or {_SIM}")
    if own := has_own(spec):
        what = f"queue {own}: ltrf, quantum_s and round_s of single queues are the simulator's"
        raise InputError(what, where=where(("queues",)), hint=f"leave them out, or {_SIM}")
    if target.http is not None and target.http.login is not None and program_jobs(experiment, spec.seeds[0]):
        raise InputError(
            f"programs {NO_TOKENS}", where=where(("workloads",)), hint="take out the queues whose kind is programs"
        )
    if target.rm is None and backend_class(backend).here:
        check_memory(experiment)


def check_policies(variants: Sequence[Variant], backend: str, target: Target) -> None:
    """Check that the variants' policies can run on the backend's cluster. Raises CallError."""
    stays = target.rm is not None and target.allocations is None
    for variant in variants:
        if stays and (stock_scheduler(variant.policy) is None or variant.mode == "outside" or variant.settings):
            what = "--rm without --allocations: the cluster's queues and policy stay as they are"
            stock = simulated(variant.scheduler).stock_policy
            hint = f"say where the RM's allocation file lies (a path, sftp:// ...), or use --policy {stock}"
            raise CallError(what, where=variant.name, hint=hint)
        if variant.scheduler not in backend_class(backend).schedulers:
            what = f"the {backend} backend brings up no {variant.scheduler} scheduler"
            raise CallError(what, where=f"{variant.name}: scheduler: {variant.scheduler}", hint=_SIM)
        scheduler = REAL_SCHEDULERS[variant.scheduler]
        if target.rm is not None and not scheduler.sets_given_queues:
            what = f"queues of a given cluster with the {scheduler.title} are not set"
            hint = f"leave out --rm, and the experiment has a cluster of its own, or {_SIM}"
            raise CallError(what, where=f"{variant.name}: scheduler: {variant.scheduler}", hint=hint)
        if variant.mode == "outside":
            check_counting(make_policy(variant.policy, variant.settings))
    check_inside(variants, backend, target)


def check_inside(variants: Sequence[Variant], backend: str, target: Target) -> None:
    """Check that the policies inside the ResourceManager, if there are any, can run there.

    A cluster that we start gets each policy's settings; an external RM has those of its own start.

    Raises CallError.
    """
    inside = [variant for variant in variants if variant.in_rm]
    if inside and target.rm is None and not backend_class(backend).takes_jars:
        raise CallError(
            f"{inside[0].name} is inside the RM",
            where=f"--backend {backend}",
            hint="use --backend local, or leave it out",
        )
    for variant in inside:
        inrm.own_settings(variant.policy, variant.settings)
    if target.rm is not None:
        check_alike(inside)


def check_alike(inside: Sequence[Variant]) -> None:
    """Check that these policies inside the ResourceManager have equal settings. Raises CallError."""
    found = [inrm.own_settings(variant.policy, variant.settings) for variant in inside]
    for variant, settings in zip(inside, found, strict=True):
        if settings != found[0]:
            raise CallError(
                f"{inside[0].name} and {variant.name} have different settings, which an RM takes when it starts",
                where="in_rm",
                hint="they need an RM each: run them one at a time",
            )
