"""What the pieces of a run come to: a record's values."""

from __future__ import annotations

from collections import Counter
from typing import Any


def measured(state: dict[str, Any], hours: float) -> dict[str, Any]:
    """Of a run's state."""
    pieces = state["pieces"]
    return {"hours": state["seconds"] / 3600, "of_hours": hours, "pieces": len(pieces), "faults": Counter()}
