"""WebHDFS and a NameNode that misbehaves on purpose: answers that drip, TLS that is left. (Files: test_files.)"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest

from harness.yarn.errors import BadAnswer, Unreachable
from harness.yarn.http import HttpOptions
from harness.yarn.webhdfs import WebHdfs
from tests.patience import at_most
from tests.yarn.fake_server import FakeServer, dripping, http
from tests.yarn.tls import Authority


@pytest.mark.parametrize("start", [b"HTTP/1.1 200 O", b"HTTP/1.1 200 OK\r\n\r\n"])
@pytest.mark.parametrize("redirected", [False, True])
def test_an_answer_that_drips_ends_in_time(start: bytes, redirected: bool) -> None:
    # A byte comes every 0.05 s. A machine may be busy for longer, but not for the whole of a read.
    options = HttpOptions(read_timeout_s=1.4, deadline_s=1.5)
    with FakeServer(dripping(start)) as slow, FakeServer(http(307, b"", Location=f"{slow.url}/data")) as name:
        hdfs = WebHdfs(name.url if redirected else slow.url, options)
        for act in (lambda: hdfs.call("GET", "/f", "OPEN"), lambda: list(hdfs.pieces("/f")), hdfs.file_system):
            if redirected and act == hdfs.file_system:
                continue
            with at_most(2.8), pytest.raises(Unreachable, match=r"not complete after 1\.5 s"):
                act()


def test_what_is_done_with_a_piece_may_take_its_time() -> None:
    data = os.urandom(3 << 20)
    with FakeServer(http(200, data)) as server:
        found = b""
        for piece in WebHdfs(server.url, HttpOptions(read_timeout_s=0.3, deadline_s=0.3)).pieces("/f"):
            time.sleep(0.2)
            found += piece
    assert found == data


def test_a_file_is_sent_from_where_it_stands(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"0123456789")
    with FakeServer(http(201)) as data, FakeServer(http(307, b"", Location=f"{data.url}/data")) as name:
        with (tmp_path / "f").open("rb") as source:
            source.seek(4)
            WebHdfs(name.url).call("PUT", "/f", "CREATE", source)
        assert data.requests[0].endswith(b"\r\n\r\n456789")


def test_from_https_nothing_leads_to_plain_http(tmp_path: Path) -> None:
    hdfs = WebHdfs("https://nn:9871")
    assert (
        hdfs._redirected("https://dn:9865/webhdfs/v1/f?delegation=x", "f")
        == "https://dn:9865/webhdfs/v1/f?delegation=x"
    )
    with pytest.raises(BadAnswer, match="from https to http://dn:9864") as caught:
        hdfs._redirected("http://dn:9864/webhdfs/v1/f?delegation=secret", "f")
    assert "secret" not in caught.value.line()
    authority = Authority(tmp_path)
    own = authority.signed("client")
    options = HttpOptions(ca_file=str(authority.file), cert_file=str(own.cert), key_file=str(own.key))
    with WebHdfs("https://nn:9871", options)._asked("x", "y", "z") as (session, _):
        assert session.cert == (str(own.cert), str(own.key))
        assert session.verify == str(authority.file)
        assert not session.trust_env


@pytest.mark.parametrize(
    "told", [{"property": ["x"]}, {"property": "x"}, {"property": None}, [], {"property": {"value": 1}}]
)
def test_a_namenode_that_names_no_file_system_is_one_line(told: Any) -> None:
    with FakeServer(http(200, told)) as server, pytest.raises(BadAnswer, match="no address of a file system"):
        WebHdfs(server.url).file_system()
