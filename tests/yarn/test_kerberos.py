"""Kerberos without a KDC: a 401 that wants Negotiate, the SASL of Hadoop's RPC, and each way in which they fail.

The package gssapi is a stand-in here (fake_gssapi); tests/yarn/test_kdc.py has the real one and a real KDC,
tests/cluster/test_live_secure.py a real ResourceManager.
"""

from __future__ import annotations

import base64
import socket
import struct
import sys
from pathlib import Path
from typing import Any

import pytest

from harness.base.errors import CallError
from harness.yarn import rpc
from harness.yarn.adminrpc import effective_queues, refresh_queues
from harness.yarn.errors import BadAnswer, Refused
from harness.yarn.http import HttpClient, HttpOptions, open_session
from harness.yarn.kerberos import Login, NoTicket, Spnego
from harness.yarn.rmclient import RmAddress, RmClient
from harness.yarn.rpc import RpcAddress
from harness.yarn.webhdfs import WebHdfs
from tests.yarn.fake_gssapi import ExpiredCredentialsError, FakeGssapi, GSSError, proof
from tests.yarn.fake_server import FakeServer, http

WANTED = http(401, b"<html>", WWW_Authenticate="Negotiate")
PROOF = "Negotiate " + base64.b64encode(proof("HTTP@127.0.0.1")).decode()


def proven(status: int, body: Any = b"", **headers: str) -> bytes:
    """The answer of a server that could read our ticket."""
    return http(status, body, WWW_Authenticate=PROOF, **headers)


@pytest.fixture
def gss(monkeypatch: pytest.MonkeyPatch) -> FakeGssapi:
    fake = FakeGssapi()
    monkeypatch.setitem(sys.modules, "gssapi", fake)
    return fake


@pytest.fixture
def keytab(tmp_path: Path) -> Path:
    file = tmp_path / "c.keytab"
    file.write_bytes(b"\x05\x02 s3cr3t key")
    return file


@pytest.fixture
def login(gss: FakeGssapi, keytab: Path) -> Login:
    return Login("ctl/here@REALM", str(keytab))


def options(keytab: Path, **more: Any) -> HttpOptions:
    given: dict[str, Any] = {"attempts": 1, "deadline_s": 5.0, **more}
    return HttpOptions(auth="spnego", principal="ctl/here@REALM", keytab=str(keytab), **given)


# --- SPNEGO ---


def test_a_401_that_wants_negotiate_is_answered_with_a_ticket(gss: FakeGssapi, keytab: Path) -> None:
    with FakeServer(WANTED, proven(200, {"a": 1})) as server:
        asked = HttpClient([server.url], options(keytab, user="alice"))
        assert asked.request("GET", "/x", repeatable=False).document == {"a": 1}
        assert server.lines() == ["GET /x", "GET /x"]
        first, second = server.requests
    assert b"Authorization" not in first
    sent = second.partition(b"Authorization: Negotiate ")[2].split(b"\r\n")[0]
    assert base64.b64decode(sent) == b"ticket of ctl/here@REALM for HTTP@127.0.0.1"
    assert gss.stores[0]["client_keytab"] == f"FILE:{keytab}"
    assert gss.stores[0]["ccache"].startswith("MEMORY:")


def test_who_does_not_ask_for_a_ticket_gets_none(gss: FakeGssapi, keytab: Path) -> None:
    with FakeServer(http(200, {})) as server:
        HttpClient([server.url], options(keytab)).request("GET", "/x", repeatable=True)
        assert b"Authorization" not in server.requests[0]
    assert gss.stores == []


def test_without_a_keytab_the_ticket_cache_of_the_process_serves(gss: FakeGssapi) -> None:
    with FakeServer(WANTED, proven(200, {})) as server:
        HttpClient([server.url], HttpOptions(auth="spnego")).request("GET", "/x", repeatable=True)
        sent = server.requests[1].partition(b"Authorization: Negotiate ")[2].split(b"\r\n")[0]
    assert base64.b64decode(sent) == b"ticket of the cache for HTTP@127.0.0.1"


