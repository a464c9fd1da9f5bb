"""HTTP sessions with a deadline for each call, enforced on the call's connections; and messages about TLS errors.

The timeouts of the library requests apply to each single read, so a server that sends a byte now and then could delay a
call without limit.
"""

from __future__ import annotations

import contextlib
import os
import re
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import requests
from requests.adapters import HTTPAdapter
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool

from harness.yarn.errors import Unreachable

#: Messages of OpenSSL about a certificate -> hint; the first match counts.
_CERTIFICATES = (
    ("has expired", "renew the certificate at the server, or set this machine's clock; nothing else changes here"),
    ("not yet valid", "set the clocks by NTP: by this machine's the certificate is still to come"),
    ("mismatch", "ask the server by a name that its certificate has, or give it one for this name"),
    ("Missing", "sign the certificate anew with what is missing (RFC 5280): Python 3.13 and newer want it"),
    ("", "give the authority that signed the server's certificate (http.ca_file, --ca-file)"),
)
PEM_HINT = "give a file of PEM certificates that this user may read"


class Watch:
    """Shut down the connections of one call at its deadline, even while code is reading from them.

    `late`: whether the deadline has passed. The data read until then are not a complete answer, although the end of a
    connection looks like the end of an answer. `sent`: whether a request was sent, so that the other side may have
    carried it out.
    """

    def __init__(self, limit_s: float) -> None:
        self.late = self.sent = False
        self._limit_s = limit_s
        self._end: float | None = time.monotonic() + limit_s
        self._done = False
        self._sockets: list[socket.socket] = []
        self._changed = threading.Condition()
        threading.Thread(target=self._wait, name="http-watch", daemon=True).start()

    def restart(self, times: int = 1) -> None:
        """Restart the time limit, or a multiple of it."""
        self._set(time.monotonic() + self._limit_s * times)

    def pause(self) -> None:
        """Suspend the limit until `restart`, because the call does not wait for the other side."""
        self._set(None)

    def _set(self, end: float | None) -> None:
        with self._changed:
            self._end = end
            self._changed.notify()

    def add(self, connection: socket.socket) -> None:
        """Add a connection that the call uses, which is shut down when the call takes too long."""
        with self._changed, contextlib.suppress(OSError):
            # Keep a duplicate of the handle, because TLS takes over the first one. A shutdown applies to both.
            own = socket.socket(fileno=os.dup(connection.fileno()))
            self._sockets.append(own)
            if self.late:
                _shut(own)

    def end(self) -> None:
        """End the watch of the call."""
        with self._changed:
            self._done = True
            self._changed.notify()
            for own in self._sockets:
                own.close()
            self._sockets.clear()

    def _wait(self) -> None:
        with self._changed:
            while not self._done:
                left = None if self._end is None else self._end - time.monotonic()
                if left is not None and left <= 0:
                    self.late = True
                    for own in self._sockets:
                        _shut(own)
                    return
                self._changed.wait(left)


def _shut(connection: socket.socket) -> None:
    # The other end may have closed the connection.
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)


class _Using(threading.local):
    """The watch of the call that this thread makes now."""

    watch: Watch | None = None


_using = _Using()


def _uses(connection: socket.socket | None, *, sends: bool = False) -> None:
    watch = _using.watch
    if watch is not None:
        watch.sent = watch.sent or sends
        if connection is not None:
            watch.add(connection)


class _Watched(HTTPConnection):
    """A connection that reports its socket, and the time when it sends, to the watch of its call."""

    def _new_conn(self) -> socket.socket:
        made = super()._new_conn()
        _uses(made)
        return made

    def request(self, *args: Any, **named: Any) -> None:
        # Connect before anything is sent: a request that fails here was certainly not carried out.
        if self.sock is None:
            self.connect()
        _uses(self.sock, sends=True)
        super().request(*args, **named)


class _WatchedTls(_Watched, HTTPSConnection):
    pass


class _PlainPool(HTTPConnectionPool):
    ConnectionCls = _Watched


class _TlsPool(HTTPSConnectionPool):
    ConnectionCls = _WatchedTls


class _Adapter(HTTPAdapter):
    watch: Watch | None = None

    def init_poolmanager(self, *args: Any, **named: Any) -> None:
        super().init_poolmanager(*args, **named)
        self.poolmanager.pool_classes_by_scheme = {"http": _PlainPool, "https": _TlsPool}

    def send(self, *args: Any, **named: Any) -> requests.Response:
        before, _using.watch = _using.watch, self.watch
        try:
            return super().send(*args, **named)
        finally:
            _using.watch = before


class Session(requests.Session):
    """A session whose calls can have a deadline. It supports one call at a time."""

    def __init__(self) -> None:
        super().__init__()
        self._adapter = _Adapter()
        for scheme in ("http://", "https://"):
            self.mount(scheme, self._adapter)

    @contextlib.contextmanager
    def within(self, limit_s: float) -> Iterator[Watch]:
        """Limit the time of requests and reads in this context. The caller checks `late`."""
        watch = self._adapter.watch = Watch(limit_s)
        try:
            yield watch
        finally:
            self._adapter.watch = None
            watch.end()


def tls_trouble(error: BaseException, base: str) -> Unreachable | None:
    """Explain in one line why no TLS connection could be made; None if the error has another cause.

    `base`: the requested address, for errors that do not contain the address (after a redirection it is another one).
    """
    request = getattr(error, "request", None)
    parts = urlsplit(request.url or "" if request is not None else "")
    # Leave out the path and the query, because the query may contain a delegation token.
    where = f"{parts.scheme}://{parts.netloc}" if parts.netloc else base
    if (isinstance(error, OSError) and "invalid path" in str(error)) or "CERTIFICATE_OR_CRL" in str(error):
        return Unreachable("no TLS connection: the authority's file cannot be read", where=where, hint=PEM_HINT)
    if not isinstance(error, requests.exceptions.SSLError | ssl.SSLError):
        return None
    words = tls_words(error)
    if "certificate verify failed" in words:
        hint = next(hint for said, hint in _CERTIFICATES if said in words)
    else:
        hint = "check that the server speaks https at this port (and give cert_file, if it wants a certificate of ours)"
    return Unreachable(f"no TLS connection: {words}", where=where, hint=hint)


def tls_words(error: BaseException) -> str:
    """Return OpenSSL's message without the wrappers around it."""
    text = " ".join(str(error).split())
    found = re.search(r"()(certificate verify failed[^(]*)", text) or re.search(r"\[(SSL|X509): \w+\] ([^(']*)", text)
    reason = found.group(2) if found else getattr(error, "strerror", None) or text[:300]
    return str(reason).strip().rstrip(".")
