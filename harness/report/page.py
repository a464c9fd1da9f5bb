"""The page: tables, sections and words around the charts, and the template that holds them together."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import jinja2
from markupsafe import Markup

import harness
from harness.model.data import data_path
from harness.report import figures
from harness.report.data import SHOWN_DECISIONS, Run, short
from harness.report.findings import Finding
from harness.report.svg import BarChart, LineChart, bar_chart, bar_swatch, legend_swatch, line_chart

ABSENT = "\u2013"


@dataclass(frozen=True, slots=True)
class Head:
    """A column's heading; `unit` (possibly empty) marks a column of numbers."""

    text: str
    unit: str | None = None


@dataclass(frozen=True, slots=True)
class Table:
    """A table for the template: the first cell of a row is its heading."""

    caption: str
    heads: Sequence[Head]
    rows: Sequence[Sequence[str]]
    note: str = ""
    numeric: bool = True


@dataclass(frozen=True, slots=True)
class Chart:
    """A drawn chart and the words above it."""

    title: str
    svg: Markup


@dataclass(frozen=True, slots=True)
class ShownGroup:
    """A group of drawn charts with its legend: (swatch, name) pairs."""

    ident: str
    title: str
    text: str
    legend: Sequence[tuple[Markup, str]]
    charts: Sequence[Chart]


@dataclass(frozen=True, slots=True)
class Part:
    """A section of the page."""

    ident: str
    title: str
    groups: Sequence[ShownGroup] = ()
    tables: Sequence[Table] = field(default_factory=tuple)


def figure_text(value: float | None, digits: int = 0) -> str:
    """A number for a table cell: thousands set apart, a true minus, a dash for what is not known."""
    if value is None or not math.isfinite(value):
        return ABSENT
    text = f"{value:,.{digits}f}".replace(",", "\u202f")
    return (
        "0" + text[2:]
        if text.startswith("-0") and not float(text.replace("\u202f", ""))
        else text.replace("-", "\u2212")
    )


def _show(group: figures.Group, part: str) -> ShownGroup:
    swatch: Callable[[int], str] = bar_swatch if group.legend.bars else legend_swatch
    charts = []
    for k, chart in enumerate(group.charts):
        ident = f"{part}-{group.ident}-{k}"
        drawn = bar_chart(chart, ident) if isinstance(chart, BarChart) else line_chart(_named(chart, group), ident)
        # The strings are built by harness.report.svg, which escapes every text it is given.
        charts.append(Chart(chart.title, Markup(drawn)))
    legend = [(Markup(swatch(style)), name) for name, style in group.legend.names]
    return ShownGroup(group.ident, group.title, group.text, legend, charts)


def _named(chart: LineChart, group: figures.Group) -> LineChart:
    from dataclasses import replace

    return replace(chart, title=f"{group.title}: {chart.title}")


def comparison_tables(runs: Sequence[Run]) -> list[Table]:
    """Per policy: makespan, benefit, loss; per queue: fairness degree, mean completion, speed-up over static."""
    counted = [run for run in runs if run.summary]
    if not counted:
        return []
    resources = list(
        dict.fromkeys(name for run in counted for name in run.summary.get("utilisation") or {} if isinstance(name, str))
    )
    overall = Table(
        "Each policy over the whole run",
        [
            Head("policy"),
            Head("makespan", "s"),
            Head("sharing benefit", ""),
            Head("sharing loss", ""),
            Head("loss integral", "s"),
            Head("last loss", "s"),
            *(Head(f"utilisation, {name}", "%") for name in resources),
        ],
        [
            [
                run.label,
                figure_text(run.figure("makespan_s"), 1),
                figure_text(run.figure("sharing_benefit"), 3),
                figure_text(run.figure("sharing_loss"), 3),
                figure_text(run.figure("sharing_loss_integral"), 1),
                figure_text(run.figure("last_loss_s"), 1),
                *(_utilisation(run, name) for name in resources),
            ]
            for run in counted
        ],
        note="Benefit and loss are means over time, the integral is of the loss' size; the last loss is the last time "
        "with a loss beyond 0.01 (a dash: it never was).",
    )
    tables = [overall]
    for caption, name, unit, digits, note in (
        (
            "Fairness degree at the end",
            "fairness_degree",
            "",
            3,
            "1 is what the queue's own partition would have given.",
        ),
        ("Mean completion time of a job", "mean_completion_s", "s", 1, "From submission to end."),
        ("95th percentile of the completion time", "p95_completion_s", "s", 1, ""),
        ("Mean slowdown", "mean_slowdown", "", 2, "See docs/how-results-are-computed.md for what it is relative to."),
        (
            "Speed-up over the static partition",
            "speedup_over_static",
            "",
            3,
            "Mean completion under static over that here.",
        ),
        ("Jobs", "jobs", "", 0, ""),
        ("Failed jobs", "failed", "", 0, ""),
    ):
        queues = list(dict.fromkeys(queue for run in counted for queue in run.summary_queues()))
        rows = [
            [run.label, *(figure_text(run.queue_figure(queue, name), digits) for queue in queues)] for run in counted
        ]
        known = [cell for row in rows for cell in row[1:] if cell != ABSENT]
        if not known or (name == "failed" and all(cell == "0" for cell in known)):
            continue
        if name == "jobs" and len({tuple(row[1:]) for row in rows}) == 1:
            rows = [["every policy", *rows[0][1:]]]
        tables.append(Table(caption, [Head("policy"), *(Head(short(q), unit) for q in queues)], rows, note))
    return tables


