"""What the read-only commands make of a cluster, beside what its ResourceManager itself counts."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from harness.cli import main
from harness.model.queues import cluster_parts
from harness.traces.recorded import full_name, read_trace
from harness.yarn.queue_answers import CAPACITY
from harness.yarn.rmclient import RmClient


def ended(words: Sequence[str]) -> object:
    """The exit code of `yarnfair` with these words."""
    try:
        main(list(words))
    except SystemExit as end:
        return end.code or 0
    return 0


def read_only(client: RmClient, access: Sequence[str], folder: Path) -> None:
    """Record all applications, which have ended; state and assess what was recorded.

    Each queue's use has to be the ResourceManager's own ``memorySeconds``, to the MB-second, its due what a Capacity
    Scheduler guarantees it, and `assess` has to answer.

    Parameters
    ----------
    client
        Of the ResourceManager.
    access
        The options by which `record` reaches it.
    folder
        Where the trace, the statement and the answer are written.
    """
    trace = folder / "trace.jsonl"
    assert ended(["record", *access, "-o", str(trace)]) == 0
    counted: Counter[str] = Counter()
    for app in client.rest.apps():
        assert app.final, app
        counted[full_name(app.queue)] += app.memory_seconds
    assert sum(counted.values()) > 0
    status = client.rest.scheduler()
    if status.type == CAPACITY:
        # What the scheduler itself guarantees is what is due. The queues that it has created share what their parent
        # has: each is guaranteed what its template says, the rest of the parent nobody. Idle ones have nothing.
        guaranteed = {path: queue.steady_share.memory_mb for path, queue in status.queues.items()}
        header = read_trace(trace).header
        parts = cluster_parts({path: line.weight for path, line in header.queues.items()})
        due = {leaf: parts[leaf] * status.capacity.memory_mb for leaf in header.leaves() if guaranteed[leaf]}
        for parent in {leaf.rpartition(".")[0] for leaf in due}:
            leaves = [leaf for leaf in due if leaf.rpartition(".")[0] == parent]
            below = sum(queue.steady_share.memory_mb for queue in status.queues.values() if queue.parent == parent)
            if below == pytest.approx(guaranteed[parent], abs=2):
                assert {leaf: due[leaf] for leaf in leaves} == pytest.approx(
                    {leaf: guaranteed[leaf] for leaf in leaves}, abs=2
                )
            else:
                assert sum(due[leaf] for leaf in leaves) == pytest.approx(guaranteed[parent], abs=2)
    table = folder / "usage.csv"
    assert ended(["usage", str(trace), "--csv", str(table)]) == 0
    had: Counter[str] = Counter()
    for row in table.read_text().splitlines()[1:]:
        _, queue, user, _, memory_mb_s, *_ = row.split(",")
        if user == "*":
            had[queue] += int(memory_mb_s)
    assert had == counted
    assert ended(["assess", str(trace), "-o", str(folder / "assess")]) == 0
    answer = json.loads((folder / "assess" / "assess.json").read_text())
    assert answer["shape"]["applications"] == len(client.rest.apps())
