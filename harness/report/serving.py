"""A page on a port of this machine: one document and a few JSON paths. Read-only; no other paths.

Strict: only GET; only this address as Host (foreign DNS names that point here are refused); a content policy that lets
the page load nothing and run only its own script; data only for this script.
"""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import parse_qs, urlsplit

from harness.base.errors import CallError, InputError, YarnfairError
from harness.base.files import plain
from harness.base.port import Port
from harness.report.templating import content_hash

#: A header that the page's script sets, and that a page of another origin cannot set without a preflight request.
HEADER = "X-Yarnfair"
#: A path's handler: from the query (the last value of each name) to a document.
Answer = Callable[[Mapping[str, str]], Mapping[str, Any]]
_LOCAL = ("localhost",)
_LONGEST = 16_384


def address_of(text: str) -> tuple[str, int]:
    """Parse HOST:PORT, PORT or HOST; without a port any free one, without a host only this machine.

    Raises CallError.
    """
    host, colon, port = text.rpartition(":")
    if not colon or text.endswith("]"):
        host, port = ("", text) if text.isdigit() else (text, "0")
    host = host.strip("[]") or "127.0.0.1"
    if not re.fullmatch(r"[0-9]{1,5}", port) or int(port) > 65_535 or re.search(r"[\s/]", host):
        raise CallError(f"{text[:60]!r} is not a HOST:PORT", hint="give 127.0.0.1:8090, for example")
    return host, int(port)


def content_policy(page: str) -> str:
    """Return the page's Content-Security-Policy.

    It allows only the page's own inline scripts and styles (by their hashes), requests to the page's origin, and images
    in ``data:`` URLs.
    """

    def hashes(tag: str) -> str:
        found = re.findall(rf"<{tag}>(.*?)</{tag}>", page, re.S)
        return " ".join(f"'{content_hash(text)}'" for text in found) or "'none'"

    return (
        f"default-src 'none'; script-src {hashes('script')}; style-src {hashes('style')}; connect-src 'self'; "
        "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )


class PageServer:
    """Serves until it is closed.

    Parameters
    ----------
    host, port : the address (0: any free port).
    page : the document at ``/``.
    answers : path -> handler whose result is sent as JSON, for requests of the page's own script. A YarnfairError is
        sent as ``{"error": line}`` with status 400.
    """

    def __init__(self, host: str, port: int, page: str, answers: Mapping[str, Answer]) -> None:
        self._page, self._answers = page.encode(), answers
        self._policy = content_policy(page)
        handler = type("Handler", (_Handler,), {"served": self})
        try:
            self._port = Port(host, port, handler, "page")
        except (OSError, OverflowError, UnicodeError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise InputError(f"no page: {reason}", where=f"{host}:{port}", hint="give another HOST:PORT") from None
        self.host, self.port, self.url = host, self._port.port, f"{self._port.url}/"
        self._port.start()

    def close(self) -> None:
        """Stop serving."""
        self._port.stop()

    def ours(self, host: str | None) -> bool:
        """Return whether a request's Host is an address or the given name, not a foreign name that resolves here."""
        name = (urlsplit(f"//{host or ''}").hostname or "").lower()
        if name in _LOCAL or name == self.host.lower():
            return True
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return False
        return True

    def answer(self, target: str, asked_by_page: bool) -> tuple[int, str, bytes]:
        """Return (status, content type, body)."""
        parts = urlsplit(target)
        if parts.path == "/":
            return 200, "text/html; charset=utf-8", self._page
        found = self._answers.get(parts.path)
        if found is None:
            return 404, "text/plain", b"not here\n"
        if not asked_by_page:
            return 403, "text/plain", b"for the page's own script\n"
        query = {name: values[-1] for name, values in parse_qs(parts.query, max_num_fields=200).items()}
        try:
            status, document = 200, found(query)
        except YarnfairError as error:
            status, document = 400, {"error": error.line()}
        return status, "application/json", json.dumps(plain(document), allow_nan=False).encode()

    @property
    def policy(self) -> str:
        """Return the Content-Security-Policy."""
        return self._policy


class _Handler(BaseHTTPRequestHandler):
    served: PageServer
    timeout = 20
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "yarnfair", ""

    def do_GET(self) -> None:
        try:
            if not self.served.ours(self.headers.get("Host")):
                self._send(421, "text/plain", b"this page answers to its own address only\n")
            elif len(self.path) > _LONGEST:
                self._send(414, "text/plain", b"too long\n")
            else:
                self._send(*self.served.answer(self.path, self.headers.get(HEADER) is not None))
        except ValueError:
            self._send(400, "text/plain", b"no such request\n")

    def _send(self, status: int, kind: str, body: bytes) -> None:
        self.send_response(status)
        for name, value in (
            ("Content-Type", kind),
            ("Content-Length", str(len(body))),
            ("Content-Security-Policy", self.served.policy),
            ("X-Content-Type-Options", "nosniff"),
            ("Referrer-Policy", "no-referrer"),
            ("Cross-Origin-Resource-Policy", "same-origin"),
            ("Cache-Control", "no-store"),
        ):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """No-op: the terminal belongs to the command."""
