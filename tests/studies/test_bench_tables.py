"""The tables of docs/reference/bench.md have a row for each thing measured, of an engine's record fewer."""

from __future__ import annotations

from typing import Any

from studies.bench_tables import bench, first_run, peers

ENGINE: dict[str, Any] = {"events_per_s": 2_000_000, "core_ratio": 0.02, "load": 0.95}
RUN: dict[str, Any] = {
    "cpu_s": 1.0,
    "wall_s": 1.0,
    "events": 10,
    "events_per_s": 10,
    "peak_mb": 1.0,
    "peak_before_mb": 1.0,
    "nodes": 50_000,
    "days": 1.0,
}


def test_a_row_each() -> None:
    values: dict[str, Any] = {"engine": {"fair": ENGINE, "hltrf_1000": {**ENGINE, "of_4_queues": 0.4}}}
    assert [line.split(" |")[0] for line in bench(values).splitlines()[2:]] == ["| `fair`", "| `hltrf`, 1,000 queues"]
    row = {"queues": 1000, "ms": 1.5}
    values |= {
        "scale": {"largest": {**RUN, **ENGINE, "applications": 10_000, "of_100_nodes": 0.5}},
        "fb_day": RUN,
        "growth": [RUN],
        "first": dict.fromkeys(("import_cpu_s", "compile_wall_s", "compile_cpu_s", "run_wall_s", "run_cpu_s"), 1.0),
        "cells": {"cells": 1000, "processes": {"own_s": 0.1, "overhead_s": 0.002, "busy": 0.98}},
        "decision": {"ltrf": [row]},
        "control": {"ltrf": [row]},
        "cost": {"fb_day": 1.0, "import": 1.0, "compile": 1.0, "run": 1.0, "tick_ltrf_1000": 210.0},
    }
    table = bench(values)
    assert "| `ltrf`, 50,000 nodes, 10,000 applications |" in table
    assert "| 1,000 cells on two processes | 100 ms each, 2.0 ms besides | | 98 % busy |" in table
    assert "| a control tick, `ltrf`, 1,000 queues | 1.50 ms | 210.00 | |" in table
    assert {line.count("|") for line in table.splitlines()} == {5}


def test_peers_and_a_first_run() -> None:
    by = {"wall_s": 100.0, "cpu_s": 150.0, "peak_mb": 4000}
    values: dict[str, Any] = {"nodes": 3000, "tasks": 60_000, "jobs": 160, "task_s": 20, "sls": by, "ours": by}
    assert peers(values).count("602 allocations/s") == 2
    division = {"kai": [{"queues": 10, "ms": 0.5}], "ours": [{"queues": 10, "ms": 0.1}]}
    assert "among 10 queues" in peers({**values, "division": {**division, "kai_peak_mb": 1, "ours_peak_mb": 1}})
    step = {"first_s": 1.0, "wall_s": 2.0, "cpu_s": 3.0}
    assert first_run(dict.fromkeys(("install", "first", "second"), step)).count("\n") == 4
