"""A folder that exists under one path on several hosts, filled alike, for jobs whose containers may run on any of them.

What a container writes there is on its own host only: reading asks the hosts in turn.
"""

from __future__ import annotations

import posixpath
import shlex
import threading
from collections.abc import Mapping, Sequence

from harness.clusters.inventory import Host
from harness.clusters.remote import Remote
from harness.jobs.submit import SharedFolder
from harness.model.errors import InputError
from harness.yarn.errors import Unreachable

_MOST = 64 << 20


class HostsFolder(SharedFolder):
    """``path`` on every host of ``hosts``."""

    def __init__(self, hosts: Sequence[Host], path: str) -> None:
        self.path = path
        self._remotes = [Remote(host) for host in hosts]
        #: File -> the host that was seen to have it.
        self._where: dict[str, Remote] = {}
        self._lock = threading.Lock()

    def python(self) -> str:
        """A Python 3 that all hosts have. InputError when one has none."""
        with self._lock:
            for remote in self._remotes:
                remote.check("command -v python3", "python3", mend="install python3-minimal there")
        return "python3"

    def write(self, files: Mapping[str, bytes]) -> None:
        with self._lock:
            for remote in self._remotes:
                folder = shlex.quote(self.path)
                # The nodes' containers may be another user's, and write their records here.
                remote.check(f"mkdir -p {folder} && chmod 777 {folder}", "the jobs' folder")
                remote.put({posixpath.join(self.path, name): content for name, content in files.items()})

    def read(self, name: str) -> bytes | None:
        path = posixpath.join(self.path, name)
        with self._lock:
            known = self._where.get(name)
            for remote in [known] if known is not None else self._remotes:
                try:
                    found = remote.read_if_there(path, _MOST)
                except Unreachable:
                    continue  # a dropped connection: it is opened again at the next look
                if found is not None:
                    self._where[name] = remote
                    return found
        return None

    def remove(self) -> None:
        with self._lock:
            for remote in self._remotes:
                try:
                    remote.run(f"rm -rf {shlex.quote(self.path)}")
                except InputError:
                    continue
                finally:
                    remote.close()
