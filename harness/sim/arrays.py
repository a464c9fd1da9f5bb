"""Tuples of many arrays that are passed to compiled code as a single pointer.

numba passes a NamedTuple of thirty record arrays to every compiled function as some two hundred separate arguments,
with type names of many kilobytes. That takes minutes to compile and is slow to call. Subclasses of `Arrays` are
NamedTuples that also carry a table of the addresses and shapes of their arrays. Compiled code gets the address of this
table and reads an array from it by name (``s.q``). Compiled code counts no references, so the caller must keep the
instance alive during the call.
"""

# numba's own extension functions are untyped.
# mypy: disallow-untyped-calls=False

from __future__ import annotations

import hashlib
import math
import operator
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Generic, Self, TypeVar, get_type_hints, overload

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import types
from numba.core.imputils import (
    impl_ret_borrowed,
    lower_builtin,
    lower_getattr,
    lower_getattr_generic,
    lower_setattr_generic,
)
from numba.core.typing.templates import (
    AbstractTemplate,
    AttributeTemplate,
    infer,
    infer_getattr,
    infer_global,
    signature,
)
from numba.core.typing.typeof import typeof_impl
from numba.extending import NativeValue, intrinsic, models, register_model, unbox
from numba.np.arrayobj import populate_array
from numba.np.numpy_support import from_dtype

from harness.base.errors import InternalError
from harness.base.machine_code import CHECKED, kernel_name

_WORD, _BYTE = ir.IntType(64), ir.IntType(8)
#: Size of a cache line in bytes.
_LINE = 64


def zeros(shape: int | tuple[int, ...], dtype: Any) -> np.ndarray:
    """Return an array of zeros whose first element is aligned to a cache line."""
    kind = np.dtype(dtype)
    size = int(np.prod(shape)) * kind.itemsize
    raw = np.zeros(size + _LINE, np.uint8)
    begin = -raw.ctypes.data % _LINE
    made: np.ndarray = raw[begin : begin + size].view(kind).reshape(shape)
    return made


