"""How long QKnober's decisions take, by users and resources: docs/figures-qknober.md.

    python -m studies.qknober_times -o docs/records/qknober-decisions.json

CPU time of one process (milliseconds, the least of some rounds), so that other work on the machine tells little.
``yarn``: both stages in floats for two resources, what a decision in YARN needs. ``program``: the linear program of
(15) to (17) in exact fractions, any number of resources. ``choice``: Algorithm 1 for one server, in the simulator.
"""

from __future__ import annotations

import argparse
import platform
import random
import sys
import time
from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from harness.policies.vectors import fair_level
from harness.systems.qknober.google import synthetic
from harness.systems.qknober.packing import pack
from harness.systems.qknober.simulator import simulate
from harness.systems.qknober.two_resources import two_stages
from studies.result import write

USERS = (4, 100, 1_000, 10_000)
RESOURCES = (2, 3, 5)
KNOB = 0.4


def least_ms(what: Callable[[], object], rounds: int) -> float:
    """The least CPU time of some rounds, in milliseconds."""
    found = []
    for _ in range(rounds):
        began = time.process_time()
        what()
        found.append((time.process_time() - began) * 1000)
    return min(found)


def directions(users: int, resources: int, seed: int = 1) -> list[list[Fraction]]:
    """Demands of so many users in hundredths, the larger part 1."""
    rng = random.Random(f"{seed} {users} {resources}")
    found = []
    for _ in range(users):
        need = [Fraction(rng.randint(5, 100), 100) for _ in range(resources)]
        found.append([part / max(need) for part in need])
    return found


def measure(users: Sequence[int] = USERS, resources: Sequence[int] = RESOURCES) -> dict[str, Any]:
    """The figures, by number of users and of resources."""
    found: dict[str, Any] = {"yarn": {}, "program": {}, "choice": {}}
    for n in users:
        plain = [(float(x), float(y)) for x, y in directions(n, 2)]
        weights = [1.0 / n] * n
        few = max(3, 2_000 // n)
        found["yarn"][str(n)] = round(least_ms(lambda p=plain, w=weights: two_stages(p, w, KNOB), few), 4)  # type: ignore[misc]
        for m in resources:
            own = directions(n, m)
            parts = [Fraction(1, n)] * n
            level = Fraction(2, 5) * fair_level([tuple(b) for b in own], parts, [Fraction(1)] * m)
            left = [1 - level * sum((w * b[k] for b, w in zip(own, parts, strict=True)), Fraction(0)) for k in range(m)]
            columns = [[w * part for part in b] for b, w in zip(own, parts, strict=True)]
            took = least_ms(lambda c=columns, h=left: pack(c, h), 3 if n < 5_000 else 1)  # type: ignore[misc]
            found["program"].setdefault(str(n), {})[str(m)] = round(took, 3)
    for n in (4, 100, 600):
        load = synthetic(users=n, machines=20, hours=2.0, seed=1)
        simulate(load, "qknober", KNOB)  # compiled
        began = time.process_time()
        run = simulate(load, "qknober", KNOB)
        found["choice"][str(n)] = round((time.process_time() - began) * 1000 / max(1, run.decisions), 5)
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Writes the record."""
    parser = argparse.ArgumentParser(prog="python -m studies.qknober_times", description=__doc__)
    parser.add_argument("-o", "--out", type=Path, required=True)
    parser.add_argument("--users", type=int, nargs="+", default=USERS, help="numbers of users [4 100 1000 10000]")
    given = parser.parse_args(arguments)
    values = {"unit": "ms of CPU time", "knob": KNOB, "machine": platform.machine(), **measure(given.users)}
    users = "" if tuple(given.users) == USERS else " --users " + " ".join(map(str, given.users))
    command = f"python -m studies.qknober_times{users} -o docs/records/qknober-decisions.json"
    write(given.out, command, values)
    return 0


if __name__ == "__main__":
    np.seterr(all="raise")
    sys.exit(main())
