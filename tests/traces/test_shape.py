"""For how much of a trace's work its division into tasks is known."""

from __future__ import annotations

import pytest

from harness.model.queues import SchedulerName
from harness.traces.accounting import Shape, account_lines, account_of
from harness.traces.recorded import Header, LeftOutLine, NodeLine, QueueLine
from tests.predict.loads import job


def test_predictions_say_for_how_much_of_the_work_the_shape_is_known() -> None:
    known, summed = job("a", "root.a", 0.0, 3, 10.0), job("b", "root.a", 0.0, 1, 10.0)
    summed = summed.model_copy(update={"detail": "integrals"})
    header = Header(nodes=[NodeLine(memory_mb=1024, vcores=1)], queues={"root.a": QueueLine()})
    assert Shape.of([known, summed]) == Shape(2, 1, pytest.approx(0.75))
    (line,) = account_lines(header, [known, summed])
    assert line.startswith("of 2 applications 1 are known only by sums, 25 % of the work: their shape is assumed")
    assert account_lines(header, [known]) == ["of 1 applications the shape of all is known, task by task"]
    assert account_of(header, [known])["shape"] == {"applications": 1, "by_sums": 0, "known": 1.0}
    assert Shape.of([]).known == 1.0


def test_a_trace_that_lacks_much_is_told_to_be_unsure() -> None:
    """For every command that plays it, not only for a verdict."""
    header = Header(nodes=[NodeLine(memory_mb=1024, vcores=1)], queues={"root.a": QueueLine()})
    jobs = [job("a", "root.a", 0.0, 3, 10.0)]
    few = LeftOutLine(reason="start unknown", attempts=1)
    unsure = [line for line in account_lines(header.model_copy(update={"left_out": [few]}), jobs) if "unsure" in line]
    assert [line.partition(" of the jobs")[0] for line in unsure] == ["unsure: more than 2 %"]
    told = account_of(header.model_copy(update={"unknown": ["the trace names no queue"]}), jobs)
    assert told["unsure"] == ["what the trace does not say may change every figure"]
    twice = LeftOutLine(reason="the same job again", jobs=5)
    assert "unsure" not in account_of(header.model_copy(update={"left_out": [twice]}), jobs)


@pytest.mark.parametrize(
    ("scheduler", "asynchronous", "said"),
    [("capacity", True, "unsure"), ("capacity", False, ""), ("capacity", None, "assumed"), (None, None, "")],
)
def test_a_simulation_says_how_the_recorded_cluster_places_containers(
    scheduler: SchedulerName | None, asynchronous: bool | None, said: str
) -> None:
    """A recording of an asynchronous Capacity Scheduler was played by heartbeats without a word."""
    header = Header(
        nodes=[NodeLine(memory_mb=1024, vcores=1)],
        queues={"root.a": QueueLine()},
        scheduler=scheduler,
        asynchronous=asynchronous,
    )
    jobs = [job("a", "root.a", 0.0, 3, 10.0)]
    told = [line for line in account_lines(header, jobs) if "asynchronously" in line]
    assert [line.partition(":")[0] for line in told] == ([said] if said else [])
    document = account_of(header, jobs)
    assert [key for key in ("assumed", "unsure") if "asynchronously" in str(document.get(key))] == (
        [said] if said else []
    )
    # What is only counted is as it was recorded.
    assert not any("asynchronously" in line for line in account_lines(header, jobs, played=False))
    assert "asynchronously" not in str(account_of(header, jobs, played=False))
