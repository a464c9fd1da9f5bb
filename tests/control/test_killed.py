"""A real `enforce` process, killed or stopped at any moment, on `yarnfair sim serve`: what it leaves behind.

Either the administrator's file byte for byte, or weights within `max_ratio` of the entitlements.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

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
            assert service.process.wait(timeout=70) == 0
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
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        assert "no ResourceManager given" in done.stderr
        assert yarn.file.read_text() == ALLOCATIONS
    finally:
        service.end()
        for app in load.ids:
            yarn.client.rest.kill(app)
        yarn.client.refresh_queues()
