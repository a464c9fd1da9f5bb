"""Several queues of applications side by side on one cluster: each queue one job after another, all answers checked.

What share each queue gets is the business of the cluster's policy: the stock Fair Scheduler's, or one that `yarnfair
enforce` puts over it meanwhile.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from pydantic import BaseModel, ConfigDict, Field

from harness.base.documents import read_yaml, validated
from harness.base.errors import InputError, YarnfairError
from harness.jobs.data.generate import FolderTarget, generate, read_size
from harness.jobs.engines import engine_of, find, members
from harness.jobs.engines.attempts import Attempt
from harness.jobs.engines.base import Done, Request
from harness.jobs.engines.runner import check_request


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid")


class DataSpec(_Model):
    """A data set, as ``yarnfair data generate`` makes it."""

    kind: str
    size: str
    seed: int = Field(1, ge=0, le=2**40)


class JobEntry(_Model):
    """One job of a queue. ``input``: names of ``data``.

    A Spark program besides: executors of so many MiB and cores, ``am_mb`` for its driver; ``maps`` is about how many
    tasks read, ``reduces`` how many partitions a shuffle has. A group's name (``tpch``) stands for its programs.
    """

    application: str
    input: list[str] = Field(min_length=1)
    maps: int = 2
    reduces: int = 1
    settings: dict[str, str] = {}
    executors: int = 2
    executor_mb: int = 1024
    executor_cores: int = 1
    am_mb: int | None = None


class QueueEntry(_Model):
    """A queue's jobs, gone through ``rounds`` times; the next one ``think_s`` after the one before has ended."""

    queue: str
    jobs: list[JobEntry] = Field(min_length=1)
    rounds: int = Field(1, ge=1, le=10_000)
    start_s: float = Field(0.0, ge=0, le=1e6)
    think_s: float = Field(0.0, ge=0, le=1e6)


class MixSpec(_Model):
    """A mix file."""

    about: str = ""
    data: dict[str, DataSpec]
    queues: list[QueueEntry] = Field(min_length=1)
    task_mb: int = 512
    am_mb: int = 512

    def request(self, queue: str, job: JobEntry, data: Path, output: Path, **more: Any) -> Request:
        """A job by itself. ``data``: the folder of the data sets."""
        by_spark = engine_of(job.application).name == "spark"
        return Request(
            job.application,
            tuple(data / name for name in job.input),
            output,
            queue,
            job.maps,
            job.reduces,
            job.executor_mb if by_spark else self.task_mb,
            self.am_mb if job.am_mb is None and not by_spark else job.am_mb,
            job.executors,
            job.executor_cores,
            job.settings,
            **more,
        )


@dataclass(frozen=True, slots=True)
class MixJob:
    """One job that was run. Seconds since the mix began; ``why``: of one that failed or was wrong."""

    queue: str
    number: int
    application: str
    submitted_s: float
    ended_s: float
    apps: tuple[str, ...]
    memory_mb_s: int
    why: str | None
    attempts: tuple[Attempt, ...] = ()


class Runs(Protocol):
    """What runs one application (`harness.jobs.engines.runner.ProgramRunner`)."""

    def run(self, request: Request) -> Done:
        """To its end."""


def read_mix(path: Path) -> MixSpec:
    """A mix file. Raises InputError, and CallError for an application or setting that there is not."""
    spec = validated(MixSpec, read_yaml(path))
    for queue in spec.queues:
        queue.jobs = [
            job.model_copy(update={"application": name}) for job in queue.jobs for name in members(job.application)
        ]
        for job in queue.jobs:
            one = find(job.application)
            kinds = [spec.data[name].kind if name in spec.data else None for name in job.input]
            if kinds != list(one.data):
                raise InputError(
                    f"{queue.queue}: {one.name} reads {' and '.join(one.data)}, given are {', '.join(job.input)}",
                    where=str(path),
                    mend="name data sets of these kinds under data",
                )
            check_request(spec.request(queue.queue, job, path.parent, path.parent))
    for data in spec.data.values():
        read_size(data.size)
    return spec


