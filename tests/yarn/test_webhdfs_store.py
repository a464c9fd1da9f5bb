"""The allocation file over WebHDFS (a server that redirects)."""

from __future__ import annotations

import pytest

from harness.base.errors import InputError, YarnfairError
from harness.yarn.errors import Refused
from harness.yarn.http import HttpOptions
from harness.yarn.stores import WebHdfsStore
from tests.yarn.fake_server import FakeServer, http
from tests.yarn.owners import NEW


def test_over_webhdfs_data_goes_to_the_datanode_and_the_rename_replaces() -> None:
    told = http(200, {"FileStatus": {"pathSuffix": "", "type": "FILE", "length": 3, "permission": "640"}})
    with FakeServer(http(201), http(200, NEW)) as data:
        to_data = http(307, b"", Location=f"{data.url}/data")
        with FakeServer(told, to_data, http(200), to_data) as name:
            place = WebHdfsStore(name.url, "/conf/f x.xml", HttpOptions(user="yarn"))
            place.write(NEW)
        assert data.requests[0].endswith(NEW)
        assert not any(NEW in request for request in name.requests), "the NameNode must not get the data"
        create, rename = name.lines()[1:3]
        assert "op=CREATE" in create
        assert "permission=640" in create
        assert create.startswith("PUT /webhdfs/v1/conf/.f%20x.xml.")
        assert "op=RENAME" in rename
        assert "renameoptions=OVERWRITE" in rename
        assert "destination=%2Fconf%2Ff+x.xml" in rename
        assert all("user.name=yarn" in line for line in name.lines())


def test_over_webhdfs_a_failed_rename_takes_the_copy_away() -> None:
    missing = {"RemoteException": {"exception": "FileNotFoundException", "message": "File does not exist: /f"}}
    denied = {"RemoteException": {"exception": "AccessControlException", "message": "Permission denied"}}
    with FakeServer(http(201)) as data:
        to_data = http(307, b"", Location=f"{data.url}/data")
        replies = (http(404, missing), to_data, http(403, denied), http(200, {"boolean": True}))
        with FakeServer(*replies) as name, pytest.raises(Refused, match="Permission denied") as caught:
            WebHdfsStore(name.url, "/f").write(NEW)
        assert caught.value.exception == "AccessControlException"
        assert name.lines()[-1].startswith("DELETE /webhdfs/v1/.f.")


def hdfs_status(owner: str, group: str, permission: str, *, acl: bool = False) -> bytes:
    told = {"pathSuffix": "", "type": "FILE", "length": 3, "permission": permission, "owner": owner, "group": group}
    return http(200, {"FileStatus": {**told, "aclBit": True} if acl else told})


def test_over_webhdfs_owner_group_and_acl_stay() -> None:
    entries = {"AclStatus": {"entries": ["user:carla:r--", "group::r-x"], "owner": "yarn", "group": "hadoop"}}
    with FakeServer(http(201), http(200, NEW)) as data:
        to_data = http(307, b"", Location=f"{data.url}/data")
        old, new = hdfs_status("yarn", "hadoop", "640", acl=True), hdfs_status("me", "me", "640")
        replies = (old, to_data, new, http(200), http(200), http(200, entries), http(200), old, http(200), to_data)
        with FakeServer(*replies) as name:
            WebHdfsStore(name.url, "/f").write(NEW)
            asked = [line.split("op=")[1].split()[0] for line in name.lines()]
    assert asked[2:7] == [
        "GETFILESTATUS",
        "SETOWNER&owner=yarn&group=hadoop",
        "SETOWNER&group=hadoop",
        "GETACLSTATUS",
        "SETACL&aclspec=user%3A%3Arw-%2Cuser%3Acarla%3Ar--%2Cgroup%3A%3Ar-x%2Cmask%3A%3Ar--%2Cother%3A%3A---",
    ]
    assert asked[8].startswith("RENAME")


def test_over_webhdfs_a_file_that_its_group_could_not_read_afterwards_is_not_replaced() -> None:
    denied = http(403, {"RemoteException": {"exception": "AccessControlException", "message": "Permission denied"}})
    with FakeServer(http(201)) as data:
        to_data = http(307, b"", Location=f"{data.url}/data")
        new = hdfs_status("me", "me", "640")
        replies = (hdfs_status("me", "hadoop", "640"), to_data, new, denied, new, http(200, {"boolean": True}))
        with FakeServer(*replies) as name, pytest.raises(InputError, match="the group hadoop could not read"):
            WebHdfsStore(name.url, "/f").write(NEW)
        assert name.lines()[-1].startswith("DELETE /webhdfs/v1/.f.")


def test_over_webhdfs_a_file_whose_owner_and_rights_are_not_told_is_not_replaced() -> None:
    broken = http(500, {"RemoteException": {"exception": "IOException", "message": "no block locations"}})
    with FakeServer(http(201), http(200, NEW)) as data:
        to_data = http(307, b"", Location=f"{data.url}/data")
        replies = (broken, to_data, http(200), to_data)
        with FakeServer(*replies) as name, pytest.raises(Refused, match="no block locations"):
            WebHdfsStore(name.url, "/f").write(NEW)
        assert [line.split("op=")[1].split()[0] for line in name.lines()] == ["GETFILESTATUS"]


@pytest.mark.parametrize(
    "reply",
    [b"", http(500, b"<html>"), http(307, b""), http(307, b"", Location="file:///etc/passwd"), b"x" * 50, http(401)],
)
def test_over_webhdfs_nonsense_is_one_line(reply: bytes) -> None:
    with FakeServer(reply) as server:
        place = WebHdfsStore(server.url, "/f", HttpOptions(read_timeout_s=1))
        for act in (place.read, lambda: place.write(NEW)):
            with pytest.raises(YarnfairError) as caught:
                act()
            assert "\n" not in caught.value.line()
