"""Declares the FIFO scheduler as a simulated scheduler, and which parts of an experiment do not apply to it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields

from harness.base.errors import InputError
from harness.model.plan import Attributes, Plan
from harness.model.queues import QueueSettings, QueueTree
from harness.sim.fifo.api import Scheduler
from harness.sim.fifo.decide import FifoDecider
from harness.sim.fifo.entry import look_at, run_at
from harness.sim.fifo.ops import OPS
from harness.sim.fifo.state import State
from harness.sim.interfaces import SchedulerRequest, SimulatedScheduler, SteeredSimulation
from harness.sim.setup import SimSetup

_WHERE = "scheduler: fifo"
#: The scheduler's fixed queues, whatever the experiment says.
_QUEUES = {"root", "root.default"}
#: A queue's settings for preemption, which root always has.
_PREEMPTION = (
    "min_share_preemption_timeout_ms",
    "fair_share_preemption_timeout_ms",
    "fair_share_preemption_threshold",
)
#: Properties of the other schedulers.
_OTHERS = ("yarn.scheduler.fair.", "yarn.scheduler.capacity.", "yarn.resourcemanager.scheduler.monitor.")


def make(request: SchedulerRequest) -> Scheduler:
    """Create a run's scheduler. Raises InputError if the experiment uses a feature that the scheduler does not have."""
    for what, hint in (*_queues(request), *_settings(request.setup), *_policy(request.plan, request.setup)):
        raise InputError(what, where=_WHERE, hint=hint)
    return Scheduler(request.setup.conf, request.setup.nodes)


def _queues(request: SchedulerRequest) -> Iterator[tuple[str, str]]:
    """Yield a problem and a hint for each unsupported queue or queue setting."""
    for queue in request.tree:
        if queue.path not in _QUEUES:
            yield (
                f"there is no queue {queue.path}: the FIFO scheduler has root.default alone",
                "name one queue, default",
            )
    for path, own in request.setup.allocations.settings.items():
        without = QueueSettings(own.name)
        for field in fields(QueueSettings):
            # A file's defaults for all queues are stored at its root; timeouts belong to preemption, which is refused.
            if path == "root" and field.name in _PREEMPTION:
                continue
            value = getattr(own, field.name)
            if value != getattr(without, field.name) and not (field.name == "weight" and value == 1.0):
                yield f"{field.name} of queue {path} has no meaning: there is nothing to divide", "leave it out"
    for path, weight in request.setup.entitlements.items():
        if weight != 1.0:
            yield f"the weight of queue {path} has no meaning: there is nothing to divide", "leave it out"
    for path in request.setup.queue_orders:
        yield f"queue {path} has a policy of its own, and applications come in the order of their ids", "leave it out"


def _settings(setup: SimSetup) -> Iterator[tuple[str, str]]:
    """Yield a problem and a hint for settings of other schedulers, and for settings that are not covered."""
    for name in setup.conf:
        if name.startswith(_OTHERS):
            yield f"{name} is another scheduler's property", "leave it out"
    for name in setup.capacity:
        yield f"{name} is a setting of the Capacity Scheduler", "leave capacity out"
    if setup.record_script:
        yield "recorded scripts are the Fair Scheduler's", "leave record_script out"


def _policy(plan: Plan | None, setup: SimSetup) -> Iterator[tuple[str, str]]:
    """Yield a problem and a hint for a policy that would have to change the scheduler's decisions."""
    name = getattr(setup.policy, "name", "")
    if plan is not None and setup.mode == "outside":
        yield f"policy {name} has nothing to write: there are no weights, shares or limits", "take policy fifo"
    elif plan is not None:
        orders = set(plan.scheduling_policies.values()) - {"fifo"}
        if plan.order.measure not in ("stock", "arrival") or orders or plan.min_shares:
            yield (
                f"policy {name} orders queues or applications, and the scheduler does it by itself",
                "take policy fifo",
            )


def put_in_force(simulation: SteeredSimulation, plan: Attributes, before: Attributes, now_ms: int) -> None:
    """Raise InputError, because the scheduler has no settings that a policy could change.

    A run does not get here, because `make` refuses policies from outside.
    """
    raise InputError("nothing of it can be steered", where=_WHERE, hint="take policy fifo")


def why_stuck(state: State, tree: QueueTree, order: list[int]) -> str:
    """Return the message for a run that is stuck because its applications wait."""
    return "its applications wait, and what runs does not end by itself; do masters fill the cluster?"


FIFO = SimulatedScheduler(
    name="fifo",
    title="FIFO scheduler",
    state=State,
    ops=OPS,
    run_at=run_at,
    look_at=look_at,
    make=make,
    put_in_force=put_in_force,
    why_stuck=why_stuck,
    script_key="fifo",
    decide=FifoDecider,
    stock_policy="fifo",
    steered=False,
)
