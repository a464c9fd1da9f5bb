"""Find the administrator's entitlements while a controller's weights are in force, without changing anything.

Also checks whether the queues that a configuration names exist.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from harness.base.errors import CallError, InputError, YarnfairError
from harness.control.capacity_actuator import CapacityActuator
from harness.control.config import EnforceConfig
from harness.control.file_actuator import FileActuator
from harness.control.interfaces import Actuator, Document
from harness.control.lease import Lease, lease_store
from harness.control.ownership import generation_of
from harness.ledger.store import read_documents
from harness.yarn.capacity.queues import is_by_hand
from harness.yarn.capacity.source import FileSource
from harness.yarn.files import ConfigStore, LocalStore
from harness.yarn.rmclient import RmClient

#: Maximum number of queues named in a message.
_MOST_NAMED = 5


#: In ``accept``: the controller may start although queues of the configuration do not exist (yet).
ACCEPT_UNKNOWN = "unknown-queues"


def unknown_queues(entitlements: Collection[str], known: Collection[str]) -> str:
    """Describe the queues of a configuration that do not exist, with the most similar names ('': none)."""
    missing = sorted(set(entitlements) - set(known))
    if not missing:
        return ""
    shown = []
    for path in missing[:_MOST_NAMED]:
        near = get_close_matches(path[:200], list(known), 3)
        # A queue of the same name below another parent is often no close match by the spelling of its path.
        own = path.rpartition(".")[2]
        near += [other for other in sorted(known) if other.rpartition(".")[2] == own and other not in near]
        shown.append(f"no queue {path}" + (f" (near: {', '.join(near[:3])})" if near else ""))
    more = f"; and {len(missing) - _MOST_NAMED} more" if len(missing) > _MOST_NAMED else ""
    return "; ".join(shown) + more


def check_entitlements(entitlements: Collection[str], known: Collection[str], accept: Collection[str]) -> str:
    """Return a note about accepted unknown queues of the configuration ('': none).

    Raises CallError for unknown queues that are not accepted: a misspelled queue would leave its entitlement without
    effect.
    """
    why = unknown_queues(entitlements, known)
    if not why:
        return ""
    if ACCEPT_UNKNOWN in accept:
        return f"{why}: these entitlements hold once the queues are there"
    raise CallError(
        why,
        where="queues",
        hint=f"correct the name, or take it out; of a queue that comes later: `accept: [{ACCEPT_UNKNOWN}]`",
    )


def of_config(config: EnforceConfig, client: RmClient | None = None) -> dict[str, float]:
    """Return queue -> w_i as a controller uses it: from the key ``queues``, or else the administrator's weight.

    For the Capacity Scheduler, the weights are percentages of the cluster. ``client`` is needed if the Capacity
    Scheduler's settings are in the ResourceManager's store. Raises what reading the file or the store raises.
    """
    said = dict(config.control_settings().entitlements)
    open_actuator = config.actuator_opener(client) if client is not None else config.offline_opener()
    if open_actuator is None:
        return said
    actuator = _restored(open_actuator, config)
    actuator.read()
    return {**actuator.configured_weights(), **said}


def _restored(open_actuator: Callable[[Document], Actuator[RmClient]], config: EnforceConfig) -> Actuator[RmClient]:
    """Return the actuator of a configuration with the state of its ledger, or of its lease if that is newer."""
    kept: Mapping[str, Any] = {}
    if os.path.exists(config.ledger_path()):
        names = {"identity", *FileActuator.document_names(), *CapacityActuator.document_names()}
        kept = read_documents(config.ledger_path(), sorted(names))
    actuator = open_actuator(kept.get)
    if actuator.beside is not None:
        lease = _lease_of(actuator.beside)
        # If the ledger is an older copy, the controller's announcement beside the file is newer.
        later = (
            lease.announced_by == kept.get("identity")
            and generation_of(lease.announced.get("generation")) > actuator.generation
        )
        if lease.announced and (later or not kept.get("baseline")):
            actuator.adopt(lease.announced)
    return actuator


def of_file(path: str, *, capacity: bool = False) -> tuple[str, dict[str, float] | None]:
    """Describe the controller that writes the scheduler's file at a local path ('': none is visible from here).

    Also returns the administrator's weights that the controller announces (None: none are announced).
    """
    if not Path(path).is_file():
        return "", None
    store = LocalStore(Path(path))
    try:
        lease = _lease_of(store)
        holder = lease.holder()
        actuator = CapacityActuator(FileSource(store)) if capacity else FileActuator(store)
        if not holder or not lease.announced:
            return holder, None
        actuator.adopt(lease.announced)
        actuator.read()
    except YarnfairError:
        return "", None
    return holder, actuator.configured_weights()


def written_capacities(properties: Mapping[str, float]) -> list[str]:
    """Return the queues whose capacities look computed: nobody writes four decimals by hand (`is_by_hand`).

    ``properties``: queue -> capacity in force, as a ResourceManager shows it (float32).
    """
    return [path for path, value in properties.items() if not is_by_hand(f"{value:.4f}".rstrip("0"))]


def _lease_of(store: ConfigStore) -> Lease:
    lease = Lease(lease_store(store), "", 1.0, lambda: 0.0)
    try:
        lease.holder()
    except InputError:
        lease.announced = {}
    return lease
