"""That a guard has released: kept in the ledger until somebody tells the controller to go on."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness.ledger.store import LedgerStore, read_documents, write_document

#: The ledger's document.
DOCUMENT = "released"


class Released:
    """The state of one controller. True while a guard's release lasts."""

    def __init__(self, store: LedgerStore) -> None:
        self._store = store
        self._said: dict[str, Any] | None = store.document(DOCUMENT)
        #: Whether the ledger says the same.
        self._kept = True

    def __bool__(self) -> bool:
        return self._said is not None

    @property
    def why(self) -> str:
        """Which guard was passed, in words; '' where none was."""
        return str(self._said["why"]) if self._said is not None else ""

    @property
    def since_s(self) -> float | None:
        """When, on the controller's clock."""
        return float(self._said["time_s"]) if self._said is not None else None

    @property
    def given_back(self) -> bool:
        """Whether the file has been given back, and an RM been told of it."""
        return self._said is not None and self._said["given_back"] is True

    def document(self) -> dict[str, Any] | None:
        """As the ledger and the lease hold it."""
        return self._said

    def begin(self, time_s: float, why: str) -> None:
        """A guard was passed. Raises StoreFull; it is known here all the same."""
        self._keep({"time_s": time_s, "why": why, "given_back": False})

    def done(self) -> None:
        """All has been given back. Raises StoreFull."""
        if self._said is not None:
            self._keep({**self._said, "given_back": True})

    def ended(self) -> bool:
        """Whether somebody has told the controller to go on (`go_on`) since it was asked last. Raises StoreFull."""
        if self._said is None:
            return False
        if not self._kept:
            self._keep(self._said)
        if self._store.document(DOCUMENT) is not None:
            return False
        self._said = None
        return True

    def inherit(self, said: Mapping[str, Any] | None) -> None:
        """Takes over what the controller before said beside the file. Raises StoreFull."""
        good = said is not None and isinstance(said.get("time_s"), int | float) and isinstance(said.get("why"), str)
        taken = {"time_s": said["time_s"], "why": said["why"], "given_back": False} if good and said else None
        if taken is not None or self._said is not None:
            self._keep(taken)

    def _keep(self, said: dict[str, Any] | None) -> None:
        self._said, self._kept = said, False
        self._store.commit(documents={DOCUMENT: said})
        self._kept = True


def go_on(ledger: Path) -> str:
    """Tells the controller of a ledger, at work or not, to go on; why it had released ('': it had not). InputError."""
    said = read_documents(ledger, [DOCUMENT])[DOCUMENT]
    if said is None:
        return ""
    write_document(ledger, DOCUMENT, None)
    return str(said["why"])
