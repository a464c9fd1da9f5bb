"""Hadoop's RPC from Python: the bytes that are sent, a real ResourceManager's answer recorded, and hostile answers."""

from __future__ import annotations

import contextlib
import math
import socket
import struct
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.base.errors import CallError, YarnfairError
from harness.model.resources import Resource
from harness.yarn import rpc
from harness.yarn.adminrpc import EffectiveQueue, effective_queues, refresh_queues, weights_differ
from harness.yarn.errors import BadAnswer, NoActiveRm, Refused, Unreachable
from harness.yarn.fair.javanum import float32
from harness.yarn.http import HttpOptions
from harness.yarn.rmclient import NotEffective, RmAddress, RmClient
from harness.yarn.rpc import RpcAddress
from tests.patience import at_most
from tests.ports import held_port
from tests.yarn.fake_server import FakeServer, Reply

QUEUE_INFO = bytes.fromhex((Path(__file__).parent / "recorded" / "queue-info.hex").read_text())


def frame(header: bytes, body: bytes | None = None) -> bytes:
    data = rpc.delimited(header) + (b"" if body is None else rpc.delimited(body))
    return struct.pack(">I", len(data)) + data


def success(body: bytes = b"") -> bytes:
    return frame(rpc.field(1, 0) + rpc.field(2, 0), body)


def failure(exception: str, message: str, status: int = 1) -> bytes:
    return frame(rpc.field(1, 0) + rpc.field(2, status) + rpc.field(4, exception) + rpc.field(5, message))


@pytest.fixture
def servers() -> Iterator[Any]:
    started: list[FakeServer] = []

    def start(*replies: Reply) -> FakeServer:
        started.append(FakeServer(*replies, framed=True))
        return started[-1]

    yield start
    for server in started:
        server.close()


def at(server: FakeServer) -> RpcAddress:
    return RpcAddress("127.0.0.1", server.port)


def test_refresh_sends_the_bytes_that_a_real_rm_takes(servers: Any) -> None:
    server = servers(success())
    refresh_queues(at(server), user="alice", timeout_s=5)
    (sent,) = server.requests
    assert sent[:7] == b"hrpc\x09\x00\x00"
    size = struct.unpack(">I", sent[7:11])[0]
    first, second = sent[11 : 11 + size], sent[11 + size + 4 :]
    length, start = rpc.read_varint(first, 0)
    header = dict(rpc.fields(first[start : start + length]))
    # Call id -3 marks the connection's context (zig-zag 5); retry -1 is zig-zag 1.
    assert (header[1], header[2], header[3], header[5]) == (2, 0, 5, 1)
    assert len(header[4]) == 16  # type: ignore[arg-type]
    length, context = rpc.read_varint(first, start + length)
    fields = dict(rpc.fields(first[context : context + length]))
    protocol = b"org.apache.hadoop.yarn.server.api.ResourceManagerAdministrationProtocolPB"
    assert (fields[2], fields[3]) == (b"\x0a\x05alice", protocol)
    length, start = rpc.read_varint(second, 0)
    length, what = rpc.read_varint(second, start + length)
    assert dict(rpc.fields(second[what : what + length])) == {1: b"refreshQueues", 2: protocol, 3: 1}
    assert second[what + length :] == b"\x00"


def test_what_a_real_rm_told_about_its_queues(servers: Any) -> None:
    found = effective_queues(at(servers(success(QUEUE_INFO))), user="alice")
    assert list(found) == ["root", "root.a", "root.b", "root.b.c"]
    a = found["root.a"]
    assert (a.parent, a.weight, a.steady_share) == ("root", 3.0, Resource(6144, 0))
    assert found["root.b.c"].parent == "root.b"


def test_an_unknown_queue_is_refused(servers: Any) -> None:
    with pytest.raises(Refused, match=r"no queue 'root\.x'"):
        effective_queues(at(servers(success())), user="alice", queue="root.x")


@pytest.mark.parametrize(
    ("exception", "error", "said"),
    [
        ("org.apache.hadoop.ipc.StandbyException", NoActiveRm, "not Active"),
        ("org.apache.hadoop.security.AccessControlException", Refused, "yarn.admin.acl"),
        ("org.apache.hadoop.yarn.exceptions.YarnException", Refused, "YarnException: not Active"),
        ("", Refused, "without a name"),
    ],
)
def test_the_rms_exception_comes_through(servers: Any, exception: str, error: type[YarnfairError], said: str) -> None:
    server = servers(failure(exception, "\nnot Active!\n\tat java.lang.Thread.run"))
    with pytest.raises(error, match=said) as caught:
        refresh_queues(at(server), user="alice")
    assert "java.lang.Thread" not in caught.value.line()


