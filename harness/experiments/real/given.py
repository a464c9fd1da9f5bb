"""The allocation file of somebody's cluster while experiments run there: kept on disk, put back whatever happens.

Before the first write what the file held lies in a folder beside those of clusters of our own
(``runs/given-PID-TICKS-PLACE/``), with a digest of everything that is written in its place. So a later run can put it
back when the one that left it was killed or lost its connection, and never over what somebody else has written since.
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
#: Folders whose file is still to be put back; those that somebody else's changes have overtaken.
_PREFIX, _OVERTAKEN = "given-", "kept-"
_COPY, _DOCUMENT, _WRITTEN = "before.xml", "given.json", "written"
#: One process at a time looks after what others have left: two would put a file back one after the other, the second
#: over a new run's.
_LOCK = ".given.lock"
#: Those that this process works with now.
_OPEN: set[str] = set()


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _same_everywhere(text: str) -> str:
    """A place's name that means the same in another working directory."""
    return text if "://" in text else str(Path(text).absolute())


@dataclass(frozen=True, slots=True)
class _Kept:
    """A folder with what an allocation file held. ``place`` is as `open_store` takes it."""

    folder: Path
    place: str
    process: processes.Process

    @property
    def copy(self) -> Path:
        return self.folder / _COPY

    @property
    def in_use(self) -> bool:
        """Whether a run still works with the file (of this process' own: not only its folder is left)."""
        if self.process.pid == os.getpid() and self.process.alive:
            return self.folder.name in _OPEN
        return self.process.alive

    def note(self, data: bytes) -> None:
        """Note on the disk that this program writes these bytes, before they are written anywhere else.

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
        """Puts back what the file held, if it is still one of ours, and removes the folder; else why not, in words."""
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
    """A place whose every new content is noted before it is written."""

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
    """Those whose file nobody works with any more, or somebody does; what cannot be read is passed over."""
    found = []
    for folder in sorted(root.glob(f"{_PREFIX}*")):
        # Not ours, or gone meanwhile: another process puts back too.
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            document = json.loads((folder / _DOCUMENT).read_text())
            found.append(_Kept(folder, str(document["place"]), processes.Process(**document["process"])))
    return found


def _sync(path: Path) -> None:
    """The names in a folder are on the disk when this returns. Raises OSError."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _keep(root: Path, text: str, before: bytes) -> _Kept:
    """A new folder, there whole or not at all, for its owner's eyes only. Raises OSError."""
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
    """Puts back the files that runs which are gone have left replaced; the names of their folders.

    What cannot be put back stays for the next time; ``progress`` is told.
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
    """The allocation file of a given cluster (as `open_store` takes it), which has its content back when this ends.

    What a run before has left replaced is put back first. If it cannot be put back at the end, ``progress`` is told
    where the copy lies, and the next run tries it. Raises InputError when another run works with the file, when there
    is no room for the copy, and what reading the file raises; it is untouched then.
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
