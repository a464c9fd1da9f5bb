"""The performance measurements of one machine: the engine under load, a day of Facebook, growth, decisions of policies.

Each measurement runs in its own process, so that its peak memory is its own. docs/reference/bench.md describes the
measurements. The timed engine is the one that is compared with the oracle.
"""

from __future__ import annotations

import itertools
import json
import math
import random
import resource
import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from harness.base.errors import YarnfairError
from harness.base.extensions import extensions, load
from harness.bench.calibration import CORE, SHARED, Calibration, calibrate, ratios
from harness.bench.control import measure_control, measure_decisions
from harness.bench.scale import in_python, measure_cells, measure_first, memory_of
from harness.model.data import data_path
from harness.model.jobs import Duration, JobSpec, NodeSpec, Stage
from harness.model.plan import Order, Plan
from harness.model.resources import Resource
from harness.model.snapshot import QueueView, Snapshot
from harness.policies.base import LedgerView, Policy
from harness.policies.weights import use_compiled

#: A configuration with all costly features of the Fair Scheduler: weights, levels, minimum and maximum shares, limits
#: on applications, fifo and fair leaves, preemption, and jobs with containers large enough for reservations.
LOADED = """<allocations>
  <queue name="a"><weight>2.0</weight><minResources>65536 mb, 32 vcores</minResources></queue>
  <queue name="b"><schedulingPolicy>fifo</schedulingPolicy><maxAMShare>0.6</maxAMShare></queue>
  <queue name="g"><weight>1.5</weight>
    <queue name="c"><maxRunningApps>30</maxRunningApps></queue>
    <queue name="d"><weight>0.7</weight><maxResources>70.0%</maxResources></queue>
  </queue>
  <defaultFairSharePreemptionTimeout>30</defaultFairSharePreemptionTimeout>
  <defaultMinSharePreemptionTimeout>15</defaultMinSharePreemptionTimeout>
  <userMaxAppsDefault>1000</userMaxAppsDefault>
</allocations>"""
LOADED_LEAVES = ("root.a", "root.b", "root.g.c", "root.g.d")
LOADED_CONF = {
    "yarn.scheduler.fair.preemption": "true",
    "yarn.scheduler.increment-allocation-mb": "512",
    "yarn.scheduler.minimum-allocation-mb": "512",
}
_YEAR_S = 365 * 86_400.0
FOUR = '<allocations><queue name="a"/><queue name="b"/><queue name="c"/><queue name="d"/></allocations>'
FOUR_LEAVES = ("root.a", "root.b", "root.c", "root.d")
ONE = Resource(1024, 1)
#: Mean work of a task in the measurements, s.
TASK_S = 20.0
TASKS = Duration("lognormal", mu=math.log(TASK_S) - 0.125, sigma=0.5)


class ByUsage(Policy):
    """A policy as a user would write it, to measure its cost.

    The queue with the least allocated memory per entitlement comes first.
    """

    name = "bench-by-usage"

    def plan(self, snapshot: Snapshot, ledger: LedgerView) -> Plan:
        """Return a plan that orders leaves by this policy's keys, ignoring the tree, and leaves weights unchanged."""
        return Plan(order=Order(measure="keys", flat=True))

    def key(self, queue: QueueView, counted: float, snapshot: Snapshot) -> float:
        """Return the queue's allocated memory (MiB) per unit of entitlement."""
        return queue.allocated.memory_mb / queue.weight


