"""The page: its parts, the texts around them, and the template that combines them.

A part has its charts as data: the page draws them as inline SVG, and `printed` draws the same charts for print.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from markupsafe import Markup

import harness
from harness.report import figures, hierarchy
from harness.report.charts import drawing
from harness.report.data import Run
from harness.report.findings import Finding
from harness.report.first import First, firsts_of
from harness.report.heat_maps import heat_map_groups
from harness.report.svg import LineChart, cut_words, over_time, swatch
from harness.report.sweeps import sweep_groups
from harness.report.tables import (
    Table,
    comparison_tables,
    decision_tables,
    experiments_of,
    figure_text,
    run_tables,
    wait_tables,
)
from harness.report.templating import content_hash, page_templates
from harness.report.variants import Variant, drawn_variants, grouped
from harness.results.runs import natural

#: Limit of rows in tables and lists: a page about a thousand runs is for reading, not for searching.
MOST_ROWS, MOST_LINES = 100, 20
#: Maximum number of variants or seeds in the page's first sentence.
MOST_NAMED = 8


@dataclass(frozen=True, slots=True)
class Part:
    """A section of the page: groups of charts that are not drawn yet, and tables."""

    ident: str
    title: str
    groups: Sequence[figures.Group] = ()
    tables: Sequence[Table] = field(default_factory=tuple)


def legend_of(group: figures.Group) -> list[tuple[Markup, str]]:
    """Return the charts' common legend: (swatch, name) pairs."""
    filled = any(chart.filled for chart in group.charts)
    return [(Markup(swatch(style, filled=filled)), name) for name, style in group.legend.names]


def _charts(group: figures.Group, part: str) -> Iterator[tuple[str, Markup, str]]:
    """Draw a group's charts: title, ``<svg>``, and a remark on values beyond the axis ('': none)."""
    for k, chart in enumerate(group.charts):
        # The strings are built by harness.report.svg, which escapes every text it gets.
        drawn = Markup(drawing(replace(chart, title=f"{group.title}: {chart.title}"), f"{part}-{group.ident}-{k}"))
        yield chart.title, drawn, cut_words(chart) if isinstance(chart, LineChart) else ""


def drawn_queues(runs: Sequence[Run]) -> str:
    """Return a remark if a run has too many queues to distinguish; '' if every queue is drawn."""
    most = max((len(run.leaves) for run in runs), default=0)
    if most <= figures.MOST_QUEUES:
        return ""
    return (
        f"Charts show {figures.FURTHEST} of {most} queues, those whose fairness degree at the end is furthest from "
        "1 in any run, and the others together where quantities are added up."
        + (" Tables have all." if most <= MOST_ROWS else "")
    )


def drawn_phases(runs: Sequence[Run]) -> str:
    """Return a remark if values are means over phases, which curves cannot show; '' if no run has phases."""
    many = max((run.phases.count for run in runs if run.phases is not None), default=1)
    if many == 1:
        return ""
    return (
        f"The figures above are means of {many} phases of heartbeats and control. Curves, decisions and times without "
        "a running task below are of one phase: an example, without a band."
    )


def parts_of(runs: Sequence[Run]) -> list[Part]:
    """Return the sections with charts, in the order of the page, without empty ones."""
    drawn, _ = drawn_variants(runs)
    styles = figures.Styles.of([run for one in drawn for run in one.runs])
    found = [
        part_of("speed", "Performance", figures.speedup_groups(drawn, styles)),
        part_of("settings", "Over the settings", [*sweep_groups(runs), *heat_map_groups(runs)]),
        part_of("fairness", "Fairness over time", figures.fairness_groups(drawn, styles)),
        part_of("resources", "Resources over time", figures.resource_groups(drawn, styles)),
        part_of("start", "The start in detail", figures.detail_groups(drawn, styles)),
        part_of("hierarchy", "The hierarchy", hierarchy.hierarchy_groups(drawn, styles)),
        part_of("tasks", "Running tasks and waiting", hierarchy.running_groups(drawn, styles), wait_tables(runs)),
        part_of("control", "The controller", figures.weight_groups(drawn, styles), decision_tables(shown_runs(drawn))),
    ]
    return [part for part in found if part.groups or part.tables]


@dataclass(frozen=True, slots=True)
class Content:
    """The content of a page between its title and the table of runs."""

    comparison: Sequence[Table]
    parts: Sequence[Part]
    #: A remark above the charts if they do not show every run.
    drawn: str
    sources: Sequence[tuple[str, str]]
    #: The first screen, one part per experiment; empty: the page begins with its findings.
    firsts: Sequence[First] = ()


def part_of(ident: str, title: str, groups: Sequence[figures.Group], tables: Sequence[Table] = ()) -> Part:
    """Return a section; groups without charts are left out."""
    return Part(ident, title, [group for group in groups if group.charts], tables)


