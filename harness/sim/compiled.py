"""Compile all kernels that a run needs, once after an installation or a change of the engine.

One process compiles, and other processes that need the kernels wait for it (`compile_engine`). With a second core, a
second process does half of the work. `harness.base.machine_code` determines where the machine code is stored.
"""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.base.debug import Timer
from harness.base.errors import InputError
from harness.base.machine_code import announce, count_waiting, kept_in, somebody_listens

if TYPE_CHECKING:
    from harness.sim.interfaces import CompiledKernel

_LOG = logging.getLogger(__name__)

#: Interval between the messages that compilation is still running (seconds).
EVERY_S = 15.0
#: A shorter compilation ends without a message (seconds).
_SHORT_S = 5.0
#: The file beside the folders of machine code with the duration of the last compilation (seconds).
_TOOK = "compiled.seconds"


def compiling_words() -> str:
    """Return the message that users see when compilation begins."""
    about = "about three quarters of a minute on two free cores"
    folder = kept_in()
    if folder is not None:
        with contextlib.suppress(OSError, ValueError):
            about = f"about {float((folder.parent / _TOOK).read_text(encoding='ascii')):.0f} s, as last time"
    return f"compiling the simulator, once after an installation or a change of it: {about}"


def announce_compiling(schedulers: Iterable[str] = ("fair",)) -> None:
    """Tell the user when compilation of the simulator begins, continues and ends; do nothing if it is compiled.

    Parameters
    ----------
    schedulers
        Names of the schedulers on which the command will simulate.
    """
    missing = [scheduler for scheduler in schedulers if not is_compiled(scheduler)]
    if not missing or not _compiles() or not somebody_listens():
        return
    announce(compiling_words())
    # Without a folder for machine code, every process compiles for itself, and the end cannot be observed.
    if kept_in() is not None and not _following:
        _following.append(True)
        threading.Thread(target=_follow, args=(missing,), name="news of the compiler", daemon=True).start()


_following: list[bool] = []


def _follow(schedulers: Sequence[str]) -> None:
    began, told_s = time.monotonic(), EVERY_S
    while not all(map(is_compiled, schedulers)):
        time.sleep(min(0.2, EVERY_S))
        so_far = time.monotonic() - began
        if so_far >= told_s:
            announce(f"still compiling the simulator: {so_far:.0f} s so far")
            told_s += EVERY_S
    so_far = time.monotonic() - began
    _following.clear()
    if so_far >= _SHORT_S:
        announce(f"the simulator is compiled, after {so_far:.0f} s")


def _compiles() -> bool:
    return os.environ.get("NUMBA_DISABLE_JIT", "0") in ("", "0")


def kernels_of(scheduler: str, which: int) -> tuple[CompiledKernel, ...]:
    """Return the kernels of one part of what a run on a scheduler calls.

    Parts 0 and 1 are halves that have little in common; part 2 is the rest, which needs kernels of both halves. Each
    kernel is stored on disk as soon as it is compiled, so one half can load what the other half has finished.
    """
    from harness.sim import apps, events, loop, nodes
    from harness.sim.interfaces import CompiledKernel, simulated

    own = simulated(scheduler)
    if which == 0:
        return (
            CompiledKernel(nodes.heartbeat, ("state", "int", "int")),
            CompiledKernel(loop.beat, ("state", "world", "int", "int")),
            CompiledKernel(loop.happens, ("state", "world", "int", "int")),
            CompiledKernel(loop.run, ("state", "world")),
        )
    if which == 1:
        return (
            CompiledKernel(apps.arrive, ("state", "world", "int", "int")),
            CompiledKernel(apps.act, ("state", "world", "int", "int")),
            *own.kernels,
            CompiledKernel(own.look_at, ("int", "int", "int table", "real table", "int"), from_python=True),
            CompiledKernel(loop.take_sample, ("state", "world", "int"), from_python=True),
            CompiledKernel(events.push, ("world", "int", "int", "int", "int"), from_python=True),
        )
    return (CompiledKernel(own.run_at, ("int", "int"), from_python=True),)


