"""SSH servers for tests: real sshd processes on addresses of the loopback, each a host with a folder of its own."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from studies.real_faults.server import configuration
from tests.ports import held_port


def keygen(path: Path) -> Path:
    """An ed25519 key without a passphrase."""
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(path)], check=True)
    return path


@dataclass
class Server:
    """One sshd. ``folder``: the host's own place, with ``opt`` for what a cluster installs."""

    folder: Path
    address: str
    port: int
    pid: int = 0

    def start(self) -> None:
        sshd = shutil.which("sshd") or "/usr/sbin/sshd"
        os.makedirs("/run/sshd", exist_ok=True)
        pid_file = self.folder / "pid"
        pid_file.unlink(missing_ok=True)
        subprocess.run([sshd, "-f", str(self.folder / "sshd_config"), "-E", str(self.folder / "log")], check=True)
        end = time.monotonic() + 300
        while not (pid_file.exists() and pid_file.read_text().strip()) and time.monotonic() < end:
            time.sleep(0.02)
        self.pid = int(pid_file.read_text())

    def children(self) -> list[int]:
        """The processes that serve one connection each."""
        path = Path(f"/proc/{self.pid}/task/{self.pid}/children")
        return [int(pid) for pid in path.read_text().split()] if self.pid else []

    def cut(self) -> None:
        """Ends every connection that is open now, as a network that breaks would."""
        for pid in self.children():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    @contextlib.contextmanager
    def frozen(self) -> Iterator[None]:
        """The host is there and says nothing: its connections are open, new ones too, and no answer comes."""
        stopped = [self.pid, *self.children()]
        try:
            for pid in stopped:
                os.kill(pid, signal.SIGSTOP)
            yield
        finally:
            for pid in stopped:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT)

    def stop(self) -> None:
        """Ends the server and its connections: the host is gone."""
        if self.pid:
            self.cut()
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
            self.pid = 0


@dataclass
class Lab:
    """Several hosts, one user's key that all of them accept, and their host keys in ``known_hosts``."""

    folder: Path
    servers: dict[str, Server] = field(default_factory=dict)

    @property
    def key(self) -> Path:
        return self.folder / "user"

    @property
    def known_hosts(self) -> Path:
        return self.folder / "known_hosts"

    def add(self, name: str) -> Server:
        number = len(self.servers) + 1
        folder = self.folder / name
        (folder / "opt").mkdir(parents=True)
        address = f"127.0.1.{number}"
        host_key = keygen(folder / "host")
        server = Server(folder, address, held_port(address))
        shutil.copy(f"{self.key}.pub", folder / "authorized")
        text = configuration(address, server.port, host_key, folder / "authorized", folder, f"{folder}/pid")
        (folder / "sshd_config").write_text(text)
        server.start()
        self.servers[name] = server
        with self.known_hosts.open("a") as out:
            words = (folder / "host.pub").read_text().split()
            out.write(f"[{address}]:{server.port} {words[0]} {words[1]}\n")
        return server

    def inventory(self, roles: dict[str, list[str]]) -> Path:
        """An inventory file of these hosts."""
        path = self.folder / "inventory.yaml"
        user = os.environ.get("USER") or "root"
        lines = [f"defaults: {{user: {user}, key: user, known_hosts: known_hosts, connect_timeout_s: 10}}", "hosts:"]
        for name, has in roles.items():
            server = self.servers[name]
            lines.append(
                f"  {name}: {{host: {server.address}, port: {server.port}, roles: [{', '.join(has)}], "
                f"folder: {server.folder}/opt/yf}}"
            )
        path.write_text("\n".join(lines) + "\n")
        return path

    def stop(self) -> None:
        for server in self.servers.values():
            server.stop()


@contextlib.contextmanager
def lab(folder: Path) -> Iterator[Lab]:
    """A lab without hosts; all that `add` starts is stopped at the end."""
    found = Lab(folder)
    keygen(found.key)
    try:
        yield found
    finally:
        found.stop()


@contextlib.contextmanager
def cutting_proxy(target: tuple[str, int], after_bytes: int) -> Iterator[int]:
    """A port whose first connection to the target breaks once so many bytes went up; later ones go through."""
    listener = socket.create_server(("127.0.0.1", 0))
    cuts = [after_bytes]
    threads: list[threading.Thread] = []
    ends: list[socket.socket] = []

    def pump(source: socket.socket, sink: socket.socket, limit: int | None) -> None:
        passed = 0
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 14):
                passed += len(data)
                if limit is not None and passed > limit:
                    break
                sink.sendall(data)
        for end in (source, sink):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def serve() -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = listener.accept()
                far = socket.create_connection(target)
                ends.extend((near, far))
                limit = cuts.pop() if cuts else None
                for pair in ((near, far, limit), (far, near, None)):
                    thread = threading.Thread(target=pump, args=pair, daemon=True)
                    thread.start()
                    threads.append(thread)

    accepting = threading.Thread(target=serve, daemon=True)
    accepting.start()
    try:
        yield int(listener.getsockname()[1])
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        for end in ends:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        for thread in [accepting, *threads]:
            thread.join(5)
        for end in ends:
            end.close()
