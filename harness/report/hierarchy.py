"""The plots of LTYARN section 7.6: groups over time (Fig. 10a), running tasks (Figs. 10c, 11b), starvation."""

from __future__ import annotations

from collections.abc import Sequence

from harness.report.curves import Curve, bucket_means
from harness.report.data import Run, Series, short
from harness.report.figures import BUCKETS, Group, Legend, Styles, allocation_charts, averaging, mean_width
from harness.report.findings import starved_s
from harness.report.svg import Line, LineChart
from harness.report.variants import Variant

#: Curves of several policies in one chart cross each other all the time: fewer, longer means.
COARSE = 60
#: What is shown before a time of starvation, and at least after it, in seconds.
AROUND_S = 100.0


def hierarchy_groups(variants: Sequence[Variant], styles: Styles) -> list[Group]:
    """Allocation of the queues right below root over time (Fig. 10a), for runs with a tree."""
    trees = [one for one in variants if one.first.parents]

    def top(one: Variant) -> list[str]:
        return [queue for queue in (*one.first.parents, *one.leaves) if queue.count(".") == 1]

    charts = allocation_charts(trees, styles, top)
    text = "Memory held by the queues right below the root (Fig. 10a), on top of each other."
    legend = styles.legend(queue for one in trees for queue in top(one))
    return [Group("groups", "Allocation of the groups", text + averaging(mean_width(trees)), legend, charts)]


def _chart(
    variants: Sequence[Variant], leaf: str, buckets: int, window: tuple[float, float]
) -> tuple[LineChart, float]:
    """A leaf's running tasks under each policy within a span of time, and the width of the means in seconds."""
    widths = [0.0]

    def running(_: Run, series: Series) -> Curve | None:
        inside = (series.time_s >= window[0]) & (series.time_s <= window[1])
        if series.running is None or inside.sum() < 2:
            return None
        curve, width = bucket_means(series.time_s[inside], series.running[inside], buckets)
        widths.append(width)
        return curve

    curves = [one.course(leaf, running, after_end=0.0) for one in variants]
    lines = [
        Line(one.name, curve, k)
        for k, (one, curve) in enumerate(zip(variants, curves, strict=True))
        if curve is not None
    ]
    return LineChart(short(leaf), "time (s)", "running tasks", lines, x_range=window), max(widths)


def running_groups(variants: Sequence[Variant], styles: Styles) -> list[Group]:
    """Running tasks of each leaf under each policy (Figs. 10c, 11b): one chart a queue, one curve a policy."""
    leaves = list(dict.fromkeys(leaf for one in variants for leaf in styles.leaves(one)))
    end = max((one.end_s() for one in variants), default=1.0)
    drawn = [_chart(variants, leaf, COARSE, (0.0, end)) for leaf in leaves]
    charts = [chart for chart, _ in drawn if chart.lines]
    width = max((own for _, own in drawn), default=0.0)
    text = "Containers that run tasks, application masters not counted (the quantity of Figs. 10c and 11b)."
    legend = Legend([(one.name, k) for k, one in enumerate(variants)])
    return [
        *starvation_groups(variants),
        Group("running", "Running tasks of each queue", text + averaging(width), legend, charts),
    ]


def starvation_groups(variants: Sequence[Variant]) -> list[Group]:
    """Fig. 10c: running tasks of the queue that the naive policy starves, while it does, under each policy.

    Of several seeds the first: each starves at times of its own.
    """
    alone = [Variant(one.first.label, [one.first]) for one in variants]
    for run in (one.first for one in alone):
        spans = {leaf: run.starvation[short(leaf)] for leaf in run.leaves}
        leaf = max(spans, key=lambda name: spans[name][0], default=None)
        if run.policy != "naive-hltrf" or leaf is None or spans[leaf][0] < starved_s(run):
            continue
        _, start, end = spans[leaf]
        window = (max(0.0, start - AROUND_S), end + max(AROUND_S, end - start))
        chart, width = _chart(alone, leaf, BUCKETS, window)
        text = (
            f"Fig. 10c: {short(leaf)} asks and runs no task from {start:.0f} s to {end:.0f} s under {run.label}; "
            "the same time under the others."
        )
        legend = Legend([(line.name, line.style) for line in chart.lines])
        title = f"{short(leaf)} while it starves under {run.label}"
        return [Group("starvation", title, text + averaging(width), legend, [chart])]
    return []
