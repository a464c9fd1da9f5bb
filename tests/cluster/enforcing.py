"""What the fault tests of `yarnfair enforce` share: the service as a process, a load, a meddling proxy, the truth."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import yaml

from harness.base.errors import YarnfairError
from harness.clusters.local import LocalCluster
from harness.control.values import entitlement
from harness.ledger.store import LedgerStore
from harness.model.resources import Resource
from harness.yarn.answers import AppStatus
from harness.yarn.fair.parse import parse_allocations
from harness.yarn.files import LocalStore
from harness.yarn.rest import Submission
from harness.yarn.rmclient import RmClient

ALLOCATIONS = """<?xml version="1.0"?>
<allocations>
  <queueMaxAMShareDefault>-1.0</queueMaxAMShareDefault>
  <!-- the administrator's -->
  <queue name="a"><weight>2.0</weight><maxRunningApps>50</maxRunningApps></queue>
  <queue name="b"/>
  <queue name="c"/>
</allocations>
"""
QUEUES = ("root.a", "root.b", "root.c")


def until(true: Callable[[], Any], what: str, timeout_s: float = 60.0, every_s: float = 0.2) -> Any:
    """Waits until something is true and gives it back."""
    end = time.monotonic() + timeout_s
    while not (found := true()):
        assert time.monotonic() < end, f"not within {timeout_s:g} s: {what}"
        time.sleep(every_s)
    return found


class Service:
    """`yarnfair enforce` as a process that is started, killed and stopped; its log as events."""

    def __init__(self, folder: Path, rest: str | None, file: Path | None, **config: Any) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.rest, self.ledger = folder, rest, folder / "ledger.db"
        self.log = folder / "log.jsonl"
        self.config = folder / "enforce.yaml"
        said = {
            "policy": "ltrf",
            "settings": {"horizon_s": 20},
            **({} if file is None else {"allocation_file": str(file)}),
            "ledger": str(self.ledger),
            "period_s": 1.0,
            "lease_s": 10.0,
            "mode": "full",
            # Debts that fade may move a weight between two looks of the same state.
            "half_life": None,
            "http": {"read_timeout_s": 2.0, "connect_timeout_s": 2.0},
        }
        self.config.write_text(yaml.safe_dump({**said, **config}))
        self.process: subprocess.Popen[bytes] | None = None
        self._begun = 0

    def start(self) -> None:
        self._begun = len(self.events("begin")) if self.log.exists() else 0
        with self.log.open("ab") as log:
            self.process = subprocess.Popen([*self._command(), "--log-format", "json"], stderr=log, stdout=log)

    def _command(self) -> list[str]:
        rm = [] if self.rest is None else ["--rm", self.rest]
        return [sys.executable, "-m", "harness", "enforce", *rm, "--config", str(self.config)]

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.wait(timeout=20)

    def end(self) -> None:
        """Whatever happened: nothing of it stays."""
        if self.process is not None and self.process.poll() is None:
            self.kill()

    def stop(self) -> None:
        """Ends it as an administrator does, once it has begun."""
        assert self.process is not None
        begun = self._begun
        until(lambda: len(self.events("begin")) > begun, "the service begins")
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(timeout=70) == 0, self.log.read_text()[-2000:]

    def once(self) -> dict[str, Any]:
        """One tick, its result."""
        done = subprocess.run([*self._command(), "--once", "--json"], capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        found: dict[str, Any] = json.loads(done.stdout)
        return found

    def events(self, kind: str | None = None) -> list[dict[str, Any]]:
        """What was logged so far. A line that a killed service left half is passed over."""
        found = []
        for line in self.log.read_text(errors="replace").splitlines():
            with contextlib.suppress(ValueError):
                found.append(json.loads(line))
        return [event for event in found if kind is None or event["event"] == kind]

    def consumed(self) -> dict[str, tuple[float, float]]:
        """The ledger's sums, without what is assumed yet."""
        with LedgerStore(self.ledger) as store:
            return {path: (q.memory_mb_s, q.vcore_s) for path, q in store.accounts().queues.items()}


