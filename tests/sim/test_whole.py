"""Kernels are compiled once each, and put together for Python: from memory, from disk, by several processes."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

from harness.sim.whole import TRIED

ROOT = Path(__file__).parents[2]

KERNELS = """
import numba
from harness.sim.kernel import dispatched, kernel

@kernel
def low(x, y):
    return x // y

@kernel
def high(x, y):
    return x + y

lower = dispatched(lambda kind: high if kind == numba.types.boolean else low)

@kernel
def middle(x, y):
    return low(x, y) + lower(x, y) + lower(True, 7)

@kernel
def top(n, y):
    total = 0
    for i in range(n):
        total += middle(i, y) - min(i, 3)
    return total

@kernel
def other(x):
    return x

@numba.njit
def plain(n, y):
    return top(n, y) + middle(n, y)
"""
TYPES = "import kernels as k; from numba import int64 as i; "


def python(folder: Path, code: str) -> str:
    (folder / "kernels.py").write_text(KERNELS)
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(folder / "kept"), "PYTHONPATH": str(folder)}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def expected(n: int, y: int) -> int:
    return sum(2 * (i // y) + 8 - min(i, 3) for i in range(n))


def test_what_python_calls_has_all_that_it_calls_and_is_taken_from_disk(tmp_path: Path) -> None:
    code = TYPES + "print(k.top(20, 3), sum(k.top.stats.cache_hits.values()), len(k.middle.part.overloads))"
    assert python(tmp_path, code) == f"{expected(20, 3)} 0 1"
    assert python(tmp_path, code) == f"{expected(20, 3)} 1 0"  # no part was looked at


def test_an_error_far_below_is_raised(tmp_path: Path) -> None:
    code = TYPES + (
        "\ntry: k.top(3, 0)\nexcept ZeroDivisionError as error: print(error)\nprint(k.top(3, 1), k.plain(3, 1))"
    )
    for _ in range(2):
        assert python(tmp_path, code).split("\n") == [
            "integer division by zero",
            f"{expected(3, 1)} {expected(3, 1) + 14}",
        ]


def test_parts_that_processes_compiled_in_different_orders_fit_together(tmp_path: Path) -> None:
    python(tmp_path, TYPES + "k.middle.part.compile((i, i))")
    for file in (tmp_path / "kept").rglob("kernels.low-*"):
        file.unlink()
    python(
        tmp_path,
        TYPES + "k.other.part.compile((i,)); k.other.part.compile((k.numba.float64,)); k.low.part.compile((i, i))",
    )
    assert python(tmp_path, TYPES + "print(k.top(20, 3))") == str(expected(20, 3))


def test_with_another_numba_kernels_are_compiled_as_numba_does_it(tmp_path: Path) -> None:
    another = "import numba; numba.__version__ = '0.999.0'\n" + TYPES
    assert python(tmp_path, another + "print(k.top(20, 3), k.plain(3, 1), hasattr(k.top, 'part'))") == (
        f"{expected(20, 3)} {expected(3, 1) + 14} False"
    )


def test_the_pinned_numba_is_one_that_was_tried() -> None:
    pinned = re.search(r"(?m)^numba==(\d+\.\d+)", (ROOT / "requirements.txt").read_text(encoding="utf-8"))
    assert pinned is not None
    assert pinned[1] in TRIED


def test_no_numba_is_installed_that_was_never_tried() -> None:
    """The package takes releases from the lowest pinned one to the newest that was tried, and nothing above that.

    `harness.sim.arrays` needs parts of numba that any release may change, and unlike `harness.sim.whole` the engine
    cannot do without it.
    """
    least = re.search(r"(?m)^numba==(\d+\.\d+)", (ROOT / "requirements-lowest.txt").read_text(encoding="utf-8"))
    major, minor = max(tuple(map(int, release.split("."))) for release in TRIED)
    needed = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["dependencies"]
    assert least is not None
    assert f"numba>={least[1]},<{major}.{minor + 1}" in needed


def test_two_processes_name_a_kernel_alike() -> None:
    """numba numbers the types of records in each process; parts of both processes are put together."""
    code = (
        "import sys, numpy as np; from numba import from_dtype, types; from harness.sim.whole import _name_in_code\n"
        "[from_dtype(np.dtype([(f'f{n}', np.int64)])) for n in range(int(sys.argv[1]))]\n"
        "record = types.Array(from_dtype(np.dtype([('a', np.int64)])), 1, 'C')\n"
        "print(_name_in_code('kernel', (record, types.int64), uid=3))"
    )
    names = {
        subprocess.run([sys.executable, "-c", code, count], capture_output=True, text=True, check=True).stdout
        for count in ("0", "50")
    }
    assert len(names) == 1
    assert "kernel" in names.pop()