def test_the_cookie_that_a_ticket_earns_is_sent_with_what_follows(gss: FakeGssapi, keytab: Path) -> None:
    """Hadoop's filter then wants no ticket until it is over."""
    given = proven(200, {}, Set_Cookie='hadoop.auth="u=ctl&t=kerberos&s=x="; Path=/; HttpOnly')
    with FakeServer(WANTED, given, http(200, {}), WANTED, proven(200, {})) as server:
        asked = HttpClient([server.url], options(keytab))
        for _ in range(3):
            asked.request("GET", "/x", repeatable=True)
        assert ["Cookie: hadoop.auth" in one.decode() for one in server.requests] == [False, False, True, True, True]


def test_a_ticket_that_is_not_taken_is_a_refusal_that_is_not_repeated(gss: FakeGssapi, keytab: Path) -> None:
    with FakeServer(WANTED) as server, pytest.raises(Refused, match="HTTP 401") as caught:
        HttpClient([server.url], options(keytab, attempts=3)).request("GET", "/x", repeatable=True)
    assert len(server.requests) == 2
    assert "HTTP principal" in caught.value.line()


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (http(200, {"a": 1}), "did not prove who it is"),
        (http(200, {"a": 1}, WWW_Authenticate="Negotiate"), "did not prove who it is"),
        (http(200, {"a": 1}, WWW_Authenticate="Negotiate x"), "not base64"),
        (http(200, {"a": 1}, WWW_Authenticate="Negotiate eHh4"), "A token was invalid"),
        (http(307, b"", Location="http://elsewhere:8088/x"), "did not prove who it is"),
    ],
)
def test_who_takes_a_ticket_and_cannot_read_it_is_not_believed(
    gss: FakeGssapi, keytab: Path, answer: bytes, said: str
) -> None:
    """Nor is it followed elsewhere."""
    with FakeServer(WANTED, answer, WANTED, answer) as server:
        asked = HttpClient([server.url], options(keytab))
        with pytest.raises(BadAnswer, match=said) as caught:
            asked.request("GET", "/x", repeatable=True)
        assert asked.bases == (server.url,)
        with pytest.raises(BadAnswer, match=said):
            WebHdfs(server.url, options(keytab)).call("GET", "/f", "OPEN")
    assert caught.value.line().startswith(server.url)
    assert "WWW-Authenticate" in caught.value.line()


def test_a_proof_that_needs_more_than_there_is(gss: FakeGssapi, keytab: Path) -> None:
    gss.steps = 2
    with FakeServer(WANTED, proven(200, {})) as server, pytest.raises(BadAnswer, match="not complete"):
        HttpClient([server.url], options(keytab)).request("GET", "/x", repeatable=True)


def test_an_error_needs_no_proof(gss: FakeGssapi, keytab: Path) -> None:
    """Hadoop leaves it out of some, and what it says is the way to mend it."""
    with FakeServer(WANTED, http(403, b"x", reason="no")) as server, pytest.raises(Refused, match="HTTP 403 no"):
        HttpClient([server.url], options(keytab)).request("GET", "/x", repeatable=True)


def test_clocks_that_differ_are_said_of_a_server_that_says_so(gss: FakeGssapi, keytab: Path) -> None:
    said = http(403, b"x", reason="GSSException: Failure (Mechanism level: Clock skew too great (37))")
    with FakeServer(WANTED, said) as server, pytest.raises(Refused, match="NTP"):
        HttpClient([server.url], options(keytab)).request("GET", "/x", repeatable=True)


def test_what_a_body_had_sent_is_sent_again_with_the_ticket(gss: FakeGssapi, keytab: Path, tmp_path: Path) -> None:
    with (tmp_path / "f").open("w+b") as body, FakeServer(WANTED, proven(201)) as server:
        body.write(b"skipped sent")
        body.seek(8)
        session = open_session(options(keytab))
        assert session.put(server.url, data=body, timeout=5).status_code == 201
        assert [one.partition(b"\r\n\r\n")[2] for one in server.requests] == [b"sent", b"sent"]


