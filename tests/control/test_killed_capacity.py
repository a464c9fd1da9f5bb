"""A real `enforce` process, killed or stopped at any moment, on a served Capacity Scheduler: what it leaves behind.

Either the administrator's capacities as they stood, or capacities within `max_ratio` of them; in the store and in the
file.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from harness.yarn.capacity.source import FileSource, StoreSource
from harness.yarn.files import LocalStore
from tests.cluster.enforcing import Service
from tests.cluster.test_live_capacity import MENDED, ORIGINAL, Rm, simulated
from tests.control.killing import ends

pytestmark = pytest.mark.xdist_group("capacity")
MAX_RATIO = 3.0
SIBLINGS = (("root.a", "root.b", "root.g"), ("root.g.x", "root.g.y"))


@dataclass
class Kept:
    """An RM without traps, and where its capacities are kept."""

    rm: Rm
    source: StoreSource | FileSource

    def config(self) -> dict[str, str]:
        return {"capacity_file": str(self.rm.file)} if isinstance(self.source, FileSource) else {}

    def stands(self) -> object:
        """What the administrator has: the file's bytes, or the store's properties."""
        now = self.source.read()
        return now.mark if isinstance(self.source, FileSource) else dict(now.values)

    def ratio(self) -> float:
        """By how much the capacities against the administrator's differ among siblings: 1 for the administrator's."""
        now, worst = self.rm.settings(), 1.0
        for siblings in SIBLINGS:
            ratios = [(now[path] or 0.0) / ORIGINAL[path] for path in siblings]
            worst = max(worst, max(ratios) / min(ratios))
        return worst


@pytest.fixture(params=["store", "file"])
def kept(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Kept]:
    with_store = request.param == "store"
    served = simulated(tmp_path, **({"yarn.scheduler.configuration.store.class": "memory"} if with_store else {}))
    rm = next(served)
    try:
        source = StoreSource(rm.client.rest.http) if with_store else FileSource(LocalStore(rm.file))
        source.write(MENDED, source.read())
        if not with_store:
            source.load(rm.client)
        yield Kept(rm, source)
    finally:
        served.close()


def killed(kept: Kept, count: int, seed: int) -> None:
    how = {"mode": "bounded", "max_ratio": MAX_RATIO, "period_s": 0.2, "lease_s": 1.0, **kept.config()}
    at = kept.rm.client.rms[0]
    where = {"rest": at.rest, "admin": str(at.admin), "client": str(at.client)}
    service = Service(kept.rm.folder / "killed", None, None, rms=[where], **how)
    before, ids = kept.stands(), kept.rm.submit("root.b", 8, 600)
    try:
        ends(service, count, seed, given=lambda: kept.stands() == before, ratio=kept.ratio, bound=MAX_RATIO)
    finally:
        service.end()
        for app in ids:
            kept.rm.client.rest.kill(app)


def test_killed_and_stopped_at_some_moments(kept: Kept) -> None:
    killed(kept, 4, seed=1)


@pytest.mark.long
def test_killed_and_stopped_at_fifty_moments(kept: Kept) -> None:
    killed(kept, 50, seed=2)