def compile_part(scheduler: str, which: int) -> None:
    """Compile one part (0, 1 or 2) of what a run on a scheduler needs (`kernels_of`)."""
    from numba.core import types

    from harness.sim.interfaces import simulated
    from harness.sim.world import World

    kinds: dict[str, Any] = {
        "state": simulated(scheduler).state.compiled_type(),
        "world": World.compiled_type(),
        "int": types.int64,
        "int table": types.Array(types.int64, 2, "C"),
        "real table": types.Array(types.float64, 2, "C"),
    }
    for one in kernels_of(scheduler, which):
        wanted = one.kernel if one.from_python else getattr(one.kernel, "part", one.kernel)
        wanted.compile(tuple(kinds[kind] for kind in one.arguments))


def _compile_all(scheduler: str) -> None:
    """Compile all parts, two at a time where there are cores for it.

    Each part is compiled in a separate process: Python handles a signal (Ctrl-C, a time limit) only between two steps
    of the compiler, which may take many seconds.
    """
    waves = ((0, 1), (2,)) if len(os.sched_getaffinity(0)) > 1 else ((0,), (1,), (2,))
    for wave in waves:
        programs = [_compile_elsewhere(scheduler, part) for part in wave]
        try:
            for program in programs:
                if program is not None:
                    program.wait()
        except BaseException:
            for program in programs:
                if program is not None:
                    program.kill()
                    program.wait()
            raise
        for part, program in zip(wave, programs, strict=True):
            if program is None or program.returncode != 0:
                code = None if program is None else program.returncode
                _LOG.debug("part %s of %s: the program that compiles it gave %s; compiled here", part, scheduler, code)
                compile_part(scheduler, part)


def _compile_elsewhere(scheduler: str, part: int) -> subprocess.Popen[bytes] | None:
    """Start a process that compiles one part and ends with this process; return None where none can be started."""
    code = (
        f"from harness.base.ties import end_with; end_with({os.getpid()});"
        f"from harness.sim.compiled import compile_part; compile_part({scheduler!r}, {part})"
    )
    quiet = subprocess.DEVNULL
    with contextlib.suppress(OSError):
        return subprocess.Popen([sys.executable, "-c", code], stdin=quiet, stdout=quiet, stderr=quiet)
    return None


def once(folder: Path, work: Callable[[], None], mark: str = "whole") -> bool:
    """Do some work once per folder; other processes wait for it. Return whether this process did the work."""
    done = folder / mark
    if done.exists():
        return False
    try:
        with (folder / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if done.exists():
                return False
            work()
            done.touch()
            return True
    except OSError:
        return False  # nothing can be stored here: each process compiles what it needs


def _mark(scheduler: str) -> str:
    """Return the name of the file that marks a scheduler's engine as compiled."""
    return f"whole-{scheduler}"


def is_compiled(scheduler: str = "fair") -> bool:
    """Return whether everything that a run needs is compiled already."""
    folder = kept_in()
    return folder is not None and (folder / _mark(scheduler)).exists()


def compile_engine(scheduler: str = "fair") -> None:
    """Compile all kernels that a run needs, unless this has been done; wait if another process is compiling them.

    The user is told if something has to be compiled or waited for (`harness.base.machine_code.announce_with`). The time
    is counted in `harness.base.machine_code.waited_s`, not as time of the simulation.

    Raises
    ------
    InputError
        Compilation is switched off. Only decision scripts (``yarnfair decide``) can be played without it.
    """
    folder = kept_in()
    if not _compiles():
        raise InputError(
            "a simulated run needs compiled code",
            where="NUMBA_DISABLE_JIT in the environment",
            hint="unset it; of the simulator only `yarnfair decide` works without, for debugging",
        )
    announce_compiling((scheduler,))
    if folder is None or is_compiled(scheduler):
        return
    timer, began = Timer(), time.perf_counter()
    try:
        if once(folder, lambda: _compile_all(scheduler), _mark(scheduler)):
            _LOG.debug("compiled the engine of the %s scheduler in %s into %s", scheduler, timer, folder)
            with contextlib.suppress(OSError):
                (folder.parent / _TOOK).write_text(f"{time.perf_counter() - began:.1f}", encoding="ascii")
    finally:
        count_waiting(time.perf_counter() - began)
