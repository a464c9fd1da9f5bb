"""Folders that every node of a cluster sees under one path: of this machine, or of a volume of containers.

Of hosts that share nothing: harness.clusters.hosts_folder.
"""

from __future__ import annotations

import contextlib
import io
import shutil
import tarfile
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from harness.base.errors import InputError
from harness.base.files import reading, writing


class SharedFolder(ABC):
    """A folder that every node of the cluster sees under the same path."""

    #: Its path on the nodes.
    path: str

    @abstractmethod
    def write(self, files: Mapping[str, bytes]) -> None:
        """Puts files there. Raises InputError."""

    @abstractmethod
    def read(self, name: str) -> bytes | None:
        """What a file holds now; None while there is none. Raises InputError."""

    @abstractmethod
    def remove(self) -> None:
        """Takes the folder away."""

    def troubles(self) -> list[str]:
        """What went wrong since asked last without stopping anything; one line each."""
        return []


class LocalFolder(SharedFolder):
    """A folder of this machine, which the nodes see as it is (local processes, NFS)."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.absolute()
        self.path = str(self.folder)

    def write(self, files: Mapping[str, bytes]) -> None:
        with writing(self.path):
            self.folder.mkdir(parents=True, exist_ok=True)
            # The nodes' containers may be another user's, and write their records here.
            self.folder.chmod(0o777)
            for name, content in files.items():
                (self.folder / name).write_bytes(content)

    def read(self, name: str) -> bytes | None:
        with reading(f"{self.path}/{name}"), contextlib.suppress(FileNotFoundError):
            return (self.folder / name).read_bytes()
        return None

    def remove(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)


class ContainerFolder(SharedFolder):
    """A folder of a volume that all containers of a Docker cluster mount, reached through one of them."""

    def __init__(self, container: Any, path: str) -> None:
        self.container, self.path = container, path

    def beside(self, name: str) -> ContainerFolder:
        """Another folder of the same volume."""
        return ContainerFolder(self.container, f"{self.path.rpartition('/')[0]}/{name}")

    def write(self, files: Mapping[str, bytes]) -> None:
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w") as archive:
            folder = tarfile.TarInfo(PurePosixPath(self.path).name)
            folder.type, folder.mode = tarfile.DIRTYPE, 0o777
            archive.addfile(folder)
            for name, content in files.items():
                entry = tarfile.TarInfo(f"{folder.name}/{name}")
                entry.size, entry.mode = len(content), 0o644
                archive.addfile(entry, io.BytesIO(content))
        with self._errors():
            self.container.put_archive(str(PurePosixPath(self.path).parent), packed.getvalue())

    def read(self, name: str) -> bytes | None:
        import docker

        with self._errors():
            try:
                parts, _ = self.container.get_archive(f"{self.path}/{name}")
            except docker.errors.NotFound:
                return None
            with tarfile.open(fileobj=io.BytesIO(b"".join(parts))) as archive:
                found = archive.extractfile(archive.next())  # type: ignore[arg-type]
                return found.read() if found is not None else None

    def remove(self) -> None:
        with self._errors():
            self.container.exec_run(["rm", "-rf", self.path])

    @contextlib.contextmanager
    def _errors(self) -> Any:
        import requests

        import docker

        try:
            yield
        except (docker.errors.DockerException, requests.RequestException, tarfile.TarError) as error:
            raise InputError(f"Docker: {str(error)[:200]}", where=self.path) from None
