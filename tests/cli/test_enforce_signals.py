"""What a running `yarnfair enforce` does at signals: SIGHUP reloads its configuration, all that end it release."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from email.utils import formatdate
from pathlib import Path
from typing import Any

import pytest

from tests.cli.test_enforce_release import FILE, Site
from tests.yarn.fake_server import FakeServer, http

RECORDED = Path(__file__).parents[1] / "yarn" / "recorded"
ENDING = ["SIGTERM", "SIGINT", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGALRM", "SIGPROF", "SIGPWR", "SIGRTMIN"]


@contextmanager
def service(config: Path) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "harness", "enforce", "--config", str(config), "--log-format", "json"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def until(process: subprocess.Popen[str], event: str) -> dict[str, Any]:
    """The next line of this kind."""
    assert process.stderr is not None
    told = []
    while line := process.stderr.readline():
        told.append(json.loads(line))
        if told[-1]["event"] == event:
            return dict(told[-1])
    raise AssertionError(told)


@pytest.mark.parametrize("name", ENDING)
def test_a_signal_that_ends_it_gives_the_file_back(tmp_path: Path, name: str) -> None:
    """An earlier run was killed and left its weights, no RM answers: it has not even begun."""
    site = Site(tmp_path)
    with service(site.config) as process:
        until(process, "observation")
        process.send_signal(getattr(signal, name))
        until(process, "release")
        assert process.wait(timeout=300) == (130 if name == "SIGINT" else 0)
    assert site.file.read_bytes() == FILE


#: Says that the configuration is about to be read, and waits until it may be.
SLOW = """
import pathlib, sys, time
here = pathlib.Path(__file__).parent
def hook(event, arguments):
    if event == "open" and str(arguments[0]) == {config!r} and not (here / "go").exists():
        (here / "begun").touch()
        while not (here / "go").exists():
            time.sleep(0.01)
sys.addaudithook(hook)
"""


def test_a_stop_while_it_starts_gives_the_file_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An earlier run was killed and left its weights; the next one gets SIGTERM before it reads its configuration."""
    site = Site(tmp_path)
    slow = tmp_path / "slow"
    slow.mkdir()
    (slow / "sitecustomize.py").write_text(SLOW.format(config=str(site.config)))
    monkeypatch.setenv("PYTHONPATH", str(slow))
    with service(site.config) as process:
        while not (slow / "begun").exists():
            assert process.poll() is None
            time.sleep(0.01)
        process.send_signal(signal.SIGTERM)
        time.sleep(0.2)
        (slow / "go").touch()
        until(process, "release")
        assert process.wait(timeout=300) == 0
    assert site.file.read_bytes() == FILE


def an_rm(ahead_s: float = 0.0) -> FakeServer:
    """An RM that is there, with queues and without applications; ``ahead_s``: its clock."""

    def reply(connection: socket.socket, request: bytes) -> None:
        page = request.split(b" ", 2)[1].partition(b"?")[0].rpartition(b"/")[2].decode()
        body: Any = {"apps": None} if page == "apps" else {"nodes": None} if page == "nodes" else None
        if page in ("info", "scheduler"):
            body = json.loads((RECORDED / f"{page}.json").read_text())
        now = formatdate(time.time() + ahead_s, usegmt=True)
        connection.sendall(http(404) if body is None else http(200, body, Date=now))

    return FakeServer(reply)


def test_sighup_reloads_the_configuration_and_a_wrong_one_changes_nothing(tmp_path: Path) -> None:
    file, config = tmp_path / "f.xml", tmp_path / "enforce.yaml"
    file.write_text('<allocations><queue name="a"/><queue name="b"><queue name="c"/></queue></allocations>')
    with an_rm() as server:
        ports = {"admin": "127.0.0.1:9", "client": "127.0.0.1:9"}
        known: dict[str, Any] = {
            "policy": "ltrf",
            "mode": "shadow",
            "allocation_file": str(file),
            "ledger": str(tmp_path / "ledger.db"),
            "rms": [{"rest": server.url, **ports}],
            "period_s": 0.2,
            "refresh": "poll",
            "read_back": False,
        }
        config.write_text(json.dumps(known))
        with service(config) as process:
            until(process, "begin")
            for wrong, why in (
                ({**known, "policy": "nosuch"}, "nosuch"),
                ({**known, "queues": {"aa": 2}}, "no queue root.aa (near: root.a"),
                ({**known, "ledger": str(tmp_path / "other.db")}, "ledger cannot change while it runs"),
                ({**known, "perod_s": 3}, "perod_s"),
            ):
                config.write_text(json.dumps(wrong))
                process.send_signal(signal.SIGHUP)
                alarm = until(process, "config")
                assert alarm["level"] == "warning"
                assert "the configuration of before stays in force" in alarm["text"]
                assert why in alarm["text"]
            config.write_text(json.dumps({**known, "policy": "fair", "period_s": 0.3}))
            process.send_signal(signal.SIGHUP)
            said = until(process, "note")
            assert "configuration reloaded: policy fair, mode shadow, every 0.3 s" in said["text"]
            # Only now is the file right again.
            assert until(process, "config")["text"] == "mended"
            process.send_signal(signal.SIGUSR1)
            until(process, "end")
            assert process.wait(timeout=300) == 0


def test_sighup_before_an_rm_answers_reloads_it_too(tmp_path: Path) -> None:
    site = Site(tmp_path)
    with service(site.config) as process:
        until(process, "observation")
        before = site.config.read_text()
        site.config.write_text(before.replace("policy: ltrf", "policy: nosuch"))
        process.send_signal(signal.SIGHUP)
        assert "nosuch" in until(process, "config")["text"]
        site.config.write_text(before.replace("policy: ltrf", "policy: fair"))
        process.send_signal(signal.SIGHUP)
        assert until(process, "config")["text"] == "configuration reloaded"
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=300) == 0
    assert site.file.read_bytes() == FILE
