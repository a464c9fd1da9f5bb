"""A controller in virtual time sees figures as old as a ResourceManager's caches; when they are renewed."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from harness.control.virtual import VirtualDriver
from harness.control.virtual_figures import ShownEnds
from harness.experiments.resolve import Variant
from harness.predict.playing import simulate_phase
from harness.predict.replay import write_experiment
from harness.traces.recorded import read_trace
from tests.predict.loads import contended, recording


def test_ends_are_those_of_the_last_renewal_every_ten_seconds() -> None:
    def scheduler(ends: int) -> Any:
        return SimpleNamespace(S=SimpleNamespace(x={"ends": np.array([0, ends])}))

    shown = ShownEnds({"root.a": 1}, 4_000)
    shown.renew(scheduler(3), 3_999)
    assert (shown["root.a"], shown.next_ms) == (0, 4_000)
    shown.renew(scheduler(5), 4_000)
    shown.renew(scheduler(9), 13_999)
    assert (shown["root.a"], shown.next_ms) == (5, 14_000)
    shown.renew(scheduler(9), 31_000)
    assert (shown["root.a"], shown.next_ms) == (9, 34_000), "a beat of their own"


@pytest.mark.parametrize("asked_s", [0.0, 0.5])
def test_accounts_lie_behind_by_what_was_held_for_three_seconds_at_most_and_only_where_others_ask(
    asked_s: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[dict[str, tuple[float, float, float]]] = []
    shown = VirtualDriver._as_shown

    def seen(self: VirtualDriver, consumed: dict[str, Any], now_ms: int) -> dict[str, Any]:
        found = shown(self, consumed, now_ms)
        capacity = float(self.simulation._capacity().memory_mb)
        looks.append({path: (consumed[path][0], found[path][0], capacity) for path in consumed})
        return found

    monkeypatch.setattr(VirtualDriver, "_as_shown", seen)
    trace = recording(tmp_path, contended()[:8])
    experiment = write_experiment(read_trace(trace), tmp_path / "making")
    variant = Variant("own", "ltrf", "outside", {"horizon_s": 80.0}, 0, 5.0)
    simulate_phase(str(experiment), variant, 1, asked_s=asked_s)
    if not asked_s:
        assert looks == [], "every look of one who asks alone, less often than each 3 s, renews the figures"
        return
    behind = [exact - counted for look in looks for exact, counted, _ in look.values()]
    assert min(behind) >= 0
    # 3 s until a figure may be renewed, and half a second until somebody asks.
    assert 0 < max(behind) <= 3.5 * next(iter(looks[0].values()))[2]
    for path in looks[0]:
        counted = [look[path][1] for look in looks]
        assert counted == sorted(counted), "accounts never fall"
    last = looks[-1]
    assert any(exact - counted < 1 for exact, counted, _ in last.values())
