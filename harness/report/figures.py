"""The papers' plots from runs: curves, units and titles. Draws nothing.

Charts of one quantity share their axes over all runs, so that policies are compared by eye.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from statistics import fmean
from typing import Any

import numpy as np

from harness.base.stats import half_width_95
from harness.policies.registry import has_detail_figure
from harness.report.charts import Chart
from harness.report.curves import Curve, Floats, bucket_means, over_seeds, steps, within
from harness.report.data import Run, Series, short
from harness.report.svg import COLOURS, BarChart, Line, LineChart, needed_y_range
from harness.report.variants import Variant, by_experiment, grouped
from harness.results.metrics import sharing_benefit_and_loss

#: Maximum number of time spans over which a noisy curve is averaged.
BUCKETS = 180
#: Maximum number of samples of a smooth curve (an integral).
POINTS = 500
#: With more queues than MOST_QUEUES, only FURTHEST of them are drawn.
MOST_QUEUES, FURTHEST = 12, 8
#: The colour of the other queues together.
OTHERS = 5
#: The early fraction of the time, where ratios of two small integrals are meaningless and would stretch the axis.
EARLY = 0.05
#: LTYARN Fig. 6 shows the first 260 s.
DETAIL_S = 260.0


@dataclass(frozen=True, slots=True)
class Legend:
    """Names of the curves, areas or bars in a group of charts: (name, style)."""

    names: Sequence[tuple[str, int]]


@dataclass(frozen=True, slots=True)
class Group:
    """Charts of one quantity: a heading, an explanation, and a common legend."""

    ident: str
    title: str
    text: str
    legend: Legend
    charts: Sequence[Chart]
    #: The number of charts that form one row and belong together; 0: any.
    columns: int = 0


@dataclass(frozen=True, slots=True)
class Styles:
    """Numbers of colours and dashes; a queue or variant has the same in every chart of the page."""

    queues: Mapping[str, int]
    #: The leaves that are drawn.
    drawn: frozenset[str]
    #: By the variants' names.
    variants: Mapping[str, int]

    @staticmethod
    def of(runs: Sequence[Run]) -> Styles:
        """Number the queues and variants of runs.

        Leaves that are drawn come first, in the order of the first run that has them, then parents, then other leaves.
        """
        names: dict[str, int] = {}
        leaves = list(dict.fromkeys(q for run in runs for q in run.leaves))
        drawn = furthest(runs, leaves)
        first = [q for q in leaves if q in drawn]
        for queue in [*first, *(q for run in runs for q in run.parents), *leaves]:
            names.setdefault(queue, len(names))
        return Styles(names, drawn, variant_styles(runs))

    def leaves(self, variant: Variant) -> list[str]:
        """Return the leaves of a variant that are drawn."""
        return [leaf for leaf in variant.leaves if leaf in self.drawn]

    def legend(self, queues: Iterable[str]) -> Legend:
        """Return the legend of these queues, in the order of their numbers."""
        wanted = set(queues)
        return Legend([(short(queue), style) for queue, style in self.queues.items() if queue in wanted])


#: Style numbers of common policies, so that a policy looks the same on every page.
_POLICY_STYLES = {
    ("static", "inside"): 0,
    ("fair", "inside"): 1,
    ("ltrf", "inside"): 2,
    ("ltrf", "outside"): 3,
    ("hltrf", "inside"): 4,
    ("naive-hltrf", "inside"): 5,
    ("hltrf", "outside"): 6,
    ("capacity", "inside"): 7,
}


def variant_styles(runs: Sequence[Run]) -> dict[str, int]:
    """Return a number for each variant name: its policy's own, or the lowest free one if that is taken.

    Experiments are numbered one by one, since no chart has variants of two: a policy looks the same in each of them.
    """
    return {name: k for _, own in by_experiment(grouped(runs)) for name, k in _styles_of_one(own).items()}


def _styles_of_one(variants: Sequence[Variant]) -> dict[str, int]:
    """Return the numbers of one experiment's variants."""
    first = {variant.name: variant.first for variant in variants}
    # A variant with settings leaves the policy's number to the variant without.
    plain = sorted(first, key=lambda name: bool(first[name].settings) or name != first[name].label)
    wanted = {name: _POLICY_STYLES.get((first[name].policy, first[name].mode)) for name in plain}
    found: dict[str, int] = {}
    for name, number in wanted.items():
        if number is not None and number not in found.values():
            found[name] = number
    # Numbers of absent policies are used last, because they may appear beside the same variants on another page.
    spare = [k for k in range(len(COLOURS)) if k not in _POLICY_STYLES.values()] + [*range(len(COLOURS) - 1, -1, -1)]
    for name in first:
        if name not in found:
            free = [k for k in spare if k not in found.values()]
            found[name] = free[0] if free else len(found)
    return found


