"""What applications used, read again when their masters' containers are gone."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from harness.experiments.real import curves as real_settle
from harness.experiments.real.curves import JobRun, settle
from harness.model.resources import ZERO
from harness.yarn.answers import AppStatus
from harness.yarn.errors import Unreachable

STALE = AppStatus(
    "application_1_0001", "u", "a-1", "root.a", "FINISHED", "SUCCEEDED", "REPLAY", frozenset(), 100.0, 1000, 1100,
    9000, ZERO, ZERO, 0, 5000, 5, 0, "",
)  # fmt: skip


def ended(name: str, state: str = "FINISHED") -> Any:
    """As much of a `JobRun` as is read."""
    app = f"application_1_{name}"
    return SimpleNamespace(app_id=app, status=replace(STALE, id=app, state=state))


class Rm:
    """An RM whose masters' containers go one look after the other, and whose figures are whole only then."""

    def __init__(self, containers: int) -> None:
        self.containers, self.asked = containers, []  # type: int, list[str]

    def metrics(self) -> Any:
        self.containers = max(self.containers - 1, 0)
        return SimpleNamespace(containers_allocated=self.containers)

    def app(self, identity: str) -> AppStatus:
        if identity.endswith("gone"):
            raise Unreachable("no answer", where="http://rm")
        self.asked.append(identity)
        return replace(STALE, id=identity, memory_seconds=9000 - self.containers)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(real_settle, "SETTLE_LOOK_S", 0.001)


def used(jobs: list[Any]) -> list[int]:
    return [job.status.memory_seconds for job in jobs]


def test_figures_are_those_after_the_last_container(monkeypatch: pytest.MonkeyPatch) -> None:
    jobs: list[JobRun] = [ended("1"), ended("2"), ended("3", "RUNNING"), ended("gone")]
    rm = Rm(5)
    # Running applications are not queried again. One whose query fails keeps its values and is returned.
    assert settle(jobs, rm) == ["application_1_gone"]  # type: ignore[arg-type]
    assert rm.asked == ["application_1_1", "application_1_2"]
    assert used(jobs) == [9000, 9000, 5000, 5000]


def test_other_tenants_containers_are_not_waited_for_without_end() -> None:
    jobs: list[JobRun] = [ended("1")]
    settle(jobs, Rm(10**9), wait_s=0.02)  # type: ignore[arg-type]
    assert used(jobs) != [5000]


def test_nothing_is_asked_where_nothing_has_ended() -> None:
    rm, jobs = Rm(5), [ended("1", "RUNNING")]
    settle(jobs, rm)  # type: ignore[arg-type]
    assert (rm.containers, rm.asked, used(jobs)) == (5, [], [5000])
