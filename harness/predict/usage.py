"""A usage statement of a recorded cluster: what each queue and user had, lent and borrowed, by period. Pure.

An application's total usage, as YARN counted it, is spread evenly over the time from its start to its end, because a
trace does not say when it held what. A due is a leaf's share of the cluster at each moment, computed level by level as
in the scheduler.

The rule of loans: at every moment queues above their due borrow, and queues below theirs lend what the borrowers hold.
Each lender lends in proportion to its unused part, and each loan is divided among borrowers in proportion to what they
borrow. So the amounts lent and borrowed are equal at every moment.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from heapq import merge
from typing import Any, Literal

from harness.base.errors import InputError
from harness.model.queues import cluster_parts
from harness.traces.accounting import held_by, last_end_s
from harness.traces.nodes import capacity_steps
from harness.traces.recorded import Header, JobLine

By = Literal["day", "week", "month"]
_DAY_S = 86_400.0
#: The number of MB-seconds in 1 GiB·h, and the columns of the table of `rows_of`, whose amounts are MB-seconds.
MB_S_PER_GIB_H = 1024 * 3600
COLUMNS = ("period", "queue", "user", "due", "had", "lent", "borrowed", "paid_back", "owed")
#: Lengths of the periods of a trace that does not say when its time began, seconds.
_LENGTHS_S = {"day": _DAY_S, "week": 7 * _DAY_S, "month": 30 * _DAY_S}


@dataclass(slots=True)
class Account:
    """One queue in one period, in MB-seconds.

    Parameters
    ----------
    due
        Its share of the cluster over the period.
    had
        What its applications held.
    lent, borrowed
        The amounts lent to, and borrowed from, other queues.
    owed
        Everything lent since the beginning minus everything borrowed, at the end of the period. Below 0: the queue owes
        that much.
    paid_back
        The part of ``borrowed`` that only reduced what the others owed it.
    users
        What each user's applications held.
    from_
        What it borrowed from each lender.
    """

    due: float = 0.0
    had: float = 0.0
    lent: float = 0.0
    borrowed: float = 0.0
    owed: float = 0.0
    paid_back: float = 0.0
    users: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    from_: dict[str, float] = field(default_factory=lambda: defaultdict(float))


@dataclass(frozen=True, slots=True)
class Period:
    """A day, week or month: its name, its start and end in seconds of the trace, and the account of each leaf."""

    name: str
    from_s: float
    until_s: float
    accounts: Mapping[str, Account]

    def set_owed(self, owed: Mapping[str, float]) -> None:
        """Store what each leaf is owed at the end of the period."""
        for leaf, balance in owed.items():
            self.accounts[leaf].owed = balance


def _never_started(jobs: Sequence[JobLine]) -> set[str]:
    """Return applications without start and end in a trace that has others' starts: they waited all the time."""
    if all(job.started_s is None for job in jobs):
        return set()
    return {job.job for job in jobs if job.started_s is None and job.finished_s is None}


def assumed_of(jobs: Sequence[JobLine]) -> list[str]:
    """Return a statement's assumptions about its applications, besides those of the trace, one sentence each."""
    waited = _never_started(jobs)
    ran = [job for job in jobs if job.job not in waited]
    counted = [job for job in ran if job.counted_mb_s is not None]
    planned = [job for job in ran if job.counted_mb_s is None]
    whole = sum(job.executors is not None and job.executors.held_mb is None for job in planned)
    unended = [job for job in planned if job.finished_s is None]
    running = sum(job.finished_s is None and job.counted_until_s is None for job in counted)
    found = []
    if waited:
        found.append(f"applications without a start and an end ({len(waited):,}) held nothing")
    if whole:
        found.append(
            f"Spark applications of which the trace does not say how many executors they had over time ({whole:,}) had "
            "`executors.count` all the time, which with dynamic allocation is more than they had"
        )
    if running:
        found.append(
            f"applications without an end that YARN counted ({running:,}) ran until the last of the others ended, and "
            "had by then what was counted of them"
        )
    if unended:
        spark = any(job.executors is not None for job in unended)
        found.append(
            f"applications without an end ({len(unended):,}) ran until the last of the others ended, and had by then "
            "all that the trace says of their tasks" + (" (of Spark: as many executors as before)" if spark else "")
        )
    return found


