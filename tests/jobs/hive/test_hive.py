"""Hive on Tez without Hive: what a run is refused for, its tables, its script, Tez' history, the shell's answer."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pyarrow.parquet as pq
import pytest

from harness.base.errors import CallError, InputError
from harness.cli import main
from harness.clusters.site import read
from harness.jobs.data.generate import TPCH_TABLES, FolderTarget, generate
from harness.jobs.engines import find, members
from harness.jobs.engines.attempts import Attempt
from harness.jobs.engines.base import Request
from harness.jobs.engines.cluster import Sizes
from harness.jobs.hive.catalogue import GROUPS, programs
from harness.jobs.hive.history import dag_started_ms, read_tez, record_of, stages_of
from harness.jobs.hive.installation import JAVA
from harness.jobs.hive.programs import HivePrograms, columns_of, link_tables, read_tables
from harness.jobs.hive.server import read_answer
from harness.jobs.hive.site import (
    LOG4J2,
    HivePlace,
    hive_properties,
    script,
    tez_properties,
)
from harness.jobs.spark.catalogue import query_sql
from harness.jobs.spark.plan import Input
from harness.jobs.workloads.programs import ProgramsWorkload, jobs_of_program
from harness.model.data import data_path
from harness.model.jobs import Duration, JobSpec, Stage
from harness.model.resources import Resource
from harness.traces.spec import DataSpec, DemandSpec, ProgramSpec, SubmissionSpec
from tests.experiments.real.stub_rm import StubRm, runner_on


@pytest.fixture(scope="module")
def tpch(data_set: Callable[[str, int], Path]) -> Path:
    return data_set("tpch", 1_000_000)


def test_tables_are_links_to_the_data(tpch: Path, tmp_path: Path) -> None:
    data = read_tables(programs()["hive-q1"], tpch)
    assert data.wanted == 1_000_000
    tables = link_tables(tmp_path, data)
    assert list(tables) == list(TPCH_TABLES)
    for table, (folder, columns) in tables.items():
        schema = pq.read_schema(Path(folder.removeprefix("file://")) / f"{table}.parquet")
        assert schema.equals(pq.read_schema(tpch / f"{table}.parquet"))
        assert [column.split()[0] for column in columns.split(", ")] == schema.names
    with pytest.raises(InputError, match="Hive's paths have no ;"):
        read_tables(programs()["hive-q1"], tmp_path / "a;b")


def test_a_script_defines_tables_and_asks() -> None:
    columns = "r_regionkey bigint, r_name string, r_comment string"
    text = script("select 1 from region", {"region": ("file:///w/tables/region", columns)})
    assert text == (
        "create external table if not exists region (r_regionkey bigint, r_name string, r_comment string) "
        "stored as parquet location 'file:///w/tables/region';\nselect 1 from region;\n"
    )


def test_every_query_is_known() -> None:
    assert list(programs()) == [f"hive-q{number}" for number in range(1, 23)]
    assert members("hive") == ("hive-q1", "hive-q9", "hive-q12", "hive-q17")
    assert find("HIVE-Q17") is programs()["hive-q17"]
    assert set(GROUPS["hive-all"]) == set(programs())
    with pytest.raises(CallError, match="hive-q1 has no setting"):
        find("hive-q1").settings_with({"colour": "green"})


def test_what_hive_and_tez_are_told() -> None:
    place = HivePlace(Path("/w"), Path("/tez"), 10123)
    hive = hive_properties(place, Sizes(task_mb=1000, am_mb=800, maps=3, reduces=2))
    assert hive["hive.tez.container.size"] == "1000"
    assert "-Xmx600m" in hive["hive.tez.java.opts"]
    assert "--add-opens=java.base/java.net=ALL-UNNAMED" in hive["hive.tez.java.opts"]
    tez = tez_properties(place, Sizes(task_mb=1000, am_mb=800, maps=3, reduces=2), queue="root.a")
    assert tez["tez.queue.name"] == "root.a"
    assert tez["tez.grouping.split-count"] == "3"
    # Nothing is kept outside the run's own folder.
    paths = [value for value in {**hive, **tez}.values() if value.startswith("/")]
    assert len(paths) > 10
    assert all(value.startswith(("/w/", "/tez/")) for value in paths)


def test_the_shells_answer() -> None:
    columns, rows = read_answer(
        'noise\n{"resultset":[\n{"a":1,"b":"x \\"y\\"","c":null},\n{"a":2,"b":"z","c":0.50}\n]}\n'
    )
    assert columns == ["a", "b", "c"]
    assert rows == [[1, 'x "y"', None], [2, "z", 0.5]]
    assert read_answer('{"resultset":[\n]}') == ([], [])
    for text in ("", "no result", '{"resultset":[{'):
        with pytest.raises(ValueError, match=r"."):
            read_answer(text)


def test_columns_of_an_answer_without_rows(tpch: Path) -> None:
    data = read_tables(programs()["hive-q18"], tpch)
    sql = query_sql(18, dict(programs()["hive-q18"].settings), 0.001)
    assert columns_of(sql, data)[:3] == ["c_name", "c_custkey", "o_orderkey"]


def event(
    kind: str, entity: str, name: str, ts: int, other: dict[str, Any], related: dict[str, str] | None = None
) -> str:
    rows = [{"entity": value, "entitytype": key} for key, value in (related or {}).items()]
    return json.dumps(
        {
            "entity": entity,
            "entitytype": kind,
            "relatedEntities": rows,
            "events": [{"ts": ts, "eventtype": name}],
            "otherinfo": other,
        }
    )


def test_tez_history() -> None:
    parts = ["{broken", '{"entitytype": "X"}']
    for number, vertex in enumerate(("Map 1", "Reducer 2")):
        one = f"attempt_99_0004_1_0{number}_000000_0"
        parts.append(
            event("TEZ_VERTEX_ID", f"vertex_99_0004_1_0{number}", "VERTEX_INITIALIZED", 1, {"vertexName": vertex})
        )
        related = {
            "nodeId": "h:1",
            "containerId": f"container_99_0004_01_00000{number + 2}",
            "TEZ_TASK_ID": f"task_99_0004_1_0{number}_000000",
        }
        started = {"inProgressLogsURL": "h:8042/node/containerlogs/x/y"}
        parts.append(event("TEZ_TASK_ATTEMPT_ID", one, "TASK_ATTEMPT_STARTED", 1000, started, related))
    ended = {"endTime": 3000, "status": "SUCCEEDED", "diagnostics": ""}
    parts.append(event("TEZ_TASK_ATTEMPT_ID", "attempt_99_0004_1_00_000000_0", "TASK_ATTEMPT_FINISHED", 3000, ended))
    failed = {"endTime": 4000, "status": "FAILED", "diagnostics": "it broke"}
    parts.append(event("TEZ_TASK_ATTEMPT_ID", "attempt_99_0004_1_01_000000_0", "TASK_ATTEMPT_FINISHED", 4000, failed))
    found = read_tez("\n\x01".join(parts))
    assert [(a.job, a.kind, a.node, a.started_ms, a.ended_ms, a.outcome, a.error) for a in found] == [
        ("application_99_0004", "map", "h:8042", 1000, 3000, "finished", ""),
        ("application_99_0004", "reduce", "h:8042", 1000, 4000, "failed", "it broke"),
    ]
    assert [a.container for a in found] == ["container_99_0004_01_000002", "container_99_0004_01_000003"]


@pytest.mark.parametrize(
    ("entity", "task", "at"),
    [
        ("attempt_99_0004_1_00_000000_0", "task_99_0004_1_00_x", 1000),
        ("attempt_99_0004_1_00_000000_0", "task_0", 1000),
        ("attempt_99", "task_99_0004_1_00_000000", 1000),
        ("attempt_99_0004_1_00_000000_0", "task_99_0004_1_00_000000", float("inf")),
    ],
)
def test_a_damaged_history_of_tez(tmp_path: Path, entity: str, task: str, at: float) -> None:
    related = {"containerId": "c", "TEZ_TASK_ID": task}
    started = event("TEZ_TASK_ATTEMPT_ID", entity, "TASK_ATTEMPT_STARTED", 7, {"inProgressLogsURL": "h:1/x"}, related)
    deep = '{"events": ' + "[" * 100_000
    assert read_tez("\x01".join([deep, started.replace('"ts": 7', f'"ts": {json.dumps(at)}')])) == []
    begun = event("TEZ_DAG_ID", "dag_99_0004_1", "DAG_STARTED", 900, {}).replace("900", "1e999")
    (tmp_path / "history.txt.appattempt_99_0004_000001").write_text(f'{deep} "DAG_STARTED"\x01{begun}\x01')
    assert dag_started_ms(tmp_path, "application_99_0004") == 0


def test_tasks_of_a_query_that_was_cut_are_numbered_as_its_stages_have_them() -> None:
    names = [("task_99_0004_1_00_000000", 1), ("task_99_0004_1_00_000002", 2), ("task_99_0004_1_01_000005", 3)]
    attempts = [
        Attempt("a", "map", name, f"{name}_0", "c", "h:1", at, at + 5, outcome="finished") for name, at in names
    ]
    spec = JobSpec("q", "root.a", "dag", Resource(800, 1), (Stage("tasks", 1, Resource(700, 1), Duration()),))
    assert [stage.tasks for stage in stages_of(attempts, spec)] == [2, 1]
    assert [(task.stage, task.task) for task in record_of(attempts).tasks] == [(0, 0), (0, 1), (1, 0)]


def test_a_querys_vertices_as_stages_and_records(tmp_path: Path) -> None:
    def attempt(
        vertex: int, number: int, start: int, end: int, kind: str = "map", outcome: str = "finished"
    ) -> Attempt:
        name = f"task_99_0004_1_0{vertex}_{number:06d}"
        return Attempt("application_99_0004", kind, name, f"{name}_0", "c", "h:1", start, end, outcome=outcome)

    attempts = [
        attempt(0, 1, 1000, 3000),
        attempt(0, 0, 1100, 2000),
        attempt(1, 0, 1500, 2500),
        attempt(2, 0, 3000, 4500, "reduce"),
        attempt(2, 1, 3100, 0, "reduce", "unknown"),
    ]
    size = Resource(700, 1)
    spec = JobSpec("q", "root.a", "dag", Resource(800, 1), (Stage("tasks", 1, size, Duration()),))
    stages = stages_of(attempts, spec)
    assert [(s.name, s.duration.values_s, s.after, s.demand) for s in stages] == [
        ("map 1_00", (0.9, 2.0), (), size),
        ("map 1_01", (1.0,), (), size),
        ("reduce 1_02", (1.5, 0.001), ("map 1_00", "map 1_01"), size),
    ]
    assert stages_of([], spec) == ()
    found = record_of(attempts, 900)
    assert (found.first_heartbeat_ms, found.ended_ms) == (900, 4500)
    assert [(t.stage, t.task, t.outcome, t.ended_ms) for t in found.tasks] == [
        (0, 1, "finished", 3000),
        (0, 0, "finished", 2000),
        (1, 0, "finished", 2500),
        (2, 0, "finished", 4500),
        (2, 1, "killed", 4500),
    ]
    started = event("TEZ_DAG_ID", "dag_99_0004_1", "DAG_STARTED", 900, {})
    (tmp_path / "history.txt.appattempt_99_0004_000001").write_text(f"{{cut\x01{started}\x01")
    assert dag_started_ms(tmp_path, "application_99_0004") == 900
    assert dag_started_ms(tmp_path, "application_99_0005") == 0


def test_what_is_refused_before_anything_starts(tpch: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.jobs.hive.installation.hive_jars", lambda _: pytest.fail("too far"))
    runner = runner_on(StubRm(Resource(800, 4)), tmp_path, monkeypatch)
    generate("text", 5000, 1, FolderTarget(tmp_path / "text"))
    (tmp_path / "there").mkdir()
    before = sorted(tmp_path.iterdir())
    fine = Request("hive-q1", (tpch,), tmp_path / "out")
    for request, error, said in (
        (replace(fine, inputs=(tmp_path / "none",)), InputError, "no such folder; make it"),
        (replace(fine, inputs=(tmp_path / "text",)), InputError, "a data set of text; give one of tpch"),
        (replace(fine, inputs=(tpch, tpch)), CallError, "hive-q1 reads tpch, given are 2"),
        (replace(fine, output=tmp_path / "there"), InputError, "is there already"),
        (replace(fine, task_mb=512), CallError, "Tez needs 640 or more"),
        (replace(fine, am_mb=801), InputError, "asks for 801 MB and the largest node has 800 MB"),
        (replace(fine, settings={"delta": "x"}), CallError, "delta is 'x'"),
    ):
        with pytest.raises(error, match=said):
            runner.run(request)
    assert sorted(tmp_path.iterdir()) == before


def test_hdfs_is_refused_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(
            ["job", "run", "hive-q1", "--input", "webhdfs://nn:9870/x", "--output", "out", "--rm", "http://127.0.0.1:1"]
        )
    assert stop.value.code == 2
    assert "not HDFS" in capsys.readouterr().err


def service_properties() -> dict[str, dict[str, str]]:
    """The files of the compose file's service (docker/hive/conf), by name: as for one run, but that it serves everybody
    in the cluster's network, and its sessions choose their queue and how many splits and reduces they want."""
    place, sizes = HivePlace(Path("/shared/hive"), Path("/shared/hive/tez"), 10000), Sizes(task_mb=768, am_mb=768)
    hive = hive_properties(place, sizes) | {"hive.server2.thrift.bind.host": "0.0.0.0"}
    tez = tez_properties(place, sizes, queue="root.default")
    chosen = ("mapreduce.job.reduces", "tez.grouping.split-count")
    return {
        "hive-site.xml": {key: value for key, value in hive.items() if key not in chosen},
        "tez-site.xml": {key: value for key, value in tez.items() if key not in chosen},
    }


