"""MROrder in front of a real cluster, without one: estimates from earlier runs, holding jobs, comparing orders."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from harness.base.errors import CallError, InputError
from harness.model.jobs import Duration, JobSpec, Stage
from harness.model.resources import Resource
from harness.policies import make_policy
from harness.systems.mrorder.earlier_runs import earlier_runs
from harness.systems.mrorder.ordering import Slots
from harness.systems.mrorder.ordering.online import DispatchingQueue
from harness.systems.mrorder.submissions import HAND_ON_S, Holding, hold, slots_of
from harness.traces.recorded import Header, NodeLine, QueueLine, job_line, trace_text

NODES = [Resource(8192, 8)]


def job(number: int, name: str, maps: int = 8, reduces: int = 2, map_s: float = 4, submit_s: float = 0.0) -> JobSpec:
    task = Resource(1024, 1)
    stages = [Stage("map", maps, task, Duration("constant", value_s=map_s))]
    if reduces:
        stages.append(Stage("reduce", reduces, task, Duration("constant", value_s=2), ("map",), priority=10))
    return JobSpec(
        id=f"q-{number:04d}",
        queue="root.q",
        kind="mapreduce",
        am=task,
        stages=tuple(stages),
        name=name,
        submit_s=submit_s,
    )


def policy(**settings: str) -> DispatchingQueue:
    found = make_policy("mrorder", settings).dispatching_queue()
    assert found is not None
    return found


def run_directory(folder: Path, tasks: list[tuple[str, str, str, float, float]], types: dict[str, str]) -> Path:
    """``tasks``: job, stage, outcome, granted, ended."""
    folder.mkdir(parents=True)
    columns = ["job", "stage", "outcome", "granted_s", "ended_s"]
    pd.DataFrame(tasks, columns=columns).to_parquet(folder / "tasks.parquet")
    rows = [{"job": one, "type": name, "kind": "mapreduce"} for one, name in types.items()]
    pd.DataFrame(rows).to_parquet(folder / "jobs.parquet")
    return folder


TASKS = [
    ("q-0001", "map", "finished", 0.0, 3.0),
    ("q-0001", "map", "finished", 1.0, 6.0),
    ("q-0001", "map", "failed", 1.0, 90.0),
    # Granted before the last map has ended, which is not its own time.
    ("q-0001", "reduce", "finished", 2.0, 8.5),
    ("q-0002", "map", "finished", 0.0, 10.0),
]
TYPES = {"q-0001": "Sort", "q-0002": "Grep"}


def test_means_by_name_of_what_finished(tmp_path: Path) -> None:
    found = earlier_runs([run_directory(tmp_path / "run", TASKS, TYPES)])
    assert found.mean_s("Sort", reduce=False) == 4
    assert found.mean_s("Sort", reduce=True) == Fraction(5, 2)
    assert found.mean_s("Grep", reduce=False) == 10
    assert found.tasks == 4
    assert found.knows("Grep")
    # Of a name that never ran: the mean of all; Grep never had reduces.
    assert not found.knows("New")
    assert found.mean_s("New", reduce=False) == 6
    assert found.mean_s("Grep", reduce=True) == Fraction(5, 2)
    seen = found.estimate(job(1, "Sort", maps=100, reduces=7))
    assert (seen.name, seen.maps, seen.reduces) == ("q-0001", 100, 7)
    assert [seen.map_s, seen.reduce_s] == [4, 2.5]
    assert found.estimate(job(1, "Sort", reduces=0)).reduce_s == 0


def test_a_folder_of_runs_and_a_trace_are_sources_too(tmp_path: Path) -> None:
    run_directory(tmp_path / "runs" / "one", TASKS, TYPES)
    run_directory(tmp_path / "runs" / "two", [("q-0001", "map", "finished", 0.0, 7.0)], {"q-0001": "Sort"})
    assert earlier_runs([tmp_path / "runs"]).mean_s("Sort", reduce=False) == 5
    header = Header(nodes=[NodeLine(memory_mb=8192, vcores=8)], queues={"root.q": QueueLine()})
    line = job_line(job(1, "Sort", maps=2, reduces=1), [[9, 11], [4]], [[1, 1], [0.5]])
    trace = tmp_path / "trace.jsonl"
    trace.write_text(trace_text(header, [line]))
    assert earlier_runs([trace]).mean_s("Sort", reduce=False) == 11
    assert earlier_runs([trace]).mean_s("Sort", reduce=True) == Fraction(9, 2)
    assert earlier_runs([trace, tmp_path / "runs"]).mean_s("Sort", reduce=False) == Fraction(37, 5)
    maps, reduces = line.stages
    waited = line.model_copy(update={"stages": [maps, reduces.model_copy(update={"waits_s": [3.0]})]})
    trace.write_text(trace_text(header, [waited]))
    assert earlier_runs([trace]).mean_s("Sort", reduce=True) == Fraction(3, 2), (
        "waiting for maps is not a reduce's time"
    )


@pytest.mark.parametrize("kind", ["nothing", "empty", "simulated", "damaged", "no tasks", "other columns"])
def test_what_is_no_history_is_one_line(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "run"
    if kind == "empty":
        path.mkdir()
    elif kind == "simulated":
        run_directory(path, TASKS, TYPES)
        (path / "tasks.parquet").unlink()
    elif kind == "damaged":
        run_directory(path, TASKS, TYPES)
        (path / "tasks.parquet").write_bytes(b"PAR1 and no more")
    elif kind == "no tasks":
        run_directory(path, TASKS[2:3], TYPES)
    elif kind == "other columns":
        run_directory(path, TASKS, TYPES)
        pd.DataFrame({"job": ["q-0001"]}).to_parquet(path / "tasks.parquet")
    with pytest.raises(InputError) as caught:
        earlier_runs([path])
    assert str(path) in caught.value.line()
    assert "\n" not in caught.value.line()


def test_the_simulator_orders_by_what_the_history_says(tmp_path: Path) -> None:
    # As declared Grep is the short one; earlier runs say that it is Sort.
    jobs = [job(1, "Grep", reduces=0, map_s=1), job(2, "Sort", reduces=0, map_s=9)]
    common = {"when": "pnj", "jobs": "2", "target": "tct", "map_slots": "4", "reduce_slots": "2"}
    declared, _ = hold(policy(**common), jobs, NODES)
    assert [one.name for one in declared] == ["Grep", "Sort"]
    source = run_directory(tmp_path / "run", TASKS, TYPES)
    learned, _ = hold(policy(**common, history=str(source)), jobs, NODES)
    assert [one.name for one in learned] == ["Sort", "Grep"]


def test_a_given_order_by_name() -> None:
    jobs = [job(number, "x") for number in (1, 2, 3)]
    common = {"when": "pnj", "jobs": "3"}
    out, _ = hold(policy(**common, ordering="order:q-0003, q-0001"), jobs, NODES)
    assert [one.id for one in out] == ["q-0003", "q-0001", "q-0002"]
    with pytest.raises(CallError, match="twice"):
        hold(policy(**common, ordering="order:q-0003,q-0003"), jobs, NODES)


class Masters:
    """Which jobs' masters have registered."""

    def __init__(self) -> None:
        self.up: set[str] = set()

    def __call__(self, name: str) -> bool:
        return name in self.up


