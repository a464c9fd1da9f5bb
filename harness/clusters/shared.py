"""Folders that all nodes of a cluster see under one path: on this machine, or in a volume of containers.

For clusters whose hosts share no folder there is `harness.clusters.hosts_folder`.
"""

from __future__ import annotations

import contextlib
import io
import shutil
import tarfile
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from harness.base.errors import InputError
from harness.base.files import put_file, reading, writing

#: Mode of a folder that holds programs and that containers of another user write into. The sticky bit prevents that
#: user, and any other user, from replacing or removing other people's files, above all the programs.
OPEN_MODE = 0o1777


class SharedFolder(ABC):
    """A folder that every node of the cluster sees under the same path."""

    #: Its path on the nodes.
    path: str

    @abstractmethod
    def write(self, files: Mapping[str, bytes]) -> None:
        """Write files into the folder. Raises InputError."""

    @abstractmethod
    def read(self, name: str) -> bytes | None:
        """Return the present content of a file; None if there is none. Raises InputError."""

    @abstractmethod
    def remove(self) -> None:
        """Remove the folder."""

    def troubles(self) -> list[str]:
        """Return the problems since the last call that did not stop anything, one a line."""
        return []


class LocalFolder(SharedFolder):
    """A folder of this machine that the nodes see under the same path (local processes, NFS)."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.absolute()
        self.path = str(self.folder)

    def write(self, files: Mapping[str, bytes]) -> None:
        """Write files into the folder, replacing those of the same names."""
        with writing(self.path):
            self.folder.mkdir(parents=True, exist_ok=True)
            for name, content in files.items():
                # Files are replaced, not written in place, because somebody else may have created a file or link of
                # that name.
                put_file(self.folder / name, _writer(content))
            # The nodes' containers may run as another user and write their records here.
            self.folder.chmod(OPEN_MODE)

    def read(self, name: str) -> bytes | None:
        """Return a file's content; None if it does not exist."""
        with reading(f"{self.path}/{name}"), contextlib.suppress(FileNotFoundError):
            return (self.folder / name).read_bytes()
        return None

    def remove(self) -> None:
        """Remove the folder with all that it contains; errors are ignored."""
        shutil.rmtree(self.folder, ignore_errors=True)


def _writer(content: bytes) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        path.write_bytes(content)

    return write


class ContainerFolder(SharedFolder):
    """A folder in a volume that all containers of a Docker cluster mount, accessed through one of them."""

    def __init__(self, container: Any, path: str) -> None:
        self.container, self.path = container, path

    def beside(self, name: str) -> ContainerFolder:
        """Return another folder of the same volume."""
        return ContainerFolder(self.container, f"{self.path.rpartition('/')[0]}/{name}")

    def write(self, files: Mapping[str, bytes]) -> None:
        """Write files into the folder."""
        self.put(files)

    def put(self, files: Mapping[str, bytes], folders: Iterable[str] = ()) -> int:
        """Write files and empty folders, given by their paths below this folder; everybody may write into the folders.

        Returns the files' modification time, seconds since 1970. Raises InputError.
        """
        packed, now, root = io.BytesIO(), int(time.time()), PurePosixPath(self.path).name
        wanted = {PurePosixPath(name) for name in folders} | {PurePosixPath(name).parent for name in files}
        above = {part for path in wanted for part in (path, *path.parents) if str(part) != "."}
        with tarfile.open(fileobj=packed, mode="w") as archive:
            for at in ["", *sorted(map(str, above))]:
                entry = tarfile.TarInfo(f"{root}/{at}".rstrip("/"))
                entry.type, entry.mode, entry.mtime = tarfile.DIRTYPE, OPEN_MODE, now
                archive.addfile(entry)
            for name, content in files.items():
                entry = tarfile.TarInfo(f"{root}/{name}")
                entry.size, entry.mode, entry.mtime = len(content), 0o644, now
                archive.addfile(entry, io.BytesIO(content))
        with self.errors():
            self.container.put_archive(str(PurePosixPath(self.path).parent), packed.getvalue())
        return now

    def read(self, name: str) -> bytes | None:
        """Return a file's content; None if it does not exist."""
        return next((content for _, _, content in self.members(name)), None)

    def members(self, name: str, *, contents: bool = True) -> list[tuple[str, int, bytes]]:
        """Return a file, or the files below a folder: (relative path, size, content if ``contents``).

        Returns nothing if there is no such file. Raises InputError.
        """
        import docker

        found = []
        with self.errors():
            try:
                parts, _ = self.container.get_archive(f"{self.path}/{name}")
            except docker.errors.NotFound:
                return []
            with tarfile.open(fileobj=io.BytesIO(b"".join(parts))) as archive:
                for member in archive:
                    taken: Any = archive.extractfile(member) if member.isfile() else None
                    if taken is not None:
                        below = member.name.partition("/")[2]
                        found.append((below, member.size, taken.read() if contents else b""))
        return found

    def remove(self, name: str = "") -> None:
        """Remove the folder, or only the file or folder of this name in it."""
        with self.errors():
            self.container.exec_run(["rm", "-rf", f"{self.path}/{name}".rstrip("/")])

    def node_limit_mb(self) -> int | None:
        """Return the smallest memory limit of the containers in which nodes run, MiB; None if they have no limit."""
        with self.errors():
            project = self.container.labels.get("com.docker.compose.project", "")
            labels = [f"com.docker.compose.project={project}", "com.docker.compose.service=nm"]
            nodes = self.container.client.containers.list(filters={"label": labels})
            limits = [int(node.attrs["HostConfig"].get("Memory") or 0) for node in nodes]
        return min((limit >> 20 for limit in limits if limit), default=None)

    @contextlib.contextmanager
    def errors(self) -> Iterator[None]:
        """Convert Docker's errors within the context to InputError."""
        import requests

        import docker

        try:
            yield
        except (docker.errors.DockerException, requests.RequestException, tarfile.TarError) as error:
            hint = "is the cluster up? ask `yarnfair cluster status --backend docker`"
            raise InputError(f"Docker: {str(error)[:200]}", where=self.path, hint=hint) from None
