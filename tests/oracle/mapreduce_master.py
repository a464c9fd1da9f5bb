"""Hadoop's RMContainerAllocator (java/.../rm/Master.java): random states, its answers, and ours to the same.

Run as a program it records answers for the tests that need no Java::

    python -m tests.oracle.mapreduce_master tests/oracle/recorded/mapreduce/master.json.gz
"""

from __future__ import annotations

import gzip
import json
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from harness.clusters.jars import find
from tests.oracle.decisions import HERE, SOURCES, compiled

_PACKAGE = "org.apache.hadoop.mapreduce.v2.app.rm"
SOURCES["mapreduce"] = [HERE / "java" / "src" / _PACKAGE.replace(".", "/") / "Master.java"]
RECORDED = HERE / "recorded" / "mapreduce" / "master.json.gz"
STATES = 1000

#: Hadoop's keys of what a state names.
KEYS = {
    "slow_start": "mapreduce.job.reduce.slowstart.completedmaps",
    "rampup_limit": "yarn.app.mapreduce.am.job.reduce.rampup.limit",
    "preempt_limit": "yarn.app.mapreduce.am.job.reduce.preemption.limit",
    "preempt_delay_s": "mapreduce.job.reducer.preempt.delay.sec",
    "hanging_s": "mapreduce.job.reducer.unconditional-preempt.delay.sec",
    "map_limit": "mapreduce.job.running.map.limit",
    "reduce_limit": "mapreduce.job.running.reduce.limit",
}


