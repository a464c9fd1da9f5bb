"""Access to HDFS by its REST interface, WebHDFS: status, listing, reading, writing, renaming and removing files.

The NameNode redirects to a DataNode, which sends or receives the data. Files of any size are transferred in pieces.
Source: Hadoop's "WebHDFS REST API", version 3.4.
"""

from __future__ import annotations

import contextlib
import http.client
import io
import logging
import posixpath
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import IO, Any
from urllib.parse import quote, unquote, urlsplit

import requests
import urllib3

from harness.base.debug import Timer, shown
from harness.base.errors import CallError, InputError, reason
from harness.yarn.errors import BadAnswer, Refused, Unreachable, well_formed
from harness.yarn.files import Readers, unreadable
from harness.yarn.http import HttpOptions, open_session, parse_json, remote_exception
from harness.yarn.kerberos import hint_of, wants_ticket
from harness.yarn.session import Session, Watch, tls_trouble

#: Maximum size of an answer that is a document instead of a file, bytes: a folder of about 100,000 files.
_ANSWER_BYTES = 64 << 20
_PIECE_BYTES = 1 << 20
_LOG = logging.getLogger(__name__)
_ERRORS = (requests.RequestException, urllib3.exceptions.HTTPError, http.client.HTTPException, OSError, ValueError)


@dataclass(frozen=True, slots=True)
class HdfsStatus:
    """A file or folder.

    ``name``: last part of its path. ``size``: in bytes, 0 for a folder. ``permission``: octal digits. ``owner``,
    ``group``: "" if HDFS does not show them. ``acl``: whether it has an ACL in addition to its permission.
    ``modified_ms``: modification time since 1970, 0 if HDFS does not show it.
    """

    name: str
    folder: bool
    size: int
    permission: str
    owner: str = ""
    group: str = ""
    acl: bool = False
    modified_ms: int = 0


