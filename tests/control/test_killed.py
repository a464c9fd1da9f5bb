"""A real `enforce` process, killed or stopped at any moment, on `yarnfair sim serve`: what it leaves behind.

Either the administrator's file byte for byte, or weights within `max_ratio` of the entitlements.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.control.values import entitlement
from harness.yarn.fair.parse import parse_allocations
from tests.cluster.enforcing import ALLOCATIONS, QUEUES, Load, Service, until
from tests.cluster.test_live_enforce import Site
from tests.control.killing import ends
from tests.control.test_enforce_on_simulated import yarn  # noqa: F401

pytestmark = pytest.mark.xdist_group("enforce-simulated")
MAX_RATIO = 3.0
OWN = parse_allocations(ALLOCATIONS)


def ratio_of(data: bytes) -> float:
    """By how much the weights against the entitlements differ among the queues: 1 for the administrator's."""
    said = parse_allocations(data)
    ratios = [entitlement(said.weight(queue)) / entitlement(OWN.weight(queue)) for queue in QUEUES]
    return max(ratios) / min(ratios)


def killed(site: Site, count: int, seed: int) -> None:
    how = {"mode": "bounded", "max_ratio": MAX_RATIO, "period_s": 0.2, "lease_s": 1.0}
    service, load = Service(site.folder / f"killed-{seed}", site.rest, site.file, **how), Load(site.client, seed)
    load.submit(60, 300, 600)

    def given() -> bool:
        return site.file.read_text() == ALLOCATIONS

    try:
        ends(service, count, seed, given=given, ratio=lambda: ratio_of(site.file.read_bytes()), bound=MAX_RATIO)
        assert os.listdir(site.file.parent) == [site.file.name]
    finally:
        service.end()
        for app in load.ids:
            site.client.rest.kill(app)


def test_killed_and_stopped_at_some_moments(yarn: Site) -> None:  # noqa: F811
    killed(yarn, 5, seed=1)


@pytest.mark.long
def test_killed_and_stopped_at_fifty_moments(yarn: Site) -> None:  # noqa: F811
    killed(yarn, 50, seed=2)


def test_no_thread_takes_a_signal_but_the_one_that_waits(yarn: Site) -> None:  # noqa: F811
    """numpy begins threads as it is loaded: one that takes SIGTERM ends the controller, and nothing is given back."""
    service = Service(yarn.folder / "signals", yarn.rest, yarn.file, period_s=0.2)
    service.start()
    try:
        until(lambda: service.events("begin"), "it begins")
        assert service.process is not None
        tasks = Path(f"/proc/{service.process.pid}/task")
        blocked = [(task / "status").read_text().split("SigBlk:")[1].split()[0] for task in tasks.iterdir()]
        wanted = 1 << (signal.SIGTERM - 1) | 1 << (signal.SIGINT - 1)
        # While a thread waits for them, they are not among those that it has blocked.
        assert [int(mask, 16) & wanted for mask in blocked].count(0) == 1
        assert len(blocked) >= 2
    finally:
        service.end()


def test_a_stop_that_comes_twice_at_once_is_one_stop(yarn: Site) -> None:  # noqa: F811
    """timeout(1) signals the process and then its group: the second signal must not cut the giving back off."""
    service = Service(yarn.folder / "twice", yarn.rest, yarn.file, period_s=0.2)
    load = Load(yarn.client, 3)
    load.submit(20, 300, 600)
    try:
        for _ in range(3):
            service.start()
            written = len(service.events("weights"))
            until(lambda: len(service.events("weights")) > written, "it writes", every_s=0.02)  # noqa: B023
            assert service.process is not None
            for _ in range(2):
                service.process.send_signal(signal.SIGTERM)
                time.sleep(0.01)
            assert service.process.wait(timeout=300) == 0
            assert yarn.file.read_text() == ALLOCATIONS
    finally:
        service.end()
        for app in load.ids:
            yarn.client.rest.kill(app)


def test_the_file_is_given_back_where_no_rm_is_named(yarn: Site) -> None:  # noqa: F811
    service = Service(yarn.folder / "unnamed", yarn.rest, yarn.file, period_s=0.2, lease_s=1.0)
    load = Load(yarn.client, 4)
    load.submit(20, 300, 600)
    try:
        service.start()
        until(lambda: service.events("weights"), "it writes", every_s=0.02)
        service.kill()
        assert yarn.file.read_text() != ALLOCATIONS
        command = [sys.executable, "-m", "harness", "enforce", "--config", str(service.config), "--release"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
        assert "no ResourceManager given" in done.stderr
        assert yarn.file.read_text() == ALLOCATIONS
    finally:
        service.end()
        for app in load.ids:
            yarn.client.rest.kill(app)
        yarn.client.refresh_queues()


def last_line(service: Service, root: Path) -> subprocess.CompletedProcess[str]:
    """What systemd runs after the service has ended, as the unit on the page has it."""
    (line,) = re.findall(r"^ExecStopPost=-(.+)$", (root / "docs" / "how-to" / "enforce.md").read_text(), re.MULTILINE)
    own = {"/etc/yarnfair/enforce.yaml": str(service.config), "http://rm:8088": str(service.rest)}
    words = [own.get(word, word) for word in line.split()[1:]]
    assert own.keys() < set(line.split())
    return subprocess.run([sys.executable, "-m", "harness", *words], capture_output=True, text=True, timeout=300)


@contextlib.contextmanager
def frozen(service: Service) -> Iterator[None]:
    """It is there and does nothing, so that whoever changes the file is somebody else."""
    assert service.process is not None
    service.process.send_signal(signal.SIGSTOP)
    try:
        os.waitid(os.P_PID, service.process.pid, os.WSTOPPED)
        yield
    finally:
        service.process.send_signal(signal.SIGCONT)


def test_the_units_last_line_touches_nothing_that_another_controller_holds(yarn: Site, root: Path) -> None:  # noqa: F811
    first, spare = (
        Service(yarn.folder / name, yarn.rest, yarn.file, period_s=0.5, lease_s=15.0) for name in ("unit", "spare")
    )
    load = Load(yarn.client, 5)
    load.submit(20, 300, 600)

    def leaves(ended: Service, holder: Service) -> None:
        with frozen(holder):
            before, names = yarn.file.read_bytes(), sorted(os.listdir(yarn.file.parent))
            done = last_line(ended, root)
            assert (done.returncode, done.stdout) == (1, "")
            assert "another controller writes this file" in done.stderr
            assert (yarn.file.read_bytes(), sorted(os.listdir(yarn.file.parent))) == (before, names)
            assert before != ALLOCATIONS.encode()

    try:
        first.start()
        until(lambda: first.events("weights"), "it writes")
        spare.start()
        until(lambda: spare.events("lease"), "the spare waits")
        spare.kill()
        leaves(spare, first)
        spare.start()
        until(lambda: len(spare.events("lease")) > 1, "the spare waits again")
        # The holder hands over to whom it has seen living: between two signs it looks at least once.
        sign = yarn.file.with_name(f".{yarn.file.name}.standby")
        for _ in range(3):
            seen = sign.read_bytes()
            until(lambda: sign.read_bytes() != seen, "the spare gives a sign of life")  # noqa: B023
        first.stop()
        assert "a spare controller has taken over" in first.events("end")[-1]["text"]
        leaves(first, spare)
        spare.kill()
        assert last_line(spare, root).returncode == 0
        assert yarn.file.read_text() == ALLOCATIONS
        assert os.listdir(yarn.file.parent) == [yarn.file.name]
    finally:
        first.end()
        spare.end()
        for app in load.ids:
            yarn.client.rest.kill(app)
