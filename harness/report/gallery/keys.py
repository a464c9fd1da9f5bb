"""Keys of a record's values, as pages of figures and the gallery write them: ``a/b/0``, ``a/[x;y]/b``."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from typing import Any

SERIES = re.compile(r"\[([^\[\]]*;[^\[\]]*)\]")


def found(values: object, keys: str) -> Any:
    """Return the value at the keys (``a/b/0``) of a record; ``~1`` stands for a ``/`` within a key.

    Raises KeyError with the possible keys.
    """
    at = values
    for part in keys.split("/"):
        key = part.replace("~1", "/")
        if isinstance(at, Mapping) and key in at:
            at = at[key]
        elif isinstance(at, list) and key.isdigit() and int(key) < len(at):
            at = at[int(key)]
        else:
            known = [str(name) for name in at] if isinstance(at, Mapping) else []
            if isinstance(at, list):
                known = [f"0 to {len(at) - 1}"]
            near = difflib.get_close_matches(key, known, 4) or known
            raise KeyError(f"no {key!r} in {keys} (there: {', '.join(near) or 'a value'})")
    return at


def expanded(keys: str) -> list[str]:
    """Expand ``a/[x;y]/b`` to ``a/x/b`` and ``a/y/b``; several lists give all combinations."""
    match = SERIES.search(keys)
    if match is None:
        return [keys]
    return [
        rest
        for one in match.group(1).split(";")
        for rest in expanded(f"{keys[: match.start()]}{one.strip()}{keys[match.end() :]}")
    ]
