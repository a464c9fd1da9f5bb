"""A TCP port of this machine that threads serve until it is closed. Its handler answers what is asked there."""

from __future__ import annotations

import socket
import socketserver
import sys
import threading
from typing import Any


class Port:
    """Listens at once, and answers from `start` to `stop`. OSError where that cannot be.

    ``port`` 0 is a free one; ``name``: of its thread. ``url``: where it is, for who speaks HTTP there.
    """

    def __init__(self, host: str, port: int, handler: type[socketserver.BaseRequestHandler], name: str) -> None:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._server = type("Server", (_Server,), {"address_family": family})((host, port), handler)
        self.host, self.port = host, int(self._server.server_address[1])
        self.url = f"http://{f'[{host}]' if ':' in host else host}:{self.port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.1,), name=name, daemon=True)

    def start(self) -> None:
        """Answer from now on."""
        self._thread.start()

    def stop(self) -> None:
        """Stop answering; nothing where it has been stopped, and no waiting where it never began."""
        if self._thread.is_alive():
            self._server.shutdown()
        self._server.server_close()


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 128

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away in the middle is its own affair; anything else is ours."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)
