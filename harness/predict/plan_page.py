"""The page of `yarnfair plan` for a colleague without Hadoop: each queue before and after, and how certain that is."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from markupsafe import Markup

import harness
from harness.base.outputs import write_output
from harness.base.words import counted
from harness.predict.changes import COUNTS, TIMES, Case, Change, QueueChange, Word, verdict_of
from harness.predict.plan import Planned
from harness.predict.plan_words import (
    MOST_CHANGED,
    band_text,
    change_of,
    changes,
    how_sure,
    part_text,
    submission_lines,
    tells,
)
from harness.predict.verdict import Band
from harness.report.svg import BarChart, bar_chart, swatch
from harness.report.templating import page_templates

#: Maximum number of queues in a chart.
_DRAWN = 12
_MANY = ("refused", "never", "later", "unsure", "sooner", "taken", "ended")


def write_page(path: Path, found: Planned, cases: Sequence[Case], source: str) -> None:
    """Write one self-contained HTML page.

    Raises InputError when the disk refuses.
    """
    shown = [one for one in found.queues if tells(one)]
    changed = [one for one in shown if changes(one, found.floor)]
    first = changed[:MOST_CHANGED]
    drawn = [one for one in shown if one.times["completion"].known][:_DRAWN]
    chart = BarChart(
        "Mean time from submission to the end, by queue",
        "seconds",
        [_name(one) for one in drawn],
        ["before", "after"],
        [
            [Band.of(side).mean for side in (one.times["completion"].before, one.times["completion"].after)]
            for one in drawn
        ],
        digits=0,
    )
    verdict = verdict_of(cases)
    page = (
        page_templates()
        .get_template("plan.html.j2")
        .render(
            change=change_of(found),
            source=source,
            kind={"fine": "holds", "unsure": "holds-in-part", "regression": "does-not-hold"}[verdict]
            if cases
            else "holds-in-part",
            head=headline(changed, len(shown), found.floor),
            sentences=sentences(changed, found.floor),
            gate=_gate(cases),
            submitted=submission_lines(found),
            notes=found.notes,
            sure=how_sure(found),
            phases=found.phases,
            chart=Markup(bar_chart(chart, "completion")) if drawn else None,
            title=chart.title,
            legend=[
                (Markup(swatch(style, filled=True)), name)
                for style, name in zip(chart.shown, chart.series, strict=True)
            ],
            blocks=[(_name(one), one.word(found.floor), _more(one), _rows(one, found.floor)) for one in first],
            table=[[_name(one), *_completion(one, found.floor), str(one.applications)] for one in shown],
            silent=len(found.queues) - len(shown),
            cases=[(case.name(), case.verdict, case.words().removeprefix(f"{case.name()}: ")) for case in cases],
            version=harness.__version__,
        )
    )
    write_output(path, page, hint="choose another --html FILE")


def _name(one: QueueChange) -> str:
    return one.queue.removeprefix("root.")


def headline(changed: Sequence[QueueChange], of: int, floor: float) -> str:
    """Count the queues that change, of all that are shown, and apart from them those of which it is not sure."""
    unsure = sum(one.word(floor) == "unsure" for one in changed)
    sure = len(changed) - unsure
    more = f", {unsure} unsure" if unsure else ""
    return f"{sure} of {counted(of, 'queue')} {'changes' if sure == 1 else 'change'}{more}"


def sentences(changed: Sequence[QueueChange], floor: float) -> list[str]:
    """Return sentences on which queues have which word, the worst first, and on other changes of unchanged queues."""
    words = {
        "refused": "Refuses applications",
        "never": "Leaves applications waiting for ever",
        "taken": "Takes applications that it refused",
        "ended": "Ends applications that waited for ever",
    }
    groups = {words.get(word, word.capitalize()): [one for one in changed if one.word(floor) == word] for word in _MANY}
    same = [one for one in changed if one.word(floor) == "same"]
    groups["As soon as before, in another queue"] = [one for one in same if one.moved]
    for word, time in (("more", "for longer"), ("less", "for less time")):
        own = [one for one in same if not one.moved and one.time_word("below_due", floor) == word]
        groups[f"As soon as before, but below its due {time}"] = own
    found = []
    for what, queues in groups.items():
        if queues:
            more = f" and {len(queues) - 8} more" if len(queues) > 8 else ""
            found.append(f"{what}: {', '.join(map(_name, queues[:8]))}{more}.")
    return found


def _gate(cases: Sequence[Case]) -> str:
    """Describe the result of the gate in a sentence; empty if there is none."""
    if not cases:
        return ""
    red = [case for case in cases if not case.passes]
    if not red:
        return f"The gate is open: each of {counted(len(cases), 'case')} is fine."
    return (
        f"The gate is closed: {len(red)} of {counted(len(cases), 'case')} {'is' if len(red) == 1 else 'are'} not fine."
    )


def _rows(one: QueueChange, floor: float) -> list[list[str]]:
    """Return a table's rows: the quantity, before, after, the change, the word."""
    rows = [
        [what.capitalize(), *_cells(one.times[name], one.time_word(name, floor))]
        for name, what in TIMES.items()
        if one.times[name].before or one.times[name].after
    ]
    for name, what in COUNTS.items():
        change = one.counts[name]
        if any(change.before) or any(change.after):
            sides = [f"{Band.of(side).mean:.4g} applications" for side in (change.before, change.after)]
            rows.append([what.capitalize(), *sides, "", change.count_word()])
    return rows


def _cells(change: Change, word: Word) -> list[str]:
    before = band_text(Band.of(change.before)) if change.before else "none"
    after = band_text(change.expected()) if change.after else "none"
    return [before, after, _minus(part_text(change)) if change.known else "", word if change.known else ""]


def _completion(one: QueueChange, floor: float) -> list[str]:
    """Return a row of the table of all queues: the word, the change, before and after."""
    change = one.times["completion"]
    before, after, part, _ = _cells(change, "same")
    return [one.word(floor), part, before, after]


def _minus(text: str) -> str:
    return text.replace("-", "\u2212")


def _more(one: QueueChange) -> list[str]:
    """Explain why applications are refused, and where they run instead."""
    found = [f"{counted(count, 'application')} refused: {why}" for why, count in one.reasons.items()]
    return found + [
        f"{counted(count, 'application')} placed in {queue.removeprefix('root.')}" for queue, count in one.moved.items()
    ]
