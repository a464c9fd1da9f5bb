"""Processes that work beside this one: copies of a server, which imports what they need while this one goes on."""

from __future__ import annotations

import fcntl
import multiprocessing
import os
import signal
import sys
from multiprocessing import forkserver, util
from multiprocessing.context import ForkServerContext
from typing import Any

_WARM = "harness.experiments.campaign.warm"


def workers_context() -> ForkServerContext:
    """What processes are made with. Of what was there before the server began they have nothing but its variables."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([_WARM])
    return context


def begin_server() -> None:
    """Begins it before the first process is asked for."""
    workers_context()
    forkserver.ensure_running()


def end_with_parent(number: signal.Signals) -> None:
    """In a worker: the kernel sends it this signal when the process that asked for it ends, however that ends.

    That one is not the worker's parent to the kernel. It holds the other end of a pipe, whose closing is an input. On
    systems other than Linux workers end when they next look for work.
    """
    parent = multiprocessing.parent_process()
    assert parent is not None
    if sys.platform == "linux":
        pipe = parent.sentinel
        fcntl.fcntl(pipe, fcntl.F_SETOWN, os.getpid())
        fcntl.fcntl(pipe, fcntl.F_SETSIG, number)
        fcntl.fcntl(pipe, fcntl.F_SETFL, fcntl.fcntl(pipe, fcntl.F_GETFL) | os.O_ASYNC)
    if not parent.is_alive():
        os.kill(os.getpid(), number)


def _end_server() -> None:
    server: Any = forkserver._forkserver  # type: ignore[attr-defined]
    if server._forkserver_pid is not None:
        # It may import still, for a command that has ended with one line.
        os.kill(server._forkserver_pid, signal.SIGTERM)
        server._stop()


#: After the workers (multiprocessing ends them before what has a priority below 0), so that nothing outlives a command,
#: and what its workers used counts as the command's.
util.Finalize(None, _end_server, exitpriority=-1)
