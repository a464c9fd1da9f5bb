"""REST over TLS: whom it trusts, what a handshake that fails means, and that it ends in time."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests

from harness.base.errors import CallError
from harness.yarn.errors import BadAnswer, Unreachable
from harness.yarn.http import HttpOptions
from harness.yarn.rest import RestClient
from harness.yarn.webhdfs import WebHdfs
from tests.patience import at_most
from tests.yarn.fake_server import FakeServer, dripping, http
from tests.yarn.tls import Authority, TlsServer

METRICS = json.loads((Path(__file__).parent / "recorded" / "metrics.json").read_text())


def client(*bases: str, options: HttpOptions) -> RestClient:
    return RestClient(bases, options)


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


def trusting(authority: Authority) -> HttpOptions:
    return HttpOptions(ca_file=str(authority.file), attempts=1)


def no_tls(asked: RestClient) -> str:
    """The one line with which it fails."""
    with pytest.raises(Unreachable, match="no TLS connection") as caught:
        asked.metrics()
    assert "\n" not in caught.value.line()
    return caught.value.line()


@pytest.fixture
def tls_server(authority: Authority) -> Iterator[tuple[str, Path]]:
    with TlsServer(authority.signed("127.0.0.1"), http(200, METRICS)) as server:
        yield server.url, authority.file


def test_a_certificate_of_the_given_authority_is_trusted(tls_server: tuple[str, Path], authority: Authority) -> None:
    assert client(tls_server[0], options=trusting(authority)).metrics().total.vcores > 0


def test_a_certificate_of_an_unknown_authority(tls_server: tuple[str, Path], tmp_path: Path) -> None:
    """The system's authorities do not know it, and another one given does not either."""
    for options in (HttpOptions(attempts=1), trusting(Authority(tmp_path, "another"))):
        line = no_tls(client(tls_server[0], options=options))
        assert line == (
            f"{tls_server[0]}: no TLS connection: certificate verify failed: unable to get local issuer certificate; "
            "give the authority that signed the server's certificate (http.ca_file, --ca-file)"
        )


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"hosts": ("rm1.example.com", "127.0.0.2")}, "127.0.0.1'; ask the server by a name that its certificate has"),
        ({"ends_d": -0.5}, "certificate has expired; renew the certificate at the server"),
        ({"begins_d": 0.5}, "certificate is not yet valid; set the clocks by NTP"),
    ],
    ids=["other host", "expired", "not yet valid"],
)
def test_what_is_wrong_with_a_certificate_is_said(authority: Authority, given: dict[str, Any], said: str) -> None:
    hosts = given.pop("hosts", ("127.0.0.1",))
    with TlsServer(authority.signed(*hosts, **given), http(200, METRICS)) as server:
        line = no_tls(client(server.url, options=trusting(authority)))
    assert line.startswith(f"{server.url}: no TLS connection: certificate verify failed")
    assert said in line
    assert "ca_file" not in line


def test_a_certificate_that_is_renewed_under_way(authority: Authority) -> None:
    """A client that has asked before goes on with the next certificate, and recovers from one that had expired."""
    with TlsServer(authority.signed("127.0.0.1"), http(200, METRICS)) as server:
        asked = client(server.url, options=trusting(authority))
        asked.metrics()
        server.show(authority.signed("127.0.0.1"))
        asked.metrics()
        server.show(authority.signed("127.0.0.1", ends_d=-0.5))
        assert "has expired" in no_tls(asked)
        server.show(authority.signed("127.0.0.1"))
        asked.metrics()


def test_an_authority_that_is_renewed_under_way(authority: Authority, tmp_path: Path) -> None:
    """The file is read again at each connection: what runs need not be started anew."""
    successor = Authority(tmp_path, "successor")
    with TlsServer(authority.signed("127.0.0.1"), http(200, METRICS)) as server:
        asked = client(server.url, options=trusting(authority))
        asked.metrics()
        server.show(successor.signed("127.0.0.1"))
        assert "ca_file" in no_tls(asked)
        authority.file.write_text("")
        assert "cannot be read" in no_tls(asked)
        authority.file.unlink()
        assert "cannot be read" in no_tls(asked)
        authority.file.write_bytes(successor.file.read_bytes())
        asked.metrics()


@pytest.mark.parametrize("name", ["ca_file", "cert_file"])
def test_a_file_without_a_certificate_is_refused_at_once(name: str, authority: Authority) -> None:
    authority.file.write_text("nothing")
    with pytest.raises(CallError, match=name) as caught:
        HttpOptions(**{name: str(authority.file)})
    assert str(authority.file) in caught.value.line()
    assert "PEM" in caught.value.line()


def test_webhdfs_says_the_same_of_a_namenode_and_of_its_datanodes(authority: Authority, tmp_path: Path) -> None:
    """The data's address is named without what stands behind it: that may be a token."""
    good, other = authority.signed("127.0.0.1"), Authority(tmp_path, "another").signed("127.0.0.1")
    with TlsServer(other, b"") as data:
        target = f"{data.url}/webhdfs/v1/f?op=OPEN&delegation=s3cr3t"
        for shown in (other, good):
            with TlsServer(shown, http(307, b"", Location=target)) as node:
                with pytest.raises(Unreachable) as caught:
                    WebHdfs(node.url, trusting(authority)).call("GET", "/f", "OPEN")
                asked = node if shown is other else data
            assert caught.value.line().startswith(f"{asked.url}: no TLS connection: certificate verify failed")
            assert "ca_file" in caught.value.line()
            assert "s3cr3t" not in caught.value.line()


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
        with at_most(2), pytest.raises(Unreachable, match="not complete"):
            client(server.url.replace("http:", "https:"), options=HttpOptions(deadline_s=0.5, attempts=1)).metrics()


def test_from_https_nothing_leads_to_plain_http(tmp_path: Path) -> None:
    from harness.yarn.http import HttpClient

    response = requests.Response()
    response.status_code = 307
    response.headers["Location"] = "http://rm2:8088/ws/v1/cluster/metrics"
    asked = HttpClient(["https://rm1:8090"])
    error = asked._standby(response, "https://rm1:8090", "https://rm1:8090/ws/v1/cluster/metrics")
    assert isinstance(error, BadAnswer)
