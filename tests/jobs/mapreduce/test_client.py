"""What an application's run is refused for before it starts, and what is read of its history and logs."""

from __future__ import annotations

import json
import math
from collections import Counter
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from harness.base.errors import CallError, InputError
from harness.cli import main
from harness.clusters.shared import ContainerFolder
from harness.experiments.real.programs import program_jobs
from harness.experiments.real.single import check_request, experiment_of
from harness.jobs.data.generate import FolderTarget, generate
from harness.jobs.data.targets import HdfsTarget
from harness.jobs.engines.attempts import attempts_table, summary
from harness.jobs.engines.base import Request, Site
from harness.jobs.engines.cluster import Sizes, check_memory, last_lines
from harness.jobs.mapreduce import engine
from harness.jobs.mapreduce.catalogue import APPLICATIONS, Call
from harness.jobs.mapreduce.history import read_history, record_of
from harness.jobs.mapreduce.places import open_data
from harness.model.resources import Resource


def rest(*free_mb: int, used_mb: int = 0) -> Any:
    nodes = [
        SimpleNamespace(
            state="RUNNING",
            total=Resource(free + used_mb, 4),
            used=Resource(used_mb, 0),
            available=Resource(free, 4),
        )
        for free in free_mb
    ]
    return SimpleNamespace(nodes=lambda: nodes, http=SimpleNamespace(current="http://rm:8088"))


def test_a_container_larger_than_any_node_is_refused() -> None:
    check_memory(Sizes(task_mb=2048), rest(2048, 1024), free_mb=None)
    with pytest.raises(InputError, match="a task asks for 2049 MB and the largest node has 2048 MB"):
        check_memory(Sizes(task_mb=2049), rest(2048, 1024), free_mb=None)
    with pytest.raises(InputError, match="no node is RUNNING"):
        check_memory(Sizes(), rest(), free_mb=None)


def test_what_runs_at_once_has_to_fit_into_this_machine() -> None:
    # 512 MB for the master, then 7 of 512 in 4096 MB; 4 maps at most: 512 + 4 * 512.
    cluster = rest(4096)
    sizes = Sizes(task_mb=512, am_mb=512, maps=4, reduces=2)
    check_memory(sizes, cluster, free_mb=2560)
    with pytest.raises(InputError, match=r"3 task\(s\) at once"):
        # Three vcores beside the master's: they bound it before the maps do.
        check_memory(sizes, cluster, free_mb=2047)
    check_memory(sizes, cluster, free_mb=2048)


def request(folder: Path, *inputs: Path, name: str = "wordcount") -> Request:
    return Request(name, inputs, folder / "out")


def test_data_without_a_manifest_is_refused_where_it_has_to_be_copied(tmp_path: Path) -> None:
    (tmp_path / "words").mkdir()
    (tmp_path / "words" / "part-0").write_text("a word\n")
    given = request(tmp_path, tmp_path / "words")
    assert open_data(FolderTarget(tmp_path / "words"), "text") == {"part-0": 7}
    experiment, places = experiment_of([given])
    (job,) = program_jobs(experiment, 1)
    assert places == {job.inputs[0]: tmp_path / "words"}
    volume = ContainerFolder(None, "/shared/here")
    site = Site(rest(4096), volume, "python3", places, "t", output=given.output)
    with pytest.raises(InputError, match=r"no manifest\.json.*data generate text"):
        engine.MapReduce().load(site, [job])
    hdfs = HdfsTarget(cast(Any, SimpleNamespace(base="webhdfs://n:1")), "/words")
    with pytest.raises(InputError, match="use folders of this machine"):
        engine.MapReduce().load(replace(site, data={job.inputs[0]: hdfs}), [job])


def test_data_of_another_kind_is_refused(tmp_path: Path) -> None:
    generate("movies", 5000, 1, FolderTarget(tmp_path / "movies"))
    movies = FolderTarget(tmp_path / "movies")
    with pytest.raises(InputError, match="a data set of movies; give one of text"):
        open_data(movies, "text")
    with pytest.raises(CallError, match="reads rankings and uservisits, given are 1"):
        check_request(request(tmp_path, tmp_path / "movies", name="join"))
    with pytest.raises(InputError, match=r"no part-\* files"):
        open_data(FolderTarget(tmp_path / "none"), "text")
    assert list(open_data(movies, "movies")) == ["part-00000.txt"]


def test_settings_cannot_smuggle_words_into_a_command(tmp_path: Path) -> None:
    one = APPLICATIONS["fbgrep"]
    call = Call("out", 1, one.settings_with({"pattern": "a; rm"}), "python3", tmp_path, tmp_path)
    with pytest.raises(CallError, match="without blanks"):
        one.jobs(call)
    with pytest.raises(CallError, match="wordcount has no setting 'pattern'"):
        APPLICATIONS["wordcount"].settings_with({"pattern": "x"})


