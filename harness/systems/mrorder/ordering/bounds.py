"""Bounds on the makespan.

These are Lemma 3.3's lower bound over all orders, a corrected form of Lemma 3.2's upper bound for a given order, and
Theorem 3.1's bound on the ratio between MK_JR's makespan and the smallest.

If the tasks of a job differ, T^M and T^R are computed from their own times, and t^M and t^R are the longest.
docs/decisions/upper-bound.md has a counterexample to Lemma 3.2 as printed, and the proofs of both bounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import accumulate

from harness.systems.mrorder.ordering.greedy import mk_jr, processing_times
from harness.systems.mrorder.ordering.jobs import MapReduceJob, Slots


def flow_shop_makespan(times: Sequence[tuple[Fraction, Fraction]]) -> Fraction:
    """Return equation 3.3 for jobs in this order: max over k of sum_{i<=k} T^M_i + sum_{i>=k} T^R_i, in seconds."""
    heads = accumulate(map_s for map_s, _ in times)
    tails = list(accumulate(reduce_s for _, reduce_s in reversed(times)))[::-1]
    return max((head + tail for head, tail in zip(heads, tails, strict=True)), default=Fraction(0))


def by_its_tasks(job: MapReduceJob) -> MapReduceJob:
    """Return the job with the means of its tasks' own times as its averages, or unchanged if it has no such times."""
    if job.map_task_s:
        job = replace(job, map_s=_mean(job.map_task_s))
    if job.reduce_task_s:
        job = replace(job, reduce_s=_mean(job.reduce_task_s))
    return job


def _mean(times: tuple[Fraction, ...]) -> Fraction:
    return sum(times, Fraction(0)) / len(times)


def lower_bound(jobs: Sequence[MapReduceJob], slots: Slots) -> Fraction:
    """Return Lemma 3.3's lower bound in seconds: equation 3.3 for MK_JR's order. No order has a smaller makespan."""
    jobs = [by_its_tasks(job) for job in jobs]
    return flow_shop_makespan([processing_times(jobs[job], slots) for job in mk_jr(jobs, slots)])


def upper_bound(jobs: Sequence[MapReduceJob], slots: Slots) -> Fraction:
    """Return the corrected bound of Lemma 3.2, with its last term doubled, in seconds.

    The makespan of the jobs in this order is at most this.
    """
    return upper_bound_as_printed(jobs, slots) + _longest_reduce(jobs)


def upper_bound_as_printed(jobs: Sequence[MapReduceJob], slots: Slots) -> Fraction:
    """Return Lemma 3.2 as the thesis prints it (eq. 3.5), in seconds. It does not always hold.

    max over k of (sum_{i<=k} T^M_i + max_{i<=k} t^M_i + sum_{i>=k} T^R_i) + max_i t^R_i; a phase without tasks has no
    task time.
    """
    times = [processing_times(by_its_tasks(job), slots) for job in jobs]
    longest_map = list(accumulate((_longest_map([job]) for job in jobs), max))
    heads = accumulate(map_s for map_s, _ in times)
    tails = list(accumulate(reduce_s for _, reduce_s in reversed(times)))[::-1]
    paths = (head + map_s + tail for head, map_s, tail in zip(heads, longest_map, tails, strict=True))
    return max(paths, default=Fraction(0)) + _longest_reduce(jobs)


def delta(jobs: Sequence[MapReduceJob], slots: Slots) -> Fraction:
    """Return delta of Theorem 3.1, based on the corrected Lemma 3.2.

    MK_JR's makespan is at most 1 + delta times the smallest of any order. If tasks of a job differ, this holds for
    MK_JR by their means (`by_its_tasks`).

    (max t^M + 2 max t^R) / max over k of (sum_{i<=k} T^M_i + sum_{i>=k} T^R_i), in MK_JR's order.
    """
    return _over_least(jobs, slots, _longest_map(jobs) + 2 * _longest_reduce(jobs))


def delta_as_printed(jobs: Sequence[MapReduceJob], slots: Slots) -> Fraction:
    """Return delta as the thesis prints it, (max t^M + max t^R) over the same; it is based on Lemma 3.2 as printed."""
    return _over_least(jobs, slots, _longest_map(jobs) + _longest_reduce(jobs))


def _over_least(jobs: Sequence[MapReduceJob], slots: Slots, seconds: Fraction) -> Fraction:
    least = lower_bound(jobs, slots)
    return seconds / least if least > 0 else Fraction(0)


def _longest_map(jobs: Sequence[MapReduceJob]) -> Fraction:
    return max((max(job.map_task_s or [job.map_s]) for job in jobs if job.maps), default=Fraction(0))


def _longest_reduce(jobs: Sequence[MapReduceJob]) -> Fraction:
    return max((max(job.reduce_task_s or [job.reduce_s]) for job in jobs if job.reduces), default=Fraction(0))
