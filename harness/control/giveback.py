"""Restore the administrator's configuration; this needs only the ledger and the file, not a running RM.

The actuator (harness.control.file_actuator) knows who owns which value. This module defines the order of the steps:
file, refresh, bookkeeping. With this order, a full disk under the ledger does not keep the controller's values in
force. A process killed between two steps leaves either the controller's or the administrator's file, and the next
process can tell which of them it is.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from harness.base.errors import InputError, YarnfairError
from harness.control.actuator import Prepared
from harness.control.gate import in_short
from harness.control.identity import OtherCluster
from harness.control.interfaces import Actuator
from harness.control.lease import HeldByAnother, Lease, lease_store
from harness.control.ownership import generation_of
from harness.control.settings import ControlSettings
from harness.control.values import Nonsense
from harness.ledger.store import LedgerStore
from harness.yarn.capacity.source import RestoredValues
from harness.yarn.errors import Refused, Unreachable
from harness.yarn.files import FileChanged, always

#: Name of the ledger document with the path of the file that was written last, with links resolved.
LOCATION = "location"
#: Waits before further attempts to restore while somebody else keeps changing the configuration, seconds. A
#: ResourceManager may also answer with its old configuration for some seconds after a change of its store.
_WAITS_S = (0.0, 0.5, 1.5, 4.0, 8.0)
#: Most attempts after requests to the ResourceManager that were not answered: each may take its whole time.
_MOST_UNANSWERED = 3
ClientT = TypeVar("ClientT")


@dataclass(frozen=True, slots=True)
class Release:
    """The result of a release.

    Parameters
    ----------
    words
        Message that describes what is written and in force.
    failed
        Whether something differs from the administrator's configuration, so that somebody must act.
    notes
        Minor failures as (kind, text). None of them prevents the administrator's values from being restored.
    prepared
        The document that was written.
    """

    words: str
    failed: bool
    notes: tuple[tuple[str, str], ...]
    prepared: Prepared


class NotReleased(InputError):
    """The administrator's values are not in force, and waiting will not change that."""


def release(
    actuator: Actuator[ClientT],
    store: LedgerStore,
    lease: Lease | None,
    open_client: Callable[[], ClientT | None],
    settings: ControlSettings,
    released: Mapping[str, object] | None = None,
    recognise: Callable[[ClientT], None] = lambda _: None,
    sleep: Callable[[float], None] = time.sleep,
    *,
    repeats: bool = True,
) -> Release:
    """Restore the administrator's values: in the file, then in the ResourceManager, finally in the bookkeeping.

    A failure of the bookkeeping (ledger, lease) does not prevent the values from being restored.

    Parameters
    ----------
    actuator : Actuator
        The managed configuration.
    store : LedgerStore
        The ledger.
    lease : Lease or None
        The lease (None: no lease is used).
    open_client : Callable
        Called once the file is written. It returns None or raises Unreachable if there is no RM.
    settings : ControlSettings
        The controller's settings.
    released : Mapping or None
        Document of a guard's release (harness.control.released). If given, the lease is kept and announces the release;
        otherwise a standby controller may take over.
    recognise : Callable
        Called before a ResourceManager is refreshed. It raises OtherCluster if the RM belongs to another cluster.
    sleep : Callable
        Waits for so many seconds before a further attempt.
    repeats : bool
        Whether requests that the ResourceManager does not answer are repeated. A control period does without, because
        the next one tries again.

    Raises
    ------
    HeldByAnother
        Another controller holds the lease; nothing is touched.
    OtherCluster
        The store to be changed belongs to another cluster; nothing is touched.
    YarnfairError
        The configuration cannot be read or written.
    """
    notes: list[tuple[str, str]] = []
    if text := restore_left(actuator, store):
        notes.append(("note", text))
    signed = lease is not None and _noted(notes, "lease", lease.hold)
    if lease is not None:
        adopt(actuator, store, lease)
    if text := adopt_latest(actuator, store):
        notes.append(("backup", text))
    unanswered, most = 0, _MOST_UNANSWERED if repeats else 1
    for attempt in range(len(_WAITS_S) + 1):
        try:
            actuator.read()
        except InputError as error:
            # A write that was not answered may have been carried out, so the store is asked again.
            if isinstance(error, Unreachable) and 0 < unanswered < most:
                unanswered += 1
                sleep(_WAITS_S[attempt])
                continue
            found = _restore_written(actuator, error, _still(lease, signed=signed))
            failed, words = _load_unread(actuator, error, found, open_client, settings, recognise)
            if not found.missing:
                actuator.forget()
            _keep_books(actuator, store, lease if signed else None, released, notes)
            return Release(words, failed, tuple(dict.fromkeys(notes)), Prepared(b"", b"", {}))
        prepared = actuator.original()
        if lease is not None:
            signed &= _noted(notes, "lease", partial(lease.keep, actuator.document(), released))
        try:
            refused = _write(actuator, prepared, _still(lease, signed=signed))
            break
        except (FileChanged, Unreachable) as error:
            unanswered += isinstance(error, Unreachable)
            if attempt == len(_WAITS_S) or unanswered >= most:
                raise
            sleep(_WAITS_S[attempt])
    refusals = (*actuator.refusals(), *actuator.problems_of(prepared))
    notes += [("release", problem) for problem in prepared.problems]
    if actuator.beside is not None:
        notes += [("release", text) for text in actuator.beside.remarks()]
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
            words = put_in_force(actuator, prepared, client, settings, refusals, sleep if repeats else None)
            taken = actuator.load_validates and words.startswith(f"{_restored(actuator)} in force")
            failed = bool(refusals) and not taken
        except YarnfairError as error:
            words = f"{_restored(actuator)} written, but not in force: {error.line()}"
        actuator.forget()
    _keep_books(actuator, store, lease if signed and not refused else None, released, notes)
    return Release(words, failed, tuple(dict.fromkeys(notes)), prepared)


