"""Container sizes by a job's configuration, as Hadoop computes them."""

from __future__ import annotations

from typing import Any

import pytest

from harness.model.resources import Resource
from harness.traces.mapreduce import Attempt, container_sizes, heap_mb, retries


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
