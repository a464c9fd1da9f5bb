"""The answer of `yarnfair plan` as text: the queues that change most, the others, and how certain it is."""

from __future__ import annotations

import math
from statistics import fmean

from harness.base.words import counted
from harness.predict.changes import COUNTS, TIMES, Change, QueueChange
from harness.predict.plan import Planned
from harness.predict.verdict import Band

#: What the parentheses after a mean contain.
BANDS = "smallest to largest; after the change wider by what the replay is off the recording before it"
#: Maximum number of queues that are described in full.
MOST_CHANGED = 5


def lines_of(found: Planned) -> list[str]:
    """Return the answer for a person, without notes: the most changed queues, the others, and how certain it is."""
    shown = [one for one in found.queues if tells(one)]
    changed = [one for one in shown if changes(one, found.floor)][:MOST_CHANGED]
    others = [one for one in shown if one not in changed]
    lines = [
        f"{change_of(found)}: {found.applications} applications, means of {found.phases} phases of heartbeats ({BANDS})"
    ]
    for one in changed:
        lines += _block(one, found.floor)
    if not changed:
        lines.append("no queue changes")
    if others:
        lines.append("the other queues:" if changed else "the queues:")
        lines += [f"  {_short(one, found.floor)}" for one in others]
    if silent := len(found.queues) - len(shown):
        lines.append(f"{silent} more without an application")
    lines += submission_lines(found)
    lines.append(how_sure(found))
    return lines


def change_of(found: Planned) -> str:
    """Describe what changes: files, nodes, an additional application."""
    here, there = (sum(node.count for node in side.nodes) for side in (found.before, found.after))
    files = dict.fromkeys((found.before.file.path, found.after.file.path))
    parts = [" to ".join(files)]
    if there != here:
        parts.append(f"{counted(abs(there - here), 'node')} {'more' if there > here else 'fewer'}")
    if found.submitted is not None:
        parts.append("one application more")
    return ", ".join(parts)


def tells(one: QueueChange) -> bool:
    """Return whether there is anything to say about a queue."""
    below = one.times["below_due"]
    return bool(one.applications) or any(below.before) or any(below.after)


def changes(one: QueueChange, floor: float) -> bool:
    """Return whether anything is different for a queue."""
    return one.word(floor) != "same" or bool(one.moved) or one.time_word("below_due", floor) in ("more", "less")


def _block(one: QueueChange, floor: float) -> list[str]:
    lines = [f"{_name(one)}: {one.word(floor)} ({counted(one.applications, 'application')}{_where(one)})"]
    for figure, what in TIMES.items():
        change = one.times[figure]
        if change.known:
            lines.append(f"  {what:<16}{_time(change)}: {one.time_word(figure, floor)}{_relative(change)}")
        elif change.before or change.after:
            side = "before" if change.before else "after"
            lines.append(f"  {what:<16}{band_text(Band.of(change.before or change.after))}, only {side}")
    for name, what in COUNTS.items():
        change = one.counts[name]
        if any(change.before) or any(change.after):
            before, after = fmean(change.before), fmean(change.after)
            lines.append(f"  {what:<16}{before:.4g} to {after:.4g} applications: {change.count_word()}")
    lines += [f"  {counted(count, 'application')} refused: {why}" for why, count in one.reasons.items()]
    lines += [
        f"  {counted(count, 'application')} placed in {queue.removeprefix('root.')}"
        for queue, count in one.moved.items()
    ]
    return lines


def _short(one: QueueChange, floor: float) -> str:
    completion = one.times["completion"]
    told = f", completion {_time(completion)}{_relative(completion)}" if completion.known else ""
    return f"{_name(one)}: {one.word(floor)} ({counted(one.applications, 'application')}{_where(one)}){told}"


def _name(one: QueueChange) -> str:
    return one.queue.removeprefix("root.")


def _where(one: QueueChange) -> str:
    return {"both": "", "before": ", only before", "after": ", only after", "neither": ", in neither file"}[one.where]


def _relative(change: Change) -> str:
    text = part_text(change)
    return text and f", {text}"


def _time(change: Change) -> str:
    return f"{band_text(Band.of(change.before))} to {band_text(change.expected())}"


def band_text(band: Band) -> str:
    """Format seconds, with the smallest and largest value in parentheses."""
    return f"{band.mean:,.1f} s ({band.low:,.1f} to {band.high:,.1f})"


def part_text(change: Change) -> str:
    """Format a relative change in per cent; empty if there is none, or the base is 0."""
    band = change.relative()
    ends = (band.low, band.high)
    if not any(ends) or not all(map(math.isfinite, ends)):
        return ""
    return f"{100 * band.mean:+.1f} % ({100 * band.low:+.1f} to {100 * band.high:+.1f})"


def submission_lines(found: Planned) -> list[str]:
    """Describe the result of the added application."""
    one = found.submitted
    if one is None:
        return []
    if one["queue"] is None:
        return [f"the submitted application is refused: {one['refused_because']}"]
    queue = str(one["queue"]).removeprefix("root.")
    if one["refused"]:
        return [f"the submitted application is refused by {queue} in {one['refused']} of {found.phases} phases"]
    told = [
        f"{what} {value['mean']:,.1f} s ({value['band'][0]:,.1f} to {value['band'][1]:,.1f})"
        for what, value in (("first container after", one["wait_s"]), ("ends after", one["completion_s"]))
        if value is not None
    ]
    return [f"the submitted application in {queue}: {', '.join(told) or 'never starts'}"]


def how_sure(found: Planned) -> str:
    """Describe how far the answer may be off."""
    error = found.reproduction_error
    off = "cannot be held against the recording" if error is None else f"is {100 * error:.1f} % off the recording"
    return (
        f"How sure: the replay before the change {off} (mean completion by queue); changes below "
        f"{100 * found.floor:.1f} % and below 1 s are called same. No recording says how long a queue was below its "
        "due, so that is not held against it. The answer holds for a load like the recorded one."
    )
