"""The REST client and a server that misbehaves on purpose: retries, failover, standbys, TLS, what is never resent."""

from __future__ import annotations

import json
import re
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.base.errors import CallError, YarnfairError
from harness.yarn.errors import BadAnswer, NoActiveRm, Refused, Unreachable
from harness.yarn.http import HttpOptions, base_url
from harness.yarn.jmx import queue_containers
from harness.yarn.rest import LocalFile, RestClient, Submission
from tests.patience import at_most
from tests.ports import held_port
from tests.yarn.fake_server import FakeServer, Reply, dripping, http

RECORDED = Path(__file__).parent / "recorded"
INFO = json.loads((RECORDED / "info.json").read_text())
METRICS = json.loads((RECORDED / "metrics.json").read_text())
APP = json.loads((RECORDED / "app.json").read_text())
APP_ID = APP["app"]["id"]
QUICK = HttpOptions(connect_timeout_s=0.5, read_timeout_s=0.4, deadline_s=5, attempts=3, backoff_s=0.01)


@pytest.fixture
def servers() -> Iterator[Any]:
    started: list[FakeServer] = []

    def start(*replies: Reply) -> FakeServer:
        started.append(FakeServer(*replies))
        return started[-1]

    yield start
    for server in started:
        server.close()


def client(*bases: str, options: HttpOptions = QUICK, sleeps: list[float] | None = None) -> RestClient:
    return RestClient(bases, options, sleep=time.sleep if sleeps is None else sleeps.append)


def unused() -> str:
    return f"http://127.0.0.1:{held_port()}"


def close_at_once(connection: socket.socket, request: bytes) -> None:
    connection.close()


def test_a_get_is_retried_after_a_cut_off_answer_with_growing_pauses(servers: Any) -> None:
    cut = http(200, METRICS)[:-40]
    server = servers(cut, close_at_once, http(200, METRICS))
    pauses: list[float] = []
    assert client(server.url, sleeps=pauses).metrics().total.memory_mb == METRICS["clusterMetrics"]["totalMB"]
    assert server.lines() == ["GET /ws/v1/cluster/metrics"] * 3
    assert pauses == [0.01, 0.02]


@pytest.mark.parametrize(
    ("prefix", "asked"),
    [
        ("/proxy/rm", "GET /proxy/rm/ws/v1/cluster/metrics"),
        # Knox's name for the API lacks the /ws that it begins with at the RM.
        ("/gateway/default/resourcemanager", "GET /gateway/default/resourcemanager/v1/cluster/metrics"),
    ],
)
def test_a_proxys_path_stands_before_every_call(servers: Any, prefix: str, asked: str) -> None:
    server = servers(http(200, METRICS))
    assert client(server.url + prefix).metrics().total.memory_mb == METRICS["clusterMetrics"]["totalMB"]
    assert server.lines() == [asked]


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
def test_a_get_is_retried_on_a_status_without_a_java_exception(servers: Any, status: int) -> None:
    server = servers(http(status, b"<html>busy</html>"), http(200, METRICS))
    client(server.url).metrics()
    assert len(server.requests) == 2


def test_a_get_gives_up_after_its_attempts(servers: Any) -> None:
    server = servers(http(503, b"starting", reason="Service Unavailable"))
    with pytest.raises(Refused, match="HTTP 503 Service Unavailable") as caught:
        client(server.url).metrics()
    assert caught.value.status == 503
    assert len(server.requests) == 3


def test_an_answer_with_a_java_exception_is_final(servers: Any) -> None:
    # Moving to a queue that is not there: a real RM says 503 with this very body.
    body = {"RemoteException": {"exception": "UndeclaredThrowableException", "javaClassName": "x"}}
    server = servers(http(503, body))
    with pytest.raises(Refused, match="UndeclaredThrowableException") as caught:
        client(server.url).move(APP_ID, "root.nope")
    assert caught.value.exception == "UndeclaredThrowableException"
    assert len(server.requests) == 1


