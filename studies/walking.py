"""What the walks have in common: commands on a running cluster, and their output as a page shows it."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import yaml

from harness.base.words import folded

#: Number of lines of a log's beginning and of its end that a page shows.
_HEAD, _TAIL = 7, 4
_WIDTH = 80


class Walk:
    """The commands of a walk on one cluster, with a configuration that changes from step to step.

    Parameters
    ----------
    folder
        Where the configuration, the ledger and the log are kept.
    rest
        The address of the ResourceManager's REST.
    file
        The scheduler's file.
    key
        The setting of the controller that names the file.
    """

    def __init__(self, folder: Path, rest: str, file: Path, key: str) -> None:
        self.folder, self.rest, self.file = folder, rest, file
        self.config = folder / "enforce.yaml"
        self.said: dict[str, object] = {
            "policy": "ltrf",
            key: str(file),
            "ledger": str(folder / "ledger.db"),
        }

    def configure(self, **changes: object) -> str:
        """Write the configuration with these changes (None: without that setting), and return it as the page has it."""
        self.said = {key: value for key, value in {**self.said, **changes}.items() if value is not None}
        self.config.write_text(yaml.safe_dump(self.said, sort_keys=False))
        return self.shown(self.config.read_text())

    def shown(self, text: str) -> str:
        """Return a text with the page's names in place of this machine's."""
        text = text.replace(str(self.file), f"/etc/hadoop/conf/{self.file.name}")
        text = text.replace(str(self.folder / "ledger.db"), "/var/lib/yarnfair/ledger.db")
        text = text.replace(str(self.config), "enforce.yaml").replace(self.rest, "http://rm:8088")
        return "\n".join(line.rstrip() for line in text.splitlines()) + "\n"

    def printed(self, text: str) -> str:
        """Return a text as a terminal of 80 columns shows it. Lines of XML, as in a difference, are not broken."""
        said = self.shown(text).splitlines()
        lines = [line if len(line) <= _WIDTH or "<" in line else folded(line, _WIDTH) for line in said]
        return "\n".join(lines)

    def call(self, *words: str) -> str:
        """Return what a command with the configuration prints to both streams. Raises RuntimeError if it fails."""
        return self._printed_by([*words, "--config", str(self.config)])

    def rm(self, *words: str) -> str:
        """Do the same as `call`, for a command that also gets the ResourceManager's address."""
        return self.call(*words, "--rm", self.rest)

    def doctor(self) -> str:
        """Return what `cluster doctor` prints. Its exit code is 1 if it finds a problem."""
        return self._printed_by(
            ["cluster", "doctor", "--rm", self.rest, "--allocations", str(self.file)], may_fail=True
        )

    def _printed_by(self, words: Sequence[str], *, may_fail: bool = False) -> str:
        command = [sys.executable, "-m", "harness", *words]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120)
        if done.returncode and not may_fail:
            raise RuntimeError(f"{' '.join(words)}: {done.returncode}\n{done.stdout}")
        return self.printed(done.stdout)

    def serve(
        self,
        seconds: float,
        *,
        end: int = signal.SIGTERM,
        until: str = "",
        meanwhile: Sequence[str] = (),
        then: Callable[[], None] | None = None,
    ) -> tuple[str, str]:
        """Run the service for some time, and return its log and what a command printed in the meantime.

        Parameters
        ----------
        seconds
            For how long it runs, at most.
        end
            The signal that ends it.
        until
            A text in the log after which the service is ended early.
        meanwhile
            The words of a command that runs shortly before the end (none: no command).
        then
            Called after that command, while the service still runs.
        """
        log = self.folder / "log"
        command = [sys.executable, "-m", "harness", "enforce", "--rm", self.rest, "--config", str(self.config)]
        with log.open("w") as out:
            process = subprocess.Popen(command, stderr=out, stdout=out)
        try:
            last_s = time.monotonic() + seconds
            while time.monotonic() < last_s and not (until and until in log.read_text()):
                time.sleep(0.5)
            if meanwhile or then:
                time.sleep(2.0)  # not while it writes
            other = self.call(*meanwhile) if meanwhile else ""
            if then is not None:
                then()
        finally:
            process.send_signal(end)
            process.wait(timeout=90)
        return self.printed(cut(log.read_text())), other


def cut(log: str) -> str:
    """Return the beginning and the end of a log."""
    lines = log.rstrip("\n").splitlines()
    if len(lines) > _HEAD + _TAIL + 1:
        lines = [*lines[:_HEAD], "...", *lines[-_TAIL:]]
    return "\n".join(lines)
