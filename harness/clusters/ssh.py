"""A cluster on other hosts, over SSH: installed, started, tunnelled, taken down; or one that is there, adopted.

Each host has one folder of ours: ``lib-DIGEST/`` (jars, kept for the next time), and ``MARK/`` for this cluster (site
files, scheduler folder, logs, local folders), which `down` removes. Daemons carry the cluster's mark in their
environment: that finds all of them, containers included, whatever happened. Hosts need a POSIX shell, Java 17,
sha256sum and setsid; nothing else of ours runs there.
"""

from __future__ import annotations

import hashlib
import json
import posixpath
import shlex
import sys
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from harness.clusters import jars, processes, site
from harness.clusters.inventory import Host, Inventory, restored
from harness.clusters.local import free_ports
from harness.clusters.remote import Remote, quote
from harness.clusters.remote_site import COMMANDS, PORTS, node_properties, rm_properties
from harness.clusters.state import ClusterSpec, ClusterState, StateFolder
from harness.clusters.status import ClusterStatus, Part, last_words, look, wait_for_nodes
from harness.model.data import data_path
from harness.model.errors import InputError, RunTimedOut
from harness.yarn.errors import Unreachable
from harness.yarn.files import MAX_BYTES, AllocationPlace
from harness.yarn.rmclient import RmAddress

