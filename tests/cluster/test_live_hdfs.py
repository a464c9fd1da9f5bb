"""The allocation file in a real HDFS, by WebHDFS: a NameNode and a DataNode of their own."""

from __future__ import annotations

import getpass
import os
import subprocess
import time
import uuid
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import requests

from harness.clusters import jars, processes, site
from harness.clusters.local import free_ports
from harness.model.errors import InputError
from harness.yarn.errors import Refused
from harness.yarn.files import FileChanged, WebHdfsPlace
from harness.yarn.http import HttpOptions

pytestmark = pytest.mark.java


@pytest.fixture
def place(tmp_path: Path) -> Iterator[WebHdfsPlace]:
    ports = free_ports(["nn", "nn-http", "dn", "dn-http", "dn-ipc"])
    conf, mark = tmp_path / "conf", f"test-{uuid.uuid4().hex}"
    conf.mkdir()
    # HDFS does not start without these folders on its class path.
    for name in ("hdfs", "datanode"):
        (tmp_path / "web" / "webapps" / name).mkdir(parents=True)
    core = {"fs.defaultFS": f"hdfs://127.0.0.1:{ports['nn']}", "hadoop.tmp.dir": str(tmp_path / "tmp")}
    hdfs = {
        "dfs.replication": "1",
        "dfs.namenode.name.dir": str(tmp_path / "name"),
        "dfs.datanode.data.dir": str(tmp_path / "data"),
        "dfs.namenode.http-address": f"127.0.0.1:{ports['nn-http']}",
        "dfs.datanode.address": f"127.0.0.1:{ports['dn']}",
        "dfs.datanode.http.address": f"127.0.0.1:{ports['dn-http']}",
        "dfs.datanode.ipc.address": f"127.0.0.1:{ports['dn-ipc']}",
        "dfs.datanode.hostname": "127.0.0.1",
        "dfs.namenode.safemode.extension": "0",
    }
    site.write(conf / "core-site.xml", site.render(core))
    site.write(conf / "hdfs-site.xml", site.render(hdfs))
    site.write(conf / "log4j.properties", site.LOG4J)
    java = ["java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx256m"]
    java += [f"--add-opens=java.base/java.{name}=ALL-UNNAMED" for name in ("lang", "util", "net")]
    java += ["-cp", f"{conf}:{tmp_path / 'web'}:{jars.find()}/*"]
    package = "org.apache.hadoop.hdfs.server"
    format_it = [*java, f"{package}.namenode.NameNode", "-format", "-nonInteractive"]
    subprocess.run(format_it, cwd=tmp_path, check=True, capture_output=True, timeout=120)
    environment = {**os.environ, processes.MARK: mark}
    started = []
    try:
        for name in ("namenode.NameNode", "datanode.DataNode"):
            log = tmp_path / f"{name}.log"
            command = [*java, f"{package}.{name}"]
            started.append(processes.start(command, environment=environment, folder=tmp_path, log=log))
        options = HttpOptions(user=getpass.getuser())
        made = WebHdfsPlace(f"http://127.0.0.1:{ports['nn-http']}", "/conf/fair scheduler.xml", options)
        end = time.monotonic() + 90
        while True:
            try:
                made.write(b"<allocations/>\n")
                break
            except InputError:
                assert time.monotonic() < end, "HDFS does not start"
                time.sleep(0.3)
        yield made
    finally:
        assert processes.stop(started, mark) == []


def test_the_file_is_replaced_in_hdfs_whole_or_not_at_all(place: WebHdfsPlace) -> None:
    new = b"<allocations>\n</allocations>\n" * 20_000
    place.write(new, before=b"<allocations/>\n")
    assert place.read() == new
    with pytest.raises(FileChanged):
        place.write(b"x", before=b"another")
    base = f"{place.base}/webhdfs/v1/conf"
    user = f"user.name={place.options.user}"
    requests.put(f"{base}/fair scheduler.xml?op=SETPERMISSION&permission=640&{user}", timeout=20).raise_for_status()
    place.write(b"<allocations/>")
    listed = requests.get(f"{base}?op=LISTSTATUS&{user}", timeout=20).json()["FileStatuses"]["FileStatus"]
    assert [(item["pathSuffix"], item["permission"]) for item in listed] == [("fair scheduler.xml", "640")]
    for wrong in (
        replace(place, path="/conf/none.xml").read,
        replace(place, path="/conf").read,
        lambda: replace(place, options=HttpOptions(user="mallory")).write(b"x"),
    ):
        with pytest.raises(Refused) as caught:
            wrong()
        assert "\tat " not in caught.value.line()
        assert " at org.apache" not in caught.value.line()
    assert place.read() == b"<allocations/>"
