"""A TCP port of this machine that threads serve until it is closed. Its handler answers requests."""

from __future__ import annotations

import socket
import socketserver
import sys
import threading
from typing import Any


class Port:
    """A port that listens from its creation on, and answers from `start` to `stop`.

    ``port`` 0 means a free port, and ``name`` is the name of its thread. ``url`` is the address for HTTP clients.
    Raises OSError if the port cannot be opened.
    """

    def __init__(self, host: str, port: int, handler: type[socketserver.BaseRequestHandler], name: str) -> None:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._server = type("Server", (_Server,), {"address_family": family})((host, port), handler)
        self.host, self.port = host, int(self._server.server_address[1])
        self.url = f"http://{f'[{host}]' if ':' in host else host}:{self.port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.1,), name=name, daemon=True)

    def start(self) -> None:
        """Begin to answer."""
        self._thread.start()

    def stop(self) -> None:
        """Stop answering; no-op if it has been stopped, and without waiting if it never began."""
        if self._thread.is_alive():
            self._server.shutdown()
        self._server.server_close()


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 128

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore the error of a client that disconnects; report all others."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)
