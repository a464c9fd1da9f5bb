"""Programs by themselves: what stays of a run that fails, and what of one that ends."""

from __future__ import annotations

import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harness.base.errors import InputError, RunTimedOut
from harness.experiments.real.single import experiment_of
from harness.jobs.data.generate import FolderTarget, generate
from harness.jobs.engines.base import Request
from harness.jobs.mapreduce import engine
from harness.model.resources import Resource
from harness.yarn.errors import Refused, Unreachable
from harness.yarn.rest import Submission
from tests.experiments.real.stub_rm import StubRm, runner_on
from tests.jobs.mapreduce.test_client import history_lines


class Rest(StubRm):
    """Its application has a history, and has failed; with an ``error`` it goes on, and every look raises that."""

    def __init__(self, folder: Path, error: BaseException | None) -> None:
        super().__init__(Resource(8192, 4))
        self.folder, self.error = folder, error

    def submit(self, submission: Submission, identity: str) -> str:
        (place,) = self.folder.glob(".job-*")
        (history,) = place.glob("*/history")
        (history / "job_1_0001.jhist").write_text("\n".join(history_lines()))
        return super().submit(submission, identity)

    def scheduler(self) -> Any:
        if self.submitted and self.error is not None:
            raise self.error
        return super().scheduler()

    def apps(self, **_: Any) -> Any:
        return [] if self.error is None else super().apps()

    def app(self, identity: str) -> Any:
        now_ms = time.time_ns() // 1_000_000
        return SimpleNamespace(
            id=identity,
            state="FAILED",
            final=True,
            final_status="FAILED",
            diagnostics="no such thing",
            started_ms=now_ms,
            launched_ms=0,
            finished_ms=now_ms,
            memory_seconds=0,
            vcore_seconds=0,
        )


@pytest.mark.parametrize("error", [None, Unreachable("no answer"), KeyboardInterrupt()])
def test_what_was_measured_of_a_run_that_fails_is_kept_and_nothing_else(
    error: BaseException | None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    jar = tmp_path / "streaming.jar"
    jar.write_bytes(b"PK")
    monkeypatch.setattr(engine, "streaming_jar", lambda _: jar)
    rest = Rest(tmp_path, error)
    for kind in ("rankings", "uservisits"):
        generate(kind, 3000, 1, FolderTarget(tmp_path / kind))
    # A folder of that name is nobody's but its owner's.
    (tmp_path / "out.joined").mkdir()
    (tmp_path / "out.joined" / "mine").write_text("kept")
    there = sorted(path.name for path in tmp_path.iterdir())
    runs = runner_on(rest, tmp_path, monkeypatch)
    before = time.time_ns() // 1_000_000
    given = Request("join", (tmp_path / "rankings", tmp_path / "uservisits"), tmp_path / "out", timeout_s=2.0)
    if error is None:
        (done,) = runs.run(given)
        assert (done.why or "").startswith("join failed; application_1_0001 FAILED: no such thing; attempt_")
    else:
        # What asking the ResourceManager raises is no end of a run: its time is.
        with pytest.raises(RunTimedOut if isinstance(error, Unreachable) else type(error)):
            runs.run(given)
    assert [one.outcome for one in runs.attempts] == ["finished", "failed"]
    assert runs.zero_ms >= before
    assert rest.killed == ([] if error is None else rest.submitted)
    assert sorted(path.name for path in tmp_path.iterdir()) == there
    assert (tmp_path / "out.joined" / "mine").read_text() == "kept"
    (tmp_path / "out").mkdir()
    with pytest.raises(InputError, match=r"out: is there already"):
        runs.run(given)


def test_a_program_is_an_experiment_of_one_queue(tmp_path: Path) -> None:
    generate("text", 5000, 3, FolderTarget(tmp_path / "text"))
    asked = Request("grep", (tmp_path / "text",), tmp_path / "out", "root.a.b", maps=3, check=False, timeout_s=7.0)
    experiment, data = experiment_of([asked])
    assert experiment.leaves == ("root.a.b",)
    assert experiment.spec.limits.time_limit_s == 7.0
    ((found, place),) = data.items()
    assert (found.kind, found.size, found.seed, place) == ("text", "5000", 3, tmp_path / "text")
    workload: Any = experiment.loads[0].workload.spec
    assert (workload.answers, [program.maps for program in workload.programs]) == ("leave", [3])


def test_a_cluster_with_kerberos_is_refused_before_anything_is_submitted(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    class Secure(StubRm):
        def info(self) -> Any:
            raise Refused("HTTP 401 Authentication required", where="http://127.0.0.1:1", status=401)

    generate("text", 3000, 1, FolderTarget(tmp_path / "text"))
    rest = Secure(Resource(8192, 4))
    given = Request("wordcount", (tmp_path / "text",), tmp_path / "out")
    with pytest.raises(InputError, match="delegation tokens") as caught:
        runner_on(rest, tmp_path, monkeypatch).run(given)
    assert "the engine's own client" in caught.value.line()
    assert rest.submitted == []
