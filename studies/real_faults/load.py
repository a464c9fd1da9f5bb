"""Applications that come and go for as long as a run lasts: real containers that sleep, more than there is room for."""

from __future__ import annotations

import random
import threading
from dataclasses import dataclass

from harness.base.errors import YarnfairError
from harness.model.resources import Resource
from harness.yarn.answers import AppStatus
from harness.yarn.rest import RestClient, Submission

QUEUES = ("root.a", "root.b", "root.c")
#: What each queue has waiting or running, by phase: all contend, or one of them is away.
_PHASES = ((7, 6, 5), (9, 5, 2), (2, 8, 4), (8, 0, 6), (0, 8, 8), (3, 3, 9))
_PHASE_S = (90.0, 240.0)
_EVERY_S = 2.0


@dataclass
class Used:
    """What an RM has shown of one application: what last, and the most ever."""

    queue: str
    memory_mb_s: int = 0
    most_mb_s: int = 0
    final: bool = False


class Load:
    """Submits by itself between `begin` and `end`. Whatever the RM answers, it goes on."""

    def __init__(self, client: RestClient, seed: int, known: dict[str, Used]) -> None:
        self._client, self._rng = client, random.Random(seed)
        self.known = known
        self._wanted = _PHASES[0]
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def begin(self) -> None:
        """Submits from now on."""
        self._thread.start()

    def end(self) -> None:
        """Submits nothing more."""
        self._stop.set()
        self._thread.join(timeout=60)

    def look(self, *, everything: bool = False) -> list[AppStatus]:
        """The applications that live (or all that the RM retains), which are remembered. YarnfairError."""
        apps = self._client.apps() if everything else self._client.apps(states=("ACCEPTED", "RUNNING"))
        for app in apps:
            used = self.known.setdefault(app.id, Used(app.queue))
            used.memory_mb_s, used.final = app.memory_seconds, app.final
            used.most_mb_s = max(used.most_mb_s, app.memory_seconds)
        return list(apps)

    def kill_all(self) -> bool:
        """Ends what lives; True once there is nothing."""
        live = [app for app in self.look(everything=True) if not app.final]
        self._client.kill_all(live, timeout_s=5.0)
        return not live

    def used(self) -> dict[str, tuple[int, int]]:
        """Queue -> MiB-seconds by the figures that the RM showed last, and by the most that it has ever shown."""
        sums = dict.fromkeys(QUEUES, (0, 0))
        for app in self.known.values():
            last, most = sums.get(app.queue, (0, 0))
            sums[app.queue] = (last + app.memory_mb_s, most + app.most_mb_s)
        return sums

    def _run(self) -> None:
        left_s = 0.0
        while not self._stop.wait(_EVERY_S):
            left_s -= _EVERY_S
            if left_s <= 0:
                left_s, self._wanted = self._rng.uniform(*_PHASE_S), self._rng.choice(_PHASES)
            try:
                live = [app.queue for app in self.look()]
                for queue, wanted in zip(QUEUES, self._wanted, strict=True):
                    if live.count(queue) < wanted:
                        self._client.submit(self._one(queue))
            except YarnfairError:
                continue

    def _one(self, queue: str) -> Submission:
        length_s = self._rng.uniform(30.0, 150.0)
        size = Resource(self._rng.choice((256, 512)), 1)
        return Submission("sleep", queue, f"sleep {length_s:.1f}", size)
