"""What tests of campaigns share: a small experiment, a campaign of it, the command, an executor that plays a script."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from harness.cli import main
from harness.experiments.campaign.executors import ExecutorEvent
from harness.experiments.campaign.spec import Cell
from harness.experiments.resolve import LoadedExperiment
from harness.results.store import RunDirectory

TASK = {"demand": {"memory_mb": 1024}, "duration": {"lognormal": {"mean_s": 8, "sigma": 0.5}}}
EXPERIMENT: dict[str, Any] = {
    "experiment": "tiny",
    "cluster": {"nodes": [{"count": 2, "memory_mb": 4096, "vcores": 8}]},
    "queues": {"a": {}, "b": {}},
    "max_am_share": -1.0,
    "workloads": {
        name: {"inline": {
            "kind": "bins",
            "am": {"memory_mb": 1024},
            "arrivals": {"mean_gap_s": 10},
            "map": TASK,
            "reduce": TASK,
            "bins": [{"type": "few", "maps": 3, "jobs": 3}],
        }}
        for name in ("a", "b")
    },
    "policies": ["static", "fair", "ltrf"],
    "limits": {"time_limit_s": 5000},
}  # fmt: skip
CAMPAIGN: dict[str, Any] = {"campaign": "c", "experiments": ["tiny.yaml"], "seeds": [1, 2]}


def call(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    capsys.readouterr()
    with pytest.raises(SystemExit) as caught:
        main(["campaign", *map(str, arguments)])
    printed = capsys.readouterr()
    assert isinstance(caught.value.code, int)
    return caught.value.code, printed.out, printed.err


class Clock:
    """The time of a campaign that passes only while it waits for its executor, however busy the machine is."""

    def __init__(self) -> None:
        self.now_s = 1000.0

    def monotonic(self) -> float:
        return self.now_s

    perf_counter = monotonic


@dataclass
class Scripted:
    """An executor that does what the script says of each attempt of a cell (by variant), without running anything."""

    script: dict[str, list[ExecutorEvent]]
    out: Path
    room: int = 3
    queues: bool = False
    running: dict[str, Cell] = field(default_factory=dict)
    log: list[str] = field(default_factory=list)
    together: list[list[str]] = field(default_factory=list)
    hang: set[str] = field(default_factory=set)
    clock: Clock | None = None

    def start(self, cell: Cell, experiment: LoadedExperiment, out: Path) -> None:
        self.log.append(cell.variant.name)
        self.running[cell.id] = cell
        self.together.append(sorted(one.variant.name for one in self.running.values()))

    def told(self, timeout_s: float) -> list[ExecutorEvent]:
        for id_, cell in list(self.running.items()):
            if cell.variant.name in self.hang:
                continue
            del self.running[id_]
            script = self.script.get(cell.variant.name, [])
            said = script.pop(0) if script else ExecutorEvent("", "end", exit_code=0, wall_s=1.0)
            if said.kind == "end":
                directory = RunDirectory(cell.directory(self.out), {"seed": 1})
                directory.write_summary({"queues": {}})
                RunDirectory.close(directory.path, said.exit_code)
            return [ExecutorEvent(id_, said.kind, None, said.exit_code, said.why, said.wall_s, said.passing)]
        if self.clock is None:
            time.sleep(min(timeout_s, 0.02))
        else:
            self.clock.now_s += timeout_s
        return []

    def kill(self, id_: str) -> None:
        self.log.append("killed")
        self.hang.discard(self.running.pop(id_).variant.name)

    def close(self) -> None:
        self.log.append("closed")
