"""Containers held by reduces that wait for maps, by slow start, on a small load."""

from __future__ import annotations

from pathlib import Path

from studies.hoarding import measure


def test_reduces_that_start_early_hold_containers_and_do_not_work_more(tmp_path: Path) -> None:
    trace = tmp_path / "trace.tsv"
    rows = (f"job{at}\t{at}\t1\t{300 * 64 * 2**20}\t{20 * 10**9}\t0\n" for at in range(20))
    trace.write_text("".join(rows))
    found = measure(trace, nodes=4)
    assert (found["jobs"], found["maps"], found["reduces"]) == (20, 6000, 400)
    early, late = found["slow_start"]["0.05"], found["slow_start"]["1.0"]
    assert early["open"] == late["open"] == 0, "no job is lost where nodes have more than fifteen containers"
    # 6,000 maps of 86 s and 400 reduces of 889 s on average, of which chance makes more or less.
    assert 600_000 < late["container_s"] < 1_200_000
    assert early["container_s"] > 1.1 * late["container_s"]
    assert found["waiting"] == round(1 - late["container_s"] / early["container_s"], 4)
