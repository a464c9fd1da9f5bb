"""The page and the text of `yarnfair trend`: each metric of a nightly job over its runs, and its changes."""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Literal

from markupsafe import Markup

import harness
from harness.base.outputs import write_output
from harness.base.stats import LONGEST
from harness.base.words import counted, percent_text
from harness.report.svg import COLOURS, LEFT, RIGHT, TOP, WIDTH, lettering, nice_ticks, number, whole
from harness.report.templating import page_templates, typeset
from harness.results.catalogue import in_order
from harness.results.compare import amount_text, number_text
from harness.results.history import WORDS, History, Level, Word
from harness.results.runs import RunRecord

#: Maximum number of drawn metrics per policy: those that have changed, worst first.
DRAWN = 12
#: Number of drawn metrics of a policy of which none has changed: the first ones that vary, in the catalogue's order.
CALM = 4
#: Maximum number of named metrics in the text.
NAMED = 12
_HEIGHT, _BOTTOM = 232, 46
#: Labels of changes: row height, number of rows, and approximate width of a letter.
_ROW, _ROWS, _LETTER = 12, 6, 6.0
#: The colours of a history's last level, by its outcome.
_COLOUR: dict[Word, str] = {"worse": COLOURS[1], "better": COLOURS[2]}


@dataclass(frozen=True, slots=True)
class Group:
    """All metrics of one experiment, policy and backend; changed metrics come first, worst before all."""

    experiment: str
    variant: str
    backend: str
    histories: tuple[History, ...]

    @property
    def title(self) -> str:
        """Return the experiment and the policy, and the backend if it is not the simulator."""
        return f"{self.experiment}, {self.variant}" + ("" if self.backend == "sim" else f" on {self.backend}")

    @property
    def runs(self) -> tuple[RunRecord, ...]:
        """Return the group's valid runs, oldest first, including those that lack some metric."""
        return self.histories[0].series

    def of(self, *words: Word) -> list[History]:
        """Return the metrics with this outcome."""
        return [one for one in self.histories if one.word in words]

    def span(self) -> str:
        """Describe how many runs there are, their dates and their commits."""
        runs = self.runs
        days = [run.start[:10] for run in (runs[0], runs[-1])]
        told = counted(len(runs), "run")
        if all(days):
            told += f" of {days[0]}" if days[0] == days[1] else f" from {days[0]} to {days[1]}"
        commits = list(dict.fromkeys(commit for run in runs if (commit := run.commit)))
        if commits:
            told += f", {counted(len(commits), 'commit')}, the last one {runs[-1].commit or 'unknown'}"
        if any(one.length > len(one.runs) for one in self.histories):
            told += f"; changes are looked for in the latest {LONGEST} values"
        return told


def grouped(histories: Iterable[History]) -> list[Group]:
    """Put the metrics of one experiment, policy and backend together."""
    found: dict[tuple[str, str, str, str], list[History]] = {}
    for one in histories:
        found.setdefault((*one.name, one.runs[-1].hash), []).append(one)
    return [Group(*name[:3], tuple(sorted(own, key=_turn))) for name, own in found.items()]


def _turn(one: History) -> tuple[int, float]:
    """Return the sort key of a metric: by its outcome, then by the size of its change."""
    last = one.levels[-1].median
    moved = abs(last / one.best - 1) if one.best else math.inf if last else 0.0
    return WORDS.index(one.word), -moved


def _since(one: History) -> str:
    """Return the date and the commit of the change to the present level; the run if that is more precise.

    Later small changes are ignored. The decisive change is the first after which all levels are closer to the last
    level than to the best one.
    """
    last, at = one.levels[-1].median, len(one.changes) - 1
    if one.word in ("worse", "better"):
        while at > 0 and abs(one.levels[at].median - last) < abs(one.levels[at].median - one.best):
            at -= 1
    run = one.runs[one.changes[at].at]
    told = [run.start[:10], f"commit {run.commit}" if run.commit else f"{run.path.parent.name}/{run.path.name}"]
    return ", ".join(part for part in told if part)


