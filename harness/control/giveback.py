"""Giving the configuration back to its administrator: the ledger and the file suffice, whether an RM answers or not.

Which values are whose is the owner's knowledge (harness.control.owner); here is the order of steps, so that a process
that is killed in between leaves the controller's file or the administrator's, and the next one knows which.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness.control.capacity_owner import CapacityOwner
from harness.control.lease import Lease
from harness.control.owned import Prepared
from harness.control.owner import FileOwner
from harness.control.settings import ControlSettings
from harness.control.values import Nonsense
from harness.ledger.store import LedgerStore
from harness.yarn.errors import Unreachable
from harness.yarn.files import always
from harness.yarn.rmclient import RmClient

_BY_ITSELF = "when the ResourceManager looks at the file next (10 to 20 s)"
Owner = FileOwner | CapacityOwner


def give_back(
    owner: Owner, store: LedgerStore, lease: Lease | None, released: Mapping[str, Any] | None = None
) -> Prepared:
    """Writes the administrator's values, and forgets that there were others; what is written.

    ``released``: a guard's release (harness.control.released). The lease is kept then and says so, or a spare
    controller would go on.
    Raises HeldByAnother where another controller has the file (nothing is touched then), and what goes wrong.
    """
    if lease is not None:
        lease.hold()
        adopt(owner, store, lease)
    owner.read()
    prepared = owner.original()
    if lease is not None:
        lease.keep(owner.document(), released)
    owner.write(prepared, lease.lasts if lease is not None else always)
    owner.forget()
    store.commit(documents=owner.document() | _given_back(store))
    clear(owner, lease)
    if lease is not None:
        lease.keep({}, released)
        if released is None:
            lease.end()
    return prepared


def _given_back(store: LedgerStore) -> dict[str, Any]:
    """The last look says that its weights are no longer in force."""
    look = store.document("look")
    return {"look": {**look, "given_back": True}} if isinstance(look, dict) else {}


def adopt(owner: Owner, store: LedgerStore, lease: Lease) -> None:
    """Takes over what another controller said of the file, unless the ledger itself knows. Raises InputError.

    Nonsense is taken from nobody, and forgotten: who knows the file goes on, and can give it back.
    """
    if lease.said and not (lease.said_by == store.identity and owner.baseline):
        try:
            # Who goes on after a moment takes the file as one who never ended.
            owner.adopt(lease.said, lives=lease.other_lives or lease.goes_on)
        except Nonsense:
            lease.forget_said()
            if not owner.baseline:
                raise


def clear(owner: Owner, lease: Lease | None) -> None:
    """Removes what killed writers have left beside the file. Only for who holds it: nobody else is writing then."""
    if owner.beside is not None:
        owner.beside.clear()
    if lease is not None:
        lease.clear()


def put_in_force(owner: Owner, prepared: Prepared, client: RmClient | None, settings: ControlSettings) -> str:
    """Makes the RM load what was given back, and looks whether it did; what is known then, in words.

    An RM that does not answer (None: it could not even be found) loads the file by itself when it starts; of the Fair
    Scheduler, also when it looks at its file next. Raises what else goes wrong.
    """
    what = "capacities" if isinstance(owner, CapacityOwner) else "weights and limits"
    what = f"the administrator's own {what} are"
    if settings.refresh == "poll":
        return f"{what} written; in force {_BY_ITSELF}"
    try:
        if client is None:
            raise Unreachable("no ResourceManager was told")
        owner.load(client)
        if not settings.read_back:
            return f"{what} written and refreshed, not read back"
        owner.confirm(client, prepared.in_force, timeout_s=settings.effect_s, every_s=0.05)
    except Unreachable as error:
        also = f", or {_BY_ITSELF}" if isinstance(owner, FileOwner) else ", or by `yarn rmadmin -refreshQueues`"
        return f"{what} written; {error.what}: in force when it starts{also}"
    return f"{what} in force"
