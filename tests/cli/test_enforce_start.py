"""`yarnfair enforce` as a service that begins before any ResourceManager answers: it waits, and says so."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

from harness.clusters.local import free_ports

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
