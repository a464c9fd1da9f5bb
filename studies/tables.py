"""The one maker of tables for pages in Markdown."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

#: What stands under ``values`` in a record.
Values = dict[str, Any]


def markdown(head: Iterable[str], rows: Iterable[Iterable[Any]]) -> str:
    """A Markdown table."""
    names = list(head)
    lines = [
        " | ".join(names),
        "|".join("---" for _ in names),
        *(" | ".join(str(cell) for cell in row) for row in rows),
    ]
    return "\n".join(f"| {line} |" if "---" not in line else f"|{line}|" for line in lines)
