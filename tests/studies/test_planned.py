"""The study of what `plan` predicts: its loads, the history that it serves, and how a figure is judged."""

from __future__ import annotations

from typing import Any

import pytest

from harness.jobs.replay import JobRecord, TaskRecord
from harness.traces.history import History
from studies.planned_cluster import BelowDue, MasterHistory
from studies.planned_loads import ADHOC, HOURLY, LEAVES, LOADS, REPORTS
from studies.planned_measure import counted, judged


@pytest.mark.parametrize("name", LOADS)
def test_every_file_adds_up_and_has_the_shares_that_the_study_counts_with(name: str) -> None:
    load = LOADS[name]
    for side in ("before", "after"):
        shares = load.shares(side)
        assert set(shares) == set(LEAVES)
        assert sum(shares.values()) == pytest.approx(1.0)
    assert load.file("before") != load.file("after")


def test_the_history_of_replayed_masters_is_read_as_that_of_mapreduce() -> None:
    job = next(job for part in LOADS["top"].jobs for job in part.specs() if job.queue == HOURLY)

    def task(stage: int, number: int, ended_ms: int) -> TaskRecord:
        return TaskRecord(stage, number, 0, "c", "n", 1, 2, 3, 1000, 1100, ended_ms, ended_ms, "finished")

    class Masters:
        def __init__(self) -> None:
            self.apps = {job.id: "application_1_0001"}

        def record(self, _: str) -> JobRecord:
            # Reduces come first: stages are numbered by priority.
            tasks = (task(0, 0, 4000), *(task(1, number, 9000) for number in range(8)))
            return JobRecord(first_heartbeat_ms=500, ended_ms=9500, tasks=tasks)

    with MasterHistory(Masters(), {job.id: job}) as served:  # type: ignore[arg-type]
        history = History(served.url)
        found = history.mapreduce("application_1_0001")
        assert found is not None
        told = {stage["name"]: stage["tasks_s"] for stage in found["stages"]}
        assert told == {"map": [8.0] * 8, "reduce": [3.0]}
        assert history.began_ms("application_1_0001") == 500
        assert history.mapreduce("application_1_0002") is None
        history.close()


def _said(word: str, low: float, high: float) -> dict[str, Any]:
    return {"before": {"mean": 100.0}, "after": {"mean": (low + high) / 2, "band": [low, high]}, "word": word}


def test_a_figure_is_right_by_its_word_and_held_by_its_band() -> None:
    right = judged(_said("sooner", 70, 90), 100.0, 80.0, 0.03, "completion")
    assert (right["happened"], right["right"], right["opposite"], right["in_band"]) == ("sooner", True, False, True)
    wrong = judged(_said("sooner", 70, 90), 100.0, 130.0, 0.03, "completion")
    assert (wrong["happened"], wrong["right"], wrong["opposite"], wrong["in_band"]) == ("later", False, True, False)
    below = judged(_said("more", 110, 130), 100.0, 101.0, 0.03, "below_due")
    assert (below["happened"], below["right"], below["opposite"]) == ("same", False, False)
    unsure = judged(_said("unsure", 70, 130), 100.0, 101.0, 0.03, "wait")
    found = counted([right, wrong, below, unsure])
    assert (found["words"], found["unsure"], found["words_right"], found["opposite"]) == (3, 1, 1, 1)
    assert (found["figures"], found["in_band"]) == (4, 2)


def test_a_queue_is_below_its_due_from_one_poll_to_the_next() -> None:
    from types import SimpleNamespace

    from harness.model.resources import Resource

    def status(used: int, demand: int) -> Any:
        queues = {leaf: SimpleNamespace(used=Resource(), demand=Resource()) for leaf in LEAVES}
        queues[ADHOC] = SimpleNamespace(used=Resource(used, 1), demand=Resource(demand, 2))
        return SimpleNamespace(capacity=Resource(10_000, 10), queues=queues)

    below = BelowDue(LOADS["top"].shares("before"))
    below.poll(status(1000, 3000), 0.0)
    below.poll(status(1950, 3000), 2.0)  # 97.5 % of its due
    below.poll(status(1000, 1000), 5.0)  # wants no more
    below.poll(status(1000, 1000), 9.0)
    assert below.seconds[ADHOC] == 2.0
    assert below.seconds[REPORTS] == 0.0
