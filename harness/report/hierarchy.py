"""The plots of LTYARN section 7.6: groups over time (Fig. 10a), running tasks (Figs. 10c, 11b), starvation."""

from __future__ import annotations

from collections.abc import Sequence

from harness.report.curves import bucket_means
from harness.report.data import Run, Series, short
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
    if not charts:
        return []
    text = "Memory held by the queues right below the root (Fig. 10a), on top of each other."
    legend = styles.legend(queue for run in trees for queue in top(run))
    return [Group("groups", "Allocation of the groups", text + averaging(mean_width(trees)), legend, charts)]


def _running(run: Run, leaf: str) -> Series | None:
    series = run.series.get(leaf)
    return series if series is not None and series.running is not None and len(series.time_s) else None


def running_groups(runs: Sequence[Run], styles: Styles) -> list[Group]:
    """Running tasks of each leaf under each policy (Figs. 10c, 11b): one chart a queue, one curve a policy."""
    leaves = list(dict.fromkeys(leaf for run in runs for leaf in styles.leaves(run)))
    charts, width = [], 0.0
    end = max((run.end_s() for run in runs), default=1.0)
    for leaf in leaves:
        lines = []
        for k, run in enumerate(runs):
            series = _running(run, leaf)
            if series is not None and series.running is not None:
                curve, own = bucket_means(series.time_s, series.running, COARSE)
                lines.append(Line(run.label, curve, k))
                width = max(width, own)
        if lines:
            charts.append(LineChart(short(leaf), "time (s)", "running tasks", lines, x_range=(0.0, end)))
    if not charts:
        return []
    text = "Containers that run tasks, application masters not counted (the quantity of Figs. 10c and 11b)."
    legend = Legend([(run.label, k) for k, run in enumerate(runs)])
    return [
        *starvation_groups(runs),
        Group("running", "Running tasks of each queue", text + averaging(width), legend, charts),
    ]


def starvation_groups(runs: Sequence[Run]) -> list[Group]:
    """Fig. 10c: running tasks of the queue that the naive policy starves, while it does, under each policy."""
    for run in runs:
        spans = {leaf: run.starvation()[short(leaf)] for leaf in run.leaves}
        leaf = max(spans, key=lambda name: spans[name][0], default=None)
        if run.policy != "naive-hltrf" or leaf is None or spans[leaf][0] < starved_s(run):
            continue
        _, start, end = spans[leaf]
        after_s = max(AROUND_S, end - start)
        window = (max(0.0, start - AROUND_S), end + after_s)
        lines, width = [], 0.0
        for k, other in enumerate(runs):
            series = _running(other, leaf)
            if series is None or series.running is None:
                continue
            inside = (series.time_s >= window[0]) & (series.time_s <= window[1])
            if inside.sum() < 2:
                continue
            curve, own = bucket_means(series.time_s[inside], series.running[inside], BUCKETS)
            lines.append(Line(other.label, curve, k))
            width = max(width, own)
        chart = LineChart(short(leaf), "time (s)", "running tasks", lines, x_range=window)
        text = (
            f"Fig. 10c: {short(leaf)} asks and runs no task from {start:.0f} s to {end:.0f} s under {run.label}; "
            "the same time under the others."
        )
        legend = Legend([(line.name, line.style) for line in lines])
        title = f"{short(leaf)} while it starves under {run.label}"
        return [Group("starvation", title, text + averaging(width), legend, [chart])]
    return []
