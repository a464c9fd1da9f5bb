"""``python -m tests.control.soak``: runs seeds, says what was violated, and gives a short schedule for it."""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections import Counter
from collections.abc import Sequence
from typing import Any

from harness.bench.calibration import calibrate
from tests.control.soak import faults, shrink, world


def main(arguments: Sequence[str] | None = None) -> int:
    """0: nothing was violated; 1: something was; 2: usage."""
    parser = argparse.ArgumentParser(prog="python -m tests.control.soak", description=__doc__)
    parser.add_argument("--seeds", default="0:20", metavar="A:B", help="from A up to B, without B (or one number)")
    parser.add_argument("--json", action="store_true", help="one JSON document")
    parser.add_argument("--schedule", metavar="AT:KIND:DRAW,...", help="these faults instead of the seed's own")
    parser.add_argument("--trace", action="store_true", help="the history, on standard error")
    parser.add_argument("--first", action="store_true", help="end at the first violation, without shrinking")
    parser.add_argument(
        "--calibrate", action="store_true", help="the speed against `yarnfair bench`'s calibration loop"
    )
    parser.add_argument("--seconds", type=float, metavar="S", help="begin no seed after so much CPU time")
    given = parser.parse_args(arguments)
    try:
        begin, _, end = given.seeds.partition(":")
        seeds = range(int(begin), int(end) if end else int(begin) + 1)
        schedule = None if given.schedule is None else faults.parse(given.schedule)
    except ValueError as error:
        parser.error(str(error))
    document = run(seeds, schedule, given)
    if given.json:
        print(json.dumps(document))
    else:
        _tell(document)
    return 1 if document["violations"] else 0


def run(seeds: Sequence[int], schedule: list[faults.Fault] | None, given: argparse.Namespace) -> dict[str, Any]:
    """Runs the seeds one after another; the document of ``--json``."""
    steps_per_s = [calibrate()] if given.calibrate else []
    begun_s, begun_cpu_s = time.perf_counter(), time.process_time()
    total: Counter[str] = Counter()
    ticks, virtual_s, done, digests = 0, 0.0, 0, []
    violations: list[dict[str, Any]] = []
    trace = (lambda line: print(line, file=sys.stderr)) if given.trace else None
    for seed in seeds:
        if given.seconds is not None and time.process_time() - begun_cpu_s > given.seconds:
            break
        history = world.live(seed, schedule, trace)
        done, ticks, virtual_s = done + 1, ticks + history.ticks, virtual_s + history.virtual_s
        total += history.faults
        digests.append(history.digest)
        if history.violation:
            short = history.schedule if given.first else shrink.shortest(seed, history.schedule, history.violation)
            command = f"python -m tests.control.soak --seeds {seed} --schedule '{','.join(map(str, short))}'"
            violations.append({"seed": seed, "what": history.violation, "command": command})
            if given.first:
                break
    spent_s, core_s = time.perf_counter() - begun_s, time.process_time() - begun_cpu_s
    if given.calibrate:
        steps_per_s.append(calibrate())
    return {
        "seeds": done,
        "ticks": ticks,
        "virtual_s": round(virtual_s, 3),
        "faults": dict(sorted(total.items())),
        "violations": violations,
        "histories": digests if len(digests) <= 100 else digests[-1:],
        "seconds": round(spent_s, 3),
        "core_seconds": round(core_s, 3),
        # Ticks a second of one core, for each million steps a second of the loop that ran before and after.
        **({"calibration_ratio": round(ticks / core_s / statistics.mean(steps_per_s) * 1e6, 4)} if steps_per_s else {}),
    }


def _tell(document: dict[str, Any]) -> None:
    count, core_s, days = sum(document["faults"].values()), document["core_seconds"], document["virtual_s"] / 86_400
    print(
        f"{document['seeds']} seeds, {document['ticks']} ticks and {count} faults in {document['seconds']:.1f} s: "
        f"{document['ticks'] / core_s:.0f} ticks and {count / core_s:.0f} faults a second of one core, "
        f"{days:.1f} days of virtual time"
    )
    if "calibration_ratio" in document:
        print(f"{document['calibration_ratio']:.3f} ticks for each million steps of bench's calibration loop")
    for digest in document["histories"][-1:]:
        print(f"the last history: {digest}")
    for one in document["violations"]:
        print(f"seed {one['seed']}: {one['what']}\n  {one['command']}")


if __name__ == "__main__":
    sys.exit(main())
