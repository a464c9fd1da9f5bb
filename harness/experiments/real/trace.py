"""Writes a run on a real cluster as a trace: every task with its own time, and the cluster's measured delays.

harness.traces.recording records other people's applications; harness.traces.recorded defines and reads the format.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

from harness.experiments.real.curves import JobRun
from harness.experiments.real.schedulers import REAL_SCHEDULERS
from harness.experiments.resolve import LoadedExperiment
from harness.experiments.simulated import texts
from harness.experiments.spec import DEFAULT_SCHEDULER
from harness.jobs.replay import durations_ms, stages_in_order
from harness.traces.recorded import Header, JobLine, NodeLine, QueueLine, job_line, mean_held_mb
from harness.traces.recording import NODE_HEARTBEAT, UPDATE, scheduler_properties, whole_property
from harness.traces.spec import DelaysSpec
from harness.yarn.capacity.properties import ASYNCHRONOUS, PREFIX
from harness.yarn.fair.javanum import parse_boolean


def node_heartbeat_ms(experiment: LoadedExperiment, given: Mapping[str, str] | None) -> int:
    """Return the configured heartbeat interval of nodes; ``given`` as in `delays_of`."""
    set_ms = experiment.spec.delays.node_heartbeat_ms if given is None else whole_property(given, NODE_HEARTBEAT)
    return set_ms or 1000


def delays_of(
    experiment: LoadedExperiment,
    measured: Mapping[str, Mapping[str, float]],
    response_heartbeats: int = 1,
    *,
    given: Mapping[str, str] | None = None,
) -> DelaysSpec:
    """Return the simulator's delays, as configured on the cluster and measured in the run.

    A node waits for the RM's answer before it waits for its next heartbeat, and sends an extra one when a container
    ends. The mean delay of that extra heartbeat is estimated as the mean time until AMs learnt of ends, minus half of
    their own heartbeat interval. Container start times are stored per task (`run_jobs`).

    Parameters
    ----------
    measured
        The measured delays (`harness.experiments.real.curves.latencies`).
    response_heartbeats
        Heartbeats after which AMs act on a response, if the experiment does not set them.
    given
        The properties of an external cluster, which keeps its own intervals of node heartbeats and updates (Hadoop's
        defaults if unknown).
    """
    said, node_ms = experiment.spec.delays, node_heartbeat_ms(experiment, given)
    am_ms = said.am_heartbeat_ms or 1000

    def mean(name: str) -> float | None:
        found = measured.get(name)
        return None if found is None else found["mean"]

    end, between, am_start = mean("end_heard_ms"), mean("between_heartbeats_ms"), mean("am_start_ms")
    return DelaysSpec(
        node_heartbeat_ms=node_ms if between is None else round(between),
        end_heartbeat_ms=None if end is None else max(round(end - am_ms / 2), 0),
        am_heartbeat_ms=am_ms,
        am_response_heartbeats=response_heartbeats
        if said.am_response_heartbeats is None
        else said.am_response_heartbeats,
        am_start_ms=None if am_start is None else max(round(am_start), 0),
        update_ms=said.update_ms if given is None else whole_property(given, UPDATE),
    )


def run_header(
    experiment: LoadedExperiment,
    source: str,
    measured: Mapping[str, Mapping[str, float]],
    response_heartbeats: int = 1,
    *,
    nodes: Sequence[NodeLine],
    given: Mapping[str, str] | None,
    scheduler: str = DEFAULT_SCHEDULER,
) -> Header:
    """Return the first line of a run's trace: its cluster (``nodes``, see `nodes_of`) and the queues in force.

    ``given``: the properties of an external cluster, on which the experiment's ``conf`` was not set.
    """
    spec, real = experiment.spec, REAL_SCHEDULERS[scheduler]
    conf = spec.conf if given is None else scheduler_properties(given)
    return Header(
        source=source,
        nodes=list(nodes),
        queues={
            path: QueueLine(weight=experiment.weights[path], max_running_apps=queue.max_running_apps)
            for path, queue in spec.all_queues().items()
        },
        max_am_share=spec.max_am_share,
        conf=texts(conf),
        # A Fair Scheduler's trace has the same keys as in earlier versions.
        scheduler=None if scheduler == DEFAULT_SCHEDULER else real.name,
        capacity=real.own_properties(spec),
        asynchronous=_asynchronous(experiment, given) if real.name == "capacity" else None,
        delays=delays_of(experiment, measured, response_heartbeats, given=given),
    )


def _asynchronous(experiment: LoadedExperiment, given: Mapping[str, str] | None) -> bool | None:
    """Return whether the Capacity Scheduler of a run places containers asynchronously.

    Clusters of ours do not, unless the experiment says so; of an external one its properties (``given``) may tell.
    """
    spec = experiment.spec
    text = texts(spec.capacity).get(ASYNCHRONOUS.removeprefix(PREFIX))
    text = (text or (texts(spec.conf) if given is None else given).get(ASYNCHRONOUS, "")).strip()
    if not text and given is not None:
        return None
    return parse_boolean(text, False)


def sizes_document(nodes: Sequence[NodeLine]) -> dict[str, Any]:
    """Return ``run.json``'s entry about a cluster's nodes: number, sizes; single size (None: they differ), MiB."""
    memory, vcores = {node.memory_mb for node in nodes}, {node.vcores for node in nodes}
    return {
        "nodes": sum(node.count for node in nodes),
        "memory_mb": memory.pop() if len(memory) == 1 else None,
        "vcores": vcores.pop() if len(vcores) == 1 else None,
        "sizes": [node.model_dump() for node in nodes],
    }


def run_jobs(jobs: Sequence[JobRun], seed: int, lag_s: float = 0.0) -> list[JobLine]:
    """Return the submitted jobs of a run, with their tasks' work times, and the start times of containers and AMs.

    A task that did not end, because the run was cut, has its planned time. So has a task that may begin before its
    predecessors have ended, because its measured time would include waiting. ``lag_s``: time from the response with a
    container until the AM starts the task, seconds, which the simulator's AMs also have
    (`Delays.am_response_heartbeats`).
    """
    lines = []
    for job in jobs:
        if math.isnan(job.submitted_s):
            continue
        drawn = durations_ms(job.spec, seed)
        ordered = stages_in_order(job.spec)
        # The times of each task's attempts: the last one, preceded by attempts that are planned to be repeated.
        times = {
            stage.name: [[ms / 1000.0 for ms, _ in attempts] for attempts in drawn[at]]
            for at, stage in enumerate(ordered)
        }
        starts = {name: [[0.0] * len(attempts) for attempts in tasks] for name, tasks in times.items()}
        failed: Counter[tuple[int, int]] = Counter()
        for task in sorted(job.record.tasks, key=lambda one: one.started_ms):
            stage = ordered[task.stage]
            last = len(drawn[task.stage][task.task]) - 1
            place = last
            if task.outcome == "failed":
                place = failed[task.stage, task.task]
                failed[task.stage, task.task] += 1
            if task.outcome == "killed" or (task.outcome == "failed" and place >= last):
                continue  # the attempt was killed, or failed without a planned failure
            if task.outcome == "failed" or not (stage.after and stage.slow_start < 1):
                times[stage.name][task.task][place] = max(task.ended_ms - task.started_ms, 0) / 1000.0
            if job.spec.kind != "spark":
                starts[stage.name][task.task][place] = max((task.started_ms - task.heard_ms) / 1000.0 - lag_s, 0.0)
        spec, start_ms = job.spec, job.am_start_ms
        am_start_s = None if start_ms is None else max(start_ms, 0) / 1000.0
        lines.append(
            job_line(
                replace(spec, submit_s=max(job.submitted_s, 0.0), am_start_s=am_start_s),
                [chain.from_iterable(times[stage.name]) for stage in spec.stages],
                None if spec.kind == "spark" else [chain.from_iterable(starts[stage.name]) for stage in spec.stages],
                held_mb=_held_mb(job) if spec.kind == "spark" else None,
                started_s=_seconds(job.started_s),
                finished_s=_seconds(job.finished_s) if job.ended else None,
                counted_mb_s=job.status.memory_seconds if job.status is not None and job.status.final else None,
            )
        )
    return lines


def _held_mb(job: JobRun) -> float | None:
    """Return the mean memory (MiB) of a Spark application's executors, from the RM's memory-seconds after its end."""
    status = job.status
    if status is None or not status.final or not status.launched_ms:
        return None
    lived_s = (status.finished_ms - status.launched_ms) / 1000.0
    return mean_held_mb(status.memory_seconds, job.spec.am.memory_mb, lived_s)


def _seconds(value: float) -> float | None:
    return None if math.isnan(value) else round(max(value, 0.0), 3)
