"""A guard's release, stored in the ledger until an administrator resumes the controller."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness.ledger.store import LedgerStore, read_documents, write_document

#: Name of the ledger document.
DOCUMENT = "released"


class Released:
    """Release state of one controller. Its truth value is True while a guard's release lasts."""

    def __init__(self, store: LedgerStore) -> None:
        self._store = store
        self._said: dict[str, Any] | None = store.document(DOCUMENT)
        #: Whether the state has been stored in the ledger.
        self._kept = True

    def __bool__(self) -> bool:
        return self._said is not None

    @property
    def why(self) -> str:
        """Describe the guard that was exceeded; '' if none was."""
        return str(self._said["why"]) if self._said is not None else ""

    @property
    def since_s(self) -> float | None:
        """Time when the guard was exceeded, on the controller's clock, seconds (None: no guard was exceeded)."""
        return float(self._said["time_s"]) if self._said is not None else None

    @property
    def given_back(self) -> bool:
        """Whether the configuration was restored and an RM refreshed."""
        return self._said is not None and self._said["given_back"] is True

    def document(self) -> dict[str, Any] | None:
        """Return the form in which the ledger and the lease store it."""
        return self._said

    def begin(self, time_s: float, why: str) -> None:
        """Record that a guard was exceeded. Raises StoreFull, but the state is set in memory all the same."""
        self._keep({"time_s": time_s, "why": why, "given_back": False})

    def done(self) -> None:
        """Record that the configuration was restored. Raises StoreFull."""
        if self._said is not None:
            self._keep({**self._said, "given_back": True})

    def ended(self) -> bool:
        """Whether an administrator has resumed the controller (`go_on`) since the last call. Raises StoreFull."""
        if self._said is None:
            return False
        if not self._kept:
            self._keep(self._said)
        if self._store.document(DOCUMENT) is not None:
            return False
        self._said = None
        return True

    def inherit(self, said: Mapping[str, object] | None) -> None:
        """Take over the release that the previous holder announced in the lease. Raises StoreFull."""
        good = said is not None and isinstance(said.get("time_s"), int | float) and isinstance(said.get("why"), str)
        taken = {"time_s": said["time_s"], "why": said["why"], "given_back": False} if good and said else None
        if taken is not None or self._said is not None:
            self._keep(taken)

    def _keep(self, said: dict[str, Any] | None) -> None:
        self._said, self._kept = said, False
        self._store.commit(documents={DOCUMENT: said})
        self._kept = True


def go_on(ledger: Path) -> str:
    """Resume the controller of a ledger, whether or not it is running; return the reason of its release ('': none).

    Raises InputError.
    """
    said = read_documents(ledger, [DOCUMENT])[DOCUMENT]
    if said is None:
        return ""
    write_document(ledger, DOCUMENT, None)
    return str(said["why"])
