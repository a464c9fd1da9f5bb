"""Progress in notebooks: a line below the cell that counts the runs as they end."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable


def progress(total: int) -> Callable[[str], None] | None:
    """Show a line below the running cell, and return a function that updates it.

    Parameters
    ----------
    total
        The number of runs.

    Returns
    -------
    Callable or None
        Called with one line for each run that ends. None outside of a notebook (a script, a terminal).
    """
    shell = sys.modules.get("IPython")
    current = shell.get_ipython() if shell is not None else None
    # IPython in a terminal has no kernel, so a line could not be replaced there.
    if current is None or not hasattr(current, "kernel"):
        return None
    display = importlib.import_module("IPython.display").display

    def shown(text: str) -> dict[str, str]:
        return {"text/plain": text}

    handle = display(shown(f"[0/{total}]"), raw=True, display_id=True)
    ended = 0

    def update(line: str) -> None:
        nonlocal ended
        ended += 1
        handle.update(shown(f"[{ended}/{total}] {line}"), raw=True)

    return update
