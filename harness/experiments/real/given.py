"""Saves the allocation file of an external cluster before an experiment changes it, and restores it afterwards.

Before the first write, the file's content is saved in a folder ``runs/given-PID-TICKS-PLACE/``, together with digests
of everything that the run writes to the file. If a run is killed or loses its connection, a later run restores the
content, unless somebody else has changed the file since.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from harness.base.errors import InputError, YarnfairError, reason
from harness.base.files import locked, writing
from harness.clusters import processes
from harness.yarn.files import ConfigStore, always
from harness.yarn.http import HttpOptions
from harness.yarn.stores import open_store

Progress = Callable[[str], None]
#: Prefixes of folders: of files still to be restored, and of files that somebody else has changed since.
_PREFIX, _OVERTAKEN = "given-", "kept-"
_COPY, _DOCUMENT, _WRITTEN = "before.xml", "given.json", "written"
#: Lock file, so that only one process at a time restores files of killed runs. A second process could overwrite the
#: file of a run that has begun in between.
_LOCK = ".given.lock"
#: Folders in use by this process.
_OPEN: set[str] = set()


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _same_everywhere(text: str) -> str:
    """Return a store's location with an absolute path, so that it is valid in any working directory."""
    return text if "://" in text else str(Path(text).absolute())


@dataclass(frozen=True, slots=True)
class _Kept:
    """A folder with the saved content of an allocation file. ``place`` is an argument of `open_store`."""

    folder: Path
    place: str
    process: processes.Process

    @property
    def copy(self) -> Path:
        return self.folder / _COPY

    @property
    def in_use(self) -> bool:
        """Return whether a run of this process or of another living one is still using the file."""
        if self.process.pid == os.getpid() and self.process.alive:
            return self.folder.name in _OPEN
        return self.process.alive

    def note(self, data: bytes) -> None:
        """Record on disk that this program will write these bytes, before they are written anywhere else.

        Raises InputError.
        """
        line = _digest(data) + "\n"
        with writing(self.folder):
            path = self.folder / _WRITTEN
            if line in path.read_text():
                return
            with path.open("a") as out:
                out.write(line)
                out.flush()
                os.fsync(out.fileno())

    def put_back(self, place: ConfigStore) -> str | None:
        """Restore the file's content if this program wrote the present one, and remove the folder.

        Otherwise return the reason for which the file was not restored.
        """
        try:
            before, now = self.copy.read_bytes(), place.read()
            if now != before:
                if _digest(now) not in (self.folder / _WRITTEN).read_text().split():
                    return self._overtaken(place)
                place.write(before, before=now)
            shutil.rmtree(self.folder)
        except (YarnfairError, OSError) as error:
            why = error.line() if isinstance(error, YarnfairError) else reason(error)
            return (
                f"the allocation file {place.name} could not be put back ({why}): the next run tries it again; "
                f"what it held is {self.copy}"
            )
        return None

    def _overtaken(self, place: ConfigStore) -> str:
        target = self.folder.with_name(_OVERTAKEN + self.folder.name.removeprefix(_PREFIX))
        number = 0
        while target.exists():
            number += 1
            target = target.with_name(f"{target.name.partition('.')[0]}.{number}")
        self.folder.rename(target)
        return (
            f"the allocation file {place.name} was changed by somebody else since a run replaced it, and stays as it "
            f"is; what it held before that run is {target / _COPY}"
        )


class _GivenPlace(ConfigStore):
    """A store that records every new content before it is written."""

    def __init__(self, place: ConfigStore, kept: _Kept) -> None:
        self._place, self._kept = place, kept

    @property
    def name(self) -> str:  # type: ignore[override]
        return self._place.name

    def read(self) -> bytes:
        return self._place.read()

    def _put(self, data: bytes, still: Callable[[], None] = always) -> None:
        self._kept.note(data)
        self._place._put(data, still)


