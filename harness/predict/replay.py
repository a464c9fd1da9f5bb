"""Writes a recorded trace as an experiment file, so that users can read and change what is simulated.

Also compares the simulation with the recording: allocations by queue, completion times by job.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml

from harness.base.documents import LONGEST_S
from harness.base.errors import InputError
from harness.base.files import read_json, write_text
from harness.base.stats import half_width_95
from harness.base.words import counted
from harness.experiments.kind import Ended
from harness.experiments.resolve import Variant, split_policy
from harness.experiments.spec import DEFAULT_SCHEDULER
from harness.model.plan import WEIGHT_MIN
from harness.model.queues import cluster_parts
from harness.policies.registry import OBJECTS, stock_scheduler
from harness.report.reading import needed_table
from harness.sim.interfaces import simulated
from harness.traces.accounting import account_lines
from harness.traces.recorded import Header, QueueLine, Trace
from harness.yarn.capacity.loading.queue import PARENT_POLICIES

#: At a moment at which at least this many leaves demand more than they hold, queues contend (`against`).
_CONTENDING = 3
#: Approximate number of samples of one replay.
MOST_SAMPLES = 20_000
#: What a replay compares unless the call names policies: the scheduler as it is, and a long-term policy beside it.
USUAL_POLICIES = ("fair", "ltrf@outside")
_ORDERING, _CHILDREN = ".ordering-policy", ".queues"
#: The default time limit of an experiment (`LimitsSpec`), virtual seconds.
LEAST_LIMIT_S = 1e6
#: The Capacity Scheduler's setting of how resources are compared. It is no limit, and Fair Scheduler policies define
#: their own comparison.
_CALCULATOR = "resource-calculator"


def policy_uses(schedulers: Sequence[str], policies: Sequence[str] = ()) -> list[dict[str, Any]]:
    """Return the variants of a replay: each policy on each scheduler; ``fair`` and ``capacity`` are the stock policies.

    On the Capacity Scheduler a policy acts from outside. Raises CallError for an unknown mode.
    """
    uses = []
    for scheduler in schedulers:
        for text in policies or USUAL_POLICIES:
            policy, mode = split_policy(text)
            if stock_scheduler(policy) is not None:
                uses.append({"policy": simulated(scheduler).stock_policy, "scheduler": scheduler})
            else:
                mode = mode or ("inside" if simulated(scheduler).orders_inside else "outside")
                uses.append({"policy": policy, "mode": mode, "scheduler": scheduler})
    return uses


def _written(policies: Sequence[str]) -> list[str]:
    """Return a call's policies as entries of an experiment file, so that `yarnfair run` can repeat them.

    A class in a file is named by its absolute path. Classes defined in the running program are left out, because no
    file has them.
    """
    found = []
    for text in policies:
        policy, mode = split_policy(text)
        path, colon, attribute = policy.rpartition(":")
        if colon and path.endswith(".py"):
            policy = f"{Path(path).absolute()}:{attribute}"
        if policy not in OBJECTS:
            found.append(policy if mode is None else f"{policy}@{mode}")
    return list(dict.fromkeys(found)) or list(USUAL_POLICIES)


def left_out(header: Header, schedulers: Sequence[str]) -> list[str]:
    """Return sentences on the trace's settings that a replay on these schedulers leaves out."""
    limits = sum(key != _CALCULATOR and not key.endswith(_CHILDREN) for key in header.capacity or {})
    without = [name for name in schedulers if not simulated(name).reads_capacity] if limits else []
    return [f"{limits} limits of the Capacity Scheduler have no counterpart on {name}" for name in without]


def span_s(trace: Trace) -> float:
    """Return the seconds from the beginning of a trace to its last submission or end."""
    return max((max(job.submit_s, job.finished_s or 0.0) for job in trace.jobs), default=0.0)


