"""Where compiled code is kept, and what compiled code sees of tables of arrays."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import harness.sim
from harness.sim import compiled
from harness.sim.fair.api import Scheduler
from harness.yarn.fair.parse import parse_allocations

FOLDER = "import os, harness.sim; print(os.environ.get('NUMBA_CACHE_DIR'))"


def folder_of(env: dict[str, str]) -> str:
    base = {key: value for key, value in os.environ.items() if key != "NUMBA_CACHE_DIR"}
    done = subprocess.run(
        [sys.executable, "-c", FOLDER], env={**base, **env}, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def test_the_folder_is_named_by_the_sources_and_the_users_wins(tmp_path: Path) -> None:
    first = folder_of({})
    assert Path(first).name.startswith("compiled-")
    assert folder_of({}) == first
    # A parent of ours with other sources has set the variable: it is not taken over.
    assert folder_of({"NUMBA_CACHE_DIR": str(tmp_path / "compiled-0123")}) == first
    assert folder_of({"NUMBA_CACHE_DIR": str(tmp_path)}) == str(tmp_path)


def test_tables_refuse_arrays_of_another_layout() -> None:
    state = Scheduler({}, parse_allocations('<allocations><queue name="a"/></allocations>', source="test"), []).S
    assert state._replace(work=np.zeros(9, np.int64)).address != state.address
    for wrong in (np.zeros(9, np.int32), np.zeros((3, 3), np.int64), np.zeros(18, np.int64)[::2]):
        with pytest.raises(TypeError, match="work"):
            state._replace(work=wrong)


ONCE = """
import sys, time
from pathlib import Path
from harness.sim.compiled import once

folder = Path(sys.argv[1])

def work():
    time.sleep(0.5)
    with (folder / "log").open("a") as log:
        log.write("worked\\n")

print(once(folder, work))
"""


def test_of_two_processes_one_compiles_and_the_other_waits(tmp_path: Path) -> None:
    made = [subprocess.Popen([sys.executable, "-c", ONCE, str(tmp_path)], stdout=subprocess.PIPE) for _ in range(2)]
    answers = sorted(process.communicate(timeout=60)[0].decode().strip() for process in made)
    assert answers == ["False", "True"]
    assert (tmp_path / "log").read_text() == "worked\n"
    # And never again.
    done = subprocess.run([sys.executable, "-c", ONCE, str(tmp_path)], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


@pytest.mark.parametrize("changed", ["fair/apps.py", "fair/move.py", "loop.py", "world.py", "kernel.py"])
def test_a_change_anywhere_in_the_engine_is_another_folder(tmp_path: Path, changed: str) -> None:
    # Numba looks at the outermost function's file alone: a stale callee would be taken from its cache.
    sources = Path(harness.sim.__file__).parent
    shutil.copytree(sources, tmp_path / "sim", ignore=shutil.ignore_patterns("__pycache__"))
    before = compiled._digest(tmp_path / "sim")
    assert before == compiled._digest(sources)
    with (tmp_path / "sim" / changed).open("a") as file:
        file.write("# another\n")
    assert compiled._digest(tmp_path / "sim") != before


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
