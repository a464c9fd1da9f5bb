"""The declaration of a simulated scheduler: one record, `SimulatedScheduler`, with everything that a package provides.

A package that simulates a scheduler has a module with such a record, and registers its location in
`harness.sim.schedulers` (the core's) or in its `harness.base.extensions.Extension` (a user's). No other code in
``harness.sim`` refers to it by name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from harness.base.errors import InputError
from harness.base.extensions import load
from harness.model.plan import Attributes, Plan
from harness.model.queues import AllocationFile, QueueTree
from harness.model.resources import Resource
from harness.sim import ops
from harness.sim.arrays import Arrays
from harness.sim.pools import SchedulerBase
from harness.sim.scheduler_file import SchedulerFile
from harness.sim.schedulers import SCHEDULERS
from harness.sim.served import ServedScheduler
from harness.sim.setup import SimSetup

#: Types of arguments of kernels that are compiled before a run: the scheduler's state, the world, an integer, a table
#: of integers, a table of reals.
Argument = Literal["state", "world", "int", "int table", "real table"]


@dataclass(frozen=True, slots=True)
class CompiledKernel:
    """A kernel that is compiled before a run begins.

    Parameters
    ----------
    kernel
        The compiled function.
    arguments
        The types of its arguments.
    from_python
        Whether Python calls it. Such a kernel is compiled to machine code together with everything that it calls; for
        other kernels only the unlinked code is stored.
    """

    kernel: Any
    arguments: tuple[Argument, ...]
    from_python: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulerRequest:
    """The scheduler that a run asks for.

    Parameters
    ----------
    setup
        The run.
    allocations
        Its queues, including attributes that a policy inside the scheduler has changed.
    tree
        The tree of these queues.
    plan
        The policy's plan for the empty cluster; None without a policy.
    cluster
        The nodes that exist from the beginning.
    order_mode
        How the next queue is chosen (`harness.sim.state.STOCK` and others).
    by_accumulated
        Leaves whose applications are ordered by their accumulated resources.
    live
        Whether the cluster is served: its queues may be configured while it runs.
    """

    setup: SimSetup
    allocations: AllocationFile
    tree: QueueTree
    plan: Plan | None
    cluster: Resource
    order_mode: int
    by_accumulated: frozenset[str]
    live: bool


class SteeredSimulation(Protocol):
    """A run in which an external plan takes effect."""

    scheduler: Any
    allocations: AllocationFile

    def set_weights(self, weights: Mapping[str, float]) -> None:
        """Put weights in force in the scheduler."""

    def reload(self, allocations: AllocationFile, now_ms: int) -> None:
        """Put an allocation file with the same queues in force."""


class ScriptDecider(Protocol):
    """A decision script that can be run (`harness.sim.decide.Decider`)."""

    def run(self) -> dict[str, Any]:
        """Return all lists of the answer, and ``meta``."""


class MakeDecider(Protocol):
    """Reads a decision script for one scheduler. Raises InputError for an invalid script."""

    def __call__(self, script: Any, *, mutations: int = 0) -> ScriptDecider:
        """Return the decider. ``mutations``: bit mask of features to switch off, for tests that must fail then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedScheduler:
    """One simulated scheduler.

    Parameters
    ----------
    name
        Its name in `SCHEDULERS`: the value of ``scheduler`` in an experiment.
    title
        Its name in messages.
    state
        Its state; ``state.scheduler`` is ``name``.
    ops
        The kernels of this scheduler that shared kernels call.
    run_at
        Compiled function from the addresses of a state and a world to a code: `harness.sim.loop.run`.
    look_at
        Compiled function from both addresses, two tables and the time: `harness.sim.observe.fill`.
    kernels
        Further kernels that a run needs, compiled beforehand.
    make
        Make the scheduler of a run. Raises InputError for what it does not cover.
    put_in_force
        Put in force what an external policy has written, at a time in ms. Also receives the plan that was in force
        before.
    why_stuck
        Explain why a run can never end: maps (state, queues, their slots) to a text.
    script_key
        The key of a decision script that only this scheduler's scripts have.
    decide
        Read a decision script.
    served
        Its adapter for a served cluster; None: a cluster with it cannot be served.
    file
        Its own configuration file; None: it has none, or the simulator does not read it.
    stock_policy
        The policy that does not change its behaviour.
    orders_inside
        Whether policies, and settings of single queues, may order its queues inside it. If not, a policy acts from
        outside.
    steered
        Whether a policy from outside can change its settings. If not, `put_in_force` raises InputError for every plan.
    reads_capacity
        Whether it reads the settings that an experiment or a trace has under ``capacity``.
    entitlements_are_parts
        Whether a queue's recorded weight is a part of its parent's, without a unit that all queues share. Such
        entitlements are converted to parts of the cluster before a policy compares them.
    """

    name: str
    title: str
    state: type[Arrays]
    ops: ops.SchedulerOps[Any]
    run_at: Callable[[int, int], int]
    look_at: Callable[[int, int, NDArray[np.int64], NDArray[np.float64], int], None]
    kernels: tuple[CompiledKernel, ...] = ()
    make: Callable[[SchedulerRequest], SchedulerBase]
    put_in_force: Callable[[SteeredSimulation, Attributes, Attributes, int], None]
    why_stuck: Callable[[Any, QueueTree, list[int]], str]
    script_key: str
    decide: MakeDecider
    served: type[ServedScheduler] | None = None
    file: type[SchedulerFile] | None = None
    stock_policy: str
    orders_inside: bool = False
    steered: bool = True
    reads_capacity: bool = False
    entitlements_are_parts: bool = False


@cache
def simulated(name: str) -> SimulatedScheduler:
    """Return a simulated scheduler by its name. Raises InputError for an unregistered name."""
    if name not in SCHEDULERS:
        raise InputError(f"there is no simulated scheduler {name!r}", hint=f"take one of {', '.join(SCHEDULERS)}")
    found: SimulatedScheduler = load(SCHEDULERS[name])
    if (found.name, found.state.scheduler) != (name, name):
        raise InputError(
            f"it is called {found.name!r}, its state {found.state.scheduler!r}",
            where=f"scheduler {name!r}",
            hint="give record and state the name under which the scheduler is registered",
        )
    return found
