"""``kind: cloud`` on containers (``--backend docker``): pools that really grow and shrink, rates that are measured.

The cloud driver (harness.systems.progress_share.cloud.driver) is the same as in the model. Its decisions are carried
out on a Docker cluster on which an hour lasts ``docker.hour_s`` seconds. A driver run measures computing rates (it runs
tasks of each query on a node of each type), chooses accelerators for the deadline, adds them, runs the production
queries, and removes the accelerators at the end of the hour that is paid for. Later periods use the history of earlier
ones. Work is counted in tasks, and rates in tasks per hour and node instead of compute units.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from harness.base.errors import InputError
from harness.experiments.kind import Outcome, Runner, Step
from harness.experiments.real.curves import tasks_table
from harness.results.store import RunDirectory
from harness.systems.progress_share.cloud.containers import Cloud, Held, Served, node_type, open_cloud
from harness.systems.progress_share.cloud.driver import (
    InstanceType,
    Pool,
    Query,
    Run,
    choose_accelerators,
    expected_queries,
    hours_of,
    period_cost,
)
from harness.systems.progress_share.cloud.model import DRIVER, LoadedPools, PoolsVariant, cost_summary
from harness.systems.progress_share.cloud.spec import DockerCloud, DriverSpec

SECONDS = 3600.0


@dataclass(frozen=True, slots=True)
class LoadedDockerCloud:
    """An experiment of pools prepared for containers: its core pool, and its queries with their work in tasks."""

    experiment: LoadedPools
    docker: DockerCloud
    core: Pool
    queries: Sequence[Query]


def docker_cloud(experiment: LoadedPools) -> LoadedDockerCloud:
    """Prepare an experiment for containers. Raises InputError with file and line for what containers cannot do."""
    spec, document = experiment.spec, experiment.document
    if spec.docker is None:
        raise InputError(
            "nothing says what the experiment is on containers",
            where=document.file,
            hint="add docker:, or run it with --backend sim",
        )
    pools = {name: experiment.pools(name) for name in spec.configurations}
    cores = [core for core, _ in pools.values()]
    if spec.driver is not None:
        if spec.driver.core is None:
            raise InputError(
                "on containers the core pool is there before anything is stored",
                where=document.where(("driver", "storage")),
                hint="give the driver its core pool (core) in place of storage",
            )
        cores.append(experiment.pool(spec.driver.core, "driver", "core"))
    if any(core != cores[0] for core in cores):
        raise InputError(
            "core pools of several kinds",
            where=document.where(("configurations",)),
            hint="containers have one core pool: give every configuration and the driver the same core",
        )
    extra = [kind for _, accelerators in pools.values() for kind, _ in accelerators]
    for kind in {one.name: one for one in [cores[0][0], *experiment.candidates(), *extra]}.values():
        node_type(kind, spec.docker)  # raises for limits that no node can have
    queries = [
        Query(name, float(spec.docker.tasks[name].count), query.memory_gb) for name, query in spec.queries.items()
    ]
    for query in queries:
        if spec.queries[query.name].deadline_h is not None:
            raise InputError(
                f"query {query.name} has a deadline of its own: containers serve all queries as one queue",
                where=document.where(("queries", query.name)),
                hint="leave deadline_h out, or run it with --backend sim",
            )
        if query.memory_gb > cores[0][0].memory_gb_core:
            raise InputError(
                f"query {query.name} needs more memory than a core of {cores[0][0].name} has",
                where=document.where(("queries", query.name)),
                hint="choose another core type",
            )
    return LoadedDockerCloud(experiment, spec.docker, cores[0], queries)


@contextlib.contextmanager
def open_runner(loaded: LoadedDockerCloud, says: Callable[[str], None]) -> Iterator[Runner]:
    """Return a context whose runner runs the driver and the configurations on one cluster.

    The cluster ends with the context.
    """
    rates: dict[str, dict[str, float]] = {}
    with open_cloud(loaded.docker, loaded.core, says) as cloud:

        def run(
            _: Any, variant: PoolsVariant, directory: RunDirectory, on_step: Callable[[Step], None] | None = None
        ) -> Outcome:
            directory.note(cluster=cloud.document)
            one = _One(loaded, cloud, directory, rates)
            driver = loaded.experiment.spec.driver if variant.name == DRIVER else None
            try:
                summary = one.driver(driver) if driver is not None else one.fixed(variant.name)
                summary["wall_s"] = round(time.time() - one.zero_s, 3)
                directory.write_summary(summary)
            finally:
                one.write()
            return Outcome(summary)

        yield run


class _One:
    """One run: the periods of the driver, or one configuration."""

    def __init__(
        self, loaded: LoadedDockerCloud, cloud: Cloud, directory: RunDirectory, rates: dict[str, dict[str, float]]
    ) -> None:
        self.loaded, self.cloud, self.directory, self.rates = loaded, cloud, directory, rates
        self.period_h = loaded.experiment.spec.period_h
        self.hour_s = loaded.docker.hour_s
        self.zero_s = time.time()
        self.served: list[tuple[str, Served]] = []
        self.decisions: list[dict[str, Any]] = []
        cloud.events.clear()

    # --- a configuration ---

    def fixed(self, name: str) -> dict[str, Any]:
        """Run the queries once on the core pool and the accelerators of a configuration, and return the summary."""
        core, extra = self.loaded.experiment.pools(name)
        held = [one for pool in extra for one in self.cloud.join(*pool)]
        hours = self._serve(self.loaded.queries, name)
        self.cloud.leave(held)
        cost, billed = period_cost(core, extra, hours, self.period_h)
        summary = {
            **self._summary(hours, cost, billed, extra),
            "accelerators_left": len(self.cloud.accelerators.nodes()),
        }
        if self.rates:
            known = [replace(query, rates=self.rates[query.name]) for query in self.loaded.queries]
            nodes = [core, *extra]
            if all(kind.name in self.rates[known[0].name] for kind, _ in nodes):
                summary["predicted_makespan_s"] = round(hours_of(known, nodes) * SECONDS, 3)
        return summary

    def _serve(self, queries: Sequence[Query], label: str) -> float:
        jobs = [(query.name, [self.cloud.task(query, round(query.work_cu_h))]) for query in queries]
        served = self.cloud.serve(jobs)
        self.served.append((label, served))
        self.write()
        return (served.ended_s - served.began_s) / self.hour_s

    def _summary(self, hours: float, cost: float, billed_h: int, extra: Sequence[Pool]) -> dict[str, Any]:
        return {
            # Times and costs are in the experiment's hours, like the model's; hour_s is the length of such an hour.
            **cost_summary(hours, cost, billed_h, self.loaded.core, extra, self.period_h),
            "hour_s": self.hour_s,
            "tasks": {name: task.count for name, task in self.loaded.docker.tasks.items()},
        }

    # --- the driver ---

    def driver(self, driver: DriverSpec) -> dict[str, Any]:
        """Run the driver and return the summary: calibration, then in each period decide, grow, run and shrink."""
        loaded, hour_s, period_h, types = self.loaded, self.hour_s, self.period_h, self.loaded.experiment.candidates()
        usable = [kind for kind in types if any(_fits(query, kind) for query in loaded.queries)]
        own = loaded.core[0].name
        held = [one for kind in usable if kind.name != own for one in self.cloud.join(kind, 1)]
        self._calibrate(held)
        history: list[Run] = []
        known = [replace(query, rates=self.rates[query.name]) for query in loaded.queries]
        periods: dict[str, dict[str, Any]] = {}
        for period in range(loaded.docker.periods):
            now_h = period * period_h
            queries = expected_queries(history, known, now_h, period_h)
            chosen = choose_accelerators(
                queries,
                loaded.core,
                types,
                deadline_h=driver.deadline_h,
                period_h=period_h,
                most=driver.most,
                kinds=driver.kinds,
            )
            wanted = {kind.name: count for kind, count in chosen.accelerators}
            self.decisions.append(
                {
                    "time_s": round(time.time() - self.zero_s, 3),
                    "period": period + 1,
                    "queries": {query.name: query.work_cu_h for query in queries},
                    "accelerators": wanted,
                    "predicted_h": round(chosen.hours, 6),
                    "why": chosen.why,
                    "refused": dict(chosen.refused),
                }
            )
            # Keep those accelerators of the calibration that the decision wants.
            kept = [
                one
                for kind, count in chosen.accelerators
                for one in [one for one in held if one.node.type == kind.name][:count]
            ]
            others = [one for one in held if one not in kept]
            self.cloud.leave(others)
            spent = math.fsum(one.dollars(hour_s) for one in others)
            held = kept
            for kind, count in chosen.accelerators:
                held = held + self.cloud.join(kind, count - sum(one.node.type == kind.name for one in kept))
            hours = self._serve(queries, f"period {period + 1}")
            self.cloud.release(held, self.served[-1][1].ended_s)
            cost, _ = period_cost(loaded.core, (), hours, period_h)
            accelerators = math.fsum(one.dollars(hour_s) for one in held)
            last = periods[str(period + 1)] = {
                "hours": round(hours, 6),
                "predicted_h": round(chosen.hours, 6),
                "meets_deadline": hours <= driver.deadline_h,
                "accelerators": wanted,
                "billed_h": max((one.billed_h(hour_s) for one in held), default=0),
                "cost_dollars": round(cost + accelerators, 6),
                "calibration_dollars": round(spent, 6),
                "refused": dict(chosen.refused),
            }
            extra = chosen.accelerators
            held = []
            history += [Run(query.name, now_h, query.work_cu_h) for query in queries]
        return {
            **self._summary(last["hours"], last["cost_dollars"], last["billed_h"], extra),
            "predicted_makespan_s": round(last["predicted_h"] * SECONDS, 3),
            "meets_deadline": last["meets_deadline"],
            "deadline_h": driver.deadline_h,
            "periods": periods,
            "rates": self.rates,
            "accelerators_left": len(self.cloud.accelerators.nodes()),
        }

    def _calibrate(self, held: Sequence[Held]) -> None:
        """Measure computing rates: tasks per hour of each query on one node of each type, with all its cores busy.

        Container starts are included. Every query runs ``waves`` tasks per core on one node of each type: all types at
        the same time, one query after another.
        """
        core = self.loaded.core[0]
        hosts = [(core, self.cloud.core_hosts[0]), *((one.kind, one.node.host) for one in held)]
        self.cloud.warm_up([host for _, host in hosts])
        for query in self.loaded.queries:
            tasks = [
                self.cloud.task(query, kind.cores * self.loaded.docker.waves, name=kind.name, host=host)
                for kind, host in hosts
                if _fits(query, kind)
            ]
            self.cloud.progress(f"measuring {query.name} on {', '.join(task.name for task in tasks)}")
            served = self.cloud.serve([(f"{query.name}-rate", tasks)])
            self.served.append(("calibration", served))
            (job,) = served.jobs
            for at, task in enumerate(tasks):
                records = [one for one in job.record.tasks if one.stage == at and one.outcome == "finished"]
                if {one.node.rpartition(":")[0] for one in records} != {task.host}:
                    what = f"{query.name} did not run on {task.name} alone"
                    raise InputError(what, where=str(task.host), hint="run it again, with nothing else on the cluster")
                took_s = (max(one.told_ms for one in records) - min(one.granted_ms for one in records)) / 1000.0
                rate = task.count * self.hour_s / took_s
                self.rates.setdefault(query.name, {})[task.name] = rate
                self.decisions.append(
                    {
                        "time_s": round(time.time() - self.zero_s, 3),
                        "event": "rate",
                        "query": query.name,
                        "type": task.name,
                        "tasks": task.count,
                        "took_s": took_s,
                        "tasks_an_hour": rate,
                    }
                )
            for kind in (kind for kind, _ in hosts):
                self.rates[query.name].setdefault(kind.name, 0.0)

    # --- writing ---

    def write(self) -> None:
        """Write the tables and events as far as they are known."""
        events = [{**event, "time_s": round(event["time_s"] - self.zero_s, 3)} for event in self.cloud.events]
        merged = sorted([*self.decisions, *events], key=lambda entry: float(entry["time_s"]))
        self.directory.write_lines("decisions.jsonl", merged)
        rows = [
            {
                "job": job.spec.id,
                "queue": label,
                "type": job.spec.name,
                "submitted_s": round(job.submitted_s - self.zero_s, 3),
                "started_s": round(job.started_s - self.zero_s, 3),
                "finished_s": round(job.finished_s - self.zero_s, 3),
                "completion_s": round(job.finished_s - job.submitted_s, 3),
                "tasks": sum(task.outcome == "finished" for task in job.record.tasks),
                "failed": job.failed,
            }
            for label, served in self.served
            for job in served.jobs
        ]
        self.directory.write_table("jobs.parquet", pd.DataFrame(rows))
        jobs = [job for _, served in self.served for job in served.jobs]
        self.directory.write_table("tasks.parquet", tasks_table(jobs, round(self.zero_s * 1000)))


def _fits(query: Query, kind: InstanceType) -> bool:
    return query.memory_gb <= kind.memory_gb_core
