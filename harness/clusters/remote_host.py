"""Operations on one host of a cluster over SSH: examine, install, configure, start and stop.

Each host has one folder of this project: ``lib-DIGEST/`` (jars, kept for the next time), and ``MARK/`` for one cluster
(site files, scheduler folder, logs, local folders). Daemons have the cluster's mark in their environment, by which all
of them are found, including containers. Hosts need a POSIX shell, the Hadoop release's Java, and the usual tools
(setsid, sha256sum, grep, awk).
"""

from __future__ import annotations

import hashlib
import posixpath
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote as url_quote

from harness.base.errors import InputError
from harness.clusters import processes
from harness.clusters.daemon_site import node_properties, rm_properties, site_files
from harness.clusters.daemons import LOOPBACK, NM, RM, RM_PORTS, SCHEDULERS, java_words
from harness.clusters.inventory import Host
from harness.clusters.jars import java_version
from harness.clusters.remote import Remote, quote
from harness.clusters.state import ClusterState
from harness.clusters.status import last_words
from harness.model.data import data_path
from harness.yarn.releases import HadoopRelease

Progress = Callable[[str], None]
_MAIN = {"rm": RM, "nm": NM}
#: Stops every process of a mark, first with SIGTERM; prints those that are left. Containers are in their own sessions.
_STOP = """
mark="$1"; grace="$2"
marked() {
  grep -lzx "YARNFAIR_CLUSTER=$mark" /proc/[0-9]*/environ 2>/dev/null | cut -d/ -f3
}
for p in $(marked); do kill -TERM "$p" 2>/dev/null; done
n=0
while [ $n -lt "$grace" ] && [ -n "$(marked)" ]; do sleep 0.25; n=$((n + 1)); done
n=0
while [ $n -lt 20 ]; do
  left=$(marked); [ -z "$left" ] && break
  for p in $left; do kill -KILL "$p" 2>/dev/null; done
  sleep 0.25; n=$((n + 1))
done
marked
"""


@dataclass(frozen=True, slots=True)
class Found:
    """The result of examining a host: Java's home and, on the ResourceManager's host, free ports."""

    java: str
    ports: list[int]


def examine(host: Host, rm: Host, release: HadoopRelease | None, progress: Progress) -> Found:
    """Examine a host: a Java that runs the release (if it is known), tools, disk space; free ports on the RM's host."""
    progress(f"looking at {host.name}")
    with Remote(host) as remote:
        java = host.java or "java"
        told = remote.run(f"{shlex.quote(java)} -version").err
        if "version" not in told:
            raise InputError(
                "no Java there",
                where=remote.name,
                hint="install openjdk-17-jre-headless, or name it in the inventory (java: /path/to/java)",
            )
        version = java_version(told)
        if release is not None and version is not None and version < release.java:
            raise InputError(
                f"Hadoop {release.version} needs Java {release.java}, this host has {version}",
                where=remote.name,
                hint=f"install Java {release.java}, or name one in the inventory (java: /path/to/java), "
                "or give an older --hadoop",
            )
        home = remote.check(
            "for tool in setsid sha256sum grep awk; do "
            'command -v $tool >/dev/null || { echo "$tool is missing" >&2; exit 1; }; done; '
            f'j=$(readlink -f "$(command -v {shlex.quote(java)})"); echo "${{j%/bin/java}}"',
            "the host's tools",
            hint="install util-linux and coreutils",
        ).strip()
        folder = shlex.quote(host.folder)
        remote.check(
            f"mkdir -p {folder} && test -w {folder}",
            f"the folder {host.folder}",
            hint="let the user write there, or give another `folder` in the inventory",
        )
        free_kb = remote.check(f"df -Pk {folder} | tail -1", "the disk").split()[3]
        if int(free_kb) < 512 << 10:
            raise InputError(
                f"{int(free_kb) >> 10} MB are free in {host.folder}",
                where=remote.name,
                hint="free 512 MB there, or give another `folder`",
            )
        ports: list[int] = []
        if host is rm:
            taken = _listening(remote)
            ports = [port for port in range(31100, 32700) if port not in taken][: len(RM_PORTS)]
    return Found(home, ports)


