"""The runs of `studies.mapreduce_real` as the studies of them read them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.jobs.engines.attempts import Attempt
from harness.jobs.mapreduce.history import read_history
from studies.allocator_log import Held, MasterLog, read_containers, read_master_log

#: The steps in which the cluster's schedulers count memory.
CONF = {"yarn.scheduler.increment-allocation-mb": "256", "yarn.scheduler.minimum-allocation-mb": "256"}


@dataclass(frozen=True)
class Ran:
    """One job of a real run. ``held``: by container."""

    told: dict[str, Any]
    log: MasterLog
    held: dict[str, Held]
    attempts: tuple[Attempt, ...]

    @property
    def submitted_ms(self) -> int:
        """When it was submitted."""
        return int(self.told["submitted_ms"])

    @property
    def completion_s(self) -> float:
        """The time from its submission to its end."""
        return (int(self.told["finished_ms"]) - self.submitted_ms) / 1000

    def finished(self, kind: str) -> list[Attempt]:
        """The attempts of a kind that finished, by task."""
        return sorted((a for a in self.attempts if a.kind == kind and a.outcome == "finished"), key=_task)


def _task(attempt: Attempt) -> int:
    return int(attempt.task.rpartition("_")[2])


def read_run(folder: Path) -> tuple[dict[str, Any], list[Ran]]:
    """Return what is known of one run, and its jobs."""
    told = json.loads((folder / "run.json").read_text())
    jobs = []
    for at, job in enumerate(told["jobs"]):
        own = folder / f"job{at}"
        log, held = ((own / name).read_text(encoding="utf-8").splitlines() for name in ("master.log", "containers.log"))
        attempts = read_history((own / "history.jhist").read_text(encoding="utf-8").splitlines())
        jobs.append(Ran(job, read_master_log(log), read_containers(held), tuple(attempts)))
    return told, jobs
