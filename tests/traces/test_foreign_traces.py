"""Traces of other systems become ours: what a file says is kept, what it lacks is assumed and said, damage is local."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pyarrow as pa
import pytest
from click.testing import CliRunner

import yarnfair
from harness.base.errors import CallError, InputError
from harness.cli import cli
from harness.predict.converting import Nodes, converted, kinds
from harness.predict.foreign import played_trace
from harness.traces.accounting import NEVER_STARTED, NO_END, NOT_WANTED, unsure_because
from harness.traces.formats import FORMATS, Assumptions, ConvertibleFormat, TraceFormat, format_of, head_of
from harness.traces.recorded import JobLine, Trace
from tests.traces import foreign_samples as samples
from tests.traces.histories import DAY, Job, Run, as_binary
from tests.traces.test_identity import identity_holds
from tests.traces.test_rumen_and_sls import attempt, rumen_job, sls_job
from tests.traces.test_tables import CSV, SWF


def put(folder: Path, **files: str | bytes) -> list[Path]:
    found = []
    for name, content in files.items():
        path = folder / name.replace("__", ".")
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        found.append(path)
    return found


def made(kind: str, paths: list[Path], tmp_path: Path, nodes: Nodes | None = None, **set_to: object) -> Trace:
    out = tmp_path / "out.jsonl"
    return converted(kind, paths, out, assumed=Assumptions(**set_to), nodes=nodes)  # type: ignore[arg-type]


def by_name(trace: Trace) -> dict[str, JobLine]:
    return {job.job: job for job in trace.jobs}


def left_out(trace: Trace) -> dict[str, int]:
    return {line.reason: line.jobs or line.attempts or line.records for line in trace.header.left_out}


def test_batch_tasks_of_alibaba_wait_for_each_other_as_their_names_say(tmp_path: Path) -> None:
    trace = made("alibaba-2018", put(tmp_path, batch_task__csv=samples.BATCH_TASK), tmp_path)
    jobs = by_name(trace)
    assert set(jobs) == {"j_1", "j_2"}, "the task of j_3 had not ended"
    one = jobs["j_1"]
    assert [(stage.name, stage.after, stage.tasks_s) for stage in one.stages] == [
        ("M1", [], [30.0, 30.0]),
        ("R2_1", ["M1"], [20.0]),
        ("J3_1_2", ["M1", "R2_1"], [10.0]),
    ]
    # 0.5 % of 262,144 MB; half a core is a whole one.
    assert (one.stages[0].memory_mb, one.stages[1].vcores) == (1311, 1)
    assert (one.submit_s, one.finished_s, one.am.memory_mb) == (0, 60, 0)
    assert jobs["j_2"].stages[0].vcores == 2
    assert NO_END in left_out(trace)
    assert any("262,144 MB" in text for text in trace.header.assumed)
    assert trace.header.unknown == ["the trace names no queue"]


def test_instances_of_alibaba_have_their_own_times_and_machines_are_nodes(tmp_path: Path) -> None:
    files = put(
        tmp_path,
        batch_task__csv=samples.BATCH_TASK,
        batch_instance__csv=samples.BATCH_INSTANCE,
        machine_meta__csv=samples.MACHINE_META,
    )
    trace = made("alibaba-2018", files, tmp_path, machine_memory_mb=100_000)
    first = by_name(trace)["j_1"].stages[0]
    assert (first.tasks_s, first.retry_of, first.memory_mb) == ([20.0, 10.0, 18.0], [None, None, 1], 500)
    assert sorted((node.count, node.memory_mb, node.vcores) for node in trace.header.nodes) == [
        (1, 50_000, 96),
        (1, 100_000, 96),
    ]
    assert left_out(trace)["instances of jobs that batch_task does not have"] == 1
    with pytest.raises(InputError, match="needs the table batch_task"):
        made("alibaba-2018", files[1:2], tmp_path)


def test_tasks_of_pai_are_stages_that_can_all_begin(tmp_path: Path) -> None:
    files = put(
        tmp_path,
        pai_task_table__csv=samples.PAI_TASK,
        pai_job_table__csv=samples.PAI_JOB,
        pai_machine_spec__csv=samples.PAI_MACHINE,
    )
    trace = made("alibaba-gpu-2020", files, tmp_path, queue_by="gpu-type")
    jobs = by_name(trace)
    published = jobs["4f057009a5d481acec67b088"]
    assert (published.stages[0].memory_mb, published.stages[0].vcores) == (30_000, 6)
    assert (published.queue, published.stages[0].tasks_s) == ("root.MISC", [38.0])
    two = jobs["aa"]
    assert [(stage.name, len(stage.tasks_s), stage.after) for stage in two.stages] == [("ps", 1, []), ("worker", 2, [])]
    assert (two.user, two.submit_s, two.started_s, two.finished_s) == ("58540f191766", 0, 20, 90)
    assert {(node.memory_mb, node.vcores) for node in trace.header.nodes} == {(524_288, 64), (524_288, 96)}
    gpus = made("alibaba-gpu-2020", files, tmp_path, gpus_as_vcores=True)
    # Half a GPU is a whole vcore; the machine without a GPU has none.
    assert by_name(gpus)["4f057009a5d481acec67b088"].stages[0].vcores == 1
    assert [(node.count, node.vcores) for node in gpus.header.nodes] == [(1, 2)]


def test_a_pod_is_a_job_of_one_container_in_the_queue_of_its_class(tmp_path: Path) -> None:
    files = put(tmp_path, pods__csv=samples.OPENB_PODS, nodes__csv=samples.OPENB_NODES)
    trace = made("alibaba-gpu-2023", files, tmp_path)
    jobs = by_name(trace)
    assert len(jobs) == 4
    large = jobs["openb-pod-0017"]
    assert (large.queue, large.stages[0].memory_mb, large.stages[0].vcores) == ("root.Burstable", 327_680, 88)
    assert large.stages[0].tasks_s == [10_769_854 - 9_437_497]
    assert jobs["openb-pod-0033"].stages[0].vcores == 4, "3,152 of a thousandth of a core"
    waited = jobs["openb-pod-0035"]
    assert waited.started_s is not None
    assert waited.started_s - waited.submit_s == 5
    assert left_out(trace)[NEVER_STARTED] == 1
    assert sum(node.count for node in trace.header.nodes) == 3
    by_gpu = made("alibaba-gpu-2023", files, tmp_path, queue_by="gpu-spec", gpus_as_vcores=True)
    assert by_name(by_gpu)["openb-pod-0035"].queue == "root.V100M16-V100M32"
    assert by_name(by_gpu)["openb-pod-0022"].stages[0].vcores == 1


def test_an_attempt_of_philly_begins_when_the_one_before_has_ended(tmp_path: Path) -> None:
    two_machines = {
        "start_time": "2017-10-07 02:00:00",
        "end_time": "2017-10-07 03:00:00",
        "detail": [{"ip": "m1", "gpus": ["gpu0", "gpu1"]}, {"ip": "m2", "gpus": ["gpu0", "gpu1"]}],
    }
    running = {**two_machines, "end_time": None}
    log = samples.philly_log(
        samples.philly_job(14199),
        samples.philly_job(14200, attempts=[two_machines], vc="aaaaaa"),
        samples.philly_job(14201, attempts=[]),
        samples.philly_job(14202, attempts=[running]),
    )
    files = put(tmp_path, cluster_job_log=log, cluster_machine_list=samples.PHILLY_MACHINES)
    trace = made("philly", files, tmp_path, memory_mb=4096)
    jobs = by_name(trace)
    assert set(jobs) == {"application_1506638472019_14199", "application_1506638472019_14200"}
    published = jobs["application_1506638472019_14199"]
    assert [(stage.tasks_s, stage.vcores, stage.after) for stage in published.stages] == [
        ([74.0], 8, []),
        ([193_182.0], 8, ["attempt-1-of-8"]),
    ]
    assert (published.queue, published.user, published.started_s) == ("root.ee9e8c", "ce2f4c", 30)
    assert jobs["application_1506638472019_14200"].stages[0].tasks_s == [3600.0, 3600.0]
    assert [(node.memory_mb, node.vcores) for node in trace.header.nodes] == [(8192, 2), (32_768, 8)]
    assert left_out(trace)[NEVER_STARTED] == 1


@pytest.mark.parametrize("form", ["json", "csv"])
def test_an_evicted_instance_of_google_asks_again(tmp_path: Path, form: str) -> None:
    collections, instances, machines = samples.google_events()
    write = samples.json_lines if form == "json" else samples.csv_of
    files = put(tmp_path, collections=write(collections), instances=write(instances), machines=write(machines))
    trace = made("google-2019", files, tmp_path)
    jobs = by_name(trace)
    assert set(jobs) == {"11"}, "an alloc set is no job; 13 was killed while it waited"
    job = jobs["11"]
    (stage,) = job.stages
    # The second instance had not ended at the last event.
    assert (stage.tasks_s, stage.retry_of) == ([30.0, 60.0, 195.0], [None, 0, None])
    assert (stage.memory_mb, stage.vcores, job.queue, job.user) == (2048, 2, "root.production", "alice=")
    assert (job.started_s, job.finished_s, job.name) == (2, 200, "logical=")
    assert [(node.count, node.memory_mb, node.vcores) for node in trace.header.nodes] == [(3, 131_072, 64)]
    reasons = left_out(trace)
    assert reasons["alloc sets: reservations, in which jobs run"] == 3
    assert any("(1 attempts)" in text for text in trace.header.assumed)


@pytest.mark.parametrize("form", ["json", "csv"])
def test_a_collection_that_starts_after_others_is_submitted_when_it_was_enabled(tmp_path: Path, form: str) -> None:
    second = 1_000_000
    # CSV with lists has them in quotes.
    waits_for = ["1"] if form == "json" else '"[1]"'
    of = {"collection_id": "2", "user": "u", "priority": 200}
    collections = [
        {"time": 0, "type": 0, **of, "start_after_collection_ids": waits_for},
        {"time": 5000 * second, "type": 2, **of, "start_after_collection_ids": waits_for},
        {"time": 0, "type": 0, **of, "collection_id": "1", "start_after_collection_ids": ""},
        {"time": 10 * second, "type": 2, **of, "collection_id": "1", "start_after_collection_ids": ""},
    ]
    instances = [
        {"time": at * second, "type": kind, "collection_id": name, "instance_index": 0, "priority": 200}
        for at, kind, name in ((20, 3, "1"), (4990, 6, "1"), (5002, 3, "2"), (5010, 6, "2"))
    ]
    write = samples.json_lines if form == "json" else samples.csv_of
    trace = made("google-2019", put(tmp_path, collections=write(collections), instances=write(instances)), tmp_path)
    assert {job.job: (job.submit_s, job.started_s) for job in trace.jobs} == {"1": (0, 20), "2": (5000, 5002)}
    assert any(text.startswith("1 jobs that start after others") for text in trace.header.assumed)


def test_a_workflow_is_a_job_whose_tasks_wait_for_their_parents(tmp_path: Path) -> None:
    tasks = [
        samples.wta_task(1, 7, 1000, 5000, [], wait_ms=500),
        samples.wta_task(2, 7, 6500, 2000, [1], cpus=2.5),
        samples.wta_task(3, 7, 6500, 3000, [1, 99]),
        samples.wta_task(1, 8, 9000, 1000, []),
    ]
    folder = samples.write_wta(tmp_path / "trace", tasks)
    assert format_of(folder, head_of(folder)) is kinds()["wta"]
    trace = made("wta", [folder], tmp_path, memory_mb=512, queue_by="group")
    jobs = by_name(trace)
    assert [(stage.name, stage.after, stage.vcores, stage.tasks_s) for stage in jobs["7"].stages] == [
        ("task-1", [], 1, [5.0]),
        ("task-2", ["task-1"], 3, [2.0]),
        ("task-3", ["task-1"], 1, [3.0]),
    ]
    assert (jobs["7"].queue, jobs["7"].user, jobs["7"].stages[0].memory_mb) == ("root.group2", "user4", 512)
    # The table of workflows says when it was submitted.
    assert (jobs["7"].submit_s, jobs["7"].started_s, jobs["7"].finished_s) == (0, 1.5, 9.5)


def test_a_workflow_of_many_tasks_is_joined_by_levels_and_one_in_a_circle_is_left_out(tmp_path: Path) -> None:
    wide = [samples.wta_task(at, 1, 0, 1000, [] if at < 50 else [at - 50]) for at in range(100)]
    circle = [samples.wta_task(1, 2, 0, 1000, [2]), samples.wta_task(2, 2, 0, 1000, [1])]
    deep = [samples.wta_task(at, 3, 0, 1000, [at - 1] if at else []) for at in range(63)]
    trace = made("wta", [samples.write_wta(tmp_path / "trace", [*wide, *circle, *deep])], tmp_path)
    (job,) = trace.jobs
    assert [(len(stage.tasks_s), len(stage.after)) for stage in job.stages] == [(50, 0), (50, 1)]
    assert sum("cannot be read" in line.reason for line in trace.header.left_out) == 2
    assert any("more than 62 kinds of tasks" in text for text in trace.header.assumed)


def test_jobs_of_hadoop_1_have_their_attempts_or_shapes_that_are_said_to_be_assumed(tmp_path: Path) -> None:
    files = put(tmp_path, jobs__csv=samples.OPENCLOUD_JOBS, attempts__csv=samples.OPENCLOUD_ATTEMPTS)
    trace = made("opencloud", files, tmp_path, queue_by="user")
    jobs = by_name(trace)
    sums, known = jobs["job_201005011200_0001"], jobs["job_201005011200_0002"]
    # 600 maps on 512 containers are two waves, the reduce is a third: 100 s.
    assert [(len(stage.tasks_s), stage.tasks_s[0]) for stage in sums.stages] == [(600, 33.333), (1, 33.333)]
    assert (sums.detail, known.detail, sums.queue) == ("integrals", "tasks", "root.user1")
    assert [(stage.tasks_s, stage.retry_of, stage.after) for stage in known.stages] == [
        ([8.0, 6.0, 11.0], [None, None, 1], []),
        ([10.0], [], ["map"]),
    ]
    # The reduce's time has its wait for the maps in it: it may begin as early as Hadoop's default lets it.
    assert (known.kind, [(stage.slow_start, stage.priority) for stage in known.stages]) == (
        "mapreduce",
        [(1.0, 20), (0.05, 10)],
    )
    assert (sums.kind, {stage.slow_start for stage in sums.stages}) == ("dag", {1.0})
    assert any("5 % of their job's maps" in text for text in trace.header.assumed)
    assert left_out(trace)[NO_END] == 1
    names, _, rows = samples.OPENCLOUD_JOBS.partition("\n")
    (bare,) = put(tmp_path, bare__csv=rows)
    again = made("opencloud", [bare], tmp_path, columns=tuple(names.split(",")), queue_by="user")
    assert by_name(again)["job_201005011200_0001"] == sums
    with pytest.raises(InputError, match="no table of OpenCloud"):
        made("opencloud", [bare], tmp_path)


def test_logs_and_tables_of_jobs_are_taken_too(tmp_path: Path) -> None:
    swf, table = put(tmp_path, log__swf=SWF, jobs__csv=CSV)
    users = made("swf", [swf], tmp_path, queue_by="user", memory_mb=2048)
    assert {job.queue for job in users.jobs} == {"root.user7", "root.user8", "root.default"}
    assert by_name(users)["5"].stages[0].memory_mb == 2048
    jobs = made("csv", [table, table], tmp_path, nodes=Nodes(3, 8192, 8), am_memory_mb=512)
    assert {job.am.memory_mb for job in jobs.jobs} == {512}
    assert [node.count for node in jobs.header.nodes] == [3]
    # A row of the second file without a name is another job; one with a name is the same again.
    assert set(by_name(jobs)) == {"nightly", "2", "2-2"}


def test_the_assumed_cluster_is_as_large_as_what_the_jobs_held_at_once(tmp_path: Path) -> None:
    rows = ["submit_s,tasks,task_s,memory_mb,finished_s", "0,64,10,4096,10", "5,64,10,4096,15", "20,64,10,4096,30"]
    (path,) = put(tmp_path, jobs__csv="\n".join(rows))
    trace = made("csv", [path], tmp_path, am_memory_mb=0, am_vcores=0)
    # Two jobs of 64 containers of 4 GiB at once, on nodes of 64 GiB and 16 vcores.
    assert [(node.count, node.memory_mb, node.vcores) for node in trace.header.nodes] == [(8, 65_536, 16)]
    assert any(text.startswith("8 nodes of 65,536 MB") for text in trace.header.assumed)


def test_only_jobs_of_a_span_are_taken_and_the_others_are_not_missing(tmp_path: Path) -> None:
    (path,) = put(tmp_path, batch_task__csv=samples.BATCH_TASK.replace(",0,100.0", ",340,100.0"))
    trace = made("alibaba-2018", [path], tmp_path, from_s=150.0, until_s=300.0)
    assert set(by_name(trace)) == {"j_2"}
    assert left_out(trace)[NOT_WANTED] == 2
    assert "only jobs submitted from 150 s before 300 s" in trace.header.assumed
    trace.header.unknown.clear()
    assert unsure_because(trace.header, trace.jobs) == []


def outside_of_the_span(kind: str, folder: Path) -> list[Path]:
    """Files of two jobs: a small one from 1,000 s on, before it one with attempts whose times cannot be."""
    second = 1_000_000
    late = {"collection_id": "2", "instance_index": 0, "resource_request": {"cpus": 0.1, "memory": 0.1}}
    pod = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,qos,creation_time,deletion_time,scheduled_time\n"
    early = {"start_time": "2017-10-01 00:00:00", "end_time": "2017-10-01 01:00:00"}
    many = [{**early, "detail": [{"ip": f"m{at}", "gpus": ["g"]} for at in range(3)]}, {**early, "end_time": None}]
    hadoop = [
        "JOBID,TASK_TYPE,TASKID,START_TIME,FINISH_TIME",
        *(f"a,MAP,m{at},1000000000000,{1000000010000 if at else ''}" for at in range(4)),
        "b,MAP,m0,1000001000000,1000001010000",
    ]
    names = "JOBID,SUBMIT_TIME,FINISH_TIME,TOTAL_MAPS,TOTAL_REDUCES\n"
    files: dict[str, dict[str, str]] = {
        "alibaba-2018": {
            "tasks__csv": "M1,4,a,1,Terminated,10,130,100,0.5\nM1,1,b,1,Terminated,1000,1010,100,0.5\n",
            "instances__csv": "".join(f"i{at},M1,a,1,Terminated,10,{at and 20},m,1,1,1,1,1,1\n" for at in range(4))
            + "i0,M1,b,1,Terminated,1000,1010,m,1,1,1,1,1,1\n",
        },
        "alibaba-gpu-2020": {
            "tasks__csv": "a,t,3,Terminated,10,20,100,1,0,\na,u,1,Running,10,,100,1,0,\n"
            "b,t,1,Terminated,1000,1010,1,1,0,\n"
        },
        "alibaba-gpu-2023": {
            "pods__csv": f"{pod}a,1000,1,0,0,LS,10,20,10\nb,1000,1,0,0,LS,20,30,20\nc,1000,1,0,0,LS,1000,1010,1000\n"
        },
        "google-2019": {
            "events__json": samples.json_lines(
                [
                    *(
                        {**late, "collection_id": "1", "instance_index": at, "time": second, "type": 3}
                        for at in range(3)
                    ),
                    {**late, "collection_id": "1", "instance_index": 4, "time": 2 * second, "type": 6},
                    {**late, "time": 1000 * second, "type": 3},
                    {**late, "time": 1010 * second, "type": 6},
                ]
            )
        },
        "philly": {
            "log__json": samples.philly_log(
                samples.philly_job(1, submitted_time="2017-10-01 00:00:00", attempts=many),
                samples.philly_job(2, submitted_time="2017-10-01 00:16:40", attempts=many[:1]),
            )
        },
        "opencloud": {
            "jobs__csv": f"{names}a,1000000000000,1000000010000,4,0\nb,1000001000000,1000001010000,1,0\n",
            "attempts__csv": "\n".join(hadoop),
        },
    }
    return put(folder, **files[kind])


@pytest.mark.parametrize(
    "kind", ["alibaba-2018", "alibaba-gpu-2020", "alibaba-gpu-2023", "google-2019", "philly", "opencloud"]
)
def test_what_is_outside_of_the_span_is_of_no_account(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither its tasks count towards what can be held, nor are its damaged attempts missing."""
    files = outside_of_the_span(kind, tmp_path)
    monkeypatch.setattr("harness.traces.formats.base.MOST_TASKS", 3 if kind == "philly" else 1)
    with pytest.raises(InputError, match="more than"):
        kinds()[kind].read_files(files)
    reading = kinds()[kind].read_files(files, Assumptions(from_s=500.0))
    identity_holds(reading)
    assert len(reading.jobs) == 1
    assert set(reading.account.left_out) == {NOT_WANTED}


