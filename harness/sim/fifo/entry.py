"""Entry points from Python into the engine on the FIFO scheduler's state, given the addresses of state and world.

Calling compiled code with integers takes Python a fraction of the time that a call with objects takes.
"""

from __future__ import annotations

from typing import Any

from harness.sim.arrays import at_address
from harness.sim.fifo.state import S
from harness.sim.kernel import kernel
from harness.sim.loop import run
from harness.sim.observe import fill
from harness.sim.world import W

_state, _world = at_address(S), at_address(W)


@kernel
def run_at(state: int, world: int) -> Any:
    """Call `harness.sim.loop.run`."""
    return run(_state(state), _world(world))


@kernel
def look_at(state: int, world: int, ints: Any, reals: Any, now: int) -> Any:
    """Call `harness.sim.observe.fill` with the known jobs."""
    fill(_state(state), _world(world), ints, reals, now, 1)
