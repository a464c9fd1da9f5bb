"""The live page: what it answers and refuses, and what a browser makes of it, on a simulated ResourceManager."""

from __future__ import annotations

import contextlib
import json
import re
import time
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import requests

from harness.base.errors import CallError, InputError
from harness.control.file_actuator import FileActuator
from harness.control.rm_poller import open_rm_poller
from harness.control.settings import ControlSettings
from harness.control.view import QueueRow, View, from_ledger, with_sums
from harness.control.wall import Controller
from harness.ledger.store import LedgerStore
from harness.model.jobs import NodeSpec
from harness.policies import make_policy
from harness.report.live import MOST_NAMED, LivePage, decision_line
from harness.report.serving import address_of
from harness.sim.serve.live import LiveCluster
from harness.sim.serve.rest import RestServer
from harness.sim.serve.rpc import RpcServer
from harness.sim.setup import SimSetup
from harness.yarn.fair.parse import parse_allocations
from harness.yarn.files import LocalStore
from harness.yarn.http import HttpOptions
from harness.yarn.rmclient import RmAddress, RmClient
from tests.browser import chromium
from tests.predict.loads import contended

QUEUES = (
    "<allocations><queueMaxAMShareDefault>-1.0</queueMaxAMShareDefault>"
    "<queue name='steady'/><queue name='bursts'/></allocations>"
)
SCRIPT = {"X-Yarnfair": "1"}


@pytest.fixture(scope="module")
def ledger(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A controller's ledger after some minutes on a simulated cluster that contends."""
    folder = tmp_path_factory.mktemp("live")
    file, path = folder / "fair-scheduler.xml", folder / "ledger.db"
    file.write_text(QUEUES)
    now = [time.time()]
    nodes = tuple(NodeSpec(f"n{i}", 8192, 8) for i in (1, 2, 3))
    jobs = [job.spec() for job in contended()]
    setup = SimSetup(nodes=nodes, allocations=parse_allocations(QUEUES), jobs=jobs)
    cluster = LiveCluster(setup, file, clock=lambda: now[0])
    with contextlib.ExitStack() as stack:
        servers = RestServer(cluster), RpcServer(cluster), RpcServer(cluster)
        for server in servers:
            server.start()
            stack.callback(server.stop)
        rest, admin, client = servers
        address = RmAddress.of(rest.url, admin=str(admin.address), client=str(client.address))
        rm = stack.enter_context(RmClient([address], HttpOptions(attempts=1, deadline_s=10.0)))
        store = stack.enter_context(LedgerStore(path))
        controller = Controller(
            ControlSettings(period_s=10, mode="bounded"), rm, FileActuator.restored(LocalStore(file), store.document),
            store, make_policy("ltrf", {}), open_observer=open_rm_poller, clock=lambda: now[0],
        )  # fmt: skip
        stack.callback(controller.close)
        for _ in range(36):
            now[0] += 10
            cluster.catch_up()
            controller.tick()
        yield path


class Looks:
    """Looks at a ledger; each is some seconds later than the one before, or fails as told."""

    def __init__(self, ledger: Path) -> None:
        self.view = from_ledger(ledger)
        self.count, self.trouble = 0, ""

    def __call__(self) -> View:
        if self.trouble:
            raise InputError(self.trouble, hint="wait")
        self.count += 1
        return replace(self.view, time_s=self.view.time_s + self.count)


@pytest.fixture
def looks(ledger: Path) -> Looks:
    return Looks(ledger)


@pytest.fixture
def url(looks: Looks) -> Iterator[str]:
    """Of a live page."""
    with contextlib.closing(LivePage(looks, 0.2)) as live:
        yield live.serve("127.0.0.1:0")


def view_of(url: str, **query: str) -> requests.Response:
    return requests.get(f"{url}view.json", params=query, headers=SCRIPT, timeout=300)


def ready(url: str) -> None:
    end = time.monotonic() + 300
    while not view_of(url).json().get("ready"):
        assert time.monotonic() < end
        time.sleep(0.05)


def test_it_answers_what_explain_and_top_say(url: str) -> None:
    ready(url)
    time.sleep(0.5)
    found = view_of(url, queue="root.bursts").json()
    assert (found["policy"], found["mode"]) == ("ltrf", "bounded")
    assert found["queues"]["root.bursts"]["entitled_share"] == 0.5
    assert found["decisions"], "the controller has decided"
    assert found["explain"]["words"][0].startswith("Entitled to 50.0 % of the cluster")
    history = found["history"]
    assert len(history["time_s"]) == len(history["share"]["root.steady"]) >= 2
    assert history["time_s"] == sorted(history["time_s"])
    assert view_of(url, queue="root.nowhere").status_code == 400


def test_what_goes_wrong_is_on_the_page_and_the_last_look_stays(url: str, looks: Looks) -> None:
    ready(url)
    looks.trouble = "the ResourceManager is gone"
    time.sleep(0.6)
    found = view_of(url).json()
    assert "is gone" in found["problem"]
    assert "root.steady" in found["queues"]


def test_it_serves_nothing_else_and_nobody_else(url: str) -> None:
    page = requests.get(url, timeout=300)
    policy = page.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    for path in ("view", "..%2fetc/passwd", "../../etc/passwd", "view.json/x", "favicon.ico"):
        assert requests.get(f"{url}{path}", headers=SCRIPT, timeout=300).status_code == 404
    for method in ("POST", "PUT", "DELETE", "OPTIONS"):
        assert requests.request(method, f"{url}view.json", timeout=300).status_code == 501
    assert requests.get(f"{url}view.json", timeout=300).status_code == 403, "another page's request"
    port = urlsplit(url).port
    for host, status in (
        (f"127.0.0.1:{port}", 200), (f"localhost:{port}", 200), (f"[::1]:{port}", 200), ("evil.example", 421),
        (f"evil.example:{port}", 421), ("127.0.0.1.evil.example", 421), ("", 421), ("[", 400),
    ):  # fmt: skip
        assert requests.get(url, headers={"Host": host}, timeout=300).status_code == status, host


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("127.0.0.1:0", ("127.0.0.1", 0)),
        ("8090", ("127.0.0.1", 8090)),
        (":8090", ("127.0.0.1", 8090)),
        ("0.0.0.0:80", ("0.0.0.0", 80)),
        ("[::1]:81", ("::1", 81)),
        ("somewhere", ("somewhere", 0)),
    ],
)
def test_addresses(text: str, address: tuple[str, int]) -> None:
    assert address_of(text) == address


