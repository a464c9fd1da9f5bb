"""Small files in the shape of other systems' traces.

Rows marked as published stand so in the trace's own repository or documentation. All other values are made up, in the
units that its documentation gives.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

#: Made up; columns and units as schema.txt of cluster-trace-v2018. The files have no line of names.
BATCH_TASK = """M1,2.0,j_1,1,Terminated,100,130,100.0,0.5
R2_1,1.0,j_1,1,Terminated,130,150,50.0,0.39
J3_1_2,1.0,j_1,1,Terminated,150,160,100.0,0.5
task_Nzg3ODAwNDgzMTAwNTc2NTQ2Mw==,3.0,j_2,12,Terminated,200,260,200.0,1.0
M1,1.0,j_3,1,Running,300,0,100.0,0.5
"""
BATCH_INSTANCE = """ins_1,M1,j_1,1,Terminated,100,120,m_1,1,1,97.0,100.0,0.1,0.2
ins_2,M1,j_1,1,Failed,100,110,m_2,1,2,97.0,100.0,0.1,0.2
ins_2,M1,j_1,1,Terminated,112,130,m_3,2,2,97.0,100.0,0.1,0.2
ins_9,M1,j_9,1,Terminated,112,130,m_3,1,1,97.0,100.0,0.1,0.2
ins_3,R2_1,j_1,1,Terminated,130,0,m_3,1,1,,,,
"""
MACHINE_META = """m_1,0,1,x,96,100,USING
m_1,500,1,x,96,100,USING
m_2,0,2,y,96,50,USING
"""
#: The first row is published (README of cluster-trace-gpu-v2020); the others are made up.
PAI_TASK = """4f057009a5d481acec67b088,tensorflow,1.0,Terminated,1739162.0,1739200.0,600.0,29.296875,50.0,MISC
aa,ps,1.0,Terminated,1739170.0,1739230.0,400.0,8.0,0.0,
aa,worker,2.0,Terminated,1739170.0,1739240.0,400.0,8.0,100.0,V100
bb,worker,2.0,Running,1739300.0,,400.0,8.0,100.0,V100
"""
PAI_JOB = """aa,inst-aa,58540f191766,Terminated,1739150.0,1739240.0
zz,inst-zz,58540f191766,Terminated,1739150.0,1739240.0
"""
PAI_MACHINE = """machine,gpu_type,cap_cpu,cap_mem,cap_gpu
m1,P100,64,512,2
m2,MISC,96,512,0
"""
#: Published (csv/openb_pod_list_default.csv and csv/openb_node_list_all_node.csv of cluster-trace-gpu-v2023).
OPENB_PODS = """name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,\
scheduled_time
openb-pod-0017,88000,327680,8,1000,,Burstable,Succeeded,9437497,10769854,9437497
openb-pod-0022,4000,15258,1,220,,BE,Running,9679175,9973826,9679175
openb-pod-0033,3152,5600,1,1000,,BE,Failed,9965463,9965645,9965463
openb-pod-0035,16000,32768,1,1000,V100M16|V100M32,LS,Running,9967058,9968575,9967063
openb-pod-0061,11908,47104,1,1000,,BE,Pending,10001278,10001403,
"""
OPENB_NODES = """sn,cpu_milli,memory_mib,gpu,model
openb-node-0227,32000,262144,0,
openb-node-0228,128000,786432,8,G3
openb-node-0229,96000,786432,8,V100M32
"""


def philly_job(number: int, **changes: Any) -> dict[str, Any]:
    """A job as the README of philly-traces shows one (that of number 14199 is published)."""
    gpus = [f"gpu{at}" for at in range(8)]
    attempts = [
        {
            "start_time": f"2017-10-07 {begin}",
            "end_time": f"2017-10-{end}",
            "detail": [{"ip": machine, "gpus": gpus}],
        }
        for begin, end, machine in (("01:12:09", "07 01:13:23", "m47"), ("01:13:30", "09 06:53:12", "m412"))
    ]
    return {
        "status": "Pass",
        "vc": "ee9e8c",
        "jobid": f"application_1506638472019_{number}",
        "attempts": attempts,
        "submitted_time": "2017-10-07 01:11:39",
        "user": "ce2f4c",
        **changes,
    }


def philly_log(*jobs: dict[str, Any]) -> str:
    """As it was published: indented by four."""
    return json.dumps(list(jobs), indent=4)


#: The first row below the names is published (README of philly-traces).
PHILLY_MACHINES = "machineId,number of GPUs,single GPU mem\nm31,8, 24GB\nm32,2, 12GB\n"


def google_events() -> tuple[list[dict[str, Any]], list[dict[str, Any]], list[dict[str, Any]]]:
    """Collections, instances and machines: fields of clusterdata_trace_format_v3.proto, 64-bit numbers as JSON text.

    A job of two instances, of which one is evicted and comes again; an alloc set; a job that is killed while it waits.
    """

    def collection(time: int, kind: int, name: int, **more: Any) -> dict[str, Any]:
        return {
            "time": str(time), "type": kind, "collection_id": str(name), "scheduling_class": 1, "collection_type": 0,
            "priority": 200, "user": "alice=", "collection_name": "n=", "collection_logical_name": "logical=", **more,
        }  # fmt: skip

    def instance(time: int, kind: int, name: int, index: int, **more: Any) -> dict[str, Any]:
        request = {"cpus": 0.03125, "memory": 0.0078125}
        return {
            "time": str(time), "type": kind, "collection_id": str(name), "scheduling_class": 1, "collection_type": 0,
            "priority": 200, "instance_index": index, "machine_id": "7", "resource_request": request,
            "constraint": [], **more,
        }  # fmt: skip

    second = 1_000_000
    collections = [
        collection(600 * second, 0, 11),
        collection(600 * second, 0, 12, collection_type=1, priority=360),
        collection(700 * second, 0, 13, priority=25),
        collection(710 * second, 7, 13, priority=25),
    ]
    instances = [
        instance(600 * second, 0, 11, 0),
        instance(602 * second, 3, 11, 0),
        instance(632 * second, 4, 11, 0),
        instance(640 * second, 3, 11, 0),
        instance(700 * second, 6, 11, 0),
        instance(601 * second, 0, 11, 1),
        instance(605 * second, 3, 11, 1),
        instance(600 * second, 0, 12, 0, collection_type=1),
        instance(601 * second, 3, 12, 0, collection_type=1),
        instance(700 * second, 0, 13, 0, priority=25),
        instance(710 * second, 7, 13, 0, priority=25),
        instance(800 * second, 1, 13, 0, priority=25),
    ]
    machines = [
        {"time": "0", "machine_id": str(at), "type": 1, "switch_id": "s", "capacity": {"cpus": 1.0, "memory": 0.5}}
        for at in range(3)
    ]
    return collections, instances, machines


def json_lines(rows: list[dict[str, Any]]) -> str:
    return "".join(f"{json.dumps(row)}\n" for row in rows)


def csv_of(rows: list[dict[str, Any]]) -> str:
    """Rows with a line of names; an object's fields as ``outer.inner``, without lists, which CSV cannot have."""
    flat = []
    for row in rows:
        found: dict[str, Any] = {}
        for name, value in row.items():
            if isinstance(value, dict):
                found |= {f"{name}.{key}": item for key, item in value.items()}
            elif not isinstance(value, list):
                found[name] = value
        flat.append(found)
    lines = [",".join(flat[0]), *(",".join(str(value) for value in row.values()) for row in flat)]
    return "\n".join(lines) + "\n"


