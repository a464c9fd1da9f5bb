"""A cluster on other hosts, over SSH: installed, started, tunnelled and removed; or a running one, adopted.

harness.clusters.remote_host works on each host; harness.clusters.tunnel is the process of the tunnels.
"""

from __future__ import annotations

import itertools
import json
import os
import posixpath
import shlex
import sys
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from harness.base.errors import CallError, InputError, RunTimedOut, reason
from harness.clusters import jars, processes, site
from harness.clusters.backends import check_jars
from harness.clusters.base import Cluster, Finding
from harness.clusters.daemons import RM_PORTS, free_ports
from harness.clusters.hosts_folder import HostsFolder
from harness.clusters.inventory import Host, Inventory, restored
from harness.clusters.local import examine_jars
from harness.clusters.remote import Remote
from harness.clusters.remote_host import (
    clean,
    configure,
    digest_of,
    examine,
    for_enforce,
    home_of,
    install,
    launch,
    running,
    scheduler_file,
    words_of,
)
from harness.clusters.shared import SharedFolder
from harness.clusters.state import ClusterSpec, ClusterState
from harness.clusters.status import ClusterStatus, Part, last_words, scheduler_of, wait_for_nodes
from harness.yarn.files import MAX_BYTES, ConfigStore
from harness.yarn.sftp import OverSftp

if TYPE_CHECKING:
    from paramiko import SFTPClient

#: In the state folder: the backup of an adopted cluster's allocation file.
_BEFORE = "allocations-before.xml"
#: Marks a state whose hosts have only been examined: nothing has been changed on any.
_UNTOUCHED = "untouched"


@dataclass(frozen=True)
class RemotePlace(OverSftp):
    """The allocation file on a host of the inventory (through its jump host, with its keys)."""

    host: Host
    path: str

    @property
    def name(self) -> str:  # type: ignore[override]
        """The host's name in the inventory and the file's path."""
        return f"{self.host.name}:{self.path}"

    @contextmanager
    def _opened(self) -> Iterator[SFTPClient]:
        with Remote(self.host) as remote:
            yield remote.sftp()