def yarn_content(runs: Sequence[Run]) -> Content:
    """Return the content of the page of YARN runs."""
    drawn, variants = drawn_variants(runs)
    said = " ".join(text for text in (drawn_phases(runs), variants, drawn_queues(shown_runs(drawn))) if text)
    return Content(comparison_tables(runs), parts_of(runs), said, sources_of(runs), firsts_of(runs))


def shown_runs(variants: Sequence[Variant]) -> list[Run]:
    """Return one run per variant, with its first seed, for content that shows a single run."""
    return [one.first for one in variants]


#: The unit of the integrals, by the experiment's fairness resource (`resource`).
_UNITS = {
    "memory": "MiB\u00b7s",
    "vcores": "vcore\u00b7s",
    "dominant": "MiB\u00b7s of the dominant share",
}


def sources_of(runs: Sequence[Run]) -> tuple[tuple[str, str], ...]:
    """Describe where the values come from, depending on backend, poll interval and resource."""
    simulated = any(run.info.get("backend") in ("sim", None) for run in runs)
    real = any(run.info.get("backend") not in ("sim", None) for run in runs)
    units = " or ".join(dict.fromkeys(_UNITS.get(run.resource, run.resource) for run in runs))
    periods = dict.fromkeys(str(run.described["sample_s"]) for run in runs if "sample_s" in run.described)
    every = f", taken every {' or '.join(periods)} s" if periods else ""
    integrals, jobs = [], []
    if simulated:
        integrals.append("Of simulated runs the integrals are kept at every change, and exact at each sample.")
        jobs.append("the simulation's events")
    if real:
        integrals.append(
            "Of real clusters they are sums of steps: what the ResourceManager showed at one look holds until the next."
        )
        jobs.append("what the ResourceManager noted")
    phases = (
        "Figures with brackets",
        "phases.json of each run directory: the trace in many phases of heartbeats, of the scheduler's update "
        "and of control. Mean, and the smallest and largest of them: of twenty, a further simulated one lies between "
        "with 90 %, a real run less often.",
    )
    return (
        *((phases,) if any(run.phases is not None for run in runs) else ()),
        (
            "Fairness degree, sharing benefit, sharing loss",
            "Equations (3) to (5) of LTYARN (Tang, Lee, He: Fair Resource Allocation for Data-Intensive Computing in "
            "the Cloud, IEEE TSC 2016), from the integrals of allocation and of min(demand, own share) in "
            f"allocations.parquet, in {units}. {' '.join(integrals)} The own share is capacity times weight over the "
            "sum of all queues' weights (eq. 2), whether the others are active or not. The fairness degree is 1 while "
            "nothing was due.",
        ),
        (
            "Mean benefit and loss, sharing loss, last loss, utilisation, completion times, speed-ups",
            f"summary.json of each run directory. Means over time, integral and last loss are computed from the samples"
            f"{every}; completion times come from {' or '.join(jobs)}. The formulas are on "
            'the page "How results are computed" of yarnfair\'s documentation.',
        ),
        (
            "Curves",
            "allocations.parquet of each run directory, one row per sample and queue. Where the text says so a curve "
            "shows means over spans of time; integrals are thinned without moving any point by more than a fraction of "
            "a pixel.",
        ),
        (
            "Findings",
            "Computed from the figures above by the rules that stand with them; unfinished and invalid runs are left "
            "out.",
        ),
        ("Times", "Virtual seconds for simulated runs, wall-clock seconds for real clusters. Memory in MiB."),
    )


def render_page(runs: Sequence[Run], findings: Sequence[Finding], content: Content) -> str:
    """Return the whole page as HTML."""
    environment = page_templates()
    title, lead = title_and_lead(runs)
    script = environment.get_template("zoom.js.j2").render() if _has_times(content.parts) else ""
    contents = [("verdict", "In short")] if content.firsts else []
    contents += [("findings", "Findings")] if findings else []
    contents += [("comparison", "Comparison" if len(runs) > 1 else "Figures")] if content.comparison else []
    contents += [(part.ident, part.title) for part in content.parts]
    contents += [("runs", "What was run"), ("sources", "Where the numbers come from")]
    return environment.get_template("report.html.j2").render(
        title=title,
        lead=lead,
        single=len(runs) == 1,
        seeds=any(len(variant.runs) > 1 for variant in grouped(runs)),
        contents=contents,
        warnings=_warnings(runs),
        drawn=content.drawn,
        firsts=content.firsts,
        script=Markup(script),
        script_hash=Markup(f"'{content_hash(script)}'" if script else "'none'"),
        findings=[replace(finding, evidence=tuple(_cut_lines(finding.evidence))) for finding in findings],
        comparison=[_cut(table) for table in content.comparison],
        parts=[replace(part, tables=[_cut(table) for table in part.tables]) for part in content.parts],
        legend_of=legend_of,
        charts_of=_charts,
        run_tables=[_cut(table) for table in run_tables(runs)],
        experiments=experiments_of(runs)[:MOST_LINES],
        sources=content.sources,
        version=harness.__version__,
    )