def sample_for(trace: Trace) -> float:
    """Return the seconds between two samples: 1, or more so that there are about 20,000 of them.

    The samples' memory then depends on a trace's events and not on its length.
    """
    return float(max(1, math.ceil(span_s(trace) / MOST_SAMPLES)))


def time_limit_s(trace: Trace) -> float:
    """Return the time limit of a replay, in virtual seconds.

    It is twice the trace's span, plus the think times of jobs that follow others (``after_job``), plus the default
    limit of an experiment, and at most `LONGEST_S`. Think times are counted because they pass whatever the policy does.
    """
    thinks = math.fsum(job.think_s for job in trace.jobs if job.after_job is not None)
    return min(2 * span_s(trace) + thinks + LEAST_LIMIT_S, LONGEST_S)


def played_queues(header: Header) -> dict[str, QueueLine]:
    """Return the queues of a trace with the entitlements that a controller of that cluster would use.

    A Capacity Scheduler's recorded capacities (percentages of the parent, weights, MiB) have no common unit, so each
    queue gets its part of the cluster in percent instead, level by level: as `CapacityActuator.configured_weights` does
    for the real configuration. Both use a Fair Scheduler's weights unchanged.
    """
    if not simulated(header.scheduler or DEFAULT_SCHEDULER).entitlements_are_parts:
        return dict(header.queues)
    parts = cluster_parts({path: line.weight for path, line in header.queues.items()}, 100.0)
    return {
        path: line.model_copy(update={"weight": max(parts[path], WEIGHT_MIN)}) for path, line in header.queues.items()
    }


def capacity_limits_of(header: Header) -> dict[str, str]:
    """Return a trace's Capacity Scheduler settings that apply to the queues of the trace.

    A parent whose children are created on demand may have none when the trace is recorded, and is then simulated as a
    leaf. Its order of queues (``utilization`` is Hadoop's default, PriorityUtilizationQueueOrderingPolicy) is no order
    of applications, and the simulator refuses it there as a ResourceManager does. The same holds for ``fifo`` and
    ``fair`` of a queue that had no children when it was recorded, but whose applications name children.

    The order of a parent's children (``queues``) holds for those that the trace has; others follow by name.
    """
    leaves = frozenset(header.leaves())
    below: dict[str, list[str]] = {}
    for path in header.queues:
        parent, _, name = path.rpartition(".")
        below.setdefault(parent, []).append(name)

    def holds(key: str, text: str) -> bool:
        if key.endswith(_CHILDREN):
            return key.removesuffix(_CHILDREN) in below
        if not key.endswith(_ORDERING):
            return True
        return (text in PARENT_POLICIES) != (key.removesuffix(_ORDERING) in leaves)

    def completed(key: str, text: str) -> str:
        if not key.endswith(_CHILDREN):
            return text
        there = below[key.removesuffix(_CHILDREN)]
        shown = [name for name in dict.fromkeys(one.strip() for one in text.split(",")) if name in there]
        return ",".join([*shown, *(name for name in there if name not in shown)])

    return {key: completed(key, text) for key, text in (header.capacity or {}).items() if holds(key, text)}


def node_groups(header: Header) -> list[dict[str, Any]]:
    """Return the nodes of a trace in an experiment file's form, with the time span of each if that varies."""
    if not header.changes:
        return [node.model_dump() for node in header.nodes]
    groups = []
    for one, count in header.presences():
        memory_mb, vcores = one.size
        group: dict[str, Any] = {"count": count, "memory_mb": memory_mb, "vcores": vcores, "join_s": one.join_s}
        at_s, changes = one.join_s, []
        for step in one.steps:
            # In the simulator, events of the same millisecond are ordered by kind, not as in the trace.
            at_s = round(max(step.at_s, at_s + 0.001), 3)
            what = {"decommission": True} if step.size is None else {"memory_mb": step.size[0], "vcores": step.size[1]}
            changes.append({"at_s": at_s, **what})
        if one.leave_s is not None:
            group["leave_s"] = round(max(one.leave_s, at_s + 0.001), 3)
        groups.append(group | ({"changes": changes} if changes else {}))
    return groups


