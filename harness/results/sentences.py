"""Three sentences on an experiment's runs: what sharing over time changed for whom, its cost, and the next step.

Pure: turns summaries into text. The thresholds below decide which sentence is chosen.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any

from harness.base.stats import half_width_95
from harness.results.catalogue import number

#: A smaller relative difference of a mean completion or an end counts as the same.
SAME = 0.02
#: A smaller relative difference of the sharing loss counts as about the same.
ABOUT = 0.1
#: A smaller relative reduction of the sharing loss is not enough to recommend a policy.
LESS = 0.2
#: Below this mean sharing loss, sharing over time has nothing to improve (the threshold of ``last_loss_s``).
LITTLE_LOSS = 0.01


@dataclass(frozen=True, slots=True)
class Ran:
    """One variant: its label, whether its policy pays back what was lent, whether it acts from outside, its summary.

    ``scheduler``: the scheduler that it ran on. ``has_horizon``: whether its horizon was given. ``own``: whether its
    policy is a user's file. ``shares``: whether a queue may use more than its share. ``seeds``: the summary of each
    seed (``summary`` is their mean). With several seeds, a change only counts if the 95 % interval of the mean of the
    seeds' changes excludes 0.
    """

    label: str
    gives_back: bool
    outside: bool
    summary: Mapping[str, Any]
    has_horizon: bool = False
    own: bool = False
    seeds: Mapping[int, Mapping[str, Any]] = field(default_factory=dict)
    scheduler: str = "fair"
    shares: bool = True


@dataclass(frozen=True, slots=True)
class Change:
    """The relative change of a value from one variant to another.

    ``part`` is the mean of the seeds' changes, over the seeds that both variants have; with fewer than two such seeds
    the change of the values themselves. ``clear``: whether the 95 % interval of the change, ``low`` to ``high`` (over
    the same seeds), excludes 0. With fewer than two such seeds the interval is the change itself, and it counts as
    clear.
    """

    part: float
    low: float
    high: float
    seeds: int

    @property
    def clear(self) -> bool:
        """Return whether its direction is certain despite the differences between seeds."""
        return self.seeds < 2 or self.low > 0 or self.high < 0


def change(before: Ran, after: Ran, value_of: Callable[[Mapping[str, object]], float | None]) -> Change | None:
    """Return the relative change of a value between two variants; None if one has no number, or ``before`` has 0."""
    was, now = value_of(before.summary), value_of(after.summary)
    if was is None or now is None or was <= 0:
        return None
    part = now / was - 1
    common = sorted(before.seeds.keys() & after.seeds.keys())
    pairs = [(value_of(before.seeds[seed]), value_of(after.seeds[seed])) for seed in common]
    each = [new / old - 1 for old, new in pairs if old is not None and new is not None and old > 0]
    if len(each) < 2 or len(each) < len(pairs):
        return Change(part, part, part, 1)
    half = half_width_95(each)
    mean = fmean(each)  # not the change of the means: figure and interval are of one estimator
    return Change(mean, mean - half, mean + half, len(each))


def completion_of(queue: str) -> Callable[[Mapping[str, Any]], float | None]:
    """Return a function that returns the mean completion time of a queue's jobs from a summary, in seconds."""
    return lambda summary: number(((summary.get("queues") or {}).get(queue) or {}).get("mean_completion_s"))


def sentences(name: str, runs: Sequence[Ran]) -> list[str]:
    """Return three sentences on the runs of experiment ``name``.

    They are about a user's own policy if there is one. Otherwise they are about the run that pays back with the
    smallest sharing loss, preferably among those from outside, because a cluster can use these. They compare it with
    the first run on the same scheduler that does not pay back but divides the cluster by demand; with a fixed partition
    (no sharing at all) only if there is no other.

    The list is empty without a run that pays back and one that does not. If such runs are on different schedulers only,
    it has one sentence, which says so.
    """
    pair = before_and_after(runs)
    if pair is None:
        without, with_memory = _without(runs), _with_memory(runs)
        if without is None or with_memory is None:
            return []
        return [
            f"What changed: not comparable, because {with_memory.label} ran on the {_title(with_memory.scheduler)} and "
            f"{without.label} on the {_title(without.scheduler)}; run a policy without memory on the same scheduler."
        ]
    without, with_memory = pair
    moved = _moved(without, with_memory)
    return [
        _changed(without, with_memory, moved.faster),
        _cost(without, with_memory, moved),
        _next(name, without, with_memory, moved.slower),
    ]


