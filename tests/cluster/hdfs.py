"""An HDFS of one NameNode and one DataNode on the loopback, for tests."""

from __future__ import annotations

import contextlib
import getpass
import os
import subprocess
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

from harness.base.errors import InputError
from harness.clusters import jars, processes, site
from harness.clusters.daemons import free_ports, java_words
from harness.yarn.http import HttpOptions
from harness.yarn.webhdfs import WebHdfs

_PACKAGE = "org.apache.hadoop.hdfs.server"


@contextlib.contextmanager
def hdfs(folder: Path) -> Iterator[WebHdfs]:
    """Up and ready to be written to; nothing of it runs on afterwards."""
    ports = free_ports(["nn", "nn-http", "dn", "dn-http", "dn-ipc"])
    conf, mark = folder / "conf", f"test-{uuid.uuid4().hex}"
    conf.mkdir(parents=True)
    # HDFS does not start without these folders on its class path.
    for name in ("hdfs", "datanode"):
        (folder / "web" / "webapps" / name).mkdir(parents=True)
    core = {"fs.defaultFS": f"hdfs://127.0.0.1:{ports['nn']}", "hadoop.tmp.dir": str(folder / "tmp")}
    properties = {
        "dfs.replication": "1",
        "dfs.namenode.name.dir": str(folder / "name"),
        "dfs.datanode.data.dir": str(folder / "data"),
        "dfs.namenode.http-address": f"127.0.0.1:{ports['nn-http']}",
        "dfs.datanode.address": f"127.0.0.1:{ports['dn']}",
        "dfs.datanode.http.address": f"127.0.0.1:{ports['dn-http']}",
        "dfs.datanode.ipc.address": f"127.0.0.1:{ports['dn-ipc']}",
        "dfs.datanode.hostname": "127.0.0.1",
        "dfs.namenode.safemode.extension": "0",
        # Where the disk is nearly full, a DataNode of the defaults takes no blocks.
        "dfs.datanode.du.reserved": "0",
    }
    site.write(conf / "core-site.xml", site.render(core))
    site.write(conf / "hdfs-site.xml", site.render(properties))
    site.write(conf / "log4j.properties", site.LOG4J)
    classes = f"{conf}:{folder / 'web'}:{jars.find()}/*"

    def command(main: str) -> list[str]:
        return ["java", *java_words(f"{_PACKAGE}.{main}", str(conf), classes, 256)]

    format_it = [*command("namenode.NameNode"), "-format", "-nonInteractive"]
    subprocess.run(format_it, cwd=folder, check=True, capture_output=True, timeout=300)
    environment = {**os.environ, processes.MARK: mark}
    started = []
    try:
        for name in ("namenode.NameNode", "datanode.DataNode"):
            log = folder / f"{name}.log"
            started.append(processes.start(command(name), environment=environment, folder=folder, log=log))
        made = WebHdfs(f"http://127.0.0.1:{ports['nn-http']}", HttpOptions(user=getpass.getuser()))
        end = time.monotonic() + 240
        while True:
            try:
                made.write("/ready", b"yes")
                break
            except InputError:
                assert time.monotonic() < end, "HDFS does not start"
                time.sleep(0.3)
        yield made
    finally:
        assert processes.stop(started, mark) == []