def statement(header: Header, jobs: Sequence[JobLine], by: By = "month") -> list[Period]:
    """Return the periods of a trace with each leaf's account.

    Parameters
    ----------
    header, jobs
        The trace. An application without an end that YARN counted runs until it was counted, if the trace says when.
        Any other one is assumed to run until the last end of the others (`assumed_of`).
    by : {"day", "week", "month"}
        Calendar periods (UTC) if the trace says when it began; otherwise days, weeks of 7 days and months of 30 days
        from the beginning.

    Returns
    -------
    list of Period
        The periods in order. In each, the amounts lent and borrowed are equal, and queues had what their users had.

    Raises
    ------
    InputError
        The trace does not say when its applications ran.
    """
    waited = _never_started(jobs)
    counted_s = {job.job: until_s for job in jobs if (until_s := _counted_until_s(job)) is not None}
    last_s = last_end_s(jobs)
    if last_s is None and not counted_s.keys() - waited:
        raise InputError("the trace does not say when its applications ran", hint="give one of `yarnfair record`")
    end_s = max([*([] if last_s is None else [last_s]), *counted_s.values()])
    last_s = end_s if last_s is None else last_s
    periods = list(_periods(header.zero_ms, end_s, by))
    spans = [
        (
            job,
            job.submit_s if job.started_s is None else job.started_s,
            counted_s.get(job.job, last_s) if job.finished_s is None else job.finished_s,
        )
        for job in jobs
        if job.job not in waited
    ]
    parts = cluster_parts({path: line.weight for path, line in header.queues.items()})
    leaf_parts = {leaf: parts[leaf] for leaf in header.leaves()}
    steps = capacity_steps(header.presences())
    for found in periods:
        there = _capacity_within(steps, found.from_s, found.until_s)
        for leaf, part in leaf_parts.items():
            found.accounts[leaf].due = part * there
    _loans(_rates(spans, periods), periods, steps, leaf_parts)
    return periods


def _counted_until_s(job: JobLine) -> float | None:
    """Return up to when YARN counted an application without an end; None: it ended, or the trace does not say."""
    return job.counted_until_s if job.finished_s is None and job.counted_mb_s is not None else None


def owed_at_end(periods: Sequence[Period]) -> dict[str, float]:
    """Return what each leaf is owed at the end of a statement, MB-seconds (below 0: it owes); the sum is 0."""
    return {leaf: account.owed for leaf, account in periods[-1].accounts.items()}


def paid_back_in_all(periods: Sequence[Period]) -> dict[str, float]:
    """Return what was paid back to each leaf over a whole statement, MB-seconds."""
    return {leaf: math.fsum(one.accounts[leaf].paid_back for one in periods) for leaf in periods[-1].accounts}


def _capacity_within(steps: Sequence[tuple[float, int, int]], from_s: float, until_s: float) -> float:
    """Return the MB-seconds that the cluster had between two moments."""
    ends = [*(at_s for at_s, _, _ in steps[1:]), math.inf]
    return math.fsum(
        memory_mb * max(min(end_s, until_s) - max(at_s, from_s), 0.0)
        for (at_s, memory_mb, _), end_s in zip(steps, ends, strict=True)
    )


def _periods(zero_ms: int | None, end_s: float, by: By) -> Iterator[Period]:
    """Return consecutive periods from the beginning to the end, complete except for the first and the last."""
    if zero_ms is None:
        length = _LENGTHS_S[by]
        for number in range(max(math.ceil(end_s / length), 1)):
            yield _period(f"{by} {number + 1}", number * length, min((number + 1) * length, end_s))
        return
    zero = datetime.fromtimestamp(zero_ms / 1000.0, UTC)
    at_s = 0.0
    while at_s < end_s or at_s == 0.0:
        now = zero + timedelta(seconds=at_s)
        day = now.replace(hour=0, minute=0, second=0, microsecond=0)
        if by == "day":
            name, after = f"{day:%Y-%m-%d}", day + timedelta(days=1)
        elif by == "week":
            year, week, weekday = day.isocalendar()
            name, after = f"{year}-W{week:02d}", day + timedelta(days=8 - weekday)
        else:
            name, after = f"{day:%Y-%m}", (day.replace(day=1) + timedelta(days=32)).replace(day=1)
        until_s = min((after - zero).total_seconds(), max(end_s, 1e-3))
        yield _period(name, at_s, until_s)
        at_s = until_s


