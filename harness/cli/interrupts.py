"""Ends a command in order when a signal interrupts it, even if the exception of the signal is lost."""

from __future__ import annotations

import signal
import sys
import threading
from types import FrameType, TracebackType
from typing import Any


class Interruption:
    """Lets Ctrl-C, SIGTERM (a time limit) and SIGHUP (a closed terminal) end the command inside the context.

    Each of them raises KeyboardInterrupt in the main thread. What the command started is stopped, and its measurements
    are kept. Of SIGTERM and SIGHUP only the first one counts: `timeout` sends two, and the second must not interrupt
    the clean-up. Commands with their own signal handlers (enforce, sim serve) replace these; a signal that is ignored
    (`nohup`) stays ignored.

    The exception of a signal can be lost. Python prints and drops one that is raised in the callback of a weak
    reference, and compiled code of a library can clear it, especially during the library's import. The command would
    then continue as if there had been no signal. Therefore a timer checks twice a second whether the exception is being
    handled, and raises it again if it is not. While pydantic builds a model, the exception waits, because the compiled
    part of that library would panic and print a page of output.

    Attributes
    ----------
    received
        Whether one of the signals has come.
    """

    #: Time between two checks, seconds.
    LOOK_S = 0.5
    #: Time until the next attempt if the exception could not be raised, seconds.
    SOON_S = 0.02

    def __init__(self) -> None:
        self.received = False
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Interruption:
        """Install the handlers; in another thread than the main one nothing can be installed."""
        if threading.current_thread() is threading.main_thread():
            raising = {signal.SIGINT: self._interrupt, signal.SIGTERM: self._terminate, signal.SIGHUP: self._terminate}
            for number, handler in raising.items():
                if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
                    self._before[number] = signal.signal(number, handler)
        if self._before:
            self._before[signal.SIGALRM] = signal.signal(signal.SIGALRM, self._look)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Restore the handlers."""
        if self._before:
            signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._before.clear()

    def _interrupt(self, _: int, frame: FrameType | None) -> None:
        self.received = True
        self._raise(frame)

    def _terminate(self, signalled: int, frame: FrameType | None) -> None:
        for number in (signal.SIGTERM, signal.SIGHUP):
            if number in self._before:
                signal.signal(number, lambda *_: None)
        self._interrupt(signalled, frame)

    def _look(self, _: int, frame: FrameType | None) -> None:
        """Raise the exception again unless the interrupted code is handling it: in an `except`, `finally` or `with`."""
        handled = sys.exc_info()[1]
        while handled is not None:
            if isinstance(handled, KeyboardInterrupt):
                return
            handled = handled.__context__
        self._raise(frame)

    def _raise(self, frame: FrameType | None) -> None:
        panics = _calls_pydantic(frame)
        signal.setitimer(signal.ITIMER_REAL, self.SOON_S if panics else self.LOOK_S, self.LOOK_S)
        if not panics:
            raise KeyboardInterrupt


def _calls_pydantic(frame: FrameType | None) -> bool:
    """Return whether a function of pydantic is among the callers of a frame."""
    while frame is not None:
        if str(frame.f_globals.get("__name__", "")).partition(".")[0] == "pydantic":
            return True
        frame = frame.f_back
    return False
