"""MapReduce's master against Hadoop's RMContainerAllocator: decisions in random states, heartbeats of whole jobs."""

from __future__ import annotations

import gzip
import json
import os
import random
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import harness.sim.mapreduce as rules
from harness.model.jobs import Duration, JobSpec, NodeSpec, mapreduce_stages
from harness.model.resources import Resource
from harness.sim.setup import Delays, MapReduceMaster, SimSetup
from harness.sim.simulate import simulate
from harness.yarn.fair.parse import parse_allocations
from tests.oracle import mapreduce_master as oracle

SEED = int(os.environ.get("YARNFAIR_ORACLE_SEED") or 1)


def recorded() -> list[tuple[dict[str, Any], dict[str, int]]]:
    found = json.loads(gzip.decompress(oracle.RECORDED.read_bytes()))
    return list(zip(oracle.states(found["seed"]), found["answers"], strict=True))


def test_every_decision_in_a_thousand_states_is_hadoops() -> None:
    pairs = recorded()
    assert len(pairs) == oracle.STATES
    assert oracle.differing(rules, pairs) == []
    # The states reach every branch: started and not, ramped up and down, all at once, preempted.
    ups = sum(hadoops["scheduled"] > state["scheduled"] for state, hadoops in pairs)
    downs = sum(hadoops["scheduled"] < state["scheduled"] and not hadoops["killed"] for state, hadoops in pairs)
    assert min(ups, downs, sum(hadoops["killed"] > 0 for _, hadoops in pairs)) > 30


@pytest.mark.java
def test_states_drawn_anew(tmp_path: Path) -> None:
    given = oracle.states(1000 + SEED)
    assert oracle.differing(rules, zip(given, oracle.ask("states", given, tmp_path), strict=True)) == []


