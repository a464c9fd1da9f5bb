"""Where compiled code is kept, and what compiled code sees of tables of arrays."""

from __future__ import annotations

import ast
import importlib.metadata
import os
import pkgutil
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import numpy as np
import pytest
from numba.core.dispatcher import Dispatcher

import harness
from harness.base import machine_code
from harness.base.machine_code import digest, reached_modules
from harness.experiments.resolve import load_experiment, variants_of
from harness.results.store import RunDirectory
from harness.sim import compiled
from harness.sim.fair.api import Scheduler
from harness.yarn.fair.parse import parse_allocations
from tests.sim.conftest import PINNED_NUMBA

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


def test_without_compilation_a_run_is_refused_in_one_line(tmp_path: Path) -> None:
    call = [sys.executable, "-m", "harness", "run", "demo", "--no-report", "--jobs", "1", "--out", str(tmp_path / "o")]
    done = subprocess.run(call, env={**os.environ, "NUMBA_DISABLE_JIT": "1"}, capture_output=True, text=True)
    assert done.returncode == 1
    (line,) = [line for line in done.stderr.splitlines() if "NUMBA_DISABLE_JIT" in line]
    assert line.startswith("yarnfair: NUMBA_DISABLE_JIT in the environment: a simulated run needs compiled code")


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
    answers = sorted(process.communicate(timeout=300)[0].decode().strip() for process in made)
    assert answers == ["False", "True"]
    assert (tmp_path / "log").read_text() == "worked\n"
    # And never again.
    done = subprocess.run([sys.executable, "-c", ONCE, str(tmp_path)], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


_CHANGED = [
    *("sim/fair/apps.py", "sim/fair/move.py", "sim/loop.py", "sim/world.py", "sim/kernel.py", "model/snapshot.py"),
    *("policies/weights_kernel.py", "systems/qknober/simulator_loop.py", "systems/mrorder/ordering/slot_kernel.py"),
    "yarn/fair/javanum.py",
]


@pytest.fixture(scope="module")
def copied(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("copy") / "harness"
    shutil.copytree(Path(harness.__file__).parent, root, ignore=shutil.ignore_patterns("__pycache__"))
    return root


@pytest.mark.parametrize("changed", _CHANGED)
def test_a_change_of_anything_that_a_kernel_reaches_is_another_folder(copied: Path, changed: str) -> None:
    # Numba looks at the outermost function's file alone: a stale callee or constant would be taken from its cache.
    before = digest(copied)
    assert before == digest()
    source = (copied / changed).read_bytes()
    stamp = (copied / changed).stat()
    (copied / changed).write_bytes(source + b"# another\n")
    assert digest(copied) != before
    (copied / changed).write_bytes(source)
    os.utime(copied / changed, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    assert digest(copied) == before


def test_what_reaches_no_kernel_compiles_nothing_once_more(copied: Path) -> None:
    before = digest(copied)
    for changed in ("cli/run.py", "results/store.py", "sim/simulate.py", "yarn/rest.py"):
        with (copied / changed).open("a") as file:
            file.write("# another\n")
    assert digest(copied) == before


def test_a_file_that_numba_would_compile_once_more_is_another_folder(copied: Path) -> None:
    before = digest(copied)
    os.utime(copied / "sim" / "loop.py", (1, 1))
    assert digest(copied) != before


@pytest.mark.parametrize("package", ["numba", "llvmlite", "numpy"])
def test_another_release_of_the_compiler_is_another_folder(monkeypatch: pytest.MonkeyPatch, package: str) -> None:
    before = digest()
    known = importlib.metadata.version
    monkeypatch.setattr(importlib.metadata, "version", lambda name: "99" if name == package else known(name))
    assert digest() != before


def test_another_python_or_processor_is_another_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    found = {digest()}
    for name, value in (("sys.version", "4.0"), ("harness.base.machine_code._processor", lambda: "another")):
        with monkeypatch.context() as patched:
            patched.setattr(name, value)
            found.add(digest())
    assert len(found) == 3


def test_the_checked_build_has_a_folder_of_its_own() -> None:
    assert folder_of({"YARNFAIR_CHECKED": "1"}) != folder_of({"YARNFAIR_CHECKED": "0"})


def _reached(function: Any, seen: set[Any]) -> Iterator[str]:
    """The modules of a kernel, of the kernels that it calls, and of the modules that its globals are."""
    plain = getattr(function, "py_func", function)
    if not isinstance(plain, FunctionType) or plain in seen:
        return
    seen.add(plain)
    yield plain.__module__
    free = [cell.cell_contents for cell in plain.__closure__ or ()]
    for value in [*map(plain.__globals__.get, plain.__code__.co_names), *free]:
        if isinstance(value, ModuleType):
            yield value.__name__
            values = [getattr(value, name, None) for name in plain.__code__.co_names]
        else:
            values = [value]
        for one in values:
            yield from _reached(one, seen)


def test_a_kernel_reaches_no_module_outside_the_digest() -> None:
    """Of the functions as Python has them, whatever their sources look like."""
    covered = reached_modules()
    found, seen = set(), set[Any]()
    names = [
        info.name for info in pkgutil.walk_packages(harness.__path__, "harness.") if not info.name.endswith("__main__")
    ]
    if not PINNED_NUMBA:  # kernels are not linked with a numba that was not tried
        names.remove("harness.sim.whole")
    for name in names:
        for value in vars(importlib.import_module(name)).values():
            if isinstance(value, Dispatcher):
                found |= set(_reached(value, seen))
    found = {name for name in found if name.partition(".")[0] == "harness"}
    assert len(found) > 40
    assert found <= covered.keys()


def test_a_constant_of_a_kernel_is_of_a_module_in_the_digest() -> None:
    """Constants carry no name of their module: so all that a module with kernels imports by name is in the digest."""
    covered = reached_modules()
    for name in covered:
        for imported in ast.walk(ast.parse(covered[name].read_text(encoding="utf-8"))):
            if (
                isinstance(imported, ast.ImportFrom)
                and imported.col_offset == 0
                and (imported.module or "").startswith("harness")
            ):
                assert imported.module in covered, f"{name} imports {imported.module}"


def test_a_policys_kernels_are_kept_where_the_digest_says() -> None:
    # Without the simulator, too: numba's own folder knows of one file alone.
    code = (
        "from harness.policies import weights_kernel; from harness.base.machine_code import kept_in; print(kept_in())"
    )
    base = {key: value for key, value in os.environ.items() if key != "NUMBA_CACHE_DIR"}
    done = subprocess.run([sys.executable, "-c", code], env=base, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == folder_of({})


UPGRADED = """
import importlib.metadata, sys
known = importlib.metadata.version
importlib.metadata.version = lambda name: "99" if name == "numba" else known(name)
from harness.base import machine_code
from harness.sim import compiled
said = []
machine_code.announce_with(said.append)
compiled._compile_all = lambda scheduler: said.append(f"{scheduler} under the lock: {locked()}")

def locked():
    import fcntl
    with (machine_code.kept_in() / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return True
    return False

print(compiled.is_compiled())
words = compiled.compiling_words()
compiled.compile_engine()
compiled.compile_engine()
print(compiled.is_compiled(), said == [words, "fair under the lock: True"])
"""


def test_after_an_upgrade_the_engine_is_not_compiled_and_says_so(tmp_path: Path) -> None:
    compiled.compile_engine()
    env = {key: value for key, value in os.environ.items() if key != "NUMBA_CACHE_DIR"}
    copy = tmp_path / "harness"
    shutil.copytree(Path(harness.__file__).parent, copy, ignore=shutil.ignore_patterns("__pycache__"))
    done = subprocess.run(
        [sys.executable, "-c", UPGRADED], env=env, cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["False", "True", "True"]


@pytest.fixture
def news(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """What the user hears of the compiler."""
    said: list[str] = []
    monkeypatch.setattr(machine_code, "_announced", [])
    monkeypatch.setattr(machine_code, "_announce", [said.append])
    monkeypatch.setattr(compiled, "kept_in", lambda: tmp_path / "compiled-0")
    monkeypatch.setattr(compiled, "_following", [])
    return said


def test_users_hear_that_the_compiler_still_works_and_when_it_is_done(
    news: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A first run said one line, then nothing for minutes on a loaded machine."""
    began = time.monotonic()
    monkeypatch.setattr(compiled, "is_compiled", lambda _: time.monotonic() - began > 0.5)
    monkeypatch.setattr(compiled, "EVERY_S", 0.1)
    monkeypatch.setattr(compiled, "_SHORT_S", 0.1)
    compiled.announce_compiling(("fair", "capacity"))
    compiled.announce_compiling(("fair",))  # no second thread
    end = time.monotonic() + 60
    while not any(line.startswith("the simulator is compiled") for line in news) and time.monotonic() < end:
        time.sleep(0.05)
    assert news[0].startswith("compiling the simulator, once after an installation")
    assert news[1].startswith("still compiling the simulator: ")
    assert news[-1].startswith("the simulator is compiled, after ")


def test_the_estimate_is_the_last_duration(news: list[str], tmp_path: Path) -> None:
    assert "about three quarters of a minute" in compiled.compiling_words()
    (tmp_path / "compiled.seconds").write_text("104.6")
    assert "about 105 s, as last time" in compiled.compiling_words()


def test_waiting_for_the_compiler_counts_as_no_simulation(
    news: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """`672 s simulated in 357.9 s`, of which the compiler took 357."""
    (tmp_path / "compiled-0").mkdir()
    monkeypatch.setattr(compiled, "_compile_all", lambda _: time.sleep(1.0))
    before = machine_code.waited_s()
    experiment = load_experiment("demo")
    (variant,) = variants_of(experiment, policies=("fair",))
    directory = RunDirectory(tmp_path / "run", variant.identity())
    began = time.perf_counter()
    outcome = experiment.kind.run_one(experiment, variant, directory)
    took = time.perf_counter() - began
    assert machine_code.waited_s() - before >= 1.0
    assert outcome.summary["wall_s"] <= took - 1.0
