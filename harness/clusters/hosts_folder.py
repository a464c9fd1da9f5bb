"""A folder with one path and the same content on several hosts, for jobs whose containers may run on any of them.

A file that a container writes there is only on its own host, so reading asks the hosts in turn. A host that does not
answer is skipped for a while, and gets what it missed when it answers again.
"""

from __future__ import annotations

import posixpath
import shlex
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from harness.base.errors import InputError
from harness.clusters.inventory import Host
from harness.clusters.remote import Remote
from harness.clusters.shared import OPEN_MODE, SharedFolder
from harness.yarn.errors import Unreachable

_MOST = 64 << 20
#: Pause before a host that did not answer is asked again: each attempt may take the connection's whole time limit.
_LEAVE_ALONE_S = 15.0


@dataclass(slots=True)
class _Member:
    """One host: its connection, the files that it has not received yet, and when it may be asked again."""

    remote: Remote
    made: bool = False
    owed: dict[str, bytes] = field(default_factory=dict)
    not_before: float = 0.0

    @property
    def silent(self) -> bool:
        return time.monotonic() < self.not_before


class HostsFolder(SharedFolder):
    """The folder ``path`` on every host of ``hosts``."""

    def __init__(self, hosts: Sequence[Host], path: str) -> None:
        self.path = path
        self._members = [_Member(Remote(host)) for host in hosts]
        #: File -> the host on which it was found.
        self._where: dict[str, _Member] = {}
        self._troubles: list[str] = []
        self._lock = threading.Lock()

    def python(self) -> str:
        """Return a Python 3 that all hosts have. Raises InputError if a host has none."""
        with self._lock:
            for member in self._members:
                member.remote.check("command -v python3", "python3", hint="install python3-minimal there")
        return "python3"

    def write(self, files: Mapping[str, bytes]) -> None:
        """Write files on all hosts that answer. Raises InputError if none answers, or one cannot store them."""
        with self._lock:
            for member in self._members:
                member.owed.update({posixpath.join(self.path, name): content for name, content in files.items()})
            found = [self._deliver(member) for member in self._members]
            for error in found:
                if error is not None and not isinstance(error, Unreachable):
                    raise error
            if all(error is not None for error in found):
                first = next(error for error in found if error is not None)
                raise Unreachable(f"no host of the cluster answers: {first.what}", where=first.where, hint=first.hint)

    def read(self, name: str) -> bytes | None:
        """Return a file's content from the first host that answers and has it; None if there is none."""
        path = posixpath.join(self.path, name)
        with self._lock:
            known = self._where.get(name)
            for member in [known] if known is not None else self._members:
                if member.silent or (member.owed and self._deliver(member) is not None):
                    continue
                try:
                    found = member.remote.read_if_there(path, _MOST)
                except Unreachable as error:
                    self._failed(member, error)
                    continue
                if found is not None:
                    self._where[name] = member
                    return found
        return None

    def troubles(self) -> list[str]:
        """Return a line for each host that did not answer since this was last called."""
        with self._lock:
            found, self._troubles = self._troubles, []
            return found

    def _deliver(self, member: _Member) -> InputError | None:
        """Deliver to a host the files that it lacks, over a new connection if the old one broke.

        Return the problem, if any.
        """
        error: InputError | None = None
        if member.silent:
            return Unreachable("it did not answer a moment ago", where=member.remote.name)
        for _ in range(2):
            try:
                if not member.made:
                    folder = shlex.quote(self.path)
                    # The nodes' containers may run as another user and write their records here. A folder that another
                    # user created beforehand is refused (test -O), because its owner could replace the programs in it.
                    member.remote.check(
                        f"mkdir -p {folder} && test -O {folder} && chmod {OPEN_MODE:o} {folder}",
                        "the jobs' folder",
                        hint="remove what another user has put there",
                    )
                    member.made = True
                member.remote.put(member.owed)
                member.owed.clear()
                return None
            except Unreachable as broken:
                error = broken
            except InputError as no:
                return no
        assert isinstance(error, Unreachable)
        self._failed(member, error)
        return error

    def _failed(self, member: _Member, error: InputError) -> None:
        member.not_before = time.monotonic() + _LEAVE_ALONE_S
        self._troubles.append(error.line())

    def remove(self) -> None:
        """Remove the folder from every host that answers."""
        with self._lock:
            for member in self._members:
                # A host that does not answer keeps its copy of the folder.
                try:
                    member.remote.run(f"rm -rf {shlex.quote(self.path)}")
                except InputError:
                    continue
                finally:
                    member.remote.close()