def install(host: Host, lib: Path, lib_name: str, progress: Progress) -> None:
    """Install the jars in ``folder/lib-DIGEST``; files with the right checksum are not copied again."""
    with Remote(host) as remote:
        target = posixpath.join(host.folder, lib_name)
        remote.check(f"mkdir -p {shlex.quote(target)} && rm -f {shlex.quote(target)}/.*.part", "the jars' folder")
        sums = remote.run(f"cd {shlex.quote(target)} && sha256sum -- *.jar 2>/dev/null", timeout_s=300.0).out
        there = {line[66:].strip(): line[:64] for line in sums.splitlines() if len(line) > 66}
        wanted = sorted(lib.glob("*.jar"))
        missing = [jar for jar in wanted if there.get(jar.name) != _sha256(jar)]
        if missing:
            size_mb = sum(jar.stat().st_size for jar in missing) / 2**20
            progress(f"{host.name}: copying {len(missing)} jars, {size_mb:.0f} MB")
        remote.put({posixpath.join(target, jar.name): jar for jar in missing})


def scheduler_file(home: str, state: ClusterState) -> str:
    """Return the path of the scheduler's file in the cluster's folder on the RM's host."""
    return posixpath.join(home, "scheduler", SCHEDULERS[state.spec.scheduler].file_name)


def _class_path(role: str, home: str, lib: str) -> str:
    # The Capacity Scheduler finds its file on the class path.
    more = [posixpath.join(home, "scheduler")] if role == "rm" else []
    return ":".join([posixpath.join(home, role), *more, f"{lib}/*"])


def configure(host: Host, rm: Host, state: ClusterState, ports: Mapping[str, int], lib_name: str) -> None:
    """Write a host's configuration files and create the cluster's folders there."""
    home = home_of(host, state)
    with Remote(host) as remote:
        folders = [posixpath.join(home, name) for name in ("rm", "nm", "scheduler", "logs", "tmp", "local", "userlogs")]
        remote.check(f"mkdir -p {quote(folders)}", "the cluster's folders")
        lib = posixpath.join(host.folder, lib_name)
        files: dict[str, bytes | Path] = {}
        for role in host.roles:
            conf = posixpath.join(home, role)
            class_path = _class_path(role, home, lib)
            if role == "rm":
                own = rm_properties(state.spec, home)
            else:
                own = node_properties(state.spec, host.address, home, memory_mb=host.memory_mb, vcores=host.vcores)
            made = site_files(
                state.spec, own, rm=rm.address, ports=ports, home=home, folder=home, class_path=class_path
            )
            files.update({posixpath.join(conf, name): text.encode() for name, text in made.items()})
        if "rm" in host.roles:
            given = state.spec.allocations
            name = SCHEDULERS[state.spec.scheduler].file_name
            source = Path(given) if given else data_path("docker", "scheduler", name)
            files[scheduler_file(home, state)] = source
        remote.put(files)


def launch(host: Host, role: str, state: ClusterState, progress: Progress) -> None:
    """Start a daemon (``rm`` or ``nm``) on a host."""
    home = home_of(host, state)
    java_home = state.remote["java"][host.name]
    conf, lib = posixpath.join(home, role), posixpath.join(host.folder, state.remote["lib"])
    heap = state.spec.rm_heap_mb if role == "rm" else state.spec.nm_heap_mb
    command = [f"{java_home}/bin/java", *java_words(_MAIN[role], conf, _class_path(role, home, lib), heap)]
    environment = [
        f"{processes.MARK}={mark_of(host, state)}",
        f"JAVA_HOME={java_home}",
        f"HADOOP_CONF_DIR={conf}",
    ]
    log = posixpath.join(home, "logs", f"{role}.log")
    # The braces put only the daemon itself in the background; it inherits no end of this channel.
    line = (
        f"cd {shlex.quote(posixpath.join(home, 'tmp'))} && "
        f"{{ setsid env {quote(environment)} {quote(command)} >> {shlex.quote(log)} 2>&1 < /dev/null & }} ; "
        "echo started"
    )
    progress(f"{host.name}: starting {role}")
    with Remote(host) as remote:
        remote.check(line, f"starting {role}")


