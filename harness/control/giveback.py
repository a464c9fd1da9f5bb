"""Giving the configuration back to its administrator: the ledger and the file suffice, whether an RM answers or not.

Which values are whose is the actuator's knowledge (harness.control.file_actuator); here is the order of steps, so that
a process that is killed in between leaves the controller's file or the administrator's, and the next one knows which.
The order is file, refresh, bookkeeping: a full disk under the ledger keeps nobody's values in force.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from harness.base.errors import InputError, YarnfairError
from harness.control.actuator import Prepared, generation_of
from harness.control.capacity_actuator import CapacityActuator
from harness.control.file_actuator import FileActuator
from harness.control.gate import in_short
from harness.control.identity import OtherCluster
from harness.control.lease import HeldByAnother, Lease
from harness.control.settings import ControlSettings
from harness.control.values import Nonsense
from harness.ledger.store import LedgerStore
from harness.yarn.errors import Refused, Unreachable
from harness.yarn.files import FileChanged, always
from harness.yarn.rmclient import RmClient

_BY_ITSELF = "when the ResourceManager looks at the file next (10 to 20 s)"
#: How often a release is tried again where somebody else changes the configuration at the same moment.
_ATTEMPTS = 5
Actuator = FileActuator | CapacityActuator


@dataclass(frozen=True, slots=True)
class Release:
    """What became of a release.

    words
        For a person: what is written and in force.
    failed
        Whether something is not as the administrator has it, so that somebody must act.
    notes : tuple
        What went wrong beside it, by kind: none of it keeps the administrator's values from being restored.
    prepared
        What was written.
    """

    words: str
    failed: bool
    notes: tuple[tuple[str, str], ...]
    prepared: Prepared


class NotReleased(InputError):
    """The administrator's values are not in force, and no later look will put them in force."""


def release(
    actuator: Actuator,
    store: LedgerStore,
    lease: Lease | None,
    open_client: Callable[[], RmClient | None],
    settings: ControlSettings,
    released: Mapping[str, Any] | None = None,
    recognise: Callable[[RmClient], None] = lambda _: None,
) -> Release:
    """Restore the administrator's values: in the file, in the ResourceManager, and at last in what is kept of them.

    Nothing that is only kept (the ledger, the lease) keeps the values from being restored.

    Parameters
    ----------
    actuator, store, lease : whose the values are, the ledger, and the lease (None: there is none).
    open_client : called once the file is written; returns None, or raises Unreachable, where there is no RM.
    settings : the controller's.
    released : a guard's release (harness.control.released). The lease is kept then and says so, or a spare controller
        would go on.
    recognise : called before a ResourceManager is refreshed; raises OtherCluster where it is another cluster's.

    Raises
    ------
    HeldByAnother
        Another controller has the file; nothing is touched.
    OtherCluster
        The store that would be changed is another cluster's; nothing is touched.
    YarnfairError
        The configuration cannot be read or written.
    """
    notes: list[tuple[str, str]] = []
    signed = lease is not None and _noted(notes, "lease", lease.hold)
    if lease is not None:
        adopt(actuator, store, lease)
    for attempt in range(_ATTEMPTS):
        actuator.read()
        prepared = actuator.original()
        if lease is not None:
            signed &= _noted(notes, "lease", partial(lease.keep, actuator.document(), released))
        try:
            refused = _write(actuator, prepared, _still(lease, signed=signed))
            break
        except FileChanged:
            if attempt == _ATTEMPTS - 1:
                raise
    refusals = (*actuator.refusals(), *actuator.problems_of(prepared))
    notes += [("release", problem) for problem in prepared.problems]
    client = None
    try:
        client = open_client()
    except Unreachable as error:
        notes.append(("observation", error.line()))
    failed, words = True, ""
    if refused:
        words = "; ".join(f"below {parent} the controller's stay: {why}" for parent, why in refused.items())
    else:
        try:
            if client is not None and actuator.beside is not None and settings.refresh != "poll":
                _recognise(client, recognise)
            words = put_in_force(actuator, prepared, client, settings, refusals)
            # A Capacity Scheduler checks what it loads as it does when it starts.
            taken = isinstance(actuator, CapacityActuator) and words.startswith(f"{_restored(actuator)} in force")
            failed = bool(refusals) and not taken
        except YarnfairError as error:
            words = f"{_restored(actuator)} written, but not in force: {error.line()}"
        actuator.forget()
    _noted(notes, "ledger", lambda: store.commit(documents=actuator.document() | _given_back(store)))
    _noted(notes, "file", lambda: clear(actuator, lease))
    if lease is not None and signed and not refused:
        _noted(notes, "lease", partial(lease.keep, {}, released))
        if released is None:
            lease.end()
    return Release(words, failed, tuple(dict.fromkeys(notes)), prepared)


def _recognise(client: RmClient, recognise: Callable[[RmClient], None]) -> None:
    """Raise OtherCluster where another cluster's ResourceManager would be refreshed: nothing were in force by that.

    One that answers nonsense, or not at all, is told all the same. A store has been asked before it was read.
    """
    try:
        recognise(client)
    except OtherCluster:
        raise
    except YarnfairError:
        return


