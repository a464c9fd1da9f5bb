"""The pages of computing rates and of pools (HotCloud 2011, progress share and the cloud driver)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from harness.report.curves import steps
from harness.report.data import Run, read_table
from harness.report.figures import Group, Legend, shared
from harness.report.findings import Finding, verdict
from harness.report.kind_tools import (
    Column,
    Variant,
    bars,
    first_seed,
    number_at,
    per_cent,
    seeds_note,
    spread_text,
    table_of,
    variants_of,
)
from harness.report.page import Content, part_of
from harness.report.svg import BarChart, Line, LineChart
from harness.report.tables import ABSENT, Head, Table, decision_tables, figure_text

PAPER = "Lee, Chun, Katz: Heterogeneity-Aware Resource Allocation and Scheduling in the Cloud, HotCloud 2011"
RATES_SOURCES: tuple[tuple[str, str], ...] = (
    (
        "Progress share",
        f"{PAPER}: the sum of a job's computing rates on the slots that it holds over that on all slots. Its share is "
        "its weight over the sum of all weights. Least, sum, and the time below the share are over the contended time, "
        "in which every job has tasks waiting.",
    ),
    ("Curves", "allocations.parquet of each run directory: a row for each job whenever a slot changed hands."),
    ("Everything else", "summary.json of each run directory; virtual seconds."),
)
POOLS_SOURCES: tuple[tuple[str, str], ...] = (
    (
        "Cost",
        f"{PAPER}, section 4: core nodes for the whole period, accelerators by the started hour. Prices, cores and "
        "computing units are those of the instance types in the experiment.",
    ),
    ("Times", "Work of all queries over the computing units of the nodes; docs/reference/progress-share.md."),
)


# --- computing rates --------------------------------------------------------------------------------------------------


def content_rates(runs: Sequence[Run]) -> Content:
    """The page of ``kind: computing-rates``."""
    variants = variants_of(runs)
    jobs = list(dict.fromkeys(name for run in runs for name in run.summary_queues()))
    overall = [
        Column("makespan", "s", 1, ("makespan_s",)),
        *(Column(f"completion of {job}", "s", 1, ("queues", job, "mean_completion_s")) for job in jobs),
        Column("sum of the progress shares", "", 3, ("sum_progress_share",)),
        Column("contended for", "s", 1, ("contended_s",)),
    ]
    tables = [table_of("Each policy on each configuration", "configuration, policy", variants, overall)]
    for caption, key, unit, digits, scale in (
        ("Progress share, least", "min", "", 3, 1.0),
        ("Progress share, mean from start to end of the job", "mean", "", 3, 1.0),
        ("Part of the contended time below its share", "below_share", "%", 1, 100.0),
    ):
        columns = [Column(job, unit, digits, ("queues", job, "progress_share", key), scale) for job in jobs]
        tables.append(table_of(caption, "configuration, policy", variants, columns))
    groups = []
    made = bars(
        "each job",
        "completion (s)",
        variants,
        [*jobs],
        lambda variant, job: variant.mean("queues", job, "mean_completion_s"),
        digits=0,
    )
    if made is not None:
        text = "From submission to end, means over the seeds (the bars of Fig. 5)."
        groups.append(Group("completion", "Completion time of each job", text, made[1], [made[0]]))
    drawn, said = first_seed([run for run in runs if run.summary])
    shares = _share_charts(drawn, jobs)
    text = (
        "Its computing rate over that of all slots (Figs. 2 and 3). The level line: the smallest share that a job has."
    )
    legend = Legend([(job, k) for k, job in enumerate(jobs)])
    parts = [
        part_of("speed", "Completion", groups),
        part_of("shares", "Progress shares over time", [Group("progress", "Progress share", text, legend, shares)]),
    ]
    return Content(tables, [part for part in parts if part.groups], said, RATES_SOURCES)


def _least_share(run: Run) -> float | None:
    experiment = run.info.get("experiment")
    jobs = experiment.get("jobs") if isinstance(experiment, Mapping) else None
    weights = [number_at(job, "weight") or 1.0 for job in jobs.values()] if isinstance(jobs, Mapping) and jobs else []
    return min(weights) / sum(weights) if weights else None


def _share_charts(runs: Sequence[Run], jobs: Sequence[str]) -> list[LineChart]:
    charts = []
    for run in runs:
        table = read_table(run.path / "allocations.parquet", ("time_s", "queue", "progress_share"))
        if table is None or table.empty:
            continue
        lines = []
        for k, job in enumerate(jobs):
            own = table[table["queue"].astype(str) == job]
            if own.empty:
                continue
            end = number_at(run.summary, "queues", job, "mean_completion_s") or float(own["time_s"].max())
            time_s, share = own["time_s"].to_numpy(dtype=np.float64), own["progress_share"].to_numpy(dtype=np.float64)
            inside = time_s <= end
            lines.append(Line(job, steps(time_s[inside], share[inside], end), k))
        least = _least_share(run)
        levels = ((least, "its share"),) if least is not None else ()
        charts.append(LineChart(run.label, "time (s)", "progress share", lines, levels=levels))
    return shared(charts)


def findings_rates(runs: Sequence[Run]) -> list[Finding]:
    """Sections 3 and 4: nobody below its share, and sooner than with equal numbers of slots."""
    below: dict[str, list[bool]] = {}
    lines: dict[str, list[str]] = {"fair": [], "progress-share": []}
    makespans: dict[tuple[Any, Any], dict[str, float]] = {}
    for variant in variants_of(runs):
        policy = variant.runs[0].policy
        if policy not in lines:
            continue
        jobs = variant.runs[0].summary_queues()
        parts = {job: variant.mean("queues", job, "progress_share", "below_share") for job in jobs}
        known = {job: part for job, part in parts.items() if part is not None}
        if known:
            listed = ", ".join(f"{job} {per_cent(part)}" for job, part in known.items())
            lines[policy].append(f"{variant.name}: below its share for {listed} of the contended time")
            below.setdefault(policy, []).append(all(part == 0 for part in known.values()))
        mean = variant.mean("makespan_s")
        if mean is not None and not variant.runs[0].settings.get("calibrate"):
            makespans.setdefault((variant.runs[0].info.get("configuration"), None), {})[policy] = mean
    found = []
    if below.get("progress-share"):
        found.append(
            Finding(
                "Progress-share scheduling keeps every job at its share",
                "HotCloud 2011, section 3, Fig. 3",
                "With progress share, each job's share is at least what it would get on its part of the cluster.",
                "no job is below its share at any time in which all have tasks waiting, with any seed",
                verdict(below["progress-share"]),
                tuple(lines["progress-share"]),
            )
        )
    holds, evidence = [], []
    for (configuration, _), own in makespans.items():
        if set(own) == {"fair", "progress-share"}:
            holds.append(own["progress-share"] <= own["fair"] * 1.001)
            evidence.append(
                f"{configuration}: {figure_text(own['fair'], 1)} s with equal slots, "
                f"{figure_text(own['progress-share'], 1)} s with progress share"
            )
    if holds:
        found.append(
            Finding(
                "It ends no later than equal numbers of slots",
                "HotCloud 2011, section 4, Fig. 5",
                "Both jobs are faster: each runs where it has the higher rate.",
                "on every configuration the mean makespan is at most that of equal slots, up to a thousandth",
                verdict(holds),
                tuple(evidence),
            )
        )
    return found


# --- pools and their cost ---------------------------------------------------------------------------------------------


def content_pools(runs: Sequence[Run]) -> Content:
    """The page of ``kind: cloud``."""
    variants = variants_of(runs)
    slowest = max((v.mean("makespan_s") or 0.0 for v in variants), default=0.0)
    rows = []
    for variant in variants:
        run, hours = variant.runs[0], variant.mean("makespan_s")
        rows.append(
            [
                variant.name,
                _nodes(run, "core"),
                _nodes(run, "accelerators"),
                figure_text(hours / 3600 if hours is not None else None, 2),
                figure_text(slowest / hours if hours else None, 2),
                spread_text(variant, 2, "cost_dollars"),
                spread_text(variant, 0, "accelerator_billed_h"),
                {True: "yes", False: "no"}.get(bool(run.summary.get("overloaded")), ABSENT),
            ]
        )
    heads = [
        Head("configuration"),
        Head("core nodes"),
        Head("accelerators"),
        Head("all queries end after", "h"),
        Head("speed over the slowest", ""),
        Head("cost of a period", "$"),
        Head("accelerators billed", "h"),
        Head("longer than the period"),
    ]
    tables = [Table("Each configuration", heads, rows, seeds_note(variants))]
    charts = []
    listed = [variant for variant in variants if variant.name != "driver"]
    names = [variant.name for variant in listed]
    driver = next((variant for variant in variants if variant.name == "driver"), None)
    measures: tuple[tuple[str, str, Callable[[Variant], float | None]], ...] = (
        ("time", "hours", _hours),
        ("cost", "dollars a period", lambda variant: variant.mean("cost_dollars")),
    )
    for title, label, value_of in measures:
        # One bar a configuration; their names find no room below and stand in the legend.
        chosen = value_of(driver) if driver is not None else None
        levels = ((chosen, "the driver's choice"),) if chosen is not None else ()
        charts.append(BarChart(title, label, [""], names, [[value_of(v) for v in listed]], levels))
    text = "The bars of Fig. 4: how long the queries of a period take, and what the nodes cost in that period."
    text += " The level line is the driver's choice." if driver is not None else ""
    legend = Legend([(name, k) for k, name in enumerate(names)])
    groups = [Group("cost", "Time and cost of each configuration", text, legend, charts)] if len(names) <= 12 else []
    parts = [part_of("pools", "Pools", groups, decision_tables(runs))]
    return Content(tables, [part for part in parts if part.groups or part.tables], "", POOLS_SOURCES)


def _hours(variant: Variant) -> float | None:
    makespan = variant.mean("makespan_s")
    return makespan / 3600 if makespan is not None else None


def _nodes(run: Run, pool: str) -> str:
    count, kind = number_at(run.summary, "nodes", pool), (run.summary.get("types") or {}).get(pool)
    return f"{count:.0f} {kind}" if count and isinstance(kind, str) else ABSENT


def findings_pools(runs: Sequence[Run]) -> list[Finding]:
    """Section 4: accelerators by the hour cost less than as many core nodes; the driver meets its deadline cheaply."""
    # A run without a time or a cost, as one that never ends, is neither fast nor cheap.
    runs = [run for run in runs if run.figure("makespan_s") is not None and run.figure("cost_dollars") is not None]
    found = []
    holds, evidence = [], []
    for own in runs:
        if not number_at(own.summary, "nodes", "accelerators"):
            continue
        for other in runs:
            same = (own.summary.get("types") or {}).get("accelerators") == (other.summary.get("types") or {}).get(
                "core"
            )
            count = (number_at(own.summary, "nodes", "core") or 0) + (
                number_at(own.summary, "nodes", "accelerators") or 0
            )
            alone = not number_at(other.summary, "nodes", "accelerators")
            core = (own.summary.get("types") or {}).get("core") == (other.summary.get("types") or {}).get("core")
            if same and core and alone and number_at(other.summary, "nodes", "core") == count:
                holds.append(own.number("cost_dollars") < other.number("cost_dollars"))
                evidence.append(
                    f"{own.label}: $ {own.number('cost_dollars'):.2f} a period, {other.label}: "
                    f"$ {other.number('cost_dollars'):.2f}, in {own.number('makespan_s') / 3600:.2f} h"
                )
    if holds:
        found.append(
            Finding(
                "Accelerators cost less than as many core nodes",
                "HotCloud 2011, section 4, Fig. 4",
                "Nodes that are there only while they are needed cut the cost of the same performance.",
                "a configuration with accelerators costs less than one with as many core nodes of the same type",
                verdict(holds),
                tuple(evidence),
            )
        )
    driver = next((run for run in runs if run.policy == "driver"), None)
    if driver is not None:
        experiment = driver.info.get("experiment")
        deadline = number_at(experiment, "driver", "deadline_h") if isinstance(experiment, Mapping) else None
        others = [r for r in runs if r is not driver and deadline and r.number("makespan_s") <= deadline * 3600]
        if deadline is not None:
            cheapest = min((r.number("cost_dollars") for r in others), default=None)
            meets = driver.number("makespan_s") <= deadline * 3600
            cheap = cheapest is None or driver.number("cost_dollars") <= cheapest + 0.005
            listed = ", ".join(f"{r.label} $ {r.number('cost_dollars'):.2f}" for r in others) or "none"
            found.append(
                Finding(
                    "The cloud driver meets the deadline at the least cost",
                    "HotCloud 2011, section 2",
                    "The driver allocates what the queries need by their deadlines, at the lowest cost.",
                    "its choice ends by the deadline, and no listed configuration that does is cheaper",
                    verdict([meets, cheap]),
                    (
                        f"driver: {driver.number('makespan_s') / 3600:.2f} h (deadline {deadline:g} h), "
                        f"$ {driver.number('cost_dollars'):.2f} a period",
                        f"configurations that end by then: {listed}",
                    ),
                )
            )
    return found
