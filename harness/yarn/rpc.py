"""Hadoop's RPC, version 9, for single calls: protobuf's wire format, the framing, and Kerberos by SASL.

Sources: RpcHeader.proto, IpcConnectionContext.proto and ProtobufRpcEngine2.proto of hadoop-common 3.4.
harness.yarn.adminrpc defines the methods.
"""

from __future__ import annotations

import logging
import socket
import struct
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass

from harness.base.debug import Timer
from harness.base.errors import CallError, YarnfairError
from harness.yarn.errors import BadAnswer, NoActiveRm, Refused, Unreachable
from harness.yarn.kerberos import Login, SaslGssapi, hint_of, is_peer

_LOG = logging.getLogger(__name__)
_CONNECTION_CALL_ID = -3
_SASL_CALL_ID = -33
_SIMPLE, _SASL = 0, 0xDF
#: RpcSaslProto.SaslState
_SUCCESS, _NEGOTIATE, _INITIATE, _CHALLENGE, _RESPONSE, _WRAP = range(6)
_MAX_FRAME = 64 << 20
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_STATUS_SUCCESS = 0

Value = int | bytes


def varint(number: int) -> bytes:
    """Encode a non-negative number in base 128, the lowest seven bits first."""
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def zigzag(number: int) -> int:
    """Encode a signed number as protobuf's sint32 does: 0, -1, 1, -2 ... -> 0, 1, 2, 3 ..."""
    return number * 2 if number >= 0 else -number * 2 - 1


def field(number: int, value: int | bytes | str) -> bytes:
    """Encode one field of a message: an int as a varint, a text or bytes length-delimited."""
    if isinstance(value, int):
        return varint(number << 3 | _VARINT) + varint(value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | _BYTES) + varint(len(data)) + data


def real(number: int, value: float) -> bytes:
    """Encode a float field."""
    return varint(number << 3 | 5) + struct.pack("<f", value)


def delimited(message: bytes) -> bytes:
    """Prefix a message with its length."""
    return varint(len(message)) + message


def read_varint(data: bytes, at: int) -> tuple[int, int]:
    """Decode the number at `at`; return it and its end. Raises ValueError if it is longer than 10 bytes."""
    number = 0
    for index in range(10):
        if at + index >= len(data):
            break
        byte = data[at + index]
        number |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            return number, at + index + 1
    raise ValueError("a number without an end")


def fields(data: bytes) -> Iterator[tuple[int, Value]]:
    """Yield the fields of a message in order as (number, value); a value that is not a varint is returned as bytes.

    Raises ValueError for an invalid message.
    """
    at = 0
    while at < len(data):
        key, at = read_varint(data, at)
        number, kind = key >> 3, key & 7
        if kind == _VARINT:
            value, at = read_varint(data, at)
            yield number, value
            continue
        if kind == _BYTES:
            size, at = read_varint(data, at)
        elif kind in (_FIXED32, _FIXED64):
            size = 4 if kind == _FIXED32 else 8
        else:
            raise ValueError(f"a field of the unknown kind {kind}")
        if at + size > len(data):
            raise ValueError("a field longer than its message")
        yield number, data[at : at + size]
        at += size


def text(value: Value) -> str:
    """Return a field's value as text. Raises ValueError if it is not text."""
    if not isinstance(value, bytes):
        raise ValueError("a number where a text should be")
    return value.decode()


def number(value: Value) -> int:
    """Return a field's value as a signed 64-bit number. Raises ValueError if it is no number."""
    if not isinstance(value, int):
        raise ValueError("bytes where a number should be")
    value &= (1 << 64) - 1
    return value - (1 << 64) if value >= 1 << 63 else value


def float32(value: Value) -> float:
    """Return a field's value as the float that Java wrote. Raises ValueError if it is no float."""
    if not isinstance(value, bytes) or len(value) != 4:
        raise ValueError("no float")
    (found,) = struct.unpack("<f", value)
    return float(found)


