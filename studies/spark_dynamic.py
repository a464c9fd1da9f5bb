"""How near the simulator's dynamic allocation comes to Spark's own, for docs/figures.md.

    python -m studies.spark_dynamic_real FOLDER --phases 20
    python -m studies.spark_dynamic FOLDER --command "..." -o docs/records/spark-dynamic.json

Each phase's event logs are read as `assess` reads them. What the logs do not say, when YARN took an application, is the
ResourceManager's own figure. The applications of a phase are simulated together, with their tasks' times and their
settings and nothing of their executors or ends, and compared with what happened. Nothing is measured here.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from harness.model.jobs import NodeSpec
from harness.sim.setup import Delays, SimResult, SimSetup
from harness.sim.simulate import simulate
from harness.traces.formats.base import TimedJob
from harness.traces.formats.event_logs import lines_of, log_of
from harness.traces.formats.spark import SparkEventLog
from harness.yarn.fair.parse import parse_allocations
from studies.result import in_one_line, write
from studies.spark_dynamic_real import NODE_MB, NODE_VCORES, NODES, QUEUES

_DIGITS = 4
#: As the study's cluster was brought up.
CONF = {"yarn.scheduler.increment-allocation-mb": "256", "yarn.scheduler.minimum-allocation-mb": "256"}


@dataclass(frozen=True)
class Compared:
    """One application, as it was and as it was played."""

    phase: int
    app: str
    completion_s: float
    simulated_s: float
    memory_mb_s: float
    simulated_mb_s: float
    stage_errors: tuple[float, ...]

    def document(self) -> dict[str, Any]:
        """Return its figures for the record."""
        return {
            "phase": self.phase,
            "app": self.app,
            "completion_s": round(self.completion_s, 1),
            "simulated_s": round(self.simulated_s, 1),
            "memory_gb_s": round(self.memory_mb_s / 1024, 1),
            "simulated_gb_s": round(self.simulated_mb_s / 1024, 1),
            "stage_end_error": [round(one, _DIGITS) for one in self.stage_errors],
        }


def placed(job: TimedJob, said: dict[str, Any], zero_ms: int) -> TimedJob:
    """A job with the times of its submission and of its master as the ResourceManager and the log have them."""
    line = job.line
    assert line.am_start_s is not None
    asked_ms = job.submitted_ms + 1000 * line.am_start_s
    # What the master's container waited for is the scheduler's: on this cluster a heartbeat of a node.
    start_s = max(asked_ms - said["launched_ms"], 0) / 1000
    moved = line.model_copy(
        update={
            "submit_s": (said["started_ms"] - zero_ms) / 1000,
            "am_start_s": round(start_s, 3),
            "am_end_s": round(line.am_end_s + max(said["finished_ms"] - _ended_ms(job), 0) / 1000, 3),
        }
    )
    return replace(job, line=moved)


def _ended_ms(job: TimedJob) -> float:
    return job.submitted_ms + 1000 * (job.line.finished_s or 0.0)


def stage_ends_ms(folder: Path) -> dict[tuple[str, str], int]:
    """When each stage's last task had ended, by application and the stage's name in a trace."""
    found: dict[tuple[str, str], int] = {}
    for path in sorted(folder.iterdir()):
        if path.name == "apps.json" or path.name.startswith("."):
            continue
        app = ""
        ends: dict[str, int] = {}
        for part in log_of(path).files:
            for line in lines_of(part):
                event = json.loads(line or b"{}")
                if event.get("Event") == "SparkListenerApplicationStart":
                    app = event["App ID"]
                elif event.get("Event") == "SparkListenerTaskEnd":
                    attempt = event["Stage Attempt ID"]
                    name = f"{event['Stage ID']}.{attempt}" if attempt else str(event["Stage ID"])
                    ends[name] = max(ends.get(name, 0), event["Task Info"]["Finish Time"])
        found.update({(app, name): at for name, at in ends.items()})
    return found


def played(jobs: list[TimedJob]) -> SimResult:
    """The applications on the cluster of the study."""
    queues = "".join(f'<queue name="{name}"/>' for name in QUEUES)
    text = f"<allocations><queueMaxAMShareDefault>-1.0</queueMaxAMShareDefault>{queues}</allocations>"
    setup = SimSetup(
        nodes=tuple(NodeSpec(f"n{i}", NODE_MB, NODE_VCORES) for i in range(NODES)),
        allocations=parse_allocations(text),
        jobs=[job.line.spec() for job in jobs],
        conf=CONF,
        delays=Delays(am_response_heartbeats=0, end_heartbeat_ms=20),
        record_tasks=True,
    )
    return simulate(setup)


def held_to_the_end(job: TimedJob) -> TimedJob:
    """A job with as many executors as it held at most, from its start to its end."""
    assert job.line.executors is not None
    executors = job.line.executors.model_copy(update={"dynamic": None})
    return replace(job, line=job.line.model_copy(update={"executors": executors}))


def phase_of(folder: Path, number: int, *, fixed: bool = False) -> list[Compared]:
    """One phase compared; `fixed`: played without dynamic allocation."""
    said = {one["app"]: one for one in json.loads((folder / "apps.json").read_text())}
    reading = SparkEventLog().read(folder)
    ends = stage_ends_ms(folder)
    zero_ms = min(one["started_ms"] for one in said.values())
    jobs = sorted((placed(job, said[job.line.job], zero_ms) for job in reading.jobs), key=lambda job: job.line.submit_s)
    result = played([held_to_the_end(job) for job in jobs] if fixed else jobs)
    assert result.tasks is not None
    row_of = {str(name): at for at, name in enumerate(result.jobs["id"])}
    found = []
    for job in jobs:
        line, of = job.line, said[job.line.job]
        assert line.executors is not None
        row = row_of[line.job]
        own = np.asarray(result.tasks["job"]) == row
        stage, end = np.asarray(result.tasks["stage"])[own], np.asarray(result.tasks["end_ms"])[own] / 1000
        took = (of["finished_ms"] - of["started_ms"]) / 1000
        names = [one.name for one in line.spec().stages]
        errors = [
            abs((end[stage == at].max() - line.submit_s) - (ends[line.job, name] - of["started_ms"]) / 1000) / took
            for at, name in enumerate(names)
            if (stage == at).any()
        ]
        found.append(
            Compared(
                number,
                line.job,
                took,
                float(result.jobs["finished_s"][row]) - line.submit_s,
                1.0 * of["memory_seconds"],
                float(result.jobs["memory_mb_s"][row]),
                tuple(errors),
            )
        )
    return found


def _errors(values: list[float]) -> dict[str, float]:
    ordered = sorted(values)
    return {
        "mean": round(statistics.fmean(ordered), _DIGITS),
        "median": round(statistics.median(ordered), _DIGITS),
        "p90": round(ordered[min(int(0.9 * len(ordered)), len(ordered) - 1)], _DIGITS),
        "largest": round(ordered[-1], _DIGITS),
    }


def summary(compared: Sequence[Compared]) -> dict[str, Any]:
    """Differences of applications, as parts of what really was."""
    total = sum(one.simulated_mb_s for one in compared) / sum(one.memory_mb_s for one in compared)
    return {
        "completion_error": _errors([abs(one.simulated_s - one.completion_s) / one.completion_s for one in compared]),
        "memory_error": _errors([abs(one.simulated_mb_s - one.memory_mb_s) / one.memory_mb_s for one in compared]),
        "stage_end_error": _errors([error for one in compared for error in one.stage_errors]),
        "memory_of_all": round(total, _DIGITS),
    }


@in_one_line("spark_dynamic")
def main(arguments: Sequence[str] | None = None) -> int:
    """Compare, and write the record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--command", default="")
    parser.add_argument("-o", "--output", type=Path)
    given = parser.parse_args(arguments)
    folders = sorted(given.folder.glob("phase-*"), key=lambda path: int(path.name.rpartition("-")[2]))
    folders = [path for path in folders if (path / "apps.json").exists()]
    compared, without = (
        [one for path in folders for one in phase_of(path, int(path.name.rpartition("-")[2]), fixed=fixed)]
        for fixed in (False, True)
    )
    values = {
        "phases": len({one.phase for one in compared}),
        "applications": len(compared),
        "dynamic": summary(compared),
        "held_to_the_end": summary(without),
        "compared": [one.document() for one in compared],
    }
    write(given.output, given.command, values)
    return 0


if __name__ == "__main__":
    sys.exit(main())