def test_webhdfs_asks_the_namenode_with_a_ticket_and_no_datanode(gss: FakeGssapi, keytab: Path) -> None:
    """A DataNode takes the delegation token that stands in the address."""
    with FakeServer(http(200, b"data")) as data:
        away = proven(307, b"", Location=f"{data.url}/webhdfs/v1/f?op=OPEN&delegation=x")
        with FakeServer(WANTED, away) as name:
            assert WebHdfs(name.url, options(keytab)).call("GET", "/f", "OPEN") == b"data"
            assert b"Authorization: Negotiate" in name.requests[1]
        assert b"Authorization" not in data.requests[0]
    with FakeServer(WANTED) as name, pytest.raises(Refused, match=r"http\.kerberos"):
        WebHdfs(name.url).call("GET", "/f", "OPEN")


# --- no ticket ---


@pytest.mark.parametrize(
    ("said", "hint"),
    [
        ("Cannot contact any KDC for realm 'REALM'", "check that the KDC runs"),
        ("Clock skew too great", "NTP"),
        ("Client 'ctl/here@REALM' not found in Kerberos database", "as the KDC has it"),
        ("Preauthentication failed", "export its keytab anew"),
        ("Server HTTP/x@REALM not found in Kerberos database", "by the name in its principal"),
        ("No credentials cache found (filename: MEMORY:x)", "klist -k"),
        ("something else", "kinit"),
    ],
)
def test_why_there_is_no_ticket_is_one_line(gss: FakeGssapi, keytab: Path, said: str, hint: str) -> None:
    gss.trouble = [GSSError(said)]
    with FakeServer(WANTED) as server, pytest.raises(NoTicket, match="no Kerberos ticket") as caught:
        HttpClient([server.url], options(keytab)).request("GET", "/x", repeatable=True)
    line = caught.value.line()
    assert line.startswith("HTTP@127.0.0.1: no Kerberos ticket: ")
    assert hint in line
    assert "\n" not in line
    assert "s3cr3t" not in line


def test_no_ticket_is_an_outage_that_passes(gss: FakeGssapi, keytab: Path) -> None:
    """Also for what may not be repeated: a request that was answered with 401 was not carried out."""
    gss.trouble = [GSSError("Cannot contact any KDC for realm 'REALM'"), None]
    with FakeServer(WANTED, WANTED, proven(200, {"a": 1})) as server:
        asked = HttpClient([server.url], options(keytab, attempts=2, backoff_s=0.01))
        assert asked.request("POST", "/x", body={}, repeatable=False).document == {"a": 1}


def test_tickets_that_are_over_are_told_with_the_reason(gss: FakeGssapi, login: Login) -> None:
    """The library says only that they are: with an empty cache it says why there are no new ones."""
    gss.trouble = [ExpiredCredentialsError(), GSSError("Cannot contact any KDC for realm 'REALM'")]
    with pytest.raises(NoTicket, match="Cannot contact any KDC"):
        login.context("HTTP", "rm", "x")
    assert gss.stores[0]["ccache"] != gss.stores[1]["ccache"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"principal": "a@R"}, "go together"),
        ({"keytab": "c.keytab"}, "go together"),
        ({"principal": "a@R", "keytab": "/none"}, "/none: no such keytab"),
    ],
)
def test_a_login_that_cannot_work_is_a_wrong_call(gss: FakeGssapi, given: dict[str, str], said: str) -> None:
    with pytest.raises(CallError, match=said):
        HttpOptions(auth="spnego", **given)


def test_a_keytab_without_kerberos_is_a_wrong_call(keytab: Path) -> None:
    with pytest.raises(CallError, match="auth simple"):
        HttpOptions(principal="a@R", keytab=str(keytab))


