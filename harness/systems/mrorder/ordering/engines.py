"""MROrder's ordering engine (tang-thesis section 3.4.2.3): decides in which order waiting jobs are dispatched.

For a few jobs it searches for the best order (SIM); for more it uses a greedy rule (ALG): MK_JR for the makespan, TCT
for the total completion time. Users can add an ordering as ``path/to/file.py:function`` or as an entry point of the
group ``yarnfair.orderings``: a function of (jobs, slots) that returns the jobs' indices in the order of execution.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from harness.base.errors import CallError, InputError
from harness.policies.user_file import from_user_file
from harness.systems.mrorder.ordering.greedy import GREEDY, Order
from harness.systems.mrorder.ordering.jobs import MapReduceJob, Slots

Ordering = Callable[[Sequence[MapReduceJob], Slots], Order]

#: The thesis' choice from Table 3.5: the best order is searched for up to this many jobs.
THRESHOLD = 7
ENTRY_POINT_GROUP = "yarnfair.orderings"
#: Prefix of an ordering that lists the names of jobs, first to last.
LISTED = "order:"
_GREEDY_FOR = {"makespan": "mk_jr", "tct": "tct"}


def engine(target: str, threshold: int = THRESHOLD, own: str = "auto") -> Ordering:
    """Return the ordering engine for a target (``makespan`` or ``tct``).

    own
        ``auto``: the search for up to `threshold` jobs, the target's greedy rule for more. Otherwise the name of a rule
        or a user's function.

    Raises CallError for an unknown name, InputError for a file that cannot be used.
    """
    if own != "auto":
        return named(own)
    greedy = GREEDY[_GREEDY_FOR[target]]

    def order(jobs: Sequence[MapReduceJob], slots: Slots) -> Order:
        if len(jobs) > threshold:
            return greedy(jobs, slots)
        if len(jobs) < 2:
            return tuple(range(len(jobs)))
        from harness.systems.mrorder.ordering.search import optimal

        return optimal(jobs, slots, "tct" if target == "tct" else "makespan").order

    return order


def named(name: str) -> Ordering:
    """Return a rule by name (given, mk_jr, mk_tct_jr, tct, worst), ``order:JOB,JOB,...``, or a user's function.

    The result of a user's function is checked at each call.
    """
    if name in GREEDY:
        return GREEDY[name]
    if name.startswith(LISTED):
        return _listed([one.strip() for one in name.removeprefix(LISTED).split(",")], name)
    path, colon, attribute = name.rpartition(":")
    if colon and path.endswith(".py"):
        hint = "give path/to/file.py:function"
        return _checked(from_user_file(Path(path), attribute, what="function", hint=hint), name)
    for point in entry_points(group=ENTRY_POINT_GROUP):
        if point.name == name:
            return _checked(point.load(), name)
    known = ", ".join([*GREEDY, *sorted(point.name for point in entry_points(group=ENTRY_POINT_GROUP))])
    raise CallError(f"no ordering {name[:60]!r}", hint=f"one of auto, {known}, or path/to/file.py:function")


def _listed(names: list[str], where: str) -> Ordering:
    """Return the ordering that follows a list of names. Jobs that are not listed come last, in the order of arrival."""
    twice = [name for at, name in enumerate(names) if name in names[:at] or not name]
    if twice:
        raise CallError(f"job {twice[0]!r} twice, or no name", where=where[:100], hint="give each job once")
    rank = {name: at for at, name in enumerate(names)}

    def order(jobs: Sequence[MapReduceJob], slots: Slots) -> Order:
        return tuple(sorted(range(len(jobs)), key=lambda at: rank.get(jobs[at].name, len(rank))))

    return order


def _checked(found: Any, where: str) -> Ordering:
    if not callable(found):
        raise InputError("is not a function of (jobs, slots)", where=where)

    def order(jobs: Sequence[MapReduceJob], slots: Slots) -> Order:
        try:
            answer = tuple(int(job) for job in found(tuple(jobs), slots))
        except Exception as error:
            raise InputError(f"failed: {type(error).__name__}: {error}", where=where) from error
        if sorted(answer) != list(range(len(jobs))):
            raise InputError(
                f"is not an order of {len(jobs)} jobs: {str(answer)[:80]}", where=where, hint="return indices"
            )
        return answer

    return order
