"""What the pieces of a run come to: a record's values, and its tables."""

from __future__ import annotations

import statistics
import textwrap
from collections import Counter
from collections.abc import Callable
from typing import Any

from studies.tables import Values, markdown

_CONTROLLERS = ("one", "two")
#: Rows of sizes, at most.
_ROWS = 16


def measured(state: dict[str, Any], hours: float) -> Values:
    """The values of a run's state (studies.real_faults.__main__)."""
    pieces = state["pieces"]
    calm = [at for piece in pieces for at in piece["calm_after_s"]]
    faults: Counter[str] = Counter()
    for piece in pieces:
        faults.update(piece["faults"])
    return {
        "hours": round(state["seconds"] / 3600, 3),
        "of_hours": hours,
        "seed": state["seed"],
        "pieces": len(pieces),
        "rounds": sum(piece["rounds"] for piece in pieces),
        "faults": dict(sorted(faults.items())),
        "fault_count": faults.total(),
        "violations": [violation for piece in pieces for violation in piece["violations"]],
        "violation_count": sum(len(piece["violations"]) for piece in pieces),
        "released_pieces": sum(piece["released"] for piece in pieces),
        "files_written": sum(piece["replaced"] for piece in pieces),
        "calm_after_s": {"median": statistics.median(calm), "greatest": max(calm)},
        "ended": [words for piece in pieces for words in piece["ended"]],
        "accounts": pieces[-1]["accounts"],
        "samples": _samples(pieces, state["seconds"] / 3600 / _ROWS),
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
    """How much has been run, and what came of it."""
    row = (
        f"{values['hours']:.1f} of {values['of_hours']:g}",
        values["pieces"],
        values["fault_count"],
        values["violation_count"],
        f"{values['calm_after_s']['greatest']:.0f} s",
        f"{values['files_written']:,}",
        f"{values['released_pieces']} of {values['pieces']}",
    )
    head = ("hours so far", "pieces", "faults", "violations", "all well after at most", "files written", "given back")
    return markdown(head, [row])


def accounts(values: Values) -> str:
    """Each ledger's sums beside the ResourceManager's own, by queue."""
    rows = [
        (
            name,
            f"`{queue}`",
            f"{found['ledger_mb_s']:,.0f}",
            f"{found['rm_mb_s']:,.0f}",
            f"{found['rm_most_mb_s']:,.0f}",
            f"{100 * _outside(found):+.2f} %",
        )
        for name in _CONTROLLERS
        for queue, found in values["accounts"][name].items()
    ]
    return markdown(
        ("ledger", "queue", "MiB-seconds", "the RM's own at the end", "the most it had shown", "outside these two"),
        rows,
    )


def _outside(account: dict[str, float]) -> float:
    """How far a ledger's sum is below what the RM shows at last, or above the most it ever showed, as a part of it."""
    has, least, most = account["ledger_mb_s"], account["rm_mb_s"], account["rm_most_mb_s"]
    return min(has / least - 1, 0.0) if has < most else has / most - 1


def sizes(values: Values) -> str:
    """Memory and files over time."""
    rows = [
        (
            f"{sample['hours']:.2f}",
            *(f"{sample[name]['memory_mb']:.0f}" for name in (*_CONTROLLERS, "rm1", "rm2")),
            *(f"{sample[name]['log_bytes'] / 1024:,.0f}" for name in _CONTROLLERS),
            *(f"{sample[name]['ledger_bytes'] / 1024:,.0f}" for name in _CONTROLLERS),
            f"{sample['applications']:,}",
        )
        for sample in values["samples"]
    ]
    memory = [f"memory of {name}, MiB" for name in (*_CONTROLLERS, "rm1", "rm2")]
    files = [f"{what} of {name}, KiB" for what in ("log", "ledger") for name in _CONTROLLERS]
    return markdown(("hours", *memory, *files, "applications so far"), rows)


def faults(values: Values) -> str:
    """How often which fault."""
    told = ", ".join(f"`{kind}` {number}" for kind, number in values["faults"].items())
    return textwrap.fill(told, 120, break_on_hyphens=False, break_long_words=False)


#: Name -> (record, table).
TABLES: dict[str, tuple[str, Callable[[Values], str]]] = {
    "real-faults": ("real-faults", faults),
    "real-faults-sum": ("real-faults", total),
    "real-faults-accounts": ("real-faults", accounts),
    "real-faults-sizes": ("real-faults", sizes),
}
