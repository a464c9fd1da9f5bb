"""``yarnfair bench``: small measurements are what the documents say that they are."""

from __future__ import annotations

from itertools import pairwise

import pytest

from harness.base.errors import YarnfairError
from harness.bench import run as bench
from harness.bench.calibration import ratios
from harness.bench.scale import occupancy
from harness.cli.bench import table
from harness.systems.mrorder.bench import measure_order


@pytest.mark.parametrize("policy", ["fair", "ltrf", "user_policy", "capacity"])
def test_the_engine_is_measured_under_load(policy: str) -> None:
    figures = bench.measure_engine(policy, nodes=60, warm_s=90.0, events=6000)
    assert figures["load"] >= 0.9
    assert figures["queues"] >= 4
    assert figures["pending_applications"] >= 100
    assert figures["events"] >= 4000
    assert figures["events_per_s"] > 1000
    for name in ("calibration", "core"):
        low, high = figures[f"{name}_quartiles"]
        assert 0 < low <= figures[f"{name}_ratio"] <= high


def test_a_ratio_is_to_the_loops_beside_a_stretch_whatever_the_machines_speed_does() -> None:
    speeds = [4e6, 12e6, 12e6, 3e6, 1e6, 30e6]
    took = [1 / before + 1 / after for before, after in pairwise(speeds)]
    found = ratios([0.25 * 2 / both for both in took], {"core": speeds})
    assert found == {"core_steps_per_s": 8_000_000, "core_ratio": 0.25, "core_quartiles": [0.25, 0.25]}


def test_the_day_loads_its_cluster_by_90_per_cent() -> None:
    jobs = list(bench._day(1))
    maps = sum(job.stages[0].tasks for job in jobs)
    assert (len(jobs), maps) == (6638, 506_098)
    tasks = sum(stage.tasks for job in jobs for stage in job.stages)
    assert 0.85 < tasks * bench.TASK_S / 86400 / (4 * bench.day_nodes()) <= 0.9


def test_growth_is_loaded_alike() -> None:
    loads = {}
    for nodes in (10, 100):
        figures = bench.measure_nodes(nodes, 2400.0)
        assert figures["events"] == 2 * (sum(j.stages[0].tasks + 1 for j in bench._steady(nodes, 2400.0)))
        loads[nodes] = figures["load"]
    assert abs(loads[10] - loads[100]) < 0.1


def test_a_measurement_in_its_own_process() -> None:
    found = bench.in_own_process("decisions", ["ltrf", "static"], [10, 20], timeout_s=120.0)
    assert [row["queues"] for row in found["ltrf"]] == [10, 20]
    assert all(row["ms"] > 0 for rows in found.values() for row in rows)
    with pytest.raises(YarnfairError, match="decisions failed"):
        bench.in_own_process("decisions", ["no-such-policy"], [10], timeout_s=120.0)


def test_a_control_tick_grows_in_proportion_to_the_queues() -> None:
    found = bench.measure_control(("ltrf", "hltrf"), (100, 400))
    for rows in found.values():
        few, many = rows
        assert (few["queues"], many["queues"]) == (100, 400)
        assert 0 < many["ms"] < 8 * few["ms"]


def test_the_table_fits_80_columns() -> None:
    engine = {"events_per_s": 1_234_567, "calibration_ratio": 0.123456, "core_ratio": 0.0123456, "load": 0.95}
    run = {
        "nodes": 6000,
        "days": 10.0,
        "events": 123_456_789,
        "wall_s": 123.4,
        "events_per_s": 1_000_000,
        "peak_mb": 999,
    }
    text = table(
        {
            "engine": dict.fromkeys(("fair", "ltrf", "user_policy"), engine),
            "fb_day": run,
            "idle_year": run,
            "growth": [run],
            "scale": {"nodes_10": {**run, "applications": 10_000, "of_100_nodes": 0.51}},
            "first": dict.fromkeys(
                ("import_cpu_s", "compile_wall_s", "compile_cpu_s", "run_wall_s", "run_cpu_s"), 99.94
            ),
            "cells": {"processes": dict.fromkeys(("own_s", "overhead_s", "busy"), 0.934)},
            "decision": {"naive-hltrf": [{"queues": n, "ms": 123.456} for n in (10, 100, 1000, 10000)]},
            "control": {"naive-hltrf": [{"queues": n, "ms": 123.456} for n in (4, 100, 1000, 10000)]},
            "order": {"jobs_9_s": 1.0, "jobs_in_60_s": 15},
            "wall_s": 500.0,
        }
    )
    assert max(len(line) for line in text.splitlines()) <= 80
    assert "1,234,567" in text


def test_memory_by_what_it_is_for_is_of_the_state_alone() -> None:
    few, many = (bench.measure_engine("fair", 40, 60.0, 2000, applications) for applications in (40, 400))
    for figures in (few, many):
        found = figures["mb_per_1000"]
        assert set(found) == {"nodes", "applications", "containers"}
        # A record is some hundred bytes, and arrays are at most a few times as long as what is in them.
        assert all(0.01 < mb < 200 for mb in found.values())
    assert many["pending_applications"] > few["pending_applications"]


def test_workers_are_busy_with_cells_for_a_part_of_their_time() -> None:
    # Three seconds of two workers, of which the cells had 4.8 of 6.
    assert occupancy(4.8, 3.0, cells=4, workers=2) == {"own_s": 1.2, "overhead_s": 0.3, "busy": 0.8}
    # Clocks that disagree by a little give no more than everything.
    assert occupancy(6.002, 3.0, cells=4, workers=2) == {"own_s": 1.5005, "overhead_s": 0.0, "busy": 1.0}


def test_cells_are_measured_on_processes_and_on_dask() -> None:
    found = bench.measure_cells(4)
    assert (found["cells"], found["workers"]) == (4, 2)
    for place in ("processes", "dask"):
        if place in found:
            row = found[place]
            assert row["own_s"] > 0
            assert row["overhead_s"] >= 0
            assert 0 < row["busy"] <= 1


def test_job_ordering_s_figures() -> None:
    found = measure_order(limit_s=0.2)
    assert 0 < found["jobs_9_s"] < 20
    assert 5 <= found["jobs_in_60_s"] <= 20
