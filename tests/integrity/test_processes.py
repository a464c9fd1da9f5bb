"""Nothing that a command started outlives it: killed at a random moment, in whatever way, it leaves no process.

Every process that a command starts has the command's mark in its environment, so those that are left are found among
all processes of the machine. CI kills each command once by each signal; `make test-long` at twenty moments.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import random
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from uuid import uuid4

import pytest

MARK = "YARNFAIR_TEST_MARK"
#: So long may what a command has started live after the signal, apart from the time for which it gets no processor.
GRACE_S = 5.0
STEP_S = 0.05
#: How a command is ended; the last one closes its terminal.
ENDINGS = ("SIGKILL", "SIGTERM", "SIGHUP", "SIGINT", "terminal")
#: Commands whose workers are waited for, in CI: the moment lies within so many seconds of the first worker's start.
WITH_WORKERS = ("run", "replay", "assess", "campaign", "data")
AFTER_WORKERS_S = 3.0
#: A command that has no workers after so long is ended all the same.
MOST_S = 60.0
#: Each command, and within how many seconds of its start it is ended: start-up, imports, the work itself.
COMMANDS = {
    "run": (10.0, "run contended --no-report --seed 1-20 --jobs 2 --out OUT"),
    "replay": (15.0, "replay trace.jsonl --no-report --jobs 2 --out OUT"),
    "assess": (15.0, "assess trace.jsonl --jobs 2 -o OUT"),
    "whatif": (8.0, "whatif contended"),
    "campaign": (10.0, "campaign run campaign.yaml --jobs 2 --out OUT"),
    "bench": (12.0, "bench --engine"),
    "data": (8.0, "data generate randomtext --size 2GB --jobs 2 --out OUT"),
}


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trace that is simulated for a while in each phase, so that worker processes pay, and a campaign."""
    folder = tmp_path_factory.mktemp("inputs")
    header = {
        "trace": "yarnfair",
        "nodes": [{"count": 40, "memory_mb": 16384, "vcores": 16}],
        "queues": {f"root.q{k}": {} for k in range(8)},
    }
    lines = [json.dumps(header)]
    for number in range(200):
        stage = {"name": "map", "memory_mb": 1024, "vcores": 1, "tasks_s": [20.0 + number % 7] * 200}
        job = {"job": f"j{number}", "queue": f"root.q{number % 8}", "kind": "mapreduce", "submit_s": 10.0 * number}
        lines.append(json.dumps({**job, "am": {"memory_mb": 1024, "vcores": 1}, "stages": [stage]}))
    (folder / "trace.jsonl").write_text("\n".join(lines) + "\n")
    campaign = {"campaign": "killed", "experiments": ["contended"], "seeds": {"first": 1, "count": 20}}
    (folder / "campaign.yaml").write_text(json.dumps(campaign))
    return folder


def marked(mark: str) -> dict[int, str]:
    """Living processes with the mark: their command lines by their ids."""
    found = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdecimal():
            continue
        try:
            if f"{MARK}={mark}".encode() not in (entry / "environ").read_bytes().split(b"\0"):
                continue
            state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
            words = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if state not in "ZX":
            found[int(entry.name)] = words[:300]
    return found


def doing(process: int) -> str:
    """What a process that should have ended is doing: its state, and where in the kernel it waits."""
    with contextlib.suppress(OSError):
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
        return f"{state} {Path(f'/proc/{process}/wchan').read_text()}"
    return "gone"


def left_behind(
    command: str, ending: str, moment_s: float, inputs: Path, folder: Path, *, wait_for_workers: bool = False
) -> dict[int, str]:
    """Start a command, end it `moment_s` after its start, or its workers'; what is left of it GRACE_S later."""
    mark = uuid4().hex
    folder.mkdir(parents=True)
    words = [word.replace("OUT", str(folder / "out")) for word in COMMANDS[command][1].split()]
    program = [sys.executable, "-m", "harness", *words]
    terminal, inner = os.openpty() if ending == "terminal" else (None, None)
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            program,
            cwd=inputs,
            env={**os.environ, MARK: mark},
            stdin=subprocess.DEVNULL if inner is None else inner,
            stdout=log if inner is None else inner,
            stderr=log if inner is None else inner,
            start_new_session=True,
            preexec_fn=None if inner is None else _take_terminal,
        )
    try:
        if inner is not None:
            os.close(inner)
        deadline = time.monotonic() + MOST_S
        while wait_for_workers and process.poll() is None and time.monotonic() < deadline:
            _live(terminal, 0.1)
            # Their server, and two of them at least.
            if sum("multiprocessing.forkserver" in words for words in marked(mark).values()) > 2:
                break
        _live(terminal, moment_s)
        if terminal is not None:
            os.close(terminal)
        else:
            process.send_signal(getattr(signal, ending))
        signalled_s, waited = time.monotonic(), Waited()
        while left := marked(mark):
            waited.look(left)
            # What a command does at its end takes it longer where others have the processor.
            if time.monotonic() - signalled_s - waited.seconds > GRACE_S:
                break
            time.sleep(STEP_S)
            process.poll()
        said = (folder / "log").read_text(errors="replace")[-200:]
        return {one: f"{doing(one)}: {words}; it said {said!r}" for one, words in left.items()}
    finally:
        for one in marked(mark):
            with contextlib.suppress(ProcessLookupError):
                os.kill(one, signal.SIGKILL)
        process.wait()