def test_what_never_ran_outside_of_the_span_is_not_missing(tmp_path: Path) -> None:
    line = "{0} {1} 0 {2} 1 -1 -1 1 -1 -1 1 1 1 -1 1 -1 -1 -1"
    swf, table = put(
        tmp_path,
        log__swf="\n".join((line.format(1, 0, 0), line.format(2, 1000, 10))),
        jobs__csv="submit_s,tasks,task_s\n0,0,5\n1000,1,10\n",
    )
    for kind, path in (("swf", swf), ("csv", table)):
        reading = kinds()[kind].read_files([path], Assumptions(from_s=500.0))
        assert (len(reading.jobs), set(reading.account.left_out)) == (1, {NOT_WANTED}), kind


def test_instances_that_are_not_listed_or_have_no_task_are_counted(tmp_path: Path) -> None:
    tasks = [
        "M1,3,j_1,1,Terminated,100,130,100,0.5",
        "M2,1,j_1,1,Terminated,100,130,100,0.5",
        "M3,2,j_1,1,Terminated,100,130,100,101",
    ]
    listed = [f"{name},{task},j_1,1,Terminated,100,120,m,1,1,1,1,1,1" for name, task in (("a", "M1"), ("b", "M3"))]
    files = put(tmp_path, tasks__csv="\n".join(tasks), instances__csv="\n".join(listed))
    reading = kinds()["alibaba-2018"].read_files(files)
    identity_holds(reading)
    assert [stage.tasks_s for stage in reading.jobs[0].line.stages] == [[20.0], [30.0]]
    missing = reading.account.left_out
    not_listed = missing["instances that batch_task counts and batch_instance does not list"]
    assert (not_listed.tasks, not_listed.attempts) == (2, 2)
    orphans = missing["instances of tasks that batch_task does not have"]
    assert (orphans.attempts, orphans.container_ms) == (1, 20_000)
    assert any(text.startswith("of 1 tasks of which batch_instance lists no instance") for text in reading.assumed)


