"""A cluster of local processes: one ResourceManager and N NodeManagers on the loopback, in one state folder.

The state folder has all of its files: site files, the scheduler's folder, logs, the nodes' local and log folders. The
jars come from harness.clusters.jars; harness.clusters.processes starts and stops the processes.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness.base.errors import InputError, RunTimedOut
from harness.clusters import jars, processes, site
from harness.clusters.base import Cluster, Finding
from harness.clusters.daemon_site import history_properties, node_properties, rm_properties, site_files
from harness.clusters.daemons import (
    HISTORY,
    HISTORY_PORTS,
    LOOPBACK,
    NM,
    RM,
    RM_PORTS,
    SCHEDULERS,
    free_ports,
    java_program,
    java_words,
    port_taken,
)
from harness.clusters.shared import LocalFolder, SharedFolder
from harness.clusters.state import ClusterSpec, ClusterState, not_ended
from harness.clusters.status import ClusterStatus, Part, last_words, wait_for_nodes
from harness.model.data import data_path

_PORT_ATTEMPTS = 3
_HISTORY_HEAP_MB = 192


class _PortLost(InputError):
    """Raised if another process took a port after it was chosen and before it was bound."""


def _java() -> Finding:
    java = shutil.which("java")
    version = jars.java_version(_java_words())
    # The options of the daemons are those of Java 11 and later.
    release = jars.release()
    least = max(11, release.java) if release is not None else 11
    of = f"Hadoop {release.version}" if release is not None else "Hadoop"
    hint = "install a JRE 17 (openjdk-17-jre-headless) and put its java on the PATH"
    if java is None:
        return Finding("java", "problem", "no Java on the PATH", hint)
    if version is None:
        return Finding("java", "problem", f"{java} does not say its version", hint)
    if version < least:
        return Finding("java", "problem", f"Java {version} is too old: {of} needs {least} or later here", hint)
    return Finding("java", "fine", f"Java {version}")


def _check_java(hadoop: str | None) -> None:
    """Raise InputError if this machine's Java cannot load the classes of the release that is started."""
    release = jars.release(hadoop)
    version = jars.java_version(_java_words()) if release is not None else None
    if release is not None and version is not None and version < release.java:
        what = f"Hadoop {release.version} needs Java {release.java}, this machine has {version}"
        raise InputError(what, hint=f"install Java {release.java}, or give an older --hadoop")


