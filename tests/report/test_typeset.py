"""Numbers of a text for terminals, as a page writes them: the same separators, a true minus."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.report.comparing import versus_of
from harness.report.templating import typeset
from harness.results.compare import compare
from harness.results.runs import Contest, Group, RunRecord


@pytest.mark.parametrize(
    ("terminal", "page"),
    [
        ("from -1,234.5 to 12,345,678 s (-84 %)", "from \u22121,234.5 to 12,345,678 s (\u221284 %)"),
        ("2026-11-29, commit 0c969fa3ad", "2026-11-29, commit 0c969fa3ad"),
        ("root.q1,234 and a-1, 1,2 and 1,2345", "root.q1,234 and a-1, 1,2 and 1,2345"),
        ("seed=1,horizon_s=80", "seed=1,horizon_s=80"),
    ],
)
def test_only_numbers_change(terminal: str, page: str) -> None:
    assert typeset(terminal) == page


def test_commands_and_names_stay_as_they_are() -> None:
    """Neither is a number of ours, though its digits may look like one."""
    text = "vary -10,100,200 is -1,234 s from 1; see `yarnfair run --seeds 1,200,300 -5`"
    page = text.replace("-1,234", "\u22121,234")
    assert typeset(text, ["vary -10,100,200", "1", ""]) == page


def test_a_comparison_has_the_labels_of_its_runs() -> None:
    groups = [
        Group(
            label,
            [RunRecord(Path(label), {"seed": seed}, {"makespan_s": (9 + at) * (1000.0 + seed)}) for seed in range(8)],
        )
        for at, label in enumerate(("seeds 1,200,300", "vary -10,100,200"))
    ]
    (versus,) = versus_of([compare(Contest("", groups))])
    assert "seeds 1,200,300" in versus.words
    assert "vary -10,100,200" in versus.words
    assert versus.parts[0].rows[0].reference.startswith("9,03")
