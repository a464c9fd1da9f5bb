"""Results of runs: metrics, run directories, tables over many runs, comparison, baselines and checks.

``results.load("runs/mine").runs`` and ``results.sql("select ...", "runs/mine")`` are the entry points for Python.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from harness.results.tables import load, sql

__all__ = ["load", "sql"]


def __getattr__(name: str) -> Any:
    # Imported late, because commands import this package and most of them need no pandas.
    if name in __all__:
        from harness.results import tables

        return getattr(tables, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