def _utilisation(run: Run, name: str) -> str:
    value = (run.summary.get("utilisation") or {}).get(name)
    return figure_text(value * 100, 1) if isinstance(value, int | float) else ABSENT


def decision_tables(runs: Sequence[Run]) -> list[Table]:
    """What the controller decided and why: counts by kind, and the first decisions of each run from outside."""
    tables = []
    for run in runs:
        made = run.decisions
        if not made.count and not made.unreadable:
            continue
        kinds = ", ".join(f"{kind}: {count}" for kind, count in sorted(made.kinds.items()))
        note = f"{made.count} in all ({kinds}); the first {min(made.count, SHOWN_DECISIONS)} are shown, all stand in "
        note += f"{run.path.name}/decisions.jsonl."
        if made.unreadable:
            note += f" {made.unreadable} line(s) could not be read."
        rows = [[_when(entry), _what(entry), _why(entry)] for entry in made.first]
        heads = [Head("time (s)"), Head("decision"), Head("why")]
        tables.append(Table(f"Decisions of the controller: {run.label}", heads, rows, note, numeric=False))
    return tables


def _when(entry: Mapping[str, Any]) -> str:
    value = entry.get("time_s")
    return figure_text(float(value), 1) if isinstance(value, int | float) else ABSENT


def _compact(value: object, limit: int = 240) -> str:
    """A value in a line of words, shortened."""
    if isinstance(value, Mapping):
        text = ", ".join(f"{short(str(key))} {_compact(item, 80)}" for key, item in value.items())
    elif isinstance(value, list):
        text = ", ".join(_compact(item, 80) for item in value)
    elif isinstance(value, float):
        text = f"{value:.4g}"
    else:
        text = str(value)
    return text if len(text) <= limit else text[: limit - 1] + "\u2026"


def _what(entry: Mapping[str, Any]) -> str:
    parts = [str(entry[name]) for name in ("kind", "action", "event") if isinstance(entry.get(name), str)]
    skipped = {"time_s", "kind", "action", "event", "reason", "reasons", "why"}
    parts += [f"{name.replace('_', ' ')}: {_compact(value)}" for name, value in entry.items() if name not in skipped]
    return "; ".join(parts) or ABSENT


def _why(entry: Mapping[str, Any]) -> str:
    for name in ("reasons", "reason", "why"):
        if entry.get(name):
            return _compact(entry[name], 400)
    return ABSENT


def wait_table(runs: Sequence[Run]) -> list[Table]:
    """The longest time that each queue had demand and held nothing."""
    spans = [(run, run.starvation()) for run in runs if run.leaves]
    queues = list(dict.fromkeys(queue for _, found in spans for queue in found))
    if not queues:
        return []
    rows = [[run.label, *(figure_text(found[q][0] if q in found else None, 0) for q in queues)] for run, found in spans]
    return [
        Table(
            "Longest time with demand and nothing allocated",
            [Head("policy"), *(Head(queue, "s") for queue in queues)],
            rows,
            "From the samples: not one container, not even an application master's, while something was asked for.",
        )
    ]


def parts_of(runs: Sequence[Run]) -> list[Part]:
    """The sections with charts, in the order of the page; empty ones are left out."""
    drawn = [run for run in runs if run.leaves]
    styles = figures.Styles.of(drawn)
    weights = figures.weight_groups(drawn, styles)
    found: list[tuple[str, str, list[figures.Group], list[Table]]] = [
        ("speed", "Performance", figures.speedup_groups(runs), []),
        ("fairness", "Fairness over time", figures.fairness_groups(drawn, styles), []),
        ("resources", "Resources over time", figures.resource_groups(drawn, styles), []),
        ("start", "The start in detail", figures.detail_groups(drawn, styles), []),
        ("hierarchy", "The hierarchy", figures.hierarchy_groups(drawn, styles), []),
        ("tasks", "Running tasks and waiting", figures.running_groups(drawn), wait_table(drawn)),
        ("control", "The controller", weights, decision_tables(runs)),
    ]
    return [
        Part(ident, title, [_show(group, ident) for group in groups], tables)
        for ident, title, groups, tables in found
        if groups or tables
    ]


