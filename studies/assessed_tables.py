"""The tables of docs/figures-assess.md, from the record of studies.assessed. It measures nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from studies.tables import Values, markdown


def _percent(part: float) -> str:
    return f"{100 * part:+.1f} %"


def _range(band: list[float]) -> str:
    return f"{100 * band[0]:+.0f} to {100 * band[1]:+.0f} %"


def _name(path: str) -> str:
    return path.removeprefix("root.")


def answers(values: Values) -> str:
    """What `assess` said of each load, and how far its replay was off the recording."""
    rows = [
        (
            name,
            load["why"],
            load["expected"],
            load["verdict"],
            load["recommended"] or "nothing",
            f"{100 * load['reproduction_error']:.1f} %",
        )
        for name, load in values["loads"].items()
    ]
    return markdown(("load", "what it is", "written down before", "answer", "recommended", "reproduction error"), rows)


def predictions(values: Values) -> str:
    """By load and queue the predicted change and time, and what happened."""
    rows = [
        (
            name,
            _name(queue),
            f"{row['before_s']:.1f}",
            f"{_percent(row['predicted_change'])} ({_range(row['predicted_change_band'])})",
            _percent(row["change"]),
            _direction(load["verdict"], right=row["direction_right"]),
            f"{row['predicted_s']:.1f}",
            ", ".join(f"{took:.1f}" for took in row["took_s"]),
            _off(load["verdict"], row),
        )
        for name, load in values["loads"].items()
        for queue, row in load["queues"].items()
    ]
    return markdown(
        ("load", "queue", "fair, s", "predicted change", "change", "direction", "predicted, s", "took, s", "off"), rows
    )


def _direction(verdict: str, *, right: bool) -> str:
    if verdict == "unsure":
        return "none given" + ("" if right else ", and would have been wrong")
    return "yes" if right else "**no**"


def _off(verdict: str, row: Mapping[str, Any]) -> str:
    off = f"{100 * abs(row['off']):.1f} %"
    return f"({off})" if verdict == "unsure" else off + ("" if row["within"] else " (**more**)")


def machine(values: Values) -> str:
    """The load average of the machine during each run."""
    rows = [
        (run, f"{found['mean']:.1f}", f"{found['most']:.1f}")
        for load in values["loads"].values()
        for run, found in load["machine"].items()
    ]
    return markdown(("run", "load average, mean", "most"), rows)


def bands(values: Values) -> str:
    """Each run under control in the band of its simulation's phases."""
    rows = [
        (
            run,
            f"{one['jobs_inside']} of {one['jobs']}",
            f"{100 * one['most_outside']:.1f} %",
            ", ".join(_queue(path, row) for path, row in one["queues"].items()),
        )
        for run, one in values["under_control"].items()
    ]
    return markdown(("run", "jobs inside", "furthest outside", "queues: took (band), s"), rows)


def _queue(path: str, row: Mapping[str, Any]) -> str:
    low, high = row["band_s"]
    outside = "" if row["inside"] else f", **{100 * row['beyond']:.1f} % outside**"
    return f"{_name(path)} {row['took_s']:.1f} ({low:.1f} to {high:.1f}{outside})"


TABLES: dict[str, tuple[str, Callable[[Values], str]]] = {
    "assessed-answers": ("assessed", answers),
    "assessed-predictions": ("assessed", predictions),
    "assessed-spark-answers": ("assessed-spark", answers),
    "assessed-spark-predictions": ("assessed-spark", predictions),
    "assessed-machine": ("assessed", machine),
    "assessed-bands": ("assessed", bands),
}
