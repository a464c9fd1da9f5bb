"""What it costs to begin, to run many small simulations, and how much memory a large one takes."""

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

#: Cells that the workers run before anything is measured: they import, and load what is compiled.
_BEFORE = 6
#: Arrays of the scheduler (first) and of the world (second) that grow with nodes, with applications, with containers.
_GROW = {
    "nodes": (("n",), ("nodes", "ring", "ring_ms")),
    "applications": (("a", "r", "heap"), ("jobs", "stages")),
    "containers": (("c", "k", "log", "work"), ("runs", "ends", "heap_t", "heap_v", "redo", "scratch")),
}


def memory_of(simulation: Any, nodes: int) -> dict[str, float]:
    """MiB of the state's arrays for each thousand nodes, applications, running containers; room to grow included."""
    S, W = simulation.scheduler.S, simulation.world
    counts = {
        "nodes": nodes,
        "applications": int((S.a["alive"] == 1).sum()),
        "containers": int(W.g["live_runs"][0]),
    }
    found = {}
    for what, (scheduler, world) in _GROW.items():
        # The Capacity Scheduler has fewer of them.
        own = sum(getattr(S, name).nbytes for name in scheduler if name in S.layout)
        size = own + sum(getattr(W, name).nbytes for name in world)
        found[what] = round(size / 2**20 / max(counts[what], 1) * 1000, 3)
    return found


def in_python(
    what: str, *command: str, timeout_s: float | None = None, environment: Mapping[str, str] | None = None
) -> str:
    """What a new Python process prints, which measures `what`; YarnfairError if it fails or takes too long."""
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
    """Seconds until the command is imported, until an engine is compiled that nobody has compiled, and of a first run.

    In processes of their own: what a machine does after an installation, and what it does from then on.
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
        # A folder of the user's own choice: nothing compiled is taken from elsewhere.
        kept = str(Path(folder, "kept"))
        compile_ = "import harness.sim.simulate; from harness.sim.compiled import _compile_all as c; c('fair')"
        compiled = timed("-c", compile_, NUMBA_CACHE_DIR=kept)
        run = ("-m", "harness", "run", "demo", "--out", str(Path(folder, "out")))
        timed(*run)  # whatever this machine has not compiled yet
        ran = timed(*run)
    return {
        "import_cpu_s": round(imported, 3),
        "compile_wall_s": round(compiled[0], 1),
        "compile_cpu_s": round(compiled[1], 1),
        "run_wall_s": round(ran[0], 2),
        "run_cpu_s": round(ran[1], 2),
    }


def measure_cells(cells: int = 1000) -> dict[str, Any]:
    """Short simulations as cells of one campaign (ten seeds, policies, settings) on two workers that have run some.

    `own_s`: a cell's own time on its worker; `overhead_s`: what the workers wait for each cell; `busy`: the part of the
    two workers' time that cells have.
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
    """Say how busy workers were with their cells.

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
        ``own_s`` and ``overhead_s`` (what the workers wait) for a cell, and ``busy``, the part of the workers' time
        that cells have. Clocks of two processes differ a little: cells never have more than all of the time.
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
    """A Dask cluster of two workers on this machine; None where Dask is not installed."""
    try:
        import dask
        import distributed
    except ImportError:
        return None
    from harness.experiments.campaign.dask import Dask

    # A machine that is busy with something else starts a worker's process later than Dask waits for it by itself.
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
    """Measure `count` runs of the demo's load, 200 virtual seconds each, that follow the first `before` ones.

    Returns the seconds that they took on their workers, summed, and the elapsed seconds of all of them.
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