def experiment_text(
    trace: Trace,
    name: str,
    trace_path: str,
    *,
    sample_s: float | None = None,
    limit_s: float | None = None,
    schedulers: Sequence[str] = (DEFAULT_SCHEDULER,),
    policies: Sequence[str] = (),
    accept_preemption: bool = False,
) -> str:
    """Return the experiment file that replays a trace: nodes, queues, the recorded delays, and each leaf's jobs.

    For the Fair Scheduler alone, the policies of the call are written unchanged, otherwise through `policy_uses`.
    ``sample_s`` and ``limit_s``: `sample_for` and `time_limit_s` of this trace unless they are given.
    """
    header = trace.header
    limit_s = time_limit_s(trace) if limit_s is None else limit_s
    default_alone = tuple(schedulers) == (DEFAULT_SCHEDULER,)
    queues: dict[str, Any] = {}
    for path, line in played_queues(header).items():
        parent, _, leaf = path.rpartition(".")
        at = queues
        for part in parent.split(".")[1:]:
            at = at[part].setdefault("children", {})
        at[leaf] = line.model_dump(exclude_none=True)
    busy = {job.queue for job in trace.jobs}
    delays = header.delays.model_dump(exclude_none=True)
    limits = capacity_limits_of(header)
    document = {
        "experiment": name,
        # Notes that every reader of results should see, so pages show them, too.
        "about": " ".join(
            f"{what[0].upper()}{what[1:].removesuffix('.')}."
            for what in (
                f"Replay of {trace_path}" + (f" ({header.source[:300]})" if header.source else ""),
                *account_lines(header, trace.jobs),
            )
        ),
        "cluster": {"nodes": node_groups(header)},
        "conf": dict(header.conf),
        "max_am_share": header.max_am_share,
        "queues": queues,
        "workloads": {
            path: {"inline": {"kind": "recorded", "trace": trace_path, "only": path}}
            for path in header.leaves()
            if path in busy
        },
        **({} if default_alone else {"scheduler": schedulers[0]}),
        # What a Fair Scheduler's trace says of limits is converted.
        **({"capacity": limits} if any(simulated(name).reads_capacity for name in schedulers) and limits else {}),
        "policies": _written(policies) if default_alone else policy_uses(schedulers, policies),
        "sample_s": sample_for(trace) if sample_s is None else sample_s,
        **({"limits": {"time_limit_s": limit_s}} if limit_s > 1.2 * LEAST_LIMIT_S else {}),
        # Values that a controller of that cluster would have seen.
        "actuation": {"task_lengths": "containers", **({"accept_preemption": True} if accept_preemption else {})},
        **({"delays": delays} if delays else {}),
    }
    head = "# Written by `yarnfair replay` from a recorded trace.\n"
    return head + yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=120)


def without_master_limits(text: str) -> str:
    """Return an experiment file in which ApplicationMasters may take all of a queue, under either scheduler."""
    document = yaml.safe_load(text)
    document["max_am_share"] = -1.0

    def lift(queues: dict[str, Any]) -> None:
        for line in queues.values():
            if isinstance(line, dict):
                line.pop("max_am_share", None)
                lift(line.get("children") or {})

    lift(document.get("queues") or {})
    if "capacity" in document or document.get("scheduler") == "capacity":
        name = "maximum-am-resource-percent"
        capacity = {key: value for key, value in (document.get("capacity") or {}).items() if not key.endswith(name)}
        document["capacity"] = {**capacity, name: "1000"}
    return yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=120)