@dataclass(frozen=True)
class WebHdfs:
    """The files of one HDFS. ``base``: the NameNode's ``http://host:port``; paths are absolute in HDFS.

    Every call raises Unreachable, Refused (HDFS answers with an error) or BadAnswer, all of them InputErrors.
    """

    base: str
    options: HttpOptions = field(default_factory=HttpOptions)

    @contextlib.contextmanager
    def _asked(self, what: str, where: str, hint: str) -> Iterator[tuple[Session, Watch]]:
        """Provide a session for one call with a deadline; connection errors become Unreachable.

        The time is `deadline_s`, or `read_timeout_s` if that is longer, plus an allowance for each further MiB.
        """
        limit_s = max(self.options.deadline_s, self.options.read_timeout_s)
        late = Unreachable(f"{what}: no answer in time: not complete after {limit_s:g} s", where=where, hint=hint)
        with open_session(self.options) as session, session.within(limit_s) as watch:
            try:
                yield session, watch
            except Unreachable as error:
                raise late if watch.late else error from None
            except _ERRORS as error:
                if watch.late:
                    raise late from None
                _LOG.debug("%s %s: no answer: %s", what, where, shown(str(error)))
                other = Unreachable(f"{what}: {reason(error)}", where=where, hint=hint)
                raise tls_trouble(error, self.base) or other from None
            except BadAnswer:
                if not watch.late:
                    raise
            if watch.late:
                raise late

    @contextlib.contextmanager
    def _answer(
        self, method: str, path: str, operation: str, data: IO[bytes] | bytes | None, params: dict[str, str]
    ) -> Iterator[tuple[requests.Response, Watch]]:
        """Provide the response to one operation after a redirection to a DataNode.

        The response's status is checked, and its body has not been read.
        """
        options, where = self.options, f"{self.base}{path}"
        query = {"op": operation, **params}
        if options.user and options.auth == "simple":
            query["user.name"] = options.user
        times = (options.connect_timeout_s, options.read_timeout_s)
        url = f"{self.base}/webhdfs/v1{quote(path)}"
        hint = "check the NameNode's address, and that its DataNodes' names resolve here"
        timer = Timer()
        with self._asked(f"WebHDFS {operation}", where, hint) as (session, watch):
            # Do not send the data to the NameNode.
            with session.request(method, url, params=query, timeout=times, allow_redirects=False, stream=True) as first:
                _LOG.debug("%s %s %s: HTTP %s in %s", method, shown(url), query, first.status_code, timer)
                if first.status_code not in (301, 302, 307):
                    yield self._checked(first, operation, where), watch
                    return
                target = self._redirected(first.headers.get("Location", ""), where)
            watch.restart(1 + _size(data) // _PIECE_BYTES)
            with session.request(
                method, target, data=data, timeout=times, allow_redirects=False, stream=True
            ) as second:
                # Do not log the query, which may contain a delegation token.
                _LOG.debug("%s %s: HTTP %s in %s", method, target.partition("?")[0], second.status_code, timer)
                watch.restart()
                yield self._checked(second, operation, where), watch

    def _redirected(self, target: str, where: str) -> str:
        """Return the DataNode's address to which the NameNode redirects.

        Raises BadAnswer if there is none, or if it would continue a connection with TLS without TLS.
        """
        try:
            parts = urlsplit(target)
        except ValueError:
            parts = urlsplit("")
        if parts.scheme not in ("http", "https"):
            raise BadAnswer("redirected to nowhere", where=where)
        if parts.scheme != "https" and self.base.startswith("https:"):
            # Show only the host, because the rest of the address may contain a delegation token.
            hint = "switch https on for the DataNodes (dfs.http.policy)"
            raise BadAnswer(f"redirected from https to http://{well_formed(parts.netloc)[:80]}", where=where, hint=hint)
        return target

    def _checked(self, answer: requests.Response, operation: str, where: str) -> requests.Response:
        if 200 <= answer.status_code < 300:
            return answer
        content = answer.raw.read(_ANSWER_BYTES, decode_content=True)
        exception, message = remote_exception(content, where)
        told = f"{exception}: {message}" if exception else f"HTTP {answer.status_code}"
        hint = hint_of(told)
        if answer.status_code == 401 and wants_ticket(answer) and self.options.login is None:
            hint = "authenticate with Kerberos (http.kerberos)"
        raise Refused(
            f"WebHDFS {operation}: {told}", where=where, hint=hint, status=answer.status_code, exception=exception
        )

    def call(
        self, method: str, path: str, operation: str, data: IO[bytes] | bytes | None = None, **params: str
    ) -> bytes:
        """Carry out one operation and return its whole answer (at most 64 MiB)."""
        with self._answer(method, path, operation, data, params) as (answer, _):
            content: bytes = answer.raw.read(_ANSWER_BYTES + 1, decode_content=True)
        if len(content) > _ANSWER_BYTES:
            raise BadAnswer("the answer is too large", where=f"{self.base}{path}")
        return content

    def _document(self, method: str, path: str, operation: str, **params: str) -> Any:
        return parse_json(self.call(method, path, operation, None, **params) or b"null", f"{self.base}{path}")

    def status(self, path: str) -> HdfsStatus | None:
        """Return the status of a path; None if it does not exist."""
        try:
            told = self._document("GET", path, "GETFILESTATUS")
        except Refused as error:
            if missing(error):
                return None
            raise
        return self._status(told.get("FileStatus") if isinstance(told, dict) else None, path)

    def listing(self, path: str) -> list[HdfsStatus]:
        """Return the content of a folder, by name. Raises Refused if there is no such folder."""
        told = self._document("GET", path, "LISTSTATUS")
        try:
            rows = told["FileStatuses"]["FileStatus"]
            return sorted((self._status(row, path) for row in rows), key=lambda one: one.name)
        except (KeyError, TypeError):
            raise BadAnswer("no listing", where=f"{self.base}{path}") from None

    def _status(self, row: Any, path: str) -> HdfsStatus:
        try:
            return HdfsStatus(
                well_formed(str(row["pathSuffix"])) or posixpath.basename(path),
                row["type"] == "DIRECTORY",
                int(row["length"]),
                well_formed(str(row["permission"])),
                well_formed(str(row.get("owner", ""))),
                well_formed(str(row.get("group", ""))),
                row.get("aclBit") is True,
                int(row.get("modificationTime", 0)),
            )
        except (KeyError, TypeError, ValueError):
            raise BadAnswer("no file status", where=f"{self.base}{path}") from None

    def pieces(self, path: str) -> Iterator[bytes]:
        """Yield a file's bytes, piece by piece. Raises Unreachable if the connection ends before the file does."""
        with self._answer("GET", path, "OPEN", None, {}) as (answer, watch):
            found = answer.iter_content(_PIECE_BYTES)
            while piece := next(found, b""):
                # The time that the caller takes for a piece does not count.
                watch.pause()
                yield piece
                watch.restart()

    def read(self, path: str) -> bytes:
        """Read a whole file into memory."""
        return b"".join(self.pieces(path))

    def write(
        self,
        path: str,
        data: IO[bytes] | bytes,
        *,
        permission: str = "644",
        like: HdfsStatus | None = None,
        temporary: str = ".",
        still: Callable[[], None] | None = None,
    ) -> None:
        """Write a file atomically: write it beside the target, then rename it over the target.

        Parameters
        ----------
        path : str
            The target.
        data : IO[bytes] or bytes
            The new content.
        permission : str
            Octal digits of the permission of a new file.
        like : HdfsStatus or None
            The replaced file, whose permission, owner, group and ACL are preserved. InputError is raised if this is
            impossible and a user would lose read access.
        temporary : str
            Part of the temporary file's name between the file's name and the random suffix.
        still : Callable or None
            Called just before the rename. If it raises, the old file stays in place.
        """
        folder, last = posixpath.split(path)
        new = posixpath.join(folder, f".{last}{temporary}{uuid.uuid4().hex[:12]}")
        permission = permission if like is None else like.permission
        try:
            self.call("PUT", new, "CREATE", data, overwrite="false", permission=permission)
            if like is not None and like.owner:
                self._become(new, path, like)
            if still is not None:
                still()
            told = self._document("PUT", new, "RENAME", destination=path, renameoptions="OVERWRITE")
            if told is not None and told != {"boolean": True}:
                raise Refused(f"WebHDFS RENAME: {told}", where=f"{self.base}{path}")
        except BaseException:
            # The first error is raised; `clear` removes the leftovers.
            with contextlib.suppress(InputError):
                self.call("DELETE", new, "DELETE")
            raise

    def _become(self, new: str, path: str, like: HdfsStatus) -> None:
        """Copy the owner, group and ACL of the file at `path` to a new file."""
        has = self.status(new)
        if has is None:
            return
        if has.owner != like.owner:
            # Only a superuser can change the owner; a member of a group can set that group.
            with contextlib.suppress(Refused):
                self.call("PUT", new, "SETOWNER", owner=like.owner, group=like.group)
        if has.group != like.group:
            with contextlib.suppress(Refused):
                self.call("PUT", new, "SETOWNER", group=like.group)
        if like.acl:
            entries = self._document("GET", path, "GETACLSTATUS")["AclStatus"]["entries"]
            self.call("PUT", new, "SETACL", aclspec=_acl_spec(like.permission, entries))
        elif has.acl:
            # The old file has no ACL: remove the one that the new file got from the folder's default.
            self.call("PUT", new, "REMOVEACL")
            self.call("PUT", new, "SETPERMISSION", permission=like.permission)
        now = self.status(new) or has
        if lost := Readers(like.owner, like.group, int(like.permission, 8)).lost(now.owner, now.group):
            raise unreadable(lost, f"{self.base}{path}", "HDFS's superuser", "hdfs dfs -chmod o+r")

    def make_folder(self, path: str, *, permission: str = "755") -> None:
        """Create a folder and its parents."""
        if self._document("PUT", path, "MKDIRS", permission=permission) != {"boolean": True}:
            raise Refused("WebHDFS MKDIRS: false", where=f"{self.base}{path}")

    def rename(self, path: str, new: str) -> None:
        """Rename a file or folder; the new name must not exist."""
        if self._document("PUT", path, "RENAME", destination=new) != {"boolean": True}:
            raise Refused("WebHDFS RENAME: false", where=f"{self.base}{path}")

    def delete(self, path: str) -> bool:
        """Remove a file, or a folder with its content; return whether there was one."""
        return bool(self._document("DELETE", path, "DELETE", recursive="true") == {"boolean": True})

    def file_system(self) -> str:
        """Return the name of this file system for Hadoop's own clients (``hdfs://host:port``). Raises BadAnswer."""
        where = f"{self.base}/conf"
        with self._asked("the NameNode", where, "check its address") as (session, _):
            times = (self.options.connect_timeout_s, self.options.read_timeout_s)
            # Older releases choose the format by the parameter, newer ones by the header.
            asked, form = {"name": "fs.defaultFS", "format": "json"}, {"Accept": "application/json"}
            with session.get(
                where, params=asked, headers=form, timeout=times, allow_redirects=False, stream=True
            ) as answer:
                content: bytes = answer.raw.read(_ANSWER_BYTES, decode_content=True)
        told = parse_json(content, where)
        found = told.get("property") if isinstance(told, dict) else None
        value = found.get("value") if isinstance(found, dict) else None
        if not isinstance(value, str) or urlsplit(value).scheme != "hdfs":
            raise BadAnswer(f"no address of a file system: {str(value)[:80]!r}", where=where)
        return value.rstrip("/")


def _acl_spec(permission: str, entries: list[str]) -> str:
    """Return a complete ACL from the shown extended entries and the permission, whose group part is the mask."""
    owner, mask, others = (
        "".join(letter if int(digit) & bit else "-" for letter, bit in zip("rwx", (4, 2, 1), strict=True))
        for digit in permission[-3:]
    )
    return ",".join([f"user::{owner}", *map(str, entries), f"mask::{mask}", f"other::{others}"])


def _size(data: IO[bytes] | bytes | None) -> int:
    """Return the number of bytes from the present position to the end."""
    if data is None or isinstance(data, bytes):
        return len(data or b"")
    here = data.tell()
    size = data.seek(0, io.SEEK_END) - here
    data.seek(here)
    return size


def missing(error: Refused) -> bool:
    """Return whether HDFS has refused because there is no such file."""
    return "FileNotFound" in error.exception or error.status == 404


def open_hdfs(text: str, options: HttpOptions | None = None) -> tuple[WebHdfs, str]:
    """Return the file system and the path of ``webhdfs://[user@]host[:port]/path`` (``swebhdfs``: with TLS).

    Raises CallError.
    """
    hint = "give webhdfs://host:port/folder, with the NameNode's web address"
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        # Do not show the library's message, which may quote a part of a password.
        raise CallError(f"{text!r} is not a place: its host or its port is not valid", hint=hint) from None
    path = posixpath.normpath(unquote(parts.path)) if parts.path else ""
    usual = {"webhdfs": ("http", 9870), "swebhdfs": ("https", 9871)}.get(parts.scheme)
    if usual is None or not parts.hostname or path in ("", "/") or parts.password is not None or parts.query:
        raise CallError(f"{text!r} is not a place", hint=hint)
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    given = options or HttpOptions()
    if parts.username:
        given = replace(given, user=parts.username)
    return WebHdfs(f"{usual[0]}://{host}:{port or usual[1]}", given), path
