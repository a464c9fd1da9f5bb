"""Each kind of store of a real Capacity Scheduler's configuration, written again and again, and where one hangs.

Ten thousand writes each: ``python -m studies.store_writes``.
"""

from __future__ import annotations

import pytest

from studies.store_writes import KINDS, run

pytestmark = [pytest.mark.live, pytest.mark.java, pytest.mark.xdist_group("live-stores")]


@pytest.mark.parametrize("kind", KINDS)
def test_a_hundred_writes_with_another_writer_between_lose_nothing(kind: str) -> None:
    found = run(kind, 100, every=10)
    other = found["changes_by_the_other"]
    assert (found["lost"], found["undone"]) == (0, 0), found["examples"]
    assert other["made"] >= 5
    assert other["capacities_found"] >= (other["made"] - other["not_answered"]) // 2
    assert len(found["failovers_away_s"]) == (3 if kind == "zk" else 0)
