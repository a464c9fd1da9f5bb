"""Entry points from Python into the engine on the Fair Scheduler's state, given the addresses of state and world.

Calling compiled code with integers takes Python a fraction of the time that a call with objects takes.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from harness.sim.arrays import at_address
from harness.sim.fair.state import State
from harness.sim.kernel import kernel
from harness.sim.loop import run
from harness.sim.observe import fill
from harness.sim.world import World

_state, _world = at_address(State), at_address(World)


@kernel
def run_at(state: int, world: int) -> int:
    """Call `harness.sim.loop.run`."""
    return run(_state(state), _world(world))


@kernel
def look_at(state: int, world: int, ints: NDArray[np.int64], reals: NDArray[np.float64], now: int) -> None:
    """Call `harness.sim.observe.fill` with the known jobs."""
    fill(_state(state), _world(world), ints, reals, now, 1)
