"""A change of the scheduler's configuration on a recorded load: simulated before and after, queue by queue.

Both sides simulate the same applications in the same phases of heartbeats. Each side may use either scheduler.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from harness.base.errors import InputError
from harness.experiments.resolve import Variant
from harness.predict.changes import ADDED, COUNTS, TIMES, Change, QueueChange
from harness.predict.plan_sides import SUBMITTED, LoadedSide, Side, SideName, loaded_side
from harness.predict.playing import BUDGET_S, PhaseRunner, Workers, in_phase
from harness.predict.verdict import LEAST_KNOWN, MOST_ERROR, NOTICEABLE, Band, Replayed, reproduction_error
from harness.traces.accounting import Shape, account_lines
from harness.traces.recorded import Header, JobLine, Trace

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from harness.sim.setup import SimResult

#: A waiting queue with less than this fraction of its due is short of it, as in an assessment.
_SHORT = 0.95


# --- simulation -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SideRun:
    """One run of a side; arrays in the order of its jobs, NaN for an event that never happened.

    wait_s : from submission to the master's container.
    completion_s : from submission to the end.
    refused : whether the scheduler refused the application at its submission (a full or stopped queue).
    below_due_s : leaf -> seconds in which it wanted more than it had, and had less than 95 % of its due.
    unfinished : why the run ended before every application had ended; empty if all had.
    """

    wait_s: NDArray[np.float64]
    completion_s: NDArray[np.float64]
    refused: NDArray[np.bool_]
    below_due_s: Mapping[str, float]
    unfinished: str


def side_run(result: SimResult, side: LoadedSide) -> SideRun:
    """Return the numbers of one run."""
    import numpy as np

    jobs = result.jobs
    at = {str(name): row for row, name in enumerate(jobs["id"])}
    rows = np.array([at.get(job.id, -1) for job in side.jobs], dtype=np.int64)
    present = rows >= 0

    def column(name: str) -> NDArray[np.float64]:
        values = np.asarray(jobs[name], dtype=np.float64)
        return np.where(present, values[np.maximum(rows, 0)] if len(values) else math.nan, math.nan)

    submitted, started, finished = column("submitted_s"), column("started_s"), column("finished_s")
    failed = column("failed") == 1.0
    refused = failed & np.isnan(started)
    unfinished = result.stuck
    if not unfinished and not result.finished:
        unfinished = f"the run was ended after {result.end_s:,.0f} s of virtual time"
    return SideRun(
        started - submitted,
        np.where(failed, math.nan, finished - submitted),
        refused,
        below_due(result, side.experiment.leaves, vcores=side.counts_vcores()),
        unfinished,
    )


def below_due(result: SimResult, leaves: Sequence[str], *, vcores: bool) -> dict[str, float]:
    """Return the seconds in which each leaf wanted more than it held, and held less than 95 % of its share.

    A sample stands for its whole period, so a run that lasts longer because of one application counts the same. The
    extra sample at the end of a run does not count.
    """
    import numpy as np

    samples = result.samples
    times = np.asarray(samples.time_s, dtype=np.float64)
    if not len(times):
        return dict.fromkeys(leaves, 0.0)
    period_s = times[1] - times[0] if len(times) > 1 else max(result.end_s - times[0], 0.0)
    lasts = np.full(len(times), period_s)
    if len(times) > 1 and times[-1] - times[-2] < period_s:
        lasts[-1] = 0.0
    of_memory = np.maximum(np.asarray(samples.capacity_mb, dtype=np.float64), 1.0)
    of_vcores = np.maximum(np.asarray(samples.capacity_vcores, dtype=np.float64), 1.0)
    found = {}
    for leaf in leaves:
        k = samples.queues.index(leaf)
        held = np.asarray(samples.allocated_mb)[:, k] / of_memory
        wants = np.asarray(samples.demand_mb)[:, k] > np.asarray(samples.allocated_mb)[:, k]
        if vcores:
            held = np.maximum(held, np.asarray(samples.allocated_vcores)[:, k] / of_vcores)
            wants |= np.asarray(samples.demand_vcores)[:, k] > np.asarray(samples.allocated_vcores)[:, k]
        short = wants & (held < _SHORT * float(samples.share_fraction[k]))
        found[leaf] = float(lasts[short].sum())
    return found


def _play(sides: Mapping[str, Side], variant: Variant, seed: int) -> SideRun:
    return _play_loaded({variant.name: loaded_side(sides[variant.name])}, variant, seed)


def _play_loaded(sides: Mapping[str, LoadedSide], variant: Variant, seed: int) -> SideRun:
    from harness.experiments.simulated import setup_of, simulate_variant

    side = sides[variant.name]
    setup = setup_of(side.experiment, replace(variant, seed=seed), side.jobs)
    return side_run(simulate_variant(in_phase(setup, None)), side)


class _Sides(PhaseRunner[SideRun]):
    def __init__(self, sides: Mapping[SideName, Side], processes: int | None, workers: Workers | None) -> None:
        def far() -> Callable[[Variant, int], SideRun]:
            return partial(_play_loaded, {str(name): loaded_side(side) for name, side in sides.items()})

        near = partial(_play, {str(name): side for name, side in sides.items()})
        super().__init__(near, processes, workers=workers, far=far)

    def warm(self, variant: Variant) -> None:
        self._play(variant, 1)


def _variant(name: SideName, side: LoadedSide) -> Variant:
    scheduler = side.file.scheduler
    return Variant(name, scheduler, "inside", {}, 0, 5.0, scheduler=scheduler)


# --- results ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Planned:
    """The result of a plan.

    queues : the most changed first.
    floor : a smaller relative change counts as none, because the replay may be off by as much.
    notes : what the answer does not cover, assumes or leaves out; shown first.
    submitted : for an added application, its queue, wait and completion by phase.
    unfinished : side -> why its run ended before all applications had ended.
    added : the same application as a change from nothing, for rules.
    """

    before: LoadedSide
    after: LoadedSide
    phases: int
    applications: int
    queues: Sequence[QueueChange]
    reproduction_error: float | None
    floor: float
    notes: Sequence[str]
    unfinished: Mapping[str, str] = field(default_factory=dict)
    submitted: Mapping[str, Any] | None = None
    added: QueueChange | None = None


def plan(
    trace: Trace,
    sides: Mapping[SideName, Side],
    *,
    phases: int | None = None,
    processes: int | None = None,
    workers: Workers | None = None,
    budget_s: float = BUDGET_S,
    on_progress: Callable[[str], None] = lambda _: None,
) -> Planned:
    """Simulate a trace before and after a change of configuration.

    Parameters
    ----------
    trace
        The recorded load.
    sides
        The two configurations (`sides_of`).
    phases
        Number of phases of heartbeats; by default 20, fewer for long traces.
    processes
        Number of simulations at once; by default one per core.
    workers
        Other machines that make all simulations but the first.
    budget_s
        Approximate time limit of all runs together, seconds, if ``phases`` is not given.
    on_progress
        Called after each run.

    Returns
    -------
    Planned
        Every queue before and after.

    Raises
    ------
    InputError
        A file is not covered by the simulator, or accepts none of the applications.
    """
    _check_covered(trace.header, sides)
    here, there = (loaded_side(sides[name]) for name in ("before", "after"))
    variants = [_variant("before", here), _variant("after", there)]
    with _Sides(sides, processes, workers) as runs:
        runs.first(variants[0])
        count = phases if phases is not None else runs.phases_within(budget_s, 2)
        befores, afters = runs.runs(variants, count, on_progress)
    return compared(trace, here, there, befores, afters)


def _check_covered(header: Header, sides: Mapping[SideName, Side]) -> None:
    """Raise InputError with everything in both files that the simulator does not cover."""
    refused: dict[str, InputError] = {}
    for side in sides.values():
        try:
            side.read(header.conf)
        except InputError as error:
            refused.setdefault(side.file, error)
    if len(refused) > 1:
        what = "; ".join(f"{file}: {error.what}" for file, error in refused.items())
        raise InputError(what, where="both files", hint=next(iter(refused.values())).hint)
    for only in refused.values():
        raise only


def compared(
    trace: Trace, here: LoadedSide, there: LoadedSide, befores: Sequence[SideRun], afters: Sequence[SideRun]
) -> Planned:
    """Compare the runs of both sides, the k-th phase of one with the k-th phase of the other."""
    recorded = {job.job: job for job in trace.jobs}
    groups = {name: _group(job, here, there) for name, job in recorded.items()}
    ended = {name for name, job in recorded.items() if job.ended_by_itself} or set(recorded)
    members: dict[str, list[str]] = {}
    for name, queue in groups.items():
        members.setdefault(queue, []).append(name)
    rows = [dict(zip((job.id for job in side.jobs), range(len(side.jobs)), strict=True)) for side in (here, there)]
    leaves = [*here.experiment.leaves, *there.experiment.leaves]
    error = reproduction_error(_replayed(trace, groups, rows[0], befores))
    queues = []
    for queue in dict.fromkeys([*leaves, *members]):
        own = members.get(queue, [])
        both = [name for name in own if name in ended and all(name in row for row in rows)]
        after_of = Counter(place for name in own if (place := there.placed[name][0]) is not None and place != queue)
        why = Counter(reason for name in own if (reason := there.placed[name][1]))
        inside = (queue in here.experiment.leaves, queue in there.experiment.leaves)
        where: dict[tuple[bool, bool], Literal["both", "before", "after", "neither"]] = {
            (True, True): "both",
            (True, False): "before",
            (False, True): "after",
            (False, False): "neither",
        }
        queues.append(
            QueueChange(
                queue,
                where[inside],
                len(own),
                _times(queue, [recorded[name] for name in both], rows, befores, afters),
                _counts(own, rows, befores, afters),
                dict(after_of),
                dict(why),
                _gone(own, rows, befores, afters),
            )
        )
    floor = max(NOTICEABLE, (error or 0.0) / 2)
    unfinished = {
        name: text
        for name, side in (("before", befores), ("after", afters))
        if (text := next((run.unfinished for run in side if run.unfinished), ""))
    }
    return Planned(
        here,
        there,
        len(befores),
        len(recorded),
        sorted(queues, key=lambda one: one.size(floor), reverse=True),
        error,
        floor,
        _notes(trace, here, there, error, unfinished),
        unfinished,
        _submitted(there, rows[1], afters),
        _added(there, rows[1], afters),
    )


def _group(job: JobLine, here: LoadedSide, there: LoadedSide) -> str:
    """Return the queue of an application: where it runs before; if refused there, after; else as recorded."""
    return here.placed[job.job][0] or there.placed[job.job][0] or job.queue


def _times(
    queue: str,
    jobs: Sequence[JobLine],
    rows: Sequence[Mapping[str, int]],
    befores: Sequence[SideRun],
    afters: Sequence[SideRun],
) -> dict[str, Change]:
    """Return means over the applications that have the time on both sides, phase by phase."""
    import numpy as np

    found = {}
    at = [np.array([row[job.job] for job in jobs], dtype=np.int64) for row in rows]
    for figure, attribute, end in (("wait", "wait_s", "started_s"), ("completion", "completion_s", "finished_s")):
        means: tuple[list[float], list[float]] = ([], [])
        recorded = [getattr(job, end) - job.submit_s for job in jobs if getattr(job, end) is not None]
        for here, there in zip(befores, afters, strict=True):
            mine, its = getattr(here, attribute)[at[0]], getattr(there, attribute)[at[1]]
            known = np.isfinite(mine) & np.isfinite(its)
            if known.any():
                means[0].append(float(mine[known].mean()))
                means[1].append(float(its[known].mean()))
            if not known.all():
                recorded = []  # the means are of other applications
        whole = len(means[0]) == len(befores)
        real = math.fsum(recorded) / len(jobs) if jobs and len(recorded) == len(jobs) else None
        found[figure] = Change(tuple(means[0]), tuple(means[1]), real) if whole else Change((), ())
    below = [
        tuple(run.below_due_s[queue] for run in side) if queue in side[0].below_due_s else ()
        for side in (befores, afters)
    ]
    found["below_due"] = Change(below[0], below[1])
    return {name: found[name] for name in TIMES}


def _counts(
    names: Sequence[str],
    rows: Sequence[Mapping[str, int]],
    befores: Sequence[SideRun],
    afters: Sequence[SideRun],
) -> dict[str, Change]:
    import numpy as np

    counts: dict[str, tuple[list[float], list[float]]] = {name: ([], []) for name in COUNTS}
    for side, (row, runs) in enumerate(zip(rows, (befores, afters), strict=True)):
        at = np.array([row[name] for name in names if name in row], dtype=np.int64)
        rejected = len(names) - len(at)
        for run in runs:
            refused, started, over = run.refused[at], np.isfinite(run.wait_s[at]), np.isfinite(run.completion_s[at])
            counts["refused"][side].append(float(rejected + refused.sum()))
            counts["never_started"][side].append(float((~refused & ~started).sum()))
            counts["not_ended"][side].append(float((started & ~over).sum()))
    return {name: Change(tuple(before), tuple(after)) for name, (before, after) in counts.items()}


def _gone(
    names: Sequence[str],
    rows: Sequence[Mapping[str, int]],
    befores: Sequence[SideRun],
    afters: Sequence[SideRun],
) -> dict[str, tuple[float, ...]]:
    """Return how many applications have a time before the change and none after it, phase by phase."""
    import numpy as np

    at = [np.array([row.get(name, -1) for name in names], dtype=np.int64) for row in rows]
    gone: dict[str, tuple[float, ...]] = {}
    for figure, attribute in (("wait", "wait_s"), ("completion", "completion_s")):
        known: list[list[NDArray[np.bool_]]] = []
        for own, runs in zip(at, (befores, afters), strict=True):
            # An additional row for the applications that the side does not accept.
            times = [np.append(getattr(run, attribute), math.nan) for run in runs]
            known.append([np.isfinite(values[own]) for values in times])
        gone[figure] = tuple(float((mine & ~its).sum()) for mine, its in zip(*known, strict=True))
    return gone


def _replayed(
    trace: Trace, groups: Mapping[str, str], row: Mapping[str, int], befores: Sequence[SideRun]
) -> Iterator[Replayed]:
    """Return each queue's applications before the change, compared with the recording."""
    import numpy as np

    names: dict[str, list[JobLine]] = {}
    for job in trace.jobs:
        if job.ended_by_itself:
            names.setdefault(groups[job.job], []).append(job)
    for jobs in names.values():
        at = np.array([row.get(job.job, -1) for job in jobs], dtype=np.int64)
        real = np.array([(job.finished_s or 0.0) - job.submit_s for job in jobs])
        missing_s, replayed_s = [], []
        for run in befores:
            # An additional row for the applications that the scheduler's file refuses.
            played = np.append(run.completion_s, math.nan)[at]
            known = np.isfinite(played)
            missing_s.append(float(real[~known].sum()))
            replayed_s.append(float(played[known].sum()))
        yield Replayed(float(real.sum()), missing_s, replayed_s)