def test_jobs_are_held_and_handed_on_as_masters_register(tmp_path: Path) -> None:
    jobs = [job(1, "Grep"), job(2, "Sort"), job(3, "New")]
    source = run_directory(tmp_path / "run", TASKS, TYPES)
    held = Holding(policy(when="pnj", jobs="3", target="tct", history=str(source)), jobs, NODES)
    masters = Masters()
    for at, one in enumerate(jobs[:2]):
        held.arrive(one, 1.0 + at)
        assert list(held.ready(2.0, masters)) == []
    held.arrive(jobs[2], 5.0)
    assert held.arrived == {"q-0001": 1.0, "q-0002": 2.0, "q-0003": 5.0}
    assert list(held.ready(5.0, masters)) == ["q-0002"]
    assert list(held.ready(6.0, masters)) == []
    masters.up = {"q-0002"}
    assert list(held.ready(7.0, masters)) == ["q-0003"]
    # A master that does not come up holds nobody for ever.
    assert list(held.ready(7.0 + HAND_ON_S, masters)) == ["q-0001"]
    (decision,) = held.decisions
    assert decision["order"] == ["q-0002", "q-0003", "q-0001"]
    assert decision["without_history"] == ["q-0003"]
    assert decision["estimates"]["q-0002"] == {"maps": 8, "map_s": 4.0, "reduces": 2, "reduce_s": 2.5}
    json.dumps(decision)


