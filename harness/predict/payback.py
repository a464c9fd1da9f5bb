"""How much of the recorded loans long-term fairness would have paid back, by simulating the recorded load.

The recorded load is simulated under the cluster's own scheduler as it is, and under long-term fairness from outside
(``ltrf@outside``). Both runs give a statement like the recording's, from the simulated applications' running times and
the usage that the simulated ResourceManager counted.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.base.errors import InputError
from harness.base.words import folded
from harness.experiments.spec import DEFAULT_SCHEDULER
from harness.predict.replay import write_experiment
from harness.predict.simulated_run import simulated_jobs
from harness.predict.usage import By, gib_hours, gib_hours_digits, owed_at_end, paid_back_in_all, statement
from harness.traces.recorded import JobLine, Trace

#: Long-term fairness as a cluster's controller enforces it.
LONG_TERM = "ltrf@outside"


#: Maximum number of decimals, in GiB·h, for what is paid back where much more is owed.
MOST_DIGITS = 3


@dataclass(frozen=True, slots=True)
class Payback:
    """What was paid back to each queue, and what would have been paid back; MB-seconds.

    Attributes
    ----------
    owed : mapping of str to float
        The debt that each queue is owed at the end of the recording; below 0: it owes.
    recorded : mapping of str to float
        What was paid back to it in the recording.
    as_it_is : mapping of str to float
        The same in a simulation of this load under the cluster's own scheduler.
    long_term : mapping of str to float
        The same in a simulation under long-term fairness.
    """

    owed: Mapping[str, float]
    recorded: Mapping[str, float]
    as_it_is: Mapping[str, float]
    long_term: Mapping[str, float]

    def more(self, queue: str) -> float:
        """Return how much more long-term fairness would have paid back, by the two simulations."""
        return self.long_term[queue] - self.as_it_is[queue]

    def figures(self, queue: str) -> tuple[float, ...]:
        """Return the columns of the table, in order."""
        return (
            self.owed[queue],
            self.recorded[queue],
            self.as_it_is[queue],
            self.long_term[queue],
            self.more(queue),
        )

    def document(self) -> dict[str, Any]:
        """Return the document for ``--json``, in whole MB-seconds."""
        names = ("owed", "paid_back", "paid_back_simulated", "paid_back_under_long_term_fairness", "more")
        return {
            queue: {f"{name}_mb_s": round(value) for name, value in zip(names, self.figures(queue), strict=True)}
            for queue in self.owed
        }

    @property
    def digits(self) -> int:
        """The number of decimals of its amounts in GiB·h.

        What is paid back may be a small part of what is owed, so that its own size decides, up to three decimals.
        """
        whole = gib_hours_digits(value for queue in self.owed for value in self.figures(queue))
        paid = gib_hours_digits(value for queue in self.owed for value in self.figures(queue)[1:])
        return max(whole, min(paid, MOST_DIGITS))

    def lines(self) -> list[str]:
        """Return a table for a person, in GiB·h."""
        heads = ("owed", "paid back", "as it is", "long-term", "more")
        lines = [
            "paid back in all: recorded, simulated as it is, and with long-term fairness (GiB·h)",
            f"  {'queue':<28}{''.join(f'{head:>11}' for head in heads)}",
        ]
        digits = self.digits
        for queue in self.owed:
            cells = "".join(f"{gib_hours(value, digits):>11}" for value in self.figures(queue))
            lines.append(f"  {queue.removeprefix('root.'):<28}{cells}")
        return [*lines, *folded(self.meaning(), 80, hang=0).split("\n")]

    def meaning(self) -> str:
        """Return the sentences that close the table: the sums of its columns, and what counts as paid back."""
        as_it_is, long_term = (math.fsum(one.values()) for one in (self.as_it_is, self.long_term))
        owed = math.fsum(value for value in self.owed.values() if value > 0)
        amounts = [f"{gib_hours(value, self.digits)} GiB·h" for value in (long_term, as_it_is, owed)]
        return (
            f"Long-term fairness pays back {amounts[0]} in all, the scheduler as it is {amounts[1]}; {amounts[2]} are "
            "still owed when the recording ends. A queue is paid back while it holds more than its due and others owe "
            "it. One that never wants more than its due has 0, however much it is owed."
        )


def payback(trace: Trace, folder: Path, by: By = "month", *, processes: int | None = None) -> Payback:
    """Play a trace under its own scheduler and under long-term fairness, and compare what is paid back.

    Parameters
    ----------
    trace : Trace
        The recording.
    folder : Path
        The folder for the runs.
    by : {"day", "week", "month"}
        The statement's period; the sums are the same for each.
    processes : int, optional
        Number of simulations at once; by default one per core.

    Raises
    ------
    InputError
        The trace cannot be simulated, or an application that ended in the recording does not end.
    """
    from harness.experiments.resolve import load_experiment, variants_of
    from harness.experiments.run import run_experiment

    kind = trace.header.scheduler or DEFAULT_SCHEDULER
    loaded = load_experiment(str(write_experiment(trace, folder, schedulers=(kind,))))
    ended = run_experiment(loaded, variants_of(loaded), folder, processes=processes)
    sums: dict[str, Mapping[str, float]] = {}
    for one in ended:
        if one.exit_code:
            raise InputError(
                f"the simulation under {one.name} did not end: {one.why or 'time limit'}",
                where=str(trace.path),
                hint="see `yarnfair replay`",
            )
        sums[one.name] = paid_back_in_all(statement(trace.header, _as_played(trace.jobs, one.path), by))
    long_term = next((name for name in sums if name.startswith(LONG_TERM)), None)
    as_it_is = next((name for name in sums if not name.startswith(LONG_TERM)), None)
    if long_term is None or as_it_is is None:
        raise InputError("the replay has no long-term fairness beside the scheduler", where=str(trace.path))
    recorded = statement(trace.header, trace.jobs, by)
    return Payback(owed_at_end(recorded), paid_back_in_all(recorded), sums[as_it_is], sums[long_term])


def _as_played(jobs: tuple[JobLine, ...], run: Path) -> list[JobLine]:
    """Return the applications with the times of a simulated run, and what their containers held in it."""
    played, found = simulated_jobs(run), []
    for job in jobs:
        ran = played.get(job.job)
        if ran is None or math.isnan(ran.submitted_s) or math.isnan(ran.started_s):
            continue  # it never held a container
        found.append(
            job.model_copy(
                update={
                    "submit_s": ran.submitted_s,
                    "started_s": ran.started_s,
                    "finished_s": None if math.isnan(ran.finished_s) else ran.finished_s,
                    "counted_mb_s": ran.memory_mb_s,
                    "counted_until_s": None,
                }
            )
        )
    return found
