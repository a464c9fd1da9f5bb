"""One of the papers' applications on a real cluster: it computes, its answer is checked, a failing one says why."""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from harness.jobs.data.generate import FolderTarget, generate
from harness.jobs.engines.base import Request
from tests.cluster.local_clusters import one_queue, runner

pytestmark = [pytest.mark.java, pytest.mark.live, pytest.mark.xdist_group("live-jobs")]


def test_an_application_computes_and_a_failing_one_says_why(tmp_path: Path) -> None:
    generate("text", 30_000, 2, FolderTarget(tmp_path / "text"))
    with one_queue(tmp_path, memory_mb=2048) as rest:
        asked = Request("invertedindex", (tmp_path / "text",), tmp_path / "out", "root.a", maps=1, reduces=1)
        (done,) = runner(rest, tmp_path).run(asked)
        assert done.why is None
        assert done.verdict is not None
        assert done.verdict.wrong is None
        assert done.verdict.records > 1000
        assert [app.final_status for app in done.apps] == ["SUCCEEDED"]
        assert [(a.kind, a.outcome) for a in done.attempts] == [("map", "finished"), ("reduce", "finished")]
        assert all(0 < a.started_ms < a.ended_ms for a in done.attempts)

        # A program that cannot be started on the nodes.
        once = {"mapreduce.map.maxattempts": "1"}
        broken = replace(asked, output=tmp_path / "no", properties=once)
        (failed,) = runner(rest, tmp_path, f"{sys.executable} -c boom").run(broken)
        assert re.search(r"invertedindex failed.*NameError: name 'boom' is not defined", failed.why or "")
        assert not any(not app.final for app in rest.apps())
        assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []
        assert not (tmp_path / "no").exists()
