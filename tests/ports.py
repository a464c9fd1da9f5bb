"""Ports of the loopback that nobody else is given while the tests run."""

from __future__ import annotations

import socket

#: Bound and never listening: a connection is refused, and a server that sets SO_REUSEADDR, as all of ours, sshd's and
#: Hadoop's do, can still take the port. The system gives it to nobody else, which it may do as soon as a port is free.
_held: list[socket.socket] = []


def held_port(address: str = "127.0.0.1") -> int:
    """A port on which nobody listens, kept for this process until it ends."""
    holder = socket.socket()
    holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    holder.bind((address, 0))
    _held.append(holder)
    return int(holder.getsockname()[1])
