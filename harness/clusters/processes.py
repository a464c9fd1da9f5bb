"""Processes of a cluster on this machine: started in a session of their own, known after a crash, stopped for good.

A process is known by its pid *and* its start time, so that a number that the system gave to somebody else is never
killed. Everything that a cluster starts, down to the containers' shells, carries the cluster's mark in its environment
(``YARNFAIR_CLUSTER``): that finds what a crashed NodeManager left behind, whatever process group it is in. Linux only.
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
#: The variable that marks all of a cluster's processes.
MARK = "YARNFAIR_CLUSTER"
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True, slots=True)
class Process:
    """A process that was started: `start_ticks` is its start time in clock ticks since boot (/proc/PID/stat)."""

    pid: int
    start_ticks: int
    boot_id: str

    @property
    def alive(self) -> bool:
        """Whether this very process still runs (a zombie does not)."""
        found = _stat(self.pid)
        return found is not None and found[1] == self.start_ticks and found[0] != "Z" and self.boot_id == boot_id()

    def memory_mb(self) -> float | None:
        """Resident memory in MiB; None when it does not run."""
        if not self.alive:
            return None
        try:
            pages = int(Path(f"/proc/{self.pid}/statm").read_text().split()[1])
        except (OSError, ValueError, IndexError):
            return None
        return round(pages * _PAGE_BYTES / 2**20, 1)

    def signal_group(self, number: signal.Signals) -> None:
        """A signal to the process and its group; nothing when it does not run."""
        if not self.alive:
            return
        # It may end between the look and the signal.
        try:
            os.killpg(self.pid, number)
        except ProcessLookupError:
            pass
        except PermissionError:
            raise InputError(f"process {self.pid} is another user's", hint="run as the user who started it") from None


def free_mb(meminfo: Path = Path("/proc/meminfo")) -> int | None:
    """What this machine's memory can still give, MiB; None where a system does not say."""
    try:
        found = re.search(r"^MemAvailable:\s+(\d+) kB", meminfo.read_text(), re.MULTILINE)
    except OSError:
        return None
    return int(found[1]) // 1024 if found else None


def boot_id() -> str:
    """Names this boot of the machine: pids and start times of another one mean nothing."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def _stat(pid: int) -> tuple[str, int] | None:
    """State letter and start time of a process; None when there is none."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except (OSError, UnicodeDecodeError):
        return None
    # The command's name stands in brackets and may hold anything: count from behind the last one.
    parts = text[text.rindex(")") + 2 :].split()
    return parts[0], int(parts[19])


def of_pid(pid: int) -> list[Process]:
    """The process that has this number now: one, or none."""
    found = _stat(pid)
    return [Process(pid, found[1], boot_id())] if found is not None and found[0] != "Z" else []


def start(command: Sequence[str], *, environment: Mapping[str, str], folder: Path, log: Path) -> Process:
    """Starts a command in a session of its own (a Ctrl-C here does not reach it), its output appended to `log`."""
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
    # It outlives this program: nobody here waits for it, and Popen's destructor must not warn about that.
    started.returncode = 0
    if found is None:
        raise InputError(f"{command[0]} ended at once", where=str(log), hint="this log says why")
    return Process(started.pid, found[1], boot_id())


def marked(mark: str) -> list[Process]:
    """All processes that carry this mark in their environment (those of which this user may know)."""
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
    """Ends the processes (SIGTERM, then SIGKILL after `grace_s`) and whatever else carries the mark.

    Returns the pids that survived even that, normally none.
    """
    for process in processes:
        process.signal_group(signal.SIGTERM)
    end = time.monotonic() + grace_s
    while any(process.alive for process in processes) and time.monotonic() < end:
        time.sleep(0.05)
        _reap_of(processes)
    for process in processes:
        process.signal_group(signal.SIGKILL)
    # Containers are in sessions of their own; killing one may let another start: look until nobody is left.
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
    """Takes those of the processes that are dead children of this program off the process table."""
    for process in processes:
        try:
            os.waitpid(process.pid, os.WNOHANG)
        except ChildProcessError:
            continue
