"""The documents that a controller stores in its ledger for readers such as `explain` and `top`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness.control.events import Record
from harness.model.snapshot import Snapshot


def decision_document(record: Record | None) -> dict[str, Any] | None:
    """Return a decision as an entry of decisions.jsonl (None: no decision)."""
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
        **({"held": dict(record.held)} if record.held else {}),
        **({} if record.preempted_mb_s is None else {"preempted_mb_s": record.preempted_mb_s}),
        **({"newcomers": sorted(record.newcomers)} if record.newcomers else {}),
    }


def look_document(snapshot: Snapshot, weights: Any, guaranteed: Mapping[str, float], **more: Any) -> dict[str, Any]:
    """Return the last poll for `explain` and `top`.

    ``weights``: the weights written last. ``guaranteed``: see `harness.control.events.Observed`.
    """
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
                **({"of_parent": guaranteed[q.name]} if q.name in guaranteed else {}),
            }
            for q in snapshot.queues.values()
        },
    }