@pytest.mark.parametrize(
    "reply",
    [
        b"",
        b"\x00\x00",
        b"\x00\x00\x00\x10short",
        b"\xff\xff\xff\xff",
        b"HTTP/1.1 404 Not Found\r\n\r\n",
        struct.pack(">I", 3) + b"\xff\xff\xff",
        struct.pack(">I", 0),
        frame(rpc.field(1, 0)),
        frame(rpc.field(1, 0) + rpc.field(2, b"x")),
        frame(rpc.field(1, 7) + rpc.field(2, 0), b""),
        frame(rpc.field(1, 0) + rpc.field(2, 0)),
        frame(rpc.field(1, 0) + rpc.field(2, 1) + rpc.field(4, b"\xff\xfe")),
        success()[:-1] + b"\x05",
    ],
)
def test_nonsense_is_one_line(servers: Any, reply: bytes) -> None:
    with pytest.raises((BadAnswer, Unreachable)) as caught:
        refresh_queues(at(servers(reply)), user="alice", timeout_s=2)
    assert "\n" not in caught.value.line()


@given(st.binary(max_size=80))
@settings(max_examples=200, deadline=None)
def test_any_frame_is_an_answer_or_an_error(data: bytes) -> None:
    with contextlib.suppress(BadAnswer, NoActiveRm, Refused):
        assert isinstance(rpc._response(data, "x"), bytes)


@given(st.data())
@settings(max_examples=150, deadline=None)
def test_a_damaged_queue_info_is_read_or_refused(data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(QUEUE_INFO) - 1))
    byte = data.draw(st.binary(max_size=2))
    damaged = QUEUE_INFO[:place] + byte + QUEUE_INFO[place + 1 :]
    with mock.patch.object(rpc, "call", return_value=damaged), contextlib.suppress(BadAnswer, Refused):
        assert effective_queues(RpcAddress("x", 1), user="alice")


def test_a_silent_server_costs_no_more_than_the_time_limit(servers: Any) -> None:
    server = servers(lambda connection, request: time.sleep(1))
    with at_most(0.9), pytest.raises(Unreachable, match=r"within 0\.3 s"):
        refresh_queues(at(server), user="alice", timeout_s=0.3)


def test_nobody_there() -> None:
    nobody = RpcAddress("127.0.0.1", held_port())
    for address in (nobody, RpcAddress("no-such-host.invalid", 8033), RpcAddress("\udc80", 1)):
        with pytest.raises(Unreachable) as caught:
            refresh_queues(address, user="alice", timeout_s=5)
        assert "\n" not in caught.value.line()


@given(st.integers(0, 2**64 - 1))
def test_varints_come_back(number: int) -> None:
    data = rpc.varint(number)
    assert rpc.read_varint(data, 0) == (number, len(data))


@pytest.mark.parametrize(("number", "coded"), [(0, 0), (-1, 1), (1, 2), (-3, 5), (2**31 - 1, 2**32 - 2)])
def test_zigzag(number: int, coded: int) -> None:
    assert rpc.zigzag(number) == coded


@pytest.mark.parametrize(
    ("given", "host", "port"), [("rm", "rm", 8033), ("rm:1", "rm", 1), ("[::1]:5", "::1", 5), ("::1", "::1", 8033)]
)
def test_addresses(given: str, host: str, port: int) -> None:
    assert RpcAddress.parse(given, 8033) == RpcAddress(host, port)


@pytest.mark.parametrize("given", ["", ":1", "rm:0", "rm:65536", "rm:x", "rm:-1", "http://rm:1", "rm:9999999"])
def test_what_is_no_address(given: str) -> None:
    with pytest.raises(CallError):
        RpcAddress.parse(given, 8033)


