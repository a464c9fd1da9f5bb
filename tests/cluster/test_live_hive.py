"""TPC-H by Hive on Tez on a real cluster: the answer is DuckDB's, tasks are measured, nothing of it runs on."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from harness.jobs.data.generate import FolderTarget, generate
from harness.jobs.engines.base import Request
from harness.jobs.hive.catalogue import GROUPS
from tests.cluster.local_clusters import one_queue, runner

# Starting HiveServer2 alone takes most of a core's half minute: not for every run of CI.
pytestmark = [pytest.mark.java, pytest.mark.live, pytest.mark.long, pytest.mark.xdist_group("live-hive")]


def test_the_papers_queries_and_one_that_fails(tmp_path: Path) -> None:
    data = tmp_path / "tpch"
    generate("tpch", 5_000_000, 1, FolderTarget(data))
    with one_queue(tmp_path) as rest:
        client = runner(rest, tmp_path)
        asked = [
            Request(name, (data,), tmp_path / name, "root.a", maps=2, reduces=1, timeout_s=1500.0)
            for name in GROUPS["hive"]
        ]
        for request, done in zip(asked, client.run(*asked), strict=True):
            assert done.why is None
            output = tmp_path / request.program
            assert done.verdict is not None
            assert done.verdict.wrong is None
            assert [(app.queue.removeprefix("root."), app.final_status) for app in done.apps] == [("a", "SUCCEEDED")]
            assert {a.outcome for a in done.attempts} == {"finished"}
            assert {a.kind for a in done.attempts} == {"map", "reduce"}
            assert all(0 < a.started_ms <= a.ended_ms for a in done.attempts)
            assert [path.name for path in output.iterdir()] == ["answer"]
        queue = {"tez.queue.name": "root"}
        broken = Request("hive-q1", (data,), tmp_path / "no", "root.none.such", timeout_s=1500.0, properties=queue)
        (failed,) = client.run(broken)
        assert re.search(r"hive-q1 failed; .*root is not a leaf queue", failed.why or "")
        assert not any(not app.final for app in rest.apps())
        assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []
