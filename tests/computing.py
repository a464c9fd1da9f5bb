"""How much the tests of a run computed (``-p tests.computing``): the sum, and those that computed most.

A test's duration says little where several run at a time and others use the machine. Counted is the time on a processor
of the test's own process and of the processes that it has waited for, fixtures included: what a fixture of several
tests computes counts as the first one's. Daemons that nobody waits for, containers among them, are not in it.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Generator

import pytest

#: So many tests are named, of those that computed at least so long.
MOST, LEAST_S = 40, 5.0
_NAME = "computed_s"


def computed_s() -> float:
    """Time on a processor of this process so far, and of those that it has waited for (seconds)."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


class Computing:
    """Notes with the report of each phase of a test what was computed since the one before."""

    def __init__(self) -> None:
        self._before_s = computed_s()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        now_s = computed_s()
        report.user_properties.append((_NAME, now_s - self._before_s))
        self._before_s = now_s
        return report

    def pytest_collection_finish(self) -> None:
        self._before_s = computed_s()

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        found: Counter[str] = Counter()
        for reports in terminalreporter.stats.values():
            for report in reports:
                if isinstance(report, pytest.TestReport):
                    found[report.nodeid] += sum(
                        float(str(value)) for name, value in report.user_properties if name == _NAME
                    )
        terminalreporter.section(f"computed {found.total():.0f} s")
        for name, seconds in found.most_common(MOST):
            if seconds >= LEAST_S:
                terminalreporter.write_line(f"{seconds:6.1f} s {name}")


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Computing(), "what-tests-computed")
