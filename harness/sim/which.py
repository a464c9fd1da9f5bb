"""Which scheduler a state belongs to: one of two kernels under one name."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from harness.sim.kernel import either, kernel


def of_scheduler(fair: Any, capacity: Any = None) -> Any:
    """One of two kernels, told apart by the state's type when the caller is compiled.

    A text is a kernel's place in its scheduler's room ("containers.asked"): of one that calls what calls it here.
    Without a second one it is the same place in both rooms.
    """

    def choose(state: Any) -> Any:
        room, chosen = ("fair", fair) if "seat" in state.arrays else ("capacity", capacity or fair)
        if isinstance(chosen, str):
            module, _, name = chosen.partition(".")
            chosen = getattr(import_module(f"harness.sim.{room}.{module}"), name)
        return chosen

    return either(choose)


@kernel
def nothing(s: Any, i: int) -> None:
    """What only the other scheduler has to do."""
