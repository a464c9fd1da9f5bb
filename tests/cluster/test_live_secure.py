"""A ResourceManager with Kerberos, TLS and ACLs: `enforce` with a keytab, while tickets end and the KDC is down."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from harness.yarn.errors import Refused, Unreachable
from harness.yarn.http import HttpOptions
from harness.yarn.rmclient import RmClient
from tests.cluster.secure_rm import ALLOCATIONS, SecureRm, secure_rm

pytestmark = [pytest.mark.kdc, pytest.mark.java, pytest.mark.live, pytest.mark.xdist_group("live-secure")]


@pytest.fixture(scope="module")
def rm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureRm]:
    folder = tmp_path_factory.mktemp("secure")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KRB5_CONFIG", str(folder / "krb5.conf"))
        patch.setenv("KRB5CCNAME", f"FILE:{folder}/nobody-has-logged-in")
        with secure_rm(folder) as found:
            yield found


def test_rest_and_rpc_with_a_keytab(rm: SecureRm) -> None:
    """The RM's REST shows who it takes us for; the RPC is sealed (hadoop.rpc.protection offers privacy)."""
    with rm.client("ctl") as client:
        assert client.rest.info().state == "STARTED"
        rm.file.write_text(ALLOCATIONS.replace("3.0", "2.0"))
        client.refresh_queues()
        assert client.confirm_weights({"root.a": 2.0, "root.b": 1.0}) < 5
        rm.file.write_text(ALLOCATIONS)
        client.refresh_queues()
        client.confirm_weights({"root.a": 3.0, "root.b": 1.0})


def test_who_may_not_administer_is_refused_with_a_reason(rm: SecureRm) -> None:
    with rm.client("alice") as client:
        assert client.effective_queues()["root.a"].weight == 3.0
        with pytest.raises(Refused, match="alice doesn't have permission") as caught:
            client.refresh_queues()
    assert "yarn.admin.acl" in caught.value.line()


def test_without_kerberos_it_says_what_to_give(rm: SecureRm) -> None:
    options = HttpOptions(ca_file=str(rm.authority.file), attempts=1, user="ctl")
    with RmClient([rm.address], options) as client:
        for ask in (client.rest.info, client.refresh_queues):
            with pytest.raises(Refused, match=r"http\.kerberos"):
                ask()


def test_an_authority_that_is_not_known_is_said(rm: SecureRm) -> None:
    with rm.client("ctl", ca_file=None) as client, pytest.raises(Unreachable, match="certificate verify failed"):
        client.rest.info()


class Service:
    """`yarnfair enforce` as a process of its own, with tickets that last `life_s`."""

    def __init__(self, rm: SecureRm, folder: Path, life_s: int) -> None:
        said = {
            "policy": "ltrf",
            "allocation_file": str(rm.file),
            "ledger": str(folder / "ledger.db"),
            "queues": {"a": 1, "b": 3},
            "period_s": 1,
            "lease_s": 0,
            **rm.configured("ctl"),
        }
        (folder / "enforce.yaml").write_text(yaml.safe_dump(said))
        # How long a ticket shall last, the client asks for.
        conf = rm.kdc.conf.read_text()
        (folder / "krb5.conf").write_text(conf.replace("ticket_lifetime = 3600s", f"ticket_lifetime = {life_s}s"))
        self.log = folder / "enforce.log"
        words = ["enforce", "--config", str(folder / "enforce.yaml"), "--log-format", "json"]
        with self.log.open("w") as out:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "harness", *words],
                env={**os.environ, "KRB5_CONFIG": str(folder / "krb5.conf")},
                stdout=out,
                stderr=out,
            )

    def __enter__(self) -> Service:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait(timeout=30)

    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.log.read_text().splitlines() if line.startswith("{")]

    def stop(self) -> int:
        self._process.send_signal(signal.SIGTERM)
        return self._process.wait(timeout=60)

    @property
    def runs(self) -> bool:
        return self._process.poll() is None


def enforced(rm: SecureRm, client: RmClient, service: Service, within_s: float = 30.0) -> None:
    """After an edit by the administrator, the controller's weights come into force again."""
    rm.file.write_text(ALLOCATIONS)
    client.refresh_queues()
    end = time.monotonic() + within_s
    while (found := client.effective_queues())["root.b"].weight != 3 * found["root.a"].weight:
        assert service.runs, service.log.read_text()
        assert time.monotonic() < end, service.log.read_text()[-3000:]
        time.sleep(0.3)


@pytest.mark.parametrize(("life_s", "lives"), [(8, 3), pytest.param(120, 30, marks=pytest.mark.long)])
def test_enforce_goes_on_over_tickets_that_end_and_a_kdc_that_is_down(
    rm: SecureRm, tmp_path: Path, life_s: int, lives: int
) -> None:
    """So many lives of a ticket (30 of two minutes: an hour); then no KDC for longer than one; then it is back.

    Then the stop, which gives the file back.
    """
    rm.file.write_text(ALLOCATIONS)
    with rm.client("ctl") as client, Service(rm, tmp_path, life_s) as service:
        client.refresh_queues()
        enforced(rm, client, service)
        end = time.monotonic() + lives * life_s
        while time.monotonic() < end:
            time.sleep(life_s / 3)
            enforced(rm, client, service)
        assert not [line for line in service.lines() if "ticket" in str(line)]
        rm.kdc.stop()
        try:
            end = time.monotonic() + 2 * life_s + 20
            while not [line for line in service.lines() if "Cannot contact any KDC" in str(line)]:
                assert time.monotonic() < end, service.log.read_text()[-3000:]
                time.sleep(0.5)
            assert service.runs
        finally:
            rm.kdc.start()
        enforced(rm, client, service)
        assert service.stop() == 0
        assert rm.file.read_text() == ALLOCATIONS
        assert client.confirm_weights({"root.a": 3.0, "root.b": 1.0}) < 5
    keys = (rm.kdc.folder / "ctl.keytab").read_bytes()
    assert not any(keys[at : at + 12] in service.log.read_bytes() for at in range(40, len(keys) - 12))


def test_release_with_a_keytab_after_a_kill(rm: SecureRm, tmp_path: Path) -> None:
    rm.file.write_text(ALLOCATIONS)
    with rm.client("ctl") as client:
        client.refresh_queues()
        with Service(rm, tmp_path, 3600) as service:
            enforced(rm, client, service)
        done = subprocess.run(
            [sys.executable, "-m", "harness", "enforce", "--config", str(tmp_path / "enforce.yaml"), "--release"],
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, done.stderr
        assert "are in force" in done.stderr
        assert rm.file.read_text() == ALLOCATIONS
        client.confirm_weights({"root.a": 3.0, "root.b": 1.0})
