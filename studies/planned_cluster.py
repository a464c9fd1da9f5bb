"""A real local cluster for `studies.planned`: histories, a node that comes and goes, what queues lack."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from harness.base.errors import InputError
from harness.clusters import jars, processes
from harness.clusters.daemon_site import node_properties, site_files
from harness.clusters.daemons import LOOPBACK, NM, free_ports, java_program, java_words
from harness.clusters.site import write as write_site_file
from harness.clusters.state import ClusterState
from harness.jobs.replay import TaskRecord, stages_in_order
from harness.jobs.spark import installation
from harness.jobs.submit import Replayer
from harness.model.jobs import JobSpec
from harness.yarn.queue_answers import SchedulerStatus
from studies.planned_loads import LEAVES

#: The address of the node that comes and goes, so that it can be excluded by its host.
ADDED_HOST = "127.0.0.2"
_SHORT = 0.95
#: `yarn rmadmin` may take so long, seconds: it starts a JVM of its own on a machine that may be busy.
_ADMIN_S = 300.0


class MasterHistory:
    """Tells of the replayed MapReduce-like applications what a JobHistoryServer tells of MapReduce's.

    Their masters are no MRAppMasters and write no history of their own. Each master's record of its tasks is answered
    in the form of the JobHistoryServer's REST API, once its application has ended.

    Parameters
    ----------
    replayer
        It has submitted the applications.
    jobs
        Job id -> its job.
    """

    def __init__(self, replayer: Replayer, jobs: Mapping[str, JobSpec]) -> None:
        def answer(path: str) -> dict[str, Any] | None:
            identity, _, what = path.removeprefix("/ws/v1/history/mapreduce/jobs/").partition("/")
            names = {app: name for name, app in list(replayer.apps.items())}
            name = names.get(identity.replace("job_", "application_"))
            record = None if name is None else replayer.record(name)
            if name is None or record is None or not record.ended_ms:
                return None
            if what == "tasks":
                return {"tasks": {"task": [_task(one, jobs[name]) for one in record.tasks if one.launched_ms]}}
            if what == "conf":
                return _conf(jobs[name])
            if what:
                return {"taskAttempts": {"taskAttempt": []}}
            times = {"startTime": record.first_heartbeat_ms, "finishTime": record.ended_ms}
            return {"job": {**times, "uberized": False}}

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                body = answer(self.path)
                data = json.dumps(body or {}).encode()
                self.send_response(404 if body is None else 200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer((LOOPBACK, 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.2,), daemon=True)
        self.url = f"http://{LOOPBACK}:{self._server.server_port}"

    def __enter__(self) -> MasterHistory:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


def _task(one: TaskRecord, job: JobSpec) -> dict[str, Any]:
    return {
        "id": f"task_{one.stage}_{one.task}",
        "type": stages_in_order(job)[one.stage].name.upper(),
        "state": "SUCCEEDED" if one.outcome == "finished" else "KILLED",
        "startTime": one.launched_ms,
        "finishTime": one.ended_ms or one.told_ms,
    }


def _conf(job: JobSpec) -> dict[str, Any]:
    values = {
        "yarn.app.mapreduce.am.resource.mb": str(job.am.memory_mb),
        "mapreduce.job.reduce.slowstart.completedmaps": "1.0",
    }
    for stage in job.stages:
        values[f"mapreduce.{stage.name}.memory.mb"] = str(stage.demand.memory_mb)
        values[f"mapreduce.{stage.name}.cpu.vcores"] = str(stage.demand.vcores)
    return {"conf": {"property": [{"name": name, "value": value} for name, value in values.items()]}}


@contextmanager
def spark_history(folder: Path) -> Iterator[str]:
    """Spark's own History Server over the event logs of a folder: its address."""
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        port = probe.getsockname()[1]
    opened = [f"--add-opens=java.base/{name}=ALL-UNNAMED" for name in ("java.lang", "java.nio", "sun.nio.ch")]
    settings = {
        "spark.history.fs.logDirectory": f"file://{folder}",
        "spark.history.ui.port": str(port),
        "spark.history.fs.update.interval": "2s",
    }
    command = [
        *("java", *opened, "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx300m"),
        *(f"-D{name}={value}" for name, value in settings.items()),
        *("-cp", f"{installation.find()}/jars/*", "org.apache.spark.deploy.history.HistoryServer"),
    ]
    with (folder.parent / "spark-history.log").open("w") as out:
        process = subprocess.Popen(command, stdout=out, stderr=out, env={**os.environ, "SPARK_LOCAL_IP": LOOPBACK})
    try:
        until = time.monotonic() + 60
        while time.monotonic() < until:
            with socket.socket() as probe:
                if probe.connect_ex((LOOPBACK, port)) == 0:
                    break
            time.sleep(0.3)
        yield f"http://{LOOPBACK}:{port}"
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=60)


