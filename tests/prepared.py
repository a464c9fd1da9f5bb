"""``python -m tests.prepared``: compiles once what is no part of the engine but tests of several workers call.

numba's folder has no lock: workers that come to it at the same time would each compile it. Likewise each of them would
rewrite the assertions of all test files, which takes most of the time that a first collection takes.
"""

from __future__ import annotations

import subprocess
import sys
from fractions import Fraction

import numpy as np

from harness.model.resources import Resource
from harness.model.snapshot import QueueView, Snapshot
from harness.policies.tree import tree_of
from harness.policies.weights import Basis, compiled_shares
from harness.systems.mrorder.ordering.jobs import MapReduceJob, Slots
from harness.systems.qknober.simulator import VectorLoad, simulate


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


if __name__ == "__main__":
    main()
