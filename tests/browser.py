"""Headless Chromium by its debugging pipe: pages are opened, scripts run in them, what they say is written down."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_OPTIONS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
    "--no-proxy-server",
)


class Browser:
    """One page of one browser."""

    def __init__(self, read: int, write: int) -> None:
        self._read, self._write, self._number, self._rest = read, write, 0, b""
        #: What the page said (errors, exceptions), and the addresses that it asked for.
        self.console: list[str] = []
        self.requests: list[str] = []
        target = self._call("Target.createTarget", {"url": "about:blank"})["targetId"]
        self._session = self._call("Target.attachToTarget", {"targetId": target, "flatten": True})["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """A call of the protocol in this page."""
        return self._call(method, parameters, self._session)

    def _call(self, method: str, parameters: dict[str, Any], session: str | None = None) -> dict[str, Any]:
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if session is not None:
            message["sessionId"] = session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        end = time.monotonic() + 300
        while time.monotonic() < end:
            for found in self._messages(end):
                if found.get("id") == self._number:
                    assert "error" not in found, found["error"]
                    answer: dict[str, Any] = found["result"]
                    return answer
        raise AssertionError(f"no answer to {method}")

    def _messages(self, end: float) -> Iterator[dict[str, Any]]:
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._read], [], [], max(end - time.monotonic(), 0))
            assert ready, "the browser is silent"
            data = os.read(self._read, 1 << 20)
            assert data, "the browser is gone"
            self._rest += data
        one, _, self._rest = self._rest.partition(b"\0")
        found = json.loads(one)
        said = found.get("params", {})
        if found.get("method") == "Runtime.exceptionThrown":
            self.console.append(json.dumps(said["exceptionDetails"])[:500])
        elif found.get("method") == "Log.entryAdded":
            self.console.append(f"{said['entry']['level']}: {said['entry']['text']}")
        elif found.get("method") == "Network.requestWillBeSent":
            self.requests.append(said["request"]["url"])
        yield found

    def open(self, url: str, width: int = 1280, *, height: int = 900, dark: bool = False) -> None:
        """A page, at a width, in light or dark."""
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.call("Emulation.setEmulatedMedia", features=scheme)
        self.resize(width, height)
        self.call("Page.navigate", url=url)

    def resize(self, width: int, height: int = 900) -> None:
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def run(self, script: str) -> Any:
        """The value of an expression."""
        found = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def until(self, script: str, timeout_s: float = 15.0) -> Any:
        """The value of an expression once it is true."""
        end = time.monotonic() + timeout_s
        while time.monotonic() < end:
            try:
                if found := self.run(script):
                    return found
            except AssertionError as error:
                if "gone" in str(error) or "silent" in str(error):
                    raise
            time.sleep(0.1)
        raise AssertionError(f"never true: {script}; the page said {self.console}")

    def picture(self, path: Path) -> None:
        """What it looks like, as PNG; all of the page."""
        found = self.call("Page.captureScreenshot", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(found["data"]))

    def too_wide(self) -> list[str]:
        """Elements that stick out of the window sideways."""
        found = self.run(
            "[...document.querySelectorAll('body *')].filter(e => !e.closest('.scroll, pre, .unseen, svg')"
            " && e.getBoundingClientRect().right > innerWidth + 1).map(e => e.tagName + ' ' + e.className).slice(0, 5)"
        )
        assert isinstance(found, list)
        return found

    def faint(self) -> list[str]:
        """Texts whose contrast against the page is below 4.5 : 1 (WCAG AA)."""
        found = self.run(
            """(() => {
  const parse = text => text.match(/[\\d.]+/g).map(Number);
  const linear = v => v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4;
  const light = ([r, g, b]) => [r, g, b].map(v => linear(v / 255))
    .reduce((sum, v, k) => sum + v * [.2126, .7152, .0722][k], 0);
  const behind = e => { for (; e; e = e.parentElement) { const c = parse(getComputedStyle(e).backgroundColor);
    if (c.length < 4 || c[3] > 0) return c; } return [255, 255, 255]; };
  const wrong = [];
  for (const e of document.querySelectorAll('body *')) {
    if (e.closest('svg') && e.tagName !== 'text') continue;
    if (![...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim()) || e.closest('script, style')) continue;
    const style = getComputedStyle(e), ink = light(parse(e.tagName === 'text' ? style.fill : style.color));
    const ground = light(behind(e)), ratio = (Math.max(ink, ground) + .05) / (Math.min(ink, ground) + .05);
    if (ratio < 4.5) wrong.push(e.tagName + ' ' + e.textContent.slice(0, 30) + ' ' + ratio.toFixed(1));
  }
  return wrong.slice(0, 5);
})()"""
        )
        assert isinstance(found, list)
        return found


def headless(profile: Path) -> list[str]:
    """How to start a browser that nothing outside this machine hears of, and that asks no other host."""
    program = next(p for p in map(shutil.which, ("chromium", "chromium-browser", "google-chrome")) if p)
    return [program, *_OPTIONS, f"--user-data-dir={profile}"]


@contextmanager
def chromium(profile: Path) -> Iterator[Browser]:
    """A browser that is driven by a pipe."""
    ours_read, theirs_write = os.pipe()
    theirs_read, ours_write = os.pipe()
    script = f'exec "$0" "$@" 3<&{theirs_read} 4>&{theirs_write}'
    command = ["bash", "-c", script, *headless(profile), "--remote-debugging-pipe"]
    quiet = subprocess.DEVNULL
    with subprocess.Popen(command, pass_fds=(theirs_read, theirs_write), stdout=quiet, stderr=quiet) as process:
        os.close(theirs_read)
        os.close(theirs_write)
        try:
            yield Browser(ours_read, ours_write)
        finally:
            process.terminate()
            process.wait(timeout=300)
            os.close(ours_read)
            os.close(ours_write)
