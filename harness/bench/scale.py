"""Measures the cost of starting, of many small simulations, and the memory of a large simulation."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from itertools import count as count_from
from pathlib import Path
from typing import Any

from harness.base.errors import YarnfairError
from harness.base.ties import ending_with_us

#: Number of cells that workers run before the measurement, to import modules and load compiled code.
_BEFORE = 6
#: Arrays of the scheduler (first) and of the world (second) whose size grows with nodes, applications or containers.
_GROW = {
    "nodes": (("n",), ("nodes", "ring", "ring_ms")),
    "applications": (("a", "r", "heap"), ("jobs", "stages")),
    "containers": (("c", "k", "log", "work"), ("runs", "ends", "heap_t", "heap_v", "redo", "scratch")),
}


def memory_of(simulation: Any, nodes: int) -> dict[str, float]:
    """Return the MiB of the state's arrays per thousand nodes, applications and running containers.

    Reserved space is included.
    """
    S, W = simulation.scheduler.S, simulation.world
    counts = {
        "nodes": nodes,
        "applications": int((S.a["alive"] == 1).sum()),
        "containers": int(W.g["live_runs"][0]),
    }
    found = {}
    for what, (scheduler, world) in _GROW.items():
        # The Capacity Scheduler does not have all of them.
        own = sum(getattr(S, name).nbytes for name in scheduler if name in S.layout)
        size = own + sum(getattr(W, name).nbytes for name in world)
        found[what] = round(size / 2**20 / max(counts[what], 1) * 1000, 3)
    return found


def in_python(
    what: str, *command: str, timeout_s: float | None = None, environment: Mapping[str, str] | None = None
) -> str:
    """Return the output of a new Python process that measures `what`.

    Raises YarnfairError if it fails or takes too long.
    """
    try:
        done = subprocess.run(
            [sys.executable, *command],
            env={**os.environ, **(environment or {})},
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
            preexec_fn=ending_with_us(),
        )
    except subprocess.TimeoutExpired:
        raise YarnfairError(f"measuring {what} took more than {timeout_s:g} s", hint="is the machine busy?") from None
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise YarnfairError(f"measuring {what} failed: {last}")
    return done.stdout


def measure_first() -> dict[str, float]:
    """Return the seconds to import the command, to compile an engine from scratch, and for a run of the demo.

    Each runs in a new process. The figures show the cost right after an installation and from then on.
    """

    def timed(*command: str, **environment: str) -> tuple[float, float]:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        began = time.perf_counter()
        in_python("a first run", *command, environment=environment)
        wall = time.perf_counter() - began
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    with tempfile.TemporaryDirectory(prefix="yarnfair-") as folder:
        _, imported = timed("-c", "import harness.cli")
        # A cache folder of its own, so that no existing compiled code is used.
        kept = str(Path(folder, "kept"))
        compile_ = "import harness.sim.simulate; from harness.sim.compiled import _compile_all as c; c('fair')"
        compiled = timed("-c", compile_, NUMBA_CACHE_DIR=kept)
        run = ("-m", "harness", "run", "demo", "--out", str(Path(folder, "out")))
        timed(*run)  # compiles what this machine has not compiled yet
        ran = timed(*run)
    return {
        "import_cpu_s": round(imported, 3),
        "compile_wall_s": round(compiled[0], 1),
        "compile_cpu_s": round(compiled[1], 1),
        "run_wall_s": round(ran[0], 2),
        "run_cpu_s": round(ran[1], 2),
    }


def measure_cells(cells: int = 1000) -> dict[str, Any]:
    """Measure short simulations as cells of one campaign (seeds, policies, settings) on two workers that are warm.

    Returns the fields of `occupancy` for worker processes and, if installed, for Dask.
    """
    found: dict[str, Any] = {"cells": cells, "workers": 2}
    places: dict[str, Callable[[], Any]] = {"processes": _processes, "dask": _dask}
    for place, make in places.items():
        made = make()
        if made is None:
            continue
        executor, end = made
        try:
            with tempfile.TemporaryDirectory(prefix="yarnfair-") as folder:
                own, wall = _run_cells(_BEFORE, cells, Path(folder), executor)
        finally:
            end()
        found[place] = occupancy(own, wall, cells, workers=2)
    return found


def occupancy(own_s: float, wall_s: float, cells: int, workers: int) -> dict[str, float]:
    """Return how busy workers were with their cells.

    Parameters
    ----------
    own_s : float
        Seconds that the cells took on their workers, summed.
    wall_s : float
        Elapsed seconds of all cells.
    cells : int
        Number of cells.
    workers : int
        Number of workers that ran them side by side.

    Returns
    -------
    dict of str to float
        ``own_s`` is a cell's own time on its worker, ``overhead_s`` the time that workers wait per cell, and ``busy``
        the fraction of the workers' time that cells use. ``busy`` is at most 1: the clocks of two processes differ a
        little.
    """
    waited = max(workers * wall_s - own_s, 0.0)
    return {
        "own_s": round(own_s / cells, 4),
        "overhead_s": round(waited / cells, 4),
        "busy": round(min(own_s / (workers * wall_s), 1.0), 3),
    }


def _processes() -> tuple[Any, Callable[[], None]]:
    from harness.experiments.campaign.executors import Processes

    executor = Processes(2)
    return executor, executor.close


def _dask() -> tuple[Any, Callable[[], None]] | None:
    """Return a Dask cluster of two workers on this machine and a function that stops it.

    Returns None if Dask is not installed.
    """
    try:
        import dask
        import distributed
    except ImportError:
        return None
    from harness.experiments.campaign.dask import Dask

    # On a busy machine a worker's process may start later than Dask's default timeout allows.
    patience = {"distributed.comm.timeouts.connect": "120s", "distributed.comm.timeouts.tcp": "120s"}
    make: Any = distributed.LocalCluster
    with dask.config.set(patience):
        cluster = make(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None)
    executor = Dask(cluster.scheduler_address.replace("tcp://", "dask://"))

    def end() -> None:
        executor.close()
        cluster.close()

    return executor, end


def _run_cells(before: int, count: int, out: Path, executor: Any) -> tuple[float, float]:
    """Run `before` cells of 200 virtual seconds of the demo's load, then measure `count` more.

    Returns the sum of the seconds that these took on their workers, and their elapsed seconds.
    """
    from harness.base.documents import read_yaml
    from harness.experiments.campaign.clusters import Place
    from harness.experiments.campaign.run import Watch, run_campaign
    from harness.experiments.campaign.spec import of_one
    from harness.experiments.kind import Target, kind_of
    from harness.experiments.resolve import experiment_path
    from harness.experiments.selection import Selection

    document = read_yaml(experiment_path("demo"))
    document.data["limits"] = {"duration_s": 200}
    kind = kind_of(document)
    experiment = kind.load(document)
    variants: list[Any] = []
    for setting in count_from(1):
        if len(variants) >= before + count:
            break
        policies = ["ltrf", "ltrf@outside", "naive-hltrf", "naive-hltrf@outside"]
        variants += kind.variants(experiment, Selection(policies, {"horizon_s": str(40 * setting)}, range(1, 11)))
    variants = variants[: before + count]
    ended: list[tuple[float, float]] = []
    watch = Watch(end=lambda cell, told, state: ended.append((time.perf_counter(), told.wall_s or 0.0)))
    campaign = of_one(experiment, variants, Place("sim", "sim", Target()))
    run_campaign(campaign, out, executor, watch=watch, fresh=True, strict=True)
    return sum(own for _, own in ended[before:]), ended[-1][0] - ended[before - 1][0]