def test_weights_are_compared_as_the_float32_that_the_rm_keeps() -> None:
    has = {"root.a": EffectiveQueue("root.a", "root", float32(0.1), Resource(), 1)}
    assert has["root.a"].weight != 0.1
    assert weights_differ({"root.a": 0.1}, has) == {}
    assert "wanted 0.2" in weights_differ({"root.a": 0.2}, has)["root.a"]
    assert "no such queue" in weights_differ({"root.b": 1.0}, has)["root.b"]
    assert weights_differ({"root.a": math.nan}, has)
    assert float32(1e300) == math.inf


def queue_info(weight: float) -> bytes:
    root = rpc.field(1, "root") + rpc.varint(14 << 3 | 5) + struct.pack("<f", weight)
    return success(rpc.field(1, root))


def a_client(*servers: FakeServer, **options: Any) -> RmClient:
    rms = [RmAddress.of("http://127.0.0.1:9", admin=str(at(server)), client=str(at(server))) for server in servers]
    return RmClient(rms, HttpOptions(attempts=1), user="alice", **options)


def test_confirming_waits_until_the_rm_has_the_weights(servers: Any) -> None:
    server = servers(queue_info(1), queue_info(1), queue_info(2.5))
    pauses: list[float] = []
    a_client(server, sleep=pauses.append).confirm_weights({"root": 2.5}, every_s=0.01)
    assert pauses == [0.01, 0.01]


def test_what_does_not_take_effect_is_said_with_what_the_rm_has(servers: Any) -> None:
    server = servers(queue_info(1))
    with pytest.raises(NotEffective, match="root: the RM has weight 1, wanted 2") as caught:
        a_client(server).confirm_weights({"root": 2}, timeout_s=0.1, every_s=0.02)
    assert caught.value.wrong == {"root": "the RM has weight 1, wanted 2"}


def test_refreshing_passes_over_a_standby_and_one_that_is_down(servers: Any) -> None:
    standby = servers(failure("org.apache.hadoop.ipc.StandbyException", "rm1 is not active"))
    active = servers(success())
    assert a_client(standby, active).refresh_queues() >= 0
    assert len(standby.requests) == len(active.requests) == 1
    with pytest.raises(NoActiveRm):
        a_client(standby).refresh_queues()


def test_where_all_fail_what_hinders_the_active_one_is_told_and_not_only_the_standbys_word(servers: Any) -> None:
    standby = servers(failure("org.apache.hadoop.ipc.StandbyException", "rm1 is not active"))
    breaks = servers(b"")
    for client in (a_client(standby, breaks), a_client(breaks, standby)):
        with pytest.raises(Unreachable, match="closed before the answer was complete") as caught:
            client.refresh_queues()
        assert not isinstance(caught.value, NoActiveRm), "not all of them have answered"
        assert caught.value.where == f"{at(breaks)} refreshQueues"
        assert f"({at(standby)} refreshQueues: StandbyException: rm1 is not active)" in caught.value.what
    with pytest.raises(NoActiveRm, match="rm1 is not active"):
        a_client(standby, standby).refresh_queues()


@contextlib.contextmanager
def deaf_address() -> Iterator[tuple[str, int]]:
    """An address that drops what is sent to it: the listener accepts nobody, and its backlog is full."""
    with contextlib.ExitStack() as stack:
        deaf = stack.enter_context(socket.socket())
        deaf.bind(("127.0.0.1", 0))
        deaf.listen(0)
        for _ in range(4):
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(deaf.getsockname())
        yield deaf.getsockname()


def resolves_to(monkeypatch: pytest.MonkeyPatch, *addresses: tuple[str, int]) -> None:
    found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", address) for address in addresses]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)


def test_a_timeout_holds_for_all_addresses_of_a_name_together(monkeypatch: pytest.MonkeyPatch) -> None:
    with deaf_address() as deaf:
        resolves_to(monkeypatch, *[deaf] * 4)
        began = time.monotonic()
        with pytest.raises(Unreachable, match="no answer"):
            refresh_queues(RpcAddress("rm.example", deaf[1]), user="u", timeout_s=0.5)
        assert time.monotonic() - began < 1.5


def test_a_silent_first_address_leaves_time_for_the_one_that_answers(
    servers: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = servers(success())
    with deaf_address() as deaf:
        resolves_to(monkeypatch, deaf, ("127.0.0.1", server.port))
        refresh_queues(RpcAddress("rm.example", server.port), user="u", timeout_s=2.0)
    assert len(server.requests) == 1
