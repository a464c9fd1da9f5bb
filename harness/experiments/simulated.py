"""Converts a YARN experiment to the simulator's input; also functions that real and simulated runs share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from harness.experiments.orders import queue_orders
from harness.experiments.resolve import LoadedExperiment, Variant, allocation_file, jobs_of, nodes_of
from harness.experiments.submissions import submission_queue
from harness.model.jobs import JobSpec, TaskFaults
from harness.model.preemption import PreemptionRule
from harness.model.resources import Resource
from harness.policies.capabilities import KnobPolicy
from harness.policies.registry import make_policy
from harness.policies.user_file import users_mistakes
from harness.yarn.capacity.monitors import preempts
from harness.yarn.capacity.properties import PREFIX
from harness.yarn.capacity.queues import queue_tree
from harness.yarn.capacity.traps import find_traps, preemption_bound

if TYPE_CHECKING:
    from harness.experiments.spec import Experiment
    from harness.sim.setup import MapReduceMaster, Progress, SimResult, SimSetup

#: Interval at which the RM checks its allocation file, seconds (AllocationFileLoaderService).
POLL_S = 10.0


def setup_of(experiment: LoadedExperiment, variant: Variant, jobs: Iterable[JobSpec]) -> SimSetup:
    """Return the simulator's input for one variant."""
    from harness.sim.capacity.tree import capacity_settings
    from harness.sim.setup import Delays, SimSetup

    spec, file = experiment.spec, experiment.scheduler_file
    nodes, allocations = nodes_of(spec), allocation_file(spec) if file is None else file.allocations
    capacity = texts(spec.capacity) if file is None else file.capacity
    # A Capacity Scheduler's file may also have settings of preemption, which take precedence.
    conf = texts(spec.conf) if file is None else {**texts(spec.conf), **file.conf}
    bound = None
    if variant.mode == "outside" and variant.scheduler == "capacity" and preempts(conf):
        whole = capacity if file is not None else {**capacity_settings(allocations, nodes), **capacity}
        bound = _bound(whole, conf, accepted=spec.actuation.accept_preemption)
    return SimSetup(
        nodes=nodes,
        allocations=allocations,
        jobs=jobs,
        entitlements=dict(experiment.weights),
        queue_orders=queue_orders(spec) if file is None else {},
        policy=make_policy(variant.policy, variant.settings),
        mode=variant.mode,
        period_s=variant.period_s,
        actuation_delay_s=spec.actuation.delay_s,
        poll_s=spec.actuation.poll_s or (POLL_S if variant.poll else 0.0),
        scheduler=variant.scheduler,
        capacity=capacity,
        capacity_complete=file is not None,
        max_ratio=spec.actuation.max_ratio,
        task_lengths=spec.actuation.task_lengths,
        preemption=bound,
        preemption_budget_mb_s=spec.actuation.preemption_budget_mb_s,
        conf=conf,
        delays=Delays(**spec.delays.model_dump(exclude_none=True)),
        mapreduce=_masters(spec),
        hadoop=spec.hadoop,
        faults=TaskFaults(**spec.faults.model_dump()),
        resource=spec.resource,
        seed=variant.seed,
        sample_s=spec.sample_s,
        time_limit_s=spec.limits.duration_s or spec.limits.time_limit_s,
        stop_when_stuck=spec.limits.duration_s is None,
    )


def _masters(spec: Experiment) -> MapReduceMaster:
    """Return the settings of MapReduce's masters; the Fair Scheduler of Hadoop 2.2 reports no headroom (YARN-1959)."""
    from harness.sim.setup import MapReduceMaster

    master = MapReduceMaster(**spec.mapreduce.model_dump())
    return master if spec.hadoop is None else replace(master, headroom="none")


