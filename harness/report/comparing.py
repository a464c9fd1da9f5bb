"""The page of ``compare --html``: a short table of all contenders, then charts of the changes of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from markupsafe import Markup

import harness
from harness.base.outputs import write_output
from harness.base.words import percent_text
from harness.report.svg import nice_ticks, number
from harness.report.tables import ABSENT, Head, Table
from harness.report.templating import page_templates, typeset
from harness.results.compare import (
    Comparison,
    Contender,
    Row,
    Verdict,
    method,
    named_changes,
    number_text,
    verdict_sentences,
)
from harness.results.runs import RunRecord

#: Larger relative differences are drawn at the border with an arrow; the row's numbers show their size.
MOST = 2.0
#: With at most this many contenders, the unclear metrics of one that has no clear result are shown unfolded.
_MOST_UNFOLDED = 3
#: The axis covers the intervals of this fraction of the rows, so that a single large change does not flatten the rest.
REACHED = 0.8
#: The parts of a table, in reading order: the title, the verdicts, whether it is folded.
_PARTS: tuple[tuple[str, tuple[Verdict, ...], bool], ...] = (
    ("Better", ("better",), False),
    ("Worse", ("worse",), False),
    ("Unclear", ("no difference shown", "too few repeats", "not tested"), True),
    ("Equal in every run", ("equal",), True),
)


@dataclass(frozen=True, slots=True)
class Change:
    """One metric of a contender as a table row: words, numbers, and the drawn interval."""

    metric: str
    better: str
    reference: str
    median: str
    difference: str
    interval: str
    p: str
    words: str
    chart: Markup | None


@dataclass(frozen=True, slots=True)
class Part:
    """Rows of one verdict. `folded`: collapsed until a reader opens it."""

    title: str
    folded: bool
    rows: Sequence[Change]


@dataclass(frozen=True, slots=True)
class Axis:
    """The scale that the intervals of one contender are drawn on: per cent of the reference's median."""

    reach: float

    @classmethod
    def of(cls, pairs: Sequence[tuple[Row, Contender]]) -> Axis:
        """Create the axis for the metrics that have a better direction."""
        ends = sorted(
            max(map(abs, _span(row, own)), default=0.0)
            for row, own in pairs
            if row.judged and own.relative is not None and own.difference
        )
        if not ends:
            return cls(0.01)
        wanted = max(ends[min(len(ends) - 1, int(REACHED * len(ends)))], 0.01)
        step = nice_ticks(0.0, min(wanted, MOST), 2)[-1] / 2
        return cls(min(MOST, next(k * step for k in range(2, 6) if k * step >= min(wanted, MOST) * 0.999)))

    def at(self, value: float) -> str:
        """Return the position of a relative difference, as a fraction of the drawing's width."""
        inside = max(-self.reach, min(self.reach, value))
        return f"{50 + 46 * inside / self.reach:.2f}%"

    @property
    def ticks(self) -> list[tuple[str, str]]:
        """Return position and text of each tick; texts have no sign, because the ends are labelled worse and better."""
        marks = [tick for tick in nice_ticks(-self.reach, self.reach, 4) if abs(tick) <= self.reach * 1.001]
        return [(self.at(tick), f"{number(abs(round(tick * 100, 9)))} %" if tick else "0") for tick in marks]


@dataclass(frozen=True, slots=True)
class Versus:
    """One contender compared with its reference, for the template."""

    ident: str
    contest: str
    contender: str
    reference: str
    title: str
    words: str
    #: Numbers of better, worse, unclear and equal metrics.
    counts: Mapping[str, int]
    #: Description of the metrics that change most.
    most: Mapping[str, Sequence[str]]
    axis: Axis
    parts: Sequence[Part]
    #: Metrics without a better direction.
    others: Sequence[Change]
    note: str


def _of(comparison: Comparison, label: str) -> list[tuple[Row, Contender]]:
    return [(row, own) for row in comparison.rows for own in row.contenders if own.label == label]


def _span(row: Row, own: Contender) -> tuple[float, ...]:
    """Return low end, middle and high end of a difference relative to the reference's median; positive is better."""
    if not row.median:
        return ()
    sign = -1.0 if row.key.metric.better == "lower" else 1.0
    low, high = own.interval if own.interval is not None else (own.difference, own.difference)
    low, middle, high = (sign * value / abs(row.median) for value in (low, own.difference, high))
    return min(low, high), middle, max(low, high)


