"""Processes of a cluster on this machine: started in sessions of their own, recognised after a crash, reliably stopped.

A process is identified by its pid *and* its start time, so that a reused pid is never killed. Everything that a cluster
starts, including the containers' shells, has the cluster's mark in its environment (``YARNFAIR_CLUSTER``). The mark
finds what a crashed NodeManager left behind, in any process group. Linux only.
"""

from __future__ import annotations

import logging
import os
import re
import shlex
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.base.debug import shown
from harness.base.errors import InputError

_LOG = logging.getLogger(__name__)
#: The environment variable that marks all of a cluster's processes.
MARK = "YARNFAIR_CLUSTER"
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True, slots=True)
class Process:
    """A process that was started. `start_ticks`: its start time in clock ticks since boot (/proc/PID/stat)."""

    pid: int
    start_ticks: int
    boot_id: str

    @property
    def alive(self) -> bool:
        """Return whether this very process still runs (a zombie does not)."""
        found = _stat(self.pid)
        return found is not None and found[1] == self.start_ticks and found[0] != "Z" and self.boot_id == boot_id()

    def memory_mb(self) -> float | None:
        """Return the resident memory in MiB; None if the process does not run."""
        if not self.alive:
            return None
        try:
            pages = int(Path(f"/proc/{self.pid}/statm").read_text().split()[1])
        except (OSError, ValueError, IndexError):
            return None
        return round(pages * _PAGE_BYTES / 2**20, 1)

    def signal_group(self, number: signal.Signals) -> None:
        """Send a signal to the process and its group; do nothing if the process does not run."""
        if not self.alive:
            return
        # It may end between the check and the signal.
        try:
            os.killpg(self.pid, number)
        except ProcessLookupError:
            pass
        except PermissionError:
            raise InputError(f"process {self.pid} is another user's", hint="run as the user who started it") from None


def free_mb(meminfo: Path = Path("/proc/meminfo")) -> int | None:
    """Return the available memory of this machine, MiB; None on a system that does not report it."""
    try:
        found = re.search(r"^MemAvailable:\s+(\d+) kB", meminfo.read_text(), re.MULTILINE)
    except OSError:
        return None
    return int(found[1]) // 1024 if found else None


def boot_id() -> str:
    """Return the identity of this boot of the machine: pids and start times of another boot are not valid."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def _stat(pid: int) -> tuple[str, int] | None:
    """Return state letter and start time of a process; None if there is none."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except (OSError, UnicodeDecodeError):
        return None
    # The command's name is in brackets and may contain anything, so the fields are counted from the last bracket.
    parts = text[text.rindex(")") + 2 :].split()
    return parts[0], int(parts[19])


def of_pid(pid: int) -> list[Process]:
    """Return the process that has this pid now, as a list of one or none."""
    found = _stat(pid)
    return [Process(pid, found[1], boot_id())] if found is not None and found[0] != "Z" else []


def start(command: Sequence[str], *, environment: Mapping[str, str], folder: Path, log: Path) -> Process:
    """Start a command in a session of its own (a Ctrl-C here does not reach it); append its output to `log`."""
    with log.open("ab") as out:
        try:
            started = subprocess.Popen(
                list(command),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                env=dict(environment),
                cwd=folder,
                start_new_session=True,
            )
        except OSError as error:
            raise InputError(f"cannot start {command[0]}: {error.strerror}", hint="check the installation") from None
    _LOG.debug("started %s as process %s, output in %s", shown(shlex.join(command)), started.pid, log)
    found = _stat(started.pid)
    # It outlives this program: nothing here waits for it, and Popen's destructor must not warn about that.
    started.returncode = 0
    if found is None:
        raise InputError(f"{command[0]} ended at once", where=str(log), hint="this log says why")
    return Process(started.pid, found[1], boot_id())


def marked(mark: str) -> list[Process]:
    """Return all processes with this mark in their environment, as far as this user may read it."""
    wanted = f"{MARK}={mark}".encode()
    found = []
    for entry in os.listdir("/proc"):
        if not entry.isdigit() or int(entry) == os.getpid():
            continue
        stat = _stat(int(entry))
        if stat is None or stat[0] == "Z":
            continue
        try:
            environment = Path(f"/proc/{entry}/environ").read_bytes().split(b"\0")
        except OSError:
            continue
        if wanted in environment:
            found.append(Process(int(entry), stat[1], boot_id()))
    return found


def stop(processes: Sequence[Process], mark: str, *, grace_s: float = 5.0) -> list[int]:
    """Stop the processes (SIGTERM, then SIGKILL after `grace_s`) and all others with the mark.

    Returns the pids that survived, normally none.
    """
    for process in processes:
        process.signal_group(signal.SIGTERM)
    end = time.monotonic() + grace_s
    while any(process.alive for process in processes) and time.monotonic() < end:
        time.sleep(0.05)
        _reap_of(processes)
    for process in processes:
        process.signal_group(signal.SIGKILL)
    # Containers are in sessions of their own, and killing one may let another start: repeat until none is left.
    end = time.monotonic() + 5.0
    while (left := marked(mark)) and time.monotonic() < end:
        for process in left:
            if process.alive:
                try:
                    os.kill(process.pid, signal.SIGKILL)
                except ProcessLookupError:
                    continue
        time.sleep(0.05)
        _reap_of(left)
    return [process.pid for process in left]


def _reap_of(processes: Sequence[Process]) -> None:
    """Remove dead children of this program among the processes from the process table."""
    for process in processes:
        try:
            os.waitpid(process.pid, os.WNOHANG)
        except ChildProcessError:
            continue