def furthest(runs: Sequence[Run], leaves: Sequence[str]) -> frozenset[str]:
    """Return all leaves, or with more than MOST_QUEUES those whose fairness degree is furthest from 1 in any run."""
    if len(leaves) <= MOST_QUEUES:
        return frozenset(leaves)

    def distance(leaf: str) -> float:
        degrees = [run.queue_figure(leaf, "fairness_degree") for run in runs]
        return max((abs(degree - 1) for degree in degrees if degree is not None), default=0.0)

    return frozenset(sorted(leaves, key=distance, reverse=True)[:FURTHEST])


def _sampled(curve: Curve) -> Curve:
    """Return at most POINTS samples of a smooth curve, including the last one.

    Samples are left out by powers of two. A longer seed's times then occur among a shorter seed's as well, so that a
    mean over seeds is one of samples and interpolates nothing.
    """
    every = 1
    while len(curve.x) > every * (POINTS - 1):
        every *= 2
    if every == 1:
        return curve
    chosen = np.unique(np.append(np.arange(0, len(curve.x), every), len(curve.x) - 1))
    return Curve(curve.x[chosen], curve.y[chosen])


def _lines(
    variant: Variant,
    queues: Sequence[str],
    styles: Styles,
    curve_of: Callable[[Run, Series], Curve | None],
    *,
    after_end: float | None = None,
) -> list[Line]:
    curves = {queue: variant.course(queue, curve_of, after_end=after_end) for queue in queues}
    return [Line(short(queue), curve, styles.queues[queue]) for queue, curve in curves.items() if curve is not None]


def _charts(
    variants: Sequence[Variant],
    styles: Styles,
    y_label: str,
    curve_of: Callable[[Run, Series], Curve | None],
    *,
    after_end: float | None = None,
    **more: Any,
) -> list[LineChart]:
    """Return one chart per variant: a curve of each of its leaves over time. ``after_end``: as in `over_seeds`."""
    return [
        LineChart(
            variant.name,
            "time (s)",
            y_label,
            _lines(variant, styles.leaves(variant), styles, curve_of, after_end=after_end),
            **more,
        )
        for variant in variants
    ]


def shared(charts: list[LineChart], *, y_range: tuple[float, float] | None = None) -> list[LineChart]:
    """Return the charts with common axes."""
    charts = [chart for chart in charts if chart.lines]
    if not charts:
        return []
    if y_range is None:
        needed = [needed_y_range(chart) for chart in charts]
        y_range = (min(low for low, _ in needed), max(high for _, high in needed))
    end = max(float(line.curve.x[-1]) for chart in charts for line in chart.lines)
    start = min(float(line.curve.x[0]) for chart in charts for line in chart.lines)
    return [replace(chart, y_range=y_range, x_range=chart.x_range or (min(0.0, start), end)) for chart in charts]


def late_range(charts: Sequence[LineChart], levels: Sequence[float]) -> tuple[float, float]:
    """Return the range of y that the curves need after the EARLY fraction of the time, level lines included."""
    low, high = min(levels), max(levels)
    for chart in charts:
        for line in chart.lines:
            curve = line.curve
            late = curve.x >= curve.x[0] + EARLY * (curve.x[-1] - curve.x[0])
            for y in (curve.y, curve.low, curve.high):
                shown = y[late & np.isfinite(y)] if y is not None else np.empty(0)
                if len(shown):
                    low, high = min(low, float(shown.min())), max(high, float(shown.max()))
    room = (high - low) * 0.06 or 0.1
    return low - (room if low < 0 else 0.0), high + room


