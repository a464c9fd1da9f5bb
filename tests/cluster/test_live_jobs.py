"""One of the papers' applications on a real cluster: it computes, its answer is checked, a failing one says why; and
what the cluster's JobHistoryServer (`up --history`) then tells of it, for `record --history`."""

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

        # A program that cannot be started on the nodes.
        once = {"mapreduce.map.maxattempts": "1"}
        broken = replace(asked, output=tmp_path / "no", properties=once)
        (failed,) = runner(rest, tmp_path, f"{sys.executable} -c boom").run(broken)
        assert re.search(r"invertedindex failed.*NameError: name 'boom' is not defined", failed.why or "")
        assert not any(not app.final for app in rest.apps())
        assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []
        assert not (tmp_path / "no").exists()
