"""The same work by other simulators and by this one: the table of peers in docs/reference/bench.md.

    nice -n -13 python -m studies.peers --kai KAI-SERVER -o docs/records/peers.json

Hadoop SLS (of Maven Central) and `yarnfair run` play one trace under the Fair Scheduler, each as a process of its own.
KAI-SERVER is `go build ./cmd/fairshare-simulator` in a checkout of KAI Scheduler: it divides a resource among queues,
which `harness.policies.decay_kai.divide` does by the same rule.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import requests
import yaml

from harness.base.errors import YarnfairError
from harness.clusters.jars import find_set
from harness.policies.decay_kai import Asking, divide
from harness.results.store import machine
from studies.result import in_one_line, write

POM = Path(__file__).parent / "sls" / "pom.xml"
NODES, JOBS, TASKS, TASK_S = 3000, 160, 60_000, 20
QUEUES = ("a", "b", "c", "d")
DIVIDED = (10, 100, 1000)
#: A run that has not ended by then is an error.
LONGEST_S = 600.0
_CORE = "org.apache.hadoop.yarn.server.resourcemanager"


def _trace(folder: Path, nodes: int, tasks: int) -> None:
    """The load twice: in the format that SLS 3.4.2 still reads (SYNTH; of SLS' own it refuses lists of tasks), in which
    each job's queue is drawn; and as SLS' own for us. All jobs come within 8 s, all tasks are of equal length.
    """
    task = {"count": str(tasks // JOBS), "duration.ms": str(1000 * TASK_S), "container.type": "map"}
    jobs = [
        {"job.id": f"j{i}", "job.start.ms": str(8000 * i // JOBS), "job.tasks": [task],
         "job.queue.name": f"root.{QUEUES[i % len(QUEUES)]}"}
        for i in range(JOBS)
    ]  # fmt: skip
    (folder / "jobs.json").write_text("\n".join(map(json.dumps, jobs)))
    given = {
        "type": "map", "priority": 20, "count": {"val": tasks // JOBS}, "time": {"val": 1000 * TASK_S},
        "max_memory": {"val": 1024}, "max_vcores": {"val": 1},
    }  # fmt: skip
    kind = {
        "class_name": "j", "user_name": "u", "class_weight": 1.0, "type": "mapreduce", "tasks": [given],
        "deadline_factor": {"val": 10}, "duration": {"val": 60}, "reservation": {"val": 0},
    }  # fmt: skip
    loads = [
        {"workload_name": name, "workload_weight": 1.0, "queue_name": f"root.{name}", "job_classes": [kind],
         "time_distribution": [{"time": second, "weight": 1.0} for second in range(1, 9)]}
        for name in QUEUES
    ]  # fmt: skip
    # It looks names up: addresses need no answer.
    named = [{"node": f"127.1.{i // 250}.{i % 250 + 1}"} for i in range(nodes)]
    (folder / "nodes.json").write_text(json.dumps({"rack": "r", "nodes": named}))
    synth = {"num_nodes": nodes, "nodes_per_rack": 40, "num_jobs": JOBS, "rand_seed": 1, "workloads": loads}
    (folder / "synth.json").write_text(json.dumps(synth))
    rows = "".join(f'<queue name="{name}"><maxAMShare>1.0</maxAMShare></queue>' for name in QUEUES)
    (folder / "queues.xml").write_text(f"<allocations>{rows}</allocations>")


def _xml(values: dict[str, object]) -> str:
    rows = "".join(f"<property><name>{name}</name><value>{value}</value></property>" for name, value in values.items())
    return f"<configuration>{rows}</configuration>"


def _process(
    command: Sequence[str], log: Path, over: Callable[[], bool] | None = None, **more: Any
) -> dict[str, float]:
    """Wall and CPU seconds of a command, and its largest resident set, MiB. ``over``: says when it is killed."""
    began, used = time.perf_counter(), None
    with log.open("w") as said:
        process = subprocess.Popen(command, stdout=said, stderr=subprocess.STDOUT, **more)
    while used is None:
        time.sleep(0.2)
        pid, status, found = os.wait4(process.pid, os.WNOHANG)
        used = found if pid else None
        ended = used is None and over is not None and over()
        if ended or time.perf_counter() > began + LONGEST_S:
            process.kill()
            _, status, used = os.wait4(process.pid, 0)
            status = status if not ended else 0
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise YarnfairError(f"{command[0]} ended with {process.returncode}: {log.read_text()[-500:]}")
    return {
        "wall_s": round(time.perf_counter() - began, 1),
        "cpu_s": round(used.ru_utime + used.ru_stime, 1),
        "peak_mb": round(used.ru_maxrss / 1024),
    }


def sls(folder: Path) -> dict[str, float]:
    """SLS' run of the trace, its metrics switched off."""
    jars = find_set("sls", POM, ("hadoop-sls-", "hadoop-yarn-server-resourcemanager-"))
    conf = folder / "conf"
    conf.mkdir()
    ports = {}
    for key in ("address", "scheduler.address", "resource-tracker.address", "admin.address", "webapp.address"):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            ports[f"yarn.resourcemanager.{key}"] = f"127.0.0.1:{free.getsockname()[1]}"
    values = {
        **ports,
        "yarn.resourcemanager.scheduler.class": f"{_CORE}.scheduler.fair.FairScheduler",
        "yarn.scheduler.fair.allocation.file": folder / "queues.xml",
        "yarn.scheduler.minimum-allocation-mb": 512,
        "yarn.sls.nm.memory.mb": 16384,
        "yarn.sls.nm.vcores": 16,
        "yarn.sls.metrics.switch": "false",
        "yarn.sls.runner.pool.size": 100,
        "yarn.sls.am.type.mapreduce": "org.apache.hadoop.yarn.sls.appmaster.MRAMSimulator",
    }
    for name in ("yarn-site.xml", "sls-runner.xml"):  # it reads some of either
        (conf / name).write_text(_xml(values))
    (conf / "log4j.properties").write_text(
        "log4j.rootLogger=WARN,C\nlog4j.appender.C=org.apache.log4j.ConsoleAppender\n"
        "log4j.appender.C.layout=org.apache.log4j.SimpleLayout\n"
    )
    (folder / "metrics").mkdir()
    command = [
        "java", "-Xmx6g", "--add-opens", "java.base/java.lang=ALL-UNNAMED",
        "-cp", f"{conf}:{jars}/*", "org.apache.hadoop.yarn.sls.SLSRunner", "-tracetype", "SYNTH",
        "-tracelocation", str(folder / "synth.json"), "-nodes", str(folder / "nodes.json"),
        "-output", str(folder / "metrics"),
    ]  # fmt: skip
    address = ports["yarn.resourcemanager.webapp.address"]

    def over() -> bool:
        """It counts its applications down without a lock, and does not always come to 0: the RM knows."""
        try:
            said = requests.get(f"http://{address}/ws/v1/cluster/metrics?user.name=peers", timeout=30).json()
        except requests.RequestException:
            return False  # it starts
        return bool(said["clusterMetrics"]["appsCompleted"] == JOBS)

    return _process(command, folder / "sls.log", over, cwd=folder)


def ours(folder: Path, nodes: int) -> dict[str, float]:
    """`yarnfair run` of the same trace with everything that a run writes but its report."""
    load = {name: {"inline": {"kind": "sls", "trace": "jobs.json", "only": f"root.{name}"}} for name in QUEUES}
    experiment = {
        "experiment": "peers", "cluster": {"nodes": [{"count": nodes, "memory_mb": 16384, "vcores": 16}]},
        "queues": {name: {} for name in QUEUES}, "max_am_share": 1.0, "workloads": load, "policies": ["fair"],
    }  # fmt: skip
    (folder / "peers.yaml").write_text(yaml.safe_dump(experiment))
    command = [sys.executable, "-m", "harness", "run", "peers.yaml", "--no-report", "--out", "out"]
    root = str(Path(__file__).parents[1])
    found: dict[str, float] = {}
    for _ in range(2):  # the first compiles what is not
        shutil.rmtree(folder / "out", ignore_errors=True)
        found = _process(command, folder / "ours.log", cwd=folder, env={**os.environ, "PYTHONPATH": root})
    summary = json.loads((folder / "out" / "fair" / "summary.json").read_text())
    return {**found, "virtual_s": round(summary["makespan_s"], 1)}


def _queues(count: int) -> list[Asking]:
    """Weights, requests and usage that differ; four in five ask for more than they get."""
    return [Asking(1 + i % 7, 200.0 + 1000 * (i % 5), (i % 11) / 11 / count) for i in range(count)]


def _ask(session: requests.Session, port: int, asked: dict[str, Any]) -> Any:
    for _ in range(100):
        try:
            return session.post(f"http://127.0.0.1:{port}/simulate", json=asked, timeout=30).json()
        except requests.ConnectionError:
            time.sleep(0.05)  # it starts
    raise YarnfairError("KAI's server does not answer", where=f"port {port}")


def _least(what: Callable[[], object]) -> float:
    """Wall time, milliseconds: the least of 20."""
    found = []
    for _ in range(20):
        began = time.perf_counter()
        what()
        found.append((time.perf_counter() - began) * 1000)
    return round(min(found), 3)


def _peak_of(process: int) -> int:
    """The largest resident set so far, MiB."""
    said = Path(f"/proc/{process}/status").read_text()
    return int(said.partition("VmHWM:")[2].split()[0]) // 1024


def kai(server: str) -> dict[str, Any]:
    """Milliseconds a division of one resource, by queues: KAI's server over HTTP, `divide` in this process."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen([server, "-port", str(port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    theirs, own = [], []
    try:
        with requests.Session() as session:
            for count in DIVIDED:
                queues, total = _queues(count), 1000.0 * count
                asked = {
                    "totalResource": {"CPU": total},
                    "queues": [
                        {"uid": f"q{i:05}", "name": f"q{i:05}", "resourceShare": {
                            "cpu": {"overQuotaWeight": one.weight, "request": one.request, "deserved": 0.0}}}
                        for i, one in enumerate(queues)
                    ],
                }  # fmt: skip
                theirs.append({"queues": count, "ms": _least(partial(_ask, session, port, asked))})
                given = dict(enumerate(queues))
                shares = _ask(session, port, asked)
                apart = max(abs(shares[f"q{i:05}"]["cpu"] - got) for i, got in divide(total, 0.0, given)[0].items())
                own.append(
                    {"queues": count, "ms": _least(partial(divide, total, 0.0, given)), "apart": round(apart, 1)}
                )
        peak = _peak_of(process.pid)
    finally:
        process.kill()
        process.wait()
    return {"kai": theirs, "kai_peak_mb": peak, "ours": own, "ours_peak_mb": _peak_of(os.getpid())}


@in_one_line("peers")
def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="studies.peers", description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--kai", metavar="KAI-SERVER", help="Its fairshare-simulator; without it only SLS is run.")
    parser.add_argument("--nodes", type=int, default=NODES)
    parser.add_argument("--tasks", type=int, default=TASKS)
    parser.add_argument("-o", type=Path, metavar="FILE", help="Where the record goes; without it: printed.")
    given = parser.parse_args(arguments)
    folder = Path(tempfile.mkdtemp(prefix="yarnfair-peers-"))
    try:
        _trace(folder, given.nodes, given.tasks)
        values: dict[str, Any] = {"nodes": given.nodes, "tasks": given.tasks, "jobs": JOBS, "task_s": TASK_S}
        values["ours"] = ours(folder, given.nodes)
        values["sls"] = sls(folder)
        if given.kai:
            values["division"] = kai(given.kai)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    write(given.o, "python -m studies.peers --kai KAI-SERVER", values, machine=machine())
    return 0


if __name__ == "__main__":
    sys.exit(main())
