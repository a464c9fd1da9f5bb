"""The plots of LTYARN section 7.6: groups over time (Fig. 10a), running tasks (Figs. 10c, 11b), starvation."""

from __future__ import annotations

from collections.abc import Sequence

from harness.report.curves import bucket_means
from harness.report.data import Run, short
from harness.report.figures import BUCKETS, Group, Legend, Styles, allocation_charts, averaging, mean_width
from harness.report.findings import starved_s
from harness.report.svg import Line, LineChart

#: Curves of several policies in one chart cross each other all the time: fewer, longer means.
COARSE = 60
#: What is shown before a time of starvation, and at least after it, in seconds.
AROUND_S = 100.0


def hierarchy_groups(runs: Sequence[Run], styles: Styles) -> list[Group]:
    """Allocation of the queues right below root over time (Fig. 10a), for runs with a tree."""
    trees = [run for run in runs if run.parents]

    def top(run: Run) -> list[str]:
        return [queue for queue in (*run.parents, *run.leaves) if queue.count(".") == 1]

    charts = allocation_charts(trees, styles, top)
    text = "Memory held by the queues right below the root (Fig. 10a), on top of each other."
    legend = styles.legend(queue for run in trees for queue in top(run))
    return [Group("groups", "Allocation of the groups", text + averaging(mean_width(trees)), legend, charts)]


def _chart(runs: Sequence[Run], leaf: str, buckets: int, window: tuple[float, float]) -> tuple[LineChart, float]:
    """A leaf's running tasks under each policy within a span of time, and the width of the means in seconds."""
    lines, width = [], 0.0
    for k, run in enumerate(runs):
        series = run.series.get(leaf)
        if series is None or series.running is None:
            continue
        inside = (series.time_s >= window[0]) & (series.time_s <= window[1])
        if inside.sum() >= 2:
            curve, own = bucket_means(series.time_s[inside], series.running[inside], buckets)
            lines.append(Line(run.label, curve, k))
            width = max(width, own)
    return LineChart(short(leaf), "time (s)", "running tasks", lines, x_range=window), width


def running_groups(runs: Sequence[Run], styles: Styles) -> list[Group]:
    """Running tasks of each leaf under each policy (Figs. 10c, 11b): one chart a queue, one curve a policy."""
    leaves = list(dict.fromkeys(leaf for run in runs for leaf in styles.leaves(run)))
    end = max((run.end_s() for run in runs), default=1.0)
    drawn = [_chart(runs, leaf, COARSE, (0.0, end)) for leaf in leaves]
    charts = [chart for chart, _ in drawn if chart.lines]
    width = max((own for _, own in drawn), default=0.0)
    text = "Containers that run tasks, application masters not counted (the quantity of Figs. 10c and 11b)."
    legend = Legend([(run.label, k) for k, run in enumerate(runs)])
    return [
        *starvation_groups(runs),
        Group("running", "Running tasks of each queue", text + averaging(width), legend, charts),
    ]


def starvation_groups(runs: Sequence[Run]) -> list[Group]:
    """Fig. 10c: running tasks of the queue that the naive policy starves, while it does, under each policy."""
    for run in runs:
        spans = {leaf: run.starvation[short(leaf)] for leaf in run.leaves}
        leaf = max(spans, key=lambda name: spans[name][0], default=None)
        if run.policy != "naive-hltrf" or leaf is None or spans[leaf][0] < starved_s(run):
            continue
        _, start, end = spans[leaf]
        window = (max(0.0, start - AROUND_S), end + max(AROUND_S, end - start))
        chart, width = _chart(runs, leaf, BUCKETS, window)
        text = (
            f"Fig. 10c: {short(leaf)} asks and runs no task from {start:.0f} s to {end:.0f} s under {run.label}; "
            "the same time under the others."
        )
        legend = Legend([(line.name, line.style) for line in chart.lines])
        title = f"{short(leaf)} while it starves under {run.label}"
        return [Group("starvation", title, text + averaging(width), legend, [chart])]
    return []
