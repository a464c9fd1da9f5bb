"""Build a `View` of any moment of an experiment's run, from allocations.parquet and decisions.jsonl."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness.base.errors import InputError
from harness.control.view import QueueRow, View, of_policy, with_changes, with_sums
from harness.results.runs import decision_lines, run_info, without_seed


def from_run(folder: Path, *, at_s: float | None = None) -> View:
    """Return the view of the last sample at or before ``at_s`` seconds of the run (None: the latest sample).

    Raises InputError if the folder is not a run directory.
    """
    import pandas as pd

    identity = run_info(folder)
    path = folder / "allocations.parquet"
    try:
        # The samples of all queues at one moment are adjacent.
        table: Any = pd.read_parquet(path)
        needed = ["time_s", "queue", "allocated_mb", "demand_mb", "share_mb", "weight", "counted_mb_s", "fair_share_mb"]
        table = table[needed]
    except (OSError, ValueError, KeyError) as error:
        raise InputError(
            f"no samples of queues: {error}", where=str(path), hint="let the run end, or run it again"
        ) from None
    said = (entry for _, entry in decision_lines(folder) if entry and isinstance(entry.get("time_s"), int | float))
    return from_table(table, identity, said, source=str(folder), at_s=at_s, path=str(path))


def from_table(
    table: Any,
    identity: Mapping[str, Any],
    decisions: Iterable[Mapping[str, Any]],
    *,
    source: str,
    at_s: float | None = None,
    path: str = "",
) -> View:
    """Like `from_run`, from samples (columns of allocations.parquet), the content of run.json, and decisions.

    Raises InputError if there is no sample at or before ``at_s``.
    """
    if at_s is not None:
        table = table[table["time_s"] <= at_s]
    if not len(table):
        raise InputError("no sample that early", where=path or source, hint="give a later --at")
    time_s = float(table["time_s"].iloc[-1])
    rows = {str(row.queue): row for row in table[table["time_s"] == time_s].itertuples()}
    names = set(rows)
    parents = {name.rpartition(".")[0] for name in names}
    configured = _entitlements(identity)
    queues = {
        name: QueueRow(
            path=name,
            parent=name.rpartition(".")[0] if "." in name else None,
            leaf=name not in parents,
            entitlement=configured.get(name, 1.0),
            allocated_mb=int(row.allocated_mb),
            demand_mb=int(row.demand_mb),
            weight=_weight(row.weight),
            accumulated=float(row.counted_mb_s),
            fair_mb=int(row.fair_share_mb),
        )
        for name, row in sorted(rows.items(), key=lambda item: item[0].split("."))
    }
    policy = identity.get("policy") or {}
    view = View(
        time_s=time_s,
        source=source,
        policy=_policy_words(identity),
        capacity_mb=int(identity.get("capacity_mb") or 0),
        queues=queues,
        began_s=0.0,
        wall_clock=False,
    )
    made, alarms = _until(decisions, time_s)
    view = of_policy(view, str(policy.get("name")), policy.get("settings") or {})
    return with_changes(with_sums(replace(view, alarms=tuple(alarms[-3:]))), made)


def _policy_words(identity: Mapping[str, Any]) -> str:
    """Return the policy of a run for a person, with the seed in words where its directory's name has one."""
    variant, seed = str(identity.get("variant") or ""), identity.get("seed")
    if variant:
        own = without_seed(variant, seed)
        return own if own == variant else f"{own}, seed {seed}"
    return str((identity.get("policy") or {}).get("name") or "?")


def _weight(value: Any) -> float | None:
    weight = float(value)
    return weight if weight == weight else None


def _entitlements(identity: Mapping[str, object]) -> dict[str, float]:
    found: dict[str, float] = {}

    def walk(queues: object, prefix: str) -> None:
        if not isinstance(queues, dict):
            return
        for name, said in queues.items():
            if isinstance(said, dict):
                weight = said.get("weight")
                found[f"{prefix}.{name}"] = float(weight) if isinstance(weight, int | float) else 1.0
                walk(said.get("children"), f"{prefix}.{name}")

    experiment = identity.get("experiment")
    walk(experiment.get("queues") if isinstance(experiment, dict) else None, "root")
    return found


def _until(lines: Iterable[Mapping[str, Any]], until_s: float) -> tuple[list[Mapping[str, Any]], list[tuple[str, str]]]:
    """Split the lines up to a moment into decisions and alarms."""
    decisions: list[Mapping[str, Any]] = []
    alarms: list[tuple[str, str]] = []
    for said in lines:
        if said["time_s"] > until_s:
            break
        if "alarm" in said:
            alarms.append((str(said["alarm"]), str(said.get("text", ""))))
        else:
            decisions.append(said)
    return decisions, alarms
