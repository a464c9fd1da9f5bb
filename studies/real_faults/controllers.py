"""`yarnfair enforce` as a process that is killed, frozen, stopped and begun again; its log as events."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import yaml

from harness.base.files import write_text
from harness.clusters import processes
from harness.ledger.store import read_documents

#: Alarms that are a moment's: they have no end in the log.
MOMENTS = frozenset({"rm", "foreign", "note"})


class Controller:
    """One controller with its configuration, log (both in a folder) and ledger. ``more``: of its environment."""

    def __init__(
        self,
        name: str,
        folder: Path,
        ledger: Path,
        config: Mapping[str, Any],
        more: Mapping[str, str] | None = None,
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._more = dict(more or {})
        self.name, self.ledger = name, ledger
        self.config, self.log = folder / f"{name}.yaml", folder / f"{name}.log"
        write_text(self.config, yaml.safe_dump({**config, "ledger": str(ledger)}))
        self.process: subprocess.Popen[bytes] | None = None
        self.frozen = self.stopping = False
        #: Whether it has got as far as its first look since it was started.
        self.begun = False
        #: Alarms that last, by kind, as the log tells.
        self.alarms: dict[str, str] = {}
        #: Lines of its log that no log should have.
        self.tracebacks: list[str] = []
        self._read_to = self.log.stat().st_size if self.log.exists() else 0
        self._last = ""

    @property
    def running(self) -> bool:
        """Whether its process is there."""
        return self.process is not None and self.process.poll() is None

    def identity(self) -> str:
        """What its ledger calls it: the lease's owner. Raises YarnfairError where that cannot be read."""
        return str(read_documents(self.ledger, ["identity"])["identity"])

    def start(self) -> None:
        """Begins it, unless it runs."""
        if self.running:
            return
        command = [sys.executable, "-m", "harness", "enforce", "--config", str(self.config), "--log-format", "json"]
        environment = {**os.environ, **self._more}
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment)
        self.frozen = self.begun = False
        self.alarms = {}

    def freeze(self) -> None:
        """Stands still, as a machine does that is suspended."""
        if self.process is not None and self.running:
            os.kill(self.process.pid, signal.SIGSTOP)
            self.frozen = True

    def go_on(self) -> None:
        """Goes on after `freeze`."""
        if self.process is not None and self.running:
            os.kill(self.process.pid, signal.SIGCONT)
        self.frozen = False

    def kill(self) -> None:
        """kill -9."""
        if self.process is not None:
            self.process.kill()
            self.process.wait(timeout=30)
            self.process, self.stopping, self.frozen = None, False, False

    def ask_to_stop(self) -> None:
        """SIGTERM, as systemd does it; see `stop`."""
        if self.process is not None:
            self.go_on()
            self.process.send_signal(signal.SIGTERM)
            self.stopping = True

    def stop(self, timeout_s: float = 90.0) -> int | None:
        """SIGTERM, and waits; its exit code (None: it had to be killed)."""
        if self.process is None:
            return 0
        if not self.stopping:
            self.ask_to_stop()
        try:
            return self.process.wait(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            self.kill()
            return None
        finally:
            self.process, self.stopping = None, False

    def memory_mb(self) -> float | None:
        """Resident memory, MiB."""
        found = processes.of_pid(self.process.pid) if self.process is not None and self.running else []
        return found[0].memory_mb() if found else None

    def events(self) -> list[dict[str, Any]]:
        """What it has logged since the last call. A line that a kill left half is passed over."""
        if not self.log.exists():
            return []
        with self.log.open("rb") as log:
            log.seek(self._read_to)
            data = log.read()
        whole = data[: data.rfind(b"\n") + 1]
        self._read_to += len(whole)
        found = []
        for line in whole.decode(errors="replace").splitlines():
            self._last = line
            if line.startswith("Traceback"):
                self.tracebacks.append(line)
            if "{" not in line:
                continue
            with suppress(ValueError):
                event = json.loads(line[line.find("{") :])
                found.append(event)
                self._alarm(event)
        return found

    def _alarm(self, event: Mapping[str, Any]) -> None:
        kind = event["event"]
        if kind == "begin":
            self.alarms, self.begun = {}, True
        elif event["level"] == "warning" and kind not in MOMENTS:
            self.alarms[kind] = event["text"]
        elif event["text"] == "mended":
            self.alarms.pop(kind, None)

    def died(self) -> str:
        """Its last words where it ended by itself; "" where it did not."""
        if self.process is None or self.stopping or self.process.poll() is None:
            return ""
        self.events()
        words = f"{self.name} ended with {self.process.returncode}: {self._last[-400:]}"
        # A record says nothing of where on a machine it was made.
        words = words.replace(str(self.ledger.parent.parent), "")
        self.process = None
        return words
