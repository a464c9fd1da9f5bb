"""Stores of an RM's allocation file: their base class, and the store of local files.

Every store (harness.yarn.stores lists them) replaces the file atomically: it writes a temporary file beside the old one
and renames it, so a reader sees either the old file or the new one, never a part. harness.yarn.fair handles the content
of the file, and harness.yarn.rmclient makes the RM load it.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import stat
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from harness.base.errors import InputError, reason
from harness.base.files import exchange, read_whole

if TYPE_CHECKING:
    pass

#: Part of the names of temporary files, which are `.NAME.yarnfair-` and a random suffix.
TEMPORARY = ".yarnfair-"
#: Extended attribute in which Linux stores a file's POSIX ACL.
ACL_ATTRIBUTE = "system.posix_acl_access"
#: Extended attributes that the kernel derives from a file's content, or that grant privileges to a program.
_OF_CONTENT = frozenset({"security.ima", "security.evm", "security.capability"})
#: Maximum size of a file, bytes; far larger than any real allocation file (10,000 queues take about 3 MB).
MAX_BYTES = 64 << 20


class FileChanged(InputError):
    """The file differs from the one that was read: somebody else has written it since."""


def always() -> None:
    """No-op check: the file may be replaced."""


class ConfigStore(ABC):
    """A store of one allocation file. Messages refer to it by `name`."""

    name: str

    @abstractmethod
    def read(self) -> bytes:
        """Read the file. Raises InputError (no such file, no permission, too large) or Unreachable."""

    @abstractmethod
    def _put(self, data: bytes, still: Callable[[], None] = always) -> None:
        """Replace the file's content atomically.

        ``still`` is called just before the replacement. If it raises, the old file stays in place.
        """

    def write(self, data: bytes, *, before: bytes | None = None, still: Callable[[], None] = always) -> None:
        """Replace the file and read it back.

        With `before`, replace the file only if it still has those bytes; otherwise raise FileChanged. On systems that
        cannot exchange two names atomically, another process may write between the check and the rename. `still` is
        called just before the file is replaced, and may raise to prevent this. After InputError or Unreachable, the
        complete old file is in place.
        """
        if len(data) > MAX_BYTES:
            raise InputError(f"{len(data)} bytes are too many for an allocation file", where=self.name)
        self._put_over(data, before, still)
        if self.read() != data:
            raise FileChanged("another writer replaced the file at the same moment", where=self.name)

    def _put_over(self, data: bytes, before: bytes | None, still: Callable[[], None]) -> None:
        """Like `_put`, unless the file no longer has the bytes ``before`` once the temporary file is written."""

        def last() -> None:
            if before is not None and self.read() != before:
                raise self._changed()
            still()

        self._put(data, last)

    def _changed(self) -> FileChanged:
        return FileChanged(
            "somebody else changed the file",
            where=self.name,
            hint="look at what changed; the next round starts from it",
        )

    def remove(self) -> None:
        """Remove the file; no-op if there is none. Raises InputError or Unreachable."""
        raise NotImplementedError(f"{type(self).__name__} removes nothing")

    def clear(self) -> int:
        """Remove the temporary files of killed writers; return their number.

        Call it only when nobody else is writing the file. Raises InputError or Unreachable.
        """
        return 0

    def beside(self, name: str) -> ConfigStore:
        """Return the store of another file in the same directory (after resolving links)."""
        raise NotImplementedError(f"{type(self).__name__} knows no folder")

    @property
    def file_name(self) -> str:
        """The file's name in its folder."""
        raise NotImplementedError(f"{type(self).__name__} knows no folder")

    def left(self) -> ConfigStore | None:
        """Return the file that was written last, if a symbolic link has led to another one since; else None.

        A file is returned once.
        """
        return None

    def location(self) -> str:
        """Return the path of the file to which links lead now; '' if the store cannot tell."""
        return ""

    def at(self, location: str) -> ConfigStore | None:
        """Return the file at a `location` of before, if it still exists and is another one now; else None."""
        return None

    def remarks(self) -> list[str]:
        """Return messages about metadata of the file that writes since the last call have not preserved.

        If a loss of metadata would exclude a reader of the file, the write fails instead.
        """
        return []

    def close(self) -> None:
        """Close connections."""
        return


def left_by(name: str, file: str) -> bool:
    """Return whether a name in a directory is that of a temporary file of the given file."""
    return name.startswith(f".{file}{TEMPORARY}")


@dataclass(frozen=True, slots=True)
class Readers:
    """The owner and group of a file (numbers; in HDFS names) and its permission bits, which determine its readers."""

    uid: int | str
    gid: int | str
    mode: int

    def lost(self, uid: int | str, gid: int | str, *, owner_in_group: bool = False) -> str:
        """Describe who loses read access if the same mode is combined with this owner and group; "" if nobody does.

        ``owner_in_group``: whether the old owner is known to be a member of the new group. Root can read everything.
        """
        if self.mode & stat.S_IROTH:
            return ""
        if gid != self.gid and self.mode & stat.S_IRGRP:
            return f"the group {self.gid}"
        by_group = owner_in_group and self.mode & stat.S_IRGRP
        if uid != self.uid and self.uid != 0 and self.mode & stat.S_IRUSR and not by_group:
            return f"its owner {self.uid}"
        return ""