@pytest.mark.parametrize("text", ["a:b", "host:99999", "host:1:x", "http://host/1"])
def test_what_is_no_address(text: str) -> None:
    with pytest.raises(CallError, match="not a HOST:PORT"):
        address_of(text)


@pytest.mark.browser
def test_the_page_in_a_browser(url: str, looks: Looks, tmp_path: Path) -> None:
    ready(url)
    with chromium(tmp_path / "profile") as browser:
        for width, dark in ((1280, False), (400, True), (400, False)):
            browser.open(url, width, dark=dark)
            browser.until(
                "document.body.dataset.ready === 'true' && document.querySelectorAll('.small svg').length === 2"
            )
            assert browser.too_wide() == []
            assert browser.run("document.documentElement.scrollWidth") <= width
            assert browser.faint() == []
            assert browser.run("document.querySelector('#mode').textContent") == "bounded"
            assert browser.run("document.querySelectorAll('#decisions li').length") > 0
        browser.until("document.querySelector('[data-queue=\"root.bursts\"]').click() || true")
        words = browser.until("document.querySelector('#why p') && document.querySelector('#why').textContent")
        assert "Entitled to 50.0 %" in words
        assert browser.run("document.querySelectorAll('#debt path.c').length") >= 2
        # One scale for all queues, and the latest debt beside each name.
        scales = browser.run(
            "[...document.querySelectorAll('.small svg')].map("
            "e => [...e.querySelectorAll('text[text-anchor=end]')]"
            ".map(t => t.textContent + t.getAttribute('y')).join())"
        )
        assert len(set(scales)) == 1
        latest = browser.run("[...document.querySelectorAll('#debt .legend strong')].map(e => e.textContent)")
        assert len(latest) >= 2
        assert all(re.fullmatch("\u2212?[0-9.,]+[kMG]?", text) for text in latest), latest
        # One number style: it said -3,941.48 beside -3,948.3.
        assert browser.run("[-3941.48, -3948.3, 12.344].map(amount)") == ["\u22123,941.5", "\u22123,948.3", "12.34"]
        before = browser.run("document.querySelector('.small path.c').getAttribute('d').length")
        browser.until(f"document.querySelector('.small path.c').getAttribute('d').length > {before}")
        looks.trouble = "the ResourceManager is gone"
        browser.until("document.querySelector('#alarms').textContent.includes('is gone')")
        assert browser.console == []
        asked = {url.partition("?")[0] for url in browser.requests if not url.startswith(("data:", "about:"))}
        assert asked == {url, f"{url}view.json"}
        browser.picture(tmp_path / "live.png")
    assert json.dumps(view_of(url).json())


