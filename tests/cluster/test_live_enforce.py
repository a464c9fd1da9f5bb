"""`yarnfair enforce` on a real ResourceManager, and what may go wrong there.

In every case: no broken file ever stands where the RM reads it, no queue is left with a wrong weight, and the accounts
end where the RM's own figures do.
"""

from __future__ import annotations

import json
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import requests

from harness.clusters import site
from harness.clusters.local import LocalCluster
from harness.clusters.state import ClusterSpec, StateFolder
from harness.model.resources import Resource
from harness.yarn.fair.parse import parse_allocations
from harness.yarn.http import HttpOptions
from harness.yarn.rest import Submission
from harness.yarn.rmclient import RmClient
from studies.pair import recovery
from tests.browser import chromium
from tests.cluster.enforcing import (
    ALLOCATIONS,
    QUEUES,
    FileGuard,
    Load,
    Meddler,
    Service,
    stop_rm,
    tmpfs,
    until,
)
from tests.cluster.parts import kill_part, start_part

_PAGE = r"http://127\.0\.0\.1:[0-9]+/"
pytestmark = [pytest.mark.java, pytest.mark.live, pytest.mark.xdist_group("enforce")]


@dataclass
class Site:
    """A cluster whose RM recovers its applications when it is started again."""

    cluster: LocalCluster
    client: RmClient
    rest: str
    file: Path
    folder: Path
    services: list[Service] = field(default_factory=list)

    def service(self, rest: str | None = None, **config: object) -> Service:
        """A controller with a ledger of its own, on the administrator's file."""
        site.write(self.file, ALLOCATIONS)
        self.client.refresh_queues()
        rms = [
            {
                "rest": rest or self.rest,
                "admin": str(self.client.rms[0].admin),
                "client": str(self.client.rms[0].client),
            }
        ]
        folder = self.folder / f"s{len(self.services) + 1}"
        self.services.append(Service(folder, rest or self.rest, self.file, rms=rms, **config))
        return self.services[-1]

    def weights(self) -> dict[str, float]:
        """What is in force."""
        return {path: queue.weight for path, queue in self.client.effective_queues().items() if path in QUEUES}


