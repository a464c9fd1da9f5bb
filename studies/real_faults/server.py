"""An SFTP server (OpenSSH's) over which controllers reach the allocation file, and the home whose keys it knows."""

from __future__ import annotations

import getpass
import os
import shutil
import signal
import subprocess
from contextlib import suppress
from pathlib import Path

from harness.clusters import processes
from harness.clusters.daemons import free_ports

_SSHD = shutil.which("sshd") or "/usr/sbin/sshd"


def installed() -> bool:
    """Whether this machine has one."""
    return os.access(_SSHD, os.X_OK) and shutil.which("ssh-keygen") is not None


def configuration(address: str, port: int, host_key: Path, users_keys: Path, home: Path, pid_file: str = "none") -> str:
    """The configuration of an sshd on this machine that lets in who has one of the users' keys."""
    return (
        f"ListenAddress {address}\nPort {port}\nHostKey {host_key}\nPidFile {pid_file}\nStrictModes no\n"
        f"AuthorizedKeysFile {users_keys}\nPasswordAuthentication no\nUsePAM no\n"
        "KbdInteractiveAuthentication no\nPermitRootLogin yes\nMaxStartups 100\nSubsystem sftp internal-sftp\n"
        # Bash reads ~/.bashrc for a command over SSH, and what a developer has there may wait or fail.
        f"SetEnv HOME={home}\n"
    )


class SftpServer:
    """``home``: the HOME of who is to log in. Killed, frozen and begun again as a whole: with its connections."""

    def __init__(self, folder: Path, mark: str) -> None:
        self.folder, self.mark, self.home = folder, f"{mark}-sftp", folder / "home"
        shutil.rmtree(folder, ignore_errors=True)
        self._ssh = self.home / ".ssh"
        self._ssh.mkdir(parents=True, mode=0o700)
        for key in (folder / "host", self._ssh / "id_ed25519"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
        self.port = free_ports(["sftp"])["sftp"]
        text = configuration("127.0.0.1", self.port, folder / "host", self._ssh / "id_ed25519.pub", self.home)
        (folder / "sshd_config").write_text(text)
        self._process: processes.Process | None = None

    def known_at(self, port: int) -> None:
        """Its key is good at this port of the loopback, a relay's."""
        kind, key = (self.folder / "host.pub").read_text().split()[:2]
        (self._ssh / "known_hosts").write_text(f"[127.0.0.1]:{port} {kind} {key}\n")

    def place(self, port: int, path: Path) -> str:
        """The name of a file's place for who comes by this port."""
        return f"sftp://{getpass.getuser()}@127.0.0.1:{port}{path}"

    def start(self) -> None:
        """Begins it, unless it runs."""
        if self._process is not None and self._process.alive:
            return
        os.makedirs("/run/sshd", exist_ok=True)
        command = [_SSHD, "-D", "-f", str(self.folder / "sshd_config"), "-E", str(self.folder / "log")]
        environment = {**os.environ, processes.MARK: self.mark}
        self._process = processes.start(command, environment=environment, folder=self.folder, log=self.folder / "out")

    def _every(self) -> list[int]:
        """It and the processes of its connections."""
        found, waiting = [], [self._process.pid] if self._process is not None else []
        while waiting:
            pid = waiting.pop()
            found.append(pid)
            with suppress(OSError):
                waiting += [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
        return found

    def signal(self, number: signal.Signals) -> None:
        """To all of it."""
        for pid in self._every():
            with suppress(ProcessLookupError):
                os.kill(pid, number)
        if number == signal.SIGKILL and self._process is not None:
            with suppress(ChildProcessError):
                os.waitpid(self._process.pid, 0)
            self._process = None

    def stop(self) -> None:
        """Ends it with all its connections."""
        self.signal(signal.SIGKILL)