class Waited:
    """How long processes could have run and had no processor, from the first look on, as the kernel counted it.

    Of several that waited at the same time only the one that waited longest counts. The load of the machine would not
    tell: a container may get a small part of it (``--cpu-shares``), however few processes run.
    """

    def __init__(self) -> None:
        self.seconds = 0.0
        self._known: dict[Path, int] | None = None

    def look(self, processes: Iterable[int]) -> None:
        now = {}
        for path in (path for one in processes for path in Path(f"/proc/{one}/task").glob("*/schedstat")):
            # It may have ended; and the kernel of another machine may count nothing.
            with contextlib.suppress(OSError):
                now[path] = int(path.read_text().split()[1])
        if self._known is not None:
            # A thread that is new has waited since it began, which was after the last look.
            self.seconds += max((ns - self._known.get(path, 0) for path, ns in now.items()), default=0) / 1e9
        self._known = now


def _take_terminal() -> None:
    """In a session of its own: standard input becomes its terminal, whose end is the session's SIGHUP."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def _live(terminal: int | None, moment_s: float) -> None:
    """Let the command live until the moment; what it writes to a terminal is read, or it would wait."""
    end = time.monotonic() + moment_s
    if terminal is None:
        time.sleep(moment_s)
        return
    os.set_blocking(terminal, False)
    while time.monotonic() < end:
        try:
            os.read(terminal, 65536)
        except BlockingIOError:
            time.sleep(0.01)
        except OSError:
            time.sleep(0.05)


def _kill_at_random_moments(ending: str, times: int, inputs: Path, folder: Path, commands: list[str]) -> None:
    seed = random.SystemRandom().randrange(10**6)
    draw = random.Random(seed)
    cases = [(name, draw.uniform(0.0, COMMANDS[name][0])) for name in commands for _ in range(times)]

    def one(number: int) -> str:
        name, moment_s = cases[number]
        left = left_behind(name, ending, moment_s, inputs, folder / str(number))
        return f"{name} by {ending} after {moment_s:.2f} s (seed {seed}): {left}" if left else ""

    with ThreadPoolExecutor(3) as several:
        assert [said for said in several.map(one, range(len(cases))) if said] == []


@pytest.mark.skipif(sys.platform != "linux", reason="prctl and /proc are Linux'")
@pytest.mark.parametrize("ending", ENDINGS)
def test_a_command_that_is_ended_leaves_no_process(ending: str, inputs: Path, tmp_path: Path) -> None:
    _kill_at_random_moments(ending, 1, inputs, tmp_path, [*COMMANDS])


@pytest.mark.skipif(sys.platform != "linux", reason="prctl and /proc are Linux'")
@pytest.mark.parametrize("command", WITH_WORKERS)
def test_a_command_that_is_killed_while_its_workers_work_leaves_no_process(
    command: str, inputs: Path, tmp_path: Path
) -> None:
    moment_s = random.SystemRandom().uniform(0.0, AFTER_WORKERS_S)
    left = left_behind(command, "SIGKILL", moment_s, inputs, tmp_path / "killed", wait_for_workers=True)
    assert left == {}, f"{moment_s:.2f} s after its workers began"


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="prctl and /proc are Linux'")
@pytest.mark.parametrize("command", [*COMMANDS])
@pytest.mark.parametrize("ending", ENDINGS)
def test_a_command_that_is_ended_at_twenty_moments_leaves_no_process(
    command: str, ending: str, inputs: Path, tmp_path: Path
) -> None:
    _kill_at_random_moments(ending, 20, inputs, tmp_path, [command])


def test_processes_that_are_left_are_found(tmp_path: Path) -> None:
    mark = uuid4().hex
    with subprocess.Popen(["sleep", "60"], env={**os.environ, MARK: mark}) as sleeper:
        # The kernel shows a new program's environment a moment after it has begun.
        deadline = time.monotonic() + MOST_S
        while not marked(mark) and time.monotonic() < deadline:
            time.sleep(STEP_S)
        assert list(marked(mark)) == [sleeper.pid]
        sleeper.kill()
        sleeper.wait()
        assert marked(mark) == {}


@pytest.mark.skipif(not Path("/proc/self/schedstat").exists(), reason="the kernel does not count how long tasks wait")
def test_the_time_without_a_processor_is_told_from_the_time_that_a_process_takes() -> None:
    """Two busy processes on one core get half of it each; one that sleeps waits for no processor."""
    core = min(os.sched_getaffinity(0))
    busy = [sys.executable, "-c", f"import os; os.sched_setaffinity(0, {{{core}}})\nwhile True: pass"]
    sleep = [sys.executable, "-c", "import time; print(flush=True); time.sleep(600)"]
    with (
        subprocess.Popen(sleep, stdout=subprocess.PIPE) as sleeper,
        subprocess.Popen(busy) as one,
        subprocess.Popen(busy) as other,
    ):
        try:
            assert sleeper.stdout is not None
            sleeper.stdout.readline()
            time.sleep(1.0)
            running, sleeping = Waited(), Waited()
            running.look([one.pid, other.pid])
            sleeping.look([sleeper.pid])
            began_s = time.monotonic()
            time.sleep(2.0)
            running.look([one.pid, other.pid])
            sleeping.look([sleeper.pid])
            took_s = time.monotonic() - began_s
        finally:
            for process in (one, other, sleeper):
                process.kill()
    assert 0.4 * took_s < running.seconds < took_s + 0.5
    assert sleeping.seconds < 0.1
