"""Watches the allocation file and the lease while a run goes on: no reader may ever meet what should not be there."""

from __future__ import annotations

import json
import math
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import product
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
#: A queue's weight and the spaces before it, and a queue that has nothing else.
_WEIGHT, _EMPTY = re.compile(rb"\s*<weight>[^<]*</weight>"), re.compile(rb"></queue>")


@dataclass(frozen=True)
class Signed:
    """A state of the lease file: since when, and who held it (its ledger's identity; "": nobody).

    ``pid``: its process, on this machine (0: not known).
    """

    time_s: float
    owner: str
    pid: int = 0

    @property
    def dead(self) -> bool:
        """Whether the process that signed has ended. One that is frozen has not."""
        return self.pid > 0 and not Path(f"/proc/{self.pid}").exists()


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
        self._theirs, self._bytes = parse_allocations(theirs), theirs
        #: The weights that the administrator has written, by queue, the latest last: a controller takes a weight that
        #: he writes over its own for the queue's entitlement.
        self.entitlements = {
            path: [entitlement(self._theirs.weight(path))] for path in self._theirs.settings if path != "root"
        }
        #: The entitlements that the lease's holder has named last.
        self.named: dict[str, float] = {}
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

    def wrote(self, path: str, weight: float) -> None:
        """Remembers a weight that the administrator writes over a controller's; to be called before it stands there."""
        self.entitlements[path].append(entitlement(weight))

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

    def apart(self, weights: Mapping[str, float], entitlements: Mapping[str, float] | None = None) -> str:
        """Which weights are not good or further from the entitlements than the bound lets them; "": none.

        ``entitlements``: None for any that the administrator has written, since the file does not tell which of them
        its writer had read.
        """
        if any(entitlement(weights[path]) != weights[path] for path in weights):
            return f"weights are no weights: {dict(weights)}"
        known = self.entitlements if entitlements is None else {path: [own] for path, own in entitlements.items()}
        ratios = []
        for owns in product(*(dict.fromkeys(known[path]) for path in self.entitlements)):
            parts = [weights[path] / own for path, own in zip(self.entitlements, owns, strict=True)]
            ratios.append(max(parts) / min(parts))
        if min(ratios) > self._max_ratio * ROUNDED:
            return f"weights are {min(ratios):.3f} apart: {dict(weights)}"
        return ""

    def misnamed(self) -> str:
        """Which entitlements that the lease's holder names no administrator has written; "": none."""
        if self.named.keys() != self.entitlements.keys():
            return f"the lease names entitlements of {sorted(self.named)}"
        wrong = {path: own for path, own in self.named.items() if own not in self.entitlements[path]}
        return f"no administrator wrote the entitlements {wrong}, but {self.entitlements}" if wrong else ""

    def not_released(self, data: bytes) -> str:
        """How a file that was given back differs from the administrator's; "": it does not.

        It is his to the byte where he has edited nothing since; else all but the weights is, and these are the
        entitlements that the holder has named.
        """
        if wrong := self.misnamed():
            return wrong
        if all(own == self.entitlements[path][0] for path, own in self.named.items()) and data == self._bytes:
            return ""
        try:
            file = parse_allocations(data)
        except YarnfairError as error:
            return error.line()
        has = {path: entitlement(file.weight(path)) for path in self.entitlements}
        if has != self.named:
            return f"weights are {has}, the entitlements {self.named}"
        if all(len(owns) == 1 for owns in self.entitlements.values()):
            return "the bytes are not the administrator's"
        plain = [_EMPTY.sub(b"/>", _WEIGHT.sub(b"", text)) for text in (data, self._bytes)]
        return "" if plain[0] == plain[1] else "more than weights differs from the administrator's file"

    def _lease(self, data: bytes) -> None:
        now = time.monotonic()
        try:
            found = json.loads(data) if data else {}
            owner, pid = str(found.get("owner", "")), found.get("pid")
        except (ValueError, AttributeError, RecursionError):
            self._violated(f"the lease is none: {data[:200]!r}")
            return
        try:
            baseline = found["said"]["baseline"]
            self.named = {path: entitlement(values.get("weight")) for path, values in baseline.items()}
        except (KeyError, TypeError, AttributeError):
            pass  # a lease that was given up names none: what was named last counts
        last = self.signed[-1] if self.signed else Signed(now, "")
        if last.owner and now - last.time_s < _MOMENT_S and len(self.signed) > 1 and self.signed[-2].owner:
            last = self.signed[-2]  # what both found
        age_s = now - last.time_s
        early = now > self.disturbed_until_s and age_s < 0.95 * self._lease_s
        # Who sees that the holder's process has ended, which is on the same machine, need not wait for the lease's end.
        if owner and last.owner not in ("", owner) and early and not last.dead:
            self._violated(f"{owner} takes the lease {age_s:.1f} s after a sign of {last.owner}")
        self.signed = [*self.signed[-5000:], Signed(now, owner, pid if isinstance(pid, int) else 0)]
