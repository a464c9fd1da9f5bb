"""The decorator of compiled functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from numba import njit
from numba.core import types

F = TypeVar("F", bound=Callable[..., Any])

#: The type of a constant, without its value.
_unliteral: Callable[[Any], Any] = types.unliteral

_OPTIONS: dict[str, Any] = {"cache": True, "no_cfunc_wrapper": True, "_nrt": False}


def kernel(function: F) -> F:
    """``njit(cache=True)``, compiled once per argument types; no memory is allocated in it, nobody calls it from C.

    numba by itself compiles a function anew for every constant that it is called with (True, False, 0, -1 ...), and all
    that it calls with it: two or three times the code, and the time.
    """
    compiled: Any = njit(**_OPTIONS)(function)
    generic = getattr(compiled, "get_call_template", None)
    if generic is not None:  # None: compilation is switched off

        def of_types(args: tuple[Any, ...], kws: dict[str, Any]) -> Any:
            return generic(tuple(_unliteral(arg) for arg in args), {name: _unliteral(arg) for name, arg in kws.items()})

        compiled.get_call_template = of_types
    plain: F = compiled
    return plain
