"""Decide whether a process that wrote a document is still running; possible only for processes of this host.

A process number alone does not identify a process: numbers are reused, and they differ between containers and machines.
A process therefore stores its number, its start time, its PID namespace and the machine's boot ID (its signature). Only
a signature with the same boot ID and namespace is checked.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def this_process() -> dict[str, Any]:
    """Return the signature of this process."""
    pid = os.getpid()
    return {"pid": pid, "started": _started(pid), "pids": _namespace(), "boot": boot_id()}


def is_dead(signature: Mapping[str, object]) -> bool:
    """Return whether the process with this signature has ended; False if that cannot be determined from here."""
    pid, boot, namespace = signature.get("pid"), boot_id(), _namespace()
    if not boot or not namespace or (signature.get("boot"), signature.get("pids")) != (boot, namespace):
        return False
    if not isinstance(pid, int) or isinstance(pid, bool) or pid <= 0:
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except (PermissionError, OverflowError, OSError):
        pass  # the number belongs to another user's process
    started = _started(pid)
    return started is not None and signature.get("started") is not None and signature["started"] != started


@functools.cache
def boot_id() -> str:
    """Return the ID of the current boot of this machine; '' if the system does not provide it."""
    return _read("/proc/sys/kernel/random/boot_id").strip()


def _namespace() -> str:
    """Return the PID namespace; '' if the system does not provide it."""
    try:
        return os.readlink("/proc/self/ns/pid")
    except OSError:
        return ""


def _started(pid: int) -> int | None:
    """Return the start time of a process, in clock ticks since boot; None if not available or if it is a zombie."""
    # The name in brackets may contain blanks and brackets; the fields after it do not.
    fields = _read(f"/proc/{pid}/stat").rpartition(")")[2].split()
    try:
        return None if fields[0] in "ZX" else int(fields[19])
    except (IndexError, ValueError):
        return None


def _read(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
