"""Nothing of Google's trace disappears unsaid: tasks, machines and users that are not in the load are counted."""

from __future__ import annotations

from pathlib import Path

from harness.systems.qknober.experiment import load_trace
from harness.systems.qknober.google import NO_CAPACITY, NO_REQUEST, NO_USAGE, TOO_LARGE, USERS, Part

MACHINES = ["0,1,0,p,0.5,0.5", "0,2,0,p,1,1", "0,3,0,p,,"]
#: Job, task, user, and what it asks for of CPU, memory and disk.
TASKS = [
    ("11", "0", "ann", "0.1,0.05,0.0001"),
    ("12", "0", "bob", ",,"),
    ("13", "0", "bob", "0.4,1.5,0"),
    ("14", "0", "ann", "0.1,0.1,0"),
]


def write(folder: Path, table: str, lines: list[str]) -> None:
    (folder / table).mkdir()
    (folder / table / "part-00000-of-00001.csv").write_text("".join(f"{line}\n" for line in lines))


def test_what_is_left_out_is_counted_by_reason(tmp_path: Path) -> None:
    write(tmp_path, "machine_events", MACHINES)
    write(tmp_path, "task_events", [f"60,,{job},{task},,0,{user},0,1,{ask}," for job, task, user, ask in TASKS])
    used = [f"60,90,{job},{task},1" + ",0" * 15 for job, task, _, _ in TASKS[:3]]
    write(tmp_path, "task_usage", used)
    load = load_trace(tmp_path, 2, Part())
    assert len(load.user) == 1
    assert load.left_out == {NO_USAGE: 1, NO_REQUEST: 1, TOO_LARGE: 1, NO_CAPACITY: 1, USERS: 1}
