"""`yarnfair enforce` as a service that begins before an RM answers, or its ledger has room: it waits, and says so."""

from __future__ import annotations

import json
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from harness.clusters.daemons import free_ports
from harness.ledger.store import LedgerStore
from tests.yarn.fake_server import FakeServer, http

_FILE = '<allocations><queue name="a"/></allocations>\n'


def test_it_waits_for_an_rm_whose_rpc_ports_the_configuration_names(tmp_path: Path) -> None:
    """With all ports given nobody is asked for them: the first question is which scheduler the RM has."""
    file = tmp_path / "f.xml"
    file.write_text(_FILE)
    ports = free_ports(("rest", "admin", "client"))
    rm = {"rest": f"http://127.0.0.1:{ports['rest']}", **{k: f"127.0.0.1:{ports[k]}" for k in ("admin", "client")}}
    config = {
        "policy": "ltrf",
        "allocation_file": str(file),
        "ledger": str(tmp_path / "ledger.db"),
        "period_s": 0.2,
        "lease_s": 0,
        "rms": [rm],
    }
    (tmp_path / "enforce.yaml").write_text(json.dumps(config))
    command = [sys.executable, "-m", "harness", "enforce", "--config", str(tmp_path / "enforce.yaml")]
    with subprocess.Popen([*command, "--log-format", "json"], stderr=subprocess.PIPE, text=True) as service:
        assert service.stderr is not None
        first = json.loads(service.stderr.readline())
        assert (first["level"], first["event"]) == ("warning", "observation")
        assert first["text"].endswith("; waiting for it")
        service.send_signal(signal.SIGTERM)
        rest = service.stderr.read()
    assert service.returncode == 0, rest
    assert file.read_text() == _FILE


def _until(service: subprocess.Popen[str], event: str) -> dict[str, str]:
    """The service's first line of this kind from now on."""
    assert service.stderr is not None
    told = []
    while line := service.stderr.readline():
        told.append(json.loads(line))
        if told[-1]["event"] == event:
            return dict(told[-1])
    raise AssertionError(told)


@pytest.mark.parametrize("known", [False, True], ids=["a new ledger", "one that is there"])
def test_it_waits_for_room_on_the_ledgers_disk(tmp_path: Path, known: bool) -> None:
    """A limit of 0 bytes for what it may write is a disk that is full; raised, it goes on without being begun again."""
    file, ledger, config = tmp_path / "f.xml", tmp_path / "ledger.db", tmp_path / "enforce.yaml"
    file.write_text(_FILE)
    if known:
        with LedgerStore(ledger) as store:
            store.commit(documents={"known": True})
    shown = (Path(__file__).parents[1] / "yarn" / "recorded" / "scheduler.json").read_bytes()

    def full() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))

    with FakeServer(http(200, shown, Content_Type="application/json")) as server:
        rm = {"rest": server.url, "admin": "127.0.0.1:9", "client": "127.0.0.1:9"}
        own = {"policy": "ltrf", "allocation_file": str(file), "ledger": str(ledger), "rms": [rm]}
        config.write_text(json.dumps({**own, "period_s": 0.2, "lease_s": 0, "refresh": "poll", "read_back": False}))
        call = [sys.executable, "-m", "harness", "enforce", "--config", str(config)]
        once = subprocess.run([*call, "--once"], capture_output=True, text=True, preexec_fn=full)
        assert (once.returncode, once.stdout) == (1, ""), once.stderr
        assert "make room on its disk" in " ".join(once.stderr.split())
        command = [*call, "--log-format", "json"]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, preexec_fn=full) as service:
            waits = _until(service, "ledger")
            assert waits["level"] == "warning"
            assert waits["text"].startswith(f"{ledger}: the ledger cannot be opened")
            assert waits["text"].endswith("; make room on its disk, or mend it; waiting for it")
            resource.prlimit(service.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
            _until(service, "begin")
            service.send_signal(signal.SIGTERM)
            _until(service, "end")
        assert service.returncode == 0
    assert file.read_text() == _FILE
    with LedgerStore(ledger) as store:
        assert store.document("known") == (True if known else None)