def test_the_message_of_a_java_exception_is_shown_without_its_class(servers: Any) -> None:
    told = {"exception": "NotFoundException", "message": f"java.lang.Exception: app with id: {APP_ID} not found"}
    server = servers(http(404, {"RemoteException": told}))
    with pytest.raises(Refused) as caught:
        client(server.url).app(APP_ID)
    assert f"HTTP 404 NotFoundException: app with id: {APP_ID} not found" in caught.value.line()
    assert caught.value.status == 404


def test_a_submission_is_not_sent_twice_when_its_answer_is_lost(servers: Any) -> None:
    fresh = {"application-id": APP_ID, "maximum-resource-capability": {"memory": 4096, "vCores": 4}}
    known = servers(http(200, fresh), close_at_once, http(404, {"RemoteException": {}}), http(200, APP))
    assert client(known.url).submit(Submission("n", "root.a", "true")) == APP_ID
    posts = [line for line in known.lines() if line.startswith("POST") and line.endswith("/apps")]
    assert len(posts) == 1
    unknown = servers(http(200, fresh), close_at_once, http(404, {"RemoteException": {}}))
    with pytest.raises(Unreachable):
        client(unknown.url).submit(Submission("n", "root.a", "true"))
    assert len([line for line in unknown.lines() if line == "POST /ws/v1/cluster/apps"]) == 1


def test_a_submission_carries_what_was_given(servers: Any) -> None:
    fresh = {"application-id": APP_ID, "maximum-resource-capability": {"memory": 4096, "vCores": 4}}
    server = servers(http(200, fresh), http(202))
    file = LocalFile("file:///x/run.sh", 12, 1_700_000_000_000)
    submission = Submission("n", "root.a", "sh run.sh", tags=["t"], environment={"K": "v"}, files={"run.sh": file})
    options = HttpOptions(user="alice")
    client(server.url, options=options).submit(submission)
    assert server.lines()[1] == "POST /ws/v1/cluster/apps?user.name=alice"
    body = server.bodies()[1]
    assert (body["application-id"], body["queue"]) == (APP_ID, "root.a")
    assert body["am-container-spec"]["environment"] == {"entry": [{"key": "K", "value": "v"}]}
    (entry,) = body["am-container-spec"]["local-resources"]["entry"]
    assert entry["key"] == "run.sh"
    assert entry["value"]["timestamp"] == 1_700_000_000_000


def test_a_submission_goes_to_the_other_rm_when_the_first_one_refuses_the_connection(servers: Any) -> None:
    fresh = {"application-id": APP_ID, "maximum-resource-capability": {"memory": 4096, "vCores": 4}}
    server = servers(http(200, fresh), http(202))
    assert client(unused(), server.url).submit(Submission("n", "root.a", "true")) == APP_ID
    assert len(server.requests) == 2


def test_kill_asks_until_it_is_killed(servers: Any) -> None:
    server = servers(http(202, {"state": "KILLING"}), http(202, {"state": "KILLING"}), http(200, {"state": "KILLED"}))
    assert client(server.url, sleeps=[]).kill(APP_ID) == "KILLED"
    assert server.bodies() == [{"state": "KILLED"}] * 3
    stuck = servers(http(202, {"state": "RUNNING"}))
    with pytest.raises(Unreachable, match="still RUNNING"):
        client(stuck.url, sleeps=[]).kill(APP_ID, timeout_s=1)


def test_a_standby_names_the_active_one_and_that_is_asked(servers: Any) -> None:
    active = servers(http(200, METRICS))
    standby = servers(http(307, b"This is standby RM.", Location=f"{active.url}/ws/v1/cluster/metrics"))
    both = client(standby.url, active.url)
    both.metrics()
    both.metrics()
    assert len(standby.requests) == 1, "the active one is remembered"
    alone = client(standby.url)
    alone.metrics()
    assert alone.http.bases == (standby.url, active.url)


def test_a_name_that_means_nothing_here_is_not_followed_when_there_is_a_choice(servers: Any) -> None:
    active = servers(http(200, METRICS))
    standby = servers(http(307, b"", Location="http://rm2.cluster.invalid:8088/ws/v1/cluster/metrics"))
    both = client(standby.url, active.url)
    both.metrics()
    assert both.http.bases == (standby.url, active.url)