def _bound(capacity: Mapping[str, str], conf: Mapping[str, str], *, accepted: bool) -> PreemptionRule | None:
    """Return the preemption rule by which `enforce` would bound shares; None: shares are not bounded.

    Parameters
    ----------
    capacity
        All of the scheduler's properties, without their prefix.
    conf
        The ResourceManager's own properties.
    accepted
        Whether preemption is accepted.
    """
    values = {PREFIX + name: value for name, value in capacity.items()}
    traps = find_traps(values, conf, queue_tree(values, source="capacity"))
    return preemption_bound(traps, ("preemption",) if accepted else ())


def texts(values: Mapping[str, object]) -> dict[str, str]:
    """Return settings as texts, with Booleans as Hadoop writes them."""
    return {key: str(value).lower() if isinstance(value, bool) else str(value) for key, value in values.items()}


def node_sizes(experiment: LoadedExperiment) -> list[Resource]:
    """Return the size of each node, including nodes that join late or leave early."""
    return [Resource(node.memory_mb, node.vcores) for node in nodes_of(experiment.spec)]


def simulate_variant(setup: SimSetup, on_progress: Callable[[Progress], None] | None = None) -> SimResult:
    """Run the simulator: for a policy inside the scheduler, or with the control core for a policy from outside."""
    from harness.control.virtual import simulate_policy

    with users_mistakes():
        return simulate_policy(setup, on_progress=on_progress)


def of_papers(
    experiment: LoadedExperiment, policy: str, settings: Mapping[str, object], result: SimResult
) -> dict[str, float]:
    """Return metrics that only some runs have: QKnober's Theorem 1 for a given knob, and the cost of priced nodes."""
    from harness.results.metrics import until
    from harness.results.papers import Curves, cost_dollars, soft_fairness_p95, theorem_1

    found: dict[str, float] = {}
    end_s = result.makespan_s if result.finished else result.end_s
    made = make_policy(policy, settings)
    knob = made.knob() if isinstance(made, KnobPolicy) else None
    if knob is not None:
        samples = result.samples
        columns = [samples.queues.index(queue) for queue in experiment.leaves]
        curves = Curves(samples, columns, until(samples.time_s, end_s))
        # The bound, and the value that it is compared with.
        theory = {"theta": theorem_1(curves, float(knob)), "soft_fairness_p95": soft_fairness_p95(curves)}
        found.update({key: value for key, value in theory.items() if value is not None})
    cost = cost_dollars([group.model_dump() for group in experiment.spec.cluster.nodes], end_s)
    if cost is not None:
        found["cost_dollars"] = cost
    return found


def held(
    experiment: LoadedExperiment, variant: Variant, jobs: Iterable[JobSpec]
) -> tuple[Iterable[JobSpec], dict[str, float]]:
    """Return a run's jobs with the submission times that the policy gives them, and their arrival times, seconds.

    If the policy does not delay jobs, they are unchanged and the arrival times are empty. Raises InputError or
    CallError for jobs and settings whose submissions cannot be planned beforehand.
    """
    queue = submission_queue(make_policy(variant.policy, variant.settings))
    if queue is None:
        return jobs, {}
    nodes = node_sizes(experiment)
    slots = experiment.spec.slots
    return queue.plan(jobs, nodes, None if slots is None else (slots.map * len(nodes), slots.reduce * len(nodes)))


def check_held(experiment: LoadedExperiment, variants: Iterable[Variant]) -> None:
    """Raise the errors of `held` before anything runs."""
    for variant in variants:
        if submission_queue(make_policy(variant.policy, variant.settings)) is not None:
            held(experiment, variant, jobs_of(experiment, variant.seed)[0])


def put_arrivals(result: SimResult, arrived: Mapping[str, float]) -> None:
    """Replace the submission times of delayed jobs in a result by their arrival times."""
    if arrived:
        submitted = zip(result.jobs["id"], result.jobs["submitted_s"], strict=True)
        result.jobs["submitted_s"] = [arrived.get(job, time_s) for job, time_s in submitted]
