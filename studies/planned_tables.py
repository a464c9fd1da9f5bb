"""The tables of docs/figures-plan.md, from the record of studies.planned. It measures nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from harness.predict.changes import TIMES
from studies.planned_loads import BEFORE, LOADS
from studies.planned_measure import counted as tally
from studies.tables import Values, markdown


def _name(path: str) -> str:
    return path.removeprefix("root.")


def changes(values: Values) -> str:
    """Each change, and how far the replay before it was off the recording."""
    rows = []
    for name, found in values["loads"].items():
        load = LOADS[name]
        parts = [f"{_name(path)} {BEFORE[path]:g} to {percent:g} %" for path, percent in load.after.items()]
        parts += [f"{_name(path)} at most {percent:g} %" for path, percent in load.caps_after.items()]
        off = found["reproduction_error"]
        rows.append((name, load.why, ", ".join(parts), f"{100 * off:.1f} %"))
    return markdown(("load", "what it is", "change", "replay off the recording"), rows)


def figures(values: Values) -> str:
    """By load, queue and figure: before, the prediction, and what happened."""
    rows = [
        (
            name,
            _name(queue),
            TIMES[figure],
            f"{one['before_s']:.1f} ({one['replayed_s']:.1f})",
            f"{one['predicted_s']:.1f} ({one['band_s'][0]:.1f} to {one['band_s'][1]:.1f})",
            f"{one['after_s']:.1f}{'' if one['in_band'] else ' (outside)'}",
            one["predicted"],
            _happened(one),
        )
        for name, load in values["loads"].items()
        for queue, row in load["queues"].items()
        for figure, one in row["figures"].items()
    ]
    head = ("load", "queue", "figure", "before, s (replayed)", "predicted, s (band)", "after, s")
    return markdown((*head, "predicted", "happened"), rows)


def _happened(one: Mapping[str, Any]) -> str:
    if one["predicted"] == "unsure" or one["right"]:
        return str(one["happened"])
    return f"**{one['happened']}**" if one["opposite"] else f"{one['happened']} (differs)"


def counted(values: Values) -> str:
    """How many words and bands were right, by load and by figure."""
    rows = []
    for name, load in values["loads"].items():
        found = tally(one for row in load["queues"].values() for one in row["figures"].values())
        rows.append((f"load {name}", *_counts(found)))
    rows += [(TIMES[figure], *_counts(found)) for figure, found in values["by_figure"].items()]
    rows.append(("all", *_counts(values)))
    return markdown(("", "figures", "unsure", "words right", "opposite", "in the band"), rows)


def _counts(found: Mapping[str, Any]) -> tuple[Any, ...]:
    return (
        found["figures"],
        found["unsure"],
        f"{found['words_right']} of {found['words']}",
        found["opposite"],
        f"{found['in_band']} of {found['figures']}",
    )


def usage(values: Values) -> str:
    """What the ResourceManager counted in each run, and what the statement says."""
    rows = []
    for name, load in values["loads"].items():
        for side, queues in load["usage"].items():
            counted_mb_s = sum(one["rm_mb_s"] for one in queues.values())
            said_mb_s = sum(one["usage_mb_s"] for one in queues.values())
            most = max(abs(one["rm_mb_s"] - one["usage_mb_s"]) for one in queues.values())
            nodes = ", ".join(load["nodes"][side]) or "none"
            rows.append((name, side, f"{counted_mb_s:,}", f"{said_mb_s:,}", most, nodes))
    head = ("load", "change", "counted, MB s", "usage, MB s", "most off of a queue", "nodes in the recording")
    return markdown(head, rows)


def machine(values: Values) -> str:
    """The load average of the machine during each run."""
    rows = [
        (name, side, f"{found['mean']:.1f}", f"{found['most']:.1f}")
        for name, load in values["loads"].items()
        for side, found in load["machine"].items()
    ]
    return markdown(("load", "change", "load average, mean", "most"), rows)


TABLES: dict[str, tuple[str, Callable[[Values], str]]] = {
    "planned-changes": ("planned", changes),
    "planned-figures": ("planned", figures),
    "planned-counted": ("planned", counted),
    "planned-usage": ("planned", usage),
    "planned-machine": ("planned", machine),
}
