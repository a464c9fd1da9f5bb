"""Cleans up after killed real runs: stops clusters that they started, and restores files of external clusters."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from harness.base.errors import CallError, InputError
from harness.clusters import processes
from harness.clusters.backends import BACKENDS, make_cluster
from harness.clusters.state import StateFolder, default_folder
from harness.experiments.real.given import put_back_abandoned


def runs_folder() -> Path:
    """Return the default folder of run directories."""
    return default_folder("runs")


def own_folder(backend: str) -> Path:
    """Return this process's folder for a cluster; its name has the backend, and the process's PID and start time."""
    me = next(iter(processes.of_pid(os.getpid())))
    return runs_folder() / f"{backend}-{me.pid}-{me.start_ticks}"


def clean_abandoned(progress: Callable[[str], None] = lambda _: None) -> list[str]:
    """Clean up after runs whose process is gone.

    Stops their clusters, and restores the allocation files of external clusters that such runs have left replaced.
    Returns the names of their folders. ``progress`` receives a message for each file that could not be restored and
    each cluster that could not be stopped.
    """
    root = runs_folder()
    cleaned = put_back_abandoned(root, progress)
    for folder in sorted(root.iterdir()) if root.is_dir() else []:
        backend, _, rest = folder.name.partition("-")
        pid, _, ticks = rest.partition("-")
        if backend not in BACKENDS or not (pid.isdigit() and ticks.isdigit()):
            continue
        if any(process.start_ticks == int(ticks) for process in processes.of_pid(int(pid))):
            continue
        state = StateFolder(folder / "cluster")
        try:
            left = make_cluster(backend, state).down()
            if not left:
                StateFolder(folder).remove()
                cleaned.append(folder.name)
        except (InputError, CallError) as error:
            left = [error.line()]
        if left:
            down = f"`yarnfair cluster down --backend {backend} --state {state.folder}`"
            progress(f"a killed run's cluster is not taken down: {left[0]}; the next run tries it again, or {down}")
    return cleaned
