"""Container sizes by a job's configuration, as Hadoop computes them."""

from __future__ import annotations

from typing import Any

import pytest

from harness.model.resources import Resource
from harness.traces.mapreduce import Attempt, container_sizes, heap_mb, load_of, retries, waits_of
from harness.traces.recorded import JobLine


@pytest.mark.parametrize(
    ("configuration", "expected"),
    [
        ({}, 1024),
        ({"mapreduce.map.memory.mb": "3072"}, 3072),
        ({"mapreduce.map.memory.mb": "3072", "mapreduce.map.java.opts": "-Xmx200m"}, 3072),
        ({"mapreduce.map.memory.mb": "-1", "mapreduce.map.java.opts": "-Xmx3276m"}, 4095),
        ({"mapreduce.map.memory.mb": "0", "mapreduce.map.java.opts": "-Xmx1g -Xmx2g"}, 2560),
        ({"mapreduce.map.memory.mb": "-1", "mapreduce.map.java.opts": "-server"}, 1024),
        ({"mapreduce.map.memory.mb": "-1", "mapred.child.java.opts": "-Xmx800m"}, 1000),
        ({"mapreduce.map.memory.mb": "-1", "mapreduce.map.java.opts": "-Xmx1000m",
          "mapreduce.job.heap.memory-mb.ratio": "0.5"}, 2000),
        ({"mapreduce.map.memory.mb": "1024", "mapreduce.map.resource.memory-mb": "5120"}, 5120),
        ({"mapreduce.map.resource.memory": "2 Gi"}, 2048),
        ({"mapreduce.map.memory.mb": "much"}, 1024),
        ({"mapred.job.map.memory.mb": "1536"}, 1536),
    ],
)  # fmt: skip
def test_the_memory_of_a_map(configuration: dict[str, Any], expected: int) -> None:
    assert container_sizes(configuration.items()).map.memory_mb == expected


def test_what_is_not_given_is_told() -> None:
    assert container_sizes(()).assumed == ("master", "map", "reduce")
    given = {"yarn.app.mapreduce.am.resource.mb": 2048, "mapreduce.map.memory.mb": 1, "mapreduce.reduce.memory.mb": 2}
    found = container_sizes(given.items())
    assert found.assumed == ()
    assert found.master == Resource(2048, 1)
    assert container_sizes((), heaps_mb={"map": 300}).map.memory_mb == 375, "a heap is no container: / 0.8"


def test_slow_start() -> None:
    name = "mapreduce.job.reduce.slowstart.completedmaps"
    assert [container_sizes([(name, text)]).slow_start for text in ("0.8", "0", "7", "x")] == [0.8, 0.0, 1.0, 0.05]


@pytest.mark.parametrize(
    ("options", "expected"),
    [("-Xmx200m", 200), ("-Xmx2G -ea", 2048), ("-Xmx1048576k", 1024), ("-Xmx1073741824", 1024), ("-Xms1g", None),
     (None, None), ("-Xmx0m", None), ("-Xmx99999999999999999999m", None)],
)  # fmt: skip
def test_the_heap_of_a_jvm(options: str | None, expected: int | None) -> None:
    assert heap_mb(options) == expected


def test_which_attempt_repeats_which() -> None:
    """One that began while another of its task ran is a speculative copy: it stands beside that one."""
    attempts = [
        Attempt("map", 0, 100, task="a"),
        Attempt("map", 0, 60, task="b"),
        Attempt("map", 40, 90, task="a"),
        Attempt("map", 60, 80, task="b"),
        Attempt("map", 100, 200, task="a"),
        Attempt("map", 100, 200, task="a"),
        Attempt("map", 300, 400),
        Attempt("map", 500, 600),
    ]
    assert retries(attempts) == [None, None, None, 1, 0, 2, None, None]


def early_reduces(*, shuffled: bool) -> tuple[list[Attempt], list[Attempt]]:
    """Maps until 100 s; a reduce from 20 to 130 s, one that was killed, and one from 110 to 150 s: 8 s to shuffle."""
    maps = [Attempt("map", 0, 60_000), Attempt("map", 0, 100_000)]
    reduces = [
        Attempt("reduce", 20_000, 130_000, shuffled_ms=102_000 if shuffled else 0),
        Attempt("reduce", 30_000, 50_000),
        Attempt("reduce", 110_000, 150_000, shuffled_ms=118_000 if shuffled else 0),
    ]
    return maps, reduces


def test_what_a_reduce_waits_for_maps_is_not_its_work() -> None:
    """Of 110 s it waited for 72: a reduce without maps to wait for needs 8 s until its shuffle has ended."""
    maps, reduces = early_reduces(shuffled=True)
    found = waits_of(reduces, maps)
    assert found.waits_ms == (72_000, 0, 0)
    assert found.tail == pytest.approx(30 / 38, abs=1e-6)


def test_without_the_ends_of_shuffles_all_that_is_known_to_be_work_comes_after_the_maps() -> None:
    maps, reduces = early_reduces(shuffled=False)
    assert waits_of(reduces, maps).waits_ms == (80_000, 0, 0)
    assert waits_of(reduces, maps).tail == 1.0
    late = waits_of(reduces[2:], maps)
    assert (late.waits_ms, late.tail) == ((0,), 0.0), "nobody waited"


@pytest.mark.parametrize("shuffled", [True, False])
def test_a_job_line_has_the_waits_and_the_simulator_the_work(shuffled: bool) -> None:
    maps, reduces = early_reduces(shuffled=shuffled)
    load = load_of([*maps, *reduces], container_sizes(()))
    line = JobLine(job="a", queue="root.a", kind="mapreduce", submit_s=0.0, **load)
    assert line.stages[1].tasks_s == [110.0, 20.0, 40.0], "its container was held for as long"
    _, stage = line.spec().stages
    work_s = 38.0 if shuffled else 30.0
    assert stage.duration.values_s == (work_s, 20.0, 40.0)
    assert stage.tail * work_s == pytest.approx(30.0, abs=1e-4)
