"""Properties of one metric: its title, unit, direction, and the smallest relevant difference."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    import pandas as pd

    from harness.results.papers import Curves

Better = Literal["lower", "higher", "neither"]


@dataclass(frozen=True, slots=True)
class Metric:
    """One number of ``summary.json``.

    ``key`` is its path there, levels joined by dots (``utilisation.memory``); for a metric of a queue without
    ``queues.NAME``. A ``*`` matches any name at its position, or the whole rest as the last part. ``matters`` is the
    smallest difference that deserves an alarm, in the metric's unit; below it two runs count as equal, however small
    their spread.
    """

    key: str
    title: str
    unit: str
    better: Better
    digits: int
    #: The smallest relevant difference, in the metric's own unit.
    matters: float = 0.0
    #: False: it depends on the machine's clock, and differs between two runs of the same seed.
    deterministic: bool = True
    #: Counts of requested things, which never vary by chance, so a difference is a fault (such as a lost job).
    count: bool = False
    #: It is derived from another run (speed-ups over static), and may be missing in a run without one.
    other_run: bool = False
    #: Computes its value for a whole run on a YARN cluster from the leaves' curves; None: no value. A metric with
    #: neither function is computed by the code that writes the summary.
    compute: Callable[[Curves], float | None] | None = None
    #: Computes its value from a table of jobs (the columns of jobs.parquet); None: no value. It receives all jobs of
    #: the run. If the key begins with ``queues.``, it is called for each queue, with the jobs of that queue. A metric
    #: may have this function or `compute`, but not both.
    of_jobs: Callable[[pd.DataFrame], float | None] | None = None
    #: Whether the table of `yarnfair run` has it, too, in the row of this title.
    in_comparison: bool = False

    def name(self, queue: str | None) -> str:
        """Return its name in a table: the title, and its part."""
        return self.title if queue is None else f"{self.title}, {queue.removeprefix('root.')}"

    def is_worse(self, value: float, before: float) -> bool | None:
        """Return whether a different value is worse than an earlier one; None without a better direction."""
        return None if self.better == "neither" else (value > before) == (self.better == "lower")
