"""A port answers from its start to its stop, and to a client that goes away without a word to the terminal."""

from __future__ import annotations

import socket
import socketserver
import threading

import pytest

from harness.base.port import Port


class _Echo(socketserver.BaseRequestHandler):
    def handle(self) -> None:
        text = self.request.recv(100)
        if text == b"away":
            raise ConnectionResetError
        self.request.sendall(text)


def _asked(port: Port, text: bytes) -> bytes:
    with socket.create_connection((port.host, port.port), timeout=10) as peer:
        peer.sendall(text)
        return peer.recv(100)


def test_a_port_answers_until_it_is_stopped(capfd: pytest.CaptureFixture[str]) -> None:
    port = Port("127.0.0.1", 0, _Echo, "echo")
    assert port.url == f"http://127.0.0.1:{port.port}"
    with pytest.raises(OSError, match="in use"):
        Port("127.0.0.1", port.port, _Echo, "another")
    port.start()
    assert _asked(port, b"hello") == b"hello"
    assert _asked(port, b"away") == b""
    assert _asked(port, b"again") == b"again"
    port.stop()
    port.stop()
    with pytest.raises(ConnectionRefusedError):
        _asked(port, b"too late")
    assert capfd.readouterr().err == ""


def test_a_port_that_never_began_to_answer_is_free_again_at_once() -> None:
    port = Port("127.0.0.1", 0, _Echo, "echo")
    stopping = threading.Thread(target=port.stop, daemon=True)
    stopping.start()
    stopping.join(10)
    assert not stopping.is_alive()
    Port("127.0.0.1", port.port, _Echo, "another").stop()


def _has_ipv6() -> bool:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        return False
    return True


def test_an_address_of_ipv6_stands_in_brackets_or_is_none_of_this_machine() -> None:
    if not _has_ipv6():
        with pytest.raises(OSError, match=r"[Aa]ddress"):
            Port("::1", 0, _Echo, "echo")
        return
    port = Port("::1", 0, _Echo, "echo")
    assert port.url == f"http://[::1]:{port.port}"
    port.start()
    assert _asked(port, b"hello") == b"hello"
    port.stop()
