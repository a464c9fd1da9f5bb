"""A server on the loopback that answers with given bytes, for failures that no real ResourceManager makes on demand."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable
from typing import Any

Reply = bytes | Callable[[socket.socket, bytes], None]


def http(status: int, body: Any = b"", *, reason: str = "X", **headers: str) -> bytes:
    """A complete HTTP answer; a body that is not bytes is sent as JSON. Header names with _ for -."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    lines = [f"HTTP/1.1 {status} {reason}", f"Content-Length: {len(data)}", "Connection: close"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + data


def dripping(start: bytes, *, seconds: float = 3.0) -> Reply:
    """Answers with a beginning, and then a byte at a time that never becomes an answer."""

    def reply(connection: socket.socket, request: bytes) -> None:
        connection.sendall(start)
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            connection.sendall(b"x")
            time.sleep(0.05)

    return reply


def conf(properties: dict[str, Any]) -> Reply:
    """Answers ``/conf?name=...`` as an RM does (None: it has no such property)."""

    def reply(connection: socket.socket, request: bytes) -> None:
        name = request.partition(b"name=")[2].split(b" ", 1)[0].split(b"&", 1)[0].decode()
        value = properties.get(name)
        connection.sendall(http(404) if value is None else http(200, {"property": {"key": name, "value": value}}))

    return reply


class FakeServer:
    """Takes connections one after the other; the n-th gets the n-th reply, later ones the last one.

    ``requests`` holds what was received, whole. With ``framed`` the server reads Hadoop RPC instead of HTTP.
    """

    def __init__(self, *replies: Reply, framed: bool = False) -> None:
        self.replies = list(replies)
        self.requests: list[bytes] = []
        self._framed = framed
        self.read_once = False  # answer whatever the first packet holds
        self._stop = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._listener.settimeout(0.05)
        self.port = int(self._listener.getsockname()[1])
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def close(self) -> None:
        self._stop.set()
        self._thread.join(timeout=10)
        self._listener.close()

    def __enter__(self) -> FakeServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def lines(self) -> list[str]:
        """The first line of each request without the protocol: "GET /path?query"."""
        return [request.split(b"\r\n", 1)[0].decode().rpartition(" ")[0] for request in self.requests]

    def bodies(self) -> list[Any]:
        """The JSON bodies of the requests (None: none)."""
        parts = [request.partition(b"\r\n\r\n")[2] for request in self.requests]
        return [json.loads(part) if part else None for part in parts]

    def _serve(self) -> None:
        while not self._stop.is_set():
            try:
                connection, _ = self._listener.accept()
            except TimeoutError:
                continue
            with connection:
                connection.settimeout(5)
                try:
                    request = self._read(connection)
                    if not request:
                        continue
                    self.requests.append(request)
                    reply = self.replies[min(len(self.requests), len(self.replies)) - 1]
                    if callable(reply):
                        reply(connection, request)
                    else:
                        connection.sendall(reply)
                except OSError:
                    continue

    def _read(self, connection: socket.socket) -> bytes:
        data = b""
        while part := connection.recv(65536):
            data += part
            if self.read_once:
                return data
            if self._framed:
                # The preamble of 7 bytes, then two frames behind their lengths.
                at = 7
                for _ in range(2):
                    if len(data) < at + 4:
                        break
                    at += 4 + int.from_bytes(data[at : at + 4], "big")
                else:
                    if len(data) >= at:
                        return data
                continue
            head, end, body = data.partition(b"\r\n\r\n")
            if end:
                sizes = [line for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")]
                if len(body) >= (int(sizes[0].split(b":")[1]) if sizes else 0):
                    return data
        return data