def _write(actuator: Actuator, prepared: Prepared, still: Callable[[], None]) -> dict[str, str]:
    """Write it; by parent, why a store has refused what belongs to its children, if it has."""
    try:
        actuator.write(prepared, still)
    except Refused:
        if actuator.beside is not None:
            raise
        return actuator.write_groups(prepared, still)
    return {}


def _still(lease: Lease | None, *, signed: bool) -> Callable[[], None]:
    """What is looked at just before the file is replaced: that nobody else has the lease.

    One that cannot be written (a full disk) is not the reason to leave the file as it is.
    """
    if lease is None:
        return always
    if signed:
        return lease.lasts

    def nobody_else() -> None:
        if lease.taken():
            raise HeldByAnother("another controller has taken over", where=lease.place.name, hint="stop one of them")

    return nobody_else


def _noted(notes: list[tuple[str, str]], kind: str, do: Callable[[], object]) -> bool:
    """Do what only keeps books; whether it was done. What goes wrong is noted, but for another controller's lease."""
    try:
        do()
    except HeldByAnother:
        raise
    except YarnfairError as error:
        notes.append((kind, error.line()))
        return False
    return True


def give_back(
    actuator: Actuator, store: LedgerStore, lease: Lease | None, released: Mapping[str, Any] | None = None
) -> Prepared:
    """Restore the administrator's values where they are kept, and tell no ResourceManager; what was written.

    Raises what `release` raises, and NotReleased.
    """
    settings = ControlSettings(refresh="poll")
    done = release(actuator, store, lease, lambda: None, settings, released)
    if done.failed:
        raise NotReleased(done.words)
    return done.prepared


def _given_back(store: LedgerStore) -> dict[str, Any]:
    """The last look says that its weights are no longer in force."""
    look = store.document("look")
    return {"look": {**look, "given_back": True}} if isinstance(look, dict) else {}


def adopt(actuator: Actuator, store: LedgerStore, lease: Lease) -> str:
    """Takes over what another controller said of the file, unless the ledger itself knows. Raises InputError.

    Of its own words those that are later than the ledger are taken over: an older copy of the ledger was restored. What
    is to be said of that is returned ('': nothing).

    Nonsense is taken from nobody, and forgotten: who knows the file goes on, and can give it back.
    """
    own = lease.announced_by == store.identity
    later = generation_of(lease.announced.get("generation")) if lease.announced else 0
    if own and actuator.baseline and later > actuator.generation:
        before = actuator.generation
        try:
            actuator.adopt(lease.announced)
        except Nonsense:
            lease.forget_announced()
            return ""
        return (
            f"the ledger is an older copy (generation {before}, the file was written up to {later}): whose the values "
            "in the file are was taken from the lease beside it, and what was counted since the copy, from what the "
            "ResourceManager still retains"
        )
    if lease.announced and not (own and actuator.baseline):
        try:
            # Who goes on after a moment takes the file as one who never ended.
            actuator.adopt(lease.announced, lives=lease.other_lives or lease.goes_on)
        except Nonsense:
            lease.forget_announced()
            if not actuator.baseline:
                raise
    return ""


def clear(actuator: Actuator, lease: Lease | None) -> None:
    """Removes what killed writers have left beside the file. Only for who holds it: nobody else is writing then."""
    if actuator.beside is not None:
        actuator.beside.clear()
    if lease is not None:
        lease.clear()


def _restored(actuator: Actuator) -> str:
    what = "capacities" if isinstance(actuator, CapacityActuator) else "weights and limits"
    return f"the administrator's own {what} are"


def put_in_force(
    actuator: Actuator,
    prepared: Prepared,
    client: RmClient | None,
    settings: ControlSettings,
    refusals: Sequence[str] = (),
) -> str:
    """Makes the RM load what was given back, and looks whether it did; what is known then, in words.

    An RM that does not answer (None: it could not even be found) loads the file by itself when it starts; of the Fair
    Scheduler, also when it looks at its file next; not where it refuses it (``refusals``: why). Raises what else goes
    wrong.
    """
    what = _restored(actuator)
    why = f", but a ResourceManager would refuse them: {in_short(refusals)}" if refusals else ""
    if settings.refresh == "poll":
        return f"{what} written{why}" if why else f"{what} written; in force {_BY_ITSELF}"
    try:
        if client is None:
            raise Unreachable("no ResourceManager was told")
        actuator.load(client)
        if not settings.read_back:
            return f"{what} written and refreshed, not read back{why}"
        actuator.confirm(client, prepared.in_force, timeout_s=settings.effect_s, every_s=0.05)
    except Unreachable as error:
        if why:
            return f"{what} written{why}; correct them before it is started ({error.what})"
        also = f", or {_BY_ITSELF}" if isinstance(actuator, FileActuator) else ", or by `yarn rmadmin -refreshQueues`"
        return f"{what} written; {error.what}: in force when it starts{also}"
    return f"{what} in force{why}"
