"""Job orders by rule: MK_JR, MK_TCT_JR, TCT, and the worst case by reversal (tang-thesis Algorithms 1, 2, 5).

Each rule takes jobs in the file's order and returns their indices in the order of execution. Jobs with equal sort keys
stay in the file's order. Comparisons are exact.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from math import log2, prod

from harness.systems.mrorder.ordering.jobs import MapReduceJob, Slots

Order = tuple[int, ...]


def processing_times(job: MapReduceJob, slots: Slots) -> tuple[Fraction, Fraction]:
    """Return T^M and T^R in seconds: the work of each phase divided by all slots of its kind (Lemma 3.2)."""
    return (
        job.maps * job.map_s / slots.maps if job.maps else Fraction(0),
        job.reduces * job.reduce_s / slots.reduces if job.reduces else Fraction(0),
    )


def given(jobs: Sequence[MapReduceJob], slots: Slots) -> Order:
    """Return the file's order."""
    return tuple(range(len(jobs)))


def mk_jr(jobs: Sequence[MapReduceJob], slots: Slots) -> Order:
    """Return the order of Algorithm 1, Johnson's rule on (T^M, T^R), which aims at a small makespan."""
    return _johnson([processing_times(job, slots) for job in jobs], range(len(jobs)))


def _johnson(times: Sequence[tuple[Fraction, Fraction]], among: Sequence[int]) -> Order:
    first = sorted((job for job in among if times[job][0] <= times[job][1]), key=lambda job: times[job][0])
    last = sorted((job for job in among if times[job][0] > times[job][1]), key=lambda job: -times[job][1])
    return (*first, *last)


def mk_tct_jr(jobs: Sequence[MapReduceJob], slots: Slots) -> Order:
    """Return the order of Algorithm 2, which aims at a small makespan and a small total completion time.

    Small jobs come first, then large ones; within each group the order is MK_JR's. A job is small if T = T^M + T^R is
    at most the geometric mean over all jobs.
    """
    times = [processing_times(job, slots) for job in jobs]
    small = _at_most_geometric_mean([map_s + reduce_s for map_s, reduce_s in times])
    everyone = range(len(jobs))
    return (
        *_johnson(times, [job for job in everyone if small[job]]),
        *_johnson(times, [job for job in everyone if not small[job]]),
    )


def _at_most_geometric_mean(values: Sequence[Fraction]) -> list[bool]:
    """Return for each value whether it is at most the geometric mean of all n values, exactly.

    Logarithms decide unless they are too close; then value^n is compared with the product of all values.
    """
    if any(value == 0 for value in values):
        return [value == 0 for value in values]
    logs = [_log2(value) for value in values]
    mean = sum(logs) / len(logs) if logs else 0.0
    # The rounding errors of n logarithms and of their sum stay far below this margin.
    margin = 1e-9 * (1 + max((abs(item) for item in logs), default=0.0))
    product: Fraction | None = None
    small: dict[Fraction, bool] = {}
    for value, log in zip(values, logs, strict=True):
        if value in small:
            continue
        if abs(log - mean) > margin:
            small[value] = log < mean
            continue
        if product is None:
            product = Fraction(prod(item.numerator for item in values), prod(item.denominator for item in values))
        small[value] = value ** len(values) <= product
    return [small[value] for value in values]


def _log2(value: Fraction) -> float:
    return log2(value.numerator) - log2(value.denominator)


def tct(jobs: Sequence[MapReduceJob], slots: Slots) -> Order:
    """Return the order of Algorithm 5, shortest T^M + T^R first, which aims at a small total completion time."""
    total = [sum(processing_times(job, slots)) for job in jobs]
    return tuple(sorted(range(len(jobs)), key=lambda job: total[job]))


def worst(jobs: Sequence[MapReduceJob], slots: Slots) -> Order:
    """Return the reverse of MK_JR's order.

    It has the worst makespan if task counts are multiples of the slots (Theorem 3.2). In general it is only the thesis'
    reference ("unoptimized"), and a worse order may exist.
    """
    return mk_jr(jobs, slots)[::-1]


GREEDY: dict[str, Callable[[Sequence[MapReduceJob], Slots], Order]] = {
    "given": given,
    "mk_jr": mk_jr,
    "mk_tct_jr": mk_tct_jr,
    "tct": tct,
    "worst": worst,
}
