"""`yarnfair record` beside a controller: whose weights the trace has is said."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from harness.cli.record import _of_controller
from harness.yarn.http import HttpOptions
from harness.yarn.queue_answers import CAPACITY, FAIR
from harness.yarn.rmclient import RmClient
from tests.control.test_entitled import controlled, steered
from tests.yarn.fake_server import FakeServer, conf


def showing(queue: str, setting: float, kind: str) -> RmClient:
    """A client of a ResourceManager that shows one queue."""
    status = SimpleNamespace(type=kind, queues={queue: SimpleNamespace(setting=setting)})
    return cast(RmClient, SimpleNamespace(rest=SimpleNamespace(scheduler=lambda: status)))


@pytest.mark.parametrize(
    ("told", "weights", "said"),
    [
        (True, {"root.a": 3.0, "root.b": 1.0}, "the administrator's weights"),
        (False, None, "the weights in force, which are the controller's"),
    ],
)
def test_a_controller_at_work_is_a_warning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], told: bool, weights: dict[str, float] | None, said: str
) -> None:
    path, _ = controlled(tmp_path, told=told)
    client = showing("root.a", 1.0, FAIR)
    with FakeServer(conf({"yarn.scheduler.fair.allocation.file": str(path)})) as rm:
        assert _of_controller(rm.url, HttpOptions(), client) == weights
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("warning: a controller is at work (host ")
    assert f"the trace has {said}" in line
    assert "give --config FILE" in line


def test_a_capacity_schedulers_controller_is_a_warning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    steered(tmp_path)
    client = showing("root.a", 50.0, CAPACITY)
    for name in ("YARN_CONF_DIR", "HADOOP_CONF_DIR"):
        monkeypatch.delenv(name, raising=False)
    assert _of_controller("http://rm", HttpOptions(), client) is None
    assert capsys.readouterr().err == ""
    assert _of_controller("http://rm", HttpOptions(), showing("root.a", 20.9813, CAPACITY)) is None
    line = capsys.readouterr().err
    assert "a controller is at work (root.a has a capacity of 20.9813" in line
    assert "the capacities in force, which are the controller's" in line
    monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path))
    weights = _of_controller("http://rm", HttpOptions(), client)
    assert weights is not None
    assert weights["root.g.x"] == pytest.approx(30.0)
    assert "the administrator's capacities, as it says them" in capsys.readouterr().err
