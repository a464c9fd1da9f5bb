"""The page of `yarnfair assess` for a colleague without Hadoop: the verdict, who gains and loses, how sure that is."""

from __future__ import annotations

from pathlib import Path

from markupsafe import Markup

import harness
from harness.base.files import write_text
from harness.predict.assess import Assessed
from harness.predict.verdict import Band
from harness.report.svg import BarChart, bar_chart, swatch
from harness.report.tables import banded, figure_text
from harness.report.templating import page_templates


def write_page(path: Path, found: Assessed, source: str) -> None:
    """Write one self-contained HTML page."""
    evidence, best, lines = found.evidence, found.verdict.best, found.verdict.lines
    present = evidence.present
    able = [one for one in found.played[1:] if all(map(one.shows, evidence.jobs))]
    other = best or min(able, key=lambda one: one.over("loss").mean, default=None)
    jobs = {queue: count for queue, count in evidence.jobs.items() if present.shows(queue)}
    most = sorted(jobs, key=lambda queue: -jobs[queue])[:12]
    shown = [queue for queue in jobs if queue in most]  # in the table's order
    series = ["recorded", f"replayed, {present.name}"] + ([other.name] if other else [])
    chart = BarChart(
        "Mean completion time by queue",
        "seconds",
        [queue.removeprefix("root.") for queue in shown],
        series,
        [
            [evidence.real_s[queue], *(played.band(queue).mean for played in (present, other) if played)]
            for queue in shown
        ],
        digits=0,
    )
    losses = [(played.name, played.over("loss"), len(played.outcomes)) for played in found.played]
    # A policy has the same colour in both charts; policies that the first chart does not show come last.
    rest = iter(range(len(series), len(series) + len(losses)))
    known = {present.name: 1} | ({other.name: 2} if other else {})
    loss = BarChart(
        "Sharing loss integral by policy",
        "seconds",
        [""],
        [name for name, _, _ in losses],
        [[band.mean for _, band, _ in losses]],
        digits=0,
        styles=[known.get(name) or next(rest) for name, _, _ in losses],
    )
    table = [
        [
            queue.removeprefix("root."),
            # The result comes first: a narrow page shows no more without scrolling.
            *([_change(other.change(present, queue)), _band(other.band(queue))] if other else []),
            _band(present.band(queue)),
            figure_text(evidence.real_s[queue], 1),
            f"{count}",
        ]
        for queue, count in jobs.items()
    ]
    # "no, nothing to gain: why".
    head, _, first = lines[0].partition(": ")
    heads = [*(["change", f"{other.name}, s"] if other else []), f"{present.name}, s", "recorded, s"]
    # Names that come from other people, and may occur in the sentences.
    names = [*evidence.jobs, *(queue.removeprefix("root.") for queue in evidence.jobs)]
    names += [played.name for played in found.played]
    page = page_templates().get_template("assess.html.j2").render(
        answer=found.verdict.answer,
        head=head,
        first=first,
        lines=lines[1:],
        names=names,
        source=source,
        charts=[
            (one.title, Markup(bar_chart(one, ident)), _legend(one))
            for one, ident in ((chart, "completion"), (loss, "loss"))
            # A missing bar, a single bar, or bars of height 0 compare nothing.
            if (shown if one is chart else len(losses) > 1 and any(band.mean > 0 for _, band, _ in losses))
        ],
        heads=["queue", *heads, "applications"],
        table=table,
        policies=[
            [f"{name} (recommended)" if best and name == best.name else name, _band(band), str(phases)]
            for name, band, phases in losses
        ],
        version=harness.__version__,
    )  # fmt: skip
    write_text(path, page)


def _legend(chart: BarChart) -> list[tuple[Markup, str]]:
    return [(Markup(swatch(style, filled=True)), name) for name, style in zip(chart.series, chart.shown, strict=True)]


def _band(band: Band) -> str:
    return banded(figure_text(band.mean, 1), (band.low, band.high), 1)


def _change(band: Band) -> str:
    return f"{100 * band.mean:+.1f} % ({100 * band.low:+.0f} to {100 * band.high:+.0f})".replace("-", "\u2212")
