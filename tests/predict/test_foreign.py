"""Traces that nobody here recorded: SLS, Rumen, job history files, and what each of them lacks."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.base.errors import InputError
from harness.cli import main
from harness.predict.foreign import Lacks, any_trace, cluster_file
from harness.traces.recorded import Header, NodeLine, QueueLine, Trace

CLUSTER = Header(
    nodes=[NodeLine(count=2, memory_mb=8192, vcores=8)], queues={"root.a": QueueLine(weight=2.0), "root.b": QueueLine()}
)
#: Milliseconds since 1970, as history files have them.
DAY = 1_700_000_000_000


def sls_job(number: int, nodes: bool = False) -> dict[str, Any]:
    tasks = [
        {"container.host": "/r/n", "container.start.ms": 0, "container.end.ms": 9000, "container.type": "map"}
        for _ in range(3)
    ]
    return {
        "am.type": "mapreduce",
        "job.start.ms": 5000 * number,
        "job.end.ms": 5000 * number + 15_000,
        "job.queue.name": "a" if number % 2 else "b",
        "job.id": f"job_{number}",
        "job.user": "ann",
        "job.tasks": tasks,
    }


def rumen_job(number: int) -> dict[str, Any]:
    def task(start: int, end: int) -> dict[str, Any]:
        attempts = [
            {"result": "FAILED", "startTime": start, "finishTime": start + 1000},
            {"result": "SUCCESS", "startTime": start + 1000, "finishTime": end},
        ]
        return {"taskStatus": "SUCCESS", "startTime": start, "finishTime": end, "attempts": attempts}

    begin = DAY + 5000 * number
    return {
        "jobID": f"job_1_{number:04d}",
        "queue": "a",
        "user": "ann",
        "jobName": "wordcount",
        "submitTime": begin,
        "launchTime": begin + 1000,
        "finishTime": begin + 20_000,
        "jobMapMB": 2048,
        "mapTasks": [task(begin + 2000, begin + 10_000)],
        "reduceTasks": [task(begin + 10_000, begin + 19_000)],
    }


def jhist(number: int) -> str:
    name = "org.apache.hadoop.mapreduce.jobhistory."

    def event(kind: str, word: str, **fields: Any) -> str:
        return json.dumps({"type": kind, "event": {name + word: fields}}, separators=(",", ":"))

    begin = DAY + 5000 * number
    # As Hadoop writes it, the second line is the events' schema, which has a field "event".
    lines = ["Avro-Json", '{"type":"record","name":"Event","fields":[{"name":"type"},{"name":"event","type":[]}]}', ""]
    lines.append(event("AM_STARTED", "AMStarted", applicationAttemptId="x", startTime=begin + 1000))
    lines.append(
        event("JOB_SUBMITTED", "JobSubmitted", jobid=f"job_1_{number:04d}", submitTime=begin, jobQueueName="b",
              userName="bob", jobName="sort")
    )  # fmt: skip
    lines.append(event("JOB_INITED", "JobInited", jobid="x", launchTime=begin + 1500))
    for kind, at in (("MAP", 2000), ("REDUCE", 9000)):
        task = f"task_{kind}"
        # It is scheduled 3 s before it has a container; a second attempt, killed, begins later.
        lines.append(event("TASK_STARTED", "TaskStarted", taskid=task, taskType=kind, startTime=begin + at - 3000))
        for number_, later in ((0, 0), (1, 4000)):
            attempt = {"attemptId": f"attempt_{kind}_{number_}", "startTime": begin + at + later}
            lines.append(event(f"{kind}_ATTEMPT_STARTED", "TaskAttemptStarted", taskid=task, taskType=kind, **attempt))
        lines.append(
            event("TASK_FINISHED", "TaskFinished", taskid=task, taskType=kind, finishTime=begin + at + 6000,
                  status="SUCCEEDED", successfulAttemptId={"string": f"attempt_{kind}_0"})
        )  # fmt: skip
    lines.append(event("JOB_FINISHED", "JobFinished", jobid="x", finishTime=begin + 17_000))
    return "\n".join(lines) + "\n"


def test_an_sls_trace_has_its_jobs_and_their_ends(tmp_path: Path) -> None:
    path = tmp_path / "sls.json"
    path.write_text("\n".join(json.dumps(sls_job(n)) for n in range(4)))
    found = any_trace(path, CLUSTER, tmp_path / "trace.jsonl")
    assert isinstance(found, Trace)
    assert [(job.queue, job.submit_s, job.finished_s) for job in found.jobs[:2]] == [
        ("root.b", 0.0, 15.0), ("root.a", 5.0, 20.0)
    ]  # fmt: skip
    assert found.header.queues["root.a"].weight == 2.0
    lacks = any_trace(path, None, tmp_path / "other.jsonl")
    assert isinstance(lacks, Lacks)
    assert "nodes" in lacks.what


def test_an_sls_trace_that_names_its_nodes_needs_no_cluster(tmp_path: Path) -> None:
    path = tmp_path / "sls.json"
    path.write_text("\n".join([json.dumps({"num.nodes": 3}), *(json.dumps(sls_job(n)) for n in range(4))]))
    found = any_trace(path, None, tmp_path / "trace.jsonl")
    assert isinstance(found, Trace)
    assert found.header.nodes == [NodeLine(count=3, memory_mb=10240, vcores=10)]


def test_a_rumen_trace(tmp_path: Path) -> None:
    path = tmp_path / "job-trace.json"
    path.write_text("\n".join(json.dumps(rumen_job(n), indent=1) for n in range(3)))
    found = any_trace(path, CLUSTER, tmp_path / "trace.jsonl")
    assert isinstance(found, Trace)
    job = found.jobs[1]
    assert (job.job, job.queue, job.submit_s, job.started_s, job.finished_s) == ("job_1_0001", "root.a", 5, 6, 25)
    maps, reduces = job.stages
    # A heap of 2,048 MB in a container of 2,560; the attempt that failed before held a container, too.
    assert (maps.memory_mb, maps.tasks_s, reduces.tasks_s, reduces.after) == (2560, [1.0, 7.0], [1.0, 8.0], ["map"])


def test_a_folder_of_job_history_files(tmp_path: Path) -> None:
    folder = tmp_path / "history" / "2023"
    folder.mkdir(parents=True)
    for number in range(3):
        (folder / f"job_1_{number:04d}-x.jhist").write_text(jhist(number))
    found = any_trace(tmp_path / "history", CLUSTER, tmp_path / "trace.jsonl")
    assert isinstance(found, Trace)
    job = found.jobs[2]
    assert (job.queue, job.user, job.submit_s, job.started_s, job.finished_s) == ("root.b", "bob", 10, 11, 27)
    # Not the wait before; the later attempt held its container until the task ended.
    assert [stage.tasks_s for stage in job.stages] == [[6.0, 2.0], [6.0, 2.0]]
    assert job.am_start_s == 1.0, "half a second, and half a heartbeat"
    assert [note.note for note in found.notes] == [
        "what containers took besides the tasks' times (a recording with --history has it)"
    ]
    maps, reduces = job.stages
    assert (job.am.memory_mb, maps.memory_mb, reduces.memory_mb, reduces.slow_start) == (1536, 1024, 1024, 0.05)
    lacks = any_trace(tmp_path / "history", None, tmp_path / "other.jsonl")
    assert isinstance(lacks, Lacks)


def test_sizes_are_of_the_configuration_beside_a_job_history_file(tmp_path: Path) -> None:
    (tmp_path / "job_1_0001-x.jhist").write_text(jhist(1))
    conf = {
        "yarn.app.mapreduce.am.resource.mb": 2048,
        "mapreduce.map.memory.mb": 3072,
        "mapreduce.reduce.cpu.vcores": 4,
        "mapreduce.job.reduce.slowstart.completedmaps": 0.8,
        "mapreduce.reduce.memory.mb": "much",
    }
    text = "".join(f"<property><name>{name}</name><value>{value}</value></property>" for name, value in conf.items())
    (tmp_path / "job_1_0001_conf.xml").write_text(f"<configuration>{text}</configuration>")
    found = any_trace(tmp_path, CLUSTER, tmp_path / "made" / "trace.jsonl")
    assert isinstance(found, Trace)
    ((job,), (maps, reduces)) = found.jobs, found.jobs[0].stages
    assert (job.am.memory_mb, maps.memory_mb, reduces.memory_mb) == (2048, 3072, 1024)
    assert (maps.vcores, reduces.vcores, reduces.slow_start) == (1, 4, 0.8)
    # One that cannot be read leaves Hadoop's defaults, and that is said.
    (tmp_path / "job_1_0001_conf.xml").write_text("<configuration>")
    found = any_trace(tmp_path, CLUSTER, tmp_path / "made" / "trace.jsonl")
    assert isinstance(found, Trace)
    assert found.jobs[0].stages[0].memory_mb == 1024
    assert any("container sizes are Hadoop's defaults" in what for what in found.header.assumed)


def test_a_job_of_another_name_names_no_file(tmp_path: Path) -> None:
    """The file says the name: nothing outside its folder is read for it."""
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "job_1_0001_conf.xml").write_text("<configuration>")
    folder = tmp_path / "one"
    folder.mkdir()

    def named(name: str) -> Trace | Lacks:
        (folder / "job.jhist").write_text(jhist(1).replace("job_1_0001", name))
        return any_trace(folder, CLUSTER, tmp_path / "trace.jsonl")

    for name in ("../other/job_1_0001", "a/b"):
        found = named(name)
        assert isinstance(found, Trace)
        assert found.jobs[0].stages[0].memory_mb == 1024
    found = named("x" * 250)
    assert isinstance(found, Lacks)
    assert "not a job of a trace (job: String should have at most 200 characters)" in found.what


def test_an_old_job_history_file_has_a_space_before_each_event(tmp_path: Path) -> None:
    old = "\n".join(line if k < 2 else f" {line}" for k, line in enumerate(jhist(1).splitlines()))
    (tmp_path / "job_1_0001-x.jhist").write_text(old.replace(',"successfulAttemptId":{"string":"attempt_MAP_0"}', ""))
    found = any_trace(tmp_path, CLUSTER, tmp_path / "trace.jsonl")
    assert isinstance(found, Trace)
    # Of the map it does not say which attempt succeeded: both ended with their task at the latest.
    assert [stage.tasks_s for stage in found.jobs[0].stages] == [[6.0, 2.0], [6.0, 2.0]]


def test_what_is_none_of_these_is_told(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match=r"holds no trace\.jsonl"):
        any_trace(tmp_path / "empty", None, tmp_path / "t")
    (tmp_path / "job-trace.json").write_text('{"jobID": "x", "mapTasks": [3]}')
    found = any_trace(tmp_path / "job-trace.json", CLUSTER, tmp_path / "t")
    assert isinstance(found, Lacks)
    assert "no job that can be played (cannot be read" in found.what
    (tmp_path / "x.jhist").write_text('{"type":"JOB_FINISHED","event":{"x.JobFinished":{}}}\n')
    found = any_trace(tmp_path, CLUSTER, tmp_path / "t")
    assert isinstance(found, Lacks)
    assert "file without a job's submission" in found.what
    (tmp_path / "x.jhist").write_bytes(b'Avro-Binary\n{"type":"record"}\n\x00\x1a')
    found = any_trace(tmp_path / "x.jhist", CLUSTER, tmp_path / "t")
    assert isinstance(found, Lacks)
    assert "its second line is not the schema of job history's events" in found.what


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("trace.json.gz", b"\x1f\x8b\x08\x00", "compressed by gzip, and damaged from its beginning on; fetch it again"),
        ("empty.json", b" \n", "the trace is empty"),
        (
            "syn.json",
            b'{"workloads": [{"job_classes": [{"type": "mapreduce"}]}]}',
            "a synthetic load, which has no jobs",
        ),
        ("nodes.json", b'{"rack": "r", "nodes": [{"node": "n1"}]}', "nodes and no jobs; give the jobs"),
        ("picture.png", b"\x89PNG\r\n\x1a\n\x00", "not a line of JSON"),
        ("fair-scheduler.xml", b"<allocations/>", "is it a trace of `yarnfair record`"),
    ],
    ids=["gzip", "empty", "synthetic", "topology", "picture", "xml"],
)
def test_odd_files_are_told_in_one_line(tmp_path: Path, name: str, content: bytes, says: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError) as refused:
        any_trace(tmp_path / name, CLUSTER, tmp_path / "t")
    assert says in refused.value.line()
    assert "\n" not in refused.value.line()


def test_a_foreign_trace_gets_a_verdict_or_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "sls.json"
    path.write_text("\n".join(json.dumps(sls_job(n)) for n in range(30)))
    for head, expected in (("", "nothing about the cluster's nodes"), ('{"num.nodes": 40}\n', "no")):
        path.write_text(head + "\n".join(json.dumps(sls_job(n)) for n in range(30)))
        with pytest.raises(SystemExit) as stop:
            main(["assess", str(path), "-o", str(tmp_path / f"out{len(head)}"), "--jobs", "1", "--json"])
        assert not stop.value.code
        found = json.loads(capsys.readouterr().out)
        assert expected in (found["why"] if not head else found["verdict"])


def test_nodes_and_queues_may_be_a_file_of_the_users(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    history, cluster = tmp_path / "history", tmp_path / "cluster.yaml"
    history.mkdir()
    for number in range(30):
        (history / f"{number}.jhist").write_text(jhist(number))
    cluster.write_text("nodes: [{count: 40, memory_mb: 8192, vcores: 8}]\nqueues: {root.a: {weight: 2}, root.b: {}}\n")
    out = tmp_path / "out"
    with pytest.raises(SystemExit) as stop:
        main(["assess", str(history), "--cluster", str(cluster), "-o", str(out), "--jobs", "1", "--json"])
    assert not stop.value.code
    assert json.loads(capsys.readouterr().out)["verdict"] == "no"
    header = json.loads((out / "trace.jsonl").read_text().splitlines()[0])
    assert (header["nodes"][0]["count"], header["queues"]["root.a"]["weight"]) == (40, 2.0)
    cluster.write_text("nodes: [{count: 40, memory_mb: 8192, vcores: 8}]\nqueues: {a: {weight: 2}}\n")
    with pytest.raises(SystemExit) as stop:
        main(["assess", str(history), "--cluster", str(cluster), "-o", str(tmp_path / "other")])
    assert stop.value.code == 1
    told = capsys.readouterr().err
    assert "'a' is not a queue's full path (root.a.b); correct it (docs/how-to/assess.md shows such a file)" in told


def test_a_mistyped_key_of_the_file_has_its_nearest_name(tmp_path: Path) -> None:
    cluster = tmp_path / "cluster.yaml"
    cluster.write_text("nodes: [{count: 40, memory_mb: 8192, vcores: 8}]\nqueus: {root.a: {weight: 2}}\n")
    with pytest.raises(InputError) as told:
        cluster_file(cluster)
    assert told.value.hint == "did you mean 'queues'?"


def history(folder: Path) -> Path:
    for number in range(3):
        (folder / "history").mkdir(exist_ok=True)
        (folder / "history" / f"job_{number}.jhist").write_text(jhist(number))
    return folder / "history"


def sls(folder: Path) -> Path:
    path = folder / "sls.json"
    path.write_text("\n".join(json.dumps(sls_job(n)) for n in range(4)))
    return path


def rumen(folder: Path) -> Path:
    path = folder / "job-trace.json"
    path.write_text("\n".join(json.dumps(rumen_job(n)) for n in range(3)))
    return path


@pytest.mark.parametrize("made", [history, sls, rumen])
def test_replay_and_whatif_play_a_trace_of_others_or_say_in_a_line_what_it_lacks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], made: Callable[[Path], Path]
) -> None:
    trace, out = str(made(tmp_path)), tmp_path / "out"
    calls = {
        "replay": [trace, "--out", str(out), "--phases", "0", "--no-report"],
        "whatif": [trace, "--export", str(tmp_path / "page.html")],
    }
    for command, words in calls.items():
        with pytest.raises(SystemExit) as caught:
            main([command, *words])
        said = capsys.readouterr().err.strip().splitlines()
        assert caught.value.code == 1
        assert len(said) == 1
        assert "nodes" in said[0]
        assert "--cluster FILE" in said[0]
    assert not out.exists()
    cluster = tmp_path / "cluster.yaml"
    cluster.write_text("nodes: [{count: 2, memory_mb: 8192, vcores: 8}]\nqueues: {root.a: {weight: 2}, root.b: {}}\n")
    for command, words in calls.items():
        with pytest.raises(SystemExit) as caught:
            main([command, *words, "--cluster", str(cluster)])
        assert caught.value.code == 0, capsys.readouterr().err
    assert "ltrf@outside" in capsys.readouterr().out
    assert (tmp_path / "page.html").stat().st_size > 10_000
    assert json.loads((out / "fair" / "summary.json").read_text())["makespan_s"] > 10
