"""Values that are made by the thousand a second."""

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
    """A function that makes instances of a frozen dataclass with slots from all its fields, by position.

    The class' own constructor sets each field through ``object.__setattr__``: three times slower. Nothing is checked,
    and ``__post_init__`` is not called. The instances are the class' own, frozen like any other.
    """
    names = [field.name for field in fields(frozen)]  # type: ignore[arg-type]
    sets = "\n".join(f"    new.{name} = {name}" for name in names)
    code = (
        f"def make({', '.join(names)}):\n    new = allocate(Open)\n{sets}\n    new.__class__ = frozen\n    return new\n"
    )
    # Of the same slots, so that an instance may change from one class to the other.
    space: dict[str, Any] = {
        "Open": type("Open", (), {"__slots__": tuple(names)}),
        "allocate": object.__new__,
        "frozen": frozen,
    }
    exec(code, space)
    made: Callable[..., T] = space["make"]
    return made


def collect_rarely() -> None:
    """Let the garbage collector of this process look seldom, and at its end not at all.

    What the modules hold stays as long as the process, and numba's part of it is large: looking through it takes a
    tenth of a run's time, and once more half a second of CPU when the interpreter ends.
    """
    gc.set_threshold(100_000, 20, 20)
    atexit.unregister(_end_at_once)
    atexit.register(_end_at_once)


def collect_at_the_end() -> None:
    """Let the interpreter's last collection take place: for a process that has run a user's code.

    A file that a module of theirs has left open is written to its end only then.
    """
    atexit.unregister(_end_at_once)


def _end_at_once() -> None:
    # DuckDB's bindings report objects that were never collected as leaks, on standard error.
    if "duckdb" not in sys.modules:
        gc.freeze()


@contextlib.contextmanager
def without_collector() -> Iterator[None]:
    """While a document is read whose many small objects all stay: walking them for garbage takes a quarter more."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()