def test_where_vcores_stand_for_gpus_what_has_no_gpu_is_left_out(tmp_path: Path) -> None:
    tasks, machines, pods, nodes = put(
        tmp_path,
        tasks__csv=samples.PAI_TASK,
        machines__csv=samples.PAI_MACHINE,
        pods__csv=samples.OPENB_PODS.replace("15258,1,220", "15258,0,0"),
        nodes__csv=samples.OPENB_NODES,
    )
    gpus = Assumptions(gpus_as_vcores=True)
    pai = kinds()["alibaba-gpu-2020"].read_files([tasks, machines], gpus)
    openb = kinds()["alibaba-gpu-2023"].read_files([pods, nodes], gpus)
    for reading, counted in ((pai, "attempts"), (openb, "jobs")):
        identity_holds(reading)
        missing = reading.account.left_out["containers without a GPU, which hold nothing where vcores stand for GPUs"]
        assert getattr(missing, counted) == 1
        assert list(reading.assumed_of_nodes) == ["machines without a GPU are left out (1)"]
    (aa,) = (job.line for job in pai.jobs if job.line.job == "aa")
    assert [(stage.name, stage.vcores) for stage in aa.stages] == [("worker", 1)]
    assert "openb-pod-0022" not in {job.line.job for job in openb.jobs}


