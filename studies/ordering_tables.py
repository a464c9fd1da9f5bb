"""The tables of docs/figures-ordering.md, from the records of studies.ordering. It measures nothing."""

from __future__ import annotations

from collections.abc import Callable

from studies.seeds import shown
from studies.tables import Values, markdown

#: Table 3.5 of the thesis: makespan ALG, SIM; total completion time ALG, SIM; seconds taken by SIM.
TABLE_3_5 = (
    (45, 45, 45, 45, 0.002),
    (170, 170, 240, 240, 0.003),
    (200, 198, 456, 453, 0.003),
    (338, 324, 799, 796, 0.003),
    (399, 394, 1342, 1274, 0.028),
    (399, 396, 1450, 1363, 0.123),
    (440, 437, 1766, 1736, 0.952),
    (475, 471, 2107, 2050, 9.305),
    (573, 564, 2728, 2596, 97.179),
)


def _above(value: float, best: float) -> str:
    return f"{100 * (value / best - 1):.2f} %"


def table_3_5(values: Values) -> str:
    """Rules against the best order for 1 to 9 jobs, ours and the thesis'."""
    rows = []
    for row, theirs in zip(values["rows"], TABLE_3_5, strict=False):
        makespan, tct = row["makespan"], row["tct"]
        rows.append(
            (
                row["jobs"],
                f"{makespan['greedy_s']:g} / {makespan['best_s']:g}",
                f"{theirs[0]} / {theirs[1]}",
                f"{tct['greedy_s']:g} / {tct['best_s']:g}",
                f"{theirs[2]} / {theirs[3]}",
                f"{makespan['wall_s']:.3f} / {tct['wall_s']:.3f}",
                f"{theirs[4]:g}",
            )
        )
    return markdown(
        (
            "jobs",
            "makespan MK_JR / best, s",
            "thesis",
            "total TCT / best, s",
            "thesis",
            "search takes (makespan / total), s",
            "thesis",
        ),
        rows,
    )


def one_minute(values: Values) -> str:
    """How far the search comes within its limit, from 10 jobs on."""
    rows = []
    for row in values["rows"]:
        if row["jobs"] < 10:
            continue
        cells = [row["jobs"]]
        for objective in ("makespan", "tct"):
            found = row[objective]
            sure = "optimal" if found["proven"] else f"at most {_above(found['best_s'], found['bound_s'])} above"
            cells += [f"{found['greedy_s']:g}", f"{found['best_s']:g}", sure, f"{found['wall_s']:.2f}"]
        rows.append(cells)
    return markdown(("jobs", "MK_JR", "best found", "", "s", "TCT", "best found", "", "s"), rows)


def rules(values: Values) -> str:
    """Each rule's makespan and total completion time above the best order found, and how sure that one is."""
    rows = []
    for objective, key in (("makespan", "makespan_s"), ("tct", "total_completion_time_s")):
        for name, item in values["files"].items():
            best = item[f"best_{objective}"]
            sure = "optimal" if best["proven"] else _above(best["best_s"], best["bound_s"])
            above = [
                _above(item["rules"][rule][key], best["best_s"])
                for rule in ("mk_jr", "mk_tct_jr", "tct", "given", "worst")
            ]
            rows.append((name, objective, f"{best['best_s']:.10g}", sure, *above))
    return markdown(
        ("jobs", "objective", "best found, s", "above the bound", "mk_jr", "mk_tct_jr", "tct", "given", "worst"), rows
    )


def bounds(values: Values) -> str:
    """Fig. 3.6: bounds and makespans over MK_JR's makespan."""
    rows = []
    for name, item in values["files"].items():
        base = item["rules"]["mk_jr"]["makespan_s"]
        rows.append(
            (
                name,
                *(
                    f"{value / base:.4f}"
                    for value in (
                        item["lower_bound_s"],
                        item["rules"]["mk_jr"]["upper_bound_s"],
                        item["rules"]["mk_jr"]["upper_bound_as_printed_s"],
                        item["rules"]["worst"]["makespan_s"],
                        item["rules"]["worst"]["upper_bound_s"],
                        item["rules"]["worst"]["upper_bound_as_printed_s"],
                    )
                ),
            )
        )
    heads = ("jobs", "lower bound", "upper bound of MK_JR", "as printed", "worst", "upper bound of worst", "as printed")
    return markdown(heads, rows)


def speedups(values: Values) -> str:
    """Figs. 3.4 and 3.5: reversed order over the rule's, on the files and over seeds."""
    rows = []
    for name, item in values["files"].items():
        worst = item["rules"]["worst"]
        cells = [name]
        for key in ("makespan_s", "total_completion_time_s"):
            cells += [f"{worst[key] / item['rules'][rule][key]:.3f}" for rule in ("mk_jr", "mk_tct_jr")]
        rows.append(cells)
    for count, spread in values["facebook_over_seeds"].items():
        cells = [f"facebook-{count}, {spread['seeds']} seeds"]
        for what in ("makespan_speedup", "tct_speedup"):
            for rule in ("mk_jr", "mk_tct_jr"):
                item = spread[f"{rule}_{what}"]
                cells.append(f"{item['mean']:.3f} ({item['min']:.3f} to {item['max']:.3f})")
        rows.append(cells)
    return markdown(("jobs", "makespan MK_JR", "makespan MK_TCT_JR", "total MK_JR", "total MK_TCT_JR"), rows)


def variation(values: Values) -> str:
    """Fig. 3.7 at 0, 20 and 40 %."""
    rows = []
    for row in values["rows"]:
        if row["variation_percent"] not in (0, 20, 40):
            continue
        rows.append(
            (
                row["jobs"],
                f"{row['variation_percent']} %",
                *(shown(row[rule]["makespan_s"], ".0f") for rule in ("worst", "mk_jr", "mk_tct_jr")),
                *(shown(row[rule]["makespan_speedup"], ".3f") for rule in ("mk_jr", "mk_tct_jr")),
                *(shown(row[rule]["total_completion_time_speedup"], ".3f") for rule in ("mk_jr", "mk_tct_jr")),
            )
        )
    return markdown(
        (
            "jobs",
            "variation",
            "worst, s",
            "MK_JR, s",
            "MK_TCT_JR, s",
            "speed-up MK_JR",
            "MK_TCT_JR",
            "total MK_JR",
            "MK_TCT_JR",
        ),
        rows,
    )


#: Name -> (record, table).
TABLES: dict[str, tuple[str, Callable[[Values], str]]] = {
    "table-3.5": ("ordering-search", table_3_5),
    "one-minute": ("ordering-search", one_minute),
    "rules": ("ordering-greedy", rules),
    "fig-3.4-3.5": ("ordering-greedy", speedups),
    "fig-3.6": ("ordering-greedy", bounds),
    "fig-3.7": ("ordering-variation", variation),
}
