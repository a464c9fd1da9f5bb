"""The documents that a controller stores in its ledger for readers such as `explain` and `top`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness.control.changes import is_below
from harness.control.events import Record
from harness.model.snapshot import Snapshot


def decision_document(record: Record | None, creating: frozenset[str] = frozenset()) -> dict[str, Any] | None:
    """Return a decision as an entry of decisions.jsonl (None: no decision).

    ``creating``: queues whose children the RM creates. Nothing below them is written, so nothing there has changed.
    """
    if record is None:
        return None
    attributes = record.attributes
    held = {queue: why for queue, why in record.held.items() if not is_below(queue, creating)}
    return {
        "time_s": record.time_s,
        "weights": dict(attributes.weights),
        "min_shares": {queue: [r.memory_mb, r.vcores] for queue, r in attributes.min_shares.items()},
        "max_shares": {queue: [r.memory_mb, r.vcores] for queue, r in attributes.max_shares.items()},
        "changed": [queue for queue in record.changed if not is_below(queue, creating)],
        "counted": dict(record.counted),
        "reasons": dict(record.reasons),
        **({"held": held} if held else {}),
        **({} if record.preempted_mb_s is None else {"preempted_mb_s": record.preempted_mb_s}),
        **({"newcomers": sorted(record.newcomers)} if record.newcomers else {}),
    }


def look_document(
    snapshot: Snapshot,
    weights: Mapping[str, float],
    guaranteed: Mapping[str, float],
    creating: frozenset[str] = frozenset(),
    **more: Any,
) -> dict[str, Any]:
    """Return the last poll for `explain` and `top`.

    ``weights``: the weights written last. ``guaranteed``: see `harness.control.events.Observed`. ``creating``: queues
    whose children the RM creates; nothing below them is written.
    """
    created = {q.name for q in snapshot.queues.values() if is_below(q.name, creating)}
    return {
        "time_s": snapshot.time_s,
        "capacity": [snapshot.capacity.memory_mb, snapshot.capacity.vcores],
        **more,
        "queues": {
            q.name: {
                "leaf": q.leaf,
                "entitlement": q.weight,
                "allocated": [q.allocated.memory_mb, q.allocated.vcores],
                "demand": [q.demand.memory_mb, q.demand.vcores],
                "pending": q.pending_containers,
                "apps": q.running_apps,
                "backlog_since_s": q.backlog_since_s,
                "last_start_s": q.last_start_s,
                "mean_task_s": q.mean_task_s,
                "weight": None if q.name in created else weights.get(q.name),
                **({"created": True} if q.name in created else {}),
                **({"of_parent": guaranteed[q.name]} if q.name in guaranteed else {}),
            }
            for q in snapshot.queues.values()
        },
    }