def _period(name: str, from_s: float, until_s: float) -> Period:
    return Period(name, from_s, until_s, defaultdict(Account))


def _rates(spans: Sequence[tuple[JobLine, float, float]], periods: Sequence[Period]) -> list[tuple[float, str, float]]:
    """Return the changes (time, queue, MB) of what queues hold, in order of time, and add usage to the accounts.

    The end of each period has an entry with an empty queue.
    """
    changes: list[tuple[float, str, float]] = []
    ends = [period.until_s for period in periods]
    for job, from_s, until_s in spans:
        # For an application without an end, `until_s` is its assumed end.
        held = held_by(job, until_s)
        if held <= 0:
            continue
        # An application that ended as it began held its resources for a moment.
        until_s = max(until_s, from_s + 1e-3)
        rate = held / (until_s - from_s)
        changes += [(from_s, job.queue, rate), (until_s, job.queue, -rate)]
        for at in range(min(bisect_right(ends, from_s), len(periods) - 1), len(periods)):
            period, last = periods[at], at == len(periods) - 1
            if period.from_s >= until_s:
                break
            overlap = (until_s if last else min(until_s, period.until_s)) - max(from_s, period.from_s)
            if overlap > 0:
                account = period.accounts[job.queue]
                account.had += rate * overlap
                account.users[job.user] += rate * overlap
    changes += [(period.until_s, "", 0.0) for period in periods]
    return sorted(changes, key=lambda change: change[0])


def _loans(
    rates: Sequence[tuple[float, str, float]],
    periods: Sequence[Period],
    steps: Sequence[tuple[float, int, int]],
    parts: Mapping[str, float],
) -> None:
    held = dict.fromkeys(parts, 0.0)
    running = dict.fromkeys(parts, 0)
    owed = dict.fromkeys(parts, 0.0)
    index, at_s, step, until_s = 0, 0.0, 0, periods[-1].until_s
    dues = {leaf: steps[0][1] * part for leaf, part in parts.items()}
    resized = [(time_s, "", 0.0) for time_s, _, _ in steps[1:] if time_s < until_s]
    for time_s, queue, change in merge(rates, resized, key=lambda one: one[0]):
        if time_s > at_s:
            _lend(periods[index].accounts, held, dues, time_s - at_s, owed)
            at_s = time_s
            if step + 1 < len(steps) and at_s >= steps[step + 1][0]:
                step += 1
                dues = {leaf: steps[step][1] * part for leaf, part in parts.items()}
            while index < len(periods) - 1 and at_s >= periods[index].until_s:
                periods[index].set_owed(owed)
                index += 1
        if queue:
            running[queue] += 1 if change > 0 else -1
            # Without a holder the sum is exactly 0, despite rounding.
            held[queue] = held[queue] + change if running[queue] else 0.0
    periods[index].set_owed(owed)


def _lend(
    accounts: Mapping[str, Account],
    held: Mapping[str, float],
    dues: Mapping[str, float],
    lasts_s: float,
    owed: dict[str, float],
) -> None:
    over = {leaf: held[leaf] - due for leaf, due in dues.items() if held[leaf] > due}
    spare = {leaf: due - held[leaf] for leaf, due in dues.items() if held[leaf] < due}
    all_over, all_spare = math.fsum(over.values()), math.fsum(spare.values())
    # No more than the cluster has can be lent, although an application's use is spread evenly over its life.
    lent = min(all_over, all_spare) * lasts_s
    if lent <= 0:
        return
    for borrower, above in over.items():
        borrowed = lent * (above / all_over)
        accounts[borrower].paid_back += min(borrowed, max(owed[borrower], 0.0))
        owed[borrower] -= borrowed
        for lender, below in spare.items():
            part = lent * (above / all_over) * (below / all_spare)
            accounts[borrower].borrowed += part
            accounts[borrower].from_[lender] += part
            accounts[lender].lent += part
            owed[lender] += part


