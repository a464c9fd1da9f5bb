"""Many arrays under one name, as compiled code sees them: one pointer.

A NamedTuple of thirty record arrays would be passed to every compiled function as some two hundred separate arguments,
with type names of many kilobytes: minutes to compile, and slow to call. Subclasses of `Arrays` are NamedTuples that
carry a table of their arrays' addresses and shapes besides; compiled code is handed that table's address and takes an
array out of it by name (``s.q``). No references are counted there: whoever calls compiled code holds the instance.
"""

# numba's own extension functions are untyped.
# mypy: disallow-untyped-calls=False

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Self

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import types
from numba.core.imputils import impl_ret_borrowed, lower_getattr_generic
from numba.core.typing.templates import AttributeTemplate, infer_getattr
from numba.core.typing.typeof import typeof_impl
from numba.extending import NativeValue, intrinsic, models, register_model, unbox
from numba.np.arrayobj import populate_array
from numba.np.numpy_support import from_dtype

_WORD = ir.IntType(64)


class ArraysType(types.Type):
    """The compiled type: names, element types and dimensions of the arrays. Its name changes when a layout does."""

    def __init__(self, label: str, layout: Mapping[str, tuple[np.dtype[Any], int]]) -> None:
        self.arrays = {name: types.Array(from_dtype(dtype), ndim, "C") for name, (dtype, ndim) in layout.items()}
        self.slots: dict[str, int] = {}
        at = 0
        for name, (_, ndim) in layout.items():
            self.slots[name] = at
            at += 1 + ndim
        text = repr([(name, dtype.descr, dtype.itemsize, ndim) for name, (dtype, ndim) in layout.items()])
        super().__init__(name=f"{label}_{hashlib.blake2b(text.encode(), digest_size=6).hexdigest()}")


class Arrays:
    """Mixed into a NamedTuple of arrays, before it: ``class S(Arrays, _Fields)``.

    ``layout``: field -> (dtype, dimensions), in the order of the fields.
    """

    layout: ClassVar[Mapping[str, tuple[np.dtype[Any], int]]]
    _compiled: ClassVar[dict[type, ArraysType]] = {}

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        made = super().__new__(cls, *args, **kwargs)
        made._bind()
        return made

    @classmethod
    def _make(cls, values: Iterable[Any]) -> Self:
        made: Self = tuple.__new__(cls, values)  # type: ignore[type-var]
        made._bind()
        return made

    def _bind(self) -> None:
        words: list[int] = []
        for (name, (dtype, ndim)), array in zip(self.layout.items(), self, strict=True):  # type: ignore[call-overload]
            if array.dtype != dtype or array.ndim != ndim or not array.flags.c_contiguous:
                raise TypeError(f"{type(self).__name__}.{name} is not a contiguous array of its layout")
            words += [array.ctypes.data, *array.shape]
        self._table = np.array(words, np.int64)
        #: Where compiled code finds the arrays; valid as long as this instance lives.
        self.address = int(self._table.ctypes.data)

    @classmethod
    def compiled_type(cls) -> ArraysType:
        """What compiled code sees."""
        found = Arrays._compiled.get(cls)
        if found is None:
            found = Arrays._compiled[cls] = ArraysType(cls.__name__, cls.layout)
        return found


@typeof_impl.register(Arrays)
def _typeof(value: Arrays, context: Any) -> ArraysType:
    return value.compiled_type()


@register_model(ArraysType)
class _Model(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: Any, compiled: ArraysType) -> None:
        super().__init__(manager, compiled, _WORD.as_pointer())


@unbox(ArraysType)
def _unbox(compiled: ArraysType, value: Any, c: Any) -> NativeValue:
    address = c.pyapi.object_getattr_string(value, "address")
    word = c.pyapi.long_as_longlong(address)
    c.pyapi.decref(address)
    return NativeValue(c.builder.inttoptr(word, _WORD.as_pointer()), is_error=c.pyapi.c_api_error())


@infer_getattr
class _Attributes(AttributeTemplate):  # type: ignore[misc]
    key = ArraysType

    def generic_resolve(self, compiled: ArraysType, name: str) -> Any:  # type: ignore[override]
        return compiled.arrays.get(name)


@lower_getattr_generic(ArraysType)
def _getattr(context: Any, builder: Any, compiled: ArraysType, value: Any, name: str) -> Any:
    kind = compiled.arrays[name]
    slot = compiled.slots[name]

    def word(index: int) -> Any:
        return builder.load(builder.gep(value, [ir.Constant(_WORD, index)]))

    array = context.make_array(kind)(context, builder)
    size = context.get_abi_sizeof(context.get_data_type(kind.dtype))
    itemsize = ir.Constant(_WORD, size)
    shape = [word(slot + 1 + axis) for axis in range(kind.ndim)]
    strides = [itemsize]
    for length in reversed(shape[1:]):
        strides.insert(0, builder.mul(strides[0], length))
    populate_array(
        array,
        data=builder.inttoptr(word(slot), array.data.type),
        shape=shape,
        strides=strides,
        itemsize=itemsize,
        meminfo=None,
        parent=None,
    )
    return impl_ret_borrowed(context, builder, kind, array._getvalue())


@intrinsic  # type: ignore[untyped-decorator]
def _call_at(typing: Any, address: Any, first: Any, second: Any, third: Any) -> Any:
    """Call compiled code at an address with those of two `Arrays` and with an integer; what it answers."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        code = builder.inttoptr(args[0], ir.FunctionType(_WORD, [_WORD] * 3).as_pointer())
        return builder.call(code, [builder.ptrtoint(args[1], _WORD), builder.ptrtoint(args[2], _WORD), args[3]])

    return types.int64(types.int64, first, second, types.int64), codegen


call_at: Any = _call_at


def at_address(cls: type[Arrays]) -> Any:
    """A compiled function from an instance's ``address`` to the instance.

    Python calls compiled code with integers in a fraction of the time that it takes with any object of ours; the
    caller keeps the instance alive.
    """
    compiled = cls.compiled_type()

    @intrinsic  # type: ignore[untyped-decorator]
    def taken(typing: Any, address: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return builder.inttoptr(args[0], _WORD.as_pointer())

        return compiled(types.int64), codegen

    return taken