@dataclass(frozen=True, slots=True)
class RpcAddress:
    """Host and port of an RPC server."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @classmethod
    def parse(cls, given: str, default_port: int) -> RpcAddress:
        """Parse ``host``, ``host:port`` or ``[address]:port``. Raises CallError for anything else."""
        host, colon, port = given.strip().rpartition(":")
        if not colon or (":" in host and not host.startswith("[")):
            host, port = given.strip(), str(default_port)
        host = host.strip("[]")
        if not host or not port.isascii() or not port.isdigit() or not 0 < int(port[:6]) < 65536 or "/" in host:
            raise CallError(f"{given!r} is not an address", hint="give it as HOST:PORT")
        return cls(host, int(port))


def call(
    address: RpcAddress,
    protocol: str,
    method: str,
    request: bytes = b"",
    *,
    user: str,
    timeout_s: float = 10.0,
    login: Login | None = None,
) -> bytes:
    """Make one call on a new connection; return the bytes of the response message.

    `protocol` is the Java interface's full name, `request` the encoded message, `user` the user of the call. With a
    `login` the user is its principal; a server without Kerberos trusts `user`. Raises NoTicket, Unreachable, NoActiveRm
    (a standby), Refused (the server's exception) or BadAnswer, within `timeout_s`.
    """
    if not 0 < timeout_s <= 86_400:
        raise CallError(f"timeout_s is {timeout_s}", hint="give seconds between 0 and 86400")
    if not user or len(user) > 256:
        raise CallError(f"{user[:40]!r} is not a user's name")
    timer = Timer()
    asked = f"{address} {protocol.rpartition('.')[2]}.{method}, {len(request)} bytes, as {user}"
    try:
        answer = _called(address, protocol, method, request, user=user, timeout_s=timeout_s, login=login)
    except YarnfairError as error:
        _LOG.debug("%s: failed after %s: %s", asked, timer, error.line())
        raise
    _LOG.debug("%s: %s bytes in %s", asked, len(answer), timer)
    return answer


def _called(
    address: RpcAddress,
    protocol: str,
    method: str,
    request: bytes,
    *,
    user: str,
    timeout_s: float,
    login: Login | None,
) -> bytes:
    """Like `call`, without validating the arguments."""
    end = time.monotonic() + timeout_s
    client = uuid.uuid4().bytes
    where = f"{address} {method}"
    try:
        with connect(address.host, address.port, end) as connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            secured = None
            if login is not None:
                connection.sendall(_preamble(_SASL))
                secured = _secured(connection, login, address.host, end, where)
            asked = _request(client, protocol, method, request)
            if secured is None:
                hello = (b"" if login is not None else _preamble(_SIMPLE)) + _context(client, protocol, user)
                connection.sendall(hello + asked)
                return _response(_frame(connection, end, where), where)
            # Without a user, the call is made for the authenticated principal.
            context = _context(client, protocol, None)
            if not secured.protects:
                connection.sendall(context + asked)
                return _response(_frame(connection, end, where), where)
            for message in (context, asked):
                connection.sendall(_sasl(_WRAP, secured.wrap(message)))
            return _response(_unwrapped(connection, secured, end, where), where)
    except TimeoutError:
        raise Unreachable(
            f"no answer within {timeout_s:g} s", where=where, hint="check that this is the RM's RPC port"
        ) from None
    except (OSError, UnicodeError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise Unreachable(
            f"no answer: {reason}", where=where, hint="check that the ResourceManager runs and the port is right"
        ) from None


def connect(host: str, port: int, end: float) -> socket.socket:
    """Open a TCP connection to the first address of a name that accepts one, before a moment.

    `socket.create_connection` applies its timeout to each resolved address in turn, so a name with four addresses that
    drop packets takes four times as long. Here all addresses share the time: each gets an equal part of the remaining
    time, so that a silent address leaves enough time for the next one.

    Parameters
    ----------
    host, port
        The server.
    end : float
        Time on `time.monotonic` by which the connection must be established. The connection's timeout is the remaining
        time.

    Raises
    ------
    OSError
        The error of the last address; TimeoutError if the time ran out.
    """
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    last: OSError = OSError(f"{host} resolves to no address")
    for index, (family, kind, protocol, _, address) in enumerate(found):
        left_s = end - time.monotonic()
        if left_s <= 0:
            raise TimeoutError
        connection = socket.socket(family, kind, protocol)
        try:
            connection.settimeout(left_s / (len(found) - index))
            connection.connect(address)
        except OSError as error:
            connection.close()
            last = error
            continue
        connection.settimeout(max(end - time.monotonic(), 1e-3))
        return connection
    raise last


def _header(client: bytes, call_id: int) -> bytes:
    # rpcKind 2 is protobuf, rpcOp 0 a call's final packet, retry count -1 "not a retry".
    return field(1, 2) + field(2, 0) + field(3, zigzag(call_id)) + field(4, client) + field(5, zigzag(-1))


def _framed(*messages: bytes) -> bytes:
    data = b"".join(delimited(message) for message in messages)
    return struct.pack(">I", len(data)) + data


def _preamble(authentication: int) -> bytes:
    return b"hrpc" + bytes([9, 0, authentication])


def _context(client: bytes, protocol: str, user: str | None) -> bytes:
    context = (b"" if user is None else field(2, field(1, user))) + field(3, protocol)
    return _framed(_header(client, _CONNECTION_CALL_ID), context)


def _sasl(state: int, token: bytes | None = None, method: bytes | None = None) -> bytes:
    message = field(2, state)
    message += b"" if token is None else field(3, token)
    message += b"" if method is None else field(4, method)
    return _framed(_header(b"", _SASL_CALL_ID), message)


def _secured(connection: socket.socket, login: Login, host: str, end: float, where: str) -> SaslGssapi | None:
    """Authenticate on a new connection; None if the server requires no authentication (SaslRpcClient.saslConnect)."""
    connection.sendall(_sasl(_NEGOTIATE))
    state, _, methods = _sasl_answer(connection, end, where)
    if state == _SUCCESS:
        return None
    offered = [dict(fields(method)) for method in methods]
    kerberos = next((one for one in offered if one.get(1) == b"KERBEROS"), None)
    if state != _NEGOTIATE or kerberos is None:
        names = ", ".join(sorted(text(one.get(1, b"")) for one in offered)) or "nothing"
        raise Refused(f"it does not take Kerberos here, only {names[:80]}", where=where)
    service, named = text(kerberos.get(3, b"")), text(kerberos.get(4, b""))
    if not is_peer(connection, named, host):
        hint = f"give its address in `rms` by the name in its principal ({service}/{named}), and see that it resolves"
        raise Refused(f"its principal is of another host, {named!r}, than the one asked", where=where, hint=hint)
    sasl = SaslGssapi(login, service, named, where)
    method = b"".join(field(number, kerberos[number]) for number in (1, 2, 3, 4) if number in kerberos)
    connection.sendall(_sasl(_INITIATE, sasl.answer(None), method))
    while True:
        state, token, _ = _sasl_answer(connection, end, where)
        if state == _SUCCESS and sasl.done:
            return sasl
        if state != _CHALLENGE or sasl.done:
            raise BadAnswer("the ResourceManager's authentication goes wrong ways", where=where)
        connection.sendall(_sasl(_RESPONSE, sasl.answer(token)))


def _sasl_answer(connection: socket.socket, end: float, where: str) -> tuple[int, bytes, list[bytes]]:
    """Return the state, the token and the methods in the server's next SASL message."""
    body = _response(_frame(connection, end, where), where, call_id=_SASL_CALL_ID)
    state, token, methods = -1, b"", []
    try:
        for key, value in fields(body):
            if key == 2:
                state = number(value)
            elif isinstance(value, bytes) and key == 3:
                token = value
            elif isinstance(value, bytes) and key == 4:
                methods.append(value)
                dict(fields(value))
    except ValueError as error:
        raise BadAnswer(f"no answer of Hadoop's RPC ({error})", where=where) from None
    return state, token, methods


def _unwrapped(connection: socket.socket, secured: SaslGssapi, end: float, where: str) -> bytes:
    """Return the next frame, decrypted, of a connection with SASL protection."""
    data = b""
    while len(data) < 4 or len(data) < 4 + struct.unpack(">I", data[:4])[0]:
        state, token, _ = _sasl_answer(connection, end, where)
        if state != _WRAP or len(data) > _MAX_FRAME:
            raise BadAnswer("an answer that is not sealed as agreed", where=where)
        data += secured.unwrap(token)
    return data[4 : 4 + struct.unpack(">I", data[:4])[0]]


def _request(client: bytes, protocol: str, method: str, request: bytes) -> bytes:
    what = field(1, method) + field(2, protocol) + field(3, 1)
    return _framed(_header(client, 0), what, request)


def _frame(connection: socket.socket, end: float, where: str) -> bytes:
    (size,) = struct.unpack(">I", _exactly(connection, 4, end, where))
    if size > _MAX_FRAME:
        raise BadAnswer("no answer of Hadoop's RPC", where=where, hint="check that this is the RM's RPC port")
    return _exactly(connection, size, end, where)


def _exactly(connection: socket.socket, size: int, end: float, where: str) -> bytes:
    data = bytearray()
    while len(data) < size:
        left = end - time.monotonic()
        if left <= 0:
            raise TimeoutError
        connection.settimeout(left)
        part = connection.recv(min(size - len(data), 1 << 16))
        if not part:
            raise Unreachable("the connection was closed before the answer was complete", where=where)
        data += part
    return bytes(data)


def _response(frame: bytes, where: str, *, call_id: int = 0) -> bytes:
    try:
        size, start = read_varint(frame, 0)
        if start + size > len(frame):
            raise ValueError("a header longer than its frame")
        header = dict(fields(frame[start : start + size]))
        status = number(header[2])
        if status == _STATUS_SUCCESS:
            # The call ID is an unsigned field of 32 bits.
            if number(header[1]) & 0xFFFFFFFF != call_id & 0xFFFFFFFF:
                raise ValueError("an answer to another call")
            length, body = read_varint(frame, start + size)
            if body + length != len(frame):
                raise ValueError("a message that does not fill its frame")
            return frame[body:]
        exception = text(header.get(4, b""))
        message = text(header.get(5, b""))
    except (ValueError, KeyError) as error:
        raise BadAnswer(
            f"no answer of Hadoop's RPC ({error})", where=where, hint="check that this is the RM's RPC port"
        ) from None
    short = exception.rpartition(".")[2]
    first = next((line.strip() for line in message.splitlines() if line.strip()), "")
    if short in ("StandbyException", "RetriableException"):
        raise NoActiveRm(f"{short}: {first}", where=where)
    hint = None
    if "AccessControlException" in (short, *first.replace(":", ".").split(".")):
        hint = hint_of(message) or "call as a user whom yarn.admin.acl allows"
    raise Refused(f"{short or 'an error without a name'}: {first}", where=where, hint=hint, exception=short)
