"""The study of MapReduce's master: a run of a real cluster, whose decisions are made again and which is simulated."""

from __future__ import annotations

import time
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.base.errors import InputError
from studies import mapreduce_master as study
from studies import mapreduce_replayed as replay
from studies.allocator_log import read_containers, read_master_log

RECORDED = Path(__file__).parent / "recorded" / "mapreduce_run.zip"
PREFIX = "2026-11-30 16:23:{} INFO [RMCommunicator Allocator] org.apache.hadoop.mapreduce.v2.app.rm.{}"
AT = "2026-11-30 16:23:0{},000 INFO"
STATE = (
    "{} Scheduling: PendingReds:{} ScheduledMaps:{} ScheduledReds:{} AssignedMaps:{} AssignedReds:{} CompletedMaps:{} "
    "CompletedReds:0 ContAlloc:26 ContRel:1 HostLocal:0 RackLocal:0"
)


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """24 maps and 6 reduces under the Capacity Scheduler, recorded on a machine whose clock showed UTC."""
    with monkeypatch.context() as zone:
        zone.setenv("TZ", "UTC")
        time.tzset()
        with zipfile.ZipFile(RECORDED) as archive:
            archive.extractall(tmp_path)
        yield next(tmp_path.iterdir())
    time.tzset()


def test_decisions_of_a_real_master_are_recomputed(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All are equal; with another limit on the resources of reduces (``rampup.limit``) fewer are."""
    _, (ran,) = study.read_run(run)
    again = study.recomputed(ran)
    assert again.decisions == again.equal == 69
    assert again.changes == 5
    assert ran.log.without_room == 0
    monkeypatch.setattr(study, "_RAMPUP_LIMIT", 0.2)
    assert study.recomputed(ran).equal < 69


def test_a_real_run_is_replayed_with_its_own_times(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All containers and headrooms are those of the real run, but an answer within the 4 ms between two containers.

    The queue had a capacity of 45 %. With a smaller one, the first headrooms are others.
    """
    told, jobs = study.read_run(run)
    capacities = {**replay.CAPACITIES, "root.a.capacity": "45", "root.b.capacity": "45"}
    monkeypatch.setattr(replay, "CAPACITIES", capacities)
    found = replay.replayed(run, told["scheduler"], jobs)
    assert (found.containers, found.same_containers) == (31, 31)
    assert (found.headrooms, found.same_headrooms) == (71, 70)
    monkeypatch.setattr(replay, "CAPACITIES", {**capacities, "root.a.capacity": "18", "root.b.capacity": "72"})
    assert replay.replayed(run, told["scheduler"], jobs).same_headrooms == 68


def test_a_real_job_is_compared_with_its_simulation(run: Path) -> None:
    """Completion and requested reduces are within the band; without tails the reduces would end with the last map."""
    (found,) = study.compared(run)
    assert found["maps_done"] == {"real": 4, "simulated": 4}
    assert found["early"] == {"real": 6, "simulated": 6}
    assert found["completion_difference"] <= study.BAND
    assert found["reduces_asked_difference"] <= study.BAND
    assert abs(found["first_reduce_s"]["real"] - found["first_reduce_s"]["simulated"]) <= study.BEATS
    (without,) = study.compared(run, tails=False)
    assert without["completion_s"]["simulated"] < found["completion_s"]["simulated"] - 5
    summary = study.summary([found, without])
    assert summary["jobs"] == 2
    assert summary["decisions"] == {"all": 138, "equal": 138, "changes": 10, "headroom_not_logged": 0}
    assert summary["completion"]["largest"] == without["completion_difference"]


def line(second: str, logger: str, text: str) -> str:
    return PREFIX.format(second, f"{logger}: {text}")


def test_preempted_reduces_are_read_once_and_a_decision_needs_its_headroom() -> None:
    """A master names a reduce again while it is being killed. An older heartbeat's headroom is not this decision's."""
    log = [
        line("24,860", "RMContainerRequestor", "ask=1 release=0 newContainers=0 resourceLimit=<memory:256, vCores:9>"),
        line("24,870", "RMContainerAllocator", "Going to preempt 5 due to lack of space for maps"),
        line("24,871", "RMContainerAllocator", "Preempting attempt_1_0001_r_000000_0"),
        line("24,871", "RMContainerAllocator", "Preempting attempt_1_0001_r_000001_0"),
        line("24,877", "RMContainerAllocator", STATE.format("After", 5, 6, 0, 0, 2, 22)),
        line("25,877", "RMContainerAllocator", STATE.format("Before", 7, 6, 0, 0, 1, 22)),
        line("25,888", "RMContainerAllocator", "Going to preempt 3 due to lack of space for maps"),
        line("25,889", "RMContainerAllocator", "Preempting attempt_1_0001_r_000001_0"),
    ]
    found = read_master_log(log)
    assert found.preempted == 2
    assert found.without_room == 1
    (decision,) = found.decisions
    assert (decision.room_mb, decision.room_vcores, decision.to_preempt) == (256, 9, 5)
    assert decision.after.pending == 5
    with pytest.raises(InputError, match="After Scheduling"):
        read_master_log(log[:4])


def test_containers_begin_when_they_are_allocated() -> None:
    """A reservation is none, and the first end counts."""
    moves = [
        ("_01_000007", "NEW", "RESERVED"),
        ("_01_000007", "RESERVED", "ALLOCATED"),
        ("_01_000007", "RUNNING", "COMPLETED"),
        ("_01_000008", "NEW", "RESERVED"),
    ]
    log = [
        f"{AT.format(at)} RMContainerImpl: container_1_0001{name} Container Transitioned from {one} to {to}"
        for at, (name, one, to) in enumerate(moves)
    ]
    found = read_containers(log)
    assert list(found) == ["container_1_0001_01_000007"]
    held = found["container_1_0001_01_000007"]
    assert held.to_ms is not None
    assert held.to_ms - held.from_ms == 1000