def unreadable(lost: str, where: str, who: str = "a member of its group", command: str = "chmod o+r") -> InputError:
    """Create the error for a file that is not replaced because users would lose read access."""
    return InputError(
        f"not replaced: {lost} could not read the new file (its owner and group cannot be set here)",
        where=where,
        hint=f"run as the file's owner or as {who}, or let others read it ({command})",
    )


def _groups_of(uid: int) -> list[int]:
    """Return the groups of a local user; none if the user is unknown on this machine."""
    try:
        user = pwd.getpwuid(uid)
    except KeyError:
        return []
    return os.getgrouplist(user.pw_name, user.pw_gid)


def acl_of(path: Path | int) -> bytes | None:
    """Return a file's POSIX ACL in Linux's format; None if it has only its mode, or the file system has no ACLs."""
    try:
        return os.getxattr(path, ACL_ATTRIBUTE)
    except (OSError, AttributeError):  # no such attribute, or not supported by this file system or operating system
        return None


def _set_acl(handle: int, acl: bytes | None) -> None:
    if acl == acl_of(handle):
        return
    if acl is None:
        # The old file has no ACL: remove the one that the new file got from the directory's default.
        os.removexattr(handle, ACL_ATTRIBUTE)
    else:
        os.setxattr(handle, ACL_ATTRIBUTE, acl)


def _keep_attributes(handle: int, target: Path, *, system: bool) -> dict[str, str]:
    """Copy the target's extended attributes except its ACL to a new file; return those that cannot be set -> reason.

    The attributes include those that people and tools have set, and the SELinux label, without which a confined
    ResourceManager could not read the file. ``system``: whether to copy only the file system's own attributes, such as
    the ACL of NFS, which a change of the mode would change, too; otherwise only all other attributes are copied, for
    which the file must be writable.
    """
    lost: dict[str, str] = {}
    try:
        # Python has `listxattr` only on Linux, and not every file system has extended attributes.
        found = {*os.listxattr(target)} - {ACL_ATTRIBUTE, *_OF_CONTENT}
    except (OSError, AttributeError):
        return lost
    for name in sorted(name for name in found if name.startswith("system.") == system):
        try:
            value = os.getxattr(target, name)
            if name not in os.listxattr(handle) or os.getxattr(handle, name) != value:
                os.setxattr(handle, name, value)
        except OSError as error:
            lost[name] = reason(error)
    return lost


def _take_back(temporary: str, target: Path, data: bytes) -> None:
    """Move the file that ``data`` has replaced back to the target.

    If somebody else has replaced the target meanwhile, that newer content is kept.
    """
    expected = data
    while True:
        back = read_whole(temporary, MAX_BYTES)
        exchange(temporary, target)
        if read_whole(temporary, MAX_BYTES) == expected:
            return
        expected = back