def _keep_books(
    actuator: Actuator[ClientT],
    store: LedgerStore,
    lease: Lease | None,
    released: Mapping[str, object] | None,
    notes: list[tuple[str, str]],
) -> None:
    """Note in ledger and lease (None: not ours, or still needed) that the administrator's values are restored."""
    _noted(notes, "ledger", lambda: store.commit(documents=actuator.document() | _given_back(store)))
    _noted(notes, "file", lambda: clear(actuator, lease))
    if lease is not None:
        _noted(notes, "lease", partial(lease.keep, {}, released))
        if released is None:
            lease.end()


def _restore_written(actuator: Actuator[ClientT], why: InputError, still: Callable[[], None]) -> RestoredValues:
    """Restore what the controller has written in a configuration that cannot be read otherwise (``why``).

    Raises ``why`` where there is no such way, and if nothing that the controller has written is there.
    """
    try:
        found = actuator.restore_written(still)
    except (HeldByAnother, FileChanged):
        raise
    except InputError:
        raise why from None
    if found is None or not found.restored:
        raise why
    return found


def _load_unread(
    actuator: Actuator[ClientT],
    why: InputError,
    found: RestoredValues,
    open_client: Callable[[], ClientT | None],
    settings: ControlSettings,
    recognise: Callable[[ClientT], None],
) -> tuple[bool, str]:
    """Make the RM load a configuration that this program cannot read; return whether that failed, and a description."""
    what = f"the administrator's own values of {_some(found.restored)} are written"
    rest = f" (the file was not checked: {why.line()})"
    if found.missing:
        rest = f"; {_some(found.missing)} cannot be given back, because the file does not have them any more{rest}"
    missing = bool(found.missing)
    if settings.refresh == "poll":
        return missing, f"{what}; in force {actuator.loaded_otherwise}{rest}"
    try:
        client = open_client()
        if client is None:
            raise Unreachable("no ResourceManager was told")
        _recognise(client, recognise)
        actuator.load(client)
    except Unreachable as error:
        return missing, f"{what}; {error.what}: in force when it starts, or {actuator.loaded_otherwise}{rest}"
    except YarnfairError as error:
        return True, f"{what}, but not in force: {error.line()}{rest}"
    return missing, f"{what} and loaded{rest}"


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")


