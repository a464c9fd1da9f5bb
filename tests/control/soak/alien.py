"""Another cluster's ResourceManager, which answers for a while where a controller's own is expected."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.control.soak import capacities, edits
from tests.control.soak.capacity_rm import CapacityRm, Store
from tests.control.soak.clock import Agenda
from tests.control.soak.cluster import App, Cluster, Container
from tests.control.soak.rm import Rm, SharedFile
from tests.control.soak.violated import Violated

if TYPE_CHECKING:
    from collections.abc import Mapping

#: How long its applications have run, seconds.
_OLD_S = 300_000.0


class _Elsewhere(Agenda):
    """The true time, on whose agenda nothing of the other cluster is done."""

    def __init__(self, agenda: Agenda) -> None:
        self._true = agenda
        super().__init__()

    @property
    def now_s(self) -> float:  # type: ignore[override]
        return self._true.now_s

    @now_s.setter
    def now_s(self, _: float) -> None:
        pass


def _cluster(agenda: Agenda, rng: random.Random) -> Cluster:
    cluster = Cluster(_Elsewhere(agenda), rng, nodes=rng.randint(1, 5), period_s=1.0)
    begun_s = agenda.now_s - _OLD_S
    for number in range(rng.randint(2, 6)):
        name = f"application_1600000000000_{number:04d}"
        app = App(name, f"root.q{rng.randrange(3)}", begun_s, 2048, 100.0, rng.randint(0, 5))
        app.ended_mb_s, app.ended_vcore_s = rng.randrange(10**8, 10**10), rng.randrange(10**5, 10**7)
        app.takes(Container(1024, 1, 0, begun_s))
        cluster.apps[name] = cluster.by_id[name] = app
    return cluster


class Alien(Rm):
    """A Fair Scheduler's."""

    def __init__(self, agenda: Agenda, rng: random.Random) -> None:
        file = _text(SharedFile(Path("/dev/null"), lambda: agenda.now_s), edits.make(rng, ad_hoc=False))
        super().__init__("elsewhere", _cluster(agenda, rng), file)
        _begin(self)

    def refresh(self) -> None:
        """It reads its own file once more."""


class CapacityAlien(CapacityRm):
    """A Capacity Scheduler's, whose configuration is in its store. Who changes that is in the wrong cluster."""

    def __init__(self, agenda: Agenda, rng: random.Random) -> None:
        store = Store(Path("/dev/null"), lambda: agenda.now_s)
        store.begin(capacities.make(rng, "weight" if rng.random() < 0.5 else "percent"))
        super().__init__("elsewhere", _cluster(agenda, rng), store)
        _begin(self)

    def refresh(self) -> None:
        """It reads its own file once more."""

    def changed(self, body: Mapping[str, Any]) -> bool:
        raise Violated(f"a controller changes the capacities of another cluster: {body}")


def alien(agenda: Agenda, rng: random.Random, *, capacity: bool) -> Rm:
    """Another cluster's ResourceManager, with that scheduler."""
    make: Callable[[Agenda, random.Random], Rm] = CapacityAlien if capacity else Alien
    return make(agenda, rng)


def _begin(rm: Rm) -> None:
    rm.nodes_named, rm.site = "other", {"yarn.resourcemanager.cluster-id": "another"}
    rm.started_ms = rm._ms(rm.cluster.agenda.now_s - _OLD_S)
    rm.load()


def _text(file: SharedFile, data: bytes) -> SharedFile:
    file.read = lambda: data  # type: ignore[method-assign]
    return file