def _submitted(there: LoadedSide, row: Mapping[str, int], afters: Sequence[SideRun]) -> dict[str, Any] | None:
    """Return the result of the added application."""
    if SUBMITTED not in there.placed:
        return None
    queue, why = there.placed[SUBMITTED]
    if queue is None:
        return {"queue": None, "refused_because": why}
    at = row[SUBMITTED]
    found: dict[str, Any] = {"queue": queue}
    for name in ("wait_s", "completion_s"):
        values = [float(getattr(run, name)[at]) for run in afters]
        found[name] = Band.of(values).document() if all(map(math.isfinite, values)) else None
    found["refused"] = sum(bool(run.refused[at]) for run in afters)
    return found


def _added(there: LoadedSide, row: Mapping[str, int], afters: Sequence[SideRun]) -> QueueChange | None:
    """Return the added application in the form that `judged` needs: it does not exist before the change."""
    if SUBMITTED not in there.placed:
        return None
    queue, why = there.placed[SUBMITTED]
    none = (0.0,) * len(afters)
    if queue is None:
        counts = {"refused": Change(none, tuple(1.0 for _ in afters))}
        counts |= dict.fromkeys(("never_started", "not_ended"), Change(none, none))
        return QueueChange(ADDED, "after", 1, dict.fromkeys(TIMES, Change((), ())), counts, reasons={why: 1})
    at = row[SUBMITTED]
    times = {name: tuple(float(getattr(run, f"{name}_s")[at]) for run in afters) for name in ("wait", "completion")}
    refused = tuple(float(run.refused[at]) for run in afters)
    waits = tuple(
        float(not gone and not math.isfinite(value)) for gone, value in zip(refused, times["wait"], strict=True)
    )
    hangs = tuple(
        float(not gone and not stuck and not math.isfinite(value))
        for gone, stuck, value in zip(refused, waits, times["completion"], strict=True)
    )
    return QueueChange(
        ADDED,
        "after",
        1,
        {
            # A time that is missing in one phase is omitted: its mean would be over fewer phases.
            **{name: Change((), values if all(map(math.isfinite, values)) else ()) for name, values in times.items()},
            "below_due": Change((), ()),
        },
        {"refused": Change(none, refused), "never_started": Change(none, waits), "not_ended": Change(none, hangs)},
    )


