"""Processes: known by pid and start time, ended with all that carry the mark, whatever session they are in."""

from __future__ import annotations

import os
import signal
import sys
import time
import uuid
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from harness.base.errors import InputError
from harness.clusters import processes


def wait_until(true: Callable[[], object]) -> None:
    end = time.monotonic() + 300
    while not true():
        assert time.monotonic() < end
        time.sleep(0.02)


def launch(tmp_path: Path, script: str, mark: str) -> processes.Process:
    environment = {"PATH": os.environ["PATH"], processes.MARK: mark}
    return processes.start(["sh", "-c", script], environment=environment, folder=tmp_path, log=tmp_path / "log")


def test_stopping_ends_the_whole_family_and_nobody_else(tmp_path: Path) -> None:
    mark, other = uuid.uuid4().hex, uuid.uuid4().hex
    bystander = launch(tmp_path, "sleep 60", other)
    try:
        # One child in a session of its own that survives its parent, one that ignores SIGTERM.
        first = launch(tmp_path, "setsid sleep 61 & sleep 62", mark)
        second = launch(tmp_path, "trap '' TERM; echo ready; while :; do sleep 0.1; done", mark)
        wait_until(lambda: len(processes.marked(mark)) >= 4 and "ready" in (tmp_path / "log").read_text())
        assert first.alive
        assert first.memory_mb() is not None
        assert processes.stop([first, second], mark, grace_s=0.3) == []
        assert processes.marked(mark) == []
        assert not first.alive
        assert not second.alive
        assert second.memory_mb() is None
        assert bystander.alive
    finally:
        assert processes.stop([bystander], other) == []


def test_orphans_of_a_crash_are_found_by_their_mark(tmp_path: Path) -> None:
    mark = uuid.uuid4().hex
    parent = launch(tmp_path, "setsid sleep 63 & setsid sleep 64 & wait", mark)
    wait_until(lambda: len(processes.marked(mark)) >= 3)
    os.kill(parent.pid, signal.SIGKILL)
    wait_until(lambda: not parent.alive)
    assert len(processes.marked(mark)) == 2
    assert processes.stop([parent], mark) == []
    assert processes.marked(mark) == []


@pytest.mark.parametrize("change", [{"start_ticks": 1}, {"boot_id": "another"}, {"pid": 2**22 + 1}])
def test_a_pid_that_now_belongs_to_another_is_left_alone(tmp_path: Path, change: dict[str, object]) -> None:
    mark = uuid.uuid4().hex
    real = launch(tmp_path, "sleep 65", mark)
    try:
        reused = replace(real, **change)  # type: ignore[arg-type]
        assert not reused.alive
        reused.signal_group(signal.SIGKILL)
        time.sleep(0.1)
        assert real.alive
    finally:
        processes.stop([real], mark)


def test_a_command_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot start"):
        processes.start(["/no/such"], environment={}, folder=tmp_path, log=tmp_path / "log")


def test_a_name_with_brackets_and_blanks_does_not_confuse(tmp_path: Path) -> None:
    mark = uuid.uuid4().hex
    odd = tmp_path / "a) Z 1 (b"
    odd.symlink_to(sys.executable)
    script = f"exec '{odd}' -c 'import time; time.sleep(66)'"
    process = launch(tmp_path, script, mark)
    try:
        time.sleep(0.3)
        assert process.alive
    finally:
        assert processes.stop([process], mark) == []


def test_what_the_memory_can_still_give(tmp_path: Path) -> None:
    (tmp_path / "meminfo").write_text("MemTotal:  100 kB\nMemAvailable:    4096 kB\n")
    assert processes.free_mb(tmp_path / "meminfo") == 4
    (tmp_path / "meminfo").write_text("MemTotal: 1 kB\n")
    assert processes.free_mb(tmp_path / "meminfo") is None
    assert processes.free_mb(tmp_path / "none") is None