def add_node(state: ClusterState, folder: Path) -> processes.Process:
    """Start one more NodeManager of the cluster's size, on an address of its own."""
    own = folder / "added"
    (own / "conf").mkdir(parents=True)
    lib = jars.find(hadoop=state.spec.hadoop)
    port = free_ports(["added"])["added"]
    properties = node_properties(state.spec, ADDED_HOST, str(own), port=port)
    files = site_files(
        state.spec, properties, rm=LOOPBACK, ports=state.ports, home=str(folder), folder=str(own), class_path=f"{lib}/*"
    )
    for name, text in files.items():
        write_site_file(own / "conf" / name, text)
    java = java_program()
    class_path = os.pathsep.join([str(own / "conf"), f"{lib}/*"])
    environment = {
        **{key: value for key, value in os.environ.items() if not key.startswith(("HADOOP_", "YARN_", "JAVA_TOOL"))},
        "JAVA_HOME": str(Path(os.path.realpath(java)).parent.parent),
        "HADOOP_CONF_DIR": str(own / "conf"),
        processes.MARK: state.mark,
    }
    command = (java, *java_words(NM, str(own / "conf"), class_path, state.spec.nm_heap_mb))
    return processes.start(command, environment=environment, folder=own, log=own / "log")


def decommission(state: ClusterState, conf: Path, exclude: Path) -> None:
    """Ask the ResourceManager to drain the added node: no new containers, and it leaves when its applications ended."""
    exclude.write_text(f"{ADDED_HOST}\n")
    lib = jars.find(hadoop=state.spec.hadoop)
    command = [
        *(java_program(), "-XX:TieredStopAtLevel=1", "-Xmx128m", "-cp", os.pathsep.join([str(conf), f"{lib}/*"])),
        *("org.apache.hadoop.yarn.client.cli.RMAdminCLI", "-refreshNodes", "-g", "600", "-server"),
    ]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_ADMIN_S)
    except subprocess.TimeoutExpired:
        what = f"-refreshNodes has not ended after {_ADMIN_S:g} s"
        raise InputError(what, where=str(exclude), hint="the machine may be too busy: look at its load") from None
    if done.returncode:
        raise InputError(
            f"-refreshNodes ended with {done.returncode}: {done.stderr.strip()[-300:]}",
            where=str(exclude),
            hint="look at the ResourceManager's log",
        )


class Beside:
    """Steps that take long, one after the other in a thread of their own: the load and the polls do not wait."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(1)
        self._started: list[Future[object]] = []

    def __enter__(self) -> Beside:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown(cancel_futures=True)

    def start(self, step: Callable[[], object]) -> None:
        """Take a step once those before it have ended."""
        self._started.append(self._pool.submit(step))

    def ended(self) -> bool:
        """Tell whether every step has ended. Raises what failed in one of them."""
        done = [one for one in self._started if one.done()]
        for one in done:
            one.result()
        return len(done) == len(self._started)


class BelowDue:
    """Seconds in which each leaf wants more than it has and has less than 95 % of its due, by polls of the RM."""

    def __init__(self, shares: Mapping[str, float]) -> None:
        self.shares = shares
        self.seconds = dict.fromkeys(LEAVES, 0.0)
        self._last_s: float | None = None
        self._short: set[str] = set()
        #: Of each poll the seconds, the cluster's memory, and what each leaf holds and wants, MB.
        self.samples: list[dict[str, Any]] = []

    def poll(self, status: SchedulerStatus, now_s: float) -> None:
        """Count the time since the last poll for each leaf that was short then."""
        if self._last_s is not None:
            for leaf in self._short:
                self.seconds[leaf] += now_s - self._last_s
        capacity = max(status.capacity.memory_mb, 1)
        self.samples.append(
            {
                "at_s": round(now_s, 3),
                "capacity_mb": capacity,
                "used_mb": [status.queues[leaf].used.memory_mb for leaf in LEAVES],
                "demand_mb": [status.queues[leaf].demand.memory_mb for leaf in LEAVES],
            }
        )
        self._short = {
            leaf
            for leaf in LEAVES
            if (queue := status.queues[leaf]).demand.memory_mb > queue.used.memory_mb
            and queue.used.memory_mb / capacity < _SHORT * self.shares[leaf]
        }
        self._last_s = now_s


class Command:
    """A command of yarnfair that runs beside the load until it is stopped. ``log``: what it prints."""

    def __init__(self, log: Path, *words: str) -> None:
        self._out = log.open("w")
        self._process = subprocess.Popen(
            [sys.executable, "-m", "harness", *words], stdout=self._out, stderr=self._out, cwd=log.parent
        )

    def stop(self) -> int:
        """End it as `kill` does: Ctrl-C is not heard by what a script has started in the background. The exit code."""
        self._process.send_signal(signal.SIGTERM)
        code = self._process.wait(timeout=60)
        self._out.close()
        return code


def fresh(folder: Path) -> Path:
    """An empty folder."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder
