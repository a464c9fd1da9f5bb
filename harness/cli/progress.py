"""Progress of runs and campaigns on standard error: bars on a terminal, elsewhere a line when something ends."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import click

from harness.base.words import seconds

if TYPE_CHECKING:
    from harness.experiments.campaign.executors import ExecutorEvent
    from harness.experiments.campaign.spec import Cell
    from harness.experiments.kind import Ended, KindVariant, Step

#: The maximum number of bars: more do not fit a terminal.
MOST_BARS = 40


class _Bars:
    """Progress bars by key if standard error is a terminal; otherwise there are no bars."""

    def __init__(self, width: int) -> None:
        self.bars: Any = None
        self.tasks: dict[str, Any] = {}
        if sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TextColumn

            self.bars = Progress(
                TextColumn(f"{{task.description:<{width}.{width}}}"),
                BarColumn(bar_width=20),
                TextColumn("{task.fields[at]}"),
                console=Console(stderr=True),
            )

    def __enter__(self) -> Self:
        if self.bars is not None:
            self.bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.bars is not None:
            self.bars.stop()

    def add(self, key: str, name: str, at: str) -> None:
        if self.bars is not None:
            self.tasks[key] = self.bars.add_task(name, total=None, at=at)

    def update(self, key: str, **what: Any) -> None:
        if key in self.tasks:
            self.bars.update(self.tasks[key], **what)

    def at(self, key: str, step: Step) -> None:
        jobs = f"{step.jobs_done}/{step.jobs} jobs" if step.jobs is not None else f"{step.jobs_done} jobs"
        self.update(key, completed=step.jobs_done, total=step.jobs, at=f"{jobs}, {step.time_s:,.0f} s")

    def say(self, text: str) -> None:
        if self.bars is not None:
            self.bars.console.print(text)
        else:
            click.echo(text, err=True)


class RunProgress(_Bars):
    """Progress of the runs of one experiment."""

    def __init__(self, variants: Sequence[KindVariant], what: str) -> None:
        super().__init__(24)
        self.what, self.ended, self.count = what, 0, len(variants)
        for variant in variants[:MOST_BARS]:
            self.add(variant.name, variant.name, "waits")

    def step(self, variant: KindVariant, at: Step) -> None:
        """Show the progress of a run."""
        self.at(variant.name, at)

    def end(self, run: Ended) -> None:
        """Show that a run has ended."""
        self.ended += 1
        makespan, wall = run.summary.get("makespan_s"), run.summary.get("wall_s", 0.0)
        took = f"{makespan:,.0f} s" if makespan is not None else f"{wall:.1f} s"
        self.update(run.name, total=1, completed=1, at=took)
        if self.bars is None and (self.count <= MOST_BARS or self.ended in (1, self.count) or self.ended % 10 == 0):
            text = f"{took} {self.what} in {wall:.1f} s" if makespan is not None else took
            click.echo(
                f"[{self.ended}/{self.count}] {run.name}: {text}" + (f" ({run.why})" if run.why else ""), err=True
            )


class CampaignProgress(_Bars):
    """Progress of the cells of a campaign: a bar for each running cell, and one for the whole campaign."""

    def __init__(self, count: int, kept: int) -> None:
        super().__init__(40)
        self.count, self.ended, self.kept, self.failed = count, kept, kept, 0
        self.began = time.monotonic()
        self.add("", "campaign", f"{kept}/{count}")
        self.update("", total=count, completed=kept)

    def begin(self, cell: Cell, attempt: int) -> None:
        """Show that an attempt at a cell begins."""
        self.add(cell.id, cell.name + (f" (attempt {attempt})" if attempt > 1 else ""), "starts")

    def says(self, cell: Cell, text: str) -> None:
        """Show a message about a cell."""
        if self.bars is None:
            click.echo(f"{cell.name}: {text}", err=True)
        self.update(cell.id, at=text[:60])

    def step(self, cell: Cell, step: Step) -> None:
        """Show the progress of a cell."""
        self.at(cell.id, step)

    def end(self, cell: Cell, told: ExecutorEvent, state: str) -> None:
        """Show that a cell has ended, or that it will be retried."""
        if cell.id in self.tasks:
            self.bars.remove_task(self.tasks.pop(cell.id))
        if state == "waiting":
            click.echo(f"tried again: {cell.name}: {told.why}", err=True)
            return
        self.ended += 1
        self.failed += state == "failed"
        took = f" in {told.wall_s:.1f} s" if told.wall_s is not None else ""
        why = f": {told.why}" if state == "failed" and told.why else ""
        left = ""
        if self.ended < self.count:
            rest = (time.monotonic() - self.began) / (self.ended - self.kept) * (self.count - self.ended)
            left = f"; about {seconds(rest)} left"
        if self.bars is None:
            click.echo(f"[{self.ended}/{self.count}] {cell.name}: {state}{took}{why}{left}", err=True)
            return
        self.update("", completed=self.ended, at=f"{self.ended}/{self.count}, {self.failed} failed{left}")
        if state == "failed":
            click.echo(f"failed: {cell.name}{why}", err=True)