def _moved(one: History) -> str:
    """Describe from which level to which it changed, and by how much."""
    metric, last = one.key.metric, one.levels[-1].median
    part = f" ({percent_text(last / one.best - 1)})" if one.best > 0 else ""
    return f"{number_text(one.best, metric.digits)} to {amount_text(last, metric)}{part}"


# --- text ---


def lines(groups: Sequence[Group]) -> list[str]:
    """Return the lines for a terminal: for each policy the changed metrics, worst first."""
    found: list[str] = []
    for group in groups:
        found.append(f"{group.title}: {group.span()}")
        changed = group.of("worse", "better", "changed")
        for one in changed[:NAMED]:
            found.append(f"  {one.word:<8}{one.key.title()}: {_moved(one)}, since {_since(one)}")
        rest = [f"{len(changed) - NAMED} more that changed"] if len(changed) > NAMED else []
        same, few = len(group.of("same")), len(group.of("too few runs"))
        rest += [f"{counted(same, 'metric')} without a lasting change"] if same else []
        rest += [f"{counted(few, 'metric')} with too few runs to tell"] if few else []
        found += [f"  {'; '.join(rest)}"] if rest else []
    return found


def document(groups: Sequence[Group], remarks: Sequence[str]) -> dict[str, object]:
    """Return the histories and the remarks as a JSON document, with every value."""
    return {
        "histories": [_as_document(one) for group in groups for one in group.histories],
        "remarks": list(remarks),
    }


def _as_document(one: History) -> dict[str, object]:
    return {
        **one.key.document(),
        "experiment": one.experiment,
        "variant": one.variant,
        "backend": one.backend,
        "length": one.length,
        "word": one.word,
        "words": one.words,
        "best": one.best,
        "levels": [
            {
                "run": str(one.runs[level.first].path),
                "runs": level.end - level.first,
                "median": level.median,
                "least": level.least,
                "greatest": level.greatest,
            }
            for level in one.levels
        ],
        "runs": [
            {"run": str(run.path), "start": run.start, "commit": run.commit, "seed": run.seed, "value": value}
            for run, value in zip(one.runs, one.values, strict=True)
        ],
    }


# --- the page ---


def write_page(path: Path, groups: Sequence[Group], remarks: Sequence[str], source: str) -> None:
    """Write one self-contained HTML page.

    Parameters
    ----------
    path : Path
        The file to write.
    groups : sequence of Group
        What to show, in this order.
    remarks : sequence of str
        Remarks for the reader.
    source : str
        A description of the runs' source.

    Raises
    ------
    InputError
        The disk refuses.
    """
    worse = [(group, one) for group in groups for one in group.of("worse")]
    better = [(group, one) for group in groups for one in group.of("better")]
    few = [one for group in groups for one in group.of("too few runs")]
    every = [one for group in groups for one in group.histories]
    kind = "does-not-hold" if worse else "holds-in-part" if few else "holds"
    page = (
        page_templates()
        .get_template("trend.html.j2")
        .render(
            source=source,
            kind=kind,
            head=f"{counted(len(worse), 'metric')} {'is' if len(worse) == 1 else 'are'} worse than before"
            if worse
            else "Nothing is worse than before"
            if not few
            else f"Too few runs to tell of {len(few)} of {counted(len(every), 'metric')}",
            sentences=[
                f"{group.title}: {one.key.title()}, {typeset(_moved(one))}, since {_since(one)}."
                for group, one in worse[:5]
            ]
            + ([f"And {len(worse) - 5} more."] if len(worse) > 5 else [])
            + ([f"{counted(len(better), 'metric')} better than before."] if better else []),
            remarks=remarks,
            blocks=[_block(at, group) for at, group in enumerate(groups, 1)],
            version=harness.__version__,
        )
    )
    # A folder's name may not be UTF-8.
    write_output(path, page.encode("utf-8", "backslashreplace"), hint="choose another --html FILE")


@dataclass(frozen=True, slots=True)
class _Figure:
    caption: str
    chart: Markup