def test_an_attempt_that_does_not_say_what_it_held_is_counted(tmp_path: Path) -> None:
    whole = samples.philly_job(1)
    bare = {"start_time": "2017-10-07 02:00:00", "end_time": "2017-10-07 03:00:00"}
    log = samples.philly_log(
        {**whole, "attempts": [*whole["attempts"], {**bare, "detail": []}, bare, {**bare, "end_time": None}]}
    )
    reading = kinds()["philly"].read(put(tmp_path, log__json=log)[0])
    identity_holds(reading)
    counted = {reason: missing.attempts for reason, missing in reading.account.left_out.items()}
    assert counted == {"attempts that do not say which GPUs they held": 2, NO_END: 1}


def test_hadoops_own_key_names_the_queue_of_a_job_of_hadoop_1(tmp_path: Path) -> None:
    for name in ("JOB_QUEUE", "QUEUE_NAME"):
        table = (
            f"JOBID,{name},SUBMIT_TIME,FINISH_TIME,TOTAL_MAPS,TOTAL_REDUCES\na,etl,1000000000000,1000000010000,4,0\n"
        )
        (job,) = kinds()["opencloud"].read(put(tmp_path, jobs__csv=table)[0]).jobs
        assert job.line.queue == "root.etl"


@pytest.mark.parametrize(
    ("kind", "set_to", "match"),
    [
        ("philly", {"machine_vcores": 3}, "does not leave this open"),
        ("philly", {"queue_by": "tier"}, "has no 'tier'"),
        ("rumen", {"memory_mb": 3}, "nothing open"),
        ("nothing", {}, "no such kind"),
        ("csv", {"from_s": 5.0, "until_s": 5.0}, "no time lies between"),
    ],
)
def test_an_option_that_is_of_no_account_is_refused(
    tmp_path: Path, kind: str, set_to: dict[str, object], match: str
) -> None:
    with pytest.raises(CallError, match=match):
        made(kind, put(tmp_path, jobs__csv=CSV), tmp_path, **set_to)


