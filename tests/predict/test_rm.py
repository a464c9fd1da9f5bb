"""`yarnfair assess --rm`, with --for, --history, --config and on the Capacity Scheduler, at a served RM."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Literal

import pytest
import yaml

from harness.control.config import read_config
from harness.experiments.served import with_file, with_store
from harness.model.jobs import NodeSpec
from harness.sim.serve.live import LiveCluster
from harness.sim.serve.rest import RestServer
from harness.sim.serve.rpc import RpcServer
from harness.sim.setup import Delays, SimSetup
from harness.traces.recorded import JobLine, read_trace
from harness.yarn.fair.parse import parse_allocations
from harness.yarn.http import HttpOptions
from harness.yarn.rest import RestClient
from tests.predict.loads import contended, quiet
from tests.predict.test_assess import assessed

QUEUES = (
    "<allocations><queueMaxAMShareDefault>-1.0</queueMaxAMShareDefault>"
    "<queue name='steady'/><queue name='bursts'/></allocations>"
)
#: As Hadoop's NodeManager and MapReduce's master.
HADOOP = Delays(end_heartbeat_ms=20, am_response_heartbeats=0)


@dataclass
class Rm:
    """A served ResourceManager; its file, its applications by id, and its clock."""

    url: str
    file: Path
    now: list[float]
    cluster: LiveCluster

    def later(self, seconds: float) -> None:
        """In steps, as time passes."""
        for _ in range(int(seconds / 50)):
            self.now[0] += 50
            self.cluster.catch_up()

    def names(self) -> dict[str, str]:
        with RestClient([self.url], HttpOptions(attempts=1)) as rest:
            return {app.id: app.name for app in rest.apps()}


@contextlib.contextmanager
def serving(
    folder: Path,
    jobs: list[JobLine],
    scheduler: Literal["fair", "capacity"] = "fair",
    queues: str = QUEUES,
    delays: Delays = HADOOP,
) -> Iterator[Rm]:
    file, now = folder / f"{scheduler}-scheduler.xml", [1.7e9]
    setup = SimSetup(
        nodes=tuple(NodeSpec(f"n{number}", 8192, 8) for number in (1, 2, 3)),
        allocations=parse_allocations(queues),
        jobs=[job.spec() for job in jobs],
        scheduler=scheduler,
        delays=delays,
        capacity={"maximum-am-resource-percent": "1000"} if scheduler == "capacity" else {},
    )
    with contextlib.ExitStack() as stack:
        cluster = LiveCluster(with_file(with_store(setup, "memory"), file), file, clock=lambda: now[0])
        rest, admin, client = RestServer(cluster), RpcServer(cluster), RpcServer(cluster)
        rest.face.addresses = {
            "yarn.resourcemanager.admin.address": str(admin.address),
            "yarn.resourcemanager.address": str(client.address),
        }
        for server in (rest, admin, client):
            server.start()
            stack.callback(server.stop)
        yield Rm(rest.url, file, now, cluster)


def as_mapreduce(jobs: list[JobLine]) -> list[JobLine]:
    stages = [[stage.model_copy(update={"name": "map"}) for stage in job.stages] for job in jobs]
    return [
        job.model_copy(update={"kind": "mapreduce", "name": job.job, "stages": own})
        for job, own in zip(jobs, stages, strict=True)
    ]


class HistoryServer:
    """A JobHistoryServer that knows the tasks of these applications (id -> job), and the addresses it was asked for."""

    def __init__(self, known: Mapping[str, JobLine]) -> None:
        self.asked: list[str] = []
        asked = self.asked

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                asked.append(self.path)
                job, _, what = self.path.removeprefix("/ws/v1/history/mapreduce/jobs/").partition("/")
                found = known.get(job.replace("job_", "application_"))
                body = {} if found is None else _tasks(found) if what == "tasks" else _conf(found)
                data = json.dumps(body).encode()
                self.send_response(404 if found is None else 200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> HistoryServer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


def _tasks(job: JobLine) -> dict[str, Any]:
    (stage,) = job.stages
    return {
        "tasks": {
            "task": [
                {"type": "MAP", "state": "SUCCEEDED", "startTime": 1_700_000_000_000, "finishTime": ended}
                for ended in (1_700_000_000_000 + round(1000 * seconds) for seconds in stage.tasks_s)
            ]
        }
    }


def _conf(job: JobLine) -> dict[str, Any]:
    (stage,) = job.stages
    values = {
        "yarn.app.mapreduce.am.resource.mb": job.am.memory_mb,
        "mapreduce.map.memory.mb": stage.memory_mb,
        "mapreduce.map.cpu.vcores": stage.vcores,
    }
    return {"conf": {"property": [{"name": name, "value": str(value)} for name, value in values.items()]}}


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rm]:
    """A cluster that contended, of MapReduce jobs that have all ended."""
    with serving(tmp_path_factory.mktemp("rm"), as_mapreduce(contended())) as rm:
        rm.later(3000)
        yield rm


def test_of_what_the_resource_manager_alone_knows_there_is_no_verdict(
    ended: Rm, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = assessed(capsys, "--rm", ended.url, "-o", str(tmp_path / "out"))
    assert found["verdict"] == "unsure"
    assert "--history URL" in " ".join(found["lines"])
    trace = read_trace(Path(found["trace"]))
    assert {job.detail for job in trace.jobs} == {"integrals"}
    assert len(trace.jobs) == 26


def test_where_nobody_waits_the_resource_manager_alone_is_enough_for_a_no(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with serving(tmp_path, as_mapreduce(quiet())) as rm:
        rm.later(3000)
        found = assessed(capsys, "--rm", rm.url, "-o", str(tmp_path / "out"))
    assert found["verdict"] == "no"
    assert found["lines"][0].startswith("no, nothing to gain: ")
    assert {job.detail for job in read_trace(Path(found["trace"])).jobs} == {"integrals"}


def test_with_the_history_server_there_is_one(ended: Rm, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    jobs = {job.job: job for job in as_mapreduce(contended())}
    with HistoryServer({app: jobs[name] for app, name in ended.names().items()}) as history:
        found = assessed(capsys, "--rm", ended.url, "--history", history.url, "-o", str(tmp_path / "out"))
    assert found["verdict"] == "yes"
    assert found["reproduction_error"] < 0.05
    assert len({path for path in history.asked if path.endswith("/tasks")}) == 26
    assert {job.detail for job in read_trace(Path(found["trace"])).jobs} == {"tasks"}
    config = read_config(Path(found["recommended"]["config"]))
    assert [rm.rest for rm in config.rms] == [ended.url]
    assert (config.mode, config.allocation_file) == ("shadow", str(ended.file))


def test_a_history_server_that_is_not_there_is_an_error(
    ended: Rm, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from harness.cli import main

    with pytest.raises(SystemExit) as stop:
        main(["assess", "--rm", ended.url, "--history", "http://127.0.0.1:1", "-o", str(tmp_path / "out"), "--json"])
    said = capsys.readouterr()
    assert stop.value.code == 1
    assert "127.0.0.1:1" in said.err
    assert "Traceback" not in said.err


def test_the_configuration_says_the_entitlements_and_the_bound_and_is_only_read(
    ended: Rm, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = tmp_path / "given.yaml"
    document = {
        "policy": "fair", "rms": [{"rest": ended.url}], "allocation_file": str(ended.file), "mode": "full",
        "ledger": str(tmp_path / "ledger.db"), "queues": {"steady": 1, "bursts": 3}, "max_ratio": 1.5, "period_s": 7,
    }  # fmt: skip
    given.write_text(yaml.safe_dump(document))
    before, file = given.read_bytes(), ended.file.read_bytes()
    jobs = {job.job: job for job in as_mapreduce(contended())}
    with HistoryServer({app: jobs[name] for app, name in ended.names().items()}) as history:
        call = ["--config", str(given), "--history", history.url, "-o", str(tmp_path / "out")]
        found = assessed(capsys, *call)
    assert (given.read_bytes(), ended.file.read_bytes()) == (before, file)
    assert not (tmp_path / "ledger.db").exists()
    queues = read_trace(Path(found["trace"])).header.queues
    assert {path: line.weight for path, line in queues.items()} == {"root.steady": 1.0, "root.bursts": 3.0}
    # It ran with equal weights; what is replayed are the entitlements, and that is told.
    assert found["reproduction_error"] > 0.0
    if found["recommended"]:
        assert found["recommended"]["max_ratio"] == 1.5


def test_it_records_for_as_long_as_it_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Applications that end while it looks are in the trace, and the last look is at the end of the time."""
    jobs = [replace_times(job, n) for n, job in enumerate(as_mapreduce(quiet()))]
    with serving(tmp_path, jobs, delays=Delays()) as rm:
        rm.later(50)
        stop = threading.Event()

        def passes() -> None:
            while not stop.wait(0.1):
                rm.now[0] += 20
                rm.cluster.catch_up()

        thread = threading.Thread(target=passes)
        thread.start()
        try:
            found = assessed(capsys, "--rm", rm.url, "--for", "6s", "-o", str(tmp_path / "out"))
        finally:
            stop.set()
            thread.join()
    trace = read_trace(Path(found["trace"]))
    assert len([job for job in trace.jobs if job.finished_s is not None]) >= 10
    assert found["verdict"] == "no"
    assert found["lines"][0].startswith("no, nothing to gain")