def write_experiment(
    trace: Trace,
    folder: Path,
    *,
    sample_s: float | None = None,
    limit_s: float | None = None,
    schedulers: Sequence[str] = (DEFAULT_SCHEDULER,),
    policies: Sequence[str] = (),
    accept_preemption: bool = False,
) -> Path:
    """Write the experiment file of a trace into the folder of its runs.

    ``accept_preemption``: its controllers do not bound weights because of preemption.
    """
    stem = "".join(c if c.isalnum() and c.isascii() else "-" for c in trace.path.stem).strip("-") or "trace"
    name = f"replay-{stem}"[:80]
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "replay.yaml"
    # Relative to the experiment file, like the traces of workloads.
    relative = os.path.relpath(trace.path.absolute(), folder.absolute())
    text = experiment_text(
        trace,
        name,
        relative,
        sample_s=sample_s,
        limit_s=limit_s,
        schedulers=schedulers,
        policies=policies,
        accept_preemption=accept_preemption,
    )
    write_text(path, text)
    return path


# --- comparison of the schedulers ---


def migration(ended: Sequence[Ended]) -> list[dict[str, Any]]:
    """Compare mean completion times by queue on the Capacity Scheduler with those on the Fair Scheduler.

    ``change``: from the Fair to the Capacity Scheduler, mean over the seeds that ended in both; ``half_width``: of its
    95 % interval (None for one seed). ``verdict``: gains, loses, or unsure if the interval contains 0 or there is none.
    """
    runs: dict[tuple[str, int], dict[str, Ended]] = {}
    for one in ended:
        variant = one.variant_as(Variant)
        own = "scheduler" if stock_scheduler(variant.policy) is not None else f"{variant.policy}@{variant.mode}"
        if one.exit_code == 0:
            runs.setdefault((own, variant.seed), {})[variant.scheduler] = one
    pairs: dict[str, list[tuple[Ended, Ended]]] = {}
    for (own, _), pair in runs.items():
        if len(pair) == 2:
            pairs.setdefault(own, []).append((pair["fair"], pair["capacity"]))
    found = []
    for own, both in pairs.items():
        for queue in both[0][0].summary["queues"]:
            took = [
                tuple(one.summary["queues"].get(queue, {}).get("mean_completion_s") for one in pair) for pair in both
            ]
            sure = [(fair, capacity) for fair, capacity in took if fair and capacity]
            if not sure:
                continue
            changes = [capacity / fair - 1 for fair, capacity in sure]
            change = sum(changes) / len(changes)
            half = half_width_95(changes) if len(changes) > 1 else None
            clear = half is not None and abs(change) > half
            found.append(
                {
                    "policy": own,
                    "queue": queue,
                    "fair_s": sum(fair for fair, _ in sure) / len(sure),
                    "capacity_s": sum(capacity for _, capacity in sure) / len(sure),
                    "change": change,
                    "half_width": half,
                    "seeds": len(sure),
                    "verdict": "unsure" if not clear else "gains" if change < 0 else "loses",
                }
            )
    return found


def migration_lines(found: Sequence[Mapping[str, Any]]) -> list[str]:
    """Describe the comparison in sentences."""
    lines = []
    for policy in dict.fromkeys(row["policy"] for row in found):
        lines.append(f"from the Fair to the Capacity Scheduler, {policy.replace('scheduler', 'as they are')}:")
        for row in (row for row in found if row["policy"] == policy):
            width = f" +- {100 * row['half_width']:.1f}" if row["half_width"] is not None else ""
            lines.append(
                f"  {row['queue'].removeprefix('root.')} {row['verdict']}: mean completion {row['fair_s']:.1f} s to "
                f"{row['capacity_s']:.1f} s ({100 * row['change']:+.1f}{width} %, {counted(row['seeds'], 'seed')})"
            )
    if any(row["half_width"] is None for row in found):
        lines.append("  one seed tells no interval: give --seed more than once")
    return lines


# --- comparison with measurements
# -----------------------------------------------------------------------------------------


