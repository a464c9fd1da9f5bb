"""What `studies.planned` makes of its runs: each figure of `plan` against what happened, `usage` against the RM."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from statistics import fmean
from typing import Any

from harness.base.errors import InputError
from harness.base.files import read_json
from harness.predict.changes import TIMES, Change
from harness.traces.recorded import read_trace
from studies.planned_loads import LEAVES, LOADS, Load

_CERTAIN = ("sooner", "later", "less", "more", "same")


def measure(folder: Path) -> dict[str, Any]:
    """All loads of a folder. Raises InputError where a run is missing."""
    loads = {name: _load(folder / name, load) for name, load in LOADS.items()}
    rows = [row for load in loads.values() for queue in load["queues"].values() for row in queue["figures"].values()]
    by_figure = {
        name: counted(queue["figures"][name] for load in loads.values() for queue in load["queues"].values())
        for name in TIMES
    }
    return {"loads": loads, **counted(rows), "by_figure": by_figure}


def counted(rows: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """How many words were right, and how many figures after the change lie in their bands."""
    listed = list(rows)
    told = [row for row in listed if row["predicted"] in _CERTAIN]
    moved = [row for row in told if row["predicted"] != "same"]
    return {
        "figures": len(listed),
        "words": len(told),
        "unsure": len(listed) - len(told),
        "words_right": sum(row["right"] for row in told),
        "directions": len(moved),
        "directions_right": sum(row["right"] for row in moved),
        "opposite": sum(row["opposite"] for row in told),
        "in_band": sum(row["in_band"] for row in listed),
    }


def _load(own: Path, load: Load) -> dict[str, Any]:
    for side in ("before", "after"):
        if not (own / side / "apps.json").exists():
            raise InputError(f"no run {side} the change", where=str(own), hint="run it first")
    said = read_json(own / "plan.json")
    real = {side: real_figures(own / side) for side in ("before", "after")}
    queues = {}
    for one in said["queues"]:
        queue = one["queue"]
        if queue not in LEAVES or not one["applications"]:
            continue
        figures = {
            name: judged(
                one[f"{name}_s"], real["before"][queue][name], real["after"][queue][name], said["noticeable"], name
            )
            for name in TIMES
        }
        queues[queue] = {"word": one["word"], "applications": one["applications"], "figures": figures}
    return {
        "why": load.why,
        "reproduction_error": said["reproduction_error"],
        "known_by_task": said["shape"]["known"],
        "notes": said["notes"],
        "machine": {side: read_json(own / side / "machine.json") for side in ("before", "after")},
        "failed": {side: real[side]["failed"] for side in ("before", "after")},
        "queues": queues,
        "usage": {side: usage_of(own / side) for side in ("before", "after")},
        "nodes": {
            side: [line.change for line in read_trace(own / side / "recording.jsonl").header.changes or ()]
            for side in ("before", "after")
        },
    }


def real_figures(run: Path) -> dict[str, Any]:
    """By queue the mean wait and completion, and the time below its due; how many applications failed."""
    apps = read_json(run / "apps.json")["apps"]
    below = read_json(run / "below.json")
    found: dict[str, Any] = {"failed": sum(app["status"] != "SUCCEEDED" for app in apps)}
    for leaf in LEAVES:
        own = [app for app in apps if app["queue"] == leaf]
        if own:
            found[leaf] = {
                "wait": fmean(app["wait_s"] for app in own),
                "completion": fmean(app["completion_s"] for app in own),
                "below_due": below[leaf],
            }
    return found


def judged(said: Mapping[str, Any], before_s: float, after_s: float, floor: float, figure: str) -> dict[str, Any]:
    """One figure of `plan` against what happened.

    ``said``: its document in ``--json``. The real change gets its word in the same way, of one run before and one
    after. ``right``: both words are the same; ``opposite``: one says sooner (less) and the other later (more).
    """
    up, down = ("more", "less") if figure == "below_due" else ("later", "sooner")
    word = Change((before_s,), (after_s,)).word(floor, up=up, down=down)  # type: ignore[arg-type]
    low, high = said["after"]["band"]
    return {
        "before_s": round(before_s, 2),
        "replayed_s": round(said["before"]["mean"], 2),
        "predicted_s": round(said["after"]["mean"], 2),
        "band_s": [round(low, 2), round(high, 2)],
        "after_s": round(after_s, 2),
        "predicted": said["word"],
        "happened": word,
        "right": said["word"] == word,
        "opposite": {said["word"], word} == {up, down},
        "in_band": low <= after_s <= high,
    }


def usage_of(run: Path) -> dict[str, Any]:
    """By queue what the ResourceManager counted and what `usage` says, MB-seconds."""
    apps = read_json(run / "apps.json")["apps"]
    said: dict[str, float] = {}
    for period in read_json(run / "usage.json")["periods"]:
        for queue, account in period["queues"].items():
            said[queue] = said.get(queue, 0) + account["had_mb_s"]
    return {
        leaf: {
            "rm_mb_s": sum(app["memory_seconds"] for app in apps if app["queue"] == leaf),
            "usage_mb_s": said.get(leaf, 0),
        }
        for leaf in LEAVES
    }
