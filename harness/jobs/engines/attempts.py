"""Measurements of a program's tasks, from any engine, and the check of its answer.

Each engine converts its own AM histories to `Attempt`s.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

import pandas as pd

from harness.jobs.replay import TaskRecord


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt of a task. Milliseconds since 1970; ``ended_ms`` 0: it did not end. ``node``: its web address."""

    job: str
    kind: str  # map, reduce
    task: str
    attempt: str
    container: str
    node: str
    started_ms: int
    ended_ms: int = 0
    #: Reduces only: when the last map output had arrived, and when merging had ended.
    shuffled_ms: int = 0
    merged_ms: int = 0
    outcome: str = "unknown"  # finished, failed, killed
    error: str = ""

    def record(self, stage: int, task: int, last_ms: int, asked_ms: int | None = None) -> TaskRecord:
        """Return the record of the attempt as a run's tables have it.

        ``last_ms``: the history's last moment, which counts as the end of an attempt that was killed with its job;
        ``asked_ms``: when its AM asked for the container. Other steps before its start are not distinguished.
        """
        started, ended = self.started_ms, self.ended_ms or max(last_ms, self.started_ms)
        return TaskRecord(
            stage,
            task,
            int(self.attempt.rpartition("_")[2]),
            self.container or "-",
            self.node or "-",
            started if asked_ms is None else asked_ms,
            *(started, started, started, started),
            *(ended, ended),
            self.outcome if self.outcome != "unknown" else "killed",
        )


#: Exceptions caused by a line that does not belong to a history, or is damaged.
NO_EVENT = (
    ValueError,
    KeyError,
    TypeError,
    AttributeError,
    IndexError,
    StopIteration,
    OverflowError,
    RecursionError,
)


def millis(value: Any) -> int:
    """Parse a time of a history, milliseconds since 1970. Raises one of `NO_EVENT`."""
    found = int(value)
    # Exactly representable as a float, for tables.
    if not 0 <= found < 2**53:
        raise ValueError(found)
    return found


def attempts_table(attempts: Iterable[Attempt], zero_ms: int) -> pd.DataFrame:
    """Return one row per attempt, with times in seconds since ``zero_ms`` (NaN: it did not get that far)."""
    columns = list(Attempt.__dataclass_fields__)
    table = pd.DataFrame([asdict(attempt) for attempt in attempts], columns=columns)
    for name in [column for column in columns if column.endswith("_ms")]:
        times = pd.to_numeric(table[name]).astype("float64")
        table[name] = ((times - zero_ms) / 1000.0).where(times > 0)
        table = table.rename(columns={name: f"{name.removesuffix('_ms')}_s"})
    return table


def summary(attempts: Iterable[Attempt]) -> dict[str, dict[str, float]]:
    """Return, by kind, the numbers of attempts and of finished ones, and their mean and longest time in seconds."""
    result = {}
    every = list(attempts)
    for kind in dict.fromkeys(("map", "reduce", *(attempt.kind for attempt in every))):
        of_kind = [attempt for attempt in every if attempt.kind == kind]
        done = [(a.ended_ms - a.started_ms) / 1000.0 for a in of_kind if a.outcome == "finished"]
        if of_kind:
            result[kind] = {
                "attempts": len(of_kind),
                "finished": len(done),
                "mean_s": sum(done) / len(done) if done else 0.0,
                "longest_s": max(done, default=0.0),
            }
    return result


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of checking a program's answer.

    ``records``: number of lines (TeraSort: records) in the output; ``wrong``: what is wrong (None: it is correct).
    """

    records: int
    wrong: str | None = None
