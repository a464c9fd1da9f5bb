"""The tables of docs/figures-dynamicmr.md, and MROrder's of docs/figures-ordering.md, from their records.

``python -m studies.dynamicmr_tables docs/records docs/figures-dynamicmr.md`` (or the other page) fills in
what stands between the page's markers. It measures nothing.
"""

from __future__ import annotations

from collections.abc import Callable

from studies.seeds import shown
from studies.tables import Values, markdown


def slots(values: Values) -> str:
    """Fig. 4.10: speed-up over 1/11."""
    rows = []
    for load, own in values["speedup_over_1_11"].items():
        for policy in ("hadoop", "pi-dhsa", "pd-dhsa"):
            rows.append((load, policy, *(shown(x) for x in own[policy])))
    return markdown(("load", "policy", *(f"{m}/{12 - m}" for m in values["map_slots"])), rows)


def early(values: Values) -> str:
    """Makespans with and without early reduces."""
    rows = [
        (begin, policy, *(shown(x, ".0f") for x in times))
        for begin, own in values["makespan_s"].items()
        for policy, times in own.items()
    ]
    return markdown(("reduces begin", "policy", *(f"{m}/{12 - m}" for m in values["map_slots"])), rows)


def borrowed(values: Values) -> str:
    """Fig. 4.11 at every fifth of a hundred."""
    percents = values["percent"]
    at = [i for i, p in enumerate(percents) if p % 20 == 0]
    rows = [
        (config, curve, *(shown(points[i]) for i in at))
        for config, own in values["speedup"].items()
        for curve, points in own.items()
    ]
    return markdown(("slots", "curve", *(f"{percents[i]} %" for i in at)), rows)


def sepb(values: Values) -> str:
    """Fig. 4.12."""
    rows = [
        (
            load,
            name,
            shown(own["makespan_s"], ".0f"),
            shown(own["speedup"], ".3f"),
            shown(own["copies"], ".0f"),
            shown(own["killed"], ".0f"),
        )
        for load, each in values["percentageOfJobsCheckedForPendingTasks"].items()
        for name, own in each.items()
    ]
    return markdown(("load", "jobs checked", "makespan, s", "speed-up over 0", "copies", "killed"), rows)


def locality(values: Values) -> str:
    """Figs. 4.13 and 4.14."""
    rows = []
    for load, own in values["loads"].items():
        cells = [
            shown(own[name]["node_local"], ".1f", " %", 100)
            for name in ("no delay", "delay", "delay and PreScheduling")
        ]
        rows.append((load, *cells, shown(own["delay"]["makespan_s"], ".1f"), shown(own["speedup"], ".3f")))
    return markdown(
        (
            "load",
            "local, no delay",
            "delay",
            "and PreScheduling",
            "makespan with delay, s",
            "speed-up by PreScheduling",
        ),
        rows,
    )


def benchmarks(values: Values) -> str:
    """Fig. 4.14."""
    sizes = ("16", "32", "160")
    rows = [
        (
            name,
            *(shown(own[maps]["speedup"]) for maps in sizes),
            *(shown(own[maps]["locality_gain"], ".1f", " %", 100) for maps in sizes),
        )
        for name, own in values["benchmarks"].items()
    ]
    head = [f"{what}, {maps} maps" for what in ("speed-up", "more local maps") for maps in sizes]
    return markdown(("benchmark", *head), rows)


def each_job(values: Values) -> str:
    """Fig. 4.12 (b)."""
    none, every = (values["each_job_of_5"][part] for part in ("0", "1"))
    rows = [(job.rsplit("-", 1)[0], shown(none[job], ".0f"), shown(every[job], ".0f")) for job in none]
    return markdown(("job", "ends with no job checked, s", "with all checked, s"), rows)


def whole(values: Values) -> str:
    """Figs. 4.15 and 4.16."""
    rows = [
        (
            load,
            scheduler,
            *(shown(run["makespan_s"], ".0f") for run in own.values()),
            shown(list(own.values())[-1]["speedup"]),
        )
        for scheduler in ("fair", "fifo")
        for load, own in values[scheduler].items()
    ]
    return markdown(("load", "scheduler", "Hadoop 6/6, s", "DynamicMR, s", "speed-up"), rows)


def other_slots(values: Values) -> str:
    """DynamicMR over other static slots than 6/6."""
    rows = [(slots, *(shown(x) for x in own.values())) for slots, own in values["over static slots"].items()]
    return markdown(("Hadoop's slots a node", "DynamicMR's speed-up, 5 jobs", "20 jobs"), rows)


def yarn(values: Values) -> str:
    """Fig. 4.17 with Hadoop's slow-start."""
    rows = [
        (
            load,
            shown(own["yarn"]["makespan_s"], ".0f"),
            shown(own["dynamicmr"]["makespan_s"], ".0f"),
            shown(own["dynamicmr"]["speedup"]),
        )
        for load, own in values["loads"].items()
    ]
    return markdown(("load", "containers, s", "DynamicMR, s", "speed-up"), rows)


