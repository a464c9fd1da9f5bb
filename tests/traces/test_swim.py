"""The SWIM trace: the committed file's totals, and every way a trace can be broken."""

from __future__ import annotations

from itertools import islice, pairwise
from pathlib import Path

import pytest

from harness.base.errors import InputError
from harness.jobs.workloads import build_jobs, load_workload
from harness.traces.swim import SwimRow, read_swim

ROOT = Path(__file__).resolve().parents[2]
TRACE = ROOT / "workloads" / "facebook" / "FB-2009_samples_24_times_1hr_1.tsv"
GOOD = "job0\t23\t23\t410483\t0\t2513586060\njob1\t126\t103\t51616\t5\t7\n"


def test_the_whole_trace_has_the_papers_totals() -> None:
    rows = list(read_swim(TRACE))
    assert len(rows) == 6638
    assert sum(row.maps for row in rows) == 506_098
    assert max(row.maps for row in rows) == 25_008
    assert sum(row.shuffle_bytes == 0 for row in rows) == 4833
    assert sum(row.input_bytes == 0 for row in rows) == 149
    assert (rows[0].submit_s, rows[-1].submit_s) == (23, 86_402)
    assert sum(row.maps == 1 for row in rows) / len(rows) == pytest.approx(0.81, abs=0.005)


@pytest.mark.parametrize(
    ("size", "maps"), [(0, 1), (1, 1), (64 * 2**20, 1), (64 * 2**20 + 1, 2), (10 * 64 * 2**20, 10)]
)
def test_maps_are_splits_begun(size: int, maps: int) -> None:
    assert SwimRow("j", 0, size, 0, 0).maps == maps


@pytest.mark.parametrize(("shuffled", "reduces"), [(0, 0), (1, 1), (10**9, 1), (10**9 + 1, 2), (10**15, 999)])
def test_reduces_are_gigabytes_begun(shuffled: int, reduces: int) -> None:
    assert SwimRow("j", 0, 0, shuffled, 0).reduces == reduces


def test_the_day_is_streamed_in_order_and_complete() -> None:
    workload = load_workload(ROOT / "workloads" / "facebook" / "fb2009-day.yaml")
    jobs = build_jobs(workload, queue="root.Facebook", seed=1)
    assert iter(jobs) is jobs, "a whole trace is an iterator, not a list"
    first = list(islice(jobs, 3))
    rest = list(jobs)
    everything = first + rest
    assert [job.submit_s for job in first] == [23.0, 126.0, 135.0]
    assert sum(stage.tasks for job in everything for stage in job.stages if stage.name == "map") == 506_098
    assert all(a.submit_s <= b.submit_s for a, b in pairwise(everything))


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ("", None, "empty"),
        ("job0\t23\t23\t410483\t0\n", 1, "5 tab-separated"),
        (GOOD + "job2\t135\t9\t1048668636\t0", 3, "cut off"),
        (GOOD[:-6], 2, "cut off"),
        (GOOD + "job2\tsoon\t9\t1\t0\t1\n", 3, "'soon'"),
        (GOOD + "job2\t200\t9\t-1\t0\t1\n", 3, "'-1'"),
        (GOOD + "job2\t200\t9\t1.5\t0\t1\n", 3, "'1.5'"),
        (GOOD + "job2\t200\t9\tnan\t0\t1\n", 3, "'nan'"),
        (GOOD + "job2\t200\t9\t1_0\t0\t1\n", 3, "'1_0'"),
        (GOOD + "job2\t200\t9\t" + "9" * 30 + "\t0\t1\n", 3, "beyond"),
        (GOOD + "job2\t100\t9\t1\t0\t1\n", 3, "before the previous"),
        (GOOD + "job1\t200\t9\t1\t0\t1\n", 3, "appears twice"),
        (GOOD + "\n", 3, "1 tab-separated"),
    ],
)
def test_a_broken_trace_is_refused_with_its_line(tmp_path: Path, text: str, line: int | None, says: str) -> None:
    path = tmp_path / "trace.tsv"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        list(read_swim(path))
    assert says in caught.value.what
    assert caught.value.where == (f"{path}:{line}" if line else str(path))
    assert caught.value.hint


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "trace.tsv"
    path.write_bytes(b"job0\xff\xfe\t1\t1\t1\t1\t1\n")
    with pytest.raises(InputError, match="UTF-8"):
        list(read_swim(path))


def test_a_missing_trace_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        list(read_swim(tmp_path / "none.tsv"))
    with pytest.raises(InputError, match="cannot be read"):
        list(read_swim(tmp_path))