def restore_left(actuator: Actuator[ClientT], store: LedgerStore) -> str:
    """Restore the administrator's values in a file to which a symbolic link has led until now.

    Call it before the configuration is read again, because a file that this process has written is recognised by its
    content. One that an earlier process wrote is found by the ledger (`LOCATION`), and held against its values. The
    lease of this ledger is removed there. Returns a description ('': no link has been changed).
    """
    place = actuator.beside
    if place is None:
        return ""
    before = store.document(LOCATION)
    left = place.left()
    read = left is not None
    if left is None and isinstance(before, str):
        left = place.at(before)
    if left is None:
        return ""
    _noted([], "ledger", lambda: store.commit(documents={LOCATION: None}))
    what = f"{place.name} leads to another file now; {left.name}, to which it led before,"
    try:
        old = Lease(lease_store(left), store.identity, 1.0, time.monotonic)
        held = old.other_holder()
        original = _original_read(actuator) if read else None
        if original is not None:
            left.write(original.after, before=original.before)
        elif held:
            return f"{what} has another controller now"
        elif not actuator.restore_other(left, store.document):
            return ""
        if not held:
            left.clear()
            old.store.remove()
    except YarnfairError as error:
        return f"{what} may still have what was written there: {error.line()}"
    return f"{what} has the administrator's own {actuator.values_name} again"


def _original_read(actuator: Actuator[ClientT]) -> Prepared | None:
    """Prepare the administrator's file from the last read; None if there was none since the start or a reload."""
    try:
        return actuator.original()
    except InputError:
        return None


def _recognise(client: ClientT, recognise: Callable[[ClientT], None]) -> None:
    """Raise OtherCluster if the ResourceManager to be refreshed belongs to another cluster.

    A ResourceManager that does not answer, or whose answers are invalid, is refreshed all the same.
    """
    try:
        recognise(client)
    except OtherCluster:
        raise
    except YarnfairError:
        return


def _write(actuator: Actuator[ClientT], prepared: Prepared, still: Callable[[], None]) -> dict[str, str]:
    """Write the prepared document; return the parents of the groups that a store refused, with the reasons."""
    try:
        actuator.write(prepared, still)
    except Refused:
        if actuator.beside is not None:
            raise
        return actuator.write_groups(prepared, still)
    return {}


def _still(lease: Lease | None, *, signed: bool) -> Callable[[], None]:
    """Return a function that raises if another controller holds the lease; it runs just before the file is replaced.

    A lease that cannot be written (full disk) does not prevent the restore.
    """
    if lease is None:
        return always
    if signed:
        return lease.lasts

    def nobody_else() -> None:
        if lease.taken():
            raise HeldByAnother("another controller has taken over", where=lease.store.name, hint="stop one of them")

    return nobody_else


def _noted(notes: list[tuple[str, str]], kind: str, do: Callable[[], object]) -> bool:
    """Run a bookkeeping step; return whether it succeeded.

    A failure is noted, except HeldByAnother, which is raised.
    """
    try:
        do()
    except HeldByAnother:
        raise
    except YarnfairError as error:
        notes.append((kind, error.line()))
        return False
    return True


def give_back(
    actuator: Actuator[ClientT], store: LedgerStore, lease: Lease | None, released: Mapping[str, object] | None = None
) -> Prepared:
    """Restore the administrator's values without refreshing a ResourceManager; return the document.

    Raises what `release` raises, and NotReleased.
    """
    settings = ControlSettings(refresh="poll")
    done = release(actuator, store, lease, lambda: None, settings, released)
    if done.failed:
        raise NotReleased(done.words)
    return done.prepared


def _given_back(store: LedgerStore) -> dict[str, Any]:
    """Return the last poll's document, marked as restored: its weights are no longer in force."""
    look = store.document("look")
    return {"look": {**look, "given_back": True}} if isinstance(look, dict) else {}


