"""What a budget of killed work buys where preemption is on: the loss integral against the work lost.

    python -m studies.killed_work [--seeds N] [--budgets 0,...]

Prints the table of docs/decisions/preemption-budget.md: the loads of `studies.preemption_budget` on 40 containers,
where the masters of the applications fill the queues' shares, so that without kills most of a debt stays unpaid. LTRF
from outside each 5 s for 50 minutes, on the simulator with Hadoop's preemption.
"""

from __future__ import annotations

import argparse
import math
import statistics
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor

from studies.preemption_budget import run
from studies.tables import markdown

#: The rule of the controller, of `studies.preemption_budget.WAYS`.
STEERED = "counted on 0.25"
#: MiB·s an hour.
BUDGETS = (0.0, 5e5, 2e6, 1e7, math.inf)
CONTAINERS = 40
#: How much longer tasks are than 20 s.
LONGER = (1.0, 2.0)


def one(budget_mb_s: float | None, factor: float, seed: int) -> tuple[float, float, float]:
    """Return the sharing loss (s), the killed containers and the work lost (MiB·s) of one run.

    ``budget_mb_s`` None: nobody steers; infinite: as much as the whole cluster would do in a thousand years.
    """
    if budget_mb_s is None:
        found = run("left", factor, seed, containers=CONTAINERS)
    else:
        found = run(STEERED, factor, seed, containers=CONTAINERS, budget_mb_s=min(budget_mb_s, 1e15))
    return found["loss"], found["containers"], found["memory_mb_s"]


def accepted(factor: float, seed: int) -> tuple[float, float, float]:
    """Return the same with `accept: [preemption]`: the shares are the policy's."""
    found = run("freely", factor, seed, containers=CONTAINERS)
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
    budgets: list[float | None] = [None, *map(float, asked.budgets.split(","))]
    with ProcessPoolExecutor(2) as pool:
        for factor in LONGER:
            for budget in budgets:
                name = "left alone" if budget is None else "unlimited" if budget == math.inf else f"{budget / 1e6:g}"
                found = list(pool.map(one, [budget] * len(seeds), [factor] * len(seeds), seeds))
                rows.append(_row(factor, name, found))
                print(rows[-1], file=sys.stderr, flush=True)
            found = list(pool.map(accepted, [factor] * len(seeds), seeds))
            rows.append(_row(factor, "`accept: [preemption]`", found))
            print(rows[-1], file=sys.stderr, flush=True)
    head = ("tasks", "budget, million MiB·s an hour", "sharing loss", "killed containers", "work lost, million MiB·s")
    print(markdown(head, rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