_LOOPBACK = "127.0.0.1"
_SCHEDULER_FILE = "fair-scheduler.xml"
#: Ends every process of a mark, first gently; says who is left. Containers are in sessions of their own.
_STOP = """
mark="$1"; grace="$2"
marked() {
  for e in /proc/[0-9]*/environ; do
    p=${e#/proc/}; p=${p%/environ}
    [ "$p" = "$$" ] && continue
    if tr '\\0' '\\n' < "$e" 2>/dev/null | grep -qx "YARNFAIR_CLUSTER=$mark"; then
      s=$(cut -d')' -f2- "/proc/$p/stat" 2>/dev/null | cut -d' ' -f2)
      [ "$s" = Z ] || [ -z "$s" ] || echo "$p"
    fi
  done
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


@dataclass(frozen=True)
class RemotePlace(AllocationPlace):
    """The allocation file on a host of the inventory (through its jump host, with its keys)."""

    host: Host
    path: str

    @property
    def name(self) -> str:  # type: ignore[override]
        return f"{self.host.name}:{self.path}"

    def read(self) -> bytes:
        with Remote(self.host) as remote:
            return remote.read(self.path, MAX_BYTES)

    def _put(self, data: bytes) -> None:
        with Remote(self.host) as remote:
            mode = remote.run(f"stat -c %a {shlex.quote(self.path)}").out.strip()
            remote.write(self.path, data, mode=int(mode, 8) if mode.isdigit() else 0o644)


class SshCluster:
    """The cluster of one state folder and the hosts of an inventory."""

    def __init__(
        self,
        folder: StateFolder,
        inventory: Inventory | None = None,
        *,
        progress: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.folder = folder
        self._given = inventory
        self._progress = progress

    def inventory(self) -> Inventory:
        """The inventory given, or the one that the cluster was brought up with."""
        state = self.folder.load() if self.folder.folder.exists() else None
        if state is not None and state.remote:
            try:
                return restored(state.remote["inventory"])
            except (KeyError, TypeError, ValueError):
                raise InputError("the state names no hosts", where=str(self.folder.folder)) from None
        if self._given is None:
            raise InputError("no inventory", where="--inventory", mend="give the YAML file that names the hosts")
        return self._given

    # --- up ---

    def up(self, spec: ClusterSpec, *, timeout_s: float = 300.0, keep: bool = False) -> ClusterStatus:
        """Installs what is missing, starts the daemons, waits until all nodes are RUNNING.

        Whatever fails, nothing is left running (unless `keep`), and no file is there by half.
        """
        inventory = self._given
        if inventory is None:
            raise InputError("no inventory", where="--inventory", mend="give the YAML file that names the hosts")
        if inventory.rm is None or not inventory.nodes:
            missing = "rm" if inventory.rm is None else "nm"
            raise InputError(f"no host has the role {missing}", where="--inventory", mend="give roles: [rm], [nm]")
        lib = jars.find(progress=self._progress)
        with self.folder.lock():
            before = self.folder.load()
            if before is not None and before.running_s is not None and self._status(before).up:
                raise InputError(
                    "a cluster runs here already",
                    where=str(self.folder.folder),
                    mend="run `yarnfair cluster down` first, or give another --state",
                )
            if before is not None:
                self._progress("cleaning away what an earlier cluster left")
                self._clean(before)
            start = time.monotonic()
            state = ClusterState(
                "ssh",
                uuid.uuid4().hex,
                replace(spec, nodes=len(inventory.nodes)),
                started_at=time.time(),
                remote={"inventory": inventory.document()},
            )
            self.folder.save(state)
            try:
                state = self._start(state, inventory, lib)
                return self._wait(state, inventory, start, timeout_s)
            except BaseException:
                if not keep:
                    left = self._clean(self.folder.load() or state)
                    if not left:
                        self.folder.remove()
                raise

    def _start(self, state: ClusterState, inventory: Inventory, lib: Path) -> ClusterState:
        rm = inventory.rm
        assert rm is not None
        involved = [host for host in inventory.hosts if host.roles]
        lib_name = f"lib-{_digest_of(lib)}"
        with ThreadPoolExecutor(max_workers=min(len(involved), 8)) as pool:
            # Every host is asked before the first is changed.
            found = list(pool.map(lambda host: self._examine(host, rm), involved))
            ports = dict(zip(PORTS, found[involved.index(rm)].ports, strict=True))
            javas = {host.name: one.java for host, one in zip(involved, found, strict=True)}
            list(pool.map(lambda host: self._install(host, lib, lib_name), involved))
            list(pool.map(lambda host: self._configure(host, rm, state, ports, lib_name), involved))
        local = free_ports(name for name in ("http", "client", "admin") if name not in state.spec.ports)
        local = {**local, **state.spec.ports}
        remote = {
            **state.remote,
            "ports": ports,
            "java": javas,
            "lib": lib_name,
            "scheduler_file": posixpath.join(_home(rm, state), "scheduler", _SCHEDULER_FILE),
        }
        state = replace(state, ports=local, remote=remote)
        self.folder.save(state)
        # The RM first: nodes that find nobody wait longer between their attempts than its start takes.
        self._launch(rm, "rm", state)
        for host in inventory.nodes:
            self._launch(host, "nm", state)
        return self._open_tunnel(state, inventory)

    def _open_tunnel(self, state: ClusterState, inventory: Inventory) -> ClusterState:
        rm = inventory.rm
        assert rm is not None
        ours = {name: [rm.address, port] for name, port in state.remote.get("ports", {}).items()}
        targets = {**ours, **state.remote.get("addresses", {})}
        forward = {str(port): targets[name] for name, port in state.ports.items()}
        given = self.folder.path("tunnel.json")
        document = {"inventory": inventory.document(), "host": rm.name, "forward": forward}
        site.write(given, json.dumps(document, indent=1))
        started = processes.start(
            (sys.executable, "-m", "harness.clusters.tunnel", str(given)),
            environment=_own_environment(state.mark),
            folder=self.folder.folder,
            log=self.folder.path("tunnel.log"),
        )
        state = replace(state, processes={"tunnel": started})
        self.folder.save(state)
        return state

    def _examine(self, host: Host, rm: Host) -> _Found:
        """What a host has: Java, tools, room; free ports on the RM's."""
        self._progress(f"looking at {host.name}")
        with Remote(host) as remote:
            java = host.java or "java"
            told = remote.run(f"{shlex.quote(java)} -version").err
            if "version" not in told:
                raise InputError(
                    "no Java there",
                    where=remote.name,
                    mend="install openjdk-17-jre-headless, or name it in the inventory (java: /path/to/java)",
                )
            home = remote.check(
                "for tool in setsid sha256sum tr; do "
                'command -v $tool >/dev/null || { echo "$tool is missing" >&2; exit 1; }; done; '
                f'j=$(readlink -f "$(command -v {shlex.quote(java)})"); echo "${{j%/bin/java}}"',
                "the host's tools",
                mend="install util-linux and coreutils",
            ).strip()
            folder = shlex.quote(host.folder)
            remote.check(
                f"mkdir -p {folder} && test -w {folder}",
                f"the folder {host.folder}",
                mend="let the user write there, or give another `folder` in the inventory",
            )
            free_kb = remote.check(f"df -Pk {folder} | tail -1", "the disk").split()[3]
            if int(free_kb) < 512 << 10:
                raise InputError(
                    f"{int(free_kb) >> 10} MB are free in {host.folder}",
                    where=remote.name,
                    mend="free 512 MB there, or give another `folder`",
                )
            ports: list[int] = []
            if host is rm:
                taken = _listening(remote)
                ports = [port for port in range(31100, 32700) if port not in taken][: len(PORTS)]
        return _Found(home, ports)

    def _install(self, host: Host, lib: Path, lib_name: str) -> None:
        """The jars in ``folder/lib-DIGEST``: what is there with the right checksum is not copied again."""
        with Remote(host) as remote:
            target = posixpath.join(host.folder, lib_name)
            remote.check(f"mkdir -p {shlex.quote(target)} && rm -f {shlex.quote(target)}/.*.part", "the jars' folder")
            sums = remote.run(f"cd {shlex.quote(target)} && sha256sum -- *.jar 2>/dev/null", timeout_s=300.0).out
            there = {line[66:].strip(): line[:64] for line in sums.splitlines() if len(line) > 66}
            wanted = sorted(lib.glob("*.jar"))
            missing = [jar for jar in wanted if there.get(jar.name) != _sha256(jar)]
            if missing:
                size_mb = sum(jar.stat().st_size for jar in missing) / 2**20
                self._progress(f"{host.name}: copying {len(missing)} jars, {size_mb:.0f} MB")
            remote.put_all({posixpath.join(target, jar.name): jar for jar in missing})

    def _configure(self, host: Host, rm: Host, state: ClusterState, ports: Mapping[str, int], lib_name: str) -> None:
        home = _home(host, state)
        with Remote(host) as remote:
            folders = [
                posixpath.join(home, name) for name in ("rm", "nm", "scheduler", "logs", "tmp", "local", "userlogs")
            ]
            remote.check(f"mkdir -p {quote(folders)}", "the cluster's folders")
            lib = posixpath.join(host.folder, lib_name)
            for role in host.roles:
                conf = posixpath.join(home, role)
                class_path = f"{conf}:{lib}/*"
                make = rm_properties if role == "rm" else node_properties
                yarn, core, mapred = make(state.spec, host, rm, home, ports, class_path)
                remote.write(posixpath.join(conf, "core-site.xml"), site.render(core).encode())
                remote.write(
                    posixpath.join(conf, "yarn-site.xml"), site.render({**yarn, **state.spec.properties}).encode()
                )
                remote.write(posixpath.join(conf, "mapred-site.xml"), site.render(mapred).encode())
                remote.write(posixpath.join(conf, "log4j.properties"), site.LOG4J.encode())
            if "rm" in host.roles:
                given = state.spec.allocations
                source = Path(given) if given else data_path("docker", "scheduler", _SCHEDULER_FILE)
                remote.put(source, posixpath.join(home, "scheduler", _SCHEDULER_FILE))

    def _launch(self, host: Host, role: str, state: ClusterState) -> None:
        home = _home(host, state)
        java_home = state.remote["java"][host.name]
        conf, lib = posixpath.join(home, role), posixpath.join(host.folder, state.remote["lib"])
        heap = state.spec.rm_heap_mb if role == "rm" else state.spec.nm_heap_mb
        command = [f"{java_home}/bin/java", *COMMANDS[role](conf, f"{conf}:{lib}/*", heap)]
        environment = [
            f"{processes.MARK}={_mark(host, state)}",
            f"JAVA_HOME={java_home}",
            f"HADOOP_CONF_DIR={conf}",
        ]
        log = posixpath.join(home, "logs", f"{role}.log")
        # In braces: only the daemon itself is in the background, with none of this channel's ends in its hands.
        line = (
            f"cd {shlex.quote(posixpath.join(home, 'tmp'))} && "
            f"{{ setsid env {quote(environment)} {quote(command)} >> {shlex.quote(log)} 2>&1 < /dev/null & }} ; "
            "echo started"
        )
        self._progress(f"{host.name}: starting {role}")
        with Remote(host) as remote:
            remote.check(line, f"starting {role}")

    def _wait(self, state: ClusterState, inventory: Inventory, start: float, timeout_s: float) -> ClusterStatus:
        looked = [time.monotonic()]

        def check() -> None:
            tunnel = state.processes["tunnel"]
            if not tunnel.alive:
                words = self.folder.path("tunnel.log").read_text(encoding="utf-8", errors="replace").splitlines()
                raise InputError(f"the tunnel ended: {last_words(words)}", where=str(self.folder.folder))
            if time.monotonic() - looked[0] < 3.0:
                return
            looked[0] = time.monotonic()
            for host in inventory.hosts:
                for role in host.roles:
                    if self._running(host, role, state) is None:
                        raise InputError(f"{role} ended: {self._last_words(host, role, state)}", where=host.name)

        try:
            info = wait_for_nodes(
                state.rest, len(inventory.nodes), start + timeout_s, check=check, progress=self._progress, every_s=0.5
            )
        except RunTimedOut as error:
            rm, first = inventory.rm, inventory.nodes[0]
            assert rm is not None
            words = f"rm: {self._last_words(rm, 'rm', state)}; nm: {self._last_words(first, 'nm', state)}"
            raise RunTimedOut(f"{error.what} ({words})", where=error.where, mend=error.mend) from None
        state = replace(state, running_s=round(time.monotonic() - start, 2), rm_id=info.id)
        self.folder.save(state)
        return self._status(state)

    # --- down, status ---

    def down(self) -> list[str]:
        """Ends everything on every host and removes the cluster's folders; what could not be ended, in words.

        Of an adopted cluster nothing is ended: that is `release`'s.
        """
        if not self.folder.folder.exists():
            return []
        with self.folder.lock():
            state = self.folder.load()
            if state is not None and state.remote and state.remote.get("adopted"):
                raise InputError(
                    "this cluster was adopted, not brought up",
                    where=str(self.folder.folder),
                    mend="run `yarnfair cluster release`: it puts the allocation file back and stops nothing",
                )
            left = self._clean(state) if state is not None else []
            if not left:
                self.folder.remove()
            return left

    def _clean(self, state: ClusterState) -> list[str]:
        left: list[str] = [str(pid) for pid in processes.stop(list(state.processes.values()), state.mark)]
        try:
            inventory = restored(state.remote["inventory"])
        except (KeyError, TypeError, ValueError):
            return left
        involved = [host for host in inventory.hosts if host.roles]
        with ThreadPoolExecutor(max_workers=max(min(len(involved), 8), 1)) as pool:
            for told in pool.map(lambda host: self._clean_host(host, state), involved):
                left += told
        return left

    def _clean_host(self, host: Host, state: ClusterState) -> list[str]:
        """Ends the mark's processes on one host; a host that does not answer is named, and the others go on."""
        self._progress(f"{host.name}: ending what runs")
        try:
            with Remote(host) as remote:
                told = remote.run(f"sh -s -- {shlex.quote(_mark(host, state))} 20", stdin=_STOP, timeout_s=60.0)
                left = [f"{host.name}: process {pid}" for pid in told.out.split()]
                if not left:
                    remote.run(f"rm -rf {shlex.quote(_home(host, state))}")
                return left
        except InputError as error:
            return [f"{host.name}: {error.what}"]

    def status(self) -> ClusterStatus | None:
        """How it is now; None when there is no cluster in the folder."""
        state = self.folder.load()
        if state is None or not state.ports:
            return None
        return self._status(state)

    def _status(self, state: ClusterState) -> ClusterStatus:
        inventory = restored(state.remote["inventory"])
        address = RmAddress.of(
            state.rest,
            admin=f"{_LOOPBACK}:{state.ports['admin']}" if "admin" in state.ports else None,
            client=f"{_LOOPBACK}:{state.ports['client']}" if "client" in state.ports else None,
        )
        info, nodes, problem = look(state.rest)
        adopted = bool(state.remote.get("adopted"))
        wanted = [(host, role) for host in inventory.hosts for role in host.roles] if not adopted else []

        def part(host: Host, role: str) -> Part:
            try:
                found = self._running(host, role, state)
                words = None if found else self._last_words(host, role, state)
            except InputError as error:
                found, words = None, error.line()
            return Part(
                f"{role} {host.name}",
                runs_as=found[0] if found else None,
                memory_mb=found[1] if found else None,
                node=host.address,
                last_words=words,
            )

        with ThreadPoolExecutor(max_workers=8) as pool:
            parts = list(pool.map(lambda pair: part(*pair), wanted))
        roles = [role for _, role in wanted]
        scheduler_file = str(state.remote.get("scheduler_file", ""))
        rm_part = parts[roles.index("rm")] if "rm" in roles else Part("rm", "adopted", None, "", None)
        return ClusterStatus(
            backend="ssh",
            folder=str(self.folder.folder),
            scheduler_folder=posixpath.dirname(scheduler_file),
            address=address,
            wanted=len(inventory.nodes) if not adopted else 0,
            rm=rm_part,
            parts=[one for one, role in zip(parts, roles, strict=True) if role == "nm"],
            others=[],
            info=info,
            nodes=nodes,
            problem=problem,
            running_s=state.running_s,
            recorded_id=state.rm_id,
        )

    def _running(self, host: Host, role: str, state: ClusterState) -> tuple[str, float] | None:
        """(pid, resident MiB) of a daemon; None when it does not run."""
        daemon = COMMANDS[role]("", "", 1)[-1]
        script = (
            "for e in /proc/[0-9]*/environ; do p=${e#/proc/}; p=${p%/environ}; "
            "tr '\\0' '\\n' < \"$e\" 2>/dev/null | grep -qx \"$1\" && "
            "tr '\\0' '\\n' < /proc/$p/cmdline 2>/dev/null | grep -qx \"$2\" && "
            "awk -v p=$p '/^VmRSS/ {print p, $2}' /proc/$p/status; done"
        )
        marked = f"{processes.MARK}={_mark(host, state)}"
        with Remote(host) as remote:
            told = remote.run(f"sh -s -- {quote([marked, daemon])}", stdin=script).out.split()
        return (told[0], round(int(told[1]) / 1024, 1)) if len(told) >= 2 else None

    def _last_words(self, host: Host, role: str, state: ClusterState) -> str:
        log = posixpath.join(_home(host, state), "logs", f"{role}.log")
        try:
            with Remote(host) as remote:
                return last_words(remote.run(f"tail -n 200 {shlex.quote(log)}").out.splitlines())
        except InputError as error:
            return error.what

    def place(self) -> AllocationPlace:
        """Where the cluster's allocation file lies."""
        state = self.folder.load()
        inventory = self.inventory()
        if state is None or inventory.rm is None or not state.remote.get("scheduler_file"):
            raise InputError("no cluster here", where=str(self.folder.folder))
        return RemotePlace(inventory.rm, str(state.remote["scheduler_file"]))

    # --- a cluster that is there already ---

    def adopt(
        self,
        rest: tuple[str, int],
        allocation_file: str,
        *,
        admin: tuple[str, int] | None = None,
        client: tuple[str, int] | None = None,
    ) -> ClusterStatus:
        """Takes a running cluster as it is: tunnels to its RM, and a backup of its allocation file that `release` puts
        back. Nothing else of it is ever touched. Addresses are as the RM's host sees them."""
        inventory = self._given
        if inventory is None or inventory.rm is None:
            raise InputError("no host has the role rm", where="--inventory", mend="give the RM's host roles: [rm]")
        rm = inventory.rm
        with self.folder.lock():
            if self.folder.load() is not None:
                raise InputError(
                    "a cluster is in this folder already",
                    where=str(self.folder.folder),
                    mend="run `yarnfair cluster release` or `down` first, or give another --state",
                )
            mark = uuid.uuid4().hex
            backup_name = f".{posixpath.basename(allocation_file)}.yarnfair-{mark[:12]}"
            backup = posixpath.join(posixpath.dirname(allocation_file), backup_name)
            try:
                with Remote(rm) as remote:
                    content = remote.read(allocation_file, MAX_BYTES)
                    remote.write(backup, content)
                site.write(self.folder.path("allocations-before.xml"), content)
                given = {"http": rest, "admin": admin, "client": client}
                addresses = {name: list(address) for name, address in given.items() if address is not None}
                local = free_ports(addresses)
                state = ClusterState(
                    "ssh",
                    mark,
                    ClusterSpec(nodes=max(len(inventory.nodes), 1)),
                    ports=local,
                    started_at=time.time(),
                    remote={
                        "inventory": inventory.document(),
                        "adopted": True,
                        "addresses": addresses,
                        "scheduler_file": allocation_file,
                        "backup": backup,
                    },
                )
                self.folder.save(state)
                state = self._open_tunnel(state, inventory)
                info = wait_for_nodes(state.rest, 0, time.monotonic() + 30.0)
                state = replace(state, running_s=0.0, rm_id=info.id)
                self.folder.save(state)
                return self._status(state)
            except BaseException:
                known = self.folder.load()
                if known is not None:
                    processes.stop(list(known.processes.values()), mark)
                with ExitStack() as quiet:
                    quiet.enter_context(_ignoring())
                    with Remote(rm) as remote:
                        remote.run(f"rm -f {shlex.quote(backup)}")
                self.folder.remove()
                raise

    def release(self) -> bool:
        """Puts an adopted cluster's allocation file back as it was and forgets the cluster. Whether it had changed.

        What the file held until now stays in the state's parent folder, named after it.
        """
        with self.folder.lock():
            state = self.folder.load()
            if state is None or not state.remote.get("adopted"):
                raise InputError("no adopted cluster here", where=str(self.folder.folder))
            inventory = self.inventory()
            assert inventory.rm is not None
            path, backup = str(state.remote["scheduler_file"]), str(state.remote["backup"])
            before = self.folder.path("allocations-before.xml").read_bytes()
            place = RemotePlace(inventory.rm, path)
            with Remote(inventory.rm) as remote:
                now = remote.read(path, MAX_BYTES)
                if now != before:
                    place.write(before)
                remote.run(f"rm -f {shlex.quote(backup)}")
            processes.stop(list(state.processes.values()), state.mark)
            self.folder.remove()
            return now != before


