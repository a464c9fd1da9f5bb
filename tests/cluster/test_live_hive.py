"""TPC-H by Hive on Tez on a real cluster: the answer is DuckDB's, tasks are measured, nothing of it runs on."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from harness.base.errors import RunInvalid
from harness.jobs.data.generate import FolderTarget, generate
from harness.jobs.engines.base import ProgramCluster, Request
from harness.jobs.engines.runner import ProgramRunner
from harness.jobs.hive.catalogue import GROUPS
from tests.cluster.local_clusters import one_queue

# Starting HiveServer2 alone takes most of a core's half minute: not for every run of CI.
pytestmark = [pytest.mark.java, pytest.mark.live, pytest.mark.long, pytest.mark.xdist_group("live-hive")]


def test_the_papers_queries_and_one_that_fails(tmp_path: Path) -> None:
    data = tmp_path / "tpch"
    generate("tpch", 5_000_000, 1, FolderTarget(data))
    with one_queue(tmp_path) as rest:
        client = ProgramRunner(ProgramCluster(rest, tmp_path, sys.executable, progress=print))
        for name in GROUPS["hive"]:
            output = tmp_path / name
            done = client.run(Request(name, (data,), output, "root.a", maps=2, reduces=1, timeout_s=1500.0))
            assert done.verdict is not None
            assert done.verdict.wrong is None
            assert [(app.queue.removeprefix("root."), app.final_status) for app in done.apps] == [("a", "SUCCEEDED")]
            assert {a.outcome for a in done.attempts} == {"finished"}
            assert {a.kind for a in done.attempts} == {"map", "reduce"}
            assert all(0 < a.started_ms <= a.ended_ms for a in done.attempts)
            assert [path.name for path in output.iterdir()] == ["answer"]
        queue = {"tez.queue.name": "root"}
        broken = Request("hive-q1", (data,), tmp_path / "no", "root.none.such", timeout_s=1500.0, properties=queue)
        with pytest.raises(RunInvalid, match=r"hive-q1 failed; .*root is not a leaf queue"):
            client.run(broken)
        assert not any(not app.final for app in rest.apps())
        assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []
