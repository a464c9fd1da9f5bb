"""What `cluster up` and `cluster status` print of a cluster."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.cli.cluster import _show
from harness.clusters.status import ClusterStatus, Part
from harness.yarn.rmclient import RmAddress


def status(folder: Path) -> ClusterStatus:
    """Return the status of a cluster of containers that has grown by one node of another type."""
    return ClusterStatus(
        backend="docker",
        folder=str(folder),
        scheduler_folder=str(folder),
        address=RmAddress.of("http://127.0.0.1:8088"),
        wanted=2,
        rm=Part("rm", "58eddf17924b", 189.0, ":0"),
        parts=[Part("c1.medium-1", "d2cc095e1883", 131.0, ":1"), Part("nm1", "1709f957ea3d", 137.0, ":2")],
        others=[],
        info=None,
        nodes=[],
        problem="no answer",
        running_s=67.2,
        recorded_id=1,
    )


def test_the_columns_stand_below_their_titles(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The name of an added node was wider than its column, and moved the rest of its row."""
    _show(status(tmp_path), as_json=False)
    shown = capsys.readouterr().out.splitlines()
    head = next(line for line in shown if line.startswith("part"))
    for ident in ("58eddf17924b", "d2cc095e1883", "1709f957ea3d"):
        (row,) = [line for line in shown if ident in line]
        assert row.index(ident) == head.index("runs as")


def test_only_up_tells_how_long_its_nodes_took(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`4 of 4 nodes RUNNING, after 67.2 s` told of the two nodes of `up` long ago."""
    _show(status(tmp_path), as_json=False)
    assert "67.2" not in capsys.readouterr().out
    _show(status(tmp_path), as_json=False, with_duration=True)
    assert "nodes RUNNING, after 67.2 s" in capsys.readouterr().out