def test_without_an_active_rm_it_says_so(servers: Any) -> None:
    reply = http(307, b"Can not find any active RM.", Refresh="5;url=http://x/")
    first, second = servers(reply), servers(reply)
    with pytest.raises(NoActiveRm, match="standby"):
        client(first.url, second.url).metrics()
    assert len(first.requests) == len(second.requests) == 3


@pytest.mark.parametrize(
    "words",
    [
        "This is standby RM. The redirect url is: http://rm2:8088/ws/v1/cluster/apps",
        "Can't find any active RM. Will retry in next 2 seconds.",
        "There is no active RM right now.",
    ],
)
def test_a_standby_that_answers_in_plain_text_is_passed_over(servers: Any, words: str) -> None:
    """RMWebAppFilter writes these with status 200 where it does not redirect."""
    standby = servers(http(200, f"{words}\n".encode(), Content_Type="text/plain"))
    active = servers(http(200, {"apps": None}))
    assert client(standby.url, active.url).apps() == []
    for ask in (client(standby.url).apps, client(standby.url).info, client(standby.url).metrics):
        with pytest.raises(NoActiveRm, match=re.escape(words)):
            ask()


@pytest.mark.parametrize(
    ("page", "reason"),
    [
        (
            b"<html><head><title>Error 403 GSSException</title></head><body><h2>HTTP ERROR 403</h2><table><tr>"
            b"<th>URI:</th><td>/ws</td></tr><tr><th>MESSAGE:</th><td>User: dr.who is not allowed to impersonate &apos;a"
            b"&apos;</td></tr></table></body></html>",
            "HTTP 403 Forbidden: User: dr.who is not allowed to impersonate 'a'",
        ),
        (
            b"<html><body><p>Problem accessing /ws/v1/cluster/scheduler-conf. Reason:\n<pre>    Only admin can carry"
            b" out this operation.</pre></p></body></html>",
            "HTTP 403 Forbidden: Only admin can carry out this operation.",
        ),
        (b"Only admin can carry out this operation.", "HTTP 403 Forbidden: Only admin can carry out this operation."),
        (b"<html><body>no</body></html>", "HTTP 403 Forbidden"),
    ],
)
def test_the_reason_in_a_refusals_page_is_told(servers: Any, page: bytes, reason: str) -> None:
    server = servers(http(403, page, reason="Forbidden"))
    with pytest.raises(Refused) as caught:
        client(server.url).metrics()
    assert caught.value.what == reason


def test_two_standbys_that_name_each_other_do_not_loop(servers: Any) -> None:
    first = servers(lambda c, r: c.sendall(http(307, b"", Location=f"{second.url}/x")))
    second = servers(lambda c, r: c.sendall(http(307, b"", Location=f"{first.url}/x")))
    with pytest.raises(NoActiveRm):
        client(first.url, second.url).metrics()
    assert len(first.requests) == len(second.requests) == 3


@pytest.mark.parametrize("location", ["ftp://rm/", "http://user:pw@rm:8088/", "//", "http://[::/", "http://rm:99999/"])
def test_a_redirection_to_nowhere_is_a_bad_answer(servers: Any, location: str) -> None:
    server = servers(http(307, b"", Location=location))
    with pytest.raises(BadAnswer):
        client(server.url).metrics()


def test_a_standby_exception_moves_on_even_for_what_is_not_repeatable(servers: Any) -> None:
    told = {"exception": "StandbyException", "message": "org.apache.hadoop.ipc.StandbyException: rm1 is not active"}
    standby = servers(http(403, {"RemoteException": told}))
    fresh = {"application-id": APP_ID, "maximum-resource-capability": {"memory": 4096, "vCores": 4}}
    active = servers(http(200, fresh), http(202))
    assert client(standby.url, active.url).submit(Submission("n", "root.a", "true")) == APP_ID