def test_a_keytab_that_may_not_be_read(gss: FakeGssapi, keytab: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.access", lambda *_: False)
    with pytest.raises(CallError, match="cannot be read") as caught:
        options(keytab)
    assert str(keytab) in caught.value.line()


def test_a_missing_package_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gssapi", None)
    with pytest.raises(CallError, match="install the extra 'kerberos'"):
        HttpOptions(auth="spnego")


# --- SASL ---


def said(state: int, token: bytes = b"", *methods: bytes) -> bytes:
    body = rpc.field(2, state) + (rpc.field(3, token) if token else b"")
    body += b"".join(rpc.field(4, method) for method in methods)
    data = rpc.delimited(rpc.field(1, -33 & 0xFFFFFFFF) + rpc.field(2, 0)) + rpc.delimited(body)
    return struct.pack(">I", len(data)) + data


def method(name: str, mechanism: str, service: str = "rm", host: str = "127.0.0.1") -> bytes:
    return b"".join(rpc.field(number, text) for number, text in enumerate((name, mechanism, service, host), 1))


KERBEROS = method("KERBEROS", "GSSAPI")
DONE = rpc.delimited(rpc.field(1, 0) + rpc.field(2, 0)) + rpc.delimited(b"")
ANSWER = struct.pack(">I", len(DONE)) + DONE
NEGOTIATE, CHALLENGE, SUCCESS, WRAP = 1, 3, 0, 5


class SaslServer:
    """Reads frame by frame and answers each with what its script has; ``frames`` is what came, without lengths."""

    def __init__(self, *answers: bytes | None) -> None:
        self.answers = answers
        self.preamble = b""
        self.frames: list[bytes] = []
        self.server = FakeServer(self._serve, framed=True)
        self.server.read_once = True

    def _serve(self, connection: socket.socket, first: bytes) -> None:
        data = first
        while len(data) < 7:
            data += connection.recv(100)
        self.preamble, data = data[:7], data[7:]
        for answer in self.answers:
            while len(data) < 4 or len(data) < 4 + struct.unpack(">I", data[:4])[0]:
                if not (part := connection.recv(65536)):
                    return
                data += part
            size = 4 + struct.unpack(">I", data[:4])[0]
            self.frames.append(data[4:size])
            data = data[size:]
            connection.sendall(answer or b"")

    def __enter__(self) -> RpcAddress:
        return RpcAddress("127.0.0.1", self.server.port)

    def __exit__(self, *_: object) -> None:
        self.server.close()

    def sasl(self, index: int) -> dict[int, Any]:
        """The n-th frame as a SASL message."""
        size, start = rpc.read_varint(self.frames[index], 0)
        header = dict(rpc.fields(self.frames[index][start : start + size]))
        assert header[3] == rpc.zigzag(-33)
        _, body = rpc.read_varint(self.frames[index], start + size)
        return dict(rpc.fields(self.frames[index][body:]))


def offer(layers: int) -> bytes:
    return said(CHALLENGE, b"sealed:" + bytes([layers]) + b"\0\xff\xff")


def test_the_rpc_authenticates_and_then_asks(login: Login) -> None:
    server = SaslServer(said(NEGOTIATE, b"", KERBEROS), offer(1), said(SUCCESS), None, ANSWER)
    with server as address:
        refresh_queues(address, user="nobody", login=login, timeout_s=5)
    assert server.preamble == b"hrpc\x09\x00\xdf"
    assert server.sasl(0)[2] == 1
    assert server.sasl(1)[3] == b"ticket of ctl/here@REALM for rm@127.0.0.1"
    assert server.sasl(1)[4] == KERBEROS
    assert server.sasl(2)[3] == b"sealed:\x01\0\0\0"
    # Who the call is for, the server knows: the context names nobody.
    assert b"nobody" not in server.frames[3]
    assert b"ResourceManagerAdministrationProtocolPB" in server.frames[3]
    assert b"refreshQueues" in server.frames[4]


@pytest.mark.parametrize(("layers", "mark"), [(2, b"sealed:"), (4, b"secret:"), (7, b"secret:")])
def test_integrity_and_privacy_go_around_every_message(login: Login, layers: int, mark: bytes) -> None:
    """The strongest that the server offers; an answer may come in several pieces."""
    pieces = [said(WRAP, mark + piece) for piece in (ANSWER[:3], ANSWER[3:])]
    server = SaslServer(said(NEGOTIATE, b"", KERBEROS), offer(layers), said(SUCCESS), None, b"".join(pieces))
    with server as address:
        refresh_queues(address, user="nobody", login=login, timeout_s=5)
    for index in (3, 4):
        assert server.sasl(index)[2] == WRAP
        assert server.sasl(index)[3].startswith(mark)


def test_a_server_without_kerberos_takes_the_user_at_its_word(login: Login) -> None:
    server = SaslServer(said(SUCCESS), None, ANSWER)
    with server as address:
        refresh_queues(address, user="ctl", login=login, timeout_s=5)
    assert b"\x0a\x03ctl" in server.frames[1]


@pytest.mark.parametrize(
    ("answers", "error", "words"),
    [
        ([said(NEGOTIATE, b"", method("TOKEN", "DIGEST-MD5"))], Refused, "only TOKEN"),
        ([said(NEGOTIATE)], Refused, "only nothing"),
        ([said(NEGOTIATE, b"", method("KERBEROS", "GSSAPI", host="evil.test"))], Refused, "of another host"),
        ([said(NEGOTIATE, b"", b"\x0a\x7f")], BadAnswer, "longer than its message"),
        ([ANSWER], BadAnswer, "another call"),
        ([said(NEGOTIATE, b"", KERBEROS), said(SUCCESS)], BadAnswer, "wrong ways"),
        ([said(NEGOTIATE, b"", KERBEROS), said(CHALLENGE, b"sealed:xx")], BadAnswer, "no offer"),
        ([said(NEGOTIATE, b"", KERBEROS), offer(8)], BadAnswer, "no offer"),
        ([said(NEGOTIATE, b"", KERBEROS), said(CHALLENGE, b"open")], BadAnswer, "has not sealed"),
        ([said(NEGOTIATE, b"", KERBEROS), offer(1), offer(1)], BadAnswer, "wrong ways"),
        ([said(NEGOTIATE, b"", KERBEROS), offer(4), said(SUCCESS), None, ANSWER], BadAnswer, "another call"),
        ([said(NEGOTIATE, b"", KERBEROS), offer(4), said(SUCCESS), None, said(WRAP, b"x")], BadAnswer, "not sealed"),
        ([said(NEGOTIATE, b"", KERBEROS), offer(4), said(SUCCESS), None, said(CHALLENGE)], BadAnswer, "as agreed"),
    ],
)
def test_a_server_that_authenticates_wrongly(
    login: Login, answers: list[bytes | None], error: type[Exception], words: str
) -> None:
    with SaslServer(*answers) as address, pytest.raises(error, match=words):
        refresh_queues(address, user="ctl", login=login, timeout_s=5)


def test_a_context_that_takes_several_steps(gss: FakeGssapi, login: Login) -> None:
    gss.steps = 2
    answers = (said(NEGOTIATE, b"", KERBEROS), said(CHALLENGE, b"mine"), offer(1), said(SUCCESS), None, ANSWER)
    server = SaslServer(*answers)
    with server as address:
        refresh_queues(address, user="ctl", login=login, timeout_s=5)
    # The last step has nothing to send, and says so.
    assert server.sasl(2)[3] == b""


def test_no_ticket_for_the_rpc_is_an_outage(gss: FakeGssapi, login: Login) -> None:
    gss.trouble = [GSSError("Cannot contact any KDC for realm 'REALM'")]
    with SaslServer(said(NEGOTIATE, b"", KERBEROS)) as address, pytest.raises(NoTicket, match=r"rm@127\.0\.0\.1"):
        effective_queues(address, user="ctl", login=login, timeout_s=5)


def test_a_secure_rm_that_is_asked_without_kerberos(gss: FakeGssapi) -> None:
    why = "SIMPLE authentication is not enabled.  Available:[TOKEN, KERBEROS]"
    header = rpc.field(1, 0xFFFFFFFF) + rpc.field(2, 2)
    header += rpc.field(4, "org.apache.hadoop.security.AccessControlException") + rpc.field(5, why)
    data = rpc.delimited(header)
    with FakeServer(struct.pack(">I", len(data)) + data, framed=True) as server, pytest.raises(Refused) as caught:
        refresh_queues(RpcAddress("127.0.0.1", server.port), user="ctl", timeout_s=5)
    assert "give http.kerberos, or --principal and --keytab" in caught.value.line()


def test_a_client_calls_as_its_principal(gss: FakeGssapi, keytab: Path) -> None:
    with RmClient([RmAddress.of("http://rm")], options(keytab)) as client:
        assert client.login == Login("ctl/here@REALM", str(keytab))
        assert client.user == "ctl"
        assert isinstance(client.rest.http._session.auth, Spnego)
    with RmClient([RmAddress.of("http://rm")], HttpOptions(user="alice")) as client:
        assert client.login is None
