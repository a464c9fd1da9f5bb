"""How long a fresh checkout takes until `make run` shows its first figures, and again: docs/reference/bench.md.

    nice -n -13 python -m studies.first_run -o FILE

The commit checked out here is cloned into a folder of its own, with a home of its own: nothing compiled is found. What
pip has downloaded before is, so that the network is not measured. A run's first figures are the first lines that it
prints to standard output.
"""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.base.errors import YarnfairError
from studies.result import main_of

ROOT = Path(__file__).resolve().parents[1]


def _timed(command: Sequence[str], folder: Path, environment: Mapping[str, str]) -> dict[str, float]:
    """Seconds until a command's first line on standard output, until its end, and of CPU."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began, first_s = time.perf_counter(), None
    with subprocess.Popen(
        command, cwd=folder, env=dict(environment), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdout is not None
        for _ in process.stdout:
            first_s = first_s or time.perf_counter() - began
    wall_s = time.perf_counter() - began
    if process.returncode:
        raise YarnfairError(f"{' '.join(command)} ended with {process.returncode}", where=str(folder))
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {
        "first_s": round(first_s if first_s is not None else wall_s, 1),
        "wall_s": round(wall_s, 1),
        "cpu_s": round(cpu_s, 1),
    }


def measure() -> dict[str, Any]:
    folder = Path(tempfile.mkdtemp(prefix="yarnfair-first-run-"))
    try:
        subprocess.run(["git", "clone", "-q", str(ROOT), str(folder / "clone")], check=True)
        clone, home = folder / "clone", folder / "home"
        home.mkdir()
        downloads = subprocess.run(
            [sys.executable, "-m", "pip", "cache", "dir"], capture_output=True, text=True, check=True
        ).stdout.strip()
        environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith(("NUMBA", "XDG", "VIRTUAL"))},
            "HOME": str(home),
            "PIP_CACHE_DIR": downloads,
        }
        # What `make run` does, in its two parts; `make` prints the commands, the program its figures.
        install = _timed(["make", ".venv/.needed-installed"], clone, environment)
        run = ["make", "-s", "run"]
        return {"install": install, "first": _timed(run, clone, environment), "second": _timed(run, clone, environment)}
    finally:
        shutil.rmtree(folder, ignore_errors=True)


main = main_of("first_run", __doc__, measure)


if __name__ == "__main__":
    sys.exit(main())