def against(simulated: Path, real: Path) -> dict[str, Any]:
    """Measure how far a simulated run is from a real one, given two run directories.

    ``allocation_difference``: by leaf and for all of them together, the integral of the absolute difference of what the
    queue held over the integral of what it held on the real cluster. ``completion_difference``: mean absolute
    difference relative to the real completion time, over the jobs that ended in both. ``contended``: the fraction of
    the real run's time in which at least three leaves demanded more than they held.

    Raises InputError for directories without these tables.
    """
    jobs = [needed_table(folder / "jobs.parquet") for folder in (simulated, real)]
    curves = [needed_table(folder / "allocations.parquet") for folder in (simulated, real)]
    infos = [read_json(folder / "run.json") for folder in (simulated, real)]
    end_s = max(float(table["finished_s"].max()) for table in jobs)
    grid = np.arange(0.0, end_s, 0.25)
    parents = {path.rpartition(".")[0] for path in map(str, curves[1]["queue"].unique())}
    leaves = [path for path in map(str, curves[1]["queue"].unique()) if path not in parents]
    differences, held = {}, {}
    waiting = np.zeros(len(grid), dtype=np.int64)
    for leaf in leaves:
        mine, its = (_steps(table, leaf, "allocated_mb", grid) for table in curves)
        held[leaf] = float(its.sum())
        differences[leaf] = float(np.abs(mine - its).sum())
        waiting += _steps(curves[1], leaf, "demand_mb", grid) > its
    mine_s, its_s = (dict(zip(table["job"].astype(str), table["completion_s"], strict=True)) for table in jobs)
    apart = {
        job: abs(mine_s[job] - took) / took
        for job, took in its_s.items()
        if took > 0 and math.isfinite(mine_s.get(job, math.nan))
    }
    if not apart:
        raise InputError("no job ended in both runs", where=str(real), hint="compare runs of the same jobs")
    values = np.array(list(apart.values()))
    makespan_s, real_s = (read_json(folder / "summary.json")["makespan_s"] for folder in (simulated, real))
    return {
        "simulated": str(infos[0].get("variant")),
        "real": str(infos[1].get("variant")),
        "backend": infos[1].get("backend"),
        "cluster": (infos[1].get("cluster") or {}).get("id"),
        "allocation_difference": sum(differences.values()) / max(sum(held.values()), 1e-9),
        "allocation_difference_by_queue": {
            leaf: differences[leaf] / held[leaf] if held[leaf] else math.nan for leaf in leaves
        },
        "completion_difference": float(values.mean()),
        "completion_difference_p90": float(np.percentile(values, 90)),
        "completion_difference_by_job": apart,
        "makespan_difference": float((makespan_s - real_s) / real_s),
        "contended": float((waiting >= _CONTENDING).mean()),
        "jobs": len(apart),
    }


def _steps(table: pd.DataFrame, queue: str, column: str, grid: Any) -> Any:
    """Return a queue's curve at the times of the grid: the last sample before each, 0 after its end."""
    own = table[table["queue"] == queue]
    times, values = own["time_s"].to_numpy(), own[column].to_numpy(dtype=np.float64)
    if not len(times):
        return np.zeros(len(grid))
    at = np.searchsorted(times, grid, side="right") - 1
    found = np.where(at >= 0, values[np.maximum(at, 0)], 0.0)
    return np.where(grid > times[-1], 0.0, found)


def difference_lines(document: Mapping[str, Any]) -> list[str]:
    """Describe the differences in sentences."""
    by_queue = ", ".join(
        f"{path.removeprefix('root.')} {100 * value:.1f} %"
        for path, value in document["allocation_difference_by_queue"].items()
    )
    return [
        f"{document['simulated']} against {document['real']} on {document['backend']} ({document['cluster']}):",
        f"  allocations differ by {100 * document['allocation_difference']:.1f} % ({by_queue})",
        f"  completion times by {100 * document['completion_difference']:.1f} % on average of {document['jobs']} jobs "
        f"(90 % of them by at most {100 * document['completion_difference_p90']:.1f} %), "
        f"makespan by {100 * document['makespan_difference']:+.1f} %",
        f"  three queues or more contended {100 * document['contended']:.0f} % of the time",
    ]
