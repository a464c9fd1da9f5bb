"""Time limits that hold on a machine that is busy with other things."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

STEP_S = 0.02


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """Fails when what is inside takes longer, apart from the time for which this machine let a sleeper oversleep."""
    done, overslept_s = threading.Event(), [0.0]

    def sleeper() -> None:
        while not done.is_set():
            before_s = time.monotonic()
            done.wait(STEP_S)
            overslept_s[0] += max(time.monotonic() - before_s - STEP_S, 0.0)

    thread = threading.Thread(target=sleeper, daemon=True)
    thread.start()
    start_s = time.monotonic()
    try:
        yield
    finally:
        took_s = time.monotonic() - start_s
        done.set()
        thread.join()
    # What is inside has several turns (ours, the server's): each may come as late as the sleeper.
    allowed_s = seconds + 3 * overslept_s[0]
    assert took_s < allowed_s, (
        f"it took {took_s:.2f} s, at most {seconds:g} s (sleepers overslept {overslept_s[0]:.2f} s)"
    )
