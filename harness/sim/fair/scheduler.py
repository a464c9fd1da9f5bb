"""Registration of the Fair Scheduler as a simulated scheduler."""

from __future__ import annotations

from harness.model.plan import Attributes
from harness.sim.attributes import with_attributes
from harness.sim.fair import nodes, preempt, shares, turns
from harness.sim.fair.api import Scheduler
from harness.sim.fair.decide import FairDecider
from harness.sim.fair.entry import look_at, run_at
from harness.sim.fair.file import FairFile
from harness.sim.fair.ops import OPS
from harness.sim.fair.served import ServedFairScheduler
from harness.sim.fair.state import LTRF, State
from harness.sim.fair.stuck import why_stuck
from harness.sim.interfaces import CompiledKernel, SchedulerRequest, SimulatedScheduler, SteeredSimulation


def make(request: SchedulerRequest) -> Scheduler:
    """Create a run's scheduler, including the order of a policy inside the scheduler."""
    return Scheduler(
        request.setup.conf,
        request.allocations,
        request.setup.nodes,
        order_mode=request.order_mode,
        hadoop=request.setup.hadoop,
        leaf_policies=dict.fromkeys(request.by_accumulated, LTRF),
    )


def put_in_force(simulation: SteeredSimulation, plan: Attributes, before: Attributes, now_ms: int) -> None:
    """Put a plan from outside in force: as an allocation file, or by a faster way if only weights change."""
    if plan.all_but_weights != before.all_but_weights:
        # Always start from the administrator's file, so that attributes that a plan no longer names are restored.
        simulation.reload(with_attributes(simulation.allocations, plan), now_ms)
    else:
        simulation.set_weights(plan.weights)


FAIR = SimulatedScheduler(
    name="fair",
    title="Fair Scheduler",
    state=State,
    ops=OPS,
    run_at=run_at,
    look_at=look_at,
    kernels=(
        CompiledKernel(preempt.preempt_pass, ("state", "int")),
        CompiledKernel(shares.update, ("state", "int")),
        CompiledKernel(shares.reweigh, ("int", "real table"), from_python=True),
        CompiledKernel(turns.seat_all, ("state",), from_python=True),
        CompiledKernel(nodes.cluster_changed, ("state",), from_python=True),
    ),
    make=make,
    put_in_force=put_in_force,
    why_stuck=why_stuck,
    script_key="allocations",
    decide=FairDecider,
    served=ServedFairScheduler,
    file=FairFile,
    stock_policy="fair",
    orders_inside=True,
)