def interval_drawn(row: Row, own: Contender, axis: Axis) -> str | None:
    """Draw the interval of a relative difference as SVG, better to the right; None if there is nothing to draw."""
    span = _span(row, own)
    if not row.judged or not span:
        return None
    low, middle, high = span
    style = {"better": "good", "worse": "bad"}.get(own.verdict, "open")
    grid = "".join(
        f'<line class="{"a" if text == "0" else "g"}" x1="{at}" x2="{at}" y1="0" y2="100%"/>' for at, text in axis.ticks
    )
    drawn = [
        f'<svg class="span {style}" height="22" role="img" aria-label="{escape(own.words)}">{grid}',
        f'<line class="m" x1="{axis.at(low)}" x2="{axis.at(high)}" y1="11" y2="11"/>',
    ]
    if -axis.reach <= middle <= axis.reach:
        drawn.append(f'<circle cx="{axis.at(middle)}" cy="11" r="4.5"/>')
    # Beyond the border, an arrow replaces the dot or the end of the interval.
    if high > axis.reach:
        drawn.append('<svg x="96%" y="5" width="9" height="12"><path d="M0 0L8 6L0 12Z"/></svg>')
    if low < -axis.reach:
        drawn.append('<svg x="4%" y="5" width="9" height="12" overflow="visible"><path d="M0 0L-8 6L0 12Z"/></svg>')
    return "".join([*drawn, "</svg>"])


def _change(row: Row, own: Contender, axis: Axis) -> Change:
    metric = row.key.metric
    interval = ABSENT
    if own.interval is not None:
        interval = " to ".join(typeset(number_text(x, metric.digits)) for x in own.interval)
    drawn = interval_drawn(row, own, axis)
    p = own.p_adjusted
    return Change(
        metric=row.key.title() + (f" ({metric.unit})" if metric.unit else ""),
        better="" if metric.better == "neither" else f"{metric.better} is better",
        reference=typeset(number_text(row.median, metric.digits)),
        median=typeset(number_text(own.median, metric.digits)),
        difference=ABSENT if own.relative is None else typeset(percent_text(own.relative)),
        interval=interval,
        p=ABSENT if p is None else "<0.001" if p < 0.001 else f"{p:.3f}",
        words=typeset(own.words),
        chart=Markup(drawn) if drawn is not None else None,  # every text in it is escaped above
    )


def _versus(comparison: Comparison, label: str, ident: str) -> Versus:
    reference = comparison.groups[0].label
    pairs = _of(comparison, label)
    axis = Axis.of(pairs)
    judged = [(row, own) for row, own in pairs if row.judged]
    parts: list[Part] = []
    for title, verdicts, folded in _PARTS:
        rows = [_change(row, own, axis) for row, own in judged if own.verdict in verdicts]
        if rows:
            # If a contender is neither better nor worse in anything, there is nothing else to show.
            only = title == "Unclear" and not parts and len(comparison.groups) <= _MOST_UNFOLDED + 1
            parts.append(Part(title, folded and not only, rows))
    return Versus(
        ident=ident,
        contest=comparison.title,
        contender=label,
        reference=reference,
        title=" ".join(filter(None, [f"{comparison.title}:" if comparison.title else "", label, "against", reference])),
        words=typeset(" ".join(verdict_sentences(comparison, label)), (label, reference)),
        counts={title: sum(own.verdict in verdicts for _, own in judged) for title, verdicts, _ in _PARTS},
        most={
            verdict: [typeset(text) for text in named_changes(comparison, label, verdict)]
            for verdict in ("better", "worse")
        },
        axis=axis,
        parts=parts,
        others=[_change(row, own, axis) for row, own in pairs if not row.judged],
        note=method(comparison, label),
    )


def versus_of(comparisons: Sequence[Comparison]) -> list[Versus]:
    """Return every contender of every contest in the page's form."""
    found: list[Versus] = []
    for comparison in comparisons:
        for group in comparison.groups[1:]:
            found.append(_versus(comparison, group.label, f"versus-{len(found) + 1}"))
    return found


def _version(run: RunRecord) -> str:
    found = run.info.get("versions")
    return str(found.get("yarnfair", "?") if isinstance(found, Mapping) else found or "?")


def render_comparison(comparisons: Sequence[Comparison], remarks: Sequence[str]) -> str:
    """Return the page as HTML; it loads nothing and runs no script."""
    environment = page_templates()
    versus = versus_of(comparisons)
    groups = [
        [
            group.label,
            str(len(group.runs)),
            ", ".join(map(str, sorted({run.seed for run in group.runs if run.seed is not None}))) or ABSENT,
            ", ".join(dict.fromkeys(run.backend for run in group.runs)),
            ", ".join(dict.fromkeys(_version(run) for run in group.runs)),
            ", ".join(dict.fromkeys(run.hash[:12] or ABSENT for run in group.runs)),
        ]
        for comparison in comparisons
        for group in comparison.groups
    ]
    heads = [Head(text) for text in ("group", "runs", "seeds", "backend", "version", "experiment's hash")]
    return environment.get_template("compare.html.j2").render(
        versus=versus,
        notes=list(dict.fromkeys(one.note for one in versus)),
        remarks=remarks,
        groups=Table("Groups", heads, [list(row) for row in dict.fromkeys(map(tuple, groups))], numeric=False),
        version=harness.__version__,
    )


def write_page(comparisons: Sequence[Comparison], remarks: Sequence[str], out: Path) -> None:
    """Write the page atomically.

    Raises InputError if the disk refuses.
    """
    text = render_comparison(comparisons, remarks)
    write_output(out, text, hint="choose another file")