def mean_width(variants: Sequence[Variant]) -> float:
    """Return the widest interval (s) over which a curve of these variants is averaged."""
    widths = [
        bucket_means(s.time_s, s.allocated_mb, BUCKETS)[1]
        for variant in variants
        for run in variant.runs
        for s in run.series.values()
        if len(s.time_s)
    ]
    return max(widths, default=0.0)


def averaging(width_s: float) -> str:
    """Return a sentence about the averaging of curves; empty below 1 s."""
    return f" Curves are means over {width_s:.0f} s." if width_s >= 1 else ""


def _normalised(value: Floats, share: Floats | None) -> Floats | None:
    if share is None or not (share > 0).any():
        return None
    out = np.full(len(value), math.nan)
    np.divide(value, share, out=out, where=share > 0)
    return out


def fairness_groups(variants: Sequence[Variant], styles: Styles) -> list[Group]:
    """Return fairness degree per queue (Figs. 7b, d), benefit and loss (Figs. 7a, c), and both over all policies."""

    def degree(_: Run, series: Series) -> Curve | None:
        rho = series.fairness_degree()
        return None if rho is None else _sampled(Curve(series.time_s, rho))

    even = ((0.0, "each queue at its own share"),)
    degrees = _charts(variants, styles, "fairness degree \u03c1", degree, levels=((1.0, "static partition"),))
    drawn = [(one, both) for one in variants if (both := _benefit_and_loss(one)) is not None]
    both_of = [(styles.variants[one.name], one.name, both) for one, both in drawn]
    both_names = [("sharing benefit \u03a8", 2), ("sharing loss \u03a9", 1)]
    # The loss is far smaller than the benefit: on a common axis it would look like zero.
    losses, benefits = (
        [
            LineChart(label, "time (s)", name, [Line(name, both[which], style)], levels=even)
            for _, label, both in both_of
        ]
        for which, (name, style) in ((1, both_names[1]), (0, both_names[0]))
    )
    against = []
    # Policies are compared under the same load only: curves of two experiments have nothing to do with each other.
    for at, (title, own) in enumerate(by_experiment([one for one, _ in drawn])):
        names = {one.name for one in own}
        lines_of = [found for found in both_of if found[1] in names]
        charts = [
            LineChart(name, "time (s)", name, [Line(label, both[which], k) for k, label, both in lines_of], levels=even)
            for which, (name, _) in ((1, both_names[1]), (0, both_names[0]))
        ]
        against.append(
            Group(
                f"policies-{at}" if at else "policies",
                f"The policies against each other{title}",
                "The same two curves, one line a policy.",
                Legend([(label, k) for k, label, _ in lines_of]),
                [replace(chart, y_range=late_range([chart], (0.0,))) for chart in charts if len(lines_of) > 1],
            )
        )
    return [
        Group(
            "fairness-degree",
            "Fairness degree of each queue",
            "What a queue has got so far over what its own partition would have given it (LTYARN eq. 3; Figs. 7b, 7d). "
            "Above 1 the queue gains by sharing, below 1 it loses. 1 while nothing was due. Early values beyond the "
            "axis are drawn at its border.",
            styles.legend(q for one in variants for q in styles.leaves(one)),
            shared(degrees, y_range=late_range(degrees, (0.0, 1.0))),
        ),
        Group(
            "loss",
            "Sharing loss",
            "The sum over the queues of what their fairness degrees fall short of 1 by (LTYARN eq. 5; Figs. 7a, 7c): "
            "at 0 no queue is behind. A good policy first brings it to 0. Early values beyond the axis are drawn at "
            "its border.",
            Legend([]),
            shared(losses, y_range=late_range(losses, (0.0,))),
        ),
        Group(
            "benefit",
            "Sharing benefit",
            "The sum over the queues of what their fairness degrees exceed 1 by (LTYARN eq. 4; Figs. 7a, 7c). Early "
            "values beyond the axis are drawn at its border.",
            Legend([]),
            shared(benefits, y_range=late_range(benefits, (0.0,))),
        ),
        *against,
    ]


