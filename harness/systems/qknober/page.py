"""The report page of ``kind: vectors`` (QKnober, section 7.3): charts over the knob, over users and over time."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from harness.report.curves import Curve, bucket_means
from harness.report.data import Run, read_table
from harness.report.figures import BUCKETS, Group, Legend, shared
from harness.report.findings import Case, Finding, find, finding, verdict
from harness.report.page import Content, part_of
from harness.report.svg import Line, LineChart
from harness.report.tables import figure_text
from harness.report.tools import bars, first_seed, tables_of
from harness.report.variants import Variant, number_at, variants_of
from harness.systems.qknober.experiment import KNOBS, MEASURES

#: The paper's order of the rules, slowest first.
ORDER = ("static", "drf", "tetris", "qknober")
#: Two makespans count as equal if they differ by at most this fraction.
EQUAL = 0.001
SOURCES: tuple[tuple[str, str], ...] = (
    (
        "Soft fairness degree",
        "Tang, Yu, Li: Fairness-Efficiency Scheduling for Cloud Computing with Soft Fairness Guarantees (QKnober), eq. "
        "(12): the largest s_i / w_i (dominant share over weight, weights summing to 1) above the lowest of a user who "
        "waits; the mean over the time in which somebody waits. Less is fairer.",
    ),
    (
        "By Theorem 1",
        "The mean of the bound theta over the same time, from the users' mean demands at each update. A bound for "
        "tasks that can be divided and taken back; tasks here run to their ends.",
    ),
    (
        "The load",
        "SYNTHETIC, of the shape of Google's 2011 trace, unless the experiment names the trace itself. "
        "The reference page on vectors of yarnfair's documentation lists what it assumes.",
    ),
    ("Curves", "allocations.parquet of each run directory, a sample every sample_s of virtual time."),
)


@dataclass(frozen=True, slots=True)
class Placed:
    """A variant with the values by which charts order it: rule, knob, number of users."""

    variant: Variant
    policy: str
    knob: float | None
    users: int
    remaining: float = 0.0

    @property
    def rule(self) -> str:
        """The label of a curve over users: the rule with all its settings."""
        knob = self.policy if self.knob is None else f"{self.policy}, {KNOBS[self.policy]} = {self.knob:g}"
        return f"{knob}, remaining = {self.remaining:g}" if self.remaining else knob

    @property
    def kind(self) -> str:
        """The label of a curve over the knob: the rule without its knob."""
        return f"{self.policy}, remaining = {self.remaining:g}" if self.remaining else self.policy

    def mean(self, *keys: str) -> float | None:
        """Return the mean of a figure over the variant's runs, or None if it is unknown."""
        return self.variant.mean(*keys)


def placed(runs: Sequence[Run]) -> list[Placed]:
    """Return the variants sorted by number of users, then by the paper's order of rules, then by knob."""
    found = []
    for variant in variants_of(runs):
        run = variant.runs[0]
        knob = variant.setting(KNOBS.get(run.policy, ""))
        remaining = variant.setting("remaining") or 0.0
        found.append(Placed(variant, run.policy, knob, int(number_at(run.info, "users") or 0), remaining))
    return sorted(
        found,
        key=lambda p: (p.users, ORDER.index(p.policy) if p.policy in ORDER else 9, p.remaining, p.knob or 0.0),
    )


