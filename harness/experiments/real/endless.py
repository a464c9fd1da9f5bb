"""Detects loads that can never end on a real cluster, by a simulation before the run and by observation during it.

If AMs hold all the memory, they wait for task containers that never come. A real ResourceManager does not report this,
and without detection a run would wait for its time limit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from harness.base.errors import InputError, RunInvalid
from harness.experiments.kind import NEVER_ENDS
from harness.experiments.real.curves import JobRun
from harness.experiments.resolve import LoadedExperiment, Variant, jobs_of
from harness.experiments.simulated import held, setup_of, simulate_variant
from harness.yarn.answers import AppStatus
from harness.yarn.queue_answers import SchedulerStatus

if TYPE_CHECKING:
    from harness.sim.setup import Progress

#: Wall-clock time limit of a simulation before real runs, in seconds.
BUDGET_S = 20.0
#: How long a real cluster may stand still: if only the scheduler acts, if a controller or preemption may still make
#: room, and if programs run whose AMs work by themselves.
STILL_S, STILL_MOVED_S, STILL_PROGRAMS_S = 180.0, 900.0, 3600.0
#: A real run's time limit if its experiment sets none: this many times the simulated time, and at least this time.
LIMIT_FACTOR, LIMIT_LEAST_S = 5.0, 1800.0
#: The limit if the simulation did not reach the end of the load.
LIMIT_UNKNOWN_S = 86_400.0
#: Maximum number of named queues.
_MOST = 3


class _TakesLongError(Exception):
    """The simulation has used up its wall-clock time."""


@dataclass(frozen=True, slots=True)
class Foreseen:
    """What the simulator predicts of a variant before its real run.

    Why it never ends ('': it ends), and when it ends, in seconds (None: not known).
    """

    stuck: str = ""
    end_s: float | None = None


def foresee(experiment: LoadedExperiment, variant: Variant, budget_s: float = BUDGET_S) -> Foreseen:
    """Simulate a variant for at most ``budget_s`` seconds of wall-clock time.

    Parameters
    ----------
    experiment, variant
        The variant to run on a real cluster of the experiment's own size.
    budget_s
        A simulation that takes longer has no result.
    """

    def check(progress: Progress) -> None:
        if progress.wall_s > budget_s:
            raise _TakesLongError

    jobs, _ = held(experiment, variant, jobs_of(experiment, variant.seed)[0])
    try:
        result = simulate_variant(setup_of(experiment, variant, jobs), check)
    except (_TakesLongError, InputError):
        # A variant that the simulator does not cover may run on a real cluster all the same.
        return Foreseen()
    return Foreseen(result.stuck, result.end_s if result.finished else None)


def check_ends(
    experiment: LoadedExperiment, variants: Sequence[Variant], on_progress: Callable[[str], None]
) -> float | None:
    """Refuse variants that can never end according to the simulator, and return a time limit for the others.

    Each policy is simulated with the first of its seeds.

    Returns
    -------
    float or None
        The limit of a real run, in seconds; None if the experiment sets the limit itself.

    Raises
    ------
    RunInvalid
        A variant can never end.
    """
    limits = experiment.spec.limits
    if limits.duration_s is not None:
        return None  # observed for a fixed time in any case
    # One seed is enough: whether a load gets stuck depends on its shape.
    first: dict[str, Variant] = {}
    for one in variants:
        first.setdefault(str(replace(one, name="", seed=0, settings=dict(sorted(one.settings.items())))), one)
    found = []
    for variant in first.values():
        seen = foresee(experiment, variant)
        if seen.stuck:
            raise RunInvalid(
                f"{variant.name}: {NEVER_ENDS}, says the simulator: {seen.stuck}",
                where=experiment.document.where(("workloads",)),
                hint="set limits.duration_s to watch it all the same",
            )
        found.append(seen.end_s)
    if default_limit_s(experiment) is None:
        return None
    ends = [end for end in found if end is not None]
    known = bool(found) and len(ends) == len(found)
    limit_s = max(LIMIT_LEAST_S, LIMIT_FACTOR * max(ends)) if known else LIMIT_UNKNOWN_S
    on_progress(f"a run that has not ended after {limit_s:,.0f} s is cut (limits.time_limit_s sets another limit)")
    return limit_s


def default_limit_s(experiment: LoadedExperiment) -> float | None:
    """Return the limit of a real run without a simulated time; None if the experiment sets one."""
    limits = experiment.spec.limits
    known = limits.duration_s is not None or "time_limit_s" in limits.model_fields_set
    return None if known else LIMIT_UNKNOWN_S


def patience_s(*, programs: bool, controlled: bool, preemption: bool) -> float:
    """Return how long a real cluster may stand still before a run counts as never ending, in seconds."""
    if programs:
        return STILL_PROGRAMS_S
    return STILL_MOVED_S if controlled or preemption else STILL_S


def pending_containers(status: SchedulerStatus) -> int:
    """Return how many containers all leaves wait for in total."""
    return sum(queue.containers_pending for queue in status.queues.values() if queue.leaf)


class Standstill:
    """Detects on a real cluster that all applications wait and nothing has moved for ``patience_s`` seconds."""

    def __init__(self, patience_s: float) -> None:
        self._patience_s = patience_s
        self._seen: object = None
        self._since_s = 0.0

    def look(self, now_s: float, jobs: Iterable[JobRun], status: SchedulerStatus | None) -> str:
        """Compare the present state with the previous poll.

        Parameters
        ----------
        now_s
            Seconds of the run.
        jobs
            The jobs that have not ended, all of which have been submitted.
        status
            The queues at the last poll.

        Returns
        -------
        str
            Why the run can never end; '' as long as something may happen.
        """
        apps = [(job, job.status) for job in jobs]
        pending = 0 if status is None else pending_containers(status)
        there = [app for _, app in apps if app is not None]
        waits = len(there) == len(apps) and all(app.running_containers <= 1 and not app.final for app in there)
        if status is None or not apps or not waits or not pending:
            self._seen = None
            return ""
        seen = tuple((app.id, app.state, app.running_containers, app.progress_percent) for app in there)
        if seen != self._seen:
            self._seen, self._since_s = seen, now_s
        if now_s - self._since_s < self._patience_s:
            return ""
        return f"nothing has moved since {self._since_s:,.0f} s: {_words(apps, status, pending)}"


def _words(apps: Sequence[tuple[JobRun, AppStatus | None]], status: SchedulerStatus, pending: int) -> str:
    masters = Counter[str]()
    held_mb, masters_count = 0, 0
    for job, app in apps:
        if app is not None and app.running_containers == 1:
            masters[job.spec.queue] += 1
            masters_count += 1
            held_mb += job.spec.am.memory_mb
    by_queue = ", ".join(f"{count} of {path}" for path, count in masters.most_common(_MOST))
    more = f" and {len(masters) - _MOST} more queue(s)" if len(masters) > _MOST else ""
    waiting = f"{pending} container(s) are waited for"
    if not masters_count:
        return f"{waiting}, and no application of {len(apps)} has a container; raise its queue's maxAMShare or shares"
    return (
        f"{masters_count} masters ({by_queue}{more}) hold {held_mb:,} of {status.capacity.memory_mb:,} MiB and nothing "
        f"else runs, while {waiting}; lower max_am_share (maxAMShare), or max_running_apps, so that masters leave room "
        "for tasks"
    )
