"""What the pieces of runs come to: a record's values, and its tables. Hours add up over runs of other folders."""

from __future__ import annotations

import math
import statistics
import textwrap
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from studies.tables import Values, markdown

_CONTROLLERS = ("one", "two")
#: Rows of sizes, at most.
_ROWS = 16


def run_of(state: dict[str, Any]) -> Values:
    """What the pieces of one folder (studies.real_faults.__main__) come to."""
    pieces = state["pieces"]
    faults: Counter[str] = Counter()
    for piece in pieces:
        faults.update(piece["faults"])
    loads = [sample["load_average"] for piece in pieces for sample in piece["samples"]]
    return {
        "begun": pieces[0]["begun"],
        "commit": state["commit"],
        "seed": state["seed"],
        "hours": round(state["seconds"] / 3600, 3),
        "pieces": [{name: piece[name] for name in ("begun", "seconds", "rounds", "place")} for piece in pieces],
        "faults": dict(sorted(faults.items())),
        "violations": [violation for piece in pieces for violation in piece["violations"]],
        "released_pieces": sum(piece["released"] for piece in pieces),
        "files_written": sum(piece["replaced"] for piece in pieces),
        "calm_after_s": [at for piece in pieces for at in piece["calm_after_s"]],
        "ended": dict(Counter(words for piece in pieces for words in piece["ended"]).most_common()),
        "load_average": {"median": statistics.median(loads), "greatest": max(loads)},
        "accounts": pieces[-1]["accounts"],
        "samples": _samples(pieces, state["seconds"] / 3600 / _ROWS),
    }


def measured(run: Values, hours: float, before: Sequence[Values] = ()) -> Values:
    """A record's values: this run beside those that it has from before. A run that went on replaces what it was."""
    others = [one for one in before if (one["begun"], one["seed"]) != (run["begun"], run["seed"])]
    runs = sorted([*others, run], key=lambda one: (str(one["begun"]), int(one["seed"])))
    return {
        "of_hours": hours,
        "hours": round(sum(one["hours"] for one in runs), 3),
        "fault_count": sum(sum(one["faults"].values()) for one in runs),
        "violation_count": sum(len(one["violations"]) for one in runs),
        "runs": runs,
    }


def _samples(pieces: list[dict[str, Any]], every_h: float) -> list[dict[str, Any]]:
    """Sizes over time, in hours since the first piece; pauses between pieces do not count."""
    found: list[dict[str, Any]] = []
    before_s = 0.0
    for piece in pieces:
        for sample in piece["samples"]:
            at_h = (before_s + sample["at_s"]) / 3600
            # A moment at which one of them was dead or beginning tells nothing of its size.
            whole = all(sample[name]["memory_mb"] for name in (*_CONTROLLERS, "rm1", "rm2"))
            if whole and (not found or at_h - found[-1]["hours"] >= every_h):
                found.append({"hours": round(at_h, 3), **{k: v for k, v in sample.items() if k != "at_s"}})
        before_s += piece["seconds"]
    return found


def total(values: Values) -> str:
    """How much has been run, and what came of it: a row for each run, and their sum."""
    rows = [_row(_name(one), [one]) for one in values["runs"]]
    if len(rows) > 1:
        rows.append(_row("all", values["runs"]))
    row = rows[-1]
    rows[-1] = (row[0], f"{row[1]} of {values['of_hours']:g}", *row[2:])
    head = ("begun, commit", "hours", "pieces", "faults", "violations", "all well after at most", "files written")
    return markdown((*head, "given back", "load average, median and greatest"), rows)


def _name(run: Values) -> str:
    commit = f", `{run['commit'][:7]}`" if run["commit"] else ""
    return f"{run['begun'][:10]}{commit}"


def _row(name: str, runs: Sequence[Values]) -> tuple[Any, ...]:
    pieces = sum(len(one["pieces"]) for one in runs)
    calm = [at for one in runs for at in one["calm_after_s"]]
    loads = runs[0]["load_average"]
    return (
        name,
        f"{sum(one['hours'] for one in runs):.1f}",
        pieces,
        sum(sum(one["faults"].values()) for one in runs),
        sum(len(one["violations"]) for one in runs),
        f"{max(calm):.0f} s" if calm else "",
        f"{sum(one['files_written'] for one in runs):,}",
        f"{sum(one['released_pieces'] for one in runs)} of {pieces}",
        f"{loads['median']:.0f}, {loads['greatest']:.0f}" if len(runs) == 1 else "",
    )


def accounts(values: Values) -> str:
    """Each ledger's sums beside the ResourceManager's own, by queue: all runs' together, and the run furthest off."""
    runs = [one["accounts"] for one in values["runs"]]
    rows = []
    for name in _CONTROLLERS:
        for queue in runs[0][name]:
            found = [one[name][queue] for one in runs]
            sums = (f"{sum(one[key] for one in found):,.0f}" for key in ("ledger_mb_s", "rm_mb_s", "rm_most_mb_s"))
            furthest = max((_outside(one) for one in found), key=abs)
            rows.append((name, f"`{queue}`", *sums, f"{100 * furthest:+.2f} %"))
    return markdown(
        ("ledger", "queue", "MiB-seconds", "the RM's own at the end", "the most it had shown", "outside these two"),
        rows,
    )


def _outside(account: dict[str, float]) -> float:
    """How far a ledger's sum is below what the RM shows at last, or above the most it ever showed, as a part of it."""
    has, least, most = account["ledger_mb_s"], account["rm_mb_s"], account["rm_most_mb_s"]
    return min(has / least - 1, 0.0) if has < most else has / most - 1


def sizes(values: Values) -> str:
    """Memory and files over time, one run after the other: each begins with new logs and ledgers."""
    rows: list[tuple[str, ...]] = []
    last_h, before_h = -math.inf, 0.0
    for run in values["runs"]:
        for sample in run["samples"]:
            at_h = before_h + sample["hours"]
            if at_h - last_h < values["hours"] / _ROWS:
                continue
            last_h = at_h
            rows.append(
                (
                    f"{at_h:.2f}",
                    *(f"{sample[name]['memory_mb']:.0f}" for name in (*_CONTROLLERS, "rm1", "rm2")),
                    *(f"{sample[name]['log_bytes'] / 1024:,.0f}" for name in _CONTROLLERS),
                    *(f"{sample[name]['ledger_bytes'] / 1024:,.0f}" for name in _CONTROLLERS),
                    f"{sample['applications']:,}",
                )
            )
        before_h += run["hours"]
    memory = [f"memory of {name}, MiB" for name in (*_CONTROLLERS, "rm1", "rm2")]
    files = [f"{what} of {name}, KiB" for what in ("log", "ledger") for name in _CONTROLLERS]
    return markdown(("hours", *memory, *files, "applications so far"), rows)


def faults(values: Values) -> str:
    """How often which fault."""
    counted: Counter[str] = Counter()
    for run in values["runs"]:
        counted.update(run["faults"])
    told = ", ".join(f"`{kind}` {number}" for kind, number in sorted(counted.items()))
    return textwrap.fill(told, 120, break_on_hyphens=False, break_long_words=False)


#: Name -> (record, table).
TABLES: dict[str, tuple[str, Callable[[Values], str]]] = {
    "real-faults": ("real-faults", faults),
    "real-faults-sum": ("real-faults", total),
    "real-faults-accounts": ("real-faults", accounts),
    "real-faults-sizes": ("real-faults", sizes),
}
