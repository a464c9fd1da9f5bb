"""What a Spark program is submitted as: its files, properties, command; what is refused before it starts."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from harness.base.errors import CallError, InputError
from harness.clusters.shared import LocalFolder
from harness.jobs.data.generate import FolderTarget, generate
from harness.jobs.engines import every, find
from harness.jobs.engines.base import Site
from harness.jobs.spark.catalogue import GROUPS, parameters, programs, query_sql
from harness.jobs.spark.plan import Input, SparkPlace, SparkSizes, fits, plan, property_file, split_memory
from harness.jobs.spark.programs import SparkPrograms, driver_lines
from harness.jobs.spark.site import SparkNodes, read_input
from harness.jobs.workloads.programs import ProgramsWorkload, jobs_of_program
from harness.model.resources import Resource
from harness.traces.spec import DataSpec
from harness.yarn.rest import RestClient

PLACE = SparkPlace("/opt/spark", "/shared/run", "/usr/bin/python3", "rm:8030", loopback=False)
TABLES = Input("/data/t", ("region.parquet",), 10, 10_000_000, {"region": "r_regionkey bigint"})
POINTS = Input("/data/p", ("part-00000.txt",), 8_000_000, 8_000_000)


def test_every_query_has_its_parameters_filled_in() -> None:
    assert [name for name in programs() if name.startswith("tpch-q")] == [f"tpch-q{n}" for n in range(1, 23)]
    for number in range(1, 23):
        sql = query_sql(number, {}, 1.0)
        assert "${" not in sql
        assert "--" not in sql
        assert sql.lower().startswith(("select", "with"))
        assert all(name in sql or value in sql for name, value in parameters(number).items() if name != "fraction")
    assert "interval '61' day" in query_sql(1, {"delta": "61"}, 1.0)


def test_the_fraction_of_q11_follows_the_scale_factor() -> None:
    assert "* 0.0100000000" in query_sql(11, {}, 0.01)
    assert "* 0.0000100000" in query_sql(11, {}, 10.0)


@pytest.mark.parametrize(
    ("name", "given", "said"),
    [
        ("tpch-q3", {"date": "today"}, "date is 'today'.*a date"),
        ("tpch-q3", {"segment": "A' or '1'='1"}, "segment is"),
        ("tpch-q6", {"discount": "0.06 or 1"}, "a number"),
        ("tpch-q16", {"sizes": "1, x"}, "numbers with commas"),
        ("tpch-q22", {"codes": "13"}, "codes, as"),
        ("tpch-q1", {"nothing": "1"}, "no setting 'nothing'; it has delta"),
        ("tpch-all", {"delta": "1"}, "it has none"),
        ("kmeans", {"k": "ten"}, "a number"),
    ],
)
def test_settings_of_another_kind_are_refused(name: str, given: dict[str, str], said: str) -> None:
    with pytest.raises(CallError, match=said):
        programs()[name].settings_with(given)


def test_names() -> None:
    assert find("KMEANS").name == "kmeans"
    assert find("wordcount").suite == "purdue"
    assert set(GROUPS["tpch"]) < set(every())
    with pytest.raises(CallError, match="stands for several"):
        find("tpch")
    with pytest.raises(CallError, match="no application 'tpch-q23'"):
        find("tpch-q23")


def made(name: str, data: Input, **more: Any) -> Any:
    one = programs()[name]
    given = {"queue": "root.a", "name": "n1", "tags": ["t"], "source": b"print()", **more}
    return plan(one, one.settings_with({}), more.pop("sizes", SparkSizes()), PLACE, data, **given)


def test_a_query_is_submitted_in_cluster_mode() -> None:
    found = made("tpch-q6", TABLES, properties={"spark.app.name": "mine"})
    submission = found.submission
    assert (submission.queue, submission.type, submission.resource) == ("root.a", "SPARK", Resource(1024, 1))
    assert submission.max_attempts == 1
    command = submission.command
    assert command.startswith("exec $JAVA_HOME/bin/java -Xmx640m ")
    assert "-cp '/opt/spark/jars/*' org.apache.spark.deploy.yarn.ApplicationMaster" in command
    assert "--class org.apache.spark.deploy.PythonRunner --primary-py-file /shared/run/n1.py" in command
    assert command.endswith(">/shared/run/n1.log 2>&1")
    assert set(found.files) == {"n1.py", "n1.json", "n1.properties"}
    call = json.loads(found.files["n1.json"])
    assert call["tables"] == {"region": {"path": "/data/t/region.parquet", "schema": "r_regionkey bigint"}}
    assert list(call["queries"]) == ["6"]
    assert call["answer"] == f"/shared/run/{found.answer}"
    properties = found.properties
    assert properties["spark.app.name"] == "mine"
    assert properties["spark.executor.instances"] == "2"
    # Heap and the rest are the container, to the megabyte.
    assert (properties["spark.executor.memory"], properties["spark.executor.memoryOverhead"]) == ("768m", "256m")
    assert "spark.executorEnv.SPARK_LOCAL_IP" not in properties


def test_what_the_other_programs_are_told() -> None:
    call = json.loads(made("kmeans", POINTS).files["n1.json"])
    assert call["input"] == ["/data/p/part-00000.txt"]
    assert (call["k"], call["iterations"], call["tolerance"]) == (10, 10, 0.0)
    call = json.loads(made("als", POINTS).files["n1.json"])
    assert (call["rank"], call["regularisation"], call["blocks"]) == (5, 0.1, 2)
    one = programs()["kmeans"]
    for given, said in (({"k": "1"}, "from 2 to 1000"), ({"k": "2.5"}, "whole number")):
        with pytest.raises(CallError, match=said):
            plan(
                one,
                one.settings_with(given),
                SparkSizes(),
                PLACE,
                POINTS,
                queue="a",
                name="n",
                tags=[],
                source=b"",
            )


def test_reads_are_cut_into_about_as_many_tasks_as_asked_for() -> None:
    assert made("kmeans", POINTS).properties["spark.sql.files.maxPartitionBytes"] == "2000000"


def test_sizes() -> None:
    assert split_memory(4096, 256) == (3072, 1024)
    assert split_memory(896, 384) == (512, 384)
    for wrong in ({"executor_mb": 512}, {"am_mb": 512}, {"executors": 0}, {"executor_cores": 0}):
        with pytest.raises(CallError, match="give a number from"):
            SparkSizes(**wrong)


def test_properties_keep_their_backslashes() -> None:
    assert property_file({"a": "b\\c\nd"}) == "a=b\\\\c\\nd\n"


def test_nodes_have_to_hold_master_and_executors_at_once() -> None:
    sizes = SparkSizes(executors=3, executor_mb=1024, executor_cores=1, am_mb=1024)
    assert fits(sizes, [Resource(2048, 4), Resource(2048, 4)]) is None
    assert "2 executor(s) of 1024 MB" in str(fits(sizes, [Resource(2048, 4), Resource(1536, 4)]))
    # Vcores bound it before memory does.
    assert "1 executor(s)" in str(fits(sizes, [Resource(8192, 2)]))
    assert "no node holds the application master" in str(fits(sizes, [Resource(1000, 4)] * 9))
    assert "no node holds an executor" in str(fits(replace(sizes, executor_mb=3000), [Resource(2048, 4)] * 9))
    # The master goes where it costs no executor.
    odd = replace(sizes, executors=2, executor_mb=2048)
    assert fits(odd, [Resource(2048, 4), Resource(2048, 4), Resource(1024, 1)]) is None


class Rest:
    """A ResourceManager with nodes, and nothing else."""

    def __init__(self, *nodes: Resource, address: str = "http://rm:8088") -> None:
        self._nodes = nodes
        self.http = SimpleNamespace(current=address)

    def nodes(self) -> list[Any]:
        return [SimpleNamespace(state="RUNNING", total=node) for node in self._nodes]


def on(rest: Rest, folder: Path, limit_mb: int | None = None) -> SparkPrograms:
    programs = SparkPrograms(Site(cast(RestClient, rest), LocalFolder(folder), "python3", {}, "t"), [])
    programs.nodes.node_limit_mb = lambda: limit_mb  # type: ignore[method-assign]
    return programs


def test_a_run_that_looked_for_room_does_not_look_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = DataSpec(kind="points", size="10KB")
    generate("points", 10_000, 1, FolderTarget(tmp_path / "points"))
    workload = ProgramsWorkload.model_validate(
        {
            "kind": "programs",
            "am": {"memory_mb": 1024},
            "task": {"memory_mb": 1024},
            "data": {"points": {"kind": "points", "size": "10KB"}},
            "submission": {"think_s": 0},
            "programs": [
                {"application": "kmeans", "input": ["points"], "executors": {"count": 1, "demand": {"memory_mb": 1024}}}
            ],
        }
    )
    (job,) = jobs_of_program(workload, workload.programs[0], "root.default", "k")
    taken: list[str] = []

    class Taking(Rest):
        def submit(self, submission: Any) -> str:
            taken.append(submission.name)
            return "application_1_0001"

    monkeypatch.setattr(SparkNodes, "home", lambda *_: "/opt/spark")
    folders = {data: tmp_path / "points"}
    # As while the ResourceManager restarts: it has no nodes yet.
    site = Site(cast(RestClient, Taking()), LocalFolder(tmp_path / "shared"), "python3", folders, "t")
    programs = SparkPrograms(site, [job])
    programs._scheduler = "rm:8030"
    assert programs.submit(job.spec.id) == "application_1_0001"
    assert len(taken) == 1
    with pytest.raises(InputError, match="no node is RUNNING"):
        programs.prepare()
    programs.close()


def test_memory_is_refused_before_it_starts(tmp_path: Path) -> None:
    sizes = SparkSizes()
    on(Rest(Resource(4096, 4)), tmp_path).check_room(sizes)
    with pytest.raises(InputError, match="no node is RUNNING"):
        on(Rest(), tmp_path).check_room(sizes)
    with pytest.raises(InputError, match=r"hold the application master of 1024 MB and 1 executor\(s\).*not 2"):
        on(Rest(Resource(2048, 4)), tmp_path).check_room(sizes)
    # 3 containers of 1024 MB may be on one node of 4096 MB, which is limited to less.
    with pytest.raises(InputError, match=r"limited to 1536 MB; .*NM_MEM_LIMIT=3372m"):
        on(Rest(Resource(4096, 4)), tmp_path, 1536).check_room(sizes)
    on(Rest(Resource(4096, 4)), tmp_path, 3372).check_room(sizes)
    with pytest.raises(InputError, match=r"this machine has [0-9]+ MB left"):
        on(Rest(Resource(10**9, 4), address="http://127.0.0.1:1"), tmp_path).check_room(
            replace(sizes, executor_mb=2**20)
        )


def test_data_that_cannot_be_used_is_refused(tmp_path: Path) -> None:
    generate("points", 2000, 1, FolderTarget(tmp_path / "points"))
    found = read_input(programs()["kmeans"], tmp_path / "points")
    assert found.files == ("part-00000.txt",)
    assert found.wanted == 2000
    with pytest.raises(InputError, match="a data set of points; give one of ratings"):
        read_input(programs()["als"], tmp_path / "points")
    with pytest.raises(InputError, match="no such folder; make it: yarnfair data generate tpch"):
        read_input(programs()["tpch-q1"], tmp_path / "none")
    (tmp_path / "few").mkdir()
    (tmp_path / "few" / "region.parquet").write_bytes(b"PAR1")
    with pytest.raises(InputError, match=r"no customer\.parquet, lineitem\.parquet"):
        read_input(programs()["tpch-q1"], tmp_path / "few")
    with pytest.raises(InputError, match="no blanks"):
        read_input(programs()["tpch-q1"], tmp_path / "a b")


def test_tables_bring_their_schemas(data_set: Callable[[str, int], Path], tmp_path: Path) -> None:
    shutil.copytree(data_set("tpch", 1_000_000), tmp_path / "tpch")
    found = read_input(programs()["tpch-q1"], tmp_path / "tpch")
    assert len(found.schemas) == 8
    assert found.schemas["region"] == "r_regionkey bigint, r_name string, r_comment string"
    assert "l_quantity decimal(15,2)" in found.schemas["lineitem"]
    region = tmp_path / "tpch" / "region.parquet"
    region.write_bytes(b"nothing".ljust(region.stat().st_size))
    with pytest.raises(InputError, match="no parquet that can be read"):
        read_input(programs()["tpch-q1"], tmp_path / "tpch")


def test_the_reason_is_found_in_a_drivers_log() -> None:
    log = """Using Spark's default log4j profile
