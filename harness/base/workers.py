"""Worker processes: forks of a server, which imports what they need while this process continues.

None of them outlives the command. The kernel ends the server when the command ends in any way, and each worker when the
server ends (harness.base.ties). So a command that is killed with SIGKILL leaves nothing behind.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import forkserver, util
from multiprocessing.context import ForkServerContext, ForkServerProcess
from typing import Any

from harness.base import server_ties
from harness.base.ties import end_with

_WARM = "harness.experiments.campaign.warm"
_starting = threading.Lock()
#: Time to wait for a process that was killed, seconds.
_KILLED_S = 5.0


#: Whether workers do not import the program's main module.
_without_main = threading.local()


@contextmanager
def main_not_imported() -> Iterator[None]:
    """Start workers that do not import the program's main module, so that a script needs no guard around its calls.

    Whatever such workers carry out is defined in an importable module. Python would otherwise run the script once more
    in each worker, as ``__mp_main__``.
    """
    before = getattr(_without_main, "on", False)
    _without_main.on = True
    try:
        yield
    finally:
        _without_main.on = before


class _Process(ForkServerProcess):
    @staticmethod
    def _Popen(process_obj: Any) -> Any:
        if not getattr(_without_main, "on", False):
            return ForkServerProcess._Popen(process_obj)  # type: ignore[attr-defined]
        main = sys.modules["__main__"]
        spec, file = getattr(main, "__spec__", None), main.__dict__.pop("__file__", None)
        main.__spec__ = None
        try:
            return ForkServerProcess._Popen(process_obj)  # type: ignore[attr-defined]
        finally:
            main.__spec__ = spec
            if file is not None:
                main.__file__ = file


class _Context(ForkServerContext):
    Process = _Process  # type: ignore[assignment]


_CONTEXT = _Context()


def workers_context(*, simulating: bool = True) -> ForkServerContext:
    """Return the context with which worker processes are started; its server runs when this returns.

    Parameters
    ----------
    simulating : whether the server imports what simulations need. The first call in a process decides.

    Notes
    -----
    Workers inherit only environment variables from before the start of the server.
    """
    begin_server(simulating=simulating)
    return _CONTEXT


def begin_server(*, simulating: bool = True) -> None:
    """Start the server, unless it runs. Its imports then run in parallel to the first steps of the command."""
    with _starting:
        if _server_pid() is not None:
            return
        preloaded = [server_ties.__name__, *([_WARM] if simulating else [])]
        multiprocessing.get_context("forkserver").set_forkserver_preload(preloaded)
        if threading.current_thread() is threading.main_thread():
            _start()
            return
        # The kernel sends the signal when the thread that started the server ends.
        started = threading.Event()

        def start_and_stay() -> None:
            _start()
            started.set()
            threading.Event().wait()

        threading.Thread(target=start_and_stay, name="starter of workers", daemon=True).start()
        started.wait()


def _start() -> None:
    os.environ[server_ties.OWNER] = str(os.getpid())
    try:
        forkserver.ensure_running()
    finally:
        del os.environ[server_ties.OWNER]


def _server_pid() -> int | None:
    server: Any = forkserver._forkserver  # type: ignore[attr-defined]
    pid: int | None = server._forkserver_pid
    return pid


def end_in_order_with_parent(number: signal.Signals) -> None:
    """In a worker: get this signal, instead of SIGKILL, when the command or the server ends."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    if server_ties.server_pid is not None:
        end_with(server_ties.server_pid, number)
    if not parent.is_alive():
        os.kill(os.getpid(), number)


@contextmanager
def worker_pool(processes: int, *, simulating: bool = True) -> Iterator[ProcessPoolExecutor]:
    """Provide a pool of workers. If the context ends by an exception, running workers are killed.

    Parameters
    ----------
    processes : the number of workers.
    simulating : as for `workers_context`.
    """
    context = workers_context(simulating=simulating)
    pool = ProcessPoolExecutor(processes, mp_context=context, initializer=_ignore_interrupts)
    try:
        yield pool
    except BaseException:
        kill_pool(pool)
        raise
    pool.shutdown(cancel_futures=True)


def kill_pool(pool: ProcessPoolExecutor) -> None:
    """End a pool at once, with its running tasks."""
    # Public from Python 3.14 on (kill_workers). A worker that was just being started may not belong to the pool yet, so
    # all children that are not daemons are killed; children outside the pool are daemons.
    started = [process for process in multiprocessing.active_children() if not process.daemon]
    ending = [*(pool._processes or {}).values(), *started]
    for process in ending:
        process.kill()
    pool.shutdown(wait=False, cancel_futures=True)
    for process in ending:
        # A killed process only ends after the kernel has scheduled it once more.
        process.join(_KILLED_S)


def _ignore_interrupts() -> None:
    """Ignore Ctrl-C, which a terminal sends to all of its processes; the command itself ends its workers."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _end_server() -> None:
    server: Any = forkserver._forkserver  # type: ignore[attr-defined]
    if server._forkserver_pid is not None:
        # It may still be importing modules for a command that has already ended.
        os.kill(server._forkserver_pid, signal.SIGTERM)
        server._stop()


#: After the workers (multiprocessing ends them before what has a priority below 0), so that nothing outlives a command,
#: and what its workers used counts as the command's.
util.Finalize(None, _end_server, exitpriority=-1)
