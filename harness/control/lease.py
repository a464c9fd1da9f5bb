"""One controller at a time: a lease in a small file beside the allocation file, wherever that lies.

The holder rewrites it with a new count; another controller takes over only when the count has stood still for the
lease's time by its own clock, so that clocks need not agree. Between looking and writing lies a moment: whoever
writes last has it, and the other sees that at its next look. Two controllers with the same ledger are kept apart by
the ledger's own lock; the same ledger is the same holder, so a controller that was killed goes on at once.

A spare controller gives a sign of life of its own beside the lease, so that a holder that is stopped can hand over.

The holder also says there which values of the file are the administrator's and which its own: a controller with another
ledger, which sees the file alone, would take momentary weights for entitlements.
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
from harness.yarn.files import ConfigStore

#: The holder renews when this part of the lease's time has passed.
RENEW_PART = 1 / 3


#: The ledger's document of the lease that is being watched.
SEEN = "lease_seen"


class Memory(Protocol):
    """Where a lease remembers what it has seen, from one process to the next; a `LedgerStore` is one."""

    def document(self, name: str) -> Any:
        """Return a named document; None if there is none."""

    def commit(self, *, documents: Mapping[str, Any] | None = None) -> None:
        """Keep named documents."""


class HeldByAnother(InputError):
    """Another controller holds the lease."""


def lease_place(place: ConfigStore) -> ConfigStore:
    """The file beside an allocation file in which the lease stands."""
    return place.beside(f".{place.file_name}.lease")


def lease_of(
    place: ConfigStore, owner: str, lease_s: float, clock: Callable[[], float], memory: Memory | None = None
) -> Lease:
    """The lease of an allocation file."""
    return Lease(lease_place(place), owner, lease_s, clock, place.beside(f".{place.file_name}.standby"), memory)


class Lease:
    """The right to write one allocation file.

    Parameters
    ----------
    place : where the lease stands.
    owner : who asks: the ledger's identity.
    lease_s : after so long without a sign of life somebody else may take it.
    clock : seconds since the machine was started, never going back.
    standby : where spares give signs of life (None: nowhere).
    memory : where it is remembered since when another holder's lease has stood still (None: nowhere).
    """

    def __init__(
        self,
        place: ConfigStore,
        owner: str,
        lease_s: float,
        clock: Callable[[], float],
        standby: ConfigStore | None = None,
        memory: Memory | None = None,
    ) -> None:
        self._memory = memory
        self.place, self.owner, self.lease_s, self.standby = place, owner, lease_s, standby
        self._signed_s: float | None = None
        #: What the spares' file said last, and when that had last changed under our eyes.
        self._sign: tuple[bytes, float | None] | None = None
        self._clock = clock
        self._count = 0
        self._renewed_s: float | None = None
        #: What another holder's lease said, and since when it has said that.
        self._seen: tuple[bytes, float] | None = None
        #: What stood there at the last look, of another holder; whether one has given a sign of life since the first.
        self._stood: bytes | None = None
        self.other_lives = False
        #: Whether it was its own when it was read last before it was signed: a holder that was killed goes on.
        self.goes_on = False
        #: What the holder says of the file (`keep`), as it was last read or written.
        self.announced: dict[str, Any] = {}
        #: Whether that is still to be written: a write of it failed.
        self._unannounced = False
        #: Who said that; whether the lease that was read last of another holder, or of nobody, says anything of it.
        self.announced_by, self.heard = "", False
        #: Whether what was read last was somebody's nonsense in place of a lease.
        self._nonsense = False
        #: Whether it took over with words that are older than what the holder before did: it passes on none.
        self._silent = False
        #: Whether what was read last was its own lease of such a moment, after which it was killed.
        self._was_silent = False
        #: That a guard of the holder's has released (harness.control.released), None: none has.
        self.released: dict[str, Any] | None = None

    def hold(self, *, take: bool = True, informed: bool = True) -> None:
        """Take or keep the lease.

        Parameters
        ----------
        take : whether a lease that another controller no longer renews, or that nobody holds, is taken over.
        informed : whether the caller knows the administrator's values already. A caller that does not waits where
            something unreadable stands in place of the lease: a holder that lives writes its words there again.

        Raises
        ------
        HeldByAnother
            Another controller holds the lease, or may hold it.
        InputError
            The lease cannot be read or written, or nobody holds it and ``take`` is false.
        """
        now = self._clock()
        if self._renewed_s is not None and now - self._renewed_s < self.lease_s * RENEW_PART:
            return
        data, found = self._read()
        holder = found.get("owner", "")
        unreadable = self._nonsense and bool(data)
        if unreadable and self._renewed_s is None and not informed and self._still_s(data, now) < self.lease_s:
            raise HeldByAnother(
                "the lease cannot be read: another controller may hold it",
                where=self.place.name,
                hint=f"wait: a living holder writes it again, else this one takes it after {self.lease_s:g} s",
            )
        if self._renewed_s is None or holder not in ("", self.owner):
            self.goes_on = holder == self.owner
            self._was_silent = self.goes_on and found.get("lost") is True
            self._take_words(found)
        if holder and holder != self.owner and not is_dead(found):
            self._renewed_s = None
            still = self._still_s(data, now)
            allowed = _seconds(found.get("lease_s"), self.lease_s)
            if still < allowed or not take:
                raise HeldByAnother(
                    f"another controller writes this file ({_who(found)})",
                    where=self.place.name,
                    # The same words each time: a spare says this in every period, and a log has one line of it.
                    hint=f"stop it; or wait: {allowed:g} s after its last sign of life it is taken over, "
                    "by the next try where this one ends",
                )
        if holder != self.owner and not take:
            raise InputError(
                "nobody holds the lease, and this controller does not take it: it sees no ResourceManager",
                where=self.place.name,
                hint="check the ResourceManager's address",
            )
        if self._renewed_s is None and self.words_lost:
            self.announced, self._silent = {}, True
        self._renew(now, data)

    def _still_s(self, data: bytes, now: float) -> float:
        """For how long the lease has said this, as far as this or an earlier process has looked."""
        return now - self._seen_since(data, now)

    def _seen_since(self, data: bytes, now: float) -> float:
        """Since when another holder's lease has stood there as it does, as far as this or an earlier process saw."""
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
        """Who holds the lease, in words; '' for nobody. InputError where it cannot be read."""
        _, found = self._read()
        self._take_words(found)
        return _who(found) if found.get("owner") else ""

    def keep(self, announced: Mapping[str, Any], released: Mapping[str, Any] | None = None) -> None:
        """What the holder says of the file, before it writes it; looks whether the lease is still its own.

        Raises HeldByAnother, or what keeps it from being read or written (InputError).
        """
        data, found = self._read()
        holder = found.get("owner", "")
        if holder and holder != self.owner:
            self._renewed_s = None
            raise HeldByAnother(
                f"another controller has taken over ({_who(found)})", where=self.place.name, hint="stop one of them"
            )
        new = None if released is None else dict(released)
        same = dict(announced) == self.announced and self.announced_by == self.owner and new == self.released
        if self._unannounced or not same:
            # A copy, as whoever reads it has it: the owner goes on changing its own.
            self.announced, self.announced_by, self.released = json.loads(json.dumps(dict(announced))), self.owner, new
            self._silent, self._unannounced = False, True
            self._renew(self._clock(), data)
        elif self._renewed_s is None or self._clock() - self._renewed_s >= self.lease_s * RENEW_PART:
            # What is written next is to be over before the lease is.
            self._renew(self._clock(), data)

    def lasts(self) -> None:
        """InputError where the lease may be over by now: what is under way took too long."""
        if self._renewed_s is None or self._clock() - self._renewed_s >= self.lease_s:
            raise InputError(
                f"not written: it took longer than the lease lasts ({self.lease_s:g} s)",
                where=self.place.name,
                hint="the next round tries it again; where this lasts, make lease_s longer",
            )

    def _renew(self, now: float, before: bytes) -> None:
        """Signs, unless somebody else has signed since ``before`` was read: over a network that takes a while."""

        def unchanged() -> None:
            data, found = self._read()
            if data != before:
                if found.get("owner", "") not in ("", self.owner):
                    self._renewed_s = None
                raise HeldByAnother(
                    "another controller has just signed the lease",
                    where=self.place.name,
                    hint="the next round looks again",
                )

        self._count += 1
        self.place.write(self._document(self.owner), still=unchanged)
        self._renewed_s, self._seen, self._unannounced = now, None, False
        self._watch(now)

    def give_back(self) -> None:
        """Lets another controller take it at once, if it is ours. Whatever goes wrong: the lease ends by itself."""
        try:
            if self._renewed_s is not None and self._read()[1].get("owner") == self.owner:
                self.place.write(self._document(""))
        except YarnfairError:
            pass
        self._renewed_s = None

    def end(self) -> None:
        """Takes away what is ours beside the file: the lease, or a spare's sign of life. As `give_back` otherwise."""
        try:
            if self._renewed_s is not None and self._read()[1].get("owner") == self.owner:
                self.place.remove()
                self.clear()
            if self.standby is not None and (self._signed_s is not None or self._renewed_s is not None):
                self.standby.remove()
        except YarnfairError:
            pass
        self._renewed_s = self._signed_s = None

    def clear(self) -> None:
        """Removes what killed writers have left beside it: holders, and spares. InputError or Unreachable."""
        self.place.clear()
        if self.standby is not None:
            self.standby.clear()

    def has_successor(self) -> bool:
        """Whether a spare has given a sign of life within the lease's time, as far as the holder has looked."""
        now = self._clock()
        self._watch(now)
        moved_s = self._sign[1] if self._sign is not None else None
        return moved_s is not None and now - moved_s <= self.lease_s

    def taken(self) -> bool:
        """Whether another controller has the lease now. What keeps it from being read: nobody has."""
        try:
            return self._read()[1].get("owner", "") not in ("", self.owner)
        except YarnfairError:
            return False

    def other_holder(self) -> str:
        """Who else has it, in words, whether or not it still lives; "" where nobody has. Nothing is written."""
        found = self._read()[1]
        self._take_words(found)
        return _who(found) if found.get("owner", "") not in ("", self.owner) else ""

    def spare(self) -> bool:
        """Whether a spare of another ledger has left a sign of life, whether or not it still lives."""
        try:
            found = json.loads(self.standby.read()) if self.standby is not None else None
        except (YarnfairError, ValueError, RecursionError):
            return False
        return isinstance(found, dict) and found.get("owner", self.owner) != self.owner

    def give_sign(self) -> None:
        """A spare's sign of life. Whatever goes wrong: nobody hands over to it then."""
        now = self._clock()
        if self.standby is None or (self._signed_s is not None and now - self._signed_s < self.lease_s * RENEW_PART):
            return
        self._count += 1
        self._signed_s = now
        # A spare that cannot sign is no spare: the holder does not see it, nothing else changes.
        with contextlib.suppress(YarnfairError):
            self.standby.write(json.dumps({"owner": self.owner, "count": self._count}).encode() + b"\n")

    def _watch(self, now: float) -> None:
        """Looks whether the spares' file has changed. One that stands still for long is a dead spare's."""
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
        """What stands there. What cannot be read as a lease, or is not there, is nobody's."""
        try:
            data = self.place.read()
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
            # A lease that is given back under our eyes is the last sign of life.
            self.other_lives |= self._stood is not None and data != self._stood
            if owner:
                self._stood = data
        return data, found

    def forget_announced(self) -> None:
        """What was read of the file is worth nothing."""
        self.announced, self.announced_by, self.heard = {}, "", False

    @property
    def words_lost(self) -> bool:
        """Whether there was another holder, or may have been, and what it said of the file last stands here no more."""
        return (self._stood is not None or self._nonsense or self._was_silent) and not self.heard

    def _take_words(self, found: Mapping[str, Any]) -> None:
        """Take over what the lease says of the file. Not for its holder: somebody else may have written it."""
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
