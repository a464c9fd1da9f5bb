"""Hadoop's daemons as Java programs: classes, ports, options. The same on this machine and on other hosts."""

from __future__ import annotations

import shutil
import socket
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass

from harness.base.errors import InputError

RM = "org.apache.hadoop.yarn.server.resourcemanager.ResourceManager"
NM = "org.apache.hadoop.yarn.server.nodemanager.NodeManager"
HISTORY = "org.apache.hadoop.mapreduce.v2.hs.JobHistoryServer"
_SCHEDULERS = "org.apache.hadoop.yarn.server.resourcemanager.scheduler"


@dataclass(frozen=True, slots=True, kw_only=True)
class RmScheduler:
    """A scheduler that a ResourceManager can have.

    Parameters
    ----------
    java_class
        The value of ``yarn.resourcemanager.scheduler.class``.
    file_name
        The file that it reads its queues from.
    file_key
        The key of a controller's configuration that names this file.
    preemption
        The property that switches its preemption on.
    """

    java_class: str
    file_name: str
    file_key: str
    preemption: str


#: Name in an experiment file -> the scheduler.
SCHEDULERS = {
    "fair": RmScheduler(
        java_class=f"{_SCHEDULERS}.fair.FairScheduler",
        file_name="fair-scheduler.xml",
        file_key="allocation_file",
        preemption="yarn.scheduler.fair.preemption",
    ),
    "capacity": RmScheduler(
        java_class=f"{_SCHEDULERS}.capacity.CapacityScheduler",
        file_name="capacity-scheduler.xml",
        file_key="capacity_file",
        # Its preemption is a policy of the RM's monitor.
        preemption="yarn.resourcemanager.scheduler.monitor.enable",
    ),
}
#: The address on this machine at which local daemons and the local ends of tunnels listen.
LOOPBACK = "127.0.0.1"
#: The RM's ports, by name.
RM_PORTS = ("http", "client", "admin", "scheduler", "tracker")
#: Name of a JobHistoryServer's port -> the property with its address. REST is served at the first.
HISTORY_PORTS = {
    "history": "mapreduce.jobhistory.webapp.address",
    "history-client": "mapreduce.jobhistory.address",
    "history-admin": "mapreduce.jobhistory.admin.address",
}
#: The property with the folder in which ApplicationMasters leave their jobs' histories for the JobHistoryServer.
HISTORY_FOLDER = "mapreduce.jobhistory.intermediate-done-dir"
_OPENS = [
    word
    for package in ("java.lang", "java.util", "java.net")
    for word in ("--add-opens", f"java.base/{package}=ALL-UNNAMED")
]


def java_program() -> str:
    """Return the path of this machine's ``java``; raise InputError if there is none."""
    java = shutil.which("java")
    if java is None:
        raise InputError("no Java on the PATH", hint="install a JRE 17 (openjdk-17-jre-headless)")
    return java


def java_words(main: str, conf: str, class_path: str, heap_mb: int) -> list[str]:
    """Return the arguments after ``java`` for a daemon whose log4j.properties is in the folder ``conf``."""
    return [
        *_OPENS,
        "-XX:TieredStopAtLevel=1",
        "-XX:+UseSerialGC",
        # A NodeManager starts some twenty programs per container (mostly chmod): skip Java's helper process.
        "-Djdk.lang.Process.launchMechanism=VFORK",
        f"-Dlog4j.configuration=file:{conf}/log4j.properties",
        f"-Xmx{heap_mb}m",
        "-cp",
        class_path,
        main,
    ]


def port_taken(port: int) -> bool:
    """Return whether a process listens on this port of the loopback (or the system reserves it)."""
    with socket.socket() as probe:
        # As in Hadoop's servers, a port in TIME_WAIT is free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return True
    return False


def free_ports(names: Iterable[str]) -> dict[str, int]:
    """Return a different free port of the loopback for each name."""
    found = {}
    with ExitStack() as held:
        for name in names:
            holder = held.enter_context(socket.socket())
            holder.bind((LOOPBACK, 0))
            found[name] = int(holder.getsockname()[1])
    return found