@dataclass(frozen=True, slots=True)
class _Block:
    """One policy in the template's form.

    ``changed``: whether a metric has changed; if not, the figures are of the first ones that vary. ``rows``: metric,
    outcome, present median, range of the last level, and, if one has changed, best before and since when.
    """

    title: str
    span: str
    changed: bool
    figures: list[_Figure]
    undrawn: int
    heads: list[str]
    rows: list[list[str]]


def _block(ident: int, group: Group) -> _Block:
    changed = group.of("worse", "better", "changed")
    places = {key: at for at, key in enumerate(in_order(one.key for one in group.histories))}
    varying = [one for one in group.histories if min(one.values) < max(one.values)]
    figures = []
    for at, one in enumerate(changed[:DRAWN] or sorted(varying, key=lambda own: places[own.key])[:CALM]):
        drawn = Markup(chart(one, f"trend-{ident}-{at}"))  # `chart` escapes every text
        told = f"{one.word}, {typeset(_moved(one))}" if changed else one.word
        figures.append(_Figure(f"{one.key.title()}: {told}", drawn))
    heads = ["metric", "outcome", "median now", "range now", "best before", "since"]
    shown = len(heads) if any(one.changes for one in group.histories) else 4
    return _Block(
        title=group.title,
        span=group.span(),
        changed=bool(changed),
        figures=figures,
        undrawn=max(len(changed) - DRAWN, 0),
        heads=heads[:shown],
        rows=[_row(one)[:shown] for one in group.histories],
    )


def _row(one: History) -> list[str]:
    metric, last = one.key.metric, one.levels[-1]
    unit = f" {metric.unit}" if metric.unit else ""
    digits = metric.digits
    band = f"{number_text(last.least, digits)} to {number_text(last.greatest, digits)}"
    return [
        f"{one.key.title()}{f' ({unit.strip()})' if unit else ''}",
        one.word,
        number_text(last.median, digits),
        band if last.least != last.greatest else "",
        number_text(one.best, digits) if one.changes else "",
        _since(one) if one.changes else "",
    ]


def _times(runs: Sequence[RunRecord]) -> list[float] | None:
    """Return the days since the first run; None if a run has no time."""
    try:
        found = [datetime.datetime.fromisoformat(run.start) for run in runs]
        days = [(one - found[0]).total_seconds() / 86400 for one in found]
    except (ValueError, TypeError):  # not a time, or only some with a time zone
        return None
    return days if days[-1] > 0 else None


def _ends(first: str, last: str, *, days: float) -> list[str]:
    """Return the labels of both ends of the axis: days, within a day minutes, and seconds where these are the same."""
    shown = slice(0, 10) if days >= 1 else slice(11, 16)
    if first[shown] == last[shown]:
        shown = slice(11, 19)
    labels = [first[shown], last[shown]]
    return labels if labels[0] != labels[1] else [labels[0], ""]