def _java_words() -> str:
    """Return the output of the machine's ``java -version``; "none" without Java."""
    try:
        done = subprocess.run(["java", "-version"], capture_output=True, text=True, errors="replace", timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return "none"
    return " ".join((done.stderr + done.stdout).split())


def examine_jars() -> Finding:
    """Check whether Hadoop's jars are available, or can be resolved."""
    given = os.environ.get("HADOOP_LIB")
    if given:
        lacking = jars.missing(Path(given))
        if lacking:
            return Finding(
                "jars", "problem", f"HADOOP_LIB ({given}) lacks {', '.join(lacking)}", "unset it, or mend it"
            )
        return Finding("jars", "fine", f"from HADOOP_LIB: {given}")
    if jars.cached():
        return Finding("jars", "fine", "Hadoop's jars are in the cache")
    if shutil.which("mvn") is None:
        return Finding("jars", "problem", "no Maven on the PATH, and no jars yet", "install maven, or set HADOOP_LIB")
    return Finding("jars", "fine", "Maven will fetch Hadoop's jars at the first start")


class LocalCluster(Cluster):
    """The cluster of one state folder, as processes of this machine."""

    backend = "local"
    sees_files = True
    schedulers = ("fair", "capacity")
    engines = ("mapreduce", "spark", "hive")
    has_history = True

    def up(self, spec: ClusterSpec, *, timeout_s: float = 180.0, keep: bool = False) -> ClusterStatus:
        """Start the cluster and wait until all nodes are RUNNING.

        Leftovers of a crash in the folder are removed first; a running cluster there is an error. Raises RunTimedOut
        after `timeout_s`; everything is then removed, unless `keep` is set for `doctor` to examine it.
        """
        java = java_program()
        _check_java(spec.hadoop)
        lib = jars.find(hadoop=spec.hadoop, progress=self._progress)
        with self.folder.lock():
            self._make_way(spec)
            start = time.monotonic()
            for attempt in range(_PORT_ATTEMPTS):
                state = ClusterState(self.backend, uuid.uuid4().hex, spec, started_at=time.time())
                try:
                    state = self._start(state, java, lib)
                    return self._wait(state, start, timeout_s)
                except _PortLost as error:
                    if left := self._clean(self.folder.load() or state):
                        raise not_ended(left, self.folder) from None
                    if attempt + 1 == _PORT_ATTEMPTS:
                        self.folder.remove()
                        raise
                    self._progress(f"{error.line()}; trying other ports")
                except BaseException:
                    self._undo(state, keep)
                    raise
            raise AssertionError("unreachable")

    @contextlib.contextmanager
    def share(self, name: str, beside: Path) -> Iterator[tuple[SharedFolder, str]]:
        """Provide a folder of this machine, and the Python to run there."""
        yield LocalFolder(beside / name), sys.executable

    @classmethod
    def examine(cls, *, running: bool) -> Iterator[Finding]:
        """Check that Java and Hadoop's jars are available."""
        yield _java()
        yield examine_jars()

    @classmethod
    def software_fingerprint(cls) -> Mapping[str, Any]:
        """Return the version of this machine's Java."""
        return {"java": _java_words()}

    def _runs(self, state: ClusterState) -> bool:
        # If a part is missing, the processes are leftovers of a crash.
        return all(process.alive for process in state.processes.values())

    def _clean(self, state: ClusterState) -> list[str]:
        left = [f"process {pid}" for pid in processes.stop(list(state.processes.values()), state.mark)]
        for item in self.folder.folder.iterdir():
            if item.is_dir() and not item.is_symlink():
                shutil.rmtree(item, ignore_errors=True)
            elif not left and item.name == "cluster.json":
                item.unlink()
        return left

    def _start(self, state: ClusterState, java: str, lib: Path) -> ClusterState:
        spec, folder = state.spec, self.folder
        for name in ("conf", "scheduler", "logs", "tmp", "staging"):
            folder.path(name).mkdir(parents=True, exist_ok=True)
        nodes = [f"nm{number}" for number in range(1, spec.nodes + 1)]
        own_ports = [*RM_PORTS, *(HISTORY_PORTS if spec.history else ()), *nodes]
        ports = {**free_ports(name for name in own_ports if name not in spec.ports), **spec.ports}
        queues = SCHEDULERS[spec.scheduler].file_name
        source = Path(spec.allocations) if spec.allocations else data_path("docker", "scheduler", queues)
        site.copy(source, folder.path("scheduler", queues))
        # The Capacity Scheduler finds its file on the class path.
        class_path = os.pathsep.join(
            [
                str(folder.path("conf")),
                str(folder.path("scheduler")),
                *(str(Path(j).absolute()) for j in spec.jars),
                f"{lib}/*",
            ]
        )
        rm_conf = str(folder.path("conf"))
        commands = {"rm": (java, *java_words(RM, rm_conf, class_path, spec.rm_heap_mb))}
        if spec.history:
            commands["history"] = (java, *java_words(HISTORY, rm_conf, class_path, _HISTORY_HEAP_MB))
        for name in nodes:
            own = folder.path(name)
            own.mkdir(exist_ok=True)
            conf = own / "conf"
            conf.mkdir(exist_ok=True)
            self._write_site(conf, spec, ports, class_path, own)
            node_path = os.pathsep.join([str(conf), f"{lib}/*"])
            commands[name] = (java, *java_words(NM, rm_conf, node_path, spec.nm_heap_mb))
        self._write_site(folder.path("conf"), spec, ports, class_path, folder.folder)
        state = replace(state, ports=ports, commands=commands)
        # The state is saved before each start, so that a crash between two lines leaves a record of what may run.
        folder.save(state)
        for name in commands:
            state = replace(state, processes={**state.processes, name: self._launch(state, name)})
            folder.save(state)
        return state

    def _launch(self, state: ClusterState, name: str) -> processes.Process:
        home = str(Path(os.path.realpath(state.commands[name][0])).parent.parent)
        conf = self.folder.path(name, "conf") if name.startswith("nm") else self.folder.path("conf")
        environment = {
            **{
                key: value for key, value in os.environ.items() if not key.startswith(("HADOOP_", "YARN_", "JAVA_TOOL"))
            },
            "JAVA_HOME": home,
            "HADOOP_CONF_DIR": str(conf),
            processes.MARK: state.mark,
        }
        return processes.start(
            state.commands[name], environment=environment, folder=self.folder.path("tmp"), log=self.log(name)
        )

    def log(self, name: str) -> Path:
        """Return the file to which a part (rm, nm1 ...) writes its log."""
        return self.folder.path("logs", f"{name}.log")

    def _write_site(self, conf: Path, spec: ClusterSpec, ports: dict[str, int], class_path: str, own: Path) -> None:
        """Write the configuration of a daemon whose folder is ``own``.

        A node has a folder of its own; the ResourceManager's is the cluster's.
        """
        home = str(self.folder.folder)
        properties = rm_properties(spec, home)
        if spec.history:
            properties |= history_properties(ports, home)
        if own != self.folder.folder:
            properties |= node_properties(spec, LOOPBACK, str(own), port=ports[own.name])
        files = site_files(
            spec, properties, rm=LOOPBACK, ports=ports, home=home, folder=str(own), class_path=class_path
        )
        for name, text in files.items():
            site.write(conf / name, text)

    def _wait(self, state: ClusterState, start: float, timeout_s: float) -> ClusterStatus:
        def check() -> None:
            for name, process in state.processes.items():
                if not process.alive:
                    words = self._last_words(name)
                    kind = _PortLost if "BindException" in words else InputError
                    raise kind(f"{name} ended: {words}", where=str(self.folder.folder))

        try:
            info = wait_for_nodes(state.rest, state.spec.nodes, start + timeout_s, check=check, progress=self._progress)
            if state.spec.history:
                self._progress("waiting for the JobHistoryServer")
            while state.spec.history and not port_taken(state.ports["history"]):
                check()
                if time.monotonic() > start + timeout_s:
                    where, hint = str(self.folder.folder), "allow more with --timeout"
                    raise RunTimedOut("the JobHistoryServer did not come up in time", where=where, hint=hint)
                time.sleep(0.2)
        except RunTimedOut as error:
            daemons = [name for name in ("rm", "nm1", "history") if name in state.commands]
            words = "; ".join(f"{name}: {self._last_words(name)}" for name in daemons)
            raise RunTimedOut(f"{error.what} ({words})", where=error.where, hint=error.hint) from None
        return self._came_up(state, start, info)

    def _last_words(self, name: str) -> str:
        """Return why a part ended, according to its log."""
        try:
            lines = self.log(name).read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            return "it left no log"
        return last_words(lines)

    def _status(self, state: ClusterState) -> ClusterStatus:
        def part(name: str) -> Part:
            process = state.processes.get(name)
            alive = process is not None and process.alive
            return Part(
                name,
                runs_as=str(process.pid) if process and alive else None,
                memory_mb=process.memory_mb() if process else None,
                # The host may be called 127.0.0.1 or localhost, so only the port is compared.
                node=f":{state.ports.get(name, 0)}",
                last_words=None if alive else self._last_words(name),
            )

        nodes = [part(name) for name in state.commands if name.startswith("nm")]
        return self._told(state, part("rm"), nodes, [part(name) for name in state.commands if name == "history"])
