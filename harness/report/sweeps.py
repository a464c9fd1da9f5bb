"""Charts over a setting that runs differ in (control period, horizon, a user's own): means over seeds, intervals.

Only runs that belong together make a chart: of one experiment (by its hash), on one backend, under one policy.
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

#: An experiment's name and hash, and a backend.
Place = tuple[str, str, str]
#: How the axis of a setting is called, where its name does not say it.
LABELS: Mapping[str, str] = {
    "period_s": "control period (s)",
    "t_wait": "T_wait (s)",
    "half_life": "half-life (s)",
    "round": "round (s)",
    "rho": "\u03c1",
    "n_task": "n_task",
}
#: A setting with fewer values than this makes no curve.
FEWEST_VALUES = 3
#: Figures of another kind of runs that are drawn over two settings.
MOST_MEASURES = 4
#: Curves in one chart.
MOST_CURVES = 8


@dataclass(frozen=True, slots=True)
class Point:
    """One run's place in a sweep: where on the axis, on which curve, and the run."""

    x: float
    curve: str
    run: Run


def settings_of(run: Run) -> dict[str, float]:
    """A run's settings that are finite numbers, the control period included when it acts from outside."""
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
    """How the axis of a setting is called: its name in words, with the unit that it ends in."""
    words = f"{name[:-2]} (s)" if name.endswith("_s") else name
    return LABELS.get(name, words.replace("_", " "))


def loss_ratio(run: Run, runs: Sequence[Run]) -> float | None:
    """For a run from outside: its loss integral over that of its counterpart inside; else None."""
    inside = run.inside_of(runs)
    reference = inside.number("sharing_loss_integral") if inside is not None else 0.0
    return run.number("sharing_loss_integral") / reference if reference > 0 else None


def longest_wait(run: Run) -> float | None:
    """The longest time that any of the run's queues waited for a container, in seconds."""
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
    """One curve for each combination of the other settings: at each value of the axis the mean over the seeds."""
    cells: dict[str, dict[float, list[float]]] = {}
    for point in points:
        value = value_of(point.run)
        if value is not None:
            cells.setdefault(point.curve, {}).setdefault(point.x, []).append(value)
    return {name: _mean_curve(at) for name, at in cells.items() if len(at) >= FEWEST_VALUES}


def _mean_curve(at: Mapping[float, Sequence[float]]) -> Curve:
    """Means at each x, with 95 % intervals where some x has several values; NaN where one has not."""
    x = sorted(at)
    mean = np.array([math.fsum(at[one]) / len(at[one]) for one in x])
    half = np.array([half_width_95(at[one]) if len(at[one]) > 1 else math.nan for one in x])
    several = bool(np.isfinite(half).any())
    return Curve(np.array(x), mean, mean - half if several else None, mean + half if several else None)


def sweep_groups(runs: Sequence[Run]) -> list[Group]:
    """For each policy and setting with three values or more among the runs: loss, last loss, longest wait over it."""
    groups: list[Group] = []
    for own in belonging_together(runs):
        for axis in dict.fromkeys(name for run in own.runs for name in settings_of(run)):
            group = _group(own.runs, own.measures, own.policy, axis, label_of(axis))
            if group is not None:
                groups.append(own.told_apart(group, len(groups)))
    return groups


@dataclass(frozen=True, slots=True)
class Measure:
    """A figure of a run that is drawn over its settings."""

    title: str
    #: The quantity and its unit.
    label: str
    value_of: Callable[[Run], float | None]
    levels: Sequence[tuple[float, str]] = ()


@dataclass(frozen=True, slots=True)
class Together:
    """Runs that belong together: of one experiment, on one backend, under one policy."""

    policy: str
    #: What tells them from the others of the page, as the end of a title; '' where there are no others.
    where: str
    runs: Sequence[Run]
    measures: Sequence[Measure]

    def told_apart(self, group: Group, number: int) -> Group:
        """The group with a name and a title that no other experiment's has."""
        if not self.where:
            return group
        return replace(group, ident=f"{group.ident}-{number}", title=group.title + self.where)


def belonging_together(runs: Sequence[Run]) -> Iterator[Together]:
    """The runs that count, by policy, experiment and backend, in their order."""
    counted = [run for run in runs if run.counts]
    places = {_place(run) for run in counted}
    measures = _of_kind(counted) if any(run.kind is not None for run in counted) else _of_yarn(counted)
    for policy, place in dict.fromkeys((_policy(run), _place(run)) for run in counted):
        chosen = [run for run in counted if (_policy(run), _place(run)) == (policy, place)]
        yield Together(policy, _told_apart(place, places), chosen, measures)


def _of_kind(runs: Sequence[Run]) -> Sequence[Measure]:
    """Of runs of another kind: the figures of the whole run that have a better side, and differ between the runs."""
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
        Measure("loss integral", "loss integral (s)", lambda run: run.figure("sharing_loss_integral")),
        Measure(
            "loss integral against inside",
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
    return "-".join([f"{run.policy}@{run.mode}", *ways])


def _place(run: Run) -> Place:
    """The experiment's name and hash, and where it ran."""
    return run.experiment, run.hash, run.backend


def _told_apart(place: Place, among: Collection[Place]) -> str:
    """What of a place tells it from the others, as the end of a title."""
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
    return Group(
        f"sweep-{name.replace('@', '-')}-{axis}",
        f"{name} over {label}",
        f"Each mark is one value of the setting.{_means([point for point in points if point.curve in names])}",
        Legend([(names_of(curve), k) for k, curve in enumerate(names)]),
        charts,
    )


def _means(points: Sequence[Point]) -> str:
    """Of how many seeds (and runs, where these are more) a mark is the mean, if of several."""
    marks: dict[tuple[str, float], list[Run]] = {}
    for point in points:
        marks.setdefault((point.curve, point.x), []).append(point.run)
    runs = [len(own) for own in marks.values()]
    seeds = [len({run.seed for run in own}) for own in marks.values()]
    if max(runs) == 1:
        return ""
    text = f" Means over {range_text(seeds)} seed{'s' if max(seeds) > 1 else ''} a mark"
    return f"{text}." if runs == seeds else f"{text}, of {range_text(runs)} runs."


def names_of(curve: str) -> str:
    """A curve's name: the other settings, or what is left to say when there are none."""
    return curve or "all other settings at their defaults"
