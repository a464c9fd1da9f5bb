"""Reads a simulated run's directory as a trace.

The trace has the jobs of the run's experiment with the task durations that the run's seed drew, and the jobs' recorded
ends. A run on a real backend writes its own ``trace.jsonl`` (harness.experiments.real.trace).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from harness.base.documents import YamlDocument
from harness.base.errors import InputError
from harness.base.files import read_json
from harness.experiments.loads import file_hash
from harness.experiments.real.trace import run_header
from harness.experiments.resolve import jobs_of, load_experiment
from harness.experiments.spec import NodeGroupSpec
from harness.jobs.replay import durations_ms, stages_in_order
from harness.model.data import data_path
from harness.policies.registry import POLICIES, stock_scheduler
from harness.sim.interfaces import simulated
from harness.sim.schedulers import SCHEDULERS
from harness.traces.nodes import NodeEvent
from harness.traces.recorded import JobLine, NodeChangeLine, NodeLine, Trace, job_line, mean_held_mb, put_trace


@dataclass(frozen=True, slots=True)
class SimulatedJob:
    """Times of a simulated job, in seconds, and what its containers held in total; NaN: it did not get that far."""

    submitted_s: float
    started_s: float
    finished_s: float
    memory_mb_s: float

    def mean_held_mb(self, master_mb: int) -> float | None:
        """Return what its executors held on average (`harness.traces.recorded.mean_held_mb`)."""
        return mean_held_mb(self.memory_mb_s, master_mb, self.finished_s - self.started_s)


def simulated_jobs(folder: Path) -> dict[str, SimulatedJob]:
    """Return the jobs of a simulated run by their ids. Raises InputError for a run without them."""
    from harness.report.reading import needed_table

    table = needed_table(folder / "jobs.parquet")
    columns = (table[field.name].to_numpy(float).tolist() for field in fields(SimulatedJob))
    rows = (SimulatedJob(*row) for row in zip(*columns, strict=True))
    return dict(zip(table["job"].astype(str), rows, strict=True))


def trace_of_run(folder: Path, into: Path) -> Trace:
    """Return the trace of a simulated run, written to ``into``. Raises InputError for a run without one."""
    run = read_json(folder / "run.json")
    where = str(folder / "run.json")
    try:
        policy, seed, resolved = str(run["policy"]["name"]), int(run["seed"]), dict(run["experiment"])
        data = {**resolved, "workloads": _inline(resolved["workloads"], folder), "policies": [policy]}
    except (KeyError, TypeError, ValueError):
        raise InputError(
            "no run of a YARN cluster", where=where, hint="give a run of an experiment without `kind`"
        ) from None
    if run.get("backend") != "sim":
        raise InputError("a real run without its trace.jsonl", where=where, hint="give a run that ended")
    # Under any other policy, the run does not show what the scheduler does by itself.
    if policy not in POLICIES or stock_scheduler(policy) is None:
        what = f"a simulated run under {policy}, which says nothing about the scheduler by itself"
        stock = " or ".join(simulated(name).stock_policy for name in SCHEDULERS)
        raise InputError(what, where=where, hint=f"give a run under {stock}")
    experiment = load_experiment(where, YamlDocument(where, data, {}))
    spec = experiment.spec
    scheduler = str(run["policy"].get("scheduler", spec.scheduler))
    nodes, changes = _nodes_over_time(spec.cluster.nodes)
    reads_capacity = simulated(scheduler).reads_capacity
    header = run_header(experiment, f"{folder}, simulated", {}, nodes=nodes, given=None).model_copy(
        update={
            "changes": changes or None,
            "delays": spec.delays,
            "scheduler": scheduler,
            "capacity": {key: str(value) for key, value in spec.capacity.items()} if reads_capacity else None,
        }
    )
    played = simulated_jobs(folder)
    until_s = _cut_at_s(folder)
    jobs: list[JobLine] = []
    for job in jobs_of(experiment, seed)[0]:
        ran = played.get(job.id)
        if ran is None or math.isnan(ran.submitted_s):
            continue  # the run was cut off before
        if job.kind == "service":
            raise InputError("a run with services, which no trace can hold", where=where, hint="give a run of jobs")
        drawn = dict(zip((stage.name for stage in stages_in_order(job)), durations_ms(job, seed), strict=True))
        jobs.append(
            job_line(
                replace(job, submit_s=ran.submitted_s),
                [[ms / 1000.0 for attempts in drawn[stage.name] for ms, _ in attempts] for stage in job.stages],
                held_mb=ran.mean_held_mb(job.am.memory_mb) if job.executors else None,
                started_s=_known(ran.started_s),
                finished_s=_known(ran.finished_s),
                counted_mb_s=round(ran.memory_mb_s, 3),
            ).model_copy(update={"counted_until_s": until_s if math.isnan(ran.finished_s) else None})
        )
    return put_trace(into, header, jobs)


def _cut_at_s(folder: Path) -> float | None:
    """Return the time at which a run ended that was cut, seconds of virtual time; None: unknown, or it was not cut."""
    file = folder / "summary.json"
    summary = read_json(file) if file.exists() else {}
    makespan_s = summary.get("makespan_s")
    if summary.get("finished", True) or not isinstance(makespan_s, int | float) or not math.isfinite(makespan_s):
        return None
    return float(makespan_s)


def _nodes_over_time(groups: Sequence[NodeGroupSpec]) -> tuple[list[NodeLine], list[NodeChangeLine]]:
    """Return the initial nodes, and those that join and leave."""
    nodes, changes = [], []
    for number, group in enumerate(groups, start=1):
        size = {"memory_mb": group.memory_mb, "vcores": group.vcores}
        if group.join_s <= 0:
            nodes.append(NodeLine(count=group.count, **size))
        for at in range(1, group.count + 1):
            name, was = f"group-{number}-{at}", {}
            if group.join_s > 0:
                changes.append(NodeChangeLine(node=name, at_s=group.join_s, change="joined", **size))
            else:
                was = {"was_memory_mb": group.memory_mb, "was_vcores": group.vcores}
            drains = False
            for step in group.changes or ():
                to = {} if step.decommission else {"memory_mb": step.memory_mb, "vcores": step.vcores}
                if step.decommission:
                    if not drains:
                        changes.append(NodeChangeLine(node=name, at_s=step.at_s, change="decommissioning", **was))
                else:
                    if drains:
                        changes.append(NodeChangeLine(node=name, at_s=step.at_s, change="recommissioned"))
                    changes.append(NodeChangeLine(node=name, at_s=step.at_s, change="resized", **to, **was))
                drains, was = step.decommission, {}
            if group.leave_s is not None:
                gone: NodeEvent = "decommissioned" if drains else "lost"
                changes.append(NodeChangeLine(node=name, at_s=group.leave_s, change=gone, **was))
    return nodes, sorted(changes, key=lambda line: line.at_s)


def _inline(workloads: Mapping[str, Mapping[str, Any]], folder: Path) -> dict[str, Any]:
    """Return the workloads in an experiment file's form; ``run.json`` has them resolved."""
    return {
        queue: {
            "start_s": use["start_s"],
            "scale": use["scale"],
            "inline": _with_its_trace(dict(use["workload"]), use.get("trace_sha256"), folder),
        }
        for queue, use in workloads.items()
    }


def _with_its_trace(workload: dict[str, Any], sha256: object, folder: Path) -> dict[str, Any]:
    """Return the workload with the path of the trace that it replayed.

    The path is relative to the workload's file: a file of the project, or the experiment file, which is in the run's
    folder (a replay) or where the run was started. Among several files with this path, the one with the same content is
    chosen.
    """
    # Workloads of other kinds only take the arrivals from a trace.
    owner = workload.get("arrivals") if "trace" not in workload else workload
    if not isinstance(owner, dict) or owner.get("trace") is None or sha256 is None:
        return workload
    named = str(owner["trace"])
    own = data_path("workloads")
    places = (folder.parent, folder, Path.cwd(), *sorted(place for place in own.iterdir() if place.is_dir()))
    for path in dict.fromkeys((place / named).resolve() for place in places):
        if path.is_file() and file_hash(path) == sha256:
            found = {**owner, "trace": str(path)}
            return found if owner is workload else {**workload, "arrivals": found}
    return workload


def _known(seconds: float) -> float | None:
    return None if math.isnan(seconds) else round(seconds, 3)
