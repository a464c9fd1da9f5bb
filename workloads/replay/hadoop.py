"""What an application master needs of Hadoop's RPC, in plain Python: protobuf's wire format, framing, tokens, SASL.

Stands alone (the package is not on a cluster's nodes) and needs no more than Debian's python3-minimal. The master's own
business is in am.py. Sources: RpcHeader.proto, Security.proto of hadoop-common 3.4; RFC 2831 (DIGEST-MD5).
"""

import base64
import hashlib
import os
import socket
import struct

SASL_CALL_ID, CONTEXT_CALL_ID = -33, -3
NEGOTIATE, INITIATE, SUCCESS = 1, 2, 0
MAX_FRAME = 64 << 20


class RpcError(Exception):
    """The other side refused a call: `kind` is its exception's short name."""

    def __init__(self, kind, text):
        super().__init__(f"{kind}: {text}")
        self.kind = kind


# --- protobuf ---------------------------------------------------------------------------------------------------------


def varint(number):
    """A number in base 128; negative ones as Java's 64-bit two's complement."""
    number &= (1 << 64) - 1
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def field(number, value):
    """One field: a varint for an int, a fixed 32-bit one for a float, else bytes or text with its length."""
    if isinstance(value, float):
        return varint(number << 3 | 5) + struct.pack("<f", value)
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def read_varint(data, at):
    """The number at `at` and where it ends."""
    number = shift = 0
    while True:
        byte = data[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number, at
        shift += 7
        if shift > 63:
            raise ValueError("a number without an end")


def fields(data):
    """(number, value) of a message's fields in their order."""
    at = 0
    while at < len(data):
        key, at = read_varint(data, at)
        kind = key & 7
        if kind == 0:
            value, at = read_varint(data, at)
        else:
            if kind == 2:
                size, at = read_varint(data, at)
            elif kind in (1, 5):
                size = 8 if kind == 1 else 4
            else:
                raise ValueError(f"a field of the unknown kind {kind}")
            value = data[at : at + size]
            at += size
            if at > len(data):
                raise ValueError("a field longer than its message")
        yield key >> 3, value


def first(data):
    """Field number -> value; of a repeated field the last one."""
    return dict(fields(data))


def signed(value):
    """A varint as Java's signed number."""
    value &= (1 << 64) - 1
    return value - (1 << 64) if value >> 63 else value


def zigzag(number):
    """A sint32's varint."""
    return number * 2 if number >= 0 else -number * 2 - 1


# --- tokens -----------------------------------------------------------------------------------------------------------


class Token:
    """A security token: what the server gave, by which one is known to it."""

    def __init__(self, identifier, password, kind, service):
        self.identifier, self.password, self.kind, self.service = identifier, password, kind, service

    @classmethod
    def of(cls, message):
        """From a TokenProto."""
        found = first(message)
        return cls(found[1], found[2], found.get(3, b"").decode(), found.get(4, b"").decode())


def _vint(data, at):
    """WritableUtils' variable-length number at `at`, and where it ends."""
    (head,) = struct.unpack_from("b", data, at)
    at += 1
    if head >= -112:
        return head, at
    length = -112 - head if head >= -120 else -120 - head
    value = int.from_bytes(data[at : at + length], "big")
    return (value if head >= -120 else ~value), at + length


def read_tokens(data):
    """The tokens of a credentials file (``HADOOP_TOKEN_FILE_LOCATION``), either of Hadoop's two formats."""
    if data[:4] != b"HDTS":
        raise ValueError("no credentials file")
    if data[4] == 1:
        size, at = read_varint(data, 5)
        pairs = [first(value) for number, value in fields(data[at : at + size]) if number == 1]
        return [Token.of(pair[2]) for pair in pairs]
    count, at = _vint(data, 5)
    tokens = []
    for _ in range(count):
        parts = []
        for _ in range(5):  # alias, identifier, password, kind, service
            size, at = _vint(data, at)
            parts.append(data[at : at + size])
            at += size
        tokens.append(Token(parts[1], parts[2], parts[3].decode(), parts[4].decode()))
    return tokens


def _md5(data):
    return hashlib.md5(data, usedforsecurity=False).digest()


def digest_response(challenge, user, password, uri, cnonce):
    """The client's answer to a DIGEST-MD5 challenge (RFC 2831, section 2.1.2), quality of protection `auth`."""
    given = {}
    text = challenge.decode()
    while text:
        name, _, text = text.partition("=")
        if text.startswith('"'):
            value, _, text = text[1:].partition('"')
            text = text.lstrip(",")
        else:
            value, _, text = text.partition(",")
        given[name.strip()] = value
    realm, nonce = given.get("realm", ""), given["nonce"]
    if "auth" not in given.get("qop", "auth").split(","):
        raise ValueError(f"the server wants hadoop.rpc.protection {given['qop']}, only 'authentication' is spoken here")
    secret = _md5(f"{user}:{realm}:{password}".encode()) + f":{nonce}:{cnonce}".encode()
    left, right = _md5(secret).hex(), _md5(f"AUTHENTICATE:{uri}".encode()).hex()
    answer = _md5(f"{left}:{nonce}:00000001:{cnonce}:auth:{right}".encode()).hex()
    return (
        f'charset=utf-8,username="{user}",realm="{realm}",nonce="{nonce}",nc=00000001,cnonce="{cnonce}",'
        f'digest-uri="{uri}",maxbuf=65536,response={answer},qop=auth'
    ).encode()


# --- connections ------------------------------------------------------------------------------------------------------


class Connection:
    """A connection to one server and protocol, authenticated by a token; opened at the first call, again when lost."""

    def __init__(self, host, port, protocol, token, timeout_s=20.0):
        self.host, self.port, self.protocol, self.token, self.timeout_s = host, port, protocol, token, timeout_s
        self.client = os.urandom(16)
        self.socket = None
        self.calls = 0

    def call(self, method, request=b""):
        """The response's bytes. RpcError when the server refuses; OSError when it cannot be reached (asked twice)."""
        for attempt in (0, 1):
            fresh = self.socket is None
            try:
                if fresh:
                    self._open()
                self.calls += 1
                what = field(1, method) + field(2, self.protocol) + field(3, 1)
                self._send(self._header(self.calls), what, request)
                _, at, frame = self._answer()
                size, at = read_varint(frame, at)
                return frame[at : at + size]
            except (OSError, ValueError, IndexError):
                self.close()
                # An idle connection is closed by the server; a fresh one that fails is a fault.
                if attempt or fresh:
                    raise
        raise AssertionError("unreachable")

    def close(self):
        """Gives the connection up."""
        if self.socket is not None:
            self.socket.close()
            self.socket = None

    def _header(self, call_id):
        dummy = call_id == SASL_CALL_ID
        return (
            field(1, 2)
            + field(2, 0)
            + field(3, zigzag(call_id))
            + field(4, b"" if dummy else self.client)
            + field(5, zigzag(-1))
        )

    def _send(self, *messages):
        data = b"".join(varint(len(message)) + message for message in messages)
        self.socket.sendall(struct.pack(">I", len(data)) + data)

    def _exactly(self, size):
        data = bytearray()
        while len(data) < size:
            part = self.socket.recv(min(size - len(data), 1 << 16))
            if not part:
                raise ConnectionError(f"{self.host}:{self.port} closed the connection")
            data += part
        return bytes(data)

    def _answer(self):
        """(header, where the body begins, frame)."""
        (size,) = struct.unpack(">I", self._exactly(4))
        if size > MAX_FRAME:
            raise ValueError("no answer of Hadoop's RPC")
        frame = self._exactly(size)
        length, at = read_varint(frame, 0)
        header = first(frame[at : at + length])
        if header.get(2, 0):
            kind = header.get(4, b"").decode().rpartition(".")[2]
            text = header.get(5, b"").decode(errors="replace").split("\n")[0]
            if header[2] == 2:
                self.close()
            raise RpcError(kind, text)
        return header, at + length, frame

    def _open(self):
        self.socket = socket.create_connection((self.host, self.port), timeout=self.timeout_s)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.sendall(b"hrpc" + bytes([9, 0, SASL_CALL_ID & 0xFF]))
        self._send(self._header(SASL_CALL_ID), field(2, NEGOTIATE))
        offer = [value for number, value in fields(self._sasl()) if number == 4]
        for auth in offer:
            found = first(auth)
            if found[1] == b"TOKEN" and found[2] == b"DIGEST-MD5":
                break
        else:
            raise RpcError("AccessControlException", f"{self.host}:{self.port} takes no tokens by DIGEST-MD5")
        protocol, server = found.get(3, b"").decode(), found.get(4, b"").decode()
        user = base64.b64encode(self.token.identifier).decode()
        password = base64.b64encode(self.token.password).decode()
        answer = digest_response(found[5], user, password, f"{protocol}/{server}", os.urandom(12).hex())
        chosen = b"".join(field(number, found[number]) for number in (1, 2, 3, 4) if number in found)
        self._send(self._header(SASL_CALL_ID), field(2, INITIATE) + field(3, answer) + field(4, chosen))
        if first(self._sasl()).get(2) != SUCCESS:
            raise RpcError("SaslException", "the server went on after the answer to its challenge")
        self._send(self._header(CONTEXT_CALL_ID), field(3, self.protocol))

    def _sasl(self):
        _, at, frame = self._answer()
        size, at = read_varint(frame, at)
        return frame[at : at + size]