def peak_mb() -> float:
    """Return the largest resident set of this process so far, MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0


# --- the engine under load ---


def engine_load(policy: Policy | None, nodes: int, seconds: float, applications: int = 160) -> Any:
    """Return a simulation of applications with unlimited work, 16 containers per node, and all features of `LOADED`."""
    from harness.sim.setup import SimSetup
    from harness.yarn.fair.parse import parse_allocations

    large = Resource(1536, 1)
    jobs = []
    for i in range(applications):
        size = large if i % 8 == 0 else ONE
        stage = Stage("map", 1_000_000, size, TASKS)
        jobs.append(JobSpec(f"j{i}", LOADED_LEAVES[i % 4], "mapreduce", ONE, (stage,), submit_s=8.0 / applications * i))
    return SimSetup(
        nodes=tuple(NodeSpec(f"n{i}", 16 * 1024, 16) for i in range(nodes)),
        allocations=parse_allocations(LOADED, source="bench"),
        jobs=jobs,
        policy=policy,
        conf=LOADED_CONF,
        sample_s=10.0,
        time_limit_s=seconds,
    )


#: The costly features of the Capacity Scheduler besides the weights, levels and maxima of the tree.
LOADED_CAPACITY = {
    "root.ordering-policy": "priority-utilization",
    "root.a.priority": "1",
    "minimum-user-limit-percent": "25",
    "user-limit-factor": "4",
    "maximum-am-resource-percent": "0.6",
}


def _capacity_load(queues: int, nodes: int, seconds: float) -> Any:
    """Return the setup of `engine_load` on the Capacity Scheduler.

    With more than four queues, all of them are children of root and have one job each.
    """
    from harness.yarn.fair.parse import parse_allocations

    setup = engine_load(None, nodes, seconds)
    jobs = [replace(job, user=f"u{i % 5}") for i, job in enumerate(setup.jobs)]
    allocations = setup.allocations
    if queues > len(LOADED_LEAVES):
        names = [f"q{i}" for i in range(queues)]
        rows = "".join(f'<queue name="{name}"><weight>{1 + i % 7}</weight></queue>' for i, name in enumerate(names))
        allocations = parse_allocations(f"<allocations>{rows}</allocations>", source="bench")
        jobs = [
            replace(jobs[i % 160], id=f"j{i}", queue=f"root.{name}", submit_s=0.01 * i) for i, name in enumerate(names)
        ]
    capacity = {
        key: value for key, value in LOADED_CAPACITY.items() if queues == len(LOADED_LEAVES) or "root" not in key
    }
    conf = {"yarn.scheduler.minimum-allocation-mb": "512"}
    return replace(setup, allocations=allocations, jobs=jobs, scheduler="capacity", capacity=capacity, conf=conf)


def _many_queues(setup: Any, queues: int) -> Any:
    """Return the setup of `engine_load` on `queues` leaves in groups of 32, with one job each.

    The scheduler's features are the same. The jobs' container sizes repeat after 160 jobs.
    """
    from harness.yarn.fair.parse import parse_allocations

    def leaf(i: int) -> str:
        more = ""
        if i % 4 == 0:
            more += f"<minResources>{2048 * (1 + i % 3)} mb, {1 + i % 3} vcores</minResources>"
        if i % 5 == 1:
            more += "<maxResources>16384 mb, 16 vcores</maxResources>"
        if i % 8 == 2:
            more += "<maxRunningApps>30</maxRunningApps>"
        if i % 16 == 3:
            more += "<schedulingPolicy>fifo</schedulingPolicy><maxAMShare>0.6</maxAMShare>"
        return f'<queue name="q{i}"><weight>{1 + i % 7}</weight>{more}</queue>'

    groups = [range(at, min(at + 32, queues)) for at in range(0, queues, 32)]
    rows = "".join(
        f'<queue name="g{n}"><weight>{1 + n % 3}</weight>{"".join(map(leaf, group))}</queue>'
        for n, group in enumerate(groups)
    )
    tail = LOADED[LOADED.index("  <default") :]
    jobs = [
        replace(setup.jobs[i % 160], id=f"j{i}", queue=f"root.g{i // 32}.q{i}", submit_s=0.01 * i)
        for i in range(queues)
    ]
    return replace(setup, allocations=parse_allocations(f"<allocations>{rows}{tail}", source="bench"), jobs=jobs)


#: Number of measured stretches of a load, each between two runs of the calibration loops.
_STRETCHES = 8


def measure_engine(
    policy: str, nodes: int = 100, warm_s: float = 120.0, events: int = 1_000_000, applications: int = 160
) -> dict[str, Any]:
    """Return the container starts and ends per second of processor time on a full cluster (median of the stretches).

    The speed of a machine that others use too changes within a second. The calibration loops therefore run between any
    two stretches, and each stretch is compared with the loops next to it. Further fields: docs/reference/bench.md.

    ``policy``: a policy's name, ``user_policy``, or ``capacity``, with ``_N`` for N queues instead of four; ``warm_s``:
    virtual seconds before the first stretch; ``events``: number of events in all stretches together.
    """
    from harness.policies.registry import make_policy
    from harness.sim.simulate import Simulation

    if policy.startswith("capacity"):
        setup = _capacity_load(int(policy.partition("_")[2] or len(LOADED_LEAVES)), nodes, warm_s)
    else:
        name, _, queues = policy.partition("_") if policy != "user_policy" else (policy, "", "")
        made = ByUsage() if policy == "user_policy" else make_policy(name, {})
        setup = engine_load(made, nodes, warm_s, applications)
        if queues:
            setup = _many_queues(setup, int(queues))
    simulation = Simulation(setup)
    simulation.keyed.compile()
    g = simulation.world.g
    simulation.run()
    loops = {"calibration": Calibration(SHARED), "core": Calibration(CORE)}
    steps = {name: [loop.steps_per_s()] for name, loop in loops.items()}
    per_s = 2 * nodes * 16 / TASK_S
    took: list[tuple[int, float]] = []  # events and seconds of each stretch
    since_s = [float(g["now"][0]) / 1000.0]
    for _ in range(_STRETCHES):
        before = int(g["started"][0] + g["ended"][0])
        g["limit_ms"] += max(round(events / _STRETCHES / per_s * 1000), 1)
        began = time.process_time()
        simulation.proceed()
        took.append((int(g["started"][0] + g["ended"][0]) - before, time.process_time() - began))
        since_s.append(float(g["now"][0]) / 1000.0)
        for name, loop in loops.items():
            steps[name].append(loop.steps_per_s())
    began = time.process_time()
    result = simulation.run()  # the run is over; this makes the result once for all stretches
    each_s = (time.process_time() - began) / _STRETCHES
    rates = [done / (used + each_s) for done, used in took]
    root = result.samples.queues.index("root")
    least_load = 1.0
    for begin, end in itertools.pairwise(since_s):
        stretch = (result.samples.time_s > begin) & (result.samples.time_s <= end)
        load = result.samples.allocated_mb[stretch, root] / result.samples.capacity_mb[stretch]
        least_load = min(least_load, float(load.mean()) if len(load) else 1.0)
    leaves = [q for q in range(len(result.samples.queues)) if result.samples.leaf[q]]
    return {
        "events_per_s": round(statistics.median(rates)),
        **ratios(rates, steps),
        "events": sum(done for done, _ in took),
        "load": round(least_load, 4),
        "queues": len(leaves),
        "pending_applications": int((simulation.scheduler.S.a["pending_mb"] > 0).sum()),
        "nodes": nodes,
        "peak_mb": round(peak_mb(), 1),
        "mb_per_1000": memory_of(simulation, nodes),
    }


# --- a day of Facebook, and growth ---


def _day(repeat: int) -> Iterator[JobSpec]:
    """Yield the jobs of the FB-2009 trace on `repeat` successive days, assigned to four queues in turn."""
    from harness.traces.swim import read_swim, swim_jobs

    path = data_path("workloads", "facebook", "FB-2009_samples_24_times_1hr_1.tsv")
    count = 0
    for day in range(repeat):
        for job in swim_jobs(
            read_swim(path),
            queue="root.a",
            of_map=(ONE, TASKS),
            of_reduce=(ONE, TASKS),
            am=ONE,
            slow_start=1.0,
            start_s=day * 86400.0,
        ):
            yield replace(job, id=f"{day}.{job.id}", queue=FOUR_LEAVES[count % 4])
            count += 1


def day_nodes() -> int:
    """Return the number of nodes of 4 containers that the day's tasks load to 90 % over 24 hours."""
    tasks = sum(stage.tasks for job in _day(1) for stage in job.stages)
    return math.ceil(tasks * TASK_S / 86400.0 / 0.9 / 4)


