"""One of the papers' applications on a real cluster: it computes, its answer is checked, a failing one says why; what a
master decides about early reduces; and what the cluster's JobHistoryServer (`up --history`) tells, for `record`."""

from __future__ import annotations

import json
import re
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from harness.base.errors import YarnfairError
from harness.cli import main
from harness.clusters.state import StateFolder
from harness.jobs.data.generate import FolderTarget, generate
from harness.jobs.engines.base import Request
from harness.traces.history import History
from harness.traces.recorded import read_trace
from harness.yarn.rest import RestClient
from studies import mapreduce_real as study
from studies.mapreduce_master import read_run, real_course, recomputed
from tests.cluster.local_clusters import one_queue, runner

pytestmark = [pytest.mark.java, pytest.mark.live, pytest.mark.xdist_group("live-jobs")]


def told_by(url: str, application: str, log: Path) -> dict[str, list[float]]:
    """Stage -> its tasks' times, by the JobHistoryServer, which takes a while to answer."""
    until, history = time.monotonic() + 240, History(url)
    while True:
        try:
            found = history.mapreduce(application)
        except YarnfairError:
            found = None
        if found is not None:
            assert history.mapreduce("application_1_0001") is None
            return {stage["name"]: stage["tasks_s"] for stage in found["stages"]}
        assert time.monotonic() < until, log.read_text()[-2000:]
        time.sleep(0.5)


def early_reduces(rest: RestClient, folder: Path) -> None:
    """A job asks for reduces before its last map has a container, and decides each time as the simulator's rules."""
    sleeping = study.Job("root.a", maps_s=(1.0,) * 7, reduces_s=(0.5, 0.5))
    app = study.submit(rest, folder, sleeping, "early")
    until = time.monotonic() + 240
    while not (status := rest.app(app)).final:
        assert time.monotonic() < until, status
        time.sleep(0.5)
    assert status.final_status == "SUCCEEDED", status.diagnostics
    study.keep_logs(app, folder / "early", folder / "state", folder / "kept" / "job0")
    told = {"maps": 7, "reduces": 2, "slow_start": 0.05, "submitted_ms": status.started_ms}
    told |= {"finished_ms": status.finished_ms}
    (folder / "kept" / "run.json").write_text(json.dumps({"jobs": [told]}))
    _, (ran,) = read_run(folder / "kept")
    again = recomputed(ran)
    assert again.decisions == again.equal > 5
    assert again.changes >= 1
    course = real_course(ran)
    assert 1 <= course.maps_done < 7
    assert course.first_reduce_s < course.completion_s


def test_an_application_computes_is_told_of_and_a_failing_one_says_why(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    generate("text", 30_000, 2, FolderTarget(tmp_path / "text"))
    trace = tmp_path / "trace.jsonl"
    with one_queue(tmp_path, memory_mb=2048, history=True) as rest:
        state = StateFolder(tmp_path / "state").load()
        assert state is not None
        url = state.history
        assert url is not None
        asked = Request("invertedindex", (tmp_path / "text",), tmp_path / "out", "root.a", maps=1, reduces=1)
        (done,) = runner(rest, tmp_path).run(asked)
        assert done.why is None
        assert done.verdict is not None
        assert done.verdict.wrong is None
        assert done.verdict.records > 1000
        assert [app.final_status for app in done.apps] == ["SUCCEEDED"]
        assert [(a.kind, a.outcome) for a in done.attempts] == [("map", "finished"), ("reduce", "finished")]
        assert all(0 < a.started_ms < a.ended_ms for a in done.attempts)

        told = told_by(url, done.apps[0].id, tmp_path / "state" / "logs" / "history.log")
        assert set(told) == {"map", "reduce"}
        for attempt in done.attempts:
            # A task begins when it is scheduled, its attempt when the container is launched.
            (task_s,) = told[attempt.kind]
            assert task_s >= (attempt.ended_ms - attempt.started_ms) / 1000
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main(["record", "--rm", rest.http.current, "--history", url, "-o", str(trace), "--json"])
        assert ended.value.code in (0, None)
        assert json.loads(capsys.readouterr().out)["detail"]["tasks"] == 1
        assert {stage.name: list(stage.tasks_s) for stage in read_trace(trace).jobs[0].stages} == told

        early_reduces(rest, tmp_path)

        # A program that cannot be started on the nodes.
        once = {"mapreduce.map.maxattempts": "1"}
        broken = replace(asked, output=tmp_path / "no", properties=once)
        (failed,) = runner(rest, tmp_path, f"{sys.executable} -c boom").run(broken)
        assert re.search(r"invertedindex failed.*NameError: name 'boom' is not defined", failed.why or "")
        assert not any(not app.final for app in rest.apps())
        assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []
        assert not (tmp_path / "no").exists()