def replace_times(job: JobLine, number: int) -> JobLine:
    return job.model_copy(update={"submit_s": 5.0 * number})


def test_an_idle_cluster_has_nothing_to_say(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with serving(tmp_path, []) as rm:
        found = assessed(capsys, "--rm", rm.url, "-o", str(tmp_path / "out"))
        again = assessed(capsys, "--rm", rm.url, "--for", "1s", "-o", str(tmp_path / "out"))
    for one in (found, again):
        assert (one["verdict"], "no application has run" in one["why"]) == ("unsure", True)


@pytest.mark.parametrize("nested", [False, True])
def test_on_the_capacity_scheduler(tmp_path: Path, capsys: pytest.CaptureFixture[str], nested: bool) -> None:
    jobs, queues = as_mapreduce(contended()), QUEUES
    if nested:
        queues = QUEUES.replace("<queue name='bursts'/>", "<queue name='x'><queue name='bursts'/></queue>")
        jobs = [job.model_copy(update={"queue": job.queue.replace("bursts", "x.bursts")}) for job in jobs]
    with serving(tmp_path, jobs, "capacity", queues) as rm:
        rm.later(3000)
        known = {job.job: job for job in jobs}
        with HistoryServer({app: known[name] for app, name in rm.names().items()}) as history:
            found = assessed(capsys, "--rm", rm.url, "--history", history.url, "-o", str(tmp_path / "out"))
    trace = read_trace(Path(found["trace"]))
    assert trace.header.scheduler == "capacity"
    assert found["verdict"] in ("yes", "no"), found["lines"]
    assert "capacity" in found["policies"]
    # Where queues have children, what writes minimum shares (here larger capacities) is a candidate, too.
    tried = [name for name in found["policies"] if name.startswith("hltrf@outside")]
    assert bool(tried) == nested
    assert all(found["policies"][name]["sharing_loss_integral"] > 0 for name in tried)
    assert found["reproduction_error"] < 0.05
    if found["recommended"]:
        config = read_config(Path(found["recommended"]["config"]))
        assert (config.mode, config.allocation_file) == ("shadow", None)
    # The trace by itself says the same: it names its scheduler.
    alone = assessed(capsys, found["trace"], "-o", str(tmp_path / "alone"))
    assert (alone["verdict"], alone["reproduction_error"]) == (found["verdict"], found["reproduction_error"])
