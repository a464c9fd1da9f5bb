"""Workers are copies of a server; they end with the process that asked for them, and count as its own."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

ASKED = """
import os, signal, sys, time
from harness.base.workers import begin_server, end_in_order_with_parent, workers_context

def work(number, seconds):
    end_in_order_with_parent(number)
    print(os.getpid(), flush=True)
    end = time.process_time() + seconds
    while time.process_time() < end:
        sum(range(10_000))

if __name__ == "__main__":
    begin_server()
    process = workers_context().Process(target=work, args=(signal.SIGKILL, float(sys.argv[1])), daemon=True)
    process.start()
    if sys.argv[2:]:
        process.join()
    else:
        time.sleep(60)
"""


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_a_worker_ends_at_once_when_the_one_who_asked_is_killed(tmp_path: Path) -> None:
    (tmp_path / "asked.py").write_text(ASKED)
    with subprocess.Popen(
        [sys.executable, str(tmp_path / "asked.py"), "60"], stdout=subprocess.PIPE, text=True
    ) as asked:
        assert asked.stdout is not None
        worker = int(asked.stdout.readline())
        time.sleep(0.2)
        assert alive(worker)
        os.kill(asked.pid, signal.SIGKILL)
        deadline = time.monotonic() + 30
        while alive(worker) and time.monotonic() < deadline:
            time.sleep(0.01)
        assert not alive(worker), "it would have worked for a minute"


def test_what_workers_used_counts_as_the_commands(tmp_path: Path) -> None:
    (tmp_path / "asked.py").write_text(ASKED)
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    idle = [sys.executable, str(tmp_path / "asked.py"), "0", "to the end"]
    subprocess.run(idle, check=True, stdout=subprocess.DEVNULL)
    between = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    subprocess.run([*idle[:2], "3", *idle[3:]], check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    assert (after - between) - (between - before) > 1.5