def in_lines(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return a record type padded to a multiple of a cache line; types of at most half a line are not changed."""
    if dtype.itemsize <= _LINE // 2 or dtype.fields is None:
        return dtype
    names = list(dtype.names or ())
    return np.dtype(
        {
            "names": names,
            "formats": [dtype.fields[name][0] for name in names],
            "offsets": [dtype.fields[name][1] for name in names],
            "itemsize": -(-dtype.itemsize // _LINE) * _LINE,
        }
    )


#: Types of the fields of a `Record`, beside ``int`` (64 bits) and ``float`` (64 bits). Compiled code reads all integers
#: as int64: Int32 is for slots, flags and lengths of lists, Int8 for flags of which there are very many.
Int32 = Annotated[int, np.int32]
Int8 = Annotated[int, np.int8]
Float32 = Annotated[float, np.float32]


class Record:
    """Base class of the records that the arrays consist of. Its subclasses are declarations and have no instances.

    A subclass declares one field a line, in their order in memory: ``name: type``, with one of ``int``, ``Int32``,
    ``Int8``, ``float``, ``Float32``, and with the field's meaning and unit beside it. Fields that are used together
    should share a cache line of 64 bytes. With ``lines=False`` the records of an array follow one another without
    padding; otherwise each begins at a cache line (`in_lines`).

    Attributes
    ----------
    dtype : numpy.dtype
        The layout in memory.
    """

    dtype: ClassVar[np.dtype[Any]]

    def __init_subclass__(cls, *, lines: bool = True) -> None:
        hints = get_type_hints(cls, include_extras=True)
        fields = [(name, _element_type(kind)) for name, kind in hints.items() if name != "dtype"]
        made = np.dtype(fields, align=True)
        cls.dtype = in_lines(made) if lines else made

    if TYPE_CHECKING:
        # In Python, a record is an element of a numpy array, and its fields are read by name.
        def __getitem__(self, field: str) -> Any: ...
        def __setitem__(self, field: str, value: Any) -> None: ...


def _element_type(kind: Any) -> np.dtype[Any]:
    """Return the type of the elements of an array, or of a field: a `Record`, or one of the types that a field has."""
    if isinstance(kind, type) and issubclass(kind, Record):
        return kind.dtype
    made: np.dtype[Any] = np.dtype(getattr(kind, "__metadata__", (kind,))[0])
    return made


if TYPE_CHECKING:
    _Element_co = TypeVar("_Element_co", covariant=True)

    class Column(np.ndarray[Any, np.dtype[Any]], Generic[_Element_co]):
        """An array with one dimension. Compiled code indexes it by integers only."""

        @overload  # type: ignore[override]
        def __getitem__(self, index: int, /) -> _Element_co: ...
        @overload
        def __getitem__(self, index: Any, /) -> Any: ...
        def __getitem__(self, index: Any, /) -> Any: ...

    class Table(np.ndarray[Any, np.dtype[Any]], Generic[_Element_co]):
        """An array with two dimensions."""

        @overload  # type: ignore[override]
        def __getitem__(self, index: tuple[int, int], /) -> _Element_co: ...
        @overload
        def __getitem__(self, index: Any, /) -> Any: ...
        def __getitem__(self, index: Any, /) -> Any: ...

    class Cube(np.ndarray[Any, np.dtype[Any]], Generic[_Element_co]):
        """An array with three dimensions."""

else:

    class _Dimensions:
        """``Column[JobRecord]`` and the like, as `Arrays` reads them: the elements' type, the number of dimensions."""

        def __init__(self, count: int) -> None:
            self.count = count

        def __getitem__(self, element: Any) -> Any:
            return Annotated[np.ndarray, element, self.count]

    Column, Table, Cube = _Dimensions(1), _Dimensions(2), _Dimensions(3)


class ArraysType(types.Type):
    """The numba type of an `Arrays` class, made from the arrays' names, element types and dimensions.

    The type's name contains a hash of the layout, so that code compiled for another layout is never reused.
    ``scheduler``: name of the scheduler whose state the arrays hold (``""``: of none).
    """

    def __init__(self, label: str, layout: Mapping[str, tuple[np.dtype[Any], int]], scheduler: str = "") -> None:
        text = repr([(name, dtype.descr, dtype.itemsize, ndim) for name, (dtype, ndim) in layout.items()])
        digest = hashlib.blake2b(f"{scheduler}{text}".encode(), digest_size=6).hexdigest()
        super().__init__(name=f"{label}_{digest}")
        self.scheduler = scheduler
        self.arrays: dict[str, Any] = {}
        self.slots: dict[str, int] = {}
        at = 0
        for name, (dtype, ndim) in layout.items():
            self.slots[name] = at
            if ndim <= 2:
                self.arrays[name] = ColumnType(f"{self.name}.{name}", dtype, ndim, at)
            else:
                self.arrays[name] = types.Array(from_dtype(dtype), ndim, "C")
            at += 1 + ndim


class RowType(types.Type):
    """The numba type of one record of an array. Its fields are read and written in place."""

    def __init__(self, name: str, dtype: np.dtype[Any]) -> None:
        super().__init__(name=f"row of {name}")
        assert dtype.fields is not None
        self.fields = {field: (from_dtype(kind[0]), kind[1]) for field, kind in dtype.fields.items()}
        self.itemsize = dtype.itemsize


class ColumnType(types.Type):
    """The numba type of an array of one or two dimensions that is accessed by element, with indices from 0.

    numba's own arrays load their shape and strides and handle negative indices at each access. Here the address of an
    element is computed from the array's address alone, which does not change while compiled code runs.
    """

    def __init__(self, name: str, dtype: np.dtype[Any], ndim: int, slot: int) -> None:
        super().__init__(name=name)
        self.ndim, self.slot, self.itemsize = ndim, slot, dtype.itemsize
        self.element = from_dtype(dtype) if dtype.fields is None else RowType(name, dtype)


class Arrays:
    """Base class of a NamedTuple of arrays. It precedes the NamedTuple: ``class S(Arrays, _Fields)``.

    Each field declares its content: ``name: Column[element]``, or `Table` or `Cube` for two or three dimensions. The
    elements are records (`Record`), ``int`` or ``float``.

    Attributes
    ----------
    layout : Mapping[str, tuple[dtype, int]]
        Element type and number of dimensions of each field, in the order of the fields.
    scheduler : str
        Name of the scheduler in `harness.sim.schedulers.SCHEDULERS` whose state the arrays hold; ``""``: of none.
    """

    scheduler: ClassVar[str] = ""
    layout: ClassVar[Mapping[str, tuple[np.dtype[Any], int]]]
    _compiled: ClassVar[dict[type, ArraysType]] = {}

    def __init_subclass__(cls) -> None:
        fields: tuple[str, ...] = cls._fields  # type: ignore[attr-defined]
        hints = get_type_hints(cls, include_extras=True)
        cls.layout = {name: (_element_type(kind), ndim) for name in fields for kind, ndim in [hints[name].__metadata__]}

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        """Create the tuple and bind its arrays."""
        made = super().__new__(cls, *args, **kwargs)
        made._bind()
        return made

    if TYPE_CHECKING:

        def _replace(self, **arrays: np.ndarray) -> Self:
            """Return a copy with some arrays replaced, as the NamedTuple's own method does."""

    @classmethod
    def _make(cls, values: Iterable[Any]) -> Self:
        made: Self = tuple.__new__(cls, values)  # type: ignore[type-var]
        made._bind()
        return made

    @classmethod
    def empty(cls, make: Callable[..., np.ndarray] = zeros, **shapes: int | tuple[int, ...]) -> Self:
        """Return arrays of zeros with the given shapes, by name; a field without a shape gets no elements."""
        return cls(*(make(shapes.get(name, (0,) * ndim), dtype) for name, (dtype, ndim) in cls.layout.items()))

    def _bind(self) -> None:
        words: list[int] = []
        for (name, (dtype, ndim)), array in zip(self.layout.items(), self, strict=True):  # type: ignore[call-overload]
            if array.dtype != dtype or array.ndim != ndim or not array.flags.c_contiguous:
                raise TypeError(f"{type(self).__name__}.{name} is not a contiguous array of its layout")
            words += [array.ctypes.data, *array.shape]
        self._table = np.array(words, np.int64)
        #: The address by which compiled code finds the arrays; valid as long as this instance lives.
        self.address = int(self._table.ctypes.data)

    @classmethod
    def compiled_type(cls) -> ArraysType:
        """Return the numba type that compiled code sees."""
        found = Arrays._compiled.get(cls)
        if found is None:
            found = Arrays._compiled[cls] = ArraysType(cls.__name__, cls.layout, cls.scheduler)
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


def _word(builder: Any, table: Any, index: int) -> Any:
    """Load a word of the table, marked as constant because it does not change while compiled code runs."""
    found = builder.load(builder.gep(table, [ir.Constant(_WORD, index)], inbounds=True))
    found.set_metadata("invariant.load", builder.module.add_metadata([]))
    return found


@lower_getattr_generic(ArraysType)
def _getattr(context: Any, builder: Any, compiled: ArraysType, value: Any, name: str) -> Any:
    kind = compiled.arrays[name]
    slot = compiled.slots[name]

    if isinstance(kind, ColumnType):
        return value

    def word(index: int) -> Any:
        return _word(builder, value, index)

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


@register_model(ColumnType)
class _ColumnModel(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: Any, column: ColumnType) -> None:
        super().__init__(manager, column, _WORD.as_pointer())


@register_model(RowType)
class _RowModel(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: Any, row: RowType) -> None:
        super().__init__(manager, row, _BYTE.as_pointer())


def _index(column: ColumnType, index: Any) -> Any:
    """Return the type to which an index is converted, or None if it cannot index the column."""
    if column.ndim == 1:
        return types.intp if isinstance(index, types.Integer) else None
    kinds = index.types if isinstance(index, types.Tuple | types.UniTuple) else ()
    pair = [isinstance(one, types.Integer) for one in kinds] == [True, True]
    return types.UniTuple(types.intp, 2) if pair else None


@infer_global(operator.getitem)
class _GetItem(AbstractTemplate):  # type: ignore[misc]
    def generic(self, args: Any, kws: Any) -> Any:
        column, index = args
        if isinstance(column, ColumnType) and (taken := _index(column, index)) is not None:
            return signature(column.element, column, taken)
        return None


@infer_global(operator.setitem)
class _SetItem(AbstractTemplate):  # type: ignore[misc]
    def generic(self, args: Any, kws: Any) -> Any:
        column, index, _ = args
        numbers = isinstance(column, ColumnType) and isinstance(column.element, types.Number)
        taken = _index(column, index) if numbers else None
        return None if taken is None else signature(types.none, column, taken, column.element)


@infer_global(len)
class _Len(AbstractTemplate):  # type: ignore[misc]
    def generic(self, args: Any, kws: Any) -> Any:
        return signature(types.intp, args[0]) if len(args) == 1 and isinstance(args[0], ColumnType) else None


@infer_getattr
class _Shape(AttributeTemplate):  # type: ignore[misc]
    key = ColumnType

    def resolve_shape(self, column: ColumnType) -> Any:
        return types.UniTuple(types.intp, column.ndim)


@lower_getattr(ColumnType, "shape")
def _shape(context: Any, builder: Any, column: ColumnType, table: Any) -> Any:
    words = [_word(builder, table, column.slot + 1 + axis) for axis in range(column.ndim)]
    return context.make_tuple(builder, types.UniTuple(types.intp, column.ndim), words)


@lower_builtin(len, ColumnType)
def _length(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    return _word(builder, args[0], sig.args[0].slot + 1)


def _check(context: Any, builder: Any, column: ColumnType, table: Any, indices: list[Any]) -> None:
    """In the checked build, raise InternalError for an index outside its axis."""
    outside = ir.Constant(ir.IntType(1), 0)
    for axis, index in enumerate(indices):
        length = _word(builder, table, column.slot + 1 + axis)
        outside = builder.or_(outside, builder.icmp_unsigned(">=", index, length))
    with builder.if_then(outside, likely=False):
        what = f"an index of {column.name.rpartition('.')[2]!r} is out of bounds in {kernel_name(builder)}"
        context.call_conv.return_user_exc(builder, InternalError, (what,))


def _element(context: Any, builder: Any, column: ColumnType, table: Any, index: Any, *, checked: bool = CHECKED) -> Any:
    """Return the address of an element as a pointer to bytes."""
    indices = [builder.extract_value(index, axis) for axis in range(2)] if column.ndim == 2 else [index]
    if checked:
        _check(context, builder, column, table, indices)
    if column.ndim == 2:
        first, second = indices
        index = builder.add(builder.mul(first, _word(builder, table, column.slot + 2)), second)
    base = builder.inttoptr(_word(builder, table, column.slot), _BYTE.as_pointer())
    return builder.gep(base, [builder.mul(index, ir.Constant(_WORD, column.itemsize))], inbounds=True)


def _tagged(builder: Any, access: Any, kind: str) -> Any:
    """Tag a load or store with its column or field: LLVM may assume that different names are different memory."""
    module = builder.module
    root = module.add_metadata([ir.MetaDataString(module, "yarnfair")])
    node = module.add_metadata([ir.MetaDataString(module, kind), root, ir.Constant(_WORD, 0)])
    access.set_metadata("tbaa", module.add_metadata([node, node, ir.Constant(_WORD, 0)]))
    return access


def _shown(element: Any) -> Any:
    """Return the type that compiled code sees: integers of any stored size become int64."""
    return types.int64 if isinstance(element, types.Integer) else element


def _load(context: Any, builder: Any, element: Any, address: Any, kind: str) -> Any:
    data = context.get_data_type(element)
    found = builder.load(builder.bitcast(address, data.as_pointer()))
    value = context.data_model_manager[element].from_data(builder, _tagged(builder, found, kind))
    return context.cast(builder, value, element, _shown(element))


def _store(context: Any, builder: Any, element: Any, value: Any, address: Any, kind: str) -> None:
    stored = context.data_model_manager[element].as_data(builder, value)
    _tagged(builder, builder.store(stored, builder.bitcast(address, stored.type.as_pointer())), kind)


@lower_builtin(operator.getitem, ColumnType, types.Any)
def _get_item(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    column = sig.args[0]
    address = _element(context, builder, column, *args)
    if isinstance(column.element, RowType):
        return address
    return _load(context, builder, column.element, address, column.name)


@lower_builtin(operator.setitem, ColumnType, types.Any, types.Any)
def _set_item(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    column = sig.args[0]
    _store(context, builder, column.element, args[2], _element(context, builder, column, *args[:2]), column.name)
    return context.get_dummy_value()


@infer_getattr
class _Fields(AttributeTemplate):  # type: ignore[misc]
    key = RowType

    def generic_resolve(self, row: RowType, name: str) -> Any:  # type: ignore[override]
        return _shown(row.fields[name][0]) if name in row.fields else None


def _field(builder: Any, row: RowType, address: Any, name: str) -> Any:
    return builder.gep(address, [ir.Constant(_WORD, row.fields[name][1])], inbounds=True)


@lower_getattr_generic(RowType)
def _get_field(context: Any, builder: Any, row: RowType, address: Any, name: str) -> Any:
    return _load(context, builder, row.fields[name][0], _field(builder, row, address, name), f"{row.name}.{name}")


@lower_setattr_generic(RowType)
def _set_field(context: Any, builder: Any, sig: Any, args: Any, name: str) -> Any:
    row, kind = sig.args
    value = context.cast(builder, args[1], kind, row.fields[name][0])
    _store(context, builder, row.fields[name][0], value, _field(builder, row, args[0], name), f"{row.name}.{name}")
    return context.get_dummy_value()


@infer
class _NamedField(AbstractTemplate):  # type: ignore[misc]
    """Typing of ``row["name"]``, for kernels that are compiled for one given field name (harness.sim.lists)."""

    key = "static_getitem"

    def generic(self, args: Any, kws: Any) -> Any:
        row, name = args
        known = isinstance(row, RowType) and name in row.fields
        return signature(_shown(row.fields[name][0]), row, types.literal(name)) if known else None


@infer
class _SetNamedField(AbstractTemplate):  # type: ignore[misc]
    key = "static_setitem"

    def generic(self, args: Any, kws: Any) -> Any:
        row, name, value = args
        known = isinstance(row, RowType) and name in row.fields
        return signature(types.void, row, types.literal(name), value) if known else None


@lower_builtin("static_getitem", RowType, types.StringLiteral)
def _get_named(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    return _get_field(context, builder, sig.args[0], *args)


@lower_builtin("static_setitem", RowType, types.StringLiteral, types.Any)
def _set_named(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    row, name, kind = sig.args
    return _set_field(context, builder, signature(types.void, row, kind), (args[0], args[2]), name.literal_value)


def poisoner(kept: frozenset[str]) -> Any:
    """Create a compiled function ``poison(column, index)`` that overwrites all fields of a record except `kept`.

    Used on free slots: code that still reads one as an index, a flag or an amount then fails visibly. Integers become
    0x5A in each byte, which is outside every array; reals become NaN.
    """

    @intrinsic  # type: ignore[untyped-decorator]
    def poison(typing: Any, column: Any, index: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            row = signature.args[0].element
            address = _element(context, builder, signature.args[0], *args)
            for name, (kind, _) in row.fields.items():
                if name in kept:
                    continue
                stored = context.get_value_type(kind)
                whole = isinstance(kind, types.Integer)
                value = ir.Constant(stored, int("5a" * (kind.bitwidth // 8), 16) if whole else math.nan)
                _store(context, builder, kind, value, _field(builder, row, address, name), f"{row.name}.{name}")
            return context.get_dummy_value()

        return types.none(column, _index(column, index)), codegen

    return poison


def _fetcher(most: int) -> Any:
    @intrinsic  # type: ignore[untyped-decorator]
    def fetcher(typing: Any, column: Any, index: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            number = ir.IntType(32)
            code = builder.module.declare_intrinsic(
                "llvm.prefetch",
                [_BYTE.as_pointer()],
                ir.FunctionType(ir.VoidType(), [_BYTE.as_pointer(), number, number, number]),
            )
            # An address outside the array is allowed, because a prefetch reads nothing.
            address = _element(context, builder, signature.args[0], *args, checked=False)
            for line in range(0, min(signature.args[0].itemsize, most), _LINE):
                at = builder.gep(address, [ir.Constant(_WORD, line)], inbounds=True)
                builder.call(code, [at, number(0), number(3), number(1)])
            return context.get_dummy_value()

        return types.none(column, _index(column, index)), codegen

    return fetcher


#: Prefetch an element into the cache: its first two cache lines, or only its first one.
fetch, fetch_line = _fetcher(2 * _LINE), _fetcher(_LINE)


@intrinsic  # type: ignore[untyped-decorator]
def _call_at(typing: Any, address: Any, first: Any, second: Any, third: Any) -> Any:
    """Call compiled code at an address with the addresses of two `Arrays` and an integer; return its result."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        code = builder.inttoptr(args[0], ir.FunctionType(_WORD, [_WORD] * 3).as_pointer())
        return builder.call(code, [builder.ptrtoint(args[1], _WORD), builder.ptrtoint(args[2], _WORD), args[3]])

    return types.int64(types.int64, first, second, types.int64), codegen


call_at: Any = _call_at


def at_address(cls: type[Arrays]) -> Any:
    """Return a compiled function that converts an instance's ``address`` to the instance.

    Calling compiled code with integers takes Python a fraction of the time that a call with objects takes. The caller
    must keep the instance alive.
    """
    compiled = cls.compiled_type()

    @intrinsic  # type: ignore[untyped-decorator]
    def taken(typing: Any, address: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return builder.inttoptr(args[0], _WORD.as_pointer())

        return compiled(types.int64), codegen

    return taken
