"""A real ZooKeeper of one server, from Hadoop's own jars, for ResourceManagers that keep something in it."""

from __future__ import annotations

import contextlib
import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path

from harness.base.errors import InputError
from harness.clusters import jars, processes, site
from harness.clusters.daemons import free_ports, java_words
from studies.pair import none_left


@contextlib.contextmanager
def zookeeper(folder: Path, *, largest_bytes: int | None = None) -> Iterator[str]:
    """Its address. ``largest_bytes``: its jute.maxbuffer, the largest request that it takes (None: its default)."""
    folder.mkdir(parents=True)
    port = free_ports(["zk"])["zk"]
    lines = (
        f"dataDir={folder}/data",
        f"clientPort={port}",
        "clientPortAddress=127.0.0.1",
        "admin.enableServer=false",
        "tickTime=1000",
        "maxClientCnxns=0",
    )
    (folder / "zoo.cfg").write_text("\n".join(lines) + "\n")
    site.write(folder / "log4j.properties", site.LOG4J)
    # A gigabyte is its own default; it keeps the last 500 changes, and an RM's store is 0.3 MB at each.
    words = java_words("org.apache.zookeeper.server.ZooKeeperServerMain", str(folder), f"{jars.find()}/*", 1000)
    largest = [] if largest_bytes is None else [f"-Djute.maxbuffer={largest_bytes}"]
    mark = f"zookeeper-{os.getpid()}-{time.time_ns()}"
    process = processes.start(
        ["java", *largest, *words, str(folder / "zoo.cfg")],
        environment={**os.environ, processes.MARK: mark},
        folder=folder,
        log=folder / "zookeeper.log",
    )
    try:
        end = time.monotonic() + 60
        while True:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
                break
            if not process.alive or time.monotonic() > end:
                raise InputError("ZooKeeper does not start", where=str(folder / "zookeeper.log"), hint="read it")
            time.sleep(0.1)
        yield f"127.0.0.1:{port}"
    finally:
        none_left(processes.stop([process], mark), folder)