@pytest.fixture(scope="module")
def yarn(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("enforce")
    (folder / "allocations.xml").write_text(ALLOCATIONS)
    spec = ClusterSpec(
        nodes=2,
        memory_mb=4096,
        vcores=16,
        expiry_ms=10_000,
        allocations=str(folder / "allocations.xml"),
        properties=recovery(folder / "rmstate"),
    )
    cluster = LocalCluster(StateFolder(folder / "state"))
    try:
        status = cluster.up(spec, timeout_s=170)
        file = Path(status.scheduler_folder) / "fair-scheduler.xml"
        with RmClient([status.address], HttpOptions(attempts=1, deadline_s=5.0), rpc_timeout_s=5.0) as client:
            made = Site(cluster, client, status.address.rest, file, folder)
            yield made
            for service in made.services:
                service.end()
    finally:
        left = cluster.down()
    assert left == []


def settled(yarn: Site, service: Service, load: Load, *, within_mb_s: float = 0.0) -> None:
    """The end of every case: sums as the RM has them, weights as a fresh decision wants them, and in force."""
    load.wait()
    service.once()
    last = service.once()
    assert not last["wrote"], "a second look changes nothing"
    assert last["alarms"] == []
    assert yarn.weights() == pytest.approx(last["weights"])
    truth, consumed = load.truth(), service.consumed()
    for queue in QUEUES:
        assert consumed.get(queue, (0.0, 0.0))[0] == pytest.approx(truth.get(queue, (0.0, 0.0))[0], abs=within_mb_s)
    file = parse_allocations(yarn.file.read_bytes())
    assert file.settings["root.a"].max_running_apps == 50
    assert b"<!-- the administrator's -->" in yarn.file.read_bytes()


def test_once_dry_run_release_and_the_views(yarn: Site) -> None:
    service = yarn.service()
    before = yarn.file.read_bytes()
    command = [sys.executable, "-m", "harness"]
    ours = ["--rm", yarn.rest, "--config", str(service.config)]
    trial = subprocess.run([*command, "enforce", *ours, "--dry-run"], capture_output=True, text=True, timeout=60)
    assert trial.returncode == 0, trial.stderr
    assert re.search(r"^\+ .*<weight>500</weight>", trial.stdout, re.MULTILINE)
    assert yarn.file.read_bytes() == before
    assert not service.ledger.exists()
    load = Load(yarn.client)
    first = service.once()
    assert first["wrote"]
    assert 0 < first["effect_s"] < 10  # the RM's own poll takes 10 s and more
    load.submit(4, 4, 6)
    settled(yarn, service, load)
    assert yarn.weights()["root.a"] != 2.0
    for queue in ("a", "root.b"):
        told = subprocess.run([*command, "explain", queue, *ours], capture_output=True, text=True, timeout=60)
        assert told.returncode == 0, told.stderr
        assert "Entitled to" in told.stdout
        assert "Accumulated since" in told.stdout
    shown = subprocess.run([*command, "top", *ours, "--once"], capture_output=True, text=True, timeout=60)
    assert shown.returncode == 0, shown.stderr
    assert max(map(len, shown.stdout.splitlines())) <= 80
    figures = json.loads(
        subprocess.run([*command, "top", "--rm", yarn.rest, "--json"], capture_output=True, timeout=60).stdout
    )
    assert set(QUEUES) < set(figures["queues"])
    release = subprocess.run([*command, "enforce", *ours, "--release"], capture_output=True, text=True, timeout=60)
    assert release.returncode == 0, release.stderr
    assert yarn.weights() == {"root.a": 2.0, "root.b": 1.0, "root.c": 1.0}
    assert parse_allocations(yarn.file.read_bytes()) == parse_allocations(before)


@pytest.mark.browser
def test_the_live_page_of_the_controller_and_of_top(yarn: Site, tmp_path: Path) -> None:
    """`enforce` with `page:`, and beside it `top --serve`: both show in a browser what the ResourceManager has."""
    service = yarn.service(page="127.0.0.1:0")
    service.once()
    load = Load(yarn.client)
    service.start()
    shown = until(lambda: service.log.exists() and service.events("page"), "the page is announced")[-1]
    load.submit(6, 25, 30)
    (own,) = re.findall(_PAGE, json.dumps(shown))
    served = [*("--rm", yarn.rest, "--config", str(service.config)), *("--serve", "127.0.0.1:0", "--every", "1")]
    command = [sys.executable, "-m", "harness", "top", *served]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as top:
        try:
            assert top.stdout is not None
            (beside,) = re.findall(_PAGE, top.stdout.readline())
            with chromium(tmp_path / "profile") as browser:
                for url, width, dark in ((own, 1280, False), (beside, 1280, False), (beside, 400, True)):
                    browser.open(url, width, dark=dark)
                    browser.until("document.querySelectorAll('.small svg').length === 3", timeout_s=60)
                    assert browser.run("document.querySelector('#mode').textContent") == "full"
                    browser.until("document.querySelectorAll('#decisions li').length > 0", timeout_s=60)
                    browser.until("document.querySelector('[data-queue=\"root.a\"]').click() || true")
                    words = browser.until(
                        "document.querySelector('#why p') && document.querySelector('#why').textContent", timeout_s=60
                    )
                    assert "Entitled to 50.0 %" in words
                    assert browser.too_wide() == []
                    assert browser.faint() == []
                    before = browser.run("document.querySelector('.small path.c').getAttribute('d').length")
                    browser.until(
                        f"document.querySelector('.small path.c').getAttribute('d').length > {before}", timeout_s=60
                    )
                assert browser.console == []
                asked = {url.partition("?")[0] for url in browser.requests if url.startswith("http")}
                assert asked == {own, f"{own}view.json", beside, f"{beside}view.json"}
            for url in (own, beside):
                found = requests.get(f"{url}view.json", headers={"X-Yarnfair": "1"}, timeout=30).json()
                assert set(QUEUES) < set(found["queues"])
                assert found["problem"] == ""
        finally:
            top.send_signal(signal.SIGINT)
            top.wait(timeout=30)
    service.stop()
    for url in (own, beside):
        with pytest.raises(requests.ConnectionError):
            requests.get(url, timeout=5)
    settled(yarn, service, load)


def kills(yarn: Site, count: int, seed: int) -> None:
    service, load, rng = yarn.service(), Load(yarn.client, seed), random.Random(seed)
    service.once()
    load.submit(6, 8, 16)
    with FileGuard(yarn.file) as guard:
        for number in range(count):
            service.start()
            # Start-up takes 1 s and more: some die in it, most in a tick, none in peace.
            time.sleep(rng.uniform(0.6, 3.5))
            service.kill()
            if number % 3 == 0:
                load.submit(2, 2, 6)
        service.start()
        load.wait()
        service.stop()
    assert guard.broken == []
    assert len(guard.seen) > 1
    settled(yarn, service, load)


def test_killed_at_random_moments(yarn: Site) -> None:
    kills(yarn, 5, seed=1)


@pytest.mark.long
def test_killed_at_fifty_random_moments(yarn: Site) -> None:
    kills(yarn, 50, seed=2)


def unreachable(yarn: Site, seconds: float) -> None:
    service, load = yarn.service(), Load(yarn.client, 3)
    service.start()
    until(lambda: service.events("weights"), "a first decision")
    load.submit(6, 5, seconds + 4)
    time.sleep(4)
    before = yarn.file.read_bytes()
    with FileGuard(yarn.file) as guard:
        stop_rm(yarn.cluster, go_on=False)
        try:
            time.sleep(2)  # what was on its way has come
            before = yarn.file.read_bytes()
            time.sleep(seconds)
            assert yarn.file.read_bytes() == before, "the last good file is held"
        finally:
            stop_rm(yarn.cluster, go_on=True)
        until(lambda: any("mended" in e["text"] for e in service.events("observation")), "the RM is seen again")
        load.wait()
        service.stop()
    assert guard.broken == []
    assert any(e["level"] == "warning" for e in service.events("observation"))
    settled(yarn, service, load)


def test_an_rm_that_answers_nobody(yarn: Site) -> None:
    unreachable(yarn, 20.0)


@pytest.mark.long
def test_an_rm_that_answers_nobody_for_minutes(yarn: Site) -> None:
    unreachable(yarn, 180.0)


def test_an_rm_that_is_killed_and_started_again(yarn: Site) -> None:
    service, load = yarn.service(), Load(yarn.client, 4)
    service.start()
    until(lambda: service.events("weights"), "a first decision")
    load.submit(6, 30, 36)
    load.launched()
    time.sleep(3)
    with FileGuard(yarn.file) as guard:
        kill_part(yarn.cluster, "rm")
        time.sleep(5)
        start_part(yarn.cluster, "rm")
        event = until(lambda: service.events("rm"), "the controller notices", 300)
        assert "began anew" in event[0]["text"]
        until(lambda: yarn.client.rest.metrics().active_nodes == 2, "nodes are back", 180)
        load.wait()
        service.stop()
    assert guard.broken == []
    held_s = sum(app.memory_seconds for app in load.apps())
    # The RM recovered the containers with all that they had used; we had to estimate the time that it was away.
    settled(yarn, service, load, within_mb_s=max(0.03 * held_s, 2 * 512))


def test_a_node_that_is_killed(yarn: Site) -> None:
    service, load = yarn.service(), Load(yarn.client, 5)
    service.start()
    until(lambda: service.events("weights"), "a first decision")
    load.submit(8, 8, 20)
    time.sleep(3)
    try:
        kill_part(yarn.cluster, "nm2")
        until(lambda: yarn.client.rest.metrics().active_nodes == 1, "the node is lost", 60)
        time.sleep(2)
    finally:
        start_part(yarn.cluster, "nm2")
    until(lambda: yarn.client.rest.metrics().active_nodes == 2, "the node is back", 60)
    load.wait()
    service.stop()
    assert service.events("observation") == []
    settled(yarn, service, load)


def test_a_disk_that_is_full(yarn: Site) -> None:
    plain = yarn.service()
    folder = yarn.file.parent
    with tmpfs(folder, 1024) as mounted:
        if not mounted:
            pytest.skip("needs the right to mount a tmpfs")
        site.write(yarn.file, ALLOCATIONS)
        # File and ledger on the same small disk.
        service = Service(folder / "own", yarn.rest, yarn.file, ledger=str(folder / "ledger.db"))
        service.ledger = folder / "ledger.db"
        service.log = plain.folder / "log.jsonl"
        load = Load(yarn.client, 6)
        service.start()
        until(lambda: service.events("weights"), "a first decision")
        load.submit(5, 6, 12)
        with FileGuard(yarn.file) as guard:
            with (folder / "filler").open("wb", buffering=0) as filler:
                while True:
                    try:
                        filler.write(b"x" * 1024)
                    except OSError:
                        break
            until(lambda: [e for e in service.events("ledger") if "full" in e["text"] or "disk" in e["text"]], "said")
            time.sleep(4)
            assert service.process is not None
            assert service.process.poll() is None, "it goes on"
            (folder / "filler").unlink()
            until(lambda: any(e["text"] == "mended" for e in service.events("ledger")), "mended")
            load.wait()
            service.stop()
        assert guard.broken == []
        settled(yarn, service, load)
        text = yarn.file.read_text()
    site.write(yarn.file, text)


def test_a_file_that_somebody_else_tears_or_fills_with_poison(yarn: Site) -> None:
    service, load = yarn.service(), Load(yarn.client, 7)
    service.start()
    until(lambda: service.events("weights"), "a first decision")
    load.submit(5, 6, 14)
    time.sleep(2)
    whole = yarn.file.read_bytes()
    for torn in (whole[: len(whole) // 2], b"", b"<allocations><queue name='a.b'/></allocations>", b"\xff\xfe" * 99):
        # In place, as an editor does that knows no better.
        yarn.file.write_bytes(torn)
        in_force = yarn.weights()
        time.sleep(2.2)
        assert yarn.file.read_bytes() == torn, "what somebody is writing is his"
        assert yarn.weights() == in_force
    yarn.file.write_bytes(whole)
    assert {e["level"] for e in service.events("file")} >= {"warning"}
    until(lambda: service.events("file")[-1]["text"] == "mended", "mended")
    # Weights that would make the RM's fair-share computation run for ever, or be wrong.
    for poison in (b"NaN", b"1e30"):
        text = re.sub(rb"<weight>[^<]*<", b"<weight>" + poison + b"<", yarn.file.read_bytes())
        yarn.file.write_bytes(text)
        until(lambda poison=poison: poison not in yarn.file.read_bytes(), "the poison is gone", 6)  # type: ignore[misc]
    assert yarn.client.rest.info().active
    assert service.events("foreign")
    load.wait()
    service.stop()
    settled(yarn, service, load)


def test_answers_that_are_cut_off_or_nonsense(yarn: Site) -> None:
    meddler = Meddler(urlsplit(yarn.rest).port or 0)
    service, load = yarn.service(meddler.address), Load(yarn.client, 8)
    try:
        service.start()
        until(lambda: service.events("weights"), "a first decision")
        load.submit(6, 8, 22)
        with FileGuard(yarn.file) as guard:
            for mode in Meddler.MODES:
                meddler.mode = mode
                time.sleep(3.0)
                meddler.mode = "pass"
                time.sleep(1.0)
            load.wait()
            service.stop()
        assert guard.broken == []
        assert meddler.meddled > 12
        assert [e for e in service.events("observation") if e["level"] == "warning"]
        settled(yarn, service, load)
    finally:
        meddler.close()


def test_two_controllers_and_one_file(yarn: Site) -> None:
    first = yarn.service()
    second = Service(yarn.folder / "second", yarn.rest, yarn.file)
    first.start()
    until(lambda: first.events("weights"), "a first decision")
    second.start()
    until(lambda: second.events("lease"), "the second notices")
    assert "another controller writes this file" in second.events("lease")[0]["text"]
    with pytest.raises(AssertionError, match="another controller is at work with this ledger"):
        first.once()
    first.kill()
    # Silent for the lease's time, then it is the second's.
    # It writes nothing where the weights are the same: the lease tells.
    until(lambda: second.events("lease")[-1]["text"] == "mended", "the second takes over", 30)
    first.start()
    until(lambda: first.events("lease"), "now the first has to wait")
    second.stop()
    until(lambda: first.events("lease")[-1]["text"] == "mended", "given back, it is free at once", 10)
    first.stop()


def test_queues_of_users_who_come_get_weights_of_their_own(yarn: Site) -> None:
    service = yarn.service(ad_hoc="name")
    service.once()
    client = yarn.client.rest
    ids = [
        client.submit(Submission("u", f"root.users.{user}", "sleep 300", Resource(512, 1)))
        for user in ("al", "bo", "al")
    ]
    until(lambda: sum(client.app(app).running_containers for app in ids) == 3, "containers run")
    time.sleep(3)
    document = service.once()
    assert document["alarms"] == []
    found = {path: queue.weight for path, queue in yarn.client.effective_queues().items()}
    assert found["root.users.al"] < found["root.users.bo"], "al has had twice as much"
    text = yarn.file.read_text()
    assert '<queue name="users" type="parent">' in text
    for app in ids:
        client.kill(app)
    command = [
        sys.executable,
        "-m",
        "harness",
        "enforce",
        "--rm",
        yarn.rest,
        "--config",
        str(service.config),
        "--release",
    ]
    release = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert release.returncode == 0, release.stderr
    assert parse_allocations(yarn.file.read_bytes()) == parse_allocations(ALLOCATIONS)
