"""``python -m tests.prepared [decisions]``: compiles once what tests of several workers call and the engine lacks.

numba's folder has no lock: workers that come to it at the same time would each compile it. Likewise each of them would
rewrite the assertions of all test files, which takes most of the time that a first collection takes.

With ``decisions``, once the engine is compiled: what decision scripts call besides.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
from fractions import Fraction

import numpy as np

from harness.base.errors import InputError
from harness.model.resources import Resource
from harness.model.snapshot import QueueView, Snapshot
from harness.policies.tree import tree_of
from harness.policies.weights import Basis, compiled_shares
from harness.sim.compiled import compile_engine
from harness.sim.decide import decider
from harness.systems.mrorder.ordering.jobs import MapReduceJob, Slots
from harness.systems.qknober.simulator import VectorLoad, simulate
from tests.fuzz.engine import random_script
from tests.oracle.decisions import load, recorded_fifo


def main() -> None:
    # What pytest finds wrong here, it says when the tests run.
    collect = [sys.executable, "-m", "pytest", "--collect-only", "-qq", "-p", "no:cacheprovider", "tests"]
    collected = subprocess.Popen(collect, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.STDOUT)
    try:
        _compile()
    finally:
        collected.wait()


def _compile() -> None:
    # After the simulator, which says where compiled code is kept.
    from harness.systems.mrorder.ordering.search import optimal

    jobs = [MapReduceJob(str(i), 3 + i, Fraction(2 + i % 3), 1 + i % 2, Fraction(3)) for i in range(8)]
    optimal(jobs, Slots(2, 2), "makespan")
    optimal(jobs, Slots(2, 2), "tct")
    queues = {"root": QueueView("root", None, False), "root.a": QueueView("root.a", "root", True)}
    tree = tree_of(Snapshot(0.0, Resource(1, 1), queues))
    compiled_shares(tree, Basis([0.0, 0.0], 1.0, 1.0, [1.0, 1.0], [True, True]), 0.3)
    one = np.zeros(1, np.int64)
    task = np.ones((1, 1))
    simulate(
        VectorLoad(servers=task, weights=np.ones(1), user=one, submit_ms=one, duration_ms=one + 1, demand=task), "drf"
    )


def _decide() -> None:
    for scheduler in ("fair", "capacity"):
        # These have moves, preemption, priorities and nodes that go: each calls kernels that no simulation calls so.
        for seed in range(12):
            with contextlib.suppress(InputError):
                decider(random_script(seed, scheduler)).run()
    compile_engine("fifo")
    for path in recorded_fifo():
        script, _ = load(path)
        decider(script).run()


if __name__ == "__main__":
    if sys.argv[1:] == ["decisions"]:
        _decide()
    else:
        main()
