"""Registration of the Capacity Scheduler as a simulated scheduler."""

from __future__ import annotations

from dataclasses import replace

from harness.base.errors import InputError
from harness.model.plan import Attributes, Plan
from harness.model.queues import QueueTree
from harness.model.resources import Resource
from harness.sim.capacity.api import Scheduler
from harness.sim.capacity.capacities import configured, refresh
from harness.sim.capacity.decide import CapacityDecider
from harness.sim.capacity.entry import look_at, run_at
from harness.sim.capacity.file import CapacityFile
from harness.sim.capacity.nodes import refresh_room
from harness.sim.capacity.ops import OPS
from harness.sim.capacity.preempt import run_rounds
from harness.sim.capacity.served import ServedCapacityScheduler
from harness.sim.capacity.state import State
from harness.sim.capacity.tree import capacity_settings, settings_with, steering_of
from harness.sim.interfaces import CompiledKernel, SchedulerRequest, SimulatedScheduler, SteeredSimulation


def make(request: SchedulerRequest) -> Scheduler:
    """Create a run's scheduler. Raises InputError for a plan that it cannot carry out, and for differing queues."""
    setup = request.setup
    if request.live and "root.queues" in setup.capacity:
        # A served cluster uses a complete configuration as it is, without an experiment's additions.
        return Scheduler(setup.conf, setup.capacity, setup.nodes)
    check_plan(request.plan, setup.mode)
    if setup.queue_orders or setup.record_script:
        raise InputError(
            "policies of queues and recorded scripts are the Fair Scheduler's",
            where="scheduler: capacity",
            hint="leave them out",
        )
    settings = dict(setup.capacity)
    if not setup.capacity_complete:
        settings = {**capacity_settings(request.allocations, setup.nodes), **settings}
    made = Scheduler(setup.conf, settings, setup.nodes)
    if set(made.queue_slots) != {queue.path for queue in request.tree}:
        raise InputError("its queues are not the experiment's", where="capacity", hint="name the same queues")
    made.steering = steering_of(made.settings, request.cluster)
    if request.plan is not None and setup.mode == "outside":
        settings_with(made.steering, request.plan)  # reject an impossible plan before anything runs
    return made


def check_plan(plan: Plan | None, mode: str) -> None:
    """Raise InputError for a plan that the simulated Capacity Scheduler cannot carry out."""
    if plan is None:
        return
    if mode == "inside" and plan.order.measure != "stock":
        raise InputError(
            "only the Fair Scheduler's simulation orders queues by a policy inside it",
            where="scheduler: capacity",
            hint="let the policy act from outside (NAME@outside)",
        )
    if mode == "inside" and plan.min_shares:
        raise InputError(
            "the policy writes minimum shares, and a capacity is the only guarantee here",
            where="scheduler: capacity",
            hint="let the policy act from outside (NAME@outside), which writes them as capacities",
        )
    if plan.order.ledger.quantum_s is not None:
        raise InputError(
            "quantum_s is counted in the Fair Scheduler alone", where="scheduler: capacity", hint="leave it out"
        )


def put_in_force(simulation: SteeredSimulation, plan: Attributes, before: Attributes, now_ms: int) -> None:
    """Re-initialise the scheduler with the properties that a controller would write to a real cluster for a plan."""
    scheduler = simulation.scheduler
    g = scheduler.S.g[0]
    there = Resource(int(g["cluster_mb"]), int(g["cluster_vcores"]))
    settings = settings_with(replace(scheduler.steering, cluster=there), plan)
    if settings != scheduler.settings:
        scheduler.reconfigure(settings, now_ms)


def why_stuck(state: State, tree: QueueTree, order: list[int]) -> str:
    """Return the message for a run that is stuck because its applications wait."""
    return "its applications wait, and what runs does not end by itself; do masters fill the cluster or their part?"


CAPACITY = SimulatedScheduler(
    name="capacity",
    title="Capacity Scheduler",
    state=State,
    ops=OPS,
    run_at=run_at,
    look_at=look_at,
    kernels=(
        CompiledKernel(refresh, ("state", "int"), from_python=True),
        CompiledKernel(configured, ("state",), from_python=True),
        CompiledKernel(refresh_room, ("state", "int"), from_python=True),
        CompiledKernel(run_rounds, ("state", "int")),
    ),
    make=make,
    put_in_force=put_in_force,
    why_stuck=why_stuck,
    script_key="capacity",
    decide=CapacityDecider,
    served=ServedCapacityScheduler,
    file=CapacityFile,
    stock_policy="capacity",
    reads_capacity=True,
    entitlements_are_parts=True,
)
