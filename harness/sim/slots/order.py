"""In which order pools and jobs are given free slots: the Fair Scheduler of MRv1, or submission under FIFO."""

from __future__ import annotations

from harness.sim.slots.running import MAP, Running
from harness.sim.slots.state import Job, Pool


def pools_in_order(e: Running, kind: int | None) -> list[Pool]:
    """The pools with jobs, the poorest first: tasks of the kind over weight, or (None) units held; then by name.

    Under FIFO pools mean nothing: one list of all jobs, by submission.
    """
    if e.rules.fifo:
        return e.everyone
    busy = [pool for pool in e.pools if pool.jobs]
    if kind is None:
        return sorted(busy, key=lambda pool: (pool.held / pool.weight, pool.name))
    if kind == MAP:
        return sorted(busy, key=lambda pool: (pool.maps / pool.weight, pool.name))
    return sorted(busy, key=lambda pool: (pool.reduces / pool.weight, pool.name))


def jobs_of(e: Running, pool: Pool, kind: int | None) -> list[Job]:
    """The pool's jobs: the one that runs least of the kind first, in a FIFO pool (or under FIFO) by submission."""
    if e.rules.fifo:
        return e.active
    if pool.fifo or len(pool.jobs) < 2:
        return pool.jobs
    if kind is None:
        maps, reduces = e.weight
        return sorted(pool.jobs, key=lambda job: (job.running_maps * maps + job.running_reduces * reduces, job.index))
    if kind == MAP:
        return sorted(pool.jobs, key=lambda job: (job.running_maps, job.index))
    return sorted(pool.jobs, key=lambda job: (job.running_reduces, job.index))


def jobs_in_order(e: Running, kind: int | None) -> list[Job]:
    """All jobs, pool by pool."""
    return [job for pool in pools_in_order(e, kind) for job in jobs_of(e, pool, kind)]
