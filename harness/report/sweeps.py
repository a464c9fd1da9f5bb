"""Charts over a setting in which runs differ (control period, horizon, a user's own): means over seeds, intervals.

Only runs of one experiment (by hash), on one backend and under one policy are combined in a chart.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from harness.base.stats import half_width_95
from harness.report.curves import Curve
from harness.report.data import Run
from harness.report.figures import Group, Legend
from harness.report.svg import Line, LineChart
from harness.report.variants import range_text
from harness.results.catalogue import Key, in_order
from harness.results.runs import policy_label

#: An experiment's name and hash, and a backend.
Place = tuple[str, str, str]
#: The label of a setting's axis, if its name is not clear enough.
LABELS: Mapping[str, str] = {
    "period_s": "control period (s)",
    "t_wait": "T_wait (s)",
    "half_life": "half-life (s)",
    "round": "round (s)",
    "rho": "\u03c1",
    "n_task": "n_task",
}
#: A setting with fewer values makes no curve.
FEWEST_VALUES = 3
#: Maximum number of metrics of another experiment type that are drawn over two settings.
MOST_MEASURES = 4
#: Maximum number of curves in one chart.
MOST_CURVES = 8


@dataclass(frozen=True, slots=True)
class Point:
    """One run in a sweep: its position on the axis, its curve, and the run."""

    x: float
    curve: str
    run: Run


def settings_of(run: Run) -> dict[str, float]:
    """Return a run's settings that are finite numbers, including the control period if it acts from outside."""
    given = dict(run.settings)
    policy = run.info.get("policy")
    if run.mode == "outside" and isinstance(policy, Mapping):
        given["period_s"] = policy.get("period_s")
    found = {}
    for name, value in given.items():
        try:
            number = float(value)
        except (TypeError, ValueError, OverflowError):
            continue
        if math.isfinite(number) and not isinstance(value, bool):
            found[name] = number
    return found


def label_of(name: str) -> str:
    """Return the label of a setting's axis: its name in words, with the unit in which it ends."""
    words = f"{name[:-2]} (s)" if name.endswith("_s") else name
    return LABELS.get(name, words.replace("_", " "))


def loss_ratio(run: Run, runs: Sequence[Run]) -> float | None:
    """Return the loss integral of a run from outside relative to its counterpart inside; otherwise None."""
    inside = run.inside_of(runs)
    reference = inside.number("sharing_loss_integral") if inside is not None else 0.0
    return run.number("sharing_loss_integral") / reference if reference > 0 else None


def longest_wait(run: Run) -> float | None:
    """Return the longest time that any of the run's queues waited for a container, in seconds."""
    return max(run.of_queues("max_wait_s").values(), default=None)


def _points(runs: Sequence[Run], axis: str) -> list[Point]:
    found = []
    for run in runs:
        values = settings_of(run)
        if axis in values:
            given = {name: str(value) for name, value in run.settings.items()}
            given |= {name: f"{value:g}" for name, value in values.items()}
            others = ", ".join(f"{name} {text}" for name, text in sorted(given.items()) if name != axis)
            found.append(Point(values[axis], others, run))
    return found


def _curves(points: Sequence[Point], value_of: Callable[[Run], float | None]) -> dict[str, Curve]:
    """Return one curve for each combination of the other settings: the mean over seeds at each value of the axis."""
    cells: dict[str, dict[float, list[float]]] = {}
    for point in points:
        value = value_of(point.run)
        if value is not None:
            cells.setdefault(point.curve, {}).setdefault(point.x, []).append(value)
    return {name: _mean_curve(at) for name, at in cells.items() if len(at) >= FEWEST_VALUES}


def _mean_curve(at: Mapping[float, Sequence[float]]) -> Curve:
    """Return means at each x, with 95 % intervals if some x has several values; NaN where there is none."""
    x = sorted(at)
    mean = np.array([math.fsum(at[one]) / len(at[one]) for one in x])
    half = np.array([half_width_95(at[one]) if len(at[one]) > 1 else math.nan for one in x])
    several = bool(np.isfinite(half).any())
    return Curve(np.array(x), mean, mean - half if several else None, mean + half if several else None)


def sweep_groups(runs: Sequence[Run]) -> list[Group]:
    """Return charts for each policy and each setting with at least `FEWEST_VALUES` values, one for each metric."""
    groups: list[Group] = []
    for own in belonging_together(runs):
        for axis in dict.fromkeys(name for run in own.runs for name in settings_of(run)):
            group = _group(own.runs, own.measures, own.policy, axis, label_of(axis))
            if group is not None:
                groups.append(own.told_apart(group, len(groups)))
    return groups


@dataclass(frozen=True, slots=True)
class Measure:
    """A metric of a run that is drawn over its settings."""

    title: str
    #: The quantity and its unit.
    label: str
    value_of: Callable[[Run], float | None]
    levels: Sequence[tuple[float, str]] = ()


@dataclass(frozen=True, slots=True)
class Together:
    """Runs of one experiment, on one backend, under one policy."""

    policy: str
    #: What distinguishes them from the page's other groups, as the end of a title; '' if there are no others.
    where: str
    runs: Sequence[Run]
    measures: Sequence[Measure]

    def told_apart(self, group: Group, number: int) -> Group:
        """Return the group with a name and a title that are unique among the experiments."""
        if not self.where:
            return group
        return replace(group, ident=f"{group.ident}-{number}", title=group.title + self.where)


