"""Connect to an SSH host through another program (ProxyCommand) or other hosts (ProxyJump) of ~/.ssh/config.

As in OpenSSH, a program's standard input and output are the connection.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import socket
import subprocess
import tempfile
from collections.abc import Mapping

from harness.base.errors import InputError, reason

#: Time that a program gets to end after SIGTERM, seconds.
_END_S = 2.0


def proxy_command(said: Mapping[str, object], host: str, port: int, *, timeout_s: float) -> str | None:
    """Return the shell command that connects to `host`:`port`; None for a direct connection.

    `said`: settings of ~/.ssh/config for the host, names in lower case, ProxyCommand with its % replaced. ProxyJump is
    left to OpenSSH's `ssh`, which reads ~/.ssh/config itself for the intermediate hosts; there is no password prompt,
    and their keys have to be in known_hosts.
    """
    # As in OpenSSH, the first of the two settings counts, even if its value is "none".
    first = next((key for key in said if key in ("proxycommand", "proxyjump")), None)
    value = str(said[first] or "none") if first is not None else "none"
    if value.lower() == "none":
        return None
    if first == "proxyjump":
        *before, last = [part.strip() for part in value.split(",")]
        target = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        words = ["ssh", "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=yes"]
        words += ["-o", f"ConnectTimeout={max(round(timeout_s), 1)}", "-W", target]
        words += ["-J", ",".join(before)] if before else []
        words += ["--", last if "://" in last else f"ssh://{last}"]
        return shlex.join(words)
    return value


class Proxy:
    """A running proxy command: `socket` is the connection. `close` ends it with all processes that it started."""

    def __init__(self, command: str) -> None:
        self.command = command
        self._said = tempfile.TemporaryFile()  # noqa: SIM115 - until `close`
        self.socket, theirs = socket.socketpair()
        try:
            with theirs:
                self._process = subprocess.Popen(
                    ["/bin/sh", "-c", command],
                    stdin=theirs.fileno(),
                    stdout=theirs.fileno(),
                    stderr=self._said,
                    start_new_session=True,
                )
        except (OSError, ValueError) as error:
            self.socket.close()
            self._said.close()
            raise InputError(f"the proxy command does not start: {reason(error)}", where=command[:200]) from None

    def words(self) -> str:
        """Return the last line of the command's standard error; "" if it wrote nothing."""
        self._said.seek(max(self._said.seek(0, os.SEEK_END) - 2000, 0))
        lines = self._said.read().decode("utf-8", "replace").strip().splitlines()
        return " ".join(lines[-1].split())[:300] if lines else ""

    def close(self) -> None:
        """Close the connection and end the command's process group."""
        self.socket.close()
        # Ignore the error if the process has already ended.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGTERM)
        try:
            self._process.wait(_END_S)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        self._said.close()

    def __enter__(self) -> Proxy:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
