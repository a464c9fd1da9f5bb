"""The page of `yarnfair usage` for a colleague without Hadoop: what each queue had, lent and borrowed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from markupsafe import Markup

import harness
from harness.base.outputs import write_output
from harness.predict.payback import Payback
from harness.predict.usage import MB_S_PER_GIB_H, Account, By, Period, gib_hours, gib_hours_digits, statement_digits
from harness.report.svg import BarChart, bar_chart, swatch
from harness.report.templating import page_templates, typeset

#: Maximum number of queues in a chart.
_DRAWN = 12
_FIGURES: tuple[tuple[str, Callable[[Account], float]], ...] = (
    ("due", lambda one: one.due),
    ("had", lambda one: one.had),
    ("lent", lambda one: one.lent),
    ("borrowed", lambda one: one.borrowed),
)
#: Columns of the table; what is owed is a balance, not a part of what was had.
_CELLS = (*_FIGURES, ("paid back", lambda one: one.paid_back), ("owed", lambda one: one.owed))


def write_page(
    path: Path,
    periods: Sequence[Period],
    by: By,
    source: str,
    notes: Sequence[str],
    paid_back: Payback | None = None,
) -> None:
    """Write one self-contained HTML page.

    Parameters
    ----------
    path : Path
        The file to write.
    periods : sequence of Period
        The statement.
    by : {"day", "week", "month"}
        The length of a period.
    source : str
        A description of the statement's source.
    notes : sequence of str
        Assumptions and gaps of the trace.
    paid_back : Payback, optional
        What long-term fairness would have paid back.

    Raises
    ------
    InputError
        The disk refuses.
    """
    digits = statement_digits(periods)
    whole: dict[str, dict[str, float]] = {}
    for period in periods:
        for leaf, account in period.accounts.items():
            row = whole.setdefault(leaf, dict.fromkeys((name for name, _ in _FIGURES), 0.0))
            for name, figure in _FIGURES:
                row[name] += figure(account)
    most = sorted(whole, key=lambda leaf: -max(whole[leaf]["due"], whole[leaf]["had"]))[:_DRAWN]
    drawn = [leaf for leaf in whole if leaf in most]  # in the tables' order
    chart = BarChart(
        "The whole time, by queue",
        "GiB·h",
        [_short(leaf) for leaf in drawn],
        [name for name, _ in _FIGURES],
        [[whole[leaf][name] / MB_S_PER_GIB_H for name, _ in _FIGURES] for leaf in drawn],
        digits=gib_hours_digits(value for leaf in drawn for value in whole[leaf].values()),
    )
    legend = [(Markup(swatch(style, filled=True)), name) for name, style in zip(chart.series, chart.shown, strict=True)]
    page = (
        page_templates()
        .get_template("usage.html.j2")
        .render(
            source=source,
            by=by,
            notes=notes,
            svg=Markup(bar_chart(chart, "usage")),
            title=chart.title,
            legend=legend,
            left=len(whole) - len(drawn),
            heads=["queue", *(name for name, _ in _CELLS), "users", "borrowed of"],
            paid_back=[
                [_short(queue), *(typeset(gib_hours(value, paid_back.digits)) for value in paid_back.figures(queue))]
                for queue in paid_back.owed
            ]
            if paid_back is not None
            else [],
            meaning=typeset(paid_back.meaning()) if paid_back is not None else "",
            periods=[(period.name, _rows(period, digits)) for period in reversed(periods)],
            version=harness.__version__,
        )
    )
    write_output(path, page)


def _rows(period: Period, digits: int) -> list[list[str]]:
    """Return a row for each queue with a due, a usage or a loan."""
    return [
        [
            _short(leaf),
            *(typeset(gib_hours(figure(account), digits)) for _, figure in _CELLS),
            _parts(account.users, digits),
            _parts({_short(lender): value for lender, value in account.from_.items()}, digits),
        ]
        for leaf, account in period.accounts.items()
    ]


def _parts(of: dict[str, float], digits: int) -> str:
    """Return the three largest parts by name, and the number of others."""
    ordered = sorted(((name, value) for name, value in of.items() if value > 0), key=lambda one: (-one[1], one[0]))
    more = f", {len(ordered) - 3} more" if len(ordered) > 3 else ""
    return ", ".join(f"{name} {gib_hours(value, digits)}" for name, value in ordered[:3]) + more


def _short(leaf: str) -> str:
    return leaf.removeprefix("root.")
