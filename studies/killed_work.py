"""What a budget of killed work buys where preemption is on: the loss integral against the work lost.

    python -m studies.killed_work [--seeds N] [--budgets 0,...]

Prints the table of docs/decisions/preemption-budget.md: the loads of `studies.preemption_budget` on 40 containers,
where the masters of the applications fill the queues' shares, so that without kills most of a debt stays unpaid. LTRF
from outside each 5 s for 50 minutes, on the simulator with Hadoop's preemption.
"""

from __future__ import annotations

import argparse
import itertools
import math
import statistics
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial

from studies.preemption_budget import run
from studies.tables import markdown

#: The rule of the controller, of `studies.preemption_budget.WAYS`.
STEERED = "counted on 0.25"
#: MiB·s an hour.
BUDGETS = (0.0, 5e5, 2e6, 1e7, math.inf)
CONTAINERS = 40
#: How much longer tasks are than 20 s.
LONGER = (1.0, 2.0)


def one(way: str, budget_mb_s: float, factor: float, seed: int) -> tuple[float, float, float]:
    """Return the sharing loss (s), the killed containers and the work lost (MiB·s) of one run.

    Parameters
    ----------
    way
        One of `studies.preemption_budget.WAYS`.
    budget_mb_s
        The budget of killed work an hour; infinite: more than this cluster does in a thousand years.
    factor
        How much longer tasks are than 20 s.
    seed
        The load's seed.
    """
    found = run(way, factor, seed, containers=CONTAINERS, budget_mb_s=min(budget_mb_s, 1e15))
    return found["loss"], found["containers"], found["memory_mb_s"]


def _row(factor: float, name: str, found: Sequence[tuple[float, float, float]]) -> tuple[str, ...]:
    loss, containers, work = ([row[at] for row in found] for at in range(3))
    return (
        f"{20 * factor:g} s",
        name,
        f"{statistics.fmean(loss):.0f} ({min(loss):.0f} to {max(loss):.0f})",
        f"{statistics.fmean(containers):.1f}",
        f"{statistics.fmean(work) / 1e6:.2f} ({min(work) / 1e6:.2f} to {max(work) / 1e6:.2f})",
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--budgets", default=",".join(map(str, BUDGETS)))
    asked = parser.parse_args(arguments)
    seeds, rows = range(1, asked.seeds + 1), []
    steered = [
        ("unlimited" if budget == math.inf else f"{budget / 1e6:g}", STEERED, budget)
        for budget in map(float, asked.budgets.split(","))
    ]
    compared = [("left alone", "left", 0.0), *steered, ("`accept: [preemption]`", "freely", 0.0)]
    with ProcessPoolExecutor(2) as pool:
        for factor, (name, way, budget) in itertools.product(LONGER, compared):
            rows.append(_row(factor, name, list(pool.map(partial(one, way, budget, factor), seeds))))
            print(rows[-1], file=sys.stderr, flush=True)
    head = ("tasks", "budget, million MiB·s an hour", "sharing loss", "killed containers", "work lost, million MiB·s")
    print(markdown(head, rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
