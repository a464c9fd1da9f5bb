"""Executors and tasks from Spark's event log, of a job that ended and of one that was cut."""

from __future__ import annotations

import json
from typing import Any

from harness.jobs.engines.attempts import attempts_table, summary
from harness.jobs.spark.events import asked_ms, read_events

APP = "application_1795307521534_0001"


def executor(name: str, at: int) -> dict[str, Any]:
    url = (
        f"http://node{name}:8042/node/containerlogs/container_1795307521534_0001_01_00000{name}/root/stderr?start=-4096"
    )
    info = {"Host": f"node{name}", "Total Cores": 1, "Log Urls": {"stderr": url}}
    return {"Event": "SparkListenerExecutorAdded", "Timestamp": at, "Executor ID": name, "Executor Info": info}


def task(number: int, start: int, end: int = 0, *, attempt: int = 0, reason: Any = "Success", on: str = "1") -> Any:
    info = {
        "Task ID": number * 10 + attempt,
        "Index": number,
        "Attempt": attempt,
        "Launch Time": start,
        "Executor ID": on,
        "Host": "somewhere",
        "Finish Time": end,
    }
    event = {"Event": "SparkListenerTaskStart", "Stage ID": 3, "Stage Attempt ID": 0, "Task Info": info}
    if end:
        why = reason if isinstance(reason, dict) else {"Reason": reason}
        event |= {"Event": "SparkListenerTaskEnd", "Task End Reason": why}
    return event


EVENTS = [
    {"Event": "SparkListenerApplicationStart", "App ID": APP, "Timestamp": 1000},
    executor("1", 2000),
    executor("2", 2500),
    task(0, 3000),
    task(0, 3000, 5000),
    task(1, 3100, 4000, reason={"Reason": "ExceptionFailure", "Class Name": "X", "Description": "it broke"}),
    task(1, 4100, 4600, attempt=1, on="2"),
    task(2, 4200, 4700, reason={"Reason": "TaskKilled", "Kill Reason": "another attempt succeeded"}),
    task(3, 5200, on="9"),
]


def test_a_log_that_was_cut_tells_what_ran() -> None:
    lines = [json.dumps(event) for event in EVENTS] + ["{cut", "[]", '{"Event": "SparkListenerTaskEnd"}']
    found = read_events(lines)
    assert {one.job for one in found} == {APP}
    executors = [one for one in found if one.kind == "executor"]
    assert [(one.task, one.container, one.node, one.started_ms, one.ended_ms) for one in executors] == [
        ("executor_1", "container_1795307521534_0001_01_000001", "node1:8042", 2000, 0),
        ("executor_2", "container_1795307521534_0001_01_000002", "node2:8042", 2500, 0),
    ]
    tasks = [one for one in found if one.kind == "task"]
    assert [(one.attempt, one.outcome, one.ended_ms) for one in tasks] == [
        ("stage_0003_0_task_000000_0", "finished", 5000),
        ("stage_0003_0_task_000001_0", "failed", 4000),
        ("stage_0003_0_task_000001_1", "finished", 4600),
        ("stage_0003_0_task_000002_0", "killed", 4700),
        ("stage_0003_0_task_000003_0", "unknown", 0),
    ]
    assert tasks[1].error == "ExceptionFailure X it broke"
    assert tasks[2].node == "node2:8042"
    assert (tasks[4].container, tasks[4].node) == ("", "somewhere")


def test_executors_are_held_until_the_application_ends() -> None:
    removed = {"Event": "SparkListenerExecutorRemoved", "Timestamp": 4000, "Executor ID": "2", "Removed Reason": "lost"}
    end = {"Event": "SparkListenerApplicationEnd", "Timestamp": 6000}
    found = read_events(json.dumps(event) for event in [*EVENTS, removed, end])
    assert [(one.outcome, one.ended_ms, one.error) for one in found if one.kind == "executor"] == [
        ("finished", 6000, ""),
        ("failed", 4000, "lost"),
    ]
    told = summary(found)
    assert (told["task"]["attempts"], told["task"]["finished"], told["task"]["longest_s"]) == (5, 2, 2.0)
    assert told["executor"]["attempts"] == 2
    table = attempts_table(found, 1000)
    assert table["started_s"].tolist()[:3] == [1.0, 1.5, 2.0]
    assert read_events([]) == []


def test_when_the_driver_asked_for_its_executors() -> None:
    def added(name: str, at: int) -> str:
        block = {"Executor ID": name, "Host": "node", "Port": 1}
        return json.dumps({"Event": "SparkListenerBlockManagerAdded", "Block Manager ID": block, "Timestamp": at})

    others = [json.dumps(event) for event in EVENTS]
    assert asked_ms([*others, added("1", 1700), added("driver", 1500), "{cut"]) == 1500
    assert asked_ms([*others, '{"Event":"SparkListenerBlockManagerAdded"']) == 0


def test_damaged_events_are_passed_over() -> None:
    deep = '{"Event": ' + "[" * 100_000
    start = next(event for event in EVENTS if event["Event"] == "SparkListenerTaskStart")
    endless = {**start, "Task Info": {**start["Task Info"], "Launch Time": float("inf")}}
    block = {"Event": "SparkListenerBlockManagerAdded", "Block Manager ID": {"Executor ID": "driver"}}
    times = [json.dumps({**block, "Timestamp": value}) for value in (float("inf"), 10**30, 500)]
    assert read_events([deep, json.dumps(endless)]) == []
    assert asked_ms([f"{deep} SparkListenerBlockManagerAdded", *times[:2]]) == 0
    assert asked_ms(times[2:]) == 500