def clean(host: Host, state: ClusterState, progress: Progress) -> list[str]:
    """Stop the cluster's processes on one host and remove its folder there; return a line for each that is left.

    An error is returned as a line and not raised, so that the other hosts are still cleaned.
    """
    progress(f"{host.name}: ending what runs")
    try:
        with Remote(host) as remote:
            told = remote.run(f"sh -s -- {shlex.quote(mark_of(host, state))} 20", stdin=_STOP, timeout_s=60.0)
            left = [f"{host.name}: process {pid}" for pid in told.out.split()]
            if not left:
                remote.run(f"rm -rf {shlex.quote(home_of(host, state))}")
            return left
    except InputError as error:
        return [f"{host.name}: {error.what}"]


def running(host: Host, role: str, state: ClusterState) -> tuple[str, float] | None:
    """Return (pid, resident MiB) of a daemon; None if it does not run."""
    script = (
        'for p in $(grep -lzx "$1" /proc/[0-9]*/environ 2>/dev/null | cut -d/ -f3); do '
        'grep -qzx "$2" /proc/$p/cmdline 2>/dev/null && '
        "awk -v p=$p '/^VmRSS/ {print p, $2}' /proc/$p/status; done"
    )
    marked = f"{processes.MARK}={mark_of(host, state)}"
    with Remote(host) as remote:
        told = remote.run(f"sh -s -- {quote([marked, _MAIN[role]])}", stdin=script).out.split()
    return (told[0], round(int(told[1]) / 1024, 1)) if len(told) >= 2 else None


def words_of(host: Host, role: str, state: ClusterState) -> str:
    """Return the last lines of a daemon's log, or why it cannot be read."""
    log = posixpath.join(home_of(host, state), "logs", f"{role}.log")
    try:
        with Remote(host) as remote:
            return last_words(remote.run(f"tail -n 200 {shlex.quote(log)}").out.splitlines())
    except InputError as error:
        return error.what


def home_of(host: Host, state: ClusterState) -> str:
    """Return the path of the cluster's folder on a host."""
    return posixpath.join(host.folder, state.mark)


def mark_of(host: Host, state: ClusterState) -> str:
    """Return the mark by which a host's processes of this cluster are recognised."""
    # Each host has its own mark, because several hosts of the inventory may be one machine.
    return f"{state.mark}-{host.name}"


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while piece := file.read(1 << 20):
            digest.update(piece)
    return digest.hexdigest()


def digest_of(lib: Path) -> str:
    """Return a digest of the names and sizes of a set of jars: each set has its own folder on the hosts."""
    names = "\n".join(f"{jar.name} {jar.stat().st_size}" for jar in sorted(lib.glob("*.jar")))
    return hashlib.sha256(names.encode()).hexdigest()[:12]


def _listening(remote: Remote) -> set[int]:
    """Return the ports on which processes of the host listen."""
    told = remote.run("cat /proc/net/tcp /proc/net/tcp6 2>/dev/null").out
    taken = set()
    for line in told.splitlines():
        fields = line.split()
        if len(fields) > 3 and fields[3] == "0A" and ":" in fields[1]:
            taken.add(int(fields[1].rpartition(":")[2], 16))
    return taken


def for_enforce(state: ClusterState, rm: Host, path: str) -> dict[str, Any]:
    """Return the keys of `yarnfair enforce`'s configuration that lead through the tunnels to this RM and to its file.

    The RM reports its own ports, which differ from those of the tunnels, so all forwarded ports must be given.
    """
    ports = {name: f"{LOOPBACK}:{state.ports[name]}" for name in ("admin", "client") if name in state.ports}
    access = rm.access
    host = f"[{access.host}]" if ":" in access.host else access.host
    at = (f"{access.user}@" if access.user else "") + host + (f":{access.port}" if access.port else "")
    key = SCHEDULERS[state.spec.scheduler].file_key
    found: dict[str, Any] = {key: f"sftp://{at}{url_quote(path)}"}
    found["rms"] = [{"rest": state.rest, **ports}]
    if "admin" not in ports:
        found["refresh"] = "poll"
    if "client" not in ports:
        found["read_back"] = False
    return found
