"""What a simulated scheduler costs: one package outside the tree, and scripts and experiments use it by its name."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

EXTENSION = '''
"""A scheduler that serves the youngest application first."""

from harness.base.extensions import Extension

EXTENSION = Extension(name="youngest", schedulers={"youngest": "youngest_package.scheduler:YOUNGEST"})
'''
SCHEDULER = '''
"""As the FIFO scheduler, but for the order of applications."""

from dataclasses import replace

from harness.sim.arrays import at_address
from harness.sim.containers import link_ask
from harness.sim.fifo import state as fifo
from harness.sim.fifo.api import Scheduler
from harness.sim.fifo.decide import FifoDecider
from harness.sim.fifo.kernels import insert_asking
from harness.sim.fifo.ops import OPS
from harness.sim.fifo.scheduler import FIFO
from harness.sim.kernel import kernel
from harness.sim.loop import run
from harness.sim.observe import fill
from harness.sim.world import World


class State(fifo.State):
    scheduler = "youngest"


@kernel
def put_ask(s, i, priority, alloc_id):
    r = link_ask(s, i, priority, alloc_id)
    if s.a[i].n_req == 1:
        q = s.q[fifo.DEFAULT]
        behind = q.ask_tail
        while behind >= 0 and s.a[behind].id < s.a[i].id:
            behind = s.a[behind].ask_prev
        insert_asking(s.a, q, i, behind)
    return r


state_at, world_at = at_address(State), at_address(World)


@kernel
def run_at(state, world):
    return run(state_at(state), world_at(world))


@kernel
def look_at(state, world, ints, reals, now):
    fill(state_at(state), world_at(world), ints, reals, now, 1)


class Youngest(Scheduler):
    def __init__(self, *args, **more):
        super().__init__(*args, **more)
        self.S = State(*self.S)


class Decider(FifoDecider):
    def _scheduler(self, options, driven):
        return Youngest(self.conf, self.nodes, driven)


YOUNGEST = replace(
    FIFO,
    name="youngest",
    title="youngest-first scheduler",
    state=State,
    ops=replace(OPS, put_ask=put_ask),
    run_at=run_at,
    look_at=look_at,
    make=lambda request: Youngest(request.setup.conf, request.setup.nodes),
    script_key="youngest",
    decide=Decider,
)
'''
ENTRY = """\
[yarnfair.systems]
youngest = youngest_package:EXTENSION
"""
SCRIPT = {
    "scheduler": "youngest",
    "options": {"shares": "none"},
    "nodes": [{"name": "n", "memory_mb": 4096, "vcores": 4}],
    "events": [
        {"t": 0, "node": "n"},
        *({"t": 1, "app": name, "queue": "default"} for name in ("old", "young")),
        *({"t": 2, "ask": name, "count": 3, "memory_mb": 1024} for name in ("old", "young")),
        {"t": 3, "heartbeat": "n"},
    ],
}
EXPERIMENT = """
experiment: youngest
cluster: {nodes: [{count: 2, memory_mb: 4096, vcores: 4}]}
queues: {default: {}}
workloads:
  default:
    inline:
      kind: sequence
      submission: {every_s: 5}
      rounds: 1
      am: {memory_mb: 1024, vcores: 1}
      task: {demand: {memory_mb: 1024, vcores: 1}, duration: {lognormal: {mean_s: 15, sigma: 0.3}}}
      jobs:
        - {name: old, maps: 60}
        - {name: young, maps: 12}
scheduler: youngest
policies: [fifo]
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An installed package, as `pip` leaves one."""
    package, metadata = tmp_path / "youngest_package", tmp_path / "youngest_package-1.0.dist-info"
    package.mkdir()
    metadata.mkdir()
    (package / "__init__.py").write_text(EXTENSION)
    (package / "scheduler.py").write_text(SCHEDULER)
    (metadata / "entry_points.txt").write_text(ENTRY)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: youngest-package\nVersion: 1.0\n")
    return tmp_path


def called(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "harness", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder), "XDG_STATE_HOME": str(folder / "state"), **environment},
        capture_output=True,
        text=True,
        timeout=1800,
        check=False,
    )


def yarnfair(folder: Path, *arguments: str, **environment: str) -> Any:
    done = called(folder, *arguments, **environment)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


def test_a_scheduler_is_one_package(folder: Path) -> None:
    (folder / "script.json").write_text(json.dumps(SCRIPT))
    # Without compilation: the same kernels as Python has them.
    answer = yarnfair(folder, "decide", "script.json", "--json", NUMBA_DISABLE_JIT="1")
    assert [one["app"] for one in answer["assignments"]] == ["young", "young", "young", "old"]


@pytest.mark.long
def test_an_experiment_runs_on_it(folder: Path) -> None:
    (folder / "youngest.yaml").write_text(EXPERIMENT)
    yarnfair(folder, "run", "youngest.yaml", "--json", "--out", "runs")
    (run,) = (folder / "runs").glob("*/run.json")
    record = json.loads(run.read_text())
    assert (record["experiment"]["scheduler"], record["policy"]["name"], record["exit"]) == ("youngest", "fifo", 0)
    ended = pd.read_parquet(run.with_name("jobs.parquet")).set_index("type")["finished_s"]
    # The short one comes 5 s later, to 8 places of which the long one has all, and gets each that falls free.
    assert ended["young"] < ended["old"]


def test_a_policy_of_another_scheduler_is_refused_in_its_words(folder: Path) -> None:
    (folder / "youngest.yaml").write_text(EXPERIMENT)
    refused = called(folder, "run", "youngest.yaml", "--policy", "capacity")
    assert refused.returncode == 2
    assert "policy capacity runs on the Capacity Scheduler, not on the youngest-first scheduler" in refused.stderr
    assert "take policy fifo, or write scheduler: capacity" in refused.stderr


def test_its_kernels_decide_where_compiled_code_is_kept(folder: Path) -> None:
    code = "from harness.base.machine_code import digest; print(digest())"

    def digest() -> str:
        environment = {**os.environ, "PYTHONPATH": str(folder)}
        done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
        return done.stdout

    before = digest()
    assert digest() == before
    with (folder / "youngest_package" / "scheduler.py").open("a") as file:
        file.write("# another\n")
    assert digest() != before