def belonging_together(runs: Sequence[Run]) -> Iterator[Together]:
    """Group the valid runs by policy, experiment and backend, in order."""
    counted = [run for run in runs if run.counts]
    places = {_place(run) for run in counted}
    measures = _of_kind(counted) if any(run.kind is not None for run in counted) else _of_yarn(counted)
    for policy, place in dict.fromkeys((_policy(run), _place(run)) for run in counted):
        chosen = [run for run in counted if (_policy(run), _place(run)) == (policy, place)]
        yield Together(policy, _told_apart(place, places), chosen, measures)


def _of_kind(runs: Sequence[Run]) -> Sequence[Measure]:
    """Return, for other experiment types, whole-run metrics with a better direction that differ between runs."""
    found: dict[Key, set[float]] = {}
    for run in runs:
        for key, value in run.values.items():
            if key.queue is None and key.metric.better != "neither":
                found.setdefault(key, set()).add(value)
    differing = in_order(key for key, values in found.items() if len(values) > 1)
    return [
        Measure(
            key.title(),
            f"{key.title()} ({key.metric.unit})" if key.metric.unit else key.title(),
            partial(_value, key),
        )
        for key in differing[:MOST_MEASURES]
    ]


def _value(key: Key, run: Run) -> float | None:
    return run.values.get(key)


def _of_yarn(counted: Sequence[Run]) -> Sequence[Measure]:
    return (
        Measure("sharing loss", "sharing loss (s)", lambda run: run.figure("sharing_loss_integral")),
        Measure(
            "sharing loss against inside",
            "loss / loss inside",
            lambda run: loss_ratio(run, counted),
            ((1.0, "the same policy in the scheduler, decided at every allocation"),),
        ),
        Measure("last loss", "last loss (s)", lambda run: run.figure("last_loss_s")),
        Measure("longest wait of any queue", "longest wait (s)", longest_wait),
    )


def _policy(run: Run) -> str:
    policy = run.info.get("policy")
    ways = [name for name in ("in_rm", "poll") if isinstance(policy, Mapping) and policy.get(name)]
    return "-".join([f"{policy_label(run.policy)}@{run.mode}", *ways])


def _place(run: Run) -> Place:
    """Return the experiment's name and hash, and the backend."""
    return run.experiment, run.hash, run.backend


def _told_apart(place: Place, among: Collection[Place]) -> str:
    """Return what distinguishes a place from the others, as the end of a title."""
    name, digest, backend = place
    said = [name] if len({one[0] for one in among}) > 1 else []
    if len({one[1] for one in among if one[0] == name}) > 1:
        said = [f"{name} {digest[:8]}"]
    said += [backend] if len({one[2] for one in among}) > 1 else []
    return "".join(f", {text}" for text in said)


def _group(chosen: Sequence[Run], measures: Sequence[Measure], name: str, axis: str, label: str) -> Group | None:
    points = _points(chosen, axis)
    charts: list[LineChart] = []
    names: list[str] = []
    for measure in measures:
        curves = _curves(points, measure.value_of)
        if not curves:
            continue
        names = list(dict.fromkeys([*names, *curves]))[:MOST_CURVES]
        lines = [Line(names_of(curve), curves[curve], k) for k, curve in enumerate(names) if curve in curves]
        xs = np.concatenate([line.curve.x for line in lines])
        log = bool(xs.min() > 0 and xs.max() / xs.min() >= 20)
        charts.append(
            LineChart(
                measure.title,
                label,
                measure.label,
                lines,
                levels=measure.levels,
                x_scale="log" if log else "linear",
                marks=True,
            )
        )
    if not charts:
        return None
    drawn = [point for point in points if point.curve in names]
    return Group(
        f"sweep-{name.replace('@', '-')}-{axis}",
        f"{name} over {label}",
        f"Each mark is one value of the setting{_fixed(names)}.{_means(drawn)}",
        # A single curve needs no legend.
        Legend([(names_of(curve), k) for k, curve in enumerate(names)] if len(names) > 1 else []),
        charts,
    )


def _means(points: Sequence[Point]) -> str:
    """Describe of how many seeds (and runs, if more) a mark is the mean, if of several."""
    marks: dict[tuple[str, float], list[Run]] = {}
    for point in points:
        marks.setdefault((point.curve, point.x), []).append(point.run)
    runs = [len(own) for own in marks.values()]
    seeds = [len({run.seed for run in own}) for own in marks.values()]
    if max(runs) == 1:
        return ""
    text = f" Means over {range_text(seeds)} seed{'s' if max(seeds) > 1 else ''} a mark"
    return f"{text}." if runs == seeds else f"{text}, of {range_text(runs)} runs."


def _fixed(curves: Sequence[str]) -> str:
    """Return the other settings of a single curve, which has no legend, as a part of a sentence."""
    return f", with {curves[0]}" if len(curves) == 1 and curves[0] else ""


def names_of(curve: str) -> str:
    """Return a curve's name: the other settings, or a substitute if there are none."""
    return curve or "all other settings at their defaults"
