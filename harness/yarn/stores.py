"""Open the store of an RM's allocation file by its name: local path, SFTP or WebHDFS."""

from __future__ import annotations

import posixpath
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import unquote, urlsplit

from harness.base.errors import CallError
from harness.yarn.files import TEMPORARY, ConfigStore, LocalStore, always, left_by
from harness.yarn.http import HttpOptions
from harness.yarn.sftp import SftpStore
from harness.yarn.webhdfs import WebHdfs, open_hdfs


@dataclass(frozen=True)
class WebHdfsStore(ConfigStore):
    """A file in HDFS over WebHDFS: `base` is the NameNode's ``http://host:port``, `path` is absolute in HDFS."""

    base: str
    path: str
    options: HttpOptions = field(default_factory=HttpOptions)

    @property
    def name(self) -> str:  # type: ignore[override]
        """The NameNode's address and the file's path."""
        return f"{self.base}{self.path}"

    @property
    def file_name(self) -> str:
        """The file's name."""
        return posixpath.basename(self.path)

    def beside(self, name: str) -> WebHdfsStore:
        """Return the store of another file in the same folder."""
        return replace(self, path=posixpath.join(posixpath.dirname(self.path), name))

    @property
    def _hdfs(self) -> WebHdfs:
        return WebHdfs(self.base, self.options)

    def read(self) -> bytes:
        """Return the content."""
        return self._hdfs.call("GET", self.path, "OPEN")

    def _put(self, data: bytes, still: Callable[[], None] = always) -> None:
        self._hdfs.write(self.path, data, like=self._hdfs.status(self.path), temporary=TEMPORARY, still=still)

    def remove(self) -> None:
        """Remove the file."""
        self._hdfs.delete(self.path)

    def clear(self) -> int:
        """Remove temporary files of interrupted writes; return their number."""
        folder, last = posixpath.split(self.path)
        left = [found.name for found in self._hdfs.listing(folder) if left_by(found.name, last)]
        for name in left:
            self._hdfs.delete(posixpath.join(folder, name))
        return len(left)


def open_store(text: str, options: HttpOptions | None = None) -> ConfigStore:
    """Open a store by its name.

    The name is a path, ``sftp://[user@]host[:port]/path``, ``webhdfs://`` or ``swebhdfs://host:port/path``. `options`
    are for WebHDFS. Raises CallError for any other form.
    """
    if "://" not in text:
        if not text or "\0" in text:
            raise CallError("no path of an allocation file given")
        return LocalStore(Path(text))
    hint = "give a path, sftp://[user@]host[:port]/path, webhdfs://host:port/path or swebhdfs://host:port/path"
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        # Do not show the library's message, which may quote a part of a password.
        raise CallError(f"{text!r} is not a place: its host or its port is not valid", hint=hint) from None
    path = unquote(parts.path)
    if parts.password is not None:
        what = "a password in the address of an allocation file"
        raise CallError(what, where=parts.hostname, hint="take it out: SFTP goes by keys, WebHDFS by http.auth")
    if not parts.hostname or not path.strip("/") or path.endswith("/") or parts.query:
        raise CallError(f"{text!r} names no file", hint=hint)
    if parts.scheme == "sftp":
        return SftpStore(parts.hostname, path, port, parts.username)
    if parts.scheme in ("webhdfs", "swebhdfs"):
        hdfs, path = open_hdfs(text, options)
        return WebHdfsStore(hdfs.base, path, hdfs.options)
    raise CallError(f"{text!r} is not a place for an allocation file", hint=hint)
