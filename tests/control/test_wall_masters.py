"""Applications that are a master and nothing else (uber jobs, launchers): which weights `horizon_s: auto` makes."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.policies.longterm import HORIZON_TASKS
from tests.control.driven import controlled
from tests.control.rm_model import MemoryPlace, RmModel

FILE = b"""<allocations>
  <queue name="a"><weight>2</weight></queue>
  <queue name="b"/>
  <queue name="c"/>
</allocations>
"""
DUE = {"root.a": 0.5, "root.b": 0.25, "root.c": 0.25}
LENGTH_S = (5.0, 15.0)
MEAN_S = sum(LENGTH_S) / 2
#: As many as are there at once.
MASTERS = 60
LOOKS, JOIN, AGAIN = 100, 30, 71
#: At these looks it is known how long they are. Until then a horizon may be too long, which moves weights less.
LEARNT = (*range(60, AGAIN), *range(90, LOOKS))


class Masters:
    """Queue a works alone, then b and c come too; each always waits for more than there is."""

    def __init__(self, seed: int) -> None:
        self.rm, self._rng, self._given = RmModel(MemoryPlace(FILE)), random.Random(seed), 0
        self.rm.counts = True
        self._until: dict[str, float] = {}
        self._queues = ["root.a"]
        self._wait()

    def _wait(self) -> None:
        for queue in self._queues:
            self.rm.submit(f"waits-{queue}", queue).pending = 5

    def join(self) -> None:
        self._queues = ["root.b", "root.c"]
        self._wait()
        self._queues.append("root.a")

    def second(self) -> None:
        self.rm.now_s += 1.0
        for app in [app for app, end_s in self._until.items() if end_s <= self.rm.now_s]:
            self.rm.finish(app)
            del self._until[app]
        while len(self._until) < MASTERS:
            self._given += 1
            app = f"master-{self._given}"
            self.rm.submit(app, self._rng.choice(self._queues))
            self.rm.start(app)
            self._until[app] = self.rm.now_s + self._rng.uniform(*LENGTH_S)


def parts(folder: Path, horizon_s: str, seed: int, between: Callable[[Masters], None]) -> list[dict[str, float]]:
    """The weights of each look, as parts of their sum; of two controllers, the second one goes on."""
    masters, found = Masters(seed), []
    folder.mkdir()
    between(masters)
    for looks in (range(AGAIN), range(AGAIN, LOOKS)):
        with controlled(masters.rm, folder, sets={"horizon_s": horizon_s}, read_back=False) as controller:
            for look in looks:
                if look == JOIN:
                    masters.join()
                for _ in range(5):
                    masters.second()
                report = controller.tick()
                assert not report.alarms
                weights = dict(controller.core.written.weights) if controller.core.written else {}
                found.append({queue: weight / sum(weights.values()) for queue, weight in weights.items()})
    return found


def in_step(_: Masters) -> None:
    """What ends, ends between two looks."""


def apart(masters: Masters) -> None:
    """The list of applications takes the RM two seconds, in which masters end that it shows as running."""
    rm = masters.rm
    whole = rm._apps

    def slowly(**asked: object) -> object:
        answer = whole(**asked)  # type: ignore[arg-type]
        masters.second()
        masters.second()
        return answer

    rm.rest.apps = slowly


def old(masters: Masters) -> None:
    """Counts of containers are up to ten seconds old, as Hadoop's are."""
    masters.rm.counts_every_s = 10.0


@pytest.mark.parametrize("between", [in_step, apart, old])
def test_masters_alone_make_a_horizon_of_their_own_length(tmp_path: Path, between: Callable[[Masters], None]) -> None:
    known = parts(tmp_path / "known", str(HORIZON_TASKS * MEAN_S), 7, between)
    found = parts(tmp_path / "auto", "auto", 7, between)
    for look, (one, other) in enumerate(zip(known, found, strict=True)):
        for queue, due in DUE.items():
            assert abs(other[queue] - due) <= abs(one[queue] - due) + 0.05, (look, one, other)
            assert look not in LEARNT or other[queue] == pytest.approx(one[queue], abs=0.04), (look, one, other)
