"""What the controller tells the world: figures for Prometheus."""

from __future__ import annotations

from harness.control.reports import TickReport
from harness.control.telemetry import Metrics
from harness.model.resources import ZERO
from harness.model.snapshot import QueueView, Snapshot


def test_the_last_look_is_told_in_the_time_of_day_and_only_when_it_succeeded() -> None:
    now = [5000.0]
    metrics = Metrics(lambda: now[0])
    # The controller's own clock is far behind: the machine's time was set, or it slept.
    snapshot = Snapshot(100.0, ZERO, {"root": QueueView("root", None, False)})
    metrics(TickReport(time_s=100.0, took_s=0.1, snapshot=snapshot))
    shown = "yarnfair_last_look_timestamp_seconds"
    assert metrics.registry.get_sample_value(shown) == 5000.0
    now[0] = 6000.0
    metrics(TickReport(time_s=101.0, took_s=0.1))
    assert metrics.registry.get_sample_value(shown) == 5000.0
