"""A series of tests that is taken up where it stopped: what has passed in this state of the sources is left out.

`make test-long` loads this (``-p tests.taken_up``). Each test that has passed, teardown included, is noted at once in a
file of ``.cache/passed/`` that is named by a digest of the sources: whatever changes, everything runs again.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent


def state_of(root: Path) -> str:
    """Digest of the Python and of every file that git knows or would take."""
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listed, cwd=root, capture_output=True, text=True, check=True).stdout.split("\0")
    digest = hashlib.blake2b(sys.version.encode(), digest_size=8)
    for name in sorted(set(names)):
        if (root / name).is_file():
            digest.update(name.encode() + b"\0" + hashlib.blake2b((root / name).read_bytes()).digest())
    return digest.hexdigest()


def plain(nodeid: str) -> str:
    """Without the name of its group, which xdist puts behind."""
    return nodeid.rpartition("@")[0] if nodeid.rfind("@") > nodeid.rfind("]") else nodeid


class TakenUp:
    """Leaves out what has passed. Where a file is given, notes in it what passes."""

    def __init__(self, passed: list[str], file: Path | None) -> None:
        self.passed, self.file = passed, file
        self._called: set[str] = set()

    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        passed = set(self.passed)
        if known := [item for item in items if plain(item.nodeid) in passed]:
            config.hook.pytest_deselected(items=known)
            items[:] = [item for item in items if plain(item.nodeid) not in passed]

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """All workers of xdist leave the same out, also one that is started late."""
        node.workerinput["passed"] = self.passed

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        name = plain(report.nodeid)
        if report.when == "call" and report.passed:
            self._called.add(name)
        elif report.when == "teardown" and report.passed and name in self._called and self.file is not None:
            with self.file.open("a") as file:
                file.write(f"{name}\n")

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self.passed:
            terminalreporter.write_line(f"{len(self.passed)} test(s) passed earlier and were left out: {self.file}")

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        if self.passed and exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED:
            session.exitstatus = pytest.ExitCode.OK


def pytest_configure(config: pytest.Config) -> None:
    if (given := getattr(config, "workerinput", None)) is not None:
        made = TakenUp(given["passed"], None)
    else:
        file = ROOT / ".cache" / "passed" / f"{state_of(ROOT)}.txt"
        file.parent.mkdir(parents=True, exist_ok=True)
        made = TakenUp(file.read_text().splitlines() if file.exists() else [], file)
    config.pluginmanager.register(made, "taken-up")