def test_info_passes_over_a_standby(servers: Any) -> None:
    other = {"clusterInfo": {**INFO["clusterInfo"], "haState": "STANDBY"}}
    standby, active = servers(http(200, other)), servers(http(200, INFO))
    both = client(standby.url, active.url)
    assert both.info().active
    assert both.http.current == active.url
    with pytest.raises(NoActiveRm, match="STANDBY"):
        client(standby.url).info()


def test_one_that_is_down_is_passed_over_and_the_other_remembered(servers: Any) -> None:
    active = servers(http(200, METRICS))
    both = client(unused(), active.url)
    both.metrics()
    assert both.http.current == active.url


def test_a_silent_server_costs_no_more_than_the_deadline(servers: Any) -> None:
    server = servers(lambda connection, request: time.sleep(1.5))
    options = HttpOptions(connect_timeout_s=0.5, read_timeout_s=0.3, deadline_s=0.6, attempts=9, backoff_s=0.01)
    with at_most(1.4), pytest.raises(Unreachable, match="no answer"):
        client(server.url, options=options).metrics()


def test_an_answer_that_drips_costs_no_more_than_the_deadline(servers: Any) -> None:
    def drip(connection: socket.socket, request: bytes) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
        for _ in range(40):
            connection.sendall(b" ")
            time.sleep(0.05)

    server = servers(drip)
    options = HttpOptions(read_timeout_s=0.3, deadline_s=0.5, attempts=1)
    with at_most(1.5), pytest.raises(Unreachable):
        client(server.url, options=options).metrics()


@pytest.mark.parametrize("start", [b"H", b"HTTP/1.1 200 O", b"HTTP/1.1 200 OK\r\nX-Slow: ", b"HTTP/1.1 200 OK\r\n\r\n"])
def test_a_status_line_or_header_that_drips_costs_no_more_than_the_deadline(servers: Any, start: bytes) -> None:
    server = servers(dripping(start))
    with at_most(2.8), pytest.raises(Unreachable, match=r"no answer in time: not complete after 1\.5 s"):
        client(server.url, options=HttpOptions(read_timeout_s=1.4, deadline_s=1.5, attempts=3)).metrics()


def test_a_connection_that_is_used_again_is_bounded_as_well(servers: Any) -> None:
    def twice(connection: socket.socket, request: bytes) -> None:
        connection.sendall(http(200, METRICS).replace(b"Connection: close\r\n", b""))
        connection.recv(65536)
        dripping(b"HTTP/1.1 ")(connection, request)

    server = servers(twice)
    rest = client(server.url, options=HttpOptions(read_timeout_s=1.4, deadline_s=1.5, attempts=1))
    rest.metrics()
    with at_most(2.8), pytest.raises(Unreachable, match="not complete"):
        rest.metrics()
    assert len(server.requests) == 1


def test_an_answer_beyond_the_limit_is_not_read_to_its_end(servers: Any) -> None:
    def endless(connection: socket.socket, request: bytes) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        for _ in range(1000):
            connection.sendall(b"[" * 65536)

    server = servers(endless)
    options = HttpOptions(max_answer_bytes=1 << 20, attempts=1)
    with pytest.raises(BadAnswer, match="more than 1048576 bytes"):
        client(server.url, options=options).metrics()


@pytest.mark.parametrize(
    "reply",
    [
        b"",
        b"\x00\x01\x02\x03",
        b"SSH-2.0-OpenSSH_9.2\r\n",
        b"HTTP/1.1 OK\r\n\r\n",
        b"HTTP/1.1 99999 X\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: nine\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n{}",
        b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\nno gzip",
        b"HTTP/1.1 200 OK\r\nX: " + b"y" * 200_000 + b"\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * 5000 + b"\r\n{}",
        http(200, b"<!DOCTYPE html><html>login</html>"),
        http(200, b'{"clusterMetrics": {"total'),
        http(200, b"[" * 100_000),
        http(200, b'{"clusterMetrics": {"totalMB": ' + b"9" * 5000 + b"}}"),
        http(200, b"\xff\xfe\xfd"),
        http(200, b""),
        http(200, b"null"),
        http(204),
        http(404, b"\xff" * 100),
        http(301, b"", Location="/elsewhere"),
        http(307, b"", Location="x" * 100_000),
    ],
)
def test_nonsense_is_one_line(servers: Any, reply: bytes) -> None:
    server = servers(reply)
    with pytest.raises(YarnfairError) as caught:
        client(server.url, options=HttpOptions(read_timeout_s=0.5, deadline_s=2, attempts=2, backoff_s=0)).metrics()
    assert caught.value.exit_code == 1
    assert "\n" not in caught.value.line()
    assert len(caught.value.line()) < 800


