"""Secure clusters with containers: accounts, runs on them, the Capacity Scheduler's API behind SPNEGO, two RMs."""

from __future__ import annotations

import contextlib
import json
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.model.resources import Resource
from harness.yarn.capacity.source import StoreSource
from harness.yarn.errors import Refused
from harness.yarn.rest import Submission
from harness.yarn.rmclient import RmClient
from studies.pair import recovery
from tests.cluster.enforcing import Service, until
from tests.cluster.readings import read_only
from tests.cluster.secure_rm import ALLOCATIONS, SecureRm, secure_rm
from tests.cluster.test_live_capacity import FILE, MENDED, P

pytestmark = [pytest.mark.kdc, pytest.mark.java, pytest.mark.live, pytest.mark.xdist_group("live-secure-loads")]

EXPERIMENT = """
experiment: secure
cluster: {nodes: [{count: 1, memory_mb: 4096, vcores: 16}]}
conf: {yarn.scheduler.minimum-allocation-mb: 256, yarn.resource-types.memory-mb.increment-allocation: 256}
max_am_share: -1.0
queues: {a: {}, b: {}}
workloads:
  a: &load
    inline:
      kind: sequence
      submission: {think_s: 1}
      rounds: 2
      am: {memory_mb: 256}
      task: {demand: {memory_mb: 256}, duration: {constant_s: 1.5}}
      jobs: [{name: mr, maps: 4, reduces: 1}]
  b: *load
policies: [fair, {policy: ltrf, mode: outside}]
period_s: 1
delays: {am_heartbeat_ms: 500}
limits: {time_limit_s: 300}
"""


@pytest.fixture(autouse=True)
def realm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KRB5_CONFIG", str(tmp_path / "krb5.conf"))
    monkeypatch.setenv("KRB5CCNAME", f"FILE:{tmp_path}/nobody-has-logged-in")


@contextlib.contextmanager
def service(rm: SecureRm, folder: Path, file: Path | None) -> Iterator[Service]:
    http = {**rm.configured("ctl")["http"], "read_timeout_s": 20.0}
    found = Service(folder / "service", None, file, **{**rm.configured("ctl"), "http": http})
    try:
        yield found
    finally:
        found.end()


def submitted(client: RmClient, queue: str, command: str) -> str:
    return client.rest.submit(Submission("sleep", queue, command, Resource(512, 1)))


def sleeper(client: RmClient, queue: str, seconds: float) -> str:
    return submitted(client, queue, f"sleep {seconds}")


def stopped(service: Service, client: RmClient) -> None:
    """After the stop the ledger has what the RM says of its applications, which have ended."""
    # What an application's last container used is accounted for a moment later, and then looked at.
    time.sleep(5)
    service.stop()
    agree(service, client)


def agree(service: Service, client: RmClient) -> None:
    """The ledger has what the RM says of its applications."""
    truth: dict[str, float] = {}
    for app in client.rest.apps():
        truth[app.queue] = truth.get(app.queue, 0.0) + app.memory_seconds
    consumed = service.consumed()
    assert min(truth.values()) > 512 * 5
    assert {queue: consumed[queue][0] for queue in truth} == pytest.approx(truth, rel=0.03, abs=2 * 512)


def test_containers_are_accounted_and_an_experiment_runs_with_a_keytab(tmp_path: Path) -> None:
    with secure_rm(tmp_path, nodes=1) as rm, rm.client("ctl") as client:
        with service(rm, tmp_path, rm.file) as enforce:
            enforce.start()
            # What was used before its first look it does not count.
            until(lambda: enforce.events("weights"), "a first decision", 300)
            ids = [sleeper(client, queue, 10) for queue in ("root.a", "root.a", "root.b")]
            until(lambda: all(client.rest.app(one).final for one in ids), "they end", 300)
            assert {client.rest.app(one).user for one in ids} == {"ctl"}
            stopped(enforce, client)
        assert rm.file.read_text() == ALLOCATIONS
        read_only(client, rm.access("ctl"), tmp_path)
        (tmp_path / "secure.yaml").write_text(EXPERIMENT)
        given = ["--allocations", str(rm.file), "--shared", str(tmp_path / "shared"), "--out", str(tmp_path / "out")]
        command = [
            sys.executable,
            "-m",
            "harness",
            "run",
            str(tmp_path / "secure.yaml"),
            "--backend",
            "local",
            "--json",
        ]
        ran = subprocess.run([*command, *rm.access("ctl"), *given], capture_output=True, text=True, timeout=600)
        assert ran.returncode == 0, ran.stderr[-3000:] + rm.log()
        found = json.loads(ran.stdout)
        assert [run["summary"]["queues"]["root.a"]["failed"] for run in found["runs"]] == [0, 0]
        assert rm.file.read_text() == ALLOCATIONS


def test_the_capacity_schedulers_store_behind_spnego_and_its_acl(tmp_path: Path) -> None:
    store = {"yarn.scheduler.configuration.store.class": "memory"}
    with secure_rm(tmp_path, scheduler="capacity", queues=FILE, nodes=1, more=store) as rm, rm.client("ctl") as client:
        source = StoreSource(client.rest.http)
        with rm.client("alice") as alice, pytest.raises(Refused, match="Only admins"):
            StoreSource(alice.rest.http).read()
        source.write(MENDED, source.read())
        before = source.read().values
        with service(rm, tmp_path, None) as enforce:
            # What was used before its first look it does not count. That look writes nothing: the capacities are right.
            assert not enforce.once()["wrote"]
            enforce.start()
            ids = [sleeper(client, queue, 20) for queue in ("root.a", "root.a", "root.b")]
            until(lambda: all(client.rest.app(one).final for one in ids), "they end", 300)
            held = source.read().values
            changed = {key for key in held if held[key] != before.get(key)}
            assert f"{P}root.a.capacity" in changed
            assert all(key.endswith(".capacity") for key in changed)
            stopped(enforce, client)
        assert source.read().values == before


def test_the_controller_follows_a_failover_with_a_keytab(tmp_path: Path) -> None:
    with secure_rm(tmp_path, rms=2, nodes=1, more=recovery(tmp_path / "rmstate")) as rm, rm.client("ctl") as client:
        rm.switch(0, active=True)
        until(lambda: client.rest.metrics().active_nodes == 1, "the node is there", 180)
        # The one on standby sends the client to the other, with its proof.
        client.rest.http.prefer(rm.addresses[1].rest)
        assert client.rest.scheduler().queues["root.a"].leaf
        with service(rm, tmp_path, rm.file) as enforce:
            enforce.start()
            until(lambda: enforce.events("weights"), "a first decision", 300)
            # An RM counts a container as running before its node starts it. One that the failover finds between the two
            # is looked at again after ten minutes only, so each says itself that it runs.
            queues = ("root.a", "root.a", "root.b")
            begun = [tmp_path / f"begun-{number}" for number in range(len(queues))]
            commands = [f"touch {shlex.quote(str(sign))}; sleep 90" for sign in begun]
            ids = [submitted(client, queue, command) for queue, command in zip(queues, commands, strict=True)]
            until(lambda: all(sign.exists() for sign in begun), "they run", 300)
            rm.processes[0].signal_group(9)
            rm.switch(1, active=True)
            (event, *_) = until(lambda: enforce.events("rm"), "the controller notices", 300)
            assert rm.addresses[1].rest in event["text"]
            until(lambda: all(client.rest.app(one).final for one in ids), "they end", 600)
            enforce.stop()
            assert rm.file.read_text() == ALLOCATIONS
            client.confirm_weights({"root.a": 3.0, "root.b": 1.0})
            enforce.once()
            agree(enforce, client)