def test_a_submission_that_fails_is_tried_again() -> None:
    jobs = [job(1, "a")]
    held = Holding(policy(when="pnj", jobs="1"), jobs, NODES)
    held.arrive(jobs[0], 0.0)

    def submit(name: str) -> None:
        raise OSError(f"silent: {name}")

    with pytest.raises(OSError, match="silent"):
        list(map(submit, held.ready(0.0, Masters())))
    assert list(held.ready(1.0, Masters())) == ["q-0001"]
    assert list(held.ready(2.0, Masters())) == []


def test_eager_begins_a_round_when_the_cluster_would_idle() -> None:
    jobs = [job(1, "a"), replace(job(2, "b"), after_job="q-0001", think_s=1.0)]
    held = Holding(policy(when="tp-fti", interval_s="100", eager="true"), jobs, NODES)
    masters = Masters()
    masters.up = {"q-0001"}
    held.arrive(jobs[0], 0.0)
    assert held.next_s == 100
    assert list(held.ready(99.0, masters)) == []
    assert list(held.ready(100.0, masters)) == ["q-0001"]
    # The second one's arrival is known only now, which the simulator's plan cannot do.
    held.finish("q-0001", 130.0)
    held.arrive(jobs[1], 131.0)
    assert list(held.ready(131.0, masters)) == ["q-0002"]


def test_slots_of_the_estimates_are_what_fits_node_by_node() -> None:
    def sized(demand: Resource, **of: Any) -> JobSpec:
        stage = Stage("map", 4, demand, Duration(value_s=1.0))
        return JobSpec("j", "root.q", of.pop("kind", "mapreduce"), Resource(1024, 1), (stage,), **of)

    three = [Resource(3072, 8)] * 59
    # One of 2 GB on each node of 3 GB, though all together have the memory of 88.
    assert slots_of(policy(), [sized(Resource(2048, 1))], three) == Slots(59, 59)
    assert slots_of(policy(), [sized(Resource(1024, 4))], three) == Slots(2 * 59, 2 * 59)
    # Nodes that are too small hold none, and a run has one slot at least.
    assert slots_of(policy(), [sized(Resource(2048, 1))], [Resource(1024, 9), Resource(4096, 9)]) == Slots(2, 2)
    assert slots_of(policy(), [sized(Resource(2048, 1))], [Resource(1024, 9)]) == Slots(1, 1)
    assert slots_of(policy(map_slots="7"), [sized(Resource(2048, 1))], three) == Slots(7, 59)
    # As a recorded Spark job has it: its tasks ask for nothing, they run inside executors.
    spark = {"kind": "spark", "executors": 4, "executor_demand": Resource(2048, 2), "executor_slots": 2}
    assert slots_of(policy(), [sized(Resource(0, 0), **spark)], three) == Slots(118, 118)
    assert slots_of(policy(), [sized(Resource(0, 0), kind="service")], three) == Slots(1, 1)