def test_the_trace_does_not_replace_what_it_is_made_of(tmp_path: Path) -> None:
    (path,) = put(tmp_path, jobs__csv=CSV)
    with pytest.raises(CallError, match="overwritten"):
        converted("csv", [path], path, assumed=Assumptions())
    assert path.read_text() == CSV


TABLES = {
    "Alibaba 2018": samples.BATCH_TASK,
    "Alibaba GPU 2020": samples.PAI_TASK,
    "Alibaba GPU 2023": samples.OPENB_PODS,
    "Google 2019": samples.json_lines(samples.google_events()[1]),
    "Philly": samples.philly_log(samples.philly_job(1), samples.philly_job(2)),
    "OpenCloud": samples.OPENCLOUD_JOBS,
    "SWF": SWF,
    "CSV": CSV,
}


@pytest.mark.parametrize("codec", ["gzip", "bz2", "zstd", "lz4"])
@pytest.mark.parametrize("name", TABLES)
def test_a_compressed_file_is_the_same_trace(tmp_path: Path, name: str, codec: str) -> None:
    reader = next(one for one in FORMATS if one.name == name)
    assert isinstance(reader, ConvertibleFormat)
    plain, packed = tmp_path / "plain", tmp_path / "packed"
    plain.write_text(TABLES[name])
    with pa.CompressedOutputStream(str(packed), codec) as stream:
        stream.write(TABLES[name].encode())
    assert format_of(packed, head_of(packed)) is reader
    expected, found = reader.read(plain), reader.read(packed)
    assert [job.line for job in found.jobs] == [job.line for job in expected.jobs]
    assert found.jobs


