"""The report pages of MR-clusters and of layouts (FAWKES, SIGMETRICS 2014): their tables, charts and findings."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from harness.report.curves import Curve, bucket_means, steps
from harness.report.data import Run, read_table
from harness.report.figures import BUCKETS, Group, Legend, averaging, shared
from harness.report.findings import Case, Finding, find, finding, verdict
from harness.report.page import Content, part_of
from harness.report.svg import Line, LineChart
from harness.report.tables import Head, Table, decision_tables, figure_text
from harness.report.tools import bars, first_seed, per_cent, tables_of
from harness.report.variants import Variant, number_at, variants_of
from harness.results.runs import decision_lines
from harness.systems.fawkes.columns import LAYOUTS, POLICIES

NONE, TD = "fawkes-none", "fawkes-td"
#: Limit for "not much changed" (section 7.3): the mean slowdown rises by less than this fraction.
MUCH = 0.10
#: Two mean slowdowns count as equal if they differ by at most this fraction.
EQUAL = 0.01

SOURCES: tuple[tuple[str, str], ...] = (
    (
        "Slowdown",
        "A job's time from submission to end over its time alone on a static MR-cluster of the experiment's "
        "reference nodes (FAWKES, section 5.3; Ghit, Yigitbasi, Iosup, Epema: Balanced Resource Allocations Across "
        "Multiple Dynamic MapReduce Clusters, SIGMETRICS 2014).",
    ),
    (
        "Weights, temporal and global discrimination",
        "Equations (1) to (6), at each update, from decisions.jsonl: the temporal discrimination is the held part of "
        "all nodes less the weight, the discrimination its integral since the last resize, the global discrimination "
        "the mean of its squares. Overall: the integral over the whole run.",
    ),
    ("Everything else", "summary.json, jobs.parquet and allocations.parquet of each run directory; virtual seconds."),
    (
        "The simulator",
        "The reference page on FAWKES of yarnfair's documentation says what it models, and what of times and sizes is "
        "the paper's, fitted or assumed.",
    ),
)


def _clusters(runs: Sequence[Run]) -> list[str]:
    return list(dict.fromkeys(name for run in runs for name in run.summary_queues()))


def _short(name: str) -> str:
    return name.removeprefix("fawkes-")


# --- MR-clusters ------------------------------------------------------------------------------------------------------


def content_clusters(runs: Sequence[Run]) -> Content:
    """Return the report page of ``kind: mr-clusters``."""
    variants, clusters = variants_of(runs), _clusters(runs)
    drawn, said = first_seed([run for run in runs if run.summary])
    tables = tables_of("Each policy over the whole run", "policy", variants, POLICIES)
    nodes, demand = _course_groups(drawn, clusters)
    parts = [
        part_of("slowdown", "Slowdown", _slowdown_groups(variants, clusters)),
        part_of("nodes", "Nodes over time", nodes),
        part_of("demand", "Jobs and tasks over time", demand),
        part_of("balance", "Weights and discrimination", _balance(drawn, clusters), decision_tables(drawn)),
    ]
    return Content(tables, [part for part in parts if part.groups or part.tables], said, SOURCES)


def _slowdown_groups(variants: Sequence[Variant], clusters: Sequence[str]) -> list[Group]:
    groups = []
    measures: tuple[tuple[str, str, str, str, int], ...] = (
        ("mean-slowdown", "Mean job slowdown (Fig. 9)", "mean_slowdown", "mean slowdown", 2),
        ("mean-completion", "Mean completion time of a job", "mean_completion_s", "mean completion (s)", 0),
    )
    for ident, title, key, label, digits in measures:

        def value(variant: Variant, cluster: str, key: str = key) -> float | None:
            return variant.mean("queues", cluster, key)

        levels = ((1.0, "alone on the reference"),) if key == "mean_slowdown" else ()
        made = bars("each MR-cluster", label, variants, clusters, value, short=_short, levels=levels, digits=digits)
        if made is not None:
            text = "Lower is better; 1 is a job alone on the reference nodes." if levels else "From submission to end."
            groups.append(Group(ident, title, text, made[1], [made[0]]))
    return groups


def _course_groups(runs: Sequence[Run], clusters: Sequence[str]) -> tuple[list[Group], list[Group]]:
    """Return the charts over time.

    The first group stacks the nodes of the MR-clusters (Figs. 6, 7, 10 and 11); the second shows jobs and tasks.
    """
    needed = ("time_s", "cluster", "nodes", "waiting_jobs", "running_jobs", "waiting_tasks", "running_tasks")
    courses = [(run, t) for run in runs if (t := read_table(run.path / "allocations.parquet", needed)) is not None]
    if not courses:
        return [], []
    legend = Legend([(name, k) for k, name in enumerate(clusters)])
    times = [table["time_s"].drop_duplicates().to_numpy(dtype=np.float64) for _, table in courses]
    width = averaging(max(bucket_means(time_s, np.zeros(len(time_s)), BUCKETS)[1] for time_s in times))

    def lines(table: pd.DataFrame, column: str) -> list[Line]:
        found = []
        for k, name in enumerate(clusters):
            own = table[table["cluster"].astype(str) == name]
            time_s, values = (own[key].to_numpy(dtype=np.float64) for key in ("time_s", column))
            if len(own):
                found.append(Line(name, bucket_means(time_s, values, BUCKETS)[0], k))
        return found

    end = max(float(table["time_s"].max()) for _, table in courses)
    stacks = []
    for run, table in courses:
        nodes = number_at(run.described, "nodes") or float(table.groupby("time_s")["nodes"].sum().max())
        layers = lines(table, "nodes")
        whole = ((nodes, "all nodes"),)
        axes = ("time (s)", "nodes")
        stacks.append(LineChart(run.label, *axes, layers, levels=whole, stacked=True, x_range=(0.0, end)))
    text = "Nodes of each MR-cluster on top of each other, core nodes included (Figs. 6, 7, 10, 11); above it is idle."
    demand = []
    for column, title, said in (
        ("waiting_jobs", "Jobs waiting", "Submitted and not started."),
        ("waiting_tasks", "Tasks waiting", "Of running jobs too."),
        ("running_tasks", "Tasks running", "One a slot."),
    ):
        charts = [LineChart(run.label, "time (s)", title.lower(), lines(table, column)) for run, table in courses]
        demand.append(Group(column.replace("_", "-"), title, said + width, legend, shared(charts)))
    return [Group("nodes-held", "Who has the nodes", text + width, legend, stacks)], demand


def _updates(run: Run) -> list[dict[str, Any]]:
    return [entry for _, entry in decision_lines(run.path) if entry and isinstance(entry.get("weights"), Mapping)]


def _balance(runs: Sequence[Run], clusters: Sequence[str]) -> list[Group]:
    weights, factors = [], []
    legend = Legend([(name, k) for k, name in enumerate(clusters)])
    for run in runs:
        made = [entry for entry in _updates(run) if entry["weights"]]
        if not made:
            continue
        lines = []
        for k, name in enumerate(clusters):
            own = [(float(e["time_s"]), float(e["weights"].get(name, math.nan))) for e in made]
            x, y = np.array([at for at, _ in own]), np.array([w for _, w in own])
            if np.isfinite(y).any():
                lines.append(Line(name, steps(x, y, float(x[-1])), k))
        weights.append(LineChart(run.label, "time (s)", "weight", lines))
        x = np.array([float(e["time_s"]) for e in made])
        y = np.array([float(e.get("global_discrimination") or 0.0) for e in made])
        # The axis is logarithmic: a value of 0, as after a resize, is drawn at its lower end.
        factors.append(
            LineChart(
                run.label,
                "time (s)",
                "discrimination (s\u00b2)",
                [Line("global discrimination", Curve(x, np.maximum(y, 0.1)), 0)],
                y_scale="log",
                levels=((tau, "tau: above it nodes move"),) if (tau := _tau(run)) else (),
                moments=tuple((float(e["time_s"]), "") for e in made if e.get("resized"))[:60],
            )
        )
    return [
        Group("weights", "Weights", "w = y / sum of y (eq. 4) at each update.", legend, shared(weights)),
        Group(
            "discrimination",
            "Global discrimination",
            "The mean of the squares of all discriminations since the last resize (eq. 3), in seconds of the whole "
            "system squared; upright lines: nodes were moved. The level line is tau. Logarithmic.",
            Legend([("global discrimination", 0)]),
            shared(factors),
        ),
    ]


def _tau(run: Run) -> float:
    value = run.settings.get("tau", 10.0)
    try:
        tau = float(value)
    except (TypeError, ValueError):
        return 0.0
    return tau if math.isfinite(tau) and tau > 0 else 0.0


def findings_clusters(runs: Sequence[Run]) -> list[Finding]:
    """Return the findings of section 7.3.

    They say how much balancing lowers slowdowns against None, whether any policy is better than TD, and whether the
    slowdowns of the less loaded MR-clusters rise.
    """
    by_growth: dict[object, list[Run]] = {}
    for run in runs:
        by_growth.setdefault(run.info.get("growth"), []).append(run)
    found = []
    for own in by_growth.values():
        if _of(own).get(NONE, {}).keys() == {run.seed for run in own}:
            found += find(own, (_gain, _best, _others))
    return found


def _of(runs: Sequence[Run]) -> dict[str, dict[int | None, Run]]:
    """Return the runs by policy and seed."""
    found: dict[str, dict[int | None, Run]] = {}
    for run in runs:
        found.setdefault(run.policy, {})[run.seed] = run
    return found


def _below(run: Run, other: Run) -> float:
    """Return the fraction by which a run's mean slowdown is lower than another run's."""
    return 1 - run.number("mean_slowdown") / (other.number("mean_slowdown") or math.nan)


@finding(
    "Balancing lowers the mean job slowdown",
    "FAWKES section 7.3, WKLD-D",
    "TD improves the average job slowdown by 25 % relative to None.",
    "the mean over all jobs is lower than under None with every seed, for every policy",
)
def _gain(runs: Sequence[Run]) -> Iterator[Case]:
    of = _of(runs)
    none = of[NONE]
    for policy, own in of.items():
        if policy in (NONE, "fawkes-eq") or set(own) != set(none):
            continue
        parts = [_below(own[seed], none[seed]) for seed in own]
        spread = f", {per_cent(min(parts))} to {per_cent(max(parts))}" if len(parts) > 1 else ""
        text = f"{policy}: mean slowdown lower by {per_cent(statistics.fmean(parts))}{spread}"
        yield all(part > 0 for part in parts), text


def _best(runs: Sequence[Run]) -> Finding | None:
    of = _of(runs)
    ours = of.get(TD)
    others = {policy: own for policy, own in of.items() if policy != TD and ours and set(own) == set(ours)}
    if not ours or len(others) < 2:
        return None
    mean = {
        p: statistics.fmean(r.number("mean_slowdown") for r in own.values()) for p, own in [(TD, ours), *others.items()]
    }
    holds = [mean[TD] <= mean[policy] * (1 + EQUAL) for policy in others]
    order = sorted(mean, key=lambda policy: mean[policy])
    best = [p for p, m in mean.items() if m <= min(mean.values()) * (1 + EQUAL)]
    return Finding(
        "No policy is better than TD",
        "FAWKES section 7.3",
        "No other policy provides better balance than the task-demand one.",
        f"no other policy's mean slowdown (over all jobs and seeds) is lower by more than {100 * EQUAL:.0f} %",
        "holds" if all(holds) else "does not hold",
        (
            "from the best: " + ", ".join(f"{_short(policy)} {figure_text(mean[policy], 2)}" for policy in order),
            f"as good as the best: {', '.join(_short(policy) for policy in best)}",
        ),
    )


def _others(runs: Sequence[Run]) -> Finding | None:
    none, ours = (_of(runs).get(policy, {}) for policy in (NONE, TD))
    if not ours or set(ours) != set(none):
        return None
    clusters = _clusters(list(none.values()))

    def slowdown(own: Mapping[int | None, Run], cluster: str) -> float:
        return statistics.fmean(run.queue_figure(cluster, "mean_slowdown") or math.nan for run in own.values())

    before = {cluster: slowdown(none, cluster) for cluster in clusters}
    loaded = max(before, key=lambda cluster: before[cluster], default="")
    rest = [cluster for cluster in clusters if cluster != loaded and math.isfinite(before[cluster])]
    if not rest:
        return None
    after = {cluster: slowdown(ours, cluster) for cluster in rest}
    return Finding(
        "The less loaded MR-clusters hardly pay for it",
        "FAWKES section 7.3, Fig. 9",
        "The slowdowns of the MR-clusters with little load are not much changed.",
        f"under TD the mean slowdown of each but {loaded} (greatest under None) is less than {100 * MUCH:.0f} % above "
        "None's",
        verdict([after[c] <= before[c] * (1 + MUCH) for c in rest]),
        tuple(f"{c}: {figure_text(before[c], 2)} under None, {figure_text(after[c], 2)} under TD" for c in rest),
    )


# --- layouts ----------------------------------------------------------------------------------------------------------


def content_layouts(runs: Sequence[Run]) -> Content:
    """Return the report page of ``kind: mr-layouts``: each application alone on each layout of nodes."""
    variants = variants_of(runs)
    applications = list(dict.fromkeys(name for run in runs for name in run.summary.get("applications", {})))
    tables = tables_of("Shrinking without a job (Fig. 5a)", "layout", variants, LAYOUTS)
    tables.append(_layouts_table(runs))
    groups = [*_over_reference(variants, applications), *_by_nodes(variants, applications)]
    part = part_of("layouts", "Over the layouts", groups)
    return Content(tables, [part] if part.groups else [], "", SOURCES)


def _layout(variant: Variant) -> Mapping[str, Any]:
    layouts = variant.runs[0].described.get("layouts")
    found = layouts.get(variant.name) if isinstance(layouts, Mapping) else None
    return found if isinstance(found, Mapping) else {}


def _layouts_table(runs: Sequence[Run]) -> Table:
    names = (("core", "core nodes"), ("transient", "transient"), ("transient_core", "transient-core"))
    more = (("sites", "sites"), ("shrink_by", "nodes that leave"))
    rows = [
        [v.name, *(figure_text(number_at(_layout(v), key)) for key, _ in (*names, *more))] for v in variants_of(runs)
    ]
    return Table("The layouts", [Head("layout"), *(Head(text, "") for _, text in (*names, *more))], rows)


def _over_reference(variants: Sequence[Variant], applications: Sequence[str]) -> list[Group]:
    made = bars(
        "each application",
        "time over the reference",
        variants,
        applications,
        lambda variant, name: variant.mean("applications", name, "over_reference"),
        levels=((1.0, "the reference layout"),),
    )
    if made is None or len(applications) * len(made[0].series) > 60 or len(variants) > 6:
        return []
    text = "Above 1 the layout is slower than the reference (Figs. 3 and 5)."
    return [Group("over-reference", "Time over that on the reference layout", text, made[1], [made[0]])]


def _by_nodes(variants: Sequence[Variant], applications: Sequence[str]) -> list[Group]:
    """Return the charts of Figs. 4 and 5: speed-up against nodes added, relative time against nodes removed."""
    groups = []
    for ident, key, measure, x_label, title, kinds in (
        (
            "grow",
            "speedup",
            "speed-up",
            "temporary nodes",
            "Speed-up over the number of temporary nodes (Fig. 4)",
            ("transient", "transient_core"),
        ),
        (
            "shrink",
            "over_reference",
            "time over the reference",
            "nodes that leave",
            "Time over the number of nodes that leave (Fig. 5)",
            ("shrink_by",),
        ),
    ):
        charts = []
        for kind in kinds:
            own = [(number_at(_layout(v), kind) or 0.0, v) for v in variants]
            others = [other for other in kinds if other != kind]
            own = [(n, v) for n, v in own if not any(number_at(_layout(v), other) for other in others)]
            own.sort(key=lambda pair: pair[0])
            if len({n for n, _ in own}) < 3:
                continue
            lines = []
            for k, name in enumerate(applications):
                points = [(n, y) for n, v in own if (y := v.mean("applications", name, key)) is not None]
                if len(points) > 2:
                    lines.append(
                        Line(name, Curve(np.array([p[0] for p in points]), np.array([p[1] for p in points])), k)
                    )
            if lines:
                text = "nodes that leave" if kind == "shrink_by" else f"{kind.replace('_', '-')} nodes"
                charts.append(LineChart(text, x_label, measure, lines, marks=True, levels=((1.0, "the reference"),)))
        if charts:
            legend = Legend([(name, k) for k, name in enumerate(applications)])
            groups.append(
                Group(ident, title, "Each mark is one layout, a mean over the seeds.", legend, shared(charts))
            )
    return groups


@finding(
    "Transient-core nodes are at least as good as transient ones",
    "FAWKES sections 6.1 and 6.3, Figs. 3a and 4",
    "With nodes that store output, disk-bound applications slow down less than with nodes that store nothing.",
    f"no application takes longer on as many transient-core nodes, by more than {100 * EQUAL:.0f} %",
)
def _storing_is_no_slower(runs: Sequence[Run]) -> Iterator[Case]:
    variants = variants_of(runs)
    by: dict[tuple[float, float, str], float] = {}
    for variant in variants:
        layout = _layout(variant)
        for kind in ("transient", "transient_core"):
            count = number_at(layout, kind) or 0.0
            if count and not number_at(layout, "shrink_by"):
                for name in variant.runs[0].summary.get("applications", {}):
                    value = variant.mean("applications", name, "runtime_s")
                    if value is not None:
                        by[count, number_at(layout, "core") or 0.0, f"{kind}:{name}"] = value
    for (count, core, what), transient in by.items():
        kind, _, name = what.partition(":")
        other = by.get((count, core, f"transient_core:{name}"))
        if kind == "transient" and other is not None:
            text = f"{name}, {count:.0f} temporary nodes: {figure_text(transient)} s transient, {figure_text(other)} s "
            yield other <= transient * (1 + EQUAL), text + "transient-core"


def findings_layouts(runs: Sequence[Run]) -> list[Finding]:
    """Return the finding of sections 6.1 and 6.3.

    It checks that transient-core nodes are no slower than the same number of transient ones.
    """
    return find(runs, (_storing_is_no_slower,))
