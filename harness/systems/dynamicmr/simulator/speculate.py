"""Stragglers: which task gets a copy (LATE), when other jobs' work has priority (SEPB), and which attempts are killed.

Source: tang-thesis section 4.2.3, Algorithm 8; LATE as in Hadoop copies the slow task with the longest remaining time,
up to a cap.
"""

from __future__ import annotations

from math import ceil, sqrt

from harness.systems.dynamicmr.simulator.order import jobs_in_order, jobs_of
from harness.systems.dynamicmr.simulator.running import Running
from harness.systems.dynamicmr.simulator.state import Attempt, Job, Node

MAP, REDUCE = 0, 1


def copy_for(e: Running, node: Node, job: Job, kind: int) -> int | None:
    """Return the task of the job that is to be copied on the node, or None."""
    late = e.rules.late
    if not late.on:
        return None
    if (job.maps_waiting if kind == MAP else job.reduces_waiting) or not job.active:
        return None
    if e.copies[kind] >= max(1, round(late.cap * e.slots[kind])):
        return None
    slow = _slowest(e, node, job, kind)
    if slow is None or others_have_work(e, job, kind):
        return None
    return slow.task


def _slowest(e: Running, node: Node, job: Job, kind: int) -> Attempt | None:
    late, now = e.rules.late, e.now
    number, total, squares = job.rates[kind]
    if number < 2:
        return None
    mean = total / number
    deviation = sqrt(max(squares / number - mean * mean, 0.0))
    found, longest = None, 0
    for (is_map, task), attempts in job.attempts.items():
        if is_map != (kind == MAP) or len(attempts) != 1:
            continue
        attempt = attempts[0]
        if attempt.begun < 0 or now - attempt.begun < late.lag_ms or attempt.node is node:
            continue
        if 1.0 / attempt.duration >= mean - late.slow_task * deviation:
            continue
        left = attempt.begun + attempt.duration - now
        if left > longest or (left == longest and found is not None and task < found.task):
            found, longest = attempt, left
    return found


def others_have_work(e: Running, job: Job, kind: int) -> bool:
    """Return whether SEPB finds a job with a task for the slot, so that no copy is to be made.

    It checks this job and those after it in the order of service, the fraction ``sepb`` of all jobs. A waiting task of
    the other kind counts if it may borrow the slot (conditions (1) to (3) of section 4.2.3).
    """
    rules = e.rules
    if rules.sepb <= 0:
        return False
    if rules.sepb_pool and not rules.fifo:
        order = jobs_of(e, job.pool, kind)
    else:
        order = jobs_in_order(e, kind)
    first = order.index(job)
    lends = rules.sharing in ("independent", "dependent", "containers")
    for other in order[first : first + ceil(rules.sepb * len(order) - 1e-9)]:
        own, cross = other.maps_waiting, other.reduces_waiting
        borrows = lends and (rules.borrowed_map if kind == MAP else rules.borrowed_reduce) > 0
        if kind == REDUCE:
            own, cross = cross, own
        if own or (cross and borrows):
            return True
    return False


def kill_slow(e: Running, node: Node) -> None:
    """Kill attempts that have run `kill_factor` times their job's average (SEPB); their tasks are the next to start.

    This happens once per task, because a task whose own work is that long would otherwise never end.
    """
    factor = e.rules.kill_factor
    for attempt in list(node.attempts.values()):
        job, kind = attempt.job, MAP if attempt.is_map else REDUCE
        key = (attempt.is_map, attempt.task)
        if attempt.begun < 0 or attempt is job.master or key in job.killed or not job.time_count[kind]:
            continue
        average = job.time_sum[kind] / job.time_count[kind]
        if e.now - attempt.begun > factor * average and len(job.attempts[key]) == 1:
            job.killed.add(key)
            e.counts.killed_slow += 1
            e.give_back(attempt)