#: The types of objects/task.py of wta-tools, in its order.
WTA_TASKS = pa.schema(
    [
        ("id", pa.int64()), ("ts_submit", pa.int64()), ("submission_site", pa.int32()), ("runtime", pa.int64()),
        ("resource_type", pa.string()), ("resource_amount_requested", pa.float64()),
        ("parents", pa.list_(pa.int64())), ("children", pa.list_(pa.int64())), ("user_id", pa.int32()),
        ("group_id", pa.int32()), ("nfrs", pa.string()), ("workflow_id", pa.int64()), ("wait_time", pa.int64()),
        ("params", pa.string()), ("memory_requested", pa.float64()), ("network_io_time", pa.int64()),
        ("disk_io_time", pa.int64()), ("disk_space_requested", pa.float64()), ("energy_consumption", pa.int64()),
        ("resource_used", pa.int64()),
    ]
)  # fmt: skip


def wta_task(
    id: int, workflow: int, submit_ms: int, run_ms: int, parents: list[int], *, wait_ms: int = 0, cpus: float = 1.0
) -> dict[str, Any]:
    return {
        "id": id, "ts_submit": submit_ms, "submission_site": 0, "runtime": run_ms, "resource_type": "core",
        "resource_amount_requested": cpus, "parents": parents, "children": [], "user_id": 4, "group_id": 2,
        "nfrs": "{}", "workflow_id": workflow, "wait_time": wait_ms, "params": "{}", "memory_requested": -1.0,
        "network_io_time": -1, "disk_io_time": -1, "disk_space_requested": -1.0, "energy_consumption": -1,
        "resource_used": -1,
    }  # fmt: skip


def write_wta(folder: Path, tasks: list[dict[str, Any]]) -> Path:
    """A trace of the archive: the two tables as it names their folders."""
    for name, table in (
        ("tasks", pa.Table.from_pylist(tasks, schema=WTA_TASKS)),
        (
            "workflows",
            pa.table(
                {
                    "id": pa.array(sorted({task["workflow_id"] for task in tasks}), pa.int64()),
                    "ts_submit": pa.array([0] * len({task["workflow_id"] for task in tasks}), pa.int64()),
                    "task_count": pa.array([1] * len({task["workflow_id"] for task in tasks}), pa.int32()),
                }
            ),
        ),
    ):
        (folder / name / "schema-1.0").mkdir(parents=True)
        pq.write_table(table, folder / name / "schema-1.0" / "part.0.parquet")
    return folder


#: Made up; names of Hadoop 0.20's JobHistory.Keys.
OPENCLOUD_JOBS = """JOBID,USER,JOBNAME,SUBMIT_TIME,LAUNCH_TIME,FINISH_TIME,TOTAL_MAPS,TOTAL_REDUCES,JOB_STATUS
job_201005011200_0001,user1,grep,1272715200000,1272715202000,1272715302000,600,1,SUCCESS
job_201005011200_0002,user2,sort,1272715260000,1272715262000,1272715290000,2,1,SUCCESS
job_201005011200_0003,user2,late,1272715270000,,,2,1,KILLED
"""
OPENCLOUD_ATTEMPTS = """JOBID,TASK_TYPE,TASKID,TASK_ATTEMPT_ID,START_TIME,FINISH_TIME,TASK_STATUS
job_201005011200_0002,MAP,m0,m0_0,1272715262000,1272715270000,SUCCESS
job_201005011200_0002,MAP,m1,m1_0,1272715262000,1272715268000,FAILED
job_201005011200_0002,MAP,m1,m1_1,1272715269000,1272715280000,SUCCESS
job_201005011200_0002,REDUCE,r0,r0_0,1272715280000,1272715290000,SUCCESS
job_201005011200_0002,SETUP,s0,s0_0,1272715280000,1272715290000,SUCCESS
"""
