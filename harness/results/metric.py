"""What is known of one metric: its title, unit, direction, and what counts as a difference that matters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from harness.results.papers import Curves

Better = Literal["lower", "higher", "neither"]


@dataclass(frozen=True, slots=True)
class Metric:
    """One number of ``summary.json``.

    ``key`` is its path there, levels joined by dots (``utilisation.memory``); for a metric of a queue without
    ``queues.NAME``. A ``*`` stands for any name at its place, as the last part for all that follows.
    ``matters`` is the smallest difference worth an alarm, in the metric's unit: below it two runs count as alike
    however steady both are.
    """

    key: str
    title: str
    unit: str
    better: Better
    digits: int
    #: The smallest difference that matters, in the metric's own unit.
    matters: float = 0.0
    #: False: it depends on the machine's clock, and differs between two runs of the same seed.
    deterministic: bool = True
    #: Counts of what was asked for: they never vary by chance, so a difference is a fault (a lost job).
    count: bool = False
    #: It is taken from another run (speed-ups over static), and may lack in a run that stands alone.
    other_run: bool = False
    #: Its value of a whole run on a YARN cluster, from the leaves' curves; None where it has none. A metric without a
    #: rule is computed by whoever writes the summary.
    compute: Callable[[Curves], float | None] | None = None
    #: Whether the table that `yarnfair run` prints has it, too, in the row of this title.
    in_comparison: bool = False

    def name(self, queue: str | None) -> str:
        """As it stands in a table: the title, and whose it is."""
        return self.title if queue is None else f"{self.title}, {queue.removeprefix('root.')}"

    def is_worse(self, value: float, before: float) -> bool | None:
        """Whether a value that differs is worse than one before it; None where neither direction is better."""
        return None if self.better == "neither" else (value > before) == (self.better == "lower")
