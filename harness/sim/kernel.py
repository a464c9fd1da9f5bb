"""The decorator of compiled functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from numba import njit
from numba.core import types

from harness.base.machine_code import kernel_options

try:
    from harness.sim import whole
except ImportError:  # a numba release that `whole` does not support
    whole = None  # type: ignore[assignment]

F = TypeVar("F", bound=Callable[..., Any])

#: The type of a constant, without its value.
_unliteral: Callable[[Any], Any] = types.unliteral

_OPTIONS = kernel_options(no_cfunc_wrapper=True, _nrt=False)
if whole is not None:
    _OPTIONS["pipeline_class"] = whole.WholeCompiler


def kernel(function: F) -> F:
    """Compile a function with numba, cached on disk, once for each combination of argument types.

    The function may not allocate memory, and gets no C wrapper. Plain numba would compile it again for every constant
    argument (True, False, 0, -1 ...), together with everything that it calls, which is two or three times the code.
    """
    compiled: Any = njit(**_OPTIONS)(function)
    generic = getattr(compiled, "get_call_template", None)
    if generic is not None:  # None: compilation is switched off
        if whole is not None:
            part: Any = whole.PartDispatcher(function, {**compiled.targetoptions, "no_cpython_wrapper": True})
            compiled.part, compiled.get_overload, generic = part, part.get_overload, part.get_call_template

        def of_types(args: tuple[Any, ...], kws: dict[str, Any]) -> Any:
            return generic(tuple(_unliteral(arg) for arg in args), {name: _unliteral(arg) for name, arg in kws.items()})

        compiled.get_call_template = of_types
    plain: F = compiled
    return plain


def dispatched(choose: Callable[[Any], F]) -> F:
    """Return a function that stands for one of several kernels.

    ``choose`` selects the kernel by the type of the first argument when a caller is compiled.
    """
    chosen: Callable[[Any], Any] = choose

    def stub(*args: Any) -> Any:
        return chosen(args[0].compiled_type())(*args)  # where compilation is switched off

    compiled: Any = njit(stub)
    if compiled is not stub:
        compiled.get_call_template = lambda args, kws: chosen(_unliteral(args[0])).get_call_template(args, kws)
        compiled.get_overload = lambda sig: chosen(_unliteral(sig[0])).get_overload(sig)
    plain: F = compiled
    return plain