def chart(one: History, ident: str) -> str:
    """Draw a history as SVG: a dot for each run, its levels with their ranges, and a line at the end of each."""
    values, times = one.values, _times(one.runs)
    xs = times if times is not None else [float(at) for at in range(1, len(values) + 1)]
    bottom = _HEIGHT - _BOTTOM

    def px(x: float) -> float:
        return round(LEFT + 6 + (x - xs[0]) / ((xs[-1] - xs[0]) or 1.0) * (WIDTH - LEFT - RIGHT - 12), 1)

    marks = _marks(one, [px(x) for x in xs])
    low, high = min(values), max(values)
    room = (high - low) * 0.08 or abs(high) * 0.05 or 1.0
    # Labels of changes are above the dots, in as many rows as they need.
    lettered = TOP + _ROW * max((mark.row + 1 for mark in marks if mark.row is not None), default=0) + 4
    above = (high - low + 2 * room) * (lettered - TOP) / (bottom - lettered)
    low, high = low - room, high + room + above

    def py(y: float) -> float:
        return round(bottom - (y - low) / (high - low) * (bottom - TOP), 1)

    body = []
    for tick in nice_ticks(low, high):
        body.append(f'<path class="g" d="M{LEFT} {py(tick)}H{WIDTH - RIGHT}"/>')
        body.append(lettering("t", LEFT - 5, py(tick) + 4, number(tick), "end"))
    unit = one.key.metric.unit or "value"
    middle = (TOP + bottom) / 2
    body.append(lettering("l", 11, middle, unit, turned=f' transform="rotate(-90 11 {middle})"'))
    for level in one.levels:
        body += _drawn_level(one, level, [px(x) for x in xs], py)
    for mark in marks:
        title = f"<title>{escape(mark.text)}</title>"
        body.append(f'<path class="v" d="M{mark.x:.1f} {TOP}V{bottom}">{title}</path>')
        if mark.row is not None:
            place = mark.x - 4 if mark.anchor == "end" else mark.x + 4
            body.append(lettering("b", f"{place:.1f}", TOP + 10 + _ROW * mark.row, mark.text, mark.anchor))
    for run, x, value in zip(one.runs, xs, values, strict=True):
        told = ", ".join(
            part for part in (typeset(amount_text(value, one.key.metric)), run.start[:16], run.commit) if part
        )
        body.append(
            f'<circle cx="{px(x)}" cy="{py(value)}" r="2.6" fill="{COLOURS[5]}"><title>{escape(told)}</title></circle>'
        )
    body.append(f'<path class="a" d="M{LEFT} {TOP}V{bottom}H{WIDTH - RIGHT}"/>')
    ends = ["1", str(len(values))]
    if times is not None:
        ends = _ends(one.runs[0].start, one.runs[-1].start, days=times[-1])
    body.append(lettering("t", LEFT, bottom + 16, ends[0], "start"))
    body.append(lettering("t", WIDTH - RIGHT, bottom + 16, ends[1], "end"))
    body.append(
        lettering(
            "l",
            (LEFT + WIDTH - RIGHT) / 2,
            _HEIGHT - 6,
            "run" if times is None else "day" if times[-1] >= 1 else "time",
        )
    )
    description = f"{len(values)} runs from {number(min(values))} to {number(max(values))} {unit}; {one.words}."
    return whole(ident, one.key.title(), description, body, height=_HEIGHT)


@dataclass(frozen=True, slots=True)
class _Mark:
    """The label of a change: position of its line, the text and its side of the line, and its row from above.

    Without a row, the text is only shown as a tooltip of the line.
    """

    x: float
    text: str
    anchor: Literal["start", "end"]
    row: int | None


def _marks(one: History, xs: Sequence[float]) -> list[_Mark]:
    """Label each change beside its line, the latest first, in the highest row without overlaps."""
    marks: list[_Mark] = []
    rows: list[list[tuple[float, float]]] = [[] for _ in range(_ROWS)]  # the occupied ranges, from left to right
    for change in reversed(one.changes):
        run, x = one.runs[change.at], (xs[change.at - 1] + xs[change.at]) / 2
        text = " ".join(part for part in (run.start[:10], run.commit) if part) or run.path.name
        anchor: Literal["start", "end"] = "end" if x > WIDTH * 0.6 else "start"
        width = 4 + _LETTER * len(text)
        left = x - width if anchor == "end" else x
        free = (
            at for at, taken in enumerate(rows) if all(left + width <= begin or end <= left for begin, end in taken)
        )
        row = next(free, None)
        if row is not None:
            rows[row].append((left, left + width))
        marks.append(_Mark(x, text, anchor, row))
    return marks


def _drawn_level(one: History, level: Level, xs: Sequence[float], py: Callable[[float], float]) -> list[str]:
    """Draw a level's median as a line, and the range of its values as a band."""
    last = level.end == len(one.runs)
    colour = _COLOUR.get(one.word, COLOURS[0]) if last else COLOURS[0]
    left, right = xs[level.first] - 4, xs[level.end - 1] + 4
    top, height = py(level.greatest), max(py(level.least) - py(level.greatest), 1.0)
    return [
        f'<rect x="{left:.1f}" y="{top}" width="{right - left:.1f}" height="{height:.1f}" fill="{colour}" '
        'fill-opacity=".15"/>',
        f'<path class="c" d="M{left:.1f} {py(level.median)}H{right:.1f}" stroke="{colour}"/>',
    ]