def late(values: Values) -> str:
    """Fig. 4.17 with reduces after the last map."""
    rows = [
        (
            load,
            shown(own["yarn_s"], ".0f"),
            shown(own["pi-dhsa"]),
            shown(own["dynamicmr"]),
            shown(own["pi-dhsa, no masters"]),
        )
        for load, own in values["loads"].items()
    ]
    return markdown(("load", "containers, s", "over PI-DHSA", "over DynamicMR", "over PI-DHSA, no masters"), rows)


def outside(values: Values) -> str:
    """What YARN can be told."""
    return markdown(
        ("setting", "makespan of 5 jobs, s"),
        [(name, shown(time, ".0f")) for name, time in values["makespan_s"].items()],
    )


def outside_real(values: Values) -> str:
    """What a stock YARN can be told, with real MapReduce."""
    rows = [
        (
            name,
            own["most_maps_at_once"],
            own["most_reduces_at_once"],
            f"{own['reduces_before_the_last_map_s']:.0f}",
            f"{own['seconds']:.0f}",
        )
        for name, own in values["settings"].items()
    ]
    held = "container seconds of reduces before the last map's end"
    return markdown(("setting", "most maps at once", "most reduces at once", held, "the job takes, s"), rows)


def intervals(values: Values) -> str:
    """Table 3.4."""
    rows = []
    for row in values["rows"]:
        for when, name in (("tp-fti", "TP-FTI"), ("tp-ati", "TP-ATI")):
            best, first = row["policies"][when]["best"], row["policies"][when]["at_10_s"]
            rows.append(
                (
                    row["jobs"],
                    name,
                    best["interval_s"],
                    shown(best["tct"], ".1f", " %"),
                    shown(first["tct"], ".1f", " %"),
                    shown(best["makespan"], ".1f", " %"),
                )
            )
    return markdown(
        ("jobs", "policy", "best interval, s", "total completion time", "the same at 10 s", "makespan at the best"),
        rows,
    )


def online(values: Values) -> str:
    """Fig. 3.9."""

    def cell(of: dict[str, float]) -> str:
        return f"{shown(of, '.1f', ' %')} ({of['min']:.1f} to {of['max']:.1f})"

    rows = [(r["workload"], r["jobs"], cell(r["makespan"]), cell(r["tct"]), cell(r["flow"])) for r in values["rows"]]
    return markdown(("workload", "jobs", "makespan", "total completion time", "total flow time"), rows)


def in_front(values: Values) -> str:
    """MROrder in front of YARN: the experiment's variants over its seeds."""
    rows = [
        (name, *(shown(of, ",.0f") for of in (own["makespan_s"], own["queues"]["root.jobs"]["mean_completion_s"])))
        for name, own in values["variants"].items()
    ]
    return markdown(("variant", "makespan, s", "mean completion, s"), rows)


_TOLD = {
    "declared": "mean times as declared",
    "history": "mean times of one earlier run",
    "own": "each task's time in that very run",
}


def errors(values: Values) -> str:
    """Fig. 3.10: how far the estimates are from the runs."""
    rows = []
    for how, words in _TOLD.items():
        cells = []
        for key in ("makespan_s", "total_completion_time_s"):
            of = values["errors"][how][key]
            cells += [
                f"{100 * of['mean']:.1f} %",
                f"{100 * of['mean_absolute']:.1f} %",
                f"{100 * of['greatest']:.1f} %",
                f"{of['rank_correlation']:.2f}",
            ]
        rows.append((words, *cells))
    head = [f"{what}: {name}" for what in ("makespan", "total") for name in ("mean", "absolute", "greatest", "ranks")]
    return markdown(("the estimator knows", *head), rows)


def orders(values: Values) -> str:
    """Fig. 3.10, order by order."""
    rows = []
    for name, run in values["runs"].items():
        cells = [
            f"{run[who][key]:.0f}" for key in ("makespan_s", "total_completion_time_s") for who in ("real", *_TOLD)
        ]
        rows.append((name, *cells))
    head = [f"{what}: {who}" for what in ("makespan", "total") for who in ("real, s", *_TOLD)]
    return markdown(("order", *head), rows)


#: Name -> (record, table).
TABLES: dict[str, tuple[str, Callable[[Values], str]]] = {
    "fig-4.10": ("dynamicmr-slots", slots),
    "early": ("dynamicmr-early", early),
    "fig-4.11": ("dynamicmr-borrowed", borrowed),
    "fig-4.12": ("dynamicmr-sepb", sepb),
    "fig-4.12-b": ("dynamicmr-sepb", each_job),
    "fig-4.13": ("dynamicmr-locality", locality),
    "fig-4.14": ("dynamicmr-benchmarks", benchmarks),
    "fig-4.15": ("dynamicmr-whole", whole),
    "static": ("dynamicmr-static", other_slots),
    "fig-4.17": ("dynamicmr-yarn", yarn),
    "fig-4.17-late": ("dynamicmr-late", late),
    "outside": ("dynamicmr-outside", outside),
    "outside-real": ("dynamicmr-outside-real", outside_real),
    "fig-3.10": ("estimator", errors),
    "fig-3.10-orders": ("estimator", orders),
    "table-3.4": ("mrorder-intervals", intervals),
    "fig-3.9": ("mrorder-online", online),
    "mrorder": ("mrorder", in_front),
}
