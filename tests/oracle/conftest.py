"""After a run: how many scripts and assignments exercised each feature of the scheduler."""

from __future__ import annotations

from collections import Counter

import pytest


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    total = 0
    scripts: Counter[str] = Counter()
    assignments: Counter[str] = Counter()
    kinds: Counter[str] = Counter()
    for reports in terminalreporter.stats.values():
        for report in reports:
            for name, value in getattr(report, "user_properties", None) or []:
                if name == "oracle" and getattr(report, "when", "") == "call":
                    total += value["scripts"]
                    scripts.update(value["by"])
                    assignments.update(value["assignments"])
                    kinds.update(value["kinds"])
    if not total:
        return
    write = terminalreporter.write_line
    write(f"decisions compared with Hadoop's class: {total} scripts, {kinds.pop('assignments')} assignments")
    for feature in sorted(scripts):
        write(f"  {feature:<22} {scripts[feature]:>5} scripts {assignments[feature]:>9} assignments")
    for kind in sorted(kinds):
        write(f"  {kind:<34} {kinds[kind]:>9}")
