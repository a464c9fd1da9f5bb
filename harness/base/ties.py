"""Ties between processes: one that works for another ends with it, however that one ends.

The kernel sends the signal (prctl(2), PR_SET_PDEATHSIG), so the tie also holds when the other one is killed with
SIGKILL and can clean up nothing. The process that is tied has to make the tie itself. Its parent may have ended between
its start and that moment, so it also compares its parent with the process that started it.

Two properties of PR_SET_PDEATHSIG shape the callers: it is cleared by fork(2) but kept by execve(2), and it fires when
the *thread* ends that started the process, not when the whole parent does.

On systems other than Linux there is no such signal, and the functions do nothing.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Callable

_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None


def end_with(parent: int, number: signal.Signals = signal.SIGKILL) -> None:
    """Tie this process to its parent.

    Parameters
    ----------
    parent : the process id of the parent. If it has ended already, this process gets the signal at once.
    number : the signal that this process gets when the parent ends.
    """
    if _LIBC is None:
        return
    _LIBC.prctl(_PR_SET_PDEATHSIG, int(number), 0, 0, 0)
    if os.getppid() != parent:
        os.kill(os.getpid(), number)


def ending_with_us() -> Callable[[], None]:
    """Tie a program to this process, as its ``preexec_fn``: the program ends with this process.

    The thread that starts the program must live until the program has ended.
    """
    parent = os.getpid()
    return lambda: end_with(parent)
