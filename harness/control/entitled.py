"""Which entitlements an administrator gave, where a controller's momentary weights are in force. Reads only."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness.base.errors import InputError, YarnfairError
from harness.control.config import EnforceConfig
from harness.control.lease import Lease, lease_place
from harness.control.owner import FileOwner
from harness.ledger.store import read_documents
from harness.yarn.files import AllocationPlace, LocalPlace


def of_config(config: EnforceConfig) -> dict[str, float]:
    """Queue -> w_i as a controller with this configuration takes it: its ``queues``, else the administrator's weight.

    Raises what reading the allocation file raises.
    """
    said = dict(config.control_settings().entitlements)
    place = config.place() if config.allocation_file else None
    if place is None:
        return said
    kept: Mapping[str, Any] = {}
    if os.path.exists(config.ledger_path()):
        kept = read_documents(config.ledger_path(), (*FileOwner.PARTS, "departed"))
    owner = FileOwner.restored(place, kept.get)
    lease = _lease_of(place)
    if not kept.get("baseline") and lease.said:
        owner.adopt(lease.said)
    owner.read()
    return {**owner.configured_weights(), **said}


def of_file(path: str) -> tuple[str, dict[str, float] | None]:
    """Who writes the allocation file at a path of this machine, in words ('': nobody, or it cannot be seen), and the
    administrator's weights as that controller says them (None: it does not)."""
    if not Path(path).is_file():
        return "", None
    place = LocalPlace(Path(path))
    try:
        lease = _lease_of(place)
        holder = lease.holder()
        owner = FileOwner(place)
        if not holder or not lease.said:
            return holder, None
        owner.adopt(lease.said)
        owner.read()
    except YarnfairError:
        return "", None
    return holder, owner.configured_weights()


def _lease_of(place: AllocationPlace) -> Lease:
    lease = Lease(lease_place(place), "", 1.0, lambda: 0.0)
    try:
        lease.holder()
    except InputError:
        lease.said = {}
    return lease