def _run(setup: Any) -> dict[str, Any]:
    from harness.control.virtual import simulate_policy

    began, cpu = time.perf_counter(), time.process_time()
    result = simulate_policy(setup)
    wall, used = time.perf_counter() - began, time.process_time() - cpu
    root = result.samples.queues.index("root")
    day = result.samples.time_s <= min(result.end_s, 86400.0)
    load = result.samples.allocated_mb[day, root] / np.maximum(result.samples.capacity_mb[day], 1)
    return {
        "wall_s": round(wall, 3),
        "cpu_s": round(used, 3),
        "peak_mb": round(peak_mb(), 1),
        "events": result.events,
        "nodes": len(setup.nodes),
        "events_per_s": round(result.events / used),
        "load": round(float(load.mean()), 4),
        "jobs": len(result.jobs["id"]),
        "ticks": result.ticks,
        "virtual_s": result.end_s,
    }


def _four(nodes: int, jobs: Iterator[JobSpec], policy: str, **more: Any) -> Any:
    from harness.policies.registry import make_policy
    from harness.sim.setup import SimSetup
    from harness.yarn.fair.parse import parse_allocations

    return SimSetup(
        nodes=tuple(NodeSpec(f"n{i}", 4096, 4) for i in range(nodes)),
        allocations=parse_allocations(FOUR, source="bench"),
        jobs=jobs,
        policy=make_policy(policy, {}),
        sample_s=60.0,
        record_decisions=False,
        **more,
    )


