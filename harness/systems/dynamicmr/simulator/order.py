"""The order in which pools and jobs are given free slots.

It is that of MRv1's Fair Scheduler, or the order of submission under FIFO.
"""

from __future__ import annotations

from harness.systems.dynamicmr.simulator.running import MAP, REDUCE, Running
from harness.systems.dynamicmr.simulator.state import Job, Pool


def pools_in_order(e: Running, kind: int | None) -> list[Pool]:
    """Return the pools with jobs in the order in which they are served.

    Pools below their minimum come first, then the pools with the fewest tasks of the kind (or with None: units held)
    over weight. Ties go by name (FairShareComparator of Hadoop 1.2.1 compares start times before names).

    Under FIFO pools have no meaning: there is one list of all jobs, in the order of submission.
    """
    if e.rules.fifo:
        return e.everyone
    return sorted([pool for pool in e.pools if pool.jobs], key=lambda pool: _place(e, pool, kind))


def _place(e: Running, pool: Pool, kind: int | None) -> tuple[bool, float, str]:
    """Return the sort key of a pool.

    Pools below their minimum are sorted by the fraction of the minimum that they have.
    """
    runs = pool.held if kind is None else pool.running[kind]
    if any(pool.least):
        least = _least(e, pool, kind)
        if runs < least:
            return False, runs / least, pool.name
    return True, runs / pool.weight, pool.name


def _least(e: Running, pool: Pool, kind: int | None) -> int:
    """Return a pool's minimum, limited to its demand: tasks of the kind, or with None units of both kinds."""
    maps = min(pool.least[MAP], sum(job.running[MAP] + job.maps_waiting for job in pool.jobs))
    reduces = min(pool.least[REDUCE], sum(job.running[REDUCE] + job.reduces_waiting for job in pool.jobs))
    if kind is None:
        return maps * e.weight[MAP] + reduces * e.weight[REDUCE]
    return maps if kind == MAP else reduces


def jobs_of(e: Running, pool: Pool, kind: int | None) -> list[Job]:
    """Return the pool's jobs, those that run fewest tasks of the kind first.

    In a FIFO pool, and under FIFO, they are in the order of submission.
    """
    if e.rules.fifo:
        return e.active
    if pool.fifo or len(pool.jobs) < 2:
        return pool.jobs
    if kind is None:
        maps, reduces = e.weight
        return sorted(pool.jobs, key=lambda job: (job.running[MAP] * maps + job.running[REDUCE] * reduces, job.index))
    return sorted(pool.jobs, key=lambda job: (job.running[kind], job.index))


def jobs_in_order(e: Running, kind: int | None) -> list[Job]:
    """Return all jobs, pool by pool."""
    return [job for pool in pools_in_order(e, kind) for job in jobs_of(e, pool, kind)]