def test_the_services_files_are_what_a_run_is_told() -> None:
    """docker/hive/conf; a changed property has to be written there too: site.render(service_properties()[name])."""
    conf = data_path("docker", "hive", "conf")
    for name, properties in service_properties().items():
        assert read(conf / name) == properties, name
    assert (conf / "hive-log4j2.properties").read_text() == LOG4J2
    told = data_path("docker", "hive", "hive.sh").read_text()
    opened = [word.partition("java.base/")[2].partition("=")[0] for word in JAVA if word.startswith("--add-opens")]
    assert f"for package in {' '.join(opened)}; do" in told


def test_a_query_that_is_asked_again_is_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = DataSpec(kind="tpch", size="1MB")
    entries = [ProgramSpec(application=name, input=["tpch"], maps=2, reduces=1) for name in ("hive-q1", "hive-q6")]
    workload = ProgramsWorkload(
        kind="programs",
        am=DemandSpec(memory_mb=768),
        task=DemandSpec(memory_mb=768),
        data={"tpch": data},
        submission=SubmissionSpec(think_s=0.0),
        programs=entries,
    )
    (one,), (two,) = (jobs_of_program(workload, entry, "default", entry.application) for entry in entries)
    asked: list[str] = []
    killed: list[str] = []
    apps: list[Any] = []

    def ask(name: str, _: str) -> Any:
        asked.append(name)
        return SimpleNamespace(process=SimpleNamespace(poll=lambda: None), kill=lambda: killed.append(name))

    queries = HivePrograms(cast(Any, SimpleNamespace(folders={}, progress=print)), tmp_path, [one, two])
    queries.server = cast(Any, SimpleNamespace(ask=ask, apps=lambda: apps))
    queries._tables[data] = ("data0", {}, Input("/data", (), 10, 10, {}))
    queries._base = {}
    monkeypatch.setattr(queries, "_properties", lambda *_: {})
    first, second = one.spec.id, two.spec.id
    for number, job in enumerate((first, second, first), start=1):
        queries.submit(job)
        # What it was before, when it was asked, is not its application any more.
        assert queries.taken(job) is None
        apps.append(SimpleNamespace(id=f"application_1_000{number}"))
        assert queries.taken(job) == f"application_1_000{number}"
    assert len(set(asked)) == 3, "no query writes over another's files"
    assert killed == asked[:1]
    # Asked again while another waits for its application: nothing is its own until it is its turn.
    queries.submit(second)
    queries.submit(first)
    assert queries.taken(first) is None