def hadoops_own(name: str) -> bytes:
    """A file of 40 jobs of Rumen or SLS, or of one job's history."""
    if name == "Rumen":
        return "\n".join(json.dumps(rumen_job(at, [attempt(DAY + 5000, DAY + 9000)])) for at in range(40)).encode()
    if name == "SLS":
        return "\n".join(json.dumps(sls_job(at)) for at in range(40)).encode() + b'\n{"num.nodes": 3}'
    lines = Job([Run(at, 6 + at / 100, 20 + at / 100) for at in range(400)]).lines()
    return "\n".join(lines).encode() if name == "job history" else as_binary(lines)


@pytest.mark.parametrize("codec", ["gzip", "bz2", "zstd", "lz4"])
@pytest.mark.parametrize("name", ["Rumen", "SLS", "job history", "job history, binary"])
def test_a_compressed_file_of_hadoops_own_is_the_same_trace(tmp_path: Path, name: str, codec: str) -> None:
    content = hadoops_own(name)
    plain, packed = tmp_path / "plain", tmp_path / "packed"
    plain.write_bytes(content)
    with pa.CompressedOutputStream(str(packed), codec) as stream:
        stream.write(content)
    reader = format_of(packed, head_of(packed))
    assert isinstance(reader, TraceFormat)
    assert reader.name == name.partition(",")[0]
    expected, found = reader.read(plain), reader.read(packed)
    assert [job.line for job in found.jobs] == [job.line for job in expected.jobs]
    assert (found.nodes, found.account, found.unknown) == (expected.nodes, expected.account, expected.unknown)
    assert found.jobs