26/11/22 00:44:03 INFO SignalUtils: Registering signal handler for TERM
Traceback (most recent call last):
  File "/w/sql.py", line 21, in main
    spark.sql(sql)
pyspark.errors.exceptions.captured.AnalysisException: [TABLE_OR_VIEW_NOT_FOUND] The table `x` cannot be found.
\tat org.apache.spark.sql.X(X.scala:1)
26/11/22 00:44:09 ERROR ApplicationMaster: User application exited with status 1
26/11/22 00:44:09 INFO ShutdownHookManager: Shutdown hook called
"""
    assert driver_lines(log)[-1].startswith("pyspark.errors.exceptions.captured.AnalysisException: [TABLE_OR")
    java = """Traceback (most recent call last):
  File "/w/sql.py", line 17, in main
py4j.protocol.Py4JJavaError: An error occurred while calling None.org.apache.spark.api.java.JavaSparkContext.
: java.io.FileNotFoundException: File file:/nosuch does not exist
\tat org.apache.hadoop.fs.RawLocalFileSystem.X(X.java:1)
26/11/22 00:44:09 ERROR ApplicationMaster: Uncaught exception:
org.apache.spark.SparkException: Exception thrown in awaitResult:
\tat org.apache.spark.util.X(X.scala:1)
"""
    assert driver_lines(java)[-1] == ": java.io.FileNotFoundException: File file:/nosuch does not exist"
    assert driver_lines("26/11/22 00:44:09 INFO X: y\nno space left\n") == ["no space left"]
    assert driver_lines("") == []


def test_the_engine_stands_in_run_json_with_what_all_runs_share(tmp_path: Path) -> None:
    run = on(Rest(), tmp_path)
    assert run.document()["properties"] == {}
    run._submitted = {name: SimpleNamespace(plan=made(name, POINTS)) for name in ("kmeans", "als")}  # type: ignore[misc]
    found = run.document()
    assert found["spark"].count(".") == 2
    assert found["properties"]["spark.executor.memory"] == "768m"
    assert "spark.app.name" not in found["properties"]
