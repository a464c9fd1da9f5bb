"""Checks whether a policy depends on its arguments alone, so that its keys may be computed without calling it.

A user's policy is Python code: it may count its calls, store earlier arguments or read a clock. Such a policy is called
for every key, because machine code made from its first results would not reproduce its later ones.
"""

from __future__ import annotations

import gc
import sys
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from fractions import Fraction
from types import CodeType, FunctionType, GeneratorType, MappingProxyType, ModuleType
from typing import Any

import numpy as np


class NotTracedError(Exception):
    """The policy does something that cannot be traced; the message describes it."""


#: Largest number of objects of a policy's state that are examined.
_MOST_OBJECTS = 100_000
#: C modules whose functions and types depend on their arguments alone.
_PURE = frozenset(
    (
        *("builtins", "math", "cmath", "_operator", "operator", "itertools", "_functools", "functools", "_collections"),
        *("collections", "collections.abc", "_abc", "fractions", "numbers", "decimal", "_decimal", "_statistics"),
        *("statistics", "_bisect", "bisect", "_heapq", "heapq", "types", "typing"),
    )
)
_IMPURE = frozenset(["open", "input", "id", "eval", "exec", "compile", "breakpoint", "__import__"])
#: Modules whose classes do not belong to the policy.
_OF_OTHERS = frozenset(("builtins", "abc", "typing", "harness.policies.base"))

_VALUES = (type(None), bool, int, float, complex, str, bytes, Fraction)


def state_of(policy: object) -> tuple[Any, ...]:
    """Describe all state that a policy may keep between calls.

    The description covers its attributes, those of its classes, and the globals, defaults and closures of its methods.
    Two descriptions are equal if none of these has changed.

    Raises
    ------
    NotTracedError
        If the state cannot be described.
    """
    found: list[Any] = []
    #: Kept alive, so that no other object gets the same address in the meantime.
    seen: dict[int, Any] = {}
    waiting: list[Any] = [vars(policy)]
    waiting += [vars(cls) for cls in type(policy).__mro__ if cls.__module__ not in _OF_OTHERS]
    own = {cls.__module__ for cls in type(policy).__mro__} - _OF_OTHERS
    while waiting:
        value = waiting.pop()
        if isinstance(value, _VALUES):
            found.append((type(value).__name__, repr(value)))
            continue
        if id(value) in seen:
            found.append(id(value))
            continue
        seen[id(value)] = value
        if len(seen) > _MOST_OBJECTS:
            raise NotTracedError("it remembers too much")
        kind = type(value)
        # Python creates a new view of a class's attributes at each access.
        found.append((kind.__name__, 0 if kind is MappingProxyType else id(value)))
        waiting += _parts(value, own, found)
    return tuple(found)


def _parts(value: Any, own: set[str], found: list[Any]) -> list[Any]:
    """Return the objects that an object consists of.

    Objects that cannot be taken apart are added to `found` instead.
    """
    kind = type(value)
    if issubclass(kind, GeneratorType) or (issubclass(kind, Iterator) and kind.__module__ in _PURE):
        raise NotTracedError("it keeps an iterator")
    if issubclass(kind, ModuleType):
        return []
    if issubclass(kind, FunctionType):
        closure = [cell.cell_contents for cell in value.__closure__ or () if cell is not None]
        parts = [*(value.__defaults__ or ()), *(value.__kwdefaults__ or {}).values(), *closure]
        if value.__module__ in own:
            parts += [value.__globals__[name] for name in sorted(_names(value.__code__)) if name in value.__globals__]
        return parts
    if issubclass(kind, staticmethod | classmethod):
        return [value.__func__]
    if issubclass(kind, property):
        return [value.fget]
    if issubclass(kind, type):
        return [vars(value)] if value.__module__ in own else []
    if issubclass(kind, np.ndarray):
        found.append((value.shape, value.tobytes()))
        return []
    if issubclass(kind, Mapping):
        return [part for item in value.items() for part in item]
    if issubclass(kind, tuple | list | set | frozenset | bytearray | deque):
        return list(value)
    slots = [name for cls in kind.__mro__ for name in _slots_of(cls)]
    parts = [getattr(value, name) for name in slots if hasattr(value, name)]
    if hasattr(value, "__dict__"):
        parts.append(vars(value))
    elif not slots and kind.__module__ not in ("harness.sim.traced",):
        found.append(repr(value))
    return parts


def _slots_of(cls: type) -> tuple[str, ...]:
    slots = vars(cls).get("__slots__", ())
    return (slots,) if isinstance(slots, str) else tuple(name for name in slots if not name.startswith("__"))


def _names(code: CodeType) -> set[str]:
    """Return all global names that a function uses, including functions inside it."""
    inner = [const for const in code.co_consts if isinstance(const, CodeType)]
    return set(code.co_names).union(*map(_names, inner))


@contextmanager
def watched(policy: object) -> Generator[None]:
    """Raise NotTracedError if the block changes the policy's state, or calls a function that is not pure."""
    before = state_of(policy)
    with _no_calls_outside():
        yield
    if state_of(policy) != before:
        raise NotTracedError("it remembers something from call to call")


@contextmanager
def _no_calls_outside() -> Generator[None]:
    """Raise NotTracedError for a call of a C function whose result may differ next time."""
    refused: list[str] = []

    def look(frame: Any, event: str, called: Any) -> None:
        if event == "c_call" and not _is_pure(called):
            refused.append(getattr(called, "__qualname__", str(called)))

    # A garbage collection that starts here would run the callbacks in `gc.callbacks` (Hypothesis registers one that
    # reads a clock) and finalisers. Their calls are not the policy's, so collection is off until the policy has
    # answered.
    collects = gc.isenabled()
    gc.disable()
    before: Callable[..., Any] | None = sys.getprofile()
    sys.setprofile(look)
    try:
        yield
    finally:
        sys.setprofile(before)
        if collects:
            gc.enable()
    refused = [name for name in refused if name != "setprofile"]
    if refused:
        raise NotTracedError(f"it calls {refused[0]}, which does not answer from its arguments alone")


def _is_pure(called: Any) -> bool:
    bound = getattr(called, "__self__", None)
    if bound is None:  # a method of a type, read from the type
        kind = getattr(called, "__objclass__", None)
        return kind is None or kind.__module__ in _PURE
    if isinstance(bound, ModuleType):
        return bound.__name__ in _PURE and called.__name__ not in _IMPURE
    kind = bound if isinstance(bound, type) else type(bound)
    return kind.__module__ in _PURE or kind.__module__.startswith("harness.")
