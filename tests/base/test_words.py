"""Text for people: where lines are broken."""

from __future__ import annotations

import pytest

from harness.base.words import folded, percent_text


def test_a_line_is_broken_between_words_and_never_between_a_number_and_its_unit() -> None:
    text = "  queue a 25 -> 50 %: owed 8.7 GiB·s, in force after 120 ms"
    for columns in range(20, 80):
        lines = folded(text, columns).splitlines()
        assert " ".join(line.strip() for line in lines) == text.strip()
        assert lines[0].startswith("  queue")
        assert all(line.startswith("    ") for line in lines[1:])
        assert max(map(len, lines)) <= columns
        assert not any(line.endswith(("50", "8.7", "120")) for line in lines)
    assert folded("a word-of-many-parts and_a_very_long_one", 8).splitlines()[1].strip() == "word-of-many-parts"


@pytest.mark.parametrize(
    ("part", "digits", "text"), [(-1e-5, 1, "0.0 %"), (1e-5, 1, "0.0 %"), (-0.002, 0, "0 %"), (-0.0006, 1, "-0.1 %")]
)
def test_a_change_that_rounds_to_nothing_has_no_sign(part: float, digits: int, text: str) -> None:
    """The page of a comparison said `-0.0 %` of a metric that had not changed to the digits shown."""
    assert percent_text(part, digits) == text