def adopt(actuator: Actuator[ClientT], store: LedgerStore, lease: Lease) -> str:
    """Take over the lease's announced document, unless the ledger itself is up to date. Raises InputError.

    The controller's own announcement is taken over if it is newer than the ledger, that is, if an older copy of the
    ledger was restored; the returned text reports this ('': nothing to report). An invalid document is discarded: a
    controller that knows the file can continue and restore it.
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
            # A controller that resumes its own lease treats the file as if it had never stopped.
            actuator.adopt(lease.announced, lives=lease.other_lives or lease.goes_on)
        except Nonsense:
            lease.forget_announced()
            if not actuator.baseline:
                raise
    return ""


def adopt_latest(actuator: Actuator[ClientT], store: LedgerStore) -> str:
    """Bring the state of a ledger that is an older copy up to date, unless the lease has already done so (`adopt`).

    The lock file beside the ledger records who owns the values in the configuration. If it does not, the configuration
    is compared with the copy's values (`Actuator.hold_against_file`). Returns a description of what was done ('': the
    ledger is not a copy). Raises what reading the configuration raises; then nothing is changed.
    """
    before, seen = actuator.generation, store.seen_generation
    if before >= seen:
        return ""
    copy = f"the ledger is an older copy (generation {before} of {seen})"
    if (latest := store.latest_ownership()) is not None:
        with contextlib.suppress(Nonsense):
            actuator.adopt(latest)
            return (
                f"{copy}: whose the values in the file are was taken from the lock file beside it, and what was "
                "counted since the copy, from what the ResourceManager still retains"
            )
    actuator.hold_against_file()
    actuator.read()
    actuator.generation = seen
    text = (
        f"{copy}, and neither a lease nor its lock file tells whose the values in the file are: round ones are taken "
        "for the administrator's, the others as the copy knows them"
    )
    if unknown := actuator.unknown_shares():
        text += f"; name these in `queues` if they are not yours: {', '.join(unknown[:5])}"
    return text


def clear(actuator: Actuator[ClientT], lease: Lease | None) -> None:
    """Remove temporary files of killed writers. Only for the lease holder, when nobody else is writing."""
    if actuator.beside is not None:
        actuator.beside.clear()
    if lease is not None:
        lease.clear()


def _restored(actuator: Actuator[ClientT]) -> str:
    return f"the administrator's own {actuator.values_name} are"


def _load(actuator: Actuator[ClientT], client: ClientT, sleep: Callable[[float], None] | None) -> None:
    """Make the RM load the configuration; repeat a request that was not answered. Raises the last failure."""
    for count in range(1, _MOST_UNANSWERED + 1):
        try:
            actuator.load(client)
            return
        except Unreachable:
            if sleep is None or count == _MOST_UNANSWERED:
                raise
            sleep(_WAITS_S[count])


def put_in_force(
    actuator: Actuator[ClientT],
    prepared: Prepared,
    client: ClientT | None,
    settings: ControlSettings,
    refusals: Sequence[str] = (),
    sleep: Callable[[float], None] | None = None,
) -> str:
    """Make the RM load the restored configuration and verify it; return a description of the result.

    An RM that does not answer (``client`` None: none was found) loads the file when it starts; the Fair Scheduler also
    loads it at its next poll. Whether a request that was not answered was carried out is unknown, so it is repeated
    after a wait (``sleep``; None: it is not). ``refusals``: the reasons for which the RM would refuse the file. Raises
    all failures except Unreachable.
    """
    what = _restored(actuator)
    why = f", but a ResourceManager would refuse them: {in_short(refusals)}" if refusals else ""
    if settings.refresh == "poll":
        return f"{what} written{why}" if why else f"{what} written; in force {actuator.loaded_otherwise}"
    try:
        if client is None:
            raise Unreachable("no ResourceManager was told")
        _load(actuator, client, sleep)
        if not settings.read_back:
            return f"{what} written and refreshed, not read back{why}"
        actuator.confirm(client, prepared.in_force, timeout_s=settings.effect_s, every_s=0.05)
    except Unreachable as error:
        if why:
            return f"{what} written{why}; correct them before it is started ({error.what})"
        return f"{what} written; {error.what}: in force when it starts, or {actuator.loaded_otherwise}"
    return f"{what} in force{why}"
