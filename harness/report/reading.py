"""Reads files of a run directory as plain values; a damaged file raises an `InputError` that names it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from harness.base.errors import InputError

Floats = NDArray[np.float64]


def parquet_table(path: Path) -> pd.DataFrame | None:
    """Return a table, or None if the file does not exist (yet)."""
    if not path.exists():
        return None
    try:
        return pd.read_parquet(path)
    except Exception as error:  # pyarrow raises OSError, ArrowInvalid and more on damaged files
        raise InputError(
            f"not a readable parquet file ({type(error).__name__}: {str(error).splitlines()[0][:120]})",
            where=str(path),
            hint="run it again",
        ) from None


def needed_table(path: Path) -> pd.DataFrame:
    """Return a table of a completed run. Raises InputError if it is missing or damaged."""
    table = parquet_table(path)
    if table is None:
        raise InputError("no such file", where=str(path), hint="give the directory of a run that ended")
    return table


def column(table: pd.DataFrame, name: str, path: Path) -> Floats:
    """Return a column as floats, NaN for missing values. Raises InputError if it does not hold numbers."""
    try:
        return table[name].to_numpy(dtype=np.float64, na_value=math.nan)
    except (TypeError, ValueError):
        raise InputError(f"column {name} does not hold numbers", where=str(path), hint="run it again") from None


def text_of(info: Mapping[str, object], *names: str, default: str = "") -> str:
    """Return the first of these keys whose value is a text, else the default."""
    for name in names:
        if isinstance(info.get(name), str):
            return str(info[name])
    return default


def task_lengths(jobs: pd.DataFrame | None) -> dict[str, float]:
    """Return, by leaf (short name), the mean duration of its tasks in seconds, if known."""
    if jobs is None or not {"queue", "tasks", "mean_task_s"} <= set(jobs.columns):
        return {}
    known = jobs[jobs["mean_task_s"].notna()]
    queues = known["queue"].astype(str)
    tasks = known["tasks"].groupby(queues, sort=False).sum()
    total_s = (known["tasks"] * known["mean_task_s"]).groupby(queues, sort=False).sum()
    return {
        str(queue).removeprefix("root."): float(total) / float(count)
        for queue, count, total in zip(tasks.index, tasks, total_s, strict=True)
        if count > 0
    }
