"""The report page of pools (HotCloud 2011, the cloud driver), and the findings on their cost."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from harness.report.data import Run
from harness.report.figures import Group, Legend
from harness.report.findings import Case, Finding, find, finding
from harness.report.page import Content, part_of
from harness.report.svg import BarChart
from harness.report.tables import ABSENT, Head, Table, decision_tables, figure_text, means_said
from harness.report.tools import mean_text
from harness.report.variants import Variant, number_at, variants_of

PAPER = "Lee, Chun, Katz: Heterogeneity-Aware Resource Allocation and Scheduling in the Cloud, HotCloud 2011"
POOLS_SOURCES: tuple[tuple[str, str], ...] = (
    (
        "Cost",
        f"{PAPER}, section 4: core nodes for the whole period, accelerators by the started hour. Prices, cores and "
        "computing units are those of the instance types in the experiment.",
    ),
    ("Times", "Work of all queries over the computing units of the nodes."),
)


def content_pools(runs: Sequence[Run]) -> Content:
    """Return the report page of ``kind: cloud``."""
    variants = variants_of(runs)
    slowest = max((v.mean("makespan_s") or 0.0 for v in variants), default=0.0)
    columns: tuple[tuple[Head, Callable[[Variant], str]], ...] = (
        (Head("configuration"), lambda v: v.name),
        (Head("core nodes"), lambda v: _nodes(v.runs[0], "core")),
        (Head("accelerators"), lambda v: _nodes(v.runs[0], "accelerators")),
        (Head("all queries end after", "h"), lambda v: figure_text(_hours(v), 2)),
        (Head("speed over the slowest", ""), lambda v: figure_text(_over(slowest, v.mean("makespan_s")), 2)),
        (Head("cost of a period", "$"), lambda v: mean_text(v, 2, "cost_dollars")),
        (Head("accelerators billed", "h"), lambda v: mean_text(v, 0, "accelerator_billed_h")),
        (Head("longer than the period"), lambda v: "yes" if v.runs[0].summary.get("overloaded") else "no"),
    )
    rows = [[cell(variant) for _, cell in columns] for variant in variants]
    tables = [Table("Each configuration", [head for head, _ in columns], rows, means_said(variants))]
    charts = []
    listed = [variant for variant in variants if variant.name != "driver"]
    names = [variant.name for variant in listed]
    driver = next((variant for variant in variants if variant.name == "driver"), None)
    measures: tuple[tuple[str, str, Callable[[Variant], float | None]], ...] = (
        ("time", "hours", _hours),
        ("cost", "dollars a period", lambda variant: variant.mean("cost_dollars")),
    )
    for title, label, value_of in measures:
        # One bar per configuration. The names do not fit below the bars, so the legend shows them.
        chosen = value_of(driver) if driver is not None else None
        levels = ((chosen, "the driver's choice"),) if chosen is not None else ()
        charts.append(BarChart(title, label, [""], names, [[value_of(v) for v in listed]], levels))
    text = "The bars of Fig. 4: how long the queries of a period take, and what the nodes cost in that period."
    text += " The level line is the driver's choice." if driver is not None else ""
    legend = Legend([(name, k) for k, name in enumerate(names)])
    groups = [Group("cost", "Time and cost of each configuration", text, legend, charts)] if len(names) <= 12 else []
    parts = [part_of("pools", "Pools", groups, decision_tables(runs))]
    return Content(tables, [part for part in parts if part.groups or part.tables], "", POOLS_SOURCES)


def _over(slowest: float, own: float | None) -> float | None:
    return slowest / own if own else None


def _hours(variant: Variant) -> float | None:
    makespan = variant.mean("makespan_s")
    return makespan / 3600 if makespan is not None else None


def _pool(run: Run, pool: str) -> tuple[Any, float]:
    """Return a pool's node type and its number of nodes."""
    return (run.summary.get("types") or {}).get(pool), number_at(run.summary, "nodes", pool) or 0


def _nodes(run: Run, pool: str) -> str:
    kind, count = _pool(run, pool)
    return f"{count:.0f} {kind}" if count and isinstance(kind, str) else ABSENT


def _own_deadlines(experiment: Any) -> bool:
    """Return whether any query has its own deadline.

    If so, the time of all queries together does not show whether a configuration meets the deadlines.
    """
    queries = experiment.get("queries") if isinstance(experiment, Mapping) else None
    return any((query or {}).get("deadline_h") for query in (queries or {}).values())


def _known(runs: Sequence[Run]) -> list[Run]:
    """Return the runs that have a time and a cost; a run that never ends has neither and cannot be compared."""
    return [run for run in runs if run.figure("makespan_s") is not None and run.figure("cost_dollars") is not None]


@finding(
    "Accelerators cost less than as many core nodes",
    "HotCloud 2011, section 4, Fig. 4",
    "Nodes that are there only while they are needed cut the cost of the same performance.",
    "a configuration with accelerators costs less than one with as many core nodes of the same type",
)
def _accelerators_cost_less(runs: Sequence[Run]) -> Iterator[Case]:
    known = _known(runs)
    for own in known:
        (core, count), (kind, more) = _pool(own, "core"), _pool(own, "accelerators")
        for other in known if more else ():
            alone = not _pool(other, "accelerators")[1]
            if alone and core == kind and _pool(other, "core") == (core, count + more):
                yield (
                    own.number("cost_dollars") < other.number("cost_dollars"),
                    f"{own.label}: $ {own.number('cost_dollars'):.2f} a period, {other.label}: "
                    f"$ {other.number('cost_dollars'):.2f}, in {own.number('makespan_s') / 3600:.2f} h",
                )


@finding(
    "The cloud driver meets the deadline at the least cost",
    "HotCloud 2011, section 2",
    "The driver allocates what the queries need by their deadlines, at the lowest cost.",
    "its choice ends by the deadline, and no listed configuration that does is cheaper",
)
def _driver_is_cheapest(runs: Sequence[Run]) -> Iterator[Case]:
    known = _known(runs)
    driver = next((run for run in known if run.policy == "driver"), None)
    deadline = None if driver is None else number_at(driver.described, "driver", "deadline_h")
    if driver is None or deadline is None or _own_deadlines(driver.described):
        return
    others = [run for run in known if run is not driver and deadline and run.number("makespan_s") <= deadline * 3600]
    cheapest = min((run.number("cost_dollars") for run in others), default=math.inf)
    listed = ", ".join(f"{run.label} $ {run.number('cost_dollars'):.2f}" for run in others) or "none"
    yield (
        driver.number("makespan_s") <= deadline * 3600,
        f"driver: {driver.number('makespan_s') / 3600:.2f} h (deadline {deadline:g} h), "
        f"$ {driver.number('cost_dollars'):.2f} a period",
    )
    yield driver.number("cost_dollars") <= cheapest + 0.005, f"configurations that end by then: {listed}"


def findings_pools(runs: Sequence[Run]) -> list[Finding]:
    """Return the findings of sections 2 and 4.

    They check that rented accelerators cost less than the same number of core nodes, and that the driver meets its
    deadline at the lowest cost.
    """
    return find(runs, (_accelerators_cost_less, _driver_is_cheapest))
