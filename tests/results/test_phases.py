"""``phases.json``: figures of many phases as a summary's mean, least and greatest, and what differs pairwise."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harness.base.errors import InputError
from harness.results.phases import FILE, Phases, read_phases, span, write_phases


def summary(mean_s: float, jobs: int = 7, last_s: float | None = 5.0) -> dict[str, Any]:
    queue = {"jobs": jobs, "mean_completion_s": mean_s}
    return {
        "makespan_s": 2 * mean_s,
        "last_loss_s": last_s,
        "finished": True,
        "wall_s": 0.1,
        "queues": {"root.a": queue},
    }


def test_figures_come_back_as_means_with_what_they_lie_between(tmp_path: Path) -> None:
    write_phases(tmp_path, [summary(10.0), summary(20.0), summary(60.0)])
    found = read_phases(tmp_path)
    assert found is not None
    assert (found.count, found.mean["makespan_s"]) == (3, 60.0)
    assert found.mean["queues"]["root.a"] == {"jobs": 7, "mean_completion_s": 30.0}
    assert isinstance(found.mean["queues"]["root.a"]["jobs"], int), "a count stays one"
    assert found.span("queues", "root.a", "mean_completion_s") == (10.0, 60.0)
    assert "wall_s" not in found.mean, "the same seed gives the same bytes"
    assert "finished" not in found.mean


def test_what_some_phase_has_not_has_no_mean_and_no_band(tmp_path: Path) -> None:
    write_phases(tmp_path, [summary(10.0), summary(20.0, last_s=None)])
    found = read_phases(tmp_path)
    assert found is not None
    assert found.mean["last_loss_s"] is None
    assert found.span("last_loss_s") is found.span("queues", "root.b", "jobs") is span(None, "makespan_s") is None


def test_changes_are_taken_phase_by_phase() -> None:
    before = Phases(2, {"a": [10.0, 100.0], "none": [0.0, 1.0]})
    after = Phases(2, {"a": [9.0, 95.0], "none": [1.0, 1.0]})
    # The band of the figure itself is far wider: 9 to 95.
    assert after.changes(before, "a") == pytest.approx([-0.1, -0.05])
    assert after.changes(before, "none") is after.changes(before, "b") is after.changes(Phases(1, {"a": [1.0]}), "a")
    assert after.changes(before, "b") is None


@pytest.mark.parametrize(
    "text",
    ["", "[]", '{"phases": 2}', '{"phases": 2, "figures": {"a": [1]}}', '{"phases": 1, "figures": {"a": ["b"]}}'],
)
def test_a_damaged_file_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / FILE).write_text(text)
    with pytest.raises(InputError, match=r"phases\.json"):
        read_phases(tmp_path)
    assert read_phases(tmp_path / "none") is None