def test_nobody_there_is_one_line() -> None:
    for base in (unused(), "http://no-such-host.invalid:8088"):
        with pytest.raises(Unreachable) as caught:
            client(base, options=HttpOptions(deadline_s=2, attempts=1)).info()
        assert "\n" not in caught.value.line()
        assert "HTTPConnectionPool" not in caught.value.line()


@pytest.mark.parametrize(
    ("given", "base"),
    [
        ("rm", "http://rm:8088"),
        ("rm:18088", "http://rm:18088"),
        ("https://rm.example", "https://rm.example:8090"),
        ("http://rm:1/ws/v1/cluster/", "http://rm:1"),
        ("[::1]:8088", "http://[::1]:8088"),
        ("https://knox:8443/gateway/default/resourcemanager", "https://knox:8443/gateway/default/resourcemanager"),
        (
            "https://knox:8443/gateway/cluster/resourcemanager/v1/cluster/",
            "https://knox:8443/gateway/cluster/resourcemanager",
        ),
        ("http://proxy/rm/ws/v1/cluster", "http://proxy:8088/rm"),
        ("http://proxy:80/yarn/", "http://proxy:80/yarn"),
    ],
)
def test_addresses(given: str, base: str) -> None:
    assert base_url(given) == base


@pytest.mark.parametrize(
    "given",
    [
        "http://rm/../x",
        "http://rm/a//b",
        "http://rm/a b",
        "",
        "ftp://rm",
        "http://",
        "http://u:p@rm",
        "http://rm:x",
        "http://rm:70000",
        "http://rm/a?b",
        "http://r m",
    ],
)
def test_what_is_no_address_is_a_wrong_call(given: str) -> None:
    with pytest.raises(CallError):
        base_url(given)


@pytest.mark.parametrize("identity", ["", "foo", "application_1_1/../..", "application_1_0001\n", "APPLICATION_1_0001"])
def test_what_is_no_application_id_is_never_sent(identity: str) -> None:
    with pytest.raises(CallError):
        client(unused()).app(identity)


@pytest.mark.parametrize(
    "options", [{"deadline_s": float("nan")}, {"attempts": 0}, {"auth": "magic"}, {"ca_file": "/no"}]
)
def test_wrong_options_are_wrong_calls(options: dict[str, Any]) -> None:
    with pytest.raises(CallError):
        HttpOptions(**options)


def test_the_environment_has_no_say(servers: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", unused())
    monkeypatch.setenv("HTTP_PROXY", unused())
    server = servers(http(200, METRICS))
    assert client(server.url).metrics().active_nodes == 2
    assert len(server.requests) == 1


def test_a_401_that_wants_kerberos_says_what_to_do(servers: Any) -> None:
    server = servers(http(401, b"<html>", WWW_Authenticate="Negotiate"))
    with pytest.raises(Refused, match="Kerberos"):
        client(server.url).metrics()


def test_the_jmx_page_of_one_address_is_not_asked_of_another(servers: Any) -> None:
    page = {"beans": [{"name": "Hadoop:service=ResourceManager,name=QueueMetrics,q0=root"}]}
    active, standby = servers(http(503)), servers(http(200, page))
    rest = client(active.url, standby.url, sleeps=[])
    with pytest.raises(Refused):
        queue_containers(rest.http, only=active.url)
    assert rest.http.current == active.url
    assert standby.requests == []
