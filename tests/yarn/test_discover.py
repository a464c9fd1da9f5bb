"""What an RM tells of itself (``/conf``): its ports, its allocation file, and what a pair of RMs must share."""

from __future__ import annotations

import getpass
from pathlib import Path

import pytest

from harness.base.errors import CallError
from harness.yarn.discover import another_file, file_of_each, find_rm
from harness.yarn.files import ConfigStore, LocalStore
from harness.yarn.http import HttpOptions
from harness.yarn.rmclient import NotEffective, RmAddress, RmClient
from harness.yarn.sftp import SftpStore
from harness.yarn.stores import WebHdfsStore
from tests.yarn.fake_server import FakeServer, conf

QUICK = HttpOptions(connect_timeout_s=0.5, read_timeout_s=1, deadline_s=2, attempts=1)


@pytest.mark.parametrize(
    ("told", "port"),
    [
        ("0.0.0.0:18033", 18033),
        ("rm:²", 8033),
        ("rm:١٢٣", 8033),
        ("rm:" + "9" * 5000, 8033),
        ("rm:0", 8033),
        ("rm:70000", 8033),
        ("rm", 8033),
        (None, 8033),
        ("rm:\ud800", 8033),
    ],
)
def test_a_port_that_is_none_is_the_usual_one(told: str | None, port: int) -> None:
    with FakeServer(conf({"yarn.resourcemanager.admin.address": told})) as rm:
        assert find_rm(rm.url, QUICK, client="rm:1").admin.port == port


FILE = "yarn.scheduler.fair.allocation.file"


@pytest.mark.parametrize(
    ("path", "place", "alarm"),
    [
        ("/etc/hadoop/fair-scheduler.xml", SftpStore("rm1", "/etc/hadoop/fair-scheduler.xml"), True),
        ("file:///etc/hadoop/fair-scheduler.xml", LocalStore(Path("/etc/hadoop/fair-scheduler.xml")), True),
        ("hdfs://nn/fair-scheduler.xml", WebHdfsStore("http://nn:9870", "/fair-scheduler.xml"), False),
        ("hdfs://nn/fair-scheduler.xml", LocalStore(Path("/hdfs/fair-scheduler.xml")), False),
        (None, LocalStore(Path("/etc/hadoop/fair-scheduler.xml")), False),
    ],
)
def test_a_pair_of_rms_with_a_file_each_is_said(path: str | None, place: ConfigStore, alarm: bool) -> None:
    with FakeServer(conf({FILE: path})) as one:
        nobody = RmAddress.of("http://127.0.0.1:9")
        pair = [nobody, RmAddress.of(one.url)]
        said = file_of_each(pair, place, QUICK)
        assert (said is not None) == alarm
        if said is not None:
            assert place.name in said
            assert "hdfs://" in said
        assert file_of_each(pair[1:], place, QUICK) is None, "one RM alone"
        assert file_of_each([nobody, nobody], place, QUICK) is None, "nobody tells"


@pytest.mark.parametrize(
    ("told", "place", "said"),
    [
        ("/etc/hadoop/fair-scheduler.xml", LocalStore(Path("/srv/other.xml")), True),
        ("/etc/hadoop/fair-scheduler.xml", LocalStore(Path("/etc/hadoop/fair-scheduler.xml")), False),
        ("/etc/hadoop/fair-scheduler.xml", SftpStore("rm1", "/etc/hadoop/fair-scheduler.xml"), False),
        ("/etc/hadoop/fair-scheduler.xml", SftpStore("rm1", "/etc/hadoop/fair.xml"), True),
        ("hdfs://nn/fair-scheduler.xml", WebHdfsStore("http://nn:9870", "/fair-scheduler.xml"), False),
        ("hdfs://nn/fair-scheduler.xml", LocalStore(Path("/etc/hadoop/conf/fair-scheduler.xml")), True),
        ("fair-scheduler.xml", LocalStore(Path("/etc/hadoop/conf/fair-scheduler.xml")), False),
        (None, LocalStore(Path("/etc/hadoop/conf/fair-scheduler.xml")), False),
    ],
)
def test_a_file_that_the_rm_does_not_seem_to_read_is_said(told: str | None, place: ConfigStore, said: bool) -> None:
    with FakeServer(conf({FILE: told})) as one:
        words = another_file([RmAddress.of("http://127.0.0.1:9"), RmAddress.of(one.url)], place, QUICK)
    assert (words is not None) == said
    if words is not None:
        assert str(told) in words
        assert place.name in words


def test_a_link_to_the_rms_file_is_that_file(tmp_path: Path) -> None:
    (tmp_path / "real.xml").write_text("<allocations/>")
    (tmp_path / "link.xml").symlink_to(tmp_path / "real.xml")
    with FakeServer(conf({FILE: str(tmp_path / "real.xml")})) as one:
        assert another_file([RmAddress.of(one.url)], LocalStore(tmp_path / "link.xml"), QUICK) is None


def test_what_did_not_take_effect_names_the_pairs_file() -> None:
    assert "share" in NotEffective({"root.a": "x"}, where="rm", waited_s=1, rms=2).line()
    assert "share" not in NotEffective({"root.a": "x"}, where="rm", waited_s=1).line()


def test_a_user_without_a_name(monkeypatch: pytest.MonkeyPatch) -> None:
    def nobody() -> str:
        raise KeyError("getpwuid(): uid not found: 12345")

    monkeypatch.setattr(getpass, "getuser", nobody)
    with pytest.raises(CallError, match="no name") as caught:
        RmClient([RmAddress.of("http://rm")])
    assert "http.user" in caught.value.line()
    RmClient([RmAddress.of("http://rm")], HttpOptions(user="alice")).close()
