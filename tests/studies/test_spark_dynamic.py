"""The study of dynamic allocation: a real log, held against the simulator's run of it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from studies.spark_dynamic import phase_of, stage_ends_ms, summary

RECORDED = Path(__file__).parents[1] / "traces" / "recorded" / "spark"
APP = "application_1795893603464_0001"
#: What the ResourceManager said of the recorded application.
STARTED_MS, LAUNCHED_MS, FINISHED_MS, MEMORY_SECONDS = 1795893608226, 1795893610120, 1795893721544, 231279


def test_a_recorded_application_is_compared_with_its_run(tmp_path: Path) -> None:
    """It had two executors, one from the start: the simulator comes near to its end, and to its memory less near.

    The two applications beside which it really ran are not here.
    """
    folder = tmp_path / "phase-0"
    folder.mkdir()
    shutil.copy(RECORDED / f"{APP}_1", folder)
    said = {
        "app": APP,
        "started_ms": STARTED_MS,
        "launched_ms": LAUNCHED_MS,
        "finished_ms": FINISHED_MS,
        "memory_seconds": MEMORY_SECONDS,
    }
    (folder / "apps.json").write_text(json.dumps([said]))
    ends = stage_ends_ms(folder)
    assert [name for _, name in ends] == ["0", "1", "2"]
    assert sorted(ends.values()) == list(ends.values())
    (found,) = phase_of(folder, 0)
    assert found.completion_s == (FINISHED_MS - STARTED_MS) / 1000
    assert len(found.stage_errors) == 3
    figures = summary([found])
    assert figures["completion_error"]["largest"] < 0.15
    assert figures["memory_error"]["largest"] < 0.3
    (held,) = phase_of(folder, 0, fixed=True)
    assert held.simulated_s < found.simulated_s, "with both executors from the start it would have ended sooner"
