"""Spark's programs on a real cluster: they compute, answers are right, tasks are measured, a failing one says why.

One cluster of local processes for all. A query and k-means here; ALS, all queries, and the ends that are no success are
in the long series.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from harness.base.errors import InputError
from harness.experiments.real.single import Done, ProgramRunner
from harness.jobs.engines.base import Request
from harness.jobs.spark.catalogue import programs
from harness.yarn.answers import AppStatus
from harness.yarn.rest import RestClient
from tests.cluster.local_clusters import one_queue, runner

pytestmark = [pytest.mark.java, pytest.mark.live, pytest.mark.xdist_group("live-spark")]

EXECUTOR_MB = 1024
DATA = {"tpch": 5_000_000, "points": 200_000, "ratings": 200_000}
LIMIT_S = 1500.0


class Cluster:
    """A running cluster, and data sets to read on it."""

    def __init__(self, folder: Path, rest: RestClient, data_set: Callable[[str, int], Path]) -> None:
        self.folder, self.rest, self._runs, self._data_set = folder, rest, 0, data_set

    def client(self) -> ProgramRunner:
        return runner(self.rest, self.folder)

    def request(self, name: str, **settings: str) -> Request:
        kind = programs()[name].data[0]
        self._runs += 1
        return Request(
            name,
            (self._data_set(kind, DATA[kind]),),
            self.folder / "out" / str(self._runs),
            "root.a",
            task_mb=EXECUTOR_MB,
            am_mb=1024,
            executors=1,
            executor_cores=2,
            settings=settings,
            timeout_s=LIMIT_S,
        )

    def run(self, name: str, **settings: str) -> Done:
        (done,) = self.client().run(self.request(name, **settings))
        assert done.why is None
        assert done.verdict is not None
        assert done.verdict.wrong is None
        assert [app.final_status for app in done.apps] == ["SUCCEEDED"]
        return done


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory, data_set: Callable[[str, int], Path]) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("spark")
    with one_queue(folder) as rest:
        yield Cluster(folder, rest, data_set)


def test_a_query_of_tpch(spark: Cluster) -> None:
    done = spark.run("tpch-q6")
    assert done.verdict is not None
    assert done.verdict.records == 1
    executors = [one for one in done.attempts if one.kind == "executor"]
    tasks = [one for one in done.attempts if one.kind == "task"]
    assert len(executors) == 1
    assert executors[0].container.startswith("container_")
    assert len(tasks) >= 2
    assert {one.outcome for one in tasks} == {"finished"}
    assert all(executors[0].started_ms <= one.started_ms <= one.ended_ms for one in tasks)
    # The master and the executor are accounted as long as they are held.
    held_s = (executors[0].ended_ms - executors[0].started_ms) / 1000
    assert done.apps[0].memory_seconds > EXECUTOR_MB * held_s


def test_kmeans(spark: Cluster) -> None:
    done = spark.run("kmeans", iterations="3")
    assert done.verdict is not None
    assert done.verdict.records == 10


@pytest.mark.long
def test_all_queries_of_tpch_in_one_application(spark: Cluster) -> None:
    done = spark.run("tpch-all")
    assert done.verdict is not None
    assert done.verdict.records > 100


@pytest.mark.long
def test_als(spark: Cluster) -> None:
    done = spark.run("als", iterations="2", rank="3")
    assert done.verdict is not None
    assert done.verdict.records > 1000


@pytest.mark.long
def test_a_failing_one_says_why_and_what_does_not_fit_does_not_start(spark: Cluster) -> None:
    broken = replace(spark.request("tpch-q6"), properties={"spark.eventLog.dir": "file:///nosuch"})
    client = spark.client()
    (failed,) = client.run(broken)
    assert re.search(r"tpch-q6 failed; application_\S+ FAILED: .*its log ends: .*nosuch", failed.why or "")
    before = len(spark.rest.apps())
    with pytest.raises(InputError, match=r"hold the application master .* and 1 executor\(s\)"):
        client.run(replace(spark.request("tpch-q6"), executors=3))
    assert len(spark.rest.apps()) == before


@pytest.mark.long
def test_an_interrupted_one_is_killed(spark: Cluster) -> None:
    seen: list[str] = []

    def step(apps: list[AppStatus]) -> None:
        seen.append(apps[-1].id)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        spark.client().run(spark.request("kmeans"), on_step=step)
    assert spark.rest.app(seen[0]).state == "KILLED"
    assert not any(not app.final for app in spark.rest.apps())


@pytest.mark.long
@pytest.mark.parametrize("number", range(1, 23))
def test_each_query_in_an_application_of_its_own(spark: Cluster, number: int) -> None:
    spark.run(f"tpch-q{number}")
