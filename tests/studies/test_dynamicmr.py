"""Chapter 4's study: the loads that it makes, and two of its findings."""

from __future__ import annotations

from harness.experiments.resolve import load_experiment
from studies.dynamicmr import alone, play, several


def test_the_study_s_loads_and_two_of_its_findings() -> None:
    """Sort alone: DHSA does not care how slots are configured, static slots do (Fig. 4.10)."""
    loaded = load_experiment("dynamicmr-slots")
    assert [job.name for job in several(loaded, 11, 1)][-2:] == ["WordCount", "Sort"]
    assert len({job.id for job in several(loaded, 20, 1)}) == 20
    sort = alone(loaded, "Sort", 1)
    static = [play(loaded, sort, "pi-dhsa", 1, map_slots=maps, mode="static").makespan_ms for maps in (2, 6, 11)]
    lent = [play(loaded, sort, "pi-dhsa", 1, map_slots=maps).makespan_ms for maps in (2, 6, 11)]
    assert max(static) > 2 * min(static)
    assert max(lent) < 1.02 * min(lent)
    assert max(lent) < min(static)
