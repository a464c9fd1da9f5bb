"""The cluster and load that `yarnfair sim serve` serves: an experiment's, or a synthetic load of a given size."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from harness.base.errors import CallError
from harness.base.files import read_text, writing
from harness.experiments.resolve import LoadedExperiment, jobs_of, load_experiment, variants_of
from harness.experiments.scheduler_file import file_of
from harness.experiments.simulated import setup_of
from harness.experiments.spec import DEFAULT_SCHEDULER
from harness.model.jobs import Duration, JobSpec, NodeSpec, Stage
from harness.model.queues import AllocationFile, QueueSettings
from harness.model.resources import Resource
from harness.sim.interfaces import simulated
from harness.sim.scheduler_file import SchedulerFile

if TYPE_CHECKING:
    from harness.sim.setup import SimSetup

#: The synthetic load: resources of AM and task, and number of tasks of an application (so many that it never ends).
_AM, _TASK, _TASKS = Resource(1024, 1), Resource(1024, 1), 1_000_000
#: Log-normal with a mean of 120 s.
_DURATION = Duration("lognormal", mu=4.662491742782046, sigma=0.5)
_NODE = Resource(65536, 64)
#: Average number of running tasks per application.
_RUNNING = 2


def served_experiment(name: str, scheduler: str = DEFAULT_SCHEDULER) -> LoadedExperiment:
    """Load an experiment for one scheduler, regardless of its file's setting. Raises InputError."""
    experiment = load_experiment(name)
    return replace(experiment, spec=experiment.spec.model_copy(update={"scheduler": scheduler}))


def setup_of_loaded(experiment: LoadedExperiment, policy: str | None, seed: int | None) -> SimSetup:
    """Return an experiment's cluster, queues and jobs, with a policy inside the scheduler (None: the stock policy).

    Raises CallError for a policy from outside, because the served cluster exists for an external controller.
    """
    seeds = [seed] if seed is not None else [1]
    stock = simulated(experiment.spec.scheduler).stock_policy
    (variant,) = variants_of(experiment, policies=[policy or stock], seeds=seeds)[:1]
    if variant.mode == "outside":
        raise CallError(
            f"{policy} acts from outside", where="--policy", hint="leave it out and run the controller beside it"
        )
    jobs, _ = jobs_of(experiment, variant.seed)
    setup, file = setup_of(experiment, variant, jobs), experiment.scheduler_file
    return setup if file is None else replace(setup, groups=file.groups)


def experiment_setup(name: str, policy: str | None, seed: int | None, scheduler: str = DEFAULT_SCHEDULER) -> SimSetup:
    """Return `setup_of_loaded` for an experiment by its name or file."""
    return setup_of_loaded(served_experiment(name, scheduler), policy, seed)


def setup_on_file(file: SchedulerFile, apps: int, seed: int = 1) -> SimSetup:
    """Return the synthetic load of `synthetic_setup` on the leaves of a scheduler's file, in turn."""
    setup = synthetic_setup(1, apps, seed, file.scheduler)
    leaves = file.leaves
    jobs = [replace(job, queue=leaves[number % len(leaves)]) for number, job in enumerate(setup.jobs)]
    return replace(
        setup,
        allocations=file.allocations,
        jobs=jobs,
        entitlements=file.weights(),
        capacity=file.capacity,
        capacity_complete=True,
        groups=file.groups,
    )


def synthetic_setup(queues: int, apps: int, seed: int = 1, scheduler: str = DEFAULT_SCHEDULER) -> SimSetup:
    """Return `queues` leaves of equal weight and `apps` endless applications, each with two running tasks of 120 s.

    Applications go to the queues in turn. Each application always has outstanding containers, so every queue has a
    backlog.
    """
    from harness.sim.setup import SimSetup

    leaves = [f"root.q{number:04d}" for number in range(1, queues + 1)]
    allocations = AllocationFile(
        settings={leaf: QueueSettings(leaf, weight=1.0) for leaf in leaves},
        configured_leaves=tuple(leaves),
        configured_parents=("root",),
        queue_max_am_share_default=-1.0,
    )
    stage = Stage("map", _TASKS, _TASK, _DURATION)
    jobs = [
        JobSpec(
            id=f"load-{number:05d}",
            queue=leaves[number % queues],
            kind="mapreduce",
            am=_AM,
            stages=(stage,),
            name=f"load-{number:05d}",
            # Submitted over at most a minute, because no client submits thousands at once.
            submit_s=round(min(60.0, apps / 100) * number / apps, 3),
        )
        for number in range(apps)
    ]
    needed = apps * (_AM.memory_mb + _RUNNING * _TASK.memory_mb)
    count = max(-(-needed // _NODE.memory_mb), 1)
    nodes = tuple(NodeSpec(f"node-{at:04d}", _NODE.memory_mb, _NODE.vcores) for at in range(1, count + 1))
    conf = {
        "yarn.scheduler.maximum-allocation-mb": str(_NODE.memory_mb),
        "yarn.scheduler.fair.assignmultiple": "true",
    }
    return SimSetup(nodes=nodes, allocations=allocations, jobs=jobs, conf=conf, seed=seed, scheduler=scheduler)


def with_store(setup: SimSetup, store: str) -> SimSetup:
    """Return the setup with this store of the scheduler's configuration, if the scheduler supports several.

    ``memory`` is changed over REST, ``file`` by a refresh.
    """
    served = simulated(setup.scheduler).served
    if served is None or not served.has_store:
        return setup
    return replace(setup, conf={**setup.conf, "yarn.scheduler.configuration.store.class": store})


def file_name(scheduler: str) -> str:
    """Return the name of the scheduler's file."""
    return file_of(scheduler).file_name


def with_file(setup: SimSetup, file: Path) -> SimSetup:
    """Return the setup with the scheduler's file at `file`, which is written from the setup if it does not exist.

    Raises InputError for a file with which the RM would not start, or which lacks a queue of the load.
    """
    kind = file_of(setup.scheduler)
    if not file.exists():
        setup, text = kind.written(setup)
        with writing(file, "give another"):
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
        return setup
    setup = kind.put_in(setup, read_text(file, hint="give a readable file"), str(file))
    known = {*setup.allocations.configured_leaves, *setup.allocations.configured_parents, "root"}
    entitlements = {queue: weight for queue, weight in setup.entitlements.items() if queue in known}
    return replace(setup, entitlements=entitlements)