def _notes(
    trace: Trace, here: LoadedSide, there: LoadedSide, error: float | None, unfinished: Mapping[str, str]
) -> list[str]:
    """Return what the answer does not cover and what it assumes."""
    notes = list(dict.fromkeys([*here.lines, *there.lines]))
    notes += account_lines(trace.header, trace.jobs)
    known = Shape.of(trace.jobs).known
    if known < LEAST_KNOWN:
        notes.append(
            f"unsure: of {100 * (1 - known):.0f} % of the work the tasks are not known (record it with --history for "
            "MapReduce, --spark-history for Spark): an application known by sums keeps as many tasks as it had, so it "
            "gains or loses less here than it would, and how long a queue is below its due may change the other way"
        )
    # A node leaves when it is decommissioned, not when that begins.
    events = Counter(line.change for line in trace.header.changes or () if line.change != "decommissioning")
    if events:
        told = ", ".join(f"{count} {event}" for event, count in events.items())
        notes.append(f"nodes come and go as in the recording, before and after the change: {told}")
    if trace.header.scheduler is not None and trace.header.scheduler != here.file.scheduler:
        notes.append(
            f"the trace was recorded on the {trace.header.scheduler} scheduler, {here.file.path} is a file of the "
            f"{here.file.scheduler} scheduler"
        )
    if here.file.place == "rules":
        notes.append("assumed: each application asks for the queue in which it ran")
    if error is None:
        notes.append("the trace does not say when applications ended: how far the replay is off is not known")
    elif error > MOST_ERROR:
        notes.append(
            f"the replay of {here.file.path} is {100 * error:.0f} % off what really happened (at most "
            f"{100 * MOST_ERROR:.0f} % for a prediction to rely on): is it the configuration that was in force?"
            + (" It may also be the assumed shape of what is known only by sums." if known < 1.0 else "")
        )
    notes += [f"{name}: {text}" for name, text in unfinished.items()]
    return notes


def document_of(found: Planned) -> dict[str, Any]:
    """Return the answer of ``--json``, without what the call adds."""
    described = {
        name: {**side.file.described(), "nodes": [n.model_dump(exclude_none=True) for n in side.nodes]}
        for name, side in (("before", found.before), ("after", found.after))
    }
    return {
        **described,
        "phases": found.phases,
        "applications": found.applications,
        "reproduction_error": found.reproduction_error,
        "noticeable": found.floor,
        "notes": list(found.notes),
        "queues": [one.document(found.floor) for one in found.queues],
        **({"submitted": dict(found.submitted)} if found.submitted is not None else {}),
    }
