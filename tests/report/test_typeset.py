"""Numbers of a text for terminals, as a page writes them: a thin space between thousands, a true minus."""

from __future__ import annotations

import pytest

from harness.report.templating import typeset


@pytest.mark.parametrize(
    ("terminal", "page"),
    [
        ("from -1,234.5 to 12,345,678 s (-84 %)", "from \u22121\u202f234.5 to 12\u202f345\u202f678 s (\u221284 %)"),
        ("2026-11-29, commit 0c969fa3ad", "2026-11-29, commit 0c969fa3ad"),
        ("root.q1,234 and a-1, 1,2 and 1,2345", "root.q1,234 and a-1, 1,2 and 1,2345"),
        ("seed=1,horizon_s=80", "seed=1,horizon_s=80"),
    ],
)
def test_only_numbers_change(terminal: str, page: str) -> None:
    assert typeset(terminal) == page
