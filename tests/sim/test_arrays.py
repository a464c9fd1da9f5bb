"""Arrays under one name, as compiled code sees them: the same values at the same places as Python has."""

from __future__ import annotations

import ast
import importlib
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from numba import njit

from harness.sim.arrays import (
    Arrays,
    Column,
    Cube,
    Float32,
    Int8,
    Int32,
    Record,
    Table,
    at_address,
    fetch,
    fetch_line,
    in_lines,
    zeros,
)


class _Row(Record, lines=False):
    whole: int
    real: float
    single: Float32
    small: Int32
    last: int


_ROW = _Row.dtype


class _Given(NamedTuple):
    rows: Column[_Row]
    grid: Table[_Row]
    pairs: Table[int]
    reals: Column[float]
    cube: Cube[int]


class Given(Arrays, _Given):  # type: ignore[misc]
    pass


def given() -> Given:
    return Given(
        np.zeros(3, _ROW), np.zeros((2, 5), _ROW), np.zeros((4, 3), np.int64), np.zeros(7), np.zeros((2, 2, 2), "i8")
    )


@njit
def _write(t: Any, i: int, k: int) -> Any:
    row = t.rows[i]
    row.whole, row.real, row.single, row.last = 5, 0.5, 0.1, -1
    t.grid[i, k].last += 7
    t.pairs[i, k] = 11
    t.pairs[i, k] += 1
    t.reals[k] = row.whole / 2
    t.cube[1][0, 1] = 3
    row.whole = row.whole + (row.last < 0)
    return len(t.rows), len(t.grid), t.grid.shape[1], t.pairs.shape[0], row.single


def test_an_element_is_where_python_has_it() -> None:
    t = given()
    assert _write(t, 1, 2) == (3, 2, 5, 4, pytest.approx(0.1))
    assert t.rows[1].tolist() == (6, 0.5, pytest.approx(0.1), 0, -1)
    assert t.grid["last"].tolist() == [[0] * 5, [0, 0, 7, 0, 0]]
    assert t.pairs.tolist() == [[0, 0, 0], [0, 0, 12], [0, 0, 0], [0, 0, 0]]
    assert t.reals.tolist() == [0, 0, 2.5, 0, 0, 0, 0]
    assert t.cube[1, 0, 1] == 3
    assert t.cube.sum() == 3
    assert t.rows[[0, 2]].tolist() == [(0, 0.0, 0.0, 0, 0)] * 2


@njit
def _small(t: Any) -> Any:
    t.rows[0].small = -2
    t.rows[2].small = 7
    return t.rows[0].small + (1 << 40), t.rows[2].small * (1 << 40), t.rows[1].small


def test_integers_of_32_bits_are_of_64_in_compiled_code() -> None:
    t = given()
    assert _small(t) == ((1 << 40) - 2, 7 << 40, 0)
    assert t.rows["small"].tolist() == [-2, 0, 7]


@njit
def _fetch(t: Any, i: int) -> Any:
    fetch(t.rows, i)
    fetch(t.reals, i)
    fetch_line(t.grid, (i % 2, i))
    return t.rows[i].whole


def test_to_fetch_an_element_ahead_changes_nothing() -> None:
    t = given()
    t.rows["whole"] = [3, 4, 5]
    before = [array.copy() for array in t]
    assert [_fetch(t, i) for i in range(3)] == [3, 4, 5]
    assert all((now == then).all() for now, then in zip(t, before, strict=True))


def test_records_that_fill_a_line_of_the_caches_begin_with_one() -> None:
    large = np.dtype([("first", "i8"), ("more", "i8", (9,)), ("flag", "i1")], align=True)
    laid = in_lines(large)
    assert (laid.itemsize, laid.names) == (128, large.names)
    assert laid.descr[:3] == large.descr[:3]  # no field has moved
    assert in_lines(_ROW) == _ROW  # two fill a line
    small = np.dtype([("ms", "i8"), ("c", "i8")])
    assert in_lines(small) == small
    assert zeros(0, laid).shape == (0,)
    for shape in (3, (5, 2)):
        made = zeros(shape, laid)
        assert made.ctypes.data % 64 == 0
        assert made.flags.c_contiguous
        assert not made["first"].any()
        assert made.shape == np.zeros(shape).shape


def test_a_number_that_a_record_cannot_hold_is_rounded_to_its_kind() -> None:
    t = given()

    @njit
    def rounds(t: Any) -> None:
        t.rows[0].single = 0.1
        t.rows[0].real = 0.1

    rounds(t)
    assert t.rows[0]["single"] == np.float32(0.1)
    assert t.rows[0]["real"] == 0.1


def test_what_is_written_under_one_name_is_read_under_it_and_not_under_another() -> None:
    """The compiler is told that fields of other names, or of other arrays, are other memory."""
    t = given()

    @njit
    def mixes(t: Any, i: int, j: int) -> Any:
        x, y = t.rows[i], t.rows[j]
        x.whole = 1
        y.whole = 2
        seen = x.whole  # the same record if i == j
        y.last = x.whole
        t.grid[0, 0].whole = 9
        return seen * 100 + x.whole * 10 + y.last

    assert mixes(t, 0, 0) == 222
    assert mixes(t, 0, 1) == 111


def test_the_tables_address_is_enough_and_another_table_is_another() -> None:
    taken = at_address(Given)

    @njit
    def first(address: int) -> Any:
        return taken(address).reals[0]

    one, other = given(), given()
    one.reals[0], other.reals[0] = 1.0, 2.0
    assert first(one.address) == 1.0
    assert first(other.address) == 2.0
    bigger = one._replace(reals=np.full(9, 4.0))
    assert first(bigger.address) == 4.0


def test_arrays_of_another_layout_are_refused() -> None:
    with pytest.raises(TypeError, match=r"Given\.reals is not a contiguous array of its layout"):
        given()._replace(reals=np.zeros(7, np.float32))


def _unexplained(module: str) -> list[str]:
    """The fields of a module's records that have no meaning beside them, or in a line of its own above."""
    lines = Path(str(importlib.import_module(module).__file__)).read_text(encoding="utf-8").splitlines()
    records = [
        node
        for node in ast.parse("\n".join(lines)).body
        if isinstance(node, ast.ClassDef) and any("Record" in ast.unparse(base) for base in node.bases)
    ]
    assert records, module
    fields = [(lines[field.lineno - 2 : field.lineno], field) for node in records for field in node.body[1:]]
    return [ast.unparse(field) for (above, line), field in fields if "  # " not in line and above.lstrip()[:2] != "# "]


@pytest.mark.parametrize(
    "module", ["world", "longterm_state", "state", "fair.state", "capacity.state", "fifo.state"], ids=str
)
def test_each_field_of_a_state_has_its_meaning_beside_it(module: str) -> None:
    """A reader of a kernel finds what ``q.n_cand`` is where the field is declared."""
    assert _unexplained(f"harness.sim.{module}") == []


class _Plain(Record, lines=False):
    whole: int
    real: float
    flag: Int8
    slot: Int32
    ratio: Float32


class _More(_Plain):
    last: int


def test_a_record_lies_in_memory_as_it_is_declared() -> None:
    """Fields are in the order of the lines, each of its type's size; those of a record that it extends come first."""
    kinds = {"whole": np.int64, "real": np.float64, "flag": np.int8, "slot": np.int32, "ratio": np.float32}
    assert _Plain.dtype == np.dtype(list(kinds.items()), align=True)
    assert _More.dtype == in_lines(np.dtype([*kinds.items(), ("last", np.int64)], align=True))
