"""The plots of LTYARN section 7.6: groups over time (Fig. 10a), running tasks (Figs. 10c, 11b), starvation."""

from __future__ import annotations

from collections.abc import Sequence

from harness.report.curves import Curve, bucket_means, within
from harness.report.data import Run, Series, short
from harness.report.figures import BUCKETS, Group, Legend, Styles, allocation_charts, averaging, mean_width, shared
from harness.report.findings import starved_s
from harness.report.svg import Line, LineChart
from harness.report.variants import Variant

#: Maximum number of means of a curve in the small charts of running tasks.
COARSE = 60
#: Maximum number of charts of running tasks on a page.
MOST_SMALL = 40
#: Time shown before a starvation, and at least after it, in seconds.
AROUND_S = 100.0


def hierarchy_groups(variants: Sequence[Variant], styles: Styles) -> list[Group]:
    """Return the allocation of the queues directly below root over time (Fig. 10a), for runs with a tree."""
    trees = [one for one in variants if one.first.parents]

    def top(one: Variant) -> list[str]:
        return [queue for queue in (*one.first.parents, *one.leaves) if queue.count(".") == 1]

    charts = allocation_charts(trees, styles, top)
    text = "Memory held by the queues right below the root (Fig. 10a), on top of each other."
    legend = styles.legend(queue for one in trees for queue in top(one))
    return [Group("groups", "Allocation of the groups", text + averaging(mean_width(trees)), legend, charts)]


def _running(variant: Variant, leaf: str, buckets: int, window: tuple[float, float]) -> tuple[Curve | None, float]:
    """Return a leaf's running tasks under a policy within a time span, and the width of the means in seconds."""
    widths = [0.0]

    def running(_: Run, series: Series) -> Curve | None:
        inside = (series.time_s >= window[0]) & (series.time_s <= window[1])
        if series.running is None or inside.sum() < 2:
            return None
        curve, width = bucket_means(series.time_s[inside], series.running[inside], buckets)
        widths.append(width)
        return curve

    curve = variant.course(leaf, running, after_end=0.0)
    return None if curve is None else within(curve, low=0.0), max(widths)


def running_groups(variants: Sequence[Variant], styles: Styles) -> list[Group]:
    """Return running tasks of each leaf under each policy (Figs. 10c, 11b): small multiples, one row per queue."""
    leaves = list(dict.fromkeys(leaf for one in variants for leaf in styles.leaves(one)))
    # Limited so that a page with many queues and policies stays readable.
    shown = leaves[: max(1, MOST_SMALL // max(len(variants), 1))]
    end = max((one.end_s() for one in variants), default=1.0)
    charts: list[LineChart] = []
    width = 0.0
    for leaf in shown:
        own = []
        for one in variants:
            curve, wide = _running(one, leaf, COARSE, (0.0, end))
            width = max(width, wide)
            if curve is not None:
                title = short(leaf) if len(variants) == 1 else f"{short(leaf)}, {one.name}"
                line = Line(short(leaf), curve, styles.queues[leaf])
                own.append(LineChart(title, "time (s)", "running tasks", [line], x_range=(0.0, end)))
        charts += shared(own)
    text = "Containers that run tasks, application masters not counted (the quantity of Figs. 10c and 11b)."
    if len(variants) > 1:
        text += " The charts of a queue have the same axes."
    if len(shown) < len(leaves):
        text += f" The first {len(shown)} of {len(leaves)} queues; allocations.parquet of each run has all."
    return [
        *starvation_groups(variants, styles),
        Group("running", "Running tasks of each queue", text + averaging(width), Legend([]), charts, len(variants)),
    ]


def starvation_groups(variants: Sequence[Variant], styles: Styles) -> list[Group]:
    """Return Fig. 10c: running tasks, under each policy, of the queue that the naive policy starves during that time.

    For several seeds the first one is shown, because starvation occurs at different times in each.
    """
    alone = [(one.name, Variant(one.first.label, [one.first])) for one in variants]
    for run in (one.first for _, one in alone):
        spans = {leaf: run.starvation[short(leaf)] for leaf in run.leaves}
        leaf = max(spans, key=lambda name: spans[name][0], default=None)
        if run.policy != "naive-hltrf" or leaf is None or spans[leaf][0] < starved_s(run):
            continue
        _, start, end = spans[leaf]
        window = (max(0.0, start - AROUND_S), end + max(AROUND_S, end - start))
        lines, width = [], 0.0
        for name, one in alone:
            curve, wide = _running(one, leaf, BUCKETS, window)
            width = max(width, wide)
            lines += [Line(one.name, curve, styles.variants[name])] if curve is not None else []
        chart = LineChart(short(leaf), "time (s)", "running tasks", lines, x_range=window)
        text = (
            f"Fig. 10c: {short(leaf)} asks and runs no task from {start:.0f} s to {end:.0f} s under {run.label}; "
            "the same time under the others."
        )
        legend = Legend([(line.name, line.style) for line in chart.lines])
        title = f"{short(leaf)} while it starves under {run.label}"
        return [Group("starvation", title, text + averaging(width), legend, [chart])]
    return []
