"""`yarnfair cluster` without a cluster: exit codes, one document or one line, and folders left as they were."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

from harness.cli import main
from harness.clusters.inventory import read_inventory
from harness.clusters.state import ClusterSpec, ClusterState, StateFolder
from harness.control.config import EnforceConfig
from harness.yarn.releases import DEFAULT
from harness.yarn.sftp import SftpStore
from tests.clusters.test_doctor import Rm
from tests.yarn.fake_server import FakeServer


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as stop:
        main(["cluster", *arguments])
    out, err = capsys.readouterr()
    return int(stop.value.code or 0), out, err


@pytest.mark.parametrize("backend", ["local", "docker"])
def test_without_a_cluster(capsys: pytest.CaptureFixture[str], tmp_path: Path, backend: str) -> None:
    where = ["--backend", backend, "--state", str(tmp_path / "none"), "--json"]
    code, out, err = run(capsys, "status", *where)
    assert (code, json.loads(out)["up"], err) == (1, False, "")
    code, out, err = run(capsys, "down", *where)
    assert (code, json.loads(out), err) == (0, {"backend": backend, "was_there": False, "left_behind": []}, "")
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize(
    "wrong",
    [
        ["up"],
        ["up", "--backend", "vmware"],
        ["up", "--backend", "local", "--nodes", "0"],
        ["up", "--backend", "local", "--memory-mb", "10"],
        ["up", "--backend", "local", "--http-port", "0"],
        ["up", "--backend", "local", "--http-port", "5000", "--admin-port", "5000"],
        ["up", "--backend", "local", "--property", "novalue"],
        ["up", "--backend", "local", "--property", "a b=c"],
        ["up", "--backend", "local", "--timeout", "nan"],
        ["up", "--backend", "ssh", "--in-rm-policy", "ltrf"],
        ["up", "--backend", "ssh", "--jar", __file__],
        ["up", "--backend", "ssh", "--history"],
        ["up", "--backend", "docker", "--history"],
        ["doctor", "--backend", "local", "--nodes", "0"],
        ["doctor"],
        ["doctor", "--backend", "local", "--rm", "ftp://x"],
        ["sideways"],
    ],
)
def test_wrong_calls(capsys: pytest.CaptureFixture[str], tmp_path: Path, wrong: list[str]) -> None:
    state = ["--state", str(tmp_path / "s")] if "--backend" in wrong else []
    code, out, err = run(capsys, *wrong, *state)
    assert (code, out) == (2, "")
    assert err.startswith("yarnfair: ")
    assert err.count("\n") == 1
    assert not (tmp_path / "s").exists()


@pytest.mark.parametrize("address", ["rm:²", "rm:١٢", "rm:" + "9" * 5000, "rm:0", "rm:70000", "rm:", ":1", "rm"])
def test_an_address_that_is_none(capsys: pytest.CaptureFixture[str], tmp_path: Path, address: str) -> None:
    (tmp_path / "hosts.yaml").write_text("hosts: {one: {host: 127.0.0.1, roles: [rm]}}")
    where = ["--inventory", str(tmp_path / "hosts.yaml"), "--state", str(tmp_path / "s")]
    code, out, err = run(capsys, "adopt", *where, "--rest", address, "--allocations", "/f.xml")
    assert (code, out) == (2, "")
    assert "HOST:PORT" in err
    assert not (tmp_path / "s").exists()


def test_the_help_of_run_names_every_backend(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["run", "--help"])
    text = " ".join(capsys.readouterr().out.split())
    assert all(backend in text.partition("[default: sim]")[0] for backend in ("sim", "local", "docker", "ssh"))


def test_a_folder_of_the_other_backend(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    StateFolder(tmp_path).save(ClusterState("docker", "mark", ClusterSpec()))
    for verb in ("up", "status", "down", "doctor"):
        code, _, err = run(capsys, verb, "--backend", "local", "--state", str(tmp_path))
        assert code == 2
        assert "backend docker" in err


def test_a_folder_with_other_things(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("x")
    code, _, err = run(capsys, "down", "--backend", "local", "--state", str(tmp_path))
    assert code == 2
    assert "other things" in err
    assert (tmp_path / "thesis.tex").exists()


def test_the_doctor_prints_one_document_and_its_exit_code_says_whether_all_is_well(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    where = ["--backend", "local", "--state", str(tmp_path / "s"), "--json"]
    code, out, _ = run(capsys, "doctor", *where, "--memory-mb", "100")
    document = json.loads(out)
    assert (code, document["healthy"]) == (1, False)
    assert "minimum-allocation" in {finding["check"] for finding in document["findings"]}
    assert all(finding["hint"] for finding in document["findings"])
    # A ResourceManager that somebody else has started has no backend of ours.
    code, out, _ = run(capsys, "doctor", "--rm", "http://127.0.0.1:9", "--json")
    assert (code, [finding["check"] for finding in json.loads(out)["findings"]]) == (1, ["rm"])


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 130), (signal.SIGINT, 130)])
def test_an_interrupted_up_takes_down_what_it_started(tmp_path: Path, number: signal.Signals, code: int) -> None:
    # A java that says its version and never becomes a ResourceManager.
    says = '[ "$1" = -version ] && { echo \'openjdk version "17.0.15"\' >&2; exit; }'
    (tmp_path / "java").write_text(f"#!/bin/sh\n{says}\nexec sleep 300\n")
    (tmp_path / "java").chmod(0o755)
    lib = tmp_path / "lib"
    lib.mkdir()
    from harness.clusters.jars import missing

    for prefix in missing(lib):
        (lib / f"{prefix}{DEFAULT}.jar").write_text("")
    state = StateFolder(tmp_path / "state")
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "HADOOP_LIB": str(lib)}
    command = [sys.executable, "-m", "harness", "cluster", "up", "--backend", "local", "--state", str(state.folder)]
    started = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)
    try:
        end = time.monotonic() + 300
        while not (state.folder.exists() and (known := state.load()) and len(known.processes) == 3):
            assert time.monotonic() < end
            time.sleep(0.05)
        assert all(process.alive for process in known.processes.values())
        started.send_signal(number)
        _, err = started.communicate(timeout=300)
    finally:
        started.kill()
        started.wait()
    assert started.returncode == code
    assert err.splitlines()[-1] == "yarnfair: interrupted"
    assert not any(process.alive for process in known.processes.values())
    assert not state.folder.exists()


INVENTORY = """
defaults: {user: yarn}
hosts:
  gate: {host: gate.example.org}
  master: {host: 10.0.0.1, port: 2222, roles: [rm], jump: gate}
