"""Files written whole: the old one or the new one at every moment, its mode, and nothing left beside it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from harness.base.errors import InputError
from harness.base.files import put_file, write_bytes, write_text


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o7777


def test_modes(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        for given, first, again in ((0o644, 0o644, 0o644), (0o600, 0o600, 0o600), (None, 0o640, 0o664)):
            path = tmp_path / f"{given}"
            write_bytes(path, b"one", mode=given)
            assert mode(path) == first
            path.chmod(0o664)
            write_bytes(path, b"two", mode=given, sync=True)
            assert (mode(path), path.read_bytes()) == (again, b"two")
    finally:
        os.umask(before)


def test_what_fails_leaves_the_old_file_and_nothing_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "x"
    write_text(path, "old")

    def full(_: Path) -> None:
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space left"):
        put_file(path, full)
    assert (path.read_text(), list(tmp_path.iterdir())) == ("old", [path])
    with pytest.raises(InputError, match="cannot be written: No such file or directory"):
        write_text(tmp_path / "none" / "x", "new")