def _telling(all_placed: Sequence[Placed]) -> list[Placed]:
    """Return the variants for the charts over time.

    These have the smallest number of users and, of each rule with many knobs, the smallest, a middle and the largest
    knob.
    """
    fewest = [p for p in all_placed if p.users == all_placed[0].users]
    found = []
    for kind in dict.fromkeys(p.kind for p in fewest):
        own = [p for p in fewest if p.kind == kind]
        found += own if len(own) <= 3 else [own[0], own[len(own) // 2], own[-1]]
    return found


def _resources(runs: Sequence[Run]) -> list[str]:
    return list(dict.fromkeys(name for run in runs for name in run.summary.get("utilisation") or {}))


def content(runs: Sequence[Run]) -> Content:
    """Return the report page of ``kind: vectors``."""
    all_placed, resources = placed(runs), _resources(runs)
    variants = [p.variant for p in all_placed]
    tables = tables_of("Each rule over the whole run", "rule", variants, MEASURES)
    drawn, said = first_seed([run for p in _telling(all_placed) for run in p.variant.runs])
    if not said and len(drawn) < len(all_placed):
        said = "Courses over time are drawn of the least, a middle and the greatest knob. Tables have all."
    parts = [
        part_of("knob", "Over the knob", _knob_groups(all_placed)),
        part_of("users", "Over the number of users", _user_groups(all_placed)),
        part_of("utilisation", "Utilisation", _utilisation_groups(all_placed, resources)),
        part_of("time", "Over time", _time_groups(drawn, resources)),
    ]
    return Content(tables, [part for part in parts if part.groups], said, SOURCES)


def _curve(points: Sequence[tuple[float, float | None]]) -> Curve | None:
    known = [(x, y) for x, y in points if y is not None and math.isfinite(y)]
    return Curve(np.array([x for x, _ in known]), np.array([y for _, y in known])) if len(known) > 1 else None


def _knob_groups(all_placed: Sequence[Placed]) -> list[Group]:
    """Return the charts of Fig. 8 by knob: speed-up over QKnober at knob 1, measured and estimated soft fairness."""
    charts: list[LineChart] = []
    names: dict[str, int] = {}
    of: dict[tuple[str, int], list[Placed]] = {}
    for p in all_placed:
        if p.knob is not None:
            of.setdefault((p.kind, p.users), []).append(p)
    of = {key: own for key, own in of.items() if len(own) > 2}
    several = len({users for _, users in of}) > 1

    def lines(value_of: Callable[[Placed, Sequence[Placed]], float | None], suffix: str = "") -> list[Line]:
        found = []
        for (kind, users), own in of.items():
            curve = _curve([(p.knob or 0.0, value_of(p, own)) for p in own])
            if curve is not None:
                name = kind + (f", {users} users" if several else "") + suffix
                found.append(Line(name, curve, names.setdefault(name, len(names))))
        return found

    def over_one(p: Placed, own: Sequence[Placed]) -> float | None:
        reference = next((q.mean("makespan_s") for q in own if q.knob == 1), None)
        makespan = p.mean("makespan_s")
        return reference / makespan if reference and makespan else None

    speed = lines(over_one)
    fair = [*lines(lambda p, own: p.mean("soft_fairness")), *lines(lambda p, own: p.mean("theta"), " (Theorem 1)")]
    if speed:
        level = ((1.0, "knob 1"),)
        charts.append(
            LineChart("speed-up", "knob", "speed-up over knob 1", speed, levels=level, marks=True, y_from_zero=False)
        )
    if fair:
        charts.append(LineChart("soft fairness", "knob", "soft fairness degree", fair, marks=True))
    if not charts:
        return []
    text = "Speed-up of the makespan over the knob 1, and how unfair it is (Fig. 8). Less is fairer."
    legend = Legend(list(names.items()))
    return [Group("knob-curves", "Efficiency and fairness over the knob", text, legend, charts)]


def _user_groups(all_placed: Sequence[Placed]) -> list[Group]:
    """Return the charts of Fig. 9: speed-up over static partitioning, soft fairness and wait, by number of users."""
    rules = list(dict.fromkeys(p.rule for p in all_placed))
    charts = []
    for title, label, key, levels in (
        ("speed-up", "speed-up over static", "speedup_over_static", ((1.0, "static partition"),)),
        ("soft fairness", "soft fairness degree", "soft_fairness", ()),
        ("wait", "mean wait of a task (s)", "mean_wait_s", ()),
    ):
        lines = []
        for k, rule in enumerate(rules[:8]):
            curve = _curve([(float(p.users), p.mean(key)) for p in all_placed if p.rule == rule])
            if curve is not None:
                lines.append(Line(rule, curve, k))
        if lines:
            charts.append(LineChart(title, "users", label, lines, levels=levels, marks=True, y_from_zero=False))
    if not charts:
        return []
    text = "Each mark is one number of users on the same servers, a mean over the seeds (Fig. 9)."
    return [
        Group(
            "user-curves",
            "The rules over the number of users",
            text,
            Legend([(r, k) for k, r in enumerate(rules[:8])]),
            charts,
        )
    ]


def _utilisation_groups(all_placed: Sequence[Placed], resources: Sequence[str]) -> list[Group]:
    """Return the charts of Figs. 7b and 7c: mean utilisation of each resource."""
    charts, legend = [], Legend([])
    for users in dict.fromkeys(p.users for p in all_placed):
        own = [p.variant for p in _telling([p for p in all_placed if p.users == users])]

        def part(variant: Variant, name: str) -> float | None:
            value = variant.mean("utilisation", name)
            return value * 100 if value is not None else None

        made = bars(f"{users} users", "utilisation (%)", own, resources, part, digits=0)
        if made is not None:
            charts.append(made[0])
            legend = made[1] if len(made[1].names) > len(legend.names) else legend
    if len(charts) > 8 or not charts:
        return []
    text = "Time means until the end of the last task (Figs. 7b and 7c)."
    return [Group("utilisation-bars", "Utilisation of each resource", text, legend, charts)]


def _time_groups(runs: Sequence[Run], resources: Sequence[str]) -> list[Group]:
    used: list[LineChart] = []
    fair: list[Line] = []
    waiting: list[Line] = []
    spread: list[LineChart] = []
    for number, run in enumerate(runs):
        table = read_table(run.path / "allocations.parquet", ("time_s", "soft_fairness", "waiting_tasks"))
        if table is None or len(table) < 2:
            continue
        time_s = table["time_s"].to_numpy(dtype=np.float64) / 3600

        def line(name: str, column: str, style: int, scale: float = 1.0) -> Line:
            return Line(name, bucket_means(time_s, table[column].to_numpy(dtype=np.float64) * scale, BUCKETS)[0], style)  # noqa: B023

        own = [line(name, f"used_{name}", k, 100.0) for k, name in enumerate(resources) if f"used_{name}" in table]
        used.append(LineChart(run.label, "time (h)", "in use (%)", own))
        fair.append(line(run.label, "soft_fairness", number))
        waiting.append(line(run.label, "waiting_tasks", number))
        shares = [(f"share_p{p}", text) for p, text in ((100, "greatest"), (50, "median"), (0, "least"))]
        if all(column in table for column, _ in shares):
            lines = [line(text, column, k, 100.0) for k, (column, text) in enumerate(shares)]
            spread.append(LineChart(run.label, "time (h)", "dominant share (%)", lines))
    if not used:
        return []
    rules = Legend([(line.name, line.style) for line in fair])
    both = [
        LineChart("soft fairness degree", "time (h)", "soft fairness degree", fair),
        LineChart("tasks waiting", "time (h)", "tasks waiting", waiting),
    ]
    return [
        Group("fair-time", "Soft fairness and waiting", "One line a run; 0 while nobody waits.", rules, both),
        Group(
            "used-time",
            "Resources in use",
            "Of all servers together.",
            Legend(list(zip(resources, range(9), strict=False))),
            shared(used, y_range=(0.0, 100.0)),
        ),
        Group(
            "share-time",
            "Dominant shares of the users",
            "The greatest, the median and the least of all users' dominant shares.",
            Legend([("greatest", 0), ("median", 1), ("least", 2)]),
            shared(spread),
        ),
    ]


# --- findings ---------------------------------------------------------------------------------------------------------


@finding(
    "The knob trades fairness for speed",
    "QKnober section 7.3.1, Fig. 8",
    "26.7 % faster at a low knob than at 1, with a soft fairness degree of 4.26 against 2.71.",
    "at the lowest knob the makespan is shorter, and the soft fairness degree higher, than at 1",
)
def _trade(runs: Sequence[Run]) -> Iterator[Case]:
    all_placed = placed(runs)
    for users in dict.fromkeys(p.users for p in all_placed):
        own = [p for p in all_placed if p.users == users and p.policy == "qknober" and p.knob is not None]
        if len(own) < 2 or own[-1].knob != 1:
            continue
        low, high = own[0], own[-1]
        makespans = [p.mean("makespan_s") or math.nan for p in (low, high)]
        degrees = [p.mean("soft_fairness") or 0.0 for p in (low, high)]
        yield (
            makespans[0] < makespans[1],
            f"{users} users, rho {low.knob:g} against 1: {(makespans[1] / makespans[0] - 1) * 100:.1f} % faster, soft "
            f"fairness degree {degrees[0]:.2f} against {degrees[1]:.2f}",
        )
        yield degrees[0] > degrees[1], ""


def _order(runs: Sequence[Run]) -> Finding | None:
    all_placed = placed(runs)
    holds, evidence = [], []
    knobs = {p.knob for p in all_placed if p.policy == "qknober"} & {p.knob for p in all_placed if p.policy == "tetris"}
    if not knobs:
        return None
    knob = min(knobs, key=lambda k: abs((k or 0.0) - 0.2))
    for users in dict.fromkeys(p.users for p in all_placed):
        # In the paper Tetris does not weigh remaining work.
        here = [p for p in all_placed if p.users == users and p.knob in (None, knob) and not p.remaining]
        own = {p.policy: p.mean("makespan_s") for p in here}
        times = [(name, own[name]) for name in ORDER if own.get(name)]
        pairs = list(itertools.pairwise(times))
        if len(times) < 3:
            continue
        holds += [(later or 0) <= (earlier or 0) * (1 + EQUAL) for (_, earlier), (_, later) in pairs]
        evidence.append(f"{users} users: " + ", ".join(f"{name} {figure_text(value)} s" for name, value in times))
    if not holds:
        return None
    return Finding(
        "Static is slowest, then DRF, Tetris, QKnober",
        "QKnober section 7.3.2, Fig. 9",
        "Sharing is faster than static partitioning, Tetris faster than DRF, QKnober faster than Tetris throughout.",
        f"the makespans (knob {knob or 0:g}) come in this order, for each number of users",
        verdict(holds),
        tuple(evidence),
    )


@finding(
    "With more users sharing gains less",
    "QKnober section 7.3.2, Fig. 9",
    "The speed-up over static partitioning falls as there are more users: from 1.21 at 100 to 1.10 at 600.",
    "the speed-up with the most users is below that with the fewest, for every rule",
)
def _trend(runs: Sequence[Run]) -> Iterator[Case]:
    all_placed = placed(runs)
    for rule in dict.fromkeys(p.rule for p in all_placed if p.policy != "static"):
        own = [(p.users, y) for p in all_placed if p.rule == rule and (y := p.mean("speedup_over_static")) is not None]
        if len(own) > 2:
            yield own[0][1] > own[-1][1], f"{rule}: " + ", ".join(f"{y:.3f} ({users} users)" for users, y in own)


def findings(runs: Sequence[Run]) -> list[Finding]:
    """Return the findings of section 7.3: the trade-off of the knob, the order of the rules, the trend over users."""
    return find(runs, (_trade, _order, _trend))
