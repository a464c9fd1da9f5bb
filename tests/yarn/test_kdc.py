"""Tickets of a real KDC: from a keytab, renewed before they are over, while it is down, and what its refusals become.

A server's side stands here too: an HTTP server that takes tickets as Hadoop's filter does, by the same library.
"""

from __future__ import annotations

import base64
import contextlib
import http.server
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.yarn.errors import BadAnswer
from harness.yarn.http import HttpClient, HttpOptions
from harness.yarn.kerberos import Login, NoTicket
from tests.yarn.kdc import REALM, Kdc, kdc

pytestmark = pytest.mark.kdc
CTL = f"ctl@{REALM}"


@pytest.fixture
def realm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Kdc]:
    """Tickets of 4 s."""
    with kdc(tmp_path, life_s=4) as made:
        monkeypatch.setenv("KRB5_CONFIG", str(made.conf))
        made.keytab("http.keytab", f"HTTP/localhost@{REALM}")
        made.keytab("ctl.keytab", CTL)
        yield made


def login(realm: Kdc) -> Login:
    return Login(CTL, str(realm.folder / "ctl.keytab"))


def ask(who: Login) -> None:
    """A ticket for the server, with the part of the exchange that needs no server."""
    assert who.step(who.context("HTTP", "localhost", "1.2.840.113554.1.2.2"), None, "here")


@contextlib.contextmanager
def http_server(realm: Kdc, proves: Callable[[bytes], bytes | None] = bytes) -> Iterator[tuple[str, list[str]]]:
    """Takes tickets for HTTP/localhost, each request anew; its address and who came.

    `proves`: what becomes of the token by which it shows that it could read the ticket.
    """
    import gssapi

    came: list[str] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            token = (self.headers.get("Authorization") or "").removeprefix("Negotiate ")
            shown: bytes | None = None
            if token:
                creds = gssapi.Credentials(usage="accept", store={"keytab": f"FILE:{realm.folder}/http.keytab"})
                context = gssapi.SecurityContext(creds=creds, usage="accept")
                shown = proves(context.step(base64.b64decode(token)))
                came.append(str(context.initiator_name))
            self.send_response(200 if token else 401)
            self.send_header("Content-Length", "2")
            if not token:
                self.send_header("WWW-Authenticate", "Negotiate")
            if shown is not None:
                self.send_header("WWW-Authenticate", f"Negotiate {base64.b64encode(shown).decode()}")
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, *_: Any) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield f"http://localhost:{server.server_address[1]}", came
    finally:
        server.shutdown()
        server.server_close()
        thread.join(timeout=10)


def test_rest_with_a_keytab_outlives_its_tickets_and_the_kdc(realm: Kdc) -> None:
    """Tickets of 4 s: renewed for 6 s; down for longer than that, an outage; back, all is well again."""
    options = HttpOptions(auth="spnego", principal=CTL, keytab=str(realm.folder / "ctl.keytab"), attempts=1)
    with http_server(realm) as (url, came):
        asked = HttpClient([url], options)
        end = time.monotonic() + 6
        while time.monotonic() < end:
            assert asked.request("GET", "/x", repeatable=True).document == {}
            time.sleep(0.5)
        assert set(came) == {CTL}
        realm.stop()
        # What is there serves on.
        asked.request("GET", "/x", repeatable=True)
        time.sleep(4.5)
        with pytest.raises(NoTicket, match="Cannot contact any KDC") as caught:
            asked.request("GET", "/x", repeatable=True)
        assert "check that the KDC runs" in caught.value.line()
        realm.start()
        asked.request("GET", "/x", repeatable=True)


@pytest.mark.parametrize(
    ("becomes", "said"),
    [
        # One who listens has a ticket's bytes, and no key to read it with.
        (lambda token: None, "did not prove who it is"),
        (lambda token: token[:-1] + bytes([token[-1] ^ 1]), "cannot be taken"),
        (lambda token: token[: len(token) // 2], "cannot be taken"),
    ],
)
def test_a_server_that_cannot_prove_itself_is_not_believed(
    realm: Kdc, becomes: Callable[[bytes], bytes | None], said: str
) -> None:
    options = HttpOptions(auth="spnego", principal=CTL, keytab=str(realm.folder / "ctl.keytab"), attempts=1)
    with http_server(realm, becomes) as (url, came), pytest.raises(BadAnswer, match=said):
        HttpClient([url], options).request("GET", "/x", repeatable=True)
    assert came == [CTL]


def test_the_proof_of_another_exchange_is_none(realm: Kdc) -> None:
    """Who has recorded one exchange cannot answer the next with it."""
    options = HttpOptions(auth="spnego", principal=CTL, keytab=str(realm.folder / "ctl.keytab"), attempts=1)
    heard: list[bytes] = []

    def first(token: bytes) -> bytes:
        heard.append(token)
        return heard[0]

    with http_server(realm, first) as (url, _):
        asked = HttpClient([url], options)
        assert asked.request("GET", "/x", repeatable=True).document == {}
        with pytest.raises(BadAnswer, match="cannot be taken"):
            asked.request("GET", "/x", repeatable=True)


def test_what_the_kdc_refuses_is_said(realm: Kdc) -> None:
    other = realm.keytab("other.keytab", f"other@{REALM}")
    with pytest.raises(NoTicket, match=f"other.keytab has no key of {CTL}"):
        ask(Login(CTL, str(other)))
    with pytest.raises(NoTicket, match="not found in Kerberos database") as caught:
        login(realm).step(login(realm).context("HTTP", "127.0.0.9", "1.2.840.113554.1.2.2"), None, "there")
    assert "by the name in its principal" in caught.value.line()


def test_a_keytab_that_is_not_the_kdcs_any_longer(realm: Kdc) -> None:
    """The key was changed, the keytab was not: the KDC refuses it. With the new one it works, without a new start."""
    file = realm.folder / "ctl.keytab"
    before = realm.folder / "before.keytab"
    shutil.copy(file, before)
    realm.change_key(CTL)
    with pytest.raises(NoTicket, match="no Kerberos ticket") as caught:
        ask(Login(CTL, str(before)))
    assert "export its keytab anew" in caught.value.line()
    before.unlink()
    realm.keytab("before.keytab", CTL)
    ask(Login(CTL, str(before)))


def test_a_principal_that_the_kdc_does_not_have(realm: Kdc) -> None:
    file = realm.keytab("gone.keytab", f"gone@{REALM}")
    realm.remove(f"gone@{REALM}")
    with pytest.raises(NoTicket, match="not found in Kerberos database") as caught:
        ask(Login(f"gone@{REALM}", str(file)))
    assert "as the KDC has it" in caught.value.line()


def test_without_a_keytab_and_without_kinit(realm: Kdc, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KRB5CCNAME", f"FILE:{realm.folder}/none")
    with pytest.raises(NoTicket, match="no Kerberos ticket") as caught:
        ask(Login())
    assert "kinit" in caught.value.line()


def test_the_tickets_of_a_keytab_are_in_no_file(realm: Kdc, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KRB5CCNAME", f"FILE:{realm.folder}/cache")
    ask(login(realm))
    assert not (realm.folder / "cache").exists()
