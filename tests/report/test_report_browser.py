"""The page in a real browser, at the width of a desk and of a phone: nothing loaded, no errors, nothing too wide."""

from __future__ import annotations

import json
import re
import subprocess
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from harness.report import render_report
from harness.report.comparing import write_page
from harness.results.compare import compare
from harness.results.runs import groups
from tests.browser import chromium, headless

pytestmark = pytest.mark.browser

#: Frames of two widths around the page, and a script that looks into them once they are there.
PROBE = """<!DOCTYPE html><meta charset="utf-8"><link rel="icon" href="data:,"><body>
<iframe src="PAGE" width="390" height="800" style="border:0"></iframe>
<iframe src="PAGE" width="1280" height="800" style="border:0"></iframe>
<pre id="answer"></pre>
<script>
function look(frame) {
  const view = frame.contentWindow, page = frame.contentDocument, wide = [];
  for (const element of page.querySelectorAll("body *")) {
    if (element.closest(".scroll, pre, .unseen")) continue;
    const right = element.getBoundingClientRect().right;
    if (right > view.innerWidth + 1) wide.push(element.tagName + " " + element.className);
  }
  const charts = [...page.querySelectorAll("figure svg")];
  const texts = charts.flatMap(chart => {
    const scale = chart.getBoundingClientRect().width / chart.viewBox.baseVal.width;
    return [...chart.querySelectorAll("text.t")].map(text => parseFloat(view.getComputedStyle(text).fontSize) * scale);
  });
  const drawn = chart => chart.getBoundingClientRect().height >= 100 && chart.querySelector(".c, [fill]");
  return {
    width: view.innerWidth,
    scroll: page.documentElement.scrollWidth,
    wide: wide.slice(0, 5),
    loaded: view.performance.getEntriesByType("resource").map(entry => entry.name),
    charts: charts.length,
    empty: charts.filter(chart => !drawn(chart)).length,
    smallest: Math.min(...texts),
    ink: view.getComputedStyle(page.body).color,
  };
}
addEventListener("load", () => {
  const answer = [...document.querySelectorAll("iframe")].map(look);
  document.getElementById("answer").textContent = JSON.stringify(answer);
});
</script>
"""


@dataclass(frozen=True)
class Seen:
    """What the browser said: the probe's answers (phone, desk), console lines, and the paths that it asked for."""

    phone: dict[str, Any]
    desk: dict[str, Any]
    console: list[str]
    requests: list[str]


@pytest.fixture
def requests() -> list[str]:
    """Paths that the server was asked for."""
    return []


@pytest.fixture
def server(tmp_path: Path, requests: list[str]) -> Iterator[tuple[Path, str]]:
    """A folder and the address under which this machine alone serves it."""

    class Handler(SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            requests.append(self.path)

    folder = tmp_path / "served"
    folder.mkdir()
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(folder))) as httpd:
        thread = threading.Thread(target=httpd.serve_forever, daemon=True)
        thread.start()
        yield folder, f"http://127.0.0.1:{httpd.server_port}"
        httpd.shutdown()
        thread.join(10)


def browse(folder: Path, address: str, requests: list[str], profile: Path) -> Seen:
    """Opens report.html of `folder` in headless Chromium through the probe."""
    (folder / "probe.html").write_text(PROBE.replace("PAGE", "report.html"))
    done = subprocess.run(
        [
            *headless(profile),
            "--enable-logging=stderr",
            "--window-size=1800,900",
            "--virtual-time-budget=5000",
            "--dump-dom",
            f"{address}/probe.html",
        ],
        capture_output=True,
        text=True,
        timeout=300,
    )
    answer = re.search(r'<pre id="answer">(.+?)</pre>', done.stdout, re.S)
    assert answer, f"the browser did not show the page: {done.stderr[-2000:]}"
    phone, desk = json.loads(answer.group(1).replace("&amp;", "&").replace("&lt;", "<").replace("&gt;", ">"))
    return Seen(phone, desk, [line for line in done.stderr.splitlines() if "CONSOLE" in line], list(requests))