@dataclass(frozen=True)
class LocalStore(ConfigStore):
    """A file of this machine or of a mounted directory.

    Mode, owner, group, POSIX ACL and other extended attributes are preserved, and a symbolic link is kept. If owner or
    group cannot be set and somebody would lose read access, the file is not replaced. If the file has several hard
    links, the other names keep the old content: they may be backups (``cp -al``), and a write in place would not be
    atomic.
    """

    path: Path
    #: Remarks since the last call of `remarks`, as an ordered set.
    _remarks: dict[str, None] = field(default_factory=dict, init=False, repr=False, compare=False)
    #: The file that was written last, with links resolved (none: no write yet).
    _written: list[Path] = field(default_factory=list, init=False, repr=False, compare=False)

    @property
    def name(self) -> str:  # type: ignore[override]
        """The file's path."""
        return str(self.path)

    @property
    def file_name(self) -> str:
        """The file's name; links are followed."""
        return os.path.basename(os.path.realpath(self.path))

    def beside(self, name: str) -> LocalStore:
        """Return the store of another file in the same folder."""
        # A cycle of links is no error here, because the next read reports it.
        return LocalStore(Path(os.path.realpath(self.path)).with_name(name))

    def is_file(self, path: str) -> bool:
        """Return whether ``path`` leads to this file, as far as this can be determined here."""
        return os.path.realpath(path) == os.path.realpath(self.path)

    def read(self) -> bytes:
        """Return the content. Raises InputError."""
        try:
            return read_whole(self.path, MAX_BYTES)
        except OSError as error:
            hint = "check the path, and who may read it"
            raise InputError(f"cannot be read: {reason(error)}", where=self.name, hint=hint) from None

    def _put(self, data: bytes, still: Callable[[], None] = always) -> None:
        """Replace the file's content atomically.

        ``still`` is called just before that; what it raises keeps the old file in place.
        """
        self._put_over(data, None, still)

    def _put_over(self, data: bytes, before: bytes | None, still: Callable[[], None]) -> None:
        if before is not None and self.read() != before:
            raise self._changed()
        remarks: list[str] = []
        try:
            target = Path(os.path.realpath(self.path))
            handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}{TEMPORARY}")
        except OSError as error:
            raise InputError(f"cannot write beside it: {reason(error)}", where=self.name) from None
        try:
            with os.fdopen(handle, "wb") as out:
                out.write(data)
                try:
                    old = target.stat()
                except FileNotFoundError:
                    # A temporary file is readable by its owner only, but the RM and others must be able to read it.
                    os.fchmod(out.fileno(), 0o644)
                else:
                    lost = _keep_attributes(out.fileno(), target, system=False)
                    self._become(out.fileno(), old, acl_of(target))
                    remarks = self._not_kept(lost | _keep_attributes(out.fileno(), target, system=True), old)
                out.flush()
                os.fsync(out.fileno())
            still()
            if before is None or not exchange(temporary, target):
                os.replace(temporary, target)
            elif read_whole(temporary, MAX_BYTES) != before:
                # Somebody else wrote the file during this write: keep their content.
                _take_back(temporary, target, data)
                raise self._changed()
            self._remarks.update(dict.fromkeys(remarks))
            self._written[:] = [target]
            folder = os.open(target.parent, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
        except OSError as error:
            # A file that is a mount point itself cannot be replaced by a rename.
            hint = "mount the folder that holds the file, not the file" if error.errno == 16 else None
            raise InputError(f"cannot be written: {reason(error)}", where=self.name, hint=hint) from None
        finally:
            # The temporary file has been renamed, unless something went wrong.
            with contextlib.suppress(FileNotFoundError):
                os.unlink(temporary)

    def remove(self) -> None:
        """Remove the file if it exists. Raises InputError."""
        try:
            Path(os.path.realpath(self.path)).unlink(missing_ok=True)
        except OSError as error:
            raise InputError(f"cannot be removed: {reason(error)}", where=self.name) from None

    def clear(self) -> int:
        """Remove temporary files of interrupted writes; return their number."""
        target = Path(os.path.realpath(self.path))
        try:
            left = [target.parent / name for name in os.listdir(target.parent) if left_by(name, target.name)]
            for path in left:
                path.unlink(missing_ok=True)
        except OSError as error:
            raise InputError(f"leftovers beside it cannot be removed: {reason(error)}", where=self.name) from None
        return len(left)

    def left(self) -> ConfigStore | None:
        """Return the file that was written last, if the path leads to another one now and that file still exists."""
        if not self._written or self._written[0] == Path(os.path.realpath(self.path)):
            return None
        before = self._written.pop()
        return LocalStore(before) if before.exists() else None

    def location(self) -> str:
        """Return the path of the file to which links lead now."""
        return os.path.realpath(self.path)

    def at(self, location: str) -> ConfigStore | None:
        """Return the file at a `location` of before, if it still exists and is another one now."""
        if not location or location == self.location() or not os.path.isfile(location):
            return None
        return LocalStore(Path(location))

    def remarks(self) -> list[str]:
        """Return attributes that could not be kept, and hard links that were cut, since the last call."""
        found = list(self._remarks)
        self._remarks.clear()
        return found

    def _not_kept(self, lost: dict[str, str], old: os.stat_result) -> list[str]:
        """Describe metadata of the old file that is lost: attributes, each with the reason, and hard links."""
        found = [
            f"{self.name}: its extended attribute {name} is lost, because it cannot be set on the new file: {why}"
            for name, why in lost.items()
        ]
        if old.st_nlink > 1:
            one = old.st_nlink == 2
            others = "another name (a hard link)" if one else f"{old.st_nlink - 1} other names (hard links)"
            found.append(
                f"{self.name} had {others}: {'it keeps' if one else 'they keep'} the content of before and no longer "
                f"{'follows' if one else 'follow'} this file; where that is wanted, make a symbolic link of it"
            )
        return found

    def _become(self, handle: int, old: os.stat_result, acl: bytes | None) -> None:
        """Copy the old file's owner, group, mode and ACL to a new file. InputError if a user would lose read access."""
        now = os.fstat(handle)
        if (now.st_uid, now.st_gid) != (old.st_uid, old.st_gid):
            try:
                os.fchown(handle, old.st_uid, old.st_gid)
            except OSError:
                # Only root can change the owner; a member of a group can set that group.
                with contextlib.suppress(OSError):
                    os.fchown(handle, -1, old.st_gid)
            now = os.fstat(handle)
        mode = stat.S_IMODE(old.st_mode)
        member = now.st_uid != old.st_uid and now.st_gid in _groups_of(old.st_uid)
        if lost := Readers(old.st_uid, old.st_gid, mode).lost(now.st_uid, now.st_gid, owner_in_group=member):
            raise unreadable(lost, self.name)
        # Set the mode last: a change of the owner may clear bits. With an ACL, the group's bits are its mask.
        os.fchmod(handle, mode)
        try:
            _set_acl(handle, acl)
        except OSError as error:
            hint = "run as the file's owner, or take the ACL from the file"
            raise InputError(
                f"not replaced: its ACL cannot be kept: {reason(error)}", where=self.name, hint=hint
            ) from None
