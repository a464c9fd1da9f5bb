"""Faults around the accounts, planted from outside: the product itself notices each, says what it is, and does no harm.

The controller is the real one, on a ResourceManager in memory; what is planted is what happens to its surroundings.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.base.errors import CallError
from harness.control.reports import TickReport
from tests.control.driven import controlled, rm_with_load
from tests.control.rm_model import MemoryPlace, RmModel

DAY_S = 86_400.0


class Cluster:
    """A cluster with a controller that has been at work for a while, and the address at which its RM answers."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.rm = rm_with_load()
        self.rm.start("x", 4096)
        self.answers = self.rm
        self.ahead_s = 0.0
        self.settings: dict[str, Any] = {"lease_s": 30.0, "mode": "bounded"}
        self.run(20)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.answers, name)

    def run(self, ticks: int, do: Callable[[], object] = lambda: None) -> list[TickReport]:
        """The reports of a controller that begins now, and is killed after so many ticks; ``do``: after the first."""
        reports = []
        address: Any = self
        with controlled(address, self.folder, clock=lambda: self.rm.now_s + self.ahead_s, **self.settings) as one:
            one.check_entitlements()
            for _ in range(ticks):
                reports.append(one.tick())
                self.rm.now_s += 5.0
                do()
                do = lambda: None  # noqa: E731
        return reports


def _another_cluster(cluster: Cluster) -> None:
    other = RmModel(MemoryPlace(cluster.rm.place.read()), now_s=cluster.rm.now_s - DAY_S)
    other.began_ms = 99
    other.submit("theirs", "root.b")
    other.start("theirs", 8192)
    other.now_s = cluster.rm.now_s
    cluster.answers = other


def _clock(cluster: Cluster) -> None:
    cluster.ahead_s = 30 * DAY_S


def _deleted(cluster: Cluster) -> None:
    (cluster.folder / "ledger.db").unlink()


def _replaced(cluster: Cluster) -> None:
    path = cluster.folder / "ledger.db"
    path.with_name("old").write_bytes(path.read_bytes())
    os.replace(path.with_name("old"), path)


def _jump(cluster: Cluster) -> None:
    cluster.rm.apps["x"].lie = (2**62, 2**40)


def _stranger(cluster: Cluster) -> None:
    """An application that was there a day ago, and that no look has shown."""
    cluster.rm.submit("stranger", "root.b").submitted_s = cluster.rm.now_s - DAY_S
    cluster.rm.apps["stranger"].lie = (10**9, 10**6)


@pytest.mark.parametrize(
    ("plant", "kind", "words"),
    [
        (_another_cluster, "cluster", "another cluster's"),
        (_deleted, "ledger", "was deleted while it was in use"),
        (_replaced, "ledger", "was replaced by another file"),
        (_jump, "app", "more than the cluster could give"),
        (_stranger, "app", "older than the last look"),
    ],
)
def test_a_fault_while_it_works_is_an_alarm_and_nothing_is_invented(
    tmp_path: Path, plant: Callable[[Cluster], None], kind: str, words: str
) -> None:
    cluster = Cluster(tmp_path)
    reports = cluster.run(4, lambda: plant(cluster))
    said = [alarm for report in reports[1:] for alarm in report.alarms]
    assert any(alarm.kind == kind and words in alarm.text for alarm in said), said
    for queue in ("root.a", "root.b"):
        used = reports[-1].consumed.get(queue, (0.0, 0.0))[0]
        assert used <= cluster.rm.truth(queue)[0] + 1


def test_a_clock_that_is_wrong_at_a_start_is_an_alarm_and_no_debt_fades(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path)
    (before,) = cluster.run(1)
    _clock(cluster)
    reports = cluster.run(3)
    assert all(any(alarm.kind == "clock" for alarm in report.alarms) for report in reports)
    assert not any(report.wrote for report in reports)
    cluster.ahead_s = 0.0
    (after,) = cluster.run(1)
    assert after.alarms == ()
    assert after.counted["root.a"] >= before.counted["root.a"]


def test_a_misspelt_queue_is_an_error_before_anything_is_written(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path)
    file = cluster.rm.place.data
    cluster.settings["entitlements"] = {"root.aa": 5.0}
    with pytest.raises(CallError, match=r"no queue root\.aa \(near: root\.a"):
        cluster.run(1)
    assert cluster.rm.place.data == file


def test_weights_that_a_killed_run_left_are_not_kept_by_a_shadow(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path)
    cluster.settings["mode"] = "shadow"
    (report,) = cluster.run(1)
    assert any("was killed and had left its weights" in alarm.text for alarm in report.alarms)
    assert {queue.path: queue.weight for queue in cluster.rm.tree if queue.parent} == {"root.a": 1.0, "root.b": 1.0}