def _benefit_and_loss(variant: Variant) -> tuple[Curve, Curve] | None:
    """Return `benefit_and_loss` over the seeds of a variant; None if a run has none."""
    found = [both for run in variant.runs if (both := benefit_and_loss(run)) is not None]
    if len(found) < len(variant.runs):
        return None
    benefits, losses = ([_sampled(both[which]) for both in found] for which in (0, 1))
    benefit, loss = over_seeds(benefits), over_seeds(losses)
    # The benefit is never below 0 and the loss never above, so interval ends are clipped there (Student's t exceeds
    # it).
    return within(benefit, low=0.0), within(loss, high=0.0)


def benefit_and_loss(run: Run) -> tuple[Curve, Curve] | None:
    """Return Psi(t) and Omega(t) (LTYARN eqs. 4, 5) at the sample times; None if integrals were not recorded."""
    known = [(run.series[leaf], run.series[leaf].fairness_degree()) for leaf in run.leaves if leaf in run.series]
    degrees = [(series, rho) for series, rho in known if rho is not None and len(rho)]
    if not degrees:
        return None
    time_s = max((series.time_s for series, _ in degrees), key=len)
    # A queue that is missing in some sample (a damaged tail) keeps its last degree.
    rho = [own if len(own) == len(time_s) else np.interp(time_s, series.time_s, own) for series, own in degrees]
    benefit, loss = sharing_benefit_and_loss(np.column_stack(rho))
    return Curve(time_s, benefit), Curve(time_s, loss)


def resource_groups(variants: Sequence[Variant], styles: Styles) -> list[Group]:
    """Return demand, allocation and accumulated resources per queue over the whole run (the quantities of Fig. 6)."""
    width, charts = mean_width(variants), partial(_charts, variants, styles)
    legend = styles.legend(q for one in variants for q in styles.leaves(one))

    def means(value: Floats | None, series: Series) -> Curve | None:
        return None if value is None else bucket_means(series.time_s, value, BUCKETS)[0]

    def steps_of(value: Floats | None, series: Series) -> Curve | None:
        return None if value is None else _sampled(Curve(series.time_s, value))

    demand = charts(
        "demand / own share",
        lambda _, s: means(_normalised(s.demand_mb, s.share_mb), s),
        after_end=0.0,
        y_scale="log",
        levels=((1.0, "the queue's own share"),),
    )
    top = max((float(np.nanmax(line.curve.y)) for chart in demand for line in chart.lines), default=1.0)
    accumulated = charts("accumulated / capacity (s)", _accumulated)
    quantum = charts("Q (s)", lambda _, s: steps_of(s.quantum_s, s))
    counted = charts("counted / capacity (s)", _counted)
    groups = [
        Group(
            "demand",
            "Demand",
            "Memory held and waited for (application masters included), as a multiple of the queue's own share (Fig. "
            "6a). Logarithmic; below 0.1, zero included, the curve lies on the lower border." + averaging(width),
            legend,
            shared(demand, y_range=(0.1, max(2.0, top * 1.3))),
        ),
        Group(
            "allocation",
            "Allocation",
            "Memory held by the queues, on top of each other (the quantity of Figs. 6b and 10b): who has the cluster, "
            "and how much of it is idle." + averaging(width),
            legend,
            allocation_charts(variants, styles, lambda one: one.leaves),
        ),
        Group(
            "accumulated",
            "Accumulated resources",
            "The integral of the allocation over the cluster's capacity (Fig. 6c): seconds of the whole cluster. "
            "Curves that run together are what long-term fairness is after.",
            legend,
            shared(accumulated),
        ),
        Group(
            "counted",
            "Accumulated resources as the policy counts them",
            "With a quantum, a discount or rounds the policy's own count differs from the plain integral (thesis Fig. "
            "5.7).",
            legend,
            shared(counted),
        ),
        Group(
            "quantum",
            "Time quantum",
            "Q, the execution time that a task of the queue is assumed to take until it has ended (thesis Fig. 5.7c). "
            "An adaptive one follows the tasks that have ended.",
            legend,
            shared(quantum),
        ),
    ]
    return [group for group in groups if group.charts]


