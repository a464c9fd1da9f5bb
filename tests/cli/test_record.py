"""`yarnfair record` beside a controller: whose weights the trace has is said."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.cli.record import _of_controller
from harness.yarn.http import HttpOptions
from tests.control.test_entitled import controlled
from tests.yarn.fake_server import FakeServer, conf


@pytest.mark.parametrize(
    ("told", "weights", "said"),
    [(True, {"root.a": 3.0, "root.b": 1.0}, "the administrator's weights"), (False, None, "the weights in force")],
)
def test_a_controller_at_work_is_a_warning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], told: bool, weights: dict[str, float] | None, said: str
) -> None:
    path, _ = controlled(tmp_path, told=told)
    with FakeServer(conf({"yarn.scheduler.fair.allocation.file": str(path)})) as rm:
        assert _of_controller(rm.url, HttpOptions()) == weights
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("warning: a controller is at work (host ")
    assert f"the trace has {said}" in line
    assert "give --config FILE" in line