def document_of(periods: Sequence[Period]) -> list[dict[str, Any]]:
    """Return the document for ``--json``, in whole MB-seconds."""
    return [
        {
            "period": period.name,
            "from_s": period.from_s,
            "until_s": period.until_s,
            "queues": {
                leaf: {
                    "due_mb_s": round(account.due),
                    "had_mb_s": round(account.had),
                    "lent_mb_s": round(account.lent),
                    "borrowed_mb_s": round(account.borrowed),
                    "paid_back_mb_s": round(account.paid_back),
                    "owed_mb_s": round(account.owed),
                    "borrowed_from_mb_s": {lender: round(value) for lender, value in account.from_.items()},
                    "users_mb_s": {user: round(value) for user, value in sorted(account.users.items())},
                }
                for leaf, account in period.accounts.items()
            },
        }
        for period in periods
    ]


def rows_of(periods: Sequence[Period]) -> list[dict[str, Any]]:
    """Return a table with one row for each period, queue and user, and one (user ``*``) for the whole queue."""
    rows: list[dict[str, Any]] = []
    for period in document_of(periods):
        for queue, account in period["queues"].items():
            whole = {key: account[f"{key}_mb_s"] for key in ("due", "had", "lent", "borrowed", "paid_back", "owed")}
            rows.append({"period": period["period"], "queue": queue, "user": "*", **whole})
            for user, had in account["users_mb_s"].items():
                rows.append({"period": period["period"], "queue": queue, "user": user, "had": had})
    return rows


#: The columns of the table for a person, and how wide a terminal is.
_HEADS = ("due", "had", "lent", "borrowed", "paid back", "owed")
_COLUMNS = 80


def gib_hours(mb_s: float, digits: int) -> str:
    """Format MB-seconds as GiB·h, never as a negative zero."""
    return f"{round(mb_s / MB_S_PER_GIB_H, digits) + 0.0:,.{digits}f}"


def gib_hours_digits(amounts: Iterable[float]) -> int:
    """Return the number of decimals with which the largest of these amounts (MB-seconds) has three digits or more.

    One at least and six at most: with one alone, all amounts of a small cluster are 0.0.
    """
    most = max(map(abs, amounts), default=0.0) / MB_S_PER_GIB_H
    return 1 if most >= 10 or most <= 0 else min(2 - math.floor(math.log10(most)), 6)


def statement_digits(periods: Sequence[Period]) -> int:
    """Return the number of decimals of GiB·h for all tables of a statement."""
    accounts = (account for period in periods for account in period.accounts.values())
    return gib_hours_digits(value for one in accounts for value in (one.due, one.had, one.owed))


def lines_of(periods: Sequence[Period], *, users: bool = False) -> list[str]:
    """Return a table for a person, in GiB·h, with as many digits as a small cluster's amounts need.

    Columns are as wide as their amounts. A name that leaves no room for them in 80 columns has a line of its own.
    ``users``: also what each user's applications held, below their queue.
    """
    digits = statement_digits(periods)

    def amount(mb_s: float) -> str:
        return gib_hours(mb_s, digits)

    rows = {
        (period.name, leaf): [
            amount(value)
            for value in (account.due, account.had, account.lent, account.borrowed, account.paid_back, account.owed)
        ]
        for period in periods
        for leaf, account in period.accounts.items()
    }
    widths = [max(map(len, column)) + 2 for column in zip(_HEADS, *rows.values(), strict=True)]
    longest = max((len(leaf.removeprefix("root.")) for _, leaf in rows), default=0)
    room = max(min(longest, _COLUMNS - 2 - sum(widths)), len("queue"))

    def line(name: str, cells: Sequence[str]) -> list[str]:
        figures = "".join(f"{cell:>{width}}" for cell, width in zip(cells, widths, strict=True))
        return [f"  {name:<{room}}{figures}"] if len(name) <= room else [f"  {name}", f"  {'':<{room}}{figures}"]

    lines = []
    for period in periods:
        lines.append(f"{period.name} (GiB·h)")
        lines += line("queue", _HEADS)
        for leaf, account in period.accounts.items():
            lines += line(leaf.removeprefix("root."), rows[period.name, leaf])
            for lender, value in sorted(account.from_.items(), key=lambda one: -one[1])[:3]:
                lines.append(f"    borrowed of {lender.removeprefix('root.')}: {amount(value)}")
            if users:
                held = sorted(account.users.items(), key=lambda one: (-one[1], one[0]))
                lines += [f"    held by {user}: {amount(value)}" for user, value in held]
    return lines