class SshCluster(Cluster):
    """The cluster of one state folder and the hosts of an inventory."""

    backend = "ssh"
    here = False
    takes_inventory = True
    takes_jars = False
    schedulers = ("fair", "capacity")

    def inventory(self) -> Inventory:
        """Return the given inventory, or the one with which the cluster was brought up."""
        state = self.folder.load() if self.folder.folder.exists() else None
        if state is not None and state.remote:
            try:
                return self._hosts_of(state)
            except (KeyError, TypeError, ValueError):
                hint = "give --inventory, or end what still runs and remove the folder"
                raise InputError("the state names no hosts", where=str(self.folder.folder), hint=hint) from None
        if self._given is None:
            raise InputError("no inventory", where="--inventory", hint="give the YAML file that names the hosts")
        return self._given

    def _hosts_of(self, state: ClusterState) -> Inventory:
        """Return the hosts that the cluster was started on.

        Access settings of the given inventory take precedence, because keys and ports change. Raises KeyError,
        TypeError or ValueError for a state without hosts.
        """
        stored = restored(state.remote["inventory"])
        given = {(host.name, host.access.host): host for host in self._given.hosts} if self._given is not None else {}
        hosts = (
            replace(host, access=now.access, jump=now.jump)
            if (now := given.get((host.name, host.access.host))) is not None
            else host
            for host in stored.hosts
        )
        return Inventory(tuple(hosts))

    # --- up ---

    def up(self, spec: ClusterSpec, *, timeout_s: float = 300.0, keep: bool = False) -> ClusterStatus:
        """Install what is missing, start the daemons, and wait until all nodes are RUNNING.

        After a failure nothing is left running (unless `keep`), and no file is incomplete.
        """
        inventory = self._given
        if spec.jars:
            check_jars(self.backend)
        if inventory is None:
            raise CallError("no inventory", where="--inventory", hint="give the YAML file that names the hosts")
        if inventory.rm is None or not inventory.nodes:
            missing = "rm" if inventory.rm is None else "nm"
            raise InputError(f"no host has the role {missing}", where="--inventory", hint="give roles: [rm], [nm]")
        lib = jars.find(hadoop=spec.hadoop, progress=self._progress)
        with self.folder.lock():
            self._make_way(spec, hint="when the host answers, or end it there")
            start = time.monotonic()
            state = ClusterState(
                self.backend,
                uuid.uuid4().hex,
                replace(spec, nodes=len(inventory.nodes)),
                started_at=time.time(),
                remote={"inventory": inventory.document(), _UNTOUCHED: True},
            )
            self.folder.save(state)
            try:
                state = self._start(state, inventory, lib)
                return self._wait(state, inventory, start, timeout_s)
            except BaseException:
                self._undo(state, keep)
                raise

    def _start(self, state: ClusterState, inventory: Inventory, lib: Path) -> ClusterState:
        rm = inventory.rm
        assert rm is not None
        involved = [host for host in inventory.hosts if host.roles]
        lib_name = f"lib-{digest_of(lib)}"
        with ThreadPoolExecutor(max_workers=min(len(involved), 8)) as pool:
            # All hosts are examined before the first is changed.
            release = jars.release(state.spec.hadoop)
            found = list(pool.map(lambda host: examine(host, rm, release, self._progress), involved))
            ports = dict(zip(RM_PORTS, found[involved.index(rm)].ports, strict=True))
            javas = {host.name: one.java for host, one in zip(involved, found, strict=True)}
            state = replace(state, remote={key: value for key, value in state.remote.items() if key != _UNTOUCHED})
            self.folder.save(state)
            list(pool.map(lambda host: install(host, lib, lib_name, self._progress), involved))
            list(pool.map(lambda host: configure(host, rm, state, ports, lib_name), involved))
        local = free_ports(name for name in ("http", "client", "admin") if name not in state.spec.ports)
        local = {**local, **state.spec.ports}
        remote = {
            **state.remote,
            "ports": ports,
            "java": javas,
            "lib": lib_name,
            "scheduler_file": scheduler_file(home_of(rm, state), state),
        }
        state = replace(state, ports=local, remote=remote)
        self.folder.save(state)
        # The RM starts first: a node that finds no RM waits longer between its attempts than the RM's start takes.
        launch(rm, "rm", state, self._progress)
        for host in inventory.nodes:
            launch(host, "nm", state, self._progress)
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
            environment={**os.environ, processes.MARK: state.mark},
            folder=self.folder.folder,
            log=self.folder.path("tunnel.log"),
        )
        state = replace(state, processes={"tunnel": started})
        self.folder.save(state)
        return state

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
                    if running(host, role, state) is None:
                        raise InputError(f"{role} ended: {words_of(host, role, state)}", where=host.name)

        try:
            info = wait_for_nodes(
                state.rest, len(inventory.nodes), start + timeout_s, check=check, progress=self._progress, every_s=0.5
            )
        except RunTimedOut as error:
            rm, first = inventory.rm, inventory.nodes[0]
            assert rm is not None
            words = f"rm: {words_of(rm, 'rm', state)}; nm: {words_of(first, 'nm', state)}"
            raise RunTimedOut(f"{error.what} ({words})", where=error.where, hint=error.hint) from None
        return self._came_up(state, start, info)

    # --- down, status ---

    def _check_own(self, state: ClusterState | None) -> None:
        """Raise InputError for an adopted cluster, which `down` must not stop; `release` restores it."""
        if state is not None and state.remote and state.remote.get("adopted"):
            raise InputError(
                "this cluster was adopted, not brought up",
                where=str(self.folder.folder),
                hint="run `yarnfair cluster release`: it puts the allocation file back and stops nothing",
            )

    def _clean(self, state: ClusterState) -> list[str]:
        left: list[str] = [str(pid) for pid in processes.stop(list(state.processes.values()), state.mark)]
        if state.remote.get(_UNTOUCHED):
            # Nothing has been started, and the hosts may be the wrong ones, or refuse access.
            return left
        try:
            inventory = self._hosts_of(state)
        except (KeyError, TypeError, ValueError):
            return left
        involved = [host for host in inventory.hosts if host.roles]
        with ThreadPoolExecutor(max_workers=max(min(len(involved), 8), 1)) as pool:
            for told in pool.map(lambda host: clean(host, state, self._progress), involved):
                left += told
        return left

    def _status(self, state: ClusterState) -> ClusterStatus:
        inventory = self._hosts_of(state)
        adopted = bool(state.remote.get("adopted"))
        wanted = [(host, role) for host in inventory.hosts for role in host.roles] if not adopted else []

        def part(host: Host, role: str) -> Part:
            try:
                found = running(host, role, state)
                words = None if found else words_of(host, role, state)
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
        return self._told(
            state,
            rm_part,
            [one for one, role in zip(parts, roles, strict=True) if role == "nm"],
            scheduler_folder=posixpath.dirname(scheduler_file),
            scheduler_file=posixpath.basename(scheduler_file),
            scheduler_host=inventory.rm.name if inventory.rm is not None else None,
            not_forwarded=frozenset({"admin", "client"} - set(state.ports)),
            enforce=for_enforce(state, inventory.rm, scheduler_file) if inventory.rm is not None else None,
            wanted=len(inventory.nodes) if not adopted else 0,
        )

    @contextmanager
    def share(self, name: str, beside: Path) -> Iterator[tuple[SharedFolder, str]]:
        """Provide a folder on every NodeManager's host, and the Python to run there.

        The folder is removed at the end of the context.
        """
        hosts = HostsFolder(self.inventory().nodes, f"/tmp/yarnfair-{name}-{self.known().mark[:12]}")
        try:
            yield hosts, hosts.python()
        finally:
            hosts.remove()

    @classmethod
    def examine(cls, *, running: bool) -> Iterator[Finding]:
        """Check what `up` needs of this machine: the jars to copy."""
        if not running:
            yield examine_jars()

    @classmethod
    def logs(cls, status: ClusterStatus) -> str:
        """Return where the daemons' logs are."""
        return f"look into logs/ in the cluster's folder on its host (the RM's: beside {status.scheduler_folder})"

    def place(self) -> ConfigStore:
        """Return the location of the cluster's allocation file."""
        state, inventory = self.known(), self.inventory()
        if inventory.rm is None or not state.remote.get("scheduler_file"):
            hint = "bring it up again"
            raise InputError("no scheduler's file of this cluster", where=str(self.folder.folder), hint=hint)
        return RemotePlace(inventory.rm, str(state.remote["scheduler_file"]))

    # --- a cluster that already runs ---

    def adopt(
        self,
        rest: tuple[str, int],
        allocation_file: str,
        *,
        admin: tuple[str, int] | None = None,
        client: tuple[str, int] | None = None,
    ) -> ClusterStatus:
        """Adopt a running cluster: open tunnels to its RM and back up its allocation file, which `release` restores.

        Nothing else of the cluster is ever changed. Addresses are as the RM's host sees them.
        """
        inventory = self._given
        if inventory is None or inventory.rm is None:
            raise InputError("no host has the role rm", where="--inventory", hint="give the RM's host roles: [rm]")
        rm = inventory.rm
        with self.folder.lock():
            if self.folder.load() is not None:
                raise InputError(
                    "a cluster is in this folder already",
                    where=str(self.folder.folder),
                    hint="run `yarnfair cluster release` or `down` first, or give another --state",
                )
            mark = uuid.uuid4().hex
            backup_name = f".{posixpath.basename(allocation_file)}.adopted-{mark[:12]}"
            backup = posixpath.join(posixpath.dirname(allocation_file), backup_name)
            try:
                with Remote(rm) as remote:
                    content = remote.read(allocation_file, MAX_BYTES)
                    # The file's owner and group define who may read it; a copy may be read by its own owner only.
                    remote.put({backup: content}, mode=0o600)
                site.write_private(self.folder.path(_BEFORE), content)
                given = {"http": rest, "admin": admin, "client": client}
                addresses = {name: list(address) for name, address in given.items() if address is not None}
                local = free_ports(addresses)
                state = ClusterState(
                    self.backend,
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
                spec = replace(state.spec, scheduler=scheduler_of(state.rest))
                state = replace(state, spec=spec, running_s=0.0, rm_id=info.id)
                self.folder.save(state)
                return self._status(state)
            except BaseException:
                known = self.folder.load()
                if known is not None:
                    processes.stop(list(known.processes.values()), mark)
                with suppress(InputError), Remote(rm) as remote:
                    remote.run(f"rm -f {shlex.quote(backup)}")
                self.folder.remove()
                raise

    def release(self) -> bool:
        """Restore an adopted cluster's allocation file and forget the cluster. Return whether the file had changed.

        If somebody changed the file in the meantime, its present content is first saved beside the state folder, under
        a name made of the state folder's name and the file's name.
        """
        with self.folder.lock():
            state = self.folder.load()
            if state is None or not state.remote.get("adopted"):
                hint = "adopt one, or give its --state; `cluster down` is for one that was brought up"
                raise InputError("no adopted cluster here", where=str(self.folder.folder), hint=hint)
            inventory = self.inventory()
            assert inventory.rm is not None
            path, backup = str(state.remote["scheduler_file"]), str(state.remote["backup"])
            before = self.folder.path(_BEFORE).read_bytes()
            place = RemotePlace(inventory.rm, path)
            with Remote(inventory.rm) as remote:
                now = remote.read(path, MAX_BYTES)
                if now != before:
                    kept = self._keep(now, posixpath.basename(path))
                    place.write(before, before=now)
                    self._progress(f"what the allocation file held until now is {kept}")
                remote.run(f"rm -f {shlex.quote(backup)}")
            processes.stop(list(state.processes.values()), state.mark)
            self.folder.remove()
            return now != before

    def _keep(self, data: bytes, name: str) -> Path:
        """Save a file's content beside the state folder, never over another file.

        Raises InputError if that is impossible.
        """
        base = self.folder.folder
        for number in itertools.count():
            target = base.with_name(f"{base.name}-{name}" + (f".{number}" if number else ""))
            try:
                if not target.exists():
                    site.write_private(target, data)
                elif target.read_bytes() != data:
                    continue
            except OSError as error:
                raise InputError(f"cannot be kept: {reason(error)}", where=str(target), hint="make room") from None
            return target
        raise AssertionError("unreachable")
