"""Files written whole: the old one or the new one at every moment, its mode, and nothing left beside it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from harness.base.errors import InputError
from harness.base.files import holding, put_file, read_text, reading, write_bytes, write_text, writing


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


def test_what_the_system_refuses_is_told_with_where_and_how_to_mend_it(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"\xff")
    for said, act in (
        ("none: cannot be read: No such file or directory; look", lambda: read_text(tmp_path / "none", hint="look")),
        ("x: is not UTF-8 text; save it as UTF-8", lambda: read_text(tmp_path / "x", hint="look")),
        ("x: cannot be read: larger than 0 bytes; check the path", lambda: read_text(tmp_path / "x", 0)),
    ):
        with pytest.raises(InputError, match=said):
            act()
    with pytest.raises(InputError, match="x: cannot be written: no words for it; check"), writing(tmp_path / "x"):
        raise OSError("no words for it")
    # What is no refusal of the system's stays what it is.
    with pytest.raises(KeyError), reading(tmp_path), writing(tmp_path):
        raise KeyError


def test_a_lock_is_one_process_and_goes_with_its_context(tmp_path: Path) -> None:
    path, busy = tmp_path / "new" / "lock", InputError("taken", hint="wait")
    for _ in range(2):
        with holding(path, busy=busy), pytest.raises(InputError, match="taken; wait"), holding(path, busy=busy):
            pass
    (tmp_path / "file").touch()
    with (
        pytest.raises(InputError, match=r"cannot be written: .*; elsewhere"),
        holding(tmp_path / "file" / "x", hint="elsewhere"),
    ):
        pass