def run_tables(runs: Sequence[Run]) -> list[Table]:
    """What was run, one row a run, and the environment."""
    runs_table = Table(
        "Runs",
        [Head(text) for text in ("run", "policy", "decided", "settings", "seed", "backend", "state", "directory")],
        [
            [
                run.label,
                run.policy,
                {"inside": "in the scheduler", "outside": "from outside"}.get(run.mode, run.mode),
                _compact(run.settings) or ABSENT,
                ABSENT if run.seed is None else str(run.seed),
                str(run.info.get("backend") or ABSENT),
                run.state,
                run.path.name,
            ]
            for run in runs
        ],
        numeric=False,
    )
    environment: dict[str, list[str]] = {}
    for run in runs:
        for heading in ("versions", "machine"):
            found = run.info.get(heading)
            for name, value in (found if isinstance(found, Mapping) else {heading: found} if found else {}).items():
                text = _compact(value)
                known = environment.setdefault(str(name), [])
                if text not in known:
                    known.append(text)
    tables = [runs_table]
    if environment:
        rows = [[name.replace("_", " "), "; ".join(values)] for name, values in environment.items()]
        tables.append(Table("Environment", [Head("what"), Head("value")], rows, numeric=False))
    return tables


def experiments_of(runs: Sequence[Run]) -> list[tuple[str, str]]:
    """Each experiment as it was resolved, as text; the same one only once."""
    seen: dict[str, str] = {}
    for run in runs:
        document = run.info.get("experiment")
        if isinstance(document, Mapping):
            text = json.dumps(document, indent=1, ensure_ascii=False, sort_keys=False)
            name = str(document.get("name") or "experiment")
            seen.setdefault(text, f"{name}, hash {str(run.info.get('hash') or ABSENT)[:12]}")
    return [(name, text) for text, name in seen.items()]


SOURCES: tuple[tuple[str, str], ...] = (
    (
        "Fairness degree, sharing benefit, sharing loss",
        "Equations (3) to (5) of LTYARN (Tang, Lee, He: Fair Resource Allocation for Data-Intensive Computing in the "
        "Cloud, IEEE TSC 2016), from the exact integrals of allocation and of min(demand, own share) in "
        "allocations.parquet. The own share is capacity times weight over the sum of all queues' weights (eq. 2), "
        "whether the others are active or not. The fairness degree is 1 while nothing was due.",
    ),
    (
        "Mean benefit and loss, loss integral, last loss, utilisation, completion times, speed-ups",
        "summary.json of each run directory, computed from every event of the run; how is written in "
        "docs/how-results-are-computed.md.",
    ),
    (
        "Curves",
        "allocations.parquet of each run directory, one row per sample and queue. Where the text says so a curve shows "
        "means over spans of time; integrals are thinned without moving any point by more than a fraction of a pixel.",
    ),
    (
        "Findings",
        "Computed from the figures above by the rules that stand with them; unfinished and invalid runs are left out.",
    ),
    ("Times", "Virtual seconds for simulated runs, wall-clock seconds for real clusters. Memory in MiB."),
)


def render_page(runs: Sequence[Run], findings: Sequence[Finding]) -> str:
    """The whole page as HTML text."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(data_path("templates")),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    parts = parts_of(runs)
    comparison = comparison_tables(runs)
    title, lead = _title(runs)
    contents = [("findings", "Findings")] if findings else []
    contents += [("comparison", "Comparison")] if comparison else []
    contents += [(part.ident, part.title) for part in parts]
    contents += [("runs", "What was run"), ("sources", "Where the numbers come from")]
    return environment.get_template("report.html.j2").render(
        title=title,
        lead=lead,
        contents=contents,
        warnings=_warnings(runs),
        findings=findings,
        comparison=comparison,
        parts=parts,
        run_tables=run_tables(runs),
        experiments=experiments_of(runs),
        sources=SOURCES,
        version=harness.__version__,
    )


def _warnings(runs: Sequence[Run]) -> list[str]:
    out = [
        f"{run.label} ({run.path.name}): {run.state}. Its figures are not to be relied on."
        for run in runs
        if run.state != "finished"
    ]
    return out + [f"{run.label} ({run.path.name}): {problem}" for run in runs for problem in run.problems]


def _title(runs: Sequence[Run]) -> tuple[str, str]:
    experiments = [run.info.get("experiment") for run in runs]
    names = list(dict.fromkeys(str(e.get("name")) for e in experiments if isinstance(e, Mapping) and e.get("name")))
    titles = list(
        dict.fromkeys(
            str(e.get("title") or e.get("description")).strip()
            for e in experiments
            if isinstance(e, Mapping) and (e.get("title") or e.get("description"))
        )
    )
    title = f"yarnfair: {', '.join(names)}" if names else "yarnfair report"
    policies = ", ".join(run.label for run in runs)
    lead = f"{len(runs)} run{'s' if len(runs) != 1 else ''}: {policies}."
    capacity = next((run.capacity_mb for run in runs if run.capacity_mb), None)
    if capacity:
        lead += f" Cluster memory {figure_text(capacity / 1024, 0)} GiB."
    if titles:
        lead = " ".join(text if text.endswith(".") else text + "." for text in titles) + " " + lead
    return title, lead
