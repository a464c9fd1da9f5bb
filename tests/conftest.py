"""Shared by all tests: what needs Java, a browser, Docker or sshd is left out where these are not, and says so.

The summary counts the tests that ran against a real ResourceManager; fewer than YARNFAIR_LIVE_FLOOR are a failure.
With CI=true nothing may be left out: a missing tool, or any skipped test, is a failure.

Whatever needs something that a bare machine lacks is marked ``parts`` here: `make test-bare` runs the tests without that
mark, `make test-parts` those with it, `make test` both.
"""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
IN_CI = os.environ.get("CI") == "true"
LIVE_FLOOR = int(os.environ.get("YARNFAIR_LIVE_FLOOR") or 0)

#: marker -> the programs that must be on the PATH (each entry: any one of the alternatives)
NEEDS: dict[str, list[tuple[str, ...]]] = {
    "java": [("java",), ("javac",), ("mvn",)],
    "browser": [("chromium", "chromium-browser", "google-chrome")],
    "docker": [("docker",)],
    "sshd": [("sshd", "/usr/sbin/sshd")],
}


# A shell that starts this in the background has interrupts ignored, and all that is started from here would inherit it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def _lacking(marker: str) -> list[str]:
    return [" or ".join(names) for names in NEEDS[marker] if not any(shutil.which(name) for name in names)]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if any(item.get_closest_marker(name) for name in (*NEEDS, "live")):
            item.add_marker("parts")


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
    if reporter is not None and _live(reporter) < LIVE_FLOOR and exitstatus == 0:
        session.exitstatus = 1


def _live(reporter: pytest.TerminalReporter) -> int:
    """How many tests passed against a real ResourceManager."""
    return sum("live" in report.keywords for report in reporter.stats.get("passed", []) if report.when == "call")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    live = _live(terminalreporter)
    if live or LIVE_FLOOR:
        terminalreporter.write_line(f"{live} test(s) passed against a live ResourceManager", red=live < LIVE_FLOOR)
    if live < LIVE_FLOOR:
        terminalreporter.write_line(f"at least {LIVE_FLOOR} have to (YARNFAIR_LIVE_FLOOR)", red=True)
    skipped = terminalreporter.stats.get("skipped", [])
    if IN_CI and skipped:
        terminalreporter.write_line(f"CI=true: {len(skipped)} skipped test(s) count as a failure", red=True)
    elif skipped:
        terminalreporter.write_line(f"left out on this machine: {len(skipped)} test(s), reasons above")


@pytest.fixture(scope="session")
def root() -> Path:
    """The checkout."""
    return ROOT