def _warm() -> None:
    """Run small simulations so that everything that compiles at first use is compiled."""
    use_compiled()
    job = JobSpec("w", "root.a", "mapreduce", ONE, (Stage("map", 2, ONE, TASKS),))
    _run(_four(1, iter([job]), "ltrf", mode="outside", period_s=1.0))
    _run(_four(1, iter([job]), "ltrf"))


def measure_fb_day() -> dict[str, Any]:
    """Measure the whole day under LTRF on an unmodified scheduler, with a poll and a decision every virtual second."""
    _warm()
    before = peak_mb()
    figures = _run(_four(day_nodes(), _day(1), "ltrf", mode="outside", period_s=1.0))
    figures["peak_before_mb"] = round(before, 1)
    return figures


def measure_days(days: int) -> dict[str, Any]:
    """Measure `days` days of the Facebook load on the cluster of one day, with LTRF in the scheduler."""
    _warm()
    return {"days": days, **_run(_four(day_nodes(), _day(days), "ltrf"))}


def _steady(nodes: int, seconds: float) -> Iterator[JobSpec]:
    """Yield jobs of 50 tasks on average at equal intervals, which load the nodes to about 90 %."""
    per_job = 50
    gap = per_job * TASK_S / (nodes * 4 * 0.88)
    count = int(seconds / gap)
    for i in range(count):
        tasks = 20 + (i * 37) % 61
        yield JobSpec(
            f"j{i}", FOUR_LEAVES[i % 4], "mapreduce", ONE, (Stage("map", tasks, ONE, TASKS),), submit_s=i * gap
        )


def measure_nodes(nodes: int, seconds: float) -> dict[str, Any]:
    """Measure a steady load on this many nodes for this many virtual seconds, with LTRF in the scheduler."""
    _warm()
    return {"days": round(seconds / 86400.0, 4), **_run(_four(nodes, _steady(nodes, seconds), "ltrf"))}


def _rare() -> Iterator[JobSpec]:
    """Yield 1,000 jobs of 100 tasks on average at random times of a year."""
    rng = random.Random(1)
    times = sorted(rng.uniform(0.0, _YEAR_S) for _ in range(1000))
    for i, submit_s in enumerate(times):
        stage = Stage("map", rng.randrange(1, 200), ONE, Duration("exponential", value_s=300.0))
        yield JobSpec(f"j{i}", FOUR_LEAVES[i % 4], "mapreduce", ONE, (stage,), submit_s=submit_s)


def measure_idle_year() -> dict[str, Any]:
    """Measure a year that is idle most of the time, with LTRF in the scheduler and one sample per hour."""
    _warm()
    setup = replace(_four(20, _rare(), "ltrf"), sample_s=3600.0, time_limit_s=2 * _YEAR_S)
    return {"days": 365, **_run(setup)}


# --- all measurements ---

_PARTS: dict[str, Callable[..., Any]] = {
    "calibrate": calibrate,
    "engine": measure_engine,
    "fb_day": measure_fb_day,
    "days": measure_days,
    "nodes": measure_nodes,
    "idle_year": measure_idle_year,
    "decisions": measure_decisions,
    "control": measure_control,
    "first": measure_first,
    "cells": measure_cells,
}


def part(name: str) -> Callable[..., Any]:
    """Return the function that makes one measurement, of the core or of an extension (`harness.base.extensions`)."""
    for extension in extensions():
        if name in extension.benchmarks:
            measured: Callable[..., Any] = load(extension.benchmarks[name])
            return measured
    return _PARTS[name]


#: Nodes and applications of the rows of `scale`; the others are compared with the first.
SCALE = ((100, 160), (1000, 160), (10_000, 160), (1000, 10_000), (10_000, 10_000), (50_000, 10_000))


def in_own_process(part: str, *args: Any, timeout_s: float) -> Any:
    """Run one measurement in a new Python process and return its result.

    Raises YarnfairError if it fails or takes too long.
    """
    code = (
        "import json,sys; from harness.bench.run import part; "
        "print(json.dumps(part(sys.argv[1])(*json.loads(sys.argv[2]))))"
    )
    return json.loads(in_python(part, "-c", code, part, json.dumps(args), timeout_s=timeout_s))