def before_and_after(runs: Sequence[Ran]) -> tuple[Ran, Ran] | None:
    """Return the two runs that `sentences` compares: first the one whose policy pays back no debts.

    Both ran on one scheduler, because what another scheduler changes is not what the policy changes. The scheduler of a
    user's own policy comes first, then the scheduler of the reference run. None without such a pair.
    """
    first = _without(runs)
    schedulers = dict.fromkeys([*([first.scheduler] if first is not None else []), *(run.scheduler for run in runs)])
    pairs = []
    for scheduler in schedulers:
        alike = [run for run in runs if run.scheduler == scheduler]
        without, with_memory = _without(alike), _with_memory(alike)
        if without is not None and with_memory is not None:
            pairs.append((without, with_memory))
    return min(pairs, key=lambda pair: not pair[1].own, default=None)


def reference(runs: Sequence[Ran]) -> str | None:
    """Return the label of the reference run: the first that shares and does not pay back, or else the first run."""
    found = _without(runs) or (runs[0] if runs else None)
    return None if found is None else found.label


def percent(part: float) -> str:
    """Format a number as ``16 %``."""
    return f"{part * 100:.0f} %"


def _cut_off(run: Ran) -> bool:
    """Return whether jobs were left when the run ended. Counts may be means over seeds."""
    queues = (run.summary.get("queues") or {}).values()
    return any((q.get("jobs") or 0) - q.get("ended", q.get("jobs") or 0) - (q.get("failed") or 0) > 0 for q in queues)


def _title(scheduler: str) -> str:
    return f"{scheduler.title()} Scheduler"


def _with_memory(runs: Sequence[Ran]) -> Ran | None:
    found = [run for run in runs if run.own] or [run for run in runs if run.gives_back]
    found = [run for run in found if run.outside] or found
    return min(found, key=lambda run: _loss(run), default=None)


def _without(runs: Sequence[Ran]) -> Ran | None:
    found = [run for run in runs if not run.own and not run.gives_back]
    return next((run for run in found if run.shares), found[0] if found else None)


def _loss(run: Ran) -> float:
    value = run.summary.get("sharing_loss_integral")
    return float(value) if isinstance(value, int | float) else float("inf")


@dataclass(frozen=True, slots=True)
class _Moved:
    """Queues whose mean completion changes under the long-term policy, as ``Spark (16 %)``, largest change first.

    ``unclear``: queues whose seeds disagree on the direction.
    """

    faster: Sequence[str]
    slower: Sequence[str]
    unclear: Sequence[str]
    #: Without a job that ended under both.
    unknown: Sequence[str]


def _moved(without: Ran, with_memory: Ran) -> _Moved:
    found = {
        queue.removeprefix("root."): change(without, with_memory, completion_of(queue))
        for queue in with_memory.summary.get("queues") or {}
    }
    jobs = {queue: own.get("jobs") for queue, own in (with_memory.summary.get("queues") or {}).items()}
    known = sorted(((one, queue) for queue, one in found.items() if one is not None), key=lambda one: -abs(one[0].part))
    large = [(one, f"{queue} ({percent(abs(one.part))})") for one, queue in known if abs(one.part) > SAME]
    return _Moved(
        faster=[text for one, text in large if one.clear and one.part < 0],
        slower=[text for one, text in large if one.clear and one.part > 0],
        unclear=[text for one, text in large if not one.clear],
        unknown=[queue for queue, one in found.items() if one is None and jobs.get(f"root.{queue}")],
    )


def _listed(names: Sequence[str], most: int = 3) -> str:
    """Format a list as ``A``, ``A and B``, ``A, B, C and 4 more``."""
    shown = [*names[:most], *([f"{len(names) - most} more"] if len(names) > most else [])]
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"


