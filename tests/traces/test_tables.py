"""Logs of one line a job: the Standard Workload Format, and a table of jobs of one's own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import yarnfair
from harness.base.errors import InputError
from harness.experiments.resolve import jobs_of, load_experiment, variants_of
from harness.experiments.simulated import setup_of
from harness.predict.foreign import Lacks, any_trace
from harness.predict.replay import experiment_text, left_out
from harness.sim.simulate import simulate
from harness.traces.formats import FORMATS, Unreadable, format_of, head_of
from harness.traces.formats.jobs_csv import JobsCsv
from harness.traces.formats.swf import NEVER_RAN, PART, Swf
from harness.traces.recorded import Header, NodeLine, QueueLine, Trace
from harness.yarn.capacity.convert import DOMINANT

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


def swf_line(number: int, processors: int, *, submit_s: float = 0, run_s: float = 1000, memory_kb: float = -1) -> str:
    return f"{number} {submit_s} 0 {run_s} {processors} -1 {memory_kb} {processors} {run_s} -1 1 1 1 1 1 1 -1 -1"


def log(tmp_path: Path, *lines: str) -> Path:
    path = tmp_path / "log.swf"
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize(
    ("nodes", "jobs"),
    [
        (1, [swf_line(1, 100)]),
        (10, [swf_line(1, 100, memory_kb=1500 * 1024)]),
        (10, [swf_line(number, 1) for number in range(1, 101)]),
    ],
    ids=["one-job", "one-job-on-nodes", "a-job-a-processor"],
)
def test_masters_of_a_log_take_nothing_from_its_jobs(tmp_path: Path, nodes: int, jobs: list[str]) -> None:
    path = log(tmp_path, "; MaxProcs: 100", f"; MaxNodes: {nodes}", *jobs)
    yarnfair.replay(path, ["fair"], out=tmp_path / "out", processes=1)
    summary = json.loads((tmp_path / "out" / "fair" / "summary.json").read_text())
    assert summary["makespan_s"] == pytest.approx(1000, abs=4)


@pytest.mark.parametrize(
    "cluster", [None, Header(nodes=[NodeLine(memory_mb=32768, vcores=8)], queues={"root.x": QueueLine()})]
)
def test_a_processor_takes_one_container_on_either_scheduler(tmp_path: Path, cluster: Header | None) -> None:
    """Jobs of little memory on a machine whose memory a large one decides: Hadoop's default counts memory alone."""
    large = swf_line(1, 1, run_s=10, memory_kb=4096 * 1024)
    small = [swf_line(number, 1, submit_s=20, memory_kb=512 * 1024) for number in range(2, 26)]
    trace = played(log(tmp_path, "; MaxProcs: 8", large, *small), cluster)
    assert trace.header.capacity == {"resource-calculator": DOMINANT}
    for scheduler in ("fair", "capacity"):
        text = experiment_text(trace, "log", "out/trace.jsonl", schedulers=[scheduler], policies=[scheduler])
        (tmp_path / "log.yaml").write_text(text)
        experiment = load_experiment(str(tmp_path / "log.yaml"))
        result = simulate(setup_of(experiment, variants_of(experiment)[0], jobs_of(experiment, 1)[0]))
        assert result.samples.allocated_vcores.max() == 8, scheduler
        assert result.end_s == pytest.approx(3020, abs=60), "three rounds of eight"
    assert left_out(trace.header, ["fair", "capacity"]) == []
    own = Header(
        nodes=[NodeLine(memory_mb=8192, vcores=8)],
        queues={"root.x": QueueLine()},
        capacity={"resource-calculator": "x"},
    )
    assert played(tmp_path / "log.swf", own).header.capacity == {"resource-calculator": "x"}


@pytest.mark.parametrize(
    ("said", "vcores"), [("2,048", 2048), ("2048 (of 2100)", 2048), ("1e3", None), ("20x", None), ("-1", None)]
)
def test_the_machine_is_as_large_as_its_comment_says(tmp_path: Path, said: str, vcores: int | None) -> None:
    found = Swf().read(log(tmp_path, f"; MaxProcs: {said}", swf_line(1, 4)))
    assert [node.vcores for node in found.nodes] == ([] if vcores is None else [vcores])


def test_what_a_log_does_not_say_of_memory_is_said(tmp_path: Path) -> None:
    path = log(tmp_path, "; MaxProcs: 8", swf_line(1, 16, memory_kb=0), swf_line(2, 1, memory_kb=1500 * 1024))
    found = played(path)
    assert [job.stages[0].memory_mb for job in found.jobs] == [1024, 1500]
    assert [node.memory_mb for node in found.header.nodes] == [8 * 2048]
    assumed = " | ".join(found.header.assumed)
    assert "containers of unknown memory have 1,024 MB (1 jobs)" in assumed
    assert "the nodes have 2,048 MB a processor" in assumed
    assert "8 processors and its largest job 16" in assumed
    given = played(path, Header(nodes=[NodeLine(memory_mb=8192, vcores=8)], queues={"root.batch": QueueLine()}))
    assert "the nodes have" not in " | ".join(given.header.assumed), "the user's nodes are not assumed"


