"""Whether a process that has signed a document still lives: told only of one that ran on this host.

A process number alone says little: it is given again, it means another process in another container, and another
machine has its own. So a process signs with its number, the moment at which it was started, the namespace of its number
and the machine's boot, and only a signature of the same boot and namespace is looked into.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def this_process() -> dict[str, Any]:
    """Return what this process signs with."""
    pid = os.getpid()
    return {"pid": pid, "started": _started(pid), "pids": _namespace(), "boot": boot_id()}


def is_dead(signature: Mapping[str, Any]) -> bool:
    """Return whether the process that signed is known to be dead; False where that cannot be seen from here."""
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
        pass  # somebody's process has that number
    started = _started(pid)
    return started is not None and signature.get("started") is not None and signature["started"] != started


@functools.cache
def boot_id() -> str:
    """Return what tells one start of this machine from another; '' where the system does not say."""
    return _read("/proc/sys/kernel/random/boot_id").strip()


def _namespace() -> str:
    """The namespace of process numbers; '' where the system does not say."""
    try:
        return os.readlink("/proc/self/ns/pid")
    except OSError:
        return ""


def _started(pid: int) -> int | None:
    """When a process was started, in ticks since the machine was; None where that is not shown."""
    # The name may hold blanks and brackets; the fields after it do not.
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
