"""What `studies.steered` makes of its runs: the answers of `assess` against what a controller then did."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from harness.base.errors import InputError
from harness.base.files import read_json
from harness.predict.verdict import NOTICEABLE
from harness.traces.recorded import read_trace
from studies.planned_loads import LEAVES, Load
from studies.planned_measure import real_figures
from studies.steered_loads import EXPECTED, LOADS, WHY
from studies.steered_simulated import Seen, compared

#: What ran where `assess` recommended nothing.
OTHERWISE = "ltrf@outside"
#: Runs without a controller: the recorded one, and its repeat. Those under it are ``steered`` and ``steered-*``.
WITHOUT = ("recorded", "again")
#: A run while the cluster had no priority over the machine's other work.
BUSY = "steered-busy"
_CERTAIN = ("shorter", "longer", "same")


def measure(folder: Path, names: Sequence[str] = tuple(LOADS)) -> dict[str, Any]:
    """These loads of a folder. Raises InputError where a recorded run or one under the controller is missing."""
    loads = {name: _load(folder / name, LOADS[name], name) for name in names}
    runs = [(run, found) for load in loads.values() for run, found in load["steered"].items()]
    rows = [row for _, found in runs for row in found.values()]
    return {
        "loads": loads,
        "missing": [name for name in LOADS if name not in names],
        "answers_as_expected": sum(load["verdict"] == load["expected"] for load in loads.values()),
        **counted(rows),
        "with_priority": counted([row for run, found in runs if run != BUSY for row in found.values()]),
    }


def counted(rows: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """How many words were right, and how many times lie in their bands. *unsure* predicts nothing."""
    told = [row for row in rows if row["predicted"] in _CERTAIN]
    banded = [row for row in rows if row["band_s"] is not None]
    return {
        "queues": len(rows),
        "words": len(told),
        "words_right": sum(row["right"] for row in told),
        "opposite": sum(row["opposite"] for row in told),
        "bands": len(banded),
        "in_band": sum(row["in_band"] for row in banded),
    }


def _load(own: Path, load: Load, name: str) -> dict[str, Any]:
    ended = sorted(path.parent.name for path in own.glob("*/apps.json"))
    without = [run for run in WITHOUT if run in ended]
    steered = [run for run in ended if run.startswith("steered")]
    if "recorded" not in without or not steered:
        raise InputError("no recorded run, or none under the controller", where=str(own), hint="run it first")
    said = read_json(own / "assess" / "assess.json")
    best = said["recommended"].get("name") or OTHERWISE
    row = said["policies"].get(best)
    runs = [*without, *steered]
    real = {run: real_figures(own / run) for run in runs}
    leaves = [leaf for leaf in LEAVES if leaf in real["recorded"]]
    predicted = None if row is None else [row["sharing_loss_integral"], *row["sharing_loss_integral_band"]]
    return {
        "why": WHY[name],
        "expected": EXPECTED[name],
        "verdict": said["verdict"],
        "headline": said["lines"][0],
        "recommended": said["recommended"].get("name"),
        "ran": best,
        "reproduction_error": said["reproduction_error"],
        "without": without,
        "steered": all_judged(said, best, real, without, steered),
        "writes": {run: writes(own / run / "enforce.txt") for run in steered},
        "failed": {run: real[run]["failed"] for run in runs},
        "machine": {run: read_json(own / run / "machine.json") for run in runs},
        "pace": {run: pace(own / run) for run in runs},
        "asked_before": asked_before(own),
        "asked_again": asked_again(own, best, real, without, steered),
        **compared(own, load, best, real, steered),
        "loss_replayed_s": round(said["policies"]["capacity"]["sharing_loss_integral"], 2),
        "loss_predicted_s": None if predicted is None else [round(one, 2) for one in predicted],
        "loss_s": {run: round(sharing_loss(read_json(own / run / "samples.json")["samples"], load), 2) for run in runs},
        "below_due_s": {run: round(sum(real[run][leaf]["below_due"] for leaf in leaves), 1) for run in runs},
    }


def all_judged(
    said: Mapping[str, Any],
    best: str,
    real: Mapping[str, Mapping[str, Any]],
    without: Sequence[str],
    steered: Sequence[str],
) -> dict[str, dict[str, Any]]:
    """By run under the controller and by queue, what an answer predicted of the policy that ran (`judged`)."""
    row = said["policies"].get(best)
    floor = max(NOTICEABLE, (said["reproduction_error"] or 0.0) / 2)
    return {
        run: {
            leaf: judged(
                None if row is None else row["queues"].get(leaf),
                [real[one][leaf]["completion"] for one in without],
                real[run][leaf]["completion"],
                floor,
            )
            for leaf in LEAVES
            if leaf in real["recorded"]
        }
        for run in steered
    }


def judged(row: Mapping[str, Any] | None, without_s: Sequence[float], steered_s: float, floor: float) -> dict[str, Any]:
    """One queue's prediction against what happened.

    Parameters
    ----------
    row
        What `assess` says of the queue under the policy that ran; None: nothing.
    without_s
        Mean completion without a controller: of the recorded run, and of its repeat if there is one.
    steered_s
        Mean completion under the controller.
    floor
        A smaller relative change is not told by `assess`.
    """
    before_s = sum(without_s) / len(without_s)
    noise = (max(without_s) - min(without_s)) / before_s
    change = steered_s / before_s - 1.0
    happened = word(change, change, max(NOTICEABLE, noise))
    predicted = "unsure"
    told: dict[str, Any] = dict.fromkeys(("replayed_change", "change_band", "predicted_s", "band_s"))
    if row is not None and "change" in row:
        low, high = row["change_band"]
        predicted = word(low, high, floor)
        told = {
            "replayed_change": round(row["change"], 4),
            "change_band": [round(one, 4) for one in row["change_band"]],
            "predicted_s": round(row["mean_completion_s"], 2),
            "band_s": [round(one, 2) for one in row["mean_completion_band_s"]],
        }
    band_s = told["band_s"]
    return {
        "without_s": [round(one, 2) for one in without_s],
        "steered_s": round(steered_s, 2),
        "noise": round(noise, 4),
        "change": round(change, 4),
        "happened": happened,
        **told,
        "predicted": predicted,
        "right": predicted == happened,
        "opposite": {predicted, happened} == {"shorter", "longer"},
        "in_band": band_s is not None and band_s[0] <= steered_s <= band_s[1],
    }


def word(low: float, high: float, floor: float) -> str:
    """A relative change between two bounds in a word: *unsure* if the bounds do not agree on one."""
    if high < 0 and -(low + high) / 2 >= floor:
        return "shorter"
    if low > 0 and (low + high) / 2 >= floor:
        return "longer"
    return "same" if max(-low, high) < floor else "unsure"


def sharing_loss(samples: Sequence[Mapping[str, Any]], load: Load) -> float:
    """The integral of the sharing loss degree (LTYARN eq. 5) of a real run, from what its queues held and wanted, s."""
    shares = load.shares("before")
    return Seen.of_samples(samples).loss([shares[leaf] for leaf in LEAVES])


def writes(log: Path) -> int:
    """How often the controller wrote capacities."""
    return log.read_text(encoding="utf-8").count(" info capacities: ")


def pace(run: Path) -> dict[str, float]:
    """How fast the machine was in a run: mean seconds of a task's work, of its container's and of a master's start.

    ``first_wait_s``: from the first application's submission to its container, on an empty cluster that has just begun.
    """
    jobs = read_trace(run / "recording.jsonl").jobs
    stages = [stage for job in jobs for stage in job.stages]
    return {
        "task_s": round(fmean(one for stage in stages for one in stage.tasks_s), 2),
        "start_s": round(fmean(one for stage in stages for one in stage.starts_s), 2),
        "master_start_s": round(fmean(job.am_start_s for job in jobs if job.am_start_s is not None), 2),
        "first_wait_s": round(read_json(run / "apps.json")["apps"][0]["wait_s"], 2),
    }


def asked_before(own: Path) -> dict[str, Any] | None:
    """Return the answer on an earlier recording of the load (``recorded-busy``); None if it was recorded only once."""
    if not (own / "assess-busy").exists():
        return None
    said = read_json(own / "assess-busy" / "assess.json")
    return {
        "verdict": said["verdict"],
        "headline": said["lines"][0],
        "reproduction_error": said["reproduction_error"],
        "machine": read_json(own / "recorded-busy" / "machine.json"),
        "pace": pace(own / "recorded-busy"),
    }


def asked_again(
    own: Path, best: str, real: Mapping[str, Mapping[str, Any]], without: Sequence[str], steered: Sequence[str]
) -> dict[str, Any] | None:
    """Return the answer on the recording with the order of its queues (``assess-ordered``); None: not asked again."""
    if not (own / "assess-ordered" / "assess.json").exists():
        return None
    said = read_json(own / "assess-ordered" / "assess.json")
    found = all_judged(said, best, real, without, steered)
    return {
        "verdict": said["verdict"],
        "headline": said["lines"][0],
        "recommended": said["recommended"].get("name"),
        "reproduction_error": said["reproduction_error"],
        "steered": found,
        **counted([row for run, rows in found.items() if run != BUSY for row in rows.values()]),
    }
