"""MapReduce tasks from a JobHistoryServer, which is a server of prepared answers here."""

from __future__ import annotations

import pytest

from harness.experiments.history import History
from harness.jobs.recorded import JobLine
from harness.model.jobs import NodeSpec
from harness.sim.setup import SimSetup
from harness.sim.simulate import simulate
from harness.yarn.fair.parse import parse_allocations
from tests.yarn.fake_server import FakeServer, http

TASKS = {
    "tasks": {
        "task": [
            {"type": "MAP", "state": "SUCCEEDED", "startTime": 1000, "finishTime": 5000, "elapsedTime": 4000},
            {"type": "MAP", "state": "SUCCEEDED", "startTime": 1000, "finishTime": 9000, "elapsedTime": 8000},
            {"type": "MAP", "state": "KILLED", "startTime": 1000, "finishTime": 0, "elapsedTime": 0},
            {"type": "REDUCE", "state": "SUCCEEDED", "startTime": 6000, "finishTime": 12000, "elapsedTime": 6000},
        ]
    }
}
CONF = {"conf": {"property": [{"name": "mapreduce.map.memory.mb", "value": "2048"}, {"name": "x", "value": "y"}]}}


def test_mapreduce_tasks_of_the_history() -> None:
    with FakeServer(http(200, TASKS), http(200, CONF)) as server:
        found = History(server.url).mapreduce("application_1700000000000_0007")
        assert server.lines()[0] == "GET /ws/v1/history/mapreduce/jobs/job_1700000000000_0007/tasks"
    assert found is not None
    maps, reduces = found["stages"]
    assert (maps["tasks_s"], maps["memory_mb"]) == ([4.0, 8.0], 2048)
    # All of its six seconds, also the three that it waited for the last map.
    assert (reduces["tasks_s"], reduces["after"], reduces["slow_start"]) == ([6.0], ["map"], 0.05)
    assert found["am"] == {"memory_mb": 1536, "vcores": 1}


def test_a_replayed_job_of_the_history_ends_when_it_did() -> None:
    # Maps of 10 and 100 s; the reduce began by slow-start after the first and worked 60 s after the last.
    times = [("MAP", 1000, 11_000), ("MAP", 1000, 101_000), ("REDUCE", 12_000, 161_000)]
    tasks = [{"type": kind, "state": "SUCCEEDED", "startTime": a, "finishTime": b} for kind, a, b in times]
    with FakeServer(http(200, {"tasks": {"task": tasks}}), http(200, CONF)) as server:
        found = History(server.url).mapreduce("application_1700000000000_0007")
    assert found is not None
    line = JobLine(job="j", queue="root.a", kind="mapreduce", submit_s=0.0, **found)
    allocations = parse_allocations('<allocations><queue name="a"/></allocations>')
    nodes = (NodeSpec("n", 16_384, 16),)
    result = simulate(SimSetup(nodes=nodes, allocations=allocations, jobs=[line.spec()]))
    assert result.makespan_s == pytest.approx(161, abs=5)


def test_tasks_are_in_the_order_in_which_they_began() -> None:
    """On two slots: the one that began last had no other beside it, and was short."""
    times = [(1000, 19_000), (19_500, 29_000), (1000, 19_500)]
    tasks = [{"type": "MAP", "state": "SUCCEEDED", "startTime": a, "finishTime": b} for a, b in times]
    with FakeServer(http(200, {"tasks": {"task": tasks}}), http(200, CONF)) as server:
        found = History(server.url).mapreduce("application_1700000000000_0007")
    assert found is not None
    assert found["stages"][0]["tasks_s"] == [18.0, 18.5, 9.5]


def test_when_a_jobs_master_set_about_its_work() -> None:
    with FakeServer(http(200, {"job": {"startTime": 7000, "finishTime": 9000}}), http(200, {"job": {}})) as server:
        history = History(server.url)
        assert history.began_ms("application_1700000000000_0007") == 7000
        assert server.lines()[0] == "GET /ws/v1/history/mapreduce/jobs/job_1700000000000_0007"
        assert history.began_ms("application_1700000000000_0007") is None


def test_a_job_that_the_history_does_not_know() -> None:
    with FakeServer(
        http(404, {"RemoteException": {"exception": "NotFoundException", "message": "not found"}})
    ) as server:
        assert History(server.url).mapreduce("application_1700000000000_0007") is None
    with FakeServer(http(200, {"tasks": {}}), http(200, CONF)) as server:
        assert History(server.url).mapreduce("application_1700000000000_0007") is None
