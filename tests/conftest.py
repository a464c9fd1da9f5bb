"""Shared by all tests: what needs Java, a browser, Docker or sshd is left out where these are not, and says so.

With CI=true nothing may be left out: a missing tool, or any skipped test, is a failure.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
IN_CI = os.environ.get("CI") == "true"

#: marker -> the programs that must be on the PATH (each entry: any one of the alternatives)
NEEDS: dict[str, list[tuple[str, ...]]] = {
    "java": [("java",), ("javac",), ("mvn",)],
    "browser": [("chromium", "chromium-browser", "google-chrome")],
    "docker": [("docker",)],
    "sshd": [("sshd", "/usr/sbin/sshd")],
}


def _lacking(marker: str) -> list[str]:
    return [" or ".join(names) for names in NEEDS[marker] if not any(shutil.which(name) for name in names)]


def pytest_runtest_setup(item: pytest.Item) -> None:
    for marker in NEEDS:
        if item.get_closest_marker(marker) and (lacking := _lacking(marker)):
            reason = f"needs {', '.join(lacking)} on the PATH"
            if IN_CI:
                pytest.fail(f"{reason}: with CI=true nothing may be left out", pytrace=False)
            pytest.skip(reason)


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if IN_CI and reporter is not None and reporter.stats.get("skipped") and exitstatus == 0:
        session.exitstatus = 1


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    skipped = terminalreporter.stats.get("skipped", [])
    if IN_CI and skipped:
        terminalreporter.write_line(f"CI=true: {len(skipped)} skipped test(s) count as a failure", red=True)
    elif skipped:
        terminalreporter.write_line(f"left out on this machine: {len(skipped)} test(s), reasons above")


@pytest.fixture(scope="session")
def root() -> Path:
    """The checkout."""
    return ROOT