@pytest.mark.parametrize(
    "text",
    [
        b"\xef\xbb\xbf; MaxProcs: 8\n" + swf_line(1, 4).encode(),
        b" ; MaxProcs: 8\n" + swf_line(1, 4).encode(),
        b"; Acknowledge: Universit\xe4t\n; MaxProcs: 8\n" + swf_line(1, 4).encode(),
        b"; MaxProcs: 8\nnothing\n" + swf_line(1, 4).encode(),
        "\n".join(["1 2 3", *(swf_line(number, 4) for number in range(1, 5))]).encode(),
    ],
    ids=["mark", "blank", "Latin-1", "bad-line", "no-comments"],
)
def test_a_log_is_recognised_by_more_than_its_first_lines(tmp_path: Path, text: bytes) -> None:
    path = tmp_path / "log"
    path.write_bytes(text)
    found = format_of(path, head_of(path))
    assert isinstance(found, Swf)
    reading = found.read(path)
    assert reading.jobs
    assert bool(reading.nodes) == (b"MaxProcs" in text)


@pytest.mark.parametrize(
    "bad",
    [
        swf_line(3, 1, submit_s=1e300),
        swf_line(3, 1, submit_s=1e12),
        swf_line(3, 1, memory_kb=1e12),
        swf_line(3, 1).replace(" 1000 ", " 1_000 "),
    ],
    ids=["no-time", "far-away", "memory", "underscore"],
)
def test_one_bad_line_of_a_log_leaves_the_others(tmp_path: Path, bad: str) -> None:
    found = played(log(tmp_path, "; MaxProcs: 8", swf_line(1, 4), swf_line(2, 4), bad))
    assert [job.job for job in found.jobs] == ["1", "2"]
    assert found.header.nodes[0].memory_mb == 8 * 1024
    (line,) = found.header.left_out
    assert f"{tmp_path / 'log.swf'}:4" in line.reason


CLUSTER = Header(nodes=[NodeLine(memory_mb=8192, vcores=8)], queues={"root.etl": QueueLine()})


@pytest.mark.parametrize(
    "bad",
    [
        "etl.,0,1,1",
        "root,0,1,1",
        "a b,0,1,1",
        "root.etl.x,0,1,1",
        "etl,1700000000,1,1",
        '"e\ntl",0,1,1',
        "etl,0,1_0,1",
        "etl,0,1,\u0661\u0662",
    ],
)
def test_one_bad_row_of_a_table_leaves_the_others(tmp_path: Path, bad: str) -> None:
    path = tmp_path / "jobs.csv"
    path.write_text(f"queue,submit_s,tasks,task_s\netl,0,2,3\netl,1,2,3\n{bad}\netl,2,2,3\n")
    found = played(path, CLUSTER)
    assert [job.submit_s for job in found.jobs] == [0, 1, 2]
    (line,) = found.header.left_out
    assert f"{path}:4" in line.reason


def test_of_a_queue_and_those_below_it_the_jobs_of_the_larger_part_stay(tmp_path: Path) -> None:
    path = tmp_path / "jobs.csv"
    rows = [f"{queue},0,1,1" for queue in ("a", "a.b", "a.c", "d", "d", "d.e", "d.e.f")]
    path.write_text("\n".join(["queue,submit_s,tasks,task_s", *rows]))
    reading = JobsCsv().read(path)
    assert [job.line.queue for job in reading.jobs] == ["root.a.b", "root.a.c", "root.d.e.f"]


def test_a_quote_that_is_not_closed_is_refused_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "jobs.csv"
    path.write_text('job,submit_s,tasks,task_s\na,0,1,1\n"b,0,1,1\nc,0,1,1\n')
    with pytest.raises(InputError, match="a quote is not closed") as refused:
        JobsCsv().read(path)
    assert refused.value.where == f"{path}:3"


def test_a_row_without_a_name_gets_one_that_no_other_row_has(tmp_path: Path) -> None:
    path = tmp_path / "jobs.csv"
    path.write_text("job,submit_s,tasks,task_s\n,0,1,1\n1,0,1,1\nrow-1,0,1,1\n")
    reading = JobsCsv().read(path)
    assert [job.line.job for job in reading.jobs] == ["row-row-1", "1", "row-1"]
    assert not reading.account.left_out


def test_more_tasks_than_can_be_held_are_refused_with_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "jobs.csv"
    path.write_text("submit_s,tasks,task_s\n" + "0,1000,1\n" * 2)
    assert len(JobsCsv().read(path).jobs) == 2
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("harness.traces.formats.base.MOST_TASKS", 1_999)
        with pytest.raises(InputError, match="more than 1,999 tasks") as refused:
            JobsCsv().read(path)
    assert refused.value.where == f"{path}:3"


def test_what_is_wrong_with_the_trace_that_is_made_is_said_of_the_file_that_was_given(tmp_path: Path) -> None:
    path = tmp_path / "jobs.csv"
    path.write_text("queue,submit_s,tasks,task_s\netl,0,2,3\n")
    cluster = CLUSTER.model_copy(update={"version": 2})
    with pytest.raises(InputError) as refused:
        any_trace(path, cluster, tmp_path / "out" / "trace.jsonl")
    assert refused.value.where == f"{path} (CSV)"
    assert not (tmp_path / "out" / "trace.jsonl").exists()
