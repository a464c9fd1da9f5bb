"""The report page of computing rates (HotCloud 2011, progress share), and the findings on it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from harness.report.curves import steps
from harness.report.data import Run, read_table
from harness.report.figures import Group, Legend, shared
from harness.report.findings import Case, Finding, find, finding
from harness.report.page import Content, part_of
from harness.report.svg import Line, LineChart
from harness.report.tables import figure_text
from harness.report.tools import bars, first_seed, per_cent, tables_of
from harness.report.variants import number_at, variants_of
from harness.systems.progress_share.experiment import MEASURES

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


def content_rates(runs: Sequence[Run]) -> Content:
    """Return the report page of ``kind: computing-rates``."""
    variants = variants_of(runs)
    jobs = list(dict.fromkeys(name for run in runs for name in run.summary_queues()))
    tables = tables_of("Each policy on each configuration", "configuration, policy", variants, MEASURES)
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
    jobs = run.described.get("jobs")
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


@finding(
    "Progress-share scheduling keeps every job at its share",
    "HotCloud 2011, section 3, Fig. 3",
    "With progress share, each job's share is at least what it would get on its part of the cluster.",
    "no job is below its share at any time in which all have tasks waiting, with any seed",
)
def _keeps_shares(runs: Sequence[Run]) -> Iterator[Case]:
    for variant in variants_of([run for run in runs if run.policy == "progress-share"]):
        jobs = variant.runs[0].summary_queues()
        parts = {job: variant.mean("queues", job, "progress_share", "below_share") for job in jobs}
        known = {job: part for job, part in parts.items() if part is not None}
        if known:
            listed = ", ".join(f"{job} {per_cent(part)}" for job, part in known.items())
            text = f"{variant.name}: below its share for {listed} of the contended time"
            yield all(part == 0 for part in known.values()), text


@finding(
    "It ends no later than equal numbers of slots",
    "HotCloud 2011, section 4, Fig. 5",
    "Both jobs are faster: each runs where it has the higher rate.",
    "on every configuration the mean makespan is at most that of equal slots, up to a thousandth",
)
def _ends_no_later(runs: Sequence[Run]) -> Iterator[Case]:
    makespans: dict[Any, dict[str, float]] = {}
    for variant in variants_of(runs):
        run, mean = variant.runs[0], variant.mean("makespan_s")
        if run.policy in ("fair", "progress-share") and mean is not None and not run.settings.get("calibrate"):
            makespans.setdefault(run.info.get("configuration"), {})[run.policy] = mean
    for configuration, own in makespans.items():
        if len(own) == 2:
            yield (
                own["progress-share"] <= own["fair"] * 1.001,
                f"{configuration}: {figure_text(own['fair'], 1)} s with equal slots, "
                f"{figure_text(own['progress-share'], 1)} s with progress share",
            )


def findings_rates(runs: Sequence[Run]) -> list[Finding]:
    """Return the findings of sections 3 and 4.

    They check that no job is below its share, and that the jobs end no later than with equal numbers of slots.
    """
    return find(runs, (_keeps_shares, _ends_no_later))