"""


@pytest.mark.parametrize("forwarded", [("admin", "client"), ()])
def test_an_adopted_cluster_says_how_the_controller_reaches_it(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, forwarded: tuple[str, ...]
) -> None:
    """The file with its host and its own name, the tunnels' ports, and nothing of nodes that nobody asked for."""
    (tmp_path / "hosts.yaml").write_text(INVENTORY)
    folder, rm = StateFolder(tmp_path / "state"), Rm()
    folder.folder.mkdir()
    with FakeServer(rm.serve) as server:
        port = int(server.url.rpartition(":")[2])
        ports = {"http": port, **{name: 40000 + at for at, name in enumerate(forwarded)}}
        remote = {
            "inventory": read_inventory(tmp_path / "hosts.yaml").document(),
            "adopted": True,
            "scheduler_file": "/etc/hadoop/my queues.xml",
        }
        folder.save(ClusterState("ssh", "mark", ClusterSpec(nodes=1), ports=ports, running_s=0.0, remote=remote))
        where = ["status", "--backend", "ssh", "--state", str(folder.folder)]
        code, out, err = run(capsys, *where)
        _, document, _ = run(capsys, *where, "--json")
        lines = out.splitlines()
        configured = yaml.safe_load("\n".join(lines[lines.index("for the configuration of `yarnfair enforce`:") + 1 :]))
        config = EnforceConfig.model_validate({"policy": "ltrf", "ledger": "x.db", **configured})
        told = json.loads(document)
        assert (code, err) == (0, "")
        assert "ended" not in out
        assert lines[0] == f"{len(rm.nodes['nodes']['node'])} nodes RUNNING"
        assert (
            lines[2]
            == "allocation file master:/etc/hadoop/my queues.xml"
            == f"allocation file {told['allocation_file']}"
        )
        assert config.config_store() == SftpStore("10.0.0.1", "/etc/hadoop/my queues.xml", 2222, "yarn")
        admin, client = ("127.0.0.1:40000", "127.0.0.1:40001") if forwarded else (None, None)
        assert (told["rm"]["admin"], told["rm"]["client"]) == (admin, client)
        assert lines[1] == f"rest {server.url}  admin {admin or '-'}  client {client or '-'}"
        assert told["enforce"] == configured
        if forwarded:
            (address,) = config.addresses(())
            assert (str(address.admin), str(address.client)) == (admin, client)
        assert (config.refresh, config.read_back) == (("rpc", True) if forwarded else ("poll", False))
