"""Recordings for the tests: jobs on a small cluster, with the ends that a run in other phases gave them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from harness.experiments.resolve import Variant
from harness.predict.playing import simulate_phase
from harness.predict.replay import write_experiment
from harness.traces.recorded import Header, JobLine, NodeLine, QueueLine, StageLine, read_trace, trace_text
from harness.traces.spec import DemandSpec

#: A phase that no assessment plays.
OTHER_PHASE = 77


def job(name: str, queue: str, submit_s: float, tasks: int, task_s: float) -> JobLine:
    return JobLine(
        job=name,
        queue=queue,
        kind="dag",
        submit_s=submit_s,
        am=DemandSpec(memory_mb=1024, vcores=1),
        stages=[StageLine(name="all", memory_mb=1024, vcores=1, tasks_s=[task_s] * tasks)],
    )


def contended() -> list[JobLine]:
    """One queue asks for more than the cluster all the time, the other comes in bursts and waits."""
    steady = [job(f"steady-{n}", "root.steady", 60.0 * n, 130, 10.0) for n in range(20)]
    bursts = [job(f"burst-{n}", "root.bursts", 300.0 + 200.0 * n, 90, 10.0) for n in range(6)]
    return [*steady, *bursts]


def quiet() -> list[JobLine]:
    """Nobody waits for anybody."""
    return [
        job(f"{queue}-{n}", f"root.{queue}", 40.0 * n, 4, 15.0) for n in range(15) for queue in ("steady", "bursts")
    ]


def recording(
    folder: Path,
    jobs: list[JobLine],
    ends: Callable[[JobLine, float], float] = lambda _, s: s,
    max_am_share: float = -1.0,
) -> Path:
    """A trace of these jobs as a run under `fair` would have been recorded; ``ends``: what becomes of the times."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "recorded.jsonl"
    queues = {"root.steady": QueueLine(), "root.bursts": QueueLine()}
    for one in jobs:
        above = one.queue.rpartition(".")[0]
        queues |= {path: QueueLine() for path in (above, one.queue) if path != "root"}
    header = Header(
        nodes=[NodeLine(count=3, memory_mb=8192, vcores=8)],
        queues=queues,
        max_am_share=max_am_share,
    )
    path.write_text(trace_text(header, jobs))
    experiment = write_experiment(read_trace(path), folder / "making")
    result = simulate_phase(str(experiment), Variant("fair", "fair", "inside", {}, 0, 5.0), OTHER_PHASE)
    times = {
        str(name): (float(started), float(finished))
        for name, started, finished in zip(
            result.jobs["id"], result.jobs["started_s"], result.jobs["finished_s"], strict=True
        )
    }
    done = [
        one.model_copy(
            update={
                "started_s": times[one.job][0],
                "finished_s": one.submit_s + ends(one, times[one.job][1] - one.submit_s),
            }
        )
        for one in jobs
    ]
    path.write_text(trace_text(header, done))
    return path