def _changed(without: Ran, with_memory: Ran, faster: Sequence[str]) -> str:
    before, after = _loss(without), _loss(with_memory)
    pair = f"{before:,.1f} to {after:,.1f} s"
    if before < float("inf") and after < float("inf"):
        found = change(without, with_memory, lambda summary: number(summary.get("sharing_loss_integral")))
        part = found.part if found is not None else 0.0
        if abs(part) <= ABOUT:
            loss = f"leaves the sharing loss about as it was ({pair})"
        elif found is not None and not found.clear:
            loss = f"has a sharing loss that the {found.seeds} seeds do not agree on ({pair})"
        elif part < 0:
            loss = f"cuts the sharing loss from {pair} ({percent(part)})"
        else:
            loss = f"raises the sharing loss from {pair} (+{percent(part)})"
    else:
        loss = "was simulated to its end"
    who = f"mean jobs get faster in {_listed(faster)}" if faster else "no queue's mean job gets faster"
    return f"What changed: {with_memory.label} {loss} against {without.label}, and {who}."


def _cost(without: Ran, with_memory: Ran, moved: _Moved) -> str:
    found = change(without, with_memory, lambda summary: number(summary.get("makespan_s")))
    if _cut_off(without) or _cut_off(with_memory):
        whole = "the runs were cut off before the load's end"
    elif found is None:
        whole = "the time of the whole load is not known"
    elif abs(found.part) <= SAME:
        whole = "the whole load ends at the same time"
    else:
        whole = f"the whole load ends {percent(abs(found.part))} {'later' if found.part > 0 else 'earlier'}"
        whole += "" if found.clear else f", on which the {found.seeds} seeds do not agree"
    slower = moved.slower
    nobody = f"no queue's mean job gets slower by over {percent(SAME)}"
    who = f"mean jobs get slower in {_listed(slower)}" if slower else nobody
    if slower and _nobody_slower_than_alone(with_memory):
        who += ", but not slower than if each queue had a fixed part of the cluster"
    if moved.unclear:
        # Otherwise "no queue gets slower" would claim more than these seeds can show.
        who = who if slower else "no queue's mean job gets clearly slower"
        who += f"; the seeds do not agree on the direction of {_listed(moved.unclear)}"
    if moved.unknown:
        who += f" ({_listed(moved.unknown)} ended no job to compare)"
    return f"What it cost: {who}; {whole}."


def _nobody_slower_than_alone(run: Ran) -> bool:
    """Return whether each queue's mean job is as fast as under static partitioning.

    False without a static run, and for runs that were cut off, because other jobs have ended in them.
    """
    speedups = [own.get("speedup_over_static") for own in (run.summary.get("queues") or {}).values()]
    return bool(speedups) and not _cut_off(run) and all((speedup or 0.0) >= 1 - SAME for speedup in speedups)


def _policy(run: Ran) -> str:
    return run.label.partition(",")[0]


def _next(name: str, without: Ran, with_memory: Ran, slower: Sequence[str]) -> str:
    mean = without.summary.get("sharing_loss")
    if isinstance(mean, int | float) and abs(mean) < LITTLE_LOSS:
        what = (
            f"queues lose little here even under {without.label} (mean {mean:+.3f}), so that there is little to give "
            "back; a load where they lose more is `yarnfair run contended`"
        )
    elif _loss(with_memory) > _loss(without) * (1 - LESS):
        as_well = "better" if _loss(with_memory) > _loss(without) * (1 + ABOUT) else "as well"
        what = f"{without.label} serves this load {as_well}; look where queues lose, in the report"
    elif with_memory.own:
        what = "see how sure that is: run several seeds (`--seed 1-5`), then `yarnfair compare`"
    elif slower and with_memory.outside and not with_memory.has_horizon:
        what = (
            "to soften the price, lengthen the horizon: "
            f"`yarnfair run {name} --policy {_policy(without)},{_policy(with_memory)} --set horizon_s=640`"
        )
    elif with_memory.outside:
        what = "see it on your own cluster, without changing it: `yarnfair enforce --dry-run`"
    else:
        policies = f"{_policy(without)},{_policy(with_memory)}@outside"
        what = f"the same from outside, as a cluster can have it: `yarnfair run {name} --policy {policies}`"
    return f"What next: {what}."
