"""The page of ``compare --html``: one table a contender, and its relative differences with their intervals drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from markupsafe import Markup

import harness
from harness.base.outputs import write_output
from harness.report.svg import COLOURS, lettering
from harness.report.tables import ABSENT, Head, Table
from harness.report.templating import page_templates
from harness.results.compare import Comparison, Contender, Row, number_text, verdict_sentences
from harness.results.runs import RunRecord

#: A row is a line of words above its interval, so that the words can be read on a phone.
ROW, MARGIN, WIDE, TOP = 32, 26, 420, 20
#: Relative differences beyond this are drawn at the border; the row says how far they go.
MOST = 2.0


@dataclass(frozen=True, slots=True)
class Versus:
    """One contender against its reference, as the template shows it."""

    ident: str
    title: str
    words: str
    chart: Markup | None
    table: Table


def _of(comparison: Comparison, label: str) -> list[tuple[Row, Contender]]:
    return [(row, own) for row in comparison.rows for own in row.contenders if own.label == label]


def _table(comparison: Comparison, label: str) -> Table:
    rows = []
    for row, own in _of(comparison, label):
        metric = row.key.metric
        digits = metric.digits
        interval = ABSENT
        if own.interval is not None:
            interval = " to ".join(number_text(x, digits) for x in own.interval)
        rows.append(
            [
                row.key.title() + (f" ({metric.unit})" if metric.unit else ""),
                metric.better,
                number_text(row.median, digits),
                number_text(own.median, digits),
                number_text(own.difference, digits),
                interval,
                ABSENT if own.p is None else f"{own.p:.4f}",
                ABSENT if own.p_adjusted is None else f"{own.p_adjusted:.4f}",
                own.words,
            ]
        )
    medians = (f"median, {comparison.groups[0].label}", f"median, {label}")
    numbers = (*medians, "difference", "95 % interval", "p", "p, corrected", "in words")
    heads = [Head("metric"), Head("better"), *(Head(text, "") for text in numbers)]
    paired = any(own.pairs is not None for _, own in _of(comparison, label))
    note = (
        f"{'Paired by seed: the median of the differences' if paired else 'The difference of the medians'}, its "
        "interval by bootstrap (4,000 resamples), a permutation test on ranks "
        f"({'signed ranks' if paired else 'rank sums'}), corrected for the number of metrics "
        f"({ {'bh': 'Benjamini-Hochberg', 'holm': 'Holm', 'none': 'not at all'}[comparison.correction] })."
    )
    return Table("Every metric", heads, rows, note)


def forest(pairs: Sequence[tuple[Row, Contender]], ident: str, title: str) -> str | None:
    """Relative differences (per cent of the reference's median) with intervals, one row a judged metric; SVG text."""
    shown = [(row, own) for row, own in pairs if row.judged and own.relative is not None and row.median]
    if not shown:
        return None

    def part(row: Row, value: float) -> float:
        return max(-MOST, min(MOST, value / abs(row.median)))

    spans, beyond = [], []
    for row, own in shown:
        low, high = own.interval if own.interval is not None else (own.difference, own.difference)
        spans.append((part(row, low), part(row, own.difference), part(row, high)))
        beyond.append(_beyond(row, low, high))
    reach = max(0.01, max(abs(x) for span in spans for x in span)) * 1.05
    height = TOP + ROW * len(shown) + 34

    def x(value: float) -> float:
        return round(MARGIN + (value / reach + 1) / 2 * (WIDE - 2 * MARGIN), 1)

    text = [
        f'<svg viewBox="0 0 {WIDE} {height}" role="img" aria-labelledby="{ident}-t">',
        f'<title id="{ident}-t">{escape(title)}</title>',
    ]
    bottom = TOP + ROW * len(shown)
    for mark in (-reach / 1.05, -reach / 2.1, 0.0, reach / 2.1, reach / 1.05):
        kind = "a" if not mark else "g"
        text.append(f'<path class="{kind}" d="M{x(mark)} {TOP}V{bottom}"/>')
        label = f"{mark * 100:+.3g}" if mark else "0"
        # Of many rows only one end is in sight.
        for end in (TOP - 6, bottom + 14):
            text.append(lettering("t", x(mark), end, label))
    for at, ((row, own), (low, middle, high)) in enumerate(zip(shown, spans, strict=True)):
        y = TOP + ROW * at + 22
        colour = {"better": COLOURS[2], "worse": COLOURS[1]}.get(own.verdict, COLOURS[5])
        name = row.key.title()
        most = 60 - len(beyond[at])
        # What tells rows apart is the queue, at a name's end.
        name = name if len(name) <= most else f"{name[: most - 17]}\u2026{name[-16:]}"
        text.append(f'<text class="t" x="4" y="{y - 8}">{escape(name)}</text>')
        text.append(f'<path d="M{x(low)} {y}H{x(high)}" stroke="{colour}" stroke-width="2" fill="none"/>')
        text.append(f'<circle cx="{x(middle)}" cy="{y}" r="4" fill="{colour}"/>')
        if beyond[at]:
            text.append(lettering("t", WIDE - 4, y - 8, beyond[at], "end"))
    text.append(
        f'<text class="l" x="{WIDE / 2}" y="{height - 4}" text-anchor="middle">'
        "difference, % of the reference's median</text></svg>"
    )
    return "".join(text)


def _beyond(row: Row, low: float, high: float) -> str:
    """How far an interval goes beyond the chart: ``cut: to +450 %``; '' when all of it is drawn."""
    whole = abs(row.median)
    ends = [
        f"{word} {end / whole:+.0%}".replace("-", "\u2212").replace("%", " %")
        for word, end in (("from", low), ("to", high))
        if abs(end) > MOST * whole
    ]
    return f"cut: {' '.join(ends)}" if ends else ""


def versus_of(comparisons: Sequence[Comparison]) -> list[Versus]:
    """Every contender of every contest, as the page shows it."""
    found: list[Versus] = []
    for comparison in comparisons:
        for group in comparison.groups[1:]:
            ident = f"versus-{len(found) + 1}"
            title = f"{group.label} against {comparison.groups[0].label}"
            title = f"{comparison.title}: {title}" if comparison.title else title
            drawn = forest(_of(comparison, group.label), ident, title)
            words = " ".join(verdict_sentences(comparison, group.label))
            chart = Markup(drawn) if drawn is not None else None  # every text in it is escaped above
            found.append(Versus(ident, title, words, chart, _table(comparison, group.label)))
    return found


def _version(run: RunRecord) -> str:
    found = run.info.get("versions")
    return str(found.get("yarnfair", "?") if isinstance(found, Mapping) else found or "?")


def render_comparison(comparisons: Sequence[Comparison], remarks: Sequence[str]) -> str:
    """The page as HTML text; it loads nothing and runs no script."""
    environment = page_templates()
    groups = [
        [
            group.label,
            str(len(group.runs)),
            ", ".join(dict.fromkeys(str(run.seed) for run in group.runs if run.seed is not None)) or ABSENT,
            ", ".join(dict.fromkeys(run.backend for run in group.runs)),
            ", ".join(dict.fromkeys(_version(run) for run in group.runs)),
            ", ".join(dict.fromkeys(run.hash[:12] or ABSENT for run in group.runs)),
        ]
        for comparison in comparisons
        for group in comparison.groups
    ]
    heads = [Head(text) for text in ("group", "runs", "seeds", "backend", "version", "experiment's hash")]
    return environment.get_template("compare.html.j2").render(
        versus=versus_of(comparisons),
        remarks=remarks,
        groups=Table("Groups", heads, [list(row) for row in dict.fromkeys(map(tuple, groups))], numeric=False),
        version=harness.__version__,
    )


def write_page(comparisons: Sequence[Comparison], remarks: Sequence[str], out: Path) -> None:
    """Writes the page, whole or not at all.

    Raises InputError when the disk refuses.
    """
    text = render_comparison(comparisons, remarks)
    write_output(out, text, hint="choose another file")