EVENTS: list[tuple[str, str, dict[str, object]]] = [
    ("jobhistory.TaskAttemptStarted", "MAP", {"startTime": 2000}),
    ("jobhistory.MapAttemptFinished", "MAP", {"finishTime": 5000}),
    ("jobhistory.TaskAttemptStarted", "REDUCE", {"startTime": 4000}),
    (
        "jobhistory.TaskAttemptUnsuccessfulCompletion",
        "REDUCE",
        {"finishTime": 6000, "status": "FAILED", "error": "it broke"},
    ),
]


def history_lines() -> list[str]:
    lines = ["Avro-Json", '{"type": "record"}', "", "{broken", '{"event": {}}']
    for name, kind, more in EVENTS:
        letter = kind[0].lower()
        event = {
            "taskid": f"task_1_0001_{letter}_000000",
            "attemptId": f"attempt_1_0001_{letter}_000000_0",
            "taskType": kind,
            "trackerName": "node1",
            "httpPort": 8042,
            "containerId": "container_1_0001_01_000002",
            **more,
        }
        lines.append(json.dumps({"type": "X", "event": {f"org.apache.hadoop.mapreduce.{name}": event}}))
    return lines


@pytest.mark.parametrize("value", [float("inf"), float("nan"), -1, 10**30, "soon", None])
def test_events_with_times_that_are_none_are_passed_over(value: object) -> None:
    for at in range(5, 9):
        lines = history_lines()
        document = json.loads(lines[at])
        (event,) = document["event"].values()
        event["startTime" if "startTime" in event else "finishTime"] = value
        lines[at] = json.dumps(document)
        attempts = read_history(lines)
        assert len(attempts) == (1 if at in (5, 7) else 2)
        attempts_table(attempts, 1000)
        record_of(lines, reduces_first=True)


@pytest.mark.parametrize("name", ["task_1_2_m_x", "task_1_2_m_" + "9" * 20, "task", "", None, 7])
@pytest.mark.parametrize("field", ["taskid", "attemptId"])
def test_attempts_with_ids_that_are_none_are_passed_over(field: str, name: object) -> None:
    lines = ['{"event": ' + "[" * 100_000, *history_lines()]
    document = json.loads(lines[6])
    (event,) = document["event"].values()
    event[field] = name
    lines[6] = json.dumps(document)
    assert [one.kind for one in read_history(lines)] == ["reduce"]
    assert [one.stage for one in record_of(lines, reduces_first=True).tasks] == [0]


def test_the_history_of_a_job() -> None:
    attempts = read_history(history_lines())
    assert [(a.job, a.kind, a.node, a.started_ms, a.ended_ms, a.outcome, a.error) for a in attempts] == [
        ("application_1_0001", "map", "node1:8042", 2000, 5000, "finished", ""),
        ("application_1_0001", "reduce", "node1:8042", 4000, 6000, "failed", "it broke"),
    ]
    assert summary(attempts) == {
        "map": {"attempts": 1, "finished": 1, "mean_s": 3.0, "longest_s": 3.0},
        "reduce": {"attempts": 1, "finished": 0, "mean_s": 0.0, "longest_s": 0.0},
    }
    table = attempts_table(attempts, 1000)
    assert table["started_s"].tolist() == [1.0, 3.0]
    assert math.isnan(table["shuffled_s"][0])
    assert attempts_table([], 0).empty


def test_the_last_lines_of_a_log_are_those_that_say_something() -> None:
    log = "log4j:WARN no\nTraceback\n\n  at java.lang.X\nValueError: no number\n"
    assert last_lines(log) == ["Traceback", "ValueError: no number"]
    assert last_lines("\n".join(map(str, range(20))), 2) == ["18", "19"]


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["nosuch", "--input", "x", "--output", "y"], 2, "no application 'nosuch'"),
        (["wordcount", "--input", "x", "--output", "y", "--set", "x"], 2, "not a setting"),
        (["wordcount", "--input", "x", "--output", "y", "--task-mb", "1"], 2, "task_mb is 1"),
        (["wordcount", "--input", "x", "--output", "y", "--queue", "root"], 2, "root is not a leaf queue"),
        (["wordcount", "--input", "x", "--output", "y", "--state", "/nonexistent"], 1, "no local cluster there"),
    ],
)
def test_wrong_calls_are_one_line(
    arguments: list[str], code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["job", "run", *arguments])
    assert stop.value.code == code
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1


def test_the_list(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["job", "list", "--json"])
    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)["applications"]}
    assert rows["join"]["data"] == ["rankings", "uservisits"]
    suites = Counter(row["suite"] for row in rows.values())
    # TPC-H's 22 queries by Spark and one application with all of them; by Hive.
    assert suites == {"facebook": 4, "purdue": 10, "spark": 2, "tpch": 23, "hive": 22}