@pytest.mark.parametrize("name", ["Rumen", "SLS", "job history", "job history, binary", "Philly", "CSV"])
def test_a_compressed_file_that_is_cut_is_read_up_to_there_in_any_format(tmp_path: Path, name: str) -> None:
    if name == "Philly":
        content = samples.philly_log(*(samples.philly_job(at) for at in range(400))).encode()
    elif name == "CSV":
        content = ("submit_s,tasks,task_s\n" + "".join(f"{at},1,{at + 1}\n" for at in range(4000))).encode()
    else:
        content = hadoops_own(name)
    packed = gzip.compress(content, 1)
    path = put(tmp_path, cut__gz=packed[: len(packed) * 3 // 4])[0]
    reader = format_of(path, head_of(path))
    assert isinstance(reader, TraceFormat)
    reading = reader.read(path)
    identity_holds(reading)
    assert reading.jobs
    assert any("cut.gz after line" in text for text in reading.unknown)


def test_a_compressed_history_in_a_folder_is_not_passed_over(tmp_path: Path) -> None:
    for number in (1, 2):
        job = Job([Run(0, 6, 20)], number=number)
        content = "\n".join(job.lines()).encode()
        packed = number == 2
        name = f"{job.id}.jhist{'.gz' if packed else ''}"
        (tmp_path / name).write_bytes(gzip.compress(content) if packed else content)
    reader = format_of(tmp_path, head_of(tmp_path))
    assert isinstance(reader, TraceFormat)
    assert len(reader.read(tmp_path).jobs) == 2


def test_a_compressed_file_that_is_cut_gives_what_stands_before_and_says_so(tmp_path: Path) -> None:
    rows = "".join(f"M1,1.0,j_{at},1,Terminated,{100 + at},{130 + at},100.0,0.5\n" for at in range(60_000))
    packed = gzip.compress(rows.encode(), 1)
    (path,) = put(tmp_path, batch_task__csv__gz=packed[: len(packed) // 2])
    reading = kinds()["alibaba-2018"].read(path)
    identity_holds(reading)
    assert 5_000 < len(reading.jobs) < 59_000
    assert any("batch_task.csv.gz after line" in text for text in reading.unknown)
    (plain,) = put(tmp_path, log__swf__gz=gzip.compress(SWF.encode())[:-12])
    found = kinds()["swf"].read(plain)
    assert any("after line" in text for text in found.unknown)


def test_a_file_of_several_compressed_members_is_read_to_its_end(tmp_path: Path) -> None:
    first, second = samples.BATCH_TASK.splitlines(keepends=True)[:3], samples.BATCH_TASK.splitlines(keepends=True)[3:]
    (path,) = put(tmp_path, x__gz=b"".join(gzip.compress("".join(part).encode()) for part in (first, second)))
    assert len(kinds()["alibaba-2018"].read(path).jobs) == 2


@pytest.mark.parametrize(
    "bad",
    [
        "M1,1e999,j_9,1,Terminated,100,130,100.0,0.5",
        "M1,1,j_9,1,Terminated,nanx,130,100.0,0.5",
        "M1,1,j_9,1,Terminated,-5,130,100.0,0.5",
        "M1,1,j_9,1,Terminated,100,130,1e300,0.5",
        "M1,1,j_9,1,Terminated,100,130,100.0,101",
        "M1,1.5,j_9,1,Terminated,100,130,100.0,0.5",
        "M1,1,j_9,1,Terminated,100,130,100.0",
        '"M1,1,j_9,1,Terminated,100,130,100.0,0.5',
        "M1,1,,1,Terminated,100,130,100.0,0.5",
        "M1,Infinity,j_9,1,Terminated,100,130,100.0,0.5",
    ],
)
def test_a_row_that_no_machine_wrote_is_left_out_alone(tmp_path: Path, bad: str) -> None:
    lines = samples.BATCH_TASK.splitlines()
    lines.insert(1, bad)
    (path,) = put(tmp_path, batch_task__csv="\n".join(lines))
    reading = kinds()["alibaba-2018"].read(path)
    identity_holds(reading)
    assert {job.line.job for job in reading.jobs} == {"j_1", "j_2"}
    (reason,) = (reason for reason in reading.account.left_out if reason.startswith("cannot be read"))
    assert f"{path}:2" in reason


def test_a_damaged_part_of_parquet_is_left_out_alone(tmp_path: Path) -> None:
    folder = samples.write_wta(tmp_path / "trace", [samples.wta_task(at, at, 0, 1000, []) for at in range(5)])
    (folder / "tasks/schema-1.0/part.1.parquet").write_bytes(b"PAR1 and nothing that Arrow could read")
    reading = kinds()["wta"].read(folder)
    identity_holds(reading)
    assert len(reading.jobs) == 5
    assert any("damaged" in reason for reason in reading.account.left_out)


#: The pods, all of them in one hour: weeks take long to play.
PODS_OF_AN_HOUR = f"""{samples.OPENB_PODS.splitlines()[0]}
a,88000,327680,8,1000,,Burstable,Succeeded,100,1854,100
b,4000,15258,1,220,,BE,Running,175,1226,175
c,3152,5600,1,1000,,BE,Failed,463,645,463
d,16000,32768,1,1000,V100M16|V100M32,LS,Running,1058,2568,1063
"""


def test_the_command_writes_a_trace_that_is_played(tmp_path: Path) -> None:
    files = put(tmp_path, pods__csv=PODS_OF_AN_HOUR)
    out = tmp_path / "pods.jsonl"
    done = CliRunner().invoke(
        cli, ["data", "convert", "alibaba-gpu-2023", *map(str, files), "-o", str(out), "--json"], catch_exceptions=False
    )
    document = json.loads(done.stdout)
    assert (document["applications"], document["tasks"]) == (4, 4)
    assert document["queues"] == ["root.BE", "root.Burstable", "root.LS"]
    assert document["shape"] == {"applications": 4, "by_sums": 0, "known": 1.0}
    yarnfair.replay(out, ["fair"], out=tmp_path / "run", processes=1)
    assert json.loads((tmp_path / "run" / "fair" / "summary.json").read_text())["makespan_s"] > 1800


def test_a_trace_is_played_without_being_converted_first(tmp_path: Path) -> None:
    for name, content in TABLES.items():
        path = tmp_path / name
        path.write_text(content)
        cluster = tmp_path / "cluster.yaml"
        cluster.write_text("nodes: [{count: 9, memory_mb: 800000, vcores: 128}]\nqueues: {root.x: {}}\n")
        assert played_trace(path, cluster, tmp_path / "out.jsonl").jobs, name


def test_the_formats_are_listed_with_what_can_be_set() -> None:
    done = CliRunner().invoke(cli, ["data", "formats", "--json"], catch_exceptions=False)
    listed = {one["kind"]: one for one in json.loads(done.stdout)["formats"]}
    assert {"swf", "csv", "wta", "google-2019", "alibaba-2018", "philly", "opencloud", "rumen"} <= set(listed)
    assert "--machine-memory" in listed["google-2019"]["settable"]
    text = CliRunner().invoke(cli, ["data", "formats"], catch_exceptions=False).stdout
    assert "--queue-by" in text