def _kept_folders(root: Path) -> list[_Kept]:
    """Return all folders with saved files, whether or not the files are in use; unreadable folders are skipped."""
    found = []
    for folder in sorted(root.glob(f"{_PREFIX}*")):
        # The folder is not one of this program's, or another restoring process has removed it meanwhile.
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            document = json.loads((folder / _DOCUMENT).read_text())
            found.append(_Kept(folder, str(document["place"]), processes.Process(**document["process"])))
    return found


def _sync(path: Path) -> None:
    """Make sure that the names in a folder are on disk. Raises OSError."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _keep(root: Path, text: str, before: bytes) -> _Kept:
    """Save the content `before` of the file at `text` in a new folder, atomically and only for its owner.

    Raises OSError.
    """
    me = next(iter(processes.of_pid(os.getpid())))
    name = f"{_PREFIX}{me.pid}-{me.start_ticks}-{_digest(text.encode())[:8]}"
    scratch = Path(tempfile.mkdtemp(prefix=".given-", dir=root))
    try:
        document = json.dumps({"place": text, "process": asdict(me)}, indent=1).encode()
        for file, data in ((_COPY, before), (_DOCUMENT, document), (_WRITTEN, b"")):
            with os.fdopen(os.open(scratch / file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as out:
                out.write(data)
                out.flush()
                os.fsync(out.fileno())
        _sync(scratch)
        scratch.rename(root / name)
        _sync(root)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return _Kept(root / name, text, me)


def put_back_abandoned(root: Path, progress: Progress = lambda _: None) -> list[str]:
    """Restore the files that ended runs have left replaced; return the names of their folders.

    What cannot be restored stays for the next time and is reported to ``progress``.
    """
    done: list[str] = []
    if not any(not kept.in_use for kept in _kept_folders(root)):
        return done
    try:
        with locked(root / _LOCK):
            for kept in _kept_folders(root):
                if kept.in_use:
                    continue
                said = _put_back(kept)
                if said is None:
                    done.append(kept.folder.name)
                else:
                    progress(said)
    except OSError as error:
        progress(f"files that runs have left replaced were not looked after: {reason(error)}; mend {root}")
    return done


def _put_back(kept: _Kept) -> str | None:
    place = open_store(kept.place)
    try:
        return kept.put_back(place)
    finally:
        place.close()


@contextlib.contextmanager
def given_file(root: Path, text: str, progress: Progress, options: HttpOptions | None = None) -> Iterator[ConfigStore]:
    """Provide the allocation file of an external cluster, and restore its content at the end of the context.

    If an earlier run has not restored the file, it is restored first. If the file cannot be restored at the end,
    ``progress`` receives the location of the copy, and the next run tries again.

    Parameters
    ----------
    root
        The folder for the saved content.
    text
        The location of the file (`open_store`).

    Raises
    ------
    InputError
        Another run uses the file, or its content cannot be saved. The file is then unchanged, as it is after an error
        of reading it.
    """
    text = _same_everywhere(text)
    place = open_store(text, options)
    try:
        try:
            with locked(root / _LOCK):
                for kept in [one for one in _kept_folders(root) if one.place == text]:
                    if kept.in_use:
                        raise InputError(
                            f"another run (process {kept.process.pid}) works with this cluster",
                            where=place.name,
                            hint="wait for it",
                        )
                    said = kept.put_back(place)
                    if said is not None and kept.folder.exists():
                        raise InputError(said)
                    progress(said or f"an earlier run did not end in order: {place.name} is again as it was before it")
                kept = _keep(root, text, place.read())
        except OSError as error:
            raise InputError(
                f"what the allocation file holds cannot be kept: {reason(error)}", where=str(root), hint="make room"
            ) from None
        _OPEN.add(kept.folder.name)
        try:
            yield _GivenPlace(place, kept)
        finally:
            try:
                said = kept.put_back(place)
            finally:
                _OPEN.discard(kept.folder.name)
            if said is not None:
                progress(said)
    finally:
        place.close()
