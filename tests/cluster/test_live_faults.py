"""A minute of faults by chance on two real ResourceManagers (studies.real_faults), and the accounts after it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from studies.real_faults.load import Used
from studies.real_faults.piece import Piece

pytestmark = [pytest.mark.java, pytest.mark.live, pytest.mark.xdist_group("live-faults")]


@pytest.mark.skipif(os.geteuid() != 0, reason="needs the right to mount a tmpfs")
def test_what_must_hold_holds_and_the_accounts_are_the_rms_own(tmp_path: Path) -> None:
    lines: list[str] = []
    known: dict[str, Used] = {}
    with Piece(tmp_path, 1, 1, known, lines.append) as piece:
        told = piece.run(60.0)
    history = "\n".join(lines)
    assert told.violations == [], history
    assert told.released
    assert told.faults.total() >= 3, history
    assert told.replaced > 1
    assert all(used.final for used in known.values())
    # Within what `Piece` lets pass, which is a violation otherwise.
    assert all(found["ledger_mb_s"] > 0 for found in told.accounts["one"].values())
    assert sorted(path.name for path in (tmp_path / "kept" / "ledgers").iterdir() if path.suffix == ".db") == [
        "one.db",
        "two.db",
    ]