def make_data(spec: MixSpec, folder: Path, progress: Callable[[str], None]) -> None:
    """The data sets below a folder, or what is missing of them."""
    for name, data in spec.data.items():
        progress(f"data {name}: {data.size} of {data.kind}")
        generate(data.kind, read_size(data.size), data.seed, FolderTarget(folder / name))


def run_mix(
    spec: MixSpec,
    data: Path,
    out: Path,
    clients: Callable[[threading.Event], Runs],
    *,
    check: bool = True,
    timeout_s: float = 1800.0,
    progress: Callable[[str], None] = lambda _: None,
) -> list[MixJob]:
    """Runs the mix to its end; the jobs in the order of their ends.

    ``clients`` makes a client for each queue, which has to end when the event is set: that is when this is interrupted.
    A job that fails is told and the queue goes on.
    """
    stop, lock = threading.Event(), threading.Lock()
    done: list[MixJob] = []
    began = time.monotonic()

    def one(entry: QueueEntry, client: Runs, job: JobEntry, number: int) -> None:
        output = out / f"{entry.queue}-{number:03d}-{job.application.lower()}"
        request = spec.request(entry.queue, job, data, output, check=check, timeout_s=timeout_s)
        submitted, why, found = time.monotonic() - began, None, None
        try:
            found = client.run(request)
            if found.verdict is not None and found.verdict.wrong is not None:
                why = f"the answer is wrong: {found.verdict.wrong}"
        except YarnfairError as error:
            why = error.line()
        row = MixJob(
            entry.queue,
            number,
            find(job.application).name,
            submitted,
            # The check of the answer is none of the job's time.
            submitted + found.seconds if found is not None else time.monotonic() - began,
            tuple(app.id for app in found.apps) if found is not None else (),
            sum(app.memory_seconds for app in found.apps) if found is not None else 0,
            why,
            found.attempts if found is not None else tuple(getattr(client, "attempts", ())),
        )
        with lock:
            done.append(row)
        progress(f"{row.queue} {row.number} {row.application}: {why or f'{row.ended_s - row.submitted_s:.1f} s'}")

    def queue(entry: QueueEntry) -> None:
        if stop.wait(entry.start_s):
            return
        client = clients(stop)
        for number in range(entry.rounds * len(entry.jobs)):
            if stop.wait(entry.think_s if number else 0.0):
                return
            one(entry, client, entry.jobs[number % len(entry.jobs)], number)

    threads = [threading.Thread(target=queue, args=(entry,), name=entry.queue) for entry in spec.queues]
    for thread in threads:
        thread.start()
    try:
        for thread in threads:
            while thread.is_alive():
                thread.join(0.5)
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    return done


def mix_document(jobs: list[MixJob]) -> dict[str, Any]:
    """The result as ``--json`` prints it: the jobs, and by queue how many, how many failed, mean time, MB seconds."""
    queues: dict[str, dict[str, Any]] = {}
    for name in sorted({job.queue for job in jobs}):
        own = [job for job in jobs if job.queue == name]
        good = [job.ended_s - job.submitted_s for job in own if job.why is None]
        queues[name] = {
            "jobs": len(own),
            "failed": len(own) - len(good),
            "mean_completion_s": sum(good) / len(good) if good else None,
            "memory_mb_s": sum(job.memory_mb_s for job in own),
        }
    rows: list[Mapping[str, Any]] = [
        {
            "queue": job.queue,
            "number": job.number,
            "application": job.application,
            "submitted_s": job.submitted_s,
            "ended_s": job.ended_s,
            "applications": list(job.apps),
            "memory_mb_s": job.memory_mb_s,
            "why": job.why,
        }
        for job in jobs
    ]
    return {"jobs": rows, "queues": queues}
