"""An experiment or a trace on the queues of a scheduler's own file, in the simulator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

from harness.base.errors import InputError
from harness.experiments.kind import hash_of
from harness.experiments.loads import resolved_document
from harness.experiments.resolve import LoadedExperiment, jobs_of
from harness.experiments.spec import PolicyUse, QueueSpec
from harness.model.queues import ROOT
from harness.policies.registry import stock_scheduler
from harness.sim.interfaces import SimulatedScheduler, simulated
from harness.sim.scheduler_file import SchedulerFile

#: Number of applications that are placed beforehand to find their queues, and the queues that they create.
MOST_LOOKED_AT = 1_000_000


def with_scheduler_file(experiment: LoadedExperiment, file: SchedulerFile) -> tuple[LoadedExperiment, list[str]]:
    """Put an experiment's nodes, jobs and policies on the queues and settings of a scheduler's file.

    Returns
    -------
    tuple of LoadedExperiment and list of str
        The experiment, and remarks for the user.

    Raises
    ------
    InputError
        The experiment uses MRv1 slots, which no YARN scheduler allocates, or the placement rules reject every
        application.
    """
    spec = experiment.spec
    if spec.slots is not None:
        raise InputError(
            "slots are MRv1's: no scheduler of YARN gives them out", where=experiment.name, hint="leave out the file"
        )
    file = file.settled(islice(jobs_of(experiment, spec.seeds[0])[0], MOST_LOOKED_AT))
    policies, notes = _policies(spec.policies, simulated(file.scheduler))
    spec = spec.model_copy(
        update={
            "queues": queues_of(file.weights()),
            "scheduler": file.scheduler,
            "capacity": {},
            "max_am_share": 0.5,
            "min_share_preemption_timeout_s": None,
            "policies": policies,
        }
    )
    resolved = {**resolved_document(spec, experiment.loads), "scheduler_file": file.described()}
    # The location of the file does not affect its results.
    counted = {**resolved, "scheduler_file": {**file.described(), "file": ""}}
    made = replace(
        experiment,
        spec=spec,
        hash=hash_of(counted, ensure_ascii=False),
        weights=file.weights(),
        leaves=tuple(file.leaves),
        resolved=resolved,
        scheduler_file=file,
    )
    return made, [*file.lines(), *(f"{file.path}: {note}" for note in notes)]


def queues_of(weights: Mapping[str, float]) -> dict[str, QueueSpec | None]:
    """Return a queue tree in an experiment's form with entitlements, for a run's record and pages."""
    found: dict[str, Any] = {}
    for path in sorted(weights, key=lambda path: path.count("."), reverse=True):
        below = found.pop(path, None)
        above, _, name = path.rpartition(".")
        if above:
            spec = QueueSpec(weight=weights[path]).model_copy(update={"children": below})
            found.setdefault(above, {})[name] = spec
        else:
            found[path] = below or {}
    order = {path: at for at, path in enumerate(weights)}

    def sorted_queues(queues: Mapping[str, QueueSpec], above: str) -> dict[str, QueueSpec | None]:
        names = sorted(queues, key=lambda name: order[f"{above}.{name}"])
        return {
            name: queues[name].model_copy(
                update={
                    "children": sorted_queues(below, f"{above}.{name}") if (below := queues[name].children) else None
                }
            )
            for name in names
        }

    return sorted_queues(found[ROOT], ROOT)


def _policies(uses: Sequence[PolicyUse], scheduler: SimulatedScheduler) -> tuple[list[PolicyUse], list[str]]:
    """Return an experiment's policies for one scheduler, and remarks on policies that have changed.

    The scheduler's stock policy replaces that of another scheduler. Other policies act from outside if the scheduler
    supports no policies inside.
    """
    found: dict[str, PolicyUse] = {}
    notes = []
    for use in uses:
        changes: dict[str, object] = {"scheduler": None}
        if stock_scheduler(use.policy) is not None:
            changes["policy"] = scheduler.stock_policy
        elif not scheduler.orders_inside and use.mode == "inside" and not use.in_rm:
            changes["mode"] = "outside"
            notes.append(f"policy {use.policy} acts from outside: on the {scheduler.title} no other way is covered")
        made = use.model_copy(update=changes)
        found.setdefault(made.model_dump_json(), made)
    return list(found.values()), notes
