"""A real `enforce` process, killed or stopped at moments of its own: what it leaves behind."""

from __future__ import annotations

import random
import signal
import time
from collections.abc import Callable

from tests.cluster.enforcing import Service, until


def ends(
    service: Service, count: int, seed: int, *, given: Callable[[], bool], ratio: Callable[[], float], bound: float
) -> None:
    """So many processes, each killed or stopped: while it begins, writes, or gives back.

    ``given``: whether all stands as the administrator had it. ``ratio``: by how much what stands there now differs from
    that, at most ``bound``.
    """
    rng, found = random.Random(seed), []
    for turn in range(count):
        service.start()
        assert service.process is not None
        if turn % 2 == 0:
            written = len(service.events("weights"))
            until(lambda: len(service.events("weights")) > written, "it writes", every_s=0.02)  # noqa: B023
        time.sleep(rng.uniform(0.0, 1.0))
        begun = len(service.events("begin")) > service._begun
        if turn % 3 == 2:
            service.process.send_signal(signal.SIGTERM)
            if rng.random() < 0.5:
                time.sleep(rng.uniform(0.0, 0.1))
                service.kill()  # in the middle of giving back
            elif service.process.wait(timeout=300) == 0 and begun:
                assert given()
        else:
            service.kill()
        found.append(ratio())
        assert found[-1] <= bound * 1.001
    service.start()
    service.stop()
    assert given()
    assert max(found) > 1.0, "some were killed with weights in force"