@pytest.mark.browser
def test_a_narrow_chart_has_several_times_that_do_not_touch(ledger: Path, tmp_path: Path) -> None:
    view, count = from_ledger(ledger), iter(range(10**6))
    with contextlib.closing(LivePage(lambda: replace(view, time_s=view.time_s + 5 * next(count)), 0.05)) as live:
        url = live.serve("127.0.0.1:0")
        with chromium(tmp_path / "profile") as browser:
            browser.open(url, 400)
            times = (
                "[...document.querySelectorAll('#debt svg[role=img] text[text-anchor=middle]')]"
                ".map(e => { const box = e.getBoundingClientRect(); return [box.left, box.right]; })"
            )
            browser.until(f"{times}.length >= 3")
            boxes = browser.run(times)
            assert all(before[1] < after[0] for before, after in pairwise(boxes)), boxes


def many() -> View:
    """A hundred queues below ten parents, with names as long as they come."""
    rows = [QueueRow("root", None, False, 1.0, allocated_mb=900_000)]
    for group in range(10):
        parent = f"root.department-of-research-and-of-the-analysis-of-markets-{group}"
        rows.append(QueueRow(parent, "root", False, 1.0, allocated_mb=90_000))
        for leaf in range(10):
            held, more = 8_000 + 100 * leaf, {"weight": 1.0, "accumulated": 1e6 * leaf}
            path = f"{parent}.nightly_extraction_and_loading_of_everything_{leaf}"
            rows.append(QueueRow(path, parent, True, 1.0 + leaf, allocated_mb=held, demand_mb=10_000, apps=2, **more))
    leaves = [row.path for row in rows if row.leaf]
    decision = {
        "time_s": 90.0,
        "weights": dict.fromkeys(leaves, 1.0),
        "changed": leaves,
        "reasons": dict.fromkeys(leaves, "is owed 3.0 GiB s"),
    }
    queues = {row.path: row for row in rows}
    alarms = (("overcommitted", "the queue " + leaves[0] + " holds more than it may"),)
    return with_sums(View(100.0, "http://rm:8088", "ltrf", 1_000_000, queues, alarms=alarms, decisions=(decision,)))


def test_a_decision_on_many_queues_names_some_and_counts_the_rest() -> None:
    view = many()
    line = decision_line(view, view.decisions[0])
    assert line["what"].count("nightly") == line["why"].count("is owed") == MOST_NAMED
    assert line["what"].endswith(", 92 more")
    assert line["why"].endswith("; 92 more")


def test_a_decision_of_a_policy_that_goes_by_debts_says_them() -> None:
    rows = [QueueRow("root", None, False, 1.0)]
    rows += [QueueRow(f"root.{name}", "root", True, 1.0, accumulated=used) for name, used in (("a", 9e6), ("b", 1e6))]
    weights, counted = {"root.a": 0.5, "root.b": 1.5}, {"root.a": 9e6, "root.b": 1e6}
    decision = {"time_s": 9.0, "weights": weights, "changed": [*weights], "counted": counted, "reasons": {}}
    view = with_sums(View(9.0, "x", "ltrf", 1000, {row.path: row for row in rows}, gives_back=True))
    line = decision_line(view, decision)
    assert line["what"] == "a 25 %, b 75 %"
    assert line["why"] == "a has had too much by 3,906.2 GiB\u00b7s; b owed 3,906.2 GiB\u00b7s"
    assert decision_line(replace(view, gives_back=False), decision)["why"] == ""
    own = {**decision, "reasons": {"root.b": "has waited 9 s"}}
    assert decision_line(view, own)["why"] == "b has waited 9 s"


@pytest.mark.browser
def test_a_hundred_queues_with_long_names_in_a_browser(tmp_path: Path) -> None:
    view, count = many(), iter(range(10**6))
    live = LivePage(lambda: replace(view, time_s=view.time_s + next(count)), 0.2)
    url = live.serve("127.0.0.1:0")
    try:
        with chromium(tmp_path / "profile") as browser:
            for width, dark in ((1280, True), (400, False)):
                browser.open(url, width, dark=dark)
                browser.until("document.querySelectorAll('.small svg').length === 36")
                assert browser.run("document.getElementById('more').textContent").endswith("of 100 queues.")
                assert browser.too_wide() == []
                assert browser.run("document.documentElement.scrollWidth") <= width
                assert browser.faint() == []
                names = browser.run("[...document.querySelectorAll('.small .name')].map(e => e.textContent)")
                assert len(set(names)) == 36, "each can be told from the others"
                lines = "[...document.querySelectorAll('.small .name > :first-child')].map(e => e.offsetHeight)"
                assert max(browser.run(lines)) < 100, "a name has the whole width"
                assert browser.run("document.getElementById('mode').offsetWidth") == 0, "nobody said how far it goes"
                browser.picture(tmp_path / f"many-{width}.png")
            browser.run("document.querySelector('[data-queue]').click()")
            words = browser.until("document.querySelector('#why p') && document.querySelector('#why').textContent")
            assert "Entitled to" in words
            assert browser.too_wide() == []
            assert browser.console == []
    finally:
        live.close()