def _has_times(parts: Sequence[Part]) -> bool:
    """Return whether a chart has a time axis, which the page's script zooms."""
    return any(over_time(chart) for part in parts for group in part.groups for chart in group.charts)


def _cut(table: Table) -> Table:
    """Return the table, or its first rows and a remark on the others."""
    if len(table.rows) <= MOST_ROWS:
        return table
    said = f"The first {MOST_ROWS} of {len(table.rows)} rows; summary.json of each run and `yarnfair sql` have all."
    return replace(table, rows=table.rows[:MOST_ROWS], note=f"{table.note} {said}".strip())


def _cut_lines(lines: Sequence[str]) -> list[str]:
    """Return the lines, or the first of them and their number."""
    more = len(lines) - MOST_LINES
    return [*lines[:MOST_LINES], f"and {more} more"] if more > 0 else list(lines)


def _warnings(runs: Sequence[Run]) -> list[str]:
    out = [
        f"{run.label} ({run.path.name}): {run.state}. Its figures are not to be relied on."
        for run in runs
        if run.state != "finished"
    ]
    out += [f"{run.label} ({run.path.name}): {problem}" for run in runs for problem in run.problems]
    return _cut_lines(out)


def title_and_lead(runs: Sequence[Run]) -> tuple[str, str]:
    """Return the title of a page about these runs, and the sentences below it: what, how many, on which cluster."""
    known = [run.described for run in runs]
    names = list(dict.fromkeys(str(e["experiment"]) for e in known if e.get("experiment")))
    titles = list(dict.fromkeys(" ".join(str(e["about"]).split()) for e in known if e.get("about")))
    title = f"yarnfair: {', '.join(names)}" if names else "yarnfair report"
    if len(runs) == 1:
        title += f", {runs[0].label}"
        lead = f"One run: {_which(runs[0])}."
    else:
        variants = grouped(runs)
        lead = f"{_counted(variants)}: {_listed([one.name for one in variants])}."
    lead += _memory(runs)
    if titles:
        lead = " ".join(text if text.endswith(".") else text + "." for text in titles) + " " + lead
    return title, lead


def _memory(runs: Sequence[Run]) -> str:
    """Return a sentence on the cluster's memory when a run begins, of each experiment if it differs; "" if unknown."""
    known: dict[str, set[str]] = {}
    for run in runs:
        if run.capacity_mb:
            known.setdefault(run.experiment, set()).add(figure_text(run.capacity_mb / 1024, 0))
    of: dict[str, list[str]] = {}
    for experiment, sizes in known.items():
        of.setdefault(" or ".join(f"{size} GiB" for size in sorted(sizes, key=natural)), []).append(experiment)
    if not of:
        return ""
    if len(of) == 1:
        return f" Cluster memory {next(iter(of))}."
    return f" Cluster memory {', '.join(f'{sizes} ({_listed(names)})' for sizes, names in of.items())}."


def _counted(variants: Sequence[Variant]) -> str:
    """Describe how many variants were run, and with which seeds."""
    runs = [run for one in variants for run in one.runs]
    seeds = sorted({run.seed for run in runs if run.seed is not None})
    if len(runs) == len(variants):
        return f"{len(runs)} runs"
    every = len(runs) == len(variants) * len(seeds)
    row = len(seeds) > 2 and seeds[-1] - seeds[0] == len(seeds) - 1
    said = f"seeds {seeds[0]} to {seeds[-1]}" if row else f"seeds {', '.join(map(str, seeds[:MOST_NAMED]))}"
    said += ", ..." if not row and len(seeds) > MOST_NAMED else ""
    return (
        f"{len(variants)} variants with {len(seeds)} seeds each ({said})"
        if every
        else (f"{len(variants)} variants in {len(runs)} runs ({said})")
    )


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return ", ".join(names[:MOST_NAMED]) + more


def _which(run: Run) -> str:
    """Describe the run of a page about one run: its policy, how it acts, its seed, its backend."""
    said = [run.policy if run.mode == "inside" else f"{run.policy} from {run.mode}"]
    said += [f"{name} {value}" for name, value in run.settings.items()]
    said += [f"seed {run.seed}"] if run.seed is not None else []
    backend = run.info.get("backend")
    said += ["simulated" if backend in ("sim", None) else f"on {backend}"]
    return ", ".join(said)
