"""The page of `yarnfair assess`: the verdict, who gains and loses, how sure that is. Words and figures are given."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from markupsafe import Markup

import harness
from harness.report.svg import BarChart, bar_chart, swatch
from harness.report.templating import page_templates


class BandLike(Protocol):
    """A mean, and the smallest and largest over the phases."""

    @property
    def mean(self) -> float: ...
    @property
    def low(self) -> float: ...
    @property
    def high(self) -> float: ...


class VerdictLike(Protocol):
    """What the page says of the verdict."""

    @property
    def answer(self) -> str: ...
    @property
    def lines(self) -> Sequence[str]: ...


@dataclass(frozen=True, slots=True)
class PageRow:
    """A queue: its applications, mean completion as recorded and as replayed (s), and under the other policy."""

    queue: str
    jobs: int
    recorded_s: float
    present: BandLike
    other: BandLike | None
    change: BandLike | None


def assessment_page(
    verdict: VerdictLike,
    rows: Sequence[PageRow],
    losses: Sequence[tuple[str, BandLike, int]],
    present: str,
    other: str | None,
    source: str,
    recommended: str | None = None,
) -> str:
    """One self-contained HTML page. ``losses``: of every policy the sharing loss integral (s) and how many phases."""
    shown = sorted(rows, key=lambda row: -row.jobs)[:12]
    series = ["recorded", f"replayed, {present}"] + ([other] if other else [])
    chart = BarChart(
        "Mean completion time by queue",
        "seconds",
        [row.queue.removeprefix("root.") for row in shown],
        series,
        [[row.recorded_s, row.present.mean, *([row.other.mean] if row.other else [])] for row in shown],
        digits=0,
    )
    # A policy has one colour in both charts; those that the first does not show come after.
    rest = iter(range(len(series), len(series) + len(losses)))
    styles = [{present: 1, other: 2}.get(name) or next(rest) for name, _, _ in losses]
    loss = BarChart(
        "Sharing loss integral by policy", "seconds", [""], [name for name, _, _ in losses],
        [[band.mean for _, band, _ in losses]], digits=0, styles=styles,
    )  # fmt: skip
    table = [
        [
            row.queue,
            # First what comes of it: a narrow page shows no more without scrolling.
            "" if row.change is None else _change(row.change),
            "" if row.other is None else _band(row.other),
            _band(row.present),
            f"{row.recorded_s:.1f}",
            f"{row.jobs}",
        ]
        for row in rows
    ]
    # "no, nothing to gain: why".
    head, _, first = verdict.lines[0].partition(": ")
    return page_templates().get_template("assess.html.j2").render(
        answer=verdict.answer,
        head=head,
        first=first,
        lines=verdict.lines[1:],
        source=source,
        charts=[
            (one.title, Markup(bar_chart(one, ident)), _legend(one))
            for one, ident in ((chart, "completion"), (loss, "loss"))
        ],
        heads=["queue", "change", f"{other or 'no other'}, s", f"{present}, s", "recorded, s", "applications"],
        table=table,
        policies=[
            [f"{name} (recommended)" if name == recommended else name, _band(band), str(phases)]
            for name, band, phases in losses
        ],
        version=harness.__version__,
    )  # fmt: skip


def _legend(chart: BarChart) -> list[tuple[Markup, str]]:
    return [(Markup(swatch(style, filled=True)), name) for name, style in zip(chart.series, chart.shown, strict=True)]


def _band(band: BandLike) -> str:
    return f"{band.mean:.1f} ({band.low:.1f} to {band.high:.1f})"


def _change(band: BandLike) -> str:
    return f"{100 * band.mean:+.1f} % ({100 * band.low:+.0f} to {100 * band.high:+.0f})".replace("-", "\u2212")