def _accumulated(run: Run, series: Series) -> Curve | None:
    capacity = run.capacity()
    return _sampled(Curve(series.time_s, series.accumulated_mb_s / capacity)) if capacity else None


def _counted(run: Run, series: Series) -> Curve | None:
    """Return the policy's own count, if it differs from the plain integral."""
    capacity = run.capacity()
    if not capacity or series.counted_mb_s is None or run.counted_resource != run.resource:
        return None
    if np.allclose(series.counted_mb_s, series.accumulated_mb_s, rtol=1e-6, atol=1.0):
        return None
    return _sampled(Curve(series.time_s, series.counted_mb_s / capacity))


def detail_groups(variants: Sequence[Variant], styles: Styles) -> list[Group]:
    """Return Fig. 6 as the paper has it: the first 260 s, sample by sample, of one run.

    It is the first run inside the scheduler whose policy asks for this figure (`has_detail_figure`).
    """
    inside = (one.first for one in variants if one.first.mode == "inside")
    chosen = next((run for run in inside if has_detail_figure(run.policy)), None)
    if chosen is None or chosen.end_s() < 60:
        return []
    until, alone = min(DETAIL_S, chosen.end_s()), Variant(chosen.label, [chosen])

    def early(value: Floats | None, series: Series) -> Curve | None:
        if value is None:
            return None
        inside = series.time_s <= until
        return steps(series.time_s[inside], value[inside], until)

    def chart(title: str, y_label: str, curve_of: Callable[[Series], Curve | None], level: float | None) -> LineChart:
        levels = ((level, "the queue's own share"),) if level is not None else ()
        lines = _lines(alone, styles.leaves(alone), styles, lambda _, series: curve_of(series))
        return LineChart(title, "time (s)", y_label, lines, levels=levels)

    charts = [
        chart("demand (Fig. 6a)", "demand / own share", lambda s: early(_normalised(s.demand_mb, s.share_mb), s), 1.0),
        chart(
            "allocation (Fig. 6b)",
            "allocated / own share",
            lambda s: early(_normalised(s.allocated_mb, s.share_mb), s),
            1.0,
        ),
        chart(
            "accumulated resources (Fig. 6c)",
            "accumulated / capacity (s)",
            lambda s: early(s.accumulated_mb_s / chosen.capacity_mb, s) if chosen.capacity_mb else None,
            None,
        ),
    ]
    return [
        Group(
            "detail",
            f"The first {until:.0f} seconds under {chosen.label}",
            "The window of LTYARN's Fig. 6, sample by sample: how debts arise at the start and are paid back.",
            styles.legend(styles.leaves(alone)),
            [c for c in charts if c.lines],
        )
    ]


def allocation_charts(
    variants: Sequence[Variant], styles: Styles, pick: Callable[[Variant], Sequence[str]]
) -> list[LineChart]:
    """Return stacked areas of what the chosen queues of each variant hold, in per cent of capacity."""
    end = max((one.end_s() for one in variants), default=1.0)
    charts = []
    for one in variants:
        if all(run.capacity_mb for run in one.runs):
            held = partial(_lines, one, styles=styles, curve_of=_held_percent, after_end=0.0)
            picked, leaves = pick(one), set(one.leaves)
            hidden = [queue for queue in picked if queue in leaves and queue not in styles.drawn]
            lines = held([queue for queue in picked if queue not in leaves or queue in styles.drawn])
            if hidden:
                others = [line.curve for line in held(hidden)]
                lines.append(Line(f"{len(others)} other queues", _sum(others), OTHERS))
            whole = ((100.0, "the whole cluster"),)
            axes = ("time (s)", "memory held (%)")
            charts.append(LineChart(one.name, *axes, lines, levels=whole, stacked=True, x_range=(0.0, end)))
    return [chart for chart in charts if chart.lines]


def _of_seeds(found: Sequence[Mapping[str, float]]) -> dict[str, list[float]]:
    """Return these values for each queue that has one in every seed."""
    return {queue: [own[queue] for own in found] for queue in found[0] if all(queue in own for own in found)}


