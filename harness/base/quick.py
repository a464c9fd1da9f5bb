"""Fast construction of values that are created thousands of times per second."""

from __future__ import annotations

import atexit
import contextlib
import gc
import sys
from collections.abc import Callable, Iterator
from dataclasses import fields
from typing import Any, TypeVar

T = TypeVar("T")


def fast_constructor(frozen: type[T]) -> Callable[..., T]:
    """Return a function that creates instances of a frozen dataclass with slots from all its fields, by position.

    The class' own constructor sets each field through ``object.__setattr__``: three times slower. The function checks
    nothing and does not call ``__post_init__``. The instances belong to the class and are frozen.
    """
    names = [field.name for field in fields(frozen)]  # type: ignore[arg-type]
    sets = "\n".join(f"    new.{name} = {name}" for name in names)
    code = (
        f"def make({', '.join(names)}):\n    new = allocate(Open)\n{sets}\n    new.__class__ = frozen\n    return new\n"
    )
    # The class Open has the same slots as the frozen one, so an instance may change from one class to the other.
    space: dict[str, Any] = {
        "Open": type("Open", (), {"__slots__": tuple(names)}),
        "allocate": object.__new__,
        "frozen": frozen,
    }
    exec(code, space)
    made: Callable[..., T] = space["make"]
    return made


def collect_rarely() -> None:
    """Let the garbage collector of this process run rarely, and not at all at its end.

    Objects of modules live as long as the process, and numba has many: traversing them takes a tenth of a run's time,
    and half a second of CPU at the interpreter's end.
    """
    gc.set_threshold(100_000, 20, 20)
    atexit.unregister(_end_at_once)
    atexit.register(_end_at_once)


def collect_at_the_end() -> None:
    """Let the interpreter's last collection run, for a process that has run a user's code.

    Only then is a file flushed that a user's module has left open.
    """
    atexit.unregister(_end_at_once)


def _end_at_once() -> None:
    # DuckDB's bindings report objects that were never collected as leaks, on standard error.
    if "duckdb" not in sys.modules:
        gc.freeze()


@contextlib.contextmanager
def without_collector() -> Iterator[None]:
    """Context for reading a document with many small objects that all stay.

    Garbage collection would make the reading take a quarter longer.
    """
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()
