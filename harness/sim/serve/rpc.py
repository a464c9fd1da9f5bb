"""Server for Hadoop's RPC: ``refreshQueues`` (admin port) and ``getQueueInfo`` (client port), without Kerberos.

The wire format is in harness.yarn.rpc. Connections stay open for further calls, as Java clients expect. A call of an
unknown method returns RpcNoSuchMethodException, as in Hadoop.
"""

from __future__ import annotations

import contextlib
import socket
import socketserver
import struct
from collections.abc import Callable

from harness.base.port import Port
from harness.model.queues import ensure_root_prefix
from harness.sim.serve.live import LiveCluster
from harness.sim.served import JavaError
from harness.yarn import rpc

_ADMIN = "org.apache.hadoop.yarn.server.api.ResourceManagerAdministrationProtocolPB"
_CLIENT = "org.apache.hadoop.yarn.api.ApplicationClientProtocolPB"
_HA = "org.apache.hadoop.ha.HAServiceProtocol"
#: Call ids of a connection's context, a ping, and a SASL message.
_CONTEXT, _PING, _SASL = -3, -4, -33
_SUCCESS, _ERROR, _FATAL = 0, 1, 2
_MOST_BYTES = 4 << 20
_VERSION = 9


# RpcErrorCodeProto
_ERROR_NO_SUCH_METHOD, _ERROR_NO_SUCH_PROTOCOL = 2, 3

Method = Callable[[bytes], bytes]


def _signed(number: int) -> int:
    """Undo `rpc.zigzag`."""
    return number >> 1 if number & 1 == 0 else -(number >> 1) - 1


def methods(cluster: LiveCluster) -> dict[str, dict[str, Method]]:
    """Return protocol -> method -> handler."""

    def refresh_queues(request: bytes) -> bytes:
        cluster.refresh()
        return b""

    def get_queue_info(request: bytes) -> bytes:
        try:
            asked = dict(rpc.fields(request))
            name = rpc.text(asked.get(1, b"root"))
        except ValueError as error:
            raise JavaError("java.io.IOException", str(error)) from None
        recursive = asked.get(4) == 1
        children = recursive or asked.get(3) == 1
        with cluster.now() as sim:
            found = sim.served.queue_info(ensure_root_prefix(name), children, recursive)
        return rpc.field(1, found) if found is not None else b""

    def service_status(request: bytes) -> bytes:
        # GetServiceStatusResponseProto: ACTIVE, ready to become active.
        return rpc.field(1, 1) + rpc.field(2, 1)

    return {
        _ADMIN: {"refreshQueues": refresh_queues},
        _CLIENT: {"getQueueInfo": get_queue_info},
        _HA: {"getServiceStatus": service_status},
    }


class _Connection(socketserver.BaseRequestHandler):
    methods: dict[str, dict[str, Method]]

    def handle(self) -> None:
        self.request.settimeout(300)
        self.request.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        # A client that has disconnected, or does not speak Hadoop's RPC, gets no answer: the connection ends.
        with contextlib.suppress(OSError, ValueError):
            self._serve()

    def _serve(self) -> None:
        start = self._exactly(7)
        if start is None or start[:4] != b"hrpc" or start[4] != _VERSION or start[6] != 0:
            return
        protocol = ""
        while (frame := self._frame()) is not None:
            size, at = rpc.read_varint(frame, 0)
            header = dict(rpc.fields(frame[at : at + size]))
            call = _signed(rpc.number(header.get(3, 0)))
            client = header.get(4, b"")
            rest = frame[at + size :]
            if call == _PING:
                continue
            size, at = rpc.read_varint(rest, 0)
            message, body = rest[at : at + size], rest[at + size :]
            if call == _CONTEXT:
                protocol = rpc.text(dict(rpc.fields(message)).get(3, b""))
                continue
            if call == _SASL or not isinstance(client, bytes):
                return
            self._answer(call, client, protocol, message, body)

    def _answer(self, call: int, client: bytes, protocol: str, message: bytes, body: bytes) -> None:
        what = dict(rpc.fields(message))
        name = rpc.text(what.get(1, b""))
        declared = rpc.text(what.get(2, b"")) or protocol
        size, at = rpc.read_varint(body, 0) if body else (0, 0)
        try:
            known = self.methods.get(declared)
            if known is None:
                raise JavaError(
                    "org.apache.hadoop.ipc.RpcNoSuchProtocolException",
                    f"Unknown protocol: {declared}",
                    _ERROR_NO_SUCH_PROTOCOL,
                )
            if name not in known:
                raise JavaError(
                    "org.apache.hadoop.ipc.RpcNoSuchMethodException",
                    f"Unknown method {name} called on {declared} protocol.",
                    _ERROR_NO_SUCH_METHOD,
                )
            try:
                answer = known[name](body[at : at + size])
            except (ValueError, KeyError) as error:
                # Hadoop, too, returns every exception of a method to the client.
                raise JavaError("java.lang.RuntimeException", f"{type(error).__name__}: {error}") from error
            header = rpc.field(1, call) + rpc.field(2, _SUCCESS) + rpc.field(3, _VERSION)
            self._send(header + self._trailer(client), answer)
        except JavaError as error:
            header = rpc.field(1, call) + rpc.field(2, _ERROR) + rpc.field(3, _VERSION)
            header += rpc.field(4, error.java_class) + rpc.field(5, error.message) + rpc.field(6, error.code)
            self._send(header + self._trailer(client), None)

    @staticmethod
    def _trailer(client: bytes) -> bytes:
        return rpc.field(7, client) + rpc.field(8, rpc.zigzag(-1))

    def _send(self, header: bytes, answer: bytes | None) -> None:
        data = rpc.delimited(header) + (rpc.delimited(answer) if answer is not None else b"")
        self.request.sendall(struct.pack(">I", len(data)) + data)

    def _frame(self) -> bytes | None:
        start = self._exactly(4)
        if start is None:
            return None
        (size,) = struct.unpack(">i", start)
        if not 0 < size <= _MOST_BYTES:
            return None
        return self._exactly(size)

    def _exactly(self, size: int) -> bytes | None:
        data = bytearray()
        while len(data) < size:
            part = self.request.recv(min(size - len(data), 1 << 16))
            if not part:
                return None
            data += part
        return bytes(data)


class RpcServer(Port):
    """One RPC port of a simulated ResourceManager (for admins or clients); ``port`` 0 means a free port."""

    def __init__(self, cluster: LiveCluster, host: str = "127.0.0.1", port: int = 0) -> None:
        super().__init__(host, port, type("Connection", (_Connection,), {"methods": methods(cluster)}), "rpc")
        self.address = rpc.RpcAddress(host, self.port)
