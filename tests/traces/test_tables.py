"""Logs of one line a job: the Standard Workload Format, and a table of jobs of one's own."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.base.errors import InputError
from harness.predict.foreign import Lacks, any_trace
from harness.traces.formats import FORMATS, Unreadable, format_of, head_of
from harness.traces.formats.swf import NEVER_RAN, PART
from harness.traces.recorded import Header, NodeLine, QueueLine, Trace

#: In the archive's shape: blanks before numbers, comments with the machine and its queues, unknown fields as -1.
SWF = """; Version: 2.2
; Computer: a cluster
; UnixStartTime: 843458400
; MaxNodes: 10
; MaxProcs: 25
; Queue: 1 batch
; Queue: 2 two words
;
    1        0     60   1000    4   -1   2097152    4  1200     -1  1   7  1  1  1  1 -1 -1
    2      100      0     50    1   -1        -1    1   100  1048576  0   8  1  1  2  1 -1 -1
    3      200     -1     -1   -1   -1        -1    8   100     -1  5   8  1  1  1  1 -1 -1
    4      300     10     70    2   -1        -1    2   100     -1  2   7  1  1  1  1 -1 -1
    5      400     10     70   -1   -1        -1    2   100     -1  1  -1  1  1 -1  1 -1 -1
"""
CSV = """job;queue;submit_s;tasks;task_s;memory_mb;finished_s;colour
nightly;etl;100;40;30;2048;195;red
;root.adhoc;50;2;20;;;blue
late;adhoc;120;1;x;1024;;
none;adhoc;130;0;5;1024;;
"""


def played(path: Path, cluster: Header | None = None) -> Trace:
    found = any_trace(path, cluster, path.parent / "out" / "trace.jsonl")
    assert isinstance(found, Trace), found
    return found


def test_a_log_of_the_archive_is_its_jobs_machine_and_queues(tmp_path: Path) -> None:
    path = tmp_path / "log.swf"
    path.write_text(SWF)
    found = played(path)
    assert [(node.count, node.vcores, node.memory_mb) for node in found.header.nodes] == [
        (5, 2, 2 * 2048),
        (5, 3, 3 * 2048),
    ]
    jobs = {job.job: job for job in found.jobs}
    assert list(jobs) == ["1", "2", "5"]
    one = jobs["1"]
    assert (one.queue, one.user, one.submit_s, one.started_s, one.finished_s) == ("root.batch", "user7", 0, 60, 1060)
    assert (one.stages[0].memory_mb, one.stages[0].vcores, one.stages[0].tasks_s) == (2048, 1, [1000.0] * 4)
    # A failed job held what it held. Its memory is what it had asked for; its queue's comment is two words, cut after
    # the first.
    assert (jobs["2"].queue, jobs["2"].stages[0].memory_mb, jobs["2"].submit_s) == ("root.two", 1024, 100)
    # Processors that were asked for stand for those that are unknown.
    assert (jobs["5"].queue, jobs["5"].user, len(jobs["5"].stages[0].tasks_s)) == ("root.default", "unknown", 2)
    assert {line.reason: line.jobs for line in found.header.left_out} == {NEVER_RAN: 1, PART: 1}
    assert any("root.default (1 jobs)" in text for text in found.header.assumed)


def test_a_log_without_its_machine_wants_a_file_of_the_cluster(tmp_path: Path) -> None:
    path = tmp_path / "log.swf"
    path.write_text("\n".join(line for line in SWF.splitlines() if "Max" not in line))
    assert isinstance(any_trace(path, None, tmp_path / "out" / "trace.jsonl"), Lacks)


def test_a_table_of_jobs_is_its_rows(tmp_path: Path) -> None:
    path = tmp_path / "jobs.csv"
    path.write_text(CSV)
    cluster = Header(nodes=[NodeLine(count=2, memory_mb=8192, vcores=8)], queues={"root.etl": QueueLine(weight=3)})
    found = played(path, cluster)
    jobs = {job.job: job for job in found.jobs}
    assert set(jobs) == {"2", "nightly"}
    nightly, other = jobs["nightly"], jobs["2"]
    assert (nightly.queue, nightly.submit_s, nightly.finished_s) == ("root.etl", 50, 145)
    assert (nightly.stages[0].memory_mb, nightly.stages[0].tasks_s) == (2048, [30.0] * 40)
    assert (other.queue, other.submit_s, other.finished_s) == ("root.adhoc", 0, None)
    (bad, empty) = found.header.left_out
    assert (bad.jobs, empty.jobs) == (1, 1)
    assert "task_s is 'x', not a number" in bad.reason
    assert f"{path}:4" in bad.reason
    assert "no tasks" in empty.reason
    assert "columns that are not read: colour" in found.header.assumed


@pytest.mark.parametrize("columns", ["job,queue,submit_s,tasks", "submit_s,tasks,task_s,tasks", "a,b"])
def test_a_table_without_its_columns_is_named_with_them(tmp_path: Path, columns: str) -> None:
    path = tmp_path / "jobs.csv"
    path.write_text(f"{columns}\n" + ",".join("1" for _ in columns.split(",")) + "\n")
    assert isinstance(format_of(path, head_of(path)), Unreadable)
    with pytest.raises(InputError, match="without the columns of a table of jobs") as refused:
        any_trace(path, None, tmp_path / "trace.jsonl")
    assert "submit_s, tasks, task_s" in str(refused.value.hint)


def test_each_file_has_one_reader(tmp_path: Path) -> None:
    for name, text in (("SWF", SWF), ("CSV", CSV)):
        path = tmp_path / name
        path.write_text(text)
        assert [one.name for one in FORMATS if one.recognises(path, head_of(path))] == [name]
