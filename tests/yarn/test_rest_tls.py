"""REST over TLS: whom it trusts, what a handshake that fails means, and that it ends in time."""

from __future__ import annotations

import datetime
import ipaddress
import itertools
import json
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests

from harness.yarn.errors import BadAnswer, Unreachable
from harness.yarn.http import HttpOptions
from harness.yarn.rest import RestClient
from tests.yarn.fake_server import FakeServer, dripping, http

METRICS = json.loads((Path(__file__).parent / "recorded" / "metrics.json").read_text())


def client(*bases: str, options: HttpOptions) -> RestClient:
    return RestClient(bases, options)


def certificate(folder: Path) -> tuple[Path, Path]:
    """A self-signed certificate for 127.0.0.1 and its key."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "rm")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    (folder / "cert.pem").write_bytes(made.public_bytes(serialization.Encoding.PEM))
    (folder / "key.pem").write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return folder / "cert.pem", folder / "key.pem"


@pytest.fixture
def tls_server(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    cert, key = certificate(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    listener = socket.create_server(("127.0.0.1", 0))
    listener.settimeout(0.05)
    stop = threading.Event()

    def serve() -> None:
        for _ in itertools.takewhile(lambda _: not stop.is_set(), itertools.count()):
            try:
                plain, _ = listener.accept()
                plain.settimeout(5)
                with context.wrap_socket(plain, server_side=True) as connection:
                    connection.recv(65536)
                    connection.sendall(http(200, METRICS))
            except OSError:
                continue

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    yield f"https://127.0.0.1:{listener.getsockname()[1]}", cert
    stop.set()
    thread.join(timeout=10)
    listener.close()


def test_tls_checks_the_certificate_against_the_given_authority(tls_server: tuple[str, Path]) -> None:
    base, cert = tls_server
    assert client(base, options=HttpOptions(ca_file=str(cert))).metrics().total.vcores > 0
    with pytest.raises(Unreachable, match="certificate verify failed") as caught:
        client(base, options=HttpOptions(attempts=1)).metrics()
    assert "ca_file" in caught.value.line()


def test_plain_http_behind_an_https_address_is_said() -> None:
    with FakeServer(http(400)) as server:
        server.read_once = True
        with pytest.raises(Unreachable, match="TLS") as caught:
            client(server.url.replace("http:", "https:"), options=HttpOptions(attempts=1)).metrics()
    assert "speaks https" in caught.value.line()
    assert "ca_file" not in caught.value.line()


def test_an_rm_that_breaks_the_handshake_off_is_passed_over(tls_server: tuple[str, Path]) -> None:
    """Also for what is not repeatable: before the handshake's end nothing was sent."""
    base, cert = tls_server
    with FakeServer(http(400)) as broken:
        broken.read_once = True
        first = broken.url.replace("http:", "https:")
        asked = client(first, base, options=HttpOptions(ca_file=str(cert), attempts=1)).http
        assert asked.request("GET", "/ws/v1/cluster/metrics", repeatable=False).status == 200
        assert len(broken.requests) == 1
    assert asked.current == base


def test_a_tls_handshake_that_drips_costs_no_more_than_the_deadline() -> None:
    with FakeServer(dripping(b"\x16\x03\x03\x3f\xff")) as server:
        server.read_once = True
        begun = time.monotonic()
        with pytest.raises(Unreachable, match="not complete"):
            client(server.url.replace("http:", "https:"), options=HttpOptions(deadline_s=0.5, attempts=1)).metrics()
        assert time.monotonic() - begun < 2


def test_from_https_nothing_leads_to_plain_http(tmp_path: Path) -> None:
    from harness.yarn.http import HttpClient

    response = requests.Response()
    response.status_code = 307
    response.headers["Location"] = "http://rm2:8088/ws/v1/cluster/metrics"
    asked = HttpClient(["https://rm1:8090"])
    error = asked._standby(response, "https://rm1:8090", "https://rm1:8090/ws/v1/cluster/metrics")
    assert isinstance(error, BadAnswer)
