"""MapReduce tasks from a JobHistoryServer, which is a server of prepared answers here."""

from __future__ import annotations

from typing import Any

import pytest

from harness.model.jobs import NodeSpec
from harness.sim.setup import SimSetup
from harness.sim.simulate import simulate
from harness.traces.history import History
from harness.traces.recorded import JobLine
from harness.yarn.fair.parse import parse_allocations
from tests.yarn.fake_server import FakeServer, http

APPLICATION = "application_1700000000000_0007"
ROOT = "GET /ws/v1/history/mapreduce/jobs/job_1700000000000_0007"
CONF = {"conf": {"property": [{"name": "mapreduce.map.memory.mb", "value": "2048"}, {"name": "x", "value": "y"}]}}
NOT_FOUND = {"RemoteException": {"exception": "NotFoundException", "message": "not found"}}


def task(kind: str, start: int, end: int, state: str = "SUCCEEDED", number: int = 0) -> dict[str, Any]:
    identity = f"task_1_1_{kind[0].lower()}_{number}"
    return {"id": identity, "type": kind, "state": state, "startTime": start, "finishTime": end}


def attempts(*times: tuple[int, int, str]) -> dict[str, Any]:
    listed = [{"startTime": start, "finishTime": end, "state": state} for start, end, state in times]
    return {"taskAttempts": {"taskAttempt": listed}}


def ask(tasks: list[dict[str, Any]], about: dict[str, Any], *more: bytes) -> tuple[dict[str, Any] | None, list[str]]:
    """What a history server's answers become, and what it was asked."""
    answers = [http(200, {"tasks": {"task": tasks}}), http(200, CONF), http(200, {"job": about}), *more]
    with FakeServer(*answers) as server:
        return History(server.url).mapreduce(APPLICATION), server.lines()


def test_mapreduce_tasks_of_the_history() -> None:
    tasks = [task("MAP", 1000, 5000), task("MAP", 1000, 9000), task("REDUCE", 6000, 12000)]
    found, asked = ask(tasks, {"finishTime": 12_500})
    assert asked == [f"{ROOT}/tasks", f"{ROOT}/conf", ROOT], "no attempts are asked for where all succeeded at once"
    assert found is not None
    maps, reduces = found["stages"]
    assert (maps["tasks_s"], maps["memory_mb"]) == ([4.0, 8.0], 2048)
    # All of its six seconds, also the three that it waited for the last map.
    assert (reduces["tasks_s"], reduces["after"], reduces["slow_start"]) == ([6.0], ["map"], 0.05)
    assert found["am"] == {"memory_mb": 1536, "vcores": 1}


def test_a_killed_job_holds_all_its_containers_at_once() -> None:
    """Of 60 containers for 580 s a task of 34,250 s was made, because no task had succeeded."""
    tasks = [task("MAP", 10_000, 0, "KILLED", number) for number in range(60)]
    about = {"state": "KILLED", "finishTime": 590_000, "killedMapAttempts": 60, "failedMapAttempts": 0}
    found, _ = ask(tasks, about, *[http(200, attempts((10_000, 590_000, "KILLED")))] * 60)
    assert found is not None
    assert [stage["tasks_s"] for stage in found["stages"]] == [[580.0] * 60]
    assert "retry_of" not in found["stages"][0]


def test_failed_attempts_are_asked_for_as_long_as_the_jobs_counts_speak_of_more() -> None:
    tasks = [task("MAP", 1000, 9000, number=0), task("MAP", 1000, 5000, number=1)]
    about = {"finishTime": 10_000, "failedMapAttempts": 1, "killedMapAttempts": 0}
    retried = attempts((1000, 3000, "FAILED"), (4000, 9000, "SUCCEEDED"))
    found, asked = ask(tasks, about, http(200, retried))
    assert asked[3:] == [f"{ROOT}/tasks/task_1_1_m_0/attempts"]
    assert found is not None
    assert found["stages"][0]["tasks_s"] == [2.0, 4.0, 5.0]
    assert found["stages"][0]["retry_of"] == [None, None, 0]


def test_an_uber_job_is_its_master_alone() -> None:
    found, _ = ask([task("MAP", 6000, 11_000)], {"uberized": True, "finishTime": 12_000})
    assert found is not None
    assert [stage["tasks_s"] for stage in found["stages"]] == [[]]


def test_an_attempt_without_a_start_is_left_out_and_counted() -> None:
    answers = [
        http(200, {"tasks": {"task": [task("MAP", 1000, 5000), task("MAP", 0, 0, "KILLED", 1)]}}),
        http(200, CONF),
        http(200, {"job": {"finishTime": 9000, "killedMapAttempts": 1}}),
        http(200, attempts((0, 5000, "KILLED"))),
    ]
    with FakeServer(*answers) as server:
        history = History(server.url)
        found = history.mapreduce(APPLICATION)
    assert found is not None
    assert found["stages"][0]["tasks_s"] == [4.0]
    assert {reason: totals.attempts for reason, totals in history.left_out.items()} == {"start unknown": 1}


def test_a_replayed_job_of_the_history_ends_when_it_did() -> None:
    # Maps of 10 and 100 s; the reduce began by slow-start after the first and worked 60 s after the last.
    tasks = [task("MAP", 1000, 11_000), task("MAP", 1000, 101_000), task("REDUCE", 12_000, 161_000)]
    found, _ = ask(tasks, {})
    assert found is not None
    line = JobLine(job="j", queue="root.a", kind="mapreduce", submit_s=0.0, **found)
    allocations = parse_allocations('<allocations><queue name="a"/></allocations>')
    nodes = (NodeSpec("n", 16_384, 16),)
    result = simulate(SimSetup(nodes=nodes, allocations=allocations, jobs=[line.spec()]))
    assert result.makespan_s == pytest.approx(161, abs=5)


def test_tasks_are_in_the_order_in_which_they_began() -> None:
    """On two slots: the one that began last had no other beside it, and was short."""
    tasks = [task("MAP", 1000, 19_000), task("MAP", 19_500, 29_000), task("MAP", 1000, 19_500)]
    found, _ = ask(tasks, {})
    assert found is not None
    assert found["stages"][0]["tasks_s"] == [18.0, 18.5, 9.5]


def test_when_a_jobs_master_set_about_its_work() -> None:
    with FakeServer(http(200, {"job": {"startTime": 7000, "finishTime": 9000}}), http(200, {"job": {}})) as server:
        history = History(server.url)
        assert history.began_ms(APPLICATION) == 7000
        assert server.lines()[0] == ROOT
        assert history.began_ms(APPLICATION) is None


def test_a_job_that_the_history_does_not_know() -> None:
    with FakeServer(http(404, NOT_FOUND)) as server:
        assert History(server.url).mapreduce(APPLICATION) is None
    with FakeServer(http(200, {"tasks": {}}), http(200, CONF), http(404, NOT_FOUND)) as server:
        assert History(server.url).mapreduce(APPLICATION) is None
