"""An experiment or a trace on the queues of a scheduler's own file, in the simulator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import islice

from harness.base.errors import InputError
from harness.experiments.kind import hash_of
from harness.experiments.loads import resolved_document
from harness.experiments.resolve import LoadedExperiment, jobs_of
from harness.experiments.scheduler_file import SchedulerFile
from harness.experiments.spec import PolicyUse
from harness.model.queues import SchedulerName

#: So many applications are placed beforehand to tell what becomes of them, and which queues they create.
MOST_LOOKED_AT = 1_000_000


def with_scheduler_file(experiment: LoadedExperiment, file: SchedulerFile) -> tuple[LoadedExperiment, list[str]]:
    """The experiment's nodes, jobs and policies on the queues and settings of a scheduler's file.

    Returns
    -------
    The experiment, and what a user has to know of it, in words.

    Raises
    ------
    InputError
        Slots of MRv1, which no scheduler of YARN gives out; placement rules that reject every application.
    """
    spec = experiment.spec
    if spec.slots is not None:
        raise InputError(
            "slots are MRv1's: no scheduler of YARN gives them out", where=experiment.name, hint="leave out the file"
        )
    file = file.settled(islice(jobs_of(experiment, spec.seeds[0])[0], MOST_LOOKED_AT))
    policies, notes = _policies(spec.policies, file.scheduler)
    spec = spec.model_copy(
        update={
            "queues": file.queues(),
            "scheduler": file.scheduler,
            "capacity": {},
            "max_am_share": 0.5,
            "min_share_preemption_timeout_s": None,
            "policies": policies,
        }
    )
    resolved = {**resolved_document(spec, experiment.loads), "scheduler_file": file.described()}
    # The place of the file is none of its figures' business.
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


def _policies(uses: Sequence[PolicyUse], scheduler: SchedulerName) -> tuple[list[PolicyUse], list[str]]:
    """The policies of an experiment on one scheduler: its stock policy for the other's, the others as they can act."""
    found: dict[str, PolicyUse] = {}
    notes = []
    for use in uses:
        changes: dict[str, object] = {"scheduler": None}
        if use.policy in ("fair", "capacity"):
            changes["policy"] = scheduler
        elif scheduler == "capacity" and use.mode == "inside" and not use.in_rm:
            changes["mode"] = "outside"
            notes.append(f"policy {use.policy} acts from outside: on the Capacity Scheduler no other way is covered")
        made = use.model_copy(update=changes)
        found.setdefault(made.model_dump_json(), made)
    return list(found.values()), notes