def ask(kind: str, cases: Sequence[dict[str, Any]], folder: Path) -> list[Any]:
    """Hadoop's answers to ``states`` or ``jobs``, from one JVM."""
    lib = find()
    classes = compiled(lib, "mapreduce")
    given, answers = folder / "given.json", folder / "answers.json"
    sent = [{**case, "conf": {KEYS[key]: str(case[key]) for key in KEYS if key in case}} for case in cases]
    given.write_text(json.dumps({kind: sent}), encoding="utf-8")
    java = ["java", "-Xmx1000m", "-XX:+UseSerialGC", f"-Dlog4j.configuration=file:{HERE}/java/log4j.properties"]
    done = subprocess.run(
        [*java, "-cp", f"{classes}:{lib}/*", f"{_PACKAGE}.Master", str(given), str(answers)],
        capture_output=True,
        text=True,
        timeout=500,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found: list[Any] = json.loads(answers.read_text(encoding="utf-8"))
    return found


def random_state(rng: random.Random) -> dict[str, Any]:
    """A job in the middle of its life: what its master knows at one heartbeat, with its settings."""
    waiting = rng.choice((0, rng.randint(1, 40), rng.randint(1, 400)))
    held_maps = rng.choice((0, 0, rng.randint(1, 60)))
    completed = rng.choice((0, rng.randint(0, 40), rng.randint(0, 900)))
    slow_start = rng.choice((0.05, 0.05, 0.07, 0.3, 0.8, 1.0, 0.0))
    if rng.random() < 0.2:  # where slow start ends
        maps = rng.choice((20, 50, 100, 200))
        completed = min(max(round(maps * slow_start) + rng.choice((-1, 0, 0, 1)), 0), maps)
        waiting = rng.randint(0, maps - completed)
        held_maps = maps - completed - waiting
    scheduled, held, pending = (rng.choice((0, rng.randint(1, 12), rng.randint(1, 80))) for _ in range(3))
    map_mb, mb = (rng.choice((1024, 1024, 1536, 2048, 3000)) for _ in range(2))
    delay = rng.choice((0, 0, 10))
    too_long = rng.choice((0, 0, rng.randint(0, waiting)))
    room = rng.choice((0, rng.randint(0, 9000), rng.randint(0, 200_000), -rng.randint(0, 5000)))
    return {
        "maps": completed + waiting + held_maps,
        "reduces": scheduled + held + pending,
        "completed": completed,
        "waiting_maps": waiting,
        "held_maps": held_maps,
        "long_waiting": rng.randint(too_long, waiting),
        "waiting_too_long": too_long,
        "scheduled": scheduled,
        "held": held,
        "pending": pending,
        "map_mb": map_mb,
        "map_vcores": rng.choice((1, 1, 2)),
        "mb": mb,
        "vcores": rng.choice((1, 1, 3)),
        "room_mb": room,
        "room_vcores": rng.choice((rng.randint(0, 20), rng.randint(0, 300))),
        "cpu": rng.choice((0, 1)),
        "started": rng.choice((0, 1, 1)),
        "slow_start": slow_start,
        "rampup_limit": rng.choice((0.5, 0.5, 0.33, 0.9, 0.0, 1.0)),
        "preempt_limit": rng.choice((0.5, 0.5, 0.1, 0.77, 1.0)),
        "preempt_delay_s": delay,
        "hanging_s": rng.choice((300, 300, -1)),
    }


def states(seed: int, count: int = STATES) -> list[dict[str, Any]]:
    """Random states of one seed."""
    rng = random.Random(seed)
    return [random_state(rng) for _ in range(count)]


def decide(rules: Any, state: dict[str, Any]) -> dict[str, int]:
    """Our master's decision in a state, as `harness.sim.master.beat` makes it of the rules."""
    it = SimpleNamespace(**state)
    sizes = (it.map_mb, it.map_vcores, it.mb, it.vcores)
    room = (it.room_mb, it.room_vcores, it.cpu)
    # The master leaves a job without reduces alone.
    if it.reduces == 0:
        return {"scheduled": 0, "pending": 0, "killed": 0, "started": it.started}
    hanging = it.waiting_too_long if it.hanging_s >= 0 else 0
    long_waiting = it.waiting_maps if it.preempt_delay_s == 0 else it.long_waiting
    count = rules.to_preempt(
        it.waiting_maps, it.held_maps, long_waiting, hanging, it.scheduled, it.held, *sizes, *room, it.preempt_limit
    )
    scheduled, started, killed = it.scheduled, it.started, 0
    if count != rules.NONE:
        scheduled, killed = 0, min(count, it.held)
    else:
        if started == 0 and it.pending > 0 and rules.reached_slow_start(it.maps, it.completed, it.slow_start):
            started = 1
        if started == 1:
            of_maps = (it.maps, it.completed, it.waiting_maps, it.scheduled, it.held_maps, it.held)
            scheduled += rules.schedule_reduces(*of_maps, *sizes, it.pending, *room, it.rampup_limit)
    return {
        "scheduled": int(scheduled),
        "pending": int(it.scheduled + it.pending - scheduled),
        "killed": int(max(killed, 0)),
        "started": started,
    }


def differing(rules: Any, pairs: Iterable[tuple[dict[str, Any], dict[str, int]]]) -> list[str]:
    """States in which our decision is not Hadoop's."""
    return [
        f"{state}: {ours} instead of {hadoops}" for state, hadoops in pairs if (ours := decide(rules, state)) != hadoops
    ]


def beats(result: Any) -> dict[int, list[dict[str, int]]]:
    """A simulated run's decisions of MapReduce's masters as what Hadoop's master is to be told, by application.

    Until every map has a container. ``asks``: what ours asks for then in all, at the priorities of reduces and maps.
    """
    by_app: dict[int, list[dict[str, int]]] = {}
    for told in result.masters:
        by_app.setdefault(told["app"], []).append(told)
    asks = {
        (int(event["ask"].removeprefix("app")), event["t"], event["priority"]): event["count"]
        for event in result.script["events"]
        if "ask" in event
    }
    found: dict[int, list[dict[str, int]]] = {}
    for app, records in by_app.items():
        first = records[0]
        waiting, held_maps, held, total = first["maps"], 0, 0, {1: 0, 2: first["maps"]}
        scheduled, pending = 0, first["pending"] + first["scheduled"] + first["held"]
        out = found[app] = []
        for told in records:
            granted_maps, granted = waiting - told["waiting_maps"], scheduled - told["scheduled"]
            again = told["pending"] - pending
            ended_maps = held_maps + granted_maps - told["held_maps"]
            assert held + granted - told["held"] == again  # before all maps have ended reduces end only by preemption
            total = {1: total[1] - granted, 2: total[2] - granted_maps}
            total.update({key: asks[app, told["t"], key] for key in total if (app, told["t"], key) in asks})
            waiting, held_maps, held = told["waiting_maps"], told["held_maps"], told["held"]
            scheduled, pending = told["to_schedule"], told["pending"] + told["scheduled"] - told["to_schedule"]
            out.append(
                {
                    "completed": told["completed"],
                    "waited_ms": told["t"] - first["t"],
                    "granted_maps": granted_maps,
                    "granted": granted,
                    "again": again,
                    "ended_maps": ended_maps,
                    "ended": again,
                    "working": 0,
                    "room_mb": told["room_mb"],
                    "room_vcores": told["room_vcores"],
                    "scheduled": scheduled,
                    "pending": pending,
                    "preempted": max(told["to_preempt"], 0),
                    "asked": total[1],
                    "asked_maps": total[2],
                }
            )
            if waiting == 0:
                break
    return found


def main(target: str) -> None:
    """Record Hadoop's answers to the states of seed 1."""
    given = states(1)
    with tempfile.TemporaryDirectory() as folder:
        answers = ask("states", given, Path(folder))
    text = json.dumps({"seed": 1, "answers": answers}, separators=(",", ":"))
    Path(target).write_bytes(gzip.compress(text.encode(), mtime=0))


if __name__ == "__main__":
    main(*sys.argv[1:])
