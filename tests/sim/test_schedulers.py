"""Simulated schedulers: each declares itself in one record, and shared code knows none of them by name."""

from __future__ import annotations

import ast
import inspect
from dataclasses import fields
from pathlib import Path

import pytest
from numba.core.dispatcher import Dispatcher

from harness.base.errors import InputError
from harness.sim import ops
from harness.sim.interfaces import simulated
from harness.sim.schedulers import SCHEDULERS

SIM = Path(ops.__file__).parent
PACKAGES = ("fair", "capacity", "fifo")


def test_each_field_of_the_table_can_be_called_by_its_name() -> None:
    declared = {field.name for field in fields(ops.SchedulerOps)}
    called = {name for name, value in vars(ops).items() if isinstance(value, Dispatcher)}
    assert called == declared


@pytest.mark.parametrize("name", list(SCHEDULERS))
def test_a_scheduler_is_declared_under_its_name(name: str) -> None:
    scheduler = simulated(name)
    assert (scheduler.name, scheduler.state.scheduler) == (name, name)
    assert ops.ops_of(scheduler.state.compiled_type()) is scheduler.ops


@pytest.mark.parametrize("name", list(SCHEDULERS))
def test_the_kernels_of_a_table_take_as_many_arguments_as_the_table_declares(name: str) -> None:
    # Numba would say so too, but only once a kernel that calls the wrong one is compiled.
    table = simulated(name).ops
    for field in fields(ops.SchedulerOps):
        kernel = getattr(table, field.name)
        taken = list(inspect.signature(kernel.py_func).parameters)
        wanted = str(field.type).partition("[[")[2].partition("]")[0].split(", ")
        assert len(taken) == len(wanted), f"{field.name} of {name} takes {taken}"


def test_a_name_that_nobody_has_registered_is_refused() -> None:
    with pytest.raises(InputError, match="there is no simulated scheduler 'lottery'") as error:
        simulated("lottery")
    assert "fair" in str(error.value.hint)


def _imported(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found


def test_shared_modules_of_the_simulator_import_no_scheduler() -> None:
    """But `shares`, whose subject is the Fair Scheduler's shares."""
    own = tuple(f"harness.sim.{name}" for name in PACKAGES)
    for path in [*SIM.glob("*.py"), *(SIM / "serve").glob("*.py")]:
        found = {name for name in _imported(path) if name.startswith(own)}
        assert not found or path.name == "shares.py", f"{path.name} imports {sorted(found)}"