def _sum(curves: Sequence[Curve]) -> Curve:
    """Return the sum of curves, at the times of the curve with the most points."""
    x = max((curve.x for curve in curves), key=len)
    return Curve(x, np.sum([np.interp(x, curve.x, curve.y, left=0.0, right=0.0) for curve in curves], axis=0))


def _held_percent(run: Run, series: Series) -> Curve | None:
    if not run.capacity_mb:
        return None
    return bucket_means(series.time_s, series.allocated_mb / run.capacity_mb * 100, BUCKETS)[0]


def weight_groups(variants: Sequence[Variant], styles: Styles) -> list[Group]:
    """Return the Fair Scheduler weights that the controller wrote, over time, for runs from outside."""
    charts, queues = [], []
    for one in variants:
        if one.first.mode != "outside":
            continue
        names = [*one.first.parents, *styles.leaves(one)]
        # Steps occur at different times in each seed, so means over time spans are used instead of means at one seed's
        # times.
        lines = _lines(one, names, styles, _weights if len(one.runs) == 1 else _mean_weights)
        if lines:
            queues += names
            charts.append(LineChart(one.name, "time (s)", "weight", lines, y_scale="log"))
    return [
        Group(
            "weights",
            "Weights written by the controller",
            "The Fair Scheduler weight of each queue as it was in force. Logarithmic.",
            styles.legend(queues),
            shared(charts),
        )
    ]


def _weights(run: Run, series: Series) -> Curve | None:
    if series.weight is None:
        return None
    changes = int((series.weight[1:] != series.weight[:-1]).sum())
    return steps(series.time_s, series.weight, run.end_s()) if changes <= POINTS else _mean_weights(run, series)


def _mean_weights(_: Run, series: Series) -> Curve | None:
    return None if series.weight is None else bucket_means(series.time_s, series.weight, BUCKETS)[0]


def speedup_groups(variants: Sequence[Variant], styles: Styles) -> list[Group]:
    """Return speed-ups over static partitioning by queue (Fig. 8), a group for each experiment."""
    return [
        replace(group, ident=f"{group.ident}-{at}" if at else group.ident, title=f"{group.title}{title}")
        for at, (title, own) in enumerate(by_experiment(variants))
        for group in [_speedups(own, styles)]
    ]


def _speedups(variants: Sequence[Variant], styles: Styles) -> Group:
    """Return the speed-ups of one experiment's variants: of the mean job and of the whole workload."""
    measures: tuple[tuple[str, Callable[[Run], dict[str, float]]], ...] = (
        ("mean completion time of a job", lambda run: run.speedups()),
        ("time of the whole workload", lambda run: run.speedups("workload_speedup_over_static")),
    )
    charts: list[BarChart] = []
    shown: dict[int, str] = {}
    for title, speedups_of in measures:
        found = {k: _of_seeds([speedups_of(run) for run in one.runs]) for k, one in enumerate(variants)}
        able = [k for k in found if found[k]]
        hidden = {short(leaf) for one in variants for leaf in one.leaves if leaf not in styles.drawn}
        queues = [q for q in dict.fromkeys(queue for k in able for queue in found[k]) if q not in hidden]
        if queues:
            shown |= {styles.variants[variants[k].name]: variants[k].name for k in able}
            several = max(len(variants[k].runs) for k in able) > 1
            each = [[found[k].get(queue) for k in able] for queue in queues]
            charts.append(
                BarChart(
                    title,
                    "speed-up over static",
                    queues,
                    [variants[k].name for k in able],
                    [[fmean(own) if own else None for own in row] for row in each],
                    ((1.0, "static partition"),),
                    styles=[styles.variants[variants[k].name] for k in able],
                    half_widths=[[half_width_95(own) if own else None for own in row] for row in each if several],
                )
            )
    return Group(
        "speed-up",
        "Speed-up over the static partition",
        "Time under static partitioning over time under the policy (Fig. 8, which does not say of which time): the "
        "mean completion time of a queue's jobs, and its whole workload from first submission to last end. Of "
        "several seeds: their mean, and the 95 % interval of it.",
        Legend([(name, k) for k, name in shown.items()]),
        charts,
    )
