"""A network that can be refused, slow, silent, cut or noisy: relays on the loopback, one before each port of an RM."""

from __future__ import annotations

import contextlib
import random
import socket
import threading
import time
from collections.abc import Mapping

#: How a relay treats what an RM answers.
MODES = ("refused", "silent", "slow", "cut", "noise")
_SILENT_S = 6.0


class Relay:
    """Before one port of the loopback. ``mode``: "" lets all through; see `MODES`."""

    def __init__(self, port: int, seed: int) -> None:
        self.mode = ""
        #: Connections that were disturbed.
        self.disturbed = 0
        #: Bytes of an answer -> those that stand in their place, as long (addresses in a redirection).
        self.rewrites: Mapping[bytes, bytes] = {}
        self._port, self._rng = port, random.Random(seed)
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._server.getsockname()[1])
        threading.Thread(target=self._serve, daemon=True).start()

    @property
    def address(self) -> str:
        """``127.0.0.1:PORT``."""
        return f"127.0.0.1:{self.port}"

    def close(self) -> None:
        """No connection any more."""
        self._server.close()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._server.accept()
                threading.Thread(target=self._connected, args=(client,), daemon=True).start()

    def _connected(self, client: socket.socket) -> None:
        with contextlib.suppress(OSError), client:
            if self.mode == "refused":
                self.disturbed += 1
                return
            with socket.create_connection(("127.0.0.1", self._port), timeout=20) as rm:
                rm.settimeout(None)
                threading.Thread(target=self._questions, args=(client, rm), daemon=True).start()
                self._answers(rm, client)

    def _questions(self, client: socket.socket, rm: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while part := client.recv(65536):
                rm.sendall(part)
        with contextlib.suppress(OSError):
            rm.shutdown(socket.SHUT_WR)

    def _answers(self, rm: socket.socket, client: socket.socket) -> None:
        while part := rm.recv(65536):
            for old, new in self.rewrites.items():
                part = part.replace(old, new)
            mode = self.mode
            self.disturbed += mode != ""
            if mode == "refused":
                return
            if mode == "silent":
                time.sleep(_SILENT_S)
                return
            if mode == "slow":
                time.sleep(self._rng.uniform(0.1, 2.0))
            elif mode == "cut":
                client.sendall(part[: self._rng.randrange(len(part))])
                return
            elif mode == "noise":
                noisy = bytearray(part)
                for _ in range(8):
                    # No digit is made of it: a number that is well formed and wrong is another fault than noise.
                    noisy[self._rng.randrange(len(noisy))] = 0
                part = bytes(noisy)
            client.sendall(part)
        with contextlib.suppress(OSError):
            client.shutdown(socket.SHUT_RDWR)