class Load:
    """Applications whose ApplicationMasters sleep: containers that are real, for times of our choice."""

    def __init__(self, client: RmClient, seed: int = 1) -> None:
        self.client, self._rng = client, random.Random(seed)
        self.ids: list[str] = []

    def submit(self, count: int, low_s: float, high_s: float) -> None:
        for _ in range(count):
            length = self._rng.uniform(low_s, high_s)
            size = Resource(self._rng.choice([256, 512]), 1)
            queue = self._rng.choices(QUEUES, [4, 2, 1])[0]
            self.ids.append(self.client.rest.submit(Submission("sleep", queue, f"sleep {length:.1f}", size)))

    def apps(self) -> list[AppStatus]:
        mine = set(self.ids)
        return [app for app in self.client.rest.apps() if app.id in mine]

    def launched(self, timeout_s: float = 90.0) -> None:
        """Until every master's process is begun.

        An RM that dies between giving a container and launching it leaves an application whose master nobody begins:
        its successor waits ten minutes for it.
        """

        def launched() -> bool:
            # One that is given and not launched waits "for AM container to be launched".
            return sum("AM container is launched" in app.diagnostics for app in self.apps()) == len(self.ids)

        until(launched, "masters are launched", timeout_s)

    def wait(self, timeout_s: float = 120.0) -> None:
        """Until all have ended."""
        left: list[tuple[str, str, str]] = []

        def ended() -> bool:
            try:
                left[:] = [(app.id, app.state, app.diagnostics) for app in self.apps() if not app.final]
            except YarnfairError:
                return False
            return not left

        try:
            until(ended, "all applications ended", timeout_s)
        except AssertionError as error:
            raise AssertionError(f"{error}; left: {left}") from None
        # The container of an application that has ended is accounted for a moment later.
        time.sleep(1.5)

    def truth(self) -> dict[str, tuple[float, float]]:
        """What the RM itself says they have used."""
        sums: dict[str, tuple[float, float]] = {}
        for app in self.apps():
            memory, vcores = sums.get(app.queue, (0.0, 0.0))
            sums[app.queue] = (memory + app.memory_seconds, vcores + app.vcore_seconds)
        return sums


class FileGuard:
    """Reads the allocation file again and again: at no moment may it be one that the RM would refuse."""

    def __init__(self, file: Path) -> None:
        self._place, self._stop = LocalStore(file), threading.Event()
        self.broken: list[str] = []
        self.seen: set[bytes] = set()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> FileGuard:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(timeout=10)

    def _watch(self) -> None:
        while not self._stop.wait(0.005):
            try:
                data = self._place.read()
                if data not in self.seen:
                    file = parse_allocations(data)
                    weights = [file.weight(queue) for queue in QUEUES]
                    assert [entitlement(w) for w in weights] == weights, weights
                    self.seen.add(data)
            except Exception as error:
                self.broken.append(f"{type(error).__name__}: {error}")


class Meddler:
    """A proxy before the RM's REST port that cuts answers off, garbles them, answers nonsense or says nothing."""

    MODES = ("cut", "garble", "nonsense", "error", "silent", "refuse")

    def __init__(self, port: int, seed: int = 1) -> None:
        self.mode = "pass"
        self.meddled = 0
        self._port, self._rng = port, random.Random(seed)
        self._server = socket.create_server(("127.0.0.1", 0))
        self.address = f"http://127.0.0.1:{self._server.getsockname()[1]}"
        threading.Thread(target=self._serve, daemon=True).start()

    def close(self) -> None:
        self._server.close()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._server.accept()
                threading.Thread(target=self._one, args=(connection,), daemon=True).start()

    def _one(self, connection: socket.socket) -> None:
        with contextlib.suppress(OSError), connection:
            request = b""
            while b"\r\n\r\n" not in request:
                if not (part := connection.recv(65536)):
                    return
                request += part
            mode = self.mode
            if mode != "pass":
                self.meddled += 1
            if mode == "refuse":
                return
            if mode == "silent":
                time.sleep(4)
                return
            if mode == "error":
                connection.sendall(b"HTTP/1.1 500 Server Error\r\nContent-Length: 4\r\nConnection: close\r\n\r\noops")
                return
            if mode == "nonsense":
                body = self._rng.choice(
                    [b"{}", b"[]", b"null", b'{"apps": 7}', b"<html/>", b'{"scheduler": {}}', b"9" * 999]
                )
                head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n"
                connection.sendall(head + b"Content-Length: %d\r\n\r\n" % len(body) + body)
                return
            answer = self._ask(request)
            if mode == "cut":
                answer = answer[: self._rng.randrange(len(answer))]
            elif mode == "garble":
                start = answer.index(b"\r\n\r\n") + 4
                changed = bytearray(answer)
                for _ in range(20):
                    changed[self._rng.randrange(start, len(changed))] = self._rng.randrange(256)
                answer = bytes(changed)
            connection.sendall(answer)

    def _ask(self, request: bytes) -> bytes:
        head, _, body = request.partition(b"\r\n\r\n")
        lines = [line for line in head.split(b"\r\n") if not line.lower().startswith(b"connection:")]
        with socket.create_connection(("127.0.0.1", self._port), timeout=20) as rm:
            rm.sendall(b"\r\n".join([*lines, b"Connection: close"]) + b"\r\n\r\n" + body)
            answer = b""
            while part := rm.recv(65536):
                answer += part
        return answer


@contextlib.contextmanager
def tmpfs(folder: Path, kib: int) -> Iterator[bool]:
    """A small file system of memory over a folder; False where this process may not mount one."""
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={kib}k", "tmpfs", str(folder)], capture_output=True)
    try:
        yield done.returncode == 0
    finally:
        if done.returncode == 0:
            subprocess.run(["umount", "-l", str(folder)], check=True)


def stop_rm(cluster: LocalCluster, *, go_on: bool) -> None:
    """Freezes the RM, or lets it go on: it is there and answers nobody."""
    state = cluster.folder.load()
    assert state is not None
    os.killpg(state.processes["rm"].pid, signal.SIGCONT if go_on else signal.SIGSTOP)