def bench(full: bool, say: Callable[[str], None], *, engine_only: bool = False) -> dict[str, Any]:
    """Return all figures (fields: docs/reference/bench.md), or only the engine's.

    ``say`` gets the label of each measurement.
    """
    began = time.perf_counter()

    def measure(label: str, part: str, *args: Any, timeout_s: float = 300.0) -> Any:
        say(label)
        return in_own_process(part, *args, timeout_s=timeout_s * (12 if full else 1))

    engine: dict[str, Any] = {}
    many = ("fair_1000", "drf_1000", "ltrf_1000", "hltrf_1000", "capacity_1000")
    for policy in ("fair", "drf", "ltrf", "hltrf", "user_policy", "capacity", *many):
        events = 3_000_000 if full else 1_000_000
        nodes = 400 if policy in many else 100
        label = f"engine under load: {policy}"
        engine[policy] = measure(label, "engine", policy, nodes, 120.0, events, timeout_s=1200.0)
    for policy in many:
        four = engine[policy.partition("_")[0]]
        engine[policy]["of_4_queues"] = round(engine[policy]["core_ratio"] / four["core_ratio"], 3)
    if engine_only:
        return {"engine": engine, "wall_s": round(time.perf_counter() - began, 1)}
    cost: dict[str, float] = {}

    def costs(cpu_s: Mapping[str, float]) -> None:
        """Convert CPU seconds to millions of steps of the calibration loop, which is run now."""
        steps = measure("calibration", "calibrate")
        cost.update({name: round(seconds * steps / 1e6, 3) for name, seconds in cpu_s.items()})

    fb_day = measure("a day of Facebook, control every second", "fb_day")
    costs({"fb_day": fb_day["cpu_s"]})
    idle_year = measure("1,000 jobs in a year", "idle_year")
    costs({"idle_year": idle_year["cpu_s"]})
    growth = []
    for nodes, seconds in ((60, 21600.0), (600, 7200.0), (6000, 1800.0)):
        span = seconds * (12 if full else 1)
        growth.append(measure(f"growth: {nodes} nodes", "nodes", nodes, span))
    for days in (1, 2, 5, 10) if full else (1, 10):
        growth.append(measure(f"growth: {days} day(s)", "days", days))
    scale: dict[str, Any] = {}
    for nodes, applications in SCALE:
        label = f"scale: {nodes} nodes, {applications} applications"
        # The nodes are full after 40 s; warming the largest cluster for longer would only take time.
        warm_s = 120.0 if nodes < 50_000 else 40.0
        row = measure(label, "engine", "ltrf", nodes, warm_s, 1_000_000, applications)
        scale[f"nodes_{nodes}_applications_{applications}"] = {**row, "applications": applications}
    first_row = next(iter(scale.values()))
    for row in scale.values():
        row["of_100_nodes"] = round(row["core_ratio"] / first_row["core_ratio"], 3)
    first = measure("a first run", "first", timeout_s=600.0)
    costs({name: first[f"{name}_cpu_s"] for name in ("import", "compile", "run")})
    cells = measure("short cells", "cells")
    names = ("static", "fair", "drf", "fifo", "ltrf", "naive-hltrf", "hltrf", "qknober")
    decision = measure("decisions", "decisions", names, (10, 100, 1000, 10000) if full else (10, 100, 1000))
    sizes = (4, 100, 1000, 10000) if full else (4, 100, 1000)
    control = measure("control ticks", "control", ("fair", "ltrf", "naive-hltrf", "hltrf"), sizes)
    costs(
        {
            f"{kind}_{name}_{row['queues']}": row["ms"] / 1000.0
            for kind, series in (("plan", decision), ("tick", control))
            for name, rows in series.items()
            for row in rows
            if row["queues"] == 1000
        }
    )
    added: dict[str, Any] = {}
    for name in (name for extension in extensions() for name in extension.benchmarks):
        try:
            added[name] = measure(name, name, 60.0, timeout_s=240.0)
        except YarnfairError as error:
            # Keep the other figures if this one fails.
            say(f"{name}: none ({error.what})")
            added[name] = None
    return {
        "engine": engine,
        "fb_day": fb_day,
        "idle_year": idle_year,
        "growth": growth,
        "scale": scale,
        "first": first,
        "cells": cells,
        "decision": decision,
        "control": control,
        "cost": cost,
        **added,
        "wall_s": round(time.perf_counter() - began, 1),
    }
