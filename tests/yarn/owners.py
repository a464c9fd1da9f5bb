"""What the tests of the file's places share: contents, owners, a system that refuses another owner."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import Any

import pytest

OWNER, GROUP = 41234, 41235
OLD, NEW = b"<allocations/>\n", b"<allocations>\n</allocations>\n" * 5000

#: Only root can make a file that belongs to others.
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: makes a file of another owner")


def deny_chown(monkeypatch: pytest.MonkeyPatch, *, group: bool) -> None:
    """From now on this process sets no owner, and a group only if `group`: as one that is not root."""
    fchown, chown = os.fchown, os.chown

    def allowed(uid: int, gid: int) -> None:
        if uid not in (-1, os.geteuid()) or not group:
            raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

    def by_handle(handle: int, uid: int, gid: int) -> None:
        allowed(uid, gid)
        fchown(handle, uid, gid)

    def by_path(path: Any, uid: int, gid: int) -> None:
        allowed(uid, gid)
        chown(path, uid, gid)

    monkeypatch.setattr(os, "fchown", by_handle)
    monkeypatch.setattr(os, "chown", by_path)


def owned(path: Path, uid: int, gid: int, mode: int) -> Path:
    path.write_bytes(OLD)
    os.chown(path, uid, gid)
    path.chmod(mode)
    return path


def ownership(path: Path) -> tuple[int, int, int]:
    found = path.stat()
    return found.st_uid, found.st_gid, stat.S_IMODE(found.st_mode)
