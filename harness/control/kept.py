"""What a controller keeps in its ledger for those who read along, as plain documents."""

from __future__ import annotations

from typing import Any

from harness.control.events import Record
from harness.model.snapshot import Snapshot


def decision_document(record: Record | None) -> dict[str, Any] | None:
    """A decision as decisions.jsonl has it."""
    if record is None:
        return None
    attributes = record.attributes
    return {
        "time_s": record.time_s,
        "weights": dict(attributes.weights),
        "min_shares": {queue: [r.memory_mb, r.vcores] for queue, r in attributes.min_shares.items()},
        "max_shares": {queue: [r.memory_mb, r.vcores] for queue, r in attributes.max_shares.items()},
        "changed": list(record.changed),
        "counted": dict(record.counted),
        "reasons": dict(record.reasons),
    }


def look_document(snapshot: Snapshot, weights: Any, **more: Any) -> dict[str, Any]:
    """The last look, for `explain` and `top`. ``weights``: what was written last."""
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
                "weight": weights.get(q.name),
            }
            for q in snapshot.queues.values()
        },
    }
