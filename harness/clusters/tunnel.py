"""Forwards the ResourceManager's ports of a remote cluster to this machine's loopback, over one SSH connection.

    python -m harness.clusters.tunnel FILE

It is a separate process that `yarnfair cluster up --backend ssh` starts and `down` stops. A broken connection is opened
again at the next use; requests in progress fail, as after a restart of the ResourceManager. FILE (JSON):
``{"inventory": ..., "host": NAME, "forward": {"LOCAL PORT": [remote address, remote port]}}``.
"""

from __future__ import annotations

import contextlib
import json
import select
import socket
import socketserver
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.base.errors import InputError, YarnfairError
from harness.base.port import Port
from harness.clusters.daemons import LOOPBACK
from harness.clusters.inventory import Host, restored
from harness.clusters.remote import Remote

if TYPE_CHECKING:
    import paramiko

_OPEN_S = 15.0
_PIECE = 64 << 10


class Tunnel:
    """Forwards local ports through one host. `start` begins to listen, `close` ends everything."""

    def __init__(self, host: Host, forward: Mapping[int, tuple[str, int]]) -> None:
        self.host, self.forward = host, dict(forward)
        self._remote = Remote(host)
        self._lock = threading.Lock()
        self._ports: list[Port] = []

    def channel(self, target: tuple[str, int], origin: tuple[str, int]) -> paramiko.Channel:
        """Return a channel to the target through the host, over a new connection if the old one is dead."""
        import paramiko

        with self._lock:
            for attempt in (1, 2):
                transport = self._remote.client().get_transport()
                try:
                    if transport is None or not transport.is_active():
                        raise EOFError("the connection is closed")
                    opened: paramiko.Channel = transport.open_channel("direct-tcpip", target, origin, timeout=_OPEN_S)
                    return opened
                except paramiko.ChannelException as error:
                    raise InputError(f"no answer from there: {error}", where=f"{target[0]}:{target[1]}") from None
                except (paramiko.SSHException, EOFError, OSError) as error:
                    self._remote.close()
                    if attempt == 2:
                        raise InputError(f"no tunnel: {error}", where=self._remote.name) from None
        raise AssertionError("unreachable")

    def start(self) -> None:
        """Listen on all local ports. Raises InputError if one is taken."""
        for port, target in self.forward.items():
            try:
                opened = Port(LOOPBACK, port, _forwarding(self, target), f"port {port}")
            except OSError as error:
                self.close()
                hint = "end what listens there, and bring the cluster up again"
                raise InputError(f"port {port}: {error.strerror}", where=LOOPBACK, hint=hint) from None
            self._ports.append(opened)
            opened.start()

    def close(self) -> None:
        """Stop listening and close the connection."""
        for opened in self._ports:
            opened.stop()
        self._ports.clear()
        self._remote.close()


def _forwarding(tunnel: Tunnel, target: tuple[str, int]) -> type[socketserver.BaseRequestHandler]:
    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            peer: socket.socket = self.request
            try:
                channel = tunnel.channel(target, peer.getpeername())
            except YarnfairError as error:
                print(f"yarnfair: {error.line()}", file=sys.stderr, flush=True)
                return
            # Either end may close at any moment, which ends the forwarded connection but not the tunnel.
            with contextlib.closing(channel), contextlib.suppress(OSError, EOFError):
                _pump(peer, channel)

    return Handler


def _pump(peer: socket.socket, channel: paramiko.Channel) -> None:
    """Copy data in both directions until the remote side closes; the end of the local side's data is passed on."""
    open_sides = {"peer", "channel"}
    while open_sides:
        watched: list[Any] = [peer, channel] if "peer" in open_sides else [channel]
        readable, _, _ = select.select(watched, [], [], 60.0)
        if not readable and channel.closed:
            return
        if peer in readable:
            data = peer.recv(_PIECE)
            if data:
                channel.sendall(data)
            else:
                channel.shutdown_write()
                open_sides.discard("peer")
        if channel in readable:
            data = channel.recv(_PIECE)
            if not data:
                return
            peer.sendall(data)


def main(arguments: list[str] | None = None) -> int:
    """Serve until the process is stopped."""
    (path,) = arguments if arguments is not None else sys.argv[1:]
    given: Any = json.loads(Path(path).read_text(encoding="utf-8"))
    host = next(host for host in restored(given["inventory"]).hosts if host.name == given["host"])
    forward = {int(port): (str(target[0]), int(target[1])) for port, target in given["forward"].items()}
    tunnel = Tunnel(host, forward)
    try:
        tunnel.start()
        threading.Event().wait()
    except YarnfairError as error:
        print(f"yarnfair: {error.line()}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        pass
    finally:
        tunnel.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
