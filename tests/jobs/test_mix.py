"""A mix: queues side by side, each one job after another; who fails is told and the others go on."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from harness.base.errors import CallError, InputError, RunInvalid
from harness.jobs.engines.attempts import Verdict
from harness.jobs.engines.base import Done, Request
from harness.jobs.mix import make_data, mix_document, read_mix, run_mix
from harness.model.data import data_path

MIX = """
data: {text: {kind: text, size: 5KB}}
queues:
  - queue: root.a
    rounds: 2
    jobs: [{application: wordcount, input: [text]}, {application: sort, input: [text]}]
  - {queue: root.b, jobs: [{application: grep, input: [text]}]}
"""


class Clients:
    """Clients that compute nothing: what they were given, and how many ran at once."""

    def __init__(self, at_once: int) -> None:
        self.requests: list[Request] = []
        self.together = threading.Barrier(at_once)

    def run(self, request: Request) -> Done:
        self.requests.append(request)
        if request.program in ("wordcount", "grep") and len(self.requests) <= 2:
            self.together.wait(20)
        if request.program == "grep":
            raise RunInvalid("grep failed: no memory")
        return Done((), (), 1.5, Verdict(3, "1 line(s) are missing" if "003" in str(request.output) else None), 0)


def written(folder: Path, text: str) -> Path:
    path = folder / "mix.yaml"
    path.write_text(text)
    return path


def test_queues_run_side_by_side_and_their_jobs_in_turn(tmp_path: Path) -> None:
    spec = read_mix(written(tmp_path, MIX))
    make_data(spec, tmp_path / "data", lambda _: None)
    assert (tmp_path / "data" / "text" / "manifest.json").is_file()
    clients = Clients(2)
    jobs = run_mix(spec, tmp_path / "data", tmp_path / "out", lambda _: clients)
    of_a = [(job.application, job.why) for job in jobs if job.queue == "root.a"]
    assert of_a == [
        ("wordcount", None),
        ("sort", None),
        ("wordcount", None),
        ("sort", "the answer is wrong: 1 line(s) are missing"),
    ]
    assert len({request.output for request in clients.requests}) == 5
    queues = mix_document(jobs)["queues"]
    assert queues["root.a"] == {"jobs": 4, "failed": 1, "mean_completion_s": pytest.approx(1.5), "memory_mb_s": 0}
    assert queues["root.b"]["mean_completion_s"] is None
    assert [job.why for job in jobs if job.queue == "root.b"] == ["grep failed: no memory"]


def test_an_interruption_reaches_every_queue(tmp_path: Path) -> None:
    class Waits:
        def __init__(self, stop: threading.Event) -> None:
            self.stop = stop

        def run(self, request: Request) -> Done:
            assert self.stop.wait(30)
            raise RunInvalid("interrupted")

    made: list[Waits] = []

    def client(stop: threading.Event) -> Waits:
        made.append(Waits(stop))
        if len(made) == 2:
            raise_in.set()
        return made[-1]

    raise_in = threading.Event()
    before = threading.active_count()
    spec = read_mix(written(tmp_path, MIX))
    real_join = threading.Thread.join

    def join(self: threading.Thread, timeout: float | None = None) -> None:
        if timeout is not None and raise_in.wait(10):
            raise KeyboardInterrupt
        real_join(self, timeout)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(threading.Thread, "join", join)
        start = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            run_mix(spec, tmp_path, tmp_path / "out", client)
    assert len(made) == 2
    assert time.monotonic() - start < 20
    assert threading.active_count() == before


def test_the_mix_that_is_brought_along_can_be_read() -> None:
    spec = read_mix(data_path("workloads", "real", "small.yaml"))
    assert {queue.queue for queue in spec.queues} == {"root.facebook", "root.purdue"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("queues: [", "not valid YAML"),
        ("2030-99-99", "valid dictionary"),
        ("queues: []\ndata: {}\n", "queues"),
        (MIX.replace("rounds", "runds"), "runds"),
        (MIX.replace("application: grep, input: [text]", "application: join, input: [text, text]"), "join reads"),
        (MIX.replace("input: [text]", "input: [txt]"), "reads text, given are txt"),
    ],
)
def test_a_broken_mix_is_refused(text: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=said):
        read_mix(written(tmp_path, text))


def test_wrong_names_and_sizes_are_wrong_calls(tmp_path: Path) -> None:
    for old, new in (("grep", "nosuch"), ("5KB", "much")):
        with pytest.raises(CallError):
            read_mix(written(tmp_path, MIX.replace(old, new)))
