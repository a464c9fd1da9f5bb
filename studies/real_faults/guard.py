"""Watches the allocation file and the lease while a run goes on: no reader may ever meet what should not be there."""

from __future__ import annotations

import json
import math
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from harness.base.errors import YarnfairError
from harness.control.values import entitlement
from harness.yarn.fair.parse import parse_allocations

#: Looked at this often, seconds: a reader that comes by chance sees no more.
_EVERY_S = 0.01
#: Between a look at the lease and its signing over SFTP lies a moment, seconds: of two that sign in it the last has it.
_MOMENT_S = 0.5
#: Writers round to three digits; a bound is kept up to that.
ROUNDED = 1.003


@dataclass(frozen=True)
class Signed:
    """A state of the lease file: since when, and who held it (its ledger's identity; "": nobody)."""

    time_s: float
    owner: str


class Guard:
    """Reads both files whenever they change.

    Parameters
    ----------
    file, lease : where they lie.
    theirs : the administrator's file.
    max_ratio : weights over entitlements of two siblings are at most so far apart in what a controller writes.
    lease_s : the lease's time.
    violated : told of what must not be.
    """

    def __init__(
        self, file: Path, theirs: bytes, max_ratio: float, lease_s: float, violated: Callable[[str], None]
    ) -> None:
        self.file, self.lease = file, file.with_name(f".{file.name}.lease")
        self._theirs = parse_allocations(theirs)
        self.entitlements = {
            path: entitlement(self._theirs.weight(path)) for path in self._theirs.settings if path != "root"
        }
        self._comments = theirs.count(b"<!--")
        self._max_ratio, self._lease_s, self._violated = max_ratio, lease_s, violated
        #: What others than controllers have put there; None: they have taken it away.
        self._foreign: set[bytes | None] = set()
        #: What somebody has written in place last, and until when (monotonic) that lasted.
        self._in_place, self._in_place_until_s = b"", -math.inf
        #: What controllers have put there, the latest last.
        self.seen: list[bytes] = []
        #: How often controllers replaced the file.
        self.replaced = 0
        self.signed: list[Signed] = []
        #: Until when (monotonic) who holds the lease is anybody's guess, since somebody has written there.
        self.disturbed_until_s = 0.0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def begin(self) -> None:
        """Watches from now on."""
        self._thread.start()

    def end(self) -> None:
        """Watches no longer."""
        self._stop.set()
        self._thread.join(timeout=20)

    def put(self, data: bytes) -> bytes:
        """Remembers that this is none of a controller's."""
        self._foreign.add(data)
        return data

    def taken_away(self) -> None:
        """Remembers that somebody else than a controller takes the file away."""
        self._foreign.add(None)

    @contextmanager
    def writing(self, data: bytes) -> Iterator[bytes]:
        """While somebody writes this in place: a reader meets beginnings of it too, and nothing at all."""
        self._in_place, self._in_place_until_s = self.put(data), math.inf
        try:
            yield data
        finally:
            self._in_place_until_s = time.monotonic()

    def _foreigners(self, data: bytes | None, read_s: float) -> bool:
        """Whether what was read then (monotonic: begun) is others' doing."""
        part = data is not None and self._in_place.startswith(data) and read_s <= self._in_place_until_s
        return data in self._foreign or part

    def disturb_lease(self, settle_s: float) -> None:
        """Somebody writes where the lease stands."""
        self.disturbed_until_s = time.monotonic() + settle_s

    def owner_in(self, from_s: float, to_s: float) -> set[str]:
        """Who held the lease at some time between two (monotonic)."""
        states = [s for s in self.signed if s.time_s <= to_s]
        before = [s for s in states if s.time_s < from_s][-1:]
        return {s.owner for s in [*before, *(s for s in states if s.time_s >= from_s)]}

    def _watch(self) -> None:
        marks: dict[Path, tuple[int, ...] | None] = {}
        while not self._stop.wait(_EVERY_S):
            for path, look in ((self.file, self._file), (self.lease, self._lease)):
                try:
                    found = path.stat()
                    mark: tuple[int, ...] | None = (found.st_ino, found.st_mtime_ns, found.st_size)
                except OSError:
                    mark = None
                if mark == marks.get(path, ()):
                    continue
                marks[path] = mark
                read_s = time.monotonic()
                try:
                    data = path.read_bytes() if mark is not None else None
                    gone = path == self.lease and data is None  # whoever took it away: nobody holds it now
                    if gone or not self._foreigners(data, read_s):
                        look(data or b"")
                except FileNotFoundError:
                    marks[path] = ()
                except Exception as error:  # the watcher itself must not end in silence
                    self._violated(f"{path.name}: {type(error).__name__}: {error}")

    def _file(self, data: bytes) -> None:
        self.replaced += 1
        if data in self.seen:
            return
        try:
            file = parse_allocations(data)
        except YarnfairError as error:
            self._violated(f"an invalid file is readable: {error.line()}: {data[:200]!r}")
            return
        self.seen = [*self.seen[-50:], data]
        plain = {path: replace(settings, weight=None) for path, settings in file.settings.items()}
        if plain != {path: replace(settings, weight=None) for path, settings in self._theirs.settings.items()}:
            self._violated(f"more than weights differ from the administrator's file: {data!r}")
        if data.count(b"<!--") != self._comments:
            self._violated(f"a comment is gone: {data!r}")
        if wrong := self.apart({path: float(file.weight(path) or 1.0) for path in self.entitlements}):
            self._violated(f"written: {wrong}")

    def apart(self, weights: Mapping[str, float]) -> str:
        """Which weights are not good or further from the entitlements than the bound lets them; "": none."""
        parts = {path: weights[path] / self.entitlements[path] for path in self.entitlements}
        if any(entitlement(weights[path]) != weights[path] for path in weights):
            return f"weights are no weights: {dict(weights)}"
        if max(parts.values()) > min(parts.values()) * self._max_ratio * ROUNDED:
            return f"weights are {max(parts.values()) / min(parts.values()):.3f} apart: {dict(weights)}"
        return ""

    def _lease(self, data: bytes) -> None:
        now = time.monotonic()
        try:
            found = json.loads(data) if data else {}
            owner = str(found.get("owner", ""))
        except (ValueError, AttributeError, RecursionError):
            self._violated(f"the lease is none: {data[:200]!r}")
            return
        last = self.signed[-1] if self.signed else Signed(now, "")
        if last.owner and now - last.time_s < _MOMENT_S and len(self.signed) > 1 and self.signed[-2].owner:
            last = self.signed[-2]  # what both found
        age_s = now - last.time_s
        if owner and last.owner not in ("", owner) and now > self.disturbed_until_s and age_s < 0.95 * self._lease_s:
            self._violated(f"{owner} takes the lease {age_s:.1f} s after a sign of {last.owner}")
        self.signed = [*self.signed[-5000:], Signed(now, owner)]
