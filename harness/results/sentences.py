"""What an experiment's runs say in three sentences: what sharing over time changed for whom, what it cost, what next.

Pure: from summaries to text. Thresholds are here, so that a reader can see why a sentence was chosen.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

#: A mean completion or an end that differs by less than this part is called the same.
SAME = 0.02
#: A sharing loss that differs by less than this part is about the same.
ABOUT = 0.1
#: A sharing loss that falls by less than this part has not fallen enough to recommend a policy for it.
LESS = 0.2
#: Below this mean sharing loss a load leaves sharing over time nothing to mend (the threshold of ``last_loss_s``).
LITTLE_LOSS = 0.01


@dataclass(frozen=True, slots=True)
class Ran:
    """One variant: its label, whether its policy gives back what was lent, whether from outside, and its summary.

    ``has_horizon``: whether its horizon was given. ``own``: whether its policy is a user's file.
    """

    label: str
    gives_back: bool
    outside: bool
    summary: Mapping[str, Any]
    has_horizon: bool = False
    own: bool = False


def sentences(name: str, runs: Sequence[Ran]) -> list[str]:
    """Three sentences on the runs of experiment ``name``; none without a run that gives back and one that does not.

    They are about a user's own policy if there is one. Otherwise they are about the run that gives back with the
    smallest sharing loss, of those from outside where there are any: that is what a cluster can have. They compare it
    with the first that does not give back and divides the cluster anew as demand changes; with a fixed partition (no
    sharing at all) only where there is no other.
    """
    pair = before_and_after(runs)
    if pair is None:
        return []
    without, with_memory = pair
    faster, slower = _moved(without, with_memory)
    return [
        _changed(without, with_memory, faster),
        _cost(without, with_memory, slower),
        _next(name, without, with_memory, slower),
    ]


def before_and_after(runs: Sequence[Ran]) -> tuple[Ran, Ran] | None:
    """The two runs that `sentences` is about, the one that does not give back first; None without such a pair."""
    with_memory, without = _with_memory(runs), _without(runs)
    return None if with_memory is None or without is None else (without, with_memory)


def reference(runs: Sequence[Ran]) -> str | None:
    """The label of the run that others are held against: the first that shares and does not give back."""
    found = _without(runs) or (runs[0] if runs else None)
    return None if found is None else found.label


def percent(part: float) -> str:
    """``16 %``."""
    return f"{part * 100:.0f} %"


def _cut_off(run: Ran) -> bool:
    """Whether jobs were left when the run ended. Counts may be means over seeds."""
    queues = (run.summary.get("queues") or {}).values()
    return any((q.get("jobs") or 0) - q.get("ended", q.get("jobs") or 0) - (q.get("failed") or 0) > 0 for q in queues)


def _with_memory(runs: Sequence[Ran]) -> Ran | None:
    found = [run for run in runs if run.own] or [run for run in runs if run.gives_back]
    found = [run for run in found if run.outside] or found
    return min(found, key=lambda run: _loss(run), default=None)


def _without(runs: Sequence[Ran]) -> Ran | None:
    found = [run for run in runs if not run.own and not run.gives_back]
    return next((run for run in found if run.label.partition(",")[0] != "static"), found[0] if found else None)


def _loss(run: Ran) -> float:
    value = run.summary.get("sharing_loss_integral")
    return float(value) if isinstance(value, int | float) else float("inf")


def _moved(without: Ran, with_memory: Ran) -> tuple[list[str], list[str]]:
    """(queues whose mean job is faster with memory, slower ones), each as ``Spark 16 %``, the largest change first."""
    changes: list[tuple[float, str]] = []
    queues = with_memory.summary.get("queues") or {}
    for queue, own in queues.items():
        after = own.get("mean_completion_s")
        before = (without.summary.get("queues") or {}).get(queue, {}).get("mean_completion_s")
        if isinstance(after, int | float) and isinstance(before, int | float) and before > 0:
            changes.append((after / before - 1, queue.removeprefix("root.")))
    changes.sort(key=lambda change: -abs(change[0]))
    faster = [f"{queue} ({percent(-change)})" for change, queue in changes if change < -SAME]
    slower = [f"{queue} ({percent(change)})" for change, queue in changes if change > SAME]
    return faster, slower


def _listed(names: Sequence[str], most: int = 3) -> str:
    """``A``, ``A and B``, ``A, B, C and 4 more``."""
    shown = [*names[:most], *([f"{len(names) - most} more"] if len(names) > most else [])]
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"


def _changed(without: Ran, with_memory: Ran, faster: Sequence[str]) -> str:
    before, after = _loss(without), _loss(with_memory)
    pair = f"{before:,.1f} to {after:,.1f} s"
    if before < float("inf") and after < float("inf"):
        part = (after / before - 1) if before > 0 else 0.0
        if part < -ABOUT:
            loss = f"cuts the sharing loss from {pair} ({percent(part)})"
        elif part > ABOUT:
            loss = f"raises the sharing loss from {pair} (+{percent(part)})"
        else:
            loss = f"leaves the sharing loss about as it was ({pair})"
    else:
        loss = "was simulated to its end"
    who = f"mean jobs get faster in {_listed(faster)}" if faster else "no queue's mean job gets faster"
    return f"What changed: {with_memory.label} {loss} against {without.label}, and {who}."


def _cost(without: Ran, with_memory: Ran, slower: Sequence[str]) -> str:
    before, after = without.summary.get("makespan_s"), with_memory.summary.get("makespan_s")
    if _cut_off(without) or _cut_off(with_memory):
        whole = "the runs were cut off before the load's end"
    elif isinstance(before, int | float) and isinstance(after, int | float) and before > 0:
        change = after / before - 1
        whole = (
            "the whole load ends at the same time"
            if abs(change) <= SAME
            else f"the whole load ends {percent(abs(change))} {'later' if change > 0 else 'earlier'}"
        )
    else:
        whole = "the time of the whole load is not known"
    nobody = f"no queue's mean job gets slower by over {percent(SAME)}"
    who = f"mean jobs get slower in {_listed(slower)}" if slower else nobody
    if slower and _nobody_slower_than_alone(with_memory):
        who += ", but not slower than if each queue had a fixed part of the cluster"
    return f"What it cost: {who}; {whole}."


def _nobody_slower_than_alone(run: Ran) -> bool:
    """Whether each queue's mean job is as fast as under static partitioning.

    False without a static run, and of runs that were cut off: other jobs have ended in them.
    """
    speedups = [own.get("speedup_over_static") for own in (run.summary.get("queues") or {}).values()]
    return bool(speedups) and not _cut_off(run) and all((speedup or 0.0) >= 1 - SAME for speedup in speedups)


def _policy(run: Ran) -> str:
    return run.label.partition(",")[0]


def _next(name: str, without: Ran, with_memory: Ran, slower: Sequence[str]) -> str:
    mean = without.summary.get("sharing_loss")
    if isinstance(mean, int | float) and abs(mean) < LITTLE_LOSS:
        what = (
            f"queues lose little here even under {without.label} (mean {mean:+.3f}), because they pause; "
            "a load where they do not is `yarnfair run contended`"
        )
    elif _loss(with_memory) > _loss(without) * (1 - LESS):
        what = f"{without.label} serves this load as well; look where queues lose, in the report"
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