@contextmanager
def _ignoring() -> Iterator[None]:
    try:
        yield
    except InputError:
        return


@dataclass(frozen=True, slots=True)
class _Found:
    java: str
    ports: list[int]


def _home(host: Host, state: ClusterState) -> str:
    return posixpath.join(host.folder, state.mark)


def _mark(host: Host, state: ClusterState) -> str:
    # A mark for each host: several of them may be one machine.
    return f"{state.mark}-{host.name}"


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while piece := file.read(1 << 20):
            digest.update(piece)
    return digest.hexdigest()


def _digest_of(lib: Path) -> str:
    """Names a set of jars: another set is another folder on the hosts."""
    names = "\n".join(f"{jar.name} {jar.stat().st_size}" for jar in sorted(lib.glob("*.jar")))
    return hashlib.sha256(names.encode()).hexdigest()[:12]


def _listening(remote: Remote) -> set[int]:
    """Ports on which somebody on the host listens."""
    told = remote.run("cat /proc/net/tcp /proc/net/tcp6 2>/dev/null").out
    taken = set()
    for line in told.splitlines():
        fields = line.split()
        if len(fields) > 3 and fields[3] == "0A" and ":" in fields[1]:
            taken.add(int(fields[1].rpartition(":")[2], 16))
    return taken


def _own_environment(mark: str) -> dict[str, str]:
    import os

    return {**os.environ, processes.MARK: mark}


__all__ = ["RemotePlace", "SshCluster", "Unreachable"]