def _job(rng: random.Random, at: int, scale: int) -> JobSpec:
    size, of_reduce = (Resource(rng.choice((1024, 1024, 2048)), rng.choice((1, 1, 2))) for _ in range(2))
    stages = mapreduce_stages(
        rng.randint(1, scale),
        rng.randint(1, scale // 2),
        (size, Duration("lognormal", mu=rng.uniform(1, 3), sigma=0.6)),
        (of_reduce, Duration("lognormal", mu=rng.uniform(1, 4), sigma=0.4)),
        rng.choice((0.0, 0.05, 0.05, 0.3, 0.9)),
    )
    queue, submit_s = f"root.{rng.choice('abc')}", rng.choice((0.0, rng.uniform(0, 60)))
    return JobSpec(f"j{at}", queue, kind="mapreduce", submit_s=submit_s, am=Resource(1024, 1), stages=stages)


def _run(seed: int) -> tuple[SimSetup, list[JobSpec]]:
    """A small cluster with a few jobs, and masters with random settings."""
    rng = random.Random(seed)
    jobs = [_job(rng, at, rng.choice((20, 60, 150))) for at in range(rng.randint(3, 7))]
    master = MapReduceMaster(
        rampup_limit=rng.choice((0.5, 0.5, 0.2, 0.9)),
        preemption_limit=rng.choice((0.5, 0.5, 0.1)),
        running_map_limit=rng.choice((0, 0, 0, 7)),
        running_reduce_limit=rng.choice((0, 0, 0, 4)),
        unconditional_preempt_delay_s=rng.choice((300, 20, -1)),
        headroom=rng.choice(("scheduler", "scheduler", "none")),
    )
    rule = rng.choice(("fair", "drf"))
    limit = rng.choice(("", "<maxResources>9000 mb, 9 vcores</maxResources>"))
    queues = "".join(f'<queue name="{name}"><weight>{rng.choice((1, 1, 3))}</weight>{limit}</queue>' for name in "abc")
    policy = f"<defaultQueueSchedulingPolicy>{rule}</defaultQueueSchedulingPolicy>"
    setup = SimSetup(
        nodes=tuple(NodeSpec(f"n{i}", 4096, rng.choice((4, 8))) for i in range(rng.randint(3, 8))),
        allocations=parse_allocations(f"<allocations>{queues}{policy}</allocations>"),
        jobs=jobs,
        delays=Delays(am_response_heartbeats=rng.choice((0, 1))),
        mapreduce=master,
        record_script=True,
        seed=seed,
    )
    return setup, jobs


@pytest.mark.java
def test_every_heartbeat_of_a_hundred_jobs_is_hadoops(tmp_path: Path) -> None:
    given: list[dict[str, Any]] = []
    seed = 100 * SEED
    while len(given) < 100:
        seed += 1
        setup, jobs = _run(seed)
        result = simulate(setup)
        assert result.finished
        names = [job.id for job in jobs]
        of_app = {event["id"]: names.index(result.jobs["id"][at]) for at, event in enumerate(_apps(result))}
        for app, told in oracle.beats(result).items():
            stages = {stage.name: stage for stage in jobs[of_app[app]].stages}
            maps, reduces, it = stages["map"], stages["reduce"], setup.mapreduce
            given.append(
                {
                    "seed": seed,
                    "maps": maps.tasks,
                    "reduces": reduces.tasks,
                    "map_mb": maps.demand.memory_mb,
                    "map_vcores": maps.demand.vcores,
                    "mb": reduces.demand.memory_mb,
                    "vcores": reduces.demand.vcores,
                    "cpu": 1,
                    "slow_start": reduces.slow_start,
                    "rampup_limit": it.rampup_limit,
                    "preempt_limit": it.preemption_limit,
                    "hanging_s": int(it.unconditional_preempt_delay_s),
                    "map_limit": it.running_map_limit,
                    "reduce_limit": it.running_reduce_limit,
                    "beats": told,
                }
            )
    answers = oracle.ask("jobs", given, tmp_path)
    ups = downs = killed = heartbeats = asks = 0
    for job, hadoops in zip(given, answers, strict=True):
        dead = before = 0
        for at, (ours, theirs) in enumerate(zip(job["beats"], hadoops, strict=True)):
            where = f"seed {job['seed']}, heartbeat {at} of {job}"
            assert theirs["released"] == 0, where
            assert (theirs["scheduled"], theirs["pending"]) == (ours["scheduled"], ours["pending"]), where
            assert (theirs["killed"] > dead) <= (ours["preempted"] > 0), where
            if at + 1 < len(hadoops) and hadoops[at + 1]["exact"]:
                asks += 1
                asked = {key: hadoops[at + 1][key] for key in ("asked", "asked_maps")}
                assert asked == {key: ours[key] for key in asked}, where
            ups += theirs["scheduled"] > before - ours["granted"]
            downs += theirs["scheduled"] < before - ours["granted"] and theirs["killed"] == dead
            killed += theirs["killed"] - dead
            dead, before = theirs["killed"], theirs["scheduled"]
            heartbeats += 1
    assert ups > 50, ups
    assert downs > 5, downs
    assert killed > 5, killed
    assert heartbeats > 2000
    assert asks > 1000


def _apps(result: Any) -> list[dict[str, Any]]:
    return [event for event in result.script["events"] if "app" in event]


#: A rule of the master -> a change of its text that the recorded states notice.
MUTATIONS = {
    "slow start": ("completed >= math.ceil", "completed > math.ceil"),
    "slow start is a float": ("single(slow_start) * single(maps)", "slow_start * maps"),
    "nothing pending, nothing taken back": ("if pending == 0:\n        return 0", "if False:\n        return 0"),
    "all at once when no map waits": (
        "if waiting_maps == 0:\n        return pending",
        "if False:\n        return pending",
    ),
    "the share of completed maps": ("share = single(completed) / single(maps)", "share = single(1.0)"),
    "the ramp-up limit": ("min(share, single(rampup_limit))", "share"),
    "headroom": ("total_mb = room_mb + map_mb * held_maps", "total_mb = map_mb * held_maps"),
    "what maps hold counts": ("total_mb = room_mb + map_mb * held_maps", "total_mb = room_mb"),
    "what maps do not need": (">= wanted:", ">= 2**40:"),
    "vcores": ("return min(n, _quotient(vcores, of_vcores)) if cpu else n", "return n"),
    "ramp-down": ("-min(-more, scheduled)", "0"),
    "ramp-down takes no more than is scheduled": ("-min(-more, scheduled)", "more"),
    "rounding toward zero": ("return a // b if a >= 0 else -(-a // b)", "return a // b"),
    "no preemption while a map runs": ("if held_maps > 0 or waiting_maps <= 0:", "if waiting_maps <= 0:"),
    "room for a map": (
        "map_mb, map_vcores, cpu) > 0:\n            return NONE",
        "map_mb, map_vcores, cpu) > 1:\n            return NONE",
    ),
    "scheduled reduces take room": ("room_mb - mb * scheduled, ", "room_mb, "),
    "the delay of preemption": ("hanging = long_waiting", "hanging = waiting_maps"),
    "unconditional preemption": ("hanging = waiting_too_long", "hanging = 0"),
    "the preemption limit": (
        "total_mb * part), to_long(total_vcores * part), mb",
        "total_mb * 1.0), to_long(total_vcores * 1.0), mb",
    ),
    "at least one map's worth": ("max(for_one, by_limit)", "by_limit"),
    "no more than the maps need": ("min(max(for_one, by_limit), for_all)", "max(for_one, by_limit)"),
}


@pytest.mark.parametrize("rule", MUTATIONS, ids=lambda rule: rule.replace(" ", "-"))
def test_a_change_of_each_rule_is_noticed(rule: str) -> None:
    text = Path(rules.__file__).read_text(encoding="utf-8").replace("@kernel", "")
    old, new = MUTATIONS[rule]
    assert text.count(old) == 1
    module = ModuleType("mutated")
    exec(compile(text.replace(old, new), "mutated", "exec"), module.__dict__)
    assert oracle.differing(module, recorded())
