"""What is kept of a run's queues over time: as they were, in the tree's order, whatever room it takes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from harness.model.queues import QueueTree
from harness.sim.loop import F_ACC, F_DUE_FLAT, F_QUANTUM, F_WEIGHT, I_MB
from harness.sim.table import SampleLog
from harness.sim.world import new_world
from harness.yarn.fair.manager import queue_tree
from harness.yarn.fair.parse import parse_allocations


def log(**more: Any) -> tuple[SampleLog, Any]:
    tree: QueueTree = queue_tree(
        parse_allocations('<allocations><queue name="a"/><queue name="b"/></allocations>', source="test")
    )
    order = [0, 2, 1]  # the scheduler has b before a
    assert [queue.path for queue in tree] == ["root", "root.a", "root.b"]
    made = SampleLog(tree, order, {queue.path: 0.5 for queue in tree}, 2.0, **more)
    return made, new_world(1, 3, containers=1, sample_rows=4)


def filled(made: SampleLog, world: Any, blocks: list[int]) -> None:
    """Take three samples a block, each value of its own: memory up to the block's figure."""
    at = 0
    for most in blocks:
        for row in range(3):
            world.samp_t[row] = (1000 * at, 10, 1)
            world.samp_i[row] = at + np.arange(18).reshape(3, 6)
            world.samp_i[row, 1, I_MB] = most
            world.samp_f[row] = at + np.arange(18).reshape(3, 6) / 8
            at += 1
        world.g["sample_n"] = 3
        made.take(world)


@pytest.mark.parametrize("blocks", [[7], [7, 2**40, 9], [-(2**35)], []])
def test_samples_are_as_they_were_whatever_they_hold(blocks: list[int]) -> None:
    made, world = log()
    filled(made, world, blocks)
    samples = made.samples()
    n = 3 * len(blocks)
    rows = np.arange(n)[:, None]
    assert samples.time_s.tolist() == list(range(n))
    assert samples.allocated_mb.dtype == np.int64
    assert samples.allocated_mb.shape == (n, 3)
    assert samples.allocated_mb[:, 2].tolist() == [most for most in blocks for _ in range(3)]
    assert (samples.allocated_mb[:, [0, 1]] == rows + np.array([0, 12]) + I_MB).all()
    assert (samples.weight == rows + (np.array([0, 12, 6]) + F_WEIGHT) / 8).all()
    assert (samples.accumulated == (rows + (np.array([0, 12, 6]) + F_ACC) / 8) * 0.002).all()
    assert samples.due_flat is None
    assert samples.quantum_s is None


def test_what_few_runs_have_is_kept_where_they_have_it() -> None:
    for uneven, quanta in ((True, False), (False, True), (True, True)):
        made, world = log(uneven=uneven, quanta=quanta)
        filled(made, world, [7])
        samples = made.samples()
        places, rows = np.array([0, 12, 6]), np.arange(3)[:, None]
        assert (samples.due_flat is not None) == uneven
        if uneven:
            assert samples.due_flat == pytest.approx((rows + (places + F_DUE_FLAT) / 8) * 0.002)
        if quanta:
            assert samples.quantum_s == pytest.approx((rows + (places + F_QUANTUM) / 8) / 1000)


def test_many_queues_leave_room_for_few_samples() -> None:
    assert (SampleLog.rows(5), SampleLog.rows(1033), SampleLog.rows(100_000)) == (512, 20, 16)
