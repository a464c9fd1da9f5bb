"""A lease that allows one controller at a time: a small file beside the allocation file, in the same store.

The holder rewrites the file with an increasing count. Another controller takes over only after the count has not
changed for the lease's duration by its own clock, so the clocks need not agree. A check and the following write are not
atomic: the last writer holds the lease, and the previous holder notices this at its next check. Two controllers with
the same ledger are kept apart by the ledger's own lock. The same ledger counts as the same holder, so a controller that
was killed can resume at once.

A standby controller regularly rewrites a file of its own beside the lease (its sign of life), so that a holder that is
stopped knows whether it can hand over.

The holder also announces in the lease which values of the file are the administrator's and which are managed. Without
this, a controller with another ledger would see only the file and mistake the controller's weights for entitlements.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import socket
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from harness.base.errors import InputError, YarnfairError
from harness.control.processes import boot_id, is_dead, this_process
from harness.yarn.files import ConfigStore, always

#: The holder renews the lease after this fraction of its duration.
RENEW_PART = 1 / 3


#: Name of the ledger document that records since when another holder's lease has been unchanged.
SEEN = "lease_seen"


class Memory(Protocol):
    """A store in which a lease keeps its observations across process restarts, such as a `LedgerStore`."""

    def document(self, name: str) -> Any:
        """Return the named document; None if there is none."""

    def commit(self, *, documents: Mapping[str, object] | None = None) -> None:
        """Store named documents."""


class HeldByAnother(InputError):
    """Another controller holds the lease."""


class _Beside(ConfigStore):
    """A file beside an allocation file, wherever symbolic links lead to the allocation file at the moment.

    Administrators switch a link to another folder or file (releases, mounted configurations). Everybody who opens the
    allocation file afterwards looks for the lease beside the new one.
    """

    def __init__(self, store: ConfigStore, ending: str) -> None:
        self._store, self._ending = store, ending

    def _now(self) -> ConfigStore:
        return self._store.beside(f".{self._store.file_name}.{self._ending}")

    @property
    def name(self) -> str:  # type: ignore[override]
        return self._now().name

    @property
    def file_name(self) -> str:
        return self._now().file_name

    def read(self) -> bytes:
        return self._now().read()

    def _put(self, data: bytes, still: Callable[[], None] = always) -> None:
        self._now()._put(data, still)

    def remove(self) -> None:
        self._now().remove()

    def clear(self) -> int:
        return self._now().clear()


def lease_store(store: ConfigStore) -> ConfigStore:
    """Return the store of the lease file beside an allocation file."""
    return _Beside(store, "lease")


def lease_of(
    store: ConfigStore, owner: str, lease_s: float, clock: Callable[[], float], memory: Memory | None = None
) -> Lease:
    """Return the lease of an allocation file."""
    return Lease(lease_store(store), owner, lease_s, clock, _Beside(store, "standby"), memory)


class Lease:
    """The right to write one allocation file.

    Parameters
    ----------
    store : ConfigStore
        Store of the lease file.
    owner : str
        Identity of this controller's ledger.
    lease_s : float
        Seconds without a renewal after which another controller may take the lease.
    clock : Callable
        Returns seconds since the machine was started; never goes back.
    standby : ConfigStore or None
        Store of the standby controllers' sign of life (None: there is none).
    memory : Memory or None
        Store of the time since which another holder's lease has been unchanged (None: not stored).
    """

    def __init__(
        self,
        store: ConfigStore,
        owner: str,
        lease_s: float,
        clock: Callable[[], float],
        standby: ConfigStore | None = None,
        memory: Memory | None = None,
    ) -> None:
        self._memory = memory
        self.store, self.owner, self.lease_s, self.standby = store, owner, lease_s, standby
        self._signed_s: float | None = None
        #: Last content of the standby file, and the time when this process last saw it change (None: never).
        self._sign: tuple[bytes, float | None] | None = None
        self._clock = clock
        self._count = 0
        self._renewed_s: float | None = None
        #: Content of another holder's lease, and the time since which it has been unchanged.
        self._seen: tuple[bytes, float] | None = None
        #: Content of another holder's lease at the last check.
        self._stood: bytes | None = None
        #: Whether another holder's lease has changed since the first check, so that its holder is running.
        self.other_lives = False
        #: Whether the lease belonged to this ledger when it was read before the first renewal: a killed holder resumes.
        self.goes_on = False
        #: The holder's announcement about the file (`keep`), as last read or written.
        self.announced: dict[str, Any] = {}
        #: Whether the announcement still has to be written, because writing it failed.
        self._unannounced = False
        #: `announced_by`: identity of the announcement's author. `heard`: whether the lease last read (another holder's
        #: or a vacant one) contains an announcement.
        self.announced_by, self.heard = "", False
        #: Whether the content last read was not a valid lease.
        self._nonsense = False
        #: Whether this controller took over without the previous holder's last announcement. It then announces nothing.
        self._silent = False
        #: Whether the lease last read was written by this ledger's controller after such a takeover.
        self._was_silent = False
        #: Document of the holder's release by a guard (harness.control.released); None: no release.
        self.released: dict[str, Any] | None = None

    def hold(self, *, take: bool = True, waits: bool = False) -> None:
        """Take or renew the lease.

        Parameters
        ----------
        take : bool
            Whether to take over a lease that is vacant or that another controller no longer renews, and to renew this
            ledger's own lease after a restart of the process.
        waits : bool
            Whether to wait for the lease's duration while the lease is unreadable, or after another holder's lease was
            deleted: a running holder will rewrite it with its announcement. A controller that takes it at once lacks
            the last announcement and may mistake a controller's weights for the administrator's.

        Raises
        ------
        HeldByAnother
            Another controller holds the lease, or may hold it.
        InputError
            The lease cannot be read or written, or it is vacant and ``take`` is false.
        """
        now = self._clock()
        if self._renewed_s is not None and now - self._renewed_s < self.lease_s * RENEW_PART:
            return
        data, found = self._read()
        holder = found.get("owner", "")
        gone = not data and self._stood is not None
        lost = gone or (self._nonsense and bool(data))
        if self._renewed_s is None or holder not in ("", self.owner):
            self.goes_on = holder == self.owner
            self._was_silent = self.goes_on and found.get("lost") is True
            self._take_words(found)
        if lost and waits and self._renewed_s is None and self._still_s(data, now) < self.lease_s:
            raise HeldByAnother(
                f"the lease {'is gone' if gone else 'cannot be read'}: another controller may hold it",
                where=self.store.name,
                hint=f"wait: a living holder writes it again, else this one takes it after {self.lease_s:g} s",
            )
        if holder and holder != self.owner and not is_dead(found):
            self._renewed_s = None
            still = self._still_s(data, now)
            allowed = _seconds(found.get("lease_s"), self.lease_s)
            if still < allowed or not take:
                raise HeldByAnother(
                    f"another controller writes this file ({_who(found)})",
                    where=self.store.name,
                    # A constant text: a standby reports it in every period, and the log should contain it once.
                    hint=f"stop it; or wait: {allowed:g} s after its last sign of life it is taken over, "
                    "by the next try where this one ends",
                )
        if not take and (holder != self.owner or self._renewed_s is None):
            whose = "its own" if holder == self.owner else "one that nobody holds"
            raise InputError(
                f"this controller does not sign the lease, {whose}: for too long it has seen no ResourceManager, or "
                "could not read or write",
                where=self.store.name,
                hint="its other alarms say what keeps it",
            )
        if self._renewed_s is None and self.words_lost:
            self.announced, self._silent = {}, True
        self._renew(now, data)

    def _still_s(self, data: bytes, now: float) -> float:
        """Return for how many seconds the lease has been unchanged, as observed by this or an earlier process."""
        return now - self._seen_since(data, now)

    def _seen_since(self, data: bytes, now: float) -> float:
        """Return the time since which another holder's lease has been unchanged, as observed by any process."""
        if self._seen is not None and self._seen[0] == data:
            return self._seen[1]
        since = now
        digest, boot = hashlib.sha256(data).hexdigest(), boot_id()
        if self._memory is not None and boot:
            with contextlib.suppress(YarnfairError):
                known = self._memory.document(SEEN) if self._seen is None else None
                if isinstance(known, dict) and (known.get("lease"), known.get("boot")) == (digest, boot):
                    since = min(_seconds_or(known.get("since_s"), now), now)
                else:
                    self._memory.commit(documents={SEEN: {"lease": digest, "boot": boot, "since_s": now}})
        self._seen = (data, since)
        return since

    def holder(self) -> str:
        """Describe the lease holder; '' for nobody. InputError if the lease cannot be read."""
        _, found = self._read()
        self._take_words(found)
        return _who(found) if found.get("owner") else ""

    def keep(self, announced: Mapping[str, object], released: Mapping[str, object] | None = None) -> None:
        """Store the announcement before the file is written, and check that this controller still holds the lease.

        Raises HeldByAnother, or InputError if the lease cannot be read or written.
        """
        data, found = self._read()
        holder = found.get("owner", "")
        if holder and holder != self.owner:
            self._renewed_s = None
            raise HeldByAnother(
                f"another controller has taken over ({_who(found)})", where=self.store.name, hint="stop one of them"
            )
        new = None if released is None else dict(released)
        same = dict(announced) == self.announced and self.announced_by == self.owner and new == self.released
        if self._unannounced or not same:
            # Store a copy, because the caller continues to change its document.
            self.announced, self.announced_by, self.released = json.loads(json.dumps(dict(announced))), self.owner, new
            self._silent, self._unannounced = False, True
            self._renew(self._clock(), data)
        elif not data or self._renewed_s is None or self._clock() - self._renewed_s >= self.lease_s * RENEW_PART:
            # The write that follows must finish before the lease expires. A lease that somebody has deleted, or that is
            # not beside the file to which a link leads now, tells nobody.
            self._renew(self._clock(), data)

    def lasts(self) -> None:
        """Raise InputError if the lease may have expired: the current operation took too long."""
        if self._renewed_s is None or self._clock() - self._renewed_s >= self.lease_s:
            raise InputError(
                f"not written: it took longer than the lease lasts ({self.lease_s:g} s)",
                where=self.store.name,
                hint="the next round tries it again; where this lasts, make lease_s longer",
            )

    def _renew(self, now: float, before: bytes) -> None:
        """Write the lease, unless somebody else has written it since ``before`` was read.

        Over a network, the time between the read and the write can be considerable.
        """

        def unchanged() -> None:
            data, found = self._read()
            if data != before:
                if found.get("owner", "") not in ("", self.owner):
                    self._renewed_s = None
                raise HeldByAnother(
                    "another controller has just signed the lease",
                    where=self.store.name,
                    hint="the next round looks again",
                )

        self._count += 1
        self.store.write(self._document(self.owner), still=unchanged)
        self._renewed_s, self._seen, self._unannounced = now, None, False
        self._watch(now)

    def give_back(self) -> None:
        """Release the lease if this controller holds it. Errors are ignored, because the lease expires by itself."""
        try:
            if self._renewed_s is not None and self._read()[1].get("owner") == self.owner:
                self.store.write(self._document(""))
        except YarnfairError:
            pass
        self._renewed_s = None

    def end(self) -> None:
        """Remove this controller's lease or standby file. Errors are ignored as in `give_back`.

        If a standby file of another ledger exists, the lease is left vacant instead, because a standby would wait for
        the holder of a deleted lease.
        """
        try:
            if self._renewed_s is not None and self._read()[1].get("owner") == self.owner:
                if self.spare():
                    self.store.write(self._document(""))
                else:
                    self.store.remove()
                self.clear()
            if self.standby is not None and (self._signed_s is not None or self._renewed_s is not None):
                self.standby.remove()
        except YarnfairError:
            pass
        self._renewed_s = self._signed_s = None

    def clear(self) -> None:
        """Remove temporary files of killed holders and standbys. Raises InputError or Unreachable."""
        self.store.clear()
        if self.standby is not None:
            self.standby.clear()

    def has_successor(self) -> bool:
        """Return whether this process has seen a standby renew its sign of life within the lease's duration."""
        now = self._clock()
        self._watch(now)
        moved_s = self._sign[1] if self._sign is not None else None
        return moved_s is not None and now - moved_s <= self.lease_s

    def taken(self) -> bool:
        """Return whether another controller holds the lease now; False if it cannot be read."""
        try:
            return self._read()[1].get("owner", "") not in ("", self.owner)
        except YarnfairError:
            return False

    def other_holder(self) -> str:
        """Describe another holder, whether or not it is running ('': there is none). Writes nothing."""
        found = self._read()[1]
        self._take_words(found)
        return _who(found) if found.get("owner", "") not in ("", self.owner) else ""

    def spare(self) -> bool:
        """Whether there is a sign of life of a standby with another ledger, whether or not it is still running."""
        try:
            found = json.loads(self.standby.read()) if self.standby is not None else None
        except (YarnfairError, ValueError, RecursionError):
            return False
        return isinstance(found, dict) and found.get("owner", self.owner) != self.owner

    def give_sign(self) -> None:
        """Renew this standby's sign of life. Errors are ignored; the holder then does not hand over to it."""
        now = self._clock()
        if self.standby is None or (self._signed_s is not None and now - self._signed_s < self.lease_s * RENEW_PART):
            return
        self._count += 1
        self._signed_s = now
        # A standby that cannot write its file is invisible to the holder, but it still takes over an expired lease.
        with contextlib.suppress(YarnfairError):
            self.standby.write(json.dumps({"owner": self.owner, "count": self._count}).encode() + b"\n")

    def _watch(self, now: float) -> None:
        """Record whether the standby file has changed, which shows that a standby is running."""
        if self.standby is None:
            return
        try:
            announced = self.standby.read()
        except YarnfairError:
            self._sign = None
            return
        if self._sign is None:
            self._sign = (announced, None)
        elif announced != self._sign[0]:
            self._sign = (announced, now)

    def _document(self, owner: str) -> bytes:
        announced = {
            "owner": owner,
            "host": socket.gethostname(),
            **this_process(),
            "count": self._count,
            "lease_s": self.lease_s,
            "said": self.announced,
            "said_by": "" if self._silent else self.announced_by,
            "lost": self._silent,
            "released": self.released,
        }
        return json.dumps(announced).encode() + b"\n"

    def _read(self) -> tuple[bytes, dict[str, Any]]:
        """Read the lease. A missing or invalid lease is vacant."""
        try:
            data = self.store.read()
        except InputError as error:
            if isinstance(error, HeldByAnother) or not _missing(error):
                raise
            self._nonsense = False
            return b"", {}
        try:
            found = json.loads(data)
        except (ValueError, RecursionError):
            found = None
        self._nonsense = not isinstance(found, dict)
        if not isinstance(found, dict):
            return data, {}
        owner = found.get("owner", "")
        if owner != self.owner:
            # A lease that became vacant between two reads has changed, too: its holder was running.
            self.other_lives |= self._stood is not None and data != self._stood
            if owner:
                self._stood = data
        return data, found

    def forget_announced(self) -> None:
        """Discard the announcement, because it is invalid."""
        self.announced, self.announced_by, self.heard = {}, "", False

    @property
    def words_lost(self) -> bool:
        """Whether there was (or may have been) another holder whose last announcement is no longer available."""
        return (self._stood is not None or self._nonsense or self._was_silent) and not self.heard

    def _take_words(self, found: Mapping[str, object]) -> None:
        """Take over the lease's announcement. The holder does not call this: it announces its own values."""
        announced, by = found.get("said"), found.get("said_by")
        self.heard = isinstance(announced, dict) and isinstance(by, str) and by != ""
        if isinstance(announced, dict) and isinstance(by, str):
            self.announced, self.announced_by = announced, by
            released = found.get("released")
            self.released = released if isinstance(released, dict) else None


def _missing(error: InputError) -> bool:
    text = error.what
    return "No such file" in text or "FileNotFoundException" in text


def _seconds(value: Any, otherwise: float) -> float:
    good = isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < 86_400
    return float(value) if good else otherwise


def _seconds_or(value: Any, otherwise: float) -> float:
    good = isinstance(value, int | float) and not isinstance(value, bool) and value >= 0
    return float(value) if good else otherwise


def _who(found: dict[str, Any]) -> str:
    return f"host {str(found.get('host'))[:60]}, process {str(found.get('pid'))[:12]}"