def test_the_page_in_a_browser(
    three_policies: list[Path], hierarchy: list[Path], server: tuple[Path, str], requests: list[str], tmp_path: Path
) -> None:
    folder, address = server
    render_report([*three_policies, *hierarchy], folder / "report.html")
    seen = browse(folder, address, requests, tmp_path / "profile")
    assert seen.console == []
    assert set(seen.requests) <= {"/probe.html", "/report.html"}, "the page asks for nothing else"
    for view, width in ((seen.phone, 390), (seen.desk, 1280)):
        assert view["width"] == width
        assert view["loaded"] == []
        assert view["wide"] == []
        assert view["scroll"] <= width, "nothing to scroll sideways"
        assert view["charts"] > 20
        assert view["empty"] == 0
        assert view["smallest"] >= 9, "axis labels can be read"
        assert view["ink"] == "rgb(27, 31, 36)", "dark text"


def test_the_probe_sees_what_is_wrong(
    three_policies: list[Path], server: tuple[Path, str], requests: list[str], tmp_path: Path
) -> None:
    folder, address = server
    page = folder / "report.html"
    render_report(three_policies, page)
    wrong = '<p style="width: 900px">too wide</p><img src="picture.png" alt="">'
    page.write_text(page.read_text().replace("<main>", f"<main>{wrong}"))
    seen = browse(folder, address, requests, tmp_path / "profile")
    assert seen.console, "the page's own policy forbids the picture"
    assert seen.phone["wide"]
    assert seen.phone["scroll"] > 390


def test_the_page_of_a_comparison_in_a_browser(
    write_run: Callable[..., Path], server: tuple[Path, str], requests: list[str], tmp_path: Path
) -> None:
    for variant, loss in (("fair", 100.0), ("a policy with quite a long name,horizon_s=80", 60.0)):
        for seed in range(1, 9):
            write_run(variant, "ltrf", seed=seed, seconds=20, summary={"sharing_loss_integral": loss + seed})
    folder, address = server
    chosen = groups([str(tmp_path / "runs")])
    write_page([compare(contest) for contest in chosen.contests], ["a remark"], folder / "report.html")
    seen = browse(folder, address, requests, tmp_path / "profile")
    assert seen.console == []
    assert set(seen.requests) <= {"/probe.html", "/report.html"}
    for view, width in ((seen.phone, 390), (seen.desk, 1280)):
        assert view["loaded"] == []
        assert view["wide"] == []
        assert view["scroll"] <= width
    with chromium(tmp_path / "dark") as browser:
        browser.open(f"file://{folder}/report.html", 400, dark=True)
        browser.until("document.readyState === 'complete' && !!document.querySelector('main')")
        # Each interval has room, and its words stand beside it, not over it.
        drawn = browser.run(
            "[...document.querySelectorAll('.changes:not(details *) .span')].map(e => e.getBoundingClientRect().width)"
        )
        assert drawn
        assert min(drawn) > 100
        assert browser.run("getComputedStyle(document.body).backgroundColor") == "rgb(18, 22, 27)"
        assert (browser.faint(), browser.too_wide(), browser.console) == ([], [], [])


def test_the_bar_of_times_covers_nothing_where_no_chart_is(three_policies: list[Path], tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    render_report(three_policies, page)
    shown = "getComputedStyle(document.querySelector('.times')).visibility"
    with chromium(tmp_path / "profile") as browser:
        browser.open(f"file://{page}", 400)
        browser.until("document.readyState === 'complete' && !!document.querySelector('.times')")
        assert browser.run(shown) == "hidden"
        browser.run("document.querySelector('svg[data-t]').scrollIntoView()")
        browser.until(f"{shown} === 'visible'")
        browser.run("scrollTo(0, 0)")
        browser.until(f"{shown} === 'hidden'")
        assert browser.console == []
